//! Endpoints of users: state machines without clock and sockets, at both ends of a network.
//!
//! A stack of this form takes datagrams and the present time, and gives datagrams and the time of its next timer. It
//! cannot tell this network from a real one. quinn-proto, neqo and s2n-quic have the form; an [`Endpoint`] is a thin
//! layer over one of them.
//!
//! A group of kind `endpoint` says how many flows there are, and where they sit; its `class` is a name in
//! [`Endpoints`], which is given when the run is started. An endpoint that fails, or breaks what its methods promise,
//! ends the run at once with an error that names it, as a queue of users does.
//!
//! Times are spans from the start of the run, to the nanosecond. A stack that wants [`Instant`](std::time::Instant)
//! takes one of them before the run, and is given `start + now`; its timer is then `timer - start`. What it does
//! depends on differences only, so the run is repeatable.

use std::time::Duration;

use redtail_core::plugin::{Pluggable, PluginError, Registry, Role};
use redtail_core::{Ecn, Stream};

/// A datagram that an endpoint sends: the payload of a UDP packet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Datagram {
    /// The payload.
    pub payload: Vec<u8>,
    /// The ECN bits of the packet. Queues mark packets whose bits are [`Ecn::Ect0`] or [`Ecn::Ect1`].
    pub ecn: Ecn,
}

/// An endpoint of a user: one end of a flow.
///
/// After each call of another method, datagrams are taken from [`poll_transmit`](Self::poll_transmit) until there is
/// none, and then [`next_wakeup`](Self::next_wakeup) is asked. Calls come with non-decreasing `now`. Nothing is called
/// before the flow starts. An error that a method returns ends the run.
pub trait Endpoint: Send {
    /// The flow starts: a client can open its connection. Both ends start before either sends.
    ///
    /// # Errors
    /// The endpoint has failed.
    fn start(&mut self, _now: Duration) -> Result<(), PluginError> {
        Ok(())
    }

    /// The flow stops, as its group's key `stop` says: its application has no more to send.
    ///
    /// # Errors
    /// The endpoint has failed.
    fn stop(&mut self, _now: Duration) -> Result<(), PluginError> {
        Ok(())
    }

    /// A datagram of the other end arrives, with the ECN bits that it has on arrival: [`Ecn::Ce`] if a queue has
    /// marked it.
    ///
    /// # Errors
    /// The endpoint has failed.
    fn receive(&mut self, datagram: Datagram, now: Duration) -> Result<(), PluginError>;

    /// Returns the next datagram to send now; `None` if there is none.
    ///
    /// # Errors
    /// The endpoint has failed.
    fn poll_transmit(&mut self, now: Duration) -> Result<Option<Datagram>, PluginError>;

    /// Returns when [`on_wakeup`](Self::on_wakeup) is to be called, if no datagram arrives before. A time that has
    /// passed is now.
    ///
    /// # Errors
    /// The endpoint has failed.
    fn next_wakeup(&mut self, _now: Duration) -> Result<Option<Duration>, PluginError> {
        Ok(None)
    }

    /// Called at the time that [`next_wakeup`](Self::next_wakeup) returned last.
    ///
    /// # Errors
    /// The endpoint has failed.
    fn on_wakeup(&mut self, _now: Duration) -> Result<(), PluginError> {
        Ok(())
    }

    /// Returns how many bytes it has delivered to its application so far, for the metric `delivered_rate`; `None` if
    /// it does not count them.
    fn delivered(&self) -> Option<u64> {
        None
    }

    /// The measurement period begins: [`report`](Self::report) covers the time from now on.
    ///
    /// # Errors
    /// The endpoint has failed.
    fn start_measuring(&mut self, _now: Duration) -> Result<(), PluginError> {
        Ok(())
    }

    /// Reports metrics of its own, by name and in SI units, at the end of the run. They appear as
    /// `GROUP.endpoint.NAME`: the mean over the ends of the group that report the name.
    ///
    /// # Errors
    /// The endpoint has failed.
    fn report(&self, _now: Duration, _tell: &mut dyn FnMut(&str, f64)) -> Result<(), PluginError> {
        Ok(())
    }
}

/// Which of the two ends of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EndpointSide {
    /// The end at which the direction of its group begins: the metrics of the group are of the datagrams that it sends.
    Sender,
    /// The other end.
    Receiver,
}

/// What an endpoint is made for.
#[derive(Clone, Debug)]
pub struct EndpointContext {
    /// Which end of the flow it is.
    pub side: EndpointSide,
    /// The name of the group.
    pub group: String,
    /// The number of the flow in its group, from 0.
    pub flow: u32,
    /// When the flow starts.
    pub start: Duration,
    /// When the flow stops; `None` if it does not.
    pub stop: Option<Duration>,
    /// How long the run takes.
    pub duration: Duration,
    /// The largest payload that a datagram may have, in bytes.
    pub largest_payload: usize,
    /// The endpoint's own random stream. It depends on seed, replication, group, number of the flow, and side alone.
    pub stream: Stream,
}

impl EndpointContext {
    /// A seed for a generator of the stack's own. It draws from the stream.
    pub fn seed(&mut self) -> [u8; 32] {
        let mut seed = [0; 32];
        for byte in &mut seed {
            *byte = (self.stream.uniform() * 256.0) as u8;
        }
        seed
    }
}

impl Pluggable for dyn Endpoint {
    type Context = EndpointContext;

    const ROLE: Role = Role::Endpoint;
}

/// The endpoints by their names in an experiment file: for each end of a flow of a group with `class = "NAME"`, what was
/// registered under the name makes the endpoint.
pub type Endpoints = Registry<dyn Endpoint>;
