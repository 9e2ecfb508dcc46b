//! A queue that is a WebAssembly module.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use redtail_core::Time;
use redtail_qdisc::plugin::{
    Actions, Identity, PacketId, PacketView, PluginContext, PluginError, PluginQueue,
};
use redtail_qdisc::{DropReason, FlowTable, Internals, Limit, Protocol};
use wasmtime::TypedFunc;

use crate::calls::{Asked, Bytes, Instance, NONE};
use crate::module::{Function, Module, function, needed, telling};

/// The functions of a queue.
pub(crate) const FUNCTIONS: &[Function] = &[
    needed("new", "i", ""),
    telling("enqueue", "il", "i"),
    telling("dequeue", "l", "l"),
    function("on_empty", "l", ""),
    function("next_wakeup", "l", "l"),
    function("on_wakeup", "l", ""),
    function("average", "", "d"),
    function("probability", "", "d"),
    function("start_measuring", "l", ""),
    function("report", "l", ""),
];

struct Functions {
    enqueue: TypedFunc<(u32, u64), i32>,
    dequeue: TypedFunc<u64, u64>,
    on_empty: Option<TypedFunc<u64, ()>>,
    next_wakeup: Option<TypedFunc<u64, u64>>,
    on_wakeup: Option<TypedFunc<u64, ()>>,
    average: Option<TypedFunc<(), f64>>,
    probability: Option<TypedFunc<(), f64>>,
    start_measuring: Option<TypedFunc<u64, ()>>,
    report: Option<TypedFunc<u64, ()>>,
}

struct WasmQueue {
    /// Some methods of a queue change nothing, but a module may change its memory in every call.
    instance: RefCell<Instance>,
    functions: Functions,
    limit: Option<Limit>,
    flows: Arc<FlowTable>,
    /// Kept for its memory.
    asked: Vec<Asked>,
}

impl Module {
    /// Makes the queue with this name.
    ///
    /// # Errors
    /// [`PluginError`]: the module has failed, or does not know a key of `params`.
    pub fn make_queue(
        &self,
        name: &str,
        identity: &Identity,
        context: PluginContext,
        cancel: &Arc<AtomicBool>,
    ) -> Result<Box<dyn PluginQueue>, PluginError> {
        let (rate, limit) = (context.queue.rate.as_bps(), context.limit);
        let flows = Arc::clone(&context.queue.link.flows);
        let (table, stream) = (identity.params.clone(), context.queue.stream);
        let mut instance = Instance::new(self, stream, table, cancel)?;
        instance.make(name, &context_bytes(rate, limit), &identity.params)?;
        let functions = Functions {
            enqueue: instance.needed(name, "enqueue"),
            dequeue: instance.needed(name, "dequeue"),
            on_empty: instance.function(name, "on_empty"),
            next_wakeup: instance.function(name, "next_wakeup"),
            on_wakeup: instance.function(name, "on_wakeup"),
            average: instance.function(name, "average"),
            probability: instance.function(name, "probability"),
            start_measuring: instance.function(name, "start_measuring"),
            report: instance.function(name, "report"),
        };
        Ok(Box::new(WasmQueue {
            instance: RefCell::new(instance),
            functions,
            limit,
            flows,
            asked: Vec::new(),
        }))
    }
}

/// `redtail_context`.
fn context_bytes(rate: u64, limit: Option<Limit>) -> Bytes<24> {
    let part = |of: fn(&Limit) -> Option<u64>| limit.as_ref().and_then(of).unwrap_or(NONE);
    Bytes::filled(|bytes| {
        bytes
            .u64(rate)
            .u64(part(|limit| limit.packets))
            .u64(part(|limit| limit.bytes));
    })
}

/// `redtail_packet`.
#[inline]
fn packet_bytes(id: u64, packet: &PacketView, key: u64, actions: &dyn Actions) -> Bytes<64> {
    let backlog = actions.backlog();
    Bytes::filled(|bytes| {
        bytes
            .u64(id)
            .u64(key)
            .u64(backlog.packets)
            .u64(backlog.bytes)
            .u32(packet.size.as_u64() as u32)
            .u32(packet.flow.0)
            .u32(packet.facts.group)
            .u32(packet.facts.sender)
            .u32(packet.facts.receiver)
            .u16(packet.facts.port)
            .u8(match packet.facts.protocol {
                Protocol::Tcp => 0,
                Protocol::Udp => 1,
            })
            .u8(packet.ecn as u8)
            .u8(packet.dscp.get());
    })
}

impl WasmQueue {
    /// Does what was asked for; says whether `arriving` was dropped.
    #[inline]
    fn act(
        &mut self,
        arriving: Option<PacketId>,
        actions: &mut dyn Actions,
    ) -> Result<bool, PluginError> {
        let asked = &mut self.instance.get_mut().store.data_mut().asked;
        if asked.is_empty() {
            return Ok(false);
        }
        std::mem::swap(asked, &mut self.asked);
        let mut gone = false;
        for asked in self.asked.drain(..) {
            match asked {
                Asked::Mark(packet) => {
                    actions.mark(packet)?;
                }
                Asked::Drop(packet, reason) => {
                    actions.drop(packet, reason)?;
                    gone |= Some(packet) == arriving;
                }
            }
        }
        Ok(gone)
    }

    /// Calls a function without results, if the module has it.
    fn tell(
        &mut self,
        function: fn(&Functions) -> &Option<TypedFunc<u64, ()>>,
        now: Time,
    ) -> Result<(), PluginError> {
        match function(&self.functions) {
            Some(function) => self.instance.get_mut().call(function, now.as_ps()),
            None => Ok(()),
        }
    }

    /// A number of the module's, which has none if it is no number.
    fn figure(&self, function: &Option<TypedFunc<(), f64>>) -> Result<Option<f64>, PluginError> {
        let Some(function) = function else {
            return Ok(None);
        };
        let value = self.instance.borrow_mut().call(function, ())?;
        Ok((!value.is_nan()).then_some(value))
    }
}

impl PluginQueue for WasmQueue {
    fn enqueue(
        &mut self,
        packet: PacketView,
        now: Time,
        actions: &mut dyn Actions,
    ) -> Result<(), PluginError> {
        let Some(id) = packet.id.as_u64() else {
            return Err(PluginError::new("more than 16,777,216 packets wait"));
        };
        let bytes = packet_bytes(id, &packet, self.flows.key(packet.flow), actions);
        let instance = self.instance.get_mut();
        let at = instance.write(&bytes);
        let stays = instance.call_open(&self.functions.enqueue, (at, now.as_ps()))?;
        let fits = self
            .limit
            .is_none_or(|limit| limit.admits(actions.backlog(), packet.size));
        let gone = self.act(Some(packet.id), actions)?;
        match (stays, gone) {
            (1, false) | (0, true) => Ok(()),
            (0, false) => actions.drop(
                packet.id,
                if fits {
                    DropReason::Early
                } else {
                    DropReason::Limit
                },
            ),
            (1, true) => Err(PluginError::new(
                "it returned 1 for a packet that it has dropped; accepted: 0",
            )),
            (other, _) => Err(PluginError::new(format!(
                "it returned {other}; accepted: 1 (the packet waits) or 0 (it is dropped)"
            ))),
        }
    }

    fn dequeue(
        &mut self,
        now: Time,
        actions: &mut dyn Actions,
    ) -> Result<Option<PacketId>, PluginError> {
        let instance = self.instance.get_mut();
        let id = instance.call_open(&self.functions.dequeue, now.as_ps())?;
        self.act(None, actions)?;
        Ok((id != NONE).then(|| PacketId::from_u64(id)))
    }

    fn on_empty(&mut self, now: Time) -> Result<(), PluginError> {
        self.tell(|functions| &functions.on_empty, now)
    }

    fn wakes(&self) -> bool {
        self.functions.next_wakeup.is_some()
    }

    fn next_wakeup(&self, now: Time) -> Result<Option<Time>, PluginError> {
        let Some(function) = &self.functions.next_wakeup else {
            return Ok(None);
        };
        let at = self.instance.borrow_mut().call(function, now.as_ps())?;
        Ok((at != NONE).then(|| Time::from_ps(at)))
    }

    fn on_wakeup(&mut self, now: Time) -> Result<(), PluginError> {
        self.tell(|functions| &functions.on_wakeup, now)
    }

    fn internals(&self) -> Result<Internals, PluginError> {
        Ok(Internals {
            average: self.figure(&self.functions.average)?,
            probability: self.figure(&self.functions.probability)?,
        })
    }

    fn start_measuring(&mut self, now: Time) -> Result<(), PluginError> {
        self.tell(|functions| &functions.start_measuring, now)
    }

    fn report(&self, now: Time, tell: &mut dyn FnMut(&str, f64)) -> Result<(), PluginError> {
        let Some(function) = &self.functions.report else {
            return Ok(());
        };
        let figures = self
            .instance
            .borrow_mut()
            .call_reporting(function, now.as_ps())?;
        for (name, value) in &figures {
            tell(name, *value);
        }
        Ok(())
    }
}
