//! Slow start and congestion avoidance.
//!
//! Source: RFC 5681, sections 3.1 and 3.2.
//!
//! | symbol | meaning | unit |
//! |---|---|---|
//! | cwnd | congestion window | bytes |
//! | ssthresh | slow start threshold | bytes |
//! | SMSS | sender's maximum segment size | bytes |
//!
//! ```text
//! cwnd += min(acked, SMSS)        cwnd < ssthresh          (equation 2)
//! cwnd += SMSS SMSS / cwnd        otherwise, once per ACK  (equation 3)
//! ssthresh = max(flight / 2, 2 SMSS) on loss               (equation 4)
//! cwnd = SMSS on timeout                                   (loss window)
//! ```

use super::{AckSample, CongestionControl, CongestionEvent, CongestionKind, Halving, Window};

/// The controller's state.
#[derive(Clone, Debug)]
pub struct Reno {
    mss: f64,
    halving: Halving,
    window: Window,
}

impl Reno {
    /// A controller with an initial window of `initial_window` segments of `mss` bytes.
    pub fn new(mss: u32, initial_window: u32, halving: Halving) -> Self {
        let mss = f64::from(mss);
        Self {
            mss,
            halving,
            window: Window {
                cwnd: f64::from(initial_window) * mss,
                ssthresh: f64::INFINITY,
            },
        }
    }
}

impl CongestionControl for Reno {
    #[inline]
    fn on_ack(&mut self, sample: &AckSample) {
        let Window { cwnd, ssthresh } = self.window;
        self.window.cwnd += if cwnd < ssthresh {
            self.mss.min(sample.acked as f64)
        } else {
            self.mss * self.mss / cwnd
        };
    }

    fn on_congestion(&mut self, event: &CongestionEvent) {
        let Self { mss, .. } = *self;
        let (ssthresh, reduced) = match self.halving {
            Halving::FlightSize => {
                // What limited transmit sent beyond the window does not count
                // (RFC 5681, section 3.2, step 2), nor does what was sent while
                // selective acknowledgements kept an episode going.
                let flight = (event.flight as f64).min(self.window.cwnd);
                let half = (flight / 2.0).max(2.0 * mss);
                (half, half)
            }
            Halving::Window => {
                let half = (self.window.cwnd / 2.0).max(mss);
                ((half / mss).floor().max(2.0) * mss, half)
            }
        };
        match event.kind {
            CongestionKind::Loss | CongestionKind::Ecn => {
                // A reduction never raises the window: at one segment it stays there.
                self.window = Window {
                    cwnd: reduced.min(self.window.cwnd),
                    ssthresh,
                };
            }
            CongestionKind::Timeout { repeated } => {
                // A timeout for data that timed out before must not halve
                // ssthresh again (RFC 5681, section 3.1, after equation 4).
                if !repeated || self.halving == Halving::Window {
                    self.window.ssthresh = ssthresh;
                }
                self.window.cwnd = mss;
            }
        }
    }

    #[inline]
    fn window(&self) -> Window {
        self.window
    }

    fn set_cwnd(&mut self, cwnd: f64) {
        self.window.cwnd = cwnd;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use redtail_core::Time;

    const MSS: u32 = 1000;

    fn ack(acked: u64) -> AckSample {
        AckSample {
            now: Time::ZERO,
            acked,
        }
    }

    fn event(kind: CongestionKind, flight: u64) -> CongestionEvent {
        CongestionEvent {
            now: Time::ZERO,
            kind,
            flight,
        }
    }

    #[test]
    fn slow_start_adds_one_segment_per_ack_however_much_it_covers() {
        let mut reno = Reno::new(MSS, 2, Halving::FlightSize);
        reno.on_ack(&ack(1000));
        reno.on_ack(&ack(2000));
        assert_eq!(reno.window().cwnd, 4000.0);
        reno.on_ack(&ack(400)); // an ACK of less than a segment grows by less
        assert_eq!(reno.window().cwnd, 4400.0);
    }

    #[test]
    fn congestion_avoidance_adds_about_one_segment_per_window() {
        let mut reno = Reno::new(MSS, 20, Halving::FlightSize);
        reno.on_congestion(&event(CongestionKind::Loss, 20_000));
        assert_eq!(
            reno.window(),
            Window {
                cwnd: 10_000.0,
                ssthresh: 10_000.0
            }
        );
        for _ in 0..10 {
            reno.on_ack(&ack(1000));
        }
        let grown = reno.window().cwnd - 10_000.0;
        assert!((950.0..=1000.0).contains(&grown), "{grown}");
    }

    #[test]
    fn a_loss_halves_the_flight_but_not_below_two_segments() {
        let mut reno = Reno::new(MSS, 10, Halving::FlightSize);
        reno.on_congestion(&event(CongestionKind::Loss, 3000));
        assert_eq!(reno.window().ssthresh, 2000.0);
    }

    #[test]
    fn a_repeated_timeout_holds_ssthresh() {
        let mut reno = Reno::new(MSS, 16, Halving::FlightSize);
        reno.on_congestion(&event(CongestionKind::Timeout { repeated: false }, 16_000));
        reno.on_congestion(&event(CongestionKind::Timeout { repeated: true }, 1000));
        assert_eq!(
            reno.window(),
            Window {
                cwnd: 1000.0,
                ssthresh: 8000.0
            }
        );
    }

    #[test]
    fn halving_the_window_rounds_ssthresh_alone() {
        let mut reno = Reno::new(MSS, 5, Halving::Window);
        reno.on_congestion(&event(CongestionKind::Loss, 0));
        assert_eq!(
            reno.window(),
            Window {
                cwnd: 2500.0,
                ssthresh: 2000.0
            }
        );
    }
}
