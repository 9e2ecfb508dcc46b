//! Whole scenarios with the short paths of TCP, and without.

use std::borrow::Cow;
use std::sync::atomic::AtomicBool;

use redtail_network::result::RunResult;
use redtail_spec::{Plan, PlanOptions};
use redtail_traffic::Traces;
use redtail_transport::Preset;

use super::Engine;
use crate::Plugins;

/// What a scenario gives, as text: some values are not numbers, which are not equal to themselves. Without short paths
/// alarms may be set for other times, so the number of events is not compared.
fn result(text: &str, short_paths: bool) -> String {
    let plan = Plan::from_text(text, PlanOptions::default()).expect("it is sound");
    let scenario = plan.scenario(0, 0).expect("there is one");
    let mut engine = Engine::new(Cow::Borrowed(&scenario), &Plugins::new(), &Traces::new());
    engine.use_lookahead();
    if !short_paths {
        engine.ends.flows.forbid_short_paths();
    }
    let ran = engine.run(engine.end, &AtomicBool::new(false), None);
    ran.expect("nobody cancels");
    let result = RunResult {
        events: 0,
        ..engine.finish()
    };
    format!("{result:?}")
}

/// Flows and users with the TCP of `preset` behind `queue`. Their acknowledgements arrive with other events between them, or none.
fn text(preset: &str, queue: &str) -> String {
    format!(
        r#"
name = "short paths"
duration = "10 s"
warmup = "1 s"
host_jitter = "0 s"
series = {{ interval = "100 ms" }}

[bottleneck]
rate = "10 Mbit/s"
delay = "10 ms"
queue = {queue}

[[traffic]]
name = "bulk"
kind = "bulk"
flows = 4
tcp = {preset}
start = "uniform 0..1 s"

[[traffic]]
name = "far"
kind = "bulk"
flows = 2
tcp = {preset}
return_delay = "30 ms"
stop = "8 s"

[[traffic]]
name = "file"
kind = "transfer"
size = "500 kB"
tcp = {preset}

[[traffic]]
name = "web"
kind = "web"
model = "http1"
users = 5
tcp = {preset}
access_delay = ["2 ms", "10 ms"]
"#
    )
}

#[test]
fn short_paths_change_no_result() {
    const QUEUES: [&str; 2] = [
        r#"{ kind = "tail-drop", limit = "40 packets" }"#,
        r#"{ kind = "red", limit = "100 packets", min_th = "5 packets", max_th = "15 packets", ecn = true }"#,
    ];
    for preset in Preset::ALL {
        let preset = serde_json::to_string(preset).expect("it has a name");
        for queue in QUEUES {
            let text = text(&preset, queue);
            let [short, general] = [true, false].map(|short| result(&text, short));
            assert!(short == general, "{preset} differs with {queue}");
        }
    }
}
