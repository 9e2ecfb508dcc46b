//! Stochastic Fair BLUE: its probabilities, what they do, penalties and the change of hash.
//!
//! Statistical tests have fixed seeds and state how often they would fail by chance.

use crate::common::{Heard, Probe, build};
use redtail_core::{Ecn, Rate, Span, Time};
use redtail_qdisc::queues::sfb::SfbParams;
use redtail_qdisc::{AnyQueue, DropReason, Limit, LinkFacts, QueueDiscipline, QueueParams, Report};

fn params() -> SfbParams {
    SfbParams {
        limit: Limit::packets(1000),
        bin_size: 20,
        max: 25,
        increment: 0.001,
        decrement: 1.0 / 6000.0,
        rehash: Span::from_s(600),
        warmup: Span::from_s(60),
        penalty_rate: 10,
        penalty_burst: 20,
        ecn: true,
    }
}

fn ms(ms: u64) -> Time {
    Time::ZERO + Span::from_ms(ms)
}

fn probability(queue: &AnyQueue<Probe>) -> f64 {
    queue.internals().probability.expect("SFB has one")
}

fn arrive(queue: &mut AnyQueue<Probe>, flow: u32, ecn: Ecn, now: Time, heard: &mut Heard) {
    let packet = Probe {
        flow,
        ..Probe::new(0, 500, ecn)
    };
    queue.enqueue(packet, now, heard);
}

#[test]
fn a_flows_probability_follows_its_bins() {
    // With one flow all of its bins are alike: the rule can be followed with one number.
    let mut queue = build(&QueueParams::Sfb(SfbParams {
        increment: 0.01,
        decrement: 0.003,
        ..params()
    }));
    let mut heard = Heard::default();
    let mut expected = 0.0f64;
    let mut stream = redtail_core::Stream::named(1, 0, "calls");
    let mut load = 0.5;
    for call in 0..20_000 {
        if call % 200 == 0 {
            load = stream.uniform() * 0.3 + 0.38;
        }
        if stream.uniform() < load {
            let waiting = queue.backlog().packets;
            if waiting == 0 {
                expected = (expected - 0.003).max(0.0);
            } else if waiting >= 20 {
                expected = (expected + 0.01).min(1.0);
            }
            let dropped = heard.dropped.len();
            arrive(&mut queue, 3, Ecn::NotEct, Time::ZERO, &mut heard);
            assert!((probability(&queue) - expected).abs() < 1e-9, "call {call}");
            if waiting >= 25 {
                assert_eq!(heard.dropped.len(), dropped + 1, "the bins are full");
            }
        } else {
            queue.dequeue(Time::ZERO, &mut heard);
        }
    }
    assert!(!heard.dropped.is_empty());
}

/// A queue with one packet of flow 3, whose probability is `1000 p` steps high, and the
/// steps that it took.
fn at_probability(p: f64, params: &SfbParams) -> AnyQueue<Probe> {
    let mut queue = build(&QueueParams::Sfb(params.clone()));
    let mut heard = Heard::default();
    // Held at bin_size packets, every arrival raises it; the last one let in is taken out.
    while probability(&queue) < p - 1e-9 {
        while queue.backlog().packets > u64::from(params.bin_size) {
            queue.dequeue(ms(0), &mut heard);
        }
        arrive(&mut queue, 3, Ecn::NotEct, ms(0), &mut heard);
    }
    while queue.backlog().packets > 1 {
        queue.dequeue(ms(0), &mut heard);
    }
    queue
}

#[test]
fn packets_are_marked_or_dropped_with_the_probability() {
    // Of 10,000 arrivals each; five deviations of a binomial are exceeded with
    // probability 6e-7.
    let n = 10_000.0;
    for (p, ecn, marks, drops) in [
        (0.3, Ecn::NotEct, 0.0, 0.3),
        (0.3, Ecn::Ect0, 0.3, 0.0),
        // Beyond 1/2, 2 (p - 1/2) are dropped though they could be marked.
        (0.7, Ecn::Ect0, 0.3, 0.4),
        (0.7, Ecn::NotEct, 0.0, 0.7),
    ] {
        let mut queue = at_probability(p, &params());
        let mut heard = Heard::default();
        for _ in 0..10_000 {
            arrive(&mut queue, 3, ecn, ms(0), &mut heard);
            assert!((probability(&queue) - p).abs() < 1e-9);
            while queue.backlog().packets > 1 {
                queue.dequeue(ms(0), &mut heard);
            }
        }
        for (count, share) in [(heard.marked.len(), marks), (heard.dropped.len(), drops)] {
            let off = (count as f64 - n * share).abs();
            assert!(
                off <= 5.0 * (n * share * (1.0 - share)).sqrt(),
                "{count}, not {share}"
            );
        }
        assert!(heard.dropped.iter().all(|drop| drop.1 == DropReason::Early));
    }
}

#[test]
fn another_flow_keeps_a_probability_of_its_own() {
    let mut queue = at_probability(1.0, &params());
    let mut heard = Heard::default();
    for flow in 100..110 {
        arrive(&mut queue, flow, Ecn::NotEct, ms(0), &mut heard);
        assert_eq!(probability(&queue), 0.0);
    }
    assert!(heard.dropped.is_empty());
}

#[test]
fn flows_that_do_not_respond_pay() {
    // 20 packets in a burst, then 10 a second.
    let mut queue = at_probability(1.0, &params());
    let mut heard = Heard::default();
    let let_in = |queue: &mut AnyQueue<Probe>, from: u64, to: u64, heard: &mut Heard| {
        let before = heard.dropped.len();
        for at in from..to {
            arrive(queue, 3, Ecn::Ect0, ms(at), heard);
            while queue.backlog().packets > 1 {
                queue.dequeue(ms(at), heard);
            }
        }
        (to - from) as usize - (heard.dropped.len() - before)
    };
    // The arrival that raised it to 1 was the first to pay.
    assert_eq!(let_in(&mut queue, 0, 50, &mut heard), 19);
    let second = let_in(&mut queue, 1000, 11_000, &mut heard);
    assert!((95..=112).contains(&second), "{second}");
    assert!(
        heard
            .dropped
            .iter()
            .all(|drop| drop.1 == DropReason::Forced)
    );
    let mut told = Vec::new();
    queue.report(
        ms(11_000),
        &mut Report::new(&mut |name, value| told.push((name.to_owned(), value))),
    );
    assert!(told.contains(&("penalty_drops".to_owned(), heard.dropped.len() as f64)));
}

#[test]
fn after_a_rehash_only_what_was_learned_in_time_is_known() {
    for (warmup, remembered) in [(Span::from_s(60), true), (Span::ZERO, false)] {
        let mut queue = at_probability(
            1.0,
            &SfbParams {
                warmup,
                increment: 0.1,
                ..params()
            },
        );
        let mut heard = Heard::default();
        // It goes on with a full bin, during the warm-up and beyond. Paying packets fill
        // the other bins, one each 100 ms.
        for at in 541_000..601_000u64 {
            arrive(&mut queue, 3, Ecn::NotEct, ms(at), &mut heard);
            while queue.backlog().packets > 24 {
                queue.dequeue(ms(at), &mut heard);
            }
            if at == 600_001 {
                break;
            }
        }
        let known = probability(&queue);
        assert_eq!(known > 0.5, remembered, "{known}");
    }
}

#[test]
fn impossible_values_are_refused_and_odd_ones_warned_about() {
    let refusal = |params: SfbParams| QueueParams::Sfb(params).check().unwrap_err().to_string();
    assert_eq!(
        refusal(SfbParams {
            increment: 0.0,
            ..params()
        }),
        "increment is no change of a probability; accepted: a number above 0 and up to 1"
    );
    assert_eq!(
        refusal(SfbParams {
            decrement: 2.0,
            ..params()
        }),
        "decrement is no change of a probability; accepted: a number above 0 and up to 1"
    );
    assert_eq!(
        refusal(SfbParams {
            bin_size: 0,
            ..params()
        }),
        "bin_size is zero, so that empty bins would be full; accepted: a number from 1 on"
    );
    assert_eq!(
        refusal(SfbParams {
            max: 19,
            ..params()
        }),
        "max is below bin_size (20); accepted: at least 20"
    );
    assert_eq!(
        refusal(SfbParams {
            rehash: Span::ZERO,
            ..params()
        }),
        "rehash is zero; accepted: a time such as \"600 s\""
    );
    assert_eq!(
        refusal(SfbParams {
            warmup: Span::from_s(601),
            ..params()
        }),
        "warmup is longer than rehash (600 s); accepted: at most \"600 s\""
    );
    let link = LinkFacts::of_rate(Rate::from_bps(1_000_000));
    let short = SfbParams {
        limit: Limit::packets(20),
        ..params()
    };
    let warnings = QueueParams::Sfb(short).warnings(&link);
    assert_eq!(warnings.len(), 1);
    assert_eq!(
        warnings[0].clause,
        "is not below the limit (\"20 packets\"), so no probability ever rises"
    );
}
