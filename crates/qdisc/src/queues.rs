//! The disciplines: a file each.

pub mod drr;
pub mod htb;
pub mod prio;
pub mod red;
pub mod tail_drop;
pub mod tbf;
pub mod wfq;
