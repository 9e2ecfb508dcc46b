//! Stochastic Fair BLUE: a first-in first-out queue with a drop probability for each flow, which is kept in
//! a filter of few bins.
//!
//! Source: W. Feng, D. Kandlur, D. Saha and K. Shin, "Stochastic Fair Blue: A Queue
//! Management Algorithm for Enforcing Fairness", INFOCOM 2001, section III; constants and
//! rules as in Linux 6.1, `sch_sfb`.
//!
//! | symbol | unit | meaning |
//! |---|---|---|
//! | L | 1 | levels, 8 |
//! | N | 1 | bins of a level, 16 |
//! | q | packets | waiting packets of the flows in a bin |
//! | p | 1 | probability of a bin |
//! | d1, d2 | 1 | increment and decrement of p |
//!
//! ```text
//! an arrival's flow has a bin in each level; in each of these
//!     q = 0            p -= d2
//!     q >= bin_size    p += d1
//! p_min, q_min         the smallest p and q of the flow's bins
//! q_min >= max         dropped
//! p_min = 1            the flow does not respond: passes at penalty_rate, otherwise dropped
//! otherwise            marked or dropped with probability p_min; a packet that could be
//!                      marked is still dropped with probability 2 (p_min - 1/2)
//! ```
//!
//! A flow that shares all of its bins with a flow that does not respond is treated like that flow. So there
//! are two sets of bins with different hashes. After `rehash` the other set is used; at the time `warmup`
//! before that, it starts to count the flows that do not respond. The old set gets a new hash. Here its
//! probabilities are also reset (section III-C of the paper); the kernel keeps them, although they belong
//! to other flows then.

use std::collections::VecDeque;
use std::sync::Arc;

use redtail_core::{Metric, Packet, ParamError, ParamWarning, Span, Stream, Time, metrics, params};

use crate::fifo::Fifo;
use crate::fq::FlowHash;
use crate::signal::mark_or_drop;
use crate::{
    Backlog, DropReason, FlowTable, Internals, Limit, LinkFacts, QueueContext, QueueDiscipline,
    QueueKind, Report, Sink,
};

params! {
    /// Stochastic Fair BLUE (Feng et al. 2001): a drop probability for each flow, in a filter of few bins.
    pub struct SfbParams {
        /// Limit on the waiting packets: in packets, in bytes, in time at the link's rate, or a list of these.
        limit: Limit = Limit::packets(1000), "Linux 6.1, `sch_sfb` (an interface's `txqueuelen`, 1000).";
        /// Number of waiting packets of a bin at and above which its probability rises.
        bin_size: u32 = 20, "Linux 6.1, `sch_sfb`.";
        /// Number of waiting packets of a flow's smallest bin at and above which its arrivals are dropped.
        max: u32 = 25, "Linux 6.1, `sch_sfb`.";
        /// Amount added to a bin's probability by an arrival that finds the bin full.
        increment: f64 = 0.001, "Linux 6.1, `sch_sfb` (0.1 %).";
        /// Amount subtracted from a bin's probability by an arrival that finds the bin empty.
        decrement: f64 = 1.0 / 6000.0, "Linux 6.1, `sch_sfb` (1/6000).";
        /// Time for which one hash function is used.
        rehash: Span = Span::from_s(600), "Linux 6.1, `sch_sfb`.";
        /// Time before a change of the hash function at which the bins of the next function also start to count the flows that do not respond.
        warmup: Span = Span::from_s(60), "Linux 6.1, `sch_sfb`.";
        /// Packets per second that all flows that do not respond may send; 0 for none.
        penalty_rate: u32 = 10, "Linux 6.1, `sch_sfb`.";
        /// Packets that all flows that do not respond may send in a burst; 0 for none.
        penalty_burst: u32 = 20, "Linux 6.1, `sch_sfb`.";
        /// Mark ECN-capable packets instead of dropping them.
        ecn: bool = true, "on as in Linux 6.1, `sch_sfb`.";
    }
}

/// A probability of 1. Probabilities are whole numbers, so that a thousand steps of a thousandth make
/// exactly 1: only at 1 a flow counts as one that does not respond.
const ONE: u64 = 1_000_000_000_000;

const LEVELS: usize = 8;
const BINS: usize = 16;

metrics! {
    /// The metrics of `sfb`.
    pub const METRICS of Queue;

    /// Packets of flows whose probability is 1 that were dropped because the rate allowed to such flows was used up.
    PENALTY_DROPS = "penalty_drops", Count, "Packets dropped of flows at a probability of 1", "penalty drops";
    /// Packets that were dropped because every bin of their flow was full.
    BIN_DROPS = "bin_drops", Count, "Packets dropped for full bins", "bin drops";
}

impl QueueKind for SfbParams {
    type Queue<P: Packet> = Sfb<P>;

    const METRICS: &'static [&'static [&'static Metric]] = &[METRICS];

    fn example() -> &'static str {
        ""
    }

    fn check(&self) -> Result<(), ParamError> {
        self.limit.check()?;
        for (key, value) in [("increment", self.increment), ("decrement", self.decrement)] {
            if !(value > 0.0 && value <= 1.0) {
                return Err(ParamError::new(
                    key,
                    "is no change of a probability",
                    "a number above 0 and up to 1",
                ));
            }
        }
        if self.bin_size == 0 {
            return Err(ParamError::new(
                "bin_size",
                "is zero, so that empty bins would be full",
                "a number from 1 on",
            ));
        }
        if self.max < self.bin_size {
            return Err(ParamError::new(
                "max",
                format!("is below bin_size ({})", self.bin_size),
                format!("at least {}", self.bin_size),
            ));
        }
        if self.rehash == Span::ZERO {
            return Err(ParamError::new(
                "rehash",
                "is zero",
                "a time such as \"600 s\"",
            ));
        }
        if self.warmup > self.rehash {
            return Err(ParamError::new(
                "warmup",
                format!("is longer than rehash ({})", self.rehash),
                format!("at most \"{}\"", self.rehash),
            ));
        }
        Ok(())
    }

    fn warnings(&self, link: &LinkFacts) -> Vec<ParamWarning> {
        let Some(limit) = self.limit.at(link.rate).packets else {
            return Vec::new();
        };
        let short = (limit <= u64::from(self.bin_size)).then(|| {
            ParamWarning::new(
                "bin_size",
                format!(
                    "is not below the limit (\"{}\"), so no probability ever rises",
                    self.limit
                ),
            )
        });
        short.into_iter().collect()
    }

    fn limit(&self) -> Option<Limit> {
        Some(self.limit)
    }

    fn build<P: Packet>(&self, mut context: QueueContext) -> Sfb<P> {
        let set = |stream: &mut Stream| BinSet {
            hash: FlowHash::draw(stream),
            bins: [[Bin::default(); BINS]; LEVELS],
        };
        Sfb {
            limit: self.limit.at(context.rate),
            facts: Arc::clone(&context.link.flows),
            sets: Box::new([set(&mut context.stream), set(&mut context.stream)]),
            params: self.clone(),
            steps: Steps {
                bin_size: self.bin_size,
                increment: (self.increment * ONE as f64).round() as u64,
                decrement: (self.decrement * ONE as f64).round() as u64,
            },
            stream: context.stream,
            active: 0,
            since: Time::ZERO,
            warm: false,
            tokens: u64::from(self.penalty_burst),
            filled: Time::ZERO,
            probability: 0.0,
            fifo: Fifo::new(),
            places: VecDeque::new(),
            penalty_drops: 0,
            bin_drops: 0,
        }
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Bin {
    packets: u32,
    /// A probability, in parts of [`ONE`].
    probability: u64,
}

#[derive(Debug)]
struct BinSet {
    hash: FlowHash,
    bins: [[Bin; BINS]; LEVELS],
}

/// The steps of the probabilities.
#[derive(Clone, Copy, Debug)]
struct Steps {
    bin_size: u32,
    /// A probability, in parts of [`ONE`].
    increment: u64,
    decrement: u64,
}

/// The bins of a flow: four bits for each level.
type Places = u32;

impl BinSet {
    /// The bins of the flow with this key.
    fn places(&self, key: u64) -> Places {
        (self.hash.of(key) >> 32) as Places
    }

    #[inline]
    fn each(&mut self, places: Places) -> impl Iterator<Item = &mut Bin> {
        let bins = self.bins.iter_mut().enumerate();
        bins.map(move |(level, bins)| &mut bins[(places >> (4 * level)) as usize % BINS])
    }

    /// Updates the probabilities of these bins. Returns the smallest probability and the smallest number of
    /// packets.
    #[inline]
    fn on_arrival(&mut self, places: Places, steps: &Steps) -> (u64, u32) {
        let mut least = (ONE, u32::MAX);
        for bin in self.each(places) {
            if bin.packets == 0 {
                bin.probability = bin.probability.saturating_sub(steps.decrement);
            } else if bin.packets >= steps.bin_size {
                bin.probability = (bin.probability + steps.increment).min(ONE);
            }
            least = (least.0.min(bin.probability), least.1.min(bin.packets));
        }
        least
    }
}

/// The running queue.
#[derive(Debug)]
pub struct Sfb<P> {
    limit: Limit,
    facts: Arc<FlowTable>,
    params: SfbParams,
    steps: Steps,
    stream: Stream,
    sets: Box<[BinSet; 2]>,
    /// The set of bins that decides.
    active: usize,
    /// The time since which this set decides.
    since: Time,
    /// Whether the other set counts flows that do not respond.
    warm: bool,
    /// The number of packets that flows that do not respond may send now.
    tokens: u64,
    filled: Time,
    /// The drop probability of the latest arrival.
    probability: f64,
    fifo: Fifo<P>,
    /// The bins that count each waiting packet, in either set.
    places: VecDeque<[Option<Places>; 2]>,
    penalty_drops: u64,
    bin_drops: u64,
}

impl<P: Packet> Sfb<P> {
    #[inline]
    fn change_sets(&mut self, now: Time) {
        let age = now - self.since;
        if age > self.params.rehash {
            let left = &mut self.sets[self.active];
            left.hash = FlowHash::draw(&mut self.stream);
            for bin in left.bins.as_flattened_mut() {
                bin.probability = 0;
            }
            self.active ^= 1;
            self.since = now;
            self.warm = false;
        } else {
            self.warm =
                self.params.warmup > Span::ZERO && age + self.params.warmup > self.params.rehash;
        }
    }

    /// Whether a flow that does not respond may send one more packet.
    fn pays(&mut self, now: Time) -> bool {
        if self.tokens == 0 {
            // At most ten seconds' tokens, as in the kernel.
            let age = (now - self.filled).min(Span::from_s(10)).as_ps();
            let earned = u128::from(age) * u128::from(self.params.penalty_rate);
            let earned = (earned / u128::from(Span::from_s(1).as_ps())) as u64;
            // A fraction of a packet is kept. The kernel drops it, so that no packet of a fast flood
            // passes.
            if earned > 0 {
                self.tokens = earned.min(u64::from(self.params.penalty_burst));
                self.filled = now;
            }
        }
        let pays = self.params.penalty_rate > 0 && self.tokens > 0;
        self.tokens -= u64::from(pays);
        pays
    }
}

impl<P: Packet> QueueDiscipline<P> for Sfb<P> {
    #[inline]
    fn enqueue(&mut self, packet: P, now: Time, sink: &mut impl Sink<P>) {
        if !self.limit.admits(self.fifo.backlog(), packet.size()) {
            sink.dropped(packet, DropReason::Limit, now);
            return;
        }
        self.change_sets(now);
        let (active, other) = (self.active, self.active ^ 1);
        let mut places = [None; 2];
        let key = self.facts.key(packet.flow());
        let place = self.sets[active].places(key);
        places[active] = Some(place);
        let (probability, packets) = self.sets[active].on_arrival(place, &self.steps);
        self.probability = probability as f64 / ONE as f64;

        let packet = if packets >= self.params.max {
            self.bin_drops += 1;
            sink.dropped(packet, DropReason::Early, now);
            return;
        } else if probability == ONE {
            if self.warm {
                let place = self.sets[other].places(key);
                places[other] = Some(place);
                self.sets[other].on_arrival(place, &self.steps);
            }
            if !self.pays(now) {
                self.penalty_drops += 1;
                sink.dropped(packet, DropReason::Forced, now);
                return;
            }
            packet
        } else {
            let drawn = self.stream.uniform();
            if drawn < self.probability {
                let ecn = self.params.ecn && drawn >= 2.0 * (self.probability - 0.5);
                match mark_or_drop(packet, ecn, DropReason::Early, now, sink) {
                    Some(packet) => packet,
                    None => return,
                }
            } else {
                packet
            }
        };
        for (set, place) in self.sets.iter_mut().zip(places) {
            if let Some(place) = place {
                set.each(place).for_each(|bin| bin.packets += 1);
            }
        }
        self.places.push_back(places);
        self.fifo.push(packet, now);
    }

    #[inline]
    fn dequeue(&mut self, _now: Time, _sink: &mut impl Sink<P>) -> Option<P> {
        let packet = self.fifo.pop()?;
        let places = self.places.pop_front().expect("one for each packet");
        for (set, place) in self.sets.iter_mut().zip(places) {
            if let Some(place) = place {
                set.each(place).for_each(|bin| bin.packets -= 1);
            }
        }
        Some(packet)
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

    fn start_measuring(&mut self, _now: Time) {
        (self.penalty_drops, self.bin_drops) = (0, 0);
    }

    fn report(&self, _now: Time, report: &mut Report<'_>) {
        report.tell(PENALTY_DROPS, self.penalty_drops as f64);
        report.tell(BIN_DROPS, self.bin_drops as f64);
    }
}
