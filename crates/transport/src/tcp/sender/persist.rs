//! Sending resumes: window probes while the peer's window prevents sending, and the restart after an
//! idle time.
//!
//! Source: RFC 9293, section 3.8.6.1 (probing zero windows); RFC 5681, section 4.1 (restarting idle
//! connections).

use redtail_core::Time;

use super::Sender;
use crate::cc::IdleDecay;
use crate::segment::Segment;

/// The state of window probing, while the peer's window prevents sending (RFC 9293, section
/// 3.8.6.1). The persist timer is kept in place of the retransmission timer.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Persist {
    /// Probes sent.
    pub probes: u32,
    /// When the last probe was sent.
    pub probed: Option<Time>,
    /// The next probe is due.
    pub due: bool,
}

impl Sender {
    /// Whether `ack` covers the byte of a window probe; the byte is then recorded in the
    /// scoreboard.
    #[cold]
    pub(super) fn is_probe_accepted(&mut self, ack: u64) -> bool {
        let accepted = ack == self.board.next() + 1;
        let Some(persist) = self.persist.as_mut().filter(|_| accepted) else {
            return false;
        };
        let Some(probed) = persist.probed.take() else {
            return false;
        };
        self.progress.begin(probed);
        self.board.on_new(1, probed);
        if persist.probes > 1
            && let Some(index) = self.board.last()
        {
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
        let left = self.size - seq;
        if self.peer_window > 0 {
            let len = left
                .min(u64::from(self.peer_window))
                .min(u64::from(self.mss)) as u32;
            return Some(self.send_data(seq, len, now));
        }
        let persist = self.persist.as_mut()?;
        persist.probes += 1;
        persist.probed = Some(now);
        self.rto_at = Some(self.wheel.expiry(now, self.rtt.backed_off(persist.probes)));
        self.counters.data_segments += 1;
        Some(Segment {
            seq,
            len: 1,
            ..self.bare_segment(now)
        })
    }

    /// There is data that the peer's window does not allow. If nothing is outstanding, the persist
    /// timer is started.
    #[cold]
    pub(super) fn on_blocked(&mut self, now: Time) {
        if self.board.outstanding() == 0 {
            self.idle = true;
            let probes = self.persist.get_or_insert_default().probes;
            if self.rto_at.is_none() {
                self.rto_at = Some(self.wheel.expiry(now, self.rtt.backed_off(probes)));
            }
        }
    }

    /// Sending resumes after an idle time.
    #[cold]
    pub(super) fn end_idle(&mut self, now: Time) {
        self.idle = false;
        if self.persist.take().is_some() {
            self.rto_at = None;
        }
        self.controller.after_pause(self.last_sent, now);
        let (idle, rto) = (now - self.last_sent, self.rtt.rto());
        if idle > rto {
            let restart = f64::from(self.initial_window) * f64::from(self.mss);
            if self.idle_restart && self.idle_decay == IdleDecay::Halving {
                let timeouts = idle.as_ps().div_ceil(rto.as_ps().max(1));
                self.controller.decay(restart, timeouts, self.prr.is_some());
            } else {
                let restart = self.idle_restart.then_some(restart);
                self.controller.after_idle(restart);
            }
        }
    }
}
