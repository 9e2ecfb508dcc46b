//! Metrics that the experiment file derives from others by a formula. Nothing is computed here: formulas
//! are for the results, and no run depends on them.

use std::borrow::Cow;
use std::fmt;

use redtail_core::params;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::{MapAccessDeserializer, StrDeserializer};
use serde::de::{self, Deserializer, MapAccess, Visitor};
use serde::ser::Serializer;
use serde::{Deserialize, Serialize};

params! {
    /// A metric that follows from others by a formula.
    #[schemars(rename = "DerivedMetric")]
    pub struct DerivedMetricParams {
        /// How it is computed from the metrics of a run: numbers, names of metrics, `+ - * /`, parentheses, `min(…)` and `max(…)`. A name with `-` in it stands in single quotes: `'bbr-1.goodput'`.
        formula: String;
        /// Name in figures.
        title: Option<String>, "the formula.";
        /// Name at the head of a column.
        short: Option<String>, "the name of the metric.";
        /// Unit in which it is shown, which has to suit the formula: `"%"` or `"1"` of a ratio, `"ms"` of a time, `"Mbit/s"` of a rate.
        unit: Option<String>, "that of the formula; of a time ms, of a rate Mbit/s, of a ratio 1.";
    }
}

/// The metrics of the table `[metrics]` by their names, in the order of the file.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct DerivedMetrics(pub Vec<(String, DerivedMetricParams)>);

/// A metric of `[metrics]` with its place.
#[derive(Debug, Clone, PartialEq)]
pub struct Derived {
    /// The name.
    pub name: String,
    /// The rest.
    pub params: DerivedMetricParams,
    /// The start of a message about it, such as `experiment.toml:14: `.
    pub place: String,
    /// The line of the file, when there is one.
    pub line: Option<u32>,
}

impl Serialize for DerivedMetrics {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, params)| (name, params)))
    }
}

/// A formula alone, or a table.
struct TextOrTable(DerivedMetricParams);

impl<'de> Deserialize<'de> for TextOrTable {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = TextOrTable;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(
                    "a formula such as \"a.goodput / b.goodput\", or a table with formula, title, \
                     short, unit",
                )
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<TextOrTable, E> {
                String::deserialize(StrDeserializer::new(text))
                    .map(|formula| TextOrTable(DerivedMetricParams::new(formula)))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<TextOrTable, A::Error> {
                DerivedMetricParams::deserialize(MapAccessDeserializer::new(map)).map(TextOrTable)
            }
        }
        deserializer.deserialize_any(Either)
    }
}

impl<'de> Deserialize<'de> for DerivedMetrics {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Named;
        impl<'de> Visitor<'de> for Named {
            type Value = DerivedMetrics;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a table of formulas by name, such as share = \"a.goodput / goodput\"")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<DerivedMetrics, A::Error> {
                let mut found = Vec::new();
                while let Some((name, TextOrTable(params))) = map.next_entry::<String, _>()? {
                    found.push((name, params));
                }
                Ok(DerivedMetrics(found))
            }
        }
        deserializer.deserialize_map(Named)
    }
}

impl JsonSchema for DerivedMetrics {
    fn schema_name() -> Cow<'static, str> {
        "DerivedMetrics".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let table = generator.subschema_for::<DerivedMetricParams>();
        json_schema!({
            "type": "object",
            "propertyNames": { "pattern": "^[A-Za-z][A-Za-z0-9_]*$" },
            "additionalProperties": { "anyOf": [{ "type": "string" }, table] },
        })
    }
}
