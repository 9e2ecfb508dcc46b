//! Limits of queues.

use std::fmt;

use redtail_core::{Bytes, ParamError, QueueSize, Rate, Span};

use crate::Backlog;

/// A limit on waiting packets, on waiting bytes, on the time they will take, or on
/// several of these.
///
/// In the file: `"300 packets"`, `"450 kB"`, `"100 ms"`, or a list such as `["300 packets", "450 kB"]`.
/// The packet in transmission does not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// Most waiting packets; `None` is no limit of this kind.
    pub packets: Option<u64>,
    /// Most waiting bytes; `None` is no limit of this kind.
    pub bytes: Option<u64>,
    /// Most time to send what waits; `None` is no limit of this kind.
    pub time: Option<Span>,
}

impl Limit {
    /// A limit in packets alone.
    pub const fn packets(packets: u64) -> Self {
        Self {
            packets: Some(packets),
            bytes: None,
            time: None,
        }
    }

    /// A limit in bytes alone.
    pub const fn bytes(bytes: u64) -> Self {
        Self {
            packets: None,
            bytes: Some(bytes),
            time: None,
        }
    }

    /// The same limit on a link of this rate, in packets and bytes only.
    #[must_use]
    pub fn at(self, rate: Rate) -> Self {
        let of_time = self.time.map(|time| rate.whole_bytes_in(time).as_u64());
        Self {
            bytes: self.bytes.into_iter().chain(of_time).min(),
            time: None,
            ..self
        }
    }

    /// Whether a packet of `size` may join `backlog`. A time must have become bytes
    /// ([`at`](Self::at)).
    #[inline]
    pub fn admits(&self, backlog: Backlog, size: Bytes) -> bool {
        self.packets.is_none_or(|limit| backlog.packets < limit)
            && self
                .bytes
                .is_none_or(|limit| backlog.bytes + size.as_u64() <= limit)
    }

    /// Whether `backlog` may stay. A time must have become bytes ([`at`](Self::at)).
    #[inline]
    pub fn allows(&self, backlog: Backlog) -> bool {
        self.packets.is_none_or(|limit| backlog.packets <= limit)
            && self.bytes.is_none_or(|limit| backlog.bytes <= limit)
    }

    /// Whether `backlog` is at least a third of the limit. A time must have become bytes ([`at`](Self::at)).
    pub fn is_a_third(&self, backlog: Backlog) -> bool {
        let third = |limit: Option<u64>, is: u64| limit.is_some_and(|limit| 3 * is >= limit);
        third(self.packets, backlog.packets) || third(self.bytes, backlog.bytes)
    }

    /// Refuses a limit that admits no packet.
    ///
    /// # Errors
    /// [`ParamError`] when a part of the limit is zero.
    pub fn check(&self) -> Result<(), ParamError> {
        if self.packets == Some(0) || self.bytes == Some(0) || self.time == Some(Span::ZERO) {
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
        let time = self.time.map(QueueSize::Time);
        packets.into_iter().chain(bytes).chain(time)
    }
}

impl From<QueueSize> for Limit {
    fn from(size: QueueSize) -> Self {
        match size {
            QueueSize::Packets(packets) => Self::packets(packets),
            QueueSize::Bytes(bytes) => Self::bytes(bytes),
            QueueSize::Time(time) => Self {
                packets: None,
                bytes: None,
                time: Some(time),
            },
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

redtail_core::when_serde! {
    mod text {
        use std::fmt;

        use redtail_core::QueueSize;
        use redtail_core::serde::de::{self, IntoDeserializer, SeqAccess, Visitor};
        use redtail_core::serde::{Deserialize, Deserializer, Serialize, Serializer};

        use super::Limit;

        impl Serialize for Limit {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let mut parts = self.parts();
                match (parts.next(), parts.next()) {
                    (Some(part), None) => part.serialize(serializer),
                    _ => serializer.collect_seq(self.parts()),
                }
            }
        }

        impl<'de> Deserialize<'de> for Limit {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct LimitVisitor;

                impl<'de> Visitor<'de> for LimitVisitor {
                    type Value = Limit;

                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        f.write_str("\"300 packets\", \"450 kB\", \"100 ms\", or a list of one of each")
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
                            time: None,
                        };
                        while let Some(size) = seq.next_element()? {
                            let repeated = match size {
                                QueueSize::Packets(packets) => limit.packets.replace(packets).is_some(),
                                QueueSize::Bytes(bytes) => limit.bytes.replace(bytes).is_some(),
                                QueueSize::Time(time) => limit.time.replace(time).is_some(),
                            };
                            if repeated {
                                return Err(de::Error::custom(
                                    "a limit has at most one size in packets, one in bytes and one in time",
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
    }
}

redtail_core::when_schema! {
    mod schema {
        use std::borrow::Cow;

        use redtail_core::QueueSize;
        use redtail_core::schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

        use super::Limit;

        impl JsonSchema for Limit {
            fn schema_name() -> Cow<'static, str> {
                "Limit".into()
            }

            fn json_schema(generator: &mut SchemaGenerator) -> Schema {
                let size = generator.subschema_for::<QueueSize>();
                json_schema!({
                    "description": "Most packets, most bytes, most time that the link will take to send them, or a list of these; the packet in transmission does not count.",
                    "x-unit": "queue-size",
                    "anyOf": [size, { "type": "array", "items": size, "minItems": 1, "maxItems": 3 }],
                })
            }
        }
    }
}
