//! The example that each queue gives of itself, for a limit. The tests and the cost benchmark use it.

use redtail_qdisc::QueueParams;
use serde::de::DeserializeOwned;
use toml::{Table, Value};

/// The example of a kind, whose keys are `keys`, with a limit of `packets`. All its other sizes in packets
/// change by the same factor, so that thresholds keep their share of the limit.
pub fn example(kind: &str, keys: &str, packets: u64) -> QueueParams {
    let mut table: Table = keys
        .parse()
        .unwrap_or_else(|error| panic!("the example of {kind}: {error}"));
    resize(&mut table, packets, 1.0);
    if !table.contains_key("limit") {
        let mut limited = table.clone();
        limited.insert("limit".to_owned(), sized(packets));
        // A queue that only holds other queues has no such key.
        if let Ok(spec) = read(kind, limited) {
            return spec;
        }
    }
    read(kind, table).unwrap_or_else(|error| panic!("the example of {kind}: {error}"))
}

fn sized(packets: u64) -> Value {
    Value::String(format!("{packets} packets"))
}

/// The number of packets, if `value` is a size in packets.
fn packets(value: &Value) -> Option<f64> {
    value.as_str()?.strip_suffix(" packets")?.parse().ok()
}

/// Sets the limit of this table and of the tables in it, and multiplies their other sizes in packets.
fn resize(table: &mut Table, limit: u64, factor: f64) {
    let given = table.get("limit").and_then(packets);
    let factor = given.map_or(factor, |given| limit as f64 / given);
    for value in table.iter_mut().map(|(_, value)| value) {
        resize_value(value, limit, factor);
    }
}

fn resize_value(value: &mut Value, limit: u64, factor: f64) {
    if let Some(size) = packets(value) {
        *value = sized((size * factor).round().max(1.0) as u64);
    }
    match value {
        Value::Table(table) => resize(table, limit, factor),
        Value::Array(values) => {
            for value in values {
                resize_value(value, limit, factor);
            }
        }
        _ => {}
    }
}

/// Reads the queue of this kind from its keys as the experiment file has them.
fn read(kind: &str, keys: Table) -> serde_json::Result<QueueParams> {
    let mut tagged = Table::new();
    tagged.insert(kind.to_owned(), Value::Table(by_kind(keys)));
    parameters(tagged)
}

/// The parameters that a table has. All tests read them from JSON: the compiler makes the code that reads all queues
/// anew for each form.
pub fn parameters<T: DeserializeOwned>(table: Table) -> serde_json::Result<T> {
    serde_json::to_value(table).and_then(serde_json::from_value)
}

/// The table with `{ kind = "KIND", ... }` in it replaced by `{ KIND = { ... } }`, the form that the types
/// themselves read.
fn by_kind(table: Table) -> Table {
    let replaced = |(key, value)| (key, value_by_kind(value));
    let mut table: Table = table.into_iter().map(replaced).collect();
    match table.remove("kind") {
        Some(Value::String(kind)) => [(kind, Value::Table(table))].into_iter().collect(),
        _ => table,
    }
}

fn value_by_kind(value: Value) -> Value {
    match value {
        Value::Table(table) => Value::Table(by_kind(table)),
        Value::Array(values) => Value::Array(values.into_iter().map(value_by_kind).collect()),
        other => other,
    }
}
