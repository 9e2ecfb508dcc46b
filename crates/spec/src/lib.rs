//! x
#![allow(dead_code, missing_docs)]
mod de;
mod error;
mod expand;
mod node;
mod paths;
