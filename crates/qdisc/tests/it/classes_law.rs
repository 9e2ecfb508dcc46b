//! Class-based disciplines against what their papers promise and against computations of
//! our own: exact where the discipline is.

use std::collections::{BTreeMap, VecDeque};

use crate::common::{Departures, Heard, Probe, build_on, link_of_four, serve};
use redtail_core::{Bytes, Dscp, Ecn, QueueSize, Rate, Sampling, Span, Stream, Time};
use redtail_qdisc::classify::{OneOrMore, RuleParams};
use redtail_qdisc::laws::pi::{Path, design};
use redtail_qdisc::queues::drr::{DrrClassParams, DrrParams};
use redtail_qdisc::queues::htb::{HtbClassParams, HtbParams};
use redtail_qdisc::queues::pi::PiParams;
use redtail_qdisc::queues::prio::{PrioClassParams, PrioParams};
use redtail_qdisc::queues::tail_drop::TailDropParams;
use redtail_qdisc::queues::tbf::TbfParams;
use redtail_qdisc::queues::wfq::{WfqClassParams, WfqParams};
use redtail_qdisc::{
    GroupFacts, GroupTraffic, Limit, LinkFacts, Protocol, QueueDiscipline, QueueKind, QueueParams,
    Report,
};

const LINK: Rate = Rate::from_bps(1_000_000);

fn fifo() -> QueueParams {
    let limit = Limit::packets(1_000_000);
    QueueParams::TailDrop(TailDropParams { limit })
}

/// Flow i by its port.
fn flow(i: u32) -> Option<OneOrMore<RuleParams>> {
    Some(OneOrMore::one(RuleParams {
        port: Some(OneOrMore::one(1000 + i as u16)),
        ..RuleParams::default()
    }))
}

fn name(i: usize) -> String {
    format!("class{i}")
}

fn prio(queues: Vec<QueueParams>) -> QueueParams {
    let class = queues
        .into_iter()
        .enumerate()
        .map(|(i, queue)| PrioClassParams {
            name: name(i),
            rules: flow(i as u32),
            queue,
        });
    let (class, default) = (class.collect(), Some(name(0)));
    QueueParams::Prio(PrioParams { class, default })
}

fn drr(quanta: &[u64]) -> QueueParams {
    let class = quanta
        .iter()
        .enumerate()
        .map(|(i, quantum)| DrrClassParams {
            name: name(i),
            rules: flow(i as u32),
            quantum: Bytes::new(*quantum),
            queue: fifo(),
        });
    let (class, default) = (class.collect(), Some(name(0)));
    QueueParams::Drr(DrrParams { class, default })
}

fn wfq(weights: &[u32]) -> QueueParams {
    let class = weights
        .iter()
        .enumerate()
        .map(|(i, weight)| WfqClassParams {
            name: name(i),
            rules: flow(i as u32),
            weight: *weight,
            queue: fifo(),
        });
    let (class, default) = (class.collect(), Some(name(0)));
    QueueParams::Wfq(WfqParams { class, default })
}

fn tbf(rate: u64, burst: u64, peak: Option<(u64, u64)>) -> QueueParams {
    QueueParams::Tbf(TbfParams {
        rate: Rate::from_bps(rate),
        burst: Bytes::new(burst),
        peak_rate: peak.map(|(rate, _)| Rate::from_bps(rate)),
        mtu: peak.map(|(_, mtu)| Bytes::new(mtu)),
        queue: Box::new(fifo()),
        follow_after: None,
        follow_hop: None,
    })
}

fn packet(id: u64, flow: u32, size: u64) -> Probe {
    Probe {
        flow,
        ..Probe::new(id, size, Ecn::NotEct)
    }
}

/// `count` packets of each of some flows at once, at the start.
fn backlog(flows: &[u32], count: u64, size: u64) -> Vec<(Time, Probe)> {
    let mut id = 0;
    let each = (0..count).flat_map(|_| flows.iter());
    each.map(|&flow| {
        id += 1;
        (Time::ZERO, packet(id, flow, size))
    })
    .collect()
}

/// Bursts at random times with random sizes, of flows 0 to `flows` - 1; about `load` of the link.
fn random_arrivals(seed: u64, flows: u32, count: u64, load: f64) -> Vec<(Time, Probe)> {
    let mut stream = Stream::named(seed, 0, "arrivals");
    let mut at = Time::ZERO;
    let mean = LINK.tx_time(Bytes::new(780)).as_secs_f64() / load;
    (0..count)
        .map(|id| {
            // Half of the packets come right after the one before: not together with it,
            // which an idle link would tell apart and a computation would not.
            at += Span::from_ps(1);
            if stream.uniform() < 0.5 {
                at += Span::from_secs_f64(4.0 * mean * stream.uniform());
            }
            let size = [60, 580, 1500, 1000][(stream.uniform() * 4.0) as usize];
            let flow = (stream.uniform() * f64::from(flows)) as u32;
            (at, packet(id, flow, size))
        })
        .collect()
}

fn run(spec: &QueueParams, arrivals: &[(Time, Probe)], until: Span) -> Departures {
    let mut queue = build_on(spec, link_of_four(LINK));
    serve(&mut queue, arrivals, LINK, Time::ZERO + until)
}

fn count(sent: &[(Time, Probe)], flow: u32) -> u64 {
    sent.iter()
        .filter(|(_, packet)| packet.flow == flow)
        .count() as u64
}

// Classification.

#[test]
fn the_first_rule_that_fits_decides_and_all_its_conditions_must() {
    let rule = |change: fn(&mut RuleParams)| {
        let mut rule = RuleParams::default();
        change(&mut rule);
        rule
    };
    let class = |name: &str, rules: Vec<RuleParams>| PrioClassParams {
        name: name.to_owned(),
        rules: (!rules.is_empty()).then(|| OneOrMore::list(rules)),
        queue: fifo(),
    };
    let ef_udp = rule(|rule| {
        rule.dscp = Some(OneOrMore::one(Dscp::EF));
        rule.protocol = Some(Protocol::Udp);
    });
    let either = [
        rule(|rule| rule.group = Some(OneOrMore::one("a".to_owned()))),
        rule(|rule| rule.port = Some(OneOrMore::list(vec![7, 1003]))),
    ];
    let spec = QueueParams::Prio(PrioParams {
        class: vec![
            class("both", vec![ef_udp]),
            class("either", either.to_vec()),
            class("rest", vec![]),
        ],
        default: None,
    });
    let mut queue = build_on(&spec, link_of_four(LINK));
    let mut heard = Heard::default();
    let mut id = 0;
    let mut offer = |flow, dscp| {
        id += 1;
        let packet = Probe {
            dscp,
            ..packet(id, flow, 100)
        };
        queue.enqueue(packet, Time::ZERO, &mut heard);
    };
    offer(2, Dscp::EF); // TCP of group c: the rest
    offer(0, Dscp::EF); // TCP of group a: either
    offer(3, Dscp::BEST_EFFORT); // port 1003: either
    offer(3, Dscp::EF); // UDP and EF: both
    offer(1, Dscp::BEST_EFFORT); // UDP, not EF: the rest
    let mut order = Vec::new();
    while let Some(packet) = queue.dequeue(Time::ZERO, &mut heard) {
        order.push(packet.id);
    }
    // Strict priority shows the classes: 4 | 2, 3 | 1, 5.
    assert_eq!(order, [4, 2, 3, 1, 5]);
}

#[test]
fn an_unknown_group_is_refused_with_the_known_ones() {
    let mut params = match prio(vec![fifo(), fifo()]) {
        QueueParams::Prio(params) => params,
        _ => unreachable!(),
    };
    params.class[1].rules = Some(OneOrMore::one(RuleParams {
        group: Some(OneOrMore::one("e".to_owned())),
        ..RuleParams::default()
    }));
    let error = QueueParams::Prio(params).check_at(&link_of_four(LINK));
    assert_eq!(
        error.expect_err("there is no group e").to_string(),
        "class.class1.match names the group \"e\", which is not there; accepted: a, b, c, d"
    );
}

// Strict priority.

#[test]
fn a_class_waits_only_for_those_before_it_and_the_packet_in_transmission() {
    let arrivals = random_arrivals(1, 3, 4000, 0.9);
    let sent = run(
        &prio(vec![fifo(), fifo(), fifo()]),
        &arrivals,
        Span::from_s(1000),
    );
    assert_eq!(sent.len(), arrivals.len());
    // An independent statement of the rule: whatever is sent, nothing more urgent waits.
    let left: BTreeMap<u64, Time> = sent.iter().map(|(at, packet)| (packet.id, *at)).collect();
    for (at, packet) in &sent {
        let more_urgent = arrivals
            .iter()
            .find(|(came, other)| other.flow < packet.flow && came < at && left[&other.id] > *at);
        assert_eq!(more_urgent, None, "{packet:?} at {at:?} went before it");
    }
}

#[test]
fn a_shaped_band_leaves_the_link_to_the_next_and_is_woken_in_time() {
    // Band 0 has 100 kbit/s of the link's 1 Mbit/s, a packet at a time: 1000 B every 80 ms.
    let sent = run(
        &prio(vec![tbf(100_000, 1000, None), fifo()]),
        &backlog(&[0, 1], 200, 1000),
        Span::from_ms(8 * 200 - 1),
    );
    assert_eq!(sent.len(), 200, "the link is never idle");
    let urgent: Vec<_> = sent.iter().filter(|(_, p)| p.flow == 0).collect();
    // Tokens are there every 80 ms, when a transmission of 8 ms ends: no wait at all.
    for (i, (at, _)) in urgent.iter().enumerate() {
        assert_eq!(*at, Time::ZERO + Span::from_ms(80 * i as u64));
    }
    assert_eq!(urgent.len(), 20);
}

// Deficit round robin.

#[test]
fn the_bytes_of_backlogged_classes_differ_by_no_more_than_the_papers_bound() {
    // Shreedhar and Varghese 1996, analytical results: in any interval in which classes i and j are
    // backlogged, |sent_i / f_i - sent_j / f_j| <= 2 Max + Quantum, f_i = Quantum_i / Quantum,
    // Quantum the smallest of all.
    let (quanta, largest) = ([1500, 3000, 2000], 1500);
    let mut arrivals = random_arrivals(2, 3, 6000, 1.0);
    arrivals.iter_mut().for_each(|(at, _)| *at = Time::ZERO);
    let sent = run(&drr(&quanta), &arrivals, Span::from_s(1000));
    let all = |flow| arrivals.iter().filter(|(_, p)| p.flow == flow).count() as u64;
    // As long as all three are backlogged.
    let mut sums = [[0u64; 3]].to_vec();
    let mut packets = [0u64; 3];
    for (_, packet) in &sent {
        let i = packet.flow as usize;
        packets[i] += 1;
        if packets[i] == all(packet.flow) {
            break;
        }
        let mut sum = sums[sums.len() - 1];
        sum[i] += packet.size;
        sums.push(sum);
    }
    assert!(sums.len() > 3000);
    let bound = (2 * largest + 1500) as f64;
    let mut worst: f64 = 0.0;
    for from in (0..sums.len()).step_by(7) {
        for to in (from..sums.len()).step_by(5) {
            let shares = [0, 1, 2]
                .map(|i| (sums[to][i] - sums[from][i]) as f64 / (quanta[i] as f64 / 1500.0));
            let most = shares.into_iter().fold(0.0, f64::max);
            let least = shares.into_iter().fold(f64::INFINITY, f64::min);
            worst = worst.max(most - least);
        }
    }
    assert!(worst <= bound, "{worst} > {bound}");
    assert!(worst > 1500.0, "the bound was not tried: {worst}");
}

#[test]
fn a_turn_sends_up_to_the_deficit_and_keeps_the_rest() {
    // The example of the paper's figures 2 and 3: quantum 500, first queue 200, 750.
    let mut arrivals = Vec::new();
    for (flow, sizes) in [(0, [200, 750, 200]), (1, [500, 500, 500])] {
        for size in sizes {
            let id = arrivals.len() as u64;
            arrivals.push((Time::ZERO, packet(id, flow, size)));
        }
    }
    let mut queue = build_on(&drr(&[500, 500]), link_of_four(LINK));
    let mut heard = Heard::default();
    for (at, packet) in arrivals {
        queue.enqueue(packet, at, &mut heard);
    }
    let sent = std::iter::from_fn(|| queue.dequeue(Time::ZERO, &mut heard));
    let sent: Vec<_> = sent.map(|packet| (packet.flow, packet.size)).collect();
    // Round 1: 200 (300 kept), 500. Round 2: 750 with 800 (50 kept), 500. Round 3: 200, 500.
    let expected = [(0, 200), (1, 500), (0, 750), (1, 500), (0, 200), (1, 500)];
    assert_eq!(sent, expected);
}

#[test]
fn rounds_in_which_no_class_can_send_are_made_at_once() {
    // Quanta far below the packets, against the paper's rounds one by one.
    let quanta = [3u64, 1, 7];
    let mut stream = Stream::named(4, 0, "sizes");
    let mut rounds: Vec<VecDeque<Probe>> = vec![VecDeque::new(); 3];
    let mut queue = build_on(&drr(&quanta), link_of_four(LINK));
    let mut heard = Heard::default();
    for id in 0..300 {
        let size = 1 + (stream.uniform() * 9000.0) as u64;
        let packet = packet(id, (stream.uniform() * 3.0) as u32, size);
        rounds[packet.flow as usize].push_back(packet);
        queue.enqueue(packet, Time::ZERO, &mut heard);
    }
    // In the order in which the classes became active, which is that of their first packets.
    let mut order: Vec<usize> = (0..3).collect();
    order.sort_by_key(|&i| rounds[i][0].id);
    let mut expected = Vec::new();
    let mut deficits = [0; 3];
    while rounds.iter().any(|waiting| !waiting.is_empty()) {
        for &i in &order {
            deficits[i] += quanta[i];
            while rounds[i].front().is_some_and(|it| it.size <= deficits[i]) {
                let packet = rounds[i].pop_front().expect("seen above");
                deficits[i] -= packet.size;
                expected.push(packet.id);
            }
            if rounds[i].is_empty() {
                deficits[i] = 0;
            }
        }
    }
    let sent: Vec<u64> = std::iter::from_fn(|| queue.dequeue(Time::ZERO, &mut heard))
        .map(|packet| packet.id)
        .collect();
    assert_eq!(sent, expected);
    // A million million rounds, which would take hours one by one.
    queue.enqueue(packet(300, 1, 1 << 40), Time::ZERO, &mut heard);
    assert!(queue.dequeue(Time::ZERO, &mut heard).is_some());
}

// Weighted fair queueing.

#[test]
fn a_packet_leaves_no_later_than_at_its_own_rate_and_one_packet() {
    // Bennett and Zhang 1997, the delay bound of WF2Q+, per packet by the guaranteed rate clock:
    // departure <= G + L_max / r, with G_k = max(arrival_k, G_(k-1)) + L_k / r_i. Exact: times
    // r in byte times, all over the common denominator of the shares.
    let weights = [5u32, 2, 1];
    let all: u32 = weights.iter().sum();
    for seed in 0..5 {
        let arrivals = random_arrivals(100 + seed, 3, 3000, 1.1);
        let sent = run(&wfq(&weights), &arrivals, Span::from_s(1000));
        assert_eq!(sent.len(), arrivals.len());
        let left: BTreeMap<u64, Time> = sent.iter().map(|(at, p)| (p.id, *at)).collect();
        let mut clock = [0u128; 3];
        let mut tight = u128::MAX;
        for (at, packet) in &arrivals {
            let i = packet.flow as usize;
            // A byte takes 8 us on the link: picoseconds times the weight are whole.
            let weight = u128::from(weights[i]);
            let own = u128::from(packet.size) * 8_000_000 * u128::from(all);
            clock[i] = clock[i].max(u128::from(at.as_ps()) * weight) + own;
            let end = left[&packet.id] + LINK.tx_time(Bytes::new(packet.size));
            let latest = clock[i] + 1500 * 8_000_000 * weight;
            let end = u128::from(end.as_ps()) * weight;
            assert!(end <= latest, "{packet:?} of {at:?} ends late");
            tight = tight.min((latest - end) / weight);
        }
        assert!(
            tight < 1500 * 8_000_000,
            "no packet came close to the bound: {tight}"
        );
    }
}

#[test]
fn shares_are_those_of_the_weights_to_a_packet() {
    let sent = run(
        &wfq(&[5, 2, 1]),
        &backlog(&[0, 1, 2], 1000, 1000),
        Span::from_ms(8 * 800 - 1),
    );
    let counts = [0, 1, 2].map(|flow| count(&sent, flow));
    assert_eq!(counts, [500, 200, 100]);
}

#[test]
fn a_heavy_class_does_not_run_ahead_of_its_share() {
    // Bennett and Zhang 1996, figure 2: a class with half of the link and many packets
    // alternates with the others, where fair queueing by finish times alone sends its
    // share of a whole round at once.
    let sent = run(
        &wfq(&[3, 1, 1, 1]),
        &backlog(&[0, 1, 2, 3], 30, 1000),
        Span::from_ms(8 * 36 - 1),
    );
    let flows: Vec<_> = sent.iter().map(|(_, packet)| packet.flow).collect();
    let heavy: Vec<_> = flows.iter().step_by(2).collect();
    assert!(heavy.iter().all(|flow| **flow == 0), "{flows:?}");
    assert_eq!(count(&sent, 0), 18);
}

#[test]
fn a_class_that_was_idle_gets_no_credit_for_it() {
    // Flow 1 is alone for 100 packets; then flow 0 comes, and they alternate at once.
    let mut arrivals = backlog(&[1], 300, 1000);
    let late = (0..100).map(|i| (Time::ZERO + Span::from_ms(796), packet(1000 + i, 0, 1000)));
    arrivals.extend(late);
    let sent = run(&wfq(&[1, 1]), &arrivals, Span::from_s(100));
    let after: Vec<_> = sent[100..200].iter().map(|(_, p)| p.flow).collect();
    let of_late = after.iter().filter(|flow| **flow == 0).count();
    assert!((49..=51).contains(&of_late), "{of_late}");
}

// Token bucket.

/// The bytes that left before each departure, and when.
fn curve(sent: &[(Time, Probe)]) -> Vec<(Time, u64, u64)> {
    let mut before = 0;
    let each = sent.iter();
    each.map(|(at, packet)| {
        let here = (*at, before, before + packet.size);
        before += packet.size;
        here
    })
    .collect()
}

/// Whether at most `burst` bytes and what `rate` brings leave in every interval, exactly.
fn conforms(sent: &[(Time, Probe)], rate: u64, burst: u64) -> bool {
    let curve = curve(sent);
    curve.iter().enumerate().all(|(i, (from, before, _))| {
        curve[i..].iter().all(|(to, _, after)| {
            let bits = u128::from(8 * (after - before)) * 1_000_000_000_000;
            let ps = (*to - *from).as_ps();
            bits <= u128::from(8 * burst) * 1_000_000_000_000 + u128::from(rate) * u128::from(ps)
        })
    })
}

#[test]
fn output_conforms_to_rate_and_burst_in_every_interval_and_is_not_slower() {
    let (rate, burst) = (300_000, 4000);
    let arrivals = random_arrivals(7, 1, 1500, 0.35);
    let sent = run(&tbf(rate, burst, None), &arrivals, Span::from_s(1000));
    assert_eq!(sent.len(), arrivals.len());
    assert!(conforms(&sent, rate, burst));
    assert!(!conforms(&sent, rate, burst - 1), "the bucket is used up");
    assert!(!conforms(&sent, rate - 300, burst), "the rate is used up");
    // Not slower: each packet leaves when it has come, the link is free and the tokens are
    // there, computed anew from all departures before.
    let scale = 1_000_000_000_000_i128;
    let (full, mut tokens) = (i128::from(8 * burst) * scale, i128::from(8 * burst) * scale);
    let (mut since, mut free) = (Time::ZERO, Time::ZERO);
    for ((came, _), (at, packet)) in arrivals.iter().zip(&sent) {
        let cost = i128::from(8 * packet.size) * scale;
        let ready = (*came).max(free).max(since);
        let gain = |now: Time| i128::from(rate as i64) * i128::from((now - since).as_ps());
        let there = (tokens + gain(ready)).min(full);
        let wait = (cost - there).max(0) as u128;
        let expected = ready + Span::from_ps(wait.div_ceil(u128::from(rate)) as u64);
        assert_eq!(*at, expected, "{packet:?}");
        tokens = (tokens + gain(expected)).min(full) - cost;
        since = expected;
        free = expected + LINK.tx_time(Bytes::new(packet.size));
    }
}

#[test]
fn bursts_do_not_exceed_the_peak_rate() {
    let sent = run(
        &tbf(100_000, 20_000, Some((400_000, 1500))),
        &random_arrivals(8, 1, 800, 0.15),
        Span::from_s(1000),
    );
    assert_eq!(sent.len(), 800);
    assert!(conforms(&sent, 400_000, 1500));
    assert!(conforms(&sent, 100_000, 20_000));
    assert!(!conforms(&sent, 390_000, 1500), "the peak rate is used up");
}

#[test]
fn a_packet_larger_than_the_bucket_is_dropped_and_holds_up_nobody() {
    let mut queue = build_on(&tbf(100_000, 1000, None), link_of_four(LINK));
    let mut heard = Heard::default();
    queue.enqueue(packet(1, 0, 1001), Time::ZERO, &mut heard);
    queue.enqueue(packet(2, 0, 1000), Time::ZERO, &mut heard);
    assert_eq!(heard.dropped.len(), 1);
    let sent = queue.dequeue(Time::ZERO, &mut heard);
    assert_eq!(sent.map(|packet| packet.id), Some(2));
}

// Hierarchical token bucket.

fn htb_class(name: &str, kbps: u64, ceil: u64) -> HtbClassParams {
    HtbClassParams {
        name: name.to_owned(),
        rules: None,
        rate: Rate::from_bps(kbps * 1000),
        ceil: Some(Rate::from_bps(ceil * 1000)),
        prio: 0,
        quantum: None,
        burst: Bytes::new(1600),
        cburst: Bytes::new(1600),
        queue: None,
        class: Vec::new(),
    }
}

fn leaf(i: usize, kbps: u64, ceil: u64) -> HtbClassParams {
    HtbClassParams {
        rules: flow(i as u32),
        queue: Some(Box::new(fifo())),
        ..htb_class(&name(i), kbps, ceil)
    }
}

fn inner(name: &str, kbps: u64, ceil: u64, class: Vec<HtbClassParams>) -> HtbClassParams {
    HtbClassParams {
        class,
        ..htb_class(name, kbps, ceil)
    }
}

fn htb(class: Vec<HtbClassParams>) -> QueueParams {
    let default = Some(name(0));
    QueueParams::Htb(HtbParams {
        class,
        default,
        follow_after: None,
        follow_hop: None,
    })
}

/// HTB's rule without its data structures: every decision from the list of all packets
/// sent, with priorities that are all different so that no turns matter.
struct PlainHtb {
    /// Parent, rate, ceiling in bit/s; parents first.
    classes: Vec<(Option<usize>, u64, u64)>,
    /// For each flow its class and priority.
    leaves: Vec<(usize, u8)>,
    levels: Vec<usize>,
    /// What each class's buckets of rate and ceiling were charged: when, and bytes.
    charged: Vec<[Vec<(Time, u64)>; 2]>,
}

const SCALE: i128 = 1_000_000_000_000;

impl PlainHtb {
    fn new(classes: Vec<(Option<usize>, u64, u64)>, leaves: Vec<(usize, u8)>) -> Self {
        let depth = |mut class: usize| {
            let mut depth = 0;
            while let Some(parent) = classes[class].0 {
                (class, depth) = (parent, depth + 1);
            }
            depth
        };
        let is_leaf = |class: usize| leaves.iter().any(|(leaf, _)| *leaf == class);
        let level = |class| if is_leaf(class) { 0 } else { 7 - depth(class) };
        Self {
            levels: (0..classes.len()).map(level).collect(),
            charged: vec![Default::default(); classes.len()],
            classes,
            leaves,
        }
    }

    /// Tokens of a bucket of 1600 B that was full at the start.
    fn tokens(&self, class: usize, which: usize, now: Time) -> i128 {
        let (_, rate, ceil) = self.classes[class];
        let rate = i128::from([rate, ceil][which]);
        let (mut tokens, mut since) = (12_800 * SCALE, Time::ZERO);
        for (at, bytes) in &self.charged[class][which] {
            tokens += rate * i128::from((*at - since).as_ps());
            tokens = tokens.min(12_800 * SCALE) - i128::from(8 * bytes) * SCALE;
            since = *at;
        }
        (tokens + rate * i128::from((now - since).as_ps())).min(12_800 * SCALE)
    }

    /// The level at which a leaf could be served now.
    fn lender(&self, leaf: usize, now: Time) -> Option<usize> {
        let mut class = leaf;
        loop {
            if self.tokens(class, 1, now) < 0 {
                return None;
            }
            if self.tokens(class, 0, now) >= 0 {
                return Some(self.levels[class]);
            }
            class = self.classes[class].0?;
        }
    }

    /// The next moment at which some bucket is no longer overdrawn.
    fn next_change(&self, now: Time) -> Time {
        let both = (0..self.classes.len()).flat_map(|class| [(class, 0), (class, 1)]);
        let waits = both.filter_map(|(class, which)| {
            let tokens = self.tokens(class, which, now);
            let (_, rate, ceil) = self.classes[class];
            let rate = u128::from([rate, ceil][which]);
            (tokens < 0).then(|| (-tokens as u128).div_ceil(rate) as u64)
        });
        now + Span::from_ps(waits.min().expect("something is overdrawn"))
    }

    fn serve(&mut self, arrivals: &[(Time, Probe)]) -> Departures {
        let mut waiting: Vec<Vec<(Time, Probe)>> = vec![Vec::new(); self.leaves.len()];
        for arrival in arrivals.iter().rev() {
            waiting[arrival.1.flow as usize].push(*arrival);
        }
        let (mut now, mut sent) = (Time::ZERO, Departures::new());
        while let Some(first) = waiting.iter().filter_map(|w| Some(w.last()?.0)).min() {
            now = now.max(first);
            let candidates = (0..waiting.len()).filter(|flow| {
                let head = waiting[*flow].last();
                head.is_some_and(|(came, _)| *came <= now)
            });
            let best = candidates
                .filter_map(|flow| {
                    let (class, prio) = self.leaves[flow];
                    Some((self.lender(class, now)?, prio, flow))
                })
                .min();
            let Some((level, _, flow)) = best else {
                let coming = waiting.iter().filter_map(|w| Some(w.last()?.0));
                let coming = coming.filter(|at| *at > now).min();
                let change = self.next_change(now);
                now = coming.map_or(change, |at| at.min(change));
                continue;
            };
            let (_, packet) = waiting[flow].pop().expect("it waits");
            sent.push((now, packet));
            let mut class = Some(self.leaves[flow].0);
            while let Some(here) = class {
                if self.levels[here] >= level {
                    self.charged[here][0].push((now, packet.size));
                }
                self.charged[here][1].push((now, packet.size));
                class = self.classes[here].0;
            }
            now += LINK.tx_time(Bytes::new(packet.size));
        }
        sent
    }
}

#[test]
fn borrowing_is_exact_to_the_packet_and_the_picosecond() {
    // root 900/900: { a 500/800: { 0 100/300, 1 300/800 }, b 200/900: { 2 100/600, 3 50/100 } }
    let mut leaves = [
        leaf(0, 100, 300),
        leaf(1, 300, 800),
        leaf(2, 100, 600),
        leaf(3, 50, 100),
    ];
    let prios = [3, 1, 0, 2];
    for (leaf, prio) in leaves.iter_mut().zip(prios) {
        leaf.prio = prio;
    }
    let [zero, one, two, three] = leaves;
    let a = inner("a", 500, 800, vec![zero, one]);
    let b = inner("b", 200, 900, vec![two, three]);
    let spec = htb(vec![inner("root", 900, 900, vec![a, b])]);
    let classes = vec![
        (None, 900_000, 900_000),
        (Some(0), 500_000, 800_000),
        (Some(1), 100_000, 300_000),
        (Some(1), 300_000, 800_000),
        (Some(0), 200_000, 900_000),
        (Some(4), 100_000, 600_000),
        (Some(4), 50_000, 100_000),
    ];
    let places = [2, 3, 5, 6];
    for (seed, load) in [(1, 0.5), (2, 0.9), (3, 1.3), (4, 3.0)] {
        let arrivals = random_arrivals(seed, 4, 500, load);
        let sent = run(&spec, &arrivals, Span::from_s(1000));
        let leaves = places.into_iter().zip(prios).collect();
        let expected = PlainHtb::new(classes.clone(), leaves).serve(&arrivals);
        assert_eq!(sent.len(), expected.len());
        for (n, (one, other)) in sent.iter().zip(&expected).enumerate() {
            let of = |(at, packet): &(Time, Probe)| (*at, packet.id);
            assert_eq!(of(one), of(other), "departure {n}, load {load}");
        }
    }
}

#[test]
fn what_is_left_goes_to_equal_priorities_by_quantum() {
    // 100 and 200 kbit/s promised of 900; the other 600 in proportion to the quanta,
    // which are the rates' by default but 1000 B at least: given here, 1 to 2.
    let mut leaves = [leaf(0, 100, 900), leaf(1, 200, 900)];
    leaves[0].quantum = Some(Bytes::new(1000));
    leaves[1].quantum = Some(Bytes::new(2000));
    let spec = htb(vec![inner("root", 900, 900, leaves.into())]);
    // 80 s, so that the rates are whole packets: 300 kbit/s is 3000 packets of 1000 B.
    let sent = run(&spec, &backlog(&[0, 1], 9000, 1000), Span::from_s(80));
    // Each is promised its rate and gets its part of the rest: 100 + 200, 200 + 400. A bucket of
    // 1600 B lets two packets more pass at the start, and a turn is two packets.
    let counts = [0, 1].map(|flow| count(&sent, flow));
    assert_eq!(counts[0] + counts[1], 9002);
    assert!(counts[0].abs_diff(3000) <= 2, "{counts:?}");
    assert!(counts[1].abs_diff(6000) <= 2, "{counts:?}");
}

#[test]
fn what_the_root_lends_is_shared_by_the_leaves_not_by_their_parents() {
    // As in Linux: a feed's round lasts until all in it had their turn, so two leaves of one
    // class get twice what one leaf of another gets, quanta being equal.
    let mut leaves = [leaf(0, 10, 900), leaf(1, 10, 900), leaf(2, 10, 900)];
    for leaf in &mut leaves {
        leaf.quantum = Some(Bytes::new(1000));
    }
    let [zero, one, two] = leaves;
    let a = inner("a", 20, 900, vec![zero, one]);
    let b = inner("b", 10, 900, vec![two]);
    let spec = htb(vec![inner("root", 900, 900, vec![a, b])]);
    let sent = run(&spec, &backlog(&[0, 1, 2], 9000, 1000), Span::from_s(80));
    let counts = [0, 1, 2].map(|flow| count(&sent, flow));
    assert_eq!(counts.iter().sum::<u64>(), 9002);
    assert!(counts.iter().all(|n| n.abs_diff(3000) <= 2), "{counts:?}");
}

#[test]
fn what_is_left_goes_to_the_most_urgent_up_to_its_ceiling() {
    let mut leaves = [leaf(0, 100, 900), leaf(1, 100, 500), leaf(2, 100, 900)];
    for (leaf, prio) in leaves.iter_mut().zip([1, 0, 2]) {
        leaf.prio = prio;
    }
    let spec = htb(vec![inner("root", 900, 900, leaves.into())]);
    let sent = run(&spec, &backlog(&[0, 1, 2], 9000, 1000), Span::from_s(80));
    // Class 1 to its ceiling, class 2 its promise alone, class 0 the rest.
    let counts = [0, 1, 2].map(|flow| count(&sent, flow));
    assert_eq!(counts.iter().sum::<u64>(), 9002);
    assert!(counts[1].abs_diff(5000) <= 2, "{counts:?}");
    assert!(counts[2].abs_diff(1000) <= 2, "{counts:?}");
}

#[test]
fn alone_a_class_reaches_its_ceiling_exactly() {
    let spec = htb(vec![inner("root", 900, 900, vec![leaf(0, 100, 400)])]);
    let sent = run(&spec, &backlog(&[0], 500, 1000), Span::from_s(1000));
    // Packet k + 1 leaves once the ceiling's bucket, 1600 B at first and in debt since, is
    // not overdrawn: (1000 k - 1600) B at 50 B/ms. The first two find tokens.
    for (k, (at, _)) in sent.iter().enumerate() {
        let paid = (1000 * k as u64).saturating_sub(1600) * 20;
        let link = 8000 * k as u64;
        assert_eq!(
            *at,
            Time::ZERO + Span::from_us(paid.max(link)),
            "packet {k}"
        );
    }
}

// What is refused and what is warned about.

fn refusal(spec: &QueueParams) -> String {
    let link = LinkFacts {
        largest_packet: Bytes::new(1500),
        ..link_of_four(LINK)
    };
    let checked = spec.check().and_then(|()| spec.check_at(&link));
    checked.expect_err("it cannot be run").to_string()
}

fn with_classes(change: impl FnOnce(&mut PrioParams)) -> QueueParams {
    let QueueParams::Prio(mut params) = prio(vec![fifo(), fifo()]) else {
        unreachable!()
    };
    change(&mut params);
    QueueParams::Prio(params)
}

#[test]
fn classes_that_cannot_be_told_apart_are_refused() {
    let cases = [
        (
            with_classes(|prio| prio.class.clear()),
            "class has no class; accepted: one class or more",
        ),
        (
            with_classes(|prio| prio.class[1].name = "class0".to_owned()),
            "class has a class called \"class0\", and so is another; accepted: a name of its own for each class",
        ),
        (
            with_classes(|prio| prio.class[1].name = "a.b".to_owned()),
            "class has a class called \"a.b\", which cannot be part of a key; accepted: letters, digits, \"_\" and \"-\"",
        ),
        (
            with_classes(|prio| prio.default = Some("rest".to_owned())),
            "default is no class with a queue; accepted: class0, class1",
        ),
        (
            with_classes(|prio| prio.default = None),
            "default is not given, and every class has a match: other packets would have no class; accepted: class0, class1",
        ),
        (
            with_classes(|prio| {
                prio.default = None;
                prio.class.iter_mut().for_each(|class| class.rules = None);
            }),
            "default is not given, and more than one class has no match: class0, class1; accepted: class0, class1",
        ),
        (
            with_classes(|prio| prio.class[0].rules = Some(OneOrMore::one(RuleParams::default()))),
            "class.class0.match has a rule without a condition; accepted: dscp, protocol, port or group in each rule, \
             or no match for the default class",
        ),
        (
            with_classes(|prio| {
                let limit = Limit::packets(0);
                prio.class[1].queue = QueueParams::TailDrop(TailDropParams { limit });
            }),
            "class.class1.queue.limit would drop every packet; accepted: at least \"1 packet\", or at least one packet's \
             size in bytes",
        ),
    ];
    for (spec, expected) in cases {
        assert_eq!(refusal(&spec), expected);
    }
}

#[test]
fn shares_and_rates_that_mean_nothing_are_refused() {
    let one = |class: HtbClassParams| htb(vec![inner("root", 900, 900, vec![class])]);
    let mut deep = leaf(0, 1, 1);
    for i in 0..8 {
        deep = inner(&format!("inner{i}"), 1, 1, vec![deep]);
    }
    let cases = [
        (
            drr(&[1500, 0]),
            "class.class1.quantum is no share of a turn",
        ),
        (
            wfq(&[0]),
            "class.class0.weight is no share; accepted: a whole number from 1 to 10000",
        ),
        (wfq(&[10_001]), "class.class0.weight is no share"),
        (tbf(0, 2000, None), "rate is zero"),
        (tbf(1, 0, None), "burst would let no packet pass"),
        (
            tbf(1000, 1499, None),
            "burst is below the largest packet (1500 B), which could never leave; accepted: at least \"1500 B\"",
        ),
        (
            tbf(1000, 2000, Some((1000, 1500))),
            "peak_rate is not above rate (1 kbit/s); accepted: more than \"1 kbit/s\"",
        ),
        (
            tbf(1000, 2000, Some((2000, 1499))),
            "mtu is below the largest packet (1500 B)",
        ),
        (
            one(leaf(0, 500, 400)),
            "class.root.class.class0.ceil is below rate (500 kbit/s); accepted: at least \"500 kbit/s\"",
        ),
        (one(leaf(0, 0, 400)), "class.root.class.class0.rate is zero"),
        (
            one(HtbClassParams {
                prio: 8,
                ..leaf(0, 1, 1)
            }),
            "class.root.class.class0.prio is no priority; accepted: 0 to 7",
        ),
        (
            one(HtbClassParams {
                queue: None,
                ..leaf(0, 1, 1)
            }),
            "class.root.class.class0.queue is missing, and there are no classes below; accepted: a queue, or a list of \
             classes",
        ),
        (
            one(HtbClassParams {
                class: vec![leaf(1, 1, 1)],
                ..leaf(0, 1, 1)
            }),
            "class.root.class.class0.queue stands beside classes",
        ),
        (
            one(HtbClassParams {
                rules: flow(2),
                ..inner("x", 1, 1, vec![leaf(0, 1, 1)])
            }),
            "class.root.class.x.match has no meaning for a class of classes",
        ),
        (
            one(inner("x", 1, 1, vec![leaf(0, 1, 1), leaf(0, 1, 1)])),
            "class.root.class.x.class has a class called \"class0\", and so is another",
        ),
        (
            htb(vec![deep]),
            "class.inner7.class.inner6.class.inner5.class.inner4.class.inner3.class.inner2.class.inner1.class.inner0.class is one level too many",
        ),
    ];
    for (spec, expected) in cases {
        let message = refusal(&spec);
        assert!(message.starts_with(expected), "{message}");
    }
}

fn warnings(spec: &QueueParams) -> Vec<String> {
    let link = LinkFacts {
        largest_packet: Bytes::new(1500),
        ..link_of_four(LINK)
    };
    spec.check().expect("it can be run");
    let found = spec.warnings(&link).into_iter();
    found
        .map(|warning| format!("{} {}", warning.key, warning.clause))
        .collect()
}

/// A link that the four groups of [`link_of_four`] cross, "a" with 8 and "c" with 2 TCP
/// flows, "b" and "d" with UDP.
fn link_by_group() -> LinkFacts {
    let tcp = |group, flows, rtt: &[u64], packet| GroupFacts {
        group,
        flows,
        packet: Bytes::new(packet),
        traffic: GroupTraffic::Tcp {
            round_trips: rtt.iter().map(|&ms| Span::from_ms(ms)).collect(),
            delayed_acks: group == 0,
            users: false,
        },
    };
    let udp = |group, kbps: u64, packet| GroupFacts {
        group,
        flows: 1,
        packet: Bytes::new(packet),
        traffic: GroupTraffic::Udp {
            rate: Rate::from_bps(1000 * kbps),
            packet: packet as f64,
        },
    };
    let groups = vec![
        tcp(0, 8, &[20, 40], 1500),
        udp(1, 30, 1000),
        tcp(2, 2, &[100], 576),
        udp(3, 90, 500),
    ];
    LinkFacts::of_groups(LINK, groups, link_of_four(LINK).flows)
}

/// What the queues within `spec` see of [`link_by_group`], by key.
fn seen(spec: &QueueParams) -> Vec<(String, LinkFacts)> {
    let link = link_by_group();
    spec.check().expect("it can be run");
    spec.check_at(&link).expect("it can be run there");
    let mut seen = Vec::new();
    spec.inner(&link, &mut |key, _, facts| {
        seen.push((key.to_owned(), facts.clone()))
    });
    seen
}

#[test]
fn the_facts_of_a_link_are_the_sum_of_its_groups() {
    let link = link_by_group();
    assert_eq!(link.tcp_flows, 10);
    // Eight flows with 30 ms on average, two with 100.
    assert_eq!(link.mean_round_trip, Some(Span::from_ms(44)));
    assert_eq!(link.max_round_trip, Some(Span::from_ms(100)));
    let ms = |ms, flows| (Span::from_ms(ms), flows);
    assert_eq!(link.round_trips, [ms(20, 4.0), ms(40, 4.0), ms(100, 2.0)]);
    assert_eq!(link.largest_packet, Bytes::new(1500));
    assert_eq!(link.tcp_packet, Bytes::new(1500));
    assert_eq!(link.udp_rate, Rate::from_bps(120_000));
    // 3.75 and 22.5 packets/s.
    assert_eq!(link.udp_packet, Bytes::new(571));
    assert!(link.delayed_acks);
}

#[test]
fn the_queue_of_a_class_sees_the_rate_and_the_flows_of_the_class() {
    let rule = |group: &str| {
        Some(OneOrMore::one(RuleParams {
            group: Some(OneOrMore::one(group.to_owned())),
            ..RuleParams::default()
        }))
    };
    let mut leaves = vec![leaf(0, 100, 200), leaf(1, 300, 400), leaf(2, 500, 600)];
    leaves[0].rules = rule("c");
    leaves[1].rules = rule("d");
    leaves[2].rules = None;
    let mut tree = htb(vec![inner("root", 1000, 1000, leaves)]);
    let QueueParams::Htb(params) = &mut tree else {
        unreachable!()
    };
    params.default = None;
    let seen = seen(&tree);
    let keys: Vec<_> = seen.iter().map(|(key, _)| &**key).collect();
    let key = |n: u32| format!("class.root.class.class{n}.queue");
    assert_eq!(keys, [key(0), key(1), key(2)]);
    let [c, d, rest] = [0, 1, 2].map(|i| &seen[i].1);
    assert_eq!(c.rate, Rate::from_bps(100_000));
    assert_eq!(
        (c.tcp_flows, c.mean_round_trip),
        (2, Some(Span::from_ms(100)))
    );
    assert_eq!(
        (c.largest_packet, c.udp_rate.as_bps()),
        (Bytes::new(576), 0)
    );
    assert!(!c.delayed_acks);
    assert_eq!(d.rate, Rate::from_bps(300_000));
    assert_eq!(
        (d.tcp_flows, d.mean_round_trip, d.max_round_trip),
        (0, None, None)
    );
    assert_eq!(
        (d.udp_rate.as_bps(), d.udp_packet),
        (90_000, Bytes::new(500))
    );
    assert_eq!(d.tcp_packet, Bytes::ZERO);
    // What no rule fits.
    assert_eq!(rest.rate, Rate::from_bps(500_000));
    assert_eq!(
        (rest.tcp_flows, rest.max_round_trip),
        (8, Some(Span::from_ms(40)))
    );
    assert_eq!(
        (rest.udp_rate.as_bps(), rest.udp_packet),
        (30_000, Bytes::new(1000))
    );
}

#[test]
fn a_queue_in_a_class_is_computed_for_the_flows_of_the_class() {
    // PI with a third of the link for the two flows of "c", its gains computed or given.
    let with_gains = |gains: Option<(f64, f64)>| {
        let QueueParams::Drr(mut params) = drr(&[1500, 3000]) else {
            unreachable!()
        };
        params.default = Some(name(1));
        params.class[0].rules = flow(2);
        params.class[0].queue = QueueParams::Pi(PiParams {
            limit: Limit::packets(100),
            q_ref: QueueSize::Packets(5),
            a: gains.map(|(a, _)| a),
            b: gains.map(|(_, b)| b),
            tune: None,
            flows: None,
            rtt: None,
            sampling: Sampling::hz(20),
            mean_packet: None,
            ecn: false,
        });
        QueueParams::Drr(params)
    };
    let dropped = |gains| {
        let mut queue = build_on(&with_gains(gains), link_by_group());
        let mut heard = Heard::default();
        for id in 0..2000 {
            let now = Time::ZERO + Span::from_ms(13 * id);
            queue.enqueue(packet(id, 2, 576), now, &mut heard);
            if id % 8 > 0 {
                queue.dequeue(now, &mut heard);
            }
        }
        let each = heard.dropped.into_iter();
        each.map(|drop| drop.0).collect::<Vec<_>>()
    };
    let gains = |flows, rate: f64, packet: f64, rtt| {
        let capacity = rate / (8.0 * packet);
        let path = Path {
            capacity,
            flows,
            round_trip: rtt + 5.0 / capacity,
        };
        Some(design(path, 1.0 / 20.0))
    };
    let computed = dropped(None);
    assert!(computed.len() > 100, "{}", computed.len());
    assert_eq!(computed, dropped(gains(2.0, 333_333.0, 576.0, 0.1)));
    // Not for all flows, nor for the whole link.
    assert_ne!(computed, dropped(gains(10.0, 333_333.0, 1500.0, 0.1)));
    assert_ne!(computed, dropped(gains(2.0, 1e6, 576.0, 0.1)));
    // There is no TCP to compute gains for in a class of UDP.
    let QueueParams::Drr(mut params) = with_gains(None) else {
        unreachable!()
    };
    params.class[0].rules = flow(3);
    let refused = params.check_at(&link_by_group()).expect_err("no TCP");
    assert_eq!(
        refused.to_string(),
        "class.class0.queue.tune knows no TCP flow across this link to compute a and b for; \
         accepted: a and b, or flows and rtt"
    );
}

#[test]
fn odd_trees_are_warned_about() {
    let sound = || vec![leaf(0, 400, 900), leaf(1, 500, 900)];
    let wide = |mut leaves: Vec<HtbClassParams>| {
        for leaf in &mut leaves {
            leaf.quantum = Some(Bytes::new(3000));
        }
        htb(vec![inner("root", 900, 900, leaves)])
    };
    assert_eq!(warnings(&wide(sound())), [""; 0]);
    let mut promised = sound();
    promised[0].rate = Rate::from_bps(500_000);
    assert_eq!(
        warnings(&wide(promised)),
        [
            "class.root.rate is less than the 1 Mbit/s that its classes are promised: together they will exceed it"
        ]
    );
    let mut above = sound();
    above[1].ceil = Some(Rate::from_bps(1_000_000));
    assert_eq!(
        warnings(&wide(above)),
        ["class.root.class.class1.ceil is above its parent's (900 kbit/s), which holds"]
    );
    assert_eq!(
        warnings(&htb(vec![inner("root", 2000, 2000, vec![leaf(0, 1, 1)])])),
        ["class promises 2 Mbit/s in all, more than the link's 1 Mbit/s: it cannot be kept"]
    );
    assert_eq!(
        warnings(&htb(vec![leaf(0, 8, 8), leaf(1, 400, 400)])),
        [
            "class.class0.quantum (by default \"1 kB\") is below the largest packet (1500 B): borrowing is then shared by \
          packets rather than by quanta"
        ]
    );
}

#[test]
fn classes_that_nothing_reaches_are_warned_about() {
    let twice = with_classes(|prio| {
        let mut shadowed = prio.class[1].clone();
        shadowed.name = "shadowed".to_owned();
        prio.class.push(shadowed);
    });
    assert_eq!(
        warnings(&twice),
        [
            "class.shadowed.match gets nothing: no traffic group fits its match, or classes before it take all that does"
        ]
    );
    let closed = with_classes(|prio| prio.class[1].rules = None);
    assert_eq!(
        warnings(&closed),
        ["class.class1.name has no match and is not the default: no packet reaches it"]
    );
    assert_eq!(
        warnings(&drr(&[1500, 1499])),
        [
            "class.class1.quantum is below the largest packet (1500 B): a class may need several turns for one packet"
        ]
    );
    assert_eq!(
        warnings(&tbf(1_000_000, 1500, None)),
        ["rate is not below the link's (1 Mbit/s): it shapes nothing"]
    );
}

#[test]
fn figures_of_classes_bear_their_names() {
    let mut queue = build_on(&prio(vec![fifo(), wfq(&[1, 2])]), link_of_four(LINK));
    let mut heard = Heard::default();
    queue.start_measuring(Time::ZERO);
    queue.enqueue(packet(1, 1, 700), Time::ZERO, &mut heard);
    queue.enqueue(packet(2, 0, 100), Time::ZERO, &mut heard);
    let at = Time::ZERO + Span::from_ms(20);
    queue.dequeue(at, &mut heard);
    queue.dequeue(at + Span::from_ms(10), &mut heard);
    let mut figures = BTreeMap::new();
    queue.report(
        at,
        &mut Report::new(&mut |name, value| {
            assert!(figures.insert(name.to_owned(), value).is_none(), "{name}");
        }),
    );
    assert_eq!(figures["class0.packets"], 1.0);
    assert_eq!(figures["class0.bytes"], 100.0);
    assert_eq!(figures["class0.queue_delay_mean"], 0.02);
    assert_eq!(figures["class1.class1.bytes"], 700.0);
    assert_eq!(figures["class1.class1.queue_delay_mean"], 0.03);
    assert_eq!(figures["class1.drops"], 0.0);
    assert!(!figures.contains_key("class1.class0.queue_delay_mean"));
}
