//! What a module and redtail tell each other during a call.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use redtail_core::Stream;
use redtail_core::plugin::CancelledWithin;
use redtail_qdisc::DropReason;
use redtail_qdisc::plugin::{PacketId, PluginError, Value};
use wasmtime::{
    Caller, Linker, Memory, ResourceLimiter, Store, StoreLimits, StoreLimitsBuilder, Trap,
    UpdateDeadline,
};

use crate::engine::{MAX_CALL, MAX_MEMORY, TICK, engine, start_ticks};
use crate::module::{Module, one_line};

/// Parameters and results of a function, a letter for each: i32, l is i64, f64.
pub(crate) type Signature = (&'static str, &'static str);

/// The most figures that a module may report, and keys of `params` that it may ask for.
pub const MAX_FIGURES: usize = 200;

/// No limit, no packet, no time: `REDTAIL_NONE`.
pub(crate) const NONE: u64 = u64::MAX;

/// The version of the interface.
const VERSION: i32 = 1;
/// Bytes of the buffer through which structures are passed.
pub(crate) const BUFFER: usize = 256;
/// Bytes of the longest name or message that a module gives.
const MAX_TEXT: usize = 200;

/// What every module has.
pub(crate) const ABI: &[(&str, Signature)] =
    &[("redtail_abi", ("", "i")), ("redtail_buffer", ("", "i"))];

/// What modules may call.
pub(crate) const IMPORTS: &[(&str, Signature)] = &[
    ("drop", ("li", "")),
    ("mark", ("l", "")),
    ("uniform", ("", "d")),
    ("number", ("id", "d")),
    ("text", ("iii", "i")),
    ("report", ("id", "")),
    ("fail", ("i", "")),
];

/// The cause of a failure: a key of `params` that the module does not accept.
#[derive(Clone, Debug)]
pub struct WrongParam {
    /// The key below the plug-in's table.
    pub key: String,
    /// What is wrong.
    pub problem: String,
    /// What is accepted.
    pub accepted: String,
}

impl WrongParam {
    fn error(self) -> PluginError {
        let text = format!("{} {}; accepted: {}", self.key, self.problem, self.accepted);
        PluginError::new(text).because(self)
    }
}

/// What a module has asked for.
#[derive(Clone, Copy)]
pub(crate) enum Asked {
    Drop(PacketId, DropReason),
    Mark(PacketId),
}

/// What the functions of redtail act on.
pub(crate) struct State {
    limits: StoreLimits,
    stream: Stream,
    params: BTreeMap<String, Value>,
    /// The keys of `params` that the module has asked for.
    known: Vec<String>,
    /// Whether packets may be marked and dropped now.
    open: bool,
    pub asked: Vec<Asked>,
    /// Figures that the module reports, during `report`.
    figures: Option<Vec<(String, f64)>>,
    memory: Option<Memory>,
    /// Calls so far.
    calls: u64,
    patience: Patience,
}

/// What is known of the call that runs.
#[derive(Default)]
struct Patience {
    /// The call that was running at the last tick.
    call: u64,
    /// The ticks for which it has been running.
    ticks: u32,
    cancel: Arc<AtomicBool>,
}

/// A module with its memory.
pub(crate) struct Instance {
    pub store: Store<State>,
    pub instance: wasmtime::Instance,
    memory: Memory,
    /// The address of the buffer.
    buffer: usize,
}

impl Instance {
    /// Makes an instance with memory of its own.
    pub fn new(
        module: &Module,
        stream: Stream,
        params: BTreeMap<String, Value>,
        cancel: &Arc<AtomicBool>,
    ) -> Result<Self, PluginError> {
        start_ticks();
        let limits = StoreLimitsBuilder::new()
            .memory_size(MAX_MEMORY)
            .table_elements(1 << 16)
            .instances(1)
            .memories(1)
            .tables(4)
            .build();
        let state = State {
            limits,
            stream,
            params,
            known: Vec::new(),
            open: false,
            asked: Vec::new(),
            figures: None,
            memory: None,
            calls: 0,
            patience: Patience {
                cancel: Arc::clone(cancel),
                ..Patience::default()
            },
        };
        let mut store = Store::new(engine(), state);
        store.limiter(|state| -> &mut dyn ResourceLimiter { &mut state.limits });
        store.set_epoch_deadline(1);
        store.epoch_deadline_callback(|mut context| context.data_mut().look());
        let made = module.ready.instantiate(&mut store);
        let instance = made.map_err(|error| failed(&error))?;
        let memory = instance.get_memory(&mut store, "memory");
        let memory = memory.expect("the module has been checked");
        store.data_mut().memory = Some(memory);
        let mut found = Self {
            store,
            instance,
            memory,
            buffer: 0,
        };
        let version: i32 = found.ask("redtail_abi")?;
        if version != VERSION {
            return Err(PluginError::new(format!(
                "is made for version {version} of the interface; accepted: version {VERSION}, \
                 that of redtail_plugin.h from `redtail init queue --lang c`"
            )));
        }
        found.buffer = found.ask::<i32>("redtail_buffer")? as u32 as usize;
        let end = found.buffer.checked_add(BUFFER);
        if end.is_none_or(|end| end > memory.data_size(&found.store)) {
            return Err(PluginError::new("its buffer is not in its memory"));
        }
        Ok(found)
    }

    fn ask<R: wasmtime::WasmResults>(&mut self, name: &str) -> Result<R, PluginError> {
        let function = self.instance.get_typed_func::<(), R>(&mut self.store, name);
        let function = function.expect("the module has been checked");
        function
            .call(&mut self.store, ())
            .map_err(|error| failed(&error))
    }

    /// Makes the plug-in with this name, which reads `params`.
    pub fn make(
        &mut self,
        name: &str,
        context: &[u8],
        params: &BTreeMap<String, Value>,
    ) -> Result<(), PluginError> {
        let new = self.needed::<u32, ()>(name, "new");
        let told = self.write(context);
        self.call(&new, told)?;
        self.require_known(params)
    }

    /// Returns a function that every plug-in of its kind has.
    pub fn needed<P: wasmtime::WasmParams, R: wasmtime::WasmResults>(
        &mut self,
        name: &str,
        function: &str,
    ) -> wasmtime::TypedFunc<P, R> {
        let found = self.function(name, function);
        found.expect("the module has been checked")
    }

    /// Returns a function of a plug-in, if it is there.
    pub fn function<P: wasmtime::WasmParams, R: wasmtime::WasmResults>(
        &mut self,
        name: &str,
        function: &str,
    ) -> Option<wasmtime::TypedFunc<P, R>> {
        let full = format!("{name}_{function}");
        self.instance.get_typed_func(&mut self.store, &full).ok()
    }

    /// Calls a function.
    #[inline]
    pub fn call<P: wasmtime::WasmParams, R: wasmtime::WasmResults>(
        &mut self,
        function: &wasmtime::TypedFunc<P, R>,
        arguments: P,
    ) -> Result<R, PluginError> {
        self.store.data_mut().calls += 1;
        function
            .call(&mut self.store, arguments)
            .map_err(|error| failed(&error))
    }

    /// Calls a function during which packets may be marked and dropped.
    #[inline]
    pub fn call_open<P: wasmtime::WasmParams, R: wasmtime::WasmResults>(
        &mut self,
        function: &wasmtime::TypedFunc<P, R>,
        arguments: P,
    ) -> Result<R, PluginError> {
        self.store.data_mut().open = true;
        let result = self.call(function, arguments);
        self.store.data_mut().open = false;
        result
    }

    /// Calls a function during which figures may be reported, and returns these.
    pub fn call_reporting(
        &mut self,
        function: &wasmtime::TypedFunc<u64, ()>,
        now: u64,
    ) -> Result<Vec<(String, f64)>, PluginError> {
        self.store.data_mut().figures = Some(Vec::new());
        let result = self.call(function, now);
        let figures = self.store.data_mut().figures.take();
        result.map(|()| figures.unwrap_or_default())
    }

    /// Refuses a key of `params` for which the module has not asked.
    fn require_known(&self, params: &BTreeMap<String, Value>) -> Result<(), PluginError> {
        let known = &self.store.data().known;
        let Some(key) = params.keys().find(|key| !known.contains(key)) else {
            return Ok(());
        };
        let accepted = match known.as_slice() {
            [] => "none".to_owned(),
            some => some.join(", "),
        };
        let wrong = WrongParam {
            key: "params".to_owned(),
            problem: format!("have a key that the module does not know: {key}"),
            accepted,
        };
        Err(wrong.error())
    }

    /// Writes a structure into the buffer, and returns its address.
    #[inline]
    pub fn write(&mut self, structure: &[u8]) -> u32 {
        debug_assert!(structure.len() <= BUFFER);
        self.write_at(self.buffer, structure);
        self.buffer as u32
    }

    /// Writes bytes to a place that has been found in the memory, which never becomes smaller.
    #[inline]
    pub fn write_at(&mut self, at: usize, bytes: &[u8]) {
        let memory = self.memory.data_mut(&mut self.store);
        memory[at..at + bytes.len()].copy_from_slice(bytes);
    }

    /// Reads bytes; `None` if they are not in the memory.
    #[inline]
    pub fn read<const N: usize>(&self, at: usize) -> Option<[u8; N]> {
        let bytes = self.memory.data(&self.store).get(at..)?;
        bytes.first_chunk().copied()
    }

    /// Reads a text; an empty one at address 0.
    pub fn text(&self, at: u32) -> Result<String, PluginError> {
        match at {
            0 => Ok(String::new()),
            _ => text_in(self.memory.data(&self.store), at).map_err(PluginError::new),
        }
    }
}

/// A structure of the interface, field after field as C lays them out when each is at a multiple of its size.
pub(crate) struct Bytes<const N: usize> {
    bytes: [u8; N],
    end: usize,
}

impl<const N: usize> std::ops::Deref for Bytes<N> {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

impl<const N: usize> Bytes<N> {
    /// A structure with the fields that `fill` puts into it. It is filled in place: to pass it from field to field by value
    /// was a fifth of the time of a run with a controller.
    #[inline]
    pub fn filled(fill: impl FnOnce(&mut Self)) -> Self {
        let mut made = Self {
            bytes: [0; N],
            end: 0,
        };
        fill(&mut made);
        made
    }

    #[inline]
    fn put<const M: usize>(&mut self, value: [u8; M]) -> &mut Self {
        self.bytes[self.end..self.end + M].copy_from_slice(&value);
        self.end += M;
        self
    }

    #[inline]
    pub fn u64(&mut self, value: u64) -> &mut Self {
        self.put(value.to_le_bytes())
    }

    #[inline]
    pub fn f64(&mut self, value: f64) -> &mut Self {
        self.put(value.to_le_bytes())
    }

    #[inline]
    pub fn u32(&mut self, value: u32) -> &mut Self {
        self.put(value.to_le_bytes())
    }

    #[inline]
    pub fn u16(&mut self, value: u16) -> &mut Self {
        self.put(value.to_le_bytes())
    }

    #[inline]
    pub fn u8(&mut self, value: u8) -> &mut Self {
        self.put([value])
    }
}

impl State {
    /// Looks at a call that runs for longer than to the next tick.
    fn look(&mut self) -> wasmtime::Result<UpdateDeadline> {
        match self.patience.look(self.calls) {
            Ok(()) => Ok(UpdateDeadline::Continue(1)),
            Err(error) => Err(Stopped::of(error)),
        }
    }
}

impl Patience {
    /// A tick has come during this call.
    fn look(&mut self, call: u64) -> Result<(), PluginError> {
        if self.cancel.load(Ordering::Relaxed) {
            return Err(PluginError::new("the run was cancelled").because(CancelledWithin));
        }
        if self.call != call {
            (self.call, self.ticks) = (call, 0);
        }
        self.ticks += 1;
        if TICK * self.ticks > MAX_CALL {
            let text = format!("it has not returned after {} s", MAX_CALL.as_secs());
            return Err(PluginError::new(text));
        }
        Ok(())
    }
}

/// An error of redtail's own, on its way through a module.
#[derive(Debug)]
struct Stopped(std::sync::Mutex<Option<PluginError>>);

impl Stopped {
    fn of(error: PluginError) -> wasmtime::Error {
        wasmtime::Error::new(Self(std::sync::Mutex::new(Some(error))))
    }

    fn text(text: impl Into<String>) -> wasmtime::Error {
        Self::of(PluginError::new(text))
    }
}

impl std::fmt::Display for Stopped {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("redtail has stopped it")
    }
}

impl std::error::Error for Stopped {}

/// The error of a call.
#[cold]
fn failed(error: &wasmtime::Error) -> PluginError {
    if let Some(stopped) = error.downcast_ref::<Stopped>() {
        let own = stopped.0.lock().ok().and_then(|mut own| own.take());
        return own.unwrap_or_else(|| PluginError::new(stopped.to_string()));
    }
    let mut text = match error.downcast_ref::<Trap>() {
        Some(trap) => format!(
            "it was stopped: {}",
            trap.to_string().replace("wasm trap: ", "")
        ),
        None => one_line(error),
    };
    if let Some(trace) = error.downcast_ref::<wasmtime::WasmBacktrace>() {
        let names = trace.frames().iter().filter_map(|frame| frame.func_name());
        let names: Vec<_> = names.take(5).collect();
        if !names.is_empty() {
            text.push_str(&format!(" (in {})", names.join(", called by ")));
        }
    }
    PluginError::new(text)
}

/// The text at an address, up to a zero.
fn text_in(memory: &[u8], at: u32) -> Result<String, String> {
    let bytes = memory.get(at as usize..).unwrap_or_default();
    let end = bytes.iter().take(MAX_TEXT + 1).position(|&byte| byte == 0);
    let text = end.and_then(|end| std::str::from_utf8(&bytes[..end]).ok());
    text.map(str::to_owned).ok_or_else(|| {
        format!(
            "it gave a text that is none; accepted: at most {MAX_TEXT} bytes of UTF-8 before a zero"
        )
    })
}

fn text(caller: &Caller<'_, State>, at: u32) -> wasmtime::Result<String> {
    let memory = caller.data().memory;
    let memory = memory.expect("there is a memory before any call");
    text_in(memory.data(caller), at).map_err(Stopped::text)
}

fn packet(state: &State, id: u64) -> wasmtime::Result<PacketId> {
    if !state.open {
        return Err(Stopped::text(
            "packets are marked and dropped while enqueue or dequeue runs, and at no other time",
        ));
    }
    Ok(PacketId::from_u64(id))
}

fn drop(mut caller: Caller<'_, State>, id: u64, reason: i32) -> wasmtime::Result<()> {
    let state = caller.data_mut();
    let id = packet(state, id)?;
    let reason = match reason {
        0 => DropReason::Limit,
        1 => DropReason::Early,
        2 => DropReason::Forced,
        _ => {
            return Err(Stopped::text(format!(
                "it drops a packet for the reason {reason}; accepted: 0, 1 or 2, by their names \
                 REDTAIL_LIMIT, REDTAIL_EARLY and REDTAIL_FORCED"
            )));
        }
    };
    state.asked.push(Asked::Drop(id, reason));
    Ok(())
}

fn mark(mut caller: Caller<'_, State>, id: u64) -> wasmtime::Result<()> {
    let state = caller.data_mut();
    let id = packet(state, id)?;
    state.asked.push(Asked::Mark(id));
    Ok(())
}

/// The value of a key of `params`; the module knows the key from now on.
fn param(caller: &mut Caller<'_, State>, key: u32) -> wasmtime::Result<(String, Option<Value>)> {
    let key = text(caller, key)?;
    let state = caller.data_mut();
    if !state.known.contains(&key) {
        if state.known.len() >= MAX_FIGURES {
            return Err(Stopped::text(format!(
                "it has more than {MAX_FIGURES} parameters"
            )));
        }
        state.known.push(key.clone());
    }
    let value = state.params.get(&key).cloned();
    Ok((key, value))
}

/// The refusal of a value, which whoever shows it has beside the key.
fn wrong(key: &str, problem: &str, accepted: &str) -> wasmtime::Error {
    let wrong = WrongParam {
        key: format!("params.{key}"),
        problem: problem.to_owned(),
        accepted: accepted.to_owned(),
    };
    Stopped::of(wrong.error())
}

fn number(mut caller: Caller<'_, State>, key: u32, otherwise: f64) -> wasmtime::Result<f64> {
    let (key, value) = param(&mut caller, key)?;
    match value {
        None => Ok(otherwise),
        Some(Value::Bool(on)) => Ok(f64::from(u8::from(on))),
        Some(value) => value
            .as_f64()
            .ok_or_else(|| wrong(&key, "is no number", "a number, true or false")),
    }
}

fn text_param(
    mut caller: Caller<'_, State>,
    key: u32,
    buffer: u32,
    size: u32,
) -> wasmtime::Result<i32> {
    let (key, value) = param(&mut caller, key)?;
    let Some(value) = value else { return Ok(-1) };
    let Value::Text(found) = &value else {
        return Err(wrong(&key, "is no text", "a text"));
    };
    let memory = caller
        .data()
        .memory
        .expect("there is a memory before any call");
    let place = memory.data_mut(&mut caller).get_mut(buffer as usize..);
    let place = place.and_then(|place| place.get_mut(..size as usize));
    let Some(place) = place.filter(|place| !place.is_empty()) else {
        return Err(Stopped::text("the buffer for a text is not in its memory"));
    };
    let bytes = found.as_bytes();
    let some = bytes.len().min(place.len() - 1);
    place[..some].copy_from_slice(&bytes[..some]);
    place[some] = 0;
    Ok(i32::try_from(bytes.len()).unwrap_or(i32::MAX))
}

fn report(mut caller: Caller<'_, State>, name: u32, value: f64) -> wasmtime::Result<()> {
    let name = text(&caller, name)?;
    let Some(figures) = &mut caller.data_mut().figures else {
        return Err(Stopped::text(
            "figures are reported while report runs, and at no other time",
        ));
    };
    if figures.len() >= MAX_FIGURES {
        return Err(Stopped::text(format!(
            "it reports more than {MAX_FIGURES} figures"
        )));
    }
    figures.push((name, value));
    Ok(())
}

fn fail(caller: Caller<'_, State>, message: u32) -> wasmtime::Result<()> {
    Err(Stopped::text(format!(
        "it says: {}",
        text(&caller, message)?
    )))
}

/// The functions of redtail.
pub(crate) fn linker() -> wasmtime::Result<Linker<State>> {
    let mut linker = Linker::new(engine());
    linker
        .func_wrap("redtail", "drop", drop)?
        .func_wrap("redtail", "mark", mark)?
        .func_wrap("redtail", "uniform", |mut caller: Caller<'_, State>| {
            caller.data_mut().stream.uniform()
        })?
        .func_wrap("redtail", "number", number)?
        .func_wrap("redtail", "text", text_param)?
        .func_wrap("redtail", "report", report)?
        .func_wrap("redtail", "fail", fail)?;
    Ok(linker)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_calls_are_not_one_that_does_not_return() {
        let mut patience = Patience::default();
        for call in 1..1000 {
            patience.look(call).expect("each call is a short one");
        }
        let ticks = (MAX_CALL.as_millis() / TICK.as_millis()) as usize;
        let borne = (0..2 * ticks).take_while(|_| patience.look(1000).is_ok());
        assert_eq!(borne.count(), ticks);
    }
}
