//! Recovery with selective acknowledgements.
//!
//! Source: RFC 6675: the algorithm of section 5 and the rules of NextSeg. IsLost and SetPipe
//! (section 4) are in the scoreboard.

use super::super::scoreboard::Scoreboard;
use super::{LossRecovery, RecoveryTraits, Turn};

/// The state of recovery by SACK in one episode.
#[derive(Clone, Copy, Debug, Default)]
pub(in super::super) struct Sack {
    /// The rescue retransmission of NextSeg's rule 4 was sent in this episode.
    rescued: bool,
}

impl LossRecovery for Sack {
    fn traits(&self) -> RecoveryTraits {
        RecoveryTraits {
            uses_sack: true,
            pipe_is_exact: true,
            may_enter_at_recovery_point: true, // section 5.1
            forgets_recovery_point: true,
            every_partial_ack_restarts_timer: true, // RFC 6298, rule 5.3
            ..RecoveryTraits::default()
        }
    }

    fn detects_loss(&self, board: &Scoreboard, dup_acks: u32, dup_thresh: u32) -> bool {
        dup_acks >= dup_thresh || board.first_is_lost() // section 5, steps 1 and 2
    }

    fn on_enter(&mut self, board: &mut Scoreboard, _dup_acks: u32, _mss: u32) {
        self.rescued = false;
        board.declare_first_lost(); // section 5, step 4.3
    }

    fn next(&mut self, board: &mut Scoreboard, turn: Turn) -> Option<u64> {
        match turn {
            Turn::BeforeNewData => board.next_lost(), // NextSeg, rule 1
            // NextSeg, rules 3 and 4.
            Turn::AfterNewData => board.next_hole().or_else(|| {
                let last = if self.rescued { None } else { board.last() };
                self.rescued = self.rescued || last.is_some();
                last
            }),
        }
    }
}
