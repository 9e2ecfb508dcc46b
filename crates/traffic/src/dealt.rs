//! Quantities dealt out to the flows of a group.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use redtail_core::schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use redtail_core::serde::de::{self, SeqAccess, Visitor};
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
        match self.0.as_slice() {
            [one] => one.serialize(serializer),
            list => list.serialize(serializer),
        }
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Dealt<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct DealtVisitor<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> DealtVisitor<T> {
            fn scalar<E: de::Error>(
                value: impl de::IntoDeserializer<'de, E>,
            ) -> Result<Dealt<T>, E> {
                T::deserialize(value.into_deserializer()).map(Dealt::one)
            }
        }

        impl<'de, T: Deserialize<'de>> Visitor<'de> for DealtVisitor<T> {
            type Value = Dealt<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a value, or a list of values dealt out to the flows in turn")
            }

            // Scalars go to the value's own type, which words its own errors.
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Dealt<T>, E> {
                Self::scalar(text)
            }
            fn visit_bool<E: de::Error>(self, value: bool) -> Result<Dealt<T>, E> {
                Self::scalar(value)
            }
            fn visit_i64<E: de::Error>(self, value: i64) -> Result<Dealt<T>, E> {
                Self::scalar(value)
            }
            fn visit_u64<E: de::Error>(self, value: u64) -> Result<Dealt<T>, E> {
                Self::scalar(value)
            }
            fn visit_f64<E: de::Error>(self, value: f64) -> Result<Dealt<T>, E> {
                Self::scalar(value)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Dealt<T>, A::Error> {
                let mut values = Vec::new();
                while let Some(value) = seq.next_element()? {
                    values.push(value);
                }
                if values.is_empty() {
                    return Err(de::Error::invalid_length(
                        0,
                        &"a list with at least one value",
                    ));
                }
                Ok(Dealt(values))
            }
        }

        deserializer.deserialize_any(DealtVisitor(PhantomData))
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
