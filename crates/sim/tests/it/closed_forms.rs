//! Whole runs against what theory says of them.

use crate::common::{assert_mean_wait, metric, run};
use redtail_sim::RunResult;

#[test]
fn many_independent_sources_wait_as_in_m_d_1() {
    // 2000 sources with random gaps are close to Poisson over the length of a busy
    // period. Service S = 1 ms, load 0.7: the mean wait is rho S / (2 (1 - rho)).
    let text = r#"
duration = "60 s"
warmup = "10 s"
[bottleneck]
rate = "10 Mbit/s"
delay = "1 ms"
queue = { kind = "tail-drop", limit = "100000 packets" }
[[traffic]]
name = "many"
kind = "cbr"
flows = 2000
rate = "3500 bit/s"
packet = "1250 B"
dither = 1.0
access_rate = "1000 Gbit/s"
"#;
    let (rho, service) = (0.7, 1e-3);
    let expected = rho * service / (2.0 * (1.0 - rho));
    assert_mean_wait(text, expected, 0.05);
}

#[test]
fn one_flow_with_a_buffer_of_a_bandwidth_delay_product_fills_the_link() {
    // Halving the window of a full pipe and a full buffer of the same size leaves
    // the pipe full (Appenzeller, Keslassy and McKeown 2004, section 2).
    for preset in ["sack", "newreno", "reno", "ns2-sack"] {
        // 10 Mbit/s and 60 ms are 50 packets of 1500 B.
        let result = run(&format!(
            r#"
duration = "60 s"
warmup = "20 s"
[bottleneck]
rate = "10 Mbit/s"
delay = "30 ms"
queue = {{ kind = "tail-drop", limit = "55 packets" }}
[[traffic]]
name = "one"
kind = "bulk"
tcp = "{preset}"
return_delay = "30 ms"
"#
        ));
        let utilization = metric(&result, "utilization");
        assert!(utilization > 0.99, "{preset}: {utilization}");
        assert!(metric(&result, "loss") > 0.0, "the buffer never filled");
        // What is transmitted is delivered: payload is 1460 of 1500 bytes.
        let goodput = metric(&result, "goodput") / 10e6 * 1500.0 / 1460.0;
        assert!((goodput - utilization).abs() < 0.005, "{goodput}");
    }
}

#[test]
fn overload_loses_what_the_link_cannot_carry() {
    // 12.5 Mbit/s into 10 Mbit/s: a fifth is lost, give or take the packet at
    // either end of the period.
    let result = run(r#"
duration = "20 s"
warmup = "5 s"
[bottleneck]
rate = "10 Mbit/s"
delay = "5 ms"
queue = { kind = "tail-drop", limit = "20 packets" }
[[traffic]]
name = "udp"
kind = "cbr"
rate = "12500 kbit/s"
packet = "1250 B"
"#);
    let packets = 12.5e6 / 8.0 / 1250.0 * 15.0;
    let lost = metric(&result, "loss") * packets;
    assert!((lost - 0.2 * packets).abs() <= 1.0, "{lost} of {packets}");
    assert_eq!(metric(&result, "udp_loss"), metric(&result, "loss"));
    assert_eq!(metric(&result, "utilization"), 1.0);
    // The queue is full but for the gap between a departure and the next arrival.
    let length = metric(&result, "queue_length_mean");
    assert!((19.0..=20.0).contains(&length), "{length}");
    // End to end, packets still on their way at the end count neither as lost nor
    // as received: those in the queue, in transmission and in propagation.
    let end_to_end = metric(&result, "udp.end_to_end_loss");
    let under_way = 27.0;
    assert!((end_to_end - 0.2).abs() <= 0.2 * under_way / (packets - under_way));
}

#[test]
fn below_capacity_constant_rate_sources_in_step_never_wait() {
    // D/D/1 with a load of one half.
    let result = run(r#"
duration = "2 s"
[bottleneck]
rate = "10 Mbit/s"
delay = "5 ms"
queue = { kind = "tail-drop", limit = "20 packets" }
[[traffic]]
name = "udp"
kind = "cbr"
rate = "5 Mbit/s"
packet = "1250 B"
start = "0 s"
"#);
    assert_eq!(metric(&result, "queue_delay_p99"), 0.0);
    assert_eq!(metric(&result, "queue_length_mean"), 0.0);
    assert_eq!(metric(&result, "loss"), 0.0);
    // 1000 packets, the first 0.1 ms after the start: all but the end of the last.
    let utilization = metric(&result, "utilization");
    assert!((utilization - 0.5).abs() < 1e-12, "{utilization}");
}

/// A constant-rate source over a link that loses 5 % and, with `back`, a transfer whose
/// acknowledgements cross a return link that loses 20 %.
fn lossy(forward: &str, back: &str) -> RunResult {
    run(&format!(
        r#"
duration = "110 s"
warmup = "10 s"
[bottleneck]
rate = "10 Mbit/s"
delay = "10 ms"
queue = {{ kind = "tail-drop", limit = "100 packets" }}
{forward}
[bottleneck.return]
rate = "10 Mbit/s"
delay = "10 ms"
queue = {{ kind = "tail-drop", limit = "100 packets" }}
{back}
[[traffic]]
name = "udp"
kind = "cbr"
rate = "4 Mbit/s"
packet = "500 B"
start = "0 s"
[[traffic]]
name = "ftp"
kind = "bulk"
tcp = {{ preset = "sack", receive_window = "14600 B" }}
"#
    ))
}

#[test]
fn a_link_loses_the_share_of_packets_that_it_is_told_to() {
    let p: f64 = 0.05;
    let result = lossy(&format!("wire.loss = {p}"), "");
    // 100 000 packets of the source alone: five standard deviations of the share are
    // exceeded with probability 6e-7 (and the seed is fixed).
    let bound = 5.0 * (p * (1.0 - p) / 100_000.0).sqrt();
    let lost = metric(&result, "wire_loss");
    assert!((lost - p).abs() < bound, "{lost}");
    let end_to_end = metric(&result, "udp.end_to_end_loss");
    assert!((end_to_end - p).abs() < bound, "{end_to_end}");
    // None of it at the queue; the way back has no such key, and no such metric.
    assert_eq!(metric(&result, "loss"), 0.0);
    assert!(
        result
            .metrics
            .iter()
            .all(|(name, _)| name != "return.wire_loss")
    );
}

#[test]
fn acknowledgements_are_lost_on_a_return_link_of_which_that_is_asked() {
    let (p, result): (f64, _) = (0.2, lossy("", "wire.loss = 0.2"));
    let lost = metric(&result, "return.wire_loss");
    // At least 10 000 acknowledgements: one in two of ten segments every 40 ms.
    assert!(
        (lost - p).abs() < 5.0 * (p * (1.0 - p) / 10_000.0).sqrt(),
        "{lost}"
    );
    assert_eq!(metric(&result, "udp.end_to_end_loss"), 0.0);
}

#[test]
fn a_link_told_to_lose_nothing_does_what_one_without_the_key_does() {
    let (zero, without) = (lossy("wire.loss = 0.0", "wire.loss = 0"), lossy("", ""));
    let kept = |(name, _): &&(String, f64)| !name.ends_with("wire_loss");
    assert!(zero.metrics.iter().filter(kept).eq(&without.metrics));
    assert_eq!(metric(&zero, "wire_loss"), 0.0);
    assert_eq!(metric(&zero, "return.wire_loss"), 0.0);
}

/// The goodput of one flow over 1 Gbit/s and 200 ms, Mbit/s.
fn over_a_long_fast_path(tcp: &str) -> f64 {
    let result = run(&format!(
        r#"
duration = "20 s"
warmup = "15 s"
[bottleneck]
rate = "1 Gbit/s"
delay = "200 ms"
queue = {{ kind = "tail-drop", limit = "20000 packets" }}
[[traffic]]
name = "one"
kind = "bulk"
flows = 1
start = "0 s"
access_rate = "10 Gbit/s"
tcp = {tcp}
"#
    ));
    metric(&result, "one.goodput") / 1e6
}

#[test]
fn the_buffers_of_a_stock_linux_host_limit_a_long_fast_path() {
    // A window a round trip: 3 MiB, or 125.8 Mbit/s.
    let stock = over_a_long_fast_path("\"linux\"");
    assert!((124.0..=126.0).contains(&stock), "{stock}");
    // Of the receive window and the send buffer the lesser counts.
    for (keys, window) in [
        ("receive_window = \"500 kB\"", 500e3),
        (
            "receive_window = \"500 kB\", receive_autotuning = true",
            500e3,
        ),
        ("send_buffer = \"1 MB\"", 1e6),
        ("receive_window = \"1 GB\"", 4_194_304.0),
    ] {
        let expected = window * 8.0 / 0.2 / 1e6;
        let goodput = over_a_long_fast_path(&format!("{{ preset = \"linux\", {keys} }}"));
        let share = goodput / expected;
        assert!(
            (0.98..=1.005).contains(&share),
            "{keys}: {goodput}, not {expected}"
        );
    }
    // Without these limits the link does: 1448 bytes of each 1500.
    let free = "{ preset = \"linux\", receive_window = \"1 GB\", send_buffer = \"1 GB\" }";
    let free = over_a_long_fast_path(free);
    assert!((950.0..=966.0).contains(&free), "{free}");
}

/// Five flows on a path that loses each data packet with probability `loss`.
fn five_flows_that_lose(loss: &str, warmup: u32) -> RunResult {
    run(&format!(
        r#"
duration = "300 s"
warmup = "{warmup} s"
[bottleneck]
rate = "10 Mbit/s"
delay = "20 ms"
wire.loss = {loss}
queue = {{ kind = "tail-drop", limit = "1000 packets" }}
[[traffic]]
name = "bulk"
kind = "bulk"
flows = 5
tcp = {{ preset = "sack", receive_window = "30 kB" }}
"#
    ))
}

#[test]
fn goodput_is_what_arrived_in_order_and_a_flow_without_progress_is_told_of() {
    // A window of 20 segments in a buffer of 1000: nothing is lost, all is in order, and a round
    // trip of at most 5 windows is no stall.
    let calm = five_flows_that_lose("0.0", 50);
    let received = metric(&calm, "bulk.received_rate");
    let goodput = metric(&calm, "bulk.goodput");
    assert_eq!(goodput, received);
    assert_eq!(metric(&calm, "bulk.stalls"), 0.0);
    let wait = metric(&calm, "bulk.ack_wait_max");
    assert!((0.04..0.2).contains(&wait), "{wait}");
    // When six of ten packets are lost, a segment is lost four times in a row once in eight
    // times: timeouts of 1, 2, 4 and 8 s then pass before the acknowledgement advances.
    let stuck = five_flows_that_lose("0.6", 50);
    assert!(metric(&stuck, "bulk.stalls") > 5.0);
    assert!(metric(&stuck, "bulk.ack_wait_max") > 15.0);
    // Over the last second, of flows with a few segments in flight and holes among them, some of
    // what arrived is not delivered by the end.
    let brief = five_flows_that_lose("0.1", 299);
    let share = metric(&brief, "bulk.goodput") / metric(&brief, "bulk.received_rate");
    assert!((0.8..1.0).contains(&share), "{share}");
}

#[test]
fn goodput_exceeds_the_link_in_no_phase() {
    // A gap that closes just after a phase began releases what had arrived before it.
    let phases: Vec<String> = (1..40)
        .map(|i| format!("\"{} ms\"", 2000 + 200 * i))
        .collect();
    let result = run(&format!(
        r#"
duration = "10 s"
warmup = "2 s"
phases = [{}]
[bottleneck]
rate = "10 Mbit/s"
delay = "50 ms"
queue = {{ kind = "tail-drop", limit = "30 packets" }}
[[traffic]]
name = "bulk"
kind = "bulk"
flows = 2
tcp = "sack"
"#,
        phases.join(", ")
    ));
    // 1460 of 1500 B, and a packet at either end of 200 ms.
    let most = 10e6 * 1460.0 / 1500.0 + 2.0 * 1460.0 * 8.0 / 0.2;
    for (name, value) in &result.metrics {
        if name.ends_with("goodput") {
            assert!(*value <= most, "{name}: {value}");
        }
    }
}

#[test]
fn what_many_sources_of_one_host_offer_reaches_the_queue() {
    // Forty times the link's rate: 39 of 40 packets are lost, and a packet waits for a buffer of
    // 100 at most. Nothing to speak of waits at the host.
    let result = run(r#"
duration = "60 s"
warmup = "10 s"
[bottleneck]
rate = "1 Mbit/s"
delay = "10 ms"
queue = { kind = "tail-drop", limit = "100 packets" }
[[traffic]]
name = "cbr"
kind = "cbr"
flows = 40
rate = "1 Mbit/s"
packet = "1500 B"
"#);
    let loss = metric(&result, "loss");
    assert!((loss - 0.975).abs() < 0.001, "{loss}");
    let delay = metric(&result, "cbr.one_way_delay_p99");
    assert!(delay < 1.25, "{delay}");
    let wait = metric(&result, "cbr.host_wait_max");
    assert!(wait < 0.002, "{wait}");
}

#[test]
fn flows_use_the_rate_that_a_link_rises_to() {
    let result = run(r#"
duration = "40 s"
warmup = "20 s"
[bottleneck]
rate = "1 Mbit/s"
delay = "10 ms"
queue = { kind = "tail-drop", limit = "200 packets" }
rate_changes = [{ at = "10 s", rate = "100 Mbit/s" }]
[[traffic]]
name = "bulk"
kind = "bulk"
flows = 20
tcp = "sack"
"#);
    let utilization = metric(&result, "utilization");
    assert!(utilization > 0.95, "{utilization}");
}

#[test]
fn without_slow_start_a_transfer_takes_as_many_round_trips_as_windows_that_grow_by_a_segment() {
    // Each acknowledgement adds 1 / cwnd segments (RFC 5681, equation 3), so a round trip adds nearly one.
    let segments = 280;
    let (mut cwnd, mut sent, mut rounds) = (10.0_f64, 0, 0);
    while sent < segments {
        let flight = cwnd as usize;
        (0..flight).for_each(|_| cwnd += 1.0 / cwnd);
        sent += flight;
        rounds += 1;
    }
    assert!(rounds > 10, "slow start would take 5");
    let result = run(&format!(
        r#"
duration = "20 s"
host_jitter = "0 s"
[bottleneck]
rate = "10 Gbit/s"
delay = "50 ms"
queue = {{ kind = "tail-drop", limit = "10000 packets" }}
[[traffic]]
name = "one"
kind = "transfer"
size = "{} B"
tcp = {{ preset = "sack", delayed_ack = false, initial_ssthresh = 10 }}
return_delay = "50 ms"
"#,
        segments * 1460
    ));
    // The handshake takes another one.
    let expected = 0.1 * f64::from(rounds + 1);
    let took = metric(&result, "one.completion_time_mean");
    assert!((expected..expected + 0.01).contains(&took), "{took}");
}
