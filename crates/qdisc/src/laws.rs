//! Control laws: what a queue observes becomes pass, mark or drop.

pub mod ack_filter;
pub mod cobalt;
pub mod codel;
pub mod docsis_pie;
pub mod pi;
pub mod pie;
pub mod red;
pub mod red_tail;
pub mod token_bucket;
