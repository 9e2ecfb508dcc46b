//! TCP senders that always have data to send.

use redtail_core::schemars::JsonSchema;
use redtail_core::serde::{Deserialize, Serialize};
use redtail_core::{Dscp, Metric, Rate, Span, metrics, schemars, serde};

use crate::access::Direction;
use crate::dealt::Dealt;
use crate::keys::groups;
use crate::kind::{TcpKind, TrafficKind};
use crate::start::Start;

/// The default starts are in this part of the warm-up, and of the time to the first stop.
const DEFAULT_STARTS: u64 = 10;

/// No default start is later.
const LATEST_DEFAULT_START: Span = Span::from_s(1);

groups! {
    /// TCP senders that always have data to send.
    pub struct BulkParams of tcp {
        /// When flows start; dealt out.
        /// Source: drawn for each flow, uniformly from zero to a tenth of `warmup`, but at most 1 s and at most a tenth of the first `stop`: ours. No real experiment starts all flows at one instant, and these starts are over long before anything is measured. Without a warm-up: "0 s".
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub start: Option<Dealt<Start>>,
        /// When flows stop: they send no new data, and close when what they have sent is acknowledged; dealt out. Left out, they continue to the end of the run.
        /// Source: none, always data to send.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub stop: Option<Dealt<Start>>,
    }
}

metrics! {
    /// What a group of kind `bulk` reports of the starts of its flows.
    pub const METRICS of Group;

    /// Flow start-up time (RFC 7928, section 2.2): from the start of a flow, which sends its SYN, until it may send data, because the SYN-ACK has arrived. Mean over the flows that have started up before the run ended, also in the warm-up. Undefined without a handshake.
    START_UP_TIME_MEAN = "start_up_time_mean", Delay, "Mean flow start-up time", "start-up";
    /// The longest flow start-up time.
    START_UP_TIME_MAX = "start_up_time_max", Delay, "Longest flow start-up time", "start-up max";
    /// Of the flows that began before the run ended, those that have started up before it ended. Undefined without a handshake.
    STARTED_UP = "started_up", Fraction, "Flows that started up", "started up";
}

impl TrafficKind for BulkParams {
    fn example() -> &'static str {
        r#"flows = 3
stop = "2 s""#
    }

    fn noun(&self) -> &'static str {
        "bulk flow"
    }

    fn metrics() -> &'static [&'static Metric] {
        METRICS
    }

    fn starts(&self) -> Option<&Dealt<Start>> {
        self.start.as_ref()
    }

    fn stops(&self) -> Option<&Dealt<Start>> {
        self.stop.as_ref()
    }

    fn fill_in_starts(&mut self, warmup: Span) {
        let stops = self.stop.iter().flat_map(|stop| stop.values());
        let first_stop = stops.map(|stop| stop.earliest()).min();
        let before = first_stop.map_or(warmup, |stop| stop.min(warmup));
        let to = (before / DEFAULT_STARTS).min(LATEST_DEFAULT_START);
        let start = match to {
            Span::ZERO => Start::At(Span::ZERO),
            to => Start::Uniform {
                from: Span::ZERO,
                to,
            },
        };
        self.start.get_or_insert(Dealt::one(start));
    }
}

impl TcpKind for BulkParams {}
