//! From one file to its cases: `--set` arguments, factors, and every combination of their values.

use crate::de::hint;
use crate::error::Problem;
use crate::node::{Node, Origin, Table, Value};
use crate::paths;

/// A key that takes several values in turn.
#[derive(Debug)]
pub(crate) struct Factor {
    pub key: String,
    /// Where the key stands among the factors.
    pub origin: Origin,
    /// At least one.
    pub values: Vec<Node>,
    /// A short text for each value, all different.
    pub labels: Vec<String>,
}

/// The table of factors, and the key in a table that names it in results.
const FACTORS: &str = "factors";
const LABEL: &str = "label";

/// Keys by which a table says what it is.
const KINDS: [&str; 2] = ["kind", "preset"];

/// What is about all runs, or names them, cannot differ between them.
const NOT_FACTORS: [&str; 5] = ["name", "description", "replications", "seed", FACTORS];

/// Whether the key may differ between cases.
pub(crate) fn can_be_factor(key: &str) -> bool {
    !NOT_FACTORS.contains(&key.split('.').next().unwrap_or_default())
}

/// More cases than this are a slip of the pen.
const CASES_AT_MOST: usize = 100_000;

/// A `key=value` argument.
pub(crate) struct Set {
    key: String,
    value: Node,
}

impl Set {
    /// Reads `key=value`; the value is TOML, or else a text without quotes.
    pub(crate) fn parse(argument: &str) -> Result<Set, Problem> {
        let origin = Origin::Set(argument.into());
        let Some((key, value)) = argument.split_once('=') else {
            return Err(Problem {
                origin,
                key: None,
                message: "expected key=value, such as bottleneck.rate='20 Mbit/s'".to_owned(),
            });
        };
        Ok(Set {
            key: key.trim().to_owned(),
            value: Node::from_argument(value.trim(), &origin),
        })
    }

    /// Puts the value where it belongs: among the factors, into the values of a factor, or into the
    /// file.
    ///
    /// A factor would hide a value put into the file. So a value for a factor's own key takes the
    /// place of the factor's values (a list, of all of them), and one for a key inside it is put
    /// into each of them.
    pub(crate) fn apply(self, root: &mut Node, factors: &mut Vec<Factor>) -> Result<(), Problem> {
        let Set { key, value } = self;
        let origin = value.origin.clone();
        if let Some(key) = key.strip_prefix("factors.") {
            // Quoted, as it stands in the file, or not.
            let factor = Factor::new(key.trim_matches('"').to_owned(), origin, value)?;
            match factors.iter_mut().find(|old| old.key == factor.key) {
                Some(old) => *old = factor,
                None => factors.push(factor),
            }
            return Ok(());
        }
        if let Some(factor) = factors.iter_mut().find(|factor| factor.key == key) {
            let values_are_lists = factor.values.iter().any(|value| value.as_array().is_some());
            let values = match value.value {
                Value::Array(values) if !values_are_lists => Node {
                    value: Value::Array(values),
                    origin: origin.clone(),
                },
                _ => Node {
                    value: Value::Array(vec![value]),
                    origin: origin.clone(),
                },
            };
            *factor = Factor::new(key, origin, values)?;
            return Ok(());
        }
        let mut result = Ok(());
        let mut inside_a_factor = false;
        for factor in factors.iter_mut() {
            let Some(rest) = key
                .strip_prefix(&factor.key)
                .and_then(|rest| rest.strip_prefix('.'))
            else {
                continue;
            };
            inside_a_factor = true;
            let name = last_step(&factor.key).to_owned();
            let steps: Vec<_> = rest.split('.').collect();
            for place in &mut factor.values {
                result =
                    result.and_then(|()| paths::put_below(place, &name, &steps, value.clone()));
            }
        }
        if !inside_a_factor {
            result = paths::put(root, &key, value);
        }
        result.map_err(|reason| Problem {
            origin,
            message: format!("{key}: {reason}"),
            key: Some(key),
        })
    }
}

impl Factor {
    fn new(key: String, origin: Origin, list: Node) -> Result<Factor, Problem> {
        let refuse = |origin: &Origin, what: String| {
            Err(Problem {
                origin: origin.clone(),
                key: Some(format!("{FACTORS}.{key}")),
                message: format!("{FACTORS}.{key:?}{what}"),
            })
        };
        if !can_be_factor(&key) {
            let instead = match key.as_str() {
                "seed" | "replications" => "; replications draw anew already",
                _ => "",
            };
            return refuse(
                &origin,
                format!(": {key} is the same for all cases and cannot be a factor{instead}"),
            );
        }
        let shown = list.shown();
        let Value::Array(values) = list.value else {
            return refuse(
                &list.origin,
                format!(" = {shown}: expected a list of values"),
            );
        };
        if values.is_empty() {
            return refuse(
                &list.origin,
                " = []: a factor needs at least one value".to_owned(),
            );
        }
        for (index, value) in values.iter().enumerate() {
            if values[..index].contains(value) {
                return refuse(
                    &value.origin,
                    format!(": the value {} is given twice", value.shown()),
                );
            }
            let label = value.as_table().and_then(|table| table.get(LABEL));
            if let Some(label) = label.filter(|label| label.as_str().is_none()) {
                return refuse(
                    &label.origin,
                    format!(": label = {}: expected a text in quotes", label.shown()),
                );
            }
        }
        Ok(Factor {
            key,
            origin,
            values,
            labels: Vec::new(),
        })
    }

    /// Gives every value its label.
    pub(crate) fn label(&mut self) -> Result<(), Problem> {
        self.labels = labels(&self.values);
        for (index, label) in self.labels.iter().enumerate() {
            if self.labels[..index].contains(label) {
                return Err(Problem {
                    origin: self.values[index].origin.clone(),
                    key: Some(format!("{FACTORS}.{}", self.key)),
                    message: format!(
                        "{FACTORS}.{:?}: two values have the label {label:?}",
                        self.key
                    ),
                });
            }
        }
        Ok(())
    }

    /// Puts value number `index` into `root`.
    pub(crate) fn substitute(&self, index: usize, root: &mut Node) -> Result<(), Problem> {
        let mut value = self.values[index].clone();
        if let Some(table) = value.as_table_mut() {
            table.remove(LABEL);
        }
        paths::put(root, &self.key, value).map_err(|reason| Problem {
            origin: self.origin.clone(),
            key: Some(format!("{FACTORS}.{}", self.key)),
            message: format!("{FACTORS}.{:?}: {reason}", self.key),
        })
    }

    /// If `unknown`, a key that decoding does not know, is there because this factor put it there:
    /// the message that says so.
    pub(crate) fn explains(&self, unknown: &str, accepted: &[&str]) -> Option<Problem> {
        let beyond = self.key.strip_prefix(unknown)?;
        if !(beyond.is_empty() || beyond.starts_with('.')) {
            return None;
        }
        let hint = hint(last_step(unknown), accepted);
        Some(Problem {
            origin: self.origin.clone(),
            key: Some(format!("{FACTORS}.{}", self.key)),
            message: format!(
                "{FACTORS}.{:?}: there is no key {unknown}; accepted: {}{hint}",
                self.key,
                accepted.join(", ")
            ),
        })
    }
}

/// Takes the factors out of the file, in their order.
pub(crate) fn take_factors(root: &mut Node) -> Result<Vec<Factor>, Problem> {
    let mut factors = Vec::new();
    let Some(entry) = root.as_table_mut().and_then(|table| table.remove(FACTORS)) else {
        return Ok(factors);
    };
    match entry.node.value {
        Value::Table(table) => collect(String::new(), &table, &mut factors)?,
        _ => {
            return Err(Problem {
                origin: entry.origin,
                key: Some(FACTORS.to_owned()),
                message: format!("{FACTORS} = {}: expected a table", entry.node.shown()),
            });
        }
    }
    Ok(factors)
}

/// Keys are quoted in the file, `"bottleneck.rate" = [...]`; without quotes TOML makes tables of
/// them, and that is understood too.
fn collect(prefix: String, table: &Table, factors: &mut Vec<Factor>) -> Result<(), Problem> {
    for entry in table.entries() {
        let key = if prefix.is_empty() {
            entry.key.clone()
        } else {
            format!("{prefix}.{}", entry.key)
        };
        match &entry.node.value {
            Value::Table(inner) => collect(key, inner, factors)?,
            _ => factors.push(Factor::new(key, entry.origin.clone(), entry.node.clone())?),
        }
    }
    Ok(())
}

/// Every combination of values, as an index into each factor's values; the last factor changes
/// fastest.
pub(crate) fn combinations(factors: &[Factor]) -> Result<Vec<Vec<usize>>, Problem> {
    let count = factors
        .iter()
        .try_fold(1_usize, |count, factor| {
            count.checked_mul(factor.values.len())
        })
        .filter(|count| *count <= CASES_AT_MOST);
    if count.is_none() {
        return Err(Problem {
            origin: factors[0].origin.clone(),
            key: Some(FACTORS.to_owned()),
            message: format!("{FACTORS}: these make more than {CASES_AT_MOST} cases"),
        });
    }
    let mut cases = vec![Vec::new()];
    for factor in factors {
        cases = cases
            .iter()
            .flat_map(|case| {
                (0..factor.values.len()).map(move |index| [case.as_slice(), &[index]].concat())
            })
            .collect();
    }
    Ok(cases)
}

/// A short text for each value: its `label`, the text of a plain value, or what kind of thing it
/// is, with as much more as it takes to tell it from others of its kind.
fn labels(values: &[Node]) -> Vec<String> {
    let kinds: Vec<_> = values.iter().map(kind).collect();
    values
        .iter()
        .zip(&kinds)
        .map(|(value, kind)| {
            let Some(table) = value.as_table() else {
                return plain(value);
            };
            if let Some(label) = table.get(LABEL).and_then(Node::as_str) {
                return label.to_owned();
            }
            let alike: Vec<_> = values
                .iter()
                .zip(&kinds)
                .filter(|(other, others)| {
                    *others == kind
                        && other
                            .as_table()
                            .is_none_or(|table| table.get(LABEL).is_none())
                })
                .map(|(other, _)| other)
                .collect();
            let differing: Vec<_> = table
                .entries()
                .iter()
                .filter(|entry| !KINDS.contains(&entry.key.as_str()))
                .filter(|entry| {
                    let same = |other: &&Node| {
                        other.as_table().and_then(|table| table.get(&entry.key))
                            == Some(&entry.node)
                    };
                    !alike.iter().all(same)
                })
                .map(|entry| format!("{} = {}", entry.key, plain(&entry.node)))
                .collect();
            match (kind.as_str(), differing.join(", ")) {
                ("", keys) => keys,
                (kind, keys) if keys.is_empty() => kind.to_owned(),
                (kind, keys) => format!("{kind} ({keys})"),
            }
        })
        .collect()
}

/// What a table says it is: its `kind` or its `preset`.
fn kind(value: &Node) -> String {
    match value.as_table() {
        Some(table) => KINDS
            .iter()
            .find_map(|key| table.get(key)?.as_str())
            .unwrap_or_default()
            .to_owned(),
        None => plain(value),
    }
}

/// As in the file, but without quotes.
fn plain(value: &Node) -> String {
    match &value.value {
        Value::String(text) => text.clone(),
        _ => value.to_string(),
    }
}

fn last_step(key: &str) -> &str {
    key.rsplit('.').next().unwrap_or(key)
}

/// Takes the labels off all queues; they are for results and no part of a run.
pub(crate) fn strip_labels(root: &mut Node) -> Result<(), Problem> {
    let Some(table) = root.as_table_mut() else {
        return Ok(());
    };
    if let Some(link) = table.get_mut("bottleneck") {
        strip_link("bottleneck", link)?;
    }
    let hops = table
        .get_mut("chain")
        .and_then(Node::as_table_mut)
        .and_then(|chain| chain.get_mut("hop"));
    if let Some(Node {
        value: Value::Array(hops),
        ..
    }) = hops
    {
        for (index, hop) in hops.iter_mut().enumerate() {
            strip_link(&format!("chain.hop{}", index + 1), hop)?;
        }
    }
    Ok(())
}

/// Takes the labels off a queue and off those within it.
fn strip_queue(key: &str, queue: &mut Node) -> Result<(), Problem> {
    let Some(table) = queue.as_table_mut() else {
        return Ok(());
    };
    let label = table.remove(LABEL);
    if let Some(label) = label.filter(|label| label.node.as_str().is_none()) {
        let key = format!("{key}.{LABEL}");
        return Err(Problem {
            origin: label.origin,
            message: format!("{key} = {}: expected a text in quotes", label.node.shown()),
            key: Some(key),
        });
    }
    strip_within(key, queue)
}

/// Takes the labels off the queues in a table: its `queue`, and those of its classes.
fn strip_within(key: &str, node: &mut Node) -> Result<(), Problem> {
    let Some(table) = node.as_table_mut() else {
        return Ok(());
    };
    if let Some(queue) = table.get_mut("queue") {
        strip_queue(&format!("{key}.queue"), queue)?;
    }
    if let Some(Node {
        value: Value::Array(classes),
        ..
    }) = table.get_mut(paths::CLASS)
    {
        for class in classes {
            let name = paths::name_of(class).unwrap_or_default();
            strip_within(&format!("{key}.{}.{name}", paths::CLASS), class)?;
        }
    }
    Ok(())
}

fn strip_link(key: &str, link: &mut Node) -> Result<(), Problem> {
    let Some(table) = link.as_table_mut() else {
        return Ok(()); // decoding says it better
    };
    if let Some(queue) = table.get_mut("queue") {
        strip_queue(&format!("{key}.queue"), queue)?;
    }
    match table.get_mut("return") {
        Some(back) => strip_link(&format!("{key}.return"), back),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn factors(text: &str) -> Result<Vec<Factor>, String> {
        let mut root = Node::from_toml(text, None).unwrap();
        let mut factors = take_factors(&mut root).map_err(|problem| problem.message)?;
        for factor in &mut factors {
            factor.label().map_err(|problem| problem.message)?;
        }
        Ok(factors)
    }

    #[test]
    fn labels_say_what_differs_and_no_more() {
        let text = r#"
[factors]
"bottleneck.queue" = [
  { kind = "tail-drop", limit = "300 packets" },
  { kind = "red", limit = "300 packets", min_th = "45 packets" },
  { kind = "red", limit = "300 packets", min_th = "45 packets", gentle = true },
  { kind = "red", limit = "300 packets", min_th = "5 packets", label = "low RED" },
]
"bottleneck.rate" = ["10 Mbit/s", "20 Mbit/s"]
traffic.ftp.flows = [16, 64]
"traffic.ftp.tcp" = ["sack", { preset = "sack", ecn = true }, { preset = "reno" }]
"traffic.ftp.access_delay" = [["1 ms", "2 ms"], "5 ms"]
"#;
        let factors = factors(text).unwrap();
        let labels: Vec<_> = factors
            .iter()
            .map(|factor| factor.labels.join(" | "))
            .collect();
        assert_eq!(
            labels,
            [
                "tail-drop | red | red (gentle = true) | low RED",
                "10 Mbit/s | 20 Mbit/s",
                "16 | 64",
                "sack | sack (ecn = true) | reno",
                r#"["1 ms", "2 ms"] | 5 ms"#,
            ]
        );
        assert_eq!(factors[2].key, "traffic.ftp.flows");
    }

    #[test]
    fn the_last_factor_changes_fastest() {
        let factors = factors("[factors]\nb = [1, 2]\na = [1, 2, 3]").unwrap();
        let cases = combinations(&factors).unwrap();
        assert_eq!(cases, [[0, 0], [0, 1], [0, 2], [1, 0], [1, 1], [1, 2]]);
        assert_eq!(combinations(&[]).unwrap(), [Vec::<usize>::new()]);
    }

    #[test]
    fn factors_that_make_no_sense_are_refused() {
        let refusal = |text: &str| factors(text).unwrap_err();
        assert_eq!(
            refusal("[factors]\n\"bottleneck.queue\" = []"),
            r#"factors."bottleneck.queue" = []: a factor needs at least one value"#
        );
        assert_eq!(
            refusal("[factors]\n\"bottleneck.rate\" = \"1 Mbit/s\""),
            r#"factors."bottleneck.rate" = "1 Mbit/s": expected a list of values"#
        );
        assert_eq!(
            refusal("[factors]\n\"bottleneck.rate\" = [1, 2, 1]"),
            r#"factors."bottleneck.rate": the value 1 is given twice"#
        );
        assert_eq!(
            refusal("[factors]\nseed = [1, 2]"),
            r#"factors."seed": seed is the same for all cases and cannot be a factor; replications draw anew already"#
        );
        assert_eq!(
            refusal(
                "[factors]\nq = [{ kind = \"a\", label = \"x\" }, { kind = \"b\", label = \"x\" }]"
            ),
            r#"factors."q": two values have the label "x""#
        );
        assert_eq!(refusal("factors = 3"), "factors = 3: expected a table");
        let many = format!(
            "[factors]\na = {0:?}\nb = {0:?}",
            (0..400).collect::<Vec<_>>()
        );
        let error = combinations(&factors(&many).unwrap()).unwrap_err();
        assert_eq!(error.message, "factors: these make more than 100000 cases");
    }

    #[test]
    fn an_argument_for_a_factor_is_not_hidden_by_it() {
        let text = "[factors]\nq = [{ kind = \"a\" }, { kind = \"b\" }]\nn = [1, 2]";
        let after = |argument: &str| {
            let mut root = Node::from_toml(text, None).unwrap();
            let mut factors = take_factors(&mut root).unwrap();
            Set::parse(argument)
                .unwrap()
                .apply(&mut root, &mut factors)
                .unwrap();
            factors
                .iter()
                .map(|factor| {
                    factor
                        .values
                        .iter()
                        .map(Node::to_string)
                        .collect::<Vec<_>>()
                        .join(" | ")
                })
                .collect::<Vec<_>>()
        };
        assert_eq!(after("n=7"), [r#"{ kind = "a" } | { kind = "b" }"#, "7"]);
        assert_eq!(
            after("n=[7, 8]"),
            [r#"{ kind = "a" } | { kind = "b" }"#, "7 | 8"]
        );
        assert_eq!(
            after("q.limit = 3"),
            [
                r#"{ kind = "a", limit = 3 } | { kind = "b", limit = 3 }"#,
                "1 | 2"
            ]
        );
        assert_eq!(after("factors.\"n\"=[7, 8]")[1], "7 | 8");
        assert_eq!(
            after("factors.m=[1]"),
            [r#"{ kind = "a" } | { kind = "b" }"#, "1 | 2", "1"]
        );
    }
}
