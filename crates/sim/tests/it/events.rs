//! The event log: that recording changes nothing, that its rows agree with what is counted, and what they say.

use redtail_network::result::{EventLog, RunResult};
use redtail_sim::RunOptions;
use redtail_spec::{EventKind, Events, Scenario};

use crate::common::{metric, scenario};

fn run(scenario: &Scenario) -> RunResult {
    redtail_sim::run(scenario, RunOptions::default()).expect("it can be run")
}

/// A run with a log of all kinds.
fn logged(scenario: &Scenario) -> RunResult {
    let all = Events {
        kinds: EventKind::ALL.to_vec(),
        ..Events::default()
    };
    run(&Scenario {
        events: Some(all),
        ..scenario.clone()
    })
}

/// The rows of a kind, as places in the table.
fn rows(log: &EventLog, kind: EventKind) -> Vec<usize> {
    let all = 0..log.rows.event.len();
    all.filter(|&at| log.rows.event[at] == kind as u32)
        .collect()
}

fn reason(log: &EventLog, row: usize) -> &str {
    match log.rows.reason[row] {
        u32::MAX => "",
        reason => &log.reasons[reason as usize],
    }
}

fn log(result: &RunResult) -> &EventLog {
    result.event_log.as_ref().expect("it was asked for")
}

/// How many rows of a kind are of this group; all if it is not given.
fn count(result: &RunResult, kind: EventKind, group: Option<u32>) -> u64 {
    let log = log(result);
    let of = |row: &usize| group.is_none_or(|group| log.rows.group[*row] == group);
    rows(log, kind).iter().filter(|row| of(row)).count() as u64
}

/// Four flows that often lose packets, and a source of UDP, behind this queue.
fn text(queue: &str, tcp: &str) -> String {
    format!(
        r#"
duration = "20 s"
[bottleneck]
rate = "4 Mbit/s"
delay = "20 ms"
queue = {{ {queue} }}
random_loss = 0.005
[[traffic]]
name = "tcp"
kind = "bulk"
flows = 4
tcp = {{ {tcp} }}
[[traffic]]
name = "udp"
kind = "cbr"
rate = "500 kbit/s"
packet = "500 B"
"#
    )
}

const QUEUES: [(&str, &str); 10] = [
    ("tail-drop", "limit = \"20 packets\""),
    (
        "red",
        "limit = \"60 packets\", min_th = \"5 packets\", max_th = \"15 packets\"",
    ),
    (
        "red",
        "limit = \"60 packets\", min_th = \"5 packets\", max_th = \"15 packets\", ecn = true",
    ),
    ("codel", "limit = \"100 packets\""),
    ("fq-codel", "limit = \"100 packets\""),
    ("pie", "limit = \"100 packets\""),
    ("cake", "limit = \"100 kB\""),
    ("dualpi2", "limit = \"100 packets\""),
    ("sfq", "limit = \"40 packets\""),
    ("fq-pie", "limit = \"100 packets\""),
];

/// Drops, marks and losses of the log are those that the link and its metrics count, and so is what each flow did.
fn check_counts(result: &RunResult, what: &str) {
    let of = |name: &str| metric(result, name);
    let groups = [("tcp", 0), ("udp", 1)];
    for (name, group) in groups {
        let arrivals = count(result, EventKind::Arrival, Some(group)) as f64;
        for (kind, share) in [(EventKind::Drop, "loss"), (EventKind::Mark, "mark")] {
            let counted = of(&format!("{name}.{share}")) * arrivals;
            let logged = count(result, kind, Some(group)) as f64;
            assert!(
                (counted - logged).abs() < 1e-6,
                "{what}: {name} {share}: {counted}, {logged}"
            );
        }
    }
    for (kind, name) in [
        (EventKind::Timeout, "timeouts"),
        (EventKind::Retransmission, "retransmissions"),
        (EventKind::Recovery, "fast_recoveries"),
        (EventKind::MarkAnswered, "ecn_reductions"),
    ] {
        let counted = of(&format!("tcp.{name}"));
        assert_eq!(
            count(result, kind, Some(0)) as f64,
            counted,
            "{what}: {name}"
        );
    }
    let spurious = of("tcp.spurious_timeouts") + of("tcp.spurious_fast_retransmits");
    assert_eq!(
        count(result, EventKind::Spurious, None) as f64,
        spurious,
        "{what}"
    );
}

#[test]
fn a_log_agrees_with_what_is_counted_and_changes_nothing() {
    let senders = [
        "preset = \"linux\"",
        "preset = \"newreno\", ecn = true",
        "preset = \"bbr\"",
        "preset = \"dctcp\"",
        "preset = \"sack\", frto = true, dsack = true",
        "preset = \"prague\"",
        "preset = \"tahoe\"",
    ];
    for (i, (kind, keys)) in QUEUES.iter().enumerate() {
        let tcp = senders[i % senders.len()];
        let what = format!("{kind} {tcp}");
        let scenario = scenario(&text(&format!("kind = \"{kind}\", {keys}"), tcp), 0);
        let (without, with) = (run(&scenario), logged(&scenario));
        check_counts(&with, &what);
        let log = log(&with);
        assert!(!rows(log, EventKind::Drop).is_empty() || !rows(log, EventKind::Mark).is_empty());
        assert!(log.rows.time_s.is_sorted(), "{what}");
        let (events, event_log) = (without.events, None);
        let same = RunResult {
            events,
            event_log,
            ..with.clone()
        };
        assert!(
            format!("{without:?}") == format!("{same:?}"),
            "{what}: results differ"
        );
    }
}
