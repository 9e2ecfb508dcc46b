//! The types that every part of redtail shares: exact units, identifiers, a queue's view of a
//! packet, named random streams, and the errors by which parameters are refused.
//!
//! Nothing in this crate reads a clock: time is always an argument.

pub mod dscp;
pub mod kinded;
mod large_pages;
pub mod metric;
pub mod one_or_list;
pub mod packet;
pub mod param;
pub mod params;
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
pub use random::{SmallStream, Stream};
pub use ring::Ring;
pub use units::{Bytes, QueueSize, Rate, Sampling, Span, Time, as_f64, earlier, nearest_whole};

// Re-exported for `kinded!` and `params!`, so that their users need not name them.
#[doc(hidden)]
pub use {schemars, serde};
