//! Users who ask and are answered: exact times on an idle path, every queue, model and TCP under
//! losses, both directions, and that a run can be repeated.
//!
//! That packets are conserved, those of every connection among them, each run checks itself.

use crate::common::{metric, run, scenario};
use redtail_core::{Bytes, Rate, Span};
use redtail_transport::Preset;

/// Over how long a packet of `size` bytes is transmitted on each of the three links of [`PATH`].
fn tx(size: u64) -> [Span; 3] {
    let rates = [100_000_000, 7_000_000, 13_000_000].map(Rate::from_bps);
    rates.map(|rate| rate.tx_time(Bytes::new(size)))
}

/// From the server to the client: three links of 3, 20 and 0.5 ms; 11 ms on the way back.
const PATH: &str = r#"
[bottleneck]
rate = "7 Mbit/s"
delay = "20 ms"
queue = { kind = "tail-drop", limit = "100 packets" }
[[traffic]]
name = "t"
access_rate = "100 Mbit/s"
access_delay = "3 ms"
exit_rate = "13 Mbit/s"
exit_delay = "500 us"
return_delay = "11 ms"
"#;

const THERE: Span = Span::from_us(23_500);
const BACK: Span = Span::from_ms(11);

/// What a packet of `size` bytes takes alone.
fn alone(size: u64) -> Span {
    let [access, bottleneck, exit] = tx(size);
    THERE + access + bottleneck + exit
}

/// The mean response time and the number of responses, with requests of 1000 B and responses of
/// 5000 B: three segments of 1460 B and one of 620 B, each with 40 B of headers.
fn transactions(keys: &str) -> (f64, f64) {
    let result = run(&format!(
        r#"
duration = "60 s"
{PATH}
kind = "transactions"
response = "5000 B"
{keys}
"#
    ));
    assert_eq!(metric(&result, "t.retransmissions"), 0.0);
    (
        metric(&result, "t.response_time_mean"),
        metric(&result, "t.responses"),
    )
}

#[track_caller]
fn assert_time(found: f64, expected: Span) {
    let expected = expected.as_secs_f64();
    assert!(
        (found - expected).abs() < 1e-9,
        "{found} s, not {expected} s"
    );
}

/// From the first of four segments leaving the server together to the last at the client.
fn four_segments() -> Span {
    let [access, bottleneck, exit] = tx(1500);
    // The last is transmitted faster than the third by the exit link, and waits for it there.
    assert!(tx(660)[1] < exit);
    THERE + access + bottleneck * 3 + exit + tx(660)[2]
}

#[test]
fn a_transaction_on_a_new_connection_takes_a_handshake_and_slow_start() {
    // netperf's TCP_CRR; think times keep one connection's end out of the next one's way.
    let tcp = "tcp = { preset = \"newreno\", delayed_ack = false, initial_window = 1 }";
    let (mean, count) = transactions(&format!("think = \"1 s\"\n{tcp}"));
    // SYN and SYN-ACK, request; the first segment; two more when its acknowledgement is there;
    // the last when the second's is.
    let handshake = BACK + alone(40);
    let expected = handshake + BACK + (alone(1500) + BACK) * 2 + alone(660);
    assert_time(mean, expected);
    let each = expected.as_secs_f64() + 1.0;
    assert_eq!(
        count,
        (60.0 / each).ceil() - f64::from(u8::from(60.0 % each < expected.as_secs_f64()))
    );

    let tcp = "tcp = { preset = \"newreno\", delayed_ack = false, initial_window = 10 }";
    let (mean, _) = transactions(&format!("think = \"1 s\"\n{tcp}"));
    assert_time(mean, handshake + BACK + four_segments());

    let service = "service = \"250 ms\"";
    let (mean, _) = transactions(&format!("think = \"1 s\"\n{service}\n{tcp}"));
    assert_time(
        mean,
        handshake + BACK + four_segments() + Span::from_ms(250),
    );
}

#[test]
fn on_a_connection_that_persists_the_first_transaction_alone_has_a_handshake() {
    // netperf's TCP_RR.
    let keys = r#"
connections = "one"
think = "100 ms"
tcp = { preset = "newreno", delayed_ack = false, initial_window = 10 }
"#;
    let (mean, count) = transactions(keys);
    let each = BACK + four_segments();
    let handshake = BACK + alone(40);
    assert_time((mean * count - handshake.as_secs_f64()) / count, each);
    assert_eq!(count, {
        let cycle = each.as_secs_f64() + 0.1;
        ((60.0 - handshake.as_secs_f64() + 0.1) / cycle).floor()
    });
}

#[test]
fn a_slowdown_of_one_is_an_idle_path_with_an_open_window() {
    // What is left is the transmission on the two faster links.
    let text = |tcp: &str, connections: &str| {
        format!(
            r#"
duration = "60 s"
{PATH}
kind = "transactions"
response = "100 kB"
think = "1 s"
connections = "{connections}"
tcp = {tcp}
"#
        )
    };
    let open = r#"{ preset = "sack", initial_window = 100, idle_restart = false }"#;
    for connections in ["each", "one"] {
        let slowdown = metric(&run(&text(open, connections)), "t.slowdown_mean");
        assert!((1.0..1.03).contains(&slowdown), "{slowdown}");
    }
    let slow = r#"{ preset = "sack", initial_window = 2 }"#;
    let slowdown = metric(&run(&text(slow, "each")), "t.slowdown_mean");
    assert!(slowdown > 1.5, "{slowdown}");
}

/// A page of a document and two more objects, over one connection, once.
fn page(model: &str, keys: &str) -> [f64; 4] {
    let result = run(&format!(
        r#"
duration = "60 s"
{PATH}
kind = "web"
model = "{model}"
start = "0 s"
stop = "1 s"
objects = "3"
document = "1000 B"
object = {{ cdf = [[0.0, "200 kB"], [1.0, "200 kB"]] }}
service = "0 s"
request = "100 B"
{keys}
"#
    ));
    let times = &result.response_times;
    let rows = times
        .count
        .iter()
        .zip(&times.size_up_to_bytes)
        .zip(&times.time_up_to_s);
    let mut large = rows.filter(|((_, size), _)| **size == 1e6);
    let mut all = Vec::new();
    for ((count, _), time) in &mut large {
        all.extend((0..*count).map(|_| *time));
    }
    assert_eq!(all.len(), 2, "{all:?}");
    [
        all[0],
        all[1],
        metric(&result, "t.page_time_mean"),
        metric(&result, "t.connections"),
    ]
}

#[test]
fn objects_in_turn_come_one_by_one_and_multiplexed_ones_together() {
    // 200 kB and its headers take 0.235 s at 7 Mbit/s.
    let [first, second, took, connections] = page("http1", "parallel = 1");
    assert_eq!(connections, 1.0);
    // Each asked for when the one before has come: both alike, but for slow start.
    assert!(second < 0.8 && first < 0.5, "{first} {second}");
    let [sooner, later, together, connections] = page("http2", "");
    assert_eq!(connections, 1.0);
    // Frames of both in turn: they end within a frame or two of each other, and the page
    // sooner by the second request's round trip.
    assert!(later / sooner < 1.11, "{sooner} {later}");
    assert!(took - together > 0.03, "{took} {together}");
}

#[test]
fn a_multiplexed_response_fills_an_open_window() {
    // However little the server writes ahead: 300 kB leave without waiting for acknowledgements.
    let result = run(&format!(
        r#"
duration = "20 s"
{PATH}
kind = "web"
model = "http2"
start = "0 s"
stop = "1 s"
objects = "1"
document = "300 kB"
request = "100 B"
tcp = {{ preset = "sack", initial_window = 300 }}
"#
    )
    .replace("100 packets", "1000 packets")
    .replace("11 ms", "300 ms"));
    let slowdown = metric(&result, "t.slowdown_mean");
    assert!((1.0..1.03).contains(&slowdown), "{slowdown}");
}

/// All kinds of queues, in their keys but for `plugin`.
const QUEUES: &[&str] = &[
    r#"{ kind = "tail-drop", limit = "20 packets" }"#,
    r#"{ kind = "head-drop", limit = "20 packets" }"#,
    r#"{ kind = "red", limit = "40 packets", min_th = "5 packets", max_th = "15 packets", ecn = true }"#,
    r#"{ kind = "adaptive-red", limit = "40 packets", min_th = "5 packets", max_th = "15 packets" }"#,
    r#"{ kind = "self-configuring-red", limit = "40 packets", min_th = "5 packets", max_th = "15 packets" }"#,
    r#"{ kind = "dynamic-threshold-red", limit = "40 packets", min_th = "5 packets", max_th = "15 packets" }"#,
    r#"{ kind = "wred", limit = "40 packets", average = "rio", profiles = [{ dscp = ["AF11"], min_th = "20 packets", max_th = "30 packets", max_p = 0.02 }, { min_th = "5 packets", max_th = "15 packets", max_p = 0.2 }] }"#,
    r#"{ kind = "red-tail", limit = "60 kB", min_th = "8 kB", max_th = "24 kB", short_max_th = "10 kB" }"#,
    r#"{ kind = "pi", limit = "40 packets", q_ref = "10 packets", ecn = true }"#,
    r#"{ kind = "pie", limit = "40 packets", ecn = true }"#,
    r#"{ kind = "docsis-pie", limit = "40 packets" }"#,
    r#"{ kind = "pi2", limit = "40 packets", ecn = true }"#,
    r#"{ kind = "dualpi2" }"#,
    r#"{ kind = "step", limit = "40 packets", threshold = "10 packets" }"#,
    r#"{ kind = "rem", limit = "40 packets", target = "10 packets" }"#,
    r#"{ kind = "blue", limit = "40 packets", ecn = true }"#,
    r#"{ kind = "sred", limit = "40 packets" }"#,
    r#"{ kind = "avq", limit = "40 packets" }"#,
    r#"{ kind = "choke", limit = "40 packets", min_th = "5 packets", max_th = "15 packets" }"#,
    r#"{ kind = "gsp", limit = "40 packets", threshold = "10 packets" }"#,
    r#"{ kind = "codel", limit = "40 packets", ecn = true }"#,
    r#"{ kind = "fq-codel", limit = "40 packets", ecn = true }"#,
    r#"{ kind = "fq-pie", limit = "40 packets" }"#,
    r#"{ kind = "sfq", limit = "40 packets" }"#,
    r#"{ kind = "fq", limit = "40 packets", flow_limit = 10 }"#,
    r#"{ kind = "cobalt", limit = "40 packets" }"#,
    r#"{ kind = "cake" }"#,
    r#"{ kind = "cake", ack_filter = "aggressive" }"#,
    r#"{ kind = "sfb", limit = "40 packets" }"#,
    r#"{ kind = "prio", default = "b", class = [{ name = "a", match = { group = "t" }, queue = { kind = "tail-drop", limit = "20 packets" } }, { name = "b", queue = { kind = "tail-drop", limit = "20 packets" } }] }"#,
    r#"{ kind = "drr", default = "b", class = [{ name = "a", match = { group = "t" }, queue = { kind = "tail-drop", limit = "20 packets" } }, { name = "b", queue = { kind = "tail-drop", limit = "20 packets" } }] }"#,
    r#"{ kind = "wfq", default = "b", class = [{ name = "a", match = { group = "t" }, queue = { kind = "tail-drop", limit = "20 packets" } }, { name = "b", queue = { kind = "tail-drop", limit = "20 packets" } }] }"#,
    r#"{ kind = "pfifo-fast", limit = "20 packets" }"#,
    r#"{ kind = "tbf", rate = "1900 kbit/s", burst = "3 kB", queue = { kind = "tail-drop", limit = "20 packets" } }"#,
    r#"{ kind = "htb", default = "b", class = [{ name = "a", match = { group = "t" }, rate = "100 kbit/s", queue = { kind = "tail-drop", limit = "20 packets" } }, { name = "b", rate = "390 kbit/s", queue = { kind = "tail-drop", limit = "20 packets" } }] }"#,
];

const MODELS: [&str; 5] = ["feldmann", "request-think", "empirical", "http1", "http2"];

/// 2 Mbit/s there and 500 kbit/s back, both with `queue` and losing 2 % at random; Web users
/// of `model` with `tcp` in one direction, transactions in the other, and a bulk flow in both; all stop
/// after 4 s. The time after that is enough for everything to be answered.
fn lossy(queue: &str, model: &str, tcp: &str, seed: u64) -> String {
    format!(
        r#"
duration = "2000 s"
seed = {seed}
[bottleneck]
rate = "2 Mbit/s"
delay = "15 ms"
queue = {queue}
wire.loss = 0.02
[bottleneck.return]
rate = "500 kbit/s"
delay = "15 ms"
queue = {queue}
wire.loss = 0.02
[[traffic]]
name = "web"
kind = "web"
model = "{model}"
users = 10
think = "exponential mean 1 s"
object = "pareto min 1 kB shape 1.1 max 300 kB"
objects = "uniform 0..30"
access_delay = ["1 ms", "30 ms", "90 ms"]
hosts = 7
tcp = {tcp}
stop = "4 s"
[[traffic]]
name = "t"
kind = "transactions"
direction = "reverse"
users = 3
response = "uniform 1..20000 B"
tcp = {tcp}
stop = "4 s"
[[traffic]]
name = "ftp"
kind = "bulk"
tcp = {tcp}
stop = "4 s"
[[traffic]]
name = "back"
kind = "bulk"
direction = "reverse"
tcp = {tcp}
stop = "4 s"
"#
    )
}

#[track_caller]
fn assert_all_are_answered(what: &str, text: &str) {
    let result = run(text);
    for group in ["web", "t"] {
        let of = |name: &str| metric(&result, &format!("{group}.{name}"));
        assert!(
            of("responses") >= 3.0,
            "{what}: {} in {group}",
            of("responses")
        );
        assert_eq!(of("unanswered"), 0.0, "{what}: in {group}");
        assert!(of("goodput") > 0.0, "{what}");
    }
    for (name, value) in &result.metrics {
        assert!(
            value.is_finite() && *value >= 0.0,
            "{what}: {name} = {value}"
        );
    }
}

#[test]
fn every_model_is_answered_through_every_queue_with_losses_both_ways() {
    for (seed, queue) in QUEUES.iter().enumerate() {
        for model in MODELS {
            let text = lossy(queue, model, "\"sack\"", seed as u64);
            assert_all_are_answered(&format!("{model}, {queue}"), &text);
        }
    }
}

#[test]
fn the_list_of_queues_is_complete() {
    let schema = redtail_spec::schema().to_string();
    let given: Vec<&str> = QUEUES
        .iter()
        .map(|queue| queue.split('"').nth(1).expect("a kind"))
        .collect();
    let schema: serde_json::Value = serde_json::from_str(&schema).expect("it was made of one");
    let kinds = schema["$defs"]["QueueSpec"]["oneOf"]
        .as_array()
        .expect("queues");
    for kind in kinds {
        let kind = kind["properties"]["kind"]["const"]
            .as_str()
            .expect("a kind");
        assert!(
            kind == "plugin" || given.contains(&kind),
            "{kind} is missing"
        );
    }
}

#[test]
fn users_of_every_tcp_are_answered_with_marks_and_losses() {
    const MARKING: &str = r#"{ kind = "red", limit = "40 packets", min_th = "5 packets", max_th = "15 packets", w_q = 0.05, ecn = true }"#;
    for (seed, preset) in Preset::ALL.iter().enumerate() {
        let name = serde_json::to_value(preset).expect("a name");
        // BBR does not answer marks.
        let ecn = !preset.params().growth.is_model();
        for handshake in [true, false] {
            let tcp = format!("{{ preset = {name}, ecn = {ecn}, handshake = {handshake} }}");
            for model in ["empirical", "http2"] {
                let text = lossy(MARKING, model, &tcp, seed as u64);
                assert_all_are_answered(&format!("{tcp}, {model}"), &text);
            }
        }
    }
}

#[test]
fn users_of_both_directions_wait_for_each_others_acknowledgements() {
    // The same users there, without and with a crowd whose responses come back.
    let text = |back: u32| {
        format!(
            r#"
duration = "100 s"
warmup = "10 s"
[bottleneck]
rate = "10 Mbit/s"
delay = "20 ms"
queue = {{ kind = "tail-drop", limit = "100 packets" }}
[bottleneck.return]
rate = "1 Mbit/s"
delay = "20 ms"
queue = {{ kind = "tail-drop", limit = "100 packets" }}
[[traffic]]
name = "there"
kind = "web"
model = "request-think"
users = 20
think = "exponential mean 2 s"
[[traffic]]
name = "back"
kind = "web"
model = "request-think"
users = {back}
direction = "reverse"
think = "exponential mean 2 s"
"#
        )
    };
    let results = [1, 25].map(|back| run(&text(back)));
    let of = |name: &str| [metric(&results[0], name), metric(&results[1], name)];
    let [quiet, crowded] = of("return.utilization");
    assert!(quiet < 0.4 && crowded > 0.7, "{quiet} {crowded}");
    // Their requests and acknowledgements wait there, although their responses do not.
    let [quiet, crowded] = of("there.response_time_p50");
    assert!(crowded > 1.2 * quiet, "{quiet} {crowded}");
    let [_, waited] = of("return.there.queue_delay_mean");
    assert!(waited > 0.005, "{waited}");
}

#[test]
fn a_run_with_users_can_be_repeated() {
    let queue = r#"{ kind = "fq-codel", limit = "40 packets" }"#;
    for model in MODELS {
        let text = lossy(queue, model, "\"bbr\"", 5);
        let [one, other] = [(); 2].map(|()| format!("{:?}", run(&text)));
        assert_eq!(one, other, "{model}");
        let text = lossy(queue, model, "\"bbr\"", 6);
        assert_ne!(one, format!("{:?}", run(&text)), "{model}");
    }
}

#[test]
fn hosts_are_dealt_out_in_equal_steps() {
    // The short form of a list of delays, as the file gives it.
    let text = lossy(QUEUES[0], "http1", "\"sack\"", 1);
    let text = text.replace(r#"["1 ms", "30 ms", "90 ms"]"#, r#""16..240 ms in 57""#);
    let text = text.replace("hosts = 7\n", "");
    let scenario = scenario(&text, 0);
    let access = scenario.traffic[0].access();
    assert_eq!(access.host_count(), 57);
    assert_eq!(access.access_delay.get(56), &Span::from_ms(240));
}
