//! Programs of others: started with nothing of redtail's, each in a process group of its own, and ended with
//! all that it has started.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitStatus};
use std::thread;
use std::time::Duration;

use rustix::process::{
    Pid, Signal, WaitOptions, kill_process_group, test_kill_process_group, waitpgid,
};

use crate::sys::descriptors;

/// How long programs get to end after they were asked to.
pub const GRACE: Duration = Duration::from_secs(2);

/// Time between two looks at whether a program has ended.
pub const LOOK: Duration = Duration::from_millis(5);

/// A program that has a process group of its own.
#[derive(Debug)]
pub struct Child {
    process: std::process::Child,
    group: Pid,
    status: Option<ExitStatus>,
    /// Whether no process of its group is left. Its number can be that of another group then.
    over: bool,
}

impl Child {
    /// Starts a program as the first of a process group. It inherits its standard files alone.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn start(command: &mut Command) -> io::Result<Self> {
        descriptors::keep_from_programs()?;
        let process = command.process_group(0).spawn()?;
        let group = Pid::from_child(&process);
        Ok(Self {
            process,
            group,
            status: None,
            over: false,
        })
    }

    /// Its number.
    pub fn pid(&self) -> Pid {
        self.group
    }

    /// The program itself.
    pub fn process(&mut self) -> &mut std::process::Child {
        &mut self.process
    }

    /// How the program has ended; `None` while it runs. What it has started may still run.
    ///
    /// # Errors
    /// When the kernel does not tell.
    pub fn status(&mut self) -> io::Result<Option<ExitStatus>> {
        if self.status.is_none() {
            self.status = self.process.try_wait()?;
            self.is_over();
        }
        Ok(self.status)
    }

    /// Whether the program and all that it has left in its group have ended.
    fn is_over(&mut self) -> bool {
        if self.over {
            return true;
        }
        if self.status.is_none() {
            match self.process.try_wait() {
                Ok(None) => return false,
                Ok(status) => self.status = status,
                Err(_) => {} // it is not this process's any more
            }
        }
        // What a program leaves behind becomes a child of the first process of the process namespace. If that is this
        // one, they are in the group until they are waited for.
        while let Ok(Some(_)) = waitpgid(self.group, WaitOptions::NOHANG) {}
        self.over = test_kill_process_group(self.group) == Err(rustix::io::Errno::SRCH);
        self.over
    }

    /// Sends a signal to the program and all in its group.
    pub fn signal(&mut self, signal: Signal) {
        if !self.is_over() {
            let _ = kill_process_group(self.group, signal);
        }
    }
}

/// Asks programs, and all in their groups, to end (SIGTERM), and ends those that have not after the grace period
/// (SIGKILL).
pub fn end_all<'a>(children: impl IntoIterator<Item = &'a mut Child>) {
    let mut children: Vec<&mut Child> = children.into_iter().collect();
    for signal in [Signal::TERM, Signal::KILL] {
        for child in &mut children {
            child.signal(signal);
        }
        for _ in 0..GRACE.as_millis() / LOOK.as_millis() {
            children.retain_mut(|child| !child.is_over());
            if children.is_empty() {
                return;
            }
            thread::sleep(LOOK);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::process::Stdio;

    use super::*;

    fn sh(line: &str) -> Child {
        let mut command = Command::new("sh");
        command.args(["-c", line]).stdin(Stdio::null());
        Child::start(&mut command).expect("there is sh")
    }

    fn wait_for(what: impl Fn() -> bool) {
        for _ in 0..2000 {
            if what() {
                return;
            }
            thread::sleep(LOOK);
        }
        panic!("it did not happen");
    }

    #[test]
    fn what_a_program_has_started_gets_the_time_to_end() {
        let folder = std::env::temp_dir().join(format!("redtail-children-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        let path = |name: &str| folder.join(name).display().to_string();
        // The outer shell dies of SIGTERM at once. The inner one writes 300 ms later.
        let inner = format!(
            "trap 'sleep 0.3; echo written > {}; exit' TERM; echo > {}; while :; do sleep 0.01; done",
            path("log"),
            path("ready")
        );
        let mut wrapped = sh(&format!("sh -c \"{inner}\"; true"));
        let mut stubborn = sh(&format!("trap '' TERM; echo > {}; sleep 60", path("deaf")));
        wait_for(|| {
            ["ready", "deaf"]
                .iter()
                .all(|name| folder.join(name).exists())
        });
        end_all([&mut wrapped, &mut stubborn]);
        let log = fs::read_to_string(folder.join("log"));
        let _ = fs::remove_dir_all(&folder);
        assert_eq!(log.expect("it was written"), "written\n");
        assert!(wrapped.over && stubborn.over);
        let status = |child: &mut Child| child.status().expect("it is told").expect("it ended");
        assert!(!status(&mut wrapped).success() && !status(&mut stubborn).success());
    }

    #[test]
    fn a_program_that_has_ended_is_not_signalled() {
        let mut child = sh("exit 3");
        let mut status = None;
        for _ in 0..2000 {
            status = child.status().expect("it is told");
            if status.is_some() {
                break;
            }
            thread::sleep(LOOK);
        }
        assert_eq!(status.and_then(|status| status.code()), Some(3));
        assert!(child.over);
        end_all([&mut child]);
    }
}
