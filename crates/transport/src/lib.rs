//! TCP as sans-I/O state machines.
//!
//! An endpoint is given segments and the time, and is asked for segments to send. It must not know clocks,
//! timers, packets on links, or queues. It owns no socket, and cannot tell a simulation from real traffic.
//!
//! A sender is composed of small strategies, a file each:
//!
//! - `cc`: growth of the window, slow start, and models of the path
//! - `plugin`: controllers of users
//! - `tcp::recovery`: loss recovery
//! - `tcp::ecn`: response to ECN
//! - `tcp::ack_policy`: the policy of acknowledging, at the receiver
//!
//! Dispatch over growth laws, models and recoveries is by enum, not by boxed objects. Controllers of users alone are
//! boxed.
//!
//! `tcp` has the endpoints (`sender`, `receiver`, and `endpoint`, which is both for one side of a connection) and
//! their parts. `segment` is what they exchange, `params` are the parameters of a connection, `choices` its
//! rules as keys of the `tcp` table, `constants` the constants of laws as keys, and `presets` named sets of parameters.
//!
//! CONTRIBUTING.md says how to add a growth law, a model and a recovery. README.md and `examples/download.rs` show
//! two endpoints in a program of one's own. The features `serde` and `schema` are off by default.

// What the attributes of serde's and schemars' derives name, where `redtail-core` has these without effect.
#![cfg_attr(not(feature = "schema"), allow(unused_imports))]

pub mod cc;
pub mod choices;
pub mod constants;
pub mod params;
pub mod plugin;
pub mod presets;
pub mod segment;
pub mod tcp;

pub use params::{HeaderSizes, ResolvedTcpParams, TcpParams};
pub use plugin::{Episode, Plugins};
pub use presets::Preset;
pub use segment::{Flags, PlainAck, SackBlock, SackBlocks, Segment};
pub use strum::VariantArray;
pub use tcp::endpoint::{Due, Endpoint, Taken};
pub use tcp::receiver::Receiver;
pub use tcp::sender::{Sender, SenderCounters, SenderSnapshot, SenderStory, Way};
pub use tcp::undo::{UndoCause, Undone};

/// The examples of README.md are tested.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
