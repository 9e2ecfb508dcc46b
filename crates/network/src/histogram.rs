//! Histograms with a constant relative width of their steps.
//!
//! The steps are those of HdrHistogram (G. Tene, <http://hdrhistogram.org>): values below 2^(`BITS` + 1) are steps of
//! their own, and from there on each factor of two is divided into 2^`BITS` steps. A time is recorded for each packet
//! at each queue, and takes a third of the instructions that the crate `hdrhistogram` needs (docs/performance.md). The
//! tests compare the two.

use std::ops::Range;

/// Three significant digits: a step is at most a thousandth of its values.
pub type ThreeDigits = Histogram<10>;

/// Two significant digits: a step is at most a hundredth of its values.
pub type TwoDigits = Histogram<7>;

/// Rows: one for the values below 2^(`BITS` + 1), and one for each factor of two above.
const ROWS: usize = 64;

/// Counts of values.
#[derive(Clone, Debug)]
pub struct Histogram<const BITS: u32> {
    /// Where the counts of each row begin, less the column of its first value, modulo 2^32; [`NONE`] for a row without
    /// values, which takes no memory.
    starts: [u32; ROWS],
    /// The counts of a row are beside one another, the rows in the order of their first values in time.
    counts: Vec<u64>,
}

/// With any column no place in the counts.
const NONE: u32 = 1 << 31;

/// Values that are counted together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// The least of them.
    pub lowest: u64,
    /// The greatest of them.
    pub highest: u64,
    /// How many were recorded.
    pub count: u64,
}

impl<const BITS: u32> Default for Histogram<BITS> {
    fn default() -> Self {
        Self {
            starts: [NONE; ROWS],
            counts: Vec::new(),
        }
    }
}

impl<const BITS: u32> Histogram<BITS> {
    /// The columns of a row, except the first row, which has as many again before them.
    const COLUMNS: usize = 1 << BITS;

    /// The row and the column of a value.
    #[inline]
    fn place(value: u64) -> (usize, u32) {
        let first = (2 << BITS) - 1;
        let row = (value | first).ilog2() - BITS;
        (row as usize, (value >> row) as u32)
    }

    /// The first column of a row.
    fn first_column(row: usize) -> usize {
        if row == 0 { 0 } else { Self::COLUMNS }
    }

    /// The values of a row and a column.
    fn step(row: usize, column: usize) -> (u64, u64) {
        let lowest = (column as u64) << row;
        (lowest, lowest + ((1 << row) - 1))
    }

    /// Counts a value.
    #[inline]
    pub fn record(&mut self, value: u64) {
        let (row, column) = Self::place(value);
        let index = self.starts[row % ROWS].wrapping_add(column) as usize;
        match self.counts.get_mut(index) {
            Some(count) => *count += 1,
            None => self.row(row)[column as usize - Self::first_column(row)] += 1,
        }
    }

    /// The counts of a row, which is added if it has none.
    #[cold]
    fn row(&mut self, row: usize) -> &mut [u64] {
        let first = Self::first_column(row);
        if self.starts[row] == NONE {
            self.starts[row] = (self.counts.len() as u32).wrapping_sub(first as u32);
            let columns = 2 * Self::COLUMNS - first;
            self.counts.resize(self.counts.len() + columns, 0);
        }
        let places = self.places(row);
        &mut self.counts[places]
    }

    /// Where the counts of a row with values are.
    fn places(&self, row: usize) -> Range<usize> {
        let first = Self::first_column(row);
        let start = self.starts[row].wrapping_add(first as u32) as usize;
        start..start + 2 * Self::COLUMNS - first
    }

    /// Adds the counts of `other`.
    pub fn add(&mut self, other: &Self) {
        for (row, counts) in other.rows() {
            let sums = self.row(row).iter_mut();
            sums.zip(counts).for_each(|(sum, count)| *sum += count);
        }
    }

    /// How many values were recorded.
    pub fn len(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Whether none were.
    pub fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }

    /// The rows with values, the least values first.
    fn rows(&self) -> impl Iterator<Item = (usize, &[u64])> {
        let known = (0..ROWS).filter(|&row| self.starts[row] != NONE);
        known.map(|row| (row, &self.counts[self.places(row)]))
    }

    /// The steps with values, the least values first.
    pub fn steps(&self) -> impl Iterator<Item = Step> {
        self.rows().flat_map(|(row, counts)| {
            let columns = Self::first_column(row)..;
            let counted = columns.zip(counts).filter(|&(_, &count)| count > 0);
            counted.map(move |(column, &count)| {
                let (lowest, highest) = Self::step(row, column);
                Step {
                    lowest,
                    highest,
                    count,
                }
            })
        })
    }

    /// The greatest value of the step that the share `q` of the values does not exceed, the least one for q = 0; zero
    /// if there are none.
    pub fn value_at_quantile(&self, q: f64) -> u64 {
        let rank = (q.min(1.0) * self.len() as f64).ceil().max(1.0) as u64;
        let mut passed = 0;
        for (row, counts) in self.rows() {
            // To add up a row takes less than to look at each of its steps.
            let with_row = passed + counts.iter().sum::<u64>();
            if with_row < rank {
                passed = with_row;
                continue;
            }
            let reached = counts.iter().position(|count| {
                passed += count;
                passed >= rank
            });
            let column = Self::first_column(row) + reached.unwrap_or_default();
            let (lowest, highest) = Self::step(row, column);
            return if q > 0.0 { highest } else { lowest };
        }
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use proptest::prelude::*;

    /// Compares with the crate from which the steps are.
    fn compare<const BITS: u32>(digits: u8, values: &[u64]) -> Result<(), TestCaseError> {
        let mut ours = Histogram::<BITS>::default();
        let mut theirs = hdrhistogram::Histogram::<u64>::new(digits).expect("1 to 5 digits");
        let (first, others) = values.split_at(values.len() / 2);
        for value in first {
            ours.record(*value);
            theirs.record(*value).expect("it grows");
        }
        let mut added = Histogram::<BITS>::default();
        for value in others {
            added.record(*value);
            theirs.record(*value).expect("it grows");
        }
        ours.add(&added);
        prop_assert_eq!(ours.len(), theirs.len());
        prop_assert_eq!(ours.is_empty(), theirs.is_empty());
        for q in [0.0, 1e-9, 0.25, 0.5, 0.95, 0.99, 1.0, 2.0] {
            prop_assert_eq!(ours.value_at_quantile(q), theirs.value_at_quantile(q));
        }
        let expected = theirs.iter_recorded().map(|at| Step {
            lowest: theirs.lowest_equivalent(at.value_iterated_to()),
            highest: theirs.highest_equivalent(at.value_iterated_to()),
            count: at.count_at_value(),
        });
        prop_assert!(ours.steps().eq(expected));
        Ok(())
    }

    proptest! {
        #[test]
        fn it_counts_as_hdrhistogram_does(
            values in proptest::collection::vec(
                prop_oneof![0u64..20, 100u64..3000, (0u32..60).prop_flat_map(|bits| 0..1u64 << bits)],
                0..200,
            ),
        ) {
            compare::<10>(3, &values)?;
            compare::<7>(2, &values)?;
        }
    }

    #[test]
    fn the_greatest_values_have_steps() {
        let mut histogram = ThreeDigits::default();
        histogram.record(u64::MAX);
        histogram.record(1 << 63);
        assert_eq!(histogram.value_at_quantile(1.0), u64::MAX);
        assert_eq!(histogram.value_at_quantile(0.0), 1 << 63);
    }
}
