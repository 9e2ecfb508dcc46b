//! PIE: a first-in first-out queue with the law of [`crate::laws::pie`].
//!
//! Source: RFC 8033; with `flavour = "linux"`, Linux's `sch_pie`. An arrival that the law chooses is
//! dropped, or marked while the probability is not too high (section 5.1: MAX_ECNTH). With `activation`
//! (section 5.3), the law is inactive until the backlog is a third of the limit, and again when delay and
//! probability are 0.

use redtail_core::{Bytes, Packet, ParamError, ParamWarning, Span, Stream, Time, params};

use crate::fifo::Fifo;
use crate::gauge;
use crate::laws::pie::{Decay, Delay, Flavour, PieConfig, PieDecision, PieLaw};
use crate::refuse;
use crate::signal::{Ticks, mark_or_drop};
use crate::{
    Backlog, DropReason, Internals, Limit, LinkFacts, QueueContext, QueueDiscipline, QueueKind,
    Sink,
};

params! {
    /// Proportional Integral controller Enhanced (RFC 8033).
    pub struct PieParams {
        /// Limit on the waiting packets: in packets, in bytes, in time at the link's rate, or a list of these.
        limit: Limit;
        /// Queueing delay to hold.
        target: Span = Span::from_ms(15), "RFC 8033, section 4.2 (QDELAY_REF).";
        /// Time between updates of the probability; at least "1 us", the unit in which Linux counts it.
        update: Span = Span::from_ms(15), "RFC 8033, section 4.2 (T_UPDATE); Linux rounds it to 16 ms at 250 Hz.";
        /// Gain of the deviation from the target, in 1/s.
        alpha: f64 = 0.125, "RFC 8033, section 4.2 (1/8 Hz).";
        /// Gain of the delay's change, in 1/s.
        beta: f64 = 1.25, "RFC 8033, section 4.2 (1 + 1/4 Hz).";
        /// Burst that passes without drops after a time without congestion; "0 s" for none.
        max_burst: Span = Span::from_ms(150), "RFC 8033, section 4.4 (MAX_BURST).";
        /// Derandomize drops: prevent drops that follow each other closely and long times without drops (RFC 8033, section 5.4).
        derandomize: bool = true, "RFC 8033, section 5.4; always on in Linux.";
        /// How the queueing delay is determined.
        delay: Delay = Delay::Timestamps, "RFC 8033, sections 4.3 and 5.2, allows both; Linux's default.";
        /// At which delays the probability decays, in addition to the change by the controller.
        decay: Decay = Decay::NoDelay, "RFC 8033 contradicts itself; section 4.2 and Linux, not appendix A.";
        /// Multiply the probability by a packet's size divided by `mean_packet`, for packets up to that size.
        byte_mode: bool = false, "off as in Linux (`bytemode`).";
        /// Size of a typical packet: no packet is dropped while no more than two of them wait. Without it, the largest packet that is known to cross the link, else 1500 B.
        mean_packet: Option<Bytes>;
        /// Keep PIE inactive until the backlog is a third of the limit.
        activation: bool = false, "optional in RFC 8033, section 5.3; Linux has it not.";
        /// Which implementation's details apply where RFC 8033 and Linux differ: those of the RFC or those of Linux.
        flavour: Flavour = Flavour::Rfc, "RFC 8033; Linux's for comparisons with it.";
        /// Mark ECN-capable packets instead of dropping them early, while the probability is below `max_ecn`.
        ecn: bool = false, "RFC 8033, section 5.1; off as in Linux.";
        /// Probability at and above which ECN-capable packets are dropped like all other packets.
        max_ecn: f64 = 0.1, "RFC 8033, section 5.1 (MAX_ECNTH, 10 %).";
    }
}

/// Warns of a target that is shorter than the transmission time of one packet.
pub(crate) fn short_target(target: Span, link: &LinkFacts) -> Option<ParamWarning> {
    let packet = gauge::packet_size(None, link);
    let one = link.rate.tx_time(packet);
    let clause = format!(
        "is below the time that one packet of {packet} takes here ({:.3} ms): whatever waits is \
         too much",
        one.as_secs_f64() * 1e3
    );
    (target < one).then(|| ParamWarning::new("target", clause))
}

impl QueueKind for PieParams {
    type Queue<P: Packet> = Pie<P>;

    fn example() -> &'static str {
        r#"limit = "250 packets""#
    }

    fn check(&self) -> Result<(), ParamError> {
        self.limit.check()?;
        refuse::unless_some_time("target", self.target)?;
        refuse::unless_some_interval("update", self.update)?;
        refuse::unless_positive("alpha", self.alpha)?;
        refuse::unless_positive("beta", self.beta)?;
        refuse::unless_probability("max_ecn", self.max_ecn)?;
        refuse::unless_some_packet("mean_packet", self.mean_packet)?;
        if self.flavour == Flavour::Linux && self.activation {
            let problem = "is not in Linux, whose details were asked for";
            return Err(ParamError::new("activation", problem, "false"));
        }
        if self.flavour == Flavour::Linux && !self.derandomize {
            let problem = "cannot be off in Linux, whose details were asked for";
            return Err(ParamError::new("derandomize", problem, "true"));
        }
        if self.flavour == Flavour::Linux && self.decay != Decay::NoDelay {
            let problem = "is not in Linux, whose details were asked for";
            return Err(ParamError::new("decay", problem, "\"no-delay\""));
        }
        Ok(())
    }

    fn limit(&self) -> Option<Limit> {
        Some(self.limit)
    }

    fn warnings(&self, link: &LinkFacts) -> Vec<ParamWarning> {
        short_target(self.target, link).into_iter().collect()
    }

    fn build<P: Packet>(&self, context: QueueContext) -> Pie<P> {
        let mean_packet = gauge::packet_size(self.mean_packet, &context.link);
        Pie {
            limit: self.limit.at(context.rate),
            max_ecn: if self.ecn { self.max_ecn } else { 0.0 },
            // Linux still marks at the bound itself.
            at_bound: self.ecn && self.flavour == Flavour::Linux,
            full_packet: self.byte_mode.then_some(mean_packet),
            asleep: self.activation.then_some(true),
            law: PieLaw::new(PieConfig {
                target: self.target,
                interval: self.update,
                alpha: self.alpha,
                beta: self.beta,
                max_burst: self.max_burst,
                mean_packet,
                derandomize: self.derandomize,
                delay: self.delay,
                decay: self.decay,
                flavour: self.flavour,
            }),
            ticks: Ticks::every(self.update),
            stream: context.stream,
            fifo: Fifo::new(),
        }
    }
}

/// The running queue.
#[derive(Debug)]
pub struct Pie<P> {
    limit: Limit,
    /// The probability below which packets are marked.
    max_ecn: f64,
    at_bound: bool,
    /// The mean packet size in byte mode, otherwise `None`.
    full_packet: Option<Bytes>,
    /// Whether the law is inactive; `None` if it is always active.
    asleep: Option<bool>,
    law: PieLaw,
    ticks: Ticks,
    stream: Stream,
    fifo: Fifo<P>,
}

impl<P: Packet> Pie<P> {
    #[inline]
    fn catch_up(&mut self, now: Time) {
        let backlog = self.fifo.backlog().bytes;
        while self.ticks.due(now).is_some() {
            if self.asleep == Some(true) {
                self.ticks.skip(now);
                break;
            }
            self.law.update(backlog);
            if backlog == 0 && self.law.rests() {
                self.ticks.skip(now);
                if let Some(asleep) = &mut self.asleep {
                    *asleep = true;
                }
            }
        }
    }

    fn decision(&mut self, size: Bytes) -> PieDecision {
        if self.asleep == Some(true) {
            return PieDecision::Pass;
        }
        let relative_size = self
            .full_packet
            .filter(|&full| size <= full)
            .map(|full| size.as_u64() as f64 / full.as_u64() as f64);
        let backlog = self.fifo.backlog().bytes;
        self.law
            .on_arrival(backlog, relative_size, || self.stream.uniform())
    }
}

impl<P: Packet> QueueDiscipline<P> for Pie<P> {
    #[inline]
    fn enqueue(&mut self, packet: P, now: Time, sink: &mut impl Sink<P>) {
        self.catch_up(now);
        if !self.limit.admits(self.fifo.backlog(), packet.size()) {
            self.law.on_drop();
            sink.dropped(packet, DropReason::Limit, now);
            return;
        }
        let packet = match self.decision(packet.size()) {
            PieDecision::Pass => Some(packet),
            PieDecision::Early => {
                let p = self.law.probability();
                let ecn = p < self.max_ecn || (self.at_bound && p == self.max_ecn);
                mark_or_drop(packet, ecn, DropReason::Early, now, sink)
            }
        };
        match packet {
            Some(packet) => self.fifo.push(packet, now),
            None => self.law.on_drop(),
        }
        if self.asleep == Some(true) && self.limit.is_a_third(self.fifo.backlog()) {
            self.asleep = Some(false);
        }
    }

    #[inline]
    fn dequeue(&mut self, now: Time, _sink: &mut impl Sink<P>) -> Option<P> {
        self.catch_up(now);
        let packet = self.fifo.pop()?;
        let sojourn = now - packet.enqueued();
        let backlog = self.fifo.backlog().bytes;
        self.law.on_departure(packet.size(), sojourn, backlog, now);
        Some(packet)
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        self.fifo.backlog()
    }

    /// `average` is the queueing delay of the latest update, in seconds. A `probability` above 1, which is
    /// possible in Linux, is reported as 1.
    fn internals(&self) -> Internals {
        Internals {
            average: Some(self.law.delay()),
            probability: Some(self.law.probability().min(1.0)),
        }
    }
}
