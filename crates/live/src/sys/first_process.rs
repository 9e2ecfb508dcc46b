//! What the first process of a virtual machine does that no other one may.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::path::Path;

use rustix::fs::{Mode, OFlags, open};
use rustix::io::Errno;
use rustix::ioctl::{NoArg, ioctl, opcode};
use rustix::mount::{MountFlags, mount};
use rustix::stdio::{dup2_stderr, dup2_stdin, dup2_stdout};
use rustix::system::{RebootCommand, finit_module, reboot};

use crate::spaces::about;

/// Mixes the kernel's pool of random numbers into its generator (linux/random.h).
const RNDRESEEDCRNG: rustix::ioctl::Opcode = opcode::none(b'R', 7);

/// Mounts the file systems of the kernel.
///
/// # Errors
/// When one cannot be mounted.
pub fn mount_all() -> io::Result<()> {
    for (kind, folder) in [
        ("proc", "/proc"),
        ("sysfs", "/sys"),
        ("devtmpfs", "/dev"),
        ("tmpfs", "/run"),
        ("tmpfs", "/tmp"),
    ] {
        match mount(kind, folder, kind, MountFlags::empty(), None) {
            Ok(()) | Err(Errno::BUSY) => {}
            Err(error) => return Err(about(error.into(), folder)),
        }
    }
    Ok(())
}

/// Makes the console the standard input and output.
///
/// # Errors
/// When there is no console.
pub fn take_console() -> io::Result<()> {
    let console = open("/dev/console", OFlags::RDWR, Mode::empty())?;
    dup2_stdin(&console)?;
    dup2_stdout(&console)?;
    Ok(dup2_stderr(&console)?)
}

/// Loads a module of the kernel, if it is not there already.
///
/// # Errors
/// When the kernel refuses it; the message has what the kernel says of the module.
pub fn load_module(path: &Path) -> io::Result<()> {
    match finit_module(File::open(path)?.as_fd(), c"", 0) {
        Ok(()) | Err(Errno::EXIST) => Ok(()),
        Err(error) => {
            let name = path.file_stem().unwrap_or_default().to_string_lossy();
            let said = said_of(&name);
            Err(io::Error::other(format!(
                "{}: {error}{said}",
                path.display()
            )))
        }
    }
}

/// Bytes of the longest record of the kernel's log (`CONSOLE_EXT_LOG_MAX`, kernel/printk/printk.c of Linux 6.1).
const RECORD: usize = 8192;

/// What the kernel's log says of a module, after a semicolon each (Documentation/ABI/testing/dev-kmsg).
fn said_of(module: &str) -> String {
    let mut said = String::new();
    let Ok(log) = open(
        "/dev/kmsg",
        OFlags::RDONLY | OFlags::NONBLOCK,
        Mode::empty(),
    ) else {
        return said;
    };
    let mut record = [0; RECORD];
    loop {
        let text = match rustix::io::read(&log, &mut record) {
            Ok(count) if count > 0 => String::from_utf8_lossy(&record[..count]),
            Err(Errno::INTR | Errno::PIPE) => continue, // older records have been overwritten
            _ => return said,                           // there are no more
        };
        let message = text.split_once(';').map(|(_, rest)| rest);
        let line = message.and_then(|rest| rest.lines().next());
        let own = line.filter(|line| line.starts_with(&format!("{module}: ")));
        said.extend(own.iter().flat_map(|line| ["; ", line]));
    }
}

/// Begins the kernel's random numbers anew, with these bytes besides what it has.
///
/// # Errors
/// When the kernel refuses it.
#[allow(unsafe_code)]
pub fn mix_random_numbers(bytes: &[u8]) -> io::Result<()> {
    let pool = open("/dev/urandom", OFlags::RDWR, Mode::empty())?;
    rustix::io::write(&pool, bytes)?;
    // SAFETY: this request has no argument.
    unsafe { ioctl(&pool, NoArg::<RNDRESEEDCRNG>::new()) }?;
    Ok(())
}

/// Ends the machine.
///
/// # Errors
/// When this process may not.
pub fn end_machine() -> io::Result<()> {
    Ok(reboot(RebootCommand::Restart)?)
}
