//! What the page asks and hears, without WebAssembly: `tests/lab/test_module.py` asks the module itself.

use redtail_sim::RunOptions;
use redtail_spec::{Plan, PlanOptions};
use redtail_web::{Answer, Desk};
use serde_json::{Value, json};

const SCENE: &str = r#"name = "scene"
duration = "5 s"
warmup = "1 s"
[bottleneck]
rate = "10 Mbit/s"
delay = "20 ms"
queue = { kind = "tail-drop", limit = "40 packets" }
[[traffic]]
name = "ftp"
kind = "bulk"
flows = 3
[[traffic]]
name = "udp"
kind = "cbr"
rate = "2 Mbit/s"
packet = "1000 B"
[factors]
"bottleneck.queue" = [{ kind = "tail-drop", limit = "40 packets" }, { kind = "fq-codel" }]
"#;

fn ask(desk: &mut Desk, request: &Value) -> (Value, Vec<f64>) {
    let Answer { text, columns } = desk.answer(request.to_string().as_bytes());
    (
        serde_json::from_str(&text).expect("an answer is JSON"),
        columns,
    )
}

fn check(text: &str) -> Value {
    let request = json!({ "ask": "check", "text": text, "file": "scene.toml" });
    ask(&mut Desk::default(), &request).0
}

fn begin(text: &str, case: usize, options: &Value) -> Value {
    json!({ "ask": "begin", "experiment": { "text": text }, "case": case, "replication": 1, "options": options })
}

/// The result of a run that is advanced by some steps first.
fn run(text: &str, case: usize, options: &Value) -> (Value, Vec<f64>) {
    let mut desk = Desk::default();
    let (begun, _) = ask(&mut desk, &begin(text, case, options));
    assert_eq!(begun["ok"], true, "{begun}");
    for to in [0.3, 1.0, 2.5] {
        let (at, _) = ask(&mut desk, &json!({ "ask": "advance", "to_s": to }));
        assert_eq!((&at["now_s"], &at["over"]), (&json!(to), &json!(false)));
    }
    ask(&mut desk, &json!({ "ask": "finish" }))
}

#[test]
fn a_run_has_the_metrics_of_the_engine() {
    let plan = Plan::from_text(SCENE, PlanOptions::default()).expect("it is sound");
    for case in 0..2 {
        let scenario = plan.scenario(case, 1).expect("there is one");
        let expected = redtail_sim::run(&scenario, RunOptions::default()).expect("it can be run");
        for options in [
            json!({}),
            json!({ "series": 0.01, "packets": { "to_s": 9.0, "most": 1000 } }),
        ] {
            let (answer, _) = run(SCENE, case, &options);
            let metrics = answer["metrics"].as_object().expect("there are metrics");
            assert_eq!(metrics.len(), expected.metrics.len());
            for (name, value) in &expected.metrics {
                let found = metrics[name].as_f64();
                let defined = Some(*value).filter(|value| value.is_finite());
                assert_eq!(found.map(f64::to_bits), defined.map(f64::to_bits), "{name}");
            }
        }
    }
}

/// The values of a column.
fn column<'a>(place: &Value, columns: &'a [f64]) -> &'a [f64] {
    let place = place["column"].as_array().expect("it is a column");
    let [from, length] = [0, 1].map(|it| place[it].as_u64().expect("a number") as usize);
    &columns[from..from + length]
}

#[test]
fn series_histograms_and_packets_are_there_if_they_are_asked_for() {
    let (plain, columns) = run(SCENE, 0, &json!({}));
    for key in ["series", "histograms", "packets"] {
        assert!(plain.get(key).is_none(), "{key}");
    }
    // Totals of flows are always there.
    assert_eq!(column(&plain["flows"]["goodput_bps"], &columns).len(), 4);
    let options = json!({
        "series": 0.1,
        "histograms": true,
        "packets": { "link": "bottleneck", "from_s": 1.0, "to_s": 2.0, "most": 100_000 },
    });
    let (found, columns) = run(SCENE, 0, &options);
    let queue = &found["series"]["queues"]["bottleneck"];
    let times = column(&queue["time_s"], &columns);
    assert_eq!(times.len(), 50);
    assert_eq!(times[1], 0.1);
    assert!(
        column(&queue["packets"], &columns)
            .iter()
            .any(|it| *it > 0.0)
    );
    let flow = &found["series"]["flows"]["ftp"]["2"];
    let goodput = column(&flow["goodput_bps"], &columns);
    assert!(goodput[0].is_nan() && goodput[1..].iter().any(|it| *it > 1e5));
    assert_eq!(
        column(&found["series"]["groups"]["udp"]["goodput_bps"], &columns).len(),
        50
    );
    let delays = &found["histograms"]["queue_delay"];
    assert_eq!(
        column(&delays["count"], &columns).len(),
        column(&delays["up_to_s"], &columns).len()
    );
    let packets = &found["packets"];
    let times = column(&packets["time_s"], &columns);
    assert!(times.len() > 1000 && times.iter().all(|at| (1.0..2.0).contains(at)));
    assert_eq!(packets["left_out"], 0.0);
    let kinds = packets["kinds"].as_array().expect("names");
    let of = |name: &str| {
        let place = kinds
            .iter()
            .position(|kind| kind == name)
            .expect("it is a kind") as f64;
        let events = column(&packets["kind"], &columns);
        events.iter().filter(|kind| **kind == place).count()
    };
    assert!(of("arrival") > 500 && of("departure") > 500);
    // Every packet arrives once, and leaves once at most.
    let ids = column(&packets["id"], &columns);
    let events = column(&packets["kind"], &columns);
    for kind in [0.0, 1.0] {
        let each = ids.iter().zip(events).filter(|(_, other)| **other == kind);
        let mut each: Vec<u64> = each.map(|(id, _)| *id as u64).collect();
        let all = each.len();
        each.sort_unstable();
        each.dedup();
        assert_eq!(each.len(), all);
    }
}

#[test]
fn series_so_far_are_the_first_samples_of_the_result() {
    let mut desk = Desk::default();
    ask(&mut desk, &begin(SCENE, 0, &json!({ "series": 0.1 })));
    ask(&mut desk, &json!({ "ask": "advance", "to_s": 2.05 }));
    let (so_far, first) = ask(&mut desk, &json!({ "ask": "samples" }));
    let (found, all) = ask(&mut desk, &json!({ "ask": "finish" }));
    for place in [
        "/series/queues/bottleneck/packets",
        "/series/groups/udp/goodput_bps",
        "/series/flows/ftp/1/cwnd_bytes",
    ] {
        let of = |answer: &Value| answer.pointer(place).expect("it is there").clone();
        let (first, all) = (column(&of(&so_far), &first), column(&of(&found), &all));
        assert_eq!((first.len(), all.len()), (21, 50));
        assert_eq!(format!("{first:?}"), format!("{:?}", &all[..21]), "{place}");
    }
    let (without, _) = ask(&mut desk, &json!({ "ask": "samples" }));
    assert_eq!(without["text"], "no run was begun");
}

#[test]
fn recorded_packets_are_bounded() {
    let options = json!({ "packets": { "to_s": 9.0, "most": 10 } });
    let (found, columns) = run(SCENE, 0, &options);
    assert_eq!(column(&found["packets"]["time_s"], &columns).len(), 10);
    assert!(found["packets"]["left_out"].as_f64() > Some(1000.0));
}

#[test]
fn an_experiment_is_told_as_the_command_tells_it() {
    let found = check(SCENE);
    assert_eq!(found["ok"], true);
    assert_eq!(
        (&found["name"], &found["replications"]),
        (&json!("scene"), &json!(10))
    );
    assert_eq!(found["duration_s"], 5.0);
    assert_eq!(found["cases"].as_array().map(Vec::len), Some(2));
    assert_eq!(found["cases"][1]["label"], "fq-codel");
    assert_eq!(
        found["cases"][1]["factors"]["bottleneck.queue"]["kind"],
        "fq-codel"
    );
}

#[test]
fn errors_are_those_of_the_command_with_line_and_key() {
    let text = SCENE
        .replace("flows = 3", "flwos = 3")
        .replace("\"2 Mbit/s\"", "\"2 Mbits\"");
    let options = PlanOptions {
        file: Some("scene.toml"),
        ..PlanOptions::default()
    };
    let expected = Plan::from_text(&text, options).expect_err("it is wrong");
    let found = check(&text);
    assert_eq!(found["ok"], false);
    assert_eq!(found["text"], expected.to_string());
    let errors = found["errors"].as_array().expect("a list");
    assert_eq!(errors.len(), expected.problems().len());
    for (error, problem) in errors.iter().zip(expected.problems()) {
        assert_eq!(error["message"], problem.message);
        assert_eq!(error["line"], json!(problem.origin.line()));
        assert_eq!(error["key"], json!(problem.key));
    }
    assert_eq!(
        (&errors[0]["line"], &errors[1]["line"]),
        (&json!(11), &json!(15))
    );
}

#[track_caller]
fn refused(text: &str, key: &str, words: &str) {
    let found = check(text);
    assert_eq!(found["ok"], false, "{found}");
    assert_eq!(found["errors"][0]["key"], key, "{found}");
    let message = found["errors"][0]["message"].as_str().expect("a text");
    assert!(message.contains(words), "{message}");
    assert!(found["errors"][0]["line"].as_u64() > Some(0), "{found}");
    assert!(
        found["text"]
            .as_str()
            .expect("a text")
            .starts_with("scene.toml:")
    );
}

#[test]
fn what_the_page_cannot_run_is_refused_with_its_key() {
    let one = SCENE
        .split("[factors]")
        .next()
        .expect("a text has a beginning");
    let tail_drop = "{ kind = \"tail-drop\", limit = \"40 packets\" }";
    let own = one.replace(
        tail_drop,
        "{ kind = \"plugin\", class = \"mine.py:Queue\" }",
    );
    refused(
        &own,
        "bottleneck.queue.class",
        "whose code this page does not run",
    );
    let own = one.replace("flows = 3", "tcp = { class = \"mine.wasm\" }");
    refused(&own, "traffic.ftp.tcp.class", "a controller of your own");
    let live = format!("backend = \"live\"\n{one}");
    refused(
        &live,
        "backend",
        "this page only simulates; accepted: \"sim\"",
    );
    let load = format!(
        "{one}[[traffic]]\nname = \"web\"\nkind = \"web\"\nmodel = \"http1\"\nload = \"50 %\"\n"
    );
    refused(&load, "traffic.web.load", "accepted: a number of `users`");
    let delays: Vec<_> = (1..=501).map(|delay| format!("{delay} ms")).collect();
    let many = format!("[factors]\n\"bottleneck.delay\" = {delays:?}\n");
    let many = SCENE.replace("[factors]\n", &many);
    refused(
        &many,
        "factors",
        "1002 cases, too many for this page; accepted: at most 1000",
    );
}

#[test]
fn a_trace_is_a_text_of_the_page() {
    let text = SCENE.replace("rate = \"10 Mbit/s\"", "rate_trace = \"cell.txt\"");
    let request = |files: Value| json!({ "ask": "check", "text": text, "files": files });
    let (found, _) = ask(&mut Desk::default(), &request(json!({})));
    let message = found["errors"][0]["message"].as_str().expect("a text");
    assert!(message.contains("is no file of this page"), "{message}");
    let (found, _) = ask(
        &mut Desk::default(),
        &request(json!({ "cell.txt": "1\n3\n9\n" })),
    );
    assert_eq!(found["ok"], true, "{found}");
}

#[test]
fn what_takes_too_much_is_refused() {
    let mut desk = Desk::default();
    let long = "#".repeat(300 << 10);
    assert!(
        check(&long)["text"]
            .as_str()
            .expect("a text")
            .contains("at most 256 KiB")
    );
    for (text, options, words) in [
        (
            SCENE,
            json!({ "series": 1e-9 }),
            "rows; accepted: an interval",
        ),
        (SCENE, json!({ "series": -1.0 }), "is no time in seconds"),
        (SCENE, json!({ "series": 0.0 }), "rows; accepted"),
        (
            &SCENE.replace("flows = 3", "flows = 20000"),
            json!({}),
            "too many for this page",
        ),
    ] {
        let (found, _) = ask(&mut desk, &begin(text, 0, &options));
        assert_eq!(found["ok"], false);
        assert!(
            found["text"].as_str().expect("a text").contains(words),
            "{found}"
        );
    }
    let (found, _) = ask(&mut desk, &begin(SCENE, 7, &json!({})));
    assert_eq!(found["text"], "case 7: the experiment has 2 cases, from 0");
}

#[test]
fn requests_that_are_none_are_answered() {
    let mut desk = Desk::default();
    for request in [
        "",
        "{}",
        "{\"ask\": \"finish\"}",
        "\u{fffd}",
        "{\"ask\": \"advance\", \"to_s\": -1}",
    ] {
        let answer: Value =
            serde_json::from_str(&desk.answer(request.as_bytes()).text).expect("JSON");
        assert_eq!(answer["ok"], false, "{request}");
        assert!(
            !answer["errors"][0]["message"]
                .as_str()
                .expect("a text")
                .is_empty()
        );
    }
}

#[test]
fn the_catalog_names_all_kinds() {
    let (found, _) = ask(&mut Desk::default(), &json!({ "ask": "catalog" }));
    let kinds = |list: &Value| -> Vec<String> {
        let each = list.as_array().expect("a list").iter();
        each.map(|it| it["kind"].as_str().expect("a text").to_owned())
            .collect()
    };
    let mut queues = kinds(&found["queues"]);
    queues.sort();
    let examples = redtail_qdisc::QueueParams::examples().into_iter();
    let known = examples.map(|(kind, _)| kind.to_owned());
    let mut known: Vec<_> = known.filter(|kind| kind != "plugin").collect();
    known.sort();
    assert_eq!(queues, known);
}
