//! BLUE: a drop probability that rises at a loss and falls while the link is idle.
//!
//! Source: W. Feng, K. G. Shin, D. D. Kandlur and D. Saha, "The BLUE Active Queue
//! Management Algorithms", IEEE/ACM Transactions on Networking 10(4), 2002, figure 3.
//!
//! | symbol | meaning | unit |
//! |---|---|---|
//! | p_m | drop or mark probability | 1 |
//! | d1, d2 | increment and decrement of p_m | 1 |
//! | freeze_time | smallest time between two changes of p_m | s |
//! | L | backlog that counts as a loss (optional) | packets or bytes |
//!
//! ```text
//! packet lost for want of room, or backlog above L:
//!     if now - last_update >= freeze_time:  p_m <- min(1, p_m + d1), last_update <- now
//! link idle, at its beginning and every freeze_time while it lasts:
//!     if now - last_update >= freeze_time:  p_m <- max(0, p_m - d2), last_update <- now
//! ```
//!
//! The figure has one event for an idle link. In the authors' simulator the event repeats while the link
//! stays idle (ns-1.1, as ported to ns-3), and so it does here.

use redtail_core::{Packet, ParamError, ParamWarning, QueueSize, Span, Stream, Time, params};

use crate::fifo::Fifo;
use crate::gauge;
use crate::refuse;
use crate::signal::mark_or_drop;
use crate::{
    Backlog, DropReason, Internals, Limit, LinkFacts, QueueContext, QueueDiscipline, QueueKind,
    Sink,
};

params! {
    /// BLUE (Feng, Shin, Kandlur and Saha 2002).
    pub struct BlueParams {
        /// Limit on the waiting packets: in packets, in bytes, in time at the link's rate, or a list of these.
        limit: Limit;
        /// Amount added to the probability at a loss.
        increment: f64 = 0.0025, "ns-1.1's BLUE, as ported to ns-3 (`Increment`).";
        /// Amount subtracted from the probability when the link is idle.
        decrement: f64 = 0.00025, "ns-1.1's BLUE, as ported to ns-3 (`Decrement`).";
        /// Smallest time between two changes of the probability.
        freeze_time: Span = Span::from_ms(100), "ns-1.1's BLUE, as ported to ns-3 (`FreezeTime`).";
        /// Backlog above which an arrival counts as a loss; without it only losses count (Feng et al. 2002, section III).
        threshold: Option<QueueSize>;
        /// Mark ECN-capable packets instead of dropping them early.
        ecn: bool = false, "Feng et al. 2002, section III; off as everywhere here.";
    }
}

impl QueueKind for BlueParams {
    type Queue<P: Packet> = Blue<P>;

    fn example() -> &'static str {
        r#"limit = "100 packets""#
    }

    fn check(&self) -> Result<(), ParamError> {
        self.limit.check()?;
        refuse::unless_probability("increment", self.increment)?;
        refuse::unless_probability("decrement", self.decrement)?;
        refuse::unless_some_time("freeze_time", self.freeze_time)?;
        match self.threshold {
            Some(threshold) => refuse::unless_some_size("threshold", threshold),
            None => Ok(()),
        }
    }

    fn limit(&self) -> Option<Limit> {
        Some(self.limit)
    }

    fn warnings(&self, link: &LinkFacts) -> Vec<ParamWarning> {
        let mut warnings = Vec::new();
        if self.decrement >= self.increment {
            let clause = "is not below increment, so the probability hardly stays above 0";
            warnings.push(ParamWarning::new("decrement", clause));
        }
        let threshold = self.threshold;
        warnings.extend(threshold.and_then(|threshold| {
            gauge::out_of_reach("threshold", threshold, self.limit, link.rate)
        }));
        warnings
    }

    fn build<P: Packet>(&self, context: QueueContext) -> Blue<P> {
        Blue {
            limit: self.limit.at(context.rate),
            increment: self.increment,
            decrement: self.decrement,
            freeze_time: self.freeze_time,
            threshold: self.threshold.map(|threshold| threshold.at(context.rate)),
            ecn: self.ecn,
            probability: 0.0,
            last_update: None,
            idle_since: Some(Time::ZERO),
            stream: context.stream,
            fifo: Fifo::new(),
        }
    }
}

/// The running queue.
#[derive(Debug)]
pub struct Blue<P> {
    limit: Limit,
    increment: f64,
    decrement: f64,
    freeze_time: Span,
    threshold: Option<QueueSize>,
    ecn: bool,
    probability: f64,
    last_update: Option<Time>,
    /// The time since which the link has been idle.
    idle_since: Option<Time>,
    stream: Stream,
    fifo: Fifo<P>,
}

impl<P: Packet> Blue<P> {
    fn on_loss(&mut self, now: Time) {
        let frozen = |last| now - last < self.freeze_time;
        if !self.last_update.is_some_and(frozen) {
            self.probability = (self.probability + self.increment).min(1.0);
            self.last_update = Some(now);
        }
    }

    /// Applies the decrements of an idle time up to now.
    fn on_idle(&mut self, now: Time) {
        let Some(since) = self.idle_since else {
            return;
        };
        let thawed = self
            .last_update
            .map_or(since, |last| last + self.freeze_time);
        let first = since.max(thawed);
        if first > now || self.probability == 0.0 {
            return;
        }
        let more = (now - first).as_ps() / self.freeze_time.as_ps();
        let lowered = self.probability - (more as f64 + 1.0) * self.decrement;
        self.probability = lowered.max(0.0);
        self.last_update = Some(first + self.freeze_time * more);
    }
}

impl<P: Packet> QueueDiscipline<P> for Blue<P> {
    #[inline]
    fn enqueue(&mut self, packet: P, now: Time, sink: &mut impl Sink<P>) {
        self.on_idle(now);
        self.idle_since = None;
        let backlog = self.fifo.backlog();
        if !self.limit.admits(backlog, packet.size()) {
            self.on_loss(now);
            sink.dropped(packet, DropReason::Limit, now);
            return;
        }
        let above = |at| gauge::amount(backlog, at) > gauge::number(at);
        if self.threshold.is_some_and(above) {
            self.on_loss(now);
        }
        let p = self.probability;
        let packet = if p > 0.0 && self.stream.uniform() < p {
            mark_or_drop(packet, self.ecn, DropReason::Early, now, sink)
        } else {
            Some(packet)
        };
        if let Some(packet) = packet {
            self.fifo.push(packet, now);
        }
    }

    #[inline]
    fn dequeue(&mut self, now: Time, _sink: &mut impl Sink<P>) -> Option<P> {
        let packet = self.fifo.pop();
        if packet.is_none() {
            self.idle_since.get_or_insert(now);
            self.on_idle(now);
        }
        packet
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        self.fifo.backlog()
    }

    fn internals(&self) -> Internals {
        Internals {
            average: None,
            probability: Some(self.probability),
        }
    }
}
