//! Where the IP header begins behind the header of a link.
//!
//! Source of the forms: the list of link-layer header types of tcpdump.org.

use pcap_parser::Linktype;

const NULL: i32 = 0;
const ETHERNET: i32 = 1;
const RAW: [i32; 3] = [12, 14, 101];
const LOOP: i32 = 108;
const LINUX_SLL: i32 = 113;
const IPV4: i32 = 228;
const IPV6: i32 = 229;
const LINUX_SLL2: i32 = 276;

const ETHERTYPE_IPV4: u16 = 0x0800;
const ETHERTYPE_IPV6: u16 = 0x86dd;
const ETHERTYPE_VLAN: [u16; 3] = [0x8100, 0x88a8, 0x9100];
const ETHERTYPE_PPPOE_SESSION: u16 = 0x8864;

/// PPP's numbers of IPv4 and IPv6 (RFC 1661 and RFC 5072).
const PPP_IP: [u16; 2] = [0x0021, 0x0057];

/// Whether packets of this type of link can be read.
pub fn is_known(link: Linktype) -> bool {
    matches!(
        link.0,
        NULL | ETHERNET | LOOP | LINUX_SLL | IPV4 | IPV6 | LINUX_SLL2
    ) || RAW.contains(&link.0)
}

/// The number of bytes in front of the IP header; `None` if the packet has none.
pub fn ip_offset(link: Linktype, data: &[u8]) -> Option<usize> {
    match link.0 {
        NULL | LOOP => Some(4),
        ETHERNET => behind_ethertype(data, 12),
        LINUX_SLL => behind_ethertype(data, 14),
        LINUX_SLL2 => is_ip(word(data, 0)?).then_some(20),
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

fn behind_ethertype(data: &[u8], mut at: usize) -> Option<usize> {
    while ETHERTYPE_VLAN.contains(&word(data, at)?) {
        at += 4;
    }
    match word(data, at)? {
        ETHERTYPE_PPPOE_SESSION => PPP_IP.contains(&word(data, at + 8)?).then_some(at + 10),
        kind => is_ip(kind).then_some(at + 2),
    }
}

fn is_ip(kind: u16) -> bool {
    kind == ETHERTYPE_IPV4 || kind == ETHERTYPE_IPV6
}

fn word(data: &[u8], at: usize) -> Option<u16> {
    let bytes = data.get(at..at + 2)?;
    Some(u16::from_be_bytes([bytes[0], bytes[1]]))
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
        assert_eq!(ip_offset(link, &ethernet(&[0x0800])), Some(14));
        let tagged = ethernet(&[0x88a8, 5, 0x8100, 7, 0x86dd]);
        assert_eq!(ip_offset(link, &tagged), Some(22));
        let pppoe = ethernet(&[0x8864, 0x1100, 1, 60, 0x0021]);
        assert_eq!(ip_offset(link, &pppoe), Some(22));
    }

    #[test]
    fn packets_of_other_protocols_have_none() {
        let link = Linktype(ETHERNET);
        assert_eq!(ip_offset(link, &ethernet(&[0x0806])), None);
        assert_eq!(ip_offset(link, &[0; 5]), None);
        assert_eq!(
            ip_offset(link, &ethernet(&[0x8864, 0x1100, 1, 60, 0xc021])),
            None
        );
    }
}
