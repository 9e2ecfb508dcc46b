//! Templates of groups: `[template.NAME]` has groups and their hosts, and each `[[use]]` makes them `count` times.
//!
//! An instance is a host, on which all groups of the template sit. So a use is as many groups as its template has, each
//! with `count` times the flows, on `count` hosts: flow `i` of each sits on host `i` modulo `count`. What a use makes
//! can be written out in the file, and is the same scenario then.

use std::collections::BTreeMap;

use redtail_traffic::{MAX_FLOWS, TrafficParams};

use crate::de::hint;
use crate::error::Problem;
use crate::expand::keys_of_case;
use crate::mistakes::Known;
use crate::node::{Entry, Node, Table, Value};
use crate::origin::Origin;
use crate::paths;

/// The keys of the tables that are replaced by what they stand for.
const TEMPLATE: &str = "template";
const USE: &str = "use";

/// The keys of the lists and tables into which they go, in the file and in a template.
const TRAFFIC: &str = "traffic";
const HOSTS: &str = "hosts";
/// The number of hosts.
const NUMBER: &str = "number";

/// The keys of a use.
const TEMPLATE_OF: &str = "template";
const NAME: &str = "name";
const COUNT: &str = "count";
const SET: &str = "set";
const USE_KEYS: [&str; 4] = [TEMPLATE_OF, NAME, COUNT, SET];

/// Replaces templates and their uses by groups and hosts. What is wrong with them is added to `problems`, and the keys of
/// groups that are missing for it to `known`. Returns whether there were any.
pub(crate) fn expand(root: &mut Node, problems: &mut Vec<Problem>, known: &mut Known) -> bool {
    let Some(table) = root.as_table_mut() else {
        return false; // decoding says it better
    };
    let (templates, uses) = (table.remove(TEMPLATE), table.remove(USE));
    if templates.is_none() && uses.is_none() {
        return false;
    }
    let mut made = Made::default();
    let before = problems.len();
    made.all(templates, uses, problems);
    if problems.len() > before {
        // The others may name groups that are not there.
        known.add(TRAFFIC);
        known.add(HOSTS);
    }
    let origin = table.entry(TRAFFIC).map(|entry| entry.origin.clone());
    let origin = origin.or(made.origin).unwrap_or(Origin::Api);
    if !made.groups.is_empty() {
        if table.get(TRAFFIC).is_none() {
            table.insert(
                TRAFFIC,
                Node {
                    value: Value::Array(Vec::new()),
                    origin: origin.clone(),
                },
            );
        }
        if let Some(Node {
            value: Value::Array(groups),
            ..
        }) = table.get_mut(TRAFFIC)
        {
            groups.extend(made.groups);
        }
    }
    if !made.hosts.is_empty() {
        if table.get(HOSTS).is_none() {
            table.insert(HOSTS, Node::empty_table(origin));
        }
        let present = table.get_mut(HOSTS).and_then(Node::as_table_mut);
        if let Some(present) = present {
            for (name, node) in made.hosts {
                if present.get(&name).is_some() {
                    problems.push(Problem {
                        origin: node.origin.clone(),
                        key: Some(format!("{USE}.{name}")),
                        message: format!(
                            "[[{USE}]] {name:?}: [{HOSTS}.{name}] has this name too; accepted: a name of its own"
                        ),
                    });
                }
                present.insert(&name, node);
            }
        }
    }
    true
}

/// What uses have made.
#[derive(Default)]
struct Made {
    groups: Vec<Node>,
    hosts: Vec<(String, Node)>,
    origin: Option<Origin>,
}

impl Made {
    fn all(&mut self, templates: Option<Entry>, uses: Option<Entry>, problems: &mut Vec<Problem>) {
        let mut known: BTreeMap<&str, (&Entry, Option<Template<'_>>, bool)> = BTreeMap::new();
        if let Some(entry) = &templates {
            let Some(table) = entry.node.as_table() else {
                let shown = entry.node.shown();
                problems.push(Problem {
                    origin: entry.origin.clone(),
                    key: Some(TEMPLATE.to_owned()),
                    message: format!("{TEMPLATE} = {shown}: expected tables [{TEMPLATE}.NAME]"),
                });
                return;
            };
            for entry in table.entries() {
                let template = Template::of(entry);
                let sound = template.map_err(|problem| problems.push(problem)).ok();
                known.insert(&entry.key, (entry, sound, false));
            }
        }
        if let Some(entry) = &uses {
            self.origin = Some(entry.origin.clone());
            let list = entry.node.as_array().unwrap_or_default();
            if list.is_empty() {
                problems.push(Problem {
                    origin: entry.origin.clone(),
                    key: Some(USE.to_owned()),
                    message: format!(
                        "{USE} = {}: expected a list of tables, [[{USE}]]",
                        entry.node.shown()
                    ),
                });
            }
            let mut names: Vec<String> = Vec::new();
            for node in list {
                let wanted = match Use::of(node) {
                    Ok(wanted) => wanted,
                    Err(problem) => {
                        problems.push(problem);
                        continue;
                    }
                };
                if names.contains(&wanted.name) {
                    problems.push(wanted.problem(
                        NAME,
                        "is the name of another use too; accepted: a name of its own",
                    ));
                }
                names.push(wanted.name.clone());
                let accepted: Vec<&str> = known.keys().copied().collect();
                let Some((_, template, used)) = known.get_mut(wanted.template) else {
                    let hint = hint(wanted.template, &accepted);
                    let accepted = match accepted.as_slice() {
                        [] => format!("the name of a [{TEMPLATE}.NAME], and there is none"),
                        names => names.join(", "),
                    };
                    let clause = format!("is no template; accepted: {accepted}{hint}");
                    problems.push(wanted.problem(TEMPLATE_OF, &clause));
                    continue;
                };
                *used = true;
                if let Some(template) = template {
                    self.add(&wanted, template, problems);
                }
            }
        }
        let unused = known.values().filter(|(_, _, used)| !used);
        problems.extend(unused.map(|(entry, ..)| Problem {
            origin: entry.origin.clone(),
            key: Some(format!("{TEMPLATE}.{}", entry.key)),
            message: format!(
                "[{TEMPLATE}.{0}] is used nowhere; accepted: a [[{USE}]] with {TEMPLATE_OF} = {0:?}",
                entry.key
            ),
        }));
    }

    /// Adds the groups and the hosts of a use.
    fn add(&mut self, wanted: &Use<'_>, template: &Template<'_>, problems: &mut Vec<Problem>) {
        let mut hosts = match template.hosts {
            Some(entry) => entry.node.clone(),
            None => Node::empty_table(wanted.node.origin.clone()),
        };
        let mut groups: Vec<Node> = template.groups.to_vec();
        for (key, node) in &wanted.puts {
            let (first, rest) = key.split_once('.').unwrap_or((key, ""));
            let steps: Vec<&str> = rest.split('.').collect();
            let place = match first {
                HOSTS => Some(&mut hosts),
                _ => groups
                    .iter_mut()
                    .find(|group| paths::name_of(group) == Some(first)),
            };
            let result = match place {
                Some(_) if rest.is_empty() => Err(format!(
                    "names a whole table; name one of its keys, such as {first}.KEY"
                )),
                Some(place) => paths::put_below(place, first, &steps, node.clone()),
                None => {
                    let mut names = vec![HOSTS];
                    names.extend(template.groups.iter().filter_map(paths::name_of));
                    Err(format!(
                        "there is no group {first:?} in the template; accepted: {}{}",
                        names.join(", "),
                        hint(first, &names)
                    ))
                }
            };
            if let Err(reason) = result {
                let key = format!("{SET}.{key}");
                problems.push(Problem {
                    origin: node.origin.clone(),
                    message: format!("[[{USE}]] {:?}: {key}: {reason}", wanted.name),
                    key: Some(format!("{USE}.{}.{key}", wanted.name)),
                });
            }
        }
        if let Some(table) = hosts.as_table_mut() {
            table.insert(
                NUMBER,
                Node {
                    value: Value::Integer(i128::from(wanted.count)),
                    origin: wanted.count_origin.clone(),
                },
            );
        }
        self.hosts.push((wanted.name.clone(), hosts));
        for mut group in groups {
            let Some(table) = group.as_table_mut() else {
                continue; // refused with the template
            };
            let name = table.entry(NAME).map(|entry| entry.node.clone());
            let own = name.as_ref().and_then(Node::as_str).unwrap_or_default();
            let origin = name
                .as_ref()
                .map_or(&wanted.node.origin, |name| &name.origin);
            let full = format!("{}-{own}", wanted.name);
            table.insert(NAME, Node::text(&full, origin.clone()));
            table.insert(HOSTS, Node::text(&wanted.name, wanted.node.origin.clone()));
            let kind = table.get("kind").and_then(Node::as_str).unwrap_or_default();
            let key = TrafficParams::count_key_of(kind);
            let flows = match table.get(key).map(|node| &node.value) {
                None => Some(1),
                Some(Value::Integer(number)) => Some(*number),
                Some(_) => None, // decoding says it better
            };
            // A load is that of all users together.
            if let Some(flows) = flows.filter(|_| table.get("load").is_none()) {
                let origin = table
                    .get(key)
                    .map_or(&wanted.count_origin, |node| &node.origin);
                let node = Node {
                    value: Value::Integer(flows.saturating_mul(i128::from(wanted.count))),
                    origin: origin.clone(),
                };
                table.insert(key, node);
            }
            self.groups.push(group);
        }
    }
}

/// A template.
struct Template<'a> {
    hosts: Option<&'a Entry>,
    groups: &'a [Node],
}

impl<'a> Template<'a> {
    fn of(entry: &'a Entry) -> Result<Self, Problem> {
        let name = &entry.key;
        let at = |origin: &Origin, key: &str, message: String| Problem {
            origin: origin.clone(),
            key: Some(format!("{TEMPLATE}.{name}{key}")),
            message: format!("{TEMPLATE}.{name}{key} {message}"),
        };
        let groups_wanted = format!("accepted: groups of traffic, [[{TEMPLATE}.{name}.{TRAFFIC}]]");
        let Some(table) = entry.node.as_table() else {
            return Err(at(
                &entry.origin,
                "",
                format!("is no table; {groups_wanted}"),
            ));
        };
        for entry in table.entries() {
            let accepted = [TRAFFIC, HOSTS];
            if !accepted.contains(&entry.key.as_str()) {
                let hint = hint(&entry.key, &accepted);
                let message = format!(
                    "is no key of a template; accepted: {}{hint}",
                    accepted.join(", ")
                );
                return Err(at(&entry.origin, &format!(".{}", entry.key), message));
            }
        }
        let groups = table
            .get(TRAFFIC)
            .and_then(Node::as_array)
            .unwrap_or_default();
        if groups.is_empty() {
            return Err(at(
                &entry.origin,
                "",
                format!("has no group; {groups_wanted}"),
            ));
        }
        let mut names: Vec<&str> = Vec::new();
        for group in groups {
            let place = format!(".{TRAFFIC}");
            let Some(own) = paths::name_of(group).filter(|own| !own.is_empty()) else {
                let message = "has a group without a name; accepted: a name for each".to_owned();
                return Err(at(&group.origin, &place, message));
            };
            if own == HOSTS || names.contains(&own) {
                let message = format!(
                    "has a group {own:?}, which is the name of another part of the template; accepted: a name of its own"
                );
                return Err(at(&group.origin, &place, message));
            }
            names.push(own);
            let given = group.as_table().and_then(|table| table.entry(HOSTS));
            if let Some(given) = given {
                let message = format!(
                    "= {}, and the groups of a template sit on the hosts of its instances, [{TEMPLATE}.{name}.{HOSTS}]; \
                     accepted: no such key",
                    given.node.shown()
                );
                return Err(at(
                    &given.origin,
                    &format!("{place}.{own}.{HOSTS}"),
                    message,
                ));
            }
        }
        let hosts = table.entry(HOSTS);
        if let Some(hosts) = hosts {
            let Some(table) = hosts.node.as_table() else {
                let message = format!(
                    "= {}: expected a table of rates and delays",
                    hosts.node.shown()
                );
                return Err(at(&hosts.origin, &format!(".{HOSTS}"), message));
            };
            if let Some(number) = table.entry(NUMBER) {
                let message = format!(
                    "= {}, and each [[{USE}]] says by {COUNT} how many instances there are; accepted: no such key",
                    number.node.shown()
                );
                return Err(at(&number.origin, &format!(".{HOSTS}.{NUMBER}"), message));
            }
        }
        Ok(Template { hosts, groups })
    }
}

/// A use of a template.
struct Use<'a> {
    node: &'a Node,
    table: &'a Table,
    template: &'a str,
    name: String,
    count: u32,
    count_origin: Origin,
    /// The keys that it sets, in a group or in the hosts of the template.
    puts: Vec<(String, Node)>,
}

impl<'a> Use<'a> {
    fn of(node: &'a Node) -> Result<Self, Problem> {
        let refuse = |origin: &Origin, key: &str, message: String| {
            Err(Problem {
                origin: origin.clone(),
                key: Some(match key {
                    "" => USE.to_owned(),
                    key => format!("{USE}.{key}"),
                }),
                message,
            })
        };
        let Some(table) = node.as_table() else {
            let message = format!("{USE} = {}: expected a table, [[{USE}]]", node.shown());
            return refuse(&node.origin, "", message);
        };
        let unknown = |entry: &&Entry| !USE_KEYS.contains(&entry.key.as_str());
        if let Some(entry) = table.entries().iter().find(unknown) {
            let message = format!(
                "[[{USE}]]: there is no key {}; accepted: {}{}",
                entry.key,
                USE_KEYS.join(", "),
                hint(&entry.key, &USE_KEYS)
            );
            return refuse(&entry.origin, &entry.key, message);
        }
        let template = match table.entry(TEMPLATE_OF) {
            None => {
                let message = format!(
                    "[[{USE}]]: the key {TEMPLATE_OF} is missing; accepted: the name of a template"
                );
                return refuse(&node.origin, TEMPLATE_OF, message);
            }
            Some(entry) => match entry.node.as_str() {
                Some(template) => template,
                None => {
                    let shown = entry.node.shown();
                    let message = format!(
                        "[[{USE}]]: {TEMPLATE_OF} = {shown}: expected the name of a template, in quotes"
                    );
                    return refuse(&entry.origin, TEMPLATE_OF, message);
                }
            },
        };
        let name = match table.entry(NAME) {
            None => {
                let message = format!(
                    "[[{USE}]]: the key {NAME} is missing; accepted: a name, which the names of its groups begin with"
                );
                return refuse(&node.origin, NAME, message);
            }
            Some(entry) => match entry.node.as_str().filter(|name| !name.is_empty()) {
                Some(name) => name,
                None => {
                    let message = format!(
                        "[[{USE}]]: {NAME} = {}: expected a name, in quotes",
                        entry.node.shown()
                    );
                    return refuse(&entry.origin, NAME, message);
                }
            },
        };
        let mut found = Use {
            node,
            table,
            template,
            name: name.to_owned(),
            count: 1,
            count_origin: node.origin.clone(),
            puts: Vec::new(),
        };
        if let Some(entry) = table.entry(COUNT) {
            let number = match entry.node.value {
                Value::Integer(number) => u32::try_from(number).ok(),
                _ => None,
            };
            let Some(count) = number.filter(|count| (1..=MAX_FLOWS).contains(count)) else {
                let accepted = format!("is no number of instances; accepted: 1 to {MAX_FLOWS}");
                return Err(found.problem(COUNT, &accepted));
            };
            found.count = count;
            found.count_origin = entry.origin.clone();
        }
        if let Some(entry) = table.entry(SET) {
            let Some(set) = entry.node.as_table() else {
                let accepted = "is no table; accepted: keys of its groups and hosts, such as { web.users = 2 }";
                return Err(found.problem(SET, accepted));
            };
            keys_of_case("", set, &mut found.puts);
        }
        Ok(found)
    }

    /// A message about one of its keys.
    fn problem(&self, key: &str, clause: &str) -> Problem {
        let entry = self.table.entry(key);
        let value = entry.map_or(String::new(), |entry| format!(" = {}", entry.node.shown()));
        Problem {
            origin: entry
                .map_or(&self.node.origin, |entry| &entry.origin)
                .clone(),
            key: Some(format!("{USE}.{}.{key}", self.name)),
            message: format!("[[{USE}]] {:?}: {key}{value} {clause}", self.name),
        }
    }
}
