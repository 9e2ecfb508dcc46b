//! SRED: stabilised RED, which estimates the number of flows from recently seen packets.
//!
//! Source: T. J. Ott, T. V. Lakshman and L. H. Wong, "SRED: Stabilized RED", IEEE INFOCOM
//! 1999, sections II and III.
//!
//! | symbol | meaning | unit |
//! |---|---|---|
//! | M | number of zombies: entries of recently seen flows | 1 |
//! | Hit | 1 if the arrival's flow is that of a zombie drawn at random, else 0 | 1 |
//! | P | frequency of hits; 1/P estimates the number of flows | 1 |
//! | q, B | backlog and limit | packets or bytes |
//! | p_sred, p_zap | drop probability from the backlog, and the one that is applied | 1 |
//!
//! ```text
//! an arrival: while the list is not full, its flow joins it and Hit = 0; else a zombie is
//!     drawn: the same flow is a hit; another is overwritten with probability p
//! P <- (1 - a) P + a Hit,   a = p / M
//! p_sred = p_max for B/3 <= q,  p_max / 4 for B/6 <= q < B/3,  0 below
//! p_zap  = p_sred min(1, 1 / (256 P)^2) (1 + Hit / P)        full; without the last factor: simple
//! ```

use std::sync::Arc;

use redtail_core::{Packet, ParamError, ParamWarning, Stream, Time, params};

use crate::fifo::Fifo;
use crate::refuse;
use crate::{
    Backlog, DropReason, FlowTable, Internals, Limit, LinkFacts, QueueContext, QueueDiscipline,
    QueueKind, Sink,
};

params! {
    /// Stabilised RED (Ott, Lakshman and Wong 1999).
    pub struct SredParams {
        /// Limit on the waiting packets: in packets, in bytes, in time at the link's rate, or a list of these. The drop probability depends on the backlog as a share of the limit.
        limit: Limit;
        /// Drop probability at a backlog of a third of the limit or more.
        max_p: f64 = 0.15, "Ott et al. 1999, section III (0.15).";
        /// Number of entries in the list of recently seen packets (zombies).
        zombies: u32 = 1000, "Ott et al. 1999, section II (M = 1000).";
        /// Probability that a zombie of another flow is overwritten.
        overwrite: f64 = 0.25, "Ott et al. 1999, section II (0.25).";
        /// Drop packets that match a zombie with a higher probability; these belong to flows with more than their share (full SRED).
        full: bool = true, "Ott et al. 1999, section III (\"full SRED\").";
    }
}

/// The largest number of zombies: a list of 4 MB.
const MOST_ZOMBIES: u32 = 1_000_000;

impl QueueKind for SredParams {
    type Queue<P: Packet> = Sred<P>;

    fn example() -> &'static str {
        r#"limit = "250 packets""#
    }

    fn check(&self) -> Result<(), ParamError> {
        self.limit.check()?;
        refuse::unless_probability("max_p", self.max_p)?;
        refuse::unless_probability("overwrite", self.overwrite)?;
        if self.zombies == 0 {
            return Err(ParamError::new("zombies", "is zero", "1 or more"));
        }
        if self.zombies > MOST_ZOMBIES {
            let problem = "is more than a list that is read at random should hold";
            return Err(ParamError::new(
                "zombies",
                problem,
                format!("up to {MOST_ZOMBIES}"),
            ));
        }
        Ok(())
    }

    fn limit(&self) -> Option<Limit> {
        Some(self.limit)
    }

    fn warnings(&self, link: &LinkFacts) -> Vec<ParamWarning> {
        let flows = link.flows.count();
        let clause = format!("is less than there are flows ({flows}), so hits tell little");
        ((self.zombies as usize) < flows)
            .then(|| ParamWarning::new("zombies", clause))
            .into_iter()
            .collect()
    }

    fn build<P: Packet>(&self, context: QueueContext) -> Sred<P> {
        Sred {
            limit: self.limit.at(context.rate),
            max_p: self.max_p,
            overwrite: self.overwrite,
            weight: self.overwrite / f64::from(self.zombies),
            full: self.full,
            places: self.zombies as usize,
            facts: Arc::clone(&context.link.flows),
            zombies: Vec::with_capacity(self.zombies as usize),
            hits: 0.0,
            probability: 0.0,
            stream: context.stream,
            fifo: Fifo::new(),
        }
    }
}

/// The running queue.
#[derive(Debug)]
pub struct Sred<P> {
    limit: Limit,
    max_p: f64,
    overwrite: f64,
    /// The weight a of one arrival in the frequency of hits.
    weight: f64,
    full: bool,
    /// The number M of zombies.
    places: usize,
    facts: Arc<FlowTable>,
    /// The list of zombies, up to M; each is the key of a flow.
    zombies: Vec<u64>,
    /// The frequency P of hits.
    hits: f64,
    /// The probability p_zap of the latest arrival.
    probability: f64,
    stream: Stream,
    fifo: Fifo<P>,
}

impl<P: Packet> Sred<P> {
    /// Compares the arrival with a zombie. Returns whether it is a hit.
    fn meet(&mut self, flow: u64) -> bool {
        if self.zombies.len() < self.places {
            self.zombies.push(flow);
            return false;
        }
        let drawn = (self.stream.uniform() * self.zombies.len() as f64) as usize;
        let hit = self.zombies[drawn] == flow;
        if !hit && self.stream.uniform() < self.overwrite {
            self.zombies[drawn] = flow;
        }
        hit
    }

    /// Returns the probability p_sred.
    fn by_backlog(&self) -> f64 {
        let Backlog { packets, bytes } = self.fifo.backlog();
        let holds = |part: u64| {
            let beyond = |limit: Option<u64>, is| limit.is_some_and(|limit| part * is >= limit);
            beyond(self.limit.packets, packets) || beyond(self.limit.bytes, bytes)
        };
        if holds(3) {
            self.max_p
        } else if holds(6) {
            self.max_p / 4.0
        } else {
            0.0
        }
    }
}

impl<P: Packet> QueueDiscipline<P> for Sred<P> {
    #[inline]
    fn enqueue(&mut self, packet: P, now: Time, sink: &mut impl Sink<P>) {
        let hit = self.meet(self.facts.key(packet.flow()));
        self.hits += self.weight * (f64::from(u8::from(hit)) - self.hits);
        let many = 1.0 / (256.0 * self.hits * 256.0 * self.hits);
        let mut p = self.by_backlog() * many.min(1.0);
        if self.full && hit {
            p *= 1.0 + 1.0 / self.hits;
        }
        self.probability = p.min(1.0);
        if !self.limit.admits(self.fifo.backlog(), packet.size()) {
            sink.dropped(packet, DropReason::Limit, now);
        } else if self.probability > 0.0 && self.stream.uniform() < self.probability {
            sink.dropped(packet, DropReason::Early, now);
        } else {
            self.fifo.push(packet, now);
        }
    }

    #[inline]
    fn dequeue(&mut self, _now: Time, _sink: &mut impl Sink<P>) -> Option<P> {
        self.fifo.pop()
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        self.fifo.backlog()
    }

    /// `average` is P, the frequency of hits, which is about 1 divided by the number of flows.
    fn internals(&self) -> Internals {
        Internals {
            average: Some(self.hits),
            probability: Some(self.probability),
        }
    }
}
