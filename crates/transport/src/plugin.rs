//! Congestion controllers of users.
//!
//! A plug-in is a boxed [`PluginController`]. It hears what a model of the path hears
//! ([`Model`](crate::cc::model::Model)), and its methods can fail. The adapter is one more kind of model: it makes the
//! plug-in when the sender gets its random numbers, and checks what the plug-in returns after each call that can have changed
//! it.
//!
//! A controller that paces says at what rate. One that does not, a window-based law, returns no rate: the sender is then
//! paced as a built-in law's, or not at all, as the key `pacing` says.
//!
//! How the experiment file names plug-ins, and how they fail, is in [`redtail_core::plugin`].

mod adapter;

pub use redtail_core::plugin::{
    Identity, Pluggable, PluginError, PluginFailure, PluginVisitor, Registry, Role, Value, catching,
};
use redtail_core::{Span, Stream, Time};

pub use self::adapter::Plugin;
pub use crate::cc::model::{Episode, LostSegment, RateSample};
pub use crate::cc::{CongestionEvent, CongestionKind};

/// The greatest window and quantum that a controller may return, bytes: a thousand times the largest receive window
/// (1 GiB, RFC 7323).
pub const LARGEST_WINDOW: f64 = (1_u64 << 40) as f64;

/// The least pacing rate, bytes/s; a segment then waits for hours.
pub const LEAST_RATE: f64 = 1.0;

/// The greatest pacing rate, bytes/s: 8 Pbit/s.
pub const LARGEST_RATE: f64 = 1e15;

/// The most names of states that one controller may have.
pub const MOST_STATES: usize = 64;

/// The most figures that one controller may tell at a time.
pub const MOST_FIGURES: usize = 64;

/// The most bytes of the name of a state or figure.
pub const LONGEST_NAME: usize = 40;

/// The connection for which a controller is made.
#[derive(Clone, Debug)]
pub struct PluginContext {
    /// Size of a full segment, bytes.
    pub mss: u32,
    /// The initial window, bytes.
    pub initial_cwnd: f64,
    /// The connection's own stream of random numbers.
    pub stream: Stream,
}

/// A congestion controller of a user, for one sender. Windows and quanta are in bytes, rates in bytes/s. Calls come with
/// non-decreasing times.
///
/// An error that a method returns ends the run.
pub trait PluginController: Send {
    /// An acknowledgement arrived, a duplicate or one in fast recovery too.
    ///
    /// # Errors
    /// The controller has failed.
    fn on_ack(&mut self, sample: &RateSample) -> Result<(), PluginError>;

    /// A segment was declared lost. Called before `on_ack` for the acknowledgement that showed the loss.
    ///
    /// # Errors
    /// The controller has failed.
    fn on_lost(&mut self, _lost: &LostSegment, _now: Time) -> Result<(), PluginError> {
        Ok(())
    }

    /// Fast recovery begins, or, with marks that count as losses do (`ecn_reduction = "loss"`), marks were echoed: at most
    /// once each round trip. Called before `on_ack` for the acknowledgement that showed it.
    ///
    /// # Errors
    /// The controller has failed.
    fn on_recovery(&mut self, event: &CongestionEvent) -> Result<(), PluginError>;

    /// The retransmission timer expired. The sender sets the window ([`set_cwnd`](Self::set_cwnd)) after it if its
    /// recovery does so.
    ///
    /// # Errors
    /// The controller has failed.
    fn on_timeout(&mut self, event: &CongestionEvent) -> Result<(), PluginError>;

    /// The handshake took `rtt`.
    ///
    /// # Errors
    /// The controller has failed.
    fn on_handshake(&mut self, _rtt: Span, _now: Time) -> Result<(), PluginError> {
        Ok(())
    }

    /// Transmission is about to resume after the application had nothing to send and everything was delivered:
    /// `delivered` bytes since the start.
    ///
    /// # Errors
    /// The controller has failed.
    fn on_restart(&mut self, _now: Time, _delivered: u64) -> Result<(), PluginError> {
        Ok(())
    }

    /// The latest episode was spurious: nothing was lost.
    ///
    /// # Errors
    /// The controller has failed.
    fn on_undo(&mut self) -> Result<(), PluginError> {
        Ok(())
    }

    /// The sender sets the window: after a handshake that lost its SYN, after recovery and a timeout, and after an idle
    /// time.
    ///
    /// # Errors
    /// The controller has failed.
    fn set_cwnd(&mut self, cwnd: f64) -> Result<(), PluginError>;

    /// The congestion window. Less than a segment counts as one segment.
    ///
    /// # Errors
    /// The controller has failed.
    fn cwnd(&self) -> Result<f64, PluginError>;

    /// The slow start threshold, for time series and for the rate of a sender that is paced by its window; `None` without
    /// one.
    ///
    /// # Errors
    /// The controller has failed.
    fn ssthresh(&self) -> Result<Option<f64>, PluginError> {
        Ok(None)
    }

    /// The pacing rate; `None` for a window-based controller.
    ///
    /// # Errors
    /// The controller has failed.
    fn pacing_rate(&self) -> Result<Option<f64>, PluginError> {
        Ok(None)
    }

    /// The most bytes that are sent at once at the pacing rate; less than a segment counts as one.
    ///
    /// # Errors
    /// The controller has failed.
    fn send_quantum(&self) -> Result<u64, PluginError> {
        Ok(0)
    }

    /// Whether the bytes in flight are limited to probe for the round trip. Their delivery rate then says nothing about the
    /// path.
    ///
    /// # Errors
    /// The controller has failed.
    fn probes_rtt(&self) -> Result<bool, PluginError> {
        Ok(false)
    }

    /// The state's name, for time series; empty without states.
    ///
    /// # Errors
    /// The controller has failed.
    fn state(&self) -> Result<&str, PluginError> {
        Ok("")
    }

    /// Tells its own figures by name, in SI units, for time series and metrics.
    ///
    /// # Errors
    /// The controller has failed.
    fn report(&self, _now: Time, _tell: &mut dyn FnMut(&str, f64)) -> Result<(), PluginError> {
        Ok(())
    }
}

impl Pluggable for dyn PluginController {
    type Context = PluginContext;

    const ROLE: Role = Role::Controller;
}

/// The controllers of users by their names in an experiment file.
pub type Plugins = Registry<dyn PluginController>;
