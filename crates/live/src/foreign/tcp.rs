//! What the segments of a TCP connection say to someone who sees them enter and leave the network.

use std::collections::VecDeque;

use redtail_core::{Span, Time};
use redtail_qdisc::TcpHeader;
use redtail_transport::SackBlock;
use redtail_transport::tcp::ranges::Ranges;

/// Values of timestamps of one end whose echoes are waited for: a thousand a second (Linux counts milliseconds) in
/// a window that takes 4 s. Of older ones no round trip is taken.
const MOST_STAMPS: usize = 4096;

/// Stretches of data that arrived before what precedes them. A window of 64 kB between them has no more octets than this
/// at once; of more, the lowest are taken as one with what is missing below them.
const MOST_RANGES: usize = 4096;

/// What segments of a direction add to its counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Told {
    /// Bytes of payload that arrived for the first time.
    pub fresh: u64,
    /// A round trip of the sender of the *other* direction, which this segment ended.
    pub round_trip: Option<Span>,
}

/// The feedback of ECN that the ends have agreed on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Feedback {
    /// None, or not known: the handshake was not seen.
    #[default]
    Unknown,
    /// ECE and CWR (RFC 3168).
    Classic,
    /// The counter ACE (RFC 9768).
    Accurate,
}

/// The bits AE, CWR and ECE of a header, as one number (RFC 9768, section 3.1.1).
fn ace(flags: u16) -> u8 {
    ((flags >> 6) & 7) as u8
}

/// What one end sends.
#[derive(Debug, Default)]
struct Way {
    /// The highest sequence number seen at the sender, made not to wrap.
    near: Option<u64>,
    /// What has reached the receiver.
    arrived: Ranges,
    /// Acknowledged up to here, as the sender has heard.
    acknowledged: Option<u64>,
    /// Values of timestamps of data, and when the first segment with each was sent.
    stamps: VecDeque<(u32, Time)>,
    /// The counter ACE in the segments of this end, after the one that ends the handshake.
    ace: Option<u8>,
    /// Segments without SYN that this end has sent, up to 2.
    segments: u8,
}

/// A connection.
#[derive(Debug, Default)]
pub struct Connection {
    ways: [Way; 2],
    /// The bits of ECN of the SYN.
    asked: u8,
    /// The feedback of ECN.
    pub feedback: Feedback,
    /// By side: whether its FIN has been seen, or a RST.
    closed: [bool; 2],
}

/// The number of a sequence that does not wrap, nearest to `near`.
fn unwrapped(sequence: u32, near: u64) -> u64 {
    let step = sequence.wrapping_sub(near as u32) as i32;
    near.saturating_add_signed(i64::from(step))
}

impl Way {
    /// The place of a sequence number. The first begins far from zero, so that older ones have places too.
    fn place(&mut self, sequence: u32) -> u64 {
        let near = *self.near.get_or_insert((1 << 32) + u64::from(sequence));
        unwrapped(sequence, near)
    }
}

impl Connection {
    /// A segment is sent on a way (0 is the group's direction). Returns the increase of the counter ACE that it tells, with
    /// accurate feedback.
    pub fn sent(&mut self, way: usize, sequence: u32, header: &TcpHeader, now: Time) -> u64 {
        let flags = header.flags;
        if flags & TcpHeader::SYN != 0 {
            if flags & TcpHeader::ACK == 0 && self.closed != [false; 2] {
                *self = Self::default(); // the ports are used again
            }
            self.note_ecn(flags);
            self.ways[way].near = None;
        }
        if flags & TcpHeader::RST != 0 {
            self.closed = [true; 2];
        }
        self.closed[way] |= flags & TcpHeader::FIN != 0;
        let own = &mut self.ways[way];
        let begin = own.place(sequence);
        let length =
            u64::from(header.payload) + u64::from(flags & (TcpHeader::SYN | TcpHeader::FIN) != 0);
        own.near = own.near.max(Some(begin + length));
        if length > 0
            && let Some((value, _)) = header.timestamps
            && own
                .stamps
                .back()
                .is_none_or(|&(last, _)| newer(value, last))
        {
            own.stamps.push_back((value, now));
            if own.stamps.len() > MOST_STAMPS {
                own.stamps.pop_front();
            }
        }
        self.count_ace(way, flags)
    }

    /// A segment has arrived, whose payload begins at `sequence`.
    pub fn arrived(&mut self, way: usize, sequence: u32, header: &TcpHeader, now: Time) -> Told {
        let syn = header.flags & TcpHeader::SYN != 0;
        let own = &mut self.ways[way];
        let begin = own.place(sequence) + u64::from(syn);
        let mut told = Told::default();
        if header.payload > 0 {
            let end = begin + u64::from(header.payload);
            let block = SackBlock { start: begin, end };
            own.arrived
                .insert(block, |gap| told.fresh += gap.end - gap.start);
            while own.arrived.as_slice().len() > MOST_RANGES {
                let second = own.arrived.as_slice()[1];
                let lowest = own.arrived.lowest().unwrap_or(second.start);
                let both = SackBlock {
                    start: lowest,
                    ..second
                };
                own.arrived.insert(both, |_| {});
            }
        }
        if header.flags & TcpHeader::ACK != 0 {
            told.round_trip = self.acknowledges(1 - way, header, now);
        }
        told
    }

    /// An acknowledgement of what was sent on a way has reached its sender: the round trip that it ends. It is taken of an
    /// acknowledgement of new data alone (RFC 7323, section 4.1), and once of each value: from the first segment with it to its
    /// first echo. So no segment that was sent again is taken for its first copy.
    fn acknowledges(&mut self, way: usize, header: &TcpHeader, now: Time) -> Option<Span> {
        let own = &mut self.ways[way];
        let ack = unwrapped(header.ack as u32, own.near?);
        let before = own
            .acknowledged
            .replace(ack.max(own.acknowledged.unwrap_or(0)));
        let is_new = before.is_some_and(|before| ack > before) || before.is_none();
        let (_, echo) = header.timestamps.filter(|_| is_new)?;
        let mut found = None;
        while let Some(&(value, sent)) = own.stamps.front() {
            if newer(value, echo) {
                break;
            }
            own.stamps.pop_front();
            found = (value == echo).then(|| now.saturating_since(sent));
        }
        found
    }

    fn note_ecn(&mut self, flags: u16) {
        let bits = ace(flags);
        if flags & TcpHeader::ACK == 0 {
            (self.asked, self.feedback) = (bits, Feedback::Unknown);
            return;
        }
        // RFC 9768, table 2; RFC 3168, section 6.1.1.
        self.feedback = match (self.asked, bits) {
            (0b111, 0b010 | 0b011 | 0b100 | 0b110) => Feedback::Accurate,
            (0b111 | 0b011, 0b001 | 0b101) => Feedback::Classic,
            _ => Feedback::Unknown,
        };
    }

    /// The increase of the counter ACE. The first segment of the client after its SYN has the bits of the handshake in its
    /// place (RFC 9768, section 3.2.2.1).
    fn count_ace(&mut self, way: usize, flags: u16) -> u64 {
        if self.feedback != Feedback::Accurate || flags & (TcpHeader::SYN | TcpHeader::RST) != 0 {
            return 0;
        }
        let own = &mut self.ways[way];
        own.segments = own.segments.saturating_add(1);
        let now = ace(flags);
        if own.segments < 2 {
            return 0;
        }
        let before = own.ace.replace(now);
        let step = before.map_or(0, |before| now.wrapping_sub(before) & 7);
        // A step back is an acknowledgement that another one has overtaken.
        u64::from(if step < 6 { step } else { 0 })
    }

    /// Whether both ends have ended it.
    pub fn is_over(&self) -> bool {
        self.closed == [true; 2]
    }
}

/// Whether a value of a clock of timestamps is later than another one (RFC 7323, section 5.2).
fn newer(value: u32, than: u32) -> bool {
    value.wrapping_sub(than) as i32 > 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Time {
        Time::ZERO + Span::from_ms(ms)
    }

    fn segment(flags: u16, payload: u32, ack: u32, stamps: (u32, u32)) -> TcpHeader {
        TcpHeader {
            flags,
            payload,
            ack: u64::from(ack),
            timestamps: Some(stamps),
            ..TcpHeader::default()
        }
    }

    const ACK: u16 = TcpHeader::ACK;

    /// What a segment of data, which ends at `end` beyond 2^32 - 1000, tells when it arrives.
    fn data(connection: &mut Connection, begin: u32, length: u32) -> u64 {
        let sequence = begin.wrapping_sub(1000);
        let header = segment(ACK, length, 0, (0, 0));
        connection.sent(0, sequence, &header, at(0));
        connection.arrived(0, sequence, &header, at(0)).fresh
    }

    #[test]
    fn each_byte_counts_when_it_arrives_first() {
        let mut connection = Connection::default();
        assert_eq!(data(&mut connection, 0, 600), 600);
        assert_eq!(
            data(&mut connection, 1200, 600),
            600,
            "beyond the wrap, after a hole"
        );
        assert_eq!(data(&mut connection, 0, 600), 0, "again");
        assert_eq!(
            data(&mut connection, 300, 900),
            600,
            "the hole, and some again"
        );
        assert_eq!(data(&mut connection, 1700, 200), 100);
    }

    #[test]
    fn a_round_trip_is_taken_once_of_each_value_and_of_new_data() {
        let mut connection = Connection::default();
        let send = |connection: &mut Connection, sequence, value, ms| {
            connection.sent(0, sequence, &segment(ACK, 100, 0, (value, 0)), at(ms));
        };
        let trip = |connection: &mut Connection, ack, echo, ms| {
            let header = segment(ACK, 0, ack, (0, echo));
            connection.arrived(1, 0, &header, at(ms)).round_trip
        };
        send(&mut connection, 0, 10, 0);
        send(&mut connection, 100, 10, 1);
        send(&mut connection, 200, 12, 2);
        assert_eq!(trip(&mut connection, 100, 10, 30), Some(Span::from_ms(30)));
        assert_eq!(
            trip(&mut connection, 200, 10, 31),
            None,
            "the value has been taken"
        );
        assert_eq!(
            trip(&mut connection, 200, 12, 40),
            None,
            "it acknowledges nothing new"
        );
        send(&mut connection, 200, 60, 60); // sent again: the echo of the first copy is not there
        assert_eq!(trip(&mut connection, 300, 60, 95), Some(Span::from_ms(35)));
        assert_eq!(
            trip(&mut connection, 400, 61, 99),
            None,
            "no segment had it"
        );
    }

    #[test]
    fn the_feedback_is_what_both_ends_agree_on() {
        const ECE: u16 = TcpHeader::ECE;
        const CWR: u16 = TcpHeader::CWR;
        const AE: u16 = TcpHeader::AE;
        const SYN: u16 = TcpHeader::SYN;
        for (asked, answer, feedback) in [
            (0, 0, Feedback::Unknown),
            (ECE | CWR, ECE, Feedback::Classic),
            (ECE | CWR, 0, Feedback::Unknown),
            (AE | ECE | CWR, ECE, Feedback::Classic),
            (AE | ECE | CWR, CWR, Feedback::Accurate),
            (AE | ECE | CWR, AE | ECE | CWR, Feedback::Unknown),
        ] {
            let mut connection = Connection::default();
            connection.sent(1, 0, &segment(SYN | asked, 0, 0, (0, 0)), at(0));
            connection.sent(0, 0, &segment(SYN | ACK | answer, 0, 1, (0, 0)), at(0));
            assert_eq!(connection.feedback, feedback, "{asked:x} {answer:x}");
        }
    }

    #[test]
    fn the_counter_of_marks_is_followed_over_its_wrap() {
        let bits = |ace: u16| (ace & 7) << 6;
        let mut connection = Connection::default();
        connection.sent(
            1,
            0,
            &segment(TcpHeader::SYN | bits(7), 0, 0, (0, 0)),
            at(0),
        );
        connection.sent(
            0,
            0,
            &segment(TcpHeader::SYN | ACK | bits(2), 0, 1, (0, 0)),
            at(0),
        );
        let mut step = |ace| connection.sent(1, 1, &segment(ACK | bits(ace), 0, 1, (0, 0)), at(1));
        // The bits of the handshake, then 5, then marks; the fifth was overtaken.
        let steps = [3, 5, 7, 9, 8, 9].map(&mut step);
        assert_eq!(steps, [0, 0, 2, 2, 0, 1]);
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut connection = Connection::default();
        for i in 0..3 * MOST_RANGES as u32 {
            let header = segment(ACK, 1, 0, (i + 1, 0));
            connection.sent(0, 2 * i, &header, at(0));
            assert_eq!(connection.arrived(0, 2 * i, &header, at(0)).fresh, 1);
        }
        assert_eq!(connection.ways[0].arrived.as_slice().len(), MOST_RANGES);
        assert_eq!(connection.ways[0].stamps.len(), MOST_STAMPS);
    }
}
