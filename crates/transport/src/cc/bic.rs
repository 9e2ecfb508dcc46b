//! BIC: binary increase congestion control.
//!
//! Source: L. Xu, K. Harfoush and I. Rhee, "Binary Increase Congestion Control (BIC) for Fast
//! Long-Distance Networks", INFOCOM 2004, section III, as Linux computes it (Linux 6.1,
//! net/ipv4/tcp_bic.c).
//!
//! | symbol | meaning | unit |
//! |---|---|---|
//! | w | congestion window | segments |
//! | last_max | w before the last reduction; 0: none is known | segments |
//! | S_max | most that w grows in a round trip, 16 | segments |
//! | low_window | up to here it is Reno, 14 | segments |
//! | B | a step takes a B-th of the distance, 4 | 1 |
//! | smooth_part | round trips that the last B segments take, 20 | 1 |
//! | ratio | segments for each acknowledgement, smoothed by 1/16 | 1 |
//! | cnt | segments to be acknowledged for w to grow by one | segments |
//!
//! ```text
//! increase of a round trip
//!   1                                   for w <= low_window
//!   d = (last_max - w) / B, at most S_max   below last_max      (the search)
//!   B / smooth_part                     for d <= 1, and up to B above last_max
//!   (w - last_max) / (B - 1)            up to S_max (B - 1) above last_max
//!   S_max                               beyond
//!   and w / 20 at least while last_max is not known
//! cnt = w / increase / ratio, all divisions rounded down
//!
//! reduction: last_max = w, or floor(w (1024 + 819) / 2048) for w < last_max
//!            w = floor(819/1024 w), or half for w <= low_window; at least 2
//! timeout:   all of this is forgotten
//! ```
//!
//! The paper searches by halves (B = 2) with S_max of 32 and a reduction to 0.875; the values here
//! are Linux's. The division by the ratio dates from the time when Linux counted acknowledgements.
//! The ratio starts at two, and rounding keeps it at 31/16 or above. Because Linux now counts
//! segments, the window grows about twice as fast as the increase says, with or without delayed
//! acknowledgements.

use std::sync::Arc;

use redtail_core::Time;

use super::additive::{Additive, fixed, whole};
use super::tick::{TICKS_PER_S, ticks};
use super::{AckSample, CaState, CongestionKind, ControllerConfig, GrowthLaw, PathSample};
use crate::constants::constants;

constants! {
    /// The constants of BIC.
    pub struct BicParams {
        /// S_max: most segments that the window grows in a round trip.
        s_max: u64 = 16, in 1 => 10_000, "Linux 6.1, net/ipv4/tcp_bic.c, max_increment";
        /// Window up to which it grows and is reduced as Reno, in segments.
        low_window: u64 = 14, in 0 => 1_000_000, "Linux 6.1, tcp_bic.c, low_window";
        /// B: a step of the search takes this part of the distance.
        b: u64 = 4, in 2 => 1000, "Linux 6.1, tcp_bic.c, BICTCP_B";
        /// Number of round trips that the last B segments of the search take.
        smooth_part: u64 = 20, in 1 => 10_000, "Linux 6.1, tcp_bic.c, smooth_part";
        /// Factor of a reduction; in 1/1024.
        beta: f64 = 0.8, in 0.05 => 0.95, "Linux 6.1, tcp_bic.c, beta = 819";
        /// Release more bandwidth when the window at a loss is smaller than at the one before.
        fast_convergence: bool = true, "Xu, Harfoush and Rhee 2004, section III.C; Linux 6.1, tcp_bic.c, fast_convergence";
        /// While no window of a loss is known, most segments to be acknowledged for one of growth.
        unknown_ceiling: u64 = 20, in 1 => 10_000, "Linux 6.1, tcp_bic.c, bictcp_update: 5 % a round trip";
    }
}

/// The parts in which the kernel counts the factor of a reduction.
const BETA_ONE: u64 = 1024;
/// Ticks after which cnt is computed again if the window has not changed.
const UPDATE_INTERVAL: u64 = TICKS_PER_S / 32;
/// The ratio is kept in sixteenths.
const RATIO_SHIFT: u32 = 4;

/// The growth law of BIC with its state.
#[derive(Clone, Debug)]
pub struct Bic {
    params: Arc<BicParams>,
    additive: Additive,
    cnt: u64,
    /// 0 when none is known.
    last_max: u64,
    /// The window and the tick for which cnt was last computed.
    computed: Option<(u64, u64)>,
    /// The ratio in sixteenths (delayed_ack).
    ratio: u64,
}

impl Default for Bic {
    fn default() -> Self {
        Self {
            params: Arc::default(),
            additive: Additive::default(),
            cnt: 0,
            last_max: 0,
            computed: None,
            ratio: 2 << RATIO_SHIFT,
        }
    }
}

impl Bic {
    fn new(params: &Arc<BicParams>) -> Self {
        Self {
            params: Arc::clone(params),
            ..Self::default()
        }
    }

    fn update(&mut self, w: u64, now: Time) {
        let tick = ticks(now);
        if self
            .computed
            .is_some_and(|(window, at)| window == w && tick - at <= UPDATE_INTERVAL)
        {
            return;
        }
        self.computed = Some((w, tick));
        let BicParams {
            s_max,
            b,
            smooth_part,
            ..
        } = *self.params;
        if w <= self.params.low_window {
            self.cnt = w; // the remaining rules, with the ratio, do not apply
            return;
        }
        let last_max = self.last_max;
        let mut cnt = if w < last_max {
            let distance = (last_max - w) / b;
            if distance > s_max {
                w / s_max
            } else if distance <= 1 {
                w * smooth_part / b
            } else {
                w / distance
            }
        } else if w < last_max + b {
            w * smooth_part / b
        } else if w < last_max + s_max * (b - 1) {
            w * (b - 1) / (w - last_max)
        } else {
            w / s_max
        };
        if last_max == 0 {
            cnt = cnt.min(self.params.unknown_ceiling);
        }
        self.cnt = ((cnt << RATIO_SHIFT) / self.ratio).max(1);
    }
}

impl GrowthLaw for Bic {
    type Params = BicParams;

    fn start(_: &ControllerConfig, params: &Arc<BicParams>) -> Self {
        Self::new(params)
    }

    fn grown(&mut self, cwnd: f64, sample: &AckSample, mss: f64) -> f64 {
        let w = whole(cwnd, mss);
        let acked = self.additive.segments(sample.acked, mss);
        self.update(w, sample.now);
        self.additive.grown(w, self.cnt, acked) as f64 * mss
    }

    fn watches(&self) -> bool {
        true
    }

    fn watch(&mut self, _cwnd: f64, sample: &PathSample, mss: f64) {
        if sample.state == CaState::Open {
            self.ratio = self.ratio + sample.segments(mss) - (self.ratio >> RATIO_SHIFT);
        }
    }

    fn beta(&self) -> f64 {
        fixed(self.params.beta, BETA_ONE) as f64 / BETA_ONE as f64
    }

    fn counts_segments(&self) -> bool {
        true
    }

    fn on_congestion(&mut self, window: f64, kind: CongestionKind) {
        if matches!(kind, CongestionKind::Timeout { .. }) {
            *self = Self::new(&self.params);
            return;
        }
        self.additive.reset();
        let w = window as u64;
        // Fast convergence.
        self.last_max = if self.params.fast_convergence && w < self.last_max {
            w * (BETA_ONE + fixed(self.params.beta, BETA_ONE)) / (2 * BETA_ONE)
        } else {
            w
        };
    }

    fn ssthresh(&mut self, window: f64, _kind: CongestionKind) -> Option<f64> {
        let w = window as u64;
        let left = if w <= self.params.low_window {
            w / 2
        } else {
            w * fixed(self.params.beta, BETA_ONE) / BETA_ONE
        };
        Some(left.max(2) as f64)
    }
}
