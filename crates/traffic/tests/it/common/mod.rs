//! A network that answers each request after a given time and writes down what users do.

use std::collections::BTreeMap;

use redtail_core::{Span, Stream, Time};
use redtail_traffic::{
    Answer, Application, ConnectionId, Exchange, Network, Server, Traces, TrafficParams, User,
};

/// A connection and what became of it.
#[derive(Clone, Debug)]
pub struct Opened {
    pub server: Server,
    /// When the user closed it; not set by a last exchange.
    pub closed: Option<Time>,
    /// Its last exchange was asked for.
    pub ended: bool,
    /// When its latest answer is due.
    busy_until: Time,
}

/// A request, in the order of asking.
#[derive(Clone, Copy, Debug)]
pub struct Asked {
    pub at: Time,
    pub connection: ConnectionId,
    pub exchange: Exchange,
    /// When it was answered, or will be.
    pub answered: Time,
}

/// How long a response takes.
type Takes = fn(&Exchange) -> Span;

/// The network.
pub struct Fake {
    now: Time,
    takes: Takes,
    pub opened: Vec<Opened>,
    pub asked: Vec<Asked>,
    /// When pages were complete, and how long they took.
    pub pages: Vec<(Time, Span)>,
    /// Most requests that a user made in one call.
    pub most_in_a_call: usize,
    /// Answers to come, by time and the number of the request.
    due: BTreeMap<(Time, usize), Answer>,
}

impl Fake {
    /// A network whose responses take what `takes` says; those on one connection come in turn.
    pub fn new(takes: Takes) -> Self {
        Self {
            now: Time::ZERO,
            takes,
            opened: Vec::new(),
            asked: Vec::new(),
            pages: Vec::new(),
            most_in_a_call: 0,
            due: BTreeMap::new(),
        }
    }

    /// Lets a user act until `end`.
    pub fn drive(&mut self, user: &mut User, end: Time) {
        loop {
            let wakeup = user.next_wakeup();
            let answer = self.due.first_key_value().map(|(&key, _)| key);
            let next = wakeup.into_iter().chain(answer.map(|key| key.0)).min();
            let Some(next) = next.filter(|at| *at <= end) else {
                return;
            };
            assert!(next >= self.now, "a wakeup in the past");
            self.now = next;
            let before = self.asked.len();
            if let Some(key) = answer.filter(|key| key.0 == next) {
                let answer = self.due.remove(&key).expect("seen above");
                user.on_answer(answer, self);
            } else {
                user.on_wakeup(self);
            }
            self.most_in_a_call = self.most_in_a_call.max(self.asked.len() - before);
        }
    }

    /// The requests of each page, in the order of their numbers.
    pub fn by_page(&self) -> Vec<Vec<Asked>> {
        let mut pages: Vec<Vec<Asked>> = Vec::new();
        for asked in &self.asked {
            let page = asked.exchange.tag as usize;
            assert!(page <= pages.len(), "pages are numbered in turn");
            if page == pages.len() {
                pages.push(Vec::new());
            }
            pages[page].push(*asked);
        }
        pages
    }

    /// The connections that these requests went over, each once.
    pub fn connections(&self, of: &[Asked]) -> Vec<ConnectionId> {
        let mut found: Vec<_> = of.iter().map(|asked| asked.connection).collect();
        found.sort();
        found.dedup();
        found
    }

    /// The server of a connection.
    pub fn server(&self, connection: ConnectionId) -> Server {
        self.opened[connection.0 as usize].server
    }
}

impl Network for Fake {
    fn now(&self) -> Time {
        self.now
    }

    fn connect(&mut self, server: Server) -> ConnectionId {
        self.opened.push(Opened {
            server,
            closed: None,
            ended: false,
            busy_until: self.now,
        });
        ConnectionId(self.opened.len() as u32 - 1)
    }

    fn request(&mut self, connection: ConnectionId, exchange: Exchange) {
        let used = &mut self.opened[connection.0 as usize];
        assert!(used.closed.is_none() && !used.ended, "asked after the end");
        assert!(exchange.request > 0 && exchange.response > 0);
        used.ended = exchange.last;
        let at = self.now.max(used.busy_until) + (self.takes)(&exchange);
        used.busy_until = at;
        let answer = Answer {
            connection,
            tag: exchange.tag,
            size: exchange.response,
            asked: self.now,
        };
        self.due.insert((at, self.asked.len()), answer);
        self.asked.push(Asked {
            at: self.now,
            connection,
            exchange,
            answered: at,
        });
    }

    fn close(&mut self, connection: ConnectionId) {
        let closed = &mut self.opened[connection.0 as usize];
        assert!(closed.closed.is_none() && !closed.ended, "closed twice");
        closed.closed = Some(self.now);
    }

    fn page(&mut self, took: Span) {
        self.pages.push((self.now, took));
    }
}

/// The group that `json` describes.
pub fn group(json: &str) -> TrafficParams {
    let fail = |error| -> ! { panic!("{error} in {json}") };
    // Keys may be given twice: the last counts.
    let mut keys: serde_json::Map<String, serde_json::Value> =
        serde_json::from_str(json).unwrap_or_else(|error| fail(error));
    let kind = keys.remove("kind").expect("a kind");
    let kind = kind.as_str().expect("a text").to_owned();
    let tagged = serde_json::Map::from_iter([(kind, keys.into())]);
    let group: TrafficParams =
        serde_json::from_value(tagged.into()).unwrap_or_else(|error| fail(error));
    group.check().unwrap_or_else(|error| panic!("{error}"));
    group
}

/// A user of a group who begins at the start; `seed` names all that it draws.
pub fn user(group: &TrafficParams, stop: Time, seed: u64) -> User {
    let stream = Stream::named(seed, 0, "user");
    let make_user = group.make_users(&Traces::new());
    make_user.expect("the group has users")(0, Time::ZERO, stop, stream)
}

/// What a user of a group does until `end` on a network whose responses take what `takes` says.
pub fn watch(json: &str, end: Time, takes: Takes) -> Fake {
    let mut fake = Fake::new(takes);
    fake.drive(&mut user(&group(json), Time::MAX, 1), end);
    fake
}

/// Seconds from the start of the run.
pub fn s(seconds: u64) -> Time {
    Time::ZERO + Span::from_s(seconds)
}
