//! The backend in real time, for the process that it runs in.

use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::sync::Arc;

use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use redtail_live::exchange::{self, Reply, Request, Table};
use redtail_live::outside::Program;
use redtail_live::programs::{Programs, Show};
use redtail_live::{LiveResult, RunError, RunOptions, kernel, kernel_queue};
use redtail_spec::Scenario;

use crate::{
    RunResult, capture_failed, capture_files, open_files, plugins, queue_failed, spec_error,
    tables, trace,
};

/// Moves this process, which must have one thread, into a user namespace of its own, in which it can
/// make networks.
///
/// # Errors
/// `OSError` when the kernel or its settings forbid it.
#[pyfunction]
pub fn live_enter() -> PyResult<()> {
    Ok(redtail_live::sys::namespace::enter_user_namespace()?)
}

/// Moves this process as [`live_enter`] does; its next child is the first process of a process
/// namespace, at whose end the kernel ends all processes that it started.
///
/// # Errors
/// `OSError` when the kernel or its settings forbid it.
#[pyfunction]
pub fn live_enter_processes() -> PyResult<()> {
    Ok(redtail_live::sys::namespace::enter_process_namespace()?)
}

/// Moves the calling thread into a network namespace of its own.
///
/// # Errors
/// `OSError` when the kernel forbids it.
#[pyfunction]
pub fn live_enter_network() -> PyResult<()> {
    redtail_live::sys::namespace::NetNamespace::create()?;
    Ok(())
}

/// The reasons why a kernel cannot run a scenario: keys of the experiment file and texts. Without
/// `controls`, the congestion controls that it has, it is this computer's kernel.
///
/// # Errors
/// `SpecError` when the text is no scenario, `OSError` when the kernel does not tell what it has.
#[pyfunction]
#[pyo3(signature = (scenario, controls=None))]
pub fn live_refusals(
    py: Python<'_>,
    scenario: &str,
    controls: Option<Vec<String>>,
) -> PyResult<Vec<(String, String)>> {
    let scenario = Scenario::from_json(scenario).map_err(|error| spec_error(py, &error))?;
    let available = match controls {
        Some(controls) => controls.into_iter().collect(),
        None => kernel::available()?,
    };
    Ok(kernel::refuse(&scenario, &available))
}

/// What the agent in a virtual machine is asked for: a run of a scenario with these tables of
/// connections, and with the kernel's own queues or redtail's.
///
/// # Errors
/// `SpecError` when the text is no scenario, or a table is missing.
#[pyfunction]
pub fn guest_request(
    py: Python<'_>,
    scenario: &str,
    traces: Option<Vec<Py<trace::Trace>>>,
    kernel_queues: bool,
) -> PyResult<Py<PyBytes>> {
    let given: Vec<_> = traces.into_iter().flatten().collect();
    let parsed = Scenario::from_json(scenario).map_err(|error| spec_error(py, &error))?;
    let sent = given.iter().map(|table| Table::from(&*table.get().0));
    let request = Request {
        scenario: scenario.to_owned(),
        kernel_queues,
        tables: sent.collect(),
    };
    tables(&parsed, Some(given))?;
    Ok(PyBytes::new(py, &exchange::to_bytes(&request)).unbind())
}

/// The result in the answer of the agent in a virtual machine, and why it must not be used, if there
/// is a reason.
///
/// # Errors
/// `ValueError` when these bytes are no answer, `OSError` when the run failed there.
#[pyfunction]
pub fn guest_reply(reply: &[u8]) -> PyResult<(RunResult, Option<String>)> {
    match exchange::from_bytes(reply) {
        Ok(Reply::Ran { result, invalid }) => Ok((RunResult(*result), invalid)),
        Ok(Reply::Failed(reason)) => Err(PyOSError::new_err(reason)),
        Err(error) => Err(PyValueError::new_err(error.to_string())),
    }
}

/// The reasons why the kernel's own queues cannot stand at the links of a scenario: keys of the
/// experiment file and texts. `available` are the kinds that the kernel has, as `tc` calls them.
///
/// # Errors
/// `SpecError` when the text is no scenario.
#[pyfunction]
pub fn live_queue_refusals(
    py: Python<'_>,
    scenario: &str,
    available: Vec<String>,
) -> PyResult<Vec<(String, String)>> {
    let scenario = Scenario::from_json(scenario).map_err(|error| spec_error(py, &error))?;
    Ok(kernel_queue::refuse(&scenario, &available))
}

/// Runs one scenario in real time, in a process that [`live_enter`] has prepared, with programs of
/// the user and captures if there are any (the first child after [`live_enter_processes`]), and with the
/// kernel's own queues or redtail's. Returns the result, why
/// it must not be used, if there is a reason, and with which code the program of the user ended.
///
/// # Errors
/// `OSError` when the kernel refuses a step, `QueueFailed` when a queue of the user fails.
#[pyfunction]
pub fn live_run(
    py: Python<'_>,
    scenario: &str,
    queues: Option<Bound<'_, PyDict>>,
    traces: Option<Vec<Py<trace::Trace>>>,
    programs: Option<Given>,
    captures: Option<Vec<(String, PathBuf)>>,
    kernel_queues: bool,
) -> PyResult<(RunResult, Option<String>, Option<i32>)> {
    let scenario = Scenario::from_json(scenario).map_err(|error| spec_error(py, &error))?;
    let files = captures.map(capture_files).transpose()?.unwrap_or_default();
    let options = RunOptions {
        traces: tables(&scenario, traces)?,
        plugins: plugins(queues, &Arc::default())?,
        captures: open_files(&files)?,
        kernel_queues,
        virtual_time: false,
        programs: programs.map(Programs::from),
    };
    if options.programs.is_some() {
        redtail_live::sys::namespace::show_own_processes();
    }
    let ran = py.detach(|| redtail_live::run(&scenario, options));
    match ran {
        Ok(LiveResult {
            result,
            invalid,
            status,
        }) => {
            let code =
                status.and_then(|status| status.code().or_else(|| Some(128 + status.signal()?)));
            Ok((RunResult(result), invalid, code))
        }
        Err(RunError::Refused(error)) => Err(PyOSError::new_err(error.to_string())),
        Err(RunError::Plugin(failure)) => Err(queue_failed(py, &failure)),
        Err(RunError::Capture(error)) => Err(capture_failed(&error, &files)),
    }
}

/// Programs of the user, as Python describes them (`Programs` in `_engine.py`).
#[derive(FromPyObject)]
pub struct Given {
    command: Vec<String>,
    servers: Vec<String>,
    show: String,
    logs: Option<PathBuf>,
    outside: Option<String>,
}

impl From<Given> for Programs {
    fn from(given: Given) -> Self {
        let show = match given.show.as_str() {
            "title" => Show::Title,
            "lines" => Show::Lines,
            _ => Show::Nothing,
        };
        Self {
            command: given.command,
            servers: given.servers,
            logs: given.logs,
            outside: given.outside.as_deref().and_then(Program::of),
            show,
        }
    }
}

/// A hash of the code of this backend.
#[pyfunction]
pub fn live_version() -> &'static str {
    env!("REDTAIL_LIVE_VERSION")
}

/// The table of the queues that a Linux kernel has, with the options of `tc`, as JSON text.
#[pyfunction]
pub fn tc_table() -> String {
    redtail_live::tc::table().to_string()
}
