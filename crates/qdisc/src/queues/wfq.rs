//! Weighted fair queueing, as WF2Q+. An idealised server shares the link by weight. Of the classes whose
//! next packet has begun in that server, the class sends whose packet ends there first.
//!
//! Source: J. C. R. Bennett and H. Zhang, "Hierarchical Packet Fair Queueing Algorithms",
//! IEEE/ACM Transactions on Networking 5(5), 1997, section IV (WF2Q+); the idea of eligible
//! packets is that of their "WF2Q: Worst-case Fair Weighted Fair Queueing", INFOCOM 1996.
//!
//! | symbol | here | unit |
//! |---|---|---|
//! | phi_i, the share of class i | `weight` over the sum of weights | |
//! | V, system virtual time | `virtual_time` | bytes of service at full rate, times `scale` |
//! | S_i, F_i, virtual start and finish of the class's next packet | `start`, `finish` | the same |
//! | L, size of a packet | | bytes |
//!
//! - S_i = F_i if the class was backlogged when its last packet left, else max(F_i, V);
//! - F_i = S_i + L / phi_i;
//! - V grows by L for each packet of L bytes that was sent, and is at least the smallest S_i of
//!   a backlogged class whenever the next one is chosen.
//!
//! In the paper V also grows while a packet is being sent. Here V grows at the end of the transmission, so
//! that a packet that arrives during it counts as if it had arrived at its beginning. No decision is made
//! during a transmission, so the paper's bound holds: a packet of a class leaves at most L_max / r later
//! than it would from a server of the class's own rate r_i = phi_i r.
//!
//! All values are whole numbers: `scale` is the least common multiple of the weights and their sum if that
//! is below 2^40 (no rounding at all), otherwise 2^40.

use redtail_core::{Packet, ParamError, ParamWarning, Time, params};

use crate::class::{self, Leaf, LeafParams};
use crate::classify::{Classifier, OneOrMore, RuleParams};
use crate::{LinkFacts, QueueContext, QueueDiscipline, QueueKind, QueueParams, Sink};

params! {
    /// Weighted fair queueing (WF2Q+) between classes.
    pub struct WfqParams {
        /// The classes. A packet goes to the first class whose `match` fits it.
        class: Vec<WfqClassParams>;
        /// Name of the class for packets that no `match` fits.
        default: Option<String>, "the only class without a `match`.";
    }
}

params! {
    /// A class of `wfq`.
    #[schemars(rename = "WfqClass")]
    pub struct WfqClassParams {
        /// Name of the class, put in front of its metrics and used in keys.
        name: String;
        /// Packets of the class: a rule, or a list of rules of which one must fit.
        rules as "match": Option<OneOrMore<RuleParams>>, "none, which makes it the default class.";
        /// Share of the class in the link, relative to the weights of the other classes; a whole number up to 10000.
        #[schemars(range(min = 1, max = 10_000))]
        weight: u32 = 1, "equal shares.";
        /// Queue of the class, of any kind. Queue sizes that are given as times are converted to bytes with the class's share of the link's rate.
        queue: QueueParams;
    }
}

const HEAVIEST: u32 = 10_000;

impl WfqParams {
    fn weights(&self) -> impl Iterator<Item = u64> + Clone {
        self.class.iter().map(|class| u64::from(class.weight))
    }

    fn leaves(&self, link: Option<&LinkFacts>) -> Vec<LeafParams<'_>> {
        let all = self.weights().sum();
        let each = self.class.iter().map(|class| LeafParams {
            list: "class".to_owned(),
            name: &class.name,
            rules: class.rules.as_ref(),
            queue: Some(&class.queue),
            rate: link.map(|link| class::share_of(link.rate, class.weight.into(), all)),
        });
        each.collect()
    }
}

impl QueueKind for WfqParams {
    type Queue<P: Packet> = Wfq<P>;

    class::kind_of_classes!();

    fn example() -> &'static str {
        r#"class = [
  { name = "always", match = { group = "always" }, weight = 3, queue = { kind = "tail-drop", limit = "100 packets" } },
  { name = "step", weight = 1, queue = { kind = "tail-drop", limit = "100 packets" } },
]"#
    }

    fn check(&self) -> Result<(), ParamError> {
        let names = self.class.iter().map(|class| class.name.as_str());
        class::check_names("class", names, &mut Vec::new())?;
        for class in &self.class {
            if !(1..=HEAVIEST).contains(&class.weight) {
                let accepted = format!("a whole number from 1 to {HEAVIEST}");
                let error = ParamError::new("weight", "is no share", accepted);
                return Err(error.within(&format!("class.{}", class.name)));
            }
        }
        class::check(&self.leaves(None), self.default.as_deref())
    }

    fn warnings(&self, link: &LinkFacts) -> Vec<ParamWarning> {
        let leaves = self.leaves(Some(link));
        class::warnings(&leaves, self.default.as_deref(), link)
    }

    fn build<P: Packet>(&self, context: QueueContext) -> Wfq<P> {
        let leaves = self.leaves(Some(&context.link));
        let (classifier, classes) = class::parts(&leaves, self.default.as_deref(), &context);
        let scale = scale(self.weights());
        let all: u64 = self.weights().sum();
        Wfq {
            classifier,
            classes: classes
                .into_iter()
                .zip(self.weights())
                .map(|(leaf, weight)| TaggedClass {
                    leaf,
                    // phi is weight / all; V counts in units of 1 / (all scale) bytes.
                    per_byte: u128::from(scale / weight),
                    start: 0,
                    finish: 0,
                    state: TagState::Idle,
                })
                .collect(),
            per_byte: u128::from(scale / all),
            virtual_time: 0,
            served: 0,
        }
    }
}

/// Returns the units of one byte, a multiple of all weights if possible.
fn scale(weights: impl Iterator<Item = u64> + Clone) -> u64 {
    const MOST: u64 = 1 << 40;
    let all = weights.clone().sum();
    let common = weights.chain([all]).try_fold(1u64, |multiple, weight| {
        let (mut a, mut b) = (multiple, weight);
        while b != 0 {
            (a, b) = (b, a % b);
        }
        multiple.checked_mul(weight / a).filter(|all| *all <= MOST)
    });
    common.unwrap_or(MOST)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TagState {
    /// No packet waits in the class.
    Idle,
    /// Packets wait that arrived at an empty class, or that the class's queue has held back: the next
    /// packet has no tags yet.
    Fresh,
    /// Packets have waited since the last packet left: the next packet has no tags yet.
    Continuing,
    /// The next packet has its tags.
    Ready,
}

#[derive(Debug)]
struct TaggedClass<P: Packet> {
    leaf: Leaf<P>,
    /// The amount that a byte adds to the finish tag of the class.
    per_byte: u128,
    start: u128,
    finish: u128,
    state: TagState,
}

/// The running queue.
#[derive(Debug)]
pub struct Wfq<P: Packet> {
    classifier: Classifier,
    classes: Vec<TaggedClass<P>>,
    /// The amount that a byte of any class adds to the virtual time.
    per_byte: u128,
    virtual_time: u128,
    /// The amount that the packet sent last will add to the virtual time.
    served: u128,
}

impl<P: Packet> Wfq<P> {
    fn leaves(&self) -> impl Iterator<Item = &Leaf<P>> {
        self.classes.iter().map(|class| &class.leaf)
    }

    fn leaves_mut(&mut self) -> impl Iterator<Item = &mut Leaf<P>> {
        self.classes.iter_mut().map(|class| &mut class.leaf)
    }
}

impl<P: Packet> QueueDiscipline<P> for Wfq<P> {
    fn enqueue(&mut self, packet: P, now: Time, sink: &mut impl Sink<P>) {
        let i = self.classifier.class_of(&packet);
        let class = &mut self.classes[i];
        class.leaf.enqueue(packet, now, sink);
        if class.state == TagState::Idle && !class.leaf.is_empty() {
            class.state = TagState::Fresh;
        }
    }

    fn dequeue(&mut self, now: Time, sink: &mut impl Sink<P>) -> Option<P> {
        let (mut idle, mut first_start) = (true, u128::MAX);
        for class in &mut self.classes {
            if let TagState::Fresh | TagState::Continuing = class.state {
                match class.leaf.peek(now, sink) {
                    Some(size) => {
                        class.start = match class.state {
                            TagState::Continuing => class.finish,
                            _ => class.finish.max(self.virtual_time),
                        };
                        class.finish = class.start + u128::from(size.as_u64()) * class.per_byte;
                        class.state = TagState::Ready;
                    }
                    None if class.leaf.is_empty() => class.state = TagState::Idle,
                    None => class.state = TagState::Fresh,
                }
            }
            idle &= class.state == TagState::Idle;
            if class.state == TagState::Ready {
                first_start = first_start.min(class.start);
            }
        }
        if idle {
            // The busy period is over: the next one starts at 0.
            (self.virtual_time, self.served) = (0, 0);
            self.classes.iter_mut().for_each(|class| class.finish = 0);
            return None;
        }
        self.virtual_time += std::mem::take(&mut self.served);
        if first_start < u128::MAX {
            self.virtual_time = self.virtual_time.max(first_start);
        }
        let begun = |class: &&mut TaggedClass<P>| {
            class.state == TagState::Ready && class.start <= self.virtual_time
        };
        let eligible = self.classes.iter_mut().filter(begun);
        let class = eligible.min_by_key(|class| class.finish)?;
        let packet = class.leaf.dequeue(now, sink)?;
        self.served = u128::from(packet.size().as_u64()) * self.per_byte;
        class.state = match class.leaf.is_empty() {
            true => TagState::Idle,
            false => TagState::Continuing,
        };
        Some(packet)
    }

    class::discipline_of_classes!();
}
