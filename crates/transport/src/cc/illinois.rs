//! Illinois.
//!
//! Source: S. Liu, T. Başar and R. Srikant, "TCP-Illinois: A loss- and delay-based congestion
//! control algorithm for high-speed networks", Performance Evaluation 65(6-7), 2008, section
//! 3.2, as Linux computes it (Linux 6.1, net/ipv4/tcp_illinois.c).
//!
//! | symbol | meaning | unit |
//! |---|---|---|
//! | w | congestion window | segments |
//! | alpha | increase of a round trip, 0.3 to 10, in 1/128 | segments |
//! | beta | share by which a loss reduces, 1/8 to 1/2, in 1/64 | 1 |
//! | d_a | mean queueing delay of a round: of its round trips, above the least ever | us |
//! | d_m | greatest queueing delay ever | us |
//! | win_thresh | below it alpha is 1 and beta 1/2, 15 | segments |
//! | theta | rounds near no delay after which alpha is 10 again, 5 | 1 |
//!
//! ```text
//! d_1 = d_m/100, d_2 = d_m/10, d_3 = 8 d_m/10
//! alpha = 10                                              d_a <= d_1
//!         10 d / (d + (d_a - d_1) (10 - 0.3) / 0.3)       otherwise, d = d_m - d_1
//! beta  = 1/8                                             d_a <= d_2
//!         (d_3/8 - d_2/2 + 3/8 d_a) / (d_3 - d_2)         between
//!         1/2                                             d_a >= d_3
//!
//! once a round; w += alpha / w for each segment acknowledged, in whole segments
//! loss: w -= floor(beta w), at least 2 are left; timeout: alpha 1 and beta 1/2
//! ```
//!
//! Once d_a has been above d_1, alpha is 10 again only in the fifth round below it.

use redtail_core::Span;

use super::additive::{Additive, whole};
use super::{AckSample, CongestionKind, GrowthLaw, PathSample};

const ALPHA_SHIFT: u32 = 7;
const ALPHA_BASE: u64 = 1 << ALPHA_SHIFT;
const ALPHA_MIN: u64 = 3 * ALPHA_BASE / 10;
const ALPHA_MAX: u64 = 10 * ALPHA_BASE;
const BETA_SHIFT: u32 = 6;
const BETA_MIN: u64 = (1 << BETA_SHIFT) / 8;
const BETA_MAX: u64 = (1 << BETA_SHIFT) / 2;
const WIN_THRESH: u64 = 15;
const THETA: u32 = 5;
/// The largest round trip, 3.3 s in microseconds; longer ones count as this (RTT_MAX).
const RTT_MAX: u64 = u32::MAX as u64 / ALPHA_MAX;

/// The growth law of TCP Illinois with its state.
#[derive(Clone, Debug)]
pub struct Illinois {
    additive: Additive,
    alpha: u64,
    beta: u64,
    /// The sum of the round trips of this round, microseconds.
    sum_rtt: u64,
    samples: u64,
    /// Least and greatest round trip, microseconds.
    base_rtt: u64,
    max_rtt: u64,
    /// The round ends when more than this is acknowledged.
    end: Option<u64>,
    /// Segments acknowledged by the present acknowledgement.
    acked: u64,
    /// Whether d_a has been above d_1.
    above: bool,
    /// Rounds since then in which d_a was not above d_1.
    low: u32,
}

impl Default for Illinois {
    fn default() -> Self {
        Self {
            additive: Additive::default(),
            alpha: ALPHA_MAX,
            beta: BETA_MAX,
            sum_rtt: 0,
            samples: 0,
            base_rtt: 0x7fff_ffff,
            max_rtt: 0,
            end: Some(0),
            acked: 0,
            above: false,
            low: 0,
        }
    }
}

impl Illinois {
    /// alpha for d_a and d_m.
    fn alpha(&mut self, da: u64, dm: u64) -> u64 {
        let d1 = dm / 100;
        if da <= d1 {
            if !self.above {
                return ALPHA_MAX;
            }
            self.low += 1;
            if self.low < THETA {
                return self.alpha;
            }
            self.low = 0;
            self.above = false;
            return ALPHA_MAX;
        }
        self.above = true;
        let (dm, da) = (dm - d1, da - d1);
        dm * ALPHA_MAX / (dm + da * (ALPHA_MAX - ALPHA_MIN) / ALPHA_MIN)
    }

    fn end_round(&mut self, w: u64) {
        if w < WIN_THRESH {
            self.alpha = ALPHA_BASE;
            self.beta = BETA_MAX;
        } else if let Some(mean) = self.sum_rtt.checked_div(self.samples) {
            let dm = self.max_rtt - self.base_rtt;
            let da = mean - self.base_rtt;
            self.alpha = self.alpha(da, dm);
            self.beta = beta(da, dm);
        }
    }

    fn begin_round(&mut self, end: Option<u64>) {
        self.end = end;
        self.samples = 0;
        self.sum_rtt = 0;
    }
}

/// beta for d_a and d_m.
fn beta(da: u64, dm: u64) -> u64 {
    let (d2, d3) = (dm / 10, 8 * dm / 10);
    if da <= d2 {
        BETA_MIN
    } else if da >= d3 || d3 <= d2 {
        BETA_MAX
    } else {
        (BETA_MIN * d3 + (BETA_MAX - BETA_MIN) * da - BETA_MAX * d2) / (d3 - d2)
    }
}

impl GrowthLaw for Illinois {
    fn grown(&mut self, cwnd: f64, _sample: &AckSample, mss: f64) -> f64 {
        let w = whole(cwnd, mss);
        let counted = u64::from(self.additive.cnt) + self.acked;
        self.acked = 1;
        self.additive.cnt = counted as u32;
        let delta = (counted * self.alpha) >> ALPHA_SHIFT;
        if delta < w {
            return w as f64 * mss;
        }
        self.additive.cnt = 0;
        (w + delta / w) as f64 * mss
    }

    fn watches(&self) -> bool {
        true
    }

    fn watch(&mut self, cwnd: f64, sample: &PathSample, mss: f64) {
        self.acked = sample.segments(mss);
        if let Some(rtt) = sample.rtt {
            let rtt = (rtt.as_ps() / Span::from_us(1).as_ps()).min(RTT_MAX);
            self.base_rtt = self.base_rtt.min(rtt);
            self.max_rtt = self.max_rtt.max(rtt);
            self.samples += 1;
            self.sum_rtt += rtt;
        }
        match self.end {
            None => self.begin_round(Some(sample.next)),
            Some(end) if sample.una > end && sample.state.grows() => {
                self.end_round(whole(cwnd, mss));
                self.begin_round(Some(sample.next));
            }
            Some(_) => {}
        }
    }

    fn beta(&self) -> f64 {
        1.0 - self.beta as f64 / (1u64 << BETA_SHIFT) as f64
    }

    fn counts_segments(&self) -> bool {
        true
    }

    fn on_congestion(&mut self, _window: f64, kind: CongestionKind) {
        self.additive.reset();
        if matches!(kind, CongestionKind::Timeout { .. }) {
            self.alpha = ALPHA_BASE;
            self.beta = BETA_MAX;
            self.low = 0;
            self.above = false;
            self.begin_round(None);
        }
    }

    fn ssthresh(&mut self, window: f64, _kind: CongestionKind) -> Option<f64> {
        let w = window as u64;
        Some((w - ((w * self.beta) >> BETA_SHIFT)).max(2) as f64)
    }
}
