//! Groups that are asked for by the load they offer: what that is a share of, about how many users
//! it takes, and the network on which it is measured.
//!
//! The load of a group is what it sends over the first bottleneck link on its data's way when nothing
//! holds it up: Le, Aikat, Jeffay and Smith (SIGCOMM 2003) found their numbers of users on a network
//! without congestion. Here that network is the experiment's own with every link 1000 times as fast
//! and without limits to queues; delays, hosts and random losses stay, other groups do not.

use redtail_core::Rate;
use redtail_qdisc::queues::tail_drop::TailDropParams;
use redtail_qdisc::{Limit, QueueParams};
use redtail_traffic::{Access, Dealt, Direction, TrafficParams};

use crate::error::Problem;
use crate::experiment::{Experiment, HopParams, Scenario, Topology, topology};
use crate::node::Node;
use crate::outline::crossed;
use crate::paths;
use crate::rate_changes::RateChanges;

/// How much faster the links of an unconstrained network are.
const SPEED_UP: u64 = 1000;

/// More packets than wait anywhere.
const NO_LIMIT: u64 = 1 << 40;

/// A load that a group is asked to offer.
#[derive(Debug, Clone, PartialEq)]
pub struct LoadRequest {
    /// The group's name.
    pub group: String,
    /// Share of the link's rate.
    pub share: f64,
    /// The load as it is printed.
    pub text: String,
    /// What results call the link.
    pub link: String,
    /// What results call the utilization of this link by this group.
    pub metric: String,
    /// The rate of the link.
    pub rate: Rate,
    /// How much faster the link of the unconstrained network is.
    pub speed_up: u64,
    /// About how many users offer it, from the means of the model; 1 if these say nothing.
    pub estimate: u32,
}

/// The first bottleneck link that a group's data crosses: the index of its hop, and its rate.
fn first_link(access: &Access<'_>, topology: &Topology) -> Option<(usize, Rate)> {
    let mut hops = crossed(access, topology);
    match access.direction {
        Direction::Forward => {
            let first = hops.next()?;
            topology.hops().get(first).map(|hop| (first, hop.rate))
        }
        Direction::Reverse => hops.rev().find_map(|index| {
            let link = topology.hops().get(index)?.return_link.as_ref()?;
            Some((index, link.rate))
        }),
    }
}

/// Gives every group that is asked for by its load about as many users as it takes; refuses one that
/// is asked for by both.
pub(crate) fn estimate_users(experiment: &mut Experiment, tree: &Node) -> Result<(), Vec<Problem>> {
    let topology = topology(experiment.bottleneck.clone(), experiment.chain.clone());
    let mut problems = Vec::new();
    for group in &mut experiment.traffic {
        let (Some(load), name) = (group.load(), group.access().name.to_owned()) else {
            continue;
        };
        let users = format!("traffic.{name}.users");
        if let Some(value) = paths::find(tree, &users) {
            problems.push(Problem {
                origin: paths::origin(tree, &users),
                message: format!(
                    "{users} = {} stands beside load = \"{load}\", which says how many users there \
                     are; accepted: one of the two",
                    value.shown()
                ),
                key: Some(users),
            });
            continue;
        }
        let link = topology
            .as_ref()
            .and_then(|topology| first_link(&group.access(), topology));
        let most = f64::from(redtail_traffic::MAX_FLOWS);
        if let (Some((_, rate)), Some(offered)) = (link, group.offered_by_user())
            && let TrafficParams::Web(web) = group
            && offered > 0.0
        {
            let params = &web.tcp.params;
            let mss = params.mss.as_u64().max(1) as f64;
            let on_the_wire = 8.0 * offered * (1.0 + params.header.as_u64() as f64 / mss);
            let users = load.share() * rate.as_bps() as f64 / on_the_wire;
            if users > most {
                let key = format!("traffic.{name}.load");
                problems.push(Problem {
                    origin: paths::origin(tree, &key),
                    message: format!(
                        "{key} = {} would take about {users:.0} users; accepted: a load that {most} \
                         can offer",
                        paths::find(tree, &key).map_or(load.to_string(), Node::shown)
                    ),
                    key: Some(key),
                });
                continue;
            }
            web.flows = users.round().max(1.0) as u32;
        }
    }
    match problems.is_empty() {
        true => Ok(()),
        false => Err(problems),
    }
}

impl Scenario {
    /// The loads that its groups are asked for by; a scenario with any cannot be run.
    pub fn loads(&self) -> Vec<LoadRequest> {
        let asked = self.traffic.iter().filter_map(|group| {
            let (load, access) = (group.load()?, group.access());
            let (index, rate) = first_link(&access, &self.topology)?;
            let link = self.topology.link_name(index, access.direction);
            let lone = self.topology.hops().len() == 1;
            let metric = match access.direction {
                Direction::Forward if lone => format!("{}.utilization", access.name),
                _ => format!("{link}.{}.utilization", access.name),
            };
            Some(LoadRequest {
                group: access.name.to_owned(),
                share: load.share(),
                text: load.to_string(),
                link,
                metric,
                rate,
                speed_up: SPEED_UP,
                estimate: access.flows,
            })
        });
        asked.collect()
    }

    /// The scenario with so many users in the group of this name; no change if there is none.
    #[must_use]
    pub fn with_users(mut self, group: &str, users: u32) -> Scenario {
        let mut groups = self.traffic.iter_mut();
        let found = groups.find(|it| it.access().name == group && it.has_users());
        if let Some(found) = found {
            found.set_users(users);
        }
        self
    }

    /// The group of this name alone, with so many users, on this network without anything that
    /// could hold it up.
    #[must_use]
    pub fn unconstrained(self, group: &str, users: u32) -> Scenario {
        let mut scenario = self.with_users(group, users);
        scenario.traffic.retain(|it| it.access().name == group);
        scenario.host_jitter_by_default.retain(|it| it == group);
        for it in &mut scenario.traffic {
            // Those of another group stay without this.
            it.own_hosts(it.access().host_count() as u32);
            let faster = |rates: &Dealt<Rate>| {
                Dealt::list(rates.values().iter().map(|rate| faster(*rate)).collect())
            };
            if let TrafficParams::Web(web) = it {
                web.access_rate = web.access_rate.as_ref().map(faster);
                web.exit_rate = web.exit_rate.as_ref().map(faster);
            }
        }
        let hops = scenario.topology.hops_mut();
        for hop in hops {
            let HopParams {
                rate,
                queue,
                policer,
                airtime,
                medium,
                rate_changes,
                rate_trace,
                return_link,
                delay: _,
                wire: _,
                overhead: _,
                name: _,
            } = hop;
            (*rate, *queue) = (faster(*rate), unlimited());
            *rate_changes = RateChanges::default();
            *rate_trace = None;
            *policer = None;
            (*airtime, *medium) = (None, None);
            if let Some(link) = return_link {
                (link.rate, link.queue) = (faster(link.rate), unlimited());
                link.rate_changes = RateChanges::default();
                link.rate_trace = None;
                link.policer = None;
                link.airtime = None;
            }
        }
        scenario.series = None;
        scenario.events = None;
        scenario.record.clear();
        scenario.phases.clear();
        scenario
    }
}

fn faster(rate: Rate) -> Rate {
    Rate::from_bps(rate.as_bps().saturating_mul(SPEED_UP))
}

fn unlimited() -> QueueParams {
    QueueParams::TailDrop(TailDropParams {
        limit: Limit::packets(NO_LIMIT),
    })
}
