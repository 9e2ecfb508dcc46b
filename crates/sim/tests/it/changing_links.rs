//! Links whose rate changes, results by phase, and losses of several flows together: numbers
//! computed by hand.

use crate::common::{metric, run};
use redtail_sim::RunResult;

#[track_caller]
fn assert_near(found: f64, expected: f64) {
    let error = (found - expected).abs();
    assert!(
        error <= 1e-9 * expected.abs().max(1e-6),
        "{found} is not {expected}"
    );
}

/// UDP packets of `packet`, the first of which reaches the queue after 1 us.
fn cbr(duration: &str, link: &str, packet: u64, gap_ms: u64) -> RunResult {
    run(&format!(
        r#"
duration = "{duration}"
[bottleneck]
{link}
delay = "1 ms"
queue = {{ kind = "tail-drop", limit = "100 packets" }}
[[traffic]]
name = "udp"
kind = "cbr"
rate = "{} kbit/s"
packet = "{packet} B"
start = "0 s"
access_rate = "{} Mbit/s"
"#,
        packet * 8 / gap_ms,
        packet * 8,
    ))
}

const STEP: &str = r#"
rate = "12 Mbit/s"
rate_changes = [{ at = "10.501 ms", rate = "3 Mbit/s" }]
"#;

#[test]
fn what_is_left_of_a_packet_goes_on_at_the_new_rate() {
    // The second packet begins at 10.001 ms; 6,000 bit are sent by 10.501 ms, the others take 2 ms.
    let before = 12.0 * 10_501.0; // bit until the change
    let early = cbr("12.5 ms", STEP, 1500, 10);
    let sent = 12_000.0 + 6_000.0 + 3.0 * 1_999.0;
    assert_near(
        metric(&early, "utilization"),
        sent / (before + 3.0 * 1_999.0),
    );
    let done = cbr("12.502 ms", STEP, 1500, 10);
    assert_near(
        metric(&done, "utilization"),
        24_000.0 / (before + 3.0 * 2_001.0),
    );
    assert_eq!(done.bottleneck_packets, 2);
    assert_eq!(early.bottleneck_packets, 1);
}

#[test]
fn utilization_is_against_the_capacity_that_there_was() {
    let result = cbr("20 ms", STEP, 1500, 10);
    let capacity = 12.0 * 10_501.0 + 3.0 * 9_499.0;
    assert_near(metric(&result, "utilization"), 24_000.0 / capacity);
    assert_near(metric(&result, "udp.utilization"), 24_000.0 / capacity);
}

#[test]
fn a_change_to_the_same_rate_changes_nothing() {
    let link = |changes: &str| format!("rate = \"7 Mbit/s\"\n{changes}");
    let constant = cbr("1 s", &link(""), 1100, 2);
    let changes = r#"rate_changes = [{ at = "333333333333 ps", rate = "7 Mbit/s" }]"#;
    let stepped = cbr("1 s", &link(changes), 1100, 2);
    let names = [
        "queue_delay_mean",
        "queue_length_mean",
        "udp.end_to_end_loss",
    ];
    for name in names {
        assert_eq!(metric(&stepped, name), metric(&constant, name), "{name}");
    }
    assert_near(
        metric(&stepped, "utilization"),
        metric(&constant, "utilization"),
    );
    assert_eq!(stepped.events, constant.events);
}

#[test]
fn an_outage_delays_the_packet_in_transmission_and_those_behind_it_by_itself() {
    // Packets reach the queue at 0.001, 10.001, 20.001 ms ... and take 1 ms. The second is half sent at 10.501 ms, when
    // the outage of 20 ms begins; the third then begins at 31.001 ms.
    let link = r#"
rate = "12 Mbit/s"
rate_changes = [{ at = "10.501 ms", rate = "0 bit/s" }, { at = "30.501 ms", rate = "12 Mbit/s" }]
"#;
    let sent = |until: &str| cbr(until, link, 1500, 10).bottleneck_packets;
    assert_eq!([sent("31.000999999 ms"), sent("31.001000001 ms")], [1, 2]);
    assert_eq!([sent("32.000999999 ms"), sent("32.001000001 ms")], [2, 3]);
    let result = cbr("40 ms", link, 1500, 10);
    // The third waited from 20.001 to 31.001 ms, the fourth from 30.001 to 32.001 ms.
    assert_near(metric(&result, "queue_delay_mean"), 13e-3 / 4.0);
    // 20 ms of 40 have no capacity.
    assert_near(metric(&result, "utilization"), 4.0 / 20.0);
}

#[test]
fn a_phase_without_capacity_has_no_utilization() {
    let link = r#"
rate = "12 Mbit/s"
rate_changes = [{ at = "100 ms", rate = "0 bit/s" }]
"#;
    let whole = cbr("200 ms", link, 1500, 10);
    // Ten packets in 100 ms; the others wait until the end, one of them in the transmitter.
    assert_eq!(whole.bottleneck_packets, 10);
    assert_near(metric(&whole, "utilization"), 0.1);
    assert_eq!(metric(&whole, "loss"), 0.0);
    let split = run(&format!(
        r#"
duration = "200 ms"
phases = "auto"
[bottleneck]
{link}
delay = "1 ms"
queue = {{ kind = "tail-drop", limit = "5 packets" }}
[[traffic]]
name = "udp"
kind = "cbr"
rate = "1200 kbit/s"
packet = "1500 B"
start = "0 s"
"#
    ));
    assert_near(metric(&split, "phase1.utilization"), 0.1);
    assert_eq!(split.metric("phase2.utilization"), None);
    // Ten arrive: one is in the transmitter, five fill the queue, which drops four by its own rule.
    assert_near(metric(&split, "phase2.loss"), 0.4);
}

#[test]
fn a_cycle_of_rates_is_the_same_run_as_its_changes_written_out() {
    // Rates that divide no picosecond, and times that no float has.
    let every = 33_333_333_333_u64; // ps
    let rates = ["7 Mbit/s", "0 bit/s", "1000003 bit/s"];
    let mut list = Vec::new();
    for change in 1..=60_u64 {
        let rate = rates[(change % 3) as usize];
        list.push(format!(
            "{{ at = \"{} ps\", rate = \"{rate}\" }}",
            change * every
        ));
    }
    let list = format!("rate = \"7 Mbit/s\"\nrate_changes = [{}]", list.join(", "));
    let law = format!(
        "rate = \"7 Mbit/s\"\nrate_changes = {{ every = \"{every} ps\", rates = {rates:?} }}"
    );
    // As texts, because a figure that does not exist is equal to no other.
    let text = |link: &str| format!("{:?}", cbr("2 s", link, 1100, 3));
    assert!(text(&law) == text(&list), "the runs differ");
}

/// The share of the time in which a link of 100 Mbit/s sends a packet of this size every millisecond.
fn share_with_overhead(overhead: &str, packet: u64) -> f64 {
    let link = format!("rate = \"100 Mbit/s\"\noverhead = {overhead}");
    metric(&cbr("1 s", &link, packet, 1), "utilization")
}

#[test]
fn a_link_layer_makes_packets_longer() {
    let share = |size: u64| 8.0 * size as f64 / 100e6 / 1e-3;
    for (overhead, packet, size) in [
        // Cells of 53 bytes with 48 bytes of payload: 10 bytes more for PPPoA.
        ("\"pppoa-vcmux\"", 38, 53),
        ("\"pppoa-vcmux\"", 39, 106),
        ("\"pppoa-vcmux\"", 40, 106),
        ("\"pppoa-vcmux\"", 1500, 32 * 53),
        ("\"atm\"", 48, 53),
        ("\"atm\"", 49, 106),
        ("\"atm ether-vlan\"", 44, 53),
        // A byte for every 64.
        ("\"pppoe-ptm\"", 1500, 1530 + 24),
        ("\"ptm\"", 64, 65),
        ("\"ptm\"", 65, 67),
        // The smallest frames.
        ("\"docsis\"", 40, 64),
        ("\"docsis\"", 46, 64),
        ("\"docsis\"", 47, 65),
        ("\"docsis\"", 1500, 1518),
        ("\"ethernet\"", 40, 84),
        ("\"ethernet\"", 1500, 1538),
        ("\"ethernet ether-vlan ether-vlan\"", 1500, 1546),
        ("{ bytes = \"7 B\", framing = \"atm\" }", 1500, 32 * 53),
        ("\"noatm\"", 1500, 1500),
    ] {
        assert_near(share_with_overhead(overhead, packet), share(size));
    }
}

#[test]
fn a_link_layer_fills_the_opportunities_of_a_trace() {
    // 1462 B and 38 B fill one opportunity, 1463 B need a byte of the next.
    let trace = |packet: u64| {
        let link = "rate_trace = { differences_ms = \"1\" }\noverhead = \"ethernet\"";
        cbr("100 ms", link, packet, 1)
    };
    let (fits, does_not) = (trace(1462), trace(1463));
    assert_eq!(fits.bottleneck_packets, 99);
    assert_eq!(metric(&fits, "utilization"), 1.0);
    // 99 opportunities carry 148,500 B: 98 packets of 1501 B and most of another.
    assert_eq!(does_not.bottleneck_packets, 98);
}

#[test]
fn an_overhead_of_nothing_changes_nothing() {
    let link = |keys: &str| format!("rate = \"7 Mbit/s\"\n{keys}");
    let plain = cbr("1 s", &link(""), 1100, 2);
    let with = cbr("1 s", &link("overhead = \"noatm\""), 1100, 2);
    assert_eq!(with.events, plain.events);
    assert_eq!(
        metric(&with, "queue_delay_mean"),
        metric(&plain, "queue_delay_mean")
    );
}

#[test]
fn an_opportunity_carries_small_packets_up_to_1500_bytes() {
    // Packets of 500 B arrive at 0.001, 1.001, ... ms; two opportunities at 10 ms take six of
    // those ten, and the next ones, at 20 ms, are after the end.
    let trace = r#"rate_trace = { differences_ms = "10 0" }"#;
    let result = cbr("20 ms", trace, 500, 1);
    assert_eq!(result.bottleneck_packets, 6);
    assert_eq!(metric(&result, "utilization"), 1.0);
    // 9.999, 8.999, ... 4.999 ms.
    assert_near(metric(&result, "queue_delay_mean"), 7.499e-3);
}

#[test]
fn what_is_left_of_a_large_packet_waits_for_the_next_opportunity() {
    // Packets of 2000 B arrive at 0.001, 10.001, ... ms. At 10 ms: 1500 of the first; at 20 ms its
    // 500, and 1000 of the second; at 30 ms 1000 and 500 of the third; at 40 ms its 1500; at
    // 50 ms 1500 of the fourth, which has waited for 19.999 ms.
    let trace = r#"rate_trace = { differences_ms = "10" }"#;
    let result = cbr("55 ms", trace, 2000, 10);
    assert_eq!(result.bottleneck_packets, 3);
    assert_eq!(metric(&result, "utilization"), 1.0);
    assert_near(
        metric(&result, "queue_delay_mean"),
        (3.0 * 9.999e-3 + 19.999e-3) / 4.0,
    );
}

#[test]
fn opportunities_that_find_no_packet_are_lost() {
    // One a millisecond from 1 to 99 ms, and ten packets.
    let trace = r#"rate_trace = { differences_ms = "1" }"#;
    let result = cbr("100 ms", trace, 1500, 10);
    assert_eq!(result.bottleneck_packets, 10);
    assert_near(metric(&result, "utilization"), 10.0 / 99.0);
    assert_near(metric(&result, "queue_delay_mean"), 0.999e-3);
}

#[test]
fn every_kind_of_queue_runs_on_a_trace_and_on_steps() {
    // The engine checks the conservation of packets itself.
    let queues = [
        r#"{ kind = "tail-drop", limit = "50 packets" }"#,
        r#"{ kind = "pie", limit = "200 packets" }"#,
        r#"{ kind = "codel", limit = "200 packets" }"#,
        r#"{ kind = "fq-codel" }"#,
        r#"{ kind = "cake", rate = "4 Mbit/s" }"#,
        r#"{ kind = "tbf", rate = "4 Mbit/s", burst = "3000 B", queue = { kind = "tail-drop", limit = "50 packets" } }"#,
    ];
    let links = [
        r#"rate_trace = { differences_ms = "2 0x3 1 5 0 3" }"#,
        "rate = \"8 Mbit/s\"\nrate_changes = [{ at = \"2 s\", rate = \"1 Mbit/s\" }, { at = \"4 s\", rate = \"20 Mbit/s\" }]",
    ];
    for queue in queues {
        for link in links {
            let result = run(&format!(
                r#"
duration = "6 s"
warmup = "1 s"
phases = ["2 s", "4 s"]
[bottleneck]
{link}
delay = "10 ms"
queue = {queue}
wire.loss = 0.001
[[traffic]]
name = "ftp"
kind = "bulk"
flows = 4
return_delay = "10 ms"
"#
            ));
            let utilization = metric(&result, "utilization");
            assert!(
                (0.2..=1.0).contains(&utilization),
                "{queue} {link}: {utilization}"
            );
            for phase in 1..=3 {
                let utilization = metric(&result, &format!("phase{phase}.utilization"));
                assert!(
                    (0.1..=1.0).contains(&utilization),
                    "{queue} {link}: {utilization}"
                );
            }
        }
    }
}

const BEFORE_AND_AFTER: &str = r#"
[bottleneck]
rate = "10 Mbit/s"
delay = "5 ms"
queue = { kind = "tail-drop", limit = "30 packets" }
[[traffic]]
name = "ftp"
kind = "bulk"
flows = 3
start = "4 s"
return_delay = "20 ms"
[[traffic]]
name = "udp"
kind = "cbr"
rate = "2 Mbit/s"
packet = "1000 B"
start = "0 s"
stop = "4 s"
"#;

#[test]
fn each_phase_has_metrics_of_its_own() {
    let with = |keys: &str| {
        run(&format!(
            "duration = \"12 s\"\nwarmup = \"2 s\"\n{keys}\n{BEFORE_AND_AFTER}"
        ))
    };
    let (whole, split) = (with(""), with("phases = [\"4 s\", \"9 s\"]"));
    // 500 packets of 0.8 ms in 2 s, and nothing else.
    assert_near(metric(&split, "phase1.utilization"), 0.2);
    assert_eq!(metric(&split, "phase1.loss"), 0.0);
    assert_eq!(metric(&split, "phase1.ftp.goodput"), 0.0);
    assert_eq!(split.metric("phase1.ftp.loss"), None); // nothing arrived
    assert_eq!(split.metric("phase4.utilization"), None);
    assert_eq!(metric(&split, "phase3.udp.utilization"), 0.0);
    // Lengths 2, 5 and 3 of 10 s.
    let sum = |name: &str| {
        let of = |phase: u32| metric(&split, &format!("phase{phase}.{name}"));
        0.2 * of(1) + 0.5 * of(2) + 0.3 * of(3)
    };
    for name in ["utilization", "queue_length_mean", "ftp.goodput", "goodput"] {
        assert_near(sum(name), metric(&whole, name));
    }
    // Phases change nothing of the whole.
    let plain: Vec<_> = split
        .metrics
        .iter()
        .filter(|(name, _)| !name.starts_with("phase"))
        .collect();
    assert_eq!(plain, whole.metrics.iter().collect::<Vec<_>>());
}

#[test]
fn phases_are_found_by_themselves_where_something_changes() {
    let result = run(&format!(
        "duration = \"12 s\"\nwarmup = \"2 s\"\nphases = \"auto\"\n{BEFORE_AND_AFTER}"
    ));
    assert_near(metric(&result, "phase1.utilization"), 0.2);
    assert!(metric(&result, "phase2.utilization") > 0.9);
    assert_eq!(result.metric("phase3.utilization"), None);
}

#[test]
fn flows_that_lose_within_a_round_trip_of_the_first_drop_lose_together() {
    // Packets arrive every 0.5 ms and leave every 1 ms. Of the overload that begins at 0 (up to a
    // constant): packet m leaves at m ms; the first that finds ten waiting comes at 10.5 ms, when
    // the last to leave had waited for 5 ms; so the event takes until 10.5 + 40 + 5 = 55.5 ms. A drop
    // then begins the second; the delay has become 10 ms, so it takes until 105.5 ms, and a packet of
    // "late" finds room within it. The second overload repeats the first 200 ms later, without that.
    let result = run(r#"
duration = "400 ms"
[bottleneck]
rate = "12 Mbit/s"
delay = "20 ms"
queue = { kind = "tail-drop", limit = "10 packets" }
[[traffic]]
name = "ftp"
kind = "bulk"
start = "1 s"
return_delay = "20 ms"
[[traffic]]
name = "burst"
kind = "cbr"
flows = 2
rate = "24 Mbit/s"
packet = "1500 B"
start = ["0 s", "200 ms"]
stop = ["100 ms", "300 ms"]
[[traffic]]
name = "late"
kind = "cbr"
rate = "12 kbit/s"
packet = "1500 B"
start = "102 ms"
"#);
    assert_near(
        metric(&result, "loss_synchronization"),
        (1.0 + 0.5 + 1.0 + 1.0) / 4.0,
    );
    let intervals = [45e-3, 155e-3, 45e-3];
    let mean = intervals.iter().sum::<f64>() / 3.0;
    let variance = intervals
        .iter()
        .map(|x| (x - mean) * (x - mean))
        .sum::<f64>()
        / 3.0;
    assert_near(metric(&result, "loss_interval_mean"), mean);
    assert_near(metric(&result, "loss_interval_std"), variance.sqrt());
}

#[test]
fn a_lone_flow_always_loses_alone() {
    let result = run(r#"
duration = "30 s"
[bottleneck]
rate = "5 Mbit/s"
delay = "20 ms"
queue = { kind = "tail-drop", limit = "20 packets" }
[[traffic]]
name = "ftp"
kind = "bulk"
"#);
    assert_eq!(metric(&result, "loss_synchronization"), 1.0);
    assert!(metric(&result, "loss_interval_mean") > 0.5);
}

/// A saturated link of 10 Mbit/s that has 4 Mbit/s from 2 s on, nothing from 4 to 5 s, and 20 Mbit/s after that.
fn followed(queue: &str) -> RunResult {
    run(&format!(
        r#"
duration = "8 s"
phases = ["1.5 s", "2 s", "2.5 s", "4 s", "5 s", "5.5 s"]
[bottleneck]
rate = "10 Mbit/s"
rate_changes = [{{ at = "2 s", rate = "4 Mbit/s" }}, {{ at = "4 s", rate = "0 bit/s" }}, {{ at = "5 s", rate = "20 Mbit/s" }}]
delay = "1 ms"
queue = {queue}
[[traffic]]
name = "udp"
kind = "cbr"
rate = "60 Mbit/s" # so that there is always a packet, even if cake drops nearly all
packet = "1000 B"
start = "0 s"
"#
    ))
}

#[test]
fn shapers_that_follow_send_their_share_of_the_rate_that_the_link_has() {
    let inner = r#"{ kind = "tail-drop", limit = "20 packets" }"#;
    let shapers = |follow: &str| {
        [
            format!(
                r#"{{ kind = "tbf", rate = "9 Mbit/s", burst = "1000 B", {follow} queue = {inner} }}"#
            ),
            format!(
                r#"{{ kind = "htb", {follow} class = [{{ name = "all", rate = "9 Mbit/s", burst = "1000 B", cburst = "1000 B", class = [
                {{ name = "a", rate = "1 Mbit/s", ceil = "9 Mbit/s", burst = "1000 B", cburst = "1000 B", queue = {inner} }}] }}] }}"#
            ),
            format!(
                r#"{{ kind = "cake", rate = "9 Mbit/s", {follow} limit = "20 packets", isolation = "flowblind", diffserv = "besteffort" }}"#
            ),
        ]
    };
    // In a phase of 0.5 s or more, a packet more or less and what a bucket holds are 24,000 bit.
    let link = [10.0, 10.0, 4.0, 4.0, 0.0, 20.0, 20.0];
    let near = |result: &RunResult, phase: u32, seconds: f64, mbps: f64, queue: &str| {
        let share = result.metric(&format!("phase{phase}.utilization"));
        let found = share.unwrap_or(0.0) * link[phase as usize - 1];
        let bits = (found - mbps).abs() * 1e6 * seconds;
        assert!(bits <= 24_001.0, "{queue}: phase {phase}: {found}");
    };
    for queue in shapers(r#"follow_after = "0 s","#) {
        let result = followed(&queue);
        near(&result, 2, 0.5, 9.0, &queue); // 1.5 to 2 s
        near(&result, 3, 0.5, 3.6, &queue); // 2 to 2.5 s
        near(&result, 4, 1.5, 3.6, &queue); // 2.5 to 4 s
        near(&result, 5, 1.0, 0.0, &queue); // 4 to 5 s
        near(&result, 6, 0.5, 18.0, &queue); // 5 to 5.5 s
        near(&result, 7, 2.5, 18.0, &queue); // 5.5 to 8 s
    }
    // What cake does not send while the link is slower than its shaper, it makes up for later, as in Linux. The others
    // do not. Late by 0.5 s, it sends 9 Mbit/s into the link of 4 Mbit/s, which has no queue behind it, and 3.6 into the one
    // that has no rate; in the outage's share it sends nothing for the first half second of 20 Mbit/s.
    for queue in &shapers(r#"follow_after = "500 ms","#)[..2] {
        let result = followed(queue);
        near(&result, 2, 0.5, 9.0, queue);
        near(&result, 3, 0.5, 4.0, queue);
        near(&result, 4, 1.5, 3.6, queue);
        near(&result, 5, 1.0, 0.0, queue);
        near(&result, 6, 0.5, 0.0, queue);
        near(&result, 7, 2.5, 18.0, queue);
    }
    // Without the key nothing follows: the link alone limits, and then the shaper.
    for queue in &shapers("")[..2] {
        let result = followed(queue);
        near(&result, 4, 1.5, 4.0, queue);
        near(&result, 7, 2.5, 9.0, queue);
    }
}

#[test]
fn a_shaper_follows_the_mean_of_a_trace() {
    // 12 Mbit/s for 500 ms, 3 Mbit/s for 500 ms, in turn; the mean is 7.5 Mbit/s. The shaper has 80 % of the mean of the
    // last 100 ms: of 12 Mbit/s from 0.1 s to 0.6 s of each second, then of 3.
    let link = "rate_trace = { differences_ms = \"1x500 4x125\" }";
    let result = run(&format!(
        r#"
duration = "4 s"
phases = ["2.1 s", "2.5 s", "2.6 s", "3 s", "3.1 s"]
[bottleneck]
rate = "7.5 Mbit/s"
{link}
delay = "1 ms"
queue = {{ kind = "tbf", rate = "6 Mbit/s", burst = "4500 B", follow_after = "0 s", queue = {{ kind = "tail-drop", limit = "10 packets" }} }}
[[traffic]]
name = "udp"
kind = "cbr"
rate = "20 Mbit/s"
packet = "1500 B"
start = "0 s"
"#
    ));
    let near = |phase: u32, mbps: f64| {
        let link = if phase == 2 { 12.0 } else { 3.0 };
        let found = metric(&result, &format!("phase{phase}.utilization")) * link;
        let bits = (found - mbps).abs() * 0.4e6;
        assert!(bits <= 48_000.0, "phase {phase}: {found}");
    };
    near(2, 9.6); // 2.1 to 2.5 s
    near(4, 2.4); // 2.6 to 3 s
}

#[test]
fn a_shaper_follows_the_link_of_another_hop_in_its_direction() {
    // The router's shaper has 90 % of the modem's rate, and the modem's queue never holds more than what comes at once.
    let result = run(r#"
duration = "6 s"
phases = ["1 s", "2 s", "3 s"]
[[chain.hop]]
rate = "100 Mbit/s"
delay = "0 s"
queue = { kind = "tbf", rate = "90 Mbit/s", burst = "1000 B", follow_after = "0 s", follow_hop = 2, queue = { kind = "tail-drop", limit = "20 packets" } }
return = { rate = "50 Mbit/s", delay = "0 s", queue = { kind = "tail-drop", limit = "20 packets" } }
[[chain.hop]]
rate = "100 Mbit/s"
rate_changes = [{ at = "1 ms", rate = "10 Mbit/s" }, { at = "2 s", rate = "4 Mbit/s" }]
delay = "1 ms"
queue = { kind = "tail-drop", limit = "100 packets" }
return = { rate = "50 Mbit/s", rate_changes = [{ at = "2 s", rate = "1 Mbit/s" }], delay = "0 s", queue = { kind = "tail-drop", limit = "20 packets" } }
[[traffic]]
name = "udp"
kind = "cbr"
rate = "30 Mbit/s"
packet = "1000 B"
start = "10 ms"
"#);
    for (phase, link, mbps) in [(2, 10.0, 9.0), (3, 4.0, 3.6), (4, 4.0, 3.6)] {
        let found = metric(&result, &format!("phase{phase}.hop2.utilization")) * link;
        let bits = (found - mbps).abs() * 1e6;
        assert!(bits <= 24_001.0, "phase {phase}: {found}");
        assert_eq!(metric(&result, &format!("phase{phase}.hop2.loss")), 0.0);
        let waiting = metric(&result, &format!("phase{phase}.hop2.queue_length_mean"));
        assert!(waiting < 0.5, "phase {phase}: {waiting}");
    }
}
