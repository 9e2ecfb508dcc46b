//! Congestion controllers that are classes in Python.
//!
//! A class is made with a [`ControllerContext`] and the file's `params`. Events are calls of its methods; what it decides is
//! read from its attributes after each. Times are seconds, windows bytes, rates bytes/s.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyString;
use redtail_core::plugin::{CancelledWithin, Identity, PluginError};
use redtail_core::{Span, Stream, Time};
use redtail_sim::controller::{self, CongestionKind, Episode, PluginContext, PluginController};

use crate::queue::{figures_of, params_dict, raised, shown};

/// What a controller is told about its connection.
#[pyclass(frozen, module = "redtail._native")]
pub struct ControllerContext {
    /// Payload bytes of a full segment.
    #[pyo3(get)]
    mss: u32,
    /// The initial window in bytes.
    #[pyo3(get)]
    initial_cwnd: f64,
    stream: Mutex<Stream>,
}

#[pymethods]
impl ControllerContext {
    /// A random number from 0 up to 1, from the stream that this connection has in this replication.
    fn uniform(&self) -> f64 {
        let mut stream = self.stream.lock().unwrap_or_else(PoisonError::into_inner);
        stream.uniform()
    }
}

/// What an acknowledgement tells: the rate sample of draft-ietf-ccwg-bbr-06, section 4.1.2.
#[pyclass(frozen, module = "redtail._native")]
pub struct RateSample(controller::RateSample);

fn seconds(span: Option<Span>) -> Option<f64> {
    span.map(Span::as_secs_f64)
}

#[pymethods]
impl RateSample {
    /// When it arrived, in seconds from the start of the run.
    #[getter]
    fn now(&self) -> f64 {
        self.0.now.as_secs_f64()
    }

    /// Bytes that it newly acknowledged, cumulatively or selectively.
    #[getter]
    fn newly_acked(&self) -> u64 {
        self.0.newly_acked
    }

    /// Bytes that it newly acknowledged cumulatively; 0 for a duplicate.
    #[getter]
    fn advanced(&self) -> u64 {
        self.0.advanced
    }

    /// Bytes declared lost because of it.
    #[getter]
    fn newly_lost(&self) -> u64 {
        self.0.newly_lost
    }

    /// Bytes that it newly reports as marked (ECN).
    #[getter]
    fn newly_marked(&self) -> u64 {
        self.0.newly_marked
    }

    /// Bytes delivered since the start, in order or not.
    #[getter]
    fn total_delivered(&self) -> u64 {
        self.0.total_delivered
    }

    /// Bytes reported as marked since the start.
    #[getter]
    fn total_marked(&self) -> u64 {
        self.0.total_marked
    }

    /// `total_delivered` when the newest delivered segment was sent; None if nothing was delivered.
    #[getter]
    fn prior_delivered(&self) -> Option<u64> {
        self.0.prior_delivered
    }

    /// Bytes delivered since the newest delivered segment was sent.
    #[getter]
    fn delivered(&self) -> u64 {
        self.0.delivered
    }

    /// Bytes declared lost since the newest delivered segment was sent.
    #[getter]
    fn lost(&self) -> u64 {
        self.0.lost
    }

    /// Bytes reported as marked since the newest delivered segment was sent.
    #[getter]
    fn marked(&self) -> u64 {
        self.0.marked
    }

    /// The delivery rate in bytes/s; None if the interval is too short to give one.
    #[getter]
    fn delivery_rate(&self) -> Option<f64> {
        self.0.delivery_rate
    }

    /// Whether the sender had no data to send, so that the path may be faster than the sample.
    #[getter]
    fn app_limited(&self) -> bool {
        self.0.app_limited
    }

    /// Round trip of the newest delivered segment that was sent once, in seconds; None without one.
    #[getter]
    fn rtt(&self) -> Option<f64> {
        seconds(self.0.rtt)
    }

    /// The smoothed round-trip time in seconds; None before the first.
    #[getter]
    fn srtt(&self) -> Option<f64> {
        seconds(self.0.srtt)
    }

    /// Bytes in flight before it.
    #[getter]
    fn prior_in_flight(&self) -> u64 {
        self.0.prior_in_flight
    }

    /// Bytes in flight after it.
    #[getter]
    fn in_flight(&self) -> u64 {
        self.0.in_flight
    }

    /// Bytes in flight just after the newest delivered segment was sent.
    #[getter]
    fn sent_in_flight(&self) -> u64 {
        self.0.sent_in_flight
    }

    /// Whether in the latest round trip the window, not the rate or the application, limited sending.
    #[getter]
    fn window_limited(&self) -> bool {
        self.0.window_limited
    }

    /// The time in seconds for which pacing holds back the next segment.
    #[getter]
    fn held_for(&self) -> f64 {
        self.0.held_for.as_secs_f64()
    }

    /// What loss recovery does after it: "open", "recovery" (fast recovery) or "loss" (repair after a timeout).
    #[getter]
    fn episode(&self) -> &'static str {
        match self.0.episode {
            Episode::Open => "open",
            Episode::Recovery => "recovery",
            Episode::Loss => "loss",
        }
    }

    fn __repr__(&self) -> String {
        format!(
            "<RateSample at {:.6} s, {} B newly acknowledged>",
            self.now(),
            self.0.newly_acked
        )
    }
}

/// A segment that has just been declared lost.
#[pyclass(frozen, module = "redtail._native")]
pub struct LostSegment(controller::LostSegment);

#[pymethods]
impl LostSegment {
    /// Offset of its first byte in the stream.
    #[getter]
    fn start(&self) -> u64 {
        self.0.start
    }

    /// Payload bytes.
    #[getter]
    fn size(&self) -> u32 {
        self.0.len
    }

    /// Bytes in flight just after it was sent.
    #[getter]
    fn sent_in_flight(&self) -> u64 {
        self.0.sent_in_flight
    }

    /// Bytes declared lost since it was sent, its own included.
    #[getter]
    fn lost(&self) -> u64 {
        self.0.lost
    }

    /// Whether the sender had no more data to send when it was sent.
    #[getter]
    fn app_limited(&self) -> bool {
        self.0.app_limited
    }

    /// Bytes delivered since the start.
    #[getter]
    fn total_delivered(&self) -> u64 {
        self.0.total_delivered
    }
}

/// A loss, marks that count as one, or a timeout.
#[pyclass(frozen, module = "redtail._native")]
pub struct CongestionEvent(controller::CongestionEvent);

#[pymethods]
impl CongestionEvent {
    /// When it was detected, in seconds from the start of the run.
    #[getter]
    fn now(&self) -> f64 {
        self.0.now.as_secs_f64()
    }

    /// "loss", "marks" or "timeout".
    #[getter]
    fn cause(&self) -> &'static str {
        match self.0.kind {
            CongestionKind::Loss => "loss",
            CongestionKind::Ecn => "marks",
            CongestionKind::Timeout { .. } => "timeout",
        }
    }

    /// Bytes outstanding (FlightSize of RFC 5681).
    #[getter]
    fn flight_size(&self) -> u64 {
        self.0.flight
    }

    /// Whether it is a further timeout of data that a timeout has retransmitted already.
    #[getter]
    fn repeated(&self) -> bool {
        self.0.kind == CongestionKind::Timeout { repeated: true }
    }
}

/// Which of the optional methods a class has.
struct Methods {
    on_lost: bool,
    on_recovery: bool,
    on_timeout: bool,
    on_handshake: bool,
    on_restart: bool,
    on_undo: bool,
    set_cwnd: bool,
    report: bool,
}

/// Which of the optional attributes an object has.
struct Attributes {
    ssthresh: bool,
    pacing_rate: bool,
    send_quantum: bool,
    probes_rtt: bool,
}

/// What the attributes of an object were after the latest call.
#[derive(Default)]
struct Answers {
    cwnd: f64,
    ssthresh: Option<f64>,
    pacing_rate: Option<f64>,
    send_quantum: u64,
    probes_rtt: bool,
}

/// A controller of a class in Python.
pub struct PythonController {
    object: Py<PyAny>,
    cancel: Arc<AtomicBool>,
    methods: Methods,
    attributes: Attributes,
    answers: Answers,
}

/// An attribute, read with `read`, which returns nothing for what is not `accepted`.
fn attribute<'py, T>(
    object: &Bound<'py, PyAny>,
    name: &Bound<'py, PyString>,
    accepted: &str,
    read: impl FnOnce(&Bound<'py, PyAny>) -> Option<T>,
) -> Result<T, PluginError> {
    let value = object.getattr(name);
    let value = value.map_err(|error| raised(object.py(), error))?;
    read(&value).ok_or_else(|| {
        let shown = shown(&value);
        PluginError::new(format!("{name} is {shown}; accepted: {accepted}"))
    })
}

fn number(value: &Bound<'_, PyAny>) -> Option<f64> {
    value.extract().ok()
}

fn number_or_none(value: &Bound<'_, PyAny>) -> Option<Option<f64>> {
    value.extract().ok()
}

fn quantum(value: &Bound<'_, PyAny>) -> Option<u64> {
    let bytes = number(value)?;
    (0.0..=controller::LARGEST_WINDOW)
        .contains(&bytes)
        .then_some(bytes as u64)
}

impl Attributes {
    /// Reads all that `object` has of them.
    fn read(&self, object: &Bound<'_, PyAny>, into: &mut Answers) -> Result<(), PluginError> {
        let py = object.py();
        into.cwnd = attribute(object, intern!(py, "cwnd"), "a number of bytes", number)?;
        if self.ssthresh {
            let accepted = "a number of bytes, or None";
            into.ssthresh = attribute(object, intern!(py, "ssthresh"), accepted, number_or_none)?;
        }
        if self.pacing_rate {
            let accepted = "a number of bytes/s, or None";
            into.pacing_rate =
                attribute(object, intern!(py, "pacing_rate"), accepted, number_or_none)?;
        }
        if self.send_quantum {
            let accepted = "bytes from 0 to 1 TiB";
            into.send_quantum = attribute(object, intern!(py, "send_quantum"), accepted, quantum)?;
        }
        if self.probes_rtt {
            let read = |value: &Bound<'_, PyAny>| value.extract().ok();
            into.probes_rtt = attribute(object, intern!(py, "probes_rtt"), "True or False", read)?;
        }
        Ok(())
    }
}

impl PythonController {
    /// A controller of `class`.
    pub fn new(
        class: &Bound<'_, PyAny>,
        identity: &Identity,
        context: PluginContext,
        cancel: &Arc<AtomicBool>,
    ) -> Result<Self, PluginError> {
        let py = class.py();
        Self::made(class, identity, context, cancel).map_err(|error| raised(py, error))?
    }

    fn made(
        class: &Bound<'_, PyAny>,
        identity: &Identity,
        context: PluginContext,
        cancel: &Arc<AtomicBool>,
    ) -> PyResult<Result<Self, PluginError>> {
        let py = class.py();
        let told = ControllerContext {
            mss: context.mss,
            initial_cwnd: context.initial_cwnd,
            stream: Mutex::new(context.stream),
        };
        let object = class.call((told,), Some(&params_dict(py, &identity.params)?))?;
        let has = |name: &str| object.hasattr(name);
        if !has("cwnd")? {
            return Ok(Err(PluginError::new(
                "it has no attribute cwnd; accepted: a number of bytes, which __init__ sets",
            )));
        }
        let methods = Methods {
            on_lost: has("on_lost")?,
            on_recovery: has("on_recovery")?,
            on_timeout: has("on_timeout")?,
            on_handshake: has("on_handshake")?,
            on_restart: has("on_restart")?,
            on_undo: has("on_undo")?,
            set_cwnd: has("set_cwnd")?,
            report: has("report")?,
        };
        let attributes = Attributes {
            ssthresh: has("ssthresh")?,
            pacing_rate: has("pacing_rate")?,
            send_quantum: has("send_quantum")?,
            probes_rtt: has("probes_rtt")?,
        };
        let mut answers = Answers::default();
        Ok(attributes.read(&object, &mut answers).map(|()| Self {
            object: object.unbind(),
            cancel: Arc::clone(cancel),
            methods,
            attributes,
            answers,
        }))
    }

    /// Calls the object, unless the run is cancelled, and reads its attributes.
    fn call(
        &mut self,
        call: impl for<'py> FnOnce(Python<'py>, &Bound<'py, PyAny>) -> PyResult<()>,
    ) -> Result<(), PluginError> {
        if self.cancel.load(Ordering::Relaxed) {
            return Err(PluginError::new("the run was cancelled").because(CancelledWithin));
        }
        Python::attach(|py| {
            let object = self.object.bind(py);
            call(py, object).map_err(|error| raised(py, error))?;
            self.attributes.read(object, &mut self.answers)
        })
    }
}

/// Calls a method with arguments, whose result does not matter.
macro_rules! tell {
    ($controller:ident, $method:literal, $arguments:expr) => {{
        let arguments = $arguments;
        $controller.call(move |py, object| {
            object
                .call_method1(intern!(py, $method), arguments)
                .map(|_| ())
        })
    }};
}

impl PluginController for PythonController {
    fn on_ack(&mut self, sample: &controller::RateSample) -> Result<(), PluginError> {
        tell!(self, "on_ack", (RateSample(*sample),))
    }

    fn on_lost(&mut self, lost: &controller::LostSegment, now: Time) -> Result<(), PluginError> {
        if !self.methods.on_lost {
            return Ok(());
        }
        tell!(self, "on_lost", (LostSegment(*lost), now.as_secs_f64()))
    }

    fn on_recovery(&mut self, event: &controller::CongestionEvent) -> Result<(), PluginError> {
        if !self.methods.on_recovery {
            return Ok(());
        }
        tell!(self, "on_recovery", (CongestionEvent(*event),))
    }

    fn on_timeout(&mut self, event: &controller::CongestionEvent) -> Result<(), PluginError> {
        if !self.methods.on_timeout {
            return Ok(());
        }
        tell!(self, "on_timeout", (CongestionEvent(*event),))
    }

    fn on_handshake(&mut self, rtt: Span, now: Time) -> Result<(), PluginError> {
        if !self.methods.on_handshake {
            return Ok(());
        }
        tell!(self, "on_handshake", (rtt.as_secs_f64(), now.as_secs_f64()))
    }

    fn on_restart(&mut self, now: Time, delivered: u64) -> Result<(), PluginError> {
        if !self.methods.on_restart {
            return Ok(());
        }
        tell!(self, "on_restart", (delivered, now.as_secs_f64()))
    }

    fn on_undo(&mut self) -> Result<(), PluginError> {
        if !self.methods.on_undo {
            return Ok(());
        }
        tell!(self, "on_undo", ())
    }

    fn set_cwnd(&mut self, cwnd: f64) -> Result<(), PluginError> {
        if self.methods.set_cwnd {
            return tell!(self, "set_cwnd", (cwnd,));
        }
        self.call(move |py, object| object.setattr(intern!(py, "cwnd"), cwnd))
    }

    fn cwnd(&self) -> Result<f64, PluginError> {
        Ok(self.answers.cwnd)
    }

    fn ssthresh(&self) -> Result<Option<f64>, PluginError> {
        Ok(self.answers.ssthresh)
    }

    fn pacing_rate(&self) -> Result<Option<f64>, PluginError> {
        Ok(self.answers.pacing_rate)
    }

    fn send_quantum(&self) -> Result<u64, PluginError> {
        Ok(self.answers.send_quantum)
    }

    fn probes_rtt(&self) -> Result<bool, PluginError> {
        Ok(self.answers.probes_rtt)
    }

    fn report(&self, now: Time, tell: &mut dyn FnMut(&str, f64)) -> Result<(), PluginError> {
        if !self.methods.report {
            return Ok(());
        }
        let figures = Python::attach(|py| figures_of(self.object.bind(py), now))?;
        for (name, value) in &figures {
            tell(name, *value);
        }
        Ok(())
    }
}
