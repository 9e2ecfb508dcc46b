//! A queue alone, in its canonical form. All crates above read queues by this function, so that the code that reads
//! all kinds is compiled once, and without the optimisation of the hot path.

use redtail_qdisc::QueueParams;
use serde_json::Value;

/// The queue that a value of the form `{KIND: {KEY: VALUE, ...}}` describes. Its parameters are not checked.
///
/// # Errors
/// The value is none: of another form, or with a key or a value that the kind does not have.
pub fn queue_from_json(value: Value) -> serde_json::Result<QueueParams> {
    serde_json::from_value(value)
}
