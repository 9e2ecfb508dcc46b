//! Tables of the experiment file whose names the user chooses, in which a text alone stands for a table.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::{MapAccessDeserializer, StrDeserializer};
use serde::de::{self, Deserializer, MapAccess, Visitor};
use serde::ser::Serializer;
use serde::{Deserialize, Serialize};

/// A table that a text alone can stand for.
pub trait OfText: Sized {
    /// What is accepted for one.
    const ONE: &'static str;
    /// What is accepted for all of them.
    const ALL: &'static str;
    /// The name in the schema.
    const SCHEMA: &'static str;
    /// The pattern of the names.
    const NAME: &'static str;

    /// The table that a text stands for.
    fn of_text(text: String) -> Self;
}

/// Tables by their names, in the order of the file.
#[derive(Debug, Clone, PartialEq)]
pub struct NamedTables<T>(pub Vec<(String, T)>);

/// One of these tables with its place.
#[derive(Debug, Clone, PartialEq)]
pub struct Placed<T> {
    /// The name.
    pub name: String,
    /// The table.
    pub params: T,
    /// The start of a message about it, such as `experiment.toml:14: `.
    pub place: String,
    /// The line of the file, when there is one.
    pub line: Option<u32>,
}

impl<T> NamedTables<T> {
    /// The tables, each with the place that `found_at` gives for its name.
    pub fn placed(self, found_at: impl Fn(&str) -> (String, Option<u32>)) -> Vec<Placed<T>> {
        let placed = |(name, params): (String, T)| {
            let (place, line) = found_at(&name);
            Placed {
                name,
                params,
                place,
                line,
            }
        };
        self.0.into_iter().map(placed).collect()
    }
}

impl<T> Default for NamedTables<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T: Serialize> Serialize for NamedTables<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, params)| (name, params)))
    }
}

/// A text alone, or a table.
struct TextOrTable<T>(T);

impl<'de, T: OfText + Deserialize<'de>> Deserialize<'de> for TextOrTable<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either<T>(PhantomData<T>);
        impl<'de, T: OfText + Deserialize<'de>> Visitor<'de> for Either<T> {
            type Value = TextOrTable<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(T::ONE)
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<TextOrTable<T>, E> {
                String::deserialize(StrDeserializer::new(text))
                    .map(|text| TextOrTable(T::of_text(text)))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<TextOrTable<T>, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map)).map(TextOrTable)
            }
        }
        deserializer.deserialize_any(Either(PhantomData))
    }
}

impl<'de, T: OfText + Deserialize<'de>> Deserialize<'de> for NamedTables<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Named<T>(PhantomData<T>);
        impl<'de, T: OfText + Deserialize<'de>> Visitor<'de> for Named<T> {
            type Value = NamedTables<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(T::ALL)
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<NamedTables<T>, A::Error> {
                let mut found = Vec::new();
                while let Some((name, TextOrTable(params))) =
                    map.next_entry::<String, TextOrTable<T>>()?
                {
                    found.push((name, params));
                }
                Ok(NamedTables(found))
            }
        }
        deserializer.deserialize_map(Named(PhantomData))
    }
}

impl<T: OfText + JsonSchema> JsonSchema for NamedTables<T> {
    fn schema_name() -> Cow<'static, str> {
        T::SCHEMA.into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let table = generator.subschema_for::<T>();
        json_schema!({
            "type": "object",
            "propertyNames": { "pattern": T::NAME },
            "additionalProperties": { "anyOf": [{ "type": "string" }, table] },
        })
    }
}
