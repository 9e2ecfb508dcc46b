//! Patterns that lines of an output fit.

use std::fmt;
use std::str::FromStr;

use regex_lite::{Regex, RegexBuilder};

/// A regular expression, in whose first group a value stands.
///
/// The time that it takes grows in proportion to the length of a line, whatever the line has.
#[derive(Clone, Debug)]
pub struct Pattern {
    /// The expression.
    pub regex: Regex,
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.regex.as_str() == other.regex.as_str()
    }
}

impl Pattern {
    /// The number of its groups.
    pub fn groups(&self) -> usize {
        self.regex.captures_len() - 1
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.regex.as_str())
    }
}

/// What is accepted.
pub const FORMS: &str = "a regular expression with one group, such as 'rtt ([0-9.]+) ms', in the syntax of Rust's \
                         regex-lite: no look-around and no references back";

/// Bytes of a pattern at most, as it is compiled: a step of each takes part in each character of a line.
const SIZE: usize = 1 << 14;

impl FromStr for Pattern {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut builder = RegexBuilder::new(text);
        match builder.size_limit(SIZE).nest_limit(50).build() {
            Ok(regex) => Ok(Self { regex }),
            Err(error) => Err(format!("\"{text}\": {error}")),
        }
    }
}
