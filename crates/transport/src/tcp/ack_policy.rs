//! When a receiver acknowledges.
//!
//! Source: RFC 5681, section 4.2; RFC 1122, section 4.2.3.2; for the adaptive policy Linux 6.1,
//! in `adaptive_acks.rs`.

use redtail_core::{Span, Time};

use super::adaptive_acks::AdaptiveAcks;
use crate::params::TcpParams;

/// When a receiver acknowledges, with the state that this needs.
#[derive(Clone, Debug)]
pub enum AckPolicy {
    /// The receiver acknowledges every segment at once.
    EverySegment,
    /// Every second segment, or the first after `timeout`; at once at the start.
    Delayed {
        /// How long an acknowledgement may be held back.
        timeout: Span,
        /// When the delayed acknowledgement is due; [`Time::MAX`] without one, which keeps receivers small.
        deadline: Time,
        /// The number of segments at the start that are still acknowledged at once.
        quick: u32,
    },
    /// The receiver delays acknowledgements as Linux does.
    Adaptive(Box<AdaptiveAcks>),
}

impl AckPolicy {
    /// A policy without a delayed acknowledgement.
    pub fn new(params: &TcpParams) -> Self {
        match (params.delayed_ack, params.adaptive_acks) {
            (false, _) => Self::EverySegment,
            (true, false) => Self::Delayed {
                timeout: params.delayed_ack_timeout,
                deadline: Time::MAX,
                quick: params.quick_acks,
            },
            (true, true) => Self::Adaptive(Box::new(AdaptiveAcks::new(params))),
        }
    }

    /// The policy, if it is the adaptive one.
    #[inline]
    pub(super) fn adaptive(&mut self) -> Option<&mut AdaptiveAcks> {
        match self {
            Self::Adaptive(adaptive) => Some(adaptive),
            _ => None,
        }
    }

    /// A data segment arrived at `now`. Returns whether to acknowledge it at once. The
    /// acknowledgement of an `urgent` segment (out of order, filling a gap, or old) is never
    /// delayed (RFC 5681, section 4.2).
    #[inline]
    pub fn on_data(&mut self, now: Time, urgent: bool) -> bool {
        match self {
            // The adaptive policy is asked by `AdaptiveAcks::on_data`.
            Self::EverySegment | Self::Adaptive(_) => true,
            Self::Delayed {
                timeout,
                deadline,
                quick,
            } => {
                if *quick > 0 {
                    *quick -= 1;
                    return true;
                }
                if urgent || *deadline < Time::MAX {
                    *deadline = Time::MAX;
                    true
                } else {
                    *deadline = now + *timeout;
                    false
                }
            }
        }
    }

    /// An acknowledgement is sent for another reason: cancels the delayed one.
    #[inline]
    pub fn cancel(&mut self) {
        match self {
            Self::EverySegment => {}
            Self::Delayed { deadline, .. } => *deadline = Time::MAX,
            Self::Adaptive(adaptive) => adaptive.cancel(),
        }
    }

    /// When the delayed acknowledgement is due.
    #[inline]
    pub fn deadline(&self) -> Option<Time> {
        match self {
            Self::EverySegment => None,
            Self::Delayed { deadline, .. } => (*deadline < Time::MAX).then_some(*deadline),
            Self::Adaptive(adaptive) => adaptive.deadline(),
        }
    }

    /// A time that [`deadline`](Self::deadline) is not before.
    #[inline]
    pub(super) fn quiet_until(&self) -> Time {
        match self {
            Self::EverySegment => Time::MAX,
            Self::Delayed { deadline, .. } => *deadline,
            Self::Adaptive(_) => Time::ZERO,
        }
    }

    /// When the delayed acknowledgement is due; `None` also if that is certain to be at `alarm` or later.
    #[inline]
    pub(super) fn deadline_before(&self, alarm: Option<Time>) -> Option<Time> {
        match (self, alarm) {
            (Self::Adaptive(adaptive), Some(alarm)) => adaptive.deadline_before(alarm),
            _ => self.deadline(),
        }
    }

    /// Whether an acknowledgement is being delayed.
    #[inline]
    pub(super) fn is_waiting(&self) -> bool {
        match self {
            Self::EverySegment => false,
            Self::Delayed { deadline, .. } => *deadline < Time::MAX,
            Self::Adaptive(adaptive) => adaptive.is_waiting(),
        }
    }

    /// Whether the delayed acknowledgement is due. Its deadline is then cleared.
    pub fn take_due(&mut self, now: Time) -> bool {
        match self {
            Self::Delayed { deadline, .. } if *deadline <= now => {
                *deadline = Time::MAX;
                true
            }
            Self::Adaptive(adaptive) => adaptive.take_due(now),
            _ => false,
        }
    }
}
