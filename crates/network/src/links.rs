//! Links at work: queues, transmitters and losses.

use redtail_core::{Ecn, Span, Time};
use redtail_qdisc::{DropReason, LateDequeue, Outlook, QueueDiscipline, Sink, TcpHeader};

use crate::capacity::Capacity;
use crate::lookahead::shortest_legs;
use crate::network::{Link, Network};
use crate::packet::{ContentId, SimPacket};
use crate::paths::{Address, Paths, Route};
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
    /// What had passed it at the latest sample, and how many transmissions had begun.
    sampled: (LinkPassed, u64),
}

impl LinkBooks {
    /// Those of a link that nothing has passed, crossed by this many traffic groups.
    pub(crate) fn new(groups: usize) -> Self {
        Self {
            passed: LinkPassed::default(),
            waiting: vec![0; groups],
            statistics: None,
            sampled: Default::default(),
        }
    }
}

/// Receives the drops and marks of a queue during one call.
struct QueueEvents<'a, E> {
    books: &'a mut LinkBooks,
    routes: &'a [Route],
    ends: &'a mut E,
    /// The packet being offered, unless it has been dropped.
    arriving: Option<ContentId>,
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

impl Link {
    /// The group of the packet being transmitted, and the start of the transmission.
    pub(crate) fn in_transmission(&self) -> Option<(usize, Time)> {
        self.transmitting.as_ref()?;
        Some((self.group as usize, self.since))
    }
}

/// A link at work. What it needs of the rest of the network are arguments, so that a link is looked up once for all that
/// an event does there.
impl Link {
    /// A packet reaches its queue: the head of `line`.
    #[inline(always)]
    fn offer<E: Ends>(
        &mut self,
        line: u32,
        now: Time,
        paths: &mut Paths,
        scheduler: &mut Scheduler,
        ends: &mut E,
    ) {
        if self.free_at <= now {
            self.catch_up(now + INSTANT, paths, scheduler, ends);
        }
        // It is copied once, by the queue: from the line, where all of it was written long ago.
        let packet = paths.lines[line as usize].take(line, scheduler);
        ends.pass(self.number, End::In, packet, now);
        let group = paths.routes[packet.route as usize].group as usize;
        let flow = packet.flow;
        let books = &mut self.books;
        books.passed.arrived += 1;
        let mut events = QueueEvents {
            books,
            routes: &paths.routes,
            ends: &mut *ends,
            arriving: Some(packet.content),
        };
        let Outlook { packets, wakeup } = self.queue.arrive(*packet, now, &mut events);
        let admitted = events.arriving.is_some();
        books.waiting[group] += u64::from(admitted);
        if let Some(statistics) = &mut books.statistics {
            statistics.on_arrival(PacketOwner { group, flow }, admitted, packets, now);
        }
        let wakeup = match self.transmitting {
            Some(_) => wakeup,
            None => self.resume(now, paths, scheduler, ends),
        };
        self.arm_queue(wakeup, now, scheduler);
    }

    /// Carries out the ends of transmissions before `limit`, each with the time at which it was due.
    fn catch_up<E: Ends>(
        &mut self,
        limit: Time,
        paths: &mut Paths,
        scheduler: &mut Scheduler,
        ends: &mut E,
    ) {
        while self.free_at < limit {
            let at = self.free_at;
            self.send_off(at, paths, scheduler, ends);
            let wakeup = self.transmit_next(at, paths, ends);
            self.arm_queue(wakeup, at, scheduler);
        }
    }

    /// The packet being transmitted has been sent completely.
    #[inline(always)]
    fn send_off<E: Ends>(
        &mut self,
        now: Time,
        paths: &mut Paths,
        scheduler: &mut Scheduler,
        ends: &mut E,
    ) {
        let packet = self.transmitting.as_ref();
        let packet = packet.expect("the link was transmitting");
        ends.pass(self.number, End::Out, packet, now);
        let books = &mut self.books;
        books.passed.departed += 1;
        if let Some(statistics) = &mut books.statistics {
            let group = self.group as usize;
            statistics.on_transmitted(group, self.since, now, self.capacity.as_deref());
        }
        let measuring = books.statistics.is_some();
        if let Some(wire) = &mut self.wire
            && wire.loses(measuring)
        {
            ends.lost(packet);
        } else {
            paths.send(packet, now, scheduler);
        }
        self.transmitting = None;
    }

    /// An idle link begins to transmit, if there is a packet. Returns when the queue is to be woken next.
    #[inline(never)]
    fn resume<E: Ends>(
        &mut self,
        now: Time,
        paths: &Paths,
        scheduler: &mut Scheduler,
        ends: &mut E,
    ) -> Time {
        let wakeup = self.transmit_next(now, paths, ends);
        let due = match self.slack {
            Span::ZERO => self.free_at,
            // An event that the schedule still has from an earlier transmission comes before it is needed.
            _ => self.due.min(self.latest_end()),
        };
        if due != self.due {
            self.due = due;
            scheduler.set_link(self.number, due);
        }
        wakeup
    }

    /// Begins the next transmission of a link that is not transmitting, if there is a packet. Returns when the queue
    /// is to be woken next. The caller sees to an event for the end.
    #[inline(always)]
    fn transmit_next<E: Ends>(&mut self, now: Time, paths: &Paths, ends: &mut E) -> Time {
        if self.capacity.is_some() {
            return self.transmit_next_changing(now, paths, ends);
        }
        let end = |link: &mut Link, size| now + link.transmitter.time(size);
        let (free_at, wakeup) = self.begin(now, paths, ends, end);
        self.free_at = free_at;
        wakeup
    }

    /// As [`Link::transmit_next`], for a link whose rate is not constant.
    #[cold]
    fn transmit_next_changing<E: Ends>(&mut self, now: Time, paths: &Paths, ends: &mut E) -> Time {
        let (free_at, wakeup) = match self.capacity.as_deref_mut() {
            Some(Capacity::Trace(deliveries)) => {
                let next = deliveries.next_after(now);
                let some = self.transmitting.is_some() || self.queue.backlog().packets > 0;
                let wakeup = self.queue.next_wakeup().unwrap_or(Time::MAX);
                (if some { next } else { Time::MAX }, wakeup)
            }
            _ => self.begin(now, paths, ends, |link, size| {
                match link.capacity.as_deref() {
                    Some(Capacity::Steps(steps)) => steps.end(now, size),
                    _ => unreachable!("the rate changes by steps"),
                }
            }),
        };
        self.free_at = free_at;
        wakeup
    }

    /// Begins to transmit the next packet from the queue, if there is one. `end` computes the end of the transmission
    /// from the packet's size. Returns this end, [`Time::MAX`] if there is no packet, and when the queue is to be
    /// woken next.
    #[inline(always)]
    fn begin<E: Ends>(
        &mut self,
        now: Time,
        paths: &Paths,
        ends: &mut E,
        end: impl FnOnce(&mut Link, u32) -> Time,
    ) -> (Time, Time) {
        let books = &mut self.books;
        let mut events = QueueEvents {
            books,
            routes: &paths.routes,
            ends: &mut *ends,
            arriving: None,
        };
        let next = &mut self.transmitting;
        let Outlook { packets, wakeup } = self.queue.depart(now, &mut events, next);
        let Some(packet) = next else {
            return (Time::MAX, wakeup);
        };
        self.since = now;
        self.group = paths.routes[packet.route as usize].group;
        let group = self.group as usize;
        let waited = now - packet.stamp;
        let size = packet.size;
        books.waiting[group] -= 1;
        books.passed.waited = books.passed.waited.wrapping_add(waited.as_ps());
        if let Some(statistics) = &mut books.statistics {
            statistics.on_departure(group, waited, packets, now);
        }
        (end(self, size), wakeup)
    }

    /// A trace has one or more opportunities to deliver at this time.
    #[cold]
    fn on_opportunity<E: Ends>(
        &mut self,
        now: Time,
        paths: &mut Paths,
        scheduler: &mut Scheduler,
        ends: &mut E,
    ) {
        let mut room = match self.deliveries() {
            Some(deliveries) => deliveries.room(now),
            None => unreachable!("this link has a trace"),
        };
        while room > 0 {
            if self.transmitting.is_none() {
                let begin = |link: &mut Link, size| {
                    link.deliveries().expect("it is there").left = size;
                    now
                };
                if self.begin(now, paths, ends, begin).0 == Time::MAX {
                    break;
                }
            }
            let left = &mut self.deliveries().expect("it is there").left;
            let carried = room.min(u64::from(*left));
            room -= carried;
            *left -= carried as u32;
            let done = *left == 0;
            let group = self.group as usize;
            if let Some(statistics) = &mut self.books.statistics {
                statistics.on_delivered(group, carried);
            }
            if done {
                self.send_off(now, paths, scheduler, ends);
            }
        }
        let wakeup = self.transmit_next(now, paths, ends);
        self.arm_queue(wakeup, now, scheduler);
    }

    /// Schedules the wakeup of the queue; [`Time::MAX`] is never.
    #[inline]
    fn arm_queue(&mut self, wakeup: Time, now: Time, scheduler: &mut Scheduler) {
        if wakeup < self.wakeup {
            self.arm_earlier(wakeup, now, scheduler);
        }
    }

    /// As [`Link::arm_queue`], for a time before the one that is scheduled.
    #[inline(never)]
    fn arm_earlier(&mut self, wakeup: Time, now: Time, scheduler: &mut Scheduler) {
        assert!(
            self.slack == Span::ZERO,
            "{}: the queue asks to be woken, but may be called late",
            self.name
        );
        self.wakeup = wakeup;
        let at = wakeup.max(now);
        scheduler.add(Event::new(at, Class::QueueWakeup, self.number));
    }

    /// The queue asked to be woken now.
    fn on_queue_wakeup<E: Ends>(
        &mut self,
        now: Time,
        paths: &Paths,
        scheduler: &mut Scheduler,
        ends: &mut E,
    ) {
        if self.wakeup > now {
            return; // replaced by an earlier wakeup
        }
        self.wakeup = Time::MAX;
        if self.queue.next_wakeup().is_some_and(|at| at <= now) {
            self.queue.on_wakeup(now);
        }
        if self.transmitting.is_none() {
            self.resume(now, paths, scheduler, ends);
        }
        let next = self.queue.next_wakeup().unwrap_or(Time::MAX);
        if next <= now {
            // The wakeup that the queue asks for is already due. A busy link polls the queue when
            // it is free, and one with a trace when it can deliver. On an idle link this would
            // repeat for ever.
            let busy = self.transmitting.is_some() || self.has_trace();
            assert!(
                busy,
                "{}: woken in time, the queue gives nothing",
                self.name
            );
            return;
        }
        self.arm_queue(next, now, scheduler);
    }
}

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

    /// The head of `line`, which a host holds, leaves the host.
    pub fn leave_host(&mut self, line: u32, now: Time) {
        let paths = &mut self.network.paths;
        let packet = *paths.take(line, &mut self.scheduler);
        paths.send(&packet, now, &mut self.scheduler);
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
        let Network { links, paths, .. } = &mut self.network;
        for link in links.iter_mut().filter(|link| link.slack > Span::ZERO) {
            link.catch_up(now, paths, &mut self.scheduler, ends);
        }
    }

    /// The measurement period begins, with the first of several phases if there are `phases`.
    pub fn start_measuring(&mut self, phases: bool, now: Time) {
        for link in &mut self.network.links {
            let begin = || LinkStatistics::new(now, &link.books.waiting, link.round_trip);
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
            let begin = LinkStatistics::new(now, &link.books.waiting, link.round_trip);
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

    /// A link has finished transmissions: one now, or others before.
    #[inline]
    pub fn on_link_free<E: Ends>(&mut self, index: u32, now: Time, ends: &mut E) {
        let Network { links, paths, .. } = &mut self.network;
        let (link, scheduler) = (&mut links[index as usize], &mut self.scheduler);
        if link.has_trace() {
            link.on_opportunity(now, paths, scheduler, ends);
        } else {
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
