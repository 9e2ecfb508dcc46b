//! The experiment as a tree of values that know where they come from.

use std::fmt;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::error::{Problem, SpecError};
use crate::origin::Origin;

/// A value and where it comes from.
#[derive(Debug, Clone)]
pub struct Node {
    /// The value.
    pub value: Value,
    /// Where it begins.
    pub origin: Origin,
}

/// A value that a file can contain.
#[derive(Debug, Clone)]
pub enum Value {
    /// `true` or `false`.
    Bool(bool),
    /// A whole number; TOML and JSON together need more than `i64`.
    Integer(i128),
    /// A number with a fraction.
    Float(f64),
    /// A text.
    String(String),
    /// A list.
    Array(Vec<Node>),
    /// A table.
    Table(Table),
    /// A value that no key accepts: a date, a number out of every range, `null` in a list of JSON. It is kept as written.
    Other(String),
}

/// A table in the order of the file.
#[derive(Debug, Clone, Default)]
pub struct Table {
    entries: Vec<Entry>,
}

/// A key, where it stands, and its value.
#[derive(Debug, Clone)]
pub struct Entry {
    /// The key.
    pub key: String,
    /// Where the key stands; its value may begin further down.
    pub origin: Origin,
    /// The value.
    pub node: Node,
}

impl Table {
    /// All entries in order.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The entry of `key`.
    pub fn entry(&self, key: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.key == key)
    }

    /// The value of `key`.
    pub fn get(&self, key: &str) -> Option<&Node> {
        self.entry(key).map(|entry| &entry.node)
    }

    /// The value of `key`.
    pub fn get_mut(&mut self, key: &str) -> Option<&mut Node> {
        let entry = self.entries.iter_mut().find(|entry| entry.key == key)?;
        Some(&mut entry.node)
    }

    /// Sets the value of `key` to `node`; replaces the present value if there is one.
    pub fn insert(&mut self, key: &str, node: Node) {
        let entry = Entry {
            key: key.to_owned(),
            origin: node.origin.clone(),
            node,
        };
        match self.entries.iter_mut().find(|old| old.key == key) {
            Some(old) => *old = entry,
            None => self.entries.push(entry),
        }
    }

    /// Removes the entry of `key`.
    pub fn remove(&mut self, key: &str) -> Option<Entry> {
        let index = self.entries.iter().position(|entry| entry.key == key)?;
        Some(self.entries.remove(index))
    }
}

/// Values are equal if their contents are equal: neither their place nor the order of a table counts.
impl PartialEq for Node {
    fn eq(&self, other: &Self) -> bool {
        match (&self.value, &other.value) {
            (Value::Bool(a), Value::Bool(b)) => a == b,
            (Value::Integer(a), Value::Integer(b)) => a == b,
            (Value::Float(a), Value::Float(b)) => a == b,
            (Value::String(a), Value::String(b)) | (Value::Other(a), Value::Other(b)) => a == b,
            (Value::Array(a), Value::Array(b)) => a == b,
            (Value::Table(a), Value::Table(b)) => {
                a.entries.len() == b.entries.len()
                    && a.entries
                        .iter()
                        .all(|entry| b.get(&entry.key) == Some(&entry.node))
            }
            _ => false,
        }
    }
}

/// The longest text, in characters, that a message shows in full.
const SHOWN_AT_MOST: usize = 72;

impl Node {
    /// A text.
    pub fn text(text: &str, origin: Origin) -> Node {
        Node {
            value: Value::String(text.to_owned()),
            origin,
        }
    }

    /// An empty table.
    pub fn empty_table(origin: Origin) -> Node {
        Node {
            value: Value::Table(Table::default()),
            origin,
        }
    }

    /// The text, if it is one.
    pub fn as_str(&self) -> Option<&str> {
        match &self.value {
            Value::String(text) => Some(text),
            _ => None,
        }
    }

    /// The table, if it is one.
    pub fn as_table(&self) -> Option<&Table> {
        match &self.value {
            Value::Table(table) => Some(table),
            _ => None,
        }
    }

    /// The table, if it is one.
    pub fn as_table_mut(&mut self) -> Option<&mut Table> {
        match &mut self.value {
            Value::Table(table) => Some(table),
            _ => None,
        }
    }

    /// The list, if it is one.
    pub fn as_array(&self) -> Option<&[Node]> {
        match &self.value {
            Value::Array(nodes) => Some(nodes),
            _ => None,
        }
    }

    /// The value as in the file, for a message: on one line, shortened if it is long.
    pub fn shown(&self) -> String {
        let text = self.to_string();
        match text.char_indices().nth(SHOWN_AT_MOST) {
            Some((cut, _)) => format!("{}...", &text[..cut]),
            None => text,
        }
    }

    /// The same value as JSON.
    pub fn to_json(&self) -> serde_json::Value {
        use serde_json::Value as Json;
        match &self.value {
            Value::Bool(on) => Json::Bool(*on),
            Value::Integer(number) => i64::try_from(*number)
                .map(Json::from)
                .or_else(|_| u64::try_from(*number).map(Json::from))
                .unwrap_or_else(|_| Json::from(*number as f64)),
            Value::Float(number) => Json::from(*number),
            Value::String(text) | Value::Other(text) => Json::from(text.as_str()),
            Value::Array(nodes) => nodes.iter().map(Node::to_json).collect(),
            Value::Table(table) => table
                .entries
                .iter()
                .map(|entry| (entry.key.clone(), entry.node.to_json()))
                .collect(),
        }
    }

    /// Reads a JSON document. A `null` in a table is an absent key.
    pub fn from_json(text: &str, file: Option<&str>) -> Result<Node, SpecError> {
        let json: serde_json::Value = serde_json::from_str(text).map_err(|error| {
            let problem = Problem {
                origin: match u32::try_from(error.line()) {
                    Ok(line) if line > 0 => Origin::File { line },
                    _ => Origin::Api,
                },
                key: None,
                message: format!("not JSON: {error}"),
            };
            SpecError::new(file, vec![problem])
        })?;
        Ok(from_json_value(json))
    }

    /// Reads a TOML document.
    pub fn from_toml(text: &str, file: Option<&str>) -> Result<Node, SpecError> {
        let lines = Lines::new(text);
        match DeTable::parse(text) {
            Ok(table) => Ok(Node {
                value: Value::Table(from_table(table.get_ref(), &lines)),
                origin: Origin::File { line: 1 },
            }),
            Err(error) => {
                let offset = error.span().map_or(text.len(), |span| span.start);
                let (line, column) = lines.position(offset);
                let excerpt = lines.excerpt(offset);
                let problem = Problem {
                    origin: Origin::File { line },
                    key: None,
                    message: format!(
                        "not TOML at column {column}: {}\n{excerpt}",
                        error.message()
                    ),
                };
                Err(SpecError::new(file, vec![problem]))
            }
        }
    }

    /// Reads the value of a `--set` argument: TOML, or else a bare text, so that `10 Mbit/s` needs
    /// no quotes.
    pub fn from_argument(text: &str, origin: &Origin) -> Node {
        let mut node = match DeValue::parse(text) {
            Ok(value) => from_value(&value, &Lines::new(text)),
            Err(_) => Node::text(text, origin.clone()),
        };
        node.set_origin(origin);
        node
    }

    fn set_origin(&mut self, origin: &Origin) {
        self.origin = origin.clone();
        match &mut self.value {
            Value::Array(nodes) => nodes.iter_mut().for_each(|node| node.set_origin(origin)),
            Value::Table(table) => {
                for entry in &mut table.entries {
                    entry.origin = origin.clone();
                    entry.node.set_origin(origin);
                }
            }
            _ => {}
        }
    }
}

/// Shows the value in TOML, on one line.
impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.value {
            Value::Bool(on) => write!(f, "{on}"),
            Value::Integer(number) => write!(f, "{number}"),
            Value::Float(number) => write!(f, "{number:?}"),
            Value::String(text) => write!(f, "{text:?}"),
            Value::Other(text) => f.write_str(text),
            Value::Array(nodes) => {
                f.write_str("[")?;
                for (index, node) in nodes.iter().enumerate() {
                    write!(f, "{}{node}", if index == 0 { "" } else { ", " })?;
                }
                f.write_str("]")
            }
            Value::Table(table) if table.entries.is_empty() => f.write_str("{}"),
            Value::Table(table) => {
                f.write_str("{")?;
                for (index, entry) in table.entries.iter().enumerate() {
                    let separator = if index == 0 { " " } else { ", " };
                    write!(f, "{separator}{} = {}", entry.key, entry.node)?;
                }
                f.write_str(" }")
            }
        }
    }
}

fn from_json_value(json: serde_json::Value) -> Node {
    use serde_json::Value as Json;
    let value = match json {
        Json::Null => Value::Other("null".to_owned()),
        Json::Bool(on) => Value::Bool(on),
        Json::Number(number) => match number.as_i128() {
            Some(whole) => Value::Integer(whole),
            None => Value::Float(number.as_f64().unwrap_or(f64::NAN)),
        },
        Json::String(text) => Value::String(text),
        Json::Array(values) => Value::Array(values.into_iter().map(from_json_value).collect()),
        Json::Object(map) => {
            let mut table = Table::default();
            for (key, value) in map.into_iter().filter(|(_, value)| !value.is_null()) {
                table.insert(&key, from_json_value(value));
            }
            Value::Table(table)
        }
    };
    Node {
        value,
        origin: Origin::Api,
    }
}

fn from_table(table: &DeTable<'_>, lines: &Lines<'_>) -> Table {
    let mut entries: Vec<_> = table.iter().collect();
    // The parser sorts by name; we want the order of the file.
    entries.sort_by_key(|(key, _)| key.span().start);
    let entries = entries
        .into_iter()
        .map(|(key, value)| Entry {
            key: key.get_ref().to_string(),
            origin: lines.origin(key.span().start),
            node: from_value(value, lines),
        })
        .collect();
    Table { entries }
}

fn from_value(spanned: &Spanned<DeValue<'_>>, lines: &Lines<'_>) -> Node {
    let value = match spanned.get_ref() {
        DeValue::Boolean(on) => Value::Bool(*on),
        DeValue::Integer(number) => i128::from_str_radix(number.as_str(), number.radix())
            .map_or_else(|_| Value::Other(number.to_string()), Value::Integer),
        DeValue::Float(number) => Value::Float(number.as_str().parse().unwrap_or(f64::NAN)),
        DeValue::String(text) => Value::String(text.to_string()),
        DeValue::Datetime(date) => Value::Other(date.to_string()),
        DeValue::Array(values) => Value::Array(
            values
                .iter()
                .map(|value| from_value(value, lines))
                .collect(),
        ),
        DeValue::Table(table) => Value::Table(from_table(table, lines)),
    };
    Node {
        value,
        origin: lines.origin(spanned.span().start),
    }
}

/// Turns offsets into lines and columns.
struct Lines<'a> {
    text: &'a str,
    starts: Vec<usize>,
}

impl<'a> Lines<'a> {
    fn new(text: &'a str) -> Self {
        let after_breaks = text.match_indices('\n').map(|(offset, _)| offset + 1);
        Lines {
            text,
            starts: std::iter::once(0).chain(after_breaks).collect(),
        }
    }

    /// Index of the line that holds `offset`.
    fn index(&self, offset: usize) -> usize {
        self.starts.partition_point(|start| *start <= offset) - 1
    }

    /// The number of the line. The column is not computed here: with many values on one line that would
    /// take time in proportion to the square of their number.
    fn origin(&self, offset: usize) -> Origin {
        Origin::File {
            line: self.index(offset) as u32 + 1,
        }
    }

    /// Line and column, both counted from 1.
    fn position(&self, offset: usize) -> (u32, usize) {
        let index = self.index(offset);
        let before = self
            .text
            .get(self.starts[index]..offset)
            .unwrap_or_default();
        (index as u32 + 1, before.chars().count() + 1)
    }

    /// The line that contains `offset`, and below it a line with a mark at the column.
    fn excerpt(&self, offset: usize) -> String {
        let (number, column) = self.position(offset);
        let line = self
            .text
            .lines()
            .nth(number as usize - 1)
            .unwrap_or_default();
        let gutter = " ".repeat(number.to_string().len());
        let before = line.chars().take(column - 1);
        let indent: String = before.map(|c| if c == '\t' { c } else { ' ' }).collect();
        format!("{number} | {line}\n{gutter} | {indent}^")
    }
}
