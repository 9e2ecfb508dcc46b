//! Head drop, step, REM, BLUE, SRED, AVQ, CHOKe and GSP in simulation: their published
//! steady states.
//!
//! Fixed seeds; what is asserted is the steady state with room for the swing that a single
//! seed shows.

use crate::common::{metric, run};
use redtail_sim::RunResult;

/// `flows` bulk flows with `tcp` over a bottleneck of 10 Mbit/s and round trips of 90 to
/// 150 ms, and what else `more` says.
fn bulk(queue: &str, flows: u32, tcp: &str, more: &str) -> RunResult {
    run(&format!(
        r#"
duration = "160 s"
warmup = "60 s"
[bottleneck]
rate = "10 Mbit/s"
delay = "40 ms"
queue = {queue}
[[traffic]]
name = "ftp"
kind = "bulk"
flows = {flows}
tcp = {tcp}
access_delay = ["5 ms", "25 ms", "45 ms", "65 ms"]
return_delay = "45 ms"
start = "uniform 0..5 s"
{more}
"#
    ))
}

/// Asserts that `name` lies within `bounds`.
#[track_caller]
fn assert_within(result: &RunResult, name: &str, bounds: std::ops::RangeInclusive<f64>) {
    let value = metric(result, name);
    assert!(bounds.contains(&value), "{name}: {value}, not {bounds:?}");
}

const SACK: &str = r#""sack""#;
const ECN: &str = r#"{ preset = "sack", ecn = true }"#;
/// A flow that does not slow down, at the rate of the link.
const BLAST: &str = r#"
[[traffic]]
name = "udp"
kind = "cbr"
rate = "10 Mbit/s"
packet = "1500 B"
dither = 0.5
"#;

#[test]
fn head_drop_keeps_its_limit_and_fills_the_link() {
    // Lakshman et al. 1996: no more is lost than with tail drop, and nobody is starved.
    let tail = bulk(
        r#"{ kind = "tail-drop", limit = "60 packets" }"#,
        20,
        SACK,
        "",
    );
    let head = bulk(
        r#"{ kind = "head-drop", limit = "60 packets" }"#,
        20,
        SACK,
        "",
    );
    assert_within(&head, "utilization", 0.99..=1.0);
    // 60 packets of 1.2 ms, and what is left of the one in transmission.
    assert_within(&head, "queue_delay_p99", 0.0..=61.0 * 0.0012);
    let loss = metric(&head, "loss") / metric(&tail, "loss");
    assert!((0.8..=1.1).contains(&loss), "{loss}");
    assert!(metric(&head, "fairness") >= metric(&tail, "fairness"));
}

#[test]
fn step_holds_dctcp_at_its_threshold() {
    // Alizadeh et al. 2010, section 3: a few flows swing just below and above K.
    let queue = r#"{ kind = "step", limit = "300 packets", threshold = "20 packets" }"#;
    let result = bulk(queue, 4, r#""dctcp""#, "");
    assert_within(&result, "queue_length_mean", 14.0..=24.0);
    assert_within(&result, "queue_length_std", 0.0..=5.0);
    assert_within(&result, "utilization", 0.999..=1.0);
    assert_within(&result, "loss", 0.0..=0.0);
}

#[test]
fn rem_settles_at_its_target_whatever_the_load() {
    // Athuraliya et al. 2001: "match rate, clear buffer": the backlog at which the price
    // rests is b*, 20 packets, for any number of flows.
    for (flows, ecn, tcp) in [
        (20, true, ECN),
        (40, true, ECN),
        (20, false, SACK),
        (40, false, SACK),
    ] {
        let queue = format!(r#"{{ kind = "rem", limit = "300 packets", ecn = {ecn} }}"#);
        let result = bulk(&queue, flows, tcp, "");
        assert_within(&result, "queue_length_mean", 18.0..=22.0);
        assert_within(&result, "utilization", 0.98..=1.0);
    }
}

#[test]
fn blue_settles_between_loss_and_idleness() {
    // Feng et al. 2002, section III: the probability that keeps the link busy without
    // overflow is found, and kept; it grows with the load.
    let mut marks = Vec::new();
    for flows in [20, 40] {
        let queue = r#"{ kind = "blue", limit = "100 packets", ecn = true }"#;
        let result = bulk(queue, flows, ECN, "");
        assert_within(&result, "utilization", 0.99..=1.0);
        assert_within(&result, "loss", 0.0..=0.001);
        assert_within(&result, "queue_length_mean", 10.0..=60.0);
        marks.push(metric(&result, "mark"));
    }
    assert!(marks[1] > 2.0 * marks[0], "{marks:?}");
}

#[test]
fn sred_holds_the_backlog_whatever_the_load() {
    // Ott et al. 1999, section IV: the backlog hardly depends on the number of flows. With
    // 45 Mbit/s there are 450 packets on the way, and a third of the limit is 200.
    let lengths = [40, 80, 160].map(|flows| {
        let result = run(&format!(
            r#"
duration = "100 s"
warmup = "50 s"
[bottleneck]
rate = "45 Mbit/s"
delay = "60 ms"
queue = {{ kind = "sred", limit = "600 packets" }}
[[traffic]]
name = "ftp"
kind = "bulk"
flows = {flows}
tcp = "sack"
return_delay = "60 ms"
start = "uniform 0..5 s"
"#
        ));
        assert_within(&result, "utilization", 0.999..=1.0);
        metric(&result, "queue_length_mean")
    });
    for length in lengths {
        assert!((170.0..=210.0).contains(&length), "{lengths:?}");
    }
}

#[test]
fn avq_holds_its_utilisation() {
    // Kunniyur and Srikant 2001, section 2: packets come at gamma C, 0.98.
    for (flows, ecn, tcp) in [
        (20, true, ECN),
        (40, true, ECN),
        (20, false, SACK),
        (40, false, SACK),
    ] {
        let queue = format!(r#"{{ kind = "avq", limit = "100 packets", ecn = {ecn} }}"#);
        let result = bulk(&queue, flows, tcp, "");
        assert_within(&result, "utilization", 0.975..=0.985);
        assert_within(&result, "queue_length_mean", 0.0..=25.0);
    }
}

#[test]
fn choke_keeps_a_flow_that_does_not_slow_down_from_taking_all() {
    // Pan et al. 2000, section III: RED leaves TCP next to nothing beside UDP at the rate
    // of the link; CHOKe gives it several times as much.
    let thresholds = r#"limit = "150 packets", min_th = "30 packets", max_th = "90 packets""#;
    for flows in [20, 40] {
        let choke = format!(r#"{{ kind = "choke", {thresholds} }}"#);
        let choke = bulk(&choke, flows, SACK, BLAST);
        let red = format!(r#"{{ kind = "red", spacing = "uniform", {thresholds} }}"#);
        let red = bulk(&red, flows, SACK, BLAST);
        let (choke, red) = (metric(&choke, "ftp.goodput"), metric(&red, "ftp.goodput"));
        assert!(red < 2e6 && choke > 3.0 * red, "{flows}: {choke}, {red}");
    }
}

#[test]
fn gsp_settles_at_its_threshold_whatever_the_load() {
    // Lautenschlaeger and Francini 2015: the adaptive interval keeps the queue about the
    // threshold, where the basic one is overrun by many flows.
    for flows in [20, 40] {
        let queue = r#"{ kind = "gsp", limit = "300 packets", threshold = "40 packets" }"#;
        let result = bulk(queue, flows, SACK, "");
        assert_within(&result, "queue_length_mean", 30.0..=44.0);
        assert_within(&result, "utilization", 0.999..=1.0);
        let queue = r#"{ kind = "gsp", limit = "300 packets", threshold = "40 packets", adaptive = false }"#;
        let result = bulk(queue, flows, SACK, "");
        assert_within(&result, "queue_length_mean", 80.0..=300.0);
    }
}
