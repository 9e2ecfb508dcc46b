//! The control law of PIE: it decides from the queueing delay whether a packet is dropped. PIE and FQ-PIE
//! use it.
//!
//! Source: R. Pan, P. Natarajan, F. Baker and G. White, "Proportional Integral Controller
//! Enhanced (PIE)", RFC 8033, sections 4 and 5 and appendices A and B. The second flavour is Linux
//! (net/sched/sch_pie.c as of 6.1), where it differs from the RFC.
//!
//! | symbol | meaning | unit |
//! |---|---|---|
//! | d, d_old | queueing delay at this update and at the one before | s |
//! | target | reference of the delay (QDELAY_REF) | s |
//! | p | drop probability | 1 |
//! | alpha, beta | integral and proportional gain | 1/s |
//! | T | time between updates (T_UPDATE) | s |
//! | accu | p summed since the last drop (accu_prob) | 1 |
//! | burst | remaining burst allowance | s |
//!
//! ```text
//! every T:
//!   change = alpha (d - target) + beta (d - d_old)
//!   divided by 2048, 512, 128, 32, 8, 2 while p < 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1
//!   at most 0.02 when p >= 0.1;  Linux: 0.02 more when d > 250 ms
//!   p <- p + change within [0, 1]   (Linux: at least 0, and 1 from 256 on)
//!   p <- 0.98 p when d and d_old are 0, or below target / 2   (Linux: 63/64 p, at 0)
//!   burst <- max(0, burst - T);  burst <- its maximum when p = 0 and d and d_old are
//!                                below target / 2
//! at an arrival: pass while burst > 0; while the delay is below target / 2 and p < 0.2;
//!   and while no more than two packets wait. Else, when not derandomised, drop with p;
//!   when derandomised (section 5.4) accu <- accu + p, pass while accu < 0.85, drop from
//!   accu >= 8.5 on, and with p in between; a drop by chance clears accu.
//! ```
//!
//! | | RFC 8033 | Linux |
//! |---|---|---|
//! | delay that spares an arrival below target / 2 | d of the latest update | the latest sample |
//! | two packets spare an arrival | two or fewer | fewer than two |
//! | burst allowance runs out | by T at each update | by the time between departures |
//! | delay above 250 ms | as any | p + 0.02 at each update |
//! | delay 0 with a backlog | p decays | p keeps |
//! | p above 1 | never | until its 64 bits wrap, at 256, where it becomes 1 |
//!
//! **The decay** has two forms in RFC 8033: in section 4.2 it applies while the delay was 0 at two updates,
//! in appendix A while the delay was below half the target. [`Decay`] has both. The first is the default:
//! the section is the text that the appendix illustrates, and Linux (`pie_calculate_probability`) does the
//! same.
//!
//! **The delay** has two definitions. With timestamps it is the delay of the packet that left last, and 0
//! if the queue was then empty. Otherwise it is the backlog divided by an estimate of the departure rate
//! (section 5.2, appendix B): the time for 16 KB to leave is measured while at least 16 KB wait, and
//! averaged with weight 1/4 (Linux averages the rate, with weight 1/8).

use redtail_core::schemars::JsonSchema;
use redtail_core::serde::{Deserialize, Serialize};
use redtail_core::{Bytes, Span, Time, schemars, serde};

use super::pi::{PiConfig, PiLaw};

/// Which implementation's details of PIE apply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(crate = "serde", rename_all = "kebab-case")]
#[schemars(crate = "schemars")]
pub enum Flavour {
    /// RFC 8033.
    #[default]
    Rfc,
    /// Linux (`sch_pie`), where it differs from RFC 8033.
    Linux,
}

/// At which delays the probability decays, in addition to the change by the controller.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(crate = "serde", rename_all = "kebab-case")]
#[schemars(crate = "schemars")]
pub enum Decay {
    /// The delay is 0 at two consecutive updates (RFC 8033, section 4.2; Linux).
    #[default]
    NoDelay,
    /// The delay is less than half the target at two consecutive updates (RFC 8033, appendix A).
    HalfTarget,
}

/// How the queueing delay is determined.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(crate = "serde", rename_all = "kebab-case")]
#[schemars(crate = "schemars")]
pub enum Delay {
    /// The queueing delay of the packet that left last, from its timestamp.
    #[default]
    Timestamps,
    /// The backlog divided by the estimated departure rate.
    DepartureRate,
}

/// The law's parameters.
#[derive(Clone, Copy, Debug)]
pub struct PieConfig {
    /// The reference of the delay.
    pub target: Span,
    /// Time between updates.
    pub interval: Span,
    /// Integral gain, 1/s.
    pub alpha: f64,
    /// Proportional gain, 1/s.
    pub beta: f64,
    /// Burst that passes after a time without congestion.
    pub max_burst: Span,
    /// Size of a typical packet: no packet is dropped while no more than two of this size wait.
    pub mean_packet: Bytes,
    /// Whether drops are derandomized (section 5.4).
    pub derandomize: bool,
    /// How the queueing delay is determined.
    pub delay: Delay,
    /// When the probability decays.
    pub decay: Decay,
    /// Which implementation's details apply.
    pub flavour: Flavour,
}

/// The law's decision about one arriving packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PieDecision {
    /// The packet is queued.
    Pass,
    /// The packet is dropped or marked.
    Early,
}

/// The number of bytes that must wait, and leave, for one sample of the departure rate (DQ_THRESHOLD,
/// appendix B; QUEUE_THRESHOLD of Linux).
const RATE_SAMPLE: u64 = 1 << 14;

/// The probability at which Linux's 64 bits wrap: 2^56 of their units are 1 (MAX_PROB), and Linux sets p to
/// 1 when they wrap.
const LINUX_WRAPS: f64 = 256.0;

/// Returns the average time for a byte to leave, with one more sample. The RFC averages times, with weight
/// DQ_THRESHOLD / 2^16 (appendix B); Linux averages rates, with weight 1/8.
fn averaged(flavour: Flavour, average: f64, sample: f64) -> f64 {
    match flavour {
        Flavour::Rfc => average + 0.25 * (sample - average),
        Flavour::Linux => 1.0 / (1.0 / average + 0.125 * (1.0 / sample - 1.0 / average)),
    }
}

/// A measurement of the departure rate: the bytes that have left since its beginning.
#[derive(Clone, Copy, Debug)]
struct Measurement {
    since: Time,
    bytes: u64,
}

/// The law with its state.
///
/// ```
/// use redtail_core::{Bytes, Span, Time};
/// use redtail_qdisc::laws::pie::{Decay, Delay, Flavour, PieConfig, PieDecision, PieLaw};
///
/// let mut law = PieLaw::new(PieConfig {
///     target: Span::from_ms(15),
///     interval: Span::from_ms(15),
///     alpha: 0.125,
///     beta: 1.25,
///     max_burst: Span::ZERO,
///     mean_packet: Bytes::new(1500),
///     derandomize: false,
///     delay: Delay::Timestamps,
///     decay: Decay::NoDelay,
///     flavour: Flavour::Rfc,
/// });
/// // In each interval a packet leaves that has waited for 60 ms, and 30 kB stay.
/// let mut now = Time::ZERO;
/// while law.probability() < 0.1 {
///     now += Span::from_ms(15);
///     law.on_departure(Bytes::new(1500), Span::from_ms(60), 30_000, now);
///     law.update(30_000);
/// }
/// assert_eq!(law.delay(), 0.06);
/// assert_eq!(law.on_arrival(30_000, None, || 0.05), PieDecision::Early);
/// assert_eq!(law.on_arrival(30_000, None, || 0.95), PieDecision::Pass);
/// ```
#[derive(Clone, Debug)]
pub struct PieLaw {
    config: PieConfig,
    /// The controller, with p and with d of the latest update as x.
    pi: PiLaw,
    /// The delay d_old of the latest update, in seconds.
    older: f64,
    accumulated: f64,
    burst: Span,
    /// The delay of the packet that left last, in seconds; 0 if the queue was empty after it.
    sojourn: f64,
    last_departure: Option<Time>,
    measurement: Option<Measurement>,
    /// The average time for a byte to leave, in seconds; `None` before the first sample.
    byte_time: Option<f64>,
}

impl PieLaw {
    /// A law in its initial state, with its whole burst allowance.
    pub fn new(config: PieConfig) -> Self {
        Self {
            config,
            pi: PiLaw::new(PiConfig {
                reference: config.target.as_secs_f64(),
                integral: config.alpha,
                proportional: config.beta,
            }),
            older: 0.0,
            accumulated: 0.0,
            burst: config.max_burst,
            sojourn: 0.0,
            last_departure: None,
            measurement: None,
            byte_time: None,
        }
    }

    /// Returns the drop probability p.
    #[inline]
    pub fn probability(&self) -> f64 {
        self.pi.probability()
    }

    /// Returns the delay of the latest update, in seconds.
    pub fn delay(&self) -> f64 {
        self.pi.old()
    }

    /// Returns the remaining burst allowance.
    pub fn burst(&self) -> Span {
        self.burst
    }

    /// Decides about an arrival that finds `backlog` bytes. `relative_size` is the size of the packet
    /// divided by that of a full one, if small packets are to be dropped less often. `draw` returns a
    /// number uniform on [0, 1); it is called only for random decisions.
    #[inline]
    pub fn on_arrival(
        &mut self,
        backlog: u64,
        relative_size: Option<f64>,
        draw: impl FnOnce() -> f64,
    ) -> PieDecision {
        let linux = self.config.flavour == Flavour::Linux;
        let p = self.pi.probability();
        let two_packets = 2 * self.config.mean_packet.as_u64();
        let (delay, spared) = if linux {
            (self.sample_now(), backlog < two_packets)
        } else {
            (self.pi.old(), backlog <= two_packets)
        };
        if self.burst > Span::ZERO
            || (delay < self.config.target.as_secs_f64() / 2.0 && p < 0.2)
            || spared
        {
            return PieDecision::Pass;
        }
        let p = p * relative_size.unwrap_or(1.0);
        if !self.config.derandomize {
            return if p > 0.0 && draw() < p {
                PieDecision::Early
            } else {
                PieDecision::Pass
            };
        }
        if p == 0.0 {
            self.accumulated = 0.0;
        }
        self.accumulated += p;
        let decision = derandomised(self.accumulated, p, draw);
        if decision == PieDecision::Early && self.accumulated < PROB_HIGH {
            self.accumulated = 0.0;
        }
        decision
    }

    /// A packet was dropped, by this law or because the queue was full.
    #[inline]
    pub fn on_drop(&mut self) {
        self.accumulated = 0.0;
    }

    /// A packet of `size` leaves after a delay of `sojourn`; `backlog` bytes stay.
    #[inline]
    pub fn on_departure(&mut self, size: Bytes, sojourn: Span, backlog: u64, now: Time) {
        match self.config.delay {
            Delay::Timestamps => {
                self.sojourn = if backlog == 0 {
                    0.0
                } else {
                    sojourn.as_secs_f64()
                };
                let gap = self.last_departure.replace(now).map(|last| now - last);
                self.spend(gap);
            }
            Delay::DepartureRate => self.measure(size, backlog, now),
        }
    }

    /// Reduces the burst allowance by the time between departures, as Linux does.
    fn spend(&mut self, gap: Option<Span>) {
        if self.config.flavour == Flavour::Linux
            && let Some(gap) = gap
        {
            self.burst = self.burst.saturating_sub(gap);
        }
    }

    /// Measures the departure rate (appendix B): a measurement begins when DQ_THRESHOLD bytes wait and ends
    /// when as many have left.
    fn measure(&mut self, size: Bytes, backlog: u64, now: Time) {
        let begin = Measurement {
            since: now,
            bytes: 0,
        };
        if self.measurement.is_none() && backlog >= RATE_SAMPLE {
            self.measurement = Some(begin);
            // The departure of this packet begins the interval; Linux still counts the packet.
            if self.config.flavour == Flavour::Rfc {
                return;
            }
        }
        let Some(bytes) = self.count(size).filter(|&bytes| bytes >= RATE_SAMPLE) else {
            return;
        };
        let since = self
            .measurement
            .map_or(now, |measurement| measurement.since);
        let took = now - since;
        if took == Span::ZERO {
            return;
        }
        let sample = took.as_secs_f64() / bytes as f64;
        self.byte_time = Some(match self.byte_time {
            None => sample,
            Some(average) => averaged(self.config.flavour, average, sample),
        });
        self.measurement = (backlog >= RATE_SAMPLE).then_some(begin);
        self.spend(Some(took));
    }

    /// Counts bytes that leave. Returns the sum during a measurement.
    fn count(&mut self, size: Bytes) -> Option<u64> {
        let measurement = self.measurement.as_mut()?;
        measurement.bytes += size.as_u64();
        Some(measurement.bytes)
    }

    /// Returns the delay that Linux uses for the decision about an arrival.
    fn sample_now(&self) -> f64 {
        match self.config.delay {
            Delay::Timestamps => self.sojourn,
            Delay::DepartureRate => self.pi.old(),
        }
    }

    /// Makes one update, `interval` after the one before, with `backlog` bytes waiting.
    pub fn update(&mut self, backlog: u64) {
        let linux = self.config.flavour == Flavour::Linux;
        let delay = match self.config.delay {
            // The queue is empty: a packet that arrived now would not wait.
            Delay::Timestamps if backlog == 0 => 0.0,
            Delay::Timestamps => self.sojourn,
            Delay::DepartureRate => self.byte_time.unwrap_or(0.0) * backlog as f64,
        };
        let old = self.pi.old();
        let p = self.pi.probability();
        let mut change = self.pi.change(delay) * auto_tune(p);
        if p >= 0.1 {
            change = change.min(0.02);
        }
        if linux && delay > 0.25 {
            change += 0.02;
        }
        let most = if linux { LINUX_WRAPS } else { 1.0 };
        self.pi.take(delay, change, most);
        self.older = old;
        if linux && self.pi.probability() >= LINUX_WRAPS {
            self.pi.scale(1.0 / LINUX_WRAPS);
        }
        let half = self.config.target.as_secs_f64() / 2.0;
        let decays = match self.config.decay {
            Decay::NoDelay => delay == 0.0 && old == 0.0,
            Decay::HalfTarget => delay < half && old < half,
        };
        if decays && !linux {
            self.pi.scale(0.98);
        } else if decays && backlog == 0 {
            self.pi.scale(63.0 / 64.0);
        }
        let quiet = self.pi.probability() == 0.0 && delay < half && old < half;
        if !linux {
            self.burst = self.burst.saturating_sub(self.config.interval);
        }
        if quiet {
            self.burst = self.config.max_burst;
            if linux {
                self.forget();
            }
        }
    }

    /// Resets the law after a time without congestion, as Linux does.
    fn forget(&mut self) {
        if self.config.delay == Delay::DepartureRate && self.byte_time.is_none() {
            return;
        }
        self.accumulated = 0.0;
        self.measurement = None;
        self.byte_time = None;
        self.last_departure = None;
    }

    /// Whether further updates of an empty queue would change nothing.
    #[inline]
    pub fn rests(&self) -> bool {
        self.pi.rests_at(0.0) && self.older == 0.0 && self.burst == self.config.max_burst
    }
}

/// No packet is dropped while the sum of probabilities since the last drop is below this value (section
/// 5.4).
pub(super) const PROB_LOW: f64 = 0.85;
/// The next packet is dropped when the sum of probabilities since the last drop is this value or more
/// (section 5.4).
pub(super) const PROB_HIGH: f64 = 8.5;

/// Derandomizes drops (section 5.4): prevents drops that follow each other closely and long times without
/// drops. `accumulated` is the sum of the probabilities of the packets since the last drop, including `p`
/// of this one.
#[inline]
pub(super) fn derandomised(accumulated: f64, p: f64, draw: impl FnOnce() -> f64) -> PieDecision {
    if accumulated < PROB_LOW {
        PieDecision::Pass
    } else if accumulated >= PROB_HIGH || draw() < p {
        PieDecision::Early
    } else {
        PieDecision::Pass
    }
}

/// Returns the factor of the change of p, which depends on the present p (section 4.2).
pub(super) fn auto_tune(p: f64) -> f64 {
    const STEPS: [(f64, f64); 6] = [
        (1e-6, 2048.0),
        (1e-5, 512.0),
        (1e-4, 128.0),
        (1e-3, 32.0),
        (1e-2, 8.0),
        (1e-1, 2.0),
    ];
    let step = STEPS.iter().find(|(below, _)| p < *below);
    step.map_or(1.0, |(_, divisor)| 1.0 / divisor)
}
