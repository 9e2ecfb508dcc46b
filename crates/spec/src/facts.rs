//! What the queues of an experiment may know of their links and flows.

use std::sync::Arc;

use redtail_core::{Rate, Span};
use redtail_qdisc::{FlowFacts, FlowRun, FlowTable, GroupFacts, GroupTraffic, LinkFacts, Protocol};
use redtail_traffic::{Direction, FlowKind, TrafficParams};

use crate::experiment::{HopParams, LinkParams, Scenario, Topology};
use crate::outline::{base_round_trips, crossed, crosses, used_hosts};
use crate::shared_hosts::host_sets;

/// What the queue of one link may know, `flows` included.
pub(crate) fn link_facts(
    traffic: &[TrafficParams],
    topology: &Topology,
    index: usize,
    direction: Direction,
    link: &LinkParams,
    flows: Arc<FlowTable>,
) -> LinkFacts {
    let groups = (traffic.iter().zip(0..))
        .filter(|(group, _)| crosses(group, topology, index, direction))
        .map(|(group, number)| group_facts(group, number, topology));
    LinkFacts {
        hop: index,
        hops: topology.hops().len(),
        ..LinkFacts::of_groups(link.rate, groups.collect(), flows)
    }
}

fn group_facts(group: &TrafficParams, number: u32, topology: &Topology) -> GroupFacts {
    let flows = u64::from(group.access().flows_at_once);
    let traffic = match group.tcp() {
        Some(tcp) => GroupTraffic::Tcp {
            round_trips: base_round_trips(group, topology),
            delayed_acks: tcp.params.delayed_ack,
            users: group.has_users(),
        },
        None => {
            // What endpoints of users send is not known: nothing is taken off the rate that is left for TCP.
            let unknown = (Rate::from_bps(0), group.packet_size().as_u64() as f64);
            let (rate, packet) = group.udp_load().unwrap_or(unknown);
            GroupTraffic::Udp {
                rate: Rate::from_bps(rate.as_bps().saturating_mul(flows)),
                packet,
            }
        }
    };
    GroupFacts {
        group: number,
        flows,
        packet: group.packet_size(),
        traffic,
    }
}

/// Segments that the data of flow `index` of a group takes; `None` for UDP, and for users, each
/// of whose connections is another.
fn segments(group: &TrafficParams, index: u32) -> Option<u64> {
    match group.flow_kind(index as usize) {
        FlowKind::Tcp { size: None } => Some(u64::MAX),
        FlowKind::Tcp { size: Some(size) } => {
            let mss = group.tcp()?.params.mss.as_u64().max(1);
            Some(size.as_u64().div_ceil(mss))
        }
        FlowKind::Udp | FlowKind::User | FlowKind::Call | FlowKind::Own | FlowKind::Programs => {
            None
        }
    }
}

/// Every flow of these groups, numbered as the engine numbers them.
pub(crate) fn flow_table(traffic: &[TrafficParams]) -> Arc<FlowTable> {
    let (mut groups, mut runs) = (Vec::new(), Vec::new());
    let (sets, first_hosts) = numbered_hosts(traffic);
    for (index, group) in traffic.iter().enumerate() {
        let access = group.access();
        let count = used_hosts(group).max(1) as u32;
        groups.push(access.name.to_owned());
        let mut ends = first_hosts[sets[index]];
        if access.direction != traffic[sets[index]].access().direction {
            ends.reverse();
        }
        let run = |flow, flows, run_hosts| {
            let [sender, receiver] = ends.map(|first| first + flow % count);
            FlowRun {
                first: FlowFacts {
                    group: index as u32,
                    protocol: if group.tcp().is_some() {
                        Protocol::Tcp
                    } else {
                        Protocol::Udp
                    },
                    dscp: access.dscp,
                    port: access.port,
                    sender,
                    receiver,
                    segments: segments(group, flow),
                },
                count: flows,
                hosts: run_hosts,
                users: group.has_users(),
            }
        };
        if group.has_one_size() {
            runs.push(run(0, access.flows, count));
        } else {
            runs.extend((0..access.flows).map(|flow| run(flow, 1, 1)));
        }
    }
    Arc::new(FlowTable::of_runs(groups, runs))
}

/// For each group the index of the group whose hosts it uses; and for each group with hosts the number of its first
/// host that sends, and of its first that receives.
fn numbered_hosts(traffic: &[TrafficParams]) -> (Vec<usize>, Vec<[u32; 2]>) {
    let sets = host_sets(traffic);
    let mut counts = vec![1; traffic.len()];
    for (group, &set) in traffic.iter().zip(&sets) {
        counts[set] = used_hosts(group).max(counts[set]);
    }
    let mut next: u32 = 0;
    let own = (0..traffic.len()).map(|index| {
        let count = if sets[index] == index {
            counts[index] as u32
        } else {
            0
        };
        let ends = [next, next.saturating_add(count)];
        next = next.saturating_add(count.saturating_mul(2));
        ends
    });
    let own = own.collect();
    (sets, own)
}

impl Scenario {
    /// The round-trip times of a group's hosts without queueing or transmission, in their order.
    pub fn base_round_trips(&self, group: usize) -> Vec<Span> {
        base_round_trips(&self.traffic[group], &self.topology)
    }

    /// The rate of the slowest link that a group's data crosses, hosts' links included; and that
    /// of what its table sends the other way.
    pub fn slowest_links(&self, group: usize) -> [Rate; 2] {
        let direction = self.traffic[group].access().direction;
        [direction, direction.opposite()].map(|direction| self.slowest_link(group, direction))
    }

    fn slowest_link(&self, group: usize, direction: Direction) -> Rate {
        let access = self.traffic[group].access();
        let hops = &self.topology.hops()[crossed(&access, &self.topology)];
        let link = |hop: &HopParams| match direction {
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

    /// Mean round-trip time, without any queueing, of the TCP flows that have packets on the
    /// links of hop `index`, in whichever direction their data travels; `None` without any.
    pub fn mean_round_trip(&self, index: usize) -> Option<Span> {
        let (mut flows, mut total) = (0.0, 0.0);
        for group in self.traffic.iter().filter(|group| group.tcp().is_some()) {
            if !crossed(&group.access(), &self.topology).contains(&index) {
                continue;
            }
            let round_trips = base_round_trips(group, &self.topology);
            let sum: f64 = round_trips.iter().map(|rtt| rtt.as_secs_f64()).sum();
            let count = f64::from(group.access().flows_at_once);
            flows += count;
            total += count * sum / round_trips.len() as f64;
        }
        (flows > 0.0).then(|| Span::from_secs_f64(total / flows))
    }

    /// What the queue of the link of hop `index` in this direction may know.
    pub fn link_facts(
        &self,
        index: usize,
        direction: Direction,
        link: &LinkParams,
        flows: Arc<FlowTable>,
    ) -> LinkFacts {
        link_facts(&self.traffic, &self.topology, index, direction, link, flows)
    }
}
