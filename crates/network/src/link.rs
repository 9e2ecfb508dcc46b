//! A link: a transmitter with a queue in front and a wire behind, its counters, and its work.
//!
//! Only links cost events: one when a packet arrives at its next stop, and one when a transmission ends, which most links
//! save ([`lookahead`](crate::lookahead)). An event looks its link up once. The link's functions get as arguments what is between links
//! (`Paths`), the schedule, and the ends. When the rate of a link changes in steps (`capacity`), the end of a
//! transmission is known when it begins; with a trace the link's event is its next opportunity, while packets
//! wait.

use redtail_core::{Span, Time};
use redtail_qdisc::{AnyQueue, DropReason, Outlook, QueueDiscipline, Sink, TcpHeader, Wakeup};
use redtail_spec::EventKind;

use crate::capacity::{Capacity, Deliveries};
use crate::events::{PacketEvent, drop_reason};
use crate::link_state::LinkState;
use crate::lookahead::{INSTANT, MOST_LINES};
use crate::packet::{ContentId, SimPacket};
use crate::paths::{Paths, Route};
use crate::scheduler::{Class, Event, Scheduler};
use crate::statistics::{LinkStatistics, Measured, PacketOwner};
use crate::transmitter::Transmitter;
use crate::wire::Wire;

/// While packets arrive with lookahead, a link knows the head of each line by one number: when it arrives, and below that, in
/// so many bits, the place of the line among those that lead to the link.
const PLACE_BITS: u32 = MOST_LINES.ilog2();

/// Heads that arrive at this time or later are not told apart. No run in which links lag behind takes so long, which is 13
/// days.
pub(crate) const LATEST_HEAD: Time = Time::from_ps(u64::MAX >> PLACE_BITS);

/// The number for the head of the line at `place` that arrives at this time.
#[inline]
fn head(at: Time, place: usize) -> u64 {
    at.min(LATEST_HEAD).as_ps() << PLACE_BITS | place as u64
}

const _: () = assert!(
    MOST_LINES == 16,
    "`first_of` looks at 16 heads, and a head has 4 bits for its place"
);

/// The first of so many heads. Without a loop, in which the compiler would compare with branches: which line is the first is
/// hard to predict.
#[inline(always)]
fn first_of(heads: &[u64; MOST_LINES], count: usize) -> u64 {
    let least = |place: usize| {
        let pairs = [
            heads[place].min(heads[place + 1]),
            heads[place + 2].min(heads[place + 3]),
        ];
        pairs[0].min(pairs[1])
    };
    let mut first = least(0);
    if count > 4 {
        first = first.min(least(4));
    }
    if count > 8 {
        first = first.min(least(8)).min(least(12));
    }
    first
}

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
    /// Bytes of the packets whose transmission began.
    pub bytes: u64,
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

    /// A wire makes a copy of a packet: returns the content of the copy.
    fn duplicate(&mut self, packet: &SimPacket) -> ContentId;

    /// A queue has marked a packet (ECN) that counts in the measurement period.
    #[inline]
    fn marked(&mut self, _packet: &SimPacket) {}

    /// The TCP header of a packet of this group, if it has one.
    fn tcp_header(&self, packet: &SimPacket, group: usize) -> Option<TcpHeader>;

    /// A packet passes an end of a link.
    #[inline]
    fn pass(&mut self, _link: &Link, _end: End, _packet: &SimPacket, _now: Time) {}

    /// A queue drops or marks a packet, or a wire loses it; [`lost`](Self::lost) follows.
    #[inline]
    fn tell(&mut self, _event: PacketEvent<'_>) {}
}

/// Up to where a link is advanced.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Horizon {
    /// Packets arrive that do so before this time, or at this time from a line before the one of this number.
    pub(crate) arrivals: (Time, u32),
    /// Transmissions end that do so before this time.
    pub(crate) ends: Time,
}

impl Horizon {
    /// Up to an event: all that comes before it in the total order of events.
    #[inline]
    pub(crate) fn before(event: Event) -> Self {
        let now = event.at();
        let (line, ends) = match event.class() {
            Class::Measure | Class::Sample | Class::LinkFree => (0, now),
            Class::Wire => (0, now + INSTANT),
            Class::Arrival => (event.index(), now + INSTANT),
            _ => (u32::MAX, now + INSTANT),
        };
        Self {
            arrivals: (now, line),
            ends,
        }
    }
}

/// The counters of one link.
#[derive(Debug)]
pub struct LinkCounters {
    /// Packets that passed it.
    pub passed: LinkPassed,
    /// Packets waiting, by group.
    pub waiting: Vec<u64>,
    /// `None` during the warm-up.
    pub statistics: Option<Measured>,
    /// Its state at the latest sample.
    pub(crate) sampled: LinkState,
    /// The number of the link.
    link: u32,
}

impl LinkCounters {
    /// Those of a link that nothing has passed, with this number and crossed by this many traffic groups.
    pub(crate) fn new(link: u32, groups: usize) -> Self {
        Self {
            link,
            passed: LinkPassed::default(),
            waiting: vec![0; groups],
            statistics: None,
            sampled: Default::default(),
        }
    }
}

/// A transmitter with a queue discipline in front of it.
#[derive(Debug)]
pub struct Link {
    /// Its number among the links.
    pub number: u32,
    /// Name in results: "bottleneck", "return", "hop1", "hop1.return" …
    pub name: String,
    /// What stands in front of its metrics in results.
    pub prefix: String,
    /// Whether data of forward groups crosses it.
    pub forward: bool,
    /// The transmitter, which computes transmission times.
    pub transmitter: Transmitter,
    /// Its capacity, if its rate is not constant or it adds to packets.
    pub capacity: Option<Box<Capacity>>,
    /// Mean round-trip time, without queueing, of the TCP flows with packets here.
    pub round_trip: Option<Span>,
    /// Packets waiting.
    pub queue: AnyQueue<SimPacket>,
    /// The packet being transmitted.
    pub transmitting: Option<SimPacket>,
    /// When this transmission began.
    pub(crate) since: Time,
    /// The group of this packet.
    pub(crate) group: u32,
    /// When the transmission ends, or a trace lets the link deliver next; [`Time::MAX`] if neither will happen.
    pub(crate) free_at: Time,
    /// By how long it may lag behind the schedule.
    pub(crate) lookahead: Span,
    /// When the schedule has an event for it: at most `lookahead` after `free_at`; [`Time::MAX`] if there is none.
    pub(crate) due: Time,
    /// The lines that lead to it, in the order of their numbers, if packets arrive with lookahead; otherwise empty.
    pub(crate) inputs: Vec<u32>,
    /// The earliest wakeup scheduled for the queue; [`Time::MAX`] if there is none.
    pub(crate) wakeup: Time,
    /// What happens to packets after the transmitter; `None` if they only cross the delay.
    pub wire: Option<Box<Wire>>,
    /// Its counters.
    pub counters: LinkCounters,
}

impl Link {
    /// When the schedule is to have an event for the end of its transmission; [`Time::MAX`] if there is none.
    pub(crate) fn end_due(&self) -> Time {
        match self.free_at {
            Time::MAX => Time::MAX,
            free_at => free_at + self.lookahead,
        }
    }

    /// Whether its transmissions begin at events of its own: at the opportunities of a trace, or when its medium is free.
    pub fn has_opportunities(&self) -> bool {
        matches!(
            self.capacity.as_deref(),
            Some(Capacity::Trace(_) | Capacity::Airtime(_))
        )
    }

    /// The trace that determines when it delivers, if there is one.
    #[inline]
    pub fn deliveries(&mut self) -> Option<&mut Deliveries> {
        match self.capacity.as_deref_mut() {
            Some(Capacity::Trace(deliveries)) => Some(deliveries),
            _ => None,
        }
    }
}

/// Receives the drops and marks of a queue during one call.
struct QueueEvents<'a, E> {
    counters: &'a mut LinkCounters,
    routes: &'a Vec<Route>,
    ends: &'a mut E,
    /// The packet being offered, unless it has been dropped.
    arriving: Option<ContentId>,
}

impl<E: Ends> Sink<SimPacket> for QueueEvents<'_, E> {
    fn dropped(&mut self, packet: SimPacket, reason: DropReason, now: Time) {
        let group = self.routes[packet.route as usize].group as usize;
        let waited = self.arriving != Some(packet.content);
        if !waited {
            self.arriving = None;
        }
        self.counters.passed.dropped += 1;
        self.counters.waiting[group] -= u64::from(waited);
        self.ends.tell(PacketEvent {
            kind: EventKind::Drop,
            reason: Some(drop_reason(reason)),
            link: self.counters.link,
            packet: &packet,
            since: waited.then_some(packet.stamp),
            now,
        });
        self.ends.lost(&packet);
        if let Some(statistics) = &mut self.counters.statistics {
            let flow = packet.flow;
            let waited = waited.then_some(packet.stamp);
            statistics.on_drop(PacketOwner { group, flow }, waited, now);
        }
    }

    fn marked(&mut self, packet: &SimPacket, now: Time) {
        let group = self.routes[packet.route as usize].group as usize;
        self.counters.passed.marked += 1;
        let waited = self.arriving != Some(packet.content);
        self.ends.tell(PacketEvent {
            kind: EventKind::Mark,
            reason: None,
            link: self.counters.link,
            packet,
            since: waited.then_some(packet.stamp),
            now,
        });
        if let Some(statistics) = &mut self.counters.statistics
            && statistics.on_mark(group, waited.then_some(packet.stamp))
        {
            self.ends.marked(packet);
        }
    }

    fn tcp_header(&self, packet: &SimPacket) -> Option<TcpHeader> {
        let group = self.routes[packet.route as usize].group as usize;
        self.ends.tcp_header(packet, group)
    }
}

impl Link {
    /// Statistics that begin now.
    pub(crate) fn statistics(&self, now: Time) -> LinkStatistics {
        // A queue that others serve, a plug-in, has to be woken.
        let served_by_others = self.queue.next_wakeup() != Wakeup::Never;
        LinkStatistics::new(
            now,
            &self.counters.waiting,
            self.round_trip,
            served_by_others,
        )
    }

    /// The group of the packet being transmitted, and the start of the transmission.
    pub(crate) fn in_transmission(&self) -> Option<(usize, Time)> {
        self.transmitting.as_ref()?;
        Some((self.group as usize, self.since))
    }
}

/// A link at work. What it needs of the rest of the network are arguments, so that a link is looked up once for all that
/// an event does there.
impl Link {
    /// A packet arrives at its queue, and only this one: the head of `line`.
    #[inline(always)]
    pub(crate) fn on_arrival<E: Ends>(
        &mut self,
        line: u32,
        now: Time,
        paths: &mut Paths,
        scheduler: &mut Scheduler,
        ends: &mut E,
    ) {
        if self.free_at <= now {
            self.end_transmissions(now + INSTANT, paths, scheduler, ends);
        }
        paths.schedule_next(line, scheduler);
        self.admit::<true, E>(line, now, paths, scheduler, ends);
    }

    /// It is advanced to `horizon`.
    #[inline]
    pub(crate) fn advance_to<E: Ends>(
        &mut self,
        horizon: Horizon,
        paths: &mut Paths,
        scheduler: &mut Scheduler,
        ends: &mut E,
    ) {
        self.advance_arrivals(horizon.arrivals, paths, scheduler, ends);
        self.end_transmissions(horizon.ends, paths, scheduler, ends);
    }

    /// Packets arrive at its queue, each at its own time: those that arrive before `limit`, or at `limit` from a line before
    /// `line`. The ends of transmissions until the last of them are carried out.
    #[inline(never)] // a loop of its own, which mostly goes round often
    pub(crate) fn advance_arrivals<E: Ends>(
        &mut self,
        (limit, line): (Time, u32),
        paths: &mut Paths,
        scheduler: &mut Scheduler,
        ends: &mut E,
    ) {
        let mut lines = [0; MOST_LINES];
        let mut heads = [u64::MAX; MOST_LINES];
        for (place, &line) in self.inputs.iter().enumerate() {
            lines[place] = line;
            heads[place] = head(paths.lines[line as usize].arrival(), place);
        }
        let count = self.inputs.len();
        // Of packets that arrive at the same time, that of the first line is the first.
        let before = self.inputs.partition_point(|&input| input < line);
        let stop = (limit.as_ps() << PLACE_BITS) + before as u64;
        let mut changed = 0_u32;
        loop {
            let first = first_of(&heads, count);
            if first >= stop {
                break;
            }
            let at = Time::from_ps(first >> PLACE_BITS);
            let place = first as usize % MOST_LINES;
            let line = lines[place];
            self.end_transmissions_here::<false, E>(at + INSTANT, paths, scheduler, ends);
            heads[place] = head(paths.lines[line as usize].next_arrival(), place);
            changed |= 1 << place;
            self.admit::<false, E>(line, at, paths, scheduler, ends);
        }
        for (place, &line) in self.inputs.iter().enumerate() {
            if changed >> place & 1 > 0 {
                paths.schedule(line, scheduler);
            }
        }
    }

    /// The head of `line` leaves it and reaches the queue. The ends of transmissions until now have been carried out.
    /// `WATCHED` is whether somebody looks at what passes the ends of the link.
    #[inline(always)]
    fn admit<const WATCHED: bool, E: Ends>(
        &mut self,
        line: u32,
        now: Time,
        paths: &mut Paths,
        scheduler: &mut Scheduler,
        ends: &mut E,
    ) {
        // It is copied once, by the queue: from the line, where all of it was written long ago.
        let packet = paths.lines[line as usize].take();
        if WATCHED {
            ends.pass(self, End::In, packet, now);
        }
        let group = paths.routes[packet.route as usize].group as usize;
        let flow = packet.flow;
        let counters = &mut self.counters;
        counters.passed.arrived += 1;
        let mut events = QueueEvents {
            counters,
            routes: &paths.routes,
            ends: &mut *ends,
            arriving: Some(packet.content),
        };
        let Outlook { packets, wakeup } = self.queue.arrive(*packet, now, &mut events);
        let admitted = events.arriving.is_some();
        counters.waiting[group] += u64::from(admitted);
        if let Some(statistics) = &mut counters.statistics {
            statistics.on_arrival(PacketOwner { group, flow }, admitted, packets, now);
        }
        let wakeup = match self.transmitting {
            Some(_) => wakeup,
            None => self.resume(now, paths, scheduler, ends),
        };
        self.arm_queue(wakeup, now, scheduler);
    }

    /// Carries out the ends of transmissions before `limit`, each with the time at which it was due.
    #[inline(never)]
    fn end_transmissions<E: Ends>(
        &mut self,
        limit: Time,
        paths: &mut Paths,
        scheduler: &mut Scheduler,
        ends: &mut E,
    ) {
        self.end_transmissions_here::<true, E>(limit, paths, scheduler, ends);
    }

    /// As [`end_transmissions`](Self::end_transmissions), in the function that calls it. `WATCHED` as for
    /// [`admit`](Self::admit).
    #[inline(always)]
    fn end_transmissions_here<const WATCHED: bool, E: Ends>(
        &mut self,
        limit: Time,
        paths: &mut Paths,
        scheduler: &mut Scheduler,
        ends: &mut E,
    ) {
        while self.free_at < limit {
            let at = self.free_at;
            self.send_off::<WATCHED, E>(at, paths, scheduler, ends);
            let wakeup = self.transmit_next(at, paths, ends);
            self.arm_queue(wakeup, at, scheduler);
        }
    }

    /// The packet being transmitted has been sent completely.
    #[inline(always)]
    pub(crate) fn send_off<const WATCHED: bool, E: Ends>(
        &mut self,
        now: Time,
        paths: &mut Paths,
        scheduler: &mut Scheduler,
        ends: &mut E,
    ) {
        let packet = self.transmitting.as_ref();
        let packet = packet.expect("the link was transmitting");
        if WATCHED {
            ends.pass(self, End::Out, packet, now);
        }
        let counters = &mut self.counters;
        counters.passed.departed += 1;
        if let Some(statistics) = &mut counters.statistics {
            let group = self.group as usize;
            statistics.on_transmitted(group, self.since, now, self.capacity.as_deref());
        }
        match &mut self.wire {
            None => paths.send(packet, now, scheduler),
            Some(wire) => {
                let measuring = counters.statistics.is_some();
                wire.carry(packet, measuring, now, paths, scheduler, ends);
            }
        }
        self.transmitting = None;
    }

    /// An idle link begins to transmit, if there is a packet. Returns when the queue is to be woken next.
    #[inline(never)]
    pub(crate) fn resume<E: Ends>(
        &mut self,
        now: Time,
        paths: &Paths,
        scheduler: &mut Scheduler,
        ends: &mut E,
    ) -> Time {
        let wakeup = self.transmit_next(now, paths, ends);
        let due = match self.lookahead {
            Span::ZERO => self.free_at,
            // An event that the schedule still has from an earlier transmission comes before it is needed.
            _ => self.due.min(self.end_due()),
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
                let wakeup = self.queue.next_wakeup().time_or_max();
                (if some { next } else { Time::MAX }, wakeup)
            }
            Some(Capacity::Airtime(air)) => {
                let some = air.holds() || self.queue.backlog().packets > 0;
                let wakeup = self.queue.next_wakeup().time_or_max();
                let turn = air.next_turn(now);
                (if some { turn } else { Time::MAX }, wakeup)
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
    pub(crate) fn begin<E: Ends>(
        &mut self,
        now: Time,
        paths: &Paths,
        ends: &mut E,
        end: impl FnOnce(&mut Link, u32) -> Time,
    ) -> (Time, Time) {
        let counters = &mut self.counters;
        let next = &mut self.transmitting;
        let Outlook { packets, wakeup } = self.queue.depart(
            now,
            || QueueEvents {
                counters: &mut *counters,
                routes: &paths.routes,
                ends: &mut *ends,
                arriving: None,
            },
            next,
        );
        let Some(packet) = next else {
            return (Time::MAX, wakeup);
        };
        self.since = now;
        self.group = paths.routes[packet.route as usize].group;
        let group = self.group as usize;
        let waited = now.since(packet.stamp);
        let size = packet.size;
        counters.waiting[group] -= 1;
        counters.passed.waited = counters.passed.waited.wrapping_add(waited.as_ps());
        counters.passed.bytes += u64::from(size);
        if let Some(statistics) = &mut counters.statistics {
            statistics.on_departure(group, waited, packets, now);
        }
        (end(self, size), wakeup)
    }

    /// A trace has one or more opportunities to deliver at this time.
    #[cold]
    pub(crate) fn on_opportunity<E: Ends>(
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
                    link.deliveries().expect("it is there").begin(size);
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
            if let Some(statistics) = &mut self.counters.statistics {
                statistics.on_delivered(group, carried);
            }
            if done {
                self.send_off::<true, E>(now, paths, scheduler, ends);
            }
        }
        let wakeup = self.transmit_next(now, paths, ends);
        self.arm_queue(wakeup, now, scheduler);
    }

    /// Schedules the wakeup of the queue; [`Time::MAX`] is never.
    #[inline]
    pub(crate) fn arm_queue(&mut self, wakeup: Time, now: Time, scheduler: &mut Scheduler) {
        if wakeup < self.wakeup {
            self.arm_earlier(wakeup, now, scheduler);
        }
    }

    /// As [`Link::arm_queue`], for a time before the one that is scheduled.
    #[inline(never)]
    fn arm_earlier(&mut self, wakeup: Time, now: Time, scheduler: &mut Scheduler) {
        assert!(
            self.lookahead == Span::ZERO,
            "{}: the queue asks to be woken, but said that it never does",
            self.name
        );
        self.wakeup = wakeup;
        let at = wakeup.max(now);
        scheduler.add(Event::new(at, Class::QueueWakeup, self.number));
    }

    /// The queue asked to be woken now.
    pub(crate) fn on_queue_wakeup<E: Ends>(
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
        if self.queue.next_wakeup().is_due(now) {
            self.queue.on_wakeup(now);
        }
        if self.transmitting.is_none() {
            self.resume(now, paths, scheduler, ends);
        }
        let next = self.queue.next_wakeup().time_or_max();
        if next <= now {
            // The wakeup that the queue asks for is already due. A busy link polls the queue when
            // it is free, and one with a trace when it can deliver. On an idle link this would
            // repeat for ever.
            let busy = self.transmitting.is_some() || self.has_opportunities();
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_head_is_the_earliest_and_of_the_first_line_then() {
        let last = LATEST_HEAD.as_ps() - 1;
        for count in 1..=MOST_LINES {
            for earliest in 0..count {
                let mut heads = [u64::MAX; MOST_LINES];
                for (place, first) in heads.iter_mut().enumerate().take(count) {
                    let at = match place {
                        _ if place < earliest => Time::MAX,
                        // Those behind it arrive at the same time, or not at all.
                        _ if place % 3 == earliest % 3 => Time::from_ps(last),
                        _ => LATEST_HEAD,
                    };
                    *first = head(at, place);
                }
                let first = first_of(&heads, count);
                assert_eq!(first >> PLACE_BITS, last);
                assert_eq!(first as usize % MOST_LINES, earliest);
            }
        }
    }
}
