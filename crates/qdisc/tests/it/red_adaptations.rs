//! The schemes that change RED's parameters, against their published rules computed here,
//! and what their parameters are refused or warned for.

use crate::common::{Heard, Probe, build_on};
use redtail_core::{Bytes, Ecn, ParamError, QueueSize, Rate, Span, Stream, Time};
use redtail_qdisc::laws::red::adapt::{
    Adaptation, Aimd, Crossings, MovingThresholds, ThresholdConfig, automatic_bottom,
    automatic_min_th, automatic_w_q,
};
use redtail_qdisc::laws::red::{Flavour, RedConfig, RedDecision, RedLaw, Spacing};
use redtail_qdisc::queues::adaptive_red::AdaptiveRedParams;
use redtail_qdisc::queues::dynamic_threshold_red::DynamicThresholdRedParams;
use redtail_qdisc::queues::red::Gentle;
use redtail_qdisc::queues::self_configuring_red::SelfConfiguringRedParams;
use redtail_qdisc::{Limit, LinkFacts, QueueDiscipline, QueueKind, QueueParams};

const HALF_SECOND: Span = Span::from_ms(500);

fn config(max_p: f64) -> RedConfig {
    RedConfig {
        min_th: 20.0,
        max_th: 80.0,
        max_p,
        w_q: 0.002,
        gentle_end: Some(160.0),
        spacing: Spacing::Uniform,
        flavour: Flavour::Paper,
    }
}

fn at(ms: u64) -> Time {
    Time::ZERO + Span::from_ms(ms)
}

/// max_p after `steps` intervals with the average at `average`.
fn adapted(max_p: f64, average: f64, steps: u64) -> f64 {
    let mut law = RedLaw::with_average(config(max_p), average);
    let mut aimd = Aimd::new(0.01, 0.9, 0.01, 0.5, HALF_SECOND);
    // Ten arrivals in each interval; one change.
    for arrival in 1..=10 * steps {
        aimd.adapt(&mut law, at(50 * arrival));
    }
    law.config().max_p
}

#[track_caller]
fn assert_close(value: f64, expected: f64) {
    assert!(
        (value - expected).abs() <= 1e-12 * expected.abs().max(1e-3),
        "{value}, not {expected}"
    );
}

#[test]
fn aimd_leaves_max_p_alone_within_the_target_range() {
    // min_th + 0.4 (max_th - min_th) to min_th + 0.6 (max_th - min_th): 44 to 56.
    for average in [44.001, 50.0, 55.999] {
        assert_eq!(adapted(0.1, average, 20), 0.1);
    }
}

#[test]
fn aimd_adds_a_hundredth_or_a_quarter_whichever_is_less() {
    // alpha = min(0.01, max_p / 4), every interval.
    assert_close(adapted(0.1, 56.001, 1), 0.11);
    assert_close(adapted(0.1, 120.0, 7), 0.17);
    assert_close(adapted(0.02, 60.0, 1), 0.025);
    assert_close(adapted(0.02, 60.0, 2), 0.03125);
}

#[test]
fn aimd_reduces_to_nine_tenths() {
    assert_close(adapted(0.1, 43.999, 1), 0.09);
    assert_close(adapted(0.1, 0.0, 5), 0.1 * 0.9f64.powi(5));
}

#[test]
fn aimd_that_is_stopped_leaves_max_p_alone() {
    let mut law = RedLaw::with_average(config(0.1), 70.0);
    let mut aimd = Aimd::new(0.01, 0.9, 0.01, 0.5, HALF_SECOND).stopped();
    for arrival in 1..=100 {
        aimd.adapt(&mut law, at(50 * arrival));
    }
    assert_eq!(law.config().max_p, 0.1);
}

#[test]
fn aimd_stops_at_its_bounds() {
    // "max_p <= 0.5: increase", "max_p >= 0.01: decrease": a last step may cross a bound.
    let most = adapted(0.1, 70.0, 1000);
    assert!((0.5..=0.51).contains(&most), "{most}");
    let least = adapted(0.1, 30.0, 1000);
    assert!((0.009..0.01).contains(&least), "{least}");
}

#[test]
fn aimd_changes_once_after_an_idle_time() {
    // The average is that of the last arrival; a long idle time does not count it again.
    let mut law = RedLaw::with_average(config(0.1), 70.0);
    let mut aimd = Aimd::new(0.01, 0.9, 0.01, 0.5, HALF_SECOND);
    aimd.adapt(&mut law, at(60_000));
    assert_close(law.config().max_p, 0.11);
    // The ticks keep their phase.
    aimd.adapt(&mut law, at(60_499));
    assert_close(law.config().max_p, 0.11);
    aimd.adapt(&mut law, at(60_500));
    assert_close(law.config().max_p, 0.12);
}

#[test]
fn automatic_settings_are_those_of_the_paper_and_of_ns2() {
    // The 2003 study's link: 3 Mbit/s, 1000 B: 375 packets/s, w_q = 0.00266.
    let (rate, packet) = (Rate::from_bps(3_000_000), Bytes::new(1000));
    let w_q = automatic_w_q(rate, packet);
    assert_close(w_q, 1.0 - (-1.0f64 / 375.0).exp());
    assert_eq!(format!("{w_q:.5}"), "0.00266");
    // 5 ms at 375 packets/s are 1.9 packets: the floor of 5 holds.
    assert_eq!(automatic_min_th(rate, packet, Span::from_ms(5)), 5.0);
    // 5 ms at 100 Mbit/s are 62.5 packets.
    let fast = Rate::from_bps(100_000_000);
    assert_eq!(automatic_min_th(fast, packet, Span::from_ms(5)), 31.25);
    // ns-2: 80,000 over the rate, at most 0.01.
    assert_eq!(automatic_bottom(rate), 0.01);
    assert_close(automatic_bottom(fast), 0.0008);
}

/// A link whose largest packet is of 1000 B.
fn link(mbps: u64) -> LinkFacts {
    LinkFacts {
        largest_packet: Bytes::new(1000),
        ..LinkFacts::of_rate(Rate::from_bps(1_000_000 * mbps))
    }
}

/// p_b at each backlog from 0 on, of a queue whose average is its backlog.
fn probabilities(spec: &QueueParams, link: LinkFacts, up_to: u64) -> Vec<f64> {
    let mut queue = build_on(spec, link);
    let mut found = Vec::new();
    let mut id = 0;
    while (found.len() as u64) < up_to {
        let backlog = queue.backlog().packets;
        let probe = Probe::new(id, 1000, Ecn::NotEct);
        queue.enqueue(probe, Time::ZERO, &mut Heard::default());
        if backlog == found.len() as u64 {
            let probability = queue.internals().probability;
            found.push(probability.expect("RED has a probability"));
        }
        id += 1;
    }
    found
}

#[test]
fn adaptive_red_computes_thresholds_in_the_unit_that_one_is_given_in() {
    // 10 Mbit/s, 1000 B, 16 ms: 20 packets, so that min_th is 10 and max_th 30.
    let params = AdaptiveRedParams {
        w_q: Some(1.0),
        max_p: 0.2,
        target_delay: Span::from_ms(16),
        ..AdaptiveRedParams::new(Limit::packets(100))
    };
    let expected = |backlog: usize| match backlog {
        0..10 => 0.0,
        10..30 => 0.2 * (backlog as f64 - 10.0) / 20.0,
        _ => 0.2 + 0.8 * (backlog as f64 - 30.0) / 30.0,
    };
    let limit = Limit::bytes(100_000);
    let in_bytes = AdaptiveRedParams {
        max_th: Some(QueueSize::Bytes(30_000)),
        limit,
        ..params.clone()
    };
    let from_min_th = AdaptiveRedParams {
        min_th: Some(QueueSize::Bytes(10_000)),
        limit,
        ..params.clone()
    };
    for params in [params, in_bytes, from_min_th] {
        let spec = QueueParams::AdaptiveRed(params);
        for (backlog, p) in probabilities(&spec, link(10), 50).into_iter().enumerate() {
            assert!((p - expected(backlog)).abs() < 1e-12, "{backlog}: {p}");
        }
    }
}

/// max_p after the average has been at each of `averages` in turn.
fn configured(max_p: f64, averages: &[f64]) -> f64 {
    let mut crossings = Crossings::new(3.0, 2.0);
    let mut law = RedLaw::new(config(max_p));
    for &average in averages {
        let here = RedLaw::with_average(*law.config(), average);
        law = here;
        for _ in 0..3 {
            crossings.adapt(&mut law, Time::ZERO);
        }
    }
    law.config().max_p
}

#[test]
fn crossings_change_max_p_once_each() {
    // Below: divided by 3; above: doubled; once per crossing, however long it stays there.
    for (averages, factor) in [
        (&[0.0, 10.0][..], 1.0), // starts below: no crossing
        (&[50.0], 1.0),
        (&[50.0, 10.0], 1.0 / 3.0),
        (&[50.0, 10.0, 5.0, 0.0], 1.0 / 3.0),
        (&[50.0, 90.0, 100.0], 2.0),
        (&[90.0], 2.0),
        (&[90.0, 50.0, 90.0], 4.0),
        (&[90.0, 10.0], 2.0 / 3.0), // straight through
        (&[90.0, 10.0, 90.0], 4.0 / 3.0),
        // At a threshold exactly the average is nowhere: the state stays.
        (&[50.0, 20.0, 80.0], 1.0),
        (&[50.0, 10.0, 20.0, 10.0], 1.0 / 3.0),
        (&[90.0, 80.0, 90.0], 2.0),
    ] {
        assert_close(configured(0.06, averages), 0.06 * factor);
    }
}

#[test]
fn crossings_keep_max_p_a_probability() {
    assert_eq!(configured(0.4, &[90.0, 50.0, 90.0]), 1.0);
}

#[test]
fn crossings_follow_the_published_rule_over_a_random_walk() {
    let mut stream = Stream::named(1, 0, "walk");
    let (mut average, mut expected, mut state) = (0.0, 0.1, "below");
    let mut crossings = Crossings::new(3.0, 2.0);
    let mut law = RedLaw::new(config(0.1));
    let mut changes = 0;
    for _ in 0..5000 {
        average = (average + 40.0 * (stream.uniform() - 0.5)).clamp(0.0, 120.0);
        law = RedLaw::with_average(*law.config(), average);
        crossings.adapt(&mut law, Time::ZERO);
        if 20.0 < average && average < 80.0 {
            state = "between";
        }
        if average < 20.0 && state != "below" {
            (state, expected) = ("below", expected / 3.0);
            changes += 1;
        }
        if average > 80.0 && state != "above" {
            (state, expected) = ("above", f64::min(1.0, expected * 2.0));
            changes += 1;
        }
        assert_close(law.config().max_p, expected);
    }
    assert!(changes > 100, "{changes}");
}

const THRESHOLDS: ThresholdConfig = ThresholdConfig {
    gamma: 0.05,
    p_lower: 0.01,
    p_upper: 0.02,
    w_p: 0.002,
    interval: HALF_SECOND,
    lowest: 20.0,
    highest: 100.0,
    distance: 60.0,
    end_moves: true,
};

/// Thresholds and end of the slope when of each `every` arrivals, 1 ms apart, one is
/// chosen for `seconds`; they start at 40, 100 and 200.
fn moved(config: ThresholdConfig, every: u64, seconds: u64) -> (f64, f64, Option<f64>) {
    let mut thresholds = MovingThresholds::new(config);
    let mut law = RedLaw::new(RedConfig {
        min_th: 40.0,
        max_th: 100.0,
        gentle_end: Some(200.0),
        ..self::config(0.1)
    });
    for arrival in 1..=1000 * seconds {
        thresholds.adapt(&mut law, at(arrival));
        thresholds.decided(match arrival % every {
            0 => RedDecision::Early,
            _ => RedDecision::Pass,
        });
    }
    let RedConfig {
        min_th,
        max_th,
        gentle_end,
        ..
    } = *law.config();
    (min_th, max_th, gentle_end)
}

#[test]
fn thresholds_rise_while_more_is_chosen_than_the_upper_bound() {
    // A twentieth is chosen. P = 0.05 (1 - 0.998^n) passes 0.02 between n = 256 and 1000
    // and 0.01 before, so that the first move, at n = 499, is up already.
    let (min_th, max_th, end) = moved(THRESHOLDS, 20, 3);
    assert_close(min_th, 40.0 * 1.05f64.powi(6));
    assert_close(max_th, min_th + 60.0);
    assert_eq!(end, Some(2.0 * max_th));
}

#[test]
fn thresholds_stay_while_the_share_is_within_bounds_and_fall_below() {
    // 1 of 66: P settles at 0.015 and never leaves 0.01 to 0.02 once there, the steps of a
    // sample being 0.002. From 0 it takes 550 arrivals to 0.01: one fall at the start.
    let (min_th, ..) = moved(THRESHOLDS, 66, 20);
    assert_close(min_th, 40.0 * 0.95);
    // 1 of 500: never above 0.01.
    let (min_th, ..) = moved(THRESHOLDS, 500, 3);
    assert_close(min_th, 40.0 * 0.95f64.powi(6));
}

#[test]
fn thresholds_keep_to_their_bounds_and_a_fixed_end_stays() {
    let (min_th, max_th, _) = moved(THRESHOLDS, 5, 100);
    assert_eq!((min_th, max_th), (100.0, 160.0));
    let (min_th, max_th, _) = moved(THRESHOLDS, 100_000, 100);
    assert_eq!((min_th, max_th), (20.0, 80.0));
    let fixed = ThresholdConfig {
        end_moves: false,
        ..THRESHOLDS
    };
    assert_eq!(moved(fixed, 20, 3).2, Some(200.0));
}

/// What `spec` is refused for at 10 Mbit/s.
#[track_caller]
fn refusal(spec: &QueueParams) -> String {
    let refused = spec.check().and_then(|()| spec.check_at(&link(10)));
    refused.expect_err("it was to be refused").to_string()
}

fn adaptive(change: impl FnOnce(&mut AdaptiveRedParams)) -> QueueParams {
    let mut params = AdaptiveRedParams::new(Limit::packets(100));
    change(&mut params);
    QueueParams::AdaptiveRed(params)
}

fn self_configuring(change: impl FnOnce(&mut SelfConfiguringRedParams)) -> QueueParams {
    let (min_th, max_th) = (QueueSize::Packets(20), QueueSize::Packets(60));
    let mut params = SelfConfiguringRedParams::new(Limit::packets(100), min_th, max_th);
    change(&mut params);
    QueueParams::SelfConfiguringRed(params)
}

fn dynamic(change: impl FnOnce(&mut DynamicThresholdRedParams)) -> QueueParams {
    let (min_th, max_th) = (QueueSize::Packets(20), QueueSize::Packets(60));
    let mut params = DynamicThresholdRedParams::new(Limit::packets(100), min_th, max_th);
    change(&mut params);
    QueueParams::DynamicThresholdRed(params)
}

#[test]
fn impossible_values_of_adaptive_red_are_refused() {
    for (spec, message) in [
        (
            adaptive(|red| red.limit = Limit::packets(0)),
            "limit would drop every packet; accepted: at least \"1 packet\", or at least one packet's size in bytes",
        ),
        (
            adaptive(|red| red.max_p = 0.0),
            "max_p is not a probability above 0; accepted: a number above 0 and up to 1",
        ),
        (
            adaptive(|red| red.max_p = f64::NAN),
            "max_p is not a probability above 0; accepted: a number above 0 and up to 1",
        ),
        (
            adaptive(|red| red.w_q = Some(1.5)),
            "w_q is not a weight above 0; accepted: a number above 0 and up to 1",
        ),
        (
            adaptive(|red| red.alpha = 0.0),
            "alpha is not a step above 0; accepted: a number above 0 and up to 1",
        ),
        (
            adaptive(|red| red.beta = 1.0),
            "beta is not a factor that reduces max_p; accepted: a number above 0 and below 1",
        ),
        (
            adaptive(|red| red.top = 2.0),
            "top is not a probability above 0; accepted: a number above 0 and up to 1",
        ),
        (
            adaptive(|red| red.bottom = Some(0.0)),
            "bottom is not a probability above 0; accepted: a number above 0 and up to 1",
        ),
        (
            adaptive(|red| red.bottom = Some(0.6)),
            "bottom is not below top (0.5); accepted: less than 0.5",
        ),
        (
            adaptive(|red| red.interval = Span::ZERO),
            "interval is zero; accepted: a time such as \"500 ms\"",
        ),
        (
            adaptive(|red| red.mean_packet = Some(Bytes::ZERO)),
            "mean_packet is zero; accepted: a size such as \"500 B\"",
        ),
        (
            adaptive(|red| {
                red.min_th = Some(QueueSize::Packets(5));
                red.max_th = Some(QueueSize::Bytes(9000));
            }),
            "max_th is in another unit than min_th (5 packets); accepted: both thresholds in packets, or both in bytes or time",
        ),
        (
            adaptive(|red| red.max_th = Some(QueueSize::Packets(4))),
            "min_th is not below max_th (4 packets); accepted: less than \"4 packets\"",
        ),
        (
            adaptive(|red| {
                red.min_th = Some(QueueSize::Packets(40));
                red.gentle = Gentle::Limit;
            }),
            "gentle needs a limit above max_th (120 packets) in the same unit; accepted: true, false, \"twice-max-th\" or \"limit\"",
        ),
    ] {
        assert_eq!(refusal(&spec), message);
    }
}

#[test]
fn impossible_values_of_self_configuring_red_are_refused() {
    for (spec, message) in [
        (
            self_configuring(|red| red.alpha = 0.5),
            "alpha would move max_p the wrong way; accepted: a number from 1",
        ),
        (
            self_configuring(|red| red.beta = f64::INFINITY),
            "beta would move max_p the wrong way; accepted: a number from 1",
        ),
        (
            self_configuring(|red| red.max_th = QueueSize::Packets(20)),
            "min_th is not below max_th (20 packets); accepted: less than \"20 packets\"",
        ),
    ] {
        assert_eq!(refusal(&spec), message);
    }
}

#[test]
fn impossible_values_of_dynamic_thresholds_are_refused() {
    for (spec, message) in [
        (
            dynamic(|red| red.p_upper = 0.0),
            "p_upper is not a probability above 0; accepted: a number above 0 and up to 1",
        ),
        (
            dynamic(|red| red.p_lower = 0.02),
            "p_lower is not below p_upper (0.02); accepted: less than 0.02",
        ),
        (
            dynamic(|red| red.gamma = 1.0),
            "gamma is not a share of min_th; accepted: a number above 0 and below 1",
        ),
        (
            dynamic(|red| red.w_p = 0.0),
            "w_p is not a weight above 0; accepted: a number above 0 and up to 1",
        ),
        (
            dynamic(|red| red.interval = Span::ZERO),
            "interval is zero; accepted: a time such as \"500 ms\"",
        ),
        (
            dynamic(|red| red.min_th = QueueSize::Packets(0)),
            "min_th is zero, which no factor moves; accepted: a queue size such as \"20 kB\"",
        ),
        (
            dynamic(|red| red.limit = Limit::bytes(90_000)),
            "limit is in another unit than min_th (20 packets), and does not say how far the thresholds may rise; accepted: a limit in the unit of the thresholds, or a list that has one",
        ),
    ] {
        assert_eq!(refusal(&spec), message);
    }
}

#[test]
fn degenerate_values_are_warned_about() {
    let link = LinkFacts {
        max_round_trip: Some(Span::from_ms(600)),
        ..link(10)
    };
    let warned = |spec: QueueParams| -> Vec<String> {
        let checked = spec.check().and_then(|()| spec.check_at(&link));
        checked.unwrap_or_else(|error: ParamError| panic!("{error}"));
        let warnings = spec.warnings(&link).into_iter();
        warnings
            .map(|warning| format!("{} {}", warning.key, warning.clause))
            .collect()
    };
    let interval = "interval is shorter than the longest round trip (\"600 ms\"): max_p changes again before the flows have heard of the last change";
    assert_eq!(
        warned(adaptive(|red| red.interval = Span::from_s(1))),
        [""; 0]
    );
    assert_eq!(warned(adaptive(|_| {})), [interval]);
    assert_eq!(
        warned(adaptive(|red| {
            red.interval = Span::from_s(1);
            red.max_p = 0.6;
        })),
        ["max_p starts outside its bounds, 0.008 to 0.5, into which it is only led by the load"]
    );
    assert_eq!(
        warned(adaptive(|red| {
            red.interval = Span::from_s(1);
            red.min_th = Some(QueueSize::Packets(50));
        })),
        [
            "max_th is not below the limit (\"100 packets\"), so the buffer overflows before the average gets there"
        ]
    );
    assert_eq!(warned(self_configuring(|_| {})), [""; 0]);
    assert_eq!(
        warned(self_configuring(|red| {
            red.alpha = 1.0;
            red.beta = 1.0;
        })),
        [
            "alpha leaves max_p as it is when the average is below min_th",
            "beta leaves max_p as it is when the average is above max_th"
        ]
    );
    assert_eq!(warned(dynamic(|_| {})), [""; 0]);
    assert_eq!(
        warned(dynamic(|red| {
            red.max_p = 0.02;
            red.gentle = Gentle::Off;
        })),
        ["max_p is not above p_upper (0.02): the thresholds rise only once everything is dropped"]
    );
}

#[test]
fn the_limit_is_told() {
    let params = AdaptiveRedParams::new(Limit::packets(100));
    assert_eq!(params.limit(), Some(Limit::packets(100)));
}
