//! The disciplines: a file each.

pub mod adaptive_red;
pub mod avq;
pub mod blue;
pub mod choke;
pub mod drr;
pub mod dualpi2;
pub mod dynamic_threshold_red;
pub mod gsp;
pub mod head_drop;
pub mod htb;
pub mod pi;
pub mod pi2;
pub mod pie;
pub mod prio;
pub mod red;
pub mod rem;
pub mod self_configuring_red;
pub mod sred;
pub mod step;
pub mod tail_drop;
pub mod tbf;
pub mod wfq;
pub mod wred;
