//! A summary of an experiment in a few lines, for `redtail check`: a user sees there whether the file
//! describes the intended experiment.

use std::collections::BTreeSet;

use redtail_core::{Bytes, Rate, Span};
use redtail_traffic::{Access, Direction, TrafficParams};

use crate::experiment::{HopParams, Scenario, Topology};

/// A link's rate times the round-trip time of the TCP flows that cross it.
pub(crate) struct BandwidthDelay {
    /// Mean over flows of the round-trip time without any queueing, in seconds.
    pub round_trip: f64,
    /// The product, in bytes.
    pub bytes: f64,
    /// The largest packet of these flows.
    pub packet: Bytes,
}

impl BandwidthDelay {
    /// `None` if no TCP flow is among the groups.
    pub(crate) fn of(rate: Rate, groups: &[&TrafficParams], topology: &Topology) -> Option<Self> {
        let (mut flows, mut seconds, mut packet) = (0.0, 0.0, Bytes::ZERO);
        for group in groups.iter().filter(|group| group.tcp().is_some()) {
            let round_trips = base_round_trips(group, topology);
            let mean = round_trips.iter().map(|rtt| rtt.as_secs_f64()).sum::<f64>()
                / round_trips.len() as f64;
            let count = f64::from(group.access().flows_at_once);
            flows += count;
            seconds += count * mean;
            packet = packet.max(group.packet_size());
        }
        let round_trip = seconds / flows;
        (flows > 0.0).then(|| BandwidthDelay {
            round_trip,
            bytes: rate.as_bps() as f64 / 8.0 * round_trip,
            packet,
        })
    }

    /// The product in packets of the largest size.
    pub(crate) fn packets(&self) -> f64 {
        self.bytes / self.packet.as_u64() as f64
    }

    /// `162 kB or 109 packets of 1500 B`.
    pub(crate) fn shown(&self) -> String {
        format!(
            "{} or {} packets of {}",
            bytes_in_words(self.bytes),
            self.packets().ceil(),
            self.packet
        )
    }
}

/// The groups whose data crosses the hop with this index in this direction.
pub(crate) fn crossing<'a>(
    groups: &'a [TrafficParams],
    topology: &Topology,
    index: usize,
    direction: Direction,
) -> Vec<&'a TrafficParams> {
    let groups = groups.iter();
    groups
        .filter(|group| crosses(group, topology, index, direction))
        .collect()
}

/// Whether a group's data crosses the hop with this index in this direction.
pub(crate) fn crosses(
    group: &TrafficParams,
    topology: &Topology,
    index: usize,
    direction: Direction,
) -> bool {
    let access = group.access();
    let [own, other] = group.ways();
    let goes = if access.direction == direction {
        own
    } else {
        other
    };
    goes && crossed(&access, topology).contains(&index)
}

/// Indices of the hops a group crosses.
pub(crate) fn crossed(access: &Access<'_>, topology: &Topology) -> std::ops::Range<usize> {
    let first = access
        .first_hop
        .map_or(0, |hop| (hop as usize).saturating_sub(1));
    let last = access
        .last_hop
        .map_or(topology.hops().len(), |hop| hop as usize);
    first..last
}

/// Round-trip times without any queueing or transmission, one for each host of the group.
pub(crate) fn base_round_trips(group: &TrafficParams, topology: &Topology) -> Vec<Span> {
    /// The largest number of hosts that are looked at. A file can ask for billions, but no list has more
    /// different values.
    const LOOKED_AT: usize = 1 << 16;

    let access = group.access();
    let hops = topology.hops()[crossed(&access, topology)].iter();
    let delay = |hop: &HopParams| {
        hop.delay
            + hop
                .return_link
                .as_ref()
                .map_or(Span::ZERO, |link| link.delay)
    };
    let path: Span = hops.map(delay).sum();
    let hosts = used_hosts(group).clamp(1, LOOKED_AT);
    (0..hosts)
        .map(|host| {
            path + *access.access_delay.get(host)
                + *access.exit_delay.get(host)
                + *access.return_delay.get(host)
        })
        .collect()
}

/// The number of hosts on each side that a group's flows may use. Users also connect to servers on other
/// hosts.
pub(crate) fn used_hosts(group: &TrafficParams) -> usize {
    let access = group.access();
    match group.has_users() {
        true => access.host_count(),
        false => access.host_count().min(access.flows as usize),
    }
}

/// The lines; `runs` are the first replication of every case, at least one, and `replications` the
/// numbers that each gets at least and at most.
pub(crate) fn outline(runs: &[&Scenario], replications: (u32, u32)) -> Vec<String> {
    let mut lines = Vec::new();
    let topology = &runs[0].topology;
    for index in 0..topology.hops().len() {
        lines.push(hop_line(runs, index));
    }
    for (place, name) in group_names(runs) {
        lines.push(group_line(runs, place, name));
    }
    let seconds = |span: fn(&Scenario) -> Span| {
        range(
            runs.iter().map(|run| span(run).as_secs_f64()),
            time_in_words,
        )
    };
    let mut line = format!(
        "each run: {} simulated, the last {} of it measured",
        seconds(|run| run.duration),
        seconds(|run| run.duration - run.warmup),
    );
    let packets = runs.iter().map(|run| packets(run)).sum::<f64>();
    if packets > 0.0 {
        let hop = match topology {
            Topology::Bottleneck(_) => "the bottleneck".to_owned(),
            Topology::Chain(_) => topology.hop_name(0),
        };
        let counts = <[u32; 2]>::from(replications).map(f64::from);
        let count = range(counts.into_iter().map(|n| n * packets), count_in_words);
        line += &format!("; about {count} packets over {hop} in all runs");
    }
    lines.push(line);
    lines
}

fn hop_line(runs: &[&Scenario], index: usize) -> String {
    let rates = runs
        .iter()
        .map(|run| run.topology.hops()[index].rate.as_bps() as f64);
    let products: Vec<_> = runs
        .iter()
        .filter_map(|run| {
            let groups = crossing(&run.traffic, &run.topology, index, Direction::Forward);
            BandwidthDelay::of(run.topology.hops()[index].rate, &groups, &run.topology)
        })
        .collect();
    let mut line = format!(
        "{}: {}",
        runs[0].topology.hop_name(index),
        range(rates, |bps| Rate::from_bps(bps as u64).to_string())
    );
    let hop = &runs[0].topology.hops()[index];
    match hop.rate_changes.list() {
        [] if let Some(law) = hop.rate_changes.law() => {
            line += &format!(", which changes every {}", law.every);
        }
        [] if hop.rate_trace.is_some() => {
            line += " (what queues are told; a trace says when it delivers)"
        }
        [] => {}
        [change] => line += &format!(" until {}, then {}", change.at, change.rate),
        [first, .., last] => {
            let count = hop.rate_changes.list().len();
            line += &format!(
                " until {}, {count} changes, at last {}",
                first.at, last.rate
            );
        }
    }
    if !products.is_empty() {
        line += &format!(
            "; one bandwidth-delay product is {} or {} packets of {} (mean base round trip {})",
            range(products.iter().map(|product| product.bytes), bytes_in_words),
            range(
                products.iter().map(|product| product.packets().ceil()),
                |packets| packets.to_string()
            ),
            range(
                products
                    .iter()
                    .map(|product| product.packet.as_u64() as f64),
                |bytes| Bytes::new(bytes as u64).to_string()
            ),
            range(
                products.iter().map(|product| product.round_trip),
                time_in_words
            ),
        );
    }
    line
}

/// The names of the groups of all cases, in the order in which they come first, each with its place there.
fn group_names<'a>(runs: &[&'a Scenario]) -> Vec<(usize, &'a str)> {
    let mut known = BTreeSet::new();
    let groups = runs.iter().flat_map(|run| run.traffic.iter().enumerate());
    let names = groups.map(|(place, group)| (place, group.access().name));
    names.filter(|&(_, name)| known.insert(name)).collect()
}

/// The group of this name in the cases that have it; most have it at this place.
fn members<'a>(
    runs: &[&'a Scenario],
    place: usize,
    name: &str,
) -> Vec<(&'a Scenario, &'a TrafficParams)> {
    let is_it = |group: &&TrafficParams| group.access().name == name;
    let member = |run: &'a Scenario| {
        let at_place = run.traffic.get(place).filter(is_it);
        let group = at_place.or_else(|| run.traffic.iter().find(is_it));
        group.map(|group| (run, group))
    };
    runs.iter().filter_map(|&run| member(run)).collect()
}

fn group_line(runs: &[&Scenario], place: usize, name: &str) -> String {
    let groups = members(runs, place, name);
    let flows = groups
        .iter()
        .map(|(_, group)| f64::from(group.noun_and_count().1));
    let alone = flows.clone().all(|flows| flows == 1.0);
    let round_trips = groups.iter().flat_map(|(run, group)| {
        let spans = base_round_trips(group, &run.topology);
        spans.into_iter().map(|span| span.as_secs_f64())
    });
    let loads = groups.iter().map(|(run, group)| {
        let load = group.load();
        load.and_then(|_| run.loads().into_iter().find(|load| load.group == name))
    });
    let loads: Option<Vec<_>> = loads.collect();
    let rest = match groups.len() == runs.len() {
        true => String::new(),
        false => format!(", in {} of {} cases", groups.len(), runs.len()),
    };
    if let Some(loads) = loads {
        return format!(
            "{name}: users for {} of {} ({}) to be calibrated, about {}; base round-trip time {}{rest}",
            range(loads.iter().map(|load| load.share), |share| format!(
                "{} %",
                three_digits(share * 100.0)
            )),
            loads[0].link,
            range(loads.iter().map(|load| load.rate.as_bps() as f64), |bps| {
                Rate::from_bps(bps as u64).to_string()
            }),
            range(flows, |flows| flows.to_string()),
            range(round_trips, time_in_words),
        );
    }
    let (kind, _) = groups[0].1.noun_and_count();
    format!(
        "{name}: {} {kind}{}{}{}, base round-trip time {}{rest}",
        range(flows, |flows| flows.to_string()),
        if alone { "" } else { "s" },
        again(&groups),
        on_hosts(&groups),
        range(round_trips, time_in_words),
    )
}

/// How often a group comes and goes, if more than once.
fn again(groups: &[(&Scenario, &TrafficParams)]) -> String {
    let counts = groups.iter().map(|(_, group)| group.activations());
    match counts.clone().max() {
        Some(0 | 1) | None => String::new(),
        Some(_) => {
            let counts = range(counts.map(f64::from), |count| count.to_string());
            format!(", {counts} times")
        }
    }
}

/// On whose hosts a group's flows sit, if on those of another group.
fn on_hosts(groups: &[(&Scenario, &TrafficParams)]) -> String {
    let owners = groups.iter().map(|(_, group)| group.access().hosts_of);
    let named: BTreeSet<&str> = owners.clone().flatten().collect();
    let names = named.into_iter().collect::<Vec<_>>().join(" or ");
    match (names.is_empty(), owners.into_iter().all(|it| it.is_some())) {
        (true, _) => String::new(),
        (false, true) => format!(" on the hosts of {names}"),
        (false, false) => format!(" on its own hosts or on those of {names}"),
    }
}

/// About how many packets the first hop sends in a run: what UDP sources offer, and
/// the rest of the link for TCP that always has data.
pub(crate) fn packets(run: &Scenario) -> f64 {
    let link = run.topology.hops()[0].rate.as_bps() as f64 / 8.0 * run.duration.as_secs_f64();
    let groups = crossing(&run.traffic, &run.topology, 0, Direction::Forward);
    // Bytes and packets offered without regard to the link, and the packet of TCP that fills it.
    let (mut bytes, mut packets, mut filling) = (0.0, 0.0, None);
    for group in groups {
        let forward = group.access().direction == Direction::Forward;
        match group.offered(run.duration.as_secs_f64(), forward) {
            None => filling = filling.max(Some(group.packet_size())),
            Some((of_group, packets_of_group)) => {
                bytes += of_group;
                packets += packets_of_group;
            }
        }
    }
    if bytes > link {
        return packets * (link / bytes);
    }
    packets + filling.map_or(0.0, |packet| (link - bytes) / packet.as_u64() as f64)
}

/// `140 ms to 260 ms`, or one value if both have the same text.
fn range(values: impl Iterator<Item = f64>, words: impl Fn(f64) -> String) -> String {
    let (least, most) = values.fold(
        (f64::INFINITY, f64::NEG_INFINITY),
        |(least, most), value| (least.min(value), most.max(value)),
    );
    let (least, most) = (words(least), words(most));
    if least == most {
        least
    } else {
        format!("{least} to {most}")
    }
}

/// A number with three significant digits and without trailing zeros: 130, 35.3, 1.25, 0.5.
fn three_digits(value: f64) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    let decimals = (2 - value.abs().log10().floor() as i32).clamp(0, 9);
    let text = format!("{value:.*}", decimals as usize);
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

/// A time: in milliseconds if it is short, as of a network, and in seconds if it is long, as of a run.
pub(crate) fn time_in_words(seconds: f64) -> String {
    match seconds {
        seconds if seconds < 1.0 => format!("{} ms", three_digits(seconds * 1e3)),
        seconds => format!("{} s", three_digits(seconds)),
    }
}

/// A rate that was computed, with three digits.
pub(crate) fn rate_in_words(bps: f64) -> String {
    match bps {
        bps if bps < 1e6 => format!("{} kbit/s", three_digits(bps / 1e3)),
        bps if bps < 1e9 => format!("{} Mbit/s", three_digits(bps / 1e6)),
        bps => format!("{} Gbit/s", three_digits(bps / 1e9)),
    }
}

pub(crate) fn bytes_in_words(bytes: f64) -> String {
    match bytes {
        bytes if bytes < 1e3 => format!("{} B", bytes.ceil()),
        bytes if bytes < 1e6 => format!("{} kB", three_digits(bytes / 1e3)),
        bytes => format!("{} MB", three_digits(bytes / 1e6)),
    }
}

/// An estimate, with two significant digits.
fn count_in_words(count: f64) -> String {
    let place = 10_f64.powi(count.log10().floor() as i32 - 1);
    let count = (count / place).round() * place;
    match count {
        count if count < 1e4 => format!("{}", count.round()),
        count if count < 1e6 => format!("{} thousand", three_digits(count / 1e3)),
        count if count < 1e9 => format!("{} million", three_digits(count / 1e6)),
        count => format!("{} billion", three_digits(count / 1e9)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_messages_are_rounded_to_what_can_be_read() {
        let times = [0.035_333, 0.13, 0.000_5, 1.25, 200.0, 0.0].map(time_in_words);
        assert_eq!(
            times,
            ["35.3 ms", "130 ms", "0.5 ms", "1.25 s", "200 s", "0 ms"]
        );
        let sizes = [573.2, 44_166.0, 162_500.0, 12.5e6].map(bytes_in_words);
        assert_eq!(sizes, ["574 B", "44.2 kB", "162 kB", "12.5 MB"]);
        let counts = [7.0, 833.3, 74_963.0, 7.49e6, 2.0e9].map(count_in_words);
        assert_eq!(
            counts,
            ["7", "830", "75 thousand", "7.5 million", "2 billion"]
        );
    }
}
