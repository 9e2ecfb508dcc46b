//! A sender and a receiver over a channel that loses, duplicates, delays and
//! reorders, in virtual time: every combination of strategies gets its data
//! across, exactly, and keeps its invariants on the way.

mod common;

use std::collections::BTreeMap;

use common::MSS;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use redtail_core::{Bytes, Ecn, Rate, Span, Stream, Time};
use redtail_transport::cc::Growth;
use redtail_transport::cc::slow_start::SlowStartKind;
use redtail_transport::tcp::ecn::{EcnCodepoint, EcnFeedback, EcnReduction};
use redtail_transport::tcp::recovery::RecoveryKind;
use redtail_transport::tcp::rto::RttSampling;
use redtail_transport::{Flags, Receiver, Segment, Sender, TcpParams};

/// What the channel does to each segment.
#[derive(Clone, Copy, Debug)]
struct Channel {
    loss: f64,
    duplication: f64,
    /// Share of ECN-capable segments that are marked.
    marking: f64,
    delay: Span,
    /// Added uniformly up to this: reorders when above the spacing of segments.
    jitter: Span,
    seed: u64,
}

fn channels() -> impl Strategy<Value = Channel> {
    let share = |most: f64| prop_oneof![Just(0.0), 0.0..most];
    (
        share(0.45),
        share(0.2),
        share(0.5),
        1u64..200,
        prop_oneof![Just(0u64), 0u64..300],
        any::<u64>(),
    )
        .prop_map(
            |(loss, duplication, marking, delay, jitter, seed)| Channel {
                loss,
                duplication,
                marking,
                delay: Span::from_ms(delay),
                jitter: Span::from_ms(jitter),
                seed,
            },
        )
}

const RECOVERIES: [RecoveryKind; 9] = [
    RecoveryKind::Tahoe,
    RecoveryKind::Ns2Tahoe,
    RecoveryKind::Reno,
    RecoveryKind::Newreno,
    RecoveryKind::Ns2Reno,
    RecoveryKind::Ns2Newreno,
    RecoveryKind::Sack,
    RecoveryKind::RackTlp,
    RecoveryKind::Sack1996,
];

/// Every combination of the strategies, on top of `base`.
fn combinations(base: &TcpParams) -> Vec<TcpParams> {
    let mut all = Vec::new();
    for recovery in RECOVERIES {
        for rtt_sampling in [RttSampling::EveryAck, RttSampling::OnePerWindow] {
            for switches in 0..64 {
                let on = |bit: u32| switches >> bit & 1 == 1;
                let (slow_start, growth) = match switches >> 4 {
                    0 => (SlowStartKind::Standard, Growth::Reno),
                    1 => (SlowStartKind::HystartPlusPlus, Growth::Cubic),
                    2 => (SlowStartKind::Vegas, Growth::Vegas),
                    _ if on(3) => (SlowStartKind::Standard, Growth::Prague),
                    _ => (SlowStartKind::Hystart, Growth::Ledbat),
                };
                let (ecn_feedback, ecn_reduction) = match switches >> 2 & 3 {
                    0 => (EcnFeedback::Echo, EcnReduction::Loss),
                    1 => (EcnFeedback::Echo, EcnReduction::Abe),
                    2 => (EcnFeedback::Dctcp, EcnReduction::Dctcp),
                    _ => (EcnFeedback::Accecn, EcnReduction::Prague),
                };
                all.push(TcpParams {
                    slow_start,
                    growth,
                    prr: on(4),
                    pacing: on(0) != on(5),
                    timestamps: on(2) != on(3),
                    frto: on(0) != on(4),
                    dsack: on(1) != on(5),
                    recovery,
                    rtt_sampling,
                    delayed_ack: on(0),
                    ecn: on(1),
                    ecn_feedback,
                    ecn_reduction,
                    ecn_codepoint: if on(2) && on(3) {
                        EcnCodepoint::Ect1
                    } else {
                        EcnCodepoint::Ect0
                    },
                    ecn_syn_ack: on(0) && on(3),
                    ecn_fallback: on(0),
                    limited_transmit: on(2),
                    handshake: on(3),
                    // Three segments' time to read one that arrives in every 10 ms.
                    read_rate: (switches % 7 == 3).then_some(Rate::from_bps(800_000)),
                    ..base.clone()
                });
            }
        }
    }
    for recovery in [RecoveryKind::Sack, RecoveryKind::RackTlp] {
        for switches in 0..16 {
            let on = |bit: u32| switches >> bit & 1 == 1;
            all.push(TcpParams {
                slow_start: SlowStartKind::Startup,
                growth: if on(0) { Growth::Bbr } else { Growth::Bbr3 },
                pacing: true,
                recovery,
                delayed_ack: on(1),
                handshake: on(2),
                timestamps: on(2) != on(3),
                limited_transmit: on(3),
                ..base.clone()
            });
        }
    }
    all
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
    channel: Channel,
    stream: Stream,
    now: Time,
    /// In flight, by time of arrival and number.
    flying: BTreeMap<(Time, u64), (Bound, Segment)>,
    sent: u64,
    /// End of the data sent so far.
    highest: u64,
    /// There were window probes.
    probed: bool,
}

impl Pair {
    fn new(params: &TcpParams, size: u64, channel: Channel) -> Self {
        params.check().expect("the parameters can be run");
        let mut pair = Self {
            params: params.clone(),
            size,
            sender: Sender::new(params, Some(size)),
            receiver: Receiver::new(params),
            channel,
            stream: Stream::named(channel.seed, 0, "channel"),
            now: Time::ZERO,
            flying: BTreeMap::new(),
            sent: 0,
            highest: 0,
            probed: false,
        };
        pair.sender.open(params.handshake);
        pair.poll();
        pair
    }

    fn poll(&mut self) {
        while let Some(segment) = self.sender.poll_transmit(self.now) {
            self.check_sent(&segment);
            self.send(Bound::ToReceiver, segment);
        }
        while let Some(segment) = self.receiver.poll_transmit(self.now) {
            assert!(
                segment.ecn == Ecn::NotEct || segment.flags.contains(Flags::SYN),
                "an ECN-capable acknowledgement"
            );
            self.send(Bound::ToSender, segment);
        }
        self.check();
    }

    fn send(&mut self, bound: Bound, mut segment: Segment) {
        if segment.ecn != Ecn::NotEct && self.stream.uniform() < self.channel.marking {
            segment.ecn = Ecn::Ce;
        }
        if self.stream.uniform() >= self.channel.loss {
            self.fly(bound, segment);
        }
        if self.stream.uniform() < self.channel.duplication {
            self.fly(bound, segment);
        }
    }

    fn fly(&mut self, bound: Bound, segment: Segment) {
        let jitter = self.stream.uniform_span(Span::ZERO, self.channel.jitter);
        let at = self.now + self.channel.delay + jitter;
        self.sent += 1;
        self.flying.insert((at, self.sent), (bound, segment));
    }

    fn check_sent(&mut self, segment: &Segment) {
        if segment.flags.contains(Flags::SYN) {
            return;
        }
        if segment.len == 0 {
            let fin = segment.flags.contains(Flags::FIN);
            assert_eq!(segment.ecn, Ecn::NotEct, "control that is ECN-capable");
            assert_eq!(segment.seq, self.size + u64::from(!fin));
            assert!(fin || segment.ack == 1, "nothing to acknowledge");
            return;
        }
        if segment.len == 1 && self.sender.snapshot().outstanding == 0 {
            self.probed = true; // a window probe, which is not on record yet
            return;
        }
        assert!(!self.sender.is_complete(), "data after the end");
        let end = segment.seq + u64::from(segment.len);
        let mss = self.params.mss.as_u64();
        assert!(0 < segment.len && u64::from(segment.len) <= mss && end <= self.size);
        // What probes got across counts as sent.
        if self.probed {
            self.highest = self.highest.max(segment.seq);
        }
        assert!(segment.seq <= self.highest, "a gap in what is sent");
        assert!(end > self.sender.acked(), "sent what was acknowledged");
        let again = segment.seq < self.highest;
        assert!(
            segment.ecn == Ecn::NotEct || self.params.ecn && !again,
            "an ECN-capable retransmission, or one without ECN"
        );
        self.highest = self.highest.max(end);
    }

    /// What holds after every step.
    fn check(&self) {
        self.sender.assert_consistent();
        let outstanding = self.sender.snapshot().outstanding;
        assert!(outstanding <= self.params.receive_window.as_u64());
        if self.probed {
            assert!(self.sender.acked() + outstanding >= self.highest);
        } else {
            assert_eq!(outstanding, self.highest - self.sender.acked());
            assert!(self.receiver.received() <= self.highest);
        }
        assert!(self.sender.acked() <= self.receiver.delivered());
        assert!(self.receiver.delivered() <= self.receiver.received());
    }

    /// Does what comes next; false when nothing does.
    fn step(&mut self) -> bool {
        let arrival = self.flying.first_key_value().map(|(&(at, _), _)| at);
        let timers = [self.sender.next_wakeup(), self.receiver.next_wakeup()];
        let Some(next) = timers.into_iter().flatten().chain(arrival).min() else {
            return false;
        };
        assert!(next >= self.now, "a timer in the past");
        self.now = next;
        if arrival == Some(next) {
            let (_, (bound, segment)) = self.flying.pop_first().expect("it is the first");
            match bound {
                Bound::ToReceiver => self.receiver.on_segment(&segment, next),
                Bound::ToSender => self.sender.on_segment(&segment, next),
            }
        } else if timers[1] == Some(next) {
            self.receiver.on_wakeup(next);
            self.poll();
            let again = self.receiver.next_wakeup();
            assert!(
                again.is_none_or(|again| again > next),
                "a timer went off and stayed"
            );
        } else {
            let timeouts = self.sender.counters().timeouts;
            let released = self.sender.next_release() == Some(next);
            assert!(!released || self.params.pacing);
            self.sender.on_wakeup(next);
            let timeouts = self.sender.counters().timeouts - timeouts;
            self.poll();
            // Whatever it was, a reordering timer, a probe or pacing too, none stays due.
            let again = self.sender.next_wakeup();
            assert!(again.is_none_or(|again| again > next));
            if timeouts == 0 {
                let judges = self.params.recovery == RecoveryKind::RackTlp;
                let slow = self.params.read_rate.is_some();
                assert!(judges || released || slow, "nothing was due");
                return true;
            }
            assert_eq!(timeouts, 1);
            // The next is at least a whole timeout away: no storm.
            let again = self.sender.next_timer().expect("data is outstanding");
            assert!(again >= next + self.params.min_rto.min(self.params.initial_rto));
        }
        self.poll();
        true
    }

    /// Runs to the end of the transfer and of everything in flight.
    fn finish(&mut self) {
        // At a loss rate below a half each way, a timeout brings the transfer on
        // with probability 1/4 at least; fifty times as many as segments are far
        // beyond what any fixed seed here needs.
        let segments = self.size.div_ceil(self.params.mss.as_u64());
        let most = 50 * (segments + 2);
        while self.step() {
            let counters = self.sender.counters();
            assert!(counters.timeouts <= most, "timeouts without end");
            assert!(self.sent <= 200 * most, "segments without end");
        }
        assert!(self.sender.is_complete(), "the transfer did not complete");
        if self.channel.loss == 0.0 {
            assert!(self.sender.is_closed(), "the connection did not close");
        }
        assert_eq!(self.receiver.delivered(), self.size);
        assert_eq!(self.receiver.received(), self.size);
        assert_eq!(self.sender.acked(), self.size);
    }
}

fn config() -> ProptestConfig {
    ProptestConfig {
        cases: 200,
        rng_seed: RngSeed::Fixed(1),
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn every_combination_gets_its_data_across_any_channel(
        channel in channels(),
        size in 1u64..60 * MSS,
        window in 1u64..40,
        initial_window in 1u32..12,
        coarse_clock in any::<bool>(),
    ) {
        let base = TcpParams {
            receive_window: Bytes::new(window * MSS),
            initial_window,
            min_rto: Span::from_ms(200),
            clock_granularity: Span::from_ms(if coarse_clock { 10 } else { 0 }),
            ..common::params(RecoveryKind::Sack)
        };
        for params in combinations(&base) {
            // Shown when an assertion below fails.
            println!("{params:?}");
            Pair::new(&params, size, channel).finish();
        }
    }
}

#[test]
fn without_losses_nothing_is_sent_twice() {
    let channel = Channel {
        loss: 0.0,
        duplication: 0.0,
        marking: 0.0,
        delay: Span::from_ms(50),
        jitter: Span::ZERO,
        seed: 1,
    };
    for params in combinations(&common::params(RecoveryKind::Sack)) {
        let mut pair = Pair::new(&params, 300 * MSS, channel);
        pair.finish();
        let counters = pair.sender.counters();
        assert_eq!(counters.data_segments, 300, "{params:?}");
        assert_eq!(counters.timeouts, 0);
    }
}

#[test]
fn a_stream_may_be_longer_than_32_bits_count() {
    let channel = Channel {
        loss: 0.005,
        duplication: 0.0,
        marking: 0.0,
        delay: Span::from_ms(5),
        jitter: Span::from_ms(1),
        seed: 1,
    };
    let params = TcpParams {
        mss: Bytes::new(60_000),
        receive_window: Bytes::new(1 << 24),
        ..common::params(RecoveryKind::Sack)
    };
    Pair::new(&params, (1 << 32) + (1 << 27) + 1, channel).finish();
}
