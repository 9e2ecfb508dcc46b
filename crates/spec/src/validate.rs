//! Checks that types cannot express: values and combinations that cannot be run (errors), and those that
//! can be run but probably do not give the intended experiment (warnings).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use redtail_core::plugin::{Identity, Role};
use redtail_core::{ParamError, ParamWarning, Rate, Span};

use redtail_qdisc::link_layer::MOST_FRAMING;
use redtail_qdisc::{FlowTable, Limit, LinkFacts, PolicerParams, QueueParams};
use redtail_traffic::{
    Access, Direction, ProgramParams, TakenFile, TraceParams, TraceTable, TrafficParams,
    check_host_jitter,
};

use crate::de::hint;
use crate::error::Problem;
use crate::events::{EventKind, MOST_EVENTS};
use crate::experiment::{Experiment, HopParams, LinkParams, RootParams, Topology, topology};
use crate::facts::{flow_table, link_facts};
use crate::mistakes::Known;
use crate::node::Node;
use crate::outline::{
    BandwidthDelay, base_round_trips, bytes_in_words, crossed, crosses, rate_in_words,
    time_in_words, used_hosts,
};
use crate::paths;
use crate::rate_changes::RateChanges;
use crate::rates::{Phases, entry_origin};
use crate::replications::{MOST_REPLICATIONS, Replications};
use crate::shared_hosts::host_peaks;
use crate::wire::{DelayChangeParams, DelayChanges, Loss, WireParams};

/// Round trips that slow start may need before the statistics should begin: from one segment, ten
/// doublings fill any path with a thousand segments in flight.
const FIRST_ROUND_TRIPS: u64 = 10;

/// The longest duration of a run, 100 days: the schedule of events has room for 106 days.
pub(crate) const LONGEST_RUN: Span = Span::from_s(100 * 24 * 3600);
/// Bounds that keep every time a run can reach within what [`Time`](redtail_core::Time) holds, 213
/// days.
pub(crate) const LONGEST_DELAY: Span = Span::from_s(3600);
/// Of all links of a chain together, both directions.
const LONGEST_PATH: Span = Span::from_s(24 * 3600);

/// The largest number of phases; more are refused as a mistake. Each phase has some twenty metrics for
/// every queue.
const MOST_PHASES: usize = 100;

/// The most rows of a run's time series: about 70 bytes each are held in memory until the run's end.
const MOST_SERIES_ROWS: u64 = 50_000_000;

/// Completes or refuses a plug-in.
pub(crate) type VisitPlugin<'a> = dyn FnMut(Role, &mut Identity) -> Result<(), ParamError> + 'a;

/// Finds the table that a group names, or says what is wrong with it.
pub type FindTable<'a> =
    dyn FnMut(&TraceParams, &TraceSite) -> Result<Arc<TraceTable>, ParamError> + 'a;

/// Finds the files that a group of programs takes along, or says why the group cannot have them, or be run.
pub type TakeFiles<'a> =
    dyn FnMut(&ProgramParams) -> Result<BTreeMap<String, TakenFile>, ParamError> + 'a;

/// The network that the connections of a table will cross.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceSite {
    /// How long the run lasts.
    pub duration: Span,
    /// The round-trip time that the links' delays make; no connection can have less.
    pub path: Span,
    /// Whether there are links for both directions.
    pub both_ways: bool,
}

/// A plug-in of an experiment.
#[derive(Debug, PartialEq)]
pub(crate) struct PluginUse {
    /// The name of the class.
    pub class: String,
    /// What it is in a run.
    pub role: Role,
    /// The key of its table.
    pub key: String,
    /// Where the file names it.
    pub place: Problem,
}

/// The problems and warnings of one case.
pub(crate) struct Findings<'a> {
    tree: &'a Node,
    pub errors: Vec<Problem>,
    pub warnings: Vec<Problem>,
}

/// Checks a case, which was decoded from `tree`. The result has the topology unless there are errors.
pub(crate) fn check<'a>(
    experiment: &mut Experiment,
    tree: &'a Node,
    visit: &mut FindTable<'_>,
    take: &mut TakeFiles<'_>,
) -> (Findings<'a>, Option<Topology>) {
    let (mut findings, topology) = Findings::of_values(experiment, tree);
    if let Some(topology) = topology.as_ref().filter(|_| findings.errors.is_empty()) {
        findings.traces(experiment, topology, visit);
        findings.programs(experiment, take);
    }
    // What follows counts flows and divides by rates.
    if let Some(topology) = topology.as_ref().filter(|_| findings.errors.is_empty()) {
        let flows = flow_table(&experiment.traffic);
        findings.queues(experiment, topology, &flows);
        if findings.errors.is_empty() {
            findings.degenerate(experiment, topology, &flows);
        }
    }
    (findings, topology)
}

/// The mistakes of a case some of whose values were replaced, as far as they do not depend on these.
pub(crate) fn check_the_rest(experiment: &Experiment, tree: &Node, known: &Known) -> Vec<Problem> {
    let (findings, _) = Findings::of_values(experiment, tree);
    let hidden = |problem: &Problem| known.hides(problem.key.as_deref().unwrap_or_default());
    let found = findings.errors.into_iter();
    found.filter(|problem| !hidden(problem)).collect()
}

impl<'a> Findings<'a> {
    /// What is wrong with values by themselves and with those that stand together in the file.
    fn of_values(experiment: &Experiment, tree: &'a Node) -> (Self, Option<Topology>) {
        let mut findings = Findings {
            tree,
            errors: Vec::new(),
            warnings: Vec::new(),
        };
        findings.times(experiment);
        let topology = findings.topology(experiment);
        findings.names(&experiment.traffic);
        if let Some(topology) = topology.as_ref() {
            findings.hop_names(topology, &experiment.traffic);
        }
        for group in &experiment.traffic {
            findings.group(group, topology.as_ref());
        }
        findings.phases(experiment, topology.as_ref());
        if let Some(topology) = topology.as_ref() {
            findings.series_rows(experiment, topology);
            findings.events(experiment);
        }
        (findings, topology)
    }

    /// A message of the form `key = value` and a clause. A default value is not shown.
    fn about(&self, key: &str, clause: &str) -> Problem {
        let message = match paths::find(self.tree, key) {
            Some(value) => format!("{key} = {} {clause}", value.shown()),
            None => format!("{key} {clause}"),
        };
        Problem {
            origin: paths::origin(self.tree, key),
            key: Some(key.to_owned()),
            message,
        }
    }

    fn refuse(&mut self, key: &str, clause: &str) {
        let problem = self.about(key, clause);
        self.errors.push(problem);
    }

    fn refuse_param(&mut self, table: &str, error: &ParamError) {
        let clause = format!("{}; accepted: {}", error.problem, error.accepted);
        self.refuse(&format!("{table}.{}", error.key), &clause);
    }

    fn warn_param(&mut self, table: &str, warning: &ParamWarning) {
        self.warn(&format!("{table}.{}", warning.key), &warning.clause);
    }

    fn warn(&mut self, key: &str, clause: &str) {
        let problem = self.about(key, clause);
        self.warnings.push(problem);
    }

    fn times(&mut self, experiment: &Experiment) {
        if !experiment.name.chars().any(char::is_alphanumeric) {
            self.refuse(
                "name",
                "has no letter or digit; accepted: a text that can name a folder",
            );
        }
        if let Err(error) = check_host_jitter(experiment.host_jitter) {
            let clause = format!("{}; accepted: {}", error.problem, error.accepted);
            self.refuse(&error.key, &clause);
        }
        if experiment.duration == Span::ZERO {
            self.refuse("duration", "is zero; accepted: a time such as \"200 s\"");
        } else if experiment.duration > LONGEST_RUN {
            self.refuse(
                "duration",
                "is more than can be run; accepted: up to \"2400 h\"",
            );
        } else if experiment.warmup >= experiment.duration {
            let duration = experiment.duration;
            self.refuse(
                "warmup",
                &format!("is not shorter than the duration; accepted: less than \"{duration}\""),
            );
        }
        match &experiment.replications {
            Replications::Fixed(0) => self.refuse("replications", "is zero; accepted: 1 or more"),
            Replications::Fixed(count) if *count > MOST_REPLICATIONS => self.refuse(
                "replications",
                &format!("is more than can be kept; accepted: up to {MOST_REPLICATIONS}"),
            ),
            Replications::Until(rule) if rule.at_most > MOST_REPLICATIONS => self.refuse(
                "replications.at_most",
                &format!("is more than can be kept; accepted: up to {MOST_REPLICATIONS}"),
            ),
            Replications::Until(rule) if rule.at_least < 2 => self.refuse(
                "replications.at_least",
                "has no interval to look at; accepted: 2 or more",
            ),
            Replications::Until(rule) if rule.at_most < rule.at_least => {
                let (key, least) = ("replications.at_most", rule.at_least);
                self.refuse(
                    key,
                    &format!("is less than at_least; accepted: {least} or more"),
                );
            }
            _ => {}
        }
        if let Some(programs) = &experiment.programs {
            self.root(programs);
        }
        if let Some(report) = &experiment.report {
            let blank = |name: &String| name.trim().is_empty();
            if report.metrics.is_empty() || report.metrics.iter().any(blank) {
                self.refuse(
                    "report.metrics",
                    "names no metric; accepted: names such as [\"goodput\", \"web.*\"]",
                );
            }
        }
        if let Some(series) = &experiment.series {
            if series.interval == Span::ZERO {
                self.refuse(
                    "series.interval",
                    "is zero; accepted: a time such as \"100 ms\"",
                );
            }
            if series.interval > experiment.duration {
                let duration = experiment.duration;
                self.refuse(
                    "series.interval",
                    &format!("is longer than the run; accepted: up to \"{duration}\""),
                );
            }
            if series.replications == 0 {
                self.refuse(
                    "series.replications",
                    "is zero; accepted: 1 or more (without [series] none is recorded)",
                );
            }
        }
    }

    /// Refuses an event log that records nothing, or more than memory can hold.
    fn events(&mut self, experiment: &Experiment) {
        let Some(events) = &experiment.events else {
            return;
        };
        let duration = experiment.duration;
        if events.kinds.as_ref().is_some_and(Vec::is_empty) {
            let all: Vec<_> = EventKind::ALL.iter().map(|it| it.meaning().name).collect();
            let message = format!("names no kind; accepted: {}", all.join(", "));
            self.refuse("events.kinds", &message);
        }
        if events.from >= duration {
            let message = format!("is not before the end; accepted: less than \"{duration}\"");
            self.refuse("events.from", &message);
        }
        if events.to.is_some_and(|to| to <= events.from) {
            let from = events.from;
            let message = format!("is not after `from`; accepted: more than \"{from}\"");
            self.refuse("events.to", &message);
        }
        if !(1..=MOST_EVENTS).contains(&events.limit) {
            let message = format!("is not from 1 to {MOST_EVENTS} rows; accepted: one of these");
            self.refuse("events.limit", &message);
        }
        if events.replications == Some(0) {
            self.refuse(
                "events.replications",
                "is zero; accepted: 1 or more (without [events] none is recorded)",
            );
        }
        if events.groups.is_some() && events.flows.is_some() {
            let message = "stands beside events.groups; accepted: one of the two";
            self.refuse("events.flows", message);
        }
        let names: Vec<&str> = (experiment.traffic.iter())
            .map(|group| group.access().name)
            .collect();
        for group in events.groups.iter().flatten() {
            if !names.contains(&group.as_str()) {
                let message = format!(
                    "names {group:?}, and there is no such group; accepted: {}{}",
                    names.join(", "),
                    hint(group, &names)
                );
                self.refuse("events.groups", &message);
            }
        }
        let count = (experiment.traffic.iter())
            .map(|group| u64::from(group.access().flows))
            .sum::<u64>();
        for flow in events.flows.iter().flatten() {
            // A group with a load has as many flows as are found by trial runs.
            let known = experiment
                .traffic
                .iter()
                .all(|group| group.load().is_none());
            if known && u64::from(*flow) >= count {
                let message = format!(
                    "names the flow {flow}; accepted: 0 to {}",
                    count.saturating_sub(1)
                );
                self.refuse("events.flows", &message);
            }
        }
    }

    /// Refuses a time series with more rows than memory can hold.
    fn series_rows(&mut self, experiment: &Experiment, topology: &Topology) {
        let Some(series) = &experiment.series else {
            return;
        };
        let queues = if series.queues {
            topology.links().len()
        } else {
            0
        };
        let flows = experiment
            .traffic
            .iter()
            .filter(|group| series.windows && group.tcp().is_some() && !group.has_users());
        let flows: u64 = flows.map(|group| u64::from(group.access().flows)).sum();
        let groups = if series.goodput {
            experiment.traffic.len()
        } else {
            0
        };
        let of_sample = (queues + groups) as u64 + flows;
        let duration = experiment.duration.min(LONGEST_RUN);
        let least = u128::from(duration.as_ps()) * u128::from(of_sample);
        let least = Span::from_ps(least.div_ceil(u128::from(MOST_SERIES_ROWS)) as u64);
        if series.interval > Span::ZERO && series.interval < least {
            self.refuse(
                "series.interval",
                &format!(
                    "makes more than {MOST_SERIES_ROWS} rows in \"{duration}\", with {of_sample} at each time; \
                     accepted: \"{least}\" and more, or a shorter duration"
                ),
            );
        }
    }

    fn topology(&mut self, experiment: &Experiment) -> Option<Topology> {
        let (bottleneck, chain) = (&experiment.bottleneck, &experiment.chain);
        let Some(topology) = topology(bottleneck.clone(), chain.clone()) else {
            let (key, message) = match (bottleneck, chain) {
                (Some(_), Some(_)) => (
                    "chain",
                    "chain: stands beside bottleneck; accepted: one of the two",
                ),
                (None, None) => (
                    "",
                    "the key \"bottleneck\" is missing; accepted: a [bottleneck], or a [chain] \
                     of several",
                ),
                _ => (
                    "chain",
                    "chain: has no [[chain.hop]]; accepted: one or more",
                ),
            };
            self.refuse_plainly(key, message);
            return None;
        };
        for (index, hop) in topology.hops().iter().enumerate() {
            let key = topology.hop_key(index);
            self.link(&key, &hop.forward(), experiment);
            if let Some(link) = &hop.return_link {
                self.link(&format!("{key}.return"), link, experiment);
            }
            self.medium(&key, hop);
        }
        let delays = topology.hops().iter().flat_map(|hop| {
            let back = hop.return_link.as_ref().map(|link| link.delay);
            std::iter::once(hop.delay).chain(back)
        });
        let sum: u128 = delays.map(|delay| u128::from(delay.as_ps())).sum();
        if self.errors.is_empty() && sum > u128::from(LONGEST_PATH.as_ps()) {
            let hours = sum / u128::from(LONGEST_DELAY.as_ps());
            let message = format!(
                "chain: the delays of its hops, both ways, are {hours} h together, more than can \
                 be run; accepted: up to 24 h"
            );
            self.refuse_plainly("chain", &message);
        }
        Some(topology)
    }

    fn refuse_plainly(&mut self, key: &str, message: &str) {
        self.errors.push(Problem {
            origin: paths::origin(self.tree, key),
            key: Some(key.to_owned()).filter(|key| !key.is_empty()),
            message: message.to_owned(),
        });
    }

    fn link(&mut self, key: &str, link: &LinkParams, experiment: &Experiment) {
        if link.rate.as_bps() == 0 {
            self.refuse(
                &format!("{key}.rate"),
                "is zero; accepted: a rate such as \"10 Mbit/s\"",
            );
        } else if link.rate > Rate::FASTEST {
            self.refuse(
                &format!("{key}.rate"),
                &format!(
                    "is faster than the clock resolves: a byte takes less than a picosecond; accepted: up to \"{}\"",
                    Rate::FASTEST
                ),
            );
        }
        self.rate_changes(&format!("{key}.rate_changes"), link, experiment.duration);
        if let Some(within) = (link.overhead.as_ref()).and_then(|it| it.0.too_large()) {
            self.refuse(
                &format!("{key}.overhead.{within}"),
                &format!(
                    "is more than Linux takes; accepted: \"0 B\" to \"{MOST_FRAMING}\" (tc-cake)"
                ),
            );
        }
        self.delays(&format!("{key}.delay"), &[link.delay]);
        if let Err(error) = link.queue.check() {
            self.refuse_param(&format!("{key}.queue"), &error);
        }
        self.airtime(&format!("{key}.airtime"), link, experiment);
        if let Some(Err(error)) = link.policer.as_ref().map(PolicerParams::check) {
            self.refuse_param(&format!("{key}.policer"), &error);
        }
        if let Some(wire) = &link.wire {
            self.wire(&format!("{key}.wire"), wire, experiment.duration);
        }
    }

    fn wire(&mut self, key: &str, wire: &WireParams, duration: Span) {
        match &wire.loss {
            Some(Loss::Independent(p)) if !(0.0..1.0).contains(p) => self.refuse(
                &format!("{key}.loss"),
                "is not a probability below 1; accepted: 0 or more and less than 1, such as 0.02",
            ),
            Some(Loss::GilbertElliott(model)) => {
                let key = format!("{key}.loss");
                self.probability(&format!("{key}.p"), model.p);
                self.probability(&format!("{key}.h"), model.h);
                self.probability(&format!("{key}.k"), model.k);
                if !(model.r > 0.0 && model.r <= 1.0) {
                    let clause = "is no probability with which the bad state ends; accepted: above 0, at most 1";
                    self.refuse(&format!("{key}.r"), clause);
                } else if model.loss() >= 1.0 {
                    let message =
                        format!("{key}: loses every packet; accepted: an h or a k above 0");
                    self.refuse_plainly(&key, &message);
                }
            }
            _ => {}
        }
        if let Some(p) = wire.duplicate {
            self.probability(&format!("{key}.duplicate"), p);
        }
        if let Some(reorder) = &wire.reorder {
            self.probability(&format!("{key}.reorder.share"), reorder.share);
        }
        let varies = wire.delay_changes.is_some() || wire.delay_trace.is_some();
        if wire.order.is_some() && wire.jitter.is_none() && !varies {
            let clause = "stands without a delay that differs from packet to packet; \
                          accepted: beside jitter, delay_changes or delay_trace";
            self.refuse(&format!("{key}.order"), clause);
        }
        if wire.delay_changes.is_some() && wire.delay_trace.is_some() {
            let key = format!("{key}.delay_trace");
            let message = format!("{key}: stands beside delay_changes; accepted: one of the two");
            self.refuse_plainly(&key, &message);
        }
        if let Some(changes) = &wire.delay_changes {
            self.delay_changes(&format!("{key}.delay_changes"), changes, duration);
        }
        if wire.limit == Some(0) {
            let clause = "lets no packet through; accepted: 1 or more";
            self.refuse(&format!("{key}.limit"), clause);
        }
        if let Some(batches) = &wire.batches {
            if batches.every < Span::from_us(1) {
                let clause = "is too short; accepted: \"1 us\" or more";
                self.refuse(&format!("{key}.batches.every"), clause);
            }
            self.delays(&format!("{key}.batches.every"), &[batches.every]);
            if batches.packets == Some(0) {
                let clause = "releases nothing; accepted: 1 or more";
                self.refuse(&format!("{key}.batches.packets"), clause);
            }
        }
    }

    fn delay_changes(&mut self, key: &str, changes: &DelayChanges, duration: Span) {
        let steps = match changes {
            DelayChanges::Steps(steps) => steps,
            DelayChanges::Handovers(law) => {
                if law.every < Span::from_ms(1) {
                    let clause = "is too short; accepted: \"1 ms\" or more";
                    self.refuse(&format!("{key}.every"), clause);
                }
                if law.gap.is_some_and(|gap| gap >= law.every) {
                    let clause = format!(
                        "takes the whole period; accepted: less than \"{}\"",
                        law.every
                    );
                    self.refuse(&format!("{key}.gap"), &clause);
                }
                if law.delay.quantile(1.0) > LONGEST_DELAY {
                    let clause =
                        "reaches more than can be run; accepted: a law with a max of up to \"1 h\"";
                    self.refuse(&format!("{key}.delay"), clause);
                }
                return;
            }
        };
        if steps.is_empty() {
            self.refuse(key, "is empty; accepted: one change or more");
        }
        let delays: Vec<Span> = steps.iter().map(|step| step.delay).collect();
        self.delays(key, &delays);
        let times: Vec<Span> = steps.iter().map(|step| step.at).collect();
        self.increasing(
            key,
            &times,
            ("0 s", Span::ZERO),
            ("the run's end", duration),
        );
        let next = times.iter().skip(1).map(Some).chain([None]);
        let reaches = |(step, next): (&DelayChangeParams, Option<&Span>)| {
            let gap = step.gap.unwrap_or_default();
            gap > LONGEST_DELAY || next.is_some_and(|next| step.at + gap > *next)
        };
        if steps.iter().zip(next).any(reaches) {
            let clause = "has a gap that reaches beyond the next change; accepted: gaps of up to \"1 h\" that end before it";
            self.refuse(key, clause);
        }
    }

    fn probability(&mut self, key: &str, p: f64) {
        if !(0.0..=1.0).contains(&p) {
            self.refuse(key, "is not a probability; accepted: 0 to 1");
        }
    }

    /// Refuses frames that cannot be, and rates of stations that are none.
    fn airtime(&mut self, key: &str, link: &LinkParams, experiment: &Experiment) {
        let Some(airtime) = &link.airtime else {
            return;
        };
        if let Err(error) = airtime.check() {
            self.refuse_param(key, &error);
        }
        if changes_rate(link) {
            let accepted = "one of rate_changes, rate_trace and airtime";
            self.refuse_plainly(
                key,
                &format!("{key}: stands beside a rate that changes; accepted: {accepted}"),
            );
        }
        if link.overhead.is_some() {
            self.refuse_plainly(
                key,
                &format!("{key}: stands beside overhead; accepted: packet_overhead in this table"),
            );
        }
        let groups = || experiment.traffic.iter().map(|group| group.access().name);
        for name in airtime.rates.keys() {
            if !groups().any(|group| group == name) {
                let all: Vec<&str> = groups().collect();
                let key = format!("{key}.rates");
                let accepted = all.join(", ");
                self.refuse_plainly(
                    &key,
                    &format!("{key}: there is no group {name:?}; accepted: {accepted}"),
                );
            }
        }
    }

    /// Refuses a medium that is shared by nobody, or whose rate changes.
    fn medium(&mut self, key: &str, hop: &HopParams) {
        if hop.medium.is_none() {
            return;
        }
        let key = format!("{key}.medium");
        let Some(back) = &hop.return_link else {
            self.refuse(
                &key,
                "has no link of the other direction; accepted: a `return` link, or no medium",
            );
            return;
        };
        if changes_rate(&hop.forward()) || changes_rate(back) {
            let clause =
                "stands beside a rate that changes; accepted: constant rates on a shared medium";
            self.refuse(&key, clause);
        }
        if hop.overhead.is_some() || back.overhead.is_some() {
            let clause = "stands beside overhead; accepted: airtime with packet_overhead";
            self.refuse(&key, clause);
        }
    }

    fn rate_changes(&mut self, key: &str, link: &LinkParams, duration: Span) {
        if link.rate_trace.is_some() && !link.rate_changes.is_empty() {
            let message = format!("{key}: stands beside rate_trace; accepted: one of the two");
            self.refuse_plainly(key, &message);
            return;
        }
        if let Some(law) = link.rate_changes.law() {
            if let Some((within, clause)) = law.problem(link.rate, duration) {
                match within {
                    "" => self.refuse_plainly(key, &format!("{key}: {clause}")),
                    within => self.refuse(&format!("{key}.{within}"), &clause),
                }
            }
            return;
        }
        let list = link.rate_changes.list();
        if let Some(change) = list.iter().find(|it| it.rate > Rate::FASTEST) {
            self.refuse(
                key,
                &format!(
                    "has a rate of \"{}\", which is faster than the clock resolves; accepted: rates up to \"{}\"",
                    change.rate,
                    Rate::FASTEST
                ),
            );
        }
        let times: Vec<Span> = list.iter().map(|change| change.at).collect();
        self.increasing(
            key,
            &times,
            ("0 s", Span::ZERO),
            ("the run's end", duration),
        );
    }

    /// Refuses times that do not increase from after one bound to before another.
    fn increasing(
        &mut self,
        key: &str,
        times: &[Span],
        (begin, after): (&str, Span),
        (end, before): (&str, Span),
    ) {
        let mut last = after;
        for (index, &at) in times.iter().enumerate() {
            let problem = if at >= before {
                format!("is not before {end}")
            } else if at <= last && index == 0 {
                format!("is not after {begin}")
            } else if at <= last {
                format!("is not after the one before it, \"{last}\"")
            } else {
                last = at;
                continue;
            };
            let list = paths::find(self.tree, key);
            let origin = entry_origin(list, index).unwrap_or_else(|| paths::origin(self.tree, key));
            self.errors.push(Problem {
                origin,
                key: Some(key.to_owned()),
                message: format!(
                    "{key}: \"{at}\" {problem}; accepted: times that increase, above \"{after}\" \
                     and below \"{before}\""
                ),
            });
            return;
        }
    }

    fn phases(&mut self, experiment: &Experiment, topology: Option<&Topology>) {
        let (warmup, duration) = (experiment.warmup, experiment.duration);
        let count = match (&experiment.phases, topology) {
            (Some(Phases::At(times)), _) if times.is_empty() => {
                self.refuse(
                    "phases",
                    "is empty; accepted: one time or more, or \"auto\"",
                );
                return;
            }
            (Some(Phases::At(times)), _) => {
                let (begin, end) = ("the end of the warm-up", "the run's end");
                self.increasing("phases", times, (begin, warmup), (end, duration));
                times.len()
            }
            (Some(Phases::Auto), Some(topology)) => changes(experiment, topology).len(),
            _ => return,
        };
        if count > MOST_PHASES {
            let clause =
                format!("makes more than {MOST_PHASES} times; accepted: up to {MOST_PHASES}");
            self.refuse("phases", &clause);
        }
        if count == 0 {
            self.warn(
                "phases",
                "finds nothing that changes within the measurement period: there is one phase, \
                 and it is the whole",
            );
        }
    }

    fn delays(&mut self, key: &str, delays: &[Span]) {
        if delays.iter().any(|delay| *delay > LONGEST_DELAY) {
            self.refuse(key, "is more than can be run; accepted: up to \"1 h\"");
        }
    }

    fn names(&mut self, groups: &[TrafficParams]) {
        if groups.is_empty() {
            self.refuse(
                "traffic",
                "is empty; accepted: one [[traffic]] table or more",
            );
        }
        for (i, group) in groups.iter().enumerate() {
            let name = group.access().name;
            let key = format!("traffic.{name}.name");
            if !is_plain(name) {
                // A key with such a name in it cannot be followed to its line.
                let table = self.tree.as_table().and_then(|root| root.get("traffic"));
                let table = table.and_then(Node::as_array).and_then(|list| list.get(i));
                let entry = table
                    .and_then(Node::as_table)
                    .and_then(|group| group.entry("name"));
                let origin = entry.map_or(self.tree.origin.clone(), |entry| entry.origin.clone());
                let message = format!(
                    "traffic: name = {name:?} cannot be part of a key; accepted: letters, \
                     digits, \"_\" and \"-\""
                );
                self.errors.push(Problem {
                    origin,
                    key: Some("traffic".to_owned()),
                    message,
                });
            } else if let Some(taken) = taken_name(name) {
                self.refuse(&key, &format!("{taken}; accepted: any other name"));
            }
        }
    }

    /// Refuses names of hops by which keys and results could not tell what is meant.
    fn hop_names(&mut self, topology: &Topology, groups: &[TrafficParams]) {
        let hops = topology.hops();
        if let Topology::Bottleneck(hop) = topology {
            if hop.name.is_some() {
                let clause = "is a key of the hops of a chain, and this is a bottleneck; accepted: no such key";
                self.refuse("bottleneck.name", clause);
            }
            return;
        }
        for (index, hop) in hops.iter().enumerate() {
            let Some(name) = hop.name.as_deref() else {
                continue;
            };
            let own = format!("hop{}", index + 1);
            let of_group = groups.iter().any(|group| group.access().name == name);
            let taken = match taken_name(name).filter(|_| name != own) {
                _ if !is_plain(name) => Some(
                    "cannot be part of a key; accepted: letters, digits, \"_\" and \"-\"".to_owned(),
                ),
                Some(taken) => Some(format!("{taken}; accepted: any other name")),
                None if hops[..index].iter().any(|hop| hop.name.as_deref() == Some(name)) => {
                    Some("is the name of another hop too; accepted: a name of its own".to_owned())
                }
                None if of_group => Some(
                    "is the name of a traffic group too, and metrics of hops and groups begin with their names; \
                     accepted: any other name"
                        .to_owned(),
                ),
                None => None,
            };
            if let Some(clause) = taken {
                // The key has the name in it, and may lead to another hop.
                let entry = (self.tree.as_table())
                    .and_then(|root| root.get("chain")?.as_table()?.get("hop")?.as_array())
                    .and_then(|hops| hops.get(index)?.as_table()?.entry("name"));
                let origin = entry.map_or(self.tree.origin.clone(), |entry| entry.origin.clone());
                self.errors.push(Problem {
                    origin,
                    key: Some(format!("chain.{own}.name")),
                    message: format!("chain.{own}.name = {name:?} {clause}"),
                });
            }
        }
    }

    fn group(&mut self, group: &TrafficParams, topology: Option<&Topology>) {
        let access = group.access();
        let key = format!("traffic.{}", access.name);
        if let Err(error) = group.check() {
            self.refuse_param(&key, &error);
        }
        if let Some(Err(error)) = group.tcp().map(|tcp| tcp.check()) {
            self.refuse_param(&format!("{key}.tcp"), &error);
        }
        if group.latest_start() > LONGEST_RUN {
            let accepted = "is more than can be run; accepted: before the end of the run";
            self.refuse(&format!("{key}.start"), accepted);
        }
        for (name, delays) in [
            ("access_delay", access.access_delay),
            ("exit_delay", access.exit_delay),
            ("return_delay", access.return_delay),
        ] {
            self.delays(&format!("{key}.{name}"), delays.values());
        }
        if let Some(topology) = topology {
            self.way_back(&key, &access, topology);
        }
        let hops = match topology {
            Some(Topology::Chain(hops)) => hops.len() as u32,
            Some(Topology::Bottleneck(_)) => {
                for (name, hop) in [
                    ("first_hop", access.first_hop),
                    ("last_hop", access.last_hop),
                ] {
                    if hop.is_some() {
                        self.refuse(
                            &format!("{key}.{name}"),
                            "is a key of chains, and this is a bottleneck; accepted: no such key",
                        );
                    }
                }
                return;
            }
            None => return,
        };
        for (name, hop) in [
            ("first_hop", access.first_hop),
            ("last_hop", access.last_hop),
        ] {
            if hop.is_some_and(|hop| hop == 0 || hop > hops) {
                let accepted = if hops == 1 {
                    "1".to_owned()
                } else {
                    format!("1 to {hops}")
                };
                self.refuse(
                    &format!("{key}.{name}"),
                    &format!("is not a hop of the chain; accepted: {accepted}"),
                );
                return;
            }
        }
        let (first, last) = (
            access.first_hop.unwrap_or(1),
            access.last_hop.unwrap_or(hops),
        );
        if first > last {
            self.refuse(
                &format!("{key}.first_hop"),
                &format!(
                    "is beyond last_hop ({last}), and hops count in the chain's order \
                     whatever the direction; accepted: at most {last}"
                ),
            );
        }
    }

    /// Refuses groups with data against the direction where there is no return link.
    fn way_back(&mut self, key: &str, access: &Access<'_>, topology: &Topology) {
        let crossed = crossed(access, topology);
        let hops = topology.hops().get(crossed).unwrap_or_default();
        if access.direction == Direction::Reverse
            && !hops.is_empty()
            && hops.iter().all(|hop| hop.return_link.is_none())
        {
            let accepted = match topology {
                Topology::Bottleneck(_) => "\"forward\", or a [bottleneck.return] link",
                Topology::Chain(_) => "\"forward\", or a `return` link on a hop it crosses",
            };
            self.refuse(
                &format!("{key}.direction"),
                &format!("has no link to travel on; accepted: {accepted}"),
            );
        }
    }

    /// Gives the groups the tables that they name.
    fn traces(
        &mut self,
        experiment: &mut Experiment,
        topology: &Topology,
        visit: &mut FindTable<'_>,
    ) {
        for group in &mut experiment.traffic {
            let access = group.access();
            let key = format!("traffic.{}", access.name);
            let hops = &topology.hops()[crossed(&access, topology)];
            let back = |hop: &HopParams| hop.return_link.as_ref().map_or(Span::ZERO, |it| it.delay);
            let site = TraceSite {
                duration: experiment.duration,
                path: hops.iter().map(|hop| hop.delay + back(hop)).sum(),
                both_ways: hops.iter().any(|hop| hop.return_link.is_some()),
            };
            let TrafficParams::Trace(group) = group else {
                continue;
            };
            let taken = visit(group, &site).and_then(|table| group.take_over(&table, site.path));
            if let Err(error) = taken {
                self.refuse_param(&key, &error);
            }
        }
    }

    /// Refuses a root filesystem that names nothing, or that comes from two places.
    fn root(&mut self, programs: &RootParams) {
        let blank = |name: &String| name.trim().is_empty() || name.contains('\0');
        if programs.root.as_ref().is_some_and(blank) {
            let accepted = "a folder, or an archive of tar such as \"root.tar.gz\"";
            self.refuse(
                "programs.root",
                &format!("names no file; accepted: {accepted}"),
            );
        }
        if programs.add.iter().any(blank) {
            let accepted = "names such as [\"python3\", \"/etc/ssl/certs\"]";
            self.refuse(
                "programs.add",
                &format!("names nothing; accepted: {accepted}"),
            );
        }
        if programs.root.is_some() && !programs.add.is_empty() {
            self.refuse(
                "programs.add",
                "is given beside `root`, which has all that there is; accepted: one of them",
            );
        }
    }

    /// Gives the groups of programs the files that they take along.
    fn programs(&mut self, experiment: &mut Experiment, take: &mut TakeFiles<'_>) {
        for group in &mut experiment.traffic {
            let TrafficParams::Program(group) = group else {
                continue;
            };
            match take(group) {
                Ok(taken) => group.taken = taken,
                Err(error) => self.refuse_param(&format!("traffic.{}", group.name), &error),
            }
        }
    }

    /// Refuses queues that cannot work on their link.
    fn queues(&mut self, experiment: &Experiment, topology: &Topology, flows: &Arc<FlowTable>) {
        for (key, link, index, direction) in topology.links() {
            let facts = link_facts(
                &experiment.traffic,
                topology,
                index,
                direction,
                &link,
                Arc::clone(flows),
            );
            if let Err(error) = link.queue.check_at(&facts) {
                self.refuse_param(&format!("{key}.queue"), &error);
            }
            if let Some(Err(error)) = link.policer.as_ref().map(|it| it.check_at(&facts)) {
                self.refuse_param(&format!("{key}.policer"), &error);
            }
        }
    }

    /// Calls `visit` with each plug-in, which it may complete or refuse. Returns the plug-ins.
    pub(crate) fn plugins(
        &mut self,
        experiment: &mut Experiment,
        topology: &mut Topology,
        visit: &mut VisitPlugin<'_>,
    ) -> Vec<PluginUse> {
        let mut found = Vec::new();
        let mut refused = Vec::new();
        let mut visit = |key: &str, role: Role, identity: &mut Identity| {
            visit(role, identity).map_err(|error| error.within(key))?;
            found.push(PluginUse {
                class: identity.class.clone(),
                role,
                key: key.to_owned(),
                place: self.about(&format!("{key}.class"), ""),
            });
            Ok(())
        };
        let names: Vec<_> = (0..topology.hops().len())
            .map(|index| topology.hop_key(index))
            .collect();
        for (name, hop) in names.iter().zip(topology.hops_mut()) {
            let mut queues = vec![(format!("{name}.queue"), &mut hop.queue)];
            if let Some(link) = &mut hop.return_link {
                queues.push((format!("{name}.return.queue"), &mut link.queue));
            }
            for (key, queue) in queues {
                refused.extend(queue.plugins(&key, &mut visit).err());
            }
        }
        for group in &mut experiment.traffic {
            let key = format!("traffic.{}.tcp", group.access().name);
            if let Some(tcp) = group.tcp_mut() {
                refused.extend(tcp.plugins(&key, &mut visit).err());
            }
        }
        for group in &mut experiment.traffic {
            let key = format!("traffic.{}", group.access().name);
            if let TrafficParams::Endpoint(group) = group {
                refused.extend(visit(&key, Role::Endpoint, &mut group.identity()).err());
            }
        }
        for error in refused {
            let clause = format!("{}; accepted: {}", error.problem, error.accepted);
            self.refuse(&error.key, &clause);
        }
        found
    }

    fn degenerate(&mut self, experiment: &Experiment, topology: &Topology, flows: &Arc<FlowTable>) {
        self.late_starts(experiment);
        self.early_stops(experiment);
        self.short_warmup(experiment, topology);
        self.small_windows(experiment, topology);
        self.slow_hosts(experiment, topology);
        let mut shared = BTreeSet::new();
        for (key, link, index, direction) in topology.links() {
            let facts = link_facts(
                &experiment.traffic,
                topology,
                index,
                direction,
                &link,
                Arc::clone(flows),
            );
            if let Some(policer) = &link.policer {
                for warning in policer.warnings(&facts) {
                    self.warn_param(&format!("{key}.policer"), &warning);
                }
            }
            let key = format!("{key}.queue");
            self.buffers(&key, &link.queue, &facts, false, experiment, topology);
            self.shared_hosts(&key, &link.queue, &facts, experiment, &mut shared);
            for warning in link.queue.warnings(&facts) {
                self.warn_param(&key, &warning);
            }
        }
    }

    /// Warns of several people on one host before a queue that shares the link among hosts, this one or one
    /// inside it. `warned` has the groups of which it has already warned.
    fn shared_hosts(
        &mut self,
        key: &str,
        queue: &QueueParams,
        facts: &LinkFacts,
        experiment: &Experiment,
        warned: &mut BTreeSet<u32>,
    ) {
        for group in facts.groups.iter().filter(|_| queue.counts_hosts()) {
            let (number, group) = (group.group, &experiment.traffic[group.group as usize]);
            let access = group.access();
            let is_one =
                used_hosts(group) == 1 && access.flows_at_once > 1 && access.hosts_of.is_none();
            if is_one && group.is_of_people() && warned.insert(number) {
                self.warn(
                    &format!("traffic.{}.{}", access.name, group.count_key()),
                    &format!(
                        "share one host, and {key} ({}) shares the link among hosts: they get together \
                         what one host gets; set hosts = {} for a host to each, or \
                         isolation = \"flows\" in the queue",
                        queue.kind(),
                        access.flows_at_once
                    ),
                );
            }
        }
        queue.inner(facts, &mut |inner, queue, facts| {
            let key = format!("{key}.{inner}");
            self.shared_hosts(&key, queue, facts, experiment, warned);
        });
    }

    fn late_starts(&mut self, experiment: &Experiment) {
        for group in &experiment.traffic {
            let latest = group.latest_start();
            if latest >= experiment.duration {
                self.warn(
                    &format!("traffic.{}.start", group.access().name),
                    &format!(
                        "is as late as \"{latest}\", and the run ends at \"{}\": such \
                         flows never send",
                        experiment.duration
                    ),
                );
            }
        }
    }

    /// Warns of groups that stop before the measurement begins.
    fn early_stops(&mut self, experiment: &Experiment) {
        for group in &experiment.traffic {
            let Some(latest) = group.latest_stop() else {
                continue;
            };
            if latest <= experiment.warmup {
                self.warn(
                    &format!("traffic.{}.stop", group.access().name),
                    &format!(
                        "is \"{latest}\" at the latest, and the measurement begins at \"{}\", after \
                         the warm-up: what such flows send by then is in no result",
                        experiment.warmup
                    ),
                );
            }
        }
    }

    /// Warns of hosts' links that are slower than the traffic they are to carry, and of those that prevent a
    /// link from reaching its largest rate. No metric of a queue contains the packets that wait there.
    fn slow_hosts(&mut self, experiment: &Experiment, topology: &Topology) {
        let peaks = host_peaks(&experiment.traffic);
        for (group, peak) in experiment.traffic.iter().zip(peaks) {
            let access = group.access();
            for (key, rates) in [
                ("access_rate", access.access_rate),
                ("exit_rate", access.exit_rate),
            ] {
                let Some(slowest) = rates.and_then(|rates| rates.values().iter().min()) else {
                    continue;
                };
                if *slowest < peak {
                    self.warn(
                        &format!("traffic.{}.{key}", access.name),
                        &format!(
                            "is less than the \"{peak}\" that flows on one host send together: the rest waits \
                             at the host's own link, without bound and in no figure of a queue \
                             ({}.host_wait_max tells how long); set hosts = {} for a host to each flow, or \
                             a larger {key}",
                            access.name, access.flows_at_once
                        ),
                    );
                }
            }
        }
        for (key, link, index, direction) in topology.links() {
            let largest = link.largest_rate();
            if largest <= link.rate {
                continue;
            }
            let crossing = || {
                (experiment.traffic.iter())
                    .filter(|group| crosses(group, topology, index, direction))
                    .filter(|group| group.tcp().is_some() && group.access().direction == direction)
            };
            let all = crossing().map(|group| {
                let access = group.access();
                access.access_rate.map_or(u64::MAX, |rates| {
                    let hosts = 0..access.host_count();
                    hosts.fold(0, |sum: u64, host| {
                        sum.saturating_add(rates.get(host).as_bps())
                    })
                })
            });
            let all = all.fold(0, u64::saturating_add);
            if crossing().next().is_some() && all < largest.as_bps() {
                let name = crossing().next().map_or("", |group| group.access().name);
                let all = Rate::from_bps(all);
                self.warn(
                    &format!("traffic.{name}.access_rate"),
                    &format!(
                        "keeps {key} from reaching its largest rate, \"{largest}\": all hosts that send \
                         over it have \"{all}\" together"
                    ),
                );
            }
        }
    }

    fn short_warmup(&mut self, experiment: &Experiment, topology: &Topology) {
        let settled = experiment
            .traffic
            .iter()
            .filter(|group| group.always_sends())
            .map(|group| {
                let slowest = base_round_trips(group, topology)
                    .into_iter()
                    .max()
                    .unwrap_or_default();
                let settled = group
                    .latest_start()
                    .as_ps()
                    .saturating_add(slowest.as_ps().saturating_mul(FIRST_ROUND_TRIPS));
                (Span::from_ps(settled), slowest, group)
            })
            .max_by_key(|(settled, ..)| *settled);
        if let Some((settled, slowest, group)) =
            settled.filter(|(settled, ..)| *settled > experiment.warmup)
        {
            let clause = format!(
                "is short of the slowest flow's first round trips: flows of {:?} start as late \
                 as \"{}\" and have base round-trip times up to \"{slowest}\", so their slow \
                 start can last until \"{settled}\" and will show in the statistics",
                group.access().name,
                group.latest_start(),
            );
            match paths::find(self.tree, "warmup") {
                Some(_) => self.warn("warmup", &clause),
                None => self.warn("warmup", &format!("(by default \"0 s\") {clause}")),
            }
        }
    }

    /// Warns of receive windows and send buffers that keep flows which always send below their share of the path.
    fn small_windows(&mut self, experiment: &Experiment, topology: &Topology) {
        let groups = &experiment.traffic;
        let shares = shares_of_links(groups, topology);
        for group in groups.iter().filter(|group| group.always_sends()) {
            let Some(tcp) = group.tcp().filter(|tcp| tcp.params.read_rate.is_none()) else {
                continue;
            };
            let (window, round_trips) = (
                tcp.params.largest_flight(),
                base_round_trips(group, topology),
            );
            let seconds = round_trips
                .into_iter()
                .max()
                .unwrap_or_default()
                .as_secs_f64();
            let share = share_of_path(group, &shares, topology);
            let needed = share / 8.0 * seconds;
            if window.as_u64() as f64 >= needed {
                continue;
            }
            let in_window = window < tcp.params.receive_window;
            let name = if in_window {
                "send_buffer"
            } else {
                "receive_window"
            };
            let key = format!("traffic.{}.tcp.{name}", group.access().name);
            let mut clause = format!(
                "limits the flows to {} ({} in each base round trip of {}); their share of the path is {} and needs {}",
                rate_in_words(8.0 * window.as_u64() as f64 / seconds),
                bytes_in_words(window.as_u64() as f64),
                time_in_words(seconds),
                rate_in_words(share),
                bytes_in_words(needed),
            );
            if paths::find(self.tree, &key).is_none() {
                clause.insert_str(0, &format!("(\"{window}\" by the preset) "));
            }
            self.warn(&key, &clause);
        }
    }

    /// Warns of limits that are too small for the traffic on the link, of this queue and of the queues
    /// inside it.
    fn buffers(
        &mut self,
        key: &str,
        queue: &QueueParams,
        facts: &LinkFacts,
        within: bool,
        experiment: &Experiment,
        topology: &Topology,
    ) {
        if let Some(limit) = queue.limit() {
            let groups: Vec<_> = (facts.groups.iter())
                .map(|group| &experiment.traffic[group.group as usize])
                .collect();
            let limit = limit.at(facts.rate);
            self.packet_too_large(key, limit, &groups);
            self.small_buffer(key, facts.rate, limit, within, &groups, topology);
        }
        queue.inner(facts, &mut |inner, queue, facts| {
            let key = format!("{key}.{inner}");
            self.buffers(&key, queue, facts, true, experiment, topology);
        });
    }

    fn packet_too_large(&mut self, key: &str, limit: Limit, groups: &[&TrafficParams]) {
        let Some(bytes) = limit.bytes else {
            return;
        };
        for group in groups
            .iter()
            .filter(|group| group.packet_size().as_u64() > bytes)
        {
            self.warn(
                &format!("{key}.limit"),
                &format!(
                    "holds no packet of {:?} (\"{}\"): every one of them that has to wait is \
                     dropped",
                    group.access().name,
                    group.packet_size()
                ),
            );
        }
    }

    fn small_buffer(
        &mut self,
        key: &str,
        rate: Rate,
        limit: Limit,
        within: bool,
        groups: &[&TrafficParams],
        topology: &Topology,
    ) {
        let Some(product) = BandwidthDelay::of(rate, groups, topology) else {
            return;
        };
        let too_small = limit
            .packets
            .is_some_and(|limit| (limit as f64) < product.packets())
            || limit
                .bytes
                .is_some_and(|limit| (limit as f64) < product.bytes);
        if too_small {
            // Others may use what a class leaves.
            let then = if within {
                "less than that rate will leave"
            } else {
                "the link will run idle"
            };
            self.warn(
                &format!("{key}.limit"),
                &format!(
                    "is below one bandwidth-delay product ({rate} x {} mean base round trip = \
                     {}): with few flows {then} after losses",
                    time_in_words(product.round_trip),
                    product.shown(),
                ),
            );
        }
    }
}

/// Whether the rate of a link is not constant.
fn changes_rate(link: &LinkParams) -> bool {
    link.rate_trace.is_some() || !link.rate_changes.is_empty()
}

/// For each link the index of its hop, its direction, and the rate of each of the flows that always send, in bit/s, where
/// they share the link equally.
fn shares_of_links(groups: &[TrafficParams], topology: &Topology) -> Vec<(usize, Direction, f64)> {
    let links = topology.links().into_iter();
    let shares = links.map(|(_, link, index, direction)| {
        let sharing = groups
            .iter()
            .filter(|group| group.always_sends() && crosses(group, topology, index, direction));
        let flows: f64 = sharing
            .map(|group| f64::from(group.access().flows_at_once))
            .sum();
        (index, direction, link.rate.as_bps() as f64 / flows)
    });
    shares.collect()
}

/// The rate that a flow of a group, which always sends, has on the links that it crosses, in bit/s; no more than that of
/// its access link.
fn share_of_path(
    group: &TrafficParams,
    shares: &[(usize, Direction, f64)],
    topology: &Topology,
) -> f64 {
    let crossed = shares
        .iter()
        .filter(|&&(index, direction, _)| crosses(group, topology, index, direction));
    let shares = crossed.map(|&(.., share)| share);
    let access = group.access().access_rate.map(|rate| rate.values());
    let access = access.and_then(|rates| rates.iter().max());
    let access = access.map_or(f64::INFINITY, |rate| rate.as_bps() as f64);
    shares.fold(access, f64::min)
}

/// Whether a name can be a step of a key.
fn is_plain(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    !name.is_empty() && name.chars().all(plain)
}

/// Why neither a group nor a hop can have this name: metrics are told apart by the name in front.
fn taken_name(name: &str) -> Option<&'static str> {
    if is_phase_name(name) {
        return Some("is what results call a phase");
    }
    if is_link_name(name) {
        return Some("is what results call a link");
    }
    // "hop1.measured.loss" would be of a group hop1, and of a link.
    (name == "measured").then_some("is what results call what programs measure")
}

/// Whether metrics of a link begin with this name.
fn is_link_name(name: &str) -> bool {
    let numbered = name
        .strip_prefix("hop")
        .is_some_and(|rest| rest.bytes().all(|b| b.is_ascii_digit()));
    numbered || name == "return" || name == "bottleneck"
}

/// Whether metrics of a phase begin with this name.
fn is_phase_name(name: &str) -> bool {
    name.strip_prefix("phase")
        .is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_digit()))
}

/// Every time within the measurement period at which a rate changes or a group starts or stops at
/// a fixed time, in order, each once.
pub(crate) fn changes(experiment: &Experiment, topology: &Topology) -> Vec<Span> {
    let links = topology.hops().iter().flat_map(|hop| {
        let back = hop.return_link.iter().map(|link| &link.rate_changes);
        std::iter::once(&hop.rate_changes).chain(back)
    });
    // A law can have many more changes than there may be phases: one too many is enough to refuse them.
    let (warmup, duration) = (experiment.warmup, experiment.duration);
    let times = |changes: &RateChanges| changes.times(warmup, duration, MOST_PHASES + 1);
    let mut times: Vec<Span> = links.flat_map(times).collect();
    for group in &experiment.traffic {
        times.extend(group.fixed_times());
    }
    times.retain(|&at| at > experiment.warmup && at < experiment.duration);
    times.sort_unstable();
    times.dedup();
    times
}
