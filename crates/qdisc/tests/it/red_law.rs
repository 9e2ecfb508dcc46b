//! RED against closed forms: gaps between drops, the average, the slopes, what
//! is marked and what is dropped.
//!
//! Statistical tests have fixed seeds. Their bounds are such that a correct law
//! would fail one with probability 1e-6 had the seed been drawn.

use crate::common::{Heard, Probe, build_red};
use redtail_core::{Ecn, QueueSize, Span, Stream, Time};
use redtail_qdisc::laws::red::{Arrival, Flavour, RedConfig, RedDecision, RedLaw, Spacing};
use redtail_qdisc::queues::red::{AboveMaxTh, Gentle, RedParams};
use redtail_qdisc::{AnyQueue, DropReason, Limit, QueueDiscipline};

/// Drops nothing below 5 packets and, at 15, `max_p`.
fn config(max_p: f64, spacing: Spacing) -> RedConfig {
    RedConfig {
        min_th: 5.0,
        max_th: 15.0,
        max_p,
        w_q: 1e-9,
        gentle_end: None,
        spacing,
        flavour: Flavour::Paper,
    }
}

/// An arrival that leaves the average where it is.
fn arrival_at(average: f64) -> Arrival {
    Arrival {
        backlog: average,
        idle: None,
        relative_size: None,
    }
}

/// Gaps between drops of a law held at probability `p`: 1 when a drop follows a
/// drop at once.
fn gaps(p: f64, spacing: Spacing, relative_size: Option<f64>, count: usize) -> Vec<u64> {
    // Halfway between the thresholds the probability is half of max_p.
    let mut law = RedLaw::with_average(config(2.0 * p, spacing), 10.0);
    let arrival = Arrival {
        relative_size,
        ..arrival_at(10.0)
    };
    let mut stream = Stream::named(1, 0, "gaps");
    let mut gap = 0;
    let mut gaps = Vec::new();
    while gaps.len() <= count {
        gap += 1;
        if law.on_arrival(arrival, || stream.uniform()) == RedDecision::Early {
            gaps.push(gap);
            gap = 0;
        }
    }
    assert_eq!(law.average(), 10.0, "the average was to stay");
    assert!((law.probability() - p).abs() < 1e-15);
    gaps.split_off(1) // the first was not measured from a drop
}

/// The value that chi-square with `freedom` degrees exceeds with probability
/// 1e-6, by the approximation of Wilson and Hilferty (1931), good to a percent
/// for the degrees used here.
fn chi_square_bound(freedom: usize) -> f64 {
    const Z: f64 = 4.753; // the normal quantile of 1 - 1e-6
    let k = freedom as f64;
    let spread = 2.0 / (9.0 * k);
    k * (1.0 - spread + Z * spread.sqrt()).powi(3)
}

/// Checks that `gaps` lie on `first..first + shares.len()` and are distributed
/// as `shares`.
#[track_caller]
fn assert_distributed(gaps: &[u64], first: u64, shares: &[f64]) {
    assert!((shares.iter().sum::<f64>() - 1.0).abs() < 1e-9);
    let mut seen = vec![0u64; shares.len()];
    for &gap in gaps {
        let bin = gap.checked_sub(first).map(|bin| bin as usize);
        let bin = bin.filter(|&bin| bin < seen.len());
        let bin = bin.unwrap_or_else(|| panic!("a gap of {gap} should be impossible"));
        seen[bin] += 1;
    }
    let chi_square: f64 = shares
        .iter()
        .zip(&seen)
        .map(|(share, &seen)| {
            let expected = share * gaps.len() as f64;
            assert!(expected >= 20.0, "too few to judge");
            (seen as f64 - expected).powi(2) / expected
        })
        .sum();
    let bound = chi_square_bound(shares.len() - 1);
    assert!(chi_square < bound, "chi-square {chi_square}, bound {bound}");
}

const GAPS: usize = 40_000;

#[test]
fn uniform_spacing_makes_gaps_uniform_on_one_to_one_over_p() {
    // Floyd and Jacobson 1993, section VII: "X is a uniform random variable from
    // {1, 2, ..., 1/p_b}".
    for n in [16, 20] {
        let gaps = gaps(1.0 / n as f64, Spacing::Uniform, None, GAPS);
        assert_distributed(&gaps, 1, &vec![1.0 / n as f64; n]);
    }
}

#[test]
fn uniform_spacing_gives_the_last_position_what_is_left_when_one_over_p_is_no_whole_number() {
    // Each position has probability p until p (1/p) = 1 is used up.
    let mut shares = vec![0.03; 33];
    shares.push(0.01);
    assert_distributed(&gaps(0.03, Spacing::Uniform, None, GAPS), 1, &shares);
}

#[test]
fn wait_spacing_makes_gaps_uniform_from_one_over_p_to_before_twice_that() {
    // ns-2 counts the present packet: the first that may be dropped is number 1/p
    // after the last drop, and at number 2/p - 1 the probability reaches 1.
    for n in [16, 20] {
        let gaps = gaps(1.0 / n as f64, Spacing::Wait, None, GAPS);
        assert_distributed(&gaps, n as u64, &vec![1.0 / n as f64; n]);
    }
}

#[test]
fn no_spacing_makes_gaps_geometric() {
    // Floyd and Jacobson 1993, section VII, method 1.
    let p = 0.05f64;
    let longest = 60;
    let mut shares: Vec<f64> = (0..longest).map(|n| p * (1.0 - p).powi(n)).collect();
    shares.push((1.0 - p).powi(longest));
    let gaps: Vec<u64> = gaps(p, Spacing::None, None, GAPS)
        .into_iter()
        .map(|gap| gap.min(longest as u64 + 1))
        .collect();
    assert_distributed(&gaps, 1, &shares);
}

#[test]
fn linux_spacing_makes_gaps_uniform_while_the_average_stays() {
    for n in [16, 20] {
        let gaps = gaps(1.0 / n as f64, Spacing::Linux, None, GAPS);
        assert_distributed(&gaps, 1, &vec![1.0 / n as f64; n]);
    }
}

#[test]
fn linux_spacing_draws_once_for_a_gap_and_compares_with_the_present_probability() {
    // Linux 6.1, red.h, red_action: the first packet between the thresholds draws u and
    // passes, its successors are numbered from 1, and the first with number p_b >= u is chosen.
    let law = |w_q| {
        let config = RedConfig {
            w_q,
            ..config(0.2, Spacing::Linux)
        };
        RedLaw::with_average(config, 10.0)
    };
    let never = || -> f64 { panic!("a number was drawn") };
    // p_b is 0.1: u = 0.45 is reached by the fifth.
    let mut still = law(1e-9);
    assert_eq!(
        still.on_arrival(arrival_at(10.0), || 0.45),
        RedDecision::Pass
    );
    for _ in 0..4 {
        assert_eq!(still.on_arrival(arrival_at(10.0), never), RedDecision::Pass);
    }
    assert_eq!(
        still.on_arrival(arrival_at(10.0), || 0.05),
        RedDecision::Early
    );
    assert_eq!(
        still.on_arrival(arrival_at(10.0), || 0.45),
        RedDecision::Early
    );
    // An average that rises brings it about at once: 2 x 0.18 are below 0.45, 3 x 0.18 not.
    let mut moving = law(1.0);
    assert_eq!(
        moving.on_arrival(arrival_at(10.0), || 0.45),
        RedDecision::Pass
    );
    assert_eq!(
        moving.on_arrival(arrival_at(14.0), never),
        RedDecision::Pass
    );
    assert_eq!(
        moving.on_arrival(arrival_at(14.0), never),
        RedDecision::Pass
    );
    assert_eq!(
        moving.on_arrival(arrival_at(14.0), || 0.0),
        RedDecision::Early
    );
    // What is beyond max_th takes the number back, as what is below min_th does.
    for outside in [15.0, 4.9] {
        moving.on_arrival(arrival_at(outside), never);
        assert_eq!(
            moving.on_arrival(arrival_at(14.0), || 0.9),
            RedDecision::Pass
        );
        assert_eq!(
            moving.on_arrival(arrival_at(14.0), never),
            RedDecision::Pass
        );
    }
}

/// A law at an average of 10 packets, whose backlog is another matter.
fn ns2(max_p: f64, spacing: Spacing, flavour: Flavour) -> RedLaw {
    let config = RedConfig {
        flavour,
        ..config(max_p, spacing)
    };
    RedLaw::with_average(config, 10.0)
}

#[test]
fn ns2_drops_nothing_early_while_no_more_than_one_packet_waits() {
    // ns-2.35, red.cc, enque: qavg >= th_min && qlen > 1; else `old` is 0, so that the next
    // packet above starts the count.
    for (flavour, spares) in [(Flavour::Paper, false), (Flavour::Ns2, true)] {
        let mut law = ns2(1.0, Spacing::Uniform, flavour);
        let mut decision = |backlog| law.on_arrival(arrival_at(backlog), || 0.0);
        assert_eq!(decision(2.0), RedDecision::Pass);
        assert_eq!(decision(2.0), RedDecision::Early);
        let expected = if spares {
            RedDecision::Pass
        } else {
            RedDecision::Early
        };
        assert_eq!(decision(1.0), expected, "{flavour:?}");
        assert_eq!(decision(0.0), expected, "{flavour:?}");
        assert_eq!(decision(2.0), expected, "{flavour:?}: the count starts");
        assert_eq!(decision(2.0), RedDecision::Early);
        assert!((law.probability() - 0.5).abs() < 1e-6);
    }
}

#[test]
fn ns2_counts_the_present_packet_in_uniform_spacing() {
    // red.cc, modify_p, with a count that `enque` has raised: p / (1 - k p) for the k-th
    // packet after a drop, which makes gaps uniform on 1..1/p - 1.
    let mut law = ns2(2.0 / 16.0, Spacing::Uniform, Flavour::Ns2);
    let mut stream = Stream::named(1, 0, "gaps");
    let (mut gap, mut gaps) = (0, Vec::new());
    while gaps.len() <= GAPS {
        gap += 1;
        if law.on_arrival(arrival_at(10.0), || stream.uniform()) == RedDecision::Early {
            gaps.push(gap);
            gap = 0;
        }
    }
    assert_distributed(&gaps.split_off(1), 1, &[1.0 / 15.0; 15]);
}

#[test]
fn ns2_starts_its_count_anew_when_the_buffer_overflows() {
    // At the limit of 10 packets p_b is 8/98: `wait` chooses no packet before the 13th.
    for (flavour, forgets) in [(Flavour::Paper, false), (Flavour::Ns2, true)] {
        let mut queue = build_red(RedParams {
            max_p: Some(1.0),
            w_q: Some(1.0),
            spacing: Spacing::Wait,
            flavour,
            ..RedParams::new(
                Limit::packets(10),
                QueueSize::Packets(2),
                QueueSize::Packets(100),
            )
        });
        let mut heard = Heard::default();
        for id in 0..110 {
            queue.enqueue(Probe::new(id, 1500, Ecn::NotEct), Time::ZERO, &mut heard);
        }
        assert_eq!(heard.dropped.len(), 100);
        let early = heard.dropped.iter();
        let early = early.filter(|(_, reason, _)| *reason == DropReason::Early);
        assert_eq!(early.count() == 0, forgets, "{flavour:?}");
    }
}

#[test]
fn in_ns2_the_gentle_slope_keeps_starting_from_the_first_max_p() {
    // red.cc, calculate_p_new: v_c and v_d are computed once, the slope below max_th is
    // multiplied by the present max_p.
    let p_b = |flavour, average| {
        let config = RedConfig {
            gentle_end: Some(30.0),
            flavour,
            ..config(0.1, Spacing::Uniform)
        };
        let mut law = RedLaw::with_average(config, average);
        law.set_max_p(0.4);
        law.on_arrival(arrival_at(average), || 0.5);
        law.probability()
    };
    let close = |is: f64, expected: f64| assert!((is - expected).abs() < 1e-12, "{is}");
    close(p_b(Flavour::Paper, 10.0), 0.2);
    close(p_b(Flavour::Ns2, 10.0), 0.2);
    close(p_b(Flavour::Paper, 18.0), 0.4 + 0.6 * 0.2);
    close(p_b(Flavour::Ns2, 18.0), 0.1 + 0.9 * 0.2);
}

#[test]
fn byte_mode_spaces_drops_evenly_in_bytes() {
    // Packets of twice the mean: half as many between drops, of twice the share.
    let large = gaps(0.05, Spacing::Uniform, Some(2.0), GAPS);
    assert_distributed(&large, 1, &[0.1; 10]);
}

#[test]
fn byte_mode_spaces_drops_of_small_packets_evenly_too() {
    // Packets of half the mean: twice as many between drops, of half the share.
    let small = gaps(0.05, Spacing::Uniform, Some(0.5), GAPS);
    assert_distributed(&small, 1, &[0.025; 40]);
}

#[test]
fn byte_mode_makes_the_probability_proportional_to_size() {
    let p = 0.08;
    for relative_size in [0.1, 0.5, 1.0, 3.0] {
        let decision = |draw: f64| {
            let mut law = RedLaw::with_average(config(2.0 * p, Spacing::None), 10.0);
            let arrival = Arrival {
                relative_size: Some(relative_size),
                ..arrival_at(10.0)
            };
            law.on_arrival(arrival, || draw); // only starts the count
            law.on_arrival(arrival, || draw)
        };
        let expected = p * relative_size;
        assert_eq!(decision(expected * 0.999), RedDecision::Early);
        assert_eq!(decision(expected * 1.001), RedDecision::Pass);
    }
}

#[test]
fn the_first_packet_above_min_th_passes_and_the_count_starts_with_it() {
    let mut law = RedLaw::with_average(config(1.0, Spacing::Uniform), 10.0);
    let above = arrival_at(10.0);
    assert_eq!(law.on_arrival(above, || 0.0), RedDecision::Pass);
    assert_eq!(law.on_arrival(above, || 0.0), RedDecision::Early);
    // An average that falls below min_th in between makes the next one first again.
    let mut law = RedLaw::with_average(
        RedConfig {
            w_q: 1.0,
            ..config(1.0, Spacing::Uniform)
        },
        10.0,
    );
    assert_eq!(law.on_arrival(above, || 0.0), RedDecision::Pass);
    assert_eq!(law.on_arrival(arrival_at(4.9), || 0.0), RedDecision::Pass);
    assert_eq!(law.on_arrival(above, || 0.0), RedDecision::Pass);
    assert_eq!(law.on_arrival(above, || 0.0), RedDecision::Early);
}

#[test]
fn nothing_is_drawn_where_chance_does_not_decide() {
    // Draws that happen only where needed keep streams comparable between runs.
    let never = || -> f64 { panic!("a number was drawn") };
    let mut below = RedLaw::with_average(config(0.1, Spacing::Uniform), 4.9);
    assert_eq!(below.on_arrival(arrival_at(4.9), never), RedDecision::Pass);
    let mut above = RedLaw::with_average(config(0.1, Spacing::Uniform), 15.0);
    assert_eq!(
        above.on_arrival(arrival_at(15.0), never),
        RedDecision::Forced
    );
    let mut waiting = RedLaw::with_average(config(0.1, Spacing::Wait), 10.0);
    for _ in 1..20 {
        assert_eq!(
            waiting.on_arrival(arrival_at(10.0), never),
            RedDecision::Pass
        );
    }
}

/// The average after an arrival that finds `backlog`, as integers of 2^-4: the kernel's recurrence
/// (include/net/red.h, `red_calc_qavg_no_idle_time`).
fn kernel_average(average: u32, backlog: u32) -> u32 {
    average + backlog - (average >> 4)
}

#[test]
fn in_linux_the_average_moves_by_whole_packets() {
    let mut law = RedLaw::new(RedConfig {
        w_q: 1.0 / 16.0,
        flavour: Flavour::Linux,
        ..config(0.1, Spacing::Linux)
    });
    let mut stream = Stream::named(2, 0, "backlogs");
    let mut expected = 0;
    for i in 0..5000 {
        // Long stays at one length, so that the average comes to rest.
        let backlog = if i % 500 < 250 {
            6
        } else {
            (stream.uniform() * 12.0) as u32
        };
        expected = kernel_average(expected, backlog);
        law.on_arrival(arrival_at(f64::from(backlog)), || 0.5);
        assert_eq!(law.average() * 16.0, f64::from(expected), "after {i}");
    }
    // It rests wherever its whole part is the length; the paper's average goes on to the length.
    let mut law = RedLaw::with_average(
        RedConfig {
            w_q: 1.0 / 16.0,
            flavour: Flavour::Linux,
            ..config(0.1, Spacing::Linux)
        },
        6.9375,
    );
    for _ in 0..100 {
        law.on_arrival(arrival_at(6.0), || 0.5);
    }
    assert_eq!(law.average(), 6.9375);
}

#[test]
fn in_linux_the_probability_grows_by_whole_packets_above_min_th_and_ends_above_max_th() {
    // The thresholds of `config` are 5 and 15 packets.
    for (average, p_b) in [
        (5.0, 0.0),
        (5.9375, 0.0),
        (6.0, 0.01),
        (14.9375, 0.09),
        (15.0, 0.1),
        (15.0625, 1.0),
    ] {
        let law = RedConfig {
            flavour: Flavour::Linux,
            ..config(0.1, Spacing::Linux)
        };
        let mut law = RedLaw::with_average(law, average);
        law.decide(None, || 0.5);
        assert!(
            (law.probability() - p_b).abs() < 1e-12,
            "{average}: {}",
            law.probability()
        );
        // A router that drops above max_th may still mark at it.
        assert_eq!(law.is_below_max_th(), average <= 15.0, "{average}");
    }
}

#[test]
fn the_average_is_the_recurrence_of_the_paper() {
    // avg <- (1 - w) avg + w q, and (1 - w)^(m+1) avg after m packets' idle time;
    // here as explicit sums of weighted samples, newest first.
    let w = 0.002;
    let mut law = RedLaw::new(RedConfig {
        w_q: w,
        ..config(0.1, Spacing::Uniform)
    });
    let mut stream = Stream::named(2, 0, "backlogs");
    // Weights of the samples so far and what they were.
    let mut samples: Vec<(f64, f64)> = Vec::new();
    for i in 0..2000 {
        let idle = (i % 97 == 96).then_some(i % 53);
        let backlog = if idle.is_some() {
            0.0
        } else {
            (stream.uniform() * 40.0).floor()
        };
        let decay = (0..=idle.unwrap_or(0)).fold(1.0, |decay, _| decay * (1.0 - w));
        for (weight, _) in &mut samples {
            *weight *= decay;
        }
        samples.push((w, backlog));
        let arrival = Arrival {
            backlog,
            idle,
            relative_size: None,
        };
        law.on_arrival(arrival, || 0.5);
        let expected: f64 = samples.iter().map(|(weight, q)| weight * q).sum();
        let error = (law.average() - expected).abs();
        assert!(error < 1e-11, "after {i}: {} {expected}", law.average());
    }
}

/// A RED queue whose average is the backlog that the latest arrival found.
fn prompt() -> RedParams {
    RedParams {
        w_q: Some(1.0),
        spacing: Spacing::None,
        ..RedParams::new(
            Limit::packets(20),
            QueueSize::Packets(2),
            QueueSize::Packets(6),
        )
    }
}

#[test]
fn idle_time_counts_in_whole_packets_since_the_link_found_nothing_to_send() {
    // At 1 Mbit/s a mean packet of 500 B takes 4 ms.
    let w = 0.25;
    let average_after = |idle: Span| {
        let mut queue = build_red(RedParams {
            w_q: Some(w),
            ..prompt()
        });
        let heard = &mut Heard::default();
        let start = Time::from_ps(0) + Span::from_ms(3);
        for id in 0..3 {
            queue.enqueue(Probe::new(id, 500, Ecn::NotEct), start, heard);
        }
        let before = queue.internals().average.expect("RED has an average");
        let emptied = start + Span::from_ms(12);
        while queue.dequeue(emptied, heard).is_some() {}
        // Asking an empty queue again does not restart its idle time.
        assert!(queue.dequeue(emptied + idle / 2, heard).is_none());
        queue.enqueue(Probe::new(3, 500, Ecn::NotEct), emptied + idle, heard);
        let after = queue.internals().average.expect("RED has an average");
        assert!(before > 0.0);
        after / before
    };
    for (idle, m) in [
        (Span::ZERO, 0),
        (Span::from_ps(3_999_999_999), 0),
        (Span::from_ms(4), 1),
        (Span::from_ms(39), 9),
    ] {
        let expected = (1.0f64 - w).powi(m + 1);
        let ratio = average_after(idle);
        assert!(
            (ratio - expected).abs() < 1e-14,
            "{idle}: {ratio} {expected}"
        );
    }
}

#[test]
fn without_idle_decay_an_empty_queue_drops_until_arrivals_have_lowered_the_average() {
    let w = 0.05;
    let dropped = |idle_decay: bool| {
        let mut queue = build_red(RedParams {
            w_q: Some(w),
            idle_decay,
            ..prompt()
        });
        let heard = &mut Heard::default();
        let start = Time::from_ps(0);
        for id in 0..400 {
            queue.enqueue(Probe::new(id, 500, Ecn::NotEct), start, heard);
        }
        let before = queue.internals().average.expect("RED has an average");
        assert!(before > 7.0, "it is above max_th, 6");
        while queue.dequeue(start, heard).is_some() {}
        assert!(queue.dequeue(start, heard).is_none());
        heard.dropped.clear();
        let later = start + Span::from_s(60);
        while queue.backlog().packets == 0 {
            queue.enqueue(Probe::new(400, 500, Ecn::NotEct), later, heard);
        }
        let forced = heard.dropped.iter();
        let forced = forced.filter(|drop| drop.1 == DropReason::Forced).count();
        // before (1 - w)^n < 6, with n arrivals of which the last one is not dropped by force.
        let needed = (6.0f64 / before).ln() / (1.0 - w).ln();
        (forced, needed.ceil() as usize - 1)
    };
    assert_eq!(dropped(true).0, 0);
    let (forced, expected) = dropped(false);
    assert_eq!(forced, expected);
    assert!(forced > 3);
}

/// Fills `queue` until an arrival finds `backlog` packets of 500 B; the
/// probability and what became of that arrival.
fn probe_at(queue: &mut AnyQueue<Probe>, backlog: u64, ecn: Ecn) -> (f64, Heard) {
    let mut id = 0;
    loop {
        let found = queue.backlog().packets;
        let mut heard = Heard::default();
        queue.enqueue(Probe::new(id, 500, ecn), Time::ZERO, &mut heard);
        id += 1;
        if found == backlog {
            let probability = queue.internals().probability;
            return (probability.expect("RED has a probability"), heard);
        }
        assert!(id < 100_000, "a backlog of {backlog} is out of reach");
    }
}

#[track_caller]
fn assert_probabilities(params: RedParams, expected: &[(u64, f64)]) {
    for &(backlog, expected) in expected {
        let mut queue = build_red(params.clone());
        let (probability, _) = probe_at(&mut queue, backlog, Ecn::NotEct);
        assert!(
            (probability - expected).abs() < 1e-12,
            "at {backlog}: {probability}, not {expected}"
        );
    }
}

#[test]
fn the_slope_is_that_of_the_paper_up_to_max_th_and_everything_is_dropped_from_there() {
    assert_probabilities(
        prompt(),
        &[
            (1, 0.0),
            (2, 0.0),
            (3, 0.025),
            (4, 0.05),
            (5, 0.075),
            (6, 1.0),
        ],
    );
}

#[test]
fn the_gentle_slope_ends_at_twice_max_th() {
    // max_p at max_th, 1 at 2 max_th (Floyd 2000).
    let params = RedParams {
        gentle: Gentle::TwiceMaxTh,
        ..prompt()
    };
    assert_probabilities(
        params,
        &[
            (5, 0.075),
            (6, 0.1),
            (7, 0.25),
            (9, 0.55),
            (11, 0.85),
            (12, 1.0),
        ],
    );
}

#[test]
fn the_gentle_slope_ends_at_the_limit() {
    // max_p at max_th, 1 at the limit (ISCC 2001); here 6 and 16 packets.
    let params = RedParams {
        gentle: Gentle::Limit,
        limit: Some(Limit::packets(16)),
        ..prompt()
    };
    assert_probabilities(
        params,
        &[(5, 0.075), (6, 0.1), (7, 0.19), (11, 0.55), (15, 0.91)],
    );
}

#[test]
fn thresholds_in_bytes_make_the_average_one_of_bytes() {
    let params = RedParams {
        limit: Some(Limit::bytes(8000)),
        min_th: Some(QueueSize::Bytes(1000)),
        max_th: Some(QueueSize::Bytes(3000)),
        gentle: Gentle::Limit,
        ..prompt()
    };
    // Packets are of 500 B: 1000 B is min_th, 3000 B max_th, 8000 B the end.
    assert_probabilities(
        params,
        &[(2, 0.0), (3, 0.025), (5, 0.075), (6, 0.1), (11, 0.55)],
    );
}

/// What became of an ECN-capable or other packet that RED chose.
#[derive(Debug, PartialEq)]
enum Fate {
    Marked,
    Dropped(DropReason),
}

/// Offers packets to a queue whose average is `average`, until one is chosen.
fn fate(change: impl FnOnce(&mut RedParams), average: u64, ecn: Ecn) -> Fate {
    let mut params = RedParams {
        ecn: true,
        ..prompt()
    };
    change(&mut params);
    let mut queue = build_red(params);
    for _ in 0..1000 {
        let (_, heard) = probe_at(&mut queue, average, ecn);
        let reason = heard.dropped.first().map(|dropped| dropped.1);
        match (heard.marked.is_empty(), reason) {
            (false, None) => return Fate::Marked,
            (true, Some(reason)) => return Fate::Dropped(reason),
            (false, Some(_)) => panic!("marked and dropped"),
            // Not chosen but queued: take one out, and the next finds the same backlog.
            (true, None) => {
                queue.dequeue(Time::ZERO, &mut Heard::default());
            }
        }
    }
    panic!("in 1000 arrivals none was chosen");
}

fn gentle(params: &mut RedParams) {
    params.gentle = Gentle::TwiceMaxTh;
}

fn marking(params: &mut RedParams) {
    params.above_max_th = AboveMaxTh::Mark;
}

fn gentle_and_marking(params: &mut RedParams) {
    gentle(params);
    marking(params);
}

#[test]
fn below_max_th_the_chosen_are_marked_if_they_can_be() {
    // RFC 3168, section 5: a router may set CE instead of dropping.
    for above_max_th in [AboveMaxTh::Drop, AboveMaxTh::Mark] {
        let set = |params: &mut RedParams| params.above_max_th = above_max_th;
        for ecn in [Ecn::Ect0, Ecn::Ect1, Ecn::Ce] {
            assert_eq!(fate(set, 5, ecn), Fate::Marked);
        }
        let early = Fate::Dropped(DropReason::Early);
        assert_eq!(fate(set, 5, Ecn::NotEct), early);
    }
}

#[test]
fn from_max_th_on_the_chosen_are_dropped_unless_marking_was_asked_for() {
    // RFC 3168, section 7: drop, not mark, when the average is above max_th.
    assert_eq!(
        fate(|_| {}, 6, Ecn::Ect0),
        Fate::Dropped(DropReason::Forced)
    );
    assert_eq!(fate(gentle, 9, Ecn::Ect0), Fate::Dropped(DropReason::Early));
    assert_eq!(
        fate(gentle, 12, Ecn::Ect0),
        Fate::Dropped(DropReason::Forced)
    );
    assert_eq!(fate(marking, 6, Ecn::Ect0), Fate::Marked);
    assert_eq!(fate(gentle_and_marking, 9, Ecn::Ect0), Fate::Marked);
    assert_eq!(fate(gentle_and_marking, 12, Ecn::Ect0), Fate::Marked);
    let forced = Fate::Dropped(DropReason::Forced);
    assert_eq!(fate(marking, 6, Ecn::NotEct), forced);
}

#[test]
fn a_full_buffer_drops_what_would_have_been_marked() {
    let mut queue = build_red(RedParams {
        limit: Some(Limit::packets(8)),
        ecn: true,
        above_max_th: AboveMaxTh::Mark,
        ..prompt()
    });
    let (_, heard) = probe_at(&mut queue, 8, Ecn::Ect0);
    assert_eq!(heard.marked, []);
    assert_eq!(heard.dropped.len(), 1);
    assert_eq!(heard.dropped[0].1, DropReason::Limit);
    assert_eq!(heard.dropped[0].0.ecn, Ecn::Ect0, "it was not marked first");
}

#[test]
fn without_ecn_capable_packets_are_dropped_like_others() {
    let params = RedParams {
        ecn: false,
        above_max_th: AboveMaxTh::Mark,
        ..prompt()
    };
    let (_, heard) = probe_at(&mut build_red(params), 6, Ecn::Ect0);
    assert_eq!(heard.marked, []);
    assert_eq!(heard.dropped[0].1, DropReason::Forced);
}
