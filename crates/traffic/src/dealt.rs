//! Quantities dealt out to the flows of a group.
//!
//! A list of many spans need not be written out: `"16..240 ms in 57"` is 57 spans, both ends
//! and what lies between them in equal steps.

use std::borrow::Cow;

use redtail_core::one_or_list::{self, OneOrList};
use redtail_core::schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use redtail_core::serde::{Deserialize, Deserializer, Serialize, Serializer};
use redtail_core::{Bytes, Rate, Span};

use crate::bounds::MAX_FLOWS;
use crate::start::{Start, ends};

/// A quantity that can be dealt out.
pub trait Deal: Sized {
    /// The form of a text for several values, if there is one.
    const SEVERAL: Option<&'static str> = None;

    /// The values that a text of this form stands for, or what is wrong with it; `None` if it
    /// has not this form.
    fn several(_text: &str) -> Option<Result<Vec<Self>, String>> {
        None
    }
}

impl Deal for Bytes {}
impl Deal for Rate {}
impl Deal for Start {}

impl Deal for Span {
    const SEVERAL: Option<&'static str> = Some("\"16..240 ms in 57\"");

    fn several(text: &str) -> Option<Result<Vec<Self>, String>> {
        text.contains("..").then(|| spread(text))
    }
}

/// Reads `"16..240 ms in 57"`.
fn spread(text: &str) -> Result<Vec<Span>, String> {
    let refuse = |why: &str| {
        format!(
            "\"{text}\": {why}; equal steps from one time to another are written \
             \"16..240 ms in 57\", both ends among the 57"
        )
    };
    let (interval, count) = text
        .split_once(" in ")
        .ok_or_else(|| refuse("how many times is not said"))?;
    let count: u32 = count
        .trim()
        .parse()
        .map_err(|_| refuse("what follows \"in\" is not a number"))?;
    if !(2..=MAX_FLOWS).contains(&count) {
        return Err(refuse(&format!("their number is not 2 to {MAX_FLOWS}")));
    }
    let (from, to) = ends(interval).map_err(|why| refuse(&why))?;
    let (width, steps) = (u128::from((to - from).as_ps()), u128::from(count - 1));
    let value = |i| from + Span::from_ps(((width * i + steps / 2) / steps) as u64);
    Ok((0..=steps).map(value).collect())
}

/// One value for all flows of a group, or a list dealt out to them in turn:
/// flow i takes entry i modulo the list's length.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dealt<T>(Vec<T>);

impl<T> Dealt<T> {
    /// The same value for every flow.
    pub fn one(value: T) -> Self {
        Self(vec![value])
    }

    /// A list to deal out.
    ///
    /// # Panics
    /// If the list is empty.
    pub fn list(values: Vec<T>) -> Self {
        assert!(!values.is_empty(), "nothing to deal out");
        Self(values)
    }

    /// The value of flow (or host) `i`.
    pub fn get(&self, i: usize) -> &T {
        &self.0[i % self.0.len()]
    }

    /// The distinct positions of the list.
    pub fn values(&self) -> &[T] {
        &self.0
    }
}

impl<T: Serialize> Serialize for Dealt<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        one_or_list::serialize(&self.0, serializer)
    }
}

impl<'de, T: Deal + Deserialize<'de>> Deserialize<'de> for Dealt<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let read = OneOrList {
            expected: "a value, or a list of values dealt out to the flows in turn",
            tables: false,
        };
        read.deserialize_with(deserializer, T::several).map(Self)
    }
}

impl<T: Deal + JsonSchema> JsonSchema for Dealt<T> {
    fn schema_name() -> Cow<'static, str> {
        format!("Dealt_{}", T::schema_name()).into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let value = generator.subschema_for::<T>();
        let list = json_schema!({ "type": "array", "items": value, "minItems": 1 });
        let mut any = vec![value, list];
        any.extend(T::SEVERAL.map(|form| {
            json_schema!({
                "type": "string",
                "x-form": format!("{form} for so many in equal steps"),
                "pattern": "^.+\\.\\..+ in +[0-9]+ *$",
            })
        }));
        json_schema!({ "anyOf": any, "x-dealt": true })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Dealt<Span>, String> {
        serde_json::from_value(text.into()).map_err(|error| error.to_string())
    }

    #[test]
    fn a_number_of_equal_steps_stands_for_the_list() {
        let dealt = read("16..240 ms in 57").expect("it is sound");
        let expected: Vec<Span> = (0..57).map(|i| Span::from_ms(16 + 4 * i)).collect();
        assert_eq!(dealt.values(), expected);
        assert_eq!(dealt, read("16 ms..0.24 s in 57").expect("it is sound"));
        assert_eq!(dealt.get(58), &Span::from_ms(20));
        let ends = read("0..1 ps in 2").expect("it is sound");
        assert_eq!(ends.values(), [Span::ZERO, Span::from_ps(1)]);
        // To the nearest picosecond.
        let third = read("0..1 ms in 4").expect("it is sound");
        assert_eq!(
            third.values()[1..3],
            [333_333_333, 666_666_667].map(Span::from_ps)
        );
    }

    #[test]
    fn what_is_wrong_with_steps_is_said_with_the_form() {
        for (bad, why) in [
            ("16..240 ms", "how many"),
            ("16..240 ms in", "how many"),
            ("16..240 ms in many", "not a number"),
            ("16..240 ms in 1", "not 2 to 1000000"),
            ("16..240 ms in 1000001", "not 2 to 1000000"),
            ("240..16 ms in 57", "ends before it begins"),
            ("16..240 in 57", "unit"),
            ("..240 ms in 57", "time"),
        ] {
            let error = read(bad).unwrap_err();
            assert!(
                error.contains(why) && error.contains("57\", both"),
                "{error}"
            );
        }
    }

    #[test]
    fn only_spans_come_in_steps() {
        let rates: Result<Dealt<Rate>, _> = serde_json::from_value("1..2 Mbit/s in 3".into());
        assert!(rates.is_err());
        let starts: Result<Dealt<Start>, _> = serde_json::from_value("uniform 0..1 s".into());
        assert_eq!(starts.expect("a start").values().len(), 1);
    }
}
