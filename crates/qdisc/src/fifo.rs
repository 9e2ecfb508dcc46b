//! First-in first-out stores of packets, with their backlog.

use std::collections::VecDeque;

use redtail_core::{Packet, Ring, Span, Stream, Time};

use crate::Backlog;

/// Packets in order of arrival, with their number and total size.
#[derive(Debug)]
pub struct Fifo<P> {
    packets: Ring<P>,
    bytes: u64,
}

impl<P: Packet> Fifo<P> {
    /// An empty store.
    pub fn new() -> Self {
        Self {
            packets: Ring::new(),
            bytes: 0,
        }
    }

    /// Appends `packet` and records in it when it entered.
    #[inline]
    pub fn push(&mut self, packet: P, now: Time) {
        self.bytes += packet.size().as_u64();
        self.packets.push_back(packet).set_enqueued(now);
    }

    /// Removes and returns the oldest packet.
    #[inline]
    pub fn pop(&mut self) -> Option<P> {
        let bytes = &mut self.bytes;
        self.packets
            .pop_front_seen(|packet| *bytes -= packet.size().as_u64())
    }

    /// The oldest packet.
    #[inline]
    pub fn front(&self) -> Option<&P> {
        self.packets.front()
    }

    /// The time that the oldest packet has waited; zero if there is none.
    #[inline]
    pub fn sojourn(&self, now: Time) -> Span {
        let head = self.packets.front();
        head.map_or(Span::ZERO, |head| now.saturating_since(head.enqueued()))
    }

    /// Removes and returns the latest packet.
    #[inline]
    pub fn pop_last(&mut self) -> Option<P> {
        let packet = self.packets.pop_back()?;
        self.bytes -= packet.size().as_u64();
        Some(packet)
    }

    /// The packets, the oldest first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &P> + ExactSizeIterator {
        self.packets.iter()
    }

    /// Removes and returns the packet at this place, counted from 0 at the oldest. The cost is in proportion
    /// to the distance from the nearer end.
    pub fn remove(&mut self, place: usize) -> Option<P> {
        let packet = self.packets.remove(place)?;
        self.bytes -= packet.size().as_u64();
        Some(packet)
    }

    /// What is stored.
    #[inline]
    pub fn backlog(&self) -> Backlog {
        Backlog {
            packets: self.packets.len() as u64,
            bytes: self.bytes,
        }
    }
}

impl<P: Packet> Default for Fifo<P> {
    fn default() -> Self {
        Self::new()
    }
}

/// A first-in first-out store from which packets can be removed at random places.
///
/// A removed packet leaves an empty place. Empty places at either end are removed at once, and the others
/// when they are more than the packets, so that the average cost of a call is constant.
#[derive(Debug)]
pub struct Sparse<P> {
    /// The first and the last place contain packets, if there are any.
    places: VecDeque<Option<P>>,
    backlog: Backlog,
}

impl<P: Packet> Sparse<P> {
    /// An empty store.
    pub fn new() -> Self {
        Self {
            places: VecDeque::new(),
            backlog: Backlog::default(),
        }
    }

    /// Appends `packet` and records in it when it entered.
    #[inline]
    pub fn push(&mut self, mut packet: P, now: Time) {
        packet.set_enqueued(now);
        self.backlog.packets += 1;
        self.backlog.bytes += packet.size().as_u64();
        self.places.push_back(Some(packet));
    }

    /// Removes and returns the oldest packet.
    #[inline]
    pub fn pop(&mut self) -> Option<P> {
        self.take(0)
    }

    /// The place of a packet drawn at random, each with the same probability.
    pub fn draw(&self, stream: &mut Stream) -> Option<usize> {
        if self.places.is_empty() {
            return None;
        }
        // At least about half of the places are taken, so two draws do on average.
        loop {
            let place = (stream.uniform() * self.places.len() as f64) as usize;
            if self.places[place].is_some() {
                return Some(place);
            }
        }
    }

    /// The packet at a place that `draw` has returned.
    pub fn get(&self, place: usize) -> Option<&P> {
        self.places.get(place)?.as_ref()
    }

    /// Removes and returns the packet at a place. Places that were drawn before are not valid afterwards.
    pub fn take(&mut self, place: usize) -> Option<P> {
        let packet = self.places.get_mut(place)?.take()?;
        self.backlog.packets -= 1;
        self.backlog.bytes -= packet.size().as_u64();
        while let Some(None) = self.places.front() {
            self.places.pop_front();
        }
        while let Some(None) = self.places.back() {
            self.places.pop_back();
        }
        if self.places.len() as u64 > 2 * self.backlog.packets + 8 {
            self.places.retain(Option::is_some);
        }
        Some(packet)
    }

    /// What is stored.
    #[inline]
    pub fn backlog(&self) -> Backlog {
        self.backlog
    }
}

impl<P: Packet> Default for Sparse<P> {
    fn default() -> Self {
        Self::new()
    }
}
