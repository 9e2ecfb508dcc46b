//! FQ-CoDel: flows are hashed into queues, which are served in turn with preference for sparse flows, with
//! CoDel's law in each queue.
//!
//! Source: RFC 8290, section 4; defaults of section 5.2, as in Linux 6.1, `sch_fq_codel`.
//! The order of service is in [`crate::fq`], the law in [`crate::laws::codel`].
//!
//! When an arrival makes the backlog exceed the limit, packets are dropped from the head of the queue with
//! the most bytes: half its bytes, and at most `drop_batch` packets (RFC 8290, section 4.1). They count as
//! signals for its law, as in Linux.
//!
//! The condition that no more than one packet stays in the queue (RFC 8289) applies to all queues together,
//! as in Linux; in a queue of kind `codel` it applies to that queue.

use std::sync::Arc;

use super::codel::{Signals, check_delays, warn_of_target};
use crate::figures::{BY_FLOW, BY_FLOW_WITH_LIMIT, FLOWS_ACTIVE, OVERLOAD_DROPS};
use crate::fq::{FlowHash, FlowQueues, Measure};
use crate::laws::codel::{CodelConfig, CodelLaw, InverseSqrt};
use crate::{
    Backlog, DropReason, FlowTable, Internals, Limit, LinkFacts, QueueContext, QueueDiscipline,
    QueueKind, Report, Sink,
};
use redtail_core::{Bytes, Metric, Packet, ParamError, ParamWarning, Span, Time, params};

params! {
    /// Flow queueing with CoDel (RFC 8290): a queue for each flow, service in turn with preference for
    /// sparse flows, CoDel in each queue.
    pub struct FqCodelParams {
        /// Limit on the waiting packets of all queues together: in packets, in bytes, in time at the link's rate, or a list of these.
        limit: Limit = Limit { packets: Some(10_240), bytes: Some(32 << 20), time: None, }, "RFC 8290, section 5.2.3 (10,240 packets), and Linux 6.1 (`memory_limit`, 32 MiB, there with the kernel's own overhead).";
        /// Number of queues that flows are hashed into.
        #[schemars(range(min = 1, max = 65_536))]
        flows: u32 = 1024, "RFC 8290, section 5.2.5.";
        /// Bytes that a queue may send in its turn: "256 B" to "1 MiB", as in Linux's `sch_fq_codel`.
        quantum: Bytes = Bytes::new(1500), "one packet, as RFC 8290, section 5.2.4: its 1514 B are the MTU and Ethernet's header, which Linux counts with every packet; a packet here has none.";
        /// Acceptable standing queueing delay of each queue.
        target: Span = Span::from_ms(5), "RFC 8290, section 5.2.2.";
        /// Time that the delay must stay at or above `target` before the first signal; about the round-trip time of most flows.
        interval: Span = Span::from_ms(100), "RFC 8290, section 5.2.1.";
        /// Mark ECN-capable packets instead of dropping them.
        ecn: bool = true, "on as in RFC 8290, section 5.2.6.";
        /// Mark every ECN-capable packet that has waited longer than this, independently of the law's decision and of `ecn`.
        ce_threshold: Option<Span>, "none, as in RFC 8290, section 5.2.7.";
        /// No packet is dropped when no more than this waits in all queues.
        mtu: Bytes = Bytes::new(1500), "RFC 8289, section 5.3 (`maxpacket`), for Ethernet.";
        /// Largest number of packets dropped at the same time from the queue with the largest backlog when the limit is exceeded.
        drop_batch: u32 = 64, "RFC 8290, section 4.1.";
        /// How the gaps between signals are computed.
        inverse_sqrt: InverseSqrt = InverseSqrt::Exact, "RFC 8289, section 5.6.";
    }
}

/// Refuses a number of queues or a quantum that cannot be run.
pub(crate) fn check_queues(
    key: &'static str,
    queues: u32,
    quantum: Bytes,
) -> Result<(), ParamError> {
    if queues == 0 || queues > 65_536 {
        return Err(ParamError::new(
            key,
            format!("is {queues}, no number of queues"),
            "a number from 1 to 65536",
        ));
    }
    if quantum < Bytes::new(256) {
        return Err(ParamError::new(
            "quantum",
            "is less than 256 B, so that a packet takes many turns",
            "at least \"256 B\", for example \"1500 B\"",
        ));
    }
    if quantum > Bytes::new(1 << 20) {
        return Err(ParamError::new(
            "quantum",
            "is more than Linux takes, so that a flow has the link for itself",
            "\"256 B\" to \"1 MiB\", for example \"1500 B\"",
        ));
    }
    Ok(())
}

/// Warns of fewer queues than there are flows.
pub(crate) fn warn_of_queues(
    key: &'static str,
    queues: u32,
    link: &LinkFacts,
) -> Option<ParamWarning> {
    let flows = link.tcp_flows;
    (flows > u64::from(queues)).then(|| {
        ParamWarning::new(
            key,
            format!(
                "is less than the {flows} TCP flows that cross the link, so that some share a queue"
            ),
        )
    })
}

impl QueueKind for FqCodelParams {
    type Queue<P: Packet> = FqCodel<P>;

    const METRICS: &'static [&'static [&'static Metric]] = &[BY_FLOW, BY_FLOW_WITH_LIMIT];

    fn example() -> &'static str {
        ""
    }

    fn check(&self) -> Result<(), ParamError> {
        self.limit.check()?;
        check_delays(self.target, self.interval)?;
        check_queues("flows", self.flows, self.quantum)?;
        if self.drop_batch == 0 {
            return Err(ParamError::new(
                "drop_batch",
                "is zero, so that a full queue could not be relieved",
                "a number from 1 on",
            ));
        }
        Ok(())
    }

    fn warnings(&self, link: &LinkFacts) -> Vec<ParamWarning> {
        let target = warn_of_target(self.target, self.mtu, link);
        let queues = warn_of_queues("flows", self.flows, link);
        target.into_iter().chain(queues).collect()
    }

    fn limit(&self) -> Option<Limit> {
        Some(self.limit)
    }

    fn build<P: Packet>(&self, mut context: QueueContext) -> FqCodel<P> {
        let queues = self.flows as usize;
        FqCodel {
            limit: self.limit.at(context.rate),
            signals: Signals {
                law: CodelConfig {
                    target: self.target,
                    interval: self.interval,
                    mtu: self.mtu.as_u64(),
                    inverse_sqrt: self.inverse_sqrt,
                },
                ecn: self.ecn,
                ce_threshold: self.ce_threshold,
            },
            drop_batch: self.drop_batch,
            hash: FlowHash::draw(&mut context.stream),
            facts: Arc::clone(&context.link.flows),
            laws: vec![CodelLaw::default(); queues],
            queues: FlowQueues::new(queues, self.quantum, Measure::Bytes),
            sojourn: Span::ZERO,
            overload_drops: 0,
        }
    }
}

/// The running queue.
#[derive(Debug)]
pub struct FqCodel<P> {
    limit: Limit,
    signals: Signals,
    drop_batch: u32,
    hash: FlowHash,
    facts: Arc<FlowTable>,
    laws: Vec<CodelLaw>,
    queues: FlowQueues<P>,
    /// The queueing delay of the packet that left last.
    sojourn: Span,
    overload_drops: u64,
}

impl<P: Packet> FqCodel<P> {
    /// Drops half of the bytes of the queue with the most bytes, at most `drop_batch` packets.
    fn relieve(&mut self, now: Time, sink: &mut impl Sink<P>) {
        let fattest = self.queues.fattest();
        let half = self.queues.backlog_of(fattest).bytes / 2;
        let (mut packets, mut bytes) = (0, 0);
        while packets == 0 || (packets < self.drop_batch && bytes < half) {
            let Some(packet) = self.queues.take(fattest, now) else {
                break;
            };
            packets += 1;
            bytes += packet.size().as_u64();
            sink.dropped(packet, DropReason::Limit, now);
        }
        self.laws[fattest].on_overload(packets);
        self.overload_drops += u64::from(packets);
    }
}

impl<P: Packet> QueueDiscipline<P> for FqCodel<P> {
    #[inline]
    fn enqueue(&mut self, packet: P, now: Time, sink: &mut impl Sink<P>) {
        if !self.limit.admits(Backlog::default(), packet.size()) {
            // The queue could not make room for the packet.
            self.overload_drops += 1;
            sink.dropped(packet, DropReason::Limit, now);
            return;
        }
        let queue = self
            .hash
            .bucket(self.facts.key(packet.flow()), self.queues.len());
        self.queues.push(queue, packet, now);
        while !self.limit.allows(self.queues.backlog()) {
            self.relieve(now, sink);
        }
    }

    #[inline]
    fn dequeue(&mut self, now: Time, sink: &mut impl Sink<P>) -> Option<P> {
        while let Some(queue) = self.queues.turn() {
            let (law, queues) = (&mut self.laws[queue], &mut self.queues);
            let packet = self.signals.dequeue(law, now, sink, || {
                let packet = queues.take(queue, now)?;
                Some((packet, queues.backlog().bytes))
            });
            match packet {
                Some(packet) => {
                    self.queues.charge(queue, packet.size());
                    self.sojourn = now - packet.enqueued();
                    return Some(packet);
                }
                None => self.queues.pass_turn(queue),
            }
        }
        self.sojourn = Span::ZERO;
        None
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        self.queues.backlog()
    }

    fn internals(&self) -> Internals {
        Internals {
            average: Some(self.sojourn.as_secs_f64()),
            probability: None,
        }
    }

    fn start_measuring(&mut self, now: Time) {
        self.queues.start_measuring(now);
        self.overload_drops = 0;
    }

    fn report(&self, now: Time, report: &mut Report<'_>) {
        report.tell(FLOWS_ACTIVE, self.queues.active(now));
        report.tell(OVERLOAD_DROPS, self.overload_drops as f64);
    }
}
