//! Measures what a bottleneck packet costs.
//!
//! `cargo run --profile bench -p redtail-bench -- SCENARIO.toml...` runs the first
//! replication of each case of each file on this thread and prints one
//! line of JSON per case: bottleneck packets, events, seconds and peak memory.

// This program exists to read the clock.
#![allow(clippy::disallowed_methods)]

use std::time::Instant;

use redtail_core::LargePages;
use redtail_sim::RunOptions;
use redtail_spec::{Plan, PlanOptions};

#[global_allocator]
static ALLOCATOR: LargePages = LargePages;

fn main() {
    let files = std::env::args()
        .skip(1)
        .filter(|arg| !arg.starts_with("--"));
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{file}: {error}"));
        let plan = Plan::from_text(
            &text,
            PlanOptions {
                file: Some(&file),
                ..PlanOptions::default()
            },
        )
        .unwrap_or_else(|error| panic!("{error}"));
        for case in 0..plan.cases.len() {
            let scenario = plan
                .scenario(case, 0)
                .expect("a planned case has a scenario");
            let start = Instant::now();
            let result = redtail_sim::run(&scenario, RunOptions::default()).expect("it can be run");
            let seconds = start.elapsed().as_secs_f64();
            let packets = result.bottleneck_packets;
            println!(
                "{{\"file\": {file:?}, \"case\": {case}, \"packets\": {packets}, \"events\": {}, \
                 \"seconds\": {seconds:.6}, \"peak_kib\": {}}}",
                result.events,
                peak_kib(),
            );
            if std::env::var_os("REDTAIL_BENCH_METRICS").is_some() {
                for (name, value) in &result.metrics {
                    println!("  {name} {value}");
                }
            }
        }
    }
}

/// The most memory this process has had resident, in KiB; 0 where the system does not say.
fn peak_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let number = peak.and_then(|peak| peak.split_whitespace().next()?.parse().ok());
    number.unwrap_or(0)
}
