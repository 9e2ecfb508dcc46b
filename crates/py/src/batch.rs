//! Runs of a batch: one call that holds no GIL, results in columns.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Instant;

use pyo3::exceptions::PyIndexError;
use pyo3::panic::PanicException;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use pyo3::types::PyDict;
use redtail_network::columns::{Joined, RunColumns};
use redtail_network::result::{Column, FlowRows, HistogramRows};
use redtail_sim::{RunError, RunOptions};
use redtail_spec::{ScenarioReader, SpecError};

use crate::{
    CancelToken, Cancelled, RunResult, plugins, py_bytes, py_table, queue_failed, require_tables,
    spec_error, trace,
};

/// Why a run of a batch has no result.
enum Failure {
    Scenario(SpecError),
    Python(PyErr),
    Run(RunError),
    /// A fault of redtail.
    Panic(Box<dyn Any + Send>),
}

impl Failure {
    fn raised(self, py: Python<'_>) -> PyErr {
        match self {
            Self::Scenario(error) => spec_error(py, &error),
            Self::Python(error) => error,
            Self::Run(RunError::Plugin(failure)) => queue_failed(py, &failure),
            Self::Run(error) => Cancelled::new_err(error.to_string()),
            Self::Panic(payload) => {
                let text = payload.downcast_ref::<&str>().copied();
                let text = text.or(payload.downcast_ref::<String>().map(String::as_str));
                PanicException::new_err(text.unwrap_or("it panicked").to_owned())
            }
        }
    }
}

/// What runs have measured, in their order.
#[pyclass(frozen)]
pub struct Batch {
    results: Vec<Arc<redtail_sim::RunResult>>,
    wall_time_s: Vec<f64>,
    failure: Option<PyErr>,
}

#[pymethods]
impl Batch {
    fn __len__(&self) -> usize {
        self.results.len()
    }

    /// Why the run after these, if there was one, has no result.
    #[getter]
    fn failure<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyAny>> {
        let failure = self.failure.as_ref()?;
        Some(failure.value(py).clone().into_any())
    }

    /// The result of one run.
    fn result(&self, index: usize) -> PyResult<RunResult> {
        let found = self.results.get(index).cloned().map(RunResult);
        found.ok_or_else(|| PyIndexError::new_err("no run has this index"))
    }

    /// How long each run took, in seconds.
    #[getter]
    fn wall_time_s(&self) -> Vec<f64> {
        self.wall_time_s.clone()
    }

    /// The packets that each run sent over the first bottleneck.
    #[getter]
    fn bottleneck_packets(&self) -> Vec<u64> {
        let results = self.results.iter();
        results.map(|result| result.bottleneck_packets).collect()
    }

    /// Whether each run has tables that are too large for a column: series, transfers, response times.
    #[getter]
    fn has_series(&self) -> Vec<bool> {
        self.results
            .iter()
            .map(|result| {
                result.queue_series.is_some()
                    || result.flow_series.is_some()
                    || result.group_series.is_some()
                    || !result.transfers.flow.is_empty()
                    || !result.response_times.group.is_empty()
            })
            .collect()
    }

    /// What some of the runs have measured, in columns. With `flows`, one value for each of them, it has the flows
    /// of those for which this is true.
    fn rows<'py>(
        &self,
        py: Python<'py>,
        indices: Vec<usize>,
        flows: Vec<bool>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let results = indices
            .iter()
            .map(|&index| self.results.get(index).map(|result| &**result))
            .collect::<Option<Vec<_>>>()
            .ok_or_else(|| PyIndexError::new_err("no run has this index"))?;
        let columns = RunColumns::of(results.iter().copied());
        let wall_time_s: Vec<_> = indices.iter().map(|&at| self.wall_time_s[at]).collect();

        let rows = PyDict::new(py);
        let shapes = columns.shapes.into_iter();
        let shapes: Vec<_> = shapes.map(|shape| (shape.metrics, shape.links)).collect();
        rows.set_item("shapes", shapes)?;
        rows.set_item("shape", columns.shape)?;
        rows.set_item("numbers", py_bytes(py, &columns.numbers, f64::to_le_bytes)?)?;
        rows.set_item("losses", columns.losses)?;
        rows.set_item("wall_time_s", wall_time_s)?;
        rows.set_item("bottleneck_packets", columns.bottleneck_packets)?;
        rows.set_item("events", columns.events)?;

        let found = PyDict::new(py);
        let asked = results.iter().zip(flows).map(|(result, asked)| {
            let flows = result.flows.as_ref().filter(|_| asked)?;
            (!flows.flow.is_empty()).then_some((flows, &result.groups[..]))
        });
        let joined = Joined::<FlowRows>::of(asked);
        joined_table(&found, "flows", &joined, joined.rows.columns())?;
        let histograms = results.iter().map(|result| {
            let found = &result.histograms;
            (!found.names.is_empty()).then_some((&found.rows, &found.names[..]))
        });
        let joined = Joined::<HistogramRows>::of(histograms);
        joined_table(&found, "histograms", &joined, joined.rows.columns())?;
        rows.set_item("tables", found)?;
        Ok(rows)
    }
}

/// Adds a table as its columns, the number of rows of each run, and the names that codes stand for; nothing when no run
/// has it.
fn joined_table<T>(
    tables: &Bound<'_, PyDict>,
    name: &str,
    joined: &Joined<T>,
    columns: Vec<(&'static str, Column<'_>)>,
) -> PyResult<()> {
    if joined.names.is_empty() {
        return Ok(());
    }
    let py = tables.py();
    let lengths = py_bytes(py, &joined.lengths, u32::to_le_bytes)?;
    tables.set_item(name, (py_table(py, columns)?, lengths, &joined.names))
}

/// Runs scenarios one after the other, up to the first that has no result. They are given as canonical texts; those
/// that differ in their replication alone are read once. The GIL is held only while a run calls the classes in
/// `queues`, which have the names that the scenarios give them. `traces` are the tables of their groups.
#[pyfunction]
#[pyo3(signature = (scenarios, cancel=None, queues=None, traces=None))]
pub fn run_many(
    py: Python<'_>,
    scenarios: Vec<PyBackedStr>,
    cancel: Option<Py<CancelToken>>,
    queues: Option<Bound<'_, PyDict>>,
    traces: Option<Vec<Py<trace::Trace>>>,
) -> PyResult<Batch> {
    let token = cancel.as_ref().map(|token| token.get());
    let cancel = token.map_or_else(Arc::default, |token| Arc::clone(&token.cancelled));
    let plugins = plugins(queues, &cancel)?;
    let traces = trace::traces(traces);

    let mut results = Vec::with_capacity(scenarios.len());
    let mut wall_time_s = Vec::with_capacity(scenarios.len());
    let mut reader = ScenarioReader::default();
    let mut one = |text| {
        let scenario = reader.read(text).map_err(Failure::Scenario)?;
        require_tables(&scenario, &traces).map_err(Failure::Python)?;
        let registered = token.map(|token| token.register(scenario.duration));
        let options = RunOptions {
            progress: registered.as_ref().map(|registered| &registered.run.now),
            traces: traces.clone(),
            plugins: plugins.clone(),
            cancel: Some(&cancel),
            ..RunOptions::default()
        };
        // Nothing that a panic leaves behind is used again.
        let ran = catch_unwind(AssertUnwindSafe(|| redtail_sim::run(&scenario, options)));
        ran.map_err(Failure::Panic)?.map_err(Failure::Run)
    };
    let failure = py.detach(|| {
        scenarios.iter().find_map(|text| {
            let start = now();
            match one(text) {
                Ok(result) => {
                    results.push(Arc::new(result));
                    wall_time_s.push(start.elapsed().as_secs_f64());
                    None
                }
                Err(failure) => Some(failure),
            }
        })
    });
    Ok(Batch {
        results,
        wall_time_s,
        failure: failure.map(|failure| failure.raised(py)),
    })
}

/// The time at which a run begins, of which its manifest tells how long it took.
#[expect(clippy::disallowed_methods, reason = "for the manifest only")]
fn now() -> Instant {
    Instant::now()
}
