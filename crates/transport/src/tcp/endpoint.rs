//! One side of a connection that carries data both ways: a sender of its own stream and a receiver
//! of the peer's. They share one stream of segments.
//!
//! Source: RFC 9293, sections 3.5 (the three-way handshake), 3.6 (each direction closes with a
//! FIN of its own) and 3.10 (segments acknowledge what has come the other way); RFC 5681, section 2
//! (a segment with data is no duplicate acknowledgement).
//!
//! The two halves do not know each other; this module joins them. Each data segment carries the
//! acknowledgement, so that none is delayed or sent separately. With Linux's acknowledgements, one that is
//! due at once leaves before the application has answered: see `on_segment`. The sender of the passive
//! side gets from the handshake what an active sender gets from the SYN-ACK.

use redtail_core::{Stream, Time, earlier};

use super::receiver::Receiver;
use super::sender::{Sender, SenderCounters};
use crate::params::TcpParams;
use crate::plugin::Plugins;
use crate::segment::{Flags, Segment};

/// Which side opens the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// The endpoint sends the SYN.
    Active,
    /// It answers the SYN. `since` is when the SYN-ACK was last sent, until it is acknowledged;
    /// `repeated` counts its retransmissions.
    Passive { since: Option<Time>, repeated: u32 },
}

/// What an endpoint has to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    /// Nothing.
    Nothing,
    /// A segment without data, of the receiver.
    NoData,
    /// Perhaps any segment.
    Any,
}

/// What [`Endpoint::take_data`] did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// Nothing: the segment is for [`Endpoint::on_segment`].
    Not,
    /// It processed the segment, and the acknowledgement is delayed.
    Unanswered,
    /// It processed the segment, and [`Endpoint::take_acknowledgement`] gives all that there is to send.
    Answered,
}

/// One side of a connection.
///
/// The fields are in the order in which they are stored: the receiver stands beside what most segments use of the sender,
/// so that data which is only acknowledged touches few lines of the cache.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub struct Endpoint {
    role: Role,
    /// An acknowledgement leaves before what the application does now (Linux).
    acknowledges_first: bool,
    receiver: Receiver,
    sender: Sender,
}

impl Endpoint {
    /// The side that opens the connection. It does nothing until [`open`](Self::open).
    /// `params` must have passed their check.
    pub fn client(params: &TcpParams) -> Self {
        Self {
            sender: Sender::half(params),
            receiver: Receiver::half(params),
            role: Role::Active,
            acknowledges_first: false,
        }
    }

    /// The side that waits for the other one. It is open from the start if the connection has no
    /// handshake.
    pub fn server(params: &TcpParams) -> Self {
        let mut server = Self {
            role: Role::Passive {
                since: None,
                repeated: 0,
            },
            ..Self::client(params)
        };
        if !params.handshake {
            server.sender.open(false);
        }
        server
    }

    /// Takes the controller that a user's class names from `plugins`.
    pub fn take_controller_from(&mut self, plugins: &Plugins) {
        self.sender.take_controller_from(plugins);
    }

    /// Takes random numbers from `stream`. Only model-based controllers draw.
    pub fn draw_from(&mut self, stream: Stream) {
        self.sender.draw_from(stream);
    }

    /// Opens the connection, with a handshake if the parameters ask for one.
    pub fn open(&mut self, params: &TcpParams) {
        self.sender.open(params.handshake);
    }

    /// It takes no short path from now on, so that tests can compare one that does with it.
    #[doc(hidden)]
    pub fn forbid_short_paths(&mut self) {
        self.sender.forbid_short_paths();
        self.receiver.forbid_short_paths();
    }

    /// Becomes a copy of `fresh`, an endpoint that was not opened. Keeps memory.
    pub fn renew(&mut self, fresh: &Self) {
        copy_fields!(self, fresh; sender, receiver; ; role, acknowledges_first);
    }

    /// The application writes `bytes` more.
    ///
    /// # Panics
    /// When it has closed: the caller's bug.
    pub fn write(&mut self, bytes: u64) {
        self.sender.write(bytes);
    }

    /// The application will write no more: a FIN goes with or after the last data.
    pub fn close(&mut self) {
        self.sender.close();
    }

    /// Bytes written by the application that have never been sent.
    #[inline]
    pub fn unsent(&self) -> u64 {
        self.sender.unsent()
    }

    /// Bytes of the peer's stream received in order, for the application to read.
    #[inline]
    pub fn delivered(&self) -> u64 {
        self.receiver.delivered()
    }

    /// Distinct payload bytes of the peer received, in order or not.
    pub fn received(&self) -> u64 {
        self.receiver.received()
    }

    /// Whether this side has completed the handshake.
    #[inline]
    pub fn is_established(&self) -> bool {
        self.sender.is_established()
    }

    /// Whether the application has closed and the peer acknowledged everything, the FIN included.
    #[inline]
    pub fn is_finished(&self) -> bool {
        self.sender.is_closed()
    }

    /// The counters of its sender so far.
    pub fn counters(&self) -> SenderCounters {
        self.sender.counters()
    }

    /// The measurement begins.
    pub fn start_measuring(&mut self) {
        self.sender.start_measuring();
    }

    /// The sender half.
    pub fn sender(&self) -> &Sender {
        &self.sender
    }

    /// When [`on_wakeup`](Self::on_wakeup) is due.
    #[inline(never)] // one copy of it
    pub fn next_wakeup(&self) -> Option<Time> {
        earlier(self.sender.next_wakeup(), self.receiver.next_wakeup())
    }

    /// A time that [`next_wakeup`](Self::next_wakeup) is not before. It is mostly a late one, and takes less to find.
    #[inline]
    pub fn quiet_until(&self) -> Time {
        self.sender.quiet_until().min(self.receiver.quiet_until())
    }

    /// Handles the timers that are due.
    pub fn on_wakeup(&mut self, now: Time) {
        self.sender.on_wakeup(now);
        self.receiver.on_wakeup(now);
    }

    /// A segment from the peer.
    #[inline]
    pub fn on_segment(&mut self, segment: &Segment, now: Time) {
        if segment.flags.contains(Flags::SYN) {
            self.on_syn(segment, now);
            return;
        }
        if let Role::Passive { since, repeated } = &mut self.role
            && let Some(sent) = since.take()
        {
            let repeated = *repeated;
            self.sender
                .on_handshake(sent, repeated, segment.ts_ecr, now);
        }
        self.receiver.on_segment(segment, now);
        self.sender.on_segment(segment, now);
        if self.receiver.is_adaptive() {
            self.adapt(segment);
        }
    }

    /// Processes a segment that brings data in order and nothing else to an endpoint that has opened the connection, has
    /// nothing outstanding and nothing to send. With any other segment it does nothing.
    #[inline]
    pub fn take_data(&mut self, segment: &Segment, now: Time) -> Taken {
        let takes = self.role == Role::Active
            && self.receiver.takes_plainly(segment)
            && self.sender.rests_after(segment);
        if !takes {
            return Taken::Not;
        }
        self.sender.note_window(segment);
        match self.receiver.take_plainly(segment, now) {
            true => Taken::Answered,
            false => Taken::Unanswered,
        }
    }

    /// When the acknowledgement of data that was taken [unanswered](Taken::Unanswered) is due.
    #[inline]
    pub fn acknowledges_at(&self) -> Time {
        self.receiver.acknowledges_at()
    }

    /// The acknowledgement of data that was taken [answered](Taken::Answered), which is then no longer due.
    #[inline]
    pub fn take_acknowledgement(&mut self) -> Segment {
        Segment {
            seq: self.sender.next_seq(),
            ..self.receiver.take_plain_ack().segment()
        }
    }

    /// Tells the adaptive policy of acknowledgements what it needs to know after a segment.
    #[inline(never)] // so that the function above is short
    fn adapt(&mut self, segment: &Segment) {
        self.receiver.on_round_trip(|| self.sender.round_trip());
        // Linux acknowledges when the segment arrives, or when it is read: in either case before the
        // application writes. Only data that waited to be sent can carry the acknowledgement
        // (tcp_rcv_established). The application may answer a FIN first.
        self.acknowledges_first = self.receiver.acknowledges_at_once()
            && self.sender.unsent() == 0
            && !segment.flags.contains(Flags::FIN);
    }

    #[cold]
    fn on_syn(&mut self, segment: &Segment, now: Time) {
        match &mut self.role {
            Role::Active => {
                self.sender.on_segment(segment, now);
                self.receiver.on_syn_ack(segment, now);
            }
            // A reordered SYN that arrives after the handshake is old: it is acknowledged and
            // otherwise dropped (RFC 5961, section 4.2).
            Role::Passive { since: None, .. } if self.sender.is_established() => {
                self.receiver.acknowledge_again();
            }
            Role::Passive { since, repeated } => {
                *repeated += u32::from(since.is_some());
                self.receiver.on_syn(segment);
                if !self.sender.is_established() {
                    let agreed = self.receiver.syn_ack_flags();
                    self.sender.open_passively(segment, agreed);
                }
            }
        }
    }

    /// What there is to send now. To ask this takes less than to look for a segment in vain, and has no branches.
    #[inline]
    pub fn due(&mut self) -> Due {
        let (rests, acknowledges) = (self.sender.rests(), self.receiver.has_due());
        match (rests, acknowledges) {
            (true, false) => Due::Nothing,
            (true, true) => Due::NoData,
            (false, _) => Due::Any,
        }
    }

    /// The next segment to put on the wire now, if any; call until `None`.
    pub fn poll_transmit(&mut self, now: Time) -> Option<Segment> {
        let mut segment = Segment::default();
        let due = self.due();
        self.write_next(due, now, &mut segment).then_some(segment)
    }

    /// Writes the next segment to put on the wire now to `to`, when [`due`](Self::due) is `due`, and returns whether there
    /// is one; call until there is none. Without one, `to` may hold anything.
    #[inline]
    pub fn write_next(&mut self, due: Due, now: Time, to: &mut Segment) -> bool {
        if self.receiver.has_other_due() && self.write_without_data(now, to) {
            return true;
        }
        let acknowledges_first = std::mem::take(&mut self.acknowledges_first);
        if due != Due::Any {
            return self.write_without_data(now, to);
        }
        if acknowledges_first && self.write_without_data(now, to) {
            return true;
        }
        if !self.sender.write_next(now, to) {
            return self.receiver.has_due() && self.write_without_data(now, to);
        }
        if !to.flags.contains(Flags::SYN) {
            self.receiver.piggyback(to, now);
        }
        true
    }

    /// Writes the segment that the receiver has to send, which has no data, to `to`. Returns whether there is one.
    #[inline(never)]
    fn write_without_data(&mut self, now: Time, to: &mut Segment) -> bool {
        if !self.receiver.write_next(now, to) {
            return false;
        }
        if to.flags.contains(Flags::SYN) {
            if let Role::Passive { since, .. } = &mut self.role {
                *since = Some(now);
            }
        } else {
            to.seq = self.sender.next_seq();
        }
        true
    }
}
