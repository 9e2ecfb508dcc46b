//! Recovery with selective acknowledgements.
//!
//! Source: RFC 6675: the algorithm of section 5 and the rules of NextSeg. IsLost and SetPipe
//! (section 4) are in the scoreboard.

use super::super::scoreboard::Scoreboard;
use super::LossRecovery;

/// The state of an episode.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct Sack {
    /// The rescue retransmission of NextSeg's rule 4 was sent in this episode.
    rescued: bool,
}

impl LossRecovery for Sack {
    fn is_duplicate(&self, newly_sacked: u64) -> bool {
        newly_sacked > 0 // section 2, "Duplicate Acknowledgment"
    }

    fn detects_loss(&self, board: &Scoreboard, dup_acks: u32, dup_thresh: u32) -> bool {
        dup_acks >= dup_thresh || board.first_is_lost() // section 5, steps 1 and 2
    }

    fn may_enter(&self, una: u64, recover: u64) -> bool {
        una >= recover // section 5.1
    }

    fn forgets_recovery_point(&self) -> bool {
        true
    }

    fn pipe_is_exact(&self) -> bool {
        true
    }

    fn on_enter(&mut self, board: &mut Scoreboard, _dup_acks: u32, _mss: u32) {
        self.rescued = false;
        board.declare_first_lost(); // section 5, step 4.3
    }

    fn on_duplicate(&mut self, _mss: u32) {}

    fn on_partial_ack(&mut self, _board: &mut Scoreboard, _acked: u64, _mss: u32) -> bool {
        false
    }

    fn every_partial_ack_restarts_timer(&self) -> bool {
        true // RFC 6298, rule 5.3
    }

    fn in_flight(&self, board: &Scoreboard) -> u64 {
        board.pipe()
    }

    fn next(&mut self, board: &mut Scoreboard) -> Option<u64> {
        board.next_lost() // NextSeg, rule 1
    }

    fn next_without_new_data(&mut self, board: &mut Scoreboard) -> Option<u64> {
        // NextSeg, rules 3 and 4.
        board.next_hole().or_else(|| {
            let last = if self.rescued { None } else { board.last() };
            self.rescued = self.rescued || last.is_some();
            last
        })
    }
}
