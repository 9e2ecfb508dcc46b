//! Quantities drawn at random, as the experiment file writes them.
//!
//! `"12 kB"` is a constant; `"exponential mean 50 s"`, `"pareto min 2.3 kB shape 1.3"`,
//! `"lognormal median 2 kB sigma 1.2 max 1 MB"` name a law and its parameters; a table
//! `{ cdf = [[0.0, "100 B"], [0.5, "2112 B"], [1.0, "1.6 MB"]] }` gives points of a distribution
//! function, linear in between (the empirical random variable of ns-2, INTER_CONTINUOUS).
//!
//! Every draw takes one number from its stream and inverts the distribution function, whatever the
//! law. So replacing one law by another does not change the draws that follow (common random
//! numbers), and a larger uniform number gives a larger value.

mod law;
mod power;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::fmt::{self, Debug, Display};
use std::marker::PhantomData;
use std::str::FromStr;

use redtail_core::schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use redtail_core::serde::de::value::MapAccessDeserializer;
use redtail_core::serde::de::{
    DeserializeOwned, Deserializer, Error, IntoDeserializer, MapAccess, Visitor,
};
use redtail_core::serde::{self, Deserialize, Serialize, Serializer};
use redtail_core::{Bytes, Rate, Span, Stream, nearest_whole};

pub use law::{Anchor, Law};
use law::{integral, scale_of};
use power::power;

/// A quantity that can be drawn: a [`Span`], [`Bytes`], a [`Rate`], or a count (`f64`, no unit).
///
/// Continuous laws draw counts that are not whole; the model that uses one says how it rounds.
pub trait Drawn: Copy + PartialEq + Debug + Display + DeserializeOwned + JsonSchema {
    /// An example of a value, as in a file.
    const EXAMPLE: &'static str;
    /// The ends of an interval, as in a file.
    const INTERVAL: &'static str;
    /// Whether laws of whole numbers apply to it.
    const COUNT: bool;
    /// The `x-unit` mark in the schema, if it has a dimension.
    const UNIT: Option<&'static str>;

    /// Reads a value; the error is a message that begins with it.
    ///
    /// # Errors
    /// When the text is not such a quantity.
    fn read(text: &str) -> Result<Self, String>;

    /// Reads a width, which may be finer than a value can be (`5.7 B`); in SI units.
    ///
    /// # Errors
    /// As [`Drawn::read`].
    fn read_width(text: &str) -> Result<f64, String> {
        Self::read(text).map(Self::number)
    }

    /// A width as it is read.
    fn width(number: f64) -> String {
        Self::nearest(number).to_string()
    }

    /// In SI units: seconds, bytes, bit/s, or a count.
    fn number(self) -> f64;

    /// The nearest quantity; clamped to what it can hold.
    fn nearest(number: f64) -> Self;
}

impl Drawn for Span {
    const EXAMPLE: &'static str = "50 s";
    const INTERVAL: &'static str = "16..240 ms";
    const COUNT: bool = false;
    const UNIT: Option<&'static str> = Some("time");

    fn read(text: &str) -> Result<Self, String> {
        text.parse::<Self>().map_err(|error| error.to_string())
    }

    fn number(self) -> f64 {
        self.as_secs_f64()
    }

    #[inline]
    fn nearest(number: f64) -> Self {
        Self::from_secs_f64(number)
    }
}

impl Drawn for Bytes {
    const EXAMPLE: &'static str = "12 kB";
    const INTERVAL: &'static str = "40..1500 B";
    const COUNT: bool = false;
    const UNIT: Option<&'static str> = Some("bytes");

    fn read(text: &str) -> Result<Self, String> {
        text.parse::<Self>().map_err(|error| error.to_string())
    }

    fn read_width(text: &str) -> Result<f64, String> {
        let bytes = text.trim().strip_suffix('B').map(str::trim_end);
        match bytes.and_then(|number| f64::read(number).ok()) {
            Some(width) => Ok(width),
            None => Self::read(text).map(Self::number),
        }
    }

    fn width(number: f64) -> String {
        match number.fract() {
            0.0 => Self::nearest(number).to_string(),
            _ => format!("{number} B"),
        }
    }

    fn number(self) -> f64 {
        self.as_u64() as f64
    }

    #[inline]
    fn nearest(number: f64) -> Self {
        Self::new(nearest_whole(number))
    }
}

impl Drawn for Rate {
    const EXAMPLE: &'static str = "10 Mbit/s";
    const INTERVAL: &'static str = "5..20 Mbit/s";
    const COUNT: bool = false;
    const UNIT: Option<&'static str> = Some("rate");

    fn read(text: &str) -> Result<Self, String> {
        text.parse::<Self>().map_err(|error| error.to_string())
    }

    fn number(self) -> f64 {
        self.as_bps() as f64
    }

    #[inline]
    fn nearest(number: f64) -> Self {
        Self::from_bps(nearest_whole(number))
    }
}

impl Drawn for f64 {
    const EXAMPLE: &'static str = "4";
    const INTERVAL: &'static str = "1..9";
    const COUNT: bool = true;
    const UNIT: Option<&'static str> = None;

    fn read(text: &str) -> Result<Self, String> {
        match text.trim().parse::<f64>() {
            Ok(number) if number < 0.0 => Err(format!("{text:?} is negative")),
            Ok(number) if number.is_finite() => Ok(number),
            _ => Err(format!("{text:?} is not a number")),
        }
    }

    fn number(self) -> f64 {
        self
    }

    #[inline]
    fn nearest(number: f64) -> Self {
        number
    }
}

/// A quantity drawn at random, or a constant.
///
/// ```
/// use redtail_core::{Bytes, Stream};
/// use redtail_traffic::Dist;
///
/// let sizes: Dist<Bytes> = "pareto mean 12 kB shape 1.2 max 10 MB".parse()?;
/// let mut stream = Stream::named(1, 0, "example");
/// assert!(sizes.draw(&mut stream) >= Bytes::new(2000));
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Dist<T> {
    law: Law<T>,
    max: Option<T>,
    /// The same in numbers, power laws anchored at their scale.
    numbers: Law<f64>,
    least: f64,
    /// The maximum at which the law is truncated; infinite if it is not.
    most: f64,
    /// For the law before truncation: the probability to exceed the least value, and the maximum.
    exceeds: (f64, f64),
}

/// The minimum share of a law that truncation may leave: below it rounding errors would be visible in the
/// values drawn.
const LEAST_LEFT: f64 = 1e-6;

impl<T: Drawn> Dist<T> {
    /// Always the same value.
    pub fn constant(value: T) -> Self {
        Self::build(Law::Constant(value), None)
    }

    /// A law whose values above `max`, if any, are drawn anew.
    ///
    /// # Errors
    /// A clause that says what is wrong with the parameters.
    pub fn new(law: Law<T>, max: Option<T>) -> Result<Self, String> {
        check(&law)?;
        let dist = Self::build(law, max);
        if let Some(max) = max {
            let (from, to) = dist.exceeds;
            let above_least = max.number() > dist.least || T::COUNT && max.number() >= dist.least;
            if !above_least || from - to < LEAST_LEFT {
                return Err(format!(
                    "next to nothing is drawn below its max of \"{max}\""
                ));
            }
        } else if dist.exceeds.0 < LEAST_LEFT {
            return Err("next to nothing of it is above zero".to_owned());
        }
        Ok(dist)
    }

    fn build(law: Law<T>, max: Option<T>) -> Self {
        let numbers = law.map(Drawn::number).anchored();
        let least = numbers.least();
        let most = max.map_or(f64::INFINITY, Drawn::number);
        // Only laws that reach below zero leave anything there.
        let above_least = match numbers {
            Law::Normal { .. } | Law::Gumbel { .. } => numbers.survival(least),
            _ => 1.0,
        };
        let above_most = max.map_or(0.0, |_| numbers.survival(most));
        Self {
            law,
            max,
            numbers,
            least,
            most,
            exceeds: (above_least, above_most),
        }
    }

    /// The law as written, before truncation.
    pub fn law(&self) -> &Law<T> {
        &self.law
    }

    /// The only value, if it is a constant.
    pub fn only(&self) -> Option<T> {
        match self.law {
            Law::Constant(value) => Some(value),
            _ => None,
        }
    }

    /// Draws a value, with one number from `stream` whatever the law.
    #[inline]
    pub fn draw(&self, stream: &mut Stream) -> T {
        let u = stream.uniform();
        match self.law {
            Law::Constant(value) => value,
            // Not every count is whole.
            _ if T::COUNT => T::nearest(self.exceeded(1.0 - u)),
            _ => self.exceeded_to(1.0 - u, T::nearest),
        }
    }

    /// The value not exceeded with probability `p`; the largest there is for 1.
    pub fn quantile(&self, p: f64) -> T {
        match self.law {
            Law::Constant(value) => value,
            _ => T::nearest(self.exceeded(1.0 - p)),
        }
    }

    /// The mean of the values drawn, in seconds, bytes or as a count: with a `max`, that of the
    /// truncated law. `None` if it is infinite.
    pub fn mean(&self) -> Option<f64> {
        let truncated = self.max.is_some();
        let mean = match self.numbers.closed_mean() {
            Some(mean) if !truncated => mean,
            _ => match self.numbers {
                Law::Geometric(mean) => {
                    // E[X; X <= n] = m (1 - q^n) - n q^n.
                    let (n, beyond) = (self.most.floor(), self.exceeds.1);
                    mean - n * beyond / (1.0 - beyond)
                }
                _ => integral(|s| self.exceeded(s)),
            },
        };
        mean.is_finite().then_some(mean)
    }

    /// The value exceeded with probability `s` by what is drawn.
    #[inline]
    fn exceeded(&self, s: f64) -> f64 {
        self.within(self.numbers.exceeded(self.untruncated(s)))
    }

    /// What [`exceeded`](Self::exceeded) gives, as `round` rounds it. `round` must never give less for more. Then all
    /// that is between two values which it rounds to the same is rounded to this too, and one that is nearly known is
    /// known: a Pareto law mostly needs no exact power.
    #[inline]
    fn exceeded_to<V: PartialEq>(&self, s: f64, round: impl Fn(f64) -> V) -> V {
        let s = self.untruncated(s);
        if let Law::Pareto { by, shape } = self.numbers
            && let Some(power) = power(s, -1.0 / shape)
        {
            let [low, high] = power
                .ends()
                .map(|end| round(self.within(scale_of(by) * end)));
            if low == high {
                return low;
            }
        }
        round(self.within(self.numbers.exceeded(s)))
    }

    /// With what probability the law before truncation exceeds the value that is exceeded with probability `s`.
    #[inline]
    fn untruncated(&self, s: f64) -> f64 {
        let (from, to) = self.exceeds;
        // Kept below 1: there a law without a least value is at minus infinity.
        (to + s * (from - to)).min(1.0 - f64::EPSILON / 2.0)
    }

    /// A value of the law before truncation, kept between the least and the maximum.
    #[inline]
    fn within(&self, value: f64) -> f64 {
        value.max(self.least).min(self.most)
    }
}

impl Dist<f64> {
    /// Draws a whole number of things, rounded up, of which there is at least one.
    pub fn draw_count(&self, stream: &mut Stream) -> u64 {
        let whole = |number: f64| number.ceil().max(1.0) as u64;
        let u = stream.uniform();
        match self.law {
            Law::Constant(value) => whole(value),
            _ => self.exceeded_to(1.0 - u, whole),
        }
    }
}

/// Refuses parameters that define no law; the error is a clause.
fn check<T: Drawn>(law: &Law<T>) -> Result<(), String> {
    let positive = |key: &str, value: f64| match value > 0.0 {
        true => Ok(()),
        false => Err(format!("its {key} must be above zero")),
    };
    match *law {
        Law::Constant(_) => Ok(()),
        Law::Exponential(mean) => positive("mean", mean.number()),
        Law::Pareto { by, shape } | Law::Lomax { by, shape } => {
            positive("shape", shape)?;
            match by {
                Anchor::Mean(_) if shape <= 1.0 => Err(format!(
                    "its shape must be above 1, since with {shape} the mean is infinite"
                )),
                Anchor::Mean(mean) => positive("mean", mean.number()),
                Anchor::Scale(scale) if matches!(law, Law::Pareto { .. }) => {
                    positive("min", scale.number())
                }
                Anchor::Scale(scale) => positive("scale", scale.number()),
            }
        }
        Law::Uniform(low, high) => match low.number() < high.number() {
            true => Ok(()),
            false => Err("the interval does not end after it begins".to_owned()),
        },
        Law::Lognormal { median, sigma } => {
            positive("median", median.number())?;
            positive("sigma", sigma)
        }
        Law::Weibull { scale, shape } => {
            positive("scale", scale.number())?;
            positive("shape", shape)
        }
        Law::Normal { std, .. } => positive("std", std),
        Law::Gumbel { scale, .. } => positive("scale", scale),
        Law::Geometric(mean) => match mean.number() >= 1.0 {
            true => Ok(()),
            false => Err("its mean must be at least 1, the least it draws".to_owned()),
        },
        Law::Table(ref points) => check_table(points),
    }
}

fn check_table<T: Drawn>(points: &[(f64, T)]) -> Result<(), String> {
    let Some(last) = points.last() else {
        return Err("its cdf has no points".to_owned());
    };
    for (i, &(p, value)) in points.iter().enumerate() {
        if !(0.0..=1.0).contains(&p) {
            return Err(format!(
                "point {} of its cdf: {p} is not between 0 and 1",
                i + 1
            ));
        }
        let Some(&(before, least)) = i.checked_sub(1).map(|before| &points[before]) else {
            continue;
        };
        if p < before || value.number() < least.number() {
            return Err(format!(
                "point {} of its cdf, {p} and \"{value}\", is below the one before, {before} and \"{least}\"",
                i + 1
            ));
        }
    }
    match last.0 == 1.0 {
        true => Ok(()),
        false => Err(format!("its cdf ends at {}, not at 1", last.0)),
    }
}

/// How the laws with named parameters are written. Those of one name stand together.
const FORMS: &[(&str, &[&str])] = &[
    ("exponential", &["mean"]),
    ("pareto", &["mean", "shape"]),
    ("pareto", &["min", "shape"]),
    ("lomax", &["mean", "shape"]),
    ("lomax", &["scale", "shape"]),
    ("lognormal", &["median", "sigma"]),
    ("weibull", &["scale", "shape"]),
    ("normal", &["mean", "std"]),
    ("gumbel", &["location", "scale"]),
    ("geometric", &["mean"]),
];

/// Every key of [`FORMS`], and `max`.
const KEYS: &[&str] = &[
    "mean", "min", "scale", "median", "location", "std", "shape", "sigma", "max",
];

/// Keys whose value is a plain number, whatever is drawn.
fn is_number(key: &str) -> bool {
    matches!(key, "shape" | "sigma")
}

/// Keys whose value is a width of what is drawn.
fn is_width(law: &str, key: &str) -> bool {
    matches!((law, key), ("normal", "std") | ("gumbel", "scale"))
}

/// The ways to write the laws called `name`, or all there are.
fn forms<T: Drawn>(name: Option<&str>) -> String {
    let named = |of: &str| name.is_none_or(|name| name == of);
    let mut all = Vec::new();
    if name.is_none() {
        all.push(format!("{:?}", T::EXAMPLE));
    }
    let accepted = |law: &str| law != "geometric" || T::COUNT;
    for (law, keys) in FORMS {
        if !named(law) || !accepted(law) {
            continue;
        }
        let mut text = (*law).to_owned();
        for key in *keys {
            let value = if is_number(key) { "1.2" } else { T::EXAMPLE };
            text += &format!(" {key} {value}");
        }
        all.push(format!("{text:?}"));
    }
    if named("uniform") {
        all.push(format!("\"uniform {}\"", T::INTERVAL));
    }
    if named("cdf") {
        let value = if T::COUNT {
            T::EXAMPLE.to_owned()
        } else {
            format!("{:?}", T::EXAMPLE)
        };
        all.push(format!(
            "a table {{ cdf = [[0.0, {value}], ..., [1.0, {value}]] }}"
        ));
    }
    let max = match name {
        Some("cdf") => String::new(),
        _ => format!("; a law may end with \"max {}\"", T::EXAMPLE),
    };
    format!("accepted: {}{max}", all.join(", "))
}

impl<T: Drawn> FromStr for Dist<T> {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let words = text.trim();
        if words.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c)) || words.is_empty()
        {
            return T::read(text)
                .map(Self::constant)
                .map_err(|error| format!("{error}; {}", forms::<T>(None)));
        }
        let (name, rest) = words.split_once(char::is_whitespace).unwrap_or((words, ""));
        let known = FORMS.iter().any(|form| form.0 == name) || ["uniform", "cdf"].contains(&name);
        if !known || name == "geometric" && !T::COUNT {
            let why = match known {
                true => "only counts can be geometric".to_owned(),
                false => format!("{name:?} is not a law"),
            };
            return Err(format!("{text:?}: {why}; {}", forms::<T>(None)));
        }
        let read = match name {
            "cdf" => read_points(rest).and_then(|points| Self::new(Law::Table(points), None)),
            _ => read_law(name, rest).and_then(|(law, max)| Self::new(law, max)),
        };
        read.map_err(|why| format!("{text:?}: {why}; {}", forms::<T>(Some(name))))
    }
}

/// Reads what follows the name of a law.
fn read_law<T: Drawn>(name: &str, rest: &str) -> Result<(Law<T>, Option<T>), String> {
    let mut words = rest.split_whitespace().peekable();
    let mut interval = String::new();
    if name == "uniform" {
        while let Some(word) = words.next_if(|word| *word != "max") {
            interval = interval + " " + word;
        }
    }
    let (mut values, mut numbers) = (Vec::new(), Vec::new());
    while let Some(key) = words.next() {
        if !KEYS.contains(&key) {
            return Err(format!("{key:?} is not a parameter of a law"));
        }
        if values.iter().any(|&(given, _)| given == key)
            || numbers.iter().any(|&(given, _)| given == key)
        {
            return Err(format!("its {key} is given twice"));
        }
        let mut value = words
            .next()
            .ok_or_else(|| format!("its {key} has no value"))?
            .to_owned();
        // "min" is a unit too, but not after a quantity that is whole.
        while let Some(word) = words.next_if(|word| {
            !KEYS.contains(word) || *word == "min" && !is_number(key) && T::read(&value).is_err()
        }) {
            value = value + " " + word;
        }
        if is_width(name, key) {
            let width = T::read_width(&value);
            numbers.push((key, width.map_err(|e| format!("its {key}, {e}"))?));
        } else if is_number(key) {
            numbers.push((
                key,
                f64::read(&value).map_err(|e| format!("its {key}, {e}"))?,
            ));
        } else {
            values.push((key, T::read(&value).map_err(|e| format!("its {key}, {e}"))?));
        }
    }
    let max = take(&mut values, "max");
    let law = if name == "uniform" {
        read_interval(interval.trim()).map(|(low, high)| Law::Uniform(low, high))?
    } else {
        let form = (FORMS.iter().filter(|form| form.0 == name))
            .find(|form| values.iter().all(|given| form.1.contains(&given.0)));
        let Some((_, keys)) = form else {
            let given: Vec<_> = values.iter().map(|given| given.0).collect();
            return Err(format!("it is not given by {}", given.join(" and ")));
        };
        let mut missing = keys.iter().filter(|key| {
            !values.iter().any(|given| given.0 == **key)
                && !numbers.iter().any(|given| given.0 == **key)
        });
        if let Some(key) = missing.next() {
            return Err(format!("its {key} is missing"));
        }
        let mut value = |key| take(&mut values, key).expect("no key is missing");
        let mut number = |key| take(&mut numbers, key).expect("no key is missing");
        let anchor = |value: &mut dyn FnMut(&'static str) -> T| match keys[0] {
            "mean" => Anchor::Mean(value("mean")),
            scale => Anchor::Scale(value(scale)),
        };
        match name {
            "exponential" => Law::Exponential(value("mean")),
            "pareto" => Law::Pareto {
                by: anchor(&mut value),
                shape: number("shape"),
            },
            "lomax" => Law::Lomax {
                by: anchor(&mut value),
                shape: number("shape"),
            },
            "lognormal" => Law::Lognormal {
                median: value("median"),
                sigma: number("sigma"),
            },
            "weibull" => Law::Weibull {
                scale: value("scale"),
                shape: number("shape"),
            },
            "normal" => Law::Normal {
                mean: value("mean"),
                std: number("std"),
            },
            "gumbel" => Law::Gumbel {
                location: value("location"),
                scale: number("scale"),
            },
            "geometric" => Law::Geometric(value("mean")),
            _ => unreachable!("{name} is not in FORMS"),
        }
    };
    let extra = values.iter().map(|given| given.0);
    if let Some(key) = extra.chain(numbers.iter().map(|given| given.0)).next() {
        return Err(format!("it has no {key}"));
    }
    Ok((law, max))
}

fn take<V>(given: &mut Vec<(&str, V)>, key: &str) -> Option<V> {
    let index = given.iter().position(|given| given.0 == key)?;
    Some(given.remove(index).1)
}

/// Reads `16..240 ms`; the unit may stand once, for both ends.
fn read_interval<T: Drawn>(text: &str) -> Result<(T, T), String> {
    let (low, high) = text
        .split_once("..")
        .ok_or_else(|| "its interval is written with \"..\"".to_owned())?;
    let (low, high) = (low.trim(), high.trim());
    let last = T::read(high)?;
    let unit = high.trim_start_matches(|c: char| c.is_ascii_digit() || "._+-eE ".contains(c));
    let first = T::read(low).or_else(|_| T::read(&format!("{low} {unit}")))?;
    Ok((first, last))
}

/// Reads `0 100 B, 0.5 2112 B, 1 1.6 MB`.
fn read_points<T: Drawn>(text: &str) -> Result<Vec<(f64, T)>, String> {
    text.split(',')
        .filter(|point| !point.trim().is_empty())
        .map(|point| {
            let (p, value) = point
                .trim()
                .split_once(char::is_whitespace)
                .ok_or_else(|| format!("{point:?} is not a probability and a value"))?;
            Ok((f64::read(p)?, T::read(value)?))
        })
        .collect()
}

impl<T: Drawn> Display for Dist<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.law {
            Law::Constant(value) => write!(f, "{value}")?,
            Law::Exponential(mean) => write!(f, "exponential mean {mean}")?,
            Law::Pareto { by, shape } => match by {
                Anchor::Mean(mean) => write!(f, "pareto mean {mean} shape {shape}")?,
                Anchor::Scale(min) => write!(f, "pareto min {min} shape {shape}")?,
            },
            Law::Lomax { by, shape } => match by {
                Anchor::Mean(mean) => write!(f, "lomax mean {mean} shape {shape}")?,
                Anchor::Scale(scale) => write!(f, "lomax scale {scale} shape {shape}")?,
            },
            Law::Uniform(low, high) => write!(f, "uniform {low}..{high}")?,
            Law::Lognormal { median, sigma } => {
                write!(f, "lognormal median {median} sigma {sigma}")?
            }
            Law::Weibull { scale, shape } => write!(f, "weibull scale {scale} shape {shape}")?,
            Law::Normal { mean, std } => write!(f, "normal mean {mean} std {}", T::width(*std))?,
            Law::Gumbel { location, scale } => {
                write!(f, "gumbel location {location} scale {}", T::width(*scale))?
            }
            Law::Geometric(mean) => write!(f, "geometric mean {mean}")?,
            Law::Table(points) => {
                for (i, (p, value)) in points.iter().enumerate() {
                    let before = if i == 0 { "cdf" } else { "," };
                    write!(f, "{before} {p} {value}")?;
                }
            }
        }
        match self.max {
            Some(max) => write!(f, " max {max}"),
            None => Ok(()),
        }
    }
}

impl<T: Drawn> Serialize for Dist<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// The table form.
#[derive(Deserialize)]
#[serde(crate = "serde", deny_unknown_fields, bound = "T: DeserializeOwned")]
struct Table<T> {
    cdf: Vec<(f64, T)>,
}

impl<'de, T: Drawn> Deserialize<'de> for Dist<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(DistVisitor(PhantomData))
    }
}

struct DistVisitor<T>(PhantomData<T>);

impl<T: Drawn> DistVisitor<T> {
    /// A number without a unit, which only counts may be.
    fn bare<'de, E: Error>(self, value: impl IntoDeserializer<'de, E>) -> Result<Dist<T>, E> {
        let value = T::deserialize(value.into_deserializer())?;
        if value.number() < 0.0 || !value.number().is_finite() {
            let forms = forms::<T>(None);
            return Err(E::custom(format!("{value} is below zero; {forms}")));
        }
        Ok(Dist::constant(value))
    }
}

impl<'de, T: Drawn> Visitor<'de> for DistVisitor<T> {
    type Value = Dist<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a value or a law; {}", forms::<T>(None))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Dist<T>, E> {
        text.parse().map_err(E::custom)
    }
    fn visit_i64<E: Error>(self, value: i64) -> Result<Dist<T>, E> {
        self.bare(value)
    }
    fn visit_u64<E: Error>(self, value: u64) -> Result<Dist<T>, E> {
        self.bare(value)
    }
    fn visit_f64<E: Error>(self, value: f64) -> Result<Dist<T>, E> {
        self.bare(value)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Dist<T>, A::Error> {
        let table = Table::<T>::deserialize(MapAccessDeserializer::new(map))?;
        let negative = |point: &&(f64, T)| point.1.number() < 0.0;
        let made = match table.cdf.iter().find(negative) {
            Some(point) => Err(format!("its cdf has a value below zero, {}", point.1)),
            None => Dist::new(Law::Table(table.cdf), None),
        };
        made.map_err(|why| A::Error::custom(format!("{why}; {}", forms::<T>(Some("cdf")))))
    }
}

/// The text form, for the schema.
struct Text<T>(PhantomData<T>);

impl<T: Drawn> JsonSchema for Text<T> {
    fn schema_name() -> Cow<'static, str> {
        format!("Law_{}", T::schema_name()).into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let description = format!(
            "A value or a law, such as \"{0}\", \"exponential mean {0}\" or \"pareto mean {0} shape 1.2\"",
            T::EXAMPLE
        );
        let mut schema = json_schema!({ "type": "string", "description": description });
        if let Some(unit) = T::UNIT {
            schema.insert("x-unit".to_owned(), unit.into());
        }
        schema
    }
}

impl<T: Drawn> JsonSchema for Dist<T> {
    fn schema_name() -> Cow<'static, str> {
        format!("Dist_{}", T::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let value = generator.subschema_for::<T>();
        let description =
            "A quantity drawn at random, by a law or by points of its distribution function.";
        let mut any = vec![
            generator.subschema_for::<Text<T>>(),
            json_schema!({
                "type": "object",
                "properties": {
                    "cdf": {
                        "type": "array",
                        "description": "Probabilities and the values not exceeded with them, linear in between.",
                        "items": {
                            "type": "array",
                            "prefixItems": [{ "type": "number", "minimum": 0, "maximum": 1 }, value],
                            "minItems": 2,
                            "maxItems": 2,
                        },
                        "minItems": 1,
                    },
                },
                "required": ["cdf"],
                "additionalProperties": false,
            }),
        ];
        if T::COUNT {
            any.push(json_schema!({ "type": "number", "minimum": 0 }));
        }
        json_schema!({ "description": description, "anyOf": any })
    }
}
