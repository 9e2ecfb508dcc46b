//! FQ-PIE: flows are hashed into queues, which are served in turn with preference for sparse flows, with
//! PIE's law in each queue.
//!
//! Source: G. Ramakrishnan et al., "FQ-PIE Queue Discipline in the Linux Kernel: Design,
//! Implementation and Challenges", IEEE LCN 2019; rules and defaults as in Linux 6.1,
//! `sch_fq_pie`. The order of service is in [`crate::fq`], the law in [`crate::laws::pie`].
//!
//! A queue's backlog changes only when the queue is called. So the updates of its law that were due are
//! made at that time, with the backlog since the last call; the result is the same as with a timer.
//! An arrival that exceeds the limit is dropped.

use std::sync::Arc;

use super::codel::warn_of_target;
use super::fq_codel::{check_queues, warn_of_queues};
use crate::figures::{BY_FLOW, BY_FLOW_WITH_LIMIT, FLOWS_ACTIVE, OVERLOAD_DROPS};
use crate::fq::{FlowHash, FlowQueues, Measure};
use crate::laws::pie::{Decay, Delay, Flavour, PieConfig, PieDecision, PieLaw};
use crate::signal::{MOST_UPDATES, mark_or_drop};
use crate::{
    Backlog, DropReason, FlowTable, Internals, Limit, LinkFacts, QueueContext, QueueDiscipline,
    QueueKind, Report, Sink, refuse,
};
use redtail_core::{Bytes, Metric, Packet, ParamError, ParamWarning, Span, Stream, Time, params};

params! {
    /// Flow queueing with PIE: a queue for each flow, service in turn with preference for sparse flows, PIE
    /// in each queue.
    pub struct FqPieParams {
        /// Limit on the waiting packets of all queues together: in packets, in bytes, in time at the link's rate, or a list of these.
        limit: Limit = Limit { packets: Some(10_240), bytes: Some(32 << 20), time: None, }, "Linux 6.1, `sch_fq_pie` (10,240 packets; `memory_limit`, 32 MiB, there with the kernel's own overhead and only counted).";
        /// Number of queues that flows are hashed into.
        #[schemars(range(min = 1, max = 65_536))]
        flows: u32 = 1024, "Linux 6.1, `sch_fq_pie`.";
        /// Bytes that a queue may send in its turn: "256 B" to "1 MiB", as in Linux's `sch_fq_codel`.
        quantum: Bytes = Bytes::new(1500), "one packet, as Linux 6.1, `sch_fq_pie` (`psched_mtu`, 1514 B): Ethernet's header counts there with every packet too; a packet here has none.";
        /// Queueing delay to hold in each queue.
        target: Span = Span::from_ms(15), "RFC 8033, section 4.2 (QDELAY_REF).";
        /// Time between updates of a probability; at least "1 us", the unit in which Linux counts it.
        update: Span = Span::from_ms(15), "RFC 8033, section 4.2 (T_UPDATE); Linux rounds it to 16 ms at 250 Hz.";
        /// Gain of the deviation from the target, in 1/s.
        alpha: f64 = 0.125, "RFC 8033, section 4.2 (1/8 Hz).";
        /// Gain of the delay's change, in 1/s.
        beta: f64 = 1.25, "RFC 8033, section 4.2 (1 + 1/4 Hz).";
        /// Burst that passes without drops after a time without congestion; "0 s" for none.
        max_burst: Span = Span::from_ms(150), "RFC 8033, section 4.4 (MAX_BURST).";
        /// Size of a typical packet: no packet is dropped while less than two of them wait in its queue.
        mean_packet: Bytes = Bytes::new(1500), "Linux 6.1, `sch_fq_pie`, for Ethernet.";
        /// How the queueing delay is determined.
        delay: Delay = Delay::Timestamps, "Linux 6.1, `sch_fq_pie`.";
        /// Mark ECN-capable packets instead of dropping them early, up to a probability of `max_ecn`.
        ecn: bool = false, "off as in Linux 6.1, `sch_fq_pie`.";
        /// Probability above which ECN-capable packets are dropped like all other packets.
        max_ecn: f64 = 0.1, "Linux 6.1, `sch_fq_pie` (`ecn_prob`, 10 %).";
    }
}

impl QueueKind for FqPieParams {
    type Queue<P: Packet> = FqPie<P>;

    const METRICS: &'static [&'static [&'static Metric]] = &[BY_FLOW, BY_FLOW_WITH_LIMIT];

    fn example() -> &'static str {
        ""
    }

    fn check(&self) -> Result<(), ParamError> {
        self.limit.check()?;
        check_queues("flows", self.flows, self.quantum)?;
        refuse::unless_some_time("target", self.target)?;
        refuse::unless_some_interval("update", self.update)?;
        for (key, gain) in [("alpha", self.alpha), ("beta", self.beta)] {
            if !(gain > 0.0 && gain.is_finite()) {
                return Err(ParamError::new(
                    key,
                    "is not a gain above 0",
                    "a number above 0",
                ));
            }
        }
        if !(0.0..=1.0).contains(&self.max_ecn) {
            return Err(ParamError::new(
                "max_ecn",
                "is not a probability",
                "a number from 0 to 1",
            ));
        }
        Ok(())
    }

    fn warnings(&self, link: &LinkFacts) -> Vec<ParamWarning> {
        let target = warn_of_target(self.target, self.mean_packet, link);
        let queues = warn_of_queues("flows", self.flows, link);
        target.into_iter().chain(queues).collect()
    }

    fn limit(&self) -> Option<Limit> {
        Some(self.limit)
    }

    fn build<P: Packet>(&self, mut context: QueueContext) -> FqPie<P> {
        let queues = self.flows as usize;
        let law = PieLaw::new(PieConfig {
            target: self.target,
            interval: self.update,
            alpha: self.alpha,
            beta: self.beta,
            max_burst: self.max_burst,
            mean_packet: self.mean_packet,
            derandomize: true,
            delay: self.delay,
            decay: Decay::NoDelay,
            flavour: Flavour::Linux,
        });
        FqPie {
            limit: self.limit.at(context.rate),
            max_ecn: self.ecn.then_some(self.max_ecn),
            update: self.update,
            hash: FlowHash::draw(&mut context.stream),
            facts: Arc::clone(&context.link.flows),
            stream: context.stream,
            laws: vec![Kept { law, updates: 0 }; queues],
            queues: FlowQueues::new(queues, self.quantum, Measure::Bytes),
            sojourn: Span::ZERO,
            probability: 0.0,
            overload_drops: 0,
        }
    }
}

/// The law of a queue, and the number of its updates.
#[derive(Clone, Debug)]
struct Kept {
    law: PieLaw,
    updates: u64,
}

impl Kept {
    /// Makes the updates that are due, for a queue that has held `backlog` bytes since the last update;
    /// only the latest [`MOST_UPDATES`] if there are more.
    #[inline]
    fn catch_up(&mut self, due: u64, backlog: u64) {
        self.updates = self.updates.max(due.saturating_sub(MOST_UPDATES));
        while self.updates < due {
            if backlog == 0 && self.law.rests() {
                self.updates = due;
                return;
            }
            self.law.update(backlog);
            self.updates += 1;
        }
    }
}

/// The running queue.
#[derive(Debug)]
pub struct FqPie<P> {
    limit: Limit,
    /// The largest probability at which packets are marked; `None` if they are never marked.
    max_ecn: Option<f64>,
    update: Span,
    hash: FlowHash,
    facts: Arc<FlowTable>,
    stream: Stream,
    laws: Vec<Kept>,
    queues: FlowQueues<P>,
    /// The queueing delay of the packet that left last.
    sojourn: Span,
    /// The probability of the queue that was called last.
    probability: f64,
    overload_drops: u64,
}

impl<P: Packet> FqPie<P> {
    /// Returns the law of a queue after the updates that were due.
    #[inline]
    fn law(&mut self, queue: usize, now: Time) -> &mut PieLaw {
        let due = now.as_ps() / self.update.as_ps();
        let backlog = self.queues.backlog_of(queue).bytes;
        let kept = &mut self.laws[queue];
        kept.catch_up(due, backlog);
        self.probability = kept.law.probability();
        &mut kept.law
    }
}

impl<P: Packet> QueueDiscipline<P> for FqPie<P> {
    #[inline]
    fn enqueue(&mut self, packet: P, now: Time, sink: &mut impl Sink<P>) {
        let queue = self
            .hash
            .bucket(self.facts.key(packet.flow()), self.queues.len());
        self.law(queue, now);
        let law = &mut self.laws[queue].law;
        if !self.limit.admits(self.queues.backlog(), packet.size()) {
            law.on_drop();
            self.overload_drops += 1;
            sink.dropped(packet, DropReason::Limit, now);
            return;
        }
        let backlog = self.queues.backlog_of(queue).bytes;
        let stream = &mut self.stream;
        let decision = law.on_arrival(backlog, None, || stream.uniform());
        let packet = if decision == PieDecision::Early {
            let ecn = self.max_ecn.is_some_and(|most| law.probability() <= most);
            match mark_or_drop(packet, ecn, DropReason::Early, now, sink) {
                Some(packet) => packet,
                None => return law.on_drop(),
            }
        } else {
            packet
        };
        self.queues.push(queue, packet, now);
    }

    #[inline]
    fn dequeue(&mut self, now: Time, _sink: &mut impl Sink<P>) -> Option<P> {
        while let Some(queue) = self.queues.turn() {
            if self.queues.backlog_of(queue).packets == 0 {
                self.queues.pass_turn(queue);
                continue;
            }
            self.law(queue, now);
            let packet = self.queues.take(queue, now)?;
            self.queues.charge(queue, packet.size());
            self.sojourn = now - packet.enqueued();
            let left = self.queues.backlog_of(queue).bytes;
            let law = &mut self.laws[queue].law;
            law.on_departure(packet.size(), self.sojourn, left, now);
            return Some(packet);
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
            probability: Some(self.probability.min(1.0)),
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
