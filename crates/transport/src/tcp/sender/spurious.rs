//! Reductions that prove spurious: the reports that show it, and how a reduction is undone.

use redtail_core::Time;

use super::{Phase, Sender};
use crate::segment::Segment;
use crate::tcp::frto::{Answer, TimeoutKind};
use crate::tcp::maybe_offset::MaybeOffset;
use crate::tcp::undo::{UndoCause, Undone};

impl Sender {
    /// An episode is about to reduce the window. The reduction can be undone later, unless another
    /// episode is in progress.
    pub(super) fn allow_undo(&mut self, timeout: bool) {
        if let Some(undo) = self.optional.undo_mut() {
            if self.phase == Phase::Open {
                undo.on_episode(self.controller.window(), self.board.una(), timeout);
            } else {
                undo.confirm();
            }
        }
    }

    /// The latest reduction can no longer be undone.
    pub(super) fn forbid_undo(&mut self) {
        if let Some(undo) = self.optional.undo_mut() {
            undo.confirm();
        }
    }

    /// Processes a D-SACK report, if the segment has one.
    pub(super) fn on_report(&mut self, segment: &Segment, now: Time) {
        if self.optional.undo().is_none_or(|undo| !undo.dsack) {
            return;
        }
        let Some(duplicate) = segment.sack.duplicate(segment.ack) else {
            return;
        };
        let probe = self.optional.timers_mut().and_then(|timers| {
            let probe = &mut timers.probe.unanswered;
            probe.take_if(|probe| probe.retransmitted && probe.end == duplicate.end)
        });
        let next = self.board.next();
        if let Some(rack) = self.board.rack_mut()
            && probe.is_none()
        {
            // A duplicate of a tail loss probe is no sign of reordering.
            rack.on_duplicate(segment.ack, next, now);
        }
        let mss = self.mss;
        let undo = self.optional.undo_mut();
        if undo.is_some_and(|undo| undo.on_duplicate(duplicate, mss)) {
            self.undo_reduction(true, UndoCause::Dsack);
        }
    }

    /// Passes an acknowledgement to F-RTO, which may find the last timeout spurious.
    #[inline]
    pub(super) fn check_timeout(&mut self, una: u64, delivered: u64, echoed: bool) {
        if self.optional.undo().is_some() {
            self.ask_frto(una, delivered, echoed);
        }
    }

    #[inline(never)] // so that senders without it are not burdened
    fn ask_frto(&mut self, una: u64, delivered: u64, echoed: bool) {
        let Some(frto) = self.optional.undo_mut().and_then(|undo| undo.frto.as_mut()) else {
            return;
        };
        let ack = self.board.una();
        let kind = frto.on_ack(Answer {
            ack,
            advances: ack > una,
            delivers: self.board.delivered() > delivered,
            highest: self
                .board
                .sacked()
                .highest()
                .map_or(ack, |end| end.max(ack)),
            next: self.board.next(),
        });
        match kind {
            TimeoutKind::Undecided => {}
            // With an echoed mark the window stays reduced, even after a spurious timeout (RFC
            // 4015, section 3.1).
            TimeoutKind::Spurious => self.undo_reduction(!echoed, UndoCause::Frto),
            TimeoutKind::Genuine => {
                // Not above the window that slow start would have reached without F-RTO.
                let window = self.controller.window();
                let earned = (3.0 * f64::from(self.mss)).min(window.ssthresh);
                self.controller.set_cwnd(window.cwnd.max(earned));
            }
        }
    }

    /// The latest episode was spurious: restores the state before it, and with `restore` the window
    /// too.
    fn undo_reduction(&mut self, restore: bool, cause: UndoCause) {
        let Some((prior, timeout)) = self.optional.undo_mut().and_then(|undo| undo.take()) else {
            return;
        };
        if let Some(undo) = self.optional.undo_mut() {
            let restored = restore;
            undo.undone = Some(Undone { cause, restored });
        }
        if restore {
            self.controller.undo(prior);
            if let Some(ecn) = self.optional.ecn_mut() {
                ecn.on_undo();
            }
        }
        if !timeout {
            // Fast recovery continues without further reduction.
            self.counters.spurious_fast_retransmits.count();
            self.optional.drop_prr();
            return;
        }
        self.counters.spurious_timeouts.count();
        if self.phase == Phase::Loss {
            self.board.undo_losses();
            self.phase = Phase::Open;
            self.recover = MaybeOffset::at(self.board.una());
            self.timeouts_in_row = 0;
            self.resend_first = false;
        }
    }
}
