//! What packets carry. It is not moved until the packet is delivered or dropped.
//!
//! Queues and delay lines move 32 bytes; a segment with its SACK blocks is written once and read
//! once (measured in docs/performance-log.md).

use redtail_core::{Ecn, Time, prefetch};
use redtail_network::{Address, ContentId, Links, SimPacket};
use redtail_traffic::CallPacket;
use redtail_transport::{HeaderSizes, Segment};

use crate::own::OwnPacket;

const _: () = assert!(size_of::<Place>() == 64, "a content fits a cache line");

/// Packets of one flow in one direction, for conservation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Passed {
    /// Put into the network.
    pub sent: u64,
    /// Taken out of it at the far end.
    pub delivered: u64,
}

/// What a packet carries from one endpoint to the other.
#[derive(Clone, Copy, Debug)]
pub enum Content {
    /// Of a TCP packet.
    Segment(Segment),
    /// Of a UDP packet.
    Datagram(Datagram),
    /// Of a packet of a call, over UDP.
    Call(CallPacket),
    /// Of a packet of an endpoint of a user, over UDP.
    Own(OwnPacket),
    /// Of the copy that a wire has made of a packet of a UDP source or of a call. Their receivers discard copies, as those of RTP
    /// do (RFC 3711, section 3.3.2), and no figure of a flow counts them.
    Copy,
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
    /// The ECN bits with which it is sent. UDP sources do not use ECN; calls and endpoints of users may.
    #[inline]
    pub fn ecn(&self) -> Ecn {
        match self {
            Self::Segment(segment) => segment.ecn,
            Self::Datagram(_) | Self::Copy => Ecn::NotEct,
            Self::Call(packet) => match packet.ecn() {
                true => Ecn::Ect0,
                false => Ecn::NotEct,
            },
            Self::Own(packet) => packet.ecn,
        }
    }
}

/// Where a content is: one line of the cache, and not parts of two.
#[derive(Debug)]
#[repr(align(64))]
struct Place(Content);

impl Place {
    /// A segment here, to be written.
    #[inline]
    fn segment(&mut self) -> &mut Segment {
        // Whether a segment was here before is hard to predict, so it is not asked.
        self.0 = Content::Segment(Segment::default());
        match &mut self.0 {
            Content::Segment(segment) => segment,
            Content::Datagram(_) | Content::Call(_) | Content::Own(_) | Content::Copy => {
                unreachable!("it was made a segment")
            }
        }
    }
}

/// The contents of all packets in flight. Places are reused, the latest freed first, so a steady
/// state allocates nothing and stays in the cache.
#[derive(Debug, Default)]
pub struct Contents {
    places: Vec<Place>,
    free: Vec<ContentId>,
}

impl Contents {
    /// Stores a content and sends a packet of `size` bytes with it.
    #[inline(always)]
    pub fn send(&mut self, content: Content, size: u32, to: Address, now: Time, links: &mut Links) {
        let ecn = content.ecn();
        let id = self.put(content);
        let place = |packet: &SimPacket| self.place(u64::from(packet.flow), packet.content);
        links.emit((id, ecn), size, to, now, place);
    }

    /// Sends a segment, whose ECN bits are known without a look at the content: the segment is copied as a whole.
    #[inline(always)]
    pub fn send_segment(
        &mut self,
        segment: Segment,
        size: u32,
        to: Address,
        now: Time,
        links: &mut Links,
    ) {
        let ecn = segment.ecn;
        let id = self.put(Content::Segment(segment));
        let place = |packet: &SimPacket| self.place(u64::from(packet.flow), packet.content);
        links.emit((id, ecn), size, to, now, place);
    }

    /// The place of a packet among those of its group: the number of its flow or connection, and its own on this.
    #[inline(always)] // rarely asked for, in code that is rarely run
    pub fn place(&self, connection: u64, id: ContentId) -> [u64; 2] {
        let own = match self.get(id) {
            Content::Segment(segment) => segment.seq,
            Content::Datagram(datagram) => datagram.number,
            Content::Call(_) | Content::Own(_) | Content::Copy => {
                unreachable!("calls and endpoints of users say how large their packets are")
            }
        };
        [connection, own]
    }

    /// Stores a content.
    #[inline]
    pub fn put(&mut self, content: Content) -> ContentId {
        if let Some(id) = self.free.pop() {
            self.places[id.0 as usize] = Place(content);
            id
        } else {
            self.places.push(Place(content));
            ContentId(self.places.len() as u32 - 1)
        }
    }

    /// Stores the segment that `write` writes, if it returns that there is one. It is written to its place, so that
    /// it is not copied. Returns also its size on the link and its ECN bits.
    #[inline]
    pub fn put_written(
        &mut self,
        headers: HeaderSizes,
        write: impl FnOnce(&mut Segment) -> bool,
    ) -> Option<(ContentId, u32, Ecn)> {
        let id = match self.free.last() {
            Some(&id) => id,
            None => self.add_place(),
        };
        let segment = self.places[id.0 as usize].segment();
        if !write(segment) {
            return None;
        }
        self.free.pop();
        Some((id, headers.size(segment), segment.ecn))
    }

    /// Adds a free place.
    #[cold]
    fn add_place(&mut self) -> ContentId {
        let id = ContentId(self.places.len() as u32);
        self.places
            .push(Place(Content::Segment(Segment::default())));
        self.free.push(id);
        id
    }

    /// Prefetches the content of a packet in flight into the cache.
    #[inline]
    pub fn prefetch(&self, id: ContentId) {
        prefetch(&self.places[id.0 as usize]);
    }

    /// The content of a packet in flight.
    #[inline]
    pub fn get(&self, id: ContentId) -> &Content {
        &self.places[id.0 as usize].0
    }

    /// The segment of a TCP packet, with `ecn`, the ECN bits that the packet has on arrival.
    ///
    /// # Panics
    /// When it is a UDP packet: a bug of the engine.
    #[inline]
    pub fn segment_on_arrival(&mut self, id: ContentId, ecn: Ecn) -> &Segment {
        match &mut self.places[id.0 as usize].0 {
            Content::Segment(segment) => {
                segment.ecn = ecn;
                segment
            }
            Content::Datagram(_) | Content::Call(_) | Content::Own(_) | Content::Copy => {
                unreachable!("the packet is a UDP packet")
            }
        }
    }

    /// The datagram of a UDP packet; `None` if it is a copy.
    ///
    /// # Panics
    /// When it is a TCP packet: a bug of the engine.
    #[inline]
    pub fn datagram(&self, id: ContentId) -> Option<&Datagram> {
        match self.get(id) {
            Content::Datagram(datagram) => Some(datagram),
            Content::Copy => None,
            Content::Segment(_) | Content::Call(_) | Content::Own(_) => {
                unreachable!("the packet has no datagram")
            }
        }
    }

    /// The content of a packet of a call; `None` if it is a copy.
    ///
    /// # Panics
    /// When it is another packet: a bug of the engine.
    #[inline]
    pub fn of_call(&self, id: ContentId) -> Option<&CallPacket> {
        match self.get(id) {
            Content::Call(packet) => Some(packet),
            Content::Copy => None,
            Content::Segment(_) | Content::Datagram(_) | Content::Own(_) => {
                unreachable!("the packet is of no call")
            }
        }
    }

    /// The content of a packet of an endpoint of a user.
    ///
    /// # Panics
    /// When it is another packet: a bug of the engine.
    pub fn own(&self, id: ContentId) -> OwnPacket {
        match self.get(id) {
            Content::Own(packet) => *packet,
            Content::Segment(_) | Content::Datagram(_) | Content::Call(_) | Content::Copy => {
                unreachable!("the packet is of no endpoint of a user")
            }
        }
    }

    /// Frees the content of a packet that has left the network. It can be read until the next one
    /// is put in.
    #[inline]
    pub fn free(&mut self, id: ContentId) {
        self.free.push(id);
    }
}
