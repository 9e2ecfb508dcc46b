//! RACK: loss detection by time instead of by counting duplicates.
//!
//! Source: RFC 8985, sections 5 and 6. A segment is lost if a segment sent later has been
//! delivered, and a round trip and the reordering window have passed since it was sent.
//!
//! | symbol | meaning |
//! |---|---|
//! | RACK.xmit_ts, RACK.end_seq | when the latest-sent delivered segment was sent, and its end |
//! | RACK.rtt | its round trip |
//! | RACK.fack | the highest byte delivered |
//! | RACK.min_RTT | the least round trip seen |
//! | RACK.reo_wnd | room for reordering |
//!
//! | RACK.reo_wnd_mult | quarters of RACK.min_RTT in it |
//! | RACK.reo_wnd_persist | recoveries after which it narrows again |
//!
//! The reordering window widens by a quarter of the least round trip in each round
//! trip with a report of data that arrived twice (section 6.2, step 4); without
//! D-SACK it stays at one quarter.
//!
//! Linux 6.1 (net/ipv4/tcp_recovery.c, tcp_input.c) differs in what [`Rules::Linux`] says.

use std::collections::VecDeque;

use redtail_core::{Span, Time};

use super::timestamps::{before, timestamp};

/// The version of loss detection by time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rules {
    /// The version of RFC 8985.
    Rfc,
    /// Linux 6.1. RACK.rtt is that of the segment delivered last (`tcp_rack_advance`). A timestamp
    /// shows that a retransmission was spurious only if the segment is acknowledged cumulatively
    /// (`tcp_clean_rtx_queue`). D-SACK reports widen the window only after reordering was seen
    /// (`tcp_dsack_seen`).
    Linux,
}

/// The state of RACK, kept in the scoreboard.
#[derive(Clone, Debug)]
pub struct Rack {
    rules: Rules,
    params: RackParams,
    /// RACK.xmit_ts and RACK.end_seq; `None` before anything was delivered.
    latest: Option<(Time, u64)>,
    rtt: Span,
    min_rtt: Option<Span>,
    fack: u64,
    /// RACK.fack before the present acknowledgement. What one acknowledgement delivers is not
    /// reordered, in whatever order it is entered (`prior_fack` in tcp_ack).
    fack_before: u64,
    reordering_seen: bool,
    /// The multiple of a step, usually a quarter of the least round trip, that makes the reordering window
    /// (RACK.reo_wnd_mult).
    quarters: u32,
    /// The number of recoveries for which the widened reordering window is kept (RACK.reo_wnd_persist).
    persist: u32,
    /// The reordering window is not widened again before this offset is acknowledged (RACK.dsack_round).
    round: Option<u64>,
    /// When the window was last widened.
    widened: Option<Time>,
    /// The timestamp that the latest acknowledgement echoes, if it has one.
    answered: Option<u32>,
    /// Something was delivered since the last loss detection (Linux's rack.advanced).
    advanced: bool,
    /// The lowest end of the segments that were sent once and delivered by the present
    /// acknowledgement.
    original: Option<u64>,
    /// Retransmissions in the order in which they were sent, by the scoreboard's index. Some may
    /// already be acknowledged or lost.
    pub(super) resent: VecDeque<(Time, u64)>,
}

/// The constants of RACK.
#[derive(Clone, Copy, Debug)]
pub(super) struct RackParams {
    /// The step of the reordering window is the least round trip divided by this.
    pub divisor: u32,
    /// Recoveries without D-SACK after which the reordering window narrows.
    pub persist: u32,
}

/// A segment that has just been delivered.
#[derive(Clone, Copy, Debug)]
pub(super) struct Delivered {
    pub sent: Time,
    pub end: u64,
    /// The segment had been retransmitted.
    pub resent: bool,
    /// The segment is acknowledged selectively.
    pub sacked: bool,
}

impl Rack {
    pub(super) fn new(rules: Rules, params: RackParams) -> Self {
        Self {
            rules,
            params,
            latest: None,
            rtt: Span::ZERO,
            min_rtt: None,
            fack: 0,
            fack_before: 0,
            reordering_seen: false,
            quarters: 1,
            persist: 0,
            round: None,
            widened: None,
            answered: None,
            advanced: false,
            original: None,
            resent: VecDeque::new(),
        }
    }

    /// The shortest round trip that was measured.
    #[inline]
    pub(super) fn min_rtt(&self) -> Option<Span> {
        self.min_rtt
    }

    /// A round trip was measured: that of the handshake, by a timestamp, or of a segment that was sent once (RFC 8985,
    /// section 6.2, step 1; Linux, `tcp_ack_update_rtt`).
    #[inline]
    pub(super) fn on_round_trip(&mut self, rtt: Span) {
        self.min_rtt = Some(self.min_rtt.map_or(rtt, |min| min.min(rtt)));
    }

    /// RFC 8985, section 6.2, steps 1 to 3.
    pub(super) fn on_delivered(&mut self, segment: Delivered, now: Time) {
        let Delivered { sent, end, .. } = segment;
        if !segment.resent {
            return self.on_run_delivered(sent, end, end, now);
        }
        let rtt = now - sent;
        // An acknowledgement that arrives too early for the retransmission is of the original.
        let shown = timestamp(sent);
        let early = self
            .answered
            .is_some_and(|answered| before(answered, shown))
            && !(segment.sacked && self.rules == Rules::Linux);
        if !early && self.min_rtt.is_some_and(|min| rtt >= min) {
            self.enter(sent, end, rtt);
        }
    }

    /// Segments are delivered that were sent once and follow each other in the stream:
    /// the last of them, which was sent last, at `sent`, stands for all. They end at `lowest_end`, …, `end`.
    #[inline]
    pub(super) fn on_run_delivered(&mut self, sent: Time, lowest_end: u64, end: u64, now: Time) {
        let rtt = now - sent;
        self.on_round_trip(rtt);
        self.reordering_seen |= lowest_end < self.fack_before;
        let original = self
            .original
            .map_or(lowest_end, |lowest| lowest.min(lowest_end));
        self.original = Some(original);
        self.enter(sent, end, rtt);
    }

    /// Steps 2 and 3, for a segment that was sent at `sent`, ends at `end` and had the round trip `rtt`.
    #[inline]
    fn enter(&mut self, sent: Time, end: u64, rtt: Span) {
        self.advanced = true;
        if self.rules == Rules::Linux {
            self.rtt = rtt;
        }
        self.fack = self.fack.max(end);
        if self.latest.is_none_or(|latest| (sent, end) > latest) {
            self.latest = Some((sent, end));
            self.rtt = rtt;
        }
    }

    /// The round trip of the segment delivered last (RACK.rtt); zero before anything was delivered.
    pub(super) fn rtt(&self) -> Span {
        self.rtt
    }

    /// An acknowledgement is about to update the scoreboard; it echoes the timestamp `answered`.
    pub(super) fn begin_ack(&mut self, answered: Option<u32>) {
        self.answered = answered;
        self.original = None;
        self.fack_before = self.fack;
    }

    /// Whether the present acknowledgement delivered a segment that was sent once and ends at or
    /// below `end`.
    pub(super) fn delivered_original(&self, end: u64) -> bool {
        self.original.is_some_and(|original| original <= end)
    }

    /// Requests loss detection even if nothing more is delivered.
    pub(super) fn advance(&mut self) {
        self.advanced = true;
    }

    /// Whether losses are to be detected. Clears the request.
    pub(super) fn take_advanced(&mut self) -> bool {
        std::mem::take(&mut self.advanced)
    }

    /// A reordered segment, which was not lost, filled a hole.
    pub(super) fn on_reordering(&mut self) {
        self.reordering_seen = true;
    }

    /// A D-SACK report arrived, with data acknowledged up to `una` and sent up to `next` (section
    /// 6.2, step 4).
    pub(super) fn on_duplicate(&mut self, una: u64, next: u64, now: Time) {
        if self.rules == Rules::Linux && !self.reordering_seen {
            return;
        }
        if self.round.is_none_or(|round| una >= round) {
            self.round = Some(next);
            self.quarters = self.quarters.saturating_add(1);
            self.persist = self.params.persist;
            self.widened = Some(now);
        }
    }

    /// Fast recovery, or the recovery from a timeout, is over (section 6.2, step 4).
    pub(super) fn on_episode_end(&mut self, now: Time) {
        if self.widened == Some(now) {
            return; // by the same acknowledgement
        }
        self.persist = self.persist.saturating_sub(1);
        if self.persist == 0 {
            self.quarters = 1;
        }
    }

    /// Forgets the segment delivered last, which was taken for a retransmission but was the
    /// original.
    pub(super) fn forget_latest(&mut self) {
        self.latest = None;
    }

    /// The reordering window (section 6.2, step 4). `certain` in recovery, or if enough data is
    /// selectively acknowledged to rule out reordering.
    pub(super) fn reordering_window(&self, certain: bool, srtt: Option<Span>) -> Span {
        if certain && !self.reordering_seen {
            return Span::ZERO;
        }
        let step = self.min_rtt.unwrap_or(Span::ZERO) / u64::from(self.params.divisor);
        let window = step * u64::from(self.quarters);
        srtt.map_or(window, |srtt| window.min(srtt))
    }

    /// Whether a segment sent at or after `sent` has been delivered.
    pub(super) fn overtakes(&self, sent: Time) -> bool {
        self.latest.is_some_and(|(latest, _)| latest >= sent)
    }

    /// When a segment that was sent at `sent` and ends at `end` is declared lost (step 5). `None`
    /// if no segment sent later has been delivered.
    pub(super) fn lost_at(&self, sent: Time, end: u64, window: Span) -> Option<Time> {
        let latest = self.latest?;
        (latest > (sent, end)).then(|| sent + self.rtt + window)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rack(divisor: u32, persist: u32) -> Rack {
        let mut rack = Rack::new(Rules::Rfc, RackParams { divisor, persist });
        rack.on_round_trip(Span::from_ms(100));
        rack
    }

    #[test]
    fn the_reordering_window_is_a_part_of_the_least_round_trip() {
        for (divisor, ms) in [(4, 25), (2, 50), (1, 100)] {
            let window = rack(divisor, 16).reordering_window(false, None);
            assert_eq!(window, Span::from_ms(ms));
        }
    }

    #[test]
    fn a_widened_window_is_kept_for_a_number_of_recoveries() {
        for persist in [1, 3] {
            let mut rack = rack(4, persist);
            rack.on_duplicate(0, 1000, Time::ZERO);
            let wide = |rack: &Rack| rack.reordering_window(false, None) == Span::from_ms(50);
            let later = Time::ZERO + Span::from_ms(1);
            let kept = (0..10).take_while(|_| {
                rack.on_episode_end(later);
                wide(&rack)
            });
            assert_eq!(kept.count() as u32, persist - 1);
        }
    }
}
