//! The clock of a run: nanoseconds of `CLOCK_MONOTONIC` since the run began.

use redtail_core::Time;
use rustix::time::{ClockId, Timespec, clock_getres, clock_gettime};

/// A clock that shows zero when the run begins.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    /// What `CLOCK_MONOTONIC` shows then, in nanoseconds.
    zero: u64,
}

fn monotonic() -> u64 {
    let Timespec { tv_sec, tv_nsec } = clock_gettime(ClockId::Monotonic);
    tv_sec as u64 * 1_000_000_000 + tv_nsec as u64
}

impl Clock {
    /// A clock that shows zero now.
    pub fn start() -> Self {
        Self { zero: monotonic() }
    }

    /// The time since the run began.
    #[inline]
    pub fn now(self) -> Time {
        Time::from_ps((monotonic() - self.zero) * 1000)
    }
}

/// Ticks of the kernel in a second (`CONFIG_HZ`): its coarse clocks advance with them.
pub fn ticks_per_second() -> u32 {
    let Timespec { tv_sec, tv_nsec } = clock_getres(ClockId::MonotonicCoarse);
    let tick = tv_sec as u64 * 1_000_000_000 + tv_nsec as u64;
    1_000_000_000u64
        .checked_div(tick)
        .map_or(250, |hz| hz as u32)
}
