//! Calls, on/off sources, games and constant-rate UDP through the engine: what their receivers
//! get, and what is said about it.

use crate::common::{metric, run, run_replication};
use redtail_core::Span;
use redtail_traffic::e_model::{mos, r_factor};
use redtail_traffic::voip::Codec;

/// A link of 1 Mbit/s and 20 ms with these keys more, and this traffic.
fn link(more: &str, traffic: &str) -> String {
    format!(
        r#"
duration = "60 s"
warmup = "10 s"
[bottleneck]
rate = "1 Mbit/s"
delay = "20 ms"
queue = {{ kind = "tail-drop", limit = "20 packets" }}
{more}
{traffic}
"#
    )
}

const CALL: &str = "[[traffic]]\nname = \"call\"\nkind = \"voip\"\n";

fn near(found: f64, expected: f64, tolerance: f64) {
    assert!(
        (found - expected).abs() <= tolerance,
        "{found}, not {expected} +- {tolerance}"
    );
}

#[test]
fn a_call_over_an_idle_link_has_its_delay_and_its_full_score() {
    let result = run(&link("", CALL));
    // 200 B take 0.16 ms at 10 Mbit/s of access, 1.6 ms at the bottleneck and 0.16 ms of exit.
    let delay = 0.020 + 0.000_16 + 0.001_6 + 0.000_16;
    near(metric(&result, "call.one_way_delay_mean"), delay, 1e-9);
    for quantile in ["p50", "p95", "p99"] {
        let found = metric(&result, &format!("call.one_way_delay_{quantile}"));
        near(found, delay, 1e-3 * delay); // three significant digits
    }
    assert_eq!(metric(&result, "call.jitter"), 0.0);
    assert_eq!(metric(&result, "call.late"), 0.0);
    assert_eq!(metric(&result, "call.end_to_end_loss"), 0.0);
    // A packet fills in 20 ms and waits 60 ms at the receiver.
    let ear = Span::from_secs_f64(delay + 0.080);
    let r = r_factor(ear, 0.0, Codec::G711.impairment());
    near(metric(&result, "call.r_factor"), r, 1e-9);
    near(metric(&result, "call.mos"), mos(r), 1e-9);
    assert!(mos(r) > 4.3, "{}", mos(r));
}

#[test]
fn losses_on_the_wire_lower_the_score_as_the_codec_bears_them() {
    for (key, codec) in [
        ("g711", Codec::G711),
        ("g711-plain", Codec::G711Plain),
        ("g729", Codec::G729),
        ("g723", Codec::G723),
    ] {
        let call = format!("{CALL}codec = \"{key}\"\n");
        let result = run(&link("wire.loss = 0.05", &call));
        let loss = metric(&result, "call.end_to_end_loss");
        // 1,667 packets or more are sent: four standard errors of a share of 5 %, exceeded with
        // probability 6e-5, and the seed is fixed.
        near(loss, 0.05, 4.0 * (0.05 * 0.95 / 1667.0_f64).sqrt());
        let size = (codec.payload().as_u64() + 40) as f64 * 8.0;
        let network = 0.020 + size / 1e6 + 2.0 * size / 1e7;
        let fixed = codec.interval() + codec.look_ahead() + Span::from_ms(60);
        let ear = Span::from_secs_f64(network + fixed.as_secs_f64());
        let r = r_factor(ear, loss, codec.impairment());
        near(metric(&result, "call.r_factor"), r, 1e-6);
    }
}

#[test]
fn the_worst_call_is_shown_beside_the_mean_of_all() {
    // The second host is far off: 300 ms more.
    let calls = format!("{CALL}flows = 2\naccess_delay = [\"0 s\", \"300 ms\"]\n");
    let result = run(&link("", &calls));
    let score = |more: u64| {
        let ear = Span::from_us(20_000 + 1_920 + 80_000) + Span::from_ms(more);
        mos(r_factor(ear, 0.0, Codec::G711.impairment()))
    };
    near(metric(&result, "call.mos_min"), score(300), 1e-9);
    let mean = (score(0) + score(300)) / 2.0;
    near(metric(&result, "call.mos"), mean, 1e-9);
}

#[test]
fn packets_that_outlast_the_buffer_are_late_and_count_as_lost() {
    // Beside an on/off flow of 4 Mbit/s that fills the queue for half a second in each: 20 packets
    // of 1500 B are 240 ms, more than the buffer's 60.
    let bursts = r#"
[[traffic]]
name = "burst"
kind = "on-off"
rate = "4 Mbit/s"
packet = "1500 B"
on = "500 ms"
off = "500 ms"
start = "1 s"
"#;
    let result = run(&link("", &format!("{CALL}start = \"0 s\"\n{bursts}")));
    let late = metric(&result, "call.late");
    let loss = metric(&result, "call.end_to_end_loss");
    // Half of the time the queue is full, and it is 60 ms long for 180 ms more: what is not lost
    // then is late.
    assert!((0.1..0.7).contains(&late), "{late}");
    assert!(loss > 0.0 && loss < 0.5, "{loss}");
    let missing = 1.0 - (1.0 - loss) * (1.0 - late);
    let ear = Span::from_us(20_000 + 1_920 + 80_000);
    let r = r_factor(ear, missing, Codec::G711.impairment());
    near(metric(&result, "call.r_factor"), r, 1e-6);
    assert!(metric(&result, "call.jitter") > 0.0);
    assert!(metric(&result, "call.one_way_delay_p95") > 0.2);
}

#[test]
fn quantiles_of_the_delay_are_those_of_the_packets_themselves() {
    // Two packets of 1250 B enter at once, every 40 ms: the second waits 10 ms for the first.
    let pair = r#"
[[traffic]]
name = "pair"
kind = "cbr"
flows = 2
rate = "250 kbit/s"
packet = "1250 B"
start = "1.02 s" # so that no pair is under way at the end
hosts = 2
"#;
    let result = run(&link("", pair));
    let (first, second) = (0.020 + 0.010 + 0.002, 0.020 + 0.020 + 0.002);
    let delay = |which: &str| metric(&result, &format!("pair.one_way_delay_{which}"));
    near(delay("mean"), (first + second) / 2.0, 1e-9);
    near(delay("p50"), first, 1e-3 * first);
    near(delay("p95"), second, 1e-3 * second);
}

#[test]
fn only_what_is_sent_in_the_period_counts() {
    let early = format!("{CALL}start = \"1 s\"\nstop = \"10 s\"\n");
    let result = run(&link("", &early));
    for name in ["mos", "jitter", "one_way_delay_mean", "end_to_end_loss"] {
        assert_eq!(result.metric(&format!("call.{name}")), None, "{name}");
    }
    // Joining at 20 s and leaving at 21 s: 50 packets.
    let brief = format!("{CALL}start = \"20 s\"\nstop = \"21 s\"\n");
    let result = run(&link("", &brief));
    near(metric(&result, "utilization"), 50.0 * 0.0016 / 50.0, 1e-12);
    assert!(metric(&result, "call.mos") > 4.3);
}

#[test]
fn on_off_sources_send_what_they_should_and_the_same_past_another_queue() {
    let sources = r#"
[[traffic]]
name = "burst"
kind = "on-off"
flows = 20
rate = "50 kbit/s"
packet = "250 B"
on = "exponential mean 500 ms"
off = "exponential mean 1 s"
"#;
    let tail_drop = run(&link("", sources));
    let codel = link("", sources).replace(
        r#"{ kind = "tail-drop", limit = "20 packets" }"#,
        r#"{ kind = "codel", limit = "1000 packets" }"#,
    );
    let codel = run(&codel);
    // 20 sources on a third of the time, in 50 s: about 667 periods, whose lengths vary by their
    // mean; five standard errors of the share are some 25 %.
    near(metric(&tail_drop, "utilization"), 1.0 / 3.0, 0.25 / 3.0);
    let sent = |result| metric(result, "utilization") / (1.0 - metric(result, "loss"));
    near(sent(&tail_drop), sent(&codel), 1e-3);
    let other = run_replication(&link("", sources), 1);
    assert_ne!(sent(&other), sent(&tail_drop));
}

#[test]
fn a_game_goes_both_ways() {
    let game = r#"
[bottleneck.return]
rate = "1 Mbit/s"
delay = "20 ms"
queue = { kind = "tail-drop", limit = "20 packets" }
[[traffic]]
name = "server"
kind = "game"
flows = 10
[[traffic]]
name = "client"
kind = "game"
sender = "client"
direction = "reverse"
flows = 10
"#;
    let result = run(&link("", game));
    let euler = 0.577_215_664_9;
    let server = 8.0 * (148.0 + 36.0 * euler) / (0.055 + 0.006 * euler) * 10.0;
    let client = 8.0 * (73.0 + 5.7 * euler) / 0.040 * 10.0;
    // Some 8,600 server packets whose size varies by 46 B of 169 and whose gaps by 8 ms of 58, and
    // 12,500 of clients by 7 B of 76: five standard errors, exceeded with probability 6e-7.
    let share = |prefix: &str, rate: f64, deviation: f64| {
        near(
            metric(&result, &format!("{prefix}utilization")),
            rate / 1e6,
            deviation * rate / 1e6,
        );
    };
    share(
        "",
        server,
        5.0 * (0.27_f64.powi(2) + 0.14_f64.powi(2)).sqrt() / 8600_f64.sqrt(),
    );
    share("return.", client, 5.0 * 0.1 / 12_500_f64.sqrt());
    for name in ["server", "client"] {
        let delay = metric(&result, &format!("{name}.one_way_delay_p50"));
        assert!((0.020..0.030).contains(&delay), "{name}: {delay}");
        assert_eq!(result.metric(&format!("{name}.mos")), None);
    }
}
