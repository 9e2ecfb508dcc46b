//! The number of runs of a case: fixed, or as many as a rule requires for narrow intervals.
//!
//! Source of a relative bound on an interval: A. M. Law, W. D. Kelton, L. W. Koenig, "Relative width
//! sequential confidence intervals for the mean", Communications in Statistics B 10 (1981) 29-39,
//! who recommend to begin with ten replications and bounds of at most 15 %. What the bounds promise
//! after stopping is measured in `tests/analysis/test_stop_rule.py`.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use redtail_core::params;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, Deserializer, MapAccess, SeqAccess, Unexpected, Visitor};
use serde::ser::Serializer;
use serde::{Deserialize, Serialize};

/// The number of runs of each case.
#[derive(Debug, Clone, PartialEq)]
pub enum Replications {
    /// A fixed number.
    Fixed(u32),
    /// The number that a rule requires.
    Until(StopRuleParams),
}

params! {
    /// Replications until intervals are narrow enough.
    #[schemars(rename = "StopRule")]
    pub struct StopRuleParams {
        /// Condition under which a case needs no more runs, such as `"queue_delay_p99 within 5 %"`: half the width of the metric's 95 % interval is at most this share of its mean. `"difference of queue_delay_p99 between A and B within 5 %"` is about the paired difference of two settings of a factor, by their labels: half the width of its interval is at most this share of B's mean. In a list, all conditions must hold.
        #[schemars(with = "UntilTexts")]
        until with "one_or_more": Vec<Until>;
        /// Number of runs of each case before the condition is tested for the first time; 2 or more. With
        /// fewer than 10, the final interval covers the mean in fewer than 95 % of cases.
        #[schemars(range(min = 2))]
        at_least: u32 = 10, "ten, Law, Kelton and Koenig 1981.";
        /// Largest number of runs of a case, whether or not the condition holds then; up to 1000000.
        #[schemars(range(min = 2, max = MOST_REPLICATIONS))]
        at_most: u32 = 50, "our choice; five times as many as without a rule.";
    }
}

/// A bound on the interval of a metric, or of its difference between two settings.
#[derive(Debug, Clone, PartialEq)]
pub struct Until {
    /// The metric's name, as in results.
    pub metric: String,
    /// Of a difference, the labels of both settings: `A and B`. Which of several "and" parts them, labels
    /// tell.
    pub between: Option<String>,
    /// Half the width of the interval as a share of the mean, of a difference of B's mean; above 0, at
    /// most 1.
    pub within: f64,
}

const UNTIL: &str = "a metric and a bound in %, such as \"queue_delay_p99 within 5 %\" or \
                     \"difference of queue_delay_p99 between A and B within 5 %\"";

impl FromStr for Until {
    type Err = String;

    fn from_str(text: &str) -> Result<Until, String> {
        let refused = |why: &str| Err(format!("{text:?} {why}; accepted: {UNTIL}"));
        let Some((about, bound)) = text.rsplit_once(" within ") else {
            return refused("is no bound");
        };
        let about = about.trim();
        let (metric, between) = match about.strip_prefix("difference of ") {
            None => (about, None),
            Some(rest) => match rest.split_once(" between ") {
                Some((metric, pair)) if pair.contains(" and ") => {
                    (metric.trim(), Some(pair.trim().to_owned()))
                }
                _ => return refused("does not say between which settings"),
            },
        };
        if metric.is_empty() || metric.contains(char::is_whitespace) {
            return refused("names no metric");
        }
        let number = bound.trim().strip_suffix('%').map(str::trim);
        match number.map(str::parse::<f64>) {
            Some(Ok(percent)) if percent > 0.0 && percent <= 100.0 => Ok(Until {
                metric: metric.to_owned(),
                between,
                within: percent / 100.0,
            }),
            Some(Ok(_)) => refused("has a bound that is not above 0 and at most 100 %"),
            _ => refused("has no bound in %"),
        }
    }
}

impl fmt::Display for Until {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // 0.07 * 100 is not 7 exactly; what was typed has far fewer digits than this.
        let percent = (self.within * 1e11).round() / 1e9;
        match &self.between {
            None => write!(f, "{} within {percent} %", self.metric),
            Some(pair) => write!(
                f,
                "difference of {} between {pair} within {percent} %",
                self.metric
            ),
        }
    }
}

/// One bound as a text, or several in a list.
mod one_or_more {
    use super::*;

    pub fn serialize<S: Serializer>(bounds: &[Until], serializer: S) -> Result<S::Ok, S::Error> {
        match bounds {
            [one] => serializer.collect_str(one),
            several => serializer.collect_seq(several.iter().map(Until::to_string)),
        }
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Until>, D::Error> {
        struct Texts;
        impl<'de> Visitor<'de> for Texts {
            type Value = Vec<Until>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{UNTIL}, or a list of these")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Vec<Until>, E> {
                text.parse().map(|one| vec![one]).map_err(E::custom)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Vec<Until>, A::Error> {
                let mut found = Vec::new();
                while let Some(text) = list.next_element::<String>()? {
                    found.push(text.parse().map_err(de::Error::custom)?);
                }
                match found.is_empty() {
                    true => Err(de::Error::invalid_length(0, &self)),
                    false => Ok(found),
                }
            }
        }
        from.deserialize_any(Texts)
    }
}

/// For the schema alone.
struct UntilTexts;

impl JsonSchema for UntilTexts {
    fn schema_name() -> Cow<'static, str> {
        "Until".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let text = json_schema!({ "type": "string" });
        json_schema!({ "anyOf": [text, { "type": "array", "items": text, "minItems": 1 }] })
    }
}

/// The largest number of runs of a case. At the end their metrics are in memory, some hundred bytes for
/// each run.
pub const MOST_REPLICATIONS: u32 = 1_000_000;

impl Replications {
    /// The number of runs that each case gets at least.
    pub fn at_least(&self) -> u32 {
        match self {
            Replications::Fixed(count) => *count,
            Replications::Until(rule) => rule.at_least,
        }
    }

    /// The number of runs that no case exceeds.
    pub fn at_most(&self) -> u32 {
        match self {
            Replications::Fixed(count) => *count,
            Replications::Until(rule) => rule.at_most,
        }
    }
}

impl Serialize for Replications {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Replications::Fixed(count) => serializer.serialize_u32(*count),
            Replications::Until(rule) => rule.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Replications {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = Replications;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a whole number of 1 or more, or a table with until")
            }

            fn visit_u64<E: de::Error>(self, number: u64) -> Result<Replications, E> {
                u32::try_from(number)
                    .map(Replications::Fixed)
                    .map_err(|_| E::invalid_value(Unexpected::Unsigned(number), &self))
            }

            fn visit_i64<E: de::Error>(self, number: i64) -> Result<Replications, E> {
                u32::try_from(number)
                    .map(Replications::Fixed)
                    .map_err(|_| E::invalid_value(Unexpected::Signed(number), &self))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Replications, A::Error> {
                StopRuleParams::deserialize(MapAccessDeserializer::new(map))
                    .map(Replications::Until)
            }
        }
        deserializer.deserialize_any(Either)
    }
}

impl JsonSchema for Replications {
    fn schema_name() -> Cow<'static, str> {
        "Replications".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let rule = generator.subschema_for::<StopRuleParams>();
        json_schema!({ "anyOf": [{ "type": "integer", "minimum": 1, "maximum": MOST_REPLICATIONS }, rule] })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_reads_back_as_it_is_written() {
        for text in [
            "loss within 7 %",
            "ftp.goodput within 0.1 %",
            "a within 100 %",
            "difference of loss between 5 % within and RED and more within 5 %",
        ] {
            let bound: Until = text.parse().unwrap();
            assert_eq!(bound.to_string(), text);
        }
        let bound: Until = " queue_delay_p99  within 5%".parse().unwrap();
        assert_eq!(
            (bound.metric.as_str(), bound.within),
            ("queue_delay_p99", 0.05)
        );
    }

    #[test]
    fn what_is_no_bound_is_refused() {
        let refusal = |text: &str| text.parse::<Until>().unwrap_err();
        assert_eq!(
            refusal("loss"),
            "\"loss\" is no bound; accepted: a metric and a bound in %, such as \
             \"queue_delay_p99 within 5 %\" or \"difference of queue_delay_p99 between A and B \
             within 5 %\""
        );
        assert!(refusal("loss within 5").starts_with("\"loss within 5\" has no bound in %"));
        assert!(refusal("loss within 0 %").contains("not above 0 and at most 100 %"));
        assert!(refusal("loss within NaN %").contains("not above 0"));
        assert!(refusal(" within 5 %").contains("names no metric"));
        assert!(refusal("a b within 5 %").contains("names no metric"));
        assert!(refusal("difference of loss within 5 %").contains("between which settings"));
        assert!(
            refusal("difference of a b between c and d within 5 %").contains("names no metric")
        );
    }
}
