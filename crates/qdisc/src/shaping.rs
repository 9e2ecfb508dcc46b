//! When the shapers of a queue let its packets go, computed from the packets that it has let out.
//!
//! `htb`, `tbf`, and `cake` with a rate hold packets back while the link is idle. [`Shaping`] has their buckets
//! without the queue: it is told which packets another implementation of the same queue has let out, and says
//! when that one may let out the next packet of each leaf. A leaf is a queue without queues in it.
//!
//! The decisions are those of [`crate::queues::htb`], [`crate::queues::tbf`] and [`crate::queues::cake`].
//! For two things the time is an upper bound: a packet that is dropped inside of `cake` with `ingress` is
//! not known in time, so its failsafe counts; and a shaper inside of another one is charged when the packet
//! leaves both.

use redtail_core::{Bytes, Dscp, Rate, Time};

use crate::class;
use crate::classify::Classifier;
use crate::laws::token_bucket::{TokenBucket, cost};
use crate::link_layer::LinkLayerParams;
use crate::{FlowFacts, LinkFacts, QueueParams};

/// When the shapers of a leaf let its next packet go, if no other packet leaves before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Permit {
    /// From this time on they do.
    pub ready: Time,
    /// Until this time the leaf makes up for a packet that leaves late, because tokens gather. From then on
    /// its bucket is full, and the time is lost.
    pub full: Time,
}

impl Permit {
    /// Without shapers.
    pub const ALWAYS: Self = Self {
        ready: Time::ZERO,
        full: Time::ZERO,
    };

    /// The later one, which decides if both are needed.
    fn and(self, other: Self) -> Self {
        if other.ready > self.ready {
            other
        } else {
            self
        }
    }
}

/// A class of `htb`.
#[derive(Clone, Debug)]
struct Node {
    parent: Option<usize>,
    rate: TokenBucket,
    ceil: TokenBucket,
}

/// The shaper of `cake`.
#[derive(Clone, Debug)]
struct Clock {
    rate: Rate,
    link_layer: LinkLayerParams,
    /// Whether packets that it drops count as sent.
    ingress: bool,
    next: Time,
    failsafe: Time,
}

/// A shaper above a leaf.
#[derive(Clone, Copy, Debug)]
enum Gate {
    /// The class of `htb`, by its number.
    Tree(usize),
    /// A bucket that must hold the whole packet.
    Whole(usize),
    Clock(usize),
}

/// A queue: a leaf, or one with classes.
#[derive(Clone, Debug)]
enum Place {
    Leaf(usize),
    Classes(Classifier, Vec<Place>),
}

/// The shapers of a queue.
#[derive(Clone, Debug)]
pub struct Shaping {
    root: Place,
    /// By leaf, from the outside in.
    gates: Vec<Vec<Gate>>,
    nodes: Vec<Node>,
    buckets: Vec<TokenBucket>,
    clocks: Vec<Clock>,
}

impl Shaping {
    /// The shapers of a queue on this link; `None` if it has none. `kept` is the rate that the other
    /// implementation makes of a rate. The parameters must have been checked.
    pub fn of(queue: &QueueParams, link: &LinkFacts, kept: fn(Rate) -> Rate) -> Option<Self> {
        let mut shaping = Self {
            root: Place::Leaf(0),
            gates: Vec::new(),
            nodes: Vec::new(),
            buckets: Vec::new(),
            clocks: Vec::new(),
        };
        shaping.root = shaping.add(queue, link, &[], kept);
        let shapes = shaping.gates.iter().any(|gates| !gates.is_empty());
        shapes.then_some(shaping)
    }

    fn add(
        &mut self,
        queue: &QueueParams,
        link: &LinkFacts,
        above: &[Gate],
        kept: fn(Rate) -> Rate,
    ) -> Place {
        let mut gates = above.to_vec();
        let mut of_class: Vec<Gate> = Vec::new();
        let (leaves, default) = match queue {
            QueueParams::Htb(params) => {
                let first = self.nodes.len();
                for place in params.places() {
                    if place.params.queue.is_some() {
                        of_class.push(Gate::Tree(self.nodes.len()));
                    }
                    let (rate, ceil) = (place.params.rate, place.params.ceiling());
                    self.nodes.push(Node {
                        parent: place.parent.map(|parent| first + parent),
                        rate: TokenBucket::full(kept(rate), place.params.burst),
                        ceil: TokenBucket::full(kept(ceil), place.params.cburst),
                    });
                }
                (params.leaves(), params.default.as_deref())
            }
            QueueParams::Prio(params) => (params.leaves(None), params.default.as_deref()),
            QueueParams::Drr(params) => (params.leaves(None), params.default.as_deref()),
            QueueParams::Tbf(params) => {
                let peak = params.peak_rate.zip(params.mtu);
                for (rate, size) in [(params.rate, params.burst)].into_iter().chain(peak) {
                    gates.push(Gate::Whole(self.buckets.len()));
                    self.buckets.push(TokenBucket::full(kept(rate), size));
                }
                let mut inner = None;
                queue.inner(link, &mut |_, queue, link| {
                    inner = Some(self.add(queue, link, &gates, kept));
                });
                return inner.expect("the parameters have been checked");
            }
            _ => {
                if let QueueParams::Cake(params) = queue
                    && let Some(rate) = params.rate
                {
                    gates.push(Gate::Clock(self.clocks.len()));
                    self.clocks.push(Clock {
                        rate: kept(rate),
                        link_layer: params.link_layer(),
                        ingress: params.ingress,
                        next: Time::ZERO,
                        failsafe: Time::ZERO,
                    });
                }
                self.gates.push(gates);
                return Place::Leaf(self.gates.len() - 1);
            }
        };
        let default = class::default_class(&leaves, default).expect("they have been checked");
        let classifier = class::classifier(&leaves, default, link);
        let mut places = Vec::new();
        queue.inner(link, &mut |_, queue, link| {
            let own = of_class.get(places.len()).copied();
            let gates: Vec<Gate> = gates.iter().copied().chain(own).collect();
            places.push(self.add(queue, link, &gates, kept));
        });
        Place::Classes(classifier, places)
    }

    /// Number of leaves.
    pub fn leaves(&self) -> usize {
        self.gates.len()
    }

    /// The leaf in which a packet of this flow with this DSCP waits.
    pub fn leaf(&self, dscp: Dscp, flow: &FlowFacts) -> usize {
        let mut place = &self.root;
        loop {
            match place {
                Place::Leaf(leaf) => return *leaf,
                Place::Classes(classifier, places) => {
                    place = &places[classifier.class(dscp, flow)];
                }
            }
        }
    }

    /// A packet begins to wait in a leaf in which nothing waited.
    pub fn begins(&mut self, leaf: usize, now: Time) {
        for gate in &self.gates[leaf] {
            if let Gate::Clock(clock) = *gate {
                let clock = &mut self.clocks[clock];
                if clock.next < now {
                    (clock.next, clock.failsafe) = (now, now);
                }
            }
        }
    }

    /// When the next packet of a leaf may leave, which has this size.
    pub fn permit(&self, leaf: usize, size: Bytes) -> Permit {
        let permits = self.gates[leaf].iter().map(|gate| match *gate {
            Gate::Tree(node) => self.lender(node, Time::ZERO).1,
            Gate::Whole(bucket) => {
                let bucket = &self.buckets[bucket];
                Permit {
                    ready: bucket.reaches(cost(size)),
                    full: bucket.fills(),
                }
            }
            Gate::Clock(clock) => {
                let clock = &self.clocks[clock];
                Permit {
                    ready: match clock.ingress {
                        true => clock.failsafe,
                        false => clock.next.min(clock.failsafe),
                    },
                    full: Time::MAX,
                }
            }
        });
        permits.fold(Permit::ALWAYS, Permit::and)
    }

    /// The class whose tokens a leaf uses: the first one, from its own up, that lets it send at `now`, else the one that
    /// does so first; and when.
    fn lender(&self, leaf: usize, now: Time) -> (usize, Permit) {
        let mut best: Option<(usize, Permit)> = None;
        let mut below = Permit::ALWAYS;
        let mut next = Some(leaf);
        let of = |bucket: &TokenBucket| Permit {
            ready: bucket.reaches(0),
            full: bucket.fills(),
        };
        while let Some(node) = next {
            let Node { parent, rate, ceil } = &self.nodes[node];
            below = below.and(of(ceil));
            let permit = below.and(of(rate));
            if best.is_none_or(|(_, best)| permit.ready < best.ready && best.ready > now) {
                best = Some((node, permit));
            }
            next = *parent;
        }
        best.expect("a leaf has a class")
    }

    /// A packet of this size has left a leaf at `at`.
    pub fn leaves_from(&mut self, leaf: usize, size: Bytes, at: Time) {
        for place in 0..self.gates[leaf].len() {
            match self.gates[leaf][place] {
                Gate::Tree(leaf) => {
                    let (lender, _) = self.lender(leaf, at);
                    let mut lends = false;
                    let mut next = Some(leaf);
                    while let Some(node) = next {
                        lends |= node == lender;
                        let node = &mut self.nodes[node];
                        node.ceil.charge(size, at);
                        if lends {
                            node.rate.charge(size, at);
                        }
                        next = node.parent;
                    }
                }
                Gate::Whole(bucket) => self.buckets[bucket].charge(size, at),
                Gate::Clock(clock) => {
                    let clock = &mut self.clocks[clock];
                    let time = clock.rate.tx_time(clock.link_layer.size(size));
                    clock.next += time;
                    clock.failsafe += time + time / 2;
                }
            }
        }
    }
}
