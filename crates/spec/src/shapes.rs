//! Tables that were written in the place of a list of tables, and the other way round: `[traffic]` for
//! `[[traffic]]`.

use crate::error::Problem;
use crate::node::{Node, Table, Value};

/// The lists of tables.
const LISTS: [&str; 5] = ["traffic", "case", "chain.hop", "factors.zip", "use"];

/// The tables of which there is one.
const TABLES: [&str; 11] = [
    "bottleneck",
    "bottleneck.return",
    "chain",
    "factors",
    "hosts",
    "template",
    "series",
    "programs",
    "events",
    "report",
    "metrics",
];

/// Finds tables of the wrong form, and gives them the right one, so that what is in them is looked at too.
pub(crate) fn put_right(root: &mut Node) -> Vec<Problem> {
    let mut problems = Vec::new();
    for key in LISTS {
        // A table with a list of that name, as `[factors]` may have any key.
        let Some((origin, node)) = place(root, key) else {
            continue;
        };
        if node.as_table().is_none() || key == "factors.zip" && !is_zip(node) {
            continue;
        }
        let table = std::mem::replace(&mut node.value, Value::Array(Vec::new()));
        let entry = Node {
            value: table,
            origin: node.origin.clone(),
        };
        node.value = Value::Array(vec![entry]);
        problems.push(Problem {
            origin,
            key: Some(key.to_owned()),
            message: format!(
                "[{key}] is one table, and {key} is a list of tables; accepted: [[{key}]], once for each"
            ),
        });
    }
    for key in TABLES {
        let Some((origin, node)) = place(root, key) else {
            continue;
        };
        let Value::Array(entries) = &mut node.value else {
            continue;
        };
        if entries.is_empty() || entries.iter().any(|entry| entry.as_table().is_none()) {
            continue; // decoding says it better
        }
        let count = entries.len();
        let more = match key {
            "bottleneck" if count > 1 => "; several in a row are a [chain] of [[chain.hop]]",
            _ => "",
        };
        let first = entries.swap_remove(0);
        *node = first;
        problems.push(Problem {
            origin,
            key: Some(key.to_owned()),
            message: format!(
                "[[{key}]] is a list of {count} table{}, and {key} is one table; accepted: [{key}]{more}",
                if count == 1 { "" } else { "s" }
            ),
        });
    }
    problems
}

/// Whether the values of a table are those of factors that go in step.
fn is_zip(node: &Node) -> bool {
    let lists = |table: &Table| {
        table
            .entries()
            .iter()
            .all(|entry| entry.node.as_array().is_some())
    };
    node.as_table().is_some_and(lists)
}

/// The value of a dotted key, and where the key stands.
fn place<'a>(root: &'a mut Node, key: &str) -> Option<(crate::origin::Origin, &'a mut Node)> {
    let mut here = root;
    let mut origin = here.origin.clone();
    for step in key.split('.') {
        let table = here.as_table_mut()?;
        origin = table.entry(step)?.origin.clone();
        here = table.get_mut(step)?;
    }
    Some((origin, here))
}
