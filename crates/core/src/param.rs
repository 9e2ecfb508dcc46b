//! Errors about parameters that cannot be run, and warnings about those that are probably wrong.

use std::borrow::Cow;

/// A parameter, or a combination of them, that cannot be run.
///
/// The layer that read the value adds the file and the line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParamError {
    /// The key as written in the experiment file; dotted if it is in a nested table.
    pub key: Cow<'static, str>,
    /// What is wrong with the value, in a clause: "must be below max_th (195 packets)".
    pub problem: String,
    /// What would be accepted.
    pub accepted: String,
}

impl ParamError {
    /// An error about `key`; `problem` and `accepted` are clauses without a full stop.
    pub fn new(
        key: impl Into<Cow<'static, str>>,
        problem: impl Into<String>,
        accepted: impl Into<String>,
    ) -> Self {
        Self {
            key: key.into(),
            problem: problem.into(),
            accepted: accepted.into(),
        }
    }

    /// Puts the key into the table called `table`.
    #[must_use]
    pub fn within(self, table: &str) -> Self {
        Self {
            key: format!("{table}.{}", self.key).into(),
            ..self
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

/// A parameter, or a combination of them, that can be run but probably does not do what its author
/// wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParamWarning {
    /// The key as written in the experiment file; dotted if it is in a nested table.
    pub key: Cow<'static, str>,
    /// What is unusual about the value, in a clause.
    pub clause: String,
}

impl ParamWarning {
    /// A warning about `key`; `clause` follows the value and has no full stop.
    pub fn new(key: impl Into<Cow<'static, str>>, clause: impl Into<String>) -> Self {
        Self {
            key: key.into(),
            clause: clause.into(),
        }
    }

    /// Puts the key into the table called `table`.
    #[must_use]
    pub fn within(self, table: &str) -> Self {
        Self {
            key: format!("{table}.{}", self.key).into(),
            ..self
        }
    }
}
