//! COBALT: a first-in first-out queue with the law of [`crate::laws::cobalt`].
//!
//! Source: Høiland-Jørgensen, Täht and Morton 2018; as in Linux 6.1, `sch_cake`, but with only one queue,
//! as in ns-3's `CobaltQueueDisc`. `blue_threshold` is from ns-3.

use redtail_core::{Bytes, Ecn, Packet, ParamError, ParamWarning, Span, Stream, Time, params};

use super::codel::{check_delays, warn_of_target};
use crate::fifo::Fifo;
use crate::laws::cobalt::{CobaltConfig, CobaltLaw, FirstGap};
use crate::{
    Backlog, DropReason, Internals, Limit, LinkFacts, QueueContext, QueueDiscipline, QueueKind,
    Sink,
};

params! {
    /// COBALT, the combination of CoDel and BLUE: signals while the queueing delay stays above a target,
    /// and drops for flows that do not respond to signals.
    pub struct CobaltParams {
        /// Limit on the waiting packets: in packets, in bytes, in time at the link's rate, or a list of these.
        limit: Limit = Limit::bytes(1_500_000), "ns-3, `CobaltQueueDisc` (1000 packets of 1500 B).";
        /// Acceptable queueing delay; also the smallest time between changes of BLUE's probability.
        target: Span = Span::from_ms(5), "Linux 6.1, `sch_cake`.";
        /// Time for which the delay must exceed `target` before the first signal; about the round-trip time of most flows.
        interval: Span = Span::from_ms(100), "Linux 6.1, `sch_cake`.";
        /// Mark ECN-capable packets that CoDel would drop; BLUE still drops them.
        ecn: bool = true, "on as in Linux 6.1, `sch_cake`.";
        /// Amount added to BLUE's drop probability when the queue overflows.
        increment: f64 = 1.0 / 256.0, "Linux 6.1, `sch_cake` (1/256).";
        /// Amount subtracted from BLUE's drop probability when the queue is empty.
        decrement: f64 = 1.0 / 4096.0, "Linux 6.1, `sch_cake` (1/4096).";
        /// A packet that has waited longer than this raises BLUE's drop probability by one `increment`, at most once per `target`.
        blue_threshold: Option<Span>, "none, as in Linux 6.1, `sch_cake`; ns-3 has 400 ms (`BlueThreshold`).";
        /// Time from the first moment at which the delay exceeds the target to the first signal.
        first_gap: FirstGap = FirstGap::Interval, "ns-3, `CobaltQueueDisc`, and the comment in Linux 6.1, `sch_cake`, whose code has none.";
        /// Size of a large packet: a delay of less than the transmission time of four such packets does not count as queueing delay.
        mtu: Bytes = Bytes::new(1500), "Linux 6.1, `sch_cake`, for Ethernet.";
    }
}

impl QueueKind for CobaltParams {
    type Queue<P: Packet> = Cobalt<P>;

    fn example() -> &'static str {
        r#"limit = "250 packets""#
    }

    fn check(&self) -> Result<(), ParamError> {
        self.limit.check()?;
        check_delays(self.target, self.interval)?;
        for (key, value) in [("increment", self.increment), ("decrement", self.decrement)] {
            if !(0.0..=1.0).contains(&value) {
                return Err(ParamError::new(
                    key,
                    "is no change of a probability",
                    "a number from 0 to 1",
                ));
            }
        }
        Ok(())
    }

    fn warnings(&self, link: &LinkFacts) -> Vec<ParamWarning> {
        let target = warn_of_target(self.target, self.mtu, link);
        let blue = (self.increment > 0.0 && self.decrement == 0.0).then(|| {
            ParamWarning::new(
                "decrement",
                "is zero, so that BLUE's drop probability never falls",
            )
        });
        target.into_iter().chain(blue).collect()
    }

    fn limit(&self) -> Option<Limit> {
        Some(self.limit)
    }

    fn build<P: Packet>(&self, context: QueueContext) -> Cobalt<P> {
        Cobalt {
            limit: self.limit.at(context.rate),
            ecn: self.ecn,
            config: CobaltConfig {
                target: self.target,
                interval: self.interval,
                mtu_time: context.rate.tx_time(self.mtu),
                increment: self.increment,
                decrement: self.decrement,
                first_gap: self.first_gap,
            },
            blue_threshold: self.blue_threshold,
            law: CobaltLaw::default(),
            stream: context.stream,
            sojourn: Span::ZERO,
            fifo: Fifo::new(),
        }
    }
}

/// The running queue.
#[derive(Debug)]
pub struct Cobalt<P> {
    limit: Limit,
    ecn: bool,
    config: CobaltConfig,
    blue_threshold: Option<Span>,
    law: CobaltLaw,
    stream: Stream,
    /// The queueing delay of the packet that left last.
    sojourn: Span,
    fifo: Fifo<P>,
}

impl<P: Packet> QueueDiscipline<P> for Cobalt<P> {
    #[inline]
    fn enqueue(&mut self, packet: P, now: Time, sink: &mut impl Sink<P>) {
        if self.limit.admits(self.fifo.backlog(), packet.size()) {
            self.fifo.push(packet, now);
        } else {
            self.law.on_overflow(&self.config, now);
            sink.dropped(packet, DropReason::Limit, now);
        }
    }

    #[inline]
    fn dequeue(&mut self, now: Time, sink: &mut impl Sink<P>) -> Option<P> {
        loop {
            let Some(mut packet) = self.fifo.pop() else {
                self.law.on_empty(&self.config, now);
                self.sojourn = Span::ZERO;
                return None;
            };
            self.sojourn = now - packet.enqueued();
            if self.blue_threshold.is_some_and(|most| self.sojourn > most) {
                self.law.on_long_wait(&self.config, now);
            }
            let can_be_marked = self.ecn && packet.ecn() != Ecn::NotEct;
            let stream = &mut self.stream;
            let draw = || stream.uniform();
            let decision = self
                .law
                .judge(&self.config, self.sojourn, 0, can_be_marked, now, draw);
            // The last packet can be marked but is not dropped.
            if decision.drop && self.fifo.backlog().packets > 0 {
                sink.dropped(packet, DropReason::Early, now);
                continue;
            }
            if decision.mark && packet.mark_ce() {
                sink.marked(&packet, now);
            }
            return Some(packet);
        }
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        self.fifo.backlog()
    }

    fn internals(&self) -> Internals {
        Internals {
            average: Some(self.sojourn.as_secs_f64()),
            probability: Some(self.law.probability()),
        }
    }
}
