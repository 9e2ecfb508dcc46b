//! The applications of a run on sockets of this kernel: what TCP flows, UDP sources and users do.
//!
//! One thread runs all of them. Every draw comes from the stream that the simulator names for it, so
//! starts, sizes, gaps and pages are the simulator's.

mod call;
mod datagrams;
pub mod log;
mod port;
mod stream;
mod udp;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::io;
use std::os::fd::OwnedFd;

use redtail_core::{Bytes, Stream as Random, Time};
use redtail_network::answers::Answers;
use redtail_network::result::FlowSeries;
use redtail_network::statistics::Delays;
use redtail_spec::Scenario;
use redtail_traffic::{Application, FlowKind, Traces, TrafficParams, User};
use rustix::event::epoll;

pub use self::call::CallFlow;
use self::log::{HostLog, LOOK};
use self::port::{Connection, UserSlot};
pub use self::stream::TcpFlow;
pub use self::udp::UdpFlow;
use crate::addresses::Side;
use crate::counters::Counters;
use crate::event_loop::{Part, Watched};
use crate::packet::Socket;
use crate::spaces::{self, Space};
use crate::sys::clock::Clock;
use crate::sys::tcp_info::{TcpInfo, tcp_info};

/// Room for the largest datagram.
const LARGEST: usize = 65_536;

/// The state of all flows, of which a kernel tells none.
pub const UNKNOWN_STATE: &str = "unknown";

/// What an event of a socket belongs to; with a number it is the datum of its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum Owner {
    /// The listener of a group.
    Listener,
    /// The sender of a TCP flow.
    Sender,
    /// The receiver of a TCP flow.
    Receiver,
    /// The receiver of all UDP flows of a group.
    UdpSink,
    /// The client of a connection.
    Client,
    /// The server of a connection.
    Server,
    /// The end of a call at which the group's direction begins.
    Caller,
    /// The other end of a call.
    Callee,
}

impl Owner {
    const ALL: [Self; 8] = [
        Self::Listener,
        Self::Sender,
        Self::Receiver,
        Self::UdpSink,
        Self::Client,
        Self::Server,
        Self::Caller,
        Self::Callee,
    ];

    fn datum(self, number: u32) -> u64 {
        (self as u64) << 32 | u64::from(number)
    }

    /// The owner and the number of a datum; `None` if it is not of hosts.
    fn of(datum: u64) -> Option<(Self, u32)> {
        let owner = Self::ALL.get((datum >> 32) as usize)?;
        Some((*owner, datum as u32))
    }
}

/// What is due at a time. At one time, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Timer {
    /// The measurement period begins.
    Measure,
    /// A phase ends and the next begins.
    Phase,
    /// A sample of the flows.
    Sample,
    /// A look at the flows for the event log.
    Look,
    /// The response on the connection at this place is ready.
    Ready(u32),
    /// The TCP flow of this number starts.
    Start(u32),
    /// The TCP flow of this number stops.
    Stop(u32),
    /// The UDP flow of this number sends.
    Send(u32),
    /// An end of the call of this number acts.
    Call(u32),
    /// The user of this number acts.
    Wake(u32),
}

/// Timers in the order of their times.
#[derive(Debug, Default)]
struct Timers(BinaryHeap<Reverse<(Time, Timer)>>);

impl Timers {
    fn add(&mut self, at: Time, timer: Timer) {
        self.0.push(Reverse((at, timer)));
    }

    fn next(&self) -> Option<Time> {
        self.0.peek().map(|Reverse((at, _))| *at)
    }

    /// Removes and returns the next timer that is due.
    fn due(&mut self, now: Time) -> Option<(Time, Timer)> {
        match self.next() {
            Some(at) if at <= now => self.0.pop().map(|Reverse(timer)| timer),
            _ => None,
        }
    }
}

/// All that sockets need of the run.
struct Kernel<'a> {
    spaces: &'a [[Space; 2]],
    /// The namespace that the thread is in.
    here: Option<(usize, Side)>,
    watched: &'a Watched,
}

impl Kernel<'_> {
    /// Moves the thread into the namespace of a side of a group.
    fn enter(&mut self, group: usize, side: Side) -> io::Result<()> {
        if self.here != Some((group, side)) {
            self.spaces[group][side as usize].namespace.enter()?;
            self.here = Some((group, side));
        }
        Ok(())
    }

    /// Watches a socket. Events are told once, when a state begins.
    fn watch(&self, socket: &OwnedFd, owner: Owner, number: u32) -> io::Result<()> {
        let flags = epoll::EventFlags::IN
            | epoll::EventFlags::OUT
            | epoll::EventFlags::RDHUP
            | epoll::EventFlags::ET;
        self.watched.watch(socket, owner.datum(number), flags)
    }
}

/// The figures of the groups at the beginning of a period.
#[derive(Clone, Debug, Default)]
pub struct Marks {
    /// When the period began.
    pub since: Time,
    /// Bytes delivered to receivers and users until then, by group.
    pub delivered: Vec<u64>,
    /// What the kernel has counted until then, by group: of both sides.
    pub counters: Vec<Counters>,
}

/// The applications of all groups.
pub struct Hosts<'a> {
    /// The run.
    pub scenario: &'a Scenario,
    clock: Clock,
    kernel: Kernel<'a>,
    timers: Timers,
    listeners: Vec<Option<OwnedFd>>,
    udp_sinks: Vec<Option<OwnedFd>>,
    /// Number of the first flow of each group, over all groups.
    pub first_flow: Vec<u32>,
    /// TCP flows with data from one side, in the order of the groups.
    pub tcp: Vec<TcpFlow>,
    /// UDP flows, in the order of the groups.
    pub udp: Vec<UdpFlow>,
    /// Calls, in the order of the groups.
    pub calls: Vec<CallFlow>,
    /// Users, in the order of the groups.
    pub users: Vec<UserSlot>,
    /// Open connections of users; `None` where a place is free.
    pub connections: Vec<Option<Box<Connection>>>,
    free: Vec<u32>,
    /// The connections whose servers are still to be accepted, by the client's address and port.
    arriving: BTreeMap<Socket, u32>,
    /// Connections on which a user's program has acted.
    touched: Vec<u32>,
    /// One-way delays of UDP packets sent in the measurement period, by group; of calls those of media in the
    /// group's direction.
    pub delays: Vec<Delays>,
    /// One-way delays of calls' media against the group's direction, by group.
    pub back_delays: Vec<Delays>,
    /// Samples of the TCP flows.
    pub series: FlowSeries,
    /// The event log, if it was asked for.
    pub log: Option<HostLog>,
    /// The response times, by group; `None` for a group without users.
    pub answers: Vec<Option<Box<Answers>>>,
    /// Bytes delivered to users over connections that are gone, by group.
    gone: Vec<u64>,
    measure_from: Time,
    end: Time,
    /// How late timers of the measurement period were handled.
    pub lateness: Delays,
    /// Where the measurement and the phases begin.
    pub marks: Vec<Marks>,
    /// Room for what is read and not looked at.
    scratch: Vec<u8>,
}

impl<'a> Hosts<'a> {
    /// The applications of `scenario` on the hosts of `spaces`, which has the sides of each group. Their
    /// sockets are `watched`.
    ///
    /// # Errors
    /// When a socket cannot be opened.
    ///
    /// # Panics
    /// When `traces` lacks a table of the scenario.
    pub fn new(
        scenario: &'a Scenario,
        traces: &Traces,
        spaces: &'a [[Space; 2]],
        watched: &'a Watched,
    ) -> io::Result<Self> {
        let groups = scenario.traffic.len();
        let mut hosts = Self {
            scenario,
            clock: Clock::start(),
            kernel: Kernel {
                spaces,
                here: None,
                watched,
            },
            timers: Timers::default(),
            listeners: Vec::new(),
            udp_sinks: Vec::new(),
            first_flow: Vec::new(),
            tcp: Vec::new(),
            udp: Vec::new(),
            calls: Vec::new(),
            users: Vec::new(),
            connections: Vec::new(),
            free: Vec::new(),
            arriving: BTreeMap::new(),
            touched: Vec::new(),
            delays: vec![Delays::default(); groups],
            back_delays: vec![Delays::default(); groups],
            series: FlowSeries::default(),
            log: None,
            answers: Vec::new(),
            gone: vec![0; groups],
            measure_from: Time::ZERO + scenario.warmup,
            end: Time::ZERO + scenario.duration,
            lateness: Delays::default(),
            marks: Vec::new(),
            scratch: vec![0; LARGEST],
        };
        hosts.timers.add(hosts.measure_from, Timer::Measure);
        for &phase in &scenario.phases {
            hosts.timers.add(Time::ZERO + phase, Timer::Phase);
        }
        if scenario
            .series
            .as_ref()
            .is_some_and(|series| series.windows)
        {
            hosts.timers.add(Time::ZERO, Timer::Sample);
        }
        for group in 0..groups {
            hosts.add_group(group, traces)?;
        }
        if let Some(events) = &scenario.events {
            hosts.log = Some(HostLog::new(hosts.tcp.len(), events));
            if events.kinds.iter().any(|&kind| log::is_of_flow(kind)) {
                hosts.timers.add(Time::ZERO, Timer::Look);
            }
        }
        Ok(hosts)
    }

    /// Opens the listening sockets of a group and prepares its flows.
    fn add_group(&mut self, index: usize, traces: &Traces) -> io::Result<()> {
        let group = &self.scenario.traffic[index];
        let access = group.access();
        self.first_flow.push(self.first_flow_of(index));
        self.answers.push(Answers::of(group, self.scenario, index));
        self.listeners.push(None);
        self.udp_sinks.push(None);
        match (group, group.tcp()) {
            (_, Some(_)) => self.listeners[index] = Some(self.listen(index)?),
            (TrafficParams::Call(_) | TrafficParams::Endpoint(_), None) => {} // sockets of their own, or none
            (_, None) => self.udp_sinks[index] = Some(self.open_udp_sink(index)?),
        }
        let make_user = group.make_users(traces);
        let hosts = access.host_count();
        for i in 0..access.flows as usize {
            let (seed, replication) = (self.scenario.seed, self.scenario.replication);
            let name = format!("traffic.{}.{i}", access.name);
            let mut random = Random::named(seed, replication, &name);
            let start = group.start(i, &mut random);
            let stop = group.stop(i, &mut random).unwrap_or(Time::MAX);
            match group.flow_kind(i) {
                FlowKind::Tcp { size } => {
                    let number = self.tcp.len() as u32;
                    let size = size.map(Bytes::as_u64);
                    self.tcp.push(TcpFlow::new(index, i, size, [start, stop]));
                    if start < stop {
                        self.timers.add(start, Timer::Start(number));
                    }
                    if stop < self.end {
                        self.timers.add(stop, Timer::Stop(number));
                    }
                }
                FlowKind::Udp => self.add_udp(index, i, random, start, stop)?,
                FlowKind::Call => self.add_call(index, i, &random, start, stop)?,
                FlowKind::Own => {
                    let problem =
                        format!("group {:?} has endpoints of a program's own", access.name);
                    return Err(io::Error::new(io::ErrorKind::Unsupported, problem));
                }
                FlowKind::User => {
                    let make = make_user.as_ref().expect("the group has users");
                    let program: User = make(i, start, stop, random);
                    let number = self.users.len() as u32;
                    if let Some(at) = program.next_wakeup() {
                        self.timers.add(at, Timer::Wake(number));
                    }
                    self.users.push(UserSlot::new(program, index, i % hosts));
                }
            }
        }
        Ok(())
    }

    fn first_flow_of(&self, index: usize) -> u32 {
        let before = self.scenario.traffic[..index].iter();
        before.map(|group| group.access().flows).sum()
    }

    /// The run begins, with this clock.
    pub fn start(&mut self, clock: Clock) {
        self.clock = clock;
    }

    fn on_timer(&mut self, at: Time, timer: Timer) -> io::Result<()> {
        match timer {
            Timer::Measure => self.begin_measuring()?,
            Timer::Phase => {
                let marks = self.marks_now()?;
                self.marks.push(marks);
            }
            Timer::Sample => self.sample(at)?,
            Timer::Look => {
                self.look(at);
                self.timers.add(at + LOOK, Timer::Look);
            }
            Timer::Ready(place) => self.act(place)?,
            Timer::Start(flow) => self.start_tcp(flow)?,
            Timer::Stop(flow) => self.stop_tcp(flow)?,
            Timer::Send(flow) => self.send_udp(flow, at)?,
            Timer::Call(call) => self.wake_call(call)?,
            Timer::Wake(user) => self.wake_user(user)?,
        }
        Ok(())
    }

    /// Samples the TCP flows that are open.
    fn sample(&mut self, at: Time) -> io::Result<()> {
        for flow in &self.tcp {
            let Some(socket) = flow.sender_socket() else {
                continue;
            };
            let info = tcp_info(socket)?;
            let bytes = |segments: u32| f64::from(segments) * f64::from(info.mss);
            let rows = &mut self.series;
            rows.time_s.push(at.as_secs_f64());
            rows.flow
                .push(self.first_flow[flow.group] + flow.index as u32);
            rows.group.push(flow.group as u32);
            rows.cwnd_bytes.push(bytes(info.cwnd));
            rows.ssthresh_bytes
                .push(info.ssthresh.map_or(f64::INFINITY, bytes));
            rows.in_flight_bytes.push(bytes(info.outstanding));
            let srtt = (info.srtt_us > 0).then(|| f64::from(info.srtt_us) * 1e-6);
            rows.srtt_s.push(srtt.unwrap_or(f64::NAN));
            rows.pacing_rate_bps.push(f64::NAN);
            rows.delivered_bytes.push(flow.delivered);
            rows.state.push(0); // `UNKNOWN_STATE`
        }
        if let Some(series) = &self.scenario.series {
            self.timers.add(at + series.interval, Timer::Sample);
        }
        Ok(())
    }

    /// Looks at the TCP flows for the event log, if there is one.
    pub fn look(&mut self, at: Time) {
        let Some(log) = &mut self.log else {
            return;
        };
        for (place, flow) in self.tcp.iter().enumerate() {
            let info = flow.latest_info();
            if info != TcpInfo::default() {
                let number = self.first_flow[flow.group] + flow.index as u32;
                log.look(place, (flow.group as u32, number), info, at);
            }
        }
    }

    fn begin_measuring(&mut self) -> io::Result<()> {
        let marks = self.marks_now()?;
        self.marks.push(marks);
        let now = self.clock.now();
        for answers in self.answers.iter_mut().flatten() {
            answers.begin(now);
        }
        for user in &mut self.users {
            user.program_mut().start_measuring(now);
        }
        for call in &mut self.calls {
            for end in &mut call.ends {
                end.start_measuring(now);
            }
        }
        for flow in &mut self.tcp {
            flow.delivered_before = flow.delivered;
            flow.info_before = flow.latest_info();
        }
        Ok(())
    }

    /// The figures of the groups now.
    ///
    /// # Errors
    /// When the kernel's counters cannot be read.
    pub fn marks_now(&mut self) -> io::Result<Marks> {
        let mut counters = Vec::with_capacity(self.scenario.traffic.len());
        for group in 0..self.scenario.traffic.len() {
            let [one, other] = Side::BOTH;
            self.kernel.enter(group, one)?;
            let of_one = Counters::read(spaces::DEVICE)?;
            self.kernel.enter(group, other)?;
            counters.push(of_one + Counters::read(spaces::DEVICE)?);
        }
        Ok(Marks {
            since: self.clock.now(),
            delivered: self.delivered(),
            counters,
        })
    }

    /// Bytes delivered to receivers and users so far, by group.
    pub fn delivered(&self) -> Vec<u64> {
        let mut delivered = self.gone.clone();
        for flow in &self.tcp {
            delivered[flow.group] += flow.delivered;
        }
        for connection in self.connections.iter().flatten() {
            delivered[connection.at.group] += connection.client_read();
        }
        delivered
    }
}

impl Part for Hosts<'_> {
    fn act(&mut self, now: Time) -> io::Result<()> {
        if now >= self.end {
            return Ok(());
        }
        while let Some((at, timer)) = self.timers.due(now) {
            let late = self.clock.now() - at;
            if at >= self.measure_from {
                self.lateness.record(late);
            }
            self.on_timer(at, timer)?;
        }
        Ok(())
    }

    fn next(&self) -> Time {
        self.timers.next().unwrap_or(Time::MAX)
    }

    fn owns(&self, datum: u64) -> bool {
        Owner::of(datum).is_some()
    }

    fn ready(&mut self, datum: u64) -> io::Result<()> {
        let (owner, number) = Owner::of(datum).expect("the datum is of hosts");
        match owner {
            Owner::Listener => self.accept(number as usize),
            Owner::Sender => self.on_sender(number),
            Owner::Receiver => self.on_receiver(number),
            Owner::UdpSink => self.on_udp(number as usize),
            Owner::Client => self.on_client(number),
            Owner::Server => self.on_server(number),
            Owner::Caller => self.on_call(number, 0),
            Owner::Callee => self.on_call(number, 1),
        }
    }
}
