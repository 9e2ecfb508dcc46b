//! Links whose rate changes, results by phase, and losses of several flows together: numbers
//! computed by hand.

use crate::common::{metric, run};
use redtail_sim::RunResult;

#[track_caller]
fn assert_near(found: f64, expected: f64) {
    let error = (found - expected).abs();
    assert!(
        error <= 1e-9 * expected.abs().max(1e-6),
        "{found} is not {expected}"
    );
}

/// UDP packets of `packet`, the first of which reaches the queue after 1 us.
fn cbr(duration: &str, link: &str, packet: u64, gap_ms: u64) -> RunResult {
    run(&format!(
        r#"
duration = "{duration}"
[bottleneck]
{link}
delay = "1 ms"
queue = {{ kind = "tail-drop", limit = "100 packets" }}
[[traffic]]
name = "udp"
kind = "cbr"
rate = "{} kbit/s"
packet = "{packet} B"
start = "0 s"
access_rate = "{} Mbit/s"
"#,
        packet * 8 / gap_ms,
        packet * 8,
    ))
}

const STEP: &str = r#"
rate = "12 Mbit/s"
rate_changes = [{ at = "10.501 ms", rate = "3 Mbit/s" }]
"#;

#[test]
fn what_is_left_of_a_packet_goes_on_at_the_new_rate() {
    // The second packet begins at 10.001 ms; 6,000 bit are sent by 10.501 ms, the others take 2 ms.
    let before = 12.0 * 10_501.0; // bit until the change
    let early = cbr("12.5 ms", STEP, 1500, 10);
    let sent = 12_000.0 + 6_000.0 + 3.0 * 1_999.0;
    assert_near(
        metric(&early, "utilization"),
        sent / (before + 3.0 * 1_999.0),
    );
    let done = cbr("12.502 ms", STEP, 1500, 10);
    assert_near(
        metric(&done, "utilization"),
        24_000.0 / (before + 3.0 * 2_001.0),
    );
    assert_eq!(done.bottleneck_packets, 2);
    assert_eq!(early.bottleneck_packets, 1);
}

#[test]
fn utilization_is_against_the_capacity_that_there_was() {
    let result = cbr("20 ms", STEP, 1500, 10);
    let capacity = 12.0 * 10_501.0 + 3.0 * 9_499.0;
    assert_near(metric(&result, "utilization"), 24_000.0 / capacity);
    assert_near(metric(&result, "udp.utilization"), 24_000.0 / capacity);
}

#[test]
fn a_change_to_the_same_rate_changes_nothing() {
    let link = |changes: &str| format!("rate = \"7 Mbit/s\"\n{changes}");
    let constant = cbr("1 s", &link(""), 1100, 2);
    let changes = r#"rate_changes = [{ at = "333333333333 ps", rate = "7 Mbit/s" }]"#;
    let stepped = cbr("1 s", &link(changes), 1100, 2);
    let names = [
        "queue_delay_mean",
        "queue_length_mean",
        "udp.end_to_end_loss",
    ];
    for name in names {
        assert_eq!(metric(&stepped, name), metric(&constant, name), "{name}");
    }
    assert_near(
        metric(&stepped, "utilization"),
        metric(&constant, "utilization"),
    );
    assert_eq!(stepped.events, constant.events);
}

#[test]
fn an_opportunity_carries_small_packets_up_to_1500_bytes() {
    // Packets of 500 B arrive at 0.001, 1.001, ... ms; two opportunities at 10 ms take six of
    // those ten, and the next ones, at 20 ms, are after the end.
    let trace = r#"rate_trace = { differences_ms = "10 0" }"#;
    let result = cbr("20 ms", trace, 500, 1);
    assert_eq!(result.bottleneck_packets, 6);
    assert_eq!(metric(&result, "utilization"), 1.0);
    // 9.999, 8.999, ... 4.999 ms.
    assert_near(metric(&result, "queue_delay_mean"), 7.499e-3);
}

#[test]
fn what_is_left_of_a_large_packet_waits_for_the_next_opportunity() {
    // Packets of 2000 B arrive at 0.001, 10.001, ... ms. At 10 ms: 1500 of the first; at 20 ms its
    // 500, and 1000 of the second; at 30 ms 1000 and 500 of the third; at 40 ms its 1500; at
    // 50 ms 1500 of the fourth, which has waited for 19.999 ms.
    let trace = r#"rate_trace = { differences_ms = "10" }"#;
    let result = cbr("55 ms", trace, 2000, 10);
    assert_eq!(result.bottleneck_packets, 3);
    assert_eq!(metric(&result, "utilization"), 1.0);
    assert_near(
        metric(&result, "queue_delay_mean"),
        (3.0 * 9.999e-3 + 19.999e-3) / 4.0,
    );
}

#[test]
fn opportunities_that_find_no_packet_are_lost() {
    // One a millisecond from 1 to 99 ms, and ten packets.
    let trace = r#"rate_trace = { differences_ms = "1" }"#;
    let result = cbr("100 ms", trace, 1500, 10);
    assert_eq!(result.bottleneck_packets, 10);
    assert_near(metric(&result, "utilization"), 10.0 / 99.0);
    assert_near(metric(&result, "queue_delay_mean"), 0.999e-3);
}

#[test]
fn every_kind_of_queue_runs_on_a_trace_and_on_steps() {
    // The engine checks the conservation of packets itself.
    let queues = [
        r#"{ kind = "tail-drop", limit = "50 packets" }"#,
        r#"{ kind = "pie", limit = "200 packets" }"#,
        r#"{ kind = "codel", limit = "200 packets" }"#,
        r#"{ kind = "fq-codel" }"#,
        r#"{ kind = "cake", rate = "4 Mbit/s" }"#,
        r#"{ kind = "tbf", rate = "4 Mbit/s", burst = "3000 B", queue = { kind = "tail-drop", limit = "50 packets" } }"#,
    ];
    let links = [
        r#"rate_trace = { differences_ms = "2 0x3 1 5 0 3" }"#,
        "rate = \"8 Mbit/s\"\nrate_changes = [{ at = \"2 s\", rate = \"1 Mbit/s\" }, { at = \"4 s\", rate = \"20 Mbit/s\" }]",
    ];
    for queue in queues {
        for link in links {
            let result = run(&format!(
                r#"
duration = "6 s"
warmup = "1 s"
phases = ["2 s", "4 s"]
[bottleneck]
{link}
delay = "10 ms"
queue = {queue}
wire.loss = 0.001
[[traffic]]
name = "ftp"
kind = "bulk"
flows = 4
return_delay = "10 ms"
"#
            ));
            let utilization = metric(&result, "utilization");
            assert!(
                (0.2..=1.0).contains(&utilization),
                "{queue} {link}: {utilization}"
            );
            for phase in 1..=3 {
                let utilization = metric(&result, &format!("phase{phase}.utilization"));
                assert!(
                    (0.1..=1.0).contains(&utilization),
                    "{queue} {link}: {utilization}"
                );
            }
        }
    }
}

const BEFORE_AND_AFTER: &str = r#"
[bottleneck]
rate = "10 Mbit/s"
delay = "5 ms"
queue = { kind = "tail-drop", limit = "30 packets" }
[[traffic]]
name = "ftp"
kind = "bulk"
flows = 3
start = "4 s"
return_delay = "20 ms"
[[traffic]]
name = "udp"
kind = "cbr"
rate = "2 Mbit/s"
packet = "1000 B"
start = "0 s"
stop = "4 s"
"#;

#[test]
fn each_phase_has_metrics_of_its_own() {
    let with = |keys: &str| {
        run(&format!(
            "duration = \"12 s\"\nwarmup = \"2 s\"\n{keys}\n{BEFORE_AND_AFTER}"
        ))
    };
    let (whole, split) = (with(""), with("phases = [\"4 s\", \"9 s\"]"));
    // 500 packets of 0.8 ms in 2 s, and nothing else.
    assert_near(metric(&split, "phase1.utilization"), 0.2);
    assert_eq!(metric(&split, "phase1.loss"), 0.0);
    assert_eq!(metric(&split, "phase1.ftp.goodput"), 0.0);
    assert_eq!(split.metric("phase1.ftp.loss"), None); // nothing arrived
    assert_eq!(split.metric("phase4.utilization"), None);
    assert_eq!(metric(&split, "phase3.udp.utilization"), 0.0);
    // Lengths 2, 5 and 3 of 10 s.
    let sum = |name: &str| {
        let of = |phase: u32| metric(&split, &format!("phase{phase}.{name}"));
        0.2 * of(1) + 0.5 * of(2) + 0.3 * of(3)
    };
    for name in ["utilization", "queue_length_mean", "ftp.goodput", "goodput"] {
        assert_near(sum(name), metric(&whole, name));
    }
    // Phases change nothing of the whole.
    let plain: Vec<_> = split
        .metrics
        .iter()
        .filter(|(name, _)| !name.starts_with("phase"))
        .collect();
    assert_eq!(plain, whole.metrics.iter().collect::<Vec<_>>());
}

#[test]
fn phases_are_found_by_themselves_where_something_changes() {
    let result = run(&format!(
        "duration = \"12 s\"\nwarmup = \"2 s\"\nphases = \"auto\"\n{BEFORE_AND_AFTER}"
    ));
    assert_near(metric(&result, "phase1.utilization"), 0.2);
    assert!(metric(&result, "phase2.utilization") > 0.9);
    assert_eq!(result.metric("phase3.utilization"), None);
}

#[test]
fn flows_that_lose_within_a_round_trip_of_the_first_drop_lose_together() {
    // Packets arrive every 0.5 ms and leave every 1 ms. Of the overload that begins at 0 (up to a
    // constant): packet m leaves at m ms; the first that finds ten waiting comes at 10.5 ms, when
    // the last to leave had waited for 5 ms; so the event takes until 10.5 + 40 + 5 = 55.5 ms. A drop
    // then begins the second; the delay has become 10 ms, so it takes until 105.5 ms, and a packet of
    // "late" finds room within it. The second overload repeats the first 200 ms later, without that.
    let result = run(r#"
duration = "400 ms"
[bottleneck]
rate = "12 Mbit/s"
delay = "20 ms"
queue = { kind = "tail-drop", limit = "10 packets" }
[[traffic]]
name = "ftp"
kind = "bulk"
start = "1 s"
return_delay = "20 ms"
[[traffic]]
name = "burst"
kind = "cbr"
flows = 2
rate = "24 Mbit/s"
packet = "1500 B"
start = ["0 s", "200 ms"]
stop = ["100 ms", "300 ms"]
[[traffic]]
name = "late"
kind = "cbr"
rate = "12 kbit/s"
packet = "1500 B"
start = "102 ms"
"#);
    assert_near(
        metric(&result, "loss_synchronization"),
        (1.0 + 0.5 + 1.0 + 1.0) / 4.0,
    );
    let intervals = [45e-3, 155e-3, 45e-3];
    let mean = intervals.iter().sum::<f64>() / 3.0;
    let variance = intervals
        .iter()
        .map(|x| (x - mean) * (x - mean))
        .sum::<f64>()
        / 3.0;
    assert_near(metric(&result, "loss_interval_mean"), mean);
    assert_near(metric(&result, "loss_interval_std"), variance.sqrt());
}

#[test]
fn a_lone_flow_always_loses_alone() {
    let result = run(r#"
duration = "30 s"
[bottleneck]
rate = "5 Mbit/s"
delay = "20 ms"
queue = { kind = "tail-drop", limit = "20 packets" }
[[traffic]]
name = "ftp"
kind = "bulk"
"#);
    assert_eq!(metric(&result, "loss_synchronization"), 1.0);
    assert!(metric(&result, "loss_interval_mean") > 0.5);
}
