//! Tables of the experiment file that choose an implementation by `kind`.

/// Defines an enum of parameter structs chosen by the key `kind`.
///
/// In the file a value is one table, `{ kind = "red", limit = "300 packets" }`.
/// Serialization writes that form and the schema describes it. Deserialization
/// is serde's ordinary enum protocol: the experiment file's deserializer takes
/// `kind` as the variant's name. (serde's own internal tagging would buffer the
/// table and lose the line numbers of its keys.)
///
/// To add a queue or a traffic model is one line in such an enum.
#[macro_export]
macro_rules! kinded {
    ($(#[$meta:meta])* $vis:vis enum $name:ident {
        $($(#[$variant_meta:meta])* $kind:literal => $variant:ident($params:ty),)+
    }) => {
        #[derive(Clone, Debug, PartialEq, $crate::serde::Deserialize, $crate::schemars::JsonSchema)]
        #[serde(crate = "redtail_core::serde")]
        #[schemars(crate = "redtail_core::schemars", tag = "kind")]
        $(#[$meta])*
        $vis enum $name {
            $($(#[$variant_meta])* #[serde(rename = $kind)] $variant($params),)+
        }

        impl $name {
            /// Every `kind`, in the order of the definition.
            pub const KINDS: &'static [&'static str] = &[$($kind),+];

            /// The `kind` that chooses this variant in the experiment file.
            pub fn kind(&self) -> &'static str {
                match self { $(Self::$variant(_) => $kind,)+ }
            }
        }

        $crate::when_serde! {
            impl $crate::serde::Serialize for $name {
                fn serialize<S: $crate::serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                    #[derive($crate::serde::Serialize)]
                    #[serde(crate = "redtail_core::serde", tag = "kind")]
                    enum Tagged<'a> {
                        $(#[serde(rename = $kind)] $variant(&'a $params),)+
                    }
                    match self {
                        $(Self::$variant(params) => Tagged::$variant(params).serialize(serializer),)+
                    }
                }
            }
        }
    };
}
