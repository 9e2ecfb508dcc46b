//! Loss recovery in the states of Linux.
//!
//! Source: Linux 6.1, net/ipv4/tcp_input.c, read for what it does: `tcp_ack` and the functions it
//! calls, mainly `tcp_fastretrans_alert`, `tcp_process_loss`, `tcp_enter_recovery`,
//! `tcp_enter_loss` and `tcp_cong_control`; tcp_recovery.c (`tcp_rack_reo_timeout`); tcp_output.c
//! (`tcp_xmit_retransmit_queue`, `tcp_cwnd_validate`).
//!
//! | Linux | here |
//! |---|---|
//! | CA_Open, CA_Disorder | [`Phase::Open`]; `disorder` |
//! | CA_CWR | [`Phase::Open`] with `cwr` |
//! | CA_Recovery, CA_Loss | [`Phase::Recovery`], [`Phase::Loss`] |
//! | high_seq | `high` |
//!
//! Each acknowledgement first updates the scoreboard. The state then decides whether the
//! acknowledgement ends an episode, begins one, or proves one spurious. Last, the window is reduced
//! or grown by what was delivered, and segments are sent as the new state allows.
//!
//! Left out: SACK reneging, path MTU discovery, and the adaptive duplicate threshold, which loss
//! detection by time replaces.

use redtail_core::{Span, Time};

use super::kind::{Any, Linux};
use super::{ConnectionState, Phase, Sender};
use crate::cc::{CaState, CongestionEvent, CongestionKind, Window, as_f64, lesser};
use crate::params::TcpParams;
use crate::segment::{Flags, Segment};
use crate::tcp::pacing::window_ratio;
use crate::tcp::prr::SegmentPrr;
use crate::tcp::rto::{RttSampling, TimerRestart};
use crate::tcp::scoreboard::Acked;
use crate::tcp::timestamps::timestamp;
use crate::tcp::undo::{LinuxUndo, Undone};

/// What an acknowledgement allows to be sent, and in which order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Sends {
    /// Only new data.
    #[default]
    New,
    /// New data if there is any, lost data otherwise (REXMIT_NEW).
    NewFirst,
    /// Lost data, then new (REXMIT_LOST).
    LostFirst,
}

/// Whether the congestion window limits sending (`tcp_cwnd_validate`).
#[derive(Clone, Copy, Debug, Default)]
struct WindowUse {
    limited: bool,
    /// The most bytes outstanding in this round (max_packets_out).
    most: u64,
    /// The round ends when this is acknowledged (cwnd_usage_seq).
    until: u64,
    /// The next byte to send at the last update.
    sent: u64,
}

impl WindowUse {
    /// Nothing more can be sent, because the window is `full` or because there is no data. Data
    /// from `una` to `next` is outstanding.
    #[inline]
    fn note(&mut self, full: bool, una: u64, next: u64) {
        if !full && next == self.sent {
            return;
        }
        self.sent = next;
        let outstanding = next - una;
        if full || una >= self.until || !self.limited && outstanding > self.most {
            self.limited = full;
            self.most = outstanding;
            self.until = next;
        }
    }

    /// Whether the window may grow (`tcp_is_cwnd_limited`).
    #[inline]
    fn allows_growth(&self, window: Window) -> bool {
        self.limited || window.cwnd < window.ssthresh && window.cwnd < 2.0 * as_f64(self.most)
    }
}

/// Segments that are handed to the network interface as one (`tcp_write_xmit`).
#[derive(Clone, Copy, Debug)]
struct Burst {
    /// Share of cwnd / srtt outside slow start at which it is sized.
    ca_ratio: f64,
    /// When it began to leave.
    at: Time,
    /// Segments of it that have not left.
    left: u32,
    /// Whether it has more than one.
    several: bool,
}

impl Burst {
    /// Fewest segments of a burst (tcp_min_tso_segs).
    const LEAST: u64 = 2;
    /// Most bytes of a burst (sk_gso_max_size).
    const MOST_BYTES: u64 = 65_536;
    /// A burst has the bytes of a second's 1024th part (sk_pacing_shift).
    const PARTS_OF_SECOND: f64 = 1024.0;
    /// A path with a shorter round trip has larger bursts (2^tcp_tso_rtt_log µs for each of 32
    /// halvings).
    const NEAR: Span = Span::from_us(32 << 9);

    fn new(ca_ratio: f64) -> Self {
        Self {
            ca_ratio,
            at: Time::ZERO,
            left: 0,
            several: false,
        }
    }

    /// The most segments of `mss` bytes that a burst has (tcp_tso_autosize), while `window` and
    /// the smoothed round trip give the rate.
    #[inline]
    fn most(&self, window: Window, mss: f64, srtt: Span, min_rtt: Span) -> u64 {
        let rate = window_ratio(window, self.ca_ratio) * window.cwnd;
        let parts = srtt.as_secs_f64() * Self::PARTS_OF_SECOND;
        if rate < 3.0 * mss * parts && min_rtt >= Self::NEAR {
            return Self::LEAST;
        }
        let near = match min_rtt < Self::NEAR {
            true => Self::MOST_BYTES >> (min_rtt.as_ps() / (Self::NEAR.as_ps() / 32)),
            false => 0,
        };
        let bytes = ((rate / parts) as u64 + near).min(Self::MOST_BYTES);
        (bytes / mss as u64).max(Self::LEAST)
    }
}

/// The additional state of a sender with the states of Linux.
#[derive(Clone, Debug)]
pub(super) struct LinuxStates {
    /// The window is being reduced because of marks.
    cwr: bool,
    /// There are holes or retransmissions, and no episode is in progress.
    disorder: bool,
    /// The episode ends when this is acknowledged.
    high: u64,
    undo: LinuxUndo,
    prr: SegmentPrr,
    window_use: WindowUse,
    sends: Sends,
    /// F-RTO is on.
    uses_frto: bool,
    /// F-RTO is checking whether the latest timeout was spurious.
    frto: bool,
    /// Whether D-SACK reports are used.
    uses_dsack: bool,
    /// Segments reported as duplicates since the start.
    duplicates: u64,
    /// The present acknowledgement reports marks that require a reduction.
    marks: bool,
    /// Set if the last segment of a burst is pushed.
    burst: Option<Burst>,
}

impl LinuxStates {
    pub(super) fn new(params: &TcpParams) -> Self {
        Self {
            cwr: false,
            disorder: false,
            high: 0,
            undo: LinuxUndo::default(),
            prr: SegmentPrr::default(),
            window_use: WindowUse::default(),
            sends: Sends::New,
            uses_frto: params.frto,
            frto: false,
            uses_dsack: params.dsack,
            duplicates: 0,
            marks: false,
            burst: (params.adaptive_acks).then(|| Burst::new(params.pacing_ca_ratio)),
        }
    }

    /// Records whether the marks of an acknowledgement require a reduction. It is made after the
    /// scoreboard was updated.
    pub(super) fn on_marks(&mut self, reduce: bool) {
        self.marks = reduce;
    }

    /// A segment is retransmitted, other than as a tail loss probe.
    pub(super) fn on_resent(&mut self, now: Time) {
        self.undo.on_resent(timestamp(now));
    }

    /// A segment is sent, possibly during a reduction of the window.
    #[inline]
    pub(super) fn on_sent(&mut self) {
        self.prr.on_sent();
    }

    /// A segment of a burst leaves. Returns whether it is pushed: the last of several is.
    #[inline]
    fn ends_burst(&mut self) -> bool {
        self.burst.as_mut().is_some_and(|burst| {
            burst.left -= 1;
            (burst.left == 0) & burst.several
        })
    }

    /// The latest reduction that was undone.
    pub(super) fn undone(&self) -> Option<Undone> {
        self.undo.undone
    }

    /// Whether the sender is in CA_Open if there is no episode.
    #[inline]
    pub(super) fn is_open(&self) -> bool {
        !self.cwr && !self.disorder
    }

    /// Whether a tail loss probe may be scheduled (`tcp_schedule_loss_probe`).
    pub(super) fn may_probe(&self) -> bool {
        self.cwr || !self.disorder
    }

    /// The state of the sender in the terms of Linux.
    pub(super) fn ca_state(&self, phase: Phase) -> CaState {
        match phase {
            Phase::Recovery => CaState::Recovery,
            Phase::Loss => CaState::Loss,
            Phase::Open if self.cwr => CaState::Reduction,
            Phase::Open if self.disorder => CaState::Disorder,
            Phase::Open => CaState::Open,
        }
    }

    /// Whether the congestion window limits sending, and so may grow.
    #[inline]
    pub(super) fn allows_growth(&self, window: Window) -> bool {
        self.window_use.allows_growth(window)
    }

    /// The window is full.
    #[inline]
    pub(super) fn on_full_window(&mut self, una: u64, next: u64) {
        self.window_use.note(true, una, next);
    }
}

/// An acknowledgement by which the scoreboard was updated.
#[derive(Clone, Copy, Debug)]
struct Entered {
    now: Time,
    /// It advanced the cumulative acknowledgement.
    advanced: bool,
    /// It is below the cumulative acknowledgement before it.
    is_old: bool,
    /// It acknowledges nothing new and changes no window.
    duplicate: bool,
    /// Nothing was outstanding before it.
    was_idle: bool,
    /// It acknowledged data selectively.
    sacked: bool,
    /// Its D-SACK report, which is empty if it has none.
    report: Report,
    /// It reports marks.
    echoed: bool,
    /// The timestamp that it echoes.
    echo: Option<u32>,
    /// The cumulative acknowledgement before it.
    una: u64,
}

/// A D-SACK report.
#[derive(Clone, Copy, Debug, Default)]
struct Report {
    /// Segments reported as duplicates.
    segments: u64,
    /// It reports a tail loss probe.
    of_probe: bool,
}

impl Sender {
    /// Processes an acknowledgement, which is not of data never sent (`tcp_ack`).
    #[inline(never)] // so that senders with other states are not burdened
    pub(super) fn on_ack_as_linux(
        &mut self,
        segment: &Segment,
        marked: u64,
        same_window: bool,
        now: Time,
    ) {
        let (una, in_flight) = (self.board.una(), self.board.pipe());
        self.process_as_linux(segment, marked, same_window, now);
        if self.pacer.is_some() {
            self.tell_model(una, in_flight, marked, now);
        }
    }

    /// Processes any acknowledgement, except for what a model learns from it.
    #[inline(never)] // so that the function above is short
    fn process_as_linux(&mut self, segment: &Segment, marked: u64, same_window: bool, now: Time) {
        let Some(mut states) = self.optional.take_linux() else {
            return;
        };
        let delivered = self.board.delivered();
        let entered = self.enter_as_linux(&mut states, segment, marked > 0, same_window, now);
        let (mut acked, mut rtt) = (Acked::default(), None);
        if entered.advanced {
            let times;
            (acked, times) = self.advance_to::<Any>(segment.ack, now);
            rtt = self.sample::<Any>(segment, acked, times, false, now);
        }
        if self.watched {
            self.tell_law_in(states.ca_state(self.phase), acked, now);
        }
        self.answer_probe_as_linux(&mut states, segment, &entered);
        let was_in_recovery = self.phase == Phase::Recovery;
        let is_dubious = self.phase != Phase::Open
            || states.cwr
            || states.disorder
            || entered.sacked
            || entered.echoed
            || entered.report.segments > 0;
        if is_dubious && !(entered.was_idle && entered.report.segments == 0) {
            states.sends = self.alert(&mut states, &entered);
        }
        // Reduces or grows the window (`tcp_cong_control`). Duplicates count as delivered too (`tcp_dsack_seen`).
        let duplicated = entered.report.segments * u64::from(self.mss);
        let delivered = self.board.delivered() - delivered + duplicated;
        if states.cwr || self.phase == Phase::Recovery {
            if self.params().uses_prr && !entered.is_old {
                let safe = entered.advanced && !self.newly_lost;
                self.reduce_further(&mut states, delivered, safe);
            }
        } else if entered.advanced && states.window_use.allows_growth(self.controller.window()) {
            let bytes = match self.params().byte_counting {
                true => delivered,
                false => acked.bytes,
            };
            self.grow(segment.ack, bytes, marked, rtt, now);
        }
        self.optional.add().linux = Some(states);
        let has_entered = self.phase == Phase::Recovery && !was_in_recovery;
        if entered.advanced || has_entered && self.timer.restart() == TimerRestart::Acks {
            self.restart_timer::<Any>(now);
        } else if entered.sacked && self.params().sampling == RttSampling::EveryDelivery {
            self.sample_sacked(now);
        }
        if entered.advanced {
            self.finish(segment.ack, segment.flags.contains(Flags::FIN));
        }
    }

    /// Enters the selective acknowledgements and the D-SACK report of an acknowledgement into the
    /// scoreboard. The cumulative acknowledgement follows.
    #[inline]
    fn enter_as_linux(
        &mut self,
        states: &mut LinuxStates,
        segment: &Segment,
        echoed: bool,
        same_window: bool,
        now: Time,
    ) -> Entered {
        let una = self.board.una();
        let was_idle = self.board.outstanding() == 0;
        let echo = self.begin_ack(segment);
        let report = self.enter_report(states, segment, now);
        let sacked = self.enter_sack(segment, now) > 0;
        let (advanced, is_old) = (segment.ack > una, segment.ack < una);
        if segment.ack == una && !was_idle && same_window {
            self.counters.duplicate_acks.count();
        }
        Entered {
            now,
            advanced,
            is_old,
            duplicate: !(advanced || sacked || is_old || was_idle)
                && report.segments == 0
                && same_window,
            was_idle,
            sacked,
            report,
            echoed,
            echo,
            una,
        }
    }

    /// Sets the window during a reduction, by proportional rate reduction (`tcp_cwnd_reduction`).
    fn reduce_further(&mut self, states: &mut LinuxStates, delivered: u64, safe: bool) {
        let mss = f64::from(self.mss);
        let segments = |bytes: u64| bytes.div_ceil(u64::from(self.mss));
        let cwnd = states.prr.on_ack(
            segments(delivered),
            segments(self.board.pipe()),
            self.controller.window().ssthresh / mss,
            safe,
        );
        if let Some(cwnd) = cwnd {
            self.controller.set_cwnd(cwnd.max(1.0) * mss);
        }
    }

    /// Processes the D-SACK report, if the acknowledgement has one (`tcp_check_dsack`,
    /// `tcp_dsack_seen`).
    fn enter_report(&mut self, states: &mut LinuxStates, segment: &Segment, now: Time) -> Report {
        if !states.uses_dsack || segment.sack.is_empty() {
            return Report::default();
        }
        let Some(twice) = segment.sack.duplicate(segment.ack) else {
            return Report::default();
        };
        let (len, mss) = (twice.end - twice.start, u64::from(self.mss));
        let segments = len.div_ceil(mss);
        states.duplicates += segments;
        // The network duplicated data: more is reported than was retransmitted.
        if len > u64::from(self.params().peer_window_max)
            || states.duplicates > self.counters.retransmissions.get()
        {
            return Report::default();
        }
        let timers = self.optional.timers();
        let probe = timers.and_then(|timers| timers.probe.unanswered);
        let of_probe = len <= mss && probe.is_some_and(|probe| probe.end == twice.end);
        let next = self.board.next();
        if let Some(rack) = self.board.rack_mut()
            && !of_probe
        {
            rack.on_duplicate(segment.ack, next, now);
        }
        states.undo.on_duplicate(twice.end, segments as u32);
        Report { segments, of_probe }
    }

    /// Processes the answer to a tail loss probe (`tcp_process_tlp_ack`).
    fn answer_probe_as_linux(
        &mut self,
        states: &mut LinuxStates,
        segment: &Segment,
        entered: &Entered,
    ) {
        let Some(timers) = self.optional.timers_mut() else {
            return;
        };
        let Some(probe) = timers
            .probe
            .unanswered
            .filter(|probe| segment.ack >= probe.end)
        else {
            return;
        };
        if !probe.retransmitted || entered.report.of_probe {
            timers.probe.unanswered = None;
        } else if segment.ack > probe.end {
            // The probe repaired a loss.
            self.begin_reduction(states, CongestionKind::Loss, entered.now);
            self.end_reduction(entered.now);
            states.cwr = false;
            self.keep_open(states);
        } else if entered.duplicate {
            timers.probe.unanswered = None;
        }
    }

    /// Changes the state after an acknowledgement. Returns what may be sent
    /// (`tcp_fastretrans_alert`).
    fn alert(&mut self, states: &mut LinuxStates, entered: &Entered) -> Sends {
        self.end_reached(states, entered);
        let mut sends = Sends::New;
        match self.phase {
            Phase::Recovery => return self.process_recovery(states, entered),
            Phase::Loss => {
                sends = self.process_loss(states, entered);
                let lost_again = self.judge_as_linux(entered.now);
                if self.phase == Phase::Loss && !lost_again {
                    return sends;
                }
            }
            Phase::Open => {}
        }
        if self.phase == Phase::Open && !states.cwr && states.undo.all_reported() {
            self.undo_as_linux(states, false, false);
        }
        self.judge_as_linux(entered.now);
        if !self.board.has_lost() {
            self.try_to_open(states, entered);
            return sends;
        }
        self.enter_recovery_as_linux(states, entered.echoed, entered.now);
        Sends::LostFirst
    }

    /// Ends the reduction or the recovery that this acknowledgement completes.
    fn end_reached(&mut self, states: &mut LinuxStates, entered: &Entered) {
        let una = self.board.una();
        if entered.echoed {
            states.undo.keep_reduced();
        }
        match self.phase {
            Phase::Open if !states.cwr && !states.disorder => {
                states.undo.forget_retransmissions();
            }
            // CWR ends when more than `high` is acknowledged, so that the CWR flag has arrived.
            Phase::Open if states.cwr && una > states.high => {
                self.end_reduction(entered.now);
                states.cwr = false;
                states.disorder = false;
            }
            Phase::Recovery if una >= states.high => {
                self.end_episode(states, entered);
                if states.undo.is_open() {
                    self.end_reduction(entered.now);
                }
            }
            _ => {}
        }
    }

    /// An acknowledgement in fast recovery. Returns what may be sent.
    fn process_recovery(&mut self, states: &mut LinuxStates, entered: &Entered) -> Sends {
        if entered.advanced && states.undo.answers_original(entered.echo) {
            // A reordered segment filled a hole.
            let highest = self.board.sacked().highest();
            if let Some(rack) = self.board.rack_mut()
                && highest.is_some_and(|highest| entered.una < highest)
            {
                rack.on_reordering();
            }
            if self.board.retransmissions_out() > 0 {
                return Sends::New; // wait for their acknowledgements
            }
            if !self.board.first_was_retransmitted() {
                states.undo.forget_retransmissions();
            }
            self.undo_as_linux(states, true, false);
            self.keep_open(states);
        }
        if states.undo.all_reported() {
            self.undo_as_linux(states, false, false);
            self.try_to_open(states, entered);
        }
        self.judge_as_linux(entered.now);
        if self.phase != Phase::Recovery {
            if !self.board.has_lost() {
                return Sends::New;
            }
            self.enter_recovery_as_linux(states, entered.echoed, entered.now);
        }
        Sends::LostFirst
    }

    /// An acknowledgement after a timeout (`tcp_process_loss`).
    fn process_loss(&mut self, states: &mut LinuxStates, entered: &Entered) -> Sends {
        let (una, next) = (self.board.una(), self.board.next());
        let recovered = una >= states.high;
        if entered.advanced && states.undo.is_spurious(entered.echo) {
            self.undo_loss(states, false);
            return Sends::New;
        }
        if states.frto {
            // Data that was sent only once is delivered: the timeout was spurious.
            let high = states.high;
            let original = self
                .board
                .rack_mut()
                .is_some_and(|rack| rack.delivered_original(high));
            if original {
                self.undo_loss(states, true);
                return Sends::New;
            }
            if next > states.high {
                if entered.sacked || entered.duplicate {
                    states.frto = false;
                }
            } else if entered.advanced && !recovered {
                states.high = next;
                if self.new_len::<Linux>().is_some() {
                    return Sends::NewFirst;
                }
                states.frto = false;
            }
        }
        if recovered {
            self.end_episode(states, entered);
            self.controller.on_episode_end(true, entered.now);
            return Sends::New;
        }
        Sends::LostFirst
    }

    /// The timeout was spurious (`tcp_try_undo_loss`), as F-RTO found or not.
    fn undo_loss(&mut self, states: &mut LinuxStates, by_frto: bool) {
        self.undo_as_linux(states, true, by_frto);
        self.timeouts_in_row = 0;
        self.phase = Phase::Open;
        states.disorder = false;
    }

    /// All data that was outstanding when the episode began is acknowledged
    /// (`tcp_try_undo_recovery`).
    fn end_episode(&mut self, states: &mut LinuxStates, entered: &Entered) {
        if states.undo.is_spurious(entered.echo) {
            self.undo_as_linux(states, false, false);
        } else if let Some(rack) = self.board.rack_mut() {
            rack.on_episode_end(entered.now);
        }
        self.phase = Phase::Open;
        states.disorder = false;
    }

    /// Undoes the latest reduction. With `unmark` it also undoes the losses
    /// (`tcp_undo_cwnd_reduction`).
    fn undo_as_linux(&mut self, states: &mut LinuxStates, unmark: bool, by_frto: bool) {
        if unmark {
            self.board.undo_all_losses();
        }
        let (prior, timeout) = states.undo.take(by_frto);
        if let Some(prior) = prior {
            let window = self.controller.window();
            self.controller.undo(prior);
            if prior.ssthresh > window.ssthresh
                && let Some(ecn) = self.optional.ecn_mut()
            {
                ecn.on_undo();
            }
        }
        if let Some(rack) = self.board.rack_mut() {
            rack.advance();
        }
        if timeout {
            self.counters.spurious_timeouts.count();
        } else {
            self.counters.spurious_fast_retransmits.count();
        }
    }

    /// There is no loss; marks may reduce the window (`tcp_try_to_open`).
    fn try_to_open(&mut self, states: &mut LinuxStates, entered: &Entered) {
        if !self.has_retransmissions() {
            states.undo.forget_retransmissions();
        }
        if std::mem::take(&mut states.marks) && self.phase == Phase::Open && !states.cwr {
            self.answer_marks(states, entered.now);
        }
        if !states.cwr {
            self.keep_open(states);
        }
    }

    /// Marks reduce the window (`tcp_enter_cwr`). A reduction that is made at once has no CWR
    /// state.
    fn answer_marks(&mut self, states: &mut LinuxStates, now: Time) {
        self.counters.ecn_reductions.count();
        states.undo.close();
        self.begin_reduction(states, CongestionKind::Ecn, now);
        states.cwr = self.spreads(CongestionKind::Ecn);
    }

    /// Returns to the state without an episode; holes and retransmissions keep it in disorder
    /// (`tcp_try_keep_open`).
    fn keep_open(&mut self, states: &mut LinuxStates) {
        let disorder =
            self.board.has_sacked() || self.board.has_lost() || self.has_retransmissions();
        if self.phase != Phase::Open || disorder != states.disorder {
            self.phase = Phase::Open;
            states.disorder = disorder;
            states.high = self.board.next();
        }
    }

    /// Whether a retransmission is outstanding (`tcp_any_retrans_done`).
    fn has_retransmissions(&self) -> bool {
        self.board.first_was_retransmitted() || self.board.retransmissions_out() > 0
    }

    /// Detects losses if anything was delivered since the last call. Returns whether a
    /// retransmission was lost (`tcp_identify_packet_loss`, `tcp_rack_mark_lost`).
    fn judge_as_linux(&mut self, now: Time) -> bool {
        let due = self.board.rack_mut().is_some_and(|it| it.take_advanced());
        due && self.board.outstanding() > 0 && self.detect(now)
    }

    /// The reordering timer has expired (`tcp_rack_reo_timeout`).
    pub(super) fn judge_in_time_as_linux(&mut self, now: Time) {
        let Some(mut states) = self.optional.take_linux() else {
            return;
        };
        self.newly_lost = false;
        self.detect(now);
        let enters = self.newly_lost && self.phase != Phase::Recovery;
        if self.newly_lost {
            states.sends = Sends::LostFirst;
        }
        if enters {
            self.enter_recovery_as_linux(&mut states, false, now);
            if self.params().uses_prr {
                self.reduce_further(&mut states, u64::from(self.mss), false);
            }
        }
        self.optional.add().linux = Some(states);
        if enters && self.timer.restart() == TimerRestart::Acks {
            self.restart_timer::<Any>(now);
        }
        self.tell_losses(now);
    }

    /// The window that is restored if the episode about to begin is undone
    /// (`tcp_current_ssthresh`).
    fn prior_window(&self, reducing: bool) -> Window {
        let Window { cwnd, ssthresh } = self.controller.window();
        let ssthresh = if reducing {
            ssthresh
        } else {
            ssthresh.max(0.75 * cwnd)
        };
        Window { cwnd, ssthresh }
    }

    /// Outstanding retransmissions, which may still be reported as duplicates (`tcp_init_undo`).
    fn resent_before(&self) -> u32 {
        let timers = self.optional.timers();
        let probe = timers.and_then(|timers| timers.probe.unanswered);
        let probed = probe.is_some_and(|probe| probe.retransmitted);
        self.board.retransmissions_out() + u32::from(probed)
    }

    /// A reduction of the window begins (`tcp_init_cwnd_reduction`).
    fn begin_reduction(&mut self, states: &mut LinuxStates, kind: CongestionKind, now: Time) {
        let next = self.board.next();
        let cwnd = self.controller.window().cwnd;
        states.high = next;
        states.prr = SegmentPrr::new(cwnd / f64::from(self.mss));
        if let Some(timers) = self.optional.timers_mut() {
            timers.probe.unanswered = None;
        }
        let beta = match kind {
            CongestionKind::Ecn => self.optional.ecn().beta(),
            _ => None,
        };
        if let Some(ecn) = self.optional.ecn_mut() {
            ecn.on_reduction(next, now);
        }
        self.controller.on_congestion(&CongestionEvent {
            now,
            kind,
            flight: self.board.outstanding(),
            beta,
        });
        if self.spreads(kind) {
            self.controller.set_cwnd(cwnd); // reduced as data is delivered
        }
    }

    /// Whether a reduction is spread over a round trip.
    fn spreads(&self, kind: CongestionKind) -> bool {
        self.params().uses_prr
            && (kind != CongestionKind::Ecn || self.optional.ecn().spreads_reduction())
    }

    /// The reduction of the window ends (`tcp_end_cwnd_reduction`, with its event for the law, CA_EVENT_COMPLETE_CWR).
    fn end_reduction(&mut self, now: Time) {
        let ssthresh = self.controller.window().ssthresh;
        if self.params().uses_prr && ssthresh.is_finite() {
            self.controller.set_cwnd(ssthresh);
        }
        self.controller.on_episode_end(false, now);
    }

    /// A loss was detected: fast recovery begins, from any state (`tcp_enter_recovery`).
    fn enter_recovery_as_linux(&mut self, states: &mut LinuxStates, echoed: bool, now: Time) {
        if !self.has_retransmissions() {
            states.undo.forget_retransmissions();
        }
        let una = self.board.una();
        let prior = (!states.cwr && !echoed).then(|| self.prior_window(false));
        states.undo.begin(una, self.resent_before(), prior, false);
        if !states.cwr {
            self.begin_reduction(states, CongestionKind::Loss, now);
        } else if self.optional.ecn().alpha().is_some() {
            // A reduction in proportion to marks does not replace the reduction for a loss (RFC
            // 8257, section 3.5).
            let cwnd = self.controller.window().cwnd;
            self.reduce(CongestionKind::Loss, now);
            self.controller.set_cwnd(cwnd);
        }
        self.counters.recoveries.count();
        self.timed = None;
        states.cwr = false;
        states.disorder = false;
        self.phase = Phase::Recovery;
        self.end_probing(now);
    }

    /// The retransmission timer has expired (`tcp_enter_loss`).
    pub(super) fn on_timeout_as_linux(&mut self, now: Time) {
        let Some(mut states) = self.optional.take_linux() else {
            return;
        };
        let (una, next) = (self.board.una(), self.board.next());
        let repeated = self.timeouts_in_row > 0;
        let fresh = self.phase == Phase::Open;
        let reduces =
            fresh && !states.cwr || una >= states.high || self.phase == Phase::Loss && !repeated;
        let reducing = states.cwr || self.phase == Phase::Recovery;
        self.board
            .declare_lost_on_timeout(now, self.timer.rtt.srtt());
        if reduces {
            let prior = self.prior_window(reducing);
            states
                .undo
                .begin(una, self.resent_before(), Some(prior), true);
        }
        self.reduce(CongestionKind::Timeout { repeated: !reduces }, now);
        // The loss window is one segment more than what is still in flight.
        let in_flight = as_f64(self.board.pipe());
        self.controller.set_cwnd(in_flight + f64::from(self.mss));
        if let Some(ecn) = self.optional.ecn_mut() {
            ecn.on_reduction(next, now);
        }
        self.tell_losses(now);
        self.phase = Phase::Loss;
        self.timeouts_in_row += 1;
        self.resend_first = true;
        self.stop_rack_timers();
        states.cwr = false;
        states.disorder = false;
        states.high = next;
        states.frto = states.uses_frto && (fresh || repeated);
        states.sends = Sends::LostFirst;
        self.optional.add().linux = Some(states);
    }

    /// The next segment, if the window has room for it.
    #[inline(never)] // so that other senders' segments are written only once
    pub(super) fn send_as_linux(&mut self, now: Time) -> Option<Segment> {
        let states = self.optional.linux_mut()?;
        if states.sends == Sends::NewFirst && self.board.next() == states.high {
            if self.new_len::<Linux>().is_some() {
                return self.send_new::<Linux>(now);
            }
            let states = self.optional.linux_mut()?;
            states.frto = false;
            states.sends = Sends::LostFirst;
        }
        let lost = match self.optional.linux()?.sends {
            Sends::LostFirst => self.board.next_lost(),
            _ => None,
        };
        let Some(index) = lost else {
            let may_send = self.phase != Phase::Open || self.sends_beside_holes();
            if may_send {
                return self.send_new::<Linux>(now);
            }
            self.note_no_data();
            return None;
        };
        let segment = self.resend(index, now);
        self.optional.linux_mut()?.on_sent();
        Some(segment)
    }

    /// Whether data that is selectively acknowledged does not prevent new data outside of an episode.
    #[inline]
    fn sends_beside_holes(&self) -> bool {
        self.params().limited_transmit || !self.board.has_sacked()
    }

    /// The window has room, and nothing is sent.
    #[inline]
    pub(super) fn note_no_data(&mut self) {
        let (una, next) = (self.board.una(), self.board.next());
        if let Some(states) = self.optional.linux_mut() {
            states.window_use.note(false, una, next);
        }
    }

    /// Whether it is a sender with these states that sends new data, as the windows and the pacer allow: its
    /// connection is open and not closed, nothing is to be retransmitted, and no probe is due.
    #[inline]
    pub(super) fn sends_in_bursts(&mut self) -> bool {
        let Some(states) = self.optional.linux() else {
            return false;
        };
        let nothing_lost = match (self.phase, states.sends) {
            (Phase::Open, Sends::New) => self.sends_beside_holes(),
            (Phase::Recovery, Sends::LostFirst) => self.board.next_lost().is_none(),
            _ => false,
        };
        nothing_lost
            && self.connection.state == ConnectionState::Established
            && !self.resend_first
            && !self.stream.closed
            && self
                .optional
                .timers()
                .is_none_or(|timers| !timers.probe.due)
    }

    /// New data leaves. Returns whether it is pushed, because it ends a burst.
    #[inline]
    pub(super) fn is_pushed(&mut self) -> bool {
        self.optional.linux_mut().is_some_and(|states| {
            states.on_sent();
            states.ends_burst()
        })
    }

    /// Begins a burst, if none is leaving. Returns whether one leaves now: it may wait for the next
    /// acknowledgement.
    #[inline]
    pub(super) fn begin_burst(&mut self, now: Time) -> bool {
        if let Some(states) = self.optional.linux()
            && let Some(burst) = &states.burst
            && (burst.left == 0 || burst.at != now)
        {
            let len = self.next_burst(burst, now);
            let (una, next) = (self.board.una(), self.board.next());
            if let Some(states) = self.optional.linux_mut()
                && let Some(burst) = &mut states.burst
            {
                if len == 0 {
                    states.on_full_window(una, next);
                    return false;
                }
                (burst.at, burst.left, burst.several) = (now, len, len > 1);
            }
        }
        true
    }

    /// The number of segments of a burst that begins now: no more
    /// than half the window (`tcp_cwnd_test`); 0 if it waits for the next acknowledgement.
    #[inline]
    fn next_burst(&self, burst: &Burst, now: Time) -> u32 {
        let window = self.controller.window();
        let room = window.cwnd - as_f64(self.board.pipe());
        let mss = f64::from(self.mss);
        let most = match &self.pacer {
            // A paced burst does not wait.
            Some(pacer) if pacer.quantum_segments() < Burst::LEAST => return 1,
            Some(pacer) => pacer.quantum_segments(),
            None => self.timer.rtt.srtt().map_or(Burst::LEAST, |srtt| {
                burst.most(window, mss, srtt, self.board.min_rtt().unwrap_or(srtt))
            }),
        };
        let offered = u64::from(self.most_outstanding::<Linux>());
        let offered = offered.saturating_sub(self.board.outstanding());
        let limit = lesser(room, as_f64(offered));
        if limit < as_f64(most) * mss && self.awaits_more(limit, window, now) {
            return 0;
        }
        if most == Burst::LEAST {
            let two = limit >= 2.0 * mss && window.cwnd >= 4.0 * mss;
            return if two { 2 } else { 1 };
        }
        let fits = lesser(limit, window.cwnd / 2.0) / mss;
        most.min(fits as u64).max(1) as u32
    }

    /// Whether a burst of fewer segments than it may have, `limit` bytes, waits for the next
    /// acknowledgement, which lets more leave (`tcp_tso_should_defer`, since 2025). It does if less
    /// than a third of the window is free, something left within the last millisecond, and the
    /// acknowledgement is expected within a millisecond and half a round trip.
    #[inline]
    fn awaits_more(&self, limit: f64, window: Window, now: Time) -> bool {
        const SOON: Span = Span::from_ms(1);
        const PARTS_OF_WINDOW: f64 = 3.0; // tcp_tso_win_divisor
        now - self.last_sent <= SOON
            && self.phase == Phase::Open
            && self.pacer.is_none()
            && limit * PARTS_OF_WINDOW < window.cwnd.min(f64::from(self.peer_window))
            && self.stream.left(self.board.next()) > u64::from(self.mss)
            && (self.board.first_sent())
                .zip(self.timer.rtt.srtt())
                .is_some_and(|(sent, srtt)| sent + srtt <= now + SOON.min(srtt / 2))
    }
}
