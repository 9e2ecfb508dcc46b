//! The disciplines: a file each.

pub mod adaptive_red;
pub mod drr;
pub mod dynamic_threshold_red;
pub mod htb;
pub mod prio;
pub mod red;
pub mod self_configuring_red;
pub mod tail_drop;
pub mod tbf;
pub mod wfq;
pub mod wred;
