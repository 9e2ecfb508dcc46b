//! What is legal but hardly meant.

use crate::common::{FILE, changed, plan, single};

fn warnings(changes: &[(&str, &str)]) -> Vec<String> {
    plan(&changed(&single(), changes), &[]).unwrap().warnings
}

#[test]
fn a_sound_file_has_none() {
    assert_eq!(warnings(&[]), [""; 0]);
}

#[test]
fn a_buffer_below_one_bandwidth_delay_product() {
    assert_eq!(
        warnings(&[
            ("limit = \"300 packets\"", "limit = \"100 packets\""),
            ("195 packets", "90 packets")
        ]),
        [
            "e.toml:9: bottleneck.queue.limit = \"100 packets\" is below one bandwidth-delay product (10 Mbit/s x 130 ms \
          mean base round trip = 162 kB or 109 packets of 1500 B): with few flows the link will run idle after losses"
        ]
    );
    assert_eq!(
        warnings(&[(
            "limit = \"300 packets\"",
            "limit = [\"300 packets\", \"100 kB\"]"
        )])
        .len(),
        1
    );
    assert_eq!(
        warnings(&[(
            "limit = \"300 packets\"",
            "limit = [\"300 packets\", \"200 kB\"]"
        )]),
        [""; 0]
    );
}

#[test]
fn a_window_that_keeps_flows_below_their_share() {
    // 14 kB in 140 ms are 800 kbit/s for each of four flows that share 10 Mbit/s.
    let with = |tcp: &str| {
        let tcp = format!("tcp = {tcp}");
        warnings(&[("flows = 64", "flows = 4"), ("tcp = \"sack\"", &tcp)])
    };
    assert_eq!(
        with("{ receive_window = \"14 kB\" }"),
        [
            "e.toml:15: traffic.ftp.tcp.receive_window = \"14 kB\" limits the flows to 800 kbit/s (14 kB in each base round \
          trip of 140 ms); their share of the path is 2.5 Mbit/s and needs 43.8 kB"
        ]
    );
    assert_eq!(with("{ receive_window = \"43.8 kB\" }"), [""; 0]);
    assert_eq!(with("\"linux\""), [""; 0]);
}

#[test]
fn a_warmup_shorter_than_the_first_round_trips() {
    let expected = "is short of the slowest flow's first round trips: flows of \"ftp\" start as late as \"10 s\" and have \
                    base round-trip times up to \"140 ms\", so their slow start can last until \"11.4 s\" and will show in \
                    the statistics";
    assert_eq!(
        warnings(&[("\"50 s\"", "\"11 s\"")]),
        [format!("e.toml:3: warmup = \"11 s\" {expected}")]
    );
    assert_eq!(warnings(&[("\"50 s\"", "\"11.4 s\"")]), [""; 0]);
    assert_eq!(
        warnings(&[("warmup = \"50 s\"", "")]),
        [format!("e.toml:1: warmup (by default \"0 s\") {expected}")]
    );
}

#[test]
fn a_packet_larger_than_a_byte_limit() {
    assert_eq!(
        warnings(&[("\"300 packets\"", "[\"300 packets\", \"1 kB\"]")])[0],
        "e.toml:9: bottleneck.queue.limit = [\"300 packets\", \"1 kB\"] holds no packet of \"ftp\" (\"1500 B\"): every one of them \
         that has to wait is dropped"
    );
}

#[test]
fn a_stop_before_the_measurement() {
    let stopped = |stop: &str| warnings(&[("flows = 4\n", &format!("flows = 4\nstop = {stop}\n"))]);
    assert_eq!(
        stopped("\"50 s\""),
        [
            "e.toml:23: traffic.cbr.stop = \"50 s\" is \"50 s\" at the latest, and the measurement begins at \"50 s\", \
             after the warm-up: what such flows send by then is in no result"
        ]
    );
    assert_eq!(stopped("\"uniform 1..40 s\"").len(), 1);
    assert_eq!(stopped("\"50.1 s\""), [""; 0]);
    assert_eq!(stopped("[\"10 s\", \"60 s\"]"), [""; 0]);
}

#[test]
fn a_start_beyond_the_end() {
    assert_eq!(
        warnings(&[("flows = 4\n", "flows = 4\nstart = \"250 s\"\n")]),
        [
            "e.toml:23: traffic.cbr.start = \"250 s\" is as late as \"250 s\", and the run ends at \"200 s\": such flows never send"
        ]
    );
}

#[test]
fn thresholds_that_the_buffer_keeps_out_of_reach() {
    assert_eq!(
        warnings(&[("\"195 packets\"", "\"300 packets\"")]),
        [
            "e.toml:9: bottleneck.queue.max_th = \"300 packets\" is not below the limit (\"300 packets\"), so the buffer \
          overflows before the average gets there"
        ]
    );
}

#[test]
fn a_warning_of_many_cases_is_given_once() {
    let text = changed(
        FILE,
        &[(
            "{ kind = \"tail-drop\", limit = \"300 packets\" }",
            "{ kind = \"tail-drop\", limit = \"20 packets\" }",
        )],
    );
    let warnings = plan(&text, &[]).unwrap().warnings;
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(
        warnings[0].starts_with("e.toml:28: bottleneck.queue.limit = \"20 packets\" is below one"),
        "{warnings:?}"
    );
    assert!(warnings[0].ends_with("after losses"), "{warnings:?}");

    let text = changed(
        FILE,
        &[(
            "\"traffic.ftp.flows\" = [16, 64, 256]",
            "\"traffic.ftp.access_delay\" = [\"1 ms\", \"10 s\"]",
        )],
    );
    let warnings = plan(&text, &[]).unwrap().warnings;
    assert!(
        warnings[0].ends_with("[in 2 of 4 cases, first with bottleneck.queue = tail-drop, traffic.ftp.access_delay = 10 s]"),
        "{warnings:?}"
    );
}

#[test]
fn warnings_that_differ_in_numbers_alone_are_told_once() {
    // The flows share hosts of other delays, so the mean round trip depends on their number.
    let text = changed(
        FILE,
        &[
            (
                "[\"20 ms\", \"40 ms\"]",
                "[\"20 ms\", \"40 ms\", \"46 ms\"]",
            ),
            ("[16, 64, 256]", "[1, 2, 256]"),
            (
                "{ kind = \"tail-drop\", limit = \"300 packets\" }",
                "{ kind = \"tail-drop\", limit = \"20 packets\" }",
            ),
        ],
    );
    assert_eq!(
        plan(&text, &[]).unwrap().warnings,
        [
            "e.toml:28: bottleneck.queue.limit = \"20 packets\" is below one bandwidth-delay product (10 Mbit/s x 120 ms \
             mean base round trip = 150 kB or 100 packets of 1500 B): with few flows the link will run idle after losses \
             [in 3 of 6 cases; these numbers with bottleneck.queue = tail-drop, traffic.ftp.flows = 1]"
        ]
    );
    // Two queues that are too small stand on lines of their own, and get a warning each.
    let text = text.replace(
        "\"300 packets\", min_th = \"45 packets\", max_th = \"195 packets\" },\n]",
        "\"30 packets\", min_th = \"4 packets\", max_th = \"19 packets\" },\n]",
    );
    assert_eq!(plan(&text, &[]).unwrap().warnings.len(), 2);
}

/// What is warned about with this queue at the bottleneck: FTP over TCP and a stream of UDP.
fn warnings_of(queue: &str) -> Vec<String> {
    warnings(&[(
        "{ kind = \"red\", limit = \"300 packets\", min_th = \"45 packets\", max_th = \"195 packets\" }",
        queue,
    )])
}

/// Two classes of this kind, with these keys of each and these queues.
fn two_classes(kind: &str, keys: [&str; 2], queues: [&str; 2]) -> String {
    format!(
        "{{ kind = \"{kind}\", class = [{{ name = \"udp\", match = {{ protocol = \"udp\" }}, {} queue = {} }}, \
         {{ name = \"bulk\", {} queue = {} }}] }}",
        keys[0], queues[0], keys[1], queues[1]
    )
}

const SHAPED: [&str; 2] = [
    "rate = \"2 Mbit/s\", ceil = \"10 Mbit/s\", quantum = \"3 kB\",",
    "rate = \"8 Mbit/s\", ceil = \"10 Mbit/s\", quantum = \"3 kB\",",
];

#[test]
fn a_class_with_a_buffer_below_what_its_own_flows_need_at_its_rate() {
    let tail_drop = |limit| format!("{{ kind = \"tail-drop\", limit = \"{limit}\" }}");
    // 2 packets are enough for UDP: it has no product.
    let [few, some, many] = [2, 30, 300].map(|n| tail_drop(format!("{n} packets")));
    let product = |key: &str, rate: &str, product: &str| {
        format!(
            "e.toml:9: bottleneck.queue.{key}.limit = \"30 packets\" is below one bandwidth-delay product \
             ({rate} Mbit/s x 130 ms mean base round trip = {product} of 1500 B): with few flows less \
             than that rate will leave after losses"
        )
    };
    let all = [
        ("htb", SHAPED, "8", "130 kB or 87 packets"),
        ("prio", [""; 2], "10", "162 kB or 109 packets"),
        (
            "drr",
            ["quantum = \"6 kB\",", "quantum = \"6 kB\","],
            "5",
            "81.2 kB or 55 packets",
        ),
        (
            "wfq",
            ["weight = 4,", "weight = 1,"],
            "2",
            "32.5 kB or 22 packets",
        ),
    ];
    for (kind, keys, rate, needs) in all {
        let with = |queue: &str| warnings_of(&two_classes(kind, keys, [&few, queue]));
        let expected = match kind {
            "wfq" => vec![], // 30 packets are enough for a fifth of the link
            _ => vec![product("class.bulk.queue", rate, needs)],
        };
        assert_eq!(with(&some), expected, "{kind}");
        assert_eq!(with(&many), [""; 0], "{kind}");
    }
    let shaped = |queue: &str| {
        format!("{{ kind = \"tbf\", rate = \"5 Mbit/s\", burst = \"3 kB\", queue = {queue} }}")
    };
    assert_eq!(
        warnings_of(&shaped(&some)),
        [product("queue", "5", "81.2 kB or 55 packets")]
    );
    assert_eq!(warnings_of(&shaped(&many)), [""; 0]);
    // A shaper in a class, and classes in a shaper.
    assert_eq!(
        warnings_of(&two_classes("prio", [""; 2], [&few, &shaped(&some)])),
        [product(
            "class.bulk.queue.queue",
            "5",
            "81.2 kB or 55 packets"
        )]
    );
    assert_eq!(
        warnings_of(&shaped(&two_classes("prio", [""; 2], [&few, &some]))),
        [product(
            "queue.class.bulk.queue",
            "5",
            "81.2 kB or 55 packets"
        )]
    );
    // Packets of 1500 B do not come to the class of 573 B.
    let bytes = |udp: &str, bulk: &str| {
        let queues = [tail_drop(udp.to_owned()), tail_drop(bulk.to_owned())];
        warnings_of(&two_classes("htb", SHAPED, [&queues[0], &queues[1]]))
    };
    assert_eq!(bytes("1 kB", "200 kB"), [""; 0]);
    assert_eq!(
        bytes("500 B", "200 kB"),
        [
            "e.toml:9: bottleneck.queue.class.udp.queue.limit = \"500 B\" holds no packet of \"cbr\" (\"573 B\"): every one \
             of them that has to wait is dropped"
        ]
    );
}

#[test]
fn a_class_whose_queue_does_not_fit_its_own_flows_and_rate() {
    let queues = |udp, bulk| two_classes("htb", SHAPED, [udp, bulk]);
    let plain = r#"{ kind = "tail-drop", limit = "300 packets" }"#;
    // At 2 Mbit/s, 573 B take 2.3 ms, and 1500 B 6 ms: CoDel's target is 5 ms.
    let codel = r#"{ kind = "codel", limit = "300 packets" }"#;
    assert_eq!(warnings_of(&queues(codel, plain)), [""; 0]);
    let slow = queues(plain, codel).replace("8 Mbit/s", "2 Mbit/s");
    assert_eq!(
        warnings_of(&slow),
        [
            "e.toml:9: bottleneck.queue.class.bulk.queue.target is below the time of one packet at this rate (6 ms), so two \
             packets are too many"
        ]
    );
    // None of the 64 TCP flows is in the class of UDP.
    let sixteen = r#"{ kind = "fq-codel", flows = 16 }"#;
    assert_eq!(warnings_of(&queues(sixteen, plain)), [""; 0]);
    assert_eq!(
        warnings_of(&queues(plain, sixteen)),
        [
            "e.toml:9: bottleneck.queue.class.bulk.queue.flows = 16 is less than the 64 TCP flows that cross the link, so \
             that some share a queue"
        ]
    );
}

const SOURCES: &str = r#"name = "sources"
duration = "60 s"
warmup = "10 s"
[bottleneck]
rate = "1 Mbit/s"
delay = "10 ms"
queue = { kind = "tail-drop", limit = "100 packets" }
[[traffic]]
name = "cbr"
kind = "cbr"
flows = 40
rate = "1 Mbit/s"
packet = "1500 B"
"#;

#[test]
fn hosts_that_send_more_than_their_links_take() {
    let plan_of = |change: &str| plan(&format!("{SOURCES}{change}"), &[]).unwrap();
    // By default a host's link has ten times what its flows send.
    let sound = plan_of("");
    assert_eq!(sound.warnings, [""; 0]);
    let filled_in = sound.scenario(0, 0).unwrap();
    let access = filled_in.traffic[0].access();
    assert_eq!(access.access_rate.unwrap().get(0).to_string(), "400 Mbit/s");
    assert_eq!(
        plan_of("hosts = 40\naccess_rate = \"1 Mbit/s\"").warnings,
        [""; 0]
    );
    assert_eq!(
        plan_of("access_rate = \"10 Mbit/s\"").warnings,
        [
            "e.toml:14: traffic.cbr.access_rate = \"10 Mbit/s\" is less than the \"40 Mbit/s\" that flows on one \
             host send together: the rest waits at the host's own link, without bound and in no figure of a \
             queue (cbr.host_wait_max tells how long); set hosts = 40 for a host to each flow, or a larger \
             access_rate"
        ]
    );
}

const SHARED: &str = r#"
name = "shared"
duration = "100 s"
warmup = "10 s"
[bottleneck]
rate = "50 Mbit/s"
delay = "1 ms"
queue = { kind = "cake" }
[bottleneck.return]
rate = "10 Mbit/s"
delay = "1 ms"
queue = { kind = "cake" }
[[traffic]]
name = "them"
"#;

#[test]
fn people_who_share_a_host_before_a_queue_that_counts_hosts() {
    let warned = |group: &str, queue: &str| {
        let text = SHARED.replace("{ kind = \"cake\" }", queue);
        plan(&format!("{text}{group}"), &[]).unwrap().warnings
    };
    let cake = r#"{ kind = "cake" }"#;
    let web = "kind = \"web\"\nusers = 10\nmodel = \"http2\"";
    let said = "e.toml:16: traffic.them.users = 10 share one host, and bottleneck.queue (cake) shares the link among \
                hosts: they get together what one host gets; set hosts = 10 for a host to each, or \
                isolation = \"flows\" in the queue";
    assert_eq!(warned(web, cake), [said]);
    // Callers have hosts of their own unless the file says otherwise.
    let calls = "kind = \"call\"\nflows = 4";
    assert_eq!(warned(calls, cake), [""; 0]);
    let shared = warned(&format!("{calls}\nhosts = 1"), cake);
    assert_eq!(shared.len(), 1, "{shared:?}");
    assert!(shared[0].starts_with("e.toml:16: traffic.them.flows = 4 share one host"));
    assert_eq!(warned(&format!("{web}\nhosts = 10"), cake), [""; 0]);
    assert_eq!(
        warned("kind = \"web\"\nusers = 1\nmodel = \"http2\"", cake),
        [""; 0]
    );
    // Downloads are not people, and other queues do not count hosts.
    assert_eq!(warned("kind = \"bulk\"\nflows = 10", cake), [""; 0]);
    assert_eq!(warned(web, r#"{ kind = "fq-codel" }"#), [""; 0]);
    assert_eq!(
        warned(web, r#"{ kind = "cake", isolation = "flows" }"#),
        [""; 0]
    );
    // A queue inside another.
    let within =
        r#"{ kind = "tbf", rate = "9 Mbit/s", burst = "15 kB", queue = { kind = "cake" } }"#;
    let inside = warned(web, within);
    assert!(
        inside[0].contains("bottleneck.queue.queue (cake)"),
        "{inside:?}"
    );
}

#[test]
fn hosts_that_keep_a_link_from_the_rate_it_rises_to() {
    let rising = SOURCES
        .replace(
            "delay = \"10 ms\"\n",
            "delay = \"10 ms\"\nrate_changes = [{ at = \"20 s\", rate = \"100 Mbit/s\" }]\n",
        )
        .replace("kind = \"cbr\"", "kind = \"bulk\"")
        .replace("rate = \"1 Mbit/s\"\npacket = \"1500 B\"\n", "");
    let plan_of = |change: &str| plan(&format!("{rising}{change}"), &[]).unwrap();
    let sound = plan_of("");
    let filled_in = sound.scenario(0, 0).unwrap();
    let access = filled_in.traffic[0].access();
    assert_eq!(access.access_rate.unwrap().get(0).to_string(), "1 Gbit/s");
    let warnings = plan_of("access_rate = \"10 Mbit/s\"").warnings;
    assert!(
        warnings.iter().any(|text| text.ends_with(
            "traffic.cbr.access_rate = \"10 Mbit/s\" keeps bottleneck from reaching its largest rate, \
             \"100 Mbit/s\": all hosts that send over it have \"10 Mbit/s\" together"
        )),
        "{warnings:?}"
    );
}

/// A shaper with a class for each of `count` subscribers, whose queues have a target below a packet's time.
fn subscribers(count: u32) -> Vec<String> {
    let classes: String = (0..count)
        .map(|i| {
            format!(
                "{{ name = \"c{i}\", match = {{ group = \"them\", host = {i} }}, rate = \"{} Mbit/s\", \
                 queue = {{ kind = \"fq-codel\", target = \"1 ms\" }} }},\n",
                2 + i % 2
            )
        })
        .collect();
    let text = SHARED.replace(
        "{ kind = \"cake\" }",
        &format!("{{ kind = \"htb\", default = \"c0\", class = [\n{classes}] }}"),
    );
    let group = format!("kind = \"web\"\nmodel = \"http2\"\nusers = {count}\nhosts = {count}");
    plan(&format!("{text}{group}"), &[]).unwrap().warnings
}

#[test]
fn what_many_classes_have_in_common_is_told_once() {
    let of_three = subscribers(3);
    let said = |warning: &String| {
        warning.contains(": bottleneck.queue.") && warning.contains(".target = ")
    };
    assert_eq!(
        of_three.iter().filter(|it| said(it)).count(),
        3,
        "{of_three:?}"
    );
    let of_many = subscribers(40);
    let found: Vec<_> = of_many.iter().filter(|it| said(it)).collect();
    assert_eq!(found.len(), 1, "{of_many:?}");
    assert!(
        found[0].contains("queue.class.c0.queue.target")
            && found[0].ends_with("[and 39 more alike, with other numbers: c1, c2, …, c39]"),
        "{}",
        found[0]
    );
}
