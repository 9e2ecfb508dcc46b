//! When a receiver acknowledges.
//!
//! Source: RFC 5681, section 4.2; RFC 1122, section 4.2.3.2; for the adaptive policy Linux 6.1,
//! in `adaptive_acks.rs`.

use redtail_core::{Span, Time};

use super::adaptive_acks::AdaptiveAcks;
use crate::params::TcpParams;

/// The policy with its state.
#[derive(Clone, Debug)]
pub enum AckPolicy {
    /// Every segment at once.
    EverySegment,
    /// Every second segment, or the first after `timeout`; at once at the start.
    Delayed {
        /// How long an acknowledgement may be held back.
        timeout: Span,
        /// When the one held back must go.
        deadline: Option<Time>,
        /// Segments at the start still to be acknowledged at once.
        quick: u32,
    },
    /// As Linux's receiver.
    Adaptive(Box<AdaptiveAcks>),
}

impl AckPolicy {
    /// A policy without anything held back.
    pub fn new(params: &TcpParams) -> Self {
        match (params.delayed_ack, params.adaptive_acks) {
            (false, _) => Self::EverySegment,
            (true, false) => Self::Delayed {
                timeout: params.delayed_ack_timeout,
                deadline: None,
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

    /// A data segment arrived at `now`; says whether to acknowledge it at once.
    /// `urgent` segments (out of order, filling a gap, or old) are never held
    /// back (RFC 5681, section 4.2).
    #[inline]
    pub fn on_data(&mut self, now: Time, urgent: bool) -> bool {
        match self {
            // That asks for more: `AdaptiveAcks::on_data`.
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
                if urgent || deadline.is_some() {
                    *deadline = None;
                    true
                } else {
                    *deadline = Some(now + *timeout);
                    false
                }
            }
        }
    }

    /// An acknowledgement goes for another reason: none is held back any more.
    pub fn cancel(&mut self) {
        match self {
            Self::EverySegment => {}
            Self::Delayed { deadline, .. } => *deadline = None,
            Self::Adaptive(adaptive) => adaptive.cancel(),
        }
    }

    /// When a held-back acknowledgement is due.
    #[inline]
    pub fn deadline(&self) -> Option<Time> {
        match self {
            Self::EverySegment => None,
            Self::Delayed { deadline, .. } => *deadline,
            Self::Adaptive(adaptive) => adaptive.deadline(),
        }
    }

    /// Whether the deadline has come; it is then cleared.
    pub fn take_due(&mut self, now: Time) -> bool {
        match self {
            Self::Delayed { deadline, .. } if deadline.is_some_and(|due| due <= now) => {
                *deadline = None;
                true
            }
            Self::Adaptive(adaptive) => adaptive.take_due(now),
            _ => false,
        }
    }
}
