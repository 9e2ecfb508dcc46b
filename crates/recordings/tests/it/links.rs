//! Links in front of IP.

use etherparse::PacketBuilder;

use crate::{ETHERNET, LINUX_SLL, LINUX_SLL2, captured};

fn udp() -> Vec<u8> {
    let mut bytes = Vec::new();
    let builder = PacketBuilder::ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64).udp(1, 2);
    builder.write(&mut bytes, &[0; 20]).expect("it fits");
    bytes
}

/// The packet behind a header that ends with these bytes.
fn behind(length: usize, last: &[u8]) -> Vec<u8> {
    let mut packet = vec![0; length - last.len()];
    packet.extend(last);
    packet.extend(udp());
    packet
}

#[test]
fn ip_is_read_behind_ethernet_tags_and_pppoe() {
    let tagged = behind(18, &[0x81, 0x00, 0, 7, 0x08, 0x00]);
    let pppoe = behind(22, &[0x88, 0x64, 0x11, 0, 0, 1, 0, 50, 0, 0x21]);
    let found = captured(
        ETHERNET,
        &[behind(14, &[0x08, 0x00]), tagged, pppoe, vec![0; 60]],
    );
    assert_eq!(found.packets.size, [48, 48, 48]);
    assert_eq!(found.packets.payload, [20, 20, 20]);
    assert_eq!(found.left.not_ip, 1);
}

#[test]
fn linux_any_names_the_interface_of_each_packet() {
    let cooked = |interface: u8| {
        let mut header = vec![0x08, 0x00, 0, 0, 0, 0, 0, interface];
        header.resize(20, 0);
        header.extend(udp());
        header
    };
    let found = captured(LINUX_SLL2, &[cooked(2), cooked(3), cooked(2)]);
    assert_eq!(found.packets.interface, [1, 2, 1]);
    assert_eq!(found.interfaces[1].name, "interface 2");
    let old = captured(LINUX_SLL, &[behind(16, &[0x08, 0x00])]);
    assert_eq!(old.packets.interface, [0]);
}

#[test]
fn packets_of_a_link_that_is_not_known_are_counted() {
    let found = captured(105, &[vec![0; 100]]); // IEEE 802.11
    assert_eq!((found.left.unknown_link, found.packets.at_ns.len()), (1, 0));
}
