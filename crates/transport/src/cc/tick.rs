//! The kernel's clock, for laws that follow Linux.
//!
//! A tick (jiffy) at 250 Hz, as in Debian's kernels and the kernel's default configuration.

use redtail_core::{Span, Time};

pub(super) const TICK: Span = Span::from_ms(4);
pub(super) const TICKS_PER_S: u64 = 250;

/// Time in whole ticks.
#[inline]
pub(super) fn ticks(now: Time) -> u64 {
    now.as_ps() / TICK.as_ps()
}

/// A span in ticks, rounded down.
#[inline]
pub(super) fn whole_ticks(span: Span) -> u64 {
    span.as_ps() / TICK.as_ps()
}

/// A span in ticks, rounded up (usecs_to_jiffies).
#[inline]
pub(super) fn ticks_of(span: Span) -> u64 {
    span.as_ps().div_ceil(TICK.as_ps())
}
