//! Frames: several packets of one station in a transmission, on a medium that both directions of a link may share.
//!
//! The form of a frame and its time are those of [`redtail_spec::airtime`](AirtimeParams). A link forms its next frame when the
//! medium is free: the packets that its queue gives, in the queue's order, as long as they are of one station and within the
//! limits. All of them arrive at the frame's end. A queue that can tell its next packet without removing it keeps a packet
//! that does not fit; of another queue the packet is taken, and waits in the adapter for the next frame. It does not wait
//! in the queue then, for the queue and for statistics.
//!
//! # A shared medium
//!
//! One direction transmits at a time. When a frame ends and both directions have packets, the one that has not sent the
//! latest frame sends the next: each gets as many transmissions, which is what DCF gives on average to stations that
//! always have packets (Bianchi 2000). If only one has packets it sends. Nobody is told of collisions: there are none.
//!
//! An idle link asks for the medium by an event of its own at the present time, as a trace has its opportunities: this
//! event sees both links ([`Links`]). So such links have no lookahead.

use redtail_core::{Span, Time};
use redtail_qdisc::QueueDiscipline;
use redtail_spec::{AirtimeParams, LinkParams, Scenario};

use crate::capacity::Capacity;
use crate::link::{Ends, Link};
use crate::links::Links;
use crate::network::Network;
use crate::packet::SimPacket;
use crate::paths::Paths;
use crate::scheduler::Scheduler;
use crate::transmitter::Transmitter;

/// The frames of a link.
#[derive(Debug)]
pub struct Airtime {
    overhead: Span,
    packet_overhead: u32,
    most_packets: usize,
    most_bytes: u64,
    longest: Span,
    /// Transmitters, by traffic group.
    stations: Vec<Transmitter>,
    /// The packets of the present frame behind the first, which is the packet in transmission.
    rest: Vec<SimPacket>,
    /// A packet that the queue has given and that did not fit.
    held: Option<SimPacket>,
    /// The link of the other direction, if it shares the medium.
    pub(crate) partner: Option<u32>,
    /// Whether this link has sent the latest frame.
    latest: bool,
    /// When the present frame on the medium ends, or the latest ended.
    medium_free: Time,
}

impl Airtime {
    /// The frames of `link`, with these keys.
    pub(crate) fn new(params: &AirtimeParams, link: &LinkParams, scenario: &Scenario) -> Self {
        let rate_of = |name: &str| params.rates.get(name).copied().unwrap_or(link.rate);
        let groups = scenario.traffic.iter();
        Self {
            overhead: params.overhead,
            packet_overhead: params.packet_overhead.as_u64() as u32,
            most_packets: params.aggregate_packets as usize,
            most_bytes: params.aggregate_bytes.as_u64(),
            longest: params.aggregate_time,
            stations: groups
                .map(|group| Transmitter::new(rate_of(group.access().name)))
                .collect(),
            rest: Vec::new(),
            held: None,
            partner: None,
            latest: false,
            medium_free: Time::ZERO,
        }
    }

    /// Packets that have left the queue and are not the packet in transmission.
    pub fn inside(&self) -> impl Iterator<Item = &SimPacket> {
        self.rest.iter().chain(&self.held)
    }

    /// When an idle link with packets is to ask for the medium.
    pub(crate) fn next_turn(&self, now: Time) -> Time {
        self.medium_free.max(now)
    }

    /// Whether it holds a packet for its next frame.
    pub(crate) fn holds(&self) -> bool {
        self.held.is_some()
    }
}

/// A frame that is being formed.
struct Forming {
    group: u32,
    packets: usize,
    bytes: u64,
    time: Span,
}

impl Forming {
    /// Adds a packet if it fits, as the first one always does.
    fn takes(&mut self, packet: &SimPacket, group: u32, air: &mut Airtime) -> bool {
        let size = packet.size + air.packet_overhead;
        let bytes = self.bytes + u64::from(size);
        let time = self.time + air.stations[group as usize].time(size);
        let first = self.packets == 0;
        let fits = self.packets < air.most_packets
            && group == self.group
            && bytes <= air.most_bytes
            && time <= air.longest;
        if fits || first {
            (self.packets, self.bytes, self.time) = (self.packets + 1, bytes, time);
        }
        fits || first
    }
}

impl Link {
    /// Its frames, if it has any.
    #[inline]
    pub fn airtime(&self) -> Option<&Airtime> {
        match self.capacity.as_deref() {
            Some(Capacity::Airtime(air)) => Some(air),
            _ => None,
        }
    }

    pub(crate) fn airtime_mut(&mut self) -> &mut Airtime {
        match self.capacity.as_deref_mut() {
            Some(Capacity::Airtime(air)) => air,
            _ => unreachable!("this link has frames"),
        }
    }

    /// The packets that have left its queue and are still here.
    pub fn leaving(&self) -> impl Iterator<Item = &SimPacket> {
        let more = self.airtime().into_iter().flat_map(Airtime::inside);
        self.transmitting.iter().chain(more)
    }

    /// Whether it has a packet for its next frame.
    pub(crate) fn has_packets(&self) -> bool {
        let holds = self.airtime().is_some_and(Airtime::holds);
        holds || self.queue.backlog().packets > 0
    }

    /// Takes the next packet from the queue. Returns it with its group, and when the queue is to be woken next.
    fn take_next<E: Ends>(
        &mut self,
        now: Time,
        paths: &Paths,
        ends: &mut E,
    ) -> (Option<SimPacket>, Time) {
        let (_, wakeup) = self.begin(now, paths, ends, |_, _| now);
        (self.transmitting.take(), wakeup)
    }

    /// Begins the next frame of a link that is not transmitting. Returns when it ends, [`Time::MAX`] if there is no packet,
    /// and when the queue is to be woken next.
    fn begin_frame<E: Ends>(&mut self, now: Time, paths: &Paths, ends: &mut E) -> (Time, Time) {
        let mut wakeup = self.queue.next_wakeup().time_or_max();
        let mut first = self.airtime_mut().held.take();
        if first.is_none() {
            (first, wakeup) = self.take_next(now, paths, ends);
        }
        let Some(first) = first else {
            return (Time::MAX, wakeup);
        };
        let group_of = |packet: &SimPacket| paths.routes[packet.route as usize].group;
        let group = group_of(&first);
        let mut frame = Forming {
            group,
            packets: 0,
            bytes: 0,
            time: Span::ZERO,
        };
        frame.takes(&first, group, self.airtime_mut());
        while frame.packets < self.airtime_mut().most_packets {
            if let Some(next) = self.queue.front() {
                // It stays in the queue if it does not fit.
                let next = *next;
                let mut tried = Forming { ..frame };
                if !tried.takes(&next, group_of(&next), self.airtime_mut()) {
                    break;
                }
            }
            let next;
            (next, wakeup) = self.take_next(now, paths, ends);
            let Some(next) = next else {
                break;
            };
            let air = self.airtime_mut();
            if !frame.takes(&next, group_of(&next), air) {
                air.held = Some(next);
                break;
            }
            air.rest.push(next);
        }
        self.transmitting = Some(first);
        (self.since, self.group) = (now, group);
        let air = self.airtime_mut();
        (now + air.overhead + frame.time, wakeup)
    }

    /// The present frame has been sent: its packets leave in their order.
    fn end_frame<E: Ends>(
        &mut self,
        now: Time,
        paths: &mut Paths,
        scheduler: &mut Scheduler,
        ends: &mut E,
    ) {
        let took = now - self.since;
        let rest = std::mem::take(&mut self.airtime_mut().rest);
        self.send_off::<true, E>(now, paths, scheduler, ends);
        // The first packet stands for the airtime of the frame. The others have waited as long before the frame.
        self.since = now;
        for &packet in &rest {
            self.transmitting = Some(SimPacket {
                stamp: packet.stamp + took,
                ..packet
            });
            self.send_off::<true, E>(now, paths, scheduler, ends);
        }
        let air = self.airtime_mut();
        air.rest = rest;
        air.rest.clear();
    }
}

impl Links {
    /// A frame ends at the link of this number, or the link asks for the medium.
    #[cold]
    pub(crate) fn on_medium<E: Ends>(&mut self, index: u32, now: Time, ends: &mut E) {
        let Network { links, paths, .. } = &mut self.network;
        let scheduler = &mut self.scheduler;
        let partner = links[index as usize].airtime_mut().partner;
        let mut sharing = [Some(index), partner];
        sharing.sort_unstable();
        let sharing = || sharing.into_iter().flatten().map(|number| number as usize);

        // An event at the end of a frame may come first at the other link.
        let mut ended = None;
        for number in sharing() {
            let link = &mut links[number];
            if link.transmitting.is_some() && link.free_at <= now {
                link.end_frame(now, paths, scheduler, ends);
                ended = Some(number);
            }
        }
        let busy = sharing().any(|number| links[number].transmitting.is_some());
        if !busy {
            let turn = sharing().min_by_key(|&number| links[number].airtime_mut().latest);
            let turn = turn.expect("there is a link");
            let others = sharing().filter(|&number| number != turn);
            let mut end = now;
            for number in std::iter::once(turn).chain(others) {
                let link = &mut links[number];
                // The queue of a link that has sent is asked in any case, as by every link.
                if end > now || !(link.has_packets() || ended == Some(number)) {
                    continue;
                }
                let (until, wakeup) = link.begin_frame(now, paths, ends);
                link.arm_queue(wakeup, now, scheduler);
                if until < Time::MAX {
                    end = until;
                    link.free_at = until;
                }
            }
            if end > now {
                for number in sharing() {
                    let link = &mut links[number];
                    let sends = link.transmitting.is_some();
                    let air = link.airtime_mut();
                    (air.latest, air.medium_free) = (sends, end);
                }
            }
        }
        for number in sharing() {
            let link = &mut links[number];
            if link.transmitting.is_none() {
                let turn = link.airtime_mut().next_turn(now);
                // A queue with packets that gives none wakes the link itself.
                let waits = turn > now && link.has_packets();
                link.free_at = if waits { turn } else { Time::MAX };
            }
            link.due = link.free_at;
            scheduler.set_link(number as u32, link.due);
        }
    }
}
