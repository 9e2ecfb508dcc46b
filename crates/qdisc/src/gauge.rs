//! The unit in which a discipline measures its backlog: packets or bytes.

use redtail_core::{Bytes, ParamWarning, QueueSize, Rate};

use crate::{Backlog, Limit, LinkFacts};

/// The size of a packet if nothing is known of the traffic on a link: Ethernet's largest.
const FULL_PACKET: Bytes = Bytes::new(1500);

/// Converts a backlog to packets. If sizes are given in bytes or as time, these are packets of a typical
/// size, so that the gains of a law are per packet in each case.
#[derive(Clone, Copy, Debug)]
pub struct Gauge {
    /// Bytes in a typical packet; `None` if packets are counted.
    bytes_each: Option<f64>,
}

impl Gauge {
    /// Counts packets if `size` is in packets; otherwise divides bytes by the size of `packet`.
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

    /// The contribution of one packet of this size, in packets.
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

/// The size of a typical packet: the given one, otherwise the largest that is known to cross the link,
/// otherwise 1500 B.
pub fn packet_size(given: Option<Bytes>, link: &LinkFacts) -> Bytes {
    let known = Some(link.largest_packet).filter(|&packet| packet > Bytes::ZERO);
    given.or(known).unwrap_or(FULL_PACKET)
}

/// The backlog in the unit of `size`. A time must have been converted before ([`QueueSize::at`]).
#[inline]
pub fn amount(backlog: Backlog, size: QueueSize) -> u64 {
    if size.counts_packets() {
        backlog.packets
    } else {
        backlog.bytes
    }
}

/// The number of packets or bytes in a size. A time must have been converted before.
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

/// Warns of a threshold that the backlog cannot reach because of the limit.
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
