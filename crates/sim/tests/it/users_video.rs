//! Adaptive video over a link whose throughput is known.

use crate::common::{metric, run};
use redtail_sim::RunResult;

fn video(link: &str, times: &str, group: &str) -> RunResult {
    video_over("tail-drop", link, times, group)
}

fn video_over(queue: &str, link: &str, times: &str, group: &str) -> RunResult {
    run(&format!(
        r#"
{times}
[bottleneck]
rate = "{link}"
delay = "10 ms"
queue = {{ kind = "{queue}", limit = "1000 packets" }}
[[traffic]]
name = "tv"
kind = "video"
access_rate = "10 Mbit/s"
exit_rate = "10 Mbit/s"
return_delay = "10 ms"
tcp = {{ initial_window = 10 }}
{group}
"#
    ))
}

/// A segment is 400 packets of 1500 B, which the link sends in 4.8 s; before and behind these are a
/// request (10 ms; the way back takes no transmission), a packet on the access link and one on the
/// exit link (1.2 ms each) and 10 ms on the way. The window is never short: ten packets are 120 ms
/// of the link, and a round trip is 36 ms.
const SEGMENT: f64 = 4.8 + 0.0012 * 2.0 + 0.010 * 2.0;
/// SYN, and SYN-ACK of 40 B on three links.
const HANDSHAKE: f64 = 0.010 * 2.0 + 0.000_032 * 2.0 + 0.000_320;

#[test]
fn a_link_slower_than_the_lowest_bitrate_stalls_playback_as_computed() {
    let group = r#"
bitrates = ["1168 kbit/s"] # 584,000 B in 4 s
duration = "40 s"
"#;
    let result = video("1 Mbit/s", r#"duration = "60 s""#, group);
    let close = |name: &str, expected: f64| {
        let value = metric(&result, name);
        assert!(
            (value / expected - 1.0).abs() < 1e-9,
            "{name}: {value}, not {expected}"
        );
    };
    let segments = 10.0;
    let stalled = (segments - 1.0) * (SEGMENT - 4.0);
    let watched = stalled + segments * 4.0;
    close("tv.startup_delay_mean", HANDSHAKE + SEGMENT);
    close("tv.rebuffering_ratio", stalled / watched);
    close("tv.rebuffering_events", (segments - 1.0) / watched);
    close("tv.bitrate_mean", 1.168e6);
    assert_eq!(metric(&result, "tv.bitrate_switches"), 0.0);
    assert_eq!(metric(&result, "tv.responses"), segments);
    assert_eq!(metric(&result, "tv.connections"), 1.0);
}

#[test]
fn alone_a_user_watches_the_highest_bitrate_that_the_safety_factor_leaves() {
    // 5 Mbit/s carry 4.87 Mbit/s of payload, of which 0.85 is 4.14 Mbit/s and 0.95 is 4.62 Mbit/s.
    for (safety, expected) in [(0.85, 3e6), (0.95, 4.5e6)] {
        let times = "duration = \"200 s\"\nwarmup = \"100 s\"";
        let result = video("5 Mbit/s", times, &format!("safety = {safety}"));
        assert_eq!(metric(&result, "tv.bitrate_mean"), expected);
        assert_eq!(metric(&result, "tv.bitrate_switches"), 0.0);
        assert_eq!(metric(&result, "tv.rebuffering_ratio"), 0.0);
        assert!(result.metric("tv.startup_delay_mean").is_none(), "before");
    }
}

/// With a queue for each, two have at least 2.92 Mbit/s of payload each, of which 0.85 is 2.48 Mbit/s:
/// enough for 2 Mbit/s, and not even alone enough for 5.5.
#[test]
fn two_users_share_the_link() {
    let times = "duration = \"300 s\"\nwarmup = \"100 s\"";
    let group = r#"
users = 2
start = "uniform 0..10 s"
bitrates = ["1 Mbit/s", "2 Mbit/s", "5.5 Mbit/s"]
"#;
    let result = video_over("fq-codel", "6 Mbit/s", times, group);
    assert_eq!(metric(&result, "tv.bitrate_mean"), 2e6);
    assert_eq!(metric(&result, "tv.bitrate_switches"), 0.0);
    assert_eq!(metric(&result, "tv.rebuffering_ratio"), 0.0);
    // The buffers are full: what is watched is what comes.
    let goodput = metric(&result, "tv.goodput");
    assert!((goodput / 4e6 - 1.0).abs() < 2.0 * 4.0 / 200.0, "{goodput}");
}

/// BBA-0 has no bitrate of its own between 4.5 and 6 Mbit/s to stay at, and goes between
/// them so that on the average it takes what the link gives: 4.87 Mbit/s less a round trip of
/// some 36 ms for each segment of 4 s, 0.9 %. What the buffer may hold more or less at the end than at
/// the beginning, up to 10 of 500 s, is 2 %.
#[test]
fn the_buffer_algorithm_takes_what_the_link_gives() {
    let times = "duration = \"600 s\"\nwarmup = \"100 s\"";
    let result = video("5 Mbit/s", times, "algorithm = \"buffer\"");
    let bitrate = metric(&result, "tv.bitrate_mean");
    let payload = 5e6 * 1460.0 / 1500.0;
    assert!(
        bitrate > payload * 0.97 && bitrate < payload * 1.02,
        "{bitrate}"
    );
    assert!(metric(&result, "tv.bitrate_switches") > 0.0);
    assert_eq!(metric(&result, "tv.rebuffering_ratio"), 0.0);
    assert!(metric(&result, "utilization") > 0.98);
}

#[test]
fn users_who_leave_close_their_connections_and_others_go_on() {
    let group = "users = 4\nstart = \"uniform 0..5 s\"\nstop = [\"50 s\", \"200 s\"]";
    let times = "duration = \"100 s\"\nwarmup = \"60 s\"";
    let result = video("20 Mbit/s", times, group);
    assert_eq!(metric(&result, "tv.connections_mean"), 2.0);
    assert_eq!(metric(&result, "tv.rebuffering_ratio"), 0.0);
}
