//! All links of a network at work, with its schedule.

use redtail_core::{Ecn, Span, Time};
use redtail_qdisc::QueueDiscipline;

use crate::link::{Ends, Horizon};
use crate::network::Network;
use crate::packet::{ContentId, SimPacket};
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

    /// An endpoint sends a packet of `size` bytes with this content and these ECN bits, from `place`
    /// ([`Paths::emit`](crate::Paths::emit)).
    #[inline(always)]
    pub fn emit(
        &mut self,
        content: (ContentId, Ecn),
        size: u32,
        to: Address,
        now: Time,
        place: impl FnOnce(&SimPacket) -> [u64; 2],
    ) {
        let paths = &mut self.network.paths;
        paths.emit(content, size, to, now, &mut self.scheduler, place);
    }

    /// Advances all links to `event`.
    pub fn advance_to<E: Ends>(&mut self, event: Event, ends: &mut E) {
        let horizon = Horizon::before(event);
        let Network { links, paths, .. } = &mut self.network;
        for link in links.iter_mut().filter(|link| link.lookahead > Span::ZERO) {
            link.advance_to(horizon, paths, &mut self.scheduler, ends);
        }
    }

    /// The measurement period begins, with the first of several phases if there are `phases`.
    pub fn start_measuring(&mut self, phases: bool, now: Time) {
        for link in &mut self.network.links {
            let begin = || link.statistics(now);
            link.counters.statistics = Some(Measured {
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
            let statistics = link
                .counters
                .statistics
                .as_mut()
                .expect("the warm-up is over");
            statistics.phase = Some(Box::new(begin));
        }
    }

    /// Adds a sample of every queue to `rows`.
    pub fn sample(&mut self, now: Time, rows: &mut QueueSeries) {
        for link in &mut self.network.links {
            let state = link.state(now);
            rows.time_s.push(now.as_secs_f64());
            rows.link.push(link.number);
            rows.packets.push(state.backlog.packets as f64);
            rows.bytes.push(state.backlog.bytes as f64);
            rows.average
                .push(state.internals.average.unwrap_or(f64::NAN));
            rows.probability
                .push(state.internals.probability.unwrap_or(f64::NAN));
            let before = &mut link.counters.sampled;
            rows.arrivals
                .push(state.passed.arrived - before.passed.arrived);
            rows.drops
                .push(state.passed.dropped - before.passed.dropped);
            rows.marks.push(state.passed.marked - before.passed.marked);
            rows.delay_s
                .push(state.mean_wait_since(before).unwrap_or(f64::NAN));
            *before = state;
        }
    }

    /// The run ends. A transmission that this interrupts has used the link up to the end.
    pub fn end_transmissions(&mut self, now: Time) {
        for link in &mut self.network.links {
            let transmission = link.in_transmission();
            if let (Some((group, since)), Some(statistics)) =
                (transmission, &mut link.counters.statistics)
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
            let passed = link.counters.passed;
            let waiting = link.queue.backlog().packets + link.queue.missing();
            let inside = waiting + link.leaving().count() as u64;
            assert_eq!(
                passed.arrived,
                passed.departed + passed.dropped + inside,
                "packets at {} do not add up: {passed:?}, {inside} inside",
                link.name
            );
            if let Some(wire) = &link.wire {
                wire.check_conservation(&link.name);
            }
        }
    }

    /// The head of `line` arrives at the queue of the link of this number, or, if that lags behind, what has arrived there
    /// before now.
    #[inline]
    pub fn on_arrival<E: Ends>(&mut self, line: u32, index: u32, now: Time, ends: &mut E) {
        let Network { links, paths, .. } = &mut self.network;
        let (link, scheduler) = (&mut links[index as usize], &mut self.scheduler);
        if paths.lags(line) {
            link.advance_arrivals((now, 0), paths, scheduler, ends);
        } else {
            link.on_arrival(line, now, paths, scheduler, ends);
        }
    }

    /// The wire of a link releases packets that it held until now.
    pub fn on_wire(&mut self, index: u32, now: Time) {
        let Network { links, paths, .. } = &mut self.network;
        let link = &mut links[index as usize];
        let measuring = link.counters.statistics.is_some();
        if let Some(wire) = &mut link.wire {
            wire.release(measuring, now, paths, &mut self.scheduler);
        }
    }

    /// A link has finished transmissions: one now, or others before.
    #[inline]
    pub fn on_link_free<E: Ends>(&mut self, index: u32, now: Time, ends: &mut E) {
        let Network { links, paths, .. } = &mut self.network;
        let (link, scheduler) = (&mut links[index as usize], &mut self.scheduler);
        if link.has_opportunities() {
            if link.airtime().is_some() {
                return self.on_medium(index, now, ends);
            }
            link.on_opportunity(now, paths, scheduler, ends);
        } else {
            // Its ends at this time come before all arrivals.
            let horizon = Horizon::before(Event::new(now, Class::Arrival, 0));
            link.advance_to(horizon, paths, scheduler, ends);
        }
        link.due = link.end_due();
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
