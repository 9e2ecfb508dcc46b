//! The endpoints, as the links know them.

use redtail_core::Time;
use redtail_network::{ContentId, End, Ends, Link, PacketEvent, PacketMeter, SimPacket};
use redtail_qdisc::TcpHeader;

use super::log::Log;
use crate::capture::{Carried, Recorder};
use crate::connections::Side;
use crate::flows::{FlowEnds, Flows};
use crate::header;
use crate::packet::{Content, Contents};

/// What the links need while one of them is at work. The engine keeps it in a field of its own, beside which the links
/// can be borrowed.
pub(super) struct EngineEnds<'a> {
    pub(super) flows: Flows,
    /// The contents of all packets in the network.
    pub(super) contents: Contents,
    /// Packets dropped or lost on a wire, by flow and direction (0 data, 1 acknowledgements); users'
    /// connections have their own counters.
    pub(super) dropped: Vec<[u64; 2]>,
    /// Copies that wires made, by flow and direction, as far as there are any.
    pub(super) copied: Vec<[u64; 2]>,
    /// Data packets marked in the measurement period, by flow; users' connections have their own
    /// counters.
    pub(super) marked: Vec<u64>,
    pub(super) recorder: Option<Box<Recorder<'a>>>,
    pub(super) log: Option<Box<Log>>,
    pub(super) packets: Option<Box<PacketMeter>>,
    /// Whether there is one of these three.
    pub(super) watches: bool,
    pub(super) measure_from: Time,
}

impl Ends for EngineEnds<'_> {
    fn lost(&mut self, packet: &SimPacket) {
        let direction = match self.flows.ends(packet.flow) {
            FlowEnds::Udp(i) => {
                let datagram = self.contents.datagram(packet.content);
                let counts = datagram.is_some_and(|it| it.sent >= self.measure_from);
                self.flows.udp[i as usize].lost += u64::from(counts);
                Some(0)
            }
            FlowEnds::Call(i) => {
                let slot = &mut self.flows.calls[i as usize];
                let is_back = packet.route == slot.routes[1];
                if let Some(content) = self.contents.of_call(packet.content)
                    && content.sent >= self.measure_from
                {
                    slot.ends[usize::from(!is_back)].miss(content);
                }
                Some(usize::from(is_back))
            }
            FlowEnds::Tcp(_) => {
                let is_back = self.flows.back_routes[packet.route as usize];
                Some(usize::from(is_back))
            }
            FlowEnds::Own(i) => Some(self.own_lost(i, packet)),
            FlowEnds::Connection => {
                let from = self.sender_of(packet);
                self.flows.connections.on_loss(packet.endpoint, from);
                None
            }
        };
        if let Some(direction) = direction {
            self.dropped[packet.flow as usize][direction] += 1;
        }
        self.contents.free(packet.content);
    }

    #[cold]
    fn duplicate(&mut self, packet: &SimPacket) -> ContentId {
        let (content, direction) = match self.flows.ends(packet.flow) {
            FlowEnds::Udp(_) => (Content::Copy, Some(0)),
            FlowEnds::Call(i) => {
                let is_back = packet.route == self.flows.calls[i as usize].routes[1];
                (Content::Copy, Some(usize::from(is_back)))
            }
            FlowEnds::Tcp(_) => {
                let is_back = self.flows.back_routes[packet.route as usize];
                let segment = *self.contents.get(packet.content);
                (segment, Some(usize::from(is_back)))
            }
            FlowEnds::Own(i) => {
                let own = self.contents.own(packet.content);
                let copy = self.flows.payloads.copy(own);
                let is_back = packet.route == self.flows.own[i as usize].ends[1].route;
                (Content::Own(copy), Some(usize::from(is_back)))
            }
            FlowEnds::Connection => {
                let from = self.sender_of(packet);
                self.flows.connections.on_copy(packet.endpoint, from);
                (*self.contents.get(packet.content), None)
            }
        };
        if let Some(direction) = direction {
            let flow = packet.flow as usize;
            if flow >= self.copied.len() {
                self.copied.resize(self.dropped.len(), [0; 2]);
            }
            self.copied[flow][direction] += 1;
        }
        self.contents.put(content)
    }

    fn marked(&mut self, packet: &SimPacket) {
        match self.flows.ends(packet.flow) {
            FlowEnds::Udp(_) => self.marked[packet.flow as usize] += 1,
            FlowEnds::Call(i) => {
                let is_data = packet.route == self.flows.calls[i as usize].routes[0];
                self.marked[packet.flow as usize] += u64::from(is_data);
            }
            FlowEnds::Own(i) => {
                let is_data = packet.route == self.flows.own[i as usize].ends[0].route;
                self.marked[packet.flow as usize] += u64::from(is_data);
            }
            FlowEnds::Tcp(_) => {
                let is_data = !self.flows.back_routes[packet.route as usize];
                self.marked[packet.flow as usize] += u64::from(is_data);
            }
            FlowEnds::Connection => {
                self.flows.connections.get(packet.endpoint).marked += 1;
            }
        }
    }

    fn tcp_header(&self, packet: &SimPacket, group: usize) -> Option<TcpHeader> {
        match self.contents.get(packet.content) {
            Content::Segment(segment) => Some(header::of_segment(
                self.flows.options[group]?,
                packet,
                segment,
            )),
            Content::Datagram(_) | Content::Call(_) | Content::Own(_) | Content::Copy => None,
        }
    }

    #[inline]
    fn pass(&mut self, link: &Link, end: End, packet: &SimPacket, now: Time) {
        if self.watches {
            self.record(link, end, packet, now);
        }
    }

    #[inline]
    fn tell(&mut self, event: PacketEvent<'_>) {
        if self.watches {
            self.tell_watchers(event);
        }
    }
}

impl EngineEnds<'_> {
    /// The side of its connection that sent a packet of a user.
    fn sender_of(&self, packet: &SimPacket) -> Side {
        let routes = self.flows.connections.routes(packet.endpoint);
        match packet.route == routes[Side::Client as usize] {
            true => Side::Client,
            false => Side::Server,
        }
    }

    /// A packet of an endpoint of a user was lost. Returns its direction.
    #[cold]
    fn own_lost(&mut self, index: u32, packet: &SimPacket) -> usize {
        let content = self.contents.own(packet.content);
        self.flows.payloads.take(content);
        let slot = &mut self.flows.own[index as usize];
        let is_back = packet.route == slot.ends[1].route;
        slot.lost += u64::from(!is_back && !content.copy && content.sent >= self.measure_from);
        usize::from(is_back)
    }

    /// Tells those who watch what happened to a packet.
    #[cold]
    fn tell_watchers(&mut self, event: PacketEvent<'_>) {
        if let Some(packets) = &mut self.packets {
            packets.happened(&event);
        }
        if let Some(recorder) = &mut self.recorder {
            recorder.tell(&event);
        }
        if self.log.is_some() {
            self.log_packet(event);
        }
    }

    /// Tells those who watch that a packet passes an end of a link.
    #[cold]
    fn record(&mut self, link: &Link, end: End, packet: &SimPacket, now: Time) {
        if let (Some(packets), End::In) = (&mut self.packets, end) {
            packets.reaches_queue(link.number, packet);
        }
        self.log_pass(link, end, packet, now);
        if let Some(recorder) = &mut self.recorder {
            let content = self.contents.get(packet.content);
            let connection = match self.flows.ends(packet.flow) {
                FlowEnds::Connection => Some(self.flows.connections.get(packet.endpoint).number),
                FlowEnds::Tcp(_) | FlowEnds::Udp(_) | FlowEnds::Call(_) | FlowEnds::Own(_) => None,
            };
            let carried = match content {
                Content::Own(packet) => Carried::Payload(self.flows.payloads.get(*packet)),
                content => Carried::Content(content),
            };
            recorder.record(link.number, end, packet, carried, connection, now);
        }
    }
}
