//! One number for many.

use std::fmt;
use std::str::FromStr;

/// What is made of many values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Statistic {
    /// The first one.
    First,
    /// The last one.
    Last,
    /// Their mean.
    Mean,
    /// The smallest one.
    Min,
    /// The largest one.
    Max,
    /// Their sum.
    Sum,
    /// How many there are.
    Count,
    /// The smallest value that at least so many per cent of them do not exceed.
    Percentile(f64),
}

const WORDS: [(&str, Statistic); 7] = [
    ("first", Statistic::First),
    ("last", Statistic::Last),
    ("mean", Statistic::Mean),
    ("min", Statistic::Min),
    ("max", Statistic::Max),
    ("sum", Statistic::Sum),
    ("count", Statistic::Count),
];

/// What is accepted.
pub const FORMS: &str = "first, last, mean, min, max, sum, count, or a percentile from p0 to p100, such as p50 or p99.9";

impl Statistic {
    /// The statistic of values; `None` without any, unless they are counted.
    pub fn of(self, values: &[f64]) -> Option<f64> {
        let count = values.len() as f64;
        let picked = |better: fn(f64, f64) -> f64| values.iter().copied().reduce(better);
        match self {
            Self::First => values.first().copied(),
            Self::Last => values.last().copied(),
            // Each divided first: a sum of large values may be beyond all numbers.
            Self::Mean if values.is_empty() => None,
            Self::Mean => {
                let sum: f64 = values.iter().sum();
                let small: f64 = values.iter().map(|value| value / count).sum();
                Some(if sum.is_finite() { sum / count } else { small })
            }
            Self::Min => picked(f64::min),
            Self::Max => picked(f64::max),
            Self::Sum => (!values.is_empty()).then(|| values.iter().sum()),
            Self::Count => Some(count),
            Self::Percentile(percent) => {
                let mut sorted = values.to_vec();
                sorted.sort_unstable_by(f64::total_cmp);
                let rank = libm::ceil(percent / 100.0 * count) as usize;
                sorted.get(rank.max(1) - 1).copied()
            }
        }
    }
}

impl fmt::Display for Statistic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Self::Percentile(percent) = self {
            return write!(f, "p{percent}");
        }
        let word = WORDS.iter().find(|(_, statistic)| statistic == self);
        f.write_str(word.expect("each has a word").0)
    }
}

impl FromStr for Statistic {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some((_, statistic)) = WORDS.iter().find(|(word, _)| *word == text) {
            return Ok(*statistic);
        }
        let percent: Option<f64> = text.strip_prefix('p').and_then(|text| text.parse().ok());
        match percent.filter(|percent| (0.0..=100.0).contains(percent)) {
            Some(percent) => Ok(Self::Percentile(percent)),
            None => Err(format!("\"{text}\" is no statistic")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str, values: &[f64]) -> Option<f64> {
        text.parse::<Statistic>().unwrap().of(values)
    }

    #[test]
    fn each_statistic_is_that_of_its_name() {
        let values = [4.0, 1.0, 3.0, 2.0];
        let wanted = [
            ("first", 4.0),
            ("last", 2.0),
            ("mean", 2.5),
            ("min", 1.0),
            ("max", 4.0),
            ("sum", 10.0),
            ("count", 4.0),
            ("p0", 1.0),
            ("p50", 2.0),
            ("p51", 3.0),
            ("p75", 3.0),
            ("p99.9", 4.0),
            ("p100", 4.0),
        ];
        for (text, value) in wanted {
            assert_eq!(of(text, &values), Some(value), "{text}");
            assert_eq!(text.parse::<Statistic>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn of_no_values_only_the_number_is_known() {
        for text in ["first", "last", "mean", "min", "max", "sum", "p50"] {
            assert_eq!(of(text, &[]), None, "{text}");
        }
        assert_eq!(of("count", &[]), Some(0.0));
    }

    #[test]
    fn the_mean_of_large_values_is_a_number() {
        assert_eq!(of("mean", &[1e308, 1e308]), Some(1e308));
    }

    #[test]
    fn what_is_no_statistic_is_refused() {
        for text in ["median", "p", "p101", "p-1", "pNaN", "pinf", "P50", ""] {
            assert!(text.parse::<Statistic>().is_err(), "{text}");
        }
    }
}
