//! Loss recovery: how a sender detects losses from duplicate and selective acknowledgements, and
//! what it retransmits.
//!
//! The sender owns the phases (open, recovery, loss after a timeout) and the recovery point. A
//! strategy here decides when a loss is detected, how many bytes are in flight during recovery, and
//! what to retransmit next.
//!
//! Adding a strategy: one file here, one variant of [`RecoveryKind`] and of
//! `Recovery`.

pub mod newreno;
pub mod rack;
pub mod sack;
pub mod sack1996;
pub mod tahoe;

use redtail_core::schemars::JsonSchema;
use redtail_core::serde::{Deserialize, Serialize};
use redtail_core::{schemars, serde};
use strum::VariantArray;

use self::newreno::Style;
use super::scoreboard::Scoreboard;

/// How losses are detected and repaired.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, VariantArray)]
#[serde(crate = "serde", rename_all = "kebab-case")]
#[schemars(crate = "schemars")]
pub enum RecoveryKind {
    /// Fast retransmit, then slow start (4.3BSD Tahoe; Fall and Floyd 1996, section 2).
    Tahoe,
    /// Fast retransmit and fast recovery that end with the first new acknowledgement (RFC 5681, section 3.2).
    Reno,
    /// A partial acknowledgement retransmits the next segment (RFC 6582).
    Newreno,
    /// `tahoe` as ns-2.35 has it: limited transmit goes on after the restart.
    Ns2Tahoe,
    /// `reno` as ns-2.35 has it: limited transmit goes on after a timeout, and the acknowledgement that ends recovery grows the window.
    Ns2Reno,
    /// `newreno` as ns-2.35 has it: in addition, the window stays as partial acknowledgements deflated it.
    Ns2Newreno,
    /// Selective acknowledgements with a scoreboard (RFC 6675).
    Sack,
    /// Losses judged by time, with tail loss probes (RFC 8985).
    RackTlp,
    /// `rack-tlp` in the states of Linux 6.1 (`tcp_fastretrans_alert`): a retransmission lost after a timeout begins fast recovery, false losses are told by timestamps (with `timestamps`), and a timeout within recovery does not reduce again.
    Linux,
    /// Selective acknowledgements with the pipe estimate of Fall and Floyd 1996, as in ns-2's Sack1.
    #[serde(rename = "sack-1996")]
    #[schemars(rename = "sack-1996")]
    Sack1996,
}

/// A recovery strategy. `mss` is the size of a full segment in bytes.
pub(super) trait LossRecovery {
    /// Whether an acknowledgement that does not advance counts as a duplicate,
    /// given the bytes it newly acknowledges selectively.
    fn is_duplicate(&self, newly_sacked: u64) -> bool;

    /// Whether a loss is detected after `dup_acks` duplicates.
    fn detects_loss(&self, board: &Scoreboard, dup_acks: u32, dup_thresh: u32) -> bool;

    /// Whether recovery may start with data up to `una` acknowledged. The last episode or timeout
    /// covered data up to `recover`.
    fn may_enter(&self, una: u64, recover: u64) -> bool;

    /// Recovery starts. The first outstanding segment is retransmitted at once.
    fn on_enter(&mut self, board: &mut Scoreboard, dup_acks: u32, mss: u32);

    /// An acknowledgement in recovery that does not advance.
    fn on_duplicate(&mut self, mss: u32);

    /// A partial acknowledgement of `acked` bytes. Returns whether the first outstanding segment is
    /// retransmitted at once.
    fn on_partial_ack(&mut self, board: &mut Scoreboard, acked: u64, mss: u32) -> bool;

    /// Whether a loss begins slow start, as a timeout does, instead of fast recovery.
    fn starts_over(&self) -> bool {
        false
    }

    /// Whether the first new acknowledgement ends recovery, whatever it covers.
    fn ends_on_partial_ack(&self) -> bool {
        false
    }

    /// The congestion window after recovery, in bytes; `cwnd` is the window during recovery.
    fn window_after(&self, _board: &Scoreboard, cwnd: f64, _mss: u32) -> f64 {
        cwnd
    }

    /// Whether the acknowledgement that ends recovery grows the window.
    fn exit_grows_window(&self) -> bool {
        false
    }

    /// Whether the recovery point is forgotten when an episode ends, so that the next one may start
    /// at once.
    fn forgets_recovery_point(&self) -> bool;

    /// Whether limited transmit also applies to the retransmissions after a timeout.
    fn limited_transmit_after_timeout(&self) -> bool {
        false
    }

    /// Whether selective acknowledgements are forgotten at a timeout and when the
    /// cumulative acknowledgement moves outside recovery.
    fn forgets_sacked(&self) -> bool {
        false
    }

    /// Whether the pipe of the scoreboard is also used outside recovery.
    fn pipe_is_exact(&self) -> bool {
        false
    }

    /// Whether losses are detected by the time at which segments were sent (RFC 8985).
    fn judges_by_time(&self) -> bool {
        false
    }

    /// Whether every partial acknowledgement restarts the retransmission timer, or only the first
    /// of an episode.
    fn every_partial_ack_restarts_timer(&self) -> bool;

    /// Estimate of the bytes in flight during recovery.
    fn in_flight(&self, board: &Scoreboard) -> u64;

    /// What to retransmit before any new data.
    fn next(&mut self, board: &mut Scoreboard) -> Option<u64>;

    /// What to retransmit when there is no new data to send.
    fn next_without_new_data(&mut self, _board: &mut Scoreboard) -> Option<u64> {
        None
    }

    /// `len` bytes were sent in recovery.
    fn on_sent(&mut self, _len: u32) {}
}

/// Any of the strategies, dispatched statically.
#[derive(Clone, Debug)]
pub(super) enum Recovery {
    Tahoe(tahoe::Tahoe),
    NewReno(newreno::NewReno),
    Sack(sack::Sack),
    RackTlp(rack::RackTlp),
    Sack1996(sack1996::Sack1996),
}

/// Calls a method of the strategy in use.
macro_rules! each {
    ($recovery:expr, $strategy:ident => $call:expr) => {
        match $recovery {
            Recovery::Tahoe($strategy) => $call,
            Recovery::NewReno($strategy) => $call,
            Recovery::Sack($strategy) => $call,
            Recovery::RackTlp($strategy) => $call,
            Recovery::Sack1996($strategy) => $call,
        }
    };
}
pub(super) use each;

impl Recovery {
    pub(super) fn new(kind: RecoveryKind) -> Self {
        match kind {
            RecoveryKind::Tahoe => Self::Tahoe(tahoe::Tahoe::new(Style::Rfc)),
            RecoveryKind::Ns2Tahoe => Self::Tahoe(tahoe::Tahoe::new(Style::Ns2)),
            RecoveryKind::Reno => Self::NewReno(newreno::NewReno::ends_early(Style::Rfc)),
            RecoveryKind::Newreno => Self::NewReno(newreno::NewReno::to_the_end(Style::Rfc)),
            RecoveryKind::Ns2Reno => Self::NewReno(newreno::NewReno::ends_early(Style::Ns2)),
            RecoveryKind::Ns2Newreno => Self::NewReno(newreno::NewReno::to_the_end(Style::Ns2)),
            RecoveryKind::Sack => Self::Sack(sack::Sack::default()),
            RecoveryKind::RackTlp | RecoveryKind::Linux => Self::RackTlp(rack::RackTlp),
            RecoveryKind::Sack1996 => Self::Sack1996(sack1996::Sack1996::default()),
        }
    }
}

impl RecoveryKind {
    /// Whether the receiver sends selective acknowledgements.
    pub fn uses_sack(self) -> bool {
        matches!(
            self,
            Self::Sack | Self::RackTlp | Self::Linux | Self::Sack1996
        )
    }
}
