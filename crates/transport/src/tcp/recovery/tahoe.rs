//! Fast retransmit without fast recovery.
//!
//! Source: V. Jacobson and M. Karels, "Congestion Avoidance and Control", 1988, with fast
//! retransmit as in 4.3BSD Tahoe (Fall and Floyd 1996, section 2): a loss begins slow start from
//! the first missing segment, as a timeout does.

use super::super::scoreboard::Scoreboard;
use super::newreno::Style;
use super::{LossRecovery, RecoveryTraits};

/// The strategy; it has no state of its own.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Tahoe {
    style: Style,
}

impl Tahoe {
    pub(in super::super) fn new(style: Style) -> Self {
        Self { style }
    }
}

impl LossRecovery for Tahoe {
    fn traits(&self) -> RecoveryTraits {
        RecoveryTraits {
            starts_over: true,
            may_enter_at_recovery_point: false, // duplicates of a retransmission are no new loss
            limited_transmit_after_timeout: self.style == Style::Ns2,
            ..RecoveryTraits::default()
        }
    }

    fn on_enter(&mut self, board: &mut Scoreboard, _dup_acks: u32, _mss: u32) {
        board.declare_all_lost();
    }
}
