//! Runs experiments with the TCP of this Linux kernel, between network namespaces that the run makes
//! for itself, over the simulator's links and queues in real time.
//!
//! It must not know the experiment file, factors or replications: it gets one scenario. It leaves nothing
//! behind and touches nothing outside of its namespaces, and it measures how late it was. System calls and
//! `unsafe` are in `sys`.
//!
//! # Real time
//!
//! `redtail.backends.live` starts a process for each run (`redtail.backends.agent`). This enters a user
//! namespace and calls `run`, which makes the namespaces and two threads, each with a loop that does what is
//! due and then what is ready (`event_loop`). Each side of each traffic group is a network namespace with a TUN
//! device ([`spaces`]).
//!
//! - One thread is the network ([`emulator`]). It reads packets from the TUN devices, finds their flows by
//!   addresses and ports (`flows`, `addresses`, `packet`), gives them to `Links` (`crates/network`) with their
//!   bytes in buffers, carries out what is due, and writes what arrives. While it is late, a third thread
//!   writes to the receivers of data (`handover`).
//! - The other one is the hosts ([`hosts`]): the programs of `crates/traffic` on sockets (`hosts/port.rs` is their
//!   `Network`, `hosts/stream.rs` a connection, `hosts/udp.rs` the sources, `hosts/call.rs` the callers).
//! - `kernel` says what the kernel can be told and which experiments it can run, `counters` what it has counted;
//!   `report` makes metrics of both; `meter`: what passes the links, for those who watch.
//! - `kernel_queue` puts a queue of the kernel at a link, with the options that `tc` maps; `adaptive_red` starts
//!   what `tc` does not start.
//! - `pairs`: the programs of groups of kind `program`, and what they left (`pairs/report.rs`).
//! - `programs` and `outside`: programs of the user, and the world outside of a run (`redtail shell`); `children`
//!   starts programs and ends them.
//!
//! # Virtual time
//!
//! `guest` is the first process in a virtual machine (`redtail.backends.virtual`). It reads the request, calls
//! `run` with `virtual_time`, counts how long the guest was idle, and sends the reply; or it runs programs and
//! sends what they printed. The network and the hosts are then in one thread, which wakes up only for what
//! hosts or queues of the kernel notice (`lookahead` in `crates/network`). `exchange` has the form of both
//! messages, and of the reply of a run in real time.

pub mod adaptive_red;
pub mod addresses;
pub mod children;
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
pub mod pairs;
pub mod programs;
pub mod report;
pub mod run;
pub mod spaces;
pub mod sys;
pub mod tc;

pub use run::{LiveResult, RunError, RunOptions, run};
