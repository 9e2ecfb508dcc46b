//! A queue alone: in its canonical form, and as the experiment file writes it. All crates above read queues by these
//! functions, so that the code that reads all kinds is compiled once, and without the optimisation of the hot path.

use redtail_qdisc::QueueParams;
use serde_json::Value;

use crate::de;
use crate::error::{Problem, SpecError};
use crate::node::Node;
use crate::origin::Origin;

/// The queue that a value of the form `{KIND: {KEY: VALUE, ...}}` describes. Its parameters are not checked.
///
/// # Errors
/// The value is none: of another form, or with a key or a value that the kind does not have.
pub fn queue_from_json(value: Value) -> serde_json::Result<QueueParams> {
    serde_json::from_value(value)
}

/// The queue that a text describes as the experiment file does. Its parameters are not checked.
///
/// ```
/// use redtail_spec::queue_from_text;
///
/// let queue = queue_from_text("{ kind = \"codel\", target = \"10 ms\" }")?;
/// assert_eq!(queue.kind(), "codel");
///
/// let error = queue_from_text("{ kind = \"codel\", taget = \"10 ms\" }").unwrap_err();
/// assert!(error.to_string().ends_with("did you mean \"target\"?"));
/// # Ok::<(), redtail_spec::SpecError>(())
/// ```
///
/// # Errors
/// The text is no table, or has a key or a value that the kind does not have.
pub fn queue_from_text(text: &str) -> Result<QueueParams, SpecError> {
    let node = Node::from_argument(text, &Origin::Api);
    if node.as_table().is_none() {
        let problem = Problem {
            origin: Origin::Api,
            key: None,
            message: format!(
                "{} is no table; accepted: a table such as {{ kind = \"codel\" }}",
                node.shown()
            ),
        };
        return Err(SpecError::new(None, vec![problem]));
    }
    de::decode(&node).map_err(|fault| SpecError::new(None, vec![fault.into_problem()]))
}

/// The unit of the average on which a queue's control law acts, as far as its thresholds tell: "packets", or another one
/// of sizes; `None` if it has none.
pub fn unit_of_average(queue: &QueueParams) -> Option<&'static str> {
    let value = serde_json::to_value(queue).ok()?;
    let threshold = value.get("min_th")?.as_str()?.to_owned();
    Some(match threshold.rsplit(' ').next() {
        Some("packets") => "packets",
        _ => "B",
    })
}
