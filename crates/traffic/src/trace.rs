//! Connections from a table: when each begins, what it carries and how far it goes.
//!
//! A connection is a row, or several: *exchanges* one after the other, as in the a-b-t model of
//! Weigle, Adurthi, Hernandez-Campos, Jeffay and Smith, "Tmix: a tool for generating realistic TCP
//! application workloads in ns-2", ACM CCR 36(3), 2006, whose sequential connections these are.
//!
//! ```text
//! start, think: the asking side sends `request` bytes
//!               service: the answering side sends `response` bytes
//!        think: the asking side sends ...
//! ```
//!
//! `think` counts from the opening of the connection, from the last byte of the response before, or, if
//! there was none, from the request before. `service` counts from the arrival of the request's last
//! byte or, without a request, from what the answering side sent before (at first: from the moment
//! that the connection is established). An exchange without a response is a one-way message; one
//! without a request lets the answering side send first, or once more.
//!
//! The rows are not part of the scenario, which names them by a hash of their content: see [`Traces`].
//! Each path, that is each direction and round-trip time, has a host of its own. Each host has a user,
//! who opens the connections of that path. Users share the rows.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::sync::Arc;

use redtail_core::schemars::JsonSchema;
use redtail_core::serde::{Deserialize, Serialize};
use redtail_core::{Dscp, ParamError, Rate, Span, Time, schemars, serde};

use crate::access::{Direction, Group};
use crate::application::{Answer, Application, ConnectionId, Exchange, Network, Server};
use crate::bounds::MOST_AT_ONCE;
use crate::dealt::Dealt;
use crate::hosts::Hosts;
use crate::keys::groups;
use crate::kind::{MakeUser, TrafficKind, UserKind};
use crate::start::Start;
use crate::table::{TraceTable, TracedConnection, Traces};

groups! {
    /// Connections from a table.
    pub struct TraceParams of table {
        /// The table, a path relative to the experiment file: `.csv` or `.parquet` with the columns `start_s` and `size_bytes`, and perhaps `connection`, `direction`, `rtt_s`, `request_bytes`, `service_s` and `think_s`; or `.cvec`, connection vectors of tmix.
        pub file: String,
        /// Resolution of round-trip times: the values of the table are rounded to a multiple of this, and each distinct value has hosts of its own.
        /// Source: a choice, well below the differences between paths of a wide-area network.
        #[serde(default = "resolution")]
        pub rtt_resolution: Span,
        /// Filled in from the table.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schemars(skip)]
        pub table: Option<TableFacts>,
    }
}

fn resolution() -> Span {
    Span::from_ms(1)
}

/// Most paths in a table: each takes about a kilobyte.
pub const MAX_PATHS: usize = 10_000;

/// The facts on its table that a scenario has besides the hash.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(crate = "serde", deny_unknown_fields)]
pub struct TableFacts {
    /// Connections.
    pub connections: u32,
    /// Payload of the responses in the group's direction, and against it.
    pub bytes: [u64; 2],
    /// Hosts to which rows without a round-trip time are dealt.
    pub dealt: u32,
    /// Hosts, the last ones, whose responses go against the group's direction.
    pub reverse: u32,
}

/// The path of a connection of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Path {
    reverse: bool,
    /// Round-trip time in multiples of the resolution; `None` if the table has none.
    rtt: Option<u64>,
    /// The number of the group's own host, if the table has no round-trip time.
    dealt: u32,
}

/// The rows of a table, by host.
#[derive(Clone, Debug)]
pub struct Arranged {
    table: Arc<TraceTable>,
    paths: Vec<Path>,
    /// Connections by path, and in the order of their starts within one.
    order: Arc<[u32]>,
    /// The index in `order` of the first connection of each path.
    begins: Vec<usize>,
}

impl TrafficKind for TraceParams {
    fn example() -> &'static str {
        r#"file = "flows.csv""#
    }

    fn noun(&self) -> &'static str {
        "traced connection"
    }

    fn starts(&self) -> Option<&Dealt<Start>> {
        None
    }

    fn stops(&self) -> Option<&Dealt<Start>> {
        None
    }

    fn count(&self) -> u32 {
        self.table.map_or(0, |facts| facts.connections)
    }

    fn reverse_hosts(&self) -> u32 {
        self.table.map_or(0, |facts| facts.reverse)
    }

    fn check(&self) -> Result<(), ParamError> {
        if self.table.is_some() {
            let accepted = "no such key: it is filled in from the table";
            return Err(ParamError::new("table", "is given", accepted));
        }
        if self.flows != 1 {
            let accepted = "no such key: there is one for each path of the table";
            return Err(ParamError::new("users", "is given", accepted));
        }
        if self.rtt_resolution == Span::ZERO {
            return Err(ParamError::new(
                "rtt_resolution",
                "is zero",
                "a time such as \"1 ms\"",
            ));
        }
        Ok(())
    }
}

impl UserKind for TraceParams {
    type User = TraceUser;

    fn make_users(&self, traces: &Traces) -> MakeUser<TraceUser> {
        let table = traces.get(&self.file);
        let rows = self.arrange(table.expect("the run was started with its tables"));
        Box::new(move |i, _, _, _| rows.user(i))
    }

    fn offered(&self) -> Option<f64> {
        None
    }

    fn total_payload(&self) -> Option<[u64; 2]> {
        Some(self.table.map_or([0; 2], |facts| facts.bytes))
    }
}

impl TraceParams {
    fn path(&self, index: usize, connection: &TracedConnection, dealt: u32) -> Path {
        let step = self.rtt_resolution.as_ps();
        let rtt = connection.rtt.map(|rtt| (rtt.as_ps() + step / 2) / step);
        Path {
            reverse: connection.reverse,
            rtt,
            dealt: match rtt {
                Some(_) => 0,
                None => (index % dealt as usize) as u32,
            },
        }
    }

    /// The rows by host. Rows without a round-trip time are dealt out to `dealt` hosts.
    fn arranged(&self, table: &Arc<TraceTable>, dealt: u32) -> Arranged {
        let rows = || {
            let rows = table.connections.iter().enumerate();
            rows.map(|(index, row)| self.path(index, row, dealt))
        };
        let mut counts: BTreeMap<Path, (usize, usize)> = BTreeMap::new();
        for path in rows() {
            counts.entry(path).or_default().0 += 1;
        }
        let (mut begins, mut begin) = (Vec::with_capacity(counts.len()), 0);
        for (count, next) in counts.values_mut() {
            begins.push(begin);
            *next = begin;
            begin += *count;
        }
        let mut order = vec![0; begin];
        for (index, path) in rows().enumerate() {
            let (_, next) = counts.get_mut(&path).expect("it was counted");
            order[*next] = index as u32;
            *next += 1;
        }
        Arranged {
            table: Arc::clone(table),
            paths: counts.into_keys().collect(),
            order: order.into(),
            begins,
        }
    }

    /// Fills in what follows from the table: its hosts replace those of the group, and its name replaces
    /// that of the file. `path` is the propagation delay of the links, both ways.
    ///
    /// # Errors
    /// [`ParamError`] when the table has more paths than can be run.
    pub fn take_over(&mut self, table: &Arc<TraceTable>, path: Span) -> Result<(), ParamError> {
        let dealt = self.access().host_count().max(1) as u32;
        let found = self.arranged(table, dealt);
        let count = found.paths.len();
        if count > MAX_PATHS {
            return Err(ParamError::new(
                "rtt_resolution",
                format!("leaves {count} different paths in the table"),
                format!("a coarser one, so that there are at most {MAX_PATHS}"),
            ));
        }
        let mut delays = [const { Vec::new() }; 3];
        for it in &found.paths {
            let host = it.dealt as usize;
            let of = match it.rtt {
                None => [
                    *self.access_delay.get(host),
                    *self.exit_delay.get(host),
                    *self.return_delay.get(host),
                ],
                Some(steps) => {
                    let rtt = Span::from_ps(steps * self.rtt_resolution.as_ps());
                    let rest = rtt.saturating_sub(path);
                    let half = Span::from_ps(rest.as_ps() / 2);
                    [half, Span::ZERO, rest - half]
                }
            };
            for (list, delay) in delays.iter_mut().zip(of) {
                list.push(delay);
            }
        }
        let [access, exit, back] = delays.map(|list| match list.iter().all(|it| *it == list[0]) {
            true => Dealt::one(list[0]),
            false => Dealt::list(list),
        });
        self.access_delay = access;
        self.exit_delay = exit;
        self.return_delay = back;
        let mut bytes = [0; 2];
        for (index, row) in table.connections.iter().enumerate() {
            let exchanges = &table.exchanges[table.exchanges_of(index)];
            let responses: u64 = exchanges.iter().map(|it| it.response).sum();
            bytes[usize::from(row.reverse)] += responses;
        }
        self.flows = count as u32;
        self.hosts = Some(Hosts::Own(count as u32));
        self.file = table.name.clone();
        self.table = Some(TableFacts {
            connections: table.connections.len() as u32,
            bytes,
            dealt,
            reverse: found.paths.iter().filter(|it| it.reverse).count() as u32,
        });
        Ok(())
    }

    /// The rows of its table by host. [`take_over`](Self::take_over) must have been called.
    ///
    /// # Panics
    /// If it has not been called, or if this is another table.
    pub fn arrange(&self, table: &Arc<TraceTable>) -> Arranged {
        assert_eq!(self.file, table.name, "another table");
        let facts = self.table.expect("the table has been taken over");
        self.arranged(table, facts.dealt)
    }
}

impl Arranged {
    /// The user of host `host`.
    pub fn user(&self, host: usize) -> TraceUser {
        TraceUser {
            next: self.begins[host],
            end: self
                .begins
                .get(host + 1)
                .copied()
                .unwrap_or(self.order.len()),
            table: Arc::clone(&self.table),
            order: Arc::clone(&self.order),
            open: Vec::new(),
            due: BinaryHeap::new(),
        }
    }
}

/// An open connection of a table.
#[derive(Clone, Copy, Debug)]
struct Open {
    /// The exchange that it will start next.
    next: u32,
    end: u32,
    /// The exchange whose response it waits for.
    awaited: Option<u32>,
}

/// Opens the connections of one path of a table.
#[derive(Clone, Debug)]
pub struct TraceUser {
    table: Arc<TraceTable>,
    order: Arc<[u32]>,
    /// The index in `order` of the connection that opens next.
    next: usize,
    end: usize,
    /// Connections with exchanges that are not complete, by their numbers.
    open: Vec<Option<Open>>,
    /// The times at which connections start their next exchange.
    due: BinaryHeap<Reverse<(Time, ConnectionId)>>,
}

/// Longer than any run.
const LONGEST_SERVICE: Span = Span::from_s(100 * 24 * 3600);

impl TraceUser {
    fn next_start(&self) -> Option<Time> {
        let index = (self.next < self.end).then(|| self.order[self.next])?;
        Some(self.table.connections[index as usize].start)
    }

    /// Opens the next connection.
    fn begin(&mut self, network: &mut impl Network) {
        let index = self.order[self.next] as usize;
        self.next += 1;
        let exchanges = self.table.exchanges_of(index);
        let connection = network.connect(Server::Own);
        let number = connection.0 as usize;
        if number >= self.open.len() {
            self.open.resize(number + 1, None);
        }
        self.open[number] = Some(Open {
            next: exchanges.start as u32,
            end: exchanges.end as u32,
            awaited: None,
        });
        self.think(connection, network);
    }

    /// Starts the next exchange now, or when its think time is over.
    fn think(&mut self, connection: ConnectionId, network: &mut impl Network) {
        let Some(open) = &self.open[connection.0 as usize] else {
            return;
        };
        match self.table.exchanges[open.next as usize].think {
            Span::ZERO => self.ask(connection, network),
            think => self.due.push(Reverse((network.now() + think, connection))),
        }
    }

    /// Starts the next exchange and the following ones without a request, up to one after which the
    /// asking side has to wait.
    fn ask(&mut self, connection: ConnectionId, network: &mut impl Network) {
        let slot = &mut self.open[connection.0 as usize];
        while let Some(mut open) = slot.take() {
            let (mut service, mut answered) = (Span::ZERO, false);
            loop {
                let it = self.table.exchanges[open.next as usize];
                service = (service + it.service).min(LONGEST_SERVICE);
                answered |= it.response > 0;
                let tag = open.next;
                open.next += 1;
                let exchange = Exchange {
                    request: it.request,
                    response: it.response,
                    service,
                    tag,
                    last: open.next == open.end,
                };
                network.request(connection, exchange);
                if it.response > 0 {
                    open.awaited = Some(tag);
                }
                let more = open.next < open.end;
                if !more || self.table.exchanges[open.next as usize].request > 0 {
                    break;
                }
            }
            if open.next == open.end {
                return; // the network sees to the rest
            }
            let think = self.table.exchanges[open.next as usize].think;
            *slot = Some(open);
            if answered {
                return;
            }
            if think > Span::ZERO {
                self.due.push(Reverse((network.now() + think, connection)));
                return;
            }
        }
    }
}

impl Application for TraceUser {
    fn next_wakeup(&self) -> Option<Time> {
        let due = self.due.peek().map(|Reverse((at, _))| *at);
        due.into_iter().chain(self.next_start()).min()
    }

    fn on_wakeup(&mut self, network: &mut impl Network) {
        let now = network.now();
        for _ in 0..MOST_AT_ONCE {
            match self.due.peek().copied() {
                Some(Reverse((at, connection))) if at <= now => {
                    self.due.pop();
                    self.ask(connection, network);
                }
                _ if self.next_start().is_some_and(|at| at <= now) => self.begin(network),
                _ => return,
            }
        }
    }

    fn on_answer(&mut self, answer: Answer, network: &mut impl Network) {
        let slot = self.open.get_mut(answer.connection.0 as usize);
        let Some(Some(open)) = slot else {
            return; // it was the last
        };
        if open.awaited == Some(answer.tag) {
            open.awaited = None;
            self.think(answer.connection, network);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::TracedExchange;

    /// Notes what it is told, and when; what is asked for is answered by the test.
    #[derive(Default)]
    struct Fake {
        now: Time,
        open: u32,
        told: Vec<(u64, String)>,
    }

    impl Fake {
        fn note(&mut self, what: String) {
            let ms = (self.now - Time::ZERO).as_ps() / 1_000_000_000;
            self.told.push((ms, what));
        }

        fn at(&mut self, ms: u64) {
            self.now = Time::ZERO + Span::from_ms(ms);
        }
    }

    impl Network for Fake {
        fn now(&self) -> Time {
            self.now
        }

        fn connect(&mut self, _: Server) -> ConnectionId {
            self.open += 1;
            self.note(format!("connect {}", self.open - 1));
            ConnectionId(self.open - 1)
        }

        fn request(&mut self, connection: ConnectionId, it: Exchange) {
            let service = it.service.as_ps() / 1_000_000_000;
            let last = if it.last { " last" } else { "" };
            self.note(format!(
                "{}: {} > {} < {service}{last}",
                connection.0, it.request, it.response
            ));
        }

        fn close(&mut self, _: ConnectionId) {
            unreachable!("connections of tables close with their last exchange");
        }

        fn page(&mut self, _: Span) {
            unreachable!("tables have no pages");
        }
    }

    fn row(start_ms: u64, rtt_us: Option<u64>, reverse: bool, first: u32) -> TracedConnection {
        TracedConnection {
            start: Time::ZERO + Span::from_ms(start_ms),
            rtt: rtt_us.map(Span::from_us),
            reverse,
            first,
        }
    }

    fn exchange(request: u64, response: u64, service: u64, think: u64) -> TracedExchange {
        TracedExchange {
            request,
            response,
            service: Span::from_ms(service),
            think: Span::from_ms(think),
        }
    }

    fn group(keys: &str) -> TraceParams {
        let text = format!(r#"{{"name": "all", "file": "a.csv"{keys}}}"#);
        crate::from_json(&text).expect("it is a group")
    }

    fn answer(user: &mut TraceUser, network: &mut Fake, connection: u32, tag: u32) {
        let answer = Answer {
            connection: ConnectionId(connection),
            tag,
            size: 1,
            asked: Time::ZERO,
        };
        user.on_answer(answer, network);
    }

    fn wake(user: &mut TraceUser, network: &mut Fake) {
        network.now = user.next_wakeup().expect("something is due");
        user.on_wakeup(network);
    }

    fn only_user(connections: Vec<TracedConnection>, exchanges: Vec<TracedExchange>) -> TraceUser {
        let table = Arc::new(TraceTable::new("t", connections, exchanges));
        let mut group = group("");
        group.take_over(&table, Span::ZERO).expect("few paths");
        assert_eq!(group.flows, 1);
        group.arrange(&table).user(0)
    }

    #[test]
    fn very_many_connections_at_one_instant_take_several_events() {
        let rows = (0..2500).map(|i| row(5, None, false, i)).collect();
        let mut user = only_user(rows, vec![exchange(10, 20, 0, 0); 2500]);
        let mut network = Fake::default();
        for expected in [1024, 2048, 2500] {
            assert_eq!(user.next_wakeup(), Some(Time::ZERO + Span::from_ms(5)));
            wake(&mut user, &mut network);
            assert_eq!(network.open, expected);
        }
        assert_eq!(user.next_wakeup(), None);
    }

    #[test]
    fn connections_open_at_their_starts_and_ask_at_once() {
        let rows = vec![row(5, None, false, 0), row(7, None, false, 1)];
        let mut user = only_user(rows, vec![exchange(10, 20, 3, 0), exchange(11, 21, 0, 4)]);
        let mut network = Fake::default();
        wake(&mut user, &mut network);
        wake(&mut user, &mut network);
        wake(&mut user, &mut network); // the second thinks before it asks
        assert_eq!(user.next_wakeup(), None);
        let told: Vec<_> = network.told.iter().map(|(at, it)| (*at, &**it)).collect();
        assert_eq!(
            told,
            [
                (5, "connect 0"),
                (5, "0: 10 > 20 < 3 last"),
                (7, "connect 1"),
                (11, "1: 11 > 21 < 0 last"),
            ]
        );
    }

    #[test]
    fn the_next_exchange_comes_a_think_time_after_the_response() {
        let exchanges = vec![
            exchange(10, 20, 0, 0),
            exchange(11, 21, 0, 4),
            exchange(12, 22, 0, 0),
        ];
        let mut user = only_user(vec![row(0, None, false, 0)], exchanges);
        let mut network = Fake::default();
        wake(&mut user, &mut network);
        assert_eq!(user.next_wakeup(), None, "it waits for the response");
        network.at(100);
        answer(&mut user, &mut network, 0, 0);
        wake(&mut user, &mut network);
        network.at(200);
        answer(&mut user, &mut network, 0, 1); // no think time
        network.at(300);
        answer(&mut user, &mut network, 0, 2);
        assert_eq!(user.next_wakeup(), None);
        let told: Vec<_> = network.told.iter().map(|(at, it)| (*at, &**it)).collect();
        assert_eq!(
            told,
            [
                (0, "connect 0"),
                (0, "0: 10 > 20 < 0"),
                (104, "0: 11 > 21 < 0"),
                (200, "0: 12 > 22 < 0 last"),
            ]
        );
    }

    #[test]
    fn one_way_messages_do_not_wait_and_unasked_ones_wait_for_what_was_sent_before() {
        // The asking side sends twice, 4 ms apart; the other answers, and 6 ms after that
        // speaks again; then the asking side ends with a message.
        let exchanges = vec![
            exchange(10, 0, 0, 0),
            exchange(11, 21, 5, 4),
            exchange(0, 22, 6, 0),
            exchange(12, 0, 0, 1),
        ];
        let mut user = only_user(vec![row(0, None, false, 0)], exchanges);
        let mut network = Fake::default();
        wake(&mut user, &mut network);
        wake(&mut user, &mut network);
        assert_eq!(user.next_wakeup(), None);
        network.at(50);
        answer(&mut user, &mut network, 0, 1);
        assert_eq!(user.next_wakeup(), None, "the other side has more to say");
        network.at(60);
        answer(&mut user, &mut network, 0, 2);
        wake(&mut user, &mut network);
        assert_eq!(user.next_wakeup(), None);
        let told: Vec<_> = network.told.iter().map(|(at, it)| (*at, &**it)).collect();
        assert_eq!(
            told,
            [
                (0, "connect 0"),
                (0, "0: 10 > 0 < 0"),
                (4, "0: 11 > 21 < 5"),
                (4, "0: 0 > 22 < 11"), // 5 ms, and 6 ms more
                (61, "0: 12 > 0 < 0 last"),
            ]
        );
    }

    #[test]
    fn each_direction_and_rounded_round_trip_time_has_a_host_with_its_delays() {
        let rows = vec![
            row(1, Some(40_400), false, 0),
            row(2, Some(39_600), false, 1),
            row(3, Some(100_000), true, 2),
            row(4, None, false, 3),
        ];
        let exchanges = vec![exchange(1, 5, 0, 0); 4];
        let table = Arc::new(TraceTable::new("t", rows, exchanges));
        let mut group = group(r#", "access_delay": "7 ms""#);
        group
            .take_over(&table, Span::from_ms(30))
            .expect("few paths");
        let ms = |ms: &[u64]| ms.iter().copied().map(Span::from_ms).collect::<Vec<_>>();
        // The host for rows without a time, that of 40 ms, and the reverse one.
        assert_eq!(group.access_delay.values(), ms(&[7, 5, 35]));
        assert_eq!(group.return_delay.values(), ms(&[0, 5, 35]));
        assert_eq!((group.flows, group.hosts.clone()), (3, Some(Hosts::Own(3))));
        assert_eq!(group.file, "t", "the path is no part of a scenario");
        let facts = group.table.expect("it was filled in");
        assert_eq!((facts.reverse, facts.bytes), (1, [15, 5]));
        let arranged = group.arrange(&table);
        let rows = |host| {
            let user = arranged.user(host);
            user.order[user.next..user.end].to_vec()
        };
        assert_eq!([rows(0), rows(1), rows(2)], [vec![3], vec![0, 1], vec![2]]);
    }

    #[test]
    fn a_round_trip_time_is_not_rounded_below_that_of_the_links() {
        let table = TraceTable::new(
            "t",
            vec![row(1, Some(30_400), false, 0)],
            vec![exchange(1, 1, 0, 0)],
        );
        let mut group = group("");
        let path = Span::from_us(30_400);
        group.take_over(&Arc::new(table), path).expect("few paths");
        assert_eq!(group.access_delay, Dealt::one(Span::ZERO));
        assert_eq!(group.return_delay, Dealt::one(Span::ZERO));
    }

    #[test]
    fn a_table_of_more_paths_than_can_be_run_is_refused_with_a_coarser_resolution() {
        let count = MAX_PATHS as u32 + 1;
        let rows = (0..count).map(|i| row(1, Some(u64::from(i) * 1000), false, i));
        let table = TraceTable::new(
            "t",
            rows.collect(),
            vec![exchange(1, 1, 0, 0); count as usize],
        );
        let table = Arc::new(table);
        let error = group("").take_over(&table, Span::ZERO).unwrap_err();
        assert_eq!(error.key, "rtt_resolution");
        assert!(error.problem.contains("10001"), "{error}");
        let mut coarser = group(r#", "rtt_resolution": "2 ms""#);
        coarser.take_over(&table, Span::ZERO).expect("half as many");
    }

    #[test]
    fn what_the_table_decides_cannot_be_given() {
        for (keys, key) in [
            (r#", "users": 2"#, "users"),
            (r#", "rtt_resolution": "0 s""#, "rtt_resolution"),
        ] {
            assert_eq!(group(keys).check().unwrap_err().key, key);
        }
        group("").check().expect("no such key");
    }
}
