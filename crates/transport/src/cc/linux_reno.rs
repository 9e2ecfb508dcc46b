//! Reno as Linux computes it: in whole segments, with a counter of what was
//! acknowledged since the window last grew.
//!
//! Source: Linux 6.1, net/ipv4/tcp_cong.c (`tcp_reno_cong_avoid`, `tcp_cong_avoid_ai`,
//! `tcp_reno_ssthresh`), read for what they compute.
//!
//! ```text
//! each = w in the additive increase of `additive`;  ssthresh = max(floor(w / 2), 2)
//! ```
//!
//! A reduction resets the counter.

use std::sync::Arc;

use super::additive::Additive;
use super::{AckSample, CongestionKind, ControllerConfig, GrowthLaw};
use crate::constants::constants;

constants! {
    /// The constants of Reno as Linux computes it.
    pub struct LinuxRenoParams {
        /// Factor of a reduction.
        beta: f64 = 0.5, in 0.05 => 0.95, "Linux 6.1, net/ipv4/tcp_cong.c, tcp_reno_ssthresh";
    }
}

/// The growth law of Linux's Reno with its state.
#[derive(Clone, Debug)]
pub struct LinuxReno {
    beta: f64,
    additive: Additive,
}

impl Default for LinuxReno {
    fn default() -> Self {
        Self::new(&LinuxRenoParams::default())
    }
}

impl LinuxReno {
    fn new(params: &LinuxRenoParams) -> Self {
        Self {
            beta: params.beta,
            additive: Additive::default(),
        }
    }
}

impl GrowthLaw for LinuxReno {
    type Params = LinuxRenoParams;

    fn start(_: &ControllerConfig, params: &Arc<LinuxRenoParams>) -> Self {
        Self::new(params)
    }

    #[inline]
    fn grown(&mut self, cwnd: f64, sample: &AckSample, mss: f64) -> f64 {
        self.additive.grow(cwnd, sample.acked, mss, |w| w)
    }

    #[inline]
    fn beta(&self) -> f64 {
        self.beta
    }

    fn counts_segments(&self) -> bool {
        true
    }

    fn on_congestion(&mut self, _window: f64, _kind: CongestionKind) {
        self.additive.reset();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use redtail_core::Time;

    const MSS: f64 = 1000.0;

    fn ack(segments: u64) -> AckSample {
        AckSample {
            now: Time::ZERO,
            acked: segments * MSS as u64,
            marked: 0,
            una: 0,
            next: 0,
            rtt: None,
            srtt: None,
            rtt_independent: false,
        }
    }

    #[test]
    fn a_segment_is_added_when_a_window_was_acknowledged_and_not_before() {
        let mut reno = LinuxReno::default();
        for _ in 0..9 {
            assert_eq!(reno.grown(10.0 * MSS, &ack(1), MSS), 10.0 * MSS);
        }
        assert_eq!(reno.grown(10.0 * MSS, &ack(1), MSS), 11.0 * MSS);
        assert_eq!(reno.grown(11.0 * MSS, &ack(10), MSS), 11.0 * MSS);
        assert_eq!(reno.grown(11.0 * MSS, &ack(13), MSS), 13.0 * MSS); // 23 = 2 * 11 + 1
    }

    #[test]
    fn what_was_counted_for_a_larger_window_counts_for_one_segment() {
        let mut reno = LinuxReno::default();
        reno.grown(20.0 * MSS, &ack(15), MSS);
        assert_eq!(reno.grown(5.0 * MSS, &ack(1), MSS), 6.0 * MSS);
        assert_eq!(reno.additive.cnt, 1);
    }

    #[test]
    fn a_reduction_forgets_what_was_counted() {
        let mut reno = LinuxReno::default();
        reno.grown(10.0 * MSS, &ack(9), MSS);
        reno.on_congestion(10.0, CongestionKind::Loss);
        assert_eq!(reno.grown(5.0 * MSS, &ack(4), MSS), 5.0 * MSS);
    }
}
