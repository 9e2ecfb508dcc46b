//! Workload models: who sends, how much, from when.
//!
//! A model draws from named streams and knows no engine. It says when a flow
//! starts and, for sources that pace themselves, when the next packet is due;
//! TCP does the rest. Users run an [`Application`], which opens connections and asks.

pub mod application;
pub mod dealt;
pub mod dist;
pub mod group;
mod keys;
pub mod start;
pub mod transactions;
pub mod user;
pub mod web;

pub use application::{Answer, Application, ConnectionId, Exchange, Network, Server};
pub use dealt::Dealt;
pub use dist::{Anchor, Dist, Drawn, Law};
pub use group::{Access, BulkGroup, CbrGroup, Direction, TrafficGroup, TransferGroup};
pub use start::Start;
pub use transactions::TransactionGroup;
pub use user::User;
pub use web::WebGroup;
