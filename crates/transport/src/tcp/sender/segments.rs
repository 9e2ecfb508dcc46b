//! Building the segments that carry data.

use std::num::NonZeroU64;

use redtail_core::{Ecn, Time};

use super::Sender;
use super::kind::{Any, Path};
use crate::segment::{Flags, Segment};
use crate::tcp::rto::TimerRestart;
use crate::tcp::timestamps::timestamp;

impl Sender {
    /// Sends new data, if there is any and the peer's window allows it.
    #[inline(never)] // one copy for each path
    pub(super) fn send_new<P: Path>(&mut self, now: Time) -> Option<Segment> {
        self.send_in_place::<P>(now)
    }

    /// The text of [`send_new`](Self::send_new). In the states of Linux data leaves in bursts, whose last segment is
    /// pushed (`__tcp_transmit_skb`: "Force a PSH flag on all (GSO) packets").
    #[inline(always)] // the segment is written once, to where the caller puts it
    pub(super) fn send_in_place<P: Path>(&mut self, now: Time) -> Option<Segment> {
        if P::LINUX && !self.begin_burst(now) {
            self.stream.fresh = false;
            return None;
        }
        let Some(len) = self.next_len::<P>(now) else {
            self.stream.fresh = false;
            if P::LINUX {
                self.note_no_data();
            }
            return None;
        };
        let segment = self.send_data::<P>(self.board.next(), len, now);
        let pushed = P::LINUX && self.is_pushed();
        Some(Segment {
            flags: segment.flags.with_if(pushed, Flags::PSH),
            ..segment
        })
    }

    /// Sends new data.
    #[inline(always)] // avoids a copy of the segment
    pub(super) fn send_data<P: Path>(&mut self, seq: u64, len: u32, now: Time) -> Segment {
        debug_assert!(!P::FULL || !self.idle && self.timer.at.is_some());
        if !P::FULL && self.idle {
            self.end_idle(now);
        }
        // The FIN goes with the last byte, if the record's length has room for it, unless that byte leaves
        // as it is written.
        let end = seq + u64::from(len);
        let last = !P::FULL && self.stream.carries_fin(end, len);
        let len = if last && len < u32::from(u16::MAX) {
            len + 1
        } else {
            len
        };
        if !P::FULL && self.board.outstanding() == 0 {
            self.progress.begin(now);
        }
        self.board.push(len, now);
        if P::OPTIONS {
            self.board.sample_new(len, now);
            self.set_timers_for_new(now);
        }
        self.time_if_none(seq + u64::from(len), now);
        let ecn = match P::OPTIONS {
            true => self.optional.ecn().codepoint(),
            false => Ecn::NotEct,
        };
        self.data_segment::<P>(seq, len, ecn, now)
    }

    /// Times the segment that ends at `end`, unless another one is being timed.
    #[inline]
    fn time_if_none(&mut self, end: u64, now: Time) {
        if self.timed.is_none() {
            self.timed = NonZeroU64::new(end).map(|end| (end, now));
        }
    }

    pub(super) fn resend(&mut self, index: u64, now: Time) -> Segment {
        self.catch_up();
        let (seq, len) = self.board.on_resent(index, now);
        if self.timer.restart() == TimerRestart::Head && seq == self.board.una() {
            self.run_from_head(now);
        }
        if let Some(undo) = self.optional.undo_mut() {
            undo.on_resent(seq + u64::from(len));
        }
        if let Some(linux) = self.optional.linux_mut() {
            linux.on_resent(now);
        }
        self.send_again(seq, len, now)
    }

    /// Builds a retransmission of `len` sequence numbers from `seq`, which the scoreboard has
    /// already recorded.
    pub(super) fn send_again(&mut self, seq: u64, len: u32, now: Time) -> Segment {
        self.counters
            .retransmissions
            .count_if(seq < self.stream.size);
        if self
            .timed
            .is_some_and(|(end, _)| end.get() == seq + u64::from(len))
        {
            self.timed = None; // Karn
        }
        // Retransmissions must not be ECN-capable (RFC 3168, section 6.1.5).
        let ecn = if self.params().ecn_retransmissions {
            self.optional.ecn().codepoint()
        } else {
            Ecn::NotEct
        };
        self.data_segment::<Any>(seq, len, ecn, now)
    }

    /// Builds a segment of `len` sequence numbers from `seq`.
    #[inline(always)]
    fn data_segment<P: Path>(&mut self, seq: u64, len: u32, ecn: Ecn, now: Time) -> Segment {
        self.last_sent = now;
        if P::OPTIONS
            && let Some(pacer) = &mut self.pacer
        {
            pacer.on_sent(len, now);
        }
        if !P::FULL && self.timer.at.is_none() {
            self.timer.start(now); // RFC 6298, rule 5.1
        }
        self.counters.data_segments += 1;
        let (len, ecn, fin) = if !P::FULL && seq + u64::from(len) >= self.stream.size {
            self.last_data(seq, len, ecn)
        } else {
            (len, ecn, Flags::NONE)
        };
        let segment = Segment {
            seq,
            len,
            flags: Flags::ACK.with(fin),
            ..Segment::default()
        };
        if !P::OPTIONS {
            return segment;
        }
        let flags = match self.optional.ecn_mut() {
            Some(response) => response.data_flags(ecn != Ecn::NotEct),
            None => Flags::NONE,
        };
        Segment {
            ts_val: if self.params().timestamps {
                timestamp(now)
            } else {
                0
            },
            ts_ecr: self.ts_recent,
            flags: segment.flags.with(flags),
            ecn,
            ..segment
        }
    }

    /// The payload length, the codepoint and the flags of a segment that reaches the end of the
    /// written data. Its data is pushed. If the application has closed, the FIN is the last of
    /// `len` sequence numbers. A FIN without data is a control segment: it is not counted as data
    /// and not ECN-capable.
    #[cold]
    fn last_data(&mut self, seq: u64, len: u32, ecn: Ecn) -> (u32, Ecn, Flags) {
        if seq + u64::from(len) == self.stream.size {
            (
                len,
                ecn,
                Flags::NONE.with_if(self.stream.pushes, Flags::PSH),
            )
        } else if len == 1 {
            self.counters.data_segments -= 1;
            (0, Ecn::NotEct, Flags::FIN)
        } else {
            (len - 1, ecn, Flags::FIN)
        }
    }

    /// Builds an acknowledgement without anything else.
    #[inline]
    pub(super) fn bare_segment(&self, now: Time) -> Segment {
        Segment {
            flags: Flags::ACK,
            ts_val: if self.params().timestamps {
                timestamp(now)
            } else {
                0
            },
            ts_ecr: self.ts_recent,
            ..Segment::default()
        }
    }
}
