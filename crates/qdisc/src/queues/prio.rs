//! Strict priority between classes: a class sends only when the classes before it have nothing to send.
//!
//! Source: Linux sch_prio; its bands are the classes. A class can take the whole link from the classes
//! after it. A shaper (`tbf` as its queue) prevents this.

use redtail_core::{Metric, Packet, ParamError, ParamWarning, Time, params};

use crate::class::{self, Leaf, LeafParams};
use crate::classify::{Classifier, OneOrMore, RuleParams};
use crate::plugin::PluginVisitor;
use crate::{
    Backlog, FigureNames, InnerVisitor, Limit, LinkFacts, QueueContext, QueueDiscipline, QueueKind,
    QueueParams, Report, Sink, Wakeup,
};

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
    fn leaves(&self) -> Vec<LeafParams<'_>> {
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

    const METRICS: &'static [&'static [&'static Metric]] = &[class::METRICS];

    fn example() -> &'static str {
        r#"class = [
  { name = "always", match = { group = "always" }, queue = { kind = "tail-drop", limit = "100 packets" } },
  { name = "step", queue = { kind = "tail-drop", limit = "100 packets" } },
]"#
    }

    fn figures(&self, names: &mut FigureNames) {
        class::figures(&self.leaves(), &[], names);
    }

    fn check(&self) -> Result<(), ParamError> {
        let names = self.class.iter().map(|class| class.name.as_str());
        class::check_names("class", names, &mut Vec::new())?;
        class::check(&self.leaves(), self.default.as_deref())
    }

    fn check_at(&self, link: &LinkFacts) -> Result<(), ParamError> {
        class::check_at(&self.leaves(), self.default.as_deref(), link)
    }

    fn warnings(&self, link: &LinkFacts) -> Vec<ParamWarning> {
        class::warnings(&self.leaves(), self.default.as_deref(), link)
    }

    fn limit(&self) -> Option<Limit> {
        None
    }

    fn inner(&self, link: &LinkFacts, visit: &mut InnerVisitor<'_>) {
        class::inner(&self.leaves(), self.default.as_deref(), link, visit);
    }

    fn plugins(&mut self, key: &str, visit: &mut PluginVisitor<'_>) -> Result<(), ParamError> {
        let mut classes = self.class.iter_mut();
        classes.try_for_each(|class| {
            let key = format!("{key}.class.{}.queue", class.name);
            class.queue.plugins(&key, visit)
        })
    }

    fn build<P: Packet>(&self, context: QueueContext) -> Prio<P> {
        let leaves = self.leaves();
        let default = class::default_class(&leaves, self.default.as_deref());
        let default = default.expect("the parameters have been checked");
        Prio {
            classifier: class::classifier(&leaves, default, &context.link),
            bands: class::build(&leaves, default, &context),
        }
    }
}

/// The running queue.
#[derive(Debug)]
pub struct Prio<P: Packet> {
    classifier: Classifier,
    bands: Vec<Leaf<P>>,
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

    fn next_wakeup(&self) -> Wakeup {
        class::next_wakeup(self.bands.iter())
    }

    fn on_wakeup(&mut self, now: Time) {
        self.bands.iter_mut().for_each(|band| band.on_wakeup(now));
    }

    fn backlog(&self) -> Backlog {
        class::backlog(self.bands.iter())
    }

    fn start_measuring(&mut self, now: Time) {
        let each = self.bands.iter_mut();
        each.for_each(|band| band.start_measuring(now));
    }

    fn report(&self, now: Time, report: &mut Report<'_>) {
        self.bands.iter().for_each(|band| band.report(now, report));
    }
}
