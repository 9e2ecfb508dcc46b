//! The retransmission timer, and the timer of loss detection by time.
//!
//! Source: RFC 6298, section 5; RFC 8985, section 6.3; Linux 6.1 for [`TimerRestart::Head`].

use redtail_core::{Span, Time};

use super::kind::Path;
use super::loss_probe::{RackTimers, probe_wait};
use super::{Phase, Sender};
use crate::cc::CongestionKind;
use crate::params::TcpParams;
use crate::tcp::maybe_offset::MaybeOffset;
use crate::tcp::rto::{RttEstimator, TimerRestart};
use crate::tcp::timer_wheel::{Expiry, TimerWheel};

/// The retransmission timer. While the peer's window prevents sending it serves as the persist
/// timer.
#[derive(Clone, Debug)]
pub(super) struct RetransmissionTimer {
    /// When it expires; `None` while it is stopped.
    pub at: Option<Expiry>,
    /// The estimator of the round trip, which gives the timeout.
    pub rtt: RttEstimator,
}

impl RetransmissionTimer {
    pub fn new(params: &TcpParams) -> Self {
        Self {
            at: None,
            rtt: RttEstimator::new(params),
        }
    }

    /// Becomes a copy of `fresh`.
    pub fn renew(&mut self, fresh: &Self) {
        copy_fields!(self, fresh; rtt; ; at);
    }

    /// What restarts it.
    #[inline]
    pub fn restart(&self) -> TimerRestart {
        self.rtt.params().timer.restart
    }

    /// Its clock.
    #[inline]
    pub fn wheel(&self) -> TimerWheel {
        self.rtt.params().timer.wheel
    }

    /// Starts or restarts the timer.
    #[inline]
    pub fn start(&mut self, now: Time) {
        self.at = Some(Expiry::new(now, self.rtt.rto()));
    }

    /// Starts the timer as the persist timer, when `probes` probes were sent (RFC 9293, section
    /// 3.8.6.1).
    pub fn start_to_probe(&mut self, probes: u32, now: Time) {
        self.at = Some(Expiry::new(now, self.rtt.backed_off(probes)));
    }

    /// Starts the timer for a segment that was last sent at `sent`. If its timeout has passed, the
    /// timer expires after one microsecond (Linux, tcp_rearm_rto). Returns its expiry.
    #[inline]
    pub fn start_from(&mut self, sent: Time, now: Time) -> Expiry {
        let due = sent + self.rtt.rto();
        let wait = if due > now {
            due - now
        } else {
            Span::from_us(1)
        };
        let expiry = Expiry::new(now, wait);
        self.at = Some(expiry);
        expiry
    }

    /// Whether it has expired.
    #[inline]
    fn is_due(&self, now: Time) -> bool {
        self.at.is_some_and(|at| self.wheel().is_due(at, now))
    }

    /// When it expires, by its clock.
    #[inline]
    pub fn expires(&self) -> Option<Time> {
        self.at.map(|at| self.wheel().expiry(at))
    }
}

impl Sender {
    /// A release is due, and no timer: [`on_wakeup`](Self::on_wakeup) without what timers need.
    #[inline]
    pub fn on_release(&mut self) {
        self.release();
    }

    /// Handles the timers that are due. Segments that pacing held back are sent by the next
    /// [`poll_transmit`](Self::poll_transmit).
    pub fn on_wakeup(&mut self, now: Time) {
        if let Some(pacer) = &mut self.pacer {
            pacer.release();
        }
        self.catch_up();
        let mut probing = false;
        if let Some(timers) = self.optional.timers_mut() {
            let allowed = self.phase == Phase::Open && self.board.outstanding() > 0;
            probing = timers.probe.on_wakeup(now, self.timer.wheel(), allowed);
            if timers.judge_at.take_if(|at| *at <= now).is_some() {
                self.on_reordering_timer(now);
            }
        }
        // A probe takes the place of the timeout and restarts its timer.
        if self.timer.is_due(now) && !probing {
            match self.optional.persist_mut() {
                Some(persist) => {
                    persist.on_timer();
                    self.timer.at = None;
                    self.resend_first = true;
                }
                None => self.on_timeout(now),
            }
        }
    }

    /// The retransmission timer (RFC 6298, section 5).
    fn on_timeout(&mut self, now: Time) {
        self.counters.timeouts.count();
        self.timer.at = None;
        self.timed = None;
        self.timer.rtt.back_off();
        if self.connection.on_timeout() {
            return;
        }
        if self.optional.linux().is_some() {
            return self.on_timeout_as_linux(now);
        }
        self.allow_undo(true);
        if let Some(frto) = self.optional.undo_mut().and_then(|undo| undo.frto.as_mut()) {
            frto.on_timeout(self.phase == Phase::Open);
        }
        self.reduce(
            CongestionKind::Timeout {
                repeated: self.timeouts_in_row > 0,
            },
            now,
        );
        self.timeouts_in_row += 1;
        if let Some(ecn) = self.optional.ecn_mut() {
            ecn.on_reduction(self.board.next(), now);
        }
        if self.params().traits.forgets_sacked {
            self.board.forget_sacked();
        }
        if self.optional.timers().is_some() {
            self.board
                .declare_lost_on_timeout(now, self.timer.rtt.srtt());
            // One segment more than what is still in flight (Linux). If nothing is in flight, this
            // is the loss window of RFC 5681, equation 4.
            let in_flight = self.board.pipe() as f64;
            self.controller.set_cwnd(in_flight + f64::from(self.mss));
        } else {
            self.board.declare_all_lost();
        }
        self.tell_losses(now);
        self.phase = Phase::Loss;
        self.recover = MaybeOffset::at(self.board.next());
        self.dup_acks = 0;
        self.resend_first = true;
        self.optional.drop_prr();
        self.stop_rack_timers();
    }

    /// The reordering timer has expired (RFC 8985, section 6.3).
    fn on_reordering_timer(&mut self, now: Time) {
        self.run_from_head(now);
        if self.optional.linux().is_some() {
            return self.judge_in_time_as_linux(now);
        }
        self.judge(now);
        if let Some(prr) = self.optional.prr_mut() {
            prr.begin();
        }
        self.tell_losses(now);
    }

    /// Stops the reordering timer and the probe timer, and forgets the probe.
    pub(super) fn stop_rack_timers(&mut self) {
        if let Some(timers) = self.optional.timers_mut() {
            *timers = RackTimers::default();
        }
    }

    /// Restarts the timers after an acknowledgement. The retransmission timer is stopped if nothing is outstanding.
    #[inline]
    pub(super) fn restart_timer<P: Path>(&mut self, now: Time) {
        let outstanding = self.board.outstanding() > 0;
        let mut timeout = outstanding.then(|| Expiry::new(now, self.timer.rtt.rto()));
        self.timer.at = timeout;
        if P::OPTIONS
            && let Some(timers) = self.optional.timers()
        {
            let behind_others = timers.judge_at.is_some()
                || timers.probe.unanswered.is_some()
                || timers.probe.at.is_some() && !self.may_probe();
            if !P::ORDINARY && behind_others && self.timer.restart() == TimerRestart::Head {
                self.restart_behind_others(now);
                timeout = self.timer.at;
            }
            self.arm_probe::<P>(timeout, now);
        }
    }

    /// In Linux one timer serves for retransmission, reordering and the tail loss probe. When the
    /// retransmission timer replaces one of the others, it runs from the send time of the first
    /// outstanding segment (Linux, tcp_rearm_rto).
    #[inline(never)]
    fn restart_behind_others(&mut self, now: Time) {
        let Some(timers) = self.optional.timers() else {
            return;
        };
        let (probing, may_probe) = (timers.probe.at.is_some(), self.may_probe());
        if timers.judge_at.is_some() || probing && !may_probe {
            self.run_from_head(now);
        } else if timers.probe.unanswered.is_some() && may_probe {
            // Another probe is scheduled, but it is not sent while one is unanswered.
            let scheduled = self.timer.rtt.srtt().map(|srtt| {
                let alone = self.board.is_single();
                let params = &self.params().probe;
                Expiry::new(now, probe_wait(params, srtt, alone, self.timer.wheel()))
            });
            self.run_from_head(now);
            if scheduled.map(|at| self.timer.wheel().expiry(at)) > self.timer.expires() {
                self.timer.at = scheduled;
            }
        }
    }

    /// Restarts the retransmission timer from the last send time of the first outstanding segment.
    #[cold]
    pub(super) fn run_from_head(&mut self, now: Time) {
        if let Some(sent) = self.board.first_sent()
            && self.timer.restart() == TimerRestart::Head
        {
            let _ = self.timer.start_from(sent, now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timer_runs_from_when_the_segment_was_sent_and_is_not_in_the_past() {
        let at = |ms| Time::ZERO + Span::from_ms(ms);
        let mut timer = RetransmissionTimer::new(&TcpParams {
            initial_rto: Span::from_ms(1000),
            ..TcpParams::default()
        });
        timer.start_from(at(300), at(500));
        assert_eq!(timer.expires(), Some(at(1300)));
        timer.start_from(at(300), at(1300));
        assert_eq!(timer.expires(), Some(at(1300) + Span::from_us(1)));
    }
}
