//! The simulator: endpoints at the ends of a network, and the loop that moves packets between them.
//!
//! It must not know the experiment file, factors or replications: it gets one [`Scenario`](redtail_spec::Scenario).
//! A run is a function of it only: it does not depend on a clock, on threads or on the order of a hash map.
//! Links, delay lines, scheduler and statistics are in `crates/network`, which compiles topologies such as a
//! dumbbell into links and routes, and which the engine in real time (`crates/live`) uses with other endpoints.
//!
//! - `engine`: the loop of events. Its parts: `simulation` (a run that is advanced in steps), `run` (options and errors of
//!   a run), `ends` (the endpoints and contents of packets, as links know them: the trait `Ends`), `endpoints` (TCP, UDP
//!   and calls), `users`, `measurement`, `report` and `flow_rows`
//! - `flows`: the endpoints of a run; `connections`: those that users open and close; `packet`: what packets
//!   carry; `header`: the TCP header of a packet, for queues that read it
//! - `plugins`: queues and controllers of users
//! - `endpoint`: the interface of endpoints that users bring; `own`: these endpoints in a run, and their payloads
//! - `series`: time series; `capture`: packets that pass chosen points, as files
//! - `conservation`: at the end of every run no packet is missing, in release builds too

pub mod capture;
mod connections;
mod conservation;
pub mod endpoint;
mod engine;
mod flows;
mod header;
mod own;
mod packet;
mod plugins;
mod series;

pub use endpoint::{Datagram, Endpoint, EndpointContext, EndpointSide, Endpoints};
pub use engine::{FlowState, RunError, RunOptions, Samples, Simulation, run};
pub use redtail_network::result::{FlowSeries, QueueSeries, ResponseTimes, RunResult, Transfers};
pub use redtail_network::{LinkState, SimPacket, metrics};
pub use redtail_qdisc::plugin;
pub use redtail_traffic::Traces;
pub use redtail_transport::plugin as controller;
pub use redtail_transport::{SenderCounters, SenderSnapshot};

pub use plugins::Plugins;
