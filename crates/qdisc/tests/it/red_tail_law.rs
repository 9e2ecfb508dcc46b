//! RED+Tail against the rules of Jou and Baras 2003 computed here: who is long, what rate each
//! queue gets, what the buffer holds; its figures; and what its parameters are refused or
//! warned for.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::common::{Heard, Probe, build_on};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use redtail_core::{Bytes, Ecn, QueueSize, Rate, Span, Stream, Time};
use redtail_qdisc::laws::red_tail::{FlowClass, FlowClasses, ServiceShare, Turns};
use redtail_qdisc::queues::red_tail::RedTailParams;
use redtail_qdisc::{
    AnyQueue, DropReason, FlowFacts, FlowTable, Limit, LinkFacts, Protocol, QueueDiscipline,
    QueueKind, QueueParams, Report,
};

const LINK: Rate = Rate::from_bps(3_000_000);
const UDP: u32 = 9;

fn at(ms: u64) -> Time {
    Time::ZERO + Span::from_ms(ms)
}

/// Ten flows: 0 to 8 TCP, of which 0 is known to be endless and 1 to have 3 segments; 9 UDP.
fn link() -> LinkFacts {
    let flow = |i| FlowFacts {
        protocol: if i == UDP {
            Protocol::Udp
        } else {
            Protocol::Tcp
        },
        segments: [Some(u64::MAX), Some(3)].get(i as usize).copied().flatten(),
        ..FlowFacts::default()
    };
    LinkFacts {
        flows: Arc::new(FlowTable::new(
            vec!["all".to_owned()],
            (0..10).map(flow).collect(),
        )),
        ..LinkFacts::of_rate(LINK)
    }
}

fn build(params: RedTailParams) -> AnyQueue<Probe> {
    build_on(&QueueParams::RedTail(params), link())
}

fn packet(id: u64, flow: u32) -> Probe {
    Probe {
        flow,
        ..Probe::new(id, 1000, Ecn::NotEct)
    }
}

/// RED that never drops.
fn undropping() -> RedTailParams {
    RedTailParams {
        min_th: QueueSize::Bytes(1_000_000),
        max_th: QueueSize::Bytes(2_000_000),
        limit: Limit::packets(1000),
        ..RedTailParams::default()
    }
}

fn figures(queue: &AnyQueue<Probe>, now: Time) -> BTreeMap<String, f64> {
    let mut figures = BTreeMap::new();
    queue.report(
        now,
        &mut Report::new(&mut |name, value| {
            assert!(
                figures.insert(name.to_owned(), value).is_none(),
                "{name} twice"
            );
        }),
    );
    figures
}

fn classes(long_after: u64, flows: u64) -> FlowClasses {
    let mut stream = Stream::named(1, 0, "flows");
    FlowClasses::new(long_after, Span::from_s(5), flows, &mut stream)
}

#[test]
fn a_flow_is_long_after_n_packets() {
    // "Counter > N: flow is long."
    for n in [0, 1, 3, 64] {
        let mut table = classes(n, 100);
        for count in 1..=2 * n + 2 {
            let class = table.arrival(7, at(count), [0; 2]).class;
            let expected = if count <= n {
                FlowClass::Short
            } else {
                FlowClass::Long
            };
            assert_eq!(class, expected, "packet {count} with N = {n}");
            // Others have counters of their own.
            let other = table.arrival(1000 + count, at(count), [0; 2]);
            assert_eq!(other.class == FlowClass::Long, n == 0);
        }
    }
}

#[test]
fn a_flow_silent_for_t_is_short_again() {
    // "No packet for T s: counter removed"; T is 5 s.
    let mut table = classes(3, 100);
    let mut arrive = |ms| table.arrival(7, at(ms), [0; 2]).class;
    let (short, long) = (FlowClass::Short, FlowClass::Long);
    let counted = [0, 4_999, 9_998, 14_997, 19_996].map(&mut arrive);
    assert_eq!(counted, [short, short, short, long, long]);
    let anew = [24_996, 29_995, 34_994, 39_993].map(&mut arrive);
    assert_eq!(anew, [short, short, short, long]);
    // The counter of a short flow is forgotten as well.
    let short_again = [44_993, 44_994, 49_994, 49_995, 49_996, 49_997].map(&mut arrive);
    assert_eq!(short_again, [short, short, short, short, short, long]);
}

#[test]
fn a_long_flow_that_waits_is_not_forgotten() {
    let mut table = classes(0, 100);
    let first = table.arrival(7, at(0), [0, 4]);
    table.joined(first, 10);
    // Nine have left the long queue, so that the tenth, its own, is still there.
    assert!(!table.arrival(7, at(60_000), [0, 9]).first);
    assert!(table.arrival(7, at(120_000), [0, 10]).first);
}

#[test]
fn memory_is_bounded_and_goes_to_those_that_send() {
    // A set of eight: a ninth flow takes the place of the one silent longest, flow 0.
    let mut table = classes(1, 8);
    for flow in (0..8).chain(1..8) {
        table.arrival(flow, at(flow), [0; 2]);
    }
    assert_eq!(table.displaced(), 0);
    assert_eq!(table.arrival(8, at(20), [0; 2]).class, FlowClass::Short);
    assert_eq!(table.displaced(), 1);
    for flow in 1..8 {
        let class = table.arrival(flow, at(30), [0; 2]).class;
        assert_eq!(class, FlowClass::Long, "flow {flow}");
    }
    assert_eq!(table.arrival(0, at(40), [0; 2]).class, FlowClass::Short);
    // A silent one loses nothing by its place going to another.
    table.begin_period();
    table.arrival(99, at(60_000), [0; 2]);
    assert_eq!(table.displaced(), 0);
    // Eight that wait leave no place: others are short for ever, and cost nobody's order.
    let mut table = classes(0, 8);
    for flow in 0..8 {
        let long = table.arrival(flow, at(0), [0; 2]);
        table.joined(long, 100);
    }
    for ms in 1..100 {
        let other = table.arrival(8, at(ms), [0; 2]);
        assert_eq!((other.class, other.first), (FlowClass::Short, false));
    }
}

#[test]
fn many_flows_have_their_own_counters_as_far_as_memory_goes() {
    // 1000 flows in turns among 16,384 places: none of the 2048 sets of eight gets nine (by
    // chance, of mean 0.49, with probability 1e-5 in all).
    let mut table = classes(64, 16_384);
    for round in 0..66 {
        for flow in 0..1000 {
            let class = table.arrival(flow, at(round), [0; 2]).class;
            assert_eq!(class == FlowClass::Long, round >= 64);
        }
    }
    assert_eq!(table.displaced(), 0);
}

#[test]
fn the_share_is_the_published_function_of_the_short_queue() {
    // C1 = 0, C1min, then C q1 / maxth1 up to C1max; table II: 2 and 30 kB. C1min continuous, C1max 0.9.
    let mut queue = build(undropping());
    let AnyQueue::RedTail(tail) = &mut queue else {
        panic!("another queue")
    };
    let mut heard = Heard::default();
    for kb in 0..=40u32 {
        let expected = match kb {
            0 => 0.0,
            1 => 2.0 / 30.0,
            2..=26 => f64::from(kb) / 30.0,
            _ => 0.9,
        };
        assert!((tail.short_share() - expected).abs() < 1e-12, "{kb} kB");
        tail.enqueue(packet(u64::from(kb), UDP), at(0), &mut heard);
    }
    let share = ServiceShare {
        min_th: 10.0,
        max_th: 40.0,
        least: 0.1,
        most: 0.5,
    };
    let shares = [0.0, 1.0, 9.9, 10.0, 19.0, 20.0, 400.0].map(|q1| share.at(q1));
    assert_eq!(shares, [0.0, 0.1, 0.1, 0.25, 0.475, 0.5, 0.5]);
}

#[test]
fn both_queues_get_their_shares_of_a_busy_link() {
    // Both queues are kept from being empty, with q1 at 10 to 40 kB in steps: the bytes that the short one
    // sent are the sum of C1/C times what was sent, to half a packet, computed here.
    let mut params = undropping();
    params.long_after = 0;
    params.short_share_max = 0.8;
    let mut queue = build(params);
    let mut heard = Heard::default();
    let (mut id, mut q1) = (0, 0u64);
    let (mut due, mut sent) = (0.0f64, 0.0f64);
    for _ in 0..10 {
        queue.enqueue(packet(id, 0), at(0), &mut heard);
        id += 1;
    }
    for step in 0..4000u64 {
        let wanted = 10 + 10 * (step / 1000);
        while q1 < wanted {
            queue.enqueue(packet(id, UDP), at(step), &mut heard);
            (id, q1) = (id + 1, q1 + 1);
        }
        due += 1000.0 * (q1 as f64 / 30.0).min(0.8);
        let left = queue.dequeue(at(step), &mut heard).expect("packets wait");
        if left.flow == UDP {
            sent += 1000.0;
            q1 -= 1;
        } else {
            queue.enqueue(packet(id, 0), at(step), &mut heard);
            id += 1;
        }
        assert!((sent - due).abs() <= 500.0 + 1e-6, "{sent}, not {due}");
    }
    // A third, two thirds and twice 0.8, 1000 packets each.
    assert!((sent - 2.6e6).abs() <= 500.0 && heard.dropped.is_empty());
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 200,
        rng_seed: RngSeed::Fixed(1),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn what_the_short_queue_is_owed_stays_within_half_a_packet(
        choices in proptest::collection::vec((0.0f64..=1.0, 40u64..1500, 40u64..1500), 1..500)
    ) {
        let mut turns = Turns::default();
        let mut owed = 0.0;
        for (share, short, long) in choices {
            owed += match turns.next(share, Bytes::new(short), Bytes::new(long)) {
                FlowClass::Short => (share - 1.0) * short as f64,
                FlowClass::Long => share * long as f64,
            };
            prop_assert!((turns.owed() - owed).abs() < 1e-6);
            prop_assert!(owed.abs() <= 750.0, "{}", owed);
        }
    }
}

#[test]
fn no_capacity_is_lost_to_an_empty_queue() {
    // C1 = 0 with q1 = 0, and the long queue empty: the other has the link whole.
    for flow in [UDP, 0] {
        let mut params = undropping();
        params.long_after = 0;
        let mut queue = build(params);
        let mut heard = Heard::default();
        for id in 0..50 {
            queue.enqueue(packet(id, flow), at(0), &mut heard);
        }
        for id in 0..50 {
            let left = queue.dequeue(at(id), &mut heard);
            assert_eq!(left.map(|packet| packet.id), Some(id));
        }
    }
}

#[test]
fn a_flow_that_becomes_long_overtakes_none_of_its_own() {
    // Three packets short, the rest long, behind ten of UDP: the long queue's head waits until the
    // third has left, and then has its share.
    let mut params = undropping();
    params.long_after = 3;
    let mut queue = build(params);
    let mut heard = Heard::default();
    for id in 0..10 {
        queue.enqueue(packet(id, UDP), at(0), &mut heard);
    }
    for id in 10..20 {
        queue.enqueue(packet(id, 0), at(0), &mut heard);
    }
    for id in 20..40 {
        queue.enqueue(packet(id, UDP), at(0), &mut heard);
    }
    let left: Vec<u64> = (0..40)
        .map(|_| queue.dequeue(at(1), &mut heard).expect("packets wait").id)
        .collect();
    assert_eq!(left[..13], (0..13).collect::<Vec<_>>()[..]);
    let long: Vec<u64> = left
        .iter()
        .copied()
        .filter(|id| (13..20).contains(id))
        .collect();
    assert_eq!(long, (13..20).collect::<Vec<_>>());
    // Twenty of UDP are 20 kB: two thirds for them, one for the long flow.
    let place = left.iter().position(|id| *id == 13).expect("it left");
    assert!((13..17).contains(&place), "{left:?}");
}

#[test]
fn the_buffer_is_one_for_both() {
    // Either queue may have all of it; the short one loses packets only when it is full.
    for [short, long] in [[100u64, 0], [0, 100], [37, 63]] {
        let mut params = undropping();
        params.limit = Limit::packets(100);
        params.min_th = QueueSize::Packets(1000);
        params.max_th = QueueSize::Packets(2000);
        params.long_after = 0;
        let mut queue = build(params);
        let mut heard = Heard::default();
        let flows = [(UDP, short), (0, long)];
        let flows = flows
            .into_iter()
            .flat_map(|(flow, n)| (0..n).map(move |_| flow));
        for (id, flow) in flows.enumerate() {
            queue.enqueue(packet(id as u64, flow), at(0), &mut heard);
        }
        assert!(heard.dropped.is_empty());
        for flow in [UDP, 0] {
            queue.enqueue(packet(100, flow), at(0), &mut heard);
            let (lost, reason, _) = heard.dropped.pop().expect("the buffer is full");
            assert_eq!((lost.flow, reason), (flow, DropReason::Limit));
        }
        queue.dequeue(at(1), &mut heard);
        queue.enqueue(packet(101, UDP), at(1), &mut heard);
        assert!(heard.dropped.is_empty(), "one has left");
    }
}

#[test]
fn only_the_long_queue_is_subject_to_red_and_only_with_its_own_length() {
    // Short ones fill most of the buffer: RED sees none of it. Long ones alone are dropped early.
    let params = RedTailParams {
        long_after: 0,
        w_q: Some(0.5),
        max_p: 0.5,
        ..RedTailParams::default()
    };
    let mut queue = build(params.clone());
    let mut heard = Heard::default();
    for id in 0..120 {
        queue.enqueue(packet(id, UDP), at(0), &mut heard);
    }
    for id in 120..140 {
        queue.enqueue(packet(id, 0), at(0), &mut heard);
    }
    assert!(heard.dropped.is_empty());
    assert_eq!(queue.internals().probability, Some(0.0));
    let mut queue = build(params);
    for id in 0..120 {
        queue.enqueue(packet(id, 0), at(0), &mut heard);
    }
    assert!(
        heard
            .dropped
            .iter()
            .any(|(_, reason, _)| *reason == DropReason::Early)
    );
    assert!(queue.internals().probability > Some(0.0));
}

#[test]
fn the_figures_are_what_happened() {
    // N = 3. Before measuring: flow 0 becomes long. Then, a packet each second: of flow 0
    // (endless) three, of flow 1 (3 segments, and a retransmission) four, of UDP two.
    let mut params = undropping();
    params.long_after = 3;
    let mut queue = build(params);
    let mut heard = Heard::default();
    for id in 0..4 {
        queue.enqueue(packet(id, 0), at(0), &mut heard);
        queue.dequeue(at(0), &mut heard);
    }
    queue.start_measuring(at(1000));
    let arrivals = [0, 1, UDP, 1, 0, 1, UDP, 1, 0];
    for (second, flow) in (1..).zip(arrivals) {
        let packet = packet(100 + second, flow);
        queue.enqueue(packet, at(1000 * second), &mut heard);
        queue
            .dequeue(at(1000 * second + 500), &mut heard)
            .expect("it came");
    }
    let figures = figures(&queue, at(11_000));
    let expect = |name: &str, expected: f64| {
        let value = figures[name];
        assert!(
            (value - expected).abs() < 1e-9,
            "{name}: {value}, not {expected}"
        );
    };
    // In 10 s: five packets short (three of flow 1, two UDP), four long (flow 0, the last of flow 1).
    expect("short_share", 5.0 / 9.0);
    expect("long_share", 4.0 / 9.0);
    expect("short_service", 5.0 / 9.0);
    expect("short_flows", 1.0);
    expect("long_flows", 2.0);
    // Half a second each.
    expect("short_delay_mean", 0.5);
    expect("long_delay_mean", 0.5);
    expect("short_length_mean", 5.0 * 0.5 / 10.0);
    expect("long_length_mean", 4.0 * 0.5 / 10.0);
    expect("long_bytes_mean", 1000.0 * 4.0 * 0.5 / 10.0);
    expect("short_length_std", 0.25f64.mul_add(-0.25, 0.25).sqrt());
    expect("short_loss", 0.0);
    expect("long_in_range", 0.0);
    // Of the long queue's packets one is of a flow of no more than N segments, which is a false
    // alarm; it is the only such flow.
    expect("short_in_long", 1.0 / 4.0);
    expect("long_in_short", 0.0);
    expect("false_alarms", 1.0);
    expect("displaced", 0.0);
}

#[test]
fn the_first_packets_of_long_flows_are_in_the_wrong_queue() {
    let mut queue = build(undropping());
    let mut heard = Heard::default();
    queue.start_measuring(at(0));
    for id in 0..200 {
        queue.enqueue(packet(id, 0), at(id), &mut heard);
        queue.enqueue(packet(1000 + id, UDP), at(id), &mut heard);
    }
    // 64 of its own beside 200 of UDP.
    let figures = figures(&queue, at(200));
    assert!((figures["long_in_short"] - 64.0 / 264.0).abs() < 1e-12);
    assert_eq!(figures["short_in_long"], 0.0);
    assert!(
        !figures.contains_key("false_alarms"),
        "no short flow was met"
    );
}

/// The refusal of the parameters that `change` makes.
fn refusal(change: impl FnOnce(&mut RedTailParams)) -> String {
    let mut params = RedTailParams::default();
    change(&mut params);
    let result = params.check().and_then(|()| params.check_at(&link()));
    result.expect_err("it makes no sense").to_string()
}

#[test]
fn impossible_values_are_refused_with_the_reason() {
    let cases: [(String, &str); 13] = [
        (
            refusal(|p| p.limit = Limit::packets(0)),
            "limit would drop every packet; accepted: at least \"1 packet\", or at least one packet's size in bytes",
        ),
        (
            refusal(|p| p.idle_timeout = Span::ZERO),
            "idle_timeout is zero; accepted: a time such as \"100 ms\"",
        ),
        (
            refusal(|p| p.flows = 0),
            "flows leaves no flow a counter; accepted: 1 to 16777216",
        ),
        (
            refusal(|p| p.flows = 1 << 25),
            "flows is more than can be kept; accepted: 1 to 16777216",
        ),
        (
            refusal(|p| p.short_max_th = QueueSize::Packets(30)),
            "short_max_th is in another unit than short_min_th (2 kB); accepted: both thresholds in packets, or both in bytes or time",
        ),
        (
            refusal(|p| p.short_min_th = QueueSize::Bytes(30_000)),
            "short_min_th is not below short_max_th (30 kB); accepted: less than \"30 kB\"",
        ),
        (
            refusal(|p| p.short_share_max = 1.1),
            "short_share_max is not a share above 0; accepted: a number above 0 and up to 1",
        ),
        (
            refusal(|p| p.short_share_min = Some(0.0)),
            "short_share_min is not a share above 0; accepted: a number above 0 and up to 1",
        ),
        (
            refusal(|p| p.short_share_min = Some(0.95)),
            "short_share_min is above short_share_max (0.9); accepted: a number above 0 and up to 0.9",
        ),
        (
            refusal(|p| p.min_th = QueueSize::Packets(20)),
            "max_th is in another unit than min_th (20 packets); accepted: both thresholds in packets, or both in bytes or time",
        ),
        (
            refusal(|p| p.min_th = QueueSize::Bytes(80_000)),
            "min_th is not below max_th (80 kB); accepted: less than \"80 kB\"",
        ),
        (
            refusal(|p| p.beta = 1.0),
            "beta is not a factor that reduces max_p; accepted: a number above 0 and below 1",
        ),
        (
            refusal(|p| p.interval = Span::ZERO),
            "interval is zero; accepted: a time such as \"500 ms\"",
        ),
    ];
    for (refusal, expected) in cases {
        assert_eq!(refusal, expected);
    }
}

/// The warnings about the parameters that `change` makes, on a link that `facts` changes.
fn warnings(
    change: impl FnOnce(&mut RedTailParams),
    facts: impl FnOnce(&mut LinkFacts),
) -> Vec<String> {
    let (mut params, mut link) = (RedTailParams::default(), link());
    change(&mut params);
    facts(&mut link);
    let warnings = params.warnings(&link).into_iter();
    warnings
        .map(|w| format!("{} {}", w.key, w.clause))
        .collect()
}

#[test]
fn degenerate_values_are_warned_about() {
    let nothing = |_: &mut LinkFacts| ();
    assert_eq!(warnings(|_| (), nothing), [""; 0]);
    assert_eq!(
        warnings(|p| p.short_max_th = QueueSize::Bytes(200_000), nothing),
        [
            "short_max_th is so far above the limit (\"160 kB\") that the short queue never gets its largest share, 0.9"
        ]
    );
    assert_eq!(
        warnings(|p| p.short_share_max = 1.0, nothing),
        [
            "short_share_max lets short flows and UDP keep long flows from sending, until they time out"
        ]
    );
    assert_eq!(
        warnings(|_| (), |link| link.udp_rate = Rate::from_bps(2_800_000)),
        [
            "short_share_max is less than UDP sends (\"2.8 Mbit/s\"): the short queue fills the buffer, and both queues lose packets for want of room"
        ]
    );
    assert_eq!(
        warnings(|p| p.long_after = 0, nothing),
        ["long_after makes every TCP flow long, so that the short queue is for UDP alone"]
    );
    assert_eq!(
        warnings(
            |p| p.idle_timeout = Span::from_ms(240),
            |link| link.max_round_trip = Some(Span::from_ms(240))
        ),
        [
            "idle_timeout is no longer than the longest round trip (\"240 ms\"): a flow that waits for an acknowledgement is forgotten"
        ]
    );
    // And what Adaptive RED warns about.
    assert_eq!(
        warnings(|p| p.max_th = QueueSize::Bytes(160_000), nothing),
        [
            "max_th is not below the limit (\"160 kB\"), so the buffer overflows before the average gets there"
        ]
    );
}
