//! Quantities as types: [`Time`], [`Span`], [`Rate`], [`Bytes`], [`QueueSize`] and [`Sampling`].
//!
//! Each is a whole number of a base unit (picoseconds, bit/s, bytes, packets), so arithmetic is
//! exact and runs are the same on every machine. In files a quantity is always a text with its
//! unit, such as `"10 Mbit/s"`. A text that cannot be held exactly is refused, and a printed
//! quantity is read back as the same value.
//!
//! A transmission time is rounded once, to the picosecond (`Rate::tx_time`).
//!
//! ```
//! use redtail_core::units::{Bytes, Rate, Span};
//!
//! let rate: Rate = "10 Mbit/s".parse()?;
//! assert_eq!(rate.tx_time(Bytes::new(1500)), Span::from_us(1200));
//! assert_eq!(rate.to_string(), "10 Mbit/s");
//! # Ok::<(), redtail_core::units::UnitError>(())
//! ```

#[cfg(feature = "schema")]
use std::borrow::Cow;
use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Div, Mul, Sub, SubAssign};
use std::str::FromStr;
use std::time::Duration;

#[cfg(feature = "schema")]
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
#[cfg(feature = "serde")]
use serde::de::Visitor;
#[cfg(feature = "serde")]
use serde::{Deserialize, Deserializer, Serialize, Serializer};

#[cfg(test)]
mod tests;
mod text;

use text::{BYTES, FREQUENCY, PACKETS, RATE, TIME, Wanted};
pub use text::{UnitError, si_value};

const PS_PER_S: u64 = 1_000_000_000_000;
const PS_PER_S_F64: f64 = 1e12;

/// The nearest whole number, halves rounded up; clamped to what fits, and 0 for what is no number.
///
/// As `number.round() as u64`, which calls a function: `as` clamps and drops the fraction, and the difference is exact,
/// so this is the same on every machine.
#[inline]
pub fn nearest_whole(number: f64) -> u64 {
    let below = number as u64;
    below.saturating_add(u64::from(number - below as f64 >= 0.5))
}

/// A moment: picoseconds since the start of the run. Holds 213 days.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Time(u64);

/// A length of time in picoseconds; never negative.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Span(u64);

/// A data rate in bit/s, with decimal prefixes: 1 Mbit/s is 1,000,000 bit/s.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Rate(u64);

/// An amount of data in bytes; kB, MB and GB are decimal, KiB, MiB and GiB binary.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Bytes(u64);

/// How much a queue holds: counted in packets, in bytes, or in the time that its
/// link takes to send it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum QueueSize {
    /// A number of packets of any size.
    Packets(u64),
    /// A number of bytes.
    Bytes(u64),
    /// What the link sends in this time.
    Time(Span),
}

/// How often something is done: as a frequency, or as the time from one to the next.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Sampling {
    /// The number of times in 1000 s, which is the frequency in mHz.
    Frequency(u64),
    /// Once in this time.
    Interval(Span),
}

impl Sampling {
    /// From a frequency in Hz.
    pub const fn hz(hz: u64) -> Self {
        Sampling::Frequency(hz * 1_000)
    }

    /// The interval, to the nearest picosecond; `None` for a frequency or an interval of zero.
    pub const fn interval(self) -> Option<Span> {
        const PS_IN_1000_S: u64 = 1_000 * PS_PER_S;
        match self {
            Sampling::Frequency(0) | Sampling::Interval(Span::ZERO) => None,
            Sampling::Frequency(mhz) => match (PS_IN_1000_S + mhz / 2) / mhz {
                0 => None,
                ps => Some(Span(ps)),
            },
            Sampling::Interval(span) => Some(span),
        }
    }
}

impl QueueSize {
    /// The size on a link of this rate: a time is converted to the bytes that the link sends in it.
    #[must_use]
    pub fn at(self, rate: Rate) -> Self {
        match self {
            QueueSize::Time(span) => QueueSize::Bytes(rate.whole_bytes_in(span).0),
            other => other,
        }
    }

    /// Whether it is a number of packets; otherwise it is equivalent to bytes.
    pub fn counts_packets(self) -> bool {
        matches!(self, QueueSize::Packets(_))
    }
}

/// A count below 2^63 as a floating-point number. The conversion goes through a signed integer, which has the same
/// result and takes one instruction instead of seven.
#[inline]
pub fn as_f64(count: u64) -> f64 {
    debug_assert!(i64::try_from(count).is_ok(), "{count} is no count");
    count.cast_signed() as f64
}

/// The earlier of two times, of which either may be unset.
#[inline]
pub fn earlier(one: Option<Time>, other: Option<Time>) -> Option<Time> {
    // Without branches: whether a timer is set is hard to predict.
    let least = one.unwrap_or(Time::MAX).min(other.unwrap_or(Time::MAX));
    (least < Time::MAX).then_some(least)
}

impl Time {
    /// The start of the run.
    pub const ZERO: Time = Time(0);
    /// The last moment that can be represented, later than any event.
    pub const MAX: Time = Time(u64::MAX);

    /// The moment this many picoseconds after the start.
    #[inline]
    pub const fn from_ps(ps: u64) -> Self {
        Time(ps)
    }

    /// Picoseconds since the start.
    #[inline]
    pub const fn as_ps(self) -> u64 {
        self.0
    }

    /// The moment nearest to `seconds` after the start; clamped to [`Time::ZERO`]..=[`Time::MAX`],
    /// zero if NaN.
    #[inline]
    pub fn from_secs_f64(seconds: f64) -> Self {
        Time(Span::from_secs_f64(seconds).0)
    }

    /// Seconds since the start, for statistics and tables.
    #[inline]
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / PS_PER_S_F64
    }

    /// The time since `earlier`, which is not later: one instruction less than a difference, where packets pass.
    ///
    /// # Panics
    /// In debug builds if `earlier` is later.
    #[inline]
    pub fn since(self, earlier: Time) -> Span {
        debug_assert!(earlier <= self, "no time passes backwards");
        Span(self.0.wrapping_sub(earlier.0))
    }

    /// The time since `earlier`; zero if that is later.
    #[inline]
    pub const fn saturating_since(self, earlier: Time) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }
}

impl Span {
    /// Zero.
    pub const ZERO: Span = Span(0);
    /// The longest span that can be represented, 213 days.
    pub const MAX: Span = Span(u64::MAX);

    /// From picoseconds.
    #[inline]
    pub const fn from_ps(ps: u64) -> Self {
        Span(ps)
    }

    /// From nanoseconds.
    #[inline]
    pub const fn from_ns(ns: u64) -> Self {
        Span(ns * 1_000)
    }

    /// From microseconds.
    #[inline]
    pub const fn from_us(us: u64) -> Self {
        Span(us * 1_000_000)
    }

    /// From milliseconds.
    #[inline]
    pub const fn from_ms(ms: u64) -> Self {
        Span(ms * 1_000_000_000)
    }

    /// From seconds.
    #[inline]
    pub const fn from_s(s: u64) -> Self {
        Span(s * PS_PER_S)
    }

    /// The span nearest to `seconds`; clamped to [`Span::ZERO`]..=[`Span::MAX`], zero if NaN.
    #[inline]
    pub fn from_secs_f64(seconds: f64) -> Self {
        Span(nearest_whole(seconds * PS_PER_S_F64))
    }

    /// In picoseconds.
    #[inline]
    pub const fn as_ps(self) -> u64 {
        self.0
    }

    /// In seconds, for statistics and tables.
    #[inline]
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / PS_PER_S_F64
    }

    /// In picoseconds, for statistics of spans within a run: of up to 106 days.
    #[inline]
    pub fn as_ps_f64(self) -> f64 {
        as_f64(self.0)
    }

    /// The difference, zero if `other` is longer.
    #[inline]
    pub const fn saturating_sub(self, other: Span) -> Span {
        Span(self.0.saturating_sub(other.0))
    }

    /// The product; `None` if it exceeds [`Span::MAX`].
    #[inline]
    pub const fn checked_mul(self, times: u64) -> Option<Span> {
        match self.0.checked_mul(times) {
            Some(ps) => Some(Span(ps)),
            None => None,
        }
    }
}

impl Rate {
    /// The rate at which a byte takes a picosecond, the clock's resolution. Above it a transmission
    /// may take no time.
    pub const FASTEST: Rate = Rate(8 * PS_PER_S);

    /// From bit/s.
    #[inline]
    pub const fn from_bps(bps: u64) -> Self {
        Rate(bps)
    }

    /// In bit/s.
    #[inline]
    pub const fn as_bps(self) -> u64 {
        self.0
    }

    /// How long `size` takes at this rate, to the nearest picosecond, halves upwards; at most
    /// [`Span::MAX`].
    ///
    /// The rounding is part of the results: it is the only place where time is not exact.
    ///
    /// # Panics
    /// If the rate is zero; experiment files with a zero rate are refused.
    #[inline]
    pub const fn tx_time(self, size: Bytes) -> Span {
        // Sizes up to 2.3 MB, which includes all packets, fit in 64 bits here at any realistic
        // rate.
        if let Some(bits) = size.0.checked_mul(8)
            && let Some(scaled) = bits.checked_mul(PS_PER_S)
            && let Some(sum) = scaled.checked_add(self.0 / 2)
        {
            return Span(sum / self.0);
        }
        let rate = self.0 as u128;
        let ps = (size.0 as u128 * 8 * PS_PER_S as u128 + rate / 2) / rate;
        Span(if ps > u64::MAX as u128 {
            u64::MAX
        } else {
            ps as u64
        })
    }

    /// The number of whole bytes that pass in `span`.
    pub const fn whole_bytes_in(self, span: Span) -> Bytes {
        let bytes = self.0 as u128 * span.0 as u128 / (8 * PS_PER_S as u128);
        Bytes(if bytes > u64::MAX as u128 {
            u64::MAX
        } else {
            bytes as u64
        })
    }

    /// How many bytes pass in `span`, with a fraction; only for bounds and statistics.
    #[inline]
    pub fn bytes_in(self, span: Span) -> f64 {
        self.0 as f64 * span.as_secs_f64() / 8.0
    }
}

impl Bytes {
    /// No data.
    pub const ZERO: Bytes = Bytes(0);

    /// This many bytes.
    #[inline]
    pub const fn new(bytes: u64) -> Self {
        Bytes(bytes)
    }

    /// The number of bytes.
    #[inline]
    pub const fn as_u64(self) -> u64 {
        self.0
    }

    /// The number of bits, at most the largest 64-bit number.
    #[inline]
    pub const fn bits(self) -> u64 {
        self.0.saturating_mul(8)
    }

    /// The difference; zero if `other` is larger.
    #[inline]
    pub const fn saturating_sub(self, other: Bytes) -> Bytes {
        Bytes(self.0.saturating_sub(other.0))
    }
}

impl From<u64> for Bytes {
    #[inline]
    fn from(bytes: u64) -> Self {
        Bytes(bytes)
    }
}

/// At most [`Span::MAX`].
impl From<Duration> for Span {
    #[inline]
    fn from(duration: Duration) -> Self {
        let ps = duration.as_nanos().saturating_mul(1_000);
        Span(u64::try_from(ps).unwrap_or(u64::MAX))
    }
}

/// Rounded up to the nanosecond, so that what is due after the span is due after the duration.
impl From<Span> for Duration {
    #[inline]
    fn from(span: Span) -> Self {
        Duration::from_nanos(span.0.div_ceil(1_000))
    }
}

/// At most [`Time::MAX`], so that an event after the last representable moment is never due. A sum
/// that wrapped around would be due at once, repeatedly.
impl Add<Span> for Time {
    type Output = Time;
    #[inline]
    fn add(self, span: Span) -> Time {
        Time(self.0.saturating_add(span.0))
    }
}

impl AddAssign<Span> for Time {
    #[inline]
    fn add_assign(&mut self, span: Span) {
        *self = *self + span;
    }
}

/// Panics in debug builds if the result is before the start; in release builds it is the start.
impl Sub<Span> for Time {
    type Output = Time;
    #[inline]
    fn sub(self, span: Span) -> Time {
        debug_assert!(span.0 <= self.0, "a time before the start of the run");
        Time(self.0.saturating_sub(span.0))
    }
}

/// Panics in debug builds if the right side is later; in release builds the result is zero. See
/// [`Time::saturating_since`].
impl Sub for Time {
    type Output = Span;
    #[inline]
    fn sub(self, earlier: Time) -> Span {
        debug_assert!(earlier <= self, "no time passes backwards");
        Span(self.0.saturating_sub(earlier.0))
    }
}

/// At most [`Span::MAX`].
impl Mul<u64> for Span {
    type Output = Span;
    #[inline]
    fn mul(self, times: u64) -> Span {
        Span(self.0.saturating_mul(times))
    }
}

/// Rounds down.
impl Div<u64> for Span {
    type Output = Span;
    #[inline]
    fn div(self, parts: u64) -> Span {
        Span(self.0 / parts)
    }
}

/// Sums and differences of like quantities. A sum is at most the largest value. A negative
/// difference is a bug: it panics in debug builds and is zero in release builds.
macro_rules! additive {
    ($($quantity:ident),*) => {$(
        impl Add for $quantity {
            type Output = $quantity;
            #[inline]
            fn add(self, other: $quantity) -> $quantity {
                $quantity(self.0.saturating_add(other.0))
            }
        }

        impl AddAssign for $quantity {
            #[inline]
            fn add_assign(&mut self, other: $quantity) {
                *self = *self + other;
            }
        }

        impl Sub for $quantity {
            type Output = $quantity;
            #[inline]
            fn sub(self, other: $quantity) -> $quantity {
                debug_assert!(other <= self, "a negative difference");
                $quantity(self.0.saturating_sub(other.0))
            }
        }

        impl SubAssign for $quantity {
            #[inline]
            fn sub_assign(&mut self, other: $quantity) {
                *self = *self - other;
            }
        }

        impl Sum for $quantity {
            fn sum<I: Iterator<Item = $quantity>>(all: I) -> $quantity {
                all.fold($quantity(0), Add::add)
            }
        }
    )*};
}

additive!(Span, Bytes);

/// Reading and printing, which are the same for every quantity.
trait Quantity: Sized {
    const WANTED: Wanted;
    /// The `x-unit` mark in the schema, by which tools know the dimension.
    #[cfg(feature = "schema")]
    const SCHEMA_UNIT: &'static str;

    /// From an index into `WANTED.dimensions` and a number of base units.
    fn from_base(dimension: usize, value: u64) -> Self;
    fn print(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result;
}

macro_rules! quantity {
    ($quantity:ident, $dimension:ident, $schema_unit:literal) => {
        impl Quantity for $quantity {
            const WANTED: Wanted = Wanted::one(&$dimension, &[&$dimension]);
            #[cfg(feature = "schema")]
            const SCHEMA_UNIT: &'static str = $schema_unit;

            fn from_base(_: usize, value: u64) -> Self {
                $quantity(value)
            }

            fn print(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                text::print(&$dimension, self.0, f)
            }
        }
        textual!($quantity);
    };
}

/// Implements the text form of a [`Quantity`] for the traits of Rust, serde and schemars.
macro_rules! textual {
    ($quantity:ident) => {
        impl FromStr for $quantity {
            type Err = UnitError;

            fn from_str(text: &str) -> Result<Self, UnitError> {
                let (dimension, value) = Self::WANTED.parse(text)?;
                Ok(Self::from_base(dimension, value))
            }
        }

        impl fmt::Display for $quantity {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.print(f)
            }
        }

        #[cfg(feature = "serde")]
        impl Serialize for $quantity {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        #[cfg(feature = "serde")]
        impl<'de> Deserialize<'de> for $quantity {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                // Not `deserialize_str`: numbers must reach the visitor, whose error explains
                // units.
                deserializer.deserialize_any(QuantityVisitor(std::marker::PhantomData))
            }
        }

        #[cfg(feature = "schema")]
        impl JsonSchema for $quantity {
            fn schema_name() -> Cow<'static, str> {
                stringify!($quantity).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({
                    "type": "string",
                    "description": Self::WANTED.expectation(),
                    "pattern": Self::WANTED.pattern(),
                    "x-unit": Self::SCHEMA_UNIT,
                })
            }
        }
    };
}

quantity!(Time, TIME, "time");
quantity!(Span, TIME, "time");
quantity!(Rate, RATE, "rate");
quantity!(Bytes, BYTES, "bytes");

impl Quantity for QueueSize {
    const WANTED: Wanted = Wanted {
        noun: "a queue size",
        unit_of: "queue size",
        example: "\"300 packets\", \"64 kB\" or \"20 ms\"",
        dimensions: &[&PACKETS, &BYTES, &TIME],
    };
    #[cfg(feature = "schema")]
    const SCHEMA_UNIT: &'static str = "queue-size";

    fn from_base(dimension: usize, value: u64) -> Self {
        match dimension {
            0 => QueueSize::Packets(value),
            1 => QueueSize::Bytes(value),
            _ => QueueSize::Time(Span(value)),
        }
    }

    fn print(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            QueueSize::Packets(1) => f.pad("1 packet"),
            QueueSize::Packets(packets) => text::print(&PACKETS, packets, f),
            QueueSize::Bytes(bytes) => text::print(&BYTES, bytes, f),
            QueueSize::Time(span) => text::print(&TIME, span.0, f),
        }
    }
}

textual!(QueueSize);

impl Quantity for Sampling {
    const WANTED: Wanted = Wanted {
        noun: "a frequency or a time",
        unit_of: "frequency or time",
        example: "\"170 Hz\" or \"10 ms\"",
        dimensions: &[&FREQUENCY, &TIME],
    };
    #[cfg(feature = "schema")]
    const SCHEMA_UNIT: &'static str = "sampling";

    fn from_base(dimension: usize, value: u64) -> Self {
        match dimension {
            0 => Sampling::Frequency(value),
            _ => Sampling::Interval(Span(value)),
        }
    }

    fn print(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Sampling::Frequency(mhz) => text::print(&FREQUENCY, mhz, f),
            Sampling::Interval(span) => text::print(&TIME, span.0, f),
        }
    }
}

textual!(Sampling);

#[cfg(feature = "serde")]
struct QuantityVisitor<Q>(std::marker::PhantomData<Q>);

#[cfg(feature = "serde")]
impl<Q: Quantity> Visitor<'_> for QuantityVisitor<Q> {
    type Value = Q;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&Q::WANTED.expectation())
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Q, E> {
        let (dimension, value) = Q::WANTED.parse(text).map_err(E::custom)?;
        Ok(Q::from_base(dimension, value))
    }

    fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<Q, E> {
        Err(E::custom(Q::WANTED.bare(number)))
    }

    fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<Q, E> {
        Err(E::custom(Q::WANTED.bare(number)))
    }

    fn visit_f64<E: serde::de::Error>(self, number: f64) -> Result<Q, E> {
        Err(E::custom(Q::WANTED.bare(number)))
    }
}
