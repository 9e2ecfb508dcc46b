//! Opening and closing a connection, and the application's writing.
//!
//! Source: RFC 9293, sections 3.5 (the handshake) and 3.6 (closing).

use redtail_core::{Ecn, Span, Time};

use super::Sender;
use crate::segment::{Flags, Segment};
use crate::tcp::rto::SynLoss;
use crate::tcp::timestamps::{shown_at, timestamp};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Connection {
    /// Not started.
    Closed,
    /// The SYN is due, for the first time or as a retransmission.
    SynDue,
    /// Waiting for the SYN-ACK.
    SynSent,
    /// The acknowledgement of the SYN-ACK is due, without data.
    AckDue,
    /// Data may flow (ESTABLISHED; FIN-WAIT-1 once the FIN has been sent).
    Established,
    /// All data was acknowledged, and the connection closes without a FIN.
    Complete,
    /// FIN-WAIT-2: all data and the FIN were acknowledged; the peer's FIN has not arrived.
    FinWait2,
    /// The acknowledgement of the peer's FIN is due.
    FinAckDue,
    /// TIME-WAIT: the peer's FIN was acknowledged. A retransmission of it is acknowledged again.
    TimeWait,
}

impl Sender {
    /// Starts the connection; with a handshake, its SYN is the first segment to
    /// transmit, and it will close with a FIN.
    pub fn open(&mut self, handshake: bool) {
        self.fin = handshake;
        self.connection = if handshake {
            Connection::SynDue
        } else {
            Connection::Established
        };
    }

    /// The peer's SYN has opened the connection, which will close with FINs. `agreed` are the flags
    /// of the SYN-ACK.
    pub(in crate::tcp) fn open_passively(&mut self, syn: &Segment, agreed: Flags) {
        self.fin = true;
        self.connection = Connection::Established;
        self.peer_window = syn.window;
        self.ts_recent = syn.ts_val;
        self.ecn.on_syn_ack(agreed, Ecn::NotEct);
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
        let sample = match self.syn_loss {
            _ if retransmissions == 0 => Some(sent),
            // The echo says which transmission is answered.
            SynLoss::Second if self.timestamps => Some(shown_at(echo, now)),
            _ => None,
        };
        if let Some(sent) = sample {
            self.rtt.sample(sent, now, 0, 0);
            self.controller.on_handshake(now - sent, now);
        } else {
            self.rtt.restart_with(Span::from_s(3));
        }
        if self.syn_loss.reduces_window(retransmissions) {
            self.controller.set_cwnd(f64::from(self.mss));
        }
        self.update_pacing();
    }

    /// A segment at the beginning or at the end of a connection.
    #[cold]
    pub(super) fn on_control(&mut self, segment: &Segment, now: Time) {
        use Connection::{FinAckDue, FinWait2, SynSent, TimeWait};
        let has = |flags: Flags| segment.flags.contains(flags);
        match self.connection {
            SynSent if has(Flags::SYN.with(Flags::ACK)) => self.on_syn_ack(segment, now),
            FinWait2 | TimeWait if has(Flags::FIN) => self.connection = FinAckDue,
            _ => {}
        }
    }

    fn on_syn_ack(&mut self, segment: &Segment, now: Time) {
        self.connection = if self.size == 0 && !self.closed {
            Connection::AckDue
        } else {
            Connection::Established
        };
        self.peer_window = segment.window;
        self.ts_recent = segment.ts_val;
        self.ecn.on_syn_ack(segment.flags, segment.ecn);
        self.rto_at = None;
        self.counters.stalls += u64::from(self.progress.advance(now));
        self.on_handshake(
            self.last_sent,
            self.syn_retransmissions,
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
        assert!(!self.closed, "written after closing");
        self.size = self.size.checked_add(bytes).expect("a stream with an end");
    }

    /// The application will write no more. The FIN goes with the last unsent data, or alone if
    /// there is none. The data of an endless sender ends with the last byte sent: its FIN goes
    /// alone, and only lost data is still retransmitted.
    pub fn close(&mut self) {
        self.closed = true;
        if self.size == u64::MAX {
            self.end_stream();
        }
        let all_acked = self.board.una() >= self.size;
        if all_acked && !self.fin && self.connection == Connection::Established {
            self.connection = Connection::Complete; // no acknowledgement will say so
        }
    }

    /// Ends the stream after the last byte sent, which may be a window probe's.
    #[cold]
    fn end_stream(&mut self) {
        self.size = self.board.next();
        match &self.persist {
            Some(persist) if persist.probes > 0 => self.size += 1,
            Some(_) => {
                self.persist = None;
                self.rto_at = None;
            }
            None => {}
        }
    }

    /// Whether everything is acknowledged, the FIN included. All timers are then stopped.
    pub(super) fn finish(&mut self, segment: &Segment) -> bool {
        let all = self.closed && segment.ack == self.size + u64::from(self.fin);
        if all {
            // The peer's FIN follows ours; it may come with this acknowledgement.
            let awaits_fin = self.fin && !self.half;
            self.connection = match (awaits_fin, segment.flags.contains(Flags::FIN)) {
                (true, true) => Connection::FinAckDue,
                (true, false) => Connection::FinWait2,
                (false, _) => Connection::Complete,
            };
            self.rto_at = None;
            self.release();
            self.stop_rack_timers();
        }
        all
    }

    /// The segments that open and close a connection.
    #[cold]
    pub(super) fn send_control(&mut self, now: Time) -> Option<Segment> {
        match self.connection {
            Connection::SynDue => Some(self.send_syn(now)),
            Connection::AckDue | Connection::FinAckDue => Some(self.send_ack(now)),
            _ => None,
        }
    }

    fn send_syn(&mut self, now: Time) -> Segment {
        self.connection = Connection::SynSent;
        if self.syn_retransmissions == 0 {
            self.progress.begin(now);
        }
        self.last_sent = now;
        self.rto_at = Some(self.wheel.expiry(now, self.rtt.rto()));
        let ts_val = if self.timestamps { timestamp(now) } else { 0 };
        if self.syn_retransmissions > 0 && self.ecn_fallback {
            self.ecn.give_up();
        }
        Segment {
            flags: Flags::SYN.with(self.ecn.syn_flags()),
            ts_val,
            window: self.peer_window,
            ..Segment::default()
        }
    }

    /// An acknowledgement without data, of the SYN-ACK or of the peer's FIN.
    #[cold]
    fn send_ack(&mut self, now: Time) -> Segment {
        let closing = self.connection == Connection::FinAckDue;
        self.connection = if closing {
            Connection::TimeWait
        } else {
            Connection::Established
        };
        let bare = self.bare_segment(now);
        // With AccECN the acknowledgement of the SYN-ACK says how that arrived (RFC 9768, section
        // 3.2.2.1).
        let flags = self.ecn.ack_flags(!closing);
        Segment {
            seq: self.board.next(),
            ack: u64::from(closing),
            flags: bare.flags.with(flags),
            ..bare
        }
    }
}
