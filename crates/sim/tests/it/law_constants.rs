//! A changed constant of a law changes results in the direction that its source says.

use crate::common::{metric, run};
use redtail_sim::RunResult;

/// A path, and how long a flow on it is measured.
struct Path {
    rate: &'static str,
    delay: &'static str,
    queue: &'static str,
    duration: &'static str,
    warmup: &'static str,
    flows: u32,
    random_loss: f64,
}

/// 20 Mbit/s and 20 ms, which are 34 packets, with a long buffer.
const LONG_BUFFER: Path = Path {
    rate: "20 Mbit/s",
    delay: "20 ms",
    queue: r#"{ kind = "tail-drop", limit = "400 packets" }"#,
    duration: "40 s",
    warmup: "10 s",
    flows: 1,
    random_loss: 0.0,
};

/// The same with a third of the path's packets as buffer: the factor of a reduction decides how long the link idles.
const SHORT_BUFFER: Path = Path {
    queue: r#"{ kind = "tail-drop", limit = "10 packets" }"#,
    ..LONG_BUFFER
};

/// The same with losses that no queue causes.
const RANDOM_LOSS: Path = Path {
    random_loss: 0.001,
    ..LONG_BUFFER
};

/// 100 Mbit/s and 50 ms, with a tenth of the path's packets as buffer: the growth decides how long the link idles.
const LONG_PATH: Path = Path {
    rate: "100 Mbit/s",
    delay: "50 ms",
    queue: r#"{ kind = "tail-drop", limit = "40 packets" }"#,
    ..LONG_BUFFER
};

/// The first seconds of a flow on a long path.
const START: Path = Path {
    queue: r#"{ kind = "tail-drop", limit = "300 packets" }"#,
    rate: "100 Mbit/s",
    duration: "4 s",
    warmup: "0 s",
    ..LONG_BUFFER
};

/// A queue that marks above 20 packets.
const MARKS: Path = Path {
    queue: r#"{ kind = "step", limit = "400 packets", threshold = "20 packets" }"#,
    ..LONG_BUFFER
};

/// What flows of `tcp`, the keys of its table, reach.
fn with(path: &Path, tcp: &str) -> RunResult {
    let Path {
        rate,
        delay,
        queue,
        duration,
        warmup,
        flows,
        random_loss,
    } = path;
    run(&format!(
        r#"
duration = "{duration}"
warmup = "{warmup}"
[bottleneck]
rate = "{rate}"
delay = "{delay}"
wire.loss = {random_loss}
queue = {queue}
[[traffic]]
name = "a"
kind = "bulk"
flows = {flows}
tcp = {{ {tcp} }}
"#
    ))
}

/// Two runs must differ by `least` at least in `name`: the first has more.
fn more(name: &str, least: f64, path: &Path, first: &str, second: &str) {
    let [first_value, second_value] = [first, second].map(|tcp| metric(&with(path, tcp), name));
    assert!(
        first_value > second_value + least,
        "{name}: {first_value} with {first}, {second_value} with {second}"
    );
}

/// A table of growth with one constant, beside the preset.
fn growth(preset: &str, constants: &str) -> String {
    format!("preset = \"{preset}\", growth = {{ {constants} }}")
}

#[test]
fn a_deeper_reduction_lets_a_link_with_a_short_buffer_idle() {
    // A window reduced to beta W fills the path with buffer B and product P if beta (P + B) >= P (Appenzeller, Keslassy
    // and McKeown 2004, section 2, for beta = 1/2).
    for (preset, gentle, deep) in [
        ("sack", "beta = 0.9", "beta = 0.5"),
        ("cubic", "beta = 0.7", "beta = 0.3"),
        ("linux", "beta = 0.7", "beta = 0.3"),
        (
            "linux",
            "kind = \"linux-reno\", beta = 0.9",
            "kind = \"linux-reno\", beta = 0.5",
        ),
        ("bic", "beta = 0.8", "beta = 0.3"),
        ("htcp", "beta_max = 0.8", "beta_max = 0.5"),
        (
            "illinois",
            "beta_min = 0.1, beta_max = 0.1",
            "beta_min = 0.1, beta_max = 0.5",
        ),
        ("scalable", "b = 0.125", "b = 0.8"),
        ("yeah", "delta = 3", "delta = 1"),
        ("prague", "beta = 0.9", "beta = 0.5"),
    ] {
        let (gentle, deep) = (growth(preset, gentle), growth(preset, deep));
        more("utilization", 0.03, &SHORT_BUFFER, &gentle, &deep);
    }
}

#[test]
fn faster_growth_fills_a_long_path_sooner() {
    for (preset, fast, slow) in [
        ("cubic", "c = 4.0", "c = 0.4"), // RFC 9438, section 5.1
        ("linux", "c = 4.0", "c = 0.4"),
        ("htcp", "delta_l = \"1 s\"", "delta_l = \"100 s\""),
        ("illinois", "alpha_max = 10.0", "alpha_max = 1.0"),
        ("scalable", "a = 0.1", "a = 0.01"),
    ] {
        let (fast, slow) = (growth(preset, fast), growth(preset, slow));
        more("utilization", 0.005, &LONG_PATH, &fast, &slow);
    }
}

#[test]
fn ledbat_keeps_its_target_of_delay() {
    for target in [25.0, 60.0] {
        let tcp = growth("ledbat", &format!("target = \"{target} ms\""));
        let delay = 1000.0 * metric(&with(&LONG_BUFFER, &tcp), "queue_delay_mean");
        assert!(
            (delay - target).abs() < 0.05 * target,
            "{delay} of {target} ms"
        );
    }
    // With a smaller gain it takes longer to get there.
    more(
        "queue_delay_mean",
        0.003,
        &LONG_BUFFER,
        &growth("ledbat", "gain = 1.0"),
        &growth("ledbat", "gain = 0.05"),
    );
}

#[test]
fn vegas_keeps_between_alpha_and_beta_segments_in_the_queue() {
    for segments in [3.0, 12.0] {
        let tcp = growth(
            "vegas",
            &format!("alpha = {segments:.1}, beta = {segments:.1}"),
        );
        let queue = metric(&with(&LONG_BUFFER, &tcp), "queue_length_mean");
        assert!((queue - segments).abs() < 1.0, "{queue} of {segments}");
    }
}

#[test]
fn copa_keeps_segments_in_inverse_proportion_to_delta_in_the_queue() {
    // Section 2.3: 1.25 / delta on average.
    for (kind, delta) in [("copa", 0.5), ("copa-default", 0.5), ("copa-default", 0.1)] {
        let tcp = growth("copa", &format!("kind = \"{kind}\", delta = {delta}"));
        let queue = metric(&with(&LONG_BUFFER, &tcp), "queue_length_mean");
        let expected = 1.25 / delta;
        assert!(
            (queue - expected).abs() < 0.2 * expected,
            "{kind}: {queue} of {expected}"
        );
    }
}

#[test]
fn the_window_gain_of_bbr_bounds_the_queue_of_several_flows() {
    let several = Path {
        flows: 4,
        ..LONG_BUFFER
    };
    more(
        "queue_delay_mean",
        0.01,
        &several,
        &growth("bbr", "cwnd_gain = 3.0"),
        &growth("bbr", "cwnd_gain = 2.0"),
    );
    for preset in ["bbr3", "bbr3-google"] {
        let tight = growth(preset, "cwnd_gain = 1.2, up_cwnd_gain = 1.2");
        more(
            "queue_delay_mean",
            0.005,
            &several,
            &growth(preset, "cwnd_gain = 2.0"),
            &tight,
        );
    }
}

#[test]
fn bbr3_loses_up_to_its_threshold() {
    let several = Path {
        flows: 4,
        queue: r#"{ kind = "tail-drop", limit = "20 packets" }"#,
        ..LONG_BUFFER
    };
    for preset in ["bbr3", "bbr3-google"] {
        let (more_loss, usual) = (
            growth(preset, "loss_thresh = 0.2"),
            growth(preset, "loss_thresh = 0.02"),
        );
        more("loss", 0.01, &several, &more_loss, &usual);
    }
}

#[test]
fn a_law_that_doubts_a_random_loss_less_idles_more() {
    more(
        "utilization",
        0.05,
        &RANDOM_LOSS,
        &growth("veno", "random_factor = 0.8"),
        &growth("veno", "random_factor = 0.3"),
    );
    // Without an estimate of the bandwidth a loss leaves two segments.
    more(
        "utilization",
        0.2,
        &RANDOM_LOSS,
        &growth("westwood", "least_interval = \"50 ms\""),
        &growth("westwood", "least_interval = \"100 s\""),
    );
    // A flow has the rate of a flow of Reno with the round-trip time RTT_0.
    more(
        "utilization",
        0.1,
        &RANDOM_LOSS,
        &growth("hybla", "rtt0 = \"5 ms\""),
        &growth("hybla", "rtt0 = \"25 ms\""),
    );
}

#[test]
fn slow_start_ends_later_with_laxer_thresholds() {
    let slow_start = |preset: &str, constants: &str| {
        format!("preset = \"{preset}\", slow_start = {{ {constants} }}")
    };
    let long = Path {
        queue: r#"{ kind = "tail-drop", limit = "1000 packets" }"#,
        ..START
    };
    let css = |rounds: u32| slow_start("cubic", &format!("css_rounds = {rounds}"));
    more("queue_delay_mean", 0.01, &long, &css(5), &css(1));
    // Without its checks it ends with losses.
    let unchecked = slow_start("linux", "delays = false, trains = false");
    more(
        "loss",
        0.002,
        &START,
        &unchecked,
        &slow_start("linux", "trains = true"),
    );
    more(
        "loss",
        0.002,
        &START,
        &slow_start("hybla", "rtt0 = \"5 ms\""),
        &slow_start("hybla", "rtt0 = \"25 ms\""),
    );
}

#[test]
fn answers_to_marks_follow_their_constants() {
    // RFC 8511, section 3.1: a larger factor keeps more of the window.
    let abe = |beta: f64| {
        format!("preset = \"sack\", ecn = true, ecn_reduction = \"abe\", abe_beta = {beta}")
    };
    more("utilization", 0.03, &MARKS, &abe(0.8), &abe(0.2));
    // RFC 8257, section 4.2: a gain of 1 follows each round, so that reductions are deeper.
    let dctcp = |g: f64| format!("preset = \"dctcp\", dctcp_g = {g}");
    more(
        "queue_length_mean",
        2.0,
        &MARKS,
        &dctcp(0.0625),
        &dctcp(1.0),
    );
    // Section 2.4.4 of Prague's draft: with a longer virtual round trip the window grows more slowly.
    let prague = |round: &str| {
        format!(
            "preset = \"prague\", rtt_transition = 10, growth = {{ least_round = \"{round}\" }}"
        )
    };
    more(
        "queue_length_mean",
        2.0,
        &MARKS,
        &prague("25 ms"),
        &prague("1 s"),
    );
}

#[test]
fn timers_of_loss_recovery_follow_their_constants() {
    let lossy = Path {
        random_loss: 0.1,
        ..LONG_BUFFER
    };
    // RFC 6298, rule 2.3: with a larger K a timeout comes later, so that in the same time there are fewer.
    let rto = |k: f64| format!("preset = \"sack\", min_rto = \"1 ms\", rto_k = {k}");
    more("a.timeouts", 40.0, &lossy, &rto(4.0), &rto(40.0));
}
