//! COBALT's law: when it signals, how it remembers, what BLUE does.
//!
//! Statistical tests have fixed seeds and state how often they would fail by chance.

use crate::common::{Heard, Probe, build};
use redtail_core::{Bytes, Ecn, Rate, Span, Stream, Time};
use redtail_qdisc::laws::cobalt::{CobaltConfig, CobaltLaw, FirstGap};
use redtail_qdisc::queues::cobalt::CobaltParams;
use redtail_qdisc::{DropReason, Limit, LinkFacts, QueueDiscipline, QueueParams};

const CONFIG: CobaltConfig = CobaltConfig {
    target: Span::from_ms(5),
    interval: Span::from_ms(100),
    mtu_time: Span::from_ms(1),
    increment: 1.0 / 256.0,
    decrement: 1.0 / 4096.0,
    first_gap: FirstGap::Interval,
};

fn us(us: u64) -> Time {
    Time::ZERO + Span::from_us(us)
}

/// Judges a packet every 10 us from `from` to `to`, all of this sojourn; when it signalled,
/// in seconds.
fn signals(law: &mut CobaltLaw, sojourn_ms: u64, mark: bool, from: u64, to: u64) -> Vec<f64> {
    let sojourn = Span::from_ms(sojourn_ms);
    let mut times = Vec::new();
    for tick in from / 10..to / 10 {
        let now = us(tick * 10);
        let decision = law.judge(&CONFIG, sojourn, 0, mark, now, || 0.5);
        assert!(!(decision.mark && decision.drop));
        if decision.mark || decision.drop {
            assert_eq!(decision.mark, mark);
            times.push(now.as_secs_f64());
        }
    }
    times
}

#[test]
fn signals_follow_the_inverse_square_root() {
    for mark in [false, true] {
        let mut law = CobaltLaw::default();
        // Below the target for a while, so that the interval counts from the first above.
        assert!(signals(&mut law, 4, mark, 0, 50_000).is_empty());
        let times = signals(&mut law, 20, mark, 50_000, 1_000_000);
        let mut due = 0.050 + 0.1;
        for (count, time) in (1..).zip(&times) {
            assert!(
                (time - due).abs() < 3e-5,
                "signal {count}: {time}, not {due}"
            );
            due += 0.1 / f64::from(count + 1).sqrt();
        }
        assert!(times.len() > 15);
    }
}

#[test]
fn a_sojourn_of_few_packets_is_no_queue() {
    // sojourn > 4 t_mtu, here 4 ms, below the target; with 20 ms packets it is 80 ms.
    let mut law = CobaltLaw::default();
    let slow = CobaltConfig {
        mtu_time: Span::from_ms(20),
        ..CONFIG
    };
    let mut signalled = |sojourn_ms, bulk| {
        let mut any = false;
        for tick in 0..50_000 {
            let sojourn = Span::from_ms(sojourn_ms);
            let now = us(tick * 10);
            let decision = law.judge(&slow, sojourn, bulk, false, now, || 0.5);
            any |= decision.drop;
        }
        law = CobaltLaw::default();
        any
    };
    assert!(!signalled(80, 0));
    assert!(signalled(81, 0));
    // At an ingress, two packets for each bulk flow.
    assert!(!signalled(400, 10));
    assert!(signalled(401, 10));
}

#[test]
fn the_count_fades_as_signals_become_due_that_are_not_needed() {
    let mut law = CobaltLaw::default();
    signals(&mut law, 4, true, 0, 10);
    signals(&mut law, 20, true, 10, 600_000);
    let count = law.count();
    assert!(count > 5, "{count}");
    // Each step down takes interval / sqrt(count) of the lower count.
    let mut expected = 0.0;
    let start = 600_000;
    for lower in 1..count {
        expected += 0.1 / f64::from(lower).sqrt();
    }
    // The first is due within a gap, the last after an interval.
    let later = start + (expected * 1e6) as u64;
    signals(&mut law, 1, true, start, later - 150_000);
    assert!(law.count() > 0);
    signals(&mut law, 1, true, later - 150_000, later + 250_000);
    assert_eq!(law.count(), 0);
}

#[test]
fn blue_rises_at_overflows_and_falls_when_empty_once_per_target() {
    let mut law = CobaltLaw::default();
    // Overflows every millisecond: one in six counts, more than 5 ms after the last.
    for tick in 1..=60 {
        law.on_overflow(&CONFIG, us(tick * 1000));
    }
    assert_eq!(law.probability(), 10.0 / 256.0);
    for tick in 67..=126 {
        law.on_empty(&CONFIG, us(tick * 1000));
    }
    assert_eq!(law.probability(), 10.0 / 256.0 - 10.0 / 4096.0);
    // And never leaves 0..1.
    for tick in 200..100_000 {
        law.on_overflow(&CONFIG, us(tick * 1000));
    }
    assert_eq!(law.probability(), 1.0);
    for tick in 200_000..400_000 {
        law.on_empty(&CONFIG, us(tick * 1000));
    }
    assert_eq!(law.probability(), 0.0);
    assert!(law.is_at_rest(us(500_000_000)));
}

#[test]
fn blue_drops_what_could_be_marked() {
    let mut law = CobaltLaw::default();
    for tick in 1..=64 {
        law.on_overflow(&CONFIG, us(tick * 6000));
    }
    assert_eq!(law.probability(), 0.25);
    // 40,000 packets below the target: of the binomial's deviation of 87 five are exceeded
    // with probability 6e-7.
    let mut stream = Stream::named(1, 0, "blue");
    let mut dropped = 0;
    for tick in 0..40_000 {
        let now = us(400_000 + tick);
        let decision = law.judge(&CONFIG, Span::from_ms(1), 0, true, now, || stream.uniform());
        dropped += i32::from(decision.drop);
    }
    assert!((dropped - 10_000).abs() < 5 * 87, "{dropped}");
}

fn params() -> CobaltParams {
    CobaltParams {
        limit: Limit::packets(20),
        target: Span::from_ms(5),
        interval: Span::from_ms(100),
        ecn: true,
        increment: 0.5,
        decrement: 0.0,
        blue_threshold: None,
        first_gap: FirstGap::Interval,
        mtu: Bytes::new(100),
    }
}

#[test]
fn the_last_packet_is_never_dropped() {
    let params = CobaltParams {
        increment: 1.0,
        ..params()
    };
    let mut queue = build(&QueueParams::Cobalt(params));
    let mut heard = Heard::default();
    for id in 0..21 {
        queue.enqueue(Probe::new(id, 1000, Ecn::Ect0), us(10_000), &mut heard);
    }
    assert_eq!(heard.dropped.len(), 1);
    assert_eq!(heard.dropped[0].1, DropReason::Limit);
    // BLUE's probability is 1: all go but the last.
    let last = queue.dequeue(us(20_000), &mut heard).expect("one is left");
    assert_eq!(last.id, 19);
    assert_eq!(heard.dropped.len(), 20);
    assert!(
        heard.dropped[1..]
            .iter()
            .all(|drop| drop.1 == DropReason::Early)
    );
    assert_eq!(queue.internals().probability, Some(1.0));
}

#[test]
fn packets_that_have_waited_long_raise_blue_once_per_target_and_are_not_dropped_for_it() {
    // ns-3.37, CobaltQueueDisc::CobaltShouldDrop: 1,500 packets that have waited 600 ms.
    let mut queue = build(&QueueParams::Cobalt(CobaltParams {
        limit: Limit::packets(2000),
        blue_threshold: Some(Span::from_ms(400)),
        increment: 1.0 / 256.0,
        decrement: 1.0 / 4096.0,
        ..params()
    }));
    let mut heard = Heard::default();
    for id in 0..1500 {
        queue.enqueue(Probe::new(id, 1000, Ecn::NotEct), us(0), &mut heard);
    }
    queue.dequeue(us(600_000), &mut heard);
    assert!(heard.dropped.len() <= 2, "{}", heard.dropped.len());
    assert_eq!(queue.internals().probability, Some(1.0 / 256.0));
    // Within the target it stays; CoDel's own signals wait for their interval.
    for tick in 1..=5 {
        queue.dequeue(us(600_000 + 1000 * tick), &mut heard);
    }
    assert_eq!(queue.internals().probability, Some(1.0 / 256.0));
    queue.dequeue(us(605_001), &mut heard);
    assert_eq!(queue.internals().probability, Some(2.0 / 256.0));
    assert!(heard.dropped.len() <= 2, "{}", heard.dropped.len());
}

#[test]
fn the_first_gap_may_be_none_once() {
    // Linux 6.1, cobalt_vars_init and cobalt_should_drop; see `FirstGap`.
    let config = CobaltConfig {
        first_gap: FirstGap::None,
        ..CONFIG
    };
    let mut law = CobaltLaw::default();
    let mut judge = |sojourn_ms, tick| {
        let now = us(tick);
        let sojourn = Span::from_ms(sojourn_ms);
        law.judge(&config, sojourn, 0, false, now, || 0.5).drop
    };
    assert!(!judge(1, 10) && !judge(20, 20) && judge(20, 30));
    // Gone after a while, and the next time an interval passes first.
    (1..400).for_each(|ms| assert!(!judge(1, 1000 * ms)));
    let first = (4_000..6_000).find(|tick| judge(20, 100 * tick));
    let first = first.expect("it signals");
    assert!((5_000..=5_001).contains(&first), "{first}");
}

#[test]
fn a_long_wait_raises_blue_if_asked_for() {
    for (threshold, expected) in [(None, 0.0), (Some(Span::from_ms(400)), 0.5)] {
        let mut queue = build(&QueueParams::Cobalt(CobaltParams {
            blue_threshold: threshold,
            ..params()
        }));
        let mut heard = Heard::default();
        queue.enqueue(Probe::new(0, 1000, Ecn::NotEct), us(0), &mut heard);
        queue.dequeue(us(401_000), &mut heard);
        assert_eq!(queue.internals().probability, Some(expected));
    }
}

#[test]
fn impossible_values_are_refused_and_odd_ones_warned_about() {
    let refusal =
        |params: CobaltParams| QueueParams::Cobalt(params).check().unwrap_err().to_string();
    assert_eq!(
        refusal(CobaltParams {
            increment: 1.5,
            ..params()
        }),
        "increment is no change of a probability; accepted: a number from 0 to 1"
    );
    assert_eq!(
        refusal(CobaltParams {
            decrement: f64::NAN,
            ..params()
        }),
        "decrement is no change of a probability; accepted: a number from 0 to 1"
    );
    assert_eq!(
        refusal(CobaltParams {
            interval: Span::from_ms(4),
            ..params()
        }),
        "interval is not above target (5 ms); accepted: more than \"5 ms\""
    );
    let link = LinkFacts::of_rate(Rate::from_bps(100_000));
    let keys: Vec<_> = QueueParams::Cobalt(params())
        .warnings(&link)
        .into_iter()
        .map(|w| w.key)
        .collect();
    assert_eq!(keys, ["target", "decrement"]);
}
