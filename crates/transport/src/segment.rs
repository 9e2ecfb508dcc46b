//! What travels between two TCP endpoints.

use redtail_core::Ecn;

/// The control bits of a segment (RFC 9293, section 3.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags(u8);

impl Flags {
    /// No bit set.
    pub const NONE: Self = Self(0);
    /// Synchronise: opens a connection.
    pub const SYN: Self = Self(0x02);
    /// The acknowledgement field is valid.
    pub const ACK: Self = Self(0x10);
    /// ECN echo (RFC 3168).
    pub const ECE: Self = Self(0x40);
    /// Congestion window reduced (RFC 3168).
    pub const CWR: Self = Self(0x80);

    /// As they stand in the header's byte of flags.
    #[inline]
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// Whether all bits of `other` are set.
    #[inline]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// These bits and those of `other`.
    #[inline]
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// These bits, and those of `other` if `on`.
    #[inline]
    #[must_use]
    pub const fn with_if(self, on: bool, other: Self) -> Self {
        if on { self.with(other) } else { self }
    }
}

/// A run of received bytes above the cumulative acknowledgement (RFC 2018).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SackBlock {
    /// First byte received.
    pub start: u64,
    /// The byte after the last one received.
    pub end: u64,
}

/// Most SACK blocks in a segment: what fits beside timestamps (RFC 2018, section 3).
pub const MAX_SACK_BLOCKS: usize = 3;

/// The SACK option: up to three blocks, the most recently received first.
///
/// Kept as offsets from the acknowledgement, which keeps packets small; an
/// offset is at most a receive window, below 2^30 (RFC 7323).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SackBlocks {
    blocks: [(u32, u32); MAX_SACK_BLOCKS],
    count: u8,
}

impl SackBlocks {
    /// Appends a block lying above `ack`; one block too many is left out.
    pub fn push(&mut self, ack: u64, block: SackBlock) {
        if let Some(slot) = self.blocks.get_mut(usize::from(self.count)) {
            *slot = ((block.start - ack) as u32, (block.end - ack) as u32);
            self.count += 1;
        }
    }

    /// Whether there is no block.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The blocks, given the acknowledgement they were built against.
    pub fn iter(&self, ack: u64) -> impl Iterator<Item = SackBlock> + use<> {
        let (blocks, count) = (self.blocks, usize::from(self.count));
        (0..count).map(move |i| SackBlock {
            start: ack + u64::from(blocks[i].0),
            end: ack + u64::from(blocks[i].1),
        })
    }
}

/// A TCP segment. Sequence numbers are offsets in the byte stream, from 0 and
/// without wrap-around; SYN takes none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Segment {
    /// Offset of the first payload byte.
    pub seq: u64,
    /// Next byte expected from the peer, if `flags` contains ACK.
    pub ack: u64,
    /// Payload bytes.
    pub len: u32,
    /// Bytes the sender of this segment is ready to receive beyond `ack`.
    pub window: u32,
    /// Selective acknowledgements.
    pub sack: SackBlocks,
    /// Timestamp of its sending, in microseconds modulo 2^32 (RFC 7323, TSval);
    /// 0 without timestamps.
    pub ts_val: u32,
    /// The timestamp it answers (TSecr).
    pub ts_ecr: u32,
    /// Control bits.
    pub flags: Flags,
    /// ECN bits its packet is to carry, or carried on arrival.
    pub ecn: Ecn,
}
