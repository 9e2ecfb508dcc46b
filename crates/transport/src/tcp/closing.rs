//! How a receiver closes: it answers the peer's FIN with a FIN of its own.
//!
//! Source: RFC 9293, section 3.6, case 2, and its states CLOSE-WAIT and LAST-ACK.
//! The receiver's own stream is empty, so its FIN has sequence number 0.

use redtail_core::{Span, Time};

/// The number of retransmissions of a FIN after which the endpoint gives up: Linux's
/// `tcp_orphan_retries`, 8. At an initial timeout of 1 s this takes longer than the 100 s that RFC
/// 9293, section 3.8.3, requires.
const MAX_RETRIES: u32 = 8;

/// The longest timeout of a FIN: Linux's `TCP_RTO_MAX`.
const MAX_TIMEOUT: Span = Span::from_s(120);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ClosingState {
    /// CLOSE-WAIT: the application has not yet read everything and seen the end of file.
    CloseWait,
    /// The FIN is due, for the first time or as a retransmission.
    FinDue,
    /// LAST-ACK: the FIN was sent and is retransmitted at this time.
    LastAck(Time),
    /// CLOSED: the FIN was acknowledged, or the endpoint gave up.
    Closed,
}

/// The state of a receiver after the peer's FIN has arrived.
#[derive(Clone, Debug)]
pub(super) struct Closing {
    /// The sequence number after the peer's FIN.
    end: u64,
    state: ClosingState,
    /// How often our FIN was sent.
    sent: u32,
}

impl Closing {
    /// The peer's FIN has arrived; the sequence number after it is `end`. With `silent`, the sender
    /// half of this endpoint sends the FIN of this side.
    pub(super) fn new(end: u64, silent: bool) -> Self {
        Self {
            end,
            state: if silent {
                ClosingState::Closed
            } else {
                ClosingState::CloseWait
            },
            sent: 0,
        }
    }

    /// Whether everything up to the peer's FIN has arrived, `next` being the next sequence number
    /// expected.
    #[inline]
    pub(super) fn is_reached(&self, next: u64) -> bool {
        next >= self.end
    }

    /// Whether the application has not yet seen the end of file.
    pub(super) fn awaits_application(&self) -> bool {
        self.state == ClosingState::CloseWait
    }

    /// The application saw the end of file and closes.
    pub(super) fn on_end_of_file(&mut self) {
        self.state = ClosingState::FinDue;
    }

    /// The peer has acknowledged up to `ack`.
    #[inline]
    pub(super) fn on_ack(&mut self, ack: u64) {
        if ack > 0 {
            self.state = ClosingState::Closed;
        }
    }

    /// When the FIN is due for retransmission.
    pub(super) fn deadline(&self) -> Option<Time> {
        match self.state {
            ClosingState::LastAck(at) => Some(at),
            _ => None,
        }
    }

    /// Whether the timeout of the FIN has expired and the FIN is due again. After the last
    /// retransmission the endpoint gives up instead.
    pub(super) fn take_due(&mut self, now: Time) -> bool {
        if self.deadline().is_none_or(|at| at > now) {
            return false;
        }
        let again = self.sent <= MAX_RETRIES;
        self.state = if again {
            ClosingState::FinDue
        } else {
            ClosingState::Closed
        };
        again
    }

    /// Returns whether a segment sent now carries the FIN, which is then recorded as sent.
    /// `timeout` is the timeout of its first transmission; each later one is twice as long.
    pub(super) fn take_fin(&mut self, now: Time, timeout: Span) -> bool {
        if self.state != ClosingState::FinDue {
            return false;
        }
        let wait = timeout.checked_mul(1 << self.sent);
        let wait = wait.map_or(MAX_TIMEOUT, |wait| wait.min(MAX_TIMEOUT));
        self.state = ClosingState::LastAck(now + wait.max(timeout));
        self.sent += 1;
        true
    }

    /// Our next sequence number.
    pub(super) fn seq(&self) -> u64 {
        u64::from(self.sent > 0)
    }
}
