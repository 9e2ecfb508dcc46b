//! CAKE's ACK filter: it finds the waiting acknowledgement that a later one makes redundant.
//!
//! Source: Linux 6.1, `net/sched/sch_cake.c` (`cake_ack_filter`, `cake_tcph_may_drop`,
//! `cake_tcph_sack_compare`).
//!
//! ```text
//! when a segment with ACK and without SYN has joined a queue, the segments before it are examined,
//! from the head on. One of them can be dropped if it
//!   has the same addresses and ports, and no payload
//!   has ACK set, any values of ECE and CWR, and no other flag
//!   has no options but timestamps and SACK, and timestamps that are not later than those of the latest
//!   acknowledges no more than the latest
//!   reports by SACK nothing that the latest does not report, and no duplicate (D-SACK); and less than
//!   the latest if both acknowledge the same
//! The first of these is dropped if there is a second one. So one of them always stays, and the
//! one that has waited longest is dropped.
//! A segment between them with the same addresses and ports and other ECE and CWR bits restarts the search,
//! because the change is information.
//! aggressive: also the only one, if no segment is between it and the latest and their bits are equal.
//! ```

use crate::header::TcpHeader;

/// Returns the position, counted from 0 at the head, of the acknowledgement that can be dropped, among the
/// packets that wait before `latest`. A packet that is not TCP has `None` in place of a header.
pub fn redundant(
    latest: &TcpHeader,
    waiting: impl Iterator<Item = Option<TcpHeader>>,
    aggressive: bool,
) -> Option<usize> {
    const ECN: u16 = TcpHeader::ECE | TcpHeader::CWR;
    if latest.flags & (TcpHeader::ACK | TcpHeader::SYN) != TcpHeader::ACK {
        return None;
    }
    let mut eligible: Option<(usize, u16)> = None;
    let mut last = None;
    for (place, header) in waiting.enumerate() {
        last = Some(place);
        let Some(header) = header.filter(|header| header.tuple == latest.tuple) else {
            continue;
        };
        let bits = header.flags & ECN;
        eligible = eligible.filter(|&(_, before)| before == bits);
        if !may_go(&header, latest) {
            continue;
        }
        match eligible {
            Some((first, _)) => return Some(first),
            None => eligible = Some((place, bits)),
        }
    }
    let (only, bits) = eligible?;
    (aggressive && last == Some(only) && bits == latest.flags & ECN).then_some(only)
}

/// Whether `latest` carries all information of `header`.
fn may_go(header: &TcpHeader, latest: &TcpHeader) -> bool {
    let flags = header.flags & !(TcpHeader::ECE | TcpHeader::CWR);
    if flags != TcpHeader::ACK || header.other_options || header.payload > 0 {
        return false;
    }
    if let Some((value, echo)) = header.timestamps {
        let (latest_value, latest_echo) = latest.timestamps.unwrap_or_default();
        if after(value, latest_value) || after(echo, latest_echo) {
            return false;
        }
    }
    if header.ack > latest.ack {
        return false;
    }
    match compare_sack(header, latest) {
        Sacks::More => false,
        Sacks::Same => header.ack < latest.ack,
        Sacks::Less => true,
    }
}

/// The ranges that one SACK option reports, compared with another option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sacks {
    /// A range that the other does not report, or a duplicate.
    More,
    Same,
    Less,
}

fn compare_sack(header: &TcpHeader, latest: &TcpHeader) -> Sacks {
    let size = |(start, end): (u64, u64)| end - start;
    for (start, end) in header.blocks() {
        let covered = latest.blocks().any(|(from, to)| from <= start && end <= to);
        if start < header.ack || !covered {
            return Sacks::More;
        }
    }
    let bytes = |header: &TcpHeader| header.blocks().map(size).sum::<u64>();
    if bytes(latest) > bytes(header) {
        Sacks::Less
    } else {
        Sacks::Same
    }
}

/// Whether a timestamp is later than another (RFC 7323, section 5.2).
fn after(a: u32, b: u32) -> bool {
    (b.wrapping_sub(a)).cast_signed() < 0
}
