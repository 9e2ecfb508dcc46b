//! How a parameter that makes no sense is refused.

/// A parameter, or a combination of them, that cannot be run.
///
/// The layer that read the value adds where it stands (file and line).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParamError {
    /// The key as written in the experiment file.
    pub key: &'static str,
    /// What is wrong with the value, in a clause: "must be below max_th (195 packets)".
    pub problem: String,
    /// What would be accepted.
    pub accepted: String,
}

impl ParamError {
    /// An error about `key`; `problem` and `accepted` are clauses without a full stop.
    pub fn new(key: &'static str, problem: impl Into<String>, accepted: impl Into<String>) -> Self {
        Self {
            key,
            problem: problem.into(),
            accepted: accepted.into(),
        }
    }
}

impl std::fmt::Display for ParamError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{} {}; accepted: {}",
            self.key, self.problem, self.accepted
        )
    }
}

impl std::error::Error for ParamError {}
