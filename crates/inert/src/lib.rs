//! Derives without effect.
//!
//! Where `redtail-core` is built without its features `serde` and `schema`, `redtail_core::serde` and
//! `redtail_core::schemars` have these derives in place of those of the crates of the same names. So a table of
//! parameters is written once, with its attributes, and is the same struct with and without the features. Nothing but
//! `redtail-core` should name this crate.

use proc_macro::TokenStream;

/// Writes nothing, and accepts the attributes `#[serde(...)]`.
#[proc_macro_derive(Serialize, attributes(serde))]
pub fn serialize(_item: TokenStream) -> TokenStream {
    TokenStream::new()
}

/// Writes nothing, and accepts the attributes `#[serde(...)]`.
#[proc_macro_derive(Deserialize, attributes(serde))]
pub fn deserialize(_item: TokenStream) -> TokenStream {
    TokenStream::new()
}

/// Writes nothing, and accepts the attributes `#[schemars(...)]` and `#[serde(...)]`.
#[proc_macro_derive(JsonSchema, attributes(schemars, serde))]
pub fn json_schema(_item: TokenStream) -> TokenStream {
    TokenStream::new()
}
