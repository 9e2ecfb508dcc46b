//! The users' programs and their connections on sockets.

use std::io;
use std::os::fd::OwnedFd;

use redtail_core::{Span, Time};
use redtail_traffic::{
    Answer, Application, ConnectionId, Done, Exchange, Exchanges, Network, Order, Server, User,
};
use rustix::net::{getsockname, sockopt};

use super::stream::{Stream, require_control};
use super::{Hosts, Owner, Timer};
use crate::addresses::{self, Side};
use crate::packet::Socket;

/// A user with its place among the hosts.
#[derive(Debug)]
pub struct UserSlot {
    /// The program of the user; `None` while it runs.
    program: Option<Box<User>>,
    /// The group of the user.
    pub group: usize,
    host: usize,
    /// The place of each of its connections; `None` where it has none.
    open: Vec<Option<u32>>,
    /// The earliest timer that is set for its program.
    armed: Option<Time>,
}

impl UserSlot {
    pub(super) fn new(program: User, group: usize, host: usize) -> Self {
        Self {
            program: Some(Box::new(program)),
            group,
            host,
            open: Vec::new(),
            armed: None,
        }
    }

    /// The program of the user.
    ///
    /// # Panics
    /// While it runs.
    pub fn program(&self) -> &User {
        self.program.as_deref().expect("one at a time is at work")
    }

    pub(super) fn program_mut(&mut self) -> &mut User {
        self.program
            .as_deref_mut()
            .expect("one at a time is at work")
    }
}

/// The user and the hosts of a connection.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// Number of the user.
    user: u32,
    /// Which of the user's connections it is.
    nth: u32,
    /// The group of the user.
    pub group: usize,
    /// The host that serves.
    host: usize,
    /// The address and port of the client.
    client: Socket,
}

/// A connection of a user.
#[derive(Debug)]
pub struct Connection {
    /// Whose it is.
    pub at: Place,
    exchanges: Exchanges,
    client: Stream,
    /// `None` before it is accepted.
    server: Option<Stream>,
}

impl Connection {
    /// Response bytes that the client has read.
    pub fn client_read(&self) -> u64 {
        self.client.read
    }

    /// The exchanges that are not complete, each with the host that serves.
    pub fn unfinished(&self) -> impl Iterator<Item = (Done, u32)> + '_ {
        let host = self.at.host as u32;
        self.exchanges.unfinished().map(move |it| (it, host))
    }
}

/// The network as one user's program sees it.
struct Port<'a, 'b> {
    hosts: &'a mut Hosts<'b>,
    user: u32,
    now: Time,
    /// The first error of a system call.
    error: Option<io::Error>,
}

impl Port<'_, '_> {
    fn connection(&mut self, id: ConnectionId) -> Option<&mut Connection> {
        let slot = &self.hosts.users[self.user as usize];
        let place = slot.open[id.0 as usize]?;
        self.hosts.connections[place as usize].as_deref_mut()
    }

    fn touch(&mut self, id: ConnectionId) {
        let slot = &self.hosts.users[self.user as usize];
        let place = slot.open[id.0 as usize];
        self.hosts.touched.extend(place);
    }
}

impl Network for Port<'_, '_> {
    fn now(&self) -> Time {
        self.now
    }

    fn connect(&mut self, server: Server) -> ConnectionId {
        let slot = &mut self.hosts.users[self.user as usize];
        let nth = slot.open.iter().position(Option::is_none);
        let nth = nth.unwrap_or_else(|| {
            slot.open.push(None);
            slot.open.len() - 1
        });
        let host = match server {
            Server::Own => slot.host,
            Server::Host(host) => host as usize,
        };
        match self.hosts.open_connection(self.user, nth, host, self.now) {
            Ok(place) => {
                self.hosts.users[self.user as usize].open[nth] = Some(place);
                self.hosts.touched.push(place);
            }
            Err(error) => self.error = self.error.take().or(Some(error)),
        }
        ConnectionId(nth as u32)
    }

    fn request(&mut self, id: ConnectionId, exchange: Exchange) {
        let now = self.now;
        if let Some(connection) = self.connection(id) {
            let established = connection.client.established;
            connection.exchanges.ask(exchange, established, now);
            redtail_traffic::ServerStream::write(&mut connection.client, exchange.request);
        }
        self.touch(id);
    }

    fn close(&mut self, id: ConnectionId) {
        if let Some(connection) = self.connection(id) {
            connection.exchanges.close();
        }
        self.touch(id);
    }

    fn page(&mut self, took: Span) {
        let group = self.hosts.users[self.user as usize].group;
        if let Some(answers) = &mut self.hosts.answers[group] {
            answers.on_page(took, self.now);
        }
        let flow = self.hosts.flow_of_user(self.user);
        if let Some(log) = &mut self.hosts.log {
            log.on_user(flow, took, None, self.now);
        }
    }

    fn stalled(&mut self, took: Span) {
        let flow = self.hosts.flow_of_user(self.user);
        if let Some(log) = &mut self.hosts.log {
            log.on_stall(flow, took, self.now);
        }
    }
}

impl Hosts<'_> {
    /// The group of a user, and the number of its flow.
    fn flow_of_user(&self, user: u32) -> (u32, u32) {
        let group = self.users[user as usize].group;
        let first = self.users.partition_point(|other| other.group < group) as u32;
        (group as u32, self.first_flow[group] + user - first)
    }

    /// The timer of a user's program has expired.
    pub(super) fn wake_user(&mut self, user: u32) -> io::Result<()> {
        self.users[user as usize].armed = None;
        self.with_user(user, |program, port| {
            if program.next_wakeup().is_some_and(|at| at <= port.now) {
                program.on_wakeup(port);
            }
        })
    }

    /// Runs a user's program, and then the connections on which it acted.
    fn with_user(
        &mut self,
        user: u32,
        act: impl FnOnce(&mut User, &mut Port<'_, '_>),
    ) -> io::Result<()> {
        let slot = &mut self.users[user as usize];
        let mut program = slot.program.take().expect("one at a time is at work");
        let now = self.clock.now();
        let mut port = Port {
            hosts: self,
            user,
            now,
            error: None,
        };
        act(&mut program, &mut port);
        let error = port.error;
        let next = program.next_wakeup();
        let slot = &mut self.users[user as usize];
        slot.program = Some(program);
        if let Some(at) = next
            && slot.armed.is_none_or(|armed| at < armed)
        {
            slot.armed = Some(at);
            self.timers.add(at, Timer::Wake(user));
        }
        while let Some(place) = self.touched.pop() {
            self.act(place)?;
        }
        error.map_or(Ok(()), Err)
    }

    /// Opens a connection of a user to a host that serves. Returns its place.
    fn open_connection(
        &mut self,
        user: u32,
        nth: usize,
        host: usize,
        now: Time,
    ) -> io::Result<u32> {
        let slot = &self.users[user as usize];
        let (group, from_host) = (slot.group, slot.host);
        let spec = &self.scenario.traffic[group];
        self.kernel.enter(group, Side::Receiving)?;
        let socket = self.open_tcp(group)?;
        let from = (addresses::host(group, Side::Receiving, from_host), 0);
        let port = addresses::server_port(spec.access().port);
        rustix::net::bind(&socket, &super::stream::socket_address(from))?;
        let client = std::net::SocketAddrV4::try_from(getsockname(&socket)?)?;
        let client = (*client.ip(), client.port());
        let to = (addresses::host(group, Side::Sending, host), port);
        super::stream::connect_to(&socket, to)?;
        let place = match self.free.pop() {
            Some(place) => place,
            None => {
                self.connections.push(None);
                self.connections.len() as u32 - 1
            }
        };
        self.kernel.watch(&socket, Owner::Client, place)?;
        let order = match spec.is_multiplexed() {
            true => Order::Interleaved,
            false => Order::InTurn,
        };
        self.connections[place as usize] = Some(Box::new(Connection {
            at: Place {
                user,
                nth: nth as u32,
                group,
                host,
                client,
            },
            exchanges: Exchanges::new(order, false),
            client: Stream::new(socket, false),
            server: None,
        }));
        self.arriving.insert(client, place);
        if let Some(answers) = &mut self.answers[group] {
            answers.on_open(now);
        }
        Ok(place)
    }

    /// A connection from `client` has arrived at a server.
    pub(super) fn accept_client(&mut self, socket: OwnedFd, client: Socket) -> io::Result<()> {
        let Some(place) = self.arriving.remove(&client) else {
            return Ok(()); // the client has given it up
        };
        self.kernel.watch(&socket, Owner::Server, place)?;
        if let Some(connection) = &self.connections[place as usize] {
            // The client knows whether it sent its SYN again, and may have gone since.
            let group = &self.scenario.traffic[connection.at.group];
            require_control(group, &socket, true)?;
        }
        if let Some(connection) = self.connections[place as usize].as_deref_mut() {
            connection.server = Some(Stream::new(socket, true));
            connection.exchanges.accept();
        }
        self.act(place)
    }

    /// Something has happened at the client of a connection.
    pub(super) fn on_client(&mut self, place: u32) -> io::Result<()> {
        let Some(connection) = self.connections[place as usize].as_deref_mut() else {
            return Ok(());
        };
        if !connection.client.established {
            match sockopt::socket_error(&connection.client.socket)? {
                Ok(()) => connection.client.established = true,
                Err(_) => connection.client.failed = true,
            }
        }
        connection.client.receive(&mut self.scratch);
        while let Some(done) = self.take_done(place) {
            let now = self.clock.now();
            let at = self.connections[place as usize]
                .as_ref()
                .expect("it is open")
                .at;
            if let Some(answers) = &mut self.answers[at.group] {
                answers.on_answer(&done, at.host as u32, now);
            }
            let flow = self.flow_of_user(at.user);
            if let Some(log) = &mut self.log {
                log.on_user(flow, now - done.asked, Some(done.exchange.response), now);
            }
            let answer = Answer {
                connection: ConnectionId(at.nth),
                tag: done.exchange.tag,
                size: done.exchange.response,
                asked: done.asked,
            };
            self.with_user(at.user, |program, port| program.on_answer(answer, port))?;
        }
        self.act(place)
    }

    fn take_done(&mut self, place: u32) -> Option<Done> {
        let connection = self.connections[place as usize].as_deref_mut()?;
        connection.exchanges.take_done(connection.client.read)
    }

    /// Something has happened at the server of a connection.
    pub(super) fn on_server(&mut self, place: u32) -> io::Result<()> {
        if let Some(connection) = self.connections[place as usize].as_deref_mut()
            && let Some(server) = &mut connection.server
        {
            server.receive(&mut self.scratch);
            server.flush();
            connection.exchanges.write_ahead(server, self.clock.now());
        }
        self.act(place)
    }

    /// A connection does all that is due now, and is removed if it is over.
    pub(super) fn act(&mut self, place: u32) -> io::Result<()> {
        let now = self.clock.now();
        let Some(connection) = self.connections[place as usize].as_deref_mut() else {
            return Ok(());
        };
        if let Some(server) = &mut connection.server {
            connection.exchanges.serve(server.read, server, now);
            server.flush();
        }
        if connection.exchanges.client_closes() {
            redtail_traffic::ServerStream::close(&mut connection.client);
        }
        connection.client.flush();
        if let Some(at) = connection.exchanges.next_ready(now) {
            self.timers.add(at, Timer::Ready(place));
        }
        let served = connection.server.as_ref().is_some_and(Stream::is_over);
        if connection.client.failed || (connection.client.is_over() && served) {
            self.remove(place, now);
        }
        Ok(())
    }

    /// Removes a connection that is over.
    fn remove(&mut self, place: u32, now: Time) {
        let Some(connection) = self.connections[place as usize].take() else {
            return;
        };
        let at = connection.at;
        self.free.push(place);
        self.arriving.remove(&at.client);
        self.gone[at.group] += connection.client.read;
        self.users[at.user as usize].open[at.nth as usize] = None;
        if let Some(answers) = &mut self.answers[at.group] {
            answers.on_gone(now);
        }
    }
}
