//! Running a scenario from the text of an experiment file.

use redtail_sim::{RunOptions, RunResult};
use redtail_spec::{Plan, PlanOptions, Scenario};

/// The scenario of replication `replication` of the first case in `text`.
pub fn scenario(text: &str, replication: u32) -> Scenario {
    let text = format!("name = \"test\"\n{text}");
    let plan = Plan::from_text(&text, PlanOptions::default())
        .unwrap_or_else(|error| panic!("{error}\nin:\n{text}"));
    let scenario = plan.scenario(0, replication);
    scenario.expect("a plan has a case")
}

/// Runs replication `replication` of `text`.
pub fn run_replication(text: &str, replication: u32) -> RunResult {
    redtail_sim::run(&scenario(text, replication), RunOptions::default()).expect("it can be run")
}

/// Runs the first replication of `text`.
pub fn run(text: &str) -> RunResult {
    run_replication(text, 0)
}

/// The metric called `name`, which must be there.
#[track_caller]
pub fn metric(result: &RunResult, name: &str) -> f64 {
    result.metric(name).unwrap_or_else(|| {
        let names: Vec<&str> = result.metrics.iter().map(|(name, _)| &**name).collect();
        panic!("no metric {name:?} among {names:?}")
    })
}

/// Metrics whose names begin with `prefix`.
pub fn metrics_of<'a>(result: &'a RunResult, prefix: &str) -> Vec<&'a (String, f64)> {
    let all = result.metrics.iter();
    let found: Vec<_> = all.filter(|(name, _)| name.starts_with(prefix)).collect();
    assert!(!found.is_empty(), "no metrics of {prefix}");
    found
}
