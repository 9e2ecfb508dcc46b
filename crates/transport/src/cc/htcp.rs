//! H-TCP.
//!
//! Source: D. Leith and R. Shorten, "H-TCP: TCP for high-speed and long-distance networks",
//! PFLDnet 2004; draft-leith-tcp-htcp-06, sections 2 and 3; as Linux computes it (Linux 6.1,
//! net/ipv4/tcp_htcp.c).
//!
//! | symbol | meaning | unit |
//! |---|---|---|
//! | w | congestion window | segments |
//! | Delta | time since the last congestion event was over | s, in ticks of 4 ms |
//! | Delta_L | up to here alpha is Reno's, 1 s | s |
//! | alpha | increase of a round trip, in 1/128 | segments |
//! | beta | what a reduction leaves, 0.5 to 0.8, in 1/128 | 1 |
//! | RTT_min, RTT_max | least and greatest round trip | ticks |
//! | B | acknowledged in a round of a window each, smoothed by 1/4 | segments/s |
//! | B_max | greatest B since the last reduction | segments/s |
//!
//! ```text
//! f     = 1                                          Delta <= Delta_L
//!         1 + 10 d + (d/2)^2                         d = Delta - Delta_L
//! f    /= 1 / (10 RTT_min), within 0.5 and 10        (round trips scaled to 100 ms)
//! alpha = 2 f (1 - beta),  f a whole number and at least 1; computed when w grows
//! beta  = 0.5                    if B_max changed by more than 20 % since the last reduction
//!         RTT_min / RTT_max      otherwise, within 0.5 and 0.8; 0.5 for RTT_min <= 10 ms
//!
//! w += 1 for w / alpha acknowledged;   loss: w = floor(beta w), at least 2
//! ```
//!
//! RTT_max follows round trips that are up to 20 ms above it, and is lowered at each reduction by 5
//! % of its distance to RTT_min. After a change of B_max the next reduction is by 0.5 as well. As
//! in Linux, and unlike the draft: f is a whole number, so that up to Delta_L alpha is Reno's for
//! round trips above 200 ms as well.

use redtail_core::{Span, Time};

use super::additive::{Additive, whole};
use super::tick::{TICKS_PER_S, ticks, ticks_of};
use super::{AckSample, CaState, CongestionKind, GrowthLaw, PathSample};

const SHIFT: u32 = 7;
const ONE: u64 = 1 << SHIFT;
const BETA_MIN: u64 = ONE / 2;
const BETA_MAX: u64 = 102;
/// The largest excess over RTT_max by which a round trip raises it.
const RTT_STEP: u64 = 5;
/// RTT_min above which beta follows the round trips: 10 ms in ticks, rounded up.
const LEAST_RTT: u64 = 3;

/// The growth law of H-TCP with its state.
#[derive(Clone, Debug)]
pub struct Htcp {
    additive: Additive,
    alpha: u64,
    beta: u64,
    /// Whether the next reduction may use the ratio of the round trips.
    follows_rtt: bool,
    /// Segments acknowledged by the present acknowledgement.
    acked: u64,
    /// The least round trip; zero when none is known.
    rtt_min: u64,
    rtt_max: u64,
    /// When the last congestion event ended.
    last_cong: Option<u64>,
    /// The values of last_cong, RTT_max and B_max before the last reduction, for an undo.
    saved: Option<(Option<u64>, u64, u64)>,
    /// The tick of the latest acknowledgement.
    now: u64,
    // The bandwidth.
    packets: u64,
    since: Option<u64>,
    b: u64,
    b_min: u64,
    b_max: u64,
    old_b_max: u64,
}

impl Default for Htcp {
    fn default() -> Self {
        Self {
            additive: Additive::default(),
            alpha: ONE,
            beta: BETA_MIN,
            follows_rtt: false,
            acked: 1,
            rtt_min: 0,
            rtt_max: 0,
            last_cong: None,
            saved: None,
            now: 0,
            packets: 0,
            since: None,
            b: 0,
            b_min: 0,
            b_max: 0,
            old_b_max: 0,
        }
    }
}

impl Htcp {
    /// The time since the last congestion event, in ticks (Delta).
    fn delta(&self) -> u64 {
        self.last_cong.map_or(0, |at| self.now.saturating_sub(at))
    }

    fn measure_rtt(&mut self, rtt: u64, open: bool) {
        if self.rtt_min == 0 || rtt < self.rtt_min {
            self.rtt_min = rtt;
        }
        if open {
            self.rtt_max = self.rtt_max.max(self.rtt_min);
            if rtt <= self.rtt_max + RTT_STEP {
                self.rtt_max = self.rtt_max.max(rtt);
            }
        }
    }

    fn measure_bandwidth(&mut self, w: u64, sample: &PathSample, mss: f64) {
        if !matches!(sample.state, CaState::Open | CaState::Disorder) {
            self.packets = 0;
            self.since = Some(self.now);
            return;
        }
        self.packets += sample.segments(mss);
        let growth = (self.alpha >> SHIFT).max(1);
        let full = w
            .checked_sub(growth)
            .is_some_and(|enough| self.packets >= enough);
        let elapsed = self.since.map_or(u64::MAX, |since| self.now - since);
        if !full || self.rtt_min == 0 || elapsed < self.rtt_min {
            return;
        }
        let b = self.packets * TICKS_PER_S / elapsed;
        if self.delta() / self.rtt_min <= 3 {
            (self.b, self.b_min, self.b_max) = (b, b, b);
        } else {
            self.b = (3 * self.b + b) / 4;
            self.b_max = self.b_max.max(self.b);
            self.b_min = self.b_min.min(self.b_max);
        }
        self.packets = 0;
        self.since = Some(self.now);
    }

    fn update_beta(&mut self) {
        let old = std::mem::replace(&mut self.old_b_max, self.b_max);
        if !(4 * old..=6 * old).contains(&(5 * self.b_max)) {
            self.beta = BETA_MIN;
            self.follows_rtt = false;
        } else if self.follows_rtt && self.rtt_min > LEAST_RTT && self.rtt_max > 0 {
            self.beta = ((self.rtt_min << SHIFT) / self.rtt_max).clamp(BETA_MIN, BETA_MAX);
        } else {
            self.beta = BETA_MIN;
            self.follows_rtt = true;
        }
    }

    fn update_alpha(&mut self) {
        let mut factor = 1;
        let delta = self.delta();
        if delta > TICKS_PER_S {
            let d = delta - TICKS_PER_S;
            factor = 1 + (10 * d + (d / 2) * (d / 2) / TICKS_PER_S) / TICKS_PER_S;
        }
        if self.rtt_min > 0 {
            let scale = ((TICKS_PER_S << 3) / (10 * self.rtt_min)).clamp(1 << 2, 10 << 3);
            factor = ((factor << 3) / scale).max(1);
        }
        self.alpha = 2 * factor * (ONE - self.beta);
    }
}

impl GrowthLaw for Htcp {
    fn grown(&mut self, cwnd: f64, _sample: &AckSample, mss: f64) -> f64 {
        let w = whole(cwnd, mss);
        let mut grown = w;
        if (u64::from(self.additive.cnt) * self.alpha) >> SHIFT >= w {
            grown += 1;
            self.additive.cnt = 0;
            self.update_alpha();
        } else {
            self.additive.cnt += self.acked as u32;
        }
        self.acked = 1;
        grown as f64 * mss
    }

    fn watches(&self) -> bool {
        true
    }

    fn watch(&mut self, cwnd: f64, sample: &PathSample, mss: f64) {
        self.now = ticks(sample.now);
        self.last_cong.get_or_insert(self.now);
        let open = sample.state == CaState::Open;
        if open {
            self.acked = sample.segments(mss);
        }
        if let Some(rtt) = sample.rtt.filter(|&rtt| rtt > Span::ZERO) {
            self.measure_rtt(ticks_of(rtt), open);
        }
        self.measure_bandwidth(whole(cwnd, mss), sample, mss);
    }

    fn on_handshake(&mut self, now: Time) {
        self.now = ticks(now);
        self.last_cong = Some(self.now);
    }

    fn beta(&self) -> f64 {
        self.beta as f64 / ONE as f64
    }

    fn counts_segments(&self) -> bool {
        true
    }

    fn ssthresh(&mut self, window: f64, _kind: CongestionKind) -> Option<f64> {
        self.update_beta();
        self.update_alpha();
        if self.rtt_min > 0 && self.rtt_max > self.rtt_min {
            self.rtt_max = self.rtt_min + (self.rtt_max - self.rtt_min) * 95 / 100;
        }
        Some(((window as u64 * self.beta) >> SHIFT).max(2) as f64)
    }

    fn on_congestion(&mut self, _window: f64, _kind: CongestionKind) {
        self.additive.reset();
        self.saved = Some((self.last_cong, self.rtt_max, self.old_b_max));
        self.last_cong = Some(self.now);
    }

    fn on_episode_end(&mut self, _timeout: bool, _mss: f64, now: Time) -> Option<f64> {
        if self.saved.take().is_some() {
            self.last_cong = Some(ticks(now));
        }
        None
    }

    fn undo(&mut self) {
        if let Some((last_cong, rtt_max, old_b_max)) = self.saved.take() {
            self.last_cong = last_cong;
            self.rtt_max = rtt_max;
            self.old_b_max = old_b_max;
        }
    }
}
