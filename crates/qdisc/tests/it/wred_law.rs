//! Weighted RED against RED and against averages computed here, and what is refused.

use crate::common::{Heard, Probe, build};
use redtail_core::{Dscp, Ecn, QueueSize, Rate, Span, Stream, Time};
use redtail_qdisc::laws::red::Spacing;
use redtail_qdisc::queues::red::{Gentle, RedParams};
use redtail_qdisc::queues::wred::{Average, ProfileParams, WredParams};
use redtail_qdisc::{DropReason, Limit, LinkFacts, QueueDiscipline, QueueParams};

fn dscp(name: &str) -> Dscp {
    name.parse().expect("a DSCP")
}

fn profile(dscps: &[&str], min_th: u64, max_th: u64, max_p: f64) -> ProfileParams {
    ProfileParams {
        dscp: dscps.iter().map(|name| dscp(name)).collect(),
        min_th: QueueSize::Packets(min_th),
        max_th: QueueSize::Packets(max_th),
        max_p,
    }
}

fn packet(id: u64, class: &str) -> Probe {
    Probe {
        dscp: dscp(class),
        ..Probe::new(id, 500, Ecn::NotEct)
    }
}

/// What a queue does with a fixed random traffic of some classes, step by step.
fn log_of(spec: &QueueParams, classes: &[&str]) -> Vec<String> {
    let mut queue = build(spec);
    let mut stream = Stream::named(3, 0, "traffic");
    let mut log = Vec::new();
    let mut now = Time::ZERO;
    for id in 0..5000 {
        now += Span::from_us((stream.uniform() * 5000.0) as u64);
        let mut heard = Heard::default();
        if stream.uniform() < 0.55 {
            let class = classes[(stream.uniform() * classes.len() as f64) as usize];
            queue.enqueue(packet(id, class), now, &mut heard);
        } else {
            let left = queue.dequeue(now, &mut heard);
            log.push(format!("{:?}", left.map(|packet| packet.id)));
        }
        let dropped = heard
            .dropped
            .iter()
            .map(|(packet, reason, _)| (packet.id, *reason));
        log.push(format!(
            "{:?} {:?}",
            dropped.collect::<Vec<_>>(),
            queue.internals()
        ));
    }
    log
}

#[test]
fn one_profile_is_red() {
    for gentle in [Gentle::Off, Gentle::TwiceMaxTh] {
        let red = RedParams {
            max_p: Some(0.2),
            w_q: Some(0.05),
            gentle,
            ..RedParams::new(
                Limit::packets(20),
                QueueSize::Packets(3),
                QueueSize::Packets(9),
            )
        };
        let expected = log_of(&QueueParams::Red(red), &["BE", "EF"]);
        assert!(expected.iter().any(|line| line.contains("Early")));
        for average in [Average::Total, Average::Rio, Average::Own] {
            let wred = WredParams {
                w_q: 0.05,
                gentle,
                average,
                ..WredParams::new(Limit::packets(20), vec![profile(&[], 3, 9, 0.2)])
            };
            assert_eq!(log_of(&QueueParams::Wred(wred), &["BE", "EF"]), expected);
        }
    }
}

#[test]
fn each_average_counts_the_packets_it_is_for() {
    // The three definitions computed directly; thresholds out of reach keep all packets.
    const W: f64 = 0.1;
    let classes = ["AF11", "AF12", "BE"];
    for (average, counts) in [
        (Average::Total, (|_, _| true) as fn(usize, usize) -> bool),
        (Average::Rio, |class, k| class <= k),
        (Average::Own, |class, k| class == k),
    ] {
        let profiles = vec![
            profile(&["AF11"], 1000, 2000, 0.1),
            profile(&["AF12"], 1000, 2000, 0.1),
            profile(&[], 1000, 2000, 0.1),
        ];
        let mut queue = build(&QueueParams::Wred(WredParams {
            w_q: W,
            average,
            ..WredParams::new(Limit::packets(5000), profiles)
        }));
        let mut stream = Stream::named(4, 0, "classes");
        let (mut inside, mut averages) = (Vec::new(), [0.0; 3]);
        let mut now = Time::ZERO;
        let mut idle_since = Some(now);
        for id in 0..3000 {
            let heard = &mut Heard::default();
            if stream.uniform() < 0.5 {
                let class = (stream.uniform() * 3.0) as usize;
                // 4 ms a packet of 500 B at 1 Mbit/s.
                let idle = idle_since
                    .take()
                    .map(|since: Time| (now - since).as_ps() / 4_000_000_000);
                for (k, average) in averages.iter_mut().enumerate() {
                    *average *= (1.0f64 - W).powi(idle.unwrap_or(0) as i32);
                    if counts(class, k) {
                        let q = inside.iter().filter(|&&other| counts(other, k)).count();
                        *average = (1.0 - W) * *average + W * q as f64;
                    }
                }
                inside.push(class);
                queue.enqueue(packet(id, classes[class]), now, heard);
                assert_eq!(heard.dropped, []);
            } else if queue.dequeue(now, heard).is_some() {
                inside.remove(0);
            } else {
                idle_since.get_or_insert(now);
                now += Span::from_us((stream.uniform() * 20_000.0) as u64);
            }
            let shown = queue.internals().average.expect("it has averages");
            let expected = match average {
                Average::Own => averages.iter().sum(),
                _ => averages[2],
            };
            assert!(
                (shown - expected).abs() < 1e-9,
                "{average:?}: {shown} {expected}"
            );
        }
        assert!(
            averages.iter().all(|average| *average > 0.5),
            "{averages:?}"
        );
    }
}

/// The probability that a packet of `class` meets behind `ahead`.
fn probability(average: Average, ahead: &[&str], class: &str) -> f64 {
    let profiles = vec![profile(&["AF11"], 4, 8, 0.02), profile(&[], 1, 5, 0.2)];
    let mut queue = build(&QueueParams::Wred(WredParams {
        w_q: 1.0,
        average,
        spacing: Spacing::None,
        ..WredParams::new(Limit::packets(50), profiles)
    }));
    let heard = &mut Heard::default();
    let mut id = 0;
    for class in ahead {
        let before = queue.backlog().packets;
        while queue.backlog().packets == before {
            queue.enqueue(packet(id, class), Time::ZERO, heard);
            id += 1;
        }
    }
    queue.enqueue(packet(id, class), Time::ZERO, heard);
    queue.internals().probability.expect("it has a probability")
}

#[test]
fn rio_drops_out_for_the_whole_queue_and_in_for_in_packets_alone() {
    // Clark and Fang 1998: avg_in for In (4, 8, 0.02), avg_total for Out (1, 5, 0.2).
    let two_each = ["AF11", "BE", "AF11", "BE"];
    let six_in = ["AF11"; 6];
    for (average, ahead, class, expected) in [
        (Average::Rio, &two_each[..], "AF11", 0.0), // 2 In
        (Average::Rio, &two_each, "BE", 0.15),      // 4 in all
        (Average::Rio, &six_in, "AF11", 0.01),
        (Average::Rio, &six_in, "BE", 1.0),
        (Average::Total, &two_each, "AF11", 0.0), // 4 in all, at min_th
        (Average::Total, &two_each, "BE", 0.15),
        (Average::Own, &two_each, "BE", 0.05), // 2 Out
        (Average::Own, &six_in, "BE", 0.0),
        (Average::Own, &six_in, "AF11", 0.01),
    ] {
        let p = probability(average, ahead, class);
        assert!(
            (p - expected).abs() < 1e-12,
            "{average:?} {ahead:?} {class}: {p}"
        );
    }
}

#[test]
fn the_limit_is_for_all_profiles() {
    let profiles = vec![
        profile(&["AF11"], 100, 200, 0.1),
        profile(&[], 100, 200, 0.1),
    ];
    let mut queue = build(&QueueParams::Wred(WredParams::new(
        Limit::packets(6),
        profiles,
    )));
    let mut heard = Heard::default();
    for id in 0..8 {
        let class = if id % 2 == 0 { "AF11" } else { "BE" };
        queue.enqueue(packet(id, class), Time::ZERO, &mut heard);
    }
    let dropped: Vec<_> = heard
        .dropped
        .iter()
        .map(|(packet, reason, _)| (packet.id, *reason))
        .collect();
    assert_eq!(dropped, [(6, DropReason::Limit), (7, DropReason::Limit)]);
}

#[test]
fn impossible_values_are_refused() {
    let refusal = |change: fn(&mut WredParams)| {
        let profiles = vec![profile(&["AF11"], 40, 70, 0.02), profile(&[], 10, 30, 0.2)];
        let mut params = WredParams::new(Limit::packets(100), profiles);
        change(&mut params);
        let spec = QueueParams::Wred(params);
        let link = LinkFacts::of_rate(Rate::from_bps(10_000_000));
        let checked = spec.check().and_then(|()| spec.check_at(&link));
        checked.map_err(|error| error.to_string())
    };
    assert_eq!(refusal(|_| {}), Ok(()));
    let classes =
        "accepted: for each DSCP one profile at most, and one profile without dscp for all others";
    for (change, message) in [
        ((|wred| wred.profiles.clear()) as fn(&mut WredParams), format!("profiles have none without dscp: packets of other classes would have no thresholds; {classes}")),
        (|wred| { wred.profiles.pop(); }, format!("profiles have none without dscp: packets of other classes would have no thresholds; {classes}")),
        (|wred| wred.profiles[0].dscp.clear(), format!("profiles have 2 without dscp, and one alone can be for all other packets; {classes}")),
        (|wred| { let twice = wred.profiles[0].clone(); wred.profiles.push(twice); }, format!("profiles name AF11 twice; {classes}")),
        (|wred| wred.profiles = vec![wred.profiles[0].clone(); 17], format!("profiles are 17, more than 16; {classes}")),
        (|wred| wred.w_q = 0.0, "w_q is not a weight above 0; accepted: a number above 0 and up to 1".to_owned()),
        (|wred| wred.profiles[1].max_p = 1.5, "profiles (entry 2).max_p is not a probability above 0; accepted: a number above 0 and up to 1".to_owned()),
        (|wred| wred.profiles[1].max_th = QueueSize::Bytes(9000), "profiles (entry 2).max_th is in another unit than min_th of the first profile (40 packets); accepted: all thresholds in packets, or all in bytes or time".to_owned()),
        (|wred| wred.profiles[1].min_th = QueueSize::Packets(30), "profiles (entry 2).min_th is not below max_th (30 packets); accepted: less than \"30 packets\"".to_owned()),
        (|wred| { wred.gentle = Gentle::Limit; wred.limit = Limit::packets(60); }, "gentle needs a limit above every max_th (70 packets) in the same unit; accepted: true, false, \"twice-max-th\" or \"limit\"".to_owned()),
    ] {
        assert_eq!(refusal(change), Err(message));
    }
}

#[test]
fn degenerate_values_are_warned_about() {
    let warned = |limit, average, profiles: Vec<ProfileParams>| -> Vec<String> {
        let spec = QueueParams::Wred(WredParams {
            average,
            ..WredParams::new(limit, profiles)
        });
        let link = LinkFacts::of_rate(Rate::from_bps(10_000_000));
        let warnings = spec.warnings(&link).into_iter();
        warnings
            .map(|warning| format!("{} {}", warning.key, warning.clause))
            .collect()
    };
    let (kept, other) = (profile(&["AF11"], 40, 70, 0.02), profile(&[], 10, 30, 0.2));
    let right = vec![kept.clone(), other.clone()];
    assert_eq!(
        warned(Limit::packets(100), Average::Rio, right.clone()),
        [""; 0]
    );
    assert_eq!(
        warned(Limit::packets(70), Average::Rio, right),
        [
            "profiles (entry 1).max_th is not below the limit (\"70 packets\"), so the buffer overflows before the average gets there"
        ]
    );
    let wrong = vec![other, kept];
    assert_eq!(
        warned(Limit::packets(100), Average::Total, wrong.clone()),
        [""; 0]
    );
    assert_eq!(
        warned(Limit::packets(100), Average::Rio, wrong),
        [
            "profiles (entry 2).max_th is above that of a profile before it (30 packets), while its average counts that one's packets too: profiles go from the packets to keep longest to those to drop first"
        ]
    );
}
