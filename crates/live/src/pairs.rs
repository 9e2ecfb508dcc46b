//! The programs of groups of kind `program`: pairs of a client and perhaps its server.
//!
//! They are started and asked to end by the clock of the run, and the kernel says when they have ended (pidfd_open(2)),
//! so nothing looks again and again: in virtual time looking would take the time of others. They begin in folders of a
//! `/tmp` in memory (`room`), which goes with the run, and can write nowhere else.

pub mod report;
mod room;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::env;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use redtail_core::{Span, Stream, Time};
use redtail_spec::Scenario;
use redtail_traffic::program::words::{self, Values};
use redtail_traffic::{ProgramParams, TrafficParams};
use rustix::event::epoll;
use rustix::process::{PidfdFlags, Signal, pidfd_open};

use self::report::{Budget, ProgramReport, Role};
use self::room::{Folders, Room};
use crate::addresses::{self, Side};
use crate::children::{Child, GRACE, end_all};
use crate::event_loop::{Part, Watched};
use crate::spaces::{Space, about};
use crate::sys::clock::Clock;

/// Added to the number of a program, this is the datum of what tells its end.
const PROGRAMS: u64 = 1 << 40;

/// Where programs are found if this process has no `PATH`: as of `sh` (confstr(3), `_CS_PATH`), and what users install.
const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// Lines of what a program that failed has printed last, in the reason.
const LAST_LINES: usize = 12;

/// What is due for a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Due {
    Start,
    /// It is asked to end, as the file says.
    Stop,
    /// It has taken too long.
    TimeOut,
    /// It was asked to end, and has not.
    Kill,
}

/// A program, before and after it runs.
struct Program {
    group: usize,
    role: Role,
    command: Start,
    running: Option<Running>,
    /// What is known of it; complete when it has ended.
    report: ProgramReport,
    over: bool,
}

/// What is needed to start a program.
#[derive(Clone)]
struct Start {
    line: String,
    environment: Vec<(OsString, OsString)>,
    folders: Folders,
    space: Arc<OwnedFd>,
}

/// A program that was started.
struct Running {
    child: Child,
    /// Tells its end.
    end: OwnedFd,
    output: File,
    errors: File,
}

/// The programs of all groups of a run.
pub struct Pairs<'a> {
    scenario: &'a Scenario,
    room: Room,
    watched: &'a Watched,
    /// Ends the run.
    stop: &'a AtomicBool,
    clock: Clock,
    end: Time,
    due: BinaryHeap<Reverse<(Time, Due, usize)>>,
    programs: Vec<Program>,
    failure: Option<String>,
}

/// Whether a scenario has programs.
pub fn any(scenario: &Scenario) -> bool {
    scenario
        .traffic
        .iter()
        .any(|group| group.programs().is_some())
}

impl<'a> Pairs<'a> {
    /// The programs of a scenario between these hosts, with the contents of their files by SHA-256, and with `root` as `/` if
    /// they do not have this computer's files. They end the run by `stop` when one fails. `None` if it has none.
    ///
    /// # Errors
    /// When there is no room for their files, or one is missing.
    pub fn new(
        scenario: &'a Scenario,
        files: &Arc<BTreeMap<String, Vec<u8>>>,
        root: Option<&Path>,
        spaces: &[[Space; 2]],
        watched: &'a Watched,
        stop: &'a AtomicBool,
    ) -> io::Result<Option<Self>> {
        if !any(scenario) {
            return Ok(None);
        }
        let mut pairs = Self {
            scenario,
            room: Room::open(root.map(Path::to_owned))?,
            watched,
            stop,
            clock: Clock::start(),
            end: Time::ZERO + scenario.duration,
            due: BinaryHeap::new(),
            programs: Vec::new(),
            failure: None,
        };
        for (index, group) in scenario.traffic.iter().enumerate() {
            if let Some(programs) = group.programs() {
                pairs.add_group(index, group, programs, files, &spaces[index])?;
            }
        }
        Ok(Some(pairs))
    }

    fn add_group(
        &mut self,
        index: usize,
        group: &TrafficParams,
        programs: &ProgramParams,
        files: &Arc<BTreeMap<String, Vec<u8>>>,
        spaces: &[Space; 2],
    ) -> io::Result<()> {
        let mut own = Vec::with_capacity(2);
        for space in spaces {
            own.push(Arc::new(space.namespace.duplicate()?));
        }
        let hosts = group.access().host_count();
        let (seed, replication) = (self.scenario.seed, self.scenario.replication);
        for i in 0..group.access().flows {
            let mut stream =
                Stream::named(seed, replication, &format!("traffic.{}.{i}", programs.name));
            let start = group.start(i as usize, &mut stream);
            let stop = group.stop(i as usize, &mut stream);
            let (taken, files) = (programs.taken.clone(), Arc::clone(files));
            let folders = self
                .room
                .within(move || Folders::make(index, i, &taken, &files))?;
            let host = |side| addresses::host(index, side, i as usize % hosts).to_string();
            let values = |role: Role| Values {
                server: host(Side::Sending),
                client: host(Side::Receiving),
                port: programs.port_of(i),
                seed: programs.seed_of(seed, replication, i),
                out: folders.out(role).display().to_string(),
                flow: i,
            };
            let mut add = |role: Role, line: &str, at: Time| {
                let values = values(role);
                let number = self.programs.len();
                self.due.push(Reverse((at, Due::Start, number)));
                self.programs.push(Program {
                    group: index,
                    role,
                    command: Start {
                        line: words::fill_in(line, &values),
                        environment: environment(&programs.environment_of(&values), &folders),
                        folders: folders.clone(),
                        space: Arc::clone(&own[side_of(role) as usize]),
                    },
                    running: None,
                    report: ProgramReport::of(&programs.name, i, role),
                    over: false,
                });
                number
            };
            if let Some(line) = &programs.server {
                add(Role::Server, line, Time::ZERO);
            }
            let client = add(Role::Client, &programs.client, start);
            if let Some(longest) = programs.longest {
                self.due
                    .push(Reverse((start + longest, Due::TimeOut, client)));
            }
            if let Some(stop) = stop {
                self.due.push(Reverse((stop, Due::Stop, client)));
            }
        }
        Ok(())
    }

    /// The run begins, with this clock.
    pub fn start(&mut self, clock: Clock) {
        self.clock = clock;
    }

    fn group_of(&self, number: usize) -> &ProgramParams {
        let group = &self.scenario.traffic[self.programs[number].group];
        group.programs().expect("it is a group of programs")
    }

    fn start_program(&mut self, number: usize) -> io::Result<()> {
        let program = &mut self.programs[number];
        let start = program.command.clone();
        let (child, output, errors) = self.room.within(move || start.start())?;
        let end = pidfd_open(child.pid(), PidfdFlags::empty())?;
        let datum = PROGRAMS + number as u64;
        self.watched.watch(&end, datum, epoll::EventFlags::IN)?;
        program.report.started_s = self.clock.now().as_secs_f64();
        program.running = Some(Running {
            child,
            end,
            output,
            errors,
        });
        Ok(())
    }

    /// Asks a program to end, and sets when it is ended if it does not.
    fn ask_to_end(&mut self, number: usize, at: Time) {
        let program = &mut self.programs[number];
        if let Some(running) = program.running.as_mut().filter(|_| !program.over) {
            running.child.signal(Signal::TERM);
            let grace = Span::from_ms(GRACE.as_millis() as u64);
            self.due.push(Reverse((at + grace, Due::Kill, number)));
        }
    }

    fn on_due(&mut self, at: Time, due: Due, number: usize) -> io::Result<()> {
        let program = &mut self.programs[number];
        match due {
            Due::Start => return self.start_program(number),
            Due::Stop => {
                program.report.ended |= !program.over;
                self.ask_to_end(number, at);
            }
            Due::TimeOut => {
                program.report.timed_out |= !program.over && !program.report.ended;
                self.ask_to_end(number, at);
            }
            Due::Kill => {
                // Also what a program that has ended left running.
                if let Some(running) = &mut program.running {
                    running.child.signal(Signal::KILL);
                }
            }
        }
        Ok(())
    }

    /// Takes note of how a program has ended, if it has.
    fn note_end(&mut self, number: usize) -> io::Result<()> {
        let program = &mut self.programs[number];
        let Some(running) = program.running.as_mut().filter(|_| !program.over) else {
            return Ok(());
        };
        let Some(status) = running.child.status()? else {
            return Ok(());
        };
        program.over = true;
        program.report.code = status.code();
        program.report.signal = status.signal();
        program.report.ended_s = self.clock.now().as_secs_f64();
        if self.failure.is_none() && program.report.failed() {
            let report = &program.report;
            let how = match (report.timed_out, report.code, report.signal) {
                (true, ..) => {
                    let longest = self.group_of(number).longest.unwrap_or_default();
                    format!("took longer than longest = \"{longest}\"")
                }
                (_, Some(code), _) => format!("ended with exit code {code}"),
                (.., signal) => format!("was ended by signal {}", signal.unwrap_or_default()),
            };
            self.failure = Some(self.reason(number, &how)?);
        }
        Ok(())
    }

    /// Why the run fails with a program: what it did, and its last words.
    fn reason(&mut self, number: usize, how: &str) -> io::Result<String> {
        let Program {
            command,
            running,
            report,
            ..
        } = &mut self.programs[number];
        let mut reason = format!(
            "traffic.{}: the {} of pair {}, `{}`, {how}",
            report.group,
            report.role.name(),
            report.flow,
            command.line
        );
        let Some(running) = running else {
            return Ok(reason);
        };
        let errors = room::end_of(&running.errors, report::MAX_ERRORS)?;
        let said = report::last_lines(&errors, LAST_LINES);
        if !said.is_empty() {
            let _ = write!(reason, ":\n{said}");
            return Ok(reason);
        }
        // Some programs tell their errors there, as `iperf3 --json` does.
        let output = room::end_of(&running.output, report::MAX_ERRORS)?;
        let said = report::last_lines(&output, LAST_LINES);
        reason += " without a word on standard error";
        if !said.is_empty() {
            let _ = write!(reason, "; standard output ends with:\n{said}");
        }
        Ok(reason)
    }

    /// Ends all programs, and returns what they left; or why the run failed.
    ///
    /// # Errors
    /// When what they left cannot be read.
    pub fn finish(mut self) -> io::Result<Result<Vec<ProgramReport>, String>> {
        let stopped_early = self.clock.now() < self.end;
        for number in 0..self.programs.len() {
            self.note_end(number)?;
            let may_run = self.programs[number].role == Role::Server
                || self.group_of(number).stop.is_some()
                || stopped_early;
            let program = &mut self.programs[number];
            if program.running.is_none() || program.over {
                continue;
            }
            program.report.ended |= may_run;
            if !may_run && self.failure.is_none() {
                let how = format!(
                    "still ran at the end of the run; accepted: a duration longer than \"{}\", or `stop`",
                    self.scenario.duration
                );
                self.failure = Some(self.reason(number, &how)?);
            }
        }
        let running = self
            .programs
            .iter_mut()
            .filter_map(|it| it.running.as_mut());
        end_all(running.map(|it| &mut it.child));
        if let Some(failure) = self.failure {
            return Ok(Err(failure));
        }
        for number in 0..self.programs.len() {
            self.note_end(number)?;
        }
        let mut left = Budget::default();
        let mut reports = Vec::with_capacity(self.programs.len());
        for program in self.programs {
            let mut report = program.report;
            if let Some(running) = &program.running {
                room::read_streams(&running.output, &running.errors, &mut left, &mut report)?;
            }
            let (folders, role) = (program.command.folders, program.role);
            let mut budget = left;
            (report, left) = self.room.within(move || {
                folders.collect(role, &mut budget, &mut report)?;
                Ok((report, budget))
            })?;
            reports.push(report);
        }
        Ok(Ok(reports))
    }
}

impl Part for Pairs<'_> {
    fn act(&mut self, now: Time) -> io::Result<()> {
        while let Some(&Reverse((at, due, number))) = self.due.peek() {
            if at > now || now >= self.end || self.failure.is_some() {
                break;
            }
            self.due.pop();
            self.on_due(at, due, number)?;
        }
        Ok(())
    }

    fn next(&self) -> Time {
        self.due.peek().map_or(Time::MAX, |Reverse((at, ..))| *at)
    }

    fn owns(&self, datum: u64) -> bool {
        (PROGRAMS..PROGRAMS + self.programs.len() as u64).contains(&datum)
    }

    fn ready(&mut self, datum: u64) -> io::Result<()> {
        let number = (datum - PROGRAMS) as usize;
        self.note_end(number)?;
        if self.programs[number].over
            && let Some(running) = &self.programs[number].running
        {
            self.watched.forget(&running.end)?;
        }
        self.stop
            .fetch_or(self.failure.is_some(), Ordering::Relaxed);
        Ok(())
    }
}

/// The side of a group that a program is on.
fn side_of(role: Role) -> Side {
    match role {
        Role::Server => Side::Sending,
        Role::Client => Side::Receiving,
    }
}

/// The environment of a program: what it needs to find programs and room, and the variables of the file.
fn environment(own: &[(String, String)], folders: &Folders) -> Vec<(OsString, OsString)> {
    let path = env::var_os("PATH").unwrap_or_else(|| PATH.into());
    let usual = [
        ("PATH".into(), path),
        ("HOME".into(), folders.work().as_os_str().to_owned()),
        ("TMPDIR".into(), room::TEMPORARY.into()),
    ];
    let own = own.iter().map(|(name, value)| (name.into(), value.into()));
    let all: BTreeMap<OsString, OsString> = usual.into_iter().chain(own).collect();
    all.into_iter().collect()
}

impl Start {
    /// Starts the program, in the room of the programs.
    fn start(self) -> io::Result<(Child, File, File)> {
        room::enter(&self.space)?;
        let [output, errors] = [room::stream()?, room::stream()?];
        let mut command = Command::new("sh");
        command
            .args(["-c", &self.line])
            .env_clear()
            .envs(self.environment)
            .current_dir(self.folders.work())
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(errors.try_clone()?);
        let child = Child::start(&mut command).map_err(|error| about(error, &self.line))?;
        Ok((child, output, errors))
    }
}
