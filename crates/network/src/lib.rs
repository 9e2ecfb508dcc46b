//! The network between endpoints: queues, links, routes and delays, in the order of events, and what
//! is measured there.
//!
//! It does not know what packets carry, and not who reads the clock. The simulator puts its own TCP
//! at the ends and runs as fast as it can; the live engine puts the kernel's TCP there and follows
//! real time.

pub mod answers;
pub mod capacity;
pub mod capture;
pub mod columns;
pub mod congestion;
pub mod flow_numbers;
pub mod flow_rows;
pub mod group_report;
pub mod histogram;
pub mod histograms;
pub mod link;
pub mod links;
pub mod lookahead;
pub mod metrics;
pub mod network;
pub mod packet;
pub mod paths;
pub mod report;
pub mod result;
pub mod scheduler;
pub mod statistics;
pub mod transmitter;

pub use answers::Answers;
pub use flow_numbers::FlowNumbers;
pub use link::{End, Ends, INSTANT, Link, LinkPassed};
pub use links::Links;
pub use network::{Network, compile};
pub use packet::{ContentId, SimPacket, TrafficClass};
pub use paths::{Address, HostRoutes, Paths, Target};
pub use scheduler::{Alarm, Class, Event, Lookahead, Scheduler};
