//! What is between links and hosts: routes, delay lines and hosts' own links, with everything in flight.
//!
//! Only a link with a queue under study needs events. Access links never drop, and packets enter
//! each in the order of the events that send them there. The time at which a packet leaves an
//! access link is therefore known when it enters: it needs a number (`busy_until`) and no
//! event. Packets in flight are in delay lines, in the order of their arrivals, of which only the head
//! is scheduled. They enter most lines in this order. Random times of hosts (`host_jitter`) are added when packets
//! enter the line behind the host's link, where they may overtake those of other flows: a packet takes its place
//! there by its time, without an event (`Paths::enter_at_random`). Each flow draws from a stream of its own. Sizes of packets
//! that the file gives as a law (`packet`) are drawn when a packet is sent, on the same rare branch (`Sizes`).
//!
//! Packets that enter at non-decreasing times and share a delay leave in order. So legs with the same plain delay
//! share a line if they begin at the same link, or all at hosts. The return path of a TCP host, where it is
//! only a delay, has a line of its own.

use redtail_core::{Dscp, Ecn, Places, Ring, SmallStream, Span, Stream, Time, prefetch};
use redtail_traffic::DrawnSizes;

use crate::packet::{ContentId, SimPacket, TrafficClass};
use crate::scheduler::Scheduler;
use crate::transmitter::Transmitter;

/// What the engine can rely on: the schedule has only lines with packets.
const HEAD: &str = "a scheduled line has a head";

/// A transmitter that never drops and needs no events.
#[derive(Clone, Debug)]
pub(crate) struct Pipe {
    pub(crate) transmitter: Transmitter,
    pub(crate) busy_until: Time,
    /// The longest time that a packet has waited for it in the measurement period.
    pub(crate) longest_wait: Span,
}

/// The random time that the packets of a group's sending hosts take in addition.
///
/// A packet arrives at the later of two times: that at which it would without, with a draw from
/// [0, `longest`) added; and that of the one before it of the same flow, with its own transmission time
/// on the host's link added. So the packets of a flow stay in order, and are as far apart as the host's
/// link lets them be. With `trains`, packets of a flow that are sent at one instant leave back to back: only the first
/// draws. Each flow has a stream of its own: what it draws does not depend on the
/// order in which flows send, which differs where endpoints lag behind.
#[derive(Debug)]
pub(crate) struct Jitter {
    pub(crate) longest: Span,
    pub(crate) trains: bool,
    /// The stream of the group, from which those of its flows are made.
    pub(crate) stream: Stream,
    /// By flow number, as far as a flow has sent.
    pub(crate) flows: Vec<Option<FlowJitter>>,
}

/// The random times of a flow.
#[derive(Debug)]
pub(crate) struct FlowJitter {
    stream: SmallStream,
    /// When the latest packet was sent.
    sent: Time,
    /// When the latest packet arrives.
    latest: Time,
}

impl Jitter {
    /// When a packet of `flow` arrives that is sent at `sent`, takes `transmission` on its host's link, and would arrive at
    /// `at`.
    fn arrival(&mut self, flow: u32, sent: Time, at: Time, transmission: Span) -> Time {
        let place = flow as usize;
        if place >= self.flows.len() {
            self.flows.resize_with(place + 1, || None);
        }
        let flow = self.flows[place].get_or_insert_with(|| FlowJitter {
            stream: self.stream.small_child("flow.", flow),
            sent: Time::MAX,
            latest: Time::ZERO,
        });
        let drawn = match self.trains && flow.sent == sent {
            true => at,
            false => at + flow.stream.uniform_span(self.longest),
        };
        flow.sent = sent;
        flow.latest = drawn.max(flow.latest + transmission);
        flow.latest
    }
}

/// The sizes that are drawn for the packets of a group. Each depends on the place of its packet alone, so that a segment
/// that is sent again keeps its size, and no flow needs memory.
#[derive(Debug)]
pub(crate) struct Sizes {
    pub(crate) drawn: DrawnSizes,
    pub(crate) places: Places,
}

impl Sizes {
    /// The size of a packet at the place that `place` gives.
    fn of(&self, packet: &SimPacket, place: impl FnOnce(&SimPacket) -> [u64; 2]) -> u32 {
        match self.drawn.replace(packet.size) {
            true => self.drawn.quantile(self.places.uniform(place(packet))),
            false => packet.size,
        }
    }
}

/// What is drawn for packets when they are sent, or noted of them.
#[derive(Debug)]
pub(crate) struct Random {
    /// The random times of the hosts, on the leg along their links.
    pub(crate) jitter: Option<Jitter>,
    pub(crate) rare: Option<Rare>,
}

/// What few runs ask for.
#[derive(Debug)]
pub(crate) struct Rare {
    pub(crate) sizes: Option<Sizes>,
    /// Whether the packets are [noted](Paths::sent_packets).
    pub(crate) noted: bool,
}

/// The end of a leg.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// The queue of a link.
    Link(u32),
    /// A TCP receiver.
    Receiver,
    /// A TCP sender.
    Sender,
    /// The end of a UDP flow.
    UdpSink,
    /// The end of a call at which its group's direction begins.
    Caller,
    /// The other end of a call.
    Callee,
    /// An endpoint of the user's own: 0 where its group's direction begins, 1 at the other end.
    Own(u8),
    /// The client of a user's connection.
    Client,
    /// The server of a user's connection.
    Server,
}

/// The path from one event to the next: from an endpoint or a link's transmitter, possibly through
/// a pipe, to a link's queue or an endpoint.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Leg {
    /// Propagation before the pipe (or all of it).
    pub(crate) before: Span,
    pub(crate) pipe: Option<u32>,
    /// Propagation after the pipe.
    pub(crate) after: Span,
    pub(crate) line: u32,
    pub(crate) target: Target,
    /// Index of what is drawn for the packets, on the first leg of a route.
    pub(crate) random: Option<u32>,
    /// The class that packets of its route ask for, known when the route is. It is here, so that whoever sends looks only
    /// at the first leg.
    pub(crate) dscp: Dscp,
}

impl Leg {
    /// How long a packet takes along it at least.
    pub(crate) fn delay(&self) -> Span {
        self.before + self.after
    }
}

/// A path through the network.
#[derive(Debug)]
pub struct Route {
    /// Index of the traffic group that uses it.
    pub group: u32,
}

/// The legs of all routes, in one table: a row for each route, as long as the longest route.
#[derive(Debug, Default)]
pub(crate) struct Legs {
    table: Vec<Leg>,
    row: usize,
    /// The number of legs, by route.
    counts: Vec<u8>,
}

impl Legs {
    /// The table of these routes.
    pub(crate) fn of(routes: &[Vec<Leg>]) -> Self {
        let row = routes.iter().map(Vec::len).max().unwrap_or(0);
        let mut table = Vec::with_capacity(row * routes.len());
        for legs in routes {
            let last = legs.last().expect("a route has a leg");
            table.extend(legs);
            table.resize(table.len() + row - legs.len(), *last);
        }
        let counts = routes.iter().map(|legs| legs.len() as u8).collect();
        Self { table, row, counts }
    }

    /// A leg of a route.
    #[inline]
    fn leg(&self, route: u32, leg: u8) -> &Leg {
        &self.table[route as usize * self.row + leg as usize]
    }

    /// The last leg of a route.
    #[inline]
    fn last(&self, route: u32) -> &Leg {
        // It fills the row.
        &self.table[(route as usize + 1) * self.row - 1]
    }

    /// The leg that a packet is on.
    #[inline]
    fn of_packet(&self, packet: &SimPacket) -> &Leg {
        self.leg(packet.route, packet.leg)
    }

    /// The legs of each route, in the order of routes.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &[Leg]> {
        let rows = self.table.chunks(self.row.max(1));
        let counted = rows.zip(&self.counts);
        counted.map(|(legs, &count)| &legs[..usize::from(count)])
    }
}

/// Packets in flight that arrive in the order in which they were put in.
#[derive(Debug)]
pub(crate) struct Line {
    pub(crate) packets: Ring<SimPacket>,
    /// Where all of them arrive; `None` if they arrive in several places. It tells what comes next sooner
    /// than a packet's route does.
    pub(crate) target: Option<Target>,
    /// That of the process at its end: the schedule has the event for its head so long after the arrival.
    pub(crate) lookahead: Span,
}

impl Line {
    /// A line without packets.
    pub(crate) fn new(target: Target) -> Self {
        Self {
            packets: Ring::new(),
            target: Some(target),
            lookahead: Span::ZERO,
        }
    }

    /// Removes its head, and returns it where it is.
    #[inline]
    pub(crate) fn take(&mut self) -> &SimPacket {
        self.packets.take_front().expect(HEAD)
    }

    /// When its head arrives; [`Time::MAX`] if it is empty.
    #[inline]
    pub(crate) fn arrival(&self) -> Time {
        let head = self.packets.front();
        head.map_or(Time::MAX, |head| head.stamp)
    }

    /// When the packet behind its head arrives; [`Time::MAX`] if there is none.
    #[inline]
    pub(crate) fn next_arrival(&self) -> Time {
        let next = self.packets.get(1);
        next.map_or(Time::MAX, |next| next.stamp)
    }
}

/// Everything between the links and the hosts, with everything in flight.
#[derive(Debug, Default)]
pub struct Paths {
    /// All routes.
    pub routes: Vec<Route>,
    pub(crate) legs: Legs,
    pub(crate) pipes: Vec<Pipe>,
    pub(crate) lines: Vec<Line>,
    /// What is drawn for the packets of groups and directions of which anything is.
    pub(crate) randoms: Vec<Random>,
    /// The packets that were sent since [`sent_packets`](Self::sent_packets) was called last.
    pub(crate) sent: Vec<SimPacket>,
}

/// The flow, the endpoint and the route of a packet.
#[derive(Clone, Copy, Debug)]
pub struct Address {
    /// Number of the flow.
    pub flow: u32,
    /// Number of the endpoint, among those of its kind.
    pub endpoint: u32,
    /// The route to take.
    pub route: u32,
    /// See [`SimPacket::id`].
    pub id: u16,
}

/// The routes of the flows on one host of a group.
#[derive(Clone, Copy, Debug)]
pub struct HostRoutes {
    /// For data.
    pub data: u32,
    /// For acknowledgements.
    pub back: u32,
    /// Whether the return path takes no time, because it has neither delay nor link.
    pub back_at_once: bool,
}

impl Paths {
    /// An endpoint sends a packet of `size` bytes. `place` gives a packet's place among those of its group, which a
    /// segment that is sent again has again: the number of its connection, and its own on this.
    #[inline(always)]
    pub fn emit(
        &mut self,
        content: (ContentId, Ecn),
        size: u32,
        to: Address,
        now: Time,
        scheduler: &mut Scheduler,
        place: impl FnOnce(&SimPacket) -> [u64; 2],
    ) {
        let leg = *self.legs.leg(to.route, 0);
        let (content, ecn) = content;
        let packet = |stamp| SimPacket {
            stamp,
            content,
            endpoint: to.endpoint,
            flow: to.flow,
            size,
            route: to.route,
            leg: 0,
            class: TrafficClass::new(leg.dscp, ecn),
            id: to.id,
        };
        if let Some(random) = leg.random {
            return self.emit_at_random(leg, random, packet(now), place, scheduler);
        }
        let (at, line) = self.enter(leg, size, now, scheduler);
        *line.push_place() = packet(at);
    }

    /// The rest of [`emit`](Self::emit) where something is drawn for the packet.
    #[cold] // so that what it needs costs other packets no registers
    #[inline(never)]
    fn emit_at_random(
        &mut self,
        leg: Leg,
        random: u32,
        mut packet: SimPacket,
        place: impl FnOnce(&SimPacket) -> [u64; 2],
        scheduler: &mut Scheduler,
    ) {
        let Random { jitter, rare } = &self.randoms[random as usize];
        if let Some(Rare { sizes, noted }) = rare {
            if let Some(sizes) = sizes {
                packet.size = sizes.of(&packet, place);
            }
            if *noted {
                self.sent.push(packet);
            }
        }
        if jitter.is_some() {
            return self.enter_at_random(leg, random, packet, scheduler);
        }
        let (at, line) = self.enter(leg, packet.size, packet.stamp, scheduler);
        packet.stamp = at;
        *line.push_place() = packet;
    }

    /// As [`enter`](Self::enter), for the leg along a host's link, with the random times of `random`. The packet may
    /// overtake others.
    #[inline(never)]
    fn enter_at_random(
        &mut self,
        leg: Leg,
        random: u32,
        mut packet: SimPacket,
        scheduler: &mut Scheduler,
    ) {
        let (at, transmission) = self.cross(leg, packet.size, packet.stamp);
        if let Some(jitter) = &mut self.randoms[random as usize].jitter {
            packet.stamp = jitter.arrival(packet.flow, packet.stamp, at, transmission);
        }
        let Line {
            packets, lookahead, ..
        } = &mut self.lines[leg.line as usize];
        // Behind the packets that arrive at the same time, so that those of a flow stay in order. It is near the end:
        // random times are short beside the way.
        let mut place = packets.len();
        while place > 0
            && packets
                .get(place - 1)
                .is_some_and(|it| it.stamp > packet.stamp)
        {
            place -= 1;
        }
        if place == 0 {
            scheduler.set_line(leg.line, Some(packet.stamp + *lookahead));
        }
        packets.insert(place, packet);
    }

    /// The packets that endpoints have sent since this was asked last, if they are noted. The stamp of each is when it was
    /// sent.
    pub fn sent_packets(&mut self) -> impl Iterator<Item = SimPacket> + '_ {
        self.sent.drain(..)
    }

    /// The propagation delay of each route: what an empty packet takes along it through empty queues.
    pub fn propagation(&self) -> Vec<Span> {
        let sum = |legs: &[Leg]| {
            let delays = legs.iter().map(Leg::delay);
            delays.fold(Span::ZERO, |sum, delay| sum + delay)
        };
        self.legs.iter().map(sum).collect()
    }

    /// Sends `packet` into its next leg.
    #[inline(always)]
    pub fn send(&mut self, packet: &SimPacket, now: Time, scheduler: &mut Scheduler) {
        let next = packet.leg + 1;
        let leg = *self.legs.leg(packet.route, next);
        let (at, line) = self.enter(leg, packet.size, now, scheduler);
        let place = line.push_place();
        *place = *packet;
        place.stamp = at;
        place.leg = next;
    }

    /// A packet of `size` bytes crosses a leg. Returns when it arrives, and its transmission time on a host's link.
    #[inline(always)]
    fn cross(&mut self, leg: Leg, size: u32, now: Time) -> (Time, Span) {
        let at = now + leg.before;
        let Some(pipe) = leg.pipe else {
            return (at, Span::ZERO);
        };
        let pipe = &mut self.pipes[pipe as usize];
        // Without a branch: whether a host's link is busy is hard to predict.
        let start = at.max(pipe.busy_until);
        pipe.longest_wait = pipe.longest_wait.max(start.since(at));
        let transmission = pipe.transmitter.time(size);
        pipe.busy_until = start + transmission;
        (pipe.busy_until + leg.after, transmission)
    }

    /// A packet of `size` bytes enters a leg. Returns when it arrives, and the line for it.
    #[inline(always)]
    fn enter(
        &mut self,
        leg: Leg,
        size: u32,
        now: Time,
        scheduler: &mut Scheduler,
    ) -> (Time, &mut Ring<SimPacket>) {
        let (at, _) = self.cross(leg, size, now);
        let Line {
            packets: line,
            lookahead,
            ..
        } = &mut self.lines[leg.line as usize];
        if line.is_empty() {
            scheduler.set_line(leg.line, Some(at + *lookahead));
        }
        debug_assert!(line.back().is_none_or(|last| last.stamp <= at));
        (at, line)
    }

    /// The first leg of a route.
    pub(crate) fn first_leg(&self, route: u32) -> &Leg {
        self.legs.leg(route, 0)
    }

    /// Where the head of `line` arrives.
    ///
    /// # Panics
    /// When the line is empty and leads to several places; a scheduled line is not empty.
    #[inline]
    pub fn target(&self, line: u32) -> Target {
        let Line {
            packets, target, ..
        } = &self.lines[line as usize];
        match *target {
            Some(target) => target,
            None => self.legs.of_packet(packets.front().expect(HEAD)).target,
        }
    }

    /// The head of `line`.
    ///
    /// # Panics
    /// When the line is empty.
    pub fn head(&self, line: u32) -> &SimPacket {
        self.lines[line as usize].packets.front().expect(HEAD)
    }

    /// Removes the head of `line`, schedules the next packet, and returns the head where it is.
    ///
    /// # Panics
    /// When the line is empty.
    #[inline]
    pub fn take(&mut self, line: u32, scheduler: &mut Scheduler) -> &SimPacket {
        self.schedule_next(line, scheduler);
        self.lines[line as usize].take()
    }

    /// Schedules the packet behind the head of `line`, at the end of which nothing lags behind.
    #[inline]
    pub(crate) fn schedule_next(&self, line: u32, scheduler: &mut Scheduler) {
        let Line {
            packets, lookahead, ..
        } = &self.lines[line as usize];
        debug_assert!(*lookahead == Span::ZERO);
        scheduler.set_line(line, packets.get(1).map(|next| next.stamp));
    }

    /// The line at the end of `route`, if the process there may lag behind.
    #[inline]
    pub fn lagging_line(&self, route: u32) -> Option<u32> {
        let line = self.legs.last(route).line;
        self.lags(line).then_some(line)
    }

    /// Whether the process at the end of `line` may lag behind.
    #[inline]
    pub fn lags(&self, line: u32) -> bool {
        self.lines[line as usize].lookahead > Span::ZERO
    }

    /// The numbers of the lines that lead to endpoints which may lag behind.
    pub fn lagging_lines(&self) -> Vec<u32> {
        let lines = (0..).zip(&self.lines);
        let lags = |line: &Line| {
            line.lookahead > Span::ZERO && !matches!(line.target, Some(Target::Link(_)))
        };
        let lagging = lines.filter(|(_, line)| lags(line));
        lagging.map(|(number, _)| number).collect()
    }

    /// Removes the head of `line` if it arrives before `limit`. After the last one [`schedule`](Self::schedule)
    /// is called.
    #[inline]
    pub fn take_before(&mut self, line: u32, limit: Time) -> Option<&SimPacket> {
        let packets = &mut self.lines[line as usize].packets;
        match packets.front() {
            Some(head) if head.stamp < limit => packets.take_front(),
            _ => None,
        }
    }

    /// Schedules the arrival of the head of `line`.
    pub fn schedule(&mut self, line: u32, scheduler: &mut Scheduler) {
        let Line {
            packets, lookahead, ..
        } = &self.lines[line as usize];
        let next = packets.front().map(|head| head.stamp + *lookahead);
        scheduler.set_line(line, next);
    }

    /// The packet `ahead` places behind the head of `line`, and where it will arrive.
    #[inline]
    pub fn upcoming(&self, line: u32, ahead: usize) -> Option<(&SimPacket, Target)> {
        let packet = self.lines[line as usize].packets.get(ahead)?;
        Some((packet, self.legs.of_packet(packet).target))
    }

    /// Prefetches the packet `ahead` places behind the head of `line` into the cache.
    #[inline]
    pub fn prefetch(&self, line: u32, ahead: usize) {
        if let Some(packet) = self.lines[line as usize].packets.get(ahead) {
            prefetch(packet);
        }
    }

    /// Whether a route leads to the side that sends data or serves, by route.
    pub fn back_routes(&self) -> Vec<bool> {
        let back = |legs: &[Leg]| {
            matches!(
                legs.last().map(|leg| leg.target),
                Some(Target::Sender | Target::Server | Target::Caller | Target::Own(0))
            )
        };
        self.legs.iter().map(back).collect()
    }

    /// The measurement begins: forgets how long packets have waited for hosts' links.
    pub(crate) fn start_measuring(&mut self) {
        for pipe in &mut self.pipes {
            pipe.longest_wait = Span::ZERO;
        }
    }

    /// The longest time that a packet has waited for a link of a group's hosts since the
    /// measurement began; with groups on the same hosts, a packet of any of them.
    pub fn longest_host_wait(&self, group: u32) -> Span {
        let routes = self.routes.iter().zip(self.legs.iter());
        let own = routes.filter(|(route, _)| route.group == group);
        let pipes = own.flat_map(|(_, legs)| legs.iter().filter_map(|leg| leg.pipe));
        let waits = pipes.map(|pipe| self.pipes[pipe as usize].longest_wait);
        waits.max().unwrap_or_default()
    }

    /// Number of delay lines.
    pub fn line_count(&self) -> usize {
        self.lines.len()
    }

    /// Everything on the lines.
    pub(crate) fn in_flight(&self) -> impl Iterator<Item = &SimPacket> {
        self.lines.iter().flat_map(|line| line.packets.iter())
    }
}
