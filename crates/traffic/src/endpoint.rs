//! Flows between two endpoints of the user's own: state machines that take datagrams and time, and give datagrams and
//! the time of their next timer. The group says where they sit; the program that starts the run gives the endpoints.

use std::collections::BTreeMap;

use redtail_core::plugin::{Identity, Value};
use redtail_core::schemars::JsonSchema;
use redtail_core::serde::{Deserialize, Serialize};
use redtail_core::{Bytes, Dscp, Metric, ParamError, Rate, Span, metrics, schemars, serde};

use crate::access::Direction;
use crate::dealt::Dealt;
use crate::keys::groups;
use crate::kind::TrafficKind;
use crate::packet::LARGEST;
use crate::start::Start;

groups! {
    /// Flows over UDP between endpoints of your own: a program that uses redtail as a library gives them.
    pub struct EndpointParams {
        /// The name under which the program registered the endpoints.
        pub class: String,
        /// Parameters that the program gives a meaning.
        /// Source: none.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        pub params: BTreeMap<String, Value>,
        /// Bytes that headers add to each datagram on the link.
        /// Source: IPv4 and UDP, 20 B and 8 B (RFC 791, RFC 768).
        #[serde(default = "ip_and_udp")]
        pub header: Bytes,
        /// Size on the link of the largest packet that an endpoint may send, headers included; a larger one ends the run.
        /// Source: 1500 B, the MTU of Ethernet (RFC 894).
        #[serde(default = "mtu")]
        pub packet: Bytes,
        /// When flows start; dealt out. Both ends of a flow start at this time.
        /// Source: the start of the run.
        #[serde(default = "crate::keys::at_once")]
        pub start: Dealt<Start>,
        /// When flows stop; dealt out. Both ends are told, and may send what ends their connection. Left out, they continue to the end of the run.
        /// Source: none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub stop: Option<Dealt<Start>>,
    }
}

fn ip_and_udp() -> Bytes {
    Bytes::new(28)
}

fn mtu() -> Bytes {
    Bytes::new(1500)
}

metrics! {
    /// What a group of kind `endpoint` reports, if its endpoints tell how much they have delivered.
    pub const METRICS of Group;

    /// Bytes that the receiving ends delivered to their applications during the period, as they count them, divided by its length; summed over flows.
    DELIVERED_RATE = "delivered_rate", Rate, "Data delivered to the application", "delivered";
}

impl EndpointParams {
    /// What the program makes the endpoints from.
    pub fn identity(&self) -> Identity {
        Identity {
            class: self.class.clone(),
            params: self.params.clone(),
            source: None,
        }
    }
}

impl TrafficKind for EndpointParams {
    fn example() -> &'static str {
        r#"flows = 2
class = "steady"
packet = "1200 B"
stop = "2 s""#
    }

    fn metrics() -> &'static [&'static Metric] {
        METRICS
    }

    fn noun(&self) -> &'static str {
        "endpoint flow"
    }

    fn starts(&self) -> Option<&Dealt<Start>> {
        Some(&self.start)
    }

    fn stops(&self) -> Option<&Dealt<Start>> {
        self.stop.as_ref()
    }

    fn check(&self) -> Result<(), ParamError> {
        self.identity().check("quic")?;
        if self.packet.as_u64() > LARGEST {
            return Err(ParamError::new(
                "packet",
                "does not fit an IP packet",
                format!("up to \"{LARGEST} B\""),
            ));
        }
        if self.header >= self.packet {
            return Err(ParamError::new(
                "header",
                format!("leaves no room in a packet of \"{}\"", self.packet),
                "less than `packet`",
            ));
        }
        Ok(())
    }
}
