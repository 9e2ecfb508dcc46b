//! Cases, overrides, and the canonical text of a scenario.

use crate::common::{FILE, changed, plan, single};
use proptest::prelude::*;
use redtail_spec::{
    CalibratedUsers, Format, Loss, Plan, PlanOptions, Scenario, ScenarioReader, Topology,
};
use serde_json::{Value, json};

fn scenario_json(text: &str, sets: &[&str]) -> Value {
    let scenario = plan(text, sets).unwrap().scenario(0, 0).unwrap();
    serde_json::from_str(&scenario.to_json()).unwrap()
}

/// The text is what counts: it is what is stored and hashed.
fn assert_reads_back(scenario: &Scenario) {
    let text = scenario.to_json();
    assert_eq!(Scenario::from_json(&text).unwrap().to_json(), text);
}

/// So results that are stored stay those of the experiment when the key is added to its file.
#[test]
fn the_number_of_the_format_is_no_part_of_a_scenario() {
    let numbered = plan(&format!("format = 1\n{}", single()), &[]).unwrap();
    assert_eq!(numbered, plan(&single(), &[]).unwrap());
}

/// So results that are stored stay valid, and what is asked for in another order is the same run.
#[test]
fn what_is_recorded_is_a_part_of_a_scenario_only_where_it_is_asked_for() {
    let plain = plan(&single(), &[]).unwrap().scenario(0, 0).unwrap();
    assert!(!plain.to_json().contains("\"record\""));
    let asked = r#"record = ["round_trip", "one_way_delay", "round_trip"]"#;
    let text = format!("{asked}\n{}", single());
    let record = &scenario_json(&text, &[])["record"];
    assert_eq!(*record, json!(["one_way_delay", "round_trip"]));
    assert_reads_back(&plan(&text, &[]).unwrap().scenario(0, 0).unwrap());
    let wrong = plan(&text.replace("one_way", "two_way"), &[]).unwrap_err();
    let message = wrong.to_string();
    assert!(message.contains("two_way_delay"), "{message}");
    assert!(
        message.contains("one_way_delay, round_trip, loss_by_class"),
        "{message}"
    );
}

/// So a run that is stored stays one of the experiment when other things are expected of it.
#[test]
fn what_is_expected_is_no_part_of_a_scenario_and_keeps_its_order_and_lines() {
    let text = format!(
        "{}\n[expect]\n\"it is used\" = \"goodput > 9 Mbit/s\"\n\
         short = {{ holds = \"loss < 1 %\", cases = [\"RED\"], of = \"each\" }}\n",
        single()
    );
    let found = plan(&text, &[]).unwrap();
    assert_eq!(
        found.scenario(0, 0).unwrap(),
        plan(&single(), &[]).unwrap().scenario(0, 0).unwrap()
    );
    let [used, short] = found.expected.as_slice() else {
        panic!("{:?}", found.expected);
    };
    assert_eq!(
        (used.name.as_str(), used.params.of.as_deref()),
        ("it is used", None)
    );
    assert_eq!(used.params.holds, "goodput > 9 Mbit/s");
    assert_eq!(
        (short.params.cases.as_slice(), short.params.of.as_deref()),
        (&["RED".to_owned()][..], Some("each"))
    );
    assert_eq!(short.line, used.line.map(|line| line + 1));
}

#[test]
fn every_combination_is_a_case_and_the_last_factor_changes_fastest() {
    let plan = plan(FILE, &[]).unwrap();
    assert_eq!(plan.name, "Tail drop against RED");
    assert_eq!(
        (plan.replications, plan.seed, plan.description.as_deref()),
        (10, 1, None)
    );
    assert_eq!(plan.factors, ["bottleneck.queue", "traffic.ftp.flows"]);
    let cases: Value = serde_json::from_str(&plan.cases_json()).unwrap();
    let labels: Vec<_> = cases
        .as_array()
        .unwrap()
        .iter()
        .map(|case| {
            format!(
                "{} {}",
                case["labels"]["bottleneck.queue"], case["labels"]["traffic.ftp.flows"]
            )
        })
        .collect();
    assert_eq!(
        labels,
        [
            r#""tail-drop" "16""#,
            r#""tail-drop" "64""#,
            r#""tail-drop" "256""#,
            r#""red" "16""#,
            r#""red" "64""#,
            r#""red" "256""#
        ]
    );
    assert_eq!(
        cases[4]["factors"],
        json!({
            "bottleneck.queue": { "kind": "red", "limit": "300 packets", "min_th": "45 packets", "max_th": "195 packets" },
            "traffic.ftp.flows": 64,
        })
    );
    assert_eq!(plan.scenario(5, 0).unwrap().traffic[0].access().flows, 256);
    assert_eq!(plan.scenario(6, 0), None);
}

#[test]
fn a_file_without_factors_is_one_case() {
    let plan = plan(&single(), &[]).unwrap();
    assert!(plan.factors.is_empty());
    assert_eq!(plan.cases_json(), r#"[{"factors":{},"labels":{}}]"#);
}

#[test]
fn the_scenario_has_every_default_and_no_label() {
    let text = changed(
        &single(),
        &[("kind = \"red\"", "label = \"plain RED\", kind = \"red\"")],
    );
    let scenario = plan(&text, &[]).unwrap().scenario(0, 3).unwrap();
    let json: Value = serde_json::from_str(&scenario.to_json()).unwrap();
    assert_eq!(json["replication"], 3);
    assert_eq!(
        json["bottleneck"],
        json!({
            "rate": "10 Mbit/s",
            "delay": "100 ms",
            "queue": {
                "kind": "red", "limit": "300 packets", "min_th": "45 packets", "max_th": "195 packets", "max_p": 0.1,
                "w_q": 0.002, "gentle": false, "spacing": "wait", "flavour": "paper", "byte_mode": false, "mean_packet": "500 B", "idle_decay": true,
                "ecn": false, "above_max_th": "drop",
            },
        })
    );
    assert_eq!(
        json["traffic"][1],
        json!({
            "kind": "cbr", "name": "cbr", "flows": 4, "rate": "250 kbit/s", "packet": "573 B", "dither": 0.0,
            "access_rate": "100 Mbit/s", "access_delay": "0 s", "exit_rate": "100 Mbit/s", "exit_delay": "0 s",
            "return_delay": "0 s", "hosts": 1, "host_jitter": "200 us", "direction": "forward", "dscp": "BE",
        })
    );
    assert_eq!(json["traffic"][0]["hosts"], 2);
    assert_eq!(json["traffic"][0]["tcp"]["min_rto"], "1 s");
    assert_reads_back(&scenario);
}

#[test]
fn the_delays_of_hosts_are_the_experiments_unless_a_group_has_its_own() {
    let jitters = |changes: &[(&str, &str)]| {
        let text = changed(&single(), changes);
        let scenario = plan(&text, &[]).unwrap().scenario(0, 0).unwrap();
        assert_reads_back(&scenario);
        let of_groups = scenario.traffic.iter().map(|it| it.access().host_jitter);
        let texts = of_groups.map(|jitter| jitter.map(|it| it.to_string()));
        texts.collect::<Vec<_>>()
    };
    let own = |jitter: &str| format!("flows = 4\nhost_jitter = \"{jitter}\"");
    let all = ("warmup", "host_jitter = \"1 ms\"\nwarmup");
    let ms = |n: u32| Some(format!("{n} ms"));
    let default = || Some("200 us".to_owned());
    assert_eq!(jitters(&[]), [default(), default()]);
    assert_eq!(jitters(&[all]), [ms(1), ms(1)]);
    assert_eq!(jitters(&[("flows = 4", &own("2 ms"))]), [default(), ms(2)]);
    assert_eq!(jitters(&[all, ("flows = 4", &own("2 ms"))]), [ms(1), ms(2)]);
    // None at all has the text, and so the key, of a run without.
    assert_eq!(jitters(&[all, ("flows = 4", &own("0 s"))]), [ms(1), None]);
}

#[test]
fn the_default_delays_of_hosts_are_no_longer_than_a_packet_takes_at_the_bottleneck() {
    let jitters = |changes: &[(&str, &str)]| {
        let text = changed(&single(), changes);
        let scenario = plan(&text, &[]).unwrap().scenario(0, 0).unwrap();
        assert_reads_back(&scenario);
        let of_groups = scenario.traffic.iter().map(|it| it.access().host_jitter);
        let texts = of_groups.map(|jitter| jitter.map_or("none".to_owned(), |it| it.to_string()));
        (texts.collect::<Vec<_>>(), scenario.host_jitter_by_default)
    };
    let of_both = |jitter: &str| (vec![jitter.to_owned(); 2], vec!["ftp".into(), "cbr".into()]);
    let rate = "rate = \"10 Mbit/s\"\ndelay";
    let at = |rate: &str| format!("rate = \"{rate}\"\ndelay");
    assert_eq!(jitters(&[(rate, &at("140 kbit/s"))]), of_both("200 us"));
    // 1500 bytes at 1 Gbit/s.
    assert_eq!(jitters(&[(rate, &at("1 Gbit/s"))]), of_both("12 us"));
    // A link that becomes faster: what counts is the shortest time.
    let faster =
        "rate = \"10 Mbit/s\"\nrate_changes = [{ at = \"9 s\", rate = \"1 Gbit/s\" }]\ndelay";
    assert_eq!(jitters(&[(rate, faster)]), of_both("12 us"));
    // Against the bottleneck the link of that direction counts.
    let back = "delay = \"100 ms\"\nreturn = { rate = \"2 Gbit/s\", delay = \"1 ms\", queue = { kind = \"tail-drop\", limit = \"10 packets\" } }";
    let reverse = ("flows = 4", "flows = 4\ndirection = \"reverse\"");
    let (found, _) = jitters(&[("delay = \"100 ms\"", back), reverse]);
    assert_eq!(found, ["200 us", "6 us"]);
    // Hosts of ns-2 send at once, and so does UDP beside them.
    let of_ns2 = ("tcp = \"sack\"", "tcp = \"ns2-sack\"");
    assert_eq!(
        jitters(&[of_ns2]),
        (vec!["none".into(), "none".into()], vec![])
    );
    // What the file gives is no default.
    let given = ("warmup", "host_jitter = \"200 us\"\nwarmup");
    assert_eq!(
        jitters(&[given]),
        (vec!["200 us".into(), "200 us".into()], vec![])
    );
    let off = ("warmup", "host_jitter = \"0 s\"\nwarmup");
    assert_eq!(
        jitters(&[off]),
        (vec!["none".into(), "none".into()], vec![])
    );
}

#[test]
fn real_hosts_have_the_delays_that_the_file_gives_but_not_the_default() {
    let own = ("flows = 4", "flows = 4\nhost_jitter = \"2 ms\"");
    let text = changed(&single(), &[own]);
    let scenario = plan(&text, &[]).unwrap().scenario(0, 0).unwrap();
    let real = scenario.clone().for_real_hosts();
    let jitters: Vec<_> = real
        .traffic
        .iter()
        .map(|it| it.access().host_jitter)
        .collect();
    assert_eq!(jitters, [None, Some(redtail_core::Span::from_ms(2))]);
    // Apart from that it is the same run: that of hosts that send at once.
    let at_once = ("start =", "host_jitter = \"0 s\"\nstart =");
    let text = changed(&single(), &[own, at_once]);
    assert_eq!(real, plan(&text, &[]).unwrap().scenario(0, 0).unwrap());
}

#[test]
fn bulk_flows_start_within_a_tenth_of_the_warm_up_unless_the_file_says_when() {
    let start = |changes: &[(&str, &str)]| {
        let text = changed(&single(), changes);
        let plan = plan(&text, &[]).unwrap();
        let scenario = plan.scenario(0, 0).unwrap();
        assert_reads_back(&scenario);
        let json: serde_json::Value = serde_json::from_str(&scenario.to_json()).unwrap();
        json["traffic"][0]["start"].as_str().unwrap().to_owned()
    };
    let left_out = ("start = \"uniform 0..10 s\"\n", "");
    let warmup = |it: &str| format!("warmup = \"{it}\"");
    let given = "warmup = \"50 s\"";
    assert_eq!(start(&[left_out]), "uniform 0 s..1 s");
    assert_eq!(
        start(&[left_out, (given, &warmup("2 s"))]),
        "uniform 0 s..200 ms"
    );
    // Nothing precedes the measurement: all at its beginning.
    assert_eq!(start(&[left_out, (given, &warmup("0 s"))]), "0 s");
    // Flows start before they stop.
    let stop = ("flows = 64", "flows = 64\nstop = [\"20 s\", \"4 s\"]");
    assert_eq!(start(&[left_out, stop]), "uniform 0 s..400 ms");
    assert_eq!(start(&[]), "uniform 0 s..10 s");
    let at_once = ("start = \"uniform 0..10 s\"", "start = \"0 s\"");
    assert_eq!(start(&[at_once]), "0 s");
}

#[test]
fn equal_experiments_have_equal_texts_however_they_are_written() {
    let text = plan(&single(), &[])
        .unwrap()
        .scenario(0, 0)
        .unwrap()
        .to_json();
    let other = changed(
        &single(),
        &[
            (
                "\"10 Mbit/s\"\ndelay = \"100 ms\"",
                "\"10_000 Kbps\"\ndelay = \"0.1 s\"",
            ),
            ("tcp = \"sack\"", "tcp = { preset = \"sack\", ecn = false }"),
            (
                "name = \"Tail drop against RED\"",
                "seed = 1\nname = \"Another name\"",
            ),
        ],
    );
    assert_eq!(
        plan(&other, &[]).unwrap().scenario(0, 0).unwrap().to_json(),
        text
    );
}

#[test]
fn json_makes_the_same_plan_as_toml() {
    let json = json!({
        "name": "Tail drop against RED", "description": null, "duration": "200 s", "warmup": "50 s", "replications": 10,
        "bottleneck": {
            "rate": "10 Mbit/s", "delay": "100 ms",
            "queue": { "kind": "red", "limit": "300 packets", "min_th": "45 packets", "max_th": "195 packets" },
        },
        "traffic": [
            {
                "name": "ftp", "kind": "bulk", "flows": 64, "tcp": "sack",
                "access_delay": ["20 ms", "40 ms"], "start": "uniform 0..10 s",
            },
            { "name": "cbr", "kind": "cbr", "flows": 4, "rate": "250 kbit/s", "packet": "573 B" },
        ],
        "factors": {
            "bottleneck.queue": [
                { "kind": "tail-drop", "limit": "300 packets" },
                { "kind": "red", "limit": "300 packets", "min_th": "45 packets", "max_th": "195 packets" },
            ],
            "traffic.ftp.flows": [16, 64, 256],
        },
    });
    let from_json = Plan::from_text(
        &json.to_string(),
        PlanOptions {
            format: Format::Json,
            ..PlanOptions::default()
        },
    )
    .unwrap();
    assert_eq!(from_json, plan(FILE, &[]).unwrap());
}

#[test]
fn arguments_override_the_file() {
    let json = scenario_json(
        &single(),
        &[
            "bottleneck.rate=20 Mbit/s",
            "traffic.ftp.tcp.ecn=true",
            "seed=7",
        ],
    );
    assert_eq!(json["bottleneck"]["rate"], "20 Mbit/s");
    assert_eq!(json["traffic"][0]["access_rate"], "200 Mbit/s");
    assert_eq!(json["traffic"][0]["tcp"]["ecn"], true);
    assert_eq!(json["traffic"][0]["tcp"]["preset"], "sack");
    assert_eq!(json["seed"], 7);
    let json = scenario_json(
        &single(),
        &["bottleneck.queue={ kind = \"tail-drop\", limit = \"300 packets\" }"],
    );
    assert_eq!(
        json["bottleneck"]["queue"],
        json!({ "kind": "tail-drop", "limit": "300 packets" })
    );
}

#[test]
fn arguments_and_factors_reach_the_constants_of_laws() {
    let text = single().replace(
        "tcp = \"sack\"",
        "tcp = { preset = \"linux\", growth = \"cubic\" }",
    );
    let json = scenario_json(&text, &["traffic.ftp.tcp.growth.beta=0.5"]);
    let growth = &json["traffic"][0]["tcp"]["growth"];
    assert_eq!(growth["kind"], "cubic");
    assert_eq!(growth["beta"], 0.5);
    let text = single().replace("tcp = \"sack\"", "tcp = \"cubic\"")
        + "[factors]\n\"traffic.ftp.tcp.growth.c\" = [0.1, 0.4]\n";
    let plan = plan(&text, &[]).unwrap();
    for (case, c) in [0.1, 0.4].into_iter().enumerate() {
        let scenario = plan.scenario(case, 0).unwrap();
        let json = serde_json::to_value(scenario).unwrap();
        assert_eq!(json["traffic"][0]["tcp"]["growth"]["c"], c);
        assert_eq!(json["traffic"][0]["tcp"]["growth"]["beta"], 0.7);
    }
}

#[test]
fn arguments_reach_into_factors() {
    let cases = |sets: &[&str]| {
        let cases: Value = serde_json::from_str(&plan(FILE, sets).unwrap().cases_json()).unwrap();
        cases.as_array().unwrap().clone()
    };
    assert_eq!(cases(&["traffic.ftp.flows=32"]).len(), 2);
    assert_eq!(cases(&["traffic.ftp.flows=[32, 33]"]).len(), 4);
    assert_eq!(cases(&["factors.traffic.cbr.flows=[1, 2]"]).len(), 12);
    let shorter = cases(&["bottleneck.queue.limit=200 packets"]);
    assert_eq!(
        shorter[0]["factors"]["bottleneck.queue"]["limit"],
        "200 packets"
    );
    assert_eq!(
        shorter[5]["factors"]["bottleneck.queue"]["limit"],
        "200 packets"
    );
}

#[test]
fn a_factor_may_lie_inside_another() {
    let text = changed(
        FILE,
        &[(
            "\"traffic.ftp.flows\" = [16, 64, 256]",
            "\"bottleneck.queue.limit\" = [\"200 packets\", \"250 packets\"]",
        )],
    );
    let text = text.replace(
        "[factors]\n\"bottleneck.queue\"",
        "[factors]\nduration = [\"200 s\"]\n\"bottleneck.queue\"",
    );
    let plan = plan(&text, &[]).unwrap();
    let limits: Vec<_> = (0..4)
        .map(|case| {
            plan.scenario(case, 0).unwrap().topology.hops()[0]
                .queue
                .limit()
                .unwrap()
                .packets
        })
        .collect();
    assert_eq!(limits, [Some(200), Some(250), Some(200), Some(250)]);
}

#[test]
fn only_the_first_replications_record_series() {
    let text = single() + "[series]\ninterval = \"100 ms\"\nreplications = 2\n";
    let plan = plan(&text, &[]).unwrap();
    let series = |replication| plan.scenario(0, replication).unwrap().series;
    assert!(series(0).is_some_and(|series| series.queues && !series.windows));
    assert_eq!(series(0), series(1));
    assert_eq!(series(2), None);
    let recorded = plan.scenario(0, 0).unwrap();
    assert_reads_back(&recorded);
}

const CHAIN: &str = r#"
name = "Parking lot"
duration = "100 s"
warmup = "20 s"

[chain]
[[chain.hop]]
rate = "10 Mbit/s"
delay = "10 ms"
queue = { kind = "tail-drop", limit = "100 packets" }
[[chain.hop]]
rate = "5 Mbit/s"
delay = "10 ms"
queue = { kind = "tail-drop", limit = "100 packets", label = "second" }
[chain.hop.return]
rate = "2 Mbit/s"
delay = "5 ms"
queue = { kind = "tail-drop", limit = "50 packets" }

[[traffic]]
name = "through"
kind = "bulk"
[[traffic]]
name = "cross"
kind = "transfer"
size = ["100 kB", "1 MB"]
first_hop = 2
[[traffic]]
name = "back"
kind = "bulk"
direction = "reverse"
"#;

#[test]
fn a_chain_names_its_hops_and_groups_cross_a_part_of_it() {
    let scenario = plan(CHAIN, &["chain.hop2.rate=6 Mbit/s"])
        .unwrap()
        .scenario(0, 0)
        .unwrap();
    assert!(matches!(&scenario.topology, Topology::Chain(hops) if hops.len() == 2));
    assert_eq!(scenario.topology.hop_name(1), "hop2");
    let json: Value = serde_json::from_str(&scenario.to_json()).unwrap();
    assert_eq!(json["chain"]["hop"][1]["return"]["rate"], "2 Mbit/s");
    let of = |group: usize, key: &str| json["traffic"][group][key].clone();
    assert_eq!(
        (of(0, "first_hop"), of(0, "last_hop")),
        (json!(1), json!(2))
    );
    assert_eq!(
        (of(1, "first_hop"), of(1, "last_hop")),
        (json!(2), json!(2))
    );
    assert_eq!(
        (
            of(0, "access_rate"),
            of(1, "access_rate"),
            of(2, "access_rate")
        ),
        (json!("100 Mbit/s"), json!("60 Mbit/s"), json!("20 Mbit/s"))
    );
    assert_reads_back(&scenario);
}

#[test]
fn a_scenario_of_another_version_is_not_run() {
    let text = plan(CHAIN, &[]).unwrap().scenario(0, 0).unwrap().to_json();
    let error =
        Scenario::from_json(&text.replacen("\"version\":1", "\"version\":2", 1)).unwrap_err();
    assert!(
        error
            .to_string()
            .ends_with("scenario version 2 is not 1, the one this redtail runs"),
        "{error}"
    );
}

#[test]
fn the_texts_of_many_runs_are_those_of_each() {
    let series = single() + "[series]\ninterval = \"100 ms\"\nreplications = 2\n";
    let sets = ["replications=20".to_owned()];
    let options = || PlanOptions {
        sets: &sets,
        ..PlanOptions::default()
    };
    for file in [series, FILE.to_owned(), CHAIN.to_owned()] {
        let plan = Plan::from_text(&file, options()).unwrap();
        let runs: Vec<_> = (0..12)
            .chain([99, u32::MAX])
            .flat_map(|replication| (0..plan.cases.len()).map(move |case| (case, replication)))
            .collect();
        let texts = plan.texts(&runs, &CalibratedUsers::new()).unwrap();
        let mut reader = ScenarioReader::default();
        for (text, &(case, replication)) in texts.iter().zip(&runs) {
            let scenario = plan.scenario(case, replication).unwrap();
            assert_eq!(*text, scenario.to_json());
            assert_eq!(reader.read(text).unwrap(), scenario);
        }
        assert_eq!(plan.texts(&[(99, 0)], &CalibratedUsers::new()), None);
    }
}

#[test]
fn only_the_replication_of_the_scenario_itself_may_differ() {
    let text = plan(CHAIN, &[]).unwrap().scenario(0, 0).unwrap().to_json();
    let other = |from: &str, to: &str| text.replacen(from, to, 1);
    let texts = [
        text.clone(),
        other("\"replication\":0", "\"replication\":7"),
        // Read by itself: not in the canonical form.
        other("\"replication\":0", "\"replication\": 8"),
        other("\"seed\":1", "\"seed\":2"),
    ];
    let mut reader = ScenarioReader::default();
    for text in &texts {
        assert_eq!(
            reader.read(text).unwrap(),
            Scenario::from_json(text).unwrap()
        );
    }
    for wrong in [
        "\"replication\":07",
        "\"replication\":-1",
        "\"replication\":4294967296",
    ] {
        let text = other("\"replication\":0", wrong);
        assert!(ScenarioReader::default().read(&text).is_err(), "{wrong}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_scenario_reads_back_as_it_was_written(
        rate in 1_u64..1 << 40,
        delay in 0_u64..1 << 51,
        limit in 1_u64..1 << 40,
        flows in 1_u32..=1_000_000,
        dither in 0.0..=1.0,
        seed: u64,
        replication: u32,
    ) {
        let sets = [
            format!("bottleneck.rate={rate} bit/s"),
            format!("bottleneck.delay={delay} ps"),
            format!("bottleneck.queue={{ kind = 'tail-drop', limit = ['{limit} B', '{limit} packets'] }}"),
            format!("traffic.ftp.flows={flows}"),
            format!("traffic.cbr.dither={dither:?}"),
            format!("seed={}", seed >> 1), // TOML's integers have 63 bits
        ];
        let plan = Plan::from_text(&single(), PlanOptions { sets: &sets, ..PlanOptions::default() }).unwrap();
        let scenario = plan.scenario(0, replication).unwrap();
        let text = scenario.to_json();
        let back = Scenario::from_json(&text).unwrap();
        prop_assert_eq!(back.to_json(), text);
        prop_assert_eq!(back.topology, scenario.topology);
        prop_assert_eq!((back.seed, back.replication), (seed >> 1, replication));
    }

    #[test]
    fn a_damaged_file_is_accepted_or_refused_but_never_a_panic(
        at in 0..FILE.len(),
        length in 0_usize..40,
        filling in "[-=\\[\\]{}\", \n0-9a-z.]{0,4}",
    ) {
        let text = format!("{}{filling}{}", &FILE[..at], &FILE[(at + length).min(FILE.len())..]);
        if let Err(error) = Plan::from_text(&text, PlanOptions { file: Some("e.toml"), ..PlanOptions::default() }) {
            let message = error.to_string();
            prop_assert!(message.starts_with("e.toml:"), "{}", message);
        }
    }
}

#[test]
fn the_outline_says_what_the_file_amounts_to() {
    assert_eq!(
        plan(FILE, &[]).unwrap().outline(),
        [
            "bottleneck: 10 Mbit/s; one bandwidth-delay product is 162 kB or 109 packets of 1500 B (mean base round \
             trip 130 ms)",
            "ftp: 16 to 256 bulk flows, base round-trip time 120 ms to 140 ms",
            "cbr: 4 constant-rate flows, base round-trip time 100 ms",
            // 9 Mbit/s in packets of 1500 B and 1 Mbit/s in packets of 573 B: 968 a second.
            "each run: 200 s simulated, the last 150 s of it measured; about 12 million packets over the bottleneck in all \
             runs",
        ]
    );
    let varied = [
        "factors.\"bottleneck.rate\"=['1 Mbit/s', '10 Mbit/s']",
        "traffic.ftp.flows=1",
        "traffic.cbr.rate='10 Mbit/s'",
    ];
    let outline = plan(&single(), &varied).unwrap().outline();
    assert_eq!(
        outline[..2],
        [
            "bottleneck: 1 Mbit/s to 10 Mbit/s; one bandwidth-delay product is 15 kB to 150 kB or 10 to 100 packets of \
             1500 B (mean base round trip 120 ms)",
            "ftp: 1 bulk flow, base round-trip time 120 ms",
        ]
    );
    // More is offered than fits, so the link's rate counts: 11 Mbit/s in packets of 573 B.
    assert!(
        outline[3].ends_with("; about 4.8 million packets over the bottleneck in all runs"),
        "{}",
        outline[3]
    );
}

#[test]
fn the_outline_names_groups_that_some_cases_have() {
    let text = r#"
        name = "cases"
        duration = "5 s"
        [bottleneck]
        rate = "10 Mbit/s"
        delay = "5 ms"
        queue = { kind = "tail-drop", limit = "50 packets" }
        [[case]]
        name = "two"
        traffic = [
            { name = "x", kind = "bulk", tcp = "linux" },
            { name = "y", kind = "bulk", tcp = "linux", return_delay = "30 ms" },
        ]
        [[case]]
        name = "one"
        traffic = [{ name = "z", kind = "bulk", tcp = "linux" }]
        [[case]]
        name = "turned"
        traffic = [
            { name = "y", kind = "bulk", tcp = "linux", flows = 3 },
            { name = "x", kind = "bulk", tcp = "linux" },
        ]
    "#;
    assert_eq!(
        plan(text, &[]).unwrap().outline()[1..4],
        [
            "x: 1 bulk flow, base round-trip time 5 ms, in 2 of 3 cases",
            "y: 1 to 3 bulk flows, base round-trip time 5 ms to 35 ms, in 2 of 3 cases",
            "z: 1 bulk flow, base round-trip time 5 ms, in 1 of 3 cases",
        ]
    );
}

#[test]
fn the_outline_tells_how_the_rate_changes() {
    let first = |keys: &str| {
        let text = changed(&single(), &[("rate = \"10 Mbit/s\"", keys)]);
        let outline = plan(&text, &[]).unwrap().outline();
        outline[0].split(';').next().unwrap().to_owned()
    };
    let change = |at: &str| format!("{{ at = \"{at}\", rate = \"5 Mbit/s\" }}");
    let changes = |list: &str| format!("rate = \"10 Mbit/s\"\nrate_changes = [{list}]");
    assert_eq!(
        first(&changes(&change("50 s"))),
        "bottleneck: 10 Mbit/s until 50 s, then 5 Mbit/s"
    );
    assert_eq!(
        first(&changes(&[change("50 s"), change("60 s")].join(", "))),
        "bottleneck: 10 Mbit/s until 50 s, 2 changes, at last 5 Mbit/s"
    );
    assert_eq!(
        first("rate = \"10 Mbit/s\"\nrate_changes = { every = \"3 s\", rates = [\"1 Mbit/s\"] }"),
        "bottleneck: 10 Mbit/s, which changes every 3 s"
    );
    assert_eq!(
        first("rate_trace = { differences_ms = \"1\" }"),
        "bottleneck: 12 Mbit/s (what queues are told"
    );
}

#[test]
fn the_outline_of_transfers_counts_their_segments() {
    let text = changed(
        &single(),
        &[("kind = \"bulk\"", "kind = \"transfer\"\nsize = \"14600 B\"")],
    );
    let text = text.split("[[traffic]]\nname = \"cbr\"").next().unwrap();
    let outline = plan(text, &["replications=1"]).unwrap().outline();
    // 64 transfers of 10 segments.
    assert!(
        outline[2].ends_with("about 640 packets over the bottleneck in all runs"),
        "{}",
        outline[2]
    );
    assert!(
        outline[1].starts_with("ftp: 64 transfers, "),
        "{}",
        outline[1]
    );
}

const CLASSES: &str = r#"name = "Classes"
duration = "10 s"
[bottleneck]
rate = "10 Mbit/s"
delay = "10 ms"
queue = { kind = "wfq", default = "data", class = [
  { name = "voice", match = [{ group = "voip" }, { dscp = "EF", protocol = "udp" }], weight = 3,
    queue = { kind = "tail-drop", limit = "20 packets" } },
  { name = "data", queue = { kind = "tbf", rate = "5 Mbit/s", burst = "3 kB",
    queue = { kind = "tail-drop", limit = "100 ms" } } },
] }
[[traffic]]
name = "voip"
kind = "cbr"
rate = "64 kbit/s"
packet = "200 B"
[factors]
"bottleneck.queue.class.voice.weight" = [1, 9]
"bottleneck.queue.class.data.queue" = [
  { kind = "tail-drop", limit = "50 packets" },
  { kind = "tbf", rate = "1 Mbit/s", burst = "3 kB", queue = { kind = "tail-drop", limit = "9 packets" } },
]
"#;

#[test]
fn factors_and_overrides_reach_into_classes_by_name() {
    let sets = ["bottleneck.queue.class.voice.queue.limit=7 packets"];
    let plan = plan(CLASSES, &sets).unwrap();
    assert_eq!(plan.cases.len(), 4);
    let queue = |case| {
        let scenario = plan.scenario(case, 0).unwrap();
        assert_reads_back(&scenario);
        let json: Value = serde_json::from_str(&scenario.to_json()).unwrap();
        json["bottleneck"]["queue"].clone()
    };
    assert_eq!(
        queue(3),
        json!({ "kind": "wfq", "default": "data", "class": [
            { "name": "voice",
              "match": [{ "group": "voip" }, { "dscp": "EF", "protocol": "udp" }], "weight": 9,
              "queue": { "kind": "tail-drop", "limit": "7 packets" } },
            { "name": "data", "weight": 1,
              "queue": { "kind": "tbf", "rate": "1 Mbit/s", "burst": "3 kB",
                "queue": { "kind": "tail-drop", "limit": "9 packets" } } },
        ] })
    );
    assert_eq!(queue(0)["class"][0]["weight"], 1);
    assert_eq!(queue(0)["class"][1]["queue"]["limit"], "50 packets");
}

#[test]
fn an_override_inside_a_factor_reaches_the_classes_of_each_of_its_values() {
    let text = changed(
        CLASSES,
        &[("\"bottleneck.queue.class.voice.weight\" = [1, 9]\n", "")],
    );
    let sets = ["bottleneck.queue.class.data.queue.limit=8 packets"];
    let error = plan(&text, &sets).unwrap_err().to_string();
    // It went into both; the second has no limit of its own.
    assert!(
        error
            .contains("bottleneck.queue.class.data.queue.limit: unknown key; accepted: kind, rate"),
        "{error}"
    );
    let sets = ["bottleneck.queue.class.dat.weight=8"];
    assert_eq!(
        plan(&text, &sets).unwrap_err().to_string(),
        "--set bottleneck.queue.class.dat.weight=8: bottleneck.queue.class.dat.weight: there is no class \"dat\"; \
         accepted: voice, data; did you mean \"data\"?"
    );
}

#[test]
fn the_examples_of_the_pages_on_classes_can_be_run() {
    let pages = [
        include_str!("../../../../docs/queues/classes.md"),
        include_str!("../../../../docs/queues/prio.md"),
        include_str!("../../../../docs/queues/drr.md"),
        include_str!("../../../../docs/queues/wfq.md"),
        include_str!("../../../../docs/queues/tbf.md"),
        include_str!("../../../../docs/queues/htb.md"),
    ];
    for page in pages {
        let block = page
            .split("```toml\n")
            .nth(1)
            .expect("a page has an example");
        let block = block.split("```").next().unwrap_or_default();
        let link = "[bottleneck]\nrate = \"10 Mbit/s\"\ndelay = \"10 ms\"\n";
        let link = if block.contains("[bottleneck]\n") {
            ""
        } else {
            link
        };
        let groups = [
            ("voice", "dscp = \"EF\""),
            ("browsing", "port = 80"),
            ("gold", ""),
        ]
        .map(|(name, more)| {
            format!(
                "[[traffic]]\nname = \"{name}\"\nkind = \"cbr\"\nrate = \"1 Mbit/s\"\npacket = \"200 B\"\n{more}\n"
            )
        });
        let text = format!(
            "name = \"Example\"\nduration = \"10 s\"\n{link}{block}{}",
            groups.concat()
        );
        let plan = plan(&text, &[]).unwrap_or_else(|error| panic!("{error}\nin:\n{text}"));
        assert_eq!(plan.warnings, [""; 0], "{text}");
    }
}

#[test]
fn the_content_of_a_trace_and_not_its_name_is_in_the_scenario() {
    let planned = |name: &str| {
        let link = format!("rate_trace = \"{name}\"");
        let text = changed(&single(), &[("rate = \"10 Mbit/s\"", &link)]);
        let mut read = |asked: &str| {
            assert_eq!(asked, name);
            Ok("1\n1\n3\n".to_owned())
        };
        let plan = Plan::from_text(
            &text,
            PlanOptions {
                files: Some(&mut read),
                ..PlanOptions::default()
            },
        );
        plan.unwrap().scenario(0, 0).unwrap()
    };
    let (here, there) = (planned("a.trace"), planned("elsewhere/b.trace"));
    assert_eq!(here.to_json(), there.to_json());
    assert_reads_back(&here);
    let json: Value = serde_json::from_str(&here.to_json()).unwrap();
    let link = &json["bottleneck"];
    assert_eq!(link["rate_trace"], json!({ "differences_ms": "1 0 2" }));
    // Without a rate of its own: 3 x 12,000 bit in 3 ms.
    assert_eq!(link["rate"], "12 Mbit/s");
}

#[test]
fn a_rate_beside_a_trace_is_the_one_that_queues_are_told() {
    let text = changed(
        &single(),
        &[("rate =", "rate_trace = { differences_ms = \"1\" }\nrate =")],
    );
    let json = scenario_json(&text, &[]);
    assert_eq!(json["bottleneck"]["rate"], "10 Mbit/s");
}

#[test]
fn auto_phases_are_at_rate_changes_and_fixed_starts_and_stops_in_the_measurement_period() {
    let text = changed(
        &single(),
        &[
            (
                "rate =",
                "rate_changes = [{ at = \"40 s\", rate = \"5 Mbit/s\" }, { at = \"150 s\", rate = \"6 Mbit/s\" }]\nrate =",
            ),
            (
                "start = \"uniform 0..10 s\"",
                "start = \"uniform 60..70 s\"\nstop = \"180 s\"",
            ),
            ("packet =", "start = [\"100 s\", \"150 s\"]\npacket ="),
            ("replications", "phases = \"auto\"\nreplications"),
        ],
    );
    let json = scenario_json(&text, &[]);
    // 40 s is in the warm-up, 60 s is drawn, 150 s is there twice.
    assert_eq!(json["phases"], json!(["100 s", "150 s", "180 s"]));
    assert_reads_back(&plan(&text, &[]).unwrap().scenario(0, 0).unwrap());
    let json = scenario_json(&text, &["phases=[\"60 s\"]"]);
    assert_eq!(json["phases"], json!(["60 s"]));
}

#[test]
fn auto_phases_of_a_law_are_at_its_changes_and_at_its_end() {
    let law = "rate_changes = { every = \"20 s\", from = \"10 s\", until = \"145 s\", rates = [\"1 Mbit/s\", \"0 bit/s\"] }";
    let text = changed(
        &single(),
        &[
            ("rate =", &format!("{law}\nrate =")),
            ("replications", "phases = \"auto\"\nreplications"),
        ],
    );
    let json = scenario_json(&text, &[]);
    // The warm-up takes 50 s.
    assert_eq!(
        json["phases"],
        json!(["70 s", "90 s", "110 s", "130 s", "145 s"])
    );
    assert_reads_back(&plan(&text, &[]).unwrap().scenario(0, 0).unwrap());
}

#[test]
fn an_overhead_has_one_text_whether_words_or_a_table() {
    let with = |overhead: &str| {
        let keys = format!("overhead = {overhead}\nrate =");
        let text = changed(&single(), &[("rate =", keys.as_str())]);
        scenario_json(&text, &[])
    };
    let words = with("\"docsis\"");
    assert_eq!(
        words["bottleneck"]["overhead"],
        json!({ "bytes": "18 B", "mpu": "64 B", "framing": "none" })
    );
    assert_eq!(with("{ bytes = \"18 B\", mpu = \"64 B\" }"), words);
}

#[test]
fn steps_of_a_law() {
    let steps = |law: &str, replication: u32| {
        let keys = format!("rate_changes = {{ {law} }}\nrate =");
        let text = changed(&single(), &[("rate =", keys.as_str())]);
        let scenario = plan(&text, &[]).unwrap().scenario(0, replication).unwrap();
        let (_, link, hop, direction) = scenario.topology.links().remove(0);
        let steps = scenario.rate_steps(hop, direction, &link);
        let plain = steps
            .iter()
            .map(|(at, rate)| (at.as_secs_f64(), rate.as_bps() as f64 / 1e6));
        plain.collect::<Vec<_>>()
    };
    // The run takes 200 s, and the link has 10 Mbit/s.
    assert_eq!(
        steps(
            r#"every = "60 s", from = "10 s", rates = ["1 Mbit/s", "2 Mbit/s"]"#,
            0
        ),
        [
            (0.0, 10.0),
            (10.0, 1.0),
            (70.0, 2.0),
            (130.0, 1.0),
            (190.0, 2.0)
        ]
    );
    assert_eq!(
        steps(
            r#"every = "60 s", until = "120 s", rates = ["1 Mbit/s", "2 Mbit/s", "3 Mbit/s"]"#,
            0
        ),
        [(0.0, 1.0), (60.0, 2.0), (120.0, 10.0)]
    );
    // Quarters of a period: the middle, the top, the middle, the bottom.
    let sine = r#"every = "10 s", until = "50 s", sine = { low = "4 Mbit/s", high = "8 Mbit/s", period = "40 s" }"#;
    assert_eq!(
        steps(sine, 0),
        [
            (0.0, 6.0),
            (10.0, 8.0),
            (20.0, 6.0),
            (30.0, 4.0),
            (40.0, 6.0),
            (50.0, 10.0)
        ]
    );
    let walk =
        r#"every = "10 ms", walk = { low = "5 Mbit/s", high = "12 Mbit/s", step = "1 Mbit/s" }"#;
    let drawn = r#"every = "10 ms", rate = "uniform 5..12 Mbit/s""#;
    for law in [walk, drawn] {
        let found = steps(law, 0);
        assert_eq!(found, steps(law, 0));
        assert_ne!(found, steps(law, 1));
        assert_eq!(found.len(), 20_000);
        assert!(found.iter().all(|&(_, rate)| (5.0..=12.0).contains(&rate)));
        // Both laws are uniform in the long run: the walk is mirrored at its ends.
        let spread = |part: f64| {
            let below = found.iter().filter(|&&(_, rate)| rate < 5.0 + 7.0 * part);
            below.count() as f64 / found.len() as f64
        };
        // 20,000 draws are within 0.02 of their law but for 1e-8 of the seeds; the walk, whose values hang together
        // for about (7 / 0.58)^2 = 150 steps, within 0.2 for as many.
        let within = if law == walk { 0.2 } else { 0.02 };
        for part in [0.25, 0.5, 0.75] {
            assert!(
                (spread(part) - part).abs() < within,
                "{law}: {}",
                spread(part)
            );
        }
    }
    let walked = steps(walk, 0);
    let largest = walked.windows(2).map(|pair| (pair[1].1 - pair[0].1).abs());
    assert!(largest.fold(0.0, f64::max) <= 1.0 + 1e-6);
}

const LOADED: &str = r#"
name = "Loaded"
duration = "60 s"
[[chain.hop]]
rate = "10 Mbit/s"
delay = "5 ms"
queue = { kind = "red", limit = "100 packets", min_th = "10 packets", max_th = "50 packets" }
wire.loss = 0.01
[[chain.hop]]
rate = "20 Mbit/s"
delay = "7 ms"
queue = { kind = "tail-drop", limit = "100 packets" }
return = { rate = "5 Mbit/s", delay = "9 ms", queue = { kind = "tail-drop", limit = "9 packets" } }
[[traffic]]
name = "there"
kind = "web"
model = "request-think"
load = "90 %"
access_rate = ["1 Mbit/s", "2 Mbit/s"]
[[traffic]]
name = "back"
kind = "web"
model = "http1"
load = 0.5
direction = "reverse"
[[traffic]]
name = "ftp"
kind = "bulk"
"#;

#[test]
fn a_load_is_a_share_of_the_first_link_on_the_way_of_the_data() {
    let plan = plan(LOADED, &[]).unwrap();
    let loads = plan.loads(0);
    let told: Vec<_> = loads
        .iter()
        .map(|load| {
            (
                &*load.group,
                &*load.link,
                &*load.metric,
                load.rate.to_string(),
                load.share,
            )
        })
        .collect();
    assert_eq!(
        told,
        [
            (
                "there",
                "hop1",
                "hop1.there.utilization",
                "10 Mbit/s".into(),
                0.9
            ),
            (
                "back",
                "hop2.return",
                "hop2.return.back.utilization",
                "5 Mbit/s".into(),
                0.5
            ),
        ]
    );
    // One object of 2.3 kB x 1.3 / 0.3 on average in 50 s, 40 bytes of header to 1460.
    let mean = 2300.0 * 1.3 / 0.3 * 8.0 / 50.0 * 1500.0 / 1460.0;
    assert!((f64::from(loads[0].estimate) / (9e6 / mean) - 1.0).abs() < 1e-3);
}

#[test]
fn an_unconstrained_network_keeps_all_but_rates_and_queues() {
    let plan = plan(LOADED, &[]).unwrap();
    let scenario = plan.scenario(0, 3).unwrap().unconstrained("there", 70);
    assert_eq!((scenario.replication, scenario.traffic.len()), (3, 1));
    let access = scenario.traffic[0].access();
    assert_eq!(
        (access.name, access.flows, access.hosts),
        ("there", 70, Some(2))
    );
    let rates = access.access_rate.unwrap().values();
    assert_eq!(
        rates.iter().map(|rate| rate.as_bps()).collect::<Vec<_>>(),
        [1e9 as u64, 2e9 as u64]
    );
    let hop = &scenario.topology.hops()[0];
    assert_eq!(
        (
            hop.rate.to_string(),
            hop.wire.as_ref().unwrap().loss.clone()
        ),
        ("10 Gbit/s".into(), Some(Loss::Independent(0.01)))
    );
    assert_eq!(hop.delay.to_string(), "5 ms");
    let back = scenario.topology.hops()[1].return_link.as_ref().unwrap();
    assert_eq!(
        (back.rate.to_string(), back.delay.to_string()),
        ("5 Gbit/s".into(), "9 ms".into())
    );
    let json = scenario.to_json();
    assert!(
        !json.contains("\"red\"") && !json.contains("\"load\""),
        "{json}"
    );
    // A queue makes no difference to it, so cases that differ in the queue share a calibration.
    let other = LOADED.replace(
        "limit = \"100 packets\", min_th",
        "limit = \"200 packets\", min_th",
    );
    let other = crate::common::plan(&other, &[])
        .unwrap()
        .scenario(0, 3)
        .unwrap();
    assert_eq!(other.unconstrained("there", 70).to_json(), json);
}

#[test]
fn a_scenario_is_run_with_users_and_not_with_a_load() {
    let plan = plan(LOADED, &[]).unwrap();
    let scenario = plan.scenario(0, 0).unwrap();
    let error = Scenario::from_json(&scenario.to_json()).unwrap_err();
    assert!(
        error.to_string().contains("has to be calibrated first"),
        "{error}"
    );
    let fixed = scenario.with_users("there", 12).with_users("back", 3);
    // It is the run that one with the users given is.
    let given = LOADED
        .replace("load = \"90 %\"", "users = 12")
        .replace("load = 0.5", "users = 3");
    let given = crate::common::plan(&given, &[])
        .unwrap()
        .scenario(0, 0)
        .unwrap();
    assert_eq!(fixed.to_json(), given.to_json());
    assert_eq!(Scenario::from_json(&fixed.to_json()).unwrap(), fixed);
}
