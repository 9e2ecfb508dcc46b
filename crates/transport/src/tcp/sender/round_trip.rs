//! Round-trip samples.

use redtail_core::{Span, Time};

use super::Sender;
use super::kind::{Any, Path};
use crate::segment::Segment;
use crate::tcp::rto::{RttSampling, TimerRestart};
use crate::tcp::scoreboard::Acked;
use crate::tcp::timestamps::shown_at;

impl Sender {
    /// Takes a round-trip sample if an acknowledgement that advances gives one; returns it. The acknowledgement covers
    /// `acked`, and the oldest and the newest segment of this were sent at `times`. A `partial` one in fast recovery
    /// gives a sample only if it says by itself which transmission is answered.
    #[inline(always)] // into the few functions that are compiled for a path
    pub(super) fn sample<P: Path>(
        &mut self,
        segment: &Segment,
        acked: Acked,
        times: Option<(Time, Time)>,
        partial: bool,
        now: Time,
    ) -> Option<Span> {
        let sent = match self.params().sampling {
            RttSampling::EveryDelivery if P::OPTIONS => {
                return self.sample_delivery(segment, times, now);
            }
            // RFC 7323, section 4.1: the echoed timestamp says which transmission is answered.
            _ if P::OPTIONS && self.params().timestamps => shown_at(segment.ts_ecr, now),
            _ if partial => return None,
            RttSampling::OnePerWindow => self.timed.take_if(|(end, _)| segment.ack >= end.get())?.1,
            RttSampling::EveryAck | RttSampling::EveryDelivery => acked.sent?,
        };
        let next = self.board.next();
        self.timer.rtt.sample(sent, now, segment.ack, next);
        Some(now - sent)
    }

    /// Samples the round trip of the oldest segment that this acknowledgement newly covers,
    /// cumulatively or selectively. `acked` holds the send times of the oldest and the newest
    /// segment newly covered cumulatively. Returns the round trip of the newest.
    #[inline]
    fn sample_delivery(
        &mut self,
        segment: &Segment,
        acked: Option<(Time, Time)>,
        now: Time,
    ) -> Option<Span> {
        let sacked = self.take_sacked_times();
        let (oldest, newest) = match (acked, sacked) {
            (Some(acked), None) => acked,
            (None, Some(sacked)) => sacked,
            (Some(acked), Some(sacked)) => (acked.0, sacked.1),
            (None, None) => self.echoed(segment, now)?,
        };
        self.timer
            .rtt
            .sample(oldest, now, segment.ack, self.board.next());
        Some(now - newest)
    }

    /// The send time that the timestamp of an acknowledgement shows, in both places.
    #[cold]
    fn echoed(&mut self, segment: &Segment, now: Time) -> Option<(Time, Time)> {
        if !self.params().timestamps {
            return None;
        }
        let sent = shown_at(segment.ts_ecr, now);
        if let Some(rack) = self.board.rack_mut() {
            rack.on_round_trip(now - sent);
        }
        Some((sent, sent))
    }

    /// The send times of the oldest and the newest segment selectively acknowledged since the last call. Most calls do
    /// not look for them, because nothing was.
    #[inline]
    fn take_sacked_times(&mut self) -> Option<(Time, Time)> {
        match std::mem::take(&mut self.sample_due) {
            true => self.board.take_sacked_times(),
            false => None,
        }
    }

    /// Samples the round trip of an acknowledgement that does not advance.
    #[inline(never)]
    pub(super) fn sample_sacked(&mut self, now: Time) {
        let Some((oldest, _)) = self.take_sacked_times() else {
            return;
        };
        let (una, next) = (self.board.una(), self.board.next());
        self.timer.rtt.sample(oldest, now, una, next);
        // Otherwise a long recovery would postpone the timer without limit.
        let before = self.board.first_sent().is_some_and(|sent| oldest < sent);
        if before && self.timer.restart() == TimerRestart::Head {
            self.restart_timer::<Any>(now);
        }
    }
}
