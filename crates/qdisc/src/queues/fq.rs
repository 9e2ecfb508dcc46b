//! Linux's fq: flows are hashed into queues, which are served in turn with preference for new ones, with a
//! limit for each queue and pacing.
//!
//! Source: Linux 6.1, `net/sched/sch_fq.c` (`fq_enqueue`, `fq_dequeue`, `fq_classify`, `fq_init`), for
//! forwarded packets.
//!
//! | symbol | meaning | unit |
//! |---|---|---|
//! | credit | bytes that a flow may still send in its turn | bytes |
//! | t_next | time before which a flow sends nothing (time_next_packet) | time |
//! | r | rate to which each flow is paced (flow_max_rate) | bit/s |
//! | len | a packet's size | bytes |
//!
//! ```text
//! flow     one of 1024 by hash (orphan_mask); its credit at its first packet is initial_quantum
//! enqueue  dropped when limit packets wait in total, or flow_limit packets of the flow
//!          a flow in no list joins the new flows; if it has been in no list for longer than
//!          flow_refill_delay, its credit is at least one quantum
//! dequeue  the first of the new flows; if there is none, the first of the old flows
//!          credit <= 0: credit += quantum, to the end of the old flows
//!          before t_next: in no list until t_next, then at the end of the old flows
//!          else its oldest packet: credit -= len
//!          empty: removed from the lists; a new flow first goes to the end of the old flows if there are
//! any
//! pacing   r up to low_rate_threshold: credit = 0, n = len             each packet separately
//!          above: n = max(len, quantum), when the credit is used up    one turn at a time
//!          d = min(n / r, 1 s), minus the time since t_next, at most d / 2
//!          t_next = now + d
//! mark     a packet that leaves more than ce_threshold after the later of its entry and t_next
//! ```
//!
//! A flow keeps its credit while it is in no list: fq removes flows from memory only when there are 2048 of
//! them and more than half have been in no list for 3 s. This never happens with forwarded packets, for
//! which the kernel has 1024 hash results.
//!
//! Pacing by departure times and by the rate of a local socket is left out: packets of a remote host carry
//! neither, and the senders here do their own pacing. So `horizon`, `horizon_drop` and `timer_slack` would
//! have no effect. `buckets` is only the size of a table. The queue for control traffic (TC_PRIO_CONTROL)
//! would be empty, because no TOS maps to that priority.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use redtail_core::{
    Bytes, Metric, Packet, ParamError, ParamWarning, Rate, Span, Time, metrics, params,
};

use super::fq_codel::{check_queues, warn_of_queues};
use crate::fifo::Fifo;
use crate::figures::{BY_FLOW, FLOWS_ACTIVE};
use crate::fq::{FlowHash, Lists, TimeAverage};
use crate::{
    Backlog, DropReason, FlowTable, Limit, LinkFacts, QueueContext, QueueDiscipline, QueueKind,
    Report, Sink, Wakeup,
};

params! {
    /// Linux's fq: flows served in turn with preference for new ones, a limit for each flow, and pacing.
    pub struct FqParams {
        /// Limit on the waiting packets of all queues together: in packets, in bytes, in time at the link's rate, or a list of these.
        limit: Limit = Limit::packets(10_000), "Linux 6.1, `fq_init` (10,000 packets).";
        /// Largest number of packets in one queue.
        flow_limit: u32 = 100, "Linux 6.1, `fq_init` (`flow_plimit`).";
        /// Number of queues that flows are hashed into.
        #[schemars(range(min = 1, max = 65_536))]
        flows: u32 = 1024, "Linux 6.1, `fq_init` (`orphan_mask`, 1023).";
        /// Bytes that a queue may send in its turn: "256 B" to "1 MiB", as in Linux's `sch_fq_codel`.
        quantum: Bytes = Bytes::new(3000), "Linux 6.1, `fq_init`: two full packets, there 2 x 1514 B with Ethernet's headers.";
        /// Bytes that a queue may send in the first turn after its creation; up to 2^31 - 1, as in Linux.
        initial_quantum: Bytes = Bytes::new(15_000), "Linux 6.1, `fq_init`: ten full packets, there 10 x 1514 B with Ethernet's headers.";
        /// Time for which a queue must have been empty to get a whole `quantum` again at its next packet.
        flow_refill_delay: Span = Span::from_ms(40), "Linux 6.1, `fq_init`.";
        /// Rate to which each queue is paced.
        flow_max_rate: Option<Rate>, "none, as in Linux 6.1, `fq_init`.";
        /// With a `flow_max_rate` up to this rate every packet is paced separately, above it every `quantum`.
        low_rate_threshold: Rate = Rate::from_bps(550_000), "Linux 6.1, `fq_init` (550 kbit/s).";
        /// Mark every ECN-capable packet that leaves more than this time after its earliest departure; the time for which pacing holds it back does not count.
        ce_threshold: Option<Span>, "none, as in Linux 6.1, `fq_init` (there 4295 s).";
    }
}

/// The longest that one departure holds a flow back (`fq_dequeue`).
const LONGEST_GAP: Span = Span::from_s(1);

metrics! {
    /// The metrics of `fq`, in addition to those of every queue by flow.
    pub const METRICS of Queue;

    /// Packets that were dropped because their flow held `flow_limit` packets.
    FLOW_LIMIT_DROPS = "flow_limit_drops", Count, "Packets dropped for the limit of a flow", "flow limit drops";
    /// Number of times that pacing held a flow back.
    THROTTLED = "throttled", Count, "Times that pacing held a flow back", "throttled";
}

impl QueueKind for FqParams {
    type Queue<P: Packet> = Fq<P>;

    const METRICS: &'static [&'static [&'static Metric]] = &[BY_FLOW, METRICS];

    fn example() -> &'static str {
        ""
    }

    fn check(&self) -> Result<(), ParamError> {
        self.limit.check()?;
        check_queues("flows", self.flows, self.quantum)?;
        if self.initial_quantum > Bytes::new(i32::MAX as u64) {
            return Err(ParamError::new(
                "initial_quantum",
                "is more than Linux takes",
                "up to \"2147483647 B\", for example \"15000 B\"",
            ));
        }
        if self.flow_limit == 0 {
            return Err(ParamError::new(
                "flow_limit",
                "would drop every packet",
                "at least 1",
            ));
        }
        if self.flow_max_rate.is_some_and(|rate| rate.as_bps() == 0) {
            return Err(ParamError::new(
                "flow_max_rate",
                "is zero",
                "a rate such as \"1 Mbit/s\", or no such key for no pacing",
            ));
        }
        Ok(())
    }

    fn warnings(&self, link: &LinkFacts) -> Vec<ParamWarning> {
        let queues = warn_of_queues("flows", self.flows, link);
        let above = self.flow_max_rate.filter(|&rate| rate >= link.rate);
        let above = above.map(|_| {
            let clause = format!("is not below the link's ({}): it paces nothing", link.rate);
            ParamWarning::new("flow_max_rate", clause)
        });
        queues.into_iter().chain(above).collect()
    }

    fn limit(&self) -> Option<Limit> {
        Some(self.limit)
    }

    fn build<P: Packet>(&self, mut context: QueueContext) -> Fq<P> {
        let flows = self.flows as usize;
        let low = self
            .flow_max_rate
            .is_some_and(|rate| rate <= self.low_rate_threshold);
        Fq {
            limit: self.limit.at(context.rate),
            flow_limit: u64::from(self.flow_limit),
            quantum: self.quantum,
            flow_refill_delay: self.flow_refill_delay,
            pacing: self.flow_max_rate.map(|rate| Pacing { rate, low }),
            ce_threshold: self.ce_threshold,
            hash: FlowHash::draw(&mut context.stream),
            facts: Arc::clone(&context.link.flows),
            flows: (0..flows)
                .map(|_| Flow::new(self.initial_quantum))
                .collect(),
            lists: Lists::new(flows, 2),
            throttled: BinaryHeap::with_capacity(flows),
            throttlings: 0,
            wake: None,
            backlog: Backlog::default(),
            active: TimeAverage::default(),
            flow_limit_drops: 0,
            throttled_before: 0,
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Pacing {
    rate: Rate,
    /// Whether each packet is paced separately.
    low: bool,
}

#[derive(Debug)]
struct Flow<P> {
    fifo: Fifo<P>,
    /// The bytes that the flow may still send in its turn.
    credit: i64,
    /// The time at which the flow left the lists; `None` while it is in a list or held back.
    out_since: Option<Time>,
    /// The time before which the flow sends nothing; `None` before a packet was paced.
    next: Option<Time>,
}

impl<P: Packet> Flow<P> {
    fn new(initial_quantum: Bytes) -> Self {
        Self {
            fifo: Fifo::new(),
            credit: initial_quantum.as_u64() as i64,
            out_since: Some(Time::ZERO),
            next: None,
        }
    }
}

const NEW: usize = 0;
const OLD: usize = 1;

/// The running queue.
#[derive(Debug)]
pub struct Fq<P> {
    limit: Limit,
    flow_limit: u64,
    quantum: Bytes,
    flow_refill_delay: Span,
    pacing: Option<Pacing>,
    ce_threshold: Option<Span>,
    hash: FlowHash,
    facts: Arc<FlowTable>,
    flows: Vec<Flow<P>>,
    lists: Lists,
    /// The flows that are held back: the time of their release, their order, and their number.
    throttled: BinaryHeap<Reverse<(Time, u64, u32)>>,
    /// The number of times that a flow was held back.
    throttlings: u64,
    wake: Option<Time>,
    backlog: Backlog,
    active: TimeAverage,
    flow_limit_drops: u64,
    /// The value of `throttlings` when the measurement began.
    throttled_before: u64,
}

impl<P: Packet> Fq<P> {
    /// Moves the flows whose time has come to the list of old flows.
    #[inline]
    fn release(&mut self, now: Time) {
        while let Some(&Reverse((at, _, flow))) = self.throttled.peek()
            && at <= now
        {
            self.throttled.pop();
            self.lists.append(OLD, flow as usize);
        }
    }

    /// Returns the time at which a flow that has sent `packet` at `now` may send again.
    fn pace(&mut self, index: usize, size: Bytes, now: Time) {
        let Some(Pacing { rate, low }) = self.pacing else {
            return;
        };
        let flow = &mut self.flows[index];
        let paced = if low {
            flow.credit = 0;
            size
        } else if flow.credit > 0 {
            return;
        } else {
            size.max(self.quantum)
        };
        let mut gap = rate.tx_time(paced).min(LONGEST_GAP);
        if let Some(due) = flow.next {
            gap = gap.saturating_sub((gap / 2).min(now - due));
        }
        flow.next = Some(now + gap);
    }
}

impl<P: Packet> QueueDiscipline<P> for Fq<P> {
    #[inline]
    fn enqueue(&mut self, packet: P, now: Time, sink: &mut impl Sink<P>) {
        if !self.limit.admits(self.backlog, packet.size()) {
            sink.dropped(packet, DropReason::Limit, now);
            return;
        }
        let index = self
            .hash
            .bucket(self.facts.key(packet.flow()), self.flows.len());
        let flow = &mut self.flows[index];
        let waiting = flow.fifo.backlog().packets;
        if waiting >= self.flow_limit {
            self.flow_limit_drops += 1;
            sink.dropped(packet, DropReason::Early, now);
            return;
        }
        if let Some(since) = flow.out_since.take() {
            self.lists.append(NEW, index);
            if now > since + self.flow_refill_delay {
                flow.credit = flow.credit.max(self.quantum.as_u64() as i64);
            }
        }
        if waiting == 0 {
            self.active.add(1, now);
        }
        self.backlog.packets += 1;
        self.backlog.bytes += packet.size().as_u64();
        flow.fifo.push(packet, now);
    }

    #[inline]
    fn dequeue(&mut self, now: Time, sink: &mut impl Sink<P>) -> Option<P> {
        self.wake = None;
        if self.backlog.packets == 0 {
            return None;
        }
        self.release(now);
        loop {
            let new = self.lists.first(NEW);
            let Some(index) = new.or_else(|| self.lists.first(OLD)) else {
                self.wake = self.throttled.peek().map(|Reverse((at, ..))| *at);
                return None;
            };
            let flow = &mut self.flows[index];
            if flow.credit <= 0 {
                flow.credit += self.quantum.as_u64() as i64;
                self.lists.append(OLD, index);
                continue;
            }
            let Some(head) = flow.fifo.front() else {
                if new.is_some() && self.lists.first(OLD).is_some() {
                    self.lists.append(OLD, index);
                } else {
                    self.lists.remove(index);
                    flow.out_since = Some(now);
                }
                continue;
            };
            let due = flow
                .next
                .map_or(head.enqueued(), |next| next.max(head.enqueued()));
            if now < due {
                flow.next = Some(due);
                self.lists.remove(index);
                self.throttled
                    .push(Reverse((due, self.throttlings, index as u32)));
                self.throttlings += 1;
                continue;
            }
            let mut packet = flow.fifo.pop().expect("it was looked at");
            if flow.fifo.backlog().packets == 0 {
                self.active.add(-1, now);
            }
            flow.credit -= packet.size().as_u64() as i64;
            self.backlog.packets -= 1;
            self.backlog.bytes -= packet.size().as_u64();
            if self.ce_threshold.is_some_and(|most| now - due > most) && packet.mark_ce() {
                sink.marked(&packet, now);
            }
            self.pace(index, packet.size(), now);
            return Some(packet);
        }
    }

    fn next_wakeup(&self) -> Wakeup {
        self.wake.into()
    }

    fn on_wakeup(&mut self, now: Time) {
        self.wake = self.wake.filter(|&wake| wake > now);
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        self.backlog
    }

    fn start_measuring(&mut self, now: Time) {
        self.active.begin(now);
        self.flow_limit_drops = 0;
        self.throttled_before = self.throttlings;
    }

    fn report(&self, now: Time, report: &mut Report<'_>) {
        report.tell(FLOWS_ACTIVE, self.active.until(now));
        report.tell(FLOW_LIMIT_DROPS, self.flow_limit_drops as f64);
        report.tell(THROTTLED, (self.throttlings - self.throttled_before) as f64);
    }
}
