//! First-in first-out storage that knows its backlog.

use std::collections::VecDeque;

use redtail_core::{Packet, Time};

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
        let packet = self.packets.pop_front()?;
        self.bytes -= packet.size().as_u64();
        Some(packet)
    }

    /// The oldest packet.
    #[inline]
    pub fn front(&self) -> Option<&P> {
        self.packets.front()
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
