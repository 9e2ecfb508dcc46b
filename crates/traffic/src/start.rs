//! When a flow starts.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use redtail_core::schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use redtail_core::serde::de::{self, Visitor};
use redtail_core::serde::{Deserialize, Deserializer, Serialize, Serializer};
use redtail_core::{Span, Stream, Time};

/// A start time, counted from the start of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// At a given time: `"5 s"`.
    At(Span),
    /// Drawn uniformly from an interval: `"uniform 0..10 s"`.
    Uniform {
        /// Earliest.
        from: Span,
        /// Latest.
        to: Span,
    },
}

impl Start {
    /// The earliest start possible.
    pub fn earliest(self) -> Span {
        match self {
            Self::At(at) => at,
            Self::Uniform { from, .. } => from,
        }
    }

    /// The latest start possible.
    pub fn latest(self) -> Span {
        match self {
            Self::At(at) => at,
            Self::Uniform { to, .. } => to,
        }
    }

    /// A flow's start; draws from `stream` only if it is random.
    pub fn draw(self, stream: &mut Stream) -> Time {
        let span = match self {
            Self::At(at) => at,
            Self::Uniform { from, to } => stream.uniform_span(from, to),
        };
        Time::ZERO + span
    }
}

impl fmt::Display for Start {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::At(at) => at.fmt(f),
            Self::Uniform { from, to } => write!(f, "uniform {from}..{to}"),
        }
    }
}

const FORMS: &str = "a time such as \"5 s\", or \"uniform 0..10 s\"";

impl FromStr for Start {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let Some(interval) = text.trim().strip_prefix("uniform") else {
            return text
                .parse()
                .map(Self::At)
                .map_err(|error| format!("{error}; a start is {FORMS}"));
        };
        let refuse = |why: &str| format!("\"{text}\": {why}; a start is {FORMS}");
        let (from, to) = ends(interval).map_err(|why| refuse(&why))?;
        Ok(Self::Uniform { from, to })
    }
}

/// The ends of an interval such as `"0..10 s"` or `"0 s..10 s"`; the error is a clause.
pub(crate) fn ends(interval: &str) -> Result<(Span, Span), String> {
    let (from, to) = interval
        .split_once("..")
        .ok_or("an interval is written with \"..\"")?;
    let (from, to) = (from.trim(), to.trim());
    let to_span: Span = to.parse().map_err(|error| format!("{error}"))?;
    // The unit may be given once, for both ends: "0..10 s".
    let unit = to.trim_start_matches(|c: char| c.is_ascii_digit() || "._+-eE ".contains(c));
    let from_span: Span = match from.parse() {
        Ok(span) => span,
        Err(_) => format!("{from} {unit}")
            .parse()
            .map_err(|error| format!("{error}"))?,
    };
    if from_span > to_span {
        return Err("the interval ends before it begins".to_owned());
    }
    Ok((from_span, to_span))
}

impl Serialize for Start {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Start {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct StartVisitor;

        impl Visitor<'_> for StartVisitor {
            type Value = Start;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(FORMS)
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Start, E> {
                text.parse().map_err(E::custom)
            }
        }

        deserializer.deserialize_any(StartVisitor)
    }
}

impl JsonSchema for Start {
    fn schema_name() -> Cow<'static, str> {
        "Start".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "x-unit": "time",
            "description": "A time from the start of the run, such as \"5 s\", or \"uniform 0..10 s\", drawn for each flow.",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_unit_of_an_interval_may_be_given_once_or_twice() {
        let expected = Start::Uniform {
            from: Span::ZERO,
            to: Span::from_s(10),
        };
        assert_eq!("uniform 0..10 s".parse(), Ok(expected));
        assert_eq!("uniform 0 s..10s".parse(), Ok(expected));
        let written = expected.to_string();
        assert_eq!(written.parse(), Ok(expected));
        assert_eq!("5 s".parse(), Ok(Start::At(Span::from_s(5))));
    }

    #[test]
    fn a_backward_or_unitless_interval_is_refused_with_the_forms() {
        for bad in ["uniform 10..0 s", "uniform 0..10", "uniform 5 s", "soon"] {
            let error = bad.parse::<Start>().unwrap_err();
            assert!(error.contains(FORMS), "{error}");
            assert!(error.contains(bad) || error.contains("soon"), "{error}");
        }
    }
}
