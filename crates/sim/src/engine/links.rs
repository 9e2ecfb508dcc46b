//! Links in the engine: queues, transmitters and losses.

use redtail_core::Time;
use redtail_qdisc::{DropReason, QueueDiscipline, Sink, TcpHeader};

use super::Engine;
use crate::capacity::Capacity;
use crate::capture::End;
use crate::connections::Side;
use crate::conservation::LinkPassed;
use crate::flows::{FlowEnds, Flows};
use crate::header;
use crate::network::{Link, Route};
use crate::packet::{Content, ContentId, Contents, SimPacket};
use crate::scheduler::{Class, Event};
use crate::statistics::{Measured, PacketOwner};

/// The counters of one link.
#[derive(Debug)]
pub(super) struct LinkBooks {
    pub(super) passed: LinkPassed,
    /// Packets waiting, by group.
    pub(super) waiting: Vec<u64>,
    /// `None` during the warm-up.
    pub(super) statistics: Option<Measured>,
}

/// Receives the drops and marks of a queue during one call.
struct QueueEvents<'a> {
    books: &'a mut LinkBooks,
    dropped: &'a mut [[u64; 2]],
    flows: &'a mut Flows,
    routes: &'a [Route],
    contents: &'a mut Contents,
    measure_from: Time,
    /// The packet being offered, unless it has been dropped.
    arriving: Option<ContentId>,
}

/// Counts a packet that was dropped or lost, for its flow. `dropped` counts by flow and direction
/// (0 data, 1 acknowledgements); users' connections have their own counters.
fn note_loss(
    flows: &mut Flows,
    dropped: &mut [[u64; 2]],
    contents: &Contents,
    packet: &SimPacket,
    measure_from: Time,
) {
    let direction = match flows.ends(packet.flow) {
        FlowEnds::Udp(i) => {
            let sent = contents.datagram(packet.content).sent;
            flows.udp[i as usize].lost += u64::from(sent >= measure_from);
            0
        }
        FlowEnds::Tcp(i) => usize::from(packet.route == flows.receivers[i as usize].route),
        FlowEnds::Connection => {
            let routes = flows.connections.get(packet.endpoint).routes;
            let from = match packet.route == routes[Side::Client as usize] {
                true => Side::Client,
                false => Side::Server,
            };
            flows.connections.on_loss(packet.endpoint, from);
            return;
        }
    };
    dropped[packet.flow as usize][direction] += 1;
}

/// The group of the packet that a link is transmitting, and the start of the transmission.
pub(super) fn in_transmission(link: &Link, routes: &[Route]) -> Option<(usize, Time)> {
    let (packet, since) = link.transmitting.as_ref()?;
    Some((routes[packet.route as usize].group as usize, *since))
}

impl Sink<SimPacket> for QueueEvents<'_> {
    fn dropped(&mut self, packet: SimPacket, _reason: DropReason, now: Time) {
        let group = self.routes[packet.route as usize].group as usize;
        let waited = self.arriving != Some(packet.content);
        if !waited {
            self.arriving = None;
        }
        self.books.passed.dropped += 1;
        self.books.waiting[group] -= u64::from(waited);
        let (flows, dropped) = (&mut *self.flows, &mut *self.dropped);
        note_loss(flows, dropped, self.contents, &packet, self.measure_from);
        self.contents.free(packet.content);
        if let Some(statistics) = &mut self.books.statistics {
            let flow = packet.flow;
            let waited = waited.then_some(packet.stamp);
            statistics.on_drop(PacketOwner { group, flow }, waited, now);
        }
    }

    fn marked(&mut self, packet: &SimPacket, _now: Time) {
        let group = self.routes[packet.route as usize].group as usize;
        if let Some(statistics) = &mut self.books.statistics {
            let waited = self.arriving != Some(packet.content);
            statistics.on_mark(group, waited.then_some(packet.stamp));
        }
    }

    fn tcp_header(&self, packet: &SimPacket) -> Option<TcpHeader> {
        let group = self.routes[packet.route as usize].group as usize;
        match self.contents.get(packet.content) {
            Content::Segment(segment) => Some(header::of_segment(
                self.flows.options[group]?,
                packet,
                segment,
            )),
            Content::Datagram(_) => None,
        }
    }
}

impl Engine<'_> {
    /// A packet reaches a link's queue.
    #[inline]
    pub(super) fn offer(&mut self, index: u32, packet: SimPacket) {
        if self.recorder.is_some() {
            self.record(index, End::In, &packet);
        }
        let link = &mut self.network.links[index as usize];
        let group = self.network.routes[packet.route as usize].group as usize;
        let flow = packet.flow;
        let books = &mut self.books[index as usize];
        books.passed.arrived += 1;
        let mut events = QueueEvents {
            books,
            dropped: &mut self.dropped,
            flows: &mut self.flows,
            routes: &self.network.routes,
            contents: &mut self.network.contents,
            measure_from: self.measure_from,
            arriving: Some(packet.content),
        };
        let outlook = link.queue.arrive(packet, self.now, &mut events);
        let admitted = events.arriving.is_some();
        books.waiting[group] += u64::from(admitted);
        if let Some(statistics) = &mut books.statistics {
            let owner = PacketOwner { group, flow };
            statistics.on_arrival(owner, admitted, outlook.backlog, self.now);
        }
        let wakeup = if link.transmitting.is_none() {
            self.transmit_next(index)
        } else {
            outlook.wakeup
        };
        self.arm_queue(index, wakeup);
    }

    /// Begins the next transmission of an idle link, if there is a packet. Returns when the queue
    /// is to be woken next.
    #[inline]
    fn transmit_next(&mut self, index: u32) -> Option<Time> {
        if self.network.links[index as usize].capacity.is_some() {
            return self.transmit_next_changing(index);
        }
        let (free, wakeup) = self.begin(index, |link, size, now| now + link.transmitter.time(size));
        self.scheduler.set_link(index, free);
        wakeup
    }

    /// As [`Engine::transmit_next`], for a link whose rate is not constant.
    #[cold]
    fn transmit_next_changing(&mut self, index: u32) -> Option<Time> {
        let link = &mut self.network.links[index as usize];
        let (free, wakeup) = match link.capacity.as_deref_mut() {
            Some(Capacity::Trace(deliveries)) => {
                let next = deliveries.next_after(self.now);
                let some = link.transmitting.is_some() || link.queue.backlog().packets > 0;
                (some.then_some(next), link.queue.next_wakeup())
            }
            _ => self.begin(index, |link, size, now| match link.capacity.as_deref() {
                Some(Capacity::Steps(steps)) => steps.end(now, size),
                _ => unreachable!("the rate changes by steps"),
            }),
        };
        self.scheduler.set_link(index, free);
        wakeup
    }

    /// Begins to transmit the next packet from a link's queue, if there is one. `end` computes the
    /// end of the transmission from the packet's size and the present time. Returns this end, and
    /// when the queue is to be woken next.
    #[inline(always)]
    fn begin(
        &mut self,
        index: u32,
        end: impl FnOnce(&mut Link, u32, Time) -> Time,
    ) -> (Option<Time>, Option<Time>) {
        let link = &mut self.network.links[index as usize];
        let books = &mut self.books[index as usize];
        let mut events = QueueEvents {
            books,
            dropped: &mut self.dropped,
            flows: &mut self.flows,
            routes: &self.network.routes,
            contents: &mut self.network.contents,
            measure_from: self.measure_from,
            arriving: None,
        };
        let (now, transmitting) = (self.now, &mut link.transmitting);
        let sent = |packet: SimPacket, outlook| {
            *transmitting = Some((packet, now));
            (packet.route, packet.stamp, packet.size, outlook)
        };
        let (route, stamp, size, outlook) = match link.queue.depart(now, &mut events, sent) {
            Ok(sent) => sent,
            Err(outlook) => return (None, outlook.wakeup),
        };
        let group = self.network.routes[route as usize].group as usize;
        books.waiting[group] -= 1;
        if let Some(statistics) = &mut books.statistics {
            statistics.on_departure(group, now - stamp, outlook.backlog, now);
        }
        let free = end(link, size, now);
        (Some(free), outlook.wakeup)
    }

    /// A link finished a transmission.
    #[inline]
    pub(super) fn on_link_free(&mut self, index: u32) {
        if self.network.links[index as usize].has_trace() {
            self.on_opportunity(index);
            return;
        }
        self.send_off(index);
        let wakeup = self.transmit_next(index);
        self.arm_queue(index, wakeup);
    }

    /// A trace has one or more opportunities to deliver at this time.
    #[cold]
    fn on_opportunity(&mut self, index: u32) {
        let mut room = match self.network.links[index as usize].deliveries() {
            Some(deliveries) => deliveries.room(self.now),
            None => unreachable!("this link has a trace"),
        };
        while room > 0 {
            let idle = self.network.links[index as usize].transmitting.is_none();
            let begin = |link: &mut Link, size, now| {
                link.deliveries().expect("it is there").left = size;
                now
            };
            if idle && self.begin(index, begin).0.is_none() {
                break;
            }
            let link = &mut self.network.links[index as usize];
            let left = &mut link.deliveries().expect("it is there").left;
            let carried = room.min(u64::from(*left));
            room -= carried;
            *left -= carried as u32;
            let done = *left == 0;
            let (packet, _) = link.transmitting.as_ref().expect("it was put there");
            let group = self.network.routes[packet.route as usize].group as usize;
            if let Some(statistics) = &mut self.books[index as usize].statistics {
                statistics.on_delivered(group, carried);
            }
            if done {
                self.send_off(index);
            }
        }
        let wakeup = self.transmit_next(index);
        self.arm_queue(index, wakeup);
    }

    /// The packet being transmitted has been sent completely.
    #[inline(always)]
    fn send_off(&mut self, index: u32) {
        let link = &mut self.network.links[index as usize];
        let (packet, since) = link.transmitting.take().expect("the link was transmitting");
        if self.recorder.is_some() {
            self.record(index, End::Out, &packet);
        }
        let link = &mut self.network.links[index as usize];
        let group = self.network.routes[packet.route as usize].group as usize;
        let books = &mut self.books[index as usize];
        books.passed.departed += 1;
        if let Some(statistics) = &mut books.statistics {
            statistics.on_transmitted(group, since, self.now, link.capacity.as_deref());
        }
        let measuring = books.statistics.is_some();
        if let Some(wire) = &mut link.wire
            && wire.loses(measuring)
        {
            self.lose(packet);
        } else {
            self.network.send(packet, self.now, &mut self.scheduler);
        }
    }

    /// A packet is lost on the wire.
    #[cold]
    fn lose(&mut self, packet: SimPacket) {
        let (flows, contents) = (&mut self.flows, &mut self.network.contents);
        note_loss(
            flows,
            &mut self.dropped,
            contents,
            &packet,
            self.measure_from,
        );
        contents.free(packet.content);
    }

    /// Passes a packet to the recorder, which must exist.
    #[cold]
    fn record(&mut self, link: u32, end: End, packet: &SimPacket) {
        if let Some(recorder) = &mut self.recorder {
            let content = self.network.contents.get(packet.content);
            let connection = match self.flows.ends(packet.flow) {
                FlowEnds::Connection => Some(self.flows.connections.get(packet.endpoint).number),
                FlowEnds::Tcp(_) | FlowEnds::Udp(_) => None,
            };
            recorder.record(link, end, packet, content, connection, self.now);
        }
    }

    /// Schedules the wakeup of a queue.
    #[inline]
    fn arm_queue(&mut self, index: u32, wakeup: Option<Time>) {
        let link = &mut self.network.links[index as usize];
        if let Some(at) = wakeup
            && link.wakeup.is_none_or(|armed| at < armed)
        {
            link.wakeup = Some(at);
            self.scheduler
                .add(Event::new(at.max(self.now), Class::QueueWakeup, index));
        }
    }

    pub(super) fn on_queue_wakeup(&mut self, index: u32) {
        let link = &mut self.network.links[index as usize];
        if link.wakeup.is_none_or(|armed| armed > self.now) {
            return; // replaced by an earlier wakeup
        }
        link.wakeup = None;
        if link.queue.next_wakeup().is_some_and(|at| at <= self.now) {
            link.queue.on_wakeup(self.now);
        }
        if link.transmitting.is_none() {
            self.transmit_next(index);
        }
        let link = &self.network.links[index as usize];
        let next = link.queue.next_wakeup();
        if next.is_some_and(|at| at <= self.now) {
            // The wakeup that the queue asks for is already due. A busy link polls the queue when
            // it is free, and one with a trace when it can deliver. On an idle link this would
            // repeat for ever.
            let busy = link.transmitting.is_some() || link.has_trace();
            assert!(
                busy,
                "{}: woken in time, the queue gives nothing",
                link.name
            );
            return;
        }
        self.arm_queue(index, next);
    }
}
