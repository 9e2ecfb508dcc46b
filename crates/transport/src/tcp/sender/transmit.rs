//! The choice of what to send next.

use redtail_core::Time;

use super::kind::{Any, Basic, Full, Kind, Linux, Path};
use super::persist::Persist;
use super::{ConnectionState, Phase, Sender};
use crate::cc::as_f64;
use crate::segment::Segment;
use crate::tcp::recovery::{LossRecovery, Recovery, Turn, each};

/// Writes a segment to `to`, if there is one. Returns whether there is.
#[inline]
fn write(segment: Option<Segment>, to: &mut Segment) -> bool {
    match segment {
        Some(segment) => *to = segment,
        None => return false,
    }
    true
}

/// How a sender sends at present.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// [`Sender::next_full`] and then [`Sender::poll_transmit`] give its segments: it is basic and sends new data, as the
    /// windows allow.
    New,
    /// [`Sender::next_in_burst`] gives its segments: it has the states of Linux and sends new data, as the windows and
    /// the pacer allow.
    InBursts,
    /// It sends nothing, because the congestion window is full.
    Held,
    /// [`Sender::poll_transmit`] gives its segments.
    Any,
}

impl Sender {
    /// How it sends at present.
    #[inline]
    pub fn way(&mut self) -> Way {
        let kind = self.kind;
        match kind {
            Kind::Basic if self.sends_only_new() => Way::New,
            Kind::Basic if self.is_held_by_window() => Way::Held,
            Kind::Linux if self.sends_in_bursts() => Way::InBursts,
            _ => Way::Any,
        }
    }

    /// The next segment to put on the wire now, if any; call until `None`.
    #[inline]
    pub fn poll_transmit(&mut self, now: Time) -> Option<Segment> {
        match self.sends_only_new() {
            true => self.poll_new::<Basic>(now),
            false => self.poll_otherwise(now),
        }
    }

    /// Writes the next segment to put on the wire now to `to`, so that it is not copied. Returns whether there is one.
    #[inline]
    pub(in crate::tcp) fn write_next(&mut self, now: Time, to: &mut Segment) -> bool {
        match self.sends_only_new() {
            true => self.write_new(now, to),
            false => write(self.poll_otherwise(now), to),
        }
    }

    #[inline(never)]
    fn write_new(&mut self, now: Time, to: &mut Segment) -> bool {
        write(self.next_new::<Basic>(now), to)
    }

    #[inline(never)]
    fn poll_otherwise(&mut self, now: Time) -> Option<Segment> {
        let segment = match self.kind == Kind::Linux && self.sends_in_bursts() {
            true => self.poll_new::<Linux>(now),
            false => self.next_segment(now),
        };
        if segment.is_none() {
            self.catch_up();
        }
        segment
    }

    /// Whether it is a basic sender with an open connection, without an episode and without duplicate
    /// acknowledgements: it sends new data, as the windows allow.
    #[inline]
    pub fn sends_only_new(&self) -> bool {
        self.is_basic()
            && self.phase == Phase::Open
            && self.connection.state == ConnectionState::Established
            && !self.resend_first
            && self.dup_acks == 0
    }

    /// The next segment of a sender that sends only new data, as the windows and the pacer allow.
    #[inline(always)] // the segment is written once, to where the caller puts it
    fn next_new<P: Path>(&mut self, now: Time) -> Option<Segment> {
        if !self.fits::<P>() {
            if P::OPTIONS {
                self.on_full_window();
            }
            return None;
        }
        if P::OPTIONS && self.is_held_back(now) {
            return None;
        }
        self.send_in_place::<P>(now)
    }

    #[inline(never)]
    fn poll_new<P: Path>(&mut self, now: Time) -> Option<Segment> {
        self.next_new::<P>(now)
    }

    /// The next segment of a sender that sends [in bursts](Way::InBursts). The timers may still be to be set for what was
    /// sent: [`next_timer_before`](Self::next_timer_before) sets them.
    #[inline(always)] // as above
    pub fn next_in_burst(&mut self, now: Time) -> Option<Segment> {
        self.next_new::<Linux>(now)
    }

    /// The next segment of a sender that [sends only new data](Self::sends_only_new) and [has
    /// room](Self::has_room), if it is full, more data follows it, and others are outstanding. So are most segments of
    /// a long transfer. Otherwise there may be another one.
    #[inline(always)] // as above
    pub fn next_full(&mut self, now: Time) -> Option<Segment> {
        let outstanding = self.board.outstanding();
        let seq = self.board.next();
        let full = u64::from(self.mss);
        let is_full = outstanding > 0
            && self.stream.left(seq) > full
            && outstanding + full <= u64::from(self.peer_window);
        is_full.then(|| self.send_data::<Full>(seq, self.mss, now))
    }

    /// Whether the congestion window lets a sender that [sends only new data](Self::sends_only_new) send.
    #[inline(always)]
    pub fn has_room(&self) -> bool {
        self.fits::<Basic>()
    }

    /// Whether a segment fits into the congestion window of a sender without an episode.
    #[inline(always)]
    fn fits<P: Path>(&self) -> bool {
        let in_flight = match P::LINUX || self.params().traits.pipe_is_exact {
            true => self.board.pipe(),
            false => self.board.outstanding(),
        };
        self.has_room_beside(in_flight, self.controller.window().cwnd)
    }

    /// Whether a window of `cwnd` bytes has room for a segment beside `in_flight` bytes; always for the first.
    #[inline(always)]
    fn has_room_beside(&self, in_flight: u64, cwnd: f64) -> bool {
        in_flight == 0 || as_f64(in_flight + u64::from(self.mss)) <= cwnd
    }

    /// Whether it is a basic sender to which [`poll_transmit`](Self::poll_transmit) gives nothing
    /// because the congestion window is full.
    #[inline]
    pub fn is_held_by_window(&self) -> bool {
        self.is_basic()
            && self.connection.state == ConnectionState::Established
            && !self.resend_first
            && self.window_is_used_up()
    }

    /// Whether the bytes in flight leave no room for a segment in the congestion window.
    #[inline(never)]
    fn window_is_used_up(&self) -> bool {
        !self.has_room_beside(self.in_flight(), self.controller.window().cwnd)
    }

    /// The next segment to put on the wire now. Timers may still be to be set for what was sent before.
    #[inline]
    fn next_segment(&mut self, now: Time) -> Option<Segment> {
        if self.connection.state != ConnectionState::Established {
            return self.send_control(now);
        }
        if self.resend_first
            && let Some(answer) = self.send_forced(now)
        {
            return answer;
        }
        if let Some(timers) = self.optional.timers_mut()
            && std::mem::take(&mut timers.probe.due)
        {
            return self.send_probe(now);
        }
        let in_flight = self.in_flight();
        let cwnd = match self.optional.prr() {
            None => self.controller.window().cwnd,
            Some(prr) => prr.cwnd(),
        };
        if !self.has_room_beside(in_flight, cwnd) {
            self.on_full_window();
            if self.params().fin_beyond_window && self.next_is_fin() {
                return self.send_fin_beyond_window(now);
            }
            return None;
        }
        if self.is_held_back(now) {
            self.stream.fresh = false;
            return None;
        }
        if self.optional.linux().is_some() {
            return self.send_as_linux(now);
        }
        match self.phase {
            Phase::Open => {
                if self.dup_acks > 0 && !self.params().limited_transmit {
                    return None;
                }
                if self.optional.prr().is_some() {
                    return self.send_new_after_marks(now);
                }
                self.send_new::<Any>(now)
            }
            Phase::Loss => {
                if let Some(answer) = self.send_for_frto(now) {
                    return answer;
                }
                match self.board.next_lost() {
                    Some(index) => Some(self.resend(index, now)),
                    None => self.send_new::<Any>(now),
                }
            }
            Phase::Recovery => self.send_in_recovery(now),
        }
    }

    /// The window prevents sending.
    #[inline]
    pub(super) fn on_full_window(&mut self) {
        self.stream.fresh = false;
        if let Some(linux) = self.optional.linux_mut() {
            linux.on_full_window(self.board.una(), self.board.next());
        }
        if self.pacer.is_some() {
            self.note_full_window();
        }
    }

    /// The segment that is sent however full the window is: a window probe, or the first
    /// outstanding segment again. `None` if neither is to be sent; `Some(None)` if nothing else may
    /// be sent either.
    fn send_forced(&mut self, now: Time) -> Option<Option<Segment>> {
        self.resend_first = false;
        let persist = self.optional.persist_mut();
        if persist.is_some_and(Persist::take_due) {
            return Some(self.send_window_probe(now));
        }
        if self.board.outstanding() == 0 {
            return None;
        }
        self.board.rewind();
        let index = self.board.next_lost()?;
        let segment = self.resend(index, now);
        if let Some(prr) = self.optional.prr_mut() {
            prr.on_sent(segment.len);
        }
        Some(Some(segment))
    }

    /// The next segment in fast recovery, which has room in the window.
    fn send_in_recovery(&mut self, now: Time) -> Option<Segment> {
        let lost = each!(&mut self.recovery, r => r.next(&mut self.board, Turn::BeforeNewData));
        let segment = match lost {
            Some(index) => self.resend(index, now),
            None => match self.send_new::<Any>(now) {
                Some(segment) => segment,
                None => {
                    let index = each!(
                        &mut self.recovery,
                        r => r.next(&mut self.board, Turn::AfterNewData)
                    )?;
                    self.resend(index, now)
                }
            },
        };
        each!(&mut self.recovery, r => r.on_sent(segment.len));
        if let Some(prr) = self.optional.prr_mut() {
            prr.on_sent(segment.len);
        }
        Some(segment)
    }

    /// Sends new data and counts it for the proportional rate reduction that marks began.
    #[inline(never)] // so that other senders' segments are written only once
    fn send_new_after_marks(&mut self, now: Time) -> Option<Segment> {
        let segment = self.send_new::<Any>(now)?;
        if let Some(prr) = self.optional.prr_mut() {
            prr.on_sent(segment.len);
        }
        Some(segment)
    }

    /// The new data that F-RTO sends in place of retransmissions; `None` if F-RTO does not apply.
    fn send_for_frto(&mut self, now: Time) -> Option<Option<Segment>> {
        let frto = self.optional.undo()?.frto.as_ref()?;
        if !frto.sends_new()? {
            return Some(None);
        }
        let segment = self.send_new::<Any>(now);
        let frto = self.optional.undo_mut()?.frto.as_mut()?;
        frto.on_sent_new(segment.is_some()).then_some(segment)
    }

    /// Whether the next new segment is the last one and carries the FIN.
    #[inline]
    fn next_is_fin(&self) -> bool {
        let next = self.board.next();
        self.stream.closed
            && self.stream.fin
            && next <= self.stream.size
            && self.stream.size - next <= u64::from(self.mss)
            && self.new_len::<Any>() == Some((self.stream.size - next) as u32)
    }

    /// Sends the last segment although the window is full, unless pacing holds it back.
    #[cold]
    fn send_fin_beyond_window(&mut self, now: Time) -> Option<Segment> {
        if self.is_held_back(now) {
            return None;
        }
        self.send_new_after_marks(now)
    }

    /// How many bytes may be outstanding by the peer's window and the send buffer.
    #[inline]
    pub(super) fn most_outstanding<P: Path>(&self) -> u32 {
        match P::OPTIONS {
            true => self.peer_window.min(self.params().send_buffer),
            false => self.peer_window,
        }
    }

    /// Length of the next new segment, if there is data and the peer's window and the send buffer allow it; 0 if it is
    /// a FIN alone.
    #[inline]
    pub(super) fn new_len<P: Path>(&self) -> Option<u32> {
        let seq = self.board.next();
        let left = self.stream.left(seq);
        if left == 0 {
            // The FIN needs no room in the receiver's buffer, so no window holds it back.
            return self.stream.fin_follows(seq).then_some(0);
        }
        let len = left.min(u64::from(self.mss)) as u32;
        let outstanding = self.board.outstanding();
        let most = u64::from(self.most_outstanding::<P>());
        if outstanding + u64::from(len) <= most {
            return Some(len);
        }
        let usable = most.saturating_sub(outstanding);
        // Less than a segment is sent if it is at least half of the largest window (RFC 9293,
        // section 3.8.6.2.1, rule 3).
        (usable > 0 && usable >= u64::from(self.params().peer_window_max / 2))
            .then_some(usable as u32)
    }

    /// Length of the next new segment; 0 if it is a FIN alone. If there is none, it is recorded what prevents sending.
    #[inline]
    pub(super) fn next_len<P: Path>(&mut self, now: Time) -> Option<u32> {
        let len = self.new_len::<P>();
        if self.board.next() >= self.stream.size {
            self.idle |= self.board.outstanding() == 0;
            self.note_app_limited();
        } else if len.is_none() {
            self.on_blocked(now);
        }
        len
    }

    /// Whether there may be something to send if the window allows it.
    pub(super) fn has_more(&self) -> bool {
        match self.phase {
            Phase::Open => {
                (self.dup_acks == 0 || self.params().limited_transmit)
                    && self.new_len::<Any>().is_some()
            }
            Phase::Recovery | Phase::Loss => true,
        }
    }

    /// Bytes that count against the window now, as the recovery strategy estimates them.
    #[inline]
    pub fn in_flight(&self) -> u64 {
        match self.phase {
            Phase::Open if self.params().traits.pipe_is_exact => self.board.pipe(),
            Phase::Open => self
                .board
                .outstanding()
                .saturating_sub(self.limited_transmit()),
            Phase::Recovery => each!(&self.recovery, r => r.in_flight(&self.board)),
            Phase::Loss
                if self.params().traits.limited_transmit_after_timeout && self.dup_acks <= 2 =>
            {
                self.board.pipe().saturating_sub(self.limited_transmit())
            }
            Phase::Loss => self.board.pipe(),
        }
    }

    /// Bytes allowed beyond the window: one segment for each of the first two duplicate
    /// acknowledgements (RFC 3042).
    #[inline]
    fn limited_transmit(&self) -> u64 {
        if self.params().limited_transmit {
            u64::from(self.dup_acks.min(2)) * u64::from(self.mss)
        } else {
            0
        }
    }
}
