//! The two endpoints of a connection and their parts.

pub mod ack_policy;
pub(crate) mod adaptive_acks;
pub(crate) mod closing;
pub mod delivery_rate;
pub mod ecn;
pub mod endpoint;
pub(crate) mod frto;
pub(crate) mod pacing;
pub(crate) mod progress;
pub(crate) mod prr;
pub mod rack;
pub mod ranges;
mod receive_buffer;
pub mod receiver;
pub mod recovery;
pub mod rto;
pub mod scoreboard;
pub mod sender;
pub(crate) mod slow_reader;
mod timer_wheel;
mod timestamps;
pub(crate) mod undo;
