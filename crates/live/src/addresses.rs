//! The addresses and ports of the hosts.
//!
//! Each side of each group has a network of its own, 10.N.0.0/16, in a network namespace of its own.
//! Flows that are open from the beginning are known by their sender's address and port; those that
//! users open are entered in a table ([`FlowMap`](crate::flows::FlowMap)).

use std::net::Ipv4Addr;

use crate::packet::Socket;

/// A side of a traffic group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Side {
    /// The hosts of this side send data, or serve.
    Sending,
    /// The hosts of this side receive data, or are users.
    Receiving,
}

impl Side {
    /// Both.
    pub const BOTH: [Self; 2] = [Self::Sending, Self::Receiving];

    /// The other one.
    #[must_use]
    pub fn peer(self) -> Self {
        match self {
            Self::Sending => Self::Receiving,
            Self::Receiving => Self::Sending,
        }
    }
}

/// Most groups: the second byte of an address is twice the number of a group, and one more on the
/// receiving side.
pub const MAX_GROUPS: usize = 127;

/// Most hosts of a group: the last two bytes of an address are the number of the host, from 2 on.
pub const MAX_HOSTS: usize = 65_000;

/// Port of the sender of the first flow of each host.
const FIRST_PORT: u16 = 10_000;

/// Most flows of a host that are open from the beginning.
pub const MAX_FLOWS_PER_HOST: usize = (u16::MAX - FIRST_PORT) as usize + 1;

/// Port of the servers and receivers of a group that names none (`port = 0`).
pub const SERVER_PORT: u16 = 5000;

/// The port at which servers and receivers of a group listen.
pub fn server_port(port: u16) -> u16 {
    if port == 0 { SERVER_PORT } else { port }
}

/// The address of a host.
///
/// # Panics
/// With more groups or hosts than [`MAX_GROUPS`] and [`MAX_HOSTS`].
pub fn host(group: usize, side: Side, host: usize) -> Ipv4Addr {
    assert!(
        group < MAX_GROUPS && host < MAX_HOSTS,
        "group {group}, host {host}"
    );
    let [high, low] = (host as u16 + 2).to_be_bytes();
    Ipv4Addr::new(10, network(group, side), high, low)
}

fn network(group: usize, side: Side) -> u8 {
    group as u8 * 2 + side as u8
}

/// The network of a side of a group, as `ip` reads it.
pub fn network_of(group: usize, side: Side) -> String {
    format!("10.{}.0.0/16", network(group, side))
}

/// The address of the namespace itself, from which no flow sends.
pub fn own(group: usize, side: Side) -> Ipv4Addr {
    Ipv4Addr::new(10, network(group, side), 0, 1)
}

/// The number of the host with this address, within its group; `None` if it is not a host's.
pub fn host_of(address: Ipv4Addr) -> Option<usize> {
    let [ten, _, high, low] = address.octets();
    let number = usize::from(u16::from_be_bytes([high, low]));
    (ten == 10).then(|| number.checked_sub(2)).flatten()
}

/// The number of the host of this side of a group with this address; `None` if it is not one's.
pub fn host_in(group: usize, side: Side, address: Ipv4Addr) -> Option<usize> {
    let here = address.octets()[1] == network(group, side);
    here.then(|| host_of(address)).flatten()
}

/// The address and port from which flow `i` of a group with `hosts` hosts sends.
///
/// # Panics
/// With more flows on a host than [`MAX_FLOWS_PER_HOST`].
pub fn sender(group: usize, i: usize, hosts: usize) -> Socket {
    let nth = i / hosts;
    assert!(nth < MAX_FLOWS_PER_HOST, "{nth} flows");
    let address = host(group, Side::Sending, i % hosts);
    (address, FIRST_PORT + nth as u16)
}

/// The address and port to which flow `i` of a group with `hosts` hosts sends. `port` is the group's.
pub fn receiver(group: usize, i: usize, hosts: usize, port: u16) -> Socket {
    (host(group, Side::Receiving, i % hosts), server_port(port))
}

/// The number within its group of the flow that sends from here; `None` if none does.
pub fn flow_of((address, port): Socket, hosts: usize) -> Option<usize> {
    let nth = usize::from(port.checked_sub(FIRST_PORT)?);
    Some(nth * hosts + host_of(address)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_flow_of_a_sender_is_found_again() {
        for hosts in [1, 3, 1000] {
            for i in [0, 1, 2, 3, 999, 1000, 40_000] {
                let socket = sender(5, i, hosts);
                assert_eq!(flow_of(socket, hosts), Some(i), "{hosts} hosts");
            }
        }
    }

    #[test]
    fn the_last_host_of_the_last_group_has_an_address() {
        let last = host(MAX_GROUPS - 1, Side::Receiving, MAX_HOSTS - 1);
        assert_eq!(last, Ipv4Addr::new(10, 253, 253, 233));
        assert_eq!(host_of(last), Some(MAX_HOSTS - 1));
        assert_eq!(host_of(own(0, Side::Sending)), None);
        assert_eq!(host_of(Ipv4Addr::new(11, 0, 0, 9)), None);
    }

    #[test]
    fn a_host_is_found_in_its_own_network_alone() {
        let address = host(3, Side::Receiving, 4);
        assert_eq!(host_in(3, Side::Receiving, address), Some(4));
        assert_eq!(host_in(3, Side::Sending, address), None);
        assert_eq!(host_in(4, Side::Receiving, address), None);
        assert_eq!(host_in(3, Side::Receiving, Ipv4Addr::new(1, 7, 0, 6)), None);
    }
}
