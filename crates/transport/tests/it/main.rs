//! What `transport` shows to those who use it: one program, a file per topic.

mod application;
mod bbr;
mod channel;
mod closing;
mod common;
mod copa;
mod dsack;
mod ecn;
mod endpoint;
mod flow_control;
mod frto;
mod growth;
mod growth_laws;
mod law_constants;
mod linux;
mod linux_receiver;
mod linux_timers;
mod pacing;
mod rack;
mod receiver;
mod recovery;
mod sack;
mod scalable;
mod steady_state;
mod timeout;
