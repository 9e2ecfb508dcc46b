//! Distributions of times as counts in bins that are the same in every run, so that runs can be
//! compared and averaged bin by bin.
//!
//! Bin k ends at 10^(k/n) s, with n bins to a factor of ten. A time of zero is a bin of its own. The
//! times come from histograms with two or three significant digits, whose steps are narrower.

use std::sync::LazyLock;

use crate::histogram::Histogram;
use crate::result::Histograms;
use crate::statistics::TallyDistributions;

/// The time from a packet's arrival at a queue to the start of its transmission.
pub const QUEUE_DELAY: &str = "queue_delay";
/// The time from one drop at a queue to the next.
pub const LOSS_GAP: &str = "loss_gap";
/// The time from the sending of a packet of a UDP flow, or of TCP data, to its arrival at the receiver.
pub const ONE_WAY_DELAY: &str = "one_way_delay";
/// The one-way delay above its least value.
pub const PDV: &str = "pdv";
/// The time from the sending of a TCP segment to its acknowledgement.
pub const ROUND_TRIP: &str = "round_trip";

/// The bins of a distribution.
#[derive(Clone, Debug)]
pub struct Bins {
    /// The largest value in each bin, and its upper end in seconds. The first bin has only zero.
    ends: Vec<(u64, f64)>,
}

/// The longest time that has a bin of its own: longer ones share the last. No run is so long.
const LONGEST_S: f64 = 1e8;

/// Of distributions in nanoseconds: each bin is 2.3 % wide.
static OF_DELAYS: LazyLock<Bins> = LazyLock::new(|| Bins::new(1e-9, 100.0));

impl Bins {
    /// The bins of a histogram that counts in units of `unit` seconds, `per_decade` to a factor of ten.
    pub fn new(unit: f64, per_decade: f64) -> Self {
        let of = |value: u64| (libm::log10(value as f64 * unit) * per_decade).ceil();
        let end = |bin: f64| libm::pow(10.0, bin / per_decade);
        let last = |bin: f64, end: f64| {
            let mut value = (end / unit) as u64;
            while of(value + 1) <= bin {
                value += 1;
            }
            while value > 0 && of(value) > bin {
                value -= 1;
            }
            value
        };
        let first = of(1);
        let count = libm::log10(LONGEST_S / unit) * per_decade;
        let bins = (0..=count as u32).map(|i| first + f64::from(i));
        let mut ends = vec![(0, 0.0)];
        ends.extend(bins.map(|bin| {
            let end = end(bin);
            (last(bin, end), end)
        }));
        if let Some((last, _)) = ends.last_mut() {
            *last = u64::MAX;
        }
        Self { ends }
    }
}

/// Calls `row` with the upper end in seconds and the count of each bin that is not empty, in the
/// order of time. A step of the histogram that lies in two bins counts in the upper one.
pub fn each_bin<const BITS: u32>(
    histogram: &Histogram<BITS>,
    bins: &Bins,
    mut row: impl FnMut(f64, u64),
) {
    let mut steps = histogram.steps().peekable();
    while let Some(first) = steps.peek() {
        let bin = bins.ends.partition_point(|&(last, _)| last < first.highest);
        let (last, end) = bins.ends[bin];
        let mut count = 0;
        while let Some(step) = steps.next_if(|step| step.highest <= last) {
            count += step.count;
        }
        row(end, count);
    }
}

impl Histograms {
    /// Adds a distribution, unless it is empty. The histogram counts nanoseconds.
    pub fn add<const BITS: u32>(&mut self, name: String, histogram: Option<&Histogram<BITS>>) {
        let Some(histogram) = histogram.filter(|histogram| !histogram.is_empty()) else {
            return;
        };
        let number = self.names.len() as u32;
        each_bin(histogram, &OF_DELAYS, |end, count| {
            self.rows.distribution.push(number);
            self.rows.up_to_s.push(end);
            self.rows.count.push(count);
        });
        self.names.push(name);
    }

    /// Adds all of `others`.
    pub fn append(&mut self, others: Self) {
        let first = self.names.len() as u32;
        let numbers = others.rows.distribution.iter();
        self.rows
            .distribution
            .extend(numbers.map(|number| first + number));
        self.rows.up_to_s.extend(others.rows.up_to_s);
        self.rows.count.extend(others.rows.count);
        self.names.extend(others.names);
    }

    /// Adds the distributions of a group or of all at a link.
    pub fn add_tally(&mut self, prefix: &str, tally: &TallyDistributions) {
        self.add(format!("{prefix}{QUEUE_DELAY}"), Some(&tally.delays));
        self.add(format!("{prefix}{LOSS_GAP}"), tally.loss_gaps.as_deref());
    }
}

#[cfg(test)]
mod tests {
    use redtail_core::Span;

    use super::*;
    use crate::statistics::Delays;

    #[test]
    fn a_bin_holds_the_times_from_the_end_of_the_one_before_to_its_own() {
        let mut delays = Delays::default();
        let times = [0, 0, 1000, 10_000_000, 10_000_001, 10_400_000, 11_000_000];
        for ns in times {
            delays.record(Span::from_ps(ns * 1000));
        }
        let mut found = Histograms::default();
        found.add("delay".to_owned(), delays.histogram());
        assert_eq!(found.names, ["delay"]);
        assert_eq!(found.rows.count.iter().sum::<u64>(), times.len() as u64);
        assert_eq!(found.rows.up_to_s[0], 0.0);
        assert_eq!(found.rows.count[0], 2);
        assert!((found.rows.up_to_s[1] - 1e-6).abs() < 1e-15);
        let last = found.rows.up_to_s.len() - 1;
        // log10(1.1) * 100 = 4.14: the fifth.
        assert!((found.rows.up_to_s[last] - 0.01 * 10f64.powf(0.05)).abs() < 1e-9);
        assert_eq!(found.rows.count[last], 1);
    }

    #[test]
    fn every_value_is_in_the_bin_that_its_logarithm_gives() {
        for (unit, per_decade) in [(1e-9, 100.0), (1e-6, 50.0)] {
            let bins = Bins::new(unit, per_decade);
            let of = |value: u64| (libm::log10(value as f64 * unit) * per_decade).ceil();
            assert!(bins.ends.is_sorted_by(|one, next| one.1 < next.1));
            let mut value = 1u64;
            while value < 1 << 40 {
                let place = bins.ends.partition_point(|&(last, _)| last < value);
                let expected = libm::pow(10.0, of(value) / per_decade);
                assert_eq!(bins.ends[place].1, expected, "{value}");
                value = value * 9 / 8 + 1;
            }
        }
    }

    #[test]
    fn no_value_is_lost_or_counted_twice() {
        // Both widths of steps.
        count_all::<7>();
        count_all::<10>();
    }

    fn count_all<const BITS: u32>() {
        let bins = Bins::new(1e-9, 100.0);
        let mut histogram = Histogram::<BITS>::default();
        let mut expected: Vec<(f64, u64)> = Vec::new();
        let mut value = 0u64;
        while value < 1 << 36 {
            histogram.record(value);
            let mut alone = Histogram::<BITS>::default();
            alone.record(value);
            let top = alone.value_at_quantile(1.0);
            let place = bins.ends.partition_point(|&(last, _)| last < top);
            match expected.last_mut() {
                Some((end, count)) if *end == bins.ends[place].1 => *count += 1,
                _ => expected.push((bins.ends[place].1, 1)),
            }
            value = value * 65 / 64 + 1;
        }
        let mut found = Vec::new();
        each_bin(&histogram, &bins, |end, count| found.push((end, count)));
        assert_eq!(found, expected);
    }

    #[test]
    fn nothing_recorded_is_no_distribution() {
        let mut found = Histograms::default();
        found.add("delay".to_owned(), Delays::default().histogram());
        assert_eq!(found, Histograms::default());
    }
}
