//! Workload models: who sends, how much, from when.
//!
//! A model draws from named streams and knows no engine. It says when a flow
//! starts and, for sources that pace themselves, when the next packet is due;
//! TCP does the rest.

pub mod dealt;
pub mod dist;
pub mod group;
pub mod start;

pub use dealt::Dealt;
pub use dist::Dist;
pub use group::{Access, BulkGroup, CbrGroup, Direction, TrafficGroup, TransferGroup};
pub use start::Start;
