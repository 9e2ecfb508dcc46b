//! Header bytes: Ethernet II, IPv4 or IPv6, TCP or UDP.
//!
//! Source: RFC 791 and RFC 6864 (IPv4), RFC 8200 (IPv6), RFC 9293 (TCP), RFC 7323 and RFC 2018
//! (options), RFC 768 (UDP), RFC 1071 (checksum). The payload is all zeros and is not stored, but for
//! datagrams of endpoints of users; checksums and lengths include it.

use redtail_network::TrafficClass;

const ETHERNET: usize = 14;
const IPV4: usize = 20;
const IPV6: usize = 40;
const TCP: usize = 20;
const UDP: usize = 8;

/// Most bytes of headers that a packet has.
pub const MAX_HEADERS: usize = ETHERNET + IPV6 + TCP + MAX_OPTIONS;

/// Bytes that TCP options can take (RFC 9293, section 3.1).
const MAX_OPTIONS: usize = 40;

const PROTOCOL_TCP: u8 = 6;
const PROTOCOL_UDP: u8 = 17;

const HOP_LIMIT: u8 = 64;

/// The version of the Internet Protocol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IpVersion {
    /// Version 4, with a header of 20 bytes.
    #[default]
    V4,
    /// Version 6, with a header of 40 bytes.
    V6,
}

/// Which endpoint of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The one that sends data.
    Sender,
    /// Its peer.
    Receiver,
}

impl Side {
    /// The peer.
    pub fn other(self) -> Self {
        match self {
            Self::Sender => Self::Receiver,
            Self::Receiver => Self::Sender,
        }
    }
}

/// A flow by its group and its number in it, both from 0. Addresses and ports
/// follow from these: 10.G.F.F to 10.(128 + G).F.F, where F.F are the upper and
/// lower byte of the flow's number, and 2001:db8:0:G::F to 2001:db8:1:G::F. Flows
/// beyond what fits there differ in their ports. The connections of a user differ in the port of
/// the side that opens them.
#[derive(Clone, Copy, Debug)]
pub struct Conversation {
    pub group: u32,
    pub flow: u32,
    /// The number of a user's connection, in the order of their opening.
    pub connection: Option<u64>,
}

/// A sending host of a conversation: its packets go to the other side.
#[derive(Clone, Copy, Debug)]
pub struct Host {
    conversation: Conversation,
    side: Side,
}

impl Conversation {
    /// The host on one side.
    pub fn host(self, side: Side) -> Host {
        Host {
            conversation: self,
            side,
        }
    }

    /// The initial sequence number. The numbers differ, so that they wrap in some flows.
    pub fn initial_sequence_number(self, side: Side) -> u32 {
        let connection = self.connection.map_or(0, |number| number as u32) << 8;
        let flow = ((self.group << 16) ^ self.flow ^ connection).wrapping_add(1);
        let odd = match side {
            Side::Sender => 0x9e37_79b1,
            Side::Receiver => 0x85eb_ca6b,
        };
        flow.wrapping_mul(odd)
    }

    fn port(self, side: Side) -> u16 {
        match side {
            Side::Sender => 40_000 + (self.group / 128) as u16,
            Side::Receiver => match self.connection {
                None => 50_000 + (self.flow >> 16) as u16,
                // RFC 6335, section 6: all but the system ports.
                Some(number) => 1024 + (number % (65_536 - 1024)) as u16,
            },
        }
    }

    fn ipv4(self, side: Side) -> [u8; 4] {
        let group = (self.group % 128) as u8;
        let [.., high, low] = self.flow.to_be_bytes();
        match side {
            Side::Sender => [10, group, high, low],
            Side::Receiver => [10, 128 + group, high, low],
        }
    }

    fn ipv6(self, side: Side) -> [u8; 16] {
        let group = ((self.group % 128) as u16).to_be_bytes();
        let [.., high, low] = self.flow.to_be_bytes();
        let mut address = [0; 16];
        address[..4].copy_from_slice(&[0x20, 0x01, 0x0d, 0xb8]);
        address[5] = u8::from(side == Side::Receiver);
        address[6..8].copy_from_slice(&group);
        address[14..].copy_from_slice(&[high, low]);
        address
    }

    /// Locally administered.
    fn mac(self, side: Side) -> [u8; 6] {
        let [a, b, c, d] = self.ipv4(side);
        [0x02, 0x00, a, b, c, d]
    }
}

/// A packet's headers, and its length with the payload.
#[derive(Debug, Default)]
pub struct Frame {
    bytes: Vec<u8>,
    /// Where the transport header begins.
    transport: usize,
    payload: u32,
    ports: [u8; 4],
}

impl Frame {
    /// The headers.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Length of the whole frame, payload included.
    pub fn original_len(&self) -> u32 {
        self.bytes.len() as u32 + self.payload
    }

    /// Starts a packet that `from` sends to its peer. `id` goes into IPv4's
    /// identification.
    pub fn begin(&mut self, ip: IpVersion, from: Host, class: TrafficClass, id: u16) {
        let Host { conversation, side } = from;
        let to = side.other();
        self.bytes.clear();
        self.bytes.extend_from_slice(&conversation.mac(to));
        self.bytes.extend_from_slice(&conversation.mac(side));
        let [source, destination] = [side, to].map(|side| conversation.port(side).to_be_bytes());
        self.ports = [source[0], source[1], destination[0], destination[1]];
        // Lengths, protocol and checksum are filled in by `end`.
        match ip {
            IpVersion::V4 => {
                self.bytes.extend_from_slice(&[0x08, 0x00]);
                self.bytes.extend_from_slice(&[0x45, class.octet(), 0, 0]);
                self.bytes.extend_from_slice(&id.to_be_bytes());
                // Don't fragment.
                let rest = [0x40, 0, HOP_LIMIT, 0, 0, 0];
                self.bytes.extend_from_slice(&rest);
                self.bytes.extend_from_slice(&conversation.ipv4(side));
                self.bytes.extend_from_slice(&conversation.ipv4(to));
            }
            IpVersion::V6 => {
                self.bytes.extend_from_slice(&[0x86, 0xdd]);
                let rest = [
                    0x60 | class.octet() >> 4,
                    class.octet() << 4,
                    0,
                    0,
                    0,
                    0,
                    0,
                    HOP_LIMIT,
                ];
                self.bytes.extend_from_slice(&rest);
                self.bytes.extend_from_slice(&conversation.ipv6(side));
                self.bytes.extend_from_slice(&conversation.ipv6(to));
            }
        }
        self.transport = self.bytes.len();
    }

    /// Fills in the fields that depend on the whole packet; `checksum` is the offset of the
    /// checksum in the transport header.
    fn end(&mut self, protocol: u8, checksum: usize, payload: u32) {
        self.payload = payload;
        let length = (self.bytes.len() - self.transport) as u32 + payload;
        let addresses = if self.transport == ETHERNET + IPV4 {
            let total = (IPV4 as u32 + length) as u16;
            self.bytes[ETHERNET + 2..ETHERNET + 4].copy_from_slice(&total.to_be_bytes());
            self.bytes[ETHERNET + 9] = protocol;
            let sum = !fold(sum(&self.bytes[ETHERNET..self.transport]));
            self.bytes[ETHERNET + 10..ETHERNET + 12].copy_from_slice(&sum.to_be_bytes());
            ETHERNET + 12
        } else {
            self.bytes[ETHERNET + 4..ETHERNET + 6].copy_from_slice(&(length as u16).to_be_bytes());
            self.bytes[ETHERNET + 6] = protocol;
            ETHERNET + 8
        };
        // The pseudo-header and the segment; zeros of the payload add nothing.
        let total = sum(&self.bytes[addresses..]) + u32::from(protocol) + length;
        let mut total = !fold(total);
        if total == 0 && protocol == PROTOCOL_UDP {
            total = 0xffff; // 0 would mean that there is none
        }
        let at = self.transport + checksum;
        self.bytes[at..at + 2].copy_from_slice(&total.to_be_bytes());
    }
}

/// Sum of 16-bit words; a packet of 65,535 bytes is short enough for 32 bits.
fn sum(bytes: &[u8]) -> u32 {
    let words = bytes.chunks(2);
    words
        .map(|word| (u32::from(word[0]) << 8) | word.get(1).map_or(0, |&low| u32::from(low)))
        .sum()
}

/// The sum in one's complement.
fn fold(mut sum: u32) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

/// The fields of a TCP header.
#[derive(Clone, Copy, Debug)]
pub struct TcpFields {
    pub seq: u32,
    pub ack: u32,
    /// With AE above the byte of flags.
    pub flags: u16,
    pub window: u16,
    pub options: Options,
}

/// Ends `frame` with a TCP header and `payload` bytes of data.
pub fn write_tcp(frame: &mut Frame, fields: &TcpFields, payload: u32) {
    let options = fields.options.bytes();
    let words = ((TCP + options.len()) / 4) as u8;
    frame.bytes.extend_from_slice(&frame.ports);
    frame.bytes.extend_from_slice(&fields.seq.to_be_bytes());
    frame.bytes.extend_from_slice(&fields.ack.to_be_bytes());
    let [above, flags] = fields.flags.to_be_bytes();
    frame.bytes.extend_from_slice(&[words << 4 | above, flags]);
    frame.bytes.extend_from_slice(&fields.window.to_be_bytes());
    frame.bytes.extend_from_slice(&[0; 4]); // checksum, urgent pointer
    frame.bytes.extend_from_slice(options);
    frame.end(PROTOCOL_TCP, 16, payload);
}

/// Ends `frame` with a UDP header and `payload` bytes of data.
pub fn write_udp(frame: &mut Frame, payload: u32) {
    let length = (UDP as u32 + payload) as u16;
    frame.bytes.extend_from_slice(&frame.ports);
    frame.bytes.extend_from_slice(&length.to_be_bytes());
    frame.bytes.extend_from_slice(&[0; 2]); // checksum
    frame.end(PROTOCOL_UDP, 6, payload);
}

/// Ends `frame` with a UDP header and this payload.
pub fn write_datagram(frame: &mut Frame, payload: &[u8]) {
    let length = (UDP + payload.len()) as u16;
    frame.bytes.extend_from_slice(&frame.ports);
    frame.bytes.extend_from_slice(&length.to_be_bytes());
    frame.bytes.extend_from_slice(&[0; 2]); // checksum
    frame.bytes.extend_from_slice(payload);
    frame.end(PROTOCOL_UDP, 6, 0);
}

/// The window field for `bytes`: scaled, rounded down, and at most what the field holds.
pub fn scaled_window(bytes: u32, shift: u8) -> u16 {
    (bytes >> shift).min(u32::from(u16::MAX)) as u16
}

/// TCP options, each padded in front to whole words.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    bytes: [u8; MAX_OPTIONS],
    len: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            bytes: [0; MAX_OPTIONS],
            len: 0,
        }
    }
}

impl Options {
    const NOP: u8 = 1;
    const MSS: u8 = 2;
    const WINDOW_SCALE: u8 = 3;
    const SACK_PERMITTED: u8 = 4;
    const SACK: u8 = 5;
    const TIMESTAMPS: u8 = 8;
    const ACCECN_0: u8 = 172;
    const ACCECN_1: u8 = 174;

    fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    fn push(&mut self, bytes: &[u8]) {
        self.bytes[self.len..self.len + bytes.len()].copy_from_slice(bytes);
        self.len += bytes.len();
    }

    /// The largest segment its sender accepts (RFC 9293, section 3.2).
    pub fn push_mss(&mut self, mss: u16) {
        let [high, low] = mss.to_be_bytes();
        self.push(&[Self::MSS, 4, high, low]);
    }

    /// Selective acknowledgements are permitted (RFC 2018, section 2).
    pub fn push_sack_permitted(&mut self) {
        self.push(&[Self::NOP, Self::NOP, Self::SACK_PERMITTED, 2]);
    }

    /// The window scale (RFC 7323, section 2.2).
    pub fn push_window_scale(&mut self, shift: u8) {
        self.push(&[Self::NOP, Self::WINDOW_SCALE, 3, shift]);
    }

    /// The timestamps (RFC 7323, section 3.2). That selective acknowledgements are permitted takes the place of what
    /// pads them.
    pub fn push_timestamps(&mut self, value: u32, echo: u32, permits_sack: bool) {
        self.push(match permits_sack {
            true => &[Self::SACK_PERMITTED, 2],
            false => &[Self::NOP, Self::NOP],
        });
        self.push(&[Self::TIMESTAMPS, 10]);
        self.push(&value.to_be_bytes());
        self.push(&echo.to_be_bytes());
    }

    /// Bytes received with the sender's codepoint, which is ECT(1) or ECT(0), and with a
    /// mark (RFC 9768, section 3.2.3).
    pub fn push_accecn(&mut self, ect1: bool, ect: u32, ce: u32) {
        let kind = if ect1 { Self::ACCECN_1 } else { Self::ACCECN_0 };
        self.push(&[kind, 8]);
        self.push(&ect.to_be_bytes()[1..]);
        self.push(&ce.to_be_bytes()[1..]);
    }

    /// Blocks by their edges (RFC 2018, section 3).
    pub fn push_sack(&mut self, blocks: impl Iterator<Item = (u32, u32)>) {
        let length_at = self.len + 3;
        self.push(&[Self::NOP, Self::NOP, Self::SACK, 0]);
        for (left, right) in blocks {
            self.push(&left.to_be_bytes());
            self.push(&right.to_be_bytes());
        }
        // Kind and length count too.
        self.bytes[length_at] = (self.len - length_at + 1) as u8;
    }
}
