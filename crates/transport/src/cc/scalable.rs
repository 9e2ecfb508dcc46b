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

use super::additive::Additive;
use super::{AckSample, CongestionKind, GrowthLaw};

/// 1/a (TCP_SCALABLE_AI_CNT).
pub(super) const EACH: u64 = 100;
/// -log2 b (TCP_SCALABLE_MD_SCALE).
const MD_SCALE: u32 = 3;

/// The growth law of Scalable TCP with its state.
#[derive(Clone, Debug, Default)]
pub struct Scalable {
    additive: Additive,
}

impl GrowthLaw for Scalable {
    fn grown(&mut self, cwnd: f64, sample: &AckSample, mss: f64) -> f64 {
        self.additive.grow(cwnd, sample.acked, mss, |w| w.min(EACH))
    }

    fn beta(&self) -> f64 {
        0.875
    }

    fn counts_segments(&self) -> bool {
        true
    }

    fn on_congestion(&mut self, _window: f64, _kind: CongestionKind) {
        self.additive.reset();
    }

    fn ssthresh(&mut self, window: f64, _kind: CongestionKind) -> Option<f64> {
        let w = window as u64;
        Some((w - (w >> MD_SCALE)).max(2) as f64)
    }
}
