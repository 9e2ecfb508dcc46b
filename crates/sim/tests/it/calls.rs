//! Video calls with a rate controller through the engine: alone, when the rate of the link changes, beside TCP, beside
//! each other, and what is said about them.
//!
//! The links are those of RFC 8867: 1 Mbit/s for each call, 50 ms one way, a tail-drop queue of 300 ms
//! (sections 4 and 5).

use crate::common::{metric, metrics_of, run, run_replication};
use redtail_sim::RunResult;

const CONTROLLERS: [&str; 2] = ["gcc", "scream"];

/// A link of this rate, with these keys more, and this traffic; the way back has 10 Mbit/s.
fn link(rate: &str, more: &str, traffic: &str) -> String {
    link_with(
        rate,
        r#"{ kind = "tail-drop", limit = "300 ms" }"#,
        more,
        traffic,
    )
}

fn link_with(rate: &str, queue: &str, more: &str, traffic: &str) -> String {
    format!(
        r#"
duration = "120 s"
warmup = "60 s"
[bottleneck]
rate = "{rate}"
delay = "50 ms"
queue = {queue}
[bottleneck.return]
rate = "10 Mbit/s"
delay = "50 ms"
queue = {{ kind = "tail-drop", limit = "300 ms" }}
{more}
{traffic}
"#
    )
}

fn call(controller: &str, more: &str) -> String {
    format!(
        "[[traffic]]\nname = \"call\"\nkind = \"call\"\ncontroller = \"{controller}\"\n{more}\n"
    )
}

const BULK: &str =
    "[[traffic]]\nname = \"tcp\"\nkind = \"bulk\"\ntcp = \"sack\"\nstart = \"20 s\"\n";

#[track_caller]
fn within(result: &RunResult, name: &str, least: f64, most: f64) {
    let found = metric(result, name);
    assert!(
        (least..=most).contains(&found),
        "{name} is {found}, not {least} to {most}"
    );
}

#[test]
fn a_call_alone_takes_most_of_the_link() {
    for controller in CONTROLLERS {
        let result = run(&link(
            "1 Mbit/s",
            "",
            &call(controller, "media = \"one-way\""),
        ));
        within(&result, "utilization", 0.8, 1.0);
        assert_eq!(metric(&result, "call.end_to_end_loss"), 0.0, "{controller}");
        assert_eq!(metric(&result, "call.freezes"), 0.0, "{controller}");
        within(&result, "call.frame_rate", 29.0, 31.0);
    }
}

#[test]
fn the_queue_of_a_call_alone_is_short_with_gcc_and_bounded_by_its_target_with_scream() {
    let delays = CONTROLLERS.map(|controller| {
        let result = run(&link(
            "1 Mbit/s",
            "",
            &call(controller, "media = \"one-way\""),
        ));
        metric(&result, "queue_delay_p95")
    });
    // MMSys 2016, figure 6: some tens of ms; RFC 8298: at most QDELAY_TARGET_HI, 400 ms, of which this
    // queue holds 300.
    assert!(delays[0] < 0.1, "{delays:?}");
    assert!(delays[1] < 0.3, "{delays:?}");
}

#[test]
fn a_call_follows_the_rate_of_the_link() {
    let changes = r#"
[[bottleneck.rate_changes]]
at = "80 s"
rate = "1 Mbit/s"
[[bottleneck.rate_changes]]
at = "120 s"
rate = "3 Mbit/s"
"#;
    for controller in CONTROLLERS {
        let traffic = call(controller, "media = \"one-way\"\nmax_rate = \"2.5 Mbit/s\"");
        let text = link("3 Mbit/s", changes, &traffic).replace(
            "\"120 s\"\nwarmup = \"60 s\"",
            "\"200 s\"\nwarmup = \"50 s\"\nphases = [\"80 s\", \"100 s\", \"120 s\", \"160 s\"]",
        );
        let result = run(&text);
        // 2.2 Mbit/s and more of 3; then all of 1 Mbit/s, without a full queue after 20 s; then again.
        within(&result, "phase1.call.utilization", 0.6, 1.0);
        within(&result, "phase3.call.utilization", 0.7, 1.0);
        within(&result, "phase3.loss", 0.0, 0.001);
        within(&result, "phase5.call.utilization", 0.6, 1.0);
    }
}

#[test]
fn a_call_keeps_a_share_beside_tcp_behind_tail_drop() {
    // MMSys 2016, section 5.3: with the adaptive threshold, a fair share beside a long TCP flow, which a
    // fixed one would not leave it. RFC 8298, section 4.1.2.2, has the same aim.
    for controller in CONTROLLERS {
        for queue in ["150 ms", "300 ms"] {
            let queue = format!(r#"{{ kind = "tail-drop", limit = "{queue}" }}"#);
            let traffic = format!("{}{BULK}", call(controller, "media = \"one-way\""));
            let result = run(&link_with("2 Mbit/s", &queue, "", &traffic));
            within(&result, "call.bitrate", 0.5e6, 1.5e6);
            within(&result, "tcp.goodput", 0.4e6, 1.5e6);
        }
    }
}

#[test]
fn calls_share_a_link() {
    for controller in CONTROLLERS {
        let traffic = call(controller, "media = \"one-way\"\nflows = 2");
        let result = run(&link("2 Mbit/s", "", &traffic));
        // With everything for one call, the index would be 0.5.
        within(&result, "call.fairness", 0.8, 1.0);
        within(&result, "utilization", 0.7, 1.0);
    }
}

#[test]
fn each_direction_has_its_own_rate() {
    for controller in CONTROLLERS {
        let text = link("5 Mbit/s", "", &call(controller, ""))
            .replace("rate = \"10 Mbit/s\"", "rate = \"600 kbit/s\"");
        let result = run(&text);
        within(&result, "call.bitrate", 1.3e6, 1.55e6);
        within(&result, "call.back_bitrate", 0.4e6, 0.6e6);
        let (good, poor) = (
            metric(&result, "call.quality"),
            metric(&result, "call.back_quality"),
        );
        assert!(good > poor + 0.2, "{good} and {poor}");
        assert!(metric(&result, "call.back_one_way_delay_mean") > 0.05);
    }
}

#[test]
fn a_call_one_way_has_reports_alone_on_its_way_back() {
    let result = run(&link("1 Mbit/s", "", &call("gcc", "media = \"one-way\"")));
    let back = metrics_of(&result, "call.");
    assert!(
        back.iter().all(|(name, _)| !name.contains("back_")),
        "{back:?}"
    );
    // A report of 84 B in a second and a few more.
    within(
        &result,
        "return.call.utilization",
        0.5 * 672.0 / 1e7,
        5.0 * 672.0 / 1e7,
    );
}

#[test]
fn an_idle_path_delays_a_call_by_nothing_but_the_path() {
    let traffic = call("gcc", "max_rate = \"500 kbit/s\"");
    let result = run(&link("10 Mbit/s", "", &traffic));
    // 50 ms, at most 1240 B at 10 Mbit/s and twice at 100 Mbit/s, and packets that a group brings at once.
    within(&result, "call.one_way_delay_mean", 0.0500, 0.0525);
    within(&result, "call.back_one_way_delay_mean", 0.0500, 0.0525);
    within(&result, "call.bitrate", 0.45e6, 0.55e6);
    within(&result, "call.audio_quality", 4.2, 4.5);
}

#[test]
fn losses_above_a_tenth_reduce_the_rate_of_gcc_and_few_do_not() {
    let rate = |loss: &str| {
        let more = "media = \"one-way\"\nstart_rate = \"1 Mbit/s\"";
        let text = link("10 Mbit/s", "", &call("gcc", more)).replacen(
            "delay = \"50 ms\"",
            &format!("delay = \"50 ms\"\nwire.loss = {loss}"),
            1,
        );
        metric(&run(&text), "call.bitrate")
    };
    let (few, many) = (rate("0.005"), rate("0.3"));
    assert!(few > 1.3e6, "{few}");
    // 150 kbit/s is the least that it sends.
    assert!((0.05e6..0.2e6).contains(&many), "{many}");
}

#[test]
fn marks_take_the_place_of_losses() {
    let queue = r#"{ kind = "codel", limit = "1000 packets", ecn = true }"#;
    let traffic = call("scream", "media = \"one-way\"\necn = true");
    let result = run(&link_with("1 Mbit/s", queue, "", &traffic));
    assert_eq!(metric(&result, "call.end_to_end_loss"), 0.0);
    within(&result, "call.mark", 0.001, 0.2);
    within(&result, "utilization", 0.7, 1.0);
}

#[test]
fn callers_have_hosts_of_their_own_so_that_a_queue_that_counts_hosts_sees_people() {
    let bitrate = |more: &str| {
        let bulk = BULK.replace("\"bulk\"", "\"bulk\"\nflows = 8");
        let traffic = format!(
            "{}{bulk}",
            call("gcc", &format!("media = \"one-way\"\nflows = 3\n{more}"))
        );
        let queue = r#"{ kind = "cake" }"#;
        metric(
            &run(&link_with("4 Mbit/s", queue, "", &traffic)),
            "call.bitrate",
        )
    };
    // Three callers and the downloads' host have a quarter of the link each. On one host, the callers have
    // half of it together.
    let (own, shared) = (bitrate(""), bitrate("hosts = 1"));
    assert!(own > 1.15 * shared, "{own} and {shared}");
}

#[test]
fn a_call_is_a_function_of_its_seed() {
    for controller in CONTROLLERS {
        let text = link(
            "1 Mbit/s",
            "",
            &format!("{}{BULK}", call(controller, "flows = 2")),
        );
        let once = run_replication(&text, 0);
        assert_eq!(once.metrics, run_replication(&text, 0).metrics);
        assert_ne!(once.metrics, run_replication(&text, 1).metrics);
    }
}

#[test]
fn a_call_that_stops_sends_nothing_more_and_is_judged_by_the_time_it_lasted() {
    for controller in CONTROLLERS {
        let result = run(&link("1 Mbit/s", "", &call(controller, "stop = \"90 s\"")));
        // Half of the period.
        within(&result, "utilization", 0.4, 0.51);
        within(&result, "call.bitrate", 0.8e6, 1.01e6);
        within(&result, "call.frozen", 0.0, 0.02);
    }
}
