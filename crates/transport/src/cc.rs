//! Congestion control: how the window grows and what an event does to it.
//!
//! Adding a growth law: one file here, one variant of [`Growth`] and of
//! [`Controller`], one line in the conformance list.

pub mod reno;

use redtail_core::schemars::JsonSchema;
use redtail_core::serde::{Deserialize, Serialize};
use redtail_core::{Time, schemars, serde};

/// How the window grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(crate = "serde", rename_all = "kebab-case")]
#[schemars(crate = "schemars")]
pub enum Growth {
    /// Slow start and congestion avoidance of RFC 5681.
    Reno,
}

/// What a reduction takes half of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(crate = "serde", rename_all = "kebab-case")]
#[schemars(crate = "schemars")]
pub enum Halving {
    /// The bytes in flight, and never below two segments (RFC 5681, equation 4).
    FlightSize,
    /// The window itself; ssthresh is rounded down to whole segments and at least two, the window keeps its fraction and at least one segment (ns-2.35, there without the latter bound).
    Window,
}

/// The two numbers every sender's behaviour hangs on, in bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Window {
    /// Congestion window. A fraction of a segment is kept: it adds up.
    pub cwnd: f64,
    /// Slow start threshold; infinite before the first congestion event.
    pub ssthresh: f64,
}

/// An acknowledgement of new data, outside fast recovery.
#[derive(Clone, Copy, Debug)]
pub struct AckSample {
    /// When it arrived.
    pub now: Time,
    /// Bytes it newly acknowledged.
    pub acked: u64,
}

/// A reason to reduce.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CongestionKind {
    /// Duplicate or selective acknowledgements reported a loss.
    Loss,
    /// The peer echoed a congestion mark.
    Ecn,
    /// The retransmission timer ran out.
    Timeout {
        /// Whether it is a repetition for data already retransmitted by timeout.
        repeated: bool,
    },
}

/// A congestion event.
#[derive(Clone, Copy, Debug)]
pub struct CongestionEvent {
    /// When it was recognised.
    pub now: Time,
    /// What it was.
    pub kind: CongestionKind,
    /// Bytes outstanding (RFC 5681's FlightSize).
    pub flight: u64,
}

/// A congestion controller: no packets, no timers, no queues.
pub trait CongestionControl {
    /// New data was acknowledged.
    fn on_ack(&mut self, sample: &AckSample);
    /// Congestion: reduce.
    fn on_congestion(&mut self, event: &CongestionEvent);
    /// The window now.
    fn window(&self) -> Window;
    /// Replaces the congestion window, in bytes; for a handshake that lost its SYN
    /// (RFC 5681, section 3.1) and for a partial window deflation.
    fn set_cwnd(&mut self, cwnd: f64);
}

/// Any of the controllers, dispatched statically.
#[derive(Clone, Debug)]
pub enum Controller {
    /// RFC 5681.
    Reno(reno::Reno),
}

impl CongestionControl for Controller {
    #[inline]
    fn on_ack(&mut self, sample: &AckSample) {
        match self {
            Self::Reno(reno) => reno.on_ack(sample),
        }
    }
    fn on_congestion(&mut self, event: &CongestionEvent) {
        match self {
            Self::Reno(reno) => reno.on_congestion(event),
        }
    }
    #[inline]
    fn window(&self) -> Window {
        match self {
            Self::Reno(reno) => reno.window(),
        }
    }
    fn set_cwnd(&mut self, cwnd: f64) {
        match self {
            Self::Reno(reno) => reno.set_cwnd(cwnd),
        }
    }
}
