//! Queues of users, written in Python or in a crate of their own.
//!
//! The disciplines of this crate are generic over packets and trusted. A plug-in is a boxed [`PluginQueue`]
//! that sees packets as plain values ([`PacketView`]) and refers to them by handles ([`PacketId`]). The
//! adapter holds the packets and counts them, so it detects a packet that is returned twice, was never in
//! the queue, or is lost.
//!
//! How the experiment file names plug-ins, and how they fail, is in [`redtail_core::plugin`].

mod adapter;

use std::collections::BTreeMap;

pub use adapter::Plugin;
pub use redtail_core::plugin::{
    Identity, Pluggable, PluginError, PluginFailure, PluginVisitor, Registry, Role, Value, catching,
};
use redtail_core::schemars::JsonSchema;
use redtail_core::serde::{Deserialize, Serialize};
use redtail_core::{Bytes, Dscp, Ecn, FlowId, Packet, ParamError, Time, schemars, serde};

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

    /// The link is idle and asks for a packet, and none waits. [`dequeue`](Self::dequeue) is not called then.
    ///
    /// # Errors
    /// The queue has failed.
    fn on_empty(&mut self, _now: Time) -> Result<(), PluginError> {
        Ok(())
    }

    /// Whether the queue may ever have a [`next_wakeup`](Self::next_wakeup); it answers the same always. A queue that
    /// does not costs fewer events, and is not asked.
    fn wakes(&self) -> bool {
        true
    }

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

/// The surroundings for which a plug-in is made.
#[derive(Clone, Debug)]
pub struct PluginContext {
    /// The link, its rate, the flows that cross it, and the queue's own random stream.
    pub queue: QueueContext,
    /// The limit of the file, in packets and bytes only. The queue itself must keep to it; the run fails if
    /// more waits.
    pub limit: Option<Limit>,
}

impl Pluggable for dyn PluginQueue {
    type Context = PluginContext;

    const ROLE: Role = Role::Queue;
}

/// The queues of users by their names in an experiment file.
pub type Plugins = Registry<dyn PluginQueue>;

/// A queue of your own, written in Python or Rust.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(crate = "serde", deny_unknown_fields)]
#[schemars(crate = "schemars")]
pub struct PluginParams {
    /// The queue: in Python `"my_queue.py:MyQueue"`, a file in the experiment's folder and a class in it, or `"package.module:MyQueue"`; compiled `"my_queue.wasm"`, a WebAssembly module, or `"my_queue.wasm:NAME"` if there are several in it; in Rust the name under which it was registered. `redtail run` executes this code; Python outside the experiment's folder needs `--allow-code`.
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
        self.identity().check("my_queue.py:MyQueue")?;
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
        let mut identity = self.identity();
        visit(key, Role::Queue, &mut identity)?;
        self.source = identity.source;
        Ok(())
    }
}

impl PluginParams {
    /// What names the queue.
    pub fn identity(&self) -> Identity {
        Identity {
            class: self.class.clone(),
            params: self.params.clone(),
            source: self.source.clone(),
        }
    }
}
