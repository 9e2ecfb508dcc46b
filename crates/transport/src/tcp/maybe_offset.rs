//! An offset in a stream of bytes, or none.

/// An offset or none, in half the memory of an option: the offset plus 1, or 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MaybeOffset(u64);

impl MaybeOffset {
    pub const NONE: Self = Self(0);

    pub fn at(offset: u64) -> Self {
        Self(offset + 1)
    }

    pub fn get(self) -> Option<u64> {
        self.0.checked_sub(1)
    }

    /// Whether `ack` acknowledges everything below it. It does if there is none.
    #[inline]
    pub fn is_reached_by(self, ack: u64) -> bool {
        self.0 <= ack + 1
    }
}
