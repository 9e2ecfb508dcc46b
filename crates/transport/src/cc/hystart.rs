//! HyStart: slow start that ends when acknowledgements indicate that the path is full.
//!
//! Source: S. Ha and I. Rhee, "Taming the elephants: New TCP slow start", Computer Networks 55(9),
//! 2011, sections 3.2 and 3.3, with the changes of Linux's CUBIC (`tcp_cubic.c`, `hystart_update`):
//! the constants, the check from the ninth sample of a round on, and the restart after a timeout.
//! Left out is its allowance for segmentation offload, which the simulator does not have.
//!
//! | symbol | meaning | unit |
//! |---|---|---|
//! | D_min | least round trip since the connection, or a timeout | s |
//! | train | acknowledgements since the round began, each within 2 ms of the last | |
//!
//! ```text
//! a round:  until what was sent when it began is acknowledged
//! exit if   cwnd >= 16 segments and
//!           the train is longer than D_min / 2, or
//!           the least round trip of the round, of more than 8,
//!             is above D_min + D_min/8 (4 ms to 16 ms)
//! exit:     ssthresh = cwnd
//! ```
//!
//! Half of D_min is the estimate of the one-way delay, which is the length of the train if the
//! window fills the path. A sender that paces would need all of D_min, because pacing spreads a
//! window of slow start over half a round trip.

use std::sync::Arc;

use redtail_core::{ParamError, Span, Time};

use super::{AckSample, Window};
use crate::constants::{check_order, constants};

constants! {
    /// The constants of HyStart.
    pub struct HystartParams {
        /// Least window at which it can end slow start, in segments.
        low_window: f64 = 16.0, in 0.0 => 1e6, "Linux 6.1, net/ipv4/tcp_cubic.c, hystart_low_window";
        /// Largest gap between acknowledgements of one train.
        ack_delta: Span = Span::from_ms(2), in Span::ZERO => Span::from_s(10), "Linux 6.1, tcp_cubic.c, hystart_ack_delta_us";
        /// Number of round-trip samples that it takes in a round.
        min_samples: u32 = 8, in 1 => 1000, "Linux 6.1, tcp_cubic.c, HYSTART_MIN_SAMPLES";
        /// Least growth of the round-trip time that ends slow start.
        delay_min: Span = Span::from_ms(4), in Span::ZERO => Span::from_s(10), "Linux 6.1, tcp_cubic.c, HYSTART_DELAY_MIN";
        /// Greatest growth of the round-trip time that is waited for.
        delay_max: Span = Span::from_ms(16), in Span::ZERO => Span::from_s(10), "Linux 6.1, tcp_cubic.c, HYSTART_DELAY_MAX";
        /// Growth of the round-trip time that ends slow start, as one part in so many.
        delay_divisor: u64 = 8, in 1 => 1000, "Linux 6.1, tcp_cubic.c, HYSTART_DELAY_THRESH";
        /// End slow start at a long train of acknowledgements.
        trains: bool = true, "Linux 6.1, tcp_cubic.c, hystart_detect, HYSTART_ACK_TRAIN";
        /// End slow start when round-trip times grow.
        delays: bool = true, "Linux 6.1, tcp_cubic.c, hystart_detect, HYSTART_DELAY";
    }
    check HystartParams::in_order
}

impl HystartParams {
    fn in_order(&self) -> Result<(), ParamError> {
        check_order("delay_min", self.delay_min, "delay_max", self.delay_max)
    }
}

/// HyStart with its state.
#[derive(Clone, Debug)]
pub(super) struct HyStart {
    params: Arc<HystartParams>,
    mss: f64,
    round: Option<Round>,
    /// The least round trip of the connection (D_min).
    delay_min: Option<Span>,
    /// HyStart has ended slow start. It is cleared by a timeout.
    found: bool,
}

#[derive(Clone, Copy, Debug)]
struct Round {
    /// The round ends when more than this is acknowledged.
    end: u64,
    start: Time,
    /// The last acknowledgement of the train.
    train: Time,
    /// The least round trip in it.
    min: Option<Span>,
    samples: u32,
}

impl HyStart {
    /// Before the first acknowledgement; `mss` is the size of a full segment in bytes.
    pub(super) fn new(params: &Arc<HystartParams>, mss: f64) -> Self {
        Self {
            params: Arc::clone(params),
            mss,
            round: None,
            delay_min: None,
            found: false,
        }
    }

    /// A timeout: forgets all measurements.
    pub(super) fn on_timeout(&mut self) {
        *self = Self::new(&self.params, self.mss);
    }

    /// Grows `window` by `grows` bytes, or leaves slow start.
    pub(super) fn on_ack(&mut self, window: &mut Window, sample: &AckSample, grows: f64) {
        if let (Some(rtt), false) = (sample.rtt, self.found)
            && self.is_full(window.cwnd, rtt, sample)
        {
            self.found = true;
            window.ssthresh = window.cwnd;
            return;
        }
        window.cwnd += grows;
    }

    fn is_full(&mut self, cwnd: f64, rtt: Span, sample: &AckSample) -> bool {
        let delay_min = self.delay_min.map_or(rtt, |min| min.min(rtt));
        self.delay_min = Some(delay_min);
        let now = sample.now;
        let mut round = match self.round {
            Some(round) if sample.una <= round.end => round,
            _ => Round {
                end: sample.next,
                start: now,
                train: now,
                min: None,
                samples: 0,
            },
        };
        let mut full = false;
        let params = &*self.params;
        if cwnd >= params.low_window * self.mss {
            if now - round.train <= params.ack_delta {
                round.train = now;
                full = params.trains && now - round.start > delay_min / 2;
            }
            let min = round.min.map_or(rtt, |min| min.min(rtt));
            round.min = Some(min);
            if round.samples < params.min_samples {
                round.samples += 1;
            } else {
                let threshold =
                    (delay_min / params.delay_divisor).clamp(params.delay_min, params.delay_max);
                full |= params.delays && min > delay_min + threshold;
            }
        }
        self.round = Some(round);
        full
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: f64 = 1000.0;

    struct Flow {
        slow: HyStart,
        window: Window,
        una: u64,
        now: Time,
    }

    impl Flow {
        fn new(segments: f64) -> Self {
            Self {
                slow: HyStart::new(&Arc::default(), MSS),
                window: Window {
                    cwnd: segments * MSS,
                    ssthresh: f64::INFINITY,
                },
                una: 0,
                now: Time::ZERO,
            }
        }

        /// Runs a round that begins at `at` ms: the acknowledgements of a window, `us` apart, each
        /// with round trip `rtt` in ms. Returns after how many of them slow start ended.
        fn round(&mut self, at: u64, us: u64, rtt: u64) -> Option<u64> {
            self.now = Time::ZERO + Span::from_ms(at);
            let acks = (self.window.cwnd / MSS) as u64;
            let end = self.una + 1000 * acks;
            for i in 1..=acks {
                self.una += 1000;
                let sample = AckSample {
                    now: self.now,
                    acked: 1000,
                    marked: 0,
                    una: self.una,
                    next: end + 2000 * (i - 1),
                    rtt: Some(Span::from_ms(rtt)),
                    srtt: None,
                    rtt_independent: false,
                };
                self.slow.on_ack(&mut self.window, &sample, MSS);
                if self.window.cwnd >= self.window.ssthresh {
                    return Some(i);
                }
                self.now += Span::from_us(us);
            }
            None
        }
    }

    #[test]
    fn a_short_train_of_steady_round_trips_doubles_the_window() {
        let mut flow = Flow::new(10.0);
        for (at, segments) in [(100, 20.0), (200, 40.0), (300, 80.0)] {
            assert_eq!(flow.round(at, 500, 100), None);
            assert_eq!(flow.window.cwnd, segments * MSS);
        }
    }

    #[test]
    fn a_train_longer_than_half_the_least_round_trip_ends_slow_start() {
        let mut flow = Flow::new(80.0);
        // 50 ms have passed with the acknowledgement after the 51st.
        assert_eq!(flow.round(100, 1000, 100), Some(52));
        assert_eq!(flow.window.cwnd, 131.0 * MSS);
        assert_eq!(flow.window.ssthresh, flow.window.cwnd);
    }

    #[test]
    fn acknowledgements_further_apart_are_no_train() {
        let mut flow = Flow::new(80.0);
        assert_eq!(flow.round(100, 2000, 100), Some(27));
        let mut flow = Flow::new(80.0);
        assert_eq!(flow.round(100, 2001, 100), None);
    }

    #[test]
    fn a_gap_ends_the_train_for_the_round() {
        let mut flow = Flow::new(20.0);
        flow.round(100, 100, 100); // up to 102 ms
        let round = flow.slow.round.expect("a round");
        flow.slow.round = Some(Round {
            end: u64::MAX,
            ..round
        });
        assert_eq!(flow.round(160, 100, 100), None);
    }

    #[test]
    fn round_trips_above_the_least_by_an_eighth_end_it_with_the_ninth() {
        let mut flow = Flow::new(16.0);
        assert_eq!(flow.round(100, 0, 80), None);
        assert_eq!(flow.round(200, 0, 90), None); // 10 ms is the threshold
        assert_eq!(flow.round(300, 0, 91), Some(9));
        assert_eq!(flow.window.ssthresh, (64.0 + 8.0) * MSS);
    }

    #[test]
    fn the_threshold_is_4_ms_at_least_and_16_ms_at_most() {
        for (base, at_most) in [(8, 12), (400, 416)] {
            let mut flow = Flow::new(16.0);
            assert_eq!(flow.round(1000, 0, base), None);
            assert_eq!(flow.round(2000, 0, at_most), None);
            assert_eq!(flow.round(3000, 0, at_most + 1), Some(9));
        }
    }

    #[test]
    fn below_sixteen_segments_there_is_no_exit() {
        let mut flow = Flow::new(4.0);
        assert_eq!(flow.round(100, 1500, 10), None);
        assert_eq!(flow.round(200, 1500, 50), None);
        assert_eq!(flow.window.cwnd, 16.0 * MSS);
        // From sixteen on there is: the train is longer than 5 ms.
        assert_eq!(flow.round(300, 1500, 10), Some(5));
    }

    #[test]
    fn a_timeout_starts_it_over() {
        let mut flow = Flow::new(80.0);
        assert!(flow.round(100, 1000, 100).is_some());
        flow.window.ssthresh = f64::INFINITY;
        assert_eq!(flow.round(1000, 1000, 100), None); // once a connection
        flow.slow.on_timeout();
        assert!(flow.round(2000, 1000, 100).is_some());
    }
}
