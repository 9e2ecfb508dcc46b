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
//!   native module. Besides `crates/live` and `crates/turns`, which call the system, these hints alone have
//!   `unsafe`.

pub mod dscp;
pub mod kinded;
mod large_pages;
pub mod metric;
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
pub use large_pages::LargePages;
pub use metric::Metric;
pub use packet::{Ecn, FlowId, Packet};
pub use param::{ParamError, ParamWarning};
pub use prefetch::{prefetch, prefetch_behind, prefetch_start};
pub use random::{Places, SmallStream, Stream};
pub use ring::Ring;
pub use units::{Bytes, QueueSize, Rate, Sampling, Span, Time, as_f64, earlier, nearest_whole};

// Re-exported for `kinded!` and `params!`, so that their users need not name them.
#[doc(hidden)]
pub use {schemars, serde};
