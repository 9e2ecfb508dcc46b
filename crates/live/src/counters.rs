//! What the kernel has counted in a network namespace (proc_pid_net(5)).

use std::fs;
use std::io;
use std::ops::{Add, Sub};

/// Counters of TCP and of the device, from the beginning of the namespace; `None` is what the kernel does not count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Connections opened, by either side.
    pub connections: Option<u64>,
    /// Segments sent again: `RetransSegs`, which has loss probes and FINs too, without `TCPSynRetrans`, which has SYNs and
    /// SYN-ACKs.
    pub retransmissions: Option<u64>,
    /// Fast recoveries begun, with and without SACK.
    pub recoveries: Option<u64>,
    /// Expiries of retransmission timers, for SYNs and SYN-ACKs too: `TCPTimeouts`, which has all of them since Linux 5.0
    /// (`tcp_retransmit_timer`, `tcp_syn_ack_timeout`). `TCPLossFailures`, `TCPSackRecoveryFail` and their relatives count
    /// the first expiry of a back-off once more, by the state in which it came.
    pub timeouts: Option<u64>,
    /// Timeouts that were taken back: `TCPLossUndo`. F-RTO, timestamps or duplicate SACKs showed them to be spurious;
    /// `TCPSpuriousRTOs` has those alone that F-RTO found (`tcp_try_undo_loss`).
    pub spurious_timeouts: Option<u64>,
    /// Packets that the device could not hold.
    pub device_drops: u64,
}

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
        let counter = |name: &str| counter(netstat, "TcpExt:", name);
        // Kernels do not all have the same names for parts of a number.
        let sum = |names: &[&str]| {
            let counted = names.iter().filter_map(|name| counter(name));
            counted.reduce(|sum, number| sum + number)
        };
        let of_tcp = |name: &str| self::counter(snmp, "Tcp:", name);
        let again = both(
            of_tcp("RetransSegs"),
            counter("TCPSynRetrans"),
            u64::saturating_sub,
        );
        Self {
            connections: both(of_tcp("ActiveOpens"), of_tcp("PassiveOpens"), u64::add),
            retransmissions: again,
            recoveries: sum(&["TCPRenoRecovery", "TCPSackRecovery"]),
            timeouts: counter("TCPTimeouts"),
            spurious_timeouts: counter("TCPLossUndo"),
            device_drops: dropped_by(dev, device),
        }
    }
}

/// What follows from two numbers, if both are known.
fn both(one: Option<u64>, other: Option<u64>, act: impl Fn(u64, u64) -> u64) -> Option<u64> {
    one.zip(other).map(|(one, other)| act(one, other))
}

impl Counters {
    /// The counters `act` makes of two.
    fn with(self, other: Self, act: impl Fn(u64, u64) -> u64) -> Self {
        Self {
            connections: both(self.connections, other.connections, &act),
            retransmissions: both(self.retransmissions, other.retransmissions, &act),
            recoveries: both(self.recoveries, other.recoveries, &act),
            timeouts: both(self.timeouts, other.timeouts, &act),
            spurious_timeouts: both(self.spurious_timeouts, other.spurious_timeouts, &act),
            device_drops: act(self.device_drops, other.device_drops),
        }
    }
}

impl Add for Counters {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        self.with(other, u64::add)
    }
}

impl Sub for Counters {
    type Output = Self;

    fn sub(self, before: Self) -> Self {
        self.with(before, u64::sub)
    }
}

/// A counter of a text in which a line of names stands before one of numbers; `None` if the kernel does
/// not have it, because it has not counted it either.
fn counter(text: &str, prefix: &str, name: &str) -> Option<u64> {
    let mut lines = text.lines().filter(|line| line.starts_with(prefix));
    while let (Some(names), Some(numbers)) = (lines.next(), lines.next()) {
        let mut pairs = names.split_whitespace().zip(numbers.split_whitespace());
        if let Some((_, number)) = pairs.find(|(known, _)| *known == name) {
            return number.parse().ok();
        }
    }
    None
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
        Tcp: RtoAlgorithm ActiveOpens PassiveOpens RetransSegs InErrs\nTcp: 1 3 2 17 0\n";
    const NETSTAT: &str = "TcpExt: TCPRenoRecovery TCPSackRecovery TCPTimeouts TCPLossFailures \
        TCPSynRetrans TCPSpuriousRTOs TCPLossUndo\nTcpExt: 1 4 3 2 5 1 2\nIpExt: InOctets\nIpExt: 9\n";
    const DEV: &str = "Inter-| Receive | Transmit\n face |bytes packets errs drop fifo frame \
        compressed multicast|bytes packets errs drop fifo colls carrier compressed\n\
        lo: 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n\
        hosts: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n";

    #[test]
    fn counters_are_found_by_their_names() {
        let counters = Counters::of_texts(SNMP, NETSTAT, DEV, "hosts");
        let expected = Counters {
            connections: Some(5),
            retransmissions: Some(12),
            recoveries: Some(5),
            timeouts: Some(3),          // TCPLossFailures are among them
            spurious_timeouts: Some(2), // TCPSpuriousRTOs are among them
            device_drops: 12,
        };
        assert_eq!(counters, expected);
        assert_eq!((counters - expected).retransmissions, Some(0));
    }

    #[test]
    fn what_a_kernel_does_not_count_is_not_zero() {
        let netstat = "TcpExt: TCPSackRecovery TCPTimeouts\nTcpExt: 4 3\n";
        let counters = Counters::of_texts("Tcp: RetransSegs\nTcp: 17\n", netstat, DEV, "hosts");
        assert_eq!((counters.recoveries, counters.timeouts), (Some(4), Some(3)));
        assert_eq!(counters.connections, None);
        assert_eq!(counters.retransmissions, None);
        assert_eq!((counters + counters).spurious_timeouts, None);
    }
}
