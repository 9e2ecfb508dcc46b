//! CAKE's ACK filter: each rule of the kernel's `cake_ack_filter`, and what the queue makes of it.

use crate::common::examples::parameters;
use crate::common::{Heard, Probe, build_on};
use redtail_core::{Ecn, Rate, Time};
use redtail_qdisc::header::MAX_SACK_BLOCKS;
use redtail_qdisc::laws::ack_filter::redundant;
use redtail_qdisc::queues::cake::{AckFilter, CakeParams};
use redtail_qdisc::{
    AnyQueue, Backlog, DropReason, LinkFacts, QueueDiscipline, QueueParams, Report, TcpHeader,
};

/// A pure acknowledgement.
fn ack(ack: u64) -> TcpHeader {
    TcpHeader {
        tuple: 1,
        flags: TcpHeader::ACK,
        ack,
        ..TcpHeader::default()
    }
}

fn with_flags(number: u64, flags: u16) -> TcpHeader {
    TcpHeader {
        flags: TcpHeader::ACK | flags,
        ..ack(number)
    }
}

fn with_sack(number: u64, blocks: &[(u64, u64)]) -> TcpHeader {
    let mut sack = [(0, 0); MAX_SACK_BLOCKS];
    sack[..blocks.len()].copy_from_slice(blocks);
    TcpHeader {
        sack,
        ..ack(number)
    }
}

fn with_time(number: u64, value: u32, echo: u32) -> TcpHeader {
    TcpHeader {
        timestamps: Some((value, echo)),
        ..ack(number)
    }
}

/// What goes when the last of these joins the others.
fn victim(headers: &[TcpHeader], aggressive: bool) -> Option<usize> {
    let (latest, waiting) = headers.split_last().expect("one at least");
    redundant(
        latest,
        waiting.iter().map(|&header| Some(header)),
        aggressive,
    )
}

#[test]
fn of_two_redundant_acknowledgements_the_one_nearer_the_head_goes() {
    assert_eq!(victim(&[ack(1)], false), None);
    assert_eq!(victim(&[ack(1), ack(2)], false), None);
    assert_eq!(victim(&[ack(1), ack(2), ack(3)], false), Some(0));
    assert_eq!(victim(&[ack(1), ack(2), ack(3), ack(4)], false), Some(0));
}

#[test]
fn the_aggressive_filter_needs_no_second_one_if_nothing_is_between() {
    assert_eq!(victim(&[ack(1), ack(2)], true), Some(0));
    assert_eq!(victim(&[ack(1), ack(2), ack(3)], true), Some(0));
    // A packet of another connection between the only one and the latest.
    let other = TcpHeader { tuple: 2, ..ack(9) };
    assert_eq!(victim(&[ack(1), other, ack(2)], true), None);
    assert_eq!(victim(&[other, ack(1), ack(2)], true), Some(1));
    // The bits must agree.
    let echo = with_flags(2, TcpHeader::ECE);
    assert_eq!(victim(&[ack(1), echo], true), None);
    assert_eq!(
        victim(&[with_flags(1, TcpHeader::ECE), echo], true),
        Some(0)
    );
}

#[test]
fn only_the_same_addresses_and_ports_count() {
    let other = |number| TcpHeader {
        tuple: 2,
        ..ack(number)
    };
    assert_eq!(victim(&[other(1), other(2), ack(3)], true), None);
    assert_eq!(
        victim(&[other(1), ack(1), other(2), ack(2), ack(3)], false),
        Some(1)
    );
    // No TCP at all.
    let waiting = [None, Some(ack(1)), None, Some(ack(2))];
    assert_eq!(redundant(&ack(3), waiting.into_iter(), false), Some(1));
}

#[test]
fn the_latest_may_be_data_but_not_a_syn() {
    let data = TcpHeader {
        payload: 1448,
        flags: TcpHeader::ACK | TcpHeader::PSH,
        ..ack(3)
    };
    assert_eq!(victim(&[ack(1), ack(2), data], false), Some(0));
    assert_eq!(
        victim(&[ack(1), ack(2), with_flags(3, TcpHeader::SYN)], false),
        None
    );
    let without = TcpHeader { flags: 0, ..ack(3) };
    assert_eq!(victim(&[ack(1), ack(2), without], false), None);
}

#[test]
fn what_is_no_pure_acknowledgement_stays() {
    let data = TcpHeader {
        payload: 1,
        ..ack(1)
    };
    let mut unsafe_ones = vec![
        data,
        TcpHeader {
            other_options: true,
            ..ack(1)
        },
    ];
    let flags = [
        TcpHeader::FIN,
        TcpHeader::SYN,
        TcpHeader::RST,
        TcpHeader::PSH,
        TcpHeader::URG,
        TcpHeader::AE,
        0x200,
    ];
    unsafe_ones.extend(flags.map(|flag| with_flags(1, flag)));
    unsafe_ones.push(TcpHeader { flags: 0, ..ack(1) });
    for header in unsafe_ones {
        assert_eq!(victim(&[header, header, ack(9)], true), None, "{header:?}");
        // Another one behind it may still go, if there is a second.
        assert_eq!(
            victim(&[header, ack(2), ack(3), ack(9)], false),
            Some(1),
            "{header:?}"
        );
    }
}

#[test]
fn an_acknowledgement_of_more_or_of_the_same_stays() {
    assert_eq!(victim(&[ack(4), ack(4), ack(3)], true), None);
    // Duplicates are what fast retransmit counts.
    assert_eq!(victim(&[ack(3), ack(3), ack(3)], true), None);
    assert_eq!(victim(&[ack(2), ack(3), ack(3)], false), None);
    assert_eq!(victim(&[ack(1), ack(2), ack(3), ack(3)], false), Some(0));
}

#[test]
fn a_change_of_ece_or_cwr_is_kept() {
    let echo = |number| with_flags(number, TcpHeader::ECE);
    // The first to echo, and the last before it, stay.
    assert_eq!(victim(&[ack(1), echo(2), ack(3)], false), None);
    assert_eq!(
        victim(&[ack(1), ack(2), echo(3), echo(4), echo(5)], false),
        Some(0)
    );
    assert_eq!(victim(&[ack(1), echo(2), echo(3), echo(4)], false), Some(1));
    let reduced = |number| with_flags(number, TcpHeader::CWR);
    assert_eq!(victim(&[ack(1), reduced(2), ack(3), ack(4)], false), None);
    // Data of the same connection shows a change too.
    let data = TcpHeader {
        payload: 100,
        ..echo(2)
    };
    assert_eq!(victim(&[ack(1), data, ack(3), ack(4)], false), None);
    assert_eq!(
        victim(&[ack(1), data, ack(3), ack(4), ack(5)], false),
        Some(2)
    );
}

#[test]
fn later_timestamps_stay() {
    let times = |a: (u32, u32), b: (u32, u32)| {
        let first = with_time(1, a.0, a.1);
        let latest = with_time(2, b.0, b.1);
        victim(&[first, latest], true)
    };
    assert_eq!(times((10, 5), (10, 5)), Some(0));
    assert_eq!(times((9, 4), (10, 5)), Some(0));
    assert_eq!(times((11, 5), (10, 5)), None);
    assert_eq!(times((10, 6), (10, 5)), None);
    // Modulo 2^32.
    assert_eq!(times((u32::MAX, 5), (3, 5)), Some(0));
    assert_eq!(times((3, 5), (u32::MAX, 5)), None);
    // The kernel takes a missing timestamp for 0.
    assert_eq!(victim(&[with_time(1, 10, 5), ack(2)], true), None);
    assert_eq!(victim(&[ack(1), with_time(2, 10, 5)], true), Some(0));
}

#[test]
fn selective_acknowledgements_must_be_covered() {
    let one =
        |blocks: &[(u64, u64)], latest: TcpHeader| victim(&[with_sack(10, blocks), latest], true);
    // The latest has none, or not all of it.
    assert_eq!(one(&[(20, 30)], ack(11)), None);
    assert_eq!(one(&[(20, 30)], with_sack(11, &[(20, 29)])), None);
    assert_eq!(one(&[(20, 30), (40, 50)], with_sack(11, &[(20, 30)])), None);
    // It has more of it, or the same and acknowledges more.
    assert_eq!(one(&[(20, 30)], with_sack(11, &[(20, 40)])), Some(0));
    assert_eq!(one(&[(20, 30)], with_sack(11, &[(20, 30)])), Some(0));
    assert_eq!(one(&[(20, 30)], with_sack(10, &[(20, 40)])), Some(0));
    assert_eq!(one(&[(20, 30)], with_sack(10, &[(20, 30)])), None);
    assert_eq!(
        one(&[(20, 30)], with_sack(10, &[(60, 70), (15, 30)])),
        Some(0)
    );
    // A duplicate acknowledgement without any, before one that has some.
    assert_eq!(
        victim(&[ack(10), with_sack(10, &[(20, 30)])], true),
        Some(0)
    );
    // What it reports twice (D-SACK) is for no later one to repeat.
    assert_eq!(one(&[(5, 8)], with_sack(11, &[(5, 8), (20, 30)])), None);
}

fn cake(ack_filter: AckFilter) -> AnyQueue<Probe> {
    // The law has no say.
    let params = r#"diffserv = "besteffort"
rtt = "1000 s"
limit = "100 packets""#;
    let table = params.parse().expect("a table");
    let params: CakeParams = parameters(table).expect("they are those of the file");
    let link = LinkFacts::of_rate(Rate::from_bps(1_000_000));
    let params = CakeParams {
        ack_filter,
        ..params
    };
    build_on(&QueueParams::Cake(params), link)
}

/// Numbers that are dropped and that leave when these arrive at once.
fn filtered(ack_filter: AckFilter, headers: Vec<Option<TcpHeader>>) -> (Vec<u64>, Vec<u64>) {
    let mut queue = cake(ack_filter);
    let count = headers.len() as u64;
    let mut sink = Heard {
        headers: Some(headers),
        ..Heard::default()
    };
    for id in 0..count {
        queue.enqueue(Probe::new(id, 40 + id, Ecn::NotEct), Time::ZERO, &mut sink);
        // What was dropped is counted no more.
        let gone = |id: u64| sink.dropped.iter().any(|(dropped, ..)| dropped.id == id);
        let stay = (0..=id).filter(|&id| !gone(id));
        let expected = Backlog {
            packets: stay.clone().count() as u64,
            bytes: stay.map(|id| 40 + id).sum(),
        };
        assert_eq!(queue.backlog(), expected);
    }
    assert!(
        sink.dropped
            .iter()
            .all(|&(_, reason, _)| reason == DropReason::Redundant)
    );
    let dropped = sink
        .dropped
        .iter()
        .map(|(packet, ..)| packet.id)
        .collect::<Vec<_>>();
    let mut told = None;
    queue.report(
        Time::ZERO,
        &mut Report::new(&mut |name, value| {
            if name == "ack_drops" {
                told = Some(value);
            }
        }),
    );
    let expected = (ack_filter != AckFilter::Off).then_some(dropped.len() as f64);
    assert_eq!(told, expected);
    let left = std::iter::from_fn(|| queue.dequeue(Time::ZERO, &mut sink));
    (dropped, left.map(|packet| packet.id).collect())
}

#[test]
fn the_queue_drops_one_for_each_that_comes_and_keeps_the_order() {
    let acks = |count: u64| {
        (0..count)
            .map(|number| Some(ack(number)))
            .collect::<Vec<_>>()
    };
    assert_eq!(
        filtered(AckFilter::Off, acks(6)),
        (vec![], (0..6).collect())
    );
    assert_eq!(
        filtered(AckFilter::On, acks(6)),
        (vec![0, 1, 2, 3], vec![4, 5])
    );
    assert_eq!(
        filtered(AckFilter::Aggressive, acks(6)),
        (vec![0, 1, 2, 3, 4], vec![5])
    );
    // Data between them stays where it is.
    let data = TcpHeader {
        payload: 100,
        ..ack(0)
    };
    let mixed = vec![
        Some(ack(0)),
        Some(data),
        Some(ack(1)),
        Some(ack(2)),
        None,
        Some(ack(3)),
    ];
    assert_eq!(
        filtered(AckFilter::On, mixed),
        (vec![0, 2], vec![1, 3, 4, 5])
    );
}
