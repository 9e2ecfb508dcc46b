//! The run loop.
//!
//! The order of events is total: see [`Class`]. The measurement period is [warm-up, duration): an
//! event at the end of the duration does not happen.

mod report;
mod run;
mod users;

use std::sync::atomic::{AtomicBool, Ordering};

use redtail_core::{Time, prefetch};
use redtail_qdisc::{DropReason, Plugins, QueueDiscipline, Sink, TcpHeader};
use redtail_spec::Scenario;
use redtail_traffic::{Application, Traces};
use redtail_transport::SenderCounters;

use crate::capacity::Capacity;
use crate::capture::{End, Recorder};
use crate::connections::{Reached, Side};
use crate::conservation::{self, LinkPassed};
use crate::flows::{FlowKind, Flows, Source};
use crate::header;
use crate::network::{Address, Link, Network, Route, Target, compile};
use crate::packet::{Content, ContentId, Contents, Datagram, SimPacket};
use crate::result::RunResult;
use crate::scheduler::{Alarm, Class, Event, Scheduler};
use crate::series::Sampler;
use crate::statistics::{LinkStatistics, Measured, PacketOwner};

pub use run::{RunError, RunOptions, run};

/// Events between two checks of the cancel flag. The work of an event is bounded (by windows,
/// backlogs and `MOST_UPDATES` of a law) and rarely takes a millisecond.
const CANCEL_INTERVAL: u64 = 1 << 8;

/// From about this number on, endpoints are evicted from the second-level cache between two of
/// their packets.
const MANY_FLOWS: usize = 1000;

/// The counters of one link.
#[derive(Debug)]
struct LinkBooks {
    passed: LinkPassed,
    /// Packets waiting, by group.
    waiting: Vec<u64>,
    /// `None` during the warm-up.
    statistics: Option<Measured>,
}

/// The run was cancelled before its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Cancelled;

struct Engine<'a> {
    scenario: &'a Scenario,
    now: Time,
    end: Time,
    measure_from: Time,
    scheduler: Scheduler,
    network: Network,
    flows: Flows,
    books: Vec<LinkBooks>,
    /// Packets dropped or lost on a wire, by flow and direction (0 data, 1 acknowledgements).
    dropped: Vec<[u64; 2]>,
    sampler: Option<Sampler>,
    recorder: Option<Box<Recorder<'a>>>,
    /// The alarm for the segment that pacing holds back, by sender.
    releases: Vec<Alarm>,
    /// Whether there are more endpoints than the cache holds.
    many_flows: bool,
    /// Connections on which a user's program has acted.
    touched: Vec<u32>,
    /// The counters of the senders of each group when the measurement began.
    done_before: Vec<SenderCounters>,
    /// The bytes that had reached the receivers of each group when the measurement began.
    reached_before: Vec<Reached>,
    phases: Phases,
    events: u64,
}

/// The measurements of the phases.
#[derive(Debug, Default)]
struct Phases {
    /// Number of the present phase, from 1.
    number: u32,
    /// When the present phase began.
    since: Time,
    /// The bytes that had reached the receivers when the phase began, by group.
    reached_before: Vec<Reached>,
    /// Metrics of the phases that have ended.
    metrics: Vec<(String, f64)>,
}

/// Receives the drops and marks of a queue during one call.
struct QueueEvents<'a> {
    books: &'a mut LinkBooks,
    dropped: &'a mut [[u64; 2]],
    flows: &'a mut Flows,
    routes: &'a [Route],
    contents: &'a mut Contents,
    measure_from: Time,
    /// The packet being offered, unless it has been dropped.
    arriving: Option<ContentId>,
}

/// Counts a packet that was dropped or lost, for its flow. `dropped` counts by flow and direction
/// (0 data, 1 acknowledgements); users' connections have their own counters.
fn note_loss(
    flows: &mut Flows,
    dropped: &mut [[u64; 2]],
    contents: &Contents,
    packet: &SimPacket,
    measure_from: Time,
) {
    let direction = match flows.kind(packet.flow) {
        FlowKind::Udp(i) => {
            let sent = contents.datagram(packet.content).sent;
            flows.udp[i as usize].lost += u64::from(sent >= measure_from);
            0
        }
        FlowKind::Tcp(i) => usize::from(packet.route == flows.receivers[i as usize].route),
        FlowKind::Connection => {
            let routes = flows.connections.get(packet.endpoint).routes;
            let from = match packet.route == routes[Side::Client as usize] {
                true => Side::Client,
                false => Side::Server,
            };
            flows.connections.on_loss(packet.endpoint, from);
            return;
        }
    };
    dropped[packet.flow as usize][direction] += 1;
}

/// The group of the packet that a link is transmitting, and the start of the transmission.
fn in_transmission(link: &Link, routes: &[Route]) -> Option<(usize, Time)> {
    let (packet, since) = link.transmitting.as_ref()?;
    Some((routes[packet.route as usize].group as usize, *since))
}

impl Sink<SimPacket> for QueueEvents<'_> {
    fn dropped(&mut self, packet: SimPacket, _reason: DropReason, now: Time) {
        let group = self.routes[packet.route as usize].group as usize;
        let waited = self.arriving != Some(packet.content);
        if !waited {
            self.arriving = None;
        }
        self.books.passed.dropped += 1;
        self.books.waiting[group] -= u64::from(waited);
        let (flows, dropped) = (&mut *self.flows, &mut *self.dropped);
        note_loss(flows, dropped, self.contents, &packet, self.measure_from);
        self.contents.free(packet.content);
        if let Some(statistics) = &mut self.books.statistics {
            let flow = packet.flow;
            let waited = waited.then_some(packet.stamp);
            statistics.on_drop(PacketOwner { group, flow }, waited, now);
        }
    }

    fn marked(&mut self, packet: &SimPacket, _now: Time) {
        let group = self.routes[packet.route as usize].group as usize;
        if let Some(statistics) = &mut self.books.statistics {
            let waited = self.arriving != Some(packet.content);
            statistics.on_mark(group, waited.then_some(packet.stamp));
        }
    }

    fn tcp_header(&self, packet: &SimPacket) -> Option<TcpHeader> {
        let group = self.routes[packet.route as usize].group as usize;
        match self.contents.get(packet.content) {
            Content::Segment(segment) => Some(header::of_segment(
                self.flows.options[group]?,
                packet,
                segment,
            )),
            Content::Datagram(_) => None,
        }
    }
}

impl<'a> Engine<'a> {
    fn new(scenario: &'a Scenario, plugins: &Plugins, traces: &Traces) -> Self {
        let (network, routes) = compile(scenario, plugins);
        let mut flows = Flows::new(scenario, &routes, traces);
        let groups = scenario.traffic.len();
        let mut scheduler = Scheduler::new(network.links.len(), network.line_count());
        let measure_from = Time::ZERO + scenario.warmup;
        scheduler.add(Event::new(measure_from, Class::Measure, 0));
        for (phase, &at) in (1..).zip(&scenario.phases) {
            scheduler.add(Event::new(Time::ZERO + at, Class::Measure, phase));
        }
        for (flow, &start) in flows.starts.iter().enumerate() {
            let stop = flows.stops[flow];
            if let Source::User(user) = flows.sources[flow] {
                let slot = &mut flows.users[user as usize];
                let program = slot.program.as_deref();
                let first = program.and_then(Application::next_wakeup);
                slot.alarm
                    .arm(first, Class::Source, flow as u32, &mut scheduler);
                continue;
            }
            if start < stop {
                scheduler.add(Event::new(start, Class::Source, flow as u32));
            }
            if stop < Time::ZERO + scenario.duration
                && matches!(flows.sources[flow], Source::Tcp(_))
            {
                scheduler.add(Event::new(stop, Class::Source, flow as u32));
            }
        }
        let sampler = scenario.series.clone().map(Sampler::new);
        if sampler.is_some() {
            scheduler.add(Event::new(Time::ZERO, Class::Sample, 0));
        }
        let books = network.links.iter().map(|_| LinkBooks {
            passed: LinkPassed::default(),
            waiting: vec![0; groups],
            statistics: None,
        });
        Self {
            scenario,
            now: Time::ZERO,
            end: Time::ZERO + scenario.duration,
            measure_from,
            scheduler,
            books: books.collect(),
            dropped: vec![[0; 2]; flows.groups.len()],
            network,
            sampler,
            recorder: None,
            releases: vec![Alarm::default(); flows.senders.len()],
            many_flows: flows.groups.len() > MANY_FLOWS,
            touched: Vec::new(),
            done_before: Vec::new(),
            reached_before: Vec::new(),
            phases: Phases::default(),
            events: 0,
            flows,
        }
    }

    fn run(&mut self, cancel: &AtomicBool) -> Result<(), Cancelled> {
        while let Some(event) = self.scheduler.next() {
            if event.at() >= self.end {
                break;
            }
            debug_assert!(event.at() >= self.now, "time went back");
            self.now = event.at();
            self.events += 1;
            if self.events.is_multiple_of(CANCEL_INTERVAL) && self.is_stopped(cancel) {
                return Err(Cancelled);
            }
            match event.class() {
                Class::LinkFree => self.on_link_free(event.index()),
                Class::Arrival => self.on_arrival(event.index()),
                Class::SenderTimer => self.on_sender_timer(event.index()),
                Class::ReceiverTimer => self.on_receiver_timer(event.index()),
                Class::Connection => self.on_connection_timer(event.index()),
                Class::Source => self.on_source(event.index()),
                Class::QueueWakeup => self.on_queue_wakeup(event.index()),
                Class::Sample => self.on_sample(),
                Class::Measure if event.index() == 0 => self.on_measure(),
                Class::Measure => self.on_phase(),
            }
        }
        self.now = self.end;
        Ok(())
    }

    fn is_stopped(&self, cancel: &AtomicBool) -> bool {
        let in_vain = |recorder: &Recorder<'_>| recorder.has_failed();
        cancel.load(Ordering::Relaxed) || self.recorder.as_deref().is_some_and(in_vain)
    }

    /// The packet at the head of a delay line arrives.
    #[inline]
    fn on_arrival(&mut self, line: u32) {
        let (mut packet, target) = self.network.arrive(line, &mut self.scheduler);
        if self.many_flows {
            self.network.prefetch(line, 8);
        }
        if let Target::Link(link) = target {
            packet.leg += 1;
            self.offer(link, packet);
            return;
        }
        if target == Target::Departure {
            packet.leg += 1;
            self.network.send(packet, self.now, &mut self.scheduler);
            return;
        }
        if self.many_flows {
            self.prefetch_after(line);
        }
        // The packet leaves the network. Its memory may be reused for the answer.
        let contents = &mut self.network.contents;
        contents.free(packet.content);
        match target {
            Target::Receiver => {
                let segment = contents.segment_on_arrival(&packet);
                self.flows.receivers[packet.endpoint as usize].hear(segment, self.now);
                self.receiver_transmits(packet.endpoint);
            }
            Target::Sender => {
                let segment = contents.segment_on_arrival(&packet);
                self.flows.senders[packet.endpoint as usize].hear(segment, self.now);
                self.sender_transmits(packet.endpoint);
            }
            Target::UdpSink => {
                let slot = &mut self.flows.udp[packet.endpoint as usize];
                let datagram = contents.datagram(packet.content);
                let took = slot.hear(datagram, packet.size, self.now, self.measure_from);
                if let Some(took) = took {
                    let group = self.flows.groups[packet.flow as usize];
                    self.flows.delays[group as usize].record(took);
                }
            }
            Target::Client => {
                contents.segment_on_arrival(&packet);
                self.client_hears(packet.endpoint, packet.content);
            }
            Target::Server => {
                contents.segment_on_arrival(&packet);
                self.server_hears(packet.endpoint, packet.content);
            }
            Target::Link(_) | Target::Departure => unreachable!("handled above"),
        }
    }

    /// Prefetches into the cache the data of the next arrivals from `line`: first their entries in
    /// the line, then their endpoints and contents, then what these point to.
    fn prefetch_after(&self, line: u32) {
        if let Some((packet, target)) = self.network.upcoming(line, 1) {
            let endpoint = packet.endpoint as usize;
            match target {
                Target::Receiver => {
                    self.flows.receivers[endpoint].receiver.prefetch();
                    self.flows.senders[endpoint].sender.prefetch();
                }
                Target::Sender => self.flows.senders[endpoint].sender.prefetch(),
                Target::UdpSink
                | Target::Client
                | Target::Server
                | Target::Departure
                | Target::Link(_) => {}
            }
        }
        if let Some((packet, target)) = self.network.upcoming(line, 4) {
            prefetch(self.network.contents.get(packet.content));
            let endpoint = packet.endpoint as usize;
            match target {
                Target::Receiver => {
                    prefetch(&self.flows.receivers[endpoint]);
                    // The answer often arrives soon.
                    prefetch(&self.flows.senders[endpoint]);
                }
                Target::Sender => prefetch(&self.flows.senders[endpoint]),
                Target::UdpSink
                | Target::Client
                | Target::Server
                | Target::Departure
                | Target::Link(_) => {}
            }
        }
    }

    /// A packet reaches a link's queue.
    #[inline]
    fn offer(&mut self, index: u32, packet: SimPacket) {
        if self.recorder.is_some() {
            self.record(index, End::In, &packet);
        }
        let link = &mut self.network.links[index as usize];
        let group = self.network.routes[packet.route as usize].group as usize;
        let flow = packet.flow;
        let books = &mut self.books[index as usize];
        books.passed.arrived += 1;
        let mut events = QueueEvents {
            books,
            dropped: &mut self.dropped,
            flows: &mut self.flows,
            routes: &self.network.routes,
            contents: &mut self.network.contents,
            measure_from: self.measure_from,
            arriving: Some(packet.content),
        };
        let outlook = link.queue.arrive(packet, self.now, &mut events);
        let admitted = events.arriving.is_some();
        books.waiting[group] += u64::from(admitted);
        if let Some(statistics) = &mut books.statistics {
            let owner = PacketOwner { group, flow };
            statistics.on_arrival(owner, admitted, outlook.backlog, self.now);
        }
        let wakeup = if link.transmitting.is_none() {
            self.transmit_next(index)
        } else {
            outlook.wakeup
        };
        self.arm_queue(index, wakeup);
    }

    /// Begins the next transmission of an idle link, if there is a packet. Returns when the queue
    /// is to be woken next.
    #[inline]
    fn transmit_next(&mut self, index: u32) -> Option<Time> {
        if self.network.links[index as usize].capacity.is_some() {
            return self.transmit_next_changing(index);
        }
        let (free, wakeup) = self.begin(index, |link, size, now| now + link.transmitter.time(size));
        self.scheduler.set_link(index, free);
        wakeup
    }

    /// As [`Engine::transmit_next`], for a link whose rate is not constant.
    #[cold]
    fn transmit_next_changing(&mut self, index: u32) -> Option<Time> {
        let link = &mut self.network.links[index as usize];
        let (free, wakeup) = match link.capacity.as_deref_mut() {
            Some(Capacity::Trace(deliveries)) => {
                let next = deliveries.next_after(self.now);
                let some = link.transmitting.is_some() || link.queue.backlog().packets > 0;
                (some.then_some(next), link.queue.next_wakeup())
            }
            _ => self.begin(index, |link, size, now| match link.capacity.as_deref() {
                Some(Capacity::Steps(steps)) => steps.end(now, size),
                _ => unreachable!("the rate changes by steps"),
            }),
        };
        self.scheduler.set_link(index, free);
        wakeup
    }

    /// Begins to transmit the next packet from a link's queue, if there is one. `end` computes the
    /// end of the transmission from the packet's size and the present time. Returns this end, and
    /// when the queue is to be woken next.
    #[inline(always)]
    fn begin(
        &mut self,
        index: u32,
        end: impl FnOnce(&mut Link, u32, Time) -> Time,
    ) -> (Option<Time>, Option<Time>) {
        let link = &mut self.network.links[index as usize];
        let books = &mut self.books[index as usize];
        let mut events = QueueEvents {
            books,
            dropped: &mut self.dropped,
            flows: &mut self.flows,
            routes: &self.network.routes,
            contents: &mut self.network.contents,
            measure_from: self.measure_from,
            arriving: None,
        };
        let (now, transmitting) = (self.now, &mut link.transmitting);
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
        if let Some(statistics) = &mut books.statistics {
            statistics.on_departure(group, now - stamp, outlook.backlog, now);
        }
        let free = end(link, size, now);
        (Some(free), outlook.wakeup)
    }

    /// A link finished a transmission.
    #[inline]
    fn on_link_free(&mut self, index: u32) {
        if self.network.links[index as usize].has_trace() {
            self.on_opportunity(index);
            return;
        }
        self.send_off(index);
        let wakeup = self.transmit_next(index);
        self.arm_queue(index, wakeup);
    }

    /// A trace has one or more opportunities to deliver at this time.
    #[cold]
    fn on_opportunity(&mut self, index: u32) {
        let mut room = match self.network.links[index as usize].deliveries() {
            Some(deliveries) => deliveries.room(self.now),
            None => unreachable!("this link has a trace"),
        };
        while room > 0 {
            let idle = self.network.links[index as usize].transmitting.is_none();
            let begin = |link: &mut Link, size, now| {
                link.deliveries().expect("it is there").left = size;
                now
            };
            if idle && self.begin(index, begin).0.is_none() {
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
                self.send_off(index);
            }
        }
        let wakeup = self.transmit_next(index);
        self.arm_queue(index, wakeup);
    }

    /// The packet being transmitted has been sent completely.
    #[inline(always)]
    fn send_off(&mut self, index: u32) {
        let link = &mut self.network.links[index as usize];
        let (packet, since) = link.transmitting.take().expect("the link was transmitting");
        if self.recorder.is_some() {
            self.record(index, End::Out, &packet);
        }
        let link = &mut self.network.links[index as usize];
        let group = self.network.routes[packet.route as usize].group as usize;
        let books = &mut self.books[index as usize];
        books.passed.departed += 1;
        if let Some(statistics) = &mut books.statistics {
            statistics.on_transmitted(group, since, self.now, link.capacity.as_deref());
        }
        let measuring = books.statistics.is_some();
        if let Some(wire) = &mut link.wire
            && wire.loses(measuring)
        {
            self.lose(packet);
        } else {
            self.network.send(packet, self.now, &mut self.scheduler);
        }
    }

    /// A packet is lost on the wire.
    #[cold]
    fn lose(&mut self, packet: SimPacket) {
        let (flows, contents) = (&mut self.flows, &mut self.network.contents);
        note_loss(
            flows,
            &mut self.dropped,
            contents,
            &packet,
            self.measure_from,
        );
        contents.free(packet.content);
    }

    /// Passes a packet to the recorder, which must exist.
    #[cold]
    fn record(&mut self, link: u32, end: End, packet: &SimPacket) {
        if let Some(recorder) = &mut self.recorder {
            let content = self.network.contents.get(packet.content);
            let connection = match self.flows.kind(packet.flow) {
                FlowKind::Connection => Some(self.flows.connections.get(packet.endpoint).number),
                FlowKind::Tcp(_) | FlowKind::Udp(_) => None,
            };
            recorder.record(link, end, packet, content, connection, self.now);
        }
    }

    /// Schedules the wakeup of a queue.
    #[inline]
    fn arm_queue(&mut self, index: u32, wakeup: Option<Time>) {
        let link = &mut self.network.links[index as usize];
        if let Some(at) = wakeup
            && link.wakeup.is_none_or(|armed| at < armed)
        {
            link.wakeup = Some(at);
            self.scheduler
                .add(Event::new(at.max(self.now), Class::QueueWakeup, index));
        }
    }

    fn on_queue_wakeup(&mut self, index: u32) {
        let link = &mut self.network.links[index as usize];
        if link.wakeup.is_none_or(|armed| armed > self.now) {
            return; // replaced by an earlier wakeup
        }
        link.wakeup = None;
        if link.queue.next_wakeup().is_some_and(|at| at <= self.now) {
            link.queue.on_wakeup(self.now);
        }
        if link.transmitting.is_none() {
            self.transmit_next(index);
        }
        let link = &self.network.links[index as usize];
        let next = link.queue.next_wakeup();
        if next.is_some_and(|at| at <= self.now) {
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
        self.arm_queue(index, next);
    }

    /// Sends all segments that a sender may send now.
    #[inline]
    fn sender_transmits(&mut self, index: u32) {
        let slot = &mut self.flows.senders[index as usize];
        while let Some(segment) = slot.sender.poll_transmit(self.now) {
            slot.passed.sent += 1;
            let size = segment.len + slot.header;
            let to = Address {
                flow: slot.flow,
                endpoint: index,
                route: slot.route,
                id: slot.passed.sent as u16,
            };
            let content = Content::Segment(segment);
            self.network
                .emit(content, size, to, self.now, &mut self.scheduler);
        }
        if slot.sender.is_complete() && slot.completed.is_none() {
            slot.completed = Some(self.now);
        }
        let deadline = slot.sender.next_timer();
        slot.alarm
            .arm(deadline, Class::SenderTimer, index, &mut self.scheduler);
        // Releases have a separate alarm, so that the distant timer of the other one is not
        // rescheduled.
        if let Some(release) = slot.sender.next_release() {
            let alarm = &mut self.releases[index as usize];
            alarm.arm(
                Some(release),
                Class::SenderTimer,
                index,
                &mut self.scheduler,
            );
        }
    }

    #[inline]
    fn receiver_transmits(&mut self, index: u32) {
        let slot = &mut self.flows.receivers[index as usize];
        let mut delivered = false;
        while let Some(segment) = slot.receiver.poll_transmit(self.now) {
            slot.passed.sent += 1;
            if slot.at_once {
                // A return path without delay needs no event.
                self.flows.senders[index as usize].hear(&segment, self.now);
                delivered = true;
                continue;
            }
            let to = Address {
                flow: slot.flow,
                endpoint: index,
                route: slot.route,
                id: slot.passed.sent as u16,
            };
            let content = Content::Segment(segment);
            self.network
                .emit(content, slot.header, to, self.now, &mut self.scheduler);
        }
        let deadline = slot.receiver.next_wakeup();
        slot.alarm
            .arm(deadline, Class::ReceiverTimer, index, &mut self.scheduler);
        if delivered {
            self.sender_transmits(index);
        }
    }

    fn on_sender_timer(&mut self, index: u32) {
        let slot = &mut self.flows.senders[index as usize];
        let released = self.releases[index as usize].rings(self.now);
        if slot.alarm.rings(self.now) || released {
            slot.sender.on_wakeup(self.now);
            self.sender_transmits(index);
        }
    }

    fn on_receiver_timer(&mut self, index: u32) {
        let slot = &mut self.flows.receivers[index as usize];
        if slot.alarm.rings(self.now) {
            slot.receiver.on_wakeup(self.now);
            self.receiver_transmits(index);
        }
    }

    /// A TCP flow starts or stops, a UDP source sends, or a user acts.
    fn on_source(&mut self, flow: u32) {
        match self.flows.sources[flow as usize] {
            Source::User(user) => self.on_user(user),
            Source::Tcp(i) => {
                let slot = &mut self.flows.senders[i as usize];
                if self.now < self.flows.stops[flow as usize] {
                    slot.sender.open(slot.handshake);
                } else {
                    slot.sender.close();
                }
                self.sender_transmits(i);
            }
            Source::Udp(i) => {
                let slot = &mut self.flows.udp[i as usize];
                let (size, gap) = slot.send();
                let content = Content::Datagram(Datagram {
                    number: slot.next,
                    sent: self.now,
                });
                slot.next += 1;
                slot.passed.sent += 1;
                let to = Address {
                    flow,
                    endpoint: i,
                    route: slot.route,
                    id: slot.passed.sent as u16,
                };
                let again = self.now + gap;
                self.network
                    .emit(content, size, to, self.now, &mut self.scheduler);
                if again < self.flows.stops[flow as usize] {
                    self.scheduler.add(Event::new(again, Class::Source, flow));
                }
            }
        }
    }

    fn on_sample(&mut self) {
        let sampler = self
            .sampler
            .as_mut()
            .expect("samples are scheduled on request");
        sampler.sample(&self.network, &self.flows, self.now);
        let again = self.now + sampler.request.interval;
        self.scheduler.add(Event::new(again, Class::Sample, 0));
    }

    /// The measurement period begins.
    fn on_measure(&mut self) {
        let phases = !self.scenario.phases.is_empty();
        for (link, books) in self.network.links.iter().zip(&mut self.books) {
            let begin = || LinkStatistics::new(self.now, &books.waiting, link.round_trip);
            books.statistics = Some(Measured {
                whole: begin(),
                phase: phases.then(|| Box::new(begin())),
            });
        }
        for link in &mut self.network.links {
            link.queue.start_measuring(self.now);
        }
        self.network.start_measuring();
        for slot in &mut self.flows.receivers {
            slot.reached_before = slot.reached();
        }
        for slot in &mut self.flows.senders {
            slot.sender.forget_waits();
        }
        self.flows.connections.forget_waits();
        for answers in self.flows.answers.iter_mut().flatten() {
            answers.begin(self.now);
        }
        for user in &mut self.flows.users {
            if let Some(program) = &mut user.program {
                program.start_measuring(self.now);
            }
        }
        self.done_before = self.done_by_group();
        self.reached_before = self.reached_by_group();
        self.begin_phase();
    }

    /// One phase ends and the next begins.
    fn on_phase(&mut self) {
        self.end_phase();
        for (link, books) in self.network.links.iter().zip(&mut self.books) {
            let begin = LinkStatistics::new(self.now, &books.waiting, link.round_trip);
            let statistics = books.statistics.as_mut().expect("the warm-up is over");
            statistics.phase = Some(Box::new(begin));
        }
        self.begin_phase();
    }

    /// The counters of the senders of each group so far.
    fn done_by_group(&self) -> Vec<SenderCounters> {
        let mut done = vec![SenderCounters::default(); self.scenario.traffic.len()];
        for slot in &self.flows.senders {
            done[self.flows.groups[slot.flow as usize] as usize] += slot.sender.counters();
        }
        for (group, done) in (0..).zip(&mut done) {
            *done += self.flows.connections.done(group);
        }
        done
    }

    fn finish(mut self) -> RunResult {
        if !self.scenario.phases.is_empty() {
            self.end_phase();
        }
        // A transmission that the end of the run interrupts has used the link up to the end.
        for (link, books) in self.network.links.iter().zip(&mut self.books) {
            if let (Some((group, since)), Some(statistics)) = (
                in_transmission(link, &self.network.routes),
                &mut books.statistics,
            ) {
                let capacity = link.capacity.as_deref();
                statistics.on_transmitted(group, since, self.now, capacity);
            }
        }
        let passed: Vec<LinkPassed> = self.books.iter().map(|books| books.passed).collect();
        let forward = self
            .network
            .links
            .iter()
            .zip(&passed)
            .filter(|(link, _)| link.forward);
        let mut result = RunResult {
            links: self
                .network
                .links
                .iter()
                .map(|link| link.name.clone())
                .collect(),
            groups: self
                .scenario
                .traffic
                .iter()
                .map(|g| g.access().name.to_owned())
                .collect(),
            bottleneck_packets: forward.map(|(_, passed)| passed.departed).sum(),
            events: self.events,
            ..RunResult::default()
        };
        self.report_links(&mut result);
        self.report_flows(&mut result);
        result.metrics.append(&mut self.phases.metrics);
        result.transfers = self.transfers();
        for (group, answers) in (0..).zip(&self.flows.answers) {
            if let Some(answers) = answers {
                answers.export(group, &mut result.response_times);
            }
        }
        conservation::check(
            &mut self.network,
            &self.flows,
            &passed,
            &self.dropped,
            self.now,
        );
        if let Some(sampler) = self.sampler {
            result.queue_series = sampler.request.queues.then_some(sampler.queues);
            result.flow_series = sampler.request.windows.then_some(sampler.flows);
        }
        result
    }
}
