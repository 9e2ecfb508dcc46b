//! The network namespaces of a run: one for each side of each traffic group.
//!
//! All hosts of a side are addresses in its namespace. What they send to others leaves through a TUN
//! device. `ip` sets addresses and routes, because its commands are what a reader knows.

use std::fmt::Write as _;
use std::fs;
use std::io::{self, Write as _};
use std::process::{Command, Stdio};

use crate::addresses::{self, Side};
use crate::kernel::HostSettings;
use crate::sys::namespace::NetNamespace;
use crate::sys::tun::Tun;

/// Name of the device in each namespace.
pub const DEVICE: &str = "hosts";

/// Packets that a device holds until the emulator reads them. It must hold what all hosts of the
/// side send at one moment; a run in which it did not is not valid. Linux 6.1.192 takes no more, and
/// answers ERANGE.
const DEVICE_QUEUE: u32 = 32_767;

/// One side of a group.
#[derive(Debug)]
pub struct Space {
    /// The hosts' namespace.
    pub namespace: NetNamespace,
    /// What they send is read here, and what arrives for them is written here.
    pub tun: Tun,
}

/// Makes the namespace of a side of group `group`, whose hosts have these settings and can send to
/// these addresses, as `ip route` reads them. The calling thread is in it afterwards.
///
/// # Errors
/// When the kernel refuses a step, which is named.
pub fn make(group: usize, side: Side, settings: &HostSettings, to: &str) -> io::Result<Space> {
    let namespace = NetNamespace::create().map_err(|error| about(error, "a network namespace"))?;
    let tun = Tun::open(DEVICE).map_err(|error| about(error, "/dev/net/tun"))?;
    for sysctl in &settings.sysctls {
        set(sysctl.key, &sysctl.value, sysctl.required)?;
    }
    let mut commands = String::new();
    let (own, network) = (
        addresses::own(group, side),
        addresses::network_of(group, side),
    );
    // The address of programs that choose none.
    let first = addresses::host(group, side, 0);
    let (mtu, route) = (settings.mtu, &settings.route);
    writeln!(
        commands,
        "link set dev lo up\n\
         link set dev {DEVICE} mtu {mtu} txqueuelen {DEVICE_QUEUE} up\n\
         address add {own}/32 dev {DEVICE}\n\
         route add local {network} dev lo\n\
         route add {to} dev {DEVICE} src {first} {route}"
    )
    .expect("a string takes all");
    run("ip", &["-batch", "-"], &commands)?;
    Ok(Space { namespace, tun })
}

/// Sets a key below `/proc/sys/net` in the namespace of the calling thread. One that is not required
/// may be missing.
///
/// # Errors
/// When the kernel refuses it; the message has the key and the value.
pub fn set(key: &str, value: &str, required: bool) -> io::Result<()> {
    let path = format!("/proc/sys/net/{key}");
    match fs::write(&path, value) {
        Err(error) if required || error.kind() != io::ErrorKind::NotFound => {
            Err(about(error, &format!("{path} = {value}")))
        }
        _ => Ok(()),
    }
}

/// Runs a program in the namespace of the calling thread, with this input.
///
/// # Errors
/// When it cannot be started or fails; the message has what it printed.
pub fn run(program: &str, arguments: &[&str], input: &str) -> io::Result<String> {
    let started = Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut child = started.map_err(|error| about(error, program))?;
    let mut stdin = child.stdin.take().expect("it is piped");
    stdin.write_all(input.as_bytes())?;
    drop(stdin);
    let output = child.wait_with_output()?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let errors = String::from_utf8_lossy(&output.stderr);
    let command = format!("{program} {}", arguments.join(" "));
    Err(io::Error::other(format!(
        "{command}: {} ({})",
        errors.trim(),
        input.trim()
    )))
}

/// The same error with what it is about.
pub fn about(error: io::Error, what: &str) -> io::Error {
    io::Error::new(error.kind(), format!("{what}: {error}"))
}
