//! Opening and closing a connection, and the application's writing.
//!
//! Source: RFC 9293, sections 3.5 (the handshake) and 3.6 (closing).

use redtail_core::{Ecn, Span, Time};

use super::Sender;
use crate::segment::{Flags, Segment};
use crate::tcp::rto::SynLoss;
use crate::tcp::timestamps::{shown_at, timestamp};

/// The states of a connection's sender: first those in which it may have a segment to send, so that one comparison
/// tells them from the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ConnectionState {
    /// The SYN is due, for the first time or as a retransmission.
    SynDue,
    /// The acknowledgement of the SYN-ACK is due, without data.
    AckDue,
    /// The acknowledgement of the peer's FIN is due.
    FinAckDue,
    /// Data may flow (ESTABLISHED; FIN-WAIT-1 once the FIN has been sent).
    Established,
    /// The connection has not been opened.
    Closed,
    /// The SYN was sent, and its SYN-ACK has not arrived.
    SynSent,
    /// FIN-WAIT-2: all data and the FIN were acknowledged; the peer's FIN has not arrived.
    FinWait2,
    /// All data was acknowledged, and the connection closes without a FIN.
    Complete,
    /// TIME-WAIT: the peer's FIN was acknowledged. A retransmission of it is acknowledged again.
    TimeWait,
}

/// The opening and closing of a connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Connection {
    pub state: ConnectionState,
    /// Whether the peer sends data too and closes with it: this sender does not wait for the peer's
    /// FIN.
    half: bool,
    /// The number of retransmissions of the SYN, of which there are few: the timeout doubles each time.
    syn_retransmissions: u16,
}

impl Connection {
    /// A connection that has not been opened.
    pub const CLOSED: Self = Self {
        state: ConnectionState::Closed,
        half: false,
        syn_retransmissions: 0,
    };

    /// The same connection with a peer that sends data too.
    pub fn with_data_of_peer(self) -> Self {
        Self { half: true, ..self }
    }

    /// Whether it is established or was: with a handshake, whether the SYN-ACK has arrived.
    #[inline]
    pub fn is_established(&self) -> bool {
        use ConnectionState::{Closed, SynDue, SynSent};
        !matches!(self.state, Closed | SynDue | SynSent)
    }

    /// Whether it has no segment to send in this state: neither a control segment nor data.
    #[inline]
    fn rests(&self) -> bool {
        self.state as u8 > ConnectionState::Established as u8
    }

    /// Whether nothing more will be sent, except for the acknowledgement of a retransmitted FIN.
    #[inline]
    pub fn is_closed(&self) -> bool {
        matches!(
            self.state,
            ConnectionState::Complete | ConnectionState::TimeWait
        )
    }

    /// The retransmission timer has expired. Returns whether a SYN was waiting for its answer,
    /// which is then retransmitted.
    pub fn on_timeout(&mut self) -> bool {
        let waiting = self.state == ConnectionState::SynSent;
        if waiting {
            self.state = ConnectionState::SynDue;
            self.syn_retransmissions = self.syn_retransmissions.saturating_add(1);
        }
        waiting
    }

    /// All data was acknowledged, and the FIN if there was one (`fin`). The peer's FIN follows
    /// ours; `peer_fin` if it came with this acknowledgement.
    fn on_all_acked(&mut self, fin: bool, peer_fin: bool) {
        self.state = match (fin && !self.half, peer_fin) {
            (true, true) => ConnectionState::FinAckDue,
            (true, false) => ConnectionState::FinWait2,
            (false, _) => ConnectionState::Complete,
        };
    }
}

impl Sender {
    /// Starts the connection; with a handshake, its SYN is the first segment to
    /// transmit, and it will close with a FIN.
    pub fn open(&mut self, handshake: bool) {
        self.stream.fin = handshake;
        self.connection.state = if handshake {
            ConnectionState::SynDue
        } else {
            ConnectionState::Established
        };
    }

    /// Whether a basic sender has nothing to send for certain: everything was sent and nothing is to be sent again, or
    /// the state of the connection does not allow it. It takes less than to poll, and has no branches, as these things
    /// are hard to predict.
    #[inline]
    pub(in crate::tcp) fn rests(&mut self) -> bool {
        let state = self.connection.state as u8 ^ ConnectionState::Established as u8;
        let others = state | self.phase as u8 | u8::from(self.resend_first);
        let open = self.is_basic() & (others == 0);
        let sent_all = open & (self.board.next() >= self.stream.end());
        self.idle |= sent_all & (self.board.outstanding() == 0);
        sent_all | self.is_basic() & self.connection.rests()
    }

    /// The peer's SYN has opened the connection, which will close with FINs. `agreed` are the flags
    /// of the SYN-ACK.
    pub(in crate::tcp) fn open_passively(&mut self, syn: &Segment, agreed: Flags) {
        self.stream.fin = true;
        self.connection.state = ConnectionState::Established;
        self.peer_window = syn.window;
        self.ts_recent = syn.ts_val;
        if let Some(ecn) = self.optional.ecn_mut() {
            ecn.on_syn_ack(agreed, Ecn::NotEct);
        }
    }

    /// The SYN or SYN-ACK was answered. It was last sent at `sent`, after so many
    /// `retransmissions`; the answer echoes the timestamp `echo`.
    pub(in crate::tcp) fn on_handshake(
        &mut self,
        sent: Time,
        retransmissions: u32,
        echo: u32,
        now: Time,
    ) {
        let sample = match self.params().syn_loss {
            _ if retransmissions == 0 => Some(sent),
            // The echo says which transmission is answered.
            SynLoss::Second if self.params().timestamps => Some(shown_at(echo, now)),
            _ => None,
        };
        if let Some(sent) = sample {
            self.timer.rtt.sample(sent, now, 0, 0);
            if let Some(rack) = self.board.rack_mut() {
                rack.on_round_trip(now - sent);
            }
            self.controller.on_handshake(now - sent, now);
        } else {
            self.timer.rtt.restart_with(Span::from_s(3));
        }
        if self.params().syn_loss.reduces_window(retransmissions) {
            self.controller.set_cwnd(f64::from(self.mss));
        }
        self.update_pacing();
    }

    /// A segment at the beginning or at the end of a connection.
    #[cold]
    pub(super) fn on_control(&mut self, segment: &Segment, now: Time) {
        use ConnectionState::{FinAckDue, FinWait2, SynSent, TimeWait};
        let has = |flags: Flags| segment.flags.contains(flags);
        match self.connection.state {
            SynSent if has(Flags::SYN.with(Flags::ACK)) => self.on_syn_ack(segment, now),
            FinWait2 | TimeWait if has(Flags::FIN) => self.connection.state = FinAckDue,
            _ => {}
        }
    }

    fn on_syn_ack(&mut self, segment: &Segment, now: Time) {
        let no_data = self.stream.size == 0 && !self.stream.closed;
        self.connection.state = if no_data || self.params().bare_ack {
            ConnectionState::AckDue
        } else {
            ConnectionState::Established
        };
        self.peer_window = segment.window;
        self.ts_recent = segment.ts_val;
        if let Some(ecn) = self.optional.ecn_mut() {
            ecn.on_syn_ack(segment.flags, segment.ecn);
        }
        self.timer.at = None;
        self.counters.stalls.count_if(self.progress.advance(now));
        self.on_handshake(
            self.last_sent,
            u32::from(self.connection.syn_retransmissions),
            segment.ts_ecr,
            now,
        );
    }

    /// The application writes `bytes` more. They are sent as the windows allow,
    /// without waiting for a segment to fill (no Nagle algorithm).
    ///
    /// # Panics
    /// When it has closed, or the sender is endless: the caller's bug.
    pub fn write(&mut self, bytes: u64) {
        self.stream.write(bytes);
    }

    /// The application will write no more. The FIN goes with the last unsent data, or alone if
    /// there is none. With `fin_beyond_window` it also goes alone if all data can be sent now. The data of an endless sender ends with the last byte sent: its FIN goes
    /// alone, and only lost data is still retransmitted.
    pub fn close(&mut self) {
        self.stream.closed = true;
        self.stream.fresh = self.params().fin_beyond_window;
        if self.stream.size == u64::MAX {
            self.end_stream();
        }
        let all_acked = self.board.una() >= self.stream.size;
        if all_acked && !self.stream.fin && self.connection.state == ConnectionState::Established {
            self.connection.state = ConnectionState::Complete; // no acknowledgement will say so
        }
    }

    /// Ends the stream after the last byte sent, which may be a window probe's.
    #[cold]
    fn end_stream(&mut self) {
        self.stream.size = self.board.next();
        match self.optional.persist() {
            Some(persist) if persist.has_probed() => self.stream.size += 1,
            Some(_) => {
                self.optional.drop_persist();
                self.timer.at = None;
            }
            None => {}
        }
    }

    /// Whether an acknowledgement up to `ack` acknowledges everything, the FIN included. All timers are then stopped.
    /// `peer_fin` says whether it carries the peer's FIN.
    #[inline]
    pub(super) fn finish(&mut self, ack: u64, peer_fin: bool) -> bool {
        let all = self.stream.is_acked_by(ack);
        if all {
            self.end(peer_fin);
        }
        all
    }

    /// Everything is acknowledged.
    #[inline(never)] // it happens once
    fn end(&mut self, peer_fin: bool) {
        self.connection.on_all_acked(self.stream.fin, peer_fin);
        self.timer.at = None;
        self.release();
        self.stop_rack_timers();
    }

    /// The segments that open and close a connection.
    #[cold]
    pub(super) fn send_control(&mut self, now: Time) -> Option<Segment> {
        match self.connection.state {
            ConnectionState::SynDue => Some(self.send_syn(now)),
            ConnectionState::AckDue | ConnectionState::FinAckDue => Some(self.send_ack(now)),
            _ => None,
        }
    }

    fn send_syn(&mut self, now: Time) -> Segment {
        self.connection.state = ConnectionState::SynSent;
        if self.connection.syn_retransmissions == 0 {
            self.progress.begin(now);
        }
        self.last_sent = now;
        self.timer.start(now);
        let ts_val = if self.params().timestamps {
            timestamp(now)
        } else {
            0
        };
        if self.connection.syn_retransmissions > 0
            && self.params().ecn_fallback
            && let Some(ecn) = self.optional.ecn_mut()
        {
            ecn.give_up();
        }
        Segment {
            flags: Flags::SYN.with(self.optional.ecn().syn_flags()),
            ts_val,
            window: self.peer_window,
            ..Segment::default()
        }
    }

    /// An acknowledgement without data, of the SYN-ACK or of the peer's FIN.
    #[cold]
    fn send_ack(&mut self, now: Time) -> Segment {
        let closing = self.connection.state == ConnectionState::FinAckDue;
        self.connection.state = if closing {
            ConnectionState::TimeWait
        } else {
            ConnectionState::Established
        };
        let bare = self.bare_segment(now);
        // With AccECN the acknowledgement of the SYN-ACK says how that arrived (RFC 9768, section
        // 3.2.2.1).
        let flags = self.optional.ecn().ack_flags(!closing);
        Segment {
            seq: self.board.next(),
            ack: u64::from(closing),
            flags: bare.flags.with(flags),
            ..bare
        }
    }
}
