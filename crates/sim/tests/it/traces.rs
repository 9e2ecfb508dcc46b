//! Connections from a table, in a simulation: times computed by hand, to the picosecond.

use std::sync::Arc;

use crate::common::{metric, run_with, scenario_with};
use redtail_core::{Span, Time};
use redtail_sim::RunResult;
use redtail_traffic::{TraceTable, TracedConnection, TracedExchange};

const LINKS: &str = r#"
[bottleneck]
rate = "8 Mbit/s"
delay = "10 ms"
queue = { kind = "tail-drop", limit = "100 packets" }
[bottleneck.return]
rate = "1 Gbit/s"
delay = "10 ms"
queue = { kind = "tail-drop", limit = "100 packets" }
"#;

fn connection(start_ms: u64, rtt_ms: u64, reverse: bool, first: u32) -> TracedConnection {
    TracedConnection {
        start: Time::ZERO + Span::from_ms(start_ms),
        rtt: Some(Span::from_ms(rtt_ms)),
        reverse,
        first,
    }
}

fn exchange(request: u64, response: u64, service_ms: u64, think_ms: u64) -> TracedExchange {
    TracedExchange {
        request,
        response,
        service: Span::from_ms(service_ms),
        think: Span::from_ms(think_ms),
    }
}

fn run(
    rest: &str,
    connections: Vec<TracedConnection>,
    exchanges: Vec<TracedExchange>,
) -> RunResult {
    let table = Arc::new(TraceTable::new("t", connections, exchanges));
    let text = format!(
        r#"duration = "10 s"
{LINKS}
[[traffic]]
name = "all"
kind = "trace"
file = "t.csv"
access_rate = "1 Gbit/s"
exit_rate = "1 Gbit/s"
{rest}
"#
    );
    let scenario = scenario_with(&text, &table, |group, site| {
        assert_eq!(
            (group.file.as_str(), site.path),
            ("t.csv", Span::from_ms(20))
        );
    });
    let again = redtail_spec::Scenario::from_json(&scenario.to_json()).expect("it is a text");
    assert_eq!(again, scenario);
    run_with(&scenario, table)
}

/// Picoseconds that a packet of `bytes` takes on a link of `mbps`.
fn tx(bytes: u64, mbps: u64) -> u64 {
    bytes * 8_000_000 / mbps
}

/// From the answering side to the asking one, over access link, bottleneck and exit link, in a
/// path of `rtt_ms`, of which the links make 20.
fn towards_client(bytes: u64, rtt_ms: u64) -> u64 {
    2 * tx(bytes, 1000) + tx(bytes, 8) + 10_000_000_000 + (rtt_ms - 20) * 500_000_000
}

/// The other way: the return link, and hosts' links that are taken as idle.
fn towards_server(bytes: u64, rtt_ms: u64) -> u64 {
    tx(bytes, 1000) + 10_000_000_000 + (rtt_ms - 20) * 500_000_000
}

#[test]
fn three_rows_take_the_times_of_their_paths() {
    // A handshake, a request of 100 B, 3 ms of service and a response in one segment: the SYN,
    // and the request with the acknowledgement that goes before it, one way; the SYN-ACK and the
    // response the other.
    let took = |rtt: u64, service: u64, size: u64| {
        let ps = towards_server(40, rtt)
            + towards_client(40, rtt)
            + towards_server(140, rtt)
            + service * 1_000_000_000
            + towards_client(size + 40, rtt);
        Span::from_ps(ps).as_secs_f64()
    };
    let rows = [
        (connection(100, 50, false, 0), exchange(100, 1000, 3, 0)),
        (connection(1000, 80, false, 1), exchange(100, 500, 0, 0)),
        (connection(2000, 50, false, 2), exchange(100, 1460, 0, 0)),
    ];
    let (connections, exchanges) = rows.into_iter().unzip();
    let result = run("", connections, exchanges);
    let expected = (took(50, 3, 1000) + took(80, 0, 500) + took(50, 0, 1460)) / 3.0;
    assert_eq!(metric(&result, "all.responses"), 3.0);
    assert_eq!(metric(&result, "all.connections"), 3.0);
    assert_eq!(metric(&result, "all.unanswered"), 0.0);
    let mean = metric(&result, "all.response_time_mean");
    assert!((mean - expected).abs() < 1e-9, "{mean} and not {expected}");
    assert!((metric(&result, "all.goodput") - 2960.0 * 8.0 / 10.0).abs() < 1e-9);
}

#[test]
fn responses_of_reverse_rows_cross_the_return_link() {
    let rows = |reverse| {
        vec![
            connection(100, 50, false, 0),
            connection(1000, 50, reverse, 1),
        ]
    };
    let exchanges = vec![exchange(100, 14_600, 0, 0); 2];
    let both = run("", rows(true), exchanges.clone());
    let one = run("", rows(false), exchanges);
    for result in [&both, &one] {
        assert_eq!(metric(result, "all.responses"), 2.0);
        assert_eq!(metric(result, "all.retransmissions"), 0.0);
    }
    // Ten data segments less cross the bottleneck, but for the requests and acknowledgements of
    // the reverse connection instead.
    assert!(both.bottleneck_packets < one.bottleneck_packets);
    // 1 Gbit/s instead of 8 Mbit/s: ten segments of 1.5 ms less.
    let [both, one] = [both, one].map(|it| metric(&it, "all.response_time_mean"));
    let faster = 2.0 * (one - both);
    assert!((0.014..0.017).contains(&faster), "{faster}");
}

#[test]
fn epochs_follow_each_other_on_one_connection() {
    let exchanges = vec![exchange(100, 1000, 0, 0), exchange(100, 1000, 0, 500)];
    let result = run("", vec![connection(100, 50, false, 0)], exchanges);
    assert_eq!(metric(&result, "all.connections"), 1.0);
    assert_eq!(metric(&result, "all.responses"), 2.0);
    // The second one needs no handshake: a round trip less.
    let request = towards_server(140, 50) + towards_client(1040, 50);
    let handshake = towards_server(40, 50) + towards_client(40, 50);
    let expected =
        Span::from_ps(request).as_secs_f64() + Span::from_ps(handshake).as_secs_f64() / 2.0;
    let mean = metric(&result, "all.response_time_mean");
    assert!((mean - expected).abs() < 1e-9, "{mean} and not {expected}");
}

#[test]
fn a_greeting_waits_for_the_handshake_alone() {
    let result = run(
        "",
        vec![connection(100, 50, false, 0)],
        vec![exchange(0, 1000, 7, 0)],
    );
    // SYN, SYN-ACK, its acknowledgement, 7 ms, and the greeting.
    let ps = 2 * towards_server(40, 50)
        + towards_client(40, 50)
        + 7_000_000_000
        + towards_client(1040, 50);
    let expected = Span::from_ps(ps).as_secs_f64();
    let mean = metric(&result, "all.response_time_mean");
    assert!((mean - expected).abs() < 1e-9, "{mean} and not {expected}");
    assert_eq!(metric(&result, "all.responses"), 1.0);
}

#[test]
fn one_way_messages_are_delivered_and_counted_as_no_response() {
    let exchanges = vec![
        exchange(5000, 0, 0, 0),
        exchange(3000, 1000, 0, 20),
        exchange(0, 2000, 30, 0),
        exchange(700, 0, 0, 0),
    ];
    let result = run("", vec![connection(100, 50, false, 0)], exchanges);
    assert_eq!(metric(&result, "all.responses"), 1.0);
    assert_eq!(metric(&result, "all.unanswered"), 0.0);
    assert!((metric(&result, "all.goodput") - 3000.0 * 8.0 / 10.0).abs() < 1e-9);
    // It has closed: the connection is no longer there for most of the time.
    assert!(metric(&result, "all.connections_mean") < 0.1);
}

#[test]
fn rows_without_a_round_trip_time_go_to_the_groups_own_hosts() {
    let mut row = connection(100, 50, false, 0);
    row.rtt = None;
    let keys = "access_delay = \"15 ms\"\nreturn_delay = \"15 ms\"";
    let own = run(keys, vec![row], vec![exchange(100, 1000, 0, 0)]);
    let given = run(
        "",
        vec![connection(100, 50, false, 0)],
        vec![exchange(100, 1000, 0, 0)],
    );
    assert_eq!(own.metrics, given.metrics);
}

#[test]
fn a_server_that_speaks_first_outlives_the_loss_of_any_packet_of_the_handshake() {
    let rows = (0..300).map(|i| connection(100 * u64::from(i), 50, false, i));
    let exchanges = vec![exchange(0, 1000, 0, 0); 300];
    let table = Arc::new(TraceTable::new("t", rows.collect(), exchanges));
    let links = LINKS.replace("delay = \"10 ms\"", "delay = \"10 ms\"\nwire.loss = 0.1");
    let text = format!(
        "duration = \"200 s\"\n{links}[[traffic]]\nname = \"all\"\nkind = \"trace\"\nfile = \"t.csv\"\n"
    );
    let scenario = scenario_with(&text, &table, |_, _| {});
    let result = run_with(&scenario, table);
    assert_eq!(metric(&result, "all.responses"), 300.0);
    assert_eq!(metric(&result, "all.unanswered"), 0.0);
    // A repeated SYN-ACK or SYN, not one of the end of the run.
    assert!(metric(&result, "all.response_time_p95") < 8.0);
}
