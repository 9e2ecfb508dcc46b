//! The segments that two TCP endpoints exchange.

use redtail_core::Ecn;

/// The control bits of a segment (RFC 9293, section 3.1; AE: RFC 9768).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags(u8);

impl Flags {
    /// No bit set.
    pub const NONE: Self = Self(0);
    /// No more data from the sender of this segment; takes a sequence number.
    pub const FIN: Self = Self(0x01);
    /// Synchronise: opens a connection.
    pub const SYN: Self = Self(0x02);
    /// Accurate ECN (RFC 9768). In the header it precedes the byte of flags. Here it has the bit of
    /// RST, which is never sent.
    pub const AE: Self = Self(0x04);
    /// Push: the application wrote up to here.
    pub const PSH: Self = Self(0x08);
    /// The acknowledgement field is valid.
    pub const ACK: Self = Self(0x10);
    /// ECN echo (RFC 3168).
    pub const ECE: Self = Self(0x40);
    /// Congestion window reduced (RFC 3168).
    pub const CWR: Self = Self(0x80);

    /// The bits in the order of the header, with AE above the byte of flags.
    #[inline]
    pub const fn bits(self) -> u16 {
        let byte = (self.0 & !Self::AE.0) as u16;
        if self.contains(Self::AE) {
            byte | 0x100
        } else {
            byte
        }
    }

    /// The ACE field: AE, CWR and ECE as a number of three bits (RFC 9768, section 3.2.2).
    #[inline]
    pub const fn ace(self) -> u8 {
        (self.bits() >> 6) as u8
    }

    /// The flags whose ACE field holds the lower three bits of `count`.
    #[inline]
    pub const fn from_ace(count: u8) -> Self {
        Self((count & 3) << 6 | (count & 4))
    }

    /// These bits without those of the ACE field.
    #[inline]
    #[must_use]
    pub const fn without_ace(self) -> Self {
        Self(self.0 & !(Self::AE.0 | Self::CWR.0 | Self::ECE.0))
    }

    /// Whether all bits of `other` are set.
    #[inline]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether any bit of `other` is set.
    #[inline]
    pub const fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
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
        // Without a branch: every second segment is pushed.
        Self(self.0 | other.0 & (on as u8).wrapping_neg())
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
/// The first may report a duplicate (D-SACK, RFC 2883): it is then below the acknowledgement, or
/// within the second.
///
/// Stored as signed offsets from the acknowledgement, to keep packets small. An offset above it is
/// at most a receive window, below 2^30 (RFC 7323). Duplicates more than 2^31 below it are not
/// reported.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SackBlocks {
    /// An empty block ends the list.
    blocks: [(i32, i32); MAX_SACK_BLOCKS],
}

impl SackBlocks {
    /// Appends a block to the option of a segment that acknowledges `ack`. A block beyond the
    /// maximum number, or too far from `ack`, is left out.
    pub fn push(&mut self, ack: u64, block: SackBlock) {
        let offset = |position: u64| i32::try_from(position.wrapping_sub(ack).cast_signed());
        let free = self.blocks.iter_mut().find(|slot| slot.0 == slot.1);
        if let Some(slot) = free
            && let (Ok(start), Ok(end)) = (offset(block.start), offset(block.end))
        {
            *slot = (start, end);
        }
    }

    /// Whether there is no block.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.blocks[0].0 == self.blocks[0].1
    }

    /// The blocks, given the acknowledgement with which they were built.
    pub fn iter(&self, ack: u64) -> impl Iterator<Item = SackBlock> + use<> {
        let blocks = self.blocks.into_iter();
        let blocks = blocks.take_while(|(start, end)| start != end);
        blocks.map(move |(start, end)| SackBlock {
            start: ack.wrapping_add_signed(i64::from(start)),
            end: ack.wrapping_add_signed(i64::from(end)),
        })
    }

    /// The first block, if it reports a duplicate (RFC 2883, section 4: it is below the
    /// acknowledgement, or within the second).
    pub fn duplicate(&self, ack: u64) -> Option<SackBlock> {
        let mut blocks = self.iter(ack);
        let first = blocks.next()?;
        let within = |second: SackBlock| second.start <= first.start && first.end <= second.end;
        let doubled = first.end <= ack || blocks.next().is_some_and(within);
        (doubled && first.start < first.end).then_some(first)
    }
}

/// A counter of bytes modulo 2^24, as the AccECN option has them (RFC 9768,
/// section 3.2.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ByteCounter([u8; 3]);

impl ByteCounter {
    /// Counts `bytes` more.
    #[inline]
    pub fn add(&mut self, bytes: u32) {
        *self = Self::from(self.get().wrapping_add(bytes));
    }

    /// Its value, below 2^24.
    #[inline]
    pub fn get(self) -> u32 {
        let [a, b, c] = self.0;
        u32::from_be_bytes([0, a, b, c])
    }

    /// The increase since the value `earlier`, modulo 2^24.
    #[inline]
    pub fn since(self, earlier: Self) -> u32 {
        self.get().wrapping_sub(earlier.get()) & 0x00ff_ffff
    }
}

impl From<u32> for ByteCounter {
    /// The lower 24 bits.
    fn from(value: u32) -> Self {
        let [_, a, b, c] = value.to_be_bytes();
        Self([a, b, c])
    }
}

/// The AccECN option: payload bytes that arrived since the start, by codepoint (RFC 9768, section
/// 3.2.3); zero without it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EcnBytes {
    /// With the codepoint that the sender uses, ECT(0) or ECT(1).
    pub ect: ByteCounter,
    /// With a mark (CE).
    pub ce: ByteCounter,
}

/// A TCP segment, a cache line long. Sequence numbers are offsets in the byte stream, from 0 and
/// without wrap-around; SYN takes none, FIN the one after the last byte.
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
    /// Timestamp at which it was sent, in microseconds modulo 2^32 (RFC 7323, TSval); 0 without
    /// timestamps.
    pub ts_val: u32,
    /// The timestamp that it echoes (TSecr).
    pub ts_ecr: u32,
    /// Bytes that arrived by codepoint, if the peers agreed on AccECN.
    pub ecn_bytes: EcnBytes,
    /// Control bits.
    pub flags: Flags,
    /// ECN bits of its packet, as sent or on arrival.
    pub ecn: Ecn,
}

/// What an acknowledgement says that has neither data nor options, and no control bit but ACK. Where endpoints are
/// next to each other no segment needs to be built for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlainAck {
    /// Next byte expected from the peer.
    pub ack: u64,
    /// Bytes its sender is ready to receive beyond `ack`.
    pub window: u32,
}

impl PlainAck {
    /// The segment that says it.
    #[inline]
    pub fn segment(self) -> Segment {
        Segment {
            ack: self.ack,
            window: self.window,
            flags: Flags::ACK,
            ..Segment::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_fits_a_cache_line() {
        assert_eq!(size_of::<Segment>(), 64);
    }

    #[test]
    fn the_ace_field_holds_three_bits_that_stand_together_in_the_header() {
        for count in 0..8 {
            let flags = Flags::ACK.with(Flags::from_ace(count));
            assert_eq!(flags.ace(), count);
            assert_eq!(flags.bits(), u16::from(count) << 6 | Flags::ACK.bits());
        }
    }

    #[test]
    fn a_byte_counter_wraps_at_24_bits() {
        let mut counter = ByteCounter::from(0x00ff_fff0);
        let earlier = counter;
        counter.add(0x20);
        assert_eq!((counter.get(), counter.since(earlier)), (0x10, 0x20));
    }
}
