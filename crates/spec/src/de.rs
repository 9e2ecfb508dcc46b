//! From the tree to typed values: a serde deserializer that says where and why it fails.
//!
//! Enums are chosen by a key: a table gives `kind` as the variant's name and the rest of its keys
//! to the variant's struct. (serde's own tagged enums would copy the table first, and lose the
//! lines.)

use std::fmt;

use serde::de::value::StrDeserializer;
use serde::de::{
    self, DeserializeOwned, DeserializeSeed, EnumAccess, Expected, MapAccess, SeqAccess,
    Unexpected, VariantAccess, Visitor,
};
use serde::{Deserializer, forward_to_deserialize_any};

use crate::error::{Problem, did_you_mean};
use crate::node::{Entry, Node, Table, Value};
use crate::origin::Origin;
use crate::paths;
use crate::words;

/// The key that chooses the variant of an enum.
pub(crate) const KIND: &str = "kind";

/// Reads a `T` from the tree.
pub(crate) fn decode<T: DeserializeOwned>(node: &Node) -> Result<T, Fault> {
    T::deserialize(Reader::new(node)).map_err(|error| *error.at(node).0)
}

/// A value that does not fit, with its place in the tree.
#[derive(Debug)]
pub(crate) struct Fault {
    /// The steps from the refused value towards the root that have been added so far.
    path: Vec<Step>,
    /// The place and the text of the refused value, as soon as they are known.
    at: Option<(Origin, String)>,
    /// Whether that value is a list.
    list: bool,
    cause: Cause,
}

#[derive(Debug)]
enum Step {
    Key(String),
    Entry { number: usize, name: Option<String> },
}

#[derive(Debug)]
enum Cause {
    /// The value is refused, by a whole message.
    Message(String),
    /// The value is of another type, or out of range.
    Expected(String),
    /// The value is not one of those known.
    NotOneOf(&'static [&'static str]),
    UnknownKey {
        accepted: Vec<&'static str>,
    },
    MissingKey {
        key: String,
        accepted: Option<&'static [&'static str]>,
    },
}

impl Fault {
    fn new(cause: Cause) -> Self {
        Fault {
            path: Vec::new(),
            at: None,
            list: false,
            cause,
        }
    }

    /// Sets the place to that of `node`, unless a value inside it has set it already.
    fn settle(&mut self, node: &Node) {
        if self.at.is_none() {
            self.at = Some((node.origin.clone(), node.shown()));
            self.list = node.as_array().is_some_and(|entries| !entries.is_empty());
        }
    }

    /// The key of the value, dotted.
    pub(crate) fn key(&self) -> String {
        let mut text = String::new();
        for step in self.path.iter().rev() {
            match step {
                Step::Key(key) if text.is_empty() => text.push_str(key),
                Step::Key(key) => text.extend([".", key]),
                Step::Entry { name, number } if text == "chain.hop" => {
                    text = paths::hop_key(*number, name.as_deref());
                }
                Step::Entry {
                    name: Some(name), ..
                } => text.extend([".", name]),
                Step::Entry { number, .. } => text.push_str(&format!(" (entry {number})")),
            }
        }
        text
    }

    /// The key of what is wrong: of the value, or of what is missing.
    pub(crate) fn place(&self) -> String {
        match (&self.cause, self.key()) {
            (Cause::MissingKey { key, .. }, table) if table.is_empty() => key.clone(),
            (Cause::MissingKey { key, .. }, table) => format!("{table}.{key}"),
            (_, key) => key,
        }
    }

    /// Whether what is wrong is a stand-in of [`Fault::mended`].
    pub(crate) fn is_of_stand_in(&self) -> bool {
        (self.at.as_ref()).is_some_and(|(origin, _)| *origin == stand_in())
    }

    /// Whether a key is missing, and nothing that is there is wrong.
    pub(crate) fn is_missing(&self) -> bool {
        matches!(self.cause, Cause::MissingKey { .. })
    }

    /// Trees in which this is put right, in the order in which they should be tried. Some may be wrong there in
    /// another way.
    pub(crate) fn mended(&self, root: &Node) -> Vec<Node> {
        let steps: Vec<_> = self.path.iter().rev().collect();
        let changed = |change: &dyn Fn(&mut Node)| {
            let mut tree = root.clone();
            change(&mut tree);
            tree
        };
        // With another value of a key in a table, or without it.
        let with = |table: &[&Step], key: &str, value: Option<Node>| {
            changed(&|tree| {
                let Some(table) = inside(tree, table).and_then(Node::as_table_mut) else {
                    return;
                };
                match &value {
                    Some(value) => table.insert(key, value.clone()),
                    None => drop(table.remove(key)),
                }
            })
        };
        let name = steps.iter().rev().find_map(|step| match step {
            Step::Entry { name, .. } => name.clone(),
            Step::Key(_) => None,
        });
        let stand_ins = || stand_ins(&self.cause, name.as_deref().unwrap_or("x"));
        let replaced = |path: &[&Step]| -> Vec<Node> {
            let put = |value: Node| {
                changed(&|tree| {
                    if let Some(place) = inside(tree, path) {
                        *place = value.clone();
                    }
                })
            };
            stand_ins().into_iter().map(put).collect()
        };
        match (&self.cause, steps.as_slice()) {
            (Cause::MissingKey { key, .. }, table) if key != KIND => {
                let values = stand_ins().into_iter();
                values.map(|value| with(table, key, Some(value))).collect()
            }
            (Cause::UnknownKey { accepted }, [table @ .., Step::Key(key)]) => {
                let mut trees = Vec::new();
                let place = inside(&mut root.clone(), table).and_then(|node| {
                    let table = node.as_table()?;
                    let meant = meant(key, accepted).filter(|meant| table.get(meant).is_none())?;
                    Some((meant, table.get(key)?.clone()))
                });
                if let Some((meant, value)) = place {
                    // The value of a key that is misspelt is looked at as well.
                    let mut tree = with(table, key, None);
                    if let Some(table) = inside(&mut tree, table).and_then(Node::as_table_mut) {
                        table.insert(meant, value);
                    }
                    trees.push(tree);
                }
                trees.push(with(table, key, None));
                trees
            }
            (Cause::MissingKey { .. }, table) => replaced(table),
            // Of another kind it would have other keys.
            (_, [table @ .., Step::Key(kind)]) if kind == KIND => replaced(table),
            (_, [table @ .., Step::Key(key)]) => {
                let values = stand_ins().into_iter().map(Some);
                std::iter::once(None)
                    .chain(values)
                    .map(|value| with(table, key, value))
                    .collect()
            }
            (_, steps) => replaced(steps),
        }
    }

    /// For an unknown key: the keys that are accepted.
    pub(crate) fn accepted_keys(&self) -> Option<&[&'static str]> {
        match &self.cause {
            Cause::UnknownKey { accepted } => Some(accepted),
            _ => None,
        }
    }

    /// For a list in the place of one value: how to get a case for each entry.
    pub(crate) fn vary_hint(&self) -> Option<String> {
        let refused = matches!(self.cause, Cause::Expected(_) | Cause::NotOneOf(_));
        let key = self.key();
        let has_key = !key.is_empty() && !key.contains(' ');
        let (origin, value) = (self.at.as_ref()).filter(|_| self.list && refused && has_key)?;
        // A value too long for a message is not repeated in full.
        let value = match value.ends_with("...") {
            true => "[...]",
            false => value,
        };
        Some(match origin {
            Origin::Set(_) => format!("; to vary it, use --set 'factors.\"{key}\"={value}'"),
            _ => format!("; to vary it, give \"{key}\" = {value} under [factors]"),
        })
    }

    pub(crate) fn into_problem(self) -> Problem {
        let key = self.key();
        let (origin, value) = self.at.unwrap_or((Origin::Api, String::new()));
        let is = if key.is_empty() {
            value.clone()
        } else {
            format!("{key} = {value}")
        };
        let message = match self.cause {
            // Messages about quantities begin with the value; it need not be said twice.
            Cause::Message(words) => match words.strip_prefix(&value) {
                Some(rest) => is + rest,
                None => format!("{is}: {words}"),
            },
            Cause::Expected(wanted) => format!("{is}: expected {wanted}"),
            Cause::NotOneOf(known) => {
                let hint = hint(value.trim_matches('"'), known);
                format!("{is} is not known; accepted: {}{hint}", known.join(", "))
            }
            Cause::UnknownKey { accepted } => {
                let word = key.rsplit('.').next().unwrap_or_default();
                let hint = match word {
                    "random_loss" if accepted.contains(&"wire") => "; it is wire.loss now".into(),
                    _ => hint(word, &accepted),
                };
                format!(
                    "{key}: unknown key; accepted: {}{hint}",
                    accepted.join(", ")
                )
            }
            Cause::MissingKey {
                key: missing,
                accepted,
            } => {
                let accepted = accepted
                    .map(|kinds| format!("; accepted: {}", kinds.join(", ")))
                    .unwrap_or_default();
                let table = if key.is_empty() {
                    String::new()
                } else {
                    format!("{key}: ")
                };
                format!("{table}the key {missing:?} is missing{accepted}")
            }
        };
        Problem {
            origin,
            key: Some(key).filter(|key| !key.is_empty()),
            message,
        }
    }
}

/// `; did you mean "queue"?`, or nothing. For a word of another program `; did you mean "tail-drop" ("DropTail" in
/// ns-2)?`.
pub fn hint(word: &str, known: &[&str]) -> String {
    if let Some((ours, program)) = words::meaning(word, known) {
        return format!("; did you mean {ours:?} ({word:?} in {program})?");
    }
    did_you_mean(word, known.iter().copied())
        .map(|meant| format!("; did you mean {meant:?}?"))
        .unwrap_or_default()
}

/// The entry of `known` that [`hint`] names.
fn meant<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    let theirs = words::meaning(word, known).map(|(ours, _)| ours);
    theirs.or_else(|| did_you_mean(word, known.iter().copied()))
}

/// The node at a path.
fn inside<'t>(root: &'t mut Node, path: &[&Step]) -> Option<&'t mut Node> {
    path.iter()
        .try_fold(root, |here, step| match (step, &mut here.value) {
            (Step::Key(key), Value::Table(table)) => table.get_mut(key),
            (Step::Entry { number, .. }, Value::Array(nodes)) => nodes.get_mut(number - 1),
            _ => None,
        })
}

/// Values that some key accepts: one of each form that an experiment file has. `name` is that of the group or
/// class around the key.
fn stand_ins(cause: &Cause, name: &str) -> Vec<Node> {
    let text = |text: &str| Node::text(text, stand_in());
    let node = |value: Value| Node {
        value,
        origin: stand_in(),
    };
    let table = |entries: &[(&str, &str)]| {
        let mut table = Table::default();
        for (key, value) in entries {
            table.insert(key, text(value));
        }
        node(Value::Table(table))
    };
    let known = match cause {
        Cause::NotOneOf(known)
        | Cause::MissingKey {
            accepted: Some(known),
            ..
        } => known.first().copied(),
        _ => None,
    };
    let queue = table(&[(KIND, "tail-drop"), ("limit", "100 packets")]);
    let mut found: Vec<_> = known.into_iter().map(text).collect();
    found.extend(["10 Mbit/s", "10 ms", "10 kB", "100 packets", "x"].map(text));
    found.extend([Value::Integer(1), Value::Float(0.5), Value::Bool(true)].map(node));
    found.extend([
        queue.clone(),
        table(&[("name", name), (KIND, "bulk")]),
        node(Value::Array(vec![])),
        node(Value::Array(vec![table(&[("name", name), (KIND, "bulk")])])),
        table(&[]),
    ]);
    let mut link = table(&[("rate", "10 Mbit/s"), ("delay", "10 ms")]);
    if let Some(link) = link.as_table_mut() {
        link.insert("queue", queue);
    }
    found.push(link);
    found
}

/// Where stand-ins come from. No message has it: a tree in which one is wrong is not taken.
fn stand_in() -> Origin {
    Origin::Set("a stand-in".into())
}

/// A [`Fault`] as serde's error type. It is boxed to keep every `Result` small.
#[derive(Debug)]
struct Error(Box<Fault>);

impl Error {
    fn from(cause: Cause) -> Self {
        Error(Box::new(Fault::new(cause)))
    }

    fn at(mut self, node: &Node) -> Self {
        self.0.settle(node);
        self
    }

    /// The place of a key, for faults of the key itself and not of its value.
    fn at_key(mut self, entry: &Entry) -> Self {
        self.0.at = Some((entry.origin.clone(), entry.node.shown()));
        self.under(&entry.key)
    }

    fn under(mut self, key: &str) -> Self {
        self.0.path.push(Step::Key(key.to_owned()));
        self
    }

    fn in_entry(mut self, index: usize, node: &Node) -> Self {
        let name = node
            .as_table()
            .and_then(|table| table.get("name"))
            .and_then(Node::as_str);
        self.0.path.push(Step::Entry {
            number: index + 1,
            name: name.map(str::to_owned),
        });
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.0)
    }
}

impl std::error::Error for Error {}

impl de::Error for Error {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Error::from(Cause::Message(message.to_string()))
    }

    fn invalid_type(_: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Error::from(Cause::Expected(in_words(&expected.to_string())))
    }

    fn invalid_value(_: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Error::from(Cause::Expected(in_words(&expected.to_string())))
    }

    fn invalid_length(_: usize, expected: &dyn Expected) -> Self {
        Error::from(Cause::Expected(in_words(&expected.to_string())))
    }

    fn unknown_variant(_: &str, expected: &'static [&'static str]) -> Self {
        Error::from(Cause::NotOneOf(expected))
    }

    fn unknown_field(_: &str, expected: &'static [&'static str]) -> Self {
        Error::from(Cause::UnknownKey {
            accepted: expected.to_vec(),
        })
    }

    fn missing_field(key: &'static str) -> Self {
        Error::from(Cause::MissingKey {
            key: key.to_owned(),
            accepted: None,
        })
    }
}

/// Translates what serde's types expect into words for users who do not know Rust.
fn in_words(expected: &str) -> String {
    let words = match expected {
        "u8" => "a whole number from 0 to 255",
        "u16" => "a whole number from 0 to 65535",
        "u32" => "a whole number from 0 to 4294967295",
        "u64" | "usize" => "a whole number of at least 0",
        "i8" | "i16" | "i32" | "i64" => "a whole number",
        "f32" | "f64" => "a number",
        "a string" | "a borrowed string" => "a text in quotes",
        "a boolean" => "true or false",
        "a sequence" => "a list",
        "a map" => "a table",
        "any value" => "a text, a number, true or false, or a list or table of these",
        other if other.starts_with("struct ") => "a table",
        other => other,
    };
    words.to_owned()
}

struct Reader<'a> {
    node: &'a Node,
    /// The variant has been chosen, so `kind` is not a key of the struct.
    chosen: bool,
}

impl<'a> Reader<'a> {
    fn new(node: &'a Node) -> Self {
        Reader {
            node,
            chosen: false,
        }
    }

    fn entries(&self, table: &'a Table) -> impl Iterator<Item = &'a Entry> + use<'a> {
        let chosen = self.chosen;
        table
            .entries()
            .iter()
            .filter(move |entry| !chosen || entry.key != KIND)
    }
}

impl<'de> Deserializer<'de> for Reader<'_> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let result = match &self.node.value {
            Value::Bool(on) => visitor.visit_bool(*on),
            Value::Integer(number) => {
                if let Ok(number) = u64::try_from(*number) {
                    visitor.visit_u64(number)
                } else if let Ok(number) = i64::try_from(*number) {
                    visitor.visit_i64(number)
                } else {
                    visitor.visit_i128(*number)
                }
            }
            Value::Float(number) => visitor.visit_f64(*number),
            Value::String(text) => visitor.visit_str(text),
            Value::Other(text) => Err(de::Error::invalid_type(Unexpected::Other(text), &visitor)),
            Value::Array(nodes) => visitor.visit_seq(Entries {
                nodes: nodes.iter(),
                index: 0,
            }),
            Value::Table(table) => visitor.visit_map(Keys {
                entries: self.entries(table).collect::<Vec<_>>().into_iter(),
                current: None,
            }),
        };
        result.map_err(|error| error.at(self.node))
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        let Value::Table(table) = &self.node.value else {
            // Not left to the visitor: serde would also take a list for a struct.
            let table: &dyn Expected = &"a table";
            return Err(
                <Error as de::Error>::invalid_type(Unexpected::Other(""), table).at(self.node),
            );
        };
        if let Some(entry) = self
            .entries(table)
            .find(|entry| !fields.contains(&entry.key.as_str()))
        {
            let mut accepted = fields.to_vec();
            if self.chosen {
                accepted.insert(0, KIND);
            }
            return Err(Error::from(Cause::UnknownKey { accepted }).at_key(entry));
        }
        self.deserialize_any(visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        let (name, entry) = match &self.node.value {
            Value::String(text) => (text, None),
            Value::Table(table) => {
                let Some(entry) = table.entry(KIND) else {
                    let key = KIND.to_owned();
                    let missing = Cause::MissingKey {
                        key,
                        accepted: Some(variants),
                    };
                    return Err(Error::from(missing).at(self.node));
                };
                let Some(name) = as_string(&entry.node) else {
                    return Err(Error::from(Cause::NotOneOf(variants)).at_key(entry));
                };
                (name, Some(entry))
            }
            _ => return Err(Error::from(Cause::NotOneOf(variants)).at(self.node)),
        };
        if !variants.contains(&name.as_str()) {
            let error = Error::from(Cause::NotOneOf(variants));
            return Err(match entry {
                Some(entry) => error.at_key(entry),
                None => error.at(self.node),
            });
        }
        visitor
            .visit_enum(Chosen {
                name,
                node: self.node,
            })
            .map_err(|error| error.at(self.node))
    }

    /// serde asks this of a key that a struct does not have and was not told to refuse.
    fn deserialize_ignored_any<V: Visitor<'de>>(self, _visitor: V) -> Result<V::Value, Error> {
        Err(Error::from(Cause::UnknownKey {
            accepted: Vec::new(),
        })
        .at(self.node))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf
        unit unit_struct seq tuple tuple_struct map identifier
    }
}

fn as_string(node: &Node) -> Option<&String> {
    match &node.value {
        Value::String(text) => Some(text),
        _ => None,
    }
}

struct Entries<'a> {
    nodes: std::slice::Iter<'a, Node>,
    index: usize,
}

impl<'de> SeqAccess<'de> for Entries<'_> {
    type Error = Error;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Error> {
        let Some(node) = self.nodes.next() else {
            return Ok(None);
        };
        let index = self.index;
        self.index += 1;
        seed.deserialize(Reader::new(node))
            .map(Some)
            .map_err(|error| error.at(node).in_entry(index, node))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.nodes.len())
    }
}

struct Keys<'a> {
    entries: std::vec::IntoIter<&'a Entry>,
    current: Option<&'a Entry>,
}

impl<'de> MapAccess<'de> for Keys<'_> {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Error> {
        self.current = self.entries.next();
        let Some(entry) = self.current else {
            return Ok(None);
        };
        seed.deserialize(StrDeserializer::new(&entry.key))
            .map(Some)
            .map_err(|error: Error| error.at_key(entry))
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Error> {
        let entry = self.current.expect("serde asks for a value after its key");
        seed.deserialize(Reader::new(&entry.node))
            .map_err(|error| error.at(&entry.node).under(&entry.key))
    }
}

/// An enum whose variant is known, and the node that holds the rest of it.
struct Chosen<'a> {
    name: &'a str,
    node: &'a Node,
}

impl<'de> EnumAccess<'de> for Chosen<'_> {
    type Error = Error;
    type Variant = Self;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Self), Error> {
        let variant = seed.deserialize(StrDeserializer::<Error>::new(self.name))?;
        Ok((variant, self))
    }
}

impl<'de> VariantAccess<'de> for Chosen<'_> {
    type Error = Error;

    fn unit_variant(self) -> Result<(), Error> {
        Ok(())
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, Error> {
        if self.node.as_table().is_none() {
            let wanted = format!("a table such as {{ {KIND} = {:?}, ... }}", self.name);
            return Err(Error::from(Cause::Expected(wanted)));
        }
        seed.deserialize(Reader {
            node: self.node,
            chosen: true,
        })
    }

    fn tuple_variant<V: Visitor<'de>>(self, _len: usize, _visitor: V) -> Result<V::Value, Error> {
        Err(de::Error::custom(
            "no enum of ours has variants of this form",
        ))
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        Reader {
            node: self.node,
            chosen: true,
        }
        .deserialize_struct("", fields, visitor)
    }
}
