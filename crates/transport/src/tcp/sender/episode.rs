//! The episodes of loss recovery: when losses are detected, how recovery begins and how it ends.

use redtail_core::Time;

use super::kind::Any;
use super::{Phase, Sender};
use crate::cc::{CongestionEvent, CongestionKind};
use crate::tcp::maybe_offset::MaybeOffset;
use crate::tcp::prr::Prr;
use crate::tcp::recovery::{LossRecovery, Recovery, each};
use crate::tcp::rto::TimerRestart;
use crate::tcp::timer_wheel::Expiry;

impl Sender {
    /// Passes a congestion event to the controller.
    pub(super) fn reduce(&mut self, kind: CongestionKind, now: Time) {
        self.controller.on_congestion(&CongestionEvent {
            now,
            kind,
            flight: self.board.outstanding(),
            beta: None,
        });
    }

    pub(super) fn maybe_enter_recovery(&mut self, now: Time) {
        let (una, dup_acks) = (self.board.una(), self.dup_acks);
        let detected = each!(&self.recovery, r => r.detects_loss(&self.board, dup_acks, self.params().dup_thresh));
        let allowed = self
            .recover
            .get()
            .is_none_or(|recover| self.params().traits.may_enter(una, recover));
        if !(detected && allowed) || self.board.outstanding() == 0 {
            return;
        }
        let starts_over = self.params().traits.starts_over;
        let (phase, kind) = if starts_over {
            (Phase::Loss, CongestionKind::Timeout { repeated: false })
        } else {
            (Phase::Recovery, CongestionKind::Loss)
        };
        self.counters.recoveries.count();
        if self.optional.ecn().covers(una) {
            self.forbid_undo();
        } else {
            self.allow_undo(starts_over);
        }
        self.phase = phase;
        self.recover = MaybeOffset::at(self.board.next());
        self.timer_restarted = false;
        self.timed = None;
        self.resend_first = true;
        if !self.optional.ecn().covers(una) {
            self.reduce(kind, now);
            if let Some(ecn) = self.optional.ecn_mut() {
                ecn.on_reduction(self.board.next(), now);
            }
        }
        let mss = self.mss;
        // Strategies that count duplicates declare the first segment lost.
        self.newly_lost |= self.optional.timers().is_none() && !self.board.first_is_lost();
        each!(&mut self.recovery, r => r.on_enter(&mut self.board, dup_acks, mss));
        if self.params().uses_prr && self.params().traits.pipe_is_exact {
            let sacked = self.board.sacked().bytes();
            self.optional.add().prr = Some(Box::new(Prr::new(self.board.outstanding(), sacked)));
        }
        self.end_probing(now);
        // The retransmission restarts the timer, as RFC 6675, section 6, allows. RFC 6298 restarts
        // it on new acknowledgements only, as does ns-3.
        if self.timer.restart() == TimerRestart::Acks {
            self.restart_timer::<Any>(now);
        }
    }

    /// An episode, which is fast recovery or the repair after a timeout, is over.
    pub(super) fn leave_episode(&mut self, now: Time) {
        if self.phase == Phase::Recovery {
            self.leave_recovery(now);
        } else {
            self.controller.on_episode_end(true, now);
        }
        self.phase = Phase::Open;
        if let Some(rack) = self.board.rack_mut() {
            rack.on_episode_end(now);
        }
    }

    fn leave_recovery(&mut self, now: Time) {
        self.optional.drop_prr();
        let (cwnd, mss) = (self.controller.window().cwnd, self.mss);
        let after = each!(&self.recovery, r => r.on_exit(&self.board, cwnd, mss));
        self.controller.set_cwnd(after);
        self.controller.on_episode_end(false, now);
        if self.params().traits.forgets_recovery_point {
            self.recover = MaybeOffset::NONE;
        }
    }

    /// Detects losses by time, and enters recovery if there are any.
    pub(super) fn judge(&mut self, now: Time) {
        self.detect(now);
        if self.phase == Phase::Open {
            self.maybe_enter_recovery(now);
        }
    }

    /// Detects losses by time (RACK_detect_loss of RFC 8985, section 6.2, step 5). Returns whether
    /// a retransmission was lost.
    pub(super) fn detect(&mut self, now: Time) -> bool {
        let enough = u64::from(self.params().dup_thresh) * u64::from(self.mss);
        let certain = self.phase != Phase::Open || self.board.sacked().bytes() >= enough;
        let srtt = self.timer.rtt.srtt();
        let judged = self.board.detect_losses_by_time(now, certain, srtt);
        self.newly_lost |= judged.lost;
        if let Some(timers) = self.optional.timers_mut() {
            let wait = |at: Time| at - now + self.timer.wheel().allowance();
            timers.judge_at = judged
                .next_check
                .map(|at| self.timer.wheel().expiry(Expiry::new(now, wait(at))));
        }
        judged.retransmission
    }
}
