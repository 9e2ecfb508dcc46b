//! The table of open files.

use std::io;

use rustix::event::{EventfdFlags, eventfd};
use rustix::io::fcntl_dupfd_cloexec;
use rustix::process::{Resource, getrlimit};

/// The first descriptor after the standard ones.
const FIRST: libc::c_uint = 3;

/// Keeps all open files but the standard ones from programs that are started from now on: each is opened so already,
/// unless a library has not.
///
/// # Errors
/// When the kernel refuses it, as Linux before 5.11 does.
#[allow(unsafe_code)]
pub fn keep_from_programs() -> io::Result<()> {
    let (last, flags) = (libc::c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC);
    // SAFETY: it sets a flag of descriptors, and closes none.
    match unsafe { libc::syscall(libc::SYS_close_range, FIRST, last, flags) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// The most descriptors for which room is made: half a megabyte.
const MOST: u64 = 65_536;

/// Makes the table of open files as large as this process may need it. The kernel makes it larger when a
/// descriptor does not fit; in a process with threads it then waits until no processor reads the old one (`expand_fdtable`,
/// fs/file.c), which takes two ticks of its clock: 8 ms with 250 in a second. The thread that opens the 64th socket
/// would be late by this time.
///
/// # Errors
/// When no descriptor is left.
pub fn reserve() -> io::Result<()> {
    let limit = getrlimit(Resource::Nofile).current.unwrap_or(MOST);
    let last = limit.min(MOST).saturating_sub(1);
    let any = eventfd(0, EventfdFlags::CLOEXEC)?;
    // The table stays as it is when the descriptor is closed.
    fcntl_dupfd_cloexec(&any, last as i32)?;
    Ok(())
}
