//! What the headers of an IP packet say, also if the capture has cut the packet behind them.

use std::net::IpAddr;

use etherparse::{
    LaxNetSlice, LaxSlicedPacket, TcpOptionElement, TcpOptionsIterator, TransportSlice,
};

use crate::link;
use crate::packets::{Headers, Left};

const ICMP: u8 = 1;
const TCP: u8 = 6;
const UDP: u8 = 17;
const GRE: u8 = 47;

/// IPv4 and IPv6 within IP (RFC 2003, RFC 4213).
const IP_IN_IP: [u8; 2] = [4, 41];

/// GRE's types of what it carries, besides those of Ethernet: an Ethernet frame, and PPP.
const ETHERNET: u16 = 0x6558;
const PPP: u16 = 0x880b;

/// So many tunnels may be within each other.
const MOST_TUNNELS: u32 = 4;

/// Bit of TCP's flags.
const SYN: u8 = 2;

/// Types of echo requests and replies: RFC 792 and RFC 4443.
const ECHO: [(u8, u8); 4] = [(8, 1), (0, 2), (128, 1), (129, 2)];

/// Bytes of TCP's header up to its flags, and without options (RFC 9293, section 3.1).
const TCP_FLAGS: usize = 14;
const TCP_HEADER: usize = 20;

/// Bytes of TCP's header with timestamps alone (RFC 7323, appendix A).
const WITH_TIMESTAMPS: usize = 32;

/// The smallest packet: the header of IPv4 without options.
const SMALLEST: u32 = 20;

/// The largest packet that a host hands to its network card at once: Linux's `GSO_MAX_SIZE`.
const LARGEST: u32 = 8 * 65535;

/// An IP packet of which `data` was kept, and that had `original` bytes; or one more in the counts
/// of packets that are left out. Of a packet in a tunnel (IP in IP, GRE) the conversation is that of
/// the inner packet, and the size and the ECN field are those of the outer one, which a queue sees.
pub fn headers(data: &[u8], original: usize, left: &mut Left) -> Option<Headers> {
    within(data, original, left, MOST_TUNNELS)
}

fn within(data: &[u8], original: usize, left: &mut Left, tunnels: u32) -> Option<Headers> {
    let Ok(sliced) = LaxSlicedPacket::from_ip(data) else {
        left.cut += 1;
        return None;
    };
    let network = network(sliced.net.as_ref(), original);
    let Some((network, fragment)) = network else {
        left.not_ip += 1;
        return None;
    };
    if fragment {
        left.fragments += 1;
        return None;
    }
    if !(SMALLEST..=LARGEST).contains(&network.size) {
        left.cut += 1;
        return None;
    }
    if let Some(begin) = sliced.net.as_ref().and_then(|net| tunnelled(data, net))
        && tunnels > 0
    {
        let inner = original.saturating_sub(begin);
        let mut found = within(&data[begin..], inner, left, tunnels - 1)?;
        (found.size, found.ecn) = (network.size, network.ecn);
        return Some(found);
    }
    let offset = |slice: &[u8]| (slice.as_ptr() as usize - data.as_ptr() as usize) as u32;
    let found = match &sliced.transport {
        Some(TransportSlice::Udp(udp)) => {
            let header = offset(udp.slice()) + 8;
            let ports = (udp.source_port(), udp.destination_port());
            Some(network.with(UDP, ports, header))
        }
        Some(TransportSlice::Icmpv4(icmp)) => of_echo(
            network,
            icmp.type_u8(),
            icmp.bytes5to8(),
            offset(icmp.slice()),
        ),
        Some(TransportSlice::Icmpv6(icmp)) => of_echo(
            network,
            icmp.type_u8(),
            icmp.bytes5to8(),
            offset(icmp.slice()),
        ),
        _ => sliced
            .ip_payload()
            .filter(|ip| ip.ip_number.0 == TCP)
            .and_then(|ip| of_tcp(network, ip.payload, offset(ip.payload))),
    };
    if found.is_none() {
        let whole = sliced.stop_err.is_none();
        *(if whole {
            &mut left.other
        } else {
            &mut left.cut
        }) += 1;
    }
    found
}

/// Where the IP header within a tunnel begins, if the packet is of a tunnel that is read.
fn tunnelled(data: &[u8], net: &LaxNetSlice<'_>) -> Option<usize> {
    let payload = match net {
        LaxNetSlice::Ipv4(ip) => ip.payload(),
        LaxNetSlice::Ipv6(ip) => ip.payload(),
        LaxNetSlice::Arp(_) => return None,
    };
    let inside = payload.payload;
    let begin = inside.as_ptr() as usize - data.as_ptr() as usize;
    let offset = match payload.ip_number.0 {
        GRE => behind_gre(inside)?,
        number if IP_IN_IP.contains(&number) => 0,
        _ => return None,
    };
    (offset < inside.len()).then_some(begin + offset)
}

/// Behind the header of GRE: RFC 2784 and RFC 2890, and version 1 with PPP (RFC 2637).
fn behind_gre(data: &[u8]) -> Option<usize> {
    let &[flags, version, high, low, ..] = data else {
        return None;
    };
    let bit = |mask: u8, bytes: usize| if flags & mask != 0 { bytes } else { 0 };
    let (checksum, key, sequence) = (bit(0x80, 4), bit(0x20, 4), bit(0x10, 4));
    let kind = u16::from_be_bytes([high, low]);
    let has_routing = flags & 0x40 != 0;
    match (version & 0x07, kind) {
        _ if has_routing => None,
        (0, ETHERNET) => link::behind_ethertype(data, 4 + checksum + key + sequence + 12),
        (0, kind) => link::behind_kind(data, kind, 4 + checksum + key + sequence),
        (1, PPP) => {
            let acknowledgement = if version & 0x80 != 0 { 4 } else { 0 };
            link::behind_ppp(data, 4 + key + sequence + acknowledgement)
        }
        _ => None,
    }
}

/// What the IP header says.
#[derive(Clone, Copy)]
struct Network {
    addresses: (IpAddr, IpAddr),
    size: u32,
    id: u16,
    ecn: u8,
}

/// What the IP header says, and whether the packet is a fragment. Without a length in the header
/// (segmentation offload), it is that of the packet.
fn network(slice: Option<&LaxNetSlice<'_>>, original: usize) -> Option<(Network, bool)> {
    let original = u32::try_from(original).unwrap_or(u32::MAX);
    let told = |length: u32| if length == 0 { original } else { length };
    match slice? {
        LaxNetSlice::Ipv4(ip) => {
            let header = ip.header();
            let found = Network {
                addresses: (
                    header.source_addr().into(),
                    header.destination_addr().into(),
                ),
                size: told(header.total_len().into()),
                id: header.identification(),
                ecn: header.ecn().value(),
            };
            Some((found, ip.is_payload_fragmented()))
        }
        LaxNetSlice::Ipv6(ip) => {
            let header = ip.header();
            let length = u32::from(header.payload_length());
            let found = Network {
                addresses: (
                    header.source_addr().into(),
                    header.destination_addr().into(),
                ),
                size: told(if length == 0 { 0 } else { length + 40 }),
                id: 0,
                ecn: header.ecn().value(),
            };
            Some((found, ip.is_payload_fragmented()))
        }
        LaxNetSlice::Arp(_) => None,
    }
}

impl Network {
    /// A packet whose headers end at `header`.
    fn with(self, protocol: u8, ports: (u16, u16), header: u32) -> Headers {
        Headers {
            protocol,
            source: (self.addresses.0, ports.0),
            destination: (self.addresses.1, ports.1),
            size: self.size,
            payload: self.size.saturating_sub(header),
            id: self.id,
            ecn: self.ecn,
            flags: 0,
            seq: 0,
            ack: 0,
            cut: false,
            timestamps: None,
            mss: None,
            sack_permitted: false,
            sack: Vec::new(),
        }
    }
}

/// A segment that begins at `offset`; the capture may have cut its header behind the flags.
fn of_tcp(network: Network, tcp: &[u8], offset: u32) -> Option<Headers> {
    let fixed = tcp.get(..TCP_FLAGS)?;
    let half = |at: usize| u16::from_be_bytes([fixed[at], fixed[at + 1]]);
    let word = |at: usize| u32::from(half(at)) << 16 | u32::from(half(at + 2));
    let header = 4 * usize::from(fixed[12] >> 4);
    if header < TCP_HEADER {
        return None;
    }
    let mut found = network.with(TCP, (half(0), half(2)), offset + header as u32);
    found.flags = fixed[13] & 0x1f;
    found.seq = word(4);
    found.ack = word(8);
    found.cut = tcp.len() < header && header > WITH_TIMESTAMPS;
    let options = tcp
        .get(TCP_HEADER..header.min(tcp.len()))
        .unwrap_or_default();
    for option in TcpOptionsIterator::from_slice(options).map_while(Result::ok) {
        match option {
            TcpOptionElement::Timestamp(value, echo) => found.timestamps = Some((value, echo)),
            TcpOptionElement::MaximumSegmentSize(mss) if found.flags & SYN != 0 => {
                found.mss = Some(mss);
            }
            TcpOptionElement::SelectiveAcknowledgementPermitted => found.sack_permitted = true,
            TcpOptionElement::SelectiveAcknowledgement(first, rest) => {
                found.sack.push(first);
                found.sack.extend(rest.into_iter().flatten());
            }
            _ => {}
        }
    }
    Some(found)
}

/// An echo: its identifier takes the place of ports.
fn of_echo(network: Network, kind: u8, rest: [u8; 4], offset: u32) -> Option<Headers> {
    let (_, flag) = ECHO.into_iter().find(|&(known, _)| known == kind)?;
    let id = u16::from_be_bytes([rest[0], rest[1]]);
    let mut found = network.with(ICMP, (id, id), offset + 8);
    found.flags = flag;
    found.seq = u16::from_be_bytes([rest[2], rest[3]]).into();
    Some(found)
}
