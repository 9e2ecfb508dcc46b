//! Runs that an agent in Python steers.

use std::sync::{Mutex, MutexGuard, TryLockError};

use pyo3::buffer::PyBuffer;
use pyo3::exceptions::{PyIndexError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use redtail_core::Span;
use redtail_gym::{Episode, EpisodeError, Knob, Reward, Told};
use redtail_sim::RunError;
use redtail_spec::Scenario;

use crate::{
    Cancelled, RunResult, SpecError, param_failed, plugin_failed, quantity, require_tables,
    spec_error, trace,
};

/// Several runs, each with an agent in the same place, which go on together.
#[pyclass(frozen)]
pub struct Episodes {
    key: String,
    knob: Knob,
    interval: Span,
    reward: Reward,
    /// `None` before a run begins, and once its result is taken.
    episodes: Mutex<Vec<Option<Episode>>>,
}

fn run_failed(py: Python<'_>, error: RunError) -> PyErr {
    match error {
        RunError::Plugin(failure) => plugin_failed(py, &failure),
        RunError::OfKernel(..) => SpecError::new_err(error.to_string()),
        error => Cancelled::new_err(error.to_string()),
    }
}

fn no_run() -> PyErr {
    PyIndexError::new_err("no run has this index")
}

impl Episodes {
    /// The runs. A thread that waited for another one's step would hold the interpreter, which that one needs at its end.
    fn lock(&self) -> PyResult<MutexGuard<'_, Vec<Option<Episode>>>> {
        match self.episodes.try_lock() {
            Ok(episodes) => Ok(episodes),
            Err(TryLockError::Poisoned(episodes)) => Ok(episodes.into_inner()),
            Err(TryLockError::WouldBlock) => Err(PyRuntimeError::new_err(
                "another thread uses this environment; accepted: one thread at a time",
            )),
        }
    }
}

impl Episodes {
    fn check_actions(&self, actions: &[f64], count: usize) -> PyResult<()> {
        if actions.len() != count {
            let numbers = actions.len();
            let text = format!("action has {numbers} numbers; accepted: {count}");
            return Err(PyValueError::new_err(text));
        }
        let (low, high) = self.knob.bounds();
        match actions.iter().find(|it| !(low..=high).contains(it)) {
            None => Ok(()),
            Some(wrong) => Err(PyValueError::new_err(format!(
                "action {wrong}; accepted: numbers from {low} to {high}"
            ))),
        }
    }
}

#[pymethods]
impl Episodes {
    /// Room for `count` runs. `key` is the agent's place, a dotted key of the experiment; `knob` is "drop", "mark",
    /// "window" or "rate"; a step takes `interval`, a time with its unit. The others are of the reward.
    #[new]
    fn new(
        count: usize,
        key: String,
        knob: &str,
        interval: &str,
        target_s: f64,
        delay_weight: f64,
        loss_weight: f64,
    ) -> PyResult<Self> {
        let knob = match knob {
            "drop" => Knob::Probability { mark: false },
            "mark" => Knob::Probability { mark: true },
            "window" => Knob::Window,
            "rate" => Knob::Rate,
            _ => return Err(PyValueError::new_err("there is no such knob")),
        };
        let interval: Span = quantity("interval", interval)?;
        if interval == Span::ZERO {
            let problem = "interval = \"0 s\" is no time; accepted: more than zero";
            return Err(SpecError::new_err(problem));
        }
        let none = std::iter::repeat_with(|| None);
        Ok(Self {
            key,
            knob,
            interval,
            reward: Reward {
                target: target_s,
                delay_weight,
                loss_weight,
            },
            episodes: Mutex::new(none.take(count).collect()),
        })
    }

    /// What is measured in a step: the name and the meaning of each number, in their order.
    #[getter]
    fn measures(&self) -> Vec<(&'static str, &'static str)> {
        let measures = self.knob.measures().iter();
        measures.map(|it| (it.name, it.meaning)).collect()
    }

    /// What is observed: the meaning and the bounds of each number, in their order. Infinite bounds stand for the duration of
    /// the run, in seconds.
    #[getter]
    fn observed(&self) -> Vec<(&'static str, f64, f64)> {
        let observed = self.knob.observed().iter();
        observed.map(|it| (it.meaning, it.low, it.high)).collect()
    }

    /// The least and the greatest action.
    #[getter]
    fn bounds(&self) -> (f64, f64) {
        self.knob.bounds()
    }

    /// Begins the run with this index: a scenario as JSON text, with another seed if one is given. Returns what was measured
    /// and what is observed before its first step.
    #[pyo3(signature = (index, scenario, seed=None, traces=None))]
    fn begin(
        &self,
        py: Python<'_>,
        index: usize,
        scenario: &str,
        seed: Option<u64>,
        traces: Option<Vec<Py<trace::Trace>>>,
    ) -> PyResult<(Vec<f64>, Vec<f32>)> {
        let mut scenario = Scenario::from_json(scenario).map_err(|error| spec_error(py, &error))?;
        scenario.seed = seed.unwrap_or(scenario.seed);
        let traces = trace::traces(traces);
        require_tables(&scenario, &traces)?;
        let (knob, interval, reward) = (self.knob, self.interval, self.reward);
        let made = Episode::new(scenario, traces, &self.key, knob, interval, reward);
        let episode = made.map_err(|error| match error {
            EpisodeError::Place(error) => param_failed(py, &error),
            EpisodeError::Run(error) => run_failed(py, error),
        })?;
        let mut measures = vec![0.0; knob.measures().len()];
        let mut observation = vec![0.0; knob.observed().len()];
        episode.begin(Told {
            measures: &mut measures,
            observation: &mut observation,
            reward: &mut 0.0,
        });
        *self.lock()?.get_mut(index).ok_or_else(no_run)? = Some(episode);
        Ok((measures, observation))
    }

    /// Each run that has begun and whose result has not been taken goes on by a step, with its number of `actions`. What
    /// its agent is told is written to its row of `measures` and of `observations` and its number of `rewards`. Returns the
    /// indices of the runs that are over.
    fn step(
        &self,
        py: Python<'_>,
        actions: PyBuffer<f64>,
        measures: PyBuffer<f64>,
        observations: PyBuffer<f32>,
        rewards: PyBuffer<f64>,
    ) -> PyResult<Vec<usize>> {
        let (width, seen) = (self.knob.measures().len(), self.knob.observed().len());
        let mut guard = self.lock()?;
        let episodes = &mut *guard;
        let count = episodes.len();
        let actions = actions.to_vec(py)?;
        self.check_actions(&actions, count)?;
        let mut rows = measures.to_vec(py)?;
        let mut observed = observations.to_vec(py)?;
        let mut rewarded = rewards.to_vec(py)?;
        if (rows.len(), observed.len(), rewarded.len()) != (count * width, count * seen, count) {
            return Err(PyValueError::new_err("arrays of other lengths"));
        }
        let stepped = py.detach(|| {
            let rows = rows.chunks_mut(width).zip(observed.chunks_mut(seen));
            let places = rows.zip(&mut rewarded).zip(actions).zip(episodes);
            let mut over = Vec::new();
            for (index, ((told, action), episode)) in places.enumerate() {
                let Some(episode) = episode else { continue };
                let ((measures, observation), reward) = told;
                let told = Told {
                    measures,
                    observation,
                    reward,
                };
                episode.step(action, told)?;
                if episode.is_over() {
                    over.push(index);
                }
            }
            Ok(over)
        });
        let over = stepped.map_err(|error| run_failed(py, error))?;
        measures.copy_from_slice(py, &rows)?;
        observations.copy_from_slice(py, &observed)?;
        rewards.copy_from_slice(py, &rewarded)?;
        Ok(over)
    }

    /// Takes the result of the run with this index, which is over.
    fn finish(&self, py: Python<'_>, index: usize) -> PyResult<RunResult> {
        let episode = self.lock()?.get_mut(index).and_then(Option::take);
        let episode = episode.ok_or_else(no_run)?;
        let result = py.detach(|| episode.finish());
        let result = result.map_err(|error| run_failed(py, error))?;
        Ok(RunResult(result.into()))
    }

    /// Ends all runs, without results.
    fn clear(&self) -> PyResult<()> {
        self.lock()?.fill_with(|| None);
        Ok(())
    }
}
