//! The parameter model for TCP traffic against the settings computed for the ISCC 2001
//! evaluation, and `tune` in the file.

use crate::common::{Heard, Probe, build_on};
use redtail_core::{Bytes, Ecn, QueueSize, Rate, Span, Time};
use redtail_qdisc::laws::red::Spacing;
use redtail_qdisc::laws::red::ziegler::{MIN_RTO, NoTuning, Situation, Tuning, tune};
use redtail_qdisc::queues::red::{RedParams, Tune};
use redtail_qdisc::{Limit, LinkFacts, QueueDiscipline, QueueKind, QueueParams};

/// ISCC 2001: 10 Mbit/s, 120 to 180 ms, packets of 1514 B, a tenth of it UDP of 573 B.
fn iscc(flows: u64) -> Situation {
    Situation {
        capacity: Rate::from_bps(10_000_000),
        round_trips: [120, 140, 160, 180]
            .map(|ms| (Span::from_ms(ms), 1.0))
            .to_vec(),
        flows: flows as f64,
        packet: Bytes::new(1514),
        packets_per_ack: 1.0,
        min_rto: Span::from_ms(400),
        udp_rate: Rate::from_bps(1_000_000),
        udp_packet: Bytes::new(573),
    }
}

#[test]
fn the_model_gives_the_settings_of_the_evaluation() {
    // Each as printed in the notes on the paper, to their last digit: flows, min_th,
    // max_th, limit, max_p, w_q, loss, and C R with queueing in packets.
    let table = [
        (16, 29, 126, 194, "0.026", "0.00062", "0.0118", 222),
        (32, 32, 138, 213, "0.078", "0.00114", "0.0352", 228),
        (64, 37, 162, 249, "0.176", "0.00191", "0.0800", 242),
        (128, 48, 209, 321, "0.302", "0.00185", "0.1374", 270),
        (256, 70, 303, 467, "0.434", "0.00153", "0.1971", 327),
    ];
    for (flows, min_th, max_th, limit, max_p, w_q, loss, product) in table {
        let tuning = tune(&iscc(flows)).expect("there are flows");
        let rounded = [tuning.min_th, tuning.max_th, tuning.limit].map(f64::round);
        assert_eq!(rounded, [min_th, max_th, limit].map(f64::from), "{flows}");
        assert_eq!(format!("{:.3}", tuning.max_p), max_p, "{flows}");
        assert_eq!(format!("{:.5}", tuning.w_q), w_q, "{flows}");
        assert_eq!(format!("{:.4}", tuning.loss), loss, "{flows}");
        let queueing = tuning.packet_rate * tuning.round_trip;
        assert_eq!(queueing.round(), f64::from(product), "{flows}");
    }
}

#[test]
fn the_capacity_is_shared_as_the_notes_count_it() {
    // 743 TCP and 218 UDP packets a second where nothing is lost: 961, and 144 in the pipe.
    let plenty = Situation {
        // A flow that loses next to nothing.
        round_trips: vec![(Span::from_ms(150), 1.0)],
        ..iscc(1)
    };
    let tuning = tune(&plenty).expect("there is a flow");
    assert_eq!(tuning.packet_rate.round(), 961.0);
    let distance = tuning.max_th - tuning.min_th;
    assert!(
        (distance - (85.0 + 0.0216 * 144.18 + 0.567)).abs() < 1e-3,
        "{distance}"
    );
}

#[test]
fn the_average_aimed_at_is_halfway_and_max_p_twice_the_loss() {
    let tcp_only = Situation {
        udp_rate: Rate::from_bps(0),
        udp_packet: Bytes::ZERO,
        ..iscc(64)
    };
    for (situation, factor) in [(tcp_only, 2.0), (iscc(64), 2.2)] {
        let tuning = tune(&situation).expect("there are flows");
        let halfway = (tuning.min_th + tuning.max_th) / 2.0;
        assert!((tuning.target - halfway).abs() < 1e-9);
        assert!((tuning.max_p - factor * tuning.loss).abs() < 1e-12);
    }
}

#[test]
fn the_loss_is_what_makes_the_flows_fill_what_udp_leaves() {
    // Padhye et al. 1998, equation 30, written out.
    for (flows, b) in [(16, 1.0), (64, 2.0), (256, 1.0), (2000, 2.0)] {
        let situation = Situation {
            packets_per_ack: b,
            ..iscc(flows)
        };
        let tuning = tune(&situation).expect("there are flows");
        let p = tuning.loss;
        let queueing = tuning.target / tuning.packet_rate;
        let mut offered = 0.0;
        for base in [0.12, 0.14, 0.16, 0.18] {
            let round_trip: f64 = base + queueing;
            let timeouts = f64::min(1.0, 3.0 * f64::sqrt(3.0 * b * p / 8.0));
            let time = round_trip * f64::sqrt(2.0 * b * p / 3.0)
                + 0.4 * timeouts * p * (1.0 + 32.0 * p * p);
            offered += flows as f64 / 4.0 / time;
        }
        let delivered = offered * (1.0 - p) * 1514.0 * 8.0;
        let left = 10e6 - 1e6 * (1.0 - p);
        assert!((delivered / left - 1.0).abs() < 1e-9, "{delivered} {left}");
    }
}

#[test]
fn delayed_acknowledgements_need_less_loss_and_a_longer_average() {
    // Without timeouts p is in proportion to 1 / b, and the sawtooth to b, but for factors
    // 1 - p, here of a percent.
    let of = |packets_per_ack| {
        let situation = Situation {
            packets_per_ack,
            min_rto: Span::ZERO,
            ..iscc(16)
        };
        tune(&situation).expect("there are flows")
    };
    let (each, second) = (of(1.0), of(2.0));
    let (loss, w_q) = (each.loss / second.loss, each.w_q / second.w_q);
    assert!((loss - 2.0).abs() < 0.05, "{loss}");
    assert!((w_q - 2.0).abs() < 0.05, "{w_q}");
}

#[test]
fn max_p_stays_a_probability() {
    let tuning = tune(&iscc(100_000)).expect("there are flows");
    assert_eq!(tuning.max_p, 1.0);
    assert!(tuning.loss < 1.0);
}

#[test]
fn where_the_model_does_not_apply_it_says_so() {
    let none = Situation {
        round_trips: Vec::new(),
        ..iscc(16)
    };
    for situation in [iscc(0), none] {
        assert_eq!(tune(&situation), Err(NoTuning::NoTcp));
    }
    let full = Situation {
        udp_rate: Rate::from_bps(10_000_000),
        ..iscc(16)
    };
    assert_eq!(tune(&full), Err(NoTuning::NoCapacity));
}

/// The evaluation's link, with 64 flows.
fn link() -> LinkFacts {
    let situation = iscc(64);
    LinkFacts {
        tcp_flows: 64,
        round_trips: situation.round_trips,
        tcp_packet: situation.packet,
        largest_packet: situation.packet,
        udp_rate: situation.udp_rate,
        udp_packet: situation.udp_packet,
        ..LinkFacts::of_rate(situation.capacity)
    }
}

/// RED with all left to the model, and nothing spaced or averaged for the test's sake.
fn tuned() -> RedParams {
    RedParams {
        tune: Some(Tune::Ziegler),
        limit: None,
        min_th: None,
        max_th: None,
        w_q: Some(1.0),
        spacing: Spacing::None,
        ..RedParams::new(
            Limit::packets(1),
            QueueSize::Packets(0),
            QueueSize::Packets(1),
        )
    }
}

/// p_b when an arrival finds `backlog` packets of 1514 B, and the most that the queue held.
fn probability_at(params: RedParams, backlog: u64) -> (f64, u64) {
    let mut queue = build_on(&QueueParams::Red(params), link());
    let (mut found, mut most) = (None, 0);
    for id in 0..20_000 {
        let before = queue.backlog().packets;
        let probe = Probe::new(id, 1514, Ecn::NotEct);
        queue.enqueue(probe, Time::ZERO, &mut Heard::default());
        if before == backlog && found.is_none() {
            found = queue.internals().probability;
        }
        most = most.max(queue.backlog().packets);
    }
    (found.expect("the backlog was reached"), most)
}

#[test]
fn tune_takes_everything_from_the_link() {
    let model = tune(&Situation::of_link(&link()).expect("flows cross it")).expect("it applies");
    assert_eq!(
        Ok(model),
        tune(&Situation {
            min_rto: MIN_RTO,
            ..iscc(64)
        })
    );
    // Thresholds 37 and 162, as computed and rounded.
    let (p, _) = probability_at(tuned(), 100);
    let expected = model.max_p * (100.0 - 37.0) / (162.0 - 37.0);
    assert!((p - expected).abs() < 1e-12, "{p}, not {expected}");
    assert_eq!(probability_at(tuned(), 37).0, 0.0);
    // The limit of 249 packets, once the average does not stop the queue.
    let slow = RedParams {
        w_q: Some(1e-9),
        ..tuned()
    };
    assert_eq!(probability_at(slow, 0).1, 249);
}

#[test]
fn what_is_given_stays() {
    let given = RedParams {
        min_th: Some(QueueSize::Packets(50)),
        max_p: Some(0.5),
        limit: Some(Limit::packets(120)),
        ..tuned()
    };
    let (p, most) = probability_at(given, 100);
    assert!((p - 0.5 * 50.0 / 112.0).abs() < 1e-12, "{p}");
    assert!(most <= 120, "{most}");
    // A threshold in bytes makes what is computed bytes.
    let in_bytes = RedParams {
        min_th: Some(QueueSize::Bytes(50 * 1514)),
        max_p: Some(0.5),
        ..tuned()
    };
    let (p, _) = probability_at(in_bytes, 100);
    assert!((p - 0.5 * 50.0 / 112.0).abs() < 1e-12, "{p}");
}

#[test]
fn tune_is_refused_where_there_is_nothing_to_tune_for() {
    let refusal = |link: &LinkFacts, params: RedParams| {
        let checked = params.check().and_then(|()| params.check_at(link));
        checked.expect_err("it was to be refused").to_string()
    };
    let empty = LinkFacts::of_rate(Rate::from_bps(10_000_000));
    assert_eq!(
        refusal(&empty, tuned()),
        "tune needs TCP flows across the link to compute parameters for; accepted: no tune, with limit, min_th and max_th"
    );
    let full = LinkFacts {
        udp_rate: Rate::from_bps(11_000_000),
        ..link()
    };
    assert_eq!(
        refusal(&full, tuned()),
        "tune finds no capacity for TCP: the UDP sources alone fill the link; accepted: no tune, with limit, min_th and max_th"
    );
    let low = RedParams {
        max_th: Some(QueueSize::Packets(30)),
        ..tuned()
    };
    assert_eq!(
        refusal(&link(), low),
        "min_th is not below max_th (30 packets); accepted: less than \"30 packets\""
    );
}

#[test]
fn without_tune_sizes_are_required() {
    let full = RedParams::new(
        Limit::packets(100),
        QueueSize::Packets(10),
        QueueSize::Packets(30),
    );
    for (params, message) in [
        (
            RedParams {
                limit: None,
                ..full.clone()
            },
            "limit is missing; accepted: a queue size such as \"300 packets\", or tune = \"ziegler\" to have it computed",
        ),
        (
            RedParams {
                min_th: None,
                ..full.clone()
            },
            "min_th is missing; accepted: a queue size such as \"45 packets\", or tune = \"ziegler\" to have it computed",
        ),
        (
            RedParams {
                max_th: None,
                ..full.clone()
            },
            "max_th is missing; accepted: a queue size such as \"195 packets\", or tune = \"ziegler\" to have it computed",
        ),
    ] {
        assert_eq!(
            params
                .check()
                .expect_err("it was to be refused")
                .to_string(),
            message
        );
    }
    assert_eq!(full.check(), Ok(()));
}

#[test]
fn the_tuning_is_finite_wherever_it_exists() {
    for flows in [1, 10, 1000, 1_000_000] {
        for mbps in [1, 100, 100_000] {
            let situation = Situation {
                capacity: Rate::from_bps(mbps * 1_000_000),
                udp_rate: Rate::from_bps(0),
                ..iscc(flows)
            };
            let Tuning {
                max_p,
                w_q,
                loss,
                round_trip,
                ..
            } = tune(&situation).expect("flows");
            for value in [max_p, w_q, loss] {
                assert!(value > 0.0 && value <= 1.0, "{flows} {mbps} {value}");
            }
            assert!(round_trip.is_finite() && round_trip > 0.15);
        }
    }
}
