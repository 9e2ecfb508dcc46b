//! The simulator: links, routes, endpoints and the loop that moves packets
//! between them.
//!
//! A run is a function of its [`Scenario`](redtail_spec::Scenario) only: it does not depend on a
//! clock, on threads or on the order of a hash map. The engine knows links and routes; `network`
//! compiles topologies such as a dumbbell into these.

pub mod capture;
mod connections;
mod conservation;
mod engine;
mod flows;
mod header;
mod packet;
mod series;

pub use engine::{RunError, RunOptions, run};
pub use redtail_network::result::{FlowSeries, QueueSeries, ResponseTimes, RunResult, Transfers};
pub use redtail_network::{SimPacket, metrics};
pub use redtail_qdisc::{Plugins, plugin};
pub use redtail_traffic::Traces;
