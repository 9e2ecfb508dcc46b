//! From one file to its cases: `--set` arguments, factors, and every combination of their values.
//!
//! The cases are all combinations of three things: the entries of `[[case]]`, a list of named cases; the
//! steps of each `[[factors.zip]]`, whose factors change together; and the values of each other factor.

use crate::de::hint;
use crate::error::Problem;
use crate::format;
use crate::mistakes::Known;
use crate::node::{Entry, Node, Table, Value};
use crate::origin::Origin;
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
    /// The index of its `[[factors.zip]]`, if it belongs to one. The factors of one zip change together.
    zip: Option<usize>,
    /// For the factor that stands for the list of cases, whose values are the names: the keys that each case
    /// sets.
    cases: Vec<Vec<(String, Node)>>,
}

/// A value that a case puts at a key.
pub(crate) struct Put<'a> {
    pub key: &'a str,
    node: Node,
    /// Where its key stands.
    origin: &'a Origin,
    /// What messages call it.
    name: String,
}

impl Put<'_> {
    /// Number of steps in its key. A value inside another value is set after that one.
    pub(crate) fn depth(&self) -> usize {
        self.key.matches('.').count()
    }

    /// Whether it sets this key.
    pub(crate) fn sets(&self, key: &str) -> bool {
        self.key == key
    }

    /// The key and the value that results show.
    pub(crate) fn setting(self) -> (String, serde_json::Value) {
        (self.key.to_owned(), self.node.to_json())
    }

    pub(crate) fn into_tree(self, root: &mut Node) -> Result<(), Problem> {
        let name = self.name;
        paths::put(root, self.key, self.node).map_err(|reason| Problem {
            origin: self.origin.clone(),
            key: Some(name.replace('"', "")),
            message: format!("{name}: {reason}"),
        })
    }
}

/// The table of factors, and the key in a table that names it in results.
const FACTORS: &str = "factors";
const ZIP: &str = "zip";
const CASE: &str = "case";
const NAME: &str = "name";
const LABEL: &str = "label";

/// The key by which results, and `--set`, know the name of a case in the list of cases.
pub(crate) const CASE_NAME: &str = "case.name";

/// Keys by which a table says what it is.
const KINDS: [&str; 2] = ["kind", "preset"];

/// Keys that concern all runs or name them. They cannot differ between cases.
const NOT_FACTORS: [&str; 10] = [
    format::KEY,
    NAME,
    "description",
    "replications",
    "seed",
    "programs",
    "report",
    "metrics",
    FACTORS,
    CASE,
];

/// Whether the key may differ between cases.
pub(crate) fn can_be_factor(key: &str) -> bool {
    !NOT_FACTORS.contains(&key.split('.').next().unwrap_or_default())
}

/// The largest number of cases. An experiment with more is refused as a mistake.
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

    /// Sets the value among the factors, inside the values of a factor, or in the file.
    ///
    /// A factor overrides the value in the file. So an argument for the key of a factor replaces the
    /// values of the factor (a list replaces all of them), and an argument for a key inside it is set in
    /// each of its values.
    pub(crate) fn apply(self, root: &mut Node, factors: &mut Vec<Factor>) -> Result<(), Problem> {
        let Set { key, value } = self;
        let origin = value.origin.clone();
        if let Some(key) = key.strip_prefix("factors.") {
            // Quoted, as it stands in the file, or not.
            let key = key.trim_matches('"').to_owned();
            let old = factors.iter_mut().find(|old| old.key == key);
            let factor = Factor::new(key, origin, value, old.as_ref().and_then(|old| old.zip))?;
            match old {
                Some(old) => *old = factor,
                None => factors.push(factor),
            }
            return Ok(());
        }
        if key == CASE_NAME {
            return match factors.iter_mut().find(|factor| factor.key == key) {
                Some(factor) => factor.choose(value),
                None => Err(Problem {
                    origin,
                    message: format!("{CASE_NAME}: the file has no [[{CASE}]]"),
                    key: Some(key),
                }),
            };
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
            *factor = Factor::new(key, origin, values, factor.zip)?;
            return Ok(());
        }
        let mut result = Ok(());
        let mut inside_a_factor = false;
        for factor in factors.iter_mut() {
            if !factor.cases.is_empty() {
                inside_a_factor |= factor
                    .set_in_cases(&key, &value)
                    .map_err(|reason| Problem {
                        origin: origin.clone(),
                        message: format!("{key}: {reason}"),
                        key: Some(key.clone()),
                    })?;
                continue;
            }
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
    fn new(key: String, origin: Origin, list: Node, zip: Option<usize>) -> Result<Factor, Problem> {
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
            if zip.is_none() && values[..index].contains(value) {
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
            zip,
            cases: Vec::new(),
        })
    }

    /// Keeps only the cases of the list that are named, in the given order.
    fn choose(&mut self, names: Node) -> Result<(), Problem> {
        let chosen = match names.value {
            Value::Array(names) => names,
            _ => vec![names],
        };
        let mut kept = Vec::new();
        for name in chosen {
            let Some(index) = self.values.iter().position(|known| *known == name) else {
                let known: Vec<_> = self.values.iter().filter_map(Node::as_str).collect();
                return Err(Problem {
                    message: format!(
                        "{CASE_NAME} = {} is not known; accepted: {}{}",
                        name.shown(),
                        known.join(", "),
                        hint(name.as_str().unwrap_or_default(), &known)
                    ),
                    origin: name.origin,
                    key: Some(CASE_NAME.to_owned()),
                });
            };
            if !kept.contains(&index) {
                kept.push(index);
            }
        }
        self.values = kept.iter().map(|at| self.values[*at].clone()).collect();
        self.cases = kept.iter().map(|at| self.cases[*at].clone()).collect();
        Ok(())
    }

    /// Sets a value in each case of the list that would override it. Returns whether all cases would.
    fn set_in_cases(&mut self, key: &str, value: &Node) -> Result<bool, String> {
        let mut hidden = 0;
        for case in &mut self.cases {
            let mut here = false;
            for (own, place) in case.iter_mut() {
                if own == key {
                    *place = value.clone();
                    here = true;
                } else if let Some(rest) = key.strip_prefix(own.as_str())
                    && let Some(rest) = rest.strip_prefix('.')
                {
                    let steps: Vec<_> = rest.split('.').collect();
                    paths::put_below(place, last_step(own), &steps, value.clone())?;
                    here = true;
                }
            }
            hidden += usize::from(here);
        }
        Ok(hidden == self.cases.len())
    }

    /// The keys that it sets in every case.
    pub(crate) fn always_sets(&self) -> Vec<&str> {
        let keys = self.keys();
        let in_all = |key: &&str| {
            let mut cases = self.cases.iter();
            cases.all(|case| case.iter().any(|(own, _)| own == key))
        };
        keys.into_iter().filter(in_all).collect()
    }

    /// What messages call it.
    pub(crate) fn name(&self) -> String {
        match self.cases.is_empty() {
            true => format!("{FACTORS}.{:?}", self.key),
            false => format!("every [[{CASE}]]"),
        }
    }

    /// Whether this key, or the start of it, comes from this factor.
    pub(crate) fn gives(&self, key: &str) -> bool {
        match self.cases.as_slice() {
            [] => key.starts_with(&self.key),
            cases => cases.iter().flatten().any(|(own, _)| key.starts_with(own)),
        }
    }

    /// The keys that it sets.
    fn keys(&self) -> Vec<&str> {
        match self.cases.as_slice() {
            [] => vec![&self.key],
            cases => cases
                .iter()
                .flatten()
                .map(|(own, _)| own.as_str())
                .collect(),
        }
    }

    /// What the case with value number `index` puts into the file.
    pub(crate) fn puts(&self, index: usize) -> Vec<Put<'_>> {
        if let Some(case) = self.cases.get(index) {
            let name = self.values[index].shown();
            let puts = case.iter().map(|(key, node)| Put {
                key,
                node: without_label(node),
                origin: &node.origin,
                name: format!("[[{CASE}]] {name}: {key:?}"),
            });
            return puts.collect();
        }
        vec![Put {
            key: &self.key,
            node: without_label(&self.values[index]),
            origin: &self.origin,
            name: format!("{FACTORS}.{:?}", self.key),
        }]
    }

    /// Gives every value its label.
    pub(crate) fn label(&mut self) -> Result<(), Problem> {
        self.labels = labels(&self.values);
        for (index, label) in self.labels.iter().enumerate() {
            let other = self.labels[..index].iter().position(|other| other == label);
            // Factors in step may have a value twice.
            if other.is_some_and(|other| self.values[other] != self.values[index]) {
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

    /// If this factor, with value number `index`, has set the unknown key `unknown`: the message that says
    /// so.
    pub(crate) fn explains(
        &self,
        index: usize,
        unknown: &str,
        accepted: &[&str],
    ) -> Option<Problem> {
        let put = self.puts(index).into_iter().find(|put| {
            let beyond = put.key.strip_prefix(unknown);
            beyond.is_some_and(|beyond| beyond.is_empty() || beyond.starts_with('.'))
        })?;
        let hint = hint(last_step(unknown), accepted);
        Some(Problem {
            origin: put.origin.clone(),
            key: Some(put.name.replace('"', "")),
            message: format!(
                "{}: there is no key {unknown}; accepted: {}{hint}",
                put.name,
                accepted.join(", ")
            ),
        })
    }
}

fn without_label(value: &Node) -> Node {
    let mut value = value.clone();
    if let Some(table) = value.as_table_mut() {
        table.remove(LABEL);
    }
    value
}

/// Takes the list of cases and the factors out of the file, in their order. What is wrong with them is added to
/// `problems`, and the keys that such a factor would set to `known`.
pub(crate) fn take_factors(
    root: &mut Node,
    problems: &mut Vec<Problem>,
    known: &mut Known,
) -> Vec<Factor> {
    let mut factors = Vec::new();
    let cases = root.as_table().and_then(|table| table.get(CASE)).cloned();
    match take_cases(root) {
        Ok(found) => factors.extend(found),
        Err(problem) => {
            problems.push(problem);
            let mut puts = Vec::new();
            for case in cases
                .iter()
                .flat_map(|cases| cases.as_array().unwrap_or_default())
            {
                if let Some(table) = case.as_table() {
                    keys_of_case("", table, &mut puts);
                }
            }
            puts.iter().for_each(|(key, _)| known.add(key));
        }
    }
    let Some(entry) = root.as_table_mut().and_then(|table| table.remove(FACTORS)) else {
        return factors;
    };
    match entry.node.value {
        Value::Table(mut table) => {
            let zips = table.remove(ZIP);
            collect(String::new(), &table, None, &mut factors, problems, known);
            if let Some(zips) = zips {
                collect_zips(&zips, &mut factors, problems, known);
            }
        }
        _ => problems.push(Problem {
            origin: entry.origin,
            key: Some(FACTORS.to_owned()),
            message: format!("{FACTORS} = {}: expected a table", entry.node.shown()),
        }),
    }
    if let Err(problem) = given_once(&factors) {
        problems.push(problem);
    }
    factors
}

/// Refuses a key that two factors set.
fn given_once(factors: &[Factor]) -> Result<(), Problem> {
    let mut seen: Vec<&str> = Vec::new();
    for factor in factors {
        for key in factor.keys() {
            if factor.cases.is_empty() && seen.contains(&key) {
                return Err(Problem {
                    origin: factor.origin.clone(),
                    key: Some(format!("{FACTORS}.{key}")),
                    message: format!(
                        "{FACTORS}.{key:?}: a [[{CASE}]], a {FACTORS}.{ZIP} or another factor gives \
                         this key too; accepted: one of them"
                    ),
                });
            }
            seen.push(key);
        }
    }
    Ok(())
}

/// The list of cases as a factor whose values are their names.
fn take_cases(root: &mut Node) -> Result<Option<Factor>, Problem> {
    let Some(entry) = root.as_table_mut().and_then(|table| table.remove(CASE)) else {
        return Ok(None);
    };
    let refuse = |origin: &Origin, key: &str, message: String| {
        Err(Problem {
            origin: origin.clone(),
            key: Some(key.to_owned()),
            message,
        })
    };
    let list = entry.node.as_array().unwrap_or_default();
    if list.is_empty() || list.iter().any(|case| case.as_table().is_none()) {
        let shown = entry.node.shown();
        let wanted = format!("{CASE} = {shown}: expected a list of tables, [[{CASE}]]");
        return refuse(&entry.origin, CASE, wanted);
    }
    let (mut names, mut cases) = (Vec::<Node>::new(), Vec::new());
    for case in list {
        let table = case.as_table().expect("all of them are tables");
        let mut puts = Vec::new();
        keys_of_case("", table, &mut puts);
        let name = match table.get(NAME) {
            Some(name) if name.as_str().is_some_and(|name| !name.trim().is_empty()) => name.clone(),
            Some(name) => {
                let wanted = format!("{CASE_NAME} = {}: expected a text in quotes", name.shown());
                return refuse(&name.origin, CASE_NAME, wanted);
            }
            None if puts.is_empty() => {
                let wanted = format!("[[{CASE}]]: expected a name, or keys that it sets");
                return refuse(&case.origin, CASE, wanted);
            }
            None => Node::text(&name_of_case(&puts), case.origin.clone()),
        };
        if names.contains(&name) {
            let message = format!(
                "[[{CASE}]]: two cases have the name {}; accepted: a name of its own",
                name.shown()
            );
            return refuse(&name.origin, CASE_NAME, message);
        }
        if let Some((key, node)) = puts.iter().find(|(key, _)| !can_be_factor(key)) {
            let message = format!(
                "[[{CASE}]] {}: {key} is the same for all cases and cannot be set in one",
                name.shown()
            );
            return refuse(&node.origin, key, message);
        }
        names.push(name);
        cases.push(puts);
    }
    Ok(Some(Factor {
        key: CASE_NAME.to_owned(),
        origin: entry.origin,
        values: names,
        labels: Vec::new(),
        zip: None,
        cases,
    }))
}

/// The keys that a case sets. In the file they are quoted, `"bottleneck.queue" = {...}`. Without quotes TOML
/// makes tables of them; these are read as keys down to a value with a `kind` or a `preset`.
pub(crate) fn keys_of_case(prefix: &str, table: &Table, puts: &mut Vec<(String, Node)>) {
    for entry in table.entries() {
        if prefix.is_empty() && entry.key == NAME {
            continue;
        }
        let key = match prefix {
            "" => entry.key.clone(),
            _ => format!("{prefix}.{}", entry.key),
        };
        match entry.node.as_table() {
            Some(inner) if !entry.key.contains('.') && !is_whole(inner) => {
                keys_of_case(&key, inner, puts)
            }
            _ => {
                let mut node = entry.node.clone();
                node.origin = entry.origin.clone();
                puts.push((key, node));
            }
        }
    }
}

/// Whether a table is a value, such as a queue, and not a part of a key.
fn is_whole(table: &Table) -> bool {
    let told = |key: &str| table.get(key).is_some_and(|node| node.as_str().is_some());
    KINDS.into_iter().any(told) || told(LABEL)
}

fn name_of_case(puts: &[(String, Node)]) -> String {
    let words: Vec<_> = puts
        .iter()
        .map(|(key, node)| {
            let label = node.as_table().and_then(|table| table.get(LABEL)?.as_str());
            match (label, node.as_table()) {
                (Some(label), _) => label.to_owned(),
                (None, Some(_)) => kind(node),
                (None, None) => format!("{} {}", last_step(key), plain(node)),
            }
        })
        .collect();
    words.join(", ")
}

/// Reads a list of tables, each with factors that change together: the first values belong together, then
/// the second values, and so on.
fn collect_zips(
    entry: &Entry,
    factors: &mut Vec<Factor>,
    problems: &mut Vec<Problem>,
    known: &mut Known,
) {
    let name = format!("{FACTORS}.{ZIP}");
    let refuse = |problems: &mut Vec<Problem>, origin: &Origin, message: String| {
        problems.push(Problem {
            origin: origin.clone(),
            key: Some(name.clone()),
            message,
        });
    };
    let list = entry.node.as_array().unwrap_or_default();
    if list.is_empty() {
        let shown = entry.node.shown();
        let wanted = format!("{name} = {shown}: expected a list of tables, [[{name}]]");
        return refuse(problems, &entry.origin, wanted);
    }
    for (index, zip) in list.iter().enumerate() {
        let Some(table) = zip.as_table() else {
            let wanted = format!("{name} = {}: expected a table of factors", zip.shown());
            refuse(problems, &zip.origin, wanted);
            continue;
        };
        let (start, before) = (factors.len(), problems.len());
        collect(String::new(), table, Some(index), factors, problems, known);
        if problems.len() > before {
            // The others have nothing to go in step with.
            factors
                .drain(start..)
                .for_each(|factor| known.add(&factor.key));
            continue;
        }
        let (first, rest) = match &factors[start..] {
            [first, rest @ ..] if !rest.is_empty() => (first, rest),
            _ => {
                let wanted = format!("{name}: expected two factors or more that go in step");
                refuse(problems, &zip.origin, wanted);
                continue;
            }
        };
        let count = first.values.len();
        if let Some(other) = rest.iter().find(|factor| factor.values.len() != count) {
            refuse(problems, &other.origin, lengths(first, other));
            factors
                .drain(start..)
                .for_each(|factor| known.add(&factor.key));
            continue;
        }
        for index in 0..count {
            let same = |earlier: &usize| {
                let factors = &factors[start..];
                factors
                    .iter()
                    .all(|factor| factor.values[*earlier] == factor.values[index])
            };
            if (0..index).any(|earlier| same(&earlier)) {
                let origin = &factors[start].values[index].origin;
                let number = index + 1;
                refuse(
                    problems,
                    origin,
                    format!("{name}: number {number} is given twice"),
                );
                break;
            }
        }
    }
}

fn lengths(first: &Factor, other: &Factor) -> String {
    format!(
        "{FACTORS}.{ZIP}: {:?} has {} values and {:?} has {}; accepted: as many of each",
        other.key,
        other.values.len(),
        first.key,
        first.values.len()
    )
}

/// Makes the factors of a zip equally long again after arguments have changed some of them. A single value
/// is repeated for all steps, and steps that are then equal are kept once.
pub(crate) fn align(factors: &mut [Factor]) -> Result<(), Problem> {
    let zips = factors.iter().filter_map(|factor| factor.zip).max();
    for zip in 0..=zips.map_or(0, |last| last) {
        let members: Vec<_> = (0..factors.len())
            .filter(|at| factors[*at].zip == Some(zip))
            .collect();
        let longest = members
            .iter()
            .copied()
            .max_by_key(|at| factors[*at].values.len());
        let Some(longest) = longest else { continue };
        let count = factors[longest].values.len();
        for at in &members {
            if factors[*at].values.len() == 1 {
                let value = factors[*at].values[0].clone();
                factors[*at].values = vec![value; count];
            } else if factors[*at].values.len() != count {
                return Err(Problem {
                    origin: factors[*at].origin.clone(),
                    key: Some(format!("{FACTORS}.{}", factors[*at].key)),
                    message: lengths(&factors[longest], &factors[*at]),
                });
            }
        }
        let mut index = 1;
        while index < factors[longest].values.len() {
            let twice = (0..index).any(|earlier| {
                let mut values = members.iter().map(|at| &factors[*at].values);
                values.all(|values| values[earlier] == values[index])
            });
            match twice {
                true => members.iter().for_each(|at| {
                    factors[*at].values.remove(index);
                }),
                false => index += 1,
            }
        }
    }
    Ok(())
}

/// In the file keys are quoted, `"bottleneck.rate" = [...]`. Without quotes TOML makes tables of them; they
/// are accepted too.
fn collect(
    prefix: String,
    table: &Table,
    zip: Option<usize>,
    factors: &mut Vec<Factor>,
    problems: &mut Vec<Problem>,
    known: &mut Known,
) {
    for entry in table.entries() {
        let key = if prefix.is_empty() {
            entry.key.clone()
        } else {
            format!("{prefix}.{}", entry.key)
        };
        match &entry.node.value {
            Value::Table(inner) => collect(key, inner, zip, factors, problems, known),
            _ => {
                let (origin, list) = (entry.origin.clone(), entry.node.clone());
                match Factor::new(key.clone(), origin, list, zip) {
                    Ok(factor) => factors.push(factor),
                    Err(problem) => {
                        problems.push(problem);
                        known.add(&key);
                    }
                }
            }
        }
    }
}

/// Every combination of values, as an index into each factor's values; the last factor changes
/// fastest. Factors of one zip have one index.
pub(crate) fn combinations(factors: &[Factor]) -> Result<Vec<Vec<usize>>, Problem> {
    let mut steps: Vec<Vec<usize>> = Vec::new();
    for (at, factor) in factors.iter().enumerate() {
        let in_step = |step: &&mut Vec<usize>| factors[step[0]].zip == factor.zip;
        match steps
            .iter_mut()
            .find(in_step)
            .filter(|_| factor.zip.is_some())
        {
            Some(step) => step.push(at),
            None => steps.push(vec![at]),
        }
    }
    let length = |step: &[usize]| factors[step[0]].values.len();
    let count = steps
        .iter()
        .try_fold(1_usize, |count, step| count.checked_mul(length(step)))
        .filter(|count| *count <= CASES_AT_MOST);
    if count.is_none() {
        return Err(Problem {
            origin: factors[0].origin.clone(),
            key: Some(FACTORS.to_owned()),
            message: format!("{FACTORS}: these make more than {CASES_AT_MOST} cases"),
        });
    }
    let mut cases = vec![vec![0; factors.len()]];
    for step in &steps {
        cases = cases
            .iter()
            .flat_map(|case| {
                (0..length(step)).map(move |index| {
                    let mut case = case.clone();
                    step.iter().for_each(|at| case[*at] = index);
                    case
                })
            })
            .collect();
    }
    Ok(cases)
}

/// A short text for each value: its `label`, the text of a plain value, or its kind together with as many
/// of its keys as are needed to distinguish it from other values of this kind.
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

/// The `kind` or the `preset` of a table.
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

/// The value as in the file, without quotes.
fn plain(value: &Node) -> String {
    match &value.value {
        Value::String(text) => text.clone(),
        _ => value.to_string(),
    }
}

fn last_step(key: &str) -> &str {
    key.rsplit('.').next().unwrap_or(key)
}

/// Removes the labels of all queues. They are for results and are not a part of a run. Returns those that are no
/// texts.
pub(crate) fn strip_labels(root: &mut Node) -> Vec<Problem> {
    let mut problems = Vec::new();
    let Some(table) = root.as_table_mut() else {
        return problems;
    };
    if let Some(link) = table.get_mut("bottleneck") {
        strip_link("bottleneck", link, &mut problems);
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
            let key = paths::hop_key(index + 1, paths::name_of(hop));
            strip_link(&key, hop, &mut problems);
        }
    }
    problems
}

/// Removes the label of a queue and those of the queues inside it.
fn strip_queue(key: &str, queue: &mut Node, problems: &mut Vec<Problem>) {
    let Some(table) = queue.as_table_mut() else {
        return;
    };
    let label = table.remove(LABEL);
    if let Some(label) = label.filter(|label| label.node.as_str().is_none()) {
        let key = format!("{key}.{LABEL}");
        problems.push(Problem {
            origin: label.origin,
            message: format!("{key} = {}: expected a text in quotes", label.node.shown()),
            key: Some(key),
        });
    }
    strip_within(key, queue, problems);
}

/// Removes the labels of the queues in a table: of its `queue` and of the queues of its classes.
fn strip_within(key: &str, node: &mut Node, problems: &mut Vec<Problem>) {
    let Some(table) = node.as_table_mut() else {
        return;
    };
    if let Some(queue) = table.get_mut("queue") {
        strip_queue(&format!("{key}.queue"), queue, problems);
    }
    if let Some(Node {
        value: Value::Array(classes),
        ..
    }) = table.get_mut(paths::CLASS)
    {
        for class in classes {
            let name = paths::name_of(class).unwrap_or_default();
            strip_within(&format!("{key}.{}.{name}", paths::CLASS), class, problems);
        }
    }
}

fn strip_link(key: &str, link: &mut Node, problems: &mut Vec<Problem>) {
    let Some(table) = link.as_table_mut() else {
        return; // decoding says it better
    };
    if let Some(queue) = table.get_mut("queue") {
        strip_queue(&format!("{key}.queue"), queue, problems);
    }
    if let Some(back) = table.get_mut("return") {
        strip_link(&format!("{key}.return"), back, problems);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn factors(text: &str) -> Result<Vec<Factor>, String> {
        let mut root = Node::from_toml(text, None).unwrap();
        let mut problems = Vec::new();
        let mut factors = take_factors(&mut root, &mut problems, &mut Known::default());
        if let Some(problem) = problems.pop() {
            return Err(problem.message);
        }
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
            let mut factors = take_factors(&mut root, &mut Vec::new(), &mut Known::default());
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
