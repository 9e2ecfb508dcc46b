//! The acknowledgement path: what a segment from the peer changes.

use redtail_core::{Span, Time};

use super::{ConnectionState, Phase, Sender};
use crate::cc::{AckSample, CaState, CongestionEvent, CongestionKind, PathSample, as_f64};
use crate::segment::{Flags, PlainAck, Segment};
use crate::tcp::ecn::Arrival;
use crate::tcp::prr::{Delivery, Prr};
use crate::tcp::recovery::{LossRecovery, Recovery, each};
use crate::tcp::rto::RttSampling;
use crate::tcp::scoreboard::Acked;
use crate::tcp::timestamps::before;

impl Sender {
    /// A segment from the peer.
    #[inline(always)] // into the few functions that process segments
    pub fn on_segment(&mut self, segment: &Segment, now: Time) {
        if self.sends_only_new() && self.only_advances(segment) {
            let &Segment { ack, window, .. } = segment;
            let fin = segment.flags.contains(Flags::FIN);
            self.advance(PlainAck { ack, window }, fin, now);
        } else {
            self.on_other_segment(segment, now);
        }
    }

    /// As [`on_segment`](Self::on_segment) with a plain acknowledgement, if it advances and the sender [sends only
    /// new data](Self::sends_only_new). Returns whether that is so before and after it.
    #[inline(always)] // into the one that calls it for each packet
    pub fn on_plain_ack(&mut self, ack: PlainAck, now: Time) -> bool {
        if self.sends_only_new() && self.is_advanced_by(ack.ack) {
            return self.advance_in_place(ack, false, now);
        }
        self.on_other_plain_ack(ack, now);
        false
    }

    #[inline(never)]
    fn on_other_plain_ack(&mut self, ack: PlainAck, now: Time) {
        self.on_other_segment(&ack.segment(), now);
    }

    /// Processes a segment that does more than [advance](Self::only_advances), or reaches a sender that does more
    /// than [send new data](Self::sends_only_new).
    #[inline]
    fn on_other_segment(&mut self, segment: &Segment, now: Time) {
        if self.connection.state == ConnectionState::Established {
            if self.acknowledges_nothing(segment) {
                self.note_window(segment);
            } else {
                self.on_ack(segment, now);
            }
        } else {
            self.on_control(segment, now);
        }
    }

    /// Whether an acknowledgement advances and says nothing else, and no data is selectively acknowledged.
    #[inline]
    fn only_advances(&self, segment: &Segment) -> bool {
        self.only_acknowledges(segment) && !self.board.has_sacked()
    }

    /// Whether an acknowledgement advances and acknowledges nothing selectively.
    #[inline]
    pub(super) fn only_acknowledges(&self, segment: &Segment) -> bool {
        segment.flags.contains(Flags::ACK)
            && !segment.flags.contains(Flags::SYN)
            && segment.sack.is_empty()
            && self.covers(segment.ack)
    }

    /// Whether an acknowledgement up to `ack` advances, and no data is selectively acknowledged.
    #[inline]
    fn is_advanced_by(&self, ack: u64) -> bool {
        self.covers(ack) && !self.board.has_sacked()
    }

    /// Whether an acknowledgement up to `ack` covers outstanding data, and nothing that was never sent.
    #[inline]
    fn covers(&self, ack: u64) -> bool {
        (1..=self.board.outstanding()).contains(&ack.wrapping_sub(self.board.una()))
    }

    /// Whether a segment tells only the peer's window, because everything was acknowledged before: so are most segments
    /// with data of a peer that answers.
    #[inline]
    fn acknowledges_nothing(&self, segment: &Segment) -> bool {
        self.is_basic()
            && self.board.outstanding() == 0
            && segment.ack == self.board.next()
            && segment.flags.contains(Flags::ACK)
            && !segment.flags.contains(Flags::SYN)
    }

    /// Whether a segment [acknowledges nothing](Self::acknowledges_nothing), and this sender has nothing to send before
    /// and after it: then [`note_window`](Self::note_window) processes the segment.
    #[inline]
    pub(in crate::tcp) fn rests_after(&mut self, segment: &Segment) -> bool {
        self.connection.state == ConnectionState::Established
            && self.acknowledges_nothing(segment)
            && self.rests()
    }

    /// Processes a segment that tells only the peer's window.
    #[inline]
    pub(in crate::tcp) fn note_window(&mut self, segment: &Segment) {
        self.peer_window = segment.window;
    }

    /// Processes an acknowledgement that [only advances](Self::only_advances), for a sender that [sends only
    /// new data](Self::sends_only_new): [`on_ack`](Self::on_ack) without what it does not need then.
    #[inline(never)]
    fn advance(&mut self, ack: PlainAck, fin: bool, now: Time) {
        self.advance_in_place(ack, fin, now);
    }

    /// As [`advance`](Self::advance), compiled into the caller. `fin` says whether the acknowledgement carries a FIN.
    /// Returns whether the sender still sends only new data.
    #[inline(always)]
    fn advance_in_place(&mut self, ack: PlainAck, fin: bool, now: Time) -> bool {
        let PlainAck { ack, window } = ack;
        self.peer_window = window;
        self.timeouts_in_row = 0;
        self.counters.stalls.count_if(self.progress.advance(now));
        let (outstanding, delivered) = (self.board.outstanding(), self.board.delivered());
        let acked = self.board.on_ack_untimed(ack);
        let rtt = self.sample_untimed(ack, acked, now);
        // Whether the congestion window limited sending until now (`window_is_full`).
        if as_f64(outstanding + u64::from(self.mss)) > self.controller.window().cwnd {
            let bytes = match self.params().byte_counting {
                true => self.board.delivered() - delivered,
                false => acked.bytes,
            };
            if !self.controller.avoids_as_reno(bytes) {
                let sample = self.ack_sample(ack, bytes, 0, rtt, now);
                self.controller.on_ack(&sample);
            }
        }
        self.restart_timeout(now);
        if self.finish(ack, fin) {
            return false;
        }
        if self.params().traits.pipe_is_exact && self.board.first_is_lost() {
            self.maybe_enter_recovery(now);
            return self.sends_only_new();
        }
        true
    }

    /// Processes an acknowledgement that is not the most frequent one of a basic sender.
    #[inline(never)] // so that the function above is short
    fn on_ack(&mut self, segment: &Segment, now: Time) {
        match self.only_advances_as_linux(segment) {
            true => self.advance_as_linux(segment, now),
            false => self.on_any_ack(segment, now),
        }
    }

    /// Processes any acknowledgement.
    #[inline(never)] // so that the function above is short
    fn on_any_ack(&mut self, segment: &Segment, now: Time) {
        // An acknowledgement of data never sent is dropped (RFC 9293, section 3.10.7.4). So is a
        // repeated SYN-ACK, which is no duplicate acknowledgement (RFC 5681, section 2).
        if !segment.flags.contains(Flags::ACK)
            || segment.flags.contains(Flags::SYN)
            || segment.ack > self.board.next() && !self.is_probe_accepted(segment.ack)
        {
            return;
        }
        // A segment with data is no duplicate acknowledgement (RFC 5681, section 2).
        let same_window = segment.window == self.peer_window && segment.len == 0;
        if segment.ack >= self.board.una() {
            self.on_window(segment);
        }
        let marked = if self.optional.ecn().enabled() {
            self.on_feedback(segment, now)
        } else {
            0
        };
        if self.optional.linux().is_some() {
            self.catch_up();
            return self.on_ack_as_linux(segment, marked, same_window, now);
        }
        let (una, delivered) = (self.board.una(), self.board.delivered());
        if self.optional.timers().is_some() {
            self.begin_ack(segment);
        }
        if self.optional.undo().is_some() && !segment.sack.is_empty() {
            self.on_report(segment, now);
        }
        let in_flight = self.board.pipe();
        self.newly_lost = false;
        if segment.ack > una {
            self.on_new_ack(segment, marked, now);
            self.check_timeout(una, delivered, marked > 0);
        } else if segment.ack == una && self.board.outstanding() > 0 {
            self.on_same_ack(segment, same_window, now);
            self.check_timeout(una, delivered, marked > 0);
        }
        if self.optional.timers().is_some() && self.board.has_sacked() {
            self.judge(now);
        }
        if let Some(prr) = self.optional.prr_mut() {
            let delivery = Delivery {
                delivered: self.board.delivered() - delivered,
                in_flight: self.board.pipe(),
                safe: segment.ack > una && !self.newly_lost,
            };
            let ssthresh = self.controller.window().ssthresh;
            prr.on_ack(delivery, ssthresh, f64::from(self.mss));
        }
        if self.pacer.is_some() {
            self.tell_model(una, in_flight, marked, now);
        }
    }

    /// An acknowledgement is about to update the scoreboard. Returns the timestamp that it echoes.
    #[inline]
    pub(super) fn begin_ack(&mut self, segment: &Segment) -> Option<u32> {
        let echo = self.params().timestamps.then_some(segment.ts_ecr);
        if let Some(rack) = self.board.rack_mut() {
            rack.begin_ack(echo);
        }
        self.newly_lost = false;
        echo
    }

    /// An acknowledgement that does not advance while data is outstanding.
    #[inline]
    fn on_same_ack(&mut self, segment: &Segment, same_window: bool, now: Time) {
        // A segment that changes the window or carries a FIN is no duplicate acknowledgement (RFC
        // 5681, section 2).
        let same_window = same_window && !segment.flags.contains(Flags::FIN);
        self.counters.duplicate_acks.count_if(same_window);
        let newly_sacked = self.enter_sack(segment, now);
        if self.watched {
            self.tell_law(Acked::default(), now);
        }
        if newly_sacked > 0 && self.params().sampling == RttSampling::EveryDelivery {
            self.sample_sacked(now);
        }
        if (same_window || newly_sacked > 0)
            && self.params().traits.counts_as_duplicate(newly_sacked)
        {
            self.on_duplicate_ack(now);
        }
    }

    /// An acknowledgement that advances.
    #[inline]
    fn on_new_ack(&mut self, segment: &Segment, marked: u64, now: Time) {
        let window_was_full = self.window_is_full();
        if self.optional.timers().is_some() {
            self.on_probe_answered(segment, now);
        }
        let delivered = self.board.delivered();
        let (acked, times) = match self.params().sampling {
            RttSampling::EveryDelivery => self.board.on_ack_with_times(segment.ack, now),
            _ => (self.board.on_ack(segment.ack, now), None),
        };
        self.counters.stalls.count_if(self.progress.advance(now));
        self.timeouts_in_row = 0;
        let finished = self.recover.is_reached_by(segment.ack);
        let in_recovery = self.phase == Phase::Recovery;
        let partial = in_recovery && !finished && !self.params().traits.ends_on_partial_ack;
        if !segment.sack.is_empty() {
            self.enter_sack(segment, now);
        }
        let rtt = match self.params().sampling {
            RttSampling::EveryDelivery => self.sample_delivery(segment, times, now),
            _ if partial && !self.params().timestamps => None,
            _ => self.sample_rtt(segment, acked, now),
        };
        if self.watched {
            self.tell_law(acked, now);
        }
        if partial {
            self.on_partial_ack(acked, now);
            return;
        }
        if in_recovery || self.phase == Phase::Loss && finished {
            self.leave_episode(now);
        }
        if self.optional.end_prr_at(segment.ack) {
            self.controller.on_episode_end(false, now);
        }
        if self.params().traits.forgets_sacked {
            self.board.forget_sacked();
        }
        self.dup_acks = 0;
        let grows = if in_recovery {
            self.params().traits.exit_grows_window
        } else {
            window_was_full
        };
        if grows && self.optional.prr().is_none() {
            // With byte counting each byte counts once: bytes selectively acknowledged before do
            // not grow the window again when the hole below them is filled (Linux).
            let bytes = if self.params().byte_counting {
                self.board.delivered() - delivered
            } else {
                acked.bytes
            };
            let sample = self.ack_sample(segment.ack, bytes, marked, rtt, now);
            self.controller.on_ack(&sample);
        }
        self.restart_timer(now);
        let fin = segment.flags.contains(Flags::FIN);
        if !self.finish(segment.ack, fin)
            && self.params().traits.pipe_is_exact
            && self.board.first_is_lost()
        {
            // Losses that are already known begin the next episode.
            self.maybe_enter_recovery(now);
        }
    }

    /// Stores the window and the timestamp of an acknowledgement.
    #[inline]
    pub(super) fn on_window(&mut self, segment: &Segment) {
        self.peer_window = segment.window;
        if self.params().timestamps && !before(segment.ts_val, self.ts_recent) {
            self.ts_recent = segment.ts_val;
        }
    }

    pub(super) fn enter_sack(&mut self, segment: &Segment, now: Time) -> u64 {
        if segment.sack.is_empty() {
            return 0;
        }
        let bytes = self.board.on_sack(segment.sack.iter(segment.ack), now);
        self.sample_due |= bytes > 0;
        if self.params().traits.pipe_is_exact && self.optional.timers().is_none() {
            self.newly_lost |=
                self.board
                    .detect_losses(self.params().dup_thresh, self.mss, self.stream.size);
        }
        bytes
    }

    /// Processes the ECN feedback of an acknowledgement. Returns the bytes it newly reports as
    /// marked.
    #[inline(never)] // so that senders without ECN are not burdened
    pub(super) fn on_feedback(&mut self, segment: &Segment, now: Time) -> u64 {
        let (una, next) = (self.board.una(), self.board.next());
        let window = self.controller.window();
        let Some(ecn) = self.optional.ecn_mut() else {
            return 0;
        };
        let marks = ecn.on_ack(&Arrival {
            segment,
            una,
            next,
            now,
            slow_start: window.cwnd < window.ssthresh,
        });
        if let Some(linux) = self.optional.linux_mut() {
            linux.on_marks(marks.reduce);
            return marks.bytes;
        }
        if marks.reduce && self.phase != Phase::Recovery {
            self.counters.ecn_reductions.count();
            self.forbid_undo();
            if let Some(ecn) = self.optional.ecn_mut() {
                ecn.on_reduction(next, now);
            }
            self.controller.on_congestion(&CongestionEvent {
                now,
                kind: CongestionKind::Ecn,
                // A response in proportion to the marks reduces the window (RFC 8257, section 3.3).
                flight: match self.optional.ecn().alpha() {
                    Some(_) => u64::MAX,
                    None => self.board.outstanding(),
                },
                beta: self.optional.ecn().beta(self.controller.beta_ecn()),
            });
            let spread = self.params().uses_prr && self.optional.ecn().spreads_reduction();
            if spread && self.params().traits.pipe_is_exact && self.phase == Phase::Open {
                let sacked = self.board.sacked().bytes();
                let reduction = Prr::for_marks(self.board.outstanding(), sacked, next);
                self.optional.add().prr = Some(Box::new(reduction));
            } else if self.phase == Phase::Open {
                self.controller.on_episode_end(false, now);
            }
        }
        marks.bytes
    }

    fn on_duplicate_ack(&mut self, now: Time) {
        if self.phase == Phase::Recovery {
            let mss = self.mss;
            each!(&mut self.recovery, r => r.on_duplicate(mss));
        } else {
            self.dup_acks += 1;
            self.maybe_enter_recovery(now);
        }
    }

    fn on_partial_ack(&mut self, acked: Acked, now: Time) {
        let mss = self.mss;
        let resend =
            each!(&mut self.recovery, r => r.on_partial_ack(&mut self.board, acked.bytes, mss));
        self.resend_first |= resend;
        let every = self.params().traits.every_partial_ack_restarts_timer;
        if every {
            self.timer.rtt.end_back_off();
        }
        if every || !self.timer_restarted {
            self.timer_restarted = true;
            self.restart_timer(now);
        }
    }

    /// Whether the congestion window, rather than the peer or the application, limits sending. It
    /// grows only then (RFC 5681, section 3.1; RFC 7661).
    #[inline]
    fn window_is_full(&self) -> bool {
        let full = self.board.outstanding() + u64::from(self.mss);
        as_f64(full) > self.controller.window().cwnd
            || (self.pacer.as_ref()).is_some_and(|pacer| pacer.had_full_window(self.board.una()))
    }

    /// What the growth law learns from an acknowledgement up to `una` that delivers `acked` bytes, newly
    /// reports `marked` bytes as marked and gives the sample `rtt`.
    #[inline]
    pub(super) fn ack_sample(
        &self,
        una: u64,
        acked: u64,
        marked: u64,
        rtt: Option<Span>,
        now: Time,
    ) -> AckSample {
        AckSample {
            now,
            acked,
            marked,
            una,
            next: self.board.next(),
            rtt,
            srtt: self.timer.rtt.srtt(),
            rtt_independent: self.optional.ecn().is_rtt_independent(),
        }
    }

    /// Passes an acknowledgement, which covers `acked`, to a law that watches the path.
    #[inline(never)] // so that senders of other laws are not burdened
    fn tell_law(&mut self, acked: Acked, now: Time) {
        let state = match self.phase {
            Phase::Recovery => CaState::Recovery,
            Phase::Loss => CaState::Loss,
            Phase::Open if self.optional.prr().is_some() => CaState::Reduction,
            Phase::Open if self.board.has_sacked() => CaState::Disorder,
            Phase::Open => CaState::Open,
        };
        self.tell_law_in(state, acked, now);
    }

    /// As [`tell_law`](Self::tell_law), for a sender that was in `state` when the acknowledgement
    /// arrived.
    pub(super) fn tell_law_in(&mut self, state: CaState, acked: Acked, now: Time) {
        self.controller.watch(&PathSample {
            now,
            acked: acked.bytes,
            una: self.board.una(),
            next: self.board.next(),
            rtt: acked.sent.map(|sent| now.saturating_since(sent)),
            srtt: self.timer.rtt.srtt(),
            state,
        });
    }
}
