//! The sending endpoint of a connection.
//!
//! It is composed of a congestion controller, a loss recovery strategy, an ECN response and a
//! round-trip estimator. The sender itself owns the scoreboard, the phase it is in and the
//! retransmission timer.
//!
//! A connection that opens with a handshake closes with a FIN in each direction. The sender's FIN
//! goes with its last data (RFC 9293, section 3.6). In the scoreboard the FIN is one more byte
//! after the last.

mod linux;

use std::ops::{AddAssign, Sub};

use redtail_core::{Ecn, Span, Stream, Time, earlier};

use self::linux::LinuxStates;
use super::delivery_rate::AckContext;
use super::ecn::{Arrival, EcnResponse};
use super::frto::{Answer, Verdict};
use super::pacing::Pacer;
use super::progress::Progress;
use super::prr::{Delivery, Prr};
use super::rack::Rules;
use super::recovery::{LossRecovery, Recovery, RecoveryTraits, Turn, each};
use super::rto::{RttEstimator, RttSampling, SynLoss, TimerRestart};
use super::scoreboard::{Acked, Scoreboard};
use super::timer_wheel::TimerWheel;
use super::timestamps::{before, shown_at, timestamp};
use super::undo::Undo;
use crate::cc::model::Episode;
use crate::cc::{
    AckSample, CaState, CongestionEvent, CongestionKind, Controller, ControllerConfig, IdleDecay,
    PathSample, as_f64,
};
use crate::params::TcpParams;
use crate::segment::{Flags, Segment};

/// Counters of a sender, from its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SenderCounters {
    /// Segments with payload, retransmissions included.
    pub data_segments: u64,
    /// Retransmitted segments.
    pub retransmissions: u64,
    /// Times fast recovery was entered.
    pub recoveries: u64,
    /// Retransmission timeouts, of SYNs included.
    pub timeouts: u64,
    /// Reductions because of an echoed ECN mark.
    pub ecn_reductions: u64,
    /// Acknowledgements that repeat the one before while data is outstanding (RFC 5681, section 2).
    pub duplicate_acks: u64,
    /// Timeouts found to be spurious and undone (RFC 5682).
    pub spurious_timeouts: u64,
    /// Fast retransmits found to be spurious and undone (RFC 9438, section 4.9.2).
    pub spurious_fast_retransmits: u64,
    /// Waits of more than 10 s for cumulative progress with data outstanding, counted when they
    /// end.
    pub stalls: u64,
}

impl AddAssign for SenderCounters {
    fn add_assign(&mut self, other: Self) {
        self.data_segments += other.data_segments;
        self.retransmissions += other.retransmissions;
        self.recoveries += other.recoveries;
        self.timeouts += other.timeouts;
        self.ecn_reductions += other.ecn_reductions;
        self.duplicate_acks += other.duplicate_acks;
        self.spurious_timeouts += other.spurious_timeouts;
        self.spurious_fast_retransmits += other.spurious_fast_retransmits;
        self.stalls += other.stalls;
    }
}

impl Sub for SenderCounters {
    type Output = Self;

    fn sub(self, earlier: Self) -> Self {
        Self {
            data_segments: self.data_segments - earlier.data_segments,
            retransmissions: self.retransmissions - earlier.retransmissions,
            recoveries: self.recoveries - earlier.recoveries,
            timeouts: self.timeouts - earlier.timeouts,
            ecn_reductions: self.ecn_reductions - earlier.ecn_reductions,
            duplicate_acks: self.duplicate_acks - earlier.duplicate_acks,
            spurious_timeouts: self.spurious_timeouts - earlier.spurious_timeouts,
            spurious_fast_retransmits: self.spurious_fast_retransmits
                - earlier.spurious_fast_retransmits,
            stalls: self.stalls - earlier.stalls,
        }
    }
}

/// A sender's state, for time series.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SenderSnapshot {
    /// Congestion window, bytes.
    pub cwnd: f64,
    /// Slow start threshold, bytes; infinite before the first reduction.
    pub ssthresh: f64,
    /// Bytes sent and not cumulatively acknowledged.
    pub outstanding: u64,
    /// Smoothed round-trip time, once measured.
    pub srtt: Option<Span>,
    /// Estimated share of marked bytes, if the response is in proportion to it (DCTCP.Alpha of RFC
    /// 8257).
    pub alpha: Option<f64>,
    /// Rate at which segments are paced, bytes/s, once there is one.
    pub pacing_rate: Option<f64>,
    /// The name of the state that a model-based controller is in.
    pub state: Option<&'static str>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Connection {
    /// Not started.
    Closed,
    /// The SYN is due, for the first time or as a retransmission.
    SynDue,
    /// Waiting for the SYN-ACK.
    SynSent,
    /// The acknowledgement of the SYN-ACK is due, without data.
    AckDue,
    /// Data may flow (ESTABLISHED; FIN-WAIT-1 once the FIN has been sent).
    Established,
    /// All data was acknowledged, and the connection closes without a FIN.
    Complete,
    /// FIN-WAIT-2: all data and the FIN were acknowledged; the peer's FIN has not arrived.
    FinWait2,
    /// The acknowledgement of the peer's FIN is due.
    FinAckDue,
    /// TIME-WAIT: the peer's FIN was acknowledged. A retransmission of it is acknowledged again.
    TimeWait,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Open,
    /// Fast recovery, until data up to `recover` is acknowledged.
    Recovery,
    /// Slow start after a timeout, until data up to `recover` is acknowledged.
    Loss,
}

/// A tail loss probe that has not been answered.
#[derive(Clone, Copy, Debug)]
struct Probe {
    /// An acknowledgement of this or more answers it.
    end: u64,
    sent: Time,
    /// Whether it was a retransmission, which may have repaired a loss.
    retransmitted: bool,
}

/// The timers of a sender that detects losses by time.
#[derive(Clone, Debug, Default)]
struct RackTimers {
    /// When the reordering timer is due (RFC 8985, section 6.2, step 5).
    judge_at: Option<Time>,
    /// When a tail loss probe is due (RFC 8985, section 7.2).
    probe_at: Option<Time>,
    /// The timer has expired: a tail loss probe is to be sent.
    probe_due: bool,
    /// The probe that has not been answered.
    probe: Option<Probe>,
}

/// The state of window probing, while the peer's window prevents sending (RFC 9293, section
/// 3.8.6.1). The persist timer is kept in place of the retransmission timer.
#[derive(Clone, Copy, Debug, Default)]
struct Persist {
    /// Probes sent.
    probes: u32,
    /// When the last probe was sent.
    probed: Option<Time>,
    /// The next probe is due.
    due: bool,
}

/// The longest time for which a receiver delays the acknowledgement of a single segment (RFC 8985,
/// section 7.2, TLP.max_ack_delay).
const MAX_ACK_DELAY: Span = Span::from_ms(200);

/// The probe timeout (PTO) of RFC 8985, section 7.2; `alone` if exactly one segment is outstanding.
fn probe_wait(srtt: Span, alone: bool, wheel: TimerWheel) -> Span {
    let more = if alone {
        MAX_ACK_DELAY
    } else {
        wheel.allowance()
    };
    srtt * 2 + more
}

/// A TCP sender: endless, with a given amount of data, or with the data that its application
/// writes.
#[derive(Clone, Debug)]
pub struct Sender {
    connection: Connection,
    phase: Phase,
    /// Retransmit the first outstanding segment now, whatever the window.
    resend_first: bool,
    /// A partial acknowledgement has restarted the timer in this episode.
    timer_restarted: bool,
    /// The present acknowledgement revealed a new loss.
    newly_lost: bool,
    limited_transmit: bool,
    ecn_retransmissions: bool,
    ecn_fallback: bool,
    /// The traits of the recovery strategy, copied because every acknowledgement reads them.
    traits: RecoveryTraits,
    /// Whether the growth law needs every acknowledgement.
    watched: bool,
    sampling: RttSampling,
    mss: u32,
    dup_acks: u32,
    dup_thresh: u32,
    /// Consecutive timeouts without a new acknowledgement.
    timeouts_in_row: u32,
    peer_window: u32,
    /// The largest window that the peer can announce.
    peer_window_max: u32,
    /// In segments, for the restart after an idle time.
    initial_window: u32,
    timestamps: bool,
    uses_prr: bool,
    byte_counting: bool,
    /// The application has closed: nothing follows `size`.
    closed: bool,
    /// Whether the connection closes with a FIN.
    fin: bool,
    /// Whether the peer sends data too and closes with it: this sender does not wait for the peer's
    /// FIN.
    half: bool,
    /// Whether the last data that the application wrote is pushed (PSH).
    pushes: bool,
    idle_decay: IdleDecay,
    /// The segment with the FIN may leave beyond the window.
    fin_beyond_window: bool,
    idle_restart: bool,
    /// Nothing is outstanding and nothing can be sent: there is no data, or no window.
    idle: bool,
    /// The latest timestamp of the peer (TS.Recent).
    ts_recent: u32,
    board: Scoreboard,
    prr: Option<Box<Prr>>,
    /// Set if losses are detected by time. Boxed, so that other senders stay small.
    timers: Option<Box<RackTimers>>,
    /// Set while the peer's window prevents sending.
    persist: Option<Box<Persist>>,
    /// Set if spurious reductions are detected.
    undo: Option<Box<Undo>>,
    /// Set if losses are repaired in the states of Linux.
    linux: Option<Box<LinuxStates>>,
    /// Set if segments are paced.
    pacer: Option<Box<Pacer>>,
    controller: Controller,
    recovery: Recovery,
    ecn: EcnResponse,
    rtt: RttEstimator,
    timer_restart: TimerRestart,
    wheel: TimerWheel,
    /// The recovery point: highest data sent when the latest episode began.
    recover: Option<u64>,
    rto_at: Option<Time>,
    /// The end of the segment being timed, and when it was sent.
    timed: Option<(u64, Time)>,
    /// When the SYN, or later any data, was last sent.
    last_sent: Time,
    /// The number of retransmissions of the SYN.
    syn_retransmissions: u32,
    syn_loss: SynLoss,
    /// Bytes to send in total; `u64::MAX` for an endless sender that has not closed.
    size: u64,
    progress: Progress,
    counters: SenderCounters,
}

impl Sender {
    /// A sender of `size` bytes that closes after them; an endless sender without `size`. It does
    /// nothing until [`open`](Self::open). `params` must have passed their check.
    pub fn new(params: &TcpParams, size: Option<u64>) -> Self {
        let mss = params.mss.as_u64() as u32;
        let recovery = Recovery::new(params.recovery);
        let traits = params.recovery.traits();
        let peer_window = params.announced(params.receive_window.as_u64()) as u32;
        let mut board = Scoreboard::default();
        let is_linux = traits.by_time == Some(Rules::Linux);
        if let Some(rules) = traits.by_time {
            board.judge_by_time(rules);
        }
        if params.growth.is_model() {
            board.sample_rates();
        }
        let controller = Controller::new(ControllerConfig {
            mss,
            initial_window: params.initial_window,
            halving: params.halving,
            byte_counting: params.byte_counting,
            slow_start: params.slow_start,
            growth: params.growth,
            lt_bw: params.lt_bw,
            ecn_max_rtt: params.ecn.then_some(params.bbr_ecn_max_rtt),
        });
        let mut sender = Self {
            connection: Connection::Closed,
            phase: Phase::Open,
            resend_first: false,
            timer_restarted: false,
            newly_lost: false,
            limited_transmit: params.limited_transmit,
            ecn_retransmissions: params.ecn_retransmissions,
            traits,
            watched: controller.watches(),
            sampling: params.rtt_sampling,
            mss,
            dup_acks: 0,
            dup_thresh: params.dup_thresh,
            timeouts_in_row: 0,
            peer_window,
            peer_window_max: peer_window,
            initial_window: params.initial_window,
            timestamps: params.timestamps,
            uses_prr: params.prr,
            byte_counting: params.byte_counting,
            closed: size.is_some(),
            fin: false,
            half: false,
            pushes: params.adaptive_acks,
            idle_decay: params.idle_decay,
            fin_beyond_window: params.fin_beyond_window,
            idle_restart: params.idle_restart,
            idle: false,
            ts_recent: 0,
            board,
            prr: None,
            timers: traits.by_time.map(|_| Box::default()),
            persist: None,
            undo: match is_linux {
                true => None,
                false => Undo::new(params.frto, params.dsack, traits.uses_sack),
            },
            linux: is_linux.then(|| Box::new(LinuxStates::new(params.frto, params.dsack))),
            pacer: params
                .pacing
                .then(|| Box::new(Pacer::new(params.pacing_ca_ratio, params.unpaced_segments))),
            controller,
            recovery,
            ecn: EcnResponse::new(params),
            ecn_fallback: params.ecn_fallback,
            rtt: RttEstimator::new(params),
            timer_restart: params.timer_restart,
            wheel: TimerWheel::new(params.timer_tick),
            recover: None,
            rto_at: None,
            timed: None,
            last_sent: Time::ZERO,
            syn_retransmissions: 0,
            syn_loss: params.syn_loss,
            size: size.unwrap_or(u64::MAX),
            progress: Progress::default(),
            counters: SenderCounters::default(),
        };
        sender.update_pacing();
        sender
    }

    /// The same sender with random numbers from `stream`. Without this call all senders draw the
    /// same numbers. Only model-based controllers draw.
    #[must_use]
    pub fn with_stream(mut self, stream: Stream) -> Self {
        self.draw_from(stream);
        self
    }

    /// Takes random numbers from `stream` from now on.
    pub(super) fn draw_from(&mut self, stream: Stream) {
        self.controller.set_stream(stream);
    }

    /// A sender whose application has written nothing yet, for
    /// [`write`](Self::write) and [`close`](Self::close).
    pub fn without_data(params: &TcpParams) -> Self {
        Self {
            closed: false,
            ..Self::new(params, Some(0))
        }
    }

    /// The sender's half of an [`Endpoint`](super::endpoint::Endpoint): its peer sends data too.
    pub(super) fn half(params: &TcpParams) -> Self {
        Self {
            half: true,
            ..Self::without_data(params)
        }
    }

    /// The peer's SYN has opened the connection, which will close with FINs. `agreed` are the flags
    /// of the SYN-ACK.
    pub(super) fn open_passively(&mut self, syn: &Segment, agreed: Flags) {
        self.fin = true;
        self.connection = Connection::Established;
        self.peer_window = syn.window;
        self.ts_recent = syn.ts_val;
        self.ecn.on_syn_ack(agreed, Ecn::NotEct);
    }

    /// The SYN or SYN-ACK was answered. It was last sent at `sent`, after so many
    /// `retransmissions`; the answer echoes the timestamp `echo`.
    pub(super) fn on_handshake(&mut self, sent: Time, retransmissions: u32, echo: u32, now: Time) {
        let sample = match self.syn_loss {
            _ if retransmissions == 0 => Some(sent),
            // The echo says which transmission is answered.
            SynLoss::Second if self.timestamps => Some(shown_at(echo, now)),
            _ => None,
        };
        if let Some(sent) = sample {
            self.rtt.sample(sent, now, 0, 0);
            self.controller.on_handshake(now - sent, now);
        } else {
            self.rtt.restart_with(Span::from_s(3));
        }
        if self.syn_loss.reduces_window(retransmissions) {
            self.controller.set_cwnd(f64::from(self.mss));
        }
        self.update_pacing();
    }

    /// The sequence number of a segment without data.
    #[inline]
    pub(super) fn next_seq(&self) -> u64 {
        self.board.next()
    }

    /// The smoothed round trip, once there is one, and the retransmission timeout.
    pub(super) fn round_trip(&self) -> (Option<Span>, Span) {
        (self.rtt.srtt(), self.rtt.rto())
    }

    /// Bytes written and never sent.
    pub(super) fn unsent(&self) -> u64 {
        self.size.saturating_sub(self.board.next())
    }

    /// Starts the connection; with a handshake, its SYN is the first segment to
    /// transmit, and it will close with a FIN.
    pub fn open(&mut self, handshake: bool) {
        self.fin = handshake;
        self.connection = if handshake {
            Connection::SynDue
        } else {
            Connection::Established
        };
    }

    /// The application writes `bytes` more. They are sent as the windows allow,
    /// without waiting for a segment to fill (no Nagle algorithm).
    ///
    /// # Panics
    /// When it has closed, or the sender is endless: the caller's bug.
    pub fn write(&mut self, bytes: u64) {
        assert!(!self.closed, "written after closing");
        self.size = self.size.checked_add(bytes).expect("a stream with an end");
    }

    /// The application will write no more. The FIN goes with the last unsent data, or alone if
    /// there is none. The data of an endless sender ends with the last byte sent: its FIN goes
    /// alone, and only lost data is still retransmitted.
    pub fn close(&mut self) {
        self.closed = true;
        if self.size == u64::MAX {
            self.end_stream();
        }
        let all_acked = self.board.una() >= self.size;
        if all_acked && !self.fin && self.connection == Connection::Established {
            self.connection = Connection::Complete; // no acknowledgement will say so
        }
    }

    /// Ends the stream after the last byte sent, which may be a window probe's.
    #[cold]
    fn end_stream(&mut self) {
        self.size = self.board.next();
        match &self.persist {
            Some(persist) if persist.probes > 0 => self.size += 1,
            Some(_) => {
                self.persist = None;
                self.rto_at = None;
            }
            None => {}
        }
    }

    /// Prefetches into the cache what the next acknowledgement reads outside the sender itself.
    #[inline]
    pub fn prefetch(&self) {
        self.board.prefetch();
    }

    /// Whether the application has closed and all its data was acknowledged, with or without the
    /// FIN.
    #[inline]
    pub fn is_complete(&self) -> bool {
        self.closed && self.board.una() >= self.size && self.is_established()
    }

    /// Whether the connection is established or was: with a handshake, whether the SYN-ACK has
    /// arrived.
    #[inline]
    pub fn is_established(&self) -> bool {
        use Connection::{Closed, SynDue, SynSent};
        !matches!(self.connection, Closed | SynDue | SynSent)
    }

    /// Whether nothing more will be sent, except for the acknowledgement of a retransmitted FIN.
    pub fn is_closed(&self) -> bool {
        matches!(self.connection, Connection::Complete | Connection::TimeWait)
    }

    /// The counters so far.
    pub fn counters(&self) -> SenderCounters {
        self.counters
    }

    /// The longest time for which a SYN or data waited for an acknowledgement that advances, since
    /// [`forget_waits`](Self::forget_waits); and whether the present wait is longer than 10 s.
    pub fn longest_wait(&self, now: Time) -> (Span, bool) {
        let outstanding = self.board.outstanding() > 0 || self.connection == Connection::SynSent;
        let stalled = outstanding && self.progress.is_stalled(now);
        (self.progress.longest(outstanding, now), stalled)
    }

    /// Forgets the waits that have ended.
    pub fn forget_waits(&mut self) {
        self.progress.forget();
    }

    /// Bytes cumulatively acknowledged.
    pub fn acked(&self) -> u64 {
        self.board.una().min(self.size)
    }

    /// The state shown in time series.
    pub fn snapshot(&self) -> SenderSnapshot {
        let window = self.controller.window();
        SenderSnapshot {
            cwnd: window.cwnd,
            ssthresh: window.ssthresh,
            outstanding: self.board.next().min(self.size) - self.acked(),
            srtt: self.rtt.srtt(),
            alpha: self.ecn.alpha(),
            pacing_rate: self.pacer.as_ref().and_then(|pacer| pacer.rate()),
            state: self.controller.state(),
        }
    }

    /// When [`on_wakeup`](Self::on_wakeup) is due: the earlier of
    /// [`next_timer`](Self::next_timer) and [`next_release`](Self::next_release).
    pub fn next_wakeup(&self) -> Option<Time> {
        earlier(self.next_timer(), self.next_release())
    }

    /// When a segment that pacing holds back may leave.
    #[inline]
    pub fn next_release(&self) -> Option<Time> {
        self.pacer.as_ref().and_then(|pacer| pacer.release_at())
    }

    /// When the next timer expires, unless it is restarted before.
    #[inline]
    pub fn next_timer(&self) -> Option<Time> {
        match &self.timers {
            None => self.rto_at,
            Some(timers) => earlier(earlier(self.rto_at, timers.judge_at), timers.probe_at),
        }
    }

    /// Handles the timers that are due. Segments that pacing held back are sent by the next
    /// [`poll_transmit`](Self::poll_transmit).
    pub fn on_wakeup(&mut self, now: Time) {
        if let Some(pacer) = &mut self.pacer {
            pacer.release();
        }
        let mut probing = false;
        if let Some(timers) = &mut self.timers {
            if timers.probe_at.take_if(|at| *at <= now).is_some() {
                timers.probe_due = self.phase == Phase::Open && self.board.outstanding() > 0;
            }
            probing = timers.probe_due;
            if timers.judge_at.take_if(|at| *at <= now).is_some() {
                self.on_reordering_timer(now);
            }
        }
        // A probe takes the place of the timeout and restarts its timer.
        if self.rto_at.is_some_and(|at| at <= now) && !probing {
            match &mut self.persist {
                Some(persist) => {
                    persist.due = true;
                    self.rto_at = None;
                    self.resend_first = true;
                }
                None => self.on_timeout(now),
            }
        }
    }

    /// The reordering timer has expired (RFC 8985, section 6.3).
    fn on_reordering_timer(&mut self, now: Time) {
        self.run_from_head(now);
        if self.linux.is_some() {
            return self.judge_in_time_as_linux(now);
        }
        self.judge(now);
        if let Some(prr) = &mut self.prr {
            prr.begin();
        }
        self.tell_losses(now);
    }

    /// The retransmission timer (RFC 6298, section 5).
    fn on_timeout(&mut self, now: Time) {
        self.counters.timeouts += 1;
        self.rto_at = None;
        self.timed = None;
        self.rtt.back_off();
        if self.connection == Connection::SynSent {
            self.connection = Connection::SynDue;
            self.syn_retransmissions += 1;
            return;
        }
        if self.linux.is_some() {
            return self.on_timeout_as_linux(now);
        }
        self.allow_undo(true);
        if let Some(frto) = self.undo.as_mut().and_then(|undo| undo.frto.as_mut()) {
            frto.on_timeout(self.phase == Phase::Open);
        }
        self.reduce(
            CongestionKind::Timeout {
                repeated: self.timeouts_in_row > 0,
            },
            now,
        );
        self.timeouts_in_row += 1;
        self.ecn.on_reduction(self.board.next(), now);
        if self.traits.forgets_sacked {
            self.board.forget_sacked();
        }
        if self.timers.is_some() {
            self.board.declare_lost_on_timeout(now, self.rtt.srtt());
            // One segment more than what is still in flight (Linux). If nothing is in flight, this
            // is the loss window of RFC 5681, equation 4.
            let in_flight = self.board.pipe() as f64;
            self.controller.set_cwnd(in_flight + f64::from(self.mss));
        } else {
            self.board.declare_all_lost();
        }
        self.tell_losses(now);
        self.phase = Phase::Loss;
        self.recover = Some(self.board.next());
        self.dup_acks = 0;
        self.resend_first = true;
        self.prr = None;
        self.stop_rack_timers();
    }

    /// Stops the reordering timer and the probe timer, and forgets the probe.
    fn stop_rack_timers(&mut self) {
        if let Some(timers) = &mut self.timers {
            **timers = RackTimers::default();
        }
    }

    /// Detects losses by time, and enters recovery if there are any.
    fn judge(&mut self, now: Time) {
        self.detect(now);
        if self.phase == Phase::Open {
            self.maybe_enter_recovery(now);
        }
    }

    /// Detects losses by time (RACK_detect_loss of RFC 8985, section 6.2, step 5). Returns whether
    /// a retransmission was lost.
    fn detect(&mut self, now: Time) -> bool {
        let enough = u64::from(self.dup_thresh) * u64::from(self.mss);
        let certain = self.phase != Phase::Open || self.board.sacked().bytes() >= enough;
        let srtt = self.rtt.srtt();
        let judged = self.board.detect_losses_by_time(now, certain, srtt);
        self.newly_lost |= judged.lost;
        if let Some(timers) = &mut self.timers {
            let wait = |at: Time| at - now + self.wheel.allowance();
            timers.judge_at = judged.next_check.map(|at| self.wheel.expiry(now, wait(at)));
        }
        judged.retransmission
    }

    /// A segment from the peer.
    #[inline]
    pub fn on_segment(&mut self, segment: &Segment, now: Time) {
        if self.connection == Connection::Established {
            self.on_ack(segment, now);
        } else {
            self.on_control(segment, now);
        }
    }

    /// A segment at the beginning or at the end of a connection.
    #[cold]
    fn on_control(&mut self, segment: &Segment, now: Time) {
        use Connection::{FinAckDue, FinWait2, SynSent, TimeWait};
        let has = |flags: Flags| segment.flags.contains(flags);
        match self.connection {
            SynSent if has(Flags::SYN.with(Flags::ACK)) => self.on_syn_ack(segment, now),
            FinWait2 | TimeWait if has(Flags::FIN) => self.connection = FinAckDue,
            _ => {}
        }
    }

    fn on_syn_ack(&mut self, segment: &Segment, now: Time) {
        self.connection = if self.size == 0 && !self.closed {
            Connection::AckDue
        } else {
            Connection::Established
        };
        self.peer_window = segment.window;
        self.ts_recent = segment.ts_val;
        self.ecn.on_syn_ack(segment.flags, segment.ecn);
        self.rto_at = None;
        self.counters.stalls += u64::from(self.progress.advance(now));
        self.on_handshake(
            self.last_sent,
            self.syn_retransmissions,
            segment.ts_ecr,
            now,
        );
    }

    #[inline]
    fn on_ack(&mut self, segment: &Segment, now: Time) {
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
        let marked = if self.ecn.enabled() {
            self.on_feedback(segment, now)
        } else {
            0
        };
        if self.linux.is_some() {
            return self.on_ack_as_linux(segment, marked, same_window, now);
        }
        let (una, delivered) = (self.board.una(), self.board.delivered());
        if self.timestamps
            && let Some(rack) = self.board.rack_mut()
        {
            rack.on_echo(segment.ts_ecr);
        }
        if self.undo.is_some() && !segment.sack.is_empty() {
            self.on_report(segment, now);
        }
        let in_flight = self.board.pipe();
        self.newly_lost = false;
        if segment.ack > una {
            self.on_new_ack(segment, marked, now);
            self.check_timeout(una, delivered, marked > 0);
        } else if segment.ack == una && self.board.outstanding() > 0 {
            // A segment that changes the window or carries a FIN is no duplicate acknowledgement
            // (RFC 5681, section 2).
            let same_window = same_window && !segment.flags.contains(Flags::FIN);
            self.counters.duplicate_acks += u64::from(same_window);
            let newly_sacked = self.enter_sack(segment, now);
            if self.watched {
                self.tell_law(Acked::default(), now);
            }
            if newly_sacked > 0 && self.sampling == RttSampling::EveryDelivery {
                self.sample_sacked(now);
            }
            if (same_window || newly_sacked > 0) && self.traits.counts_as_duplicate(newly_sacked) {
                self.on_duplicate_ack(now);
            }
            self.check_timeout(una, delivered, marked > 0);
        }
        if self.timers.is_some() && !self.board.sacked().is_empty() {
            self.judge(now);
        }
        if let Some(prr) = &mut self.prr {
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

    /// Passes an acknowledgement, which covers `acked`, to a law that watches the path.
    #[inline(never)] // so that senders of other laws are not burdened
    fn tell_law(&mut self, acked: Acked, now: Time) {
        let state = match self.phase {
            Phase::Recovery => CaState::Recovery,
            Phase::Loss => CaState::Loss,
            Phase::Open if self.prr.is_some() => CaState::Reduction,
            Phase::Open if !self.board.sacked().is_empty() => CaState::Disorder,
            Phase::Open => CaState::Open,
        };
        self.tell_law_in(state, acked, now);
    }

    /// As [`tell_law`](Self::tell_law), for a sender that was in `state` when the acknowledgement
    /// arrived.
    fn tell_law_in(&mut self, state: CaState, acked: Acked, now: Time) {
        self.controller.watch(&PathSample {
            now,
            acked: acked.bytes,
            una: self.board.una(),
            next: self.board.next(),
            rtt: acked.sent.map(|sent| now.saturating_since(sent)),
            srtt: self.rtt.srtt(),
            state,
        });
    }

    /// Passes the rate sample of an acknowledgement to the model, and the model's rate to the
    /// pacer. Before the acknowledgement, data up to `una` was acknowledged and `in_flight` bytes
    /// were in flight; it newly reports `marked` bytes as marked.
    #[inline(never)] // so that unpaced senders are not burdened
    fn tell_model(&mut self, una: u64, in_flight: u64, marked: u64, now: Time) {
        let context = AckContext {
            prior_in_flight: in_flight,
            in_flight: self.board.pipe(),
            una,
            srtt: self.rtt.srtt(),
            episode: match self.phase {
                Phase::Open => Episode::Open,
                Phase::Recovery => Episode::Recovery,
                Phase::Loss => Episode::Loss,
            },
            marked,
            held_for: (self.pacer.as_ref()).map_or(Span::ZERO, |pacer| pacer.held_for(now)),
        };
        if let Some(rates) = self.board.rates() {
            if rates.has_losses() {
                for lost in rates.losses() {
                    self.controller.on_lost(&lost, now);
                }
            }
            self.controller.on_rate_sample(&rates.finish(context, now));
            if self.controller.probes_rtt() {
                rates.mark_app_limited(context.in_flight);
            }
        }
        self.update_pacing();
    }

    /// Passes losses to the model that were not detected by an acknowledgement.
    fn tell_losses(&mut self, now: Time) {
        if let Some(rates) = self.board.rates() {
            for lost in rates.losses() {
                self.controller.on_lost(&lost, now);
            }
            rates.settle_losses();
            self.update_pacing();
        }
    }

    /// Sets the pacing rate: the model's, or that of the window and the round trip.
    fn update_pacing(&mut self) {
        let Some(pacer) = &mut self.pacer else {
            return;
        };
        if let Some((rate, quantum)) = self.controller.pacing() {
            pacer.set(rate, quantum);
        } else if let Some(srtt) = self.rtt.srtt() {
            pacer.follow(self.controller.window(), srtt);
        }
    }

    /// Stores the window and the timestamp of an acknowledgement.
    #[inline]
    fn on_window(&mut self, segment: &Segment) {
        self.peer_window = segment.window;
        if self.timestamps && !before(segment.ts_val, self.ts_recent) {
            self.ts_recent = segment.ts_val;
        }
    }

    /// Whether `ack` covers the byte of a window probe; the byte is then recorded in the
    /// scoreboard.
    #[cold]
    fn is_probe_accepted(&mut self, ack: u64) -> bool {
        let accepted = ack == self.board.next() + 1;
        let Some(persist) = self.persist.as_mut().filter(|_| accepted) else {
            return false;
        };
        let Some(probed) = persist.probed.take() else {
            return false;
        };
        self.progress.begin(probed);
        self.board.on_new(1, probed);
        if persist.probes > 1
            && let Some(index) = self.board.last()
        {
            self.board.on_resent(index, probed); // ambiguous (Karn)
        }
        true
    }

    /// A probe that repaired a loss is a congestion signal (RFC 8985, section 7.4).
    fn on_probe_answered(&mut self, segment: &Segment, now: Time) {
        let timestamps = self.timestamps;
        // With timestamps an acknowledgement of the original segment differs from one of the probe.
        let original = |probe: &Probe| timestamps && before(segment.ts_ecr, timestamp(probe.sent));
        // A D-SACK may still report that the probe was not needed (section 7.4.2).
        let waits = self.undo.as_ref().is_some_and(|undo| undo.dsack);
        let answered = |probe: &mut Probe| {
            let open = waits && probe.retransmitted && !original(probe);
            segment.ack > probe.end || segment.ack == probe.end && !open
        };
        let probe = self
            .timers
            .as_mut()
            .and_then(|timers| timers.probe.take_if(answered));
        let Some(probe) = probe else {
            return;
        };
        if probe.retransmitted && !original(&probe) && self.phase == Phase::Open {
            self.reduce(CongestionKind::Loss, now);
            self.controller.on_episode_end(false, now);
            self.forbid_undo();
        }
    }

    /// An episode is about to reduce the window. The reduction can be undone later, unless another
    /// episode is in progress.
    fn allow_undo(&mut self, timeout: bool) {
        if let Some(undo) = &mut self.undo {
            if self.phase == Phase::Open {
                undo.on_episode(self.controller.window(), self.board.una(), timeout);
            } else {
                undo.confirm();
            }
        }
    }

    /// The latest reduction can no longer be undone.
    fn forbid_undo(&mut self) {
        if let Some(undo) = &mut self.undo {
            undo.confirm();
        }
    }

    /// Processes a D-SACK report, if the segment has one.
    fn on_report(&mut self, segment: &Segment, now: Time) {
        let Some(undo) = self.undo.as_mut().filter(|undo| undo.dsack) else {
            return;
        };
        let Some(duplicate) = segment.sack.duplicate(segment.ack) else {
            return;
        };
        let probe = self.timers.as_mut().and_then(|timers| {
            let probe = &mut timers.probe;
            probe.take_if(|probe| probe.retransmitted && probe.end == duplicate.end)
        });
        let next = self.board.next();
        if let Some(rack) = self.board.rack_mut()
            && probe.is_none()
        {
            // A duplicate of a tail loss probe is no sign of reordering.
            rack.on_duplicate(segment.ack, next, now);
        }
        if undo.on_duplicate(duplicate, self.mss) {
            self.undo_reduction(true);
        }
    }

    /// Passes an acknowledgement to F-RTO, which may find the last timeout spurious.
    #[inline]
    fn check_timeout(&mut self, una: u64, delivered: u64, echoed: bool) {
        if self.undo.is_some() {
            self.ask_frto(una, delivered, echoed);
        }
    }

    #[inline(never)] // so that senders without it are not burdened
    fn ask_frto(&mut self, una: u64, delivered: u64, echoed: bool) {
        let Some(frto) = self.undo.as_mut().and_then(|undo| undo.frto.as_mut()) else {
            return;
        };
        let ack = self.board.una();
        let verdict = frto.on_ack(Answer {
            ack,
            advances: ack > una,
            delivers: self.board.delivered() > delivered,
            highest: self
                .board
                .sacked()
                .highest()
                .map_or(ack, |end| end.max(ack)),
            next: self.board.next(),
        });
        match verdict {
            Verdict::Open => {}
            // With an echoed mark the window stays reduced, even after a spurious timeout (RFC
            // 4015, section 3.1).
            Verdict::Spurious => self.undo_reduction(!echoed),
            Verdict::Genuine => {
                // Not above the window that slow start would have reached without F-RTO.
                let window = self.controller.window();
                let earned = (3.0 * f64::from(self.mss)).min(window.ssthresh);
                self.controller.set_cwnd(window.cwnd.max(earned));
            }
        }
    }

    /// The latest episode was spurious: restores the state before it, and with `restore` the window
    /// too.
    fn undo_reduction(&mut self, restore: bool) {
        let Some((prior, timeout)) = self.undo.as_mut().and_then(|undo| undo.take()) else {
            return;
        };
        if restore {
            self.controller.undo(prior);
            self.ecn.on_undo();
        }
        if !timeout {
            // Fast recovery continues without further reduction.
            self.counters.spurious_fast_retransmits += 1;
            self.prr = None;
            return;
        }
        self.counters.spurious_timeouts += 1;
        if self.phase == Phase::Loss {
            self.board.undo_losses();
            self.phase = Phase::Open;
            self.recover = Some(self.board.una());
            self.timeouts_in_row = 0;
            self.resend_first = false;
        }
    }

    /// Passes a congestion event to the controller.
    fn reduce(&mut self, kind: CongestionKind, now: Time) {
        self.controller.on_congestion(&CongestionEvent {
            now,
            kind,
            flight: self.board.outstanding(),
            beta: None,
        });
    }

    /// Processes the ECN feedback of an acknowledgement. Returns the bytes it newly reports as
    /// marked.
    #[inline(never)] // so that senders without ECN are not burdened
    fn on_feedback(&mut self, segment: &Segment, now: Time) -> u64 {
        let (una, next) = (self.board.una(), self.board.next());
        let window = self.controller.window();
        let marks = self.ecn.on_ack(&Arrival {
            segment,
            una,
            next,
            now,
            slow_start: window.cwnd < window.ssthresh,
        });
        if let Some(linux) = &mut self.linux {
            linux.on_marks(marks.reduce);
            return marks.bytes;
        }
        if marks.reduce && self.phase != Phase::Recovery {
            self.counters.ecn_reductions += 1;
            self.forbid_undo();
            self.ecn.on_reduction(next, now);
            self.controller.on_congestion(&CongestionEvent {
                now,
                kind: CongestionKind::Ecn,
                // A response in proportion to the marks reduces the window (RFC 8257, section 3.3).
                flight: match self.ecn.alpha() {
                    Some(_) => u64::MAX,
                    None => self.board.outstanding(),
                },
                beta: self.ecn.beta(self.controller.beta_ecn()),
            });
            let spread = self.uses_prr && self.ecn.spreads_reduction();
            if spread && self.traits.pipe_is_exact && self.phase == Phase::Open {
                let sacked = self.board.sacked().bytes();
                let reduction = Prr::for_marks(self.board.outstanding(), sacked, next);
                self.prr = Some(Box::new(reduction));
            } else if self.phase == Phase::Open {
                self.controller.on_episode_end(false, now);
            }
        }
        marks.bytes
    }

    fn enter_sack(&mut self, segment: &Segment, now: Time) -> u64 {
        if segment.sack.is_empty() {
            return 0;
        }
        let bytes = self.board.on_sack(segment.sack.iter(segment.ack), now);
        if self.traits.pipe_is_exact && self.timers.is_none() {
            self.newly_lost |= self
                .board
                .detect_losses(self.dup_thresh, self.mss, self.size);
        }
        bytes
    }

    #[inline]
    fn on_new_ack(&mut self, segment: &Segment, marked: u64, now: Time) {
        let window_was_full = self.window_is_full();
        if self.timers.is_some() {
            self.on_probe_answered(segment, now);
        }
        let delivered = self.board.delivered();
        let times = match self.sampling {
            RttSampling::EveryDelivery => self.board.times_below(segment.ack),
            _ => None,
        };
        let acked = self.board.on_ack(segment.ack, now);
        self.counters.stalls += u64::from(self.progress.advance(now));
        self.timeouts_in_row = 0;
        let finished = self.recover.is_none_or(|recover| segment.ack >= recover);
        let in_recovery = self.phase == Phase::Recovery;
        let partial = in_recovery && !finished && !self.traits.ends_on_partial_ack;
        if !segment.sack.is_empty() {
            self.enter_sack(segment, now);
        }
        let rtt = match self.sampling {
            RttSampling::EveryDelivery => self.sample_delivery(segment, times, now),
            _ if partial && !self.timestamps => None,
            _ => self.sample_rtt(segment, acked, now),
        };
        if self.watched {
            self.tell_law(acked, now);
        }
        if partial {
            self.on_partial_ack(acked, now);
            return;
        }
        if in_recovery {
            self.leave_recovery(now);
        }
        if in_recovery || self.phase == Phase::Loss && finished {
            if !in_recovery {
                self.controller.on_episode_end(true, now);
            }
            self.phase = Phase::Open;
            if let Some(rack) = self.board.rack_mut() {
                rack.on_episode_end(now);
            }
        }
        if self.prr.take_if(|prr| prr.ends_at(segment.ack)).is_some() {
            self.controller.on_episode_end(false, now);
        }
        if self.traits.forgets_sacked {
            self.board.forget_sacked();
        }
        self.dup_acks = 0;
        let grows = if in_recovery {
            self.traits.exit_grows_window
        } else {
            window_was_full
        };
        if grows && self.prr.is_none() {
            // With byte counting each byte counts once: bytes selectively acknowledged before do
            // not grow the window again when the hole below them is filled (Linux).
            let bytes = if self.byte_counting {
                self.board.delivered() - delivered
            } else {
                acked.bytes
            };
            self.controller.on_ack(&AckSample {
                now,
                acked: bytes,
                marked,
                una: segment.ack,
                next: self.board.next(),
                rtt,
                srtt: self.rtt.srtt(),
                rtt_independent: self.ecn.is_rtt_independent(),
            });
        }
        self.restart_timer(now);
        if !self.finish(segment) && self.traits.pipe_is_exact && self.board.first_is_lost() {
            // Losses that are already known begin the next episode.
            self.maybe_enter_recovery(now);
        }
    }

    /// Whether everything is acknowledged, the FIN included. All timers are then stopped.
    fn finish(&mut self, segment: &Segment) -> bool {
        let all = self.closed && segment.ack == self.size + u64::from(self.fin);
        if all {
            // The peer's FIN follows ours; it may come with this acknowledgement.
            let awaits_fin = self.fin && !self.half;
            self.connection = match (awaits_fin, segment.flags.contains(Flags::FIN)) {
                (true, true) => Connection::FinAckDue,
                (true, false) => Connection::FinWait2,
                (false, _) => Connection::Complete,
            };
            self.rto_at = None;
            self.release();
            self.stop_rack_timers();
        }
        all
    }

    /// Whether the congestion window, rather than the peer or the application, limits sending. It
    /// grows only then (RFC 5681, section 3.1; RFC 7661).
    #[inline]
    fn window_is_full(&self) -> bool {
        let full = self.board.outstanding() + u64::from(self.mss);
        as_f64(full) > self.controller.window().cwnd
            || (self.pacer.as_ref()).is_some_and(|pacer| pacer.had_full_window(self.board.una()))
    }

    /// Takes a round-trip sample if this acknowledgement gives one; returns it.
    #[inline]
    fn sample_rtt(&mut self, segment: &Segment, acked: Acked, now: Time) -> Option<Span> {
        let ack = segment.ack;
        let sent = match self.sampling {
            _ if self.timestamps => {
                // RFC 7323, section 4.1: the echoed timestamp says which transmission is answered.
                shown_at(segment.ts_ecr, now)
            }
            RttSampling::EveryAck | RttSampling::EveryDelivery => acked.sent?,
            RttSampling::OnePerWindow => {
                let (_, sent) = self.timed.take_if(|(end, _)| ack >= *end)?;
                sent
            }
        };
        self.rtt.sample(sent, now, ack, self.board.next());
        Some(now - sent)
    }

    /// Samples the round trip of the oldest segment that this acknowledgement newly covers,
    /// cumulatively or selectively. `acked` holds the send times of the oldest and the newest
    /// segment newly covered cumulatively. Returns the round trip of the newest.
    #[inline(never)]
    fn sample_delivery(
        &mut self,
        segment: &Segment,
        acked: Option<(Time, Time)>,
        now: Time,
    ) -> Option<Span> {
        let sacked = self.board.take_sacked_times();
        let echoed = || self.timestamps.then(|| shown_at(segment.ts_ecr, now));
        let (oldest, newest) = match (acked, sacked) {
            (Some(acked), None) => acked,
            (None, Some(sacked)) => sacked,
            (Some(acked), Some(sacked)) => (acked.0, sacked.1),
            (None, None) => echoed().map(|sent| (sent, sent))?,
        };
        self.rtt.sample(oldest, now, segment.ack, self.board.next());
        Some(now - newest)
    }

    /// Samples the round trip of an acknowledgement that does not advance.
    #[inline(never)]
    fn sample_sacked(&mut self, now: Time) {
        let Some((oldest, _)) = self.board.take_sacked_times() else {
            return;
        };
        let (una, next) = (self.board.una(), self.board.next());
        self.rtt.sample(oldest, now, una, next);
        // Otherwise a long recovery would postpone the timer without limit.
        let before = self.board.first_sent().is_some_and(|sent| oldest < sent);
        if before && self.timer_restart == TimerRestart::Head {
            self.restart_timer(now);
        }
    }

    fn on_partial_ack(&mut self, acked: Acked, now: Time) {
        let mss = self.mss;
        let resend =
            each!(&mut self.recovery, r => r.on_partial_ack(&mut self.board, acked.bytes, mss));
        self.resend_first |= resend;
        let every = self.traits.every_partial_ack_restarts_timer;
        if every {
            self.rtt.end_back_off();
        }
        if every || !self.timer_restarted {
            self.timer_restarted = true;
            self.restart_timer(now);
        }
    }

    fn leave_recovery(&mut self, now: Time) {
        self.prr = None;
        let (cwnd, mss) = (self.controller.window().cwnd, self.mss);
        let after = each!(&self.recovery, r => r.on_exit(&self.board, cwnd, mss));
        self.controller.set_cwnd(after);
        self.controller.on_episode_end(false, now);
        if self.traits.forgets_recovery_point {
            self.recover = None;
        }
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

    fn maybe_enter_recovery(&mut self, now: Time) {
        let (una, dup_acks) = (self.board.una(), self.dup_acks);
        let detected =
            each!(&self.recovery, r => r.detects_loss(&self.board, dup_acks, self.dup_thresh));
        let allowed = self
            .recover
            .is_none_or(|recover| self.traits.may_enter(una, recover));
        if !(detected && allowed) || self.board.outstanding() == 0 {
            return;
        }
        let starts_over = self.traits.starts_over;
        let (phase, kind) = if starts_over {
            (Phase::Loss, CongestionKind::Timeout { repeated: false })
        } else {
            (Phase::Recovery, CongestionKind::Loss)
        };
        self.counters.recoveries += 1;
        if self.ecn.covers(una) {
            self.forbid_undo();
        } else {
            self.allow_undo(starts_over);
        }
        self.phase = phase;
        self.recover = Some(self.board.next());
        self.timer_restarted = false;
        self.timed = None;
        self.resend_first = true;
        if !self.ecn.covers(una) {
            self.reduce(kind, now);
            self.ecn.on_reduction(self.board.next(), now);
        }
        let mss = self.mss;
        // Strategies that count duplicates declare the first segment lost.
        self.newly_lost |= self.timers.is_none() && !self.board.first_is_lost();
        each!(&mut self.recovery, r => r.on_enter(&mut self.board, dup_acks, mss));
        if self.uses_prr && self.traits.pipe_is_exact {
            let sacked = self.board.sacked().bytes();
            self.prr = Some(Box::new(Prr::new(self.board.outstanding(), sacked)));
        }
        self.end_probing(now);
        // The retransmission restarts the timer, as RFC 6675, section 6, allows. RFC 6298 restarts
        // it on new acknowledgements only, as does ns-3.
        if self.timer_restart == TimerRestart::Acks {
            self.restart_timer(now);
        }
    }

    /// Cancels the tail loss probe when recovery begins.
    fn end_probing(&mut self, now: Time) {
        if self.timer_restart == TimerRestart::Head
            && self.timers.as_ref().is_some_and(|it| it.probe_at.is_some())
        {
            self.run_from_head(now);
        }
        if let Some(timers) = &mut self.timers {
            (timers.probe_at, timers.probe) = (None, None);
        }
    }

    #[inline]
    fn restart_timer(&mut self, now: Time) {
        let outstanding = self.board.outstanding() > 0;
        self.rto_at = outstanding.then(|| self.wheel.expiry(now, self.rtt.rto()));
        if self.timers.is_some() {
            if self.timer_restart == TimerRestart::Head {
                self.restart_behind_others(now);
            }
            self.arm_probe(now);
        }
    }

    /// In Linux one timer serves for retransmission, reordering and the tail loss probe. When the
    /// retransmission timer replaces one of the others, it runs from the send time of the first
    /// outstanding segment (Linux, tcp_rearm_rto).
    #[inline(never)]
    fn restart_behind_others(&mut self, now: Time) {
        let Some(timers) = &self.timers else {
            return;
        };
        let (probing, may_probe) = (timers.probe_at.is_some(), self.may_probe());
        if timers.judge_at.is_some() || probing && !may_probe {
            self.run_from_head(now);
        } else if timers.probe.is_some() && may_probe {
            // Another probe is scheduled, but it is not sent while one is unanswered.
            let scheduled = self.rtt.srtt().map(|srtt| {
                let alone = self.board.is_single();
                self.wheel.expiry(now, probe_wait(srtt, alone, self.wheel))
            });
            self.run_from_head(now);
            self.rto_at = self.rto_at.max(scheduled);
        }
    }

    /// Restarts the retransmission timer from the last send time of the first outstanding segment.
    #[cold]
    fn run_from_head(&mut self, now: Time) {
        if let Some(sent) = self.board.first_sent()
            && self.timer_restart == TimerRestart::Head
        {
            let due = sent + self.rtt.rto();
            let wait = if due > now {
                due - now
            } else {
                Span::from_us(1)
            };
            self.rto_at = Some(self.wheel.expiry(now, wait));
        }
    }

    /// Schedules a tail loss probe (RFC 8985, section 7.2).
    fn arm_probe(&mut self, now: Time) {
        let quiet = self.may_probe();
        let alone = self.board.is_single();
        let wait = |srtt: Span| probe_wait(srtt, alone, self.wheel);
        let Some(timers) = &mut self.timers else {
            return;
        };
        timers.probe_at = match self.rtt.srtt() {
            Some(srtt) if quiet && timers.probe.is_none() => {
                let at = self.wheel.expiry(now, wait(srtt));
                // Not later than the retransmission timer, which it replaces.
                Some(self.rto_at.map_or(at, |rto| rto.min(at)))
            }
            _ => None,
        };
    }

    /// Whether a tail loss probe may be scheduled: data is outstanding, and there is no hole and no
    /// episode.
    fn may_probe(&self) -> bool {
        self.phase == Phase::Open
            && self.board.outstanding() > 0
            && match &self.linux {
                None => self.board.sacked().is_empty(),
                Some(linux) => linux.may_probe(),
            }
    }

    /// Sends a tail loss probe: new data if there is any, otherwise a retransmission of the last
    /// segment (RFC 8985, section 7.3).
    fn send_probe(&mut self, now: Time) -> Option<Segment> {
        self.rto_at = Some(self.wheel.expiry(now, self.rtt.rto()));
        let (segment, retransmitted) = match self.send_new(now) {
            Some(segment) => {
                if let Some(linux) = &mut self.linux {
                    linux.on_sent();
                }
                (segment, false)
            }
            None => {
                let last = self.board.last()?;
                let probe = match self.linux {
                    None => self.resend(last, now),
                    Some(_) => {
                        let (seq, len) = self.board.on_probed(last, now);
                        self.send_again(seq, len, now)
                    }
                };
                (probe, true)
            }
        };
        if let Some(prr) = &mut self.prr {
            prr.on_sent(segment.len);
        }
        if let Some(timers) = &mut self.timers {
            timers.probe_at = None;
            timers.probe = Some(Probe {
                end: self.board.next(),
                sent: now,
                retransmitted,
            });
        }
        Some(segment)
    }

    /// Bytes that count against the window now, as the recovery strategy estimates them.
    #[inline]
    pub fn in_flight(&self) -> u64 {
        match self.phase {
            Phase::Open if self.traits.pipe_is_exact => self.board.pipe(),
            Phase::Open => self
                .board
                .outstanding()
                .saturating_sub(self.limited_transmit()),
            Phase::Recovery => each!(&self.recovery, r => r.in_flight(&self.board)),
            Phase::Loss if self.traits.limited_transmit_after_timeout && self.dup_acks <= 2 => {
                self.board.pipe().saturating_sub(self.limited_transmit())
            }
            Phase::Loss => self.board.pipe(),
        }
    }

    /// Bytes allowed beyond the window: one segment for each of the first two duplicate
    /// acknowledgements (RFC 3042).
    #[inline]
    fn limited_transmit(&self) -> u64 {
        if self.limited_transmit {
            u64::from(self.dup_acks.min(2)) * u64::from(self.mss)
        } else {
            0
        }
    }

    /// Records that the window, not the pacer, prevents sending.
    #[inline(never)]
    fn note_full_window(&mut self) {
        self.release();
        let next = self.board.next();
        if let Some(pacer) = &mut self.pacer {
            pacer.on_full_window(next);
        }
        if let Some(rates) = self.board.rates() {
            rates.mark_window_limited(next);
        }
    }

    /// No segment waits for the pacer any more.
    fn release(&mut self) {
        if let Some(pacer) = &mut self.pacer {
            pacer.release();
        }
    }

    /// Whether pacing holds back the next segment; its release is then scheduled.
    #[inline(never)]
    fn is_held_back(&mut self, now: Time) -> bool {
        if self.board.pipe() == 0
            && let Some(rates) = self.board.rates()
            && rates.is_app_limited()
        {
            let delivered = rates.delivered();
            self.controller.on_restart(now, delivered);
            self.update_pacing();
        }
        if self.pacer.as_mut().is_none_or(|pacer| pacer.lets_pass(now)) {
            return false;
        }
        let more = self.has_more();
        if let Some(pacer) = &mut self.pacer {
            pacer.hold_back(more);
        }
        more
    }

    /// Whether there may be something to send if the window allows it.
    fn has_more(&self) -> bool {
        match self.phase {
            Phase::Open => {
                (self.dup_acks == 0 || self.limited_transmit) && self.new_len().is_some()
            }
            Phase::Recovery | Phase::Loss => true,
        }
    }

    /// The next segment to put on the wire now, if any; call until `None`.
    #[inline]
    pub fn poll_transmit(&mut self, now: Time) -> Option<Segment> {
        if self.connection != Connection::Established {
            return self.send_control(now);
        }
        if self.resend_first {
            self.resend_first = false;
            if self
                .persist
                .as_mut()
                .is_some_and(|it| std::mem::take(&mut it.due))
            {
                return self.send_window_probe(now);
            }
            if self.board.outstanding() > 0 {
                self.board.rewind();
                if let Some(index) = self.board.next_lost() {
                    let segment = self.resend(index, now);
                    if let Some(prr) = &mut self.prr {
                        prr.on_sent(segment.len);
                    }
                    return Some(segment);
                }
            }
        }
        if let Some(timers) = &mut self.timers
            && std::mem::take(&mut timers.probe_due)
        {
            return self.send_probe(now);
        }
        let in_flight = self.in_flight();
        let cwnd = match &self.prr {
            None => self.controller.window().cwnd,
            Some(prr) => prr.cwnd(),
        };
        let room = in_flight == 0 || as_f64(in_flight + u64::from(self.mss)) <= cwnd;
        if !room {
            if let Some(linux) = &mut self.linux {
                linux.on_full_window(self.board.una(), self.board.next());
            }
            if self.pacer.is_some() {
                self.note_full_window();
            }
            if self.fin_beyond_window && self.next_is_fin() {
                return self.send_fin_beyond_window(now);
            }
            return None;
        }
        if self.pacer.is_some() && self.is_held_back(now) {
            return None;
        }
        if self.linux.is_some() {
            return self.send_as_linux(now);
        }
        match self.phase {
            Phase::Open => {
                if self.dup_acks > 0 && !self.limited_transmit {
                    return None;
                }
                if self.prr.is_some() {
                    return self.send_new_after_marks(now);
                }
                self.send_new(now)
            }
            Phase::Loss => {
                if let Some(answer) = self.send_for_frto(now) {
                    return answer;
                }
                match self.board.next_lost() {
                    Some(index) => Some(self.resend(index, now)),
                    None => self.send_new(now),
                }
            }
            Phase::Recovery => {
                let lost =
                    each!(&mut self.recovery, r => r.next(&mut self.board, Turn::BeforeNewData));
                let segment = match lost {
                    Some(index) => self.resend(index, now),
                    None => match self.send_new(now) {
                        Some(segment) => segment,
                        None => {
                            let index = each!(
                                &mut self.recovery,
                                r => r.next(&mut self.board, Turn::AfterNewData)
                            )?;
                            self.resend(index, now)
                        }
                    },
                };
                each!(&mut self.recovery, r => r.on_sent(segment.len));
                if let Some(prr) = &mut self.prr {
                    prr.on_sent(segment.len);
                }
                Some(segment)
            }
        }
    }

    /// Whether the next new segment is the last one and carries the FIN.
    #[inline]
    fn next_is_fin(&self) -> bool {
        let next = self.board.next();
        self.closed
            && self.fin
            && next <= self.size
            && self.size - next <= u64::from(self.mss)
            && self.new_len() == Some((self.size - next) as u32)
    }

    /// Sends the last segment although the window is full, unless pacing holds it back.
    #[cold]
    fn send_fin_beyond_window(&mut self, now: Time) -> Option<Segment> {
        if self.pacer.is_some() && self.is_held_back(now) {
            return None;
        }
        self.send_new_after_marks(now)
    }

    /// Sends new data and counts it for the proportional rate reduction that marks began.
    #[inline(never)] // so that other senders' segments are written only once
    fn send_new_after_marks(&mut self, now: Time) -> Option<Segment> {
        let segment = self.send_new(now)?;
        if let Some(prr) = &mut self.prr {
            prr.on_sent(segment.len);
        }
        Some(segment)
    }

    /// The new data that F-RTO sends in place of retransmissions; `None` if F-RTO does not apply.
    fn send_for_frto(&mut self, now: Time) -> Option<Option<Segment>> {
        let frto = self.undo.as_ref()?.frto.as_ref()?;
        if !frto.sends_new()? {
            return Some(None);
        }
        let segment = self.send_new(now);
        let frto = self.undo.as_mut()?.frto.as_mut()?;
        frto.on_sent_new(segment.is_some()).then_some(segment)
    }

    /// The segments that open and close a connection.
    #[cold]
    fn send_control(&mut self, now: Time) -> Option<Segment> {
        match self.connection {
            Connection::SynDue => Some(self.send_syn(now)),
            Connection::AckDue | Connection::FinAckDue => Some(self.send_ack(now)),
            _ => None,
        }
    }

    fn send_syn(&mut self, now: Time) -> Segment {
        self.connection = Connection::SynSent;
        if self.syn_retransmissions == 0 {
            self.progress.begin(now);
        }
        self.last_sent = now;
        self.rto_at = Some(self.wheel.expiry(now, self.rtt.rto()));
        let ts_val = if self.timestamps { timestamp(now) } else { 0 };
        if self.syn_retransmissions > 0 && self.ecn_fallback {
            self.ecn.give_up();
        }
        Segment {
            flags: Flags::SYN.with(self.ecn.syn_flags()),
            ts_val,
            window: self.peer_window,
            ..Segment::default()
        }
    }

    /// An acknowledgement without data, of the SYN-ACK or of the peer's FIN.
    #[cold]
    fn send_ack(&mut self, now: Time) -> Segment {
        let closing = self.connection == Connection::FinAckDue;
        self.connection = if closing {
            Connection::TimeWait
        } else {
            Connection::Established
        };
        let bare = self.bare_segment(now);
        // With AccECN the acknowledgement of the SYN-ACK says how that arrived (RFC 9768, section
        // 3.2.2.1).
        let flags = self.ecn.ack_flags(!closing);
        Segment {
            seq: self.board.next(),
            ack: u64::from(closing),
            flags: bare.flags.with(flags),
            ..bare
        }
    }

    /// A window probe, whose acknowledgement announces the receiver's window (RFC 9293, section
    /// 3.8.6.1). It carries one byte, or what the window allows if that is less than is sent
    /// without waiting (section 3.8.6.2.1).
    #[cold]
    fn send_window_probe(&mut self, now: Time) -> Option<Segment> {
        let seq = self.board.next();
        let left = self.size - seq;
        if self.peer_window > 0 {
            let len = left
                .min(u64::from(self.peer_window))
                .min(u64::from(self.mss)) as u32;
            return Some(self.send_data(seq, len, now));
        }
        let persist = self.persist.as_mut()?;
        persist.probes += 1;
        persist.probed = Some(now);
        self.rto_at = Some(self.wheel.expiry(now, self.rtt.backed_off(persist.probes)));
        self.counters.data_segments += 1;
        Some(Segment {
            seq,
            len: 1,
            ..self.bare_segment(now)
        })
    }

    /// There is data that the peer's window does not allow. If nothing is outstanding, the persist
    /// timer is started.
    #[cold]
    fn on_blocked(&mut self, now: Time) {
        if self.board.outstanding() == 0 {
            self.idle = true;
            let probes = self.persist.get_or_insert_default().probes;
            if self.rto_at.is_none() {
                self.rto_at = Some(self.wheel.expiry(now, self.rtt.backed_off(probes)));
            }
        }
    }

    /// Sending resumes after an idle time.
    #[cold]
    fn end_idle(&mut self, now: Time) {
        self.idle = false;
        if self.persist.take().is_some() {
            self.rto_at = None;
        }
        self.controller.after_pause(self.last_sent, now);
        let (idle, rto) = (now - self.last_sent, self.rtt.rto());
        if idle > rto {
            let restart = f64::from(self.initial_window) * f64::from(self.mss);
            if self.idle_restart && self.idle_decay == IdleDecay::Halving {
                let timeouts = idle.as_ps().div_ceil(rto.as_ps().max(1));
                self.controller.decay(restart, timeouts, self.prr.is_some());
            } else {
                let restart = self.idle_restart.then_some(restart);
                self.controller.after_idle(restart);
            }
        }
    }

    /// Length of the next new segment, if there is data and the peer's window allows it; 0 if it is
    /// a FIN alone.
    #[inline]
    fn new_len(&self) -> Option<u32> {
        let seq = self.board.next();
        let left = self.size.saturating_sub(seq);
        if left == 0 {
            // The FIN needs no room in the receiver's buffer, so no window holds it back.
            return (self.closed && self.fin && seq == self.size).then_some(0);
        }
        let len = left.min(u64::from(self.mss)) as u32;
        let usable = u64::from(self.peer_window).saturating_sub(self.board.outstanding());
        if u64::from(len) <= usable {
            return Some(len);
        }
        // Less than a segment is sent if it is at least half of the largest window (RFC 9293,
        // section 3.8.6.2.1, rule 3).
        (usable > 0 && usable >= u64::from(self.peer_window_max / 2)).then_some(usable as u32)
    }

    /// As [`new_len`](Self::new_len). If there is nothing, it also records what prevents sending.
    #[inline]
    fn next_len(&mut self, now: Time) -> Option<u32> {
        let len = self.new_len();
        if self.board.next() >= self.size {
            self.idle |= self.board.outstanding() == 0;
            self.note_app_limited();
        } else if len.is_none() {
            self.on_blocked(now);
        }
        len
    }

    #[inline(never)] // one copy of the most frequent path
    fn send_new(&mut self, now: Time) -> Option<Segment> {
        let seq = self.board.next();
        let len = self.next_len(now)?;
        Some(self.send_data(seq, len, now))
    }

    #[inline(always)] // avoids a copy of the segment
    fn send_data(&mut self, seq: u64, len: u32, now: Time) -> Segment {
        if self.idle {
            self.end_idle(now);
        }
        // The FIN goes with the last byte, if the record's length has room for it.
        let end = seq + u64::from(len);
        let last = end == self.size && self.closed && self.fin;
        let len = if last && len < u32::from(u16::MAX) {
            len + 1
        } else {
            len
        };
        if self.board.outstanding() == 0 {
            self.progress.begin(now);
        }
        self.board.on_new(len, now);
        if self.timers.is_some() {
            if self.timer_restart == TimerRestart::Head {
                self.on_sent_behind_probe(now);
            }
            self.arm_probe(now);
        }
        if self.timed.is_none() {
            self.timed = Some((seq + u64::from(len), now));
        }
        let ecn = self.ecn.codepoint();
        self.data_segment(seq, len, ecn, now)
    }

    /// New data replaces a scheduled probe by one that is scheduled from now, or by the
    /// retransmission timer (Linux, tcp_event_new_data_sent).
    #[inline(never)]
    fn on_sent_behind_probe(&mut self, now: Time) {
        if self.timers.as_ref().is_some_and(|it| it.probe_at.is_some()) {
            self.run_from_head(now);
        }
    }

    /// There is room in the window and no data to send.
    #[inline(never)]
    fn note_app_limited(&mut self) {
        let in_flight = self.board.pipe();
        if let Some(rates) = self.board.rates()
            && as_f64(in_flight) < self.controller.window().cwnd
        {
            rates.mark_app_limited(in_flight);
        }
    }

    fn resend(&mut self, index: u64, now: Time) -> Segment {
        let (seq, len) = self.board.on_resent(index, now);
        if self.timer_restart == TimerRestart::Head && seq == self.board.una() {
            self.run_from_head(now);
        }
        if let Some(undo) = &mut self.undo {
            undo.on_resent(seq + u64::from(len));
        }
        if let Some(linux) = &mut self.linux {
            linux.on_resent(now);
        }
        self.send_again(seq, len, now)
    }

    /// Builds a retransmission of `len` sequence numbers from `seq`, which the scoreboard has
    /// already recorded.
    fn send_again(&mut self, seq: u64, len: u32, now: Time) -> Segment {
        self.counters.retransmissions += u64::from(seq < self.size);
        if self
            .timed
            .is_some_and(|(end, _)| end == seq + u64::from(len))
        {
            self.timed = None; // Karn
        }
        // Retransmissions must not be ECN-capable (RFC 3168, section 6.1.5).
        let ecn = if self.ecn_retransmissions {
            self.ecn.codepoint()
        } else {
            Ecn::NotEct
        };
        self.data_segment(seq, len, ecn, now)
    }

    /// Builds a segment of `len` sequence numbers from `seq`.
    #[inline(always)]
    fn data_segment(&mut self, seq: u64, len: u32, ecn: Ecn, now: Time) -> Segment {
        self.last_sent = now;
        if let Some(pacer) = &mut self.pacer {
            pacer.on_sent(len, now);
        }
        if self.rto_at.is_none() {
            self.rto_at = Some(self.wheel.expiry(now, self.rtt.rto())); // RFC 6298, rule 5.1
        }
        self.counters.data_segments += 1;
        let (len, ecn, fin) = if seq + u64::from(len) >= self.size {
            self.last_data(seq, len, ecn)
        } else {
            (len, ecn, Flags::NONE)
        };
        let flags = self.ecn.data_flags(ecn != Ecn::NotEct);
        Segment {
            seq,
            len,
            ts_val: if self.timestamps { timestamp(now) } else { 0 },
            ts_ecr: self.ts_recent,
            flags: Flags::ACK.with(flags).with(fin),
            ecn,
            ..Segment::default()
        }
    }

    /// The payload length, the codepoint and the flags of a segment that reaches the end of the
    /// written data. Its data is pushed. If the application has closed, the FIN is the last of
    /// `len` sequence numbers. A FIN without data is a control segment: it is not counted as data
    /// and not ECN-capable.
    #[cold]
    fn last_data(&mut self, seq: u64, len: u32, ecn: Ecn) -> (u32, Ecn, Flags) {
        if seq + u64::from(len) == self.size {
            (len, ecn, Flags::NONE.with_if(self.pushes, Flags::PSH))
        } else if len == 1 {
            self.counters.data_segments -= 1;
            (0, Ecn::NotEct, Flags::FIN)
        } else {
            (len - 1, ecn, Flags::FIN)
        }
    }

    /// Builds an acknowledgement without anything else.
    #[inline]
    fn bare_segment(&self, now: Time) -> Segment {
        Segment {
            flags: Flags::ACK,
            ts_val: if self.timestamps { timestamp(now) } else { 0 },
            ts_ecr: self.ts_recent,
            ..Segment::default()
        }
    }

    /// Checks the invariants that hold after every step; for tests.
    ///
    /// # Panics
    /// When an invariant is broken: our bug.
    pub fn assert_consistent(&self) {
        self.board.assert_consistent();
        let window = self.controller.window();
        assert!(
            window.cwnd >= f64::from(self.mss),
            "the window fell below a segment"
        );
        let outstanding = self.board.outstanding();
        assert!(
            outstanding == 0 || self.rto_at.is_some() || self.resend_first,
            "data is outstanding and no timer runs"
        );
    }
}
