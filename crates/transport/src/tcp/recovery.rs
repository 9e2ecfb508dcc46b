//! Loss recovery: how a sender detects losses from duplicate and selective acknowledgements, and
//! what it retransmits.
//!
//! The sender owns the phases (open, recovery, loss after a timeout) and the recovery point. A
//! strategy here states its fixed properties (`RecoveryTraits`) and is called at events: it decides
//! when a loss is detected, how many bytes are in flight during recovery, and what to retransmit
//! next. Recovery `linux` has states of its own beside the sender's phases (`tcp/sender/linux.rs`), with
//! its undo in `undo.rs` and its PRR in `prr.rs`; its strategy is that of `rack-tlp`.
//!
//! Adding a strategy: one file here, its `pub mod`, and its lines in the list of `list.rs`.

mod list;
pub mod newreno;
pub mod rack;
pub mod sack;
pub mod sack1996;
pub mod tahoe;

pub use self::list::RecoveryKind;
pub(super) use self::list::{Recovery, each};
use super::rack::Rules;
use super::scoreboard::Scoreboard;

/// The fixed properties of a strategy. By default losses are detected by counting duplicate
/// acknowledgements, and recovery is that of RFC 6582.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RecoveryTraits {
    /// The receiver sends selective acknowledgements. An acknowledgement that does not advance is
    /// then a duplicate only if it newly acknowledges data selectively (RFC 6675, section 2).
    pub uses_sack: bool,
    /// The rules by which losses are detected from the times at which segments were sent (RFC
    /// 8985). `None` if losses are detected by counting.
    pub by_time: Option<Rules>,
    /// The pipe of the scoreboard is also used outside recovery.
    pub pipe_is_exact: bool,
    /// Selective acknowledgements are forgotten at a timeout, and when the cumulative
    /// acknowledgement moves outside recovery.
    pub forgets_sacked: bool,
    /// A loss begins slow start, as a timeout does, instead of fast recovery.
    pub starts_over: bool,
    /// Recovery may begin when exactly the data that the last episode or timeout covered is
    /// acknowledged. Otherwise more than that must be acknowledged.
    pub may_enter_at_recovery_point: bool,
    /// The recovery point is forgotten when an episode ends, so that the next one may begin at
    /// once.
    pub forgets_recovery_point: bool,
    /// The first new acknowledgement ends recovery, whatever it covers.
    pub ends_on_partial_ack: bool,
    /// Every partial acknowledgement restarts the retransmission timer. Otherwise only the first of
    /// an episode does.
    pub every_partial_ack_restarts_timer: bool,
    /// The acknowledgement that ends recovery grows the window.
    pub exit_grows_window: bool,
    /// Limited transmit also applies to the retransmissions after a timeout.
    pub limited_transmit_after_timeout: bool,
}

impl RecoveryTraits {
    /// Whether an acknowledgement that does not advance and newly acknowledges `newly_sacked` bytes
    /// selectively counts as a duplicate.
    #[inline]
    pub(super) fn counts_as_duplicate(self, newly_sacked: u64) -> bool {
        newly_sacked > 0 || !self.uses_sack
    }

    /// Whether recovery may begin with data up to `una` acknowledged. The last episode or timeout
    /// covered data up to `recover`.
    pub(super) fn may_enter(self, una: u64, recover: u64) -> bool {
        una > recover || self.may_enter_at_recovery_point && una == recover
    }
}

/// When a strategy is asked for a retransmission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// Before the sender looks for new data.
    BeforeNewData,
    /// There is no new data to send.
    AfterNewData,
}

/// A recovery strategy, which is called at the events of an episode. `mss` is the size of a full segment
/// in bytes.
pub(super) trait LossRecovery {
    /// The fixed properties, which the sender reads once.
    fn traits(&self) -> RecoveryTraits;

    /// Whether a loss is detected after `dup_acks` duplicates.
    fn detects_loss(&self, _board: &Scoreboard, dup_acks: u32, dup_thresh: u32) -> bool {
        dup_acks >= dup_thresh
    }

    /// Recovery begins. The first outstanding segment is retransmitted at once.
    fn on_enter(&mut self, _board: &mut Scoreboard, _dup_acks: u32, _mss: u32) {}

    /// A duplicate acknowledgement in recovery.
    fn on_duplicate(&mut self, _mss: u32) {}

    /// A partial acknowledgement of `acked` bytes. Returns whether the first outstanding segment is
    /// retransmitted at once.
    fn on_partial_ack(&mut self, _board: &mut Scoreboard, _acked: u64, _mss: u32) -> bool {
        false
    }

    /// Recovery ends. `cwnd` is the congestion window during recovery, in bytes; returns the window
    /// after it.
    fn on_exit(&self, _board: &Scoreboard, cwnd: f64, _mss: u32) -> f64 {
        cwnd
    }

    /// Estimate of the bytes in flight during recovery.
    fn in_flight(&self, board: &Scoreboard) -> u64 {
        board.pipe()
    }

    /// The next segment to retransmit in recovery, as an index of the scoreboard.
    fn next(&mut self, board: &mut Scoreboard, turn: Turn) -> Option<u64> {
        match turn {
            Turn::BeforeNewData => board.next_lost(),
            Turn::AfterNewData => None,
        }
    }

    /// `len` bytes were sent in recovery.
    fn on_sent(&mut self, _len: u32) {}
}
