//! PIE, the law: a queueing delay becomes pass or drop. PIE and FQ-PIE consult it.
//!
//! Source: R. Pan, P. Natarajan, F. Baker and G. White, "Proportional Integral Controller
//! Enhanced (PIE)", RFC 8033, sections 4 and 5 and appendices A and B; where it does otherwise,
//! Linux (net/sched/sch_pie.c as of 6.1) is the second flavour.
//!
//! | symbol | meaning | unit |
//! |---|---|---|
//! | d, d_old | queueing delay at this update and at the one before | s |
//! | target | its reference (QDELAY_REF) | s |
//! | p | drop probability | 1 |
//! | alpha, beta | integral and proportional gain | 1/s |
//! | T | time between updates (T_UPDATE) | s |
//! | accu | p summed since the last drop (accu_prob) | 1 |
//! | burst | what is left of the burst allowance | s |
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
//! **The decay** is in RFC 8033 twice, and differently: section 4.2 has it while the delay was
//! 0 at two updates, appendix A while it was below half the target. [`Decay`] offers both. The
//! first is the default: the section is the text that the appendix illustrates, and Linux
//! (`pie_calculate_probability`) does so.
//!
//! **The delay** is either that of the packet that left last (timestamps), 0 if it left
//! nothing behind, or the backlog over an estimate of the departure rate (section 5.2,
//! appendix B): the time for 16 KB to leave, measured while at least as much waits, and
//! averaged with weight 1/4 (Linux averages the rate, with weight 1/8).

use redtail_core::schemars::JsonSchema;
use redtail_core::serde::{Deserialize, Serialize};
use redtail_core::{Bytes, Span, Time, schemars, serde};

use super::pi::{PiConfig, PiLaw};

/// Whose details PIE follows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(crate = "serde", rename_all = "kebab-case")]
#[schemars(crate = "schemars")]
pub enum Flavour {
    /// RFC 8033.
    #[default]
    Rfc,
    /// Linux (`sch_pie`).
    Linux,
}

/// While which delays the probability decays, beside what the controller does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(crate = "serde", rename_all = "kebab-case")]
#[schemars(crate = "schemars")]
pub enum Decay {
    /// No delay at two updates in a row (RFC 8033, section 4.2; Linux).
    #[default]
    NoDelay,
    /// Less than half the target at two updates in a row (RFC 8033, appendix A).
    HalfTarget,
}

/// How the queueing delay is found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(crate = "serde", rename_all = "kebab-case")]
#[schemars(crate = "schemars")]
pub enum Delay {
    /// The time the packet that left last has waited.
    #[default]
    Timestamps,
    /// The backlog over the estimated departure rate.
    DepartureRate,
}

/// What the law is told once.
#[derive(Clone, Copy, Debug)]
pub struct PieConfig {
    /// Delay to hold.
    pub target: Span,
    /// Time between updates.
    pub interval: Span,
    /// Integral gain, 1/s.
    pub alpha: f64,
    /// Proportional gain, 1/s.
    pub beta: f64,
    /// Burst that passes after a quiet time.
    pub max_burst: Span,
    /// Size of a typical packet: two of them are always let wait.
    pub mean_packet: Bytes,
    /// Whether drops are kept apart and from staying away for long.
    pub derandomize: bool,
    /// How the delay is found.
    pub delay: Delay,
    /// When the probability decays.
    pub decay: Decay,
    /// Whose details.
    pub flavour: Flavour,
}

/// The law's decision about one arriving packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PieDecision {
    /// Let it in.
    Pass,
    /// Drop or mark it.
    Early,
}

/// So many bytes must wait, and leave, for one sample of the rate (DQ_THRESHOLD, appendix B;
/// QUEUE_THRESHOLD of Linux).
const RATE_SAMPLE: u64 = 1 << 14;

/// Linux keeps p in 64 bits, of which 2^56 are 1 (MAX_PROB), and sets it to 1 where they wrap.
const LINUX_WRAPS: f64 = 256.0;

/// The average time for a byte to leave, with one more sample: the RFC averages times, with
/// weight DQ_THRESHOLD / 2^16 (appendix B), Linux rates, with weight 1/8.
fn averaged(flavour: Flavour, average: f64, sample: f64) -> f64 {
    match flavour {
        Flavour::Rfc => average + 0.25 * (sample - average),
        Flavour::Linux => 1.0 / (1.0 / average + 0.125 * (1.0 / sample - 1.0 / average)),
    }
}

/// What has left since a measurement of the departure rate began.
#[derive(Clone, Copy, Debug)]
struct Measurement {
    since: Time,
    bytes: u64,
}

/// The law with its state.
#[derive(Clone, Debug)]
pub struct PieLaw {
    config: PieConfig,
    /// p, and d of the latest update as its x.
    pi: PiLaw,
    /// d_old of the latest update, s.
    older: f64,
    accumulated: f64,
    burst: Span,
    /// What the packet that left last has waited, s; 0 if it left nothing behind.
    sojourn: f64,
    last_departure: Option<Time>,
    measurement: Option<Measurement>,
    /// Average time for a byte to leave, s; `None` before the first sample.
    byte_time: Option<f64>,
}

impl PieLaw {
    /// A law at rest, with its whole burst allowance.
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

    /// p.
    #[inline]
    pub fn probability(&self) -> f64 {
        self.pi.probability()
    }

    /// The delay of the latest update, s.
    pub fn delay(&self) -> f64 {
        self.pi.old()
    }

    /// What is left of the burst allowance.
    pub fn burst(&self) -> Span {
        self.burst
    }

    /// Decides about an arrival that finds `backlog` bytes. `relative_size`: of the packet
    /// over a full one where small packets are to be dropped less often. `draw` gives a
    /// number uniform on [0, 1); it is called only where chance decides.
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

    /// A packet was dropped, by this law or for want of room.
    #[inline]
    pub fn on_drop(&mut self) {
        self.accumulated = 0.0;
    }

    /// A packet of `size` leaves, after having waited for `sojourn`; `backlog` bytes stay.
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

    /// Linux lets the burst allowance run out with what leaves.
    fn spend(&mut self, gap: Option<Span>) {
        if self.config.flavour == Flavour::Linux
            && let Some(gap) = gap
        {
            self.burst = self.burst.saturating_sub(gap);
        }
    }

    /// Appendix B: a measurement begins when enough waits and ends when as much has left.
    fn measure(&mut self, size: Bytes, backlog: u64, now: Time) {
        let begin = Measurement {
            since: now,
            bytes: 0,
        };
        if self.measurement.is_none() && backlog >= RATE_SAMPLE {
            self.measurement = Some(begin);
            // Its own departure begins the interval; Linux counts it all the same.
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

    /// Counts what leaves; the sum, while a measurement is going on.
    fn count(&mut self, size: Bytes) -> Option<u64> {
        let measurement = self.measurement.as_mut()?;
        measurement.bytes += size.as_u64();
        Some(measurement.bytes)
    }

    /// The delay that an arrival sees in Linux.
    fn sample_now(&self) -> f64 {
        match self.config.delay {
            Delay::Timestamps => self.sojourn,
            Delay::DepartureRate => self.pi.old(),
        }
    }

    /// One update, `interval` after the one before, with `backlog` bytes waiting.
    pub fn update(&mut self, backlog: u64) {
        let linux = self.config.flavour == Flavour::Linux;
        let delay = match self.config.delay {
            // Nothing waits: nobody who came now would.
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

    /// Linux begins anew after a quiet time.
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

/// Up to this sum of probabilities since the last drop there is none (section 5.4).
pub(super) const PROB_LOW: f64 = 0.85;
/// From this sum on the next packet is dropped (section 5.4).
pub(super) const PROB_HIGH: f64 = 8.5;

/// Section 5.4: drops are kept apart, and from staying away for long. `accumulated` is the sum
/// of the probabilities of the packets since the last drop, this one's `p` included.
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

/// Section 4.2: what the change is multiplied by, by the present p.
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
