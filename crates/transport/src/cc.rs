//! Congestion control: the growth of the window and its reduction by congestion events.
//!
//! A controller is a slow start ([`slow_start`]) and a growth law (a file each), for one window.
//! The law determines how the window grows in congestion avoidance and by what factor an event
//! reduces it. When and what to reduce is the same for all laws.
//!
//! Adding a growth law: one file here, and its line in the list of `laws.rs`.

pub mod additive;
pub mod bbr;
pub mod bbr3;
pub mod bic;
pub mod copa;
pub mod cubic;
pub mod highspeed;
pub mod htcp;
pub mod hybla;
mod hystart;
pub mod illinois;
mod laws;
pub mod ledbat;
pub mod linux_cubic;
pub mod linux_reno;
pub mod model;
mod models;
pub mod prague;
pub mod reno;
pub mod scalable;
pub mod slow_start;
mod tick;
pub mod vegas;
pub mod veno;
pub mod westwood;
pub mod yeah;

use std::sync::Arc;

pub(crate) use redtail_core::as_f64;
use redtail_core::schemars::JsonSchema;
use redtail_core::serde::{Deserialize, Serialize};
use redtail_core::{Span, Stream, Time, schemars, serde};

pub use self::laws::{Growth, GrowthParams};

use crate::constants::Constants;
use crate::plugin::{Identity, Plugin, Plugins};
use crate::tcp::copy_fields;

use self::laws::{Law, law};
use self::model::{LostSegment, Model, RateSample};
use self::models::{AnyModel, model};
use self::slow_start::{SlowStart, SlowStartParams};

/// Quantity that a reduction is a share of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(crate = "serde", rename_all = "kebab-case")]
#[schemars(crate = "schemars")]
pub enum Halving {
    /// The bytes in flight; the result is at least two segments (RFC 5681, equation 4).
    FlightSize,
    /// The window; ssthresh is rounded down to whole segments and is at least two segments, the window keeps its fraction and is at least one segment (ns-2.35, there without the latter bound).
    Window,
    /// The window; the result is at least two segments, and in whole segments if the growth law counts in them (Linux 6.1, `tcp_reno_ssthresh`, `cubictcp_recalc_ssthresh`).
    LinuxWindow,
}

/// How an idle time longer than the retransmission timeout reduces the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(crate = "serde", rename_all = "kebab-case")]
#[schemars(crate = "schemars")]
pub enum IdleDecay {
    /// To the initial window in one step (RFC 5681, section 4.1).
    Restart,
    /// By half for each timeout that passed after the first, in whole segments, down to the initial window; ssthresh is at least three quarters of the window before. A model keeps its own window (RFC 2861; Linux, tcp_cwnd_restart, tcp_current_ssthresh).
    Halving,
}

/// The congestion window and the slow start threshold, in bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Window {
    /// Congestion window. Fractions of a segment are kept, because they add up.
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
    /// Bytes it newly reports as marked (ECN).
    pub marked: u64,
    /// The cumulative acknowledgement, as an offset in the stream.
    pub una: u64,
    /// The next new byte to send, as an offset in the stream.
    pub next: u64,
    /// The round trip it measured, if it measured one.
    pub rtt: Option<Span>,
    /// The smoothed round trip, once there is one.
    pub srtt: Option<Span>,
    /// Whether growth with a virtual round trip uses it.
    pub rtt_independent: bool,
}

/// What the sender is doing, in the terms of Linux (tcp_ca_state).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CaState {
    /// No loss and no marks.
    #[default]
    Open,
    /// Data is missing and not declared lost.
    Disorder,
    /// A reduction by marks is spread over a round trip (CWR).
    Reduction,
    /// Fast recovery.
    Recovery,
    /// Repair after a timeout.
    Loss,
}

impl CaState {
    /// Whether the window may grow.
    pub fn grows(self) -> bool {
        !matches!(self, Self::Reduction | Self::Recovery)
    }
}

/// Any acknowledgement, including duplicates and those in recovery, for laws that watch the path.
#[derive(Clone, Copy, Debug)]
pub struct PathSample {
    /// When it arrived.
    pub now: Time,
    /// Bytes it newly acknowledged cumulatively; 0 if it is a duplicate.
    pub acked: u64,
    /// The cumulative acknowledgement, as an offset in the stream.
    pub una: u64,
    /// The next new byte to send, as an offset in the stream.
    pub next: u64,
    /// The round trip of the newest segment it newly covers, if all segments that it covers were
    /// sent once. It excludes the time for which a delayed acknowledgement waited for that segment.
    pub rtt: Option<Span>,
    /// The smoothed round trip, once there is one.
    pub srtt: Option<Span>,
    /// What the sender was doing when it arrived.
    pub state: CaState,
}

impl PathSample {
    /// The segments it newly acknowledged; a short one counts as one.
    fn segments(&self, mss: f64) -> u64 {
        self.acked.div_ceil(mss as u64)
    }
}

/// The cause of a congestion event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CongestionKind {
    /// Duplicate or selective acknowledgements reported a loss.
    Loss,
    /// The peer echoed a congestion mark.
    Ecn,
    /// The retransmission timer expired, or a loss is treated as if it had.
    Timeout {
        /// Whether it is a further timeout of data already retransmitted by a timeout.
        repeated: bool,
    },
}

/// A congestion event.
#[derive(Clone, Copy, Debug)]
pub struct CongestionEvent {
    /// When it was detected.
    pub now: Time,
    /// Its cause.
    pub kind: CongestionKind,
    /// Bytes outstanding (RFC 5681's FlightSize).
    pub flight: u64,
    /// The factor of the reduction, if it replaces the law's.
    pub beta: Option<f64>,
}

/// The greater of two numbers, of which none is NaN. It takes one instruction; [`f64::max`] takes six.
#[inline]
pub(crate) fn greater(one: f64, other: f64) -> f64 {
    if one > other { one } else { other }
}

/// The lesser of two numbers, of which none is NaN, as [`greater`].
#[inline]
pub(crate) fn lesser(one: f64, other: f64) -> f64 {
    if one < other { one } else { other }
}

/// A growth law. `mss` is the size of a full segment in bytes.
pub trait GrowthLaw {
    /// Its constants.
    type Params: Constants;

    /// The law at the start of a connection.
    fn start(_config: &ControllerConfig, _params: &Arc<Self::Params>) -> Self
    where
        Self: Sized + Default,
    {
        Self::default()
    }

    /// The window after an acknowledgement in congestion avoidance, in bytes.
    fn grown(&mut self, cwnd: f64, sample: &AckSample, mss: f64) -> f64;

    /// Whether acknowledgements that report marks grow the window too.
    fn grows_between_marks(&self) -> bool {
        false
    }

    /// An acknowledgement with which slow start has grown the window. For laws that measure round
    /// trips, and for those that end slow start.
    fn observe(&mut self, _window: &mut Window, _sample: &AckSample, _mss: f64) {}

    /// Whether [`watch`](Self::watch) is to be called for every acknowledgement.
    fn watches(&self) -> bool {
        false
    }

    /// Any acknowledgement, with a window of `cwnd` bytes. Called before `grown`.
    fn watch(&mut self, _cwnd: f64, _sample: &PathSample, _mss: f64) {}

    /// The handshake is complete.
    fn on_handshake(&mut self, _now: Time) {}

    /// The factor by which a congestion event multiplies the window or the bytes in flight.
    fn beta(&self) -> f64;

    /// A congestion event is about to reduce a window of `window` segments.
    fn on_congestion(&mut self, _window: f64, _kind: CongestionKind) {}

    /// The window, in segments, after an event reduces one of `window` segments; for laws that do
    /// not multiply the bytes in flight. Called before `on_congestion`, and not for a repeated
    /// timeout.
    fn ssthresh(&mut self, _window: f64, _kind: CongestionKind) -> Option<f64> {
        None
    }

    /// Fast recovery, a reduction by marks or the repair after a timeout has ended. Returns the new
    /// window and ssthresh in segments, if the law sets them.
    fn on_episode_end(&mut self, _timeout: bool, _mss: f64, _now: Time) -> Option<f64> {
        None
    }

    /// Whether a reduced window is a whole number of segments.
    fn counts_segments(&self) -> bool {
        false
    }

    /// Nothing was sent for longer than a timeout: estimates of time are out of date.
    fn after_idle(&mut self) {}

    /// Sending resumes at `now` after a pause since `sent`, in which there was no data to send.
    fn after_pause(&mut self, _sent: Time, _now: Time) {}

    /// The latest congestion event was spurious.
    fn undo(&mut self) {}
}

/// A congestion controller: no packets, no timers, no queues.
#[derive(Clone, Debug)]
pub struct Controller {
    mss: u32,
    halving: Halving,
    byte_counting: bool,
    window: Window,
    slow_start: SlowStart,
    law: Law,
}

impl Controller {
    /// Becomes a copy of `fresh`.
    pub(crate) fn renew(&mut self, fresh: &Self) {
        copy_fields!(self, fresh; slow_start, law; ; mss, halving, byte_counting, window);
    }
}

/// The configuration of a controller.
#[derive(Clone, Debug)]
pub struct ControllerConfig {
    /// Size of a full segment, bytes.
    pub mss: u32,
    /// Segments that may be sent before the first acknowledgement.
    pub initial_window: u32,
    /// Quantity that a reduction is a share of.
    pub halving: Halving,
    /// Grow with what is acknowledged, not with acknowledgements (RFC 3465).
    pub byte_counting: bool,
    /// How the window grows at first.
    pub slow_start: SlowStartParams,
    /// How it grows afterwards.
    pub growth: GrowthParams,
    /// For a model of the path: [`ModelConfig::lt_bw`](model::ModelConfig::lt_bw).
    pub lt_bw: bool,
    /// For a model of the path: [`ModelConfig::ecn_max_rtt`](model::ModelConfig::ecn_max_rtt).
    pub ecn_max_rtt: Option<Span>,
}

/// What a model sets besides the window.
#[derive(Clone, Copy, Debug)]
pub struct Controls {
    /// The pacing rate in bytes/s; `None` if the sender is paced by its window, or not at all.
    pub pacing_rate: Option<f64>,
    /// The most bytes that are sent at once.
    pub quantum: u64,
    /// Whether the bytes in flight are limited to probe for the round trip.
    pub probes_rtt: bool,
}

/// The window that a model sets.
#[inline]
fn window_of(model: &impl Model) -> Window {
    Window {
        cwnd: model.cwnd(),
        ssthresh: model.ssthresh(),
    }
}

/// Passes a rate sample to a model. Returns its window and what else it sets. There is one such function for each
/// model, and what the model does not use of the sample is not computed.
#[inline(never)]
fn answer<M: Model, S>(model: &mut M, sample: S) -> (Window, Controls)
where
    RateSample: From<S>,
{
    model.on_ack(&RateSample::from(sample));
    let controls = Controls {
        pacing_rate: model.pacing_rate(),
        quantum: model.send_quantum(),
        probes_rtt: model.probes_rtt(),
    };
    (window_of(model), controls)
}

impl Controller {
    /// A controller at the start of a connection.
    pub fn new(config: ControllerConfig) -> Self {
        let mss = f64::from(config.mss);
        let initial_cwnd = f64::from(config.initial_window) * mss;
        Self {
            mss: config.mss,
            halving: config.halving,
            byte_counting: config.byte_counting,
            window: Window {
                cwnd: initial_cwnd,
                ssthresh: f64::INFINITY,
            },
            slow_start: SlowStart::new(&config.slow_start, mss),
            law: Law::new(&config),
        }
    }

    /// The same with a slow start that ends at `ssthresh` segments at the latest. A model sets its own window.
    pub(crate) fn starting_below(mut self, ssthresh: Option<u32>) -> Self {
        if let Some(segments) = ssthresh {
            self.window.ssthresh = f64::from(segments) * self.mss();
        }
        self
    }

    /// The same with a controller of a user in place of the growth law.
    pub(crate) fn of_user(config: ControllerConfig, identity: Identity) -> Self {
        let plugin = Plugin::new(identity, config.mss, config.initial_window);
        Self {
            law: Law::Model(Box::new(AnyModel::Plugin(plugin))),
            ..Self::new(ControllerConfig {
                slow_start: slow_start::SlowStartKind::Startup.into(),
                growth: Growth::Reno.into(),
                ..config
            })
        }
    }

    /// A controller of a user is one of `plugins`.
    pub(crate) fn take_from(&mut self, plugins: &Plugins) {
        if let Some(AnyModel::Plugin(plugin)) = self.model() {
            plugin.take_from(plugins);
        }
    }

    /// Tells the own figures of a controller of a user.
    pub fn report(&self, now: Time, tell: &mut dyn FnMut(&str, f64)) {
        if let Law::Model(model) = &self.law
            && let AnyModel::Plugin(plugin) = &**model
        {
            plugin.report(now, tell);
        }
    }

    /// Size of a full segment in bytes.
    #[inline]
    fn mss(&self) -> f64 {
        f64::from(self.mss)
    }

    /// New data was acknowledged.
    #[inline]
    pub fn on_ack(&mut self, sample: &AckSample) {
        let Window { cwnd, ssthresh } = self.window;
        if sample.marked > 0 && (cwnd < ssthresh || !law!(&self.law, l => l.grows_between_marks()))
        {
            return;
        }
        if cwnd < ssthresh {
            // With byte counting a delayed acknowledgement counts in full (RFC 3465).
            let most = if self.byte_counting {
                f64::INFINITY
            } else {
                self.mss()
            };
            self.slow_start.on_ack(&mut self.window, sample, most);
            if self.window.cwnd > self.window.ssthresh {
                self.pass_ssthresh(sample);
            }
            let mss = self.mss();
            law!(&mut self.law, l => l.observe(&mut self.window, sample, mss));
        } else {
            self.avoid(sample);
        }
    }

    /// New data of `acked` bytes was acknowledged without marks. Grows the window if it is beyond slow start and grows as
    /// Reno's, which needs to know no more of the acknowledgement. Returns whether it is.
    #[inline]
    pub(crate) fn avoids_as_reno(&mut self, acked: u64) -> bool {
        let Window { cwnd, ssthresh } = self.window;
        let Law::Reno(reno) = &self.law else {
            return false;
        };
        let avoids = cwnd >= ssthresh;
        if avoids {
            // It grows, so it stays beyond ssthresh.
            self.window.cwnd = reno.after(cwnd, acked, self.mss());
        }
        avoids
    }

    /// Grows by congestion avoidance.
    #[inline]
    fn avoid(&mut self, sample: &AckSample) {
        let Window { cwnd, ssthresh } = self.window;
        let mss = self.mss();
        let grown = law!(&mut self.law, l => l.grown(cwnd, sample, mss));
        // A law that shrinks the window does not cause a return to slow start.
        self.window = Window {
            cwnd: grown,
            ssthresh: ssthresh.min(grown),
        };
    }

    /// Slow start has grown the window beyond ssthresh. For laws that count segments, slow start
    /// stops at ssthresh and congestion avoidance takes the remaining bytes (Linux,
    /// `tcp_slow_start`).
    #[cold]
    fn pass_ssthresh(&mut self, sample: &AckSample) {
        if !law!(&self.law, l => l.counts_segments()) {
            return;
        }
        let left = self.window.cwnd - self.window.ssthresh;
        self.window.cwnd = self.window.ssthresh;
        self.avoid(&AckSample {
            acked: left as u64,
            ..*sample
        });
    }

    /// Reduces the window because of a congestion event.
    pub fn on_congestion(&mut self, event: &CongestionEvent) {
        if let Law::Model(model) = &mut self.law {
            model!(&mut **model, m => m.on_congestion(event));
            self.window = model!(&**model, m => window_of(m));
            return;
        }
        let (cwnd, mss) = (self.window.cwnd, self.mss());
        // Marks may have a factor of their own.
        let repeated = event.kind == CongestionKind::Timeout { repeated: true };
        let own = if event.beta.is_none() && !repeated {
            law!(&mut self.law, l => l.ssthresh(cwnd / mss, event.kind))
        } else {
            None
        };
        law!(&mut self.law, l => l.on_congestion(cwnd / mss, event.kind));
        let beta = event.beta.unwrap_or_else(|| law!(&self.law, l => l.beta()));
        let (ssthresh, reduced) = match (own, self.halving) {
            (Some(segments), _) => (segments * mss, segments * mss),
            (None, Halving::FlightSize | Halving::LinuxWindow) => {
                // Bytes that limited transmit sent beyond the window do not count (RFC 5681,
                // section 3.2, step 2). Nor do bytes sent while selective acknowledgements
                // prolonged an episode.
                let whole = match self.halving {
                    Halving::LinuxWindow => cwnd,
                    _ => (event.flight as f64).min(cwnd),
                };
                let mut reduced = whole * beta;
                if law!(&self.law, l => l.counts_segments()) {
                    reduced = match event.beta {
                        // A response in proportion to marks takes whole segments away
                        // (tcp_dctcp.c, dctcp_ssthresh).
                        Some(_) => (reduced / mss).ceil() * mss,
                        None => (reduced / mss).floor() * mss,
                    };
                }
                let reduced = reduced.max(2.0 * mss);
                (reduced, reduced)
            }
            (None, Halving::Window) => {
                let reduced = (cwnd * beta).max(mss);
                ((reduced / mss).floor().max(2.0) * mss, reduced)
            }
        };
        match event.kind {
            CongestionKind::Loss | CongestionKind::Ecn => {
                // A reduction never raises the window; one segment stays one segment.
                self.window = Window {
                    cwnd: reduced.min(cwnd),
                    ssthresh,
                };
            }
            CongestionKind::Timeout { repeated } => {
                // A timeout for data that timed out before must not reduce
                // ssthresh again (RFC 5681, section 3.1, after equation 4).
                if !repeated || self.halving == Halving::Window {
                    self.window.ssthresh = ssthresh;
                }
                self.window.cwnd = mss;
                self.slow_start.on_timeout();
            }
        }
    }

    /// Whether the law needs every acknowledgement.
    pub fn watches(&self) -> bool {
        law!(&self.law, l => l.watches()) || self.slow_start.watches()
    }

    /// Passes any acknowledgement to the law.
    pub fn watch(&mut self, sample: &PathSample) {
        let mss = self.mss();
        law!(&mut self.law, l => l.watch(self.window.cwnd, sample, mss));
        if let Some(hybla) = self.slow_start.hybla() {
            hybla.watch(sample);
        }
    }

    /// Tells the law that an episode has ended; `timeout` if it was the repair after a timeout.
    pub fn on_episode_end(&mut self, timeout: bool, now: Time) {
        let mss = self.mss();
        if let Some(segments) = law!(&mut self.law, l => l.on_episode_end(timeout, mss, now)) {
            self.window.cwnd = segments * mss;
            self.window.ssthresh = self.window.cwnd;
        }
    }

    /// The latest congestion event was spurious. The window becomes at least `prior`, its value
    /// before the event.
    pub fn undo(&mut self, prior: Window) {
        law!(&mut self.law, l => l.undo());
        if let Law::Model(model) = &self.law {
            self.window = model!(&**model, m => window_of(m));
            return;
        }
        self.window = Window {
            cwnd: self.window.cwnd.max(prior.cwnd),
            ssthresh: self.window.ssthresh.max(prior.ssthresh),
        };
    }

    /// The window now.
    #[inline]
    pub fn window(&self) -> Window {
        self.window
    }

    /// Sets the congestion window, in bytes: after a handshake that lost its SYN (RFC 5681, section
    /// 3.1), and after recovery.
    pub fn set_cwnd(&mut self, cwnd: f64) {
        self.window.cwnd = cwnd;
        if let Law::Model(model) = &mut self.law {
            model!(&mut **model, m => m.set_cwnd(cwnd));
        }
    }

    /// Whether it has a model of the path.
    #[inline]
    pub fn has_model(&self) -> bool {
        matches!(self.law, Law::Model(_))
    }

    /// The model, if the controller has one.
    #[inline]
    fn model(&mut self) -> Option<&mut AnyModel> {
        match &mut self.law {
            Law::Model(model) => Some(model),
            _ => None,
        }
    }

    /// Gives a model the stream of random numbers from which it draws.
    pub fn set_stream(&mut self, stream: Stream) {
        if let Some(model) = self.model() {
            model!(model, m => m.set_stream(stream));
            self.window = model!(&*model, m => window_of(m));
        }
    }

    /// The handshake is complete, and took `rtt`.
    pub fn on_handshake(&mut self, rtt: Span, now: Time) {
        if let Some(model) = self.model() {
            model!(model, m => m.on_handshake(rtt, now));
            return;
        }
        law!(&mut self.law, l => l.on_handshake(now));
        if let Some(hybla) = self.slow_start.hybla() {
            self.window.cwnd = hybla.initial_window(rtt);
        }
    }

    /// Tells a model that transmission is about to resume after the application had
    /// nothing to send; `delivered` bytes were delivered since the start.
    pub fn on_restart(&mut self, now: Time, delivered: u64) {
        if let Some(model) = self.model() {
            model!(model, m => m.on_restart(now, delivered));
            self.window = model!(&*model, m => window_of(m));
        }
    }

    /// Passes a segment that was declared lost to the model.
    pub fn on_lost(&mut self, lost: &LostSegment, now: Time) {
        if let Some(model) = self.model() {
            model!(model, m => m.on_lost(lost, now));
        }
    }

    /// Passes the rate sample of an acknowledgement to the model, takes over the model's window, and returns what else
    /// the model sets.
    #[inline]
    pub fn on_rate_sample<S>(&mut self, sample: S) -> Option<Controls>
    where
        RateSample: From<S>,
    {
        let Law::Model(model) = &mut self.law else {
            return None;
        };
        let (window, controls) = model!(&mut **model, m => answer(m, sample));
        self.window = window;
        Some(controls)
    }

    /// The model's pacing rate in bytes/s and its send quantum in bytes, if it paces.
    #[inline]
    pub fn pacing(&self) -> Option<(f64, u64)> {
        match &self.law {
            Law::Model(model) => model!(&**model, m => {
                m.pacing_rate().map(|rate| (rate, m.send_quantum()))
            }),
            _ => None,
        }
    }

    /// The name of the state that a model is in; `None` for one that names none, as for a law.
    pub fn state(&self) -> Option<&'static str> {
        match &self.law {
            Law::Model(model) => {
                Some(model!(&**model, m => m.state())).filter(|name| !name.is_empty())
            }
            _ => None,
        }
    }

    /// Sending resumes at `now` after a pause since `sent`, in which there was no data to send.
    pub fn after_pause(&mut self, sent: Time, now: Time) {
        law!(&mut self.law, l => l.after_pause(sent, now));
    }

    /// Sending resumes after nothing was sent for longer than a timeout. The window is at most
    /// `restart` bytes, if given (RW of RFC 5681, section 4.1).
    pub fn after_idle(&mut self, restart: Option<f64>) {
        law!(&mut self.law, l => l.after_idle());
        if let Some(restart) = restart {
            self.window.cwnd = self.window.cwnd.min(restart);
            if let Some(AnyModel::Plugin(plugin)) = self.model() {
                plugin.set_cwnd(restart.min(plugin.cwnd()));
            }
        }
    }

    /// Sending resumes after `timeouts` timeouts without sending, with [`IdleDecay::Halving`];
    /// `reducing` while a reduction is in progress.
    pub fn decay(&mut self, restart: f64, timeouts: u64, reducing: bool) {
        law!(&mut self.law, l => l.after_idle());
        if let Law::Model(_) = self.law {
            return;
        }
        let Window { cwnd, ssthresh } = self.window;
        let segments = (cwnd / self.mss()).floor() as u64;
        if !reducing {
            let kept = (segments >> 1) + (segments >> 2);
            self.window.ssthresh = ssthresh.max(as_f64(kept) * self.mss());
        }
        let mut left = segments;
        for _ in 1..timeouts {
            if as_f64(left) * self.mss() <= restart.min(cwnd) {
                break;
            }
            left >>= 1;
        }
        if left < segments {
            self.window.cwnd = (as_f64(left) * self.mss()).max(restart.min(cwnd));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::slow_start::SlowStartKind;
    use super::*;

    const MSS: u32 = 1000;

    fn config(initial_window: u32, halving: Halving) -> ControllerConfig {
        ControllerConfig {
            mss: MSS,
            initial_window,
            halving,
            byte_counting: false,
            slow_start: SlowStartKind::Standard.into(),
            growth: Growth::Reno.into(),
            lt_bw: false,
            ecn_max_rtt: None,
        }
    }

    fn controller(initial_window: u32, halving: Halving) -> Controller {
        Controller::new(config(initial_window, halving))
    }

    fn ack(acked: u64) -> AckSample {
        AckSample {
            now: Time::ZERO,
            acked,
            marked: 0,
            una: 0,
            next: 0,
            rtt: None,
            srtt: None,
            rtt_independent: false,
        }
    }

    fn event(kind: CongestionKind, flight: u64) -> CongestionEvent {
        CongestionEvent {
            now: Time::ZERO,
            kind,
            flight,
            beta: None,
        }
    }

    #[test]
    fn slow_start_adds_one_segment_per_ack_however_much_it_covers() {
        let mut reno = controller(2, Halving::FlightSize);
        reno.on_ack(&ack(1000));
        reno.on_ack(&ack(2000));
        assert_eq!(reno.window().cwnd, 4000.0);
        reno.on_ack(&ack(400)); // an ACK of less than a segment grows by less
        assert_eq!(reno.window().cwnd, 4400.0);
    }

    #[test]
    fn idle_timeouts_halve_whole_segments_and_ssthresh_keeps_three_quarters() {
        // Linux, tcp_cwnd_restart and tcp_current_ssthresh.
        let after = |timeouts, reducing| {
            let mut reno = controller(10, Halving::FlightSize);
            reno.on_congestion(&event(CongestionKind::Loss, 10_000));
            reno.set_cwnd(19_900.0);
            reno.decay(4000.0, timeouts, reducing);
            (reno.window().cwnd, reno.window().ssthresh)
        };
        // 19 / 2 + 19 / 4, each rounded down; then 19, 9, 4 and no less.
        assert_eq!(after(2, false), (9000.0, 13_000.0));
        assert_eq!(after(3, false), (4000.0, 13_000.0));
        assert_eq!(after(900, false), (4000.0, 13_000.0));
        assert_eq!(after(2, true), (9000.0, 5000.0));
    }

    #[test]
    fn congestion_avoidance_adds_about_one_segment_per_window() {
        let mut reno = controller(20, Halving::FlightSize);
        reno.on_congestion(&event(CongestionKind::Loss, 20_000));
        assert_eq!(
            reno.window(),
            Window {
                cwnd: 10_000.0,
                ssthresh: 10_000.0
            }
        );
        for _ in 0..10 {
            reno.on_ack(&ack(1000));
        }
        let grown = reno.window().cwnd - 10_000.0;
        assert!((950.0..=1000.0).contains(&grown), "{grown}");
    }

    #[test]
    fn a_loss_halves_the_flight_but_not_below_two_segments() {
        let mut reno = controller(10, Halving::FlightSize);
        reno.on_congestion(&event(CongestionKind::Loss, 3000));
        assert_eq!(reno.window().ssthresh, 2000.0);
    }

    #[test]
    fn a_timeout_never_raises_ssthresh_above_half_the_window() {
        let mut reno = controller(10, Halving::FlightSize);
        // Much more than a window can be outstanding during an episode.
        reno.on_congestion(&event(CongestionKind::Timeout { repeated: false }, 200_000));
        assert_eq!(reno.window().ssthresh, 5000.0);
    }

    #[test]
    fn a_repeated_timeout_holds_ssthresh() {
        let mut reno = controller(16, Halving::FlightSize);
        reno.on_congestion(&event(CongestionKind::Timeout { repeated: false }, 16_000));
        reno.on_congestion(&event(CongestionKind::Timeout { repeated: true }, 1000));
        assert_eq!(
            reno.window(),
            Window {
                cwnd: 1000.0,
                ssthresh: 8000.0
            }
        );
    }

    #[test]
    fn an_echo_at_one_segment_does_not_raise_the_window() {
        let mut reno = controller(1, Halving::FlightSize);
        reno.on_congestion(&event(CongestionKind::Ecn, 1000));
        assert_eq!(reno.window().cwnd, 1000.0);
    }

    #[test]
    fn halving_the_window_rounds_ssthresh_alone() {
        let mut reno = controller(5, Halving::Window);
        reno.on_congestion(&event(CongestionKind::Loss, 0));
        assert_eq!(
            reno.window(),
            Window {
                cwnd: 2500.0,
                ssthresh: 2000.0
            }
        );
    }
    #[test]
    fn marks_take_whole_segments_from_a_window_that_counts_them() {
        // dctcp_ssthresh: cwnd - floor(cwnd alpha / 2).
        let after = |segments: u32, alpha: f64| {
            let mut dctcp = Controller::new(ControllerConfig {
                growth: Growth::LinuxReno.into(),
                ..config(segments, Halving::LinuxWindow)
            });
            dctcp.on_congestion(&CongestionEvent {
                beta: Some(1.0 - alpha / 2.0),
                ..event(CongestionKind::Ecn, u64::MAX)
            });
            dctcp.window().cwnd / f64::from(MSS)
        };
        assert_eq!(after(3, 0.5), 3.0);
        assert_eq!(after(4, 0.5), 3.0);
        assert_eq!(after(10, 0.5), 8.0);
        assert_eq!(after(10, 1.0), 5.0);
        assert_eq!(after(3, 1.0), 2.0);
    }
}
