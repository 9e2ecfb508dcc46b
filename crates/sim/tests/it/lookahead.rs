//! With lookahead, links and hosts carry out several events at once, each at its own time. A run without lookahead, and
//! one with a capture, has every event at its own time. The results must be equal to the byte.

use std::io;

use crate::common::endpoints::{Diary, endpoints};
use crate::common::{find_scenario, scenario, scenario_with, table};
use redtail_core::{Span, Stream, Time};
use redtail_qdisc::QueueParams;
use redtail_sim::capture::{Capture, IpVersion, Point};
use redtail_sim::plugin::{Actions, PacketId, PacketView, PluginError, PluginQueue};
use redtail_sim::{Plugins, RunOptions, RunResult, Traces};
use redtail_spec::Scenario;
use redtail_traffic::Direction;

/// Checks that a run of `text` has the same result with lookahead, without it, and with a capture, except for the number
/// of events. Returns how many fewer events there are with lookahead, as a share.
#[track_caller]
fn same_results(text: &str) -> f64 {
    same_results_of(&scenario(text, 0), &Plugins::new(), &Traces::new(), text)
}

/// As [`same_results`], where lookahead also saves more than `share` of the events. `which` names the scenario.
fn same_results_with_fewer(text: &str, share: f64, which: &str) {
    let fewer = same_results(text);
    assert!(
        fewer > share,
        "{which}: only {fewer} of the events are gone"
    );
}

/// As [`same_results`], of a scenario with these plug-ins and traces.
#[track_caller]
fn same_results_of(scenario: &Scenario, plugins: &Plugins, traces: &Traces, text: &str) -> f64 {
    let run = |without_lookahead: bool, capture: Option<Capture<'_>>| {
        let options = RunOptions {
            capture,
            without_lookahead,
            plugins: plugins.clone(),
            traces: traces.clone(),
            ..RunOptions::default()
        };
        let mut result: RunResult = redtail_sim::run(scenario, options).expect("it can be run");
        let events = std::mem::take(&mut result.events);
        // Undefined values are NaN, which equals nothing; as text all digits that matter are compared.
        (format!("{result:?}"), events)
    };
    let link = scenario.topology.link_name(0, Direction::Forward);
    let points: Vec<Point> = vec![link.parse().expect("a point")];
    let (total_order, more) = run(true, None);
    let (with_lookahead, fewer) = run(false, None);
    assert!(
        with_lookahead == total_order,
        "lookahead changes the result: {}\nof\n{text}",
        first_difference(&with_lookahead, &total_order)
    );
    let fewer = 1.0 - fewer as f64 / more as f64;
    let mut groups = scenario.traffic.iter();
    if groups.any(|group| group.tcp().is_some() && group.drawn_sizes().is_some()) {
        return fewer; // it cannot be captured
    }
    let captured = run(
        false,
        Some(Capture {
            ip: IpVersion::V4,
            files: vec![(points, Box::new(io::sink()))],
        }),
    );
    assert!(
        captured == (total_order, more),
        "a capture changes the result of\n{text}"
    );
    fewer
}

/// What stands where two texts first differ.
fn first_difference(one: &str, other: &str) -> String {
    let same = one.bytes().zip(other.bytes());
    let at = same.take_while(|(one, other)| one == other).count();
    let near = |text: &str| text[at.saturating_sub(120)..text.len().min(at + 40)].to_owned();
    format!("{:?} and {:?}", near(one), near(other))
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
windows = true
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
            same_results(&dumbbell(&queue, "", ""));
        }
    }
}

#[test]
fn a_packet_needs_fewer_events_where_it_is_allowed() {
    same_results_with_fewer(&dumbbell(TAIL_DROP, "", ""), 0.5, "a dumbbell");
    // A queue that asks to be woken is served in time.
    let shaper = format!(
        "kind = \"tbf\"\nrate = \"2 Mbit/s\"\nburst = \"10 kB\"\n[bottleneck.queue.queue]\n{TAIL_DROP}"
    );
    let text = dumbbell(&shaper, "", "").replace("\"sack\"", "\"linux\"");
    let (text, _) = text
        .split_once("[[traffic]]\nname = \"step\"")
        .expect("UDP");
    assert_eq!(same_results(text), 0.0);
}

/// TCP and UDP, then users and calls too, send over the link of one host, in both directions.
#[test]
fn hosts_that_groups_share_are_served_in_time() {
    let back = format!(
        "[bottleneck.return]\nrate = \"1 Mbit/s\"\ndelay = \"20 ms\"\nqueue = {{ {} }}\n",
        TAIL_DROP.replace('\n', ", ")
    );
    let group = |keys: &str| format!("[[traffic]]\n{keys}\nhosts = \"always\"\n");
    let more = group("name = \"more\"\nkind = \"bulk\"\nflows = 2\ntcp = \"sack\"");
    let up = group("name = \"up\"\nkind = \"bulk\"\ndirection = \"reverse\"\ntcp = \"sack\"");
    let people = group("name = \"pages\"\nkind = \"web\"\nmodel = \"http2\"\nusers = 3")
        + &group("name = \"talk\"\nkind = \"call\"\nflows = 3");
    let owner = "access_delay = [\"5 ms\", \"5 ms\", \"10 ms\"]";
    for queue in [TAIL_DROP, FQ_CODEL, "kind = \"cake\""] {
        for (back, groups) in [
            ("", more.clone()),
            (&back, more.clone() + &up),
            (&back, more.clone() + &up + &people),
        ] {
            // The sources are on the hosts of the TCP senders.
            let text = dumbbell(queue, "", back) + "hosts = \"always\"\n" + &groups;
            same_results(&text.replace(owner, &format!("{owner}\naccess_rate = \"4 Mbit/s\"")));
        }
    }
}

#[test]
fn random_losses_and_changing_rates_do_not_matter() {
    for queue in [RED, CODEL, FQ_CODEL] {
        let text = dumbbell(queue, "wire.loss = 0.01", "");
        same_results(&text);
        let returning = format!(
            "[bottleneck.return]\nrate = \"100 kbit/s\"\ndelay = \"20 ms\"\nwire.loss = 0.02\n\
             [bottleneck.return.queue]\n{TAIL_DROP}\n"
        );
        same_results(&dumbbell(queue, "", &returning));
        let changing = "rate_changes = [{ at = \"3 s\", rate = \"1 Mbit/s\" }, { at = \"6 s\", rate = \"9 Mbit/s\" }]";
        same_results(&dumbbell(queue, changing, ""));
    }
}

#[test]
fn wires_do_not_matter() {
    for wire in [
        "wire = { loss = { p = 0.01, r = 0.3 }, duplicate = 0.05 }",
        "wire = { limit = 12, duplicate = 0.1 }",
        "wire = { jitter = \"uniform 0..3 ms\" }",
        "wire = { jitter = \"exponential mean 2 ms\", order = \"free\", limit = 20 }",
        "wire = { reorder = { share = 0.1, by = \"15 ms\" }, duplicate = 0.05 }",
        "wire = { delay_changes = [{ at = \"3 s\", delay = \"0 s\" }, { at = \"5 s\", delay = \"40 ms\", gap = \"50 ms\" }] }",
        "wire = { delay_changes = { every = \"1 s\", delay = \"uniform 5..30 ms\" }, batches = { every = \"4 ms\", packets = 3 } }",
    ] {
        for queue in [TAIL_DROP, CODEL] {
            same_results(&dumbbell(queue, wire, ""));
            let returning = format!(
                "[bottleneck.return]\nrate = \"100 kbit/s\"\ndelay = \"20 ms\"\n{wire}\n[bottleneck.return.queue]\n{TAIL_DROP}\n"
            );
            same_results(&dumbbell(queue, "", &returning));
        }
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
    same_results_with_fewer(CHAIN, 0.1, "a chain");
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
fn packets_of_several_lines_arrive_at_a_link_in_their_order() {
    for groups in [2, 5, 16] {
        same_results_with_fewer(&at_the_same_instants(groups), 0.2, &format!("{groups}"));
    }
    // So many lines are not searched: only ends of transmissions have lookahead.
    let text = at_the_same_instants(17);
    same_results(&text);
}

#[test]
fn losses_of_users_are_known_when_they_act() {
    // The number and the place of a user's next connection depend on whether the last packet of an old one has been
    // lost: SFQ and FQ-CoDel sort packets by these numbers.
    let queues = [
        "kind = \"tail-drop\", limit = \"10 packets\"",
        "kind = \"codel\", limit = \"100 packets\", target = \"1 ms\"",
        "kind = \"fq-codel\", limit = \"20 packets\", flows = 4",
        "kind = \"sfq\", limit = \"20 packets\"",
    ];
    for queue in queues {
        for loss in ["", "wire.loss = 0.02", "wire.loss = 0.3"] {
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
                same_results_with_fewer(&text, 0.3, &format!("{queue} {loss}"));
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
wire.loss = 0.3
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
            same_results_with_fewer(&text, 0.3, &format!("{queue} {way_back}"));
        }
    }
}

/// Hosts far from a lossy link, whose timers of all kinds expire while endpoints lag behind. `more` has further lines for
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
wire.loss = 0.03
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
fn endpoints_lag_behind_where_they_may() {
    for more in [
        // The return path takes no time, a constant time, the same for all hosts, and is part of another line.
        "",
        "return_delay = [\"60 ms\", \"10 ms\", \"1 ms\"]",
        "return_delay = \"90 ms\"",
        "return_delay = \"90 ms\"\nhost_jitter = \"5 ms\"",
    ] {
        same_results_with_fewer(&far_hosts(more), 0.2, more);
    }
    let returning = format!(
        "[bottleneck.return]\nrate = \"50 kbit/s\"\ndelay = \"30 ms\"\n[bottleneck.return.queue]\n{TAIL_DROP}\n"
    );
    let text = far_hosts("return_delay = \"7 ms\"").replacen(
        "[[traffic]]",
        &format!("{returning}[[traffic]]"),
        1,
    );
    same_results(&text);
}

#[test]
fn endpoints_with_timers_that_expire_at_once_are_in_time() {
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
        assert_eq!(same_results(&text), 0.0, "{group}");
    }
}

#[test]
fn a_trace_of_the_rate_may_be_beside_a_link_with_lookahead() {
    let trace = "rate_trace = { differences_ms = \"3 0 5 1 0 0 7\" }\nreturn = { rate = \"500 kbit/s\", \
                 delay = \"20 ms\", queue = { kind = \"tail-drop\", limit = \"20 packets\" } }";
    for queue in [TAIL_DROP, RED, CODEL, FQ_CODEL] {
        let text = dumbbell(queue, trace, "").replace("rate = \"3 Mbit/s\"\n", "");
        same_results(&text);
    }
}

#[test]
fn connections_of_a_table_agree() {
    for loss in ["", "wire.loss = 0.1"] {
        let text = format!(
            r#"
duration = "8 s"
warmup = "1 s"
[series]
interval = "90 ms"
[bottleneck]
rate = "4 Mbit/s"
delay = "20 ms"
queue = {{ kind = "sfq", limit = "30 packets" }}
{loss}
[bottleneck.return]
rate = "4 Mbit/s"
delay = "10 ms"
queue = {{ kind = "tail-drop", limit = "30 packets" }}
[[traffic]]
name = "all"
kind = "trace"
file = "t.csv"
[[traffic]]
name = "bulk"
kind = "bulk"
"#
        );
        let table = table();
        let scenario = scenario_with(&text, &table, |_, _| {});
        let traces = Traces::new().with(table);
        same_results_of(&scenario, &Plugins::new(), &traces, &text);
    }
}

/// A queue of a user that holds packets back, and asks to be woken.
#[derive(Default)]
struct Holding {
    waiting: std::collections::VecDeque<PacketId>,
    free: Time,
}

impl PluginQueue for Holding {
    fn enqueue(
        &mut self,
        packet: PacketView,
        _now: Time,
        _actions: &mut dyn Actions,
    ) -> Result<(), PluginError> {
        self.waiting.push_back(packet.id);
        Ok(())
    }

    fn dequeue(
        &mut self,
        now: Time,
        _actions: &mut dyn Actions,
    ) -> Result<Option<PacketId>, PluginError> {
        if now < self.free {
            return Ok(None);
        }
        let next = self.waiting.pop_front();
        if next.is_some() {
            self.free = now + Span::from_ms(5);
        }
        Ok(next)
    }

    fn next_wakeup(&self, _now: Time) -> Result<Option<Time>, PluginError> {
        Ok((!self.waiting.is_empty()).then_some(self.free))
    }
}

#[test]
fn a_queue_of_a_user_is_woken_in_time() {
    let text = dumbbell("kind = \"plugin\"\nclass = \"holding\"", "", "");
    let plugins = Plugins::new().with("holding", |_, _| Ok(Box::new(Holding::default())));
    same_results_of(&scenario(&text, 0), &plugins, &Traces::new(), &text);
}

/// Draws scenarios. Each has a chain of one or two hops with any queues, and up to five groups of any kinds.
struct Draw(Stream);

impl Draw {
    fn one_of<'a, T: ?Sized>(&mut self, choices: &[&'a T]) -> &'a T {
        choices[(self.0.uniform() * choices.len() as f64) as usize]
    }

    fn happens(&mut self, probability: f64) -> bool {
        self.0.uniform() < probability
    }

    fn queue(&mut self, classes: bool) -> String {
        let mut all = QueueParams::examples();
        // Plug-ins have tests of their own. Classes are those of the groups of the forward direction.
        all.retain(|(kind, keys)| *kind != "plugin" && (classes || !keys.contains("always")));
        let (kind, keys) = all[(self.0.uniform() * all.len() as f64) as usize];
        format!("kind = \"{kind}\"\n{keys}\n")
    }

    /// A link, whose table is `key`.
    fn link(&mut self, key: &str, forward: bool) -> String {
        let rate = self.one_of(&["800 kbit/s", "2 Mbit/s", "8 Mbit/s"]);
        let delay = self.one_of(&["0 ms", "1 ms", "5 ms", "20 ms", "20 ms"]);
        let more = match self.0.uniform() {
            draw if draw < 0.1 => "wire.loss = 0.02\n",
            draw if draw < 0.13 => {
                "wire = { loss = { p = 0.02, r = 0.4 }, duplicate = 0.05, limit = 15 }\n"
            }
            draw if draw < 0.15 => {
                "wire = { reorder = { share = 0.1, by = \"9 ms\" }, jitter = \"uniform 0..2 ms\" }\n"
            }
            draw if draw < 0.3 => "rate_changes = [{ at = \"1.5 s\", rate = \"600 kbit/s\" }]\n",
            _ => "",
        };
        let (rate, more) = match self.happens(0.1) {
            true => (
                String::new(),
                "rate_trace = { differences_ms = \"3 0 9 1\" }\n",
            ),
            false => (format!("rate = \"{rate}\"\n"), more),
        };
        let queue = self.queue(forward);
        format!("{rate}delay = \"{delay}\"\n{more}[{key}.queue]\n{queue}")
    }

    fn group(&mut self, number: usize) -> String {
        let name = match number {
            0 => "always".to_owned(),
            1 => "step".to_owned(),
            _ => format!("group{number}"),
        };
        let mut all = redtail_traffic::TrafficParams::examples();
        all.retain(|(kind, _)| !redtail_traffic::TrafficParams::OF_KERNELS.contains(kind));
        all.retain(|(kind, _)| *kind != "trace");
        let (kind, keys) = all[(self.0.uniform() * all.len() as f64) as usize];
        let access = self.one_of(&[
            "\"1 ms\"",
            "\"20 ms\"",
            "[\"1 ms\", \"20 ms\", \"40 ms\"]",
            "[\"0 ms\", \"150 ms\"]",
        ]);
        let back = self.one_of(&[
            "\"0 ms\"",
            "\"0 ms\"",
            "\"20 ms\"",
            "[\"20 ms\", \"90 ms\"]",
        ]);
        let jitter = self.one_of(&[
            "",
            "",
            "host_jitter = \"3 ms\"\n",
            "host_jitter = \"3 ms\"\ntrains = true\n",
        ]);
        let has_tcp = !matches!(
            kind,
            "cbr" | "on-off" | "voip" | "game" | "call" | "endpoint"
        );
        let tcp = match has_tcp {
            true => self.one_of(&[
                "",
                "tcp = \"newreno\"\n",
                "tcp = \"linux\"\n",
                "tcp = \"bbr\"\n",
                "tcp = { preset = \"sack\", delayed_ack = true, min_rto = \"30 ms\" }\n",
                "tcp = { preset = \"sack\", pacing = true }\n",
                "tcp = { preset = \"newreno\", ecn = true, handshake = true }\n",
            ]),
            false => "",
        };
        // The presets above have packets of 1500 bytes.
        let (packet, keys) = match self.happens(0.3) {
            true if has_tcp => ("packet = \"uniform 1200..1800 B\"\n", keys.to_owned()),
            true => ("", keys.replace("\"1000 B\"", "\"uniform 500..1500 B\"")),
            false => ("", keys.to_owned()),
        };
        format!(
            "[[traffic]]\nname = \"{name}\"\nkind = \"{kind}\"\naccess_delay = {access}\nreturn_delay = {back}\n\
             {jitter}{tcp}{packet}{keys}\n"
        )
    }

    fn scenario(&mut self) -> String {
        let interval = self.one_of(&["10 ms", "17 ms", "1 s"]);
        let mut text = format!(
            "duration = \"4 s\"\nwarmup = \"0.7 s\"\nphases = [\"2 s\"]\n[series]\ninterval = \"{interval}\"\nwindows = true\n"
        );
        for _ in 0..1 + usize::from(self.happens(0.4)) {
            text += "[[chain.hop]]\n";
            text += &self.link("chain.hop", true);
            if self.happens(0.5) {
                text += "[chain.hop.return]\n";
                text += &self.link("chain.hop.return", false);
            }
        }
        for number in 0..2 + (self.0.uniform() * 4.0) as usize {
            text += &self.group(number);
        }
        text
    }
}

#[test]
fn drawn_scenarios_agree() {
    let mut draw = Draw(Stream::named(1, 0, "scenarios"));
    // A queue may refuse its link, for instance one that no TCP flow crosses.
    let sound = |_| {
        let text = draw.scenario();
        Some((find_scenario(&text, 0).ok()?, text))
    };
    let sound: Vec<_> = (0..240).filter_map(sound).collect();
    assert!(
        sound.len() > 120,
        "only {} of 240 are accepted",
        sound.len()
    );
    let fewer: Vec<f64> = sound
        .iter()
        .map(|(scenario, text)| {
            let plugins = endpoints(&Diary::default());
            same_results_of(scenario, &plugins, &Traces::new(), text)
        })
        .collect();
    let some = fewer.iter().filter(|share| **share > 0.1).count();
    assert!(
        some > 60,
        "lookahead does little in the scenarios that are drawn: {some}"
    );
}

#[test]
fn what_is_sent_and_arrives_at_one_instant_comes_last() {
    // Everything takes a whole number of milliseconds. Acknowledgements of the hosts behind the first hop reach its way back
    // in no time, at the instants at which others come from the second hop.
    let hop = r#"
[[chain.hop]]
rate = "8 Mbit/s"
delay = "10 ms"
queue = { kind = "tail-drop", limit = "10 packets" }
[chain.hop.return]
rate = "320 kbit/s"
delay = "10 ms"
queue = { kind = "tail-drop", limit = "3 packets" }
"#;
    let group = |name: &str, more: &str| {
        format!(
            "[[traffic]]\nname = \"{name}\"\nkind = \"bulk\"\nflows = 3\naccess_delay = \"1 ms\"\nexit_delay = \"1 ms\"\n\
             access_rate = \"8 Mbit/s\"\nexit_rate = \"8 Mbit/s\"\n{more}\n\
             tcp = {{ preset = \"newreno\", mss = \"960 B\", delayed_ack = false, min_rto = \"50 ms\" }}\n"
        )
    };
    let groups =
        group("through", "") + &group("first", "last_hop = 1") + &group("second", "first_hop = 2");
    same_results(&format!(
        "duration = \"8 s\"\nwarmup = \"1 s\"\n{hop}{hop}{groups}"
    ));
}

#[test]
fn policers_frames_and_shared_media_may_be_beside_links_with_lookahead() {
    let policer = r#"policer = { kind = "tr-tcm", cir = "2 Mbit/s", cbs = "6 kB", pir = "6 Mbit/s", pbs = "30 kB", yellow = "AF12" }"#;
    let airtime = r#"airtime = { rates = { "up" = "2 Mbit/s" } }"#;
    let hop = |more: &str, back: &str| {
        format!(
            "[[chain.hop]]\nrate = \"8 Mbit/s\"\ndelay = \"10 ms\"\nqueue = {{ kind = \"fq-codel\" }}\n{more}\n\
             [chain.hop.return]\nrate = \"3 Mbit/s\"\ndelay = \"5 ms\"\n\
             queue = {{ kind = \"tail-drop\", limit = \"40 packets\" }}\n{back}\n"
        )
    };
    let group = |name: &str, more: &str| {
        format!("[[traffic]]\nname = \"{name}\"\nkind = \"bulk\"\nflows = 3\n{more}\n")
    };
    let groups = group("down", "") + &group("up", "direction = \"reverse\"\ntcp = \"linux\"");
    for more in [
        policer.to_owned(),
        airtime.to_owned(),
        "medium = \"shared\"".to_owned(),
        format!("medium = \"shared\"\n{airtime}\n{policer}"),
    ] {
        same_results(&format!(
            "duration = \"8 s\"\nwarmup = \"1 s\"\nphases = [\"3 s\"]\n[series]\ninterval = \"10 ms\"\n{}{}{groups}",
            hop("", ""),
            hop(&more, policer),
        ));
    }
}
