//! Delivery rate samples: the rate at which the network delivered the data that an acknowledgement
//! covers.
//!
//! Source: draft-ietf-ccwg-bbr-06, section 4.1 (first draft-cheng-iccrg-delivery-rate-estimation;
//! Linux, net/ipv4/tcp_rate.c).
//!
//! | symbol | meaning | unit |
//! |---|---|---|
//! | C.delivered | delivered since the start, in order or not | bytes |
//! | C.delivered_time | when that last grew | s |
//! | C.first_send_time | when the newest delivered segment was sent | s |
//! | C.app_limited | C.delivered from which on samples count in full again | bytes |
//! | C.lost | declared lost since the start | bytes |
//! | delivered_ce | reported as marked since the start (google/bbr, tcp_rate.c) | bytes |
//! | P.… | the same when segment P was sent | |
//!
//! ```text
//! ack_elapsed  = C.delivered_time - P.delivered_time
//! send_elapsed = P.send_time - P.first_send_time
//! delivery_rate = (C.delivered - P.delivered) / max(ack_elapsed, send_elapsed)
//! ```
//!
//! P is the newest segment delivered. An interval shorter than the least round trip gives no rate,
//! because an earlier transmission of P was acknowledged.

use redtail_core::ring::Ring;
use redtail_core::{Span, Time};

use crate::cc::as_f64;
use crate::cc::model::{Episode, LostSegment, RateSample};

/// The state when a segment was last sent. It takes 32 bytes in addition to the scoreboard's
/// record.
#[derive(Clone, Copy, Debug, Default)]
struct Sent {
    /// The lower 32 bits of P.delivered; fewer than 2^32 bytes are delivered while the segment is
    /// outstanding.
    delivered: u32,
    /// The lower 32 bits of the bytes marked by then.
    marked: u32,
    delivered_time: Time,
    first_send_time: Time,
    /// Bytes in flight just after the segment was sent (P.tx_in_flight), below 2^31. The highest bit says
    /// whether the sender was application-limited (P.is_app_limited).
    in_flight: u32,
    /// The lower 32 bits of P.lost; fewer than 2^32 bytes are lost while the segment is
    /// outstanding.
    lost: u32,
}

const APP_LIMITED: u32 = 1 << 31;

impl Sent {
    fn app_limited(&self) -> bool {
        self.in_flight & APP_LIMITED != 0
    }

    fn in_flight(&self) -> u64 {
        u64::from(self.in_flight & !APP_LIMITED)
    }
}

/// A segment as the scoreboard knows it.
#[derive(Clone, Copy, Debug)]
pub(super) struct SegmentInfo {
    /// Its position among the outstanding segments.
    pub place: usize,
    pub start: u64,
    pub len: u32,
    pub sent: Time,
    /// Whether it was sent more than once.
    pub ambiguous: bool,
}

/// The newest segment that an acknowledgement delivers.
#[derive(Clone, Copy, Debug)]
struct Newest {
    then: Sent,
    start: u64,
    send_elapsed: Span,
}

/// The part of a rate sample that only the sender knows.
#[derive(Clone, Copy, Debug)]
pub(super) struct AckContext {
    pub prior_in_flight: u64,
    pub in_flight: u64,
    /// The cumulative acknowledgement before this one.
    pub una: u64,
    /// Bytes by which this one advances it.
    pub advanced: u64,
    pub srtt: Option<Span>,
    pub episode: Episode,
    /// Bytes newly reported as marked.
    pub marked: u64,
    /// The time for which pacing holds back the next segment.
    pub held_for: Span,
}

/// The rate sample of the present acknowledgement, before [`RateSampler::finish`]. A model computes it, because it
/// knows what it uses of it.
pub(super) struct Unfinished<'a> {
    pub rates: &'a mut RateSampler,
    pub context: AckContext,
    pub now: Time,
}

impl From<Unfinished<'_>> for RateSample {
    #[inline(always)] // into the function of each model
    fn from(sample: Unfinished<'_>) -> Self {
        sample.rates.finish(sample.context, sample.now)
    }
}

/// The sampler. It is kept in the scoreboard and has an entry for each of its records.
#[derive(Clone, Debug, Default)]
pub struct RateSampler {
    sent: Ring<Sent>,
    delivered: u64,
    delivered_time: Time,
    first_send_time: Time,
    lost: u64,
    marked: u64,
    /// The count of delivered bytes up to which samples are application-limited (C.app_limited); zero if
    /// the sender is not application-limited.
    app_limited: u64,
    /// The next offset to send when the window last prevented sending.
    window_limited_at: Option<u64>,
    min_rtt: Option<Span>,
    // Of the present acknowledgement.
    newest: Option<Newest>,
    /// The send time of the newest delivered segment that was sent once.
    timed: Option<Time>,
    newly_acked: u64,
    lost_before: u64,
    /// Segments declared lost and not yet reported.
    losses: Vec<LostSegment>,
}

/// Capacity, in records, below which memory is not released.
const MIN_SHRINK_CAPACITY: usize = 16;

impl RateSampler {
    /// A new segment of `len` bytes was sent; `in_flight` bytes are in flight, its own included.
    #[inline]
    pub(super) fn on_new(&mut self, len: u32, in_flight: u64, now: Time) {
        let sent = self.snapshot(len, in_flight, now);
        self.sent.push_back(sent);
    }

    /// The segment at position `place` was retransmitted.
    pub(super) fn on_resent(&mut self, place: usize, len: u32, in_flight: u64, now: Time) {
        self.sent[place] = self.snapshot(len, in_flight, now);
    }

    /// A segment is sent (OnPacketSent of the draft).
    #[inline]
    fn snapshot(&mut self, len: u32, in_flight: u64, now: Time) -> Sent {
        if in_flight <= u64::from(len) {
            self.first_send_time = now;
            self.delivered_time = now;
        }
        let limited = if self.app_limited > 0 { APP_LIMITED } else { 0 };
        Sent {
            delivered: self.delivered as u32,
            marked: self.marked as u32,
            delivered_time: self.delivered_time,
            first_send_time: self.first_send_time,
            in_flight: in_flight as u32 | limited,
            lost: self.lost as u32,
        }
    }

    /// A segment was delivered (UpdateRateSample of the draft).
    #[inline(never)] // keeps the path of senders without a model short
    pub(super) fn on_delivered(&mut self, segment: SegmentInfo, now: Time) {
        self.deliver(segment, u64::from(segment.len), now);
    }

    /// `bytes` were delivered, the last of them by `segment`, which was sent last.
    #[inline(always)] // into the three that are called
    fn deliver(&mut self, segment: SegmentInfo, bytes: u64, now: Time) {
        self.delivered += bytes;
        self.newly_acked += bytes;
        self.delivered_time = now;
        if !segment.ambiguous {
            self.timed = self.timed.max(Some(segment.sent));
        }
        let newest = self.newest.is_none_or(|newest| {
            segment.sent > self.first_send_time
                || (segment.sent == self.first_send_time && segment.start > newest.start)
        });
        if newest {
            let then = self.sent[segment.place];
            self.newest = Some(Newest {
                then,
                start: segment.start,
                send_elapsed: segment.sent.saturating_since(then.first_send_time),
            });
            self.first_send_time = segment.sent;
        }
    }

    /// The first outstanding segment is cumulatively acknowledged. With `known`, its delivery was
    /// already counted.
    #[inline]
    pub(super) fn on_acked(&mut self, first: SegmentInfo, known: bool, now: Time) {
        if !known {
            self.deliver(first, u64::from(first.len), now);
        }
        self.sent.pop_front();
    }

    /// The first outstanding segments, of which `last` is the last, are cumulatively acknowledged. They have
    /// `bytes` bytes, were sent once and are newly delivered.
    #[inline(always)] // into the one path of most acknowledgements
    pub(super) fn on_run_acked(&mut self, last: SegmentInfo, bytes: u64, now: Time) {
        self.deliver(last, bytes, now);
        self.sent.remove_first(last.place + 1);
    }

    /// Releases the memory that a large window needed.
    pub(super) fn shrink(&mut self) {
        let capacity = self.sent.capacity();
        if capacity > MIN_SHRINK_CAPACITY && self.sent.len() < capacity / 4 {
            self.sent.shrink_to(capacity / 2);
        }
    }

    /// A segment was declared lost.
    pub(super) fn on_lost(&mut self, place: usize, start: u64, len: u32) {
        self.lost += u64::from(len);
        let sent = self.sent[place];
        self.losses.push(LostSegment {
            start,
            len,
            sent_in_flight: sent.in_flight(),
            lost: u64::from((self.lost as u32).wrapping_sub(sent.lost)),
            app_limited: sent.app_limited(),
            total_delivered: self.delivered,
        });
    }

    /// Whether segments were declared lost since the last call of [`losses`](Self::losses).
    #[inline]
    pub(super) fn has_losses(&self) -> bool {
        !self.losses.is_empty()
    }

    /// Segments declared lost since the last call.
    pub(super) fn losses(&mut self) -> impl Iterator<Item = LostSegment> + '_ {
        self.losses.drain(..)
    }

    /// Attributes the losses so far to the present acknowledgement, not to the next.
    pub(super) fn settle_losses(&mut self) {
        self.lost_before = self.lost;
    }

    /// The sender has nothing to send, with `in_flight` bytes in flight
    /// (MarkConnectionAppLimited of the draft).
    pub(super) fn mark_app_limited(&mut self, in_flight: u64) {
        self.app_limited = (self.delivered + in_flight).max(1);
    }

    /// Returns the bytes delivered since the start (C.delivered).
    pub(super) fn delivered(&self) -> u64 {
        self.delivered
    }

    /// Whether the sender is application-limited.
    pub(super) fn is_app_limited(&self) -> bool {
        self.app_limited > 0
    }

    /// The window prevents sending; `next` is the next offset to send.
    #[inline]
    pub(super) fn mark_window_limited(&mut self, next: u64) {
        self.window_limited_at = Some(next);
    }

    /// The rate sample of the present acknowledgement (GenerateRateSample of the draft).
    #[inline(always)] // into the function of each model, which uses some of its fields
    pub(super) fn finish(&mut self, context: AckContext, now: Time) -> RateSample {
        if self.app_limited > 0 && self.delivered > self.app_limited {
            self.app_limited = 0; // all data sent while application-limited is delivered
        }
        let rtt = self.timed.take().map(|sent| now.saturating_since(sent));
        if let Some(rtt) = rtt {
            self.min_rtt = Some(self.min_rtt.map_or(rtt, |min| min.min(rtt)));
        }
        self.marked += context.marked;
        let newest = self.newest.take();
        let then = newest.map_or_else(Sent::default, |newest| newest.then);
        // What was counted since the newest segment was sent; zero if none was delivered.
        let since = |now: u64, then: u32| match newest {
            Some(_) => u64::from((now as u32).wrapping_sub(then)),
            None => 0,
        };
        let delivered = since(self.delivered, then.delivered);
        let interval = newest.map(|newest| {
            let ack_elapsed = now.saturating_since(then.delivered_time);
            ack_elapsed.max(newest.send_elapsed)
        });
        let least = self.min_rtt.unwrap_or(Span::ZERO);
        let long_enough = |interval: &Span| *interval > Span::ZERO && *interval >= least;
        let sample = RateSample {
            now,
            total_delivered: self.delivered,
            newly_acked: std::mem::take(&mut self.newly_acked),
            advanced: context.advanced,
            newly_lost: self.lost - self.lost_before,
            prior_delivered: newest.map(|_| self.delivered - delivered),
            delivered,
            delivery_rate: interval
                .filter(long_enough)
                .map(|interval| as_f64(delivered) / interval.as_secs_f64()),
            app_limited: then.app_limited(),
            rtt,
            sent_in_flight: then.in_flight(),
            lost: since(self.lost, then.lost),
            prior_in_flight: context.prior_in_flight,
            in_flight: context.in_flight,
            window_limited: self.window_limited_at.is_some_and(|at| context.una < at),
            srtt: context.srtt,
            held_for: context.held_for,
            newly_marked: context.marked,
            marked: since(self.marked, then.marked),
            total_marked: self.marked,
            episode: context.episode,
        };
        self.lost_before = self.lost;
        sample
    }

    /// Checks that there is an entry for each of the `outstanding` segments of the scoreboard; for
    /// tests.
    pub(super) fn assert_consistent(&self, outstanding: usize) {
        assert_eq!(self.sent.len(), outstanding, "samples lost their segments");
        assert!(self.newest.is_none(), "an acknowledgement was not finished");
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;

    const LEN: u32 = 1000;

    fn at(ms: u64) -> Time {
        Time::ZERO + Span::from_ms(ms)
    }

    /// A sampler with a minimal scoreboard: each segment is acknowledged separately, in order.
    #[derive(Default)]
    struct Script {
        sampler: RateSampler,
        sent: VecDeque<Time>,
        next: u64,
        ambiguous: bool,
    }

    impl Script {
        fn sends(&mut self, ms: u64) {
            self.sent.push_back(at(ms));
            let in_flight = u64::from(LEN) * self.sent.len() as u64;
            self.sampler.on_new(LEN, in_flight, at(ms));
        }

        fn acked(&mut self, ms: u64) -> RateSample {
            let segment = SegmentInfo {
                place: 0,
                start: self.next,
                len: LEN,
                sent: self.sent.pop_front().expect("it was sent"),
                ambiguous: self.ambiguous,
            };
            self.next += u64::from(LEN);
            self.sampler.on_acked(segment, false, at(ms));
            self.finish(ms)
        }

        fn finish(&mut self, ms: u64) -> RateSample {
            let context = AckContext {
                prior_in_flight: 0,
                in_flight: u64::from(LEN) * self.sent.len() as u64,
                una: self.next,
                advanced: 0,
                srtt: None,
                episode: Episode::Open,
                marked: 0,
                held_for: Span::ZERO,
            };
            self.sampler.finish(context, at(ms))
        }

        /// Sends one segment every `every` ms from `from` to `to`, each acknowledged 100 ms later.
        /// Returns the rates.
        fn steady(&mut self, from: u64, to: u64, every: u64) -> Vec<(Option<f64>, bool)> {
            let mut samples = Vec::new();
            for ms in from..to {
                if self
                    .sent
                    .front()
                    .is_some_and(|&sent| sent + Span::from_ms(100) <= at(ms))
                {
                    let sample = self.acked(ms);
                    samples.push((sample.delivery_rate, sample.app_limited));
                }
                if ms % every == 0 {
                    self.sends(ms);
                }
            }
            samples
        }
    }

    #[test]
    fn at_a_steady_rate_the_estimate_is_exact() {
        let mut script = Script::default();
        let samples = script.steady(0, 1000, 10);
        // After the first round trip, 1000 bytes are delivered every 10 ms.
        for (rate, _) in &samples[11..] {
            let rate = rate.expect("a sample has a rate");
            assert!((rate - 100_000.0).abs() < 1e-6, "{rate}");
        }
        assert_eq!(samples.len(), 90);
    }

    #[test]
    fn acknowledgements_that_come_in_a_burst_do_not_raise_the_estimate() {
        // Section 4.1.1.2.3: delivered no faster than sent.
        let mut script = Script::default();
        script.steady(0, 300, 10);
        let most = (0..10)
            .filter_map(|_| script.acked(300).delivery_rate)
            .fold(0.0, f64::max);
        assert!((most - 100_000.0).abs() < 11_000.0, "{most}");
    }

    #[test]
    fn an_interval_below_the_least_round_trip_gives_no_rate() {
        // Section 4.1.2.3: another transmission is acknowledged.
        let mut script = Script::default();
        script.steady(0, 300, 10);
        // After a timeout the first segment is retransmitted with nothing else in flight. The
        // acknowledgement of the original arrives 10 ms later.
        let len = u64::from(LEN);
        script.ambiguous = true;
        script.sampler.on_resent(0, LEN, len, at(300));
        script.sent[0] = at(300);
        let sample = script.acked(310);
        assert_eq!(sample.prior_delivered, Some(20 * len));
        assert_eq!((sample.delivery_rate, sample.rtt), (None, None));
    }

    #[test]
    fn samples_are_limited_by_the_application_until_the_gap_has_left_the_path() {
        // Section 4.1.1.3.
        let mut script = Script::default();
        script.steady(0, 300, 10);
        let in_flight = u64::from(LEN) * script.sent.len() as u64;
        script.sampler.mark_app_limited(in_flight);
        assert!(script.sampler.is_app_limited());
        let samples = script.steady(300, 800, 50);
        // Segments sent before are not application-limited. Segments sent after are, until one of
        // them is delivered.
        let limited: Vec<bool> = samples.iter().map(|&(_, limited)| limited).collect();
        assert_eq!(limited[..10], [false; 10]);
        assert!(limited[10] && limited[11]);
        assert!(!limited[14..].contains(&true), "{limited:?}");
    }

    #[test]
    fn losses_are_counted_since_the_segment_was_sent() {
        let mut script = Script::default();
        for ms in 0..4 {
            script.sends(ms);
        }
        let len = u64::from(LEN);
        script.sampler.on_lost(1, len, LEN);
        script.sends(4);
        script.sampler.on_lost(2, 2 * len, LEN);
        let lost: Vec<_> = script.sampler.losses().collect();
        let seen: Vec<_> = lost
            .iter()
            .map(|l| (l.start, l.lost, l.sent_in_flight))
            .collect();
        assert_eq!(seen, [(len, len, 2 * len), (2 * len, 2 * len, 3 * len)]);
        let sample = script.acked(100);
        assert_eq!((sample.lost, sample.newly_lost), (2 * len, 2 * len));
        // The last was sent after the first loss.
        for _ in 0..3 {
            script.acked(101);
        }
        assert_eq!(script.acked(102).lost, len);
    }

    #[test]
    fn an_acknowledgement_that_delivers_nothing_gives_no_sample() {
        let mut script = Script::default();
        script.steady(0, 300, 10);
        let sample = script.finish(301);
        assert_eq!(sample.prior_delivered, None);
        assert_eq!(sample.delivery_rate, None);
        assert_eq!(sample.newly_acked, 0);
    }
}
