//! Pairs of programs of the user: a client on the receiving side and perhaps its server on the sending side, each a
//! command line for `sh`.
//!
//! The group says what is started, when, and with which files. `crates/live` starts it on a real kernel; the simulator
//! cannot. What programs measure of themselves is in `measure`, the words of command lines in `words`.

pub mod measure;
pub mod words;

use std::collections::BTreeMap;
use std::path::{Component, Path};

use redtail_core::schemars::JsonSchema;
use redtail_core::serde::{Deserialize, Serialize};
use redtail_core::{Bytes, Dscp, ParamError, Rate, Span, Stream, schemars, serde};

use self::measure::MeasureParams;
use self::words::{Values, Word};
use crate::access::{Direction, Group};
use crate::dealt::Dealt;
use crate::keys::groups;
use crate::kind::TrafficKind;
use crate::start::Start;

/// The largest packet of a program on the link: 1500 B, the MTU of Ethernet (RFC 894).
pub const PACKET: Bytes = Bytes::new(1500);

/// The port of the first pair of a group that names none.
pub const FIRST_PORT: u16 = 5000;

/// Most pairs of a group: each is two processes at least.
pub const MAX_PAIRS: u32 = 1000;

/// Most files that a group takes along, and their bytes together. They travel with each run.
pub const MAX_FILES: usize = 1000;
/// Bytes of all files of a group together.
pub const MAX_FILE_BYTES: u64 = 64 << 20;

/// Most bytes of a command line or of a variable: what Linux takes as one argument (`MAX_ARG_STRLEN`,
/// include/uapi/linux/binfmts.h: 32 pages of 4096 B).
const MAX_TEXT: usize = 32 * 4096 - 1;

/// The forms of a command line, for messages.
const COMMAND: &str = "a command line such as \"iperf3 -c {server} -p {port}\"";

groups! {
    /// Pairs of programs of the user, a client and perhaps its server, on a real kernel.
    pub struct ProgramParams {
        /// Command line for `sh` on the sending side, started with the run. In it `{server}` and `{client}` are the addresses of both sides, `{port}` the port of the pair, `{seed}` a number that follows from the seed, the replication, the group and the pair, `{out}` a folder for results, `{flow}` the number of the pair from 0, and `{{` a brace.
        /// Source: none, a client without a server.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub server: Option<String>,
        /// Command line for `sh` on the receiving side, with the words of `server`. The run fails if it ends with a code other than 0.
        pub client: String,
        /// When clients start; dealt out.
        /// Source: a second after the servers, which have opened their ports by then.
        #[serde(default = "one_second")]
        pub start: Dealt<Start>,
        /// When clients are asked to end (SIGTERM, and SIGKILL two seconds later); dealt out. Left out, they end by themselves, and one that runs at the end of the run fails it.
        /// Source: none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub stop: Option<Dealt<Start>>,
        /// The longest time that a client may take; one that takes longer is ended, and fails the run.
        /// Source: none, the end of the run.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub longest: Option<Span>,
        /// Variables of the environment of both programs, which may have the words of `server`. Beside them there are PATH, and HOME and TMPDIR, folders of the programs' own.
        /// Source: none.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        pub environment: BTreeMap<String, String>,
        /// Files and folders that are copied into the folder in which the programs begin, relative to the experiment file.
        /// Source: none.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pub files: Vec<String>,
        /// What the programs measure, by the name of each metric in the group.
        /// Source: none.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        pub measure: BTreeMap<String, MeasureParams>,
        /// Filled in from `files`: each file by its path in the folder of the programs.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        #[schemars(skip)]
        pub taken: BTreeMap<String, TakenFile>,
    }
}

/// A file that programs take along, as a scenario knows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(crate = "serde", deny_unknown_fields)]
pub struct TakenFile {
    /// The SHA-256 of its content, in hexadecimal digits.
    pub sha256: String,
    /// Whether it may be executed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub executable: bool,
}

fn one_second() -> Dealt<Start> {
    Dealt::one(Start::At(Span::from_s(1)))
}

impl ProgramParams {
    /// The port of pair `i`.
    pub fn port_of(&self, i: u32) -> u16 {
        self.port.unwrap_or(FIRST_PORT) + i as u16
    }

    /// The number that stands for `{seed}` in pair `i`: below 2^31, which all programs can read.
    pub fn seed_of(&self, seed: u64, replication: u32, i: u32) -> u32 {
        let name = format!("program.{}.{i}", self.name);
        let drawn = Stream::named(seed, replication, &name).uniform();
        (drawn * f64::from(1_u32 << 31)) as u32
    }

    /// The variables of the environment of a program, words filled in.
    pub fn environment_of(&self, values: &Values) -> Vec<(String, String)> {
        let each = self.environment.iter();
        each.map(|(name, text)| (name.clone(), words::fill_in(text, values)))
            .collect()
    }

    fn check_commands(&self) -> Result<(), ParamError> {
        let server = self.server.iter().map(|line| ("server", line));
        for (key, line) in server.chain([("client", &self.client)]) {
            if line.trim().is_empty() {
                return Err(ParamError::new(key, "is empty", COMMAND));
            }
            check_text(key.to_owned(), line)?;
        }
        Ok(())
    }

    fn check_environment(&self) -> Result<(), ParamError> {
        for (name, text) in &self.environment {
            let mut letters = name.chars();
            let first = letters.next();
            let is_name = first.is_some_and(|it| it.is_ascii_alphabetic() || it == '_')
                && letters.all(|it| it.is_ascii_alphanumeric() || it == '_');
            if !is_name {
                return Err(ParamError::new(
                    format!("environment.{name}"),
                    "is no name of a variable",
                    "letters, digits and \"_\", not beginning with a digit",
                ));
            }
            check_text(format!("environment.{name}"), text)?;
        }
        Ok(())
    }

    fn check_files(&self) -> Result<(), ParamError> {
        if !self.taken.is_empty() {
            let accepted = "no such key: it is filled in from `files`";
            return Err(ParamError::new("taken", "is given", accepted));
        }
        for (i, file) in self.files.iter().enumerate() {
            if !is_inside(file) {
                return Err(ParamError::new(
                    "files",
                    format!("has \"{file}\", which is not a path below the experiment's folder"),
                    "paths such as \"client.py\" or \"page\", without \"..\"",
                ));
            }
            if self.files[..i].contains(file) {
                return Err(ParamError::new(
                    "files",
                    format!("has \"{file}\" twice"),
                    "each path once",
                ));
            }
        }
        Ok(())
    }

    fn check_ports(&self) -> Result<(), ParamError> {
        let flows = self.access().flows;
        if flows > MAX_PAIRS {
            return Err(ParamError::new(
                "flows",
                "is more pairs of programs than can be run",
                format!("1 to {MAX_PAIRS}"),
            ));
        }
        let (first, last) = (self.port.unwrap_or(FIRST_PORT), flows - 1);
        if first == 0 || u32::from(first) + last > u32::from(u16::MAX) {
            return Err(ParamError::new(
                "port",
                format!("leaves no port for each of {flows} pairs"),
                format!("1 to {}", u32::from(u16::MAX) - last),
            ));
        }
        Ok(())
    }
}

/// Whether a path stays in the folder that it begins in, as far as its words say.
pub fn is_inside(path: &str) -> bool {
    let mut parts = Path::new(path).components();
    !path.is_empty()
        && !path.contains('\0')
        && parts.all(|part| matches!(part, Component::Normal(_)))
}

fn check_text(key: String, text: &str) -> Result<(), ParamError> {
    if text.contains('\0') {
        return Err(ParamError::new(key, "has a null character", COMMAND));
    }
    if text.len() > MAX_TEXT {
        let accepted = format!("up to {MAX_TEXT} bytes");
        let problem = format!("has {} bytes", text.len());
        return Err(ParamError::new(key, problem, accepted));
    }
    words::check(text).map_err(|problem| {
        let accepted = format!("{}, and \"{{{{\" for a brace", Word::names());
        ParamError::new(key, problem, accepted)
    })
}

impl TrafficKind for ProgramParams {
    fn example() -> &'static str {
        r#"flows = 2
server = "cat"
client = "echo {seed}""#
    }

    fn noun(&self) -> &'static str {
        "pair of programs"
    }

    fn starts(&self) -> Option<&Dealt<Start>> {
        Some(&self.start)
    }

    fn stops(&self) -> Option<&Dealt<Start>> {
        self.stop.as_ref()
    }

    fn check(&self) -> Result<(), ParamError> {
        self.check_commands()?;
        self.check_environment()?;
        self.check_files()?;
        self.check_ports()?;
        if self.longest == Some(Span::ZERO) {
            let accepted = "a time such as \"10 s\"";
            return Err(ParamError::new("longest", "is zero", accepted));
        }
        for (name, measure) in &self.measure {
            measure::check(name, measure, self.server.is_some())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::from_json;

    fn group(keys: &str) -> ProgramParams {
        from_json(&format!(r#"{{"name": "iperf", "client": "true"{keys}}}"#))
            .expect("it is a group")
    }

    #[test]
    fn what_cannot_be_run_is_refused_with_its_key() {
        for (keys, key, problem) in [
            (r#", "server": " ""#, "server", "is empty"),
            (r#", "server": "a {prot}""#, "server", "{prot}"),
            (
                r#", "environment": {"A B": "1"}"#,
                "environment.A B",
                "is no name",
            ),
            (r#", "environment": {"A": "{x"}"#, "environment.A", "\"{x\""),
            (r#", "files": ["../x"]"#, "files", "\"../x\""),
            (r#", "files": ["/x"]"#, "files", "\"/x\""),
            (r#", "files": ["a", "a"]"#, "files", "twice"),
            (r#", "flows": 1001"#, "flows", "more pairs"),
            (r#", "flows": 2, "port": 65535"#, "port", "2 pairs"),
            (r#", "longest": "0 s""#, "longest", "is zero"),
            (r#", "taken": {"a": {"sha256": "0"}}"#, "taken", "is given"),
        ] {
            let error = group(keys).check().expect_err(keys);
            assert_eq!(error.key, key, "{keys}");
            assert!(error.problem.contains(problem), "{keys}: {error:?}");
        }
        assert_eq!(group("").check(), Ok(()));
    }

    #[test]
    fn a_word_that_is_none_is_refused_with_those_that_are() {
        let error = group(r#", "server": "a {prot}""#)
            .check()
            .expect_err("it is none");
        assert_eq!(
            error.accepted,
            "{server}, {client}, {port}, {seed}, {out}, {flow}, and \"{{\" for a brace"
        );
    }

    #[test]
    fn each_pair_has_a_port_and_a_seed_of_its_own() {
        let group = group(r#", "flows": 2, "port": 80"#);
        assert_eq!([group.port_of(0), group.port_of(1)], [80, 81]);
        let seeds = [(1, 0, 0), (1, 0, 1), (1, 1, 0), (2, 0, 0)]
            .map(|(seed, replication, i)| group.seed_of(seed, replication, i));
        for (i, seed) in seeds.iter().enumerate() {
            assert!(*seed < 1 << 31);
            assert!(!seeds[..i].contains(seed));
        }
        assert_eq!(group.seed_of(1, 0, 0), seeds[0]);
    }
}
