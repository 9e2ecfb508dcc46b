//! What `traffic` shows to those who use it: one program, a file per topic.

mod common;
mod samples;
mod transactions;
mod web;
