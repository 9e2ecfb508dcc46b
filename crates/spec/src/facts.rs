//! What the queues of an experiment may know of their links and flows.

use std::sync::Arc;

use redtail_core::{Bytes, Rate, Span};
use redtail_qdisc::{FlowFacts, FlowTable, LinkFacts, Protocol};
use redtail_traffic::{Direction, TrafficGroup};

use crate::experiment::{Hop, LinkSpec, Scenario, Topology};
use crate::outline::{base_round_trips, crossed, crossing};

/// What the queue of one link may know, `flows` included.
pub(crate) fn link_facts(
    traffic: &[TrafficGroup],
    topology: &Topology,
    index: usize,
    direction: Direction,
    link: &LinkSpec,
    flows: Arc<FlowTable>,
) -> LinkFacts {
    let groups = crossing(traffic, topology, index, direction);
    let (mut tcp_flows, mut weight, mut total, mut longest) = (0, 0.0, 0.0, Span::ZERO);
    let (mut packet, mut tcp_packet, mut delayed_acks) = (Bytes::ZERO, Bytes::ZERO, false);
    let mut by_host = Vec::new();
    let (mut udp_rate, mut udp_packets) = (0, 0.0);
    for group in groups {
        packet = packet.max(group.packet_size());
        if let TrafficGroup::Cbr(cbr) = group {
            let rate = cbr.rate.as_bps().saturating_mul(u64::from(cbr.flows));
            udp_rate = rate.saturating_add(udp_rate);
            udp_packets += rate as f64 / cbr.packet.bits().max(1) as f64;
        }
        let Some(tcp) = group.tcp() else {
            continue;
        };
        let round_trips = base_round_trips(group, topology);
        let count = u64::from(group.access().flows);
        // How many of them have a connection at a time, the network decides.
        if !group.has_users() {
            tcp_flows += count;
        }
        weight += count as f64;
        let sum: f64 = round_trips.iter().map(|rtt| rtt.as_secs_f64()).sum();
        total += count as f64 * sum / round_trips.len() as f64;
        tcp_packet = tcp_packet.max(group.packet_size());
        let share = count as f64 / round_trips.len() as f64;
        by_host.extend(round_trips.iter().map(|&rtt| (rtt, share)));
        longest = round_trips.into_iter().fold(longest, Span::max);
        delayed_acks |= tcp.params.delayed_ack;
    }
    LinkFacts {
        rate: link.rate,
        tcp_flows,
        mean_round_trip: (weight > 0.0).then(|| Span::from_secs_f64(total / weight)),
        max_round_trip: (weight > 0.0).then_some(longest),
        round_trips: by_host,
        largest_packet: packet,
        tcp_packet,
        udp_rate: Rate::from_bps(udp_rate),
        udp_packet: match udp_packets {
            0.0 => Bytes::ZERO,
            packets => Bytes::new((udp_rate as f64 / packets / 8.0).round() as u64),
        },
        delayed_acks,
        flows,
    }
}

/// Segments that the data of flow `index` of a group takes; `None` for UDP, and for users, each
/// of whose connections is another.
fn segments(group: &TrafficGroup, index: u32) -> Option<u64> {
    match group {
        TrafficGroup::Bulk(_) => Some(u64::MAX),
        TrafficGroup::Transfer(transfer) => {
            let size = transfer.size.get(index as usize).as_u64();
            Some(size.div_ceil(transfer.tcp.params.mss.as_u64().max(1)))
        }
        TrafficGroup::Cbr(_) | TrafficGroup::Transactions(_) | TrafficGroup::Web(_) => None,
    }
}

/// Every flow of these groups, numbered as the engine numbers them.
pub(crate) fn flow_table(traffic: &[TrafficGroup]) -> Arc<FlowTable> {
    let mut table = FlowTable::default();
    let mut hosts = 0;
    for (index, group) in traffic.iter().enumerate() {
        let access = group.access();
        let count = access.host_count().min(access.flows as usize).max(1) as u32;
        table.groups.push(access.name.to_owned());
        if group.has_users() {
            let first = table.flows.len() as u32;
            table.users.extend(first..first + access.flows);
        }
        table.flows.extend((0..access.flows).map(|flow| {
            let sender = hosts + flow % count;
            FlowFacts {
                group: index as u32,
                protocol: if group.tcp().is_some() {
                    Protocol::Tcp
                } else {
                    Protocol::Udp
                },
                dscp: access.dscp,
                port: access.port,
                sender,
                receiver: sender + count,
                segments: segments(group, flow),
            }
        }));
        hosts += 2 * count;
    }
    Arc::new(table)
}

impl Scenario {
    /// The round-trip times of a group's hosts without queueing or transmission, in their order.
    pub fn base_round_trips(&self, group: usize) -> Vec<Span> {
        base_round_trips(&self.traffic[group], &self.topology)
    }

    /// The rate of the slowest link that a group's data crosses, hosts' links included.
    pub fn slowest_link(&self, group: usize) -> Rate {
        let access = self.traffic[group].access();
        let hops = &self.topology.hops()[crossed(&access, &self.topology)];
        let link = |hop: &Hop| match access.direction {
            Direction::Forward => hop.rate,
            Direction::Reverse => hop.return_link.as_ref().map_or(hop.rate, |link| link.rate),
        };
        let own = [access.access_rate, access.exit_rate];
        let own = own.into_iter().flatten().flat_map(|rates| rates.values());
        let all = hops.iter().map(link).chain(own.copied());
        all.min().unwrap_or(Rate::from_bps(u64::MAX))
    }

    /// Every flow, as queues may know them.
    pub fn flow_table(&self) -> Arc<FlowTable> {
        flow_table(&self.traffic)
    }

    /// What the queue of the link of hop `index` in this direction may know.
    pub fn link_facts(
        &self,
        index: usize,
        direction: Direction,
        link: &LinkSpec,
        flows: Arc<FlowTable>,
    ) -> LinkFacts {
        link_facts(&self.traffic, &self.topology, index, direction, link, flows)
    }
}
