//! What is measured of each packet where the scenario asks for it: it is told here, between two events.
//!
//! A run with it lets nothing lag behind the schedule, as one with an event log, so that each packet is seen where it is
//! sent, and where it arrives.

use redtail_core::Time;
use redtail_network::packets::{Carried, Way};
use redtail_network::{Class, Event, PacketMeter, SimPacket, Target};
use redtail_transport::{Flags, Segment};

use super::Engine;
use super::ends::EngineEnds;
use crate::flows::FlowEnds;
use crate::packet::Content;

impl EngineEnds<'_> {
    /// The way that a packet goes.
    fn way(&mut self, packet: &SimPacket) -> Way {
        let connection = match self.flows.ends(packet.flow) {
            FlowEnds::Connection => Some(self.flows.connections.get(packet.endpoint).number),
            FlowEnds::Tcp(_) | FlowEnds::Udp(_) | FlowEnds::Call(_) | FlowEnds::Own(_) => None,
        };
        Way {
            flow: packet.flow,
            connection,
            back: self.flows.back_routes[packet.route as usize],
        }
    }

    /// Measures a packet that an endpoint has sent.
    fn measure_sent(&mut self, packet: &SimPacket, meter: &mut PacketMeter) {
        let carried = match self.contents.get(packet.content) {
            Content::Segment(segment) => Carried::Segment {
                syn: segment.flags.contains(Flags::SYN),
                seq: segment.seq,
                len: segment.len,
            },
            Content::Call(packet) if !packet.is_media() => Carried::Other,
            // No endpoint sends a copy; the meter counts none.
            Content::Copy => Carried::Other,
            Content::Datagram(_) | Content::Call(_) | Content::Own(_) => Carried::Datagram,
        };
        meter.sent(packet, self.way(packet), carried);
    }
}

impl Engine<'_> {
    /// Begins to measure packets, if the scenario asks for it.
    pub(super) fn use_packets(&mut self) {
        let Some(meter) = PacketMeter::new(&self.scenario, &self.links.network) else {
            return;
        };
        self.ends.packets = Some(Box::new(meter));
        // Every acknowledgement is a segment, and every segment of a user's connection is sent.
        for slot in &mut self.ends.flows.receivers {
            slot.receiver.forbid_short_paths();
        }
        self.ends.flows.connections.defer_all();
        self.watch();
    }

    /// Measures what endpoints have sent in the event before this one, and what this one will bring to an endpoint.
    #[cold]
    pub(super) fn measure_packets(&mut self, next: Event) {
        let Some(mut meter) = self.ends.packets.take() else {
            return;
        };
        let paths = &mut self.links.network.paths;
        for packet in paths.sent_packets() {
            self.ends.measure_sent(&packet, &mut meter);
        }
        if next.class() == Class::Arrival && !matches!(paths.target(next.index()), Target::Link(_))
        {
            let packet = paths.head(next.index());
            if let Content::Segment(segment) = *self.ends.contents.get(packet.content) {
                let way = self.ends.way(packet);
                let way = Way {
                    back: !way.back,
                    ..way
                };
                measure_acknowledgement(&mut meter, way, &segment, self.now);
            }
            meter.arrives(packet, self.now);
        }
        self.ends.packets = Some(meter);
    }

    /// Measures an acknowledgement that reaches the sender of this number at once.
    #[cold]
    pub(super) fn measure_at_once(&mut self, index: u32, segment: &Segment) {
        if let Some(meter) = &mut self.ends.packets {
            let way = Way {
                flow: self.ends.flows.senders[index as usize].flow,
                connection: None,
                back: false,
            };
            measure_acknowledgement(meter, way, segment, self.now);
        }
    }
}

/// An acknowledgement of the data that goes `way` reaches its sender.
fn measure_acknowledgement(meter: &mut PacketMeter, way: Way, segment: &Segment, now: Time) {
    if segment.flags.contains(Flags::ACK) {
        let blocks = segment.sack.iter(segment.ack);
        let blocks = blocks.map(|block| (block.start, block.end));
        meter.acknowledges(way, segment.ack, blocks, now);
    }
}
