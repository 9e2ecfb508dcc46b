//! What a program of a group left behind.

use serde::{Deserialize, Serialize};

/// Most bytes of standard output that are kept of a program.
pub const MAX_OUTPUT: u64 = 4 << 20;

/// Bytes of the end of standard error that are kept of a program.
pub const MAX_ERRORS: u64 = 4 << 10;

/// Most files in `{out}` that are kept of a program, and most bytes of all of them.
pub const MAX_FILES: usize = 100;
/// Most bytes of all files that are kept of a program.
pub const MAX_FILE_BYTES: u64 = 16 << 20;

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
