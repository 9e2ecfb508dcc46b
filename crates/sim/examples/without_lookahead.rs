//! Compares runs with and without lookahead, to find out whether a result that looks wrong is a fault of it.
//!
//! `cargo run --release -p redtail-sim --example without_lookahead -- EXPERIMENT.toml...` runs the first replication of each
//! case of each file both ways, says whether the results are equal, and prints the metrics that differ.

use std::process::ExitCode;

use redtail_sim::{RunOptions, RunResult};
use redtail_spec::{Plan, PlanOptions, Scenario};

fn run(scenario: &Scenario, without_lookahead: bool) -> RunResult {
    let options = RunOptions {
        without_lookahead,
        ..RunOptions::default()
    };
    redtail_sim::run(scenario, options).unwrap_or_else(|error| panic!("{error}"))
}

fn main() -> ExitCode {
    let mut differ = 0;
    for file in std::env::args().skip(1) {
        let text = std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{file}: {error}"));
        let options = PlanOptions {
            file: Some(&file),
            ..PlanOptions::default()
        };
        let plan = Plan::from_text(&text, options).unwrap_or_else(|error| panic!("{error}"));
        for case in 0..plan.cases.len() {
            let scenario = plan.scenario(case, 0).expect("a planned case has one");
            let [mut with, mut without] = [false, true].map(|without| run(&scenario, without));
            let events = [&mut with, &mut without].map(|it| std::mem::take(&mut it.events));
            // As texts: undefined values are not equal to themselves.
            let equal = format!("{with:?}") == format!("{without:?}");
            differ += u32::from(!equal);
            println!(
                "{file}, case {case}: {}; {} events with lookahead, {} without",
                if equal { "equal" } else { "DIFFERENT" },
                events[0],
                events[1],
            );
            for ((name, with), (_, without)) in with.metrics.iter().zip(&without.metrics) {
                if with.to_bits() != without.to_bits() {
                    println!("  {name}: {with} with lookahead, {without} without");
                }
            }
        }
    }
    ExitCode::from(u8::from(differ > 0))
}
