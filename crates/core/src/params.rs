//! Tables of the experiment file whose keys are declared once, with text, type, default and
//! source together.

#[cfg(feature = "schema")]
use schemars::Schema;
#[cfg(feature = "serde")]
use serde::{Deserialize, Deserializer};

/// Defines structs that mirror a table of the experiment file. Their names end in `Params`.
///
/// ```
/// redtail_core::params! {
///     /// What the table is.
///     pub struct CurveParams {
///         /// A key that the file must have.
///         points: u32;
///         /// A key with a default, and where the default comes from.
///         slope: f64 = 0.1, "Author 1999, section 2";
///         /// A key that may be left out, with or without a source.
///         bound: Option<f64>, "none";
///         /// A list that may be left out; an empty list is not written.
///         marks: Vec<u32> = [];
///         /// A key whose name is a keyword of Rust.
///         rule as "match": Option<String>;
///     }
/// }
/// assert_eq!(CurveParams::new(3).slope, 0.1);
/// ```
///
/// A default cannot be given without a source. The source becomes the last line of the key's
/// documentation; the default goes to deserialization, to the schema, and to `new`. `new` takes
/// the keys that the file must have and gives all others their default; a struct without such
/// keys implements `Default` instead. Other attributes of a key, such as
/// `#[schemars(range(min = 1))]`, are kept. `key with "module": Type;` reads and writes a key by
/// functions of a module, as serde's attribute of that name does.
///
/// Keys that several tables share stand in a group, see [`shared_keys!`](crate::shared_keys!).
/// `group!(key, other);` declares them in this place, and `group!(key = default, "source");`
/// declares one with a default of this table's own.
///
/// `pub struct NAME => FUNCTION { ... }` applies a function to what has been read.
#[macro_export]
macro_rules! params {
    ($($(#[$meta:meta])* $vis:vis struct $name:ident $(=> $finish:path)? { $($keys:tt)* })+) => {$(
        $crate::params! {
            @next ($vis $name [$(#[$meta])*] [$($finish)?]) [] [] []
            $($keys)*
        }
    )+};

    // Each key in turn adds to the fields, to the arguments of `new`, and to the names of the
    // keys with a default.
    (@next $head:tt [$($field:tt)*] $required:tt $defaults:tt
        $(#[$meta:meta])* $key:ident $(as $name:literal)?: Option<$type:ty> $(, $source:literal)?;
        $($rest:tt)*
    ) => {
        $crate::params! {
            @next $head
            [$($field)* {
                $key: [Option<$type>] [None]
                [
                    $(#[$meta])* $(#[doc = concat!("Source: ", $source)])?
                    #[serde($(rename = $name,)? skip_serializing_if = "Option::is_none")]
                ]
                [#[serde($(rename = $name,)? default)]] [Option<$type>] [$key]
            }]
            $required $defaults
            $($rest)*
        }
    };
    (@next $head:tt [$($field:tt)*] $required:tt $defaults:tt
        $(#[$meta:meta])* $key:ident: Vec<$type:ty> = [] $(, $source:literal)?;
        $($rest:tt)*
    ) => {
        $crate::params! {
            @next $head
            [$($field)* {
                $key: [Vec<$type>] [Vec::new()]
                [
                    $(#[$meta])* $(#[doc = concat!("Source: ", $source)])?
                    #[serde(default, skip_serializing_if = "Vec::is_empty")]
                ]
                [#[serde(default)]] [Vec<$type>] [$key]
            }]
            $required $defaults
            $($rest)*
        }
    };
    // The same from a group, which passes the default as an expression.
    (@next $head:tt $fields:tt $required:tt $defaults:tt
        $(#[$meta:meta])* $key:ident: Vec<$type:ty> = $empty:expr;
        $($rest:tt)*
    ) => {
        $crate::params! {
            @next $head $fields $required $defaults
            $(#[$meta])* $key: Vec<$type> = [];
            $($rest)*
        }
    };
    (@next $head:tt [$($field:tt)*] $required:tt [$($default_key:ident)*]
        $(#[$meta:meta])* $key:ident: $type:ty = $default:expr, $source:literal;
        $($rest:tt)*
    ) => {
        $crate::params! {
            @next $head
            [$($field)* {
                $key: [$type] [$default]
                [
                    $(#[$meta])* #[doc = concat!("Source: ", $source)]
                    #[schemars(extend("default" = ::std::convert::identity::<$type>($default)))]
                ]
                [#[serde(default, deserialize_with = "redtail_core::params::given")]]
                [Option<$type>] [$key.unwrap_or_else(|| $default)]
            }]
            $required [$($default_key)* $key]
            $($rest)*
        }
    };
    (@next $head:tt [$($field:tt)*] [$($required:tt)*] $defaults:tt
        $(#[$meta:meta])* $key:ident $(with $with:literal)?: $type:ty;
        $($rest:tt)*
    ) => {
        $crate::params! {
            @next $head
            [$($field)* {
                $key: [$type] [$key]
                [$(#[$meta])* $(#[serde(with = $with)])?]
                [$(#[serde(with = $with)])?] [$type] [$key]
            }]
            [$($required)* $key: $type,] $defaults
            $($rest)*
        }
    };

    // Keys of a group.
    (@next $head:tt $fields:tt $required:tt $defaults:tt
        $group:ident!($key:ident $(= $default:expr, $source:literal)?);
        $($rest:tt)*
    ) => {
        $group! { $key [$($default, $source)?] ($head $fields $required $defaults) $($rest)* }
    };
    (@next $head:tt $fields:tt $required:tt $defaults:tt
        $group:ident!($key:ident, $($more:ident),+);
        $($rest:tt)*
    ) => {
        $group! { $key [] ($head $fields $required $defaults) $group!($($more),+); $($rest)* }
    };

    // All keys are known.
    (@next
        ($vis:vis $name:ident [$($meta:tt)*] [$($finish:path)?])
        [$({
            $key:ident: [$type:ty] [$initial:expr] [$($attribute:tt)*]
            [$($given_attribute:tt)*] [$given:ty] [$read:expr]
        })*]
        $required:tt
        [$($default_key:ident)*]
    ) => {
        #[derive(Clone, Debug, PartialEq, $crate::serde::Serialize, $crate::schemars::JsonSchema)]
        #[serde(crate = "redtail_core::serde", deny_unknown_fields)]
        #[schemars(
            crate = "redtail_core::schemars",
            transform = $name::have_defaults
        )]
        $($meta)*
        $vis struct $name {
            $($($attribute)* pub $key: $type,)*
        }

        $crate::when_schema! {
            impl $name {
                /// Tells the schema which keys have a default.
                fn have_defaults(table: &mut $crate::schemars::Schema) {
                    $crate::params::not_required(table, &[$(stringify!($default_key)),*]);
                }
            }
        }

        $crate::when_serde! {
            impl<'de> $crate::serde::Deserialize<'de> for $name {
                fn deserialize<D: $crate::serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                    #[derive($crate::serde::Deserialize)]
                    #[serde(crate = "redtail_core::serde", deny_unknown_fields)]
                    struct Given {
                        $($($given_attribute)* $key: $given,)*
                    }
                    let Given { $($key),* } = $crate::serde::Deserialize::deserialize(from)?;
                    let params = Self { $($key: $read),* };
                    $(let params = $finish(params);)?
                    Ok(params)
                }
            }
        }

        $crate::params! { @new $vis $name $required [$($key: $initial,)*] }
    };

    // What is left fits no form of a key.
    (@next $head:tt $fields:tt $required:tt $defaults:tt $($rest:tt)+) => {
        compile_error!(concat!(
            "expected `key: Type;`, `key: Option<Type>;`, `key: Vec<Type> = [];` or \
             `key: Type = default, \"source\";`, found `",
            stringify!($($rest)+),
            "`"
        ));
    };

    (@new $vis:vis $name:ident [] [$($field:tt)*]) => {
        impl Default for $name {
            fn default() -> Self {
                Self { $($field)* }
            }
        }
    };
    (@new $vis:vis $name:ident [$($key:ident: $type:ty,)+] [$($field:tt)*]) => {
        impl $name {
            /// A table with these keys; all other keys have their default.
            $vis fn new($($key: $type),+) -> Self {
                Self { $($field)* }
            }
        }
    };
}

/// Defines a group of keys that several tables share: a macro for use inside
/// [`params!`](crate::params!), which declares the keys it is asked for.
///
/// The first argument is a dollar sign, which a macro that defines a macro cannot write itself.
#[macro_export]
macro_rules! shared_keys {
    ($dollar:tt $(#[$group_meta:meta])* $group:ident {
        $($(#[$meta:meta])* $key:ident: $type:ident $(<$inner:ty>)? $(= $default:expr)? $(, $source:literal)?;)+
    }) => {
        $(#[$group_meta])*
        macro_rules! $group {
            $(
                ($key [] ($dollar($dollar state:tt)*) $dollar($dollar rest:tt)*) => {
                    $crate::params! {
                        @next $dollar($dollar state)*
                        $(#[$meta])* $key: $type $(<$inner>)? $(= $default)? $(, $source)?;
                        $dollar($dollar rest)*
                    }
                };
                ($key [$dollar own:expr, $dollar why:literal] ($dollar($dollar state:tt)*) $dollar($dollar rest:tt)*) => {
                    $crate::params! {
                        @next $dollar($dollar state)*
                        $(#[$meta])* $key: $type $(<$inner>)? = $dollar own, $dollar why;
                        $dollar($dollar rest)*
                    }
                };
            )+
            ($dollar key:ident $dollar($dollar rest:tt)*) => {
                compile_error!(concat!(
                    "`", stringify!($group), "` has no key `", stringify!($dollar key), "`"
                ));
            };
        }
        #[allow(unused_imports)]
        pub(crate) use $group;
    };
}

/// Code that is there with the feature `serde` of this crate, whichever crate it stands in.
#[cfg(feature = "serde")]
#[doc(hidden)]
#[macro_export]
macro_rules! when_serde {
    ($($code:tt)*) => { $($code)* };
}

/// Code that is there with the feature `serde` of this crate, whichever crate it stands in.
#[cfg(not(feature = "serde"))]
#[doc(hidden)]
#[macro_export]
macro_rules! when_serde {
    ($($code:tt)*) => {};
}

/// Code that is there with the feature `schema` of this crate, whichever crate it stands in.
#[cfg(feature = "schema")]
#[doc(hidden)]
#[macro_export]
macro_rules! when_schema {
    ($($code:tt)*) => { $($code)* };
}

/// Code that is there with the feature `schema` of this crate, whichever crate it stands in.
#[cfg(not(feature = "schema"))]
#[doc(hidden)]
#[macro_export]
macro_rules! when_schema {
    ($($code:tt)*) => {};
}

/// Reads a key that is there. An `Option` alone would also take a `null` for a key left out.
#[cfg(feature = "serde")]
#[doc(hidden)]
pub fn given<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    from: D,
) -> Result<Option<T>, D::Error> {
    T::deserialize(from).map(Some)
}

/// Takes these keys out of those that a table must have.
#[cfg(feature = "schema")]
#[doc(hidden)]
pub fn not_required(table: &mut Schema, keys: &[&str]) {
    let Some(required) = table
        .get_mut("required")
        .and_then(|keys| keys.as_array_mut())
    else {
        return;
    };
    required.retain(|key| !key.as_str().is_some_and(|key| keys.contains(&key)));
    if required.is_empty() {
        table.remove("required");
    }
}

#[cfg(test)]
mod tests {
    use schemars::generate::SchemaSettings;
    use serde_json::{Value, json};

    use super::*;

    crate::shared_keys! {
        $ slope_keys {
            /// How steep it is.
            slope: f64 = 0.1, "Author 1999";
            /// Where it ends.
            end: Option<f64>, "none";
        }
    }

    crate::params! {
        /// Keys of its own, and shared ones as they are.
        struct Plain {
            /// How many there are.
            #[schemars(range(min = 1))]
            count: u32;
            slope_keys!(slope, end);
            /// Which one it is.
            rule as "match": Option<u32>;
            /// Others.
            marks: Vec<u32> = [];
        }

        /// A shared key with another default, and a last step.
        struct Steep => Steep::doubled {
            slope_keys!(slope = 0.5, "Writer 2001");
        }
    }

    impl Steep {
        fn doubled(self) -> Self {
            Self {
                slope: 2.0 * self.slope,
            }
        }
    }

    fn read<T: for<'de> Deserialize<'de>>(table: Value) -> Result<T, String> {
        serde_json::from_value(table).map_err(|error| error.to_string())
    }

    #[test]
    fn a_missing_key_takes_its_default_or_is_named() {
        assert_eq!(read(json!({"count": 3})), Ok(Plain::new(3)));
        let given = Plain {
            slope: 2.0,
            rule: Some(7),
            marks: vec![1],
            ..Plain::new(3)
        };
        let table = json!({"count": 3, "slope": 2.0, "match": 7, "marks": [1]});
        assert_eq!(read(table.clone()), Ok(given.clone()));
        assert_eq!(
            serde_json::to_value(given).expect("it is plain data"),
            table
        );
        assert_eq!(
            read::<Plain>(json!({})),
            Err("missing field `count`".to_owned())
        );
        assert_eq!(
            read::<Plain>(json!({"count": 3, "rule": 7})),
            Err(
                "unknown field `rule`, expected one of `count`, `slope`, `end`, `match`, `marks`"
                    .to_owned()
            )
        );
    }

    #[test]
    fn a_null_is_not_a_missing_key() {
        let refused = read::<Plain>(json!({"count": 3, "slope": null}));
        assert_eq!(refused, Err("invalid type: null, expected f64".to_owned()));
    }

    #[test]
    fn a_table_may_have_another_default_and_a_last_step() {
        assert_eq!(Steep::default().slope, 0.5);
        assert_eq!(read::<Steep>(json!({})), Ok(Steep { slope: 1.0 }));
    }

    #[test]
    fn the_schema_shows_texts_and_defaults() {
        let mut schemas = SchemaSettings::draft2020_12().into_generator();
        let plain = schemas.root_schema_for::<Plain>();
        let keys = plain.get("properties").expect("it has keys");
        assert_eq!(plain.get("required"), Some(&vec!["count"].into()));
        assert_eq!(keys["count"]["minimum"], 1);
        assert_eq!(keys["slope"]["default"], 0.1);
        assert_eq!(
            keys["slope"]["description"],
            "How steep it is.\nSource: Author 1999"
        );
        assert_eq!(keys["match"]["description"], "Which one it is.");
        let steep = schemas.root_schema_for::<Steep>();
        assert_eq!(steep.get("required"), None);
        assert_eq!(
            steep.get("properties").expect("it has a key")["slope"]["default"],
            0.5
        );
    }
}
