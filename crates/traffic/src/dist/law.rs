//! The probability laws of quantities, in plain numbers.
//!
//! Every law is given by its survival function S(x) = P(X > x) and the inverse of that, so that one
//! uniform number makes one draw and the far tail keeps its precision.
//!
//! | law | S(x) | mean |
//! |---|---|---|
//! | exponential, mean m | exp(-x/m) | m |
//! | Pareto, minimum k, shape a | (k/x)^a, x >= k | k a/(a - 1), a > 1 |
//! | Lomax (Pareto II), scale c, shape a | (1 + x/c)^-a | c/(a - 1), a > 1 |
//! | uniform, l to h | (h - x)/(h - l) | (l + h)/2 |
//! | lognormal, median M, sigma s | Q(ln(x/M)/s) | M exp(s^2/2) |
//! | Weibull, scale c, shape k | exp(-(x/c)^k) | c Gamma(1 + 1/k) |
//! | normal, mean m, deviation s | Q((x - m)/s) | m |
//! | Gumbel (largest extreme value), location a, scale b | 1 - exp(-exp(-(x - a)/b)) | a + 0.5772 b |
//! | geometric on 1, 2, ..., mean m | (1 - 1/m)^n | m |
//!
//! Q is the upper tail of the standard normal law. Source of the formulas: N. L. Johnson, S. Kotz,
//! N. Balakrishnan, "Continuous Univariate Distributions", volumes 1 and 2, Wiley, 1994 and 1995.

use std::f64::consts::{PI, SQRT_2};

use libm::{cosh, erfc, exp, expm1, log, log1p, pow, sinh, sqrt, tgamma};

/// A probability law of quantities of type `V`: as written, or in plain numbers.
#[derive(Clone, Debug, PartialEq)]
pub enum Law<V> {
    /// Always the same.
    Constant(V),
    /// Exponential with this mean.
    Exponential(V),
    /// Pareto with its mean (above 1 in shape) or its minimum.
    Pareto {
        /// Mean or minimum.
        by: Anchor<V>,
        /// The exponent of the tail.
        shape: f64,
    },
    /// Pareto II: a Pareto of minimum `scale`, less that minimum.
    Lomax {
        /// Mean or scale.
        by: Anchor<V>,
        /// The exponent of the tail.
        shape: f64,
    },
    /// Uniform between two ends.
    Uniform(V, V),
    /// The logarithm of the value is normal.
    Lognormal {
        /// Exponential of the logarithm's mean.
        median: V,
        /// Standard deviation of the logarithm.
        sigma: f64,
    },
    /// Weibull.
    Weibull {
        /// Exceeded with probability 1/e.
        scale: V,
        /// Below 1 its tail is heavier than exponential.
        shape: f64,
    },
    /// Normal, truncated at 0.
    Normal {
        /// The mean before truncation.
        mean: V,
        /// Standard deviation, before truncation, in SI units.
        std: f64,
    },
    /// Largest extreme value, truncated at 0.
    Gumbel {
        /// The mode.
        location: V,
        /// Standard deviation times sqrt(6)/pi, in SI units.
        scale: f64,
    },
    /// Geometric on 1, 2, 3, ... with this mean.
    Geometric(V),
    /// Probabilities and the values not exceeded with them, linear in between.
    Table(Vec<(f64, V)>),
}

/// By what a power law's size is given.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Anchor<V> {
    /// By its mean, before truncation.
    Mean(V),
    /// By its least value, or the scale that plays its part.
    Scale(V),
}

impl<V: Copy> Law<V> {
    /// The same law of other quantities.
    pub(super) fn map<W>(&self, to: impl Fn(V) -> W) -> Law<W> {
        let anchor = |by: Anchor<V>| match by {
            Anchor::Mean(mean) => Anchor::Mean(to(mean)),
            Anchor::Scale(scale) => Anchor::Scale(to(scale)),
        };
        match *self {
            Self::Constant(value) => Law::Constant(to(value)),
            Self::Exponential(mean) => Law::Exponential(to(mean)),
            Self::Pareto { by, shape } => Law::Pareto {
                by: anchor(by),
                shape,
            },
            Self::Lomax { by, shape } => Law::Lomax {
                by: anchor(by),
                shape,
            },
            Self::Uniform(low, high) => Law::Uniform(to(low), to(high)),
            Self::Lognormal { median, sigma } => Law::Lognormal {
                median: to(median),
                sigma,
            },
            Self::Weibull { scale, shape } => Law::Weibull {
                scale: to(scale),
                shape,
            },
            Self::Normal { mean, std } => Law::Normal {
                mean: to(mean),
                std,
            },
            Self::Gumbel { location, scale } => Law::Gumbel {
                location: to(location),
                scale,
            },
            Self::Geometric(mean) => Law::Geometric(to(mean)),
            Self::Table(ref points) => {
                Law::Table(points.iter().map(|&(p, value)| (p, to(value))).collect())
            }
        }
    }
}

impl Law<f64> {
    /// The law with its power laws anchored at their scale, so that draws need no more than that.
    pub(super) fn anchored(self) -> Self {
        match self {
            Self::Pareto {
                by: Anchor::Mean(mean),
                shape,
            } => Self::Pareto {
                by: Anchor::Scale(mean * (shape - 1.0) / shape),
                shape,
            },
            Self::Lomax {
                by: Anchor::Mean(mean),
                shape,
            } => Self::Lomax {
                by: Anchor::Scale(mean * (shape - 1.0)),
                shape,
            },
            other => other,
        }
    }

    /// The least value there can be.
    pub(super) fn least(&self) -> f64 {
        match *self {
            Self::Constant(value) => value,
            Self::Pareto {
                by: Anchor::Scale(scale),
                ..
            } => scale,
            Self::Uniform(low, _) => low,
            Self::Geometric(_) => 1.0,
            Self::Table(ref points) => points[0].1,
            _ => 0.0,
        }
    }

    /// P(X > x) of the law before truncation, for x not below [`Law::least`].
    pub(super) fn survival(&self, x: f64) -> f64 {
        match *self {
            Self::Constant(value) => f64::from(value > x),
            Self::Exponential(mean) => exp(-x / mean),
            Self::Pareto { by, shape } => pow(scale_of(by) / x, shape),
            Self::Lomax { by, shape } => pow(1.0 + x / scale_of(by), -shape),
            Self::Uniform(low, high) => ((high - x) / (high - low)).clamp(0.0, 1.0),
            Self::Lognormal { median, sigma } => upper_normal(log(x / median) / sigma),
            Self::Weibull { scale, shape } => exp(-pow(x / scale, shape)),
            Self::Normal { mean, std } => upper_normal((x - mean) / std),
            Self::Gumbel { location, scale } => -expm1(-exp((location - x) / scale)),
            Self::Geometric(mean) => pow(1.0 - 1.0 / mean, x.floor()),
            Self::Table(ref points) => {
                let after = points.partition_point(|point| point.1 <= x);
                match (after.checked_sub(1), points.get(after)) {
                    (None, _) => 1.0,
                    (_, None) => 0.0,
                    (Some(before), Some(&(p1, x1))) => {
                        let (p0, x0) = points[before];
                        1.0 - (p0 + (p1 - p0) * (x - x0) / (x1 - x0))
                    }
                }
            }
        }
    }

    /// The value exceeded with probability `s`, before truncation.
    #[inline]
    pub(super) fn exceeded(&self, s: f64) -> f64 {
        match *self {
            Self::Constant(value) => value,
            Self::Exponential(mean) => -mean * log(s),
            Self::Pareto { by, shape } => scale_of(by) * pow(s, -1.0 / shape),
            Self::Lomax { by, shape } => scale_of(by) * expm1(-log(s) / shape),
            Self::Uniform(low, high) => high - (high - low) * s,
            Self::Lognormal { median, sigma } => median * exp(sigma * upper_normal_inverse(s)),
            Self::Weibull { scale, shape } => scale * pow(-log(s), 1.0 / shape),
            Self::Normal { mean, std } => mean + std * upper_normal_inverse(s),
            Self::Gumbel { location, scale } => location - scale * log(-log1p(-s)),
            Self::Geometric(mean) => (log(s) / log1p(-1.0 / mean)).ceil().max(1.0),
            Self::Table(ref points) => {
                let p = 1.0 - s;
                let after = points.partition_point(|point| point.0 < p);
                let Some(before) = after.checked_sub(1) else {
                    return points[0].1;
                };
                let Some(&(p1, x1)) = points.get(after) else {
                    return points[before].1;
                };
                let (p0, x0) = points[before];
                x0 + (x1 - x0) * (p - p0) / (p1 - p0)
            }
        }
    }

    /// The mean of the law before truncation at the upper end; infinite if it does not exist, `None` if it
    /// needs an integral.
    pub(super) fn closed_mean(&self) -> Option<f64> {
        Some(match *self {
            Self::Constant(value) => value,
            Self::Exponential(mean) | Self::Geometric(mean) => mean,
            Self::Pareto { shape, .. } | Self::Lomax { shape, .. } if shape <= 1.0 => f64::INFINITY,
            Self::Pareto { by, shape } => scale_of(by) * shape / (shape - 1.0),
            Self::Lomax { by, shape } => scale_of(by) / (shape - 1.0),
            Self::Uniform(low, high) => (low + high) / 2.0,
            Self::Lognormal { median, sigma } => median * exp(sigma * sigma / 2.0),
            Self::Weibull { scale, shape } => scale * tgamma(1.0 + 1.0 / shape),
            Self::Normal { mean, std } => {
                let least = -mean / std;
                let density = exp(-least * least / 2.0) / sqrt(2.0 * PI);
                mean + std * density / upper_normal(least)
            }
            Self::Gumbel { .. } => return None,
            Self::Table(ref points) => {
                let pieces = points.windows(2).map(|pair| {
                    let ((p0, x0), (p1, x1)) = (pair[0], pair[1]);
                    (p1 - p0) * (x0 + x1) / 2.0
                });
                points[0].0 * points[0].1 + pieces.sum::<f64>()
            }
        })
    }
}

/// The scale of a law that was anchored.
#[inline]
pub(super) fn scale_of(by: Anchor<f64>) -> f64 {
    match by {
        Anchor::Scale(scale) | Anchor::Mean(scale) => scale,
    }
}

/// The integral of `f` from 0 to 1 by the double exponential rule, which works with infinite slopes
/// and integrable singularities at both ends.
///
/// Source: H. Takahasi, M. Mori, "Double exponential formulas for numerical integration",
/// Publ. RIMS 9, 1974.
pub(super) fn integral(f: impl Fn(f64) -> f64) -> f64 {
    const STEPS: i32 = 64; // to the unit
    let step = 1.0 / f64::from(STEPS);
    // At 5 the nodes are 1e-101 from the ends.
    (-5 * STEPS..=5 * STEPS)
        .map(|i| {
            let t = f64::from(i) * step;
            let e = exp(-PI * sinh(t));
            let s = 1.0 / (1.0 + e);
            let weight = PI * cosh(t) * s * s * e;
            if weight == 0.0 { 0.0 } else { weight * f(s) }
        })
        .sum::<f64>()
        * step
}

/// P(Z > z) of a standard normal Z.
pub(super) fn upper_normal(z: f64) -> f64 {
    0.5 * erfc(z / SQRT_2)
}

/// The z that a standard normal Z exceeds with probability `s`, to about 16 digits.
///
/// Source: M. J. Wichura, "Algorithm AS 241: The Percentage Points of the Normal Distribution",
/// Applied Statistics 37(3), 1988, PPND16.
pub(super) fn upper_normal_inverse(s: f64) -> f64 {
    let polynomial = |x: f64, of: &[f64; 8]| of.iter().rev().fold(0.0, |sum, c| sum * x + c);
    let q = 0.5 - s;
    if q.abs() <= 0.425 {
        let r = 0.180_625 - q * q;
        return q * polynomial(r, &CENTRE.0) / polynomial(r, &CENTRE.1);
    }
    let tail = if q < 0.0 { 1.0 - s } else { s };
    let r = sqrt(-log(tail));
    let z = if r.is_infinite() {
        r
    } else if r <= 5.0 {
        polynomial(r - 1.6, &MIDDLE.0) / polynomial(r - 1.6, &MIDDLE.1)
    } else {
        polynomial(r - 5.0, &TAIL.0) / polynomial(r - 5.0, &TAIL.1)
    };
    if q < 0.0 { -z } else { z }
}

/// Numerator and denominator, from the constant upwards.
type Rational = ([f64; 8], [f64; 8]);

#[allow(clippy::excessive_precision)] // as printed
const CENTRE: Rational = (
    [
        3.3871328727963666080e0,
        1.3314166789178437745e2,
        1.9715909503065514427e3,
        1.3731693765509461125e4,
        4.5921953931549871457e4,
        6.7265770927008700853e4,
        3.3430575583588128105e4,
        2.5090809287301226727e3,
    ],
    [
        1.0,
        4.2313330701600911252e1,
        6.8718700749205790830e2,
        5.3941960214247511077e3,
        2.1213794301586595867e4,
        3.9307895800092710610e4,
        2.8729085735721942674e4,
        5.2264952788528545610e3,
    ],
);

#[allow(clippy::excessive_precision)] // as printed
const MIDDLE: Rational = (
    [
        1.42343711074968357734e0,
        4.63033784615654529590e0,
        5.76949722146069140550e0,
        3.64784832476320460504e0,
        1.27045825245236838258e0,
        2.41780725177450611770e-1,
        2.27238449892691845833e-2,
        7.74545014278341407640e-4,
    ],
    [
        1.0,
        2.05319162663775882187e0,
        1.67638483018380384940e0,
        6.89767334985100004550e-1,
        1.48103976427480074590e-1,
        1.51986665636164571966e-2,
        5.47593808499534494600e-4,
        1.05075007164441684324e-9,
    ],
);

#[allow(clippy::excessive_precision)] // as printed
const TAIL: Rational = (
    [
        6.65790464350110377720e0,
        5.46378491116411436990e0,
        1.78482653991729133580e0,
        2.96560571828504891230e-1,
        2.65321895265761230930e-2,
        1.24266094738807843860e-3,
        2.71155556874348757815e-5,
        2.01033439929228813265e-7,
    ],
    [
        1.0,
        5.99832206555887937690e-1,
        1.36929880922735805310e-1,
        1.48753612908506148525e-2,
        7.86869131145613259100e-4,
        1.84631831751005468180e-5,
        1.42151175831644588870e-7,
        2.04426310338993978564e-15,
    ],
);
