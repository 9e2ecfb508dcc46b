//! Mounts that only the calling thread, and the programs that it starts, can see
//! (mount_namespaces(7)). They go with the last of these.

use std::env;
use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd, RawFd};
use std::path::{Path, PathBuf};

use rustix::fs::CWD;
use rustix::mount::{
    MountFlags, MountPropagationFlags, MoveMountFlags, OpenTreeFlags, UnmountFlags, mount,
    mount_bind, mount_bind_recursive, mount_change, move_mount, open_tree, unmount,
};
use rustix::process::chroot;
use rustix::thread::{
    CapabilitySet, UnshareFlags, remove_capability_from_bounding_set, unshare_unsafe,
};

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
    put_on(folder, flags)
}

fn put_on(folder: &str, flags: MountFlags) -> io::Result<()> {
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

/// File systems of the kernel, which programs have in a root of their own as well.
const OF_KERNEL: [&str; 3] = ["dev", "proc", "sys"];

/// Makes a folder the root of all files for the calling thread, and for the programs that it starts (chroot(2)). The
/// folder has folders for what the kernel shows.
///
/// # Errors
/// When the kernel refuses a step.
pub fn enter_root(folder: &Path) -> io::Result<()> {
    enter_own()?;
    // A mount of its own, which can be made read-only.
    mount_bind(folder, folder).map_err(|error| about(error, &folder.display().to_string()))?;
    for name in OF_KERNEL {
        let place = folder.join(name);
        mount_bind_recursive(Path::new("/").join(name), &place)
            .map_err(|error| about(error, &place.display().to_string()))?;
    }
    chroot(folder).map_err(|error| about(error, &folder.display().to_string()))?;
    env::set_current_dir("/")
}

/// The argument of mount_setattr(2).
#[repr(C)]
struct MountAttributes {
    set: u64,
    clear: u64,
    propagation: u64,
    user_namespace: u64,
}

/// `MOUNT_ATTR_RDONLY` (linux/mount.h).
const READ_ONLY: u64 = 1;

/// Lets nothing be written below a folder, mounts below it included.
#[allow(unsafe_code)]
fn make_read_only(folder: &std::ffi::CStr) -> io::Result<()> {
    let attributes = MountAttributes {
        set: READ_ONLY,
        clear: 0,
        propagation: 0,
        user_namespace: 0,
    };
    // SAFETY: the path ends with a zero, and the size is that of the attributes.
    let done = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            libc::AT_FDCWD,
            folder.as_ptr(),
            libc::AT_RECURSIVE,
            &raw const attributes,
            size_of::<MountAttributes>(),
        )
    };
    if done == 0 {
        return Ok(());
    }
    Err(io::Error::last_os_error())
}

/// A folder with all that is mounted in it, to be mounted once more.
struct Tree {
    folder: PathBuf,
    mounts: OwnedFd,
}

impl Tree {
    fn of(folder: &Path) -> io::Result<Self> {
        let named = |error| crate::spaces::about(error, &folder.display().to_string());
        let folder = fs::canonicalize(folder).map_err(named)?;
        let flags = OpenTreeFlags::OPEN_TREE_CLONE
            | OpenTreeFlags::OPEN_TREE_CLOEXEC
            | OpenTreeFlags::AT_RECURSIVE;
        let mounts =
            open_tree(CWD, &folder, flags).map_err(|error| named(io::Error::from(error)))?;
        Ok(Self { folder, mounts })
    }

    /// Mounts it at its own path.
    fn put_back(&self) -> io::Result<()> {
        let named = |error| crate::spaces::about(error, &self.folder.display().to_string());
        // Memory may lie over its parents.
        if !self.folder.is_dir() {
            fs::create_dir_all(&self.folder).map_err(named)?;
        }
        let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH;
        move_mount(self.mounts.as_fd(), "", CWD, &self.folder, flags)
            .map_err(|error| named(io::Error::from(error)))
    }
}

/// Lets the calling thread, and the programs that it starts, write to these folders, to a `/tmp` in memory and to
/// devices, and to no other file. They lose the rights that would undo this: to mount, and to look into
/// processes that can (capabilities(7)). A user namespace that they make has the same mounts, locked
/// (mount_namespaces(7)).
///
/// # Errors
/// When the kernel refuses a step, as Linux before 5.12 does, or a folder does not exist.
pub fn read_only_except(writable: &[PathBuf]) -> io::Result<()> {
    read_only_from(&env::current_dir()?, writable)
}

/// Lets the calling thread, and the programs that it starts, write to a `/tmp` in memory and to devices alone, as
/// [`read_only_except`] does. What the computer has in `/tmp` they do not see.
///
/// # Errors
/// As [`read_only_except`].
pub fn read_only_but_memory() -> io::Result<()> {
    read_only_from(Path::new("/"), &[])
}

/// The work of [`read_only_except`] for programs that begin in the folder `here`.
fn read_only_from(here: &Path, writable: &[PathBuf]) -> io::Result<()> {
    enter_own()?;
    let trees: Vec<_> = writable
        .iter()
        .map(|folder| Tree::of(folder))
        .collect::<Result<_, _>>()?;
    make_read_only(c"/").map_err(|error| crate::spaces::about(error, "read-only files"))?;
    // What the memory covers, and what is needed of it.
    let covered = here.starts_with(ROOM).then(|| Tree::of(here)).transpose()?;
    put_on(ROOM, MountFlags::NOSUID | MountFlags::NODEV)?;
    for tree in covered.iter().chain(&trees) {
        tree.put_back()?;
    }
    // The path leads to the tree that was mounted last.
    env::set_current_dir(here)?;
    for right in [CapabilitySet::SYS_ADMIN, CapabilitySet::SYS_PTRACE] {
        remove_capability_from_bounding_set(right)
            .map_err(|error| about(error, "fewer rights for programs"))?;
    }
    Ok(())
}
