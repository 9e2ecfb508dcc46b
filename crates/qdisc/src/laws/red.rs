//! The control law of Random Early Detection.
//!
//! Source: S. Floyd and V. Jacobson, "Random Early Detection Gateways for
//! Congestion Avoidance", IEEE/ACM Transactions on Networking 1(4), 1993,
//! section IV and figure 2; the "gentle" slope after Floyd's note of 2000;
//! the "wait" spacing, the extra step of the idle estimate and counting in
//! bytes after ns-2.
//!
//! | symbol | meaning | unit |
//! |---|---|---|
//! | q | backlog found by an arriving packet | packets or bytes, as the thresholds |
//! | avg | moving average of q | the same |
//! | w_q | weight of one sample | 1 |
//! | m | packets that could have left during an idle period | packets |
//! | p_b | drop probability before spacing | 1 |
//! | p_a | drop probability of this packet | 1 |
//! | count | packets since the last drop | packets (mean packets in byte mode) |
//!
//! ```text
//! avg <- (1 - w_q) avg + w_q q           at an arrival at a busy link
//! avg <- (1 - w_q)^(m+1) avg             at an arrival at an idle link
//! p_b  = max_p (avg - min_th) / (max_th - min_th)           min_th <= avg < max_th
//! p_b  = max_p + (1 - max_p) (avg - max_th) / (end - max_th)   gentle, max_th <= avg < end
//! p_a  = p_b / (1 - count p_b)           uniform: gaps uniform on 1..1/p_b
//! p_a  = 0 below count p_b = 1, then p_b / (2 - count p_b)
//!                                        wait: gaps uniform on 1/p_b..2/p_b
//! p_a  = p_b                             none: gaps geometric
//! chosen when count p_b >= u, with one u drawn after each choice   linux
//! ```
//!
//! While p_b is constant, `uniform` and `linux` give the same gaps, uniform on 1..1/p_b. While p_b changes,
//! the gaps differ: `uniform` uses the present p_b as if it had been constant since the last choice, and
//! decides about each packet at random; with `linux`, the gap depends only on the p_b of the packet with
//! which count p_b reaches u.
//!
//! # Flavours
//!
//! | | paper | ns-2 (red.cc, `enque`) |
//! |---|---|---|
//! | no more than one packet waits (one byte, with thresholds in bytes) | no special rule | as below min_th |
//! | the buffer overflows | no effect on the law | count starts again from 0 |
//! | count in `uniform` | packets that passed | packets that passed and the present one |
//! | gentle slope, if max_p changes (Adaptive RED) | from the present max_p | from the initial max_p |
//!
//! The paper says nothing about the first two. Its text counts the packets since the last choice; its
//! figure 2 counts one more, as ns-2 does.
//!
//! `linux` is `paper` with the integers of the kernel (`include/net/red.h`), which shows when the average counts
//! packets, as in CHOKe. The average is a multiple of w_q there, but its step and p_b use its whole part:
//!
//! ```text
//! avg <- avg + w_q (q - floor(avg))
//! p_b  = max_p floor(avg - min_th) / (max_th - min_th)      min_th < avg <= max_th
//! ```
//!
//! So the average does not fall while q is its whole part.
//!
//! [`adapt`] has the schemes that change max_p or the thresholds during a run, [`ziegler`] a model that
//! computes all parameters before the run.

pub mod adapt;
pub mod ziegler;

use redtail_core::schemars::JsonSchema;
use redtail_core::serde::{Deserialize, Serialize};
use redtail_core::{schemars, serde};

/// How early drops are spaced among the arrivals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(crate = "serde", rename_all = "kebab-case")]
#[schemars(crate = "schemars")]
pub enum Spacing {
    /// p/(1 - count p): gaps between drops uniform on 1..1/p (Floyd and Jacobson 1993, method 2).
    Uniform,
    /// No drop before count p = 1, then p/(2 - count p): gaps uniform on 1/p..2/p (ns-2's `wait_`).
    Wait,
    /// Independent decisions for each packet: geometric gaps (Floyd and Jacobson 1993, method 1).
    None,
    /// One random number u for each gap: the first packet with count p >= u (Linux, `red_action`, `red_mark_probability`).
    Linux,
}

/// Which implementation's details of RED apply where the paper specifies none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(crate = "serde", rename_all = "kebab-case")]
#[schemars(crate = "schemars")]
pub enum Flavour {
    /// Floyd and Jacobson 1993.
    #[default]
    Paper,
    /// ns-2.35, red.cc: no early drop while no more than one packet waits, and an overflow resets the count to 0.
    #[serde(rename = "ns-2")]
    Ns2,
    /// Linux, `include/net/red.h`: the average moves, and the probability grows, by its whole packets or bytes.
    Linux,
}

/// The law's parameters.
#[derive(Clone, Copy, Debug)]
pub struct RedConfig {
    /// Threshold below which nothing is dropped; packets or bytes.
    pub min_th: f64,
    /// Threshold at which the probability reaches `max_p`; the same unit.
    pub max_th: f64,
    /// Probability at `max_th`.
    pub max_p: f64,
    /// Weight of one sample in the average.
    pub w_q: f64,
    /// Average at which a gentle slope reaches probability 1; `None` drops
    /// everything from `max_th` on.
    pub gentle_end: Option<f64>,
    /// How drops are spaced.
    pub spacing: Spacing,
    /// Which implementation's details apply.
    pub flavour: Flavour,
}

/// The law's decision about one arriving packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RedDecision {
    /// The packet is queued.
    Pass,
    /// The packet is dropped or marked: the random decision chose it.
    Early,
    /// The packet is dropped, or marked if so configured: the average is at the slope's end or above.
    Forced,
}

/// The state of the queue at the arrival of a packet.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// Backlog that the packet found, in the unit of the thresholds.
    pub backlog: f64,
    /// `Some(m)` if the link was idle; it could have sent m packets in this time.
    pub idle: Option<u64>,
    /// `Some(size / mean size)` in byte mode, where larger packets are dropped
    /// in proportion to their size.
    pub relative_size: Option<f64>,
}

/// The law with its state: a moving average and a count since the last drop.
///
/// ```
/// use redtail_qdisc::laws::red::{Arrival, Flavour, RedConfig, RedDecision, RedLaw, Spacing};
///
/// let mut law = RedLaw::new(RedConfig {
///     min_th: 5.0,
///     max_th: 15.0,
///     max_p: 0.1,
///     w_q: 0.5,
///     gentle_end: None,
///     spacing: Spacing::Uniform,
///     flavour: Flavour::Paper,
/// });
/// // Each arrival finds 20 packets: the average is 10, 15, ...
/// let arrival = Arrival { backlog: 20.0, idle: None, relative_size: None };
/// assert_eq!(law.on_arrival(arrival, || 0.99), RedDecision::Pass);
/// assert_eq!(law.average(), 10.0);
/// assert_eq!(law.on_arrival(arrival, || 0.99), RedDecision::Forced);
/// ```
#[derive(Clone, Debug)]
pub struct RedLaw {
    config: RedConfig,
    average: f64,
    /// Backlog that the latest arrival found.
    found: f64,
    /// Packets (mean packets in byte mode) passed since the last drop; `None` while
    /// the average is below min_th.
    count: Option<f64>,
    probability: f64,
    /// The initial max_p.
    first_max_p: f64,
    /// The random number u of the present gap.
    chance: f64,
}

impl RedLaw {
    /// A law in its initial state: average 0.
    pub fn new(config: RedConfig) -> Self {
        Self {
            config,
            average: 0.0,
            found: 0.0,
            count: None,
            probability: 0.0,
            first_max_p: config.max_p,
            chance: 0.0,
        }
    }

    /// A law whose average starts at `average`, in the unit of the thresholds.
    pub fn with_average(config: RedConfig, average: f64) -> Self {
        Self {
            average,
            ..Self::new(config)
        }
    }

    /// Returns the moving average, in the unit of the thresholds.
    pub fn average(&self) -> f64 {
        self.average
    }

    /// Returns the present parameters.
    pub fn config(&self) -> &RedConfig {
        &self.config
    }

    /// Changes the probability at max_th.
    #[inline]
    pub fn set_max_p(&mut self, max_p: f64) {
        self.config.max_p = max_p;
    }

    /// Changes the thresholds and the end of the gentle slope; the unit stays.
    #[inline]
    pub fn set_thresholds(&mut self, min_th: f64, max_th: f64, gentle_end: Option<f64>) {
        self.config.min_th = min_th;
        self.config.max_th = max_th;
        self.config.gentle_end = gentle_end;
    }

    /// Whether the average is so low that nothing is dropped: below min_th, and in Linux also at it.
    #[inline]
    pub fn is_low(&self) -> bool {
        self.is_below(self.config.min_th)
    }

    /// Whether the average is below max_th, in Linux also at it: chance decides, or nothing is dropped.
    #[inline]
    pub fn is_below_max_th(&self) -> bool {
        self.is_below(self.config.max_th)
    }

    /// Whether the average is below a threshold, in Linux also at it.
    #[inline]
    fn is_below(&self, threshold: f64) -> bool {
        self.average < threshold
            || self.config.flavour == Flavour::Linux && self.average == threshold
    }

    /// Returns p_b of the latest arrival: the probability before spacing.
    pub fn probability(&self) -> f64 {
        self.probability
    }

    /// Updates the average and decides. `draw` returns a number uniform on [0, 1); it is called only for
    /// random decisions.
    #[inline]
    pub fn on_arrival(&mut self, arrival: Arrival, draw: impl FnOnce() -> f64) -> RedDecision {
        self.observe(arrival);
        self.decide(arrival.relative_size, draw)
    }

    /// Decides about an arrival with the present average: the second half of
    /// [`on_arrival`](Self::on_arrival), for callers that act between the two halves.
    #[inline(always)]
    pub fn decide(
        &mut self,
        relative_size: Option<f64>,
        draw: impl FnOnce() -> f64,
    ) -> RedDecision {
        let RedConfig {
            min_th,
            max_th,
            max_p,
            gentle_end,
            flavour,
            ..
        } = self.config;
        let average = self.average;
        let ns2 = flavour == Flavour::Ns2;

        if self.is_low() || (ns2 && self.found <= 1.0) {
            self.count = None;
            self.probability = 0.0;
            return RedDecision::Pass;
        }
        let p_b = if self.is_below_max_th() {
            let above = match flavour {
                Flavour::Linux => (average - min_th).floor(),
                _ => average - min_th,
            };
            max_p * above / (max_th - min_th)
        } else {
            match gentle_end {
                Some(end) if average < end => {
                    let max_p = if ns2 { self.first_max_p } else { max_p };
                    max_p + (1.0 - max_p) * (average - max_th) / (end - max_th)
                }
                _ => {
                    // Linux draws a new number for the next one below.
                    let anew = self.config.spacing == Spacing::Linux;
                    self.count = (!anew).then_some(0.0);
                    self.probability = 1.0;
                    return RedDecision::Forced;
                }
            }
        };
        self.probability = p_b;

        let step = relative_size.unwrap_or(1.0);
        if self.config.spacing == Spacing::Linux {
            return self.decide_as_linux(p_b, step, draw);
        }
        let Some(count) = self.count else {
            // The first packet above min_th only starts the count. (The paper
            // starts from count = -1 there, which has the same effect.)
            self.count = Some(step);
            return RedDecision::Pass;
        };
        let (share, whole) = self.spaced(p_b, count, step);
        // Drop with probability p_a = share / whole.
        if share > 0.0 && draw() * whole < share {
            self.count = Some(0.0);
            RedDecision::Early
        } else {
            self.count = Some(count + step);
            RedDecision::Pass
        }
    }

    /// Decides by a random number for each gap: one is drawn with the packet that starts the count, and
    /// with each packet that is chosen.
    fn decide_as_linux(&mut self, p: f64, step: f64, draw: impl FnOnce() -> f64) -> RedDecision {
        let count = self.count.map(|count| count + step);
        if count.is_some_and(|count| count * p < self.chance) {
            self.count = count;
            return RedDecision::Pass;
        }
        self.count = Some(0.0);
        self.chance = draw();
        match count {
            Some(_) => RedDecision::Early,
            None => RedDecision::Pass,
        }
    }

    /// A packet was dropped because the queue was full.
    #[inline]
    pub fn on_overflow(&mut self) {
        if self.config.flavour == Flavour::Ns2 {
            self.count = self.count.map(|_| 0.0);
        }
    }

    /// Updates the average: the first half of [`on_arrival`](Self::on_arrival).
    #[inline(always)]
    pub fn observe(&mut self, arrival: Arrival) {
        let w_q = self.config.w_q;
        self.found = arrival.backlog;
        match arrival.idle {
            None if self.config.flavour == Flavour::Linux => {
                self.average += w_q * (arrival.backlog - self.average.floor());
            }
            None => self.average += w_q * (arrival.backlog - self.average),
            Some(m) => self.average *= libm::pow(1.0 - w_q, m as f64 + 1.0),
        }
    }

    /// Lets the average decay as if `packets` had left an idle link, without an arrival.
    pub fn decay(&mut self, packets: u64) {
        self.average *= libm::pow(1.0 - self.config.w_q, packets as f64);
    }

    /// Returns p_a of the packet after `count` passed ones, as a fraction: share / whole.
    ///
    /// The paper's derivation counts the packets that passed since the last drop, its figure 2 counts one
    /// more; only the derivation gives gaps uniform on 1..1/p, as the paper says. ns-2 counts the present
    /// packet too.
    #[inline]
    fn spaced(&self, p: f64, count: f64, step: f64) -> (f64, f64) {
        let whole = match self.config.spacing {
            Spacing::None | Spacing::Linux => 1.0,
            Spacing::Uniform if self.config.flavour == Flavour::Ns2 => 1.0 - (count + step) * p,
            Spacing::Uniform => 1.0 - count * p,
            Spacing::Wait => match 2.0 - (count + step) * p {
                left if left > 1.0 => return (0.0, 1.0),
                left => left,
            },
        };
        // From the last possible position on, the drop is certain.
        let share = p * step;
        if whole > share {
            (share, whole)
        } else {
            (1.0, 1.0)
        }
    }
}
