//! How much a queue may hold.

use std::borrow::Cow;
use std::fmt;

use redtail_core::schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use redtail_core::serde::de::{self, IntoDeserializer, SeqAccess, Visitor};
use redtail_core::serde::{Deserialize, Deserializer, Serialize, Serializer};
use redtail_core::{Bytes, ParamError, QueueSize};

use crate::Backlog;

/// A limit on waiting packets, on waiting bytes, or on both.
///
/// In the file: `"300 packets"`, `"450 kB"`, or `["300 packets", "450 kB"]`.
/// The packet in transmission does not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// Most waiting packets; `None` is no limit of this kind.
    pub packets: Option<u64>,
    /// Most waiting bytes; `None` is no limit of this kind.
    pub bytes: Option<u64>,
}

impl Limit {
    /// A limit in packets alone.
    pub const fn packets(packets: u64) -> Self {
        Self {
            packets: Some(packets),
            bytes: None,
        }
    }

    /// A limit in bytes alone.
    pub const fn bytes(bytes: u64) -> Self {
        Self {
            packets: None,
            bytes: Some(bytes),
        }
    }

    /// Whether a packet of `size` may join `backlog`.
    #[inline]
    pub fn admits(&self, backlog: Backlog, size: Bytes) -> bool {
        self.packets.is_none_or(|limit| backlog.packets < limit)
            && self
                .bytes
                .is_none_or(|limit| backlog.bytes + size.as_u64() <= limit)
    }

    /// Refuses a limit that admits nothing.
    ///
    /// # Errors
    /// [`ParamError`] when a part of the limit is zero.
    pub fn check(&self) -> Result<(), ParamError> {
        if self.packets == Some(0) || self.bytes == Some(0) {
            return Err(ParamError::new(
                "limit",
                "would drop every packet",
                "at least \"1 packet\", or at least one packet's size in bytes",
            ));
        }
        Ok(())
    }

    fn parts(&self) -> impl Iterator<Item = QueueSize> {
        let packets = self.packets.map(QueueSize::Packets);
        let bytes = self.bytes.map(QueueSize::Bytes);
        packets.into_iter().chain(bytes)
    }
}

impl From<QueueSize> for Limit {
    fn from(size: QueueSize) -> Self {
        match size {
            QueueSize::Packets(packets) => Self::packets(packets),
            QueueSize::Bytes(bytes) => Self::bytes(bytes),
        }
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, part) in self.parts().enumerate() {
            let separator = if i == 0 { "" } else { " and " };
            write!(f, "{separator}{part}")?;
        }
        Ok(())
    }
}

impl Serialize for Limit {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match (self.packets, self.bytes) {
            (Some(_), Some(_)) => serializer.collect_seq(self.parts()),
            (Some(packets), None) => QueueSize::Packets(packets).serialize(serializer),
            (None, Some(bytes)) => QueueSize::Bytes(bytes).serialize(serializer),
            (None, None) => unreachable!("a limit has at least one part"),
        }
    }
}

impl<'de> Deserialize<'de> for Limit {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct LimitVisitor;

        impl<'de> Visitor<'de> for LimitVisitor {
            type Value = Limit;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("\"300 packets\", \"450 kB\", or a list of one of each")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Limit, E> {
                text.parse::<QueueSize>()
                    .map(Limit::from)
                    .map_err(E::custom)
            }

            // A bare number has lost its unit: the size says so in its own words.
            fn visit_i64<E: de::Error>(self, number: i64) -> Result<Limit, E> {
                QueueSize::deserialize(number.into_deserializer()).map(Limit::from)
            }
            fn visit_u64<E: de::Error>(self, number: u64) -> Result<Limit, E> {
                QueueSize::deserialize(number.into_deserializer()).map(Limit::from)
            }
            fn visit_f64<E: de::Error>(self, number: f64) -> Result<Limit, E> {
                QueueSize::deserialize(number.into_deserializer()).map(Limit::from)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Limit, A::Error> {
                let mut limit = Limit {
                    packets: None,
                    bytes: None,
                };
                while let Some(size) = seq.next_element()? {
                    let (part, value) = match size {
                        QueueSize::Packets(packets) => (&mut limit.packets, packets),
                        QueueSize::Bytes(bytes) => (&mut limit.bytes, bytes),
                    };
                    if part.replace(value).is_some() {
                        return Err(de::Error::custom(
                            "a limit has at most one size in packets and one in bytes",
                        ));
                    }
                }
                if limit.parts().next().is_none() {
                    return Err(de::Error::invalid_length(0, &self));
                }
                Ok(limit)
            }
        }

        deserializer.deserialize_any(LimitVisitor)
    }
}

impl JsonSchema for Limit {
    fn schema_name() -> Cow<'static, str> {
        "Limit".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let size = generator.subschema_for::<QueueSize>();
        json_schema!({
            "description": "Most packets, most bytes, or a list of both; the packet in transmission does not count.",
            "x-unit": "queue-size",
            "anyOf": [size, { "type": "array", "items": size, "minItems": 1, "maxItems": 2 }],
        })
    }
}
