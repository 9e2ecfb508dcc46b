//! Policers in front of queues: numbers computed by hand.

use redtail_sim::{RunOptions, RunResult};
use redtail_spec::{EventKind, Events};

use crate::common::{metric, run, scenario};

/// Packets of 1500 B every millisecond from 0.001 ms on, 1000 of them, with the DSCP AF11; `link` has further lines of the
/// bottleneck.
fn cbr(rate: &str, policer: &str, queue: &str, more: &str) -> String {
    format!(
        r#"
duration = "1 s"
[bottleneck]
rate = "{rate}"
delay = "1 ms"
policer = {{ {policer} }}
queue = {{ {queue} }}
[[traffic]]
name = "udp"
kind = "cbr"
rate = "12 Mbit/s"
packet = "1500 B"
start = "0 s"
dscp = "AF11"
access_rate = "12 Gbit/s"
{more}
"#
    )
}

/// 4 Mbit/s are 500 B/ms.
const BUCKET: &str = r#"kind = "token-bucket", rate = "4 Mbit/s", burst = "6000 B""#;
const FIFO: &str = r#"kind = "tail-drop", limit = "1000 packets""#;

#[test]
fn exactly_the_burst_and_the_rate_pass_a_token_bucket() {
    let result = run(&cbr("100 Mbit/s", BUCKET, FIFO, ""));
    // By the last packet, at 999.001 ms, 6000 + 500 * 999 = 505,500 B may pass: 337 packets of 1500 B.
    assert_eq!(metric(&result, "policer_green"), 0.337);
    assert_eq!(metric(&result, "policer_red"), 0.663);
    assert_eq!(metric(&result, "policer_loss"), 0.663);
    assert_eq!(metric(&result, "loss"), 0.663);
    assert_eq!(result.bottleneck_packets, 337);
}

#[test]
fn a_queue_sees_the_dscp_that_a_policer_gives() {
    // A link of the policer's rate: the 337 green packets keep it busy, and of the others one waits for ever.
    let queue = r#"kind = "prio", class = [
  { name = "in", match = [{ dscp = "AF11" }], queue = { kind = "tail-drop", limit = "1000 packets" } },
  { name = "out", queue = { kind = "tail-drop", limit = "1 packets" } },
]"#;
    let policer = format!("{BUCKET}, exceed = \"AF12\"");
    let result = run(&cbr("4 Mbit/s", &policer, queue, ""));
    assert_eq!(metric(&result, "policer_red"), 0.663);
    assert_eq!(metric(&result, "policer_loss"), 0.0);
    assert_eq!(metric(&result, "loss"), 0.662);
    // Without the mark all are in the first class.
    let result = run(&cbr(
        "4 Mbit/s",
        &format!("{BUCKET}, exceed = \"pass\""),
        queue,
        "",
    ));
    assert_eq!(metric(&result, "loss"), 0.0);
}

#[test]
fn two_rates_colour_what_they_carry() {
    // Packets of 1500 B/ms against 250 B/ms and 1000 B/ms. Green: 3000 + 250 * 999 = 252,750 B, 168 packets. Not red:
    // 3000 + 1000 * 999 = 1,002,000 B, 668 packets.
    let policer =
        r#"kind = "tr-tcm", cir = "2 Mbit/s", cbs = "3000 B", pir = "8 Mbit/s", pbs = "3000 B""#;
    let result = run(&cbr("100 Mbit/s", policer, FIFO, ""));
    assert_eq!(metric(&result, "policer_green"), 0.168);
    assert_eq!(metric(&result, "policer_yellow"), 0.5);
    assert_eq!(metric(&result, "policer_red"), 0.332);
    assert_eq!(metric(&result, "policer_loss"), 0.332);
    // All are yellow before: a colour-aware meter makes none green.
    let aware = format!("{policer}, colour_aware = true");
    let yellow = cbr("100 Mbit/s", &aware, FIFO, "").replace("AF11", "AF12");
    let result = run(&yellow);
    assert_eq!(metric(&result, "policer_green"), 0.0);
    assert_eq!(metric(&result, "policer_yellow"), 0.668);
}

#[test]
fn the_event_log_tells_the_reason() {
    let mut scenario = scenario(&cbr("100 Mbit/s", BUCKET, FIFO, ""), 0);
    scenario.events = Some(Events {
        kinds: vec![EventKind::Drop],
        ..Events::default()
    });
    let result = redtail_sim::run(&scenario, RunOptions::default()).expect("it can be run");
    let log = result.event_log.expect("it was asked for");
    assert_eq!(log.rows.reason.len(), 663);
    let told = log.rows.reason.iter().map(|&it| &log.reasons[it as usize]);
    assert!(told.clone().all(|reason| reason == "policer"));
}

#[test]
fn bbr_finds_the_rate_of_a_policer() {
    // Linux's long-term sampling (`lt_bw`): the rate is found in two intervals of at most 16 rounds, and used for 48. In the
    // rest, and without it, a flow sends 5/4 of the rate again and again.
    let run = |tcp: &str| {
        run(&format!(
            r#"
duration = "120 s"
warmup = "20 s"
[bottleneck]
rate = "100 Mbit/s"
delay = "20 ms"
policer = {{ kind = "token-bucket", rate = "4 Mbit/s", burst = "60 kB" }}
queue = {{ kind = "tail-drop", limit = "1000 packets" }}
[[traffic]]
name = "ftp"
kind = "bulk"
return_delay = "20 ms"
tcp = {tcp}
"#
        ))
    };
    let with = run(r#"{ preset = "bbr" }"#);
    let without = run(r#"{ preset = "bbr", lt_bw = false }"#);
    let loss = |result: &RunResult| metric(result, "policer_loss");
    let losses = [loss(&with), loss(&without)];
    assert!(losses[0] < 0.75 * losses[1], "{losses:?}");
    // A policer lets at most 4 Mbit/s pass, headers of 40 B in packets of 1500 B included, besides one burst.
    let most = 1e6 * (4.0 + 0.48 / 100.0) * 1460.0 / 1500.0;
    for result in [&with, &without] {
        let goodput = metric(result, "ftp.goodput");
        assert!(goodput > 0.75 * most && goodput <= most, "{goodput} {most}");
    }
}
