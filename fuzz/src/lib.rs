//! What a fuzzer drives: a TCP sender and its receiver, with every choice of the
//! network between them taken from bytes. It must not know the engine.
//!
//! The first bytes choose the parameters, the others one event each: a segment is
//! delivered, lost, duplicated, overtaken or marked, one from long ago or a
//! senseless one arrives, or another window; time passes, a timer runs out, the
//! application writes or closes. After every event hold the invariants of
//! `crates/transport/tests/it/channel.rs`. When the bytes are used up the network
//! delivers everything, and the transfer has to complete. The inputs that a fuzzer found are in
//! `corpus`, and `make test-rust` replays them.
//!
//! Each input drives both endpoints twice, with short paths and without: they must not differ.

#[path = "../../crates/transport/tests/it/common/twins.rs"]
mod twins;

use std::collections::BTreeMap;

use redtail_core::{Bytes, Ecn, Rate, Span, Time};
use redtail_transport::cc::slow_start::SlowStartKind;
use redtail_transport::cc::{Growth, Halving, IdleDecay};
use redtail_transport::segment::EcnBytes;
use redtail_transport::tcp::ecn::{AlphaStart, EcnCodepoint, EcnFeedback, EcnReduction};
use redtail_transport::tcp::recovery::RecoveryKind;
use redtail_transport::tcp::rto::{RtoFloor, RttDeviation, RttSampling, SynLoss, TimerRestart};
use redtail_transport::{
    Flags, Receiver, SackBlock, SackBlocks, Segment, Sender, SenderCounters, TcpParams,
    VariantArray,
};

use self::twins::{TwinReceivers, TwinSenders};

const REDUCTIONS: [EcnReduction; 4] = [
    EcnReduction::Loss,
    EcnReduction::Abe,
    EcnReduction::Dctcp,
    EcnReduction::Prague,
];

const MSS: [u64; 4] = [1000, 1460, 1, 65_535];

/// Segments a second that the application reads; 0 for at once.
const READ_RATES: [u64; 4] = [0, 100, 10, 1];

/// Milliseconds.
const DELAYED_ACK_TIMEOUTS: [u64; 4] = [200, 40, 1, 500];

/// First, least and most retransmission timeout, in milliseconds.
const TIMEOUTS: [(u64, u64, u64); 4] = [
    (1000, 200, 60_000),
    (1000, 1000, 60_000),
    (3000, 1, 3000),
    (1, 1, 60_000),
];

/// Segments that may be in the network at once: more are lost.
const MOST_FLYING: usize = 300;
/// Segments remembered for coming again.
const MOST_REMEMBERED: usize = 32;
/// Times that a receiver sends its FIN before it gives up.
const MOST_FINS: u32 = 9;

/// Bytes as a source of choices; zero when they are used up.
struct Choices<'a>(std::slice::Iter<'a, u8>);

impl Choices<'_> {
    fn byte(&mut self) -> u8 {
        self.0.next().copied().unwrap_or(0)
    }

    fn of<T: Copy>(&mut self, values: &[T]) -> T {
        values[usize::from(self.byte()) % values.len()]
    }

    fn number(&mut self) -> u64 {
        u64::from(self.byte()) << 8 | u64::from(self.byte())
    }

    /// Eight switches.
    fn switches(&mut self) -> impl Fn(u8) -> bool + use<> {
        let byte = self.byte();
        move |bit| byte >> bit & 1 == 1
    }

    /// Every key is named, so that a new one has to be chosen here too.
    fn params(&mut self) -> TcpParams {
        let (a, b, c) = (self.switches(), self.switches(), self.switches());
        let mss = self.of(&MSS);
        let (initial_rto, min_rto, max_rto) = self.of(&TIMEOUTS);
        let mut params = TcpParams {
            class: None,
            params: BTreeMap::new(),
            source: None,
            mss: Bytes::new(mss),
            header: Bytes::new(40),
            recovery: self.of(RecoveryKind::ALL),
            slow_start: self.of(SlowStartKind::VARIANTS).into(),
            growth: self.of(Growth::VARIANTS).into(),
            ecn_feedback: self.of(EcnFeedback::VARIANTS),
            ecn_reduction: self.of(&REDUCTIONS),
            initial_window: 1 + u32::from(self.byte() % 32),
            initial_ssthresh: None, // a model of the path refuses one; tests/it/growth.rs of `transport`
            dup_thresh: 1 + u32::from(self.byte() % 6),
            receive_window: Bytes::new(mss * (1 + u64::from(self.byte() % 64))),
            receive_autotuning: b(2),
            send_buffer: b(6).then(|| Bytes::new(8 * mss)),
            read_rate: match self.of(&READ_RATES) {
                0 => None,
                segments => Some(Rate::from_bps(8 * mss * segments)),
            },
            delayed_ack_timeout: Span::from_ms(self.of(&DELAYED_ACK_TIMEOUTS)),
            quick_acks: u32::from(self.byte()),
            initial_rto: Span::from_ms(initial_rto),
            min_rto: Span::from_ms(min_rto),
            max_rto: Span::from_ms(max_rto),
            frto: a(0),
            dsack: a(1),
            prr: a(2),
            ecn: a(3),
            timestamps: a(4),
            limited_transmit: a(5),
            delayed_ack: a(6),
            adaptive_acks: false,
            handshake: a(7),
            syn_loss: SynLoss::First,
            idle_decay: IdleDecay::Restart,
            fin_beyond_window: false,
            bare_handshake_ack: false,
            ecn_retransmissions: b(0),
            abe_beta: None,
            dctcp_g: 1.0 / 16.0,
            rto_alpha: 0.125,
            rto_beta: 0.25,
            rto_k: 4.0,
            rack_window_divisor: 4,
            rack_persist: 16,
            tlp_round_trips: 2,
            tlp_max_ack_delay: Span::from_ms(200),
            byte_counting: b(1),
            halving: if b(2) {
                Halving::Window
            } else {
                Halving::FlightSize
            },
            rto_floor: if b(3) {
                RtoFloor::Deviation
            } else {
                RtoFloor::Timeout
            },
            rtt_sampling: if b(4) {
                RttSampling::OnePerWindow
            } else if c(4) {
                RttSampling::EveryDelivery
            } else {
                RttSampling::EveryAck
            },
            rtt_deviation: if c(5) {
                RttDeviation::Peak
            } else {
                RttDeviation::Mean
            },
            timer_restart: if c(6) {
                TimerRestart::Head
            } else {
                TimerRestart::Acks
            },
            timer_tick: Span::from_ms(if c(7) { 4 } else { 0 }),
            clock_granularity: Span::from_ms(if b(5) { 10 } else { 0 }),
            pacing: b(6),
            // Of keys that came later each goes with another.
            pacing_ca_ratio: if b(7) { 1.2 } else { 1.0 },
            unpaced_segments: if b(5) { 10 } else { 0 },
            lt_bw: b(3),
            bbr_ecn_max_rtt: Span::from_ms(if b(4) { 5 } else { 0 }),
            kernel_control: None,
            alpha_start: match (a(5), a(6)) {
                (true, _) => AlphaStart::Decaying,
                (_, true) => AlphaStart::Held,
                _ => AlphaStart::Zero,
            },
            rtt_transition: if a(7) { 500 } else { 2 },
            idle_restart: b(7),
            ecn_syn_ack: c(0),
            ecn_fallback: c(1),
            ecn_codepoint: if c(2) {
                EcnCodepoint::Ect1
            } else {
                EcnCodepoint::Ect0
            },
        };
        // The upper bits of a byte whose lower ones suffice.
        let kernel = params.quick_acks >> 3;
        params.quick_acks %= 8;
        let on = |bit: u32| kernel >> bit & 1 == 1;
        (params.adaptive_acks, params.fin_beyond_window) = (on(0), on(1));
        if on(2) {
            params.idle_decay = IdleDecay::Halving;
        }
        if on(3) {
            params.syn_loss = SynLoss::Second;
            params.bare_handshake_ack = true;
        }
        if on(4) {
            params.halving = Halving::LinuxWindow;
        }
        // Few of all combinations with a model can be run: most of the bytes that ask for
        // one get its nearest. The others are refused.
        if params.growth.is_model() && !c(3) {
            params.slow_start = SlowStartKind::Startup.into();
            (params.pacing, params.prr) = (true, false);
            if params.growth.kind() == Growth::Bbr3Google {
                params.ecn_reduction = EcnReduction::Bbr;
                if params.ecn_feedback == EcnFeedback::Echo {
                    params.ecn_feedback = EcnFeedback::Dctcp;
                }
            } else {
                params.ecn = false;
            }
            if !params.recovery.detects_by_time() && params.recovery != RecoveryKind::Sack {
                params.recovery = RecoveryKind::RackTlp;
            }
        }
        params
    }
}

#[derive(Clone, Copy, Debug)]
enum Bound {
    ToReceiver,
    ToSender,
}

/// What may make a sender go beyond its window by a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cause {
    Other,
    Timer,
}

/// The two endpoints with what is between them.
struct Pair {
    params: TcpParams,
    /// Bytes that the application writes in the end, and has written.
    size: u64,
    written: u64,
    closed: bool,
    sender: TwinSenders,
    receiver: TwinReceivers,
    now: Time,
    flying: Vec<(Bound, Segment)>,
    /// The latest that were sent, whatever became of them.
    remembered: Vec<(Bound, Segment)>,
    sent: usize,
    /// End of the data sent so far.
    highest: u64,
    /// The sender's FIN was sent.
    fin: bool,
    /// Times that the receiver's was.
    fins: u32,
    /// There were window probes; when the latest was sent, nothing having arrived since.
    probed: bool,
    probe: Option<Time>,
    /// An arriving segment told of a window that the receiver did not announce.
    forged: bool,
    /// The right edge of the window, as far as the sender was ever told.
    edge: u64,
    /// Bytes in flight when the latest reduction began (RecoverFS of RFC 9937).
    peak: u64,
    /// What duplicates may have inflated a window by, or hidden of the flight; bytes.
    hidden: u64,
    /// Wakeups of the sender since anything was sent or arrived.
    wakeups: u32,
}

impl Pair {
    fn new(params: TcpParams, size: u64, at_once: bool) -> Self {
        let window = params.first_window();
        let sender = if at_once {
            Sender::new(&params, Some(size))
        } else {
            Sender::without_data(&params)
        };
        let mut pair = Self {
            sender: TwinSenders::new(sender),
            receiver: TwinReceivers::new(Receiver::new(&params)),
            size,
            written: if at_once { size } else { 0 },
            closed: at_once,
            now: Time::ZERO,
            flying: Vec::new(),
            remembered: Vec::new(),
            sent: 0,
            highest: 0,
            fin: false,
            fins: 0,
            probed: false,
            probe: None,
            forged: false,
            edge: if params.handshake { 0 } else { window },
            peak: 0,
            hidden: 0,
            wakeups: 0,
            params,
        };
        pair.sender.open(pair.params.handshake);
        pair.poll(Cause::Other);
        pair
    }

    fn mss(&self) -> u64 {
        self.params.mss.as_u64()
    }

    fn poll(&mut self, cause: Cause) {
        // A probe may follow a retransmission (RFC 8985, section 7.3).
        let judges = self.params.recovery.detects_by_time();
        let mut forced = match cause {
            Cause::Timer if judges => 2,
            _ => 1,
        };
        loop {
            let before = self.sender.in_flight();
            let Some(segment) = self.sender.poll_transmit(self.now) else {
                break;
            };
            self.wakeups = 0;
            self.check_sent(&segment, cause, before, &mut forced);
            self.send(Bound::ToReceiver, segment);
        }
        while let Some(segment) = self.receiver.poll_transmit(self.now) {
            assert!(
                segment.ecn == Ecn::NotEct
                    || segment.flags.contains(Flags::SYN) && self.params.ecn_syn_ack,
                "an ECN-capable acknowledgement"
            );
            self.fins += u32::from(segment.flags.contains(Flags::FIN));
            assert!(self.fins <= MOST_FINS, "a FIN without end");
            self.send(Bound::ToSender, segment);
        }
        self.check();
    }

    fn send(&mut self, bound: Bound, segment: Segment) {
        self.remember(bound, segment);
        if self.flying.len() < MOST_FLYING {
            self.flying.push((bound, segment));
        }
    }

    fn remember(&mut self, bound: Bound, segment: Segment) {
        let at = self.sent % MOST_REMEMBERED;
        self.sent += 1;
        match self.remembered.get_mut(at) {
            Some(slot) => *slot = (bound, segment),
            None => self.remembered.push((bound, segment)),
        }
    }

    fn check_sent(&mut self, segment: &Segment, cause: Cause, before: u64, forced: &mut u32) {
        if segment.flags.contains(Flags::SYN) {
            assert!(self.params.handshake && self.highest == 0);
            assert_eq!(segment.ecn, Ecn::NotEct, "a SYN that is ECN-capable");
            return;
        }
        let fin = segment.flags.contains(Flags::FIN);
        if segment.len == 0 {
            assert_eq!(segment.ecn, Ecn::NotEct, "control that is ECN-capable");
            if fin {
                assert!(
                    self.closed && segment.seq == self.size,
                    "a FIN out of place"
                );
                self.fin = true;
            } else if segment.ack == 0 {
                // Of the SYN-ACK.
                assert!(self.params.handshake && self.highest == 0);
            } else {
                assert!(self.fin && segment.ack == 1 && segment.seq == self.size + 1);
            }
            return;
        }
        if segment.len == 1 && self.sender.snapshot().outstanding == 0 {
            // A window probe, which is not on record yet.
            let least = self.params.min_rto.min(self.params.initial_rto);
            assert!(cause == Cause::Timer && segment.seq < self.written);
            assert!(
                self.probe.is_none_or(|probe| self.now >= probe + least),
                "a storm of probes"
            );
            self.probe = Some(self.now);
            self.probed = true;
            return;
        }
        assert!(!self.sender.is_complete(), "data after the end");
        let end = segment.seq + u64::from(segment.len);
        assert!(u64::from(segment.len) <= self.mss() && end <= self.written);
        assert!(!fin || self.closed && end == self.size);
        self.fin |= fin;
        // What probes got across counts as sent.
        if self.probed {
            self.highest = self.highest.max(segment.seq);
        }
        assert!(segment.seq <= self.highest, "a gap in what is sent");
        assert!(end > self.sender.acked(), "sent what was acknowledged");
        let again = segment.seq < self.highest;
        let capable = self.params.ecn && (!again || self.params.ecn_retransmissions);
        assert!(segment.ecn == Ecn::NotEct || capable, "ECN out of place");
        assert!(again || end <= self.edge, "beyond the peer's window");
        self.highest = self.highest.max(end);
        self.check_flight(segment, again, cause, before, forced);
    }

    /// What is in flight, as the recovery counts it, stays within the window, with these
    /// exceptions: one segment when nothing was in flight; the first retransmission of
    /// an episode, after a timeout or a partial acknowledgement, and a tail loss probe,
    /// which leave whatever the window says; a FIN, which is a byte to the scoreboard;
    /// and with PRR, ssthresh, or what was outstanding when the reduction began.
    ///
    /// What limited transmit and inflation hide of the flight, without selective
    /// acknowledgements, is at most a segment for each duplicate. F-RTO sends two
    /// segments with everything before them outstanding.
    fn check_flight(
        &mut self,
        segment: &Segment,
        again: bool,
        cause: Cause,
        before: u64,
        forced: &mut u32,
    ) {
        let after = self.sender.in_flight();
        let snapshot = self.sender.snapshot();
        let cwnd = snapshot.cwnd as u64 + 1;
        let fin = u64::from(segment.flags.contains(Flags::FIN));
        // Infinite before the first reduction.
        let ssthresh = snapshot.ssthresh as u64;
        let reduced = self
            .peak
            .max(if ssthresh < u64::MAX { ssthresh + 1 } else { 0 });
        let mut most = cwnd.max(if self.params.prr { reduced } else { 0 }) + fin;
        let beyond = self.params.fin_beyond_window && fin > 0 && !again;
        if beyond {
            most = most.max(before + self.mss() + fin);
        }
        if before > 0 && after > most {
            assert!(
                *forced > 0 && (again || cause == Cause::Timer),
                "{after} in flight, {before} before, of at most {most}"
            );
            *forced -= 1;
        }
        let outstanding = snapshot.outstanding;
        let counts = self.params.recovery.uses_sack() || self.params.frto;
        if !again && before > 0 && !counts && !beyond {
            let most = cwnd + self.hidden + self.mss();
            assert!(outstanding <= most, "{outstanding} of at most {most}");
        }
    }

    /// What holds after every event.
    fn check(&self) {
        self.sender.assert_consistent();
        let snapshot = self.sender.snapshot();
        assert!(snapshot.cwnd.is_finite() && snapshot.ssthresh > 0.0);
        assert!(
            snapshot
                .alpha
                .is_none_or(|alpha| (0.0..=1.0).contains(&alpha))
        );
        assert!(snapshot.pacing_rate.is_none_or(|rate| rate > 0.0));
        // A tuned window is rounded up to the unit of its scale.
        let most = self.params.largest_flight().as_u64();
        assert!(snapshot.outstanding <= most.next_multiple_of(1 << self.params.window_scale()));
        let acked = self.sender.acked();
        if self.probed {
            assert!(acked + snapshot.outstanding >= self.highest);
            assert!(self.receiver.received() <= self.highest.max(acked) + 1);
        } else {
            assert_eq!(snapshot.outstanding, self.highest - acked);
            assert!(self.receiver.received() <= self.highest);
        }
        assert!(acked <= self.receiver.delivered());
        assert!(self.receiver.delivered() <= self.receiver.received());
        assert!(self.receiver.received() <= self.written);
        let counters = self.sender.counters();
        assert!(counters.spurious_timeouts <= counters.timeouts);
        assert!(counters.spurious_fast_retransmits <= counters.recoveries);
        assert!(counters.retransmissions <= counters.data_segments);
        let timers = [self.sender.next_wakeup(), self.receiver.next_wakeup()];
        let past = timers.into_iter().flatten().any(|timer| timer < self.now);
        assert!(!past, "a timer in the past");
    }

    fn arrive(&mut self, bound: Bound, segment: &Segment) {
        self.wakeups = 0;
        match bound {
            Bound::ToReceiver => self.receiver.on_segment(segment, self.now),
            Bound::ToSender => {
                self.probe = None;
                self.reckon(segment);
                let (before, counters) = self.state();
                self.sender.on_segment(segment, self.now);
                self.note_peak(before, counters);
            }
        }
        self.poll(Cause::Other);
    }

    /// Bytes outstanding, or in flight if a probe made that more; and what was done so far.
    fn state(&self) -> (u64, SenderCounters) {
        let outstanding = self.sender.snapshot().outstanding;
        (
            outstanding.max(self.sender.in_flight()),
            self.sender.counters(),
        )
    }

    /// A reduction that began now began with `before` bytes in flight.
    fn note_peak(&mut self, before: u64, counters: SenderCounters) {
        let since = self.sender.counters() - counters;
        if since.recoveries + since.ecn_reductions > 0 {
            self.peak = before;
        }
    }

    /// What an acknowledgement that is about to arrive offers, and hides of the flight.
    fn reckon(&mut self, segment: &Segment) {
        let (una, mss) = (self.sender.acked(), self.mss());
        let again = segment.flags.contains(Flags::SYN) && self.sender.is_established();
        if again || segment.ack > self.next_byte() + 2 {
            return; // dropped; the next byte may be a probe's, and a FIN's
        }
        self.edge = self.edge.max(segment.ack + u64::from(segment.window));
        if segment.ack == una {
            self.hidden += mss;
        } else if segment.ack > una {
            self.hidden = (self.hidden + mss).saturating_sub(segment.ack - una);
        }
    }

    /// The sender's next byte.
    fn next_byte(&self) -> u64 {
        self.sender.acked() + self.sender.snapshot().outstanding
    }

    fn next_timer(&self) -> Option<Time> {
        let timers = [self.sender.next_wakeup(), self.receiver.next_wakeup()];
        timers.into_iter().flatten().min()
    }

    /// Time passes up to the next timer, which runs out.
    fn run_out(&mut self) {
        let Some(next) = self.next_timer() else {
            return;
        };
        assert!(next >= self.now, "a timer in the past");
        self.now = next;
        if self.receiver.next_wakeup() == Some(next) {
            self.receiver.on_wakeup(next);
            self.poll(Cause::Other);
            let again = self.receiver.next_wakeup();
            assert!(again.is_none_or(|again| again > next), "a timer stayed");
            return;
        }
        let released = self.sender.next_release() == Some(next);
        assert!(!released || self.params.pacing);
        self.wakeups += 1;
        assert!(self.wakeups < 5, "a storm of timers");
        let (before, counters) = self.state();
        self.sender.on_wakeup(next);
        self.note_peak(before, counters);
        let timeouts = (self.sender.counters() - counters).timeouts;
        self.poll(Cause::Timer);
        let again = self.sender.next_wakeup();
        assert!(again.is_none_or(|again| again > next), "a timer stayed");
        if timeouts == 0 {
            let judges = self.params.recovery.detects_by_time();
            let blocked = self.params.read_rate.is_some() || self.forged;
            assert!(judges || released || blocked, "nothing was due");
            return;
        }
        assert_eq!(timeouts, 1);
        let least = self.params.min_rto.min(self.params.initial_rto);
        let again = self.sender.next_timer().expect("data is outstanding");
        assert!(again >= next + least, "a storm of timeouts");
    }

    /// Time passes, but no timer runs out.
    fn pass(&mut self, span: Span) {
        let then = self.now + span;
        self.now = self.next_timer().map_or(then, |timer| timer.min(then));
    }

    /// The place of the choice among what is flying.
    fn choose(&self, choice: u8) -> Option<usize> {
        let count = self.flying.len();
        (count > 0).then(|| usize::from(choice) % count)
    }

    fn event(&mut self, choices: &mut Choices<'_>) {
        let kind = choices.byte();
        let more = kind / 20;
        match kind % 20 {
            // The oldest arrive, as a rule.
            0..=3 => {
                for _ in 0..=more {
                    if !self.flying.is_empty() {
                        let (bound, segment) = self.flying.remove(0);
                        self.arrive(bound, &segment);
                    }
                }
            }
            4 => {
                if let Some(at) = self.choose(choices.byte()) {
                    let (bound, segment) = self.flying.remove(at);
                    self.arrive(bound, &segment);
                }
            }
            5 => {
                if let Some(at) = self.choose(more) {
                    self.flying.remove(at);
                }
            }
            6 => {
                // A burst of losses.
                let count = usize::from(choices.byte()).min(self.flying.len());
                self.flying.drain(..count);
            }
            7 => {
                if let Some(at) = self.choose(more) {
                    let (bound, segment) = self.flying[at];
                    self.flying.push((bound, segment));
                }
            }
            8 => {
                if let Some(at) = self.choose(more) {
                    let segment = &mut self.flying[at].1;
                    if segment.ecn != Ecn::NotEct {
                        segment.ecn = Ecn::Ce;
                    }
                }
            }
            9 => {
                // A queue that marks all.
                for (_, segment) in &mut self.flying {
                    if segment.ecn != Ecn::NotEct {
                        segment.ecn = Ecn::Ce;
                    }
                }
            }
            10 => self.pass(Span::from_ms(u64::from(more))),
            11 => self.pass(Span::from_ms(20 * u64::from(choices.byte()))),
            12 | 13 => self.run_out(),
            14 => {
                let at = usize::from(choices.byte()) % self.remembered.len().max(1);
                if let Some(&(bound, segment)) = self.remembered.get(at) {
                    self.arrive(bound, &segment);
                }
            }
            15 => self.part(choices),
            16 => self.senseless(choices),
            17 => self.window(choices),
            _ => self.write(choices.number()),
        }
    }

    /// The application writes, and closes with its last.
    fn write(&mut self, amount: u64) {
        if self.closed {
            return;
        }
        // In units that reach the size in some ten steps.
        let bytes = (amount * self.size / 500_000 + 1).min(self.size - self.written);
        self.sender.write(bytes);
        self.written += bytes;
        self.poll(Cause::Other);
        if self.written == self.size && amount.is_multiple_of(2) {
            self.close();
        }
    }

    fn close(&mut self) {
        self.sender.close();
        self.closed = true;
        self.poll(Cause::Other);
    }

    /// Data that was sent arrives in a segment that was not.
    fn part(&mut self, choices: &mut Choices<'_>) {
        if self.highest == 0 {
            return;
        }
        let from = self.highest - 1 - choices.number() % self.highest;
        let most = (self.highest - from).min(self.mss());
        let len = 1 + choices.number() % most;
        let on = choices.switches();
        let fin = self.fin && from + len == self.size;
        let segment = Segment {
            seq: from,
            len: len as u32,
            ts_val: if on(0) {
                0
            } else {
                choices.number() as u32 * 997
            },
            flags: Flags::ACK
                .with_if(fin && on(1), Flags::FIN)
                .with_if(on(2), Flags::CWR)
                .with_if(on(3), Flags::ECE)
                .with_if(on(4), Flags::AE),
            ecn: if on(5) { Ecn::Ce } else { Ecn::NotEct },
            ..Segment::default()
        };
        self.arrive(Bound::ToReceiver, &segment);
    }

    /// An acknowledgement that no receiver sends; its blocks lie outside of what is
    /// outstanding, or are none, or report duplicates; counters of marks and timestamps
    /// are any.
    fn senseless(&mut self, choices: &mut Choices<'_>) {
        let (una, next) = (self.sender.acked(), self.next_byte());
        let far = choices.number();
        let (on, bits) = (choices.switches(), choices.switches());
        let ack = match (on(0), on(1)) {
            // Of data never sent; the next byte may be a probe's, and a FIN's.
            (true, _) => next + 3 + far,
            (_, true) => una.saturating_sub(far),
            _ => una,
        };
        let mut sack = SackBlocks::default();
        for bit in 2..5 {
            let start = choices.number();
            let (start, end) = match (on(bit), on(5)) {
                (true, _) => (next + start + 2, next + start + 3 + far),
                (_, true) => (una.saturating_sub(start), una.saturating_sub(start / 2)),
                _ => (una + start, una + start),
            };
            sack.push(ack, SackBlock { start, end });
        }
        let counts = EcnBytes {
            ect: (far as u32 * 251).into(),
            ce: (choices.number() as u32 * 257).into(),
        };
        let segment = Segment {
            ack,
            sack,
            window: if ack == una {
                self.edge.saturating_sub(una) as u32
            } else {
                0
            },
            flags: Flags::ACK
                .with_if(bits(0), Flags::ECE)
                .with_if(bits(1), Flags::CWR)
                .with_if(bits(2), Flags::AE)
                .with_if(bits(3), Flags::FIN)
                .with_if(bits(4), Flags::SYN),
            ecn: if bits(5) { Ecn::Ce } else { Ecn::NotEct },
            ecn_bytes: if bits(6) { counts } else { EcnBytes::default() },
            ts_val: if bits(7) { far as u32 * 65_521 } else { 0 },
            ts_ecr: if on(6) { 0 } else { far as u32 },
            ..Segment::default()
        };
        if segment.flags.contains(Flags::SYN) && !self.sender.is_established() {
            return; // it would be the SYN-ACK
        }
        self.arrive(Bound::ToSender, &segment);
    }

    /// A window that the receiver did not announce, down to none.
    fn window(&mut self, choices: &mut Choices<'_>) {
        if self.params.handshake && !self.sender.is_established() {
            return;
        }
        let most = self.params.announced(self.params.receive_window.as_u64());
        let window = match choices.byte() {
            0..=63 => 0,
            64..=127 => most,
            share => most * u64::from(share) / 255,
        };
        let segment = Segment {
            ack: self.sender.acked(),
            window: window as u32,
            flags: Flags::ACK,
            ..Segment::default()
        };
        self.forged = true;
        self.arrive(Bound::ToSender, &segment);
    }

    /// From here on nothing is lost: the transfer completes.
    fn finish(&mut self) {
        if !self.closed {
            self.sender.write(self.size - self.written);
            self.written = self.size;
            self.close();
        }
        let segments = self.size.div_ceil(self.mss());
        // Each timeout brings on a segment at least.
        let mut steps = 1000 * (segments + 10);
        loop {
            assert!(steps > 0, "the transfer does not end");
            steps -= 1;
            let arrival = self.now + Span::from_ms(1);
            let timer = self.next_timer();
            if self.flying.is_empty() || timer.is_some_and(|timer| timer < arrival) {
                if timer.is_none() {
                    break;
                }
                self.run_out();
            } else {
                self.now = arrival;
                let (bound, segment) = self.flying.remove(0);
                self.arrive(bound, &segment);
            }
        }
        assert!(self.sender.is_complete(), "the transfer stands still");
        let given_up = self.fins == MOST_FINS;
        assert!(self.sender.is_closed() || given_up, "it does not close");
        assert_eq!(self.receiver.delivered(), self.size);
        assert_eq!(self.receiver.received(), self.size);
        assert_eq!(self.sender.acked(), self.size);
    }
}

/// Runs a transfer as `data` decides; returns what its sender did, or `None` if the
/// parameters were refused.
///
/// # Panics
/// When an invariant is broken: what a fuzzer looks for.
pub fn fuzz_one(data: &[u8]) -> Option<SenderCounters> {
    let mut choices = Choices(data.iter());
    let params = choices.params();
    if params.check().is_err() {
        return None;
    }
    // Up to about 160 segments.
    let amount = choices.number();
    let size = 1 + amount * params.mss.as_u64() / 400;
    let mut pair = Pair::new(params, size, amount % 4 != 3);
    while !choices.0.as_slice().is_empty() {
        pair.event(&mut choices);
    }
    pair.finish();
    Some(pair.sender.counters())
}
