//! The number of the experiment file's format, which says what the keys of a file mean.
//!
//! A file of a later format may have any keys and values, so the number is looked at before all the rest.

use crate::error::Problem;
use crate::node::{Node, Value};

/// The format that is read. A file without a number has format 1, whatever this is.
///
/// It gets higher when a file that was valid would mean something else or be refused; new keys alone do
/// not make a new format.
pub const FORMAT: u64 = 1;

/// The key.
pub(crate) const KEY: &str = "format";

/// Refuses a file of another format.
pub(crate) fn check(tree: &Node) -> Result<(), Problem> {
    let Some(entry) = tree.as_table().and_then(|table| table.entry(KEY)) else {
        return Ok(());
    };
    let version = env!("CARGO_PKG_VERSION");
    let what = match entry.node.value {
        Value::Integer(number) if number == i128::from(FORMAT) => return Ok(()),
        Value::Integer(number) if number > i128::from(FORMAT) => format!(
            "is of a later redtail than this one ({version}); accepted: {FORMAT}. Use a later redtail \
             (pip install --upgrade redtail)"
        ),
        _ => format!(
            "is no format; accepted: {FORMAT}, the format that redtail {version} reads (a file without this \
             key has 1)"
        ),
    };
    Err(Problem {
        origin: entry.node.origin.clone(),
        key: Some(KEY.to_owned()),
        message: format!("{KEY} = {} {what}", entry.node.shown()),
    })
}
