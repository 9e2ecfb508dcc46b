//! The headers of a packet that a host sent: IPv4 (RFC 791) with TCP (RFC 9293) or UDP (RFC 768).

use std::net::Ipv4Addr;

use redtail_qdisc::TcpHeader;
use redtail_qdisc::header::MAX_SACK_BLOCKS;

/// Protocol number of TCP.
pub const TCP: u8 = 6;
/// Protocol number of UDP.
pub const UDP: u8 = 17;

/// Protocol number that is assigned to none (255, RFC 1700).
pub const NO_PORTS: u8 = 255;

/// Bytes of an IPv4 header without options.
const IP_HEADER: usize = 20;

/// An address and a port.
pub type Socket = (Ipv4Addr, u16);

/// The headers of a packet, as views of its bytes.
#[derive(Clone, Copy, Debug)]
pub struct Headers<'a> {
    ip: &'a [u8],
    transport: &'a [u8],
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

impl<'a> Headers<'a> {
    /// The headers of `packet`; `None` if it is not a whole IPv4 packet. What has no ports (other
    /// protocols, and all fragments) has port 0.
    pub fn of(packet: &'a [u8]) -> Option<Self> {
        let first = *packet.first()?;
        let ip_length = usize::from(first & 0xf) * 4;
        if first >> 4 != 4 || ip_length < IP_HEADER || packet.len() < ip_length {
            return None;
        }
        let length = usize::from(u16_at(packet, 2));
        if length < ip_length || length > packet.len() {
            return None;
        }
        let (ip, transport) = packet[..length].split_at(ip_length);
        let headers = Self { ip, transport };
        let whole = match headers.protocol() {
            TCP => transport.len() >= 20 && (20..=transport.len()).contains(&headers.tcp_length()),
            UDP => transport.len() >= 8,
            _ => true,
        };
        whole.then_some(headers)
    }

    /// [`TCP`], [`UDP`] or another one, which has no ports; [`NO_PORTS`] of a fragment.
    pub fn protocol(&self) -> u8 {
        let fragment = u16_at(self.ip, 6) & 0x3fff; // more fragments, or an offset
        if fragment == 0 { self.ip[9] } else { NO_PORTS }
    }

    /// The protocol, also of a fragment.
    pub fn protocol_of_whole(&self) -> u8 {
        self.ip[9]
    }

    /// The payload of UDP; of other protocols the same number of bytes is left out.
    pub fn body(&self) -> &'a [u8] {
        self.transport.get(8..).unwrap_or_default()
    }

    /// A port of a header, which is at this place.
    fn port(&self, at: usize) -> u16 {
        match self.protocol() {
            TCP | UDP => u16_at(self.transport, at),
            _ => 0,
        }
    }

    /// Where it comes from.
    pub fn source(&self) -> Socket {
        (Ipv4Addr::from(u32_at(self.ip, 12)), self.port(0))
    }

    /// Where it goes.
    pub fn destination(&self) -> Socket {
        (Ipv4Addr::from(u32_at(self.ip, 16)), self.port(2))
    }

    /// The octet of DSCP and ECN.
    pub fn traffic_class(&self) -> u8 {
        self.ip[1]
    }

    fn tcp_length(&self) -> usize {
        usize::from(self.transport[12] >> 4) * 4
    }

    /// Bytes of payload.
    pub fn payload(&self) -> u32 {
        let header = match self.protocol() {
            TCP => self.tcp_length(),
            UDP => 8,
            _ => 0,
        };
        (self.transport.len() - header) as u32
    }

    /// Bytes of payload of TCP; none of other protocols.
    pub fn tcp_payload(&self) -> u32 {
        match self.protocol() {
            TCP => self.payload(),
            _ => 0,
        }
    }

    /// The control bits of a TCP header, AE above the byte of flags; none of UDP.
    pub fn flags(&self) -> u16 {
        match self.protocol() {
            TCP => u16_at(self.transport, 12) & 0x1ff,
            _ => 0,
        }
    }

    /// The first sequence number of a TCP segment.
    pub fn sequence(&self) -> u32 {
        u32_at(self.transport, 4)
    }

    /// The TCP header as queues read it, with `tuple` for its addresses and ports; `None` of UDP.
    pub fn tcp(&self, tuple: u64) -> Option<TcpHeader> {
        if self.protocol() != TCP {
            return None;
        }
        let mut header = TcpHeader {
            tuple,
            flags: self.flags(),
            ack: u64::from(u32_at(self.transport, 8)),
            payload: self.payload(),
            ..TcpHeader::default()
        };
        let mut options = &self.transport[20..self.tcp_length()];
        while let Some((&kind, rest)) = options.split_first() {
            match kind {
                0 => break,
                1 => {
                    options = rest;
                    continue;
                }
                _ => {}
            }
            let length = rest.first().map_or(0, |&length| usize::from(length));
            if length < 2 || length > options.len() {
                header.other_options = true;
                break;
            }
            let (option, after) = options.split_at(length);
            match (kind, length) {
                (8, 10) => header.timestamps = Some((u32_at(option, 2), u32_at(option, 6))),
                (5, 10..) => {
                    let blocks = option[2..].chunks_exact(8).take(MAX_SACK_BLOCKS);
                    for (place, block) in header.sack.iter_mut().zip(blocks) {
                        *place = (u64::from(u32_at(block, 0)), u64::from(u32_at(block, 4)));
                    }
                }
                _ => header.other_options = true,
            }
            options = after;
        }
        Some(header)
    }
}

/// Writes `class` into the octet of DSCP and ECN of an IPv4 packet, and mends the header's checksum.
pub fn set_traffic_class(packet: &mut [u8], class: u8) {
    set_word(packet, 0, u16::from_be_bytes([packet[0], class]));
}

/// Makes ECT(0) of an IPv4 packet ECT(1), and mends the header's checksum. Other packets stay as they are.
pub fn request_low_latency(packet: &mut [u8]) {
    let is_ect0 = packet.first().is_some_and(|first| first >> 4 == 4) && packet.len() >= 20;
    if is_ect0 && packet[1] & 3 == 2 {
        set_traffic_class(packet, packet[1] ^ 3);
    }
}

/// The identification field of an IPv4 packet (RFC 6864).
pub fn identification(packet: &[u8]) -> u16 {
    u16_at(packet, 4)
}

/// Writes the identification field of an IPv4 packet, and mends the header's checksum.
pub fn set_identification(packet: &mut [u8], id: u16) {
    set_word(packet, 4, id);
}

/// Writes two bytes of an IPv4 header, and mends its checksum (RFC 1624, equation 3).
fn set_word(packet: &mut [u8], at: usize, new: u16) {
    let old = u16_at(packet, at);
    packet[at..at + 2].copy_from_slice(&new.to_be_bytes());
    let mut sum = u32::from(!u16_at(packet, 10)) + u32::from(!old) + u32::from(new);
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    packet[10..12].copy_from_slice(&(!(sum as u16)).to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The checksum of an IPv4 header by its definition (RFC 791, section 3.1): right if zero.
    fn checksum(header: &[u8]) -> u16 {
        let words = header.chunks(2).map(|pair| u32::from(u16_at(pair, 0)));
        let mut sum: u32 = words.sum();
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        !(sum as u16)
    }

    /// A TCP segment from 10.0.0.1:1000 to 10.1.0.2:80 with these options and 100 bytes of payload.
    fn segment(options: &[u8]) -> Vec<u8> {
        assert_eq!(options.len() % 4, 0);
        let length = (40 + options.len() + 100) as u16;
        let mut packet = vec![0x45, 0x02];
        packet.extend(length.to_be_bytes());
        packet.extend([0x12, 0x34, 0x40, 0, 64, TCP, 0, 0, 10, 0, 0, 1, 10, 1, 0, 2]);
        let sum = checksum(&packet);
        packet[10..12].copy_from_slice(&sum.to_be_bytes());
        packet.extend(1000u16.to_be_bytes());
        packet.extend(80u16.to_be_bytes());
        packet.extend(7u32.to_be_bytes());
        packet.extend(9u32.to_be_bytes());
        let flags = TcpHeader::ACK | TcpHeader::PSH;
        packet.extend(((5 + options.len() as u16 / 4) << 12 | flags).to_be_bytes());
        packet.extend([0xff, 0xff, 0, 0, 0, 0]);
        packet.extend(options);
        packet.extend([0; 100]);
        packet
    }

    #[test]
    fn the_fields_of_a_segment_are_read() {
        let mut options = vec![1, 1, 8, 10];
        options.extend(5u32.to_be_bytes());
        options.extend(6u32.to_be_bytes());
        options.extend([1, 1, 5, 18]);
        for edge in [20u32, 30, 40, 50] {
            options.extend(edge.to_be_bytes());
        }
        let packet = segment(&options);
        let headers = Headers::of(&packet).expect("it is whole");
        assert_eq!(headers.source(), (Ipv4Addr::new(10, 0, 0, 1), 1000));
        assert_eq!(headers.destination(), (Ipv4Addr::new(10, 1, 0, 2), 80));
        assert_eq!(headers.traffic_class(), 2);
        assert_eq!((headers.payload(), headers.sequence()), (100, 7));
        let header = headers.tcp(3).expect("it is TCP");
        assert_eq!(header.flags, TcpHeader::ACK | TcpHeader::PSH);
        assert_eq!((header.tuple, header.ack, header.payload), (3, 9, 100));
        assert_eq!(header.timestamps, Some((5, 6)));
        assert_eq!(header.blocks().collect::<Vec<_>>(), [(20, 30), (40, 50)]);
        assert!(!header.other_options);
    }

    #[test]
    fn an_option_of_another_kind_is_told() {
        let packet = segment(&[2, 4, 5, 180]);
        let header = Headers::of(&packet).and_then(|headers| headers.tcp(0));
        assert!(header.expect("it is TCP").other_options);
    }

    #[test]
    fn what_is_cut_short_or_no_ipv4_is_refused() {
        let packet = segment(&[]);
        assert!(Headers::of(&packet).is_some());
        for length in 0..packet.len() {
            assert!(Headers::of(&packet[..length]).is_none(), "{length} bytes");
        }
        let mut other = packet.clone();
        other[0] = 0x65;
        assert!(Headers::of(&other).is_none(), "version 6");
        let mut fragment = packet.clone();
        fragment[6] = 0x20;
        let headers = Headers::of(&fragment).expect("a fragment is whole in itself");
        assert_eq!(headers.protocol(), NO_PORTS);
        assert_eq!(headers.source(), (Ipv4Addr::new(10, 0, 0, 1), 0));
        assert_eq!((headers.payload(), headers.tcp(0)), (120, None));
        let mut offset = packet;
        offset[32] = 0xf0;
        let headers = Headers::of(&offset).expect("a header of 60 bytes fits");
        assert_eq!(headers.payload(), 60);
    }

    #[test]
    fn the_checksum_holds_for_every_traffic_class() {
        for old in 0..=255 {
            let mut packet = segment(&[]);
            set_traffic_class(&mut packet, old);
            assert_eq!(checksum(&packet[..20]), 0, "{old}");
            set_traffic_class(&mut packet, 3);
            assert_eq!((packet[1], checksum(&packet[..20])), (3, 0), "{old} to 3");
        }
    }

    #[test]
    fn ect0_becomes_ect1_and_nothing_else_changes() {
        for class in 0..=255u8 {
            let mut packet = segment(&[]);
            set_traffic_class(&mut packet, class);
            let before = packet.clone();
            request_low_latency(&mut packet);
            let expected = if class & 3 == 2 { class - 1 } else { class };
            assert_eq!((packet[1], checksum(&packet[..20])), (expected, 0));
            assert_eq!(packet == before, class & 3 != 2);
        }
        let mut other = vec![0x60, 2, 0, 0];
        request_low_latency(&mut other);
        assert_eq!(other, [0x60, 2, 0, 0]);
    }

    #[test]
    fn the_checksum_holds_for_every_identification() {
        let mut packet = segment(&[]);
        for id in 0..=u16::MAX {
            set_identification(&mut packet, id);
            assert_eq!((identification(&packet), checksum(&packet[..20])), (id, 0));
        }
    }
}
