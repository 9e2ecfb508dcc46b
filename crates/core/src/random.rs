//! Named random streams.
//!
//! Every component that draws random numbers has its own stream, determined by the run's seed, the
//! replication and the component's name. If two scenarios differ in one component, all other
//! components draw the same numbers (common random numbers), however often the changed one draws.

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::{SplitMix64, Xoshiro256PlusPlus};

use crate::units::Span;

/// A stream of pseudo-random numbers: xoshiro256++ (Blackman and Vigna 2021),
/// seeded through SplitMix64 from a 64-bit hash of its name.
#[derive(Clone, Debug)]
pub struct Stream(Xoshiro256PlusPlus);

impl Stream {
    /// The stream called `name` in replication `replication` of a scenario with `seed`.
    pub fn named(seed: u64, replication: u32, name: &str) -> Self {
        Self::of(seed, replication, name, &[])
    }

    /// As [`named`](Self::named), with the name `name` followed by `digits`.
    fn of(seed: u64, replication: u32, name: &str, digits: &[u8]) -> Self {
        // FNV-1a over seed, replication and name. It is stable across platforms and releases, which
        // the standard library does not promise for its hashers. SplitMix64 then distributes the
        // bits.
        const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
        const PRIME: u64 = 0x0000_0100_0000_01b3;
        let (seed, replication) = (seed.to_le_bytes(), replication.to_le_bytes());
        let mut hash = OFFSET;
        for part in [&seed[..], &replication, name.as_bytes(), digits] {
            for &byte in part {
                hash = (hash ^ u64::from(byte)).wrapping_mul(PRIME);
            }
        }
        Self(Xoshiro256PlusPlus::seed_from_u64(hash))
    }

    /// A number uniform on [0, 1), a multiple of 2^-53.
    #[inline]
    pub fn uniform(&mut self) -> f64 {
        unit(self.0.next_u64())
    }

    /// The stream of a part called `name` of the component to which this stream belongs. It depends
    /// on the numbers already drawn from this stream, so derive it before drawing.
    #[must_use]
    pub fn child(&self, name: &str) -> Self {
        Self::named(self.0.clone().next_u64(), 0, name)
    }

    /// The [`child`](Self::child) whose name is `name` followed by `number` in decimal digits.
    #[must_use]
    pub fn numbered_child(&self, name: &str, number: u32) -> Self {
        // The digits, from the last one on. They are not put into a string, as users draw from many such streams.
        let mut digits = [b'0'; 10];
        let mut first = digits.len();
        let mut left = number;
        while left > 0 || first == digits.len() {
            first -= 1;
            digits[first] += (left % 10) as u8;
            left /= 10;
        }
        Self::of(self.0.clone().next_u64(), 0, name, &digits[first..])
    }

    /// As [`numbered_child`](Self::numbered_child), with a small stream.
    #[must_use]
    pub fn small_child(&self, name: &str, number: u32) -> SmallStream {
        let seed = self.numbered_child(name, number).0.next_u64();
        SmallStream(SplitMix64::seed_from_u64(seed))
    }

    /// Numbers by place. They depend on the numbers already drawn from this stream, so make them before drawing.
    #[must_use]
    pub fn places(&self) -> Places {
        Places(self.0.clone().next_u64())
    }

    /// A span uniform on [low, high), to the picosecond; `low` when they are equal.
    #[inline]
    pub fn uniform_span(&mut self, low: Span, high: Span) -> Span {
        let width = high.as_ps().saturating_sub(low.as_ps());
        // Multiply-shift: the bias is below 2^-64 of the width per value.
        let offset = (u128::from(self.0.next_u64()) * u128::from(width)) >> 64;
        Span::from_ps(low.as_ps() + offset as u64)
    }
}

/// A number uniform on [0, 1) of 64 random bits, a multiple of 2^-53.
#[inline]
fn unit(bits: u64) -> f64 {
    (bits >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
}

/// A number for each place, in whatever order places are asked for: SplitMix64 of the place.
#[derive(Clone, Debug)]
pub struct Places(u64);

impl Places {
    /// The number at a place, uniform on [0, 1), a multiple of 2^-53.
    pub fn uniform(&self, place: [u64; 2]) -> f64 {
        let next = |state: u64, part: u64| SplitMix64::seed_from_u64(state ^ part).next_u64();
        unit(place.into_iter().fold(self.0, next))
    }
}

/// A stream of 8 bytes, for parts of which there are many: SplitMix64 (Steele, Lea and Flood 2014).
#[derive(Clone, Debug)]
pub struct SmallStream(SplitMix64);

impl SmallStream {
    /// A span uniform on [0, `high`), to the picosecond; none if `high` is none.
    #[inline]
    pub fn uniform_span(&mut self, high: Span) -> Span {
        let offset = (u128::from(self.0.next_u64()) * u128::from(high.as_ps())) >> 64;
        Span::from_ps(offset as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_depends_on_seed_replication_and_name() {
        let draw = |seed, replication, name| Stream::named(seed, replication, name).uniform();
        let base = draw(1, 0, "queue.forward");
        assert_eq!(base, draw(1, 0, "queue.forward"));
        assert_ne!(base, draw(2, 0, "queue.forward"));
        assert_ne!(base, draw(1, 1, "queue.forward"));
        assert_ne!(base, draw(1, 0, "queue.reverse"));
    }

    #[test]
    fn a_numbered_child_is_the_one_of_that_name() {
        let stream = Stream::named(1, 0, "user");
        for number in [0, 7, 10, 1234567890, u32::MAX] {
            let named = stream.child(&format!("page.{number}")).uniform();
            assert_eq!(stream.numbered_child("page.", number).uniform(), named);
        }
    }

    #[test]
    fn uniform_stays_in_the_half_open_interval_and_has_its_mean() {
        let mut stream = Stream::named(7, 0, "test");
        let n = 100_000;
        let draws: Vec<f64> = (0..n).map(|_| stream.uniform()).collect();
        assert!(draws.iter().all(|u| (0.0..1.0).contains(u)));
        // The mean of n uniforms has standard deviation 1/sqrt(12 n); five of
        // them are exceeded with probability 6e-7 (and the seed is fixed).
        let mean = draws.iter().sum::<f64>() / f64::from(n);
        assert!((mean - 0.5).abs() < 5.0 / (12.0 * f64::from(n)).sqrt());
    }

    #[test]
    fn a_small_stream_has_a_number_of_its_own_and_is_uniform() {
        let stream = Stream::named(7, 0, "test");
        let high = Span::from_ms(1);
        let mut sum = 0.0;
        let n = 100_000;
        // The first draws of many streams, as flows make them.
        for number in 0..n {
            let draw = stream.small_child("flow.", number).uniform_span(high);
            assert!(draw < high);
            sum += draw.as_secs_f64() / high.as_secs_f64();
        }
        // As above: five standard deviations.
        assert!((sum / f64::from(n) - 0.5).abs() < 5.0 / (12.0 * f64::from(n)).sqrt());
        let mut one = stream.small_child("flow.", 1);
        let mut again = stream.small_child("flow.", 1);
        assert_eq!(one.uniform_span(high), again.uniform_span(high));
        assert_ne!(
            one.uniform_span(high),
            again.uniform_span(high - Span::from_ps(1)) * 2
        );
        assert_eq!(one.uniform_span(Span::ZERO), Span::ZERO);
    }

    #[test]
    fn numbers_by_place_are_those_of_their_place_uniform_and_not_alike_at_neighbours() {
        let places = Stream::named(7, 0, "test").places();
        let n = 300;
        let row = |i: u64| (0..n).map(move |j| [i, j * 1460]);
        let grid: Vec<Vec<f64>> = (0..n)
            .map(|i| row(i).map(|place| places.uniform(place)).collect())
            .collect();
        assert_eq!(grid[3][5], places.uniform([3, 5 * 1460]));
        assert_ne!(grid[3][5], places.uniform([5 * 1460, 3]));
        let all = || grid.iter().flatten().map(|u| u - 0.5);
        assert!(all().all(|u| (-0.5..0.5).contains(&u)));
        // Five standard deviations each, exceeded with probability 6e-7: of the mean of n uniforms 1/sqrt(12 n), of the
        // mean product of independent neighbours 1/(12 sqrt(n)).
        let count = (n * n) as f64;
        assert!((all().sum::<f64>() / count).abs() < 5.0 / (12.0 * count).sqrt());
        let (mut along, mut across) = (0.0, 0.0);
        for i in 0..grid.len() - 1 {
            for j in 0..grid.len() - 1 {
                along += (grid[i][j] - 0.5) * (grid[i][j + 1] - 0.5);
                across += (grid[i][j] - 0.5) * (grid[i + 1][j] - 0.5);
            }
        }
        let pairs = ((n - 1) * (n - 1)) as f64;
        assert!(
            (along / pairs).abs() < 5.0 / (12.0 * pairs.sqrt()),
            "{along}"
        );
        assert!(
            (across / pairs).abs() < 5.0 / (12.0 * pairs.sqrt()),
            "{across}"
        );
    }

    #[test]
    fn uniform_span_covers_its_interval_and_no_more() {
        let mut stream = Stream::named(7, 0, "test");
        let (low, high) = (Span::from_ps(10), Span::from_ps(13));
        let mut seen = [0u32; 3];
        for _ in 0..300 {
            seen[(stream.uniform_span(low, high).as_ps() - 10) as usize] += 1;
        }
        assert!(seen.iter().all(|&count| count > 50), "{seen:?}");
        assert_eq!(stream.uniform_span(low, low), low);
    }
}
