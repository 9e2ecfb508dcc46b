//! The result of a run.

use serde::{Deserialize, Serialize};

/// Samples of every queue, a row per link and sampling time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)] // the names are the columns' names
pub struct QueueSeries {
    pub time_s: Vec<f64>,
    /// Index into [`RunResult::links`].
    pub link: Vec<u32>,
    pub packets: Vec<f64>,
    pub bytes: Vec<f64>,
    /// The control law's average, in the unit of its thresholds; NaN without one.
    pub average: Vec<f64>,
    /// The control law's probability; NaN without one.
    pub probability: Vec<f64>,
}

/// Samples of every TCP flow, a row per flow and sampling time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)] // the names are the columns' names
pub struct FlowSeries {
    pub time_s: Vec<f64>,
    /// Number of the flow, counted over all groups in the order of the file.
    pub flow: Vec<u32>,
    /// Index into [`RunResult::groups`].
    pub group: Vec<u32>,
    pub cwnd_bytes: Vec<f64>,
    /// Infinite before the first reduction.
    pub ssthresh_bytes: Vec<f64>,
    pub in_flight_bytes: Vec<f64>,
    /// NaN before the first sample.
    pub srtt_s: Vec<f64>,
}

/// Every sized transfer, a row for each, whether it completed or not. Times count
/// from its start and are NaN where the run ended before.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)] // the names are the columns' names
pub struct Transfers {
    /// Index into [`RunResult::groups`].
    pub group: Vec<u32>,
    /// Number of the flow, counted over all groups in the order of the file.
    pub flow: Vec<u32>,
    /// What it transfers.
    pub size_bytes: Vec<u64>,
    /// From the start of the run.
    pub start_s: Vec<f64>,
    /// From the first SYN to the arrival of the SYN-ACK; NaN without a handshake.
    pub handshake_time_s: Vec<f64>,
    /// To the delivery of the first byte at the receiver.
    pub first_byte_time_s: Vec<f64>,
    /// To the arrival of the acknowledgement of the last byte; that of the FIN does
    /// not count.
    pub completion_time_s: Vec<f64>,
    /// Over the whole run, warm-up included, as the next.
    pub retransmissions: Vec<u64>,
    pub timeouts: Vec<u64>,
}

/// How long users waited for responses: counts by group, size and time. Bins are the same in every
/// run, 50 to a factor of ten; empty ones are left out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)] // the names are the columns' names
pub struct ResponseTimes {
    /// Index into [`RunResult::groups`].
    pub group: Vec<u32>,
    /// Upper end of the class of sizes; infinite for the last.
    pub size_up_to_bytes: Vec<f64>,
    /// Upper end of the bin.
    pub time_up_to_s: Vec<f64>,
    pub count: Vec<u64>,
}

/// The result of one run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunResult {
    /// Metrics by name, in SI units and fractions. A metric that is undefined
    /// (a loss rate without arrivals) is left out.
    pub metrics: Vec<(String, f64)>,
    /// For each link: how many loss events had 1, 2, 3 … packets.
    pub consecutive_losses: Vec<Vec<u64>>,
    /// Names of the links with queues.
    pub links: Vec<String>,
    /// Names of the traffic groups.
    pub groups: Vec<String>,
    /// Queue samples, if asked for.
    pub queue_series: Option<QueueSeries>,
    /// Flow samples, if asked for.
    pub flow_series: Option<FlowSeries>,
    /// Every sized transfer.
    pub transfers: Transfers,
    /// Response times of every group that has users.
    pub response_times: ResponseTimes,
    /// Packets transmitted by the links of the forward direction, warm-up included.
    pub bottleneck_packets: u64,
    /// Events processed.
    pub events: u64,
}

impl RunResult {
    /// The metric called `name`.
    pub fn metric(&self, name: &str) -> Option<f64> {
        let found = self.metrics.iter().find(|(metric, _)| metric == name);
        found.map(|&(_, value)| value)
    }
}
