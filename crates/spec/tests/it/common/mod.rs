//! The file that tests vary.

use redtail_spec::{Plan, PlanOptions, SpecError};

/// Line numbers in expected messages are those of this text.
pub const FILE: &str = r#"name = "Tail drop against RED"
duration = "200 s"
warmup = "50 s"
replications = 10

[bottleneck]
rate = "10 Mbit/s"
delay = "100 ms"
queue = { kind = "red", limit = "300 packets", min_th = "45 packets", max_th = "195 packets" }

[[traffic]]
name = "ftp"
kind = "bulk"
flows = 64
tcp = "sack"
access_delay = ["20 ms", "40 ms"]
start = "uniform 0..10 s"

[[traffic]]
name = "cbr"
kind = "cbr"
flows = 4
rate = "250 kbit/s"
packet = "573 B"

[factors]
"bottleneck.queue" = [
  { kind = "tail-drop", limit = "300 packets" },
  { kind = "red", limit = "300 packets", min_th = "45 packets", max_th = "195 packets" },
]
"traffic.ftp.flows" = [16, 64, 256]
"#;

/// [`FILE`] without its factors: one case.
pub fn single() -> String {
    FILE.split("[factors]").next().unwrap().to_owned()
}

/// `text` with each of `changes` made once; each must apply.
pub fn changed(text: &str, changes: &[(&str, &str)]) -> String {
    changes.iter().fold(text.to_owned(), |text, (old, new)| {
        assert!(text.contains(old), "{old:?} is not in the file");
        text.replacen(old, new, 1)
    })
}

pub fn plan(text: &str, sets: &[&str]) -> Result<Plan, SpecError> {
    let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
    Plan::from_text(
        text,
        PlanOptions {
            file: Some("e.toml"),
            sets: &sets,
            ..PlanOptions::default()
        },
    )
}

/// What the user reads when `text` is refused.
pub fn refusal(text: &str) -> String {
    plan(text, &[]).unwrap_err().to_string()
}
