//! Connections that users open and close during a run.
//!
//! A connection has two endpoints of `transport`, each a sender and a receiver whose segments are one, and a
//! server's program, which answers each request when all of it has arrived. Places are reused: a connection is
//! removed from its place when both sides have closed and none of its packets is in the network, so that no
//! packet can reach the next connection at that place, and the counters of packets balance at that moment.

use std::ops::AddAssign;

use redtail_core::{Span, Stream, Time, earlier, prefetch};
use redtail_spec::Scenario;
use redtail_traffic::{Done, Exchange, Exchanges, Order, TrafficParams};
use redtail_transport::{
    Due, Endpoint, Flags, HeaderSizes, Plugins as Controllers, Segment, Sender, SenderCounters,
    Taken, TcpParams,
};

use crate::packet::Passed;
use redtail_network::scheduler::Alarm;
use redtail_network::{Address, HostRoutes};

/// A side of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// It opens the connection and sends requests.
    Client,
    /// It sends responses.
    Server,
}

impl Side {
    /// The other side.
    pub fn peer(self) -> Self {
        match self {
            Self::Client => Self::Server,
            Self::Server => Self::Client,
        }
    }
}

/// The timeout after which an unanswered SYN-ACK is retransmitted: the initial retransmission
/// timeout (RFC 6298, section 2). It doubles each time.
const SYN_ACK_TIMEOUT: Span = Span::from_s(1);

/// The retransmission of the SYN-ACK by a server that sends first. No other timer would repair the
/// loss of the last segment of the handshake.
#[derive(Clone, Debug)]
struct Syn {
    /// The SYN. The server answers it again as if it had been repeated.
    segment: Segment,
    again: Time,
    wait: Span,
}

/// A connection and its place in the network.
///
/// The fields are in the order in which they are stored: first what every segment uses besides the endpoints.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub struct Connection {
    /// Packets sent by and delivered to the client and the server.
    passed: [Passed; 2],
    /// The alarm for its earliest timer.
    pub alarm: Alarm,
    /// Its user, and its host.
    pub at: Opening,
    /// The headers of its segments.
    pub headers: HeaderSizes,
    /// The routes of the client's packets and of the server's.
    pub routes: [u32; 2],
    /// Whether the client's segments reach the server at once, because their path has neither delay nor
    /// link.
    pub at_once: bool,
    /// The SYN of a client that does not send first, until the handshake is complete.
    syn: Option<Box<Syn>>,
    exchanges: Exchanges,
    client: Endpoint,
    server: Endpoint,
    /// Its number, in the order of opening.
    pub number: u64,
    /// Lost packets of the client and of the server.
    dropped: [u64; 2],
    /// Copies of their packets that wires made.
    copied: [u64; 2],
    opened_at: Time,
    /// Its packets that queues have marked in the measurement period.
    pub marked: u64,
    /// Whether it [counts as lingering](Connections::note_lingering).
    lingers: bool,
    /// What it had done when the measurement began; `None` if it was opened later.
    before: Option<Box<Progress>>,
}

/// What a connection has done so far.
#[derive(Clone, Copy, Debug, Default)]
struct Progress {
    done: SenderCounters,
    reached: Reached,
    /// Packets of both sides, as the next.
    sent: u64,
    lost: u64,
}

/// What a connection has done in the measurement period, for the table of flows.
#[derive(Clone, Copy, Debug)]
pub struct ConnectionRecord {
    /// Its number, in the order of opening.
    pub number: u64,
    /// Its user, and its host.
    pub at: Opening,
    /// When it was opened.
    pub opened_at: Time,
    /// When it was over and had no packet in the network.
    pub gone_at: Option<Time>,
    /// The counters of both senders.
    pub done: SenderCounters,
    /// Response bytes delivered to the client in order.
    pub delivered: u64,
    /// Packets of both sides, as the next.
    pub sent: u64,
    /// Packets that were lost.
    pub lost: u64,
    /// Packets that were marked.
    pub marked: u64,
    /// Mean and least of the server's round-trip samples.
    pub round_trips: Option<(Span, Span)>,
}

impl Connection {
    /// A connection of a group before it is opened, of which all are copies.
    fn template(params: &TcpParams, order: Order, controllers: &Controllers) -> Self {
        let (mut client, mut server) = (Endpoint::client(params), Endpoint::server(params));
        client.take_controller_from(controllers);
        server.take_controller_from(controllers);
        Self {
            number: 0,
            at: Opening::default(),
            routes: [0; 2],
            headers: params.headers(),
            at_once: false,
            client,
            server,
            alarm: Alarm::default(),
            passed: [Passed::default(); 2],
            dropped: [0; 2],
            copied: [0; 2],
            exchanges: Exchanges::new(order, !params.handshake),
            syn: None,
            opened_at: Time::ZERO,
            marked: 0,
            lingers: false,
            before: None,
        }
    }

    /// Becomes a copy of a template. Keeps memory.
    fn renew(&mut self, template: &Self) {
        self.client.renew(&template.client);
        self.server.renew(&template.server);
        self.exchanges.renew(&template.exchanges);
        self.headers = template.headers;
        self.alarm = Alarm::default();
        self.passed = [Passed::default(); 2];
        self.dropped = [0; 2];
        self.copied = [0; 2];
        self.syn = None;
        self.marked = 0;
        self.lingers = false;
        self.before = None;
    }

    fn progress(&self) -> Progress {
        Progress {
            done: self.counters(),
            reached: self.reached(),
            sent: self.passed.iter().map(|side| side.sent).sum(),
            lost: self.dropped.iter().sum(),
        }
    }

    fn record(&self, gone_at: Option<Time>) -> ConnectionRecord {
        let now = self.progress();
        let before = self.before.as_deref().copied().unwrap_or_default();
        ConnectionRecord {
            number: self.number,
            at: self.at,
            opened_at: self.opened_at,
            gone_at,
            done: now.done - before.done,
            delivered: now.reached.goodput_since(before.reached),
            sent: now.sent - before.sent,
            lost: now.lost - before.lost,
            marked: self.marked,
            round_trips: self.server.sender().round_trips(),
        }
    }

    /// Its senders take random numbers from `stream`.
    fn draw_from(&mut self, stream: &Stream) {
        self.client.draw_from(stream.child("client"));
        self.server.draw_from(stream.child("server"));
    }

    /// The client's application sends a request.
    pub fn ask(&mut self, exchange: Exchange, now: Time) {
        let established = self.client.is_established();
        self.exchanges.ask(exchange, established, now);
        if exchange.request > 0 {
            self.client.write(exchange.request);
        }
    }

    /// The client's application closes. Requests already sent are still answered.
    pub fn close(&mut self) {
        self.exchanges.close();
    }

    /// The sender of a side, for an event log.
    pub fn sender(&self, side: Side) -> &Sender {
        match side {
            Side::Client => self.client.sender(),
            Side::Server => self.server.sender(),
        }
    }

    /// A segment arrives at `side`.
    #[inline]
    pub fn receive(&mut self, side: Side, segment: &Segment, now: Time) {
        self.passed[side as usize].delivered += 1;
        match side {
            Side::Client => self.client.on_segment(segment, now),
            Side::Server => {
                if !self.exchanges.is_accepted() {
                    self.setting_up(segment, now);
                }
                self.server.on_segment(segment, now);
            }
        }
    }

    /// A segment arrives at the client, if [`Endpoint::take_data`] takes it. Otherwise nothing is done.
    #[inline]
    pub fn take_data(&mut self, segment: &Segment, now: Time) -> Taken {
        let taken = self.client.take_data(segment, now);
        self.passed[Side::Client as usize].delivered += u64::from(taken != Taken::Not);
        taken
    }

    /// Whether the delayed acknowledgement of data that the client [took](Self::take_data) makes an event necessary
    /// that is earlier than the alarm.
    #[inline]
    pub fn acknowledges_before_alarm(&self) -> bool {
        let at = self.client.acknowledges_at();
        self.alarm.armed().is_none_or(|alarm| at < alarm)
    }

    /// The acknowledgement of data that the client [took](Self::take_data), to be sent now.
    #[inline]
    pub fn take_acknowledgement(&mut self) -> Segment {
        self.passed[Side::Client as usize].sent += 1;
        self.client.take_acknowledgement()
    }

    /// A segment arrives at a server that does not have the connection yet.
    #[cold]
    fn setting_up(&mut self, segment: &Segment, now: Time) {
        if !segment.flags.contains(Flags::SYN) {
            self.exchanges.accept();
            self.syn = None;
        } else if self.exchanges.begins_unasked() {
            self.syn = Some(Box::new(Syn {
                segment: *segment,
                again: now + SYN_ACK_TIMEOUT,
                wait: SYN_ACK_TIMEOUT,
            }));
        }
    }

    /// Handles the timers that are due.
    pub fn on_wakeup(&mut self, now: Time) {
        if let Some(syn) = self.syn.as_deref_mut().filter(|syn| syn.again <= now) {
            if self.client.is_established() {
                // The last segment of the handshake was lost. Our clients do not answer a repeated
                // SYN-ACK, so that exchange is left out.
                self.exchanges.accept();
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

    /// Runs the server's program: it reads requests, writes responses and closes.
    #[inline]
    pub fn serve(&mut self, now: Time) {
        let delivered = self.server.delivered();
        self.exchanges.serve(delivered, &mut self.server, now);
    }

    /// The server writes more when written data has been sent, so that the window limits sending
    /// and not the server.
    #[inline]
    pub fn write_ahead(&mut self, now: Time) {
        self.exchanges.write_ahead(&mut self.server, now);
    }

    /// Whether a response has arrived that [`take_done`](Self::take_done) has not returned.
    #[inline]
    pub fn has_done(&self) -> bool {
        self.exchanges.has_done(self.client.delivered())
    }

    /// Removes and returns the next exchange whose response has arrived.
    pub fn take_done(&mut self) -> Option<Done> {
        self.exchanges.take_done(self.client.delivered())
    }

    /// The client closes if all responses have arrived and it has sent its last request.
    pub fn maybe_close(&mut self) {
        if self.exchanges.client_closes() {
            self.client.close();
        }
    }

    /// What one side has to send now.
    #[inline]
    pub fn due(&mut self, side: Side) -> Due {
        self.endpoint(side).due()
    }

    /// The endpoint of one side.
    #[inline]
    fn endpoint(&mut self, side: Side) -> &mut Endpoint {
        match side {
            Side::Client => &mut self.client,
            Side::Server => &mut self.server,
        }
    }

    /// Writes the next segment of `side` to put on the wire now, which is `due`, to `to`, and returns whether there is
    /// one; call until there is none.
    #[inline]
    pub fn write_next(&mut self, side: Side, due: Due, now: Time, to: &mut Segment) -> bool {
        let is_one = self.endpoint(side).write_next(due, now, to);
        self.passed[side as usize].sent += u64::from(is_one);
        is_one
    }

    /// When the next timer of either side or the next response is due.
    #[inline]
    pub fn next_wakeup(&self, now: Time) -> Option<Time> {
        let [client, server] = [Side::Client, Side::Server].map(|side| self.next_of(side, now));
        earlier(client, server)
    }

    /// When the next timer of one side, or the next response of the server, is due.
    #[inline]
    pub fn next_of(&self, side: Side, now: Time) -> Option<Time> {
        match side {
            Side::Client => self.client.next_wakeup(),
            Side::Server => {
                let ready = self.exchanges.next_ready(now);
                let again = self.syn.as_deref().map(|syn| syn.again);
                earlier(earlier(self.server.next_wakeup(), ready), again)
            }
        }
    }

    /// Whether what one side has done may make an event necessary that is earlier than the alarm, or end the
    /// connection.
    #[inline]
    pub fn is_to_settle(&mut self, side: Side) -> bool {
        let endpoint = self.endpoint(side);
        let is_finished = endpoint.is_finished();
        let mut quiet_until = endpoint.quiet_until();
        // The alarm is not later than what the server waits for, so this may be asked for either side.
        quiet_until = quiet_until.min(self.exchanges.quiet_until());
        if self.syn.is_some() {
            quiet_until = Time::ZERO;
        }
        // The other side is not looked at while this one goes on: it is in other lines of the cache.
        self.alarm.armed().is_none_or(|alarm| quiet_until < alarm) || is_finished && self.is_over()
    }

    /// Whether both sides have closed and nothing is left to do.
    #[inline]
    pub fn is_over(&self) -> bool {
        self.client.is_finished() & self.server.is_finished()
    }

    /// Packets of one side that were lost.
    pub fn dropped(&self, side: Side) -> u64 {
        self.dropped[side as usize]
    }

    /// Copies of the packets of one side that wires made.
    pub fn copied(&self, side: Side) -> u64 {
        self.copied[side as usize]
    }

    /// Packets of both sides that are in the network.
    fn in_flight(&self) -> u64 {
        let [client, server] = self.passed;
        let lost: u64 = self.dropped.iter().sum();
        let copied: u64 = self.copied.iter().sum();
        copied + client.sent + server.sent - client.delivered - server.delivered - lost
    }

    /// Where the segment goes that one side has sent last; the connection is at `place`.
    #[inline]
    pub fn address(&self, place: u32, from: Side) -> Address {
        Address {
            flow: self.at.flow,
            endpoint: place,
            route: self.routes[from as usize],
            id: self.passed[from as usize].sent as u16,
        }
    }

    /// Packets of one side.
    pub fn passed(&self, side: Side) -> Passed {
        self.passed[side as usize]
    }

    /// The counters of both senders.
    pub fn counters(&self) -> SenderCounters {
        let mut done = self.client.counters();
        done += self.server.counters();
        done
    }

    /// The response bytes that have reached the client.
    pub fn reached(&self) -> Reached {
        Reached {
            delivered: self.client.delivered(),
            received: self.client.received(),
        }
    }

    /// For each side: the longest wait of data, and whether the present wait is longer than 10 s.
    fn waits(&self, now: Time) -> [(Span, bool); 2] {
        [&self.client, &self.server].map(|side| side.sender().longest_wait(now))
    }

    /// The exchanges that are not complete.
    pub fn unfinished(&self) -> impl Iterator<Item = Done> + '_ {
        self.exchanges.unfinished()
    }
}

/// Payload bytes that have reached receivers, from the beginning of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reached {
    /// In order, for the application to read.
    pub delivered: u64,
    /// Distinct bytes, in order or not.
    pub received: u64,
}

impl Reached {
    /// Bytes that were delivered in order since `before`, but at most those that arrived since.
    /// Data that had arrived before and waited behind a gap would otherwise give more than a link
    /// carries.
    pub fn goodput_since(self, before: Self) -> u64 {
        (self.delivered - before.delivered).min(self.received - before.received)
    }
}

impl AddAssign for Reached {
    fn add_assign(&mut self, other: Self) {
        self.delivered += other.delivered;
        self.received += other.received;
    }
}

/// The common state of the connections of a group.
#[derive(Clone, Debug)]
struct Group {
    template: Connection,
    params: TcpParams,
    hosts: Vec<HostRoutes>,
    name: String,
    /// The counters of the connections that are gone.
    done: SenderCounters,
    reached: Reached,
    longest_wait: Span,
}

impl Group {
    /// The random numbers of the connection that is opened after so many others.
    #[cold]
    fn stream(&self, (seed, replication): (u64, u32), opened: u64) -> Stream {
        Stream::named(seed, replication, &format!("tcp.{}.{opened}", self.name))
    }
}

/// The connections of all users.
#[derive(Debug, Default)]
pub struct Connections {
    places: Vec<Option<Box<Connection>>>,
    free: Vec<u32>,
    /// Connections that are gone, whose memory is reused.
    #[allow(clippy::vec_box)] // a place holds a pointer: large, and often empty
    spare: Vec<Box<Connection>>,
    /// By group; `None` for one without users.
    groups: Vec<Option<Group>>,
    /// Places of connections that were over when one of their packets, perhaps the last, was lost.
    possibly_gone: Vec<u32>,
    /// How many connections [linger](Self::note_lingering).
    lingering: u32,
    /// Packets lost, of all connections.
    pub dropped: u64,
    opened: u64,
    seed: (u64, u32),
    /// The connections that went in the measurement period; `None` when they are not kept.
    records: Option<Vec<ConnectionRecord>>,
    /// The most connections that are kept.
    most_records: usize,
}

/// The user, flow, group and host of a connection.
#[derive(Clone, Copy, Debug, Default)]
pub struct Opening {
    /// Number of the user.
    pub user: u32,
    /// Which of the user's connections it is.
    pub nth: u32,
    /// Number of its flow.
    pub flow: u32,
    /// Number of its group.
    pub group: u32,
    /// Number of its host.
    pub host: u32,
}

impl Connections {
    /// No connections and no groups.
    pub fn new(scenario: &Scenario) -> Self {
        Self {
            seed: (scenario.seed, scenario.replication),
            ..Self::default()
        }
    }

    /// Adds the next group; `hosts` are the routes of its hosts.
    pub fn add_group(
        &mut self,
        group: &TrafficParams,
        hosts: &[HostRoutes],
        controllers: &Controllers,
    ) {
        let tcp = group.tcp().filter(|_| group.has_users());
        self.groups.push(tcp.map(|tcp| Group {
            template: Connection::template(
                &tcp.params,
                if group.is_multiplexed() {
                    Order::Interleaved
                } else {
                    Order::InTurn
                },
                controllers,
            ),
            params: tcp.params.clone(),
            hosts: hosts.to_vec(),
            name: group.access().name.to_owned(),
            done: SenderCounters::default(),
            reached: Reached::default(),
            longest_wait: Span::ZERO,
        }));
    }

    /// Opens a connection. Returns its place.
    pub fn open(&mut self, opening: Opening, now: Time) -> u32 {
        let group = self.groups[opening.group as usize].as_ref();
        let group = group.expect("its users have connections");
        let host = group.hosts[opening.host as usize];
        let mut connection = match self.spare.pop() {
            Some(mut spare) => {
                spare.renew(&group.template);
                spare
            }
            None => Box::new(group.template.clone()),
        };
        if group.params.has_model() {
            connection.draw_from(&group.stream(self.seed, self.opened));
        }
        connection.client.open(&group.params);
        connection.number = self.opened;
        connection.at = opening;
        connection.opened_at = now;
        connection.routes = [host.back, host.data];
        connection.at_once = host.back_at_once;
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

    /// No segment of a connection that is opened from now on reaches a server at once: its arrival is an event.
    pub fn defer_all(&mut self) {
        let hosts = self
            .groups
            .iter_mut()
            .flatten()
            .flat_map(|it| &mut it.hosts);
        hosts.for_each(|host| host.back_at_once = false);
    }

    /// Connections opened from now on take no short path.
    #[cfg(test)]
    pub fn forbid_short_paths(&mut self) {
        for group in self.groups.iter_mut().flatten() {
            group.template.client.forbid_short_paths();
            group.template.server.forbid_short_paths();
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

    /// Prefetches where the connection at a place is into the cache.
    #[inline]
    pub fn prefetch_place(&self, place: u32) {
        if let Some(place) = self.places.get(place as usize) {
            prefetch(place);
        }
    }

    /// Prefetches the connection at a place into the cache.
    #[inline]
    pub fn prefetch(&self, place: u32) {
        if let Some(Some(connection)) = self.places.get(place as usize) {
            prefetch(&**connection);
        }
    }

    /// The open connections, with their places.
    pub fn iter(&self) -> impl Iterator<Item = (usize, &Connection)> {
        let places = self.places.iter().enumerate();
        places.filter_map(|(place, connection)| Some((place, connection.as_deref()?)))
    }

    /// The routes of the client's and of the server's packets, for the connection at a place.
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
            self.possibly_gone.push(place);
        }
    }

    /// A wire has made a copy of a packet that the `from` side of the connection at a place sent.
    pub fn on_copy(&mut self, place: u32, from: Side) {
        self.get(place).copied[from as usize] += 1;
    }

    /// The next connection that may be gone because its last packet was lost.
    pub fn next_possibly_gone(&mut self) -> Option<u32> {
        self.possibly_gone.pop()
    }

    /// Whether a loss may be the end of a connection: whether any [lingers](Self::note_lingering).
    #[inline]
    pub fn any_lingers(&self) -> bool {
        self.lingering > 0
    }

    /// Returns whether the connection at a place lingers: it is over and has packets in the network, as far as is known. It
    /// then counts as lingering until it is removed.
    pub fn note_lingering(&mut self, place: u32) -> bool {
        let Some(connection) = self.places[place as usize].as_deref_mut() else {
            return false;
        };
        let lingers = connection.is_over() && connection.in_flight() > 0;
        if lingers && !connection.lingers {
            connection.lingers = true;
            self.lingering += 1;
        }
        lingers
    }

    /// Removes the connection at a place if it is over and has no packet in the network. Returns
    /// its user and host.
    #[inline]
    pub fn take_if_gone(&mut self, place: u32, now: Time) -> Option<Opening> {
        let slot = &mut self.places[place as usize];
        let connection = slot.take_if(|it| it.is_over() && it.in_flight() == 0)?;
        self.lingering -= u32::from(connection.lingers);
        self.free.push(place);
        let group = self.groups[connection.at.group as usize].as_mut();
        let group = group.expect("its users have connections");
        group.done += connection.counters();
        group.reached += connection.reached();
        for (longest, _) in connection.waits(now) {
            group.longest_wait = group.longest_wait.max(longest);
        }
        if let Some(records) = &mut self.records {
            if records.len() < self.most_records {
                records.push(connection.record(Some(now)));
            } else {
                self.records = None;
            }
        }
        let was = connection.at;
        self.spare.push(connection);
        Some(was)
    }

    /// The open connections of a group.
    fn of(&self, group: u32) -> impl Iterator<Item = &Connection> {
        let live = self.iter().map(|(_, connection)| connection);
        live.filter(move |it| it.at.group == group)
    }

    /// The counters of the senders of a group's connections so far.
    pub fn done(&self, group: u32) -> SenderCounters {
        let gone = self.groups[group as usize].as_ref();
        let mut done = gone.map(|gone| gone.done).unwrap_or_default();
        self.of(group).for_each(|it| done += it.counters());
        done
    }

    /// The response bytes that have reached a group's users so far.
    pub fn reached(&self, group: u32) -> Reached {
        let gone = self.groups[group as usize].as_ref();
        let mut reached = gone.map(|gone| gone.reached).unwrap_or_default();
        self.of(group).for_each(|it| reached += it.reached());
        reached
    }

    /// The longest wait of data, and whether the present wait is longer than 10 s: for each sender
    /// of an open connection of the group, and once for all that are gone.
    pub fn waits(&self, group: u32, now: Time) -> impl Iterator<Item = (Span, bool)> {
        let gone = self.groups[group as usize].as_ref();
        let gone = gone.map(|gone| (gone.longest_wait, false));
        gone.into_iter()
            .chain(self.of(group).flat_map(move |it| it.waits(now)))
    }

    /// A record of each connection that was open in the measurement period, in the order of their
    /// opening; `None` if there were more than are kept.
    pub fn records(&mut self) -> Option<Vec<ConnectionRecord>> {
        let mut records = self.records.take()?;
        records.extend(self.iter().map(|(_, open)| open.record(None)));
        records.sort_by_key(|record| record.number);
        (records.len() <= self.most_records).then_some(records)
    }

    /// Keeps records of the connections from now on, unless they become more than `most`.
    pub fn keep_records(&mut self, most: usize) {
        self.records = Some(Vec::new());
        self.most_records = most;
    }

    /// The measurement begins.
    pub fn start_measuring(&mut self) {
        for group in self.groups.iter_mut().flatten() {
            group.longest_wait = Span::ZERO;
        }
        for connection in self.places.iter_mut().flatten() {
            connection.client.start_measuring();
            connection.server.start_measuring();
            connection.before = Some(Box::new(connection.progress()));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use redtail_core::Span;
    use redtail_traffic::exchanges::{FRAME, WRITTEN_AHEAD};
    use redtail_transport::Preset;

    use super::*;

    const DELAY: Span = Span::from_ms(50);

    /// Two sides and a path without losses or queues. Requests responses of given sizes at given
    /// times.
    struct Path {
        connection: Connection,
        now: Time,
        wire: BTreeMap<(Time, u64), (Side, Segment)>,
        count: u64,
        /// The data segments that the server sent, with their times.
        sent: Vec<(Time, u32)>,
        /// When each response was complete, by its tag.
        done: Vec<(Time, u32)>,
    }

    impl Path {
        fn new(order: Order, initial_window: u32) -> Self {
            let params = TcpParams {
                initial_window,
                ..Preset::Sack.params()
            };
            let mut connection = Connection::template(&params, order, &Controllers::new());
            connection.client.open(&params);
            Self {
                connection,
                now: Time::ZERO,
                wire: BTreeMap::new(),
                count: 0,
                sent: Vec::new(),
                done: Vec::new(),
            }
        }

        fn act(&mut self) {
            let (now, connection) = (self.now, &mut self.connection);
            connection.serve(now);
            connection.maybe_close();
            for side in [Side::Client, Side::Server] {
                let mut segment = Segment::default();
                loop {
                    let due = connection.due(side);
                    if !connection.write_next(side, due, now, &mut segment) {
                        break;
                    }
                    self.wire
                        .insert((now + DELAY, self.count), (side.peer(), segment));
                    self.count += 1;
                    if side == Side::Server && segment.len > 0 {
                        self.sent.push((now, segment.len));
                    }
                    connection.write_ahead(now);
                }
            }
        }

        fn ask(&mut self, response: u64, tag: u32) {
            let exchange = Exchange {
                request: 100,
                response,
                service: Span::ZERO,
                tag,
                last: false,
            };
            self.connection.ask(exchange, self.now);
            self.act();
        }

        /// Runs all events up to `end`.
        fn run_to(&mut self, end: Time) {
            loop {
                let timer = self.connection.next_wakeup(self.now);
                let arrival = self.wire.first_key_value().map(|(&(at, _), _)| at);
                let next = timer.into_iter().chain(arrival).min();
                let Some(next) = next.filter(|at| *at <= end) else {
                    self.now = end;
                    return;
                };
                self.now = next.max(self.now);
                match self.wire.first_entry().filter(|it| it.key().0 <= next) {
                    Some(entry) => {
                        let (to, segment) = entry.remove();
                        self.connection.receive(to, &segment, next);
                        while let Some(done) = self.connection.take_done() {
                            self.done.push((next, done.exchange.tag));
                        }
                    }
                    None => self.connection.on_wakeup(next),
                }
                self.act();
            }
        }

        fn tags(&self) -> Vec<u32> {
            self.done.iter().map(|&(_, tag)| tag).collect()
        }
    }

    const fn s(seconds: u64) -> Time {
        Time::from_ps(seconds * 1_000_000_000_000)
    }

    #[test]
    fn responses_in_turn_keep_the_order_of_requests_and_interleaved_ones_go_by_size() {
        for (order, expected) in [(Order::InTurn, [0, 1, 2]), (Order::Interleaved, [2, 1, 0])] {
            let mut path = Path::new(order, 2);
            for (tag, size) in (0..).zip([300_000, 100_000, 20_000]) {
                path.ask(size, tag);
            }
            path.run_to(s(60));
            assert_eq!(path.tags(), expected, "{order:?}");
        }
    }

    #[test]
    fn a_late_small_response_waits_for_a_few_frames_of_a_large_one() {
        let mut path = Path::new(Order::Interleaved, 10);
        path.ask(20_000_000, 0);
        path.run_to(s(1));
        path.ask(1000, 1);
        let asked = path.now;
        path.run_to(asked + DELAY * 2 + Span::from_ms(1));
        // The bytes written ahead, a frame of the other response, and the window of its round trip.
        path.run_to(asked + DELAY * 6);
        assert_eq!(path.tags(), [1]);
    }

    #[test]
    fn frames_of_a_few_responses_are_written_ahead_and_no_more() {
        let mut path = Path::new(Order::Interleaved, 1);
        for tag in 0..50 {
            path.ask(100_000, tag);
        }
        path.run_to(Time::ZERO + DELAY * 3);
        let unsent = path.connection.server.unsent();
        assert!((1..WRITTEN_AHEAD + FRAME).contains(&unsent), "{unsent}");
        path.run_to(s(600));
        assert_eq!(path.done.len(), 50);
        // Frames in rotation: none is complete long before the others.
        let (first, last) = (path.done[0].0, path.done[49].0);
        assert!(
            first - Time::ZERO > (last - Time::ZERO) * 3 / 4,
            "{first} {last}"
        );
    }

    #[test]
    fn an_open_window_is_filled_at_once_however_responses_are_ordered() {
        for order in [Order::InTurn, Order::Interleaved] {
            let mut path = Path::new(order, 100);
            path.ask(10_000_000, 0);
            path.run_to(Time::ZERO + DELAY * 3);
            assert_eq!(path.sent.len(), 100, "{order:?}");
        }
    }
}
