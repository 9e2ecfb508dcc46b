//! Places of values, for error messages.

use std::sync::Arc;

/// Where a value comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// A line of the file, counted from 1.
    File {
        /// The line.
        line: u32,
    },
    /// A `--set` argument, given here.
    Set(Arc<str>),
    /// Typed objects or JSON: there is no line to name.
    Api,
}

impl Origin {
    /// The line, for a value from the file.
    pub fn line(&self) -> Option<u32> {
        match self {
            Origin::File { line } => Some(*line),
            _ => None,
        }
    }
}
