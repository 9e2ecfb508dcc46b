//! The retransmission timer, and the timer of loss detection by time.
//!
//! Source: RFC 6298, section 5; RFC 8985, section 6.3; Linux 6.1 for [`TimerRestart::Head`].

use redtail_core::{Span, Time};

use super::loss_probe::{RackTimers, probe_wait};
use super::{Connection, Phase, Sender};
use crate::cc::CongestionKind;
use crate::tcp::rto::TimerRestart;

impl Sender {
    /// Handles the timers that are due. Segments that pacing held back are sent by the next
    /// [`poll_transmit`](Self::poll_transmit).
    pub fn on_wakeup(&mut self, now: Time) {
        if let Some(pacer) = &mut self.pacer {
            pacer.release();
        }
        let mut probing = false;
        if let Some(timers) = &mut self.timers {
            if timers.probe_at.take_if(|at| *at <= now).is_some() {
                timers.probe_due = self.phase == Phase::Open && self.board.outstanding() > 0;
            }
            probing = timers.probe_due;
            if timers.judge_at.take_if(|at| *at <= now).is_some() {
                self.on_reordering_timer(now);
            }
        }
        // A probe takes the place of the timeout and restarts its timer.
        if self.rto_at.is_some_and(|at| at <= now) && !probing {
            match &mut self.persist {
                Some(persist) => {
                    persist.due = true;
                    self.rto_at = None;
                    self.resend_first = true;
                }
                None => self.on_timeout(now),
            }
        }
    }

    /// The retransmission timer (RFC 6298, section 5).
    fn on_timeout(&mut self, now: Time) {
        self.counters.timeouts += 1;
        self.rto_at = None;
        self.timed = None;
        self.rtt.back_off();
        if self.connection == Connection::SynSent {
            self.connection = Connection::SynDue;
            self.syn_retransmissions += 1;
            return;
        }
        if self.linux.is_some() {
            return self.on_timeout_as_linux(now);
        }
        self.allow_undo(true);
        if let Some(frto) = self.undo.as_mut().and_then(|undo| undo.frto.as_mut()) {
            frto.on_timeout(self.phase == Phase::Open);
        }
        self.reduce(
            CongestionKind::Timeout {
                repeated: self.timeouts_in_row > 0,
            },
            now,
        );
        self.timeouts_in_row += 1;
        self.ecn.on_reduction(self.board.next(), now);
        if self.traits.forgets_sacked {
            self.board.forget_sacked();
        }
        if self.timers.is_some() {
            self.board.declare_lost_on_timeout(now, self.rtt.srtt());
            // One segment more than what is still in flight (Linux). If nothing is in flight, this
            // is the loss window of RFC 5681, equation 4.
            let in_flight = self.board.pipe() as f64;
            self.controller.set_cwnd(in_flight + f64::from(self.mss));
        } else {
            self.board.declare_all_lost();
        }
        self.tell_losses(now);
        self.phase = Phase::Loss;
        self.recover = Some(self.board.next());
        self.dup_acks = 0;
        self.resend_first = true;
        self.prr = None;
        self.stop_rack_timers();
    }

    /// The reordering timer has expired (RFC 8985, section 6.3).
    fn on_reordering_timer(&mut self, now: Time) {
        self.run_from_head(now);
        if self.linux.is_some() {
            return self.judge_in_time_as_linux(now);
        }
        self.judge(now);
        if let Some(prr) = &mut self.prr {
            prr.begin();
        }
        self.tell_losses(now);
    }

    /// Stops the reordering timer and the probe timer, and forgets the probe.
    pub(super) fn stop_rack_timers(&mut self) {
        if let Some(timers) = &mut self.timers {
            **timers = RackTimers::default();
        }
    }

    #[inline]
    pub(super) fn restart_timer(&mut self, now: Time) {
        let outstanding = self.board.outstanding() > 0;
        self.rto_at = outstanding.then(|| self.wheel.expiry(now, self.rtt.rto()));
        if self.timers.is_some() {
            if self.timer_restart == TimerRestart::Head {
                self.restart_behind_others(now);
            }
            self.arm_probe(now);
        }
    }

    /// In Linux one timer serves for retransmission, reordering and the tail loss probe. When the
    /// retransmission timer replaces one of the others, it runs from the send time of the first
    /// outstanding segment (Linux, tcp_rearm_rto).
    #[inline(never)]
    fn restart_behind_others(&mut self, now: Time) {
        let Some(timers) = &self.timers else {
            return;
        };
        let (probing, may_probe) = (timers.probe_at.is_some(), self.may_probe());
        if timers.judge_at.is_some() || probing && !may_probe {
            self.run_from_head(now);
        } else if timers.probe.is_some() && may_probe {
            // Another probe is scheduled, but it is not sent while one is unanswered.
            let scheduled = self.rtt.srtt().map(|srtt| {
                let alone = self.board.is_single();
                self.wheel.expiry(now, probe_wait(srtt, alone, self.wheel))
            });
            self.run_from_head(now);
            self.rto_at = self.rto_at.max(scheduled);
        }
    }

    /// Restarts the retransmission timer from the last send time of the first outstanding segment.
    #[cold]
    pub(super) fn run_from_head(&mut self, now: Time) {
        if let Some(sent) = self.board.first_sent()
            && self.timer_restart == TimerRestart::Head
        {
            let due = sent + self.rtt.rto();
            let wait = if due > now {
                due - now
            } else {
                Span::from_us(1)
            };
            self.rto_at = Some(self.wheel.expiry(now, wait));
        }
    }
}
