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

/// The clock of a host's timers.
#[derive(Clone, Copy, Debug)]
pub(super) struct TimerWheel {
    /// The tick in picoseconds; 0 for an exact clock.
    tick: u64,
}

impl TimerWheel {
    pub(super) fn new(tick: Span) -> Self {
        Self { tick: tick.as_ps() }
    }

    /// When a timer that is set at `now` for `timeout` expires.
    #[inline]
    pub(super) fn expiry(self, now: Time, timeout: Span) -> Time {
        if self.tick == 0 {
            now + timeout
        } else {
            self.due(now, timeout)
        }
    }

    #[inline(never)]
    fn due(self, now: Time, timeout: Span) -> Time {
        let wait = timeout.as_ps().div_ceil(self.tick);
        let expires = now.as_ps() / self.tick + wait;
        let coarse = (0..LEVELS - 1).find(|level| wait < FIRST_LEVEL << (SHIFT * level));
        let shift = SHIFT * coarse.unwrap_or(LEVELS - 1);
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
            tick => Time::from_ps(now.as_ps() / tick * tick),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// When a timer that is set at `now` ms for `timeout` ms expires, in ms.
    fn due(now: u64, timeout: u64) -> u64 {
        let wheel = TimerWheel::new(Span::from_ms(4));
        let at = wheel.expiry(Time::ZERO + Span::from_ms(now), Span::from_ms(timeout));
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
        assert_eq!(wheel.expiry(now, Span::from_ps(67)), Time::from_ps(12_412));
    }
}
