//! The receiving endpoint of a connection.
//!
//! Source: RFC 9293 (cumulative acknowledgement), RFC 2018 (which blocks to
//! report), RFC 5681, section 4.2 (when), RFC 3168, section 6.1.3 (echoing marks).

use redtail_core::{Ecn, Time, prefetch};

use super::ack_policy::AckPolicy;
use super::ecn::feedback::Feedback;
use super::ranges::Ranges;
use crate::params::TcpParams;
use crate::segment::{Flags, MAX_SACK_BLOCKS, SackBlock, SackBlocks, Segment};

/// A TCP receiver whose application reads at once.
#[derive(Clone, Debug)]
pub struct Receiver {
    /// Next byte expected.
    next: u64,
    /// What arrived above it.
    above: Ranges,
    /// Starts of ranges in `above`, the most recently changed first.
    recent: Vec<u64>,
    policy: AckPolicy,
    window: u32,
    /// Most blocks in an acknowledgement; none without selective ones.
    sack_blocks: u8,
    ecn: Feedback,
    /// The SYN-ACK is ECN-capable if ECN is agreed on (RFC 5562).
    ecn_syn_ack: bool,
    timestamps: bool,
    /// TS.Recent and Last.ACK.sent of RFC 7323, section 4.3.
    ts_recent: u32,
    last_ack_sent: u64,
    ack_due: bool,
    syn_ack_due: bool,
    /// Distinct payload bytes that have arrived.
    received: u64,
}

impl Receiver {
    /// A receiver waiting for its peer. `params` must have passed their check.
    pub fn new(params: &TcpParams) -> Self {
        Self {
            next: 0,
            above: Ranges::default(),
            recent: Vec::new(),
            policy: AckPolicy::new(
                params.delayed_ack.then_some(params.delayed_ack_timeout),
                params.quick_acks,
            ),
            window: params.receive_window.as_u64() as u32,
            sack_blocks: params.sack_blocks(),
            ecn: Feedback::new(params),
            ecn_syn_ack: params.ecn_syn_ack,
            timestamps: params.timestamps,
            ts_recent: 0,
            last_ack_sent: 0,
            ack_due: false,
            syn_ack_due: false,
            received: 0,
        }
    }

    /// Fetches into the cache what the next segment will touch beyond the receiver
    /// itself.
    #[inline]
    pub fn prefetch(&self) {
        self.above.as_slice().first().map(prefetch);
        self.recent.first().map(prefetch);
    }

    /// Bytes delivered in order to the application.
    #[inline]
    pub fn delivered(&self) -> u64 {
        self.next
    }

    /// Distinct payload bytes received, in order or not.
    pub fn received(&self) -> u64 {
        self.received
    }

    /// A segment from the peer.
    #[inline]
    pub fn on_segment(&mut self, segment: &Segment, now: Time) {
        if self.timestamps && segment.seq <= self.last_ack_sent {
            self.ts_recent = segment.ts_val;
        }
        if segment.flags.contains(Flags::SYN) {
            self.ecn.on_syn(segment);
            self.syn_ack_due = true;
            return;
        }
        if segment.len == 0 {
            return;
        }
        let waiting = self.policy.deadline().is_some();
        let marks_are_urgent = self.ecn.on_data(segment, self.next, waiting);
        if self.ecn.has_early() {
            self.policy.on_acknowledged();
        }
        let end = segment.seq + u64::from(segment.len);
        let in_order = segment.seq <= self.next && end > self.next && self.above.is_empty();
        if in_order {
            self.received += end - self.next;
            self.next = end;
        } else {
            self.on_disorder(segment.seq, end);
        }
        self.ack_due |= self.policy.on_data(now, !in_order || marks_are_urgent);
    }

    fn on_disorder(&mut self, seq: u64, end: u64) {
        if end <= self.next {
            return; // old: acknowledged again
        }
        let block = SackBlock {
            start: seq.max(self.next),
            end,
        };
        let mut fresh = 0;
        let merged = self.above.insert(block, |gap| fresh += gap.end - gap.start);
        self.received += fresh;
        self.recent
            .retain(|&start| start < merged.start || start > merged.end);
        if let Some(reached) = self.above.take_reaching(self.next) {
            self.next = reached.end;
            if self.recent.is_empty() {
                self.recent.shrink_to(MAX_SACK_BLOCKS);
            }
        } else {
            self.recent.insert(0, merged.start);
        }
    }

    /// When [`on_wakeup`](Self::on_wakeup) is due.
    #[inline]
    pub fn next_wakeup(&self) -> Option<Time> {
        self.policy.deadline()
    }

    /// A delayed acknowledgement, if it is due.
    pub fn on_wakeup(&mut self, now: Time) {
        self.ack_due |= self.policy.take_due(now);
    }

    /// The next segment to put on the wire now, if any; call until `None`.
    #[inline]
    pub fn poll_transmit(&mut self) -> Option<Segment> {
        if self.syn_ack_due {
            self.syn_ack_due = false;
            let flags = Flags::SYN.with(Flags::ACK).with(self.ecn.syn_ack_flags());
            let capable = self.ecn_syn_ack && self.ecn.enabled();
            return Some(Segment {
                ecn: if capable { Ecn::Ect0 } else { Ecn::NotEct },
                ..self.segment(flags, SackBlocks::default())
            });
        }
        if let Some((ack, flags)) = self.ecn.take_early() {
            return Some(Segment {
                ack,
                ..self.segment(Flags::ACK.with(flags), SackBlocks::default())
            });
        }
        if !std::mem::take(&mut self.ack_due) {
            return None;
        }
        self.last_ack_sent = self.next;
        let mut sack = SackBlocks::default();
        if self.sack_blocks > 0 && !self.above.is_empty() {
            self.report(&mut sack);
        }
        let flags = Flags::ACK.with(self.ecn.ack_flags());
        Some(Segment {
            ecn_bytes: self.ecn.bytes(),
            ..self.segment(flags, sack)
        })
    }

    /// The most recently changed ranges first (RFC 2018, section 4).
    fn report(&self, sack: &mut SackBlocks) {
        for &start in self.recent.iter().take(usize::from(self.sack_blocks)) {
            let ranges = self.above.as_slice();
            if let Ok(i) = ranges.binary_search_by_key(&start, |range| range.start) {
                sack.push(self.next, ranges[i]);
            }
        }
    }

    #[inline]
    fn segment(&self, flags: Flags, sack: SackBlocks) -> Segment {
        Segment {
            ack: self.next,
            window: self.window,
            flags,
            sack,
            ts_ecr: self.ts_recent,
            ..Segment::default()
        }
    }
}
