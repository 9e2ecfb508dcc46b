//! The table of flows, which every engine fills with what it has counted.

use redtail_core::{Bytes, Span, Time};
use redtail_spec::Scenario;

use crate::result::FlowRows;

/// The most flows of a run of which a table is kept by default: it takes 130 kB.
pub const KEPT_FLOWS: u64 = 1000;

/// The most flows of a run of which a table is kept.
pub fn kept_flows(scenario: &Scenario) -> usize {
    let most = scenario.keep_flows.unwrap_or(KEPT_FLOWS);
    usize::try_from(most).unwrap_or(usize::MAX)
}

/// What is known of a flow; `None` stands for what does not exist or is not known. Counts are of the
/// measurement period.
#[derive(Clone, Copy, Debug, Default)]
pub struct FlowRow {
    /// Index of its group.
    pub group: usize,
    /// Its number.
    pub flow: u32,
    /// Number of its host in the group.
    pub host: usize,
    /// When it starts.
    pub start: Time,
    /// When it had completed.
    pub completed: Option<Time>,
    /// When it is told to stop; [`Time::MAX`] is never.
    pub stop: Time,
    /// Bytes that reached the application.
    pub delivered: u64,
    /// Packets sent.
    pub sent: Option<u64>,
    /// Packets lost.
    pub lost: Option<u64>,
    /// Packets marked.
    pub marked: Option<u64>,
    /// Segments retransmitted.
    pub retransmissions: Option<u64>,
    /// Retransmission timeouts.
    pub timeouts: Option<u64>,
    /// Mean and least of the round-trip samples.
    pub round_trips: Option<(Span, Span)>,
}

/// Makes the table of flows of a run.
#[derive(Debug)]
pub struct FlowRowsMaker {
    rows: FlowRows,
    /// The measurement period.
    period: (Time, Time),
    /// Round-trip times without queueing, by group and host.
    round_trips: Vec<Vec<Span>>,
}

impl FlowRowsMaker {
    /// An empty table of a run that ended at `end`.
    pub fn new(scenario: &Scenario, end: Time) -> Self {
        let groups = 0..scenario.traffic.len();
        Self {
            rows: FlowRows::default(),
            period: (Time::ZERO + scenario.warmup, end),
            round_trips: groups.map(|i| scenario.base_round_trips(i)).collect(),
        }
    }

    /// The host of flow `i` of a group: flows take turns.
    pub fn host(&self, group: usize, i: usize) -> usize {
        i % self.round_trips[group].len()
    }

    /// Adds a flow.
    pub fn add(&mut self, row: &FlowRow) {
        let (from, to) = self.period;
        let end = row.completed.unwrap_or(Time::MAX).min(row.stop).min(to);
        let active = end.saturating_since(row.start.max(from)).as_secs_f64();
        let bits = Bytes::new(row.delivered).bits() as f64;
        let count = |count: Option<u64>| count.map_or(f64::NAN, |count| count as f64);
        let seconds = |time: Option<Span>| time.map_or(f64::NAN, |time| time.as_secs_f64());
        let base = self.round_trips[row.group].get(row.host).copied();
        let rows = &mut self.rows;
        rows.group.push(row.group as u32);
        rows.flow.push(row.flow);
        rows.host.push(row.host as u32);
        rows.round_trip_s.push(seconds(base));
        rows.start_s.push(row.start.as_secs_f64());
        let completion = row.completed.map(|at| at.saturating_since(row.start));
        rows.completion_time_s.push(seconds(completion));
        rows.active_s.push(active);
        rows.delivered_bytes.push(row.delivered as f64);
        rows.goodput_bps.push(match active > 0.0 {
            true => bits / active,
            false => f64::NAN,
        });
        rows.sent_packets.push(count(row.sent));
        rows.lost_packets.push(count(row.lost));
        rows.marked_packets.push(count(row.marked));
        rows.retransmissions.push(count(row.retransmissions));
        rows.timeouts.push(count(row.timeouts));
        let (mean, least) = row.round_trips.unzip();
        rows.rtt_mean_s.push(seconds(mean));
        rows.rtt_min_s.push(seconds(least));
    }

    /// The table.
    pub fn finish(self) -> FlowRows {
        self.rows
    }
}
