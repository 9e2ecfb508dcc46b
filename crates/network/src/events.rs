//! The event log while a run is made: which events are wanted, and the rows so far.
//!
//! Nothing that moves packets reads it.

use std::collections::BTreeSet;

use redtail_core::Time;
use redtail_qdisc::{DropReason, Internals, QueueDiscipline};
use redtail_spec::{EventKind, Events, Scenario};

use crate::link::{End, Link};
use crate::packet::SimPacket;
use crate::result::{EventLog, EventRows, number_of};

/// What happened to a packet at a link.
#[derive(Clone, Copy, Debug)]
pub struct PacketEvent<'a> {
    /// A drop, a mark or a loss on the wire.
    pub kind: EventKind,
    /// Why, if there is more than one reason.
    pub reason: Option<&'static str>,
    /// The number of the link.
    pub link: u32,
    /// The packet.
    pub packet: &'a SimPacket,
    /// Since when it waited; `None` if it had not joined the queue.
    pub since: Option<Time>,
    /// When it happened.
    pub now: Time,
}

/// The name of a reason in the log.
pub fn drop_reason(reason: DropReason) -> &'static str {
    match reason {
        DropReason::Limit => "limit",
        DropReason::Early => "early",
        DropReason::Forced => "forced",
        DropReason::Redundant => "redundant",
        DropReason::Policer => "policer",
        _ => "other",
    }
}

/// A row of what happened to a packet at a link, as far as the link knows.
pub fn row_of_packet(event: &PacketEvent<'_>) -> EventRow {
    let wait = event.since.map(|since| (event.now - since).as_secs_f64());
    EventRow {
        reason: event.reason,
        link: Some(event.link),
        wait_s: wait.unwrap_or(f64::NAN),
        ..EventRow::of(event.packet)
    }
}

/// A row of a packet that passes an end of a link, and its kind.
pub fn row_of_pass(link: &Link, end: End, packet: &SimPacket) -> (EventKind, EventRow) {
    let (kind, wait_s) = match end {
        End::In => (EventKind::Arrival, f64::NAN),
        End::Out => {
            let wait = link.since.since(packet.stamp);
            (EventKind::Departure, wait.as_secs_f64())
        }
    };
    let row = EventRow {
        link: Some(link.number),
        wait_s,
        value: link.queue.backlog().packets as f64,
        ..EventRow::of(packet)
    };
    (kind, row)
}

/// What one row says; the default says nothing.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)] // the names are the columns' names
pub struct EventRow {
    pub reason: Option<&'static str>,
    pub link: Option<u32>,
    /// The group and the flow.
    pub flow: Option<(u32, u32)>,
    pub connection: Option<u64>,
    pub back: Option<bool>,
    pub packet: Option<u16>,
    pub sequence: Option<u64>,
    pub bytes: Option<u64>,
    pub wait_s: f64,
    pub cwnd_bytes: f64,
    pub ssthresh_bytes: f64,
    pub value: f64,
}

impl EventRow {
    /// What the packet itself says.
    fn of(packet: &SimPacket) -> Self {
        Self {
            packet: Some(packet.id),
            bytes: Some(u64::from(packet.size)),
            ..Self::default()
        }
    }
}

impl Default for EventRow {
    fn default() -> Self {
        Self {
            reason: None,
            link: None,
            flow: None,
            connection: None,
            back: None,
            packet: None,
            sequence: None,
            bytes: None,
            wait_s: f64::NAN,
            cwnd_bytes: f64::NAN,
            ssthresh_bytes: f64::NAN,
            value: f64::NAN,
        }
    }
}

/// Records events.
#[derive(Debug)]
pub struct EventRecorder {
    wanted: Vec<bool>,
    /// The groups whose events are recorded; `None` is all.
    groups: Option<Vec<bool>>,
    /// The flows whose events are recorded; `None` is all.
    flows: Option<BTreeSet<u32>>,
    from: Time,
    to: Time,
    limit: usize,
    rows: EventRows,
    reasons: Vec<&'static str>,
    /// When the first event was left out because of the limit, and how many were.
    left_out: (Time, u64),
    /// Rows from this one on do not know the control law's state yet.
    without_law: Option<usize>,
}

impl EventRecorder {
    /// A log without events for a run of `scenario`.
    pub fn new(request: &Events, scenario: &Scenario) -> Self {
        let groups = request.groups.as_ref().map(|names| {
            let groups = scenario.traffic.iter();
            let is_named = |name: &str| names.iter().any(|named| named == name);
            groups.map(|group| is_named(group.access().name)).collect()
        });
        let start = |span| Time::ZERO + span;
        Self {
            wanted: (EventKind::ALL.iter())
                .map(|kind| request.kinds.contains(kind))
                .collect(),
            groups,
            flows: (request.flows.as_ref()).map(|flows| flows.iter().copied().collect()),
            from: start(request.from),
            to: start(request.to.unwrap_or(scenario.duration)),
            limit: request.limit as usize,
            rows: EventRows::default(),
            reasons: Vec::new(),
            left_out: (Time::ZERO, 0),
            without_law: None,
        }
    }

    /// Whether events of this kind are recorded.
    pub fn wants(&self, kind: EventKind) -> bool {
        self.wanted[kind as usize]
    }

    /// Adds an event, if it is wanted.
    pub fn record(&mut self, kind: EventKind, now: Time, row: &EventRow) {
        if !self.wants(kind) || now < self.from || now >= self.to || !self.is_of_wanted(row) {
            return;
        }
        if self.rows.time_s.len() >= self.limit {
            if self.left_out.1 == 0 {
                self.left_out.0 = now;
            }
            self.left_out.1 += 1;
            return;
        }
        if row.link.is_some() {
            self.without_law.get_or_insert(self.rows.time_s.len());
        }
        self.push(kind, now, row);
    }

    fn is_of_wanted(&self, row: &EventRow) -> bool {
        let Some((group, flow)) = row.flow else {
            return true;
        };
        let group = self.groups.as_ref().is_none_or(|it| it[group as usize]);
        group && self.flows.as_ref().is_none_or(|it| it.contains(&flow))
    }

    fn push(&mut self, kind: EventKind, now: Time, row: &EventRow) {
        let reason = row
            .reason
            .map(|reason| number_of(&mut self.reasons, reason));
        let rows = &mut self.rows;
        let (group, flow) = row.flow.unzip();
        let unset = u32::MAX;
        rows.time_s.push(now.as_secs_f64());
        rows.event.push(kind as u32);
        rows.reason.push(reason.unwrap_or(unset));
        rows.link.push(row.link.unwrap_or(unset));
        rows.group.push(group.unwrap_or(unset));
        rows.flow.push(flow.unwrap_or(unset));
        rows.connection.push(row.connection.unwrap_or(u64::MAX));
        rows.back.push(row.back.map_or(unset, u32::from));
        rows.packet.push(row.packet.map_or(unset, u32::from));
        rows.sequence.push(row.sequence.unwrap_or(u64::MAX));
        rows.bytes.push(row.bytes.unwrap_or(u64::MAX));
        rows.wait_s.push(row.wait_s);
        rows.average.push(f64::NAN);
        rows.probability.push(f64::NAN);
        rows.cwnd_bytes.push(row.cwnd_bytes);
        rows.ssthresh_bytes.push(row.ssthresh_bytes);
        rows.value.push(row.value);
    }

    /// Notes the states of control laws in the rows of links that do not know them yet; called when the links are at
    /// rest.
    pub fn note_laws(&mut self, of_link: impl Fn(u32) -> Internals) {
        let Some(first) = self.without_law.take() else {
            return;
        };
        let rows = &mut self.rows;
        for place in first..rows.link.len() {
            if rows.link[place] != u32::MAX {
                let law = of_link(rows.link[place]);
                rows.average[place] = law.average.unwrap_or(f64::NAN);
                rows.probability[place] = law.probability.unwrap_or(f64::NAN);
            }
        }
    }

    /// The log, in the order of time.
    pub fn finish(mut self) -> EventLog {
        let time = &self.rows.time_s;
        if !time.is_sorted() {
            let mut places: Vec<usize> = (0..time.len()).collect();
            places.sort_by(|&one, &other| time[one].total_cmp(&time[other]));
            self.rows = self.rows.in_order(&places);
        }
        let (at, left_out) = self.left_out;
        if left_out > 0 {
            let row = EventRow {
                value: left_out as f64,
                ..EventRow::default()
            };
            self.push(EventKind::Full, at, &row);
        }
        EventLog {
            rows: self.rows,
            reasons: self.reasons.into_iter().map(str::to_owned).collect(),
        }
    }
}
