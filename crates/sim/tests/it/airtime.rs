//! Frames, and a medium that both directions share: numbers computed by hand.
//!
//! Packets have 1208 B, with 42 B more in a frame: 10,000 bit, which take 100 us at 100 Mbit/s and 1 ms at 10 Mbit/s. A frame
//! takes 100 us besides. A packet reaches its queue 1 us after it was sent.

use crate::common::{metric, run};
use redtail_sim::RunResult;

#[track_caller]
fn assert_near(found: f64, expected: f64) {
    let error = (found - expected).abs();
    assert!(error <= 1e-9 * expected.abs(), "{found} is not {expected}");
}

/// Packets of `group` every `gap_us`, in a direction.
fn cbr(group: &str, gap_us: f64, direction: &str) -> String {
    format!(
        r#"
[[traffic]]
name = "{group}"
kind = "cbr"
direction = "{direction}"
rate = "{} Mbit/s"
packet = "1208 B"
start = "0 s"
access_rate = "9664 Mbit/s"
"#,
        9664.0 / gap_us
    )
}

/// A link of 100 Mbit/s with these frames, a long queue, and further lines.
fn link(duration: &str, frames: &str, queue: &str, more: &str) -> String {
    let queue = if queue.is_empty() { FIFO } else { queue };
    format!(
        "\nduration = \"{duration}\"\n[bottleneck]\nrate = \"100 Mbit/s\"\ndelay = \"1 ms\"\nqueue = {queue}\n\
         airtime = {{ overhead = \"100 us\", {frames} }}\n{more}\n"
    )
}

const FIFO: &str = r#"{ kind = "tail-drop", limit = "100000 packets" }"#;
const RATES: &str = r#"rates = { far = "10 Mbit/s" }"#;

/// What a result says, but for the number of events.
fn without_events(mut result: RunResult) -> String {
    result.events = 0;
    format!("{result:?}")
}

#[test]
fn a_station_alone_sends_a_packet_in_each_frame_time() {
    let text = link("1 s", "aggregate_packets = 1", "", "") + &cbr("near", 100.0, "forward");
    let result = run(&text);
    // 200 us each, from 1 us on.
    assert_eq!(result.bottleneck_packets, 4999);
    assert_near(metric(&result, "utilization"), 1.0 - 1e-6);
}

#[test]
fn a_slow_station_holds_up_a_fast_one() {
    // 200 us and 1100 us in turn: each has 1 / (t1 + t2) packets in a second, whatever its rate.
    let frames = format!("aggregate_packets = 1, {RATES}");
    let text = link("1.3 s", &frames, "", "")
        + &cbr("near", 500.0, "forward")
        + &cbr("far", 500.0, "forward");
    let result = run(&text);
    assert_eq!(result.bottleneck_packets, 1000 + 999);
    assert_near(metric(&result, "near.utilization"), 0.2 / 1.3);
    assert_near(metric(&result, "far.utilization"), (1.1 - 1e-6) / 1.3);
}

#[test]
fn packets_of_a_frame_share_its_overhead() {
    let text = link("1 s", "aggregate_packets = 4", "", "") + &cbr("near", 100.0, "forward");
    let result = run(&text);
    // Frames of 1, 1, 2, 3 packets until 1101 us, then of 4 each 500 us.
    assert_eq!(
        result.bottleneck_packets,
        7 + 4 * ((1_000_000 - 1101) / 500)
    );
    // The limits of bytes and of time: 4 packets of 1250 B, and 400 us.
    for limit in [
        "aggregate_bytes = \"6249 B\"",
        "aggregate_time = \"499999 ns\"",
    ] {
        let text = link("1 s", limit, "", "") + &cbr("near", 100.0, "forward");
        assert_eq!(run(&text).bottleneck_packets, 7995, "{limit}");
    }
}

#[test]
fn a_queue_by_station_gives_longer_frames() {
    // Four packets of each in turn: 500 us and 4100 us. The period has 1000 such rounds, from wherever it begins.
    let queue = r#"{ kind = "drr", class = [
  { name = "near", match = [{ group = "near" }], quantum = "4832 B", queue = { kind = "tail-drop", limit = "100000 packets" } },
  { name = "far", quantum = "4832 B", queue = { kind = "tail-drop", limit = "100000 packets" } },
] }"#;
    let text = link("5.6 s", RATES, queue, "")
        .replace("\n[bottleneck]", "\nwarmup = \"1 s\"\n[bottleneck]")
        + &cbr("near", 500.0, "forward")
        + &cbr("far", 500.0, "forward");
    let result = run(&text);
    assert_near(metric(&result, "near.utilization"), 500.0 / 4600.0);
    assert_near(metric(&result, "far.utilization"), 4100.0 / 4600.0);
}

/// A return link on the same medium.
fn shared(rate: &str) -> String {
    format!(
        "medium = \"shared\"\nreturn = {{ rate = \"{rate}\", delay = \"1 ms\", queue = {FIFO} }}"
    )
}

#[test]
fn directions_that_always_have_packets_take_turns() {
    // 200 us and 1100 us in turn: as many frames each. The period has 1000 such rounds.
    let text = link("2.3 s", "aggregate_packets = 1", "", &shared("10 Mbit/s"))
        .replace("\n[bottleneck]", "\nwarmup = \"1 s\"\n[bottleneck]")
        + &cbr("down", 100.0, "forward")
        + &cbr("up", 100.0, "reverse");
    let result = run(&text);
    assert_near(metric(&result, "utilization"), 200.0 / 1300.0);
    assert_near(metric(&result, "return.utilization"), 1100.0 / 1300.0);
    // Without frames a packet is a transmission: half each at one rate, at which a packet takes 100 us.
    let text = text
        .replace("airtime = ", "# ")
        .replace("\"100 Mbit/s", "\"96640 kbit/s")
        .replace("\"10 Mbit/s", "\"96640 kbit/s");
    let result = run(&text);
    assert_near(metric(&result, "utilization"), 0.5);
    assert_near(metric(&result, "return.utilization"), 0.5);
}

#[test]
fn a_direction_alone_has_the_whole_medium() {
    // As a link of its own, to the byte: packets come every 100 us, and take 120.8 us.
    let text = format!(
        "\nduration = \"1 s\"\n[bottleneck]\nrate = \"80 Mbit/s\"\ndelay = \"1 ms\"\nqueue = {FIFO}\n{}\n",
        shared("10 Mbit/s")
    ) + &cbr("down", 100.0, "forward");
    let alone = run(&text.replace("medium = \"shared\"", ""));
    assert_eq!(without_events(run(&text)), without_events(alone));
}

#[test]
fn frames_of_one_packet_without_overhead_are_a_link() {
    let base = |frames: &str| {
        format!(
            r#"
duration = "20 s"
warmup = "5 s"
phases = ["10 s"]
[bottleneck]
rate = "7 Mbit/s"
delay = "10 ms"
queue = {{ kind = "red", limit = "60 packets", min_th = "10 packets", max_th = "30 packets" }}
{frames}
return = {{ rate = "1 Mbit/s", delay = "5 ms", queue = {{ kind = "fq-codel" }} }}
[[traffic]]
name = "ftp"
kind = "bulk"
flows = 4
tcp = "linux"
[[traffic]]
name = "up"
kind = "bulk"
direction = "reverse"
"#
        )
    };
    let frames =
        r#"airtime = { overhead = "0 s", packet_overhead = "0 B", aggregate_packets = 1 }"#;
    assert_eq!(
        without_events(run(&base(frames))),
        without_events(run(&base("")))
    );
}
