//! Head drop, step, REM, BLUE, SRED, AVQ, CHOKe and GSP against their published rules,
//! computed here a second time.
//!
//! Statistical tests have fixed seeds. Their bounds are five standard deviations: a
//! correct law would fail one with probability 6e-7 had the seed been drawn.

use crate::common::{Heard, Probe, build_on};
use redtail_core::{Bytes, Ecn, QueueSize, Rate, Sampling, Span, Stream, Time};
use redtail_qdisc::fifo::Sparse;
use redtail_qdisc::laws::red::Flavour;
use redtail_qdisc::queues::avq::AvqParams;
use redtail_qdisc::queues::blue::BlueParams;
use redtail_qdisc::queues::choke::ChokeParams;
use redtail_qdisc::queues::gsp::GspParams;
use redtail_qdisc::queues::head_drop::HeadDropParams;
use redtail_qdisc::queues::rem::RemParams;
use redtail_qdisc::queues::sred::SredParams;
use redtail_qdisc::queues::step::StepParams;
use redtail_qdisc::{
    AnyQueue, DropReason, FlowFacts, FlowTable, Limit, LinkFacts, QueueDiscipline, QueueParams,
};

/// 12 Mbit/s: 1000 packets of 1500 B each second.
fn link() -> LinkFacts {
    LinkFacts {
        largest_packet: 1500.into(),
        max_round_trip: Some(Span::from_ms(150)),
        ..LinkFacts::of_rate(Rate::from_bps(12_000_000))
    }
}

fn built(spec: &QueueParams) -> AnyQueue<Probe> {
    build_on(spec, link())
}

fn refusal(spec: &QueueParams) -> String {
    let refused = spec.check().and_then(|()| spec.check_at(&link()));
    refused.expect_err("they are to be refused").to_string()
}

fn warnings(spec: &QueueParams) -> Vec<String> {
    let warnings = spec.warnings(&link());
    let texts = warnings
        .into_iter()
        .map(|w| format!("{} {}", w.key, w.clause));
    texts.collect()
}

fn us(us: u64) -> Time {
    Time::ZERO + Span::from_us(us)
}

fn ms(ms: u64) -> Time {
    us(1000 * ms)
}

fn probability(queue: &AnyQueue<Probe>) -> f64 {
    queue.internals().probability.expect("it has one")
}

fn average(queue: &AnyQueue<Probe>) -> f64 {
    queue.internals().average.expect("it has one")
}

fn probe(id: u64, ecn: Ecn) -> Probe {
    Probe::new(id, 1500, ecn)
}

fn of_flow(id: u64, flow: u32) -> Probe {
    Probe {
        flow,
        ..probe(id, Ecn::NotEct)
    }
}

/// Numbers of what was dropped.
fn dropped(heard: &Heard) -> Vec<u64> {
    heard.dropped.iter().map(|drop| drop.0.id).collect()
}

const ZERO: &str = "is zero; accepted: a queue size such as \"20 packets\" or \"15 ms\"";

// Head drop.

#[test]
fn head_drop_drops_the_oldest_and_keeps_its_limit() {
    let limit = Limit::packets(3);
    let mut queue = built(&QueueParams::HeadDrop(HeadDropParams { limit }));
    let mut heard = Heard::default();
    for id in 0..5 {
        queue.enqueue(probe(id, Ecn::NotEct), ms(id), &mut heard);
    }
    assert_eq!(dropped(&heard), [0, 1]);
    assert!(heard.dropped.iter().all(|drop| drop.1 == DropReason::Limit));
    assert_eq!(queue.backlog().packets, 3);
    assert_eq!(
        queue.dequeue(ms(5), &mut heard).map(|packet| packet.id),
        Some(2)
    );
}

#[test]
fn head_drop_makes_room_for_a_large_packet_but_not_for_an_impossible_one() {
    let limit = Limit::bytes(3000);
    let mut queue = built(&QueueParams::HeadDrop(HeadDropParams { limit }));
    let mut heard = Heard::default();
    for id in 0..6 {
        queue.enqueue(Probe::new(id, 500, Ecn::NotEct), ms(id), &mut heard);
    }
    queue.enqueue(Probe::new(6, 1400, Ecn::NotEct), ms(6), &mut heard);
    assert_eq!(dropped(&heard), [0, 1, 2]);
    queue.enqueue(Probe::new(7, 3001, Ecn::NotEct), ms(7), &mut heard);
    assert_eq!(dropped(&heard), [0, 1, 2, 7]);
    assert_eq!(queue.backlog().bytes, 2900);
}

// Step.

fn step(threshold: QueueSize) -> QueueParams {
    let limit = Limit::packets(100);
    QueueParams::Step(StepParams { limit, threshold })
}

#[test]
fn step_marks_arrivals_that_find_more_than_the_threshold() {
    // Alizadeh et al. 2010, section 3.1: "if the queue occupancy is greater than K".
    for threshold in [QueueSize::Packets(4), QueueSize::Bytes(6000)] {
        let mut queue = built(&step(threshold));
        let mut heard = Heard::default();
        for id in 0..10 {
            let ecn = if id % 2 == 0 { Ecn::Ect1 } else { Ecn::NotEct };
            queue.enqueue(probe(id, ecn), ms(0), &mut heard);
        }
        let marked: Vec<u64> = heard.marked.iter().map(|mark| mark.0.id).collect();
        assert_eq!(marked, [6, 8]);
        assert!(heard.dropped.is_empty());
    }
}

#[test]
fn step_in_time_marks_what_has_waited_longer() {
    let mut queue = built(&step(QueueSize::Time(Span::from_ms(2))));
    let mut heard = Heard::default();
    for id in 0..3 {
        queue.enqueue(probe(id, Ecn::Ect0), ms(0), &mut heard);
    }
    queue.dequeue(ms(2), &mut heard);
    assert!(heard.marked.is_empty());
    queue.dequeue(us(2001), &mut heard);
    assert_eq!(heard.marked.len(), 1);
}

#[test]
fn impossible_steps_are_refused_and_useless_ones_warned_about() {
    assert_eq!(
        refusal(&step(QueueSize::Packets(0))),
        format!("threshold {ZERO}")
    );
    assert_eq!(
        warnings(&step(QueueSize::Packets(10))),
        Vec::<String>::new()
    );
    assert_eq!(
        warnings(&step(QueueSize::Packets(100))),
        ["threshold is not below the limit (\"100 packets\"): nothing is marked"]
    );
    assert_eq!(
        warnings(&step(QueueSize::Time(Span::from_us(900)))),
        [
            "threshold is below the time that one packet of 1500 B takes here (1.000 ms): \
          whatever waits is marked"
        ]
    );
}

// REM.

fn rem(change: impl FnOnce(&mut RemParams)) -> QueueParams {
    let mut params = RemParams::new(Limit::packets(300));
    change(&mut params);
    QueueParams::Rem(params)
}

#[test]
fn rem_follows_its_price_equation() {
    // Athuraliya et al. 2001: p_l(t+1) = [p_l(t) + gamma (alpha (b - b*) + x - c)]^+, and
    // 1 - phi^-p_l; c is 2 packets in 2 ms.
    let mut queue = built(&rem(|rem| rem.gamma = 0.05));
    let mut random = Stream::named(3, 0, "calls");
    let (mut price, mut arrived, mut tick) = (0.0f64, 0.0, ms(2));
    let mut now = ms(0);
    let mut highest = 0.0f64;
    let mut heard = Heard::default();
    for id in 0..20_000u64 {
        now += random.uniform_span(Span::ZERO, Span::from_us(1000));
        while tick <= now {
            let b = queue.backlog().packets as f64;
            price = (price + 0.05 * (0.1 * (b - 20.0) + arrived - 2.0)).max(0.0);
            arrived = 0.0;
            tick += Span::from_ms(2);
        }
        if random.uniform() < 0.65 - 0.4 * id as f64 / 20_000.0 {
            arrived += 1.0;
            queue.enqueue(probe(id, Ecn::NotEct), now, &mut heard);
        } else {
            queue.dequeue(now, &mut heard);
        }
        assert!((average(&queue) - price).abs() < 1e-9, "{id}");
        assert!((probability(&queue) - (1.0 - 1.001f64.powf(-price))).abs() < 1e-9);
        highest = highest.max(price);
    }
    assert!(highest > 10.0 && price < highest, "{highest}, {price}");
}

#[test]
fn rem_drops_arrivals_and_marks_departures_with_its_probability() {
    // One update, at 1 s, with nothing arriving in the interval but 40 packets.
    for ecn in [Ecn::NotEct, Ecn::Ect0] {
        let mut queue = built(&rem(|rem| {
            rem.sampling = Sampling::Interval(Span::from_s(1));
            rem.gamma = 1.0;
            rem.alpha = 100.0;
            rem.ecn = true;
        }));
        let mut heard = Heard::default();
        for id in 0..40 {
            queue.enqueue(probe(id, ecn), ms(0), &mut heard);
        }
        // 100 (40 - 20) + 40 - 1000 = 1040.
        queue.enqueue(probe(40, ecn), ms(1000), &mut heard);
        assert!((average(&queue) - 1040.0).abs() < 1e-9);
        let p = 1.0 - 1.001f64.powi(-1040);
        assert!((probability(&queue) - p).abs() < 1e-9);
        heard = Heard::default();
        let n = 20_000;
        for id in 0..n {
            queue.enqueue(probe(id, ecn), ms(1500), &mut heard);
            while queue.backlog().packets > 40 {
                queue.dequeue(ms(1500), &mut heard);
            }
        }
        let (chosen, others) = match ecn {
            Ecn::NotEct => (heard.dropped.len(), heard.marked.len()),
            _ => (heard.marked.len(), heard.dropped.len()),
        };
        assert_eq!(others, 0);
        let spread = (p * (1.0 - p) * n as f64).sqrt();
        assert!(
            (chosen as f64 - p * n as f64).abs() < 5.0 * spread,
            "{chosen}"
        );
    }
}

#[test]
fn impossible_rem_parameters_are_refused() {
    let refused = |change: fn(&mut RemParams)| refusal(&rem(change));
    assert_eq!(
        refused(|rem| rem.phi = 1.0),
        "phi is not above 1, so a price would mean nothing; accepted: a number above 1"
    );
    assert_eq!(
        refused(|rem| rem.gamma = 0.0),
        "gamma is not above 0; accepted: a number above 0"
    );
    assert_eq!(
        refused(|rem| rem.alpha = -0.1),
        "alpha is not above 0; accepted: a number above 0"
    );
    assert_eq!(
        refused(|rem| rem.target = QueueSize::Packets(0)),
        format!("target {ZERO}")
    );
    assert_eq!(
        refused(|rem| rem.sampling = Sampling::hz(0)),
        "sampling would never update; accepted: a frequency such as \"170 Hz\" or a time such as \"10 ms\""
    );
    assert_eq!(
        refused(|rem| rem.sampling = Sampling::hz(2_000_000)),
        "sampling is below 1 us, which takes too many updates; accepted: a frequency such as \"170 Hz\" or a time such as \"10 ms\""
    );
    assert_eq!(
        refused(|rem| rem.mean_packet = Some(Bytes::ZERO)),
        "mean_packet is zero; accepted: a size such as \"1500 B\""
    );
    assert_eq!(
        warnings(&rem(|rem| rem.target = QueueSize::Packets(300))),
        [
            "target is not below the limit (\"300 packets\"), so the buffer overflows before it gets there"
        ]
    );
}

// BLUE.

fn blue(change: impl FnOnce(&mut BlueParams)) -> QueueParams {
    let mut params = BlueParams::new(Limit::packets(5));
    change(&mut params);
    QueueParams::Blue(params)
}

#[test]
fn blue_rises_with_losses_at_most_once_each_freeze_time() {
    // Feng et al. 2002, figure 3.
    let mut queue = built(&blue(|_| {}));
    let mut heard = Heard::default();
    for id in 0..5 {
        queue.enqueue(probe(id, Ecn::NotEct), ms(0), &mut heard);
    }
    for (at, expected) in [
        (10, 1),
        (20, 1),
        (109, 1),
        (110, 2),
        (209, 2),
        (210, 3),
        (500, 4),
    ] {
        queue.enqueue(probe(9, Ecn::NotEct), ms(at), &mut heard);
        let p = probability(&queue);
        assert!(
            (p - 0.0025 * f64::from(expected)).abs() < 1e-12,
            "{at} ms: {p}"
        );
    }
}

#[test]
fn blue_falls_while_the_link_is_idle() {
    let mut queue = built(&blue(|blue| blue.decrement = 0.0005));
    let mut heard = Heard::default();
    for at in 0..20 {
        for id in 0..7 {
            queue.enqueue(probe(id, Ecn::NotEct), ms(100 * at), &mut heard);
        }
    }
    let before = probability(&queue);
    assert!((before - 0.05).abs() < 1e-12, "{before}");
    while queue.dequeue(ms(1950), &mut heard).is_some() {}
    // Idle from 1950 ms on, frozen until 2000 ms; then at 2000, 2100, ..., 2500 ms.
    let mut falls = |at, times: u32| {
        queue.dequeue(ms(at), &mut heard);
        let expected = before - 0.0005 * f64::from(times);
        let p = probability(&queue);
        assert!((p - expected).abs() < 1e-12, "{at} ms: {p}, {expected}");
    };
    falls(1999, 0);
    falls(2000, 1);
    falls(2099, 1);
    falls(2550, 6);
    falls(20_000_000, 100);
}

#[test]
fn blue_with_a_threshold_takes_a_long_queue_for_a_loss() {
    // Feng et al. 2002, section III: "packet loss (or Qlen > L)".
    let mut queue = built(&blue(|blue| blue.threshold = Some(QueueSize::Packets(2))));
    let mut heard = Heard::default();
    for (id, expected) in [(0, 0.0), (1, 0.0), (2, 0.0), (3, 0.0025)] {
        queue.enqueue(probe(id, Ecn::NotEct), ms(0), &mut heard);
        assert!((probability(&queue) - expected).abs() < 1e-12, "{id}");
    }
    assert!(heard.dropped.is_empty());
}

#[test]
fn blue_drops_or_marks_with_its_probability() {
    for (ecn, on) in [(Ecn::NotEct, true), (Ecn::Ect0, true), (Ecn::Ect0, false)] {
        let mut queue = built(&blue(|blue| {
            blue.increment = 0.3;
            blue.ecn = on;
            blue.freeze_time = Span::from_s(100);
        }));
        let mut heard = Heard::default();
        for id in 0..6 {
            queue.enqueue(probe(id, ecn), ms(0), &mut heard);
        }
        heard = Heard::default();
        let n = 20_000;
        for id in 0..n {
            while queue.backlog().packets > 2 {
                queue.dequeue(ms(1), &mut heard);
            }
            queue.enqueue(probe(id, ecn), ms(1), &mut heard);
        }
        assert!((probability(&queue) - 0.3).abs() < 1e-12);
        let marks = on && ecn == Ecn::Ect0;
        assert_eq!(heard.marked.is_empty(), !marks);
        assert_eq!(heard.dropped.is_empty(), marks);
        let chosen = (heard.marked.len() + heard.dropped.len()) as f64;
        let spread = (0.21 * n as f64).sqrt();
        assert!((chosen - 0.3 * n as f64).abs() < 5.0 * spread, "{chosen}");
    }
}

#[test]
fn impossible_blue_parameters_are_refused() {
    let refused = |change: fn(&mut BlueParams)| refusal(&blue(change));
    assert_eq!(
        refused(|blue| blue.increment = 0.0),
        "increment is not a probability above 0; accepted: a number above 0 and up to 1"
    );
    assert_eq!(
        refused(|blue| blue.decrement = 1.1),
        "decrement is not a probability above 0; accepted: a number above 0 and up to 1"
    );
    assert_eq!(
        refused(|blue| blue.freeze_time = Span::ZERO),
        "freeze_time is zero; accepted: a time such as \"100 ms\""
    );
    assert_eq!(
        refused(|blue| blue.threshold = Some(QueueSize::Bytes(0))),
        format!("threshold {ZERO}")
    );
    assert_eq!(
        warnings(&blue(|blue| {
            blue.decrement = 0.0025;
            blue.threshold = Some(QueueSize::Packets(5));
        })),
        [
            "decrement is not below increment, so the probability hardly stays above 0",
            "threshold is not below the limit (\"5 packets\"), so the buffer overflows before it gets there"
        ]
    );
}

// SRED.

fn sred(change: impl FnOnce(&mut SredParams)) -> QueueParams {
    let mut params = SredParams::new(Limit::packets(60));
    change(&mut params);
    QueueParams::Sred(params)
}

#[test]
fn sred_follows_its_equations() {
    // Ott et al. 1999, sections II and III, with the same random numbers.
    for full in [true, false] {
        let mut queue = built(&sred(|sred| {
            sred.zombies = 20;
            sred.full = full;
        }));
        let mut random = Stream::named(1, 0, "queue");
        let mut calls = Stream::named(5, 0, "calls");
        let mut zombies: Vec<u32> = Vec::new();
        let (mut p, a) = (0.0f64, 0.25 / 20.0);
        let mut drops = 0;
        for id in 0..20_000u64 {
            let flow = (calls.uniform() * calls.uniform() * 400.0) as u32;
            let mut hit = 0.0;
            if zombies.len() < 20 {
                zombies.push(flow);
            } else {
                let i = (random.uniform() * 20.0) as usize;
                if zombies[i] == flow {
                    hit = 1.0;
                } else if random.uniform() < 0.25 {
                    zombies[i] = flow;
                }
            }
            p = (1.0 - a) * p + a * hit;
            let q = queue.backlog().packets;
            let sred = match q {
                20.. => 0.15,
                10.. => 0.15 / 4.0,
                _ => 0.0,
            };
            let mut zap = sred * (1.0 / (256.0 * p)).powi(2).min(1.0);
            if full && hit == 1.0 {
                zap *= 1.0 + 1.0 / p;
            }
            let zap = zap.min(1.0);
            let lost = q < 60 && zap > 0.0 && random.uniform() < zap;
            let mut heard = Heard::default();
            queue.enqueue(of_flow(id, flow), ms(id), &mut heard);
            assert!((average(&queue) - p).abs() < 1e-12);
            assert!((probability(&queue) - zap).abs() < 1e-12, "{zap}");
            assert_eq!(!heard.dropped.is_empty(), lost || q == 60, "{id}");
            drops += u64::from(lost);
            if calls.uniform() < 0.97 {
                queue.dequeue(ms(id), &mut heard);
            }
        }
        assert!(drops > 5, "{drops}");
    }
}

#[test]
fn sred_estimates_the_number_of_flows() {
    // Ott et al. 1999, section II: with N flows of equal rate, P is about 1/N.
    let mut queue = built(&sred(|_| {}));
    let mut random = Stream::named(6, 0, "flows");
    let mut heard = Heard::default();
    let (mut sum, mut count) = (0.0, 0.0);
    for id in 0..200_000u64 {
        let flow = (random.uniform() * 40.0) as u32;
        queue.enqueue(of_flow(id, flow), ms(id), &mut heard);
        queue.dequeue(ms(id), &mut heard);
        heard.dropped.clear();
        if id >= 50_000 {
            sum += average(&queue);
            count += 1.0;
        }
    }
    let flows = count / sum;
    // The mean of P over 150,000 arrivals has a standard deviation below 2 %.
    assert!((flows - 40.0).abs() < 4.0, "{flows}");
}

#[test]
fn impossible_sred_parameters_are_refused() {
    let refused = |change: fn(&mut SredParams)| refusal(&sred(change));
    assert_eq!(
        refused(|sred| sred.max_p = 0.0),
        "max_p is not a probability above 0; accepted: a number above 0 and up to 1"
    );
    assert_eq!(
        refused(|sred| sred.overwrite = 2.0),
        "overwrite is not a probability above 0; accepted: a number above 0 and up to 1"
    );
    assert_eq!(
        refused(|sred| sred.zombies = 0),
        "zombies is zero; accepted: 1 or more"
    );
    assert_eq!(
        refused(|sred| sred.zombies = 1_000_001),
        "zombies is more than a list that is read at random should hold; accepted: up to 1000000"
    );
    let many = LinkFacts {
        flows: std::sync::Arc::new(FlowTable::new(
            vec!["many".to_owned()],
            vec![FlowFacts::default(); 11],
        )),
        ..link()
    };
    let warnings = sred(|sred| sred.zombies = 10).warnings(&many);
    assert_eq!(
        warnings[0].clause,
        "is less than there are flows (11), so hits tell little"
    );
}

// AVQ.

fn avq(change: impl FnOnce(&mut AvqParams)) -> QueueParams {
    let mut params = AvqParams::new(Limit::packets(50));
    change(&mut params);
    QueueParams::Avq(params)
}

#[test]
fn avq_follows_the_pseudo_code() {
    // Kunniyur and Srikant 2001, figure 2; C is 1000 packets/s.
    for (ecn, virtual_limit) in [
        (Ecn::Ect0, None),
        (Ecn::NotEct, Some(QueueSize::Packets(10))),
        (Ecn::Ect0, Some(QueueSize::Bytes(15_000))),
    ] {
        let mut queue = built(&avq(|avq| {
            avq.ecn = true;
            avq.virtual_limit = virtual_limit;
        }));
        let in_bytes = virtual_limit == Some(QueueSize::Bytes(15_000));
        let limit = if virtual_limit.is_some() { 10.0 } else { 50.0 };
        let mut random = Stream::named(7, 0, "calls");
        let (mut vq, mut rate) = (0.0f64, 800.0f64);
        let (mut s, mut adapted, mut now) = (ms(0), ms(0), ms(0));
        let mut signals = 0;
        for id in 0..20_000u64 {
            now += random.uniform_span(Span::ZERO, Span::from_us(1900));
            let mut heard = Heard::default();
            queue.dequeue(now, &mut heard);
            let size = if id % 3 == 0 { 500 } else { 1500 };
            let b = if in_bytes { size as f64 / 1500.0 } else { 1.0 };
            vq = (vq - rate * (now - s).as_secs_f64()).max(0.0);
            s = now;
            let chosen = vq + b > limit;
            if !chosen {
                vq += b;
            }
            if !(chosen && ecn == Ecn::NotEct) {
                let dt = (now - adapted).as_secs_f64();
                adapted = now;
                rate = ((rate + 0.15 * 0.98 * 1000.0 * dt).min(1000.0) - 0.15 * b).max(0.0);
            }
            queue.enqueue(Probe::new(id, size, ecn), now, &mut heard);
            assert_eq!(
                heard.dropped.len() + heard.marked.len(),
                usize::from(chosen),
                "{id}"
            );
            assert_eq!(heard.dropped.is_empty(), !chosen || ecn == Ecn::Ect0);
            assert!((average(&queue) - vq).abs() < 1e-6);
            assert!((probability(&queue) - rate / 1000.0).abs() < 1e-9);
            signals += u64::from(chosen);
        }
        assert!(signals > 10, "{signals}");
    }
}

#[test]
fn impossible_avq_parameters_are_refused() {
    let refused = |change: fn(&mut AvqParams)| refusal(&avq(change));
    assert_eq!(
        refused(|avq| avq.gamma = 1.1),
        "gamma is not a probability above 0; accepted: a number above 0 and up to 1"
    );
    assert_eq!(
        refused(|avq| avq.alpha = 0.0),
        "alpha is not above 0; accepted: a number above 0"
    );
    assert_eq!(
        refused(|avq| avq.virtual_limit = Some(QueueSize::Packets(0))),
        format!("virtual_limit {ZERO}")
    );
    assert_eq!(
        refused(|avq| avq.mean_packet = Some(Bytes::ZERO)),
        "mean_packet is zero; accepted: a size such as \"1500 B\""
    );
    assert_eq!(
        warnings(&avq(|avq| avq.virtual_limit = Some(QueueSize::Bytes(1000)))),
        ["virtual_limit holds no packet in the virtual queue: every packet is marked or dropped"]
    );
}

// CHOKe.

fn choke(change: impl FnOnce(&mut ChokeParams)) -> QueueParams {
    let mut params = ChokeParams {
        w_q: 1.0,
        max_p: 1e-9,
        ..ChokeParams::new(
            Limit::packets(100),
            QueueSize::Packets(10),
            QueueSize::Packets(90),
        )
    };
    change(&mut params);
    QueueParams::Choke(params)
}

#[test]
fn choke_drops_an_arrival_with_a_packet_of_its_own_flow() {
    // Pan et al. 2000, section II: both are dropped; below min_th nothing is compared.
    let mut queue = built(&choke(|_| {}));
    let mut heard = Heard::default();
    for id in 0..10 {
        queue.enqueue(of_flow(id, 1), ms(0), &mut heard);
    }
    assert!(heard.dropped.is_empty());
    // The average is 10 now; no other flow waits.
    queue.enqueue(of_flow(10, 2), ms(0), &mut heard);
    assert!(heard.dropped.is_empty());
    let mut before = queue.backlog().packets;
    while heard.dropped.is_empty() {
        queue.enqueue(of_flow(11, 1), ms(0), &mut heard);
        before = before.max(queue.backlog().packets);
    }
    assert_eq!(heard.dropped.len(), 2);
    assert!(heard.dropped.iter().all(|drop| drop.0.flow == 1));
    assert_eq!(heard.dropped[1].0.id, 11);
    assert_eq!(queue.backlog().packets, before - 1);
}

#[test]
fn linux_choke_compares_only_above_min_th() {
    // sch_choke, choke_enqueue: qavg <= qth_min is a small queue. With w_q = 1 the average is the
    // length, 10 packets from the eleventh arrival on.
    for (flavour, met) in [(Flavour::Paper, true), (Flavour::Linux, false)] {
        let mut queue = built(&choke(|choke| choke.flavour = flavour));
        let mut heard = Heard::default();
        for id in 0..11 {
            queue.enqueue(of_flow(id, 1), ms(0), &mut heard);
        }
        assert_eq!(!heard.dropped.is_empty(), met, "{flavour:?}");
        queue.enqueue(of_flow(11, 1), ms(0), &mut heard);
        assert_eq!(heard.dropped.len(), 2, "{flavour:?}");
    }
}

#[test]
fn without_idle_decay_chokes_average_stays_while_the_queue_is_empty() {
    let average = |idle_decay: bool| {
        let mut queue = built(&choke(|choke| {
            choke.w_q = 0.5;
            choke.idle_decay = idle_decay;
        }));
        let mut heard = Heard::default();
        for id in 0..9 {
            queue.enqueue(of_flow(id, 1), ms(0), &mut heard);
        }
        let before = queue.internals().average.expect("it has an average");
        while queue.dequeue(ms(0), &mut heard).is_some() {}
        queue.enqueue(of_flow(9, 1), ms(60_000), &mut heard);
        queue.internals().average.expect("it has an average") / before
    };
    assert!(average(true) < 1e-9);
    assert_eq!(average(false), 0.5, "one sample of an empty queue");
}

#[test]
fn choke_compares_with_a_packet_drawn_evenly() {
    // Of 16 packets 4 are of the flow: a quarter of its arrivals meets one; with m candidates
    // 1 - (3/4)^m. What is lost is made good before the next.
    for (candidates, p) in [(1, 0.25), (3, 1.0 - 0.75f64.powi(3))] {
        let mut queue = built(&choke(|choke| choke.candidates = candidates));
        let mut heard = Heard::default();
        // One of the flow for three of others, which never come again.
        let fill = |queue: &mut AnyQueue<Probe>, heard: &mut Heard| {
            while queue.dequeue(ms(0), heard).is_some() {}
            for id in 0..16u64 {
                let flow = if id % 4 == 0 { 7 } else { 100 + id as u32 };
                while queue.backlog().packets == id {
                    queue.enqueue(of_flow(id, flow), ms(0), heard);
                    // Its own kind may have met it and gone with it.
                    if queue.backlog().packets < id {
                        return false;
                    }
                }
            }
            true
        };
        let n = 4000;
        let mut met = 0;
        for _ in 0..n {
            while !fill(&mut queue, &mut heard) {}
            heard.dropped.clear();
            queue.enqueue(of_flow(99, 7), ms(0), &mut heard);
            met += u64::from(!heard.dropped.is_empty());
        }
        let spread = (p * (1.0 - p) * n as f64).sqrt();
        assert!(
            (met as f64 - p * n as f64).abs() < 5.0 * spread,
            "{candidates}: {met}"
        );
    }
}

#[test]
fn draws_from_a_store_with_holes_are_even() {
    let mut store = Sparse::new();
    let mut stream = Stream::named(9, 0, "draws");
    for id in 0..40 {
        store.push(probe(id, Ecn::NotEct), ms(0));
    }
    // Every third one goes, and the first ones.
    for place in (0..40).step_by(3).rev() {
        assert_eq!(
            store.take(place).map(|packet| packet.id),
            Some(place as u64)
        );
    }
    let left = store.backlog().packets;
    assert_eq!(left, 26);
    let mut seen = [0u32; 40];
    let n = 26_000;
    for _ in 0..n {
        let place = store.draw(&mut stream).expect("many wait");
        seen[store.get(place).expect("drawn").id as usize] += 1;
    }
    for (id, &times) in seen.iter().enumerate() {
        if id % 3 == 0 {
            assert_eq!(times, 0, "{id}");
        } else {
            // 1000 expected, with a standard deviation of 31.
            assert!(times.abs_diff(1000) < 160, "{id}: {times}");
        }
    }
    let order: Vec<u64> = std::iter::from_fn(|| store.pop())
        .map(|packet| packet.id)
        .collect();
    let expected: Vec<u64> = (0..40).filter(|id| id % 3 != 0).collect();
    assert_eq!(order, expected);
    assert_eq!(store.backlog().bytes, 0);
}

#[test]
fn impossible_choke_parameters_are_refused() {
    let refused = |change: fn(&mut ChokeParams)| refusal(&choke(change));
    assert_eq!(
        refused(|choke| choke.max_th = QueueSize::Bytes(9000)),
        "max_th is in another unit than min_th (10 packets); accepted: both thresholds in packets, or both in bytes or time"
    );
    assert_eq!(
        refused(|choke| choke.max_th = QueueSize::Packets(10)),
        "min_th is not below max_th (10 packets); accepted: less than \"10 packets\""
    );
    assert_eq!(
        refused(|choke| choke.candidates = 0),
        "candidates is zero, which is RED; accepted: 1 or more"
    );
    assert_eq!(
        refused(|choke| choke.flavour = Flavour::Ns2),
        "flavour is \"ns-2\", whose RED has no CHOKe; accepted: \"paper\", \"linux\""
    );
    assert_eq!(
        refused(|choke| choke.w_q = 0.0),
        "w_q is not a probability above 0; accepted: a number above 0 and up to 1"
    );
    assert_eq!(
        refused(|choke| choke.mean_packet = Bytes::ZERO),
        "mean_packet is zero; accepted: a size such as \"1500 B\""
    );
    assert_eq!(
        warnings(&choke(|choke| choke.max_th = QueueSize::Packets(100))),
        [
            "max_th is not below the limit (\"100 packets\"), so the buffer overflows before it gets there"
        ]
    );
}

// GSP.

fn gsp(change: impl FnOnce(&mut GspParams)) -> QueueParams {
    let mut params = GspParams::new(Limit::packets(50), QueueSize::Packets(10));
    change(&mut params);
    QueueParams::Gsp(params)
}

#[test]
fn basic_gsp_drops_once_each_interval_above_the_threshold() {
    // Lautenschlaeger and Francini 2015, basic GSP.
    let mut queue = built(&gsp(|gsp| gsp.adaptive = false));
    let mut heard = Heard::default();
    for at in 0..600u64 {
        queue.enqueue(probe(at, Ecn::NotEct), ms(at), &mut heard);
        if queue.backlog().packets > 15 {
            queue.dequeue(ms(at), &mut heard);
        }
    }
    // Eleven wait from 10 ms on.
    let times: Vec<u64> = heard
        .dropped
        .iter()
        .map(|drop| drop.2.as_ps() / 1_000_000_000)
        .collect();
    assert_eq!(times, [11, 211, 411]);
    assert!(heard.dropped.iter().all(|drop| drop.1 == DropReason::Early));
}

#[test]
fn adaptive_gsp_shortens_its_interval_while_the_queue_is_above_the_threshold() {
    // cumul += alpha (time above) - (time below); interval = preset / (1 + cumul / tau), with
    // preset 200 ms, alpha 2, tau 1 s.
    let mut queue = built(&gsp(|_| {}));
    let mut heard = Heard::default();
    assert_eq!(average(&queue), 0.2);
    for id in 0..12 {
        queue.enqueue(probe(id, Ecn::NotEct), ms(0), &mut heard);
    }
    assert_eq!(dropped(&heard), [11]);
    // 1.5 s above: cumul 3 s.
    queue.dequeue(ms(1500), &mut heard);
    assert!(
        (average(&queue) - 0.05).abs() < 1e-12,
        "{}",
        average(&queue)
    );
    // 1 s below: 2 s.
    queue.dequeue(ms(2500), &mut heard);
    assert!((average(&queue) - 0.2 / 3.0).abs() < 1e-12);
    // It never goes beyond what it was told, either way.
    queue.dequeue(ms(60_000), &mut heard);
    assert_eq!(average(&queue), 0.2);
    for id in 0..12 {
        queue.enqueue(probe(id, Ecn::NotEct), ms(60_000), &mut heard);
    }
    queue.dequeue(ms(600_000), &mut heard);
    assert!(
        (average(&queue) - 0.002).abs() < 1e-12,
        "{}",
        average(&queue)
    );
}

#[test]
fn gsp_does_not_count_the_time_below_after_an_overflow() {
    let mut queue = built(&gsp(|_| {}));
    let mut heard = Heard::default();
    for id in 0..60 {
        queue.enqueue(probe(id, Ecn::NotEct), ms(0), &mut heard);
    }
    assert!(heard.dropped.iter().any(|drop| drop.1 == DropReason::Limit));
    // A second above: cumul 2 s.
    while queue.dequeue(ms(1000), &mut heard).is_some() {}
    let interval = average(&queue);
    assert!((interval - 0.2 / 3.0).abs() < 1e-12, "{interval}");
    queue.dequeue(ms(5000), &mut heard);
    assert_eq!(average(&queue), interval, "time below counted");
    // Above once more, then below: it counts again.
    for id in 0..20 {
        queue.enqueue(probe(id, Ecn::NotEct), ms(5000), &mut heard);
    }
    while queue.dequeue(ms(5000), &mut heard).is_some() {}
    queue.dequeue(ms(5500), &mut heard);
    assert!(average(&queue) > interval);
}

#[test]
fn impossible_gsp_parameters_are_refused() {
    let refused = |change: fn(&mut GspParams)| refusal(&gsp(change));
    assert_eq!(
        refused(|gsp| gsp.threshold = QueueSize::Packets(0)),
        format!("threshold {ZERO}")
    );
    assert_eq!(
        refused(|gsp| gsp.interval = Span::ZERO),
        "interval is zero; accepted: a time such as \"100 ms\""
    );
    assert_eq!(
        refused(|gsp| gsp.alpha = 0.0),
        "alpha is not above 0; accepted: a number above 0"
    );
    assert_eq!(
        refused(|gsp| gsp.tau = Some(Span::ZERO)),
        "tau is zero; accepted: a time such as \"100 ms\""
    );
    assert_eq!(
        refused(|gsp| gsp.least_interval = Some(Span::from_s(1))),
        "least_interval is above interval (200 ms); accepted: at most \"200 ms\""
    );
    assert_eq!(
        warnings(&gsp(|gsp| gsp.interval = Span::from_ms(100))),
        [
            "interval is below a round trip (150 ms): the next packet is dropped before the first \
          drop has shown"
        ]
    );
}
