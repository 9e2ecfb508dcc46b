//! A run is a function of its scenario; scenarios that differ in one part draw
//! the same random numbers in all others; recording changes nothing.

use crate::common::{metrics_of, run, run_replication};
use redtail_sim::RunResult;

/// Everything that draws: RED, random starts, dithered UDP; in both directions.
const MIXED: &str = r#"
duration = "4 s"
warmup = "1 s"
[bottleneck]
rate = "5 Mbit/s"
delay = "10 ms"
queue = { kind = "red", limit = "60 packets", min_th = "5 packets", max_th = "20 packets" }
[bottleneck.return]
rate = "1 Mbit/s"
delay = "10 ms"
queue = { kind = "tail-drop", limit = "20 packets" }
[[traffic]]
name = "ftp"
kind = "bulk"
flows = 5
access_delay = ["1 ms", "30 ms"]
start = "uniform 0..1 s"
[[traffic]]
name = "udp"
kind = "cbr"
flows = 3
rate = "200 kbit/s"
packet = "500 B"
dither = 0.7
[[traffic]]
name = "back"
kind = "bulk"
direction = "reverse"
"#;

const SERIES: &str = "[series]\ninterval = \"7 ms\"\nwindows = true\nreplications = 9\n";

/// The result as text: unlike numbers, texts that say NaN are equal.
fn text(result: &RunResult) -> String {
    format!("{result:?}")
}

#[test]
fn the_same_scenario_gives_the_same_result() {
    let with_series = format!("{MIXED}{SERIES}");
    for replication in [0, 3] {
        let first = run_replication(&with_series, replication);
        let second = run_replication(&with_series, replication);
        assert_eq!(text(&first), text(&second));
    }
}

#[test]
fn replications_and_seeds_differ() {
    let base = run(MIXED);
    assert_ne!(base.metrics, run_replication(MIXED, 1).metrics);
    assert_ne!(base.metrics, run(&format!("seed = 2\n{MIXED}")).metrics);
}

#[test]
fn recording_series_changes_nothing_else() {
    let plain = run(MIXED);
    for interval in ["1 ms", "3 ms", "500 ms"] {
        let recorded = run(&format!(
            "{MIXED}[series]\ninterval = \"{interval}\"\nwindows = true\n"
        ));
        assert!(recorded.queue_series.is_some() && recorded.flow_series.is_some());
        assert_eq!(recorded.metrics, plain.metrics);
        assert_eq!(recorded.consecutive_losses, plain.consecutive_losses);
        assert_eq!(recorded.bottleneck_packets, plain.bottleneck_packets);
    }
    assert!(plain.queue_series.is_none() && plain.flow_series.is_none());
}

/// Two hops: dithered UDP on the first, TCP on the second, whose queue is `queue`.
fn two_hops(queue: &str) -> String {
    format!(
        r#"
duration = "5 s"
[chain]
[[chain.hop]]
rate = "2 Mbit/s"
delay = "1 ms"
queue = {{ kind = "tail-drop", limit = "1000 packets" }}
[[chain.hop]]
rate = "2 Mbit/s"
delay = "5 ms"
queue = {queue}
[[traffic]]
name = "udp"
kind = "cbr"
flows = 20
rate = "80 kbit/s"
packet = "300 B"
dither = 1.0
start = "uniform 0..1 s"
last_hop = 1
[[traffic]]
name = "ftp"
kind = "transfer"
size = "150 kB"
flows = 8
start = "uniform 0..3 s"
tcp = {{ preset = "ns2-sack", ecn = true }}
first_hop = 2
[series]
interval = "1 ms"
queues = false
windows = true
"#
    )
}

/// When each flow was first seen with data in flight, by flow number.
fn first_seen(result: &RunResult) -> Vec<f64> {
    let series = result.flow_series.as_ref().expect("it was asked for");
    let flows = series.flow.iter().max().expect("there are flows") + 1;
    (0..flows)
        .filter_map(|flow| {
            let mut rows = series
                .flow
                .iter()
                .zip(&series.in_flight_bytes)
                .zip(&series.time_s);
            let row = rows.find(|((row, bytes), _)| **row == flow && **bytes > 0.0)?;
            Some(*row.1)
        })
        .collect()
}

#[test]
fn another_queue_leaves_the_workload_as_it_was() {
    // Common random numbers: starts and gaps come from streams of their own. The
    // first hop's statistics, to the last bit, show every gap of the UDP sources.
    let base = run(&two_hops(r#"{ kind = "tail-drop", limit = "10 packets" }"#));
    assert_eq!(first_seen(&base).len(), 8);
    for queue in [
        r#"{ kind = "tail-drop", limit = "500 packets" }"#,
        r#"{ kind = "red", limit = "50 packets", min_th = "2 packets", max_th = "9 packets" }"#,
        r#"{ kind = "red", limit = "50 packets", min_th = "2 packets", max_th = "9 packets", ecn = true }"#,
    ] {
        let other = run(&two_hops(queue));
        assert_ne!(
            metrics_of(&base, "hop2."),
            metrics_of(&other, "hop2."),
            "the queue made no difference at all"
        );
        assert_eq!(metrics_of(&base, "hop1."), metrics_of(&other, "hop1."));
        assert_eq!(first_seen(&base), first_seen(&other));
    }
}

#[test]
fn another_group_leaves_the_draws_of_the_others_as_they_were() {
    let queue = r#"{ kind = "tail-drop", limit = "10 packets" }"#;
    let base = run(&two_hops(queue));
    // Put before the others, so that every flow gets another number.
    let more = "[[traffic]]\nname = \"more\"\nkind = \"cbr\"\nrate = \"50 kbit/s\"\n\
                packet = \"99 B\"\ndither = 0.5\nfirst_hop = 2\n[[traffic]]\nname = \"udp\"";
    let text = two_hops(queue).replacen("[[traffic]]\nname = \"udp\"", more, 1);
    let other = run(&text);
    assert_eq!(
        metrics_of(&base, "hop1.udp."),
        metrics_of(&other, "hop1.udp.")
    );
    assert_eq!(first_seen(&base), first_seen(&other));
}
