//! The timestamp clock of both endpoints (RFC 7323, section 3).

use redtail_core::{Span, Time};

const PS_PER_US: u64 = 1_000_000;

/// The timestamp clock: microseconds modulo 2^32 (RFC 7323, section 5.4 asks for
/// 1 ms to 1 s; the finer one keeps the samples exact).
#[inline]
pub(super) fn timestamp(now: Time) -> u32 {
    (now.as_ps() / PS_PER_US) as u32
}

/// The whole microseconds until `now`, and how many of them ago the clock showed `echo` last.
#[inline]
pub(super) fn us_since(echo: u32, now: Time) -> (u64, u64) {
    let now_us = now.as_ps() / PS_PER_US;
    (now_us, u64::from((now_us as u32).wrapping_sub(echo)))
}

/// The latest time at or before `now` at which the clock showed `echo`.
#[inline]
pub(super) fn shown_at(echo: u32, now: Time) -> Time {
    let (_, ago) = us_since(echo, now);
    Time::from_ps(now.as_ps().saturating_sub(Span::from_us(ago).as_ps()))
}

/// Whether timestamp `a` is earlier than `b`, modulo 2^32.
#[inline]
pub(super) fn before(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) < 0
}
