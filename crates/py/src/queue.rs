//! Queues that are classes in Python.
//!
//! A class is made with a [`QueueContext`] and the file's `params`, and is then asked through its
//! methods. A [`Packet`] is a view; what is asked of it (`mark`, `drop`) is put down during the
//! call and done after it. Times are seconds.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyList, PyTuple};
use redtail_core::{Ecn, Stream, Time};
use redtail_qdisc::{Backlog, DropReason, FlowTable, Internals, Limit, Protocol};
use redtail_sim::Plugins;
use redtail_sim::controller::PluginController;
use redtail_sim::plugin::{
    Actions, Identity, PacketId, PacketView, PluginContext, PluginError, PluginQueue, Value,
};

use redtail_core::plugin::CancelledWithin;

#[cfg(feature = "compiled-plug-ins")]
use crate::compiled::Compiled;
use crate::controller::PythonController;

/// What a queue, its context and its packets share.
struct Shared {
    rate: u64,
    limit: Option<Limit>,
    flows: Arc<FlowTable>,
    state: Mutex<State>,
}

struct State {
    stream: Stream,
    backlog: Backlog,
    /// Whether packets may be marked and dropped now.
    open: bool,
    /// What has been asked for in this call.
    asked: Vec<Asked>,
}

#[derive(Clone, Copy)]
enum Asked {
    Mark(PacketId),
    Drop(PacketId),
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing is done under the lock that could leave it half-changed.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn admits(&self, packet: &Packet) -> bool {
        let size = redtail_core::Bytes::new(packet.size);
        let backlog = self.state().backlog;
        self.limit.is_none_or(|limit| limit.admits(backlog, size))
    }

    fn ask(&self, what: Asked) -> PyResult<()> {
        let mut state = self.state();
        if !state.open {
            return Err(PyRuntimeError::new_err(
                "packets are marked and dropped while enqueue or dequeue runs, and at no other \
                 time",
            ));
        }
        state.asked.push(what);
        Ok(())
    }
}

/// A packet that has been given to a queue.
#[pyclass(frozen, module = "redtail._native")]
pub struct Packet {
    id: PacketId,
    shared: Arc<Shared>,
    /// Size on the link in bytes, headers included.
    #[pyo3(get)]
    size: u64,
    /// Number of the flow it belongs to.
    #[pyo3(get)]
    flow: u32,
    group: u32,
    protocol: Protocol,
    /// The port of the side that serves, 0 if not told.
    #[pyo3(get)]
    port: u16,
    /// Number of the host that sends data.
    #[pyo3(get)]
    sender: u32,
    /// Number of the host that receives it.
    #[pyo3(get)]
    receiver: u32,
    /// The class it asks for, 0 to 63.
    #[pyo3(get)]
    dscp: u8,
    /// When it arrived, in seconds.
    #[pyo3(get)]
    enqueued: f64,
    ecn: AtomicU8,
}

const ECN: [&str; 4] = ["not-ect", "ect1", "ect0", "ce"];

#[pymethods]
impl Packet {
    /// Name of the traffic group it belongs to.
    #[getter]
    fn group(&self) -> &str {
        let name = self.shared.flows.groups.get(self.group as usize);
        name.map_or("", String::as_str)
    }

    /// "tcp" or "udp".
    #[getter]
    fn protocol(&self) -> &'static str {
        match self.protocol {
            Protocol::Tcp => "tcp",
            Protocol::Udp => "udp",
        }
    }

    /// "not-ect", "ect0", "ect1" or "ce".
    #[getter]
    fn ecn(&self) -> &'static str {
        ECN[usize::from(self.ecn.load(Ordering::Relaxed))]
    }

    /// Sets CE if the sender uses ECN; says whether the packet now carries CE.
    fn mark(&self) -> PyResult<bool> {
        if self.ecn.load(Ordering::Relaxed) == Ecn::NotEct as u8 {
            return Ok(false);
        }
        self.shared.ask(Asked::Mark(self.id))?;
        self.ecn.store(Ecn::Ce as u8, Ordering::Relaxed);
        Ok(true)
    }

    /// Drops the packet, which the queue must not return after that.
    fn drop(&self) -> PyResult<()> {
        self.shared.ask(Asked::Drop(self.id))
    }

    fn __repr__(&self) -> String {
        format!(
            "<Packet of flow {}, {} B, {}>",
            self.flow,
            self.size,
            self.ecn()
        )
    }
}

/// What a queue is told about its place.
#[pyclass(frozen, module = "redtail._native")]
pub struct QueueContext(Arc<Shared>);

#[pymethods]
impl QueueContext {
    /// Rate of the link in bit/s.
    #[getter]
    fn rate(&self) -> f64 {
        self.0.rate as f64
    }

    /// Most packets that may wait, if the file limits them.
    #[getter]
    fn limit_packets(&self) -> Option<u64> {
        self.0.limit.and_then(|limit| limit.packets)
    }

    /// Most bytes that may wait, if the file limits them.
    #[getter]
    fn limit_bytes(&self) -> Option<u64> {
        self.0.limit.and_then(|limit| limit.bytes)
    }

    /// Names of the traffic groups.
    #[getter]
    fn groups(&self) -> Vec<String> {
        self.0.flows.groups.clone()
    }

    /// Packets that wait; the arriving one does not count.
    #[getter]
    fn waiting_packets(&self) -> u64 {
        self.0.state().backlog.packets
    }

    /// Bytes that wait; those of the arriving packet do not count.
    #[getter]
    fn waiting_bytes(&self) -> u64 {
        self.0.state().backlog.bytes
    }

    /// Whether the arriving packet fits within the limit of the file.
    fn admits(&self, packet: &Packet) -> bool {
        self.0.admits(packet)
    }

    /// A random number from 0 up to 1, from the stream that this queue has in this replication.
    fn uniform(&self) -> f64 {
        self.0.state().stream.uniform()
    }
}

/// The plug-ins that these classes and modules, by their names in the file, stand for.
pub fn plugins(classes: &Bound<'_, PyDict>, cancel: &Arc<AtomicBool>) -> PyResult<Plugins> {
    let mut plugins = Plugins::new();
    for (name, class) in classes {
        let name = name.extract::<String>()?;
        #[cfg(feature = "compiled-plug-ins")]
        if let Ok(compiled) = class.cast::<Compiled>() {
            plugins = compiled.get().add(plugins, &name, cancel);
            continue;
        }
        let class = Arc::new(class.unbind());
        // The experiment says which of the two a class is.
        let (of_queue, for_queue) = (Arc::clone(&class), Arc::clone(cancel));
        plugins = plugins.with(&name, move |identity, context| {
            Python::attach(|py| {
                let queue = PythonQueue::new(of_queue.bind(py), identity, context, &for_queue);
                let queue = queue.map_err(|error| raised(py, error))?;
                Ok(Box::new(queue) as Box<dyn PluginQueue>)
            })
        });
        let cancel = Arc::clone(cancel);
        plugins = plugins.with_controller(&name, move |identity, context| {
            Python::attach(|py| {
                let found = PythonController::new(class.bind(py), identity, context, &cancel)?;
                Ok(Box::new(found) as Box<dyn PluginController>)
            })
        });
    }
    Ok(plugins)
}

/// A class's own exception, on its way to whoever started the run.
pub fn raised(py: Python<'_>, error: PyErr) -> PluginError {
    PluginError::new(error.to_string()).because(error.clone_ref(py))
}

/// The value in Python.
fn object<'py>(py: Python<'py>, value: &Value) -> PyResult<Bound<'py, PyAny>> {
    Ok(match value {
        Value::Bool(on) => PyBool::new(py, *on).to_owned().into_any(),
        Value::Integer(number) => number.into_pyobject(py)?.into_any(),
        Value::Float(number) => number.into_pyobject(py)?.into_any(),
        Value::Text(text) => text.into_pyobject(py)?.into_any(),
        Value::List(values) => {
            let values = values.iter().map(|value| object(py, value));
            PyList::new(py, values.collect::<PyResult<Vec<_>>>()?)?.into_any()
        }
        Value::Table(table) => params_dict(py, table)?.into_any(),
    })
}

/// The table as keyword arguments.
pub fn params_dict<'py>(
    py: Python<'py>,
    table: &BTreeMap<String, Value>,
) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for (key, value) in table {
        dict.set_item(key, object(py, value)?)?;
    }
    Ok(dict)
}

/// The first time that is not before `seconds`; `None` if no run lasts that long.
fn time(seconds: f64) -> Option<Time> {
    const PS: f64 = 1e12;
    if seconds * PS >= u64::MAX as f64 {
        return None;
    }
    let time = Time::from_ps((seconds * PS).ceil() as u64);
    // What is told as `now` must not be before what was asked for, or the queue would wait again.
    Some(if time.as_secs_f64() < seconds {
        Time::from_ps(time.as_ps() + 1)
    } else {
        time
    })
}

/// What was returned, for a message.
pub fn shown(value: &Bound<'_, PyAny>) -> String {
    let text = value
        .repr()
        .map_or_else(|_| String::new(), |text| text.to_string());
    let cut: String = text.chars().take(60).collect();
    match cut.len() < text.len() {
        true => format!("{cut}..."),
        false => cut,
    }
}

fn wrong(value: &Bound<'_, PyAny>, accepted: &str) -> PluginError {
    PluginError::new(format!(
        "it returned {}; accepted: {accepted}",
        shown(value)
    ))
}

/// What the method `report` of an object tells.
pub fn figures_of(
    object: &Bound<'_, PyAny>,
    now: Time,
) -> Result<BTreeMap<String, f64>, PluginError> {
    let py = object.py();
    let answer = object.call_method1(intern!(py, "report"), (now.as_secs_f64(),));
    let answer = answer.map_err(|error| raised(py, error))?;
    let figures = answer.extract();
    figures.map_err(|_| wrong(&answer, "numbers by name, as a dict"))
}

struct PythonQueue {
    object: Py<PyAny>,
    shared: Arc<Shared>,
    cancel: Arc<AtomicBool>,
    wakes: bool,
    is_woken: bool,
    has_internals: bool,
    has_start_measuring: bool,
    reports: bool,
}

impl PythonQueue {
    fn new(
        class: &Bound<'_, PyAny>,
        identity: &Identity,
        context: PluginContext,
        cancel: &Arc<AtomicBool>,
    ) -> PyResult<Self> {
        let py = class.py();
        let shared = Arc::new(Shared {
            rate: context.queue.rate.as_bps(),
            limit: context.limit,
            flows: Arc::clone(&context.queue.link.flows),
            state: Mutex::new(State {
                stream: context.queue.stream,
                backlog: Backlog::default(),
                open: false,
                asked: Vec::new(),
            }),
        });
        let told = QueueContext(Arc::clone(&shared));
        let object = class.call((told,), Some(&params_dict(py, &identity.params)?))?;
        Ok(Self {
            wakes: object.hasattr("next_wakeup")?,
            is_woken: object.hasattr("on_wakeup")?,
            has_internals: object.hasattr("internals")?,
            has_start_measuring: object.hasattr("start_measuring")?,
            reports: object.hasattr("report")?,
            object: object.unbind(),
            shared,
            cancel: Arc::clone(cancel),
        })
    }

    /// Calls into Python, unless the run is cancelled.
    fn call<R>(
        &self,
        call: impl for<'py> FnOnce(Python<'py>, &Bound<'py, PyAny>) -> Result<R, Failed>,
    ) -> Result<R, PluginError> {
        if self.cancel.load(Ordering::Relaxed) {
            return Err(PluginError::new("the run was cancelled").because(CancelledWithin));
        }
        Python::attach(|py| {
            call(py, self.object.bind(py)).map_err(|failed| match failed {
                Failed::Raised(error) => raised(py, error),
                Failed::Wrong(error) => error,
            })
        })
    }

    /// The same, during which packets may be marked and dropped.
    fn call_open<R>(
        &self,
        actions: &dyn Actions,
        call: impl for<'py> FnOnce(Python<'py>, &Bound<'py, PyAny>) -> Result<R, Failed>,
    ) -> Result<R, PluginError> {
        {
            let mut state = self.shared.state();
            state.backlog = actions.backlog();
            state.open = true;
        }
        let result = self.call(call);
        self.shared.state().open = false;
        result
    }

    /// Does what was asked for; says whether `arriving` was dropped.
    fn act(
        &self,
        arriving: Option<PacketId>,
        actions: &mut dyn Actions,
    ) -> Result<bool, PluginError> {
        let asked = std::mem::take(&mut self.shared.state().asked);
        let mut gone = false;
        for &asked in &asked {
            match asked {
                Asked::Mark(packet) => {
                    actions.mark(packet)?;
                }
                Asked::Drop(packet) => {
                    actions.drop(packet, DropReason::Early)?;
                    gone |= Some(packet) == arriving;
                }
            }
        }
        Ok(gone)
    }
}

enum Failed {
    Raised(PyErr),
    Wrong(PluginError),
}

impl From<PyErr> for Failed {
    fn from(error: PyErr) -> Self {
        Self::Raised(error)
    }
}

impl PluginQueue for PythonQueue {
    fn enqueue(
        &mut self,
        packet: PacketView,
        now: Time,
        actions: &mut dyn Actions,
    ) -> Result<(), PluginError> {
        let view = Packet {
            id: packet.id,
            shared: Arc::clone(&self.shared),
            size: packet.size.as_u64(),
            flow: packet.flow.0,
            group: packet.facts.group,
            protocol: packet.facts.protocol,
            port: packet.facts.port,
            sender: packet.facts.sender,
            receiver: packet.facts.receiver,
            dscp: packet.dscp.get(),
            enqueued: now.as_secs_f64(),
            ecn: AtomicU8::new(packet.ecn as u8),
        };
        let fits = self.shared.limit;
        let fits = fits.is_none_or(|limit| limit.admits(actions.backlog(), packet.size));
        let stays = self.call_open(actions, |py, object| {
            let arguments = (Bound::new(py, view)?, now.as_secs_f64());
            let answer = object.call_method1(intern!(py, "enqueue"), arguments)?;
            match answer.cast::<PyBool>() {
                Ok(answer) => Ok(answer.is_true()),
                Err(_) => Err(Failed::Wrong(wrong(
                    &answer,
                    "True (the packet waits) or False (it is dropped)",
                ))),
            }
        })?;
        let gone = self.act(Some(packet.id), actions)?;
        match (stays, gone) {
            (true, false) | (false, true) => Ok(()),
            (false, false) => {
                let reason = if fits {
                    DropReason::Early
                } else {
                    DropReason::Limit
                };
                actions.drop(packet.id, reason)
            }
            (true, true) => Err(PluginError::new(
                "it returned True for a packet that it has dropped; accepted: False",
            )),
        }
    }

    fn dequeue(
        &mut self,
        now: Time,
        actions: &mut dyn Actions,
    ) -> Result<Option<PacketId>, PluginError> {
        let packet = self.call_open(actions, |py, object| {
            let answer = object.call_method1(intern!(py, "dequeue"), (now.as_secs_f64(),))?;
            if answer.is_none() {
                return Ok(None);
            }
            match answer.cast::<Packet>() {
                Ok(packet) if Arc::ptr_eq(&packet.get().shared, &self.shared) => {
                    Ok(Some(packet.get().id))
                }
                Ok(_) => Err(Failed::Wrong(PluginError::new(
                    "it returned a packet of another queue; are packets kept in the class and \
                     not in the object?",
                ))),
                Err(_) => Err(Failed::Wrong(wrong(
                    &answer,
                    "a packet that enqueue was given and that waits, or None",
                ))),
            }
        })?;
        self.act(None, actions)?;
        Ok(packet)
    }

    fn next_wakeup(&self, now: Time) -> Result<Option<Time>, PluginError> {
        if !self.wakes {
            return Ok(None);
        }
        self.call(|py, object| {
            let answer = object.call_method1(intern!(py, "next_wakeup"), (now.as_secs_f64(),))?;
            if answer.is_none() {
                return Ok(None);
            }
            match answer.extract::<f64>() {
                Ok(seconds) if seconds >= 0.0 => Ok(time(seconds)),
                _ => Err(Failed::Wrong(wrong(
                    &answer,
                    "a time in seconds from the start of the run, or None",
                ))),
            }
        })
    }

    fn on_wakeup(&mut self, now: Time) -> Result<(), PluginError> {
        if !self.is_woken {
            return Ok(());
        }
        self.call(|py, object| {
            object.call_method1(intern!(py, "on_wakeup"), (now.as_secs_f64(),))?;
            Ok(())
        })
    }

    fn internals(&self) -> Result<Internals, PluginError> {
        if !self.has_internals {
            return Ok(Internals::default());
        }
        self.call(|py, object| {
            let answer = object.call_method0(intern!(py, "internals"))?;
            let pair = answer.cast::<PyTuple>().ok();
            match pair.and_then(|pair| pair.extract::<(Option<f64>, Option<f64>)>().ok()) {
                Some((average, probability)) => Ok(Internals {
                    average,
                    probability,
                }),
                None => Err(Failed::Wrong(wrong(
                    &answer,
                    "(average, probability), each a number or None",
                ))),
            }
        })
    }

    fn start_measuring(&mut self, now: Time) -> Result<(), PluginError> {
        if !self.has_start_measuring {
            return Ok(());
        }
        self.call(|py, object| {
            object.call_method1(intern!(py, "start_measuring"), (now.as_secs_f64(),))?;
            Ok(())
        })
    }

    fn report(&self, now: Time, tell: &mut dyn FnMut(&str, f64)) -> Result<(), PluginError> {
        if !self.reports {
            return Ok(());
        }
        let figures = self.call(|_, object| figures_of(object, now).map_err(Failed::Wrong))?;
        for (name, value) in &figures {
            tell(name, *value);
        }
        Ok(())
    }
}

/// The text and cause of a refusal by Python's side of the plan: `(key, problem, accepted)`.
pub fn refusal(answer: &Bound<'_, PyAny>) -> PyResult<(String, String, String)> {
    answer.extract().map_err(|_| {
        PyTypeError::new_err("resolve returns a text or a tuple (key, problem, accepted)")
    })
}
