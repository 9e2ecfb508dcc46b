//! FQ-PIE: a PIE of its own for each queue. The law itself is tested with PIE.

use crate::common::{Heard, Probe, build};
use redtail_core::{Bytes, Ecn, Span, Stream, Time};
use redtail_qdisc::laws::pie::{Decay, Delay, Flavour, PieConfig, PieLaw};
use redtail_qdisc::queues::fq_pie::FqPieParams;
use redtail_qdisc::{DropReason, Limit, QueueDiscipline, QueueParams};

fn params() -> FqPieParams {
    FqPieParams {
        limit: Limit::packets(10_000),
        flows: 1024,
        quantum: Bytes::new(1500),
        target: Span::from_ms(15),
        update: Span::from_ms(15),
        alpha: 0.125,
        beta: 1.25,
        max_burst: Span::from_ms(150),
        mean_packet: Bytes::new(1500),
        delay: Delay::Timestamps,
        ecn: false,
        max_ecn: 0.1,
    }
}

fn packet(id: u64, flow: u32, ecn: Ecn) -> Probe {
    Probe {
        flow,
        ..Probe::new(id, 1500, ecn)
    }
}

#[test]
fn a_queues_probability_is_that_of_a_law_updated_by_a_timer() {
    // Two flows with arrivals at random; each has a law, updated every 15 ms whatever
    // happens, and told of what leaves its own queue.
    let config = PieConfig {
        target: Span::from_ms(15),
        interval: Span::from_ms(15),
        alpha: 0.125,
        beta: 1.25,
        max_burst: Span::from_ms(150),
        mean_packet: Bytes::new(1500),
        derandomize: true,
        delay: Delay::Timestamps,
        decay: Decay::NoDelay,
        flavour: Flavour::Linux,
    };
    let mut laws = [PieLaw::new(config), PieLaw::new(config)];
    let mut waiting = [0u64; 2];
    let mut queue = build(&QueueParams::FqPie(params()));
    let mut heard = Heard::default();
    let mut stream = Stream::named(1, 0, "arrivals");
    let (mut highest, mut dropped) = (0.0f64, 0);
    for ms in 1..20_000u64 {
        let now = Time::ZERO + Span::from_ms(ms);
        if ms % 15 == 0 {
            for (law, &waiting) in laws.iter_mut().zip(&waiting) {
                law.update(1500 * waiting);
            }
        }
        // One packet leaves in a millisecond; the second flow rests at times.
        for (flow, rate) in [(0, 0.7), (1, if ms % 4000 < 2000 { 0.6 } else { 0.0 })] {
            if stream.uniform() < rate {
                queue.enqueue(packet(ms, flow, Ecn::NotEct), now, &mut heard);
                let law = &mut laws[flow as usize];
                if heard.dropped.len() > dropped {
                    dropped += 1;
                    law.on_drop();
                } else {
                    waiting[flow as usize] += 1;
                }
                let probability = queue.internals().probability.expect("PIE has one");
                assert_eq!(
                    probability,
                    law.probability().min(1.0),
                    "flow {flow} at {ms} ms"
                );
                highest = highest.max(probability);
            }
        }
        if let Some(left) = queue.dequeue(now, &mut heard) {
            let flow = left.flow as usize;
            waiting[flow] -= 1;
            let sojourn = now - left.enqueued;
            laws[flow].on_departure(Bytes::new(1500), sojourn, 1500 * waiting[flow], now);
        }
    }
    assert!(
        highest > 0.05 && dropped > 100,
        "hardly a test: {highest}, {dropped}"
    );
}

/// Keeps one flow at `backlog` packets of 1500 B while one leaves each 1.2 ms; what was
/// heard in `time`.
fn hold(params: FqPieParams, ecn: Ecn, backlog: u64, time: Span) -> Heard {
    let mut queue = build(&QueueParams::FqPie(params));
    let (mut heard, mut now, mut id) = (Heard::default(), Time::ZERO, 0);
    while now < Time::ZERO + time {
        for _ in 0..5 {
            if queue.backlog().packets < backlog {
                queue.enqueue(packet(id, 0, ecn), now, &mut heard);
                id += 1;
            }
        }
        now += Span::from_us(1200);
        queue.dequeue(now, &mut heard);
    }
    heard
}

#[test]
fn marks_give_way_to_drops_beyond_max_ecn() {
    let ecn = |max_ecn| FqPieParams {
        ecn: true,
        max_ecn,
        ..params()
    };
    // Before the probability exceeds 1, as it may in Linux, and with it every bound.
    let all = hold(ecn(1.0), Ecn::Ect0, 40, Span::from_s(4));
    assert!(all.dropped.is_empty() && all.marked.len() > 100);
    let beyond = hold(ecn(1.0), Ecn::Ect0, 40, Span::from_s(20));
    assert!(!beyond.dropped.is_empty() && beyond.marked.len() > 100);
    let some = hold(ecn(0.1), Ecn::Ect0, 40, Span::from_s(20));
    assert!(!some.dropped.is_empty() && !some.marked.is_empty());
    assert!(some.dropped.iter().all(|drop| drop.1 == DropReason::Early));
    let none = hold(ecn(1.0), Ecn::NotEct, 40, Span::from_s(20));
    assert!(none.marked.is_empty() && none.dropped.len() > 100);
}

#[test]
fn nothing_is_dropped_below_half_the_target() {
    // Five packets wait 6 ms, less than 7.5.
    let heard = hold(params(), Ecn::NotEct, 5, Span::from_s(20));
    assert!(heard.dropped.is_empty());
}

#[test]
fn impossible_values_are_refused_with_the_reason() {
    let refusal = |params: FqPieParams| QueueParams::FqPie(params).check().unwrap_err().to_string();
    assert_eq!(
        refusal(FqPieParams {
            target: Span::ZERO,
            ..params()
        }),
        "target is zero; accepted: a time such as \"100 ms\""
    );
    assert_eq!(
        refusal(FqPieParams {
            update: Span::ZERO,
            ..params()
        }),
        "update is zero; accepted: a time such as \"100 ms\""
    );
    assert_eq!(
        refusal(FqPieParams {
            update: Span::from_ns(1),
            ..params()
        }),
        "update is below 1 us, which takes too many updates; accepted: at least \"1 us\" (Linux counts these in \
         microseconds), for example \"10 ms\""
    );
    assert_eq!(
        refusal(FqPieParams {
            beta: -1.0,
            ..params()
        }),
        "beta is not a gain above 0; accepted: a number above 0"
    );
    assert_eq!(
        refusal(FqPieParams {
            max_ecn: 1.1,
            ..params()
        }),
        "max_ecn is not a probability; accepted: a number from 0 to 1"
    );
    assert_eq!(
        refusal(FqPieParams {
            flows: 0,
            ..params()
        }),
        "flows is 0, no number of queues; accepted: a number from 1 to 65536"
    );
}
