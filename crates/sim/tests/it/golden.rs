//! A short table of rounded results, so that a change of behaviour shows in review.
//!
//! The numbers are no truth: that is for the other tests and for the comparison
//! with ns-2. After an intended change, `REDTAIL_BLESS=1 cargo test -p redtail-sim
//! --test golden` writes the table anew; its difference belongs in the review.

use std::fmt::Write;
use std::path::Path;

use crate::common::run;

const TAIL_DROP: &str = r#"{ kind = "tail-drop", limit = "60 packets" }"#;
const RED: &str = r#"{ kind = "red", limit = "60 packets", min_th = "10 packets", max_th = "30 packets", gentle = true }"#;
const RED_ECN: &str = r#"{ kind = "red", limit = "60 packets", min_th = "10 packets", max_th = "30 packets", gentle = true, ecn = true }"#;

/// Bulk flows with `tcp` and a little UDP through a bottleneck with `queue`.
fn dumbbell(queue: &str, flows: u32, tcp: &str) -> String {
    format!(
        r#"
duration = "10 s"
warmup = "2 s"
[bottleneck]
rate = "10 Mbit/s"
delay = "20 ms"
queue = {queue}
[[traffic]]
name = "ftp"
kind = "bulk"
flows = {flows}
tcp = {tcp}
access_delay = ["1 ms", "10 ms", "30 ms"]
return_delay = "20 ms"
start = "uniform 0..1 s"
[[traffic]]
name = "udp"
kind = "cbr"
rate = "500 kbit/s"
packet = "500 B"
dither = 0.5
"#
    )
}

/// Traffic both ways, each delaying the acknowledgements of the other.
fn both_ways() -> String {
    format!(
        r#"
duration = "10 s"
warmup = "2 s"
[bottleneck]
rate = "5 Mbit/s"
delay = "20 ms"
queue = {TAIL_DROP}
[bottleneck.return]
rate = "5 Mbit/s"
delay = "20 ms"
queue = {TAIL_DROP}
[[traffic]]
name = "there"
kind = "bulk"
flows = 5
start = "uniform 0..1 s"
[[traffic]]
name = "back"
kind = "bulk"
flows = 5
direction = "reverse"
start = "uniform 0..1 s"
"#
    )
}

/// A download whose acknowledgements share the way back with an upload.
fn asymmetric(filter: &str) -> String {
    format!(
        r#"
duration = "10 s"
warmup = "2 s"
[bottleneck]
rate = "50 Mbit/s"
delay = "10 ms"
queue = {{ kind = "fq-codel" }}
[bottleneck.return]
rate = "1 Mbit/s"
delay = "10 ms"
queue = {{ kind = "cake", ack_filter = "{filter}" }}
[[traffic]]
name = "down"
kind = "bulk"
flows = 4
tcp = "linux"
start = "uniform 0..1 s"
[[traffic]]
name = "up"
kind = "bulk"
flows = 1
tcp = "linux"
direction = "reverse"
"#
    )
}

/// Two bottlenecks in a row, with cross traffic on the first.
fn chain() -> String {
    format!(
        r#"
duration = "10 s"
warmup = "2 s"
[[chain.hop]]
rate = "8 Mbit/s"
delay = "10 ms"
queue = {TAIL_DROP}
[[chain.hop]]
rate = "6 Mbit/s"
delay = "10 ms"
queue = {RED}
[[traffic]]
name = "through"
kind = "bulk"
flows = 10
start = "uniform 0..1 s"
return_delay = "20 ms"
[[traffic]]
name = "cross"
kind = "transfer"
size = "400 kB"
flows = 10
last_hop = 1
start = "uniform 0..8 s"
return_delay = "10 ms"
"#
    )
}

#[rustfmt::skip]
fn scenarios() -> Vec<(&'static str, String)> {
    vec![
        ("tail drop, 20 sack", dumbbell(TAIL_DROP, 20, r#""sack""#)),
        ("tail drop, 20 newreno", dumbbell(TAIL_DROP, 20, r#""newreno""#)),
        ("tail drop, 3 reno", dumbbell(TAIL_DROP, 3, r#""reno""#)),
        ("gentle RED, 20 sack", dumbbell(RED, 20, r#""sack""#)),
        ("gentle RED, 20 ns2-sack", dumbbell(RED, 20, r#""ns2-sack""#)),
        ("gentle RED, 20 sack with ECN", dumbbell(RED_ECN, 20, r#"{ preset = "sack", ecn = true }"#)),
        ("both ways, 5 sack each", both_ways()),
        ("chain, 10 sack and cross traffic", chain()),
        ("fq, 20 sack", dumbbell(r#"{ kind = "fq" }"#, 20, r#""sack""#)),
        ("fq paced to 300 kbit/s, 20 sack", dumbbell(r#"{ kind = "fq", flow_max_rate = "300 kbit/s" }"#, 20, r#""sack""#)),
        ("pfifo_fast, 20 sack", dumbbell(r#"{ kind = "pfifo-fast", limit = "60 packets" }"#, 20, r#""sack""#)),
        ("DOCSIS-PIE, 20 sack", dumbbell(r#"{ kind = "docsis-pie", limit = "200 packets" }"#, 20, r#""sack""#)),
        ("CAKE back, ACK filter off", asymmetric("off")),
        ("CAKE back, ACK filter on", asymmetric("on")),
        ("CAKE back, aggressive ACK filter", asymmetric("aggressive")),
    ]
}

/// `value` with three significant digits.
fn rounded(value: f64) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    let digits = 2 - value.abs().log10().floor() as i32;
    let scale = 10f64.powi(digits);
    let rounded = (value * scale).round() / scale;
    format!("{rounded:.*}", digits.max(0) as usize)
}

fn table() -> String {
    let mut table = String::from(
        "scenario                          goodput Mbit/s    loss %    mark %    queue packets\n",
    );
    for (name, text) in scenarios() {
        let result = run(&text);
        // Of the first queue: a chain's metrics bear the hop's name.
        let queue = |metric: &str| {
            let value = result.metric(metric);
            let value = value.or_else(|| result.metric(&format!("hop1.{metric}")));
            value.unwrap_or_else(|| panic!("{name}: no {metric}"))
        };
        let goodput = rounded(crate::common::metric(&result, "goodput") / 1e6);
        writeln!(
            table,
            "{name:<32}  {goodput:>14}  {:>8}  {:>8}  {:>15}",
            rounded(100.0 * queue("loss")),
            rounded(100.0 * queue("mark")),
            rounded(queue("queue_length_mean")),
        )
        .expect("a text can be written to");
    }
    table
}

#[test]
fn results_are_those_last_reviewed() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/golden.txt");
    let table = table();
    if std::env::var_os("REDTAIL_BLESS").is_some_and(|value| value == "1") {
        std::fs::write(&path, table).expect("the table can be written");
        return;
    }
    let reviewed = std::fs::read_to_string(&path).expect("the table was committed");
    assert_eq!(
        table, reviewed,
        "\nnow:\n{table}\nreviewed:\n{reviewed}\nREDTAIL_BLESS=1 writes the table anew\n"
    );
}

#[test]
fn rounding_keeps_three_digits() {
    for (value, text) in [
        (9.876, "9.88"),
        (0.012_345, "0.0123"),
        (12.34, "12.3"),
        (1234.0, "1230"),
        (0.0, "0"),
    ] {
        assert_eq!(rounded(value), text);
    }
}
