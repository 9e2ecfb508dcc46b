//! Recovery with time-based loss detection.
//!
//! Source: RFC 8985 (RACK-TLP). Losses are detected by time ([`Rack`](super::super::rack::Rack)).
//! The sender owns the reordering timer and the tail loss probe. Retransmission and pipe are those
//! of RFC 6675.

use super::super::scoreboard::Scoreboard;
use super::LossRecovery;

/// The strategy. Its state is kept in the scoreboard.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct RackTlp;

impl LossRecovery for RackTlp {
    fn is_duplicate(&self, newly_sacked: u64) -> bool {
        newly_sacked > 0
    }

    fn detects_loss(&self, board: &Scoreboard, _dup_acks: u32, _dup_thresh: u32) -> bool {
        board.awaits_retransmission()
    }

    fn may_enter(&self, una: u64, recover: u64) -> bool {
        una >= recover
    }

    fn forgets_recovery_point(&self) -> bool {
        true
    }

    fn pipe_is_exact(&self) -> bool {
        true
    }

    fn judges_by_time(&self) -> bool {
        true
    }

    fn on_enter(&mut self, _board: &mut Scoreboard, _dup_acks: u32, _mss: u32) {}

    fn on_duplicate(&mut self, _mss: u32) {}

    fn on_partial_ack(&mut self, _board: &mut Scoreboard, _acked: u64, _mss: u32) -> bool {
        false
    }

    fn every_partial_ack_restarts_timer(&self) -> bool {
        true
    }

    fn in_flight(&self, board: &Scoreboard) -> u64 {
        board.pipe()
    }

    fn next(&mut self, board: &mut Scoreboard) -> Option<u64> {
        board.next_lost()
    }
}
