//! Sets of byte ranges, such as those that arrived out of order or are selectively acknowledged.

use crate::segment::SackBlock;

/// Disjoint, non-adjacent ranges in ascending order.
///
/// A sorted vector, because there are rarely more than a few ranges and most changes are at the
/// upper end.
#[derive(Clone, Debug, Default)]
pub struct Ranges(Vec<SackBlock>);

/// The empty set.
pub(super) static NONE: Ranges = Ranges(Vec::new());

impl Ranges {
    /// The ranges, lowest first.
    #[inline]
    pub fn as_slice(&self) -> &[SackBlock] {
        &self.0
    }

    /// Whether the set is empty.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Bytes in the set.
    pub fn bytes(&self) -> u64 {
        self.0.iter().map(|range| range.end - range.start).sum()
    }

    /// The start of the lowest range.
    #[inline]
    pub fn lowest(&self) -> Option<u64> {
        self.0.first().map(|range| range.start)
    }

    /// The end of the highest range.
    #[inline]
    pub fn highest(&self) -> Option<u64> {
        self.0.last().map(|range| range.end)
    }

    /// The end of the range that holds `position`; `position` if none does.
    pub fn end_of(&self, position: u64) -> u64 {
        let below = self.0.partition_point(|range| range.end <= position);
        let range = self.0.get(below).filter(|range| range.start <= position);
        range.map_or(position, |range| range.end)
    }

    /// Adds `new`, calls `on_gap` for each part that was not in the set yet
    /// (lowest first), and returns the range that now holds it.
    #[inline(always)] // into the two that call it
    pub fn insert(&mut self, new: SackBlock, mut on_gap: impl FnMut(SackBlock)) -> SackBlock {
        // Most extend the highest range.
        if let Some(top) = self.0.last_mut()
            && top.start <= new.start
            && new.start <= top.end
        {
            if top.end < new.end {
                on_gap(SackBlock {
                    start: top.end,
                    end: new.end,
                });
                top.end = new.end;
            }
            return *top;
        }
        // The ranges that touch or overlap `new` are [first, last). None does if it is above all others.
        let count = self.0.len();
        let (first, last) = match self.0.last() {
            Some(top) if top.end < new.start => (count, count),
            _ => {
                let first = self.0.partition_point(|range| range.end < new.start);
                // Most blocks below the upper end have been reported before.
                if let Some(range) = self.0.get(first)
                    && range.start <= new.start
                    && new.end <= range.end
                {
                    return *range;
                }
                let above = self.0[first..].partition_point(|range| range.start <= new.end);
                (first, first + above)
            }
        };
        if first == last {
            on_gap(new);
            self.0.insert(first, new);
            return new;
        }
        let mut position = new.start;
        for range in &self.0[first..last] {
            if position < range.start {
                on_gap(SackBlock {
                    start: position,
                    end: range.start,
                });
            }
            position = position.max(range.end);
        }
        if position < new.end {
            on_gap(SackBlock {
                start: position,
                end: new.end,
            });
        }
        let merged = SackBlock {
            start: self.0[first].start.min(new.start),
            end: position.max(new.end),
        };
        self.0[first] = merged;
        if last > first + 1 {
            self.0.drain(first + 1..last);
        }
        merged
    }

    /// Removes everything below `position`.
    #[inline]
    pub fn remove_below(&mut self, position: u64) {
        if self.0.first().is_none_or(|range| range.start >= position) {
            return;
        }
        let gone = self.0.partition_point(|range| range.end <= position);
        self.0.drain(..gone);
        self.give_back();
        if let Some(range) = self.0.first_mut() {
            range.start = range.start.max(position);
        }
    }

    /// Removes and returns the lowest range if it starts at or below `position`.
    #[inline]
    pub fn take_reaching(&mut self, position: u64) -> Option<SackBlock> {
        let lowest = *self.0.first()?;
        if lowest.start > position {
            return None;
        }
        self.0.remove(0);
        self.give_back();
        Some(lowest)
    }

    /// Releases the memory that a burst of losses needed.
    #[inline]
    fn give_back(&mut self) {
        const SMALL: usize = 4;
        if self.0.is_empty() && self.0.capacity() > SMALL {
            self.0.shrink_to(SMALL);
        }
    }

    /// Empties the set.
    pub fn clear(&mut self) {
        self.0.clear();
        self.give_back();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn block(start: u64, end: u64) -> SackBlock {
        SackBlock { start, end }
    }

    proptest! {
        #[test]
        fn ranges_agree_with_a_set_of_bytes(
            inserts in proptest::collection::vec((0u64..60, 1u64..15), 1..25),
            cut in 0u64..70,
        ) {
            let mut ranges = Ranges::default();
            let mut bytes = [false; 80];
            for (start, len) in inserts {
                let new = block(start, start + len);
                let mut fresh = Vec::new();
                let holder = ranges.insert(new, |gap| fresh.extend(gap.start..gap.end));
                let expected: Vec<u64> = (new.start..new.end).filter(|&b| !bytes[b as usize]).collect();
                prop_assert_eq!(fresh, expected);
                bytes[new.start as usize..new.end as usize].fill(true);
                prop_assert!(holder.start <= new.start && new.end <= holder.end);
                prop_assert!(ranges.as_slice().contains(&holder));
                prop_assert!(ranges.as_slice().windows(2).all(|w| w[0].end < w[1].start));
            }
            ranges.remove_below(cut);
            bytes[..cut as usize].fill(false);
            for (b, &present) in bytes.iter().enumerate() {
                let b = b as u64;
                let held = ranges.as_slice().iter().any(|r| r.start <= b && b < r.end);
                prop_assert_eq!(held, present);
            }
        }
    }
}
