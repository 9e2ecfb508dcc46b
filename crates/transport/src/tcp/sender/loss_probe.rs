//! Tail loss probes.
//!
//! Source: RFC 8985, section 7.

use redtail_core::{Span, Time, earlier};

use super::kind::{Any, Kind, Path};
use super::linux::LinuxStates;
use super::{Phase, Sender};
use crate::cc::CongestionKind;
use crate::segment::Segment;
use crate::tcp::rto::TimerRestart;
use crate::tcp::shared::ProbeParams;
use crate::tcp::timer_wheel::{Expiry, TimerWheel};
use crate::tcp::timestamps::{before, timestamp};

/// A tail loss probe that has not been answered.
#[derive(Clone, Copy, Debug)]
pub(super) struct Probe {
    /// An acknowledgement of this or more answers it.
    pub end: u64,
    pub sent: Time,
    /// Whether it was a retransmission, which may have repaired a loss.
    pub retransmitted: bool,
}

/// The timers of a sender that detects losses by time.
#[derive(Clone, Debug, Default)]
pub(super) struct RackTimers {
    /// When the reordering timer is due (RFC 8985, section 6.2, step 5).
    pub judge_at: Option<Time>,
    pub probe: TailLossProbe,
    /// New data was sent, and the timers are still to be set for it: once for all segments that leave together, or
    /// not at all if an acknowledgement sets them anew before any can expire.
    pub is_behind: bool,
    /// It is certain that none of them expires before the alarm. More new data does not change that.
    is_quiet: bool,
}

impl RackTimers {
    /// Whether there is neither a reordering timer nor an unanswered probe.
    #[inline]
    pub fn are_ordinary(&self) -> bool {
        self.judge_at.is_none() && self.probe.unanswered.is_none()
    }
}

/// When a probe is due: at the earlier of two expiries.
#[derive(Clone, Copy, Debug)]
pub(super) struct ProbeExpiry {
    /// The end of the probe timeout.
    probe: Expiry,
    /// That of the retransmission timer, which the probe replaces.
    timeout: Option<Expiry>,
}

impl ProbeExpiry {
    /// When the probe is due, by the clock `wheel`; `None` if that is certain to be at `alarm` or later.
    pub fn expires_before(&self, wheel: TimerWheel, alarm: Time) -> Option<Time> {
        let timeout = self.timeout.and_then(|at| wheel.expiry_before(at, alarm));
        earlier(wheel.expiry_before(self.probe, alarm), timeout)
    }

    /// Whether the probe is due, by the clock `wheel`.
    #[inline]
    fn is_due(&self, wheel: TimerWheel, now: Time) -> bool {
        wheel.is_due(self.probe, now) || self.timeout.is_some_and(|it| wheel.is_due(it, now))
    }

    /// A time that is not later than it.
    #[inline]
    pub fn earliest(&self) -> Time {
        let probe = self.probe.earliest();
        self.timeout
            .map_or(probe, |timeout| timeout.earliest().min(probe))
    }
}

/// The timer and the state of tail loss probes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TailLossProbe {
    /// When a probe is due (RFC 8985, section 7.2).
    pub at: Option<ProbeExpiry>,
    /// The timer has expired: a probe is to be sent.
    pub due: bool,
    /// The probe that has not been answered.
    pub unanswered: Option<Probe>,
}

impl Probe {
    /// Whether an acknowledgement that echoes the timestamp `echo` is of a segment sent before the
    /// probe. Without timestamps nothing shows this.
    fn came_later_than(&self, echo: Option<u32>) -> bool {
        echo.is_some_and(|echo| before(echo, timestamp(self.sent)))
    }
}

impl TailLossProbe {
    /// Checks the timer, which has the clock `wheel`. A probe is sent when it has expired, if it is
    /// `allowed` then. Returns whether a probe is to be sent.
    pub fn on_wakeup(&mut self, now: Time, wheel: TimerWheel, allowed: bool) -> bool {
        if self.at.take_if(|at| at.is_due(wheel, now)).is_some() {
            self.due = allowed;
        }
        self.due
    }

    /// A probe is sent.
    fn on_sent(&mut self, probe: Probe) {
        self.at = None;
        self.unanswered = Some(probe);
    }

    /// Stops the timer and forgets the probe that has not been answered.
    fn cancel(&mut self) {
        (self.at, self.unanswered) = (None, None);
    }

    /// The probe that an acknowledgement up to `ack` answers. It echoes the timestamp `echo`. If it
    /// `may_report`, a D-SACK may still say that a retransmission was not needed (RFC 8985, section
    /// 7.4.2).
    fn take_answered(&mut self, ack: u64, echo: Option<u32>, may_report: bool) -> Option<Probe> {
        self.unanswered.take_if(|probe| {
            let waits = may_report && probe.retransmitted && !probe.came_later_than(echo);
            ack > probe.end || ack == probe.end && !waits
        })
    }
}

/// The probe timeout (PTO) of RFC 8985, section 7.2; `alone` if exactly one segment is outstanding.
pub(super) fn probe_wait(params: &ProbeParams, srtt: Span, alone: bool, wheel: TimerWheel) -> Span {
    let more = if alone {
        params.max_ack_delay
    } else {
        wheel.allowance()
    };
    srtt * params.round_trips + more
}

impl Sender {
    /// A probe that repaired a loss is a congestion signal (RFC 8985, section 7.4).
    pub(super) fn on_probe_answered(&mut self, segment: &Segment, now: Time) {
        // With timestamps an acknowledgement of the original segment differs from one of the probe.
        let echo = self.params().timestamps.then_some(segment.ts_ecr);
        let may_report = self.optional.undo().is_some_and(|undo| undo.dsack);
        let Some(timers) = self.optional.timers_mut() else {
            return;
        };
        let Some(probe) = timers.probe.take_answered(segment.ack, echo, may_report) else {
            return;
        };
        if probe.retransmitted && !probe.came_later_than(echo) && self.phase == Phase::Open {
            self.reduce(CongestionKind::Loss, now);
            self.controller.on_episode_end(false, now);
            self.forbid_undo();
        }
    }

    /// Schedules a tail loss probe (RFC 8985, section 7.2). `timeout` is the expiry of the retransmission
    /// timer, which the caller has just set: reading it again would wait for the write.
    #[inline]
    pub(super) fn arm_probe<P: Path>(&mut self, timeout: Option<Expiry>, now: Time) {
        let quiet = match P::ORDINARY {
            true => self.board.outstanding() > 0,
            false => self.may_probe(),
        };
        let alone = self.board.is_single();
        let params = &self.timer.rtt.params().sender.probe;
        let wait = |srtt: Span| probe_wait(params, srtt, alone, self.timer.wheel());
        let Some(timers) = self.optional.timers_mut() else {
            return;
        };
        (timers.is_behind, timers.is_quiet) = (false, false);
        timers.probe.at = match self.timer.rtt.srtt() {
            Some(srtt) if quiet && timers.probe.unanswered.is_none() => Some(ProbeExpiry {
                probe: Expiry::new(now, wait(srtt)),
                timeout,
            }),
            _ => None,
        };
    }

    /// Whether a tail loss probe may be scheduled: data is outstanding, and there is no hole and no
    /// episode.
    pub(super) fn may_probe(&self) -> bool {
        self.phase == Phase::Open
            && self.board.outstanding() > 0
            && match self.optional.linux() {
                None => !self.board.has_sacked(),
                Some(linux) => linux.may_probe(),
            }
    }

    /// Sends a tail loss probe: new data if there is any, otherwise a retransmission of the last
    /// segment (RFC 8985, section 7.3).
    pub(super) fn send_probe(&mut self, now: Time) -> Option<Segment> {
        self.timer.start(now);
        let (segment, retransmitted) = match self.send_new::<Any>(now) {
            Some(segment) => {
                if let Some(linux) = self.optional.linux_mut() {
                    linux.on_sent();
                }
                (segment, false)
            }
            None => {
                let last = self.board.last()?;
                let probe = match self.optional.linux() {
                    None => self.resend(last, now),
                    Some(_) => {
                        let (seq, len) = self.board.on_probed(last, now);
                        self.send_again(seq, len, now)
                    }
                };
                (probe, true)
            }
        };
        if let Some(prr) = self.optional.prr_mut() {
            prr.on_sent(segment.len);
        }
        if let Some(timers) = self.optional.timers_mut() {
            timers.probe.on_sent(Probe {
                end: self.board.next(),
                sent: now,
                retransmitted,
            });
        }
        Some(segment)
    }

    /// Cancels the tail loss probe when recovery begins.
    pub(super) fn end_probing(&mut self, now: Time) {
        if self.timer.restart() == TimerRestart::Head
            && self
                .optional
                .timers()
                .is_some_and(|it| it.probe.at.is_some())
        {
            self.run_from_head(now);
        }
        if let Some(timers) = self.optional.timers_mut() {
            timers.probe.cancel();
        }
    }

    /// New data was sent: it sets the timers, now or later ([`catch_up`](Self::catch_up)).
    #[inline]
    pub(super) fn set_timers_for_new(&mut self, now: Time) {
        let Some(timers) = self.optional.timers_mut() else {
            return;
        };
        // Later segments only repeat what the second does, as long as both timers run.
        timers.is_behind = timers.probe.at.is_some() && self.timer.at.is_some();
        if !timers.is_behind {
            self.arm_probe::<Any>(self.timer.at, now);
        } else if self.kind == Kind::General {
            self.set_timers_behind_probe(now);
        }
    }

    /// Sets the timers for the new data that was sent last, if they are still to be set for it.
    #[inline]
    pub(super) fn catch_up(&mut self) {
        if self.is_behind() {
            self.set_timers_behind_probe(self.last_sent);
        }
    }

    /// Whether the timers are still to be set for the new data that was sent last.
    #[inline]
    pub(super) fn is_behind(&self) -> bool {
        let timers = self.optional.timers();
        timers.is_some_and(|timers| timers.is_behind)
    }

    /// Whether it is certain that no timer expires before `alarm` once all are set for the new data that was sent last.
    #[inline]
    pub(super) fn is_quiet_until_alarm(&mut self, alarm: Option<Time>) -> bool {
        if (self.optional.timers()).is_some_and(|timers| timers.is_quiet) {
            return true;
        }
        let quiet = alarm.is_some_and(|alarm| alarm <= self.earliest_behind());
        if let Some(timers) = self.optional.timers_mut() {
            timers.is_quiet = quiet;
        }
        quiet
    }

    /// A time that no timer expires before once all are set for the new data that was sent last; zero if none is
    /// certain.
    #[inline]
    fn earliest_behind(&self) -> Time {
        let ordinary = self.phase == Phase::Open
            && self.optional.linux().is_some_and(LinuxStates::may_probe)
            && self.optional.timers().is_some_and(RackTimers::are_ordinary);
        match (ordinary, self.timer.rtt.srtt(), self.board.first_sent()) {
            (true, Some(srtt), Some(first)) if self.timer.restart() == TimerRestart::Head => {
                let wait = probe_wait(&self.params().probe, srtt, false, self.timer.wheel());
                let probe = self.last_sent + wait;
                probe.min(first + self.timer.rtt.rto())
            }
            _ => Time::ZERO,
        }
    }

    /// New data replaces a scheduled probe by one that is scheduled from now, or by the
    /// retransmission timer (Linux, tcp_event_new_data_sent).
    #[inline(never)]
    fn set_timers_behind_probe(&mut self, now: Time) {
        let timeout = match self.board.first_sent() {
            Some(sent) if self.timer.restart() == TimerRestart::Head => {
                Some(self.timer.start_from(sent, now))
            }
            _ => self.timer.at,
        };
        self.arm_probe::<Any>(timeout, now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_probe_is_sent_after_a_number_of_round_trips_and_later_for_one_segment() {
        let (srtt, wheel) = (Span::from_ms(100), TimerWheel::new(Span::ZERO));
        for (round_trips, delay) in [(2, 200), (3, 50)] {
            let params = ProbeParams {
                round_trips,
                max_ack_delay: Span::from_ms(delay),
            };
            let wait = |alone| probe_wait(&params, srtt, alone, wheel);
            assert_eq!(wait(false), srtt * round_trips + wheel.allowance());
            assert_eq!(wait(true), srtt * round_trips + Span::from_ms(delay));
        }
    }

    fn at(ms: u64) -> Time {
        Time::ZERO + Span::from_ms(ms)
    }

    fn probed(retransmitted: bool) -> TailLossProbe {
        let mut probe = TailLossProbe::default();
        probe.on_sent(Probe {
            end: 5000,
            sent: at(100),
            retransmitted,
        });
        probe
    }

    #[test]
    fn a_probe_is_answered_once_its_end_is_acknowledged() {
        let mut probe = probed(false);
        assert!(probe.take_answered(4999, None, true).is_none());
        assert!(probe.take_answered(5000, None, true).is_some());
        assert!(probe.take_answered(5000, None, true).is_none());
    }

    #[test]
    fn a_retransmission_waits_for_the_report_that_it_was_not_needed() {
        // RFC 8985, section 7.4.2.
        let after = Some(timestamp(at(100)));
        assert!(probed(true).take_answered(5000, after, true).is_none());
        assert!(probed(true).take_answered(5000, after, false).is_some());
        assert!(probed(true).take_answered(5001, after, true).is_some());
        // An acknowledgement of the original segment needs no report.
        let earlier = Some(timestamp(at(99)));
        assert!(probed(true).take_answered(5000, earlier, true).is_some());
    }

    #[test]
    fn a_probe_that_is_not_allowed_when_its_timer_expires_is_not_sent() {
        let mut probe = TailLossProbe {
            at: Some(ProbeExpiry {
                probe: Expiry::new(at(0), Span::from_ms(10)),
                timeout: None,
            }),
            ..TailLossProbe::default()
        };
        let wheel = TimerWheel::new(Span::ZERO);
        assert!(!probe.on_wakeup(at(9), wheel, true));
        assert!(!probe.on_wakeup(at(10), wheel, false));
        assert!(!probe.on_wakeup(at(11), wheel, true));
    }
}
