//! SFQ: flows are hashed into queues, which are served in turn.
//!
//! Source: P. E. McKenney, "Stochastic Fairness Queueing", INFOCOM 1990; service in bytes
//! (Deficit Round Robin), `depth`, dropping from the longest queue and the defaults as in
//! Linux 6.1, `sch_sfq`. RED within a queue (`sfq` with `min` and `max` there) is left out.
//!
//! - An arrival whose queue holds `depth` packets is dropped; with `head_drop`, the oldest
//!   packet of that queue is dropped instead.
//! - For an arrival that makes the backlog exceed the limit, the latest packet (with `head_drop`
//!   the oldest) of the longest queue, in packets, is dropped. Of equally long queues it is the one
//!   whose length changed last; if no queue holds more than one packet, it is the one whose turn is
//!   next (`sfq_drop`, `sfq_link`).
//! - A queue that gets its first packet is served after all others, with one quantum.
//! - Every `perturb`, a new hash is drawn and all waiting packets are distributed again, so that
//!   flows that share a queue do not share it permanently. Packets of a flow keep their order.

use std::collections::VecDeque;
use std::sync::Arc;

use super::fq_codel::{check_queues, warn_of_queues};
use crate::figures::{BY_FLOW, BY_FLOW_WITH_LIMIT, FLOWS_ACTIVE, OVERLOAD_DROPS};
use crate::fq::{FlowHash, FlowQueues, Measure};
use crate::signal::Ticks;
use crate::{
    Backlog, DropReason, FlowTable, Limit, LinkFacts, QueueContext, QueueDiscipline, QueueKind,
    Report, Sink,
};
use redtail_core::{
    Bytes, Metric, Packet, ParamError, ParamWarning, Span, Stream, Time, metrics, params,
};

params! {
    /// Stochastic Fairness Queueing (McKenney 1990): flows are hashed into queues, which are served in
    /// turn.
    pub struct SfqParams {
        /// Limit on the waiting packets of all queues together: in packets, in bytes, in time at the link's rate, or a list of these.
        limit: Limit = Limit::packets(127), "Linux 6.1, `sch_sfq` (`SFQ_MAX_DEPTH`).";
        /// Largest number of packets in one queue.
        depth: u32 = 127, "Linux 6.1, `sch_sfq` (`SFQ_MAX_DEPTH`).";
        /// Number of queues that flows are hashed into.
        #[schemars(range(min = 1, max = 65_536))]
        divisor: u32 = 1024, "Linux 6.1, `sch_sfq` (`SFQ_DEFAULT_HASH_DIVISOR`).";
        /// Bytes that a queue may send in its turn: "256 B" to "1 MiB", as in Linux's `sch_fq_codel`.
        quantum: Bytes = Bytes::new(1500), "one packet, as Linux 6.1, `sch_sfq` (`psched_mtu`, 1514 B): Ethernet's header counts there with every packet too; a packet here has none.";
        /// Time between two changes of the hash function.
        perturb: Option<Span>, "never, as in Linux 6.1, `sch_sfq`.";
        /// Drop the oldest packet of a queue that is too long instead of the latest.
        head_drop: bool = false, "off as in Linux 6.1, `sch_sfq`.";
    }
}

metrics! {
    /// The metrics of `sfq`, in addition to those of every queue by flow.
    pub const METRICS of Queue;

    /// Packets that were dropped because their queue held `depth` packets.
    DEPTH_DROPS = "depth_drops", Count, "Packets dropped for the depth", "depth drops";
}

impl QueueKind for SfqParams {
    type Queue<P: Packet> = Sfq<P>;

    const METRICS: &'static [&'static [&'static Metric]] = &[BY_FLOW, BY_FLOW_WITH_LIMIT, METRICS];

    fn example() -> &'static str {
        ""
    }

    fn check(&self) -> Result<(), ParamError> {
        self.limit.check()?;
        check_queues("divisor", self.divisor, self.quantum)?;
        if self.depth == 0 {
            return Err(ParamError::new(
                "depth",
                "is zero, so that every packet would be dropped",
                "a number from 1 on",
            ));
        }
        if self.perturb == Some(Span::ZERO) {
            return Err(ParamError::new(
                "perturb",
                "is zero",
                "a time such as \"10 s\", or no such key for never",
            ));
        }
        Ok(())
    }

    fn warnings(&self, link: &LinkFacts) -> Vec<ParamWarning> {
        let queues = warn_of_queues("divisor", self.divisor, link);
        let short = self.perturb.filter(|&perturb| {
            let round_trip = link.mean_round_trip;
            round_trip.is_some_and(|round_trip| perturb < round_trip)
        });
        let short = short.map(|_| {
            ParamWarning::new(
                "perturb",
                "is below the mean round-trip time, so the queues never settle",
            )
        });
        queues.into_iter().chain(short).collect()
    }

    fn limit(&self) -> Option<Limit> {
        Some(self.limit)
    }

    fn build<P: Packet>(&self, mut context: QueueContext) -> Sfq<P> {
        Sfq {
            limit: self.limit.at(context.rate),
            depth: u64::from(self.depth),
            head_drop: self.head_drop,
            perturb: self.perturb.map(Ticks::every),
            hash: FlowHash::draw(&mut context.stream),
            facts: Arc::clone(&context.link.flows),
            stream: context.stream,
            queues: FlowQueues::new(self.divisor as usize, self.quantum, Measure::Packets),
            aside: VecDeque::new(),
            overload_drops: 0,
            depth_drops: 0,
        }
    }
}

/// The running queue.
#[derive(Debug)]
pub struct Sfq<P> {
    limit: Limit,
    depth: u64,
    head_drop: bool,
    perturb: Option<Ticks>,
    hash: FlowHash,
    facts: Arc<FlowTable>,
    stream: Stream,
    queues: FlowQueues<P>,
    /// The packets that are being distributed again; empty between calls.
    aside: VecDeque<P>,
    overload_drops: u64,
    depth_drops: u64,
}

impl<P: Packet> Sfq<P> {
    /// Draws a new hash if one is due.
    #[inline]
    fn perturb(&mut self, now: Time, sink: &mut impl Sink<P>) {
        let Some(ticks) = &mut self.perturb else {
            return;
        };
        if ticks.due(now).is_some() {
            ticks.skip(now);
            self.rehash(now, sink);
        }
    }

    fn rehash(&mut self, now: Time, sink: &mut impl Sink<P>) {
        self.hash = FlowHash::draw(&mut self.stream);
        // In the order of the list, which is that of the next turns.
        while let Some(queue) = self.queues.turn() {
            while let Some(packet) = self.queues.take(queue, now) {
                self.aside.push_back(packet);
            }
            self.queues.leave(queue);
        }
        while let Some(packet) = self.aside.pop_front() {
            let queue = self
                .hash
                .bucket(self.facts.key(packet.flow()), self.queues.len());
            if self.queues.backlog_of(queue).packets < self.depth {
                let entered = packet.enqueued();
                self.queues.push_in_line(queue, packet, now, entered);
            } else {
                self.depth_drops += 1;
                sink.dropped(packet, DropReason::Early, now);
            }
        }
    }

    /// Returns the queue from which a packet is dropped when the limit is exceeded.
    fn victim(&mut self) -> usize {
        let longest = self.queues.fattest();
        if self.queues.backlog_of(longest).packets > 1 {
            return longest;
        }
        self.queues.first_in_line().unwrap_or(longest)
    }

    /// Removes and returns a packet of a queue that is too long.
    fn take_excess(&mut self, queue: usize, now: Time) -> Option<P> {
        let packet = if self.head_drop {
            self.queues.take(queue, now)
        } else {
            self.queues.take_last(queue, now)
        };
        if self.queues.backlog_of(queue).packets == 0 {
            self.queues.leave(queue);
        }
        packet
    }
}

impl<P: Packet> QueueDiscipline<P> for Sfq<P> {
    #[inline]
    fn enqueue(&mut self, packet: P, now: Time, sink: &mut impl Sink<P>) {
        self.perturb(now, sink);
        let queue = self
            .hash
            .bucket(self.facts.key(packet.flow()), self.queues.len());
        if self.queues.backlog_of(queue).packets >= self.depth {
            self.depth_drops += 1;
            if !self.head_drop {
                sink.dropped(packet, DropReason::Early, now);
                return;
            }
            // The queue keeps its place in the list.
            if let Some(oldest) = self.queues.take(queue, now) {
                sink.dropped(oldest, DropReason::Early, now);
            }
        }
        if !self.limit.admits(Backlog::default(), packet.size()) {
            self.overload_drops += 1;
            sink.dropped(packet, DropReason::Limit, now);
            return;
        }
        self.queues.push_in_line(queue, packet, now, now);
        while !self.limit.allows(self.queues.backlog()) {
            let longest = self.victim();
            let Some(excess) = self.take_excess(longest, now) else {
                break;
            };
            self.overload_drops += 1;
            sink.dropped(excess, DropReason::Limit, now);
        }
    }

    #[inline]
    fn dequeue(&mut self, now: Time, sink: &mut impl Sink<P>) -> Option<P> {
        self.perturb(now, sink);
        let queue = self.queues.turn()?;
        let packet = self.queues.take(queue, now)?;
        if self.queues.backlog_of(queue).packets == 0 {
            self.queues.leave(queue);
        } else {
            self.queues.charge(queue, packet.size());
        }
        Some(packet)
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        self.queues.backlog()
    }

    fn start_measuring(&mut self, now: Time) {
        self.queues.start_measuring(now);
        (self.overload_drops, self.depth_drops) = (0, 0);
    }

    fn report(&self, now: Time, report: &mut Report<'_>) {
        report.tell(FLOWS_ACTIVE, self.queues.active(now));
        report.tell(OVERLOAD_DROPS, self.overload_drops as f64);
        report.tell(DEPTH_DROPS, self.depth_drops as f64);
    }
}
