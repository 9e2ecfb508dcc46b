//! Programs of the user, between which the network of the run lies.
//!
//! They run in the namespaces of the last group: one program as its user, others as its servers.
//! The run ends when the first one does.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, IsTerminal, Read, Seek, SeekFrom, Write};
use std::net::Ipv4Addr;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread;

use rustix::process::{Pid, Signal, kill_process};

use crate::addresses::{self, Side};
use crate::children::{Child, GRACE, LOOK, end_all};
use crate::meter::Reading;
use crate::outside::{self, Outside};
use crate::spaces::{Space, about};
use crate::sys::{descriptors, mounts};

/// Bytes of a server's log in which its last line is looked for.
const LOG_END: u64 = 4096;

/// How the state of the links is shown while the programs run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Show {
    /// Not at all.
    #[default]
    Nothing,
    /// In the title of the terminal.
    Title,
    /// A line a second on standard error.
    Lines,
}

/// The programs of a run.
#[derive(Clone, Debug, Default)]
pub struct Programs {
    /// Runs on the receiving side; the run ends with it. Its words are the program and its arguments.
    pub command: Vec<String>,
    /// Command lines for `sh` on the sending side, started before.
    pub servers: Vec<String>,
    /// The folder for what the servers print; without one they print on standard error.
    pub logs: Option<PathBuf>,
    /// The folders to which the programs may write; `None` for all files that the user may write.
    pub files: Option<Vec<PathBuf>>,
    /// Their environment, to which redtail adds the addresses; `None` for that of this process.
    pub environment: Option<Vec<(OsString, OsString)>>,
    /// What connects the command to the world outside of the run.
    pub outside: Option<outside::Program>,
    /// How the state of the links is shown.
    pub show: Show,
}

/// The programs that have been started.
#[derive(Debug)]
pub struct Running {
    command: std::process::Child,
    servers: Vec<Server>,
    outside: Option<Outside>,
}

/// A server that has been started.
#[derive(Debug)]
struct Server {
    line: String,
    log: Option<PathBuf>,
    child: Child,
    /// Whether its end has been told.
    told: bool,
}

/// What a server prints.
#[derive(Debug)]
struct Log {
    path: PathBuf,
    file: File,
}

impl Log {
    /// Makes that of the server of this number, counted from 1.
    fn make(folder: &Path, number: usize) -> io::Result<Self> {
        let path = folder.join(format!("server-{number}.log"));
        match File::create(&path) {
            Ok(file) => Ok(Self { path, file }),
            Err(error) => Err(about(error, &path.display().to_string())),
        }
    }
}

impl Server {
    /// Starts a server that prints to this file, if there is one.
    fn start(mut command: Command, line: &str, log: Option<Log>) -> io::Result<Self> {
        command.args(["-c", line]).stdin(Stdio::null());
        match &log {
            Some(log) => {
                command.stderr(log.file.try_clone()?);
                command.stdout(log.file.try_clone()?);
            }
            None => {
                command.stdout(io::stderr().as_fd().try_clone_to_owned()?);
            }
        }
        let child = Child::start(&mut command).map_err(|error| about(error, line))?;
        Ok(Self {
            line: line.to_owned(),
            log: log.map(|log| log.path),
            child,
            told: false,
        })
    }

    /// How it failed, if it has and nobody has been told.
    fn failure(&mut self) -> Option<String> {
        if self.told {
            return None;
        }
        let status = self.child.status().ok()??;
        self.told = true;
        let failed = !status.success();
        failed.then(|| match &self.log {
            Some(log) => {
                let text = end_of(log).unwrap_or_default();
                let text = String::from_utf8_lossy(&text);
                let said = text.trim().lines().last().unwrap_or("it printed nothing");
                format!(
                    "server `{}` ended ({status}): {said} ({})",
                    self.line,
                    log.display()
                )
            }
            None => format!("server `{}` ended ({status})", self.line),
        })
    }
}

/// The addresses at which the programs reach each other.
#[derive(Clone, Copy, Debug)]
pub struct Ends {
    client: Ipv4Addr,
    server: Ipv4Addr,
}

impl Ends {
    /// The addresses in the namespaces of a group.
    pub fn of(group: usize) -> Self {
        Self {
            client: addresses::host(group, Side::Receiving, 0),
            server: addresses::host(group, Side::Sending, 0),
        }
    }

    fn tell(self, command: &mut Command) {
        command.env("REDTAIL_CLIENT", self.client.to_string());
        command.env("REDTAIL_SERVER", self.server.to_string());
        // Set by a shell that this one is in.
        command.env_remove("REDTAIL_COMPUTER");
    }
}

impl Programs {
    /// A program with the environment of programs.
    fn command(&self, program: &str, ends: Ends) -> Command {
        let mut command = Command::new(program);
        if let Some(environment) = &self.environment {
            let variables = environment.iter().map(|(name, value)| (name, value));
            command.env_clear().envs(variables);
        }
        ends.tell(&mut command);
        command
    }

    /// Starts the programs in the namespaces of `group`. The calling thread is in one of them
    /// afterwards, and has a mount namespace of its own if there is a connection to the outside or files
    /// may not be written.
    ///
    /// # Errors
    /// When a program cannot be started; its name is told.
    pub fn start(
        &self,
        group: usize,
        spaces: &[Space; 2],
        outside: Option<Outside>,
    ) -> io::Result<Running> {
        let ends = Ends::of(group);
        let mut servers = Vec::new();
        let logs = (1..=self.servers.len()).map(|number| match &self.logs {
            Some(folder) => Log::make(folder, number).map(Some),
            None => Ok(None),
        });
        let logs = logs.collect::<io::Result<Vec<_>>>()?;
        if let Some(writable) = &self.files {
            mounts::read_only_except(writable)?;
        }
        spaces[Side::Sending as usize].namespace.enter()?;
        for (line, log) in self.servers.iter().zip(logs) {
            match Server::start(self.command("sh", ends), line, log) {
                Ok(server) => servers.push(server),
                Err(error) => {
                    end_all(servers.iter_mut().map(|server| &mut server.child));
                    return Err(error);
                }
            }
        }
        spaces[Side::Receiving as usize].namespace.enter()?;
        let (program, arguments) = self.command.split_first().expect("there is a command");
        let mut command = self.command(program, ends);
        command.args(arguments);
        let mut start = || {
            if outside.is_some() {
                outside::use_resolver()?;
                command.env("REDTAIL_COMPUTER", outside::COMPUTER.to_string());
            }
            descriptors::keep_from_programs()?;
            command.spawn().map_err(|error| about(error, program))
        };
        match start() {
            Ok(command) => Ok(Running {
                command,
                servers,
                outside,
            }),
            Err(error) => {
                end_all(servers.iter_mut().map(|server| &mut server.child));
                Err(error)
            }
        }
    }
}

impl Running {
    /// Waits for the program of the user, or until `stopped`.
    ///
    /// # Errors
    /// When it cannot be waited for.
    pub fn wait(&mut self, stopped: impl Fn() -> bool) -> io::Result<Option<ExitStatus>> {
        let status = loop {
            match self.command.try_wait()? {
                None if stopped() => break None,
                None => {
                    self.tell_failures();
                    thread::sleep(LOOK);
                }
                status => break status,
            }
        };
        self.tell_failures();
        Ok(status)
    }

    /// Ends all programs that run. The command gets the same time as the servers; it is in no group of its own, because it
    /// has the terminal.
    pub fn end(&mut self) {
        let pid = Pid::from_child(&self.command);
        if let Ok(None) = self.command.try_wait() {
            let _ = kill_process(pid, Signal::TERM);
        }
        for _ in 0..GRACE.as_millis() / LOOK.as_millis() {
            match self.command.try_wait() {
                Ok(None) => thread::sleep(LOOK),
                _ => break,
            }
        }
        let _ = self.command.kill();
        let _ = self.command.wait();
        end_all(self.servers.iter_mut().map(|server| &mut server.child));
    }

    /// Tells on standard error which servers have failed, and whether the outside is cut off.
    fn tell_failures(&mut self) {
        let mut failures: Vec<String> = self
            .servers
            .iter_mut()
            .filter_map(Server::failure)
            .collect();
        if let Some(why) = self.outside.as_mut().and_then(Outside::ended) {
            failures.push(why);
            self.outside = None;
        }
        for failure in failures {
            let _ = writeln!(io::stderr(), "warning: {failure}");
        }
    }
}

/// The last bytes of a log, which may be long.
fn end_of(log: &Path) -> io::Result<Vec<u8>> {
    let mut file = File::open(log)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(LOG_END)))?;
    let mut end = Vec::new();
    file.take(LOG_END).read_to_end(&mut end)?;
    Ok(end)
}

/// Shows readings of the links until there are no more.
pub fn show(how: Show, readings: mpsc::Receiver<Vec<Reading>>) {
    let mut terminal = io::stderr();
    let how = match how {
        Show::Title if !terminal.is_terminal() => Show::Nothing,
        how => how,
    };
    for links in readings {
        let texts: Vec<String> = links.iter().map(Reading::to_string).collect();
        let text = texts.join("; ");
        // A terminal that has gone away is no reason to end a run.
        let _ = match how {
            Show::Nothing => Ok(()),
            Show::Title => write!(terminal, "\x1b]0;{text}\x07").and_then(|()| terminal.flush()),
            Show::Lines => writeln!(terminal, "{text}"),
        };
    }
}
