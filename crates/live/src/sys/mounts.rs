//! Mounts that only the calling thread, and the programs that it starts, can see
//! (mount_namespaces(7)). They go with the last of these.

use std::fs;
use std::io;
use std::os::fd::RawFd;
use std::path::Path;

use rustix::mount::{
    MountFlags, MountPropagationFlags, UnmountFlags, mount, mount_bind, mount_change, unmount,
};
use rustix::thread::{UnshareFlags, unshare_unsafe};

/// A folder that every system has, over which a file system in memory is put for a moment.
const ROOM: &str = "/tmp";

/// The folder in which programs of containers look for network namespaces of users. Profiles of
/// AppArmor let `pasta` read namespaces there and nowhere else.
const OF_USERS: &str = "/run/user";

fn about(error: rustix::io::Errno, what: &str) -> io::Error {
    crate::spaces::about(error.into(), what)
}

/// Moves the calling thread into a mount namespace of its own, from which nothing is passed on.
#[allow(unsafe_code)]
fn enter_own() -> io::Result<()> {
    // SAFETY: the table of file descriptors is not unshared.
    unsafe { unshare_unsafe(UnshareFlags::NEWNS) }
        .map_err(|error| about(error, "a mount namespace"))?;
    let flags = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    mount_change("/", flags).map_err(|error| about(error, "private mounts"))
}

fn put_memory_on(folder: &str) -> io::Result<()> {
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    mount("redtail", folder, "tmpfs", flags, None)
        .map_err(|error| about(error, &format!("a file system in memory on {folder}")))
}

/// Gives the network namespace of a descriptor a path, which it returns: what can be opened by those
/// who may not look into this process.
///
/// # Errors
/// When the kernel refuses a step.
pub fn show_namespace(namespace: RawFd) -> io::Result<String> {
    enter_own()?;
    let room = if Path::new(OF_USERS).is_dir() {
        OF_USERS
    } else {
        ROOM
    };
    put_memory_on(room)?;
    let folder = format!("{room}/0/netns");
    fs::create_dir_all(&folder)?;
    let path = format!("{folder}/redtail");
    fs::write(&path, "")?;
    mount_bind(format!("/proc/self/fd/{namespace}"), &path)
        .map_err(|error| about(error, "a path of a network namespace"))?;
    Ok(path)
}

/// Covers a file with another text.
///
/// # Errors
/// When the kernel refuses a step; a file that does not exist cannot be covered.
pub fn cover(file: &Path, text: &str) -> io::Result<()> {
    enter_own()?;
    let file = fs::canonicalize(file)
        .map_err(|error| crate::spaces::about(error, &file.display().to_string()))?;
    put_memory_on(ROOM)?;
    let own = format!("{ROOM}/text");
    fs::write(&own, text)?;
    mount_bind(&own, &file).map_err(|error| about(error, &file.display().to_string()))?;
    // The text stays, because it is mounted itself.
    unmount(ROOM, UnmountFlags::DETACH).map_err(|error| about(error, ROOM))
}
