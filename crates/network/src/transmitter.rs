//! The rate of a link, or of a host's own link.

use redtail_core::{Bytes, Rate, Span};

/// A transmitter's rate, with what it takes to know a transmission time without a division, which costs more
/// than the rest of the work for a packet.
#[derive(Clone, Debug)]
pub struct Transmitter {
    rate: Rate,
    /// The transmission time of a byte, in picoseconds, if it is a whole number; otherwise 0.
    per_byte: u64,
    /// The latest size and its transmission time, for other rates: most packets have the size of the one before.
    latest: (u32, Span),
}

impl Transmitter {
    /// A transmitter of this rate.
    pub(crate) fn new(rate: Rate) -> Self {
        // Below 2^32 no size can take longer than a span holds.
        let per_byte = rate.tx_time(Bytes::new(1)).as_ps();
        let exact = Rate::FASTEST.as_bps().is_multiple_of(rate.as_bps());
        Self {
            rate,
            per_byte: if exact && per_byte < 1 << 32 {
                per_byte
            } else {
                0
            },
            latest: (0, Span::ZERO),
        }
    }

    /// Transmission rate.
    pub fn rate(&self) -> Rate {
        self.rate
    }

    /// How long the transmission of `size` bytes takes.
    #[inline]
    pub fn time(&mut self, size: u32) -> Span {
        if self.per_byte > 0 {
            return Span::from_ps(u64::from(size) * self.per_byte);
        }
        if self.latest.0 != size {
            self.latest = (size, self.rate.tx_time(Bytes::new(u64::from(size))));
        }
        self.latest.1
    }
}
