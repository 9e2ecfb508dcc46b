//! TCP as sans-I/O state machines.
//!
//! An endpoint is given segments and the time, and is asked for segments to send. It never reads a
//! clock and owns no socket. A sender is composed of small strategies, a file each: growth of the
//! window (`cc`), loss recovery (`tcp::recovery`), response to ECN (`tcp::ecn`), and, at the
//! receiver, the policy of acknowledging (`tcp::ack_policy`).

pub mod cc;
pub mod choices;
pub mod params;
pub mod presets;
pub mod segment;
pub mod tcp;

pub use params::{ResolvedTcpParams, TcpParams};
pub use presets::Preset;
pub use segment::{Flags, PlainAck, SackBlock, SackBlocks, Segment};
pub use strum::VariantArray;
pub use tcp::endpoint::{Due, Endpoint, Taken};
pub use tcp::receiver::Receiver;
pub use tcp::sender::{Sender, SenderCounters, SenderSnapshot};
