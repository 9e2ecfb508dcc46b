//! How a discipline reads its backlog: in packets, or in bytes.

use redtail_core::{Bytes, ParamWarning, QueueSize, Rate};

use crate::{Backlog, Limit, LinkFacts};

/// Size of a packet where nothing is known of what crosses a link: Ethernet's largest.
const FULL_PACKET: Bytes = Bytes::new(1500);

/// Reads a backlog in packets; where sizes are given in bytes or time, in packets of a
/// typical size, so that a law's gains are per packet either way.
#[derive(Clone, Copy, Debug)]
pub struct Gauge {
    /// Bytes in a typical packet; `None` where packets are counted.
    bytes_each: Option<f64>,
}

impl Gauge {
    /// Counts packets if `size` does, else bytes over `packet`.
    pub fn like(size: QueueSize, packet: Bytes) -> Self {
        Self {
            bytes_each: (!size.counts_packets()).then_some(packet.as_u64() as f64),
        }
    }

    /// The backlog, in packets.
    #[inline]
    pub fn read(self, backlog: Backlog) -> f64 {
        match self.bytes_each {
            None => backlog.packets as f64,
            Some(bytes) => backlog.bytes as f64 / bytes,
        }
    }

    /// What one packet of this size adds, in packets.
    #[inline]
    pub fn one(self, size: Bytes) -> f64 {
        match self.bytes_each {
            None => 1.0,
            Some(bytes) => size.as_u64() as f64 / bytes,
        }
    }

    /// A size on a link of this rate, in packets.
    pub fn of(self, size: QueueSize, rate: Rate) -> f64 {
        match size.at(rate) {
            QueueSize::Packets(packets) => packets as f64,
            QueueSize::Bytes(bytes) => bytes as f64 / self.bytes_each.unwrap_or(1.0),
            QueueSize::Time(_) => unreachable!("a time has become bytes"),
        }
    }
}

/// The size of a typical packet: what was given, else the largest that is known to cross
/// the link, else 1500 B.
pub fn packet_size(given: Option<Bytes>, link: &LinkFacts) -> Bytes {
    let known = Some(link.largest_packet).filter(|&packet| packet > Bytes::ZERO);
    given.or(known).unwrap_or(FULL_PACKET)
}

/// The backlog in the unit of `size`, which must not be a time any more
/// ([`QueueSize::at`]).
#[inline]
pub fn amount(backlog: Backlog, size: QueueSize) -> u64 {
    if size.counts_packets() {
        backlog.packets
    } else {
        backlog.bytes
    }
}

/// The number in a size that is not a time any more.
#[inline]
pub fn number(size: QueueSize) -> u64 {
    match size {
        QueueSize::Packets(number) | QueueSize::Bytes(number) => number,
        QueueSize::Time(span) => span.as_ps(),
    }
}

/// The part of a limit in the unit of `size`, if it has one.
pub fn limit_like(limit: Limit, size: QueueSize, rate: Rate) -> Option<u64> {
    let limit = limit.at(rate);
    if size.counts_packets() {
        limit.packets
    } else {
        limit.bytes
    }
}

/// Warns of a backlog to act at that the limit keeps out of reach.
pub(crate) fn out_of_reach(
    key: &'static str,
    size: QueueSize,
    limit: Limit,
    rate: Rate,
) -> Option<ParamWarning> {
    let most = limit_like(limit, size, rate)?;
    let clause = format!(
        "is not below the limit (\"{limit}\"), so the buffer overflows before it gets there"
    );
    (most <= number(size.at(rate))).then(|| ParamWarning::new(key, clause))
}
