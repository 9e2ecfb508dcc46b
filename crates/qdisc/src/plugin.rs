//! Queues that are not redtail's own: written in Python, or in a user's own crate.
//!
//! A discipline of ours is generic over its packets and trusted. A plug-in is neither: it is a
//! boxed [`PluginQueue`] that sees packets as plain values ([`PacketView`]) and names them by
//! handles ([`PacketId`]). The packets themselves stay with the adapter, which keeps the books
//! and so notices a packet that is returned twice, was never there, or is lost.
//!
//! The experiment file names a plug-in by a text (`class`) and hands it a free table
//! (`params`). What the text stands for is told where the run is started ([`Plugins`]).
//!
//! A plug-in that fails, or breaks its contract, ends the run at once: nothing that came after
//! would mean anything. [`QueueDiscipline`](crate::QueueDiscipline) has no errors, so that the
//! queues of ours need not look for any; the failure travels as an unwinding that
//! [`catching`] ends.

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
use crate::{FigureNames, QueueParams};

/// Names a packet to the queue that has been given it, and to no other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PacketId {
    sequence: u64,
    index: u32,
}

impl PacketId {
    /// A small number that no other packet of the queue has at the same time; it is used
    /// again when the packet has left.
    pub fn index(self) -> usize {
        self.index as usize
    }
}

/// A packet as a plug-in sees it, as it was when it arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketView {
    /// Its name.
    pub id: PacketId,
    /// Size on the link, headers included.
    pub size: Bytes,
    /// The flow it belongs to.
    pub flow: FlowId,
    /// What all packets of this flow have in common.
    pub facts: FlowFacts,
    /// Its ECN bits.
    pub ecn: Ecn,
    /// The class it asks for.
    pub dscp: Dscp,
    /// When it arrived.
    pub enqueued: Time,
}

/// What a plug-in may do with packets that it has been given and has not yet returned.
pub trait Actions {
    /// Drops a packet, the arriving one or one that waits.
    ///
    /// # Errors
    /// When the queue does not have it.
    fn drop(&mut self, packet: PacketId, reason: DropReason) -> Result<(), PluginError>;

    /// Sets CE on a packet if its sender uses ECN; says whether the packet now carries CE.
    ///
    /// # Errors
    /// When the queue does not have it.
    fn mark(&mut self, packet: PacketId) -> Result<bool, PluginError>;

    /// What waits; the arriving packet does not count.
    fn backlog(&self) -> Backlog;
}

/// A queue that is not redtail's own. Calls come with non-decreasing `now`.
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

    /// The next packet to transmit. `None` while packets wait is for queues that hold packets
    /// back, and needs a [`next_wakeup`](Self::next_wakeup).
    ///
    /// # Errors
    /// The queue has failed.
    fn dequeue(
        &mut self,
        now: Time,
        actions: &mut dyn Actions,
    ) -> Result<Option<PacketId>, PluginError>;

    /// When the queue wants to be woken, to be asked for a packet again; asked after each of
    /// the other calls that are given `&mut self`. A time that has come is as good as none.
    ///
    /// # Errors
    /// The queue has failed.
    fn next_wakeup(&self, _now: Time) -> Result<Option<Time>, PluginError> {
        Ok(None)
    }

    /// The time that [`next_wakeup`](Self::next_wakeup) gave has come.
    ///
    /// # Errors
    /// The queue has failed.
    fn on_wakeup(&mut self, _now: Time) -> Result<(), PluginError> {
        Ok(())
    }

    /// The state of the queue's control law, for time series.
    ///
    /// # Errors
    /// The queue has failed.
    fn internals(&self) -> Result<Internals, PluginError> {
        Ok(Internals::default())
    }

    /// The measurement period begins: what [`report`](Self::report) tells starts from here.
    ///
    /// # Errors
    /// The queue has failed.
    fn start_measuring(&mut self, _now: Time) -> Result<(), PluginError> {
        Ok(())
    }

    /// Tells figures of the queue's own, by name and in SI units; they appear as metrics
    /// `queue.NAME`.
    ///
    /// # Errors
    /// The queue has failed.
    fn report(&self, _now: Time, _tell: &mut dyn FnMut(&str, f64)) -> Result<(), PluginError> {
        Ok(())
    }
}

/// What is wrong with a plug-in.
#[derive(Debug)]
pub struct PluginError {
    text: String,
    cause: Option<Box<dyn Any + Send + Sync>>,
}

impl PluginError {
    /// An error that says `text`, a clause.
    pub fn new(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            cause: None,
        }
    }

    /// The same, with what whoever started the run may want to know of its cause.
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

/// A plug-in failed and the run with it.
#[derive(Debug)]
pub struct PluginFailure {
    /// The plug-in, as the experiment file names it.
    pub class: String,
    /// The method that failed, `"new"` when it could not be made.
    pub method: &'static str,
    /// When, in simulated time; `None` if that is before or after the run.
    pub at: Option<Time>,
    error: PluginError,
}

impl PluginFailure {
    /// What was wrong, in a clause.
    pub fn problem(&self) -> String {
        self.error.to_string()
    }

    /// What the plug-in gave as the cause, if it is a `T`.
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

/// Runs `run`, and returns the failure of a plug-in that ended it. Panics pass.
///
/// # Errors
/// [`PluginFailure`] when a plug-in failed.
pub fn catching<R>(run: impl FnOnce() -> R) -> Result<R, Box<PluginFailure>> {
    // What was under way is gone with the unwinding; nothing half-done is left to look at.
    catch_unwind(AssertUnwindSafe(run)).map_err(|payload| match payload.downcast() {
        Ok(failure) => failure,
        Err(panic) => resume_unwind(panic),
    })
}

/// Ends the run.
#[cold]
fn raise(failure: PluginFailure) -> ! {
    if cfg!(panic = "abort") {
        panic!("{failure}");
    }
    // Not a panic: nobody is to see a message about a fault of ours.
    resume_unwind(Box::new(failure))
}

/// What a plug-in is told about the place where it is made.
#[derive(Clone, Debug)]
pub struct PluginContext {
    /// The link, its rate, what crosses it, and the queue's own random stream.
    pub queue: QueueContext,
    /// The limit the file gives, in packets and bytes alone. The queue itself has to keep to
    /// it; the run fails when more waits.
    pub limit: Option<Limit>,
}

type Make =
    dyn Fn(&PluginParams, PluginContext) -> Result<Box<dyn PluginQueue>, PluginError> + Send + Sync;

/// What the names of plug-ins in an experiment file stand for.
#[derive(Clone, Default)]
pub struct Plugins(BTreeMap<String, Arc<Make>>);

impl Plugins {
    /// No plug-ins.
    pub fn new() -> Self {
        Self::default()
    }

    /// These and another one: `class = "NAME"` is what `make` returns.
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
    /// The queue: in Python `"my_queue.py:MyQueue"`, a file beside the experiment's and a class in it, or `"package.module:MyQueue"`; in Rust the name under which it was registered. `redtail run` executes this code; outside the experiment's folder it needs `--allow-code`.
    pub class: String,
    /// Most that may wait; the queue is told and has to keep to it, and the run fails if it does not. Without it there is no limit but the queue's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<Limit>,
    /// Whatever the queue takes; to a class in Python each key goes as an argument of that name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub params: BTreeMap<String, Value>,
    /// Hash of the source of a class in Python, by which results are kept; filled in when the file is read. If it is given, the class must have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
}

impl QueueParams for PluginParams {
    type Queue<P: Packet> = Plugin<P>;

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

/// What looks at the plug-ins of an experiment before it is run: it is given the key of each
/// one's table and may complete or refuse it.
pub type PluginVisitor<'a> = dyn FnMut(&str, &mut PluginParams) -> Result<(), ParamError> + 'a;
