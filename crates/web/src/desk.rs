//! Requests and answers.

use redtail_core::{Span, Time};
use redtail_sim::{RunOptions, Simulation};
use redtail_spec::{EventKind, Events, Scenario, Series};
use serde::Deserialize;
use serde_json::{Value, json};

use std::borrow::Cow;

use crate::check::{Experiment, Fault, Refusal};
use crate::interval::estimate;
use crate::limits::{MOST_EVENTS, MOST_FLOWS, MOST_SAMPLES, MOST_VALUES};
use crate::results::{self, Columns, Names};

/// Kinds of queues, presets and metrics.
const CATALOG: &str = include_str!("catalog.json");

/// What the page asks for.
#[derive(Debug, Deserialize)]
#[serde(tag = "ask", rename_all = "snake_case")]
enum Request {
    /// What there is to choose from.
    Catalog,
    /// Whether an experiment can be run, and what it amounts to.
    Check(Experiment),
    /// A run is to be made; one that was begun before is given up.
    Begin(Run),
    /// The run that was begun is to be advanced to a time.
    Advance {
        /// The time, in s.
        to_s: f64,
    },
    /// The time series of the run so far, as its result will have them.
    Samples,
    /// The run is to be advanced to its end: its result.
    Finish,
    /// The mean of values with its interval.
    Interval {
        /// The values; none is one that is undefined.
        values: Vec<Option<f64>>,
    },
}

/// A run of an experiment.
#[derive(Debug, Deserialize)]
struct Run {
    experiment: Experiment,
    #[serde(default)]
    case: usize,
    #[serde(default)]
    replication: u32,
    #[serde(default)]
    options: Options,
}

/// What is recorded beside the metrics. It changes no metric.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Options {
    /// Time between two samples of queues, flows and groups, in s; without it there are none.
    pub series: Option<f64>,
    /// The packets that are recorded, if any are.
    pub packets: Option<Packets>,
    /// Whether the answer has the distributions of times.
    pub histograms: bool,
}

/// The packets at queues that are recorded.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Packets {
    /// Those of the link of this name alone.
    #[serde(default)]
    pub link: Option<String>,
    /// From when on, in s.
    #[serde(default)]
    pub from_s: f64,
    /// Up to when, in s.
    pub to_s: f64,
    /// How many events at most, of all links together.
    pub most: u64,
}

/// A text and the columns that it refers to.
#[derive(Clone, Debug, Default)]
pub struct Answer {
    /// JSON.
    pub text: String,
    /// The values of all columns, one after the other.
    pub columns: Vec<f64>,
}

/// What answers requests.
#[derive(Default)]
pub struct Desk {
    /// The run that was begun.
    run: Option<Begun>,
}

struct Begun {
    simulation: Simulation<'static>,
    options: Options,
}

impl Desk {
    /// Carries out a request, JSON in UTF-8.
    pub fn answer(&mut self, request: &[u8]) -> Answer {
        let mut columns = Columns::default();
        let text = match serde_json::from_slice(request) {
            Ok(Request::Catalog) => {
                let version = env!("CARGO_PKG_VERSION");
                format!("{{\"version\": {version:?},{}", &CATALOG[1..])
            }
            Ok(request) => {
                let answered = self.carry_out(request, &mut columns);
                answered
                    .unwrap_or_else(|refusal| refusal.json())
                    .to_string()
            }
            Err(error) => {
                let fault = Fault::new(format!("the request is none: {error}"));
                Refusal::from(fault).json().to_string()
            }
        };
        Answer {
            text,
            columns: columns.values,
        }
    }

    fn carry_out(&mut self, request: Request, columns: &mut Columns) -> Result<Value, Refusal> {
        match request {
            Request::Catalog => unreachable!("it is a text"),
            Request::Check(experiment) => experiment.checked(),
            Request::Begin(run) => {
                self.run = None;
                let begun = run.begin()?;
                let answer = begun.state();
                self.run = Some(begun);
                Ok(answer)
            }
            Request::Advance { to_s } => {
                // A run that fails is over.
                let mut begun = self.take()?;
                let until = Time::ZERO + span("to_s", to_s)?;
                begun.simulation.advance(until).map_err(failed)?;
                let answer = begun.state();
                self.run = Some(begun);
                Ok(answer)
            }
            Request::Samples => {
                let begun = self.run.as_ref().ok_or_else(no_run)?;
                Ok(json!({ "ok": true, "series": begun.samples(columns) }))
            }
            Request::Finish => {
                let Begun {
                    simulation,
                    options,
                } = self.take()?;
                let result = simulation.finish().map_err(failed)?;
                Ok(results::answer(&result, &options, columns))
            }
            Request::Interval { values } => {
                if values.len() > MOST_VALUES {
                    let count = values.len();
                    let message = format!("{count} values; accepted: at most {MOST_VALUES}");
                    return Err(Fault::new(message).into());
                }
                let values = values.into_iter().map(|value| value.unwrap_or(f64::NAN));
                let found = estimate(&values.collect::<Vec<_>>());
                let (mean, count) = (found.mean, found.count);
                Ok(match found.half_width {
                    Ok(half) => json!({ "ok": true, "mean": mean, "half_width": half, "n": count }),
                    Err(why) => json!({ "ok": true, "mean": mean, "why": why, "n": count }),
                })
            }
        }
    }

    fn take(&mut self) -> Result<Begun, Refusal> {
        self.run.take().ok_or_else(no_run)
    }
}

fn no_run() -> Refusal {
    Fault::new("no run was begun".to_owned()).into()
}

impl Options {
    /// Time between two samples, once it has been found sound.
    pub fn interval(&self) -> Option<Span> {
        span("series", self.series?).ok()
    }
}

impl Run {
    fn begin(self) -> Result<Begun, Refusal> {
        let plan = self.experiment.plan()?;
        let Some(scenario) = plan.scenario(self.case, self.replication) else {
            let cases = plan.cases.len();
            let message = format!(
                "case {}: the experiment has {cases} cases, from 0",
                self.case
            );
            return Err(Fault::new(message).into());
        };
        let scenario = recorded(scenario, &self.options)?;
        let simulation = Simulation::new(Cow::Owned(scenario), RunOptions::default());
        Ok(Begun {
            simulation: simulation.map_err(failed)?,
            options: self.options,
        })
    }
}

impl Begun {
    /// How far it is.
    fn state(&self) -> Value {
        let seconds = |time: Time| (time - Time::ZERO).as_secs_f64();
        let simulation = &self.simulation;
        json!({
            "ok": true,
            "now_s": seconds(simulation.now()),
            "duration_s": seconds(simulation.end()),
            "over": simulation.now() == simulation.end(),
        })
    }
}

impl Begun {
    /// The time series so far; null without any.
    fn samples(&self, columns: &mut Columns) -> Value {
        let found = self.simulation.samples().zip(self.options.interval());
        let names = || Names {
            links: self.simulation.link_names().collect(),
            groups: self.simulation.group_names().collect(),
        };
        found.map_or(Value::Null, |(samples, interval)| {
            results::series(samples, &names(), interval, columns)
        })
    }
}

/// Why a run has no result.
fn failed(error: redtail_sim::RunError) -> Refusal {
    Fault::new(error.to_string()).into()
}

/// A time that the page gives, in s.
fn span(key: &str, seconds: f64) -> Result<Span, Refusal> {
    // A run takes less (`LONGEST_RUN` of `spec`).
    match (0.0..=1e7).contains(&seconds) {
        true => Ok(Span::from_ps((seconds * 1e12).round() as u64)),
        false => {
            let message = format!("{key} = {seconds}: is no time in seconds; accepted: 0 to 1e7");
            Err(Fault::new(message).into())
        }
    }
}

/// The scenario with what the page asks to be recorded in place of what the file does.
fn recorded(mut scenario: Scenario, options: &Options) -> Result<Scenario, Refusal> {
    let flows: u64 = scenario
        .traffic
        .iter()
        .map(|group| u64::from(group.access().flows))
        .sum();
    if flows > MOST_FLOWS {
        let message =
            format!("{flows} flows are too many for this page; accepted: at most {MOST_FLOWS}");
        return Err(Fault::new(message).into());
    }
    scenario.series = match options.series {
        None => None,
        Some(seconds) => {
            let interval = span("series", seconds)?;
            let rows =
                flows + scenario.topology.links().len() as u64 + scenario.traffic.len() as u64;
            let rows = scenario.duration.as_secs_f64() / interval.as_secs_f64() * rows as f64;
            // Not a number for 0 / 0, which no duration is.
            if rows > MOST_SAMPLES as f64 {
                let message = format!(
                    "series = {seconds}: makes {rows:.0} rows; accepted: an interval that makes at most {MOST_SAMPLES}"
                );
                return Err(Fault::new(message).into());
            }
            Some(Series {
                interval,
                queues: true,
                windows: true,
                goodput: true,
            })
        }
    };
    scenario.events = match &options.packets {
        None => None,
        Some(packets) => Some(Events {
            kinds: vec![
                EventKind::Drop,
                EventKind::Mark,
                EventKind::Arrival,
                EventKind::Departure,
                EventKind::Full,
            ],
            from: span("from_s", packets.from_s)?,
            to: Some(span("to_s", packets.to_s)?),
            limit: packets.most.clamp(1, MOST_EVENTS),
            ..Events::default()
        }),
    };
    Ok(scenario)
}
