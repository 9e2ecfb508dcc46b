//! CAKE: the shaper to the picosecond, tins, hosts, and places in sets.

use std::sync::Arc;

use crate::common::{Heard, Probe, build_on};
use redtail_core::{Bytes, Dscp, Ecn, Rate, Span, Time};
use redtail_qdisc::laws::cobalt::FirstGap;
use redtail_qdisc::queues::cake::{AckFilter, CakeParams, Diffserv, Framing, Isolation};
use redtail_qdisc::{
    AnyQueue, DropReason, FlowFacts, FlowTable, Limit, LinkFacts, QueueDiscipline, QueueParams,
    Report, Wakeup,
};

fn params() -> CakeParams {
    CakeParams {
        rate: None,
        overhead: Bytes::ZERO,
        mpu: Bytes::ZERO,
        framing: Framing::None,
        diffserv: Diffserv::Besteffort,
        isolation: Isolation::TripleIsolate,
        rtt: Span::from_s(1000), // the law has no say
        ecn: true,
        first_gap: FirstGap::None,
        wash: false,
        ingress: false,
        ack_filter: AckFilter::Off,
        limit: Some(Limit::packets(100_000)),
        follow_after: None,
        follow_hop: None,
    }
}

/// A link of 1 Gbit/s crossed by flows between these hosts.
fn link(hosts: &[(u32, u32)]) -> LinkFacts {
    let flow = |&(sender, receiver): &(u32, u32)| FlowFacts {
        sender,
        receiver,
        ..FlowFacts::default()
    };
    LinkFacts {
        flows: Arc::new(FlowTable::new(
            vec!["all".to_owned()],
            hosts.iter().map(flow).collect(),
        )),
        ..LinkFacts::of_rate(Rate::from_bps(1_000_000_000))
    }
}

fn build(params: CakeParams, hosts: &[(u32, u32)]) -> AnyQueue<Probe> {
    build_on(&QueueParams::Cake(params), link(hosts))
}

fn packet(id: u64, flow: u32, size: u64, dscp: u8) -> Probe {
    Probe {
        flow,
        dscp: Dscp::new(dscp).expect("below 64"),
        ..Probe::new(id, size, Ecn::NotEct)
    }
}

/// Times at which packets leave a queue that is never empty, asked whenever it says so.
fn departures(params: CakeParams, sizes: &[u64]) -> Vec<Time> {
    let mut queue = build(params, &[]);
    let mut heard = Heard::default();
    for (id, &size) in (0..).zip(sizes) {
        queue.enqueue(packet(id, 0, size, 0), Time::ZERO, &mut heard);
    }
    let (mut now, mut times) = (Time::ZERO, Vec::new());
    while times.len() < sizes.len() {
        match queue.dequeue(now, &mut heard) {
            Some(_) => times.push(now),
            None => {
                now = queue.next_wakeup().time().expect("packets wait");
                queue.on_wakeup(now);
            }
        }
    }
    assert!(heard.dropped.is_empty());
    times
}

#[test]
fn the_shaper_is_exact_and_without_burst() {
    let rate = Rate::from_bps(7_654_321);
    let sizes = [1500, 40, 576, 1500, 1500, 1, 1000];
    let shaped = |overhead: u64, mpu: u64, framing, size_of: fn(u64) -> u64| {
        let params = CakeParams {
            rate: Some(rate),
            overhead: Bytes::new(overhead),
            mpu: Bytes::new(mpu),
            framing,
            ..params()
        };
        let mut due = Time::ZERO;
        for (time, size) in departures(params, &sizes).into_iter().zip(sizes) {
            assert_eq!(time, due);
            due += rate.tx_time(Bytes::new(size_of(size)));
        }
    };
    shaped(0, 0, Framing::None, |size| size);
    shaped(22, 0, Framing::None, |size| size + 22);
    shaped(22, 84, Framing::None, |size| (size + 22).max(84));
    // ATM: cells of 48 B that take 53; PTM: a byte for each 64.
    shaped(8, 0, Framing::Atm, |size| (size + 8).div_ceil(48) * 53);
    shaped(8, 0, Framing::Ptm, |size| {
        (size + 8) + (size + 8).div_ceil(64)
    });
}

#[test]
fn time_without_packets_is_not_made_up_for() {
    let rate = Rate::from_bps(8_000_000); // 1000 B in 1 ms
    let params = CakeParams {
        rate: Some(rate),
        ..params()
    };
    let mut queue = build(params, &[]);
    let mut heard = Heard::default();
    let ms = |ms| Time::ZERO + Span::from_ms(ms);
    for id in 0..2 {
        queue.enqueue(packet(id, 0, 1000, 0), ms(50), &mut heard);
    }
    assert!(queue.dequeue(ms(50), &mut heard).is_some());
    assert!(queue.dequeue(ms(50), &mut heard).is_none());
    assert_eq!(queue.next_wakeup(), Wakeup::At(ms(51)));
    assert!(queue.dequeue(ms(51), &mut heard).is_some());
    // The packet just sent still holds the next one up.
    queue.enqueue(packet(2, 0, 1000, 0), ms(51), &mut heard);
    assert!(queue.dequeue(ms(51), &mut heard).is_none());
    assert_eq!(queue.next_wakeup(), Wakeup::At(ms(52)));
}

/// Bytes sent by each of `flows` backlogged flows in `sends` packets of 1000 B.
fn shares(params: CakeParams, hosts: &[(u32, u32)], sends: u64) -> Vec<f64> {
    let mut queue = build(params, hosts);
    let mut heard = Heard::default();
    let mut id = 0;
    for flow in 0..hosts.len() as u32 {
        for _ in 0..3 {
            queue.enqueue(packet(id, flow, 1000, 0), Time::ZERO, &mut heard);
            id += 1;
        }
    }
    let mut sent = vec![0.0; hosts.len()];
    for _ in 0..sends {
        let left = queue.dequeue(Time::ZERO, &mut heard).expect("backlogged");
        sent[left.flow as usize] += 1.0;
        queue.enqueue(packet(id, left.flow, 1000, 0), Time::ZERO, &mut heard);
        id += 1;
    }
    sent.iter().map(|sent| sent / sends as f64).collect()
}

#[test]
fn hosts_share_equally_whatever_the_number_of_their_flows() {
    // Host 1 sends 8 flows, host 2 one, both to hosts of their own for each flow.
    let by_sender: Vec<(u32, u32)> = (0..9)
        .map(|i| (if i < 8 { 1 } else { 2 }, 100 + i))
        .collect();
    // The same with the ends exchanged.
    let by_receiver: Vec<(u32, u32)> = by_sender.iter().map(|&(a, b)| (b, a)).collect();
    let lone = |isolation, hosts: &[(u32, u32)]| {
        shares(
            CakeParams {
                isolation,
                ..params()
            },
            hosts,
            40_000,
        )[8]
    };
    for (isolation, of_sender, of_receiver) in [
        (Isolation::Flows, 1.0 / 9.0, 1.0 / 9.0),
        (Isolation::DualSrchost, 0.5, 1.0 / 9.0),
        (Isolation::DualDsthost, 1.0 / 9.0, 0.5),
        (Isolation::TripleIsolate, 0.5, 0.5),
        (Isolation::Srchost, 0.5, 1.0 / 9.0),
        (Isolation::Dsthost, 1.0 / 9.0, 0.5),
    ] {
        for (hosts, expected) in [(&by_sender, of_sender), (&by_receiver, of_receiver)] {
            let share = lone(isolation, hosts);
            assert!(
                (share - expected).abs() < 0.01,
                "{isolation:?}: {share}, not {expected}"
            );
        }
    }
}

#[test]
fn the_first_signal_of_a_queue_comes_with_the_second_packet_that_is_over_or_an_interval_later() {
    // Linux 6.1, cobalt_should_drop: count 0, so that drop_next is now plus the interval times a
    // reciprocal square root that is still 0.
    for (first_gap, first_drop) in [(FirstGap::None, 51), (FirstGap::Interval, 150)] {
        let mut queue = build(
            CakeParams {
                rtt: Span::from_ms(100),
                first_gap,
                ..params()
            },
            &[(0, 1)],
        );
        let mut heard = Heard::default();
        for id in 0..400 {
            queue.enqueue(packet(id, 0, 1000, 0), Time::ZERO, &mut heard);
        }
        // Over the target, 5 ms, at 50 ms for the first time.
        let mut dropped_at = None;
        for ms in (1..6).chain(50..300) {
            queue.dequeue(Time::ZERO + Span::from_ms(ms), &mut heard);
            if dropped_at.is_none() && !heard.dropped.is_empty() {
                dropped_at = Some(ms);
            }
        }
        assert_eq!(dropped_at, Some(first_drop), "{first_gap:?}");
    }
}

#[test]
fn flows_of_a_host_share_its_part_equally() {
    let hosts: Vec<(u32, u32)> = (0..9)
        .map(|i| (if i < 8 { 1 } else { 2 }, 100 + i))
        .collect();
    let shares = shares(params(), &hosts, 80_000);
    for share in &shares[..8] {
        assert!((share - 1.0 / 16.0).abs() < 0.003, "{shares:?}");
    }
}

#[test]
fn two_hundred_flows_together_get_what_one_gets() {
    // With quanta of 1500 B and of 300 B: more and less than a packet.
    for rate in [None, Some(Rate::from_bps(1_000_000))] {
        let params = CakeParams {
            rate,
            isolation: Isolation::DualSrchost,
            ..params()
        };
        let hosts: Vec<(u32, u32)> = (0..201).map(|i| (u32::from(i == 200), 100 + i)).collect();
        let mut queue = build(params, &hosts);
        let mut heard = Heard::default();
        let mut now = Time::ZERO;
        let arrive = |queue: &mut AnyQueue<Probe>, heard: &mut Heard, flow, id, now| {
            queue.enqueue(packet(id, flow, 1000, 0), now, heard);
        };
        for flow in 0..201 {
            (0..3).for_each(|id| arrive(&mut queue, &mut heard, flow, id, now));
        }
        let mut sent = [0u64; 201];
        for id in 0..100_000 {
            let left = loop {
                match queue.dequeue(now, &mut heard) {
                    Some(left) => break left,
                    None => now = queue.next_wakeup().time().expect("the shaper waits"),
                }
            };
            sent[left.flow as usize] += 1;
            arrive(&mut queue, &mut heard, left.flow, id + 3, now);
        }
        // In each round the lone flow is given a quantum and the others together one. What
        // a queue has sent differs from what it was given by a packet and a quantum at most.
        let slack = 201.0 * (1000.0 + 1500.0) / 1000.0;
        let (lone, others) = (sent[200] as f64, &sent[..200]);
        let together = others.iter().sum::<u64>() as f64;
        assert!((lone - together).abs() < slack, "{lone} and {together}");
        let (least, most) = (others.iter().min(), others.iter().max());
        assert!(
            most.unwrap() - least.unwrap() <= 3,
            "{least:?} to {most:?} of each"
        );
    }
}

#[test]
fn a_flow_regains_its_host_when_the_others_end() {
    // Host 0 has 100 flows, host 1 one; then those of host 0 end but one.
    let hosts: Vec<(u32, u32)> = (0..101).map(|i| (u32::from(i == 100), 100 + i)).collect();
    let mut queue = build(
        CakeParams {
            isolation: Isolation::DualSrchost,
            ..params()
        },
        &hosts,
    );
    let mut heard = Heard::default();
    let mut id = 0;
    let mut arrive = |queue: &mut AnyQueue<Probe>, heard: &mut Heard, flow| {
        id += 1;
        queue.enqueue(packet(id, flow, 1000, 0), Time::ZERO, heard);
    };
    for flow in 0..101 {
        (0..3).for_each(|_| arrive(&mut queue, &mut heard, flow));
    }
    let mut serve = |sends: u32, stays: fn(u32) -> bool| {
        let mut sent = [0u32; 101];
        for _ in 0..sends {
            let left = queue.dequeue(Time::ZERO, &mut heard).expect("backlogged");
            sent[left.flow as usize] += 1;
            if stays(left.flow) {
                arrive(&mut queue, &mut heard, left.flow);
            }
        }
        sent
    };
    serve(2_000, |_| true);
    // The 99 send what they have left and are found empty: four turns of theirs.
    serve(2 * 4 * 100, |flow| flow >= 99);
    let sent = serve(1_000, |flow| flow >= 99);
    assert!(sent[99].abs_diff(sent[100]) <= 3, "{sent:?}");
}

#[test]
fn tins_are_those_of_the_codepoints() {
    // With a rate, of tins that keep to their shares the last goes first.
    let order = |diffserv, dscps: &[u8]| {
        let params = CakeParams {
            diffserv,
            rate: Some(Rate::from_bps(100_000_000)),
            ..params()
        };
        let mut queue = build(params, &[]);
        let (mut heard, mut now) = (Heard::default(), Time::ZERO);
        for (id, &dscp) in (0..).zip(dscps) {
            queue.enqueue(packet(id, id as u32, 100, dscp), now, &mut heard);
        }
        let mut order = Vec::new();
        while order.len() < dscps.len() {
            match queue.dequeue(now, &mut heard) {
                Some(packet) => order.push(packet.dscp.get()),
                None => now = queue.next_wakeup().time().expect("packets wait"),
            }
        }
        order
    };
    let (cs1, be, af41, ef, cs7) = (8, 0, 34, 46, 56);
    assert_eq!(order(Diffserv::Diffserv3, &[be, cs1, ef]), [ef, cs1, be]);
    assert_eq!(
        order(Diffserv::Diffserv4, &[be, cs1, ef, af41]),
        [ef, af41, cs1, be]
    );
    assert_eq!(
        order(Diffserv::Diffserv8, &[cs1, be, af41, ef, cs7]),
        [cs7, ef, af41, be, cs1]
    );
    assert_eq!(
        order(Diffserv::Precedence, &[be, cs1, af41, ef, cs7]),
        [cs7, ef, af41, cs1, be]
    );
    assert_eq!(order(Diffserv::Besteffort, &[be, cs1, ef]), [be, cs1, ef]);
}

#[test]
fn without_a_rate_tins_share_by_their_quanta() {
    // diffserv3: 1024, 64 and 256 B a turn.
    let params = CakeParams {
        diffserv: Diffserv::Diffserv3,
        ..params()
    };
    let mut queue = build(params, &[]);
    let mut heard = Heard::default();
    let dscps = [0, 8, 46];
    for (flow, &dscp) in (0..).zip(&dscps) {
        for id in 0..30 {
            queue.enqueue(
                packet(u64::from(flow) * 30 + id, flow, 1000, dscp),
                Time::ZERO,
                &mut heard,
            );
        }
    }
    let mut sent = [0.0; 3];
    let sends = 26_880u32; // 20 times 1344
    for id in 0..sends {
        let left = queue.dequeue(Time::ZERO, &mut heard).expect("backlogged");
        sent[left.flow as usize] += 1.0 / f64::from(sends);
        let again = packet(1000 + u64::from(id), left.flow, 1000, left.dscp.get());
        queue.enqueue(again, Time::ZERO, &mut heard);
    }
    for (sent, quantum) in sent.iter().zip([1024.0, 64.0, 256.0]) {
        assert!(
            (sent - quantum / 1344.0).abs() < 0.002,
            "{sent} for {quantum}"
        );
    }
}

#[test]
fn a_shaped_tin_beyond_its_share_gives_way() {
    // Voice has a quarter of diffserv3: beyond it, it is served when it is due, so that
    // with best effort backlogged as well it gets that quarter.
    let rate = Rate::from_bps(8_000_000);
    let params = CakeParams {
        diffserv: Diffserv::Diffserv3,
        rate: Some(rate),
        ..params()
    };
    let mut queue = build(params, &[]);
    let (mut heard, mut now) = (Heard::default(), Time::ZERO);
    let mut id = 0;
    let mut sent = [0u64; 2];
    let mut feed = |queue: &mut AnyQueue<Probe>, flow: u32, heard: &mut Heard, now| {
        queue.enqueue(packet(id, flow, 1000, [0, 46][flow as usize]), now, heard);
        id += 1;
    };
    for flow in [0, 0, 1, 1] {
        feed(&mut queue, flow, &mut heard, now);
    }
    while sent[0] + sent[1] < 4000 {
        match queue.dequeue(now, &mut heard) {
            Some(left) => {
                sent[left.flow as usize] += 1;
                feed(&mut queue, left.flow, &mut heard, now);
            }
            None => now = queue.next_wakeup().time().expect("packets wait"),
        }
    }
    let voice = sent[1] as f64 / 4000.0;
    assert!((voice - 0.25).abs() < 0.01, "{voice}");
}

#[test]
fn a_hundred_flows_do_not_share_queues() {
    // Sets of 8 places: a plain hash into 1024 leaves 100 flows without a collision with
    // probability 0.007, this one with more than 0.999.
    let hosts: Vec<(u32, u32)> = (0..100).map(|i| (i, 1000 + i)).collect();
    let mut queue = build(params(), &hosts);
    let mut heard = Heard::default();
    queue.start_measuring(Time::ZERO);
    for id in 0..1000 {
        let flow = id as u32 % 100;
        queue.enqueue(packet(id, flow, 500, 0), Time::ZERO, &mut heard);
    }
    let mut told = Vec::new();
    queue.report(
        Time::ZERO,
        &mut Report::new(&mut |name, value| told.push((name.to_owned(), value))),
    );
    assert!(
        told.contains(&("hash_collisions".to_owned(), 0.0)),
        "{told:?}"
    );
    // Turns of one packet in a row and one each: every flow has its own.
    let first: Vec<u32> = (0..400)
        .map(|_| queue.dequeue(Time::ZERO, &mut heard).expect("waiting").flow)
        .collect();
    for flow in 0..100 {
        let count = first.iter().filter(|&&other| other == flow).count();
        assert!((3..=7).contains(&count), "flow {flow} sent {count} of 400");
    }
}

#[test]
fn overload_costs_the_fattest_queue_its_oldest_packet() {
    let params = CakeParams {
        limit: Some(Limit::packets(10)),
        diffserv: Diffserv::Diffserv3,
        ..params()
    };
    let mut queue = build(params, &[]);
    let mut heard = Heard::default();
    for id in 0..3 {
        queue.enqueue(packet(id, 0, 100, 0), Time::ZERO, &mut heard);
    }
    for id in 3..10 {
        queue.enqueue(packet(id, 1, 100, 46), Time::ZERO, &mut heard);
    }
    queue.enqueue(packet(10, 0, 100, 0), Time::ZERO, &mut heard);
    let dropped: Vec<_> = heard
        .dropped
        .iter()
        .map(|drop| (drop.0.id, drop.1))
        .collect();
    assert_eq!(dropped, [(3, DropReason::Limit)]);
}

#[test]
fn washing_leaves_the_tin_and_clears_the_codepoint() {
    let params = CakeParams {
        wash: true,
        diffserv: Diffserv::Diffserv3,
        rate: Some(Rate::from_bps(1_000_000)),
        ..params()
    };
    let mut queue = build(params, &[]);
    let mut heard = Heard::default();
    queue.enqueue(packet(0, 0, 100, 0), Time::ZERO, &mut heard);
    queue.enqueue(packet(1, 1, 100, 46), Time::ZERO, &mut heard);
    let left = queue.dequeue(Time::ZERO, &mut heard).expect("waiting");
    assert_eq!((left.id, left.dscp), (1, Dscp::BEST_EFFORT));
}

#[test]
fn impossible_values_are_refused_and_odd_ones_warned_about() {
    let refusal = |params: CakeParams| QueueParams::Cake(params).check().unwrap_err().to_string();
    assert_eq!(
        refusal(CakeParams {
            rate: Some(Rate::from_bps(10)),
            ..params()
        }),
        "rate is less than a tin can have a share of; accepted: at least \"1 kbit/s\", or no such key for the link's own rate"
    );
    assert_eq!(
        refusal(CakeParams {
            rtt: Span::from_us(1),
            ..params()
        }),
        "rtt is too short for a target of a twentieth; accepted: at least \"20 us\", for example \"100 ms\""
    );
    assert_eq!(
        refusal(CakeParams {
            overhead: Bytes::new(18),
            ..params()
        }),
        "rate is missing, and without it overhead, mpu, framing and ingress have no effect; accepted: a rate such as \"9.5 Mbit/s\""
    );
    for (key, params) in [
        (
            "mpu",
            CakeParams {
                mpu: Bytes::new(1_000_000_000_000),
                ..params()
            },
        ),
        (
            "mpu",
            CakeParams {
                mpu: Bytes::new(257),
                ..params()
            },
        ),
        (
            "overhead",
            CakeParams {
                overhead: Bytes::new(257),
                ..params()
            },
        ),
    ] {
        assert_eq!(
            refusal(params),
            format!("{key} is more than Linux takes; accepted: \"0 B\" to \"256 B\" (tc-cake)")
        );
    }
    assert_eq!(
        refusal(CakeParams {
            limit: Some(Limit::bytes(0)),
            ..params()
        }),
        "limit would drop every packet; accepted: at least \"1 packet\", or at least one packet's size in bytes"
    );
    let fast = CakeParams {
        rate: Some(Rate::from_bps(2_000_000_000)),
        ..params()
    };
    let warnings = QueueParams::Cake(fast).warnings(&link(&[]));
    assert_eq!(warnings.len(), 1);
    assert_eq!(
        warnings[0].clause,
        "is above the link's rate (1 Gbit/s), so that the shaper never acts"
    );
}

#[test]
fn the_limit_is_four_round_trips_of_the_rate() {
    let limit = |bps: Option<u64>| {
        let params = CakeParams {
            rate: bps.map(Rate::from_bps),
            rtt: Span::from_ms(100),
            limit: None,
            ..params()
        };
        QueueParams::Cake(params).limit().expect("always one").bytes
    };
    assert_eq!(limit(Some(10_000_000)), Some(4 << 20));
    assert_eq!(limit(Some(240_000_000)), Some(12_000_000));
    assert_eq!(limit(Some(10_000_000_000)), Some(10_240 * 1514));
    assert_eq!(limit(None), Some(10_240 * 1514));
}
