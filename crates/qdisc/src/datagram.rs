//! A packet of another program.

use redtail_core::{Bytes, Dscp, Ecn, FlowId, Packet, Time};

/// A packet that owns what it carries, with the header fields that queues read: for programs that have no packet type
/// of their own that could implement [`Packet`].
///
/// ```
/// use redtail_core::{Bytes, Ecn, Packet};
/// use redtail_qdisc::Datagram;
///
/// let payload = vec![0; 1200];
/// let datagram = Datagram::new(payload, Bytes::new(1228)).with_flow(3).with_ecn(Ecn::Ect1);
/// assert_eq!(datagram.size(), Bytes::new(1228));
/// assert_eq!(datagram.into_payload().len(), 1200);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Datagram<T> {
    payload: T,
    size: Bytes,
    flow: FlowId,
    dscp: Dscp,
    ecn: Ecn,
    enqueued: Time,
}

impl<T> Datagram<T> {
    /// A packet that takes `size` on the link, headers included; of flow 0, best effort, not ECN-capable.
    pub fn new(payload: T, size: Bytes) -> Self {
        Self {
            payload,
            size,
            flow: FlowId(0),
            dscp: Dscp::BEST_EFFORT,
            ecn: Ecn::NotEct,
            enqueued: Time::ZERO,
        }
    }

    /// The same packet of another flow. Queues by flow tell flows by this number.
    #[must_use]
    pub fn with_flow(mut self, flow: u32) -> Self {
        self.flow = FlowId(flow);
        self
    }

    /// The same packet with these ECN bits.
    #[must_use]
    pub fn with_ecn(mut self, ecn: Ecn) -> Self {
        self.ecn = ecn;
        self
    }

    /// The same packet with this codepoint.
    #[must_use]
    pub fn with_dscp(mut self, dscp: Dscp) -> Self {
        self.dscp = dscp;
        self
    }

    /// What it carries.
    pub fn payload(&self) -> &T {
        &self.payload
    }

    /// What it carries, taken out.
    pub fn into_payload(self) -> T {
        self.payload
    }
}

impl<T> Packet for Datagram<T> {
    fn size(&self) -> Bytes {
        self.size
    }
    fn flow(&self) -> FlowId {
        self.flow
    }
    fn dscp(&self) -> Dscp {
        self.dscp
    }
    fn set_dscp(&mut self, dscp: Dscp) {
        self.dscp = dscp;
    }
    fn ecn(&self) -> Ecn {
        self.ecn
    }
    fn mark_ce(&mut self) -> bool {
        if self.ecn != Ecn::NotEct {
            self.ecn = Ecn::Ce;
        }
        self.ecn == Ecn::Ce
    }
    fn enqueued(&self) -> Time {
        self.enqueued
    }
    fn set_enqueued(&mut self, now: Time) {
        self.enqueued = now;
    }
}
