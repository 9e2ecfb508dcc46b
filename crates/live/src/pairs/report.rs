//! What a program of a group left behind.

use serde::{Deserialize, Serialize};

/// Most bytes of standard output that are kept of a program.
pub const MAX_OUTPUT: u64 = 4 << 20;

/// Bytes of the end of standard error that are kept of a program.
pub const MAX_ERRORS: u64 = 4 << 10;

/// Most files in `{out}` that are kept of a program.
pub const MAX_FILES: usize = 100;

/// Most bytes of a file that is kept of a program.
pub const MAX_FILE_BYTES: u64 = 16 << 20;

/// Most bytes that are kept of all programs of a run, so that a reply stays small enough.
const MAX_BYTES: u64 = 256 << 20;

/// The bytes that may still be kept.
#[derive(Clone, Copy, Debug)]
pub struct Budget(u64);

impl Default for Budget {
    fn default() -> Self {
        Self(MAX_BYTES)
    }
}

impl Budget {
    /// Takes so many bytes, or as many as there are.
    pub fn take_at_most(&mut self, bytes: u64) -> u64 {
        let taken = bytes.min(self.0);
        self.0 -= taken;
        taken
    }

    /// Takes so many bytes, all or none, for a file; says whether there were so many.
    pub fn take(&mut self, bytes: u64) -> bool {
        let fits = bytes <= self.0.min(MAX_FILE_BYTES);
        self.0 -= if fits { bytes } else { 0 };
        fits
    }
}

/// Which of a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Role {
    /// The program on the sending side.
    Server,
    /// The program on the receiving side.
    Client,
}

impl Role {
    /// How it is called in files and messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Server => "server",
            Self::Client => "client",
        }
    }
}

/// A file that a program has written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramFile {
    /// Its path in `{out}`, with "/" between the parts.
    pub name: String,
    /// What is in it.
    pub content: Vec<u8>,
}

/// What a program of a group left.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProgramReport {
    /// The name of its group.
    pub group: String,
    /// The number of its pair in the group, from 0.
    pub flow: u32,
    /// Which of the pair it is.
    pub role: Role,
    /// Its exit code; `None` if a signal has ended it.
    pub code: Option<i32>,
    /// The signal that has ended it.
    pub signal: Option<i32>,
    /// Whether it was ended since it took longer than it may.
    pub timed_out: bool,
    /// Whether it was asked to end, as the file says or since the run ended.
    pub ended: bool,
    /// When it was started, in seconds of the run.
    pub started_s: f64,
    /// When it had ended, in seconds of the run.
    pub ended_s: f64,
    /// What it printed to standard output, up to [`MAX_OUTPUT`] bytes.
    pub output: Vec<u8>,
    /// Bytes of standard output that are not in `output`.
    pub output_cut: u64,
    /// The end of what it printed to standard error, up to [`MAX_ERRORS`] bytes.
    pub errors: Vec<u8>,
    /// Its files in `{out}`, in the order of their names.
    pub files: Vec<ProgramFile>,
    /// The names of files that are not in `files`, since they are too many or too large, or are no plain files.
    pub left_out: Vec<String>,
}

impl ProgramReport {
    /// That of a program of which nothing is known yet.
    pub fn of(group: &str, flow: u32, role: Role) -> Self {
        Self {
            group: group.to_owned(),
            flow,
            role,
            code: None,
            signal: None,
            timed_out: false,
            ended: false,
            started_s: f64::NAN,
            ended_s: f64::NAN,
            output: Vec::new(),
            output_cut: 0,
            errors: Vec::new(),
            files: Vec::new(),
            left_out: Vec::new(),
        }
    }

    /// Whether the run fails with it: it has ended by itself, and not well, or taken too long.
    pub fn failed(&self) -> bool {
        self.timed_out || !self.ended && self.code != Some(0)
    }

    /// Why it is none of a program that ran as the file says; `None` if it is one. Programs of users have run where it was
    /// made.
    pub fn inconsistency(&self) -> Option<String> {
        let too_large = |file: &ProgramFile| file.content.len() as u64 > MAX_FILE_BYTES;
        let name = |name: &str| !redtail_traffic::program::is_inside(name);
        let wrong = self.output.len() as u64 > MAX_OUTPUT
            || self.errors.len() as u64 > MAX_ERRORS
            || self.files.len() > MAX_FILES
            || self.left_out.len() > MAX_FILES
            || self
                .files
                .iter()
                .any(|file| too_large(file) || name(&file.name));
        wrong.then(|| format!("the report of a program of {:?} is none", self.group))
    }
}

/// The last lines of a text that a program has printed, without what would move a terminal's cursor.
pub fn last_lines(printed: &[u8], most: usize) -> String {
    let text = String::from_utf8_lossy(printed);
    let lines: Vec<&str> = text.trim_end().lines().collect();
    let last = lines[lines.len().saturating_sub(most)..].join("\n");
    let plain = |letter: char| match letter {
        '\n' => letter,
        '\t' => ' ',
        letter if letter.is_control() => '\u{fffd}',
        letter => letter,
    };
    last.chars().map(plain).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_fails_that_ended_badly_by_itself() {
        let report = |code, ended, timed_out| ProgramReport {
            code,
            ended,
            timed_out,
            ..ProgramReport::of("g", 0, Role::Client)
        };
        assert!(!report(Some(0), false, false).failed());
        assert!(report(Some(1), false, false).failed());
        assert!(report(None, false, false).failed(), "by a signal");
        assert!(!report(None, true, false).failed(), "it was asked to");
        assert!(report(None, false, true).failed());
    }

    #[test]
    fn a_file_that_would_leave_its_folder_is_refused() {
        let mut report = ProgramReport::of("g", 0, Role::Client);
        assert_eq!(report.inconsistency(), None);
        report.files.push(ProgramFile {
            name: "../x".to_owned(),
            content: Vec::new(),
        });
        assert!(report.inconsistency().is_some());
    }

    #[test]
    fn the_last_lines_move_no_cursor() {
        assert_eq!(
            last_lines(b"a\nb\n\x1b[2Jc\xff\n\n", 2),
            "b\n\u{fffd}[2Jc\u{fffd}"
        );
        assert_eq!(last_lines(b"", 2), "");
    }
}
