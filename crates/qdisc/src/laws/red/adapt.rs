//! Schemes that change RED's parameters while it runs.
//!
//! Each scheme acts at an arrival, after the update of the average and before the law decides, as ns-2's
//! estimator does.
//!
//! **AIMD of max_p** ([`Aimd`]): S. Floyd, R. Gummadi, S. Shenker, "Adaptive RED: An
//! Algorithm for Increasing the Robustness of RED's Active Queue Management", 2001; the
//! automatic settings from there and from ns-2.35's red.cc.
//!
//! ```text
//! every interval:
//!   avg > max_th - 0.4 (max_th - min_th) and max_p <= top:     max_p <- max_p + min(alpha, max_p / 4)
//!   avg < min_th + 0.4 (max_th - min_th) and max_p >= bottom:  max_p <- beta max_p
//! w_q    = 1 - exp(-1 / C)
//! min_th = max(5 packets, target_delay C / 2)
//! max_th = 3 min_th
//! bottom = min(0.01, 1 / W)
//! ```
//!
//! **Crossings** ([`Crossings`]): W. Feng, D. Kandlur, D. Saha, K. Shin, "A Self-Configuring
//! RED Gateway", INFOCOM 1999.
//!
//! ```text
//! at every arrival:
//!   min_th < avg < max_th:                state <- between
//!   avg < min_th and state is not below:  state <- below, max_p <- max_p / alpha
//!   avg > max_th and state is not above:  state <- above, max_p <- max_p beta
//! ```
//!
//! **Moving thresholds** ([`MovingThresholds`]): J.-S. Jou and J. Baras, "A Parallel Virtual
//! Queue Structure for Active Queue Management", CSHCN TR 2003-4, section V. The paper
//! gives neither interval nor gamma nor the weight of its average.
//!
//! ```text
//! at every arrival:   P <- (1 - w_p) P + w_p [the law chose this packet]
//! every interval:
//!   P > p_upper:  min_th <- min_th (1 + gamma),  max_th <- min_th + D
//!   P < p_lower:  min_th <- min_th (1 - gamma),  max_th <- min_th + D
//! ```
//!
//! | symbol | meaning | unit |
//! |---|---|---|
//! | avg, min_th, max_th, max_p, w_q | as in [`super`] | |
//! | alpha, beta | step up and factor down; divisor and factor | 1 |
//! | top, bottom | bounds within which max_p is adapted | 1 |
//! | C | the link's rate | mean packets/s |
//! | W | the link's rate times 0.1 s | packets of 1000 B |
//! | P | share of arrivals that the law chooses | 1 |
//! | D | max_th - min_th, constant | as the thresholds |
//! | gamma | relative step of min_th | 1 |

use redtail_core::{Bytes, Rate, Span, Time, metrics};

use super::{RedDecision, RedLaw};
use crate::Report;
use crate::signal::Ticks;

/// A scheme that changes a law's parameters while it runs.
pub trait Adaptation {
    /// Called at each arrival, between the average and the decision.
    fn adapt(&mut self, law: &mut RedLaw, now: Time);

    /// Called with the decision about the arrival.
    #[inline]
    fn decided(&mut self, _decision: RedDecision) {}

    /// Reports the present parameters, by name, in the unit of the law.
    fn report(&self, _law: &RedLaw, _report: &mut Report<'_>) {}
}

metrics! {
    /// The metrics of schemes that change max_p.
    pub const OF_MAX_P of Queue;

    /// RED's `max_p` at the end of the run.
    MAX_P = "max_p", Ratio, "max_p at the end", "max_p";
}

metrics! {
    /// The metrics of [`MovingThresholds`].
    pub const OF_THRESHOLDS of Queue;

    /// RED's `min_th` at the end of the run, in packets or bytes as the thresholds are given.
    MIN_TH = "min_th", AsGiven, "min_th at the end", "min_th";
    /// Averaged share of the arrivals that were chosen for a drop or mark, at the end of the run.
    CHOSEN = "chosen", Ratio, "Share of chosen arrivals at the end", "chosen";
}

/// The scheme that changes no parameters.
#[derive(Clone, Copy, Debug)]
pub struct Fixed;

impl Adaptation for Fixed {
    #[inline]
    fn adapt(&mut self, _law: &mut RedLaw, _now: Time) {}
}

/// Additive increase and multiplicative decrease of max_p (Floyd, Gummadi, Shenker 2001).
#[derive(Clone, Debug)]
pub struct Aimd {
    /// The step by which max_p rises; at most a quarter of max_p is added.
    alpha: f64,
    beta: f64,
    bottom: f64,
    top: f64,
    /// None if max_p stays.
    ticks: Option<Ticks>,
}

impl Aimd {
    /// The distance between a threshold and the target range, as a share of max_th - min_th.
    const OUTSIDE: f64 = 0.4;

    /// A scheme that raises max_p by `alpha` or multiplies it by `beta` every `interval`, while max_p is
    /// between `bottom` and `top`.
    pub fn new(alpha: f64, beta: f64, bottom: f64, top: f64, interval: Span) -> Self {
        Self {
            alpha,
            beta,
            bottom,
            top,
            ticks: Some(Ticks::every(interval)),
        }
    }

    /// The scheme that never changes max_p.
    #[must_use]
    pub fn stopped(self) -> Self {
        Self {
            ticks: None,
            ..self
        }
    }
}

impl Adaptation for Aimd {
    #[inline]
    fn adapt(&mut self, law: &mut RedLaw, now: Time) {
        // The average changes at arrivals only: all ticks during an idle time count as one.
        let Some(ticks) = &mut self.ticks else {
            return;
        };
        if ticks.due(now).is_none() {
            return;
        }
        ticks.skip(now);
        let config = law.config();
        let (max_p, average) = (config.max_p, law.average());
        let outside = Self::OUTSIDE * (config.max_th - config.min_th);
        if average > config.max_th - outside {
            if max_p <= self.top {
                law.set_max_p((max_p + self.alpha.min(max_p / 4.0)).min(1.0));
            }
        } else if average < config.min_th + outside && max_p >= self.bottom {
            law.set_max_p(max_p * self.beta);
        }
    }

    fn report(&self, law: &RedLaw, report: &mut Report<'_>) {
        report.tell(MAX_P, law.config().max_p);
    }
}

/// Returns a link's rate in packets of this size per second.
fn packets_per_second(rate: Rate, packet: Bytes) -> f64 {
    rate.as_bps() as f64 / packet.bits() as f64
}

/// Returns the automatic weight of a sample: its time constant is the packets of one second (Floyd,
/// Gummadi, Shenker 2001).
pub fn automatic_w_q(rate: Rate, mean_packet: Bytes) -> f64 {
    -libm::expm1(-1.0 / packets_per_second(rate, mean_packet))
}

/// Returns the automatic min_th in packets. With max_th three times as large, the middle between the
/// thresholds is a delay of `target_delay`. It is at least 5 packets (ns-2.35, red.cc).
pub fn automatic_min_th(rate: Rate, mean_packet: Bytes, target_delay: Span) -> f64 {
    let target = target_delay.as_secs_f64() * packets_per_second(rate, mean_packet);
    (target / 2.0).max(5.0)
}

/// Returns the automatic lower bound of max_p: one drop in 100 ms of packets of 1000 B, and at most 0.01
/// (ns-2.35, red.cc).
pub fn automatic_bottom(rate: Rate) -> f64 {
    0.01f64.min(10.0 / packets_per_second(rate, Bytes::new(1000)))
}

/// A change of max_p when the average leaves the range between the thresholds (Feng, Kandlur, Saha, Shin
/// 1999).
#[derive(Clone, Debug)]
pub struct Crossings {
    alpha: f64,
    beta: f64,
    state: Place,
}

/// The latest position of the average strictly below, between or above the thresholds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Below,
    Between,
    Above,
}

impl Crossings {
    /// A scheme that divides max_p by `alpha` or multiplies it by `beta`. The average starts at 0, below
    /// the thresholds, which is no crossing.
    pub fn new(alpha: f64, beta: f64) -> Self {
        Self {
            alpha,
            beta,
            state: Place::Below,
        }
    }
}

impl Adaptation for Crossings {
    #[inline]
    fn adapt(&mut self, law: &mut RedLaw, _now: Time) {
        let config = law.config();
        let (max_p, average) = (config.max_p, law.average());
        // An average exactly at a threshold does not change the state.
        if config.min_th < average && average < config.max_th {
            self.state = Place::Between;
        } else if average < config.min_th && self.state != Place::Below {
            self.state = Place::Below;
            law.set_max_p(max_p / self.alpha);
        } else if average > config.max_th && self.state != Place::Above {
            self.state = Place::Above;
            law.set_max_p((max_p * self.beta).min(1.0));
        }
    }

    fn report(&self, law: &RedLaw, report: &mut Report<'_>) {
        report.tell(MAX_P, law.config().max_p);
    }
}

/// The parameters of [`MovingThresholds`].
#[derive(Clone, Copy, Debug)]
pub struct ThresholdConfig {
    /// Relative step of min_th.
    pub gamma: f64,
    /// Share of chosen packets below which the thresholds fall.
    pub p_lower: f64,
    /// Share of chosen packets above which the thresholds rise.
    pub p_upper: f64,
    /// Weight of one arrival in the share of chosen packets.
    pub w_p: f64,
    /// Time between two steps of the thresholds.
    pub interval: Span,
    /// The smallest min_th.
    pub lowest: f64,
    /// The largest min_th.
    pub highest: f64,
    /// The difference max_th - min_th, which is constant.
    pub distance: f64,
    /// Whether the gentle slope ends at twice the present max_th.
    pub end_moves: bool,
}

/// Thresholds that move to keep the share of chosen packets within bounds (Jou and Baras 2003).
#[derive(Clone, Debug)]
pub struct MovingThresholds {
    config: ThresholdConfig,
    /// The average share P of arrivals that the law chose.
    chosen: f64,
    ticks: Ticks,
}

impl MovingThresholds {
    /// A scheme whose share of chosen packets starts at 0.
    pub fn new(config: ThresholdConfig) -> Self {
        Self {
            chosen: 0.0,
            ticks: Ticks::every(config.interval),
            config,
        }
    }

    /// Returns P, the average share of arrivals that the law chose.
    pub fn chosen(&self) -> f64 {
        self.chosen
    }
}

impl Adaptation for MovingThresholds {
    #[inline]
    fn adapt(&mut self, law: &mut RedLaw, now: Time) {
        // The share changes at arrivals only: all ticks during an idle time count as one.
        if self.ticks.due(now).is_none() {
            return;
        }
        self.ticks.skip(now);
        let config = &self.config;
        let factor = if self.chosen > config.p_upper {
            1.0 + config.gamma
        } else if self.chosen < config.p_lower {
            1.0 - config.gamma
        } else {
            return;
        };
        let before = law.config();
        let min_th = (before.min_th * factor).clamp(config.lowest, config.highest);
        let max_th = min_th + config.distance;
        let end = before.gentle_end;
        let end = end.map(|end| if config.end_moves { 2.0 * max_th } else { end });
        law.set_thresholds(min_th, max_th, end);
    }

    #[inline]
    fn decided(&mut self, decision: RedDecision) {
        let sample = f64::from(u8::from(decision != RedDecision::Pass));
        self.chosen += self.config.w_p * (sample - self.chosen);
    }

    fn report(&self, law: &RedLaw, report: &mut Report<'_>) {
        report.tell(MIN_TH, law.config().min_th);
        report.tell(CHOSEN, self.chosen);
    }
}
