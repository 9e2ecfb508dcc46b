//! CoDel: a first-in first-out queue with the law of [`crate::laws::codel`], which decides when packets
//! leave.
//!
//! Source: RFC 8289; defaults, `ecn` and `ce_threshold` as in Linux 6.1, `sch_codel`.

use redtail_core::{Bytes, Ecn, Packet, ParamError, ParamWarning, Span, Time, params};

use crate::fifo::Fifo;
use crate::laws::codel::{CodelConfig, CodelDecision, CodelLaw, Head, InverseSqrt};
use crate::{
    Backlog, DropReason, Internals, Limit, LinkFacts, QueueContext, QueueDiscipline, QueueKind,
    Sink,
};

params! {
    /// Controlled Delay: drops or marks at the head while packets have waited longer than a target (RFC 8289).
    pub struct CodelParams {
        /// Limit on the waiting packets: in packets, in bytes, in time at the link's rate, or a list of these.
        limit: Limit = Limit::packets(1000), "Linux 6.1, `sch_codel` (`DEFAULT_CODEL_LIMIT`).";
        /// Acceptable standing queueing delay.
        target: Span = Span::from_ms(5), "RFC 8289, section 4.3.";
        /// Time that the delay must stay at or above `target` before the first signal; about the round-trip time of most flows.
        interval: Span = Span::from_ms(100), "RFC 8289, section 4.2.";
        /// Mark ECN-capable packets instead of dropping them.
        ecn: bool = false, "off as in Linux 6.1, `sch_codel`.";
        /// Mark every ECN-capable packet that has waited longer than this, independently of the law's decision and of `ecn`.
        ce_threshold: Option<Span>, "none, as in Linux 6.1, `sch_codel`.";
        /// No packet is dropped when no more than this waits behind it.
        mtu: Bytes = Bytes::new(1500), "RFC 8289, section 5.3 (`maxpacket`), for Ethernet.";
        /// How the gaps between signals are computed.
        inverse_sqrt: InverseSqrt = InverseSqrt::Exact, "RFC 8289, section 5.6.";
    }
}

/// Refuses a target and an interval that contradict each other.
pub(crate) fn check_delays(target: Span, interval: Span) -> Result<(), ParamError> {
    if target == Span::ZERO {
        return Err(ParamError::new(
            "target",
            "is zero, so that every queue is too long",
            "a time such as \"5 ms\"",
        ));
    }
    if interval <= target {
        return Err(ParamError::new(
            "interval",
            format!("is not above target ({target})"),
            format!("more than \"{target}\""),
        ));
    }
    Ok(())
}

/// Warns of a target that is shorter than the transmission time of a packet.
pub(crate) fn warn_of_target(target: Span, mtu: Bytes, link: &LinkFacts) -> Option<ParamWarning> {
    let packet = match link.largest_packet {
        Bytes::ZERO => mtu,
        known => known,
    };
    let time = link.rate.tx_time(packet);
    (target < time).then(|| {
        ParamWarning::new(
            "target",
            format!(
                "is below the time of one packet at this rate ({time}), so two packets are too many"
            ),
        )
    })
}

impl QueueKind for CodelParams {
    type Queue<P: Packet> = Codel<P>;

    fn example() -> &'static str {
        r#"limit = "250 packets""#
    }

    fn check(&self) -> Result<(), ParamError> {
        self.limit.check()?;
        check_delays(self.target, self.interval)
    }

    fn warnings(&self, link: &LinkFacts) -> Vec<ParamWarning> {
        let target = warn_of_target(self.target, self.mtu, link);
        target.into_iter().collect()
    }

    fn limit(&self) -> Option<Limit> {
        Some(self.limit)
    }

    fn build<P: Packet>(&self, context: QueueContext) -> Codel<P> {
        Codel {
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
            law: CodelLaw::default(),
            sojourn: Span::ZERO,
            fifo: Fifo::new(),
        }
    }
}

/// The actions that CoDel's law requests from its queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Signals {
    pub law: CodelConfig,
    pub ecn: bool,
    pub ce_threshold: Option<Span>,
}

impl Signals {
    /// Returns the next packet that the law lets pass, marked or not. `take` gives the packets, each with
    /// the number of bytes that wait behind it.
    #[inline]
    pub fn dequeue<P: Packet>(
        &self,
        law: &mut CodelLaw,
        now: Time,
        sink: &mut impl Sink<P>,
        mut take: impl FnMut() -> Option<(P, u64)>,
    ) -> Option<P> {
        loop {
            let Some((mut packet, behind)) = take() else {
                law.on_empty();
                return None;
            };
            let sojourn = now - packet.enqueued();
            let ect = packet.ecn() != Ecn::NotEct;
            let head = Head {
                sojourn,
                behind,
                can_be_marked: self.ecn && ect,
            };
            let decision = law.judge(&self.law, head, now);
            if decision == CodelDecision::Drop {
                sink.dropped(packet, DropReason::Early, now);
                continue;
            }
            let over = self.ce_threshold.is_some_and(|most| sojourn > most);
            if (decision == CodelDecision::Mark || over) && packet.mark_ce() {
                sink.marked(&packet, now);
            }
            return Some(packet);
        }
    }
}

/// The running queue.
#[derive(Debug)]
pub struct Codel<P> {
    limit: Limit,
    signals: Signals,
    law: CodelLaw,
    /// The queueing delay of the packet that left last.
    sojourn: Span,
    fifo: Fifo<P>,
}

impl<P: Packet> QueueDiscipline<P> for Codel<P> {
    #[inline]
    fn enqueue(&mut self, packet: P, now: Time, sink: &mut impl Sink<P>) {
        if self.limit.admits(self.fifo.backlog(), packet.size()) {
            self.fifo.push(packet, now);
        } else {
            sink.dropped(packet, DropReason::Limit, now);
        }
    }

    #[inline]
    fn dequeue(&mut self, now: Time, sink: &mut impl Sink<P>) -> Option<P> {
        let fifo = &mut self.fifo;
        let packet = self.signals.dequeue(&mut self.law, now, sink, || {
            let packet = fifo.pop()?;
            Some((packet, fifo.backlog().bytes))
        });
        self.sojourn = match &packet {
            Some(packet) => now - packet.enqueued(),
            None => Span::ZERO,
        };
        packet
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        self.fifo.backlog()
    }

    fn internals(&self) -> Internals {
        Internals {
            average: Some(self.sojourn.as_secs_f64()),
            probability: None,
        }
    }
}
