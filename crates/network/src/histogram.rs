//! Histograms with a constant relative width of their steps.
//!
//! The steps are those of HdrHistogram (G. Tene, <http://hdrhistogram.org>): values below 2^(`BITS` + 1) are steps of
//! their own, and from there on each factor of two is divided into 2^`BITS` steps. A time is recorded for each packet
//! at each queue, and takes a third of the instructions that the crate `hdrhistogram` needs (docs/performance-log.md).
//! The tests compare the two.

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

    /// Counts a value so many times.
    pub fn record_many(&mut self, value: u64, times: u64) {
        let (row, column) = Self::place(value);
        self.row(row)[column as usize - Self::first_column(row)] += times;
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

impl<const BITS: u32> Histogram<BITS> {
    /// The same quantile when some had not ended: `lasted` has how long these had lasted, and each of them counts as
    /// at least that. Zero if nothing was recorded at all, `None` if the quantile is beyond what the values show.
    ///
    /// This is the quantile of the product-limit estimate. If all begin at the same time, those that have not ended
    /// count as later than all. One that began shortly before the end does not count among those that lasted longer.
    ///
    /// Source: E. L. Kaplan, P. Meier, "Nonparametric Estimation from Incomplete Observations", Journal of the
    /// American Statistical Association 53 (1958) 457-481.
    pub fn quantile_with_unfinished(&self, lasted: &Self, q: f64) -> Option<u64> {
        if lasted.is_empty() {
            return Some(self.value_at_quantile(q));
        }
        let mut at_risk = self.len() + lasted.len();
        let mut unfinished = lasted.steps().peekable();
        let mut longer = 1.0;
        for step in self.steps() {
            // Of the same step, what ended ended first.
            while let Some(gone) = unfinished.next_if(|it| it.lowest < step.lowest) {
                at_risk -= gone.count;
            }
            longer *= 1.0 - step.count as f64 / at_risk as f64;
            at_risk -= step.count;
            if longer <= 1.0 - q + ROUNDING {
                return Some(step.highest);
            }
        }
        None
    }
}

/// What the product of many shares may be off by.
const ROUNDING: f64 = 1e-9;

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

    fn of(values: &[u64]) -> ThreeDigits {
        let mut histogram = ThreeDigits::default();
        values.iter().for_each(|&value| histogram.record(value));
        histogram
    }

    /// 6-MP of the trial that Kaplan-Meier curves are explained with (E. J. Freireich et al., Blood 21, 1963): 21
    /// patients, 12 of them censored. The curve is 0.857 at 6, 0.807 at 7, 0.753 at 10, 0.690 at 13, 0.627 at 16,
    /// 0.538 at 22 and 0.448 at 23 weeks.
    #[test]
    fn quantiles_with_unfinished_are_those_of_the_product_limit_estimate() {
        let ended = of(&[6, 6, 6, 7, 10, 13, 16, 22, 23]);
        let lasted = of(&[6, 9, 10, 11, 17, 19, 20, 25, 32, 32, 34, 35]);
        let quantile = |q: f64| ended.quantile_with_unfinished(&lasted, q);
        assert_eq!(quantile(0.14), Some(6));
        assert_eq!(quantile(0.15), Some(7));
        assert_eq!(quantile(0.25), Some(13));
        assert_eq!(quantile(0.46), Some(22));
        assert_eq!(quantile(0.5), Some(23));
        assert_eq!(quantile(0.56), None);
    }

    #[test]
    fn what_began_with_the_others_and_did_not_end_is_later_than_all() {
        let ended = of(&[1, 2, 3, 4, 5, 6]);
        let lasted = of(&[100, 100, 100, 100]);
        let quantile = |q: f64| ended.quantile_with_unfinished(&lasted, q);
        assert_eq!(quantile(0.5), Some(5), "the fifth of ten");
        assert_eq!(quantile(0.6), Some(6));
        assert_eq!(quantile(0.61), None);
        assert_eq!(of(&[]).quantile_with_unfinished(&lasted, 0.01), None);
        // What has just begun says nothing of longer times.
        assert_eq!(
            ended.quantile_with_unfinished(&of(&[0, 0, 0, 0]), 1.0),
            Some(6)
        );
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
