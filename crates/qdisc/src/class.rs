//! Common parts of class-based disciplines: named classes, each with a queue of any kind and with metrics.
//!
//! A scheduler must know the size of a class's next packet before it decides ([`Leaf::peek`]). If the queue
//! of the class cannot tell its next packet ([`QueueDiscipline::front`]), the packet is removed from the
//! queue and held. It does not count for the limit of the queue any more, and the queue has already made its
//! decision about a departing packet (as CoDel does). Linux does the same (`qdisc_peek_dequeued`).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use redtail_core::{Bytes, Metric, Packet, ParamError, ParamWarning, Rate, Time, metrics};

use crate::classify::{Classifier, OneOrMore, RuleParams, check_rules, check_rules_at};
use crate::{
    AnyQueue, Backlog, DropReason, FigureNames, InnerVisitor, LinkFacts, QueueContext,
    QueueDiscipline, QueueParams, Report, Sink, TcpHeader, Wakeup,
};

/// A class that holds packets, as the file describes it.
#[derive(Clone, Debug)]
pub struct LeafParams<'a> {
    /// The key of the list that it is in: `class`, `class.all.class`.
    pub list: String,
    /// The name of the class.
    pub name: &'a str,
    /// The rules for the packets that belong to it.
    pub rules: Option<&'a OneOrMore<RuleParams>>,
    /// Its queue; `None` if the file has left it out. A missing queue is refused where one is required.
    pub queue: Option<&'a QueueParams>,
    /// The guaranteed rate of the class on this link. A time in the parameters of its queue is converted at
    /// this rate.
    pub rate: Option<Rate>,
}

impl LeafParams<'_> {
    /// The key of the class.
    pub fn key(&self) -> String {
        format!("{}.{}", self.list, self.name)
    }
}

/// Refuses a name that cannot be a part of a key, and a name that is used twice.
///
/// # Errors
/// [`ParamError`] about the list, whose key is `list`.
pub fn check_names<'a>(
    list: &str,
    names: impl Iterator<Item = &'a str>,
    taken: &mut Vec<String>,
) -> Result<(), ParamError> {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let before = taken.len();
    for name in names {
        if name.is_empty() || !name.chars().all(plain) {
            return Err(ParamError::new(
                list.to_owned(),
                format!("has a class called {name:?}, which cannot be part of a key"),
                "letters, digits, \"_\" and \"-\"",
            ));
        }
        if taken.iter().any(|other| other == name) {
            return Err(ParamError::new(
                list.to_owned(),
                format!("has a class called {name:?}, and so is another"),
                "a name of its own for each class",
            ));
        }
        taken.push(name.to_owned());
    }
    if taken.len() == before {
        return Err(ParamError::new(
            list.to_owned(),
            "has no class",
            "one class or more",
        ));
    }
    Ok(())
}

/// The number of the default class, for packets that no rule matches: the class that the key `default`
/// names; without this key, the only class without rules.
///
/// # Errors
/// [`ParamError`] about the key `default`.
pub fn default_class(
    leaves: &[LeafParams<'_>],
    default: Option<&str>,
) -> Result<usize, ParamError> {
    let names: Vec<_> = leaves.iter().map(|leaf| leaf.name).collect();
    let accepted = || names.join(", ");
    if let Some(wanted) = default {
        let found = names.iter().position(|name| *name == wanted);
        return found
            .ok_or_else(|| ParamError::new("default", "is no class with a queue", accepted()));
    }
    let mut open = (0..leaves.len()).filter(|&i| leaves[i].rules.is_none());
    match (open.next(), open.next()) {
        (Some(only), None) => Ok(only),
        (None, _) => Err(ParamError::new(
            "default",
            "is not given, and every class has a match: other packets would have no class",
            accepted(),
        )),
        (Some(one), Some(other)) => Err(ParamError::new(
            "default",
            format!(
                "is not given, and more than one class has no match: {}, {}",
                names[one], names[other]
            ),
            accepted(),
        )),
    }
}

/// Refuses classes that cannot work on any link. Their names must have been checked.
///
/// # Errors
/// [`ParamError`] with the key from the discipline's table on.
pub fn check(leaves: &[LeafParams<'_>], default: Option<&str>) -> Result<(), ParamError> {
    default_class(leaves, default)?;
    for leaf in leaves {
        let rules = leaf.rules.map_or(Ok(()), check_rules);
        let queue = |params: &QueueParams| params.check().map_err(|error| error.within("queue"));
        rules
            .and_then(|()| leaf.queue.map_or(Ok(()), queue))
            .map_err(|error| error.within(&leaf.key()))?;
    }
    Ok(())
}

/// Refuses classes that cannot work on this link.
///
/// # Errors
/// As [`check`].
pub fn check_at(
    leaves: &[LeafParams<'_>],
    default: Option<&str>,
    link: &LinkFacts,
) -> Result<(), ParamError> {
    let all = facts_of(leaves, default_class(leaves, default)?, link);
    for (leaf, facts) in leaves.iter().zip(all) {
        let rules = leaf
            .rules
            .map_or(Ok(()), |rules| check_rules_at(rules, link));
        let queue = |params: &QueueParams| {
            params
                .check_at(&facts)
                .map_err(|error| error.within("queue"))
        };
        rules
            .and_then(|()| leaf.queue.map_or(Ok(()), queue))
            .map_err(|error| error.within(&leaf.key()))?;
    }
    Ok(())
}

/// Warns of classes that no packet reaches, and collects the warnings of their queues.
pub fn warnings(
    leaves: &[LeafParams<'_>],
    default: Option<&str>,
    link: &LinkFacts,
) -> Vec<ParamWarning> {
    let mut found = Vec::new();
    let Ok(default) = default_class(leaves, default) else {
        return found;
    };
    let of_groups = classifier(leaves, default, link).of_groups();
    let reached: BTreeSet<usize> = of_groups.iter().flat_map(BTreeMap::keys).copied().collect();
    let facts = facts_of(leaves, default, link);
    for (i, (leaf, facts)) in leaves.iter().zip(facts).enumerate() {
        let clause = match leaf.rules {
            _ if i == default || reached.contains(&i) => None,
            None => Some("has no match and is not the default: no packet reaches it"),
            // Without knowledge of flows there is nothing to say.
            Some(_) if link.flows.count() == 0 => None,
            Some(_) => Some(
                "gets nothing: no traffic group fits its match, or classes before it take all that does",
            ),
        };
        let key = leaf.key();
        if let Some(clause) = clause {
            // The value of a whole class is too long to be shown.
            let part = if leaf.rules.is_some() {
                "match"
            } else {
                "name"
            };
            found.push(ParamWarning::new(part, clause).within(&key));
        }
        if let Some(queue) = leaf.queue {
            let inner = queue.warnings(&facts);
            found.extend(inner.into_iter().map(|warning| {
                let warning = warning.within("queue");
                warning.within(&key)
            }));
        }
    }
    found
}

/// The classifier of these classes.
pub fn classifier(leaves: &[LeafParams<'_>], default: usize, link: &LinkFacts) -> Classifier {
    let rules = leaves.iter().map(|leaf| leaf.rules);
    Classifier::new(rules, default, Arc::clone(&link.flows))
}

/// Calls `visit` with the queues of these classes, as [`QueueKind::inner`] does.
///
/// [`QueueKind::inner`]: crate::QueueKind::inner
pub fn inner(
    leaves: &[LeafParams<'_>],
    default: Option<&str>,
    link: &LinkFacts,
    visit: &mut InnerVisitor<'_>,
) {
    let default = default_class(leaves, default).expect("the parameters have been checked");
    for (leaf, facts) in leaves.iter().zip(facts_of(leaves, default, link)) {
        if let Some(queue) = leaf.queue {
            visit(&format!("{}.queue", leaf.key()), queue, &facts);
        }
    }
}

/// The link as the queue of each class sees it: with the guaranteed rate of the class, and with the flows of
/// the groups that its rules match.
fn facts_of(leaves: &[LeafParams<'_>], default: usize, link: &LinkFacts) -> Vec<LinkFacts> {
    let of_groups = classifier(leaves, default, link).of_groups();
    let facts = |(class, leaf): (usize, &LeafParams<'_>)| {
        let own = |group: u32| {
            let of_group = of_groups.get(group as usize);
            let here = of_group.and_then(|it| it.get(&class)).copied();
            (
                here.unwrap_or(0),
                of_group.map_or(0, |it| it.values().sum()),
            )
        };
        facts_at(&link.with_flows(own), leaf.rate)
    };
    leaves.iter().enumerate().map(facts).collect()
}

/// The link as a queue sees it whose guaranteed rate is `rate`.
pub fn facts_at(link: &LinkFacts, rate: Option<Rate>) -> LinkFacts {
    LinkFacts {
        rate: rate.map_or(link.rate, |rate| rate.min(link.rate)),
        ..link.clone()
    }
}

/// `rate` multiplied by `share / all`; at least 1 bit/s.
pub fn share_of(rate: Rate, share: u64, all: u64) -> Rate {
    let part = u128::from(rate.as_bps()) * u128::from(share) / u128::from(all.max(1));
    Rate::from_bps((part as u64).max(1))
}

/// Builds the queues of these classes; `default` is the number of the default class.
pub fn build<P: Packet>(
    leaves: &[LeafParams<'_>],
    default: usize,
    context: &QueueContext,
) -> Vec<Leaf<P>> {
    let facts = facts_of(leaves, default, &context.link);
    let queues = leaves.iter().zip(facts);
    queues
        .filter_map(|(leaf, facts)| Some(Leaf::new(leaf.name, leaf.queue?, facts, context)))
        .collect()
}

metrics! {
    /// The metrics of every class.
    pub const METRICS of Class;

    /// Packets that the class sent in the period.
    PACKETS = "packets", Count, "Packets sent by the class", "packets";
    /// Bytes on the link that the class sent in the period.
    BYTES = "bytes", Bytes, "Bytes sent by the class", "bytes";
    /// Packets of the class that were dropped in the period.
    DROPS = "drops", Count, "Packets dropped in the class", "drops";
    /// Packets of the class that its queue marked (ECN) in the period.
    MARKS = "marks", Count, "Packets marked in the class", "marks";
    /// Mean time from a packet's arrival to its departure from the class.
    QUEUE_DELAY_MEAN = "queue_delay_mean", Delay, "Mean queueing delay", "delay";
}

/// Adds the names of the metrics of these classes and of their queues; `also` are the discipline's own metrics
/// of each class.
pub fn figures(leaves: &[LeafParams<'_>], also: &[&'static Metric], names: &mut FigureNames) {
    for leaf in leaves {
        names.of_class(leaf.name, |names| {
            names.add(METRICS);
            if let Some(queue) = leaf.queue {
                queue.figures(names);
            }
            names.add(also);
        });
    }
}

/// Counters of a class since the measurement began.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    packets: u64,
    bytes: u64,
    drops: u64,
    marks: u64,
    /// Sum over packets of the time from entry to exit, in picoseconds.
    delay: u128,
}

/// A running class: its queue, the packet that was removed from it to know its size, and its counters.
#[derive(Debug)]
pub struct Leaf<P: Packet> {
    name: String,
    queue: AnyQueue<P>,
    head: Option<P>,
    tally: Tally,
}

/// Counts the drops and marks of a class's queue, and passes them on. The next sink is not a type parameter,
/// because queues inside queues would need infinitely many types.
struct Counting<'a, P> {
    tally: &'a mut Tally,
    sink: &'a mut dyn Sink<P>,
}

impl<P> Sink<P> for Counting<'_, P> {
    fn dropped(&mut self, packet: P, reason: DropReason, now: Time) {
        self.tally.drops += 1;
        self.sink.dropped(packet, reason, now);
    }
    fn marked(&mut self, packet: &P, now: Time) {
        self.tally.marks += 1;
        self.sink.marked(packet, now);
    }
    fn tcp_header(&self, packet: &P) -> Option<TcpHeader> {
        self.sink.tcp_header(packet)
    }
}

impl<P: Packet> Leaf<P> {
    /// A class called `name` with an empty queue, which sees the link as `facts` have it.
    pub fn new(name: &str, queue: &QueueParams, facts: LinkFacts, context: &QueueContext) -> Self {
        let context = QueueContext {
            rate: facts.rate,
            link: Arc::new(facts),
            ..context.child(name)
        };
        Self {
            name: name.to_owned(),
            queue: queue.build(context),
            head: None,
            tally: Tally::default(),
        }
    }

    /// The name of the class.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Offers `packet` to the class's queue.
    pub fn enqueue(&mut self, packet: P, now: Time, sink: &mut dyn Sink<P>) {
        let tally = &mut self.tally;
        self.queue
            .enqueue(packet, now, &mut Counting { tally, sink });
    }

    /// The size of the packet that `dequeue` will return. `None` when the queue is empty or
    /// may not send now.
    pub fn peek(&mut self, now: Time, sink: &mut dyn Sink<P>) -> Option<Bytes> {
        if self.head.is_none() {
            if let Some(front) = self.queue.front() {
                return Some(front.size());
            }
            self.head = self.take(now, sink);
        }
        self.head.as_ref().map(Packet::size)
    }

    /// The class's next packet. `None` when its queue is empty or may not send now.
    pub fn dequeue(&mut self, now: Time, sink: &mut dyn Sink<P>) -> Option<P> {
        let packet = match self.head.take() {
            Some(packet) => packet,
            None => self.take(now, sink)?,
        };
        self.tally.packets += 1;
        self.tally.bytes += packet.size().as_u64();
        self.tally.delay += u128::from(now.saturating_since(packet.enqueued()).as_ps());
        Some(packet)
    }

    fn take(&mut self, now: Time, sink: &mut dyn Sink<P>) -> Option<P> {
        let tally = &mut self.tally;
        self.queue.dequeue(now, &mut Counting { tally, sink })
    }

    /// Drops `packet`, which the discipline has refused before the class's queue.
    pub fn refuse(&mut self, packet: P, reason: DropReason, now: Time, sink: &mut dyn Sink<P>) {
        let tally = &mut self.tally;
        Counting { tally, sink }.dropped(packet, reason, now);
    }

    /// Whether no packet waits.
    pub fn is_empty(&self) -> bool {
        self.head.is_none() && self.queue.backlog().packets == 0
    }

    /// The backlog, with the packet that is held.
    pub fn backlog(&self) -> Backlog {
        let queued = self.queue.backlog();
        let held = self.head.as_ref().map_or(0, |head| head.size().as_u64());
        Backlog {
            packets: queued.packets + u64::from(self.head.is_some()),
            bytes: queued.bytes + held,
        }
    }

    /// When the class's queue is to be woken.
    pub fn next_wakeup(&self) -> Wakeup {
        self.queue.next_wakeup()
    }

    /// Wakes the class's queue if it asked for this time or an earlier one.
    pub fn on_wakeup(&mut self, now: Time) {
        if self.queue.next_wakeup().is_due(now) {
            self.queue.on_wakeup(now);
        }
    }

    /// The measurement begins.
    pub fn start_measuring(&mut self, now: Time) {
        self.tally = Tally::default();
        self.queue.start_measuring(now);
    }

    /// Reports the metrics of the class's queue under their own names.
    pub fn report_queue(&self, now: Time, report: &mut Report<'_>) {
        self.queue.report(now, report);
    }

    /// Reports the metrics of the class and of its queue, with the class's name in front.
    pub fn report(&self, now: Time, report: &mut Report<'_>) {
        let Tally {
            packets,
            bytes,
            drops,
            marks,
            delay,
        } = self.tally;
        let mut report = report.of_class(&self.name);
        report.tell(PACKETS, packets as f64);
        report.tell(BYTES, bytes as f64);
        report.tell(DROPS, drops as f64);
        report.tell(MARKS, marks as f64);
        if packets > 0 {
            report.tell(QUEUE_DELAY_MEAN, delay as f64 / packets as f64 * 1e-12);
        }
        self.queue.report(now, &mut report);
    }
}

/// When a queue with these classes is to be woken.
pub fn next_wakeup<'a, P: Packet + 'a>(leaves: impl Iterator<Item = &'a Leaf<P>>) -> Wakeup {
    leaves.map(Leaf::next_wakeup).min().unwrap_or(Wakeup::Never)
}

/// The backlog of all these classes.
pub fn backlog<'a, P: Packet + 'a>(leaves: impl Iterator<Item = &'a Leaf<P>>) -> Backlog {
    leaves.fold(Backlog::default(), |sum, leaf| {
        let Backlog { packets, bytes } = leaf.backlog();
        Backlog {
            packets: sum.packets + packets,
            bytes: sum.bytes + bytes,
        }
    })
}

/// The methods of [`QueueKind`](crate::QueueKind) that kinds with a list of classes have in common. The kind has the
/// keys `class` and `default`, and a method `leaves`.
macro_rules! kind_of_classes {
    () => {
        const METRICS: &'static [&'static [&'static redtail_core::Metric]] =
            &[$crate::class::METRICS];

        fn figures(&self, names: &mut $crate::FigureNames) {
            $crate::class::figures(&self.leaves(None), &[], names);
        }

        fn check_at(&self, link: &$crate::LinkFacts) -> Result<(), redtail_core::ParamError> {
            $crate::class::check_at(&self.leaves(Some(link)), self.default.as_deref(), link)
        }

        fn limit(&self) -> Option<$crate::Limit> {
            None
        }

        fn inner(&self, link: &$crate::LinkFacts, visit: &mut $crate::InnerVisitor<'_>) {
            let leaves = self.leaves(Some(link));
            $crate::class::inner(&leaves, self.default.as_deref(), link, visit);
        }

        fn plugins(
            &mut self,
            key: &str,
            visit: &mut $crate::plugin::PluginVisitor<'_>,
        ) -> Result<(), redtail_core::ParamError> {
            let mut classes = self.class.iter_mut();
            classes.try_for_each(|class| {
                let key = format!("{key}.class.{}.queue", class.name);
                class.queue.plugins(&key, visit)
            })
        }
    };
}
pub(crate) use kind_of_classes;

/// The methods of [`QueueDiscipline`] that a scheduler leaves to its classes: `self.leaves()` are these, and
/// `self.leaves_mut()`.
macro_rules! discipline_of_classes {
    () => {
        fn next_wakeup(&self) -> $crate::Wakeup {
            $crate::class::next_wakeup(self.leaves())
        }

        fn on_wakeup(&mut self, now: redtail_core::Time) {
            self.leaves_mut().for_each(|leaf| leaf.on_wakeup(now));
        }

        fn backlog(&self) -> $crate::Backlog {
            $crate::class::backlog(self.leaves())
        }

        fn start_measuring(&mut self, now: redtail_core::Time) {
            self.leaves_mut().for_each(|leaf| leaf.start_measuring(now));
        }

        fn report(&self, now: redtail_core::Time, report: &mut $crate::Report<'_>) {
            self.leaves().for_each(|leaf| leaf.report(now, report));
        }
    };
}
pub(crate) use discipline_of_classes;

/// What a kind with a list of classes is built from: its classifier and its classes, in the order of the list.
pub fn parts<P: Packet>(
    leaves: &[LeafParams<'_>],
    default: Option<&str>,
    context: &QueueContext,
) -> (Classifier, Vec<Leaf<P>>) {
    let default = default_class(leaves, default).expect("the parameters have been checked");
    (
        classifier(leaves, default, &context.link),
        build(leaves, default, context),
    )
}
