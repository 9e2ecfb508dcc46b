//! Headers of packets, and files that are no captures.

use std::net::IpAddr;

use etherparse::{PacketBuilder, TcpOptionElement};

use crate::{RAW, captured, pcap, refused};

const A: [u8; 4] = [192, 168, 1, 2];
const B: [u8; 4] = [203, 0, 113, 5];

fn segment(from: [u8; 4], to: [u8; 4], ports: (u16, u16), payload: usize) -> Vec<u8> {
    let options = [
        TcpOptionElement::Noop,
        TcpOptionElement::Timestamp(7, 8),
        TcpOptionElement::SelectiveAcknowledgement((10, 20), [Some((30, 40)), None, None]),
    ];
    let builder = PacketBuilder::ipv4(from, to, 64)
        .tcp(ports.0, ports.1, 1000, 500)
        .ack(77);
    let builder = builder.options(&options).expect("they fit");
    let mut bytes = Vec::new();
    builder
        .write(&mut bytes, &vec![0; payload])
        .expect("it fits");
    bytes
}

#[test]
fn a_segment_tells_its_numbers_and_options() {
    let there = segment(A, B, (4000, 80), 100);
    let back = segment(B, A, (80, 4000), 0);
    let size = there.len() as u32;
    let found = captured(RAW, &[there, back]);

    assert_eq!(found.conversations.len(), 1);
    let talk = &found.conversations[0];
    assert_eq!(
        (talk.protocol, talk.addresses),
        (6, [IpAddr::from(A), IpAddr::from(B)])
    );
    assert_eq!(talk.ports, [4000, 80]);
    let rows = &found.packets;
    assert_eq!(rows.end, [0, 1]);
    assert_eq!(rows.at_ns, [100_000_000_000, 100_001_000_000]);
    assert_eq!((rows.size[0], &rows.payload), (size, &vec![100, 0]));
    assert_eq!((rows.seq[0], rows.ack[0], rows.flags[0]), (1000, 77, 16));
    assert_eq!((rows.options[0], rows.ts_val[0], rows.ts_ecr[0]), (1, 7, 8));
    assert_eq!(rows.sack_row, [0, 0, 1, 1]);
    assert_eq!(
        (&rows.sack_left[..2], &rows.sack_right[..2]),
        (&[10, 30][..], &[20, 40][..])
    );
}

#[test]
fn a_packet_of_which_headers_were_kept_has_its_whole_size() {
    let whole = segment(A, B, (4000, 80), 1000);
    let mut cut = pcap(RAW, &[whole[..80].to_vec()]);
    cut[36..40].copy_from_slice(&(whole.len() as u32).to_le_bytes());
    let found = redtail_recordings::read(&crate::Scratch::new(&cut).0).expect("it is a capture");
    assert_eq!(found.packets.size, [whole.len() as u32]);
    assert_eq!(found.packets.payload, [1000]);
}

#[test]
fn echoes_of_both_versions_are_conversations_with_their_identifier() {
    let mut packets = Vec::new();
    for reply in [false, true] {
        let (from, to) = if reply { (B, A) } else { (A, B) };
        let ip = PacketBuilder::ipv4(from, to, 64);
        let mut bytes = Vec::new();
        let built = if reply {
            ip.icmpv4_echo_reply(9, 3)
        } else {
            ip.icmpv4_echo_request(9, 3)
        };
        built.write(&mut bytes, &[0; 56]).expect("it fits");
        packets.push(bytes);
    }
    let mut six = Vec::new();
    let ip = PacketBuilder::ipv6([1; 16], [2; 16], 64);
    ip.icmpv6_echo_request(5, 1)
        .write(&mut six, &[0; 56])
        .expect("it fits");
    packets.push(six);
    let found = captured(RAW, &packets);
    assert_eq!(found.packets.flags, [1, 2, 1]);
    assert_eq!(found.packets.seq, [3, 3, 1]);
    assert_eq!(found.packets.conversation, [0, 0, 1]);
    assert_eq!(
        (
            found.conversations[0].protocol,
            found.conversations[1].ports
        ),
        (1, [5, 5])
    );
    assert_eq!(found.packets.size, [84, 84, 104]);
}

#[test]
fn a_header_that_was_cut_behind_its_flags_is_a_row() {
    let whole = segment(A, B, (4000, 80), 100);
    for (kept, options, blocks) in [(34, 2, 0), (52, 2 | 1, 0), (66, 2 | 1, 0), (74, 1, 2)] {
        let found = captured(RAW, &[whole[..kept].to_vec()]);
        let rows = &found.packets;
        assert_eq!((rows.seq[0], rows.ack[0], rows.flags[0]), (1000, 77, 16));
        assert_eq!((rows.payload[0], rows.options[0]), (100, options));
        assert_eq!(rows.sack_row.len(), blocks, "{kept} bytes were kept");
    }
}

#[test]
fn what_is_no_row_is_counted() {
    let mut fragment = segment(A, B, (4000, 80), 100);
    fragment[6] = 0x20; // more fragments
    let mut other = segment(A, B, (4000, 80), 100);
    other[9] = 47; // GRE
    let short = segment(A, B, (4000, 80), 100)[..30].to_vec();
    let found = captured(RAW, &[fragment, other, short, vec![0; 60]]);
    assert!(found.packets.at_ns.is_empty());
    assert_eq!((found.left.fragments, found.left.other), (1, 1));
    assert_eq!(found.left.cut + found.left.not_ip, 2);
}

#[test]
fn damage_is_told_with_its_place_and_what_is_before_it_is_kept() {
    let packets = [segment(A, B, (1, 2), 10), segment(A, B, (1, 2), 10)];
    let file = pcap(RAW, &packets);
    let at = 24 + 16 + packets[0].len();
    let cut = crate::Scratch::new(&file[..file.len() - 5]);
    let found = redtail_recordings::read(&cut.0).expect("it is a capture");
    assert_eq!(found.packets.at_ns.len(), 1);
    let damage = found.damage.expect("it is cut short");
    let begin = format!("at byte {at} of {}, after 1 packets", file.len() - 5);
    assert!(damage.starts_with(&begin), "{damage}");
}

#[test]
fn files_that_are_no_captures_are_refused() {
    assert_eq!(refused(b""), "the file is empty");
    assert_eq!(
        refused(&pcap(RAW, &[])[..10]),
        "the file ends within its header, at byte 10"
    );
    assert!(refused(&[0x0a, 0x0d, 0x0d, 0x0a, 1, 2, 3]).contains("damaged or cut short"));
}
