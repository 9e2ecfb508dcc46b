//! Westwood+.
//!
//! Source: S. Mascolo et al., "TCP Westwood: Bandwidth Estimation for Enhanced Transport over
//! Wireless Links", MobiCom 2001, and L. Grieco and S. Mascolo, "Performance evaluation and
//! comparison of Westwood+, New Reno, and Vegas TCP congestion control", ACM CCR 34(2), 2004,
//! section 2.1, as Linux computes it (Linux 6.1, net/ipv4/tcp_westwood.c).
//!
//! | symbol | meaning | unit |
//! |---|---|---|
//! | d | acknowledged since the estimation interval began | bytes |
//! | interval | the latest round trip, at least 50 ms | ticks, 4 ms |
//! | b_k | d / interval | bytes/tick |
//! | BWE | bandwidth estimate | bytes/tick |
//! | RTT_min | least round trip since the start or the last timeout | ticks |
//!
//! ```text
//! at the first acknowledgement after an interval:
//!     s   = floor((7 s + b_k) / 8)
//!     BWE = floor((7 BWE + s) / 8)                   both b_k at first
//! growth:          Reno's, in whole segments
//! loss, mark:      half during recovery; then w = ssthresh = max(BWE RTT_min / MSS, 2)
//! timeout:         ssthresh = max(BWE RTT_min / MSS, 2); RTT_min is measured anew
//! ```
//!
//! A duplicate acknowledgement counts as one segment, which is subtracted from later
//! acknowledgements (`westwood_acked_count`). The papers set the window when the third duplicate
//! arrives, and have one filter. Linux reduces as Reno does during recovery, sets the window when
//! recovery ends, and filters twice.

use std::sync::Arc;

use redtail_core::{Span, Time};

use super::additive::Additive;
use super::tick::{ticks, ticks_of, whole_ticks};
use super::{AckSample, CaState, CongestionKind, ControllerConfig, GrowthLaw, PathSample};
use crate::constants::constants;

constants! {
    /// The constants of Westwood+.
    pub struct WestwoodParams {
        /// Shortest interval of an estimate of the bandwidth; in whole ticks of 4 ms.
        least_interval: Span = Span::from_ms(50), in Span::from_ms(4) => Span::from_s(100), "Grieco and Mascolo 2004, section 2.1; Linux 6.1, net/ipv4/tcp_westwood.c, TCP_WESTWOOD_RTT_MIN";
        /// Round-trip time before the first sample; in whole ticks of 4 ms.
        initial_rtt: Span = Span::from_s(20), in Span::from_ms(4) => Span::from_s(100), "Linux 6.1, tcp_westwood.c, TCP_WESTWOOD_INIT_RTT";
        /// Each of the two filters gives a new value this part of the weight.
        filter: u64 = 8, in 1 => 1000, "Linux 6.1, tcp_westwood.c, westwood_do_filter";
        /// Factor of a reduction during fast recovery, before the estimate sets the window.
        beta: f64 = 0.5, in 0.05 => 0.95, "Linux 6.1, tcp_westwood.c (tcp_reno_ssthresh)";
    }
}

/// The growth law of TCP Westwood with its state.
#[derive(Clone, Debug)]
pub struct Westwood {
    params: Arc<WestwoodParams>,
    additive: Additive,
    /// The filtered sample s and the bandwidth estimate BWE; `None` before the first interval.
    estimate: Option<(u64, u64)>,
    /// When the interval began.
    since: Option<u64>,
    /// Bytes acknowledged in the present interval (d).
    acked: u64,
    /// Bytes already counted for duplicates.
    accounted: u64,
    rtt: u64,
    rtt_min: u64,
    /// Whether the next acknowledgement sets RTT_min.
    reset_rtt_min: bool,
    /// Whether the first acknowledgement, from which counting begins, has arrived.
    begun: bool,
    /// Size of a full segment, bytes.
    mss: u64,
}

impl Default for Westwood {
    fn default() -> Self {
        Self::new(&Arc::default())
    }
}

impl Westwood {
    fn new(params: &Arc<WestwoodParams>) -> Self {
        let initial_rtt = whole_ticks(params.initial_rtt);
        Self {
            params: Arc::clone(params),
            additive: Additive::default(),
            estimate: None,
            since: None,
            acked: 0,
            accounted: 0,
            rtt: initial_rtt,
            rtt_min: initial_rtt,
            reset_rtt_min: true,
            begun: false,
            mss: 1,
        }
    }
}

impl Westwood {
    fn filter(&mut self, interval: u64) {
        let sample = self.acked / interval;
        self.estimate = Some(match self.estimate {
            None | Some((0, 0)) => (sample, sample),
            Some((first, bwe)) => {
                let parts = self.params.filter;
                let first = ((parts - 1) * first + sample) / parts;
                (first, ((parts - 1) * bwe + first) / parts)
            }
        });
    }

    /// The bytes that an acknowledgement of `acked` bytes counts for.
    fn count(&mut self, acked: u64, state: CaState) -> u64 {
        if state == CaState::Open {
            return acked;
        }
        let mss = self.mss;
        match acked {
            0 => {
                self.accounted += mss;
                mss
            }
            _ if acked <= mss => acked,
            _ if self.accounted >= acked => {
                self.accounted -= acked;
                mss
            }
            _ => acked - std::mem::take(&mut self.accounted),
        }
    }

    /// BWE RTT_min in segments, at least 2.
    fn fills(&self) -> f64 {
        let (_, bwe) = self.estimate.unwrap_or_default();
        (bwe * self.rtt_min / self.mss).max(2) as f64
    }
}

impl GrowthLaw for Westwood {
    type Params = WestwoodParams;

    fn start(_: &ControllerConfig, params: &Arc<WestwoodParams>) -> Self {
        Self::new(params)
    }

    fn grown(&mut self, cwnd: f64, sample: &AckSample, mss: f64) -> f64 {
        self.additive.grow(cwnd, sample.acked, mss, |w| w)
    }

    fn watches(&self) -> bool {
        true
    }

    fn watch(&mut self, _cwnd: f64, sample: &PathSample, mss: f64) {
        self.mss = mss as u64;
        let tick = ticks(sample.now);
        let since = *self.since.get_or_insert(tick);
        if tick - since > self.rtt.max(whole_ticks(self.params.least_interval)) {
            self.filter(tick - since);
            self.acked = 0;
            self.since = Some(tick);
        }
        if std::mem::replace(&mut self.begun, true) {
            self.acked += self.count(sample.acked, sample.state);
        }
        self.rtt_min = if std::mem::take(&mut self.reset_rtt_min) {
            self.rtt
        } else {
            self.rtt_min.min(self.rtt)
        };
        if let Some(rtt) = sample.rtt {
            self.rtt = ticks_of(rtt);
        }
    }

    fn on_handshake(&mut self, now: Time) {
        self.since = Some(ticks(now));
    }

    fn beta(&self) -> f64 {
        self.params.beta
    }

    fn counts_segments(&self) -> bool {
        true
    }

    fn on_congestion(&mut self, _window: f64, kind: CongestionKind) {
        self.additive.reset();
        self.reset_rtt_min |= matches!(kind, CongestionKind::Timeout { .. });
    }

    fn ssthresh(&mut self, window: f64, kind: CongestionKind) -> Option<f64> {
        Some(match kind {
            CongestionKind::Timeout { .. } => self.fills(),
            CongestionKind::Loss | CongestionKind::Ecn => {
                ((window as u64 as f64 * self.params.beta) as u64).max(2) as f64
            }
        })
    }

    fn on_episode_end(&mut self, timeout: bool, _mss: f64, _now: Time) -> Option<f64> {
        (!timeout).then(|| self.fills())
    }
}
