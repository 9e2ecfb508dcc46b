//! Step: every ECN-capable packet above a threshold is marked. This is the simple AQM of L4S and of data
//! centres.
//!
//! Source: M. Alizadeh et al., "Data Center TCP (DCTCP)", ACM SIGCOMM 2010, section 3.1,
//! for thresholds in packets or bytes: an arrival is marked if it finds a backlog of more than K. RFC 9332,
//! appendix A, and Linux (`sch_dualpi2`, `step_thresh`) for thresholds in time: a packet is marked if its
//! delay is longer when it leaves.
//!
//! Packets that are not ECN-capable are dropped only by the limit.

use redtail_core::{Packet, ParamError, ParamWarning, QueueSize, Span, Time, params};

use crate::fifo::Fifo;
use crate::gauge;
use crate::refuse;
use crate::{
    Backlog, DropReason, Limit, LinkFacts, QueueContext, QueueDiscipline, QueueKind, Sink,
};

params! {
    /// Marks every ECN-capable packet above a threshold.
    pub struct StepParams {
        /// Limit on the waiting packets: in packets, in bytes, in time at the link's rate, or a list of these.
        limit: Limit;
        /// In packets or bytes: the largest backlog at which an arrival is not marked; in time: the longest queueing delay at which a leaving packet is not marked.
        threshold: QueueSize = QueueSize::Time(Span::from_ms(1)), "Linux, sch_dualpi2 (`step_thresh` 1 ms).";
    }
}

impl QueueKind for StepParams {
    type Queue<P: Packet> = Step<P>;

    fn example() -> &'static str {
        r#"limit = "250 packets"
threshold = "20 packets""#
    }

    fn check(&self) -> Result<(), ParamError> {
        self.limit.check()?;
        refuse::unless_some_size("threshold", self.threshold)
    }

    fn limit(&self) -> Option<Limit> {
        Some(self.limit)
    }

    fn warnings(&self, link: &LinkFacts) -> Vec<ParamWarning> {
        let mut warnings = Vec::new();
        let most = gauge::limit_like(self.limit, self.threshold, link.rate);
        if most.is_some_and(|most| most <= gauge::number(self.threshold.at(link.rate))) {
            let clause = format!(
                "is not below the limit (\"{}\"): nothing is marked",
                self.limit
            );
            warnings.push(ParamWarning::new("threshold", clause));
        }
        let packet = gauge::packet_size(None, link);
        let one = link.rate.tx_time(packet);
        if matches!(self.threshold, QueueSize::Time(threshold) if threshold < one) {
            let clause = format!(
                "is below the time that one packet of {packet} takes here ({:.3} ms): whatever \
                 waits is marked",
                one.as_secs_f64() * 1e3
            );
            warnings.push(ParamWarning::new("threshold", clause));
        }
        warnings
    }

    fn build<P: Packet>(&self, context: QueueContext) -> Step<P> {
        Step {
            limit: self.limit.at(context.rate),
            threshold: self.threshold,
            fifo: Fifo::new(),
        }
    }
}

/// The running queue.
#[derive(Debug)]
pub struct Step<P> {
    limit: Limit,
    threshold: QueueSize,
    fifo: Fifo<P>,
}

impl<P: Packet> QueueDiscipline<P> for Step<P> {
    #[inline]
    fn enqueue(&mut self, mut packet: P, now: Time, sink: &mut impl Sink<P>) {
        let backlog = self.fifo.backlog();
        if !self.limit.admits(backlog, packet.size()) {
            sink.dropped(packet, DropReason::Limit, now);
            return;
        }
        let beyond = match self.threshold {
            QueueSize::Packets(threshold) => backlog.packets > threshold,
            QueueSize::Bytes(threshold) => backlog.bytes > threshold,
            QueueSize::Time(_) => false,
        };
        if beyond && packet.mark_ce() {
            sink.marked(&packet, now);
        }
        self.fifo.push(packet, now);
    }

    #[inline]
    fn dequeue(&mut self, now: Time, sink: &mut impl Sink<P>) -> Option<P> {
        let mut packet = self.fifo.pop()?;
        if let QueueSize::Time(threshold) = self.threshold
            && now - packet.enqueued() > threshold
            && packet.mark_ce()
        {
            sink.marked(&packet, now);
        }
        Some(packet)
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        self.fifo.backlog()
    }
}
