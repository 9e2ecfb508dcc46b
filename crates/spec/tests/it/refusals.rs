//! What a user reads when a file is refused: file, line, key, value, and what is accepted.

use crate::common::{FILE, changed, plan, refusal, single};
use redtail_qdisc::QueueParams;
use redtail_spec::{Format, Plan, PlanOptions};

/// What a queue's `kind` may be.
fn kinds() -> String {
    QueueParams::KINDS.join(", ")
}

/// The message for the single-case file with one change.
fn single_with(old: &str, new: &str) -> String {
    refusal(&changed(&single(), &[(old, new)]))
}

/// The message for the file with factors, with one change.
fn file_with(old: &str, new: &str) -> String {
    refusal(&changed(FILE, &[(old, new)]))
}

#[test]
fn the_unchanged_files_are_accepted() {
    plan(&single(), &[]).unwrap();
    plan(FILE, &[]).unwrap();
}

#[test]
fn not_toml() {
    assert_eq!(
        single_with("duration = \"200 s\"", "duration = 200 s"),
        "e.toml:2: not TOML at column 12: string values must be quoted, expected literal string\n\
         2 | duration = 200 s\n  |            ^"
    );
}

#[test]
fn formats() {
    let with = |line: &str| single_with("warmup = \"50 s\"", line);
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(
        with("format = 2"),
        format!(
            "e.toml:3: format = 2 is of a later redtail than this one ({version}); accepted: 1. Use a later \
             redtail (pip install --upgrade redtail)"
        )
    );
    for other in ["0", "-1", "\"1\"", "1.0", "[1]"] {
        assert_eq!(
            with(&format!("format = {other}")),
            format!(
                "e.toml:3: format = {other} is no format; accepted: 1, the format that redtail {version} reads \
                 (a file without this key has 1)"
            )
        );
    }
    let set = plan(&single(), &["format=7"]).unwrap_err().to_string();
    assert!(
        set.starts_with("--set format=7: format = 7 is of a later redtail"),
        "{set}"
    );
    assert_eq!(
        refusal(&(FILE.to_owned() + "format = [1, 2]\n")),
        r#"e.toml:32: factors."format": format is the same for all cases and cannot be a factor"#
    );
}

/// A later format may have any keys, and any values of keys that exist.
#[test]
fn a_later_format_is_all_that_is_said_of_a_file_of_it() {
    let file = "format = 2\nqueues = 3\nfactors = 4\n[[traffic]]\nname = 5\n";
    let message = refusal(file);
    assert!(message.starts_with("e.toml:1: format = 2 "), "{message}");
    assert_eq!(message.lines().count(), 1, "{message}");
}

#[test]
fn unknown_keys() {
    assert_eq!(
        single_with("rate = \"10", "rte = \"10"),
        r#"e.toml:7: bottleneck.rte: unknown key; accepted: name, rate, delay, queue, policer, airtime, wire, medium, return, rate_changes, rate_trace, overhead; did you mean "rate"?"#
    );
    assert_eq!(
        single_with("min_th", "minth"),
        "e.toml:9: bottleneck.queue.minth: unknown key; accepted: kind, tune, limit, min_th, max_th, max_p, w_q, gentle, \
         spacing, flavour, byte_mode, mean_packet, idle_decay, ecn, above_max_th; did you mean \"min_th\"?"
    );
    assert_eq!(
        single_with("warmup", "colour"),
        "e.toml:3: colour: unknown key; accepted: format, name, description, duration, warmup, replications, backend, seed, bottleneck, \
         chain, host_jitter, hosts, traffic, phases, series, events, record, keep_flows, programs, report, metrics, expect"
    );
    let message = single_with("flows = 64", "flow = 64");
    assert!(
        message
            .starts_with("e.toml:14: traffic.ftp.flow: unknown key; accepted: kind, name, flows, "),
        "{message}"
    );
    assert!(message.ends_with(r#"; did you mean "flows"?"#), "{message}");
    let message = single_with("\"sack\"", "{ preset = \"sack\", enc = true }");
    assert!(
        message.starts_with("e.toml:15: traffic.ftp.tcp.enc: unknown key; accepted: preset, mss, "),
        "{message}"
    );
}

#[test]
fn missing_keys() {
    assert_eq!(
        single_with("rate = \"10 Mbit/s\"\n", ""),
        "e.toml:6: bottleneck: the key \"rate\" is missing"
    );
    assert_eq!(
        single_with("name = \"Tail drop against RED\"\n", ""),
        "e.toml:1: the key \"name\" is missing"
    );
    assert_eq!(
        single_with("kind = \"red\", ", ""),
        format!(
            "e.toml:9: bottleneck.queue: the key \"kind\" is missing; accepted: {}",
            kinds()
        )
    );
    assert_eq!(
        single_with("limit = \"300 packets\", ", ""),
        "e.toml:9: bottleneck.queue.limit is missing; accepted: a queue size such as \"300 packets\", \
         or tune = \"ziegler\" to have it computed"
    );
    assert_eq!(
        single_with("packet = \"573 B\"\n", ""),
        "e.toml:19: traffic.cbr: the key \"packet\" is missing"
    );
}

#[test]
fn missing_units() {
    assert_eq!(
        single_with("\"10 Mbit/s\"", "10"),
        r#"e.toml:7: bottleneck.rate = 10: a rate carries its unit, for example "10 Mbit/s""#
    );
    assert_eq!(
        single_with("\"200 s\"", "\"200\""),
        r#"e.toml:2: duration = "200": a time carries its unit, for example "100 ms""#
    );
    assert_eq!(
        single_with("\"300 packets\"", "300"),
        r#"e.toml:9: bottleneck.queue.limit = 300: a queue size carries its unit, for example "300 packets", "64 kB" or "20 ms""#
    );
    assert_eq!(
        single_with("\"40 ms\"]", "40]"),
        r#"e.toml:16: traffic.ftp.access_delay (entry 2) = 40: a time carries its unit, for example "100 ms""#
    );
}

#[test]
fn wrong_units() {
    assert_eq!(
        single_with("\"10 Mbit/s\"", "\"10 Mbyte/s\""),
        r#"e.toml:7: bottleneck.rate = "10 Mbyte/s": "Mbyte/s" is not a unit of rate; accepted: bit/s, kbit/s, Mbit/s, Gbit/s"#
    );
    assert_eq!(
        single_with("\"10 Mbit/s\"", "\"100 ms\""),
        r#"e.toml:7: bottleneck.rate = "100 ms" is a time; a rate is wanted, for example "10 Mbit/s""#
    );
    assert_eq!(
        single_with("\"45 packets\"", "\"45 Mbit/s\""),
        r#"e.toml:9: bottleneck.queue.min_th = "45 Mbit/s" is a rate; a queue size is wanted, for example "300 packets", "64 kB" or "20 ms""#
    );
}

#[test]
fn zero_and_negative_rates() {
    assert_eq!(
        single_with("\"10 Mbit/s\"", "\"0 Mbit/s\""),
        r#"e.toml:7: bottleneck.rate = "0 Mbit/s" is zero; accepted: a rate such as "10 Mbit/s""#
    );
    assert_eq!(
        single_with("\"10 Mbit/s\"", "\"-10 Mbit/s\""),
        r#"e.toml:7: bottleneck.rate = "-10 Mbit/s": a rate cannot be negative; accepted: 0 or more, for example "10 Mbit/s""#
    );
    assert_eq!(
        single_with("\"250 kbit/s\"", "\"0 bit/s\""),
        r#"e.toml:23: traffic.cbr.rate = "0 bit/s" is zero; accepted: a rate such as "250 kbit/s""#
    );
    assert_eq!(
        single_with("flows = 4", "flows = 4\naccess_rate = \"0 bit/s\""),
        r#"e.toml:23: traffic.cbr.access_rate = "0 bit/s" is zero; accepted: a rate such as "100 Mbit/s""#
    );
}

#[test]
fn hosts_that_delay_packets_for_too_long() {
    let accepted = "is more than hosts delay packets; accepted: up to \"1 s\"; the transmission time of one \
                    packet at the bottleneck is enough";
    assert_eq!(
        single_with("flows = 4", "flows = 4\nhost_jitter = \"1001 ms\""),
        format!("e.toml:23: traffic.cbr.host_jitter = \"1001 ms\" {accepted}")
    );
    assert_eq!(
        single_with("warmup", "host_jitter = \"1 h\"\nwarmup"),
        format!("e.toml:3: host_jitter = \"1 h\" {accepted}")
    );
    let message = single_with("flows = 4", "flows = 4\nhost_jitter = 0.01");
    assert!(
        message.starts_with("e.toml:23: traffic.cbr.host_jitter = 0.01: "),
        "{message}"
    );
}

#[test]
fn thresholds_that_contradict_each_other() {
    assert_eq!(
        single_with("\"45 packets\"", "\"195 packets\""),
        r#"e.toml:9: bottleneck.queue.min_th = "195 packets" is not below max_th (195 packets); accepted: less than "195 packets""#
    );
    // The same in a factor: the line is that of the value.
    assert_eq!(
        refusal(&changed(
            FILE,
            &[(
                "limit = \"300 packets\", min_th = \"45 packets\", max_th = \"195 packets\" },\n]",
                "limit = \"300 packets\", min_th = \"45 packets\", max_th = \"5 packets\" },\n]"
            )]
        )),
        r#"e.toml:29: bottleneck.queue.min_th = "45 packets" is not below max_th (5 packets); accepted: less than "5 packets""#
    );
    assert_eq!(
        single_with("\"45 packets\"", "\"45 kB\""),
        r#"e.toml:9: bottleneck.queue.max_th = "195 packets" is in another unit than min_th (45 kB); accepted: both thresholds in packets, or both in bytes or time"#
    );
    assert_eq!(
        single_with("limit = \"300 packets\"", "limit = \"0 packets\""),
        r#"e.toml:9: bottleneck.queue.limit = "0 packets" would drop every packet; accepted: at least "1 packet", or at least one packet's size in bytes"#
    );
}

#[test]
fn times_that_contradict_each_other() {
    assert_eq!(
        single_with("\"50 s\"", "\"300 s\""),
        r#"e.toml:3: warmup = "300 s" is not shorter than the duration; accepted: less than "200 s""#
    );
    assert_eq!(
        single_with("\"50 s\"", "\"200 s\""),
        r#"e.toml:3: warmup = "200 s" is not shorter than the duration; accepted: less than "200 s""#
    );
    assert_eq!(
        single_with("\"200 s\"", "\"0 s\""),
        r#"e.toml:2: duration = "0 s" is zero; accepted: a time such as "200 s""#
    );
}

#[test]
fn losses_that_are_no_probabilities_below_one() {
    for (given, shown) in [("1", "1"), ("-0.01", "-0.01"), ("nan", "NaN")] {
        assert_eq!(
            single_with(
                "delay = \"100 ms\"",
                &format!("delay = \"100 ms\"\nwire.loss = {given}")
            ),
            format!(
                "e.toml:9: bottleneck.wire.loss = {shown} is not a probability below 1; \
                 accepted: 0 or more and less than 1, such as 0.02"
            )
        );
    }
}

#[test]
fn times_beyond_what_a_run_can_hold() {
    assert_eq!(
        single_with("\"200 s\"", "\"5000 h\""),
        r#"e.toml:2: duration = "5000 h" is more than can be run; accepted: up to "2400 h""#
    );
    assert_eq!(
        single_with("delay = \"100 ms\"", "delay = \"5000 h\""),
        r#"e.toml:8: bottleneck.delay = "5000 h" is more than can be run; accepted: up to "1 h""#
    );
    assert_eq!(
        single_with("\"20 ms\"", "\"2 h\""),
        r#"e.toml:16: traffic.ftp.access_delay = ["2 h", "40 ms"] is more than can be run; accepted: up to "1 h""#
    );
    assert_eq!(
        refusal(&(single() + "[series]\ninterval = \"300 s\"\n")),
        r#"e.toml:27: series.interval = "300 s" is longer than the run; accepted: up to "200 s""#
    );
    assert_eq!(
        refusal(&(single() + "[series]\ninterval = \"0 s\"\n")),
        r#"e.toml:27: series.interval = "0 s" is zero; accepted: a time such as "100 ms""#
    );
}

#[test]
fn a_root_filesystem_comes_from_one_place() {
    let with = |keys: &str| refusal(&format!("{}[programs]\n{keys}\n", single()));
    assert_eq!(
        with("root = \"a\"\nadd = [\"curl\"]"),
        "e.toml:28: programs.add = [\"curl\"] is given beside `root`, which has all that there is; accepted: one of them"
    );
    assert_eq!(
        with("root = \"\""),
        "e.toml:27: programs.root = \"\" names no file; accepted: a folder, or an archive of tar such as \"root.tar.gz\""
    );
    assert_eq!(
        with("add = [\" \"]"),
        "e.toml:27: programs.add = [\" \"] names nothing; accepted: names such as [\"python3\", \"/etc/ssl/certs\"]"
    );
    let plan = plan(&(single() + "[programs]\nadd = [\"curl\"]\n"), &[]).unwrap();
    assert_eq!(plan.root.unwrap().add, ["curl"]);
}

#[test]
fn what_would_keep_a_run_busy_almost_for_ever() {
    let queue = |queue: &str| {
        let text = single_with(
            "{ kind = \"red\", limit = \"300 packets\", min_th = \"45 packets\", max_th = \"195 packets\" }",
            queue,
        );
        text.strip_prefix("e.toml:9: bottleneck.queue.")
            .unwrap()
            .to_owned()
    };
    assert_eq!(
        queue(r#"{ kind = "fq-pie", update = "1 ns" }"#),
        "update = \"1 ns\" is below 1 us, which takes too many updates; accepted: at least \"1 us\" (Linux counts these \
         in microseconds), for example \"10 ms\""
    );
    assert_eq!(
        queue(r#"{ kind = "cake", rate = "9 Mbit/s", mpu = "1000 GB" }"#),
        "mpu = \"1000 GB\" is more than Linux takes; accepted: \"0 B\" to \"256 B\" (tc-cake)"
    );
    let cbr = "kind = \"cbr\"\nflows = 4\nrate = \"250 kbit/s\"\npacket = \"573 B\"";
    let group = |group: &str| {
        let text = single_with(cbr, group);
        let (_, rest) = text.split_once(": traffic.cbr.").expect(&text);
        rest.to_owned()
    };
    assert_eq!(
        group(
            "kind = \"on-off\"\nrate = \"250 kbit/s\"\npacket = \"500 B\"\non = \"20 ps\"\noff = \"1 s\""
        ),
        "on = \"20 ps\" is so short that a packet, which takes \"16 ms\" at the rate, takes 800000000 periods; accepted: a \
         mean of at least \"160 ns\" with this packet and rate, which makes 100000 periods; a time such as \"exponential \
         mean 1 s\""
    );
    let gap = |gap: &str| {
        group(&format!(
            "kind = \"arrivals\"\ngap = \"{gap}\"\nsize = \"1 kB\""
        ))
    };
    let accepted = "accepted: a mean of at least \"1 ns\"; a time such as \"50 ms\", or \"exponential mean 50 ms\"";
    assert_eq!(gap("0 ps"), format!("gap = \"0 ps\" is zero; {accepted}"));
    assert_eq!(
        gap("uniform 0..200 ps"),
        format!("gap = \"uniform 0..200 ps\" has a mean of \"100 ps\"; {accepted}")
    );
    let pages = group(
        "kind = \"web\"\nmodel = \"http1\"\nthink = \"uniform 0..1 ns\"\nthink_from = \"page-start\"",
    );
    assert!(
        pages.starts_with(
            "think = \"uniform 0..1 ns\" has a mean of \"500 ps\" from the start of a page to that of the next: pages \
             without end; accepted: a mean of at least \"1 ns\"; "
        ),
        "{pages}"
    );
    assert_eq!(
        group("kind = \"cbr\"\nrate = \"8001 Gbit/s\"\npacket = \"1 B\""),
        "rate = \"8001 Gbit/s\" is faster than the clock resolves: a byte takes less than a picosecond; accepted: up to \
         \"8000 Gbit/s\""
    );
    assert_eq!(
        single_with("\"10 Mbit/s\"", "\"20000 Gbit/s\""),
        "e.toml:7: bottleneck.rate = \"20000 Gbit/s\" is faster than the clock resolves: a byte takes less than a \
         picosecond; accepted: up to \"8000 Gbit/s\""
    );
    let series =
        |series: &str| single_with("[bottleneck]", &format!("[series]\n{series}\n[bottleneck]"));
    assert_eq!(
        series("interval = \"1 ps\"\ngoodput = false"),
        "e.toml:7: series.interval = \"1 ps\" makes more than 50000000 rows in \"200 s\", with 1 at each time; accepted: \
         \"4 us\" and more, or a shorter duration"
    );
    // By default the goodput of both groups is recorded too.
    assert_eq!(
        series("interval = \"1 ps\""),
        "e.toml:7: series.interval = \"1 ps\" makes more than 50000000 rows in \"200 s\", with 3 at each time; accepted: \
         \"12 us\" and more, or a shorter duration"
    );
    assert_eq!(
        series("interval = \"100 us\"\nwindows = true"),
        "e.toml:7: series.interval = \"100 us\" makes more than 50000000 rows in \"200 s\", with 67 at each time; \
         accepted: \"268 us\" and more, or a shorter duration"
    );
    assert_eq!(
        single_with(
            "tcp = \"sack\"",
            "tcp = { preset = \"sack\", initial_window = 4000000000 }"
        ),
        "e.toml:15: traffic.ftp.tcp.initial_window = 4000000000 is more than a receiver's largest window of 1 GiB (RFC \
         7323); accepted: 1 to 1048576 segments, for example 10 (RFC 6928)"
    );
    assert_eq!(
        single_with(
            "tcp = \"sack\"",
            "tcp = { preset = \"sack\", min_rto = \"1 ps\" }"
        ),
        "e.toml:15: traffic.ftp.tcp.min_rto = \"1 ps\" could retransmit in a standstill; accepted: at least \"1 us\" \
         (Linux's tcp_rto_min_us counts microseconds), such as \"200 ms\" (RFC 6298 says 1 s)"
    );
}

#[test]
fn a_group_that_no_memory_holds() {
    assert_eq!(
        single_with("flows = 64", "flows = 4000000000"),
        "e.toml:14: traffic.ftp.flows = 4000000000 is more than can be run; accepted: 1 to 1000000"
    );
}

#[test]
fn counts_of_zero_and_numbers_that_are_none() {
    assert_eq!(
        single_with("replications = 10", "replications = 0"),
        "e.toml:4: replications = 0 is zero; accepted: 1 or more"
    );
    assert_eq!(
        single_with("flows = 64", "flows = 0"),
        "e.toml:14: traffic.ftp.flows = 0 is zero; accepted: 1 to 1000000"
    );
    assert_eq!(
        single_with("flows = 64", "flows = -1"),
        "e.toml:14: traffic.ftp.flows = -1: expected a whole number from 1 to 1000000"
    );
    assert_eq!(
        single_with("flows = 64", "flows = \"many\""),
        "e.toml:14: traffic.ftp.flows = \"many\": expected a whole number from 1 to 1000000"
    );
    assert_eq!(
        single_with("flows = 64", "flows = 1979-05-27"),
        "e.toml:14: traffic.ftp.flows = 1979-05-27: expected a whole number from 1 to 1000000"
    );
    assert_eq!(
        single_with("packet =", "dither = 1.5\npacket ="),
        "e.toml:24: traffic.cbr.dither = 1.5 is not between 0 and 1; accepted: a number from 0 to 1"
    );
    assert_eq!(
        single_with("packet =", "start = \"5 s\"\nstop = \"5 s\"\npacket ="),
        "e.toml:25: traffic.cbr.stop = \"5 s\" is not after \"5 s\", when flow 0 may start; accepted: times after the start, or none"
    );
    assert_eq!(
        single_with(
            "start = \"uniform 0..10 s\"",
            "start = [\"0 s\", \"uniform 0..9 s\"]\nstop = \"uniform 8..12 s\""
        ),
        "e.toml:18: traffic.ftp.stop = \"uniform 8..12 s\" is not after \"9 s\", when flow 1 may start; accepted: times after the start, or none"
    );
    assert_eq!(
        single_with("\"573 B\"", "\"0 B\""),
        r#"e.toml:24: traffic.cbr.packet = "0 B" is empty; accepted: "1 B" to "65535 B", or a law within them such as "uniform 1400..1628 B""#
    );
    assert_eq!(
        single_with("tcp = \"sack\"", "tcp = { initial_window = 0 }"),
        "e.toml:15: traffic.ftp.tcp.initial_window = 0 could never start; accepted: 1 or more segments"
    );
}

#[test]
fn constants_of_laws() {
    let with = |tcp: &str| single_with("tcp = \"sack\"", &format!("tcp = {{ {tcp} }}"));
    assert_eq!(
        with("preset = \"cubic\", growth = { beta = 1.2 }"),
        "e.toml:15: traffic.ftp.tcp.growth.beta = 1.2 is outside its range; accepted: a number from 0.05 to 0.95; \
         the default is 0.7"
    );
    assert_eq!(
        with("growth = { beta = 0.5, kind = \"vegas\" }, slow_start = { gamma = 1 }"),
        "e.toml:15: traffic.ftp.tcp.slow_start.gamma = 1 is no constant of \"standard\"; accepted: no key but kind"
    );
    assert_eq!(
        with("preset = \"cubic\", growth = { c = \"fast\" }"),
        "e.toml:15: traffic.ftp.tcp.growth.c = \"fast\" is of another type; accepted: a number from 0.0001 to 10000; \
         the default is 0.4"
    );
    let unknown = with("growth = { kind = \"cubik\" }");
    let start =
        "e.toml:15: traffic.ftp.tcp.growth.kind = \"cubik\" is not known; accepted: reno, cubic, ";
    assert!(unknown.starts_with(start), "{unknown}");
    assert_eq!(
        with("rto_k = 0"),
        "e.toml:15: traffic.ftp.tcp.rto_k = 0 is outside its range; accepted: from 0.1 to 1000; for example 4 (RFC 6298)"
    );
}

#[test]
fn combinations_of_tcp_that_make_no_sense() {
    let with = |tcp: &str| single_with("tcp = \"sack\"", &format!("tcp = {{ {tcp} }}"));
    assert_eq!(
        with("ecn = true, ecn_reduction = \"dctcp\""),
        "e.toml:15: traffic.ftp.tcp.ecn_feedback does not say how much is marked, which this ecn_reduction goes by; \
         accepted: \"dctcp\" or \"accecn\", or ecn_reduction = \"loss\" or \"abe\""
    );
    assert_eq!(
        with("ecn = true, ecn_codepoint = \"ect1\""),
        "e.toml:15: traffic.ftp.tcp.ecn_codepoint = \"ect1\" promises a response in proportion to the marks (RFC 9331); \
         accepted: \"ect0\", or ecn_reduction = \"dctcp\" or \"prague\""
    );
    assert_eq!(
        with("handshake = false, ecn_syn_ack = true"),
        "e.toml:15: traffic.ftp.tcp.ecn_syn_ack = true is on while handshake is off: there is no SYN-ACK; \
         accepted: false, or handshake = true"
    );
}

#[test]
fn kinds_and_presets_that_are_not_known() {
    assert_eq!(
        single_with("kind = \"red\"", "kind = \"rde\""),
        format!(
            "e.toml:9: bottleneck.queue.kind = \"rde\" is not known; accepted: {}; did you mean \"red\"?",
            kinds()
        )
    );
    assert_eq!(
        single_with("kind = \"bulk\"", "kind = 3"),
        "e.toml:13: traffic.ftp.kind = 3 is not known; accepted: bulk, transfer, cbr, voip, on-off, game, transactions, web, video, arrivals, trace, call, endpoint, program"
    );
    assert_eq!(
        single_with("\"sack\"", "\"sak\""),
        r#"e.toml:15: traffic.ftp.tcp = "sak" is not known; accepted: sack, newreno, reno, tahoe, cubic, dctcp, prague, vegas, ledbat, linux, bbr, bbr3, westwood, bic, htcp, hybla, illinois, highspeed, scalable, veno, yeah, copa, bbr3-google, linux-2000, ns2-sack, ns2-newreno, ns2-reno, ns2-tahoe; did you mean "sack"?"#
    );
    assert_eq!(
        single_with("flows = 64", "direction = \"back\""),
        r#"e.toml:14: traffic.ftp.direction = "back" is not known; accepted: forward, reverse"#
    );
    assert_eq!(
        refusal(&changed(
            &single(),
            &[(
                "queue = { kind = \"red\", limit = \"300 packets\", min_th = \"45 packets\", max_th = \"195 packets\" }",
                "queue = \"red\""
            )]
        )),
        r#"e.toml:9: bottleneck.queue = "red": expected a table such as { kind = "red", ... }"#
    );
}

#[test]
fn topologies_that_are_none() {
    let head = single().split("[bottleneck]").next().unwrap().to_owned();
    let traffic = "[[traffic]]\nname = \"a\"\nkind = \"bulk\"\n";
    assert_eq!(
        refusal(&format!("{head}{traffic}")),
        "e.toml:1: the key \"bottleneck\" is missing; accepted: a [bottleneck], or a [chain] of several"
    );
    assert_eq!(
        refusal(&format!("{head}{traffic}[chain]\nhop = []\n")),
        "e.toml:9: chain: has no [[chain.hop]]; accepted: one or more"
    );
    let hop = "rate = \"1 Mbit/s\"\ndelay = \"1 ms\"\nqueue = { kind = \"tail-drop\", limit = \"9 packets\" }\n";
    assert_eq!(
        refusal(&format!("{}[chain]\n[[chain.hop]]\n{hop}", single())),
        "e.toml:26: chain: stands beside bottleneck; accepted: one of the two"
    );
}

#[test]
fn hops_that_are_out_of_range() {
    let chain = |group: &str, hop: &str| {
        format!(
            "name = \"n\"\nduration = \"1 s\"\n[[traffic]]\nname = \"a\"\nkind = \"bulk\"\n{group}\n[chain]\n\
             [[chain.hop]]\nrate = \"1 Mbit/s\"\ndelay = \"1 ms\"\nqueue = {{ kind = \"tail-drop\", limit = \"9 packets\" }}\n\
             [[chain.hop]]\nrate = \"1 Mbit/s\"\ndelay = \"1 ms\"\n{hop}\n"
        )
    };
    let sound = "queue = { kind = \"tail-drop\", limit = \"9 packets\" }";
    plan(&chain("last_hop = 2", sound), &[]).unwrap();
    assert_eq!(
        refusal(&chain("last_hop = 3", sound)),
        "e.toml:6: traffic.a.last_hop = 3 is not a hop of the chain; accepted: 1 to 2"
    );
    assert_eq!(
        refusal(&chain("first_hop = 0", sound)),
        "e.toml:6: traffic.a.first_hop = 0 is not a hop of the chain; accepted: 1 to 2"
    );
    assert_eq!(
        refusal(&chain("first_hop = 2\nlast_hop = 1", sound)),
        "e.toml:6: traffic.a.first_hop = 2 is beyond last_hop (1), and hops count in the chain's order whatever the \
         direction; accepted: at most 1"
    );
    assert_eq!(
        refusal(&chain(
            "",
            "queue = { kind = \"tail-drop\", limit = \"9 Mbit/s\" }"
        )),
        r#"e.toml:15: chain.hop2.queue.limit = "9 Mbit/s" is a rate; a queue size is wanted, for example "300 packets", "64 kB" or "20 ms""#
    );
    assert_eq!(
        refusal(&chain(
            "",
            &format!("{sound}\nreturn = {{ rate = \"0 bit/s\", delay = \"0 s\", {sound} }}")
        )),
        r#"e.toml:16: chain.hop2.return.rate = "0 bit/s" is zero; accepted: a rate such as "10 Mbit/s""#
    );
    assert_eq!(
        single_with("flows = 64", "first_hop = 1"),
        "e.toml:14: traffic.ftp.first_hop = 1 is a key of chains, and this is a bottleneck; accepted: no such key"
    );
}

#[test]
fn groups_with_bad_names() {
    assert_eq!(
        single_with("name = \"cbr\"", "name = \"ftp\""),
        r#"e.toml:20: traffic.ftp.name = "ftp" is the name of another group too (line 12); accepted: a name of its own"#
    );
    assert_eq!(
        single_with("name = \"cbr\"", "name = \"c.b\""),
        r#"e.toml:20: traffic: name = "c.b" cannot be part of a key; accepted: letters, digits, "_" and "-""#
    );
    assert_eq!(
        single_with("name = \"cbr\"", "name = \"return\""),
        r#"e.toml:20: traffic.return.name = "return" is what results call a link; accepted: any other name"#
    );
    assert_eq!(
        single_with("name = \"ftp\"", ""),
        "e.toml:11: traffic (entry 1): the key \"name\" is missing"
    );
}

#[test]
fn factors_that_are_empty_or_name_nothing() {
    assert_eq!(
        file_with("[16, 64, 256]", "[]"),
        r#"e.toml:31: factors."traffic.ftp.flows" = []: a factor needs at least one value"#
    );
    assert_eq!(
        file_with("traffic.ftp.flows", "traffic.ftp.flow")
            .split("; accepted")
            .next()
            .unwrap(),
        r#"e.toml:31: factors."traffic.ftp.flow": there is no key traffic.ftp.flow"#
    );
    assert_eq!(
        file_with("\"bottleneck.queue\"", "\"botleneck.queue\""),
        "e.toml:27: factors.\"botleneck.queue\": there is no key botleneck; accepted: format, name, description, duration, warmup, \
         replications, backend, seed, bottleneck, chain, host_jitter, hosts, traffic, phases, series, events, record, keep_flows, programs, report, metrics, expect; \
         did you mean \"bottleneck\"?"
    );
    assert_eq!(
        file_with("\"bottleneck.queue\"", "\"bottleneck.qeue\""),
        r#"e.toml:27: factors."bottleneck.qeue": there is no key bottleneck.qeue; accepted: name, rate, delay, queue, policer, airtime, wire, medium, return, rate_changes, rate_trace, overhead; did you mean "queue"?"#
    );
    assert_eq!(
        file_with("traffic.ftp.flows", "traffic.web.flows"),
        r#"e.toml:31: factors."traffic.web.flows": there is no traffic group "web"; accepted: ftp, cbr"#
    );
    assert_eq!(
        file_with("traffic.ftp.flows", "duration.x"),
        r#"e.toml:31: factors."duration.x": duration is "200 s" and has no key "x""#
    );
    assert_eq!(
        file_with("[16, 64, 256]", "[16, \"many\"]"),
        "e.toml:31: traffic.ftp.flows = \"many\": expected a whole number from 1 to 1000000"
    );
}

#[test]
fn a_contradiction_that_depends_on_a_factor_says_in_which_cases() {
    assert_eq!(
        file_with(
            "\"traffic.ftp.flows\" = [16, 64, 256]",
            "duration = [\"40 s\", \"100 s\"]"
        ),
        "e.toml:3: warmup = \"50 s\" is not shorter than the duration; accepted: less than \"40 s\" \
         [in 2 of 4 cases, first with bottleneck.queue = tail-drop, duration = 40 s]"
    );
}

#[test]
fn all_contradictions_are_told_at_once() {
    let text = changed(
        &single(),
        &[("\"50 s\"", "\"300 s\""), ("flows = 64", "flows = 0")],
    );
    let error = plan(&text, &[]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "e.toml:3: warmup = \"300 s\" is not shorter than the duration; accepted: less than \"200 s\"\n\
         e.toml:14: traffic.ftp.flows = 0 is zero; accepted: 1 to 1000000"
    );
    assert_eq!(
        (error.file(), error.line(), error.key()),
        (Some("e.toml"), Some(3), Some("warmup"))
    );
}

#[test]
fn arguments_are_named_as_they_were_given() {
    let refusal = |set: &str| plan(&single(), &[set]).unwrap_err().to_string();
    assert_eq!(
        refusal("bottleneck.rate=10"),
        r#"--set bottleneck.rate=10: bottleneck.rate = 10: a rate carries its unit, for example "10 Mbit/s""#
    );
    assert_eq!(
        refusal("bottleneck.rat=10 Mbit/s"),
        "--set bottleneck.rat=10 Mbit/s: bottleneck.rat: unknown key; accepted: name, rate, delay, queue, policer, airtime, wire, medium, return, rate_changes, rate_trace, overhead; did you mean \"rate\"?"
    );
    assert_eq!(
        refusal("traffic.web.flows=1"),
        r#"--set traffic.web.flows=1: traffic.web.flows: there is no traffic group "web"; accepted: ftp, cbr"#
    );
    assert_eq!(
        refusal("bottleneck.rate"),
        "--set bottleneck.rate: expected key=value, such as bottleneck.rate='20 Mbit/s'"
    );
    assert_eq!(
        refusal("bottleneck.queue.min_th=200 packets"),
        "--set bottleneck.queue.min_th=200 packets: bottleneck.queue.min_th = \"200 packets\" is not below max_th \
         (195 packets); accepted: less than \"195 packets\""
    );
}

#[test]
fn a_long_argument_is_not_repeated_as_a_whole() {
    let rates: Vec<String> = (1000..3000)
        .map(|rate| format!("'{rate} kbit/s'"))
        .collect();
    let argument = format!("factor.rate=[{}]", rates.join(", "));
    let error = plan(FILE, &[&argument]).unwrap_err().to_string();
    assert!(
        error.starts_with("--set factor.rate=['1000 kbit/s', "),
        "{error}"
    );
    assert!(error.contains("...: factor: unknown key"), "{error}");
    assert!(error.len() < 1000, "{} bytes", error.len());
}

#[test]
fn a_list_for_a_key_that_takes_one_value_says_how_to_vary_it() {
    let refusal = |set: &str| plan(&single(), &[set]).unwrap_err().to_string();
    assert_eq!(
        refusal("traffic.ftp.flows=[1,2]"),
        "--set traffic.ftp.flows=[1,2]: traffic.ftp.flows = [1, 2]: expected a whole number from 1 to 1000000; \
         to vary it, use --set 'factors.\"traffic.ftp.flows\"=[1, 2]'"
    );
    // What the hint says is accepted.
    plan(&single(), &["factors.\"traffic.ftp.flows\"=[1, 2]"]).unwrap();

    assert_eq!(
        single_with("flows = 64", "flows = [1, 2]"),
        "e.toml:14: traffic.ftp.flows = [1, 2]: expected a whole number from 1 to 1000000; \
         to vary it, give \"traffic.ftp.flows\" = [1, 2] under [factors]"
    );
    for set in [
        "bottleneck.rate=[\"1 Mbit/s\", \"2 Mbit/s\"]",
        "bottleneck.queue=[{ kind = \"tail-drop\", limit = \"9 packets\" }]",
        "duration=[\"100 s\"]",
    ] {
        assert!(
            refusal(set).contains("; to vary it, use --set 'factors.\""),
            "{}",
            refusal(set)
        );
    }
    // These are the same for all cases.
    for set in ["replications=[1, 2]", "name=[\"a\"]"] {
        assert!(!refusal(set).contains("vary"), "{}", refusal(set));
    }
    // A value of a factor that is a list itself has nothing to learn from the hint.
    let message = plan(FILE, &["factors.\"traffic.ftp.flows\"=[[1, 2]]"])
        .unwrap_err()
        .to_string();
    assert!(!message.contains("vary"), "{message}");
}

#[test]
fn labels_must_be_texts() {
    assert_eq!(
        single_with("kind = \"red\"", "label = 3, kind = \"red\""),
        "e.toml:9: bottleneck.queue.label = 3: expected a text in quotes"
    );
}

#[test]
fn json_is_refused_by_key_alone() {
    let refusal = |text| {
        Plan::from_text(
            text,
            PlanOptions {
                format: Format::Json,
                ..PlanOptions::default()
            },
        )
        .unwrap_err()
        .to_string()
    };
    assert_eq!(
        refusal("{\"name\": "),
        "line 1: not JSON: EOF while parsing a value at line 1 column 9"
    );
    assert_eq!(refusal("[1]"), "[1]: expected a table");
    assert_eq!(
        refusal(r#"{"name": "n", "duration": 3, "traffic": []}"#),
        "duration = 3: a time carries its unit, for example \"100 ms\"\n\
         the key \"bottleneck\" is missing; accepted: a [bottleneck], or a [chain] of several\n\
         traffic = [] is empty; accepted: one [[traffic]] table or more"
    );
    assert_eq!(
        refusal(r#"{"name": "n", "duration": "1 s", "seed": null, "traffic": [null]}"#),
        "traffic (entry 1) = null is not known; accepted: bulk, transfer, cbr, voip, on-off, game, transactions, web, video, arrivals, trace, call, endpoint, program\n\
         the key \"bottleneck\" is missing; accepted: a [bottleneck], or a [chain] of several"
    );
}

#[test]
fn reverse_traffic_without_a_way_back() {
    assert_eq!(
        single_with("flows = 64", "flows = 64\ndirection = \"reverse\""),
        "e.toml:15: traffic.ftp.direction = \"reverse\" has no link to travel on; \
         accepted: \"forward\", or a [bottleneck.return] link"
    );
}

#[test]
fn a_bad_group_name_is_found_in_its_own_group() {
    assert_eq!(
        single_with("name = \"cbr\"", "name = \"voice calls\""),
        "e.toml:20: traffic: name = \"voice calls\" cannot be part of a key; \
         accepted: letters, digits, \"_\" and \"-\""
    );
}

#[test]
fn models_go_with_their_own_start_rate_and_answers() {
    let tcp = |table: &str| single_with("\"sack\"", &format!("{{ {table} }}"));
    let at = |key: &str| format!("e.toml:15: traffic.ftp.tcp.{key} ");
    for (table, key, problem) in [
        (
            r#"preset = "bbr", slow_start = "standard""#,
            "slow_start",
            "is not used by a model, which has a start of its own",
        ),
        (
            r#"preset = "cubic", slow_start = "startup""#,
            "slow_start",
            "is part of a model, and this growth has none",
        ),
        (
            r#"preset = "bbr3", prr = true"#,
            "prr",
            "reduces a flight that a model sets itself",
        ),
        (
            r#"preset = "bbr", pacing = false"#,
            "pacing",
            "is off, but a model steers by the rate at which it sends",
        ),
        (
            r#"preset = "bbr", recovery = "newreno""#,
            "recovery",
            "does not tell a model what was delivered, and when",
        ),
        (
            r#"preset = "bbr3", recovery = "sack-1996""#,
            "recovery",
            "does not tell a model what was delivered, and when",
        ),
        (
            r#"preset = "bbr", ecn = true"#,
            "ecn",
            "would have packets marked that a model does not answer",
        ),
        (
            r#"preset = "bbr3-google", ecn = true, ecn_reduction = "loss""#,
            "ecn",
            "would have packets marked that a model does not answer",
        ),
        (
            r#"preset = "dctcp", ecn_reduction = "bbr""#,
            "ecn_reduction",
            "leaves the answer to marks to a model",
        ),
        (
            r#"preset = "prague", pacing_ca_ratio = 0"#,
            "pacing_ca_ratio",
            "is no share of the window to pace at",
        ),
    ] {
        let message = tcp(table);
        assert!(message.contains(problem), "{message}");
        assert!(message.starts_with(at(key).trim_end()), "{message}");
        assert!(message.contains("; accepted: "), "{message}");
    }
}

/// A tree of classes in place of the file's queue, from line 9 on.
const TREE: &str = r#"queue = { kind = "htb", class = [
  { name = "all", rate = "9 Mbit/s", class = [
    { name = "voice", match = { dscp = ["EF", "CS5"] }, rate = "1 Mbit/s", ceil = "2 Mbit/s",
      queue = { kind = "tail-drop", limit = "20 packets" } },
    { name = "data", rate = "8 Mbit/s", queue = { kind = "drr", class = [
      { name = "ftp", match = [{ group = "ftp" }, { port = 20 }],
        queue = { kind = "tail-drop", limit = "100 packets", label = "short" } },
      { name = "rest", queue = { kind = "tail-drop", limit = "300 packets" } },
    ] } },
  ] },
] }"#;

fn tree() -> String {
    let red = "queue = { kind = \"red\", limit = \"300 packets\", min_th = \"45 packets\", max_th = \"195 packets\" }";
    changed(&single(), &[(red, TREE)])
}

fn tree_with(old: &str, new: &str) -> String {
    refusal(&changed(&tree(), &[(old, new)]))
}

#[test]
fn a_queue_within_a_class_is_refused_by_its_whole_key_and_its_line() {
    plan(&tree(), &[]).unwrap();
    assert_eq!(
        tree_with("limit = \"20 packets\"", "limit = \"0 packets\""),
        "e.toml:12: bottleneck.queue.class.all.class.voice.queue.limit = \"0 packets\" would drop every packet; \
         accepted: at least \"1 packet\", or at least one packet's size in bytes"
    );
    assert_eq!(
        tree_with("limit = \"100 packets\"", "limt = \"100 packets\""),
        "e.toml:15: bottleneck.queue.class.all.class.data.queue.class.ftp.queue.limt: unknown key; accepted: kind, \
         limit; did you mean \"limit\"?"
    );
    assert_eq!(
        tree_with("kind = \"drr\"", "kind = \"dr\""),
        format!(
            "e.toml:13: bottleneck.queue.class.all.class.data.queue.kind = \"dr\" is not known; accepted: {}; did you mean \"drr\"?",
            kinds()
        )
    );
    assert_eq!(
        tree_with("label = \"short\"", "label = 3"),
        "e.toml:15: bottleneck.queue.class.all.class.data.queue.class.ftp.queue.label = 3: expected a text in quotes"
    );
    assert_eq!(
        tree_with("ceil = \"2 Mbit/s\"", "ceil = \"900 kbit/s\""),
        "e.toml:11: bottleneck.queue.class.all.class.voice.ceil = \"900 kbit/s\" is below rate (1 Mbit/s); accepted: \
         at least \"1 Mbit/s\""
    );
}

#[test]
fn rules_are_refused_where_they_stand() {
    assert_eq!(
        tree_with("group = \"ftp\"", "group = \"fpt\""),
        "e.toml:14: bottleneck.queue.class.all.class.data.queue.class.ftp.match = [{ group = \"fpt\" }, { port = 20 }] \
         names the group \"fpt\", which is not there; accepted: ftp, cbr"
    );
    assert_eq!(
        tree_with("\"CS5\"", "\"CS9\""),
        "e.toml:11: bottleneck.queue.class.all.class.voice.match.dscp (entry 2) = \"CS9\" is not a DSCP; accepted: \
         \"BE\", \"LE\", \"EF\", \"VA\", \"CS0\" to \"CS7\", \"AF11\" to \"AF43\", or 0 to 63"
    );
    assert_eq!(
        tree_with("{ port = 20 }", "{ prot = 20 }"),
        "e.toml:14: bottleneck.queue.class.all.class.data.queue.class.ftp.match (entry 2).prot: unknown key; accepted: \
         dscp, protocol, port, group, host; did you mean \"port\"?"
    );
    assert_eq!(
        tree_with("{ dscp = [\"EF\", \"CS5\"] }", "{ protocol = \"sctp\" }"),
        "e.toml:11: bottleneck.queue.class.all.class.voice.match.protocol = \"sctp\" is not known; accepted: tcp, udp"
    );
    assert_eq!(
        tree_with("{ dscp = [\"EF\", \"CS5\"] }", "\"EF\""),
        "e.toml:11: bottleneck.queue.class.all.class.voice.match = \"EF\": expected a table"
    );
    assert_eq!(
        tree_with("{ group = \"ftp\" }, { port = 20 }", ""),
        "e.toml:14: bottleneck.queue.class.all.class.data.queue.class.ftp.match = []: expected a list with at least one \
         value"
    );
}

#[test]
fn red_tuned_for_no_flows_and_profiles_that_cannot_be() {
    // All that crosses is UDP.
    let udp = changed(
        &single(),
        &[
            (
                "limit = \"300 packets\", min_th = \"45 packets\", max_th = \"195 packets\"",
                "tune = \"ziegler\"",
            ),
            ("kind = \"bulk\"", "kind = \"cbr\""),
            ("tcp = \"sack\"", "rate = \"1 Mbit/s\"\npacket = \"1000 B\""),
        ],
    );
    assert_eq!(
        refusal(&udp),
        "e.toml:9: bottleneck.queue.tune = \"ziegler\" needs TCP flows across the link to compute \
         parameters for; accepted: no tune, with limit, min_th and max_th"
    );
    let queue = "kind = \"red\", limit = \"300 packets\", min_th = \"45 packets\", max_th = \"195 packets\"";
    assert_eq!(
        single_with(
            queue,
            "kind = \"wred\", limit = \"300 packets\", profiles = [{ dscp = [\"AF11\"], min_th = \"9 packets\", \
             max_th = \"20 packets\" }, { min_th = \"30 packets\", max_th = \"20 packets\" }]"
        ),
        "e.toml:9: bottleneck.queue.profiles (entry 2).min_th is not below max_th (20 packets); \
         accepted: less than \"20 packets\""
    );
}

/// The single-case file whose bottleneck has these keys in place of its rate.
fn with_link_keys(keys: &str) -> String {
    changed(&single(), &[("rate = \"10 Mbit/s\"", keys)])
}

#[test]
fn rate_changes_out_of_order_or_outside_the_run() {
    let with = |changes: &str| {
        refusal(&with_link_keys(&format!(
            "rate = \"10 Mbit/s\"\nrate_changes = [\n{changes}\n]"
        )))
    };
    assert_eq!(
        with("{ at = \"50 s\", rate = \"5 Mbit/s\" },\n{ at = \"50 s\", rate = \"6 Mbit/s\" },"),
        r#"e.toml:10: bottleneck.rate_changes: "50 s" is not after the one before it, "50 s"; accepted: times that increase, above "0 s" and below "200 s""#
    );
    assert_eq!(
        with(r#"{ at = "0 s", rate = "5 Mbit/s" }"#),
        r#"e.toml:9: bottleneck.rate_changes: "0 s" is not after 0 s; accepted: times that increase, above "0 s" and below "200 s""#
    );
    assert_eq!(
        with(r#"{ at = "200 s", rate = "5 Mbit/s" }"#),
        r#"e.toml:9: bottleneck.rate_changes: "200 s" is not before the run's end; accepted: times that increase, above "0 s" and below "200 s""#
    );
    let message = with(r#"{ at = "20 s" }"#);
    assert!(
        message.starts_with("e.toml:9: bottleneck.rate_changes (entry 1): the key \"rate\""),
        "{message}"
    );
}

#[test]
fn a_law_of_rates_that_is_none() {
    let with = |law: &str| {
        refusal(&with_link_keys(&format!(
            "rate = \"10 Mbit/s\"\nrate_changes = {{ {law} }}"
        )))
    };
    let key = "e.toml:8: bottleneck.rate_changes";
    for (law, expected) in [
        (
            r#"every = "1 s""#,
            ": has no law, or more than one; accepted: one of rates, rate, sine and walk",
        ),
        (
            r#"every = "1 s", rates = ["1 Mbit/s"], rate = "uniform 1..2 Mbit/s""#,
            ": has no law, or more than one; accepted: one of rates, rate, sine and walk",
        ),
        (
            r#"every = "0 s", rates = ["1 Mbit/s"]"#,
            r#".every = "0 s" is zero; accepted: a time such as "100 ms""#,
        ),
        (
            r#"every = "1 us", rates = ["1 Mbit/s"]"#,
            r#".every = "1 us" makes 200000000 changes; accepted: up to 1000000 in a run, so a longer time"#,
        ),
        (
            r#"every = "1 s", from = "200 s", rates = ["1 Mbit/s"]"#,
            r#".from = "200 s" is not before the run's end; accepted: a time in the run"#,
        ),
        (
            r#"every = "1 s", from = "20 s", until = "20 s", rates = ["1 Mbit/s"]"#,
            r#".until = "20 s" is not after from; accepted: more than "20 s""#,
        ),
        (
            r#"every = "1 s", rate = "exponential mean 5 Mbit/s""#,
            r#".rate = "exponential mean 5 Mbit/s" has no largest value, or one that is faster than the clock resolves; accepted: a law with a max up to "8000 Gbit/s""#,
        ),
        (
            r#"every = "1 s", rates = ["9000 Gbit/s"]"#,
            r#".rates = ["9000 Gbit/s"] is faster than the clock resolves; accepted: rates up to "8000 Gbit/s""#,
        ),
        (
            r#"every = "1 s", sine = { low = "2 Mbit/s", high = "2 Mbit/s", period = "9 s" }"#,
            r#".sine.low = "2 Mbit/s" is not below high; accepted: less than "2 Mbit/s""#,
        ),
        (
            r#"every = "1 s", walk = { low = "1 Mbit/s", high = "2 Mbit/s", step = "100 kbit/s" }"#,
            r#".walk = { low = "1 Mbit/s", high = "2 Mbit/s", step = "100 kbit/s" } does not contain the link's rate, at which the walk begins; accepted: low and high with "10 Mbit/s" between them"#,
        ),
        (
            r#"every = "1 s", walk = { low = "1 Mbit/s", high = "20 Mbit/s", step = "20 Mbit/s" }"#,
            r#".walk.step = "20 Mbit/s" is no step; accepted: above zero, up to "19 Mbit/s""#,
        ),
    ] {
        assert_eq!(with(law), format!("{key}{expected}"));
    }
}

#[test]
fn a_law_with_more_changes_than_phases_may_be() {
    let law = "rate = \"10 Mbit/s\"\nrate_changes = { every = \"100 ms\", rates = [\"1 Mbit/s\"] }";
    let text = changed(
        &with_link_keys(law),
        &[("replications", "phases = \"auto\"\nreplications")],
    );
    let message = refusal(&text);
    assert!(
        message.ends_with("phases = \"auto\" makes more than 100 times; accepted: up to 100"),
        "{message}"
    );
}

#[test]
fn an_overhead_that_is_none() {
    let with = |overhead: &str| {
        refusal(&with_link_keys(&format!(
            "rate = \"10 Mbit/s\"\noverhead = {overhead}"
        )))
    };
    let unknown = with("\"docsis wlan\"");
    assert!(
        unknown.starts_with("e.toml:8: bottleneck.overhead")
            && unknown
                .contains("\"wlan\" is no link layer; accepted: words of tc-cake (noatm, atm, "),
        "{unknown}"
    );
    assert_eq!(
        with("{ bytes = \"300 B\" }"),
        r#"e.toml:8: bottleneck.overhead.bytes = "300 B" is more than Linux takes; accepted: "0 B" to "256 B" (tc-cake)"#
    );
}

#[test]
fn a_shaper_that_follows_nothing() {
    let with = |keys: &str| {
        let queue = format!("{{ kind = \"cake\", {keys} }}");
        refusal(&with_link_keys(&format!(
            "rate = \"10 Mbit/s\"\nreturn = {{ rate = \"9 Mbit/s\", delay = \"0 s\", queue = {queue} }}"
        )))
    };
    let queue = "e.toml:8: bottleneck.return.queue";
    assert_eq!(
        with(r#"rate = "9 Mbit/s", follow_after = "0 s", follow_hop = 2"#),
        format!("{queue}.follow_hop = 2 is no hop; accepted: 1 to 1")
    );
    assert_eq!(
        with(r#"rate = "9 Mbit/s", follow_hop = 1"#),
        format!(
            "{queue}.follow_hop = 1 has no meaning without follow_after; accepted: both, or neither"
        )
    );
    assert_eq!(
        with(r#"follow_after = "0 s""#),
        format!(
            "{queue}.rate is missing, and without it there is no shaper that could follow; accepted: a rate such as \"9.5 Mbit/s\""
        )
    );
}

#[test]
fn a_trace_that_cannot_be_read() {
    let text = with_link_keys("rate_trace = \"cell.trace\"");
    let refused = |answer: Result<&str, &str>| {
        let mut read = |name: &str| {
            assert_eq!(name, "cell.trace");
            answer.map(str::to_owned).map_err(str::to_owned)
        };
        let plan = Plan::from_text(
            &text,
            PlanOptions {
                file: Some("e.toml"),
                files: Some(&mut read),
                ..PlanOptions::default()
            },
        );
        plan.unwrap_err().to_string()
    };
    assert_eq!(
        refused(Err("is no file; accepted: a path")),
        r#"e.toml:7: bottleneck.rate_trace = "cell.trace" is no file; accepted: a path"#
    );
    assert_eq!(
        refused(Ok("3\n2\n")),
        r#"e.toml:7: bottleneck.rate_trace = "cell.trace": cell.trace:2: "2" is before the line above it; accepted: at least 3, the line before"#
    );
    assert_eq!(
        refused(Ok("")),
        "e.toml:7: bottleneck.rate_trace = \"cell.trace\": cell.trace:1: the trace is empty; \
         accepted: one line or more"
    );
}

#[test]
fn a_trace_beside_rate_changes() {
    let text = with_link_keys(
        "rate_trace = { differences_ms = \"1\" }\nrate_changes = [{ at = \"1 s\", rate = \"1 Mbit/s\" }]",
    );
    assert_eq!(
        refusal(&text),
        "e.toml:8: bottleneck.rate_changes: stands beside rate_trace; accepted: one of the two"
    );
}

#[test]
fn phases_outside_the_measurement_period() {
    let with = |phases: &str| {
        refusal(&changed(
            &single(),
            &[("replications", &format!("phases = {phases}\nreplications"))],
        ))
    };
    assert_eq!(
        with(r#"["50 s"]"#),
        r#"e.toml:4: phases: "50 s" is not after the end of the warm-up; accepted: times that increase, above "50 s" and below "200 s""#
    );
    assert_eq!(
        with("[]"),
        "e.toml:4: phases = [] is empty; accepted: one time or more, or \"auto\""
    );
    assert_eq!(
        with("\"never\""),
        r#"e.toml:4: phases = "never": expected "auto", or a list of times such as ["50 s", "150 s"]"#
    );
}

#[test]
fn a_group_called_as_a_phase_is() {
    assert_eq!(
        single_with("name = \"ftp\"", "name = \"phase2\""),
        "e.toml:12: traffic.phase2.name = \"phase2\" is what results call a phase; \
         accepted: any other name"
    );
}

#[test]
fn video_that_cannot_be_watched() {
    let with = |keys: &str| {
        let group = format!("[[traffic]]\nname = \"tv\"\nkind = \"video\"\n{keys}\n");
        let message = refusal(&(single() + &group));
        let (_, message) = message
            .split_once("traffic.tv.")
            .expect("it names the group");
        message.to_owned()
    };
    for (keys, message) in [
        (
            "bitrates = [\"1 Mbit/s\", \"3 Mbit/s\", \"2 Mbit/s\"]",
            r#"bitrates = ["1 Mbit/s", "3 Mbit/s", "2 Mbit/s"] has "2 Mbit/s" behind "3 Mbit/s"; accepted: rates in rising order"#,
        ),
        (
            "buffer = \"7 s\"",
            r#"buffer = "7 s" has no room for a segment beside the "4 s" that playback starts with; accepted: "8 s" and more"#,
        ),
        (
            "segment = \"20 s\"",
            r#"buffer has no room for a segment beside the "20 s" that playback starts with; accepted: "40 s" and more"#,
        ),
        (
            "reservoir = \"10 s\"",
            r#"reservoir = "10 s" is given, but another algorithm decides; accepted: it with algorithm = "buffer""#,
        ),
        (
            "algorithm = \"buffer\"\nreservoir = \"10 s\"\ncushion = \"17 s\"",
            r#"cushion = "17 s" ends at "27 s", but the buffer has at most "26 s" when a segment is asked for; accepted: at most "16 s""#,
        ),
        (
            "algorithm = \"buffer\"\nbuffer = \"8 s\"\nreservoir = \"4 s\"",
            r#"reservoir = "4 s" ends at "4 s", but the buffer has at most "4 s" when a segment is asked for; accepted: less than "4 s""#,
        ),
        (
            "window = 0",
            "window = 0 is out of range; accepted: 1 to 1000",
        ),
    ] {
        assert_eq!(with(keys), message);
    }
}

#[test]
fn arrivals_without_a_gap() {
    let group =
        "[[traffic]]\nname = \"crowd\"\nkind = \"arrivals\"\nsize = \"5 kB\"\ngap = \"0 s\"\n";
    let message = refusal(&(single() + group));
    assert!(
        message.ends_with(
            r#"traffic.crowd.gap = "0 s" is zero; accepted: a mean of at least "1 ns"; a time such as "50 ms", or "exponential mean 50 ms""#
        ),
        "{message}"
    );
}

/// The single-case file with a Web group that has these keys, from line 23 on.
fn web(keys: &str) -> String {
    let cbr = "[[traffic]]\nname = \"cbr\"";
    let web = format!(
        "[[traffic]]\nname = \"web\"\nkind = \"web\"\nmodel = \"empirical\"\n{keys}\n\n{cbr}"
    );
    changed(&single(), &[(cbr, &web)])
}

#[test]
fn a_load_is_asked_for_in_place_of_users() {
    plan(&web("load = \"90 %\""), &[]).unwrap();
    plan(&web("load = 1.05"), &[]).unwrap();
    assert_eq!(
        refusal(&web("load = \"90 %\"\nusers = 800")),
        "e.toml:24: traffic.web.users = 800 stands beside load = \"90 %\", which says how many \
         users there are; accepted: one of the two"
    );
    // Also where one of the two comes from elsewhere.
    let file = web("users = 800") + "[factors]\n\"traffic.web.load\" = [\"80 %\", \"90 %\"]\n";
    let message = refusal(&file);
    assert!(
        message.contains("traffic.web.users = 800 stands beside load"),
        "{message}"
    );
    let error = plan(&web("load = 0.9"), &["traffic.web.users=3"]).unwrap_err();
    assert!(
        error.to_string().contains("accepted: one of the two"),
        "{error}"
    );
}

#[test]
fn loads_that_cannot_be_offered() {
    let accepted = "a share of the link such as \"90 %\" or 0.9, above 0 and at most \"200 %\"";
    for load in ["0", "\"201 %\"", "90", "-0.1"] {
        assert_eq!(
            refusal(&web(&format!("load = {load}"))),
            format!("e.toml:23: traffic.web.load = {load} cannot be offered; accepted: {accepted}")
        );
    }
    let message = refusal(&web("load = \"9 Mbit/s\""));
    assert!(
        message.contains("\"9 Mbit/s\" is not a load; accepted: a share"),
        "{message}"
    );
    let message = refusal(&web("load = 0.9\nthink = \"100 h\""));
    assert!(
        message.contains("traffic.web.load = 0.9 would take about "),
        "{message}"
    );
    assert!(
        message.contains(" users; accepted: a load that 1000000 can offer"),
        "{message}"
    );
    let message = refusal(&web("load = true"));
    assert!(message.contains("traffic.web.load = true"), "{message}");
}

#[test]
fn more_replications_than_can_be_kept() {
    let with = |count: &str| changed(&single(), &[("replications = 10", count)]);
    assert_eq!(
        refusal(&with("replications = 4294967295")),
        "e.toml:4: replications = 4294967295 is more than can be kept; accepted: up to 1000000"
    );
    let rule = "replications = { until = \"loss within 5 %\", at_most = 1000001 }";
    assert_eq!(
        refusal(&with(rule)),
        "e.toml:4: replications.at_most = 1000001 is more than can be kept; accepted: up to 1000000"
    );
    assert!(plan(&with("replications = 1000000"), &[]).is_ok());
}

#[test]
fn a_chain_whose_delays_sum_beyond_the_clock() {
    let hop = |delay: &str| {
        format!(
            "[[chain.hop]]\nrate = \"10 Mbit/s\"\ndelay = \"{delay}\"\nqueue = {{ kind = \"tail-drop\", limit = \"9 packets\" }}\n"
        )
    };
    let with = |hops: usize, delay: &str| {
        format!(
            "name = \"far\"\nduration = \"1 s\"\n{}[[traffic]]\nname = \"a\"\nkind = \"bulk\"\n\
             [[traffic]]\nname = \"w\"\nkind = \"web\"\nmodel = \"http1\"\nload = \"10 %\"\n",
            hop(delay).repeat(hops)
        )
    };
    assert_eq!(
        refusal(&with(20_000, "1 h")),
        "e.toml:3: chain: the delays of its hops, both ways, are 20000 h together, more than can be run; accepted: up to 24 h"
    );
    assert!(plan(&with(24, "1 h"), &[]).is_ok());
}

/// Three mistakes, of which each used to hide the next.
#[test]
fn all_mistakes_are_told_at_once() {
    let text = changed(
        &single(),
        &[
            ("\"200 s\"", "\"200\""),
            ("kind = \"red\"", "kind = \"rde\""),
            ("flows = 64", "flow = 0"),
            ("rate = \"250 kbit/s\"", "rate = \"250 ms\""),
            ("packet = \"573 B\"", ""),
        ],
    );
    let message = refusal(&text);
    let lines: Vec<_> = message.lines().collect();
    let begins = [
        "e.toml:2: duration = \"200\": a time carries its unit",
        "e.toml:9: bottleneck.queue.kind = \"rde\" is not known; accepted: tail-drop, ",
        "e.toml:14: traffic.ftp.flow: unknown key; accepted: kind, name, flows, ",
        "e.toml:14: traffic.ftp.flows = 0 is zero; ",
        "e.toml:19: traffic.cbr: the key \"packet\" is missing",
        "e.toml:23: traffic.cbr.rate = \"250 ms\" is a time; a rate is wanted",
    ];
    // The value of the misspelt key is in a table that is known to be wrong.
    let begins: Vec<_> = begins
        .iter()
        .filter(|line| !line.contains("is zero"))
        .collect();
    assert_eq!(lines.len(), begins.len(), "{message}");
    for (line, begin) in lines.iter().zip(begins) {
        assert!(line.starts_with(*begin), "{line}\n{begin}");
    }
}

#[test]
fn mistakes_of_factors_arguments_and_values_are_told_together() {
    let text = changed(
        FILE,
        &[
            ("\"50 s\"", "\"50\""),
            (
                "\"traffic.ftp.flows\" = [16, 64, 256]",
                "\"traffic.ftq.flows\" = [16]\nseed = [1, 2]",
            ),
            ("flows = 4\n", "flows = 0\n"),
        ],
    );
    let message = plan(&text, &["bottleneck.rat=1 Mbit/s"])
        .unwrap_err()
        .to_string();
    let lines: Vec<_> = message.lines().collect();
    let begins = [
        "--set bottleneck.rat=1 Mbit/s: bottleneck.rat: unknown key; ",
        "e.toml:3: warmup = \"50\": a time carries its unit",
        "e.toml:22: traffic.cbr.flows = 0 is zero; accepted: 1 to 1000000",
        "e.toml:31: factors.\"traffic.ftq.flows\": there is no traffic group \"ftq\"",
        "e.toml:32: factors.\"seed\": seed is the same for all cases",
    ];
    assert_eq!(lines.len(), begins.len(), "{message}");
    for (line, begin) in lines.iter().zip(begins) {
        assert!(line.starts_with(begin), "{line}\n{begin}");
    }
}

#[test]
fn what_follows_from_a_mistake_is_no_mistake_of_its_own() {
    // A duration that is wrong has no warm-up that is too long for it.
    assert_eq!(
        single_with("\"200 s\"", "\"200 packets\"").lines().count(),
        1
    );
    // A misspelt key is not missing as well, and its value is looked at.
    let message = single_with("rate = \"10 Mbit/s\"", "rte = \"10 ms\"");
    let lines: Vec<_> = message.lines().collect();
    assert_eq!(lines.len(), 2, "{message}");
    assert!(
        lines[0].starts_with("e.toml:7: bottleneck.rte: unknown key"),
        "{message}"
    );
    assert!(
        lines[1].starts_with("e.toml:7: bottleneck.rate = \"10 ms\" is a time"),
        "{message}"
    );
    // What a factor that is refused would have set is not missing.
    let text = changed(
        FILE,
        &[
            (
                "queue = { kind = \"red\", limit = \"300 packets\", min_th = \"45 packets\", max_th = \"195 packets\" }\n\n",
                "\n",
            ),
            (
                "\"bottleneck.queue\" = [",
                "\"bottleneck.queue\" = \"red\"\nother = [",
            ),
        ],
    );
    let message = refusal(&text);
    assert!(!message.contains("is missing"), "{message}");
}

#[test]
fn many_mistakes_are_counted() {
    let keys: String = (0..30)
        .map(|number| format!("colour{number} = 1\n"))
        .collect();
    let message = refusal(&changed(&single(), &[("warmup = \"50 s\"\n", &keys)]));
    let lines: Vec<_> = message.lines().collect();
    assert_eq!(lines.len(), 20, "{message}");
    let two = changed(
        FILE,
        &[(
            "\"traffic.ftp.flows\"",
            &format!(
                "{}\"traffic.ftp.flows\"",
                (0..25)
                    .map(|n| format!("\"traffic.t{n}.flows\" = [1]\n"))
                    .collect::<String>()
            ),
        )],
    );
    let message = refusal(&two);
    assert_eq!(message.lines().count(), 21, "{message}");
    assert_eq!(message.lines().last(), Some("e.toml: and 5 more"));
}

#[test]
fn values_that_every_case_replaces_are_looked_at() {
    let queue = "{ kind = \"red\", limit = \"300 packets\", min_th = \"45 packets\", max_th = \"195 packets\" }\n\n";
    let with = |base: &str| changed(FILE, &[(queue, &format!("{base}\n\n"))]);
    let note = "[factors.\"bottleneck.queue\" replaces this value in all cases]";
    assert_eq!(
        refusal(&with("{ kind = \"nonsense\" }")),
        format!(
            "e.toml:9: bottleneck.queue.kind = \"nonsense\" is not known; accepted: {} {note}",
            kinds()
        )
    );
    assert_eq!(
        refusal(&with("{ kind = \"red\", min_th = \"5 ms/s\" }")),
        format!(
            "e.toml:9: bottleneck.queue.min_th = \"5 ms/s\": \"ms/s\" is not a unit of queue size; accepted: \
             packets, B, kB, MB, GB, ps, ns, us, ms, s {note}"
        )
    );
    let message = refusal(&with("{ kind = \"red\", mn_th = \"5 packets\" }"));
    assert!(
        message.starts_with("e.toml:9: bottleneck.queue.mn_th: unknown key; ")
            && message.ends_with(note),
        "{message}"
    );
    let flows = changed(FILE, &[("flows = 64", "flows = \"many\"")]);
    let message = refusal(&flows);
    assert!(
        message.starts_with("e.toml:14: traffic.ftp.flows = \"many\": expected"),
        "{message}"
    );
    // It may be incomplete: the cases give the rest.
    plan(&with("{ kind = \"red\" }"), &[]).unwrap();
    plan(&with("{ limit = \"9 packets\" }"), &[]).unwrap();
    // The same of a list of cases, where all of them set the key, and not where one has the value.
    let cases = |second: &str| {
        format!(
            "{}[[case]]\n\"bottleneck.queue\" = {{ kind = \"tail-drop\", limit = \"9 packets\" }}\n[[case]]\nname = \"b\"\n{second}\n",
            with("{ kind = \"codle\" }")
                .split("[factors]")
                .next()
                .unwrap()
        )
    };
    let all = refusal(&cases("\"bottleneck.queue\" = { kind = \"codel\" }"));
    assert!(
        all.starts_with("e.toml:9: bottleneck.queue.kind = \"codle\" is not known")
            && all.ends_with(
                "did you mean \"codel\"? [every [[case]] replaces this value in all cases]"
            ),
        "{all}"
    );
    let one = refusal(&cases("\"bottleneck.rate\" = \"1 Mbit/s\""));
    assert!(
        one.starts_with("e.toml:9: bottleneck.queue.kind = \"codle\" is not known")
            && !one.contains("replaces"),
        "{one}"
    );
}

#[test]
fn tables_in_the_place_of_lists_and_the_other_way_round() {
    let head = changed(single().split("[[traffic]]").next().unwrap(), &[]);
    assert_eq!(
        refusal(&format!("{head}[traffic]\nname = \"a\"\nkind = \"bulk\"\n")),
        "e.toml:11: [traffic] is one table, and traffic is a list of tables; accepted: [[traffic]], once for each"
    );
    // What is in it is looked at too.
    let message = refusal(&format!("{head}[traffic]\nname = \"a\"\nkind = \"bluk\"\n"));
    assert_eq!(message.lines().count(), 2, "{message}");
    assert!(
        message.contains("e.toml:13: traffic.a.kind = \"bluk\" is not known"),
        "{message}"
    );
    assert_eq!(
        single_with("[bottleneck]", "[[bottleneck]]"),
        "e.toml:6: [[bottleneck]] is a list of 1 table, and bottleneck is one table; accepted: [bottleneck]"
    );
    assert_eq!(
        refusal(&(single() + "[case]\nname = \"a\"\n")),
        "e.toml:26: [case] is one table, and case is a list of tables; accepted: [[case]], once for each"
    );
    assert_eq!(
        refusal(&(single() + "[[series]]\ninterval = \"1 s\"\n")),
        "e.toml:26: [[series]] is a list of 1 table, and series is one table; accepted: [series]"
    );
    assert_eq!(
        refusal(&changed(FILE, &[("[factors]", "[[factors]]")])),
        "e.toml:26: [[factors]] is a list of 1 table, and factors is one table; accepted: [factors]"
    );
    let hop = "[chain.hop]\nrate = \"1 Mbit/s\"\ndelay = \"1 ms\"\nqueue = { kind = \"tail-drop\", limit = \"9 packets\" }\n";
    let chain = single().replace("[bottleneck]", "[chain.hop]");
    assert_eq!(
        refusal(&chain),
        "e.toml:6: [chain.hop] is one table, and chain.hop is a list of tables; accepted: [[chain.hop]], once for each"
    );
    assert!(chain.contains(hop.lines().next().unwrap()));
}

#[test]
fn words_of_other_programs_get_ours() {
    let queue = |kind: &str| {
        let message = single_with("kind = \"red\"", &format!("kind = \"{kind}\""));
        let line = message.lines().next().unwrap();
        line.rsplit_once("; ").unwrap().1.to_owned()
    };
    assert_eq!(
        queue("DropTail"),
        "did you mean \"tail-drop\" (\"DropTail\" in ns-2)?"
    );
    assert_eq!(
        queue("ns3::FqCoDelQueueDisc"),
        "did you mean \"fq-codel\" (\"ns3::FqCoDelQueueDisc\" in ns-3)?"
    );
    assert_eq!(
        queue("pfifo"),
        "did you mean \"tail-drop\" (\"pfifo\" in tc)?"
    );
    assert_eq!(
        queue("bfifo"),
        "did you mean \"tail-drop\" (\"bfifo\" in tc)?"
    );
    assert_eq!(
        queue("fq_codel"),
        "did you mean \"fq-codel\" (\"fq_codel\" in tc)?"
    );
    assert_eq!(queue("RED"), "did you mean \"red\"?");
    let tcp = |word: &str| {
        let message = single_with("\"sack\"", &format!("\"{word}\""));
        message.rsplit_once("; ").unwrap().1.to_owned()
    };
    assert_eq!(
        tcp("TcpCubic"),
        "did you mean \"cubic\" (\"TcpCubic\" in ns-3)?"
    );
    assert_eq!(
        tcp("TcpNewReno"),
        "did you mean \"newreno\" (\"TcpNewReno\" in ns-3)?"
    );
    assert_eq!(
        tcp("Agent/TCP/Sack1"),
        "did you mean \"ns2-sack\" (\"Agent/TCP/Sack1\" in ns-2)?"
    );
    let traffic = single_with("kind = \"bulk\"", "kind = \"FTP\"");
    assert!(
        traffic
            .lines()
            .next()
            .unwrap()
            .ends_with("did you mean \"bulk\" (\"FTP\" in ns-2)?"),
        "{traffic}"
    );
    let key = single_with("rate = \"10", "bandwidth = \"10");
    assert!(
        key.ends_with("did you mean \"rate\" (\"bandwidth\" in Cisco IOS)?"),
        "{key}"
    );
}

#[test]
fn hosts_in_rules() {
    let with = |rule: &str| {
        let class = format!(
            "queue = {{ kind = \"prio\", class = [{{ name = \"a\", match = {rule}, queue = {{ kind = \"tail-drop\", limit = \"9 packets\" }} }}, {{ name = \"b\", queue = {{ kind = \"tail-drop\", limit = \"9 packets\" }} }}] }}"
        );
        let text = single();
        let queue = text.lines().find(|line| line.starts_with("queue")).unwrap();
        plan(&text.replace(queue, &class), &[])
    };
    let refused = |rule: &str| with(rule).unwrap_err().to_string();
    // Two delays make two hosts.
    with("{ group = \"ftp\", host = 1 }").unwrap();
    with("{ group = [\"cbr\", \"ftp\"], host = [0, 1] }").unwrap();
    assert!(
        refused("{ group = \"ftp\", host = 2 }").ends_with(
            "names the host 2, which is not there; accepted: 0 to 1, the hosts on which flows of these groups sit"
        ),
        "{}",
        refused("{ group = \"ftp\", host = 2 }")
    );
    assert!(
        refused("{ host = 0 }").ends_with(
            "has a host without a group; accepted: the group whose host it is beside it, such as \
             { group = \"web\", host = 0 }"
        ),
        "{}",
        refused("{ host = 0 }")
    );
}

#[test]
fn event_logs() {
    let with = |keys: &str| {
        single_with(
            "warmup = \"50 s\"",
            &format!("warmup = \"50 s\"\nevents = {{ {keys} }}"),
        )
    };
    let all: Vec<_> = redtail_spec::EventKind::ALL
        .iter()
        .map(|kind| kind.meaning().name)
        .collect();
    let all = all.join(", ");
    for (keys, expected) in [
        (
            "kinds = [\"drops\"]",
            format!(
                "events.kinds (entry 1) = \"drops\" is not known; accepted: {all}; did you mean \"drop\"?"
            ),
        ),
        (
            "kinds = []",
            format!("events.kinds = [] names no kind; accepted: {all}"),
        ),
        (
            "from = \"200 s\"",
            "events.from = \"200 s\" is not before the end; accepted: less than \"200 s\"".to_owned(),
        ),
        (
            "from = \"20 s\", to = \"20 s\"",
            "events.to = \"20 s\" is not after `from`; accepted: more than \"20 s\"".to_owned(),
        ),
        (
            "limit = 0",
            "events.limit = 0 is not from 1 to 10000000 rows; accepted: one of these".to_owned(),
        ),
        (
            "replications = 0",
            "events.replications = 0 is zero; accepted: 1 or more (without [events] none is recorded)"
                .to_owned(),
        ),
        (
            "flows = [1000]",
            "events.flows = [1000] names the flow 1000; accepted: 0 to ".to_owned(),
        ),
        (
            "groups = [\"nobody\"]",
            "events.groups = [\"nobody\"] names \"nobody\", and there is no such group; accepted: "
                .to_owned(),
        ),
        (
            "groups = [], flows = []",
            "events.flows = [] stands beside events.groups; accepted: one of the two".to_owned(),
        ),
        (
            "kind = \"drop\"",
            "events.kind: unknown key".to_owned(),
        ),
    ] {
        let found = with(keys);
        let message = found.strip_prefix("e.toml:4: ");
        let message = message.unwrap_or_else(|| panic!("{found}"));
        assert!(message.starts_with(&expected), "{message}\n{expected}");
    }
}

#[test]
fn policers_that_let_nothing_conform() {
    let with = |policer: &str| {
        single_with(
            "delay = \"100 ms\"",
            &format!("delay = \"100 ms\"\npolicer = {{ {policer} }}"),
        )
    };
    let bucket = r#"kind = "token-bucket", rate = "1 Mbit/s""#;
    assert_eq!(
        with(&format!(r#"{bucket}, burst = "400 B""#)),
        "e.toml:9: bottleneck.policer.burst = \"400 B\" is below the largest packet (1500 B), which could never conform; \
         accepted: at least \"1500 B\""
    );
    assert_eq!(
        with(&format!(r#"{bucket}, burst = "3000 B", exceed = "reject""#)),
        "e.toml:9: bottleneck.policer.exceed = \"reject\": expected \"pass\", \"drop\", or a DSCP such as \"AF12\""
    );
    let two = r#"kind = "tr-tcm", cir = "2 Mbit/s", cbs = "3000 B", pbs = "3000 B""#;
    assert_eq!(
        with(&format!(r#"{two}, pir = "1 Mbit/s""#)),
        "e.toml:9: bottleneck.policer.pir = \"1 Mbit/s\" is below cir (2 Mbit/s); accepted: at least \"2 Mbit/s\" \
         (RFC 2698, section 3)"
    );
    assert_eq!(
        with(r#"kind = "sr-tcm", cir = "1 Mbit/s", cbs = "0 B", ebs = "0 B""#),
        "e.toml:9: bottleneck.policer.cbs = \"0 B\" is zero; accepted: at least the largest packet, such as \"1600 B\""
    );
}

#[test]
fn the_old_key_of_losses_says_the_new_one() {
    let message = single_with(
        "delay = \"100 ms\"",
        "delay = \"100 ms\"\nrandom_loss = 0.01",
    );
    assert!(
        message.starts_with("e.toml:9: bottleneck.random_loss: unknown key; accepted: ")
            && message.ends_with("; it is wire.loss now"),
        "{message}"
    );
}

#[test]
fn wires_that_no_packet_can_cross() {
    let with = |wire: &str| {
        let link = format!("delay = \"100 ms\"\nwire = {{ {wire} }}");
        let message = single_with("delay = \"100 ms\"", &link);
        let rest = message.strip_prefix("e.toml:9: bottleneck.wire");
        rest.unwrap_or(&message).to_owned()
    };
    for (wire, refused) in [
        ("loss = { p = 0.1 }", r#".loss: the key "r" is missing"#),
        (
            "loss = { p = 1.5, r = 0.2 }",
            ".loss.p = 1.5 is not a probability; accepted: 0 to 1",
        ),
        (
            "loss = { p = 0.5, r = 0.0 }",
            ".loss.r = 0.0 is no probability with which the bad state ends; accepted: above 0, at most 1",
        ),
        (
            "loss = { p = 1, r = 1, k = 0 }",
            ".loss: loses every packet; accepted: an h or a k above 0",
        ),
        (
            "loss = \"some\"",
            ".loss = \"some\": expected a probability, or a table with p and r (Gilbert-Elliott)",
        ),
        (
            "duplicate = 2",
            ".duplicate = 2 is not a probability; accepted: 0 to 1",
        ),
        (
            "reorder = { share = -0.1, by = \"5 ms\" }",
            ".reorder.share = -0.1 is not a probability; accepted: 0 to 1",
        ),
        (
            "order = \"free\"",
            ".order = \"free\" stands without a delay that differs from packet to packet; \
             accepted: beside jitter, delay_changes or delay_trace",
        ),
        (
            "delay_changes = []",
            ".delay_changes = [] is empty; accepted: one change or more",
        ),
        (
            "delay_changes = [{ at = \"300 s\", delay = \"1 ms\" }]",
            ".delay_changes: \"300 s\" is not before the run's end; accepted: times that increase, \
             above \"0 s\" and below \"200 s\"",
        ),
        (
            "delay_changes = { every = \"1 s\", delay = \"10 ms\", gap = \"1 s\" }",
            ".delay_changes.gap = \"1 s\" takes the whole period; accepted: less than \"1 s\"",
        ),
        (
            "delay_changes = { every = \"1 s\", delay = \"pareto mean 10 ms shape 1.2\" }",
            ".delay_changes.delay = \"pareto mean 10 ms shape 1.2\" reaches more than can be run; \
             accepted: a law with a max of up to \"1 h\"",
        ),
        (
            "limit = 0",
            ".limit = 0 lets no packet through; accepted: 1 or more",
        ),
        (
            "batches = { every = \"1 ns\" }",
            ".batches.every = \"1 ns\" is too short; accepted: \"1 us\" or more",
        ),
        (
            "batches = { every = \"1 ms\", packets = 0 }",
            ".batches.packets = 0 releases nothing; accepted: 1 or more",
        ),
    ] {
        assert_eq!(with(wire), refused, "{wire}");
    }
    let message = with("jiter = \"1 ms\"");
    assert!(message.ends_with("; did you mean \"jitter\"?"), "{message}");
    let message = with(
        "delay_trace = { steps_ps = \"0 5\" }, delay_changes = [{ at = \"1 s\", delay = \"1 ms\" }]",
    );
    assert_eq!(
        message,
        ".delay_trace: stands beside delay_changes; accepted: one of the two"
    );
    let message = with(
        "delay_changes = [{ at = \"1 s\", delay = \"1 ms\", gap = \"2 s\" }, { at = \"2 s\", delay = \"1 ms\" }]",
    );
    assert!(
        message.ends_with("has a gap that reaches beyond the next change; accepted: gaps of up to \"1 h\" that end before it"),
        "{message}"
    );
}

#[test]
fn a_trace_of_the_delay_that_cannot_be_read() {
    let text = with_link_keys("rate = \"1 Mbit/s\"\nwire.delay_trace = \"path.txt\"");
    let mut read = |_: &str| Ok("0 20\n5 x\n".to_owned());
    let options = PlanOptions {
        file: Some("e.toml"),
        files: Some(&mut read),
        ..PlanOptions::default()
    };
    assert_eq!(
        Plan::from_text(&text, options).unwrap_err().to_string(),
        r#"e.toml:8: bottleneck.wire.delay_trace = "path.txt": path.txt:2: "5 x" is no time with a delay; accepted: a time and a delay in milliseconds, such as 1500 23.4"#
    );
}

#[test]
fn frames_and_media_that_cannot_be() {
    let with = |lines: &str| {
        single_with(
            "delay = \"100 ms\"",
            &format!("delay = \"100 ms\"\n{lines}"),
        )
    };
    assert_eq!(
        with("medium = \"shared\""),
        "e.toml:9: bottleneck.medium = \"shared\" has no link of the other direction; accepted: a `return` link, or no medium"
    );
    assert_eq!(
        with("airtime = { aggregate_packets = 0 }"),
        "e.toml:9: bottleneck.airtime.aggregate_packets = 0 is zero; accepted: 1 or more"
    );
    let unknown = with("airtime = { rates = { fast = \"1 Mbit/s\" } }");
    assert!(
        unknown.contains("bottleneck.airtime.rates: there is no group \"fast\"; accepted: "),
        "{unknown}"
    );
    let changing = with("airtime = {}\nrate_changes = [{ at = \"5 s\", rate = \"1 Mbit/s\" }]");
    assert!(
        changing.contains("bottleneck.airtime: stands beside a rate that changes"),
        "{changing}"
    );
}
