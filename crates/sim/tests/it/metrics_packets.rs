//! What `record` asks a run to measure of each packet, against closed forms and against the event log of the same run.

use std::collections::{BTreeMap, BTreeSet};

use crate::common::{metric, run, scenario};
use redtail_sim::{RunOptions, RunResult};
use redtail_spec::EventKind;

const ALL: &str = "record = [\"one_way_delay\", \"round_trip\", \"loss_by_class\"]\n";

/// The value and the expected one differ by rounding alone.
#[track_caller]
fn close(result: &RunResult, name: &str, expected: f64) {
    let value = metric(result, name);
    assert!(
        (value - expected).abs() < 1e-9,
        "{name} is {value}, not {expected}"
    );
}

#[test]
fn a_packet_on_an_idle_path_takes_its_transmissions_and_its_delays() {
    // 1250 B take 1 ms at 10 Mbit/s and 0.1 ms on each host's link at 100 Mbit/s.
    let result = run(&format!(
        r#"{ALL}
duration = "10 s"
warmup = "1 s"
[bottleneck]
rate = "10 Mbit/s"
delay = "20 ms"
queue = {{ kind = "tail-drop", limit = "100 packets" }}
[[traffic]]
name = "one"
kind = "cbr"
rate = "1 Mbit/s"
packet = "1250 B"
dither = 0.0
access_rate = "100 Mbit/s"
exit_rate = "100 Mbit/s"
access_delay = "3 ms"
exit_delay = "4 ms"
"#
    ));
    let delay = 28.2e-3;
    for name in ["mean", "min", "max"] {
        close(&result, &format!("one.one_way_delay_{name}"), delay);
    }
    for name in [
        "pdv_mean",
        "pdv_p50",
        "pdv_p95",
        "pdv_p99",
        "ipdv_mean",
        "ipdv_p95",
    ] {
        assert_eq!(metric(&result, &format!("one.{name}")), 0.0, "{name}");
    }
}

#[test]
fn the_second_packet_of_two_waits_for_the_transmission_of_the_first() {
    // Two sources send at the same times. The second packet waits 1 ms.
    let result = run(&format!(
        r#"{ALL}
duration = "10 s"
warmup = "1 s"
[bottleneck]
rate = "10 Mbit/s"
delay = "20 ms"
queue = {{ kind = "tail-drop", limit = "100 packets" }}
[[traffic]]
name = "two"
kind = "cbr"
flows = 2
rate = "1 Mbit/s"
packet = "1250 B"
dither = 0.0
start = "0 s"
access_rate = "1000 Gbit/s"
access_delay = ["1 ms", "5 ms"]
"#
    ));
    // The packets of the two hosts arrive 4 ms apart: nobody waits, and the propagation delay is no variation.
    for name in ["pdv_p99", "ipdv_p95"] {
        assert_eq!(metric(&result, &format!("two.{name}")), 0.0, "{name}");
    }
    close(
        &result,
        "two.one_way_delay_min",
        metric(&result, "two.one_way_delay_max") - 4e-3,
    );
}

/// One flow whose window of so many segments never changes, and whose segments are all acknowledged.
fn windowed(segments: u32) -> String {
    let window = segments * 1460;
    format!(
        r#"{ALL}
duration = "10 s"
warmup = "2 s"
phases = ["6 s"]
[bottleneck]
rate = "10 Mbit/s"
delay = "20 ms"
queue = {{ kind = "tail-drop", limit = "1000 packets" }}
[[traffic]]
name = "one"
kind = "bulk"
access_rate = "1000 Gbit/s"
exit_rate = "1000 Gbit/s"
return_delay = "30 ms"
tcp = {{ preset = "sack", receive_window = "{window} B", delayed_ack = false, header = "40 B", mss = "1460 B" }}
"#
    )
}

#[test]
fn a_round_trip_is_that_of_the_idle_path_or_that_of_the_window() {
    // A segment takes 1.2 ms at the bottleneck and 12 ns at each host's link. 42 fit the idle path of 51.2 ms.
    let base = 51.2e-3 + 24e-9;
    for (segments, expected) in [(40, base), (60, 60.0 * 1.2e-3)] {
        let result = run(&windowed(segments));
        for phase in ["", "phase1.", "phase2."] {
            for name in ["mean", "min", "max", "p50", "p99"] {
                close(&result, &format!("{phase}one.round_trip_{name}"), expected);
            }
            // The way back takes 30 ms.
            let name = format!("{phase}one.one_way_delay_max");
            close(&result, &name, expected - 30e-3);
            assert_eq!(metric(&result, &format!("{phase}one.pdv_p99")), 0.0);
        }
        let name = "one.round_trip".to_owned();
        let place = result.histograms.names.iter().position(|it| *it == name);
        let place = place.expect("there is a distribution") as u32;
        let rows = result.histograms.rows.distribution.iter();
        assert_eq!(
            rows.filter(|&&it| it == place).count(),
            1,
            "one bin has all"
        );
    }
}

/// Groups of many kinds behind queues that lose packets in both directions, and wires that do.
const MIXED: &str = r#"
duration = "20 s"
warmup = "3 s"
phases = ["9 s"]
host_jitter = "200 us"
series = { interval = "500 ms", windows = true }
[bottleneck]
rate = "5 Mbit/s"
delay = "10 ms"
wire.loss = 0.01
queue = { kind = "tail-drop", limit = "12 packets" }
[bottleneck.return]
rate = "300 kbit/s"
delay = "10 ms"
queue = { kind = "codel", limit = "8 packets" }
[[traffic]]
name = "long"
kind = "bulk"
flows = 3
[[traffic]]
name = "short"
kind = "transfer"
flows = 200
size = "20 kB"
start = "uniform 0..20 s"
[[traffic]]
name = "up"
kind = "bulk"
direction = "reverse"
[[traffic]]
name = "pages"
kind = "web"
model = "http1"
users = 4
[[traffic]]
name = "voice"
kind = "voip"
flows = 3
[[traffic]]
name = "video"
kind = "call"
flows = 1
[[traffic]]
name = "steady"
kind = "cbr"
rate = "200 kbit/s"
packet = "500 B"
"#;

/// Values of the result as text, since some are not numbers, without the number of events.
fn shown(result: &RunResult) -> String {
    let result = RunResult {
        events: 0,
        ..result.clone()
    };
    format!("{result:?}")
}

#[test]
fn to_measure_packets_changes_nothing_else() {
    // Behind a return link acknowledgements are packets; without one they arrive at once.
    let return_link = MIXED.find("[bottleneck.return]").expect("it has one");
    let first = MIXED.find("[[traffic]]").expect("it has groups");
    let at_once = format!("{}{}", &MIXED[..return_link], &MIXED[first..]).replace(
        "\nname = \"up\"\nkind = \"bulk\"\ndirection = \"reverse\"",
        "\nname = \"up\"\nkind = \"bulk\"",
    );
    for text in [MIXED, &at_once] {
        let plain = run(text);
        let mut measured = run(&format!("{ALL}{text}"));
        let more = measured.metrics.len();
        let known: Vec<_> = plain.metrics.iter().map(|(name, _)| name.clone()).collect();
        measured.metrics.retain(|(name, _)| known.contains(name));
        assert!(more > measured.metrics.len() + 100, "{more} metrics");
        // The distributions that are more come last.
        let names = plain.histograms.names.len();
        let rows = plain.histograms.rows.count.len();
        assert!(measured.histograms.names.len() > names);
        let histograms = &mut measured.histograms;
        histograms.names.truncate(names);
        histograms.rows.distribution.truncate(rows);
        histograms.rows.up_to_s.truncate(rows);
        histograms.rows.count.truncate(rows);
        assert_eq!(shown(&measured), shown(&plain));
    }
}

/// What the event log says of the packets of a class at a link: how many arrived in the period, and how many of these were
/// dropped.
type Counted = BTreeMap<(String, String, &'static str), (u64, u64)>;

/// Counts by class from the rows of packets of the event log alone. `header` is the size of a packet without payload.
fn counted(result: &RunResult, header: u64, warmup: f64) -> Counted {
    let log = result.event_log.as_ref().expect("it was asked for");
    let rows = &log.rows;
    let mut found = Counted::new();
    // By link, flow and direction: the payload seen so far, by its first byte.
    let mut seen: BTreeMap<(u32, u32, u32), BTreeMap<u64, u64>> = BTreeMap::new();
    let mut open = BTreeSet::new();
    // By link, flow, direction and number of the packet: the class, and whether it arrived in the period.
    let mut inside = BTreeMap::new();
    for i in 0..rows.time_s.len() {
        let key = (rows.link[i], rows.flow[i], rows.back[i]);
        let place = |class| {
            let link = result.links[rows.link[i] as usize].clone();
            (link, result.groups[rows.group[i] as usize].clone(), class)
        };
        let packet = (key, rows.packet[i]);
        match EventKind::ALL[rows.event[i] as usize] {
            EventKind::Arrival => {
                // Nobody sends data back; acknowledgements have SACK blocks.
                let payload = match rows.back[i] {
                    0 => rows.bytes[i] - header,
                    _ => 0,
                };
                let known = seen.entry(key).or_default();
                let first = rows.sequence[i];
                let class = match (payload, first) {
                    // The first byte of the FIN of a side without data is 0, too: acknowledgements come before it.
                    (0, 0) if known.is_empty() && !open.contains(&key) => "syn",
                    (0, _) => "ack",
                    _ if known.get(&first).is_some_and(|&len| len >= payload) => "retransmission",
                    _ => "data",
                };
                if payload > 0 {
                    known.insert(first, payload);
                } else if first != 0 {
                    open.insert(key);
                }
                let counts = rows.time_s[i] >= warmup;
                inside.insert(packet, (class, counts));
                if counts {
                    found.entry(place(class)).or_default().0 += 1;
                }
            }
            EventKind::Drop => {
                let (class, counts) = inside[&packet];
                if counts {
                    found.entry(place(class)).or_default().1 += 1;
                }
            }
            other => panic!("{other:?} was not asked for"),
        }
    }
    found
}

#[test]
fn losses_by_class_are_those_of_the_event_log_and_sum_to_all_losses() {
    let text = r#"
duration = "30 s"
warmup = "5 s"
events = { kinds = ["arrival", "drop"], limit = 1000000 }
[bottleneck]
rate = "2 Mbit/s"
delay = "10 ms"
queue = { kind = "tail-drop", limit = "8 packets" }
[bottleneck.return]
rate = "20 kbit/s"
delay = "10 ms"
queue = { kind = "tail-drop", limit = "6 packets" }
[[traffic]]
name = "long"
kind = "bulk"
flows = 3
tcp = { preset = "sack", header = "40 B", timestamps = false }
[[traffic]]
name = "short"
kind = "transfer"
flows = 150
size = "15 kB"
start = "uniform 0..30 s"
tcp = { preset = "newreno", header = "40 B", timestamps = false, handshake = true }
"#;
    let result = run(&format!("{ALL}{text}"));
    let expected = counted(&result, 40, 5.0);
    for (link, prefix) in [("bottleneck", ""), ("return", "return.")] {
        for group in ["long", "short"] {
            let (mut all, mut lost) = (0, 0);
            for (class, packets) in [
                ("syn", "syns"),
                ("ack", "acks"),
                ("data", "data"),
                ("retransmission", "retransmissions"),
            ] {
                let key = (link.to_owned(), group.to_owned(), class);
                let (arrived, dropped) = expected.get(&key).copied().unwrap_or_default();
                all += arrived;
                lost += dropped;
                let name = format!("{prefix}{group}.{class}_loss");
                let (loss, drops) = (result.metric(&name), format!("{packets}_dropped"));
                let drops = result.metric(&format!("{prefix}{group}.{drops}"));
                if arrived == 0 {
                    assert_eq!((loss, drops), (None, None), "{name}");
                    continue;
                }
                assert_eq!(drops, Some(dropped as f64), "{name}");
                assert_eq!(loss, Some(dropped as f64 / arrived as f64), "{name}");
            }
            let loss = metric(&result, &format!("{prefix}{group}.loss"));
            assert_eq!(loss, lost as f64 / all as f64, "{prefix}{group}");
            assert!(lost > 10, "{lost} losses of {group} at {link}");
        }
    }
    // Of all classes some packets were lost.
    for packets in ["syns", "data", "retransmissions"] {
        let name = format!("{packets}_dropped");
        assert!(metric(&result, &name) > 0.0, "{packets}");
    }
    assert!(metric(&result, "return.acks_dropped") > 0.0);
}

#[test]
fn losses_from_end_to_end_count_queues_and_wires() {
    // Nothing but the wire loses packets: one in ten, of data alone, because acknowledgements have no wire.
    let result = run(&format!(
        r#"{ALL}
duration = "100 s"
[bottleneck]
rate = "10 Mbit/s"
delay = "1 ms"
wire.loss = 0.1
queue = {{ kind = "tail-drop", limit = "1000 packets" }}
[[traffic]]
name = "long"
kind = "bulk"
flows = 20
return_delay = "5 ms"
"#
    ));
    assert_eq!(metric(&result, "long.data_loss"), 0.0);
    assert_eq!(metric(&result, "long.end_to_end_ack_loss"), 0.0);
    let sent = metric(&result, "long.data_segments");
    let loss = metric(&result, "long.end_to_end_data_loss");
    // Five standard errors: one in two million.
    let error = (0.1f64 * 0.9 / sent).sqrt();
    assert!(
        sent > 1e4 && (loss - 0.1).abs() < 5.0 * error,
        "{loss} of {sent}"
    );
}

#[test]
fn what_record_asks_for_is_predicted_and_nothing_else() {
    let scenario = scenario(&format!("{ALL}{MIXED}"), 0);
    let result = redtail_sim::run(&scenario, RunOptions::default()).expect("it can be run");
    let predicted = redtail_sim::metrics::names(&scenario);
    let predicted: BTreeMap<_, _> = predicted.known.into_iter().collect();
    for (name, _) in &result.metrics {
        assert!(predicted.contains_key(name), "{name} is not predicted");
    }
    let recorded = [
        redtail_sim::metrics::ONE_WAY,
        redtail_sim::metrics::OF_VARIATION,
        redtail_sim::metrics::OF_ROUND_TRIPS,
    ];
    let recorded: Vec<_> = recorded.iter().copied().flatten().collect();
    for (name, metric) in &predicted {
        // Few users may ask for nothing in a phase.
        if recorded.contains(&metric) && !name.contains("pages") {
            assert!(result.metric(name).is_some(), "{name} is not reported");
        }
    }
}

#[test]
fn a_bulk_flow_starts_up_when_its_handshake_is_over() {
    // SYN and SYN-ACK of 40 B: 32 us at 10 Mbit/s, 20 ms there and 30 ms back, in the warm-up.
    let text = r#"
duration = "10 s"
warmup = "5 s"
[bottleneck]
rate = "10 Mbit/s"
delay = "20 ms"
queue = { kind = "tail-drop", limit = "100 packets" }
[[traffic]]
name = "one"
kind = "bulk"
access_rate = "1000 Gbit/s"
exit_rate = "1000 Gbit/s"
return_delay = "30 ms"
tcp = { preset = "sack", header = "40 B", handshake = true }
[[traffic]]
name = "media"
kind = "cbr"
rate = "1 Mbit/s"
packet = "1250 B"
dither = 0.0
start = "1 s"
"#;
    let result = run(text);
    let expected = 50e-3 + 32e-6;
    for name in ["one.start_up_time_mean", "one.start_up_time_max"] {
        let value = metric(&result, name);
        assert!((value - expected).abs() < 1e-9, "{name} is {value}");
    }
    assert_eq!(metric(&result, "one.started_up"), 1.0);
    // 500 packets are sent in the period; the last ones may be under way at its end.
    let received = metric(&result, "media.received_rate");
    assert!((1e6 - 12_000.0..=1e6).contains(&received), "{received}");
}

#[test]
fn a_phase_has_its_times() {
    let result = run(&format!("{ALL}{MIXED}"));
    let times = [("phase1", 3.0, 9.0), ("phase2", 9.0, 20.0)];
    for (phase, begin, end) in times {
        assert_eq!(metric(&result, &format!("{phase}.begin_time")), begin);
        assert_eq!(metric(&result, &format!("{phase}.end_time")), end);
    }
}
