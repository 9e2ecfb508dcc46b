//! What disciplines do alike once a law has spoken, and when it is to speak again.

use redtail_core::{Packet, Span, Time};

use crate::{DropReason, Sink};

/// Marks `packet` if the discipline uses ECN and the sender does too, else drops it for
/// `reason`. Returns it if it is kept.
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

/// The times at which a law is brought up to date, one `interval` after another.
///
/// A queue's backlog changes only when it is called, so a law that samples it
/// periodically can be brought up to date at the next call, one tick at a time,
/// with the same result as if a timer had run; it then costs no events.
#[derive(Clone, Debug)]
pub struct Ticks {
    next: Time,
    interval: Span,
}

impl Ticks {
    /// Ticks from one `interval` after the start on.
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

    /// The next tick that is due at `now`, which is taken; call until `None`.
    #[inline]
    pub fn due(&mut self, now: Time) -> Option<Time> {
        let tick = self.next;
        if tick > now {
            return None;
        }
        self.next = tick + self.interval;
        Some(tick)
    }

    /// Leaves out the ticks due at `now`: for a law that has come to rest.
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
    fn ticks_that_are_left_out_keep_the_phase() {
        let mut ticks = Ticks::every(Span::from_ms(10));
        ticks.skip(ms(35));
        assert_eq!(ticks.due(ms(39)), None);
        assert_eq!(ticks.due(ms(40)), Some(ms(40)));
        ticks.skip(ms(45));
        assert_eq!(ticks.due(ms(50)), Some(ms(50)));
    }
}
