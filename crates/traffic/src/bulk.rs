//! TCP senders that always have data to send.

use redtail_core::schemars::JsonSchema;
use redtail_core::serde::{Deserialize, Serialize};
use redtail_core::{Dscp, Rate, Span, schemars, serde};
use redtail_transport::ResolvedTcpParams;

use crate::access::Direction;
use crate::dealt::Dealt;
use crate::keys::groups;
use crate::kind::{TcpKind, TrafficKind};
use crate::start::Start;

groups! {
    /// TCP senders that always have data to send.
    pub struct BulkParams {
        /// The TCP of the flows: a preset, or a table with a preset and the parameters that differ from it.
        /// Source: the `sack` preset.
        #[serde(default)]
        pub tcp: ResolvedTcpParams,
        /// When flows start; dealt out.
        /// Source: the start of the run.
        #[serde(default = "crate::keys::at_once")]
        pub start: Dealt<Start>,
        /// When flows stop: they send no new data, and close when what they have sent is acknowledged; dealt out. Left out, they continue to the end of the run.
        /// Source: none, always data to send.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub stop: Option<Dealt<Start>>,
    }
}

impl TrafficKind for BulkParams {
    fn example() -> &'static str {
        r#"flows = 3
stop = "2 s""#
    }

    fn noun(&self) -> &'static str {
        "bulk flow"
    }

    fn starts(&self) -> Option<&Dealt<Start>> {
        Some(&self.start)
    }

    fn stops(&self) -> Option<&Dealt<Start>> {
        self.stop.as_ref()
    }
}

impl TcpKind for BulkParams {
    fn tcp(&self) -> &ResolvedTcpParams {
        &self.tcp
    }
}
