//! Names of hops, and groups that come and go.

use crate::common::{plan, refusal};
use redtail_spec::Scenario;
use serde_json::Value;

const QUEUE: &str = "queue = { kind = \"tail-drop\", limit = \"9 packets\" }";

/// Two hops with these lines in them, and a group `a` over both with these.
fn chain(first: &str, second: &str, group: &str) -> String {
    format!(
        "name = \"n\"\nduration = \"100 s\"\nwarmup = \"10 s\"\nreplications = 1\n\
         [[chain.hop]]\n{first}\nrate = \"1 Mbit/s\"\ndelay = \"1 ms\"\n{QUEUE}\n\
         [[chain.hop]]\n{second}\nrate = \"1 Mbit/s\"\ndelay = \"1 ms\"\n{QUEUE}\n\
         [[traffic]]\nname = \"a\"\nkind = \"bulk\"\n{group}\n"
    )
}

fn json(text: &str, sets: &[&str]) -> Value {
    let scenario = plan(text, sets).unwrap().scenario(0, 0).unwrap();
    let json = scenario.to_json();
    assert_eq!(Scenario::from_json(&json).unwrap().to_json(), json);
    serde_json::from_str(&json).unwrap()
}

#[test]
fn a_hop_goes_by_its_name_in_keys_and_groups() {
    let text = chain("name = \"l\"", "name = \"m\"", "first_hop = \"m\"");
    let found = json(
        &text,
        &["chain.m.rate=3 Mbit/s", "chain.l.queue.limit=\"7 packets\""],
    );
    let hop = |index: usize| &found["chain"]["hop"][index];
    assert_eq!(
        (&hop(1)["name"], &hop(1)["rate"]),
        (&"m".into(), &"3 Mbit/s".into())
    );
    assert_eq!(hop(0)["queue"]["limit"], "7 packets");
    // The engine is given numbers.
    assert_eq!(found["traffic"][0]["first_hop"], 2);
    let by_number = json(&text.replace("first_hop = \"m\"", "first_hop = 2"), &[]);
    assert_eq!(by_number["traffic"], json(&text, &[])["traffic"]);
    let factor = text + "[factors]\n\"chain.m.rate\" = [\"1 Mbit/s\", \"2 Mbit/s\"]\n";
    assert_eq!(plan(&factor, &[]).unwrap().cases.len(), 2);
    // Without a name it goes by its number, alone or beside hops with names.
    let text = chain("", "name = \"m\"", "first_hop = \"hop1\"");
    assert_eq!(
        json(&text, &["chain.hop1.rate=3 Mbit/s"])["chain"]["hop"][0]["rate"],
        "3 Mbit/s"
    );
}

#[test]
fn names_of_hops_that_do_not_tell_what_is_meant_are_refused() {
    let named = |first: &str, second: &str| refusal(&chain(first, second, "first_hop = 1"));
    assert_eq!(
        named("name = \"m\"", "name = \"m\""),
        "e.toml:11: chain.hop2.name = \"m\" is the name of another hop too; accepted: a name of its own"
    );
    for (name, why) in [
        ("a", "is the name of a traffic group too"),
        ("hop2", "is what results call a link"),
        ("return", "is what results call a link"),
        ("phase1", "is what results call a phase"),
        ("measured", "is what results call what programs measure"),
        ("router.l", "cannot be part of a key"),
        ("", "cannot be part of a key"),
    ] {
        let message = named(&format!("name = {name:?}"), "");
        let begin = format!("e.toml:6: chain.hop1.name = {name:?} {why}");
        assert!(
            message.starts_with(&begin) && message.contains("accepted: "),
            "{message}"
        );
    }
    plan(&chain("name = \"hop1\"", "", ""), &[]).unwrap();
    assert_eq!(
        refusal(&chain("name = \"left\"", "", "last_hop = \"lefd\"")),
        "e.toml:18: traffic.a.last_hop = \"lefd\" is not a hop of the chain; accepted: left, hop2; did you mean \"left\"?"
    );
    assert_eq!(
        plan(
            &chain("name = \"left\"", "", ""),
            &["chain.hop1.rate=3 Mbit/s"]
        )
        .unwrap_err()
        .to_string(),
        "--set chain.hop1.rate=3 Mbit/s: chain.hop1.rate: there is no hop \"hop1\"; accepted: left, hop2; did you mean \
         \"hop2\"?"
    );
    // A mistake in a hop is told by its name.
    let message = named("name = \"left\"\nwire.loss = 1.5", "");
    assert!(
        message.starts_with("e.toml:7: chain.left.wire.loss = 1.5"),
        "{message}"
    );
    let message = named("name = \"left\"\nwir = 1.5", "");
    assert!(message.contains("chain.left"), "{message}");
    let bottleneck = chain("", "", "")
        .split("[[chain.hop]]")
        .next()
        .unwrap()
        .to_owned()
        + &format!(
            "[bottleneck]\nname = \"x\"\nrate = \"1 Mbit/s\"\ndelay = \"1 ms\"\n{QUEUE}\n[[traffic]]\nname = \"a\"\nkind = \"bulk\"\n"
        );
    assert!(
        refusal(&bottleneck).contains("bottleneck.name = \"x\" is a key of the hops of a chain")
    );
}

#[test]
fn a_group_is_there_as_often_as_it_starts_before_the_end() {
    let group = |more: &str| {
        chain(
            "",
            "",
            &format!("flows = 2\nstart = \"5 s\"\nstop = \"15 s\"\n{more}"),
        )
    };
    let found = json(&group("repeat = \"40 s\""), &[]);
    // 5 s, 45 s and 85 s.
    assert_eq!(found["traffic"][0]["activations"], 3);
    assert_eq!(found["traffic"][0]["flows"], 2);
    assert_eq!(
        json(&group("repeat = \"40 s\"\nactivations = 2"), &[])["traffic"][0]["activations"],
        2
    );
    assert_eq!(
        json(&group("repeat = \"95 s\""), &[])["traffic"][0]["activations"],
        1
    );
    assert!(
        json(&group(""), &[])["traffic"][0]
            .get("activations")
            .is_none()
    );
    // Phases begin at each of its fixed starts and stops within the measurement.
    let phases = format!("phases = \"auto\"\n{}", group("repeat = \"40 s\""));
    assert_eq!(
        json(&phases, &[])["phases"],
        serde_json::json!(["15 s", "45 s", "55 s", "85 s", "95 s"])
    );
    let many = format!(
        "phases = \"auto\"\n{}",
        group("repeat = \"10 s\"").replace("15 s", "5001 ms")
    );
    assert_eq!(json(&many, &[])["phases"].as_array().unwrap().len(), 18);
    let too_many = format!(
        "phases = \"auto\"\n{}",
        group("repeat = \"100 ms\"").replace("15 s", "5001 ms")
    );
    assert!(
        refusal(&too_many).contains("makes more than 100 times; accepted: up to 100"),
        "{}",
        refusal(&too_many)
    );
}

#[test]
fn what_cannot_come_again_is_refused() {
    let refused = |group: &str| refusal(&chain("", "", group));
    let start = "start = \"0 s\"\nstop = \"20 s\"\n";
    for (group, message) in [
        (
            format!("{start}repeat = \"19 s\""),
            "traffic.a.repeat = \"19 s\" is shorter than an activation, in which flow 0 may be there from \"0 s\" to \
             \"20 s\"; accepted: \"20 s\" and more",
        ),
        (
            format!("{start}repeat = \"0 s\""),
            "traffic.a.repeat = \"0 s\" is zero; accepted: a time such as \"60 s\"",
        ),
        (
            "start = \"0 s\"\nrepeat = \"60 s\"".to_owned(),
            "traffic.a.repeat = \"60 s\" comes before the flows have stopped; accepted: a group with stop, such as \
             stop = \"20 s\"",
        ),
        (
            format!("{start}activations = 2"),
            "traffic.a.activations = 2 is given without repeat; accepted: a group with repeat, such as repeat = \
             \"60 s\"",
        ),
        (
            format!("{start}repeat = \"60 s\"\nactivations = 0"),
            "traffic.a.activations = 0 is zero; accepted: 1 to 1000000",
        ),
        (
            format!("{start}repeat = \"20 s\"\nflows = 600_000"),
            "traffic.a.repeat = \"20 s\" makes 5 activations of 600000, more flows than can be run; accepted: a longer \
             time, or activations: up to 1000000 flows in all",
        ),
    ] {
        let found = refused(&group);
        assert!(found.ends_with(message), "{found}");
    }
    let kind = |kind: &str| {
        let text = chain("", "", "repeat = \"60 s\"");
        refusal(&text.replace("kind = \"bulk\"", kind))
    };
    assert!(
        kind("kind = \"cbr\"\nrate = \"1 Mbit/s\"\npacket = \"500 B\"")
            .contains("has no start to begin from")
    );
    assert!(
        kind("kind = \"web\"\nmodel = \"http2\"\nload = 0.5\nstart = \"0 s\"")
            .contains("stands beside load")
    );
    // What ends by itself needs no stop.
    let text = chain("", "", "repeat = \"60 s\"");
    plan(
        &text.replace("kind = \"bulk\"", "kind = \"transfer\"\nsize = \"9 kB\""),
        &[],
    )
    .unwrap();
}

/// A bottleneck with a return link and these lines behind it.
fn behind(rest: &str) -> String {
    format!(
        "name = \"n\"\nduration = \"10 s\"\nreplications = 1\n[bottleneck]\nrate = \"1 Gbit/s\"\ndelay = \"1 ms\"\n{QUEUE}\n\
         return = {{ rate = \"1 Gbit/s\", delay = \"1 ms\", {QUEUE} }}\n{rest}"
    )
}

const TEMPLATE: &str = r#"
[template.subscriber.hosts]
exit_rate = "50 Mbit/s"
exit_delay = ["2 ms", "5 ms"]
[[template.subscriber.traffic]]
name = "web"
kind = "web"
users = 2
model = "http2"
server = "own"
[[template.subscriber.traffic]]
name = "up"
kind = "bulk"
direction = "reverse"
[[template.subscriber.traffic]]
name = "call"
kind = "cbr"
packet = "200 B"
rate = "100 kbit/s"
"#;

const USES: &str = r#"
[[use]]
template = "subscriber"
name = "basic"
count = 140
[[use]]
template = "subscriber"
name = "gold"
count = 60
set = { hosts.exit_rate = "100 Mbit/s", web.users = 3, call.dscp = "EF" }
"#;

/// What the two uses make, written out with a table of hosts for each.
const WRITTEN_OUT: &str = r#"
[hosts.basic]
number = 140
exit_rate = "50 Mbit/s"
exit_delay = ["2 ms", "5 ms"]
[hosts.gold]
number = 60
exit_rate = "100 Mbit/s"
exit_delay = ["2 ms", "5 ms"]
[[traffic]]
name = "basic-web"
kind = "web"
users = 280
model = "http2"
server = "own"
hosts = "basic"
[[traffic]]
name = "basic-up"
kind = "bulk"
flows = 140
direction = "reverse"
hosts = "basic"
[[traffic]]
name = "basic-call"
kind = "cbr"
packet = "200 B"
flows = 140
rate = "100 kbit/s"
hosts = "basic"
[[traffic]]
name = "gold-web"
kind = "web"
users = 180
model = "http2"
server = "own"
hosts = "gold"
[[traffic]]
name = "gold-up"
kind = "bulk"
flows = 60
direction = "reverse"
hosts = "gold"
[[traffic]]
name = "gold-call"
kind = "cbr"
packet = "200 B"
flows = 60
rate = "100 kbit/s"
dscp = "EF"
hosts = "gold"
"#;

fn text(text: &str, sets: &[&str]) -> String {
    let scenario = plan(text, sets).unwrap().scenario(0, 0).unwrap();
    scenario.to_json()
}

#[test]
fn a_template_is_what_its_groups_are_written_out() {
    let used = text(&behind(&format!("{TEMPLATE}{USES}")), &[]);
    assert_eq!(used, text(&behind(WRITTEN_OUT), &[]));
    // A table of hosts is what its first group has.
    let by_group = WRITTEN_OUT
        .split("[[traffic]]\nname = \"gold")
        .next()
        .unwrap()
        .replace("[hosts.basic]\nnumber = 140\nexit_rate = \"50 Mbit/s\"\nexit_delay = [\"2 ms\", \"5 ms\"]\n", "")
        .split("[hosts.gold]")
        .next()
        .unwrap()
        .to_owned()
        + &WRITTEN_OUT[WRITTEN_OUT.find("[[traffic]]").unwrap()..WRITTEN_OUT.find("[[traffic]]\nname = \"gold").unwrap()]
            .replacen("hosts = \"basic\"", "hosts = 140\nexit_rate = \"50 Mbit/s\"\nexit_delay = [\"2 ms\", \"5 ms\"]", 1)
            .replace("hosts = \"basic\"", "hosts = \"basic-web\"");
    let alone = format!(
        "{TEMPLATE}{}",
        USES.split("[[use]]\ntemplate = \"subscriber\"\nname = \"gold\"")
            .next()
            .unwrap()
    );
    assert_eq!(text(&behind(&alone), &[]), text(&behind(&by_group), &[]));
}

#[test]
fn factors_and_overrides_reach_templates_and_uses() {
    let file = behind(&format!("{TEMPLATE}{USES}"));
    let sets = [
        "use.gold.count=5",
        "use.gold.set.web.users=7",
        "template.subscriber.traffic.call.rate=64 kbit/s",
        "template.subscriber.hosts.exit_rate=20 Mbit/s",
    ];
    let found = json(&file, &sets);
    let group = |name: &str| {
        let groups = found["traffic"].as_array().unwrap();
        groups.iter().find(|group| group["name"] == name).unwrap()
    };
    assert_eq!(group("gold-web")["users"], 35);
    assert_eq!(group("basic-call")["rate"], "64 kbit/s");
    assert_eq!(group("basic-web")["exit_rate"], "20 Mbit/s");
    assert_eq!(group("gold-web")["exit_rate"], "100 Mbit/s");
    let factors = "[factors]\n\"use.gold.count\" = [1, 2]\n\"template.subscriber.traffic.web.model\" = [\"http1\", \"http2\"]\n";
    assert_eq!(plan(&(file + factors), &[]).unwrap().cases.len(), 4);
}

#[test]
fn what_is_wrong_with_a_template_is_told_with_the_line_of_the_template_or_of_the_use() {
    let head = behind("").lines().count();
    let refused = |template: &str, uses: &str| refusal(&behind(&format!("{template}{uses}")));
    let first = TEMPLATE
        .lines()
        .position(|line| line == "kind = \"web\"")
        .unwrap();
    let message = refused(&TEMPLATE.replace("kind = \"web\"", "kind = \"wbe\""), USES);
    let begin = format!(
        "e.toml:{}: traffic.basic-web.kind = \"wbe\"",
        head + first + 1
    );
    assert!(message.starts_with(&begin), "{message}");
    let line = head
        + TEMPLATE.lines().count()
        + USES
            .lines()
            .position(|line| line.starts_with("set"))
            .unwrap()
        + 1;
    for (set, clause) in [
        (
            "wbe.users = 3",
            "set.wbe.users: there is no group \"wbe\" in the template; accepted: hosts, web, up, call; did you mean \"web\"?",
        ),
        (
            "web = 3",
            "set.web: names a whole table; name one of its keys, such as web.KEY",
        ),
    ] {
        let uses = USES.replace(
            "hosts.exit_rate = \"100 Mbit/s\", web.users = 3, call.dscp = \"EF\"",
            set,
        );
        assert_eq!(
            refused(TEMPLATE, &uses),
            format!("e.toml:{line}: [[use]] \"gold\": {clause}")
        );
    }
    for (old, new, clause) in [
        (
            "template = \"subscriber\"\nname = \"gold\"",
            "template = \"subscribe\"\nname = \"gold\"",
            "[[use]] \"gold\": template = \"subscribe\" is no template; accepted: subscriber; did you mean \"subscriber\"?",
        ),
        (
            "name = \"gold\"",
            "name = \"basic\"",
            "[[use]] \"basic\": name = \"basic\" is the name of another use too; accepted: a name of its own",
        ),
        (
            "count = 60",
            "count = 0",
            "[[use]] \"gold\": count = 0 is no number of instances; accepted: 1 to 1000000",
        ),
        (
            "count = 60",
            "number = 60",
            "[[use]]: there is no key number; accepted: template, name, count, set",
        ),
    ] {
        let message = refused(TEMPLATE, &USES.replace(old, new));
        assert!(message.ends_with(clause), "{message}");
    }
    for (old, new, clause) in [
        (
            "name = \"up\"",
            "name = \"web\"",
            "has a group \"web\", which is the name of another part of the template; accepted: a name of its own",
        ),
        (
            "server = \"own\"",
            "hosts = 3",
            "and the groups of a template sit on the hosts of its instances, [template.subscriber.hosts]; accepted: no such key",
        ),
        (
            "exit_rate = \"50 Mbit/s\"",
            "number = 3",
            "and each [[use]] says by count how many instances there are; accepted: no such key",
        ),
    ] {
        let message = refused(&TEMPLATE.replace(old, new), USES);
        assert!(message.ends_with(clause), "{message}");
    }
    let message = refused(TEMPLATE, "[[traffic]]\nname = \"a\"\nkind = \"bulk\"\n");
    assert!(
        message.contains("[template.subscriber] is used nowhere; accepted: a [[use]]"),
        "{message}"
    );
    let twice = format!("{USES}[[traffic]]\nname = \"gold-up\"\nkind = \"bulk\"\n");
    assert!(
        refused(TEMPLATE, &twice)
            .contains("traffic.gold-up.name = \"gold-up\" is the name of another group too")
    );
}

#[test]
fn tables_of_hosts_that_nobody_can_use_are_refused() {
    let group = "[[traffic]]\nname = \"a\"\nkind = \"bulk\"\nhosts = \"line\"\n";
    let refused = |hosts: &str, group: &str| refusal(&behind(&format!("{hosts}{group}")));
    let hosts = "[hosts.line]\nexit_rate = \"50 Mbit/s\"\n";
    assert!(refused("[hosts.lin]\nnumber = 2\n", group).contains(
        "traffic.a.hosts = \"line\" is no traffic group; accepted: a number of hosts, or a group or a table of hosts that has \
         its own: lin; did you mean \"lin\"?"
    ));
    let other = format!("{hosts}[hosts.b]\nnumber = 2\n");
    assert!(
        refused(&other, group)
            .ends_with("hosts.b is used by no group; accepted: groups with hosts = \"b\"")
    );
    assert!(
        refused("[hosts.a]\nnumber = 2\n", &group.replace("line", "a"))
            .contains("hosts.a has the name of a traffic group")
    );
    assert!(
        refused("[hosts.line]\nnumber = 0\n", group)
            .contains("hosts.line.number = 0 is no number of hosts")
    );
    assert!(refused(hosts, &format!("{group}exit_rate = \"20 Mbit/s\"\n")).contains(
        "traffic.a.exit_rate = \"20 Mbit/s\" is not as on the hosts of \"line\", where the flows sit"
    ));
    // Who has the hosts is named, and not another group that sits on them.
    let third = format!(
        "{hosts}{group}{}",
        group.replace("\"a\"", "\"b\"").replace("line", "a")
    );
    assert!(refusal(&behind(&third)).contains(
        "traffic.b.hosts = \"a\" is a group that sits on the hosts of \"line\" itself; accepted: a number of hosts, or a \
         group or a table of hosts that has its own: line"
    ));
}
