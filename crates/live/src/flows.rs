//! Which flow a packet belongs to, from its addresses and ports.
//!
//! Flows that are open from the beginning are known by their sender's address and port. Connections
//! of users are numbered when their first packet comes, with the facts of the first user of their
//! client's host.

use std::collections::{BTreeMap, VecDeque};

use redtail_core::{FlowId, Span, Time};
use redtail_network::FlowNumbers;
use redtail_network::HostRoutes;
use redtail_qdisc::{FlowTable, TcpHeader};
use redtail_spec::Scenario;

use crate::addresses::{self, Side};
use crate::packet::{Headers, Socket};

/// How long the number of a connection that both sides have closed is kept: Linux keeps the
/// addresses and ports for as long (`TCP_TIMEWAIT_LEN`, net/tcp.h).
const KEPT_AFTER_CLOSE: Span = Span::from_s(60);

/// A group, as packets are assigned to it.
#[derive(Debug)]
struct Group {
    /// Number of its first flow, over all groups.
    first: u32,
    /// Number of its first sending host, over all groups.
    first_host: u32,
    /// Flows that are open from the beginning, or users.
    flows: u32,
    hosts: usize,
    users: bool,
    /// Whether its first sending host stands for all addresses outside of the run.
    outside: bool,
    routes: Vec<HostRoutes>,
}

/// A connection of a user.
#[derive(Clone, Copy, Debug)]
struct Opened {
    flow: u32,
    /// By side: whether its FIN has been seen.
    closed: [bool; 2],
    /// Whether its end has been entered.
    ending: bool,
}

/// The addresses and ports of a connection of a user.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Pair {
    client: Socket,
    server: Socket,
}

/// Where a packet belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Number of its flow, over all groups.
    pub flow: u32,
    /// The route it takes.
    pub route: u32,
}

/// The flows of a run.
#[derive(Debug)]
pub struct FlowMap {
    groups: Vec<Group>,
    opened: BTreeMap<Pair, Opened>,
    /// Connections that are over, and when their numbers are given back.
    ending: VecDeque<(Time, Pair)>,
    numbers: FlowNumbers,
}

impl FlowMap {
    /// The flows of `scenario`, whose hosts have these routes.
    pub fn new(scenario: &Scenario, routes: Vec<Vec<HostRoutes>>, table: &FlowTable) -> Self {
        let mut first = 0;
        let groups = scenario.traffic.iter().zip(routes).map(|(group, routes)| {
            let access = group.access();
            let first_host = table.get(FlowId(first)).sender;
            let made = Group {
                first,
                first_host,
                flows: access.flows,
                hosts: access.host_count(),
                users: group.has_users() || group.programs().is_some(),
                outside: false,
                routes,
            };
            first += access.flows;
            made
        });
        let groups = groups.collect();
        Self {
            groups,
            opened: BTreeMap::new(),
            ending: VecDeque::new(),
            numbers: FlowNumbers::starting_at(first),
        }
    }

    /// Makes the first sending host of a group stand for all addresses outside of the run.
    pub fn let_outside(&mut self, group: usize) {
        self.groups[group].outside = true;
    }

    /// The flow and the route of a packet that a host on this side of a group sends now; `None` if
    /// the packet belongs to no flow of the run.
    pub fn place(
        &mut self,
        group: usize,
        side: Side,
        headers: &Headers<'_>,
        table: &FlowTable,
        now: Time,
    ) -> Option<Place> {
        let (source, destination) = (headers.source(), headers.destination());
        let (sender, receiver) = match side {
            Side::Sending => (source, destination),
            Side::Receiving => (destination, source),
        };
        let it = &self.groups[group];
        let host = match addresses::host_in(group, Side::Sending, sender.0) {
            None if it.outside => 0,
            host => host?,
        };
        let routes = *it.routes.get(host)?;
        let route = match side {
            Side::Sending => routes.data,
            Side::Receiving => routes.back,
        };
        if !it.users {
            let flow = addresses::flow_of(sender, it.hosts)? as u32;
            return (flow < it.flows).then_some(Place {
                flow: it.first + flow,
                route,
            });
        }
        let client = addresses::host_in(group, Side::Receiving, receiver.0)?;
        let own = it.first + (client as u32).min(it.flows - 1);
        let sender_host = it.first_host + host as u32;
        let pair = Pair {
            client: receiver,
            server: sender,
        };
        let flow = self.opened(pair, own, sender_host, side, headers.flags(), table, now);
        Some(Place { flow, route })
    }

    /// The number of a connection, which is entered if it is new.
    #[allow(clippy::too_many_arguments)] // what is known of one packet
    fn opened(
        &mut self,
        pair: Pair,
        own: u32,
        sender: u32,
        side: Side,
        flags: u16,
        table: &FlowTable,
        now: Time,
    ) -> u32 {
        while let Some(&(_, pair)) = self.ending.front().filter(|(at, _)| *at <= now) {
            self.ending.pop_front();
            if let Some(gone) = self.opened.remove(&pair) {
                self.numbers.give_back(gone.flow);
            }
        }
        let numbers = &mut self.numbers;
        let connection = self.opened.entry(pair).or_insert_with(|| {
            let flow = numbers.take();
            table.open(flow, own, sender);
            Opened {
                flow,
                closed: [false; 2],
                ending: false,
            }
        });
        if flags & TcpHeader::FIN != 0 {
            connection.closed[side as usize] = true;
        }
        let over = connection.closed == [true; 2] || flags & TcpHeader::RST != 0;
        if over && !connection.ending {
            connection.ending = true;
            self.ending.push_back((now + KEPT_AFTER_CLOSE, pair));
        }
        connection.flow
    }
}
