//! A download over quinn's QUIC, and the same over redtail's TCP, behind two queues.
//!
//! `cargo run` in this folder. `random.rs` says why it is repeatable to the byte.

mod plain;
mod quic;
mod random;

use std::error::Error;

use redtail_sim::{RunOptions, RunResult, run};
use redtail_spec::{Plan, PlanOptions};

const EXPERIMENT: &str = include_str!("../experiment.toml");

/// The groups that are compared: a download over QUIC or TCP, alone or both at the same time.
const GROUPS: [(&str, &[&str]); 6] = [
    ("quinn cubic", &[QUINN_CUBIC]),
    ("redtail cubic", &[REDTAIL_CUBIC]),
    ("quinn bbr", &[QUINN_BBR]),
    ("redtail bbr", &[REDTAIL_BBR]),
    ("both cubic", &[QUINN_CUBIC, REDTAIL_CUBIC]),
    ("both bbr", &[QUINN_BBR, REDTAIL_BBR]),
];

const QUINN_CUBIC: &str = r#"
[[traffic]]
name = "quinn"
kind = "endpoint"
class = "quic"
params = { control = "cubic", size = 20_000_000 }
access_delay = "10 ms"
"#;

const QUINN_BBR: &str = r#"
[[traffic]]
name = "quinn"
kind = "endpoint"
class = "quic"
params = { control = "bbr", size = 20_000_000 }
access_delay = "10 ms"
"#;

const REDTAIL_CUBIC: &str = r#"
[[traffic]]
name = "redtail"
kind = "transfer"
size = "20 MB"
tcp = { preset = "linux", ecn = true }
access_delay = "10 ms"
"#;

const REDTAIL_BBR: &str = r#"
[[traffic]]
name = "redtail"
kind = "transfer"
size = "20 MB"
tcp = { preset = "bbr", ecn = true }
access_delay = "10 ms"
"#;

/// A run of the experiment with these groups for each of its queues, with the label of the queue.
fn runs(groups: &[&str]) -> Result<Vec<(String, RunResult)>, Box<dyn Error>> {
    let text = EXPERIMENT.replace("# GROUPS\n", &groups.concat());
    let options = PlanOptions {
        file: Some("experiment.toml"),
        ..PlanOptions::default()
    };
    let plan = Plan::from_text(&text, options)?;
    let mut results = Vec::new();
    for (index, case) in plan.cases.iter().enumerate() {
        let label = case.labels["bottleneck.queue"].as_str().unwrap_or_default();
        let scenario = plan.scenario(index, 0).expect("the case is there");
        let options = || RunOptions {
            plugins: quic::plugins(),
            ..RunOptions::default()
        };
        let result = random::with_seed(scenario.seed, || run(&scenario, options()));
        results.push((label.to_owned(), result?));
    }
    Ok(results)
}

fn main() -> Result<(), Box<dyn Error>> {
    println!("queue      groups         of       done in s  delay p95 in ms  marked  lost");
    for (name, groups) in GROUPS {
        for (queue, result) in runs(groups)? {
            for group in &result.groups {
                let metric = |name: &str| result.metric(&format!("{group}.{name}"));
                let done = metric("endpoint.completion_time").or(metric("completion_time_mean"));
                let number = |value: Option<f64>, digits: usize| {
                    value.map_or("-".to_owned(), |value| format!("{value:.digits$}"))
                };
                let percent = |name| number(metric(name).map(|share| share * 100.0), 2);
                println!(
                    "{queue:<10} {name:<14} {group:<8} {:>9} {:>16} {:>6}% {:>4}%",
                    number(done, 2),
                    number(metric("queue_delay_p95").map(|delay| delay * 1e3), 1),
                    percent("mark"),
                    percent("loss"),
                );
            }
        }
    }
    Ok(())
}
