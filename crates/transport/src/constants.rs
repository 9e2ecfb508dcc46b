//! The constants of laws as keys of the experiment file.
//!
//! A growth law and a slow start are tables with a `kind`, as queues are: `growth = { kind = "cubic", beta = 0.5 }`. A
//! name alone is the kind with its defaults, and a table without `kind` changes the preset's. The kind is therefore
//! known only when the whole `tcp` table has been read: until then the constants are [`Loose`] values.
//!
//! Each law has a struct of its constants, which `constants!` declares: key, text, default, range and source. The flows
//! of a group share it.

use std::sync::Arc;

use redtail_core::schemars::JsonSchema;
use redtail_core::serde::{Deserialize, Serialize};
use redtail_core::{Bytes, ParamError, Rate, Span, schemars, serde};

/// The key that chooses the law.
#[allow(dead_code)] // without serde there is no file
const KIND: &str = "kind";

/// The value of a constant as the file gives it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(
    crate = "serde",
    untagged,
    expecting = "a constant of a law is a number, a text with a unit, or true or false"
)]
#[schemars(crate = "schemars")]
pub enum Loose {
    /// `true` or `false`.
    Flag(bool),
    /// A whole number.
    Whole(u64),
    /// A number.
    Number(f64),
    /// A quantity with its unit.
    Text(String),
}

impl Loose {
    fn shown(&self) -> String {
        match self {
            Self::Flag(flag) => flag.to_string(),
            Self::Whole(number) => number.to_string(),
            Self::Number(number) => number.to_string(),
            Self::Text(text) => format!("{text:?}"),
        }
    }
}

/// The type of a constant.
pub trait Constant: Copy + PartialOrd {
    /// What it is, in words.
    const WORDS: &'static str;

    /// The value that the file gives, if it is of this type.
    fn read(given: &Loose) -> Option<Self>;

    /// As the file has it.
    fn written(self) -> Loose;
}

impl Constant for f64 {
    const WORDS: &'static str = "a number";

    fn read(given: &Loose) -> Option<Self> {
        match given {
            Loose::Number(number) => Some(*number),
            Loose::Whole(number) => Some(redtail_core::as_f64(*number)),
            _ => None,
        }
    }

    fn written(self) -> Loose {
        Loose::Number(self)
    }
}

impl Constant for u64 {
    const WORDS: &'static str = "a whole number";

    fn read(given: &Loose) -> Option<Self> {
        match given {
            Loose::Whole(number) => Some(*number),
            _ => None,
        }
    }

    fn written(self) -> Loose {
        Loose::Whole(self)
    }
}

impl Constant for u32 {
    const WORDS: &'static str = u64::WORDS;

    fn read(given: &Loose) -> Option<Self> {
        u64::read(given).and_then(|number| number.try_into().ok())
    }

    fn written(self) -> Loose {
        Loose::Whole(self.into())
    }
}

impl Constant for bool {
    const WORDS: &'static str = "true or false";

    fn read(given: &Loose) -> Option<Self> {
        match given {
            Loose::Flag(flag) => Some(*flag),
            _ => None,
        }
    }

    fn written(self) -> Loose {
        Loose::Flag(self)
    }
}

/// Quantities with a unit.
macro_rules! quantities {
    ($($type:ty, $words:literal;)+) => {$(
        impl Constant for $type {
            const WORDS: &'static str = $words;

            fn read(given: &Loose) -> Option<Self> {
                match given {
                    Loose::Text(text) => text.parse().ok(),
                    _ => None,
                }
            }

            fn written(self) -> Loose {
                Loose::Text(self.to_string())
            }
        }
    )+};
}

quantities! {
    Span, "a time";
    Rate, "a rate";
    Bytes, "a number of bytes";
}

/// The values that a constant may have.
#[derive(Clone, Debug)]
pub struct Accepted {
    /// What it is, in words.
    words: &'static str,
    /// The least and the greatest, unless it may have every value.
    ends: Option<(Loose, Loose)>,
}

impl Accepted {
    /// For a constant of type `T`.
    pub fn new<T: Constant>(ends: Option<(T, T)>) -> Self {
        Self {
            words: T::WORDS,
            ends: ends.map(|(least, most)| (least.written(), most.written())),
        }
    }

    /// The least and the greatest, if there are such.
    pub fn ends(&self) -> Option<&(Loose, Loose)> {
        self.ends.as_ref()
    }

    /// In words, with the default.
    fn text(&self, default: &Loose) -> String {
        let ends = (self.ends.as_ref())
            .map(|(least, most)| format!(" from {} to {}", least.shown(), most.shown()))
            .unwrap_or_default();
        format!("{}{ends}; the default is {}", self.words, default.shown())
    }
}

/// The constants of a law.
pub trait Constants: Clone + Default {
    /// The keys.
    const KEYS: &'static [&'static str];

    /// Gives a key the value of the file. Returns whether it is of the key's type.
    fn set(&mut self, key: &str, given: &Loose) -> bool;

    /// The value of a key; `None` if there is no such key.
    fn get(&self, key: &str) -> Option<Loose>;

    /// Whether the value of a key is in its range.
    fn is_in_range(&self, key: &str) -> bool;

    /// What is accepted of a key; `None` if there is no such key.
    fn accepted(key: &str) -> Option<Accepted>;

    /// Refuses combinations of values that are in their ranges.
    ///
    /// # Errors
    /// Names the key, the problem and what is accepted.
    fn check_together(&self) -> Result<(), ParamError> {
        Ok(())
    }

    /// Refuses values that cannot be run; `usual` has the defaults.
    ///
    /// # Errors
    /// Names the key, the problem and what is accepted.
    fn check(&self, usual: &Self) -> Result<(), ParamError> {
        for &key in Self::KEYS {
            if !self.is_in_range(key) {
                return Err(refused(key, "is outside its range", usual));
            }
        }
        self.check_together()
    }
}

fn refused<C: Constants>(key: &str, problem: &str, usual: &C) -> ParamError {
    let accepted = C::accepted(key).zip(usual.get(key));
    let accepted = accepted.map(|(accepted, default)| accepted.text(&default));
    ParamError::new(key.to_owned(), problem, accepted.unwrap_or_default())
}

/// Refuses a pair of constants of which the first, the least of something, is above the second.
///
/// # Errors
/// Names the first.
pub(crate) fn check_order<T: Constant>(
    low: &'static str,
    least: T,
    high: &str,
    most: T,
) -> Result<(), ParamError> {
    if least <= most {
        return Ok(());
    }
    let most = most.written().shown();
    let accepted = format!("at most {most}");
    Err(ParamError::new(
        low,
        format!("is above {high} ({most})"),
        accepted,
    ))
}

/// Gives constants the values of the file.
///
/// # Errors
/// There is no such key in the law called `law`, or its type is another.
pub(crate) fn depart<C: Constants>(
    law: &str,
    constants: &mut Arc<C>,
    given: &[(String, Loose)],
    usual: &C,
) -> Result<(), ParamError> {
    for (key, value) in given {
        if !C::KEYS.contains(&key.as_str()) {
            let accepted = match C::KEYS {
                [] => "no key but kind".to_owned(),
                keys => format!("kind, {}", keys.join(", ")),
            };
            let problem = format!("is no constant of {law:?}");
            return Err(ParamError::new(key.clone(), problem, accepted));
        }
        if !Arc::make_mut(constants).set(key, value) {
            return Err(refused(key, "is of another type", usual));
        }
    }
    Ok(())
}

/// Declares the constants of a law: a struct for [`redtail_core::params!`], whose keys all have a default and a source, with
/// the range of each behind `in`. A law without constants has an empty one.
macro_rules! constants {
    ($(#[$meta:meta])* $vis:vis struct $name:ident {
        $($(#[$doc:meta])* $key:ident: $type:ident = $default:expr $(, in $least:expr => $most:expr)?, $source:literal;)*
    } $(check $together:path)?) => {
        redtail_core::params! {
            $(#[$meta])*
            #[derive(Copy)]
            $vis struct $name {
                $($(#[$doc])* $key: $type = $default, $source;)*
            }
        }

        impl $crate::constants::Constants for $name {
            const KEYS: &'static [&'static str] = &[$(stringify!($key)),*];

            #[allow(unused_variables)]
            fn set(&mut self, key: &str, given: &$crate::constants::Loose) -> bool {
                match key {
                    $(stringify!($key) => {
                        $crate::constants::Constant::read(given).map(|value| self.$key = value).is_some()
                    })*
                    _ => false,
                }
            }

            fn get(&self, key: &str) -> Option<$crate::constants::Loose> {
                match key {
                    $(stringify!($key) => Some($crate::constants::Constant::written(self.$key)),)*
                    _ => None,
                }
            }

            fn is_in_range(&self, key: &str) -> bool {
                match key {
                    $($(stringify!($key) => ($least..=$most).contains(&self.$key),)?)*
                    _ => true,
                }
            }

            fn accepted(key: &str) -> Option<$crate::constants::Accepted> {
                match key {
                    $(stringify!($key) => {
                        let ends: Option<($type, $type)> = None $(.or(Some(($least, $most))))?;
                        Some($crate::constants::Accepted::new(ends))
                    })*
                    _ => None,
                }
            }

            $(fn check_together(&self) -> Result<(), redtail_core::ParamError> {
                $together(self)
            })?
        }
    };
}

pub(crate) use constants;

constants! {
    /// None.
    pub struct NoParams {}
}

/// A choice of laws, each with its constants: the tables of `growth`, say.
pub trait LawTable: From<Self::Kind> {
    /// The choice alone, a name.
    type Kind: Copy + PartialEq;

    /// The law.
    fn kind(&self) -> Self::Kind;

    /// Gives constants the values of the file.
    ///
    /// # Errors
    /// The law has no such constant, or its type is another.
    fn depart(&mut self, given: &[(String, Loose)]) -> Result<(), ParamError>;

    /// Refuses constants that cannot be run.
    ///
    /// # Errors
    /// Names the key, the problem and what is accepted.
    fn check(&self) -> Result<(), ParamError>;
}

/// A law as the file gives it: a name, or a table with constants and perhaps a `kind`.
#[derive(Clone, Debug, PartialEq)]
pub struct GivenLaw<T: LawTable> {
    kind: Option<T::Kind>,
    constants: Vec<(String, Loose)>,
}

impl<T: LawTable> GivenLaw<T> {
    /// The law, where `usual` is the preset's.
    ///
    /// # Errors
    /// It has no such constant, or the constant's type is another.
    pub fn law(&self, usual: &T) -> Result<T, ParamError>
    where
        T: Clone,
    {
        let mut law = match self.kind {
            Some(kind) if kind != usual.kind() => T::from(kind),
            _ => usual.clone(),
        };
        law.depart(&self.constants).map(|()| law)
    }
}

redtail_core::when_serde! {
    mod text {
        use std::fmt;
        use std::marker::PhantomData;

        use redtail_core::serde::de::value::StrDeserializer;
        use redtail_core::serde::de::{self, DeserializeOwned, MapAccess, Visitor};
        use redtail_core::serde::ser::SerializeMap;
        use redtail_core::serde::{Deserialize, Deserializer, Serialize, Serializer};

        use super::{GivenLaw, KIND, LawTable};

        impl<T: LawTable> Serialize for GivenLaw<T>
        where
            T::Kind: Serialize,
        {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let mut table = serializer.serialize_map(None)?;
                if let Some(kind) = &self.kind {
                    table.serialize_entry(KIND, kind)?;
                }
                for (key, value) in &self.constants {
                    table.serialize_entry(key, value)?;
                }
                table.end()
            }
        }

        impl<'de, T: LawTable> Deserialize<'de> for GivenLaw<T>
        where
            T::Kind: DeserializeOwned,
        {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct LawVisitor<T>(PhantomData<T>);

                impl<'de, T: LawTable> Visitor<'de> for LawVisitor<T>
                where
                    T::Kind: DeserializeOwned,
                {
                    type Value = GivenLaw<T>;

                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        f.write_str("the name of a law, or a table with its constants and perhaps kind")
                    }

                    fn visit_str<E: de::Error>(self, text: &str) -> Result<GivenLaw<T>, E> {
                        Ok(GivenLaw {
                            kind: Some(T::Kind::deserialize(StrDeserializer::new(text))?),
                            constants: Vec::new(),
                        })
                    }

                    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<GivenLaw<T>, A::Error> {
                        let (mut kind, mut constants) = (None, Vec::new());
                        while let Some(key) = map.next_key::<String>()? {
                            match key.as_str() {
                                KIND => kind = Some(map.next_value()?),
                                _ => constants.push((key, map.next_value()?)),
                            }
                        }
                        Ok(GivenLaw { kind, constants })
                    }
                }

                deserializer.deserialize_any(LawVisitor(PhantomData))
            }
        }
    }
}

redtail_core::when_schema! {
    pub(crate) use schema::table_schema;

    mod schema {
        use std::borrow::Cow;

        use redtail_core::schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

        use super::{Accepted, Constants, GivenLaw, LawTable};

        impl<T: LawTable + JsonSchema> JsonSchema for GivenLaw<T>
        where
            T::Kind: JsonSchema,
        {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> Cow<'static, str> {
                format!("Given{}", T::schema_name()).into()
            }

            fn json_schema(generator: &mut SchemaGenerator) -> Schema {
                let (name, table) = (
                    generator.subschema_for::<T::Kind>(),
                    generator.subschema_for::<T>(),
                );
                json_schema!({"anyOf": [name, table]})
            }
        }

        /// The schema of the table of a law: its constants, with their ranges, and `kind`, which may be left out.
        pub(crate) fn table_schema<C: Constants + JsonSchema>(
            kind: &str,
            text: &str,
            usual: &C,
            generator: &mut SchemaGenerator,
        ) -> Schema {
            let mut keys = C::json_schema(generator);
            let mut properties = json_schema!({ "kind": {"type": "string", "const": kind} });
            let own = keys.get_mut("properties").and_then(|own| own.as_object_mut());
            for (key, mut property) in own.into_iter().flat_map(std::mem::take) {
                let is_number = property["type"] == "number" || property["type"] == "integer";
                let accepted = C::accepted(&key).filter(|_| is_number);
                let ends = accepted.as_ref().and_then(Accepted::ends);
                let (least, most) = ends.map(|(least, most)| (least, most)).unzip();
                for (word, value) in [
                    ("minimum", least),
                    ("maximum", most),
                    ("default", usual.get(&key).as_ref()),
                ] {
                    if let (Some(value), Some(property)) = (value, property.as_object_mut()) {
                        let mut shown = json_schema!({ "value": value });
                        property.insert(word.to_owned(), shown.remove("value").unwrap_or_default());
                    }
                }
                properties.insert(key, property);
            }
            json_schema!({
                "type": "object",
                "description": text.trim(),
                "additionalProperties": false,
                "properties": properties,
            })
        }
    }
}

/// Defines the tables of a choice of laws, each with the type of its constants and, if they are not that type's defaults,
/// its constants. The choice itself is an enum with the
/// same variants, whose names in the file are the `kind`.
macro_rules! law_tables {
    ($(#[$meta:meta])* $vis:vis enum $tables:ident of $kinds:ident {
        $($(#[doc = $doc:literal])* $variant:ident($params:ty $(, $usual:expr)?),)+
    }) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq)]
        $vis enum $tables {
            $($(#[doc = $doc])* $variant(std::sync::Arc<$params>),)+
        }

        impl $tables {
            /// The law.
            pub fn kind(&self) -> $kinds {
                match self { $(Self::$variant(_) => $kinds::$variant,)+ }
            }
        }

        impl From<$kinds> for $tables {
            fn from(kind: $kinds) -> Self {
                match kind {
                    $($kinds::$variant => Self::$variant(std::sync::Arc::new(
                        $crate::constants::law_tables!(@usual $params $(, $usual)?)
                    )),)+
                }
            }
        }

        impl $crate::constants::LawTable for $tables {
            type Kind = $kinds;

            fn kind(&self) -> $kinds {
                self.kind()
            }

            fn depart(
                &mut self,
                given: &[(String, $crate::constants::Loose)],
            ) -> Result<(), redtail_core::ParamError> {
                let law = self.kind().into();
                match self {
                    $(Self::$variant(constants) => $crate::constants::depart(
                        law, constants, given, &$crate::constants::law_tables!(@usual $params $(, $usual)?),
                    ),)+
                }
            }

            fn check(&self) -> Result<(), redtail_core::ParamError> {
                match self {
                    $(Self::$variant(constants) => $crate::constants::Constants::check(
                        &**constants, &$crate::constants::law_tables!(@usual $params $(, $usual)?),
                    ),)+
                }
            }
        }

        redtail_core::when_serde! {
            impl redtail_core::serde::Serialize for $tables {
                fn serialize<S: redtail_core::serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                    #[derive(redtail_core::serde::Serialize)]
                    #[serde(crate = "redtail_core::serde", tag = "kind", rename_all = "kebab-case")]
                    enum Tagged<'a> {
                        $($variant(&'a $params),)+
                    }
                    match self {
                        $(Self::$variant(constants) => Tagged::$variant(constants).serialize(serializer),)+
                    }
                }
            }
        }

        redtail_core::when_schema! {
            impl redtail_core::schemars::JsonSchema for $tables {
                fn schema_name() -> std::borrow::Cow<'static, str> {
                    stringify!($tables).into()
                }

                fn json_schema(
                    generator: &mut redtail_core::schemars::SchemaGenerator,
                ) -> redtail_core::schemars::Schema {
                    let tables = [$($crate::constants::table_schema::<$params>(
                        $kinds::$variant.into(),
                        concat!($($doc),*),
                        &$crate::constants::law_tables!(@usual $params $(, $usual)?),
                        generator,
                    )),+];
                    redtail_core::schemars::json_schema!({ "anyOf": tables })
                }
            }
        }
    };
    // The constants that a law has without others.
    (@usual $params:ty) => { <$params>::default() };
    (@usual $params:ty, $usual:expr) => { $usual };
}

pub(crate) use law_tables;
