//! The types that every part of redtail shares: exact units, identifiers, a queue's view of a
//! packet, named random streams, and the errors by which parameters are refused.
//!
//! It must not know queues, protocols or files. Nothing in this crate reads a clock: time is always an
//! argument.
//!
//! - `units`: times, rates and sizes as types, each a whole number of a base unit
//! - `packet`, `dscp`: what a queue sees of a packet
//! - `random`: a stream of random numbers for each component, found by the component's name
//! - `params`: the keys of a table of the experiment file, declared once; `kinded`: tables that choose an
//!   implementation by `kind`; `one_or_list`: a value or a list of values
//! - `param`: errors and warnings about parameters; `metric`: the definition of a metric
//! - `plugin`: what queues and controllers of users have in common
//! - `ring`: a first-in first-out store of small values
//! - `prefetch`, `large_pages`: hints to cache and kernel about memory. `LargePages` is the allocator of the
//!   native module.
//!
//! The last three have `unsafe`, each with its reason; ARCHITECTURE.md lists the rooms that do.
//!
//! # Features
//!
//! None is on by default, and then only random numbers come from other crates.
//!
//! - `serde`: tables of parameters, quantities and other values are read and written by serde
//! - `schema`: with `serde`, they also have a JSON schema, by schemars
//! - `large-pages`: `LargePages`, for which rustix asks the kernel on Linux
//!
//! Without the first two, `serde` and `schemars` in this crate are derives without effect (`redtail-inert`), so that
//! tables are written once. Code of other crates that needs the real ones stands in `when_serde!` or `when_schema!`,
//! which go by the features of this crate: there is one switch, and crates cannot disagree about it.

// The macros name this crate by its name, in this crate too.
extern crate self as redtail_core;

pub mod dscp;
pub mod kinded;
#[cfg(feature = "large-pages")]
mod large_pages;
pub mod metric;
#[cfg(feature = "serde")]
pub mod one_or_list;
pub mod packet;
pub mod param;
pub mod params;
pub mod plugin;
mod prefetch;
pub mod random;
pub mod ring;
pub mod units;

pub use dscp::Dscp;
#[cfg(feature = "large-pages")]
pub use large_pages::LargePages;
pub use metric::Metric;
pub use packet::{Ecn, FlowId, Packet};
pub use param::{ParamError, ParamWarning};
pub use prefetch::{prefetch, prefetch_behind, prefetch_start};
pub use random::{Places, SmallStream, Stream};
pub use ring::Ring;
pub use units::{Bytes, QueueSize, Rate, Sampling, Span, Time, as_f64, earlier, nearest_whole};

// Re-exported for `kinded!` and `params!`, so that their users need not name them.
#[cfg(feature = "schema")]
#[doc(hidden)]
pub use schemars;
#[cfg(feature = "serde")]
#[doc(hidden)]
pub use serde;

/// Stands in for the crate of this name.
#[cfg(not(feature = "schema"))]
#[doc(hidden)]
pub mod schemars {
    pub use redtail_inert::JsonSchema;
}

/// Stands in for the crate of this name.
#[cfg(not(feature = "serde"))]
#[doc(hidden)]
pub mod serde {
    pub use redtail_inert::{Deserialize, Serialize};
}

/// The examples of README.md are tested.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
