//! A queue's view of a packet.

use crate::dscp::Dscp;
use crate::units::{Bytes, Time};

/// Identifies a flow within one run, counted from 0 in the order of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowId(pub u32);

/// The two ECN bits of the IP header (RFC 3168, section 5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Ecn {
    /// Not-ECT: the sender does not use ECN for this packet.
    #[default]
    NotEct = 0b00,
    /// ECT(1); identifies L4S traffic (RFC 9331).
    Ect1 = 0b01,
    /// ECT(0): ECN-capable transport.
    Ect0 = 0b10,
    /// Congestion experienced: a router marked it.
    Ce = 0b11,
}

/// A packet as seen by a queue discipline: a small struct in the simulator,
/// a buffer with a real header in live mode.
pub trait Packet {
    /// Size on the link, headers included.
    fn size(&self) -> Bytes;
    /// The flow it belongs to.
    fn flow(&self) -> FlowId;
    /// The class it asks for.
    fn dscp(&self) -> Dscp;
    /// Changes the class it asks for.
    fn set_dscp(&mut self, dscp: Dscp);
    /// The ECN bits of the packet.
    fn ecn(&self) -> Ecn;
    /// Sets CE if the packet is ECN-capable. Returns whether it carries CE.
    fn mark_ce(&mut self) -> bool;
    /// When it entered the queue that holds it.
    fn enqueued(&self) -> Time;
    /// Records when it entered a queue. Called once by each queue that admits the packet.
    fn set_enqueued(&mut self, now: Time);
}
