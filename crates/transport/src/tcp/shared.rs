//! Values that the endpoints of a group share.

use std::ops::Deref;
use std::sync::Arc;

use redtail_core::Span;

use super::recovery::RecoveryTraits;
use super::rto::TimerParams;
use crate::cc::IdleDecay;
use crate::choices::{RttSampling, SynLoss};
use crate::params::TcpParams;

/// A value that does not change, in one place for all copies.
#[derive(Debug)]
pub(super) struct Shared<T>(Arc<T>);

impl<T> Clone for Shared<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> Shared<T> {
    pub(super) fn new(value: T) -> Self {
        Self(Arc::new(value))
    }

    /// Becomes a copy of `fresh`. It is mostly one already, and then its place is not touched.
    pub(super) fn renew(&mut self, fresh: &Self) {
        if !Arc::ptr_eq(&self.0, &fresh.0) {
            self.0 = Arc::clone(&fresh.0);
        }
    }
}

impl<T> Deref for Shared<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.0
    }
}

/// The parameters of senders. Those of a group share them, so that they are small.
#[derive(Debug)]
pub(super) struct SharedParams {
    /// Of the retransmission timer and its estimator.
    pub timer: TimerParams,
    /// Of the rest.
    pub sender: SenderParams,
}

impl SharedParams {
    pub fn new(params: &TcpParams) -> Self {
        Self {
            timer: TimerParams::new(params),
            sender: SenderParams::new(params),
        }
    }
}

/// The parameters of the timeout of tail loss probes (RFC 8985, section 7.2).
#[derive(Debug)]
pub(super) struct ProbeParams {
    /// The smoothed round trips in it.
    pub round_trips: u64,
    /// The longest time for which a receiver delays the acknowledgement of a single segment (TLP.max_ack_delay).
    pub max_ack_delay: Span,
}

/// The parameters of a sender, without those of its parts.
#[derive(Debug)]
pub(super) struct SenderParams {
    /// The traits of the recovery strategy.
    pub traits: RecoveryTraits,
    pub sampling: RttSampling,
    pub timestamps: bool,
    pub limited_transmit: bool,
    pub uses_prr: bool,
    pub byte_counting: bool,
    pub ecn_retransmissions: bool,
    /// Whether a retransmitted SYN asks for no ECN (RFC 3168, section 6.1.1.1).
    pub ecn_fallback: bool,
    /// Whether the SYN-ACK is acknowledged without data even if there is data to send.
    pub bare_ack: bool,
    pub syn_loss: SynLoss,
    /// The segment with the FIN may leave beyond the window.
    pub fin_beyond_window: bool,
    pub idle_decay: IdleDecay,
    pub idle_restart: bool,
    pub dup_thresh: u32,
    /// Of the timeout of tail loss probes.
    pub probe: ProbeParams,
    /// The largest window that the peer can announce.
    pub peer_window_max: u32,
    /// The most bytes that the send buffer lets be outstanding.
    pub send_buffer: u32,
    /// In segments, for the restart after an idle time.
    pub initial_window: u32,
}

impl SenderParams {
    fn new(params: &TcpParams) -> Self {
        Self {
            traits: params.recovery.traits(),
            sampling: params.rtt_sampling,
            timestamps: params.timestamps,
            limited_transmit: params.limited_transmit,
            uses_prr: params.prr,
            byte_counting: params.byte_counting,
            ecn_retransmissions: params.ecn_retransmissions,
            ecn_fallback: params.ecn_fallback,
            bare_ack: params.bare_handshake_ack,
            syn_loss: params.syn_loss,
            fin_beyond_window: params.fin_beyond_window,
            idle_decay: params.idle_decay,
            idle_restart: params.idle_restart,
            dup_thresh: params.dup_thresh,
            probe: ProbeParams {
                round_trips: params.tlp_round_trips.into(),
                max_ack_delay: params.tlp_max_ack_delay,
            },
            peer_window_max: params.announced(params.receive_window.as_u64()) as u32,
            send_buffer: params
                .send_buffer
                .map_or(u32::MAX, |room| room.as_u64() as u32),
            initial_window: params.initial_window,
        }
    }
}
