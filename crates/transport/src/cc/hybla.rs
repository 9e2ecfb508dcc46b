//! Hybla: a flow gets the rate of a Reno flow with a round trip of 25 ms, whatever its own round
//! trip.
//!
//! Source: C. Caini and R. Firrincieli, "TCP Hybla: a TCP enhancement for heterogeneous
//! networks", International Journal of Satellite Communications and Networking 22(5), 2004,
//! section 3, as Linux computes it (Linux 6.1, net/ipv4/tcp_hybla.c).
//!
//! | symbol | meaning | unit |
//! |---|---|---|
//! | w | congestion window | segments |
//! | RTT | least smoothed round trip | s |
//! | RTT_0 | round trip of the flow that it equals, 25 ms | s |
//! | rho | RTT / RTT_0, at least 1, in eighths | 1 |
//!
//! ```text
//! slow start:            w += 2^rho - 1   for each acknowledgement, up to ssthresh
//! congestion avoidance:  w += rho^2 / w
//! initial window:        floor(rho) segments
//! loss:                  half, as Reno
//! ```
//!
//! If a Reno flow with RTT_0 has the window W, a flow with RTT has w = rho W, which gives the same
//! rate. Increases are kept in 1/128 of a segment; `rho^2/w` is rounded down to these. While data
//! is missing, and during the repair after a timeout, Reno's whole segments are counted instead. An
//! increase is made for each acknowledgement, however much it covers: with delayed acknowledgements
//! the window grows half as fast. The window is at most 65535 segments. As in Linux, and unlike the
//! paper: the first ssthresh is not set by an estimate of the bandwidth, and nothing is paced.

use std::sync::Arc;

use redtail_core::Span;

use super::additive::{Additive, whole};
use super::{
    AckSample, CaState, CongestionKind, ControllerConfig, GrowthLaw, PathSample, Window, as_f64,
};
use crate::constants::constants;

constants! {
    /// The constants of Hybla's congestion avoidance.
    pub struct HyblaParams {
        /// RTT_0: round-trip time of the Reno flow whose rate it has.
        rtt0: Span = Span::from_ms(25), in Span::from_us(10) => Span::from_s(10), "Caini and Firrincieli 2004, section 3; Linux 6.1, tcp_hybla.c, rtt0";
        /// Largest window, in segments.
        max_window: u64 = 65_535, in 2 => 1_000_000, "Linux 6.1, tcp_hybla.c, snd_cwnd_clamp";
        /// Factor of a reduction.
        beta: f64 = 0.5, in 0.05 => 0.95, "Linux 6.1, tcp_hybla.c (tcp_reno_ssthresh)";
    }
}

constants! {
    /// The constants of Hybla's slow start.
    pub struct HyblaStartParams {
        /// RTT_0: round-trip time of the Reno flow whose rate it has.
        rtt0: Span = Span::from_ms(25), in Span::from_us(10) => Span::from_s(10), "Caini and Firrincieli 2004, section 3; Linux 6.1, tcp_hybla.c, rtt0";
        /// Largest window, in segments.
        max_window: u64 = 65_535, in 2 => 1_000_000, "Linux 6.1, tcp_hybla.c, snd_cwnd_clamp";
    }
}

/// The powers 2^(i/8), in units of 1/128.
const FRACTIONS: [u64; 8] = [128, 139, 152, 165, 181, 197, 215, 234];
const MOST_DOUBLINGS: u64 = 16;

/// rho, from the least smoothed round trip.
#[derive(Clone, Copy, Debug)]
struct Rho {
    eighths: u64,
    least: Option<Span>,
}

impl Default for Rho {
    fn default() -> Self {
        Self {
            eighths: 8,
            least: None,
        }
    }
}

impl Rho {
    fn update(&mut self, srtt: Option<Span>, rtt0: Span) {
        if let Some(srtt) = srtt
            && self.least.is_none_or(|least| srtt < least)
        {
            self.least = Some(srtt);
            self.eighths = (8 * srtt.as_ps() / rtt0.as_ps()).max(8);
        }
    }

    fn whole(&self) -> u64 {
        self.eighths >> 3
    }
}

/// The growth law of TCP Hybla with its state.
#[derive(Clone, Debug, Default)]
pub struct Hybla {
    params: Arc<HyblaParams>,
    additive: Additive,
    rho: Rho,
    state: CaState,
    /// The fraction of a segment, in 1/128.
    fraction: u64,
}

impl Hybla {
    fn new(params: &Arc<HyblaParams>) -> Self {
        Self {
            params: Arc::clone(params),
            ..Self::default()
        }
    }
}

impl GrowthLaw for Hybla {
    type Params = HyblaParams;

    fn start(_: &ControllerConfig, params: &Arc<HyblaParams>) -> Self {
        Self::new(params)
    }

    fn grown(&mut self, cwnd: f64, sample: &AckSample, mss: f64) -> f64 {
        let w = whole(cwnd, mss);
        let acked = self.additive.segments(sample.acked, mss);
        if self.state != CaState::Open {
            return self.additive.grown(w, w, acked) as f64 * mss;
        }
        let mut grown = w;
        let increment = 2 * self.rho.eighths * self.rho.eighths / w;
        if increment < 128 {
            self.additive.cnt += 1;
        }
        grown += increment >> 7;
        self.fraction += increment & 127;
        if self.fraction >= 128 {
            grown += 1;
            self.fraction -= 128;
            self.additive.reset();
        }
        // The window is so large that the increase rounds to zero.
        if increment == 0 && u64::from(self.additive.cnt) >= grown {
            grown += 1;
            self.additive.reset();
        }
        grown.min(self.params.max_window.max(w)) as f64 * mss
    }

    fn watches(&self) -> bool {
        true
    }

    fn watch(&mut self, _cwnd: f64, sample: &PathSample, _mss: f64) {
        self.rho.update(sample.srtt, self.params.rtt0);
        self.state = sample.state;
    }

    fn beta(&self) -> f64 {
        self.params.beta
    }

    fn counts_segments(&self) -> bool {
        true
    }

    fn on_congestion(&mut self, _window: f64, _kind: CongestionKind) {
        self.additive.reset();
    }

    fn ssthresh(&mut self, window: f64, _kind: CongestionKind) -> Option<f64> {
        Some(((window as u64 as f64 * self.params.beta) as u64).max(2) as f64)
    }
}

/// Hybla's slow start.
#[derive(Clone, Debug)]
pub(super) struct HyblaSlowStart {
    params: Arc<HyblaStartParams>,
    /// Size of a full segment, bytes.
    mss: f64,
    rho: Rho,
    state: CaState,
    fraction: u64,
}

impl HyblaSlowStart {
    pub(super) fn new(params: &Arc<HyblaStartParams>, mss: f64) -> Self {
        Self {
            params: Arc::clone(params),
            mss,
            rho: Rho::default(),
            state: CaState::Open,
            fraction: 0,
        }
    }

    /// The window after a handshake that took `rtt`, in bytes.
    pub(super) fn initial_window(&mut self, rtt: Span) -> f64 {
        self.rho.update(Some(rtt), self.params.rtt0);
        as_f64(self.rho.whole()) * self.mss
    }

    pub(super) fn watch(&mut self, sample: &PathSample) {
        self.rho.update(sample.srtt, self.params.rtt0);
        self.state = sample.state;
    }

    /// Processes an acknowledgement for which standard slow start would grow the window by `grows`
    /// bytes.
    pub(super) fn on_ack(&mut self, window: &mut Window, _sample: &AckSample, grows: f64) {
        let grown = if self.state == CaState::Open {
            let doublings = self.rho.whole().min(MOST_DOUBLINGS);
            let fraction = FRACTIONS[(self.rho.eighths & 7) as usize];
            let increment = (fraction << doublings) - 128;
            self.fraction += increment & 127;
            let more = (increment >> 7) + (self.fraction >> 7);
            self.fraction &= 127;
            window.cwnd + as_f64(more) * self.mss
        } else {
            window.cwnd + grows
        };
        let most = as_f64(self.params.max_window) * self.mss;
        window.cwnd = grown.min(window.ssthresh).min(most.max(window.cwnd));
    }
}
