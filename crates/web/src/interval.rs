//! Means over replications with their 95 % intervals: what `estimate` of `python/redtail/analysis/stats.py` returns, which
//! says where the method comes from. `tests/lab/test_module.py` compares the two.

use std::f64::consts::PI;

/// The confidence of an interval.
const CONFIDENCE: f64 = 0.95;

/// With more than this share of equal values there is no interval (`_MOST_ALIKE` in Python, as the next two).
const MOST_ALIKE: f64 = 0.5;

/// Values that agree in so many significant digits are equal; a sum of doubles may lose the rest.
const DIGITS: i32 = 13;

/// The sample's skewness counts for n / (n + this).
const SKEWNESS_SHRINKS: f64 = 10.0;

/// A mean, and half the width of its interval or why there is none.
#[derive(Clone, Debug, PartialEq)]
pub struct Estimate {
    /// The mean; `None` without a value.
    pub mean: Option<f64>,
    /// Half the width of the interval, or why there is none.
    pub half_width: Result<f64, String>,
    /// How many values there are.
    pub count: usize,
}

/// The mean of the values that are numbers, with its interval.
pub fn estimate(values: &[f64]) -> Estimate {
    let mut ordered: Vec<f64> = values.iter().copied().filter(|it| !it.is_nan()).collect();
    ordered.sort_by(f64::total_cmp);
    let count = ordered.len();
    let without = |mean, why: String| Estimate {
        mean,
        half_width: Err(why),
        count,
    };
    if count == 0 {
        return without(None, "no replication has a value".to_owned());
    }
    let n = count as f64;
    let mean = exact_sum(ordered.iter().copied()) / n;
    if count == 1 {
        return without(Some(mean), "one replication".to_owned());
    }
    let (value, alike) = middle(&ordered);
    if alike as f64 > MOST_ALIKE * n {
        let which = match alike == count {
            true => format!("all {count}"),
            false => format!("{alike} of {count}"),
        };
        let what = if value == 0.0 { "0" } else { "equal" };
        return without(Some(mean), format!("{which} replications are {what}"));
    }
    let off: Vec<f64> = ordered.iter().map(|value| value - mean).collect();
    let squares = exact_sum(off.iter().map(|x| x * x));
    let error = (squares / (n - 1.0) / n).sqrt();
    let factor = if error == 0.0 {
        t_quantile(count - 1)
    } else {
        let deviation = (squares / n).sqrt();
        let scaled = off.iter().map(|x| x / deviation);
        let skewness = exact_sum(scaled.map(|x| x * x * x)) / n;
        t_for_skewed(skewness, count)
    };
    Estimate {
        mean: Some(mean),
        half_width: Ok(factor * error),
        count,
    }
}

/// The sum, rounded once: of values that are not all finite as they come.
///
/// Source: J. R. Shewchuk, "Adaptive precision floating-point arithmetic and fast robust geometric predicates", Discrete &
/// Computational Geometry 18 (1997) 305-363, `Grow-Expansion`; the last rounding is half to even over all parts.
fn exact_sum(values: impl Iterator<Item = f64> + Clone) -> f64 {
    let mut parts: Vec<f64> = Vec::new();
    for value in values.clone() {
        let mut sum = value;
        let mut kept = 0;
        for place in 0..parts.len() {
            let (mut large, mut small) = (sum, parts[place]);
            if large.abs() < small.abs() {
                (large, small) = (small, large);
            }
            sum = large + small;
            let lost = small - (sum - large);
            if lost != 0.0 {
                parts[kept] = lost;
                kept += 1;
            }
        }
        parts.truncate(kept);
        parts.push(sum);
    }
    let Some(mut sum) = parts.pop().filter(|sum| sum.is_finite()) else {
        return values.sum();
    };
    let mut lost = 0.0;
    while let Some(part) = parts.pop() {
        let before = sum;
        sum = before + part;
        lost = part - (sum - before);
        if lost != 0.0 {
            break;
        }
    }
    // What is left decides a tie.
    if let Some(&next) = parts.last()
        && (lost < 0.0) == (next < 0.0)
    {
        let twice = lost * 2.0;
        let other = sum + twice;
        if twice == other - sum {
            sum = other;
        }
    }
    sum
}

/// The middle of sorted values, and how many are equal to it but for what rounding makes.
fn middle(ordered: &[f64]) -> (f64, usize) {
    let digits = digits((-ordered[0]).max(ordered[ordered.len() - 1]));
    let middle = rounded(ordered[ordered.len() / 2], digits);
    let equal = ordered
        .iter()
        .filter(|value| rounded(**value, digits) == middle);
    (middle, equal.count())
}

/// How many decimals of values of this size are not made by rounding.
fn digits(largest: f64) -> Option<i32> {
    let sound = largest != 0.0 && largest.is_finite();
    sound.then(|| DIGITS - 1 - libm::floor(libm::log10(largest.abs())) as i32)
}

fn rounded(value: f64, digits: Option<i32>) -> f64 {
    match digits {
        None => value,
        // Printed digits are those of the nearest decimal number.
        Some(digits @ 0..) => format!("{value:.*}", digits as usize)
            .parse()
            .unwrap_or(value),
        Some(digits) => {
            let unit = libm::pow(10.0, f64::from(-digits));
            libm::rint(value / unit) * unit
        }
    }
}

/// t such that a Student-t variable lies in ±t with probability 0.95, by Newton's method from 0.
fn t_quantile(degrees: usize) -> f64 {
    let d = degrees as f64;
    let gammas = libm::lgamma((d + 1.0) / 2.0) - libm::lgamma(d / 2.0);
    let highest = libm::exp(gammas) / (d * PI).sqrt();
    let (mut t, mut step) = (0.0, 1.0);
    while step > 1e-9 * t {
        let density = highest * libm::pow(1.0 + t * t / d, -(d + 1.0) / 2.0);
        step = (CONFIDENCE - t_within(t, degrees)) / (2.0 * density);
        t += step;
    }
    t
}

/// The probability with which a Student-t variable lies in ±t.
///
/// Source: M. Abramowitz, I. A. Stegun, Handbook of Mathematical Functions (1964), equations 26.7.3 and 26.7.4.
fn t_within(t: f64, degrees: usize) -> f64 {
    let d = degrees as f64;
    let square = d / (d + t * t);
    let sine = t / (d + t * t).sqrt();
    let odd = degrees % 2 == 1;
    let mut term = if odd { square.sqrt() } else { 1.0 };
    let mut total = term;
    for k in (if odd { 3 } else { 2 }..degrees.saturating_sub(1)).step_by(2) {
        let k = k as f64;
        term *= square * (k - 1.0) / k;
        total += term;
    }
    if !odd {
        return sine * total;
    }
    let arc = libm::atan2(t, d.sqrt());
    let inside = if degrees > 1 { arc + sine * total } else { arc };
    2.0 / PI * inside
}

/// Student's t, or what takes its place for a sample of this skewness.
///
/// Source: P. Hall, "On the removal of skewness by transformation", Journal of the Royal Statistical Society B 54 (1992)
/// 221-228.
fn t_for_skewed(skewness: f64, count: usize) -> f64 {
    let (t, n) = (t_quantile(count - 1), count as f64);
    let a = skewness * n / (n + SKEWNESS_SHRINKS) / n.sqrt();
    if a.abs() < 1e-6 {
        return t;
    }
    let end = |side: f64| ((libm::cbrt(1.0 + a * (side - a / 6.0)) - 1.0) * 3.0 / a).abs();
    t.max(end(-t)).max(end(t))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sum_is_rounded_once() {
        assert_eq!(exact_sum([1e100, 1.0, -1e100].into_iter()), 1.0);
        assert_eq!(exact_sum([0.1; 10].into_iter()), 1.0);
        assert_eq!(
            exact_sum([1e16, 1.0, 1e-16].into_iter()),
            10000000000000002.0
        );
        assert_eq!(exact_sum(std::iter::empty()), 0.0);
    }

    #[test]
    fn quantiles_are_those_of_tables() {
        // Abramowitz and Stegun, table 26.10.
        for (degrees, t) in [
            (1, 12.706),
            (2, 4.303),
            (9, 2.262),
            (10, 2.228),
            (120, 1.980),
        ] {
            assert!((t_quantile(degrees) - t).abs() < 5e-4, "{degrees}");
        }
    }

    #[test]
    fn values_that_say_nothing_of_the_mean_have_no_interval() {
        let why = |values: &[f64]| estimate(values).half_width.unwrap_err();
        assert_eq!(why(&[]), "no replication has a value");
        assert_eq!(why(&[f64::NAN, 1.0]), "one replication");
        assert_eq!(why(&[0.0, 0.0, 0.0, 4.0]), "3 of 4 replications are 0");
        assert_eq!(why(&[0.1 + 0.2, 0.3]), "all 2 replications are equal");
        assert_eq!(why(&[7e20, 7e20, 1e20]), "2 of 3 replications are equal");
        let found = estimate(&[1.0, 2.0, 3.0]);
        assert_eq!(found.mean, Some(2.0));
        assert!((found.half_width.unwrap() - 2.484).abs() < 5e-4);
    }
}
