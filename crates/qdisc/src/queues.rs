//! The disciplines: a file each.

pub mod red;
pub mod tail_drop;
