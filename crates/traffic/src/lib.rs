//! Workload models: who sends, how much, from when, and by which access link.
//!
//! A model must not know the engine. It draws from named streams. It says when a flow starts and, for sources
//! that pace themselves, when the next packet is due; TCP does the rest. Users run an [`Application`], which
//! opens connections and asks.
//!
//! - `kind`: what a kind of traffic says of itself; `group`: the list of the kinds; `keys`: the keys that every
//!   group has; `access`: how a group reaches the bottleneck; `hosts`: on whose hosts its
//!   flows sit
//! - TCP flows: `bulk`, `transfer`
//! - UDP sources: `cbr`, `on_off`, `voip` (with `e_model`), `game`
//! - users: `web`, `transactions`, `video`, `arrivals`, `trace` (a table of connections: `table`)
//! - `call`: calls that adapt, with a state machine at each end; `endpoint`: the same with state machines of users
//! - `program`: pairs of programs of the user, which only backends with a real kernel run
//! - `application`: the interface of users to the network; `exchanges`: the exchanges of one connection
//! - `dist`: random quantities; `dealt`: quantities dealt out to flows; `start`: when flows start; `repeat`: groups
//!   that come and go; `hosts` and `hop`: whose hosts, and which hops; `load`: how much a group offers; `bounds`: what a group may contain at most
//!
//! CONTRIBUTING.md says how to add a kind of traffic.

pub mod access;
pub mod application;
pub mod arrivals;
mod bounds;
pub mod bulk;
pub mod call;
pub mod cbr;
pub mod dealt;
pub mod dist;
pub mod e_model;
pub mod endpoint;
pub mod exchanges;
pub mod game;
pub mod group;
pub mod hop;
pub mod hosts;
mod keys;
pub mod kind;
pub mod load;
pub mod on_off;
pub mod packet;
pub mod program;
mod repeat;
pub mod start;
pub mod table;
pub mod trace;
pub mod transactions;
pub mod transfer;
pub mod video;
pub mod voip;
pub mod web;

pub use access::{Access, AccessFilling, Direction};
pub use application::{Answer, Application, ConnectionId, Exchange, Network, Server};
pub use arrivals::ArrivalsParams;
pub use bounds::{MAX_FLOWS, MAX_HOST_JITTER, check_host_jitter};
pub use bulk::BulkParams;
pub use call::{CallEnd, CallPacket, CallParams};
pub use cbr::CbrParams;
pub use dealt::Dealt;
pub use dist::{Anchor, Dist, Drawn, Law};
pub use endpoint::EndpointParams;
pub use exchanges::{Done, Exchanges, Order, ServerStream};
pub use game::GameParams;
pub use group::{FlowKind, TrafficParams, UdpSource, User};
pub use hop::ChainHop;
pub use hosts::{Hosts, TakenHosts};
pub use load::Load;
pub use on_off::OnOffParams;
pub use packet::DrawnSizes;
pub use program::{ProgramParams, TakenFile};
pub use start::Start;
pub use table::{TraceTable, TracedConnection, TracedExchange, Traces};
pub use trace::{Arranged, TableFacts, TraceParams};
pub use transactions::TransactionParams;
pub use transfer::TransferParams;
pub use video::VideoParams;
pub use voip::{Playout, VoipParams};
pub use web::WebParams;

/// What a text in JSON has. All tests read values of JSON: the compiler makes the code that reads all groups anew for
/// each form.
#[cfg(test)]
fn from_json<T: serde::de::DeserializeOwned>(text: &str) -> serde_json::Result<T> {
    serde_json::from_str(text).and_then(serde_json::from_value)
}
