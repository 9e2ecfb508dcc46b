//! User and network namespaces (namespaces(7)).
//!
//! A run makes a user namespace in which it has all rights over networks, and in this as many
//! network namespaces as it needs. The kernel removes them when the last process in them ends.

use std::fs;
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::process::{Child, Command, Stdio};

use rustix::fs::{Mode, OFlags, open};
use rustix::mount::{MountFlags, mount};
use rustix::process::{DumpableBehavior, getgid, getuid, set_dumpable_behavior};
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space, unshare_unsafe};

/// Moves this process, which must have one thread, into a new user namespace as its root.
///
/// # Errors
/// When the kernel or its settings forbid it.
pub fn enter_user_namespace() -> io::Result<()> {
    enter(UnshareFlags::NEWUSER)
}

/// Moves this process, which must have one thread, into a new user namespace as its root. Its next
/// child is the first process of a process namespace: when that child ends, however it ends, the
/// kernel ends all processes that it started.
///
/// # Errors
/// When the kernel or its settings forbid it.
pub fn enter_process_namespace() -> io::Result<()> {
    enter(UnshareFlags::NEWUSER | UnshareFlags::NEWNS | UnshareFlags::NEWPID)
}

#[allow(unsafe_code)]
fn enter(namespaces: UnshareFlags) -> io::Result<()> {
    let (user, group) = (getuid().as_raw(), getgid().as_raw());
    let outside = Mapper::start(user, group)?;
    // SAFETY: the table of file descriptors is not unshared.
    unsafe { unshare_unsafe(namespaces) }?;
    if outside.is_some_and(Mapper::map_all) {
        return Ok(());
    }
    // One of both may have been given, and is given once.
    if read_map("gid_map").is_empty() {
        fs::write("/proc/self/setgroups", "deny")?;
        fs::write("/proc/self/gid_map", format!("0 {group} 1"))?;
    }
    if read_map("uid_map").is_empty() {
        fs::write("/proc/self/uid_map", format!("0 {user} 1"))?;
    }
    Ok(())
}

/// A table of the users or groups of this process's user namespace.
fn read_map(map: &str) -> String {
    fs::read_to_string(format!("/proc/self/{map}")).unwrap_or_default()
}

/// The table in which a new namespace has the same users or groups as this one: of each line the first number inside, the
/// one outside, which is the same, and how many there are.
fn same_ids(map: &str) -> String {
    let lines = map.lines().filter_map(|line| {
        let mut numbers = line.split_whitespace();
        let (first, count) = (numbers.next()?, numbers.nth(1)?);
        Some(format!("{first} {first} {count}\n"))
    });
    lines.collect()
}

/// The first of the subordinate users or groups of a user, and how many there are (subuid(5)).
fn subordinate_ids(table: &str, user: u32, names: &str) -> Option<(u32, u32)> {
    let number = user.to_string();
    let mut of_users = names.lines().map(|line| line.split(':'));
    let name = of_users.find_map(|mut fields| {
        let name = fields.next()?;
        (fields.nth(1)? == number).then_some(name)
    });
    table.lines().find_map(|line| {
        let mut fields = line.split(':');
        let owner = fields.next()?;
        let found = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
        (owner == number || Some(owner) == name).then_some(found)
    })
}

/// A process in the user namespace that this one is about to leave. It gives the new one more than one user, which only
/// root and newuidmap(1) may, and only from there: programs that give up the rights of root can be another user then, as
/// `tcpdump` wants to. Root has the users and groups of the old namespace, others their subordinate ones.
struct Mapper(Child);

impl Mapper {
    /// Starts it; `None` for a user without subordinate users and groups.
    fn start(user: u32, group: u32) -> io::Result<Option<Self>> {
        let own = std::process::id().to_string();
        let mut command = Command::new("sh");
        // `read` fails if this process has gone.
        if user == 0 {
            let [groups, users] = ["gid_map", "uid_map"].map(|map| same_ids(&read_map(map)));
            let line = "read it && printf %s \"$2\" > /proc/$1/gid_map && printf %s \"$3\" > /proc/$1/uid_map";
            command.args(["-c", line, "sh", &own, &groups, &users]);
        } else {
            let read = |path| fs::read_to_string(path).unwrap_or_default();
            let names = read("/etc/passwd");
            let [users, groups] = ["/etc/subuid", "/etc/subgid"]
                .map(|path| subordinate_ids(&read(path), user, &names));
            let (Some(users), Some(groups)) = (users, groups) else {
                return Ok(None);
            };
            let map = |own: u32, (first, count): (u32, u32)| format!("0 {own} 1 1 {first} {count}");
            let line = "read it && newgidmap $1 $2 && newuidmap $1 $3";
            command.args([
                "-c",
                line,
                "sh",
                &own,
                &map(group, groups),
                &map(user, users),
            ]);
        }
        command.stdin(Stdio::piped()).stdout(Stdio::null());
        Ok(Some(Self(command.stderr(Stdio::null()).spawn()?)))
    }

    /// Says whether this process, which is in the new namespace now, has all users and groups.
    fn map_all(mut self) -> bool {
        let told = self.0.stdin.take().map(|mut pipe| pipe.write_all(b"now\n"));
        let mapped = self.0.wait().is_ok_and(|status| status.success());
        mapped && told.is_some_and(|told| told.is_ok())
    }
}

/// Hides the memory and the open files of this process, and of those that it forks, from other processes of this user
/// namespace (`PR_SET_DUMPABLE` in prctl(2); proc(5) and ptrace(2) ask for a right over the user namespace in
/// which its program was started, which nobody in this one has). A program that it executes is not hidden.
///
/// # Errors
/// When the kernel refuses it.
pub fn hide_process() -> io::Result<()> {
    Ok(set_dumpable_behavior(DumpableBehavior::NotDumpable)?)
}

/// Shows the processes of this process namespace in `/proc`, as far as the kernel allows it (not
/// where parts of `/proc` are hidden, as in containers).
pub fn show_own_processes() {
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    let _ = mount("proc", "/proc", "proc", flags, None);
}

/// A network namespace.
#[derive(Debug)]
pub struct NetNamespace(OwnedFd);

impl NetNamespace {
    /// Makes a network namespace, which the calling thread is in afterwards.
    ///
    /// # Errors
    /// When the calling thread may not.
    #[allow(unsafe_code)]
    pub fn create() -> io::Result<Self> {
        // SAFETY: the table of file descriptors is not unshared.
        unsafe { unshare_unsafe(UnshareFlags::NEWNET) }?;
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        Ok(Self(open(
            "/proc/thread-self/ns/net",
            flags,
            Mode::empty(),
        )?))
    }

    /// A descriptor of it for another thread.
    ///
    /// # Errors
    /// When no descriptor is left.
    pub fn duplicate(&self) -> io::Result<OwnedFd> {
        self.0.try_clone()
    }

    /// Moves the calling thread into it: sockets opened from now on belong to it.
    ///
    /// # Errors
    /// When the calling thread may not.
    pub fn enter(&self) -> io::Result<()> {
        let kind = Some(LinkNameSpaceType::Network);
        Ok(move_into_link_name_space(self.0.as_fd(), kind)?)
    }
}

impl AsFd for NetNamespace {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subordinate_ids_are_found_by_name_or_number() {
        let names = "root:x:0:0:root:/root:/bin/bash\nana:x:1000:1000::/home/ana:/bin/sh\n";
        let table = "bob:1:2\nana:100000:65536\n1001:200000:10\nbroken:x\n";
        assert_eq!(subordinate_ids(table, 1000, names), Some((100_000, 65_536)));
        assert_eq!(subordinate_ids(table, 1001, names), Some((200_000, 10)));
        assert_eq!(subordinate_ids(table, 1002, names), None);
        assert_eq!(subordinate_ids("", 1000, names), None);
    }

    #[test]
    fn users_keep_their_numbers() {
        assert_eq!(
            same_ids("         0          0 4294967295\n"),
            "0 0 4294967295\n"
        );
        let of_container = "         0     100000      65536\n     65536       1000          1\n";
        assert_eq!(same_ids(of_container), "0 0 65536\n65536 65536 1\n");
        assert_eq!(same_ids("odd\n"), "");
    }
}
