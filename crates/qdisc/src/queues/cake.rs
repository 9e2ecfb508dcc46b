//! CAKE: a shaper, classes by DSCP ("tins"), flow queueing that is fair to hosts, and
//! COBALT's law in each queue.
//!
//! Source: T. Høiland-Jørgensen, D. Täht and J. Morton, "Piece of CAKE: A Comprehensive
//! Queue Management Solution for Home Gateways", IEEE LANMAN 2018; rules and constants as
//! in Linux 6.1, `sch_cake`, its ACK filter included ([`crate::laws::ack_filter`]). Without NAT and
//! automatic rate.
//!
//! | symbol | unit | meaning |
//! |---|---|---|
//! | R | rate | the shaper's rate; a tin has a share of it |
//! | len | bytes | a packet's size with what the link adds |
//! | t_next | time | when the shaper lets the next packet go |
//! | load | 1 | bulk queues of a queue's sender or receiver, the larger |
//! | d | bytes | a queue's deficit; it sends while that is positive |
//!
//! ```text
//! shaper   t_next += len / R, from now on if nothing waited; no burst
//! tins     with a rate: the last one that keeps to its share, else the one that is due first
//!          without: Deficit Round Robin with the tins' quanta
//! queues   1024 in each tin, in sets of 8: a flow takes its own place, another of its set
//!          that is free, or shares its own
//! turns    Deficit Round Robin with new, old and decaying queues, quantum / load a round:
//!          d += k quantum / load, next turn k rounds on, k the least that makes d > 0, at most load
//! quantum  R / 4096 s, at least 300 B, at most a large packet
//! target   at least 1.5 packets' time at the tin's rate; interval = rtt + what that adds,
//!          at least twice the target
//! ```
//!
//! An empty queue stays in the list of decaying queues until its law is in its initial state.
//!
//! The kernel visits each old queue in each round, so that a packet costs as many visits as its host has bulk
//! queues, and it rounds each share to whole bytes at random. Here a queue gets at once the deficit of all
//! rounds until it can send, and is skipped in these rounds: a packet costs as many visits as it has quanta,
//! and one more. Shares are counted in fractions of a byte. So the load is that of the queue's latest turn,
//! which is at most one of its quanta ago.

use redtail_core::schemars::JsonSchema;
use redtail_core::serde::{Deserialize, Serialize};
use redtail_core::{
    Bytes, Dscp, Ecn, Metric, Packet, ParamError, ParamWarning, Rate, Span, Stream, Time, metrics,
    params, schemars, serde,
};
use std::sync::Arc;

use crate::facts::FlowTable;
use crate::fifo::Fifo;
use crate::figures::{BY_FLOW, BY_FLOW_WITH_LIMIT, FLOWS_ACTIVE, OVERLOAD_DROPS};
use crate::follow::{self, Follower};
use crate::fq::{FlowHash, Greatest, Lists, TimeAverage};
use crate::laws::ack_filter;
use crate::laws::cobalt::{CobaltConfig, CobaltLaw, FirstGap};
pub use crate::link_layer::Framing;
use crate::link_layer::{LinkLayerParams, MOST_FRAMING};
use crate::{
    Backlog, DropReason, FigureNames, Internals, Limit, LinkFacts, QueueContext, QueueDiscipline,
    QueueKind, Report, Sink, Wakeup,
};

params! {
    /// A shaper with flow queueing that is fair to hosts, classes by DSCP and COBALT (CAKE).
    pub struct CakeParams {
        /// Rate to shape to.
        rate: Option<Rate>, "none, the link's own, as in Linux 6.1, `sch_cake`.";
        /// Bytes that the link behind the shaper adds to each packet; up to "256 B".
        overhead: Bytes = Bytes::ZERO, "Linux 6.1, `sch_cake`.";
        /// Smallest packet on the link behind the shaper, `overhead` included; up to "256 B".
        mpu: Bytes = Bytes::ZERO, "Linux 6.1, `sch_cake`.";
        /// How the link behind the shaper frames packets.
        framing: Framing = Framing::None, "Linux 6.1, `sch_cake`.";
        /// How DSCPs are mapped to tins.
        diffserv: Diffserv = Diffserv::Diffserv3, "Linux 6.1, `sch_cake`.";
        /// Which hosts and flows share the link equally.
        isolation: Isolation = Isolation::TripleIsolate, "Linux 6.1, `sch_cake`.";
        /// Round-trip time of most flows: it is the interval of the law, and the target is a twentieth of it.
        rtt: Span = Span::from_ms(100), "Linux 6.1, `sch_cake` and `tc`.";
        /// Mark ECN-capable packets that CoDel would drop; BLUE still drops them.
        ecn: bool = true, "on as in Linux 6.1, `sch_cake`.";
        /// Time from the first moment at which the delay exceeds the target to the first signal, in each queue.
        first_gap: FirstGap = FirstGap::None, "what Linux 6.1, `sch_cake`, does (`cobalt_vars_init`); its comment has an interval.";
        /// Set the DSCP of all packets to best effort after the tin has been chosen.
        wash: bool = false, "off as in Linux 6.1, `sch_cake`.";
        /// Shape traffic that has already crossed a bottleneck: the shaper also counts dropped packets.
        ingress: bool = false, "off as in Linux 6.1, `sch_cake`.";
        /// Drop waiting acknowledgements that a later one makes redundant.
        ack_filter: AckFilter = AckFilter::Off, "off as in Linux 6.1, `sch_cake`.";
        /// Limit on the waiting packets of all queues together: in packets, in bytes, in time at the link's rate, or a list of these.
        limit: Option<Limit>, "four `rtt` at `rate`, at least 4 MiB, at most 10,240 packets of 1514 B, as in Linux 6.1, `sch_cake`.";
        /// The shaper follows the link: `rate` is multiplied by the link's present rate divided by the link's `rate`, this long after each change of that, by `rate_changes` or a `rate_trace` (of which the present rate is the mean of the last whole 100 ms). "0 s" follows at once. Only with `rate`; the limit stays.
        follow_after: Option<Span>, "none: the rate stays. `autorate-ingress` of Linux estimates the rate from arrivals instead.";
        /// With `follow_after`, the number of the hop of a chain whose link it follows, in its own direction: such as the modem's, while the shaper stands in the router before it.
        #[schemars(range(min = 1))]
        follow_hop: Option<u32>, "none: the link that the queue stands before.";
    }
}

/// Which waiting acknowledgements are dropped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(crate = "serde", rename_all = "lowercase")]
#[schemars(crate = "schemars")]
pub enum AckFilter {
    /// None.
    #[default]
    Off,
    /// Redundant acknowledgements, as long as another one that could be dropped stays in the queue.
    On,
    /// Redundant acknowledgements, including the last one if no packet is between it and the latest acknowledgement.
    Aggressive,
}

/// How DSCPs are mapped to tins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(crate = "serde", rename_all = "lowercase")]
#[schemars(crate = "schemars")]
pub enum Diffserv {
    /// One tin for all packets.
    Besteffort,
    /// Eight tins, by the upper three bits of the DSCP.
    Precedence,
    /// Bulk (CS1, LE), best effort, and voice (EF, VA, CS6, CS7, TOS4).
    #[default]
    Diffserv3,
    /// Bulk, best effort, video (AF4x, AF3x, CS3, AF2x, CS2, TOS4) and voice (EF, VA, CS4 to CS7).
    Diffserv4,
    /// Eight tins from least effort to network control.
    Diffserv8,
}

/// Which hosts and flows share the link equally.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(crate = "serde", rename_all = "kebab-case")]
#[schemars(crate = "schemars")]
pub enum Isolation {
    /// No isolation: all packets share one queue.
    Flowblind,
    /// Sending hosts, with one queue for each.
    Srchost,
    /// Receiving hosts, with one queue for each.
    Dsthost,
    /// Pairs of hosts, with one queue for each.
    Hosts,
    /// Flows.
    Flows,
    /// Sending hosts, then flows.
    DualSrchost,
    /// Receiving hosts, then flows.
    DualDsthost,
    /// Hosts at both ends, then flows.
    #[default]
    TripleIsolate,
}

impl Isolation {
    fn among_senders(self) -> bool {
        matches!(self, Self::DualSrchost | Self::TripleIsolate)
    }

    fn among_receivers(self) -> bool {
        matches!(self, Self::DualDsthost | Self::TripleIsolate)
    }
}

impl Diffserv {
    /// The tin of a codepoint.
    fn tin(self, dscp: Dscp) -> usize {
        match self {
            Self::Besteffort => 0,
            Self::Precedence => usize::from(dscp.get() >> 3),
            Self::Diffserv3 => match dscp.get() {
                1 | 8 => 1,
                4 | 44 | 46 | 48 | 56 => 2,
                _ => 0,
            },
            Self::Diffserv4 => match dscp.get() {
                1 | 8 => 1,
                4 | 16 | 18 | 20 | 22 | 24 | 26 | 28 | 30 | 34 | 36 | 38 => 2,
                32 | 40 | 44 | 46 | 48 | 56 => 3,
                _ => 0,
            },
            Self::Diffserv8 => match dscp.get() {
                1 => 0,
                2 | 8 | 10 | 12 | 14 => 1,
                24 | 26 | 28 | 30 | 34 | 36 | 38 => 3,
                4 | 18 | 20 | 22 => 4,
                16 => 5,
                32 | 40 | 44 | 46 => 6,
                48 | 56 => 7,
                _ => 2,
            },
        }
    }

    /// Rate and quantum of each tin, of this rate in bit/s.
    fn tins(self, rate: Option<u64>) -> Vec<(Option<u64>, i64)> {
        let shares = |shares: &[u32]| {
            let tin = |&shift: &u32| (rate.map(|rate| rate >> shift), 1024i64 >> shift);
            shares.iter().map(tin).collect()
        };
        match self {
            Self::Besteffort => vec![(rate, 65_535)],
            Self::Diffserv3 => shares(&[0, 4, 2]),
            Self::Diffserv4 => shares(&[0, 4, 1, 2]),
            // Each an eighth less than the one before.
            Self::Precedence | Self::Diffserv8 => {
                let next = |&(rate, quantum): &(Option<u64>, i64)| {
                    Some((rate.map(|rate| rate / 8 * 7), quantum * 7 / 8))
                };
                std::iter::successors(Some((rate, 256)), next)
                    .take(8)
                    .collect()
            }
        }
    }
}

/// The least rate of which each tin has a share.
const LEAST_RATE: Rate = Rate::from_bps(1000);
/// Queues of a tin.
const QUEUES: usize = 1024;
/// Queues that a flow can use: the size of a set.
const WAYS: usize = 8;
/// Number of rounds that are distinguished; the load is at most one for each queue.
const ROUNDS: usize = QUEUES;
/// Deficits are counted in 2^-`FRACTION` bytes, because shares of a quantum are not whole numbers of bytes.
const FRACTION: u32 = 16;
/// A large packet on an Ethernet, as the kernel counts it unless told otherwise.
const FRAME: u64 = 1514;
/// The same without Ethernet's header, which packets here do not have.
const MTU: u64 = 1500;

impl CakeParams {
    /// What the link behind the shaper adds.
    pub(crate) fn link_layer(&self) -> LinkLayerParams {
        LinkLayerParams {
            bytes: self.overhead,
            mpu: self.mpu,
            framing: self.framing,
        }
    }

    fn target(&self) -> Span {
        self.rtt / 20
    }

    fn effective_limit(&self) -> Limit {
        self.limit.unwrap_or_else(|| {
            let most = 10_240 * FRAME;
            let of_rate = self.rate.map_or(most, |rate| {
                let bytes = rate.whole_bytes_in(self.rtt).as_u64();
                bytes.saturating_mul(4).max(4 << 20)
            });
            Limit::bytes(of_rate.min(most))
        })
    }

    /// A large packet. The kernel has 1514 B (`cake_set_rate`, `psched_mtu`), which is what such
    /// a packet counts there; with an overhead, a packet counts without Ethernet's header and with
    /// the overhead (`cake_calc_overhead`), and the constant stays.
    fn large_packet(&self) -> u64 {
        if self.overhead == Bytes::ZERO {
            MTU
        } else {
            FRAME
        }
    }

    /// The law of a tin with this rate, and its queues' quantum.
    fn law(&self, rate: Option<Rate>) -> (CobaltConfig, i64) {
        let large = self.large_packet();
        let mtu_time = rate.map_or(Span::ZERO, |rate| rate.tx_time(Bytes::new(large)));
        let target = self.target().max(mtu_time * 3 / 2);
        let config = CobaltConfig {
            target,
            interval: (self.rtt + (target - self.target())).max(target * 2),
            mtu_time,
            increment: 1.0 / 256.0,
            decrement: 1.0 / 4096.0,
            first_gap: self.first_gap,
        };
        let quantum = rate.map_or(large, |rate| (rate.as_bps() / 8 / 4096).clamp(300, large));
        (config, quantum as i64)
    }
}

metrics! {
    /// What `cake` reports besides what every queue by flow reports.
    pub const METRICS of Queue;

    /// Arrivals whose flow shares its queue with another flow.
    HASH_COLLISIONS = "hash_collisions", Count, "Arrivals in shared queues", "collisions";
}

metrics! {
    /// What `cake` reports with an ACK filter.
    pub const OF_ACK_FILTER of Queue;

    /// Acknowledgements that the filter dropped; only with `ack_filter`.
    ACK_DROPS = "ack_drops", Count, "Acknowledgements dropped by the filter", "ACK drops";
}

impl QueueKind for CakeParams {
    type Queue<P: Packet> = Cake<P>;

    const METRICS: &'static [&'static [&'static Metric]] =
        &[BY_FLOW, BY_FLOW_WITH_LIMIT, METRICS, OF_ACK_FILTER];

    fn example() -> &'static str {
        ""
    }

    fn figures(&self, names: &mut FigureNames) {
        for list in [BY_FLOW, BY_FLOW_WITH_LIMIT, METRICS] {
            names.add(list);
        }
        if self.ack_filter != AckFilter::Off {
            names.add(OF_ACK_FILTER);
        }
    }

    fn counts_hosts(&self) -> bool {
        !matches!(self.isolation, Isolation::Flowblind | Isolation::Flows)
    }

    fn check(&self) -> Result<(), ParamError> {
        if let Some(limit) = self.limit {
            limit.check()?;
        }
        if self.rate.is_some_and(|rate| rate < LEAST_RATE) {
            return Err(ParamError::new(
                "rate",
                "is less than a tin can have a share of",
                "at least \"1 kbit/s\", or no such key for the link's own rate",
            ));
        }
        if self.rtt < Span::from_us(20) {
            return Err(ParamError::new(
                "rtt",
                "is too short for a target of a twentieth",
                "at least \"20 us\", for example \"100 ms\"",
            ));
        }
        for (key, size) in [("overhead", self.overhead), ("mpu", self.mpu)] {
            if size > MOST_FRAMING {
                return Err(ParamError::new(
                    key,
                    "is more than Linux takes",
                    format!("\"0 B\" to \"{MOST_FRAMING}\" (tc-cake)"),
                ));
            }
        }
        let shapes = self.overhead > Bytes::ZERO
            || self.mpu > Bytes::ZERO
            || self.framing != Framing::None
            || self.ingress;
        if self.follow_after.is_some() && self.rate.is_none() {
            return Err(ParamError::new(
                "rate",
                "is missing, and without it there is no shaper that could follow",
                "a rate such as \"9.5 Mbit/s\"",
            ));
        }
        if shapes && self.rate.is_none() {
            return Err(ParamError::new(
                "rate",
                "is missing, and without it overhead, mpu, framing and ingress have no effect",
                "a rate such as \"9.5 Mbit/s\"",
            ));
        }
        Ok(())
    }

    fn check_at(&self, link: &LinkFacts) -> Result<(), ParamError> {
        follow::check(self.follow_after, self.follow_hop, link)
    }

    fn warnings(&self, link: &LinkFacts) -> Vec<ParamWarning> {
        let above = self.rate.filter(|&rate| rate > link.rate).map(|_| {
            ParamWarning::new(
                "rate",
                format!(
                    "is above the link's rate ({}), so that the shaper never acts",
                    link.rate
                ),
            )
        });
        above.into_iter().collect()
    }

    fn limit(&self) -> Option<Limit> {
        Some(self.effective_limit())
    }

    fn build<P: Packet>(&self, mut context: QueueContext) -> Cake<P> {
        let hash = FlowHash::draw(&mut context.stream);
        let tins = self.diffserv.tins(self.rate.map(Rate::as_bps));
        let tins = tins.into_iter().map(|(rate, quantum)| {
            let rate = rate.map(Rate::from_bps);
            Tin::new(rate, quantum.max(1), self.law(rate))
        });
        Cake {
            limit: self.effective_limit().at(context.rate),
            rate: self.rate,
            link_layer: self.link_layer(),
            diffserv: self.diffserv,
            isolation: self.isolation,
            ecn: self.ecn,
            wash: self.wash,
            ingress: self.ingress,
            ack_filter: self.ack_filter,
            hash,
            flows: Arc::clone(&context.link.flows),
            stream: context.stream,
            tins: tins.collect(),
            current: 0,
            backlog: Backlog::default(),
            next: Time::ZERO,
            failsafe: Time::ZERO,
            wake: None,
            follower: Follower::new(self.follow_after, self.follow_hop, &context.link),
            params: self.follow_after.map(|_| Box::new(self.clone())),
            stopped: false,
            fattest: None,
            active: TimeAverage::default(),
            overload_drops: 0,
            ack_drops: 0,
            collisions: 0,
            sojourn: Span::ZERO,
            probability: 0.0,
        }
    }
}

/// The list that a queue belongs to, and how it counts for its hosts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Standing {
    /// In no list; belongs to no flow.
    #[default]
    None,
    Sparse,
    /// Empty, in the list of old queues until its deficit is positive; counted as sparse.
    SparseWaiting,
    Bulk,
    /// Empty; its law is not yet in its initial state.
    Decaying,
}

#[derive(Debug)]
struct Queue<P> {
    fifo: Fifo<P>,
    law: CobaltLaw,
    /// In bytes, times 2^[`FRACTION`].
    deficit: i64,
    /// The hash of the flow that it belongs to.
    tag: u64,
    /// Indices of its hosts.
    sender: u16,
    receiver: u16,
    standing: Standing,
}

#[derive(Clone, Copy, Debug, Default)]
struct Host {
    tag: u64,
    /// The number of bulk queues of the host.
    bulk: u32,
}

const NEW: usize = 0;
const DECAYING: usize = 1;
/// The list of old queues that are served in rounds that are multiples of [`ROUNDS`]; the lists of other
/// rounds follow.
const OLD: usize = 2;

/// The rounds in which old queues are served.
#[derive(Debug)]
struct Rounds {
    /// The present one, modulo [`ROUNDS`].
    now: usize,
    /// A bit for each round in which a queue is served. The bit of the present round can still be set when
    /// all its queues have been served.
    taken: [u64; ROUNDS / 64],
}

impl Rounds {
    fn new() -> Self {
        Self {
            now: 0,
            taken: [0; ROUNDS / 64],
        }
    }

    /// The list of the queues that are served `later` rounds from now.
    #[inline]
    fn list(&self, later: usize) -> usize {
        OLD + (self.now + later) % ROUNDS
    }

    /// Adds a queue to the end of the round that is `later` rounds from now.
    #[inline]
    fn append(&mut self, lists: &mut Lists, later: usize, queue: usize) {
        let list = self.list(later);
        self.taken[(list - OLD) / 64] |= 1 << ((list - OLD) % 64);
        lists.append(list, queue);
    }

    /// The old queue to serve. A round ends when all its queues have been served.
    #[inline]
    fn first(&mut self, lists: &Lists) -> Option<usize> {
        if let Some(queue) = lists.first(self.list(0)) {
            return Some(queue);
        }
        self.taken[self.now / 64] &= !(1 << (self.now % 64));
        // From the present word's later bits around to its earlier ones.
        let words = self.taken.len();
        let later = self.taken[self.now / 64] & (u64::MAX << (self.now % 64));
        let (word, bits) = std::iter::once((self.now / 64, later))
            .chain((1..=words).map(|on| {
                let word = (self.now / 64 + on) % words;
                (word, self.taken[word])
            }))
            .find(|&(_, bits)| bits != 0)?;
        self.now = word * 64 + bits.trailing_zeros() as usize;
        lists.first(self.list(0))
    }
}

#[derive(Debug)]
struct Tin<P> {
    queues: Vec<Queue<P>>,
    lists: Lists,
    rounds: Rounds,
    senders: Vec<Host>,
    receivers: Vec<Host>,
    law: CobaltConfig,
    /// Of its queues, in bytes.
    quantum: i64,
    sparse: u32,
    bulk: u32,
    packets: u64,
    rate: Option<Rate>,
    /// The time up to which its share of the rate is used.
    next: Time,
    /// The quantum and the deficit of the tin, used without a shaper.
    tin_quantum: i64,
    tin_deficit: i64,
}

/// Hashes of a packet's flow and hosts.
#[derive(Clone, Copy, Debug)]
struct Key {
    flow: u64,
    sender: u64,
    receiver: u64,
}

/// The index of a tag among `hosts`: its own, a free one of its set, or the first of its set.
fn host_place(hosts: &mut [Host], tag: u64) -> u16 {
    let first = (tag % QUEUES as u64) as usize;
    let set = first - first % WAYS;
    let ways = (0..WAYS).map(|way| set + (first + way) % WAYS);
    let own = ways.clone().find(|&place| hosts[place].tag == tag);
    let free = || ways.clone().find(|&place| hosts[place].bulk == 0);
    let place = own.or_else(free).unwrap_or(first);
    hosts[place].tag = tag;
    place as u16
}

impl<P: Packet> Tin<P> {
    fn new(rate: Option<Rate>, tin_quantum: i64, (law, quantum): (CobaltConfig, i64)) -> Self {
        let queue = || Queue {
            fifo: Fifo::new(),
            law: CobaltLaw::default(),
            deficit: 0,
            tag: 0,
            sender: 0,
            receiver: 0,
            standing: Standing::None,
        };
        Self {
            queues: (0..QUEUES).map(|_| queue()).collect(),
            lists: Lists::new(QUEUES, OLD + ROUNDS),
            rounds: Rounds::new(),
            senders: vec![Host::default(); QUEUES],
            receivers: vec![Host::default(); QUEUES],
            law,
            quantum,
            sparse: 0,
            bulk: 0,
            packets: 0,
            rate,
            next: Time::ZERO,
            tin_quantum,
            tin_deficit: 0,
        }
    }

    fn has_flows(&self) -> bool {
        self.sparse + self.bulk > 0
    }

    /// The queue for a key, and whether its flow shares it with another.
    fn place(&mut self, key: Key, isolation: Isolation) -> (usize, bool) {
        let first = (key.flow % QUEUES as u64) as usize;
        let in_use = |queue: &Queue<P>| queue.standing != Standing::None;
        if self.queues[first].tag == key.flow && in_use(&self.queues[first]) {
            return (first, false);
        }
        let set = first - first % WAYS;
        let ways = (0..WAYS).map(|way| set + (first + way) % WAYS);
        let own = ways
            .clone()
            .find(|&place| self.queues[place].tag == key.flow);
        let free = || ways.clone().find(|&place| !in_use(&self.queues[place]));
        let found = own.or_else(free);
        let place = found.unwrap_or(first);
        let shared = found.is_none();
        // A place that this flow keeps has its hosts already.
        if own.is_none() || !in_use(&self.queues[place]) {
            let bulk = self.queues[place].standing == Standing::Bulk;
            if bulk {
                self.count_hosts(place, isolation, false);
            }
            if isolation.among_senders() {
                self.queues[place].sender = host_place(&mut self.senders, key.sender);
            }
            if isolation.among_receivers() {
                self.queues[place].receiver = host_place(&mut self.receivers, key.receiver);
            }
            if bulk {
                self.count_hosts(place, isolation, true);
            }
        }
        self.queues[place].tag = key.flow;
        (place, shared)
    }

    /// The queue has become one of its hosts' bulk queues, or is no longer.
    fn count_hosts(&mut self, queue: usize, isolation: Isolation, is_bulk: bool) {
        let change = if is_bulk { 1 } else { -1 };
        if isolation.among_senders() {
            let host = &mut self.senders[usize::from(self.queues[queue].sender)];
            host.bulk = host.bulk.wrapping_add_signed(change);
        }
        if isolation.among_receivers() {
            let host = &mut self.receivers[usize::from(self.queues[queue].receiver)];
            host.bulk = host.bulk.wrapping_add_signed(change);
        }
    }

    fn stand(&mut self, queue: usize, isolation: Isolation, standing: Standing) {
        let before = std::mem::replace(&mut self.queues[queue].standing, standing);
        match before {
            Standing::Sparse | Standing::SparseWaiting => self.sparse -= 1,
            Standing::Bulk => {
                self.bulk -= 1;
                self.count_hosts(queue, isolation, false);
            }
            Standing::None | Standing::Decaying => {}
        }
        match standing {
            Standing::Sparse | Standing::SparseWaiting => self.sparse += 1,
            Standing::Bulk => {
                self.bulk += 1;
                self.count_hosts(queue, isolation, true);
            }
            Standing::None | Standing::Decaying => {}
        }
    }

    /// Bulk queues of the sender or of the receiver of the queue's flow, the larger number.
    fn load(&self, queue: usize, isolation: Isolation) -> u32 {
        let queue = &self.queues[queue];
        let mut load = 1;
        if isolation.among_senders() {
            load = load.max(self.senders[usize::from(queue.sender)].bulk);
        }
        if isolation.among_receivers() {
            load = load.max(self.receivers[usize::from(queue.receiver)].bulk);
        }
        load
    }

    /// A packet has joined the queue.
    fn join(&mut self, queue: usize, isolation: Isolation) {
        match self.queues[queue].standing {
            Standing::None | Standing::Decaying => {
                self.lists.append(NEW, queue);
                self.stand(queue, isolation, Standing::Sparse);
                let load = i64::from(self.load(queue, isolation));
                self.queues[queue].deficit = (self.quantum / load) << FRACTION;
            }
            Standing::SparseWaiting => self.stand(queue, isolation, Standing::Bulk),
            Standing::Sparse | Standing::Bulk => {}
        }
    }

    /// The queue to serve; it may be empty.
    fn turn(&mut self, isolation: Isolation, first: &mut bool) -> Option<usize> {
        loop {
            let decaying = if *first {
                self.lists.first(DECAYING)
            } else {
                None
            };
            *first = false;
            let queue = decaying
                .or_else(|| self.lists.first(NEW))
                .or_else(|| self.rounds.first(&self.lists))
                .or_else(|| self.lists.first(DECAYING))?;
            if self.queues[queue].deficit > 0 {
                return Some(queue);
            }
            if self.queues[queue].standing == Standing::Sparse {
                let standing = if self.queues[queue].fifo.backlog().packets > 0 {
                    Standing::Bulk
                } else {
                    Standing::SparseWaiting
                };
                self.stand(queue, isolation, standing);
            }
            let quantum = self.quantum << FRACTION;
            let load = i64::from(self.load(queue, isolation)).min(ROUNDS as i64 - 1);
            let deficit = &mut self.queues[queue].deficit;
            let rounds = if load == 1 {
                1
            } else {
                (-*deficit * load / quantum + 1).min(load)
            };
            *deficit += rounds * quantum / load;
            self.rounds.append(&mut self.lists, rounds as usize, queue);
        }
    }

    /// The queue to serve is empty.
    fn found_empty(&mut self, queue: usize, isolation: Isolation, now: Time) {
        let law = &mut self.queues[queue].law;
        law.on_empty(&self.law, now);
        if law.is_at_rest(now) {
            self.lists.remove(queue);
            self.stand(queue, isolation, Standing::None);
        } else {
            self.lists.append(DECAYING, queue);
            self.stand(queue, isolation, Standing::Decaying);
        }
    }
}

/// The running queue.
#[derive(Debug)]
pub struct Cake<P> {
    limit: Limit,
    rate: Option<Rate>,
    link_layer: LinkLayerParams,
    diffserv: Diffserv,
    isolation: Isolation,
    ecn: bool,
    wash: bool,
    ingress: bool,
    ack_filter: AckFilter,
    hash: FlowHash,
    flows: Arc<FlowTable>,
    stream: Stream,
    tins: Vec<Tin<P>>,
    /// The tin that is served now, without a shaper.
    current: usize,
    backlog: Backlog,
    /// The time at which the shaper releases the next packet.
    next: Time,
    /// The latest time at which it does so, however many packets were dropped.
    failsafe: Time,
    wake: Option<Time>,
    follower: Follower,
    /// What the rates of a shaper that follows are computed from.
    params: Option<Box<CakeParams>>,
    /// The link that it follows has no rate now.
    stopped: bool,
    /// The longest queue, by tin and queue; exists from the first overload.
    fattest: Option<Greatest>,
    active: TimeAverage,
    overload_drops: u64,
    ack_drops: u64,
    collisions: u64,
    /// The queueing delay of the packet that left last.
    sojourn: Span,
    /// BLUE's probability in the queue that it left.
    probability: f64,
}

impl<P: Packet> Cake<P> {
    fn key(&self, packet: &P) -> Key {
        // Hosts and flows are numbered alike; what they are keeps their hashes apart.
        let flow = packet.flow();
        let facts = self.flows.get(flow);
        let sender = self.hash.of(1 << 33 | u64::from(facts.sender));
        let receiver = self.hash.of(1 << 34 | u64::from(facts.receiver));
        let flow = match self.isolation {
            Isolation::Flowblind => 0,
            Isolation::Srchost => sender,
            Isolation::Dsthost => receiver,
            Isolation::Hosts => sender ^ receiver.rotate_left(32),
            _ => self.hash.of(self.flows.key(flow)),
        };
        Key {
            flow,
            sender,
            receiver,
        }
    }

    /// The rates change that are due to: as in the kernel (`cake_reconfigure`), with what follows from them for the
    /// tins. While the link has no rate the shaper stops.
    #[cold]
    fn follow(&mut self, now: Time) {
        while let Some((at, scale)) = self.follower.change(now) {
            let Some((params, rate)) = self.params.as_deref().and_then(|it| Some((it, it.rate?)))
            else {
                return;
            };
            let rate = scale.of(rate);
            if self.stopped {
                // What waited during an outage has no time to make up for.
                self.next = self.next.max(at);
                self.failsafe = self.failsafe.max(at);
                let tins = self.tins.iter_mut();
                tins.for_each(|tin| tin.next = tin.next.max(at));
            }
            self.stopped = rate.as_bps() == 0;
            if self.stopped {
                continue;
            }
            let rate = rate.max(LEAST_RATE);
            self.rate = Some(rate);
            let of_tins = self.diffserv.tins(Some(rate.as_bps()));
            for (tin, (rate, _)) in self.tins.iter_mut().zip(of_tins) {
                tin.rate = rate.map(Rate::from_bps);
                (tin.law, tin.quantum) = params.law(tin.rate);
            }
        }
    }

    /// When the shaper releases the next packet, or its rate changes; [`Time::MAX`] if neither happens.
    fn release(&self) -> Time {
        let next = match self.stopped {
            true => Time::MAX,
            false => self.next.min(self.failsafe),
        };
        next.min(self.follower.next())
    }

    /// A packet's size on the link behind the shaper.
    fn shaped_size(&self, packet: &P) -> u64 {
        self.link_layer.size(packet.size()).as_u64()
    }

    /// Removes and returns the oldest packet of a queue.
    fn take(&mut self, tin: usize, queue: usize, now: Time) -> Option<P> {
        let packet = self.tins[tin].queues[queue].fifo.pop()?;
        self.on_taken(tin, queue, &packet, now);
        Some(packet)
    }

    /// A packet has been removed from a queue.
    fn on_taken(&mut self, tin: usize, queue: usize, packet: &P, now: Time) {
        let left = self.tins[tin].queues[queue].fifo.backlog();
        self.tins[tin].packets -= 1;
        self.backlog.packets -= 1;
        self.backlog.bytes -= packet.size().as_u64();
        if left.packets == 0 {
            self.active.add(-1, now);
        }
        if let Some(fattest) = &mut self.fattest {
            fattest.set(tin * QUEUES + queue, left.bytes);
        }
    }

    /// Drops a waiting acknowledgement if the packet that has just joined its queue makes it
    /// redundant.
    fn filter(&mut self, tin: usize, queue: usize, now: Time, sink: &mut impl Sink<P>) {
        let fifo = &mut self.tins[tin].queues[queue].fifo;
        let mut waiting = fifo.iter();
        let latest = waiting.next_back();
        let Some(latest) = latest.and_then(|packet| sink.tcp_header(packet)) else {
            return;
        };
        let aggressive = self.ack_filter == AckFilter::Aggressive;
        let headers = waiting.map(|packet| sink.tcp_header(packet));
        let place = ack_filter::redundant(&latest, headers, aggressive);
        let Some(packet) = place.and_then(|place| fifo.remove(place)) else {
            return;
        };
        self.on_taken(tin, queue, &packet, now);
        if self.ingress {
            self.advance(tin, &packet, now, true);
        }
        self.ack_drops += 1;
        sink.dropped(packet, DropReason::Redundant, now);
    }

    /// Charges a packet to the shaper and to its tin. Returns its size on the link behind the shaper.
    fn advance(&mut self, tin: usize, packet: &P, now: Time, dropped: bool) -> i64 {
        let size = self.shaped_size(packet);
        if let Some(rate) = self.rate {
            let tin = &mut self.tins[tin];
            let time = tin.rate.unwrap_or(rate).tx_time(Bytes::new(size));
            if tin.next < now {
                tin.next += time;
            } else {
                tin.next = tin.next.max(now + time);
            }
            let time = rate.tx_time(Bytes::new(size));
            self.next += time;
            if !dropped {
                self.failsafe += time + time / 2;
            }
        }
        size as i64
    }

    /// Drops the oldest packet of the longest queue.
    fn relieve(&mut self, now: Time, sink: &mut impl Sink<P>) {
        let tins = &self.tins;
        let sizes = || {
            let queues = tins.iter().flat_map(|tin| &tin.queues);
            Greatest::of(queues.map(|queue| queue.fifo.backlog().bytes))
        };
        let index = self.fattest.get_or_insert_with(sizes).index();
        let (tin, queue) = (index / QUEUES, index % QUEUES);
        let Some(packet) = self.take(tin, queue, now) else {
            return;
        };
        let Tin { queues, law, .. } = &mut self.tins[tin];
        queues[queue].law.on_overflow(law, now);
        if self.ingress {
            self.advance(tin, &packet, now, true);
        }
        self.overload_drops += 1;
        sink.dropped(packet, DropReason::Limit, now);
    }

    /// The tin to serve.
    fn choose_tin(&mut self, now: Time) -> usize {
        if self.rate.is_some() {
            // The last that has packets and keeps to its share, else the one due first.
            let due = |tin: &Tin<P>| tin.next.as_ps().saturating_sub(now.as_ps());
            let with_flows = (0..self.tins.len()).filter(|&tin| self.tins[tin].has_flows());
            let first = with_flows.min_by_key(|&tin| (due(&self.tins[tin]), usize::MAX - tin));
            return first.unwrap_or(0);
        }
        loop {
            let tin = &mut self.tins[self.current];
            if tin.tin_deficit >= 0 && tin.has_flows() {
                return self.current;
            }
            if tin.tin_deficit <= 0 {
                tin.tin_deficit += tin.tin_quantum;
            }
            self.current = (self.current + 1) % self.tins.len();
        }
    }
}

impl<P: Packet> QueueDiscipline<P> for Cake<P> {
    fn enqueue(&mut self, mut packet: P, now: Time, sink: &mut impl Sink<P>) {
        if !self.limit.admits(Backlog::default(), packet.size()) {
            self.overload_drops += 1;
            sink.dropped(packet, DropReason::Limit, now);
            return;
        }
        let key = self.key(&packet);
        let index = self.diffserv.tin(packet.dscp());
        if self.wash {
            packet.set_dscp(Dscp::BEST_EFFORT);
        }
        let tin = &mut self.tins[index];
        let (queue, shared) = tin.place(key, self.isolation);
        self.collisions += u64::from(shared);
        // Time in which nothing waited is not made up for.
        if tin.packets == 0 {
            tin.next = tin.next.max(now);
            if self.backlog.packets == 0 && self.next < now {
                (self.next, self.failsafe) = (now, now);
            }
        }
        tin.packets += 1;
        self.backlog.packets += 1;
        self.backlog.bytes += packet.size().as_u64();
        let fifo = &mut tin.queues[queue].fifo;
        if fifo.backlog().packets == 0 {
            self.active.add(1, now);
        }
        fifo.push(packet, now);
        if let Some(fattest) = &mut self.fattest {
            fattest.set(index * QUEUES + queue, fifo.backlog().bytes);
        }
        tin.join(queue, self.isolation);
        if self.ack_filter != AckFilter::Off {
            self.filter(index, queue, now, sink);
        }
        while !self.limit.allows(self.backlog) {
            self.relieve(now, sink);
        }
    }

    fn dequeue(&mut self, now: Time, sink: &mut impl Sink<P>) -> Option<P> {
        self.wake = None;
        if self.follower.next() <= now {
            self.follow(now);
        }
        let mut first = true;
        while self.backlog.packets > 0 {
            if self.rate.is_some() && (self.next.min(self.failsafe) > now || self.stopped) {
                self.wake = Some(self.release()).filter(|at| *at < Time::MAX);
                return None;
            }
            let index = self.choose_tin(now);
            let tin = &mut self.tins[index];
            let Some(queue) = tin.turn(self.isolation, &mut first) else {
                continue;
            };
            let Some(mut packet) = self.take(index, queue, now) else {
                self.tins[index].found_empty(queue, self.isolation, now);
                continue;
            };
            self.sojourn = now - packet.enqueued();
            let can_be_marked = self.ecn && packet.ecn() != Ecn::NotEct;
            let tin = &mut self.tins[index];
            let bulk = if self.ingress { u64::from(tin.bulk) } else { 0 };
            let Queue { law, fifo, .. } = &mut tin.queues[queue];
            let stream = &mut self.stream;
            let draw = || stream.uniform();
            let decision = law.judge(&tin.law, self.sojourn, bulk, can_be_marked, now, draw);
            self.probability = law.probability();
            // The last packet may be marked but is not dropped.
            if decision.drop && fifo.backlog().packets > 0 {
                if self.ingress {
                    let size = self.advance(index, &packet, now, true);
                    self.tins[index].queues[queue].deficit -= size << FRACTION;
                    self.tins[index].tin_deficit -= size;
                }
                sink.dropped(packet, DropReason::Early, now);
                // Its turn goes on.
                continue;
            }
            if decision.mark && packet.mark_ce() {
                sink.marked(&packet, now);
            }
            let size = self.advance(index, &packet, now, false);
            self.tins[index].queues[queue].deficit -= size << FRACTION;
            self.tins[index].tin_deficit -= size;
            return Some(packet);
        }
        None
    }

    fn next_wakeup(&self) -> Wakeup {
        match self.rate {
            Some(_) => self.wake.into(),
            None => Wakeup::Never,
        }
    }

    fn on_wakeup(&mut self, now: Time) {
        self.wake = self.wake.filter(|&wake| wake > now);
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        self.backlog
    }

    fn internals(&self) -> Internals {
        Internals {
            average: Some(self.sojourn.as_secs_f64()),
            probability: Some(self.probability),
        }
    }

    fn start_measuring(&mut self, now: Time) {
        self.active.begin(now);
        (self.overload_drops, self.ack_drops, self.collisions) = (0, 0, 0);
    }

    fn report(&self, now: Time, report: &mut Report<'_>) {
        report.tell(FLOWS_ACTIVE, self.active.until(now));
        report.tell(OVERLOAD_DROPS, self.overload_drops as f64);
        report.tell(HASH_COLLISIONS, self.collisions as f64);
        if self.ack_filter != AckFilter::Off {
            report.tell(ACK_DROPS, self.ack_drops as f64);
        }
    }
}
