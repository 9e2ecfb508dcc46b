//! The discipline around a plug-in: it holds the packets and counts them.

use std::fmt;

use redtail_core::{Packet, Time};

use super::{
    Actions, PacketId, PacketView, PluginContext, PluginError, PluginFailure, PluginParams,
    PluginQueue, Role,
};
use crate::{
    Backlog, DropReason, FlowTable, Internals, Limit, QueueContext, QueueDiscipline, Report, Sink,
    Wakeup,
};
use std::sync::Arc;

/// A plug-in as a queue discipline. Boxed, so that it makes no other one larger.
pub struct Plugin<P>(Box<Inner<P>>);

struct Inner<P> {
    class: String,
    queue: Box<dyn PluginQueue>,
    store: Store<P>,
    limit: Option<Limit>,
    flows: Arc<FlowTable>,
    /// Whether it may ever ask to be woken.
    wakes: bool,
    wakeup: Option<Time>,
    /// The time of the latest call.
    now: Option<Time>,
}

impl<P> fmt::Debug for Plugin<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Plugin")
            .field("class", &self.0.class)
            .field("backlog", &self.0.store.backlog)
            .finish_non_exhaustive()
    }
}

/// Packets by their handles. A place is used again; the sequence number tells its packets apart.
struct Store<P> {
    places: Vec<Place<P>>,
    free: Vec<u32>,
    /// Packets taken in so far.
    count: u64,
    backlog: Backlog,
}

struct Place<P> {
    id: PacketId,
    packet: Option<P>,
    /// This queue has marked it.
    marked: bool,
}

impl<P: Packet> Store<P> {
    fn put(&mut self, packet: P) -> PacketId {
        let index = self.free.pop().unwrap_or(self.places.len() as u32);
        let id = PacketId {
            sequence: self.count,
            index,
        };
        self.count += 1;
        let place = Place {
            id,
            packet: Some(packet),
            marked: false,
        };
        match self.places.get_mut(index as usize) {
            Some(old) => *old = place,
            None => self.places.push(place),
        }
        id
    }

    fn place(&mut self, id: PacketId) -> Result<&mut Place<P>, PluginError> {
        let known = id.sequence < self.count;
        match self.places.get_mut(id.index()) {
            Some(place) if place.id == id && place.packet.is_some() => Ok(place),
            _ if known => Err(PluginError::new(
                "the packet is not in this queue any more: it was returned or dropped before",
            )),
            _ => Err(PluginError::new("the packet was never in this queue")),
        }
    }

    fn take(&mut self, id: PacketId) -> Result<P, PluginError> {
        let packet = self.place(id)?.packet.take();
        self.free.push(id.index);
        Ok(packet.expect("the place has been looked at"))
    }

    fn count_in(&mut self, size: u64) {
        self.backlog.packets += 1;
        self.backlog.bytes += size;
    }

    fn count_out(&mut self, size: u64) {
        self.backlog.packets -= 1;
        self.backlog.bytes -= size;
    }
}

/// The actions of the plug-in during one call.
struct Acting<'a, P, S> {
    store: &'a mut Store<P>,
    sink: &'a mut S,
    now: Time,
    /// The packet that arrives, which does not yet count as waiting.
    arriving: Option<PacketId>,
}

impl<P: Packet, S: Sink<P>> Actions for Acting<'_, P, S> {
    fn drop(&mut self, packet: PacketId, reason: DropReason) -> Result<(), PluginError> {
        let dropped = self.store.take(packet)?;
        if self.arriving == Some(packet) {
            self.arriving = None;
        } else {
            self.store.count_out(dropped.size().as_u64());
        }
        self.sink.dropped(dropped, reason, self.now);
        Ok(())
    }

    fn mark(&mut self, packet: PacketId) -> Result<bool, PluginError> {
        let place = self.store.place(packet)?;
        let waiting = place.packet.as_mut().expect("the place is taken");
        if !waiting.mark_ce() {
            return Ok(false);
        }
        // The mark of an arriving packet is reported after the call, if the packet stays.
        if !place.marked && self.arriving != Some(packet) {
            self.sink.marked(waiting, self.now);
        }
        place.marked = true;
        Ok(true)
    }

    fn backlog(&self) -> Backlog {
        self.store.backlog
    }
}

impl<P: Packet> Plugin<P> {
    pub(super) fn new(params: &PluginParams, context: QueueContext) -> Self {
        let limit = params.limit.map(|limit| limit.at(context.rate));
        let flows = Arc::clone(&context.link.flows);
        let plugins = context.plugins.clone();
        let context = PluginContext {
            queue: context,
            limit,
        };
        let made = plugins.make(&params.identity(), context);
        let queue = made.unwrap_or_else(|error| failure(&params.class, "new", None, error).raise());
        Self(Box::new(Inner {
            class: params.class.clone(),
            wakes: queue.wakes(),
            queue,
            store: Store {
                places: Vec::new(),
                free: Vec::new(),
                count: 0,
                backlog: Backlog::default(),
            },
            limit,
            flows,
            wakeup: None,
            now: None,
        }))
    }
}

fn failure(
    class: &str,
    method: &'static str,
    at: Option<Time>,
    error: PluginError,
) -> PluginFailure {
    PluginFailure {
        role: Role::Queue,
        class: class.to_owned(),
        method,
        at,
        error,
    }
}

impl<P: Packet> Inner<P> {
    /// Returns the result of the plug-in; an error ends the run.
    fn sound<T>(&self, method: &'static str, result: Result<T, PluginError>) -> T {
        result.unwrap_or_else(|error| failure(&self.class, method, self.now, error).raise())
    }

    fn refuse(&self, method: &'static str, text: String) -> ! {
        self.sound(method, Err(PluginError::new(text)))
    }

    /// Asks for the next wakeup of the plug-in. A time that is not later than `now` needs no wakeup: the
    /// plug-in is asked for a packet as soon as the link is free.
    fn ask_wakeup(&mut self, now: Time) {
        if !self.wakes {
            return;
        }
        let wakeup = self.sound("next_wakeup", self.queue.next_wakeup(now));
        self.wakeup = wakeup.filter(|at| *at > now);
    }
}

impl<P: Packet> QueueDiscipline<P> for Plugin<P> {
    fn enqueue(&mut self, mut packet: P, now: Time, sink: &mut impl Sink<P>) {
        let inner = &mut *self.0;
        inner.now = Some(now);
        packet.set_enqueued(now);
        let (size, flow, ecn, dscp) = (packet.size(), packet.flow(), packet.ecn(), packet.dscp());
        let id = inner.store.put(packet);
        let view = PacketView {
            id,
            size,
            flow,
            facts: inner.flows.get(flow),
            ecn,
            dscp,
            enqueued: now,
        };
        let mut acting = Acting {
            store: &mut inner.store,
            sink,
            now,
            arriving: Some(id),
        };
        let result = inner.queue.enqueue(view, now, &mut acting);
        let stays = acting.arriving.is_some();
        inner.sound("enqueue", result);
        if stays {
            inner.store.count_in(size.as_u64());
            let place = &inner.store.places[id.index()];
            if let (true, Some(packet)) = (place.marked, &place.packet) {
                sink.marked(packet, now);
            }
            let backlog = inner.store.backlog;
            if let Some(limit) = inner.limit.filter(|limit| !limit.allows(backlog)) {
                inner.refuse(
                    "enqueue",
                    format!(
                        "{} packets of {} bytes wait, more than its limit ({limit}); it must drop \
                         what does not fit, or have no limit in the file",
                        backlog.packets, backlog.bytes
                    ),
                );
            }
        }
        inner.ask_wakeup(now);
    }

    fn dequeue(&mut self, now: Time, sink: &mut impl Sink<P>) -> Option<P> {
        let inner = &mut *self.0;
        inner.now = Some(now);
        if inner.store.backlog.packets == 0 {
            let result = inner.queue.on_empty(now);
            inner.sound("on_empty", result);
            return None;
        }
        let mut acting = Acting {
            store: &mut inner.store,
            sink,
            now,
            arriving: None,
        };
        let result = inner.queue.dequeue(now, &mut acting);
        let packet = inner.sound("dequeue", result).map(|id| {
            let taken = inner.store.take(id);
            let packet = inner.sound("dequeue", taken);
            inner.store.count_out(packet.size().as_u64());
            packet
        });
        inner.ask_wakeup(now);
        let waiting = inner.store.backlog.packets;
        if packet.is_none() && waiting > 0 && inner.wakeup.is_none() {
            let packets = match waiting {
                1 => "1 packet waits".to_owned(),
                _ => format!("{waiting} packets wait"),
            };
            inner.refuse(
                "dequeue",
                format!(
                    "it gave no packet while {packets}: they are lost, or, if it holds them back, \
                     next_wakeup must give a later time"
                ),
            );
        }
        packet
    }

    fn next_wakeup(&self) -> Wakeup {
        if !self.0.wakes {
            return Wakeup::Never;
        }
        self.0.wakeup.into()
    }

    fn on_wakeup(&mut self, now: Time) {
        let inner = &mut *self.0;
        if inner.wakeup.is_none_or(|at| at > now) {
            return;
        }
        inner.now = Some(now);
        let result = inner.queue.on_wakeup(now);
        inner.sound("on_wakeup", result);
        inner.ask_wakeup(now);
    }

    fn backlog(&self) -> Backlog {
        let held = self.0.store.backlog;
        match self.missing() {
            0 => held,
            // Their sizes are not known.
            missing => Backlog {
                packets: held.packets - missing,
                bytes: held.bytes - held.bytes / held.packets * missing,
            },
        }
    }

    fn missing(&self) -> u64 {
        let held = self.0.store.backlog.packets;
        self.0.queue.missing().min(held)
    }

    fn internals(&self) -> Internals {
        let inner = &*self.0;
        let internals = inner.sound("internals", inner.queue.internals());
        if let Some(average) = internals.average.filter(|average| !average.is_finite()) {
            inner.refuse("internals", format!("the average {average} is not finite"));
        }
        let odd = |probability: &f64| !(0.0..=1.0).contains(probability);
        if let Some(probability) = internals.probability.filter(odd) {
            inner.refuse(
                "internals",
                format!("the probability {probability} is not between 0 and 1"),
            );
        }
        internals
    }

    fn start_measuring(&mut self, now: Time) {
        let inner = &mut *self.0;
        let result = inner.queue.start_measuring(now);
        inner.sound("start_measuring", result);
    }

    fn report(&self, now: Time, report: &mut Report<'_>) {
        let inner = &*self.0;
        let mut tell = |name: &str, value: f64| report.tell_by_name(name, value);
        inner.sound("report", inner.queue.report(now, &mut tell));
    }
}
