//! BBR in the simulator, against what is known of it in a deep buffer.
//!
//! M. Hock, R. Bless and M. Zitterbart, "Experimental Evaluation of BBR Congestion
//! Control", IEEE ICNP 2017, section III: a flow alone keeps hardly any queue; several
//! overestimate their rates until the window of 2 BDP bounds them, so that a BDP waits.

use crate::common::{metric, run};
use redtail_sim::RunResult;

/// Segments of 1500 B that 1 Mbit/s carries in 40 ms.
const BDP: f64 = 1e6 * 0.04 / 8.0 / 1500.0;

/// Bulk flows through `rate` Mbit/s, 40 ms and a buffer of nine BDP, measured from the
/// first to the second of `seconds`.
fn bulk(tcp: &str, flows: u32, rate: u32, seconds: (u32, u32)) -> RunResult {
    run(&format!(
        r#"
duration = "{} s"
warmup = "{} s"
[bottleneck]
rate = "{rate} Mbit/s"
delay = "20 ms"
queue = {{ kind = "tail-drop", limit = "{} packets" }}
[[traffic]]
name = "ftp"
kind = "bulk"
flows = {flows}
tcp = "{tcp}"
start = "uniform 0..5 s"
return_delay = "20 ms"
"#,
        seconds.1,
        seconds.0,
        30 * rate
    ))
}

#[test]
fn a_flow_alone_uses_the_link_and_keeps_the_queue_short() {
    for tcp in ["bbr", "bbr3"] {
        let result = bulk(tcp, 1, 10, (20, 120));
        let utilization = metric(&result, "utilization");
        assert!(utilization > 0.95, "{tcp}: {utilization}");
        let queue = metric(&result, "queue_length_mean");
        assert!(queue < 10.0 * BDP / 2.0, "{tcp}: {queue}");
        assert_eq!(metric(&result, "loss"), 0.0, "{tcp}");
    }
    // CUBIC fills the same buffer.
    let cubic = bulk("cubic", 1, 10, (20, 120));
    assert!(metric(&cubic, "queue_length_mean") > 200.0);
}

#[test]
fn two_flows_share_fairly() {
    for tcp in ["bbr", "bbr3"] {
        let result = bulk(tcp, 2, 10, (100, 400));
        let fairness = metric(&result, "ftp.fairness");
        assert!(fairness > 0.98, "{tcp}: {fairness}");
        assert!(metric(&result, "utilization") > 0.95);
        assert_eq!(metric(&result, "loss"), 0.0, "{tcp}");
    }
}

#[test]
fn several_flows_of_version_1_keep_about_a_bdp_waiting() {
    // Beside 2 BDP the window has three quanta, of 4 segments at 50 Mbit/s, made even,
    // and what acknowledgements aggregate, a few: up to 25 of 333 segments a flow.
    let result = bulk("bbr", 2, 100, (40, 120));
    let queue = metric(&result, "queue_length_mean") / (100.0 * BDP);
    assert!((1.0..=1.15).contains(&queue), "{queue} BDP");
}
