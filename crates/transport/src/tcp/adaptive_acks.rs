//! The acknowledgement policy whose delay adapts to the arriving segments.
//!
//! Source: Linux 6.1, net/ipv4/tcp_input.c (tcp_event_data_recv, tcp_measure_rcv_mss,
//! tcp_incr_quickack, tcp_enter_quickack_mode, __tcp_ack_snd_check), tcp.c
//! (__tcp_cleanup_rbuf), tcp_output.c (tcp_send_delayed_ack, tcp_event_ack_sent,
//! tcp_event_data_sent), tcp_timer.c (tcp_delack_timer_handler).
//!
//! | symbol | meaning | unit |
//! |---|---|---|
//! | ato | how long an acknowledgement is delayed | time |
//! | ATO_MIN | its least, 40 ms | time |
//! | m | time since the segment before | time |
//! | quick | acknowledgements that go at once | |
//! | rcv_mss | what a full segment of the peer is taken to be | bytes |
//!
//! ```text
//! in order:  ato = ato / 2 + ATO_MIN / 2        m <= ATO_MIN / 2
//!            ato = min(ato / 2 + m, RTO)        m < ato
//!            quick = 16                         m > RTO
//! duplicate: quick = 16, ato = ATO_MIN          first mark: 2
//! ran out:   ato = min(2 ato, RTO)
//! delay    = min(ato, max(SRTT, ATO_MIN), 200 ms)
//! at once: more than rcv_mss not acknowledged, quick > 0, out of order, a gap filled;
//!          a segment that lets the receive window grow (`receive_buffer.rs`);
//!          and a segment that is pushed or shorter than rcv_mss, once it is read
//! ```
//!
//! A side that sends data within ato of receiving some is interactive (pingpong): its
//! acknowledgements wait for data to carry them, in spite of quick and of one push. The wait ends
//! when the delay expires or an event starts quick acknowledgements.
//!
//! Left out: the compression of selective acknowledgements, which delays them by up to 1 ms and 5 %
//! of the round trip (tcp_comp_sack_delay_ns).

use redtail_core::{Span, Time};

use super::receive_buffer::ReceiveBuffer;
use super::timer_wheel::{Expiry, TimerWheel};
use super::timestamps::shown_at;
use crate::params::TcpParams;
use crate::segment::{Flags, Segment};

/// The longest delay (TCP_DELACK_MAX).
const MAX_DELAY: Span = Span::from_ms(200);
/// The initial value of rcv_mss (TCP_MSS_DEFAULT), bytes.
const MSS_DEFAULT: u32 = 536;
/// The least segment size that is accepted as full from a peer that does not push (TCP_MIN_MSS),
/// bytes.
const MSS_MIN: u32 = 88;
/// TCP's header without options, bytes.
const HEADER: u32 = 20;
/// The timestamps option, bytes.
const TIMESTAMPS: u32 = 12;
/// The timeout if the handshake gave no round trip (TCP_TIMEOUT_FALLBACK).
const FALLBACK_TIMEOUT: Span = Span::from_s(3);

/// The position of arriving data in the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// In order, with no data above it.
    InOrder,
    /// In order, and there is or was data above it.
    InGap,
    /// The segment is above a gap.
    OutOfOrder,
    /// All bytes of the segment had arrived before.
    Old,
}

/// A data segment that arrived.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrived {
    pub place: Place,
    /// Payload, bytes.
    pub len: u32,
    pub pushed: bool,
    /// Acknowledge it at once, whatever the policy.
    pub now: bool,
    /// Acknowledge this segment and the next at once.
    pub soon: bool,
    /// The next byte that the receiver expects.
    pub next: u64,
    /// Whether the application has read everything.
    pub read: bool,
}

/// The delayed acknowledgements of Linux with their state.
#[derive(Clone, Debug)]
pub struct AdaptiveAcks {
    wheel: TimerWheel,
    /// The least delay of an acknowledgement (ATO_MIN).
    least: Span,
    /// The present delay of acknowledgements; zero before the first data.
    ato: Span,
    /// When data last arrived in order, by the clock of the timers.
    last: Time,
    /// The intended time of the delayed acknowledgement, by the clock of the timers, and the expiry of its timer.
    timer: Option<(Time, Expiry)>,
    quick: u32,
    max_quick: u32,
    interactive: bool,
    /// Whether data has not been acknowledged.
    scheduled: bool,
    /// Pushed segments since the last acknowledgement: 0, 1, or 2 for more.
    pushes: u8,
    rcv_mss: u32,
    /// The size of the latest segment if it was shorter than rcv_mss and may be full, else 0.
    short: u32,
    mss: u32,
    /// Size of TCP's header with the options of every segment, bytes.
    header: u32,
    /// The window announced last.
    window: u32,
    /// The offset up to which data is acknowledged.
    acked: u64,
    srtt: Option<Span>,
    rto: Span,
    min_rto: Span,
    timestamps: bool,
    /// When the SYN-ACK was sent, until it is acknowledged, and whether it was retransmitted.
    syn_ack: Option<(Time, bool)>,
    buffer: ReceiveBuffer,
}

impl AdaptiveAcks {
    pub(super) fn new(params: &TcpParams) -> Self {
        let mss = params.mss.as_u64() as u32;
        let window = params.first_window() as u32;
        Self {
            wheel: TimerWheel::new(params.timer_tick),
            least: params.delayed_ack_timeout,
            ato: Span::ZERO,
            last: Time::ZERO,
            timer: None,
            quick: 0,
            max_quick: params.quick_acks,
            interactive: false,
            scheduled: false,
            pushes: 0,
            rcv_mss: mss.min(window / 2).clamp(1, MSS_DEFAULT),
            short: 0,
            mss,
            header: HEADER + if params.timestamps { TIMESTAMPS } else { 0 },
            window,
            acked: 0,
            srtt: None,
            rto: params.initial_rto,
            min_rto: params.min_rto,
            timestamps: params.timestamps,
            syn_ack: None,
            buffer: ReceiveBuffer::new(params),
        }
    }

    /// The SYN-ACK arrived.
    pub(super) fn on_established(&mut self, now: Time) {
        self.buffer.on_established(now);
    }

    /// The SYN-ACK leaves.
    pub(super) fn on_syn_ack(&mut self, now: Time) {
        let again = self.syn_ack.is_some();
        self.syn_ack = Some((now, again));
    }

    /// The first segment after the handshake gives the only round trip of a side that sends
    /// no data (tcp_synack_rtt_meas).
    #[cold]
    fn on_handshake(&mut self, segment: &Segment, now: Time) {
        self.buffer.on_established(now);
        let sent = match self.syn_ack.take() {
            Some((sent, false)) => Some(sent),
            Some((_, true)) if self.timestamps => Some(shown_at(segment.ts_ecr, now)),
            _ => None,
        };
        self.srtt = sent.map(|sent| now - sent);
        self.rto = self
            .srtt
            .map_or(FALLBACK_TIMEOUT, |srtt| srtt + (srtt * 2).max(self.min_rto));
    }

    /// A segment without SYN arrived.
    #[inline]
    pub(super) fn on_segment(&mut self, segment: &Segment, now: Time) {
        if self.syn_ack.is_some() {
            self.on_handshake(segment, now);
        } else {
            self.buffer.on_segment(segment, self.rcv_mss, now);
        }
    }

    /// The smoothed round trip and the timeout of this side's sender.
    #[inline]
    pub(super) fn on_round_trip(&mut self, srtt: Option<Span>, rto: Span) {
        (self.srtt, self.rto) = (srtt.or(self.srtt), rto);
    }

    /// Data arrived at `now`. Returns whether to acknowledge it at once.
    #[inline(always)] // into the two that call it, one of which only has data in order
    pub(super) fn on_data(&mut self, now: Time, arrived: Arrived) -> bool {
        let tick = self.wheel.floor(now);
        self.scheduled = true;
        match arrived.place {
            Place::InOrder | Place::InGap => self.on_progress(tick, arrived),
            Place::Old => self.enter_quick_mode(self.max_quick),
            Place::OutOfOrder => {}
        }
        if arrived.place != Place::Old && self.buffer.grows(arrived.len) {
            self.quick |= 1;
        }
        if arrived.soon {
            self.enter_quick_mode(2);
        }
        let at_once = arrived.now
            || arrived.place != Place::InOrder
            || arrived.next - self.acked > u64::from(self.rcv_mss)
            || self.quick > 0 && !self.interactive;
        // The application reads the data; a push is acknowledged after that.
        if arrived.read {
            self.buffer.on_read(arrived.next, now);
        }
        let read = arrived.read && self.pushes > u8::from(self.interactive);
        at_once || read || self.delay(now, tick)
    }

    /// Data arrived in order at `now`, by the clock of the timers (tcp_event_data_recv).
    #[inline]
    fn on_progress(&mut self, now: Time, arrived: Arrived) {
        self.measure(arrived);
        if self.ato == Span::ZERO {
            self.raise_quick(self.max_quick);
            self.ato = self.least;
        } else {
            let since = now - self.last;
            if since <= self.least / 2 {
                self.ato = self.ato / 2 + self.least / 2;
            } else if since < self.ato {
                self.ato = (self.ato / 2 + since).min(self.rto);
            } else if since > self.rto {
                self.raise_quick(self.max_quick);
            }
        }
        self.last = now;
    }

    /// Estimates the peer's segment size. A shorter segment counts as pushed.
    #[inline]
    fn measure(&mut self, arrived: Arrived) {
        let (len, pushed) = (arrived.len, arrived.pushed);
        let before = std::mem::take(&mut self.short);
        if len >= self.rcv_mss {
            self.rcv_mss = len.min(self.mss);
            // Without a branch: of two segments mostly one is pushed.
            self.pushes = self.pushes.max(u8::from(pushed));
            return;
        }
        let whole = len + self.header;
        if whole >= MSS_DEFAULT + HEADER || whole >= MSS_MIN + HEADER && !pushed {
            self.short = len;
            if len == before {
                self.rcv_mss = len;
                return;
            }
        }
        self.pushes = (self.pushes + 1).min(2);
    }

    /// Sends the next `count` acknowledgements at once, or fewer if the window is small
    /// (tcp_incr_quickack).
    fn raise_quick(&mut self, count: u32) {
        let halves = self.window / (2 * self.rcv_mss);
        let quick = if halves == 0 { 2 } else { halves }.min(count);
        self.quick = self.quick.max(quick);
    }

    /// Sends the next acknowledgements at once, and ends the interactive mode
    /// (tcp_enter_quickack_mode).
    fn enter_quick_mode(&mut self, count: u32) {
        self.raise_quick(count);
        self.interactive = false;
        self.ato = self.least;
    }

    /// Delays an acknowledgement, unless the pending one is nearly due; returns whether it is. `tick` is `now` by the
    /// clock of the timers.
    #[inline]
    fn delay(&mut self, now: Time, tick: Time) -> bool {
        let mut ato = self.ato;
        if ato > self.least
            && let Some(srtt) = self.srtt
        {
            ato = ato.min(srtt.max(self.least));
        }
        let ato = ato.min(MAX_DELAY);
        let meant = tick + ato;
        match self.timer {
            Some((before, _)) if before <= tick + ato / 4 => return true,
            Some((before, _)) if before <= meant => {}
            _ => self.timer = Some((meant, Expiry::new(now, ato))),
        }
        false
    }

    /// The application, which reads slowly, has read `read` bytes. Returns what the receive buffer has room for, if it
    /// is tuned.
    pub(super) fn on_read(&mut self, read: u64, now: Time) -> Option<u64> {
        self.buffer.on_read(read, now);
        self.buffer.room()
    }

    /// An acknowledgement of everything up to `next` is sent. Returns the window that it announces.
    pub(super) fn on_ack_sent(&mut self, next: u64) -> u32 {
        if self.quick > 0 && self.scheduled {
            self.quick -= 1;
            if self.quick == 0 {
                self.ato = self.least;
            }
        }
        self.acked = next;
        self.scheduled = false;
        self.pushes = 0;
        self.timer = None;
        if let Some(window) = self.buffer.announce(next) {
            self.window = window;
        }
        self.window
    }

    /// This side sends data.
    pub(super) fn on_data_sent(&mut self, now: Time) {
        if self.wheel.floor(now) - self.last < self.ato {
            self.interactive = true;
        }
    }

    /// Cancels the delayed acknowledgement.
    pub(super) fn cancel(&mut self) {
        self.timer = None;
    }

    /// When the delayed acknowledgement is due.
    #[inline]
    pub(super) fn deadline(&self) -> Option<Time> {
        self.timer.map(|(_, expiry)| self.wheel.expiry(expiry))
    }

    /// When the delayed acknowledgement is due; `None` also if that is certain to be at `alarm` or later.
    #[inline]
    pub(super) fn deadline_before(&self, alarm: Time) -> Option<Time> {
        let (_, expiry) = self.timer?;
        self.wheel.expiry_before(expiry, alarm)
    }

    /// Whether an acknowledgement is being delayed.
    #[inline]
    pub(super) fn is_waiting(&self) -> bool {
        self.timer.is_some()
    }

    /// Whether the delayed acknowledgement is due. Its timer is then cleared.
    pub(super) fn take_due(&mut self, now: Time) -> bool {
        let wheel = self.wheel;
        if self
            .timer
            .take_if(|(_, expiry)| wheel.is_due(*expiry, now))
            .is_none()
        {
            return false;
        }
        if self.interactive {
            self.interactive = false;
            self.ato = self.least;
        } else {
            self.ato = (self.ato * 2).min(self.rto);
        }
        true
    }

    /// Whether a segment is pushed.
    pub(super) fn is_pushed(flags: Flags) -> bool {
        flags.contains(Flags::PSH) || flags.contains(Flags::FIN)
    }
}
