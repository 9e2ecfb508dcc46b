//! Every metric that a run reports is defined, and every metric that is predicted for a scenario is
//! reported: for each kind of queue and each kind of traffic.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::common::{run_with, scenario_with};
use redtail_core::{Metric, Span, Time};
use redtail_qdisc::QueueParams;
use redtail_sim::metrics;
use redtail_traffic::{TraceTable, TracedConnection, TracedExchange, TrafficParams};

/// The names that a run reports, and those that are predicted for it with their definitions.
fn names(text: &str) -> (BTreeSet<String>, BTreeMap<String, &'static Metric>) {
    let connections = (0..8).map(|i| TracedConnection {
        start: Time::ZERO + Span::from_ms(3000 + 100 * i),
        rtt: Some(Span::from_ms(50)),
        reverse: false,
        first: i as u32,
    });
    let exchange = TracedExchange {
        request: 500,
        response: 60_000,
        service: Span::ZERO,
        think: Span::ZERO,
    };
    let table = Arc::new(TraceTable::new(
        "t",
        connections.collect(),
        vec![exchange; 8],
    ));
    let scenario = scenario_with(text, &table, |_, _| {});
    let result = run_with(&scenario, table);
    let reported = result.metrics.iter().map(|(name, _)| name.clone());
    let predicted = metrics::names(&scenario);
    let is_named = |name: &String| predicted.open.iter().any(|open| name.starts_with(open));
    let reported = reported.filter(|name| !is_named(name)).collect();
    (reported, predicted.known.into_iter().collect())
}

/// Asserts that exactly the metrics that are predicted are reported, but for those `undefined`.
#[track_caller]
fn same(what: &str, text: &str, undefined: impl Fn(&str) -> bool) {
    let catalog = metrics::catalog();
    let (reported, predicted) = names(text);
    for name in &reported {
        assert!(
            predicted.contains_key(name),
            "{what}: {name} is reported and not predicted"
        );
    }
    for (name, metric) in &predicted {
        let listed = catalog.iter().any(|listed| listed.metric == *metric);
        assert!(listed, "{what}: {name} is not in the catalogue");
        assert!(
            reported.contains(name) || undefined(name),
            "{what}: {name} is predicted and not reported"
        );
    }
}

/// Parameters of each kind of queue with which it reports all its metrics.
fn queue(kind: &str) -> String {
    let limit = r#"limit = "20 packets""#;
    let classes = r#"class = [
        { name = "udp", match = { protocol = "udp" }, MORE queue = { kind = "fq-codel" } },
        { name = "tcp", MORE queue = { kind = "prio", class = [
            { name = "inner", queue = { kind = "adaptive-red", limit = "20 packets" } } ] } } ]"#;
    let keys = match kind {
        "red" | "self-configuring-red" | "dynamic-threshold-red" | "choke" => {
            format!(r#"{limit}, min_th = "5 packets", max_th = "15 packets""#)
        }
        "wred" => format!(
            r#"{limit}, profiles = [ {{ min_th = "5 packets", max_th = "15 packets", max_p = 0.1 }} ]"#
        ),
        "gsp" => format!(r#"{limit}, threshold = "10 packets""#),
        "cake" => r#"ack_filter = "on""#.to_owned(),
        "prio" => classes.replace("MORE", ""),
        "drr" => classes.replace("MORE", r#"quantum = "1500 B","#),
        "wfq" => classes.replace("MORE", "weight = 1,"),
        "htb" => classes.replace("MORE", r#"rate = "500 kbit/s", ceil = "2 Mbit/s","#),
        "tbf" => r#"rate = "1500 kbit/s", burst = "3 kB", queue = { kind = "sfq" }"#.to_owned(),
        "red-tail" | "dualpi2" | "codel" | "fq-codel" | "fq" | "sfq" | "cobalt" | "sfb"
        | "fq-pie" | "pfifo-fast" => String::new(),
        _ => limit.to_owned(),
    };
    let comma = if keys.is_empty() { "" } else { "," };
    format!(r#"{{ kind = "{kind}"{comma} {keys} }}"#).replace('\n', " ")
}

#[test]
fn queues_report_what_is_predicted_and_nothing_else() {
    for kind in QueueParams::KINDS {
        if *kind == "plugin" {
            continue; // its class names its metrics
        }
        let text = format!(
            r#"
duration = "12 s"
warmup = "2 s"
phases = ["6 s"]
[bottleneck]
rate = "2 Mbit/s"
delay = "10 ms"
wire.loss = 0.001
queue = {}
[[traffic]]
name = "long"
kind = "bulk"
flows = 6
dscp = 2
return_delay = "20 ms"
[[traffic]]
name = "scalable"
kind = "bulk"
flows = 2
tcp = "prague"
dscp = 2
return_delay = "20 ms"
[[traffic]]
name = "short"
kind = "transfer"
flows = 10
size = "3 kB"
start = "uniform 3..5 s"
return_delay = "20 ms"
[[traffic]]
name = "udp"
kind = "cbr"
dscp = 4
rate = "600 kbit/s"
packet = "500 B"
"#,
            queue(kind)
        );
        // Some queues lose or mark no packet of some group. The test below has a queue that loses.
        same(kind, &text, |name| !name.starts_with("queue."));
    }
}

/// The keys of each kind of traffic.
fn traffic(kind: &str) -> &'static str {
    match kind {
        "transfer" => "flows = 10\nsize = \"30 kB\"\nstart = \"uniform 3..5 s\"",
        "cbr" => "flows = 2\nrate = \"1500 kbit/s\"\npacket = \"500 B\"",
        "voip" => "flows = 30",
        "on-off" => {
            "flows = 4\nrate = \"2 Mbit/s\"\npacket = \"500 B\"\non = \"500 ms\"\noff = \"100 ms\""
        }
        "game" => "flows = 200",
        "transactions" => {
            "users = 20\nrequest = \"100 B\"\nresponse = \"30 kB\"\nthink = \"100 ms\""
        }
        "web" => "users = 6\nmodel = \"http1\"",
        "video" => "users = 3\nstart = \"uniform 5..15 s\"",
        "arrivals" => "users = 1\ngap = \"exponential mean 300 ms\"\nsize = \"40 kB\"",
        "trace" => "file = \"t.csv\"",
        "endpoint" => "class = \"steady\"\nflows = 4\nparams = { gap = 0.015 }",
        _ => "flows = 4",
    }
}

#[test]
fn traffic_reports_what_is_predicted_and_nothing_else() {
    let is_simulated = |kind: &&&str| !TrafficParams::OF_KERNELS.contains(kind);
    for kind in TrafficParams::KINDS.iter().filter(is_simulated) {
        let text = format!(
            r#"
duration = "60 s"
warmup = "2 s"
[bottleneck]
rate = "2 Mbit/s"
delay = "10 ms"
queue = {{ kind = "tail-drop", limit = "12 packets" }}
[[traffic]]
name = "them"
kind = "{kind}"
{}
"#,
            traffic(kind)
        );
        same(kind, &text, |_| false);
    }
}

#[test]
fn metrics_of_one_name_are_shown_alike() {
    let mut known: BTreeMap<&str, &Metric> = BTreeMap::new();
    let mut seen = BTreeSet::new();
    for listed in metrics::catalog() {
        let metric = listed.metric;
        assert!(
            !metric.title.is_empty() && !metric.short.is_empty(),
            "{}",
            metric.name
        );
        assert!(metric.definition.ends_with(['.', ')']), "{}", metric.name);
        assert!(
            seen.insert((metric.name, listed.of.clone())),
            "{} is listed twice",
            metric.name
        );
        // A table finds what a column is called by the last part of the metric's name.
        let first = known.entry(metric.name).or_insert(metric);
        assert_eq!(
            (first.title, first.short, first.shown),
            (metric.title, metric.short, metric.shown),
            "{}",
            metric.name
        );
    }
}
