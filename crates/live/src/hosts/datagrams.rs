//! The datagrams of one sender: each has its number, by which its receiver tells which of them were lost.
//!
//! What a datagram carries otherwise stays in this process, because both ends are here.

use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::net::{SendFlags, send};

/// Bytes of IPv4 and UDP headers.
pub const HEADER: u32 = 28;

/// Bytes of the number that each datagram has.
const NUMBER: usize = 4;

/// The datagrams of one sender of which it is not known whether they arrive, with what is kept of each.
#[derive(Debug)]
pub(super) struct Datagrams<T> {
    /// Number of the first.
    first: u64,
    kept: VecDeque<T>,
}

impl<T> Default for Datagrams<T> {
    fn default() -> Self {
        Self {
            first: 0,
            kept: VecDeque::new(),
        }
    }
}

impl<T> Datagrams<T> {
    /// Sends the next datagram, a packet of `size` bytes, of which `each` is kept. `room` holds the largest one. Gives
    /// `each` back if the socket's buffer is full: the datagram never reaches the network.
    ///
    /// # Errors
    /// When the kernel refuses it for another reason.
    pub(super) fn send(
        &mut self,
        socket: &OwnedFd,
        size: u32,
        room: &mut [u8],
        each: T,
    ) -> io::Result<Option<T>> {
        let packet = &mut room[..(size.saturating_sub(HEADER) as usize).max(NUMBER)];
        packet[..NUMBER].copy_from_slice(&self.next().to_be_bytes());
        match send(socket, packet, SendFlags::NOSIGNAL) {
            Ok(_) => self.kept.push_back(each),
            Err(Errno::AGAIN | Errno::NOBUFS) => return Ok(Some(each)),
            Err(error) => return Err(error.into()),
        }
        Ok(None)
    }

    /// The number of the next one, modulo 2^32.
    fn next(&self) -> u32 {
        (self.first + self.kept.len() as u64) as u32
    }

    /// The datagram with this payload arrives: returns its number and what is kept of it. Those before it that have not
    /// arrived are `lost`, because queues keep the order of a flow. `None` for a second copy, and for what has no number.
    pub(super) fn arrives(&mut self, payload: &[u8], lost: impl FnMut(T)) -> Option<(u64, T)> {
        let number = u32::from_be_bytes(*payload.first_chunk::<NUMBER>()?);
        let ahead = number.wrapping_sub(self.first as u32) as usize;
        if ahead >= self.kept.len() {
            return None;
        }
        self.kept.drain(..ahead).for_each(lost);
        self.first += ahead as u64 + 1;
        Some((self.first - 1, self.kept.pop_front()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_after_a_datagram_says_that_it_is_lost() {
        // Numbers are sent modulo 2^32.
        let first = u64::from(u32::MAX) - 1;
        let mut sent = Datagrams {
            first,
            kept: VecDeque::from(["a", "b", "c", "d"]),
        };
        assert_eq!(sent.next(), 2);
        let mut lost = Vec::new();
        let mut arrives = |number: u32| sent.arrives(&number.to_be_bytes(), |each| lost.push(each));
        assert_eq!(arrives(0), Some((first + 2, "c")), "it is the third");
        assert_eq!(arrives(0), None, "a second copy");
        assert_eq!(arrives(5), None, "a number that was not sent");
        assert_eq!(arrives(1), Some((first + 3, "d")), "it is the last");
        assert_eq!(lost, ["a", "b"]);
        assert_eq!(sent.arrives(&[0; 3], |_| ()), None, "it has no number");
    }
}
