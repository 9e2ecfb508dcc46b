//! YeAH.
//!
//! Source: A. Baiocchi, A. Castellani and F. Vacirca, "YeAH-TCP: Yet Another Highspeed TCP",
//! PFLDnet 2007, section 2, as Linux computes it (Linux 6.1, net/ipv4/tcp_yeah.c, with
//! what it takes from tcp_vegas.c).
//!
//! | symbol | meaning | unit |
//! |---|---|---|
//! | w | congestion window | segments |
//! | BaseRTT | least round trip since the start or the last pause | us |
//! | RTT | least round trip of a round | us |
//! | Q | segments waiting in queues, floor(w (RTT - BaseRTT) / RTT) | segments |
//! | Q_max | most that may wait (TCP_YEAH_ALPHA), 80 | segments |
//! | phi | delay at most is BaseRTT / phi, 8 | 1 |
//! | gamma, epsilon | an early decongestion takes Q / gamma, at most w / 2^epsilon; 1 and 1 | 1 |
//! | delta | a loss takes w / 2^delta at least, 3 | 1 |
//! | rho | rounds of slow mode from which a loss takes half, 16 | 1 |
//! | zeta | rounds of fast mode after which count_reno starts anew, 50 | 1 |
//! | count_reno | estimate of a competing Reno's window, 2 at first | segments |
//!
//! ```text
//! fast mode:  w += 1 for min(w, 100) acknowledged     (Scalable TCP)
//! slow mode:  w += 1 for w acknowledged               (Reno)
//!
//! at the end of a round with three samples at least:
//!   Q > Q_max or RTT - BaseRTT > BaseRTT/phi:   slow mode;
//!       if Q > Q_max and w > count_reno:  w = ssthresh = max(w - min(Q/gamma, w/2), count_reno)
//!       count_reno += 1, from w/2 if it is 2
//!   otherwise:   fast mode; after zeta rounds of it in a row without a loss count_reno = 2
//!
//! loss: w -= max(min(Q, w/2), w/8) after fewer than rho rounds of slow mode, else w/2;
//!       at least 2 are left; count_reno /= 2, at least 2
//! ```
//!
//! In the paper the rounds of fast mode must be consecutive. In Linux, and here, only losses
//! interrupt them.

use std::sync::Arc;

use redtail_core::{Span, Time};

use super::additive::{Additive, whole};
use super::{AckSample, CaState, CongestionKind, ControllerConfig, GrowthLaw, PathSample, Window};
use crate::constants::constants;

constants! {
    /// The constants of YeAH.
    pub struct YeahParams {
        /// Q_max: most segments that may wait in queues in fast mode.
        q_max: u64 = 80, in 1 => 100_000, "Linux 6.1, net/ipv4/tcp_yeah.c, TCP_YEAH_ALPHA";
        /// gamma: an early decongestion takes Q / gamma.
        gamma: u64 = 1, in 1 => 1000, "Baiocchi et al. 2007, section 2; Linux 6.1, tcp_yeah.c, TCP_YEAH_GAMMA";
        /// delta: a loss takes w / 2^delta at least.
        delta: u32 = 3, in 1 => 16, "Baiocchi et al. 2007, section 2; Linux 6.1, tcp_yeah.c, TCP_YEAH_DELTA";
        /// epsilon: an early decongestion takes at most w / 2^epsilon.
        epsilon: u32 = 1, in 1 => 16, "Linux 6.1, tcp_yeah.c, TCP_YEAH_EPSILON";
        /// phi: the queueing delay of fast mode is at most BaseRTT / phi.
        phi: u64 = 8, in 1 => 10_000, "Baiocchi et al. 2007, section 2; Linux 6.1, tcp_yeah.c, TCP_YEAH_PHY";
        /// rho: number of rounds of slow mode from which a loss takes half.
        rho: u32 = 16, in 0 => 1_000_000, "Linux 6.1, tcp_yeah.c, TCP_YEAH_RHO";
        /// zeta: number of rounds of fast mode after which the estimate of a competing Reno starts anew.
        zeta: u32 = 50, in 0 => 1_000_000, "Linux 6.1, tcp_yeah.c, TCP_YEAH_ZETA";
        /// Number of segments to be acknowledged for one segment of growth in fast mode.
        each: u64 = 100, in 1 => 10_000, "Linux 6.1, tcp_yeah.c, TCP_SCALABLE_AI_CNT";
    }
}

/// The value of an unknown round trip.
const UNKNOWN_RTT: u64 = 0x7fff_ffff;

/// The growth law of YeAH-TCP with its state.
#[derive(Clone, Debug)]
pub struct Yeah {
    params: Arc<YeahParams>,
    additive: Additive,
    state: CaState,
    /// The round ends when more than this is acknowledged.
    end: u64,
    /// The least round trip in microseconds, plus one.
    base_rtt: u64,
    round_rtt: u64,
    samples: u32,
    /// The estimated queue Q of the latest round.
    queue: u64,
    /// Consecutive rounds of slow mode; zero in fast mode.
    slow_rounds: u32,
    count_reno: u64,
    fast_rounds: u32,
}

impl Default for Yeah {
    fn default() -> Self {
        Self {
            params: Arc::default(),
            additive: Additive::default(),
            state: CaState::Open,
            end: 0,
            base_rtt: UNKNOWN_RTT,
            round_rtt: UNKNOWN_RTT,
            samples: 0,
            queue: 0,
            slow_rounds: 0,
            count_reno: 2,
            fast_rounds: 0,
        }
    }
}

impl Yeah {
    /// Ends the round if `sample` is past its end. Returns the window that an early decongestion
    /// leaves of `w`.
    fn end_round(&mut self, w: u64, sample: &AckSample) -> Option<u64> {
        if sample.una <= self.end {
            return None;
        }
        let left = (self.samples > 2).then(|| self.judge(w)).flatten();
        self.begin_round(sample.next);
        left
    }

    fn begin_round(&mut self, end: u64) {
        self.end = end;
        self.samples = 0;
        self.round_rtt = UNKNOWN_RTT;
    }

    fn judge(&mut self, w: u64) -> Option<u64> {
        let delay = self.round_rtt - self.base_rtt;
        self.queue = w * delay / self.round_rtt;
        if self.queue <= self.params.q_max && delay <= self.base_rtt / self.params.phi {
            self.fast_rounds += 1;
            if self.fast_rounds > self.params.zeta {
                self.count_reno = 2;
                self.fast_rounds = 0;
            }
            self.slow_rounds = 0;
            return None;
        }
        let mut left = None;
        if self.queue > self.params.q_max && w > self.count_reno {
            let reduction = (self.queue / self.params.gamma).min(w >> self.params.epsilon);
            left = Some((w - reduction).max(self.count_reno));
        }
        if self.count_reno <= 2 {
            self.count_reno = (left.unwrap_or(w) / 2).max(2);
        } else {
            self.count_reno += 1;
        }
        self.slow_rounds += 1;
        left
    }
}

impl Yeah {
    fn new(params: &Arc<YeahParams>) -> Self {
        Self {
            params: Arc::clone(params),
            ..Self::default()
        }
    }
}

impl GrowthLaw for Yeah {
    type Params = YeahParams;

    fn start(_: &ControllerConfig, params: &Arc<YeahParams>) -> Self {
        Self::new(params)
    }

    fn grown(&mut self, cwnd: f64, sample: &AckSample, mss: f64) -> f64 {
        let w = whole(cwnd, mss);
        let acked = self.additive.segments(sample.acked, mss);
        let each = if self.slow_rounds == 0 {
            w.min(self.params.each)
        } else {
            w
        };
        let grown = self.additive.grown(w, each, acked);
        self.end_round(grown, sample).unwrap_or(grown) as f64 * mss
    }

    fn observe(&mut self, window: &mut Window, sample: &AckSample, mss: f64) {
        if let Some(left) = self.end_round(whole(window.cwnd, mss), sample) {
            window.cwnd = left as f64 * mss;
            window.ssthresh = window.cwnd;
        }
    }

    fn watches(&self) -> bool {
        true
    }

    fn watch(&mut self, _cwnd: f64, sample: &PathSample, _mss: f64) {
        if let Some(rtt) = sample.rtt {
            let rtt = rtt.as_ps() / Span::from_us(1).as_ps() + 1;
            self.base_rtt = self.base_rtt.min(rtt);
            self.round_rtt = self.round_rtt.min(rtt);
            self.samples += 1;
        }
        if sample.state == CaState::Open && self.state != CaState::Open {
            self.begin_round(sample.next); // vegas_enable
        }
        self.state = sample.state;
    }

    fn beta(&self) -> f64 {
        0.5
    }

    fn counts_segments(&self) -> bool {
        true
    }

    fn on_congestion(&mut self, _window: f64, _kind: CongestionKind) {
        self.additive.reset();
    }

    fn ssthresh(&mut self, window: f64, _kind: CongestionKind) -> Option<f64> {
        let w = window as u64;
        let half = (w / 2).max(2);
        let reduction = if self.slow_rounds < self.params.rho {
            self.queue.min(half).max(w >> self.params.delta)
        } else {
            half
        };
        self.fast_rounds = 0;
        self.count_reno = (self.count_reno / 2).max(2);
        Some(w.saturating_sub(reduction).max(2) as f64)
    }

    fn after_pause(&mut self, _sent: Time, _now: Time) {
        self.base_rtt = UNKNOWN_RTT;
        self.begin_round(self.end);
    }
}
