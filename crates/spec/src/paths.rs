//! Dotted keys: `bottleneck.rate`, `traffic.ftp.flows` (a group by its name),
//! `chain.router-l.queue.limit` or `chain.hop2.queue.limit` (a hop by its name, one without a name by its
//! number), `bottleneck.queue.class.voice.queue.limit`
//! (a class of a queue by its name).

use crate::node::{Node, Table, Value};
use crate::origin::Origin;

/// Keys whose value may be a plain name, each with the key that the name gets when the value becomes a table.
///
/// `traffic.ftp.tcp.ecn` with `tcp = "sack"` makes it `tcp = { preset = "sack", ecn = ... }`.
const PROMOTED: [(&str, &str); 3] = [
    ("tcp", "preset"),
    ("growth", "kind"),
    ("slow_start", "kind"),
];

/// The key of the list of classes in a queue, which are addressed by their names.
pub(crate) const CLASS: &str = "class";

/// Lists whose tables are addressed by their names: the key, what a table is, and one of its keys.
const NAMED_LISTS: [(&str, &str, &str); 3] = [
    ("traffic", "traffic group", "flows"),
    (CLASS, "class", "queue"),
    ("use", "use", "count"),
];

fn named_list(key: &str) -> Option<&'static (&'static str, &'static str, &'static str)> {
    NAMED_LISTS.iter().find(|(list, ..)| *list == key)
}

/// Sets the value of `key` to `node`. Creates the tables on the way that do not exist; decoding checks
/// later whether they are accepted.
///
/// The error is a clause that says why the key does not exist.
pub(crate) fn put(root: &mut Node, key: &str, node: Node) -> Result<(), String> {
    let steps: Vec<&str> = key.split('.').collect();
    if steps.iter().any(|step| step.is_empty()) {
        return Err("a key is names joined by dots, such as bottleneck.rate".to_owned());
    }
    match steps.as_slice() {
        ["traffic", name] => Err(format!(
            "names a whole group; name one of its keys, such as traffic.{name}.flows"
        )),
        ["traffic", name, rest @ ..] => put_below(group_mut(root, name)?, name, rest, node),
        ["use", name] => Err(format!(
            "names a whole use of a template; name one of its keys, such as use.{name}.count"
        )),
        ["chain", hop, rest @ ..] if *hop != HOP => {
            let place = hop_mut(root, hop)?;
            if rest.is_empty() {
                *place = node;
                return Ok(());
            }
            put_below(place, hop, rest, node)
        }
        steps => put_below(root, "", steps, node),
    }
}

/// Sets the value at the path `steps`, which is not empty, inside `place`, whose name is `name`.
pub(crate) fn put_below(
    place: &mut Node,
    name: &str,
    steps: &[&str],
    node: Node,
) -> Result<(), String> {
    if let (Some(text), Some((_, key))) = (
        place.as_str(),
        PROMOTED.iter().find(|(promoted, _)| *promoted == name),
    ) {
        let mut table = Table::default();
        table.insert(key, Node::text(text, place.origin.clone()));
        place.value = Value::Table(table);
    }
    if let (Some((_, what, key)), Value::Array(tables)) = (named_list(name), &mut place.value) {
        let (first, rest) = steps.split_first().expect("a path has a last step");
        if rest.is_empty() {
            return Err(format!(
                "names a whole {what}; name one of its keys, such as {name}.{first}.{key}"
            ));
        }
        let index = index_of(tables, first, what)?;
        return put_below(&mut tables[index], first, rest, node);
    }
    let shown = place.shown();
    let origin = node.origin.clone();
    let Some(table) = place.as_table_mut() else {
        return Err(format!("{name} is {shown} and has no key {:?}", steps[0]));
    };
    match steps {
        [] => unreachable!("a path has a last step"),
        [last] => {
            table.insert(last, node);
            Ok(())
        }
        [first, rest @ ..] => {
            if table.get(first).is_none() {
                table.insert(first, Node::empty_table(origin));
            }
            let next = table
                .get_mut(first)
                .expect("it was made if it was not there");
            put_below(next, first, rest, node)
        }
    }
}

/// The place of `key`; if it does not exist, the place of the innermost table around it that exists.
pub(crate) fn origin(root: &Node, key: &str) -> Origin {
    walk(root, key).0
}

/// The value at `key`.
pub(crate) fn find<'a>(root: &'a Node, key: &str) -> Option<&'a Node> {
    walk(root, key).1
}

fn walk<'a>(root: &'a Node, key: &str) -> (Origin, Option<&'a Node>) {
    let (mut here, mut origin) = (root, root.origin.clone());
    // Of groups or classes, one of which the next step names.
    let mut list: Option<&'a [Node]> = None;
    for step in key.split('.') {
        let next = match list.take() {
            Some(tables) => tables.iter().find(|table| name_of(table) == Some(step)),
            None => match here.as_table() {
                Some(table) if step != HOP && table.entry(HOP).is_some() => table
                    .get(HOP)
                    .and_then(Node::as_array)
                    .and_then(|hops| hops.get(hop_index(hops, step)?)),
                Some(table) => table.entry(step).map(|entry| {
                    origin = entry.origin.clone();
                    &entry.node
                }),
                None => None,
            },
        };
        let Some(next) = next else {
            return (origin, None);
        };
        if let (Some(tables), Some(_)) = (next.as_array(), named_list(step)) {
            list = Some(tables);
        } else if next.as_table().is_some() {
            origin = next.origin.clone();
        }
        here = next;
    }
    (origin, Some(here))
}

/// The `name` of a traffic group, a class or a hop.
pub(crate) fn name_of(table: &Node) -> Option<&str> {
    table.as_table()?.get("name")?.as_str()
}

/// The place of the table called `name` among these, each of which is a `what`.
fn index_of(tables: &[Node], name: &str, what: &str) -> Result<usize, String> {
    let found = tables.iter().position(|table| name_of(table) == Some(name));
    found.ok_or_else(|| {
        let names: Vec<_> = tables.iter().filter_map(name_of).collect();
        format!(
            "there is no {what} {name:?}; accepted: {}{}",
            names.join(", "),
            crate::de::hint(name, &names)
        )
    })
}

/// The key of the list of hops in a chain.
const HOP: &str = "hop";

/// The dotted key of a hop of a chain, by the name that the file gives it, or by its number, counted from 1.
pub(crate) fn hop_key(number: usize, name: Option<&str>) -> String {
    match name {
        Some(name) => format!("chain.{name}"),
        None => format!("chain.{HOP}{number}"),
    }
}

/// The index of the hop that goes by this name; without a name of its own it goes by its number.
fn hop_index(hops: &[Node], name: &str) -> Option<usize> {
    let named = hops.iter().position(|hop| name_of(hop) == Some(name));
    named.or_else(|| {
        let number: usize = name.strip_prefix(HOP)?.parse().ok()?;
        let index = number.checked_sub(1)?;
        hops.get(index)
            .filter(|hop| name_of(hop).is_none())
            .map(|_| index)
    })
}

fn group_mut<'a>(root: &'a mut Node, name: &str) -> Result<&'a mut Node, String> {
    let groups = match root
        .as_table_mut()
        .and_then(|table| table.get_mut("traffic"))
    {
        Some(Node {
            value: Value::Array(groups),
            ..
        }) => groups.as_mut_slice(),
        _ => &mut [],
    };
    let index = index_of(groups, name, "traffic group")?;
    Ok(&mut groups[index])
}

fn hop_mut<'a>(root: &'a mut Node, name: &str) -> Result<&'a mut Node, String> {
    let chain = root.as_table_mut().and_then(|table| table.get_mut("chain"));
    let hops = match chain
        .and_then(Node::as_table_mut)
        .and_then(|chain| chain.get_mut(HOP))
    {
        Some(Node {
            value: Value::Array(hops),
            ..
        }) => hops.as_mut_slice(),
        _ => &mut [],
    };
    if hops.is_empty() {
        return Err("there is no [[chain.hop]]".to_owned());
    }
    match hop_index(hops, name) {
        Some(index) => Ok(&mut hops[index]),
        None => {
            let given = hops.iter().map(|hop| name_of(hop).map(str::to_owned));
            let names: Vec<String> = given
                .zip(1..)
                .map(|(name, number)| name.unwrap_or_else(|| format!("{HOP}{number}")))
                .collect();
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            Err(format!(
                "there is no hop {name:?}; accepted: {}{}",
                names.join(", "),
                crate::de::hint(name, &names)
            ))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"
duration = "1 s"

[chain]
[[chain.hop]]
rate = "1 Mbit/s"
[[chain.hop]]
rate = "2 Mbit/s"
queue = { kind = "red", limit = "10 packets" }

[[traffic]]
name = "ftp"
tcp = "sack"
"#;

    fn tree() -> Node {
        Node::from_toml(TEXT, None).unwrap()
    }

    fn put_text(key: &str) -> Result<Node, String> {
        let mut root = tree();
        put(&mut root, key, Node::text("new", Origin::Api))?;
        Ok(root)
    }

    #[test]
    fn what_was_put_is_found() {
        for key in [
            "duration",
            "warmup",
            "chain.hop1",
            "chain.hop2.queue",
            "chain.hop2.queue.limit",
            "chain.hop1.return.rate",
            "traffic.ftp.flows",
            "traffic.ftp.tcp",
            "traffic.ftp.tcp.ecn",
            "bottleneck.rate",
        ] {
            let root = put_text(key).unwrap();
            assert_eq!(
                find(&root, key).and_then(Node::as_str),
                Some("new"),
                "{key}"
            );
        }
    }

    #[test]
    fn a_named_preset_becomes_a_table_when_a_key_of_it_is_set() {
        let root = put_text("traffic.ftp.tcp.ecn").unwrap();
        let tcp = find(&root, "traffic.ftp.tcp").unwrap();
        assert_eq!(tcp.to_string(), r#"{ preset = "sack", ecn = "new" }"#);
    }

    #[test]
    fn places_that_cannot_be_are_refused() {
        let refusal = |key| put_text(key).unwrap_err();
        assert_eq!(
            refusal("traffic.ftq.flows"),
            r#"there is no traffic group "ftq"; accepted: ftp; did you mean "ftp"?"#
        );
        assert_eq!(
            refusal("chain.hop3.rate"),
            r#"there is no hop "hop3"; accepted: hop1, hop2; did you mean "hop1"?"#
        );
        assert_eq!(
            refusal("chain.hop0.rate"),
            r#"there is no hop "hop0"; accepted: hop1, hop2; did you mean "hop1"?"#
        );
        assert_eq!(
            refusal("duration.x"),
            r#"duration is "1 s" and has no key "x""#
        );
        assert_eq!(
            refusal("a..b"),
            "a key is names joined by dots, such as bottleneck.rate"
        );
        assert_eq!(
            refusal("traffic.ftp"),
            "names a whole group; name one of its keys, such as traffic.ftp.flows"
        );
    }

    #[test]
    fn the_line_is_that_of_the_key_or_of_the_table_around_it() {
        let root = tree();
        let line = |key| origin(&root, key).line().unwrap();
        assert_eq!(line("duration"), 2);
        assert_eq!(line("warmup"), 1);
        assert_eq!(line("chain"), 4);
        assert_eq!(line("chain.hop2"), 7);
        assert_eq!(line("chain.hop2.rate"), 8);
        assert_eq!(line("chain.hop2.delay"), 7);
        assert_eq!(line("chain.hop2.queue.min_th"), 9);
        assert_eq!(line("traffic.ftp"), 11);
        assert_eq!(line("traffic.ftp.tcp"), 13);
        assert_eq!(line("traffic.ftp.flows"), 11);
    }

    const CLASSES: &str = r#"
[bottleneck.queue]
kind = "htb"
[[bottleneck.queue.class]]
name = "all"
class = [
  { name = "voice", queue = { kind = "tail-drop", limit = "9 packets" } },
  { name = "data", queue = { kind = "tail-drop", limit = "9 packets" } },
]
"#;

    #[test]
    fn classes_go_by_their_names_at_any_depth() {
        let key = "bottleneck.queue.class.all.class.data.queue.limit";
        let mut root = Node::from_toml(CLASSES, None).unwrap();
        assert_eq!(origin(&root, key).line(), Some(8));
        put(&mut root, key, Node::text("new", Origin::Api)).unwrap();
        assert_eq!(find(&root, key).and_then(Node::as_str), Some("new"));
        let other = find(&root, "bottleneck.queue.class.all.class.voice.queue.limit");
        assert_eq!(other.and_then(Node::as_str), Some("9 packets"));

        let mut refusal = |key| put(&mut root, key, Node::text("new", Origin::Api)).unwrap_err();
        assert_eq!(
            refusal("bottleneck.queue.class.all.class.dat.queue"),
            r#"there is no class "dat"; accepted: voice, data; did you mean "data"?"#
        );
        assert_eq!(
            refusal("bottleneck.queue.class.all"),
            "names a whole class; name one of its keys, such as class.all.queue"
        );
    }
}
