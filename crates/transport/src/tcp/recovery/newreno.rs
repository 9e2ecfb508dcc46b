//! Fast retransmit and fast recovery without selective acknowledgements.
//!
//! Source: RFC 5681, section 3.2 (Reno, which the sender ends at the first new
//! acknowledgement); RFC 6582, section 3.2 (NewReno).
//!
//! The RFCs inflate the window by each duplicate; here the window stays and the
//! inflation is taken off what counts as in flight, which is the same bound.

use super::super::scoreboard::Scoreboard;
use super::LossRecovery;

/// The state of an episode.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct NewReno {
    /// Bytes by which the window is inflated; negative after partial
    /// acknowledgements deflated it (RFC 6582, section 3.2, step 3).
    inflation: i64,
}

impl LossRecovery for NewReno {
    fn is_duplicate(&self, _newly_sacked: u64) -> bool {
        true
    }

    fn detects_loss(&self, _board: &Scoreboard, dup_acks: u32, dup_thresh: u32) -> bool {
        dup_acks >= dup_thresh
    }

    fn on_enter(&mut self, board: &mut Scoreboard, dup_acks: u32, mss: u32) {
        self.inflation = i64::from(dup_acks) * i64::from(mss);
        board.declare_first_lost();
    }

    fn on_duplicate(&mut self, mss: u32) {
        self.inflation += i64::from(mss);
    }

    fn on_partial_ack(&mut self, board: &mut Scoreboard, acked: u64, mss: u32) -> bool {
        // Deflate by what was acknowledged, then add back one segment if it was
        // at least that much (RFC 6582, section 3.2, step 3).
        let back = if acked >= u64::from(mss) { i64::from(mss) } else { 0 };
        self.inflation += back - acked as i64;
        board.declare_first_lost();
        true
    }

    fn every_partial_ack_restarts_timer(&self) -> bool {
        false // the "impatient" variant (RFC 6582, section 4)
    }

    fn in_flight(&self, board: &Scoreboard) -> u64 {
        board.outstanding().saturating_add_signed(-self.inflation)
    }

    fn next(&mut self, board: &mut Scoreboard) -> Option<u64> {
        board.next_lost()
    }
}
