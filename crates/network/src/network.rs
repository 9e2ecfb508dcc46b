//! The network of links and what is between them, compiled from a scenario's template.

use std::collections::BTreeMap;
use std::sync::Arc;

use redtail_core::{Dscp, Rate, Span, Stream, Time};
use redtail_qdisc::follow::LinkCourse;
use redtail_qdisc::{FlowTable, LinkFacts, Plugins, QueueContext};
use redtail_spec::{AirtimeParams, HopParams, LinkParams, Medium, Scenario};
use redtail_traffic::{Access, Dealt, Direction, FlowKind, TrafficParams};

use crate::airtime::Airtime;
use crate::capacity::Capacity;
use crate::link::{Link, LinkCounters};
use crate::packet::SimPacket;
use crate::paths::{
    HostRoutes, Jitter, Leg, Legs, Line, Paths, Pipe, Random, Rare, Route, Sizes, Target,
};
use crate::transmitter::Transmitter;
use crate::wire::Wire;

/// The compiled network with everything in flight.
#[derive(Debug)]
pub struct Network {
    /// The links with queues.
    pub links: Vec<Link>,
    /// What is between them and the hosts.
    pub paths: Paths,
    /// The flows that cross it, as queues may know them.
    pub flows: Arc<FlowTable>,
}

impl Network {
    /// Everything in flight between links: on the lines, and held by wires.
    pub fn in_flight(&self) -> impl Iterator<Item = &SimPacket> {
        let wires = self.links.iter().filter_map(|link| link.wire.as_deref());
        self.paths.in_flight().chain(wires.flat_map(Wire::held))
    }
}

/// Compiles the network, and for each group the routes of each of its hosts.
pub fn compile(scenario: &Scenario, plugins: &Plugins) -> (Network, Vec<Vec<HostRoutes>>) {
    let mut compiler = Compiler {
        scenario,
        plugins,
        network: Network {
            links: Vec::new(),
            paths: Paths::default(),
            flows: scenario.flow_table(),
        },
        delays: Vec::new(),
        legs: Vec::new(),
        pure_lines: BTreeMap::new(),
        shared_pipes: BTreeMap::new(),
        hops: Vec::new(),
    };
    compiler.add_links();
    let shared = shared_sets(scenario);
    let groups = scenario.traffic.iter().enumerate();
    let routes = groups
        .map(|(i, group)| {
            let access = group.access();
            let randoms = compiler.add_randoms(group);
            let ends = match group {
                group if group.has_users() => [Target::Client, Target::Server],
                group if group.tcp().is_some() => [Target::Receiver, Target::Sender],
                group => match group.flow_kind(0) {
                    FlowKind::Call => [Target::Callee, Target::Caller],
                    FlowKind::Own => [Target::Own(1), Target::Own(0)],
                    FlowKind::Programs => [Target::Client, Target::Server],
                    _ => [Target::UdpSink; 2],
                },
            };
            (0..access.host_count())
                .map(|host| {
                    let mut access = access;
                    if group.is_reverse(host) {
                        access.direction = access.direction.opposite();
                    }
                    let place = Place {
                        group: i as u32,
                        set: shared[i],
                        host,
                    };
                    compiler.add_host(place, &access, ends, randoms)
                })
                .collect()
        })
        .collect();
    compiler.network.paths.legs = Legs::of(&compiler.legs);
    (compiler.network, routes)
}

/// For each group the group that has its hosts, if several groups sit on these.
fn shared_sets(scenario: &Scenario) -> Vec<Option<usize>> {
    let sets = scenario.host_sets();
    let mut members = vec![0; sets.len()];
    sets.iter().for_each(|&set| members[set] += 1);
    let shared = |set: usize| (members[set] > 1).then_some(set);
    sets.into_iter().map(shared).collect()
}

/// The two links of a bottleneck.
#[derive(Clone, Copy, Debug)]
struct HopLinks {
    forward: u32,
    back: Option<u32>,
}

/// A host of a group.
#[derive(Clone, Copy, Debug)]
struct Place {
    group: u32,
    /// The group that has the hosts, if several groups sit on them.
    set: Option<usize>,
    host: usize,
}

/// Which of a host's links.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum HostLink {
    Access,
    Exit,
}

struct Compiler<'a> {
    scenario: &'a Scenario,
    plugins: &'a Plugins,
    network: Network,
    /// The shortest propagation delay of each link.
    delays: Vec<Span>,
    /// The legs of each route.
    legs: Vec<Vec<Leg>>,
    /// Lines of legs without a pipe, by the link at which they begin (`None`: at endpoints) and by their delay.
    /// Packets enter each at non-decreasing times, and leave in the same order.
    pure_lines: BTreeMap<(Option<u32>, Span), u32>,
    /// The links of hosts that several groups may share: by the group that has the hosts, the host, and the direction.
    shared_pipes: BTreeMap<(usize, usize, bool, HostLink), u32>,
    hops: Vec<HopLinks>,
}

impl Compiler<'_> {
    fn add_links(&mut self) {
        let scenario = self.scenario;
        let hops = scenario.topology.hops();
        let links = scenario.topology.links();
        let capacity = |(_, link, hop, direction): &(_, LinkParams, usize, Direction)| {
            Capacity::of(link, || scenario.rate_steps(*hop, *direction, link))
        };
        let capacities: Vec<_> = links.iter().map(capacity).collect();
        // How the rates of all links in a direction change, for shapers that follow them: they are known before any queue.
        let mut courses = [vec![None; hops.len()], vec![None; hops.len()]];
        for ((_, link, hop, direction), capacity) in links.iter().zip(&capacities) {
            let course = capacity.as_ref().map(|it| it.course(link.rate));
            courses[*direction as usize][*hop] = course;
        }
        let courses = courses.map(Arc::<[Option<LinkCourse>]>::from);
        for ((_, link, hop, direction), capacity) in links.into_iter().zip(capacities) {
            let courses = Arc::clone(&courses[direction as usize]);
            let number = self.add_link((hop, direction), &link, capacity, courses);
            match (direction, self.hops.last_mut()) {
                (Direction::Reverse, Some(of_hop)) => of_hop.back = Some(number),
                _ => self.hops.push(HopLinks {
                    forward: number,
                    back: None,
                }),
            }
        }
        for (index, hop) in hops.iter().enumerate() {
            let HopLinks { forward, back } = self.hops[index];
            self.share_medium(hop, [forward, back.unwrap_or(forward)]);
        }
    }

    /// Gives the links of a hop their frames, if it has any: those of the return link are those of the other unless it has
    /// its own, where they share the medium.
    fn share_medium(&mut self, hop: &HopParams, [forward, back]: [u32; 2]) {
        let shared = hop.medium.map(|Medium::Shared| AirtimeParams::plain());
        let of_forward = hop.airtime.clone().or(shared.clone());
        let common = of_forward.clone().filter(|_| shared.is_some());
        let both = [
            (forward, Some(hop.forward()), of_forward),
            (back, hop.return_link.clone(), common),
        ];
        for (number, link, frames) in both {
            let Some(link) = link else { continue };
            let own = link.airtime.clone().or(frames);
            let Some(params) = own else { continue };
            let mut air = Airtime::new(&params, &link, self.scenario);
            air.partner = shared.as_ref().map(|_| forward + back - number);
            self.network.links[number as usize].capacity = Some(Box::new(Capacity::Airtime(air)));
        }
    }

    /// Adds the link of a hop in a direction. `courses` are those of all links in this direction.
    fn add_link(
        &mut self,
        (hop, direction): (usize, Direction),
        link: &LinkParams,
        capacity: Option<Box<Capacity>>,
        courses: Arc<[Option<LinkCourse>]>,
    ) -> u32 {
        let name = self.scenario.topology.link_name(hop, direction);
        let flows = Arc::clone(&self.network.flows);
        let facts = LinkFacts {
            courses,
            ..self.scenario.link_facts(hop, direction, link, flows)
        };
        let place = self.scenario.topology.link_place(hop, direction);
        let (seed, replication) = (self.scenario.seed, self.scenario.replication);
        let stream = |what: &str| Stream::named(seed, replication, &format!("{what}.{place}"));
        let queue = link.queue.build(QueueContext {
            rate: link.rate,
            stream: stream("queue"),
            link: Arc::new(facts),
            plugins: self.plugins.clone(),
        });
        let queue = match &link.policer {
            Some(policer) => queue.policed(policer),
            None => queue,
        };
        let number = self.network.links.len() as u32;
        let wire = Wire::of(link, number, stream);
        self.network.links.push(Link {
            number,
            name,
            prefix: self.scenario.topology.link_prefix(hop, direction),
            forward: direction == Direction::Forward,
            transmitter: Transmitter::new(link.rate),
            capacity,
            round_trip: self.scenario.mean_round_trip(hop),
            queue,
            transmitting: None,
            since: Time::ZERO,
            group: 0,
            free_at: Time::MAX,
            lookahead: Span::ZERO,
            due: Time::MAX,
            inputs: Vec::new(),
            wakeup: Time::MAX,
            wire,
            counters: LinkCounters::new(number, self.scenario.traffic.len()),
        });
        self.delays.push(link.least_delay());
        number
    }

    /// Adds a host. `ends` are the targets of data and of the packets in the other direction, `randoms` what is drawn for
    /// them.
    fn add_host(
        &mut self,
        place: Place,
        access: &Access<'_>,
        ends: [Target; 2],
        randoms: [Option<u32>; 2],
    ) -> HostRoutes {
        let Place { group, host, .. } = place;
        let last = access.last_hop.map_or(self.hops.len(), |hop| hop as usize);
        let first = access.first_hop.map_or(1, |hop| hop as usize);
        let crossed = &self.hops[first - 1..last];
        let forward: Vec<u32> = crossed.iter().map(|hop| hop.forward).collect();
        let backward: Vec<u32> = crossed.iter().rev().filter_map(|hop| hop.back).collect();
        let (data, back) = match access.direction {
            Direction::Forward => (forward, backward),
            Direction::Reverse => (backward, forward),
        };

        let filled_in = "a scenario has the rates of hosts' links filled in";
        let mut pipe = |link, rates: Option<&Dealt<Rate>>| {
            let rate = *rates.expect(filled_in).get(host);
            self.host_link(place, access, link, rate)
        };
        let entry = pipe(HostLink::Access, access.access_rate);
        let exit = pipe(HostLink::Exit, access.exit_rate);
        // Data: access link with the host's random times, bottlenecks, exit link.
        let entry = Some((entry, *access.access_delay.get(host)));
        let mut legs = vec![Leg {
            random: randoms[0],
            ..self.leg(None, Span::ZERO, entry, Target::Link(data[0]))
        }];
        for pair in data.windows(2) {
            let (from, to) = (pair[0], pair[1]);
            let delay = self.delays[from as usize];
            legs.push(self.leg(Some(from), delay, None, Target::Link(to)));
        }
        let last = data[data.len() - 1];
        let exit = Some((exit, *access.exit_delay.get(host)));
        legs.push(self.leg(Some(last), self.delays[last as usize], exit, ends[0]));
        let data = self.add_route(group, access.dscp, legs);

        // Acknowledgements: the links of the other direction, then the delay of the return path.
        // Hosts' links count as idle in this direction.
        let way_back = *access.return_delay.get(host);
        let mut legs = Vec::new();
        let (mut from, mut delay) = (None, Span::ZERO);
        for &link in &back {
            legs.push(self.leg(from, delay, None, Target::Link(link)));
            (from, delay) = (Some(link), self.delays[link as usize]);
        }
        let leg = match from {
            // A line of its own, so that nobody else sends into it (`lookahead.rs`).
            None if ends[1] == Target::Sender && way_back > Span::ZERO => {
                self.own_leg(way_back, ends[1])
            }
            _ => self.leg(from, delay + way_back, None, ends[1]),
        };
        legs.push(leg);
        legs[0].random = randoms[1];
        let back_at_once = back.is_empty() && way_back == Span::ZERO;
        let back = self.add_route(group, access.dscp, legs);
        HostRoutes {
            data,
            back,
            back_at_once,
        }
    }

    /// A link of a host: that which another group has already made that sits on the same host, if there is one.
    fn host_link(&mut self, place: Place, access: &Access<'_>, link: HostLink, rate: Rate) -> u32 {
        let Some(set) = place.set else {
            return self.add_pipe(rate);
        };
        let forward = access.direction == Direction::Forward;
        let key = (set, place.host, forward, link);
        if let Some(&pipe) = self.shared_pipes.get(&key) {
            return pipe;
        }
        let pipe = self.add_pipe(rate);
        self.shared_pipes.insert(key, pipe);
        pipe
    }

    fn add_pipe(&mut self, rate: Rate) -> u32 {
        self.network.paths.pipes.push(Pipe {
            transmitter: Transmitter::new(rate),
            busy_until: Time::ZERO,
            longest_wait: Span::ZERO,
        });
        self.network.paths.pipes.len() as u32 - 1
    }

    fn add_line(&mut self, target: Target) -> u32 {
        self.network.paths.lines.push(Line::new(target));
        self.network.paths.lines.len() as u32 - 1
    }

    /// Creates a leg of this delay with a line that no other leg has.
    fn own_leg(&mut self, delay: Span, target: Target) -> Leg {
        Leg {
            before: delay,
            pipe: None,
            after: Span::ZERO,
            line: self.add_line(target),
            target,
            random: None,
            dscp: Dscp::default(),
        }
    }

    /// Creates a leg that begins at the link `from` or at an endpoint, with the line it needs: the output of each pipe
    /// is a separate line. All legs that reach a pipe have the same delay (they belong to one host), so that the
    /// computation on entry is exact.
    fn leg(
        &mut self,
        from: Option<u32>,
        before: Span,
        pipe: Option<(u32, Span)>,
        target: Target,
    ) -> Leg {
        let line = match pipe {
            Some(_) => self.add_line(target),
            None => match self.pure_lines.get(&(from, before)) {
                Some(&line) => {
                    let shared = &mut self.network.paths.lines[line as usize].target;
                    *shared = shared.filter(|other| *other == target);
                    line
                }
                None => {
                    let line = self.add_line(target);
                    self.pure_lines.insert((from, before), line);
                    line
                }
            },
        };
        Leg {
            before,
            pipe: pipe.map(|(pipe, _)| pipe),
            after: pipe.map_or(Span::ZERO, |(_, after)| after),
            line,
            target,
            random: None,
            dscp: Dscp::default(),
        }
    }

    /// What is drawn for the packets of a group: for data, and for the packets in the other direction.
    fn add_randoms(&mut self, group: &TrafficParams) -> [Option<u32>; 2] {
        let access = group.access();
        let (seed, replication) = (self.scenario.seed, self.scenario.replication);
        let stream =
            |what: &str| Stream::named(seed, replication, &format!("{what}.{}", access.name));
        let longest = access.host_jitter.filter(|it| *it > Span::ZERO);
        let jitter = longest.map(|longest| Jitter {
            longest,
            trains: access.trains,
            stream: stream("jitter"),
            flows: Vec::new(),
        });
        let sizes = |what: &str| {
            group.drawn_sizes().map(|drawn| Sizes {
                drawn,
                places: stream(what).places(),
            })
        };
        // Users send data both ways.
        let back = group.has_users().then(|| sizes("packet.back")).flatten();
        let both = [(jitter, sizes("packet")), (None, back)];
        let noted = !self.scenario.record.is_empty();
        both.map(|(jitter, sizes)| {
            let rare = (noted || sizes.is_some()).then_some(Rare { sizes, noted });
            (jitter.is_some() || rare.is_some()).then(|| {
                let randoms = &mut self.network.paths.randoms;
                randoms.push(Random { jitter, rare });
                randoms.len() as u32 - 1
            })
        })
    }

    fn add_route(&mut self, group: u32, dscp: Dscp, mut legs: Vec<Leg>) -> u32 {
        self.network.paths.routes.push(Route { group });
        legs.iter_mut().for_each(|leg| leg.dscp = dscp);
        self.legs.push(legs);
        self.network.paths.routes.len() as u32 - 1
    }
}
