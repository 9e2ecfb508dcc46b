//! Tests of plug-ins that are WebAssembly modules.

mod bounds;
mod modules;
