//! The receiving endpoint of a connection.
//!
//! Source: RFC 9293 (cumulative acknowledgement), RFC 2018 (which blocks to
//! report), RFC 5681, section 4.2 (when), RFC 3168, section 6.1.3 (echoing marks).

use redtail_core::{Ecn, Time, prefetch};

use super::ack_policy::AckPolicy;
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
    sack: bool,
    ecn: bool,
    /// A mark is to be echoed until the sender says CWR.
    echo: bool,
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
            sack: params.recovery.uses_sack(),
            ecn: params.ecn,
            echo: false,
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
            let offers_ecn = segment.flags.contains(Flags::ECE.with(Flags::CWR));
            self.ecn &= offers_ecn;
            self.syn_ack_due = true;
            return;
        }
        if segment.len == 0 {
            return;
        }
        if self.ecn {
            if segment.flags.contains(Flags::CWR) {
                self.echo = false;
            }
            if segment.ecn == Ecn::Ce {
                self.echo = true;
            }
        }
        let end = segment.seq + u64::from(segment.len);
        let in_order = segment.seq <= self.next && end > self.next && self.above.is_empty();
        if in_order {
            self.received += end - self.next;
            self.next = end;
        } else {
            self.on_disorder(segment.seq, end);
        }
        self.ack_due |= self.policy.on_data(now, !in_order);
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
            let flags = Flags::SYN.with(Flags::ACK).with_if(self.ecn, Flags::ECE);
            return Some(self.segment(flags, SackBlocks::default()));
        }
        if !std::mem::take(&mut self.ack_due) {
            return None;
        }
        self.last_ack_sent = self.next;
        let mut sack = SackBlocks::default();
        if self.sack && !self.above.is_empty() {
            self.report(&mut sack);
        }
        Some(self.segment(Flags::ACK.with_if(self.echo, Flags::ECE), sack))
    }

    /// The most recently changed ranges first (RFC 2018, section 4).
    fn report(&self, sack: &mut SackBlocks) {
        for &start in self.recent.iter().take(MAX_SACK_BLOCKS) {
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
