//! From the text of an experiment file to its runs.

use std::collections::BTreeMap;

use redtail_core::plugin::{Identity, Role};
use redtail_core::{Bytes, ParamError, Rate, Span};
use redtail_traffic::program::measure::{MeasureParams, reading};
use redtail_traffic::{
    Access, AccessFilling, Dealt, Direction, ProgramParams, TraceParams, TrafficParams,
};
use serde_json::{Map, Value as Json, json};

use crate::chain;
use crate::de::Fault;
use crate::derived::DerivedMetricParams;
use crate::error::{Problem, SpecError, place};
use crate::events::{Events, EventsParams};
use crate::expand::{self, Factor, Set};
use crate::expect::ExpectationParams;
use crate::experiment::{
    Experiment, HopParams, LinkParams, RootParams, Scenario, Series, SeriesParams, Topology,
};
use crate::format;
use crate::load::{self, LoadRequest};
use crate::mistakes::{self, Known};
use crate::named::Placed;
use crate::node::Node;
use crate::origin::Origin;
use crate::outline;
use crate::paths;
use crate::rates::{self, Phases, ReadFile};
use crate::replications::{Replications, StopRuleParams};
use crate::shapes;
use crate::shared_hosts;
use crate::templates;
use crate::validate::{self, FindTable, PluginUse, TakeFiles, TraceSite, VisitPlugin};

/// The language of a text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Format {
    /// An experiment file.
    #[default]
    Toml,
    /// The same tree of keys and values, made by a program.
    Json,
}

/// How [`Plan::from_text`] reads an experiment, and what it asks about the things that the experiment
/// names and the text does not contain.
///
/// The default is a text in TOML without a name and without overrides. It accepts queues of kind
/// `plugin` as they are, and refuses traces of rates, tables of connections and files of programs.
#[derive(Default)]
pub struct PlanOptions<'a> {
    /// The language of the text.
    pub format: Format,
    /// The name of the text in messages.
    pub file: Option<&'a str>,
    /// Overrides of the form `key=value`, in their order.
    pub sets: &'a [String],
    /// Called with each queue and each controller of users, which it may complete or refuse.
    pub plugins: Option<&'a mut VisitPlugin<'a>>,
    /// Called with the name of each file that the experiment names, a trace of rates. It returns the
    /// text, or a clause such as `is no file; accepted: ...`.
    pub files: Option<&'a mut ReadFile<'a>>,
    /// Called with each group of kind `trace`. It returns the table of the group, or refuses.
    pub tables: Option<&'a mut FindTable<'a>>,
    /// Called with each group of kind `program`. It returns the files that the group takes along, or refuses.
    pub programs: Option<&'a mut TakeFiles<'a>>,
}

/// A checked experiment: what it is called, its cases, and the scenario of each run.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// What the experiment is called.
    pub name: String,
    /// What it is about.
    pub description: Option<String>,
    /// The number of runs of each case; with a rule, the largest number.
    pub replications: u32,
    /// The name of what makes the runs, if the file says so.
    pub backend: Option<String>,
    /// When a case has enough runs, if that depends on what they measure.
    pub stop: Option<StopRuleParams>,
    /// What programs find in a virtual machine, if the file says so.
    pub root: Option<RootParams>,
    /// Names of the metrics to show, if the file says so.
    pub report: Vec<String>,
    /// Metrics that the file derives from others by formulas, in its order.
    pub derived: Vec<Placed<DerivedMetricParams>>,
    /// What the file expects of its results, in its order.
    pub expected: Vec<Placed<ExpectationParams>>,
    /// Where the random numbers start from.
    pub seed: u64,
    /// Warnings of values that are accepted but probably not intended; each is a complete message with its
    /// place.
    pub warnings: Vec<String>,
    /// The keys that differ between cases, in the order of the file.
    pub factors: Vec<String>,
    /// The queues of kind `plugin`: the name of each, once, the key of the first queue of that name,
    /// and the text that tells where the experiment names it.
    pub plugins: Vec<(String, String, String)>,
    /// Every combination of factor values; the last factor changes fastest. At least one.
    pub cases: Vec<Case>,
}

/// One combination of factor values.
#[derive(Debug, Clone, PartialEq)]
pub struct Case {
    /// The value of each factor, as in the file.
    pub factors: Map<String, Json>,
    /// A short text for the value of each factor, for tables and legends.
    pub labels: Map<String, Json>,
    /// Every key that the case sets and its value; `None` if these are its factors.
    pub settings: Option<Map<String, Json>>,
    /// The first replication, without series.
    base: Scenario,
    series: Option<SeriesParams>,
    events: Option<EventsParams>,
}

impl Case {
    /// Whether a run of this case records series, and whether it records events.
    pub(crate) fn records(&self, replication: u32) -> (bool, bool) {
        let series = (self.series.as_ref()).is_some_and(|it| replication < it.replications);
        let events = (self.events.as_ref())
            .is_some_and(|it| it.replications.is_none_or(|count| replication < count));
        (series, events)
    }
}

impl Plan {
    /// What programs measure: the name of each metric and what the file says of it. One of several cases stands there
    /// once for each unit that it has.
    pub fn measures(&self) -> Vec<(String, &MeasureParams)> {
        let mut found: Vec<(String, &MeasureParams)> = Vec::new();
        let groups = self.cases.iter().flat_map(|case| &case.base.traffic);
        for group in groups.filter_map(|group| group.programs()) {
            for (name, measure) in &group.measure {
                let name = reading::metric(&group.name, name);
                if !(found.iter())
                    .any(|(known, other)| *known == name && other.unit == measure.unit)
                {
                    found.push((name, measure));
                }
            }
        }
        found
    }

    /// Reads, checks and expands an experiment.
    ///
    /// # Errors
    /// Everything that makes the file impossible to run, with its place, and what the functions of
    /// `options` refuse.
    pub fn from_text(text: &str, options: PlanOptions<'_>) -> Result<Plan, SpecError> {
        let PlanOptions {
            format, file, sets, ..
        } = options;
        let tree = match format {
            Format::Toml => Node::from_toml(text, file)?,
            Format::Json => Node::from_json(text, file)?,
        };
        let mut complete = |_: Role, _: &mut Identity| Ok(());
        let visit: &mut VisitPlugin<'_> = match options.plugins {
            Some(visit) => visit,
            None => &mut complete,
        };
        let mut no_file = |_: &str| Err("cannot be read: there are no files here".to_owned());
        let read: &mut ReadFile<'_> = match options.files {
            Some(read) => read,
            None => &mut no_file,
        };
        let mut no_table = |_: &TraceParams, _: &TraceSite| {
            let accepted = "groups without a table: this program reads none";
            Err(ParamError::new("file", "names a table", accepted))
        };
        let tables: &mut FindTable<'_> = match options.tables {
            Some(find) => find,
            None => &mut no_table,
        };
        let mut no_files = |group: &ProgramParams| match group.files.is_empty() {
            true => Ok(BTreeMap::new()),
            false => {
                let accepted = "programs without files: this program reads none";
                Err(ParamError::new("files", "names files", accepted))
            }
        };
        let programs: &mut TakeFiles<'_> = match options.programs {
            Some(take) => take,
            None => &mut no_files,
        };
        let named = &mut Named {
            read,
            tables,
            programs,
        };
        expand_and_check(tree, file, sets, visit, named)
            .map_err(|problems| SpecError::new(file, problems))
    }

    /// The scenario of one run; `replication` is counted from 0 and may exceed the number asked for
    /// in the file. `None` if there is no case with this index.
    pub fn scenario(&self, case: usize, replication: u32) -> Option<Scenario> {
        let case = self.cases.get(case)?;
        let (series, events) = case.records(replication);
        let recorded = case.series.as_ref().filter(|_| series);
        Some(Scenario {
            replication,
            series: recorded.map(|series| Series {
                interval: series.interval,
                queues: series.queues,
                windows: series.windows,
                goodput: series.goodput,
            }),
            events: case.events.as_ref().filter(|_| events).map(Events::from),
            ..case.base.clone()
        })
    }

    /// The loads that the file gives for groups of a case in place of a number of users. The scenarios of
    /// the case can be run as soon as each of these groups has a number of users ([`Scenario::with_users`]).
    pub fn loads(&self, case: usize) -> Vec<LoadRequest> {
        self.cases
            .get(case)
            .map_or(Vec::new(), |case| case.base.loads())
    }

    /// A summary of the experiment in a few lines: its bottlenecks, its groups of flows, and the amount of
    /// simulation. A quantity that differs between cases is given as a range.
    pub fn outline(&self) -> Vec<String> {
        let runs: Vec<_> = self.cases.iter().map(|case| &case.base).collect();
        let least = self.stop.as_ref().map(|rule| rule.at_least);
        let replications = (least.unwrap_or(self.replications), self.replications);
        outline::outline(&runs, replications)
    }

    /// About how many packets the first bottleneck sends in a run of a case; `None` if its traffic
    /// does not tell, as with users who wait for answers.
    pub fn packets(&self, case: usize) -> Option<f64> {
        let packets = outline::packets(&self.cases.get(case)?.base);
        (packets > 0.0).then_some(packets)
    }

    /// The cases as a JSON list of `{"factors": {key: value}, "labels": {key: text}}`, with
    /// `"settings"` for cases that set other keys than their factors'.
    pub fn cases_json(&self) -> String {
        let cases = self.cases.iter();
        let list: Json = cases
            .map(|case| match &case.settings {
                None => json!({ "factors": case.factors, "labels": case.labels }),
                Some(settings) => json!({
                    "factors": case.factors, "labels": case.labels, "settings": settings,
                }),
            })
            .collect();
        list.to_string()
    }
}

/// Why this program cannot run a group whose endpoints another program has.
pub fn no_endpoints() -> ParamError {
    ParamError::new(
        "kind",
        "is for programs of your own, which bring the endpoints and run the experiment themselves \
         (docs/how-to/own-endpoint.md)",
        "another kind of traffic",
    )
}

/// The line of an experiment in TOML that gives a key, or values of it as a factor; `None` without one.
pub fn line_of(text: &str, key: &str) -> Option<u32> {
    let tree = Node::from_toml(text, None).ok()?;
    let factors = tree.as_table()?.get("factors").and_then(Node::as_table);
    match factors.and_then(|factors| factors.entry(key)) {
        Some(factor) => factor.origin.line(),
        None => paths::origin(&tree, key).line(),
    }
}

/// What an experiment names and its text does not contain.
struct Named<'a, 'b> {
    read: &'a mut ReadFile<'b>,
    tables: &'a mut FindTable<'b>,
    programs: &'a mut TakeFiles<'b>,
}

fn expand_and_check(
    mut tree: Node,
    file: Option<&str>,
    sets: &[String],
    visit: &mut VisitPlugin<'_>,
    named: &mut Named<'_, '_>,
) -> Result<Plan, Vec<Problem>> {
    let one = |problem| vec![problem];
    format::check(&tree).map_err(one)?;
    let mut problems = shapes::put_right(&mut tree);
    let mut known = Known::default();
    let mut factors = expand::take_factors(&mut tree, &mut problems, &mut known);
    problems.extend(unique_names(&tree).err());
    for argument in sets {
        let key = argument.split('=').next().unwrap_or_default().trim();
        let set = Set::parse(argument).and_then(|set| set.apply(&mut tree, &mut factors));
        if let Err(problem) = set {
            problems.push(problem);
            known.add(key.trim_start_matches("factors.").trim_matches('"'));
        }
    }
    format::check(&tree).map_err(one)?; // an argument may have set it
    let steps = expand::align(&mut factors).and_then(|()| {
        factors.iter_mut().try_for_each(Factor::label)?;
        expand::combinations(&factors)
    });
    let combinations = match steps {
        Ok(combinations) => combinations,
        Err(problem) => {
            problems.push(problem);
            return Err(told(problems, Vec::new()));
        }
    };
    problems.extend(replaced(
        &tree,
        &factors,
        &combinations[0],
        &known,
        named.read,
    ));

    let mut errors = Gathered::new(combinations.len(), PartialEq::eq);
    let mut warnings = Gathered::new(combinations.len(), alike);
    let mut cases = Vec::with_capacity(combinations.len());
    let (mut first, mut plugins) = (None, Vec::new());
    for (number, combination) in combinations.iter().enumerate() {
        // Of the first cases all mistakes, so that a file with many cases is not decoded too often.
        let most = if number < SEARCHED { mistakes::MOST } else { 1 };
        let labels: Vec<_> = factors
            .iter()
            .zip(combination)
            .map(|(factor, index)| (&factor.key, &factor.labels[*index]))
            .collect();
        let found = case(&tree, &factors, combination, (&known, most), visit, named);
        let (experiment, topology) = match found {
            Ok((experiment, topology, found, used)) => {
                for PluginUse {
                    class,
                    role: _,
                    key,
                    place: at,
                } in used
                {
                    if plugins.iter().all(|(known, _, _)| *known != class) {
                        let text = place(file, &at.origin) + at.message.trim_end();
                        plugins.push((class, key, text));
                    }
                }
                found
                    .into_iter()
                    .for_each(|warning| warnings.add(warning, &labels));
                (experiment, topology)
            }
            Err(found) => {
                found
                    .into_iter()
                    .for_each(|error| errors.add(error, &labels));
                continue;
            }
        };
        cases.push(Case {
            factors: factors
                .iter()
                .zip(combination)
                .map(|(factor, index)| (factor.key.clone(), factor.values[*index].to_json()))
                .collect(),
            labels: labels
                .iter()
                .map(|(key, label)| ((*key).clone(), Json::from(label.as_str())))
                .collect(),
            settings: settings(&factors, combination),
            base: scenario(&experiment, topology),
            series: experiment.series.clone(),
            events: experiment.events.clone(),
        });
        first.get_or_insert(experiment);
    }
    let errors = errors.finish(&factors);
    if !errors.is_empty() || !problems.is_empty() {
        return Err(told(problems, errors));
    }
    let experiment = first.expect("there is a case, and none has errors");
    let found_at = |key: &str| {
        let origin = paths::origin(&tree, key);
        (place(file, &origin), origin.line())
    };
    Ok(Plan {
        name: experiment.name,
        description: experiment.description,
        replications: experiment.replications.at_most(),
        backend: experiment.backend,
        stop: match experiment.replications {
            Replications::Fixed(_) => None,
            Replications::Until(rule) => Some(rule),
        },
        root: experiment.programs,
        report: experiment
            .report
            .map_or_else(Vec::new, |report| report.metrics),
        derived: (experiment.metrics.unwrap_or_default())
            .placed(|name| found_at(&format!("metrics.{name}.formula"))),
        expected: (experiment.expect.unwrap_or_default())
            .placed(|name| found_at(&format!("expect.{name}.holds"))),
        seed: experiment.seed,
        warnings: together(warnings.finish(&factors))
            .into_iter()
            .map(|warning| place(file, &warning.origin) + &warning.message)
            .collect(),
        factors: factors.into_iter().map(|factor| factor.key).collect(),
        plugins,
        cases,
    })
}

/// The number of cases in which all mistakes are looked for.
const SEARCHED: usize = 50;

/// All that is wrong with a file: in the order of its lines, each once, and not too many.
fn told(mut problems: Vec<Problem>, more: Vec<Problem>) -> Vec<Problem> {
    for problem in more {
        if problems
            .iter()
            .all(|other| other.message != problem.message)
        {
            problems.push(problem);
        }
    }
    problems.sort_by_key(|problem| problem.origin.line());
    let count = problems.len();
    if count > mistakes::MOST {
        problems.truncate(mistakes::MOST);
        problems.push(Problem {
            origin: Origin::Api,
            key: None,
            message: format!("and {} more", count - mistakes::MOST),
        });
    }
    problems
}

/// What is wrong with values that factors replace in every case: no case has them, so no case is refused for
/// them.
///
/// Such a value has to be one that its key accepts: of a known kind, with known keys and right units. It may lack keys,
/// because an experiment may give them in its cases alone.
fn replaced(
    tree: &Node,
    factors: &[Factor],
    combination: &[usize],
    known: &Known,
    read: &mut ReadFile<'_>,
) -> Vec<Problem> {
    let mut problems = Vec::new();
    for factor in factors {
        for key in factor.always_sets() {
            if paths::find(tree, key).is_none() {
                continue;
            }
            let mut base = tree.clone();
            let each = factors.iter().zip(combination);
            let mut puts: Vec<_> = each
                .flat_map(|(factor, index)| factor.puts(*index))
                .filter(|put| !put.sets(key))
                .collect();
            puts.sort_by_key(expand::Put::depth);
            for put in puts {
                let _ = put.into_tree(&mut base); // the case itself is refused for it
            }
            // The case itself is refused for what is wrong with templates.
            templates::expand(&mut base, &mut Vec::new(), &mut Known::default());
            let mut found = expand::strip_labels(&mut base);
            found.extend(rates::embed(&mut base, read));
            let decoded = mistakes::decode(&base, known, mistakes::MOST);
            let faults = decoded
                .faults
                .into_iter()
                .filter(|fault| !fault.is_missing());
            found.extend(faults.map(Fault::into_problem));
            let name = factor.name();
            let here = found.into_iter().filter(|problem| {
                let at = problem.key.as_deref().unwrap_or_default();
                mistakes::within(at, key)
            });
            problems.extend(here.map(|mut problem| {
                problem.message += &format!(" [{name} replaces this value in all cases]");
                problem
            }));
        }
    }
    problems
}

/// The keys and values that a case sets, if its factors do not show them.
fn settings(factors: &[Factor], combination: &[usize]) -> Option<Map<String, Json>> {
    factors
        .iter()
        .find(|factor| factor.key == expand::CASE_NAME)?;
    let each = factors.iter().zip(combination);
    let puts = each.flat_map(|(factor, index)| factor.puts(*index));
    Some(puts.map(|put| put.setting()).collect())
}

/// Refuses two groups of the same name, because keys name groups.
fn unique_names(tree: &Node) -> Result<(), Problem> {
    let groups = tree
        .as_table()
        .and_then(|table| table.get("traffic"))
        .and_then(Node::as_array);
    let mut seen: BTreeMap<&str, &Origin> = BTreeMap::new();
    for group in groups.unwrap_or_default() {
        let Some(entry) = group.as_table().and_then(|table| table.entry("name")) else {
            continue; // decoding says it better
        };
        let Some(name) = entry.node.as_str() else {
            continue;
        };
        if let Some(other) = seen.get(name) {
            let other = other
                .line()
                .map_or(String::new(), |line| format!(" (line {line})"));
            return Err(Problem {
                origin: entry.origin.clone(),
                key: Some(format!("traffic.{name}.name")),
                message: format!(
                    "traffic.{name}.name = {name:?} is the name of another group too{other}; \
                     accepted: a name of its own"
                ),
            });
        }
        seen.insert(name, &entry.origin);
    }
    Ok(())
}

type Checked = (Experiment, Topology, Vec<Problem>, Vec<PluginUse>);

/// One case, with its warnings and its plug-ins; or up to `most` mistakes in it, without those of keys that are
/// `known` to be wrong.
fn case(
    tree: &Node,
    factors: &[Factor],
    combination: &[usize],
    (known, most): (&Known, usize),
    visit: &mut VisitPlugin<'_>,
    named: &mut Named<'_, '_>,
) -> Result<Checked, Vec<Problem>> {
    let mut tree = tree.clone();
    // A factor inside another one goes in after it.
    let each = factors.iter().zip(combination);
    let mut puts: Vec<_> = each
        .clone()
        .flat_map(|(factor, index)| factor.puts(*index))
        .collect();
    puts.sort_by_key(expand::Put::depth);
    let (mut problems, mut known) = (Vec::new(), known.clone());
    for put in puts {
        let key = put.key.to_owned();
        if let Err(problem) = put.into_tree(&mut tree) {
            problems.push(problem);
            known.add(&key);
        }
    }
    let made = templates::expand(&mut tree, &mut problems, &mut known);
    problems.extend(made.then(|| unique_names(&tree).err()).flatten());
    problems.extend(expand::strip_labels(&mut tree));
    let unread = rates::embed(&mut tree, named.read);
    for key in unread.iter().filter_map(|problem| problem.key.as_deref()) {
        // The rate may be that of the trace.
        known.add(key);
        known.add(&key.replace("rate_trace", "rate"));
    }
    problems.extend(unread);
    let decoded = mistakes::decode(&tree, &known, most);
    let told = |fault: Fault| {
        let explained = fault.accepted_keys().and_then(|accepted| {
            let key = fault.key();
            each.clone()
                .find_map(|(factor, index)| factor.explains(*index, &key, accepted))
        });
        explained.unwrap_or_else(|| {
            let key = fault.key();
            let may_vary = expand::can_be_factor(&key) && factors.iter().all(|f| f.key != key);
            let hint = fault.vary_hint().filter(|_| may_vary);
            let mut problem = fault.into_problem();
            problem.message += &hint.unwrap_or_default();
            problem
        })
    };
    let is_whole = problems.is_empty() && decoded.known.is_empty();
    problems.extend(decoded.faults.into_iter().map(told));
    let mut experiment = match decoded.experiment {
        Some(experiment) if is_whole => experiment,
        found => {
            if let Some(experiment) = found {
                let (tree, known) = (&decoded.tree, &decoded.known);
                problems.extend(validate::check_the_rest(&experiment, tree, known));
            }
            return Err(problems);
        }
    };
    let hops = experiment.chain.as_ref().map_or(1, |chain| chain.hop.len());
    let mut unshared = chain::number_hops(&mut experiment, &tree);
    unshared.extend(shared_hosts::place(&mut experiment, &tree, hops));
    load::estimate_users(&mut experiment, &tree)?;
    for group in &mut experiment.traffic {
        group.fill_in_starts(experiment.warmup);
        group.fill_in_activations(experiment.duration);
    }
    let (mut findings, mut topology) =
        validate::check(&mut experiment, &tree, named.tables, named.programs);
    findings.errors.extend(unshared);
    let mut plugins = Vec::new();
    if let Some(topology) = topology.as_mut().filter(|_| findings.errors.is_empty()) {
        plugins = findings.plugins(&mut experiment, topology, visit);
    }
    match topology {
        Some(topology) if findings.errors.is_empty() => {
            let warnings = findings.warnings;
            Ok((experiment, topology, warnings, plugins))
        }
        _ => Err(findings.errors),
    }
}

/// The most problems of one kind that are told one by one.
const MOST_ALIKE: usize = 3;

/// The most names of groups or classes that one of them is told for all of.
const MOST_NAMES: usize = 4;

/// Warnings, of which those that many groups or classes have in common are told once, with their number.
fn together(warnings: Vec<Problem>) -> Vec<Problem> {
    let mut kinds: Vec<(String, Vec<Problem>)> = Vec::new();
    let mut places: BTreeMap<String, usize> = BTreeMap::new();
    for warning in warnings {
        let (kind, _) = kind_and_name(&warning);
        let place = *places.entry(kind.clone()).or_insert(kinds.len());
        if place == kinds.len() {
            kinds.push((kind, Vec::new()));
        }
        kinds[place].1.push(warning);
    }
    let told = |(_, alike): (String, Vec<Problem>)| match alike.len() {
        count if count <= MOST_ALIKE => alike,
        count => {
            let mut alike = alike.into_iter();
            let mut first = alike.next().expect("there are several");
            let own = first.message.replace(&kind_and_name(&first).1, "");
            let others: Vec<Problem> = alike.collect();
            let same = |other: &Problem| other.message.replace(&kind_and_name(other).1, "") == own;
            let numbers = if others.iter().all(same) {
                ""
            } else {
                ", with other numbers"
            };
            let names: Vec<String> = others.iter().map(|it| kind_and_name(it).1).collect();
            let names = match names.as_slice() {
                few if few.len() <= MOST_NAMES => few.join(", "),
                many => format!("{}, {}, …, {}", many[0], many[1], many[many.len() - 1]),
            };
            first.message += &format!(" [and {} more alike{numbers}: {names}]", count - 1);
            vec![first]
        }
    };
    kinds.into_iter().flat_map(told).collect()
}

/// What a problem says without the name of the group or class that it is about, and without numbers; and this name.
fn kind_and_name(problem: &Problem) -> (String, String) {
    let key = problem.key.as_deref().unwrap_or_default();
    let steps: Vec<&str> = key.split('.').collect();
    let named = |step: &str| matches!(step, "traffic" | paths::CLASS);
    let name = steps.windows(2).rev().find(|pair| named(pair[0]));
    let name = name.map_or("", |pair| pair[1]);
    let words: Vec<&str> = without_numbers(&problem.message)
        .flat_map(|word| word.split('.'))
        .filter(|word| *word != name)
        .collect();
    (words.join(" "), name.to_owned())
}

/// Whether two problems of the same key differ only in numbers.
fn alike(a: &Problem, b: &Problem) -> bool {
    a.origin == b.origin
        && a.key == b.key
        && without_numbers(&a.message).eq(without_numbers(&b.message))
}

/// The words of a message, without its numbers and without the units behind them.
fn without_numbers(message: &str) -> impl Iterator<Item = &str> {
    const UNITS: [&str; 15] = [
        "ps", "ns", "us", "ms", "s", "min", "h", "bit/s", "kbit/s", "Mbit/s", "Gbit/s", "B", "kB",
        "MB", "GB",
    ];
    let mut after_a_number = false;
    message
        .split_whitespace()
        .map(|word| word.trim_matches(|c: char| !c.is_alphanumeric()))
        .filter(move |word| {
            let number = word.starts_with(|c: char| c.is_ascii_digit());
            let unit = after_a_number && UNITS.contains(word);
            after_a_number = number;
            !number && !unit
        })
}

/// Problems of all cases, each once, with how many cases have it.
struct Gathered {
    cases: usize,
    /// What problems that are reported as one have in common.
    same: fn(&Problem, &Problem) -> bool,
    found: Vec<Found>,
}

struct Found {
    /// As the first case has it.
    problem: Problem,
    /// Whether another case has other numbers in it.
    varies: bool,
    count: usize,
    /// The first case that has it.
    case: String,
}

impl Gathered {
    fn new(cases: usize, same: fn(&Problem, &Problem) -> bool) -> Self {
        Gathered {
            cases,
            same,
            found: Vec::new(),
        }
    }

    fn add(&mut self, problem: Problem, labels: &[(&String, &String)]) {
        let same = self.same;
        match self
            .found
            .iter_mut()
            .find(|found| same(&found.problem, &problem))
        {
            Some(found) => {
                found.count += 1;
                found.varies |= found.problem != problem;
            }
            None => {
                let case: Vec<_> = labels
                    .iter()
                    .map(|(key, label)| format!("{key} = {label}"))
                    .collect();
                self.found.push(Found {
                    problem,
                    varies: false,
                    count: 1,
                    case: case.join(", "),
                });
            }
        }
    }

    /// If only some cases have a problem, adds to its message which ones, unless its line shows that.
    fn finish(self, factors: &[Factor]) -> Vec<Problem> {
        let in_a_value = |problem: &Problem| {
            let key = problem.key.as_deref().unwrap_or_default();
            problem.origin.line().is_some() && factors.iter().any(|factor| factor.gives(key))
        };
        self.found
            .into_iter()
            .map(|found| {
                let Found {
                    mut problem,
                    varies,
                    count,
                    case,
                } = found;
                let cases = self.cases;
                if varies {
                    problem.message +=
                        &format!(" [in {count} of {cases} cases; these numbers with {case}]");
                } else if count < cases && !in_a_value(&problem) {
                    problem.message +=
                        &format!(" [in {count} of {cases} cases, first with {case}]");
                }
                problem
            })
            .collect()
    }
}

/// The scenario of a case, with those defaults filled in that depend on other keys.
fn scenario(experiment: &Experiment, topology: Topology) -> Scenario {
    let mut traffic = experiment.traffic.clone();
    let of_ns2 = experiment.traffic.iter().any(is_of_ns2);
    let mut host_jitter_by_default = Vec::new();
    let rates = default_access_rates(&traffic, &topology);
    for (group, rate) in traffic.iter_mut().zip(rates) {
        let mut host_jitter = group.access().host_jitter.or(experiment.host_jitter);
        // A group without TCP is taken for one of ns-2 if there is another one of ns-2.
        if host_jitter.is_none() && !is_of_ns2(group) && !(of_ns2 && group.tcp().is_none()) {
            host_jitter = Some(default_host_jitter(&group.access(), &topology));
            host_jitter_by_default.push(group.access().name.to_owned());
        }
        fill_in(group, &topology, rate, host_jitter);
    }
    let mut record = experiment.record.clone();
    record.sort_unstable();
    record.dedup();
    let phases = match &experiment.phases {
        None => Vec::new(),
        Some(Phases::At(times)) => times.clone(),
        Some(Phases::Auto) => validate::changes(experiment, &topology),
    };
    Scenario {
        duration: experiment.duration,
        warmup: experiment.warmup,
        seed: experiment.seed,
        replication: 0,
        topology,
        traffic,
        host_jitter_by_default,
        phases,
        series: None,
        events: None,
        record,
        keep_flows: experiment.keep_flows,
    }
}

/// The default rate of access links, as a multiple of the bottleneck's rate.
const ACCESS_SPEED_UP: u64 = 10;

/// The default of `host_jitter`, where a packet of 1500 bytes takes longer at the bottleneck.
const MOST_DEFAULT_JITTER: Span = Span::from_us(200);

/// The size of the packet whose transmission time bounds the default of `host_jitter`.
const FULL_PACKET: u32 = 1500;

/// Whether a group's TCP reproduces that of ns-2, whose hosts send at once.
fn is_of_ns2(group: &TrafficParams) -> bool {
    group.tcp().is_some_and(|tcp| tcp.given.preset.is_of_ns2())
}

/// The `host_jitter` of a group when the file gives none.
fn default_host_jitter(access: &Access<'_>, topology: &Topology) -> Span {
    let hops = &topology.hops()[outline::crossed(access, topology)];
    let rates = hops.iter().map(|hop| match access.direction {
        Direction::Forward => hop.forward().largest_rate(),
        Direction::Reverse => largest_return_rate(hop),
    });
    let slowest = rates.min().expect("a group crosses a hop");
    MOST_DEFAULT_JITTER.min(slowest.tx_time(Bytes::new(u64::from(FULL_PACKET))))
}

/// The rate of the links of each group's hosts where the file gives none: one for all groups that share hosts.
fn default_access_rates(traffic: &[TrafficParams], topology: &Topology) -> Vec<Rate> {
    let sets = shared_hosts::host_sets(traffic);
    let mut most = vec![0; traffic.len()];
    let each = traffic.iter().zip(shared_hosts::host_peaks(traffic));
    for ((group, peak), &set) in each.zip(&sets) {
        let access = group.access();
        let hops = outline::crossed(&access, topology);
        let met_first = match access.direction {
            Direction::Forward => topology.hops()[hops.start].forward().largest_rate(),
            Direction::Reverse => largest_return_rate(&topology.hops()[hops.end - 1]),
        };
        most[set] = met_first.max(peak).as_bps().max(most[set]);
    }
    let rate = |set: usize| Rate::from_bps(most[set].saturating_mul(ACCESS_SPEED_UP));
    sets.into_iter().map(rate).collect()
}

fn fill_in(group: &mut TrafficParams, topology: &Topology, rate: Rate, host_jitter: Option<Span>) {
    let access = group.access();
    let hops = outline::crossed(&access, topology);
    let host_count = access.host_count() as u32;
    // None at all is the same run, and has the same text.
    let host_jitter = host_jitter.filter(|it| *it > Span::ZERO);
    let numbers =
        matches!(topology, Topology::Chain(_)).then_some((hops.start as u32 + 1, hops.end as u32));
    group.fill_in(&AccessFilling {
        rate: Dealt::one(rate),
        hosts: host_count,
        host_jitter,
        hops: numbers,
    });
}

fn largest_return_rate(hop: &HopParams) -> Rate {
    let back = hop.return_link.as_ref();
    back.map_or_else(|| hop.forward().largest_rate(), LinkParams::largest_rate)
}
