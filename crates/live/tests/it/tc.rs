//! The kernel's own queues: options, refusals, and what a kernel reported of them.

use std::fs;
use std::path::Path;

use redtail_core::{Bytes, Rate};
use redtail_live::tc::{self, Place, Qdisc, Unmapped};
use redtail_qdisc::{FlowTable, LinkFacts, QueueParams};
use redtail_spec::queue_from_json;
use serde_json::{Value as Json, json};

/// As in `examples/tc_fixtures.rs`.
fn link() -> LinkFacts {
    let groups = vec!["web".to_owned(), "calls".to_owned()];
    LinkFacts {
        largest_packet: Bytes::new(1500),
        flows: FlowTable::new(groups, Vec::new()).into(),
        ..LinkFacts::of_rate(Rate::from_bps(10_000_000))
    }
}

fn spec(queue: &Json) -> QueueParams {
    let queue = queue_from_json(queue.clone()).expect("it is a queue");
    queue.check().expect("it can be run");
    queue.check_at(&link()).expect("it can be run here");
    queue
}

fn mapped(queue: &Json) -> Result<Qdisc, Unmapped> {
    tc::words(&spec(queue), &link(), &Place::root())
}

fn words(queue: Json) -> String {
    mapped(&queue).expect("the kernel has it").words().join(" ")
}

fn commands(queue: &Json) -> Vec<String> {
    let qdisc = mapped(queue).expect("the kernel has it");
    qdisc
        .commands("t0")
        .iter()
        .map(|command| command.join(" "))
        .collect()
}

/// The key that is refused, and the whole message.
fn refusal(queue: Json) -> (String, String) {
    let error = mapped(&queue).expect_err("the kernel does not have it");
    (error.key.clone(), error.to_string())
}

/// The queue with a key set.
fn with(mut queue: Json, key: &str, value: Json) -> Json {
    let kind = queue
        .as_object()
        .and_then(|tables| tables.keys().next().cloned());
    queue[kind.expect("it has a kind")][key] = value;
    queue
}

fn fixtures() -> Vec<(String, Json)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/tc");
    let mut found = Vec::new();
    for file in fs::read_dir(folder).expect("the fixtures are there") {
        let path = file.expect("it can be listed").path();
        if path.extension().is_some_and(|end| end == "json") {
            let text = fs::read_to_string(&path).expect("it can be read");
            let name = path.file_stem().expect("it has a name").to_string_lossy();
            found.push((
                name.into_owned(),
                serde_json::from_str(&text).expect("it is JSON"),
            ));
        }
    }
    found.sort_by(|(one, _), (other, _)| one.cmp(other));
    found
}

#[test]
fn a_kernel_took_the_commands_of_every_fixture_and_reported_what_was_asked_for() {
    let fixtures = fixtures();
    assert!(fixtures.len() >= 31);
    for (name, fixture) in fixtures {
        let recorded: Vec<String> =
            serde_json::from_value(fixture["commands"].clone()).expect("texts");
        assert_eq!(
            commands(&fixture["queue"]),
            recorded,
            "{name}: the mapping has changed since"
        );
        let asked = mapped(&fixture["queue"]).expect("the kernel has it");
        assert_eq!(
            tc::differs(&asked, &fixture["shown"]),
            Vec::<String>::new(),
            "{name}"
        );
    }
}

#[test]
fn every_kind_of_the_table_was_read_back() {
    let recorded: Vec<String> = fixtures()
        .iter()
        .map(|(_, fixture)| spec(&fixture["queue"]).kind().to_owned())
        .collect();
    for kind in tc::kinds() {
        assert!(recorded.iter().any(|other| other == kind), "{kind}");
    }
}

/// Changes a number, turns a flag, lengthens a text or a list: another value in any case.
fn other(value: &Json) -> Json {
    match value {
        Json::Bool(on) => json!(!on),
        Json::Number(number) => json!(number.as_f64().expect("it is small") * 1.5 + 1.0),
        Json::String(text) => json!(format!("x{text}")),
        _ => json!(["other"]),
    }
}

#[test]
fn a_difference_in_any_option_that_was_asked_for_is_reported() {
    // Reported, and not asked for in redtail's words: tables for idle periods, the kernel's own counters.
    let aside = [
        "Scell_log",
        "adaptive",
        "nodrop",
        "direct_packets_stat",
        "ver",
        "direct_qlen",
        "multiqueue",
        "raw",
        "fwmark",
        "nat",
        "split_gso",
        "mpu",
        "lat",
        "linklayer",
        "vqs",
        "bytemode",
        "memory-limit",
        "drop-overload",
        "drop-early",
        "ecn-mask",
        "split-gso",
    ];
    for (name, fixture) in fixtures() {
        let asked = mapped(&fixture["queue"]).expect("the kernel has it");
        let count = fixture["shown"].as_array().expect("a list").len();
        for i in 0..count {
            let kind = &fixture["shown"][i]["kind"];
            let options = fixture["shown"][i]["options"]
                .as_object()
                .cloned()
                .unwrap_or_default();
            for (option, value) in options {
                let unchecked = match option.as_str() {
                    "ecn" => kind == "gred",                         // each profile has it
                    "harddrop" => kind == "gred" || kind == "choke", // or there is no option for it
                    option => aside.contains(&option),
                };
                let mut shown = fixture["shown"].clone();
                shown[i]["options"][&option] = other(&value);
                let found = tc::differs(&asked, &shown);
                if !unchecked {
                    assert_eq!(found.len(), 1, "{name}: {option}: {found:?}");
                    assert!(found[0].contains(&option), "{}", found[0]);
                }
            }
        }
    }
}

#[test]
fn a_missing_queue_another_kind_and_another_place_are_reported() {
    let asked =
        mapped(&json!({"tbf": {"rate": "5 Mbit/s", "burst": "15 kB", "queue": {"sfq": {}}}}));
    let asked = asked.expect("the kernel has it");
    assert_eq!(
        tc::differs(&asked, &json!([])),
        [
            "tbf 1: was asked for, and the kernel has no queue 1:",
            "sfq 2: was asked for, and the kernel has no queue 2:",
        ]
    );
    let shown =
        json!([{"kind": "pfifo", "handle": "1:", "root": true, "options": {"limit": 1000}}]);
    assert_eq!(
        tc::differs(&asked, &shown)[0],
        "queue 1: was asked for as tbf, and the kernel has pfifo"
    );
    let asked = mapped(&json!({"tail-drop": {"limit": "100 packets"}})).expect("the kernel has it");
    let shown =
        json!([{"kind": "pfifo", "handle": "1:", "parent": "5:1", "options": {"limit": 90}}]);
    assert_eq!(
        tc::differs(&asked, &shown),
        [
            "pfifo 1: was asked for at the root, and the kernel has it in class 5:1",
            "pfifo 1: limit was asked for as 100, and the kernel has 90",
        ]
    );
}

#[test]
fn a_queue_stands_where_it_is_put() {
    let place = Place {
        parent: Some("1:1".to_owned()),
        handle: 16,
        ..Place::root()
    };
    let queue = spec(&json!({"tail-drop": {"limit": "20 packets"}}));
    let qdisc = tc::words(&queue, &link(), &place).expect("the kernel has it");
    let command = qdisc.commands("tun3")[0].join(" ");
    assert_eq!(
        command,
        "qdisc add dev tun3 parent 1:1 handle 10: pfifo limit 20"
    );
}

#[test]
fn defaults_are_written() {
    let queue = json!({"fq-codel": {"inverse_sqrt": "newton"}});
    assert_eq!(
        words(queue),
        "fq_codel limit 10240 memory_limit 33554432 flows 1024 quantum 1500 target 5000us interval 100000us \
         ecn drop_batch 64"
    );
    assert_eq!(
        words(json!({"dualpi2": {"flavour": "linux"}})),
        "dualpi2 limit 10000 target 15000us tupdate 16000us alpha 0.16015625 beta 3.19921875 \
         coupling_factor 2 step_thresh 1000us min_qlen_step 0 classic_protection 10% drop_on_overload \
         drop_dequeue l4s_ect split_gso"
    );
}

#[test]
fn a_dualpi2_is_compared_by_the_names_that_iproute2_prints() {
    let asked = mapped(&json!({"dualpi2": {"flavour": "linux"}})).expect("the kernel has it");
    // From the print function of iproute2 6.17, not from a kernel.
    let options = json!({
        "limit": 10000, "target": 15000, "tupdate": 16000, "alpha": 0.160156, "beta": 3.199219,
        "step-thresh-us": 1000, "min-qlen-step": 0, "coupling": 2, "c-protection": 10,
    });
    let mut shown = json!([{"kind": "dualpi2", "handle": "1:", "root": true, "options": options}]);
    assert_eq!(tc::differs(&asked, &shown), Vec::<String>::new());
    shown[0]["options"]["coupling"] = json!(3);
    assert_eq!(
        tc::differs(&asked, &shown),
        ["dualpi2 1: coupling was asked for as 2, and the kernel has 3"]
    );
}

#[test]
fn a_queue_that_no_kernel_has_is_refused() {
    let (key, message) = refusal(json!({"blue": {"limit": "100 packets"}}));
    assert_eq!(key, "kind");
    assert!(
        message.starts_with(
            "kind = \"blue\": no queue of the kernel behaves so; accepted: tail-drop, "
        )
    );
    let (_, message) = refusal(json!({"pfifo-fast": {}}));
    assert!(message.contains("not mapped"), "{message}");
}

#[test]
fn adaptive_red_is_red_that_is_told_how_to_start_unless_it_shall_stay_as_tc_leaves_it() {
    let queue = json!({"adaptive-red": {
        "limit": "300 kB", "min_th": "30 kB", "max_th": "90 kB", "w_q": 1.0 / 512.0,
        "mean_packet": "1500 B",
    }});
    let started = mapped(&queue).expect("the kernel has it");
    let mean_packet = started.adapts.expect("it adapts");
    assert_eq!(mean_packet.size, Bytes::new(1500));
    assert_eq!(mean_packet.rate, Rate::from_bps(10_000_000));
    let left = mapped(&with(queue.clone(), "adapt", json!(false))).expect("the kernel has it");
    assert_eq!(left.adapts, None);
    assert_eq!(started.words(), left.words());
    assert!(left.words().contains(&"adaptive".to_owned()));
    for (key, value, accepted) in [
        ("alpha", json!(0.02), "0.01"),
        ("bottom", json!(0.05), "0.01"),
        ("interval", json!("1 s"), "\"500 ms\""),
    ] {
        let (refused, message) = refusal(with(queue.clone(), key, value));
        assert_eq!(refused, key);
        assert!(
            message.ends_with(&format!("accepted: {accepted}")),
            "{message}"
        );
    }
}

#[test]
fn what_adaptive_red_computes_from_the_link_has_to_be_given_to_the_kernel() {
    let mut queue = json!({"adaptive-red": {"limit": "300 kB"}});
    for (key, value) in [
        ("min_th", json!("30 kB")),
        ("mean_packet", json!("1500 B")),
        ("w_q", json!(1.0 / 512.0)),
        ("max_th", json!("90 kB")),
    ] {
        assert_eq!(refusal(queue.clone()).0, key);
        queue = with(queue, key, value);
    }
    assert!(mapped(&queue).is_ok());
}

/// Each queue that the kernel has, and a key whose value has no counterpart: queue, key, value, a part of
/// what is accepted.
#[test]
fn a_value_without_a_counterpart_is_refused_with_its_key_and_what_is_accepted() {
    let tail_drop = json!({"tail-drop": {"limit": "100 packets"}});
    let red = json!({"red": {"limit": "300 kB", "min_th": "30 kB", "max_th": "90 kB", "spacing": "linux"}});
    let wred = json!({"wred": {"limit": "300 kB", "spacing": "linux",
        "profiles": [{"min_th": "30 kB", "max_th": "90 kB"}]}});
    let choke = json!({"choke": {"limit": "300 packets", "min_th": "45 packets", "max_th": "135 packets",
        "spacing": "linux"}});
    let codel = json!({"codel": {"inverse_sqrt": "newton"}});
    let fq_codel = json!({"fq-codel": {"inverse_sqrt": "newton"}});
    let pie = json!({"pie": {"limit": "100 packets", "update": "16 ms", "flavour": "linux"}});
    let fq_pie = json!({"fq-pie": {"update": "16 ms"}});
    let cake = json!({"cake": {}});
    let sfq = json!({"sfq": {}});
    let sfb = json!({"sfb": {}});
    let dualpi2 = json!({"dualpi2": {"flavour": "linux"}});
    let cases = [
        (
            &tail_drop,
            "limit",
            json!(["100 packets", "100 kB"]),
            "pfifo",
        ),
        (&red, "limit", json!("300 packets"), "packets are refused"),
        (&red, "gentle", json!(true), "false"),
        (&red, "spacing", json!("uniform"), "\"linux\""),
        (&red, "flavour", json!("ns-2"), "\"paper\""),
        (&red, "byte_mode", json!(true), "false"),
        (&red, "w_q", json!(0.003), "power of two"),
        (&red, "max_p", json!(1.0), "below 1"),
        (
            &red,
            "max_th",
            json!("5 MB"),
            "below 4194304 with w_q = 2^-9",
        ),
        (&wred, "average", json!("rio"), "\"total\""),
        (&wred, "w_q", json!(0.003), "power of two"),
        (&wred, "gentle", json!("limit"), "false"),
        (&choke, "limit", json!("450 kB"), "packets"),
        (&choke, "max_th", json!("301 packets"), "at most the limit"),
        (&choke, "candidates", json!(2), "1"),
        (&choke, "ecn", json!(true), "false"),
        (&codel, "limit", json!("150 kB"), "packets"),
        (&codel, "target", json!("5 us"), "1.024 us"),
        (&codel, "mtu", json!("9000 B"), "\"1500 B\""),
        (
            &fq_codel,
            "limit",
            json!(["10240 packets", "450 kB"]),
            "overhead",
        ),
        (&fq_codel, "limit", json!("450 kB"), "packets and bytes"),
        (&pie, "update", json!("17 ms"), "\"20 ms\""),
        (&pie, "alpha", json!(0.1), "1/16"),
        (&pie, "beta", json!(3.0), "at most 32"),
        (&pie, "max_burst", json!("100 ms"), "\"150 ms\""),
        (&pie, "mean_packet", json!("576 B"), "\"1500 B\""),
        (&pie, "max_ecn", json!(0.2), "0.1"),
        (&fq_pie, "mean_packet", json!("576 B"), "\"1500 B\""),
        (&fq_pie, "max_ecn", json!(0.004), "percent"),
        (&fq_pie, "max_burst", json!("0 s"), "\"150 ms\""),
        (&cake, "limit", json!("450 kB"), "no such key"),
        (&cake, "ecn", json!(false), "true"),
        (&cake, "first_gap", json!("interval"), "\"none\""),
        (&sfq, "limit", json!("1 packet"), "2 to"),
        (&sfq, "limit", json!("200000 packets"), "2 to 130048"),
        (&sfq, "depth", json!(128), "1 to 127"),
        (&sfq, "divisor", json!(1000), "power of two"),
        (&sfq, "perturb", json!("100 ms"), "whole seconds"),
        (&sfb, "increment", json!(0.000_001), "1/65535"),
        (&sfb, "ecn", json!(false), "true"),
        (&sfb, "rehash", json!("5000 s"), "4294967"),
        (&dualpi2, "flavour", json!("rfc"), "\"linux\""),
        (&dualpi2, "coupling", json!(1.5), "whole number"),
        (&dualpi2, "classic_share", json!(0.015), "percent"),
        (&dualpi2, "alpha", json!(0.001), "1/256"),
    ];
    for (queue, key, value, accepted) in cases {
        mapped(queue).expect("the kernel has it without this value");
        let queue = with(queue.clone(), key, value);
        let value = serde_json::to_value(spec(&queue)).expect("plain data")[key].clone();
        let (refused, message) = refusal(queue);
        assert_eq!(refused, key, "{message}");
        let shown = format!("{key} is {value}; accepted: ");
        assert!(message.starts_with(&shown), "{message}");
        assert!(message[shown.len() - 1..].contains(accepted), "{message}");
    }
}

#[test]
fn a_red_that_computes_its_parameters_is_refused() {
    let red = json!({"red": {"tune": "ziegler"}});
    let queue = queue_from_json(red).expect("it is a queue");
    let refused =
        tc::words(&queue, &link(), &Place::root()).expect_err("the kernel computes nothing");
    assert_eq!(
        refused.to_string(),
        "tune is \"ziegler\"; accepted: no such key"
    );
}

#[test]
fn a_default_that_the_kernel_cannot_have_gives_way_and_no_other_value_does() {
    for queue in [
        json!({"red": {"limit": "300 kB", "min_th": "30 kB", "max_th": "90 kB"}}),
        json!({"codel": {}}),
        json!({"fq-codel": {}}),
        json!({"pie": {"limit": "100 packets"}}),
        json!({"fq-pie": {}}),
        json!({"cake": {}}),
        json!({"choke": {"limit": "300 packets", "min_th": "30 packets", "max_th": "90 packets"}}),
    ] {
        mapped(&queue).unwrap_or_else(|error| panic!("{queue}: {error}"));
    }
    let red = json!({"red": {"limit": "300 kB", "min_th": "30 kB", "max_th": "90 kB"}});
    assert_eq!(refusal(with(red, "spacing", json!("uniform"))).0, "spacing");
}

#[test]
fn thresholds_in_the_other_unit_are_refused() {
    let red = json!({"red": {"limit": "300 kB", "min_th": "20 packets", "max_th": "60 packets",
        "spacing": "linux"}});
    assert_eq!(refusal(red).0, "min_th");
    let choke = json!({"choke": {"limit": "300 packets", "min_th": "30 kB", "max_th": "90 kB",
        "spacing": "linux"}});
    assert_eq!(refusal(choke).0, "min_th");
    let wred = json!({"wred": {"limit": "300 kB", "spacing": "linux",
        "profiles": [{"min_th": "20 packets", "max_th": "60 packets"}]}});
    assert_eq!(refusal(wred).0, "profiles (entry 1).min_th");
}

#[test]
fn a_value_in_an_inner_queue_is_refused_with_the_whole_key() {
    let inner = |queue: Json| {
        json!({"htb": {"class": [{"name": "all", "rate": "1 Mbit/s", "class": [
            {"name": "a", "rate": "1 Mbit/s", "queue": queue},
            {"name": "b", "rate": "1 Mbit/s", "match": {"dscp": ["EF"]}, "queue": {"codel": {}}},
        ]}]}})
    };
    let (key, _) = refusal(inner(json!({"codel": {"limit": "150 kB"}})));
    assert_eq!(key, "class.all.class.a.queue.limit");
    let (key, message) = refusal(inner(
        json!({"wred": {"limit": "300 kB", "spacing": "linux", "profiles": [
            {"dscp": ["EF"], "min_th": "30 kB", "max_th": "90 kB"}, {"min_th": "30 kB", "max_th": "90 kB"},
        ]}}),
    ));
    assert_eq!(key, "class.all.class.a.queue.profiles");
    assert!(message.contains("the whole device"), "{message}");
}

#[test]
fn rules_without_a_filter_are_refused() {
    let prio = |rule: Json| {
        json!({"prio": {"class": [
            {"name": "a", "match": rule, "queue": {"tail-drop": {"limit": "9 packets"}}},
            {"name": "b", "queue": {"tail-drop": {"limit": "9 packets"}}},
        ]}})
    };
    let (key, message) = refusal(prio(json!({"port": 5000})));
    assert_eq!(key, "class.a.match.port");
    assert!(message.contains("1 to 1023"), "{message}");
    mapped(&prio(json!({"port": 443}))).expect("a server's port has a filter");
    // A host has its address.
    let of_host = commands(&prio(json!({"group": "web", "host": 3}))).join("\n");
    assert!(of_host.contains("src_ip 10.0.0.5"), "{of_host}");
    // The groups of another link.
    let queue = spec(&prio(json!({"group": "web"})));
    let unknown = tc::words(
        &queue,
        &LinkFacts::of_rate(Rate::from_bps(1_000_000)),
        &Place::root(),
    );
    assert_eq!(
        unknown.expect_err("there is no such group").key,
        "class.a.match.group"
    );
}

#[test]
fn more_classes_and_profiles_than_the_kernel_has_are_refused() {
    let class = |i: u32| {
        json!({"name": format!("c{i}"), "match": {"dscp": i},
        "queue": {"tail-drop": {"limit": "9 packets"}}})
    };
    let classes: Vec<_> = (0..17).map(class).collect();
    let prio = json!({"prio": {"default": "c0", "class": classes}});
    assert_eq!(
        refusal(prio),
        (
            "class".into(),
            "class is \"17 classes\"; accepted: up to 16".into()
        )
    );
    let profile = |i: u32| match i {
        0 => json!({"min_th": "30 kB", "max_th": "90 kB"}),
        _ => json!({"dscp": [i], "min_th": "30 kB", "max_th": "90 kB"}),
    };
    let profiles: Vec<_> = (0..16).map(profile).collect();
    let wred = json!({"wred": {"limit": "300 kB", "spacing": "linux", "profiles": profiles}});
    assert_eq!(refusal(wred).0, "profiles");
}

#[test]
fn a_bucket_too_small_for_its_rate_is_refused() {
    // 64 ns at 100 Gbit/s are 800 B.
    let fast = LinkFacts::of_rate(Rate::from_bps(100_000_000_000));
    let tbf = json!({"tbf": {"rate": "100 Gbit/s", "burst": "10 kB", "queue": {"sfq": {}}}});
    let queue = queue_from_json(tbf).expect("it is a queue");
    let refused = tc::words(&queue, &fast, &Place::root()).expect_err("the unit is too coarse");
    assert_eq!(refused.key, "burst");
}

#[test]
fn ticks_of_the_kernel_decide_about_the_updates_of_pie() {
    let pie = json!({"pie": {"limit": "100 packets", "flavour": "linux"}});
    // 15 ms are no whole number of ticks of 4 ms: redtail's default gives way to the kernel's.
    assert!(!words(pie.clone()).contains("tupdate"));
    let place = Place {
        hz: 1000,
        ..Place::root()
    };
    let qdisc = tc::words(&spec(&pie), &link(), &place).expect("15 ms are 15 ticks");
    assert!(qdisc.words().join(" ").contains("tupdate 15000us"));
}

#[test]
fn a_weight_near_a_power_of_two_becomes_it() {
    let red = json!({"red": {"limit": "300 kB", "min_th": "30 kB", "max_th": "90 kB", "spacing": "linux"}});
    let with_weight = |w_q: f64| words(with(red.clone(), "w_q", json!(w_q)));
    assert_eq!(with_weight(0.002), with_weight(0.001_953_125));
    assert_ne!(with_weight(0.002), with_weight(0.003_906_25));
}

/// What the kernel keeps of each key whose value it cannot hold.
fn kept(queue: &Json) -> Vec<(String, String)> {
    let qdisc = mapped(queue).expect("the kernel has it");
    let all = qdisc.all();
    let settings = all.iter().flat_map(|queue| &queue.settings);
    settings
        .filter_map(|setting| Some((setting.key.clone(), setting.kept.clone()?)))
        .collect()
}

#[test]
fn what_the_kernel_keeps_is_told_where_it_is_another_value() {
    let told = |key: &str, value: &str| (key.to_owned(), value.to_owned());
    let codel = json!({"codel": {"target": "7 ms", "interval": "102.4 ms"}});
    assert_eq!(kept(&codel), [told("target", "6999.04 us")]);
    let pie = json!({"pie": {
        "limit": "100 packets", "update": "20 ms", "target": "15500.4 us", "alpha": 0.13, "beta": 1.25
    }});
    assert_eq!(
        kept(&pie),
        [told("target", "15500 us"), told("alpha", "0.125")]
    );
    let red = json!({"red": {
        "limit": "180 kB", "min_th": "30 kB", "max_th": "90 kB", "w_q": 0.002, "spacing": "linux"
    }});
    assert_eq!(kept(&red), [told("w_q", "0.001953125")]);
    let cake = json!({"cake": {"rate": "1000007 bit/s"}});
    assert_eq!(kept(&cake), [told("rate", "1000000 bit/s")]);
    assert_eq!(kept(&json!({"sfq": {"perturb": "10 s"}})), []);
}
