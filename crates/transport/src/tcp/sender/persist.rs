//! Sending resumes: window probes while the peer's window prevents sending, and the restart after an
//! idle time.
//!
//! Source: RFC 9293, section 3.8.6.1 (probing zero windows); RFC 5681, section 4.1 (restarting idle
//! connections).

use redtail_core::Time;

use super::Sender;
use super::kind::Any;
use crate::cc::IdleDecay;
use crate::segment::Segment;

/// The state of window probing, while the peer's window prevents sending (RFC 9293, section
/// 3.8.6.1). The persist timer is kept in place of the retransmission timer.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Persist {
    /// The number of probes sent.
    probes: u32,
    /// When the last probe was sent, until its byte is accepted.
    probed: Option<Time>,
    /// The next probe is due.
    due: bool,
}

impl Persist {
    /// The persist timer has expired.
    pub fn on_timer(&mut self) {
        self.due = true;
    }

    /// Whether a probe is due. Clears it.
    pub fn take_due(&mut self) -> bool {
        std::mem::take(&mut self.due)
    }

    /// Whether a probe was sent.
    pub fn has_probed(&self) -> bool {
        self.probes > 0
    }

    /// A probe is sent.
    fn on_sent(&mut self, now: Time) {
        self.probes += 1;
        self.probed = Some(now);
    }

    /// The byte of the probes is acknowledged. Returns when the last was sent, and whether there
    /// were several; `None` if none was sent since the last call.
    fn take_accepted(&mut self) -> Option<(Time, bool)> {
        Some((self.probed.take()?, self.probes > 1))
    }
}

impl Sender {
    /// Whether `ack` covers the byte of a window probe; the byte is then recorded in the
    /// scoreboard.
    #[cold]
    pub(super) fn is_probe_accepted(&mut self, ack: u64) -> bool {
        let accepted = ack == self.board.next() + 1;
        let Some(persist) = self.optional.persist_mut().filter(|_| accepted) else {
            return false;
        };
        let Some((probed, several)) = persist.take_accepted() else {
            return false;
        };
        self.progress.begin(probed);
        self.board.on_new(1, probed);
        if several && let Some(index) = self.board.last() {
            self.board.on_resent(index, probed); // ambiguous (Karn)
        }
        true
    }

    /// A window probe, whose acknowledgement announces the receiver's window (RFC 9293, section
    /// 3.8.6.1). It carries one byte, or what the window allows if that is less than is sent
    /// without waiting (section 3.8.6.2.1).
    #[cold]
    pub(super) fn send_window_probe(&mut self, now: Time) -> Option<Segment> {
        let seq = self.board.next();
        let left = self.stream.left(seq);
        if self.peer_window > 0 {
            let len = left
                .min(u64::from(self.peer_window))
                .min(u64::from(self.mss)) as u32;
            return Some(self.send_data::<Any>(seq, len, now));
        }
        let persist = self.optional.persist_mut()?;
        persist.on_sent(now);
        self.timer.start_to_probe(persist.probes, now);
        self.counters.data_segments += 1;
        Some(Segment {
            seq,
            len: 1,
            ..self.bare_segment(now)
        })
    }

    /// There is data that the peer's window or the send buffer does not allow. If nothing is outstanding, the persist
    /// timer is started. To what measures the rate of delivery, data that did not fit the buffer was not written
    /// (tcp_rate_check_app_limited).
    #[cold]
    pub(super) fn on_blocked(&mut self, now: Time) {
        if self.most_outstanding::<Any>() < self.peer_window {
            self.note_app_limited();
        }
        if self.board.outstanding() == 0 {
            self.idle = true;
            let probes = self.optional.add().persist.get_or_insert_default().probes;
            if self.timer.at.is_none() {
                self.timer.start_to_probe(probes, now);
            }
        }
    }

    /// Sending resumes after an idle time.
    #[cold]
    pub(super) fn end_idle(&mut self, now: Time) {
        self.idle = false;
        if self.optional.drop_persist() {
            self.timer.at = None;
        }
        self.controller.after_pause(self.last_sent, now);
        let (idle, rto) = (now - self.last_sent, self.timer.rtt.rto());
        if idle > rto {
            let restart = f64::from(self.params().initial_window) * f64::from(self.mss);
            if self.params().idle_restart && self.params().idle_decay == IdleDecay::Halving {
                let timeouts = idle.as_ps().div_ceil(rto.as_ps().max(1));
                self.controller
                    .decay(restart, timeouts, self.optional.prr().is_some());
            } else {
                let restart = self.params().idle_restart.then_some(restart);
                self.controller.after_idle(restart);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use redtail_core::Span;

    use super::*;

    #[test]
    fn the_byte_of_several_probes_is_accepted_once_and_ambiguous() {
        let at = |s| Time::ZERO + Span::from_s(s);
        let mut persist = Persist::default();
        assert_eq!(persist.take_accepted(), None);
        persist.on_sent(at(1));
        persist.on_sent(at(3));
        assert!(persist.has_probed());
        assert_eq!(persist.take_accepted(), Some((at(3), true)));
        assert_eq!(persist.take_accepted(), None);
    }
}
