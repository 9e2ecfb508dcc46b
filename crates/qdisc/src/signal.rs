//! Common parts of disciplines with a control law: marking or dropping, and periodic updates.

use redtail_core::{Packet, Span, Time};

use crate::{DropReason, Sink};

/// Marks `packet` if both the discipline and the sender use ECN; otherwise drops it for `reason`. Returns the
/// packet if it is not dropped.
#[inline]
pub fn mark_or_drop<P: Packet>(
    mut packet: P,
    ecn: bool,
    reason: DropReason,
    now: Time,
    sink: &mut impl Sink<P>,
) -> Option<P> {
    if ecn && packet.mark_ce() {
        sink.marked(&packet, now);
        Some(packet)
    } else {
        sink.dropped(packet, reason, now);
        None
    }
}

/// The largest number of overdue updates that a law makes in one call.
///
/// More can be due only after a long time with a constant backlog. The latest ones are made, the others are
/// skipped. The result is the same if the law has reached its bound by then: with constant input the laws here add the same amount to a probability
/// at each update (or take the same share away), so that any amount above 10^-6 has brought it to 1 or
/// to 0.
pub const MOST_UPDATES: u64 = 1 << 20;

/// The times of a law's updates, one every `interval`.
///
/// A queue's backlog changes only when it is called, so a law that samples it
/// periodically can be updated at the next call, one tick at a time, with the same result as with a timer.
/// So it costs no events. At most the latest
/// [`MOST_UPDATES`] ticks are due at once.
#[derive(Clone, Debug)]
pub struct Ticks {
    next: Time,
    interval: Span,
}

impl Ticks {
    /// Ticks that begin one `interval` after the start.
    ///
    /// # Panics
    /// When the interval is zero; parameters with one are refused.
    pub fn every(interval: Span) -> Self {
        assert!(interval > Span::ZERO, "a law without an interval");
        Self {
            next: Time::ZERO + interval,
            interval,
        }
    }

    /// Removes and returns the next tick that is due at `now`; call it until it returns `None`.
    #[inline]
    pub fn due(&mut self, now: Time) -> Option<Time> {
        if self.next > now {
            return None;
        }
        if now - self.next >= self.interval * MOST_UPDATES {
            self.leave_out(now);
        }
        let tick = self.next;
        self.next = tick + self.interval;
        Some(tick)
    }

    /// Skips all but the latest [`MOST_UPDATES`] ticks that are due at `now`.
    #[cold]
    fn leave_out(&mut self, now: Time) {
        let due = (now - self.next).as_ps() / self.interval.as_ps() + 1;
        self.next += self.interval * (due - MOST_UPDATES);
    }

    /// Skips the ticks that are due at `now`, for a law that would not change.
    pub fn skip(&mut self, now: Time) {
        if self.next <= now {
            let missed = (now - self.next).as_ps() / self.interval.as_ps() + 1;
            self.next += self.interval * missed;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Time {
        Time::ZERO + Span::from_ms(ms)
    }

    #[test]
    fn every_tick_is_due_once() {
        let mut ticks = Ticks::every(Span::from_ms(10));
        assert_eq!(ticks.due(ms(9)), None);
        assert_eq!(ticks.due(ms(25)), Some(ms(10)));
        assert_eq!(ticks.due(ms(25)), Some(ms(20)));
        assert_eq!(ticks.due(ms(25)), None);
    }

    #[test]
    fn of_very_many_ticks_the_latest_are_due() {
        let us = |us| Time::ZERO + Span::from_us(us);
        let mut ticks = Ticks::every(Span::from_us(10));
        let now = us(10 * (MOST_UPDATES + 1000) + 5);
        assert_eq!(ticks.due(now), Some(us(10 * 1001)));
        let others = std::iter::from_fn(|| ticks.due(now));
        assert_eq!(others.count() as u64, MOST_UPDATES - 1);
        assert_eq!(
            ticks.due(now + Span::from_us(5)),
            Some(us(10 * (MOST_UPDATES + 1001)))
        );
        // None is left out of as many.
        let mut ticks = Ticks::every(Span::from_us(10));
        assert_eq!(ticks.due(us(10 * MOST_UPDATES)), Some(us(10)));
    }

    #[test]
    fn a_tick_beyond_the_end_of_time_is_never_due() {
        let mut ticks = Ticks::every(Span::MAX);
        assert_eq!(ticks.due(Time::from_ps(u64::MAX - 1)), None);
        assert_eq!(ticks.due(Time::MAX), Some(Time::MAX));
    }

    #[test]
    fn ticks_that_are_left_out_keep_the_phase() {
        let mut ticks = Ticks::every(Span::from_ms(10));
        ticks.skip(ms(35));
        assert_eq!(ticks.due(ms(39)), None);
        assert_eq!(ticks.due(ms(40)), Some(ms(40)));
        ticks.skip(ms(45));
        assert_eq!(ticks.due(ms(50)), Some(ms(50)));
    }
}
