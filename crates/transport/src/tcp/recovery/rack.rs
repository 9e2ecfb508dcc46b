//! Recovery with time-based loss detection.
//!
//! Source: RFC 8985 (RACK-TLP). Losses are detected by time ([`Rack`](super::super::rack::Rack)).
//! The sender owns the reordering timer and the tail loss probe. Retransmission and pipe are those
//! of RFC 6675.

use super::super::rack::Rules;
use super::super::scoreboard::Scoreboard;
use super::{LossRecovery, RecoveryTraits};

/// The strategy. Its state is kept in the scoreboard.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct RackTlp {
    rules: Rules,
}

impl RackTlp {
    pub(in super::super) fn new(rules: Rules) -> Self {
        Self { rules }
    }
}

impl LossRecovery for RackTlp {
    fn traits(&self) -> RecoveryTraits {
        RecoveryTraits {
            uses_sack: true,
            by_time: Some(self.rules),
            pipe_is_exact: true,
            may_enter_at_recovery_point: true,
            forgets_recovery_point: true,
            every_partial_ack_restarts_timer: true,
            ..RecoveryTraits::default()
        }
    }

    fn detects_loss(&self, board: &Scoreboard, _dup_acks: u32, _dup_thresh: u32) -> bool {
        board.awaits_retransmission()
    }
}
