//! Links in front of IP.

use etherparse::PacketBuilder;

use crate::{ETHERNET, LINUX_SLL, LINUX_SLL2, RAW, captured};

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
fn packets_of_a_link_that_is_not_known_are_counted_by_its_type() {
    let found = captured(195, &[vec![0; 100], vec![0; 100]]); // IEEE 802.15.4
    assert_eq!((found.left.unknown_link, found.packets.at_ns.len()), (2, 0));
    assert_eq!(
        found.unknown_links.into_iter().collect::<Vec<_>>(),
        [(195, 2)]
    );
}

/// The header of LLC and SNAP that ends with the type of IPv4.
const SNAP: [u8; 8] = [0xaa, 0xaa, 3, 0, 0, 0, 8, 0];

/// A frame of 802.11: the first two bytes, the rest of its header, and what follows.
fn wifi(control: [u8; 2], length: usize, last: &[u8]) -> Vec<u8> {
    let mut frame = control.to_vec();
    frame.resize(length, 0);
    frame.extend(last);
    frame.extend(udp());
    frame
}

#[test]
fn ip_is_read_behind_wifi_and_what_is_encrypted_is_told() {
    let plain = [
        wifi([0x08, 0x01], 24, &SNAP), // data to an access point
        wifi([0x88, 0x02], 26, &SNAP), // with QoS, from one
        wifi([0x88, 0x02], 28, &SNAP), // filled up to four bytes
        wifi([0x88, 0x03], 32, &SNAP), // four addresses
        wifi([0x88, 0x82], 30, &SNAP), // QoS and the field of 802.11n
    ];
    let found = captured(105, &plain);
    assert_eq!(found.packets.size, [48; 5]);
    let others = [
        wifi([0x80, 0x00], 24, &SNAP), // a beacon
        wifi([0x48, 0x01], 24, &SNAP), // no data
        wifi([0x88, 0x42], 26, &SNAP), // encrypted
    ];
    let found = captured(105, &others);
    assert_eq!((found.left.not_ip, found.left.encrypted), (2, 1));
    let radiotap = plain.map(|frame| [&[0, 0, 10, 0, 0, 0, 0, 0, 1, 2][..], &frame].concat());
    assert_eq!(captured(127, &radiotap).packets.payload, [20; 5]);
}

#[test]
fn ip_is_read_behind_ppp() {
    let with = |header: &[u8]| [header, &udp()].concat();
    let bare = [with(&[0xff, 3, 0, 0x21]), with(&[0, 0x21]), with(&[0x21])];
    for link in [9, 50] {
        assert_eq!(captured(link, &bare).packets.size, [48; 3]);
    }
    let session = with(&[0x11, 0, 0, 1, 0, 50, 0, 0x21]);
    assert_eq!(captured(51, &[session]).packets.size, [48]);
    assert_eq!(
        captured(166, &[with(&[1, 0xff, 3, 0, 0x21])]).packets.size,
        [48]
    );
    assert_eq!(captured(104, &[with(&[0x0f, 0, 8, 0])]).packets.size, [48]);
    assert_eq!(captured(9, &[with(&[0xff, 3, 0xc0, 0x21])]).left.not_ip, 1);
}

#[test]
fn ip_is_read_behind_labels_and_lengths() {
    let two_labels = behind(22, &[0x88, 0x47, 0, 1, 0, 64, 0, 2, 1, 64]);
    let wired = [
        &[0; 12][..],
        &[0x88, 0x47, 0, 1, 1, 64, 0, 0, 0, 0],
        &behind(14, &[8, 0]),
    ];
    let length = behind(22, &[0, 56, 0xaa, 0xaa, 3, 0, 0, 0, 8, 0]);
    let found = captured(ETHERNET, &[two_labels, wired.concat(), length]);
    assert_eq!(found.packets.size, [48; 3]);
}

#[test]
fn ip_is_read_behind_headers_that_name_the_next_one() {
    let ppi = [&[0, 0, 8, 0, 105, 0, 0, 0][..], &wifi([8, 1], 24, &SNAP)].concat();
    assert_eq!(captured(192, &[ppi]).packets.size, [48]);
    let mut pktap = vec![108, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0];
    pktap.resize(108, 0);
    pktap.extend(behind(14, &[8, 0]));
    assert_eq!(captured(258, &[pktap]).packets.size, [48]);
    let nflog = [
        &[2, 0, 0, 0, 5, 0, 10, 0, 7, 0, 0, 0, 52, 0, 9, 0][..],
        &udp(),
    ]
    .concat();
    assert_eq!(captured(239, &[nflog]).packets.size, [48]);
}

/// A packet of 10.9.0.1 to 10.9.0.2 with something of a protocol in it.
fn carried(protocol: u8, header: &[u8], inner: &[u8]) -> Vec<u8> {
    let length = (20 + header.len() + inner.len()) as u16;
    let mut packet = vec![0x45, 0x03, 0, 0, 0, 7, 0, 0, 64, protocol, 0, 0];
    packet[2..4].copy_from_slice(&length.to_be_bytes());
    packet.extend([10, 9, 0, 1, 10, 9, 0, 2]);
    packet.extend(header);
    packet.extend(inner);
    packet
}

#[test]
fn packets_in_tunnels_have_the_size_of_the_tunnel_and_the_ends_of_the_inner_packet() {
    let frame = behind(14, &[8, 0]);
    let packets = [
        carried(4, &[], &udp()),
        carried(47, &[0, 0, 8, 0], &udp()),
        carried(
            47,
            &[0xb0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2],
            &udp(),
        ),
        carried(47, &[0, 0, 0x65, 0x58], &frame),
        carried(
            47,
            &[
                0x30, 0x81, 0x88, 0x0b, 0, 50, 0, 1, 0, 0, 0, 1, 0, 0, 0, 2, 0x21,
            ],
            &udp(),
        ),
        carried(4, &[], &carried(47, &[0, 0, 8, 0], &udp())),
    ];
    let found = captured(RAW, &packets);
    assert_eq!(found.packets.size, [68, 72, 84, 86, 85, 92]);
    assert_eq!(found.packets.payload, [20; 6]);
    assert_eq!(found.packets.ecn, [3; 6]);
    assert_eq!(found.conversations.len(), 1);
    assert_eq!(found.conversations[0].addresses[0].to_string(), "10.0.0.1");
}

#[test]
fn tunnels_within_tunnels_end() {
    let mut packet = udp();
    for _ in 0..50 {
        packet = carried(4, &[], &packet);
    }
    let found = captured(RAW, &[packet, carried(47, &[0x40, 0, 8, 0], &udp())]);
    assert_eq!((found.packets.at_ns.len(), found.left.other), (0, 2));
}
