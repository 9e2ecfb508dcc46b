//! The network of a run in real time: what hosts send is read from their TUN devices, crosses the
//! simulator's links, queues and delays, and is written to the devices of those it is for.
//!
//! An event happens at its nominal time, though it is carried out a little later: the network's
//! rates and delays are exact, and lateness does not add up. How late it was is measured.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::sync::Arc;

use redtail_core::{Ecn, Time};
use redtail_network::capture::{CaptureError, Files, LinkType, PointsAndFile};
use redtail_network::events::{row_of_packet, row_of_pass};
use redtail_network::result::QueueSeries;
use redtail_network::statistics::Delays;
use redtail_network::{
    Address, Class, ContentId, End, Ends, Event, EventRecorder, EventRow, Link, Links, Lookahead,
    PacketEvent, SimPacket, Target, compile, report,
};
use redtail_qdisc::{FlowTable, Plugins, QueueDiscipline, TcpHeader};
use redtail_spec::{EventKind, Scenario};
use redtail_transport::choices::EcnCodepoint;
use rustix::event::epoll;

use crate::addresses::Side;
use crate::event_loop::{Part, Watched};
use crate::flows::FlowMap;
use crate::foreign::{Note, Observer};
use crate::handover::{Handover, Parcel};
use crate::kernel_queue::Router;
use crate::meter::Meter;
use crate::packet::{self, Headers};
use crate::spaces::Space;
use crate::sys::clock::Clock;

/// Packets read from one device before the events that are due are looked at again.
const BATCH: usize = 16;

/// Room for the largest packet.
const LARGEST: usize = 65_536;

/// Added to the number of a device of hosts, this is the datum of its file.
const DEVICES: u64 = 1 << 63;

/// The datum of a router's output.
const ROUTER: u64 = u64::MAX;

/// The bytes of the packets in the network.
#[derive(Debug, Default)]
struct Buffers {
    places: Vec<Vec<u8>>,
    free: Vec<u32>,
    /// By place: what an observer remembers of the packet.
    notes: Vec<Note>,
}

impl Buffers {
    fn put(&mut self, packet: &[u8]) -> ContentId {
        let place = self.free.pop().unwrap_or_else(|| {
            self.places.push(Vec::with_capacity(1600));
            self.notes.push(Note::default());
            self.places.len() as u32 - 1
        });
        let buffer = &mut self.places[place as usize];
        buffer.clear();
        buffer.extend_from_slice(packet);
        ContentId(place)
    }

    fn get(&self, id: ContentId) -> &[u8] {
        &self.places[id.0 as usize]
    }

    fn get_mut(&mut self, id: ContentId) -> &mut [u8] {
        &mut self.places[id.0 as usize]
    }

    fn note(&self, id: ContentId) -> Note {
        self.notes[id.0 as usize]
    }

    /// Keeps a copy of a packet.
    fn duplicate(&mut self, id: ContentId) -> ContentId {
        let packet = self.places[id.0 as usize].clone();
        let copy = self.put(&packet);
        self.notes[copy.0 as usize] = self.note(id).of_copy();
        copy
    }

    fn free(&mut self, id: ContentId) {
        self.free.push(id.0);
    }

    /// Takes the bytes of a packet, and frees its place.
    fn take(&mut self, id: ContentId) -> Vec<u8> {
        self.free(id);
        std::mem::take(&mut self.places[id.0 as usize])
    }
}

/// What the links need of the emulator.
struct RealEnds<'a> {
    buffers: &'a mut Buffers,
    counts: &'a mut Vec<GroupCounts>,
    observers: &'a mut [Option<Observer>],
    routes: &'a [(u32, bool)],
    meter: &'a mut Option<Meter>,
    captured: &'a mut Option<Files<'static>>,
    log: &'a mut Option<EventRecorder>,
    /// By link: whether its queue is one of the kernel.
    routers: &'a [Option<Arc<Router>>],
    flows: &'a FlowTable,
}

impl RealEnds<'_> {
    /// Adds to a row of a packet what only its ends know, and records it.
    fn log_row(&mut self, kind: EventKind, packet: &SimPacket, now: Time, row: EventRow) {
        if let Some(log) = self.log {
            let (group, back) = self.routes[packet.route as usize];
            let row = EventRow {
                flow: Some((group, self.flows.own_flow(packet.flow))),
                back: Some(back),
                ..row
            };
            log.record(kind, now, &row);
        }
    }
}

impl Ends for RealEnds<'_> {
    fn lost(&mut self, packet: &SimPacket) {
        let (group, back) = self.routes[packet.route as usize];
        self.counts[group as usize].lost[usize::from(back)] += 1;
        if let Some(observer) = &mut self.observers[group as usize] {
            observer.lost(usize::from(back), self.buffers.note(packet.content));
        }
        self.buffers.free(packet.content);
    }

    fn duplicate(&mut self, packet: &SimPacket) -> ContentId {
        let (group, back) = self.routes[packet.route as usize];
        self.counts[group as usize].copied[usize::from(back)] += 1;
        self.buffers.duplicate(packet.content)
    }

    fn tell(&mut self, event: PacketEvent<'_>) {
        if let Some(captured) = self.captured {
            captured.tell(&event);
        }
        if self.log.is_none() {
            return;
        }
        let of_kernel = self.routers[event.link as usize].is_some();
        let row = row_of_packet(&event);
        let reason = row.reason.filter(|_| !of_kernel);
        let row = EventRow { reason, ..row };
        self.log_row(event.kind, event.packet, event.now, row);
    }

    fn tcp_header(&self, packet: &SimPacket, _group: usize) -> Option<TcpHeader> {
        let headers = Headers::of(self.buffers.get(packet.content))?;
        headers.tcp(u64::from(packet.flow))
    }

    fn pass(&mut self, link: &Link, end: End, packet: &SimPacket, now: Time) {
        if self.log.is_some() {
            let (kind, row) = row_of_pass(link, end, packet);
            self.log_row(kind, packet, now, row);
        }
        let link = link.number;
        let buffer = self.buffers.get_mut(packet.content);
        let class = packet.class.octet();
        let marked = buffer[1] != class;
        if marked {
            packet::set_traffic_class(buffer, class);
        }
        if let Some(meter) = self.meter {
            meter.pass(link, end, packet, marked, now);
        }
        if let Some(captured) = self.captured {
            if captured.wants(link, end) {
                captured.write(link, end, now, packet.content, (buffer, packet.size));
            }
            if end == End::Out {
                captured.sent(link, packet.content);
            }
        }
    }
}

/// The packets of a group, as the network saw them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GroupCounts {
    /// Segments of TCP with payload that the sending side has sent; in a group of users, both sides.
    pub data_packets: u64,
    /// Payload bytes of TCP that reached the receiving side, those that arrived twice included.
    pub arrived_bytes: u64,
    /// Packets that entered the network, by direction (data, back).
    pub entered: [u64; 2],
    /// Packets that left it at a host, by direction.
    pub left: [u64; 2],
    /// Packets that queues dropped or wires lost, by direction.
    pub lost: [u64; 2],
    /// Copies that wires made, by direction.
    pub copied: [u64; 2],
}

/// How well the machine kept up with real time.
#[derive(Clone, Debug)]
pub struct Punctuality {
    /// How late packets were handed to their receivers, in the measurement period.
    pub lateness: Delays,
    /// Bytes handed to the receivers of data in the measurement period, by the real clock.
    pub achieved: u64,
    /// The largest packet that hosts sent, in bytes.
    pub largest_packet: usize,
    /// Packets that belong to no flow of the run.
    pub strays: u64,
    period: Range<Time>,
}

impl Punctuality {
    /// Nothing has been measured yet; the measurement is in this period.
    fn new(period: Range<Time>) -> Self {
        Self {
            lateness: Delays::default(),
            achieved: 0,
            largest_packet: 0,
            strays: 0,
            period,
        }
    }

    /// One for another thread, which has measured nothing yet.
    pub fn anew(&self) -> Self {
        Self::new(self.period.clone())
    }

    /// Adds what another thread has measured.
    pub fn add(&mut self, other: &Self) {
        self.lateness.add(&other.lateness);
        self.achieved += other.achieved;
        self.largest_packet = self.largest_packet.max(other.largest_packet);
        self.strays += other.strays;
    }

    /// A host got a packet at `now` that was due at `at`, with this many bytes of data direction.
    pub fn handed_over(&mut self, bytes: u64, at: Time, now: Time) {
        if self.period.contains(&at) {
            self.lateness.record(now - at);
        }
        if self.period.contains(&now) {
            self.achieved += bytes;
        }
    }
}

/// The network in real time.
pub struct Emulator<'a> {
    scenario: &'a Scenario,
    /// The hosts of each group, by side.
    pub spaces: &'a [[Space; 2]],
    links: Links,
    /// By link: the kernel's queue, if it is one of the kernel.
    routers: Vec<Option<Arc<Router>>>,
    flows: FlowMap,
    buffers: Buffers,
    /// By route: its group, and whether it leads back to the side that sends data.
    routes: Vec<(u32, bool)>,
    /// By group: whether its receivers are users.
    has_users: Vec<bool>,
    /// Whether packets that hosts of a group send with ECT(0) get ECT(1): no kernel has a setting for it.
    ect1: Vec<bool>,
    /// The counters of each group now.
    pub counts: Vec<GroupCounts>,
    /// As they were when the measurement began.
    pub counts_before: Vec<GroupCounts>,
    /// What sees the traffic of groups of programs.
    pub observers: Vec<Option<Observer>>,
    /// Samples of the queues.
    pub series: QueueSeries,
    /// The metrics of the phases that have ended.
    pub phase_metrics: Vec<(String, f64)>,
    phase: u32,
    /// How well the machine kept up.
    pub punctuality: Punctuality,
    /// When the run ended.
    pub end: Time,
    /// Reads the links for those who watch.
    pub meter: Option<Meter>,
    /// The files of captured packets.
    pub captured: Option<Files<'static>>,
    /// The event log, if it was asked for.
    pub log: Option<EventRecorder>,
    clock: Clock,
    /// The thread that hands packets over while the network is late.
    handover: Option<Handover>,
    /// The time to which events are being carried out.
    now: Time,
    /// `None` if all events happen when they are due.
    lookahead: Option<Lookahead>,
    scratch: Vec<u8>,
    /// The time of the latest event that was carried out.
    reached: Time,
}

impl<'a> Emulator<'a> {
    /// The network of `scenario` between the hosts of `spaces`.
    /// Its links have the queues of these routers, by their names.
    pub fn new(
        scenario: &'a Scenario,
        plugins: &Plugins,
        spaces: &'a [[Space; 2]],
        routers: &BTreeMap<String, Arc<Router>>,
    ) -> Self {
        let (network, host_routes) = compile(scenario, plugins);
        let groups = scenario.traffic.len();
        let flows = FlowMap::new(scenario, host_routes.clone(), &network.flows);
        let mut routes: Vec<(u32, bool)> = network
            .paths
            .routes
            .iter()
            .map(|route| (route.group, false))
            .collect();
        for host in host_routes.iter().flatten() {
            routes[host.back as usize].1 = true;
        }
        let of_link = |link: &Link| routers.get(&link.name).cloned();
        let routers = network.links.iter().map(of_link).collect();
        let mut links = Links::new(network, Time::ZERO + scenario.duration);
        let scheduler = &mut links.scheduler;
        let measure_from = Time::ZERO + scenario.warmup;
        let period = measure_from..Time::ZERO + scenario.duration;
        scheduler.add(Event::new(measure_from, Class::Measure, 0));
        for (phase, &at) in (1..).zip(&scenario.phases) {
            scheduler.add(Event::new(Time::ZERO + at, Class::Measure, phase));
        }
        if scenario.series.as_ref().is_some_and(|series| series.queues) {
            scheduler.add(Event::new(Time::ZERO, Class::Sample, 0));
        }
        Self {
            scenario,
            spaces,
            links,
            routers,
            flows,
            buffers: Buffers::default(),
            routes,
            counts: vec![GroupCounts::default(); groups],
            counts_before: Vec::new(),
            observers: (scenario.traffic.iter())
                .map(|group| group.programs().map(|_| Observer::new(period.clone())))
                .collect(),
            series: QueueSeries::default(),
            phase_metrics: Vec::new(),
            phase: 1,
            punctuality: Punctuality::new(period),
            ect1: (scenario.traffic.iter())
                .map(|group| {
                    let tcp = group.tcp();
                    tcp.is_some_and(|tcp| tcp.params.ecn_codepoint == EcnCodepoint::Ect1)
                })
                .collect(),
            has_users: scenario
                .traffic
                .iter()
                .map(|group| group.has_users() || group.programs().is_some())
                .collect(),
            end: Time::ZERO + scenario.duration,
            meter: None,
            captured: None,
            log: (scenario.events.as_ref()).map(|wanted| EventRecorder::new(wanted, scenario)),
            clock: Clock::start(),
            handover: None,
            now: Time::ZERO,
            lookahead: None,
            scratch: vec![0; LARGEST],
            reached: Time::ZERO,
        }
    }

    /// Begins to capture packets, whole and as they are on the link.
    ///
    /// # Errors
    /// When the network has no such link, or a file cannot be written.
    pub fn capture(&mut self, wanted: Vec<PointsAndFile<'static>>) -> Result<(), CaptureError> {
        if !wanted.is_empty() {
            let network = &self.links.network;
            let scenario = self.scenario;
            let mut files = Files::new(wanted, network, scenario, LinkType::Ip, LARGEST as u32)?;
            for (link, _) in (0..).zip(&self.routers).filter(|(_, it)| it.is_some()) {
                files.of_kernel(link);
            }
            self.captured = Some(files);
        }
        Ok(())
    }

    /// Lets the network lag behind where no host and no queue of the kernel notices it, which saves waits: its events are
    /// carried out at their nominal times and in their
    /// order ([`Lookahead::of_network`]).
    pub fn use_lookahead(&mut self) {
        for router in self.routers.iter().flatten() {
            router.let_link_read(false);
        }
        let outside = |link: u32| self.routers[link as usize].is_some();
        self.lookahead = Some(Lookahead::of_network(&self.links.network, outside));
    }

    /// Lets this thread hand packets over while the network is late; `None` ends it.
    pub fn hand_over_by(&mut self, handover: Option<Handover>) {
        self.handover = handover;
    }

    /// Lets packets of a group from and to addresses that no host has pass, as those of its first
    /// sending host.
    pub fn let_outside(&mut self, group: usize) {
        self.flows.let_outside(group);
    }

    /// Sees the traffic of a group, in which programs of the user take part.
    pub fn observe(&mut self, group: usize) {
        self.observers[group] = Some(Observer::new(self.punctuality.period.clone()));
    }

    /// Number of links.
    pub fn link_count(&self) -> usize {
        self.links.network.links.len()
    }

    /// The run begins, with this clock. What the emulator reads is `watched`.
    ///
    /// # Errors
    /// When the kernel cannot watch a device.
    pub fn start(&mut self, clock: Clock, watched: &Watched) -> io::Result<()> {
        self.clock = clock;
        for (device, space) in (DEVICES..).zip(self.spaces.iter().flatten()) {
            watched.watch(&space.tun, device, epoll::EventFlags::IN)?;
        }
        for router in self.routers.iter().flatten() {
            // What a busy link does not take at once must not wake the emulator again.
            let flags = epoll::EventFlags::IN | epoll::EventFlags::ET;
            watched.watch(router.output(), ROUTER, flags)?;
        }
        Ok(())
    }

    /// The run was ended, maybe early.
    pub fn end_now(&mut self) {
        self.end = self.clock.now().min(self.end);
    }

    /// Carries out what is due.
    fn catch_up(&mut self, now: Time) -> io::Result<()> {
        self.now = now;
        self.read_queues(now)?;
        loop {
            let due = self.links.scheduler.first();
            let due = due.filter(|event| event.at() <= now && event.at() < self.end);
            if let Some((link, at)) = self.released_by(due.map_or(now, |event| event.at())) {
                self.reached = at;
                self.with_links(|links, ends| links.ask_queue(link, at, ends));
                continue;
            }
            let Some(event) = due.and_then(|_| self.links.scheduler.take_next()) else {
                return Ok(());
            };
            self.reached = self.reached.max(event.at());
            self.carry_out(event)?;
        }
    }

    /// Reads what queues of the kernel have let out for links that wait for it, or will when what is due has
    /// happened.
    fn read_queues(&self, now: Time) -> io::Result<()> {
        if self.lookahead.is_none() {
            return Ok(());
        }
        let due = self.links.scheduler.first().map(|event| event.at());
        let due = due.is_some_and(|at| at <= now);
        for (link, router) in self.routers.iter().enumerate() {
            let waits = due || self.links.network.links[link].transmitting.is_none();
            if let Some(router) = router.as_ref().filter(|_| waits) {
                router.read_output(now)?;
            }
        }
        Ok(())
    }

    /// An idle link that can begin a packet of its queue of the kernel by `at`, and when it does.
    fn released_by(&self, at: Time) -> Option<(u32, Time)> {
        self.lookahead.as_ref()?;
        let of_link = |(link, router): (usize, &Option<Arc<Router>>)| {
            let idle = self.links.network.links[link].transmitting.is_none();
            let waiting = self.links.network.links[link]
                .counters
                .waiting
                .iter()
                .any(|&n| n > 0);
            let begins = router.as_ref().filter(|_| idle && waiting)?.next_begins()?;
            Some((link as u32, begins.max(self.reached)))
        };
        let first = self.routers.iter().enumerate().filter_map(of_link);
        let first = first.min_by_key(|&(link, begins)| (begins, link));
        first.filter(|&(_, begins)| begins <= at && begins < self.end)
    }

    fn read_meter(&mut self, now: Time) {
        if let Some(meter) = &mut self.meter
            && meter.next <= now
        {
            meter.read(&self.links, now);
        }
    }

    /// Takes what queues of the kernel have let out for links that are idle.
    fn ask_kernel_queues(&mut self, now: Time) {
        for link in 0..self.routers.len() {
            if self.routers[link].is_some() {
                self.with_links(|links, ends| links.ask_queue(link as u32, now, ends));
            }
        }
    }

    /// Compares the drops of the kernel's queues with those that were noticed, and the rate of their
    /// links with what the shaper let out; returns what is wrong.
    ///
    /// # Errors
    /// When the kernel does not answer.
    pub fn check_kernel_queues(&self) -> io::Result<Option<String>> {
        let links = &self.links.network.links;
        for (router, link) in self.routers.iter().zip(links) {
            if let Some(router) = router {
                let unknown = link.counters.waiting.iter().sum();
                let wrong = router.check_drops(link.counters.passed.dropped, unknown)?;
                let wrong = wrong.or_else(|| router.check_shaper(self.end - Time::ZERO));
                if let Some(wrong) = wrong {
                    return Ok(Some(format!("{}: {wrong}", link.name)));
                }
            }
        }
        Ok(None)
    }

    /// Reads what the hosts behind a device have sent: those of `Side::BOTH` of the first group,
    /// then those of the next.
    fn read_device(&mut self, device: usize, now: Time) -> io::Result<()> {
        let (group, side) = (device / 2, Side::BOTH[device % 2]);
        for _ in 0..BATCH {
            let tun = &self.spaces[group][side as usize].tun;
            let Some(length) = tun.read(&mut self.scratch)? else {
                break;
            };
            self.enters(group, side, length, now);
        }
        Ok(())
    }

    /// A host has sent the packet in `scratch`.
    fn enters(&mut self, group: usize, side: Side, length: usize, now: Time) {
        if self.ect1[group] {
            packet::request_low_latency(&mut self.scratch[..length]);
        }
        let bytes = &self.scratch[..length];
        let largest = &mut self.punctuality.largest_packet;
        *largest = (*largest).max(length);
        let place = Headers::of(bytes).and_then(|headers| {
            let table = &self.links.network.flows;
            let place = self.flows.place(group, side, &headers, table, now)?;
            Some((place, headers.tcp_payload(), headers.traffic_class()))
        });
        let Some((place, payload, class)) = place else {
            self.punctuality.strays += 1;
            return;
        };
        let counts = &mut self.counts[group];
        counts.entered[side as usize] += 1;
        let sends_data = side == Side::Sending || self.has_users[group];
        counts.data_packets += u64::from(sends_data && payload > 0);
        let content = self.buffers.put(bytes);
        if let Some(observer) = &mut self.observers[group]
            && let Some(headers) = Headers::of(bytes)
        {
            self.buffers.notes[content.0 as usize] = observer.enters(side, &headers, now);
        }
        let id = u16::from_be_bytes([bytes[4], bytes[5]]);
        let to = Address {
            flow: place.flow,
            endpoint: 0,
            route: place.route,
            id,
        };
        self.links
            .emit((content, ecn_of(class)), length as u32, to, now, |_| {
                unreachable!("kernels decide on sizes themselves, and laws of them are refused")
            });
    }

    fn carry_out(&mut self, event: Event) -> io::Result<()> {
        let at = event.at();
        match event.class() {
            Class::LinkFree => {
                self.with_links(|links, ends| links.on_link_free(event.index(), at, ends))
            }
            Class::Wire => self.links.on_wire(event.index(), at),
            Class::QueueWakeup => {
                self.with_links(|links, ends| links.on_queue_wakeup(event.index(), at, ends));
            }
            Class::Arrival => {
                if let Some(bytes) = self.arrives(event.index(), at)? {
                    self.punctuality.handed_over(bytes, at, self.clock.now());
                }
            }
            Class::Measure if event.index() == 0 => {
                self.links
                    .start_measuring(!self.scenario.phases.is_empty(), at);
                self.counts_before = self.counts.clone();
            }
            Class::Measure => {
                self.end_phase(at);
                self.links.start_phase(at);
            }
            Class::Sample => {
                self.links.sample(at, &mut self.series);
                if let Some(series) = &self.scenario.series {
                    let again = Event::new(at + series.interval, Class::Sample, 0);
                    self.links.scheduler.add(again);
                }
            }
            Class::ReceiverTimer | Class::SenderTimer | Class::Connection | Class::Source => {
                unreachable!("hosts are elsewhere")
            }
        }
        Ok(())
    }

    fn with_links(&mut self, act: impl FnOnce(&mut Links, &mut RealEnds<'_>)) {
        let flows = Arc::clone(&self.links.network.flows);
        act(
            &mut self.links,
            &mut RealEnds {
                buffers: &mut self.buffers,
                counts: &mut self.counts,
                observers: &mut self.observers,
                routes: &self.routes,
                meter: &mut self.meter,
                captured: &mut self.captured,
                log: &mut self.log,
                routers: &self.routers,
                flows: &flows,
            },
        );
        if let Some(captured) = &mut self.captured {
            captured.note_laws(&self.links.network.links);
        }
        if let Some(log) = &mut self.log {
            let links = &self.links.network.links;
            log.note_laws(|link| links[link as usize].queue.internals());
        }
    }

    /// The packet at the head of a delay line arrives. If it was handed to a host, returns the bytes
    /// that a receiver of data got (zero for a packet of the other direction).
    fn arrives(&mut self, line: u32, at: Time) -> io::Result<Option<u64>> {
        let paths = &self.links.network.paths;
        if let Target::Link(link) = paths.target(line) {
            let content = paths.head(line).content;
            let router = self.routers[link as usize].clone();
            if let Some(router) = &router {
                router.arrives(self.buffers.get(content));
                router.let_link_read(true); // an idle queue lets the packet pass at once
            }
            self.with_links(|links, ends| links.on_arrival(line, link, at, ends));
            if let Some(router) = &router {
                router.let_link_read(self.lookahead.is_none());
            }
            return Ok(None);
        }
        let paths = &mut self.links.network.paths;
        let packet = *paths.take(line, &mut self.links.scheduler);
        let (group, back) = self.routes[packet.route as usize];
        let buffer = self.buffers.get_mut(packet.content);
        let side = if back { Side::Sending } else { Side::Receiving };
        let counts = &mut self.counts[group as usize];
        counts.left[usize::from(back)] += 1;
        if !back && let Some(headers) = Headers::of(buffer) {
            counts.arrived_bytes += u64::from(headers.tcp_payload());
        }
        if let Some(observer) = &mut self.observers[group as usize] {
            let note = self.buffers.note(packet.content);
            if let Some(headers) = Headers::of(self.buffers.get(packet.content)) {
                observer.leaves(usize::from(back), note, &headers, at);
            }
        }
        let buffer = self.buffers.get_mut(packet.content);
        if !back
            && let Some(handover) = &self.handover
            && handover.takes(at, self.now)
        {
            handover.send(Parcel {
                group: group as usize,
                bytes: self.buffers.take(packet.content),
                at,
            });
            return Ok(None);
        }
        self.spaces[group as usize][side as usize]
            .tun
            .write(buffer)?;
        self.buffers.free(packet.content);
        Ok(Some(if back { 0 } else { u64::from(packet.size) }))
    }

    fn end_phase(&mut self, now: Time) {
        let phase = format!("phase{}.", self.phase);
        self.phase += 1;
        report::phase_links(
            &mut self.links,
            self.scenario,
            &phase,
            now,
            &mut self.phase_metrics,
        );
    }

    /// The run has ended: returns the links, with their measurements.
    ///
    /// # Panics
    /// When packets are not conserved: a fault of redtail.
    pub fn finish(&mut self) -> &mut Links {
        let now = self.end;
        if !self.scenario.phases.is_empty() {
            self.end_phase(now);
        }
        self.links.end_transmissions(now);
        self.check_conservation();
        &mut self.links
    }

    /// Checks that the packets that entered have left, were lost, or are still inside.
    fn check_conservation(&self) {
        self.links.check_conservation();
        let mut inside = vec![[0u64; 2]; self.counts.len()];
        let mut count = |route: u32| {
            let (group, back) = self.routes[route as usize];
            inside[group as usize][usize::from(back)] += 1;
        };
        for packet in self.links.network.in_flight() {
            count(packet.route);
        }
        for link in &self.links.network.links {
            link.leaving().for_each(|packet| count(packet.route));
        }
        let waiting: u64 = self
            .links
            .network
            .links
            .iter()
            .flat_map(|link| &link.counters.waiting)
            .sum();
        let held: u64 = inside.iter().flatten().sum();
        let sum =
            |of: fn(&GroupCounts) -> [u64; 2]| -> u64 { self.counts.iter().flat_map(of).sum() };
        let (entered, left, lost) = (sum(|it| it.entered), sum(|it| it.left), sum(|it| it.lost));
        assert_eq!(
            entered + sum(|it| it.copied),
            left + lost + held + waiting,
            "packets do not add up: {left} left, {lost} lost, {held} in flight, {waiting} waiting"
        );
    }
}

impl Part for Emulator<'_> {
    fn act(&mut self, now: Time) -> io::Result<()> {
        self.catch_up(now)?;
        self.read_meter(now);
        if self.lookahead.is_none() {
            self.ask_kernel_queues(now);
        }
        Ok(())
    }

    fn next(&self) -> Time {
        let scheduler = &self.links.scheduler;
        match &self.lookahead {
            Some(lookahead) => scheduler.horizon(lookahead),
            None => scheduler.first().map_or(Time::MAX, |event| event.at()),
        }
    }

    fn owns(&self, datum: u64) -> bool {
        datum & DEVICES != 0
    }

    fn ready(&mut self, datum: u64) -> io::Result<()> {
        let now = self.clock.now().min(self.end);
        if datum == ROUTER {
            for router in self.routers.iter().flatten() {
                router.read_output(now)?;
            }
            return self.catch_up(now);
        }
        self.catch_up(now)?;
        self.read_device((datum - DEVICES) as usize, now)
    }
}

fn ecn_of(class: u8) -> Ecn {
    match class & 3 {
        0 => Ecn::NotEct,
        1 => Ecn::Ect1,
        2 => Ecn::Ect0,
        _ => Ecn::Ce,
    }
}
