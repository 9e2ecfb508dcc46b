//! Powers of probabilities with a bound of their error, in less than half of the instructions that `libm` takes.
//!
//! A draw is rounded to a whole number of picoseconds or bytes. Where the bound tells which one, the exact power is not
//! needed, and the result is still that of `libm`.

use std::f64::consts::{FRAC_1_SQRT_2, LN_2};

/// A power, and a bound of its relative distance from that of `libm`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Power {
    near: f64,
    error: f64,
}

impl Power {
    /// The ends of an interval in which the power of `libm` is.
    #[inline]
    pub(super) fn ends(self) -> [f64; 2] {
        [1.0 - self.error, 1.0 + self.error].map(|factor| self.near * factor)
    }
}

/// 1.5 * 2^52: added to a number of less than 2^51, it rounds this to a whole number, which is in its lowest bits.
const WHOLE: f64 = 6_755_399_441_055_744.0;

/// Coefficients of log2(m) / t in t^2, for t = (m - 1) / (m + 1): 2 / ln 2 artanh(t). What is left out is
/// less than 2^-55.
const LOG: [f64; 10] = {
    let mut coefficients = [0.0; 10];
    let mut k = 0;
    while k < 10 {
        coefficients[k] = 2.0 / LN_2 / (2 * k + 1) as f64;
        k += 1;
    }
    coefficients
};

/// Coefficients of 2^f in f. What is left out for |f| <= 1/2 is less than 2^-57.
const EXP: [f64; 14] = {
    let mut coefficients = [1.0; 14];
    let mut k = 1;
    while k < 14 {
        coefficients[k] = coefficients[k - 1] * LN_2 / k as f64;
        k += 1;
    }
    coefficients
};

/// `s` to the power of `y`, for `s` in (0, 1] and `y` in [-2, 2]; `None` outside, and if the power is beyond 2^15 or
/// below 2^-15.
///
/// In units of 2^-53, the logarithm l of the mantissa, at most 1/2, has an error of at most 3, and its sum with the
/// exponent that of its rounding, |L|. So the exponent p = y L of the power has one of at most 2 |p| + 3 |y|, and 2^p
/// by its series a relative one of 4 more. `libm` has 1.4 (0.7 units in the last place, as its source says). The bound
/// is twice the sum.
#[inline(never)] // one copy of it
pub(super) fn power(s: f64, y: f64) -> Option<Power> {
    // The mantissa is between the roots of 1/2 and 2.
    let exponent = (s.to_bits().wrapping_sub(FRAC_1_SQRT_2.to_bits()) as i64) >> 52;
    let mantissa = f64::from_bits(s.to_bits().wrapping_sub((exponent as u64) << 52));
    let t = (mantissa - 1.0) / (mantissa + 1.0);
    let t2 = t * t;
    let t4 = t2 * t2;
    let t8 = t4 * t4;
    // In pairs, so that the terms do not wait for each other.
    let pair = |k: usize| LOG[k] + LOG[k + 1] * t2;
    let low = (pair(0) + pair(2) * t4) + (pair(4) + pair(6) * t4) * t8;
    let log = t * (low + pair(8) * (t8 * t8));
    let p = y * (exponent as f64 + log);
    let is_bounded = s > 0.0 && s <= 1.0 && y.abs() <= 2.0 && p.abs() < 15.0;
    if !is_bounded {
        return None;
    }
    let shifted = p + WHOLE;
    let f = p - (shifted - WHOLE);
    let f2 = f * f;
    let f4 = f2 * f2;
    let f8 = f4 * f4;
    let pair = |k: usize| EXP[k] + EXP[k + 1] * f;
    let low = (pair(0) + pair(2) * f2) + (pair(4) + pair(6) * f2) * f4;
    let high = (pair(8) + pair(10) * f2) + pair(12) * f4;
    let fraction = low + high * f8;
    let near = f64::from_bits(fraction.to_bits().wrapping_add(shifted.to_bits() << 52));
    let error = (6.0 + 3.0 * y.abs() + 2.0 * p.abs()) * f64::EPSILON;
    Some(Power { near, error })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20_000))]
        #[test]
        fn the_power_of_libm_is_well_within_the_bound(s in 0.0..=1.0f64, scale in 0u32..60, y in -2.0..=2.0f64) {
            let s = s / (1u64 << scale) as f64;
            if let Some(Power { near, error }) = power(s, y) {
                let exact = libm::pow(s, y);
                prop_assert!((near / exact - 1.0).abs() <= error / 2.0, "{s}^{y}: {near} and {exact}");
            } else {
                prop_assert!(s == 0.0 || libm::pow(s, y).log2().abs() > 14.9, "{s}^{y}");
            }
        }
    }

    #[test]
    fn what_is_no_probability_has_no_bound() {
        for (s, y) in [
            (0.0, -1.0),
            (-0.5, -1.0),
            (1.5, 1.0),
            (f64::NAN, 1.0),
            (f64::INFINITY, -1.0),
            (0.5, f64::NAN),
            (0.5, -3.0),
            (1e-300, -1.0),
        ] {
            assert!(power(s, y).is_none(), "{s}^{y}");
        }
        assert_eq!(power(1.0, -1.5).map(|power| power.near), Some(1.0));
    }
}
