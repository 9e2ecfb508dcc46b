//! Distributions of times as counts in bins that are the same in every run, so that runs can be
//! compared and averaged bin by bin.
//!
//! Bin k ends at 10^(k/n) s, with n bins to a factor of ten. A time of zero is a bin of its own. The
//! times come from histograms with two or three significant digits (hdrhistogram), whose steps are
//! narrower.

use hdrhistogram::Histogram;

use crate::result::Histograms;
use crate::statistics::TallyDistributions;

/// The time from a packet's arrival at a queue to the start of its transmission.
pub const QUEUE_DELAY: &str = "queue_delay";
/// The time from one drop at a queue to the next.
pub const LOSS_GAP: &str = "loss_gap";
/// The time from the sending of a UDP packet to its arrival at the receiver.
pub const ONE_WAY_DELAY: &str = "one_way_delay";

/// The bins of a distribution.
#[derive(Clone, Copy, Debug)]
pub struct Bins {
    /// What the histogram counts in, in seconds.
    pub unit: f64,
    /// Bins per factor of ten.
    pub per_decade: f64,
}

/// Of distributions in nanoseconds: each bin is 2.3 % wide.
const OF_DELAYS: Bins = Bins {
    unit: 1e-9,
    per_decade: 100.0,
};

impl Bins {
    /// The number of the bin of a value above zero.
    fn of(self, value: u64) -> f64 {
        (libm::log10(value as f64 * self.unit) * self.per_decade).ceil()
    }

    /// The upper end of a bin in seconds.
    fn end(self, bin: f64) -> f64 {
        libm::pow(10.0, bin / self.per_decade)
    }

    /// The largest value in a bin.
    fn last(self, bin: f64) -> u64 {
        let mut value = (self.end(bin) / self.unit) as u64;
        while self.of(value + 1) <= bin {
            value += 1;
        }
        while value > 0 && self.of(value) > bin {
            value -= 1;
        }
        value
    }
}

/// Calls `row` with the upper end in seconds and the count of each bin that is not empty, in the
/// order of time.
pub fn each_bin(histogram: &Histogram<u64>, bins: Bins, mut row: impl FnMut(f64, u64)) {
    // The present bin: its end, the largest value in it, and the values counted.
    let mut present: Option<(f64, u64, u64)> = None;
    for step in histogram.iter_recorded() {
        let (value, more) = (step.value_iterated_to(), step.count_since_last_iteration());
        match &mut present {
            Some((_, last, count)) if value <= *last => *count += more,
            _ => {
                if let Some((end, _, count)) = present {
                    row(end, count);
                }
                present = Some(if value == 0 {
                    (0.0, 0, more)
                } else {
                    let bin = bins.of(value);
                    (bins.end(bin), bins.last(bin), more)
                });
            }
        }
    }
    if let Some((end, _, count)) = present {
        row(end, count);
    }
}

impl Histograms {
    /// Adds a distribution, unless it is empty. The histogram counts nanoseconds.
    pub fn add(&mut self, name: String, histogram: Option<&Histogram<u64>>) {
        let Some(histogram) = histogram.filter(|histogram| !histogram.is_empty()) else {
            return;
        };
        let number = self.names.len() as u32;
        each_bin(histogram, OF_DELAYS, |end, count| {
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
            let bins = Bins { unit, per_decade };
            let mut value = 1u64;
            while value < 1 << 40 {
                let bin = bins.of(value);
                let last = bins.last(bin);
                assert!(value <= last, "{value} {last}");
                assert!(bins.of(last) <= bin && bins.of(last + 1) > bin);
                value = value * 9 / 8 + 1;
            }
        }
    }

    #[test]
    fn nothing_recorded_is_no_distribution() {
        let mut found = Histograms::default();
        found.add("delay".to_owned(), Delays::default().histogram());
        assert_eq!(found, Histograms::default());
    }
}
