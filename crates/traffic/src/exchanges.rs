//! The exchanges of one connection, as its two applications see them: the client asks, the server
//! reads requests, writes responses and closes.
//!
//! They see byte streams and know neither segments nor sockets.

use std::collections::VecDeque;

use redtail_core::Time;
use redtail_transport::Endpoint;

use crate::application::Exchange;

/// An exchange that is not complete.
#[derive(Clone, Copy, Debug)]
struct Pending {
    /// The number of the request in the order of requests, from 1.
    number: u32,
    exchange: Exchange,
    asked: Time,
    /// It was the first on its connection, and waited for it to be set up.
    first: bool,
    /// The end of its request in the client's stream.
    request_end: u64,
    /// When the server has its response ready; `None` before all of the request has arrived.
    ready: Option<Time>,
    /// Bytes of the response not yet written.
    unwritten: u64,
    /// The end of its response in the server's stream, once all of it is written.
    response_end: Option<u64>,
}

/// An exchange that was requested, as who measures response times sees it.
#[derive(Clone, Copy, Debug)]
pub struct Done {
    /// The exchange.
    pub exchange: Exchange,
    /// When it was requested.
    pub asked: Time,
    /// It was the first on its connection, and waited for it to be set up.
    pub first: bool,
}

/// The order in which a server writes several responses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// One after the other, in the order of the requests (RFC 9112, section 9.3.2).
    InTurn,
    /// Frames of all ready responses in rotation (RFC 9113, section 5).
    Interleaved,
}

/// Payload of the largest frame of an interleaved response: the initial value of
/// SETTINGS_MAX_FRAME_SIZE (RFC 9113, section 6.5.2).
pub const FRAME: u64 = 16_384;

/// The unsent bytes up to which a server that interleaves writes: two frames.
pub const WRITTEN_AHEAD: u64 = 2 * FRAME;

/// The server's end of a connection, as its program writes to it.
pub trait ServerStream {
    /// Writes `bytes` bytes.
    fn write(&mut self, bytes: u64);
    /// Bytes that were written and have not been sent.
    fn unsent(&self) -> u64;
    /// Closes it; what was written is still sent.
    fn close(&mut self);
}

impl ServerStream for Endpoint {
    #[inline]
    fn write(&mut self, bytes: u64) {
        Endpoint::write(self, bytes);
    }
    #[inline]
    fn unsent(&self) -> u64 {
        Endpoint::unsent(self)
    }
    fn close(&mut self) {
        Endpoint::close(self);
    }
}

/// The exchanges of one connection.
///
/// The fields are in the order in which they are stored: first what every segment of the connection asks for.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Exchanges {
    /// The least end, in the server's stream, of a response that is written and not complete; `u64::MAX` if there is
    /// none.
    next_done: u64,
    /// When the next response will be ready; [`Time::MAX`] if none will.
    next_ready: Time,
    /// Bytes of the client's stream that the server's program has processed.
    seen: u64,
    order: Order,
    /// Whether the server's program has the connection.
    accepted: bool,
    /// Whether the server's program may have work other than new data of the client (`seen`) and
    /// ready responses (`next_ready`).
    has_work: bool,
    /// Whether the server has closed.
    closed: bool,
    /// Whether the client has closed.
    client_closed: bool,
    /// Whether the client has sent its last request.
    last_asked: bool,
    /// Exchanges begun.
    begun: u32,
    /// Number of the exchange to which the latest frame belongs.
    turn: u32,
    pending: VecDeque<Pending>,
    /// Bytes written by the client and by the server.
    asked_bytes: u64,
    written_bytes: u64,
}

impl Exchanges {
    /// No exchanges. `accepted` is whether the server's program has the connection already.
    pub fn new(order: Order, accepted: bool) -> Self {
        Self {
            order,
            pending: VecDeque::new(),
            asked_bytes: 0,
            written_bytes: 0,
            begun: 0,
            accepted,
            turn: 0,
            closed: false,
            client_closed: false,
            last_asked: false,
            has_work: false,
            seen: 0,
            next_ready: Time::MAX,
            next_done: u64::MAX,
        }
    }

    /// Becomes as `fresh`, which has no exchanges and has begun none. Keeps memory.
    pub fn renew(&mut self, fresh: &Self) {
        let mut pending = std::mem::take(&mut self.pending);
        pending.clear();
        *self = Self {
            pending,
            ..Self::new(fresh.order, fresh.accepted)
        };
    }

    /// Whether the server's program has the connection.
    #[inline]
    pub fn is_accepted(&self) -> bool {
        self.accepted
    }

    /// The server's program has the connection from now on.
    pub fn accept(&mut self) {
        self.accepted = true;
        self.has_work = true;
    }

    /// Whether the server sends the first response unasked.
    pub fn begins_unasked(&self) -> bool {
        (self.pending.front()).is_some_and(|it| it.exchange.request == 0)
    }

    /// The client asks for `exchange`; it writes as many bytes as the request has. `established` is
    /// whether its end of the connection is.
    pub fn ask(&mut self, exchange: Exchange, established: bool, now: Time) {
        debug_assert!(!self.last_asked, "asked after the last exchange");
        // A server's program that does not have the connection yet will look at all exchanges when it has.
        self.has_work |= self.accepted;
        self.asked_bytes += exchange.request;
        self.last_asked = exchange.last;
        self.begun += 1;
        self.pending.push_back(Pending {
            number: self.begun,
            exchange,
            asked: now,
            first: self.begun == 1 && !established,
            request_end: self.asked_bytes,
            ready: None,
            unwritten: exchange.response,
            response_end: None,
        });
    }

    /// The client asks for nothing more. Requests already sent are still answered.
    pub fn close(&mut self) {
        self.last_asked = true;
        self.has_work = true;
    }

    /// Runs the server's program, which has read `delivered` bytes of requests: it writes responses
    /// to `server` and closes it.
    #[inline]
    pub fn serve(&mut self, delivered: u64, server: &mut impl ServerStream, now: Time) {
        if self.has_work | (self.next_ready <= now) | (delivered > self.seen) {
            self.work(delivered, server, now);
        }
    }

    #[inline(never)] // most segments that a server receives are acknowledgements
    fn work(&mut self, delivered: u64, server: &mut impl ServerStream, now: Time) {
        self.has_work = false;
        self.seen = delivered;
        let mut in_turn = self.order == Order::InTurn;
        for pending in &mut self.pending {
            if self.accepted && pending.request_end <= delivered {
                let service = pending.exchange.service;
                pending.ready.get_or_insert_with(|| now + service);
            }
            if in_turn && pending.response_end.is_none() {
                in_turn = pending.ready.is_some_and(|at| at <= now);
                if in_turn {
                    if pending.unwritten > 0 {
                        server.write(pending.unwritten);
                        self.written_bytes += pending.unwritten;
                        pending.unwritten = 0;
                    }
                    pending.response_end = Some(self.written_bytes);
                    self.next_done = self.next_done.min(self.written_bytes);
                }
            }
        }
        if self.order == Order::Interleaved {
            self.write_frames(server, now);
        }
        let (mut next_ready, mut written) = (Time::MAX, true);
        for pending in &self.pending {
            written &= pending.response_end.is_some();
            if let Some(at) = pending.ready.filter(|at| *at > now) {
                next_ready = next_ready.min(at);
            }
        }
        self.next_ready = next_ready;
        // Frames wait for acknowledgements, which make room for them.
        self.has_work = !written && self.order == Order::Interleaved;
        if self.last_asked && written && !self.closed {
            self.closed = true;
            server.close();
        }
    }

    /// Writes frames of the ready responses in rotation, until `WRITTEN_AHEAD` bytes are unsent.
    fn write_frames(&mut self, server: &mut impl ServerStream, now: Time) {
        while server.unsent() < WRITTEN_AHEAD
            && let Some(index) = self.next_frame(now)
        {
            let pending = &mut self.pending[index];
            let frame = pending.unwritten.min(FRAME);
            server.write(frame);
            self.written_bytes += frame;
            self.turn = pending.number;
            pending.unwritten -= frame;
            if pending.unwritten == 0 {
                pending.response_end = Some(self.written_bytes);
                self.next_done = self.next_done.min(self.written_bytes);
            }
        }
    }

    /// The index of the exchange whose response the next frame belongs to, if one is ready.
    fn next_frame(&self, now: Time) -> Option<usize> {
        let is_ready = |it: &Pending| it.unwritten > 0 && it.ready.is_some_and(|at| at <= now);
        let after = self.pending.partition_point(|it| it.number <= self.turn);
        let mut order = (after..self.pending.len()).chain(0..after);
        order.find(|&index| is_ready(&self.pending[index]))
    }

    /// The server writes more when written data has been sent, so that the window limits sending
    /// and not the server.
    #[inline]
    pub fn write_ahead(&mut self, server: &mut impl ServerStream, now: Time) {
        if self.order == Order::Interleaved {
            self.write_frames(server, now);
        }
    }

    /// Whether a response is among the `delivered` bytes that the client has read.
    #[inline]
    pub fn has_done(&self, delivered: u64) -> bool {
        delivered >= self.next_done
    }

    /// Removes and returns the next exchange whose response is among the `delivered` bytes that the
    /// client has read.
    pub fn take_done(&mut self, delivered: u64) -> Option<Done> {
        if !self.has_done(delivered) {
            return None;
        }
        let is_over = |it: &Pending| it.response_end.is_some_and(|end| end <= delivered);
        let over = match self.order {
            Order::InTurn => self.pending.pop_front(),
            Order::Interleaved => {
                let over = self.pending.iter().position(is_over)?;
                self.pending.remove(over)
            }
        }?;
        let ends = self.pending.iter().filter_map(|it| it.response_end);
        self.next_done = ends.min().unwrap_or(u64::MAX);
        Some(Done {
            exchange: over.exchange,
            asked: over.asked,
            first: over.first,
        })
    }

    /// Whether the client closes now: all responses have arrived, it has sent its last request, and
    /// it has not closed before.
    pub fn client_closes(&mut self) -> bool {
        let closes = self.last_asked && self.pending.is_empty() && !self.client_closed;
        self.client_closed |= closes;
        closes
    }

    /// When the next response is ready.
    #[inline]
    pub fn next_ready(&self, now: Time) -> Option<Time> {
        let at = self.next_ready;
        (at > now && at < Time::MAX).then_some(at)
    }

    /// A time that the next response is not ready before.
    #[inline]
    pub fn quiet_until(&self) -> Time {
        self.next_ready
    }

    /// The exchanges that are not complete.
    pub fn unfinished(&self) -> impl Iterator<Item = Done> + '_ {
        self.pending.iter().map(|it| Done {
            exchange: it.exchange,
            asked: it.asked,
            first: it.first,
        })
    }
}
