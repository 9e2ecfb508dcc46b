//! Connections that users open and close during a run.
//!
//! A connection has two endpoints and a server's program between them, which answers each
//! request when all of it has arrived. Places are used again: a connection leaves its place
//! when both sides have closed and none of its packets is left in the network, so that none
//! can reach the one that comes after it.

use std::collections::VecDeque;

use redtail_core::{Span, Stream, Time};
use redtail_spec::Scenario;
use redtail_traffic::{Exchange, TrafficGroup};
use redtail_transport::{Endpoint, Flags, Segment, SenderCounters, TcpParams};

use crate::flows::Passed;
use crate::network::HostRoutes;
use crate::scheduler::Alarm;

/// A side of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// It opens and asks.
    Client,
    /// It answers.
    Server,
}

impl Side {
    /// The other one.
    pub fn peer(self) -> Self {
        match self {
            Self::Client => Self::Server,
            Self::Server => Self::Client,
        }
    }
}

/// An exchange that is not over.
#[derive(Clone, Copy, Debug)]
struct Pending {
    exchange: Exchange,
    asked: Time,
    /// It was the first on its connection, and waited for it to be set up.
    first: bool,
    /// Where its request ends in the client's stream.
    request_end: u64,
    /// When the server has its response ready; `None` before all of the request is there.
    ready: Option<Time>,
    /// Of the response, what is not yet written.
    unwritten: u64,
    /// Where its response ends in the server's stream, once all of it is written.
    response_end: Option<u64>,
}

/// An exchange that is over.
#[derive(Clone, Copy, Debug)]
pub struct Done {
    /// What was exchanged.
    pub exchange: Exchange,
    /// When it was asked for.
    pub asked: Time,
    /// It was the first on its connection, and waited for it to be set up.
    pub first: bool,
}

/// How a server writes several responses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// One after the other, in the order of the requests (RFC 9112, section 9.3.2).
    InTurn,
    /// Frames of all that are ready in rotation (RFC 9113, section 5).
    Interleaved,
}

/// Payload of the largest frame of an interleaved response: the initial value of
/// SETTINGS_MAX_FRAME_SIZE (RFC 9113, section 6.5.2).
const FRAME: u64 = 16_384;

/// What a server that interleaves writes ahead of its connection: two frames.
const WRITTEN_AHEAD: u64 = 2 * FRAME;

/// After what time a SYN-ACK is repeated that nothing has answered: the initial retransmission timeout
/// (RFC 6298, section 2); it doubles.
const SYN_ACK_TIMEOUT: Span = Span::from_s(1);

/// What a server does that is to speak first: nobody else would repair the loss of what came last
/// of the handshake.
#[derive(Clone, Debug)]
struct Syn {
    /// As if it came again, the server answers it again.
    segment: Segment,
    again: Time,
    wait: Span,
}

/// A connection and its place in the network.
#[derive(Clone, Debug)]
pub struct Connection {
    /// Its number, in the order of their opening.
    pub number: u64,
    /// Whose it is, and where it goes.
    pub at: Opening,
    /// Routes of what the client sends, and the server.
    pub routes: [u32; 2],
    /// Bytes of headers on each segment.
    pub header: u32,
    client: Endpoint,
    server: Endpoint,
    /// For whatever is due first.
    pub alarm: Alarm,
    /// Packets that the client and the server sent, and that were delivered to them.
    passed: [Passed; 2],
    /// Packets of the client and of the server that were lost.
    dropped: [u64; 2],
    order: Order,
    exchanges: VecDeque<Pending>,
    /// Bytes that the client and the server have written.
    asked_bytes: u64,
    written_bytes: u64,
    /// Exchanges begun.
    begun: u32,
    /// The server's program has the connection: what came last of the handshake has arrived.
    set_up: bool,
    /// The server has closed.
    closed: bool,
    /// The client has.
    client_closed: bool,
    /// Nothing more will be asked.
    last_asked: bool,
    /// The server's program may have something to do, other than what the next two say.
    stirred: bool,
    /// The SYN of a client that will not speak first, as long as the server waits for more.
    syn: Option<Box<Syn>>,
    /// What of the client's stream it has looked at.
    seen: u64,
    /// When the next response that it works on is ready.
    next_ready: Option<Time>,
}

impl Connection {
    /// What every connection of a group is before it is opened.
    fn template(params: &TcpParams, order: Order) -> Self {
        Self {
            number: 0,
            at: Opening::default(),
            routes: [0; 2],
            header: params.header.as_u64() as u32,
            client: Endpoint::client(params),
            server: Endpoint::server(params),
            alarm: Alarm::default(),
            passed: [Passed::default(); 2],
            dropped: [0; 2],
            order,
            exchanges: VecDeque::new(),
            asked_bytes: 0,
            written_bytes: 0,
            begun: 0,
            set_up: !params.handshake,
            closed: false,
            client_closed: false,
            last_asked: false,
            stirred: false,
            syn: None,
            seen: 0,
            next_ready: None,
        }
    }

    /// What its senders draw at random comes from `stream`.
    fn draw_from(&mut self, stream: &Stream) {
        self.client.draw_from(stream.child("client"));
        self.server.draw_from(stream.child("server"));
    }

    /// The client's application asks.
    pub fn ask(&mut self, exchange: Exchange, now: Time) {
        debug_assert!(!self.last_asked, "asked after the last exchange");
        self.stirred = true;
        if exchange.request > 0 {
            self.asked_bytes += exchange.request;
            self.client.write(exchange.request);
        }
        self.last_asked = exchange.last;
        self.exchanges.push_back(Pending {
            exchange,
            asked: now,
            first: self.begun == 0 && !self.client.is_established(),
            request_end: self.asked_bytes,
            ready: None,
            unwritten: exchange.response,
            response_end: None,
        });
        self.begun += 1;
    }

    /// The client's application closes; what was asked is still answered.
    pub fn close(&mut self) {
        self.last_asked = true;
        self.stirred = true;
    }

    /// A segment arrives at `side`.
    #[inline]
    pub fn hear(&mut self, side: Side, segment: &Segment, now: Time) {
        self.passed[side as usize].delivered += 1;
        match side {
            Side::Client => self.client.on_segment(segment, now),
            Side::Server => {
                if !self.set_up {
                    self.setting_up(segment, now);
                }
                self.server.on_segment(segment, now);
            }
        }
    }

    /// A segment arrives at a server that does not have the connection yet.
    #[cold]
    fn setting_up(&mut self, segment: &Segment, now: Time) {
        if !segment.flags.contains(Flags::SYN) {
            self.set_up = true;
            self.stirred = true;
            self.syn = None;
        } else if (self.exchanges.front()).is_some_and(|it| it.exchange.request == 0) {
            self.syn = Some(Box::new(Syn {
                segment: *segment,
                again: now + SYN_ACK_TIMEOUT,
                wait: SYN_ACK_TIMEOUT,
            }));
        }
    }

    /// Whatever timer is due.
    pub fn on_wakeup(&mut self, now: Time) {
        if let Some(syn) = self.syn.as_deref_mut().filter(|syn| syn.again <= now) {
            if self.client.is_established() {
                // What came last of the handshake is lost. A client of ours does not answer a
                // repeated SYN-ACK; that exchange is left out.
                self.set_up = true;
                self.stirred = true;
                self.syn = None;
            } else {
                syn.wait = syn.wait + syn.wait;
                syn.again = now + syn.wait;
                self.server.on_segment(&syn.segment, now);
            }
        }
        for side in [&mut self.client, &mut self.server] {
            if side.next_wakeup().is_some_and(|at| at <= now) {
                side.on_wakeup(now);
            }
        }
    }

    /// What the server's program has to do now: take in requests, write responses, close.
    #[inline]
    pub fn serve(&mut self, now: Time) {
        let due = self.next_ready.is_some_and(|at| at <= now);
        if self.stirred || due || self.server.delivered() > self.seen {
            self.work(now);
        }
    }

    #[inline(never)] // most segments that a server hears are acknowledgements
    fn work(&mut self, now: Time) {
        self.stirred = false;
        self.seen = self.server.delivered();
        for pending in &mut self.exchanges {
            if pending.request_end > self.seen || !self.set_up {
                break;
            }
            let service = pending.exchange.service;
            pending.ready.get_or_insert_with(|| now + service);
        }
        match self.order {
            Order::InTurn => self.write_in_turn(now),
            Order::Interleaved => self.write_frames(now),
        }
        let ready = self.exchanges.iter().filter_map(|it| it.ready);
        self.next_ready = ready.filter(|at| *at > now).min();
        let unwritten = |it: &Pending| it.response_end.is_none();
        let written = !self.exchanges.iter().any(unwritten);
        // Frames wait for room, which acknowledgements make.
        self.stirred = !written && self.order == Order::Interleaved;
        if self.last_asked && written && !self.closed {
            self.closed = true;
            self.server.close();
        }
    }

    fn write_in_turn(&mut self, now: Time) {
        for pending in &mut self.exchanges {
            if pending.response_end.is_some() {
                continue;
            }
            if pending.ready.is_none_or(|at| at > now) {
                break;
            }
            if pending.unwritten > 0 {
                self.server.write(pending.unwritten);
                self.written_bytes += pending.unwritten;
                pending.unwritten = 0;
            }
            pending.response_end = Some(self.written_bytes);
        }
    }

    fn write_frames(&mut self, now: Time) {
        let is_ready = |it: &Pending| it.unwritten > 0 && it.ready.is_some_and(|at| at <= now);
        while self.server.unsent() < WRITTEN_AHEAD {
            let mut any = false;
            for pending in self.exchanges.iter_mut().filter(|it| is_ready(it)) {
                any = true;
                let frame = pending.unwritten.min(FRAME);
                self.server.write(frame);
                self.written_bytes += frame;
                pending.unwritten -= frame;
                if pending.unwritten == 0 {
                    pending.response_end = Some(self.written_bytes);
                }
            }
            if !any {
                return;
            }
        }
    }

    /// The next exchange whose response has arrived, which is then over.
    pub fn take_done(&mut self) -> Option<Done> {
        let arrived = self.client.delivered();
        let is_over = |it: &Pending| it.response_end.is_some_and(|end| end <= arrived);
        let over = match self.order {
            Order::InTurn => self.exchanges.front().is_some_and(is_over).then_some(0),
            Order::Interleaved => self.exchanges.iter().position(is_over),
        };
        let Pending {
            exchange,
            asked,
            first,
            ..
        } = self.exchanges.remove(over?)?;
        Some(Done {
            exchange,
            asked,
            first,
        })
    }

    /// The client closes when it has everything and will ask no more.
    pub fn maybe_close(&mut self) {
        if self.last_asked && self.exchanges.is_empty() && !self.client_closed {
            self.client_closed = true;
            self.client.close();
        }
    }

    /// The next segment of `side` to put on the wire now; call until `None`.
    #[inline]
    pub fn poll_transmit(&mut self, side: Side, now: Time) -> Option<Segment> {
        let segment = match side {
            Side::Client => self.client.poll_transmit(now),
            Side::Server => self.server.poll_transmit(now),
        }?;
        self.passed[side as usize].sent += 1;
        Some(segment)
    }

    /// When something is due: a timer of either side, or a response.
    #[inline]
    pub fn next_wakeup(&self, now: Time) -> Option<Time> {
        let ready = self.next_ready.filter(|at| *at > now);
        let timers = earlier(self.client.next_wakeup(), self.server.next_wakeup());
        let again = self.syn.as_deref().map(|syn| syn.again);
        earlier(earlier(timers, ready), again)
    }

    /// Whether both sides have closed and nothing is left to do.
    #[inline]
    pub fn is_over(&self) -> bool {
        self.client.is_finished() && self.server.is_finished()
    }

    /// Packets of one side that were lost.
    pub fn dropped(&self, side: Side) -> u64 {
        self.dropped[side as usize]
    }

    /// Packets of both sides that are in the network.
    fn in_flight(&self) -> u64 {
        let [client, server] = self.passed;
        let lost: u64 = self.dropped.iter().sum();
        client.sent + server.sent - client.delivered - server.delivered - lost
    }

    /// Packets of one side.
    pub fn passed(&self, side: Side) -> Passed {
        self.passed[side as usize]
    }

    /// What both sides' senders have done.
    pub fn counters(&self) -> SenderCounters {
        let mut done = self.client.counters();
        done += self.server.counters();
        done
    }

    /// Distinct payload bytes of responses that the client has received.
    pub fn received(&self) -> u64 {
        self.client.received()
    }

    /// Exchanges that are not over, with the time when each was asked for.
    pub fn unfinished(&self) -> impl Iterator<Item = Time> + '_ {
        let answered = self.exchanges.iter().filter(|it| it.exchange.response > 0);
        answered.map(|it| it.asked)
    }
}

/// The earlier of two times, of those that are set.
#[inline]
fn earlier(one: Option<Time>, other: Option<Time>) -> Option<Time> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        _ => one.or(other),
    }
}

/// What the connections of a group have in common.
#[derive(Clone, Debug)]
struct Group {
    template: Connection,
    params: TcpParams,
    hosts: Vec<HostRoutes>,
    name: String,
    /// What those did that are gone.
    done: SenderCounters,
    received: u64,
}

/// The connections of all users.
#[derive(Debug, Default)]
pub struct Connections {
    places: Vec<Option<Box<Connection>>>,
    free: Vec<u32>,
    /// Connections that are gone: their memory serves those to come.
    #[allow(clippy::vec_box)] // a place holds a pointer: large, and often empty
    spare: Vec<Box<Connection>>,
    /// By group; `None` for one without users.
    groups: Vec<Option<Group>>,
    /// Connections that were over when a packet of theirs was lost, perhaps the last.
    suspects: Vec<u32>,
    /// Packets lost, over all.
    pub dropped: u64,
    opened: u64,
    seed: (u64, u32),
}

/// Where a connection is to go.
#[derive(Clone, Copy, Debug, Default)]
pub struct Opening {
    /// Number of the user.
    pub user: u32,
    /// Which of the user's connections it will be.
    pub nth: u32,
    /// Number of its flow.
    pub flow: u32,
    /// Number of its group.
    pub group: u32,
    /// Number of its host.
    pub host: u32,
}

impl Connections {
    /// None yet, of groups to be added.
    pub fn new(scenario: &Scenario) -> Self {
        Self {
            seed: (scenario.seed, scenario.replication),
            ..Self::default()
        }
    }

    /// Adds the next group; `hosts` are the routes of its hosts.
    pub fn add_group(&mut self, group: &TrafficGroup, hosts: &[HostRoutes]) {
        let spec = group.tcp().filter(|_| group.has_users());
        self.groups.push(spec.map(|spec| Group {
            template: Connection::template(
                &spec.params,
                if group.is_multiplexed() {
                    Order::Interleaved
                } else {
                    Order::InTurn
                },
            ),
            params: spec.params.clone(),
            hosts: hosts.to_vec(),
            name: group.access().name.to_owned(),
            done: SenderCounters::default(),
            received: 0,
        }));
    }

    /// Opens a connection; says where it is.
    pub fn open(&mut self, opening: Opening) -> u32 {
        let group = self.groups[opening.group as usize].as_ref();
        let group = group.expect("its users have connections");
        let host = group.hosts[opening.host as usize];
        let mut connection = match self.spare.pop() {
            Some(mut spare) => {
                *spare = group.template.clone();
                spare
            }
            None => Box::new(group.template.clone()),
        };
        if group.params.growth.is_model() {
            let (seed, replication) = self.seed;
            let name = format!("tcp.{}.{}", group.name, self.opened);
            connection.draw_from(&Stream::named(seed, replication, &name));
        }
        connection.client.open(&group.params);
        connection.number = self.opened;
        connection.at = opening;
        connection.routes = [host.back, host.data];
        self.opened += 1;
        match self.free.pop() {
            Some(place) => {
                self.places[place as usize] = Some(connection);
                place
            }
            None => {
                self.places.push(Some(connection));
                self.places.len() as u32 - 1
            }
        }
    }

    /// The connection at a place.
    ///
    /// # Panics
    /// When there is none: a bug of the engine.
    #[inline]
    pub fn get(&mut self, place: u32) -> &mut Connection {
        self.find(place).expect("a connection is there")
    }

    /// The connection at a place, if there is one.
    #[inline]
    pub fn find(&mut self, place: u32) -> Option<&mut Connection> {
        self.places[place as usize].as_deref_mut()
    }

    /// All that are there, with their places.
    pub fn iter(&self) -> impl Iterator<Item = (usize, &Connection)> {
        let places = self.places.iter().enumerate();
        places.filter_map(|(place, connection)| Some((place, connection.as_deref()?)))
    }

    /// The routes of what the client sends and the server, of the connection at a place.
    ///
    /// # Panics
    /// When there is none: a bug of the engine.
    pub fn routes(&self, place: u32) -> [u32; 2] {
        let connection = self.places[place as usize].as_ref();
        connection.expect("a connection is there").routes
    }

    /// Number of places, free ones included.
    pub fn place_count(&self) -> usize {
        self.places.len()
    }

    /// A packet that the `from` side of the connection at a place sent was lost.
    pub fn on_loss(&mut self, place: u32, from: Side) {
        self.dropped += 1;
        let connection = self.get(place);
        connection.dropped[from as usize] += 1;
        if connection.is_over() {
            self.suspects.push(place);
        }
    }

    /// The next connection that may be gone because its last packet was lost.
    pub fn next_suspect(&mut self) -> Option<u32> {
        self.suspects.pop()
    }

    /// Takes out the connection at a place if it is over and has no packet left in the network;
    /// says whose it was.
    #[inline]
    pub fn take_if_gone(&mut self, place: u32) -> Option<Opening> {
        let slot = &mut self.places[place as usize];
        let connection = slot.take_if(|it| it.is_over() && it.in_flight() == 0)?;
        self.free.push(place);
        let group = self.groups[connection.at.group as usize].as_mut();
        let group = group.expect("its users have connections");
        group.done += connection.counters();
        group.received += connection.received();
        let was = connection.at;
        self.spare.push(connection);
        Some(was)
    }

    /// What the connections of a group have done and received so far.
    pub fn done(&self, group: u32) -> Option<(SenderCounters, u64)> {
        let of = self.groups[group as usize].as_ref()?;
        let mut sum = (of.done, of.received);
        let live = self.iter().map(|(_, connection)| connection);
        for connection in live.filter(|it| it.at.group == group) {
            sum.0 += connection.counters();
            sum.1 += connection.received();
        }
        Some(sum)
    }
}
