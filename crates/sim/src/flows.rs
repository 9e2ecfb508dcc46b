//! The endpoints of a run: TCP senders and receivers, UDP sources and sinks.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::mem::offset_of;
use std::ops::Range;

use redtail_core::{Bytes, Span, Stream, Time, prefetch_start};
use redtail_spec::Scenario;
use redtail_traffic::{
    Access, Application, CallEnd, FlowKind, Playout, Traces, TrafficParams, UdpSource, User,
};
use redtail_transport::{
    Flags, HeaderSizes, PlainAck, Plugins as Controllers, Receiver, Segment, Sender, TcpParams,
};

use crate::connections::{Connections, Reached};
use crate::header::{self, TcpOptions};
use crate::own::{OwnPlace, OwnSlot, Payloads};
use crate::packet::{Contents, Datagram, Passed};
use crate::plugins::Plugins;
use redtail_network::HostRoutes;
use redtail_network::answers::Answers;
use redtail_network::scheduler::{Alarm, Scheduler};
use redtail_network::statistics::Delays;
use redtail_network::{Address, Class, Event, FlowNumbers, Links};

/// When things happened that happen once to a flow, and to most flows never.
#[derive(Clone, Copy, Debug, Default)]
pub struct Moments {
    /// When the SYN-ACK arrived.
    pub established: Option<Time>,
    /// When the first byte of a sized transfer was delivered to the application.
    pub first_byte: Option<Time>,
    /// When the last byte was acknowledged.
    pub completed: Option<Time>,
}

/// The moments of the flows that have any, by flow number. They are apart from the endpoints, so that these take
/// fewer lines of the cache.
#[derive(Debug, Default)]
pub struct AllMoments(BTreeMap<u32, Moments>);

impl AllMoments {
    /// The moments of a flow.
    pub fn of(&self, flow: u32) -> Moments {
        self.0.get(&flow).copied().unwrap_or_default()
    }

    /// The moments of a flow, to be changed.
    #[cold]
    pub fn change(&mut self, flow: u32) -> &mut Moments {
        self.0.entry(flow).or_default()
    }
}

/// A sending endpoint with its place in the network. It begins a line of the cache.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct SenderSlot {
    /// Packets sent by this endpoint.
    pub sent: u64,
    /// Its timer.
    pub alarm: Alarm,
    /// Packets delivered to it, modulo 2^32.
    pub delivered: u32,
    /// Route of its data.
    pub route: u32,
    /// Number of its flow.
    pub flow: u32,
    /// The headers of its segments.
    pub headers: HeaderSizes,
    /// Whether it opens with a handshake.
    pub handshake: bool,
    /// Whether acknowledgements reach it at once, because the return path has neither delay nor link. Its receiver
    /// knows it too, but may not be in the cache.
    pub acknowledged_at_once: bool,
    /// The state machine. It comes last, because what is rarely used is at its end.
    pub sender: Sender,
}

const _: () = assert!(
    SenderSlot::ORDINARY <= 7 * 64,
    "an ordinary packet uses 7 lines"
);
const _: () = assert!(size_of::<SenderSlot>() <= 7 * 64);
const _: () = assert!(size_of::<ReceiverSlot>() <= 2 * 64);

impl SenderSlot {
    /// The first bytes, which an ordinary packet uses.
    const ORDINARY: usize = offset_of!(Self, sender) + Sender::ORDINARY;

    /// Sends a segment from the endpoint with this `index`.
    #[inline(always)] // into the few that call it
    pub fn send(
        &mut self,
        segment: Segment,
        index: u32,
        now: Time,
        contents: &mut Contents,
        links: &mut Links,
    ) {
        self.sent += 1;
        let size = self.headers.size(&segment);
        let to = Address {
            flow: self.flow,
            endpoint: index,
            route: self.route,
            id: self.sent as u16,
        };
        contents.send_segment(segment, size, to, now, links);
    }

    /// Sets its alarm to no later than `deadline`, and its release if it is paced.
    #[inline(always)] // into the two that call it
    pub fn set_timers(&mut self, deadline: Option<Time>, index: u32, scheduler: &mut Scheduler) {
        self.alarm
            .arm(deadline, Class::SenderTimer, index, scheduler);
        // Releases are not in the alarm, so that its distant timer is not rescheduled.
        if self.sender.is_paced() {
            scheduler.set_release(index, self.sender.next_release());
        }
    }

    /// Prefetches into the cache what an ordinary packet uses.
    #[inline]
    pub fn prefetch(&self) {
        prefetch_start(self, Self::ORDINARY);
    }

    /// A plain acknowledgement arrives. Returns whether the sender sends only new data now; if not, it may.
    #[inline(always)]
    pub fn hear_plain_ack(&mut self, ack: PlainAck, now: Time) -> bool {
        self.delivered = self.delivered.wrapping_add(1);
        self.sender.on_plain_ack(ack, now)
    }

    /// A segment arrives.
    #[inline(always)] // into the two that call it
    pub fn receive(&mut self, segment: &Segment, now: Time, moments: &mut AllMoments) {
        self.delivered = self.delivered.wrapping_add(1);
        self.sender.on_segment(segment, now);
        if segment.flags.contains(Flags::SYN) {
            moments.change(self.flow).established.get_or_insert(now);
        }
    }
}

/// A receiving endpoint with its place in the network. It begins a line of the cache.
#[derive(Debug)]
#[repr(align(64))]
pub struct ReceiverSlot {
    /// The state machine.
    pub receiver: Receiver,
    /// Its timer.
    pub alarm: Alarm,
    /// Route of its acknowledgements.
    pub route: u32,
    /// Number of its flow.
    pub flow: u32,
    /// The headers of its segments.
    pub headers: HeaderSizes,
    /// Whether its acknowledgements reach the sender at once, because the return path has neither
    /// delay nor link.
    pub at_once: bool,
    /// Whether the delivery of the first byte is still to be recorded.
    pub awaits_first_byte: bool,
    /// Packets sent by this endpoint, modulo 2^32.
    pub sent: u32,
    /// Packets delivered to it, modulo 2^32.
    pub delivered: u32,
}

impl ReceiverSlot {
    /// The bytes that have reached it so far.
    pub fn reached(&self) -> Reached {
        Reached {
            delivered: self.receiver.delivered(),
            received: self.receiver.received(),
        }
    }

    /// A segment arrives.
    #[inline]
    pub fn receive(&mut self, segment: &Segment, now: Time, moments: &mut AllMoments) {
        self.delivered = self.delivered.wrapping_add(1);
        self.receiver.on_segment(segment, now);
        self.note_first_byte(now, moments);
    }

    /// Whether most of its answers are plain acknowledgements that reach the sender at once.
    #[inline]
    pub fn answers_plainly(&self) -> bool {
        self.at_once && self.receiver.is_basic()
    }

    /// A segment arrives at a receiver that [answers plainly](Self::answers_plainly). Returns the acknowledgement that
    /// it sends, if that is plain: there is then no other answer, and no timer runs. Otherwise there may be another one.
    #[inline(always)] // into the one that calls it
    pub fn answer(
        &mut self,
        segment: &Segment,
        now: Time,
        moments: &mut AllMoments,
    ) -> Option<PlainAck> {
        self.delivered = self.delivered.wrapping_add(1);
        let is_plain = self.receiver.answers_plainly(segment, now);
        self.note_first_byte(now, moments);
        if !is_plain {
            return None;
        }
        self.sent = self.sent.wrapping_add(1);
        let ack = self.receiver.take_plain_ack();
        debug_assert!(self.receiver.next_wakeup().is_none());
        Some(ack)
    }

    /// Notes when the first byte was delivered.
    #[inline]
    fn note_first_byte(&mut self, now: Time, moments: &mut AllMoments) {
        if self.awaits_first_byte && self.receiver.delivered() > 0 {
            self.awaits_first_byte = false;
            moments.change(self.flow).first_byte = Some(now);
        }
    }
}

/// The endpoints of a TCP flow of a group before it has sent anything. Those of all its flows are copies, which share
/// what they have in common.
struct FreshFlow {
    sender: Sender,
    receiver: Receiver,
    headers: HeaderSizes,
    handshake: bool,
    /// Whether the sender draws random numbers.
    draws: bool,
}

impl FreshFlow {
    fn new(params: &TcpParams, controllers: &Controllers) -> Self {
        let mut sender = Sender::new(params, None);
        sender.take_controller_from(controllers);
        Self {
            sender,
            receiver: Receiver::new(params),
            headers: params.headers(),
            handshake: params.handshake,
            draws: params.has_model(),
        }
    }
}

/// A UDP source and its sink.
#[derive(Debug)]
pub struct UdpSlot {
    source: UdpSource,
    stream: Stream,
    /// Route of its packets.
    pub route: u32,
    /// Number of its group.
    pub group: u32,
    /// Number of the next packet.
    pub next: u64,
    /// Bytes received over the whole run.
    pub heard_bytes: u64,
    /// Bytes received that were sent in the measurement period.
    pub received_bytes: u64,
    /// Packets received that were sent in the measurement period.
    pub received: u64,
    /// Packets lost that were sent in the measurement period.
    pub lost: u64,
    /// Packets sent and delivered over the whole run.
    pub passed: Passed,
    /// What receives its packets.
    pub sink: UdpSink,
}

/// The receiving end of a UDP flow.
#[derive(Debug)]
pub enum UdpSink {
    /// Only counts.
    Counter,
    /// Plays a call.
    Call(Box<Playout>),
}

impl UdpSlot {
    /// The size on the link of the packet sent now, and the time to the next.
    #[inline]
    pub fn send(&mut self) -> (u32, Span) {
        self.source.send(&mut self.stream)
    }

    /// A packet of `size` bytes arrives. Returns the time it took if it was sent from
    /// `measure_from` on.
    #[inline]
    pub fn receive(
        &mut self,
        datagram: &Datagram,
        size: u32,
        now: Time,
        measure_from: Time,
    ) -> Option<Span> {
        let &Datagram { number, sent } = datagram;
        let counts = sent >= measure_from;
        self.passed.delivered += 1;
        self.heard_bytes += u64::from(size);
        if let UdpSink::Call(call) = &mut self.sink {
            call.receive(number, sent, now, counts);
        }
        if !counts {
            return None;
        }
        self.received += 1;
        self.received_bytes += u64::from(size);
        Some(now - sent)
    }
}

/// The two ends of a call, in the order caller and callee, with their place in the network.
#[derive(Debug)]
pub struct CallSlot {
    /// The ends: state machines.
    pub ends: [CallEnd; 2],
    /// Their timers.
    pub alarms: [Alarm; 2],
    /// Routes of the packets that each sends.
    pub routes: [u32; 2],
    /// Number of its flow.
    pub flow: u32,
    /// Number of its group.
    pub group: u32,
    /// Bytes that the callee has received over the whole run.
    pub heard_bytes: u64,
    /// Packets that each end has sent and that were delivered to it.
    pub passed: [Passed; 2],
}

/// A user with its place in the network.
#[derive(Debug)]
pub struct UserSlot {
    /// Its program; `None` while it runs.
    pub program: Option<Box<User>>,
    /// The alarm for its next wakeup.
    pub alarm: Alarm,
    /// Number of its first flow.
    pub flow: u32,
    /// Number of its group.
    pub group: u32,
    /// Number of its own host, within its group.
    pub host: u32,
    /// The place of each of its connections; `None` where it has none.
    pub open: Vec<Option<u32>>,
    /// All places in `open` below this one are in use.
    pub may_be_free: usize,
}

/// A source of traffic: a TCP flow, a UDP source or a user.
#[derive(Clone, Copy, Debug)]
pub enum Source {
    /// The TCP sender of this number.
    Tcp(u32),
    /// The UDP source of this number.
    Udp(u32),
    /// The user of this number.
    User(u32),
    /// The call of this number.
    Call(u32),
    /// The flow between endpoints of users of this number.
    Own(u32),
}

impl Source {
    /// The source of the same kind whose number is higher by `further`.
    #[inline]
    fn after(self, further: u32) -> Self {
        match self {
            Self::Tcp(i) => Self::Tcp(i + further),
            Self::Udp(i) => Self::Udp(i + further),
            Self::User(i) => Self::User(i + further),
            Self::Call(i) => Self::Call(i + further),
            Self::Own(i) => Self::Own(i + further),
        }
    }
}

/// The flows of a group. Their numbers follow one another, and so do those of their sources, which are all of the
/// same kind. So nothing of this is kept for each flow. Of a user's flows only the first is included.
#[derive(Clone, Copy, Debug)]
struct GroupFlows {
    /// Number of the first flow.
    first: u32,
    /// Number of flows.
    count: u32,
    /// The source of the first flow.
    source: Source,
}

/// The endpoints of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowEnds {
    /// The flow of the TCP sender of this number.
    Tcp(u32),
    /// The flow of the UDP source of this number.
    Udp(u32),
    /// The flow of the call of this number.
    Call(u32),
    /// The flow between endpoints of users of this number.
    Own(u32),
    /// A connection of a user, whose place a packet names as its endpoint.
    Connection,
}

/// All endpoints.
#[derive(Debug, Default)]
pub struct Flows {
    /// TCP senders; the receiver of the same number is the peer.
    pub senders: Vec<SenderSlot>,
    /// TCP receivers.
    pub receivers: Vec<ReceiverSlot>,
    /// [`Paths::back_routes`](redtail_network::Paths::back_routes): what a loss needs to know. It is apart
    /// from the receivers, which with many flows are not in the cache then.
    pub back_routes: Vec<bool>,
    /// The bytes that had reached each receiver when the measurement began, up to the last receiver that anything
    /// had reached.
    reached_before: Vec<Reached>,
    /// What happens once, for each TCP flow.
    pub moments: AllMoments,
    /// UDP sources with their sinks.
    pub udp: Vec<UdpSlot>,
    /// Calls.
    pub calls: Vec<CallSlot>,
    /// Flows between endpoints of users.
    pub own: Vec<OwnSlot>,
    /// The payloads of their datagrams in flight.
    pub payloads: Payloads,
    /// Users, in the order of their flows.
    pub users: Vec<UserSlot>,
    /// The users' connections.
    pub connections: Connections,
    /// The flow numbers of the users' connections.
    pub numbers: FlowNumbers,
    /// The response times, by group; `None` for a group without users.
    pub answers: Vec<Option<Box<Answers>>>,
    /// One-way delays of UDP packets sent in the measurement period, by group; of calls those of media in the
    /// group's direction.
    pub delays: Vec<Delays>,
    /// One-way delays of calls' media against the group's direction, by group.
    pub back_delays: Vec<Delays>,
    /// The flows of each group, in the order of their numbers.
    groups: Vec<GroupFlows>,
    /// The TCP flows and UDP sources that have not started, the next one last. Only the start of the next one is
    /// scheduled, because the event takes four times the memory of a number here.
    waiting: Vec<u32>,
    /// When each flow stops, up to the last that does; [`Time::MAX`] is never.
    stops: Vec<Time>,
    /// The options of TCP segments, by group.
    pub options: Vec<Option<TcpOptions>>,
}

impl Flows {
    /// Builds every endpoint of `scenario`, and schedules what it does first. Each flow's draws come from a stream
    /// named after its group and number, so they do not depend on anything else.
    ///
    /// # Panics
    /// When `traces` lacks a table of the scenario.
    pub fn new(
        scenario: &Scenario,
        routes: &[Vec<HostRoutes>],
        traces: &Traces,
        plugins: &Plugins,
        scheduler: &mut Scheduler,
    ) -> Self {
        let controllers = &plugins.controllers;
        let mut flows = Self {
            connections: Connections::new(scenario),
            options: header::options(scenario),
            ..Self::default()
        };
        let tcp = scenario
            .traffic
            .iter()
            .filter(|group| group.tcp().is_some() && !group.has_users());
        let tcp: usize = tcp.map(|group| group.access().flows as usize).sum();
        let all = scenario.traffic.iter().map(|group| group.access().flows);
        let mut starts = Vec::with_capacity(all.map(|flows| flows as usize).sum());
        flows.senders.reserve_exact(tcp);
        flows.receivers.reserve_exact(tcp);
        flows.delays = vec![Delays::default(); scenario.traffic.len()];
        flows.back_delays = flows.delays.clone();
        for (group_index, (group, hosts)) in scenario.traffic.iter().zip(routes).enumerate() {
            let access = group.access();
            flows
                .answers
                .push(Answers::of(group, scenario, group_index));
            let make_user = group.make_users(traces);
            let fresh = group
                .tcp()
                .map(|tcp| FreshFlow::new(&tcp.params, controllers));
            let first = flows.count() as u32;
            flows.groups.push(GroupFlows {
                first,
                count: access.flows,
                source: match group.flow_kind(0) {
                    FlowKind::Tcp { .. } => Source::Tcp(flows.senders.len() as u32),
                    FlowKind::Udp => Source::Udp(flows.udp.len() as u32),
                    FlowKind::Call => Source::Call(flows.calls.len() as u32),
                    FlowKind::Own => Source::Own(flows.own.len() as u32),
                    FlowKind::User => Source::User(flows.users.len() as u32),
                    FlowKind::Programs => no_programs(&access),
                },
            });
            for i in 0..access.flows as usize {
                let host = hosts[i % hosts.len()];
                let mut stream = stream_of(scenario, group, i);
                let flow = first + i as u32;
                let start = group.start(i, &mut stream);
                starts.push(start);
                let stop = group.stop(i, &mut stream).unwrap_or(Time::MAX);
                if stop < Time::MAX {
                    flows.stops.resize(flow as usize, Time::MAX);
                    flows.stops.push(stop);
                }
                let kind = group.flow_kind(i);
                match kind {
                    FlowKind::Tcp { size } => {
                        let stream = || {
                            let name = format!("tcp.{}.{i}", access.name);
                            Stream::named(scenario.seed, scenario.replication, &name)
                        };
                        let fresh = fresh.as_ref().expect("a TCP group has TCP parameters");
                        flows.add_tcp(fresh, size.map(Bytes::as_u64), host, flow, stream)
                    }
                    FlowKind::Udp => {
                        flows.add_udp(group, stream, host, group_index as u32);
                    }
                    FlowKind::Call => {
                        let ends = group.make_call(start, stop, &stream);
                        let ends = ends.expect("the group has calls");
                        flows.add_call(ends, host, flow, group_index as u32, scheduler);
                    }
                    FlowKind::Own => {
                        let place = OwnPlace {
                            flow,
                            group: group_index as u32,
                            number: i as u32,
                            host,
                        };
                        let TrafficParams::Endpoint(params) = group else {
                            unreachable!("the group has endpoints of users")
                        };
                        let (times, duration) = ([start, stop], scenario.duration);
                        let slot = OwnSlot::new(
                            params,
                            place,
                            times,
                            duration,
                            &plugins.endpoints,
                            &stream,
                        );
                        flows.own.push(slot);
                    }
                    FlowKind::Programs => no_programs(&access),
                    FlowKind::User => {
                        let make = make_user.as_ref().expect("the group has users");
                        let program = make(i, start, stop, stream);
                        let host = (i % hosts.len()) as u32;
                        flows.add_user(program, host, group_index as u32, flow, scheduler);
                    }
                }
                let is_told = matches!(kind, FlowKind::Tcp { .. } | FlowKind::Own);
                // Calls and users have alarms.
                if start < stop && (is_told || kind == FlowKind::Udp) {
                    flows.waiting.push(flow);
                }
                if stop < Time::ZERO + scenario.duration && is_told {
                    scheduler.add(Event::new(stop, Class::Source, flow));
                }
            }
            flows.connections.add_group(group, hosts, controllers);
        }
        flows.numbers = FlowNumbers::starting_at(flows.count() as u32);
        // Events of the same time come in the order of their flows.
        let start = |flow: u32| (starts[flow as usize], flow);
        flows
            .waiting
            .sort_unstable_by_key(|&flow| Reverse(start(flow)));
        flows.schedule_start(scenario, scheduler);
        flows
    }

    /// Schedules the start of the flow that starts next.
    fn schedule_start(&self, scenario: &Scenario, scheduler: &mut Scheduler) {
        if let Some(&flow) = self.waiting.last() {
            let start = self.start(flow, scenario);
            scheduler.add(Event::new(start, Class::Source, flow));
        }
    }

    /// A flow starts if it has not started yet: an event of it is then that of its start.
    #[inline]
    pub fn note_start(&mut self, flow: u32, scenario: &Scenario, scheduler: &mut Scheduler) {
        if self.waiting.last() == Some(&flow) {
            self.waiting.pop();
            self.schedule_start(scenario, scheduler);
        }
    }

    /// The number of flows; of a user's only the first is included.
    pub fn count(&self) -> usize {
        let last = self.groups.last();
        last.map_or(0, |group| (group.first + group.count) as usize)
    }

    /// The group of a flow.
    #[inline]
    pub fn group(&self, flow: u32) -> u32 {
        self.groups.partition_point(|group| group.first <= flow) as u32 - 1
    }

    /// Number of the first flow of a group.
    pub fn first_of(&self, group: u32) -> u32 {
        self.groups[group as usize].first
    }

    /// The source of a flow.
    #[inline]
    pub fn source(&self, flow: u32) -> Source {
        let group = &self.groups[self.group(flow) as usize];
        group.source.after(flow - group.first)
    }

    /// The numbers of a group's TCP senders and receivers; none if it has users.
    pub fn tcp_of(&self, group: usize) -> Range<usize> {
        let GroupFlows { count, source, .. } = self.groups[group];
        match source {
            Source::Tcp(first) => first as usize..(first + count) as usize,
            Source::Udp(_) | Source::User(_) | Source::Call(_) | Source::Own(_) => 0..0,
        }
    }

    /// When a flow starts. It is not kept, because it follows from the scenario.
    pub fn start(&self, flow: u32, scenario: &Scenario) -> Time {
        let group = self.group(flow);
        let i = (flow - self.first_of(group)) as usize;
        let group = &scenario.traffic[group as usize];
        group.start(i, &mut stream_of(scenario, group, i))
    }

    /// When a flow stops; [`Time::MAX`] is never.
    #[inline]
    pub fn stop(&self, flow: u32) -> Time {
        let stop = self.stops.get(flow as usize);
        stop.copied().unwrap_or(Time::MAX)
    }

    /// The measurement begins: takes note of what has reached the TCP receivers.
    pub fn note_reached(&mut self) {
        for (i, slot) in self.receivers.iter().enumerate() {
            let reached = slot.reached();
            if reached != Reached::default() {
                self.reached_before.resize(i, Reached::default());
                self.reached_before.push(reached);
            }
        }
    }

    /// The bytes that were delivered by this TCP receiver since the measurement began, as
    /// [`Reached::goodput_since`] has it.
    pub fn goodput(&self, receiver: usize) -> u64 {
        let before = self.reached_before.get(receiver);
        let reached = self.receivers[receiver].reached();
        reached.goodput_since(before.copied().unwrap_or_default())
    }

    /// The bytes that have reached the TCP receivers and users of each group so far.
    pub fn reached_by_group(&self) -> Vec<Reached> {
        let mut reached = vec![Reached::default(); self.answers.len()];
        for slot in &self.receivers {
            reached[self.group(slot.flow) as usize] += slot.reached();
        }
        for (group, reached) in (0..).zip(&mut reached) {
            *reached += self.connections.reached(group);
        }
        reached
    }

    /// The bytes that each group has got so far: of TCP those delivered in order, of UDP those of packets with headers.
    pub fn heard_by_group(&self) -> Vec<u64> {
        let reached = self.reached_by_group();
        let mut heard: Vec<u64> = reached.iter().map(|group| group.delivered).collect();
        for slot in &self.udp {
            heard[slot.group as usize] += slot.heard_bytes;
        }
        for slot in &self.calls {
            heard[slot.group as usize] += slot.heard_bytes;
        }
        for slot in &self.own {
            heard[slot.group as usize] += slot.heard_bytes;
        }
        heard
    }

    /// The endpoints of the flow of this number. The flows beyond [`count`](Self::count) are those that users open.
    #[inline]
    pub fn ends(&self, flow: u32) -> FlowEnds {
        if flow as usize >= self.count() {
            return FlowEnds::Connection;
        }
        match self.source(flow) {
            Source::Tcp(i) => FlowEnds::Tcp(i),
            Source::Udp(i) => FlowEnds::Udp(i),
            Source::Call(i) => FlowEnds::Call(i),
            Source::Own(i) => FlowEnds::Own(i),
            Source::User(_) => FlowEnds::Connection,
        }
    }

    fn add_user(
        &mut self,
        program: User,
        host: u32,
        group: u32,
        flow: u32,
        scheduler: &mut Scheduler,
    ) {
        let mut alarm = Alarm::default();
        alarm.arm(program.next_wakeup(), Class::Source, flow, scheduler);
        self.users.push(UserSlot {
            program: Some(Box::new(program)),
            alarm,
            flow,
            group,
            host,
            open: Vec::new(),
            may_be_free: 0,
        });
    }

    /// No TCP endpoint takes a short path.
    #[cfg(test)]
    pub fn forbid_short_paths(&mut self) {
        let senders = self.senders.iter_mut();
        senders.for_each(|slot| slot.sender.forbid_short_paths());
        let receivers = self.receivers.iter_mut();
        receivers.for_each(|slot| slot.receiver.forbid_short_paths());
        self.connections.forbid_short_paths();
    }

    fn add_call(
        &mut self,
        ends: [CallEnd; 2],
        host: HostRoutes,
        flow: u32,
        group: u32,
        scheduler: &mut Scheduler,
    ) {
        let mut alarms = [Alarm::default(); 2];
        for (end, alarm) in ends.iter().zip(&mut alarms) {
            alarm.arm(end.next_wakeup(), Class::Source, flow, scheduler);
        }
        self.calls.push(CallSlot {
            ends,
            alarms,
            routes: [host.data, host.back],
            flow,
            group,
            heard_bytes: 0,
            passed: [Passed::default(); 2],
        });
    }

    fn add_tcp(
        &mut self,
        fresh: &FreshFlow,
        size: Option<u64>,
        host: HostRoutes,
        flow: u32,
        stream: impl FnOnce() -> Stream,
    ) {
        let mut sender = fresh.sender.with_size(size);
        if fresh.draws {
            sender = sender.with_stream(stream());
        }
        self.senders.push(SenderSlot {
            sender,
            alarm: Alarm::default(),
            route: host.data,
            flow,
            headers: fresh.headers,
            handshake: fresh.handshake,
            acknowledged_at_once: host.back_at_once,
            sent: 0,
            delivered: 0,
        });
        self.receivers.push(ReceiverSlot {
            receiver: fresh.receiver.clone(),
            alarm: Alarm::default(),
            route: host.back,
            flow,
            headers: fresh.headers,
            at_once: host.back_at_once,
            awaits_first_byte: size.is_some(),
            sent: 0,
            delivered: 0,
        });
    }

    fn add_udp(
        &mut self,
        group: &TrafficParams,
        stream: Stream,
        host: HostRoutes,
        group_index: u32,
    ) {
        let sink = match group {
            TrafficParams::Voip(group) => UdpSink::Call(Box::new(Playout::new(group))),
            _ => UdpSink::Counter,
        };
        self.udp.push(UdpSlot {
            source: UdpSource::of(group).expect("a UDP group has sources"),
            stream,
            route: host.data,
            group: group_index,
            next: 0,
            heard_bytes: 0,
            received_bytes: 0,
            received: 0,
            lost: 0,
            passed: Passed::default(),
            sink,
        });
    }
}

/// The simulator has no programs; `redtail_sim::run` says so.
fn no_programs(access: &Access<'_>) -> ! {
    panic!(
        "group {:?} is of kind program, which needs a real kernel",
        access.name
    )
}

/// The stream from which flow `i` of a group draws.
fn stream_of(scenario: &Scenario, group: &TrafficParams, i: usize) -> Stream {
    let name = format!("traffic.{}.{i}", group.access().name);
    Stream::named(scenario.seed, scenario.replication, &name)
}
