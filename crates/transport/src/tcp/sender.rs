//! The sending endpoint of a connection.
//!
//! It is composed of a congestion controller, a loss recovery strategy, an ECN response and a
//! round-trip estimator. The sender itself owns the scoreboard, the phase it is in and the
//! retransmission timer.
//!
//! | module | responsibility |
//! |---|---|
//! | `kind` | which of its short paths a sender takes |
//! | `connection`, `stream` | opening and closing; the application's data |
//! | `ack` | what an acknowledgement changes |
//! | `episode`, `spurious` | loss recovery: its begin, its end, its undoing |
//! | `linux` | loss recovery in the states of Linux |
//! | `transmit`, `segments` | what is sent next; the segments that carry it |
//! | `timers`, `loss_probe`, `persist` | the timers and the probes |
//! | `round_trip`, `rate` | round-trip samples; pacing and rate samples |
//! | `optional` | the state that most senders do without |
//! | `story` | what it tells for an event log |
//!
//! A connection that opens with a handshake closes with a FIN in each direction. The sender's FIN
//! goes with its last data (RFC 9293, section 3.6). In the scoreboard the FIN is one more byte
//! after the last.

mod ack;
mod connection;
mod counters;
mod episode;
mod kind;
mod linux;
mod loss_probe;
mod optional;
mod persist;
mod rate;
mod round_trip;
mod segments;
mod spurious;
mod story;
mod stream;
mod timers;
mod transmit;

use std::mem::offset_of;
use std::num::NonZeroU64;

use redtail_core::{Span, Stream, Time, earlier};

use self::connection::{Connection, ConnectionState};
use self::counters::Counts;
pub use self::counters::{SenderCounters, SenderSnapshot};
use self::kind::Kind;
use self::linux::LinuxStates;
use self::optional::{Optional, OptionalState};
pub use self::story::SenderStory;
use self::stream::SendStream;
use self::timers::RetransmissionTimer;
pub use self::transmit::Way;
use super::ecn::EcnResponse;
use super::maybe_offset::MaybeOffset;
use super::pacing::Pacer;
use super::progress::Progress;
use super::rack::{RackParams, Rules};
use super::recovery::{Recovery, RecoveryTraits};
use super::scoreboard::Scoreboard;
use super::shared::SenderParams;
use super::timer_wheel::Expiry;
use super::undo::Undo;
use crate::cc::model::Episode as Phase;
use crate::cc::{Controller, ControllerConfig};
use crate::params::TcpParams;
use crate::plugin::Plugins;

/// A TCP sender: endless, with a given amount of data, or with the data that its application
/// writes.
///
/// The fields are in the order in which they are stored: first what an ordinary acknowledgement or segment uses, and
/// at the end what is counted rarely. With thousands of flows a packet costs by the cache lines that it touches
/// (docs/performance-log.md).
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Sender {
    connection: Connection,
    mss: u32,
    dup_acks: u32,
    /// Consecutive timeouts without a new acknowledgement.
    timeouts_in_row: u32,
    peer_window: u32,
    /// The latest timestamp of the peer (TS.Recent).
    ts_recent: u32,
    phase: Phase,
    /// Retransmit the first outstanding segment now, whatever the window.
    resend_first: bool,
    /// A partial acknowledgement has restarted the timer in this episode.
    timer_restarted: bool,
    /// The present acknowledgement revealed a new loss.
    newly_lost: bool,
    /// Segments were selectively acknowledged, and no round-trip sample has been taken of them yet.
    sample_due: bool,
    /// It selects the short paths.
    kind: Kind,
    /// Whether the growth law needs every acknowledgement.
    watched: bool,
    /// Nothing is outstanding and nothing can be sent: there is no data, or no window.
    idle: bool,
    /// What most senders do without.
    optional: Optional,
    /// Set if segments are paced. It is apart from `optional`, because each segment asks for it.
    pacer: Option<Box<Pacer>>,
    stream: SendStream,
    /// The end of the segment being timed, and when it was sent.
    timed: Option<(NonZeroU64, Time)>,
    /// When the SYN, or later any data, was last sent.
    last_sent: Time,
    progress: Progress,
    /// The recovery point: highest data sent when the latest episode began.
    recover: MaybeOffset,
    recovery: Recovery,
    controller: Controller,
    timer: RetransmissionTimer,
    board: Scoreboard,
    counters: Counts,
}

const _: () = assert!(
    size_of::<Sender>() <= 416,
    "thousands of senders share a cache"
);

/// The controller that `params` select.
fn controller(params: &TcpParams) -> Controller {
    let config = ControllerConfig {
        mss: params.mss.as_u64() as u32,
        initial_window: params.initial_window,
        halving: params.halving,
        byte_counting: params.byte_counting,
        slow_start: params.slow_start.clone(),
        growth: params.growth.clone(),
        lt_bw: params.lt_bw,
        ecn_max_rtt: params.ecn.then_some(params.bbr_ecn_max_rtt),
    };
    match params.identity() {
        Some(identity) => Controller::of_user(config, identity),
        None => Controller::new(config).starting_below(params.initial_ssthresh),
    }
}

/// A scoreboard that records what the recovery and the growth that `params` select need.
fn scoreboard(params: &TcpParams, traits: RecoveryTraits) -> Scoreboard {
    let mut board = Scoreboard::default();
    if let Some(rules) = traits.by_time {
        let constants = RackParams {
            divisor: params.rack_window_divisor,
            persist: params.rack_persist,
        };
        board.judge_by_time(rules, constants);
    }
    if params.has_model() {
        board.sample_rates();
    }
    board
}

impl Sender {
    /// The bytes of a sender that an ordinary acknowledgement or segment uses are the first ones, so many.
    pub const ORDINARY: usize = offset_of!(Self, counters) + size_of::<u64>();

    /// A sender of `size` bytes that closes after them; an endless sender without `size`. It does
    /// nothing until [`open`](Self::open). `params` must have passed their check.
    pub fn new(params: &TcpParams, size: Option<u64>) -> Self {
        let mss = params.mss.as_u64() as u32;
        let recovery = Recovery::new(params.recovery);
        let traits = params.recovery.traits();
        let peer_window = params.first_window() as u32;
        let is_linux = traits.by_time == Some(Rules::Linux);
        let controller = controller(params);
        let mut sender = Self {
            connection: Connection::CLOSED,
            phase: Phase::Open,
            resend_first: false,
            timer_restarted: false,
            newly_lost: false,
            sample_due: false,
            kind: Kind::of(params, controller.watches()),
            watched: controller.watches(),
            mss,
            dup_acks: 0,
            timeouts_in_row: 0,
            peer_window,
            idle: false,
            ts_recent: 0,
            board: scoreboard(params, traits),
            optional: Optional::new(OptionalState {
                timers: traits.by_time.map(|_| Box::default()),
                undo: match is_linux {
                    true => None,
                    false => Undo::new(params.frto, params.dsack, traits.uses_sack),
                },
                linux: is_linux.then(|| Box::new(LinuxStates::new(params))),
                ecn: EcnResponse::new(params),
                ..OptionalState::default()
            }),
            pacer: (params.pacing || params.class.is_some()).then(|| {
                let ratio = params.pacing.then_some(params.pacing_ca_ratio);
                Box::new(Pacer::new(ratio, params.unpaced_segments, mss))
            }),
            controller,
            recovery,
            timer: RetransmissionTimer::new(params),
            recover: MaybeOffset::NONE,
            timed: None,
            last_sent: Time::ZERO,
            stream: SendStream {
                fresh: params.fin_beyond_window,
                ..SendStream::new(size, params.adaptive_acks)
            },
            progress: Progress::default(),
            counters: Counts::default(),
        };
        sender.update_pacing();
        sender
    }

    /// A copy of this sender, which has sent nothing, for `size` bytes as in [`new`](Self::new). The copies share what
    /// they have in common.
    #[must_use]
    pub fn with_size(&self, size: Option<u64>) -> Self {
        let mut sender = self.clone();
        sender.stream = SendStream {
            fresh: self.stream.fresh,
            ..SendStream::new(size, self.stream.pushes)
        };
        sender
    }

    /// The same sender with random numbers from `stream`. Without this call all senders draw the
    /// same numbers. Only model-based controllers draw.
    #[must_use]
    pub fn with_stream(mut self, stream: Stream) -> Self {
        self.draw_from(stream);
        self
    }

    /// Takes the controller that a user's class names from `plugins`. It is made when the sender gets its stream of random
    /// numbers.
    pub fn take_controller_from(&mut self, plugins: &Plugins) {
        self.controller.take_from(plugins);
    }

    /// Tells the own figures of a controller of a user.
    pub fn report(&self, now: Time, tell: &mut dyn FnMut(&str, f64)) {
        self.controller.report(now, tell);
    }

    /// Takes random numbers from `stream` from now on.
    pub(super) fn draw_from(&mut self, stream: Stream) {
        self.controller.set_stream(stream);
    }

    /// A sender whose application has written nothing yet, for
    /// [`write`](Self::write) and [`close`](Self::close).
    pub fn without_data(params: &TcpParams) -> Self {
        let mut sender = Self::new(params, Some(0));
        sender.stream.closed = false;
        sender
    }

    /// The sender's half of an [`Endpoint`](super::endpoint::Endpoint): its peer sends data too.
    pub(super) fn half(params: &TcpParams) -> Self {
        let mut sender = Self::without_data(params);
        sender.connection = sender.connection.with_data_of_peer();
        sender
    }

    /// What the senders of a group share.
    #[inline]
    fn params(&self) -> &SenderParams {
        &self.timer.rtt.params().sender
    }

    /// The sequence number of a segment without data.
    #[inline]
    pub(super) fn next_seq(&self) -> u64 {
        self.board.next()
    }

    /// The smoothed round trip, once there is one, and the retransmission timeout.
    pub(super) fn round_trip(&self) -> (Option<Span>, Span) {
        (self.timer.rtt.srtt(), self.timer.rtt.rto())
    }

    /// Bytes written and never sent.
    pub(super) fn unsent(&self) -> u64 {
        self.stream.left(self.board.next())
    }

    /// Becomes a copy of `fresh`. Keeps the memory of its scoreboard.
    pub(super) fn renew(&mut self, fresh: &Self) {
        copy_fields!(
            self, fresh; board, timer, optional, controller; pacer;
            connection, phase, resend_first, timer_restarted, newly_lost, sample_due, kind, watched, mss,
            dup_acks, timeouts_in_row, peer_window, idle, ts_recent, recovery, recover, timed,
            last_sent, stream, progress, counters,
        );
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
        self.stream.closed && self.board.una() >= self.stream.size && self.is_established()
    }

    /// Whether the connection is established or was: with a handshake, whether the SYN-ACK has
    /// arrived.
    #[inline]
    pub fn is_established(&self) -> bool {
        self.connection.is_established()
    }

    /// Whether nothing more will be sent, except for the acknowledgement of a retransmitted FIN.
    #[inline]
    pub fn is_closed(&self) -> bool {
        self.connection.is_closed()
    }

    /// The counters so far.
    pub fn counters(&self) -> SenderCounters {
        self.counters.totals()
    }

    /// The longest time for which a SYN or data waited for an acknowledgement that advances, since
    /// [`start_measuring`](Self::start_measuring); and whether the present wait is longer than 10 s.
    pub fn longest_wait(&self, now: Time) -> (Span, bool) {
        let outstanding =
            self.board.outstanding() > 0 || self.connection.state == ConnectionState::SynSent;
        let stalled = outstanding && self.progress.is_stalled(now);
        (self.progress.longest(outstanding, now), stalled)
    }

    /// Mean and least of the round-trip samples since [`start_measuring`](Self::start_measuring);
    /// `None` without any.
    pub fn round_trips(&self) -> Option<(Span, Span)> {
        self.timer.rtt.round_trips()
    }

    /// The measurement begins: forgets round-trip samples, and the waits that have ended.
    pub fn start_measuring(&mut self) {
        self.progress.forget();
        self.timer.rtt.start_measuring();
    }

    /// Bytes cumulatively acknowledged.
    pub fn acked(&self) -> u64 {
        self.board.una().min(self.stream.size)
    }

    /// The state shown in time series.
    pub fn snapshot(&self) -> SenderSnapshot {
        let window = self.controller.window();
        SenderSnapshot {
            cwnd: window.cwnd,
            ssthresh: window.ssthresh,
            outstanding: self.board.next().min(self.stream.size) - self.acked(),
            srtt: self.timer.rtt.srtt(),
            alpha: self.optional.ecn().alpha(),
            pacing_rate: self.pacer.as_ref().and_then(|pacer| pacer.rate()),
            state: self.controller.state(),
        }
    }

    /// When [`on_wakeup`](Self::on_wakeup) is due: the earlier of
    /// [`next_timer`](Self::next_timer) and [`next_release`](Self::next_release).
    #[inline]
    pub fn next_wakeup(&self) -> Option<Time> {
        if self.has_one_timer() {
            return self.timer.expires();
        }
        self.earliest_wakeup()
    }

    /// A time that [`next_wakeup`](Self::next_wakeup) is not before, found without branches.
    #[inline]
    pub(super) fn quiet_until(&self) -> Time {
        match self.kind == Kind::Basic || self.has_one_timer() {
            true => self.timer.at.map_or(Time::MAX, Expiry::earliest),
            false => Time::ZERO,
        }
    }

    /// Whether the retransmission timer is the only one.
    #[inline]
    fn has_one_timer(&self) -> bool {
        self.pacer.is_none() && self.optional.timers().is_none()
    }

    #[inline(never)]
    fn earliest_wakeup(&self) -> Option<Time> {
        earlier(self.next_timer(), self.next_release())
    }

    /// Whether it has none of what most senders do without: ECN, timestamps, losses detected by time, reductions undone
    /// or spread, pacing, a law that watches the path, a limited buffer.
    #[inline]
    pub fn is_basic(&self) -> bool {
        self.kind == Kind::Basic
    }

    /// It takes no short path from now on, so that tests can compare one that does with it.
    #[doc(hidden)]
    pub fn forbid_short_paths(&mut self) {
        self.kind = Kind::General;
    }

    /// Its whole state as text, so that tests can compare it with that of a sender of another kind. What is not read is
    /// left out: the kind, what the last acknowledgement revealed, before the application closes whether anything has
    /// held its data back since, and from where the search for lost segments began.
    #[doc(hidden)]
    pub fn state(&self) -> String {
        let mut same = self.clone();
        same.kind = Kind::General;
        same.newly_lost = false;
        same.stream.fresh &= self.stream.closed;
        if self.optional.timers().is_some() {
            same.board.next_lost(); // where it ends
        }
        format!("{same:?}")
    }

    /// Whether segments are paced, so that there may be a release.
    #[inline]
    pub fn is_paced(&self) -> bool {
        self.pacer.is_some()
    }

    /// When a segment that pacing holds back may leave.
    #[inline]
    pub fn next_release(&self) -> Option<Time> {
        self.pacer.as_ref().and_then(|pacer| pacer.release_at())
    }

    /// When the next timer expires, unless it is restarted before.
    #[inline]
    pub fn next_timer(&self) -> Option<Time> {
        self.first_timer_before(Time::MAX)
    }

    /// When the next timer expires; `None` also if that is certain to be at `alarm` or later. Timers that are still to be
    /// set for the new data that was sent last are set only if it is not: mostly an acknowledgement sets them anew
    /// before.
    #[inline(always)] // a call costs as much as the body
    pub fn next_timer_before(&mut self, alarm: Option<Time>) -> Option<Time> {
        if self.is_behind() {
            if self.is_quiet_until_alarm(alarm) {
                return None;
            }
            self.catch_up();
        }
        let Some(alarm) = alarm else {
            return self.next_timer();
        };
        let timeout = self.timer.at.map(Expiry::earliest);
        let earliest = match self.optional.timers() {
            None => timeout,
            Some(timers) => {
                let probe = timers.probe.at.map(|at| at.earliest());
                earlier(earlier(timeout, timers.judge_at), probe)
            }
        };
        match earliest.is_some_and(|earliest| earliest < alarm) {
            true => self.first_timer_before(alarm),
            false => None,
        }
    }

    /// When the first of the timers expires that are not certain to expire at `alarm` or later.
    #[inline(never)] // rare
    fn first_timer_before(&self, alarm: Time) -> Option<Time> {
        let wheel = self.timer.wheel();
        let timeout = self.timer.at.and_then(|at| wheel.expiry_before(at, alarm));
        match self.optional.timers() {
            None => timeout,
            Some(timers) => {
                let probe = timers.probe.at;
                let probe = probe.and_then(|at| at.expires_before(wheel, alarm));
                earlier(earlier(timeout, timers.judge_at), probe)
            }
        }
    }

    /// Whether [`next_timer`](Self::next_timer) is certain to be at `alarm` or later, for a sender that [sends only
    /// new data](Self::sends_only_new), which has one timer.
    #[inline]
    pub fn is_quiet_until(&self, alarm: Option<Time>) -> bool {
        match (self.timer.at, alarm) {
            (None, _) => true,
            (Some(at), Some(alarm)) => at.earliest() >= alarm,
            (Some(_), None) => false,
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
            outstanding == 0 || self.timer.at.is_some() || self.resend_first,
            "data is outstanding and no timer runs"
        );
    }
}
