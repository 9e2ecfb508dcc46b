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

use std::sync::Arc;

use redtail_core::{ParamError, Span};

use super::additive::{Additive, fixed, whole};
use super::{AckSample, CongestionKind, ControllerConfig, GrowthLaw, PathSample};
use crate::constants::{check_order, constants};

const ALPHA_SHIFT: u32 = 7;
const ALPHA_BASE: u64 = 1 << ALPHA_SHIFT;
const BETA_SHIFT: u32 = 6;
const BETA_BASE: u64 = 1 << BETA_SHIFT;
/// The largest round trip, 3.3 s in microseconds; longer ones count as this (RTT_MAX).
const RTT_MAX: u64 = u32::MAX as u64 / (10 * ALPHA_BASE);

constants! {
    /// The constants of Illinois.
    pub struct IllinoisParams {
        /// alpha_min: least increase of a round trip, in segments; in 1/128.
        alpha_min: f64 = 0.3, in 0.01 => 1.0, "Liu, Başar and Srikant 2008, section 3.2; Linux 6.1, net/ipv4/tcp_illinois.c, ALPHA_MIN";
        /// alpha_max: greatest increase of a round trip, in segments; in 1/128.
        alpha_max: f64 = 10.0, in 1.0 => 1000.0, "Liu, Başar and Srikant 2008, section 3.2; Linux 6.1, tcp_illinois.c, ALPHA_MAX";
        /// beta_min: least share by which a loss reduces; in 1/64.
        beta_min: f64 = 0.125, in 0.02 => 0.95, "Liu, Başar and Srikant 2008, section 3.2; Linux 6.1, tcp_illinois.c, BETA_MIN";
        /// beta_max: greatest share by which a loss reduces; in 1/64.
        beta_max: f64 = 0.5, in 0.02 => 0.95, "Liu, Başar and Srikant 2008, section 3.2; Linux 6.1, tcp_illinois.c, BETA_MAX";
        /// win_thresh: window below which alpha is 1 and beta is beta_max, in segments.
        win_thresh: u64 = 15, in 0 => 1_000_000, "Linux 6.1, tcp_illinois.c, win_thresh";
        /// theta: number of rounds near no delay after which alpha is alpha_max again.
        theta: u32 = 5, in 1 => 1000, "Linux 6.1, tcp_illinois.c, theta";
        /// d_1: queueing delay up to which alpha is alpha_max, as a share of the greatest.
        d1: f64 = 0.01, in 0.0 => 1.0, "Liu, Başar and Srikant 2008, section 4; Linux 6.1, tcp_illinois.c, alpha()";
        /// d_2: queueing delay up to which beta is beta_min, as a share of the greatest.
        d2: f64 = 0.1, in 0.0 => 1.0, "Liu, Başar and Srikant 2008, section 4; Linux 6.1, tcp_illinois.c, beta()";
        /// d_3: queueing delay from which beta is beta_max, as a share of the greatest.
        d3: f64 = 0.8, in 0.0 => 1.0, "Liu, Başar and Srikant 2008, section 4; Linux 6.1, tcp_illinois.c, beta()";
    }
    check IllinoisParams::in_order
}

impl IllinoisParams {
    fn in_order(&self) -> Result<(), ParamError> {
        check_order("beta_min", self.beta_min, "beta_max", self.beta_max)?;
        check_order("d2", self.d2, "d3", self.d3)
    }

    fn alpha_max(&self) -> u64 {
        fixed(self.alpha_max, ALPHA_BASE)
    }

    fn beta_max(&self) -> u64 {
        fixed(self.beta_max, BETA_BASE)
    }
}

/// A share of a delay, rounded down.
fn part(delay: u64, share: f64) -> u64 {
    delay * fixed(share, 1000) / 1000
}

/// The growth law of TCP Illinois with its state.
#[derive(Clone, Debug)]
pub struct Illinois {
    params: Arc<IllinoisParams>,
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
        Self::new(&Arc::default())
    }
}

impl Illinois {
    fn new(params: &Arc<IllinoisParams>) -> Self {
        Self {
            params: Arc::clone(params),
            additive: Additive::default(),
            alpha: params.alpha_max(),
            beta: params.beta_max(),
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
        let d1 = part(dm, self.params.d1);
        let alpha_max = self.params.alpha_max();
        let alpha_min = fixed(self.params.alpha_min, ALPHA_BASE);
        if da <= d1 {
            if !self.above {
                return alpha_max;
            }
            self.low += 1;
            if self.low < self.params.theta {
                return self.alpha;
            }
            self.low = 0;
            self.above = false;
            return alpha_max;
        }
        self.above = true;
        let (dm, da) = (dm - d1, da - d1);
        dm * alpha_max / (dm + da * (alpha_max - alpha_min) / alpha_min)
    }

    fn end_round(&mut self, w: u64) {
        if w < self.params.win_thresh {
            self.alpha = ALPHA_BASE;
            self.beta = self.params.beta_max();
        } else if let Some(mean) = self.sum_rtt.checked_div(self.samples) {
            let dm = self.max_rtt - self.base_rtt;
            let da = mean - self.base_rtt;
            self.alpha = self.alpha(da, dm);
            self.beta = beta(da, dm, &self.params);
        }
    }

    fn begin_round(&mut self, end: Option<u64>) {
        self.end = end;
        self.samples = 0;
        self.sum_rtt = 0;
    }
}

/// beta for d_a and d_m.
fn beta(da: u64, dm: u64, params: &IllinoisParams) -> u64 {
    let (d2, d3) = (part(dm, params.d2), part(dm, params.d3));
    let (least, most) = (fixed(params.beta_min, BETA_BASE), params.beta_max());
    if da <= d2 {
        least
    } else if da >= d3 || d3 <= d2 {
        most
    } else {
        (least * d3 + (most - least) * da - most * d2) / (d3 - d2)
    }
}

impl GrowthLaw for Illinois {
    type Params = IllinoisParams;

    fn start(_: &ControllerConfig, params: &Arc<IllinoisParams>) -> Self {
        Self::new(params)
    }

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
            self.beta = self.params.beta_max();
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
