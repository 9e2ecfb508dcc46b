//! The differentiated services codepoint, by which a packet asks for a class.
//!
//! Source: RFC 2474 (the field), RFC 2597 (AF), RFC 3246 (EF), RFC 8622 (LE).

#[cfg(feature = "schema")]
use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

#[cfg(feature = "schema")]
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
#[cfg(feature = "serde")]
use serde::de::{Error, Unexpected, Visitor};
#[cfg(feature = "serde")]
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A differentiated services codepoint, 0 to 63.
///
/// In the file: `"EF"`, `"AF41"`, `"CS1"`, `"LE"`, `"BE"` (also `"CS0"`, 0), or a number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Dscp(u8);

const ACCEPTED: &str =
    "\"BE\", \"LE\", \"EF\", \"VA\", \"CS0\" to \"CS7\", \"AF11\" to \"AF43\", or 0 to 63";

impl Dscp {
    /// Best effort, the default.
    pub const BEST_EFFORT: Self = Self(0);
    /// Expedited forwarding (RFC 3246).
    pub const EF: Self = Self(46);

    /// The codepoint with this number; `None` above 63.
    pub const fn new(value: u8) -> Option<Self> {
        if value < 64 { Some(Self(value)) } else { None }
    }

    /// The upper six bits of the octet that it shares with ECN.
    #[inline]
    pub const fn of_octet(octet: u8) -> Self {
        Self(octet >> 2)
    }

    /// The number of the code point.
    #[inline]
    pub const fn get(self) -> u8 {
        self.0
    }
}

impl FromStr for Dscp {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let digits = |prefix: &str| text.strip_prefix(prefix).map(str::as_bytes);
        let value = match text {
            "BE" => Some(0),
            "LE" => Some(1),
            "EF" => Some(46),
            "VA" => Some(44),
            _ => match (digits("CS"), digits("AF")) {
                (Some(&[class @ b'0'..=b'7']), _) => Some((class - b'0') << 3),
                // RFC 2597, section 6: class n, drop precedence m.
                (_, Some(&[class @ b'1'..=b'4', precedence @ b'1'..=b'3'])) => {
                    Some((class - b'0') << 3 | (precedence - b'0') << 1)
                }
                _ => None,
            },
        };
        value
            .map(Self)
            .ok_or_else(|| format!("{text:?} is not a DSCP; accepted: {ACCEPTED}"))
    }
}

impl fmt::Display for Dscp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (class, low) = (self.0 >> 3, self.0 & 7);
        match (self.0, class, low) {
            (0, ..) => f.write_str("BE"),
            (1, ..) => f.write_str("LE"),
            (46, ..) => f.write_str("EF"),
            (44, ..) => f.write_str("VA"),
            (_, _, 0) => write!(f, "CS{class}"),
            (_, 1..=4, 2 | 4 | 6) => write!(f, "AF{class}{}", low / 2),
            (value, ..) => write!(f, "{value}"),
        }
    }
}

#[cfg(feature = "serde")]
impl Serialize for Dscp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let text = self.to_string();
        match text.parse::<u8>() {
            Ok(number) => serializer.serialize_u8(number),
            Err(_) => serializer.serialize_str(&text),
        }
    }
}

#[cfg(feature = "serde")]
impl<'de> Deserialize<'de> for Dscp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct DscpVisitor;

        impl Visitor<'_> for DscpVisitor {
            type Value = Dscp;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(ACCEPTED)
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Dscp, E> {
                text.parse().map_err(E::custom)
            }

            fn visit_u64<E: Error>(self, number: u64) -> Result<Dscp, E> {
                let value = u8::try_from(number).ok().and_then(Dscp::new);
                value.ok_or_else(|| E::invalid_value(Unexpected::Unsigned(number), &self))
            }

            fn visit_i64<E: Error>(self, number: i64) -> Result<Dscp, E> {
                let value = u8::try_from(number).ok().and_then(Dscp::new);
                value.ok_or_else(|| E::invalid_value(Unexpected::Signed(number), &self))
            }
        }

        deserializer.deserialize_any(DscpVisitor)
    }
}

#[cfg(feature = "schema")]
impl JsonSchema for Dscp {
    fn schema_name() -> Cow<'static, str> {
        "Dscp".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A differentiated services codepoint by its name (\"EF\", \"AF41\", \"CS1\", \"LE\", \"BE\") or number.",
            "anyOf": [
                { "type": "string", "pattern": "^(BE|LE|EF|VA|CS[0-7]|AF[1-4][1-3])$" },
                { "type": "integer", "minimum": 0, "maximum": 63 },
            ],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_rfcs() {
        for (name, value) in [
            ("BE", 0),
            ("LE", 1),
            ("CS1", 8),
            ("AF11", 10),
            ("AF13", 14),
            ("AF41", 34),
            ("VA", 44),
            ("EF", 46),
            ("CS7", 56),
        ] {
            let parsed: Dscp = name.parse().expect(name);
            assert_eq!(parsed.get(), value, "{name}");
            assert_eq!(parsed.to_string(), name);
        }
        assert_eq!("CS0".parse(), Ok(Dscp::BEST_EFFORT));
    }

    #[test]
    fn every_codepoint_prints_as_what_reads_back() {
        for value in 0..64 {
            let dscp = Dscp::new(value).expect("below 64");
            let text = dscp.to_string();
            let back = text.parse().or_else(|_| text.parse().map(Dscp));
            assert_eq!(back, Ok::<_, std::num::ParseIntError>(dscp));
        }
        assert_eq!(Dscp::new(64), None);
    }

    #[test]
    fn what_is_none_is_refused() {
        for text in ["af11", "AF15", "AF51", "CS8", "", "46"] {
            let refusal = text.parse::<Dscp>().expect_err(text);
            assert!(refusal.contains("accepted: \"BE\""), "{refusal}");
        }
    }
}
