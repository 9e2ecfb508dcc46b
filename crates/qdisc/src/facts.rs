//! What a discipline can know about its link and about the flows that cross it.
//!
//! In a simulation all of it is known from the experiment file. On a real link, flows are known from their
//! headers, and round trips only if they are given.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use redtail_core::schemars::{self, JsonSchema};
use redtail_core::serde::{self, Deserialize, Serialize};
use redtail_core::{Bytes, Dscp, FlowId, Rate, Span};

use crate::follow::LinkCourse;

/// A link and its traffic.
#[derive(Clone, Debug)]
pub struct LinkFacts {
    /// The link's rate.
    pub rate: Rate,
    /// The index of its hop.
    pub hop: usize,
    /// Number of hops; 0 if it is not known.
    pub hops: usize,
    /// How the rates of the hops' links in its direction change, by hop; `None` for a link whose rate is constant. Empty
    /// while no run has begun.
    pub courses: Arc<[Option<LinkCourse>]>,
    /// TCP flows whose data crosses it. The connections of users are not counted.
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
    /// The traffic groups whose data crosses it; the fields above are sums over them. Empty if the groups
    /// are not known.
    pub groups: Vec<GroupFacts>,
    /// Every flow, by its number.
    pub flows: Arc<FlowTable>,
}

/// A traffic group whose data crosses a link.
#[derive(Clone, Debug)]
pub struct GroupFacts {
    /// The number of the group, in the order of the file.
    pub group: u32,
    /// The number of flows of the group.
    pub flows: u64,
    /// Size of its packets.
    pub packet: Bytes,
    /// What is known of its protocol.
    pub traffic: GroupTraffic,
}

/// What is known of a group's flows, by protocol.
#[derive(Clone, Debug)]
pub enum GroupTraffic {
    /// TCP.
    Tcp {
        /// Round-trip times without queueing or transmission; each belongs to equally many flows.
        round_trips: Vec<Span>,
        /// Whether receivers acknowledge every second segment.
        delayed_acks: bool,
        /// Whether they are users: the number of connections at a time is not known.
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

impl GroupFacts {
    /// The same group with `some` of every `all` of its flows; `None` with none of them.
    fn with_flows(&self, (some, all): (u64, u64)) -> Option<Self> {
        if some == 0 {
            return None;
        }
        let part = |whole: u64| (u128::from(whole) * u128::from(some) / u128::from(all)) as u64;
        let mut group = self.clone();
        group.flows = part(group.flows).max(1);
        if let GroupTraffic::Udp { rate, .. } = &mut group.traffic {
            *rate = Rate::from_bps(part(rate.as_bps()));
        }
        Some(group)
    }
}

impl LinkFacts {
    /// A link with the traffic of these groups.
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

    /// The same link with only a part of the flows of each group, of which `stay` says by the group's number how many of
    /// how many stay. If the groups are not known, the traffic is unchanged.
    #[must_use]
    pub fn with_flows(&self, stay: impl Fn(u32) -> (u64, u64)) -> Self {
        if self.groups.is_empty() {
            return self.clone();
        }
        let groups = self
            .groups
            .iter()
            .filter_map(|group| group.with_flows(stay(group.group)));
        Self {
            hop: self.hop,
            hops: self.hops,
            courses: Arc::clone(&self.courses),
            ..Self::of_groups(self.rate, groups.collect(), Arc::clone(&self.flows))
        }
    }

    /// A link of which nothing else is known.
    pub fn of_rate(rate: Rate) -> Self {
        Self {
            rate,
            hop: 0,
            hops: 0,
            courses: Arc::default(),
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
#[derive(Debug, Default)]
pub struct FlowTable {
    /// Names of the groups, in the order of the file.
    pub groups: Vec<String>,
    /// The runs of flows, in the order of their numbers.
    runs: Vec<Run>,
    /// The number of flows in `runs`.
    count: u32,
    /// How many connections a user has opened with the number of each of these flows, up to the last flow of a user.
    connections: Vec<AtomicU32>,
    /// The flows after them, which users open and close.
    opened: boxcar::Vec<Opened>,
}

/// Flows with consecutive numbers that differ in their hosts only, so that a million of them take no memory each.
#[derive(Clone, Copy, Debug)]
pub struct FlowRun {
    /// The first flow.
    pub first: FlowFacts,
    /// The number of flows of the run.
    pub count: u32,
    /// How many hosts they have on each side, which they take in turn. The numbers of these follow one another.
    pub hosts: u32,
    /// Whether each belongs to a user.
    pub users: bool,
}

/// A run of flows in its table.
#[derive(Debug)]
struct Run {
    /// Number of the first flow.
    begin: u32,
    first: FlowFacts,
    hosts: u32,
}

impl Run {
    /// What is known of a flow of the run.
    #[inline]
    fn get(&self, flow: u32) -> FlowFacts {
        let host = (flow - self.begin) % self.hosts;
        FlowFacts {
            sender: self.first.sender + host,
            receiver: self.first.receiver + host,
            ..self.first
        }
    }
}

/// A flow that a user has opened.
#[derive(Debug, Default)]
struct Opened {
    /// The number of the user's own flow (upper half) and that of the host that sends data.
    packed: AtomicU64,
    /// The number of connections that have used this flow number.
    connections: AtomicU32,
}

impl FlowTable {
    /// A table of flows that do not change.
    pub fn new(groups: Vec<String>, flows: Vec<FlowFacts>) -> Self {
        let runs = flows.into_iter().map(|first| FlowRun {
            first,
            count: 1,
            hosts: 1,
            users: true,
        });
        Self::of_runs(groups, runs)
    }

    /// The same for runs of flows.
    pub fn of_runs(groups: Vec<String>, runs: impl IntoIterator<Item = FlowRun>) -> Self {
        let (mut count, mut connections) = (0, Vec::new());
        let runs = runs.into_iter().map(|run| {
            let begin = count;
            count += run.count;
            if run.users {
                connections.resize_with(count as usize, AtomicU32::default);
            }
            Run {
                begin,
                first: run.first,
                hosts: run.hosts,
            }
        });
        Self {
            groups,
            runs: runs.collect(),
            count,
            connections,
            opened: boxcar::Vec::new(),
        }
    }

    /// The number of flows, without those that users open.
    pub fn count(&self) -> usize {
        self.count as usize
    }

    /// One flow of each run, in the order of their numbers.
    pub fn first_flows(&self) -> impl Iterator<Item = &FlowFacts> {
        self.runs.iter().map(|run| &run.first)
    }

    /// The first flow of each run, with the number of the run's flows and of their hosts.
    pub(crate) fn runs(&self) -> impl Iterator<Item = (&FlowFacts, u32, u32)> {
        let ends = self.runs.iter().skip(1).map(|run| run.begin);
        let ends = ends.chain(std::iter::once(self.count));
        let runs = self.runs.iter().zip(ends);
        runs.map(|(run, end)| (&run.first, end - run.begin, run.hosts))
    }

    /// The numbers of the hosts that receive data of a group, which follow one another; empty for a group without flows.
    pub(crate) fn hosts_of(&self, group: u32) -> Range<u32> {
        let own = self.runs.iter().filter(|run| run.first.group == group);
        let ends = own.map(|run| (run.first.receiver, run.first.receiver + run.hosts));
        let all = ends.reduce(|(a, b), (first, end)| (a.min(first), b.max(end)));
        all.map_or(0..0, |(first, end)| first..end)
    }

    /// What a router tells the flow by, as addresses and ports do: no two connections have the same key, also
    /// when one has the flow number that another had before. It is the number itself for a flow that no user
    /// opens.
    #[inline]
    pub fn key(&self, flow: FlowId) -> u64 {
        let at = flow.0 as usize;
        let connections = match self.connections.get(at) {
            Some(connections) => connections,
            None => {
                let beyond = at.checked_sub(self.count());
                match beyond.and_then(|beyond| self.opened.get(beyond)) {
                    Some(opened) => &opened.connections,
                    None => return u64::from(flow.0),
                }
            }
        };
        u64::from(connections.load(Ordering::Relaxed)) << 32 | u64::from(flow.0)
    }

    /// What is known of a flow; the default for a flow that is not in the table.
    #[inline]
    pub fn get(&self, flow: FlowId) -> FlowFacts {
        match flow.0 < self.count {
            true => self.known(flow.0),
            false => self.of_opened(flow.0),
        }
    }

    /// What is known of a flow that no user opens.
    #[inline]
    fn known(&self, flow: u32) -> FlowFacts {
        let run = match self.runs.len() == self.count() {
            true => flow as usize, // each flow is a run
            false => self.runs.partition_point(|run| run.begin <= flow) - 1,
        };
        self.runs[run].get(flow)
    }

    /// What is known of a flow that a user has opened.
    #[cold]
    fn of_opened(&self, flow: u32) -> FlowFacts {
        let Some((own, sender)) = self.opened(flow) else {
            return FlowFacts::default();
        };
        FlowFacts {
            sender,
            ..self.known(own)
        }
    }

    /// The user's own flow and the sending host of a flow that a user has opened.
    fn opened(&self, flow: u32) -> Option<(u32, u32)> {
        let beyond = (flow as usize).checked_sub(self.count())?;
        let packed = self.opened.get(beyond)?.packed.load(Ordering::Relaxed);
        Some(((packed >> 32) as u32, packed as u32))
    }

    /// The number of the user's own flow, of a flow that a user has opened; of any other flow the
    /// flow itself.
    pub fn own_flow(&self, flow: u32) -> u32 {
        self.opened(flow).map_or(flow, |(own, _)| own)
    }

    /// The user with this flow has opened a new connection with its number.
    pub fn renew(&self, flow: u32) {
        self.connections[flow as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Enters `flow`, which the user with the flow `own` has opened and whose data comes from the host
    /// `sender`. It replaces an earlier flow of this number.
    ///
    /// # Panics
    /// When `flow` is one that no user opens, or is more than one after the last flow that was ever opened.
    pub fn open(&self, flow: u32, own: u32, sender: u32) {
        let beyond = flow as usize - self.count();
        if beyond == self.opened.count() {
            self.opened.push(Opened::default());
        }
        let opened = &self.opened[beyond];
        let packed = u64::from(own) << 32 | u64::from(sender);
        opened.packed.store(packed, Ordering::Relaxed);
        opened.connections.fetch_add(1, Ordering::Relaxed);
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
    /// The protocol of the flow.
    pub protocol: Protocol,
    /// The DSCP that its sender sets.
    pub dscp: Dscp,
    /// The port of the server; 0 if it is not given.
    pub port: u16,
    /// The host that sends data, numbered over all groups.
    pub sender: u32,
    /// The host that receives it, numbered over all groups.
    pub receiver: u32,
    /// Number of segments of its data, without retransmissions; `u64::MAX` if the data has no end, `None` if
    /// that is not known. Only metrics may use it: a router cannot know it.
    pub segments: Option<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_of_flows_is_the_same_as_each_flow_alone() {
        let flow = |group, sender, receiver| FlowFacts {
            group,
            sender,
            receiver,
            ..FlowFacts::default()
        };
        let run = |first, count, hosts| FlowRun {
            first,
            count,
            hosts,
            users: first.group == 1,
        };
        let runs = [
            run(flow(0, 0, 2), 3, 2),
            run(flow(1, 4, 5), 2, 1),
            run(flow(2, 6, 7), 1, 1),
        ];
        let single = [
            flow(0, 0, 2),
            flow(0, 1, 3),
            flow(0, 0, 2),
            flow(1, 4, 5),
            flow(1, 4, 5),
            flow(2, 6, 7),
        ];
        let tables = [
            FlowTable::of_runs(Vec::new(), runs),
            FlowTable::new(Vec::new(), single.to_vec()),
        ];
        for table in &tables {
            assert_eq!(table.count(), single.len());
            table.renew(4);
            table.open(6, 4, 8);
            for (number, facts) in (0..).zip(&single) {
                assert_eq!(table.get(FlowId(number)), *facts);
            }
            let opened = FlowFacts {
                sender: 8,
                ..single[4]
            };
            assert_eq!(table.get(FlowId(6)), opened);
            assert_eq!(table.get(FlowId(7)), FlowFacts::default());
        }
        for number in (0..8).map(FlowId) {
            assert_eq!(tables[0].key(number), tables[1].key(number));
        }
    }
}
