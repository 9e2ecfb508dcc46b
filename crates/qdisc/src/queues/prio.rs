//! Strict priority between classes: a class sends only when the classes before it have nothing to send.
//!
//! Source: Linux sch_prio; its bands are the classes. A class can take the whole link from the classes
//! after it. A shaper (`tbf` as its queue) prevents this.

use redtail_core::{Packet, ParamError, ParamWarning, Time, params};

use crate::class::{self, Leaf, LeafParams};
use crate::classify::{Classifier, OneOrMore, RuleParams};
use crate::{LinkFacts, QueueContext, QueueDiscipline, QueueKind, QueueParams, Sink};

params! {
    /// Strict priority between classes.
    pub struct PrioParams {
        /// The classes in the order of their priority, the highest first. A packet goes to the first class whose `match` fits it.
        class: Vec<PrioClassParams>;
        /// Name of the class for packets that no `match` fits.
        default: Option<String>, "the only class without a `match`.";
    }
}

params! {
    /// A class of `prio`.
    #[schemars(rename = "PrioClass")]
    pub struct PrioClassParams {
        /// Name of the class, put in front of its metrics and used in keys.
        name: String;
        /// Packets of the class: a rule, or a list of rules of which one must fit.
        rules as "match": Option<OneOrMore<RuleParams>>, "none, which makes it the default class.";
        /// Queue of the class, of any kind.
        queue: QueueParams;
    }
}

impl PrioParams {
    pub(crate) fn leaves(&self, _: Option<&LinkFacts>) -> Vec<LeafParams<'_>> {
        let each = self.class.iter().map(|class| LeafParams {
            list: "class".to_owned(),
            name: &class.name,
            rules: class.rules.as_ref(),
            queue: Some(&class.queue),
            rate: None,
        });
        each.collect()
    }
}

impl QueueKind for PrioParams {
    type Queue<P: Packet> = Prio<P>;

    class::kind_of_classes!();

    fn example() -> &'static str {
        r#"class = [
  { name = "always", match = { group = "always" }, queue = { kind = "tail-drop", limit = "100 packets" } },
  { name = "step", queue = { kind = "tail-drop", limit = "100 packets" } },
]"#
    }

    fn check(&self) -> Result<(), ParamError> {
        let names = self.class.iter().map(|class| class.name.as_str());
        class::check_names("class", names, &mut Vec::new())?;
        class::check(&self.leaves(None), self.default.as_deref())
    }

    fn warnings(&self, link: &LinkFacts) -> Vec<ParamWarning> {
        class::warnings(&self.leaves(Some(link)), self.default.as_deref(), link)
    }

    fn build<P: Packet>(&self, context: QueueContext) -> Prio<P> {
        let leaves = self.leaves(None);
        let (classifier, bands) = class::parts(&leaves, self.default.as_deref(), &context);
        Prio { classifier, bands }
    }
}

/// The running queue.
#[derive(Debug)]
pub struct Prio<P: Packet> {
    classifier: Classifier,
    bands: Vec<Leaf<P>>,
}

impl<P: Packet> Prio<P> {
    fn leaves(&self) -> impl Iterator<Item = &Leaf<P>> {
        self.bands.iter()
    }

    fn leaves_mut(&mut self) -> impl Iterator<Item = &mut Leaf<P>> {
        self.bands.iter_mut()
    }
}

impl<P: Packet> QueueDiscipline<P> for Prio<P> {
    fn enqueue(&mut self, packet: P, now: Time, sink: &mut impl Sink<P>) {
        let class = self.classifier.class_of(&packet);
        self.bands[class].enqueue(packet, now, sink);
    }

    fn dequeue(&mut self, now: Time, sink: &mut impl Sink<P>) -> Option<P> {
        let mut waiting = self.bands.iter_mut().filter(|band| !band.is_empty());
        // If a shaped class may not send now, the next class sends.
        waiting.find_map(|band| band.dequeue(now, sink))
    }

    class::discipline_of_classes!();
}
