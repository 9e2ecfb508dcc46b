//! Connections that arrive by themselves.

use crate::common::{metric, run, run_replication};

fn arrivals(link: &str, group: &str) -> String {
    format!(
        r#"
duration = "100 s"
[bottleneck]
rate = "{link}"
delay = "10 ms"
queue = {{ kind = "tail-drop", limit = "50 packets" }}
[[traffic]]
name = "crowd"
kind = "arrivals"
size = "10 kB"
{group}
"#
    )
}

#[test]
fn each_arrival_is_a_connection_with_one_response_from_start_to_stop() {
    let group = "users = 3\ngap = \"100 ms\"\nstart = \"10 s\"\nstop = \"20 s\"";
    let result = run(&arrivals("10 Mbit/s", group));
    // The first a gap after the start, none at the stop.
    for name in ["connections", "responses"] {
        assert_eq!(metric(&result, &format!("crowd.{name}")), 3.0 * 99.0);
    }
    assert_eq!(metric(&result, "crowd.unanswered"), 0.0);
    let bits = 3.0 * 99.0 * 80_000.0;
    assert!((metric(&result, "crowd.goodput") / (bits / 100.0) - 1.0).abs() < 1e-12);
}

#[test]
fn they_come_whatever_became_of_those_before_them() {
    // 10 kB every 100 ms is 0.8 Mbit/s; a tenth of that is not carried at 0.1 Mbit/s.
    let group = "gap = \"exponential mean 100 ms\"\nstop = \"50 s\"";
    let asked = |link: &str, replication| {
        let result = run_replication(&arrivals(link, group), replication);
        metric(&result, "crowd.connections")
    };
    let (fast, slow) = (asked("10 Mbit/s", 0), asked("100 kbit/s", 0));
    assert_eq!(fast, slow, "an open loop");
    // Poisson with mean 500: within 5 standard deviations (false-alarm rate 6e-7).
    assert!((fast - 500.0).abs() < 5.0 * 500.0_f64.sqrt(), "{fast}");
    assert_ne!(fast, asked("10 Mbit/s", 1), "other replications draw anew");
}

/// A handshake and a response of one segment take two round trips, of 20 ms at one host and of 1020
/// ms at the other. The share of the other is a half, within 5 standard deviations of a binomial
/// (false-alarm rate 6e-7).
#[test]
fn each_arrival_is_at_one_of_the_hosts() {
    let group = "gap = \"exponential mean 100 ms\"\nreturn_delay = [\"10 ms\", \"1010 ms\"]\nstop = \"50 s\"";
    let text = arrivals("1 Gbit/s", group).replace("10 kB", "1 kB");
    let result = run(&text);
    let mean = metric(&result, "crowd.response_time_mean");
    let far = (mean - 2.0 * 0.020) / (2.0 * 1.0);
    let spread = 0.5 / metric(&result, "crowd.responses").sqrt();
    assert!((far - 0.5).abs() < 5.0 * spread, "{far}");
}
