//! A small group of every kind of traffic in a run.
//!
//! The kinds and their groups come from the list of the kinds, so a new kind is in this test as soon as
//! it is in the list. The engine checks at the end of each run that packets are conserved.

use std::sync::Arc;

use crate::common::{metric, run_with, scenario_with};
use crate::wire::DISTURBED;
use redtail_core::{Span, Time};
use redtail_sim::RunResult;
use redtail_spec::Scenario;
use redtail_traffic::{TraceTable, TracedConnection, TracedExchange, TrafficParams};

/// The table that a group gets that names one: two connections, whose responses go either way.
fn table() -> Arc<TraceTable> {
    let connection = |number: u32, reverse| TracedConnection {
        start: Time::ZERO + Span::from_s(u64::from(number)),
        rtt: None,
        reverse,
        first: number,
    };
    let exchange = TracedExchange {
        request: 500,
        response: 20_000,
        service: Span::ZERO,
        think: Span::ZERO,
    };
    let connections = vec![connection(0, false), connection(1, true)];
    Arc::new(TraceTable::new("t", connections, vec![exchange; 2]))
}

const LINKS: &str = r#"
duration = "10 s"
[bottleneck]
rate = "5 Mbit/s"
delay = "10 ms"
queue = { kind = "tail-drop", limit = "50 packets" }
[bottleneck.return]
rate = "5 Mbit/s"
delay = "10 ms"
queue = { kind = "tail-drop", limit = "50 packets" }
"#;

fn run(kind: &str, keys: &str) -> (Scenario, RunResult) {
    run_over(LINKS, kind, keys)
}

fn run_over(links: &str, kind: &str, keys: &str) -> (Scenario, RunResult) {
    let text = format!("{links}[[traffic]]\nname = \"g\"\nkind = \"{kind}\"\n{keys}\n");
    let table = table();
    let scenario = scenario_with(&text, &table, |_, _| {});
    let result = run_with(&scenario, table);
    (scenario, result)
}

fn is_simulated(kind: &str) -> bool {
    !TrafficParams::OF_KERNELS.contains(&kind)
}

#[test]
fn a_small_group_of_every_kind_sends_and_ends() {
    let examples = TrafficParams::examples();
    let kinds: Vec<&str> = examples.iter().map(|(kind, _)| *kind).collect();
    assert_eq!(kinds, TrafficParams::KINDS);
    for (kind, keys) in examples.into_iter().filter(|(kind, _)| is_simulated(kind)) {
        let (scenario, result) = run(kind, keys);
        assert_eq!(scenario.traffic[0].kind(), kind);
        let used = metric(&result, "utilization");
        assert!(used > 0.0, "{kind} sends nothing");
        // The flows end: they have not used the link for the whole run.
        assert!(used < 0.9, "{kind}: {used}");
    }
}

#[test]
fn every_kind_crosses_a_wire_that_loses_duplicates_and_reorders() {
    let examples = TrafficParams::examples().into_iter();
    for (kind, keys) in examples.filter(|(kind, _)| is_simulated(kind)) {
        let (_, result) = run_over(DISTURBED, kind, keys);
        assert!(metric(&result, "wire_loss") < 0.1, "{kind}");
        for (name, value) in &result.metrics {
            let is_share = name.ends_with("loss") || name.ends_with("utilization");
            assert!(
                !is_share || (0.0..=1.0).contains(value),
                "{kind}: {name} = {value}"
            );
        }
    }
}

#[test]
fn what_a_group_is_expected_to_send_has_the_size_that_it_sends() {
    // Kinds whose load is known before the run; users are known by their mean only.
    let examples = TrafficParams::examples();
    for (kind, keys) in examples.into_iter().filter(|(kind, _)| is_simulated(kind)) {
        let (scenario, result) = run(kind, keys);
        let group = &scenario.traffic[0];
        let offered = group.offered(2.0, true);
        let is_unknown = group.always_sends() || kind == "endpoint";
        assert_eq!(offered.is_none(), is_unknown, "{kind}");
        if let Some((bytes, packets)) = offered.filter(|_| !group.has_users()) {
            let sent = metric(&result, "utilization") * 5e6 * 10.0 / 8.0;
            assert!(
                (0.5 * bytes..1.5 * bytes).contains(&sent),
                "{kind}: {sent} of {bytes}"
            );
            let size = bytes / packets;
            assert!(
                size <= group.packet_size().as_u64() as f64,
                "{kind}: {size}"
            );
        }
    }
}
