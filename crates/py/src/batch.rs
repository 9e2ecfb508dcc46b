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
    CancelToken, Cancelled, RunResult, plugin_failed, plugins, py_bytes, py_table, require_tables,
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
            Self::Run(RunError::Plugin(failure)) => plugin_failed(py, &failure),
            Self::Run(error @ RunError::OfKernel(..)) => {
                crate::SpecError::new_err(error.to_string())
            }
            Self::Run(error) => Cancelled::new_err(error.to_string()),
            Self::Panic(payload) => {
                let text = payload.downcast_ref::<&str>().copied();
                let text = text.or(payload.downcast_ref::<String>().map(String::as_str));
                PanicException::new_err(text.unwrap_or("it panicked").to_owned())
            }
        }
    }
}

/// The results of runs in columns.
#[derive(Default)]
struct Gathered {
    /// The places of the runs among all.
    places: Vec<usize>,
    columns: RunColumns,
    flows: Joined<FlowRows>,
    histograms: Joined<HistogramRows>,
}

impl Gathered {
    /// Adds the run at a place, with or without the table of its flows.
    fn push(&mut self, place: usize, result: &redtail_sim::RunResult, with_flows: bool) {
        self.places.push(place);
        self.columns.push(result);
        let flows = result.flows.as_ref();
        let flows = flows.filter(|flows| with_flows && !flows.flow.is_empty());
        self.flows
            .push(flows.map(|flows| (flows, &result.groups[..])));
        let found = &result.histograms;
        let found = (!found.names.is_empty()).then_some((&found.rows, &found.names[..]));
        self.histograms.push(found);
    }
}

/// Whether a result has tables that are too large for a column: series, transfers, response times.
fn has_series(result: &redtail_sim::RunResult) -> bool {
    result.queue_series.is_some()
        || result.flow_series.is_some()
        || result.group_series.is_some()
        || result.event_log.is_some()
        || !result.transfers.flow.is_empty()
        || !result.response_times.group.is_empty()
}

/// What runs have measured, in their order.
#[pyclass(frozen)]
pub struct Batch {
    /// `None` for a run that is in `gathered`.
    results: Vec<Option<Arc<redtail_sim::RunResult>>>,
    /// The runs without series, if they were asked for in columns alone.
    gathered: Option<Gathered>,
    has_series: Vec<bool>,
    bottleneck_packets: Vec<u64>,
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

    /// The result of one run, unless it is in columns alone.
    fn result(&self, index: usize) -> PyResult<RunResult> {
        let found = self.results.get(index).cloned().flatten().map(RunResult);
        found.ok_or_else(|| PyIndexError::new_err("no run with this index has a result of its own"))
    }

    /// How long each run took, in seconds.
    #[getter]
    fn wall_time_s(&self) -> Vec<f64> {
        self.wall_time_s.clone()
    }

    /// The packets that each run sent over the first bottleneck.
    #[getter]
    fn bottleneck_packets(&self) -> Vec<u64> {
        self.bottleneck_packets.clone()
    }

    /// Whether each run has tables that are too large for a column: series, transfers, response times.
    #[getter]
    fn has_series(&self) -> Vec<bool> {
        self.has_series.clone()
    }

    /// What some of the runs have measured, in columns. With `flows`, one value for each of them, it has the flows
    /// of those for which this is true. Runs that are in columns alone are given all at once, with the flows that
    /// their scenarios ask for.
    fn rows<'py>(
        &self,
        py: Python<'py>,
        indices: Vec<usize>,
        flows: Vec<bool>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let made;
        let gathered = match &self.gathered {
            Some(gathered) if gathered.places == indices => gathered,
            Some(_) => {
                return Err(PyIndexError::new_err(
                    "the runs in columns are given all at once",
                ));
            }
            None => {
                made = self.gather(&indices, &flows)?;
                &made
            }
        };
        let columns = &gathered.columns;
        let wall_time_s: Vec<_> = indices.iter().map(|&at| self.wall_time_s[at]).collect();

        let rows = PyDict::new(py);
        let shapes = columns.shapes.iter();
        let shapes: Vec<_> = shapes.map(|shape| (&shape.metrics, &shape.links)).collect();
        rows.set_item("shapes", shapes)?;
        rows.set_item("shape", &columns.shape)?;
        rows.set_item("numbers", py_bytes(py, &columns.numbers, f64::to_le_bytes)?)?;
        rows.set_item("losses", &columns.losses)?;
        rows.set_item("wall_time_s", wall_time_s)?;
        rows.set_item("bottleneck_packets", &columns.bottleneck_packets)?;
        rows.set_item("events", &columns.events)?;

        let found = PyDict::new(py);
        let flows = &gathered.flows;
        joined_table(&found, "flows", flows, flows.rows.columns())?;
        let histograms = &gathered.histograms;
        joined_table(&found, "histograms", histograms, histograms.rows.columns())?;
        rows.set_item("tables", found)?;
        Ok(rows)
    }
}

impl Batch {
    /// Adds a run.
    fn keep(&mut self, result: redtail_sim::RunResult, with_flows: bool) {
        let series = has_series(&result);
        self.has_series.push(series);
        self.bottleneck_packets.push(result.bottleneck_packets);
        let place = self.results.len();
        self.results.push(match &mut self.gathered {
            Some(gathered) if !series => {
                gathered.push(place, &result, with_flows);
                None
            }
            _ => Some(Arc::new(result)),
        });
    }

    /// Puts the results of these runs into columns; for each, `flows` says whether with its flows.
    fn gather(&self, indices: &[usize], flows: &[bool]) -> PyResult<Gathered> {
        let mut gathered = Gathered::default();
        for (&index, &with_flows) in indices.iter().zip(flows) {
            let result = self.results.get(index).and_then(Option::as_ref);
            let result = result.ok_or_else(|| PyIndexError::new_err("no run has this index"))?;
            gathered.push(index, result, with_flows);
        }
        Ok(gathered)
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
/// `queues`, which have the names that the scenarios give them. `traces` are the tables of their groups. With
/// `columns`, runs without series are kept in columns alone: to put them there is cheapest while they are in this
/// thread's cache, and so is to free their memory.
#[pyfunction]
#[pyo3(signature = (scenarios, cancel=None, queues=None, traces=None, columns=false))]
pub fn run_many(
    py: Python<'_>,
    scenarios: Vec<PyBackedStr>,
    cancel: Option<Py<CancelToken>>,
    queues: Option<Bound<'_, PyDict>>,
    traces: Option<Vec<Py<trace::Trace>>>,
    columns: bool,
) -> PyResult<Batch> {
    let token = cancel.as_ref().map(|token| token.get());
    let cancel = token.map_or_else(Arc::default, |token| Arc::clone(&token.cancelled));
    let plugins = plugins(queues, &cancel)?;
    let traces = trace::traces(traces);

    let mut batch = Batch {
        results: Vec::with_capacity(scenarios.len()),
        gathered: columns.then(Gathered::default),
        has_series: Vec::with_capacity(scenarios.len()),
        bottleneck_packets: Vec::with_capacity(scenarios.len()),
        wall_time_s: Vec::with_capacity(scenarios.len()),
        failure: None,
    };
    let mut reader = ScenarioReader::default();
    let mut one = |text| -> Result<_, Failure> {
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
        let with_flows = scenario.keep_flows.is_some();
        // Nothing that a panic leaves behind is used again.
        let ran = catch_unwind(AssertUnwindSafe(|| redtail_sim::run(&scenario, options)));
        let result = ran.map_err(Failure::Panic)?.map_err(Failure::Run)?;
        Ok((result, with_flows))
    };
    let failure = py.detach(|| {
        scenarios.iter().find_map(|text| {
            let start = now();
            match one(text) {
                Ok((result, with_flows)) => {
                    batch.wall_time_s.push(start.elapsed().as_secs_f64());
                    batch.keep(result, with_flows);
                    None
                }
                Err(failure) => Some(failure),
            }
        })
    });
    batch.failure = failure.map(|failure| failure.raised(py));
    Ok(batch)
}

/// The time at which a run begins, of which its manifest tells how long it took.
#[expect(clippy::disallowed_methods, reason = "for the manifest only")]
fn now() -> Instant {
    Instant::now()
}
