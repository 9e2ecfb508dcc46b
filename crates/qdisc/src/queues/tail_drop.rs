//! Tail drop: first-in first-out with a limit.
//!
//! An arrival that would exceed the limit is dropped. Source: the default of
//! RFC 7567 (BCP 197), section 2, there called "tail drop".

use redtail_core::{Packet, ParamError, Time, params};

use crate::fifo::Fifo;
use crate::{Backlog, DropReason, Limit, QueueContext, QueueDiscipline, QueueKind, Sink};

params! {
    /// First-in first-out; an arrival that does not fit is dropped.
    pub struct TailDropParams {
        /// Limit on the waiting packets: in packets, in bytes, in time at the link's rate, or a list of these.
        limit: Limit;
    }
}

impl QueueKind for TailDropParams {
    type Queue<P: Packet> = TailDrop<P>;

    fn example() -> &'static str {
        r#"limit = "100 packets""#
    }

    fn check(&self) -> Result<(), ParamError> {
        self.limit.check()
    }

    fn limit(&self) -> Option<Limit> {
        Some(self.limit)
    }

    fn build<P: Packet>(&self, context: QueueContext) -> TailDrop<P> {
        TailDrop {
            limit: self.limit.at(context.rate),
            fifo: Fifo::new(),
        }
    }
}

/// The running queue.
#[derive(Debug)]
pub struct TailDrop<P> {
    limit: Limit,
    fifo: Fifo<P>,
}

impl<P: Packet> QueueDiscipline<P> for TailDrop<P> {
    #[inline]
    fn enqueue(&mut self, packet: P, now: Time, sink: &mut impl Sink<P>) {
        if self.limit.admits(self.fifo.backlog(), packet.size()) {
            self.fifo.push(packet, now);
        } else {
            sink.dropped(packet, DropReason::Limit, now);
        }
    }

    #[inline]
    fn dequeue(&mut self, _now: Time, _sink: &mut impl Sink<P>) -> Option<P> {
        self.fifo.pop()
    }

    fn front(&self) -> Option<&P> {
        self.fifo.front()
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        self.fifo.backlog()
    }
}
