//! How long after an event a host can get a packet because of it, at the earliest: the lookahead of
//! conservative parallel simulation (R. M. Fujimoto, "Parallel discrete event simulation",
//! Communications of the ACM 33(10), 1990). A queue that another program keeps is like a host.

use redtail_core::Span;

use crate::network::Network;
use crate::paths::{Leg, Target};
use crate::scheduler::Lookahead;

/// That of an event that no host notices.
const UNLIMITED: Span = Span::from_ps(u64::MAX);

impl Lookahead {
    /// That of the events of `network`. The queues of the links that are `outside` notice arrivals.
    pub fn of(network: &Network, outside: impl Fn(u32) -> bool) -> Self {
        let mut links = vec![UNLIMITED; network.links.len()];
        // From the arrival at a target.
        let at = |target: Target, links: &[Span]| match target {
            Target::Link(link) if !outside(link) => links[link as usize],
            _ => Span::ZERO,
        };
        // From the beginning of a leg, if a packet is sent at once.
        let along = |leg: &Leg, links: &[Span]| leg.before + leg.after + at(leg.target, links);
        // A link hands packets to others, and so on: until no way is shorter than those found.
        loop {
            let before = links.clone();
            for leg in pairs(network) {
                if let (Target::Link(link), Some(next)) = (leg.0.target, leg.1) {
                    let ahead = along(next, &before);
                    links[link as usize] = links[link as usize].min(ahead);
                }
            }
            if links == before {
                break;
            }
        }
        let mut lines = vec![UNLIMITED; network.paths.line_count()];
        for (leg, _) in pairs(network) {
            let ahead = at(leg.target, &links);
            let line = &mut lines[leg.line as usize];
            *line = (*line).min(ahead);
        }
        Self {
            others: links.iter().copied().min().unwrap_or(Span::ZERO),
            wires: links.iter().chain(&lines).map(|it| it.as_ps()).collect(),
        }
    }
}

/// The shortest time from when a link has sent a packet to when it arrives somewhere, by link; [`Span::MAX`] for a link
/// that nothing crosses.
pub(crate) fn shortest_legs(network: &Network) -> Vec<Span> {
    let mut shortest = vec![Span::MAX; network.links.len()];
    for pair in pairs(network) {
        if let (Target::Link(link), Some(next)) = (pair.0.target, pair.1) {
            let shortest = &mut shortest[link as usize];
            *shortest = (*shortest).min(next.before + next.after);
        }
    }
    shortest
}

/// Each leg with the one that follows it.
fn pairs(network: &Network) -> impl Iterator<Item = (&Leg, Option<&Leg>)> {
    network.paths.legs.iter().flat_map(|legs| {
        legs.iter()
            .enumerate()
            .map(|(i, leg)| (leg, legs.get(i + 1)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    use redtail_qdisc::Plugins;
    use redtail_spec::{Plan, PlanOptions};

    /// Two links, 10 ms and 20 ms long; hosts' links take 1 ms and the return path 5 ms.
    fn network(groups: &[&str]) -> Network {
        let mut text = "name = \"chain\"\nduration = \"1 s\"\nhost_jitter = \"0 s\"\n".to_owned();
        for delay in ["10 ms", "20 ms"] {
            text += &format!(
                "[[chain.hop]]\nrate = \"10 Mbit/s\"\ndelay = \"{delay}\"\n\
                 queue = {{ kind = \"tail-drop\", limit = \"100 packets\" }}\n"
            );
        }
        for (number, more) in groups.iter().enumerate() {
            text += &format!(
                "[[traffic]]\nname = \"g{number}\"\nkind = \"bulk\"\naccess_delay = \"1 ms\"\n\
                 exit_delay = \"1 ms\"\nreturn_delay = \"5 ms\"\n{more}\n"
            );
        }
        let plan = Plan::from_text(&text, PlanOptions::default()).expect("it is sound");
        let scenario = plan.scenario(0, 0).expect("there is one");
        crate::compile(&scenario, &Plugins::new()).0
    }

    fn of_links(network: &Network, outside: &[u32]) -> Vec<u64> {
        let found = Lookahead::of(network, |link| outside.contains(&link));
        let ms = |&ps: &u64| ps / 1_000_000_000;
        found.wires[..network.links.len()].iter().map(ms).collect()
    }

    #[test]
    fn it_is_the_shortest_way_from_a_link_to_a_host() {
        assert_eq!(of_links(&network(&[""]), &[]), [31, 21]);
        // Packets of another group leave after the first link.
        assert_eq!(of_links(&network(&["", "last_hop = 1"]), &[]), [11, 21]);
    }

    #[test]
    fn a_queue_outside_is_like_a_host() {
        assert_eq!(of_links(&network(&[""]), &[1]), [10, 21]);
        assert_eq!(of_links(&network(&[""]), &[0, 1]), [10, 21]);
        let found = Lookahead::of(&network(&[""]), |link| link == 0);
        assert_eq!(found.wires[2], 0, "what arrives at it cannot wait");
    }

    #[test]
    fn that_of_a_line_is_what_its_packets_have_after_it() {
        let network = network(&[""]);
        let found = Lookahead::of(&network, |_| false);
        let routes: Vec<_> = network.paths.legs.iter().collect();
        let [data, back] = routes[..] else {
            panic!("one host has two routes");
        };
        let of = |leg: &Leg| found.wires[network.links.len() + leg.line as usize];
        let ms = 1_000_000_000;
        let expected = [31 * ms, 21 * ms, 0];
        assert_eq!(data.iter().map(of).collect::<Vec<_>>(), expected);
        assert_eq!(back.iter().map(of).collect::<Vec<_>>(), [0]);
        assert_eq!(found.others, Span::from_ms(21));
    }

    #[test]
    fn random_times_of_hosts_shorten_no_way() {
        let of = |more| {
            let network = network(&[more]);
            (
                of_links(&network, &[]),
                Lookahead::of(&network, |_| false).wires,
            )
        };
        assert_eq!(of("host_jitter = \"1 ms\""), of(""));
    }
}
