//! The keys that every group has, and how the numbers in them are read.

use std::fmt;

use redtail_core::serde::de::{Deserializer, Error, Unexpected, Visitor};
use redtail_core::{Bytes, Span};

use crate::bounds::MAX_FLOWS;
use crate::dealt::Dealt;
use crate::dist::Dist;
use crate::start::Start;

/// Defines a group: its own keys, and those that every group has.
macro_rules! groups {
    // For users the key is "users" instead of "flows".
    ($(#[$doc:meta])* pub struct $name:ident of users { $($own:tt)* }) => {
        $crate::keys::groups! {
            @tcp "users"
            #[doc = "Number of users."]
            #[doc = "Source: one, the minimum."];
            #[doc = "Source: the length of the longest list dealt out, else 1."];
            $(#[$doc])* pub struct $name { $($own)* }
        }
    };
    // Flows over TCP.
    ($(#[$doc:meta])* pub struct $name:ident of tcp { $($own:tt)* }) => {
        $crate::keys::groups! {
            @tcp "flows"
            #[doc = "Number of flows."]
            #[doc = "Source: one, the minimum."];
            #[doc = "Source: the length of the longest list dealt out, else 1."];
            $(#[$doc])* pub struct $name { $($own)* }
        }
    };
    // Each flow is a person with a host of their own.
    ($(#[$doc:meta])* pub struct $name:ident of people { $($own:tt)* }) => {
        $crate::keys::groups! {
            @keys "flows"
            #[doc = "Number of flows."]
            #[doc = "Source: one, the minimum."];
            #[doc = "Source: the number of flows, one host for each caller."];
            $(#[$doc])* pub struct $name { $($own)* }
        }
    };
    // The number of users comes from the table.
    ($(#[$doc:meta])* pub struct $name:ident of table { $($own:tt)* }) => {
        $crate::keys::groups! {
            @tcp "users"
            #[doc = "Filled in from the table: one user for each path, that is direction and round-trip time."]
            #[doc = "Source: the table."];
            #[doc = "Source: the length of the longest list dealt out, else 1."];
            $(#[$doc])* pub struct $name { $($own)* }
        }
    };
    ($($(#[$doc:meta])* pub struct $name:ident { $($own:tt)* })+) => {$(
        $crate::keys::groups! {
            @keys "flows"
            #[doc = "Number of flows."]
            #[doc = "Source: one, the minimum."];
            #[doc = "Source: the length of the longest list dealt out, else 1."];
            $(#[$doc])* pub struct $name { $($own)* }
        }
    )+};
    // With the keys of groups over TCP.
    (@tcp $count:literal $(#[$count_doc:meta])+; #[$hosts_doc:meta]; $(#[$doc:meta])* pub struct $name:ident { $($own:tt)* }) => {
        $crate::keys::groups! {
            @keys $count $(#[$count_doc])+; #[$hosts_doc]; $(#[$doc])* pub struct $name {
                $($own)*
                /// The TCP of the flows: a preset, or a table with a preset and the parameters that differ from it.
                /// Source: the `sack` preset.
                #[serde(default)]
                pub tcp: redtail_transport::ResolvedTcpParams,
                /// Size on the link of a packet with a full segment, headers included: `mss` and `header` of `tcp` together, or a law with this mean from which it is drawn for each segment. A segment that is sent again keeps its size. Window, sequence numbers and goodput count `mss` for each, as ns-2 counts packets; only the simulator draws sizes.
                /// Source: `mss` and `header` of `tcp`.
                #[serde(default, skip_serializing_if = "Option::is_none")]
                pub packet: Option<$crate::dist::Dist<redtail_core::Bytes>>,
            }
        }

        impl $crate::kind::OverTcp for $name {
            fn tcp(&self) -> &redtail_transport::ResolvedTcpParams {
                &self.tcp
            }

            fn packet(&self) -> Option<&$crate::dist::Dist<redtail_core::Bytes>> {
                self.packet.as_ref()
            }
        }
    };
    (@keys $count:literal $(#[$count_doc:meta])+; #[$hosts_doc:meta]; $(#[$doc:meta])* pub struct $name:ident { $($own:tt)* }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(crate = "serde", deny_unknown_fields)]
        #[schemars(crate = "schemars")]
        pub struct $name {
            /// Name of the group, put in front of its metrics and used in factor keys.
            pub name: String,
            $(#[$count_doc])+
            #[serde(rename = $count, default = "crate::keys::one_flow", deserialize_with = "crate::keys::count")]
            #[schemars(range(min = 1, max = 1_000_000))]
            pub flows: u32,
            $($own)*
            /// Rate of the sending hosts' access links; dealt out.
            /// Source: ten times the largest rate that the first bottleneck ever has, as in ISCC 2001 (100 Mbit/s before 10 Mbit/s), or ten times what the UDP flows on one host send together, if that is more.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub access_rate: Option<Dealt<Rate>>,
            /// One-way propagation delay of the sending hosts' access links; dealt out.
            /// Source: no delay, the minimum.
            #[serde(default = "crate::keys::no_delay")]
            pub access_delay: Dealt<Span>,
            /// Rate of the receiving hosts' access links; dealt out.
            /// Source: the default of `access_rate`.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub exit_rate: Option<Dealt<Rate>>,
            /// One-way propagation delay of the receiving hosts' access links; dealt out.
            /// Source: no delay, the minimum.
            #[serde(default = "crate::keys::no_delay")]
            pub exit_delay: Dealt<Span>,
            /// One-way propagation delay of the way back, in addition to that of the return links; dealt out.
            /// Source: no delay, the minimum.
            #[serde(default = "crate::keys::no_delay")]
            pub return_delay: Dealt<Span>,
            /// Number of sending (and of receiving) hosts that the flows share; flow i sits on host i modulo this. Or a name, of another group or of a table `[hosts.NAME]`: the flows sit on these hosts, with their links and their delays; if the two groups send in opposite directions, the hosts that receive in one send in the other.
            #[$hosts_doc]
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub hosts: Option<crate::hosts::Hosts>,
            /// Maximum of the random time, uniform from zero, that each packet takes in its sending host in addition to the access link; the packets of a flow stay in order; up to 1 s. "0 s" switches it off. All other random draws stay the same.
            /// Source: the experiment's `host_jitter`, and its default.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub host_jitter: Option<Span>,
            /// One random time of `host_jitter` for all packets of a flow that its host sends at one instant, which then leave back to back, as a network card takes a train of segments as one (TSO and GSO of Linux). How many segments a train has is up to the sender: the presets of `linux` size them as tcp_tso_autosize does (net/ipv4/tcp_output.c, 6.1). Only the simulator has it.
            /// Source: none, as of hosts with a card that takes single segments (`tso off gso off`), which comparisons with kernels are made with.
            #[serde(default, skip_serializing_if = "std::ops::Not::not")]
            pub trains: bool,
            /// Direction in which the data travels.
            /// Source: along the bottlenecks in their order.
            #[serde(default)]
            pub direction: Direction,
            /// DSCP of the group's packets, in both directions.
            /// Source: best effort, the default of RFC 2474.
            #[serde(default)]
            pub dscp: Dscp,
            /// The port of its servers, for queues that classify traffic by port.
            /// Source: none.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub port: Option<u16>,
            /// First hop of a chain that the data crosses: its name, or its number, counted from 1 in the chain's order.
            /// Source: the whole chain.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub first_hop: Option<crate::hop::ChainHop>,
            /// Last hop of a chain that the data crosses: its name, or its number, counted from 1 in the chain's order.
            /// Source: the whole chain.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub last_hop: Option<crate::hop::ChainHop>,
            /// Time from one activation of the group to the next: the group comes and goes. Activation k, counted from 0, has new flows (or users), which start and stop k times this time after `start` and `stop`. Needs `start`, and `stop` unless the flows end by themselves; no shorter than from `start` to `stop`.
            /// Source: none, one activation.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub repeat: Option<Span>,
            /// Number of activations of a group with `repeat`.
            /// Source: as many as start before the end of the run.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            #[schemars(range(min = 1, max = 1_000_000))]
            pub activations: Option<u32>,
        }

        impl $crate::access::Group for $name {
            fn access(&self) -> $crate::access::Access<'_> {
                $crate::access::Access {
                    name: &self.name,
                    flows: self.flows.saturating_mul(self.activations.unwrap_or(1)),
                    flows_at_once: self.flows,
                    access_rate: self.access_rate.as_ref(),
                    access_delay: &self.access_delay,
                    exit_rate: self.exit_rate.as_ref(),
                    exit_delay: &self.exit_delay,
                    return_delay: &self.return_delay,
                    hosts: self.hosts.as_ref().and_then(crate::hosts::Hosts::count),
                    hosts_of: self.hosts.as_ref().and_then(crate::hosts::Hosts::group),
                    host_jitter: self.host_jitter,
                    trains: self.trains,
                    direction: self.direction,
                    dscp: self.dscp,
                    port: self.port.unwrap_or(0),
                    first_hop: self.first_hop.as_ref().and_then(crate::hop::ChainHop::number),
                    last_hop: self.last_hop.as_ref().and_then(crate::hop::ChainHop::number),
                    repeat: self.repeat,
                    activations: self.activations,
                }
            }

            fn set_flows(&mut self, flows: u32) {
                self.flows = flows;
            }

            fn set_host_jitter(&mut self, host_jitter: Option<Span>) {
                self.host_jitter = host_jitter;
            }

            fn take_hosts(&mut self, taken: $crate::hosts::TakenHosts) {
                self.count_taken_hosts(taken.count);
                self.access_rate = taken.access_rate;
                self.access_delay = taken.access_delay;
                self.exit_rate = taken.exit_rate;
                self.exit_delay = taken.exit_delay;
                self.return_delay = taken.return_delay;
                [self.first_hop, self.last_hop] = taken.hops.map(|hop| hop.map(crate::hop::ChainHop::Number));
            }

            fn count_taken_hosts(&mut self, number: u32) {
                if let Some($crate::hosts::Hosts::Of { count, .. }) = &mut self.hosts {
                    *count = number;
                }
            }

            fn hops_mut(&mut self) -> [&mut Option<crate::hop::ChainHop>; 2] {
                [&mut self.first_hop, &mut self.last_hop]
            }

            fn set_activations(&mut self, count: u32) {
                self.activations = Some(count);
            }

            fn sit_on(&mut self, owner: &str) {
                if let Some($crate::hosts::Hosts::Of { group, .. }) = &mut self.hosts {
                    *group = owner.to_owned();
                }
            }

            fn own_hosts(&mut self, count: u32) {
                self.hosts = Some($crate::hosts::Hosts::Own(count));
            }

            fn fill_in_access(&mut self, filling: &$crate::access::AccessFilling) {
                self.access_rate.get_or_insert_with(|| filling.rate.clone());
                self.exit_rate.get_or_insert_with(|| filling.rate.clone());
                self.hosts.get_or_insert(crate::hosts::Hosts::Own(filling.hosts));
                self.host_jitter = filling.host_jitter;
                self.first_hop = filling.hops.map(|(first, _)| crate::hop::ChainHop::Number(first));
                self.last_hop = filling.hops.map(|(_, last)| crate::hop::ChainHop::Number(last));
            }
        }
    };
}
pub(crate) use groups;

pub(crate) fn one_flow() -> u32 {
    1
}

/// Reads a number of flows. Any `u32` passes, so that [`TrafficParams::check`](crate::TrafficParams::check) can refuse
/// it by its key; what is none is refused with the range that the check accepts.
pub(crate) fn count<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    struct Count;
    impl Visitor<'_> for Count {
        type Value = u32;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "a whole number from 1 to {MAX_FLOWS}")
        }

        fn visit_u64<E: Error>(self, number: u64) -> Result<u32, E> {
            u32::try_from(number).map_err(|_| E::invalid_value(Unexpected::Unsigned(number), &self))
        }

        fn visit_i64<E: Error>(self, number: i64) -> Result<u32, E> {
            u32::try_from(number).map_err(|_| E::invalid_value(Unexpected::Signed(number), &self))
        }
    }
    deserializer.deserialize_u32(Count)
}

pub(crate) fn no_delay() -> Dealt<Span> {
    Dealt::one(Span::ZERO)
}

pub(crate) fn at_once() -> Dealt<Start> {
    Dealt::one(Start::At(Span::ZERO))
}

pub(crate) fn thousand_bytes() -> Dist<Bytes> {
    Dist::constant(Bytes::new(1000))
}

pub(crate) fn no_time() -> Dist<Span> {
    Dist::constant(Span::ZERO)
}
