//! First-in first-out storage that knows its backlog.

use std::collections::VecDeque;

use redtail_core::{Packet, Span, Stream, Time};

use crate::Backlog;

/// Packets in order of arrival, with their count and total size at hand.
#[derive(Debug)]
pub struct Fifo<P> {
    packets: VecDeque<P>,
    bytes: u64,
}

impl<P: Packet> Fifo<P> {
    /// An empty store.
    pub fn new() -> Self {
        Self {
            packets: VecDeque::new(),
            bytes: 0,
        }
    }

    /// Appends `packet`, stamping its entry.
    #[inline]
    pub fn push(&mut self, mut packet: P, now: Time) {
        packet.set_enqueued(now);
        self.bytes += packet.size().as_u64();
        self.packets.push_back(packet);
    }

    /// Takes the oldest packet.
    #[inline]
    pub fn pop(&mut self) -> Option<P> {
        if self.packets.is_empty() {
            return None;
        }
        let packet = self.packets.pop_front().expect("not empty");
        self.bytes -= packet.size().as_u64();
        Some(packet)
    }

    /// The oldest packet.
    #[inline]
    pub fn front(&self) -> Option<&P> {
        self.packets.front()
    }

    /// How long the oldest packet has waited; no time if nothing waits.
    #[inline]
    pub fn sojourn(&self, now: Time) -> Span {
        let head = self.packets.front();
        head.map_or(Span::ZERO, |head| now.saturating_since(head.enqueued()))
    }

    /// Takes the latest packet.
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

    /// Takes the packet at this place, counted from 0 at the oldest; costs time in proportion to
    /// how far it is from the nearer end.
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

/// A first-in first-out store from whose middle packets can be drawn and taken.
///
/// What is taken leaves a hole; holes at either end are closed at once and those between
/// when they outnumber the packets, so that every call costs a constant on average.
#[derive(Debug)]
pub struct Sparse<P> {
    /// The first and the last place hold packets, if there are any.
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

    /// Appends `packet`, stamping its entry.
    #[inline]
    pub fn push(&mut self, mut packet: P, now: Time) {
        packet.set_enqueued(now);
        self.backlog.packets += 1;
        self.backlog.bytes += packet.size().as_u64();
        self.places.push_back(Some(packet));
    }

    /// Takes the oldest packet.
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

    /// The packet at a place, as `draw` gave it.
    pub fn get(&self, place: usize) -> Option<&P> {
        self.places.get(place)?.as_ref()
    }

    /// Takes the packet at a place. Places drawn before are void then.
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
