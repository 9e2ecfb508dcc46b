//! Queues of users, written in Python or in a crate of their own.
//!
//! The disciplines of this crate are generic over packets and trusted. A plug-in is a boxed [`PluginQueue`]
//! that sees packets as plain values ([`PacketView`]) and refers to them by handles ([`PacketId`]). The
//! adapter holds the packets and counts them, so it detects a packet that is returned twice, was never in
//! the queue, or is lost.
//!
//! The experiment file names a plug-in by a text (`class`) and passes it a free table (`params`).
//! [`Plugins`], which is given when the run is started, maps the text to the plug-in.
//!
//! A plug-in that fails, or breaks its contract, ends the run at once, because later results would have no
//! meaning. [`QueueDiscipline`](crate::QueueDiscipline) has no errors, so that other queues need not test
//! for them; the failure is an unwinding that [`catching`] ends.
//!
//! The hash of the source of a Python class, and of all that it imports, is part of the scenario.

mod adapter;
mod value;

use std::any::Any;
use std::collections::BTreeMap;
use std::error::Error;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

pub use adapter::Plugin;
use redtail_core::schemars::JsonSchema;
use redtail_core::serde::{Deserialize, Serialize};
use redtail_core::{Bytes, Dscp, Ecn, FlowId, Packet, ParamError, Time, schemars, serde};
pub use value::Value;

pub use crate::{Backlog, DropReason, FlowFacts, Internals, Limit, QueueContext};
use crate::{FigureNames, QueueKind};

/// The handle of a packet, valid only in the queue that got the packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PacketId {
    sequence: u64,
    index: u32,
}

impl PacketId {
    /// Returns a small number that no other packet of the queue has at the same time; it is used again when
    /// the packet has left.
    pub fn index(self) -> usize {
        self.index as usize
    }

    /// Returns the handle as a number, for plug-ins of other languages. `None` if more than 2^24 packets wait, or a
    /// queue has had more than 2^40.
    #[inline]
    pub fn as_u64(self) -> Option<u64> {
        let fits = self.index < 1 << INDEX_BITS && self.sequence < 1 << (64 - INDEX_BITS);
        fits.then_some(self.sequence << INDEX_BITS | u64::from(self.index))
    }

    /// Returns the handle of this number. It names no packet unless it is one that [`as_u64`](Self::as_u64) gave.
    #[inline]
    pub fn from_u64(number: u64) -> Self {
        Self {
            sequence: number >> INDEX_BITS,
            index: (number & ((1 << INDEX_BITS) - 1)) as u32,
        }
    }
}

/// Bits of the index in a handle that is a number.
const INDEX_BITS: u32 = 24;

/// A packet as a plug-in sees it, as it was when it arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketView {
    /// The handle of the packet.
    pub id: PacketId,
    /// Size on the link, headers included.
    pub size: Bytes,
    /// The flow of the packet.
    pub flow: FlowId,
    /// The facts about the flow.
    pub facts: FlowFacts,
    /// The ECN bits of the packet.
    pub ecn: Ecn,
    /// The DSCP of the packet.
    pub dscp: Dscp,
    /// The arrival time of the packet.
    pub enqueued: Time,
}

/// The actions of a plug-in on packets that it has got and not yet returned.
pub trait Actions {
    /// Drops a packet: the arriving one or a waiting one.
    ///
    /// # Errors
    /// If the queue does not have the packet.
    fn drop(&mut self, packet: PacketId, reason: DropReason) -> Result<(), PluginError>;

    /// Sets CE on a packet if its sender uses ECN. Returns whether the packet now carries CE.
    ///
    /// # Errors
    /// If the queue does not have the packet.
    fn mark(&mut self, packet: PacketId) -> Result<bool, PluginError>;

    /// Returns the backlog, without the arriving packet.
    fn backlog(&self) -> Backlog;
}

/// A queue of a user. Calls come with non-decreasing `now`.
///
/// An error that a method returns ends the run.
pub trait PluginQueue: Send {
    /// `packet` arrives. It waits from now on unless it is given to [`Actions::drop`].
    ///
    /// # Errors
    /// The queue has failed.
    fn enqueue(
        &mut self,
        packet: PacketView,
        now: Time,
        actions: &mut dyn Actions,
    ) -> Result<(), PluginError>;

    /// Returns the next packet to transmit. `None` while packets wait is for queues that hold packets back,
    /// and needs a [`next_wakeup`](Self::next_wakeup).
    ///
    /// # Errors
    /// The queue has failed.
    fn dequeue(
        &mut self,
        now: Time,
        actions: &mut dyn Actions,
    ) -> Result<Option<PacketId>, PluginError>;

    /// Returns the time at which the queue is to be woken and asked for a packet again. It is called after
    /// each of the other calls with `&mut self`. A time that is not later than `now` counts as `None`.
    ///
    /// # Errors
    /// The queue has failed.
    fn next_wakeup(&self, _now: Time) -> Result<Option<Time>, PluginError> {
        Ok(None)
    }

    /// Called at the time that [`next_wakeup`](Self::next_wakeup) returned.
    ///
    /// # Errors
    /// The queue has failed.
    fn on_wakeup(&mut self, _now: Time) -> Result<(), PluginError> {
        Ok(())
    }

    /// Returns how many of its packets the queue has lost without knowing yet which they are. They do not count
    /// as waiting; it drops them as soon as it knows them.
    fn missing(&self) -> u64 {
        0
    }

    /// Returns the state of the queue's control law, for time series.
    ///
    /// # Errors
    /// The queue has failed.
    fn internals(&self) -> Result<Internals, PluginError> {
        Ok(Internals::default())
    }

    /// The measurement period begins: [`report`](Self::report) covers the time from now on.
    ///
    /// # Errors
    /// The queue has failed.
    fn start_measuring(&mut self, _now: Time) -> Result<(), PluginError> {
        Ok(())
    }

    /// Reports the queue's own metrics, by name and in SI units; they appear as metrics `queue.NAME`.
    ///
    /// # Errors
    /// The queue has failed.
    fn report(&self, _now: Time, _tell: &mut dyn FnMut(&str, f64)) -> Result<(), PluginError> {
        Ok(())
    }
}

/// An error of a plug-in.
#[derive(Debug)]
pub struct PluginError {
    text: String,
    cause: Option<Box<dyn Any + Send + Sync>>,
}

impl PluginError {
    /// An error with the message `text`, a clause.
    pub fn new(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            cause: None,
        }
    }

    /// Adds a cause, for the code that started the run.
    #[must_use]
    pub fn because(self, cause: impl Any + Send + Sync) -> Self {
        Self {
            cause: Some(Box::new(cause)),
            ..self
        }
    }
}

impl fmt::Display for PluginError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Error for PluginError {}

/// The failure of a plug-in, which ended the run.
#[derive(Debug)]
pub struct PluginFailure {
    /// The plug-in, as the experiment file names it.
    pub class: String,
    /// The method that failed; `"new"` if the plug-in could not be made.
    pub method: &'static str,
    /// The simulated time of the failure; `None` before or after the run.
    pub at: Option<Time>,
    error: PluginError,
}

impl PluginFailure {
    /// Returns the problem, as a clause.
    pub fn problem(&self) -> String {
        self.error.to_string()
    }

    /// Returns the cause that the plug-in gave, if it is a `T`.
    pub fn cause<T: Any>(&self) -> Option<&T> {
        self.error.cause.as_ref()?.downcast_ref()
    }
}

impl fmt::Display for PluginFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the queue {:?} failed in {}", self.class, self.method)?;
        if let Some(at) = self.at {
            write!(f, " at {} s", at.as_secs_f64())?;
        }
        write!(f, ": {}", self.error)
    }
}

impl Error for PluginFailure {}

/// Runs `run`, and returns the failure of a plug-in that ended it. Panics continue.
///
/// # Errors
/// [`PluginFailure`] when a plug-in failed.
pub fn catching<R>(run: impl FnOnce() -> R) -> Result<R, Box<PluginFailure>> {
    // The unwinding drops the state of the run, so no incomplete state stays visible.
    catch_unwind(AssertUnwindSafe(run)).map_err(|payload| match payload.downcast() {
        Ok(failure) => failure,
        Err(panic) => resume_unwind(panic),
    })
}

/// Ends the run with the failure of a plug-in.
#[cold]
fn raise(failure: PluginFailure) -> ! {
    if cfg!(panic = "abort") {
        panic!("{failure}");
    }
    // This is not a panic, because the user must not see a message about a fault of redtail.
    resume_unwind(Box::new(failure))
}

/// The surroundings for which a plug-in is made.
#[derive(Clone, Debug)]
pub struct PluginContext {
    /// The link, its rate, the flows that cross it, and the queue's own random stream.
    pub queue: QueueContext,
    /// The limit of the file, in packets and bytes only. The queue itself must keep to it; the run fails if
    /// more waits.
    pub limit: Option<Limit>,
}

type Make =
    dyn Fn(&PluginParams, PluginContext) -> Result<Box<dyn PluginQueue>, PluginError> + Send + Sync;

/// The plug-ins by their names in an experiment file.
#[derive(Clone, Default)]
pub struct Plugins(BTreeMap<String, Arc<Make>>);

impl Plugins {
    /// No plug-ins.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a plug-in: for `class = "NAME"`, `make` returns the queue.
    #[must_use]
    pub fn with<M>(mut self, name: &str, make: M) -> Self
    where
        M: Fn(&PluginParams, PluginContext) -> Result<Box<dyn PluginQueue>, PluginError>
            + Send
            + Sync
            + 'static,
    {
        self.0.insert(name.to_owned(), Arc::new(make));
        self
    }

    fn make(
        &self,
        params: &PluginParams,
        context: PluginContext,
    ) -> Result<Box<dyn PluginQueue>, PluginError> {
        let Some(make) = self.0.get(&params.class) else {
            let known: Vec<_> = self.0.keys().map(String::as_str).collect();
            let known = match known.as_slice() {
                [] => "none".to_owned(),
                known => known.join(", "),
            };
            return Err(PluginError::new(format!(
                "this run was started without it; known: {known}"
            )));
        };
        make(params, context)
    }
}

impl fmt::Debug for Plugins {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// A queue of your own, written in Python or Rust.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(crate = "serde", deny_unknown_fields)]
#[schemars(crate = "schemars")]
pub struct PluginParams {
    /// The queue: in Python `"my_queue.py:MyQueue"`, a file in the experiment's folder and a class in it, or `"package.module:MyQueue"`; in Rust the name under which it was registered. `redtail run` executes this code; outside the experiment's folder it needs `--allow-code`.
    pub class: String,
    /// Limit on the waiting packets. The queue is given this limit and must keep to it; the run fails if it does not. Without it the queue has only its own limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<Limit>,
    /// Parameters of the queue; a class in Python gets each key as an argument of that name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub params: BTreeMap<String, Value>,
    /// Hash of the source of a class in Python, which is part of the key of results; filled in when the file is read. If it is given, the source of the class must have this hash.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
}

impl QueueKind for PluginParams {
    type Queue<P: Packet> = Plugin<P>;

    fn example() -> &'static str {
        "class = \"fifo\"\nlimit = \"100 packets\""
    }

    fn check(&self) -> Result<(), ParamError> {
        if self.class.is_empty() {
            return Err(ParamError::new(
                "class",
                "names nothing",
                "a name such as \"my_queue.py:MyQueue\"",
            ));
        }
        if let Some((key, _)) = self.params.iter().find(|(_, value)| !value.is_finite()) {
            return Err(ParamError::new(
                format!("params.{key}"),
                "has a number without bounds in it",
                "finite numbers",
            ));
        }
        self.limit.map_or(Ok(()), |limit| limit.check())
    }

    fn limit(&self) -> Option<Limit> {
        self.limit
    }

    fn figures(&self, names: &mut FigureNames) {
        names.add_any();
    }

    fn build<P: Packet>(&self, context: QueueContext) -> Plugin<P> {
        Plugin::new(self, context)
    }

    fn plugins(&mut self, key: &str, visit: &mut PluginVisitor<'_>) -> Result<(), ParamError> {
        visit(key, self)
    }
}

/// A visitor of the plug-ins of an experiment before its runs: it gets the key of each plug-in's table and
/// can complete or refuse the table.
pub type PluginVisitor<'a> = dyn FnMut(&str, &mut PluginParams) -> Result<(), ParamError> + 'a;
