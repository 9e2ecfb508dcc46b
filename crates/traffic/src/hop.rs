//! A hop of a chain, as a group names it.

use std::borrow::Cow;
use std::fmt;

use redtail_core::schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use redtail_core::serde::de::{Error, Unexpected, Visitor};
use redtail_core::serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A hop of a chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChainHop {
    /// By its number, counted from 1.
    Number(u32),
    /// By its name, until the chain of the file is seen.
    Named(String),
}

impl ChainHop {
    /// Its number, as far as it is known.
    pub fn number(&self) -> Option<u32> {
        match self {
            Self::Number(number) => Some(*number),
            Self::Named(_) => None,
        }
    }
}

impl Serialize for ChainHop {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Number(number) => serializer.serialize_u32(*number),
            Self::Named(name) => serializer.serialize_str(name),
        }
    }
}

impl<'de> Deserialize<'de> for ChainHop {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Read;
        impl Visitor<'_> for Read {
            type Value = ChainHop;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the name of a hop, or its number, counted from 1")
            }

            // Any `u32` passes, so that the check of an experiment can refuse it by its key.
            fn visit_u64<E: Error>(self, number: u64) -> Result<ChainHop, E> {
                let refused = |_| E::invalid_value(Unexpected::Unsigned(number), &self);
                u32::try_from(number).map(ChainHop::Number).map_err(refused)
            }

            fn visit_i64<E: Error>(self, number: i64) -> Result<ChainHop, E> {
                let refused = |_| E::invalid_value(Unexpected::Signed(number), &self);
                u32::try_from(number).map(ChainHop::Number).map_err(refused)
            }

            fn visit_str<E: Error>(self, name: &str) -> Result<ChainHop, E> {
                Ok(ChainHop::Named(name.to_owned()))
            }
        }
        deserializer.deserialize_any(Read)
    }
}

impl JsonSchema for ChainHop {
    fn schema_name() -> Cow<'static, str> {
        "ChainHop".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "anyOf": [
                { "type": "integer", "minimum": 1 },
                { "type": "string", "minLength": 1, "description": "the name of a hop" },
            ],
        })
    }
}
