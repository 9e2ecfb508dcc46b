//! `redtail._native`: the Rust core for Python. Translation only: it must not decide anything.
//!
//! - this file: checking, running and describing experiments; `batch`: many runs in one call that holds no GIL
//! - `live`: the backend in real time, for the process that it runs in
//! - `gym`: runs that an agent steers
//! - `queue`: queues that are classes in Python; `trace`: tables of connections; `recordings`: captures
//!
//! `build.rs` makes the hash of the Rust sources that is part of the key of a stored run.

mod batch;
#[cfg(feature = "compiled-plug-ins")]
mod compiled;
mod controller;
mod gym;
#[cfg(target_os = "linux")]
mod live;
mod queue;
mod recordings;
mod trace;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pyo3::create_exception;
use pyo3::exceptions::{PyException, PyIndexError, PyKeyboardInterrupt, PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyDict};
use redtail_core::plugin::{Identity, PluginFailure, Role};
use redtail_core::{LargePages, ParamError, Rate, Span};
use redtail_network::result::{Column, ControllerSeries, FlowSeries, GroupSeries, QueueSeries};
use redtail_qdisc::QueueParams;
use redtail_qdisc::advise::Situated;
use redtail_sim::capture::{Capture, CaptureError, IpVersion, Point, PointsAndFile};
use redtail_sim::{Plugins, RunError, RunOptions, Traces};
use redtail_spec::{
    CalibratedUsers, EventKind, Format, PlanOptions, Scenario, TraceSite, no_endpoints,
    queue_from_json,
};
use redtail_traffic::access::Group;
use redtail_traffic::program::measure::reading::{self, Output};
use redtail_traffic::{ProgramParams, TakenFile, TraceParams, TrafficParams};
use redtail_transport::Preset;

#[global_allocator]
static ALLOCATOR: LargePages = LargePages;

create_exception!(
    _native,
    SpecError,
    PyValueError,
    "The experiment cannot be run; the text says where and why."
);
create_exception!(
    _native,
    Cancelled,
    PyException,
    "The run was cancelled before its end."
);

create_exception!(
    _native,
    PluginFailed,
    PyException,
    "A queue or a controller of the user's own failed; its exception, if it raised one, is the cause."
);

/// A plug-in's failure as Python raises it.
fn plugin_failed(py: Python<'_>, failure: &PluginFailure) -> PyErr {
    if failure
        .cause::<redtail_core::plugin::CancelledWithin>()
        .is_some()
    {
        return Cancelled::new_err("the run was cancelled");
    }
    let cause = failure.cause::<PyErr>().map(|error| error.clone_ref(py));
    if let Some(error) = &cause
        && error.is_instance_of::<PyKeyboardInterrupt>(py)
    {
        return error.clone_ref(py);
    }
    let raised = PluginFailed::new_err(failure.to_string());
    let value = raised.value(py);
    let attributes = value
        .setattr("class_name", &failure.class)
        .and_then(|()| value.setattr("role", failure.role.to_string()))
        .and_then(|()| value.setattr("method", failure.method))
        .and_then(|()| value.setattr("at", failure.at.map(|at| at.as_secs_f64())))
        .and_then(|()| value.setattr("problem", failure.problem()));
    raised.set_cause(py, cause);
    attributes.err().unwrap_or(raised)
}

fn spec_error(py: Python<'_>, error: &redtail_spec::SpecError) -> PyErr {
    let raised = SpecError::new_err(error.to_string());
    let value = raised.value(py);
    let attributes = value
        .setattr("file", error.file())
        .and_then(|()| value.setattr("line", error.line()))
        .and_then(|()| value.setattr("key", error.key()));
    attributes.err().unwrap_or(raised)
}

/// The error for a key of a queue.
fn param_failed(py: Python<'_>, error: &ParamError) -> PyErr {
    let raised = SpecError::new_err(format!(
        "{} {}; accepted: {}",
        error.key, error.problem, error.accepted
    ));
    let set = raised.value(py).setattr("key", &*error.key);
    set.err().unwrap_or(raised)
}

/// The queue in JSON text of the form `{KIND: {KEY: VALUE, ...}}`.
fn parsed_queue(py: Python<'_>, text: &str) -> PyResult<QueueParams> {
    let queue = serde_json::from_str(text)
        .and_then(queue_from_json)
        .map_err(|error| SpecError::new_err(format!("the queue {text} is none: {error}")))?;
    queue.check().map_err(|error| param_failed(py, &error))?;
    Ok(queue)
}

/// All keys of a queue with their values, defaults filled in, as JSON text; `queue` is JSON text of the form
/// `{KIND: {KEY: VALUE, ...}}`.
///
/// # Errors
/// `SpecError` when it is no queue.
#[pyfunction]
fn queue_keys(py: Python<'_>, queue: &str) -> PyResult<String> {
    let queue = parsed_queue(py, queue)?;
    Ok(serde_json::to_string(&queue).expect("parameters have a form"))
}

/// Stops runs that were started with it, and says how far they are.
#[pyclass(frozen)]
#[derive(Default)]
struct CancelToken {
    cancelled: Arc<AtomicBool>,
    running: Mutex<Vec<Arc<Running>>>,
}

/// A run in progress.
struct Running {
    /// The simulated time in picoseconds.
    now: AtomicU64,
    duration: Span,
}

/// A run in progress that its token knows until this is dropped.
struct Registered<'a> {
    token: &'a CancelToken,
    run: Arc<Running>,
}

impl CancelToken {
    fn register(&self, duration: Span) -> Registered<'_> {
        let run = Arc::new(Running {
            now: AtomicU64::new(0),
            duration,
        });
        self.lock().push(Arc::clone(&run));
        Registered { token: self, run }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Arc<Running>>> {
        // The list is whole even if another thread has panicked.
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Registered<'_> {
    fn drop(&mut self) {
        self.token
            .lock()
            .retain(|other| !Arc::ptr_eq(other, &self.run));
    }
}

#[pymethods]
impl CancelToken {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    /// Makes every run that uses this token raise `Cancelled` soon.
    fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }

    /// For each simulation in progress: the simulated time and its end, in seconds.
    fn running(&self) -> Vec<(f64, f64)> {
        let running = self.lock();
        let seconds = |run: &Arc<Running>| {
            let now = Span::from_ps(run.now.load(Ordering::Relaxed));
            (now.as_secs_f64(), run.duration.as_secs_f64())
        };
        running.iter().map(seconds).collect()
    }
}

/// A checked experiment, ready to run.
#[pyclass(frozen)]
struct Plan(redtail_spec::Plan);

#[pymethods]
impl Plan {
    #[getter]
    fn name(&self) -> &str {
        &self.0.name
    }

    #[getter]
    fn description(&self) -> Option<&str> {
        self.0.description.as_deref()
    }

    #[getter]
    fn replications(&self) -> u32 {
        self.0.replications
    }

    #[getter]
    fn backend(&self) -> Option<&str> {
        self.0.backend.as_deref()
    }

    /// What programs find in a virtual machine: the path of a root filesystem, and what is taken of this computer.
    #[getter]
    fn root(&self) -> (Option<&str>, Vec<String>) {
        let root = self.0.root.as_ref();
        let path = root.and_then(|it| it.root.as_deref());
        (path, root.map_or_else(Vec::new, |it| it.add.clone()))
    }

    /// Names of the metrics to show, which may have wildcards; empty when the file does not say.
    #[getter]
    fn report(&self) -> Vec<String> {
        self.0.report.clone()
    }

    /// The metrics that the file derives from others, as JSON text.
    #[getter]
    fn derived(&self) -> String {
        let each = self.0.derived.iter().map(|derived| {
            serde_json::json!({
                "name": derived.name,
                "formula": derived.params.formula,
                "title": derived.params.title,
                "short": derived.params.short,
                "unit": derived.params.unit,
                "place": derived.place,
                "line": derived.line,
            })
        });
        serde_json::Value::Array(each.collect()).to_string()
    }

    /// What programs measure, as JSON text.
    #[getter]
    fn measures(&self) -> String {
        let measures = self.0.measures();
        let each = measures.iter().map(|(name, measure)| {
            serde_json::json!({
                "name": name,
                "unit": measure.unit,
                "title": measure.title,
                "text": measure.definition(),
            })
        });
        serde_json::Value::Array(each.collect()).to_string()
    }

    /// What the file expects of its results, as JSON text.
    #[getter]
    fn expected(&self) -> String {
        let each = self.0.expected.iter().map(|expected| {
            serde_json::json!({
                "name": expected.name,
                "holds": expected.params.holds,
                "cases": expected.params.cases,
                "of": expected.params.of,
                "source": expected.params.source,
                "place": expected.place,
                "line": expected.line,
            })
        });
        serde_json::Value::Array(each.collect()).to_string()
    }

    /// The stop rule as JSON text, when there is one.
    #[getter]
    fn stop(&self) -> Option<String> {
        let rule = self.0.stop.as_ref()?;
        let until = rule.until.iter().map(|bound| {
            serde_json::json!({
                "metric": bound.metric, "between": bound.between, "within": bound.within,
            })
        });
        let found = serde_json::json!({
            "until": serde_json::Value::Array(until.collect()),
            "at_least": rule.at_least,
            "at_most": rule.at_most,
        });
        Some(found.to_string())
    }

    /// About how many packets the first bottleneck sends in a run of a case.
    fn packets(&self, case_index: usize) -> Option<f64> {
        self.0.packets(case_index)
    }

    #[getter]
    fn seed(&self) -> u64 {
        self.0.seed
    }

    #[getter]
    fn warnings(&self) -> Vec<String> {
        self.0.warnings.clone()
    }

    #[getter]
    fn factors(&self) -> Vec<String> {
        self.0.factors.clone()
    }

    /// What the experiment amounts to, in a few lines.
    #[getter]
    fn outline(&self) -> Vec<String> {
        self.0.outline()
    }

    /// Queues of kind `plugin`: the name of each, the key of the first queue of that name, and where
    /// the experiment names it.
    #[getter]
    fn plugins(&self) -> Vec<(String, String, String)> {
        self.0.plugins.clone()
    }

    /// The cases as JSON text.
    #[getter]
    fn cases(&self) -> String {
        self.0.cases_json()
    }

    /// The canonical texts of runs, each given by its case and its replication; all numbers count from 0. `users` has
    /// the numbers of users of groups that are asked for by their load, for each case with such groups.
    #[pyo3(signature = (runs, users=CalibratedUsers::new()))]
    fn texts(&self, runs: Vec<(usize, u32)>, users: CalibratedUsers) -> PyResult<Vec<String>> {
        let texts = self.0.texts(&runs, &users);
        texts.ok_or_else(no_case)
    }

    /// The loads that groups of a case are asked for by, as JSON text.
    fn loads(&self, case_index: usize) -> String {
        let loads = self.0.loads(case_index);
        let loads = loads.iter().map(|load| {
            serde_json::json!({
                "group": load.group,
                "share": load.share,
                "text": load.text,
                "link": load.link,
                "metric": load.metric,
                "rate": load.rate.as_bps(),
                "speed_up": load.speed_up,
                "estimate": load.estimate,
            })
        });
        serde_json::Value::Array(loads.collect()).to_string()
    }

    /// The canonical text of a group alone, with so many users, on an unconstrained network.
    fn unconstrained(
        &self,
        case_index: usize,
        replication: u32,
        group: &str,
        users: u32,
    ) -> PyResult<String> {
        let scenario = self.of_case(case_index, replication)?;
        Ok(scenario.unconstrained(group, users).to_json())
    }
}

impl Plan {
    fn of_case(&self, case_index: usize, replication: u32) -> PyResult<Scenario> {
        let scenario = self.0.scenario(case_index, replication);
        scenario.ok_or_else(no_case)
    }
}

fn no_case() -> PyErr {
    PyIndexError::new_err("no case has this index")
}

/// Shows a plug-in to Python, which gives the hash of its source, nothing if it does not load the
/// class, or says what is wrong.
fn resolve_plugin(
    py: Python<'_>,
    resolve: &Bound<'_, PyAny>,
    role: Role,
    identity: &mut Identity,
) -> PyResult<Result<(), ParamError>> {
    let table = queue::params_dict(py, &identity.params)?;
    let answer = resolve.call1((&identity.class, table, role.to_string()))?;
    if answer.is_none() {
        return Ok(Ok(()));
    }
    let Ok(source) = answer.extract::<String>() else {
        let (key, problem, accepted) = queue::refusal(&answer)?;
        return Ok(Err(ParamError::new(key, problem, accepted)));
    };
    if let Some(given) = &identity.source
        && *given != source
    {
        return Ok(Err(ParamError::new(
            "source",
            format!(
                "is not the source of {:?}, which has changed",
                identity.class
            ),
            format!("{source:?}, or no such key"),
        )));
    }
    identity.source = Some(source);
    Ok(Ok(()))
}

/// Has Python find the files that a group of programs takes along; it gives them or says what is wrong.
fn take_files(
    programs: &Bound<'_, PyAny>,
    group: &ProgramParams,
) -> PyResult<Result<BTreeMap<String, TakenFile>, ParamError>> {
    let lines: Vec<&String> = group.server.iter().chain([&group.client]).collect();
    let answer = programs.call1((&group.name, lines, &group.files))?;
    let Ok(found) = answer.extract::<Vec<(String, String, bool)>>() else {
        let (key, problem, accepted) = queue::refusal(&answer)?;
        return Ok(Err(ParamError::new(key, problem, accepted)));
    };
    let each = found.into_iter().map(|(path, sha256, executable)| {
        let file = TakenFile { sha256, executable };
        (path, file)
    });
    Ok(Ok(each.collect()))
}

/// Has Python read a file; it gives the text or says what is wrong.
fn read_file(read: &Bound<'_, PyAny>, name: &str) -> PyResult<Result<String, String>> {
    let answer = read.call1((name,))?;
    if let Ok(text) = answer.extract::<String>() {
        return Ok(Ok(text));
    }
    let (problem, accepted): (String, String) = answer.extract()?;
    Ok(Err(format!("{problem}; accepted: {accepted}")))
}

/// Reads, checks and expands an experiment. `resolve` is called with the name, the parameters
/// and the role ("queue" or "controller") of every class of the user; it returns the hash of its source, `None` to leave it as it is, or
/// what is wrong with it: the key, the problem and what is accepted. `read` is called with the name of every file that it
/// names, a trace of rates; it returns the text, or the problem and what is accepted. `tables` is
/// called for every group of kind `trace`, with its file, the duration and the round-trip time of
/// the links in picoseconds, and whether there are links both ways; it returns a `Trace`, or what is
/// wrong in the form that `resolve` has. `programs` is called for every group of kind `program`, with its name, its
/// command lines and its `files`; it returns path, SHA-256 and whether it may be executed of each file, or what is wrong
/// in the form that `resolve` has.
#[pyfunction]
#[pyo3(signature = (text, file=None, sets=Vec::new(), format="toml", resolve=None, read=None, tables=None, programs=None))]
#[allow(clippy::too_many_arguments)] // Python gives them by name
fn plan(
    py: Python<'_>,
    text: &str,
    file: Option<&str>,
    sets: Vec<String>,
    format: &str,
    resolve: Option<Bound<'_, PyAny>>,
    read: Option<Bound<'_, PyAny>>,
    tables: Option<Bound<'_, PyAny>>,
    programs: Option<Bound<'_, PyAny>>,
) -> PyResult<Plan> {
    let format = match format {
        "toml" => Format::Toml,
        "json" => Format::Json,
        _ => return Err(PyValueError::new_err("format is \"toml\" or \"json\"")),
    };
    let mut unread = None;
    let mut give = |name: &str| {
        let Some(read) = &read else {
            return Err("cannot be read: nothing reads files".to_owned());
        };
        read_file(read, name).unwrap_or_else(|error| {
            let clause = error.to_string();
            unread.get_or_insert(error);
            Err(clause)
        })
    };
    let raised = RefCell::new(None);
    let mut visit = |role: Role, identity: &mut Identity| {
        if role == Role::Endpoint {
            return Err(no_endpoints());
        }
        let Some(resolve) = &resolve else {
            return Ok(());
        };
        resolve_plugin(py, resolve, role, identity).unwrap_or_else(|error| {
            let refusal = ParamError::new("class", error.to_string(), "another one");
            raised.borrow_mut().get_or_insert(error);
            Err(refusal)
        })
    };
    let mut find = |group: &TraceParams, site: &TraceSite| {
        let Some(tables) = &tables else {
            return Err(ParamError::new("file", "names a table", "no such group"));
        };
        trace::resolve(tables, group, site).unwrap_or_else(|error| {
            let refusal = ParamError::new("file", error.to_string(), "another one");
            raised.borrow_mut().get_or_insert(error);
            Err(refusal)
        })
    };
    let mut take = |group: &ProgramParams| {
        let Some(programs) = &programs else {
            return Err(ParamError::new("kind", "runs programs", "no such group"));
        };
        take_files(programs, group).unwrap_or_else(|error| {
            let refusal = ParamError::new("files", error.to_string(), "others");
            raised.borrow_mut().get_or_insert(error);
            Err(refusal)
        })
    };
    let options = PlanOptions {
        format,
        file,
        sets: &sets,
        plugins: Some(&mut visit),
        files: Some(&mut give),
        tables: Some(&mut find),
        programs: Some(&mut take),
    };
    let plan = redtail_spec::Plan::from_text(text, options);
    match raised.into_inner().or(unread) {
        Some(error) => Err(error),
        None => plan.map(Plan).map_err(|error| spec_error(py, &error)),
    }
}

/// A column of a table: its type and its values, little-endian.
type PyColumn<'py> = (&'static str, Bound<'py, PyBytes>);

fn py_column<'py>(py: Python<'py>, column: Column<'_>) -> PyResult<PyColumn<'py>> {
    Ok(match column {
        Column::F64(values) => ("f64", py_bytes(py, values, f64::to_le_bytes)?),
        Column::U32(values) => ("u32", py_bytes(py, values, u32::to_le_bytes)?),
        Column::U64(values) => ("u64", py_bytes(py, values, u64::to_le_bytes)?),
    })
}

/// The bytes of all values, written in place: campaigns make some kilobytes a run.
fn py_bytes<'py, T: Copy, const N: usize>(
    py: Python<'py>,
    values: &[T],
    bytes: impl Fn(T) -> [u8; N],
) -> PyResult<Bound<'py, PyBytes>> {
    PyBytes::new_with(py, N * values.len(), |all| {
        for (part, value) in all.as_chunks_mut().0.iter_mut().zip(values) {
            *part = bytes(*value);
        }
        Ok(())
    })
}

/// A table by its columns.
fn py_table<'py>(
    py: Python<'py>,
    columns: Vec<(&'static str, Column<'_>)>,
) -> PyResult<Bound<'py, PyDict>> {
    let table = PyDict::new(py);
    for (name, column) in columns {
        table.set_item(name, py_column(py, column)?)?;
    }
    Ok(table)
}

/// The result of one run.
#[pyclass(frozen)]
struct RunResult(Arc<redtail_sim::RunResult>);

#[pymethods]
impl RunResult {
    #[getter]
    fn metrics<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let metrics = PyDict::new(py);
        for (name, value) in &self.0.metrics {
            metrics.set_item(name, value)?;
        }
        Ok(metrics)
    }

    #[getter]
    fn consecutive_losses<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let losses = PyDict::new(py);
        for (link, counts) in self.0.links.iter().zip(&self.0.consecutive_losses) {
            losses.set_item(link, counts)?;
        }
        Ok(losses)
    }

    #[getter]
    fn series<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let series = PyDict::new(py);
        let result = &self.0;
        let samples = [
            (
                "queues",
                result.queue_series.as_ref().map(QueueSeries::columns),
            ),
            (
                "flows",
                result.flow_series.as_ref().map(FlowSeries::columns),
            ),
            (
                "controllers",
                (result.controller_series.as_ref()).map(ControllerSeries::columns),
            ),
            (
                "groups",
                result.group_series.as_ref().map(GroupSeries::columns),
            ),
        ];
        for (name, columns) in samples {
            if let Some(columns) = columns {
                series.set_item(name, py_table(py, columns)?)?;
            }
        }
        if let Some(log) = &result.event_log {
            series.set_item("events", py_table(py, log.rows.columns())?)?;
        }
        if !result.transfers.flow.is_empty() {
            series.set_item("transfers", py_table(py, result.transfers.columns())?)?;
        }
        let rows = &result.response_times;
        if !rows.group.is_empty() {
            series.set_item("response_times", py_table(py, rows.columns())?)?;
        }
        Ok(series)
    }

    /// The tables of flows and of histograms, if there are any.
    #[getter]
    fn tables<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let tables = PyDict::new(py);
        if let Some(flows) = &self.0.flows
            && !flows.flow.is_empty()
        {
            tables.set_item("flows", py_table(py, flows.columns())?)?;
        }
        let histograms = &self.0.histograms;
        if !histograms.names.is_empty() {
            tables.set_item("histograms", py_table(py, histograms.rows.columns())?)?;
        }
        Ok(tables)
    }

    #[getter]
    fn names<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let names = PyDict::new(py);
        names.set_item("links", &self.0.links)?;
        names.set_item("groups", &self.0.groups)?;
        names.set_item("states", &self.0.states)?;
        names.set_item("figures", &self.0.figures)?;
        if let Some(log) = &self.0.event_log {
            let kinds = EventKind::ALL.iter().map(|kind| kind.meaning().name);
            names.set_item("events", kinds.collect::<Vec<_>>())?;
            names.set_item("reasons", &log.reasons)?;
        }
        names.set_item("distributions", &self.0.histograms.names)?;
        Ok(names)
    }

    #[getter]
    fn bottleneck_packets(&self) -> u64 {
        self.0.bottleneck_packets
    }

    #[getter]
    fn events(&self) -> u64 {
        self.0.events
    }
}

/// The plug-ins that these classes stand for.
fn plugins(queues: Option<Bound<'_, PyDict>>, cancel: &Arc<AtomicBool>) -> PyResult<Plugins> {
    queues.map_or_else(
        || Ok(Plugins::new()),
        |queues| queue::plugins(&queues, cancel),
    )
}

/// Refuses a scenario whose tables are not all among these.
fn require_tables(scenario: &Scenario, traces: &Traces) -> PyResult<()> {
    for group in &scenario.traffic {
        if let TrafficParams::Trace(group) = group
            && traces.get(&group.file).is_none()
        {
            let (name, file) = (&group.name, &group.file);
            let text = format!("traffic.{name}: the run was started without the table {file}");
            return Err(SpecError::new_err(text));
        }
    }
    Ok(())
}

/// As Python raises it, with the file's name.
fn os_error(error: &io::Error, path: &Path) -> PyErr {
    match error.raw_os_error() {
        Some(number) => {
            let name = path.to_string_lossy().into_owned();
            PyOSError::new_err((number, error.to_string(), name))
        }
        None => PyOSError::new_err(format!("{}: {error}", path.display())),
    }
}

/// The files of a capture, each with the points whose packets it gets.
fn capture_files(points: Vec<(String, PathBuf)>) -> PyResult<Vec<(PathBuf, Vec<Point>)>> {
    let mut files: Vec<(PathBuf, Vec<Point>)> = Vec::new();
    for (point, path) in points {
        let point: Point = point.parse().map_err(SpecError::new_err)?;
        match files.iter_mut().find(|(known, _)| *known == path) {
            Some((_, points)) => points.push(point),
            None => files.push((path, vec![point])),
        }
    }
    Ok(files)
}

/// Creates files for captured packets.
fn open_files(files: &[(PathBuf, Vec<Point>)]) -> PyResult<Vec<PointsAndFile<'static>>> {
    let open = |(path, points): &(PathBuf, Vec<Point>)| {
        let file = File::create(path).map_err(|error| os_error(&error, path))?;
        let out: Box<dyn Write + Send> = Box::new(BufWriter::new(file));
        Ok((points.clone(), out))
    };
    files.iter().map(open).collect()
}

/// The error of a capture into these files.
fn capture_failed(error: &CaptureError, files: &[(PathBuf, Vec<Point>)]) -> PyErr {
    match error {
        CaptureError::Impossible(text) => SpecError::new_err(text.clone()),
        CaptureError::Io { file, error } => os_error(error, &files[*file].0),
    }
}

/// A capture into these files, which are created.
fn capture(ip: u8, files: &[(PathBuf, Vec<Point>)]) -> PyResult<Capture<'static>> {
    let mut capture = Capture {
        ip: match ip {
            4 => IpVersion::V4,
            6 => IpVersion::V6,
            _ => return Err(SpecError::new_err("the version of IP is 4 or 6")),
        },
        ..Capture::default()
    };
    capture.files = open_files(files)?;
    Ok(capture)
}

/// Runs one scenario, as `run_many` does, and captures packets.
///
/// `points` are pairs of a point ("LINK", "LINK:in" or "LINK:out") and the file for its packets; points with the same
/// file share it. `ip` is the version of IP in the capture, 4 or 6.
#[pyfunction]
#[pyo3(signature = (scenario_json, points, ip=4, cancel=None, queues=None, traces=None))]
fn run_captured(
    py: Python<'_>,
    scenario_json: &str,
    points: Vec<(String, PathBuf)>,
    ip: u8,
    cancel: Option<Py<CancelToken>>,
    queues: Option<Bound<'_, PyDict>>,
    traces: Option<Vec<Py<trace::Trace>>>,
) -> PyResult<RunResult> {
    let scenario = Scenario::from_json(scenario_json).map_err(|error| spec_error(py, &error))?;
    let traces = trace::traces(traces);
    require_tables(&scenario, &traces)?;
    let files = capture_files(points)?;
    let token = cancel.as_ref().map(|token| token.get());
    let cancel = token.map_or_else(Arc::default, |token| Arc::clone(&token.cancelled));
    let registered = token.map(|token| token.register(scenario.duration));
    let options = RunOptions {
        progress: registered.as_ref().map(|registered| &registered.run.now),
        capture: Some(capture(ip, &files)?),
        traces,
        plugins: plugins(queues, &cancel)?,
        cancel: Some(&cancel),
        ..RunOptions::default()
    };
    let result = py.detach(|| redtail_sim::run(&scenario, options));
    let result = result.map_err(|error| match error {
        RunError::Cancelled => Cancelled::new_err("the run was cancelled"),
        RunError::Plugin(failure) => plugin_failed(py, &failure),
        RunError::Capture(error) => capture_failed(&error, &files),
        RunError::OfKernel(..) => SpecError::new_err(error.to_string()),
    })?;
    Ok(RunResult(Arc::new(result)))
}

/// The congestion controls of a kernel that a scenario asks for: the key of each, and the name.
///
/// # Errors
/// `SpecError` when the text is no scenario.
#[pyfunction]
fn kernel_controls(py: Python<'_>, scenario: &str) -> PyResult<Vec<(String, String)>> {
    let scenario = Scenario::from_json(scenario).map_err(|error| spec_error(py, &error))?;
    let found = scenario.kernel_controls().into_iter();
    Ok(found.map(|(key, name)| (key, name.to_owned())).collect())
}

/// The rates of a link of a scenario, by its name in results: each with the time, in seconds, from which the link has
/// it. `None` for a link with a trace and for a name that no link has.
#[pyfunction]
fn rate_steps(py: Python<'_>, scenario: &str, link: &str) -> PyResult<Option<Vec<(f64, u64)>>> {
    let scenario = Scenario::from_json(scenario).map_err(|error| spec_error(py, &error))?;
    let links = scenario.topology.links();
    let found = links
        .iter()
        .find(|(_, _, hop, direction)| scenario.topology.link_name(*hop, *direction) == link);
    Ok(found
        .filter(|(_, params, ..)| params.rate_trace.is_none())
        .map(|(_, params, hop, direction)| {
            let steps = scenario.rate_steps(*hop, *direction, params).into_iter();
            steps
                .map(|(at, rate)| (at.as_secs_f64(), rate.as_bps()))
                .collect()
        }))
}

/// The line of an experiment that gives a key; `None` without one, as in a text that is not TOML.
#[pyfunction]
fn line_of(text: &str, key: &str) -> Option<u32> {
    redtail_spec::line_of(text, key)
}

/// The JSON schema of the experiment file.
#[pyfunction]
fn schema() -> String {
    redtail_spec::schema().to_string()
}

/// What a user probably meant by a word, as the end of a message; empty if nothing is like it.
#[pyfunction]
fn hint(word: &str, known: Vec<String>) -> String {
    let known: Vec<_> = known.iter().map(String::as_str).collect();
    redtail_spec::hint(word, &known)
}

/// The units that an experiment can give for its own metrics, as JSON text.
#[pyfunction]
fn units() -> String {
    let all = redtail_core::metric::UNITS
        .into_iter()
        .map(|(word, units)| {
            serde_json::json!({
                "word": word,
                "unit": units.unit,
                "suffix": units.suffix,
                "scale": units.scale,
                "shown_unit": units.shown_unit,
            })
        });
    serde_json::Value::Array(all.collect()).to_string()
}

/// What a program of a group left: group, pair, whether it is the server, what it printed, whether it printed more,
/// its files, and the names of files that are not kept.
type Left = (
    String,
    u32,
    bool,
    PyBackedBytes,
    bool,
    Vec<(String, PyBackedBytes)>,
    Vec<String>,
);

/// What the programs of a scenario's groups measured, by the names of the metrics.
#[pyfunction]
fn program_measures(
    py: Python<'_>,
    scenario: &str,
    left: Vec<Left>,
) -> PyResult<Vec<(String, f64)>> {
    let scenario = Scenario::from_json(scenario).map_err(|error| spec_error(py, &error))?;
    py.detach(|| measures_of(&scenario, &left))
        .map_err(PyValueError::new_err)
}

fn measures_of(scenario: &Scenario, left: &[Left]) -> Result<Vec<(String, f64)>, String> {
    let mut found = Vec::new();
    for group in scenario.traffic.iter().filter_map(TrafficParams::programs) {
        let of_group = left.iter().filter(|(name, ..)| *name == group.name);
        let outputs: Vec<_> = of_group
            .map(|(_, flow, server, printed, cut, files, left_out)| Output {
                flow: *flow,
                server: *server,
                printed,
                cut: *cut,
                files: files
                    .iter()
                    .map(|(name, bytes)| (&**name, &**bytes))
                    .collect(),
                left_out: left_out.iter().map(String::as_str).collect(),
            })
            .collect();
        let pairs = Group::access(group).flows;
        let told = reading::read(&group.name, pairs, &group.measure, &outputs);
        found.extend(told?);
    }
    Ok(found)
}

/// The definitions of all metrics, as JSON text.
#[pyfunction]
fn metrics() -> String {
    let all = redtail_sim::metrics::catalog().into_iter().map(|listed| {
        let (metric, units) = (listed.metric, listed.metric.shown.units());
        serde_json::json!({
            "name": metric.name,
            "title": metric.title,
            "short": metric.short,
            "unit": units.unit,
            "suffix": units.suffix,
            "scale": units.scale,
            "shown_unit": units.shown_unit,
            "measure": metric.shown.words(),
            "form": metric.scope.form(metric.name),
            "scope": metric.scope.words(),
            "phases": metric.scope.in_phases(),
            "of": listed.of,
            "definition": metric.definition,
        })
    });
    serde_json::Value::Array(all.collect()).to_string()
}

/// What each kind of events of a log means, as JSON text.
#[pyfunction]
fn event_kinds() -> String {
    let all = EventKind::ALL.iter().map(|kind| {
        let about = kind.meaning();
        let reasons = about.reasons.iter();
        let reasons =
            reasons.map(|(name, why)| serde_json::json!({ "name": name, "meaning": why }));
        serde_json::json!({
            "name": about.name,
            "of": about.of,
            "meaning": about.meaning.trim(),
            "value": about.value,
            "reasons": reasons.collect::<Vec<_>>(),
            "only_when_named": about.only_when_named,
        })
    });
    serde_json::Value::Array(all.collect()).to_string()
}

/// Names of metrics, each with the place of its definition; and beginnings of names that are free.
type MetricNames = (Vec<(String, usize)>, Vec<String>);

/// The names of the metrics that runs of a scenario can have, each with the place of its definition
/// among those of `metrics`; and what stands in front of names that queues of users choose.
#[pyfunction]
fn metric_names(py: Python<'_>, scenario: &str) -> PyResult<MetricNames> {
    let scenario = Scenario::from_json(scenario).map_err(|error| spec_error(py, &error))?;
    let names = redtail_sim::metrics::names(&scenario);
    let free = names.open.clone();
    Ok((names.places(), free))
}

/// What each TCP preset sets, as JSON text.
#[pyfunction]
fn presets() -> String {
    let presets = Preset::ALL.iter().map(|preset| {
        let name = serde_json::to_value(preset).expect("a preset has a name");
        let name = name
            .as_str()
            .expect("a preset's name is a string")
            .to_owned();
        let params = serde_json::to_value(preset.params()).expect("parameters have a text form");
        (name, params)
    });
    serde_json::Value::Object(presets.collect()).to_string()
}

/// Every kind of traffic, with the keys of a small group of it as an experiment file has them.
#[pyfunction]
fn traffic_examples() -> Vec<(&'static str, &'static str)> {
    TrafficParams::examples()
}

/// Every kind of queue, with the keys of a small queue of it as an experiment file has them.
#[pyfunction]
fn queue_examples() -> Vec<(&'static str, &'static str)> {
    QueueParams::examples()
}

/// Reads one quantity of the situation that advice is asked for.
fn quantity<T: FromStr<Err: std::fmt::Display>>(key: &str, text: &str) -> PyResult<T> {
    text.parse()
        .map_err(|error| SpecError::new_err(format!("{key} = \"{text}\": {error}")))
}

/// A rate in bit/s from its text; `key` is for the message.
#[pyfunction]
fn rate_bps(key: &str, text: &str) -> PyResult<u64> {
    Ok(quantity::<Rate>(key, text)?.as_bps())
}

/// A time in s from its text; `key` is for the message.
#[pyfunction]
fn time_s(key: &str, text: &str) -> PyResult<f64> {
    Ok(quantity::<Span>(key, text)?.as_secs_f64())
}

/// The value of a quantity of any dimension in its SI unit, and this unit.
#[pyfunction]
fn si_value(text: &str) -> PyResult<(f64, &'static str)> {
    redtail_core::units::si_value(text).map_err(|error| SpecError::new_err(error.to_string()))
}

/// Parameters for a queue, as JSON text; quantities are texts with units.
#[pyfunction]
#[pyo3(signature = (queue, rate, rtt, rtt_max, flows, packet, delayed_acks, udp_rate, udp_packet))]
#[allow(clippy::too_many_arguments)] // Python gives them by name
fn advise(
    py: Python<'_>,
    queue: &str,
    rate: &str,
    rtt: &str,
    rtt_max: &str,
    flows: u64,
    packet: &str,
    delayed_acks: bool,
    udp_rate: &str,
    udp_packet: &str,
) -> PyResult<String> {
    let situated = Situated {
        rate: quantity("rate", rate)?,
        rtt: quantity("rtt", rtt)?,
        rtt_max: quantity("rtt_max", rtt_max)?,
        flows,
        packet: quantity("packet", packet)?,
        delayed_acks,
        udp_rate: quantity("udp_rate", udp_rate)?,
        udp_packet: quantity("udp_packet", udp_packet)?,
    };
    match redtail_qdisc::advise::advise(queue, &situated) {
        Ok(advice) => Ok(serde_json::to_string(&advice).expect("advice has a text form")),
        Err(error) => {
            let flows = flows.to_string();
            let given = [
                ("queue", queue),
                ("rate", rate),
                ("rtt", rtt),
                ("rtt_max", rtt_max),
                ("flows", &flows),
                ("packet", packet),
                ("udp_rate", udp_rate),
                ("udp_packet", udp_packet),
            ];
            let key = &*error.key;
            let value = given.iter().find(|(name, _)| *name == key);
            let value = value.map_or("", |(_, value)| value);
            let (problem, accepted) = (&error.problem, &error.accepted);
            let quote = if key == "flows" { "" } else { "\"" };
            let hint = match key {
                "queue" => redtail_spec::hint(value, &redtail_qdisc::advise::KINDS),
                _ => String::new(),
            };
            let raised = SpecError::new_err(format!(
                "{key} = {quote}{value}{quote} {problem}; accepted: {accepted}{hint}"
            ));
            raised.value(py).setattr("key", key)?;
            Err(raised)
        }
    }
}

/// A hash over the Rust sources this module was built from.
#[pyfunction]
fn code_version() -> &'static str {
    env!("REDTAIL_CODE_VERSION")
}

/// The version of redtail.
#[pyfunction]
fn version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}

#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add("SpecError", py.get_type::<SpecError>())?;
    module.add("Cancelled", py.get_type::<Cancelled>())?;
    module.add("PluginFailed", py.get_type::<PluginFailed>())?;
    module.add_class::<CancelToken>()?;
    module.add_class::<queue::Packet>()?;
    module.add_class::<queue::QueueContext>()?;
    #[cfg(feature = "compiled-plug-ins")]
    module.add_class::<compiled::Compiled>()?;
    module.add_class::<controller::ControllerContext>()?;
    module.add_class::<controller::RateSample>()?;
    module.add_class::<controller::LostSegment>()?;
    module.add_class::<controller::CongestionEvent>()?;
    module.add_class::<Plan>()?;
    module.add_class::<trace::Trace>()?;
    module.add_class::<RunResult>()?;
    module.add_class::<batch::Batch>()?;
    module.add_class::<recordings::PacketCapture>()?;
    module.add_class::<gym::Episodes>()?;
    module.add_function(wrap_pyfunction!(plan, module)?)?;
    module.add_function(wrap_pyfunction!(batch::run_many, module)?)?;
    module.add_function(wrap_pyfunction!(run_captured, module)?)?;
    module.add_function(wrap_pyfunction!(schema, module)?)?;
    module.add_function(wrap_pyfunction!(hint, module)?)?;
    module.add_function(wrap_pyfunction!(rate_bps, module)?)?;
    module.add_function(wrap_pyfunction!(time_s, module)?)?;
    module.add_function(wrap_pyfunction!(si_value, module)?)?;
    module.add_function(wrap_pyfunction!(presets, module)?)?;
    module.add_function(wrap_pyfunction!(kernel_controls, module)?)?;
    module.add_function(wrap_pyfunction!(rate_steps, module)?)?;
    module.add_function(wrap_pyfunction!(line_of, module)?)?;
    module.add_function(wrap_pyfunction!(metrics, module)?)?;
    module.add_function(wrap_pyfunction!(units, module)?)?;
    module.add_function(wrap_pyfunction!(program_measures, module)?)?;
    module.add_function(wrap_pyfunction!(event_kinds, module)?)?;
    module.add_function(wrap_pyfunction!(metric_names, module)?)?;
    module.add_function(wrap_pyfunction!(traffic_examples, module)?)?;
    module.add_function(wrap_pyfunction!(queue_examples, module)?)?;
    module.add_function(wrap_pyfunction!(advise, module)?)?;
    module.add_function(wrap_pyfunction!(queue_keys, module)?)?;
    module.add_function(wrap_pyfunction!(recordings::read_capture, module)?)?;
    module.add_function(wrap_pyfunction!(code_version, module)?)?;
    #[cfg(target_os = "linux")]
    {
        module.add_class::<live::ProgramReport>()?;
        module.add_function(wrap_pyfunction!(live::live_enter, module)?)?;
        module.add_function(wrap_pyfunction!(live::live_enter_processes, module)?)?;
        module.add_function(wrap_pyfunction!(live::live_enter_network, module)?)?;
        module.add_function(wrap_pyfunction!(live::live_refusals, module)?)?;
        module.add_function(wrap_pyfunction!(live::live_queue_refusals, module)?)?;
        module.add_function(wrap_pyfunction!(live::live_run, module)?)?;
        module.add_function(wrap_pyfunction!(live::guest_request, module)?)?;
        module.add_function(wrap_pyfunction!(live::run_reply, module)?)?;
        module.add_function(wrap_pyfunction!(live::failed_reply, module)?)?;
        module.add_function(wrap_pyfunction!(live::live_hide, module)?)?;
        module.add_function(wrap_pyfunction!(live::live_version, module)?)?;
        module.add_function(wrap_pyfunction!(live::tc_table, module)?)?;
        module.add_function(wrap_pyfunction!(live::tc_queue, module)?)?;
        module.add_function(wrap_pyfunction!(live::tc_differs, module)?)?;
        module.add_function(wrap_pyfunction!(live::guest_programs, module)?)?;
        module.add_function(wrap_pyfunction!(live::guest_printed, module)?)?;
    }
    module.add_function(wrap_pyfunction!(version, module)?)
}
