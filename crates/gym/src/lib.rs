//! Simulations that an agent steers: at each step it sets one number, and hears what was measured since.
//!
//! The agent has one place in a scenario, in which it takes the part of what stands there:
//!
//! - `queue`: a tail-drop queue. The agent sets the probability with which arriving packets are dropped or marked; the
//!   limit stays. With the probability 0 the run is the run with tail drop.
//! - `controller`: the congestion controller of a TCP flow. The agent changes its window or its pacing rate by a factor.
//!
//! Both are plug-ins ([`redtail_sim::plugin`], [`redtail_sim::controller`]). They measure what stands at their place: a
//! queue sees packets, a controller sees acknowledgements. So an agent learns nothing that a queue or a sender in its place
//! could not know. An observation and a reward are made of what was measured; who wants others makes them of the measures.

mod controller;
mod queue;
mod told;

use std::borrow::Cow;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use redtail_core::{ParamError, Rate, Span, Time};
use redtail_qdisc::QueueParams;
use redtail_qdisc::plugin::PluginParams;
use redtail_sim::{Plugins, RunError, RunOptions, RunResult, Simulation, Traces};
use redtail_spec::Scenario;
use redtail_traffic::TrafficParams;
use redtail_traffic::access::Direction;

pub use told::{LARGEST_RATIO, Measure, Observed, Reward, Told};

/// The name of the plug-in in the scenario, which is no name of a class in an experiment file.
const AGENT: &str = " agent";

/// Where the agent is, and what it sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Knob {
    /// The probability with which a queue drops an arriving packet. With `mark` it marks in place of this the packets of
    /// senders that use ECN.
    Probability {
        /// Whether it marks.
        mark: bool,
    },
    /// The congestion window of a TCP flow, which the agent's number multiplies by 2 to its power.
    Window,
    /// The pacing rate of a TCP flow, likewise.
    Rate,
}

impl Knob {
    /// What is measured in a step, in the order in which it is told.
    pub fn measures(self) -> &'static [Measure] {
        match self {
            Self::Probability { .. } => queue::MEASURES,
            Self::Window | Self::Rate => controller::MEASURES,
        }
    }

    /// What is observed, in its order.
    pub fn observed(self) -> &'static [Observed] {
        match self {
            Self::Probability { .. } => queue::OBSERVED,
            Self::Window | Self::Rate => controller::OBSERVED,
        }
    }

    /// The least and the greatest action: a probability, or the power of two by which a window or a rate changes.
    pub fn bounds(self) -> (f64, f64) {
        match self {
            Self::Probability { .. } => (0.0, 1.0),
            Self::Window | Self::Rate => (-1.0, 1.0),
        }
    }
}

/// Why a run cannot begin.
#[derive(Debug)]
pub enum EpisodeError {
    /// The agent has no place in the scenario.
    Place(ParamError),
    /// The scenario cannot be simulated.
    Run(RunError),
}

/// A run from its begin to its end, in steps of an agent.
pub struct Episode {
    simulation: Simulation<'static>,
    agent: Agent,
    interval: Span,
    reward: Reward,
}

/// What the plug-in and the episode share.
enum Agent {
    Queue(queue::Shared),
    Controller(controller::Shared),
}

/// A state that a plug-in and its episode share. Both are in one thread at a time.
type Cell<T> = Arc<Mutex<T>>;

fn lock<T>(cell: &Cell<T>) -> MutexGuard<'_, T> {
    // A plug-in that panicked has ended the run.
    cell.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Episode {
    /// Begins the run of `scenario` with the agent at the place with the dotted key `key` of the experiment file, such as
    /// `bottleneck.queue` or `traffic.NAME.tcp`. A step takes `interval`.
    ///
    /// # Errors
    /// There is no such place in the scenario, or something stands there that an agent cannot replace.
    ///
    /// # Panics
    /// When `traces` lacks a table of the scenario.
    pub fn new(
        mut scenario: Scenario,
        traces: Traces,
        key: &str,
        knob: Knob,
        interval: Span,
        reward: Reward,
    ) -> Result<Self, EpisodeError> {
        let (agent, plugins) = match knob {
            Knob::Probability { mark } => {
                take_queue(&mut scenario, key).map_err(EpisodeError::Place)?;
                let shared = queue::Shared::default();
                let plugins = Plugins::new().with(AGENT, queue::make(shared.clone(), mark));
                (Agent::Queue(shared), plugins)
            }
            Knob::Window | Knob::Rate => {
                let taken = take_controller(&mut scenario, key);
                let bottleneck = taken.map_err(EpisodeError::Place)?;
                let shared = controller::shared(bottleneck, knob == Knob::Rate);
                let make = controller::make(shared.clone());
                let plugins = Plugins::new().with_controller(AGENT, make);
                (Agent::Controller(shared), plugins)
            }
        };
        // Only metrics are taken of the result.
        scenario.series = None;
        scenario.events = None;
        let options = RunOptions {
            plugins,
            traces,
            ..RunOptions::default()
        };
        let simulation = Simulation::new(Cow::Owned(scenario), options);
        Ok(Self {
            simulation: simulation.map_err(EpisodeError::Run)?,
            agent,
            interval,
            reward,
        })
    }

    /// The number that the agent sets is `action` from now on; the run goes on by one interval, at most to its end. Then
    /// the agent is told what has happened.
    ///
    /// # Errors
    /// A plug-in failed.
    ///
    /// # Panics
    /// When the run is over, or the places in `told` are more or fewer than there have to be.
    pub fn step(&mut self, action: f64, told: Told<'_>) -> Result<(), RunError> {
        assert!(!self.is_over(), "the run is over");
        match &self.agent {
            Agent::Queue(shared) => lock(shared).probability = action,
            Agent::Controller(shared) => lock(shared).change(action),
        }
        let begin = self.simulation.now();
        self.simulation.advance(begin + self.interval)?;
        self.tell(begin, told);
        Ok(())
    }

    /// The agent is told what there is before the first step: nothing has happened.
    ///
    /// # Panics
    /// As [`step`](Self::step).
    pub fn begin(&self, told: Told<'_>) {
        self.tell(self.simulation.now(), told);
    }

    fn tell(&self, begin: Time, told: Told<'_>) {
        let period = (begin, self.simulation.now());
        let duration = self.simulation.end() - Time::ZERO;
        match &self.agent {
            Agent::Queue(shared) => lock(shared).tell(period, duration, &self.reward, told),
            Agent::Controller(shared) => lock(shared).tell(period, duration, &self.reward, told),
        }
    }

    /// Whether the run is over.
    pub fn is_over(&self) -> bool {
        self.simulation.now() == self.simulation.end()
    }

    /// The result of the run, which is over.
    ///
    /// # Errors
    /// A plug-in failed.
    pub fn finish(self) -> Result<RunResult, RunError> {
        self.simulation.finish()
    }
}

/// Puts the agent in the place of the tail-drop queue with this key.
fn take_queue(scenario: &mut Scenario, key: &str) -> Result<(), ParamError> {
    let links = scenario.topology.links();
    let is_here = |link: &str| key.strip_suffix(".queue") == Some(link);
    let Some((_, link, hop, direction)) = links.iter().find(|(link, ..)| is_here(link)) else {
        let known = links.iter().map(|(link, ..)| format!("{link}.queue"));
        return Err(no_place(key, "queue", known.collect()));
    };
    let QueueParams::TailDrop(params) = &link.queue else {
        return Err(ParamError::new(
            key.to_owned(),
            format!("is a queue of kind {:?}", link.queue.kind()),
            "a queue of kind \"tail-drop\" there: the agent drops packets in front of it, and it keeps its limit",
        ));
    };
    let agent = QueueParams::Plugin(PluginParams {
        class: AGENT.to_owned(),
        limit: Some(params.limit),
        params: Default::default(),
        source: None,
    });
    let hop = &mut scenario.topology.hops_mut()[*hop];
    match (direction, &mut hop.return_link) {
        (Direction::Forward, _) => hop.queue = agent,
        (Direction::Reverse, back) => back.as_mut().expect("it has a way back").queue = agent,
    }
    Ok(())
}

/// Puts the agent in the place of the congestion controller with this key. Returns the least rate of the links.
fn take_controller(scenario: &mut Scenario, key: &str) -> Result<Rate, ParamError> {
    let known = |group: &&TrafficParams| group.tcp().is_some();
    let known = scenario.traffic.iter().filter(known);
    let known = known
        .map(|group| format!("traffic.{}.tcp", group.access().name))
        .collect();
    let hops = scenario.topology.hops().iter();
    let rate = hops.map(|hop| hop.rate).min();
    let rate = rate.expect("there is a bottleneck");
    let is_here =
        |group: &&mut TrafficParams| key == format!("traffic.{}.tcp", group.access().name);
    let Some(group) = scenario.traffic.iter_mut().find(is_here) else {
        return Err(no_place(key, "controller", known));
    };
    let TrafficParams::Bulk(group) = group else {
        return Err(ParamError::new(
            key.to_owned(),
            "is of a group of another kind than \"bulk\"",
            "a group of kind \"bulk\": its flows always have data to send",
        ));
    };
    if group.flows != 1 {
        return Err(ParamError::new(
            key.to_owned(),
            format!("is of {} flows", group.flows),
            "a group with flows = 1: an agent has one flow",
        ));
    }
    group.tcp.given.class = Some(Some(AGENT.to_owned()));
    group.tcp.params = group.tcp.given.params();
    Ok(rate)
}

fn no_place(key: &str, what: &str, known: Vec<String>) -> ParamError {
    let accepted = match known.is_empty() {
        true => format!("an experiment with a {what}"),
        false => known.join(", "),
    };
    ParamError::new(
        key.to_owned(),
        format!("is no {what} of the experiment"),
        accepted,
    )
}
