//! What the kernel has counted in a network namespace (proc_pid_net(5)).

use std::fs;
use std::io;
use std::ops::{AddAssign, Sub};

/// Counters of TCP and of the device, from the beginning of the namespace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Data segments sent again, SYNs left out.
    pub retransmissions: u64,
    /// Fast recoveries begun, with and without SACK.
    pub recoveries: u64,
    /// Retransmission timeouts, of each back-off the first.
    pub timeouts: u64,
    /// Timeouts that F-RTO took back.
    pub spurious_timeouts: u64,
    /// Packets that the device could not hold.
    pub device_drops: u64,
}

/// Names in `netstat` of the timeouts, by the state in which they ended (`tcp_retransmit_timer`).
const TIMEOUTS: [&str; 6] = [
    "TCPTimeouts",
    "TCPSackRecoveryFail",
    "TCPRenoRecoveryFail",
    "TCPLossFailures",
    "TCPSackFailures",
    "TCPRenoFailures",
];

impl Counters {
    /// Reads the counters of the calling thread's network namespace; `device` is the name of the
    /// device whose losses count.
    ///
    /// # Errors
    /// When `/proc` cannot be read.
    pub fn read(device: &str) -> io::Result<Self> {
        let read = |name: &str| fs::read_to_string(format!("/proc/thread-self/net/{name}"));
        Ok(Self::of_texts(
            &read("snmp")?,
            &read("netstat")?,
            &read("dev")?,
            device,
        ))
    }

    fn of_texts(snmp: &str, netstat: &str, dev: &str, device: &str) -> Self {
        let counter = |name| counter(netstat, "TcpExt:", name);
        let again = self::counter(snmp, "Tcp:", "RetransSegs");
        Self {
            retransmissions: again.saturating_sub(counter("TCPSynRetrans")),
            recoveries: counter("TCPRenoRecovery") + counter("TCPSackRecovery"),
            timeouts: TIMEOUTS.into_iter().map(counter).sum(),
            spurious_timeouts: counter("TCPSpuriousRTOs"),
            device_drops: dropped_by(dev, device),
        }
    }
}

impl AddAssign for Counters {
    fn add_assign(&mut self, other: Self) {
        self.retransmissions += other.retransmissions;
        self.recoveries += other.recoveries;
        self.timeouts += other.timeouts;
        self.spurious_timeouts += other.spurious_timeouts;
        self.device_drops += other.device_drops;
    }
}

impl Sub for Counters {
    type Output = Self;

    fn sub(self, before: Self) -> Self {
        Self {
            retransmissions: self.retransmissions - before.retransmissions,
            recoveries: self.recoveries - before.recoveries,
            timeouts: self.timeouts - before.timeouts,
            spurious_timeouts: self.spurious_timeouts - before.spurious_timeouts,
            device_drops: self.device_drops - before.device_drops,
        }
    }
}

/// A counter of a text in which a line of names stands before one of numbers; zero if the kernel does
/// not have it, because it has not counted it either.
fn counter(text: &str, prefix: &str, name: &str) -> u64 {
    let mut lines = text.lines().filter(|line| line.starts_with(prefix));
    while let (Some(names), Some(numbers)) = (lines.next(), lines.next()) {
        let mut pairs = names.split_whitespace().zip(numbers.split_whitespace());
        if let Some((_, number)) = pairs.find(|(known, _)| *known == name) {
            return number.parse().unwrap_or(0);
        }
    }
    0
}

/// Packets that a device dropped in place of sending them: the twelfth number of its line.
fn dropped_by(dev: &str, device: &str) -> u64 {
    let line = dev
        .lines()
        .find_map(|line| line.trim().strip_prefix(device)?.strip_prefix(':'));
    let number = line.and_then(|numbers| numbers.split_whitespace().nth(11));
    number.and_then(|number| number.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SNMP: &str = "Ip: Forwarding\nIp: 1\n\
        Tcp: RtoAlgorithm RetransSegs InErrs\nTcp: 1 17 0\n";
    const NETSTAT: &str = "TcpExt: TCPRenoRecovery TCPSackRecovery TCPTimeouts TCPLossFailures \
        TCPSynRetrans TCPSpuriousRTOs\nTcpExt: 1 4 3 2 5 1\nIpExt: InOctets\nIpExt: 9\n";
    const DEV: &str = "Inter-| Receive | Transmit\n face |bytes packets errs drop fifo frame \
        compressed multicast|bytes packets errs drop fifo colls carrier compressed\n\
        lo: 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n\
        hosts: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n";

    #[test]
    fn counters_are_found_by_their_names() {
        let counters = Counters::of_texts(SNMP, NETSTAT, DEV, "hosts");
        let expected = Counters {
            retransmissions: 12,
            recoveries: 5,
            timeouts: 5,
            spurious_timeouts: 1,
            device_drops: 12,
        };
        assert_eq!(counters, expected);
        assert_eq!((counters - expected).retransmissions, 0);
    }
}
