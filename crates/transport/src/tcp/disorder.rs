//! What a receiver knows of data that arrived out of order or again.

use redtail_core::prefetch;

use super::ranges::{self, Ranges};
use crate::segment::SackBlock;

/// The data that arrived out of order or again. It takes no memory until the first such segment, so that other
/// receivers stay small.
#[derive(Clone, Debug, Default)]
pub(super) struct Disorder(Option<Box<Known>>);

/// What is known of this data.
#[derive(Clone, Debug, Default)]
pub(super) struct Known {
    /// The ranges that arrived above the next byte expected.
    pub above: Ranges,
    /// The ranges of `above`, the most recently changed first; empty without selective acknowledgements.
    pub recent: Vec<SackBlock>,
    /// The duplicate to report (D-SACK).
    pub duplicate: Option<SackBlock>,
}

impl Disorder {
    /// Becomes that of a receiver to which nothing has come. Keeps memory.
    pub fn renew(&mut self, _fresh: &Self) {
        if let Some(known) = &mut self.0 {
            known.above.clear();
            known.recent.clear();
            known.duplicate = None;
        }
    }

    /// What is known, to be changed.
    pub fn change(&mut self) -> &mut Known {
        self.0.get_or_insert_default()
    }

    /// The ranges above the next byte expected.
    pub fn above(&self) -> &Ranges {
        let known = self.0.as_ref();
        known.map_or(&ranges::NONE, |known| &known.above)
    }

    /// The ranges above the next byte expected, the most recently changed first, for selective acknowledgements.
    pub fn recent(&self) -> &[SackBlock] {
        let known = self.0.as_ref();
        known.map_or(&[], |known| &known.recent)
    }

    /// Whether a duplicate is to be reported.
    #[inline]
    pub fn has_duplicate(&self) -> bool {
        let known = self.0.as_ref();
        known.is_some_and(|known| known.duplicate.is_some())
    }

    /// The duplicate to report, which is then no longer kept.
    pub fn take_duplicate(&mut self) -> Option<SackBlock> {
        self.0.as_mut()?.duplicate.take()
    }

    /// Prefetches into the cache what is read for the next segment.
    pub fn prefetch(&self) {
        self.above().as_slice().first().map(prefetch);
        self.recent().first().map(prefetch);
    }
}
