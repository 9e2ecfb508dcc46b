//! The acknowledgement path: what a segment from the peer changes.

use redtail_core::{Span, Time};

use super::kind::{Any, Basic, Kind, Linux, Path};
use super::linux::LinuxStates;
use super::loss_probe::RackTimers;
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
            self.advance(segment, now);
        } else {
            self.on_other_segment(segment, now);
        }
    }

    /// A plain acknowledgement. Returns whether the sender [sends only new data](Self::sends_only_new) before and after
    /// it; if not, it may.
    #[inline(always)] // into the one that calls it for each packet
    pub fn on_plain_ack(&mut self, ack: PlainAck, now: Time) -> bool {
        let segment = ack.segment();
        if self.sends_only_new() && self.only_advances(&segment) {
            return self.on_new_ack::<Basic>(&segment, 0, now);
        }
        self.on_other_plain_ack(ack, now);
        false
    }

    #[inline(never)]
    fn on_other_plain_ack(&mut self, ack: PlainAck, now: Time) {
        self.on_other_segment(&ack.segment(), now);
    }

    /// An acknowledgement that [only advances](Self::only_advances) reaches a sender that [sends only new
    /// data](Self::sends_only_new).
    #[inline(never)] // one copy of the most frequent path
    fn advance(&mut self, segment: &Segment, now: Time) {
        self.on_new_ack::<Basic>(segment, 0, now);
    }

    /// Processes a segment that does more than [advance](Self::only_advances), or reaches a sender that does more
    /// than [send new data](Self::sends_only_new).
    #[inline]
    fn on_other_segment(&mut self, segment: &Segment, now: Time) {
        if self.connection.state != ConnectionState::Established {
            self.on_control(segment, now);
        } else if self.acknowledges_nothing(segment) {
            self.note_window(segment);
        } else {
            self.on_ack(segment, now);
        }
    }

    /// Whether an acknowledgement advances and says nothing else, and no data is selectively acknowledged.
    #[inline]
    fn only_advances(&self, segment: &Segment) -> bool {
        self.only_acknowledges(segment) && !self.board.has_sacked()
    }

    /// Whether an acknowledgement covers outstanding data and nothing that was never sent, and acknowledges nothing
    /// selectively.
    #[inline]
    fn only_acknowledges(&self, segment: &Segment) -> bool {
        let bytes = segment.ack.wrapping_sub(self.board.una());
        segment.flags.contains(Flags::ACK)
            && !segment.flags.contains(Flags::SYN)
            && segment.sack.is_empty()
            && (1..=self.board.outstanding()).contains(&bytes)
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

    /// Processes an acknowledgement that is not the most frequent one of a basic sender.
    #[inline(never)] // so that the function above is short
    fn on_ack(&mut self, segment: &Segment, now: Time) {
        let advances_as_linux = self.kind == Kind::Linux
            && self.phase == Phase::Open
            && self.only_acknowledges(segment)
            && self.optional.linux().is_some_and(LinuxStates::is_open)
            && self.optional.timers().is_some_and(RackTimers::are_ordinary);
        match advances_as_linux {
            true => self.process::<Linux>(segment, now),
            false => self.process::<Any>(segment, now),
        }
    }

    /// Processes an acknowledgement.
    #[inline(never)] // so that the function above is short
    fn process<P: Path>(&mut self, segment: &Segment, now: Time) {
        // An acknowledgement of data never sent is dropped (RFC 9293, section 3.10.7.4). So is a
        // repeated SYN-ACK, which is no duplicate acknowledgement (RFC 5681, section 2).
        if !P::ORDINARY
            && (!segment.flags.contains(Flags::ACK)
                || segment.flags.contains(Flags::SYN)
                || segment.ack > self.board.next() && !self.is_probe_accepted(segment.ack))
        {
            return;
        }
        // A segment with data is no duplicate acknowledgement (RFC 5681, section 2).
        let same_window = segment.window == self.peer_window && segment.len == 0;
        if P::ORDINARY || segment.ack >= self.board.una() {
            self.on_window(segment);
        }
        let marked = match self.optional.ecn().enabled() {
            true => self.on_feedback(segment, now),
            false => 0,
        };
        if (!P::LINUX || marked > 0) && self.optional.linux().is_some() {
            self.catch_up();
            return self.on_ack_as_linux(segment, marked, same_window, now);
        }
        self.begin_ack(segment);
        let (una, delivered) = (self.board.una(), self.board.delivered());
        if !P::ORDINARY && self.optional.undo().is_some() && !segment.sack.is_empty() {
            self.on_report(segment, now);
        }
        let in_flight = self.board.pipe();
        let advances = P::ORDINARY || segment.ack > una;
        let repeats = segment.ack == una && self.board.outstanding() > 0;
        if advances {
            self.on_new_ack::<P>(segment, marked, now);
        } else if repeats {
            self.on_same_ack(segment, same_window, now);
        }
        if !P::ORDINARY {
            if advances || repeats {
                self.check_timeout(una, delivered, marked > 0);
            }
            if self.optional.timers().is_some() && self.board.has_sacked() {
                self.judge(now);
            }
            if let Some(prr) = self.optional.prr_mut() {
                let delivery = Delivery {
                    delivered: self.board.delivered() - delivered,
                    in_flight: self.board.pipe(),
                    safe: advances && !self.newly_lost,
                };
                let ssthresh = self.controller.window().ssthresh;
                prr.on_ack(delivery, ssthresh, f64::from(self.mss));
            }
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

    /// An acknowledgement that advances. Returns whether a basic sender that [sends only new
    /// data](Self::sends_only_new) still does.
    #[inline(always)] // into the few functions that are compiled for a path
    fn on_new_ack<P: Path>(&mut self, segment: &Segment, marked: u64, now: Time) -> bool {
        if !P::OPTIONS {
            self.note_window(segment);
        }
        let window_was_full = self.window_is_full::<P>();
        if !P::ORDINARY && self.optional.timers().is_some() {
            self.on_probe_answered(segment, now);
        }
        let delivered = self.board.delivered();
        let (acked, times) = self.advance_to::<P>(segment.ack, now);
        let in_recovery = !P::ORDINARY && self.phase == Phase::Recovery;
        let finished = !P::ORDINARY && self.recover.is_reached_by(segment.ack);
        let partial = in_recovery && !finished && !self.params().traits.ends_on_partial_ack;
        if !P::ORDINARY && !segment.sack.is_empty() {
            self.enter_sack(segment, now);
        }
        let rtt = self.sample::<P>(segment, acked, times, partial, now);
        if P::OPTIONS && self.watched {
            self.tell_law(acked, now);
        }
        if partial {
            self.on_partial_ack(acked, now);
            return false;
        }
        if !P::ORDINARY {
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
        }
        let grows = match in_recovery {
            true => self.params().traits.exit_grows_window,
            false => window_was_full,
        };
        if grows && (P::ORDINARY || self.optional.prr().is_none()) {
            // With byte counting each byte counts once: bytes selectively acknowledged before do
            // not grow the window again when the hole below them is filled (Linux).
            let bytes = match self.params().byte_counting {
                true => self.board.delivered() - delivered,
                false => acked.bytes,
            };
            self.grow(segment.ack, bytes, marked, rtt, now);
        }
        self.restart_timer::<P>(now);
        if self.finish(segment.ack, segment.flags.contains(Flags::FIN)) {
            return false;
        }
        if !P::LINUX && self.params().traits.pipe_is_exact && self.board.first_is_lost() {
            // Losses that are already known begin the next episode.
            self.maybe_enter_recovery(now);
            return !P::OPTIONS && self.sends_only_new();
        }
        true
    }

    /// Enters a cumulative acknowledgement that advances into the scoreboard. Returns what it covers, and, if each
    /// delivery gives a round-trip sample, the send times of the oldest and the newest segment.
    #[inline(always)] // what it returns stays in registers
    pub(super) fn advance_to<P: Path>(
        &mut self,
        ack: u64,
        now: Time,
    ) -> (Acked, Option<(Time, Time)>) {
        self.timeouts_in_row = 0;
        self.counters.stalls.count_if(self.progress.advance(now));
        match self.params().sampling {
            RttSampling::EveryDelivery if P::OPTIONS => self.board.on_ack_with_times(ack, now),
            _ if P::OPTIONS => (self.board.on_ack(ack, now), None),
            _ => (self.board.on_ack_untimed(ack), None),
        }
    }

    /// Grows the window by `bytes` that an acknowledgement up to `una` delivers. It newly reports `marked` bytes as
    /// marked and gives the sample `rtt`.
    #[inline]
    pub(super) fn grow(&mut self, una: u64, bytes: u64, marked: u64, rtt: Option<Span>, now: Time) {
        if marked > 0 || !self.controller.avoids_as_reno(bytes) {
            self.controller.on_ack(&AckSample {
                now,
                acked: bytes,
                marked,
                una,
                next: self.board.next(),
                rtt,
                srtt: self.timer.rtt.srtt(),
                rtt_independent: self.optional.ecn().is_rtt_independent(),
            });
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
                beta: self.optional.ecn().beta(),
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
            self.restart_timer::<Any>(now);
        }
    }

    /// Whether the congestion window, rather than the peer or the application, limits sending. It
    /// grows only then (RFC 5681, section 3.1; RFC 7661).
    #[inline]
    fn window_is_full<P: Path>(&self) -> bool {
        if P::LINUX {
            let window = self.controller.window();
            let grows = |states: &LinuxStates| states.allows_growth(window);
            return !self.controller.has_model() && self.optional.linux().is_some_and(grows);
        }
        let full = self.board.outstanding() + u64::from(self.mss);
        as_f64(full) > self.controller.window().cwnd
            || P::OPTIONS
                && (self.pacer.as_ref())
                    .is_some_and(|pacer| pacer.had_full_window(self.board.una()))
    }

    /// Passes an acknowledgement, which covers `acked`, to a law that watches the path.
    #[inline(never)] // so that senders of other laws are not burdened
    fn tell_law(&mut self, acked: Acked, now: Time) {
        if let Some(linux) = self.optional.linux() {
            return self.tell_law_in(linux.ca_state(self.phase), acked, now);
        }
        let state = match self.phase {
            Phase::Recovery => CaState::Recovery,
            Phase::Loss => CaState::Loss,
            Phase::Open if self.optional.prr().is_some() => CaState::Reduction,
            Phase::Open if self.board.has_sacked() => CaState::Disorder,
            Phase::Open => CaState::Open,
        };
        self.tell_law_in(state, acked, now);
    }

    /// Passes an acknowledgement to the law of a sender that was in `state` when it arrived.
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
