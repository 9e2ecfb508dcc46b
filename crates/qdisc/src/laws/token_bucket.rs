//! The token bucket: a rate, and bursts above the rate.
//!
//! Source: RFC 2697 and RFC 2698, section 3, for the bucket; Linux sch_tbf and sch_htb
//! for the bound: traffic that conforms sends at most B + r t in any interval t.
//!
//! | symbol | here | unit |
//! |---|---|---|
//! | r, rate at which tokens are added | `rate` | bit/s |
//! | B, largest content of the bucket | `depth` | 10^-12 bit |
//! | present tokens; can be negative for callers that charge before they wait | `level` | 10^-12 bit |
//!
//! A bit is counted as 10^12 parts, so that a picosecond at r bit/s adds r parts and no value is rounded:
//! tokens(t) = min(B, tokens(s) + r (t - s)).

use redtail_core::{Bytes, Rate, Time};

/// The number of parts of a bit.
const BIT: i128 = 1_000_000_000_000;

/// A bucket with its tokens.
///
/// ```
/// use redtail_core::{Bytes, Rate, Span, Time};
/// use redtail_qdisc::laws::token_bucket::{TokenBucket, cost};
///
/// let packet = Bytes::new(1500);
/// let mut bucket = TokenBucket::full(Rate::from_bps(1_000_000), packet);
/// bucket.charge(packet, Time::ZERO);
/// assert_eq!(bucket.when(cost(packet), Time::ZERO), Time::ZERO + Span::from_ms(12));
/// ```
#[derive(Clone, Debug)]
pub struct TokenBucket {
    rate: u64,
    depth: i128,
    /// The tokens at the time `at`.
    level: i128,
    at: Time,
}

/// Returns the tokens that `size` needs.
#[inline]
pub fn cost(size: Bytes) -> i128 {
    i128::from(size.bits()) * BIT
}

impl TokenBucket {
    /// A full bucket.
    ///
    /// # Panics
    /// When the rate is zero; parameters with one are refused.
    pub fn full(rate: Rate, burst: Bytes) -> Self {
        assert!(rate.as_bps() > 0, "a bucket that is never filled again");
        Self {
            rate: rate.as_bps(),
            depth: cost(burst),
            level: cost(burst),
            at: Time::ZERO,
        }
    }

    /// Returns the tokens at `now`, in 10^-12 bit.
    #[inline]
    pub fn level(&self, now: Time) -> i128 {
        let gained = u128::from(self.rate) * u128::from(now.saturating_since(self.at).as_ps());
        self.depth.min(self.level + gained as i128)
    }

    /// Adds the tokens that have come until `now`. Returns those for which the bucket had no room.
    pub fn fill(&mut self, now: Time) -> i128 {
        let gained = u128::from(self.rate) * u128::from(now.saturating_since(self.at).as_ps());
        let all = self.level + gained as i128;
        self.level = self.depth.min(all);
        self.at = self.at.max(now);
        all - self.level
    }

    /// Removes the tokens for `size`, even if the bucket does not hold them.
    #[inline]
    pub fn charge(&mut self, size: Bytes, now: Time) {
        self.level = self.level(now) - cost(size);
        self.at = now;
    }

    /// Tokens are added at this rate from `at` on, which is not before the latest charge. At zero none are added.
    pub fn set_rate(&mut self, rate: Rate, at: Time) {
        self.level = self.level(at);
        self.at = at;
        self.rate = rate.as_bps();
    }

    /// Returns the first moment, not before the latest charge, at which the bucket holds `wanted` tokens, if
    /// none are removed.
    pub fn reaches(&self, wanted: i128) -> Time {
        self.when(wanted, self.at)
    }

    /// Returns the first moment, not before the latest charge, at which the bucket is full.
    pub fn fills(&self) -> Time {
        self.reaches(self.depth)
    }

    /// Returns the first moment, not before `now`, at which the bucket holds `wanted` tokens. These must
    /// not be more than its largest content.
    pub fn when(&self, wanted: i128, now: Time) -> Time {
        let missing = wanted - self.level(now);
        if missing <= 0 {
            return now;
        }
        if self.rate == 0 {
            return Time::MAX;
        }
        let wait = (missing as u128).div_ceil(u128::from(self.rate));
        let at = u128::from(now.as_ps()) + wait;
        Time::from_ps(u64::try_from(at).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use redtail_core::Span;

    use super::*;

    #[test]
    fn tokens_come_exactly_and_no_more_than_fit() {
        // 3 bit/s: a byte takes 8/3 s, which is no whole number of picoseconds.
        let mut bucket = TokenBucket::full(Rate::from_bps(3), Bytes::new(1));
        assert_eq!(bucket.level(Time::ZERO), 8 * BIT);
        bucket.charge(Bytes::new(1), Time::ZERO);
        let full = bucket.when(8 * BIT, Time::ZERO);
        assert_eq!(full, Time::from_ps(2_666_666_666_667));
        assert!(bucket.level(Time::from_ps(full.as_ps() - 1)) < 8 * BIT);
        assert_eq!(bucket.level(full), 8 * BIT);
        assert_eq!(bucket.level(Time::MAX), 8 * BIT);
    }

    #[test]
    fn tokens_come_at_the_rate_that_there_is() {
        let at = |ms| Time::ZERO + Span::from_ms(ms);
        let mut bucket = TokenBucket::full(Rate::from_bps(8_000), Bytes::new(1000));
        bucket.charge(Bytes::new(1000), Time::ZERO);
        // 100 B in 100 ms, none in the next, 200 B in the one after that.
        bucket.set_rate(Rate::from_bps(0), at(100));
        assert_eq!(bucket.when(cost(Bytes::new(101)), at(150)), Time::MAX);
        assert_eq!(bucket.when(cost(Bytes::new(100)), at(150)), at(150));
        bucket.set_rate(Rate::from_bps(16_000), at(200));
        assert_eq!(bucket.level(at(300)), cost(Bytes::new(300)));
        assert_eq!(bucket.when(cost(Bytes::new(1000)), at(300)), at(650));
    }

    #[test]
    fn a_debt_is_paid_back_at_the_rate() {
        let mut bucket = TokenBucket::full(Rate::from_bps(8_000), Bytes::new(100));
        bucket.charge(Bytes::new(1500), Time::ZERO);
        // 1400 B at 1000 B/s.
        let ready = bucket.when(0, Time::ZERO);
        assert_eq!(ready, Time::ZERO + Span::from_ms(1400));
        assert_eq!(bucket.level(ready), 0);
    }
}
