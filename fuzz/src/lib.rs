//! What a fuzzer drives: a TCP sender and its receiver, with every choice of the
//! network between them taken from bytes.
//!
//! The first bytes choose the parameters, the others one event each: a segment is
//! delivered, lost, duplicated, overtaken or marked, one from long ago or a
//! senseless one arrives, time passes, a timer runs out. After every event hold the
//! invariants of `crates/transport/tests/channel.rs`. When the bytes are used up
//! the network delivers everything, and the transfer has to complete.

use redtail_core::{Bytes, Ecn, Span, Time};
use redtail_transport::cc::slow_start::SlowStartKind;
use redtail_transport::cc::{Growth, Halving};
use redtail_transport::tcp::recovery::RecoveryKind;
use redtail_transport::tcp::rto::{RtoFloor, RttSampling};
use redtail_transport::{
    Flags, Receiver, SackBlock, SackBlocks, Segment, Sender, SenderCounters, TcpParams,
};

const RECOVERIES: [RecoveryKind; 9] = [
    RecoveryKind::Sack,
    RecoveryKind::RackTlp,
    RecoveryKind::Newreno,
    RecoveryKind::Reno,
    RecoveryKind::Tahoe,
    RecoveryKind::Sack1996,
    RecoveryKind::Ns2Newreno,
    RecoveryKind::Ns2Reno,
    RecoveryKind::Ns2Tahoe,
];

const SLOW_STARTS: [SlowStartKind; 4] = [
    SlowStartKind::Standard,
    SlowStartKind::Hystart,
    SlowStartKind::HystartPlusPlus,
    SlowStartKind::Vegas,
];

const GROWTHS: [Growth; 4] = [Growth::Reno, Growth::Cubic, Growth::Vegas, Growth::Ledbat];

const MSS: [u64; 4] = [1000, 1460, 1, 65_535];

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

/// Bytes as a source of choices; zero when they are used up.
struct Choices<'a>(std::slice::Iter<'a, u8>);

impl Choices<'_> {
    fn byte(&mut self) -> u8 {
        self.0.next().copied().unwrap_or(0)
    }

    fn of<T: Copy, const N: usize>(&mut self, values: [T; N]) -> T {
        values[usize::from(self.byte()) % N]
    }

    fn number(&mut self) -> u64 {
        u64::from(self.byte()) << 8 | u64::from(self.byte())
    }

    /// Eight switches.
    fn switches(&mut self) -> impl Fn(u8) -> bool + use<> {
        let byte = self.byte();
        move |bit| byte >> bit & 1 == 1
    }

    fn params(&mut self) -> TcpParams {
        let (a, b) = (self.switches(), self.switches());
        let mss = self.of(MSS);
        let (initial_rto, min_rto, max_rto) = self.of(TIMEOUTS);
        TcpParams {
            mss: Bytes::new(mss),
            recovery: self.of(RECOVERIES),
            slow_start: self.of(SLOW_STARTS),
            growth: self.of(GROWTHS),
            initial_window: 1 + u32::from(self.byte() % 32),
            dup_thresh: 1 + u32::from(self.byte() % 6),
            receive_window: Bytes::new(mss * (1 + u64::from(self.byte() % 64))),
            delayed_ack_timeout: Span::from_ms(self.of(DELAYED_ACK_TIMEOUTS)),
            quick_acks: u32::from(self.byte() % 8),
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
            handshake: a(7),
            ecn_retransmissions: b(0),
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
            } else {
                RttSampling::EveryAck
            },
            clock_granularity: Span::from_ms(if b(5) { 10 } else { 0 }),
            ..TcpParams::default()
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum Bound {
    ToReceiver,
    ToSender,
}

/// The two endpoints with what is between them.
struct Pair {
    params: TcpParams,
    size: u64,
    sender: Sender,
    receiver: Receiver,
    now: Time,
    flying: Vec<(Bound, Segment)>,
    /// The latest that were sent, whatever became of them.
    remembered: Vec<(Bound, Segment)>,
    sent: usize,
    /// End of the data sent so far.
    highest: u64,
}

impl Pair {
    fn new(params: TcpParams, size: u64) -> Self {
        let mut pair = Self {
            sender: Sender::new(&params, Some(size)),
            receiver: Receiver::new(&params),
            size,
            now: Time::ZERO,
            flying: Vec::new(),
            remembered: Vec::new(),
            sent: 0,
            highest: 0,
            params,
        };
        pair.sender.open(pair.params.handshake);
        pair.poll();
        pair
    }

    fn poll(&mut self) {
        while let Some(segment) = self.sender.poll_transmit(self.now) {
            self.check_sent(&segment);
            self.send(Bound::ToReceiver, segment);
        }
        while let Some(segment) = self.receiver.poll_transmit(self.now) {
            assert_eq!(segment.ecn, Ecn::NotEct, "an ECN-capable acknowledgement");
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

    fn check_sent(&mut self, segment: &Segment) {
        assert!(!self.sender.is_complete(), "sent after the end");
        if segment.flags.contains(Flags::SYN) {
            assert!(self.params.handshake && self.highest == 0);
            return;
        }
        let end = segment.seq + u64::from(segment.len);
        let mss = self.params.mss.as_u64();
        assert!(0 < segment.len && u64::from(segment.len) <= mss && end <= self.size);
        assert!(segment.seq <= self.highest, "a gap in what is sent");
        assert!(end > self.sender.acked(), "sent what was acknowledged");
        let again = segment.seq < self.highest;
        let capable = self.params.ecn && (!again || self.params.ecn_retransmissions);
        assert!(segment.ecn == Ecn::NotEct || capable, "ECN out of place");
        self.highest = self.highest.max(end);
    }

    /// What holds after every event.
    fn check(&self) {
        self.sender.assert_consistent();
        let snapshot = self.sender.snapshot();
        assert!(snapshot.cwnd.is_finite() && snapshot.ssthresh > 0.0);
        assert!(snapshot.outstanding <= self.params.receive_window.as_u64());
        assert_eq!(snapshot.outstanding, self.highest - self.sender.acked());
        assert!(self.sender.acked() <= self.receiver.delivered());
        assert!(self.receiver.delivered() <= self.receiver.received());
        assert!(self.receiver.received() <= self.highest);
        let counters = self.sender.counters();
        assert!(counters.spurious_timeouts <= counters.timeouts);
        assert!(counters.spurious_fast_retransmits <= counters.recoveries);
        assert!(counters.retransmissions <= counters.data_segments);
    }

    fn arrive(&mut self, bound: Bound, segment: &Segment) {
        match bound {
            Bound::ToReceiver => self.receiver.on_segment(segment, self.now),
            Bound::ToSender => self.sender.on_segment(segment, self.now),
        }
        self.poll();
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
            assert_eq!(self.receiver.next_wakeup(), None, "a timer stayed");
            self.poll();
            return;
        }
        let timeouts = self.sender.counters().timeouts;
        self.sender.on_wakeup(next);
        let timeouts = self.sender.counters().timeouts - timeouts;
        self.poll();
        let again = self.sender.next_wakeup();
        if timeouts == 0 {
            // A reordering timer or a probe; neither stays due.
            assert_eq!(self.params.recovery, RecoveryKind::RackTlp);
            assert!(again.is_none_or(|again| again > next), "a timer stayed");
        } else {
            let least = self.params.min_rto.min(self.params.initial_rto);
            let again = again.expect("data is outstanding");
            assert!(again >= next + least, "a storm of timeouts");
        }
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
        match kind % 16 {
            // The oldest arrive, as a rule.
            0..=3 => {
                for _ in 0..=kind >> 4 {
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
                if let Some(at) = self.choose(kind >> 4) {
                    self.flying.remove(at);
                }
            }
            6 => {
                // A burst of losses.
                let count = usize::from(choices.byte()).min(self.flying.len());
                self.flying.drain(..count);
            }
            7 => {
                if let Some(at) = self.choose(kind >> 4) {
                    let (bound, segment) = self.flying[at];
                    self.flying.push((bound, segment));
                }
            }
            8 => {
                if let Some(at) = self.choose(kind >> 4) {
                    let segment = &mut self.flying[at].1;
                    if segment.ecn == Ecn::Ect0 {
                        segment.ecn = Ecn::Ce;
                    }
                }
            }
            9 => self.pass(Span::from_ms(u64::from(kind >> 4))),
            10 => self.pass(Span::from_ms(20 * u64::from(choices.byte()))),
            11 | 12 => self.run_out(),
            13 => {
                let at = usize::from(choices.byte()) % self.remembered.len();
                let (bound, segment) = self.remembered[at];
                self.arrive(bound, &segment);
            }
            14 => self.part(choices),
            _ => self.senseless(choices),
        }
    }

    /// Data that was sent arrives in a segment that was not.
    fn part(&mut self, choices: &mut Choices<'_>) {
        if self.highest == 0 {
            return;
        }
        let from = self.highest - 1 - choices.number() % self.highest;
        let most = (self.highest - from).min(self.params.mss.as_u64());
        let segment = Segment {
            seq: from,
            len: (1 + choices.number() % most) as u32,
            flags: Flags::ACK,
            ..Segment::default()
        };
        self.arrive(Bound::ToReceiver, &segment);
    }

    /// An acknowledgement that no receiver sends; its blocks lie outside of what is
    /// outstanding, or are none.
    fn senseless(&mut self, choices: &mut Choices<'_>) {
        let (una, next) = (self.sender.acked(), self.highest);
        let far = choices.number();
        let on = choices.switches();
        let ack = match (on(0), on(1)) {
            (true, _) => next + 1 + far, // of data never sent
            (_, true) => una.saturating_sub(far),
            _ => una,
        };
        let mut sack = SackBlocks::default();
        for bit in 2..5 {
            let start = choices.number();
            let (start, end) = match (on(bit), on(5)) {
                (true, _) => (next + start, next + start + 1 + far),
                (_, true) => (una.saturating_sub(start), una.saturating_sub(start / 2)),
                _ => (una + start, una + start),
            };
            sack.push(ack, SackBlock { start, end });
        }
        let segment = Segment {
            ack,
            sack,
            // Another window would be a receiver's right, if it knew what was sent.
            window: if ack == una {
                self.params.receive_window.as_u64() as u32
            } else {
                0
            },
            flags: Flags::ACK.with_if(ack > next, Flags::ECE),
            ts_ecr: if on(6) { 0 } else { far as u32 },
            ..Segment::default()
        };
        self.arrive(Bound::ToSender, &segment);
    }

    /// From here on nothing is lost: the transfer completes.
    fn finish(&mut self) {
        let segments = self.size.div_ceil(self.params.mss.as_u64());
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
    let size = 1 + choices.number() * params.mss.as_u64() / 400;
    let mut pair = Pair::new(params, size);
    while !choices.0.as_slice().is_empty() {
        pair.event(&mut choices);
    }
    pair.finish();
    Some(pair.sender.counters())
}
