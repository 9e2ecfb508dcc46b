//! The backend in real time, for the process that it runs in.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::sync::Arc;

use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use redtail_core::{Bytes, Rate};
use redtail_live::exchange::{self, Asked, Failure, Reply, Request, Table};
use redtail_live::outside::Program;
use redtail_live::pairs::report::{self, ProgramFile};
use redtail_live::programs::{Programs, Show};
use redtail_live::tc::{self, Place, Qdisc};
use redtail_live::{LiveResult, RunError, RunOptions, kernel, kernel_queue};
use redtail_qdisc::LinkFacts;
use redtail_spec::Scenario;
use serde::Serialize;
use serde_json::json;

use crate::{
    RunResult, capture_failed, capture_files, open_files, param_failed, parsed_queue,
    plugin_failed, plugins, require_tables, spec_error, trace,
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
/// connections, with the kernel's own queues or redtail's, and with these files of programs.
///
/// # Errors
/// `SpecError` when the text is no scenario, or a table is missing.
#[pyfunction]
pub fn guest_request(
    py: Python<'_>,
    scenario: &str,
    traces: Option<Vec<Py<trace::Trace>>>,
    kernel_queues: bool,
    files: Option<Vec<(String, Vec<u8>)>>,
) -> PyResult<Py<PyBytes>> {
    let given: Vec<_> = traces.into_iter().flatten().collect();
    let parsed = Scenario::from_json(scenario).map_err(|error| spec_error(py, &error))?;
    let sent = given.iter().map(|table| Table::from(&*table.get().0));
    let request = Request {
        scenario: scenario.to_owned(),
        kernel_queues,
        tables: sent.collect(),
        files: files.unwrap_or_default(),
    };
    require_tables(&parsed, &trace::traces(Some(given)))?;
    Ok(bytes(py, &Asked::Run(request)))
}

/// What the agent in a virtual machine is asked for: to run programs, each a list of its name and its arguments.
#[pyfunction]
pub fn guest_programs(py: Python<'_>, programs: Vec<Vec<String>>) -> Py<PyBytes> {
    bytes(py, &Asked::Programs(programs))
}

fn bytes<T: Serialize>(py: Python<'_>, message: &T) -> Py<PyBytes> {
    PyBytes::new(py, &exchange::to_bytes(message)).unbind()
}

/// The exit code of each program, `None` if a signal has ended it, and what it has printed to standard output and
/// standard error, in the answer of the agent in a virtual machine.
///
/// # Errors
/// `ValueError` when these bytes are no such answer, `OSError` when a program could not be started there.
#[pyfunction]
pub fn guest_printed(reply: &[u8]) -> PyResult<Vec<(Option<i32>, String, String)>> {
    match exchange::reply_from_bytes(reply) {
        Ok(Reply::Printed(printed)) => Ok(printed
            .into_iter()
            .map(|each| (each.code, each.output, each.errors))
            .collect()),
        Ok(Reply::Failed { reason, .. }) => Err(PyOSError::new_err(reason)),
        Ok(Reply::Ran { .. }) => Err(PyValueError::new_err("it is the result of a run")),
        Err(why) => Err(PyValueError::new_err(why)),
    }
}

/// What a program of a group left.
#[pyclass(frozen, get_all)]
pub struct ProgramReport {
    /// The name of its group.
    group: String,
    /// The number of its pair.
    flow: u32,
    /// "client" or "server".
    role: &'static str,
    /// Its exit code; `None` if a signal has ended it.
    code: Option<i32>,
    /// The signal that has ended it.
    signal: Option<i32>,
    /// Whether it was ended since it took longer than it may.
    timed_out: bool,
    /// Whether it was asked to end, as its file or the end of the run says.
    ended: bool,
    /// When it was started and when it had ended, in seconds of the run.
    times: (f64, f64),
    /// What it printed to standard output.
    output: Cow<'static, [u8]>,
    /// Bytes of standard output that were left out.
    output_cut: u64,
    /// The end of what it printed to standard error.
    errors: Cow<'static, [u8]>,
    /// The names and contents of its files in `{out}`.
    files: Vec<(String, Cow<'static, [u8]>)>,
    /// The names of those that were left out.
    left_out: Vec<String>,
}

impl From<report::ProgramReport> for ProgramReport {
    fn from(it: report::ProgramReport) -> Self {
        let file = |it: ProgramFile| (it.name, it.content.into());
        Self {
            group: it.group,
            flow: it.flow,
            role: it.role.name(),
            code: it.code,
            signal: it.signal,
            timed_out: it.timed_out,
            ended: it.ended,
            times: (it.started_s, it.ended_s),
            output: it.output.into(),
            output_cut: it.output_cut,
            errors: it.errors.into(),
            files: it.files.into_iter().map(file).collect(),
            left_out: it.left_out,
        }
    }
}

/// What a reply says of a run: the result, why it must not be used, if there is a reason, and the exit code of the
/// user's program, and what programs of groups left; or what it failed at (a name of [`Failure`]) and why.
type Told = (
    Option<(RunResult, Option<String>, Option<i32>, Vec<ProgramReport>)>,
    Option<(&'static str, String)>,
);

/// What the answer of an agent says of a run: a pair of the result (with why it must not be used, if there is a
/// reason, and the exit code of the user's program, if there is one) and of what it failed at (with the reason), of
/// which one is `None`.
///
/// # Errors
/// `ValueError` when these bytes are no such answer.
#[pyfunction]
pub fn run_reply(reply: &[u8]) -> PyResult<Told> {
    match exchange::reply_from_bytes(reply) {
        Ok(Reply::Ran {
            result,
            invalid,
            code,
            programs,
        }) => {
            let programs = programs.into_iter().map(ProgramReport::from).collect();
            Ok((
                Some((RunResult(Arc::new(*result)), invalid, code, programs)),
                None,
            ))
        }
        Ok(Reply::Failed { at, reason }) => Ok((None, Some((at.name(), reason)))),
        Ok(Reply::Printed(_)) => Err(PyValueError::new_err("it is what programs have printed")),
        Err(why) => Err(PyValueError::new_err(why)),
    }
}

/// The answer of an agent whose run failed at `at` (a name of [`Failure`]) for a reason.
///
/// # Errors
/// `ValueError` when there is no such name.
#[pyfunction]
pub fn failed_reply(py: Python<'_>, at: &str, reason: String) -> PyResult<Py<PyBytes>> {
    let Some(at) = Failure::of(at) else {
        return Err(PyValueError::new_err(format!("nothing fails at {at}")));
    };
    Ok(bytes(py, &Reply::Failed { at, reason }))
}

/// Hides the memory and the open files of this process, and of those that it forks, from programs of the user
/// (`PR_SET_DUMPABLE` in prctl(2)).
///
/// # Errors
/// `OSError` when the kernel refuses it.
#[pyfunction]
pub fn live_hide() -> PyResult<()> {
    Ok(redtail_live::sys::namespace::hide_process()?)
}

/// The reasons why the kernel's own queues cannot stand at the links of a scenario: keys of the
/// experiment file and texts. `available` are the kinds of queues and `filters` those of filters that the kernel
/// has, as `tc` calls them.
///
/// # Errors
/// `SpecError` when the text is no scenario.
#[pyfunction]
pub fn live_queue_refusals(
    py: Python<'_>,
    scenario: &str,
    available: Vec<String>,
    filters: Vec<String>,
) -> PyResult<Vec<(String, String)>> {
    let scenario = Scenario::from_json(scenario).map_err(|error| spec_error(py, &error))?;
    Ok(kernel_queue::refuse(&scenario, &available, &filters))
}

/// Runs one scenario in real time, in a process that [`live_enter`] has prepared, with programs of
/// the user and captures if there are any (the first child after [`live_enter_processes`]), and with the
/// kernel's own queues or redtail's. Returns the reply, for [`run_reply`].
///
/// # Errors
/// `OSError` when the kernel refuses a step, `PluginFailed` when a queue of the user fails.
#[pyfunction]
#[allow(clippy::too_many_arguments)] // Python gives them by name
pub fn live_run(
    py: Python<'_>,
    scenario: &str,
    queues: Option<Bound<'_, PyDict>>,
    traces: Option<Vec<Py<trace::Trace>>>,
    programs: Option<Given>,
    captures: Option<Vec<(String, PathBuf)>>,
    kernel_queues: bool,
    files_of_programs: Option<BTreeMap<String, Vec<u8>>>,
) -> PyResult<Py<PyBytes>> {
    let scenario = Scenario::from_json(scenario).map_err(|error| spec_error(py, &error))?;
    let traces = trace::traces(traces);
    require_tables(&scenario, &traces)?;
    let files = captures.map(capture_files).transpose()?.unwrap_or_default();
    let options = RunOptions {
        traces,
        plugins: plugins(queues, &Arc::default())?.queues,
        captures: open_files(&files)?,
        kernel_queues,
        virtual_time: false,
        programs: programs.map(Programs::from),
        files: files_of_programs.unwrap_or_default(),
        root: None,
    };
    if options.programs.is_some() || redtail_live::pairs::any(&scenario) {
        redtail_live::sys::namespace::show_own_processes();
    }
    let ran = py.detach(|| redtail_live::run(&scenario, options));
    match ran {
        Ok(LiveResult {
            result,
            invalid,
            status,
            programs,
        }) => {
            let code =
                status.and_then(|status| status.code().or_else(|| Some(128 + status.signal()?)));
            let result = Box::new(result);
            Ok(bytes(
                py,
                &Reply::Ran {
                    result,
                    invalid,
                    code,
                    programs,
                },
            ))
        }
        Err(RunError::Refused(error)) => Err(PyOSError::new_err(error.to_string())),
        Err(RunError::Program(reason)) => {
            let at = Failure::Program;
            Ok(bytes(py, &Reply::Failed { at, reason }))
        }
        Err(RunError::Plugin(failure)) => Err(plugin_failed(py, &failure)),
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
    read_only: bool,
    writable: Vec<PathBuf>,
    environment: Option<Vec<(OsString, OsString)>>,
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
            files: given.read_only.then_some(given.writable),
            environment: given.environment,
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

/// The queue of the kernel for a queue at the root of a device, as JSON text: the `commands` of `tc`, each a list of
/// words, and for each queue its `kind`, `handle` and `settings` (`key`, `words`, and what is `kept` if the kernel
/// cannot hold the value). `queue` is JSON text, `{KIND: {KEY: VALUE, ...}}`.
///
/// # Errors
/// `SpecError` when the queue is none, or the kernel cannot have it; its `key` says where.
#[pyfunction]
pub fn tc_queue(
    py: Python<'_>,
    queue: &str,
    rate_bps: u64,
    mtu: u64,
    hz: u32,
    device: &str,
) -> PyResult<String> {
    let qdisc = mapped(py, queue, rate_bps, mtu, hz)?;
    let queues = qdisc.all().into_iter().map(|each| {
        let changes = each.changes.iter().flat_map(|change| &change.settings);
        let settings = each.settings.iter().chain(changes).map(
            |setting| json!({"key": setting.key, "words": setting.words, "kept": setting.kept}),
        );
        json!({
            "kind": each.kind,
            "handle": each.name(),
            "settings": settings.collect::<Vec<_>>(),
        })
    });
    let queues: Vec<_> = queues.collect();
    Ok(json!({"commands": qdisc.commands(device), "queues": queues}).to_string())
}

/// The differences between the queue of [`tc_queue`] and what a kernel has, which is the output of
/// `tc -j -d qdisc show dev DEVICE`.
///
/// # Errors
/// `SpecError` as for [`tc_queue`], `ValueError` when `shown` is no JSON.
#[pyfunction]
pub fn tc_differs(
    py: Python<'_>,
    queue: &str,
    rate_bps: u64,
    mtu: u64,
    hz: u32,
    shown: &str,
) -> PyResult<Vec<String>> {
    let qdisc = mapped(py, queue, rate_bps, mtu, hz)?;
    let shown =
        serde_json::from_str(shown).map_err(|error| PyValueError::new_err(error.to_string()))?;
    Ok(tc::differs(&qdisc, &shown))
}

/// The kernel's queue at the root of a device.
fn mapped(py: Python<'_>, queue: &str, rate_bps: u64, mtu: u64, hz: u32) -> PyResult<Qdisc> {
    let link = LinkFacts {
        largest_packet: Bytes::new(mtu),
        ..LinkFacts::of_rate(Rate::from_bps(rate_bps))
    };
    let place = Place {
        mtu: Bytes::new(mtu),
        hz,
        ..Place::root()
    };
    let queue = parsed_queue(py, queue)?;
    queue
        .check_at(&link)
        .map_err(|error| param_failed(py, &error))?;
    tc::words(&queue, &link, &place).map_err(|error| {
        let raised = crate::SpecError::new_err(error.to_string());
        let set = raised.value(py).setattr("key", &error.key);
        set.err().unwrap_or(raised)
    })
}
