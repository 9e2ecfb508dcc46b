//! Plug-ins that are WebAssembly modules: compiled from Rust, C or C++, and the same on all machines.
//!
//! A module has no system, no files, no clock and no threads: it gets numbers and its own memory, and calls the
//! functions of redtail alone. So it may be executed without permission, and a run with it is a function of its bytes.
//! The interface is described for authors in `redtail_plugin.h` of `redtail init`; the names here are the same.
//!
//! | bound | value | reason |
//! |---|---|---|
//! | size of a module | [`MAX_MODULE`] | FQ-CoDel compiled from C has 4 kB, from Rust with its standard library 100 kB |
//! | memory of an instance | [`MAX_MEMORY`] | 16 bytes for each of 2^22 packets; Linux gives FQ-CoDel 32 MiB of packets |
//! | one call | [`MAX_CALL`] | a million times what a call of a built-in queue takes |
//! | figures in a report | [`MAX_FIGURES`] | ten times what CAKE reports |
//!
//! Results do not depend on the machine: the bits of a NaN are fixed, and proposals whose results may differ
//! (threads, relaxed vectors) are off. The bound on time only ends runs.

mod calls;
mod controller;
mod engine;
mod module;
mod queue;
mod trial;

pub use calls::{MAX_FIGURES, WrongParam};
pub use engine::{MAX_CALL, MAX_MEMORY};
pub use module::{MAX_MODULE, Module, ModuleError};
