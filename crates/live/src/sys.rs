//! System calls. This folder alone has unsafe code.

pub mod clock;
pub mod descriptors;
#[cfg(target_arch = "x86_64")]
pub mod first_process;
pub mod mounts;
pub mod namespace;
pub mod netlink;
#[cfg(target_arch = "x86_64")]
pub mod ports;
pub mod scheduling;
pub mod tcp_info;
pub mod tun;
