//! BBR in the simulator, against what is known of it in a deep buffer.
//!
//! M. Hock, R. Bless and M. Zitterbart, "Experimental Evaluation of BBR Congestion
//! Control", IEEE ICNP 2017, section III: a flow alone keeps hardly any queue; several
//! overestimate their rates until the window of 2 BDP bounds them, so that a BDP waits.

mod common;

use common::{metric, run};
use redtail_sim::RunResult;

/// Segments of 1500 B that 10 Mbit/s carry in 40 ms.
const BDP: f64 = 10e6 * 0.04 / 8.0 / 1500.0;

/// Bulk flows through 10 Mbit/s, 40 ms and a buffer of nine BDP.
fn bulk(tcp: &str, flows: u32, seconds: (u32, u32)) -> RunResult {
    run(&format!(
        r#"
duration = "{} s"
warmup = "{} s"
[bottleneck]
rate = "10 Mbit/s"
delay = "20 ms"
queue = {{ kind = "tail-drop", limit = "300 packets" }}
[[traffic]]
name = "ftp"
kind = "bulk"
flows = {flows}
tcp = "{tcp}"
start = "uniform 0..5 s"
return_delay = "20 ms"
"#,
        seconds.1, seconds.0
    ))
}

#[test]
fn a_flow_alone_uses_the_link_and_keeps_the_queue_short() {
    for tcp in ["bbr", "bbr3"] {
        let result = bulk(tcp, 1, (20, 120));
        let utilization = metric(&result, "utilization");
        assert!(utilization > 0.95, "{tcp}: {utilization}");
        let queue = metric(&result, "queue_length_mean");
        assert!(queue < BDP / 2.0, "{tcp}: {queue}");
        assert_eq!(metric(&result, "loss"), 0.0, "{tcp}");
    }
    // CUBIC fills the same buffer.
    let cubic = bulk("cubic", 1, (20, 120));
    assert!(metric(&cubic, "queue_length_mean") > 200.0);
}

#[test]
fn two_flows_share_fairly() {
    for tcp in ["bbr", "bbr3"] {
        let result = bulk(tcp, 2, (100, 400));
        let fairness = metric(&result, "ftp.fairness");
        assert!(fairness > 0.98, "{tcp}: {fairness}");
        assert!(metric(&result, "utilization") > 0.95);
        assert_eq!(metric(&result, "loss"), 0.0, "{tcp}");
    }
}

#[test]
fn several_flows_of_version_1_keep_about_a_bdp_waiting() {
    let result = bulk("bbr", 2, (100, 400));
    let queue = metric(&result, "queue_length_mean");
    assert!((0.7 * BDP..1.5 * BDP).contains(&queue), "{queue} of {BDP}");
}
