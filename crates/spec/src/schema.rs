//! The JSON schema of the experiment file, made from the types that read it.

use schemars::Schema;
use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use serde_json::{Map, Value, json};

use crate::experiment::Experiment;

/// The JSON schema (draft 2020-12) of the experiment file.
///
/// Beyond the standard's words, `x-unit` gives the dimension of a quantity, `x-source` says where a
/// default comes from, `x-dealt` marks quantities of which a list is dealt out to flows, and `x-form`
/// shows a text that no type of its own describes.
pub fn schema() -> Value {
    let settings = SchemaSettings::draft2020_12()
        .with_transform(RecursiveTransform(without_null))
        .with_transform(RecursiveTransform(source_apart));
    let mut schema = settings
        .into_generator()
        .into_root_schema_for::<Experiment>();
    schema.insert("title".into(), "redtail experiment".into());
    schema.insert(
        "description".into(),
        "A link, some traffic and a few queues to compare. Quantities carry their unit.".into(),
    );
    // What the types leave to the layers before and after them: factors, labels, and that exactly
    // one topology is given.
    if let Some(properties) = schema
        .pointer_mut("/properties")
        .and_then(Value::as_object_mut)
    {
        properties.insert("factors".into(), factors());
        properties.insert("case".into(), cases());
        properties.insert("template".into(), templates());
        properties.insert("use".into(), uses());
    }
    // Uses of templates may make all groups.
    let required = schema
        .pointer_mut("/required")
        .and_then(Value::as_array_mut);
    if let Some(keys) = required {
        keys.retain(|key| key != "traffic");
    }
    schema.insert(
        "anyOf".into(),
        json!([{ "required": ["traffic"] }, { "required": ["use"] }]),
    );
    schema.insert(
        "oneOf".into(),
        json!([{ "required": ["bottleneck"] }, { "required": ["chain"] }]),
    );
    // A link with a trace may leave its rate out.
    for link in ["Hop", "LinkSpec"] {
        let required = schema.pointer_mut(&format!("/$defs/{link}/required"));
        if let Some(keys) = required.and_then(Value::as_array_mut) {
            keys.retain(|key| key != "rate");
        }
    }
    let queues = schema
        .pointer_mut("/$defs/QueueSpec/oneOf")
        .and_then(Value::as_array_mut);
    for queue in queues.into_iter().flatten() {
        if let Some(properties) = queue.get_mut("properties").and_then(Value::as_object_mut) {
            properties.insert("label".into(), label());
        }
    }
    schema.to_value()
}

fn factors() -> Value {
    json!({
        "type": "object",
        "description": "Keys that take several values in turn; every combination is a case. \
            A key is dotted: \"bottleneck.queue\", \"traffic.ftp.flows\" (the group named ftp), \
            \"chain.hop2.rate\". Those in a table of [[factors.zip]] take their \
            values in step, as many of each.",
        "additionalProperties": {
            "anyOf": [
                { "type": "array", "minItems": 1 },
                { "type": "object", "description": "A key written without quotes." },
            ],
        },
    })
}

fn cases() -> Value {
    json!({
        "type": "array",
        "minItems": 1,
        "description": "List of cases, each with a name and the dotted keys that it sets. With \
            factors, every case is combined with every combination of their values.",
        "items": {
            "type": "object",
            "properties": {
                "name": {
                    "type": "string",
                    "description": "Name of the case in tables and legends.",
                },
            },
            "minProperties": 1,
        },
    })
}

fn templates() -> Value {
    json!({
        "type": "object",
        "description": "Templates of groups by their names. A [[use]] makes the groups of one many times.",
        "additionalProperties": {
            "type": "object",
            "properties": {
                "traffic": {
                    "type": "array",
                    "minItems": 1,
                    "items": { "type": "object" },
                    "description": "The groups of each instance, with the keys of [[traffic]] but `hosts`.",
                },
                "hosts": {
                    "type": "object",
                    "description": "The hosts of each instance, with the keys of [hosts.NAME] but `number`.",
                },
            },
            "required": ["traffic"],
            "additionalProperties": false,
        },
    })
}

fn uses() -> Value {
    json!({
        "type": "array",
        "minItems": 1,
        "description": "Uses of templates: each makes the groups of a template for so many instances, whose results stand \
            together as those of NAME-GROUP.",
        "items": {
            "type": "object",
            "properties": {
                "template": { "type": "string", "description": "Name of the template." },
                "name": {
                    "type": "string",
                    "description": "Name of the use, which the names of its groups begin with.",
                },
                "count": {
                    "type": "integer",
                    "minimum": 1,
                    "maximum": redtail_traffic::MAX_FLOWS,
                    "default": 1,
                    "description": "Number of instances, each with a host of its own.",
                },
                "set": {
                    "type": "object",
                    "description": "Dotted keys of groups and hosts of the template, and their values here.",
                },
            },
            "required": ["template", "name"],
            "additionalProperties": false,
        },
    })
}

fn label() -> Value {
    json!({
        "type": "string",
        "description": "Name of this queue in tables and legends; it does not affect the run.",
    })
}

/// TOML has no null: a key that may be absent is left out.
fn without_null(schema: &mut Schema) {
    let Some(object) = schema.as_object_mut() else {
        return;
    };
    if let Some(Value::Array(types)) = object.get_mut("type") {
        types.retain(|name| name != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            object.insert("type".into(), only);
        }
    }
    if object.get("default").is_some_and(Value::is_null) {
        object.remove("default");
    }
    if let Some(Value::Object(keys)) = object.get_mut("default") {
        keys.retain(|_, value| !value.is_null());
    }
    if let Some(Value::Array(alternatives)) = object.get_mut("anyOf") {
        alternatives.retain(|alternative| alternative != &json!({ "type": "null" }));
        if let [Value::Object(only)] = alternatives.as_slice() {
            let only = only.clone();
            object.remove("anyOf");
            merge(object, only);
        }
    }
}

/// Adds the keys of `other` that `object` does not have.
fn merge(object: &mut Map<String, Value>, other: Map<String, Value>) {
    for (key, value) in other {
        object.entry(key).or_insert(value);
    }
}

/// Doc comments may end with lines "Source: ..."; they go to a key of their own, and wrapped lines
/// are joined.
fn source_apart(schema: &mut Schema) {
    let Some(object) = schema.as_object_mut() else {
        return;
    };
    let Some(Value::String(text)) = object.get("description") else {
        return;
    };
    let (words, source) = match text.split_once("\nSource:") {
        Some((words, source)) => (words, Some(one_line(source))),
        None => (text.as_str(), None),
    };
    let words = paragraphs(words);
    object.insert("description".into(), words.into());
    if let Some(source) = source {
        object.insert("x-source".into(), source.into());
    }
}

fn paragraphs(text: &str) -> String {
    let paragraphs: Vec<_> = text.trim().split("\n\n").map(one_line).collect();
    paragraphs.join("\n\n")
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
