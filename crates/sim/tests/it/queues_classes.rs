//! Classes in simulation: shares, shaping and priority against their closed forms, and the engine's part
//! in queues that may not send yet.

use crate::common::{metric, run};
use redtail_sim::{RunOptions, RunResult};
use redtail_spec::{Plan, PlanOptions};

/// Constant-rate sources of 1000 B packets on a link of 10 Mbit/s, each a group of its own,
/// measured from 5 s to 25 s.
fn sources(queue: &str, rates: &[(&str, &str)]) -> String {
    let groups = rates.iter().map(|(name, rate)| {
        format!("[[traffic]]\nname = \"{name}\"\nkind = \"cbr\"\npacket = \"1000 B\"\nrate = \"{rate}\"\n")
    });
    format!(
        "duration = \"25 s\"\nwarmup = \"5 s\"\n[bottleneck]\nrate = \"10 Mbit/s\"\ndelay = \"10 ms\"\n\
         queue = {queue}\n{}",
        groups.collect::<String>()
    )
}

const SHORT: &str = r#"queue = { kind = "tail-drop", limit = "20 packets" }"#;

/// Packets of 1000 B that a rate sends in the 20 s that are measured.
fn packets(kbps: f64) -> f64 {
    kbps * 1000.0 * 20.0 / 8000.0
}

#[test]
fn a_token_bucket_sends_at_its_rate_on_a_faster_link() {
    let queue = format!("{{ kind = \"tbf\", rate = \"500 kbit/s\", burst = \"2 kB\", {SHORT} }}");
    let result = run(&sources(&queue, &[("a", "2 Mbit/s")]));
    // One packet every 16 ms, each exactly: 1250 of them in 20 s.
    let utilization = metric(&result, "utilization");
    assert!((utilization - 0.05).abs() < 1e-12, "{utilization}");
    // 20 packets wait: one that is admitted meets 19 others, the first of which still needs up
    // to a packet's time.
    let delay = metric(&result, "queue_delay_mean");
    assert!((delay - 0.016 * 19.5).abs() <= 0.016 / 2.0, "{delay}");
}

#[test]
fn shaped_classes_are_woken_each_in_its_time_while_others_send() {
    // Three clocks that share no period, over a class without one: wakeups are put off, overtaken by
    // earlier ones and become stale all the time.
    let queue = format!(
        "{{ kind = \"prio\", class = [\n\
         {{ name = \"a\", match = {{ group = \"a\" }}, queue = {{ kind = \"tbf\", rate = \"300 kbit/s\", burst = \"1 kB\", {SHORT} }} }},\n\
         {{ name = \"b\", match = {{ group = \"b\" }}, queue = {{ kind = \"tbf\", rate = \"710 kbit/s\", burst = \"3 kB\", {SHORT} }} }},\n\
         {{ name = \"c\", match = {{ group = \"c\" }}, queue = {{ kind = \"tbf\", rate = \"1300 kbit/s\", burst = \"9 kB\", {SHORT} }} }},\n\
         {{ name = \"d\", {SHORT} }} ] }}"
    );
    let result = run(&sources(
        &queue,
        &[
            ("a", "2 Mbit/s"),
            ("b", "2 Mbit/s"),
            ("c", "2 Mbit/s"),
            ("d", "1 Mbit/s"),
        ],
    ));
    // A bucket of one packet loses what comes while its packet waits for the link, at most
    // one transmission (0.8 ms) of 26.7 ms; deeper ones lose nothing.
    let a = metric(&result, "queue.a.packets");
    assert!(
        a <= packets(300.0) && a >= packets(300.0) * 26.6 / 27.5,
        "{a}"
    );
    for (name, rate) in [("b", 710.0), ("c", 1300.0), ("d", 1000.0)] {
        let sent = metric(&result, &format!("queue.{name}.packets"));
        assert!((sent - packets(rate)).abs() <= 1.0, "{name}: {sent}");
    }
    // What is not shaped waits for what is in transmission and at most one packet of each class.
    let delay = metric(&result, "queue.d.queue_delay_mean");
    assert!(delay < 4.0 * 0.0008, "{delay}");
    assert_eq!(metric(&result, "queue.d.drops"), 0.0);
    // Wakeups cost events, a few for each packet, not more and more.
    let sent = packets(300.0 + 710.0 + 1300.0 + 1000.0);
    assert!(
        (result.events as f64) < 12.0 * sent * 1.25,
        "{}",
        result.events
    );
}

#[test]
fn htb_shares_a_link_by_rates_then_priorities_then_quanta() {
    let class = |name: &str, rate: &str, more: &str| {
        format!(
            "{{ name = \"{name}\", match = {{ group = \"{name}\" }}, rate = \"{rate}\", ceil = \"8 Mbit/s\", {more} {SHORT} }},\n"
        )
    };
    let queue = format!(
        "{{ kind = \"htb\", default = \"a\", class = [ {{ name = \"root\", rate = \"8 Mbit/s\", class = [\n{}{}{}] }} ] }}",
        class("a", "1 Mbit/s", "prio = 1, quantum = \"1 kB\","),
        class("b", "2 Mbit/s", "prio = 1, quantum = \"3 kB\","),
        class("c", "500 kbit/s", "prio = 0,"),
    );
    let run = |c: &str| {
        run(&sources(
            &queue,
            &[("a", "9 Mbit/s"), ("b", "9 Mbit/s"), ("c", c)],
        ))
    };
    // c takes the 3 Mbit/s that it wants; of the 2 Mbit/s beyond the promises a gets a quarter.
    let result = run("3 Mbit/s");
    for (name, kbps) in [("a", 1500.0), ("b", 3500.0), ("c", 3000.0)] {
        let sent = metric(&result, &format!("queue.{name}.packets"));
        assert!((sent - packets(kbps)).abs() <= 4.0, "{name}: {sent}");
    }
    assert_eq!(metric(&result, "queue.c.drops"), 0.0);
    // What c borrows is what it sends beyond its own rate.
    let borrowed = metric(&result, "queue.c.borrowed");
    assert!((borrowed - packets(2500.0)).abs() <= 2.0, "{borrowed}");
    // Without c: 3 Mbit/s are promised, 5 are shared 1 to 3.
    let result = run("1 bit/s");
    for (name, kbps) in [("a", 2250.0), ("b", 5750.0)] {
        let sent = metric(&result, &format!("queue.{name}.packets"));
        assert!((sent - packets(kbps)).abs() <= 4.0, "{name}: {sent}");
    }
}

#[test]
fn strict_priority_keeps_the_urgent_class_to_one_transmission() {
    let queue = format!(
        "{{ kind = \"prio\", class = [ {{ name = \"voice\", match = {{ dscp = \"EF\" }}, {SHORT} }}, {{ name = \"data\", {SHORT} }} ] }}"
    );
    let text = sources(&queue, &[("voice", "1 Mbit/s"), ("data", "20 Mbit/s")]);
    let text = text.replacen(
        "rate = \"1 Mbit/s\"",
        "rate = \"1 Mbit/s\"\ndscp = \"EF\"",
        1,
    );
    let result = run(&text);
    assert_eq!(metric(&result, "queue.voice.drops"), 0.0);
    assert!(metric(&result, "voice.queue_delay_p99") <= 0.0008);
    // The rest is the other's, whole.
    assert_eq!(metric(&result, "utilization"), 1.0);
    let sent = metric(&result, "queue.data.packets");
    assert!((sent - packets(9000.0)).abs() <= 1.0, "{sent}");
}

#[test]
fn weighted_classes_of_tcp_share_by_weight() {
    let queue = r#"{ kind = "KIND", class = [
        { name = "heavy", match = { group = "heavy" }, SHARE3 queue = { kind = "tail-drop", limit = "60 packets" } },
        { name = "light", SHARE1 queue = { kind = "tail-drop", limit = "60 packets" } } ] }"#;
    for (kind, three, one) in [
        ("wfq", "weight = 3,", "weight = 1,"),
        ("drr", "quantum = \"4500 B\",", "quantum = \"1500 B\","),
    ] {
        let queue = queue
            .replace("KIND", kind)
            .replace("SHARE3", three)
            .replace("SHARE1", one);
        let groups = ["heavy", "light"].map(|name| {
            format!("[[traffic]]\nname = \"{name}\"\nkind = \"bulk\"\nflows = 4\naccess_delay = \"10 ms\"\n")
        });
        let result = run(&format!(
            "duration = \"25 s\"\nwarmup = \"5 s\"\n[bottleneck]\nrate = \"10 Mbit/s\"\ndelay = \"10 ms\"\n\
             queue = {queue}\n{}",
            groups.concat()
        ));
        // Both always wait: 3 to 1 to within a turn.
        let bytes = ["heavy", "light"].map(|name| metric(&result, &format!("queue.{name}.bytes")));
        assert!(
            (bytes[0] - 3.0 * bytes[1]).abs() <= 3.0 * 4.0 * 1500.0,
            "{kind}: {bytes:?}"
        );
        assert_eq!(metric(&result, "utilization"), 1.0);
    }
}

#[test]
fn shaped_trees_of_red_carry_tcp() {
    // HTB under a token bucket, RED in the leaves: packets are conserved (the engine checks
    // it) and the link has what the outer bucket lets pass.
    let red = r#"queue = { kind = "red", limit = "100 packets", min_th = "10 packets", max_th = "50 packets", gentle = true }"#;
    let queue = format!(
        "{{ kind = \"tbf\", rate = \"6 Mbit/s\", burst = \"15 kB\", queue = {{ kind = \"htb\", default = \"b\", class = [\n\
         {{ name = \"a\", match = {{ group = \"a\" }}, rate = \"2 Mbit/s\", ceil = \"2 Mbit/s\", {red} }},\n\
         {{ name = \"b\", rate = \"4 Mbit/s\", ceil = \"8 Mbit/s\", {red} }} ] }} }}"
    );
    let groups = ["a", "b"].map(|name| {
        format!(
            "[[traffic]]\nname = \"{name}\"\nkind = \"bulk\"\nflows = 5\naccess_delay = \"10 ms\"\n"
        )
    });
    let result = run(&format!(
        "duration = \"25 s\"\nwarmup = \"5 s\"\n[bottleneck]\nrate = \"10 Mbit/s\"\ndelay = \"10 ms\"\n\
         queue = {queue}\n{}",
        groups.concat()
    ));
    let rate = |name: &str| metric(&result, &format!("queue.{name}.bytes")) * 8.0 / 20.0;
    assert!(
        rate("a") <= 2_001_000.0 && rate("a") > 1_900_000.0,
        "{}",
        rate("a")
    );
    // A root of its own, b cannot borrow: its ceiling is idle and its rate holds.
    assert!(
        rate("b") <= 4_001_000.0 && rate("b") > 3_900_000.0,
        "{}",
        rate("b")
    );
}

#[test]
fn two_classes_give_the_stream_its_share_on_a_slow_last_hop_whatever_their_queues() {
    // The example after Riva 2003, case 2, at one start of the stream.
    let text = include_str!("../../../../examples/qos-last-hop.toml");
    let sets = ["factors.\"traffic.udp.start\"=[\"7 s\"]".to_owned()];
    let plan = Plan::from_text(
        text,
        PlanOptions {
            sets: &sets,
            ..PlanOptions::default()
        },
    )
    .expect("the example can be run");
    assert_eq!(plan.warnings, [""; 0]);
    let run = |case| {
        let scenario = plan.scenario(case, 0).expect("there are four queues");
        redtail_sim::run(&scenario, RunOptions::default()).expect("it can be run")
    };
    let [tail_drop, _red, two_tail_drop, two_red] = [0, 1, 2, 3].map(run);
    // Alone in its class the stream loses nothing and hardly waits: one packet of TCP's is
    // 86 ms, and a second goes first when the stream has spent its share.
    for (result, what) in [(&two_tail_drop, "tail drop"), (&two_red, "RED")] {
        assert_eq!(metric(result, "queue.udp.drops"), 0.0, "{what}");
        let delay = metric(result, "queue.udp.queue_delay_mean");
        assert!(delay < 0.086 * 2.0, "{what}: {delay}");
        assert_eq!(metric(result, "tcp.completed"), 1.0, "{what}");
    }
    // Behind TCP in one buffer it waits for most of its 1.14 s.
    let behind = metric(&tail_drop, "udp.queue_delay_mean");
    assert!(behind > 0.4, "{behind}");
    // RIVA-10: with two classes tail drop and RED do the same for the stream.
    let received = |result| metric(result, "queue.udp.packets");
    let (one, other) = (received(&two_tail_drop), received(&two_red));
    assert!((one - other).abs() <= 0.02 * one, "{one} {other}");
}

#[test]
fn pfifo_fast_puts_calls_behind_downloads_if_they_ask_for_ef() {
    // Linux's table knows types of service and no codepoints: EF and best effort share a band,
    // VA is in the one before, AF41 in the one behind.
    let with_calls = |dscp: &str| {
        run(&format!(
            r#"
duration = "40 s"
warmup = "10 s"
[bottleneck]
rate = "10 Mbit/s"
delay = "10 ms"
queue = {{ kind = "pfifo-fast", limit = "100 packets" }}
[[traffic]]
name = "download"
kind = "bulk"
flows = 4
tcp = "linux"
start = "uniform 0..1 s"
return_delay = "10 ms"
[[traffic]]
name = "call"
kind = "cbr"
rate = "80 kbit/s"
packet = "200 B"
dither = 0.5
dscp = "{dscp}"
"#
        ))
    };
    let packet = 1.2e-3;
    let delay =
        |result: &RunResult, group: &str| metric(result, &format!("{group}.queue_delay_mean"));
    // Band 0 waits for the packet in transmission.
    let result = with_calls("VA");
    assert!(
        delay(&result, "call") < packet,
        "{}",
        delay(&result, "call")
    );
    assert!(delay(&result, "download") > 20.0 * packet);
    assert!(metric(&result, "queue.band0.packets") > 1000.0);
    // Band 1 waits with the downloads.
    let result = with_calls("EF");
    let ratio = delay(&result, "call") / delay(&result, "download");
    assert!((ratio - 1.0).abs() < 0.1, "{ratio}");
    // Band 2 gets what the downloads leave: nothing.
    let result = with_calls("AF41");
    assert_eq!(metric(&result, "queue.band2.packets"), 0.0);
    assert!(metric(&result, "queue.band2.drops") > 1000.0);
    assert_eq!(metric(&result, "call.utilization"), 0.0);
}

/// Three flows of 4 Mbit/s, each on a host of its own, and what each of three classes sends of them, in Mbit/s.
fn by_host(more: &str, match_of: impl Fn(u32) -> String) -> [f64; 3] {
    let class = |host: u32| {
        let rate = host + 1;
        format!(
            "{{ name = \"c{host}\", {}rate = \"{rate} Mbit/s\", {SHORT} }},\n",
            match_of(host)
        )
    };
    let classes: String = (0..3).map(class).collect();
    let queue = format!("{{ kind = \"htb\", default = \"c2\", class = [\n{classes}] }}");
    let text = sources(&queue, &[("a", "4 Mbit/s")]);
    let result = run(&format!("{text}flows = 3\nhosts = 3\n{more}"));
    [0, 1, 2].map(|host| metric(&result, &format!("queue.c{host}.packets")) / packets(1000.0))
}

#[test]
fn a_class_takes_what_is_on_a_host_of_a_group() {
    let near = |rates: [f64; 3], wanted: [f64; 3]| {
        let same = rates
            .iter()
            .zip(wanted)
            .all(|(rate, wanted)| (rate - wanted).abs() < 0.02);
        assert!(same, "{rates:?}, {wanted:?}");
    };
    let of_host = |host: u32| format!("match = {{ group = \"a\", host = {host} }}, ");
    near(by_host("", of_host), [1.0, 2.0, 3.0]);
    // The last class is the default, with a match or without.
    let but_last = |host: u32| {
        if host < 2 {
            of_host(host)
        } else {
            String::new()
        }
    };
    near(by_host("", but_last), [1.0, 2.0, 3.0]);
    // The first rule that fits decides, of whatever form it is.
    let first = |host: u32| match host {
        0 => "match = { group = \"a\", host = [0, 1], protocol = \"udp\" }, ".to_owned(),
        1 => "match = { group = \"a\", host = 1 }, ".to_owned(),
        _ => String::new(),
    };
    near(by_host("", first), [1.0, 0.0, 3.0]);
    let group = |host: u32| match host {
        0 => "match = { group = \"a\", host = 2 }, ".to_owned(),
        1 => "match = { group = \"a\" }, ".to_owned(),
        _ => String::new(),
    };
    near(by_host("", group), [1.0, 2.0, 0.0]);
    // Another group on the same hosts: half of its class each.
    let other = "[[traffic]]\nname = \"b\"\nkind = \"cbr\"\npacket = \"1000 B\"\nrate = \"4 Mbit/s\"\nflows = 3\n\
                 hosts = \"a\"\n";
    let both = |host: u32| format!("match = {{ group = [\"a\", \"b\"], host = {host} }}, ");
    near(by_host(other, both), [1.0, 2.0, 3.0]);
}
