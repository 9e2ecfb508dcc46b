//! Links hear of packets and carry out the ends of their transmissions late (`Links::allow_late_links`), and packets
//! reach the hosts of TCP and UDP flows late (`Paths::allow_late_arrivals`), except in runs with a capture.
//! So a run and the same run with a capture must have the same result, whatever is at its links.

use std::io;

use crate::common::scenario;
use redtail_qdisc::QueueParams;
use redtail_sim::capture::{Capture, IpVersion, Point};
use redtail_sim::{RunOptions, RunResult};

/// Checks that a run of `text` has the same result with and without a capture at `point`, except for the number of
/// events. Returns how many fewer events there are without one, as a share.
#[track_caller]
fn same_with_a_capture(text: &str, point: &str) -> f64 {
    let scenario = scenario(text, 0);
    let run = |capture: Option<Capture<'_>>| {
        let options = RunOptions {
            capture,
            ..RunOptions::default()
        };
        let mut result: RunResult = redtail_sim::run(&scenario, options).expect("it can be run");
        let events = std::mem::take(&mut result.events);
        // Undefined values are NaN, which equals nothing; as text all digits that matter are compared.
        (format!("{result:?}"), events)
    };
    let points: Vec<Point> = vec![point.parse().expect("a point")];
    let (on_time, more) = run(Some(Capture {
        ip: IpVersion::V4,
        files: vec![(points, Box::new(io::sink()))],
    }));
    let (late, fewer) = run(None);
    assert!(late == on_time, "the results differ, of\n{text}");
    1.0 - fewer as f64 / more as f64
}

/// Several hosts with the same delays, UDP that arrives at the same instants as other packets, samples, and phases.
/// `queue` has the lines of the queue's table, `link` lines of the link, and `more` further tables.
fn dumbbell(queue: &str, link: &str, more: &str) -> String {
    format!(
        r#"
duration = "8 s"
warmup = "2 s"
phases = ["4 s", "5 s"]
[series]
interval = "10 ms"
[bottleneck]
rate = "3 Mbit/s"
delay = "20 ms"
{link}
[bottleneck.queue]
{queue}
{more}
[[traffic]]
name = "always"
kind = "bulk"
flows = 6
tcp = {{ preset = "sack", ecn = true }}
access_delay = ["5 ms", "5 ms", "10 ms"]
[[traffic]]
name = "linux"
kind = "bulk"
flows = 2
tcp = "linux"
[[traffic]]
name = "step"
kind = "cbr"
flows = 2
rate = "400 kbit/s"
packet = "1000 B"
"#
    )
}

const TAIL_DROP: &str = "kind = \"tail-drop\"\nlimit = \"30 packets\"";
const RED: &str = r#"kind = "red"
limit = "40 packets"
min_th = "5 packets"
max_th = "15 packets"
ecn = true"#;
const CODEL: &str = "kind = \"codel\"\nlimit = \"100 packets\"";
const FQ_CODEL: &str = "kind = \"fq-codel\"\nlimit = \"100 packets\"";

#[test]
fn whatever_the_queue_is_no_result_depends_on_it() {
    for (kind, keys) in QueueParams::examples() {
        if kind != "plugin" {
            let queue = format!("kind = \"{kind}\"\n{keys}");
            same_with_a_capture(&dumbbell(&queue, "", ""), "bottleneck");
        }
    }
}

#[test]
fn a_packet_needs_fewer_events_where_it_is_allowed() {
    let fewer = same_with_a_capture(&dumbbell(TAIL_DROP, "", ""), "bottleneck");
    assert!(fewer > 0.5, "only {fewer} of the events are gone");
    // A queue that asks to be woken is served in time.
    let shaper = format!(
        "kind = \"tbf\"\nrate = \"2 Mbit/s\"\nburst = \"10 kB\"\n[bottleneck.queue.queue]\n{TAIL_DROP}"
    );
    let text = dumbbell(&shaper, "", "").replace("\"sack\"", "\"linux\"");
    let (text, _) = text
        .split_once("[[traffic]]\nname = \"step\"")
        .expect("UDP");
    assert_eq!(same_with_a_capture(text, "bottleneck"), 0.0);
}

#[test]
fn random_losses_and_changing_rates_do_not_matter() {
    for queue in [RED, CODEL, FQ_CODEL] {
        let text = dumbbell(queue, "random_loss = 0.01", "");
        same_with_a_capture(&text, "bottleneck");
        let returning = format!(
            "[bottleneck.return]\nrate = \"100 kbit/s\"\ndelay = \"20 ms\"\nrandom_loss = 0.02\n\
             [bottleneck.return.queue]\n{TAIL_DROP}\n"
        );
        same_with_a_capture(&dumbbell(queue, "", &returning), "return");
        let changing = "rate_changes = [{ at = \"3 s\", rate = \"1 Mbit/s\" }, { at = \"6 s\", rate = \"9 Mbit/s\" }]";
        same_with_a_capture(&dumbbell(queue, changing, ""), "bottleneck");
    }
}

/// Two links of the same delay, so that packets come from one and from hosts at the same time.
const CHAIN: &str = r#"
duration = "8 s"
warmup = "0 s"
[series]
interval = "5 ms"
[[chain.hop]]
rate = "3 Mbit/s"
delay = "10 ms"
queue = { kind = "red", limit = "40 packets", min_th = "5 packets", max_th = "15 packets" }
[chain.hop.return]
rate = "500 kbit/s"
delay = "10 ms"
queue = { kind = "tail-drop", limit = "20 packets" }
[[chain.hop]]
rate = "2 Mbit/s"
delay = "10 ms"
queue = { kind = "codel", limit = "60 packets" }
[[traffic]]
name = "long"
kind = "bulk"
flows = 3
return_delay = "10 ms"
[[traffic]]
name = "first"
kind = "bulk"
flows = 2
last_hop = 1
access_delay = "10 ms"
host_jitter = "1 ms"
[[traffic]]
name = "back"
kind = "bulk"
flows = 1
direction = "reverse"
last_hop = 1
[[traffic]]
name = "cbr"
kind = "cbr"
rate = "200 kbit/s"
packet = "500 B"
first_hop = 2
access_delay = "10 ms"
"#;

#[test]
fn links_in_a_row_agree() {
    let fewer = same_with_a_capture(CHAIN, "hop1");
    assert!(fewer > 0.1, "only {fewer} of the events are gone");
}

/// `groups` traffic groups that send one packet each at the same instants, in turn of four sizes, through a queue that
/// is mostly full: which packets it drops depends on the order in which they arrive.
fn at_the_same_instants(groups: usize) -> String {
    let group = |number: usize| {
        format!(
            "[[traffic]]\nname = \"cbr{number}\"\nkind = \"cbr\"\nrate = \"{rate} kbit/s\"\npacket = \"{size} B\"\n\
             access_delay = \"10 ms\"\naccess_rate = \"{access} Mbit/s\"\n",
            rate = 100 * (1 + number % 4),
            size = 250 * (1 + number % 4),
            access = 10 * (1 + number % 4),
        )
    };
    let groups: String = (0..groups).map(group).collect();
    format!(
        r#"
duration = "6 s"
warmup = "1 s"
phases = ["3 s"]
[series]
interval = "20 ms"
[bottleneck]
rate = "1 Mbit/s"
delay = "40 ms"
queue = {{ kind = "tail-drop", limit = "7 packets" }}
{groups}
"#
    )
}

#[test]
fn packets_of_several_lines_reach_a_link_late_in_their_order() {
    for groups in [2, 5, 16] {
        let fewer = same_with_a_capture(&at_the_same_instants(groups), "bottleneck");
        assert!(fewer > 0.2, "{groups}: only {fewer} of the events are gone");
    }
    // So many lines are not searched: only ends of transmissions are late.
    let text = at_the_same_instants(17);
    same_with_a_capture(&text, "bottleneck");
}

#[test]
fn users_hear_of_losses_in_time() {
    // The number and the place of a user's next connection depend on whether the last packet of an old one has been
    // lost: SFQ and FQ-CoDel sort packets by these numbers.
    let queues = [
        "kind = \"tail-drop\", limit = \"10 packets\"",
        "kind = \"codel\", limit = \"100 packets\", target = \"1 ms\"",
        "kind = \"fq-codel\", limit = \"20 packets\", flows = 4",
        "kind = \"sfq\", limit = \"20 packets\"",
    ];
    for queue in queues {
        for loss in ["", "random_loss = 0.02", "random_loss = 0.3"] {
            for way_back in ["0 ms", "40 ms"] {
                let text = format!(
                    r#"
duration = "20 s"
warmup = "2 s"
phases = ["5 s"]
[series]
interval = "70 ms"
[bottleneck]
rate = "1 Mbit/s"
delay = "50 ms"
queue = {{ {queue} }}
{loss}
[[traffic]]
name = "web"
kind = "web"
model = "http1"
users = 20
think = "exponential mean 1 s"
objects = "uniform 0..10"
access_delay = ["1 ms", "30 ms"]
return_delay = "{way_back}"
[[traffic]]
name = "cbr"
kind = "cbr"
flows = 3
rate = "50 kbit/s"
packet = "500 B"
"#
                );
                let fewer = same_with_a_capture(&text, "bottleneck");
                assert!(
                    fewer > 0.3,
                    "{queue} {loss}: only {fewer} of the events are gone"
                );
            }
        }
    }
}

#[test]
fn connections_end_in_time_when_their_last_packet_is_lost() {
    // The queue delays packets by longer than the first retransmission timeout, so repeated segments are still in the
    // network when their connection is over, and some of them are lost.
    for queue in ["tail-drop", "sfq", "fq-codel"] {
        for way_back in ["0 ms", "40 ms"] {
            let text = format!(
                r#"
duration = "80 s"
warmup = "5 s"
[bottleneck]
rate = "2 Mbit/s"
delay = "50 ms"
random_loss = 0.3
queue = {{ kind = "{queue}", limit = "900 packets" }}
[[traffic]]
name = "web"
kind = "web"
model = "http1"
users = 600
document = "700 B"
object = "700 B"
think = "exponential mean 300 ms"
objects = "uniform 0..4"
access_delay = ["1 ms", "30 ms"]
return_delay = "{way_back}"
"#
            );
            let fewer = same_with_a_capture(&text, "bottleneck");
            assert!(
                fewer > 0.3,
                "{queue} {way_back}: only {fewer} of the events are gone"
            );
        }
    }
}

/// Hosts far from a lossy link, whose timers of all kinds expire while packets are late. `more` has further lines for
/// both groups.
fn far_hosts(more: &str) -> String {
    format!(
        r#"
duration = "12 s"
warmup = "2 s"
phases = ["5 s"]
[series]
interval = "310 ms"
[bottleneck]
rate = "1 Mbit/s"
delay = "20 ms"
random_loss = 0.03
queue = {{ kind = "tail-drop", limit = "6 packets" }}
[[traffic]]
name = "delayed"
kind = "bulk"
flows = 5
tcp = {{ preset = "newreno", delayed_ack = true, delayed_ack_timeout = "100 ms", min_rto = "200 ms" }}
access_delay = ["150 ms", "30 ms", "250 ms"]
start = "uniform 0..3 s"
stop = "9 s"
{more}
[[traffic]]
name = "sack"
kind = "bulk"
flows = 4
tcp = {{ preset = "sack", min_rto = "50 ms" }}
access_delay = ["150 ms", "400 ms"]
start = "uniform 0..3 s"
{more}
"#
    )
}

#[test]
fn hosts_hear_late_what_they_may() {
    for more in [
        // The return path takes no time, a constant time, the same for all hosts, and is part of another line.
        "",
        "return_delay = [\"60 ms\", \"10 ms\", \"1 ms\"]",
        "return_delay = \"90 ms\"",
        "return_delay = \"90 ms\"\nhost_jitter = \"5 ms\"",
    ] {
        let fewer = same_with_a_capture(&far_hosts(more), "bottleneck");
        assert!(fewer > 0.2, "{more}: only {fewer} of the events are gone");
    }
    let returning = format!(
        "[bottleneck.return]\nrate = \"50 kbit/s\"\ndelay = \"30 ms\"\n[bottleneck.return.queue]\n{TAIL_DROP}\n"
    );
    let text = far_hosts("return_delay = \"7 ms\"").replacen(
        "[[traffic]]",
        &format!("{returning}[[traffic]]"),
        1,
    );
    same_with_a_capture(&text, "return");
}

#[test]
fn hosts_with_timers_that_expire_at_once_hear_in_time() {
    let linux = "tcp = { preset = \"linux\" }\naccess_delay = \"50 ms\"\nreturn_delay = \"50 ms\"";
    let slow = "tcp = { preset = \"sack\", read_rate = \"100 kbit/s\" }\naccess_delay = \"50 ms\"";
    let paced = "tcp = { preset = \"newreno\", pacing = true }\naccess_delay = \"50 ms\"";
    for group in [linux, slow, paced] {
        let text = format!(
            r#"
duration = "5 s"
warmup = "0 s"
[bottleneck]
rate = "1 Mbit/s"
delay = "20 ms"
[bottleneck.queue]
kind = "tbf"
rate = "900 kbit/s"
burst = "10 kB"
[bottleneck.queue.queue]
{TAIL_DROP}
[[traffic]]
name = "bulk"
kind = "bulk"
flows = 2
{group}
"#
        );
        assert_eq!(same_with_a_capture(&text, "bottleneck"), 0.0, "{group}");
    }
}
