//! What the queues of an experiment may know of their links and flows.

use std::sync::Arc;

use redtail_core::{Bytes, Span};
use redtail_qdisc::{FlowFacts, FlowTable, LinkFacts, Protocol};
use redtail_traffic::{Direction, TrafficGroup};

use crate::experiment::{LinkSpec, Scenario, Topology};
use crate::outline::{base_round_trips, crossing};

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
    let (mut tcp_flows, mut total, mut longest) = (0, 0.0, Span::ZERO);
    let (mut packet, mut delayed_acks) = (Bytes::ZERO, false);
    for group in groups {
        packet = packet.max(group.packet_size());
        let Some(tcp) = group.tcp() else {
            continue;
        };
        let round_trips = base_round_trips(group, topology);
        let count = u64::from(group.access().flows);
        let sum: f64 = round_trips.iter().map(|rtt| rtt.as_secs_f64()).sum();
        tcp_flows += count;
        total += count as f64 * sum / round_trips.len() as f64;
        longest = round_trips.into_iter().fold(longest, Span::max);
        delayed_acks |= tcp.params.delayed_ack;
    }
    LinkFacts {
        rate: link.rate,
        tcp_flows,
        mean_round_trip: (tcp_flows > 0).then(|| Span::from_secs_f64(total / tcp_flows as f64)),
        max_round_trip: (tcp_flows > 0).then_some(longest),
        largest_packet: packet,
        delayed_acks,
        flows,
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
            }
        }));
        hosts += 2 * count;
    }
    Arc::new(table)
}

impl Scenario {
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
