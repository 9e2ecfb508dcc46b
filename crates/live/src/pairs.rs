//! The programs of groups of kind `program`: pairs of a client and perhaps its server.

pub mod report;
