//! The schema says what editors complete and check.

use redtail_qdisc::QueueParams;
use redtail_spec::{FORMAT, schema};
use serde_json::{Value, json};

fn at(pointer: &str) -> Value {
    let schema = schema();
    schema
        .pointer(pointer)
        .unwrap_or_else(|| panic!("the schema has no {pointer}"))
        .clone()
}

#[test]
fn kinds_are_constants_and_their_keys_are_closed() {
    let queues = at("/$defs/QueueSpec/oneOf");
    let kinds: Vec<_> = queues
        .as_array()
        .unwrap()
        .iter()
        .map(|queue| &queue["properties"]["kind"]["const"])
        .collect();
    assert_eq!(kinds, QueueParams::KINDS);
    assert_eq!(
        at("/$defs/QueueSpec/oneOf/1/additionalProperties"),
        json!(false)
    );
    assert_eq!(
        at("/$defs/QueueSpec/oneOf/1/properties/label/type"),
        "string"
    );
    assert_eq!(
        at("/$defs/TrafficGroup/oneOf/0/properties/kind/const"),
        "bulk"
    );
}

#[test]
fn defaults_units_and_sources_are_visible() {
    assert_eq!(
        at("/$defs/QueueSpec/oneOf/1/properties/w_q"),
        json!({
            "type": "number", "format": "double", "default": 0.002,
            "description": "Weight of one arrival's sample in the moving average; with `tune`, computed unless given.",
            "x-source": "Floyd and Jacobson 1993, section VI.",
        })
    );
    assert_eq!(at("/$defs/Rate/x-unit"), "rate");
    assert_eq!(at("/properties/warmup/default"), "0 s");
    assert_eq!(at("/properties/format/default"), FORMAT);
    assert_eq!(at("/properties/format/enum"), json!([FORMAT]));
    let text = schema().to_string();
    assert!(!text.contains("Source:"), "sources are apart");
    assert!(!text.contains("null"), "TOML has no null");
}

#[test]
fn queues_within_queues_and_classes_within_classes_refer_to_their_kind() {
    let queue = "#/$defs/QueueSpec";
    assert_eq!(at("/$defs/PrioClass/properties/queue/$ref"), queue);
    assert_eq!(at("/$defs/HtbClass/properties/queue/$ref"), queue);
    assert_eq!(
        at("/$defs/HtbClass/properties/class/items/$ref"),
        "#/$defs/HtbClass"
    );
    let rule = "#/$defs/Rule";
    assert_eq!(at("/$defs/WfqClass/properties/match/anyOf/0/$ref"), rule);
    assert_eq!(
        at("/$defs/WfqClass/properties/match/anyOf/1/items/$ref"),
        rule
    );
}

#[test]
fn every_key_has_a_description() {
    fn check(value: &Value, path: &str) {
        if let Some(properties) = value.get("properties").and_then(Value::as_object) {
            for (key, property) in properties {
                assert!(
                    key == "kind" || property.get("description").is_some(),
                    "{path}/{key}"
                );
            }
        }
        match value {
            Value::Object(map) => map
                .iter()
                .for_each(|(key, value)| check(value, &format!("{path}/{key}"))),
            Value::Array(list) => list.iter().for_each(|value| check(value, path)),
            _ => {}
        }
    }
    check(&schema(), "");
}

#[test]
fn what_the_types_leave_to_other_layers_is_added() {
    assert_eq!(
        at("/$schema"),
        "https://json-schema.org/draft/2020-12/schema"
    );
    assert_eq!(at("/properties/factors/type"), "object");
    assert_eq!(
        at("/oneOf"),
        json!([{ "required": ["bottleneck"] }, { "required": ["chain"] }])
    );
    assert_eq!(
        at("/anyOf"),
        json!([{ "required": ["traffic"] }, { "required": ["use"] }])
    );
}
