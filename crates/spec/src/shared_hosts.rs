//! Groups whose flows sit on the hosts of another group, or on those of a table `[hosts.NAME]` (`hosts = "NAME"`).
//!
//! Of the groups on the hosts of a table the first one has them, in the scenario, and the others name it.
//!
//! A host has one link in each direction, and one path. So such a group takes over rates, delays and hops of the group
//! that it names, and cannot have others. If the two send in opposite directions, the hosts that receive in one send in
//! the other: their links change places, and what data takes in one direction is what acknowledgements take in the other.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use redtail_core::{Dscp, Rate, Span};
use redtail_traffic::{Access, ChainHop, Dealt, Direction, MAX_FLOWS, TakenHosts, TrafficParams};

use crate::de;
use crate::error::Problem;
use crate::experiment::{Experiment, HostsParams, Scenario};
use crate::node::Node;
use crate::paths;

/// For each group the index of the group whose hosts its flows sit on: its own, unless it names another one.
pub(crate) fn host_sets(traffic: &[TrafficParams]) -> Vec<usize> {
    let named = traffic.iter().map(|group| group.access().name).zip(0..);
    let named: BTreeMap<&str, usize> = named.collect();
    let groups = traffic.iter().enumerate();
    groups
        .map(|(index, group)| {
            let of = group.access().hosts_of;
            of.and_then(|name| named.get(name).copied())
                .unwrap_or(index)
        })
        .collect()
}

/// For each group what the UDP flows of all groups send together that share its busiest host, in its direction.
pub(crate) fn host_peaks(traffic: &[TrafficParams]) -> Vec<Rate> {
    let sets = host_sets(traffic);
    let place = |index: usize| (sets[index], traffic[index].access().direction as u8);
    let mut sums: BTreeMap<(usize, u8), u64> = BTreeMap::new();
    for (index, group) in traffic.iter().enumerate() {
        let sum = sums.entry(place(index)).or_default();
        *sum = sum.saturating_add(group.host_peak().as_bps());
    }
    let groups = 0..traffic.len();
    groups
        .map(|index| Rate::from_bps(sums[&place(index)]))
        .collect()
}

impl Scenario {
    /// For each group the index of the group whose hosts its flows sit on: its own, unless it names another one.
    pub fn host_sets(&self) -> Vec<usize> {
        host_sets(&self.traffic)
    }
}

/// Tells each group that sits on hosts of another one how many these are.
pub(crate) fn count(traffic: &mut [TrafficParams]) {
    for (index, set) in host_sets(traffic).into_iter().enumerate() {
        let number = traffic[set].access().host_count() as u32;
        traffic[index].count_taken_hosts(number);
    }
}

/// Gives each group that sits on hosts of another one, or of a table, their links and delays. Returns what is wrong. A
/// chain has `hops` hops, of which groups cross all that they do not leave out.
pub(crate) fn place(experiment: &mut Experiment, tree: &Node, hops: usize) -> Vec<Problem> {
    let (traffic, tables) = (&mut experiment.traffic, experiment.hosts.iter().flatten());
    let tables: BTreeMap<&str, &HostsParams> =
        tables.map(|(name, hosts)| (name.as_str(), hosts)).collect();
    let mut problems = of_tables(&tables, traffic, tree);
    let named: Named = (traffic.iter().enumerate())
        .map(|(index, group)| {
            let access = group.access();
            let of = access.hosts_of.map(str::to_owned);
            (access.name.to_owned(), (index, of))
        })
        .collect();
    // The first group on the hosts of each table.
    let mut first: BTreeMap<&str, String> = BTreeMap::new();
    for index in 0..traffic.len() {
        let access = traffic[index].access();
        let Some(owner) = access.hosts_of else {
            continue;
        };
        if let Some((&name, hosts)) = tables.get_key_value(owner)
            && !matches!(traffic[index], TrafficParams::Trace(_))
        {
            let of_table = of_table(name, hosts);
            let taken = taken(&access, &of_table);
            problems.extend(other_values(&access, &of_table, &taken, tree, hops));
            let group = access.name.to_owned();
            traffic[index].take_hosts(taken);
            match first.get(name) {
                Some(first) => traffic[index].sit_on(first),
                None => {
                    traffic[index].own_hosts(of_table.host_count() as u32);
                    first.insert(name, group);
                }
            }
            continue;
        }
        match owner_of(&traffic[index], owner, traffic, &named, &tables) {
            Ok(owner) => {
                let taken = taken(&access, &owner.access());
                problems.extend(other_values(&access, &owner.access(), &taken, tree, hops));
                traffic[index].take_hosts(taken);
            }
            Err(clause) => {
                let key = format!("traffic.{}.hosts", access.name);
                problems.push(Problem {
                    origin: paths::origin(tree, &key),
                    message: format!("{key} = {owner:?} {clause}"),
                    key: Some(key),
                });
            }
        }
    }
    problems
}

/// What is wrong with tables of hosts by themselves.
fn of_tables(
    tables: &BTreeMap<&str, &HostsParams>,
    traffic: &[TrafficParams],
    tree: &Node,
) -> Vec<Problem> {
    let named: BTreeSet<&str> = traffic.iter().map(|group| group.access().name).collect();
    let used = traffic.iter().filter_map(|group| group.access().hosts_of);
    let used: BTreeSet<&str> = used.collect();
    let mut problems = Vec::new();
    for (name, hosts) in tables {
        let mut refuse = |key: &str, clause: &str| {
            let key = format!("hosts.{name}{key}");
            let value = match paths::find(tree, &key) {
                Some(value) if value.as_table().is_none() => format!(" = {}", value.shown()),
                _ => String::new(),
            };
            problems.push(Problem {
                origin: paths::origin(tree, &key),
                message: format!("{key}{value} {clause}"),
                key: Some(key),
            });
        };
        if named.contains(name) {
            refuse(
                "",
                "has the name of a traffic group; accepted: any other name",
            );
        } else if !used.contains(name) {
            let clause = format!("is used by no group; accepted: groups with hosts = {name:?}");
            refuse("", &clause);
        }
        if hosts
            .number
            .is_some_and(|number| !(1..=MAX_FLOWS).contains(&number))
        {
            let clause = format!("is no number of hosts; accepted: 1 to {MAX_FLOWS}");
            refuse(".number", &clause);
        }
    }
    problems
}

/// The delay of hosts that the file gives none.
static NO_DELAY: LazyLock<Dealt<Span>> = LazyLock::new(|| Dealt::one(Span::ZERO));

/// The hosts of a table as those of a group in forward direction.
fn of_table<'a>(name: &'a str, hosts: &'a HostsParams) -> Access<'a> {
    let delay = |given: &'a Option<Dealt<Span>>| given.as_ref().unwrap_or(&NO_DELAY);
    Access {
        name,
        flows: 1,
        flows_at_once: 1,
        access_rate: hosts.access_rate.as_ref(),
        access_delay: delay(&hosts.access_delay),
        exit_rate: hosts.exit_rate.as_ref(),
        exit_delay: delay(&hosts.exit_delay),
        return_delay: delay(&hosts.return_delay),
        hosts: hosts.number,
        hosts_of: None,
        host_jitter: None,
        trains: false,
        direction: Direction::Forward,
        dscp: Dscp::default(),
        port: 0,
        first_hop: hosts.first_hop.as_ref().and_then(ChainHop::number),
        last_hop: hosts.last_hop.as_ref().and_then(ChainHop::number),
        repeat: None,
        activations: None,
    }
}

/// The groups of a file by their names: the index of each, and whose hosts it names.
type Named = BTreeMap<String, (usize, Option<String>)>;

/// The group of this name, on whose hosts a group may sit; or a clause that says why it may not.
fn owner_of<'a>(
    group: &TrafficParams,
    owner: &str,
    traffic: &'a [TrafficParams],
    named: &Named,
    tables: &BTreeMap<&str, &HostsParams>,
) -> Result<&'a TrafficParams, String> {
    if matches!(group, TrafficParams::Trace(_)) {
        return Err("cannot be: the table of this group has its hosts; accepted: none".to_owned());
    }
    let names = || -> Vec<&str> {
        let own = traffic.iter().filter(|it| {
            let name = it.access().name;
            let has_own = named[name].1.is_none() && !matches!(it, TrafficParams::Trace(_));
            has_own && name != group.access().name
        });
        let own = own.map(|it| it.access().name);
        own.chain(tables.keys().copied()).collect()
    };
    let accepted = || match names().as_slice() {
        [] => "a number of hosts".to_owned(),
        names => format!(
            "a number of hosts, or {} that has its own: {}",
            if tables.is_empty() {
                "a group"
            } else {
                "a group or a table of hosts"
            },
            names.join(", ")
        ),
    };
    let Some((index, others)) = named.get(owner) else {
        let hint = de::hint(owner, &names());
        return Err(format!(
            "is no traffic group; accepted: {}{hint}",
            accepted()
        ));
    };
    let found = &traffic[*index];
    let problem = match (found, others) {
        (TrafficParams::Trace(_), _) => "is a group whose table has its hosts".to_owned(),
        _ if owner == group.access().name => "is the group itself".to_owned(),
        (_, None) => return Ok(found),
        (_, Some(other)) => format!("is a group that sits on the hosts of {other:?} itself"),
    };
    Err(format!("{problem}; accepted: {}", accepted()))
}

/// What a group takes over from the one that has the hosts.
fn taken(access: &Access<'_>, owner: &Access<'_>) -> TakenHosts {
    let hops = [owner.first_hop, owner.last_hop];
    let count = owner.host_count() as u32;
    if access.direction == owner.direction {
        return TakenHosts {
            count,
            access_rate: owner.access_rate.cloned(),
            access_delay: owner.access_delay.clone(),
            exit_rate: owner.exit_rate.cloned(),
            exit_delay: owner.exit_delay.clone(),
            return_delay: owner.return_delay.clone(),
            hops,
        };
    }
    TakenHosts {
        count,
        access_rate: owner.exit_rate.cloned(),
        access_delay: Dealt::one(Span::ZERO),
        exit_rate: owner.access_rate.cloned(),
        exit_delay: owner.return_delay.clone(),
        return_delay: added(owner.access_delay, owner.exit_delay, owner.host_count()),
        hops,
    }
}

/// The sums of two delays of each host.
fn added(one: &Dealt<Span>, other: &Dealt<Span>, hosts: usize) -> Dealt<Span> {
    let longest = one.values().len().max(other.values().len());
    let count = match one.values().len() == 1 || other.values().len() == 1 {
        true => longest,
        false => hosts.max(1),
    };
    Dealt::list((0..count).map(|i| *one.get(i) + *other.get(i)).collect())
}

/// Refuses values of a group that are not those of its hosts.
fn other_values(
    access: &Access<'_>,
    owner: &Access<'_>,
    taken: &TakenHosts,
    tree: &Node,
    hops: usize,
) -> Vec<Problem> {
    let opposite = access.direction != owner.direction;
    let rate = |own: Option<&Dealt<Rate>>, theirs: &Option<Dealt<Rate>>| own == theirs.as_ref();
    let first = |hop: Option<u32>| hop.unwrap_or(1);
    let last = |hop: Option<u32>| hop.unwrap_or(hops as u32);
    let keys = [
        ("access_rate", rate(access.access_rate, &taken.access_rate)),
        ("access_delay", *access.access_delay == taken.access_delay),
        ("exit_rate", rate(access.exit_rate, &taken.exit_rate)),
        ("exit_delay", *access.exit_delay == taken.exit_delay),
        ("return_delay", *access.return_delay == taken.return_delay),
        (
            "first_hop",
            first(access.first_hop) == first(owner.first_hop),
        ),
        ("last_hop", last(access.last_hop) == last(owner.last_hop)),
    ];
    let wrong = keys.into_iter().filter(|(_, same)| !same);
    wrong
        .filter_map(|(key, _)| {
            let key = format!("traffic.{}.{key}", access.name);
            let given = paths::find(tree, &key)?;
            let way = match opposite {
                true => ", which sends in the opposite direction",
                false => "",
            };
            Some(Problem {
                origin: paths::origin(tree, &key),
                message: format!(
                    "{key} = {} is not as on the hosts of {:?}{way}, where the flows sit; accepted: nothing, for \
                     it follows from these, or hosts of its own",
                    given.shown(),
                    owner.name
                ),
                key: Some(key),
            })
        })
        .collect()
}
