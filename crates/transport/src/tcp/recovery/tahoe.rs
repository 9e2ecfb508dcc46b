//! Fast retransmit without fast recovery.
//!
//! Source: V. Jacobson and M. Karels, "Congestion Avoidance and Control", 1988, with fast
//! retransmit as in 4.3BSD Tahoe (Fall and Floyd 1996, section 2): a loss begins slow start from
//! the first missing segment, as a timeout does.

use super::super::scoreboard::Scoreboard;
use super::LossRecovery;
use super::newreno::Style;

/// The strategy; it has no state of its own.
#[derive(Clone, Debug)]
pub(in super::super) struct Tahoe {
    style: Style,
}

impl Tahoe {
    pub(in super::super) fn new(style: Style) -> Self {
        Self { style }
    }
}

impl LossRecovery for Tahoe {
    fn is_duplicate(&self, _newly_sacked: u64) -> bool {
        true
    }

    fn detects_loss(&self, _board: &Scoreboard, dup_acks: u32, dup_thresh: u32) -> bool {
        dup_acks >= dup_thresh
    }

    fn may_enter(&self, una: u64, recover: u64) -> bool {
        una > recover // duplicates of a retransmission are no new loss
    }

    fn starts_over(&self) -> bool {
        true
    }

    fn forgets_recovery_point(&self) -> bool {
        false
    }

    fn limited_transmit_after_timeout(&self) -> bool {
        self.style == Style::Ns2
    }

    fn on_enter(&mut self, board: &mut Scoreboard, _dup_acks: u32, _mss: u32) {
        board.declare_all_lost();
    }

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
