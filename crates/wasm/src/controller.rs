//! A congestion controller that is a WebAssembly module.
//!
//! What it decides is a structure in its memory, `redtail_control`, which is read after each call.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use redtail_core::plugin::{Identity, PluginError};
use redtail_core::{Span, Time};
use redtail_transport::plugin::{
    CongestionEvent, CongestionKind, Episode, LostSegment, PluginContext, PluginController,
    RateSample,
};
use wasmtime::TypedFunc;

use crate::calls::{Bytes, Instance, NONE};
use crate::module::{Function, Module, function, needed, telling};

/// The functions of a controller.
pub(crate) const FUNCTIONS: &[Function] = &[
    needed("new", "i", ""),
    needed("control", "", "i"),
    telling("on_ack", "i", ""),
    function("on_lost", "il", ""),
    function("on_recovery", "i", ""),
    function("on_timeout", "i", ""),
    function("on_handshake", "ll", ""),
    function("on_restart", "ll", ""),
    function("on_undo", "", ""),
    function("set_cwnd", "d", ""),
    function("report", "l", ""),
];

/// Bytes of `redtail_control`.
const CONTROL: usize = 40;

struct Functions {
    on_ack: TypedFunc<u32, ()>,
    on_lost: Option<TypedFunc<(u32, u64), ()>>,
    on_recovery: Option<TypedFunc<u32, ()>>,
    on_timeout: Option<TypedFunc<u32, ()>>,
    on_handshake: Option<TypedFunc<(u64, u64), ()>>,
    on_restart: Option<TypedFunc<(u64, u64), ()>>,
    on_undo: Option<TypedFunc<(), ()>>,
    set_cwnd: Option<TypedFunc<f64, ()>>,
    report: Option<TypedFunc<u64, ()>>,
}

/// What the module had decided after the latest call.
#[derive(Default)]
struct Control {
    cwnd: f64,
    ssthresh: Option<f64>,
    pacing_rate: Option<f64>,
    send_quantum: u64,
    probes_rtt: bool,
    state: String,
    /// The address of the state's name.
    state_at: u32,
}

struct WasmController {
    /// A report may change the memory of the module.
    instance: RefCell<Instance>,
    functions: Functions,
    /// The address of `redtail_control`.
    at: usize,
    control: Control,
}

impl Module {
    /// Makes the controller with this name.
    ///
    /// # Errors
    /// [`PluginError`]: the module has failed, or does not know a key of `params`.
    pub fn make_controller(
        &self,
        name: &str,
        identity: &Identity,
        context: PluginContext,
        cancel: &Arc<AtomicBool>,
    ) -> Result<Box<dyn PluginController>, PluginError> {
        let mut instance = Instance::new(self, context.stream, identity.params.clone(), cancel)?;
        let connection = Bytes::<16>::filled(|bytes| {
            bytes.f64(context.initial_cwnd).u32(context.mss);
        });
        instance.make(name, &connection, &identity.params)?;
        let control = instance.needed::<(), u32>(name, "control");
        let at = instance.call(&control, ())? as usize;
        let functions = Functions {
            on_ack: instance.needed(name, "on_ack"),
            on_lost: instance.function(name, "on_lost"),
            on_recovery: instance.function(name, "on_recovery"),
            on_timeout: instance.function(name, "on_timeout"),
            on_handshake: instance.function(name, "on_handshake"),
            on_restart: instance.function(name, "on_restart"),
            on_undo: instance.function(name, "on_undo"),
            set_cwnd: instance.function(name, "set_cwnd"),
            report: instance.function(name, "report"),
        };
        let mut made = WasmController {
            instance: RefCell::new(instance),
            functions,
            at,
            control: Control::default(),
        };
        made.read()?;
        Ok(Box::new(made))
    }
}

/// `redtail_sample`.
fn sample_bytes(sample: &RateSample) -> Bytes<160> {
    let span = |span: Option<Span>| span.map_or(NONE, Span::as_ps);
    Bytes::filled(|bytes| {
        bytes
            .u64(sample.now.as_ps())
            .u64(sample.newly_acked)
            .u64(sample.advanced)
            .u64(sample.newly_lost)
            .u64(sample.newly_marked)
            .u64(sample.total_delivered)
            .u64(sample.total_marked)
            .u64(sample.prior_delivered.unwrap_or(NONE))
            .u64(sample.delivered)
            .u64(sample.lost)
            .u64(sample.marked)
            .f64(sample.delivery_rate.unwrap_or(0.0))
            .u64(span(sample.rtt))
            .u64(span(sample.srtt))
            .u64(sample.prior_in_flight)
            .u64(sample.in_flight)
            .u64(sample.sent_in_flight)
            .u64(sample.held_for.as_ps())
            .u32(match sample.episode {
                Episode::Open => 0,
                Episode::Recovery => 1,
                Episode::Loss => 2,
            })
            .u32(u32::from(sample.app_limited))
            .u32(u32::from(sample.window_limited));
    })
}

/// `redtail_lost`.
fn lost_bytes(lost: &LostSegment) -> Bytes<40> {
    Bytes::filled(|bytes| {
        bytes
            .u64(lost.start)
            .u64(lost.sent_in_flight)
            .u64(lost.lost)
            .u64(lost.total_delivered)
            .u32(lost.len)
            .u32(u32::from(lost.app_limited));
    })
}

/// `redtail_event`.
fn event_bytes(event: &CongestionEvent) -> Bytes<24> {
    let (cause, repeated) = match event.kind {
        CongestionKind::Loss => (0, false),
        CongestionKind::Ecn => (1, false),
        CongestionKind::Timeout { repeated } => (2, repeated),
    };
    Bytes::filled(|bytes| {
        bytes
            .u64(event.now.as_ps())
            .u64(event.flight)
            .u32(cause)
            .u32(u32::from(repeated));
    })
}

impl WasmController {
    /// Reads what the module has decided.
    fn read(&mut self) -> Result<(), PluginError> {
        let instance = self.instance.get_mut();
        let Some(bytes) = instance.read::<CONTROL>(self.at) else {
            return Err(PluginError::new("its redtail_control is not in its memory"));
        };
        let number = |at: usize| {
            let part = bytes[at..at + 8].try_into().expect("8 bytes");
            f64::from_le_bytes(part)
        };
        let word = |at: usize| {
            let part = bytes[at..at + 4].try_into().expect("4 bytes");
            u32::from_le_bytes(part)
        };
        let control = &mut self.control;
        control.cwnd = number(0);
        control.ssthresh = Some(number(8)).filter(|&ssthresh| ssthresh != f64::INFINITY);
        control.pacing_rate = Some(number(16)).filter(|&rate| rate != 0.0);
        let quantum = number(24);
        if !(0.0..=redtail_transport::plugin::LARGEST_WINDOW).contains(&quantum) {
            return Err(PluginError::new(format!(
                "send_quantum is {quantum}; accepted: bytes from 0 to 1 TiB"
            )));
        }
        control.send_quantum = quantum as u64;
        control.probes_rtt = word(36) != 0;
        let state_at = word(32);
        if state_at != control.state_at {
            control.state = instance.text(state_at)?;
            control.state_at = state_at;
        }
        Ok(())
    }

    /// Calls a function with a structure, if the module has it.
    fn tell(
        &mut self,
        function: fn(&Functions) -> Option<&TypedFunc<u32, ()>>,
        structure: &[u8],
    ) -> Result<(), PluginError> {
        let Some(function) = function(&self.functions) else {
            return Ok(());
        };
        let instance = self.instance.get_mut();
        let at = instance.write(structure);
        instance.call(function, at)?;
        self.read()
    }
}

impl PluginController for WasmController {
    fn on_ack(&mut self, sample: &RateSample) -> Result<(), PluginError> {
        self.tell(|functions| Some(&functions.on_ack), &sample_bytes(sample))
    }

    fn on_lost(&mut self, lost: &LostSegment, now: Time) -> Result<(), PluginError> {
        let Some(function) = &self.functions.on_lost else {
            return Ok(());
        };
        let instance = self.instance.get_mut();
        let at = instance.write(&lost_bytes(lost));
        instance.call(function, (at, now.as_ps()))?;
        self.read()
    }

    fn on_recovery(&mut self, event: &CongestionEvent) -> Result<(), PluginError> {
        self.tell(
            |functions| functions.on_recovery.as_ref(),
            &event_bytes(event),
        )
    }

    fn on_timeout(&mut self, event: &CongestionEvent) -> Result<(), PluginError> {
        self.tell(
            |functions| functions.on_timeout.as_ref(),
            &event_bytes(event),
        )
    }

    fn on_handshake(&mut self, rtt: Span, now: Time) -> Result<(), PluginError> {
        let Some(function) = &self.functions.on_handshake else {
            return Ok(());
        };
        let arguments = (rtt.as_ps(), now.as_ps());
        self.instance.get_mut().call(function, arguments)?;
        self.read()
    }

    fn on_restart(&mut self, now: Time, delivered: u64) -> Result<(), PluginError> {
        let Some(function) = &self.functions.on_restart else {
            return Ok(());
        };
        let arguments = (delivered, now.as_ps());
        self.instance.get_mut().call(function, arguments)?;
        self.read()
    }

    fn on_undo(&mut self) -> Result<(), PluginError> {
        let Some(function) = &self.functions.on_undo else {
            return Ok(());
        };
        self.instance.get_mut().call(function, ())?;
        self.read()
    }

    fn set_cwnd(&mut self, cwnd: f64) -> Result<(), PluginError> {
        let instance = self.instance.get_mut();
        match &self.functions.set_cwnd {
            Some(function) => instance.call(function, cwnd)?,
            None => instance.write_at(self.at, &cwnd.to_le_bytes()),
        }
        self.read()
    }

    fn cwnd(&self) -> Result<f64, PluginError> {
        Ok(self.control.cwnd)
    }

    fn ssthresh(&self) -> Result<Option<f64>, PluginError> {
        Ok(self.control.ssthresh)
    }

    fn pacing_rate(&self) -> Result<Option<f64>, PluginError> {
        Ok(self.control.pacing_rate)
    }

    fn send_quantum(&self) -> Result<u64, PluginError> {
        Ok(self.control.send_quantum)
    }

    fn probes_rtt(&self) -> Result<bool, PluginError> {
        Ok(self.control.probes_rtt)
    }

    fn state(&self) -> Result<&str, PluginError> {
        Ok(&self.control.state)
    }

    fn report(&self, now: Time, tell: &mut dyn FnMut(&str, f64)) -> Result<(), PluginError> {
        let Some(function) = &self.functions.report else {
            return Ok(());
        };
        let mut instance = self.instance.borrow_mut();
        for (name, value) in &instance.call_reporting(function, now.as_ps())? {
            tell(name, *value);
        }
        Ok(())
    }
}
