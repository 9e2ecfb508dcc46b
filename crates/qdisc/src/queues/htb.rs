//! Hierarchical token bucket: a tree of classes, each with a guaranteed rate and a ceiling. A class that has
//! used its rate borrows from its parent what other classes do not use.
//!
//! Source: Linux sch_htb and M. Devera, "Hierarchical token bucket theory" (2002). The
//! decisions are those of sch_htb; see the deviations below.
//!
//! | symbol | here | unit |
//! |---|---|---|
//! | R, AR: rate, assured rate | `rate` | bit/s |
//! | CR: ceiling | `ceil` | bit/s |
//! | P, priority, 0 the most urgent | `prio` | |
//! | Q, quantum | `quantum` | bytes |
//! | B, buckets of rate and ceiling | `burst`, `cburst` | bytes |
//! | level: 0 for a class with a queue, 7 for the roots, one less for each step down | `level` | |
//!
//! A class *cannot send* while its ceiling's bucket is overdrawn; else it *can send* while
//! its rate's is not, and *may borrow* while that is. A packet of L bytes that leaves a
//! class with the tokens of its ancestor at level l is taken, even into debt, from the
//! ceilings' buckets of the class and all its ancestors, and from the rates' buckets of
//! those at level l and above. A class that may borrow and has something to send stands in the feed of its
//! parent, and so on up to an ancestor that can send. The lowest level with somebody to
//! serve is served first, in it the most urgent priority, in that the classes in deficit
//! round robin (a packet first, the quantum when the deficit is below zero, then the
//! next class). So borrowed bandwidth goes to the most urgent first and, among equals, in
//! proportion to their quanta; and a class below its own rate sends whatever its ancestors'
//! ceilings.
//!
//! Deviations from sch_htb: tokens are exact instead of rounded to nanoseconds, and debts are
//! paid however long that takes (there at most one minute's worth counts); there is no
//! direct queue, every packet has a class; `hysteresis` and `overhead` are left out, as
//! they are off in Linux.

use redtail_core::{
    Bytes, Metric, Packet, ParamError, ParamWarning, Rate, Span, Time, metrics, params,
};

use crate::class::{self, Leaf, LeafParams};
use crate::classify::{Classifier, OneOrMore, RuleParams};
use crate::follow::{self, Follower};
use crate::laws::token_bucket::TokenBucket;
use crate::plugin::PluginVisitor;
use crate::{
    Backlog, FigureNames, InnerVisitor, Limit, LinkFacts, QueueContext, QueueDiscipline, QueueKind,
    QueueParams, Report, Sink, Wakeup,
};

params! {
    /// A tree of classes that borrow from each other.
    pub struct HtbParams {
        /// The classes at the top. A packet goes to the first class in the file that has a queue and whose `match` fits it.
        class: Vec<HtbClassParams>;
        /// Name of the class for packets that no `match` fits; the class must have a queue.
        default: Option<String>, "the only class with a queue and without a `match`.";
        /// The shaper follows the link: its rates are multiplied by the link's present rate divided by the link's `rate`, this long after each change of that, by `rate_changes` or a `rate_trace` (of which the present rate is the mean of the last whole 100 ms). "0 s" follows at once.
        follow_after: Option<Span>, "none: the rates stay, as in Linux.";
        /// With `follow_after`, the number of the hop of a chain whose link it follows, in its own direction: such as the modem's, while the shaper stands in the router before it.
        #[schemars(range(min = 1))]
        follow_hop: Option<u32>, "none: the link that the queue stands before.";
    }
}

params! {
    /// A class of `htb`: with a queue, or with classes below it.
    #[schemars(rename = "HtbClass")]
    pub struct HtbClassParams {
        /// Name of the class, put in front of its metrics and used in keys.
        name: String;
        /// Packets of the class: a rule, or a list of rules of which one must fit. Only with a `queue`.
        rules as "match": Option<OneOrMore<RuleParams>>, "none, which makes it the default class.";
        /// Guaranteed rate of the class, which it has without borrowing.
        rate: Rate;
        /// Ceiling of the class: the largest rate that it reaches by borrowing from its parent.
        ceil: Option<Rate>, "`rate`, no borrowing, as in Linux (tc-htb).";
        /// Priority, 0 to 7: the class with the lowest number borrows first. Only with a `queue`.
        #[schemars(range(max = 7))]
        prio: u8 = 0, "Linux (tc-htb).";
        /// Bytes that the class sends in its turn among the classes of the same priority. Only with a `queue`.
        quantum: Option<Bytes>, "Linux sch_htb, `rate` in bytes per second over 10 (`r2q`), at least 1000 B and at most 200 kB.";
        /// Largest burst at the rate of the class after a pause.
        burst: Bytes = Bytes::new(1600), "iproute2 (tc-htb), its largest packet of 1600 B with a clock of high resolution.";
        /// Largest burst at the ceiling of the class after a pause.
        cburst: Bytes = Bytes::new(1600), "iproute2 (tc-htb), its largest packet of 1600 B with a clock of high resolution.";
        /// Queue of the class, of any kind, unless it has classes. Queue sizes that are given as times are converted to bytes with `rate`.
        queue: Option<Box<QueueParams>>;
        /// Classes below this class, which share its rate, unless it has a queue.
        class: Vec<HtbClassParams> = [];
    }
}

/// Levels of the tree, as in Linux (`TC_HTB_MAXDEPTH`).
const LEVELS: usize = 8;
/// Priorities, as in Linux (`TC_HTB_NUMPRIO`).
const PRIORITIES: usize = 8;

impl HtbClassParams {
    pub(crate) fn ceiling(&self) -> Rate {
        self.ceil.unwrap_or(self.rate)
    }

    fn turn(&self) -> Bytes {
        let computed = Bytes::new((self.rate.as_bps() / 8 / 10).clamp(1_000, 200_000));
        self.quantum.unwrap_or(computed)
    }

    fn check(&self, depth: usize) -> Result<(), ParamError> {
        let rate_such_as = "a rate such as \"1 Mbit/s\"";
        if self.rate.as_bps() == 0 {
            return Err(ParamError::new("rate", "is zero", rate_such_as));
        }
        if self.ceiling() < self.rate {
            let rate = self.rate;
            return Err(ParamError::new(
                "ceil",
                format!("is below rate ({rate})"),
                format!("at least \"{rate}\""),
            ));
        }
        for (key, size) in [("burst", self.burst), ("cburst", self.cburst)] {
            if size == Bytes::ZERO {
                return Err(ParamError::new(key, "is zero", "a size such as \"1600 B\""));
            }
        }
        if usize::from(self.prio) >= PRIORITIES {
            return Err(ParamError::new("prio", "is no priority", "0 to 7"));
        }
        if self.turn() == Bytes::ZERO || self.turn() > Bytes::new(1 << 32) {
            return Err(ParamError::new(
                "quantum",
                "is no share of a turn",
                "\"1 B\" to \"4 GB\", best at least the largest packet",
            ));
        }
        match (&self.queue, self.class.is_empty()) {
            (None, true) => Err(ParamError::new(
                "queue",
                "is missing, and there are no classes below",
                "a queue, or a list of classes",
            )),
            (Some(_), false) => Err(ParamError::new(
                "queue",
                "stands beside classes, and only a class without any holds packets",
                "one of the two",
            )),
            (Some(_), true) => Ok(()),
            (None, false) => self.check_inner(depth),
        }
    }

    /// Visits the plug-ins in the class and below it; `key` is the key of the table around it.
    fn plugins(&mut self, key: &str, visit: &mut PluginVisitor<'_>) -> Result<(), ParamError> {
        let key = format!("{key}.class.{}", self.name);
        if let Some(queue) = &mut self.queue {
            queue.plugins(&format!("{key}.queue"), visit)?;
        }
        let mut classes = self.class.iter_mut();
        classes.try_for_each(|class| class.plugins(&key, visit))
    }

    /// Refuses keys about packets in a class that holds none.
    fn check_inner(&self, depth: usize) -> Result<(), ParamError> {
        let of_leaves = [
            ("match", self.rules.is_some()),
            ("quantum", self.quantum.is_some()),
            ("prio", self.prio != 0),
        ];
        if let Some((key, _)) = of_leaves.iter().find(|(_, given)| *given) {
            return Err(ParamError::new(
                *key,
                "has no meaning for a class of classes",
                "the key in the classes below it",
            ));
        }
        if depth + 1 >= LEVELS {
            return Err(ParamError::new(
                "class",
                "is one level too many",
                format!("at most {LEVELS} levels, as in Linux"),
            ));
        }
        Ok(())
    }
}

/// A class with its ancestors; parents come before their children.
pub(crate) struct Place<'a> {
    pub(crate) params: &'a HtbClassParams,
    pub(crate) parent: Option<usize>,
    list: String,
    depth: usize,
}

impl Place<'_> {
    fn key(&self) -> String {
        format!("{}.{}", self.list, self.params.name)
    }
}

impl HtbParams {
    /// Every class in the order of the file.
    pub(crate) fn places(&self) -> Vec<Place<'_>> {
        fn add<'a>(
            classes: &'a [HtbClassParams],
            parent: Option<usize>,
            list: &str,
            depth: usize,
            places: &mut Vec<Place<'a>>,
        ) {
            for params in classes {
                places.push(Place {
                    params,
                    parent,
                    list: list.to_owned(),
                    depth,
                });
                let below = format!("{list}.{}.class", params.name);
                add(
                    &params.class,
                    Some(places.len() - 1),
                    &below,
                    depth + 1,
                    places,
                );
            }
        }
        let mut places = Vec::new();
        add(&self.class, None, "class", 0, &mut places);
        places
    }

    pub(crate) fn leaves(&self) -> Vec<LeafParams<'_>> {
        let leaves = self.places().into_iter();
        leaves
            .filter(|place| place.params.queue.is_some())
            .map(|place| LeafParams {
                list: place.list,
                name: &place.params.name,
                rules: place.params.rules.as_ref(),
                queue: place.params.queue.as_deref(),
                rate: Some(place.params.rate),
            })
            .collect()
    }

    fn check_tree(
        classes: &[HtbClassParams],
        list: &str,
        depth: usize,
        taken: &mut Vec<String>,
    ) -> Result<(), ParamError> {
        class::check_names(list, classes.iter().map(|class| class.name.as_str()), taken)?;
        for class in classes {
            let key = format!("{list}.{}", class.name);
            class.check(depth).map_err(|error| error.within(&key))?;
            if !class.class.is_empty() {
                Self::check_tree(&class.class, &format!("{key}.class"), depth + 1, taken)?;
            }
        }
        Ok(())
    }

    /// Warns of guaranteed rates that are together above the rate of the parent, and of ceilings above it.
    fn odd_rates(&self, link: &LinkFacts) -> Vec<ParamWarning> {
        let mut found = Vec::new();
        let places = self.places();
        let sum = |parent: Option<usize>| {
            let children = places.iter().filter(|place| place.parent == parent);
            let rates = children.map(|place| place.params.rate.as_bps());
            Rate::from_bps(rates.fold(0, u64::saturating_add))
        };
        let promised = sum(None);
        if promised > link.rate {
            let clause = format!(
                "promises {promised} in all, more than the link's {}: it cannot be kept",
                link.rate
            );
            found.push(ParamWarning::new("class", clause));
        }
        for (i, place) in places.iter().enumerate() {
            let key = place.key();
            let mut warn = |part: &str, clause: String| {
                found.push(ParamWarning::new(part.to_owned(), clause).within(&key));
            };
            let (promised, rate) = (sum(Some(i)), place.params.rate);
            if promised > rate {
                warn(
                    "rate",
                    format!(
                        "is less than the {promised} that its classes are promised: together they \
                         will exceed it"
                    ),
                );
            }
            let above = place.parent.map(|parent| places[parent].params.ceiling());
            if let (Some(ceil), Some(above)) = (place.params.ceil, above)
                && ceil > above
            {
                warn(
                    "ceil",
                    format!("is above its parent's ({above}), which holds"),
                );
            }
            if place.params.queue.is_some() && place.params.turn() < link.largest_packet {
                let largest = link.largest_packet;
                let clause = match place.params.quantum {
                    Some(_) => format!("is below the largest packet ({largest})"),
                    None => format!(
                        "(by default \"{}\") is below the largest packet ({largest})",
                        place.params.turn()
                    ),
                };
                let clause = clause + ": borrowing is then shared by packets rather than by quanta";
                // Alone at its priority, it shares with none.
                let like = |other: &&Place<'_>| {
                    other.params.queue.is_some() && other.params.prio == place.params.prio
                };
                if places.iter().filter(like).count() > 1 {
                    warn("quantum", clause);
                }
            }
        }
        found
    }
}

metrics! {
    /// What `htb` reports of each class besides what every class reports.
    pub const METRICS of Class;

    /// Packets that the class sent with tokens borrowed from the classes above it.
    BORROWED = "borrowed", Count, "Packets sent with borrowed tokens", "borrowed";
}

impl QueueKind for HtbParams {
    type Queue<P: Packet> = Htb<P>;

    const METRICS: &'static [&'static [&'static Metric]] = &[class::METRICS, METRICS];

    fn example() -> &'static str {
        r#"class = [{ name = "link", rate = "10 Mbit/s", class = [
  { name = "always", match = { group = "always" }, rate = "6 Mbit/s", ceil = "10 Mbit/s", queue = { kind = "tail-drop", limit = "100 packets" } },
  { name = "step", rate = "4 Mbit/s", ceil = "10 Mbit/s", queue = { kind = "tail-drop", limit = "100 packets" } },
] }]"#
    }

    fn figures(&self, names: &mut FigureNames) {
        class::figures(&self.leaves(), METRICS, names);
    }

    fn check(&self) -> Result<(), ParamError> {
        Self::check_tree(&self.class, "class", 0, &mut Vec::new())?;
        class::check(&self.leaves(), self.default.as_deref())
    }

    fn check_at(&self, link: &LinkFacts) -> Result<(), ParamError> {
        follow::check(self.follow_after, self.follow_hop, link)?;
        class::check_at(&self.leaves(), self.default.as_deref(), link)
    }

    fn warnings(&self, link: &LinkFacts) -> Vec<ParamWarning> {
        let mut found = self.odd_rates(link);
        found.extend(class::warnings(
            &self.leaves(),
            self.default.as_deref(),
            link,
        ));
        found
    }

    fn limit(&self) -> Option<Limit> {
        None
    }

    fn inner(&self, link: &LinkFacts, visit: &mut InnerVisitor<'_>) {
        class::inner(&self.leaves(), self.default.as_deref(), link, visit);
    }

    fn plugins(&mut self, key: &str, visit: &mut PluginVisitor<'_>) -> Result<(), ParamError> {
        let mut classes = self.class.iter_mut();
        classes.try_for_each(|class| class.plugins(key, visit))
    }

    fn build<P: Packet>(&self, context: QueueContext) -> Htb<P> {
        let leaves = self.leaves();
        let default = class::default_class(&leaves, self.default.as_deref());
        let default = default.expect("the parameters have been checked");
        let classifier = class::classifier(&leaves, default, &context.link);
        let leaves = class::build(&leaves, default, &context);
        let places = self.places();
        let mut held = Vec::new();
        let mut nodes: Vec<Node> = Vec::new();
        for place in &places {
            let params = place.params;
            let level = match &params.queue {
                Some(_) => 0,
                None => LEVELS - 1 - place.depth,
            };
            if params.queue.is_some() {
                held.push(nodes.len());
            }
            nodes.push(Node {
                parent: place.parent,
                level,
                leaf: params.queue.is_some().then(|| held.len() - 1),
                prio: usize::from(params.prio),
                rate: TokenBucket::full(params.rate, params.burst),
                ceil: TokenBucket::full(params.ceiling(), params.cburst),
                rates: (params.rate, params.ceiling()),
                mode: Mode::CanSend,
                changes: None,
                activity: 0,
                feeds: match &params.queue {
                    Some(_) => Vec::new(),
                    None => (0..PRIORITIES).map(|_| Ring::default()).collect(),
                },
                quantum: params.turn().as_u64() as i64,
                deficit: [0; LEVELS],
                borrowed: 0,
            });
        }
        Htb {
            classifier,
            leaves,
            held,
            tree: Box::new(Tree {
                nodes,
                rows: Default::default(),
                occupied: [0; LEVELS],
                next_change: [Time::MAX; LEVELS],
            }),
            wakeup: None,
            follower: Follower::new(self.follow_after, self.follow_hop, &context.link),
        }
    }
}

/// Whether a class may send now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    CanSend,
    MayBorrow,
    CannotSend,
}

/// Classes that are served in turn, in the order of the file, and the one that is served now.
#[derive(Debug)]
struct Ring {
    members: Vec<usize>,
    /// The member that is served is the first one with this number or a higher one. Without such a member
    /// the round is over.
    turn: usize,
}

/// The value for a round that is over.
const OVER: usize = usize::MAX;

impl Default for Ring {
    fn default() -> Self {
        Self {
            members: Vec::new(),
            turn: OVER,
        }
    }
}

impl Ring {
    fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    fn insert(&mut self, node: usize) {
        if let Err(place) = self.members.binary_search(&node) {
            self.members.insert(place, node);
        }
    }

    /// Removes a member. The number stays, so the next member is served.
    fn remove(&mut self, node: usize) {
        if let Ok(place) = self.members.binary_search(&node) {
            self.members.remove(place);
        }
    }

    /// The member after `node`, or the end of the round.
    fn after(&self, node: usize) -> usize {
        let place = self.members.partition_point(|member| *member <= node);
        self.members.get(place).copied().unwrap_or(OVER)
    }

    /// The member to serve; `None` when the round is over.
    fn current(&mut self) -> Option<usize> {
        if self.turn == OVER {
            return None;
        }
        let place = self.members.partition_point(|member| *member < self.turn);
        let member = self.members.get(place).copied();
        self.turn = member.unwrap_or(OVER);
        member
    }

    fn advance(&mut self) {
        if self.turn != OVER {
            self.turn = self.after(self.turn);
        }
    }

    fn rewind(&mut self) {
        self.turn = 0;
    }
}

#[derive(Debug)]
struct Node {
    parent: Option<usize>,
    level: usize,
    /// The queue of the class, among those of the tree.
    leaf: Option<usize>,
    prio: usize,
    rate: TokenBucket,
    ceil: TokenBucket,
    /// Rate and ceiling before they follow the link.
    rates: (Rate, Rate),
    mode: Mode,
    /// The time at which the mode can change although no packet is sent.
    changes: Option<Time>,
    /// Bit p: a packet of priority p waits, in this class or in the classes in its feeds.
    activity: u8,
    /// By priority, the children that borrow from this class and have something to send.
    feeds: Vec<Ring>,
    quantum: i64,
    /// The deficits of the class, by the level at which it is served.
    deficit: [i64; LEVELS],
    /// Packets sent with borrowed tokens, since the measurement began.
    borrowed: u64,
}

impl Node {
    /// The mode at `now`, and the time at which it will change if no packet is sent.
    fn mode_at(&self, now: Time) -> (Mode, Option<Time>) {
        if self.ceil.level(now) < 0 {
            (Mode::CannotSend, Some(self.ceil.when(0, now)))
        } else if self.rate.level(now) >= 0 {
            (Mode::CanSend, None)
        } else {
            (Mode::MayBorrow, Some(self.rate.when(0, now)))
        }
    }
}

/// The classes, and those of them that are to be served.
#[derive(Debug)]
struct Tree {
    nodes: Vec<Node>,
    /// By level and priority, the classes that can send and have packets, of their own or in their feeds.
    rows: [[Ring; PRIORITIES]; LEVELS],
    /// Bit p of a level: the row of priority p is not empty.
    occupied: [u8; LEVELS],
    /// By level, a time that is not later than the first change of a mode without a packet.
    next_change: [Time; LEVELS],
}

/// The priorities in a set of bits.
fn priorities(mut bits: u8) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let lowest = bits.trailing_zeros() as usize;
        bits &= bits.wrapping_sub(1);
        (lowest < PRIORITIES).then_some(lowest)
    })
}

impl Tree {
    /// A class that has packets of these priorities enters the row from which it is served, or the feed of
    /// the class from which it borrows.
    fn enter(&mut self, node: usize, prios: u8) {
        let Node {
            mode,
            level,
            parent,
            ..
        } = self.nodes[node];
        match (mode, parent) {
            (Mode::CanSend, _) => {
                for prio in priorities(prios) {
                    self.rows[level][prio].insert(node);
                }
                self.occupied[level] |= prios;
            }
            (Mode::MayBorrow, Some(parent)) => {
                let lender = &mut self.nodes[parent];
                let mut new = 0;
                for prio in priorities(prios) {
                    new |= u8::from(lender.feeds[prio].is_empty()) << prio;
                    lender.feeds[prio].insert(node);
                }
                // At the other priorities the lender has its own place already.
                lender.activity |= new;
                self.enter(parent, new);
            }
            (Mode::MayBorrow, None) | (Mode::CannotSend, _) => {}
        }
    }

    /// The reverse of [`enter`](Self::enter), in the same mode.
    fn leave(&mut self, node: usize, prios: u8) {
        let Node {
            mode,
            level,
            parent,
            ..
        } = self.nodes[node];
        match (mode, parent) {
            (Mode::CanSend, _) => {
                for prio in priorities(prios) {
                    let row = &mut self.rows[level][prio];
                    if row.turn == node {
                        // Unlike in a feed, the turn does not wait for the class to come back.
                        row.turn = row.after(node);
                    }
                    row.remove(node);
                    self.occupied[level] &= !(u8::from(row.is_empty()) << prio);
                }
            }
            (Mode::MayBorrow, Some(parent)) => {
                let lender = &mut self.nodes[parent];
                let mut gone = 0;
                for prio in priorities(prios) {
                    lender.feeds[prio].remove(node);
                    gone |= u8::from(lender.feeds[prio].is_empty()) << prio;
                }
                lender.activity &= !gone;
                self.leave(parent, gone);
            }
            (Mode::MayBorrow, None) | (Mode::CannotSend, _) => {}
        }
    }

    /// Updates the mode of a class.
    fn update_mode(&mut self, node: usize, now: Time) {
        let (mode, changes) = self.nodes[node].mode_at(now);
        if mode != self.nodes[node].mode {
            let prios = self.nodes[node].activity;
            self.leave(node, prios);
            self.nodes[node].mode = mode;
            self.enter(node, prios);
        }
        self.note_change(node, changes);
    }

    fn note_change(&mut self, node: usize, changes: Option<Time>) {
        let Node { level, .. } = self.nodes[node];
        self.nodes[node].changes = changes;
        if let Some(at) = changes {
            self.next_change[level] = self.next_change[level].min(at);
        }
    }

    /// Updates the modes of a level that can have changed.
    fn pass_time(&mut self, level: usize, now: Time) {
        if self.next_change[level] > now {
            return;
        }
        self.next_change[level] = Time::MAX;
        for node in 0..self.nodes.len() {
            let Node {
                level: at_level,
                changes: Some(at),
                ..
            } = self.nodes[node]
            else {
                continue;
            };
            if at_level != level {
                continue;
            }
            if at <= now {
                self.update_mode(node, now);
            } else {
                self.next_change[level] = self.next_change[level].min(at);
            }
        }
    }

    /// The class with a queue to serve at this level and priority; `None` only if the row is empty.
    fn whose_turn(&mut self, level: usize, prio: usize) -> Option<usize> {
        let (mut path, mut depth) = ([0; LEVELS], 0);
        if self.rows[level][prio].is_empty() {
            return None;
        }
        loop {
            match self.ring_below(level, prio, &path[..depth]).current() {
                Some(node) if self.nodes[node].leaf.is_some() => return Some(node),
                Some(node) => {
                    path[depth] = node;
                    depth += 1;
                }
                None => {
                    self.ring_below(level, prio, &path[..depth]).rewind();
                    if depth > 0 {
                        // A feed's round is over: it is the turn of its class's neighbour.
                        depth -= 1;
                        self.ring_below(level, prio, &path[..depth]).advance();
                    }
                }
            }
        }
    }

    /// The feed of the last class on `path`, or the row in which the path begins.
    fn ring_below(&mut self, level: usize, prio: usize, path: &[usize]) -> &mut Ring {
        match path.last() {
            None => &mut self.rows[level][prio],
            Some(&node) => &mut self.nodes[node].feeds[prio],
        }
    }

    /// The turn of a class with a queue, served at this level, is over.
    fn next_turn(&mut self, node: usize, level: usize, prio: usize) {
        match self.nodes[node].parent {
            Some(parent) if level > 0 => self.nodes[parent].feeds[prio].advance(),
            _ => self.rows[0][prio].advance(),
        }
    }

    /// A packet has left `leaf` with the tokens of its ancestor at `level`.
    fn charge(&mut self, leaf: usize, level: usize, size: Bytes, now: Time) {
        let mut next = Some(leaf);
        while let Some(node) = next {
            let class = &mut self.nodes[node];
            if class.level >= level {
                class.rate.charge(size, now);
            }
            class.ceil.charge(size, now);
            next = class.parent;
            self.update_mode(node, now);
        }
    }

    /// A class with a queue has something to send.
    fn activate(&mut self, leaf: usize) {
        if self.nodes[leaf].activity == 0 {
            let prios = 1 << self.nodes[leaf].prio;
            self.nodes[leaf].activity = prios;
            self.enter(leaf, prios);
        }
    }

    /// A class with a queue has nothing left to send.
    fn put_to_rest(&mut self, leaf: usize) {
        let prios = std::mem::take(&mut self.nodes[leaf].activity);
        self.leave(leaf, prios);
    }
}

/// The running queue.
#[derive(Debug)]
pub struct Htb<P: Packet> {
    classifier: Classifier,
    /// The classes with a queue.
    leaves: Vec<Leaf<P>>,
    /// The places of these classes in the tree.
    held: Vec<usize>,
    tree: Box<Tree>,
    /// The time at which a class can send again, set when a packet was asked for too early.
    wakeup: Option<Time>,
    follower: Follower,
}

impl<P: Packet> Htb<P> {
    /// The rates change that are due to.
    #[cold]
    fn follow(&mut self, now: Time) {
        while let Some((at, scale)) = self.follower.change(now) {
            for node in 0..self.tree.nodes.len() {
                let class = &mut self.tree.nodes[node];
                class.rate.set_rate(scale.of(class.rates.0), at);
                class.ceil.set_rate(scale.of(class.rates.1), at);
                self.tree.update_mode(node, at);
            }
        }
    }

    /// Removes and returns a packet from a row, which is not empty.
    fn serve(
        &mut self,
        level: usize,
        prio: usize,
        now: Time,
        sink: &mut impl Sink<P>,
    ) -> Option<P> {
        // Each class twice at most: those whose queues hold back what they have are
        // passed over, and the ends of rounds may repeat some.
        for _ in 0..=2 * self.leaves.len() {
            let node = self.tree.whose_turn(level, prio)?;
            let index = self.tree.nodes[node]
                .leaf
                .expect("turns are those of leaves");
            let leaf = &mut self.leaves[index];
            let Some(packet) = leaf.dequeue(now, sink) else {
                if leaf.is_empty() {
                    // Its queue has dropped all that it had.
                    self.tree.put_to_rest(node);
                } else {
                    self.tree.next_turn(node, level, prio);
                }
                continue;
            };
            let class = &mut self.tree.nodes[node];
            class.borrowed += u64::from(level > 0);
            class.deficit[level] -= packet.size().as_u64() as i64;
            if class.deficit[level] < 0 {
                class.deficit[level] += class.quantum;
                self.tree.next_turn(node, level, prio);
            }
            if leaf.is_empty() {
                self.tree.put_to_rest(node);
            }
            self.tree.charge(node, level, packet.size(), now);
            return Some(packet);
        }
        None
    }
}

impl<P: Packet> QueueDiscipline<P> for Htb<P> {
    fn enqueue(&mut self, packet: P, now: Time, sink: &mut impl Sink<P>) {
        let class = self.classifier.class_of(&packet);
        let leaf = &mut self.leaves[class];
        leaf.enqueue(packet, now, sink);
        if !leaf.is_empty() {
            self.tree.activate(self.held[class]);
        }
    }

    fn dequeue(&mut self, now: Time, sink: &mut impl Sink<P>) -> Option<P> {
        self.wakeup = None;
        if self.follower.next() <= now {
            self.follow(now);
        }
        for level in 0..LEVELS {
            self.tree.pass_time(level, now);
            for prio in priorities(self.tree.occupied[level]) {
                if let Some(packet) = self.serve(level, prio, now, sink) {
                    return Some(packet);
                }
            }
        }
        let changes = self.tree.next_change.iter().copied();
        let next = changes.fold(self.follower.next(), Time::min);
        let waiting = self.leaves.iter().any(|leaf| !leaf.is_empty());
        self.wakeup = Some(next).filter(|at| waiting && *at < Time::MAX);
        None
    }

    fn next_wakeup(&self) -> Wakeup {
        class::next_wakeup(self.leaves.iter()).min(self.wakeup.into())
    }

    fn on_wakeup(&mut self, now: Time) {
        self.wakeup.take_if(|at| *at <= now);
        self.leaves.iter_mut().for_each(|leaf| leaf.on_wakeup(now));
    }

    fn backlog(&self) -> Backlog {
        class::backlog(self.leaves.iter())
    }

    fn start_measuring(&mut self, now: Time) {
        self.leaves
            .iter_mut()
            .for_each(|leaf| leaf.start_measuring(now));
        self.tree
            .nodes
            .iter_mut()
            .for_each(|node| node.borrowed = 0);
    }

    fn report(&self, now: Time, report: &mut Report<'_>) {
        for (leaf, &node) in self.leaves.iter().zip(&self.held) {
            leaf.report(now, report);
            let borrowed = self.tree.nodes[node].borrowed as f64;
            report.of_class(leaf.name()).tell(BORROWED, borrowed);
        }
    }
}
