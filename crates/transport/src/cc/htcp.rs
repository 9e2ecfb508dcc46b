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

use std::sync::Arc;

use redtail_core::{ParamError, Span, Time};

use super::additive::{Additive, fixed, whole};
use super::tick::{TICKS_PER_S, ticks, ticks_of};
use super::{AckSample, CaState, CongestionKind, ControllerConfig, GrowthLaw, PathSample};
use crate::constants::{check_order, constants};

const SHIFT: u32 = 7;
const ONE: u64 = 1 << SHIFT;

constants! {
    /// The constants of H-TCP. Times are in ticks of 4 ms, rounded up.
    pub struct HtcpParams {
        /// Least factor of a reduction; in 1/128.
        beta_min: f64 = 0.5, in 0.05 => 0.95, "Leith and Shorten 2004; Linux 6.1, net/ipv4/tcp_htcp.c, BETA_MIN";
        /// Greatest factor of a reduction; in 1/128.
        beta_max: f64 = 0.8, in 0.05 => 0.95, "Leith and Shorten 2004; Linux 6.1, tcp_htcp.c, BETA_MAX";
        /// Delta_L: time since the last congestion event up to which the growth is Reno's.
        delta_l: Span = Span::from_s(1), in Span::ZERO => Span::from_s(1000), "Leith and Shorten 2004; draft-leith-tcp-htcp-06, section 2";
        /// Round-trip time to which the growth is scaled.
        reference_rtt: Span = Span::from_ms(100), in Span::from_ms(4) => Span::from_s(10), "draft-leith-tcp-htcp-06, section 2; Linux 6.1, tcp_htcp.c, htcp_alpha_update";
        /// Scale the growth with the round-trip time.
        rtt_scaling: bool = true, "Linux 6.1, tcp_htcp.c, use_rtt_scaling";
        /// Reduce by `beta_min` when the bandwidth has changed.
        bandwidth_switch: bool = true, "Linux 6.1, tcp_htcp.c, use_bandwidth_switch";
        /// Change of the bandwidth between reductions that counts, as a share.
        bandwidth_change: f64 = 0.2, in 0.0 => 1.0, "draft-leith-tcp-htcp-06, section 3; Linux 6.1, tcp_htcp.c, htcp_beta_update";
        /// Largest excess over the greatest round-trip time by which a round trip raises it.
        rtt_step: Span = Span::from_ms(20), in Span::ZERO => Span::from_s(10), "Linux 6.1, tcp_htcp.c, measure_rtt";
        /// Least round-trip time above which the factor follows the round trips.
        least_rtt: Span = Span::from_ms(10), in Span::ZERO => Span::from_s(10), "Linux 6.1, tcp_htcp.c, htcp_beta_update";
        /// Share by which a reduction lowers the distance of the greatest round-trip time to the least.
        rtt_decay: f64 = 0.05, in 0.0 => 1.0, "Linux 6.1, tcp_htcp.c, htcp_recalc_ssthresh";
    }
    check HtcpParams::in_order
}

impl HtcpParams {
    fn in_order(&self) -> Result<(), ParamError> {
        check_order("beta_min", self.beta_min, "beta_max", self.beta_max)
    }

    fn beta_min(&self) -> u64 {
        fixed(self.beta_min, ONE)
    }
}

/// The growth law of H-TCP with its state.
#[derive(Clone, Debug)]
pub struct Htcp {
    params: Arc<HtcpParams>,
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
        Self::new(&Arc::default())
    }
}

impl Htcp {
    fn new(params: &Arc<HtcpParams>) -> Self {
        Self {
            params: Arc::clone(params),
            additive: Additive::default(),
            alpha: ONE,
            beta: params.beta_min(),
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
            if rtt <= self.rtt_max + ticks_of(self.params.rtt_step) {
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
        let params = &*self.params;
        let change = fixed(params.bandwidth_change, 1000);
        let same = (1000 - change) * old..=(1000 + change) * old;
        if params.bandwidth_switch && !same.contains(&(1000 * self.b_max)) {
            self.beta = params.beta_min();
            self.follows_rtt = false;
        } else if self.follows_rtt && self.rtt_min > ticks_of(params.least_rtt) && self.rtt_max > 0
        {
            self.beta = ((self.rtt_min << SHIFT) / self.rtt_max)
                .clamp(params.beta_min(), fixed(params.beta_max, ONE));
        } else {
            self.beta = params.beta_min();
            self.follows_rtt = true;
        }
    }

    fn update_alpha(&mut self) {
        let mut factor = 1;
        let delta = self.delta();
        let params = &*self.params;
        let slow = ticks_of(params.delta_l);
        if delta > slow {
            let d = delta - slow;
            factor = 1 + (10 * d + (d / 2) * (d / 2) / TICKS_PER_S) / TICKS_PER_S;
        }
        if params.rtt_scaling && self.rtt_min > 0 {
            let scale =
                ((ticks_of(params.reference_rtt) << 3) / self.rtt_min).clamp(1 << 2, 10 << 3);
            factor = ((factor << 3) / scale).max(1);
        }
        self.alpha = 2 * factor * (ONE - self.beta);
    }
}

impl GrowthLaw for Htcp {
    type Params = HtcpParams;

    fn start(_: &ControllerConfig, params: &Arc<HtcpParams>) -> Self {
        Self::new(params)
    }

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
            let kept = fixed(1.0 - self.params.rtt_decay, 1000);
            self.rtt_max = self.rtt_min + (self.rtt_max - self.rtt_min) * kept / 1000;
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
