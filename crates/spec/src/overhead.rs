//! What a link adds to each packet, as the experiment file has it.

use std::borrow::Cow;
use std::fmt;

use redtail_qdisc::link_layer::LinkLayerParams;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, Deserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize};

/// Words of tc-cake, or a table. Both are the same run, which has the table.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Overhead(pub LinkLayerParams);

impl<'de> Deserialize<'de> for Overhead {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = Overhead;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(
                    "words of tc-cake such as \"docsis\", or a table with bytes, mpu and framing",
                )
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Overhead, E> {
                LinkLayerParams::named(text)
                    .map(Overhead)
                    .map_err(E::custom)
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Overhead, A::Error> {
                LinkLayerParams::deserialize(MapAccessDeserializer::new(map)).map(Overhead)
            }
        }
        deserializer.deserialize_any(Either)
    }
}

impl JsonSchema for Overhead {
    fn schema_name() -> Cow<'static, str> {
        "LinkOverhead".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let table = generator.subschema_for::<LinkLayerParams>();
        json_schema!({ "anyOf": [{ "type": "string" }, table] })
    }
}
