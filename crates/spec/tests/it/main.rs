//! What `spec` shows to those who use it: one program, a file per topic.

mod cases;
mod common;
mod groups;
mod plans;
mod refusals;
mod schemas;
mod shared_hosts;
mod udp_groups;
mod warnings;
