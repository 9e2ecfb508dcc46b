//! The network between endpoints: queues, links, routes and delays, in the order of events, and what
//! is measured there.
//!
//! It must not know what packets carry, TCP, who reads the clock, the experiment file (it is given a checked
//! `Scenario`), or what a dumbbell is (`network` alone compiles templates). The simulator puts its own TCP at the
//! ends and runs as fast as it can; the engine in real time (`crates/live`) puts the kernel's TCP there and
//! follows real time.
//!
//! - `links`: all links at work, with their schedule; `link`: one of them; `transmitter` and `capacity`: its
//!   rate, constant or not; `airtime`: frames, and a medium that both directions share; `link_state`: what can be read
//!   of a link between two events
//! - `wire`: what happens to packets after a transmitter: losses, copies, reordering, delays that differ
//! - `paths`: routes, delay lines and hosts' own links; `network`: these and the links, compiled from a scenario
//! - `scheduler`: the schedule of events; `lookahead`: why most events are not in it
//! - `packet`: the packet that is moved; `capture`: files of captured packets; `flow_numbers`: numbers of flows
//!   that come and go
//! - `statistics`, `histogram`, `congestion`, `answers`: what is measured during a run. Nothing that moves packets
//!   reads it. `packets`: what is measured of each packet where the scenario asks for it
//! - `events`: the event log while a run is made
//! - `metrics`: the definitions; `report` and `group_report`: the metrics of links and of groups; `histograms` and
//!   `flow_rows`: tables of distributions and flows; `result`: the result of a run, and `columns` of many

pub mod airtime;
pub mod answers;
pub mod capacity;
pub mod capture;
pub mod columns;
pub mod congestion;
pub mod events;
pub mod flow_numbers;
pub mod flow_rows;
pub mod group_report;
pub mod histogram;
pub mod histograms;
pub mod link;
pub mod link_state;
pub mod links;
pub mod lookahead;
pub mod metrics;
pub mod network;
pub mod packet;
pub mod packets;
pub mod paths;
pub mod report;
pub mod result;
pub mod scheduler;
pub mod statistics;
pub mod transmitter;
pub mod wire;

pub use answers::Answers;
pub use events::{EventRecorder, EventRow, PacketEvent};
pub use flow_numbers::FlowNumbers;
pub use link::{End, Ends, Link, LinkPassed};
pub use link_state::LinkState;
pub use links::Links;
pub use lookahead::{INSTANT, Lookahead};
pub use network::{Network, compile};
pub use packet::{ContentId, SimPacket, TrafficClass};
pub use packets::PacketMeter;
pub use paths::{Address, HostRoutes, Paths, Target};
pub use scheduler::{Alarm, Class, Event, Scheduler};
