//! How much a group offers, as a share of a link: `"90 %"`, or the number 0.9.
//!
//! The load of a group is the rate of its packets, headers included, on a network without congestion,
//! divided by the rate of the link. Le, Aikat, Jeffay and Smith (SIGCOMM 2003) set up their experiments
//! by load instead of by a number of users. The number of users is found by simulation before a run.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use redtail_core::ParamError;
use redtail_core::schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use redtail_core::serde::de::{self, Visitor};
use redtail_core::serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The maximum load.
const MOST: f64 = 2.0;

const ACCEPTED: &str = "a share of the link such as \"90 %\" or 0.9, above 0 and at most \"200 %\"";

/// A load: a share of a link's rate.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Load(f64);

impl Load {
    /// As a fraction.
    pub fn share(self) -> f64 {
        self.0
    }

    pub(crate) fn check(self) -> Result<(), ParamError> {
        match self.0 > 0.0 && self.0 <= MOST {
            true => Ok(()),
            false => Err(ParamError::new("load", "cannot be offered", ACCEPTED)),
        }
    }
}

impl fmt::Display for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // To a millionth of a percent: 0.57 of a whole is "57 %" and not "56.99999999999999 %".
        write!(f, "{} %", (self.0 * 1e8).round() / 1e6)
    }
}

impl FromStr for Load {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = text.trim().strip_suffix('%').map(|number| (number, 100.0));
        let (number, whole) = number.unwrap_or((text, 1.0));
        let number: f64 = number
            .trim()
            .parse()
            .map_err(|_| format!("{text:?} is not a load; accepted: {ACCEPTED}"))?;
        Ok(Self(number / whole))
    }
}

impl Serialize for Load {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Load {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Read;
        impl Visitor<'_> for Read {
            type Value = Load;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(ACCEPTED)
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Load, E> {
                text.parse().map_err(E::custom)
            }

            fn visit_f64<E: de::Error>(self, share: f64) -> Result<Load, E> {
                Ok(Load(share))
            }

            fn visit_u64<E: de::Error>(self, share: u64) -> Result<Load, E> {
                Ok(Load(share as f64))
            }

            fn visit_i64<E: de::Error>(self, share: i64) -> Result<Load, E> {
                Ok(Load(share as f64))
            }
        }
        deserializer.deserialize_any(Read)
    }
}

impl JsonSchema for Load {
    fn schema_name() -> Cow<'static, str> {
        "Load".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A share of a link's rate: \"90 %\" or 0.9; at most \"200 %\".",
            "anyOf": [
                { "type": "number", "exclusiveMinimum": 0, "maximum": MOST },
                { "type": "string", "pattern": "^\\s*[0-9.]+\\s*%?\\s*$" },
            ],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentage_is_a_hundredth_and_prints_as_it_was_written() {
        for (text, share) in [("90 %", 0.9), ("57%", 0.57), ("105 %", 1.05), ("0.9", 0.9)] {
            let load: Load = text.parse().unwrap();
            assert!((load.share() - share).abs() < 1e-12, "{text}");
            assert_eq!(load.to_string().parse::<Load>().unwrap(), load);
        }
        assert_eq!("57 %".parse::<Load>().unwrap().to_string(), "57 %");
        assert!("90 Mbit/s".parse::<Load>().is_err());
    }

    #[test]
    fn nothing_and_more_than_twice_the_link_are_refused() {
        for (text, accepted) in [
            ("0 %", false),
            ("-5 %", false),
            ("200 %", true),
            ("201 %", false),
        ] {
            let load: Load = text.parse().unwrap();
            assert_eq!(load.check().is_ok(), accepted, "{text}");
        }
        assert!("nan".parse::<Load>().unwrap().check().is_err());
    }
}
