//! The event log of a run: it compares what senders tell before and after each event, and hears of packets from the
//! links. So nothing that moves packets does anything for it.
//!
//! A run with a log lets nothing lag behind the schedule, so that rows come in the total order of events.

use std::sync::Arc;

use redtail_core::{Span, Time};
use redtail_network::events::{row_of_packet, row_of_pass};
use redtail_network::{
    Class, End, Event, EventRecorder, EventRow, Link, PacketEvent, SimPacket, Target,
};
use redtail_qdisc::{FlowTable, QueueDiscipline};
use redtail_spec::EventKind;
use redtail_traffic::Done;
use redtail_transport::{Episode, Flags, Sender, SenderStory, UndoCause};

use super::Engine;
use super::ends::EngineEnds;
use crate::connections::Side;
use crate::flows::{FlowEnds, Source};
use crate::packet::{Content, Contents};

/// Whose senders an event may change.
#[derive(Clone, Copy, Debug)]
enum Whose {
    Nobodys,
    /// That of a TCP flow.
    Flow(u32),
    /// Those of the connections of a user.
    User(u32),
}

/// Where a sender stands in the table.
#[derive(Clone, Copy, Debug)]
struct Place {
    flow: (u32, u32),
    connection: Option<u64>,
    back: Option<bool>,
}

/// What is known of a sender.
#[derive(Clone, Copy, Debug, Default)]
struct Known {
    story: Option<SenderStory>,
    started: Time,
    /// When the present episode began.
    since: Time,
}

/// A connection of a user that was open after the latest event of the user.
#[derive(Clone, Copy, Debug)]
struct KnownConnection {
    number: u64,
    opened: Time,
    /// Of the client and of the server.
    sides: [Known; 2],
}

/// The log of a run.
#[derive(Debug)]
pub(super) struct Log {
    recorder: EventRecorder,
    senders: Vec<Known>,
    /// By user.
    users: Vec<Vec<KnownConnection>>,
    /// The event that is carried out: when, and whose senders it may change.
    present: (Time, Whose),
    table: Arc<FlowTable>,
    /// Whether a route leads to the side that sends data or serves.
    back: Vec<bool>,
}

impl Log {
    /// A user sees that a page is complete, or that a video goes on.
    pub(super) fn on_user(
        &mut self,
        kind: EventKind,
        reason: Option<&'static str>,
        flow: (u32, u32),
        took: Span,
        now: Time,
    ) {
        let row = EventRow {
            reason,
            flow: Some(flow),
            value: took.as_secs_f64(),
            ..EventRow::default()
        };
        self.recorder.record(kind, now, &row);
    }

    /// A user's response is complete.
    pub(super) fn on_answer(&mut self, flow: (u32, u32), connection: u64, done: &Done, now: Time) {
        let row = EventRow {
            flow: Some(flow),
            connection: Some(connection),
            bytes: Some(done.exchange.response),
            value: (now - done.asked).as_secs_f64(),
            ..EventRow::default()
        };
        self.recorder.record(EventKind::Response, now, &row);
    }

    fn record(
        &mut self,
        kind: EventKind,
        now: Time,
        place: Place,
        story: &SenderStory,
        more: More,
    ) {
        let row = EventRow {
            flow: Some(place.flow),
            connection: place.connection,
            back: place.back,
            cwnd_bytes: story.cwnd,
            ssthresh_bytes: story.ssthresh,
            reason: more.reason,
            sequence: more.sequence,
            bytes: more.bytes,
            value: more.value,
            ..EventRow::default()
        };
        self.recorder.record(kind, now, &row);
    }

    /// Compares what a sender tells with what it told before.
    fn compare(&mut self, sender: &Sender, known: &mut Known, place: Place, now: Time) {
        let is = sender.story();
        let first = known.story.is_none();
        let was = known.story.unwrap_or(SenderStory {
            counters: Default::default(),
            opened: false,
            complete: false,
            episode: Episode::Open,
            state: is.state.filter(|_| !is.has_model),
            undone: None,
            probe: None,
            ..is
        });
        known.story = Some(is);
        let mut tell = |kind, more| self.record(kind, now, place, &is, more);
        if is.opened && !was.opened {
            known.started = now;
            if place.connection.is_none() {
                tell(EventKind::Start, More::NONE);
            }
        }
        let done = is.counters - was.counters;
        for _ in 0..done.stalls {
            tell(EventKind::Stall, More::why("acknowledgement"));
        }
        for _ in 0..done.timeouts {
            let why = if was.handshake { "handshake" } else { "data" };
            let rto = was.rto.as_secs_f64();
            tell(EventKind::Timeout, More::why(why).value(rto).at(is.una));
        }
        let spurious = done.spurious_timeouts + done.spurious_fast_retransmits;
        if spurious > 0 {
            tell_undone(&was, &is, &mut tell);
        }
        if was.idle && !is.idle && is.cwnd < was.cwnd && done.timeouts + done.recoveries == 0 {
            tell(EventKind::IdleRestart, More::value_of(was.cwnd));
        }
        for _ in 0..done.ecn_reductions {
            tell(EventKind::MarkAnswered, More::value_of(was.cwnd));
        }
        let lasted = (now - known.since).as_secs_f64();
        let ends = was.episode != Episode::Open
            && (is.episode != was.episode || done.timeouts + done.recoveries > 0);
        if ends {
            let kind = match was.episode {
                Episode::Recovery => EventKind::RecoveryEnd,
                _ => EventKind::LossEnd,
            };
            let again = was.episode == Episode::Loss && is.episode == Episode::Loss;
            let why = match (done.timeouts > 0, done.recoveries > 0, spurious > 0) {
                (true, ..) => "timeout",
                (_, true, _) if is.episode == Episode::Recovery && !is.handshake => "recovery",
                (_, _, true) => "undo",
                _ => "acknowledged",
            };
            // A further timeout goes on with the same repair.
            if !again {
                tell(kind, More::why(why).value(lasted));
            }
        }
        for _ in 0..done.recoveries {
            tell(EventKind::Recovery, More::NONE.at(is.una));
        }
        if is.episode != Episode::Open
            && (is.episode != was.episode || done.timeouts + done.recoveries > 0)
        {
            known.since = now;
        }
        tell_slow_start_end(&was, &is, &mut tell);
        if is.state != was.state
            && let Some(state) = is.state
        {
            tell(EventKind::State, More::why(state));
        }
        if let Some(alpha) = is.alpha.filter(|_| is.alpha != was.alpha || first) {
            tell(EventKind::Alpha, More::value_of(alpha));
        }
        if done.retransmissions > 0 {
            tell_resent(sender, done.retransmissions, now, &mut tell);
        }
        if let Some((sent, end, repeated)) = is.probe.filter(|_| is.probe != was.probe)
            && sent == now
        {
            let why = if repeated { "last_segment" } else { "new_data" };
            tell(EventKind::TailLossProbe, More::why(why).at(end));
        }
        if is.complete && !was.complete && place.connection.is_none() {
            let took = (now - known.started).as_secs_f64();
            tell(EventKind::End, More::value_of(took));
        }
    }
}

/// What a row says beside the state of the sender.
#[derive(Clone, Copy, Debug)]
struct More {
    reason: Option<&'static str>,
    sequence: Option<u64>,
    bytes: Option<u64>,
    value: f64,
}

impl More {
    const NONE: Self = Self {
        reason: None,
        sequence: None,
        bytes: None,
        value: f64::NAN,
    };

    fn why(reason: &'static str) -> Self {
        Self {
            reason: Some(reason),
            ..Self::NONE
        }
    }

    fn value_of(value: f64) -> Self {
        Self::NONE.value(value)
    }

    fn value(self, value: f64) -> Self {
        Self { value, ..self }
    }

    fn at(self, sequence: u64) -> Self {
        let sequence = Some(sequence);
        Self { sequence, ..self }
    }
}

/// A reduction proved spurious.
fn tell_undone(was: &SenderStory, is: &SenderStory, tell: &mut impl FnMut(EventKind, More)) {
    let Some(undone) = is.undone else {
        return;
    };
    let timeout = is.counters.spurious_timeouts > was.counters.spurious_timeouts;
    tell(
        EventKind::Spurious,
        More::why(match undone.cause {
            UndoCause::Frto => "frto",
            UndoCause::Dsack => "dsack",
            UndoCause::Eifel => "eifel",
        }),
    );
    if undone.restored {
        let why = if timeout {
            "timeout"
        } else {
            "fast_retransmit"
        };
        tell(EventKind::Undo, More::why(why).value(was.cwnd));
    }
}

/// Slow start ended, or did not.
fn tell_slow_start_end(
    was: &SenderStory,
    is: &SenderStory,
    tell: &mut impl FnMut(EventKind, More),
) {
    let slow = |story: &SenderStory| story.cwnd < story.ssthresh;
    let done = is.counters - was.counters;
    if is.has_model || !was.opened || !slow(was) || slow(is) && done.timeouts == 0 {
        return;
    }
    let lowered = is.ssthresh < was.ssthresh;
    // A tail loss probe that repaired a loss reduces the window without an episode.
    let repaired = lowered && was.probe.is_some() && is.probe.is_none();
    let why = if done.timeouts > 0 {
        "timeout"
    } else if done.recoveries > 0 || repaired {
        "loss"
    } else if done.ecn_reductions > 0 {
        "mark"
    } else if lowered {
        "delay"
    } else {
        "threshold"
    };
    tell(EventKind::SlowStartEnd, More::why(why).value(is.cwnd));
}

/// So many segments were sent again.
fn tell_resent(sender: &Sender, count: u64, now: Time, tell: &mut impl FnMut(EventKind, More)) {
    let mut resent = Vec::new();
    sender.resent_at(now, &mut |start, len| resent.push((start, len)));
    // Those that another event at this time sent again come first.
    let others = resent.len().saturating_sub(count as usize);
    let known = resent[others..].iter().map(|&(start, len)| More {
        sequence: Some(start),
        bytes: Some(u64::from(len)),
        ..More::NONE
    });
    let unknown = count as usize - (resent.len() - others);
    let all = known.chain(std::iter::repeat_n(More::NONE, unknown));
    all.for_each(|more| tell(EventKind::Retransmission, more));
}

/// The first byte of data in a packet, if it has any.
fn sequence(contents: &Contents, packet: &SimPacket) -> Option<u64> {
    match contents.get(packet.content) {
        Content::Segment(segment) => {
            let counts = segment.len > 0
                || segment.flags.contains(Flags::SYN)
                || segment.flags.contains(Flags::FIN);
            counts.then_some(segment.seq)
        }
        Content::Datagram(datagram) => Some(datagram.number),
        Content::Call(_) | Content::Own(_) | Content::Copy => None,
    }
}

impl EngineEnds<'_> {
    /// Adds to a row of a packet what only its ends know, and records it.
    fn log_row(&mut self, kind: EventKind, packet: &SimPacket, now: Time, row: EventRow) {
        let Some(log) = &mut self.log else {
            return;
        };
        let own = log.table.own_flow(packet.flow);
        let is_of_user = self.flows.ends(packet.flow) == FlowEnds::Connection;
        let row = EventRow {
            flow: Some((self.flows.group(own), own)),
            connection: is_of_user.then(|| self.flows.connections.get(packet.endpoint).number),
            back: Some(log.back[packet.route as usize]),
            sequence: sequence(&self.contents, packet),
            ..row
        };
        log.recorder.record(kind, now, &row);
    }

    /// A queue drops or marks a packet, or a wire loses it.
    #[cold]
    pub(super) fn log_packet(&mut self, event: PacketEvent<'_>) {
        self.log_row(event.kind, event.packet, event.now, row_of_packet(&event));
    }

    /// A packet passes an end of a link.
    #[cold]
    pub(super) fn log_pass(&mut self, link: &Link, end: End, packet: &SimPacket, now: Time) {
        if self.log.is_some() {
            let (kind, row) = row_of_pass(link, end, packet);
            self.log_row(kind, packet, now, row);
        }
    }
}

impl Engine<'_> {
    /// Begins a log.
    pub(super) fn use_log(&mut self) {
        let Some(request) = &self.scenario.events else {
            return;
        };
        let flows = &self.ends.flows;
        let network = &self.links.network;
        self.ends.log = Some(Box::new(Log {
            recorder: EventRecorder::new(request, &self.scenario),
            senders: vec![Known::default(); flows.senders.len()],
            users: vec![Vec::new(); flows.users.len()],
            present: (Time::ZERO, Whose::Nobodys),
            table: Arc::clone(&network.flows),
            back: network.paths.back_routes(),
        }));
        self.watch();
    }

    /// The event before this one, which is due now, has been carried out: notes what it changed.
    #[cold]
    pub(super) fn log_between(&mut self, next: Event) {
        let whose = self.whose(next);
        self.log_event(whose);
    }

    /// The latest event has been carried out: notes what it changed. The next one is of `whose`.
    fn log_event(&mut self, whose: Whose) {
        let Some(mut log) = self.ends.log.take() else {
            return;
        };
        let links = &self.links.network.links;
        (log.recorder).note_laws(|link| links[link as usize].queue.internals());
        let (at, latest) = std::mem::replace(&mut log.present, (self.now, whose));
        match latest {
            Whose::Nobodys => {}
            Whose::Flow(index) => self.log_flow(&mut log, index, at),
            Whose::User(user) => self.log_user(&mut log, user, at),
        }
        self.ends.log = Some(log);
    }

    /// The log, when the run is over.
    pub(super) fn finish_log(&mut self) -> Option<redtail_network::result::EventLog> {
        self.log_event(Whose::Nobodys);
        Some(self.ends.log.take()?.recorder.finish())
    }

    /// Whose senders an event may change.
    fn whose(&mut self, event: Event) -> Whose {
        let index = event.index();
        let flows = &mut self.ends.flows;
        let of_place = |place: u32| Whose::User(place);
        match event.class() {
            Class::Arrival => {
                let paths = &self.links.network.paths;
                let endpoint = paths.head(index).endpoint;
                match paths.target(index) {
                    Target::Sender | Target::Receiver => Whose::Flow(endpoint),
                    Target::Client | Target::Server => {
                        of_place(flows.connections.get(endpoint).at.user)
                    }
                    _ => Whose::Nobodys,
                }
            }
            Class::SenderTimer | Class::ReceiverTimer => Whose::Flow(index),
            Class::Connection => match flows.connections.find(index) {
                Some(connection) => of_place(connection.at.user),
                None => Whose::Nobodys,
            },
            Class::Source => match flows.source(index) {
                Source::Tcp(i) => Whose::Flow(i),
                Source::User(user) => Whose::User(user),
                Source::Udp(_) | Source::Call(_) | Source::Own(_) => Whose::Nobodys,
            },
            _ => Whose::Nobodys,
        }
    }

    /// An event may have changed the sender of a TCP flow.
    fn log_flow(&self, log: &mut Log, index: u32, now: Time) {
        let flows = &self.ends.flows;
        let slot = &flows.senders[index as usize];
        let place = Place {
            flow: (flows.group(slot.flow), slot.flow),
            connection: None,
            back: None,
        };
        let mut known = log.senders[index as usize];
        log.compare(&slot.sender, &mut known, place, now);
        log.senders[index as usize] = known;
    }

    /// An event may have changed the connections of a user.
    fn log_user(&mut self, log: &mut Log, user: u32, now: Time) {
        let flows = &mut self.ends.flows;
        let slot = &flows.users[user as usize];
        let flow = (slot.group, slot.flow);
        let places: Vec<u32> = slot.open.iter().copied().flatten().collect();
        let mut before = std::mem::take(&mut log.users[user as usize]);
        let mut after = Vec::with_capacity(places.len());
        for place in places {
            let connection = flows.connections.get(place);
            let number = connection.number;
            let found = before.iter().position(|known| known.number == number);
            let mut known = match found {
                Some(at) => before.swap_remove(at),
                None => {
                    log.of_connection(EventKind::Start, flow, number, f64::NAN, now);
                    KnownConnection {
                        number,
                        opened: now,
                        sides: [Known::default(); 2],
                    }
                }
            };
            for (side, known) in [Side::Client, Side::Server]
                .into_iter()
                .zip(&mut known.sides)
            {
                let place = Place {
                    flow,
                    connection: Some(number),
                    back: Some(side == Side::Client),
                };
                log.compare(connection.sender(side), known, place, now);
            }
            after.push(known);
        }
        for gone in before {
            let took = (now - gone.opened).as_secs_f64();
            log.of_connection(EventKind::End, flow, gone.number, took, now);
        }
        log.users[user as usize] = after;
    }
}

impl Log {
    fn of_connection(
        &mut self,
        kind: EventKind,
        flow: (u32, u32),
        number: u64,
        value: f64,
        now: Time,
    ) {
        let row = EventRow {
            flow: Some(flow),
            connection: Some(number),
            value,
            ..EventRow::default()
        };
        self.recorder.record(kind, now, &row);
    }
}
