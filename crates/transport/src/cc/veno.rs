//! Veno.
//!
//! Source: C. Fu and S. Liew, "TCP Veno: TCP Enhancement for Transmission over Wireless Access
//! Networks", IEEE JSAC 21(2), 2003, section II, as Linux computes it (Linux 6.1,
//! net/ipv4/tcp_veno.c).
//!
//! | symbol | meaning | unit |
//! |---|---|---|
//! | w | congestion window | segments |
//! | BaseRTT | least round trip since the start or the last pause | us |
//! | RTT | round trip of the acknowledgement | us |
//! | N | segments waiting in queues, w - w BaseRTT / RTT, in halves | segments |
//! | beta | N from which the path counts as congested, 3 | segments |
//!
//! ```text
//! N < beta:   w += 1 every round trip         a loss leaves floor(4 w / 5)
//! otherwise:  w += 1 every other round trip   a loss leaves floor(w / 2); at least 2 each
//! ```
//!
//! As in Linux, and unlike the paper: RTT is that of the latest acknowledgement rather than of a
//! round trip; with fewer than three samples, and while data is missing or being repaired, the
//! growth is Reno's; and a loss uses the N with which the window could last grow.

use std::sync::Arc;

use redtail_core::{Span, Time};

use super::additive::{Additive, fixed, whole};
use super::{AckSample, CaState, CongestionKind, ControllerConfig, GrowthLaw, PathSample, Window};
use crate::constants::constants;

constants! {
    /// The constants of Veno.
    pub struct VenoParams {
        /// beta: number of segments waiting in queues from which the path counts as congested; counted in halves.
        beta: f64 = 3.0, in 0.5 => 1e4, "Fu and Liew 2003, section II; Linux 6.1, net/ipv4/tcp_veno.c, beta";
        /// Factor of a reduction by a loss that is taken for a random one.
        random_factor: f64 = 0.8, in 0.05 => 0.95, "Fu and Liew 2003, section II: 4/5";
        /// Factor of a reduction by a loss of a congested path.
        congested_factor: f64 = 0.5, in 0.05 => 0.95, "Fu and Liew 2003, section II";
    }
}

/// The value of an unknown round trip.
const UNKNOWN_RTT: u64 = 0x7fff_ffff;

/// The growth law of TCP Veno with its state.
#[derive(Clone, Debug)]
pub struct Veno {
    params: Arc<VenoParams>,
    additive: Additive,
    /// In microseconds, plus one.
    base_rtt: u64,
    rtt: u64,
    samples: u32,
    state: CaState,
    /// Whether the next step in the congestive state grows the window.
    inc: bool,
    /// N in halves of a segment.
    diff: u64,
}

impl Default for Veno {
    fn default() -> Self {
        Self {
            params: Arc::default(),
            additive: Additive::default(),
            base_rtt: UNKNOWN_RTT,
            rtt: UNKNOWN_RTT,
            samples: 0,
            state: CaState::Open,
            inc: true,
            diff: 0,
        }
    }
}

impl Veno {
    fn new(params: &Arc<VenoParams>) -> Self {
        Self {
            params: Arc::clone(params),
            ..Self::default()
        }
    }

    /// Whether the path counts as congested.
    fn is_congested(&self) -> bool {
        self.diff >= fixed(self.params.beta, 2)
    }

    /// Updates N for a window of `w`. Returns whether N is known.
    fn judges(&mut self, w: u64) -> bool {
        if self.state != CaState::Open {
            return false;
        }
        let judges = self.samples > 2;
        if judges {
            self.diff = 2 * w - 2 * w * self.base_rtt.min(self.rtt) / self.rtt;
        }
        self.rtt = UNKNOWN_RTT;
        judges
    }
}

impl GrowthLaw for Veno {
    type Params = VenoParams;

    fn start(_: &ControllerConfig, params: &Arc<VenoParams>) -> Self {
        Self::new(params)
    }

    fn grown(&mut self, cwnd: f64, sample: &AckSample, mss: f64) -> f64 {
        let w = whole(cwnd, mss);
        let acked = self.additive.segments(sample.acked, mss);
        let judges = self.judges(w);
        if !judges || !self.is_congested() {
            let grown = self.additive.grown(w, w, acked);
            return if judges { grown.max(2) } else { grown } as f64 * mss;
        }
        let mut grown = w;
        if u64::from(self.additive.cnt) >= w {
            grown += u64::from(self.inc);
            self.inc = !self.inc;
            self.additive.cnt = 0;
        } else {
            self.additive.cnt += acked as u32;
        }
        grown.max(2) as f64 * mss
    }

    fn observe(&mut self, window: &mut Window, _sample: &AckSample, mss: f64) {
        self.judges(whole(window.cwnd, mss));
    }

    fn watches(&self) -> bool {
        true
    }

    fn watch(&mut self, _cwnd: f64, sample: &PathSample, _mss: f64) {
        if let Some(rtt) = sample.rtt {
            let rtt = rtt.as_ps() / Span::from_us(1).as_ps() + 1;
            self.base_rtt = self.base_rtt.min(rtt);
            self.rtt = self.rtt.min(rtt);
            self.samples = self.samples.saturating_add(1);
        }
        if sample.state == CaState::Open && self.state != CaState::Open {
            self.rtt = UNKNOWN_RTT; // veno_enable
        }
        self.state = sample.state;
    }

    fn beta(&self) -> f64 {
        match self.is_congested() {
            true => self.params.congested_factor,
            false => self.params.random_factor,
        }
    }

    fn counts_segments(&self) -> bool {
        true
    }

    fn on_congestion(&mut self, _window: f64, _kind: CongestionKind) {
        self.additive.reset();
    }

    fn ssthresh(&mut self, window: f64, _kind: CongestionKind) -> Option<f64> {
        let left = window as u64 * fixed(self.beta(), 1000) / 1000;
        Some(left.max(2) as f64)
    }

    fn after_pause(&mut self, _sent: Time, _now: Time) {
        self.base_rtt = UNKNOWN_RTT;
        self.rtt = UNKNOWN_RTT;
        self.inc = true;
    }
}
