//! The table of flows, the distributions and the time series agree with the metrics, which are counted
//! separately.

use redtail_sim::RunResult;

use crate::common::{metric, run};

const MIXED: &str = r#"
duration = "20 s"
warmup = "5 s"
[bottleneck]
rate = "5 Mbit/s"
delay = "10 ms"
queue = { kind = "red", limit = "50 packets", min_th = "5 packets", max_th = "15 packets", max_p = 0.1, w_q = 0.002, ecn = true }
[[traffic]]
name = "bulk"
kind = "bulk"
flows = 4
tcp = { preset = "sack", ecn = true }
[[traffic]]
name = "calls"
kind = "cbr"
rate = "200 kbit/s"
packet = "500 B"
flows = 2
[[traffic]]
name = "files"
kind = "transfer"
size = "200 kB"
flows = 3
tcp = "sack"
start = "uniform 6..8 s"
"#;

/// The values of a column in the rows of a group.
fn of_group(result: &RunResult, group: &str, values: &[f64]) -> Vec<f64> {
    let number = result.groups.iter().position(|name| name == group);
    let number = number.expect("there is such a group") as u32;
    let flows = result.flows.as_ref().expect("there is a table");
    let rows = flows.group.iter().zip(values);
    rows.filter(|(row, _)| **row == number)
        .map(|(_, &value)| value)
        .collect()
}

#[track_caller]
fn assert_close(found: f64, expected: f64) {
    assert!(
        (found - expected).abs() <= 1e-9 * expected.abs(),
        "{found}, not {expected}"
    );
}

#[test]
fn the_flows_of_a_group_add_up_to_its_metrics() {
    let result = run(MIXED);
    let flows = result.flows.as_ref().expect("there is a table");
    assert_eq!(flows.flow, (0..9).collect::<Vec<_>>());
    let sum = |group: &str, values| of_group(&result, group, values).iter().sum::<f64>();
    for group in ["bulk", "files"] {
        let bits = sum(group, &flows.delivered_bytes) * 8.0;
        assert_close(bits / 15.0, metric(&result, &format!("{group}.goodput")));
        let counted = [
            ("retransmissions", &flows.retransmissions),
            ("timeouts", &flows.timeouts),
        ];
        for (name, values) in counted {
            let expected = metric(&result, &format!("{group}.{name}"));
            assert_eq!(sum(group, values), expected);
        }
    }
    let lost = of_group(&result, "calls", &flows.lost_packets);
    let share = lost.iter().sum::<f64>() / sum("calls", &flows.sent_packets);
    let expected = metric(&result, "calls.end_to_end_loss");
    assert!(expected > 0.0);
    // Packets on their way at the ends of the period count in one of the two alone.
    assert!((share - expected).abs() < 0.01 * expected + 1e-3);
    let marked = sum("bulk", &flows.marked_packets);
    let share = marked / sum("bulk", &flows.sent_packets);
    let expected = metric(&result, "bulk.mark");
    assert!(expected > 0.0 && (share - expected).abs() < 0.02 * expected);
}

#[test]
fn a_flow_knows_its_round_trips_and_when_it_ended() {
    let result = run(MIXED);
    let flows = result.flows.as_ref().expect("there is a table");
    for i in 0..flows.flow.len() {
        if result.groups[flows.group[i] as usize] == "calls" {
            assert!(flows.rtt_mean_s[i].is_nan() && flows.retransmissions[i].is_nan());
            assert_eq!(flows.active_s[i], 15.0);
            continue;
        }
        assert!(flows.round_trip_s[i] > 0.0);
        assert!(flows.rtt_min_s[i] > flows.round_trip_s[i]);
        assert!(flows.rtt_mean_s[i] > flows.rtt_min_s[i]);
        assert!(flows.rtt_mean_s[i] < 1.0);
    }
    let completed = of_group(&result, "files", &flows.completion_time_s);
    assert_eq!(completed, result.transfers.completion_time_s);
    assert!(completed.iter().all(|time| time.is_finite()));
    assert_eq!(of_group(&result, "files", &flows.active_s), completed);
    assert_eq!(
        of_group(&result, "files", &flows.delivered_bytes),
        [200_000.0; 3]
    );
    let bulk = of_group(&result, "bulk", &flows.completion_time_s);
    assert!(bulk.iter().all(|time| time.is_nan()));
}

#[test]
fn the_connections_of_users_are_flows() {
    let text = r#"
duration = "60 s"
warmup = "10 s"
[bottleneck]
rate = "2 Mbit/s"
delay = "10 ms"
queue = { kind = "tail-drop", limit = "10 packets" }
[[traffic]]
name = "ask"
kind = "transactions"
response = "30 kB"
think = "exponential mean 1 s"
users = 10
"#;
    let result = run(text);
    let flows = result.flows.as_ref().expect("there is a table");
    let opened = flows.start_s.iter().filter(|start| **start >= 10.0).count();
    assert_eq!(opened as f64, metric(&result, "ask.connections"));
    assert!(flows.start_s.is_sorted());
    // Data that waited behind a gap when the measurement began counts for no connection; what other
    // connections then received in advance makes up for it in the group's metric.
    let goodput = flows.delivered_bytes.iter().sum::<f64>() * 8.0 / 50.0;
    let expected = metric(&result, "ask.goodput");
    assert!(goodput <= expected && goodput > 0.998 * expected);
    let again = flows.retransmissions.iter().sum::<f64>();
    assert!(again > 0.0);
    assert_eq!(again, metric(&result, "ask.retransmissions"));
    assert!(flows.rtt_min_s.iter().any(|rtt| rtt.is_finite()));

    let kept = |most: usize| run(&format!("keep_flows = {most}\n{text}")).flows;
    let count = flows.flow.len();
    // Undefined values are NaN, which equals nothing.
    let again = kept(count).expect("there are no more");
    assert!(format!("{again:?}") == format!("{flows:?}"));
    assert!(kept(count - 1).is_none());
}

#[test]
fn flows_are_kept_up_to_a_number_and_change_nothing() {
    let whole = run(MIXED);
    for (most, kept) in [(9, true), (8, false), (0, false)] {
        let mut result = run(&format!("keep_flows = {most}\n{MIXED}"));
        assert_eq!(result.flows.is_some(), kept, "{most}");
        result.flows.clone_from(&whole.flows);
        // Undefined values are NaN, which equals nothing.
        assert!(format!("{result:?}") == format!("{whole:?}"), "{most}");
    }
}

#[test]
fn distributions_have_the_quantiles_and_numbers_of_the_metrics() {
    let result = run(MIXED);
    let rows = &result.histograms.rows;
    let bins = |name: &str| -> Vec<(f64, u64)> {
        let number = result.histograms.names.iter().position(|it| it == name);
        let number = number.unwrap_or_else(|| panic!("{name} is not recorded")) as u32;
        let ends = rows.up_to_s.iter().copied().zip(rows.count.iter().copied());
        let all = rows.distribution.iter().zip(ends);
        all.filter(|(row, _)| **row == number)
            .map(|(_, bin)| bin)
            .collect()
    };
    for (name, of) in [
        ("queue_delay", "queue_delay"),
        ("bulk.queue_delay", "bulk.queue_delay"),
        ("calls.one_way_delay", "calls.one_way_delay"),
    ] {
        let bins = bins(name);
        assert!(bins.is_sorted_by(|one, next| one.0 < next.0));
        let all: u64 = bins.iter().map(|(_, count)| count).sum();
        for (suffix, share) in [("p50", 0.5), ("p95", 0.95), ("p99", 0.99)] {
            let mut within = 0;
            let found = bins.iter().find(|(_, count)| {
                within += count;
                within as f64 >= share * all as f64
            });
            let (end, _) = found.expect("the last bin has all");
            let exact = metric(&result, &format!("{of}_{suffix}"));
            // A bin is 2.33 % wide, and the metric has three digits.
            assert!(
                *end >= exact * 0.998 && *end <= exact * 1.026,
                "{name} {suffix}: {end}, not {exact}"
            );
        }
    }
    let drops: u64 = (1..)
        .zip(&result.consecutive_losses[0])
        .map(|(size, events)| size * events)
        .sum();
    let gaps = bins("loss_gap");
    let counted: u64 = gaps.iter().map(|(_, count)| count).sum();
    assert_eq!(counted + 1, drops);
}

#[test]
fn series_add_up_to_the_metrics() {
    let text = MIXED.replace("warmup = \"5 s\"", "warmup = \"0 s\"");
    let text = format!("{text}\n[series]\ninterval = \"100 ms\"\nwindows = true\n");
    let result = run(&text);
    let groups = result.group_series.as_ref().expect("it was asked for");
    let number = result.groups.iter().position(|name| name == "bulk");
    let number = number.expect("there is such a group") as u32;
    let rates = groups.group.iter().zip(&groups.goodput_bps);
    let rates: Vec<f64> = rates
        .filter(|(group, _)| **group == number)
        .map(|(_, &rate)| rate)
        .collect();
    assert!(rates[0].is_nan());
    let bits = rates[1..].iter().sum::<f64>() * 0.1;
    let flows = result.flow_series.as_ref().expect("it was asked for");
    let last = flows.time_s[flows.time_s.len() - 1];
    let latest =
        (0..flows.flow.len()).filter(|&i| flows.time_s[i] == last && flows.group[i] == number);
    let delivered: u64 = latest.map(|i| flows.delivered_bytes[i]).sum();
    assert_close(bits, delivered as f64 * 8.0);

    let queues = result.queue_series.as_ref().expect("it was asked for");
    let drops: u64 = queues.drops.iter().sum();
    let arrivals: u64 = queues.arrivals.iter().sum();
    assert!(drops > 0 && queues.marks.iter().sum::<u64>() > 0);
    // The last tenth of a second is after the last sample.
    let loss = drops as f64 / arrivals as f64;
    let expected = metric(&result, "loss");
    assert!((loss - expected).abs() < 0.05 * expected);
    let delays: Vec<f64> = queues
        .delay_s
        .iter()
        .copied()
        .filter(|it| !it.is_nan())
        .collect();
    let mean = delays.iter().sum::<f64>() / delays.len() as f64;
    let expected = metric(&result, "queue_delay_mean");
    assert!(
        (mean - expected).abs() < 0.2 * expected,
        "{mean} {expected}"
    );
}
