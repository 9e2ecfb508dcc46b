//! The hosts of a group: its own, or those of another group.

use std::borrow::Cow;
use std::fmt;

use redtail_core::schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use redtail_core::serde::de::{Error, Unexpected, Visitor};
use redtail_core::serde::{Deserialize, Deserializer, Serialize, Serializer};
use redtail_core::{Rate, Span};

use crate::bounds::MAX_FLOWS;
use crate::dealt::Dealt;

/// On which hosts the flows of a group sit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hosts {
    /// On so many of its own, on each side.
    Own(u32),
    /// On those of another group.
    Of {
        /// The name of this group.
        group: String,
        /// How many it has on each side; 0 until the groups of a file are seen together.
        count: u32,
    },
}

impl Hosts {
    /// Their number on each side, as far as it is known.
    pub fn count(&self) -> Option<u32> {
        match *self {
            Self::Own(count) => Some(count),
            Self::Of { count: 0, .. } => None,
            Self::Of { count, .. } => Some(count),
        }
    }

    /// The group whose hosts they are, if that is another one.
    pub fn group(&self) -> Option<&str> {
        match self {
            Self::Own(_) => None,
            Self::Of { group, .. } => Some(group),
        }
    }
}

impl Serialize for Hosts {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Own(count) => serializer.serialize_u32(*count),
            Self::Of { group, .. } => serializer.serialize_str(group),
        }
    }
}

impl<'de> Deserialize<'de> for Hosts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Read;
        impl Visitor<'_> for Read {
            type Value = Hosts;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(
                    f,
                    "a whole number from 1 to {MAX_FLOWS}, or the name of the group whose hosts they are"
                )
            }

            // Any `u32` passes, so that the check of a group can refuse it by its key.
            fn visit_u64<E: Error>(self, number: u64) -> Result<Hosts, E> {
                let refused = |_| E::invalid_value(Unexpected::Unsigned(number), &self);
                u32::try_from(number).map(Hosts::Own).map_err(refused)
            }

            fn visit_i64<E: Error>(self, number: i64) -> Result<Hosts, E> {
                let refused = |_| E::invalid_value(Unexpected::Signed(number), &self);
                u32::try_from(number).map(Hosts::Own).map_err(refused)
            }

            fn visit_str<E: Error>(self, name: &str) -> Result<Hosts, E> {
                Ok(Hosts::Of {
                    group: name.to_owned(),
                    count: 0,
                })
            }
        }
        deserializer.deserialize_any(Read)
    }
}

impl JsonSchema for Hosts {
    fn schema_name() -> Cow<'static, str> {
        "Hosts".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "anyOf": [
                { "type": "integer", "minimum": 1, "maximum": MAX_FLOWS },
                { "type": "string", "minLength": 1, "description": "the name of the group whose hosts they are" },
            ],
        })
    }
}

/// What a group takes over from the group whose hosts its flows sit on.
#[derive(Clone, Debug)]
pub struct TakenHosts {
    /// Number of the hosts on each side.
    pub count: u32,
    /// Rate of the links of the hosts that send in this group; `None` for the default.
    pub access_rate: Option<Dealt<Rate>>,
    /// Delay of these.
    pub access_delay: Dealt<Span>,
    /// Rate of the links of the hosts that receive in this group; `None` for the default.
    pub exit_rate: Option<Dealt<Rate>>,
    /// Delay of these.
    pub exit_delay: Dealt<Span>,
    /// Delay of the way back.
    pub return_delay: Dealt<Span>,
    /// First and last hop of a chain that its data crosses.
    pub hops: [Option<u32>; 2],
}
