//! Times and orders computed by hand, to the picosecond.

use crate::common::{metric, run};
use redtail_core::{Span, Time};
use redtail_sim::RunResult;

/// The round-trip time that the only flow has measured by the end.
fn round_trip(result: &RunResult) -> Span {
    let series = result.flow_series.as_ref().expect("it was asked for");
    let seconds = series.srtt_s.last().expect("there are samples");
    Span::from_secs_f64(*seconds)
}

/// Transfers `size`, in segments of 1500 B on the link and acknowledgements of
/// 40 B, over the network that `topology` describes.
fn transfer(topology: &str, size: &str, initial_window: u32) -> RunResult {
    run(&format!(
        r#"
duration = "2 s"
{topology}
[[traffic]]
name = "one"
kind = "transfer"
size = "{size}"
access_rate = "100 Mbit/s"
access_delay = "3 ms"
exit_rate = "13 Mbit/s"
exit_delay = "500 us"
return_delay = "11 ms"
tcp = {{ handshake = false, delayed_ack = false, initial_window = {initial_window} }}
[series]
interval = "100 ms"
windows = true
"#
    ))
}

const BOTTLENECK: &str = r#"
[bottleneck]
rate = "7 Mbit/s"
delay = "20 ms"
queue = { kind = "tail-drop", limit = "10 packets" }
"#;

#[test]
fn a_packet_takes_access_link_bottleneck_and_exit_link_one_after_the_other() {
    let ps = 120_000_000 // 12,000 bit at 100 Mbit/s
        + 3_000_000_000
        + 1_714_285_714 // at 7 Mbit/s, to the nearest picosecond
        + 20_000_000_000
        + 923_076_923 // at 13 Mbit/s, to the nearest picosecond
        + 500_000_000
        + 11_000_000_000;
    let result = transfer(BOTTLENECK, "1460 B", 1);
    assert_eq!(round_trip(&result), Span::from_ps(ps));
    assert_eq!(metric(&result, "queue_delay_mean"), 0.0);
    // The transfer is complete when that one segment is acknowledged.
    assert_eq!(
        metric(&result, "one.completion_time_mean"),
        ps as f64 * 1e-12
    );
    assert_eq!(metric(&result, "one.completed"), 1.0);
}

/// From the sender to the receiver, for a packet of 1500 B: picoseconds.
const DATA: u64 =
    120_000_000 + 3_000_000_000 + 1_714_285_714 + 20_000_000_000 + 923_076_923 + 500_000_000;
/// The same for a packet of 40 B: 320 bit at 100, 7 and 13 Mbit/s.
const CONTROL: u64 =
    3_200_000 + 3_000_000_000 + 45_714_286 + 20_000_000_000 + 24_615_385 + 500_000_000;
/// From the receiver back to the sender.
const BACK: u64 = 11_000_000_000;

#[test]
fn a_transfer_takes_a_handshake_a_first_byte_and_a_round_trip() {
    let result = run(&format!(
        r#"
duration = "2 s"
{BOTTLENECK}
[[traffic]]
name = "bulk"
kind = "bulk"
start = "1999 ms"
[[traffic]]
name = "one"
kind = "transfer"
size = ["1460 B", "2920 B"]
flows = 2
start = "100 ms"
access_rate = "100 Mbit/s"
access_delay = "3 ms"
exit_rate = "13 Mbit/s"
exit_delay = "500 us"
return_delay = "11 ms"
tcp = {{ delayed_ack = false, initial_window = 2 }}
"#
    ));
    let rows = result.transfers;
    assert_eq!(rows.group, [1, 1]);
    assert_eq!(rows.flow, [1, 2]);
    assert_eq!(rows.size_bytes, [1460, 2920]);
    assert_eq!(rows.start_s, [0.1, 0.1]);
    let seconds = |ps: u64| Span::from_ps(ps).as_secs_f64();
    // The second flow's SYN follows the first's through the bottleneck; the first
    // has the links for itself.
    let handshake = CONTROL + BACK;
    assert_eq!(rows.handshake_time_s[0], seconds(handshake));
    assert_eq!(rows.first_byte_time_s[0], seconds(handshake + DATA));
    // The FIN, which goes with the last data, takes no time of its own.
    assert_eq!(rows.completion_time_s[0], seconds(handshake + DATA + BACK));
    assert_eq!(rows.handshake_time_s[1], seconds(handshake + 45_714_286));
    assert_eq!(rows.retransmissions, [0, 0]);
    assert_eq!(rows.timeouts, [0.0, 0.0]);
}

#[test]
fn a_syn_with_timestamps_has_the_options_that_linux_gives_it() {
    // 60 B: 40 of headers, timestamps and SACK-permitted 12, MSS and window scale 8 (tcp_options_write).
    let result = run(r#"
duration = "1 s"
[bottleneck]
rate = "1 Mbit/s"
delay = "20 ms"
queue = { kind = "tail-drop", limit = "10 packets" }
[[traffic]]
name = "one"
kind = "transfer"
size = "1448 B"
access_rate = "100 Mbit/s"
exit_rate = "10 Mbit/s"
return_delay = "20 ms"
host_jitter = "0 s"
tcp = "linux"
"#);
    // 480 bit at 100, 1 and 10 Mbit/s, and 40 ms.
    let expected = 4.8e-6 + 480e-6 + 48e-6 + 0.04;
    let measured = metric(&result, "one.handshake_time_mean");
    assert!((measured - expected).abs() < 1e-12, "{measured}");
}

#[test]
fn metrics_of_transfers_are_means_of_their_times() {
    let mut one = transfer(BOTTLENECK, "1460 B", 1);
    assert!(one.transfers.handshake_time_s[0].is_nan());
    assert_eq!(one.metric("one.handshake_time_mean"), None);
    let first = one.transfers.first_byte_time_s.pop();
    assert_eq!(one.metric("one.first_byte_time_mean"), first);
    assert_eq!(first, Some(Span::from_ps(DATA).as_secs_f64()));
    let completion = one.transfers.completion_time_s.pop();
    assert_eq!(one.metric("one.completion_time_mean"), completion);
}

#[test]
fn a_connection_closes_with_three_segments_more_at_most() {
    // SYN, data with FIN, and the acknowledgement of the peer's FIN; two the other way.
    let result = run(&format!(
        r#"
duration = "2 s"
{BOTTLENECK}
[[traffic]]
name = "one"
kind = "transfer"
size = "1460 B"
access_rate = "100 Mbit/s"
tcp = {{ delayed_ack = false }}
"#
    ));
    assert_eq!(result.bottleneck_packets, 3);
    assert_eq!(metric(&result, "one.completed"), 1.0);
    assert_eq!(metric(&result, "one.timeouts"), 0.0);
}

#[test]
fn a_slow_reader_sets_the_pace() {
    // 100 kB at 200 kbit/s: four seconds, of which the buffer saves the reading of the
    // last 10 kB, and the wait for the window to reopen costs nothing of it.
    let result = run(&format!(
        r#"
duration = "10 s"
{BOTTLENECK}
[[traffic]]
name = "one"
kind = "transfer"
size = "100 kB"
tcp = {{ read_rate = "200 kbit/s", receive_window = "10 kB" }}
"#
    ));
    let took = metric(&result, "one.completion_time_mean");
    assert!((3.6..3.75).contains(&took), "{took}");
    assert_eq!(metric(&result, "one.timeouts"), 0.0);
    assert_eq!(metric(&result, "one.retransmissions"), 0.0);
}

#[test]
fn a_transfer_that_does_not_end_in_time_is_not_complete() {
    let result = transfer(BOTTLENECK, "10 MB", 1);
    assert_eq!(metric(&result, "one.completed"), 0.0);
    assert_eq!(result.metric("one.completion_time_mean"), None);
}

#[test]
fn a_return_link_adds_its_transmission_and_delay() {
    let topology = format!(
        "{BOTTLENECK}[bottleneck.return]\nrate = \"1 Mbit/s\"\ndelay = \"4 ms\"\n\
         queue = {{ kind = \"tail-drop\", limit = \"10 packets\" }}\n"
    );
    let with = round_trip(&transfer(&topology, "1460 B", 1));
    let without = round_trip(&transfer(BOTTLENECK, "1460 B", 1));
    // 320 bit at 1 Mbit/s.
    assert_eq!(with - without, Span::from_us(320) + Span::from_ms(4));
}

#[test]
fn a_chain_adds_up_its_hops() {
    let topology = r#"
[[chain.hop]]
rate = "7 Mbit/s"
delay = "20 ms"
queue = { kind = "tail-drop", limit = "10 packets" }
[[chain.hop]]
rate = "3 Mbit/s"
delay = "9 ms"
queue = { kind = "tail-drop", limit = "10 packets" }
"#;
    let chain = round_trip(&transfer(topology, "1460 B", 1));
    let first = round_trip(&transfer(BOTTLENECK, "1460 B", 1));
    // 12,000 bit at 3 Mbit/s.
    assert_eq!(chain - first, Span::from_ms(4) + Span::from_ms(9));
}

#[test]
fn the_second_of_two_packets_waits_for_the_first() {
    let result = transfer(BOTTLENECK, "2920 B", 2);
    // They arrive 120 us apart at the bottleneck, which takes 1,714,285,714 ps for each.
    let wait = 1_714_285_714 - 120_000_000;
    let mean = metric(&result, "queue_delay_mean");
    let expected = Span::from_ps(wait).as_secs_f64() / 2.0;
    assert!((mean - expected).abs() < 1e-15, "{mean} {expected}");
    let std = metric(&result, "queue_delay_std");
    assert!((std - expected).abs() < 1e-12, "{std}");
    // One waited, of 2 s.
    let length = metric(&result, "queue_length_mean");
    assert!((length - expected).abs() < 1e-15, "{length}");
    // The link was busy for two packets' time.
    let utilization = metric(&result, "utilization");
    assert!((utilization - 0.001_714_285_714).abs() < 1e-15);
}

/// UDP packets of 1250 B, one per millisecond from the start, which reach the
/// bottleneck 1 ms after they were sent.
const PER_MILLISECOND: &str = r#"
[[traffic]]
name = "steady"
kind = "cbr"
rate = "10 Mbit/s"
packet = "1250 B"
start = "0 s"
access_rate = "10 Mbit/s"
"#;

#[test]
fn a_departure_makes_room_for_an_arrival_at_the_same_instant() {
    // The link takes 1 ms for each packet and never rests. One more packet gets
    // in between and fills the only place; from then on each arrival falls on the
    // instant of a departure.
    let result = run(&format!(
        r#"
duration = "1 s"
[bottleneck]
rate = "10 Mbit/s"
delay = "1 ms"
queue = {{ kind = "tail-drop", limit = "1 packet" }}
{PER_MILLISECOND}
[[traffic]]
name = "extra"
kind = "cbr"
rate = "1 kbit/s"
packet = "1250 B"
start = "500 us"
access_rate = "10 Mbit/s"
"#
    ));
    assert_eq!(metric(&result, "loss"), 0.0);
    // The place is taken from 1.5 ms on.
    let length = metric(&result, "queue_length_mean");
    assert!((length - 0.9985).abs() < 1e-12, "{length}");
}

/// One packet per millisecond into a link that takes 1 s for each.
fn overwhelmed(head: &str, tail: &str) -> RunResult {
    run(&format!(
        r#"
duration = "10 ms"
{head}
[bottleneck]
rate = "10 kbit/s"
delay = "1 ms"
queue = {{ kind = "tail-drop", limit = "1 packet" }}
{PER_MILLISECOND}
{tail}
"#
    ))
}

#[test]
fn the_measurement_period_includes_its_first_instant_and_not_its_last() {
    // Arrivals at 1, 2, ... 9, 10 ms: the first is transmitted, the second waits,
    // all others are lost; those at 5 to 9 ms in [5, 10).
    let result = overwhelmed("warmup = \"5 ms\"", "");
    assert_eq!(result.consecutive_losses[0], [0, 0, 0, 0, 1]);
}

#[test]
fn a_sample_shows_the_state_before_the_events_of_its_instant() {
    let result = overwhelmed("", "[series]\ninterval = \"1 ms\"\n");
    let series = result.queue_series.expect("it was asked for");
    let times: Vec<f64> = (0..10)
        .map(|i| (Time::ZERO + Span::from_ms(i)).as_secs_f64())
        .collect();
    assert_eq!(series.time_s, times);
    // The packet that arrives at 2 ms waits; the sample of 2 ms was earlier.
    let waiting = [0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];
    assert_eq!(series.packets, waiting);
}

#[test]
fn a_constant_rate_source_sends_until_just_before_its_stop() {
    // 1500 B at 1 Mbit/s: every 12 ms, at 1000, 1012, ... ms.
    let sent = |stop: &str| {
        let result = run(&format!(
            r#"
duration = "3 s"
{BOTTLENECK}
[[traffic]]
name = "udp"
kind = "cbr"
rate = "1 Mbit/s"
packet = "1500 B"
start = "1 s"
stop = "{stop}"
"#
        ));
        result.bottleneck_packets
    };
    assert_eq!(sent("1001 ms"), 1);
    assert_eq!(sent("1600 ms"), 50); // the 51st would leave at 1600 ms
    assert_eq!(sent("1600.001 ms"), 51);
}

#[test]
fn a_stopped_flow_sends_no_data_any_more_and_closes() {
    // A window of 2 segments, slow start 2, 4, 8, 16 within round trips of about 200 ms.
    let result = run(r#"
duration = "20 s"
[bottleneck]
rate = "100 Mbit/s"
delay = "100 ms"
queue = { kind = "tail-drop", limit = "1000 packets" }
[[traffic]]
name = "bulk"
kind = "bulk"
access_rate = "1 Gbit/s"
return_delay = "100 ms"
start = "1 s"
stop = "1500 ms"
tcp = { delayed_ack = false, initial_window = 2 }
[series]
interval = "100 ms"
windows = true
"#);
    // SYN at 1 s, data from 1.2 s on (2) and 1.4 s on (4); none at 1.6 s.
    assert_eq!(metric(&result, "bulk.data_segments"), 6.0);
    // And the SYN, the FIN and the acknowledgement of the peer's.
    assert_eq!(result.bottleneck_packets, 9);
    assert_eq!(metric(&result, "bulk.timeouts"), 0.0);
    let series = result.flow_series.as_ref().expect("it was asked for");
    assert_eq!(series.in_flight_bytes.last(), Some(&0.0));
}

#[test]
fn a_stopped_flow_still_delivers_all_that_it_sent() {
    // Through losses: what was sent by the stop, retransmitted or not, arrives once.
    let result = run(r#"
duration = "60 s"
[bottleneck]
rate = "1 Mbit/s"
delay = "50 ms"
queue = { kind = "tail-drop", limit = "5 packets" }
[[traffic]]
name = "bulk"
kind = "bulk"
flows = 10
stop = ["10 s", "uniform 12..15 s"]
return_delay = "50 ms"
"#);
    let data = metric(&result, "bulk.data_segments");
    let repeated = metric(&result, "bulk.retransmissions");
    assert!(repeated > 10.0, "there were losses: {repeated}");
    // Distinct data by segment: all of it has been delivered, since the run goes on long after.
    let delivered = metric(&result, "bulk.goodput") * 60.0 / 8.0 / 1460.0;
    assert!(
        (delivered - (data - repeated)).abs() < 1e-6,
        "{delivered} of {data} - {repeated}"
    );
    assert!(
        metric(&result, "utilization") < 0.3,
        "it is silent after 15 s"
    );
}
