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
use super::{LossRecovery, RecoveryTraits, Turn};

/// The state of the recovery of 1996 in one episode.
#[derive(Clone, Copy, Debug, Default)]
pub(in super::super) struct Sack1996 {
    /// In bytes; negative if more acknowledgements arrived than segments were counted.
    pipe: i64,
}

impl LossRecovery for Sack1996 {
    fn traits(&self) -> RecoveryTraits {
        RecoveryTraits {
            uses_sack: true,
            forgets_sacked: true,
            forgets_recovery_point: true,
            every_partial_ack_restarts_timer: true,
            ..RecoveryTraits::default()
        }
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

    fn in_flight(&self, _board: &Scoreboard) -> u64 {
        self.pipe.max(0) as u64
    }

    fn next(&mut self, board: &mut Scoreboard, turn: Turn) -> Option<u64> {
        match turn {
            Turn::BeforeNewData => board.next_hole(),
            Turn::AfterNewData => None,
        }
    }

    fn on_sent(&mut self, len: u32) {
        self.pipe += i64::from(len);
    }
}
