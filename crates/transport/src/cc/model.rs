//! Controllers that use a model of the path instead of a growth law.
//!
//! A model gets a [`RateSample`] for every acknowledgement, including duplicates and those in fast
//! recovery, and every lost segment. It sets the congestion window, the pacing rate and the
//! quantum. A sender with a model has no other slow start or reduction of the window.
//!
//! Source: draft-ietf-ccwg-bbr-06, section 4.1.2 (the rate sample), sections 5.2 and 5.6.

use redtail_core::{Span, Stream, Time};

use super::{CongestionEvent, CongestionKind, as_f64, greater, lesser};

/// The state of loss recovery.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Episode {
    /// No recovery.
    #[default]
    Open,
    /// Fast recovery.
    Recovery,
    /// Repair after a timeout.
    Loss,
}

/// The rate sample of an acknowledgement (RS of the draft). Fields that are taken from the newest
/// delivered segment are zero or absent if none was delivered.
#[derive(Clone, Copy, Debug, Default)]
pub struct RateSample {
    /// When it arrived.
    pub now: Time,
    /// C.delivered: bytes delivered since the start, in order or not.
    pub total_delivered: u64,
    /// RS.newly_acked: bytes it newly acknowledged, cumulatively or selectively.
    pub newly_acked: u64,
    /// Bytes it newly acknowledged cumulatively: 0 for a duplicate.
    pub advanced: u64,
    /// Bytes declared lost because of it.
    pub newly_lost: u64,
    /// RS.prior_delivered: C.delivered when the newest segment delivered was sent.
    pub prior_delivered: Option<u64>,
    /// RS.delivered: bytes delivered since then.
    pub delivered: u64,
    /// RS.delivery_rate in bytes/s, if the interval is long enough to give one.
    pub delivery_rate: Option<f64>,
    /// RS.is_app_limited: the sender had no data to send, so the path may be faster than the
    /// sample.
    pub app_limited: bool,
    /// RS.rtt: round trip of the newest of the delivered segments that were sent once.
    pub rtt: Option<Span>,
    /// RS.tx_in_flight: bytes in flight just after the newest segment was sent.
    pub sent_in_flight: u64,
    /// RS.lost: bytes declared lost since then.
    pub lost: u64,
    /// Bytes in flight before this acknowledgement.
    pub prior_in_flight: u64,
    /// C.inflight: bytes in flight after it.
    pub in_flight: u64,
    /// C.is_cwnd_limited: in the latest round trip the window, not the rate or the application,
    /// limited sending.
    pub window_limited: bool,
    /// The smoothed round-trip time (C.srtt).
    pub srtt: Option<Span>,
    /// The time for which pacing holds back the next segment.
    pub held_for: Span,
    /// Bytes that this acknowledgement newly reports as marked (ECN).
    pub newly_marked: u64,
    /// Bytes reported as marked since the newest segment delivered was sent.
    pub marked: u64,
    /// Bytes reported as marked since the start.
    pub total_marked: u64,
    /// The state of loss recovery after it.
    pub episode: Episode,
}

/// A segment that has just been declared lost (P of the draft).
#[derive(Clone, Copy, Debug)]
pub struct LostSegment {
    /// Offset of its first byte.
    pub start: u64,
    /// Payload bytes.
    pub len: u32,
    /// P.tx_in_flight: bytes in flight just after it was sent.
    pub sent_in_flight: u64,
    /// Bytes declared lost since it was sent, its own included.
    pub lost: u64,
    /// Whether the sender had no more data to send when the segment was sent (P.is_app_limited).
    pub app_limited: bool,
    /// Bytes delivered since the start, now (C.delivered).
    pub total_delivered: u64,
}

/// A model-based controller. Windows and quanta are in bytes, rates in bytes/s.
pub trait Model {
    /// An acknowledgement arrived.
    fn on_ack(&mut self, sample: &RateSample);

    /// A segment was declared lost. Called before `on_ack` for the acknowledgement that showed the
    /// loss.
    fn on_lost(&mut self, _lost: &LostSegment, _now: Time) {}

    /// Takes random numbers from `stream` from now on.
    fn set_stream(&mut self, stream: Stream);

    /// Fast recovery begins, or the repair after a timeout.
    fn on_congestion(&mut self, event: &CongestionEvent) {
        match event.kind {
            CongestionKind::Loss | CongestionKind::Ecn => self.on_recovery(),
            CongestionKind::Timeout { .. } => self.on_timeout(event.now),
        }
    }

    /// Fast recovery begins.
    fn on_recovery(&mut self) {}

    /// A retransmission timeout; nothing is in flight.
    fn on_timeout(&mut self, _now: Time) {}

    /// The handshake took `rtt`.
    fn on_handshake(&mut self, rtt: Span, now: Time);

    /// Transmission is about to resume after the application had nothing to send and
    /// everything was delivered: `delivered` bytes since the start.
    fn on_restart(&mut self, now: Time, delivered: u64);

    /// The latest episode was spurious: nothing was lost.
    fn on_undo(&mut self) {}

    /// Replaces the window.
    fn set_cwnd(&mut self, cwnd: f64);

    /// The congestion window.
    fn cwnd(&self) -> f64;

    /// The slow start threshold, if it has one.
    fn ssthresh(&self) -> f64 {
        f64::INFINITY
    }

    /// The pacing rate; `None` if the sender is paced by its window, or not at all.
    fn pacing_rate(&self) -> Option<f64>;

    /// The most bytes that are sent at once.
    fn send_quantum(&self) -> u64;

    /// Whether the bytes in flight are limited to probe for the round trip. Their delivery rate
    /// then says nothing about the path.
    fn probes_rtt(&self) -> bool;

    /// The state's name.
    fn state(&self) -> &'static str;
}

/// The configuration of a model.
#[derive(Clone, Debug)]
pub struct ModelConfig {
    /// Size of a full segment, bytes.
    pub mss: f64,
    /// The initial window, bytes.
    pub initial_cwnd: f64,
    /// The stream of random numbers.
    pub stream: Stream,
    /// Version 1: estimate the rate of a policer (Linux).
    pub lt_bw: bool,
    /// Version 3 with Google's rules: the longest least round trip with which it responds to marks;
    /// zero for any. `None` without ECN.
    pub ecn_max_rtt: Option<Span>,
}

/// Counts packet-timed round trips (draft, section 5.5.1): each ends when a segment sent
/// after its beginning is delivered.
#[derive(Clone, Debug, Default)]
pub(super) struct Rounds {
    /// The round ends when data sent at this count of delivered bytes is acknowledged
    /// (BBR.next_round_delivered).
    pub end: u64,
    /// The number of rounds so far (BBR.round_count).
    pub count: u64,
    /// Whether the present acknowledgement begins a round (BBR.round_start).
    pub started: bool,
}

impl Rounds {
    #[inline]
    pub fn update(&mut self, sample: &RateSample) {
        self.started = sample
            .prior_delivered
            .is_some_and(|prior| prior >= self.end);
        if self.started {
            self.end = sample.total_delivered;
            self.count += 1;
        }
    }
}

/// The greatest of the samples of the latest `N` rounds.
#[derive(Clone, Debug)]
pub(super) struct RoundMax<const N: usize> {
    /// The samples, indexed by the number of the round modulo `N`.
    slots: [f64; N],
    round: u64,
    /// The greatest sample of the present round.
    latest: f64,
    max: f64,
}

impl<const N: usize> Default for RoundMax<N> {
    fn default() -> Self {
        Self {
            slots: [0.0; N],
            round: 0,
            latest: 0.0,
            max: 0.0,
        }
    }
}

impl<const N: usize> RoundMax<N> {
    #[inline]
    pub fn update(&mut self, round: u64, sample: f64) {
        if round != self.round {
            for skipped in (self.round + 1..=round).take(N) {
                self.slots[(skipped % N as u64) as usize] = 0.0;
            }
            self.round = round;
            self.latest = 0.0;
            self.max = self.slots.iter().fold(0.0, |max, &slot| max.max(slot));
        }
        if sample > self.latest {
            self.latest = sample;
            self.slots[(round % N as u64) as usize] = sample;
            self.max = greater(self.max, sample);
        }
    }

    #[inline]
    pub fn max(&self) -> f64 {
        self.max
    }

    /// The greatest sample of the latest round.
    pub fn latest(&self) -> f64 {
        self.latest
    }
}

/// The greatest of the samples of the present window of rounds and the one before, as
/// Linux keeps it (tcp_bbr.c, bbr_update_ack_aggregation).
#[derive(Clone, Debug, Default)]
pub(super) struct TwoWindows {
    /// The greatest samples of the previous window and of the present one.
    slots: [f64; 2],
    /// Rounds that the present window has lasted.
    rounds: u32,
}

impl TwoWindows {
    /// A round ends; windows have `rounds` of them.
    pub fn on_round(&mut self, rounds: u32) {
        self.rounds += 1;
        if self.rounds >= rounds {
            self.rounds = 0;
            self.slots = [self.slots[1], 0.0];
        }
    }

    pub fn update(&mut self, sample: f64) {
        self.slots[1] = greater(self.slots[1], sample);
    }

    pub fn max(&self) -> f64 {
        greater(self.slots[0], self.slots[1])
    }
}

/// Estimates extra_acked: the bytes acknowledged beyond the estimated rate, because links and
/// receivers aggregate (draft, section 5.5.9).
#[derive(Clone, Debug, Default)]
pub(super) struct Aggregation {
    /// The time at which the present interval of the estimate began (BBR.extra_acked_interval_start).
    since: Time,
    /// Bytes delivered in the present interval of the estimate (BBR.extra_acked_delivered).
    acked: f64,
}

impl Aggregation {
    /// Returns extra_acked, in bytes, after `sample`, at the estimated rate `bw`; at most `cwnd`.
    #[inline]
    pub fn extra(&mut self, sample: &RateSample, bw: f64, cwnd: f64) -> f64 {
        let expected = bw * sample.now.saturating_since(self.since).as_secs_f64();
        let mut extra = -expected;
        if self.acked <= expected {
            self.restart(sample.now);
            extra = 0.0;
        }
        self.acked += as_f64(sample.newly_acked);
        extra += self.acked;
        lesser(extra, cwnd)
    }

    pub fn restart(&mut self, now: Time) {
        self.since = now;
        self.acked = 0.0;
    }
}

/// The part of `in_flight` that will be in the network when the next quantum leaves (tcp_bbr.c,
/// bbr_packets_in_net_at_edt): `quantum` more if the model is raising the bytes in flight, less the
/// bytes delivered at `bw` until then.
#[inline]
pub(super) fn in_network_at_departure(
    in_flight: u64,
    sample: &RateSample,
    bw: f64,
    raising: bool,
    quantum: f64,
) -> f64 {
    let more = if raising { quantum } else { 0.0 };
    greater(
        as_f64(in_flight) + more - bw * sample.held_for.as_secs_f64(),
        0.0,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_maximum_leaves_with_its_round() {
        let mut max = RoundMax::<3>::default();
        for (round, sample, expected) in [
            (0, 5.0, 5.0),
            (0, 4.0, 5.0),
            (1, 3.0, 5.0),
            (2, 1.0, 5.0),
            (3, 1.0, 3.0),
            (4, 2.0, 2.0),
            (9, 1.0, 1.0),
            (9, 6.0, 6.0),
        ] {
            max.update(round, sample);
            assert_eq!(max.max(), expected, "round {round}");
        }
        assert_eq!(max.latest(), 6.0);
    }

    #[test]
    fn what_arrives_beyond_the_estimated_rate_is_extra() {
        // draft, section 5.5.9: at 1000 bytes/s, 500 are expected in half a second.
        let mut aggregation = Aggregation::default();
        let sample = |ms: u64, acked: u64| RateSample {
            now: Time::ZERO + Span::from_ms(ms),
            newly_acked: acked,
            ..RateSample::default()
        };
        let mut extra = |ms, acked| aggregation.extra(&sample(ms, acked), 1000.0, 1e9);
        assert_eq!(extra(1000, 400), 400.0);
        assert!((extra(1100, 1000) - 1300.0).abs() < 1e-9);
        // Back at the rate: a new interval.
        assert_eq!(extra(3000, 100), 100.0);
    }

    #[test]
    fn of_two_windows_a_sample_is_kept_for_five_to_ten_rounds() {
        // Linux, bbr_extra_acked_win_rtts = 5: "5-10 (packet timed) round trips".
        for before in 0..5 {
            let mut windows = TwoWindows::default();
            (0..before).for_each(|_| windows.on_round(5));
            windows.update(7.0);
            let kept = (0..20).take_while(|_| {
                windows.on_round(5);
                windows.max() > 0.0
            });
            assert_eq!(kept.count(), 9 - before);
        }
    }
}
