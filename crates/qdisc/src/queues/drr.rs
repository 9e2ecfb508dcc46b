//! Deficit round robin: classes are served in turn, and each sends up to a quantum of bytes. If the next
//! packet is larger than the rest of the quantum, the rest is added to the next turn.
//!
//! Source: M. Shreedhar and G. Varghese, "Efficient Fair Queuing Using Deficit Round-Robin",
//! IEEE/ACM Transactions on Networking 4(3), 1996, section III.
//!
//! | symbol | here | unit |
//! |---|---|---|
//! | Quantum_i | `quantum` | bytes |
//! | DC_i, deficit counter | `deficit` | bytes |
//! | Max, the largest packet | | bytes |
//!
//! At the start of its turn DC_i rises by Quantum_i; packets of up to DC_i bytes leave and
//! are subtracted; a class that becomes empty loses its DC_i and its place in the list. Then
//! 0 <= DC_i < Max, so that in K rounds a backlogged class sends K Quantum_i
//! bytes to within Max, and two backlogged classes differ by at most 2 Max + Quantum bytes
//! when weighed by their quanta relative to the smallest, Quantum (section IV, analytical results).

use std::collections::VecDeque;

use redtail_core::{Bytes, Packet, ParamError, ParamWarning, Time, params};

use crate::class::{self, Leaf, LeafParams};
use crate::classify::{Classifier, OneOrMore, RuleParams};
use crate::{LinkFacts, QueueContext, QueueDiscipline, QueueKind, QueueParams, Sink};

params! {
    /// Deficit round robin between classes.
    pub struct DrrParams {
        /// The classes. A packet goes to the first class whose `match` fits it.
        class: Vec<DrrClassParams>;
        /// Name of the class for packets that no `match` fits.
        default: Option<String>, "the only class without a `match`.";
    }
}

params! {
    /// A class of `drr`.
    #[schemars(rename = "DrrClass")]
    pub struct DrrClassParams {
        /// Name of the class, put in front of its metrics and used in keys.
        name: String;
        /// Packets of the class: a rule, or a list of rules of which one must fit.
        rules as "match": Option<OneOrMore<RuleParams>>, "none, which makes it the default class.";
        /// Bytes that the class may send in a turn; the shares of the classes are in proportion to their quanta.
        quantum: Bytes = Bytes::new(1500), "Linux sch_drr, the link's largest packet (`psched_mtu`, with Ethernet's header, which counts there with every packet too); here Ethernet's MTU.";
        /// Queue of the class, of any kind. Queue sizes that are given as times are converted to bytes with the class's share of the link's rate.
        queue: QueueParams;
    }
}

impl DrrParams {
    pub(crate) fn leaves(&self, link: Option<&LinkFacts>) -> Vec<LeafParams<'_>> {
        let all = self.class.iter().map(|class| class.quantum.as_u64()).sum();
        let each = self.class.iter().map(|class| LeafParams {
            list: "class".to_owned(),
            name: &class.name,
            rules: class.rules.as_ref(),
            queue: Some(&class.queue),
            rate: link.map(|link| class::share_of(link.rate, class.quantum.as_u64(), all)),
        });
        each.collect()
    }
}

impl QueueKind for DrrParams {
    type Queue<P: Packet> = Drr<P>;

    class::kind_of_classes!();

    fn example() -> &'static str {
        r#"class = [
  { name = "always", match = { group = "always" }, quantum = "4500 B", queue = { kind = "tail-drop", limit = "100 packets" } },
  { name = "step", quantum = "1500 B", queue = { kind = "tail-drop", limit = "100 packets" } },
]"#
    }

    fn check(&self) -> Result<(), ParamError> {
        let names = self.class.iter().map(|class| class.name.as_str());
        class::check_names("class", names, &mut Vec::new())?;
        for class in &self.class {
            // An upper bound too: quanta are summed.
            if class.quantum == Bytes::ZERO || class.quantum > Bytes::new(1 << 32) {
                let error = ParamError::new(
                    "quantum",
                    "is no share of a turn",
                    "\"1 B\" to \"4 GB\", best at least the largest packet",
                );
                return Err(error.within(&format!("class.{}", class.name)));
            }
        }
        class::check(&self.leaves(None), self.default.as_deref())
    }

    fn warnings(&self, link: &LinkFacts) -> Vec<ParamWarning> {
        let mut found = Vec::new();
        for class in &self.class {
            if class.quantum < link.largest_packet {
                let clause = format!(
                    "is below the largest packet ({}): a class may need several turns for one \
                     packet",
                    link.largest_packet
                );
                let warning = ParamWarning::new("quantum", clause);
                found.push(warning.within(&format!("class.{}", class.name)));
            }
        }
        let leaves = self.leaves(Some(link));
        found.extend(class::warnings(&leaves, self.default.as_deref(), link));
        found
    }

    fn build<P: Packet>(&self, context: QueueContext) -> Drr<P> {
        let leaves = self.leaves(Some(&context.link));
        let (classifier, classes) = class::parts(&leaves, self.default.as_deref(), &context);
        let classes = classes.into_iter().zip(&self.class);
        Drr {
            classifier,
            turns: VecDeque::with_capacity(leaves.len()),
            classes: classes
                .map(|(leaf, params)| TurnClass {
                    leaf,
                    quantum: params.quantum.as_u64(),
                    deficit: 0,
                    state: TurnState::Idle,
                })
                .collect(),
            blocked: 0,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TurnState {
    /// No packet waits in the class.
    Idle,
    /// The class is in the list of turns.
    Active,
    /// The class is at the head of the list of turns, and its turn has begun.
    InTurn,
    /// Packets wait, but the class's queue holds them back.
    Blocked,
}

#[derive(Debug)]
struct TurnClass<P: Packet> {
    leaf: Leaf<P>,
    quantum: u64,
    deficit: u64,
    state: TurnState,
}

/// The running queue.
#[derive(Debug)]
pub struct Drr<P: Packet> {
    classifier: Classifier,
    classes: Vec<TurnClass<P>>,
    /// Numbers of the active classes in the order of their turns.
    turns: VecDeque<usize>,
    /// The number of classes that are [`TurnState::Blocked`].
    blocked: usize,
}

impl<P: Packet> Drr<P> {
    fn leaves(&self) -> impl Iterator<Item = &Leaf<P>> {
        self.classes.iter().map(|class| &class.leaf)
    }

    fn leaves_mut(&mut self) -> impl Iterator<Item = &mut Leaf<P>> {
        self.classes.iter_mut().map(|class| &mut class.leaf)
    }

    /// Puts blocked classes whose queues can send again into the list of turns.
    fn unblock(&mut self, now: Time) {
        for (i, class) in self.classes.iter_mut().enumerate() {
            let held = class.leaf.next_wakeup().time().is_some_and(|at| at > now);
            if class.state == TurnState::Blocked && !held {
                class.state = TurnState::Active;
                self.turns.push_back(i);
                self.blocked -= 1;
            }
        }
    }

    /// No class in the list could send in its turn: applies at once all rounds but the last in which no
    /// class can send, so that a small quantum takes no more time than a large one.
    fn skip_rounds(&mut self, now: Time, sink: &mut impl Sink<P>) {
        let classes = &mut self.classes;
        let missing = self.turns.iter().filter_map(|&i| {
            let class = &mut classes[i];
            let missing = class
                .leaf
                .peek(now, sink)?
                .as_u64()
                .checked_sub(class.deficit)?;
            Some(missing.div_ceil(class.quantum))
        });
        let rounds = missing.min().unwrap_or(0).saturating_sub(1);
        for &i in &self.turns {
            let class = &mut self.classes[i];
            class.deficit += rounds * class.quantum;
        }
    }
}

impl<P: Packet> QueueDiscipline<P> for Drr<P> {
    fn enqueue(&mut self, packet: P, now: Time, sink: &mut impl Sink<P>) {
        let i = self.classifier.class_of(&packet);
        let class = &mut self.classes[i];
        class.leaf.enqueue(packet, now, sink);
        if class.state == TurnState::Idle && !class.leaf.is_empty() {
            class.state = TurnState::Active;
            self.turns.push_back(i);
        } else if class.state == TurnState::Blocked {
            // The arriving packet can be one that need not wait for the others of its class.
            class.state = TurnState::Active;
            self.turns.push_back(i);
            self.blocked -= 1;
        }
    }

    fn dequeue(&mut self, now: Time, sink: &mut impl Sink<P>) -> Option<P> {
        if self.blocked > 0 {
            self.unblock(now);
        }
        // Number of consecutive classes that could not send because their deficit is too small.
        let mut passed = 0;
        loop {
            let i = *self.turns.front()?;
            let class = &mut self.classes[i];
            if class.state == TurnState::Active {
                class.state = TurnState::InTurn;
                class.deficit += class.quantum;
            }
            let Some(size) = class.leaf.peek(now, sink) else {
                class.deficit = 0;
                class.state = match class.leaf.is_empty() {
                    true => TurnState::Idle,
                    false => TurnState::Blocked,
                };
                self.blocked += usize::from(class.state == TurnState::Blocked);
                self.turns.pop_front();
                continue;
            };
            if size.as_u64() > class.deficit {
                class.state = TurnState::Active;
                self.turns.rotate_left(1);
                passed += 1;
                if passed >= self.turns.len() {
                    self.skip_rounds(now, sink);
                    passed = 0;
                }
                continue;
            }
            class.deficit -= size.as_u64();
            let packet = class.leaf.dequeue(now, sink);
            if class.leaf.is_empty() {
                class.deficit = 0;
                class.state = TurnState::Idle;
                self.turns.pop_front();
            }
            return packet;
        }
    }

    class::discipline_of_classes!();
}
