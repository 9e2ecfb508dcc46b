//! Quantities dealt out to the flows of a group.

use std::borrow::Cow;

use redtail_core::one_or_list::{self, OneOrList};
use redtail_core::schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use redtail_core::serde::{Deserialize, Deserializer, Serialize, Serializer};

/// One value for all flows of a group, or a list dealt out to them in turn:
/// flow i takes entry i modulo the list's length.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dealt<T>(Vec<T>);

impl<T> Dealt<T> {
    /// The same value for every flow.
    pub fn one(value: T) -> Self {
        Self(vec![value])
    }

    /// A list to deal out.
    ///
    /// # Panics
    /// If the list is empty.
    pub fn list(values: Vec<T>) -> Self {
        assert!(!values.is_empty(), "nothing to deal out");
        Self(values)
    }

    /// The value of flow (or host) `i`.
    pub fn get(&self, i: usize) -> &T {
        &self.0[i % self.0.len()]
    }

    /// The distinct positions of the list.
    pub fn values(&self) -> &[T] {
        &self.0
    }
}

impl<T: Serialize> Serialize for Dealt<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        one_or_list::serialize(&self.0, serializer)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Dealt<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let read = OneOrList {
            expected: "a value, or a list of values dealt out to the flows in turn",
            tables: false,
        };
        read.deserialize(deserializer).map(Self)
    }
}

impl<T: JsonSchema> JsonSchema for Dealt<T> {
    fn schema_name() -> Cow<'static, str> {
        format!("Dealt_{}", T::schema_name()).into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let value = generator.subschema_for::<T>();
        json_schema!({
            "anyOf": [value, { "type": "array", "items": value, "minItems": 1 }],
            "x-dealt": true,
        })
    }
}
