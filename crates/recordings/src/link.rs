//! Where the IP header begins behind the header of a link.
//!
//! Source of the forms: the list of link-layer header types of tcpdump.org, and what it names:
//! radiotap.org, IEEE 802.11 (9.2 and 9.3.2), RFC 1661 (PPP), RFC 2516 (PPPoE), RFC 3032 (MPLS), RFC
//! 1042 (LLC and SNAP).

use pcap_parser::Linktype;

const NULL: i32 = 0;
const ETHERNET: i32 = 1;
const PPP: [i32; 2] = [9, 50];
const PPP_ETHER: i32 = 51;
const ATM_RFC1483: i32 = 100;
const RAW: [i32; 3] = [12, 14, 101];
const C_HDLC: i32 = 104;
const IEEE802_11: i32 = 105;
const LOOP: i32 = 108;
const LINUX_SLL: i32 = 113;
const IEEE802_11_RADIOTAP: i32 = 127;
const PPP_PPPD: i32 = 166;
const PPI: i32 = 192;
const IPV4: i32 = 228;
const IPV6: i32 = 229;
const NFLOG: i32 = 239;
const PKTAP: i32 = 258;
const LINUX_SLL2: i32 = 276;

const KNOWN: [i32; 16] = [
    NULL,
    ETHERNET,
    PPP_ETHER,
    ATM_RFC1483,
    C_HDLC,
    IEEE802_11,
    LOOP,
    LINUX_SLL,
    IEEE802_11_RADIOTAP,
    PPP_PPPD,
    PPI,
    IPV4,
    IPV6,
    NFLOG,
    PKTAP,
    LINUX_SLL2,
];

const ETHERTYPE_IPV4: u16 = 0x0800;
const ETHERTYPE_IPV6: u16 = 0x86dd;
const ETHERTYPE_VLAN: [u16; 4] = [0x8100, 0x88a8, 0x9100, 0x9200];
const ETHERTYPE_MPLS: [u16; 2] = [0x8847, 0x8848];
const ETHERTYPE_PPPOE_SESSION: u16 = 0x8864;

/// Up to here the field of Ethernet is a length (IEEE 802.3).
const LONGEST_LENGTH: u16 = 1500;

/// LLC that SNAP follows, with the organization that has Ethernet's types.
const SNAP: [u8; 6] = [0xaa, 0xaa, 0x03, 0, 0, 0];

/// PPP's numbers of IPv4, IPv6 (RFC 5072) and MPLS (RFC 3032).
const PPP_IP: [u16; 2] = [0x0021, 0x0057];
const PPP_MPLS: [u16; 2] = [0x0281, 0x0283];

/// The address and control fields of PPP.
const PPP_HDLC: [u8; 2] = [0xff, 0x03];

/// NFLOG's number of the packet among its values (`NFULA_PAYLOAD`, linux/netfilter/nfnetlink_log.h).
const NFLOG_PAYLOAD: u16 = 9;

/// Why a packet has no IP header that can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoIp {
    /// It has another protocol, or ends before.
    Other,
    /// Wi-Fi encrypts it.
    Encrypted,
}

/// Whether packets of this type of link can be read.
pub fn is_known(link: Linktype) -> bool {
    KNOWN.contains(&link.0) || RAW.contains(&link.0) || PPP.contains(&link.0)
}

/// The number of bytes in front of the IP header.
pub fn ip_offset(link: Linktype, data: &[u8]) -> Result<usize, NoIp> {
    let found = match link.0 {
        IEEE802_11 => return behind_wifi(data, 0),
        IEEE802_11_RADIOTAP => return behind_wifi(data, little(data, 2).unwrap_or(0)),
        PPI | PKTAP => return behind_named(link, data),
        link => offset(link, data),
    };
    found.ok_or(NoIp::Other)
}

fn offset(link: i32, data: &[u8]) -> Option<usize> {
    match link {
        NULL | LOOP => Some(4),
        ETHERNET => behind_ethertype(data, 12),
        LINUX_SLL => behind_ethertype(data, 14),
        LINUX_SLL2 => behind_kind(data, word(data, 0)?, 20),
        C_HDLC => behind_ethertype(data, 2),
        ATM_RFC1483 => behind_llc(data, 0),
        PPP_ETHER => behind_ppp(data, 6),
        PPP_PPPD => behind_ppp(data, 1),
        NFLOG => behind_nflog(data),
        link if PPP.contains(&link) => behind_ppp(data, 0),
        _ => Some(0),
    }
}

/// The system's number of the interface, which `tcpdump -i any` writes in front of each packet.
pub fn interface_index(link: Linktype, data: &[u8]) -> Option<u32> {
    if link.0 != LINUX_SLL2 {
        return None;
    }
    let bytes = data.get(4..8)?;
    Some(u32::from_be_bytes(bytes.try_into().ok()?))
}

/// Behind Ethernet's type, or the length that stands in its place, at a place.
pub fn behind_ethertype(data: &[u8], at: usize) -> Option<usize> {
    behind_kind(data, word(data, at)?, at + 2)
}

/// Behind a type of Ethernet; what has this type begins at a place.
pub fn behind_kind(data: &[u8], kind: u16, mut at: usize) -> Option<usize> {
    let mut kind = kind;
    while ETHERTYPE_VLAN.contains(&kind) {
        kind = word(data, at + 2)?;
        at += 4;
    }
    match kind {
        ETHERTYPE_IPV4 | ETHERTYPE_IPV6 => Some(at),
        ETHERTYPE_PPPOE_SESSION => behind_ppp(data, at + 6),
        kind if ETHERTYPE_MPLS.contains(&kind) => behind_mpls(data, at),
        kind if kind <= LONGEST_LENGTH => behind_llc(data, at),
        _ => None,
    }
}

fn behind_llc(data: &[u8], at: usize) -> Option<usize> {
    let is_snap = data.get(at..at + SNAP.len())? == SNAP;
    // A type of Ethernet follows SNAP, and no length.
    (is_snap && word(data, at + SNAP.len())? > LONGEST_LENGTH)
        .then(|| behind_ethertype(data, at + SNAP.len()))?
}

/// Behind PPP's number of the protocol, which may be compressed to one byte (RFC 1661, section 6.5).
pub fn behind_ppp(data: &[u8], at: usize) -> Option<usize> {
    let at = at
        + if data.get(at..at + 2)? == PPP_HDLC {
            2
        } else {
            0
        };
    let first = *data.get(at)?;
    let (kind, at) = if first & 1 == 1 {
        (u16::from(first), at + 1)
    } else {
        (word(data, at)?, at + 2)
    };
    if PPP_MPLS.contains(&kind) {
        return behind_mpls(data, at);
    }
    PPP_IP.contains(&kind).then_some(at)
}

/// Behind the labels of MPLS: IP, or Ethernet with a control word (RFC 4448).
fn behind_mpls(data: &[u8], mut at: usize) -> Option<usize> {
    while data.get(at + 2)? & 1 == 0 {
        at += 4;
    }
    at += 4;
    match data.get(at)? >> 4 {
        4 | 6 => Some(at),
        0 => behind_ethertype(data, at + 4 + 12),
        _ => None,
    }
}

/// Behind the header of IEEE 802.11, which begins at a place.
fn behind_wifi(data: &[u8], begin: usize) -> Result<usize, NoIp> {
    let (Some(&kind), Some(&flags)) = (data.get(begin), data.get(begin + 1)) else {
        return Err(NoIp::Other);
    };
    let is_data = kind & 0x0c == 0x08;
    let is_empty = kind & 0x40 != 0;
    if !is_data || is_empty {
        return Err(NoIp::Other);
    }
    if flags & 0x40 != 0 {
        return Err(NoIp::Encrypted);
    }
    let four_addresses = flags & 0x03 == 0x03;
    let has_qos = kind & 0x80 != 0;
    let mut length = 24 + if four_addresses { 6 } else { 0 };
    if has_qos {
        let is_ordered = flags & 0x80 != 0;
        length += if is_ordered { 6 } else { 2 };
    }
    // Some network cards fill the header up to a multiple of four bytes.
    behind_llc(data, begin + length)
        .or_else(|| behind_llc(data, begin + length.next_multiple_of(4)))
        .ok_or(NoIp::Other)
}

/// Behind a header that has its own length and the type of what follows.
fn behind_named(link: Linktype, data: &[u8]) -> Result<usize, NoIp> {
    let (length, next) = match link.0 {
        PPI => (little(data, 2), little(data, 4)),
        _ => (little(data, 0), little(data, 8)),
    };
    let (Some(length), Some(next)) = (length, next) else {
        return Err(NoIp::Other);
    };
    let inner = Linktype(next as i32);
    let nested = [PPI, PKTAP].contains(&inner.0);
    let rest = data.get(length..).ok_or(NoIp::Other)?;
    if nested || !is_known(inner) {
        return Err(NoIp::Other);
    }
    ip_offset(inner, rest).map(|offset| length + offset)
}

fn behind_nflog(data: &[u8]) -> Option<usize> {
    let mut at = 4;
    loop {
        let (length, kind) = (little(data, at)?, little(data, at + 2)?);
        if kind == usize::from(NFLOG_PAYLOAD) {
            return Some(at + 4);
        }
        at += length.max(4).next_multiple_of(4);
    }
}

fn word(data: &[u8], at: usize) -> Option<u16> {
    let bytes = data.get(at..at + 2)?;
    Some(u16::from_be_bytes([bytes[0], bytes[1]]))
}

/// Two bytes with the low one first.
fn little(data: &[u8], at: usize) -> Option<usize> {
    word(data, at).map(|word| usize::from(word.swap_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ethernet(words: &[u16]) -> Vec<u8> {
        let mut bytes = vec![0; 12];
        words
            .iter()
            .for_each(|word| bytes.extend(word.to_be_bytes()));
        bytes
    }

    #[test]
    fn ip_is_found_behind_tags_and_pppoe() {
        let link = Linktype(ETHERNET);
        assert_eq!(ip_offset(link, &ethernet(&[0x0800])), Ok(14));
        let tagged = ethernet(&[0x88a8, 5, 0x8100, 7, 0x86dd]);
        assert_eq!(ip_offset(link, &tagged), Ok(22));
        let pppoe = ethernet(&[0x8864, 0x1100, 1, 60, 0x0021]);
        assert_eq!(ip_offset(link, &pppoe), Ok(22));
    }

    #[test]
    fn packets_of_other_protocols_have_none() {
        let link = Linktype(ETHERNET);
        assert_eq!(ip_offset(link, &ethernet(&[0x0806])), Err(NoIp::Other));
        assert_eq!(ip_offset(link, &[0; 5]), Err(NoIp::Other));
        let lcp = ethernet(&[0x8864, 0x1100, 1, 60, 0xc021]);
        assert_eq!(ip_offset(link, &lcp), Err(NoIp::Other));
    }

    #[test]
    fn headers_that_never_end_have_none() {
        let labels = ethernet(&[0x8847, 0, 0, 0, 0]);
        assert_eq!(ip_offset(Linktype(ETHERNET), &labels), Err(NoIp::Other));
        for link in 0..300 {
            for data in [&[0; 40][..], &[0xff; 40], &[0xaa; 3]] {
                let _ = ip_offset(Linktype(link), data);
            }
        }
    }
}
