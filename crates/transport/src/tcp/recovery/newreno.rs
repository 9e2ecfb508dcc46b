//! Fast retransmit and fast recovery without selective acknowledgements.
//!
//! Source: RFC 5681, section 3.2 (Reno, which the sender ends at the first new
//! acknowledgement); RFC 6582, section 3.2 (NewReno).
//!
//! The RFCs inflate the window for each duplicate acknowledgement. Here the window is unchanged and
//! the inflation is subtracted from the bytes in flight, which gives the same bound.

use super::super::scoreboard::Scoreboard;
use super::{LossRecovery, RecoveryTraits};

/// The version of NewReno.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Style {
    /// The version of the RFCs.
    Rfc,
    /// That of ns-2.35 (see [`RecoveryKind`](super::RecoveryKind)).
    Ns2,
}

/// The state of NewReno, or of Reno, in one recovery episode.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct NewReno {
    style: Style,
    /// Reno: any new acknowledgement ends recovery.
    ends_on_partial_ack: bool,
    /// Bytes by which the window is inflated; negative after partial acknowledgements have deflated
    /// it (RFC 6582, section 3.2, step 3).
    inflation: i64,
}

impl NewReno {
    pub(in super::super) fn ends_early(style: Style) -> Self {
        Self {
            style,
            ends_on_partial_ack: true,
            inflation: 0,
        }
    }

    pub(in super::super) fn to_the_end(style: Style) -> Self {
        Self {
            ends_on_partial_ack: false,
            ..Self::ends_early(style)
        }
    }
}

impl LossRecovery for NewReno {
    fn traits(&self) -> RecoveryTraits {
        RecoveryTraits {
            ends_on_partial_ack: self.ends_on_partial_ack,
            // RFC 6582, section 3.2, step 3; the "impatient" variant of RFC 2582.
            every_partial_ack_restarts_timer: false,
            exit_grows_window: self.style == Style::Ns2,
            limited_transmit_after_timeout: self.style == Style::Ns2,
            ..RecoveryTraits::default()
        }
    }

    fn on_enter(&mut self, board: &mut Scoreboard, dup_acks: u32, mss: u32) {
        self.inflation = i64::from(dup_acks) * i64::from(mss);
        board.declare_first_lost();
    }

    fn on_duplicate(&mut self, mss: u32) {
        self.inflation += i64::from(mss);
    }

    fn on_partial_ack(&mut self, board: &mut Scoreboard, acked: u64, mss: u32) -> bool {
        // Deflate by the bytes acknowledged, then add back one segment if they were at least one
        // segment (RFC 6582, section 3.2, step 3).
        let back = if acked >= u64::from(mss) {
            i64::from(mss)
        } else {
            0
        };
        self.inflation += back - acked as i64;
        board.declare_first_lost();
        true
    }

    fn on_exit(&self, board: &Scoreboard, cwnd: f64, mss: u32) -> f64 {
        let mss = u64::from(mss);
        match self.style {
            _ if self.ends_on_partial_ack => cwnd,
            // RFC 6582, section 3.2, step 3, full acknowledgement, option 1: slow start back to
            // ssthresh, without a burst.
            Style::Rfc => cwnd.min((board.outstanding().max(mss) + mss) as f64),
            Style::Ns2 => (cwnd + self.inflation.min(0) as f64).max(mss as f64),
        }
    }

    fn in_flight(&self, board: &Scoreboard) -> u64 {
        board.outstanding().saturating_add_signed(-self.inflation)
    }
}
