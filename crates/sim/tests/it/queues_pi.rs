//! PI and its relatives in simulation: each holds its reference.
//!
//! Fixed seeds; what is asserted is the published steady state with room for the swing
//! that a single seed shows.

use crate::common::{metric, run};
use redtail_sim::RunResult;

/// `flows` bulk flows with `tcp` over a bottleneck of 10 Mbit/s and round trips of 90 to
/// 150 ms.
fn bulk(queue: &str, flows: u32, tcp: &str) -> RunResult {
    run(&format!(
        r#"
duration = "120 s"
warmup = "40 s"
[bottleneck]
rate = "10 Mbit/s"
delay = "40 ms"
queue = {queue}
[[traffic]]
name = "ftp"
kind = "bulk"
flows = {flows}
tcp = {tcp}
access_delay = ["5 ms", "25 ms", "45 ms", "65 ms"]
return_delay = "45 ms"
start = "uniform 0..5 s"
"#
    ))
}

/// Asserts that `name` lies within `bounds`.
#[track_caller]
fn assert_within(result: &RunResult, name: &str, bounds: std::ops::RangeInclusive<f64>) {
    let value = metric(result, name);
    assert!(bounds.contains(&value), "{name}: {value}, not {bounds:?}");
}

const ECN: &str = r#"{ preset = "sack", ecn = true }"#;

#[test]
fn pi_holds_its_reference_whatever_the_load() {
    // Hollot et al. 2001, section V: with the gains designed for the path, the length
    // settles at q_ref, with more flows than designed for as well.
    for flows in [20, 40] {
        let queue = r#"{ kind = "pi", limit = "300 packets", q_ref = "50 packets", ecn = true, flows = 20, rtt = "150 ms" }"#;
        let result = bulk(queue, flows, ECN);
        assert_within(&result, "queue_length_mean", 45.0..=55.0);
        assert_within(&result, "utilization", 0.99..=1.0);
    }
}

#[test]
fn pie_holds_its_target_whatever_the_load() {
    // RFC 8033, section 1: the average queueing latency is controlled to a target; with
    // timestamps and with the estimated rate, marking and dropping.
    for (keys, flows) in [
        (r#"ecn = true"#, 20),
        (r#"ecn = true"#, 40),
        (r#"delay = "departure-rate""#, 20),
        (r#"derandomize = false"#, 20),
    ] {
        let queue = format!(r#"{{ kind = "pie", limit = "300 packets", {keys} }}"#);
        let result = bulk(&queue, flows, ECN);
        assert_within(&result, "queue_delay_mean", 0.012..=0.018);
        assert_within(&result, "utilization", 0.98..=1.0);
    }
}

#[test]
fn docsis_pie_holds_its_target_behind_a_link_and_behind_its_own_shaper() {
    // RFC 8034, section 4.1: 10 ms, without marks (section 4.7). In the second case a link ten
    // times as fast is behind the modem's shaper.
    let access = |rate: &str, keys: &str| {
        run(&format!(
            r#"
duration = "120 s"
warmup = "40 s"
[bottleneck]
rate = "{rate}"
delay = "10 ms"
queue = {{ kind = "docsis-pie", limit = "300 packets", {keys} }}
[[traffic]]
name = "ftp"
kind = "bulk"
flows = 10
tcp = {ECN}
access_delay = ["1 ms", "5 ms", "10 ms", "15 ms"]
return_delay = "10 ms"
start = "uniform 0..5 s"
"#
        ))
    };
    let link = access("10 Mbit/s", r#"target = "10 ms""#);
    let modem = access(
        "100 Mbit/s",
        r#"rate = "10 Mbit/s", peak_rate = "20 Mbit/s", burst = "1 MB""#,
    );
    for (result, share) in [(&link, 1.0), (&modem, 0.1)] {
        assert_within(result, "queue_delay_mean", 0.0085..=0.0125);
        assert_within(result, "utilization", 0.98 * share..=1.001 * share);
        assert_eq!(metric(result, "mark"), 0.0);
    }
    // Another target is held as well.
    let later = access("10 Mbit/s", r#"target = "25 ms""#);
    assert_within(&later, "queue_delay_mean", 0.022..=0.029);
}

#[test]
fn linux_pie_behaves_as_in_the_kernel() {
    // The scenario B_pie_ecn of the Linux reference: 10 bulk CUBIC flows with ECN over
    // 10 Mbit/s and 50 ms. The kernel: utilization 0.9958, loss 0.0003, mark 0.0302, queue 12.58
    // packets, standard deviation 5.80. The tolerances are those of the reference. The
    // share of marks is that which its TCP needs to be held: with RFC 9438's CUBIC in place
    // of Linux's it is 0.0359.
    let text = r#"
duration = "120 s"
warmup = "30 s"
[bottleneck]
rate = "10 Mbit/s"
delay = "25 ms"
queue = { kind = "pie", limit = "1000 packets", flavour = "linux", update = "16 ms", ecn = true }
[[traffic]]
name = "bulk"
kind = "bulk"
flows = 10
tcp = { preset = "linux", ecn = true, ecn_fallback = false }
access_rate = "100 Mbit/s"
access_delay = "0 ms"
return_delay = "25 ms"
start = "uniform 0..4 s"
"#;
    let runs: Vec<RunResult> = (0..8)
        .map(|r| crate::common::run_replication(text, r))
        .collect();
    let close = |name: &str, kernel: f64, relative: f64, absolute: f64| {
        let ours = runs.iter().map(|run| metric(run, name)).sum::<f64>() / 8.0;
        let tolerance = (relative * kernel).max(absolute);
        assert!(
            (ours - kernel).abs() <= tolerance,
            "{name}: {ours}, {kernel}"
        );
    };
    close("utilization", 0.995773, 0.015, 0.0);
    close("loss", 0.000313, 0.15, 0.002);
    close("mark", 0.030195, 0.15, 0.002);
    close("queue_length_mean", 12.584, 0.1, 3.0);
    close("queue_length_std", 5.796, 0.35, 0.0);
}

#[test]
fn pi2_holds_its_target_whatever_the_load() {
    // De Schepper et al. 2016, section 6.2: the delay stays about its target over loads
    // that take PI's and PIE's gains out of tune.
    for (keys, flows) in [
        ("ecn = true", 5),
        ("ecn = true", 20),
        ("ecn = true", 40),
        ("ecn = false", 20),
    ] {
        let queue =
            format!(r#"{{ kind = "pi2", limit = "300 packets", rtt_max = "200 ms", {keys} }}"#);
        let result = bulk(&queue, flows, ECN);
        assert_within(&result, "queue_delay_mean", 0.013..=0.017);
        assert_within(&result, "utilization", 0.96..=1.0);
    }
}

#[test]
fn dualpi2_lets_prague_and_cubic_share_equally_at_low_latency() {
    // RFC 9332, section 2.1 (the coupling): flows of equal round trip get roughly equal rates;
    // the L queue waits below a millisecond while the classic one waits about its target.
    for (scalable, count) in [("prague", 1), ("prague", 3), ("dctcp-l4s", 2)] {
        let preset = if scalable == "prague" {
            r#""prague""#.to_owned()
        } else {
            // In fractions of a segment, as the coupling is derived. Linux takes whole segments away,
            // rounded down, and gets 1.7 times as much as CUBIC here.
            r#"{ preset = "dctcp", growth = "reno", ecn_codepoint = "ect1" }"#.to_owned()
        };
        let result = run(&format!(
            r#"
duration = "100 s"
warmup = "40 s"
[bottleneck]
rate = "40 Mbit/s"
delay = "5 ms"
queue = {{ kind = "dualpi2" }}
[[traffic]]
name = "scalable"
kind = "bulk"
flows = {count}
tcp = {preset}
return_delay = "5 ms"
start = "uniform 0..1 s"
[[traffic]]
name = "cubic"
kind = "bulk"
flows = {count}
tcp = {{ preset = "cubic", ecn = true }}
return_delay = "5 ms"
start = "uniform 0..1 s"
"#
        ));
        let ratio = metric(&result, "scalable.goodput") / metric(&result, "cubic.goodput");
        assert!((0.7..=1.4).contains(&ratio), "{scalable} {count}: {ratio}");
        assert_within(&result, "queue.l_delay_mean", 0.0..=0.001);
        assert_within(&result, "queue.c_delay_mean", 0.012..=0.018);
        assert_within(&result, "utilization", 0.99..=1.0);
        assert_within(&result, "queue.l_loss", 0.0..=0.0);
    }
}

/// Goodput of a Prague flow over that of a CUBIC flow of the same round trip, in ms, that
/// share a DualPI2 queue of `rate` Mbit/s.
fn prague_over_cubic(rate: u32, rtt: u32) -> f64 {
    // Version 0.6 of Prague's reference in the form of its time: its rate still depended on
    // the round trip. Linux gives no signal below two packets (th_len).
    let result = run(&format!(
        r#"
duration = "180 s"
warmup = "60 s"
[bottleneck]
rate = "{rate} Mbit/s"
delay = "{one_way} ms"
queue = {{ kind = "dualpi2", th_len = 2 }}
[[traffic]]
name = "prague"
kind = "bulk"
flows = 1
tcp = {{ preset = "prague", rtt_transition = 1_000_000 }}
return_delay = "{one_way} ms"
start = "uniform 0..1 s"
[[traffic]]
name = "cubic"
kind = "bulk"
flows = 1
tcp = "linux"
return_delay = "{one_way} ms"
start = "uniform 0..1 s"
"#,
        one_way = rtt / 2,
    ));
    metric(&result, "prague.goodput") / metric(&result, "cubic.goodput")
}

#[test]
fn prague_and_cubic_share_dualpi2_as_was_measured_with_linux() {
    // P. Heist and J. Morton, "L4S Tests" (github.com/heistp/l4s-tests, s1_table.md, November
    // 2020): goodput of the last of three minutes, Mbit/s, Prague's and CUBIC's, for each of
    // the two orders in which the flows were listed. The last row is one measurement of a
    // user (attached to an issue of L4STeam/linux, files/12052523). The two orders differ
    // by 6 % at most; beside that there are parameters of the queue that are not reported,
    // so a third either way is let pass. It was off by a factor of two to three when the
    // window did not grow while it was being reduced.
    for (rate, rtt, published) in [
        (50, 10, [(34.57, 12.65), (34.09, 13.04)].as_slice()),
        (50, 20, &[(32.39, 14.94), (31.85, 15.51)]),
        (50, 80, &[(29.58, 17.85), (29.92, 17.48)]),
        (10, 10, &[(6.22, 2.93), (6.25, 2.93)]),
        (10, 20, &[(5.93, 3.28), (6.01, 3.23)]),
        (10, 80, &[(5.90, 3.48), (5.94, 3.42)]),
        (100, 60, &[(63.4, 28.6)]),
    ] {
        let ratios = published.iter().map(|(prague, cubic)| prague / cubic);
        let expected = ratios.sum::<f64>() / published.len() as f64;
        let quotient = prague_over_cubic(rate, rtt) / expected;
        assert!(
            (0.75..=1.34).contains(&quotient),
            "{rate} Mbit/s, {rtt} ms: {quotient} of {expected}"
        );
    }
}
