//! Google Congestion Control (GCC): a controller of delay at the receiver, and one of loss at the sender.
//!
//! Source: S. Holmer et al., "A Google Congestion Control Algorithm for Real-Time Communication",
//! draft-ietf-rmcat-gcc-02, 2016 (sections below are its); G. Carlucci, L. De Cicco, S. Holmer,
//! S. Mascolo, "Analysis and Design of the Google Congestion Control for Web Real-time Communication
//! (WebRTC)", MMSys 2016. It is the draft's second version (section 3): the receiver estimates the available
//! bandwidth and tells it (REMB); the sender reads the share of lost packets from the same report.
//!
//! ```text
//! d(i) = t(i) - t(i-1) - (T(i) - T(i-1))             groups of packets, arrival t and departure T (5.1)
//! m(i) = m(i-1) + k(i) (d(i) - m(i-1))               Kalman filter (5.3)
//! over-use: m(i) above the threshold; the threshold follows |m(i)| with K_u up and K_d down (5.4)
//! A_hat: +8 % per second far from convergence, + half a packet per response time near it,
//!        beta R_hat on over-use (5.5)
//! As_hat: (1 - 0.5 p) above 10 % loss, 1.05 below 2 %, by report (6)
//! target = min(A_hat, As_hat)
//! ```
//!
//! | symbol | unit | what |
//! |---|---|---|
//! | t, T, d, m | ms | times of groups; delay variation of a group and its estimate |
//! | A_hat, As_hat, R_hat | bit/s | estimates by delay and by loss; received rate over the last T = 0.5 s |
//!
//! Where the draft is silent, the WebRTC project's code is followed, on which both sources report:
//!
//! - m(i) times the number of groups so far, at most 60, is compared with the threshold
//!   (`overuse_detector.cc`). The draft compares m(i), for which a threshold of 6 ms or more would let the
//!   queue grow by 6 ms with each group.
//! - The variance of the noise begins at 50 ms^2; K, the number of groups in f_max, is 60; chi is 0.01
//!   (`overuse_estimator.cc`). The time by which the threshold adapts at once is at most 100 ms.
//! - The relative variance of the rates at convergence begins at 0.4 and stays within 0.4 and 2.5 kbit/s
//!   (`aimd_rate_control.cc`), so that three standard deviations exist after the first decrease.
//! - While over-use lasts, A_hat is decreased at most once per response time.
//! - As_hat is never above the A_hat that the report brought, so that a loss reduces the rate in use.

#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use libm::{exp, log, pow, sqrt};
use redtail_core::{Span, Time};

use super::packet::Report;

/// Packets that are sent within this time are a group (5.2, Table 1).
pub const BURST_TIME: Span = Span::from_ms(5);
const BURST_MS: f64 = 5.0;
/// State noise of the filter, q (5.3, Table 1).
const Q: f64 = 1e-3;
/// First error covariance, e(0) (Table 1).
const E_0: f64 = 0.1;
/// Coefficient of the measured noise, chi, in [0.001, 0.1] (5.3).
const CHI: f64 = 0.01;
/// First variance of the noise, in ms^2 (WebRTC).
const VAR_0: f64 = 50.0;
/// Groups over which f_max is found, K (WebRTC).
const K: usize = 60;
/// First threshold del_var_th(0), and its range, in ms (5.4).
const THRESHOLD_0: f64 = 12.5;
const THRESHOLD_RANGE: (f64, f64) = (6.0, 600.0);
/// Beyond this distance from the threshold, it does not adapt, in ms (5.4).
const TOO_FAR: f64 = 15.0;
/// The threshold's coefficients K_u and K_d, per ms (5.4, Table 1).
const K_U: f64 = 0.01;
const K_D: f64 = 0.000_18;
/// The longest time by which it adapts at once, in ms (WebRTC).
const LONGEST_STEP: f64 = 100.0;
/// How long over-use must last, overuse_time_th, in ms (5.4, Table 1).
const OVERUSE_TIME: f64 = 10.0;
/// The largest factor of m(i) (WebRTC).
const MOST_DELTAS: u32 = 60;
/// The window of the received rate, T in [0.5, 1] s (5.5, Table 1).
const RATE_WINDOW: Span = Span::from_ms(500);
/// Decrease factor beta (5.5, Table 1).
const BETA: f64 = 0.85;
/// Multiplicative increase per second, eta (5.5).
const ETA: f64 = 1.08;
/// The response time beyond the round-trip time (5.5).
const RESPONSE: Span = Span::from_ms(100);
/// The smallest additive increase of an update, in bits (5.5).
const LEAST_INCREASE: f64 = 1000.0;
/// A_hat stays below this multiple of R_hat (5.5).
const MOST_OF_RECEIVED: f64 = 1.5;
/// Smoothing factor of the rates at decreases (5.5).
const SMOOTHING: f64 = 0.95;
/// Range of their relative variance, in kbit/s (WebRTC).
const VARIANCE_RANGE: (f64, f64) = (0.4, 2.5);
/// Frames per second and payload of packets by which the additive increase is computed (5.5).
const FRAMES: f64 = 30.0;
const PACKET_BITS: f64 = 1200.0 * 8.0;
/// The round-trip time before one is known (WebRTC, `kDefaultRttMs`).
const DEFAULT_ROUND_TRIP: Span = Span::from_ms(200);
/// The share below which the latest report must be undercut for a report at once (MMSys 2016, section 3).
const REPORT_AT_ONCE: f64 = 0.97;
/// Loss above which the rate is reduced, and below which it is increased (6).
const MUCH_LOSS: f64 = 0.10;
const LITTLE_LOSS: f64 = 0.02;
/// Increase of the loss-based estimate by a report (6).
const LOSS_INCREASE: f64 = 1.05;

fn milliseconds(at: Time) -> f64 {
    (at - Time::ZERO).as_secs_f64() * 1e3
}

/// The filter of the delay variation, m(i) (5.3).
#[derive(Clone, Debug)]
pub struct ArrivalFilter {
    /// m(i) in ms.
    pub estimate: f64,
    covariance: f64,
    variance: f64,
    /// The latest K times between departures, in ms.
    gaps: VecDeque<f64>,
}

impl Default for ArrivalFilter {
    fn default() -> Self {
        Self {
            estimate: 0.0,
            covariance: E_0,
            variance: VAR_0,
            gaps: VecDeque::new(),
        }
    }
}

impl ArrivalFilter {
    /// A group left `gap` ms after the one before it and was delayed by `d` ms more.
    pub fn update(&mut self, d: f64, gap: f64) -> f64 {
        if self.gaps.len() == K {
            self.gaps.pop_front();
        }
        self.gaps.push_back(gap);
        // 1 / f_max.
        let shortest = self.gaps.iter().copied().fold(f64::INFINITY, f64::min);
        let alpha = pow(1.0 - CHI, 30.0 / 1000.0 * shortest);
        let z = d - self.estimate;
        let most = 3.0 * sqrt(self.variance);
        let cut = z.clamp(-most, most);
        self.variance = (alpha * self.variance + (1.0 - alpha) * cut * cut).max(1.0);
        let predicted = self.covariance + Q;
        let gain = predicted / (self.variance + predicted);
        self.estimate += gain * z;
        self.covariance = (1.0 - gain) * predicted;
        self.estimate
    }
}

/// What the detector says of the path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Signal {
    /// A queue grows.
    Over,
    /// Neither.
    #[default]
    Normal,
    /// A queue is emptied.
    Under,
}

/// The over-use detector with its adaptive threshold (5.4).
#[derive(Clone, Debug)]
pub struct OveruseDetector {
    /// del_var_th(i) in ms.
    pub threshold: f64,
    signal: Signal,
    /// How long, in ms, and for how many groups the estimate has been above the threshold.
    over: Option<(f64, u32)>,
    groups: u32,
    before: f64,
    updated: Option<f64>,
}

impl Default for OveruseDetector {
    fn default() -> Self {
        Self {
            threshold: THRESHOLD_0,
            signal: Signal::Normal,
            over: None,
            groups: 0,
            before: 0.0,
            updated: None,
        }
    }
}

impl OveruseDetector {
    /// The estimate of a group that left `gap` ms after the one before it and arrived at `now` ms.
    pub fn detect(&mut self, estimate: f64, gap: f64, now: f64) -> Signal {
        self.groups = (self.groups + 1).min(MOST_DELTAS);
        let m = f64::from(self.groups) * estimate;
        if m > self.threshold {
            // Half of the time since the group before, if that was not above.
            let (time, groups) = self
                .over
                .map_or((gap / 2.0, 1), |(time, groups)| (time + gap, groups + 1));
            self.over = Some((time, groups));
            if time > OVERUSE_TIME && groups > 1 && estimate >= self.before {
                self.over = Some((0.0, 0));
                self.signal = Signal::Over;
            }
        } else {
            self.over = None;
            self.signal = match m < -self.threshold {
                true => Signal::Under,
                false => Signal::Normal,
            };
        }
        self.before = estimate;
        self.adapt(m, now);
        self.signal
    }

    fn adapt(&mut self, m: f64, now: f64) {
        let passed = self.updated.map_or(0.0, |updated| now - updated);
        self.updated = Some(now);
        let distance = m.abs() - self.threshold;
        if distance > TOO_FAR {
            return;
        }
        let coefficient = if distance < 0.0 { K_D } else { K_U };
        self.threshold += passed.min(LONGEST_STEP) * coefficient * distance;
        let (least, most) = THRESHOLD_RANGE;
        self.threshold = self.threshold.clamp(least, most);
    }
}

/// States of the rate control (5.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Queues drain.
    Hold,
    /// No congestion is detected.
    Increase,
    /// Congestion is detected.
    Decrease,
}

impl State {
    /// The state after a signal (the table of 5.5).
    #[must_use]
    pub fn after(self, signal: Signal) -> Self {
        match (signal, self) {
            (Signal::Over, _) => Self::Decrease,
            (Signal::Normal, Self::Hold) => Self::Increase,
            (Signal::Normal, Self::Decrease) => Self::Hold,
            (Signal::Under, _) => Self::Hold,
            (Signal::Normal, Self::Increase) => Self::Increase,
        }
    }
}

/// The rates in the bounds that a call has, in bit/s.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// The least.
    pub least: f64,
    /// The most.
    pub most: f64,
}

impl Bounds {
    /// The nearest rate within the bounds.
    pub fn of(self, rate: f64) -> f64 {
        rate.clamp(self.least, self.most)
    }
}

/// The rate control by delay, A_hat (5.5).
#[derive(Clone, Debug)]
pub struct DelayBased {
    /// A_hat in bit/s.
    pub rate: f64,
    /// The present state.
    pub state: State,
    bounds: Bounds,
    /// Average of R_hat at decreases, in kbit/s.
    average: Option<f64>,
    /// The variance of R_hat at decreases, divided by the average, in kbit/s.
    variance: f64,
    updated: Option<Time>,
    decreased: Option<Time>,
}

impl DelayBased {
    /// A control that begins with this rate.
    pub fn new(rate: f64, bounds: Bounds) -> Self {
        Self {
            rate,
            state: State::Increase,
            bounds,
            average: None,
            variance: VARIANCE_RANGE.0,
            updated: None,
            decreased: None,
        }
    }

    /// A signal at `now`, with R_hat if it is known yet.
    pub fn update(&mut self, signal: Signal, received: Option<f64>, round_trip: Span, now: Time) {
        self.state = self.state.after(signal);
        let response = round_trip + RESPONSE;
        if self.state == State::Decrease {
            let recently = |at: Time| now.saturating_since(at) < response;
            if signal == Signal::Over && !self.decreased.is_some_and(recently) {
                self.decrease(received, now);
            }
            return;
        }
        let since = now.saturating_since(*self.updated.get_or_insert(now));
        if since < response {
            return;
        }
        self.updated = Some(now);
        if self.state == State::Increase {
            self.increase(received, since, response);
        }
    }

    fn decrease(&mut self, received: Option<f64>, now: Time) {
        let received = received.unwrap_or(self.rate);
        self.learn(received / 1e3);
        // The estimate is never raised by a decrease.
        self.rate = self.bounds.of((BETA * received).min(self.rate));
        (self.decreased, self.updated) = (Some(now), Some(now));
    }

    /// R_hat at a decrease, in kbit/s.
    fn learn(&mut self, received: f64) {
        let before = *self.average.get_or_insert(received);
        let average = SMOOTHING * before + (1.0 - SMOOTHING) * received;
        let square = (average - received) * (average - received) / average.max(1.0);
        let (least, most) = VARIANCE_RANGE;
        let variance = SMOOTHING * self.variance + (1.0 - SMOOTHING) * square;
        (self.average, self.variance) = (Some(average), variance.clamp(least, most));
    }

    fn increase(&mut self, received: Option<f64>, since: Span, response: Span) {
        let seconds = since.as_secs_f64();
        let near = match (self.average, received) {
            (Some(average), Some(received)) => {
                let distance = received / 1e3 - average;
                let three = 3.0 * sqrt(self.variance * average);
                if distance > three {
                    self.average = None;
                }
                distance.abs() <= three
            }
            _ => false,
        };
        let raised = if near {
            let bits_per_frame = self.rate / FRAMES;
            let packets = (bits_per_frame / PACKET_BITS).ceil().max(1.0);
            let share = 0.5 * (seconds / response.as_secs_f64()).min(1.0);
            self.rate + (share * bits_per_frame / packets).max(LEAST_INCREASE)
        } else {
            self.rate * exp(log(ETA) * seconds.min(1.0))
        };
        // The limit keeps the estimate where it is, and does not reduce it.
        let most = received.map_or(f64::INFINITY, |received| MOST_OF_RECEIVED * received);
        self.rate = self.bounds.of(raised.min(most).max(self.rate));
    }
}

/// The rate control by loss, As_hat (6).
#[derive(Clone, Debug)]
pub struct LossBased {
    /// As_hat in bit/s.
    pub rate: f64,
    bounds: Bounds,
}

impl LossBased {
    /// A control that begins with this rate.
    pub fn new(rate: f64, bounds: Bounds) -> Self {
        Self { rate, bounds }
    }

    /// A report, in whose time the share `loss` was lost, brings the estimate by delay.
    pub fn update(&mut self, loss: f64, by_delay: f64) {
        let rate = if loss > MUCH_LOSS {
            self.rate * (1.0 - 0.5 * loss)
        } else if loss < LITTLE_LOSS {
            self.rate * LOSS_INCREASE
        } else {
            self.rate
        };
        self.rate = self.bounds.of(rate.min(by_delay));
    }
}

/// A group of packets (5.2).
#[derive(Clone, Copy, Debug)]
struct Group {
    /// When its first and its last packet left, in ms.
    first: f64,
    sent: f64,
    /// When its last packet arrived, in ms.
    arrived: f64,
}

/// The rate at which bits have arrived in the latest window, R_hat.
#[derive(Clone, Debug, Default)]
struct ReceivedRate {
    packets: VecDeque<(Time, f64)>,
    bits: f64,
    since: Option<Time>,
}

impl ReceivedRate {
    fn add(&mut self, bits: f64, now: Time) {
        self.since.get_or_insert(now);
        self.packets.push_back((now, bits));
        self.bits += bits;
        let old = |at: Time| now.saturating_since(at) >= RATE_WINDOW;
        while let Some(&(_, bits)) = self.packets.front().filter(|(at, _)| old(*at)) {
            self.packets.pop_front();
            self.bits -= bits;
        }
    }

    /// In bit/s; `None` in the first window.
    fn get(&self, now: Time) -> Option<f64> {
        let since = now.saturating_since(self.since?);
        (since >= RATE_WINDOW).then(|| self.bits / RATE_WINDOW.as_secs_f64())
    }
}

/// The receiver's part.
#[derive(Clone, Debug)]
pub struct GccReceiver {
    group: Option<Group>,
    before: Option<Group>,
    filter: ArrivalFilter,
    detector: OveruseDetector,
    received: ReceivedRate,
    control: DelayBased,
    reported: f64,
}

impl GccReceiver {
    /// A receiver whose estimate begins with this rate, in bit/s.
    pub fn new(rate: f64, bounds: Bounds) -> Self {
        Self {
            group: None,
            before: None,
            filter: ArrivalFilter::default(),
            detector: OveruseDetector::default(),
            received: ReceivedRate::default(),
            control: DelayBased::new(rate, bounds),
            reported: rate,
        }
    }

    /// A packet of `size` bytes arrives. `round_trip` is what the sender knows of it, zero if nothing.
    pub fn receive(&mut self, sent: Time, size: u32, round_trip: Span, now: Time) {
        self.received.add(8.0 * f64::from(size), now);
        let signal = match self.arrive(milliseconds(sent), milliseconds(now)) {
            Some((d, gap, at)) => {
                let estimate = self.filter.update(d, gap);
                self.detector.detect(estimate, gap, at)
            }
            None => self.detector.signal,
        };
        let round_trip = match round_trip {
            Span::ZERO => DEFAULT_ROUND_TRIP,
            known => known,
        };
        let received = self.received.get(now);
        self.control.update(signal, received, round_trip, now);
    }

    /// A packet joins the group (5.2), or begins the next one. Then the group that is complete has the
    /// delay variation d (5.1), left so long after the one before it, and arrived at this time.
    fn arrive(&mut self, sent: f64, arrived: f64) -> Option<(f64, f64, f64)> {
        let new = Group {
            first: sent,
            sent,
            arrived,
        };
        let Some(group) = &mut self.group else {
            self.group = Some(new);
            return None;
        };
        if sent < group.sent {
            return None; // out of order (5.1)
        }
        let gap = arrived - group.arrived;
        let in_burst = gap < BURST_MS && gap - (sent - group.sent) < 0.0;
        if sent - group.first <= BURST_MS || in_burst {
            (group.sent, group.arrived) = (sent, arrived);
            return None;
        }
        let complete = *group;
        self.group = Some(new);
        let before = self.before.replace(complete)?;
        let gap = complete.sent - before.sent;
        let d = complete.arrived - before.arrived - gap;
        Some((d, gap, complete.arrived))
    }

    /// A_hat in bit/s.
    pub fn rate(&self) -> f64 {
        self.control.rate
    }

    /// Whether the estimate has fallen so far that a report is due at once (section 3).
    pub fn must_report(&self) -> bool {
        self.control.rate < REPORT_AT_ONCE * self.reported
    }

    /// The estimate is reported.
    pub fn report(&mut self) -> f64 {
        self.reported = self.control.rate;
        self.reported
    }
}

/// The sender's part.
#[derive(Clone, Debug)]
pub struct GccSender {
    control: LossBased,
    by_delay: f64,
    /// Highest number and count of packets in the latest report.
    before: Option<(u32, u32)>,
    round_trip: Span,
    /// When the packets were sent that are not reported yet.
    sent: VecDeque<(u32, Time)>,
}

impl GccSender {
    /// A sender that begins with this rate, in bit/s.
    pub fn new(rate: f64, bounds: Bounds) -> Self {
        Self {
            control: LossBased::new(rate, bounds),
            by_delay: rate,
            before: None,
            round_trip: Span::ZERO,
            sent: VecDeque::new(),
        }
    }

    /// The rate at which to send, in bit/s: the lower of the two estimates (6).
    pub fn target(&self) -> f64 {
        self.control.rate.min(self.by_delay)
    }

    /// The round-trip time; zero before the first report.
    pub fn round_trip(&self) -> Span {
        self.round_trip
    }

    /// Packet `sequence` is sent.
    pub fn sent(&mut self, sequence: u32, now: Time) {
        self.sent.push_back((sequence, now));
    }

    /// A report that left its host at `left` arrives.
    pub fn report(&mut self, report: &Report, left: Time, now: Time) {
        let (highest, received) = match self.before {
            Some((highest, _)) if report.highest <= highest => return,
            Some((highest, received)) => (report.highest - highest, report.received - received),
            None => (report.highest + 1, report.received),
        };
        self.before = Some((report.highest, report.received));
        while let Some(&(sequence, at)) = self.sent.front().filter(|it| it.0 <= report.highest) {
            self.sent.pop_front();
            if sequence == report.highest {
                let held = left.saturating_since(report.arrived);
                self.round_trip = now.saturating_since(at).saturating_sub(held);
            }
        }
        self.by_delay = report.rate as f64;
        let loss = 1.0 - f64::from(received) / f64::from(highest);
        self.control.update(loss.max(0.0), self.by_delay);
    }
}
