//! LEDBAT: low extra delay background transport.
//!
//! Source: RFC 6817, section 2.4.2 for the algorithm, section 2.5 for the parameters. The window
//! converges so that queues on the path add TARGET of delay: a single flow uses the whole link, and
//! a flow gives way to traffic that fills queues.
//!
//! | symbol | meaning | unit |
//! |---|---|---|
//! | TARGET | queueing delay aimed at, 100 ms | s |
//! | GAIN | window's response to off_target, 1 | 1 |
//! | BASE_HISTORY | minutes over which the base delay is the least, 10 | 1 |
//! | CURRENT_FILTER | samples of which the current delay is the least, 4 | 1 |
//! | ALLOWED_INCREASE | how far the window may lead what is in flight, 1 | segments |
//! | MIN_CWND | least window, 2 | segments |
//!
//! ```text
//! queuing_delay = min(current_delays) - min(base_delays)
//! off_target    = (TARGET - queuing_delay) / TARGET
//! cwnd         += GAIN off_target bytes_newly_acked MSS / cwnd
//! cwnd          = min(cwnd, flightsize + ALLOWED_INCREASE MSS), at least MIN_CWND MSS
//! ```
//!
//! The RFC measures one-way delays. Round trips replace them here, as in several TCP
//! implementations. The difference to the base then includes queueing on the return path and
//! delayed acknowledgements (the filter removes most of these). The RFC's halving on loss and its
//! window of one segment after a timeout are in the controller. Slow start, at first and after a
//! timeout, is the controller's too; the RFC's algorithm has none. It ends at the latest when the
//! queueing delay reaches TARGET, because from there on the RFC's algorithm reduces the window. The
//! delay is seen a round trip late, so it is longer than TARGET for some time.

use std::sync::Arc;

use redtail_core::{Span, Time};

use super::{AckSample, ControllerConfig, GrowthLaw, Window};
use crate::constants::constants;

constants! {
    /// The constants of LEDBAT.
    pub struct LedbatParams {
        /// TARGET: queueing delay aimed at.
        target: Span = Span::from_ms(100), in Span::from_us(100) => Span::from_s(10), "RFC 6817, section 2.5: at most 100 ms";
        /// GAIN: response of the window to the distance from the target, in windows of Reno's growth.
        gain: f64 = 1.0, in 1e-3 => 100.0, "RFC 6817, section 2.5: at most 1";
        /// BASE_HISTORY: number of minutes over which the base delay is the least.
        base_history: u64 = 10, in 1 => LONGEST_HISTORY as u64, "RFC 6817, section 2.5";
        /// CURRENT_FILTER: number of samples of which the current delay is the least.
        current_filter: u64 = 4, in 1 => LONGEST_FILTER as u64, "RFC 6817, section 2.5";
        /// ALLOWED_INCREASE: number of segments by which the window may lead what is in flight.
        allowed_increase: f64 = 1.0, in 0.0 => 1e3, "RFC 6817, section 2.5";
        /// MIN_CWND: least window, in segments.
        min_cwnd: f64 = 2.0, in 1.0 => 1e3, "RFC 6817, section 2.5";
        /// Factor of a reduction.
        beta: f64 = 0.5, in 0.05 => 0.95, "RFC 6817, section 2.4.2: as a TCP sender, RFC 5681";
    }
}

/// Room for the delays of this number of minutes.
const LONGEST_HISTORY: usize = 10;
/// Room for this number of current delays.
const LONGEST_FILTER: usize = 8;
const MINUTE: Span = Span::from_s(60);

/// The growth law of LEDBAT with its state.
#[derive(Clone, Debug, Default)]
pub struct Ledbat {
    params: Arc<LedbatParams>,
    /// base_delays: the least round trip of each of the latest minutes that had one,
    /// the latest first.
    base: [Option<Span>; LONGEST_HISTORY],
    /// The minute of the latest entry.
    minute: u64,
    /// current_delays, with their times, the latest first.
    current: [Option<(Time, Span)>; LONGEST_FILTER],
}

impl Ledbat {
    /// The RFC's update_base_delay and update_current_delay.
    fn on_delay(&mut self, delay: Span, now: Time) {
        let minute = now.as_ps() / MINUTE.as_ps();
        match &mut self.base[0] {
            Some(latest) if minute == self.minute => *latest = delay.min(*latest),
            _ => {
                self.base.rotate_right(1);
                self.base[0] = Some(delay);
                self.minute = minute;
            }
        }
        self.current.rotate_right(1);
        self.current[0] = Some((now, delay));
    }

    fn measure(&mut self, sample: &AckSample) {
        if let Some(rtt) = sample.rtt {
            self.on_delay(rtt, sample.now);
        }
    }

    /// The queueing delay in seconds; `None` before the first sample.
    fn queueing_delay(&self, now: Time, rtt: Option<Span>) -> Option<f64> {
        let base = self.base.iter().take(self.params.base_history as usize);
        let base = base.flatten().min()?;
        let (_, latest) = self.current[0]?;
        // Samples must not be older than a round trip (section 2.5). The latest is used whatever
        // its age, because there is no other.
        let fresh = |at: Time| rtt.is_some_and(|rtt| now.saturating_since(at) <= rtt);
        let current = (self.current.iter()).take(self.params.current_filter as usize);
        let current = current
            .flatten()
            .filter(|&&(at, _)| fresh(at))
            .map(|&(_, delay)| delay)
            .min()
            .unwrap_or(latest);
        Some(current.saturating_sub(*base).as_secs_f64())
    }
}

impl GrowthLaw for Ledbat {
    type Params = LedbatParams;

    fn start(_: &ControllerConfig, params: &Arc<LedbatParams>) -> Self {
        Self {
            params: Arc::clone(params),
            ..Self::default()
        }
    }

    fn grown(&mut self, cwnd: f64, sample: &AckSample, mss: f64) -> f64 {
        self.measure(sample);
        let queueing = self.queueing_delay(sample.now, sample.srtt);
        let params = &*self.params;
        let target = params.target.as_secs_f64();
        let off_target = queueing.map_or(1.0, |queueing| (target - queueing) / target);
        let acked = sample.acked as f64;
        let grown = cwnd + params.gain * off_target * acked * mss / cwnd;
        // flightsize is the number of bytes outstanding before this acknowledgement.
        let flight = (sample.next - sample.una) as f64 + acked;
        grown
            .min(flight + params.allowed_increase * mss)
            .max(params.min_cwnd * mss)
    }

    fn beta(&self) -> f64 {
        self.params.beta
    }

    fn observe(&mut self, window: &mut Window, sample: &AckSample, _mss: f64) {
        self.measure(sample);
        let queueing = self.queueing_delay(sample.now, sample.srtt);
        let target = self.params.target.as_secs_f64();
        if queueing.is_some_and(|queueing| queueing >= target) {
            window.ssthresh = window.ssthresh.min(window.cwnd);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: f64 = 1000.0;

    fn sample(at_ms: u64, rtt_ms: Option<u64>) -> AckSample {
        AckSample {
            now: Time::ZERO + Span::from_ms(at_ms),
            acked: 1000,
            marked: 0,
            una: 50_000,
            next: 99_000,
            rtt: rtt_ms.map(Span::from_ms),
            srtt: Some(Span::from_ms(200)),
            rtt_independent: false,
        }
    }

    /// The window's change in segments over an acknowledgement, at `cwnd` segments, of a
    /// round trip `extra` ms above a base of 50 ms.
    fn change(cwnd: f64, extra: u64) -> f64 {
        let mut ledbat = Ledbat::default();
        ledbat.measure(&sample(0, Some(50)));
        let grown = ledbat.grown(cwnd * MSS, &sample(1000, Some(50 + extra)), MSS);
        grown / MSS - cwnd
    }

    #[test]
    fn the_window_responds_in_proportion_to_the_distance_from_the_target() {
        // A window's worth of acknowledgements: one segment at no delay, none at the
        // target, minus one at twice the target.
        for (extra, per_window) in [(0, 1.0), (50, 0.5), (100, 0.0), (200, -1.0), (400, -3.0)] {
            let expected = per_window / 40.0;
            assert!((change(40.0, extra) - expected).abs() < 1e-9, "{extra}");
        }
    }

    #[test]
    fn slow_start_ends_when_the_queueing_delay_reaches_the_target() {
        let ssthresh_at = |extra: u64| {
            let mut ledbat = Ledbat::default();
            let mut window = Window {
                cwnd: 40.0 * MSS,
                ssthresh: f64::INFINITY,
            };
            ledbat.observe(&mut window, &sample(0, Some(50)), MSS);
            ledbat.observe(&mut window, &sample(1000, Some(50 + extra)), MSS);
            window.ssthresh
        };
        assert_eq!(ssthresh_at(99), f64::INFINITY);
        assert_eq!(ssthresh_at(100), 40.0 * MSS);
    }

    #[test]
    fn before_the_first_sample_the_window_grows_as_with_no_delay() {
        let grown = Ledbat::default().grown(40.0 * MSS, &sample(0, None), MSS);
        assert!((grown / MSS - 40.0 - 1.0 / 40.0).abs() < 1e-9);
    }

    #[test]
    fn the_window_leads_the_flight_by_a_segment_at_most() {
        // 49 segments were outstanding beside the one acknowledged.
        assert_eq!(change(60.0, 0), 51.0 - 60.0);
    }

    #[test]
    fn the_window_never_falls_below_two_segments() {
        assert_eq!(change(2.0, 10_000), 0.0);
        assert_eq!(change(2.1, 10_000), 2.0 - 2.1);
    }

    #[test]
    fn the_current_delay_is_the_least_of_the_last_four_within_a_round_trip() {
        let mut ledbat = Ledbat::default();
        let now = |ms: u64| Time::ZERO + Span::from_ms(ms);
        let srtt = Some(Span::from_ms(200));
        for (at, rtt) in [(0, 50), (1000, 90), (1010, 300), (1020, 310), (1030, 320)] {
            ledbat.measure(&sample(at, Some(rtt)));
        }
        // The last four are 90 to 320 ms; then the 90 is dropped because of its age.
        let of = |at: u64| ledbat.queueing_delay(now(at), srtt).unwrap();
        assert!((of(1030) - 0.040).abs() < 1e-12);
        assert!((of(1201) - 0.250).abs() < 1e-12);
        // All are too old, so the latest is used.
        assert!((of(9000) - 0.270).abs() < 1e-12);
        let mut fifth = ledbat.clone();
        fifth.measure(&sample(1040, Some(330)));
        let delay = fifth.queueing_delay(now(1040), srtt).unwrap();
        assert!((delay - 0.250).abs() < 1e-12, "{delay}");
    }

    #[test]
    fn the_base_delay_is_the_least_of_ten_minutes() {
        let mut ledbat = Ledbat::default();
        // 50 ms in the first minute, 80 ms ever after (a route changed).
        ledbat.measure(&sample(10_000, Some(50)));
        let mut seen = Vec::new();
        for minute in 1..12 {
            let at = minute * 60_000 + 1;
            ledbat.measure(&sample(at, Some(80)));
            let now = Time::ZERO + Span::from_ms(at);
            seen.push(ledbat.queueing_delay(now, None).unwrap());
        }
        // Nine more minutes beside the first are ten.
        assert!(seen[..9].iter().all(|delay| (delay - 0.03).abs() < 1e-12));
        assert!(seen[9..].iter().all(|&delay| delay == 0.0), "{seen:?}");
    }

    #[test]
    fn a_shorter_path_counts_at_once() {
        let mut ledbat = Ledbat::default();
        ledbat.measure(&sample(0, Some(80)));
        ledbat.measure(&sample(1, Some(50)));
        let now = Time::ZERO + Span::from_ms(1);
        assert_eq!(ledbat.queueing_delay(now, None), Some(0.0));
        assert_eq!(ledbat.base.iter().flatten().count(), 1);
    }
}
