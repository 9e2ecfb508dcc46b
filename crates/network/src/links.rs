//! All links of a network at work, with its schedule.
//!
//! # Late links
//!
//! Nobody notices what a link does before a packet that it sent has crossed the shortest way to its next stop.
//! So packets reach the queue of a link late, but by no more than that way takes: one event lets the link hear
//! of all that have arrived by then, each with its own time, in the order of times and lines, and carry out the
//! ends of transmissions between them (`Links::hear`). `Links::allow_late_links` switches this on.
//!
//! - Where more than 16 lines lead to a link, or one of them without any delay, packets arrive in time, and only
//!   ends are late.
//! - A queue that ever asks to be woken says so (`asks_to_be_woken`), and its link does everything in time. So do
//!   all links in runs of 13 days or more.
//! - Losses are known late too. What depends on them is which connections are gone when a user opens the next:
//!   links catch up before that, if a connection is over and has packets in the network
//!   (`Links::catch_up_before`).
//! - Before samples, phases and the end of a run all links catch up.
//! - In real time, with a trace and with a capture there is an event for each arrival and each end.
//!
//! The results are the same (`crates/sim/tests/it/late_ends.rs` compares them); only the number of events is
//! smaller. `paths.rs` says the same of hosts.

use redtail_core::{Ecn, Span, Time};
use redtail_qdisc::{QueueDiscipline, Wakeup};

use crate::link::{Ends, INSTANT, LATEST_HEAD};
use crate::lookahead::shortest_legs;
use crate::network::Network;
use crate::packet::ContentId;
use crate::paths::Address;
use crate::result::QueueSeries;
use crate::scheduler::{Class, Event, Scheduler};
use crate::statistics::Measured;

/// A network with its events and what is measured at its links.
#[derive(Debug)]
pub struct Links {
    /// The links, routes and everything in flight.
    pub network: Network,
    /// What is due.
    pub scheduler: Scheduler,
}

impl Links {
    /// A network in which nothing has been sent, for a run until `end`.
    pub fn new(network: Network, end: Time) -> Self {
        let lines = network.paths.line_count();
        Self {
            scheduler: Scheduler::new(network.links.len(), lines, end),
            network,
        }
    }

    /// An endpoint sends a packet of `size` bytes with this content and these ECN bits.
    #[inline(always)]
    pub fn emit(&mut self, content: (ContentId, Ecn), size: u32, to: Address, now: Time) {
        let paths = &mut self.network.paths;
        paths.emit(content, size, to, now, &mut self.scheduler);
    }

    /// Lets links hear of packets and carry out the ends of their transmissions late, several at once, where nobody can
    /// notice it: nobody looks at what happens at the ends of links ([`Ends::pass`]), and before links and their counters
    /// are read, or something depends on what has been lost, [`Links::catch_up_before`] is called.
    ///
    /// Such a link and the lines behind it are a logical process of conservative simulation, and the delay of
    /// these lines is its lookahead (K. M. Chandy and J. Misra, "Distributed simulation", IEEE Transactions on Software
    /// Engineering 5(5), 1979).
    ///
    /// The run ends at `end`. Links of a run that takes too long are not late.
    pub fn allow_late_links(&mut self, end: Time) {
        if end >= LATEST_HEAD {
            return;
        }
        let shortest = shortest_legs(&self.network);
        for (link, shortest) in self.network.links.iter_mut().zip(shortest) {
            // No route goes on from a link that nothing crosses.
            let has_next = shortest < Span::MAX;
            if has_next
                && shortest > Span::ZERO
                && !link.has_trace()
                && link.queue.next_wakeup() == Wakeup::Never
            {
                link.slack = shortest;
                let lines = self.network.paths.let_late(link.number, shortest);
                link.inputs = lines;
            }
        }
    }

    /// Lets links hear of the late arrivals that come before `event`, and carry out the ends of transmissions that do.
    pub fn catch_up_before<E: Ends>(&mut self, event: Event, ends: &mut E) {
        let now = event.at();
        let (line, limit) = match event.class() {
            Class::Measure | Class::Sample | Class::LinkFree => (0, now),
            Class::Arrival => (event.index(), now + INSTANT),
            _ => (u32::MAX, now + INSTANT),
        };
        let Network { links, paths, .. } = &mut self.network;
        for link in links.iter_mut().filter(|link| link.slack > Span::ZERO) {
            link.hear((now, line), paths, &mut self.scheduler, ends);
            link.catch_up(limit, paths, &mut self.scheduler, ends);
        }
    }

    /// The measurement period begins, with the first of several phases if there are `phases`.
    pub fn start_measuring(&mut self, phases: bool, now: Time) {
        for link in &mut self.network.links {
            let begin = || link.statistics(now);
            link.books.statistics = Some(Measured {
                whole: begin(),
                phase: phases.then(|| Box::new(begin())),
            });
            link.queue.start_measuring(now);
        }
        self.network.paths.start_measuring();
    }

    /// The next phase begins.
    ///
    /// # Panics
    /// During the warm-up.
    pub fn start_phase(&mut self, now: Time) {
        for link in &mut self.network.links {
            let begin = link.statistics(now);
            let statistics = link.books.statistics.as_mut().expect("the warm-up is over");
            statistics.phase = Some(Box::new(begin));
        }
    }

    /// Adds a sample of every queue to `rows`.
    pub fn sample(&mut self, now: Time, rows: &mut QueueSeries) {
        for link in &mut self.network.links {
            let (backlog, internals) = (link.queue.backlog(), link.queue.internals());
            rows.time_s.push(now.as_secs_f64());
            rows.link.push(link.number);
            rows.packets.push(backlog.packets as f64);
            rows.bytes.push(backlog.bytes as f64);
            rows.average.push(internals.average.unwrap_or(f64::NAN));
            rows.probability
                .push(internals.probability.unwrap_or(f64::NAN));
            let passed = link.books.passed;
            let before = &mut link.books.sampled;
            rows.arrivals.push(passed.arrived - before.0.arrived);
            rows.drops.push(passed.dropped - before.0.dropped);
            rows.marks.push(passed.marked - before.0.marked);
            // The packet in transmission has not departed.
            let begun = passed.departed + u64::from(link.transmitting.is_some());
            let begun = begun - std::mem::replace(&mut before.1, begun);
            let waited = Span::from_ps(passed.waited.wrapping_sub(before.0.waited));
            rows.delay_s.push(if begun > 0 {
                waited.as_secs_f64() / begun as f64
            } else {
                f64::NAN
            });
            before.0 = passed;
        }
    }

    /// The run ends. A transmission that this interrupts has used the link up to the end.
    pub fn end_transmissions(&mut self, now: Time) {
        for link in &mut self.network.links {
            let transmission = link.in_transmission();
            if let (Some((group, since)), Some(statistics)) =
                (transmission, &mut link.books.statistics)
            {
                statistics.on_transmitted(group, since, now, link.capacity.as_deref());
            }
        }
    }

    /// Checks that each link has neither made nor lost packets.
    ///
    /// # Panics
    /// When the counters do not balance: a fault of redtail.
    pub fn check_conservation(&self) {
        for link in &self.network.links {
            let passed = link.books.passed;
            let waiting = link.queue.backlog().packets + link.queue.missing();
            let inside = waiting + u64::from(link.transmitting.is_some());
            assert_eq!(
                passed.arrived,
                passed.departed + passed.dropped + inside,
                "packets at {} do not add up: {passed:?}, {inside} inside",
                link.name
            );
        }
    }

    /// The head of `line` reaches the queue of the link of this number.
    #[inline]
    pub fn offer<E: Ends>(&mut self, line: u32, index: u32, now: Time, ends: &mut E) {
        let Network { links, paths, .. } = &mut self.network;
        links[index as usize].offer(line, now, paths, &mut self.scheduler, ends);
    }

    /// Packets that have arrived and may be late reach the queue of the link of this number.
    #[inline]
    pub fn hear<E: Ends>(&mut self, index: u32, now: Time, ends: &mut E) {
        let Network { links, paths, .. } = &mut self.network;
        links[index as usize].hear((now, 0), paths, &mut self.scheduler, ends);
    }

    /// A link has finished transmissions: one now, or others before.
    #[inline]
    pub fn on_link_free<E: Ends>(&mut self, index: u32, now: Time, ends: &mut E) {
        let Network { links, paths, .. } = &mut self.network;
        let (link, scheduler) = (&mut links[index as usize], &mut self.scheduler);
        if link.has_trace() {
            link.on_opportunity(now, paths, scheduler, ends);
        } else {
            link.hear((now, 0), paths, scheduler, ends);
            link.catch_up(now + INSTANT, paths, scheduler, ends);
        }
        link.due = link.latest_end();
        scheduler.set_link(index, link.due);
    }

    /// A queue that others serve may have a packet now: an idle link asks for it.
    pub fn ask_queue<E: Ends>(&mut self, index: u32, now: Time, ends: &mut E) {
        let Network { links, paths, .. } = &mut self.network;
        let (link, scheduler) = (&mut links[index as usize], &mut self.scheduler);
        if link.transmitting.is_none() {
            let wakeup = link.resume(now, paths, scheduler, ends);
            link.arm_queue(wakeup, now, scheduler);
        }
    }

    /// A queue asked to be woken now.
    ///
    /// # Panics
    /// When it gives nothing although it asked, or asks for the same time again.
    pub fn on_queue_wakeup<E: Ends>(&mut self, index: u32, now: Time, ends: &mut E) {
        let Network { links, paths, .. } = &mut self.network;
        links[index as usize].on_queue_wakeup(now, paths, &mut self.scheduler, ends);
    }
}
