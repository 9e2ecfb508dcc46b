//! How long a sender waits for a cumulative acknowledgement of what it has sent.

use redtail_core::{Span, Time};

/// Without cumulative progress for longer than this a flow is stalled. A connection whose segments
/// get through waits a round trip, or a few timeouts of 200 ms or 1 s.
pub const STALL: Span = Span::from_s(10);

/// Since when the oldest data waits for its acknowledgement.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Progress {
    since: Time,
    /// The longest such wait that is over.
    longest: Span,
}

impl Progress {
    /// Something is sent while nothing was outstanding.
    #[inline]
    pub fn begin(&mut self, now: Time) {
        self.since = now;
    }

    /// Data is newly acknowledged; returns whether the flow was stalled until now.
    #[inline]
    pub fn advance(&mut self, now: Time) -> bool {
        let waited = now - self.since;
        self.since = now;
        if waited > self.longest {
            self.longest = waited;
        }
        waited > STALL
    }

    /// Forgets the waits that are over; one that goes on counts from its beginning.
    pub fn forget(&mut self) {
        self.longest = Span::ZERO;
    }

    /// The longest wait until `now`, the present one included if something is outstanding.
    pub fn longest(&self, outstanding: bool, now: Time) -> Span {
        match outstanding {
            true => self.longest.max(now - self.since),
            false => self.longest,
        }
    }

    /// Whether the present wait is a stall.
    pub fn is_stalled(&self, now: Time) -> bool {
        now - self.since > STALL
    }
}
