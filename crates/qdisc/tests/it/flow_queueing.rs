//! Queues by flow: turns, new flows first, what overload costs whom.

use crate::common::examples::parameters;
use crate::common::{Heard, Probe, build, build_on, link_of_four};
use redtail_core::{Bytes, Ecn, Rate, Span, Time};
use redtail_qdisc::laws::codel::InverseSqrt;
use redtail_qdisc::queues::fq_codel::FqCodelParams;
use redtail_qdisc::queues::sfq::SfqParams;
use redtail_qdisc::{AnyQueue, DropReason, Limit, LinkFacts, QueueDiscipline, QueueParams};

/// FQ-CoDel whose law never has a say.
fn fq_codel() -> FqCodelParams {
    FqCodelParams {
        limit: Limit::packets(10_000),
        flows: 1024,
        quantum: Bytes::new(1500),
        target: Span::from_s(1000),
        interval: Span::from_s(10_000),
        ecn: false,
        ce_threshold: None,
        mtu: Bytes::new(1500),
        drop_batch: 64,
        inverse_sqrt: InverseSqrt::Exact,
    }
}

fn sfq() -> SfqParams {
    SfqParams {
        limit: Limit::packets(10_000),
        depth: 10_000,
        divisor: 1024,
        quantum: Bytes::new(1500),
        perturb: None,
        head_drop: false,
    }
}

/// A queue, the number of the next packet, and what was heard.
struct Bench {
    queue: AnyQueue<Probe>,
    next_id: u64,
    heard: Heard,
}

impl Bench {
    fn new(spec: &QueueParams) -> Self {
        Self {
            queue: build(spec),
            next_id: 0,
            heard: Heard::default(),
        }
    }

    /// Adds `count` packets of a flow; the number of the first.
    fn add(&mut self, flow: u32, size: u64, count: u64, now: Time) -> u64 {
        let first = self.next_id;
        for _ in 0..count {
            let packet = Probe {
                flow,
                ..Probe::new(self.next_id, size, Ecn::NotEct)
            };
            self.next_id += 1;
            self.queue.enqueue(packet, now, &mut self.heard);
        }
        first
    }

    fn take(&mut self, now: Time) -> Probe {
        self.queue.dequeue(now, &mut self.heard).expect("waiting")
    }

    /// Packets dropped since the last call, as (flow, id, reason).
    fn dropped(&mut self) -> Vec<(u32, u64, DropReason)> {
        let dropped = self.heard.dropped.drain(..);
        dropped
            .map(|(packet, reason, _)| (packet.flow, packet.id, reason))
            .collect()
    }
}

#[test]
fn backlogged_flows_share_equally_in_bytes_whatever_their_packets() {
    // Deficit Round Robin: two backlogged queues differ by less than a quantum and the
    // largest packet at any time (Shreedhar and Varghese 1995, lemma 2 and theorem 1 for
    // equal quanta).
    for spec in [QueueParams::FqCodel(fq_codel()), QueueParams::Sfq(sfq())] {
        let mut bench = Bench::new(&spec);
        let sizes = [1500, 40, 576, 1000];
        for (flow, &size) in sizes.iter().enumerate() {
            bench.add(flow as u32, size, 90_000 / size, Time::ZERO);
        }
        let mut sent = [0u64; 4];
        while sent.iter().all(|&sent| sent < 80_000) {
            let packet = bench.take(Time::ZERO);
            sent[packet.flow as usize] += packet.size;
            let most = sent.iter().max().copied().unwrap_or(0);
            let least = sent.iter().min().copied().unwrap_or(0);
            // The turn that is under way, and a deficit of a packet on either side.
            assert!(most - least <= 1500 + 2 * 1500, "{sent:?}");
        }
    }
}

#[test]
fn a_new_flow_goes_before_old_ones_but_not_by_being_empty() {
    // RFC 8290, section 4.2.
    let mut bench = Bench::new(&QueueParams::FqCodel(fq_codel()));
    for flow in 0..5 {
        bench.add(flow, 1500, 50, Time::ZERO);
    }
    // All have had their turn as new ones.
    for _ in 0..20 {
        bench.take(Time::ZERO);
    }
    // A sparse flow's packet goes at once.
    let sparse = bench.add(9, 100, 1, Time::ZERO);
    assert_eq!(bench.take(Time::ZERO).id, sparse);
    // It was left behind as empty, and goes through the old ones: its next packet waits
    // for all of these once.
    bench.take(Time::ZERO); // finds it empty, moves it
    let again = bench.add(9, 100, 1, Time::ZERO);
    let order: Vec<u64> = (0..8).map(|_| bench.take(Time::ZERO).id).collect();
    let place = order.iter().position(|&id| id == again);
    assert!(place.is_some_and(|place| place >= 3), "{place:?}");
    // With all of its turn over, it is new once more.
    for _ in 0..10 {
        bench.take(Time::ZERO);
    }
    let once_more = bench.add(9, 100, 1, Time::ZERO);
    assert_eq!(bench.take(Time::ZERO).id, once_more);
}

#[test]
fn a_turn_is_one_full_packet_by_default() {
    // In Linux a quantum is `psched_mtu`, 1514 B on an Ethernet, and so is what a full packet
    // counts. Behind an overhead of 18 B, CAKE's quantum stays and a packet counts 1518 B.
    let class = |name: &str, rule: &str| {
        let queue = "queue = { tail-drop = { limit = \"9 packets\" } }";
        format!("{{ name = \"{name}\", {rule} {queue} }}")
    };
    let (a, b) = (class("a", "match = { group = \"a\" },"), class("b", ""));
    for queue in [
        "fq-codel = {}".to_owned(),
        "fq-pie = {}".to_owned(),
        "sfq = {}".to_owned(),
        "cake = {}".to_owned(),
        "cake = { rate = \"100 Mbit/s\" }".to_owned(),
        "cake = { rate = \"100 Mbit/s\", overhead = \"18 B\" }".to_owned(),
        format!("drr = {{ class = [{a}, {b}] }}"),
    ] {
        let table = queue.parse().expect("a table");
        let spec: QueueParams = parameters(table).expect("a queue");
        let mut bench = Bench {
            queue: build_on(&spec, link_of_four(Rate::from_bps(1_000_000_000))),
            next_id: 0,
            heard: Heard::default(),
        };
        // Flows of two hosts, and of groups a and b.
        for flow in 0..2 {
            bench.add(flow, 1500, 8, Time::ZERO);
        }
        let mut now = Time::ZERO;
        let order: Vec<u32> = (0..12)
            .map(|_| {
                now += Span::from_ms(1);
                bench.take(now).flow
            })
            .collect();
        let alternate = order.windows(2).all(|pair| pair[0] != pair[1]);
        assert!(alternate, "{queue}: {order:?}");
    }
}

#[test]
fn sfq_lets_a_new_flow_wait_its_turn() {
    let mut bench = Bench::new(&QueueParams::Sfq(sfq()));
    for flow in 0..5 {
        bench.add(flow, 1500, 50, Time::ZERO);
    }
    for _ in 0..7 {
        bench.take(Time::ZERO);
    }
    let new = bench.add(9, 1500, 1, Time::ZERO);
    let order: Vec<u64> = (0..6).map(|_| bench.take(Time::ZERO).id).collect();
    // The flow that had the last turn is put at the end only when it is seen again.
    assert_eq!(order[4], new, "{order:?}");
}

#[test]
fn overload_costs_the_fattest_queue_half_its_bytes_or_a_batch() {
    // RFC 8290, section 4.1: from the head, half of the queue, 64 packets at most.
    let mut bench = Bench::new(&QueueParams::FqCodel(FqCodelParams {
        limit: Limit::packets(300),
        ..fq_codel()
    }));
    bench.add(1, 100, 100, Time::ZERO);
    let fat = bench.add(2, 1500, 50, Time::ZERO);
    bench.add(3, 100, 150, Time::ZERO);
    assert!(bench.dropped().is_empty());
    // The fattest in bytes is flow 2 with 75,000 B: 25 packets go, the first.
    bench.add(1, 100, 1, Time::ZERO);
    let expected: Vec<_> = (fat..fat + 25)
        .map(|id| (2, id, DropReason::Limit))
        .collect();
    assert_eq!(bench.dropped(), expected);
    // A queue of 212 packets loses 64.
    let mut bench = Bench::new(&QueueParams::FqCodel(FqCodelParams {
        limit: Limit::packets(300),
        ..fq_codel()
    }));
    bench.add(1, 100, 88, Time::ZERO);
    let fat = bench.add(2, 1500, 213, Time::ZERO);
    let expected: Vec<_> = (fat..fat + 64)
        .map(|id| (2, id, DropReason::Limit))
        .collect();
    assert_eq!(bench.dropped(), expected);
    assert_eq!(bench.queue.backlog().packets, 301 - 64);
}

#[test]
fn sfq_drops_from_the_longest_queue_in_packets() {
    for head_drop in [false, true] {
        let mut bench = Bench::new(&QueueParams::Sfq(SfqParams {
            limit: Limit::packets(10),
            head_drop,
            ..sfq()
        }));
        bench.add(1, 1500, 4, Time::ZERO);
        let long = bench.add(2, 40, 6, Time::ZERO);
        bench.add(1, 1500, 1, Time::ZERO);
        let victim = if head_drop { long } else { long + 5 };
        assert_eq!(bench.dropped(), [(2, victim, DropReason::Limit)]);
    }
}

#[test]
fn of_equally_long_queues_sfq_takes_the_one_that_changed_last() {
    // Linux 6.1, sch_sfq.c: sfq_link puts a queue first among those of its length, and
    // sfq_drop takes the first.
    for last in 0..4 {
        let mut bench = Bench::new(&QueueParams::Sfq(SfqParams {
            limit: Limit::packets(8),
            ..sfq()
        }));
        let order: Vec<u32> = (1..=4).map(|i| (last + i) % 4).collect();
        let ids: Vec<u64> = [&order[..], &order[..]]
            .concat()
            .into_iter()
            .map(|flow| bench.add(flow, 1000, 1, Time::ZERO))
            .collect();
        // All hold two packets, and that of `last` got its second one last.
        bench.add(9, 1000, 1, Time::ZERO);
        assert_eq!(bench.dropped(), [(last, ids[7], DropReason::Limit)]);
        // One that has become as long by a departure has changed last, too.
        bench.add(order[0], 1000, 1, Time::ZERO);
        bench.dropped();
        let sent = bench.take(Time::ZERO).flow;
        bench.add(sent, 1000, 1, Time::ZERO);
        bench.add(10, 1000, 1, Time::ZERO);
        let dropped = bench.dropped();
        assert_eq!(dropped.len(), 1);
        assert_eq!(dropped[0].0, sent, "{order:?}");
    }
}

#[test]
fn where_no_queue_holds_two_packets_sfq_takes_the_one_whose_turn_is_next() {
    for first in 0..4 {
        let mut bench = Bench::new(&QueueParams::Sfq(SfqParams {
            limit: Limit::packets(4),
            ..sfq()
        }));
        for i in 0..4 {
            bench.add((first + i) % 4, 1000, 1, Time::ZERO);
        }
        bench.add(9, 1000, 1, Time::ZERO);
        assert_eq!(bench.dropped(), [(first, 0, DropReason::Limit)]);
    }
}

#[test]
fn sfq_holds_no_more_than_its_depth_of_a_flow() {
    for head_drop in [false, true] {
        let mut bench = Bench::new(&QueueParams::Sfq(SfqParams {
            depth: 3,
            head_drop,
            ..sfq()
        }));
        bench.add(1, 500, 4, Time::ZERO);
        let victim = if head_drop { 0 } else { 3 };
        assert_eq!(bench.dropped(), [(1, victim, DropReason::Early)]);
        bench.add(2, 500, 3, Time::ZERO);
        assert!(bench.dropped().is_empty());
    }
}

#[test]
fn a_new_hash_parts_flows_that_shared_a_queue() {
    // Of 40 flows in 64 queues some share one; without perturbation for ever. Turns of
    // one packet show who does.
    let shares = |perturb: Option<Span>| {
        let mut bench = Bench::new(&QueueParams::Sfq(SfqParams {
            divisor: 64,
            quantum: Bytes::new(1000),
            perturb,
            ..sfq()
        }));
        let mut sent = [0u64; 40];
        let mut now = Time::ZERO;
        for flow in 0..40 {
            bench.add(flow, 1000, 5, now);
        }
        for _ in 0..40_000 {
            now += Span::from_ms(8);
            let packet = bench.take(now);
            sent[packet.flow as usize] += 1;
            bench.add(packet.flow, 1000, 1, now);
        }
        assert!(bench.dropped().is_empty());
        let least = sent.iter().min().copied().unwrap_or(0) as f64;
        least / 1000.0
    };
    // Two or more in a queue get half a share of one of some 30 queues.
    let without = shares(None);
    assert!(without < 0.75, "{without}");
    let with = shares(Some(Span::from_s(2)));
    assert!(with > 0.85, "{with}");
}

#[test]
fn impossible_values_are_refused_with_the_reason() {
    let fq = |params: FqCodelParams| {
        QueueParams::FqCodel(params)
            .check()
            .unwrap_err()
            .to_string()
    };
    let sfq_of = |params: SfqParams| QueueParams::Sfq(params).check().unwrap_err().to_string();
    assert_eq!(
        fq(FqCodelParams {
            flows: 0,
            ..fq_codel()
        }),
        "flows is 0, no number of queues; accepted: a number from 1 to 65536"
    );
    assert_eq!(
        fq(FqCodelParams {
            quantum: Bytes::new(100),
            ..fq_codel()
        }),
        "quantum is less than 256 B, so that a packet takes many turns; accepted: at least \"256 B\", for example \"1500 B\""
    );
    assert_eq!(
        fq(FqCodelParams {
            quantum: Bytes::new((1 << 20) + 1),
            ..fq_codel()
        }),
        "quantum is more than Linux takes, so that a flow has the link for itself; accepted: \"256 B\" to \"1 MiB\", for \
         example \"1500 B\""
    );
    assert_eq!(
        fq(FqCodelParams {
            drop_batch: 0,
            ..fq_codel()
        }),
        "drop_batch is zero, so that a full queue could not be relieved; accepted: a number from 1 on"
    );
    assert_eq!(
        sfq_of(SfqParams {
            divisor: 65_537,
            ..sfq()
        }),
        "divisor is 65537, no number of queues; accepted: a number from 1 to 65536"
    );
    assert_eq!(
        sfq_of(SfqParams { depth: 0, ..sfq() }),
        "depth is zero, so that every packet would be dropped; accepted: a number from 1 on"
    );
    assert_eq!(
        sfq_of(SfqParams {
            perturb: Some(Span::ZERO),
            ..sfq()
        }),
        "perturb is zero; accepted: a time such as \"10 s\", or no such key for never"
    );
}

#[test]
fn fewer_queues_than_flows_and_hasty_hashing_are_warned_about() {
    let link = LinkFacts {
        tcp_flows: 100,
        mean_round_trip: Some(Span::from_ms(100)),
        ..LinkFacts::of_rate(Rate::from_bps(100_000_000))
    };
    let few = QueueParams::FqCodel(FqCodelParams {
        flows: 64,
        ..fq_codel()
    });
    let warnings = few.warnings(&link);
    assert_eq!(warnings.len(), 1);
    assert_eq!(
        warnings[0].clause,
        "is less than the 100 TCP flows that cross the link, so that some share a queue"
    );
    assert!(QueueParams::Sfq(sfq()).warnings(&link).is_empty());
    let hasty = SfqParams {
        divisor: 64,
        perturb: Some(Span::from_ms(50)),
        ..sfq()
    };
    let keys: Vec<_> = QueueParams::Sfq(hasty)
        .warnings(&link)
        .into_iter()
        .map(|w| w.key)
        .collect();
    assert_eq!(keys, ["divisor", "perturb"]);
}
