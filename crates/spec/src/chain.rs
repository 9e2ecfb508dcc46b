//! Names of the hops of a chain.

use redtail_traffic::ChainHop;

use crate::de::hint;
use crate::error::Problem;
use crate::experiment::{Experiment, Topology};
use crate::node::Node;
use crate::paths;

/// Puts the numbers of hops in the place of the names that groups give (`first_hop = "router-l"`). Returns what is wrong.
pub(crate) fn number_hops(experiment: &mut Experiment, tree: &Node) -> Vec<Problem> {
    let chain = experiment.chain.as_ref();
    let topology = Topology::Chain(chain.map_or_else(Vec::new, |chain| chain.hop.clone()));
    let names: Vec<String> = (0..topology.hops().len())
        .map(|index| topology.hop_name(index))
        .collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut problems = Vec::new();
    let of_hosts = experiment.hosts.iter_mut().flatten().map(|(name, hosts)| {
        let hops = [&mut hosts.first_hop, &mut hosts.last_hop];
        (format!("hosts.{name}"), hops)
    });
    let of_groups = experiment.traffic.iter_mut().map(|group| {
        let table = format!("traffic.{}", group.access().name);
        (table, group.hops_mut())
    });
    for (table, hops) in of_hosts.chain(of_groups) {
        for (key, hop) in ["first_hop", "last_hop"].into_iter().zip(hops) {
            let Some(ChainHop::Named(wanted)) = hop else {
                continue;
            };
            if let Some(index) = names.iter().position(|name| name == wanted) {
                *hop = Some(ChainHop::Number(index as u32 + 1));
                continue;
            }
            let key = format!("{table}.{key}");
            let clause = match names.as_slice() {
                [] => "is a key of chains, and this is a bottleneck; accepted: no such key".into(),
                names => format!(
                    "is not a hop of the chain; accepted: {}{}",
                    names.join(", "),
                    hint(wanted, names)
                ),
            };
            problems.push(Problem {
                origin: paths::origin(tree, &key),
                message: format!("{key} = {wanted:?} {clause}"),
                key: Some(key),
            });
            *hop = None;
        }
    }
    problems
}
