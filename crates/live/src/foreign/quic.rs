//! Round trips of QUIC by its spin bit (RFC 9000, section 17.4).
//!
//! A client sends the opposite of the value that it received last, a server the same value. So the value of each
//! direction changes once in a round trip. An endpoint need not do so: it sends one value, or random ones (RFC 9312,
//! section 3.8.1), and no round trip follows from these. Here both directions are seen, where packets leave their hosts
//! and where they reach them. So it can be told whether each value follows from the one received last.

use redtail_core::{Span, Time};

/// The first bit of a datagram with a long header (RFC 8999, section 5.1).
const LONG: u8 = 0x80;

/// The spin bit of a short header (RFC 9000, section 17.3.1).
const SPIN: u8 = 0x20;

/// Versions whose short header has a spin bit: 1 (RFC 9000) and 2 (RFC 9369).
const VERSIONS: [u32; 2] = [1, 0x6b33_43cf];

/// Packets of each end that are compared with what it has received, before a connection is taken to spin. Of values drawn
/// at random for each packet, this many follow with a probability of 2e-4 for one end and 4e-8 for both
/// (binomial distribution: 18 of 20 or more).
const ENOUGH: u64 = 20;

/// The share of packets that have to follow: a packet can leave before its sender has read the one that came last.
const FOLLOWS: f64 = 0.9;

/// Round trips that are kept until it is known whether a connection spins.
const KEPT: usize = 64;

/// The values of one direction.
#[derive(Debug, Default)]
struct Way {
    /// The value in the packet that was sent last, and when that value was sent first.
    sent: Option<(bool, Option<Time>)>,
    /// The value in the packet that was received last.
    received: Option<bool>,
    /// Packets that were compared, and those that followed.
    compared: u64,
    followed: u64,
    /// Round trips that are not told yet.
    kept: Vec<Span>,
}

/// A connection of QUIC, as far as it is one.
#[derive(Debug, Default)]
pub struct Connection {
    ways: [Way; 2],
    /// By direction: whether a long header of a known version was seen.
    known: [bool; 2],
    /// Which direction is that of the client, which sent first.
    client: Option<usize>,
}

impl Connection {
    /// A datagram is sent. Returns round trips of the senders of both directions that are certain now.
    pub fn sent(&mut self, way: usize, datagram: &[u8], now: Time) -> [Vec<Span>; 2] {
        let Some(value) = self.value(way, datagram) else {
            return Default::default();
        };
        let is_client = self.client == Some(way);
        let received = self.ways[1 - way].received;
        let own = &mut self.ways[way];
        if let Some(received) = received {
            own.compared += 1;
            own.followed += u64::from(value == (received != is_client));
        }
        match &mut own.sent {
            Some((last, _)) if *last == value => {}
            Some((last, since)) => {
                // A round trip is from one change to the next: what came before the first is none.
                if let Some(since) = since.replace(now)
                    && own.kept.len() < KEPT
                {
                    own.kept.push(now - since);
                }
                *last = value;
            }
            none => *none = Some((value, None)),
        }
        self.certain()
    }

    /// A datagram has arrived.
    pub fn arrived(&mut self, way: usize, datagram: &[u8]) {
        if let Some(value) = self.value(way, datagram) {
            self.ways[way].received = Some(value);
        }
    }

    /// The spin bit of a datagram with a short header, of a connection that is known to be one of QUIC.
    fn value(&mut self, way: usize, datagram: &[u8]) -> Option<bool> {
        let first = *datagram.first()?;
        if first & LONG != 0 {
            let version = datagram
                .get(1..5)?
                .try_into()
                .map(u32::from_be_bytes)
                .ok()?;
            if VERSIONS.contains(&version) {
                self.client.get_or_insert(way);
                self.known[way] = true;
            }
            return None;
        }
        (self.known == [true; 2]).then_some(first & SPIN != 0)
    }

    /// The round trips that wait, if both ends spin.
    fn certain(&mut self) -> [Vec<Span>; 2] {
        let spins = |way: &Way| {
            way.compared >= ENOUGH && way.followed as f64 >= FOLLOWS * way.compared as f64
        };
        if self.ways.iter().all(spins) {
            return std::array::from_fn(|way| std::mem::take(&mut self.ways[way].kept));
        }
        Default::default()
    }
}

#[cfg(test)]
mod tests {
    use redtail_core::Stream;

    use super::*;

    const FORWARD: usize = 0;
    const CLIENT: usize = 1;

    fn long(version: u32) -> Vec<u8> {
        [&[0xc0][..], &version.to_be_bytes()].concat()
    }

    /// The round trips of both directions: each side sends a packet each ms over 20 ms, with the value of `choose`, which is
    /// given the direction, and the value received last.
    fn run(version: u32, mut choose: impl FnMut(usize, bool) -> bool) -> [Vec<Span>; 2] {
        let mut connection = Connection::default();
        for way in [CLIENT, FORWARD] {
            connection.sent(way, &long(version), Time::ZERO);
            connection.arrived(way, &long(version));
        }
        let mut found: [Vec<Span>; 2] = Default::default();
        let mut flying: [std::collections::VecDeque<Vec<u8>>; 2] = Default::default();
        let mut received = [false; 2];
        for ms in 0..1000 {
            let now = Time::ZERO + Span::from_ms(ms);
            for way in [CLIENT, FORWARD] {
                let value = choose(way, received[1 - way]);
                let packet = vec![0x40 | u8::from(value) << 5, 1, 2];
                for (all, more) in found.iter_mut().zip(connection.sent(way, &packet, now)) {
                    all.extend(more);
                }
                flying[way].push_back(packet);
                if flying[way].len() > 20 {
                    let packet = flying[way].pop_front().expect("it flies");
                    connection.arrived(way, &packet);
                    received[way] = packet[0] & SPIN != 0;
                }
            }
        }
        found
    }

    #[test]
    fn the_time_between_changes_is_the_round_trip() {
        for version in VERSIONS {
            let found = run(version, |way, received| received != (way == CLIENT));
            for trips in found {
                // 20 ms in each direction, and up to a ms until the next packet is sent.
                assert!(trips.len() >= 20, "{trips:?}");
                let near = |trip: &Span| (40..=42).contains(&(trip.as_ps() / 1_000_000_000));
                assert!(trips.iter().all(near), "{trips:?}");
            }
        }
    }

    #[test]
    fn one_value_or_random_values_give_no_round_trip() {
        // A false alarm has a probability below 4e-8 at each packet that is compared: see ENOUGH.
        let mut stream = Stream::named(7, 0, "spin");
        let mut random = move || stream.uniform() < 0.5;
        let none: [Vec<Span>; 2] = Default::default();
        assert_eq!(run(1, |_, _| false), none, "one value");
        assert_eq!(
            run(1, |way, _| way == CLIENT),
            none,
            "one value for each direction"
        );
        assert_eq!(run(1, |_, _| random()), none, "random");
        let mut stream = Stream::named(8, 0, "spin");
        let mut random = move || stream.uniform() < 0.5;
        let one = |way, received| if way == CLIENT { random() } else { received };
        assert_eq!(
            run(1, one),
            none,
            "a client that does not spin, and a server that does"
        );
    }

    #[test]
    fn another_protocol_has_no_spin_bit() {
        let spins = |way, received| received != (way == CLIENT);
        let none: [Vec<Span>; 2] = Default::default();
        assert_eq!(run(0, spins), none, "negotiation of a version");
        assert_eq!(run(0x0a0a_0a0a, spins), none, "a version that is not known");
    }
}
