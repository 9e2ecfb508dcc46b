//! What a queue that reads TCP headers finds there.
//!
//! A queue sees a packet's size, flow, DSCP and ECN bits ([`redtail_core::Packet`]); the few that look
//! deeper ask the [`Sink`](crate::Sink), which knows what the packets carry.

/// Most blocks that a SACK option holds (RFC 2018, section 3).
pub const MAX_SACK_BLOCKS: usize = 4;

/// A TCP header, in its fields (RFC 9293, section 3.1) and those of its options that queues heed.
/// Sequence numbers are offsets in the byte stream, without wrap-around.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpHeader {
    /// The same number for all packets with the same addresses and ports.
    pub tuple: u64,
    /// Control bits as they stand in the header, AE above the byte of flags.
    pub flags: u16,
    /// Next byte expected from the peer, if `flags` has ACK.
    pub ack: u64,
    /// Bytes of payload.
    pub payload: u32,
    /// TSval and TSecr, if there is a timestamp (RFC 7323).
    pub timestamps: Option<(u32, u32)>,
    /// First byte of each SACK block and the byte after its last; an empty one ends the list.
    pub sack: [(u64, u64); MAX_SACK_BLOCKS],
    /// Whether there is an option besides timestamps and SACK.
    pub other_options: bool,
}

impl TcpHeader {
    /// FIN.
    pub const FIN: u16 = 0x001;
    /// SYN.
    pub const SYN: u16 = 0x002;
    /// RST.
    pub const RST: u16 = 0x004;
    /// PSH.
    pub const PSH: u16 = 0x008;
    /// ACK.
    pub const ACK: u16 = 0x010;
    /// URG.
    pub const URG: u16 = 0x020;
    /// ECE (RFC 3168).
    pub const ECE: u16 = 0x040;
    /// CWR (RFC 3168).
    pub const CWR: u16 = 0x080;
    /// AE (RFC 9768).
    pub const AE: u16 = 0x100;

    /// The SACK blocks.
    pub fn blocks(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let blocks = self.sack.iter().copied();
        blocks.take_while(|(start, end)| start != end)
    }
}
