//! The packet in the network: a small value that is moved. Its content is kept by the endpoints and
//! not moved until the packet is delivered or dropped.

use redtail_core::{Bytes, Dscp, Ecn, FlowId, Packet, Time};

const _: () = assert!(size_of::<SimPacket>() == 32, "queues move 32 bytes");

/// A packet in the network.
#[derive(Clone, Copy, Debug, Default)]
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
    /// Its position on the route: the leg it is on, or was on when it is at a link.
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

/// Names the content of one packet in flight.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct ContentId(pub u32);
