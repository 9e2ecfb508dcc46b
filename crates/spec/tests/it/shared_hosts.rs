//! `hosts = "NAME"`: what a group takes over from another one, and what is refused.

use crate::common::{changed, plan, refusal, single};
use redtail_spec::Scenario;
use serde_json::{Value, json};

const RETURN: &str = "delay = \"100 ms\"\nreturn = { rate = \"1 Mbit/s\", delay = \"1 ms\", queue = { kind = \"tail-drop\", limit = \"9 packets\" } }";

/// The file, whose first group (`ftp`, 64 flows from two hosts) has links of its own, with lines in its second (`cbr`).
fn file(second: &str) -> String {
    let first = "flows = 64\nhosts = 2\naccess_rate = [\"5 Mbit/s\", \"8 Mbit/s\"]\nexit_delay = \"3 ms\"\nreturn_delay = \"9 ms\"";
    let second = format!("packet = \"573 B\"\n{second}");
    changed(
        &single(),
        &[("flows = 64", first), ("packet = \"573 B\"", &second)],
    )
}

/// A group as the engine is given it, and whether the text is read back as it was.
fn given(text: &str, group: usize) -> Value {
    let scenario = plan(text, &[]).unwrap().scenario(0, 0).unwrap();
    let json = scenario.to_json();
    let again = Scenario::from_json(&json).unwrap();
    assert_eq!(again, scenario, "what is known of hosts is read back");
    assert_eq!(again.to_json(), json);
    serde_json::from_str::<Value>(&json).unwrap()["traffic"][group].clone()
}

#[test]
fn links_and_delays_are_those_of_the_hosts() {
    let cbr = given(&file("hosts = \"ftp\""), 1);
    assert_eq!(cbr["hosts"], "ftp");
    assert_eq!(cbr["access_rate"], json!(["5 Mbit/s", "8 Mbit/s"]));
    assert_eq!(cbr["access_delay"], json!(["20 ms", "40 ms"]));
    assert_eq!(
        (&cbr["exit_delay"], &cbr["return_delay"]),
        (&json!("3 ms"), &json!("9 ms"))
    );
    // In the opposite direction those of the other side, and the same ways there and back.
    let cbr = given(
        &file("hosts = \"ftp\"\ndirection = \"reverse\"").replace("delay = \"100 ms\"", RETURN),
        1,
    );
    assert_eq!(cbr["exit_rate"], json!(["5 Mbit/s", "8 Mbit/s"]));
    assert_eq!(cbr["access_rate"], "100 Mbit/s");
    assert_eq!(cbr["return_delay"], json!(["23 ms", "43 ms"]));
    assert_eq!(
        (&cbr["exit_delay"], &cbr["access_delay"]),
        (&json!("9 ms"), &json!("0 s"))
    );
    // Values that agree may stand there.
    given(&file("hosts = \"ftp\"\nexit_delay = \"3 ms\""), 1);
}

#[test]
fn a_default_rate_is_the_same_for_all_on_a_host() {
    let text = |second: &str| changed(&single(), &[("rate = \"250 kbit/s\"", second)]);
    let rates = |second: &str| {
        let text = text(second);
        [0, 1].map(|group| given(&text, group)["access_rate"].clone())
    };
    assert_eq!(
        rates("rate = \"250 kbit/s\"\nhosts = \"ftp\""),
        ["100 Mbit/s"; 2]
    );
    // Ten times what the UDP flows of one host send: two of four, on two hosts.
    assert_eq!(
        rates("rate = \"6 Mbit/s\"\nhosts = \"ftp\""),
        ["120 Mbit/s"; 2]
    );
}

#[test]
fn flows_have_the_numbers_of_the_hosts() {
    let ends = |second: &str, group| {
        let text = file(second).replace("delay = \"100 ms\"", RETURN);
        let table = plan(&text, &[])
            .unwrap()
            .scenario(0, 0)
            .unwrap()
            .flow_table();
        let found = table
            .first_flows()
            .find(|flow| flow.group == group)
            .unwrap();
        (found.sender, found.receiver)
    };
    assert_eq!((ends("", 0), ends("", 1)), ((0, 2), (4, 5)));
    assert_eq!(ends("hosts = \"ftp\"", 1), (0, 2));
    assert_eq!(ends("hosts = \"ftp\"\ndirection = \"reverse\"", 1), (2, 0));
}

#[test]
fn the_outline_says_whose_hosts_they_are() {
    let lines = plan(&file("hosts = \"ftp\""), &[]).unwrap().outline();
    let found = lines.iter().find(|line| line.starts_with("cbr: ")).unwrap();
    assert_eq!(
        found,
        "cbr: 4 constant-rate flows on the hosts of ftp, base round-trip time 132 ms to 152 ms"
    );
}

#[test]
fn a_load_is_measured_on_hosts_of_its_own() {
    let text = file("hosts = \"ftp\"").replace(
        "kind = \"cbr\"\nflows = 4\nrate = \"250 kbit/s\"\npacket = \"573 B\"",
        "kind = \"web\"\nmodel = \"http2\"\nload = \"50 %\"",
    );
    let scenario = plan(&text, &[]).unwrap().scenario(0, 0).unwrap();
    let alone = scenario.unconstrained("cbr", 9);
    let json: Value = serde_json::from_str(&alone.to_json()).unwrap();
    assert_eq!(json["traffic"][0]["hosts"], 2);
    assert_eq!(
        json["traffic"][0]["access_delay"],
        json!(["20 ms", "40 ms"])
    );
}

#[test]
fn what_cannot_be_is_refused() {
    let refused = |second: &str| refusal(&file(second));
    let own = "accepted: a number of hosts, or a group that has its own: ftp";
    assert_eq!(
        refused("hosts = \"ftq\""),
        format!(
            "e.toml:29: traffic.cbr.hosts = \"ftq\" is no traffic group; {own}; did you mean \"ftp\"?"
        )
    );
    assert_eq!(
        refused("hosts = \"cbr\""),
        format!("e.toml:29: traffic.cbr.hosts = \"cbr\" is the group itself; {own}")
    );
    assert_eq!(
        refused("hosts = \"\""),
        format!("e.toml:29: traffic.cbr.hosts = \"\" is no traffic group; {own}")
    );
    let third = "\n[[traffic]]\nname = \"more\"\nkind = \"bulk\"\nhosts = \"cbr\"\n";
    assert_eq!(
        refusal(&(file("hosts = \"ftp\"") + third)),
        format!(
            "e.toml:35: traffic.more.hosts = \"cbr\" is a group that sits on the hosts of \"ftp\" itself; {own}"
        )
    );
    assert_eq!(
        refused("hosts = \"ftp\"\nexit_delay = \"4 ms\""),
        "e.toml:30: traffic.cbr.exit_delay = \"4 ms\" is not as on the hosts of \"ftp\", where the flows sit; \
         accepted: nothing, for it follows from these, or hosts of its own"
    );
    let upload = file("hosts = \"ftp\"\ndirection = \"reverse\"\naccess_rate = \"5 Mbit/s\"");
    assert_eq!(
        refusal(&upload.replace("delay = \"100 ms\"", RETURN)),
        "e.toml:32: traffic.cbr.access_rate = \"5 Mbit/s\" is not as on the hosts of \"ftp\", which sends in the opposite \
         direction, where the flows sit; accepted: nothing, for it follows from these, or hosts of its own"
    );
    assert_eq!(
        refused("hosts = 2.5"),
        "e.toml:29: traffic.cbr.hosts = 2.5: expected a whole number from 1 to 1000000, or the name of the group whose \
         hosts they are"
    );
}
