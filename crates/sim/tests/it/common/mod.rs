//! Running a scenario from the text of an experiment file.

pub mod endpoints;

use std::sync::Arc;

use redtail_core::{Span, Time};
use redtail_sim::{RunOptions, RunResult, Traces};
use redtail_spec::{Plan, PlanOptions, Scenario, SpecError, TraceSite};
use redtail_traffic::{TraceParams, TraceTable, TracedConnection, TracedExchange};

/// `text` as a whole file. Tests pin the engine to exact times, so what the text leaves out is what
/// brings no chance into a run: hosts send at once, and bulk flows start with the run.
fn file(text: &str) -> String {
    let mut parts = text.split("[[traffic]]");
    let mut file = "name = \"test\"\n".to_owned();
    let base = parts.next().expect("a text has a first part");
    let general = base.split("\n[").next().expect("a text has a first part");
    if !general.contains("host_jitter") {
        file += "host_jitter = \"0 s\"\n";
    }
    file += base;
    for group in parts {
        file += "[[traffic]]\n";
        let own = group.split("\n[").next().expect("a text has a first part");
        if own.contains("kind = \"bulk\"") && !own.contains("\nstart = ") {
            file += "start = \"0 s\"\n";
        }
        file += group;
    }
    file
}

/// The scenario of replication `replication` of the first case in `text`.
pub fn scenario(text: &str, replication: u32) -> Scenario {
    find_scenario(text, replication).unwrap_or_else(|error| panic!("{error}\nin:\n{text}"))
}

/// As [`scenario`], for a text that may be refused.
pub fn find_scenario(text: &str, replication: u32) -> Result<Scenario, SpecError> {
    let plan = Plan::from_text(&file(text), PlanOptions::default())?;
    let scenario = plan.scenario(0, replication);
    Ok(scenario.expect("a plan has a case"))
}

/// The scenario of the first replication of `text`, whose groups of kind `trace` get `table`; `check`
/// is called with each of these groups.
pub fn scenario_with(
    text: &str,
    table: &Arc<TraceTable>,
    check: impl Fn(&TraceParams, &TraceSite),
) -> Scenario {
    let mut find = |group: &TraceParams, site: &TraceSite| {
        check(group, site);
        Ok(Arc::clone(table))
    };
    let text = file(text);
    let plan = Plan::from_text(
        &text,
        PlanOptions {
            tables: Some(&mut find),
            ..PlanOptions::default()
        },
    );
    let plan = plan.unwrap_or_else(|error| panic!("{error}\nin:\n{text}"));
    plan.scenario(0, 0).expect("a plan has a case")
}

/// Runs `scenario`, whose groups of kind `trace` name `table`.
pub fn run_with(scenario: &Scenario, table: Arc<TraceTable>) -> RunResult {
    let options = RunOptions {
        traces: Traces::new().with(table),
        plugins: endpoints::endpoints(&endpoints::Diary::default()),
        ..RunOptions::default()
    };
    redtail_sim::run(scenario, options).expect("it can be run")
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

/// Packets of 20 replications wait as long on average as is expected, in s.
///
/// Student's t with 19 degrees of freedom is beyond 7.1 with probability 1e-6. The test is sharp: the bound is less than
/// `share` of the wait.
pub fn assert_mean_wait(text: &str, expected: f64, share: f64) {
    let n = 20;
    let waits: Vec<f64> = (0..n)
        .map(|replication| metric(&run_replication(text, replication), "queue_delay_mean"))
        .collect();
    let n = f64::from(n);
    let mean = waits.iter().sum::<f64>() / n;
    let variance = waits.iter().map(|w| (w - mean).powi(2)).sum::<f64>() / (n - 1.0);
    let error = (variance / n).sqrt();
    assert!(7.1 * error < share * expected, "standard error {error}");
    assert!(
        (mean - expected).abs() < 7.1 * error,
        "{mean}, not {expected}"
    );
}

/// Connections of three paths, some towards the other side, whose responses overlap.
pub fn table() -> Arc<TraceTable> {
    let connection = |number: u32| TracedConnection {
        start: Time::ZERO + Span::from_ms(u64::from(number) * 37),
        rtt: Some(Span::from_ms(60 + 20 * u64::from(number % 3))),
        reverse: number.is_multiple_of(5),
        first: number,
    };
    let exchange = |number: u32| TracedExchange {
        request: 200,
        response: u64::from(number * 977 % 40_000),
        service: Span::from_ms(u64::from(number % 7)),
        think: Span::ZERO,
    };
    let connections = (0..120).map(connection).collect();
    Arc::new(TraceTable::new(
        "t",
        connections,
        (0..120).map(exchange).collect(),
    ))
}
