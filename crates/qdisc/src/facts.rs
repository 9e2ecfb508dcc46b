//! What a discipline may know of the link it feeds and of the flows that cross it.
//!
//! A simulated link knows all of it from the experiment file; a live one learns its
//! flows from their headers and knows no round trips but those it is told.

use std::sync::Arc;

use redtail_core::schemars::{self, JsonSchema};
use redtail_core::serde::{self, Deserialize, Serialize};
use redtail_core::{Bytes, Dscp, FlowId, Rate, Span};

/// A link and what crosses it.
#[derive(Clone, Debug)]
pub struct LinkFacts {
    /// The link's rate.
    pub rate: Rate,
    /// TCP flows whose data crosses it, those of users who come and go not counted.
    pub tcp_flows: u64,
    /// Their mean round-trip time without queueing or transmission; `None` without any.
    pub mean_round_trip: Option<Span>,
    /// The longest of these; `None` without any.
    pub max_round_trip: Option<Span>,
    /// The round-trip times without queueing or transmission, each with the number of flows
    /// that have it.
    pub round_trips: Vec<(Span, f64)>,
    /// The largest packet whose size is known; zero if none is.
    pub largest_packet: Bytes,
    /// The largest TCP packet; zero without any.
    pub tcp_packet: Bytes,
    /// Rate of the UDP traffic of constant rate that crosses the link.
    pub udp_rate: Rate,
    /// Mean size of its packets; zero without any.
    pub udp_packet: Bytes,
    /// Whether their receivers acknowledge every second segment.
    pub delayed_acks: bool,
    /// The traffic groups whose data crosses it, of which the above is the sum; empty if it
    /// is not known by group.
    pub groups: Vec<GroupFacts>,
    /// Every flow, by its number.
    pub flows: Arc<FlowTable>,
}

/// A traffic group whose data crosses a link.
#[derive(Clone, Debug)]
pub struct GroupFacts {
    /// Its number, in the order of the file.
    pub group: u32,
    /// Its flows.
    pub flows: u64,
    /// Size of its packets.
    pub packet: Bytes,
    /// What its protocol adds.
    pub traffic: GroupTraffic,
}

/// What is known of a group's flows by their protocol.
#[derive(Clone, Debug)]
pub enum GroupTraffic {
    /// TCP.
    Tcp {
        /// Round-trip times without queueing or transmission, each of as many flows.
        round_trips: Vec<Span>,
        /// Whether receivers acknowledge every second segment.
        delayed_acks: bool,
        /// They are users, who come and go: how many have a connection at a time is not known.
        users: bool,
    },
    /// UDP.
    Udp {
        /// Mean rate of all flows together.
        rate: Rate,
        /// Mean size of a packet in bytes.
        packet: f64,
    },
}

impl LinkFacts {
    /// A link that these groups cross.
    pub fn of_groups(rate: Rate, groups: Vec<GroupFacts>, flows: Arc<FlowTable>) -> Self {
        let mut facts = Self {
            flows,
            ..Self::of_rate(rate)
        };
        let (mut weight, mut total, mut longest) = (0.0, 0.0, Span::ZERO);
        let (mut udp_rate, mut udp_packets) = (0u64, 0.0);
        for group in &groups {
            facts.largest_packet = facts.largest_packet.max(group.packet);
            match &group.traffic {
                GroupTraffic::Udp { rate, packet } => {
                    udp_rate = udp_rate.saturating_add(rate.as_bps());
                    udp_packets += rate.as_bps() as f64 / (8.0 * packet).max(1.0);
                }
                GroupTraffic::Tcp {
                    round_trips,
                    delayed_acks,
                    users,
                } => {
                    let sum: f64 = round_trips.iter().map(|rtt| rtt.as_secs_f64()).sum();
                    let share = group.flows as f64 / round_trips.len() as f64;
                    facts.tcp_flows += if *users { 0 } else { group.flows };
                    weight += group.flows as f64;
                    total += group.flows as f64 * sum / round_trips.len() as f64;
                    facts.tcp_packet = facts.tcp_packet.max(group.packet);
                    let by_host = round_trips.iter().map(|&rtt| (rtt, share));
                    facts.round_trips.extend(by_host);
                    longest = round_trips.iter().copied().fold(longest, Span::max);
                    facts.delayed_acks |= delayed_acks;
                }
            }
        }
        if weight > 0.0 {
            facts.mean_round_trip = Some(Span::from_secs_f64(total / weight));
            facts.max_round_trip = Some(longest);
        }
        facts.udp_rate = Rate::from_bps(udp_rate);
        if udp_packets > 0.0 {
            facts.udp_packet = Bytes::new((udp_rate as f64 / udp_packets / 8.0).round() as u64);
        }
        facts.groups = groups;
        facts
    }

    /// The same link with only those of its groups for whose number `stays` says so. Where
    /// groups are not known, what crosses the link stays as it is.
    #[must_use]
    pub fn with_groups(&self, stays: impl Fn(u32) -> bool) -> Self {
        if self.groups.is_empty() {
            return self.clone();
        }
        let groups = self.groups.iter().filter(|group| stays(group.group));
        Self::of_groups(
            self.rate,
            groups.cloned().collect(),
            Arc::clone(&self.flows),
        )
    }

    /// A link of which nothing else is known.
    pub fn of_rate(rate: Rate) -> Self {
        Self {
            rate,
            tcp_flows: 0,
            mean_round_trip: None,
            max_round_trip: None,
            round_trips: Vec::new(),
            largest_packet: Bytes::ZERO,
            tcp_packet: Bytes::ZERO,
            udp_rate: Rate::from_bps(0),
            udp_packet: Bytes::ZERO,
            delayed_acks: false,
            groups: Vec::new(),
            flows: Arc::default(),
        }
    }
}

/// The flows of a run.
#[derive(Clone, Debug, Default)]
pub struct FlowTable {
    /// Names of the groups, in the order of the file.
    pub groups: Vec<String>,
    /// Facts by flow number.
    pub flows: Vec<FlowFacts>,
    /// The numbers of the users' first flows. What a user has open besides comes after the
    /// last of `flows`: the second of every user in this order, then the third of every user, and
    /// so on.
    pub users: Vec<u32>,
}

impl FlowTable {
    /// What is known of a flow; of one that is not in the table, the default.
    #[inline]
    pub fn get(&self, flow: FlowId) -> FlowFacts {
        let known = self.flows.get(flow.0 as usize);
        known.copied().unwrap_or_else(|| self.of_user(flow))
    }

    /// What is known of a flow that is not a user's first.
    #[cold]
    fn of_user(&self, flow: FlowId) -> FlowFacts {
        if self.users.is_empty() {
            return FlowFacts::default();
        }
        self.flows[self.first_of_user(flow.0) as usize]
    }

    /// The number of the first flow of the user who has this one; of any other flow its own.
    pub fn first_of_user(&self, flow: u32) -> u32 {
        match (flow as usize).checked_sub(self.flows.len()) {
            None => flow,
            Some(beyond) => self.users[beyond % self.users.len()],
        }
    }

    /// The number of the flow that is connection `nth`, counted from 0, of a user.
    pub fn connection(&self, user: u32, nth: u32) -> u32 {
        match nth {
            0 => self.users[user as usize],
            _ => self.flows.len() as u32 + (nth - 1) * self.users.len() as u32 + user,
        }
    }

    /// The number of the group with this name.
    pub fn group(&self, name: &str) -> Option<u32> {
        let found = self.groups.iter().position(|group| group == name);
        found.map(|index| index as u32)
    }
}

/// The transport protocol of a flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(crate = "serde", rename_all = "lowercase")]
#[schemars(crate = "schemars")]
pub enum Protocol {
    /// TCP.
    #[default]
    Tcp,
    /// UDP.
    Udp,
}

/// What all packets of a flow have in common.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowFacts {
    /// Number of its group, in the order of the file.
    pub group: u32,
    /// Its protocol.
    pub protocol: Protocol,
    /// The class its sender asks for.
    pub dscp: Dscp,
    /// The port of the side that serves, 0 if not told.
    pub port: u16,
    /// The host that sends data, numbered over all groups.
    pub sender: u32,
    /// The host that receives it, numbered over all groups.
    pub receiver: u32,
    /// Segments that its data takes, retransmissions aside, `u64::MAX` if it has no end;
    /// `None` if that is not known. For figures about a queue only: a router cannot know it.
    pub segments: Option<u64>,
}
