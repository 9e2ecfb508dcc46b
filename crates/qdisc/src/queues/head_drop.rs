//! Head drop: first-in first-out with a limit; for an arrival that does not fit, the oldest packets are
//! dropped.
//!
//! Source: T. V. Lakshman, A. Neidhardt and T. J. Ott, "The Drop from Front Strategy in
//! TCP and in TCP over ATM", IEEE INFOCOM 1996; RFC 7567 (BCP 197), section 2.
//!
//! An arrival that does not fit is admitted, and packets are dropped from the head until it fits: senders
//! learn of the loss earlier by the queueing delay. An arrival that would not fit an empty queue is
//! dropped.

use redtail_core::{Packet, ParamError, Time, params};

use crate::fifo::Fifo;
use crate::{Backlog, DropReason, Limit, QueueContext, QueueDiscipline, QueueKind, Sink};

params! {
    /// First-in first-out; for an arrival that does not fit, the oldest packets are dropped.
    pub struct HeadDropParams {
        /// Limit on the waiting packets: in packets, in bytes, in time at the link's rate, or a list of these.
        limit: Limit;
    }
}

impl QueueKind for HeadDropParams {
    type Queue<P: Packet> = HeadDrop<P>;

    fn example() -> &'static str {
        r#"limit = "100 packets""#
    }

    fn check(&self) -> Result<(), ParamError> {
        self.limit.check()
    }

    fn limit(&self) -> Option<Limit> {
        Some(self.limit)
    }

    fn build<P: Packet>(&self, context: QueueContext) -> HeadDrop<P> {
        HeadDrop {
            limit: self.limit.at(context.rate),
            fifo: Fifo::new(),
        }
    }
}

/// The running queue.
#[derive(Debug)]
pub struct HeadDrop<P> {
    limit: Limit,
    fifo: Fifo<P>,
}

impl<P: Packet> QueueDiscipline<P> for HeadDrop<P> {
    #[inline]
    fn enqueue(&mut self, packet: P, now: Time, sink: &mut impl Sink<P>) {
        let size = packet.size();
        if !self.limit.admits(Backlog::default(), size) {
            sink.dropped(packet, DropReason::Limit, now);
            return;
        }
        while !self.limit.admits(self.fifo.backlog(), size) {
            let oldest = self.fifo.pop().expect("it would fit an empty queue");
            sink.dropped(oldest, DropReason::Limit, now);
        }
        self.fifo.push(packet, now);
    }

    #[inline]
    fn dequeue(&mut self, _now: Time, _sink: &mut impl Sink<P>) -> Option<P> {
        self.fifo.pop()
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        self.fifo.backlog()
    }
}
