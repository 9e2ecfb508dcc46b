//! CUBIC.
//!
//! Source: RFC 9438, section 4. The window is a cubic function of the time since congestion
//! avoidance began: concave up to the window at which the last loss happened, flat around it,
//! convex beyond it. It is never below the window that Reno would have.
//!
//! | symbol | meaning | unit |
//! |---|---|---|
//! | C | scale, 0.4 | segments/s^3 |
//! | beta | factor of a reduction, 0.7 | 1 |
//! | W_max | window before the last reduction | segments |
//! | K | time from the epoch's start to W_max | s |
//! | W_est | window of a Reno-friendly flow | segments |
//!
//! ```text
//! K          = cbrt((W_max - cwnd_epoch) / C)                     (figure 2)
//! W_cubic(t) = C (t - K)^3 + W_max                                (figure 1)
//! target     = W_cubic(t + RTT), between cwnd and 1.5 cwnd        (section 4.2)
//! cwnd      += (target - cwnd) / cwnd  for each segment acknowledged
//! W_est     += alpha segments_acked / cwnd                        (figure 4)
//! alpha      = 3 (1 - beta) / (1 + beta), and 1 from cwnd_prior on
//! ```

use std::sync::Arc;

use redtail_core::Time;

use super::{AckSample, CongestionKind, ControllerConfig, GrowthLaw, as_f64};
use crate::constants::constants;

constants! {
    /// The constants of CUBIC.
    pub struct CubicParams {
        /// C: scale of the cubic function, in segments/s^3.
        c: f64 = 0.4, in 1e-4 => 1e4, "RFC 9438, section 5.1";
        /// beta_cubic: factor of a reduction.
        beta: f64 = 0.7, in 0.05 => 0.95, "RFC 9438, section 4.6";
        /// Release more bandwidth when the window at a loss is smaller than at the one before.
        fast_convergence: bool = true, "RFC 9438, section 4.7";
        /// Grow at least as fast as Reno would.
        reno_friendly: bool = true, "RFC 9438, section 4.3";
    }
}

/// The law's state, in segments and seconds.
#[derive(Clone, Debug, Default)]
pub struct Cubic {
    params: Arc<CubicParams>,
    w_max: f64,
    /// The window when the last reduction began.
    cwnd_prior: f64,
    /// Whether the last reduction was a timeout: the next epoch then starts at its plateau.
    after_timeout: bool,
    /// Congestion avoidance since the last reduction.
    epoch: Option<Epoch>,
    /// The state before the last reduction, for an undo (section 4.9).
    saved: Option<Saved>,
}

#[derive(Clone, Copy, Debug)]
struct Saved {
    w_max: f64,
    cwnd_prior: f64,
    after_timeout: bool,
    epoch: Option<Epoch>,
}

#[derive(Clone, Copy, Debug)]
struct Epoch {
    start: Time,
    k: f64,
    w_est: f64,
}

impl Cubic {
    /// W_cubic(t), `t` seconds into an epoch (RFC 9438, figure 1); in segments.
    fn w_cubic(&self, t: f64, k: f64) -> f64 {
        let from_plateau = t - k;
        self.params.c * from_plateau * from_plateau * from_plateau + self.w_max
    }

    fn begin_epoch(&mut self, cwnd: f64, now: Time) -> Epoch {
        if self.after_timeout || cwnd >= self.w_max {
            // No larger W_max is known, so the epoch starts at its plateau (sections 4.8 and 4.10).
            self.w_max = cwnd;
        }
        self.after_timeout = false;
        Epoch {
            start: now,
            k: libm::cbrt((self.w_max - cwnd) / self.params.c),
            w_est: cwnd,
        }
    }
}

impl GrowthLaw for Cubic {
    type Params = CubicParams;

    fn start(_: &ControllerConfig, params: &Arc<CubicParams>) -> Self {
        Self {
            params: Arc::clone(params),
            ..Self::default()
        }
    }

    #[inline]
    fn grown(&mut self, cwnd: f64, sample: &AckSample, mss: f64) -> f64 {
        let window = cwnd / mss;
        let acked = as_f64(sample.acked) / mss;
        let mut epoch = match self.epoch {
            Some(epoch) => epoch,
            None => self.begin_epoch(window, sample.now),
        };
        let t = (sample.now - epoch.start).as_secs_f64();
        let rtt = sample.srtt.map_or(0.0, |srtt| srtt.as_secs_f64());
        let alpha = if epoch.w_est >= self.cwnd_prior {
            1.0
        } else {
            let beta = self.params.beta;
            3.0 * (1.0 - beta) / (1.0 + beta)
        };
        epoch.w_est += alpha * acked / window;
        self.epoch = Some(epoch);

        if self.params.reno_friendly && self.w_cubic(t, epoch.k) < epoch.w_est {
            return epoch.w_est.max(window) * mss; // section 4.3
        }
        let target = self.w_cubic(t + rtt, epoch.k).clamp(window, 1.5 * window);
        (window + acked * (target - window) / window) * mss
    }

    #[inline]
    fn beta(&self) -> f64 {
        self.params.beta
    }

    fn after_idle(&mut self) {
        self.epoch = None; // t excludes unused time (RFC 9438, section 5.8)
    }

    fn on_congestion(&mut self, window: f64, kind: CongestionKind) {
        self.saved = Some(Saved {
            w_max: self.w_max,
            cwnd_prior: self.cwnd_prior,
            after_timeout: self.after_timeout,
            epoch: self.epoch.take(),
        });
        self.after_timeout = matches!(kind, CongestionKind::Timeout { .. });
        self.cwnd_prior = window;
        // Fast convergence (section 4.7): a flow whose window shrinks releases more.
        self.w_max = if self.params.fast_convergence && window < self.w_max {
            window * (1.0 + self.params.beta) / 2.0
        } else {
            window
        };
    }

    fn undo(&mut self) {
        if let Some(saved) = self.saved.take() {
            self.w_max = saved.w_max;
            self.cwnd_prior = saved.cwnd_prior;
            self.after_timeout = saved.after_timeout;
            self.epoch = saved.epoch;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use redtail_core::Span;

    const MSS: f64 = 1000.0;

    /// Grows `cubic` from `cwnd` segments for `seconds`, one acknowledged segment
    /// at a time, a window a round trip; returns the window at the times asked for.
    fn run(cubic: &mut Cubic, cwnd: f64, rtt: f64, at: &[f64]) -> Vec<f64> {
        let (mut cwnd, mut now, mut seen) = (cwnd, 0.0, Vec::new());
        for &time in at {
            while now < time {
                let sample = AckSample {
                    now: Time::from_secs_f64(now),
                    acked: MSS as u64,
                    marked: 0,
                    una: 0,
                    next: 0,
                    rtt: None,
                    srtt: Some(Span::from_secs_f64(rtt)),
                    rtt_independent: false,
                };
                cwnd = cubic.grown(cwnd * MSS, &sample, MSS) / MSS;
                now += rtt / cwnd;
            }
            seen.push(cwnd);
        }
        seen
    }

    fn after_loss_at(cwnd: f64) -> Cubic {
        let mut cubic = Cubic::default();
        cubic.on_congestion(cwnd, CongestionKind::Loss);
        cubic
    }

    #[test]
    fn the_window_follows_the_cubic_function_through_plateau_and_beyond() {
        // W_max 1000, from 700: K = cbrt(300 / 0.4) = 9.086 s.
        let mut cubic = after_loss_at(1000.0);
        let k = (300.0_f64 / 0.4).cbrt();
        let at = [2.0, 5.0, k, 12.0, 15.0];
        for (time, window) in at.into_iter().zip(run(&mut cubic, 700.0, 0.05, &at)) {
            let expected = 0.4 * (time - k).powi(3) + 1000.0;
            // The window follows W_cubic(t + RTT), so it is a round trip ahead.
            assert!(
                (window - expected).abs() < 0.01 * expected,
                "{time}: {window} {expected}"
            );
        }
    }

    #[test]
    fn growth_is_concave_before_the_plateau_and_convex_after() {
        let mut cubic = after_loss_at(1000.0);
        let w = run(&mut cubic, 700.0, 0.05, &[2.0, 4.0, 6.0, 12.0, 14.0, 16.0]);
        assert!(w[1] - w[0] > w[2] - w[1], "concave: {w:?}");
        assert!(w[4] - w[3] < w[5] - w[4], "convex: {w:?}");
    }

    #[test]
    fn on_a_short_path_the_window_follows_the_reno_friendly_estimate() {
        // 10 ms and 20 segments: alpha = 0.529 segments a round trip until the
        // prior window, then 1; the cubic term is far below for the first second.
        let mut cubic = after_loss_at(20.0);
        let w = run(&mut cubic, 14.0, 0.01, &[0.1]);
        let expected = 14.0 + 3.0 * 0.3 / 1.7 * 10.0;
        assert!((w[0] - expected).abs() < 0.3, "{} {expected}", w[0]);
    }

    #[test]
    fn a_flow_that_loses_before_its_last_plateau_aims_lower() {
        let mut cubic = after_loss_at(1000.0);
        cubic.on_congestion(800.0, CongestionKind::Loss);
        assert_eq!(cubic.w_max, 800.0 * 0.85);
    }

    #[test]
    fn after_a_timeout_the_epoch_starts_at_its_plateau() {
        let mut cubic = Cubic::default();
        cubic.on_congestion(1000.0, CongestionKind::Timeout { repeated: false });
        let epoch = cubic.begin_epoch(700.0, Time::ZERO);
        assert_eq!((epoch.k, cubic.w_max), (0.0, 700.0));
    }
}
