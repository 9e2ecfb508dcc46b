//! Vegas.
//!
//! Source: L. Brakmo and L. Peterson, "TCP Vegas: End to End Congestion Avoidance
//! on a Global Internet", IEEE JSAC 13(8), 1995, sections III.B and III.C. The window
//! holds a few segments in the bottleneck's queue, counted from round-trip times.
//!
//! | symbol | meaning | unit |
//! |---|---|---|
//! | BaseRTT | least round trip of the connection | s |
//! | RTT | least round trip of a round | s |
//! | Diff | segments waiting in queues | segments |
//! | alpha, beta | bounds of Diff: 2 and 4 | segments |
//! | gamma | bound of Diff in slow start: 1 | segments |
//!
//! ```text
//! Expected = cwnd / BaseRTT,  Actual = cwnd / RTT
//! Diff     = (Expected - Actual) BaseRTT = cwnd (RTT - BaseRTT) / RTT
//! cwnd    += 1 if Diff < alpha,  -1 if Diff > beta,  once a round
//! ```
//!
//! The paper's experiments have alpha and beta of 1 and 3, and of 2 and 4. Linux
//! (net/ipv4/tcp_vegas.c) has 2 and 4, which are used here. Also as in Linux, and unlike the paper:
//! RTT is the least of a round rather than that of one segment, which excludes delayed
//! acknowledgements; a loss halves the bytes in flight as with Reno (ns-2's Vegas, after its
//! authors' code, reduces by a quarter at a fast retransmission); when slow start ends, the window
//! is reduced by the segments that wait in the queue. Linux scales Diff by RTT / BaseRTT, which the
//! paper does not. The paper's retransmission on the first duplicate belongs to loss recovery and
//! is not part of this law.

use std::sync::Arc;

use redtail_core::{ParamError, Span};

use super::{AckSample, CongestionKind, ControllerConfig, GrowthLaw, Window, greater};
use crate::constants::{check_order, constants};

constants! {
    /// The constants of Vegas' congestion avoidance.
    pub struct VegasParams {
        /// alpha: with fewer segments than this waiting in queues the window grows.
        alpha: f64 = 2.0, in 0.0 => 1e4, "Brakmo and Peterson 1995, section III.B: 1 or 2; Linux 6.1, tcp_vegas.c, alpha";
        /// beta: with more segments than this waiting in queues the window shrinks.
        beta: f64 = 4.0, in 0.0 => 1e4, "Brakmo and Peterson 1995, section III.B: 3 or 4; Linux 6.1, tcp_vegas.c, beta";
        /// Factor of a reduction by a loss.
        loss_factor: f64 = 0.5, in 0.05 => 0.95, "Linux 6.1, tcp_vegas.c (tcp_reno_ssthresh)";
    }
    check VegasParams::in_order
}

impl VegasParams {
    fn in_order(&self) -> Result<(), ParamError> {
        check_order("alpha", self.alpha, "beta", self.beta)
    }
}

constants! {
    /// The constants of Vegas' slow start.
    pub struct VegasStartParams {
        /// gamma: with more segments than this waiting in queues slow start ends.
        gamma: f64 = 1.0, in 0.0 => 1e4, "Brakmo and Peterson 1995, section III.C; Linux 6.1, tcp_vegas.c, gamma";
    }
}

/// The least window that it leaves, in segments.
const LEAST_WINDOW: f64 = 2.0;

/// Segments waiting in queues with a window of `cwnd` and a round trip of `rtt`.
fn queued(cwnd: f64, rtt: Span, base: Span) -> f64 {
    let (rtt, base) = (rtt.as_secs_f64(), base.as_secs_f64());
    if rtt > base {
        cwnd * (rtt - base) / rtt
    } else {
        0.0
    }
}

/// Divides the acknowledgements into rounds of one window each.
#[derive(Clone, Debug, Default)]
struct Rounds {
    /// The round ends when data beyond this offset, which was sent in the round, is acknowledged.
    end: Option<u64>,
}

impl Rounds {
    /// Whether this acknowledgement begins a round; `Some(true)` if it ends one as well.
    fn begun(&mut self, sample: &AckSample) -> Option<bool> {
        let ended = match self.end {
            Some(end) if sample.una <= end => return None,
            end => end.is_some(),
        };
        self.end = Some(sample.next);
        Some(ended)
    }
}

fn least(known: Option<Span>, sample: Option<Span>) -> Option<Span> {
    match (known, sample) {
        (Some(known), Some(sample)) => Some(known.min(sample)),
        (known, sample) => known.or(sample),
    }
}

/// The growth law of TCP Vegas with its state.
#[derive(Clone, Debug, Default)]
pub struct Vegas {
    params: Arc<VegasParams>,
    /// The least round trip of the connection (BaseRTT).
    base: Option<Span>,
    /// Least round trip of the current round.
    round_min: Option<Span>,
    rounds: Rounds,
}

impl Vegas {
    fn new(params: &Arc<VegasParams>) -> Self {
        Self {
            params: Arc::clone(params),
            ..Self::default()
        }
    }
}

impl GrowthLaw for Vegas {
    type Params = VegasParams;

    fn start(_: &ControllerConfig, params: &Arc<VegasParams>) -> Self {
        Self::new(params)
    }

    fn grown(&mut self, cwnd: f64, sample: &AckSample, mss: f64) -> f64 {
        self.base = least(self.base, sample.rtt);
        let begun = self.rounds.begun(sample);
        let mut grown = cwnd;
        if begun == Some(true)
            && let (Some(rtt), Some(base)) = (self.round_min, self.base)
        {
            let diff = queued(cwnd / mss, rtt, base);
            if diff < self.params.alpha {
                grown += mss;
            } else if diff > self.params.beta {
                grown = greater(grown - mss, grown.min(LEAST_WINDOW * mss));
            }
        }
        if begun.is_some() {
            self.round_min = sample.rtt;
        } else {
            self.round_min = least(self.round_min, sample.rtt);
        }
        grown
    }

    #[allow(clippy::misnamed_getters)] // the beta of the paper is a threshold
    fn beta(&self) -> f64 {
        self.params.loss_factor
    }

    fn observe(&mut self, _window: &mut Window, sample: &AckSample, _mss: f64) {
        self.base = least(self.base, sample.rtt);
    }

    fn on_congestion(&mut self, _window: f64, _kind: CongestionKind) {
        // The measurements of this round belong to the window before the reduction.
        self.rounds = Rounds::default();
        self.round_min = None;
    }
}

/// Vegas' slow start: the window doubles every other round and is constant in between, so that a
/// measurement belongs to one window (section III.C of the paper).
#[derive(Clone, Debug)]
pub(super) struct VegasSlowStart {
    params: Arc<VegasStartParams>,
    /// Size of a full segment, bytes.
    mss: f64,
    base: Option<Span>,
    rounds: Rounds,
    /// The window is constant in this round.
    resting: bool,
}

impl VegasSlowStart {
    pub(super) fn new(params: &Arc<VegasStartParams>, mss: f64) -> Self {
        Self {
            params: Arc::clone(params),
            mss,
            base: None,
            rounds: Rounds::default(),
            resting: false,
        }
    }

    /// Processes an acknowledgement for which the window may grow by `grows` bytes.
    pub(super) fn on_ack(&mut self, window: &mut Window, sample: &AckSample, grows: f64) {
        self.base = least(self.base, sample.rtt);
        if let Some(ended) = self.rounds.begun(sample) {
            if self.resting
                && let (Some(rtt), Some(base)) = (sample.rtt, self.base)
                // The first segment sent in the round that ends is the paper's distinguished
                // segment. Earlier segments met the bursts of the growing window.
                && queued(window.cwnd / self.mss, rtt, base) > self.params.gamma
            {
                self.leave(window, rtt, base);
                return;
            }
            self.resting = ended && !self.resting;
        }
        if !self.resting {
            window.cwnd += grows;
        }
    }

    /// Ends slow start with the window that fills the path and one segment to probe (as in Linux).
    fn leave(&mut self, window: &mut Window, rtt: Span, base: Span) {
        let fills = window.cwnd * base.as_secs_f64() / rtt.as_secs_f64();
        window.cwnd = window.cwnd.min(fills + self.mss);
        window.ssthresh = window.cwnd;
        self.rounds = Rounds::default();
        self.resting = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use redtail_core::Time;

    const MSS: f64 = 1000.0;

    /// Rounds of acknowledgements, a segment each, sent a window ahead.
    struct Path {
        una: u64,
    }

    impl Path {
        fn samples(&mut self, cwnd: f64, rtts: &[Option<u64>]) -> Vec<AckSample> {
            let mut samples = Vec::new();
            for &rtt in rtts {
                self.una += MSS as u64;
                samples.push(AckSample {
                    now: Time::ZERO,
                    acked: MSS as u64,
                    marked: 0,
                    una: self.una,
                    // Before the segments that this acknowledgement allows.
                    next: self.una + cwnd as u64 - MSS as u64,
                    rtt: rtt.map(Span::from_ms),
                    srtt: None,
                    rtt_independent: false,
                });
            }
            samples
        }

        /// The window after a round of `cwnd / MSS` acknowledgements with round trip `rtt`.
        fn round(&mut self, vegas: &mut Vegas, cwnd: f64, rtt: u64) -> f64 {
            let rtts = vec![Some(rtt); (cwnd / MSS) as usize];
            let samples = self.samples(cwnd, &rtts);
            samples.iter().fold(cwnd, |w, s| vegas.grown(w, s, MSS))
        }
    }

    /// The change, in segments, that a round at `cwnd` segments and `rtt` ms leads to
    /// after one at 100 ms.
    fn change(cwnd: f64, rtt: u64) -> f64 {
        let (mut vegas, mut path) = (Vegas::default(), Path { una: 0 });
        let cwnd = cwnd * MSS;
        vegas.base = Some(Span::from_ms(100));
        path.samples(cwnd, &[None]);
        assert_eq!(path.round(&mut vegas, cwnd, rtt), cwnd, "no round is over");
        // The next acknowledgement ends the round.
        let sample = path.samples(cwnd, &[Some(rtt)])[0];
        (vegas.grown(cwnd, &sample, MSS) - cwnd) / MSS
    }

    #[test]
    fn the_window_moves_by_a_segment_a_round_as_the_papers_difference_says() {
        let base = 0.1;
        let mut seen = Vec::new();
        for cwnd in [5.0, 20.0, 40.0, 80.0] {
            for rtt in 100..=140 {
                // Section III.B with both rates in segments per second, alpha and beta
                // as rates: 2 and 4 segments per BaseRTT.
                let (expected, actual) = (cwnd / base, cwnd / (rtt as f64 / 1000.0));
                let diff = expected - actual;
                let wanted = if diff < 2.0 / base {
                    1.0
                } else if diff > 4.0 / base {
                    -1.0
                } else {
                    0.0
                };
                assert_eq!(change(cwnd, rtt), wanted, "{cwnd} {rtt}");
                seen.push(wanted);
            }
        }
        assert!([1.0, 0.0, -1.0].iter().all(|way| seen.contains(way)));
    }

    #[test]
    fn the_window_changes_once_a_round() {
        let (mut vegas, mut path) = (Vegas::default(), Path { una: 0 });
        let mut cwnd = 10.0 * MSS;
        let mut changes = 0;
        for _ in 0..100 {
            let sample = path.samples(cwnd, &[Some(100)])[0];
            let grown = vegas.grown(cwnd, &sample, MSS);
            changes += u32::from(grown != cwnd);
            cwnd = grown;
        }
        // Rounds of 10, 11, 12 ... acknowledgements: 10 + ... + 16 = 91, and the
        // acknowledgement that begins each ends the one before.
        assert_eq!(changes, 7);
    }

    #[test]
    fn a_round_is_judged_by_its_least_round_trip() {
        // An acknowledgement delayed by 200 ms among ten does not slow it down.
        let (mut vegas, mut path) = (Vegas::default(), Path { una: 0 });
        let cwnd = 10.0 * MSS;
        let mut rtts = [Some(100); 10];
        rtts[4] = Some(300);
        rtts[7] = None; // a retransmitted segment measures nothing
        for sample in path.samples(cwnd, &rtts) {
            vegas.grown(cwnd, &sample, MSS);
        }
        let sample = path.samples(cwnd, &[Some(300)])[0];
        assert_eq!(vegas.grown(cwnd, &sample, MSS), cwnd + MSS);
    }

    #[test]
    fn a_window_of_four_segments_is_never_reduced() {
        // No more can wait than the window holds.
        assert_eq!(change(5.0, 10_000), -1.0);
        assert_eq!(change(4.0, 10_000), 0.0);
        assert_eq!(change(2.0, 10_000), 1.0);
    }

    #[test]
    fn a_round_begun_before_a_loss_is_forgotten() {
        let (mut vegas, mut path) = (Vegas::default(), Path { una: 0 });
        let cwnd = 10.0 * MSS;
        path.round(&mut vegas, cwnd, 100);
        vegas.on_congestion(10.0, CongestionKind::Loss);
        let sample = path.samples(cwnd, &[Some(100)])[0];
        assert_eq!(vegas.grown(cwnd, &sample, MSS), cwnd);
    }

    /// The window, in segments, after each round of slow start with these round trips.
    fn slow_start(rtts: &[u64]) -> (Vec<f64>, Window) {
        let (mut slow, mut path) = (VegasSlowStart::new(&Arc::default(), MSS), Path { una: 0 });
        let mut window = Window {
            cwnd: 4.0 * MSS,
            ssthresh: f64::INFINITY,
        };
        let mut seen = Vec::new();
        for &rtt in rtts {
            let flight = window.cwnd;
            let acks = vec![Some(rtt); (flight / MSS) as usize];
            for mut sample in path.samples(flight, &acks) {
                sample.next = sample.una + window.cwnd as u64 - MSS as u64;
                slow.on_ack(&mut window, &sample, MSS);
                if window.ssthresh.is_finite() {
                    seen.push(window.cwnd / MSS);
                    return (seen, window);
                }
            }
            seen.push(window.cwnd / MSS);
        }
        (seen, window)
    }

    #[test]
    fn slow_start_doubles_every_other_round() {
        let (seen, _) = slow_start(&[100; 6]);
        assert_eq!(seen, [8.0, 8.0, 16.0, 16.0, 32.0, 32.0]);
    }

    #[test]
    fn slow_start_ends_when_more_than_a_segment_waits_and_keeps_what_fills_the_path() {
        // 16 segments: Diff is 16 / 1.06 0.06 = 0.9 at 106 ms, and 16 / 1.07 0.07 = 1.05
        // at 107 ms; the judgement falls on the first acknowledgement after a rest.
        let (_, window) = slow_start(&[100, 100, 100, 106, 106]);
        assert!(window.ssthresh.is_infinite());
        let (seen, window) = slow_start(&[100, 100, 100, 107, 107]);
        assert_eq!(seen.len(), 5);
        assert_eq!(window.cwnd, window.ssthresh);
        let expected = 16.0 * 100.0 / 107.0 + 1.0;
        assert!((window.cwnd / MSS - expected).abs() < 1e-9);
    }
}
