//! Records what a kernel reports of the queues that `redtail_live::tc` maps: the fixtures of the tests.
//!
//! ```sh
//! cargo run -p redtail-live --example tc_fixtures -- script > commands.sh
//! # sh commands.sh, on the kernel to record; it needs a TUN device called t0 with an MTU of 1500 bytes
//! cargo run -p redtail-live --example tc_fixtures -- record OUTPUT
//! ```
//!
//! `script` prints the commands for the queues in `tests/fixtures/tc`. `record` reads the output of these
//! commands and enters it, with the commands, into the fixtures.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use redtail_core::{Bytes, Rate};
use redtail_live::tc::{Place, words};
use redtail_qdisc::{FlowTable, LinkFacts, QueueParams};
use serde_json::{Value as Json, json};

/// The link of all fixtures: 10 Mbit/s, with packets of 1500 bytes and the traffic groups `web` and `calls`.
fn link() -> LinkFacts {
    let groups = vec!["web".to_owned(), "calls".to_owned()];
    LinkFacts {
        largest_packet: Bytes::new(1500),
        flows: FlowTable::new(groups, Vec::new()).into(),
        ..LinkFacts::of_rate(Rate::from_bps(10_000_000))
    }
}

fn fixtures() -> BTreeMap<String, PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/tc");
    let files = fs::read_dir(folder).expect("the fixtures are there");
    let paths = files.map(|file| file.expect("it can be listed").path());
    paths
        .filter(|path| path.extension().is_some_and(|end| end == "json"))
        .map(|path| {
            (
                path.file_stem()
                    .expect("it has a name")
                    .to_string_lossy()
                    .into_owned(),
                path,
            )
        })
        .collect()
}

fn read(path: &Path) -> Json {
    let text = fs::read_to_string(path).expect("it can be read");
    serde_json::from_str(&text).expect("it is JSON")
}

fn commands(fixture: &Json) -> Vec<String> {
    let queue: QueueParams =
        serde_json::from_value(fixture["queue"].clone()).expect("it is a queue");
    let qdisc = words(&queue, &link(), &Place::root()).expect("the kernel has it");
    qdisc
        .commands("t0")
        .iter()
        .map(|command| command.join(" "))
        .collect()
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["script"] => {
            for (name, path) in fixtures() {
                println!("echo \"@@ {name}\"");
                for command in commands(&read(&path)) {
                    println!("tc {command} || echo \"!! {name}: {command}\"");
                }
                println!("tc -j -d qdisc show dev t0; echo");
                println!("tc qdisc del dev t0 clsact 2> /dev/null; tc qdisc del dev t0 root");
            }
            println!("echo \"@@ end\"");
        }
        ["record", output] => {
            let output = fs::read(output).expect("it can be read");
            let output = String::from_utf8_lossy(&output).replace('\r', "");
            for (name, path) in fixtures() {
                let begin = format!("@@ {name}\n");
                let Some((_, rest)) = output.split_once(&begin) else {
                    panic!("the output has nothing of {name}");
                };
                let part = rest.split("@@ ").next().expect("there is something");
                assert!(!part.contains("!!"), "{part}");
                let line = part.lines().find(|line| line.starts_with("[{"));
                let shown: Json =
                    serde_json::from_str(line.expect("it has the queues")).expect("JSON");
                let fixture = read(&path);
                let recorded = json!({
                    "queue": fixture["queue"],
                    "commands": commands(&fixture),
                    "shown": shown,
                });
                let text = serde_json::to_string_pretty(&recorded).expect("plain data");
                fs::write(path, text + "\n").expect("it can be written");
            }
        }
        _ => panic!("accepted: script, or record OUTPUT"),
    }
}
