//! Links, delay lines and routes, compiled from a scenario's template.
//!
//! Only a link with a queue under study needs events. Access links never drop, and packets enter
//! each in the order of the events that send them there. The time at which a packet leaves an
//! access link is therefore known when it enters: it needs a number (`busy_until`) and no
//! event. Packets in flight are in delay lines, first-in first-out, of which only the head is
//! scheduled. Packets that hosts hold for a random time are in a separate line, in the order in
//! which they leave.

use std::collections::BTreeMap;
use std::sync::Arc;

use redtail_core::{Bytes, Dscp, Ecn, Rate, Ring, Span, Stream, Time, prefetch};
use redtail_qdisc::{AnyQueue, FlowTable, Plugins, QueueContext};
use redtail_spec::{LinkParams, Scenario};
use redtail_traffic::{Access, Direction, FlowKind};

use crate::capacity::{Capacity, Deliveries};
use crate::packet::{ContentId, SimPacket, TrafficClass};
use crate::scheduler::Scheduler;

/// A transmitter with a queue discipline in front of it.
#[derive(Debug)]
pub struct Link {
    /// Name in results: "bottleneck", "return", "hop1", "hop1.return" …
    pub name: String,
    /// What stands in front of its metrics in results.
    pub prefix: String,
    /// Whether data of forward groups crosses it.
    pub forward: bool,
    /// The transmitter, which computes transmission times.
    pub transmitter: Transmitter,
    /// Its capacity, if its rate is not constant.
    pub capacity: Option<Box<Capacity>>,
    /// Mean round-trip time, without queueing, of the TCP flows with packets here.
    pub round_trip: Option<Span>,
    /// Packets waiting.
    pub queue: AnyQueue<SimPacket>,
    /// The packet being transmitted, and when the transmission began.
    pub transmitting: Option<(SimPacket, Time)>,
    /// When the transmission ends, or a trace lets the link deliver next; [`Time::MAX`] if neither will happen.
    pub(crate) free_at: Time,
    /// How long after `free_at` others notice it at the earliest. It may be carried out so late, but before any
    /// other event at the link.
    pub(crate) slack: Span,
    /// When the schedule has an event for it: at most `slack` after `free_at`; [`Time::MAX`] if there is none.
    pub(crate) due: Time,
    /// The earliest wakeup scheduled for the queue.
    pub wakeup: Option<Time>,
    /// Random losses after the transmitter; `None` if there are none.
    pub wire: Option<Box<Wire>>,
}

/// Loses each packet with the same probability, independently of others.
#[derive(Debug)]
pub struct Wire {
    /// Probability of a loss.
    probability: f64,
    stream: Stream,
    /// Packets lost over the whole run.
    pub lost: u64,
    /// Packets transmitted in the measurement period.
    pub transmitted: u64,
    /// Packets transmitted in the measurement period that were lost.
    pub lost_of_transmitted: u64,
}

impl Link {
    /// The latest time at which the end of its transmission may be carried out; [`Time::MAX`] if there is none.
    pub(crate) fn latest_end(&self) -> Time {
        match self.free_at {
            Time::MAX => Time::MAX,
            free_at => free_at + self.slack,
        }
    }

    /// Whether a trace determines when it delivers.
    pub fn has_trace(&self) -> bool {
        matches!(self.capacity.as_deref(), Some(Capacity::Trace(_)))
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

impl Wire {
    /// Whether the packet transmitted now is lost. It draws for every packet, so that with the same
    /// random numbers a higher probability loses the same packets and others.
    pub fn loses(&mut self, measuring: bool) -> bool {
        let lost = self.stream.uniform() < self.probability;
        self.lost += u64::from(lost);
        self.transmitted += u64::from(measuring);
        self.lost_of_transmitted += u64::from(lost && measuring);
        lost
    }
}

/// A transmitter's rate, with what it takes to know a transmission time without a division, which costs more
/// than the rest of the work for a packet.
#[derive(Clone, Debug)]
pub struct Transmitter {
    rate: Rate,
    /// The transmission time of a byte, in picoseconds, if it is a whole number; otherwise 0.
    per_byte: u64,
    /// The latest size and its transmission time, for other rates: most packets have the size of the one before.
    latest: (u32, Span),
}

impl Transmitter {
    fn new(rate: Rate) -> Self {
        // Below 2^32 no size can take longer than a span holds.
        let per_byte = rate.tx_time(Bytes::new(1)).as_ps();
        let exact = Rate::FASTEST.as_bps().is_multiple_of(rate.as_bps());
        Self {
            rate,
            per_byte: if exact && per_byte < 1 << 32 {
                per_byte
            } else {
                0
            },
            latest: (0, Span::ZERO),
        }
    }

    /// Transmission rate.
    pub fn rate(&self) -> Rate {
        self.rate
    }

    /// How long the transmission of `size` bytes takes.
    #[inline]
    pub fn time(&mut self, size: u32) -> Span {
        if self.per_byte > 0 {
            return Span::from_ps(u64::from(size) * self.per_byte);
        }
        if self.latest.0 != size {
            self.latest = (size, self.rate.tx_time(Bytes::new(u64::from(size))));
        }
        self.latest.1
    }
}

/// A transmitter that never drops and needs no events.
#[derive(Clone, Debug)]
struct Pipe {
    transmitter: Transmitter,
    busy_until: Time,
    /// The longest time that a packet has waited for it in the measurement period.
    longest_wait: Span,
    /// The traffic group whose host's link it is.
    group: u32,
}

/// The random time for which the sending hosts of a group hold each packet.
///
/// A packet leaves its host at the later of two times: that at which the one before it of the same
/// flow leaves, and the present with a draw from [0, `longest`) added.
#[derive(Debug)]
struct Jitter {
    longest: Span,
    stream: Stream,
    /// When the latest packet leaves, by flow number.
    latest: Vec<Time>,
}

impl Jitter {
    /// When a packet of `flow` that is sent now leaves its host.
    fn departure(&mut self, flow: u32, now: Time) -> Time {
        let flow = flow as usize;
        if flow >= self.latest.len() {
            self.latest.resize(flow + 1, Time::ZERO);
        }
        let drawn = now + self.stream.uniform_span(Span::ZERO, self.longest);
        let latest = &mut self.latest[flow];
        *latest = drawn.max(*latest);
        *latest
    }
}

/// The end of a leg.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// The queue of a link.
    Link(u32),
    /// The host's own link, when the packet leaves the host.
    Departure,
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
    pipe: Option<u32>,
    /// Propagation after the pipe.
    pub(crate) after: Span,
    pub(crate) line: u32,
    pub(crate) target: Target,
}

/// A path through the network.
#[derive(Debug)]
pub struct Route {
    /// Index of the traffic group that uses it.
    pub group: u32,
    /// The class its packets ask for.
    pub dscp: Dscp,
    /// Index of the random delays of the host that sends its packets.
    jitter: Option<u32>,
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
    fn of(routes: &[Vec<Leg>]) -> Self {
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

    /// The leg that a packet is on.
    #[inline]
    fn of_packet(&self, packet: &SimPacket) -> &Leg {
        self.leg(packet.route, packet.leg)
    }

    /// The legs of each route.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &[Leg]> {
        let rows = self.table.chunks(self.row.max(1));
        let counted = rows.zip(&self.counts);
        counted.map(|(legs, &count)| &legs[..usize::from(count)])
    }
}

/// Packets in flight that arrive in the order in which they were put in.
#[derive(Debug)]
struct Line {
    packets: Ring<SimPacket>,
    /// Where all of them arrive; `None` if they arrive in several places. It tells what comes next sooner
    /// than a packet's route does.
    target: Option<Target>,
}

/// The compiled network with everything in flight.
#[derive(Debug)]
pub struct Network {
    /// The links with queues.
    pub links: Vec<Link>,
    /// All routes.
    pub routes: Vec<Route>,
    pub(crate) legs: Legs,
    pipes: Vec<Pipe>,
    lines: Vec<Line>,
    /// The random delays of the groups that have them.
    jitters: Vec<Jitter>,
    /// The flows that cross it, as queues may know them.
    pub flows: Arc<FlowTable>,
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

impl Network {
    /// An endpoint sends a packet of `size` bytes.
    #[inline(always)]
    pub fn emit(
        &mut self,
        content: (ContentId, Ecn),
        size: u32,
        to: Address,
        now: Time,
        scheduler: &mut Scheduler,
    ) {
        let &Route { dscp, jitter, .. } = &self.routes[to.route as usize];
        let (content, ecn) = content;
        let packet = |stamp| SimPacket {
            stamp,
            content,
            endpoint: to.endpoint,
            flow: to.flow,
            size,
            route: to.route,
            leg: 0,
            class: TrafficClass::new(dscp, ecn),
            id: to.id,
        };
        if let Some(jitter) = jitter {
            self.hold(packet(now), jitter, now, scheduler);
            return;
        }
        let leg = *self.legs.leg(to.route, 0);
        let (at, line) = self.enter(leg, size, now, scheduler);
        *line.push_place() = packet(at);
    }

    /// Keeps `packet` in its host for a random time. The first leg of its route is this time.
    #[cold]
    fn hold(&mut self, mut packet: SimPacket, jitter: u32, now: Time, scheduler: &mut Scheduler) {
        packet.stamp = self.jitters[jitter as usize].departure(packet.flow, now);
        let line = self.legs.of_packet(&packet).line;
        let held = &mut self.lines[line as usize].packets;
        // Behind the packets that leave at the same time, so that those of a flow stay in order.
        let place = held.partition_point(|other| other.stamp <= packet.stamp);
        if place == 0 {
            scheduler.set_line(line, Some(packet.stamp));
        }
        held.insert(place, packet);
    }

    /// Sends `packet` into its next leg.
    #[inline(always)]
    pub fn send(&mut self, packet: SimPacket, now: Time, scheduler: &mut Scheduler) {
        let next = packet.leg + 1;
        let leg = *self.legs.leg(packet.route, next);
        let (at, line) = self.enter(leg, packet.size, now, scheduler);
        let packet = line.push_back(packet);
        packet.stamp = at;
        packet.leg = next;
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
        let mut at = now + leg.before;
        if let Some(pipe) = leg.pipe {
            let pipe = &mut self.pipes[pipe as usize];
            // Without a branch: whether a host's link is busy is hard to predict.
            let start = at.max(pipe.busy_until);
            pipe.longest_wait = pipe.longest_wait.max(start - at);
            at = start + pipe.transmitter.time(size);
            pipe.busy_until = at;
            at += leg.after;
        }
        let line = &mut self.lines[leg.line as usize].packets;
        if line.is_empty() {
            scheduler.set_line(leg.line, Some(at));
        }
        debug_assert!(line.back().is_none_or(|last| last.stamp <= at));
        (at, line)
    }

    /// Removes the head of `line` and schedules the next packet. Returns where the head arrived.
    #[inline]
    pub fn arrive(&mut self, line: u32, scheduler: &mut Scheduler) -> (SimPacket, Target) {
        let Line { packets, target } = &mut self.lines[line as usize];
        let packet = packets.pop_front().expect("a scheduled line has a head");
        scheduler.set_line(line, packets.front().map(|head| head.stamp));
        let target = match *target {
            Some(target) => target,
            None => self.legs.of_packet(&packet).target,
        };
        (packet, target)
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
                Some(Target::Sender | Target::Server | Target::Caller)
            )
        };
        self.legs.iter().map(back).collect()
    }

    /// The measurement begins: forgets how long packets have waited for hosts' links.
    pub fn start_measuring(&mut self) {
        for pipe in &mut self.pipes {
            pipe.longest_wait = Span::ZERO;
        }
    }

    /// The longest time that a packet has waited for a link of a group's hosts since the
    /// measurement began.
    pub fn longest_host_wait(&self, group: u32) -> Span {
        let pipes = self.pipes.iter().filter(|pipe| pipe.group == group);
        pipes
            .map(|pipe| pipe.longest_wait)
            .max()
            .unwrap_or_default()
    }

    /// Number of delay lines.
    pub fn line_count(&self) -> usize {
        self.lines.len()
    }

    /// Everything in flight between links.
    pub fn in_flight(&self) -> impl Iterator<Item = &SimPacket> {
        self.lines.iter().flat_map(|line| line.packets.iter())
    }
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

/// Compiles the network, and for each group the routes of each of its hosts.
pub fn compile(scenario: &Scenario, plugins: &Plugins) -> (Network, Vec<Vec<HostRoutes>>) {
    let mut compiler = Compiler {
        scenario,
        plugins,
        network: Network {
            links: Vec::new(),
            routes: Vec::new(),
            legs: Legs::default(),
            pipes: Vec::new(),
            lines: Vec::new(),
            jitters: Vec::new(),
            flows: scenario.flow_table(),
        },
        delays: Vec::new(),
        legs: Vec::new(),
        pure_lines: BTreeMap::new(),
        held: None,
        hops: Vec::new(),
    };
    compiler.add_links();
    let groups = scenario.traffic.iter().enumerate();
    let routes = groups
        .map(|(i, group)| {
            let access = group.access();
            let jitter = compiler.add_jitter(&access);
            let ends = match group {
                group if group.has_users() => [Target::Client, Target::Server],
                group if group.tcp().is_some() => [Target::Receiver, Target::Sender],
                group if group.flow_kind(0) == FlowKind::Call => [Target::Callee, Target::Caller],
                _ => [Target::UdpSink; 2],
            };
            (0..access.host_count())
                .map(|host| {
                    let mut access = access;
                    if group.is_reverse(host) {
                        access.direction = access.direction.opposite();
                    }
                    compiler.add_host(i as u32, &access, host, ends, jitter)
                })
                .collect()
        })
        .collect();
    compiler.network.legs = Legs::of(&compiler.legs);
    (compiler.network, routes)
}

/// The two links of a bottleneck.
#[derive(Clone, Copy, Debug)]
struct HopLinks {
    forward: u32,
    back: Option<u32>,
}

struct Compiler<'a> {
    scenario: &'a Scenario,
    plugins: &'a Plugins,
    network: Network,
    /// Propagation delay of each link.
    delays: Vec<Span>,
    /// The legs of each route.
    legs: Vec<Vec<Leg>>,
    /// Lines of legs without a pipe, by the link at which they begin (`None`: at endpoints) and by their delay.
    /// Packets enter each at non-decreasing times, and leave in the same order.
    pure_lines: BTreeMap<(Option<u32>, Span), u32>,
    /// The line of the packets that hosts hold for random delays, in the order in which they leave.
    held: Option<u32>,
    hops: Vec<HopLinks>,
}

impl Compiler<'_> {
    fn add_links(&mut self) {
        let topology = &self.scenario.topology;
        for (i, hop) in topology.hops().iter().enumerate() {
            let forward = self.add_link(i, Direction::Forward, &hop.forward());
            let back = hop
                .return_link
                .as_ref()
                .map(|link| self.add_link(i, Direction::Reverse, link));
            self.hops.push(HopLinks { forward, back });
        }
    }

    fn add_link(&mut self, hop: usize, direction: Direction, link: &LinkParams) -> u32 {
        let name = self.scenario.topology.link_name(hop, direction);
        let flows = Arc::clone(&self.network.flows);
        let facts = self.scenario.link_facts(hop, direction, link, flows);
        let stream = Stream::named(
            self.scenario.seed,
            self.scenario.replication,
            &format!("queue.{name}"),
        );
        let wire = link.random_loss.map(|probability| {
            Box::new(Wire {
                probability,
                stream: Stream::named(
                    self.scenario.seed,
                    self.scenario.replication,
                    &format!("loss.{name}"),
                ),
                lost: 0,
                transmitted: 0,
                lost_of_transmitted: 0,
            })
        });
        self.network.links.push(Link {
            name,
            prefix: self.scenario.topology.link_prefix(hop, direction),
            forward: direction == Direction::Forward,
            transmitter: Transmitter::new(link.rate),
            capacity: Capacity::of(link),
            round_trip: self.scenario.mean_round_trip(hop),
            queue: link.queue.build(QueueContext {
                rate: link.rate,
                stream,
                link: Arc::new(facts),
                plugins: self.plugins.clone(),
            }),
            transmitting: None,
            free_at: Time::MAX,
            slack: Span::ZERO,
            due: Time::MAX,
            wakeup: None,
            wire,
        });
        self.delays.push(link.delay);
        self.network.links.len() as u32 - 1
    }

    /// Adds a host. `ends` are the targets of data and of the packets in the other direction.
    fn add_host(
        &mut self,
        group: u32,
        access: &Access<'_>,
        host: usize,
        ends: [Target; 2],
        jitter: Option<u32>,
    ) -> HostRoutes {
        let last = access.last_hop.map_or(self.hops.len(), |hop| hop as usize);
        let first = access.first_hop.map_or(1, |hop| hop as usize);
        let crossed = &self.hops[first - 1..last];
        let forward: Vec<u32> = crossed.iter().map(|hop| hop.forward).collect();
        let backward: Vec<u32> = crossed.iter().rev().filter_map(|hop| hop.back).collect();
        let (data, back) = match access.direction {
            Direction::Forward => (forward, backward),
            Direction::Reverse => (backward, forward),
        };

        let filled_in = "a scenario has the rates of hosts' links filled in";
        let entry = self.add_pipe(group, *access.access_rate.expect(filled_in).get(host));
        let exit = self.add_pipe(group, *access.exit_rate.expect(filled_in).get(host));
        // Data: time in the host, access link, bottlenecks, exit link.
        let mut legs = Vec::new();
        if jitter.is_some() {
            legs.push(self.held_leg());
        }
        let entry = Some((entry, *access.access_delay.get(host)));
        legs.push(self.leg(None, Span::ZERO, entry, Target::Link(data[0])));
        for pair in data.windows(2) {
            let (from, to) = (pair[0], pair[1]);
            let delay = self.delays[from as usize];
            legs.push(self.leg(Some(from), delay, None, Target::Link(to)));
        }
        let last = data[data.len() - 1];
        let exit = Some((exit, *access.exit_delay.get(host)));
        legs.push(self.leg(Some(last), self.delays[last as usize], exit, ends[0]));
        let data = self.add_route(group, access.dscp, jitter, legs);

        // Acknowledgements: the links of the other direction, then the delay of the return path.
        // Hosts' links count as idle in this direction.
        let way_back = *access.return_delay.get(host);
        let mut legs = Vec::new();
        let (mut from, mut delay) = (None, Span::ZERO);
        for &link in &back {
            legs.push(self.leg(from, delay, None, Target::Link(link)));
            (from, delay) = (Some(link), self.delays[link as usize]);
        }
        legs.push(self.leg(from, delay + way_back, None, ends[1]));
        let back_at_once = back.is_empty() && way_back == Span::ZERO;
        let back = self.add_route(group, access.dscp, None, legs);
        HostRoutes {
            data,
            back,
            back_at_once,
        }
    }

    fn add_pipe(&mut self, group: u32, rate: Rate) -> u32 {
        self.network.pipes.push(Pipe {
            transmitter: Transmitter::new(rate),
            busy_until: Time::ZERO,
            longest_wait: Span::ZERO,
            group,
        });
        self.network.pipes.len() as u32 - 1
    }

    fn add_line(&mut self, target: Target) -> u32 {
        self.network.lines.push(Line {
            packets: Ring::new(),
            target: Some(target),
        });
        self.network.lines.len() as u32 - 1
    }

    /// Creates a leg that begins at the link `from` or at an endpoint, with the line it needs: the output of each pipe
    /// is a separate line. All legs that reach a pipe have the same delay (they belong to one host), so that the
    /// computation on entry is exact.
    fn leg(
        &mut self,
        from: Option<u32>,
        before: Span,
        pipe: Option<(u32, Span)>,
        target: Target,
    ) -> Leg {
        let line = match pipe {
            Some(_) => self.add_line(target),
            None => match self.pure_lines.get(&(from, before)) {
                Some(&line) => {
                    let shared = &mut self.network.lines[line as usize].target;
                    *shared = shared.filter(|other| *other == target);
                    line
                }
                None => {
                    let line = self.add_line(target);
                    self.pure_lines.insert((from, before), line);
                    line
                }
            },
        };
        Leg {
            before,
            pipe: pipe.map(|(pipe, _)| pipe),
            after: pipe.map_or(Span::ZERO, |(_, after)| after),
            line,
            target,
        }
    }

    /// The random delays of a group's sending hosts, if they have any.
    fn add_jitter(&mut self, access: &Access<'_>) -> Option<u32> {
        let longest = access.host_jitter.filter(|it| *it > Span::ZERO)?;
        let (seed, replication) = (self.scenario.seed, self.scenario.replication);
        self.network.jitters.push(Jitter {
            longest,
            stream: Stream::named(seed, replication, &format!("jitter.{}", access.name)),
            latest: Vec::new(),
        });
        Some(self.network.jitters.len() as u32 - 1)
    }

    /// The leg for the time that a packet spends in its host. The packets of all hosts are in one
    /// line.
    fn held_leg(&mut self) -> Leg {
        let line = self
            .held
            .unwrap_or_else(|| self.add_line(Target::Departure));
        self.held = Some(line);
        Leg {
            before: Span::ZERO,
            pipe: None,
            after: Span::ZERO,
            line,
            target: Target::Departure,
        }
    }

    fn add_route(&mut self, group: u32, dscp: Dscp, jitter: Option<u32>, legs: Vec<Leg>) -> u32 {
        self.network.routes.push(Route {
            group,
            dscp,
            jitter,
        });
        self.legs.push(legs);
        self.network.routes.len() as u32 - 1
    }
}
