//! The control law of DOCSIS-PIE: it decides from the predicted delay of a cable modem's shaper whether a
//! packet is dropped.
//!
//! Source: G. White and R. Pan, "Active Queue Management (AQM) Based on Proportional Integral
//! Controller Enhanced (PIE) for Data-Over-Cable Service Interface Specifications (DOCSIS) Cable
//! Modems", RFC 8034, section 4 and appendix A. The parts in common with RFC 8033 are in [`super::pie`].
//!
//! | symbol | name in the RFC | meaning | unit |
//! |---|---|---|---|
//! | d, d_old | qdelay, qdelay_old_ | predicted delay at this update and at the one before | s |
//! | target | LATENCY_TARGET | reference of the delay | s |
//! | Q | queue_.byte_length() | backlog | bytes |
//! | M, P | MSR, PEAK_RATE | maximum sustained and peak traffic rate | bytes/s |
//! | tokens | msrtokens() | bytes that may leave at P before M applies | bytes |
//! | p | drop_prob_ | drop probability of a packet of 1024 B; may exceed 1 | 1 |
//! | p1 | p1 | drop probability of this packet | 1 |
//! | a, b | A, B | gains, 0.25 and 2.5 | 1/s |
//! | T | INTERVAL | time between updates, 16 ms | s |
//! | accu | accu_prob_ | p1 summed since the last drop | 1 |
//! | burst | burst_allowance_ | remaining burst protection, initially none | s |
//!
//! ```text
//! every T:
//!   d = Q / P                            while Q <= tokens
//!     = (Q - tokens) / M + tokens / P    else
//!   while burst > 0: p = 0, burst <- max(0, burst - T); otherwise
//!     change = a (d - target) + b (d - d_old)
//!     divided by 2048, 512, 128, 32, 8, 2 while p < 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1,
//!     multiplied by 2, 8, 32 while p < 1, p < 10 and beyond;  at most 0.02 when p >= 0.1
//!     p <- p + change;  p <- 0.98 p when d and d_old < 5 ms;  p <- p + 0.02 when d > 200 ms
//!     p within [0, 0.85 x 1024 / 64]
//!   quiet: d and d_old below target / 2, p = 0, burst = 0
//!     ACTIVE -> QUIESCENT when quiet;  QUIESCENT -> INACTIVE when quiet for more than 1 s
//! at an arrival of L bytes:
//!   pass while burst > 0;  accu = 0 when p = 0
//!   INACTIVE: pass while less than a third of the buffer waits, then QUIESCENT
//!   p1 = min(0.85, p L / 1024);  accu <- accu + p1
//!   pass while d_old < target / 2 and p < 0.2;  while no more than 2 x 1024 B wait
//!   pass while accu < 0.85;  drop from accu >= 8.5 on, and with p1 in between
//!   a drop: accu = 0;  QUIESCENT -> ACTIVE with burst = 142 ms
//! ```

use redtail_core::{Bytes, Rate, Span};

use super::pie::{PROB_LOW, PieDecision, auto_tune, derandomised};

/// The law's parameters.
#[derive(Clone, Copy, Debug)]
pub struct DocsisPieConfig {
    /// The reference of the delay (LATENCY_TARGET).
    pub target: Span,
    /// Time between updates.
    pub interval: Span,
    /// The gain of the deviation from the target, 1/s.
    pub alpha: f64,
    /// Gain of the delay's change, 1/s.
    pub beta: f64,
    /// Burst that passes after the first drop (MAX_BURST).
    pub max_burst: Span,
    /// Time without congestion after which the law becomes inactive (BURST_RESET_TIMEOUT).
    pub burst_reset: Span,
    /// Size of a packet with the drop probability p (MEAN_PKTSIZE).
    pub mean_packet: Bytes,
    /// Maximum sustained traffic rate (MSR).
    pub rate: Rate,
    /// Peak traffic rate (PEAK_RATE).
    pub peak_rate: Rate,
}

/// The smallest packet, in bytes (MIN_PKTSIZE).
const MIN_PACKET: f64 = 64.0;
/// Delay below which p decays, in seconds (LATENCY_LOW).
const LATENCY_LOW: f64 = 0.005;
/// Delay above which p rises faster, in seconds (LATENCY_HIGH).
const LATENCY_HIGH: f64 = 0.2;

/// The state of the law (aqm_state_).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AqmState {
    /// The backlog has stayed below a third of the buffer; nothing is dropped.
    #[default]
    Inactive,
    /// Nothing was dropped yet, or not for a long time: the next drop begins the burst protection.
    Quiescent,
    /// First the burst protection applies, then packets are dropped.
    Active,
}

/// The law with its state.
#[derive(Clone, Debug)]
pub struct DocsisPieLaw {
    config: DocsisPieConfig,
    state: AqmState,
    /// The drop probability p of a packet of the mean size.
    probability: f64,
    /// The delay at the latest update, d_old, in seconds.
    old: f64,
    accumulated: f64,
    burst: Span,
    /// Time without congestion in the state QUIESCENT (burst_reset_).
    quiet: Span,
}

impl DocsisPieLaw {
    /// A law in its initial state.
    pub fn new(config: DocsisPieConfig) -> Self {
        Self {
            config,
            state: AqmState::Inactive,
            probability: 0.0,
            old: 0.0,
            accumulated: 0.0,
            burst: Span::ZERO,
            quiet: Span::ZERO,
        }
    }

    /// Returns the drop probability of a packet of the mean size.
    pub fn probability(&self) -> f64 {
        self.probability.min(PROB_LOW)
    }

    /// Returns p, which can exceed 1.
    pub fn scaled_probability(&self) -> f64 {
        self.probability
    }

    /// Returns the delay that the latest update predicted, in seconds.
    pub fn delay(&self) -> f64 {
        self.old
    }

    /// Returns the state.
    pub fn state(&self) -> AqmState {
        self.state
    }

    /// Returns the remaining burst protection.
    pub fn burst(&self) -> Span {
        self.burst
    }

    /// Returns the delay that the shaper will cause to the backlog, in seconds (section 4.2).
    pub fn predict(&self, backlog: u64, tokens: f64) -> f64 {
        let bytes_per_second = |rate: Rate| rate.as_bps() as f64 / 8.0;
        let (sustained, peak) = (
            bytes_per_second(self.config.rate),
            bytes_per_second(self.config.peak_rate),
        );
        let backlog = backlog as f64;
        if backlog <= tokens {
            backlog / peak
        } else {
            (backlog - tokens) / sustained + tokens / peak
        }
    }

    /// Makes one update, `interval` after the one before, with `backlog` bytes waiting and `tokens` bytes
    /// in the bucket of the maximum sustained traffic rate.
    pub fn update(&mut self, backlog: u64, tokens: f64) {
        let delay = self.predict(backlog, tokens);
        let target = self.config.target.as_secs_f64();
        if self.burst > Span::ZERO {
            self.probability = 0.0;
            self.burst = self.burst.saturating_sub(self.config.interval);
        } else {
            let p = self.probability;
            let change =
                self.config.alpha * (delay - target) + self.config.beta * (delay - self.old);
            let mut change = change * scale(p);
            if p >= 0.1 {
                change = change.min(0.02);
            }
            let mut p = p + change;
            if delay < LATENCY_LOW && self.old < LATENCY_LOW {
                p *= 0.98;
            } else if delay > LATENCY_HIGH {
                p += 0.02;
            }
            let most = PROB_LOW * self.config.mean_packet.as_u64() as f64 / MIN_PACKET;
            self.probability = p.clamp(0.0, most);
        }
        let quiet = delay < 0.5 * target
            && self.old < 0.5 * target
            && self.probability == 0.0
            && self.burst == Span::ZERO;
        match self.state {
            AqmState::Active if quiet => {
                (self.state, self.quiet) = (AqmState::Quiescent, Span::ZERO);
            }
            AqmState::Quiescent if quiet => {
                self.quiet += self.config.interval;
                if self.quiet > self.config.burst_reset {
                    (self.state, self.quiet) = (AqmState::Inactive, Span::ZERO);
                }
            }
            AqmState::Quiescent => self.quiet = Span::ZERO,
            AqmState::Inactive | AqmState::Active => {}
        }
        self.old = delay;
    }

    /// Decides about an arrival of `size` that finds `backlog` bytes. `third` says whether the backlog is
    /// at least a third of the buffer. `draw` returns a number uniform on [0, 1); it is called only for
    /// random decisions.
    pub fn on_arrival(
        &mut self,
        size: Bytes,
        backlog: u64,
        third: bool,
        draw: impl FnOnce() -> f64,
    ) -> PieDecision {
        if self.burst > Span::ZERO {
            return PieDecision::Pass;
        }
        let p = self.probability;
        if p == 0.0 {
            self.accumulated = 0.0;
        }
        if self.state == AqmState::Inactive {
            if !third {
                return PieDecision::Pass;
            }
            self.state = AqmState::Quiescent;
        }
        let mean = self.config.mean_packet.as_u64();
        let own = (p * size.as_u64() as f64 / mean as f64).min(PROB_LOW);
        self.accumulated += own;
        let half = 0.5 * self.config.target.as_secs_f64();
        if (self.old < half && p < 0.2) || backlog <= 2 * mean {
            return PieDecision::Pass;
        }
        let decision = derandomised(self.accumulated, own, draw);
        if decision == PieDecision::Early {
            self.accumulated = 0.0;
            if self.state == AqmState::Quiescent {
                (self.state, self.burst) = (AqmState::Active, self.config.max_burst);
            }
        }
        decision
    }

    /// A packet was dropped for want of room.
    pub fn on_overflow(&mut self) {
        self.accumulated = 0.0;
    }

    /// Whether further updates of an empty queue would change nothing.
    pub fn rests(&self) -> bool {
        self.state == AqmState::Inactive
            && self.probability == 0.0
            && self.old == 0.0
            && self.burst == Span::ZERO
    }
}

/// Section 4.4: what the change is multiplied by, by the present p.
fn scale(p: f64) -> f64 {
    match p {
        p if p < 0.1 => auto_tune(p),
        p if p < 1.0 => 2.0,
        p if p < 10.0 => 8.0,
        _ => 32.0,
    }
}
