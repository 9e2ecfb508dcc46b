//! Runs experiments with the TCP of this Linux kernel, between network namespaces that the run makes
//! for itself, over the simulator's links and queues in real time.
//!
//! Each side of each traffic group is a network namespace with a TUN device ([`spaces`]). One thread
//! is the network ([`emulator`]), another one runs the applications on sockets ([`hosts`]). In virtual
//! time, one thread does both.

pub mod adaptive_red;
pub mod addresses;
pub mod counters;
pub mod emulator;
pub mod event_loop;
pub mod exchange;
pub mod flows;
#[cfg(target_arch = "x86_64")]
pub mod guest;
pub mod handover;
pub mod hosts;
pub mod kernel;
pub mod kernel_queue;
pub mod meter;
pub mod outside;
pub mod packet;
pub mod programs;
pub mod report;
pub mod run;
pub mod spaces;
pub mod sys;
pub mod tc;

pub use run::{LiveResult, RunError, RunOptions, run};
