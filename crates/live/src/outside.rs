//! The world outside of a run: what the programs of the user send to it crosses the network of the
//! run, is forwarded by the namespace of the servers to a TAP device, and from there carried on by
//! `pasta` or `slirp4netns`, which use ordinary sockets of the computer.
//!
//! Those programs are children of the process that makes the run, so they end with it.

use std::fmt::Write as _;
use std::fs;
use std::io::{self, BufRead, BufReader};
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, AsRawFd};
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use redtail_core::{Span, Time};

use crate::spaces::{self, Space, about};
use crate::sys::clock::Clock;
use crate::sys::mounts;

/// Name of the device to the outside.
const DEVICE: &str = "outside";

/// Largest packet to and from the outside.
const MTU: u64 = 1500;

/// The network of the device. No group has it: theirs end at 10.253.
const NETWORK: &str = "10.254.0.0/24";

/// The device's own address.
const OWN: Ipv4Addr = Ipv4Addr::new(10, 254, 0, 100);

/// The address at which the computer's own loopback is reached.
pub const COMPUTER: Ipv4Addr = Ipv4Addr::new(10, 254, 0, 2);

/// The address of a resolver that asks the computer's own one.
const RESOLVER: Ipv4Addr = Ipv4Addr::new(10, 254, 0, 3);

/// The table of routes of what comes from the hosts.
const TABLE: u32 = 100;

/// How long a program gets to open the device.
const PATIENCE: Span = Span::from_s(10);

/// Time between two looks at the device.
const LOOK: Duration = Duration::from_millis(20);

/// Lines of a program's messages that are kept.
const KEPT_LINES: usize = 8;

/// Where the system says which resolver it uses (resolv.conf(5)).
const RESOLV_CONF: &str = "/etc/resolv.conf";

/// A program that connects a network namespace to the outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    /// `pasta` of passt.
    Pasta,
    /// `slirp4netns`.
    Slirp4netns,
}

impl Program {
    /// The program of this name.
    pub fn of(name: &str) -> Option<Self> {
        [Self::Pasta, Self::Slirp4netns]
            .into_iter()
            .find(|it| it.name() == name)
    }

    /// The name of the program, which is that of its file.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pasta => "pasta",
            Self::Slirp4netns => "slirp4netns",
        }
    }

    /// What serves the device of a namespace, which has this path.
    fn command(self, namespace: &str) -> Command {
        let mut command = Command::new(self.name());
        match self {
            Self::Pasta => {
                let (prefix, computer) = (NETWORK.rsplit('/').next(), COMPUTER.to_string());
                let prefix = prefix.expect("a network has a prefix");
                command.args(["--foreground", "--quiet", "--ipv4-only"]);
                command.args(["--netns-only", "--netns", namespace]);
                command.args(["--ns-ifname", DEVICE, "--mtu", &MTU.to_string()]);
                command.args(["--address", &OWN.to_string(), "--netmask", prefix]);
                // The gateway's address stands for the computer.
                command.args(["--gateway", &computer]);
                command.args(["--dns-forward", &RESOLVER.to_string()]);
                // No port of the computer leads into the run.
                command.args(["-t", "none", "-u", "none", "-T", "none", "-U", "none"]);
            }
            Self::Slirp4netns => {
                // The computer has address 2 and the resolver address 3 of the network.
                command.arg(format!("--cidr={NETWORK}"));
                command.arg(format!("--mtu={MTU}"));
                command.args(["--netns-type=path", namespace, DEVICE]);
            }
        }
        command
    }
}

/// A connection to the outside.
#[derive(Debug)]
pub struct Outside {
    program: Program,
    child: Child,
    messages: Arc<Mutex<Vec<String>>>,
}

impl Outside {
    /// Connects the namespace of the servers. The calling thread must be in the network namespace
    /// of the computer, and stays in it.
    ///
    /// # Errors
    /// When the kernel refuses a step, or the program fails: the text has its messages.
    pub fn connect(program: Program, servers: &Space) -> io::Result<Self> {
        in_thread(|| {
            servers.namespace.enter()?;
            prepare()
        })?;
        // In a thread, because what it mounts is for the program alone.
        let mut child = in_thread(|| {
            let path = mounts::show_namespace(servers.namespace.as_fd().as_raw_fd())?;
            let mut command = program.command(&path);
            command.stdin(Stdio::null()).stdout(Stdio::null());
            command.stderr(Stdio::piped());
            let started = command.spawn();
            started.map_err(|error| about(error, program.name()))
        })?;
        let messages = kept(child.stderr.take().expect("it is piped"));
        let mut outside = Self {
            program,
            child,
            messages,
        };
        in_thread(|| {
            servers.namespace.enter()?;
            outside.wait_for_device()
        })?;
        Ok(outside)
    }

    /// Waits until the program has opened the device.
    fn wait_for_device(&mut self) -> io::Result<()> {
        let began = Clock::start();
        loop {
            if let Some(why) = self.ended() {
                return Err(io::Error::other(why));
            }
            // A device that no program has open has no carrier.
            let state = spaces::run("ip", &["-o", "link", "show", "dev", DEVICE], "")?;
            if state.contains("LOWER_UP") {
                return Ok(());
            }
            if began.now() > Time::ZERO + PATIENCE {
                return Err(io::Error::other(self.says("does not open its device")));
            }
            thread::sleep(LOOK);
        }
    }

    /// Why the outside is not connected any more; `None` if it is.
    pub fn ended(&mut self) -> Option<String> {
        match self.child.try_wait() {
            Ok(None) => None,
            Ok(Some(status)) => {
                // What it has printed last is read by another thread.
                thread::sleep(LOOK);
                Some(self.says(&format!("ended ({status})")))
            }
            Err(error) => Some(self.says(&error.to_string())),
        }
    }

    fn says(&self, what: &str) -> String {
        let messages = self.messages.lock().map(|lines| lines.join("; "));
        let messages = messages.unwrap_or_default();
        let said = if messages.is_empty() {
            "it printed no message"
        } else {
            &messages
        };
        format!(
            "the outside is not connected: {} {what}: {said}",
            self.program.name()
        )
    }
}

impl Drop for Outside {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Does something in a thread of its own, whose namespaces are not those of the caller afterwards.
///
/// # Errors
/// Those of what is done.
pub fn in_thread<T: Send>(act: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
    thread::scope(|scope| match scope.spawn(act).join() {
        Ok(done) => done,
        Err(panic) => std::panic::resume_unwind(panic),
    })
}

/// Makes the device in the namespace of the calling thread, which forwards to it from then on.
fn prepare() -> io::Result<()> {
    let mut commands = String::new();
    let hosts = spaces::DEVICE;
    // What comes from the hosts alone is carried on. The servers have no way to the outside:
    // `pasta` replies to one address, that of the latest packet.
    writeln!(
        commands,
        "tuntap add dev {DEVICE} mode tap\n\
         link set dev {DEVICE} mtu {MTU} up\n\
         address add {OWN}/24 dev {DEVICE}\n\
         route add default via {COMPUTER} dev {DEVICE} table {TABLE}\n\
         rule add iif {hosts} table {TABLE}"
    )
    .expect("a string takes all");
    spaces::run("ip", &["-batch", "-"], &commands)?;
    let sysctls = [
        ("ip_forward".to_owned(), "1"),
        ("conf/all/rp_filter".to_owned(), "0"),
        (format!("conf/{DEVICE}/rp_filter"), "0"),
        (format!("conf/{hosts}/rp_filter"), "0"),
        // slirp4netns asks for the client's address by ARP.
        (format!("conf/{DEVICE}/proxy_arp"), "1"),
    ];
    for (key, value) in sysctls {
        spaces::set(&format!("ipv4/{key}"), value, true)?;
    }
    Ok(())
}

/// The last lines that a program prints, from now on.
fn kept(from: ChildStderr) -> Arc<Mutex<Vec<String>>> {
    let lines = Arc::new(Mutex::new(Vec::new()));
    let keep = Arc::clone(&lines);
    thread::spawn(move || {
        for line in BufReader::new(from).lines().map_while(Result::ok) {
            // pasta says this of each message where there is no system log.
            let of_log = line.starts_with("Failed to send") && line.ends_with("to syslog");
            let Ok(mut lines) = keep.lock() else { return };
            if !of_log && !line.trim().is_empty() {
                if lines.len() == KEPT_LINES {
                    lines.remove(0);
                }
                lines.push(line.trim().to_owned());
            }
        }
    });
    lines
}

/// Gives the programs that the calling thread starts from now on the resolver of the outside.
///
/// # Errors
/// When the kernel refuses a step.
pub fn use_resolver() -> io::Result<()> {
    let before = fs::read_to_string(RESOLV_CONF).unwrap_or_default();
    mounts::cover(Path::new(RESOLV_CONF), &resolv_conf(&before))
}

/// The system's file with another resolver.
fn resolv_conf(before: &str) -> String {
    let kept = |line: &&str| !line.trim_start().starts_with("nameserver");
    let lines = before.lines().filter(kept);
    let mut text: String = lines.map(|line| format!("{line}\n")).collect();
    writeln!(text, "nameserver {RESOLVER}").expect("a string takes all");
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::addresses::{self, MAX_GROUPS, Side};

    #[test]
    fn the_resolver_takes_the_place_of_the_systems() {
        let before = "# a comment\nnameserver 127.0.0.53\n nameserver ::1\nsearch a.example\n";
        let now = "# a comment\nsearch a.example\nnameserver 10.254.0.3\n";
        assert_eq!(resolv_conf(before), now);
        assert_eq!(resolv_conf(""), "nameserver 10.254.0.3\n");
    }

    #[test]
    fn no_group_has_the_network_of_the_device() {
        for side in Side::BOTH {
            let last = addresses::host(MAX_GROUPS - 1, side, 0);
            assert!(last.octets()[1] < OWN.octets()[1]);
        }
    }

    #[test]
    fn programs_are_known_by_name() {
        assert_eq!(Program::of("pasta"), Some(Program::Pasta));
        assert_eq!(Program::of("slirp4netns"), Some(Program::Slirp4netns));
        assert_eq!(Program::of("slirp"), None);
    }
}
