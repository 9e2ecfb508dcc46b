//! Lookahead: why most arrivals and ends of transmissions need no event, and results are the same nevertheless.
//!
//! # The idea
//!
//! A link with the lines that lead to it is a *logical process* (K. M. Chandy and J. Misra, "Distributed simulation", IEEE
//! Transactions on Software Engineering 5(5), 1979), and so are endpoints with the line that leads to them. What it does
//! depends on its own state and on the packets that arrive. Nobody else notices what it does before a packet that it has
//! sent arrives somewhere. The shortest time until then is its *lookahead*. So it may lag behind the schedule by that.
//!
//! The schedule has one event for it: its lookahead after its first work. When this event comes, the process is advanced to
//! the *horizon*, which is the place of the event in the total order of events. It carries out all work before the horizon:
//! each piece with its own time as `now`, in the total order.
//!
//! ```text
//!              first work                    the horizon, where its event is
//!              |<-------- lookahead -------->|
//! link      ---a----e--a-a--e-----a----e-----|----------------------------------> time
//! next stop ---------------------------------|----a-------a----------a----------> time
//!
//! a  a packet arrives     e  a transmission ends; its packet arrives at the next stop a lookahead later, or more
//! ```
//!
//! # The processes
//!
//! | process | its work | its lookahead |
//! |---|---|---|
//! | a link with the lines that lead to it | arrivals and ends of transmissions | the shortest leg behind it |
//! | TCP endpoints at the end of a line | arrivals | the shortest leg by which they answer, or the shortest time after which a timer expires that they set (`TcpParams::shortest_timer`) |
//! | the ends of UDP flows | arrivals, which they count | any; 50 ms, because packets are kept until then |
//! | in virtual time: the network as a whole | all events | the shortest path from the event to a host, or to a queue that another program keeps |
//!
//! In a simulation each link and each line that leads to endpoints is a process ([`Lookahead::of_processes`],
//! [`Links::use_lookahead`]). With the endpoints of a kernel in virtual time the network is one, and lookahead tells how long
//! it may sleep ([`Lookahead::of_network`], [`Scheduler::horizon`](crate::Scheduler::horizon)).
//!
//! Packets leave a line in the order in which they entered it. So only one process sends into each line behind a process
//! that lags behind: a link has lines of its own, and so have a host's link and the return path of a TCP host.
//!
//! # Where it does not apply
//!
//! | case | what happens in time | why |
//! |---|---|---|
//! | without lookahead (`RunOptions::without_lookahead`) | everything | it is for tests and to find faults |
//! | a capture | everything | packets are written in the order of their times |
//! | a network in real time | everything | what lags behind there may delay a packet |
//! | a leg without delay behind a link | the link | its lookahead is 0 |
//! | a trace of the rate | the link | its opportunities are the events |
//! | a wire that holds packets ([`wire`](crate::wire)) | the link | its releases are events of the schedule |
//! | frames, or a medium that both directions share | the link | its turns are the events |
//! | a queue that may ask to be woken ([`Wakeup`]) | the link | its wake-ups are events of the schedule |
//! | a run of 13 days or more | links | they compare arrivals as numbers in which 60 bits are the time (`LATEST_HEAD` in `link.rs`) |
//! | more than 16 lines that lead to a link, or one of them without delay or with another end too | arrivals at the link, not its ends of transmissions | it looks at the first packet of each line; what is sent and arrives at one instant comes after all else |
//! | pacing, loss detection by time, a slow reader, adaptive acknowledgements | the TCP endpoints | their timers may expire at once: such an event would have to be found between two arrivals |
//! | hosts that groups share (`hosts = "NAME"`) | their TCP endpoints | several processes send into one host's link |
//! | users' connections and calls | their endpoints | a packet makes a program act, which opens connections and sends |
//!
//! # Who advances them
//!
//! An event that reads or changes a process from outside first advances it to this event: `Engine::advance_to` in
//! `crates/sim`, which has the table of these events. Events of the process itself need nothing.
//!
//! `crates/sim/tests/it/lookahead.rs` compares runs with and without lookahead: they have the same results to the byte.

use std::collections::BTreeSet;

use redtail_core::{Span, Time};
use redtail_qdisc::{QueueDiscipline, Wakeup};

use crate::link::LATEST_HEAD;
use crate::links::Links;
use crate::network::Network;
use crate::paths::{HostRoutes, Leg, Paths, Target};

/// The least span. What comes before this span after a time comes at this time or before.
pub const INSTANT: Span = Span::from_ps(1);

/// The most lines that lead to a link to which packets arrive with lookahead: it looks at the head of each of them for each
/// packet.
pub(crate) const MOST_LINES: usize = 16;

/// The lookahead of the ends of UDP flows. No result depends on it.
const OF_UDP: Span = Span::from_ms(50);

/// The lookahead of each link and of each delay line: for a line that of the process at its end. [`Span::MAX`] for one that
/// nothing crosses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lookahead {
    /// Of links, then of lines: the order of the scheduler.
    pub(crate) wires: Vec<Span>,
    /// Of all other events.
    pub(crate) others: Span,
}

impl Lookahead {
    /// In a simulation: each link is a process, and so are the endpoints at the end of each line. `hosts` are all hosts,
    /// each with a time within which no timer expires that an endpoint on it sets.
    pub fn of_processes(
        network: &Network,
        hosts: impl Iterator<Item = (HostRoutes, Span)>,
    ) -> Self {
        let mut answers = vec![Span::ZERO; network.paths.routes.len()];
        let senders = senders(network);
        let has_own_link = |host: &HostRoutes| {
            let pipe = network.paths.first_leg(host.data).pipe;
            pipe.is_none_or(|pipe| senders[pipe as usize] == 1)
        };
        for (host, shortest_timer) in hosts.filter(|(host, _)| has_own_link(host)) {
            let by = |route: u32| shortest_timer.min(network.paths.first_leg(route).delay());
            if host.back_at_once {
                answers[host.data as usize] = by(host.data);
            } else {
                answers[host.data as usize] = by(host.back);
                answers[host.back as usize] = by(host.data);
            }
        }
        let at = |target: Target, route: usize, links: &[Span]| match target {
            Target::Link(link) => links[link as usize],
            Target::Receiver | Target::Sender => answers[route],
            Target::UdpSink => OF_UDP,
            Target::Caller | Target::Callee | Target::Own(_) | Target::Client | Target::Server => {
                Span::ZERO
            }
        };
        Self::new(network, at, |_, _, _| Span::ZERO)
    }

    /// Of a network with hosts outside: the network is a process, and hosts are others, as are the queues of the links that are `outside`.
    pub fn of_network(network: &Network, outside: impl Fn(u32) -> bool) -> Self {
        let at = |target: Target, _, links: &[Span]| match target {
            Target::Link(link) if !outside(link) => links[link as usize],
            _ => Span::ZERO,
        };
        Self::new(network, at, at)
    }

    /// `at` is the lookahead of what is at the end of a leg of a route; `further` is by how much it is noticed after a
    /// packet has arrived there that a link before it has sent. Both get those of links.
    fn new(
        network: &Network,
        at: impl Fn(Target, usize, &[Span]) -> Span,
        further: impl Fn(Target, usize, &[Span]) -> Span,
    ) -> Self {
        let mut links = vec![Span::MAX; network.links.len()];
        // A link hands packets to others, and so on: until no path is shorter than those found.
        loop {
            let before = links.clone();
            for (route, leg, next) in pairs(network) {
                if let (Target::Link(link), Some(next)) = (leg.target, next) {
                    let ahead = next.delay() + further(next.target, route, &before);
                    links[link as usize] = links[link as usize].min(ahead);
                }
            }
            // What happens at one of two links on a medium is noticed at the other.
            for link in &network.links {
                if let Some(partner) = link.airtime().and_then(|air| air.partner) {
                    let (own, other) = (link.number as usize, partner as usize);
                    links[own] = links[own].min(links[other]);
                }
            }
            if links == before {
                break;
            }
        }
        let mut lines = vec![Span::MAX; network.paths.line_count()];
        for (route, leg, _) in pairs(network) {
            let line = &mut lines[leg.line as usize];
            *line = (*line).min(at(leg.target, route, &links));
        }
        let others = links.iter().copied().min().unwrap_or(Span::ZERO);
        links.append(&mut lines);
        Self {
            wires: links,
            others,
        }
    }
}

/// By host's link, how many routes begin at it.
fn senders(network: &Network) -> Vec<u32> {
    let mut counts = vec![0; network.paths.pipes.len()];
    let first = network.paths.legs.iter().filter_map(|legs| legs[0].pipe);
    first.for_each(|pipe| counts[pipe as usize] += 1);
    counts
}

/// Each leg, with its route and the leg that follows it.
fn pairs(network: &Network) -> impl Iterator<Item = (usize, &Leg, Option<&Leg>)> {
    network
        .paths
        .legs
        .iter()
        .enumerate()
        .flat_map(|(route, legs)| {
            legs.iter()
                .enumerate()
                .map(move |(i, leg)| (route, leg, legs.get(i + 1)))
        })
}

impl Links {
    /// Lets the processes of a simulation until `end` lag behind the schedule, where that is allowed. `hosts` are as for
    /// [`Lookahead::of_processes`]. From then on, what reads or changes a process from outside advances it before.
    pub fn use_lookahead(&mut self, hosts: impl Iterator<Item = (HostRoutes, Span)>, end: Time) {
        let lookahead = Lookahead::of_processes(&self.network, hosts);
        let (of_links, of_lines) = lookahead.wires.split_at(self.network.links.len());
        let Network { links, paths, .. } = &mut self.network;
        for (line, &ahead) in paths.lines.iter_mut().zip(of_lines) {
            if !matches!(line.target, None | Some(Target::Link(_))) {
                line.lookahead = ahead;
            }
        }
        if end >= LATEST_HEAD {
            return;
        }
        for (link, &ahead) in links.iter_mut().zip(of_links) {
            let is_crossed = ahead < Span::MAX;
            let never_woken = link.queue.next_wakeup() == Wakeup::Never;
            let holds = link.wire.as_ref().is_some_and(|wire| wire.holds());
            let in_time = link.has_opportunities() || holds || !never_woken;
            if is_crossed && ahead > Span::ZERO && !in_time {
                link.lookahead = ahead;
                link.inputs = inputs(link.number, paths);
                for &line in &link.inputs {
                    paths.lines[line as usize].lookahead = ahead;
                }
            }
        }
    }
}

/// The lines that lead to a link, in the order of their numbers; none if packets have to arrive in time.
fn inputs(link: u32, paths: &Paths) -> Vec<u32> {
    let target = Target::Link(link);
    let legs = paths.legs.iter().flatten();
    let legs: Vec<&Leg> = legs.filter(|leg| leg.target == target).collect();
    let lines: BTreeSet<u32> = legs.iter().map(|leg| leg.line).collect();
    // What is sent at one instant and arrives at the same one comes after all that arrives then otherwise.
    let takes_time = |leg: &Leg| leg.pipe.is_some() || leg.delay() > Span::ZERO;
    let leads_there = |line: u32| paths.lines[line as usize].target == Some(target);
    let allowed = lines.len() <= MOST_LINES
        && legs
            .iter()
            .all(|leg| takes_time(leg) && leads_there(leg.line));
    lines.into_iter().filter(|_| allowed).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    use redtail_qdisc::Plugins;
    use redtail_spec::{Plan, PlanOptions};

    /// Two links, 10 ms and 20 ms long; hosts' links take 1 ms and the return path 5 ms.
    fn compiled(groups: &[&str]) -> (Network, Vec<Vec<HostRoutes>>) {
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
                 exit_delay = \"1 ms\"\n{more}\n"
            );
            if !more.contains("return_delay") {
                text += "return_delay = \"5 ms\"\n";
            }
        }
        let plan = Plan::from_text(&text, PlanOptions::default()).expect("it is sound");
        let scenario = plan.scenario(0, 0).expect("there is one");
        crate::compile(&scenario, &Plugins::new())
    }

    fn network(groups: &[&str]) -> Network {
        compiled(groups).0
    }

    fn in_ms(spans: &[Span]) -> Vec<u64> {
        let ms = |span: &Span| span.as_ps() / 1_000_000_000;
        spans.iter().map(ms).collect()
    }

    /// Those of the links to hosts and to the queues that are `outside`.
    fn of_links(network: &Network, outside: &[u32]) -> Vec<u64> {
        let found = Lookahead::of_network(network, |link| outside.contains(&link));
        in_ms(&found.wires[..network.links.len()])
    }

    #[test]
    fn that_of_a_network_is_the_shortest_path_from_a_link_to_a_host() {
        assert_eq!(of_links(&network(&[""]), &[]), [31, 21]);
        // Packets of another group leave after the first link.
        assert_eq!(of_links(&network(&["", "last_hop = 1"]), &[]), [11, 21]);
    }

    #[test]
    fn a_queue_outside_is_like_a_host() {
        assert_eq!(of_links(&network(&[""]), &[1]), [10, 21]);
        assert_eq!(of_links(&network(&[""]), &[0, 1]), [10, 21]);
        let found = Lookahead::of_network(&network(&[""]), |link| link == 0);
        assert_eq!(found.wires[2], Span::ZERO, "what arrives at it cannot wait");
    }

    /// That of the lines of each route.
    fn of_lines(network: &Network, found: &Lookahead) -> Vec<Vec<u64>> {
        let of = |leg: &Leg| found.wires[network.links.len() + leg.line as usize];
        let routes = network.paths.legs.iter();
        let of_route = |legs: &[Leg]| in_ms(&legs.iter().map(of).collect::<Vec<_>>());
        routes.map(of_route).collect()
    }

    #[test]
    fn that_of_a_line_is_what_its_packets_have_after_it() {
        let network = network(&[""]);
        let found = Lookahead::of_network(&network, |_| false);
        // The data, and the way back.
        assert_eq!(of_lines(&network, &found), [vec![31, 21, 0], vec![0]]);
        assert_eq!(found.others, Span::from_ms(21));
    }

    #[test]
    fn random_times_of_hosts_shorten_no_path() {
        let of = |more| Lookahead::of_network(&network(&[more]), |_| false);
        assert_eq!(of("host_jitter = \"1 ms\""), of(""));
    }

    #[test]
    fn that_of_a_process_is_the_shortest_leg_behind_it() {
        let of = |more: &str, timer: u64| {
            let (network, hosts) = compiled(&[more]);
            let hosts = hosts
                .iter()
                .flatten()
                .map(|&host| (host, Span::from_ms(timer)));
            let found = Lookahead::of_processes(&network, hosts);
            let links = in_ms(&found.wires[..network.links.len()]);
            (links, of_lines(&network, &found))
        };
        // The receiver answers over 5 ms, the sender over 1 ms. The last leg of the data takes 20 ms and 1 ms.
        let lines = |receiver, sender| vec![vec![10, 21, receiver], vec![sender]];
        assert_eq!(of("", 200), (vec![10, 21], lines(5, 1)));
        assert_eq!(of("", 3), (vec![10, 21], lines(3, 1)));
        assert_eq!(of("", 0), (vec![10, 21], lines(0, 0)));
        // Acknowledgements that take no time reach the sender at once: what it sends then takes 1 ms.
        let at_once = of("return_delay = \"0 ms\"", 200);
        assert_eq!(at_once, (vec![10, 21], lines(1, 0)));
    }
}
