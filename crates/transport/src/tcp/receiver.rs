//! The receiving endpoint of a connection.
//!
//! Source: RFC 9293 (cumulative acknowledgement), RFC 2018 and RFC 2883 (which
//! blocks to report), RFC 5681, section 4.2 (when), RFC 3168, section 6.1.3 (echoing marks),
//! RFC 7323 (timestamps, window scale).

use std::hint::select_unpredictable;

use redtail_core::{Ecn, Span, Time};

use super::ack_policy::AckPolicy;
use super::adaptive_acks::{AdaptiveAcks, Arrived, Place};
use super::closing::Closing;
use super::disorder::Disorder;
use super::ecn::feedback::{AckUrgency, Feedback};
use super::slow_reader::SlowReader;
use super::timestamps::{before, timestamp};
use crate::params::TcpParams;
use crate::segment::{EcnBytes, Flags, MAX_SACK_BLOCKS, PlainAck, SackBlock, SackBlocks, Segment};

const PS_PER_US: u64 = 1_000_000;

/// The kind of a receiver. It is found once, from the parameters, and selects the short paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// It has neither ECN, timestamps, reports of duplicates nor the adaptive policy, so that a segment in order needs
    /// less.
    Basic,
    /// It has any of them.
    Options,
    /// It takes no short path, whatever it has. Only tests have it: they compare it with the others.
    General,
}

impl Kind {
    /// The kind of a receiver with these parameters. Each is named: for a new one it is decided here whether a basic
    /// receiver may have it.
    fn of(params: &TcpParams) -> Self {
        let TcpParams {
            // A basic receiver has none of these.
            ecn,
            timestamps,
            dsack,
            adaptive_acks,
            // Without the adaptive policy it has no effect.
            receive_autotuning: _,
            // The short paths read these, or what was made of them.
            recovery: _,
            delayed_ack: _,
            delayed_ack_timeout: _,
            quick_acks: _,
            receive_window: _,
            read_rate: _,
            // These take effect when the connection opens or closes.
            handshake: _,
            initial_rto: _,
            ecn_syn_ack: _,
            // Without ECN these have no effect.
            ecn_feedback: _,
            ecn_reduction: _,
            alpha_start: _,
            rtt_transition: _,
            ecn_codepoint: _,
            ecn_fallback: _,
            ecn_retransmissions: _,
            bbr_ecn_max_rtt: _,
            // A receiver does not use these.
            class: _,
            params: _,
            source: _,
            kernel_control: _,
            send_buffer: _,
            mss: _,
            header: _,
            slow_start: _,
            growth: _,
            byte_counting: _,
            pacing: _,
            pacing_ca_ratio: _,
            unpaced_segments: _,
            lt_bw: _,
            prr: _,
            halving: _,
            initial_window: _,
            initial_ssthresh: _,
            dup_thresh: _,
            limited_transmit: _,
            syn_loss: _,
            bare_handshake_ack: _,
            idle_restart: _,
            idle_decay: _,
            fin_beyond_window: _,
            min_rto: _,
            rto_floor: _,
            max_rto: _,
            clock_granularity: _,
            rtt_sampling: _,
            rtt_deviation: _,
            rto_alpha: _,
            rto_beta: _,
            rto_k: _,
            rack_window_divisor: _,
            rack_persist: _,
            tlp_round_trips: _,
            tlp_max_ack_delay: _,
            timer_restart: _,
            timer_tick: _,
            frto: _,
            abe_beta: _,
            dctcp_g: _,
        } = params;
        match *ecn || *timestamps || *dsack || *adaptive_acks {
            true => Self::Options,
            false => Self::Basic,
        }
    }
}

/// A TCP receiver. On its own, its application sends nothing and closes when its peer has closed.
/// As half of an [`Endpoint`](super::endpoint::Endpoint), it leaves sending and closing to the
/// sender half.
#[derive(Clone, Debug)]
pub struct Receiver {
    /// Next byte expected.
    next: u64,
    /// What arrived above it, or again.
    disorder: Disorder,
    /// Whether anything arrived above `next`.
    has_gap: bool,
    policy: AckPolicy,
    /// It selects the short paths.
    kind: Kind,
    window: u32,
    /// Most SACK blocks in an acknowledgement; 0 without selective acknowledgements.
    sack_blocks: u8,
    ecn: Feedback,
    /// Whether the SYN-ACK is ECN-capable if ECN is agreed on (RFC 5562). A retransmission of it is
    /// not.
    ecn_syn_ack: bool,
    timestamps: bool,
    /// TS.Recent and Last.ACK.sent of RFC 7323, section 4.3.
    ts_recent: u32,
    last_ack_sent: u64,
    ack_due: bool,
    /// A segment other than an ordinary acknowledgement is due: the SYN-ACK, or the acknowledgement
    /// for a change of marking.
    other_due: bool,
    syn_ack_due: bool,
    /// Whether it reports duplicates (D-SACK).
    reports_duplicates: bool,
    /// State that most connections do not need, or memory for it.
    optional: Option<Box<OptionalState>>,
    /// Whether `optional` has state that every segment needs: all but the closing of half of an endpoint, which only
    /// tells that the last sequence number is no data.
    special: bool,
    /// The first timeout of its own FIN, microseconds.
    fin_timeout: u32,
    /// Whether it is half of an endpoint, which also sends data and closes with it.
    half: bool,
}

/// The additional state of a receiver whose application reads slowly, or whose peer has closed.
#[derive(Clone, Debug, Default)]
struct OptionalState {
    /// The application, if it does not read at once.
    reader: Option<SlowReader>,
    /// The closing, after the peer's FIN has arrived.
    closing: Option<Closing>,
}

/// Whether a segment opens or closes a connection.
#[inline]
fn is_control(segment: &Segment) -> bool {
    segment.flags.intersects(Flags::SYN.with(Flags::FIN))
}

impl Receiver {
    /// A receiver waiting for its peer. `params` must have passed their check.
    pub fn new(params: &TcpParams) -> Self {
        let optional = SlowReader::new(params).map(|reader| {
            Box::new(OptionalState {
                reader: Some(reader),
                closing: None,
            })
        });
        Self {
            next: 0,
            disorder: Disorder::default(),
            has_gap: false,
            policy: AckPolicy::new(params),
            kind: Kind::of(params),
            window: params.first_window() as u32,
            sack_blocks: params.sack_blocks(),
            ecn: Feedback::new(params),
            ecn_syn_ack: params.ecn_syn_ack,
            timestamps: params.timestamps,
            ts_recent: 0,
            last_ack_sent: 0,
            ack_due: false,
            other_due: false,
            syn_ack_due: false,
            reports_duplicates: params.dsack && params.recovery.uses_sack(),
            special: optional.is_some(),
            optional,
            // At most an hour (`TcpParams::check`).
            fin_timeout: (params.initial_rto.as_ps() / PS_PER_US) as u32,
            half: false,
        }
    }

    /// Becomes a copy of `fresh`. Keeps memory.
    pub(super) fn renew(&mut self, fresh: &Self) {
        let kept = match &fresh.optional {
            None => self.optional.take(),
            Some(_) => None,
        };
        copy_fields!(
            self, fresh; disorder; optional;
            next, has_gap, policy, kind, window, sack_blocks, ecn, ecn_syn_ack, timestamps,
            ts_recent, last_ack_sent, ack_due, other_due, syn_ack_due, reports_duplicates,
            special, fin_timeout, half,
        );
        if let Some(mut memory) = kept {
            *memory = OptionalState::default();
            self.optional = Some(memory);
        }
    }

    /// The receiver's half of an [`Endpoint`](super::endpoint::Endpoint), whose sender
    /// closes its own direction.
    pub(super) fn half(params: &TcpParams) -> Self {
        Self {
            half: true,
            ..Self::new(params)
        }
    }

    /// The ECN flags of the SYN-ACK.
    pub(super) fn syn_ack_flags(&self) -> Flags {
        self.ecn.syn_ack_flags()
    }

    /// A SYN has arrived.
    #[inline]
    pub(super) fn on_syn(&mut self, segment: &Segment) {
        self.note_timestamp(segment);
        self.ecn.on_syn(segment);
        self.syn_ack_due = true;
        self.other_due = true;
    }

    /// The SYN-ACK to this side's SYN has arrived.
    pub(super) fn on_syn_ack(&mut self, segment: &Segment, now: Time) {
        if let Some(adaptive) = self.policy.adaptive() {
            adaptive.on_established(now);
        }
        self.ts_recent = segment.ts_val;
        self.ecn.on_syn_ack(segment.flags);
    }

    /// Passes the smoothed round trip and the timeout of this side's sender to the adaptive policy.
    #[inline]
    pub(super) fn on_round_trip(&mut self, known: impl FnOnce() -> (Option<Span>, Span)) {
        if let Some(adaptive) = self.policy.adaptive() {
            let (srtt, rto) = known();
            adaptive.on_round_trip(srtt, rto);
        }
    }

    /// Schedules a repeated acknowledgement.
    pub(super) fn acknowledge_again(&mut self) {
        self.ack_due = true;
    }

    /// Whether the acknowledgement that is due leaves before the application has acted.
    #[inline]
    pub(super) fn acknowledges_at_once(&self) -> bool {
        self.ack_due && self.is_adaptive()
    }

    /// Whether the policy of acknowledgements is the adaptive one.
    #[inline]
    pub(super) fn is_adaptive(&self) -> bool {
        matches!(self.policy, AckPolicy::Adaptive(_))
    }

    /// Whether any segment is due.
    #[inline]
    pub fn has_due(&self) -> bool {
        self.ack_due | self.other_due
    }

    /// Whether a segment other than an ordinary acknowledgement is due.
    #[inline]
    pub(super) fn has_other_due(&self) -> bool {
        self.other_due
    }

    /// Adds the acknowledgement that is due now to a data segment, so that none is sent separately.
    #[inline]
    pub(super) fn piggyback(&mut self, data: &mut Segment, now: Time) {
        self.policy.cancel();
        if self.acknowledges_plainly() {
            self.ack_due = false;
            data.ack = self.next;
            data.window = self.window;
            data.flags = data.flags.with(Flags::ACK);
        } else {
            self.piggyback_with_options(data, now);
        }
    }

    fn piggyback_with_options(&mut self, data: &mut Segment, now: Time) {
        let own = self.acknowledgement_with_options(now);
        if data.len > 0
            && let Some(adaptive) = self.policy.adaptive()
        {
            adaptive.on_data_sent(now);
        }
        // The first acknowledgement of a handshake carries the sender's code in place of AccECN's
        // counter (RFC 9768, section 3.2.2.1). All later segments carry the counter of this
        // receiver.
        let first = data.len == 0 && !data.flags.contains(Flags::FIN);
        let flags = match (self.ecn.counts_packets(), first) {
            (false, _) => data.flags.with(own.flags),
            (true, true) => own.flags.without_ace().with(data.flags),
            (true, false) => data.flags.without_ace().with(own.flags),
        };
        *data = Segment {
            seq: data.seq,
            len: data.len,
            ecn: data.ecn,
            flags,
            ts_val: data.ts_val,
            ..own
        };
    }

    /// Prefetches into the cache what the next segment reads outside the receiver itself.
    #[inline]
    pub fn prefetch(&self) {
        if self.has_gap {
            self.disorder.prefetch();
        }
    }

    /// Bytes received in order, for the application to read.
    #[inline]
    pub fn delivered(&self) -> u64 {
        let closing = self.closing();
        self.next - u64::from(closing.is_some_and(|closing| closing.is_reached(self.next)))
    }

    /// Distinct payload bytes received, in order or not.
    pub fn received(&self) -> u64 {
        let received = self.next + self.disorder.above().bytes();
        received - u64::from(self.closing().is_some())
    }

    #[inline]
    fn reader(&self) -> Option<&SlowReader> {
        self.optional.as_ref()?.reader.as_ref()
    }

    #[inline]
    fn reader_mut(&mut self) -> Option<&mut SlowReader> {
        self.optional.as_mut()?.reader.as_mut()
    }

    #[inline]
    fn closing(&self) -> Option<&Closing> {
        self.optional.as_ref()?.closing.as_ref()
    }

    #[inline]
    fn closing_mut(&mut self) -> Option<&mut Closing> {
        self.optional.as_mut()?.closing.as_mut()
    }

    /// A segment from the peer.
    #[inline]
    pub fn on_segment(&mut self, segment: &Segment, now: Time) {
        if !self.is_basic() {
            self.process_with_options(segment, now);
        } else if self.is_plain(segment) {
            self.take_plainly(segment, now);
        } else if segment.len > 0 || self.special || is_control(segment) {
            self.process_any(segment, now);
        }
    }

    /// Whether it has neither ECN, timestamps, reports of duplicates nor the adaptive policy.
    #[inline]
    pub fn is_basic(&self) -> bool {
        self.kind == Kind::Basic
    }

    /// It takes no short path from now on, so that tests can compare one that does with it.
    #[doc(hidden)]
    pub fn forbid_short_paths(&mut self) {
        self.kind = Kind::General;
    }

    /// Its whole state as text, so that tests can compare it with that of a receiver of another kind. What is not read is
    /// left out: the kind, and without timestamps what the last acknowledgement covered.
    #[doc(hidden)]
    pub fn state(&self) -> String {
        let mut same = self.clone();
        same.kind = Kind::General;
        same.last_ack_sent *= u64::from(self.timestamps);
        format!("{same:?}")
    }

    /// A segment reaches a [basic](Self::is_basic) receiver. Returns whether a plain acknowledgement
    /// is due, which [`take_plain_ack`](Self::take_plain_ack) gives; after it there is no further segment, and no timer
    /// runs.
    #[inline(always)] // into the one that calls it for each packet
    pub fn answers_plainly(&mut self, segment: &Segment, now: Time) -> bool {
        if self.is_plain(segment) {
            // So it also acknowledges plainly.
            return self.take_plainly(segment, now) && !self.other_due;
        }
        self.answers_otherwise_plainly(segment, now)
    }

    #[inline(never)]
    fn answers_otherwise_plainly(&mut self, segment: &Segment, now: Time) -> bool {
        self.on_segment(segment, now);
        self.ack_due && !self.other_due && self.acknowledges_plainly()
    }

    /// Whether a segment has data in order and neither SYN nor FIN, nothing arrived out of order, the peer has not
    /// closed, and the application reads at once.
    #[inline]
    fn is_plain(&self, segment: &Segment) -> bool {
        !self.special
            && !self.has_gap
            && segment.seq == self.next
            && segment.len > 0
            && !is_control(segment)
    }

    /// Whether a segment is [plain](Self::is_plain) and this receiver [basic](Self::is_basic), with nothing to send but
    /// perhaps an acknowledgement: then [`take_plainly`](Self::take_plainly) processes the segment.
    #[inline]
    pub(super) fn takes_plainly(&self, segment: &Segment) -> bool {
        self.is_basic() && !self.other_due && self.is_plain(segment)
    }

    /// Processes a segment that it [takes plainly](Self::takes_plainly). Returns whether an acknowledgement is due,
    /// which is a plain one.
    #[inline]
    pub(super) fn take_plainly(&mut self, segment: &Segment, now: Time) -> bool {
        self.process::<true, true>(segment, now);
        self.ack_due
    }

    /// Processes a segment, for a receiver that is not basic.
    #[inline(never)] // so that the function above is short
    fn process_with_options(&mut self, segment: &Segment, now: Time) {
        match self.kind != Kind::General && self.is_plain(segment) {
            true => self.process::<false, true>(segment, now),
            false => self.process_any(segment, now),
        }
    }

    /// Processes any segment.
    #[inline(never)] // so that the functions above are short
    fn process_any(&mut self, segment: &Segment, now: Time) {
        self.process::<false, false>(segment, now);
    }

    /// Stores the timestamp of a segment (RFC 7323, section 4.3).
    #[inline]
    fn note_timestamp(&mut self, segment: &Segment) {
        // One segment of two is beyond the last acknowledgement.
        let counts = self.timestamps
            & (segment.seq <= self.last_ack_sent)
            & !before(segment.ts_val, self.ts_recent);
        self.ts_recent = select_unpredictable(counts, segment.ts_val, self.ts_recent);
    }

    /// Processes a segment. `BASIC` says that the receiver is [basic](Self::is_basic), `PLAIN` that the segment [is
    /// plain](Self::is_plain): what it then does not need is left out.
    #[inline(always)] // into the few functions that are compiled for them
    fn process<const BASIC: bool, const PLAIN: bool>(&mut self, segment: &Segment, now: Time) {
        if !PLAIN && segment.flags.contains(Flags::SYN) {
            return self.on_syn(segment);
        }
        if !BASIC {
            self.note_timestamp(segment);
            if let Some(adaptive) = self.policy.adaptive() {
                adaptive.on_segment(segment, now);
            }
        }
        let fin = !PLAIN && segment.flags.contains(Flags::FIN);
        let mut end = segment.seq + u64::from(segment.len);
        if !PLAIN && (fin || self.special) {
            match self.admit(segment, now) {
                Some(admitted) => end = admitted,
                None => return,
            }
        } else if !PLAIN && segment.len == 0 {
            return;
        }
        let urgency = match !BASIC && self.ecn.enabled() {
            true => self.note_marks(segment),
            false => AckUrgency::None,
        };
        let in_order = PLAIN || segment.seq <= self.next && end > self.next && !self.has_gap;
        let is_expected = PLAIN || in_order && segment.seq == self.next;
        if !is_expected && self.reports_duplicates {
            self.note_duplicate(segment.seq, end);
        }
        let before = self.next;
        if in_order {
            self.next = end;
        } else {
            self.on_disorder(segment.seq, end);
        }
        self.ack_due |= match self.policy {
            AckPolicy::Adaptive(_) if !BASIC => {
                let place = match (in_order, self.next > before) {
                    (true, _) => Place::InOrder,
                    (false, true) => Place::InGap,
                    (false, false) if end <= before => Place::Old,
                    (false, false) => Place::OutOfOrder,
                };
                self.acknowledges_now(segment, place, urgency, now)
            }
            _ => self
                .policy
                .on_data(now, fin || !in_order || urgency == AckUrgency::Agreed),
        };
        // Half of an endpoint whose application reads at once has neither to do after a FIN.
        if !PLAIN && self.special {
            self.maybe_update_window(now);
            self.maybe_close(now);
        }
    }

    /// Asks the adaptive policy whether to acknowledge a segment at once.
    #[inline(never)]
    fn acknowledges_now(
        &mut self,
        segment: &Segment,
        place: Place,
        urgency: AckUrgency,
        now: Time,
    ) -> bool {
        let fin = segment.flags.contains(Flags::FIN);
        let arrived = Arrived {
            place,
            len: segment.len,
            pushed: AdaptiveAcks::is_pushed(segment.flags),
            now: fin || matches!(urgency, AckUrgency::Agreed | AckUrgency::Now),
            soon: urgency == AckUrgency::Soon,
            next: self.next,
            read: self.reader().is_none(),
        };
        let adaptive = self.policy.adaptive();
        adaptive.is_none_or(|adaptive| adaptive.on_data(now, arrived))
    }

    /// Processes the codepoint of arriving data. Returns how soon the data is to be acknowledged.
    fn note_marks(&mut self, segment: &Segment) -> AckUrgency {
        let waiting = self.policy.is_waiting();
        let urgency = self.ecn.on_data(segment, self.next, waiting);
        if self.ecn.has_early() {
            self.policy.cancel();
            self.other_due = true;
        }
        urgency
    }

    /// Sends a window update if the peer may be waiting for one.
    #[cold]
    fn maybe_update_window(&mut self, now: Time) {
        if self.window_update().is_some_and(|at| at <= now) {
            self.policy.cancel();
            self.ack_due = true;
        }
    }

    /// The end of a segment with its FIN, trimmed to the window; `None` if nothing of it is
    /// accepted.
    #[cold]
    fn admit(&mut self, segment: &Segment, now: Time) -> Option<u64> {
        if let Some(closing) = self.closing_mut() {
            closing.on_ack(segment.ack);
        }
        let fin = segment.flags.contains(Flags::FIN);
        if segment.len == 0 && !fin {
            return None;
        }
        let end = segment.seq + u64::from(segment.len);
        let delivered = self.delivered();
        if let Some(reader) = self.reader_mut() {
            reader.on_arrival(now, delivered);
            let most = reader.accepts_to();
            if end > most {
                self.ack_due |= segment.seq >= most;
                return (segment.seq < most).then_some(most);
            }
        }
        if fin {
            let closing = &mut self.optional.get_or_insert_default().closing;
            closing.get_or_insert(Closing::new(end + 1, self.half));
            self.special |= !self.half;
        }
        Some(end + u64::from(fin))
    }

    /// Closes when the application has read to the end of file.
    #[cold]
    fn maybe_close(&mut self, now: Time) {
        if self.end_of_file().is_some_and(|at| at <= now)
            && let Some(closing) = self.closing_mut()
        {
            closing.on_end_of_file();
            self.ack_due = true;
        }
    }

    /// When the application sees the end of file; `None` if that is not known or has happened.
    fn end_of_file(&self) -> Option<Time> {
        let closing = self.closing()?;
        let waits = closing.awaits_application() && closing.is_reached(self.next);
        waits.then(|| match self.reader() {
            None => Time::ZERO,
            Some(reader) => reader.end_of_file(self.delivered()),
        })
    }

    /// Records the first part of a segment that had arrived before (RFC 2883, section 4).
    fn note_duplicate(&mut self, seq: u64, end: u64) {
        let known = if seq < self.next {
            Some(SackBlock {
                start: 0,
                end: self.next,
            })
        } else {
            let above = self.disorder.above();
            if above.highest().is_none_or(|highest| highest <= seq) {
                return; // above everything, as most
            }
            let above = above.as_slice();
            let at = above.partition_point(|range| range.end <= seq);
            above.get(at).copied().filter(|range| range.start < end)
        };
        if let Some(known) = known {
            self.disorder.change().duplicate = Some(SackBlock {
                start: seq.max(known.start),
                end: end.min(known.end),
            });
        }
    }

    fn on_disorder(&mut self, seq: u64, end: u64) {
        if end <= self.next {
            return; // old: acknowledge it again
        }
        let block = SackBlock {
            start: seq.max(self.next),
            end,
        };
        let known = self.disorder.change();
        let before = known.above.as_slice().len();
        let merged = known.above.insert(block, |_| ());
        let after = known.above.as_slice().len();
        let reached = known.above.take_reaching(self.next);
        if let Some(reached) = reached {
            self.next = reached.end;
        }
        self.has_gap = !known.above.is_empty();
        if self.sack_blocks == 0 {
            return;
        }
        let recent = &mut known.recent;
        if reached.is_none() {
            if let Some(latest) = recent.first_mut()
                && latest.start == merged.start
                && after == before
            {
                *latest = merged; // it alone grew, or nothing did
                return;
            }
            if after > before {
                recent.insert(0, merged); // it touches none
                return;
            }
        }
        recent.retain(|range| range.end < merged.start || range.start > merged.end);
        if reached.is_none() {
            recent.insert(0, merged);
        } else if recent.is_empty() {
            recent.shrink_to(MAX_SACK_BLOCKS);
        }
    }

    /// When [`on_wakeup`](Self::on_wakeup) is due.
    #[inline]
    pub fn next_wakeup(&self) -> Option<Time> {
        match self.has_other_timers() {
            false => self.policy.deadline(),
            true => self.earliest_wakeup(),
        }
    }

    /// Whether it may have timers besides that of a delayed acknowledgement. Half of an endpoint closes without any.
    #[inline]
    fn has_other_timers(&self) -> bool {
        self.special && (!self.half || self.reader().is_some())
    }

    /// A time that [`next_wakeup`](Self::next_wakeup) is not before, found without branches.
    #[inline]
    pub(super) fn quiet_until(&self) -> Time {
        match self.has_other_timers() {
            false => self.policy.quiet_until(),
            true => Time::ZERO,
        }
    }

    /// When the delayed acknowledgement is due, for a [basic](Self::is_basic) receiver; [`Time::MAX`] without one.
    #[inline]
    pub(super) fn acknowledges_at(&self) -> Time {
        self.policy.quiet_until()
    }

    #[inline(never)]
    fn earliest_wakeup(&self) -> Option<Time> {
        let timers = [
            self.policy.deadline(),
            self.window_update(),
            self.end_of_file(),
            self.closing().and_then(Closing::deadline),
        ];
        timers.into_iter().flatten().min()
    }

    /// When [`on_wakeup`](Self::on_wakeup) is due; `None` also if that is certain to be at `alarm` or later.
    #[inline]
    pub fn next_wakeup_before(&self, alarm: Option<Time>) -> Option<Time> {
        match self.has_other_timers() {
            false => self.policy.deadline_before(alarm),
            true => self.next_wakeup(),
        }
    }

    /// When a window update is due.
    fn window_update(&self) -> Option<Time> {
        // After its FIN the peer sends no data.
        let reader = self.reader().filter(|_| self.closing().is_none())?;
        reader.update_at(self.next, self.delivered())
    }

    /// Handles the timers that are due: of a delayed acknowledgement, a window update or the
    /// closing.
    pub fn on_wakeup(&mut self, now: Time) {
        self.ack_due |= self.policy.take_due(now);
        if !self.special {
            return;
        }
        self.maybe_update_window(now);
        self.maybe_close(now);
        if let Some(closing) = self.closing_mut() {
            let due = closing.take_due(now);
            self.ack_due |= due;
        }
    }

    /// The next segment to put on the wire now, if any; call until `None`.
    #[inline]
    pub fn poll_transmit(&mut self, now: Time) -> Option<Segment> {
        if let Some(segment) = self.poll_other(now) {
            return Some(segment);
        }
        self.ack_due.then(|| self.acknowledgement(now))
    }

    /// The next segment to put on the wire now that is not an ordinary acknowledgement, if any; call until `None`.
    #[inline]
    pub fn poll_other(&mut self, now: Time) -> Option<Segment> {
        match self.other_due {
            true => self.send_other(now),
            false => None,
        }
    }

    /// Whether an ordinary acknowledgement is due.
    #[inline]
    pub fn is_ack_due(&self) -> bool {
        self.ack_due
    }

    /// Writes the next segment to put on the wire now to `to`, so that it is not copied. Returns whether there is one.
    #[inline]
    pub(super) fn write_next(&mut self, now: Time, to: &mut Segment) -> bool {
        if self.other_due
            && let Some(segment) = self.send_other(now)
        {
            *to = segment;
            return true;
        }
        if !self.ack_due {
            return false;
        }
        *to = self.acknowledgement(now);
        true
    }

    /// Whether its acknowledgements have no options, no echoes and a constant window.
    #[inline]
    fn acknowledges_plainly(&self) -> bool {
        let selective = self.sack_blocks > 0 && self.has_gap;
        self.is_basic() && !self.special && !selective
    }

    /// An ordinary acknowledgement of what has arrived, which is then no longer due.
    #[inline]
    pub fn acknowledgement(&mut self, now: Time) -> Segment {
        match self.acknowledges_plainly() {
            true => self.plain_acknowledgement(),
            false => self.acknowledgement_with_options(now),
        }
    }

    #[inline(never)] // it is written once, to where the caller wants it
    fn plain_acknowledgement(&mut self) -> Segment {
        self.take_plain_ack().segment()
    }

    /// What the plain acknowledgement that is due says; it is then no longer due.
    #[inline]
    pub fn take_plain_ack(&mut self) -> PlainAck {
        self.ack_due = false;
        PlainAck {
            ack: self.next,
            window: self.window,
        }
    }

    #[inline(never)] // as above
    fn acknowledgement_with_options(&mut self, now: Time) -> Segment {
        self.ack_due = false;
        self.last_ack_sent = self.next;
        if let Some(adaptive) = self.policy.adaptive() {
            self.window = adaptive.on_ack_sent(self.next);
        }
        let sack = match self.has_sack() {
            true => self.take_sack(),
            false => SackBlocks::default(),
        };
        let (flags, ecn_bytes) = match self.ecn.enabled() {
            true => (Flags::ACK.with(self.ecn.ack_flags()), self.ecn.bytes()),
            false => (Flags::ACK, EcnBytes::default()),
        };
        if self.special {
            return self.complete_acknowledgement(flags, sack, ecn_bytes, now);
        }
        Segment {
            ecn_bytes,
            ..self.plain_segment(flags, sack, now)
        }
    }

    /// The acknowledgement of a receiver with [`OptionalState`].
    #[cold]
    fn complete_acknowledgement(
        &mut self,
        flags: Flags,
        sack: SackBlocks,
        ecn_bytes: EcnBytes,
        now: Time,
    ) -> Segment {
        let mut segment = Segment {
            ecn_bytes,
            ..self.plain_segment(flags, sack, now)
        };
        self.complete(&mut segment, now);
        segment
    }

    /// Whether the next acknowledgement has selective ones.
    #[inline]
    fn has_sack(&self) -> bool {
        self.sack_blocks > 0 && self.has_gap || self.disorder.has_duplicate()
    }

    /// The selective acknowledgements of an acknowledgement, with the duplicate, which is reported once.
    #[inline(never)] // the rest of an acknowledgement is short
    fn take_sack(&mut self) -> SackBlocks {
        let mut sack = SackBlocks::default();
        if let Some(duplicate) = self.disorder.take_duplicate() {
            sack.push(self.next, duplicate);
        }
        if self.sack_blocks > 0 && self.has_gap {
            self.report(&mut sack);
        }
        sack
    }

    /// The SYN-ACK, or the acknowledgement of the data before a change of marking.
    #[inline(never)]
    fn send_other(&mut self, now: Time) -> Option<Segment> {
        let mut segment = if std::mem::take(&mut self.syn_ack_due) {
            if let Some(adaptive) = self.policy.adaptive() {
                adaptive.on_syn_ack(now);
            }
            let flags = Flags::SYN.with(Flags::ACK).with(self.ecn.syn_ack_flags());
            // RFC 5562, section 3.1: a retransmitted SYN-ACK is not ECN-capable.
            let capable = std::mem::take(&mut self.ecn_syn_ack) && self.ecn.enabled();
            Segment {
                ecn: if capable { Ecn::Ect0 } else { Ecn::NotEct },
                ..self.plain_segment(flags, SackBlocks::default(), now)
            }
        } else {
            self.other_due = false;
            let (ack, flags) = self.ecn.take_early()?;
            let flags = Flags::ACK.with(flags);
            Segment {
                ack,
                ..self.plain_segment(flags, SackBlocks::default(), now)
            }
        };
        if self.special {
            self.complete(&mut segment, now);
        }
        if segment.flags.contains(Flags::SYN) {
            // The window of a SYN is never scaled (RFC 7323, section 2.2).
            segment.window = segment.window.min(u32::from(u16::MAX));
        }
        Some(segment)
    }

    /// Appends the SACK blocks, the most recently changed range first (RFC 2018, section 4).
    fn report(&self, sack: &mut SackBlocks) {
        // A D-SACK report is already the first block.
        let free = self.sack_blocks - u8::from(!sack.is_empty());
        for &range in self.disorder.recent().iter().take(usize::from(free)) {
            sack.push(self.next, range);
        }
    }

    #[inline]
    fn plain_segment(&self, flags: Flags, sack: SackBlocks, now: Time) -> Segment {
        Segment {
            ack: self.next,
            window: self.window,
            flags,
            sack,
            ts_val: if self.timestamps { timestamp(now) } else { 0 },
            ts_ecr: self.ts_recent,
            ..Segment::default()
        }
    }

    /// Fills in the fields that are constant in most connections: the window, and our own FIN.
    #[cold]
    fn complete(&mut self, segment: &mut Segment, now: Time) {
        let (next, available) = (self.next, self.delivered());
        if let Some(state) = &mut self.optional
            && let Some(reader) = &mut state.reader
        {
            if let Some(adaptive) = self.policy.adaptive()
                && let Some(room) = adaptive.on_read(reader.read_by(now, available), now)
            {
                reader.set_buffer(room);
            }
            segment.window = reader.window(now, next, available) as u32;
        }
        let timeout = Span::from_us(u64::from(self.fin_timeout));
        if let Some(closing) = self.closing_mut()
            && !segment.flags.contains(Flags::SYN)
        {
            segment.seq = closing.seq();
            if closing.take_fin(now, timeout) {
                segment.seq = 0;
                segment.flags = segment.flags.with(Flags::FIN);
            }
        }
    }
}
