//! A download over quinn's QUIC, and the same over redtail's TCP, behind two queues.
//!
//! `cargo run` in this folder. `random.rs` says why it is repeatable to the byte.

mod plain;
mod quic;
mod random;

use std::error::Error;

use redtail_sim::capture::Capture;
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
tcp = "bbr"
access_delay = "10 ms"
"#;

/// A run of the experiment with these groups for each of its queues, with the label of the queue.
fn runs(groups: &[&str]) -> Result<Vec<(String, RunResult)>, Box<dyn Error>> {
    captured_runs(&EXPERIMENT.replace("# GROUPS\n", &groups.concat()), |_| {
        None
    })
}

/// As [`runs`], of a whole file; `capture` says what to capture of the run of this number.
fn captured_runs<'a>(
    text: &str,
    mut capture: impl FnMut(usize) -> Option<Capture<'a>>,
) -> Result<Vec<(String, RunResult)>, Box<dyn Error>> {
    let options = PlanOptions {
        file: Some("experiment.toml"),
        ..PlanOptions::default()
    };
    let plan = Plan::from_text(text, options)?;
    let mut results = Vec::new();
    for (index, case) in plan.cases.iter().enumerate() {
        let label = case.labels["bottleneck.queue"].as_str().unwrap_or_default();
        let scenario = plan.scenario(index, 0).expect("the case is there");
        let options = RunOptions {
            plugins: quic::plugins(),
            capture: capture(index),
            ..RunOptions::default()
        };
        let result = random::with_seed(scenario.seed, || run(&scenario, options));
        results.push((label.to_owned(), result?));
    }
    Ok(results)
}

/// The table of all runs.
fn table() -> Result<String, Box<dyn Error>> {
    let mut table =
        "queue      groups         of       done in s  delay p95 in ms  marked     lost\n"
            .to_owned();
    for (name, groups) in GROUPS {
        for (queue, result) in runs(groups)? {
            for group in &result.groups {
                let metric = |name: &str| result.metric(&format!("{group}.{name}"));
                let done = metric("endpoint.completion_time").or(metric("completion_time_mean"));
                let number = |value: Option<f64>, digits: usize| {
                    value.map_or("-".to_owned(), |value| format!("{value:.digits$}"))
                };
                let percent = |name| number(metric(name).map(|share| share * 100.0), 2);
                table += &format!(
                    "{queue:<10} {name:<14} {group:<8} {:>9} {:>16} {:>6}% {:>7}%\n",
                    number(done, 2),
                    number(metric("queue_delay_p95").map(|delay| delay * 1e3), 1),
                    percent("mark"),
                    percent("loss"),
                );
            }
        }
    }
    Ok(table)
}

fn main() -> Result<(), Box<dyn Error>> {
    print!("{}", table()?);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_shows_what_is_printed() {
        let page = include_str!("../../../docs/how-to/own-endpoint.md");
        let table = table().expect("it can be run");
        assert!(page.contains(&format!("```text\n{table}```")), "{table}");
    }

    /// What the link sends in each of the runs, as pcapng, and the results.
    fn captures(group: &str, seed: u32) -> (Vec<Vec<u8>>, String) {
        let text = EXPERIMENT.replace("# GROUPS\n", group);
        let text = text.replace("seed = 1\n", &format!("seed = {seed}\n"));
        let mut bytes = vec![Vec::new(); 2];
        let mut files = bytes.iter_mut();
        let results = captured_runs(&text, |_| {
            let file = files.next().expect("there are two queues");
            let points = vec!["bottleneck".parse().expect("a point")];
            Some(Capture {
                files: vec![(points, Box::new(file))],
                ..Capture::default()
            })
        });
        let results = format!("{:?}", results.expect("it can be run"));
        (bytes, results)
    }

    #[test]
    fn a_download_is_repeated_to_the_byte_by_its_seed() {
        for group in [QUINN_CUBIC, QUINN_BBR] {
            let (bytes, results) = captures(group, 1);
            assert!(bytes.iter().all(|file| file.len() > 20_000_000));
            assert!((bytes.clone(), results) == captures(group, 1), "{group}");
            assert!(bytes != captures(group, 2).0, "{group}");
        }
    }

    #[test]
    fn downloads_end_and_hear_of_marks() {
        for group in [QUINN_CUBIC, QUINN_BBR] {
            for (queue, result) in runs(&[group]).expect("it can be run") {
                let metric = |name: &str| result.metric(name).expect(name);
                // 20 MB at 50 Mbit/s take 3.2 s, and the headers of each 1452 B of payload some more.
                let done = metric("quinn.endpoint.completion_time");
                assert!((3.2..5.0).contains(&done), "{queue}: {done}");
                assert_eq!(metric("quinn.delivered_rate"), 20e6 * 8.0 / 10.0);
                let heard = metric("quinn.endpoint.marked");
                assert_eq!(heard > 0.0, metric("quinn.mark") > 0.0, "{queue}");
            }
        }
    }
}
