//! Tail loss probes.
//!
//! Source: RFC 8985, section 7.

use redtail_core::{Span, Time};

use super::{Phase, Sender};
use crate::cc::CongestionKind;
use crate::segment::Segment;
use crate::tcp::rto::TimerRestart;
use crate::tcp::timer_wheel::TimerWheel;
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
    /// When a tail loss probe is due (RFC 8985, section 7.2).
    pub probe_at: Option<Time>,
    /// The timer has expired: a tail loss probe is to be sent.
    pub probe_due: bool,
    /// The probe that has not been answered.
    pub probe: Option<Probe>,
}

/// The longest time for which a receiver delays the acknowledgement of a single segment (RFC 8985,
/// section 7.2, TLP.max_ack_delay).
const MAX_ACK_DELAY: Span = Span::from_ms(200);

/// The probe timeout (PTO) of RFC 8985, section 7.2; `alone` if exactly one segment is outstanding.
pub(super) fn probe_wait(srtt: Span, alone: bool, wheel: TimerWheel) -> Span {
    let more = if alone {
        MAX_ACK_DELAY
    } else {
        wheel.allowance()
    };
    srtt * 2 + more
}

impl Sender {
    /// A probe that repaired a loss is a congestion signal (RFC 8985, section 7.4).
    pub(super) fn on_probe_answered(&mut self, segment: &Segment, now: Time) {
        let timestamps = self.timestamps;
        // With timestamps an acknowledgement of the original segment differs from one of the probe.
        let original = |probe: &Probe| timestamps && before(segment.ts_ecr, timestamp(probe.sent));
        // A D-SACK may still report that the probe was not needed (section 7.4.2).
        let waits = self.undo.as_ref().is_some_and(|undo| undo.dsack);
        let answered = |probe: &mut Probe| {
            let open = waits && probe.retransmitted && !original(probe);
            segment.ack > probe.end || segment.ack == probe.end && !open
        };
        let probe = self
            .timers
            .as_mut()
            .and_then(|timers| timers.probe.take_if(answered));
        let Some(probe) = probe else {
            return;
        };
        if probe.retransmitted && !original(&probe) && self.phase == Phase::Open {
            self.reduce(CongestionKind::Loss, now);
            self.controller.on_episode_end(false, now);
            self.forbid_undo();
        }
    }

    /// Schedules a tail loss probe (RFC 8985, section 7.2).
    pub(super) fn arm_probe(&mut self, now: Time) {
        let quiet = self.may_probe();
        let alone = self.board.is_single();
        let wait = |srtt: Span| probe_wait(srtt, alone, self.wheel);
        let Some(timers) = &mut self.timers else {
            return;
        };
        timers.probe_at = match self.rtt.srtt() {
            Some(srtt) if quiet && timers.probe.is_none() => {
                let at = self.wheel.expiry(now, wait(srtt));
                // Not later than the retransmission timer, which it replaces.
                Some(self.rto_at.map_or(at, |rto| rto.min(at)))
            }
            _ => None,
        };
    }

    /// Whether a tail loss probe may be scheduled: data is outstanding, and there is no hole and no
    /// episode.
    pub(super) fn may_probe(&self) -> bool {
        self.phase == Phase::Open
            && self.board.outstanding() > 0
            && match &self.linux {
                None => self.board.sacked().is_empty(),
                Some(linux) => linux.may_probe(),
            }
    }

    /// Sends a tail loss probe: new data if there is any, otherwise a retransmission of the last
    /// segment (RFC 8985, section 7.3).
    pub(super) fn send_probe(&mut self, now: Time) -> Option<Segment> {
        self.rto_at = Some(self.wheel.expiry(now, self.rtt.rto()));
        let (segment, retransmitted) = match self.send_new(now) {
            Some(segment) => {
                if let Some(linux) = &mut self.linux {
                    linux.on_sent();
                }
                (segment, false)
            }
            None => {
                let last = self.board.last()?;
                let probe = match self.linux {
                    None => self.resend(last, now),
                    Some(_) => {
                        let (seq, len) = self.board.on_probed(last, now);
                        self.send_again(seq, len, now)
                    }
                };
                (probe, true)
            }
        };
        if let Some(prr) = &mut self.prr {
            prr.on_sent(segment.len);
        }
        if let Some(timers) = &mut self.timers {
            timers.probe_at = None;
            timers.probe = Some(Probe {
                end: self.board.next(),
                sent: now,
                retransmitted,
            });
        }
        Some(segment)
    }

    /// Cancels the tail loss probe when recovery begins.
    pub(super) fn end_probing(&mut self, now: Time) {
        if self.timer_restart == TimerRestart::Head
            && self.timers.as_ref().is_some_and(|it| it.probe_at.is_some())
        {
            self.run_from_head(now);
        }
        if let Some(timers) = &mut self.timers {
            (timers.probe_at, timers.probe) = (None, None);
        }
    }

    /// New data replaces a scheduled probe by one that is scheduled from now, or by the
    /// retransmission timer (Linux, tcp_event_new_data_sent).
    #[inline(never)]
    pub(super) fn on_sent_behind_probe(&mut self, now: Time) {
        if self.timers.as_ref().is_some_and(|it| it.probe_at.is_some()) {
            self.run_from_head(now);
        }
    }
}
