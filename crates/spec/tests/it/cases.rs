//! Lists of cases, factors in step, and replications until sure.

use crate::common::{changed, plan, refusal, single};
use redtail_spec::{Plan, Until};
use serde_json::{Value, json};

const CASES: &str = r#"
[[case]]
name = "short tail drop"
"bottleneck.queue" = { kind = "tail-drop", limit = "30 packets", label = "short" }
"traffic.ftp.flows" = 16

[[case]]
name = "RED, fast"
bottleneck.rate = "20 Mbit/s"
bottleneck.queue.min_th = "40 packets"
traffic.ftp.tcp.ecn = true

[[case]]
name = "as above"
"#;

fn with(text: &str) -> String {
    single() + text
}

fn told(plan: &Plan) -> Vec<Value> {
    let cases: Value = serde_json::from_str(&plan.cases_json()).unwrap();
    cases.as_array().unwrap().clone()
}

fn scenario(plan: &Plan, case: usize) -> Value {
    serde_json::from_str(&plan.scenario(case, 0).unwrap().to_json()).unwrap()
}

#[test]
fn a_case_sets_its_keys_and_goes_by_its_name() {
    let plan = plan(&with(CASES), &[]).unwrap();
    assert_eq!(plan.factors, ["case.name"]);
    let cases = told(&plan);
    let names: Vec<_> = cases
        .iter()
        .map(|case| &case["labels"]["case.name"])
        .collect();
    assert_eq!(names, ["short tail drop", "RED, fast", "as above"]);
    assert_eq!(
        cases[0]["factors"],
        json!({ "case.name": "short tail drop" })
    );
    assert_eq!(
        cases[1]["settings"],
        json!({
            "bottleneck.rate": "20 Mbit/s", "bottleneck.queue.min_th": "40 packets",
            "traffic.ftp.tcp.ecn": true,
        })
    );
    let [short, fast, base] = [0, 1, 2].map(|case| scenario(&plan, case));
    assert_eq!(short["bottleneck"]["queue"]["kind"], "tail-drop");
    assert_eq!(short["bottleneck"]["queue"].get("label"), None);
    assert_eq!(short["traffic"][0]["flows"], 16);
    assert_eq!(fast["bottleneck"]["rate"], "20 Mbit/s");
    assert_eq!(fast["bottleneck"]["queue"]["kind"], "red");
    assert_eq!(fast["bottleneck"]["queue"]["min_th"], "40 packets");
    assert_eq!(fast["traffic"][0]["flows"], 64);
    assert_eq!(base["bottleneck"]["queue"]["min_th"], "45 packets");
}

#[test]
fn cases_without_a_name_are_called_after_what_they_set() {
    let text = "[[case]]\n\"bottleneck.queue\" = { kind = \"tail-drop\", limit = \"9 packets\" }\n\
                [[case]]\n\"traffic.ftp.flows\" = 3\nwarmup = \"10 s\"\n";
    let cases = told(&plan(&with(text), &[]).unwrap());
    let names: Vec<_> = cases
        .iter()
        .map(|case| &case["factors"]["case.name"])
        .collect();
    assert_eq!(names, ["tail-drop", "flows 3, warmup 10 s"]);
}

#[test]
fn every_case_meets_every_combination_of_the_factors() {
    let text = with(CASES) + "[factors]\n\"bottleneck.delay\" = [\"1 ms\", \"2 ms\"]\n";
    let plan = plan(&text, &[]).unwrap();
    assert_eq!(plan.factors, ["case.name", "bottleneck.delay"]);
    let titles: Vec<_> = told(&plan)
        .iter()
        .map(|case| {
            format!(
                "{} {}",
                case["labels"]["case.name"], case["labels"]["bottleneck.delay"]
            )
        })
        .collect();
    assert_eq!(titles.len(), 6);
    assert_eq!(titles[1], r#""short tail drop" "2 ms""#);
    assert_eq!(titles[2], r#""RED, fast" "1 ms""#);
}

#[test]
fn a_factor_inside_what_a_case_sets_goes_in_after_it() {
    let text = with(
        "[[case]]\nname = \"t\"\n\"bottleneck.queue\" = { kind = \"tail-drop\", limit = \"9 packets\" }\n",
    ) + "[factors]\n\"bottleneck.queue.limit\" = [\"5 packets\", \"6 packets\"]\n";
    let plan = plan(&text, &[]).unwrap();
    assert_eq!(
        scenario(&plan, 1)["bottleneck"]["queue"]["limit"],
        "6 packets"
    );
}

#[test]
fn an_argument_chooses_cases_by_name_and_is_not_hidden_by_them() {
    let text = with(CASES);
    let one = plan(&text, &["case.name=RED, fast", "bottleneck.rate=7 Mbit/s"]).unwrap();
    assert_eq!(told(&one).len(), 1);
    assert_eq!(scenario(&one, 0)["bottleneck"]["rate"], "7 Mbit/s");
    let two = plan(
        &text,
        &["case.name=['as above', 'RED, fast']", "traffic.ftp.flows=2"],
    )
    .unwrap();
    assert_eq!(told(&two)[0]["labels"]["case.name"], "as above");
    assert_eq!(scenario(&two, 1)["traffic"][0]["flows"], 2);
    let inside = plan(&text, &["bottleneck.queue.limit=77 packets"]).unwrap();
    for case in 0..3 {
        assert_eq!(
            scenario(&inside, case)["bottleneck"]["queue"]["limit"],
            "77 packets"
        );
    }
    assert_eq!(
        plan(&text, &["case.name=as abov"]).unwrap_err().to_string(),
        "--set case.name=as abov: case.name = \"as abov\" is not known; accepted: short tail drop, \
         RED, fast, as above; did you mean \"as above\"?"
    );
    assert_eq!(
        plan(&single(), &["case.name=a"]).unwrap_err().to_string(),
        "--set case.name=a: case.name: the file has no [[case]]"
    );
}

#[test]
fn cases_that_make_no_sense_are_refused() {
    let refused = |text: &str| refusal(&with(text));
    // `[[case]]` is on line 26.
    assert_eq!(
        refused("[[case]]\nname = \"a\"\n[[case]]\nname = \"a\"\n"),
        "e.toml:29: [[case]]: two cases have the name \"a\"; accepted: a name of its own"
    );
    assert_eq!(
        refused("[[case]]\n"),
        "e.toml:26: [[case]]: expected a name, or keys that it sets"
    );
    assert_eq!(
        refused("[[case]]\nname = 3\n"),
        "e.toml:27: case.name = 3: expected a text in quotes"
    );
    assert_eq!(
        refused("[[case]]\nname = \"a\"\nseed = 3\n"),
        "e.toml:28: [[case]] \"a\": seed is the same for all cases and cannot be set in one"
    );
    assert_eq!(
        refused("[[case]]\nname = \"a\"\n\"bottleneck.colour\" = 3\n"),
        "e.toml:28: [[case]] \"a\": \"bottleneck.colour\": there is no key bottleneck.colour; \
         accepted: rate, delay, queue, policer, airtime, random_loss, medium, return, rate_changes, rate_trace"
    );
    assert_eq!(
        refused("[[case]]\nname = \"a\"\n\"traffic.web.flows\" = 3\n"),
        "e.toml:28: [[case]] \"a\": \"traffic.web.flows\": there is no traffic group \"web\"; \
         accepted: ftp, cbr"
    );
    assert_eq!(
        refused("[[case]]\nname = \"a\"\n\"traffic.ftp.flows\" = -3\n"),
        "e.toml:28: traffic.ftp.flows = -3: expected a whole number from 1 to 1000000"
    );
    assert_eq!(
        refused("[[case]]\nduration = \"60 s\"\n[factors]\nduration = [\"70 s\", \"80 s\"]\n"),
        "e.toml:29: factors.\"duration\": a [[case]], a factors.zip or another factor gives this \
         key too; accepted: one of them"
    );
    let plain = changed(&single(), &[("[bottleneck]", "case = 3\n[bottleneck]")]);
    assert_eq!(
        refusal(&plain),
        "e.toml:6: case = 3: expected a list of tables, [[case]]"
    );
}

const ZIP: &str = r#"
[factors]
"bottleneck.delay" = ["1 ms", "2 ms"]
[[factors.zip]]
"bottleneck.rate" = ["10 Mbit/s", "20 Mbit/s", "20 Mbit/s"]
"bottleneck.queue.limit" = ["100 packets", "200 packets", "400 packets"]
"#;

fn labels(plan: &Plan) -> Vec<String> {
    let text = |case: &Value| {
        let labels = plan
            .factors
            .iter()
            .map(|key| case["labels"][key].as_str().unwrap());
        labels.collect::<Vec<_>>().join(" | ")
    };
    told(plan).iter().map(text).collect()
}

#[test]
fn factors_in_a_zip_take_their_values_in_step() {
    let plan = plan(&with(ZIP), &[]).unwrap();
    assert_eq!(
        plan.factors,
        [
            "bottleneck.delay",
            "bottleneck.rate",
            "bottleneck.queue.limit"
        ]
    );
    assert_eq!(
        labels(&plan),
        [
            "1 ms | 10 Mbit/s | 100 packets",
            "1 ms | 20 Mbit/s | 200 packets",
            "1 ms | 20 Mbit/s | 400 packets",
            "2 ms | 10 Mbit/s | 100 packets",
            "2 ms | 20 Mbit/s | 200 packets",
            "2 ms | 20 Mbit/s | 400 packets",
        ]
    );
}

#[test]
fn an_argument_for_one_of_a_zip_is_for_all_its_steps() {
    let one = plan(
        &with(ZIP),
        &["bottleneck.rate=5 Mbit/s", "bottleneck.delay=1 ms"],
    )
    .unwrap();
    assert_eq!(labels(&one).len(), 3);
    assert_eq!(scenario(&one, 2)["bottleneck"]["rate"], "5 Mbit/s");
    assert_eq!(
        scenario(&one, 2)["bottleneck"]["queue"]["limit"],
        "400 packets"
    );
    // As the command that repeats one run has it.
    let sets = [
        "bottleneck.rate=20 Mbit/s",
        "bottleneck.queue.limit=400 packets",
    ];
    assert_eq!(plan(&with(ZIP), &sets).unwrap().cases.len(), 2);
    // What has become the same is there once.
    assert_eq!(
        plan(&with(ZIP), &["bottleneck.queue.limit=9 packets"])
            .unwrap()
            .cases
            .len(),
        4
    );
    let error = plan(&with(ZIP), &["bottleneck.rate=['5 Mbit/s', '6 Mbit/s']"]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "--set bottleneck.rate=['5 Mbit/s', '6 Mbit/s']: factors.zip: \"bottleneck.rate\" has 2 \
         values and \"bottleneck.queue.limit\" has 3; accepted: as many of each"
    );
}

#[test]
fn zips_that_make_no_sense_are_refused() {
    let refused = |text: &str| refusal(&with(text));
    assert_eq!(
        refused("[[factors.zip]]\nduration = [\"60 s\", \"70 s\"]\nwarmup = [\"1 s\"]\n"),
        "e.toml:28: factors.zip: \"warmup\" has 1 values and \"duration\" has 2; accepted: as many \
         of each"
    );
    assert_eq!(
        refused("[[factors.zip]]\nduration = [\"60 s\", \"70 s\"]\n"),
        "e.toml:26: factors.zip: expected two factors or more that go in step"
    );
    assert_eq!(
        refused("[factors]\nzip = 3\n"),
        "e.toml:27: factors.zip = 3: expected a list of tables, [[factors.zip]]"
    );
    assert_eq!(
        refused("[[factors.zip]]\nduration = [\"60 s\", \"60 s\"]\nwarmup = [\"1 s\", \"1 s\"]\n"),
        "e.toml:27: factors.zip: number 2 is given twice"
    );
}

fn until(table: &str) -> String {
    changed(
        &single(),
        &[("replications = 10", &format!("replications = {table}"))],
    )
}

#[test]
fn replications_can_be_a_rule() {
    let found = plan(
        &until("{ until = \"queue_delay_p99 within 5 %\", at_most = 40 }"),
        &[],
    )
    .unwrap();
    let rule = found.stop.clone().unwrap();
    let bound = Until {
        metric: "queue_delay_p99".to_owned(),
        between: None,
        within: 0.05,
    };
    assert_eq!(
        (rule.until, rule.at_least, rule.at_most),
        (vec![bound], 10, 40)
    );
    assert_eq!(found.replications, 40);
    let last = found.outline().pop().unwrap();
    assert!(
        last.contains("about 1.9 million to 7.7 million packets"),
        "{last}"
    );

    let text = until("{ until = [\"loss within 10 %\", \"goodput within 1 %\"], at_least = 5 }");
    let rule = plan(&text, &[]).unwrap().stop.unwrap();
    let bounds: Vec<_> = rule.until.iter().map(Until::to_string).collect();
    assert_eq!(bounds, ["loss within 10 %", "goodput within 1 %"]);
    assert_eq!((rule.at_least, rule.at_most), (5, 50));
    // An argument takes the rule's place, or a key of it.
    let fixed = plan(&text, &["replications=3"]).unwrap();
    assert_eq!((fixed.stop, fixed.replications), (None, 3));
    assert_eq!(
        plan(&text, &["replications.at_most=7"])
            .unwrap()
            .replications,
        7
    );
}

#[test]
fn rules_that_make_no_sense_are_refused() {
    let refused = |table: &str| refusal(&until(table));
    assert_eq!(
        refused("{ until = \"loss below 5\" }"),
        "e.toml:4: replications.until = \"loss below 5\" is no bound; accepted: a metric and a bound \
         in %, such as \"queue_delay_p99 within 5 %\" or \"difference of queue_delay_p99 between A and \
         B within 5 %\""
    );
    assert_eq!(
        refused("{ until = \"loss within 5 %\", at_least = 1 }"),
        "e.toml:4: replications.at_least = 1 has no interval to look at; accepted: 2 or more"
    );
    assert_eq!(
        refused("{ until = \"loss within 5 %\", at_most = 5 }"),
        "e.toml:4: replications.at_most = 5 is less than at_least; accepted: 10 or more"
    );
    assert_eq!(
        refused("{ at_most = 5 }"),
        "e.toml:4: replications: the key \"until\" is missing"
    );
    assert_eq!(
        refused("{ until = \"loss within 5 %\", atmost = 5 }"),
        "e.toml:4: replications.atmost: unknown key; accepted: until, at_least, at_most; did you \
         mean \"at_most\"?"
    );
    assert_eq!(
        refused("\"many\""),
        "e.toml:4: replications = \"many\": expected a whole number of 1 or more, or a table with \
         until"
    );
}
