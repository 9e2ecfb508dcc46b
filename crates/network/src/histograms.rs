//! Distributions of times as counts in bins that are the same in every run, so that runs can be
//! compared and averaged bin by bin.
//!
//! There are 50 bins to a factor of ten: bin k ends at 10^(k/50) s. A time of zero is a bin of its
//! own. The times come from histograms with two or three significant digits (hdrhistogram), whose
//! steps are narrower.

use hdrhistogram::Histogram;

use crate::result::Histograms;
use crate::statistics::TallyDistributions;

/// The time from a packet's arrival at a queue to the start of its transmission.
pub const QUEUE_DELAY: &str = "queue_delay";
/// The time from one drop at a queue to the next.
pub const LOSS_GAP: &str = "loss_gap";
/// The time from the sending of a UDP packet to its arrival at the receiver.
pub const ONE_WAY_DELAY: &str = "one_way_delay";

/// Bins per factor of ten in exported distributions.
const BINS_PER_DECADE: f64 = 50.0;

/// The number of the bin of a time in seconds above zero.
fn bin_of(seconds: f64) -> f64 {
    (libm::log10(seconds) * BINS_PER_DECADE).ceil()
}

/// The largest value in `bin`; a unit of values is `unit` seconds.
fn last_in(bin: f64, unit: f64) -> u64 {
    let mut value = (libm::pow(10.0, bin / BINS_PER_DECADE) / unit) as u64;
    while bin_of((value + 1) as f64 * unit) <= bin {
        value += 1;
    }
    while value > 0 && bin_of(value as f64 * unit) > bin {
        value -= 1;
    }
    value
}

/// Calls `row` with the upper end in seconds and the count of each bin that is not empty, in the
/// order of time. The histogram counts in units of `unit` seconds.
pub fn each_bin(histogram: &Histogram<u64>, unit: f64, mut row: impl FnMut(f64, u64)) {
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
                    let bin = bin_of(value as f64 * unit);
                    let end = libm::pow(10.0, bin / BINS_PER_DECADE);
                    (end, last_in(bin, unit), more)
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
        each_bin(histogram, 1e-9, |end, count| {
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
        // The bin after 10 ms ends at 10^(1/50) * 10 ms = 10.47 ms;
        let last = found.rows.up_to_s.len() - 1;
        // log10(1.1) * 50 = 2.07: the third.
        assert!((found.rows.up_to_s[last] - 0.01 * 10f64.powf(0.06)).abs() < 1e-9);
        assert_eq!(found.rows.count[last], 1);
    }

    #[test]
    fn every_value_is_in_the_bin_that_its_logarithm_gives() {
        for unit in [1e-9, 1e-6] {
            let mut value = 1u64;
            while value < 1 << 40 {
                let bin = bin_of(value as f64 * unit);
                let last = last_in(bin, unit);
                assert!(value <= last, "{value} {last}");
                assert!(bin_of((last + 1) as f64 * unit) > bin);
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
