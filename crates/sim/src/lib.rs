//! The simulator: links, routes, endpoints and the loop that moves packets
//! between them.
//!
//! A run is a function of its [`Scenario`](redtail_spec::Scenario) only: it does not depend on a
//! clock, on threads or on the order of a hash map. The engine knows links and routes; `network`
//! compiles topologies such as a dumbbell into these.

mod answers;
mod capacity;
pub mod capture;
mod congestion;
mod connections;
mod conservation;
mod engine;
mod flows;
mod header;
pub mod metrics;
mod network;
mod packet;
mod result;
mod scheduler;
mod series;
mod statistics;

pub use engine::{RunError, RunOptions, run};
pub use packet::SimPacket;
pub use redtail_qdisc::{Plugins, plugin};
pub use redtail_traffic::Traces;
pub use result::{FlowSeries, QueueSeries, ResponseTimes, RunResult, Transfers};
