//! Random delays in sending hosts: order, sizes, streams, and what they end.

use std::collections::BTreeSet;

use redtail_sim::capture::IpVersion;

use crate::capture::{capture, packets};
use crate::common::{metric, metrics_of, run, run_replication};

/// A telephone's packets over a link that they never wait for.
fn telephone(jitter: &str) -> String {
    format!(
        r#"
duration = "2000 s"
host_jitter = "{jitter}"
[bottleneck]
rate = "1 Gbit/s"
delay = "10 ms"
queue = {{ kind = "tail-drop", limit = "10 packets" }}
[[traffic]]
name = "udp"
kind = "cbr"
rate = "8 kbit/s"
packet = "100 B"
"#
    )
}

#[test]
fn delays_are_uniform_from_none_to_the_longest() {
    // 20,000 packets, 100 ms apart: none waits for the one before it.
    let result = run(&telephone("60 ms"));
    let delay = |name| metric(&result, &format!("udp.one_way_delay_{name}")) - 0.010;
    // The mean of n draws is off by 60 ms / sqrt(12 n) = 0.12 ms (one standard deviation); five
    // of them are exceeded with probability 6e-7, and the seed is fixed. Percentiles are of a
    // histogram whose bins are 2 % wide.
    assert!((delay("mean") - 0.030).abs() < 0.0006, "{}", delay("mean"));
    assert!((delay("p50") - 0.030).abs() < 0.0015, "{}", delay("p50"));
    assert!((delay("p95") - 0.057).abs() < 0.0015, "{}", delay("p95"));
}

/// One TCP flow that never loses a packet, with gaps of 1.2 ms between its packets.
fn lossless(jitter: &str) -> String {
    format!(
        r#"
duration = "20 s"
[bottleneck]
rate = "10 Mbit/s"
delay = "10 ms"
queue = {{ kind = "tail-drop", limit = "1000 packets" }}
[[traffic]]
name = "one"
kind = "bulk"
host_jitter = "{jitter}"
tcp = {{ initial_window = 2, receive_window = "60 kB", delayed_ack = false }}
return_delay = "10 ms"
"#
    )
}

#[test]
fn packets_of_a_flow_stay_in_order() {
    for jitter in ["1 ms", "40 ms", "1 s"] {
        let result = run(&lossless(jitter));
        assert!(metric(&result, "one.data_segments") > 500.0);
        assert_eq!(metric(&result, "one.duplicate_acks"), 0.0, "{jitter}");
        assert_eq!(metric(&result, "one.retransmissions"), 0.0, "{jitter}");
    }
}

/// Dithered UDP on the first hop; TCP of `jitter` on the second.
fn two_hops(jitter: &str) -> String {
    format!(
        r#"
duration = "4 s"
[[chain.hop]]
rate = "5 Mbit/s"
delay = "10 ms"
queue = {{ kind = "red", limit = "60 packets", min_th = "5 packets", max_th = "20 packets" }}
[[chain.hop]]
rate = "5 Mbit/s"
delay = "10 ms"
queue = {{ kind = "tail-drop", limit = "20 packets" }}
[[traffic]]
name = "udp"
kind = "cbr"
flows = 20
rate = "300 kbit/s"
packet = "500 B"
dither = 0.7
last_hop = 1
[[traffic]]
name = "web"
kind = "transactions"
users = 5
think = "50 ms"
response = "20 kB"
start = "uniform 0..1 s"
first_hop = 2
host_jitter = "{jitter}"
"#
    )
}

#[test]
fn a_group_that_draws_delays_leaves_all_other_draws_as_they_are() {
    let [without, with] = ["0 s", "3 ms"].map(|jitter| run(&two_hops(jitter)));
    for of in ["hop1.", "udp."] {
        assert_eq!(metrics_of(&without, of), metrics_of(&with, of), "{of}");
    }
    assert_ne!(metrics_of(&without, "web."), metrics_of(&with, "web."));
}

/// Flows that start at fixed times behind tail drop; nothing else is random.
fn clock(jitter: &str) -> String {
    format!(
        r#"
duration = "100 s"
{jitter}
[bottleneck]
rate = "1 Mbit/s"
delay = "20 ms"
queue = {{ kind = "tail-drop", limit = "15 packets" }}
[bottleneck.return]
rate = "1 Mbit/s"
delay = "20 ms"
queue = {{ kind = "tail-drop", limit = "15 packets" }}
[[traffic]]
name = "one"
kind = "bulk"
flows = 2
hosts = 1
start = ["0 s", "1 s"]
[[traffic]]
name = "back"
kind = "bulk"
direction = "reverse"
start = "2 s"
"#
    )
}

#[test]
fn delays_differ_from_replication_to_replication_and_are_repeated_with_one() {
    let without = [0, 1].map(|number| run_replication(&clock(""), number).metrics);
    assert_eq!(without[0], without[1]);
    let jitter = clock("host_jitter = \"12 ms\"");
    let [first, again, other] =
        [0, 0, 1].map(|number| format!("{:?}", run_replication(&jitter, number)));
    assert_eq!(first, again);
    assert_ne!(first, other);
}

#[test]
fn no_delay_at_all_is_the_run_without_the_key() {
    let without = run(&clock(""));
    let zero = run(&clock("host_jitter = \"0 s\""));
    assert_eq!(format!("{without:?}"), format!("{zero:?}"));
}

/// The second flow's share of what two flows get behind tail drop, where a packet takes 10 ms and
/// the second one's base round trip is longer by `longer` ms.
fn share(jitter: &str, longer: u32) -> f64 {
    let tcp = r#"{ mss = "960 B", delayed_ack = false, handshake = false }"#;
    let result = run(&format!(
        r#"
duration = "300 s"
warmup = "100 s"
host_jitter = "{jitter}"
[bottleneck]
rate = "800 kbit/s"
delay = "100 ms"
queue = {{ kind = "tail-drop", limit = "15 packets" }}
[[traffic]]
name = "a"
kind = "bulk"
return_delay = "100 ms"
start = "uniform 0..1 s"
tcp = {tcp}
[[traffic]]
name = "b"
kind = "bulk"
return_delay = "{} ms"
start = "uniform 0..1 s"
tcp = {tcp}
"#,
        100 + longer
    ));
    let [a, b] = ["a.goodput", "b.goodput"].map(|name| metric(&result, name));
    b / (a + b)
}

#[test]
fn shares_of_two_flows_hang_on_their_phases_until_hosts_have_delays() {
    // The finding of Floyd and Jacobson 1992: a millisecond of one flow's round trip decides
    // whose packets meet a full queue, and random delays of up to a packet's time end that.
    let range = |jitter| {
        let shares: Vec<f64> = (5..13).map(|longer| share(jitter, longer)).collect();
        let most = shares.iter().copied().fold(0.0, f64::max);
        (shares.iter().copied().fold(1.0, f64::min), most)
    };
    let (least, most) = range("0 s");
    assert!(least < 0.55 && most > 0.9, "without: {least} to {most}");
    let (least, most) = range("10 ms");
    assert!(least > 0.45 && most < 0.8, "with: {least} to {most}");
}

/// The times in ns between full segments of a flow that arrive at the bottleneck. One takes 12 us on its host's link.
fn gaps(more: &str) -> Vec<u64> {
    let text = format!(
        r#"
duration = "2 s"
host_jitter = "100 us"
[bottleneck]
rate = "100 Mbit/s"
delay = "20 ms"
queue = {{ kind = "tail-drop", limit = "1000 packets" }}
[[traffic]]
name = "one"
kind = "bulk"
access_rate = "1 Gbit/s"
tcp = "linux"
start = "0 s"
{more}
"#
    );
    let (_, file) = capture(&text, &["bottleneck:in"], IpVersion::V4);
    let full = packets(&file, 1)
        .into_iter()
        .filter(|it| it.original >= 1500);
    let times: Vec<u64> = full.map(|it| it.ns).collect();
    times.windows(2).map(|pair| pair[1] - pair[0]).collect()
}

#[test]
fn a_train_leaves_its_host_back_to_back() {
    // The initial window of ten segments is sent at one instant.
    let [single, trains] = ["", "trains = true"].map(gaps);
    assert_eq!(trains[..9], [12_000; 9]);
    assert_ne!(single[..9], [12_000; 9]);
    assert!(trains.iter().all(|gap| *gap >= 12_000));
    // Later trains have a time of their own each: the gaps between them vary.
    let between: BTreeSet<u64> = trains.iter().copied().filter(|gap| *gap > 12_000).collect();
    assert!(between.len() > 100, "{}", between.len());
    let mean = |gaps: &[u64]| {
        let ends = gaps.iter().filter(|gap| **gap > 12_000).count() + 1;
        (gaps.len() + 1) as f64 / ends as f64
    };
    assert!(
        mean(&trains) > 2.0 * mean(&single),
        "trains of {} and {} segments",
        mean(&trains),
        mean(&single)
    );
}

#[test]
fn packets_that_are_sent_one_by_one_are_no_train() {
    let alone = telephone("60 ms");
    let with = alone.replace("packet = ", "trains = true\npacket = ");
    assert_eq!(run(&alone).metrics, run(&with).metrics);
}
