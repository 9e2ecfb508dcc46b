//! Error messages for files that cannot be run.

use std::borrow::Cow;
use std::fmt;

use crate::origin::Origin;

/// Why an experiment cannot be run: at least one problem, in the order in which they were found.
///
/// Its display is the complete message, a line for each problem.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpecError {
    file: Option<String>,
    problems: Vec<Problem>,
}

/// One thing that is wrong with an experiment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Where the value comes from.
    pub origin: Origin,
    /// The key it is about, in the dotted form that `--set` and `[factors]` use; `None` for the
    /// file as a whole.
    pub key: Option<String>,
    /// Everything but the place: the key, the value, what is wrong and what is accepted.
    pub message: String,
}

impl SpecError {
    pub(crate) fn new(file: Option<&str>, problems: Vec<Problem>) -> Self {
        assert!(!problems.is_empty(), "an error has a reason");
        SpecError {
            file: file.map(str::to_owned),
            problems,
        }
    }

    /// The name of the file, as it was given.
    pub fn file(&self) -> Option<&str> {
        self.file.as_deref()
    }

    /// The line of the first problem, counted from 1; `None` if it is not in the file.
    pub fn line(&self) -> Option<u32> {
        self.problems[0].origin.line()
    }

    /// The key of the first problem.
    pub fn key(&self) -> Option<&str> {
        self.problems[0].key.as_deref()
    }

    /// All problems; never empty.
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }
}

impl fmt::Display for SpecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.problems.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            let place = place(self.file(), &problem.origin);
            write!(f, "{place}{}", problem.message)?;
        }
        Ok(())
    }
}

impl std::error::Error for SpecError {}

/// The beginning of a message, which names the place: `experiment.toml:14: `, `line 14: `, `--set key=value: ` or
/// nothing.
pub(crate) fn place(file: Option<&str>, origin: &Origin) -> String {
    match (origin, file) {
        (Origin::File { line }, Some(file)) => format!("{file}:{line}: "),
        (Origin::File { line }, None) => format!("line {line}: "),
        (Origin::Set(argument), _) => format!("--set {}: ", shortened(argument)),
        (Origin::Api, Some(file)) => format!("{file}: "),
        (Origin::Api, None) => String::new(),
    }
}

/// Letters of an argument that a message shows. A list of factors can have thousands.
const SHOWN: usize = 120;

/// The beginning of a text that is long.
fn shortened(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => Cow::Owned(format!("{}...", &text[..end])),
        None => Cow::Borrowed(text),
    }
}

/// The entry of `known` that the user probably meant by `word`: the closest one, if it differs in few
/// characters for its length.
pub(crate) fn did_you_mean<'a>(
    word: &str,
    known: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let closest = known
        .into_iter()
        .map(|candidate| (edits(word, candidate), candidate))
        .min_by_key(|(distance, _)| *distance)?;
    let (distance, candidate) = closest;
    // A third of the letters: `qeue` is `queue`, but `rate` is not `name`.
    (distance <= candidate.len().max(3) / 3).then_some(candidate)
}

/// Edit distance that counts a swap of neighbours as one (optimal string alignment).
fn edits(a: &str, b: &str) -> usize {
    let a: Vec<char> = a.to_lowercase().chars().collect();
    let b: Vec<char> = b.to_lowercase().chars().collect();
    let mut rows = vec![(0..=b.len()).collect::<Vec<_>>()];
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let replaced = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut least = replaced.min(rows[i - 1][j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                least = least.min(rows[i - 2][j - 2] + 1);
            }
            row.push(least);
        }
        rows.push(row);
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_recognised_and_another_word_is_not() {
        let keys = ["name", "rate", "delay", "queue", "access_delay"];
        assert_eq!(did_you_mean("qeue", keys), Some("queue"));
        assert_eq!(did_you_mean("dealy", keys), Some("delay"));
        assert_eq!(did_you_mean("Rate", keys), Some("rate"));
        assert_eq!(did_you_mean("acces-delay", keys), Some("access_delay"));
        assert_eq!(did_you_mean("colour", keys), None);
        assert_eq!(did_you_mean("bogus", []), None);
    }
}
