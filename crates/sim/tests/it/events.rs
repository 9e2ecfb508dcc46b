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
wire.loss = 0.005
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

/// A log of these kinds, with other keys by default.
fn of_kinds(scenario: &Scenario, change: impl FnOnce(&mut Events)) -> RunResult {
    let mut events = Events {
        kinds: EventKind::ALL.to_vec(),
        ..Events::default()
    };
    change(&mut events);
    run(&Scenario {
        events: Some(events),
        ..scenario.clone()
    })
}

fn red() -> Scenario {
    let (kind, keys) = QUEUES[1];
    scenario(
        &text(&format!("kind = \"{kind}\", {keys}"), "preset = \"linux\""),
        0,
    )
}

#[test]
fn drops_tell_the_law_and_the_wait_and_are_of_packets_that_arrived() {
    let result = logged(&red());
    let log = log(&result);
    let table = &log.rows;
    let arrived = rows(log, EventKind::Arrival);
    let mut reasons = std::collections::BTreeSet::new();
    for drop in rows(log, EventKind::Drop) {
        reasons.insert(reason(log, drop));
        // RED's law is below its highest threshold where it drops early, and twice that at most.
        let average = table.average[drop];
        let bounds = match reason(log, drop) {
            "early" => 5.0..30.0,
            "forced" => 15.0..f64::INFINITY,
            _ => 0.0..f64::INFINITY,
        };
        assert!(bounds.contains(&average), "{} {average}", reason(log, drop));
        assert!(table.wait_s[drop].is_nan(), "RED drops on arrival");
        let same = |&at: &usize| {
            table.time_s[at] == table.time_s[drop]
                && (table.flow[at], table.back[at], table.packet[at])
                    == (table.flow[drop], table.back[drop], table.packet[drop])
                && table.sequence[at] == table.sequence[drop]
        };
        assert!(arrived.iter().any(same), "a packet that did not arrive");
    }
    assert!(reasons.contains("early"));

    let codel = scenario(
        &text(
            "kind = \"codel\", limit = \"100 packets\"",
            "preset = \"linux\"",
        ),
        0,
    );
    let result = logged(&codel);
    let log = crate::events::log(&result);
    let drops = rows(log, EventKind::Drop);
    // CoDel drops what has waited for longer than its target, 5 ms.
    let early = drops.iter().filter(|&&drop| reason(log, drop) == "early");
    let waits: Vec<f64> = early.map(|&drop| log.rows.wait_s[drop]).collect();
    assert!(!waits.is_empty() && waits.iter().all(|&wait| wait > 0.005));
}

#[test]
fn departures_tell_the_wait_of_each_packet() {
    let result = logged(&red());
    let log = log(&result);
    let table = &log.rows;
    let key = |at: usize| {
        (
            table.flow[at],
            table.back[at],
            table.sequence[at],
            table.packet[at],
        )
    };
    let arrivals: Vec<usize> = rows(log, EventKind::Arrival);
    for &gone in &rows(log, EventKind::Departure)[..500] {
        let came = arrivals
            .iter()
            .rev()
            .find(|&&at| key(at) == key(gone) && table.time_s[at] < table.time_s[gone]);
        let came = table.time_s[*came.expect("it arrived")];
        let transmission = table.bytes[gone] as f64 * 8.0 / 4e6;
        let waited = table.time_s[gone] - transmission - came;
        assert!(
            (waited - table.wait_s[gone]).abs() < 1e-9,
            "{waited} {}",
            table.wait_s[gone]
        );
    }
}

#[test]
fn timeouts_tell_the_timeout_that_expired_and_retransmissions_what_is_sent_again() {
    // Nothing but one flow, whose packets 30 % of which are lost: the first timeout is a second after the SYN.
    let text = r#"
duration = "60 s"
[bottleneck]
rate = "4 Mbit/s"
delay = "20 ms"
queue = { kind = "tail-drop", limit = "100 packets" }
wire.loss = 0.3
[[traffic]]
name = "tcp"
kind = "bulk"
tcp = { preset = "linux" }
"#;
    let result = logged(&scenario(text, 3));
    let log = log(&result);
    let table = &log.rows;
    let timeouts = rows(log, EventKind::Timeout);
    assert!(timeouts.len() > 5);
    // Of timeouts in a row each is twice the one before, and comes after that time.
    let mut in_a_row = 0;
    for pair in timeouts.windows(2) {
        let [before, after] = [pair[0], pair[1]];
        if table.sequence[before] == table.sequence[after] && reason(log, after) == "data" {
            let rto = table.value[after];
            let between = table.time_s[after] - table.time_s[before];
            assert_eq!(rto, 2.0 * table.value[before]);
            // The timer wheel of Linux delays by up to an eighth.
            assert!((between - rto).abs() < 0.15 * rto, "{between} {rto}");
            in_a_row += 1;
        }
    }
    assert!(in_a_row > 0);
    let mut lost: Vec<u64> = Vec::new();
    for at in 0..table.event.len() {
        match EventKind::ALL[table.event[at] as usize] {
            EventKind::WireLoss if table.back[at] == 0 => lost.push(table.sequence[at]),
            EventKind::Retransmission => assert_ne!(table.sequence[at], u64::MAX),
            _ => {}
        }
    }
    // What was lost is sent again, unless the run ends before.
    let resent: Vec<u64> = (rows(log, EventKind::Retransmission).iter())
        .map(|&row| table.sequence[row])
        .collect();
    let data: Vec<u64> = lost.iter().copied().filter(|&it| it != u64::MAX).collect();
    let again = data
        .iter()
        .filter(|sequence| resent.contains(sequence))
        .count();
    assert!(again + 5 >= data.len(), "{again} of {}", data.len());
}

#[test]
fn recoveries_end_and_states_follow_one_another() {
    for preset in ["linux", "newreno", "bbr"] {
        let text = text(
            "kind = \"tail-drop\", limit = \"20 packets\"",
            &format!("preset = \"{preset}\""),
        );
        let result = logged(&scenario(&text, 0));
        let log = log(&result);
        let table = &log.rows;
        for flow in 0..4 {
            let mut in_recovery = false;
            let mut state = "";
            for at in (0..table.event.len()).filter(|&at| table.flow[at] == flow) {
                match EventKind::ALL[table.event[at] as usize] {
                    EventKind::Recovery => {
                        assert!(!in_recovery, "{preset}: recovery in recovery");
                        in_recovery = true;
                    }
                    EventKind::RecoveryEnd => {
                        assert!(in_recovery, "{preset}: an end without a begin");
                        assert!(table.value[at] > 0.0);
                        in_recovery = false;
                    }
                    EventKind::State => {
                        assert_ne!(state, reason(log, at), "{preset}");
                        state = reason(log, at);
                    }
                    _ => {}
                }
            }
            assert_eq!(state.is_empty(), preset == "newreno");
        }
    }
}

#[test]
fn slow_start_ends_once_for_a_reason() {
    let text = text(
        "kind = \"tail-drop\", limit = \"300 packets\"",
        "preset = \"newreno\"",
    )
    .replace("wire.loss = 0.005", "");
    let result = logged(&scenario(&text, 0));
    let log = log(&result);
    let ends = rows(log, EventKind::SlowStartEnd);
    for flow in 0..4 {
        let of_flow = ends.iter().filter(|&&row| log.rows.flow[row] == flow);
        let first = *of_flow.min().expect("slow start fills the queue");
        assert!(["loss", "timeout"].contains(&reason(log, first)));
    }
}

#[test]
fn a_log_holds_what_is_asked_for_and_says_what_it_left_out() {
    let scenario = red();
    let all = logged(&scenario);
    let some = of_kinds(&scenario, |it| {
        it.kinds = vec![EventKind::Drop];
        it.groups = Some(vec!["udp".to_owned()]);
        it.from = redtail_core::Span::from_s(5);
        it.to = Some(redtail_core::Span::from_s(10));
    });
    let (all, some) = (log(&all), log(&some));
    let wanted = rows(all, EventKind::Drop)
        .into_iter()
        .filter(|&row| all.rows.group[row] == 1 && (5.0..10.0).contains(&all.rows.time_s[row]));
    let times: Vec<f64> = wanted.map(|row| all.rows.time_s[row]).collect();
    assert!(!times.is_empty());
    assert_eq!(some.rows.time_s, times);

    let few = of_kinds(&scenario, |it| it.limit = 100);
    let few = log(&few);
    assert_eq!(few.rows.event.len(), 101);
    assert_eq!(few.rows.event[100], EventKind::Full as u32);
    assert_eq!(few.rows.value[100] as usize + 100, all.rows.event.len());
    assert_eq!(few.rows.time_s[..100], all.rows.time_s[..100]);

    let flow = of_kinds(&scenario, |it| it.flows = Some(vec![2]));
    assert!(log(&flow).rows.flow.iter().all(|&flow| flow == 2));
}

#[test]
fn users_tell_their_pages_and_responses_and_connections() {
    let text = r#"
duration = "60 s"
[bottleneck]
rate = "4 Mbit/s"
delay = "20 ms"
queue = { kind = "fq-codel", limit = "100 packets" }
wire.loss = 0.01
[bottleneck.return]
rate = "1 Mbit/s"
delay = "20 ms"
queue = { kind = "cake", limit = "100 kB", ack_filter = "on" }
[[traffic]]
name = "web"
kind = "web"
model = "http1"
users = 10
"#;
    let result = logged(&scenario(text, 0));
    assert!(count(&result, EventKind::Page, None) > 10);
    assert!(count(&result, EventKind::Response, None) > count(&result, EventKind::Page, None));
    for (kind, name) in [
        (EventKind::Timeout, "timeouts"),
        (EventKind::Retransmission, "retransmissions"),
        (EventKind::Recovery, "fast_recoveries"),
    ] {
        let counted = metric(&result, &format!("web.{name}"));
        assert_eq!(count(&result, kind, Some(0)) as f64, counted, "{name}");
    }
    let (opened, ended) = (
        count(&result, EventKind::Start, None),
        count(&result, EventKind::End, None),
    );
    assert!(opened >= ended && ended > 0);
    let log = log(&result);
    let page = rows(log, EventKind::Page)[0];
    assert!(log.rows.value[page] > 0.04, "a round trip takes longer");
    let without = run(&scenario(text, 0));
    let events = without.events;
    let same = RunResult {
        events,
        event_log: None,
        ..result.clone()
    };
    assert!(format!("{without:?}") == format!("{same:?}"));
}

#[test]
fn videos_tell_each_stall_when_it_ends() {
    let text = r#"
duration = "120 s"
[bottleneck]
rate = "800 kbit/s"
delay = "20 ms"
queue = { kind = "tail-drop", limit = "50 packets" }
[[traffic]]
name = "video"
kind = "video"
users = 2
bitrates = ["1 Mbit/s"]
"#;
    let scenario = scenario(text, 0);
    let result = logged(&scenario);
    let log = log(&result);
    let table = &log.rows;
    let responses: Vec<f64> = (rows(log, EventKind::Response).iter())
        .map(|&row| table.time_s[row])
        .collect();
    let mut stalled = 0.0;
    let mut last = [0.0; 2];
    for stall in rows(log, EventKind::Stall) {
        if reason(log, stall) != "video" {
            continue;
        }
        let (at, took) = (table.time_s[stall], table.value[stall]);
        assert!(
            responses.contains(&at),
            "playback goes on when a segment arrives"
        );
        let before = &mut last[table.flow[stall] as usize];
        assert!(took > 0.0 && at - took >= *before, "stalls overlap");
        *before = at;
        stalled += took;
    }
    // At most all of the watching time, of which the ratio is a share.
    let ratio = metric(&result, "video.rebuffering_ratio");
    assert!(
        stalled > 0.0 && stalled <= ratio * 240.0,
        "{stalled} {ratio}"
    );
}
