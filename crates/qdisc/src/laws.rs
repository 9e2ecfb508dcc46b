//! Control laws: what a queue observes becomes pass, mark or drop.

pub mod red;
