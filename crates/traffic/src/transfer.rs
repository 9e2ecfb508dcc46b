//! TCP transfers of a given size.

use redtail_core::schemars::JsonSchema;
use redtail_core::serde::{Deserialize, Serialize};
use redtail_core::{Bytes, Dscp, Metric, ParamError, Rate, Span, metrics, schemars, serde};

use crate::access::Direction;
use crate::dealt::Dealt;
use crate::keys::groups;
use crate::kind::{TcpKind, TrafficKind};
use crate::start::Start;

groups! {
    /// TCP transfers of a given size, one for each flow.
    pub struct TransferParams of tcp {
        /// Payload of each transfer; dealt out.
        pub size: Dealt<Bytes>,
        /// When transfers start; dealt out.
        /// Source: the start of the run.
        #[serde(default = "crate::keys::at_once")]
        pub start: Dealt<Start>,
    }
}

metrics! {
    /// What a group of kind `transfer` reports of the transfers that were in progress when the period began or that started in it.
    pub const METRICS of Group;

    /// Share of the transfers that completed before the period ended. The transfers are those that were in progress when the period began or that started in it.
    COMPLETED = "completed", Fraction, "Transfers completed", "completed";
    /// Mean time from the start of a transfer until the acknowledgement of the last byte reaches the sender, whether or not it acknowledges the FIN, over the transfers that completed.
    COMPLETION_TIME_MEAN = "completion_time_mean", Time, "Mean completion time of transfers", "completion";
    /// Median of the completion time, from a histogram with three significant digits. Transfers that had not completed when the period ended [count too](statistics.md#what-did-not-finish); undefined when it lies beyond what they show.
    COMPLETION_TIME_P50 = "completion_time_p50", Time, "Completion time of transfers, median", "completion p50";
    /// 95th percentile of the completion time, as the median.
    COMPLETION_TIME_P95 = "completion_time_p95", Time, "Completion time of transfers, 95th percentile", "completion p95";
    /// 99th percentile of the completion time, as the median.
    COMPLETION_TIME_P99 = "completion_time_p99", Time, "Completion time of transfers, 99th percentile", "completion p99";
    /// Share of the same transfers whose SYN-ACK had reached the sender when the period ended; undefined without a handshake.
    ESTABLISHED = "established", Fraction, "Transfers with a connection", "established";
    /// Mean time from the start (the first SYN) until the SYN-ACK reaches the sender, over the transfers of `established`; undefined without a handshake.
    HANDSHAKE_TIME_MEAN = "handshake_time_mean", Time, "Mean handshake time of transfers", "handshake";
    /// Share of the same transfers of which the receiver had delivered the first byte when the period ended.
    BEGUN = "begun", Fraction, "Transfers with a first byte", "begun";
    /// Mean time from the start until the receiver delivers the first byte, over the transfers of `begun`.
    FIRST_BYTE_TIME_MEAN = "first_byte_time_mean", Time, "Mean time to first byte of transfers", "first byte";
}

impl TrafficKind for TransferParams {
    fn example() -> &'static str {
        r#"flows = 3
size = "60 kB""#
    }

    fn metrics() -> &'static [&'static Metric] {
        METRICS
    }

    fn noun(&self) -> &'static str {
        "transfer"
    }

    fn starts(&self) -> Option<&Dealt<Start>> {
        Some(&self.start)
    }

    fn stops(&self) -> Option<&Dealt<Start>> {
        None
    }

    fn needs_a_stop(&self) -> bool {
        false
    }

    fn check(&self) -> Result<(), ParamError> {
        if self.size.values().iter().any(|size| size.as_u64() == 0) {
            return Err(ParamError::new(
                "size",
                "is zero",
                "a size such as \"292 kB\"",
            ));
        }
        Ok(())
    }
}

impl TcpKind for TransferParams {
    fn sizes(&self) -> Option<&Dealt<Bytes>> {
        Some(&self.size)
    }
}
