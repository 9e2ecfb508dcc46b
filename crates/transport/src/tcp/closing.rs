//! How a receiver closes: after its peer's FIN, with one of its own.
//!
//! Source: RFC 9293, section 3.6, case 2, and its states CLOSE-WAIT and LAST-ACK.
//! The receiver's own stream is empty, so its FIN has sequence number 0.

use redtail_core::{Span, Time};

/// How often a FIN is sent again before the endpoint gives up: Linux's
/// `tcp_orphan_retries`, 8, which at an initial timeout of 1 s is beyond the 100 s
/// that RFC 9293, section 3.8.3, asks for.
const MAX_RETRIES: u32 = 8;

/// The longest timeout between two of them: Linux's `TCP_RTO_MAX`.
const MAX_TIMEOUT: Span = Span::from_s(120);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// The application has not yet read everything and seen the end of file.
    CloseWait,
    /// The FIN is to be sent, for the first time or again.
    FinDue,
    /// It was sent; it is sent again at this time.
    LastAck(Time),
    /// It was acknowledged, or given up.
    Closed,
}

/// What a receiver knows once the peer's FIN has arrived.
#[derive(Clone, Debug)]
pub(super) struct Closing {
    /// The sequence number after the peer's FIN.
    end: u64,
    state: State,
    /// Times that our FIN was sent.
    sent: u32,
}

impl Closing {
    /// The peer's FIN has arrived, before sequence number `end`; `silent` if the answer to it
    /// comes with data of this side, from elsewhere.
    pub(super) fn new(end: u64, silent: bool) -> Self {
        Self {
            end,
            state: if silent {
                State::Closed
            } else {
                State::CloseWait
            },
            sent: 0,
        }
    }

    /// Whether everything up to the peer's FIN is below `next`.
    pub(super) fn is_reached(&self, next: u64) -> bool {
        next >= self.end
    }

    /// Whether the application still has to see the end of file.
    pub(super) fn awaits_application(&self) -> bool {
        self.state == State::CloseWait
    }

    /// The application saw the end of file and closes.
    pub(super) fn on_end_of_file(&mut self) {
        self.state = State::FinDue;
    }

    /// The peer has acknowledged up to `ack`.
    #[inline]
    pub(super) fn on_ack(&mut self, ack: u64) {
        if ack > 0 {
            self.state = State::Closed;
        }
    }

    /// When the FIN is to be sent again.
    pub(super) fn deadline(&self) -> Option<Time> {
        match self.state {
            State::LastAck(at) => Some(at),
            _ => None,
        }
    }

    /// Whether the FIN is to be sent again now.
    pub(super) fn take_due(&mut self, now: Time) -> bool {
        if self.deadline().is_none_or(|at| at > now) {
            return false;
        }
        let again = self.sent <= MAX_RETRIES;
        self.state = if again { State::FinDue } else { State::Closed };
        again
    }

    /// Puts the FIN on a segment that leaves now, if it is due.
    /// `timeout` is that of its first transmission; each next is twice as long.
    pub(super) fn take_fin(&mut self, now: Time, timeout: Span) -> bool {
        if self.state != State::FinDue {
            return false;
        }
        let wait = timeout.checked_mul(1 << self.sent);
        let wait = wait.map_or(MAX_TIMEOUT, |wait| wait.min(MAX_TIMEOUT));
        self.state = State::LastAck(now + wait.max(timeout));
        self.sent += 1;
        true
    }

    /// Our next sequence number.
    pub(super) fn seq(&self) -> u64 {
        u64::from(self.sent > 0)
    }
}
