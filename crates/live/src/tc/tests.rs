use std::collections::BTreeSet;

use redtail_core::schemars::generate::SchemaSettings;

use super::convert::{burst_for, exponent_of};
use super::*;

/// The keys of each kind in the schema: those of its classes and profiles, too, as `class.rate`.
fn keys_of_schema() -> BTreeSet<(String, String)> {
    let schema = SchemaSettings::draft2020_12()
        .into_generator()
        .into_root_schema_for::<QueueParams>();
    let schema = schema.to_value();
    let resolve = |schema: &Json| {
        let path = schema["$ref"].as_str();
        let name = path.and_then(|path| path.strip_prefix("#/$defs/"));
        name.map(str::to_owned)
    };
    let mut keys = BTreeSet::new();
    for each in schema["oneOf"].as_array().expect("kinds are alternatives") {
        let kind = each["properties"]["kind"]["const"]
            .as_str()
            .expect("it has a kind")
            .to_owned();
        let table = match resolve(each) {
            Some(name) => &schema["$defs"][name.as_str()],
            None => each,
        };
        for (key, about) in table["properties"].as_object().expect("it has keys") {
            if key == "kind" {
                continue;
            }
            keys.insert((kind.clone(), key.clone()));
            let Some(name) = resolve(&about["items"]) else {
                continue;
            };
            let entries = schema["$defs"][name.as_str()]["properties"].as_object();
            for inner in entries.into_iter().flat_map(|entries| entries.keys()) {
                keys.insert((kind.clone(), format!("{key}.{inner}")));
            }
        }
    }
    keys
}

#[test]
fn every_key_of_every_kind_of_the_table_has_one_row_and_every_row_a_key() {
    let kinds = kinds();
    let schema: BTreeSet<_> = keys_of_schema()
        .into_iter()
        .filter(|(kind, _)| kinds.contains(&kind.as_str()))
        .collect();
    let with_key = ROWS.iter().filter(|row| !row.key.is_empty());
    let table: Vec<_> = with_key
        .map(|row| (row.kind.to_owned(), row.key.to_owned()))
        .collect();
    let once: BTreeSet<_> = table.iter().cloned().collect();
    assert_eq!(once.len(), table.len(), "a key has two rows");
    let lacking: Vec<_> = schema.difference(&once).collect();
    assert!(lacking.is_empty(), "keys without a row: {lacking:?}");
    let unknown: Vec<_> = once.difference(&schema).collect();
    assert!(unknown.is_empty(), "rows without a key: {unknown:?}");
}

#[test]
fn every_kind_of_the_table_stands_in_one_piece() {
    let kinds = kinds();
    let once: BTreeSet<_> = kinds.iter().collect();
    assert_eq!(once.len(), kinds.len());
    assert!(kinds.iter().all(|kind| QueueParams::KINDS.contains(kind)));
}

#[test]
fn a_burst_is_found_for_each_exponent_and_has_it() {
    for min in [2.0, 20.0, 60.0, 1000.0] {
        let mut before = 0;
        for exponent in 1..=20 {
            let Some(burst) = burst_for(exponent, min) else {
                assert!(before == 0, "a gap at {exponent} for {min}");
                continue;
            };
            assert_eq!(exponent_of(burst, min), Some(exponent));
            assert!(burst > before);
            before = burst;
        }
        assert!(before > 0);
    }
}

#[test]
fn a_threshold_below_one_packet_has_no_burst() {
    assert!((1..=31).all(|exponent| burst_for(exponent, 0.5).is_none()));
}

#[test]
fn tc_refuses_a_burst_below_the_threshold() {
    // iproute2 6.1: "burst 55 is too small", with min 30000 and avpkt 500; 75 made exponent 5.
    assert_eq!(exponent_of(55, 60.0), None);
    assert_eq!(exponent_of(75, 60.0), Some(5));
}
