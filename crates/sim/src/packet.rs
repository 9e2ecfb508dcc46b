//! The packet of the simulator: a small value that is moved, never shared.

use redtail_core::{Bytes, Ecn, FlowId, Packet, Time};
use redtail_transport::Segment;

/// A packet on its way.
#[derive(Clone, Copy, Debug)]
pub struct SimPacket {
    /// Its content. A UDP packet uses `seq` as its number and `ack` as the time
    /// it was sent, in picoseconds.
    pub segment: Segment,
    /// When it entered the queue that holds it.
    pub enqueued: Time,
    /// Its flow, across all groups.
    pub flow: u32,
    /// The endpoint of its flow, among those of its kind.
    pub endpoint: u32,
    /// Size on the link in bytes, headers included.
    pub size: u32,
    /// The route it takes.
    pub route: u32,
    /// How far along the route it is: the next leg to enter or the one it is on.
    pub leg: u32,
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
        self.segment.ecn
    }
    #[inline]
    fn mark_ce(&mut self) -> bool {
        let capable = self.segment.ecn != Ecn::NotEct;
        if capable {
            self.segment.ecn = Ecn::Ce;
        }
        capable
    }
    #[inline]
    fn enqueued(&self) -> Time {
        self.enqueued
    }
    #[inline]
    fn set_enqueued(&mut self, now: Time) {
        self.enqueued = now;
    }
}
