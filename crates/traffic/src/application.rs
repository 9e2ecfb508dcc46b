//! Applications that send requests and receive responses: their interface to the network.
//!
//! Each user runs an application. It opens connections to servers, sends requests on them and is told
//! when a response is complete. Applications draw from their own stream and do not depend on the engine:
//! a simulation implements [`Network`], and sockets could implement it too.

use redtail_core::{Metric, Span, Time};

/// Names a connection of a user, from its opening until both sides have closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ConnectionId(pub u32);

/// Which server a connection goes to: one of the group's hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Server {
    /// The server on the user's own path.
    Own,
    /// The server on the host of this number.
    Host(u32),
}

/// A request and its response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// Payload of the request; zero if the server sends without a request.
    pub request: u64,
    /// Payload of the response; zero if there is none. One of the two is more than zero.
    pub response: u64,
    /// The time from the last byte of the request to the first byte of the response. Without a request
    /// it counts from the end of the previous exchange, or from the set-up of the connection.
    pub service: Span,
    /// The number by which the application recognises the response.
    pub tag: u32,
    /// Whether this is the last exchange on the connection: the server closes it after the response.
    pub last: bool,
}

/// A response that is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The connection that carried the response.
    pub connection: ConnectionId,
    /// The tag of its exchange.
    pub tag: u32,
    /// Payload of the response.
    pub size: u64,
    /// When the request was issued.
    pub asked: Time,
}

/// What an application can do.
pub trait Network {
    /// The current time.
    fn now(&self) -> Time;
    /// Opens a connection. Requests are sent as soon as it is established.
    fn connect(&mut self, server: Server) -> ConnectionId;
    /// Sends a request after those sent before on the connection.
    fn request(&mut self, connection: ConnectionId, exchange: Exchange);
    /// Closes a connection whose last exchange was not marked as `last`.
    fn close(&mut self, connection: ConnectionId);
    /// Records that a page, or another unit of several exchanges, is complete after `took`.
    fn page(&mut self, took: Span);
    /// Tells that what the user watches goes on after it stood still for `took`.
    fn stalled(&mut self, _took: Span) {}
}

/// A user's program.
pub trait Application {
    /// When [`on_wakeup`](Self::on_wakeup) is due.
    fn next_wakeup(&self) -> Option<Time>;
    /// The wakeup time has come.
    fn on_wakeup(&mut self, network: &mut impl Network);
    /// A response is complete.
    fn on_answer(&mut self, answer: Answer, network: &mut impl Network);

    /// The measurement period begins: [`report`](Self::report) counts from now on.
    fn start_measuring(&mut self, _now: Time) {}

    /// Tells when each page, or other unit of several exchanges, began that is not complete.
    fn unfinished_pages(&self, _each: &mut impl FnMut(Time)) {}

    /// Reports metrics that only the application can count. The measurement period ends now. Each
    /// metric has a definition, an amount and a divisor. The metric of a group is the sum of the amounts of
    /// its users divided by the sum of their divisors (stalled seconds per second watched); it is
    /// undefined if the divisors sum to zero.
    fn report(&self, _now: Time, _add: &mut impl FnMut(&'static Metric, f64, f64)) {}
}
