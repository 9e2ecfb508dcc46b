//! Recovery with selective acknowledgements before RFC 3517.
//!
//! Source: K. Fall and S. Floyd, "Simulation-based Comparisons of Tahoe, Reno
//! and SACK TCP", Computer Communication Review 26(3), 1996, section 5.3; the
//! sender that ns-2 calls Sack1.
//!
//! The pipe is a counter, not a sum over the scoreboard. It rises by one segment for each segment
//! sent and falls by one segment for each acknowledgement, by two for a partial acknowledgement.
//! Lost segments are not subtracted otherwise. Every hole below the highest selective
//! acknowledgement counts as lost. Selective acknowledgements are forgotten when the cumulative
//! acknowledgement moves outside recovery, and at a timeout.

use super::super::scoreboard::Scoreboard;
use super::LossRecovery;

/// The state of an episode.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct Sack1996 {
    /// In bytes; negative if more acknowledgements arrived than segments were counted.
    pipe: i64,
}

impl LossRecovery for Sack1996 {
    fn is_duplicate(&self, newly_sacked: u64) -> bool {
        newly_sacked > 0
    }

    fn detects_loss(&self, _board: &Scoreboard, dup_acks: u32, dup_thresh: u32) -> bool {
        dup_acks >= dup_thresh
    }

    fn may_enter(&self, una: u64, recover: u64) -> bool {
        una > recover
    }

    fn forgets_recovery_point(&self) -> bool {
        true
    }

    fn forgets_sacked(&self) -> bool {
        true
    }

    fn on_enter(&mut self, board: &mut Scoreboard, dup_acks: u32, mss: u32) {
        self.pipe = board.outstanding() as i64 - i64::from(dup_acks) * i64::from(mss);
        board.declare_first_lost();
    }

    fn on_duplicate(&mut self, mss: u32) {
        self.pipe -= i64::from(mss);
    }

    fn on_partial_ack(&mut self, _board: &mut Scoreboard, _acked: u64, mss: u32) -> bool {
        self.pipe -= 2 * i64::from(mss);
        false
    }

    fn every_partial_ack_restarts_timer(&self) -> bool {
        true
    }

    fn in_flight(&self, _board: &Scoreboard) -> u64 {
        self.pipe.max(0) as u64
    }

    fn next(&mut self, board: &mut Scoreboard) -> Option<u64> {
        board.next_hole()
    }

    fn on_sent(&mut self, len: u32) {
        self.pipe += i64::from(len);
    }
}
