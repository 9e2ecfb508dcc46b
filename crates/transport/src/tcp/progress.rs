//! How long a sender waits for cumulative progress of the data it has sent.

use redtail_core::{Span, Time};

/// A flow is stalled if it makes no cumulative progress for longer than this. A connection whose
/// segments arrive waits a round trip, or a few timeouts of 200 ms or 1 s.
pub const STALL: Span = Span::from_s(10);

/// The wait of the oldest data for its acknowledgement.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Progress {
    since: Time,
    /// The longest wait that has ended.
    longest: Span,
}

impl Progress {
    /// Data is sent while nothing is outstanding.
    #[inline]
    pub fn begin(&mut self, now: Time) {
        self.since = now;
    }

    /// Data is newly acknowledged; returns whether the flow was stalled until now.
    #[inline]
    pub fn advance(&mut self, now: Time) -> bool {
        let waited = now - self.since;
        self.since = now;
        self.longest = self.longest.max(waited);
        waited > STALL
    }

    /// Forgets the waits that have ended. A present wait still counts from its beginning.
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
