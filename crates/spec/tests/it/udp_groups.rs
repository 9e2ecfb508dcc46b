//! Calls, on/off sources and games in a file: what is filled in, what is refused, what is said.

use crate::common::{changed, plan, refusal, single};
use serde_json::json;

/// The file with its group of constant rate replaced, which begins in line 20.
fn file(group: &str) -> String {
    changed(
        &single(),
        &[(
            "kind = \"cbr\"\nflows = 4\nrate = \"250 kbit/s\"\npacket = \"573 B\"",
            group,
        )],
    )
}

fn refused(group: &str) -> String {
    refusal(&file(group))
}

/// The group as the engine is given it.
fn given(group: &str) -> serde_json::Value {
    let plan = plan(&file(group), &[]).unwrap();
    let scenario = serde_json::to_value(plan.scenario(0, 0).unwrap()).unwrap();
    scenario["traffic"][1].clone()
}

const ON_OFF: &str = "kind = \"on-off\"\nrate = \"1 Mbit/s\"\npacket = \"500 B\"\n";

#[test]
fn what_is_left_out_is_filled_in() {
    let call = given("kind = \"voip\"");
    assert_eq!(call["codec"], "g711");
    assert_eq!(call["header"], "40 B");
    assert_eq!(call["jitter_buffer"], "60 ms");
    assert!(call.get("talk").is_none());

    let server = given("kind = \"game\"");
    assert_eq!(server["sender"], "server");
    assert_eq!(server["gap"], "gumbel location 55 ms scale 6 ms");
    assert_eq!(
        server["payload"],
        "gumbel location 120 B scale 36 B max 1472 B"
    );
    let client = given("kind = \"game\"\nsender = \"client\"\nheader = \"48 B\"");
    assert_eq!(client["gap"], "40 ms");
    assert_eq!(
        client["payload"],
        "gumbel location 45 B scale 5.7 B max 1472 B"
    );
    assert_eq!(client["header"], "48 B");

    let table =
        "on = { cdf = [[0.5, \"1 s\"], [1.0, \"3 s\"]] }\noff = \"lomax mean 2 s shape 1.5\"";
    let on_off = given(&format!("{ON_OFF}{table}"));
    assert_eq!(on_off["on"], json!("cdf 0.5 1 s, 1 3 s"));
}

#[test]
fn what_a_video_call_leaves_out_is_filled_in() {
    let call = given("kind = \"call\"\nflows = 3");
    assert_eq!(call["controller"], "gcc");
    assert_eq!(call["media"], "both-ways");
    assert_eq!(call["start_rate"], "300 kbit/s");
    assert_eq!(call["report_interval"], "1 s");
    assert_eq!(call["hosts"], 3, "one for each caller");
    assert_eq!(given("kind = \"call\"\nflows = 3\nhosts = 1")["hosts"], 1);
    let scream = given("kind = \"call\"\ncontroller = \"scream\"\nmax_rate = \"200 kbit/s\"");
    assert_eq!(scream["start_rate"], "200 kbit/s");
    assert!(scream.get("report_interval").is_none());
}

#[test]
fn video_calls_that_make_no_sense() {
    for (more, said) in [
        (
            "min_rate = \"80 kbit/s\"",
            "traffic.cbr.min_rate = \"80 kbit/s\" leaves no rate for video beside the \"80 kbit/s\" of voice; \
             accepted: more than \"80 kbit/s\", such as \"150 kbit/s\"",
        ),
        (
            "max_rate = \"100 kbit/s\"",
            "traffic.cbr.max_rate = \"100 kbit/s\" is less than min_rate, \"150 kbit/s\"; accepted: \"150 kbit/s\" and \
             more",
        ),
        (
            "start_rate = \"2 Mbit/s\"",
            "traffic.cbr.start_rate = \"2 Mbit/s\" is not within min_rate and max_rate; accepted: \"150 kbit/s\" to \
             \"1.5 Mbit/s\"",
        ),
        (
            "frame_rate = 0.5",
            "traffic.cbr.frame_rate = 0.5 is out of range; accepted: 1 to 240",
        ),
        (
            "ecn = true",
            "traffic.cbr.ecn = true is on, but the controller does not react to marks; accepted: false, or \
             controller = \"scream\"",
        ),
        (
            "controller = \"scream\"\nreport_interval = \"1 s\"",
            "traffic.cbr.report_interval = \"1 s\" is given, but RFC 8298 determines it; accepted: it with \
             controller = \"gcc\"",
        ),
    ] {
        let message = refused(&format!("kind = \"call\"\n{more}"));
        assert!(message.contains(said), "{message}");
    }
}

#[test]
fn calls_that_make_no_sense() {
    let call = |keys: &str| refused(&format!("kind = \"voip\"\n{keys}"));
    assert_eq!(
        call("codec = \"g712\""),
        "e.toml:22: traffic.cbr.codec = \"g712\" is not known; accepted: g711, g711-plain, g729, g723; did you mean \"g711\"?"
    );
    assert_eq!(
        call("talk = \"1 s\""),
        "e.toml:19: traffic.cbr.silence is missing; accepted: talk and silence together, such as \"exponential mean 1.004 s\" \
         and \"exponential mean 1.587 s\", or none of them"
    );
    assert_eq!(
        call("talk = \"0 s\"\nsilence = \"1 s\""),
        "e.toml:22: traffic.cbr.talk = \"0 s\" is zero; accepted: a time such as \"exponential mean 1.004 s\""
    );
    assert_eq!(
        call("talk = \"1 s\"\nsilence = \"pareto min 1 s shape 1\""),
        "e.toml:23: traffic.cbr.silence = \"pareto min 1 s shape 1\" has an infinite mean, so there is no long run; accepted: \
         a law with a mean: a shape above 1, or a max"
    );
    assert_eq!(
        call("header = \"70 kB\""),
        "e.toml:22: traffic.cbr.header = \"70 kB\" does not fit an IP packet with its payload; accepted: a size such as \"40 B\""
    );
    assert_eq!(
        call("start = \"5 s\"\nstop = \"4 s\""),
        "e.toml:23: traffic.cbr.stop = \"4 s\" is not after \"5 s\", when flow 0 may start; accepted: times after the start, \
         or none"
    );
}

#[test]
fn on_off_sources_that_make_no_sense() {
    let on_off = |keys: &str| refused(&format!("{ON_OFF}{keys}"));
    assert_eq!(
        on_off("on = \"1 s\""),
        "e.toml:19: traffic.cbr: the key \"off\" is missing"
    );
    assert_eq!(
        on_off("on = \"0 s\"\noff = \"1 s\""),
        "e.toml:24: traffic.cbr.on = \"0 s\" is zero; accepted: a mean of at least \"40 ns\" with this packet and rate, which \
         makes 100000 periods; a time such as \"exponential mean 1 s\""
    );
    assert_eq!(
        on_off("on = \"1 s\"\noff = \"lomax scale 1 s shape 0.5\""),
        "e.toml:25: traffic.cbr.off = \"lomax scale 1 s shape 0.5\" has an infinite mean, so there is no long run; accepted: a \
         law with a mean: a shape above 1, or a max"
    );
    assert_eq!(
        on_off("on = \"pareto mean 1 s shape 1\"\noff = \"1 s\""),
        "e.toml:24: traffic.cbr.on = \"pareto mean 1 s shape 1\": its shape must be above 1, since with 1 the mean is infinite; \
         accepted: \"pareto mean 50 s shape 1.2\", \"pareto min 50 s shape 1.2\"; a law may end with \"max 50 s\""
    );
    assert_eq!(
        on_off("on = 5\noff = \"1 s\""),
        "e.toml:24: traffic.cbr.on = 5: a time carries its unit, for example \"100 ms\""
    );
    assert_eq!(
        refused(
            "kind = \"on-off\"\nrate = \"0 bit/s\"\npacket = \"500 B\"\non = \"1 s\"\noff = \"1 s\""
        ),
        "e.toml:22: traffic.cbr.rate = \"0 bit/s\" is zero; accepted: a rate such as \"250 kbit/s\""
    );
    assert_eq!(
        refused(
            "kind = \"on-off\"\nrate = \"1 Mbit/s\"\npacket = \"66 kB\"\non = \"1 s\"\noff = \"1 s\""
        ),
        "e.toml:23: traffic.cbr.packet = \"66 kB\" does not fit an IP packet; accepted: \"1 B\" to \"65535 B\", or \
         a law within them such as \"uniform 1400..1628 B\""
    );
}

#[test]
fn games_that_make_no_sense() {
    let game = |keys: &str| refused(&format!("kind = \"game\"\n{keys}"));
    assert_eq!(
        game("sender = \"player\""),
        "e.toml:22: traffic.cbr.sender = \"player\" is not known; accepted: server, client"
    );
    assert_eq!(
        game("gap = \"0 s\""),
        "e.toml:22: traffic.cbr.gap = \"0 s\" is zero; accepted: a mean of at least \"1 ns\"; a time such as \"40 ms\" or \"gumbel location 55 ms scale 6 ms\""
    );
    assert_eq!(
        game("gap = \"lomax scale 1 s shape 1\""),
        "e.toml:22: traffic.cbr.gap = \"lomax scale 1 s shape 1\" has an infinite mean; accepted: a time such as \"40 ms\" or \
         \"gumbel location 55 ms scale 6 ms\""
    );
    assert_eq!(
        game("payload = \"exponential mean 100 B\""),
        "e.toml:22: traffic.cbr.payload = \"exponential mean 100 B\" may be more than fits an IP packet with its header; \
         accepted: up to \"65535 B\" together; a law may end with \"max 1472 B\""
    );
    assert_eq!(
        game("header = \"0 B\""),
        "e.toml:22: traffic.cbr.header = \"0 B\" is zero; accepted: at least \"1 B\", IPv4 and UDP take \"28 B\""
    );
    assert_eq!(
        game("payload = { cdf = [[0.0, \"1 B\"], [0.9, \"9 B\"]] }"),
        "e.toml:22: traffic.cbr.payload = { cdf = [[0.0, \"1 B\"], [0.9, \"9 B\"]] }: its cdf ends at 0.9, not at 1; accepted: a \
         table { cdf = [[0.0, \"12 kB\"], ..., [1.0, \"12 kB\"]] }"
    );
}

#[test]
fn the_outline_names_them_and_counts_their_packets() {
    let outline = |group: &str| {
        let text = file(&format!("{group}\nflows = 4"));
        let text = changed(
            &text,
            &[("kind = \"bulk\"", "kind = \"transfer\"\nsize = \"1 B\"")],
        );
        plan(&text, &["replications=1"]).unwrap().outline()
    };
    // 4 calls of 50 packets a second for 200 s, and 64 transfers of a segment.
    let calls = outline("kind = \"voip\"");
    assert!(calls[2].starts_with("cbr: 4 calls, "), "{}", calls[2]);
    assert!(
        calls[3].contains("about 40 thousand packets"),
        "{}",
        calls[3]
    );
    // 1 Mbit/s in packets of 500 B half the time: 125 a second.
    let on_off = outline(&format!("{ON_OFF}on = \"1 s\"\noff = \"1 s\""));
    assert!(
        on_off[2].starts_with("cbr: 4 on/off flows, "),
        "{}",
        on_off[2]
    );
    assert!(
        on_off[3].contains("about 100 thousand packets"),
        "{}",
        on_off[3]
    );
    // 25 packets a second.
    let client = outline("kind = \"game\"\nsender = \"client\"");
    assert!(
        client[2].starts_with("cbr: 4 game flows, "),
        "{}",
        client[2]
    );
    assert!(
        client[3].contains("about 20 thousand packets"),
        "{}",
        client[3]
    );
}
