//! Links at work: queues, transmitters and losses.

use redtail_core::{Ecn, Span, Time};
use redtail_qdisc::{DropReason, LateDequeue, QueueDiscipline, Sink, TcpHeader};

use crate::capacity::Capacity;
use crate::lookahead::shortest_legs;
use crate::network::{Address, Link, Network, Route};
use crate::packet::{ContentId, SimPacket};
use crate::result::QueueSeries;
use crate::scheduler::{Class, Event, Scheduler};
use crate::statistics::{LinkStatistics, Measured, PacketOwner};

/// The least span: the ends of transmissions come before other events at the same time.
const INSTANT: Span = Span::from_ps(1);

/// Packets that passed a link, over the whole run.
#[derive(Clone, Copy, Debug, Default)]
pub struct LinkPassed {
    /// Packets offered to its queue.
    pub arrived: u64,
    /// Packets that its transmitter sent off completely.
    pub departed: u64,
    /// Packets its queue dropped.
    pub dropped: u64,
    /// Packets its queue marked.
    pub marked: u64,
    /// The sum of the queueing delays of the packets whose transmission began, in picoseconds,
    /// modulo 2^64.
    pub waited: u64,
}

/// Which end of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum End {
    /// Packets that arrive at its queue, before the queue admits or drops them.
    In,
    /// Packets that its transmitter has sent, at the end of the transmission.
    Out,
}

/// The endpoints, as the links know them. They keep what packets carry.
pub trait Ends {
    /// A queue has dropped a packet, or a wire has lost it: nobody needs its content any more.
    fn lost(&mut self, packet: &SimPacket);

    /// A queue has marked a packet (ECN) that counts in the measurement period.
    #[inline]
    fn marked(&mut self, _packet: &SimPacket) {}

    /// The TCP header of a packet of this group, if it has one.
    fn tcp_header(&self, packet: &SimPacket, group: usize) -> Option<TcpHeader>;

    /// A packet passes an end of a link.
    #[inline]
    fn pass(&mut self, _link: u32, _end: End, _packet: &SimPacket, _now: Time) {}
}

/// The counters of one link.
#[derive(Debug)]
pub struct LinkBooks {
    /// Packets that passed it.
    pub passed: LinkPassed,
    /// Packets waiting, by group.
    pub waiting: Vec<u64>,
    /// `None` during the warm-up.
    pub statistics: Option<Measured>,
}

/// Receives the drops and marks of a queue during one call.
struct QueueEvents<'a, E> {
    books: &'a mut LinkBooks,
    routes: &'a [Route],
    ends: &'a mut E,
    /// The packet being offered, unless it has been dropped.
    arriving: Option<ContentId>,
}

/// The group of the packet that a link is transmitting, and the start of the transmission.
pub fn in_transmission(link: &Link, routes: &[Route]) -> Option<(usize, Time)> {
    let (packet, since) = link.transmitting.as_ref()?;
    Some((routes[packet.route as usize].group as usize, *since))
}

impl<E: Ends> Sink<SimPacket> for QueueEvents<'_, E> {
    fn dropped(&mut self, packet: SimPacket, _reason: DropReason, now: Time) {
        let group = self.routes[packet.route as usize].group as usize;
        let waited = self.arriving != Some(packet.content);
        if !waited {
            self.arriving = None;
        }
        self.books.passed.dropped += 1;
        self.books.waiting[group] -= u64::from(waited);
        self.ends.lost(&packet);
        if let Some(statistics) = &mut self.books.statistics {
            let flow = packet.flow;
            let waited = waited.then_some(packet.stamp);
            statistics.on_drop(PacketOwner { group, flow }, waited, now);
        }
    }

    fn marked(&mut self, packet: &SimPacket, _now: Time) {
        let group = self.routes[packet.route as usize].group as usize;
        self.books.passed.marked += 1;
        if let Some(statistics) = &mut self.books.statistics {
            let waited = self.arriving != Some(packet.content);
            if statistics.on_mark(group, waited.then_some(packet.stamp)) {
                self.ends.marked(packet);
            }
        }
    }

    fn tcp_header(&self, packet: &SimPacket) -> Option<TcpHeader> {
        let group = self.routes[packet.route as usize].group as usize;
        self.ends.tcp_header(packet, group)
    }
}

/// A network with its events and what is measured at its links.
#[derive(Debug)]
pub struct Links {
    /// The links, routes and everything in flight.
    pub network: Network,
    /// What is due.
    pub scheduler: Scheduler,
    /// The counters of each link.
    pub books: Vec<LinkBooks>,
    /// What had passed each link at the latest sample, and how many transmissions had begun.
    sampled: Vec<(LinkPassed, u64)>,
}

impl Links {
    /// A network in which nothing has been sent, crossed by this many traffic groups, for a run until `end`.
    pub fn new(network: Network, groups: usize, end: Time) -> Self {
        let books = network.links.iter().map(|_| LinkBooks {
            passed: LinkPassed::default(),
            waiting: vec![0; groups],
            statistics: None,
        });
        Self {
            scheduler: Scheduler::new(network.links.len(), network.line_count(), end),
            sampled: vec![Default::default(); network.links.len()],
            books: books.collect(),
            network,
        }
    }

    /// An endpoint sends a packet of `size` bytes with this content and these ECN bits.
    #[inline(always)]
    pub fn emit(&mut self, content: (ContentId, Ecn), size: u32, to: Address, now: Time) {
        self.network
            .emit(content, size, to, now, &mut self.scheduler);
    }

    /// Lets links carry out the ends of their transmissions late, several at once, where nobody can notice it
    /// but through the drops that `late_drops` allows: nobody looks at what happens at the ends of links ([`Ends::pass`]),
    /// and before the links and their counters are read, [`Links::catch_up_all`] is called.
    ///
    /// Such a link and the lines behind it are a logical process of conservative simulation, and the delay of
    /// these lines is its lookahead (K. M. Chandy and J. Misra, "Distributed simulation", IEEE Transactions on Software
    /// Engineering 5(5), 1979).
    pub fn allow_late_ends(&mut self, late_drops: bool) {
        let shortest = shortest_legs(&self.network);
        for (link, shortest) in self.network.links.iter_mut().zip(shortest) {
            let late = match link.queue.late_dequeue() {
                LateDequeue::Unnoticed => late_drops || link.wire.is_none(),
                LateDequeue::LateDrops => late_drops,
                LateDequeue::Harmful => false,
            };
            // No route goes on from a link that nothing crosses.
            if late && !link.has_trace() && shortest < Span::MAX {
                link.slack = shortest;
            }
        }
    }

    /// Carries out the ends of transmissions before `now` that are late.
    pub fn catch_up_all<E: Ends>(&mut self, now: Time, ends: &mut E) {
        for index in 0..self.network.links.len() as u32 {
            if self.network.links[index as usize].slack > Span::ZERO {
                self.catch_up(index, now, ends);
            }
        }
    }

    /// Carries out the ends of a link's transmissions before `limit`, each with the time at which it was due.
    fn catch_up<E: Ends>(&mut self, index: u32, limit: Time, ends: &mut E) {
        loop {
            let at = self.network.links[index as usize].free_at;
            if at >= limit {
                break;
            }
            self.send_off(index, at, ends);
            let wakeup = self.transmit_next(index, at, ends);
            self.arm_queue(index, wakeup, at);
        }
    }

    /// The measurement period begins, with the first of several phases if there are `phases`.
    pub fn start_measuring(&mut self, phases: bool, now: Time) {
        for (link, books) in self.network.links.iter().zip(&mut self.books) {
            let begin = || LinkStatistics::new(now, &books.waiting, link.round_trip);
            books.statistics = Some(Measured {
                whole: begin(),
                phase: phases.then(|| Box::new(begin())),
            });
        }
        for link in &mut self.network.links {
            link.queue.start_measuring(now);
        }
        self.network.start_measuring();
    }

    /// The next phase begins.
    ///
    /// # Panics
    /// During the warm-up.
    pub fn start_phase(&mut self, now: Time) {
        for (link, books) in self.network.links.iter().zip(&mut self.books) {
            let begin = LinkStatistics::new(now, &books.waiting, link.round_trip);
            let statistics = books.statistics.as_mut().expect("the warm-up is over");
            statistics.phase = Some(Box::new(begin));
        }
    }

    /// Adds a sample of every queue to `rows`.
    pub fn sample(&mut self, now: Time, rows: &mut QueueSeries) {
        let links = self.network.links.iter().zip(&self.books);
        for (i, ((link, books), before)) in (0..).zip(links.zip(&mut self.sampled)) {
            let (backlog, internals) = (link.queue.backlog(), link.queue.internals());
            rows.time_s.push(now.as_secs_f64());
            rows.link.push(i);
            rows.packets.push(backlog.packets as f64);
            rows.bytes.push(backlog.bytes as f64);
            rows.average.push(internals.average.unwrap_or(f64::NAN));
            rows.probability
                .push(internals.probability.unwrap_or(f64::NAN));
            let passed = books.passed;
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
        for (link, books) in self.network.links.iter().zip(&mut self.books) {
            if let (Some((group, since)), Some(statistics)) = (
                in_transmission(link, &self.network.routes),
                &mut books.statistics,
            ) {
                statistics.on_transmitted(group, since, now, link.capacity.as_deref());
            }
        }
    }

    /// Checks that each link has neither made nor lost packets.
    ///
    /// # Panics
    /// When the counters do not balance: a fault of redtail.
    pub fn check_conservation(&self) {
        for (link, books) in self.network.links.iter().zip(&self.books) {
            let passed = books.passed;
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

    /// A packet reaches a link's queue.
    #[inline]
    pub fn offer<E: Ends>(&mut self, index: u32, packet: SimPacket, now: Time, ends: &mut E) {
        if self.network.links[index as usize].free_at <= now {
            self.catch_up(index, now + INSTANT, ends);
        }
        ends.pass(index, End::In, &packet, now);
        let link = &mut self.network.links[index as usize];
        let group = self.network.routes[packet.route as usize].group as usize;
        let flow = packet.flow;
        let books = &mut self.books[index as usize];
        books.passed.arrived += 1;
        let mut events = QueueEvents {
            books,
            routes: &self.network.routes,
            ends: &mut *ends,
            arriving: Some(packet.content),
        };
        let outlook = link.queue.arrive(packet, now, &mut events);
        let admitted = events.arriving.is_some();
        books.waiting[group] += u64::from(admitted);
        if let Some(statistics) = &mut books.statistics {
            let owner = PacketOwner { group, flow };
            statistics.on_arrival(owner, admitted, outlook.backlog, now);
        }
        let wakeup = if link.transmitting.is_none() {
            self.resume(index, now, ends)
        } else {
            outlook.wakeup
        };
        self.arm_queue(index, wakeup, now);
    }

    /// An idle link begins to transmit, if there is a packet. Returns when the queue is to be woken next.
    #[inline(never)]
    fn resume<E: Ends>(&mut self, index: u32, now: Time, ends: &mut E) -> Option<Time> {
        let wakeup = self.transmit_next(index, now, ends);
        let link = &mut self.network.links[index as usize];
        let due = match link.slack {
            Span::ZERO => link.free_at,
            // An event that the schedule still has from an earlier transmission comes before it is needed.
            _ => link.due.min(link.latest_end()),
        };
        if due != link.due {
            link.due = due;
            self.scheduler.set_link(index, due);
        }
        wakeup
    }

    /// Begins the next transmission of a link that is not transmitting, if there is a packet. Returns when the queue
    /// is to be woken next. The caller sees to an event for the end.
    #[inline(always)]
    fn transmit_next<E: Ends>(&mut self, index: u32, now: Time, ends: &mut E) -> Option<Time> {
        if self.network.links[index as usize].capacity.is_some() {
            return self.transmit_next_changing(index, now, ends);
        }
        let (free, wakeup) = self.begin(index, now, ends, |link, size, now| {
            now + link.transmitter.time(size)
        });
        self.network.links[index as usize].free_at = free.unwrap_or(Time::MAX);
        wakeup
    }

    /// As [`Links::transmit_next`], for a link whose rate is not constant.
    #[cold]
    fn transmit_next_changing<E: Ends>(
        &mut self,
        index: u32,
        now: Time,
        ends: &mut E,
    ) -> Option<Time> {
        let link = &mut self.network.links[index as usize];
        let (free, wakeup) = match link.capacity.as_deref_mut() {
            Some(Capacity::Trace(deliveries)) => {
                let next = deliveries.next_after(now);
                let some = link.transmitting.is_some() || link.queue.backlog().packets > 0;
                (some.then_some(next), link.queue.next_wakeup())
            }
            _ => self.begin(index, now, ends, |link, size, now| {
                match link.capacity.as_deref() {
                    Some(Capacity::Steps(steps)) => steps.end(now, size),
                    _ => unreachable!("the rate changes by steps"),
                }
            }),
        };
        self.network.links[index as usize].free_at = free.unwrap_or(Time::MAX);
        wakeup
    }

    /// Begins to transmit the next packet from a link's queue, if there is one. `end` computes the
    /// end of the transmission from the packet's size and the present time. Returns this end, and
    /// when the queue is to be woken next.
    #[inline(always)]
    fn begin<E: Ends>(
        &mut self,
        index: u32,
        now: Time,
        ends: &mut E,
        end: impl FnOnce(&mut Link, u32, Time) -> Time,
    ) -> (Option<Time>, Option<Time>) {
        let link = &mut self.network.links[index as usize];
        let books = &mut self.books[index as usize];
        let mut events = QueueEvents {
            books,
            routes: &self.network.routes,
            ends: &mut *ends,
            arriving: None,
        };
        let transmitting = &mut link.transmitting;
        let sent = |packet: SimPacket, outlook| {
            *transmitting = Some((packet, now));
            (packet.route, packet.stamp, packet.size, outlook)
        };
        let (route, stamp, size, outlook) = match link.queue.depart(now, &mut events, sent) {
            Ok(sent) => sent,
            Err(outlook) => return (None, outlook.wakeup),
        };
        let group = self.network.routes[route as usize].group as usize;
        books.waiting[group] -= 1;
        books.passed.waited = books.passed.waited.wrapping_add((now - stamp).as_ps());
        if let Some(statistics) = &mut books.statistics {
            statistics.on_departure(group, now - stamp, outlook.backlog, now);
        }
        let free = end(link, size, now);
        (Some(free), outlook.wakeup)
    }

    /// A link has finished transmissions: one now, or others before.
    #[inline]
    pub fn on_link_free<E: Ends>(&mut self, index: u32, now: Time, ends: &mut E) {
        if self.network.links[index as usize].has_trace() {
            self.on_opportunity(index, now, ends);
        } else {
            self.catch_up(index, now + INSTANT, ends);
        }
        let link = &mut self.network.links[index as usize];
        link.due = link.latest_end();
        self.scheduler.set_link(index, link.due);
    }

    /// A trace has one or more opportunities to deliver at this time.
    #[cold]
    fn on_opportunity<E: Ends>(&mut self, index: u32, now: Time, ends: &mut E) {
        let mut room = match self.network.links[index as usize].deliveries() {
            Some(deliveries) => deliveries.room(now),
            None => unreachable!("this link has a trace"),
        };
        while room > 0 {
            let idle = self.network.links[index as usize].transmitting.is_none();
            let begin = |link: &mut Link, size, now| {
                link.deliveries().expect("it is there").left = size;
                now
            };
            if idle && self.begin(index, now, ends, begin).0.is_none() {
                break;
            }
            let link = &mut self.network.links[index as usize];
            let left = &mut link.deliveries().expect("it is there").left;
            let carried = room.min(u64::from(*left));
            room -= carried;
            *left -= carried as u32;
            let done = *left == 0;
            let (packet, _) = link.transmitting.as_ref().expect("it was put there");
            let group = self.network.routes[packet.route as usize].group as usize;
            if let Some(statistics) = &mut self.books[index as usize].statistics {
                statistics.on_delivered(group, carried);
            }
            if done {
                self.send_off(index, now, ends);
            }
        }
        let wakeup = self.transmit_next(index, now, ends);
        self.arm_queue(index, wakeup, now);
    }

    /// The packet being transmitted has been sent completely.
    #[inline(always)]
    fn send_off<E: Ends>(&mut self, index: u32, now: Time, ends: &mut E) {
        let link = &mut self.network.links[index as usize];
        let (packet, since) = link.transmitting.take().expect("the link was transmitting");
        ends.pass(index, End::Out, &packet, now);
        let link = &mut self.network.links[index as usize];
        let group = self.network.routes[packet.route as usize].group as usize;
        let books = &mut self.books[index as usize];
        books.passed.departed += 1;
        if let Some(statistics) = &mut books.statistics {
            statistics.on_transmitted(group, since, now, link.capacity.as_deref());
        }
        let measuring = books.statistics.is_some();
        if let Some(wire) = &mut link.wire
            && wire.loses(measuring)
        {
            ends.lost(&packet);
        } else {
            self.network.send(packet, now, &mut self.scheduler);
        }
    }

    /// A queue that others serve may have a packet now: an idle link asks for it.
    pub fn ask_queue<E: Ends>(&mut self, index: u32, now: Time, ends: &mut E) {
        if self.network.links[index as usize].transmitting.is_none() {
            let wakeup = self.resume(index, now, ends);
            self.arm_queue(index, wakeup, now);
        }
    }

    /// Schedules the wakeup of a queue.
    #[inline]
    fn arm_queue(&mut self, index: u32, wakeup: Option<Time>, now: Time) {
        let link = &mut self.network.links[index as usize];
        if let Some(at) = wakeup
            && link.wakeup.is_none_or(|armed| at < armed)
        {
            assert!(
                link.slack == Span::ZERO,
                "{}: the queue asks to be woken, but may be called late",
                link.name
            );
            link.wakeup = Some(at);
            self.scheduler
                .add(Event::new(at.max(now), Class::QueueWakeup, index));
        }
    }

    /// A queue asked to be woken now.
    ///
    /// # Panics
    /// When it gives nothing although it asked, or asks for the same time again.
    pub fn on_queue_wakeup<E: Ends>(&mut self, index: u32, now: Time, ends: &mut E) {
        let link = &mut self.network.links[index as usize];
        if link.wakeup.is_none_or(|armed| armed > now) {
            return; // replaced by an earlier wakeup
        }
        link.wakeup = None;
        if link.queue.next_wakeup().is_some_and(|at| at <= now) {
            link.queue.on_wakeup(now);
        }
        if link.transmitting.is_none() {
            self.resume(index, now, ends);
        }
        let link = &self.network.links[index as usize];
        let next = link.queue.next_wakeup();
        if next.is_some_and(|at| at <= now) {
            // The wakeup that the queue asks for is already due. A busy link polls the queue when
            // it is free, and one with a trace when it can deliver. On an idle link this would
            // repeat for ever.
            let busy = link.transmitting.is_some() || link.has_trace();
            assert!(
                busy,
                "{}: woken in time, the queue gives nothing",
                link.name
            );
            return;
        }
        self.arm_queue(index, next, now);
    }
}
