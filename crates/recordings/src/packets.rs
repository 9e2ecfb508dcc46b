//! What a capture becomes: columns, and the conversations that packets belong to.

use std::collections::BTreeMap;
use std::net::IpAddr;

/// Bit of `options`: the segment has a timestamps option.
pub const TIMESTAMPS: u8 = 1;

/// Bit of `options`: the capture has cut the options, and selective acknowledgements may be missing.
pub const CUT: u8 = 2;

/// Where packets were captured.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Interface {
    /// The name of the interface, if the file tells it.
    pub name: String,
    /// The link-layer header type.
    pub link_type: i32,
}

/// Two endpoints and the protocol between them. End 0 sent the first packet that was captured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conversation {
    /// IP's number of the protocol; ICMPv6 is counted as ICMP.
    pub protocol: u8,
    /// Addresses of the two ends.
    pub addresses: [IpAddr; 2],
    /// The ports of both sides; the identifier, for echo requests and their replies.
    pub ports: [u16; 2],
    /// The largest segment that each end accepts, from its SYN; 0 if that was not captured.
    pub mss: [u16; 2],
    /// Whether the SYN of each end permits selective acknowledgements.
    pub sack_permitted: [bool; 2],
}

/// A row for each IP packet, in the order of the file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Packets {
    /// Time stamps in nanoseconds.
    pub at_ns: Vec<i64>,
    /// Index of the interface.
    pub interface: Vec<u32>,
    /// Index of the conversation.
    pub conversation: Vec<u32>,
    /// The end that sent it, 0 or 1.
    pub end: Vec<u8>,
    /// Bytes of the IP packet, as it was before the capture cut it.
    pub size: Vec<u32>,
    /// Bytes of payload of TCP, UDP or ICMP.
    pub payload: Vec<u32>,
    /// IPv4's identification; 0 for IPv6.
    pub id: Vec<u16>,
    /// The ECN field.
    pub ecn: Vec<u8>,
    /// TCP's flags (FIN 1, SYN 2, RST 4, ACK 16); of an echo, 1 for a request and 2 for a reply.
    pub flags: Vec<u8>,
    /// TCP's sequence number, or that of an echo.
    pub seq: Vec<u32>,
    /// TCP's acknowledgement number.
    pub ack: Vec<u32>,
    /// Which options a segment has, as bits: 1 is a timestamp; 2 says that they were cut.
    pub options: Vec<u8>,
    /// TSval of RFC 7323.
    pub ts_val: Vec<u32>,
    /// TSecr of RFC 7323.
    pub ts_ecr: Vec<u32>,
    /// For each SACK block: the row of its packet …
    pub sack_row: Vec<u32>,
    /// … its left edge …
    pub sack_left: Vec<u32>,
    /// … and its right edge.
    pub sack_right: Vec<u32>,
}

/// Packets that are not among the rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Left {
    /// Without an IP header: ARP and the like.
    pub not_ip: u64,
    /// Fragments, which have no ports.
    pub fragments: u64,
    /// Of protocols other than TCP, UDP and ICMP's echo.
    pub other: u64,
    /// Cut so short that headers are missing, or damaged.
    pub cut: u64,
    /// From links of a type that is not known.
    pub unknown_link: u64,
    /// Encrypted by Wi-Fi.
    pub encrypted: u64,
}

/// A capture.
#[derive(Debug, Clone, Default)]
pub struct Capture {
    /// Where it was taken.
    pub interfaces: Vec<Interface>,
    /// Who talks to whom.
    pub conversations: Vec<Conversation>,
    /// The packets.
    pub packets: Packets,
    /// Packets that are not among them.
    pub left: Left,
    /// How many packets came from links of a type that is not known, by the type.
    pub unknown_links: BTreeMap<i32, u64>,
    /// Where and why reading ended before the end of the file.
    pub damage: Option<String>,
}

/// What the headers of a packet say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Headers {
    pub protocol: u8,
    pub source: (IpAddr, u16),
    pub destination: (IpAddr, u16),
    pub size: u32,
    pub payload: u32,
    pub id: u16,
    pub ecn: u8,
    pub flags: u8,
    pub seq: u32,
    pub ack: u32,
    pub cut: bool,
    pub timestamps: Option<(u32, u32)>,
    pub mss: Option<u16>,
    pub sack_permitted: bool,
    pub sack: Vec<(u32, u32)>,
}

type Key = (u8, (IpAddr, u16), (IpAddr, u16));

/// Finds the conversation of a packet.
#[derive(Debug, Default)]
pub struct Conversations {
    found: BTreeMap<Key, u32>,
}

impl Conversations {
    /// The index of the packet's conversation and the end that sent it.
    pub fn place(&mut self, headers: &Headers, known: &mut Vec<Conversation>) -> (u32, u8) {
        let (from, to) = (headers.source, headers.destination);
        let key = (headers.protocol, from.min(to), from.max(to));
        let index = *self.found.entry(key).or_insert_with(|| {
            known.push(Conversation {
                protocol: headers.protocol,
                addresses: [from.0, to.0],
                ports: [from.1, to.1],
                mss: [0; 2],
                sack_permitted: [false; 2],
            });
            known.len() as u32 - 1
        });
        let conversation = &mut known[index as usize];
        let first = (conversation.addresses[0], conversation.ports[0]);
        let end = usize::from(first != from);
        if let Some(mss) = headers.mss {
            conversation.mss[end] = mss;
            conversation.sack_permitted[end] = headers.sack_permitted;
        }
        (index, end as u8)
    }
}

impl Packets {
    /// Adds a packet.
    pub fn push(&mut self, at_ns: i64, interface: u32, place: (u32, u8), headers: &Headers) {
        let row = self.at_ns.len() as u32;
        self.at_ns.push(at_ns);
        self.interface.push(interface);
        self.conversation.push(place.0);
        self.end.push(place.1);
        self.size.push(headers.size);
        self.payload.push(headers.payload);
        self.id.push(headers.id);
        self.ecn.push(headers.ecn);
        self.flags.push(headers.flags);
        self.seq.push(headers.seq);
        self.ack.push(headers.ack);
        let cut = if headers.cut { CUT } else { 0 };
        self.options
            .push(cut | headers.timestamps.map_or(0, |_| TIMESTAMPS));
        let (ts_val, ts_ecr) = headers.timestamps.unwrap_or_default();
        self.ts_val.push(ts_val);
        self.ts_ecr.push(ts_ecr);
        for &(left, right) in &headers.sack {
            self.sack_row.push(row);
            self.sack_left.push(left);
            self.sack_right.push(right);
        }
    }
}
