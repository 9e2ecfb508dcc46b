//! The agent as the first process of a virtual machine (QEMU, x86-64).
//!
//! It loads the kernel's modules and stops the machine: here a snapshot is taken. A machine that goes
//! on from there is given a request, makes the run or runs programs, sends the reply, and ends.
//!
//! Requests come from QEMU's firmware configuration device ("QEMU Firmware Configuration (fw_cfg)
//! Device", docs/specs/fw_cfg), replies go to its debug console, and the stop is a panic reported to the
//! device pvpanic ("PVPANIC device", docs/specs/pvpanic). All three act at the instruction that
//! uses them, so the machine's time does not depend on the host.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;

use redtail_network::metrics::IDLE_SHARE;
use redtail_network::report::full_name;
use redtail_spec::Scenario;
use redtail_traffic::{Traces, table::TraceTable};

use crate::exchange::{self, Asked, Failure, Printed, Reply, Request};
use crate::pairs;
use crate::run::{RunError, RunOptions, run};
use crate::spaces::{self, about};
use crate::sys::first_process::{
    end_machine, load_module, mix_random_numbers, mount_all, take_console,
};
use crate::sys::ports::Ports;

/// The list of modules to load, a path in each line.
const MODULES: &str = "/modules";

/// The list of objects in BPF to register, a path in each line; it may be missing.
const OBJECTS: &str = "/objects";

/// The root filesystem of programs of the user.
const ROOT: &str = "/programs";

/// What registers them needs the types of the kernel.
const TYPES: &str = "/sys/kernel/btf/vmlinux";

/// The name of the request among the files of the configuration device.
pub const REQUEST: &str = "opt/redtail/request";

/// The debug console (`isa-debugcon`).
const CONSOLE: u16 = 0xe9;

/// The device that reports panics, and the bit for a panic.
const PVPANIC: u16 = 0x505;
const PANICKED: u8 = 1;

/// The selector of the configuration device, and its data.
const SELECT: u16 = 0x510;
const DATA: u16 = 0x511;

/// The item with the list of files: a number, and for each file size, selector, two reserved bytes and
/// a name of 56 bytes.
const FILES: u16 = 0x19;
const NAME_BYTES: usize = 56;

/// The share of a run in which the machine must be idle for its result to be used
/// (docs/decisions/0012-virtual-machines.md).
const LEAST_IDLE: f64 = 0.5;

/// The same of a run with programs, in which these may compute for the rest. A program waits for others for as long as
/// it computes itself, times busy over idle share: with less, programs measure each other and not the network.
const LEAST_IDLE_WITH_PROGRAMS: f64 = 0.1;

/// The ticks in a second of the numbers in /proc/self/stat (`USER_HZ`, include/asm-generic/param.h).
const TICKS: f64 = 100.0;

/// What is sent each time that a second of the run has passed.
const SECOND: &[u8] = b".";

/// What is sent before a reply; its length in bytes and a new line follow.
const REPLY: &str = "\nreply ";

/// Does what the first process of the machine has to do; returns when the machine cannot be ended.
pub fn main() {
    if let Err(error) = serve() {
        eprintln!("redtail: {error}");
    }
    if let Err(error) = end_machine() {
        eprintln!("redtail: the machine cannot be ended: {error}");
    }
}

fn serve() -> io::Result<()> {
    mount_all()?;
    take_console()?;
    for module in fs::read_to_string(MODULES)?.lines() {
        load_module(Path::new(module))?;
    }
    register_objects()?;
    let ports = Ports::open().map_err(|error| about(error, "ports"))?;
    ports.write_u8(PVPANIC, PANICKED);
    // The machine has been stopped here, and goes on now.
    let reply = match read_request(&ports).and_then(|asked| match asked {
        Asked::Run(request) => answer(&request),
        Asked::Programs(programs) => run_programs(&programs),
    }) {
        Ok(reply) => reply,
        Err(error) => Reply::Failed {
            at: Failure::Kernel,
            reason: error.to_string(),
        },
    };
    let bytes = exchange::to_bytes(&reply);
    ports.write_all(CONSOLE, format!("{REPLY}{}\n", bytes.len()).as_bytes());
    ports.write_all(CONSOLE, &bytes);
    Ok(())
}

/// Registers congestion controls in BPF, which stay until the machine ends (bpftool-struct_ops(8)).
fn register_objects() -> io::Result<()> {
    let Ok(list) = fs::read_to_string(OBJECTS) else {
        return Ok(());
    };
    if !Path::new(TYPES).exists() {
        return Err(io::Error::other(format!(
            "{TYPES} is missing: the kernel was built without CONFIG_DEBUG_INFO_BTF, which objects in BPF need"
        )));
    }
    for object in list.lines() {
        spaces::run("bpftool", &["struct_ops", "register", object], "")?;
    }
    Ok(())
}

fn answer(request: &Request) -> io::Result<Reply> {
    let scenario = Scenario::from_json(&request.scenario)
        .map_err(|error| io::Error::other(error.to_string()))?;
    let (seed, replication) = (scenario.seed, scenario.replication);
    let mut begin = seed.to_le_bytes().to_vec();
    begin.extend(u64::from(replication).to_le_bytes());
    mix_random_numbers(&begin).map_err(|error| about(error, "/dev/urandom"))?;
    let tables = request.tables.iter().map(TraceTable::from);
    let options = RunOptions {
        traces: tables.fold(Traces::new(), |traces, table| traces.with(table.into())),
        kernel_queues: request.kernel_queues,
        virtual_time: true,
        files: request.files.iter().cloned().collect(),
        root: Some(PathBuf::from(ROOT)),
        ..RunOptions::default()
    };
    thread::spawn(count_seconds);
    let before = Usage::now()?;
    match run(&scenario, options) {
        Ok(ran) => {
            let mut result = Box::new(ran.result);
            let after = Usage::now()?;
            result
                .metrics
                .push((full_name("", IDLE_SHARE), after.idle_since(before)));
            let programs = pairs::any(&scenario);
            let invalid = ran.invalid.or_else(|| after.too_busy(before, programs));
            Ok(Reply::Ran {
                result,
                invalid,
                code: None,
                programs: ran.programs,
            })
        }
        Err(RunError::Refused(error)) => Err(error),
        Err(RunError::Program(reason)) => Ok(Reply::Failed {
            at: Failure::Program,
            reason,
        }),
        Err(error) => Err(io::Error::other(error.to_string())),
    }
}

/// Runs programs one after the other; one that fails does not stop the others.
fn run_programs(programs: &[Vec<String>]) -> io::Result<Reply> {
    let run = |words: &Vec<String>| {
        let (program, arguments) = words
            .split_first()
            .ok_or_else(|| io::Error::other("a program has no name"))?;
        let done = Command::new(program)
            .args(arguments)
            .output()
            .map_err(|error| about(error, program))?;
        Ok(Printed {
            code: done.status.code(),
            output: String::from_utf8_lossy(&done.stdout).into_owned(),
            errors: String::from_utf8_lossy(&done.stderr).into_owned(),
        })
    };
    let printed: io::Result<Vec<_>> = programs.iter().map(run).collect();
    printed.map(Reply::Printed)
}

/// How long the machine has been up and idle, and what programs that have ended have computed, in seconds.
#[derive(Clone, Copy, Debug)]
struct Usage {
    up: f64,
    idle: f64,
    programs: f64,
}

impl Usage {
    fn now() -> io::Result<Self> {
        let text = fs::read_to_string("/proc/uptime")?;
        let mut numbers = text.split_whitespace().map(str::parse);
        match (numbers.next(), numbers.next()) {
            (Some(Ok(up)), Some(Ok(idle))) => Ok(Self {
                up,
                idle,
                programs: of_programs(&fs::read_to_string("/proc/self/stat")?),
            }),
            _ => Err(io::Error::other(format!("/proc/uptime is odd: {text}"))),
        }
    }

    /// Why a run that began with `before` must not be used, if the machine computed for too much of it. What `programs` of
    /// the user compute is what they are; how late they made packets is measured, and has a bound of its own.
    fn too_busy(self, before: Self, programs: bool) -> Option<String> {
        let idle = self.idle_since(before);
        let of_programs = (self.programs - before.programs) / (self.up - before.up);
        let say = |what: &str, share: f64, least: f64| {
            (share < least).then(|| {
                format!(
                    "the virtual machine was too busy: it was {what} for {:.0} % of the run; \
                     accepted: {:.0} % or more",
                    share * 100.0,
                    least * 100.0
                )
            })
        };
        if !programs {
            return say("idle", idle, LEAST_IDLE);
        }
        say("idle", idle, LEAST_IDLE_WITH_PROGRAMS)
            .or_else(|| say("idle or with programs", idle + of_programs, LEAST_IDLE))
    }

    fn idle_since(self, before: Self) -> f64 {
        (self.idle - before.idle) / (self.up - before.up)
    }
}

/// How long the children of a process that have ended have computed, from its line in /proc/self/stat (proc_pid_stat(5)).
fn of_programs(stat: &str) -> f64 {
    let after_name = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    let numbers = after_name.split_whitespace().skip(13).take(2);
    numbers.filter_map(|it| it.parse::<f64>().ok()).sum::<f64>() / TICKS
}

/// Sends a sign of life each second of the machine's time.
fn count_seconds() {
    let Ok(ports) = Ports::open() else { return };
    loop {
        thread::sleep(Duration::from_secs(1));
        ports.write_all(CONSOLE, SECOND);
    }
}

/// Reads the request from the configuration device.
fn read_request(ports: &Ports) -> io::Result<Asked> {
    let read = |length: usize| {
        let mut bytes = vec![0; length];
        ports.read_all(DATA, &mut bytes);
        bytes
    };
    let be32 = |bytes: &[u8]| u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    ports.write_u16(SELECT, FILES);
    let count = be32(&read(4));
    for _ in 0..count {
        let entry = read(8 + NAME_BYTES);
        let name = entry[8..].split(|&byte| byte == 0).next();
        if name == Some(REQUEST.as_bytes()) {
            let size = be32(&entry) as usize;
            ports.write_u16(SELECT, u16::from_be_bytes([entry[4], entry[5]]));
            return exchange::from_bytes(&read(size))
                .map_err(|error| io::Error::other(format!("the request: {error}")));
        }
    }
    Err(io::Error::other("there is no request"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(idle: f64, programs: f64) -> Usage {
        Usage {
            up: 10.0,
            idle,
            programs,
        }
    }

    #[test]
    fn what_children_have_computed_is_in_the_line_of_a_process() {
        let line = "1 (a ) name) S 0 1 1 0 -1 4194560 9 8 7 6 11 12 150 50 20 0 1 0 3 4 5";
        assert_eq!(of_programs(line), 2.0);
        assert_eq!(of_programs("odd"), 0.0);
    }

    #[test]
    fn programs_may_compute_for_longer_than_the_network() {
        let before = Usage {
            up: 0.0,
            idle: 0.0,
            programs: 0.0,
        };
        assert_eq!(usage(6.0, 0.0).too_busy(before, false), None);
        let why = |usage: Usage, programs| usage.too_busy(before, programs).expect("it is refused");
        assert!(why(usage(4.0, 5.0), false).contains("it was idle for 40 %"));
        assert_eq!(usage(3.0, 4.0).too_busy(before, true), None);
        assert!(why(usage(0.5, 9.0), true).contains("idle for 5 %"));
        assert!(why(usage(2.0, 1.0), true).contains("idle or with programs for 30 %"));
    }
}
