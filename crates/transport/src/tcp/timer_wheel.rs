//! The expiry of timers whose clock has a coarse tick.
//!
//! Source: Linux 6.1, kernel/time/timer.c (calc_wheel_index, calc_index; the table of levels at
//! its head) and include/linux/jiffies.h (usecs_to_jiffies, which rounds up).
//!
//! | symbol | meaning | unit |
//! |---|---|---|
//! | HZ | ticks a second (250 in Debian's kernels) | 1/s |
//! | expires | tick at which a timer is meant to run out | ticks |
//! | level | how coarse the place is that it is put in: 8^level ticks | |
//!
//! ```text
//! expires = floor(now) + ceil(timeout)
//! level:    the least with  expires - floor(now) < 63 * 8^level
//! due     = (floor(expires / 8^level) + 1) * 8^level
//! ```
//!
//! A timer is never early. With 250 ticks a second, a timer of less than 252 ms is late by up to 8
//! ms (the rounding up, and one tick), up to 2 s by up to 36 ms, up to 16 s by up to 260 ms. All
//! clocks tick at the same times, as those of the sockets of one machine do.

use std::num::NonZeroU64;

use redtail_core::{Span, Time};

/// Timeouts of fewer ticks are in the first level (LVL_SIZE - 1 of Linux).
const FIRST_LEVEL: u64 = 63;
/// Each level is coarser by this power of two than the one before (LVL_CLK_SHIFT).
const SHIFT: u32 = 3;
/// The number of levels (LVL_DEPTH).
const LEVELS: u32 = 9;

/// Added to tail loss probe and reordering timers because of the clock's tick (TCP_TIMEOUT_MIN_US
/// of Linux).
const ALLOWANCE: Span = Span::from_ms(2);

/// When a timer that was set expires. The clock's rounding, which is never down, is left to
/// [`TimerWheel::expiry`]: most timers are set anew before anybody asks for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Expiry {
    /// When it was set plus `wait`, in picoseconds, at least 1.
    earliest: NonZeroU64,
    wait: Span,
}

impl Expiry {
    /// The expiry of a timer that is set at `now` for `timeout`.
    #[inline]
    pub(super) fn new(now: Time, timeout: Span) -> Self {
        let earliest = NonZeroU64::new((now + timeout).as_ps());
        Self {
            earliest: earliest.unwrap_or(NonZeroU64::MIN),
            wait: timeout,
        }
    }

    /// A time that is not later than it.
    #[inline]
    pub(super) fn earliest(self) -> Time {
        Time::from_ps(self.earliest.get())
    }
}

/// The clock of a host's timers.
#[derive(Clone, Copy, Debug)]
pub(super) struct TimerWheel {
    /// The tick in picoseconds; 0 for an exact clock.
    tick: u64,
    /// (2^64 - 1) / `tick`, rounded down; 0 for an exact clock. A multiplication by it takes a third of the time
    /// of a division, of which a segment needs several.
    inverse: u64,
}

impl TimerWheel {
    pub(super) fn new(tick: Span) -> Self {
        let tick = tick.as_ps();
        Self {
            tick,
            inverse: u64::MAX.checked_div(tick).unwrap_or(0),
        }
    }

    /// The time of an expiry by this clock.
    #[inline]
    pub(super) fn expiry(self, expiry: Expiry) -> Time {
        if self.tick == 0 {
            expiry.earliest()
        } else {
            self.due(expiry)
        }
    }

    /// The time of an expiry by this clock; `None` if it is certain to be at `alarm` or later.
    #[inline]
    pub(super) fn expiry_before(self, expiry: Expiry, alarm: Time) -> Option<Time> {
        (expiry.earliest() < alarm).then(|| self.expiry(expiry))
    }

    /// Whether the time of an expiry has come by this clock.
    #[inline]
    pub(super) fn is_due(self, expiry: Expiry, now: Time) -> bool {
        expiry.earliest() <= now && self.expiry(expiry) <= now
    }

    /// The number of whole ticks in `ps`, for a clock that is not exact.
    #[inline]
    pub(super) fn ticks(self, ps: u64) -> u64 {
        // 2^64 - inverse * tick is between 1 and tick. So the product is less than ps / tick by less than
        // ps / 2^64 < 1, and rounded down it is the quotient or one less.
        let product = (u128::from(ps) * u128::from(self.inverse)) >> 64;
        let quotient = product as u64;
        quotient + u64::from(ps - quotient * self.tick >= self.tick)
    }

    #[inline(never)]
    fn due(self, expiry: Expiry) -> Time {
        let timeout = expiry.wait.as_ps();
        let whole = self.ticks(timeout);
        let wait = whole + u64::from(whole * self.tick < timeout);
        let expires = self.ticks((expiry.earliest() - expiry.wait).as_ps()) + wait;
        // The least level with wait < FIRST_LEVEL << (SHIFT * level), from the number of bits of the quotient.
        let bits = u64::BITS - (wait / FIRST_LEVEL).leading_zeros();
        let shift = SHIFT * bits.div_ceil(SHIFT).min(LEVELS - 1);
        Time::from_ps((((expires >> shift) + 1) << shift) * self.tick)
    }

    /// The time that is added to short timers.
    #[inline]
    pub(super) fn allowance(self) -> Span {
        if self.tick == 0 {
            Span::ZERO
        } else {
            ALLOWANCE
        }
    }

    /// The latest tick at or before `now`.
    pub(super) fn floor(self, now: Time) -> Time {
        match self.tick {
            0 => now,
            tick => Time::from_ps(self.ticks(now.as_ps()) * tick),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_product_with_the_inverse_gives_the_quotient(
            (tick, ticks, more) in (any::<u64>(), 0u32..64).prop_flat_map(|(tick, shift)| {
                let tick = (tick >> shift).max(1);
                (Just(tick), 0..=u64::MAX / tick, 0..tick)
            }),
        ) {
            let wheel = TimerWheel::new(Span::from_ps(tick));
            for ps in [ticks * tick, (ticks * tick).saturating_add(more), u64::MAX] {
                prop_assert_eq!(wheel.ticks(ps), ps / tick);
            }
        }
    }

    /// When a timer that is set at `now` ms for `timeout` ms expires, in ms.
    fn due(now: u64, timeout: u64) -> u64 {
        let wheel = TimerWheel::new(Span::from_ms(4));
        let expiry = Expiry::new(Time::ZERO + Span::from_ms(now), Span::from_ms(timeout));
        let at = wheel.expiry(expiry);
        assert!(at >= expiry.earliest());
        at.as_ps() / Span::from_ms(1).as_ps()
    }

    #[test]
    fn a_short_timer_runs_out_at_the_tick_after_its_time() {
        assert_eq!([due(0, 40), due(3, 40), due(4, 40)], [44, 44, 48]);
        assert_eq!([due(0, 37), due(0, 248)], [44, 252]);
    }

    #[test]
    fn a_longer_one_at_a_multiple_of_eight_ticks_and_so_on() {
        // 63 ticks are 252 ms; 8 of them 32 ms, 64 of them 256 ms.
        assert_eq!(
            [due(0, 252), due(0, 255), due(0, 256), due(100, 300)],
            [256, 288, 288, 416]
        );
        assert_eq!(
            [due(0, 2012), due(0, 2016), due(1000, 3000)],
            [2016, 2048, 4096]
        );
        assert_eq!(due(0, 16_128), 16_384 / 2048 * 2048);
    }

    #[test]
    fn without_a_tick_it_is_exact() {
        let wheel = TimerWheel::new(Span::ZERO);
        let now = Time::from_ps(12_345);
        let expiry = Expiry::new(now, Span::from_ps(67));
        assert_eq!(wheel.expiry(expiry), Time::from_ps(12_412));
    }
}
