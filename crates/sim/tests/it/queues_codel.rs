//! CoDel in simulation: the kernel's own results, and its target.

use crate::common::{metric, run, run_replication};

/// The scenario `B_codel` of the Linux reference: 10 bulk CUBIC flows over 10 Mbit/s and
/// 50 ms there and back.
fn b_codel(queue: &str) -> String {
    format!(
        r#"
duration = "120 s"
warmup = "30 s"
[bottleneck]
rate = "10 Mbit/s"
delay = "25 ms"
queue = {queue}
[[traffic]]
name = "bulk"
kind = "bulk"
flows = 10
tcp = "linux"
start = "uniform 0..4 s"
access_rate = "100 Mbit/s"
return_delay = "25 ms"
"#
    )
}

/// The mean of each metric over 8 replications.
fn means<const N: usize>(text: &str, names: [&str; N]) -> [f64; N] {
    let mut sums = [0.0; N];
    for replication in 0..8 {
        let result = run_replication(text, replication);
        for (sum, name) in sums.iter_mut().zip(names) {
            *sum += metric(&result, name) / 8.0;
        }
    }
    sums
}

#[test]
fn ten_cubic_flows_do_as_they_do_in_the_kernel() {
    // Means over 3 seeds on Linux 6.1, and the agreement asked for. The loss depends on
    // CUBIC in whole segments: with RFC 9438's it is 3.7 %.
    let names = [
        "utilization",
        "goodput",
        "loss",
        "queue_length_mean",
        "queue_length_std",
    ];
    let reference = [0.999_564, 9_648_050.8, 0.029_34, 10.3874, 4.194_167];
    let allowed = [
        0.015 * reference[0],
        0.015 * reference[1],
        0.15 * reference[2],
        3.0,
        0.35 * reference[4],
    ];
    for queue in [
        r#"{ kind = "codel" }"#,
        r#"{ kind = "codel", inverse_sqrt = "newton" }"#,
    ] {
        let found = means(&b_codel(queue), names);
        for (i, name) in names.iter().enumerate() {
            let off = (found[i] - reference[i]).abs();
            assert!(
                off <= allowed[i],
                "{queue}: {name} {} against {}",
                found[i],
                reference[i]
            );
        }
    }
}

#[test]
fn the_delay_of_few_bulk_flows_goes_to_the_target() {
    // RFC 8289, section 4.3: the standing queue, the least delay of an interval, is held
    // at the target. Of the delay over time that is no mean but a low quantile, and the
    // median stays within a few targets.
    for ecn in [false, true] {
        for target in [5, 20] {
            let text = b_codel(&format!(
                r#"{{ kind = "codel", target = "{target} ms", ecn = {ecn} }}"#
            ));
            let text = text.replace(
                "\"linux\"",
                &format!("{{ preset = \"linux\", ecn = {ecn} }}"),
            );
            let result = run(&text);
            let median = metric(&result, "queue_delay_p50") * 1e3 / f64::from(target);
            assert!(
                (0.5..3.0).contains(&median),
                "{median} targets of {target} ms, ecn {ecn}"
            );
            assert!(metric(&result, "utilization") > 0.97);
            let (loss, mark) = (metric(&result, "loss"), metric(&result, "mark"));
            assert!(
                if ecn {
                    mark > 0.005
                } else {
                    mark == 0.0 && loss > 0.005
                },
                "{loss} {mark}"
            );
        }
    }
}

#[test]
fn cobalt_holds_the_delay_and_stops_a_flood() {
    // As CoDel with flows that listen.
    let result = run(&b_codel(r#"{ kind = "cobalt" }"#));
    let median = metric(&result, "queue_delay_p50") / 5e-3;
    assert!((0.5..3.0).contains(&median), "{median} targets");
    assert!(metric(&result, "utilization") > 0.97);
    // 15 Mbit/s of UDP into 10, of which 625 packets a second must go. CoDel's signals
    // number (t / 0.2 s)^2 after t, so that it takes 12.5 s to drop as many, and until then
    // the buffer is full. BLUE adds 1/256 for an overflow, 200 times a second at most.
    let delay = |kind: &str| {
        let result = run(&format!(
            r#"
duration = "11 s"
warmup = "6 s"
[bottleneck]
rate = "10 Mbit/s"
delay = "10 ms"
queue = {{ kind = "{kind}", limit = "1000 packets" }}
[[traffic]]
name = "flood"
kind = "cbr"
rate = "15 Mbit/s"
packet = "1000 B"
dither = 0.5
"#
        ));
        (
            metric(&result, "queue_delay_mean"),
            metric(&result, "utilization"),
        )
    };
    let (codel, _) = delay("codel");
    let (cobalt, utilization) = delay("cobalt");
    println!("{codel} {cobalt} {utilization}");
    assert!(codel > 0.5, "{codel}");
    assert!(cobalt < 0.5 * codel, "{cobalt} against {codel}");
    assert!(utilization > 0.95, "{utilization}");
}
