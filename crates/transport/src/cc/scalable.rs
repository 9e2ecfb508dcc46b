//! Scalable TCP.
//!
//! Source: T. Kelly, "Scalable TCP: Improving Performance in Highspeed Wide Area
//! Networks", ACM CCR 33(2), 2003, section 3, with a = 0.01 and b = 0.125; as Linux computes
//! it (Linux 6.1, net/ipv4/tcp_scalable.c).
//!
//! | symbol | meaning | unit |
//! |---|---|---|
//! | w | congestion window | segments |
//! | a | increase for each segment acknowledged | segments |
//! | b | share by which a loss reduces | 1 |
//!
//! ```text
//! w += 1 for min(w, 1/a) acknowledged
//! w -= floor(b w), at least 2 are left
//! ```
//!
//! Because of the minimum the increase is Reno's up to 100 segments. In the paper the increase is a
//! for each segment at any window, and Reno's law applies below the legacy window of 16 segments;
//! Linux reduces by an eighth there too. With one loss for every 1/p segments, the window is a/(b
//! p) on average (a T/b times 1/T in the paper's section 3.1), whatever the round trip.

use std::sync::Arc;

use super::additive::Additive;
use super::{AckSample, CongestionKind, ControllerConfig, GrowthLaw};
use crate::constants::constants;

constants! {
    /// The constants of Scalable TCP.
    pub struct ScalableParams {
        /// a: increase for each segment acknowledged, in segments; 1/a is rounded to a whole number.
        a: f64 = 0.01, in 1e-4 => 1.0, "Kelly 2003, section 3; Linux 6.1, tcp_scalable.c, TCP_SCALABLE_AI_CNT = 100";
        /// b: share by which a loss reduces.
        b: f64 = 0.125, in 0.05 => 0.95, "Kelly 2003, section 3; Linux 6.1, tcp_scalable.c, TCP_SCALABLE_MD_SCALE = 3";
    }
}

/// The growth law of Scalable TCP with its state.
#[derive(Clone, Debug)]
pub struct Scalable {
    params: Arc<ScalableParams>,
    /// 1/a.
    each: u64,
    additive: Additive,
}

impl Default for Scalable {
    fn default() -> Self {
        Self::new(&Arc::default())
    }
}

impl Scalable {
    fn new(params: &Arc<ScalableParams>) -> Self {
        Self {
            params: Arc::clone(params),
            each: (1.0 / params.a).round() as u64,
            additive: Additive::default(),
        }
    }
}

impl GrowthLaw for Scalable {
    type Params = ScalableParams;

    fn start(_: &ControllerConfig, params: &Arc<ScalableParams>) -> Self {
        Self::new(params)
    }

    fn grown(&mut self, cwnd: f64, sample: &AckSample, mss: f64) -> f64 {
        let each = self.each;
        self.additive.grow(cwnd, sample.acked, mss, |w| w.min(each))
    }

    fn beta(&self) -> f64 {
        1.0 - self.params.b
    }

    fn counts_segments(&self) -> bool {
        true
    }

    fn on_congestion(&mut self, _window: f64, _kind: CongestionKind) {
        self.additive.reset();
    }

    fn ssthresh(&mut self, window: f64, _kind: CongestionKind) -> Option<f64> {
        let w = window as u64;
        Some((w - (w as f64 * self.params.b) as u64).max(2) as f64)
    }
}
