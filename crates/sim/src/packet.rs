//! The packet of the simulator: a small value that is moved, and its content, which is not moved
//! until the packet is delivered or dropped.
//!
//! Queues and delay lines move 32 bytes; a segment with its SACK blocks is written once and read
//! once (measured in docs/performance.md).

use redtail_core::{Bytes, Dscp, Ecn, FlowId, Packet, Time};
use redtail_transport::Segment;

const _: () = assert!(size_of::<SimPacket>() == 32, "queues move 32 bytes");
const _: () = assert!(size_of::<Content>() == 64, "a content fits a cache line");

/// A packet in the network.
#[derive(Clone, Copy, Debug)]
pub struct SimPacket {
    /// In a queue: when it entered. In a delay line: when it arrives.
    pub stamp: Time,
    /// Where its content is.
    pub content: ContentId,
    /// Its flow, across all groups.
    pub flow: u32,
    /// The endpoint of its flow, among those of its kind.
    pub endpoint: u32,
    /// Size on the link in bytes, headers included.
    pub size: u32,
    /// The route it takes.
    pub route: u32,
    /// Its position on the route: the leg it is on, or the next one.
    pub leg: u8,
    /// The class and the ECN bits of its IP header.
    pub class: TrafficClass,
    /// Its number at the endpoint that sent it, modulo 2^16: the identification
    /// of its IP header, by which captures can be compared.
    pub id: u16,
}

/// The octet of the IP header that DSCP and ECN share (RFC 3168, section 5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TrafficClass(u8);

impl TrafficClass {
    /// The octet of this class and these bits.
    #[inline]
    pub const fn new(dscp: Dscp, ecn: Ecn) -> Self {
        Self(dscp.get() << 2 | ecn as u8)
    }

    /// The octet as in the header.
    #[inline]
    pub const fn octet(self) -> u8 {
        self.0
    }

    /// The ECN bits.
    #[inline]
    pub const fn ecn(self) -> Ecn {
        match self.0 & 3 {
            0 => Ecn::NotEct,
            1 => Ecn::Ect1,
            2 => Ecn::Ect0,
            _ => Ecn::Ce,
        }
    }

    /// The class.
    #[inline]
    pub const fn dscp(self) -> Dscp {
        Dscp::of_octet(self.0)
    }
}

impl Packet for SimPacket {
    #[inline]
    fn size(&self) -> Bytes {
        Bytes::new(u64::from(self.size))
    }
    #[inline]
    fn flow(&self) -> FlowId {
        FlowId(self.flow)
    }
    #[inline]
    fn ecn(&self) -> Ecn {
        self.class.ecn()
    }
    #[inline]
    fn dscp(&self) -> Dscp {
        self.class.dscp()
    }
    #[inline]
    fn set_dscp(&mut self, dscp: Dscp) {
        self.class = TrafficClass::new(dscp, self.class.ecn());
    }
    #[inline]
    fn mark_ce(&mut self) -> bool {
        let capable = self.class.ecn() != Ecn::NotEct;
        if capable {
            self.class.0 |= Ecn::Ce as u8;
        }
        capable
    }
    #[inline]
    fn enqueued(&self) -> Time {
        self.stamp
    }
    #[inline]
    fn set_enqueued(&mut self, now: Time) {
        self.stamp = now;
    }
}

/// Packets of one flow in one direction, for conservation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Passed {
    /// Put into the network.
    pub sent: u64,
    /// Taken out of it at the far end.
    pub delivered: u64,
}

/// Names the content of one packet in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContentId(u32);

/// What a packet carries from one endpoint to the other.
#[derive(Clone, Copy, Debug)]
pub enum Content {
    /// Of a TCP packet.
    Segment(Segment),
    /// Of a UDP packet.
    Datagram(Datagram),
}

/// What a UDP packet carries.
#[derive(Clone, Copy, Debug)]
pub struct Datagram {
    /// Its number in its flow, from 0.
    pub number: u64,
    /// When it was sent.
    pub sent: Time,
}

impl Content {
    /// The ECN bits with which it is sent. UDP sources do not use ECN.
    #[inline]
    pub fn ecn(&self) -> Ecn {
        match self {
            Self::Segment(segment) => segment.ecn,
            Self::Datagram(_) => Ecn::NotEct,
        }
    }
}

/// The contents of all packets in flight. Places are reused, the latest freed first, so a steady
/// state allocates nothing and stays in the cache.
#[derive(Debug, Default)]
pub struct Contents {
    places: Vec<Content>,
    free: Vec<ContentId>,
}

impl Contents {
    /// Stores a content.
    #[inline]
    pub fn put(&mut self, content: Content) -> ContentId {
        if let Some(id) = self.free.pop() {
            self.places[id.0 as usize] = content;
            id
        } else {
            self.places.push(content);
            ContentId(self.places.len() as u32 - 1)
        }
    }

    /// The content of a packet in flight.
    #[inline]
    pub fn get(&self, id: ContentId) -> &Content {
        &self.places[id.0 as usize]
    }

    /// The segment of a TCP packet, with `ecn`, the ECN bits that the packet has on arrival.
    ///
    /// # Panics
    /// When it is a UDP packet: a bug of the engine.
    #[inline]
    pub fn segment_on_arrival(&mut self, id: ContentId, ecn: Ecn) -> &Segment {
        match &mut self.places[id.0 as usize] {
            Content::Segment(segment) => {
                segment.ecn = ecn;
                segment
            }
            Content::Datagram(_) => unreachable!("the packet is a UDP packet"),
        }
    }

    /// The datagram of a UDP packet.
    ///
    /// # Panics
    /// When it is a TCP packet: a bug of the engine.
    #[inline]
    pub fn datagram(&self, id: ContentId) -> &Datagram {
        match self.get(id) {
            Content::Datagram(datagram) => datagram,
            Content::Segment(_) => unreachable!("the packet is a TCP packet"),
        }
    }

    /// Frees the content of a packet that has left the network. It can be read until the next one
    /// is put in.
    #[inline]
    pub fn free(&mut self, id: ContentId) {
        self.free.push(id);
    }
}
