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

use redtail_core::{Span, Time};

use super::additive::{Additive, whole};
use super::{AckSample, CaState, CongestionKind, GrowthLaw, PathSample, Window};

/// beta in halves of a segment (V_PARAM_SHIFT).
const BETA: u64 = 3 << 1;
/// The value of an unknown round trip.
const UNKNOWN_RTT: u64 = 0x7fff_ffff;

/// The growth law of TCP Veno with its state.
#[derive(Clone, Debug)]
pub struct Veno {
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
    fn grown(&mut self, cwnd: f64, sample: &AckSample, mss: f64) -> f64 {
        let w = whole(cwnd, mss);
        let acked = self.additive.segments(sample.acked, mss);
        let judges = self.judges(w);
        if !judges || self.diff < BETA {
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
        if self.diff < BETA { 0.8 } else { 0.5 }
    }

    fn counts_segments(&self) -> bool {
        true
    }

    fn on_congestion(&mut self, _window: f64, _kind: CongestionKind) {
        self.additive.reset();
    }

    fn ssthresh(&mut self, window: f64, _kind: CongestionKind) -> Option<f64> {
        let w = window as u64;
        let left = if self.diff < BETA { w * 4 / 5 } else { w / 2 };
        Some(left.max(2) as f64)
    }

    fn after_pause(&mut self, _sent: Time, _now: Time) {
        self.base_rtt = UNKNOWN_RTT;
        self.rtt = UNKNOWN_RTT;
        self.inc = true;
    }
}
