//! Applications that ask and are answered: what they tell the network, and what they hear.
//!
//! A user runs one. It opens connections to servers, sends requests on them and hears when a
//! response is complete; servers answer what they are asked. Applications draw from their own
//! stream and know no engine: a simulation implements [`Network`], and so could sockets.

use redtail_core::{Metric, Span, Time};

/// Names a connection of a user, from its opening until both sides have closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ConnectionId(pub u32);

/// Which server a connection goes to: one of the group's hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Server {
    /// The one on the user's own path.
    Own,
    /// The host of this number.
    Host(u32),
}

/// A request and its response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// Payload of the request; zero if the server sends unasked.
    pub request: u64,
    /// Payload of the response; zero if there is none. One of the two is more than zero.
    pub response: u64,
    /// What the server takes from the last byte of the request to the first of the response;
    /// without a request, from the end of those before, or from the connection's set-up.
    pub service: Span,
    /// What the application knows it by.
    pub tag: u32,
    /// Nothing follows on this connection: the server closes it after the response.
    pub last: bool,
}

/// A response that is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The connection it came on.
    pub connection: ConnectionId,
    /// That of its exchange.
    pub tag: u32,
    /// Its payload.
    pub size: u64,
    /// When the request was issued.
    pub asked: Time,
}

/// What an application can do.
pub trait Network {
    /// The present.
    fn now(&self) -> Time;
    /// Opens a connection. What it is asked for is sent when it is established.
    fn connect(&mut self, server: Server) -> ConnectionId;
    /// Sends a request, behind those sent before.
    fn request(&mut self, connection: ConnectionId, exchange: Exchange);
    /// Closes a connection whose last exchange was not known to be the last.
    fn close(&mut self, connection: ConnectionId);
    /// A page or a like unit of several exchanges is complete, after `took`.
    fn page(&mut self, took: Span);
}

/// A user's program.
pub trait Application {
    /// When [`on_wakeup`](Self::on_wakeup) is due.
    fn next_wakeup(&self) -> Option<Time>;
    /// The time has come.
    fn on_wakeup(&mut self, network: &mut impl Network);
    /// A response is complete.
    fn on_answer(&mut self, answer: Answer, network: &mut impl Network);

    /// The measurement period begins: what [`report`](Self::report) tells is counted from now on.
    fn start_measuring(&mut self, _now: Time) {}

    /// What only it knows of the measurement period, which ends now: for each metric its definition, an
    /// amount and what it is counted per. The metric of a group is the sum of its users' amounts over
    /// the sum of what they are per (a stalled second per second watched); it is undefined where that
    /// is zero.
    fn report(&self, _now: Time, _add: &mut impl FnMut(&'static Metric, f64, f64)) {}
}
