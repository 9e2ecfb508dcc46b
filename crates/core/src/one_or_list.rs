//! A value that the experiment file may also give as a list of values.

use std::fmt;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, IntoDeserializer, MapAccess, SeqAccess, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The values that a text stands for, or the error. `None` if the text stands for one value.
pub type Several<T> = fn(&str) -> Option<Result<Vec<T>, String>>;

/// The serde visitor that reads such a value.
#[derive(Clone, Copy, Debug)]
pub struct OneOrList {
    /// The expected form, for error messages.
    pub expected: &'static str,
    /// Whether a value may be a table.
    pub tables: bool,
}

impl OneOrList {
    /// Reads a value, or a list with at least one.
    ///
    /// # Errors
    /// The errors of the value's own type, or an error if the input is neither a value nor a list.
    pub fn deserialize<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
        self,
        deserializer: D,
    ) -> Result<Vec<T>, D::Error> {
        self.deserialize_with(deserializer, |_| None)
    }

    /// As [`deserialize`](Self::deserialize), where a text may stand for several values. `several`
    /// returns the values or the error; `None` leaves the text to the value's own type.
    ///
    /// # Errors
    /// The errors of `several` and of [`deserialize`](Self::deserialize).
    pub fn deserialize_with<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
        self,
        deserializer: D,
        several: Several<T>,
    ) -> Result<Vec<T>, D::Error> {
        deserializer.deserialize_any(OneOrListVisitor {
            read: self,
            several,
        })
    }
}

/// Writes a single value without a list, and several as a list.
///
/// # Errors
/// The errors of the serializer.
pub fn serialize<T: Serialize, S: Serializer>(
    values: &[T],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match values {
        [one] => one.serialize(serializer),
        list => list.serialize(serializer),
    }
}

struct OneOrListVisitor<T> {
    read: OneOrList,
    several: Several<T>,
}

impl<'de, T: Deserialize<'de>> OneOrListVisitor<T> {
    fn scalar<E: Error>(value: impl IntoDeserializer<'de, E>) -> Result<Vec<T>, E> {
        T::deserialize(value.into_deserializer()).map(|value| vec![value])
    }
}

impl<'de, T: Deserialize<'de>> Visitor<'de> for OneOrListVisitor<T> {
    type Value = Vec<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.read.expected)
    }

    // Anything but a list is read by the value's own type, which has its own errors.
    fn visit_str<E: Error>(self, text: &str) -> Result<Vec<T>, E> {
        match (self.several)(text) {
            Some(values) => values.map_err(E::custom),
            None => Self::scalar(text),
        }
    }
    fn visit_bool<E: Error>(self, value: bool) -> Result<Vec<T>, E> {
        Self::scalar(value)
    }
    fn visit_i64<E: Error>(self, value: i64) -> Result<Vec<T>, E> {
        Self::scalar(value)
    }
    fn visit_u64<E: Error>(self, value: u64) -> Result<Vec<T>, E> {
        Self::scalar(value)
    }
    fn visit_f64<E: Error>(self, value: f64) -> Result<Vec<T>, E> {
        Self::scalar(value)
    }
    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Vec<T>, A::Error> {
        if !self.read.tables {
            return Err(A::Error::invalid_type(Unexpected::Map, &self));
        }
        T::deserialize(MapAccessDeserializer::new(map)).map(|value| vec![value])
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Vec<T>, A::Error> {
        let mut values = Vec::new();
        while let Some(value) = seq.next_element()? {
            values.push(value);
        }
        if values.is_empty() {
            return Err(A::Error::invalid_length(
                0,
                &"a list with at least one value",
            ));
        }
        Ok(values)
    }
}
