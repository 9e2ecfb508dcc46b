//! The scoreboard: the outstanding segments and the state of each.
//!
//! One record for each segment between the cumulative acknowledgement and the highest byte sent.
//! The pipe of RFC 6675, section 4, is updated as the records change; it is not summed for each
//! acknowledgement.

use std::collections::VecDeque;

use redtail_core::{Span, Time, prefetch, prefetch_behind};

use super::delivery_rate::{RateSampler, SegmentInfo};
use super::rack::{Delivered, Rack, RackParams, Rules};
use super::ranges::{self, Ranges};
use super::renew_boxed;
use crate::segment::{MAX_SACK_BLOCKS, SackBlock};

/// A segment that has been sent and not been cumulatively acknowledged. It takes 16 bytes, because
/// each of thousands of flows keeps a window of them.
#[derive(Clone, Copy, Debug)]
struct Record {
    /// When the segment was last sent.
    sent: Time,
    /// The lower 32 bits of the offset of its first byte; fewer than 2^32 bytes are outstanding.
    seq_low: u32,
    /// Sequence numbers it takes: payload bytes, and one for a FIN.
    len: u16,
    sacked: bool,
    state: SegmentState,
}

/// The state of a segment, as bits.
#[derive(Clone, Copy, Debug, Default)]
struct SegmentState(u8);

impl SegmentState {
    /// The segment is declared lost.
    const LOST: u8 = 1;
    /// Retransmitted since it was last declared lost.
    const RETRANSMITTED: u8 = 2;
    /// Retransmitted at least once, so it gives no round-trip sample (Karn).
    const AMBIGUOUS: u8 = 4;

    #[inline]
    fn has(self, bit: u8) -> bool {
        self.0 & bit != 0
    }
}

impl Record {
    /// Offset of its first byte. `una` is a lower bound that is less than 2^32 below it.
    #[inline]
    fn seq(&self, una: u64) -> u64 {
        una + u64::from(self.seq_low.wrapping_sub(una as u32))
    }

    #[inline]
    fn end(&self, una: u64) -> u64 {
        self.seq(una) + u64::from(self.len)
    }

    /// The bytes it adds to the pipe: its length for the original unless that is lost, and its
    /// length for the retransmission (RFC 6675, section 4, SetPipe).
    #[inline]
    fn in_pipe(&self) -> u64 {
        if self.sacked {
            return 0;
        }
        let copies = u64::from(!self.state.has(SegmentState::LOST))
            + u64::from(self.state.has(SegmentState::RETRANSMITTED));
        u64::from(self.len) * copies
    }

    /// Declares it lost and due for retransmission.
    fn declare_lost(&mut self) {
        self.state.0 = (self.state.0 | SegmentState::LOST) & !SegmentState::RETRANSMITTED;
    }

    fn delivered(&self, una: u64) -> Delivered {
        Delivered {
            sent: self.sent,
            end: self.end(una),
            resent: self.state.has(SegmentState::AMBIGUOUS),
            sacked: self.sacked,
        }
    }

    #[inline]
    fn info(&self, place: usize, una: u64) -> SegmentInfo {
        SegmentInfo {
            place,
            start: self.seq(una),
            len: u32::from(self.len),
            sent: self.sent,
            ambiguous: self.state.has(SegmentState::AMBIGUOUS),
        }
    }

    /// Whether it was sent once and is neither selectively acknowledged nor declared lost.
    #[inline]
    fn is_plain(&self) -> bool {
        u8::from(self.sacked) | self.state.0 == 0
    }

    #[inline]
    fn awaits_retransmission(&self) -> bool {
        self.state.has(SegmentState::LOST) && !self.state.has(SegmentState::RETRANSMITTED)
    }
}

/// What a cumulative acknowledgement removed.
#[derive(Clone, Copy, Debug, Default)]
pub struct Acked {
    /// The number of newly acknowledged bytes.
    pub bytes: u64,
    /// When the newest segment it covers was sent. `None` if that segment had been selectively
    /// acknowledged before, or if any segment it covers was retransmitted: the acknowledgement may
    /// have waited for the retransmission.
    pub sent: Option<Time>,
}

/// The result of loss detection by time.
#[derive(Clone, Copy, Debug, Default)]
pub struct Judgement {
    /// When the reordering timer is due, if a segment may be lost.
    pub next_check: Option<Time>,
    /// Whether segments were declared lost.
    pub lost: bool,
    /// Whether one of them was a retransmission.
    pub retransmission: bool,
}

/// Capacity, in records, below which memory is not released.
const MIN_SHRINK_CAPACITY: usize = 16;

/// The number of a segment, counted from the start of the connection. It stays valid when earlier
/// segments are removed.
type Index = u64;

/// The outstanding segments. What an ordinary acknowledgement or segment uses is stored first.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Scoreboard {
    records: VecDeque<Record>,
    /// Index of the first record.
    first: Index,
    una: u64,
    /// The end of the last record. It is stored because it is read often, and the last record of a
    /// large window is rarely in the cache.
    next: u64,
    /// Bytes known to have been delivered, in order or not, since the start.
    delivered: u64,
    /// Not beside `next`: a new segment adds to both, and to read them at once has to wait until what was written of them
    /// one by one has reached the cache.
    pipe: u64,
    /// The state of RACK, if losses are detected by time.
    rack: Option<Box<Rack>>,
    /// The delivery rate sampler, if a model needs one.
    rates: Option<Box<RateSampler>>,
    /// Offset of the lowest selectively acknowledged byte; `u64::MAX` if there is none.
    sacked_from: u64,
    /// Every byte below is acknowledged, selectively acknowledged or declared lost.
    lost_below: u64,
    /// No record below this one needs retransmission (HighRxt of RFC 6675, as an index).
    next_retransmission: Index,
    /// Set once data was selectively acknowledged. Boxed, so that other senders stay small.
    sacks: Option<Box<Sacks>>,
}

/// The selective acknowledgements.
#[derive(Clone, Debug, Default)]
struct Sacks {
    ranges: Ranges,
    /// The send times of the oldest and the newest segment selectively acknowledged since
    /// [`take_sacked_times`](Scoreboard::take_sacked_times) was last called. Retransmitted segments
    /// are left out.
    times: Option<(Time, Time)>,
    /// The blocks of the latest report, which are in `ranges` as far as they are not acknowledged cumulatively; empty
    /// ones without it.
    latest: [SackBlock; MAX_SACK_BLOCKS],
}

impl Sacks {
    fn clear(&mut self) {
        self.ranges.clear();
        self.latest = Default::default();
    }

    /// Whether the block at this place of a report was in the report before: at the same place, or one before it if a
    /// new block has taken the first place. Most blocks but the first were.
    fn is_known(&self, place: usize, block: SackBlock) -> bool {
        self.latest[place] == block || place > 0 && self.latest[place - 1] == block
    }
}

impl Default for Scoreboard {
    fn default() -> Self {
        Self {
            records: VecDeque::new(),
            first: 0,
            una: 0,
            next: 0,
            pipe: 0,
            delivered: 0,
            rack: None,
            rates: None,
            sacked_from: u64::MAX,
            lost_below: 0,
            next_retransmission: 0,
            sacks: None,
        }
    }
}

impl Scoreboard {
    /// Becomes a copy of `fresh`, the scoreboard of a sender that has sent nothing. Keeps its memory.
    pub(super) fn renew(&mut self, fresh: &Self) {
        debug_assert!(fresh.next == 0 && fresh.delivered == 0, "it is not fresh");
        let Self {
            records,
            first,
            una,
            next,
            pipe,
            delivered,
            rack,
            rates,
            sacked_from,
            lost_below,
            next_retransmission,
            sacks,
        } = self;
        // In their places: a scoreboard that is made elsewhere and moved here takes twice the instructions.
        records.clear();
        if let Some(sacks) = sacks {
            sacks.clear();
            sacks.times = None;
        }
        renew_boxed(rack, &fresh.rack);
        renew_boxed(rates, &fresh.rates);
        (*first, *una, *next) = (fresh.first, fresh.una, fresh.next);
        (*pipe, *delivered) = (fresh.pipe, fresh.delivered);
        (*sacked_from, *lost_below) = (fresh.sacked_from, fresh.lost_below);
        *next_retransmission = fresh.next_retransmission;
    }

    /// The cumulative acknowledgement.
    #[inline]
    pub fn una(&self) -> u64 {
        self.una
    }

    /// Bytes sent and not cumulatively acknowledged (FlightSize of RFC 5681).
    #[inline]
    pub fn outstanding(&self) -> u64 {
        self.next - self.una
    }

    /// Offset of the next new byte.
    #[inline]
    pub fn next(&self) -> u64 {
        self.next
    }

    /// Prefetches into the cache the first record and the place of the next one.
    #[inline]
    pub fn prefetch(&self) {
        self.records.front().map(prefetch);
        let (first, second) = self.records.as_slices();
        prefetch_behind(if second.is_empty() { first } else { second });
    }

    /// Whether exactly one segment is outstanding.
    pub fn is_single(&self) -> bool {
        self.records.len() == 1
    }

    /// Bytes known to have been delivered since the start, in order or not.
    #[inline]
    pub fn delivered(&self) -> u64 {
        self.delivered
    }

    /// Turns on loss detection by time (RFC 8985).
    pub(super) fn judge_by_time(&mut self, rules: Rules, params: RackParams) {
        self.rack = Some(Box::new(Rack::new(rules, params)));
    }

    /// The shortest round trip, if losses are detected by time.
    #[inline]
    pub(super) fn min_rtt(&self) -> Option<Span> {
        self.rack.as_ref().and_then(|rack| rack.min_rtt())
    }

    /// The state of RACK, if losses are detected by time.
    pub(super) fn rack_mut(&mut self) -> Option<&mut Rack> {
        self.rack.as_deref_mut()
    }

    /// Turns on sampling of delivery rates.
    pub fn sample_rates(&mut self) {
        self.rates = Some(Box::default());
    }

    /// The delivery rate sampler, if there is one.
    #[inline]
    pub(super) fn rates(&mut self) -> Option<&mut RateSampler> {
        self.rates.as_deref_mut()
    }

    /// Estimate of the bytes in the network (pipe of RFC 6675).
    #[inline]
    pub fn pipe(&self) -> u64 {
        self.pipe
    }

    /// The selectively acknowledged ranges.
    #[inline]
    pub fn sacked(&self) -> &Ranges {
        self.sacks
            .as_ref()
            .map_or(&ranges::NONE, |sacks| &sacks.ranges)
    }

    /// Whether any outstanding data is selectively acknowledged.
    #[inline]
    pub fn has_sacked(&self) -> bool {
        self.sacked_from < u64::MAX
    }

    /// New data was sent.
    pub fn on_new(&mut self, len: u32, now: Time) {
        self.push(len, now);
        self.sample_new(len, now);
    }

    /// Records new data that was sent. [`sample_new`](Self::sample_new) follows.
    #[inline(always)] // a call costs as much as the body
    pub(super) fn push(&mut self, len: u32, now: Time) {
        let capacity = self.records.capacity();
        if self.records.len() == capacity {
            self.records
                .reserve_exact(MIN_SHRINK_CAPACITY.max(capacity / 2));
        }
        self.records.push_back(Record {
            sent: now,
            seq_low: self.next as u32,
            len: len as u16,
            sacked: false,
            state: SegmentState::default(),
        });
        self.next += u64::from(len);
        self.pipe += u64::from(len);
    }

    /// The delivery rate sampler, if there is one, notes the new data that was recorded last.
    #[inline]
    pub(super) fn sample_new(&mut self, len: u32, now: Time) {
        if let Some(rates) = &mut self.rates {
            rates.on_new(len, self.pipe, now);
        }
    }

    /// Everything below `ack` has arrived.
    #[inline]
    pub fn on_ack(&mut self, ack: u64, now: Time) -> Acked {
        if self.rates.is_some() || self.rack.is_some() {
            return self.on_ack_timed(ack, now);
        }
        self.on_ack_untimed(ack)
    }

    /// Everything below `ack` has arrived; there are neither delivery rates nor loss detection by time.
    #[inline(always)] // a call costs as much as the body for one segment
    pub(super) fn on_ack_untimed(&mut self, ack: u64) -> Acked {
        let bytes = ack - self.una;
        let (removed, mut sent) = self.remove_first_plain(bytes);
        if removed < bytes {
            sent = self.remove_others(bytes - removed, sent);
        }
        self.settle(ack);
        Acked { bytes, sent }
    }

    /// Removes the first segment if it is plain and not longer than `most` bytes. The records are contiguous from
    /// `una`, so their lengths tell where each is. Returns the length and the send time of what it removes.
    #[inline(always)] // into the two that call it
    fn remove_first_plain(&mut self, most: u64) -> (u64, Option<Time>) {
        let Some(record) = self.records.front() else {
            return (0, None);
        };
        let (len, sent) = (u64::from(record.len), record.sent);
        if !record.is_plain() || len > most {
            return (0, None);
        }
        self.records.pop_front();
        self.first += 1;
        self.pipe -= len;
        self.delivered += len;
        (len, Some(sent))
    }

    /// Removes the next `left` bytes, when a plain segment before them was removed that was sent at `sent`, or none
    /// was. Returns when the last of all was sent, as [`Acked::sent`] has it.
    #[inline(never)] // so that the function above is short
    fn remove_others(&mut self, mut left: u64, mut sent: Option<Time>) -> Option<Time> {
        while left > 0
            && let (removed, Some(at)) = self.remove_first_plain(left)
        {
            left -= removed;
            sent = Some(at);
        }
        let mut repaired = false;
        while left > 0
            && let Some(record) = self.records.front()
            && u64::from(record.len) <= left
        {
            let len = u64::from(record.len);
            left -= len;
            self.pipe -= record.in_pipe();
            self.delivered += len * u64::from(!record.sacked);
            repaired |= record.state.has(SegmentState::AMBIGUOUS);
            sent = (!repaired && !record.sacked).then_some(record.sent);
            self.records.pop_front();
            self.first += 1;
        }
        if left > 0 {
            self.trim_first(left);
        }
        sent
    }

    /// Removes the first `bytes` of the first segment, of which only a part is acknowledged. This is possible if
    /// the peer trims it.
    #[cold]
    fn trim_first(&mut self, bytes: u64) {
        if let Some(record) = self.records.front_mut() {
            let before = record.in_pipe();
            record.seq_low = record.seq_low.wrapping_add(bytes as u32);
            record.len -= bytes as u16;
            self.pipe -= before - record.in_pipe();
        }
    }

    /// Everything below `ack` was removed from the records.
    #[inline(always)] // into the two that call it
    fn settle(&mut self, ack: u64) {
        self.una = ack;
        if self.sacked_from < ack {
            self.forget_sacked_below(ack);
        }
        let quarter = self.records.capacity() / 4;
        if self.records.len() < quarter && quarter > MIN_SHRINK_CAPACITY / 4 {
            self.shrink();
        }
    }

    /// Releases the memory that the overshoot of slow start needed: with thousands of flows it would be most of a
    /// run's memory.
    #[cold]
    fn shrink(&mut self) {
        self.records.shrink_to(self.records.capacity() / 2);
        if let Some(rates) = &mut self.rates {
            rates.shrink();
        }
    }

    #[inline(never)] // so that senders without a model or times are not burdened
    fn on_ack_timed(&mut self, ack: u64, now: Time) -> Acked {
        self.on_ack_with_times(ack, now).0
    }

    /// Everything below `ack` has arrived. Besides what this covers it returns the send times of the oldest and the
    /// newest segment that it removes and that had not been selectively acknowledged; `None` if there is no such
    /// segment, or if any segment that it removes was retransmitted.
    #[inline(always)] // what it returns stays in registers
    pub(super) fn on_ack_with_times(
        &mut self,
        ack: u64,
        now: Time,
    ) -> (Acked, Option<(Time, Time)>) {
        let bytes = ack - self.una;
        let (left, mut times) = self.remove_plain(bytes, now);
        let mut sent = times.map(|times| times.1);
        if left > 0 {
            (sent, times) = self.remove_any(ack, times, now);
        }
        self.settle(ack);
        (Acked { bytes, sent }, times)
    }

    /// Removes the first segments, of `bytes` bytes, as far as they are plain, which nearly all are. Returns the
    /// bytes that are left, and the send times of the oldest and the newest segment. They were sent in the order of
    /// the stream, so the newest stands for all of them in what RACK and the delivery rates learn.
    #[inline(always)] // into the one that is called
    fn remove_plain(&mut self, bytes: u64, now: Time) -> (u64, Option<(Time, Time)>) {
        // The records are contiguous from `una`, so their lengths tell where each is.
        let (mut left, mut count) = (bytes, 0);
        let Some(&first) = self.records.front() else {
            return (left, None);
        };
        let mut last = first;
        while left > 0
            && let Some(record) = self.records.front()
            && record.is_plain()
            && u64::from(record.len) <= left
        {
            last = *record;
            left -= u64::from(last.len);
            count += 1;
            self.records.pop_front();
        }
        if count == 0 {
            return (left, None);
        }
        self.first += count as u64;
        let bytes = bytes - left;
        self.pipe -= bytes;
        self.delivered += bytes;
        let end = self.una + bytes;
        if let Some(rates) = &mut self.rates {
            let last = SegmentInfo {
                place: count - 1,
                start: end - u64::from(last.len),
                len: u32::from(last.len),
                sent: last.sent,
                ambiguous: false,
            };
            rates.on_run_acked(last, bytes, now);
        }
        if let Some(rack) = &mut self.rack {
            rack.on_run_delivered(last.sent, self.una + u64::from(first.len), end, now);
        }
        (left, Some((first.sent, last.sent)))
    }

    /// Removes the segments that end at or below `ack`, when the plain ones before them were removed, which were sent
    /// at `times`. Returns when the last of all was sent, as [`Acked::sent`] has it, and what
    /// [`on_ack_with_times`](Self::on_ack_with_times) returns.
    #[inline(never)] // so that the functions above are short
    fn remove_any(
        &mut self,
        ack: u64,
        mut times: Option<(Time, Time)>,
        now: Time,
    ) -> (Option<Time>, Option<(Time, Time)>) {
        let una = self.una;
        let mut sent = times.map(|times| times.1);
        let mut repaired = false;
        while let Some(record) = self.records.front() {
            let seq = record.seq(una);
            if seq + u64::from(record.len) > ack {
                if seq < ack {
                    self.trim_first(ack - seq);
                }
                break;
            }
            self.pipe -= record.in_pipe();
            if let Some(rates) = &mut self.rates {
                rates.on_acked(record.info(0, una), record.sacked, now);
            }
            if !record.sacked {
                self.delivered += u64::from(record.len);
                if let Some(rack) = &mut self.rack {
                    rack.on_delivered(record.delivered(una), now);
                }
                let oldest = times.map_or(record.sent, |times| times.0);
                times = Some((oldest, record.sent));
            }
            repaired |= record.state.has(SegmentState::AMBIGUOUS);
            sent = (!repaired && !record.sacked).then_some(record.sent);
            self.records.pop_front();
            self.first += 1;
        }
        (sent, times.filter(|_| !repaired))
    }

    /// The send times of the oldest and the newest segment selectively acknowledged since the last
    /// call. Retransmitted segments are left out.
    pub fn take_sacked_times(&mut self) -> Option<(Time, Time)> {
        self.sacks.as_mut()?.times.take()
    }

    /// When the first outstanding segment was last sent.
    #[inline]
    pub fn first_sent(&self) -> Option<Time> {
        self.records.front().map(|record| record.sent)
    }

    /// The position in `records` of the first segment that begins at or above `offset`.
    fn place_of(&self, offset: u64) -> usize {
        let una = self.una;
        if offset <= una {
            return 0;
        }
        // Most segments have the same length, so try the position that follows from it first.
        let expected = self.records.front().and_then(|first| {
            let place = (offset - una) as usize / usize::from(first.len);
            let record = self.records.get(place)?;
            (record.seq(una) == offset).then_some(place)
        });
        expected.unwrap_or_else(|| self.records.partition_point(|it| it.seq(una) < offset))
    }

    /// Processes selective acknowledgements. Returns the number of newly acknowledged bytes.
    pub fn on_sack(&mut self, blocks: impl Iterator<Item = SackBlock>, now: Time) -> u64 {
        let mut sacks = self.sacks.take().unwrap_or_default();
        let mut latest = [SackBlock::default(); MAX_SACK_BLOCKS];
        let mut bytes = 0;
        let next = self.next;
        for (block, place) in blocks.zip(0..MAX_SACK_BLOCKS) {
            if block.start < self.una || block.end > next || block.start >= block.end {
                continue; // old, or of data never sent
            }
            latest[place] = block;
            if !sacks.is_known(place, block) {
                let Sacks { ranges, times, .. } = &mut *sacks;
                ranges.insert(block, |gap| bytes += self.mark_sacked(gap, times, now));
            }
        }
        sacks.latest = latest;
        self.sacked_from = sacks.ranges.lowest().unwrap_or(u64::MAX);
        self.sacks = Some(sacks);
        bytes
    }

    /// The data below `ack`, some of which was selectively acknowledged, is no longer outstanding.
    #[inline(never)] // most acknowledgements come while nothing is selectively acknowledged
    fn forget_sacked_below(&mut self, ack: u64) {
        if let Some(sacks) = &mut self.sacks {
            sacks.ranges.remove_below(ack);
            self.sacked_from = sacks.ranges.lowest().unwrap_or(u64::MAX);
        }
    }

    /// Marks the segments of `gap` and widens `times` by theirs.
    fn mark_sacked(&mut self, gap: SackBlock, times: &mut Option<(Time, Time)>, now: Time) -> u64 {
        let mut bytes = 0;
        let una = self.una;
        let mut place = self.place_of(gap.start);
        // Not a range of records, which takes as long to make as one of them to mark: most gaps have one.
        while let Some(record) = self.records.get_mut(place) {
            let end = record.end(una);
            if end > gap.end {
                break;
            }
            self.pipe -= record.in_pipe();
            record.sacked = true;
            bytes += u64::from(record.len);
            if !record.state.has(SegmentState::AMBIGUOUS) {
                let oldest = times.map_or(record.sent, |times| times.0);
                *times = Some((oldest.min(record.sent), record.sent));
            }
            if let Some(rack) = &mut self.rack {
                rack.on_delivered(record.delivered(una), now);
            }
            if let Some(rates) = &mut self.rates {
                rates.on_delivered(record.info(place, una), now);
            }
            if end == gap.end {
                break;
            }
            place += 1;
        }
        self.delivered += bytes;
        bytes
    }

    /// Declares segments lost by IsLost of RFC 6675: `dup_thresh` discontiguous ranges, or more
    /// than `dup_thresh - 1` segments' bytes, have been selectively acknowledged above them. A FIN,
    /// which lies beyond `data_end`, does not count as a byte. Returns whether any segment was
    /// declared lost.
    pub fn detect_losses(&mut self, dup_thresh: u32, mss: u32, data_end: u64) -> bool {
        let enough = u64::from(dup_thresh - 1) * u64::from(mss);
        let mut bytes = 0;
        let frontier =
            self.sacked()
                .as_slice()
                .iter()
                .rev()
                .zip(1..)
                .find_map(|(range, ranges)| {
                    bytes += range.end.min(data_end).saturating_sub(range.start);
                    (ranges >= dup_thresh || bytes > enough).then_some(range.start)
                });
        frontier.is_some_and(|frontier| self.declare_lost_below(frontier))
    }

    fn declare_lost_below(&mut self, frontier: u64) -> bool {
        if frontier <= self.lost_below {
            return false;
        }
        let pipe = self.pipe;
        let una = self.una;
        let start = self.place_of(self.lost_below);
        for (place, record) in (start..).zip(self.records.range_mut(start..)) {
            if record.seq(una) >= frontier {
                break;
            }
            let before = record.in_pipe();
            record.state.0 |= SegmentState::LOST;
            let lost = before - record.in_pipe();
            self.pipe -= lost;
            if lost > 0
                && let Some(rates) = &mut self.rates
            {
                rates.on_lost(place, record.seq(una), u32::from(record.len));
            }
        }
        self.lost_below = frontier;
        self.pipe < pipe
    }

    /// Declares segments lost by RFC 8985, section 6.2, step 5. With `certain` the reordering
    /// window is zero unless reordering was seen.
    pub fn detect_losses_by_time(
        &mut self,
        now: Time,
        certain: bool,
        srtt: Option<Span>,
    ) -> Judgement {
        let Some(mut rack) = self.rack.take() else {
            return Judgement::default();
        };
        let mut retransmission = false;
        let pipe = self.pipe;
        let window = rack.reordering_window(certain, srtt);
        let una = self.una;
        let mut judge_at: Option<Time> = None;
        let mut suspect = |lost_at| judge_at = judge_at.max(Some(lost_at));
        // Segments that were sent once were sent in the order of the stream. All of them below
        // `lost_below` have been checked before. The loop ends at the first one for which no
        // segment sent later has been delivered: those above it were sent later still.
        let mut place = self.place_of(self.lost_below);
        // Whether all records so far are selectively acknowledged or declared lost, so that no later call needs them.
        let mut settled = true;
        while let Some(record) = self.records.get(place) {
            if record.sacked {
                place = self.after_sacked(place);
                if settled {
                    self.lost_below = self.records[place - 1].end(una);
                }
                continue;
            }
            if !record.awaits_retransmission() {
                match rack.lost_at(record.sent, record.end(una), window) {
                    Some(lost_at) if lost_at <= now => {
                        retransmission |= record.state.has(SegmentState::RETRANSMITTED);
                        self.declare_lost(place);
                    }
                    Some(lost_at) => {
                        settled = false;
                        suspect(lost_at);
                    }
                    None if record.state.has(SegmentState::AMBIGUOUS) => settled = false,
                    None => break,
                }
            }
            place += 1;
        }
        // Retransmissions, in the order in which they were sent.
        let mut place = 0;
        while let Some(&(sent, index)) = rack.resent.get(place) {
            let record = index
                .checked_sub(self.first)
                .and_then(|at| self.records.get(at as usize));
            let outstanding = record.filter(|record| {
                !record.sacked
                    && record.state.has(SegmentState::RETRANSMITTED)
                    && record.sent == sent
            });
            let lost_at = match outstanding {
                Some(_) if !rack.overtakes(sent) => break,
                Some(record) => rack.lost_at(sent, record.end(una), window),
                None => Some(Time::ZERO),
            };
            match lost_at {
                Some(lost_at) if lost_at <= now => {
                    if outstanding.is_some() {
                        retransmission = true;
                        self.declare_lost((index - self.first) as usize);
                    }
                    rack.resent.remove(place);
                    continue;
                }
                Some(lost_at) => suspect(lost_at),
                None => {}
            }
            place += 1;
        }
        self.rack = Some(rack);
        Judgement {
            next_check: judge_at,
            lost: self.pipe < pipe,
            retransmission,
        }
    }

    /// The position after the run of selectively acknowledged segments to which the one at `place` belongs. The
    /// range that holds them gives it, however many they are.
    fn after_sacked(&self, place: usize) -> usize {
        let una = self.una;
        let sacked = |place: usize| self.records.get(place).is_some_and(|record| record.sacked);
        if !sacked(place + 1) {
            return place + 1;
        }
        let end = self.sacked().end_of(self.records[place].end(una));
        let after = self.place_of(end);
        // A segment that the range covers in part is not acknowledged.
        after - usize::from(!sacked(after - 1))
    }

    /// Whether a segment that was declared lost is still outstanding, retransmitted or not (Linux,
    /// lost_out).
    pub(super) fn has_lost(&self) -> bool {
        let (una, bound) = (self.una, self.lost_below);
        self.records
            .iter()
            .take_while(|record| record.seq(una) < bound)
            .any(|record| record.state.has(SegmentState::LOST) && !record.sacked)
    }

    /// The number of retransmissions that are neither acknowledged nor lost (Linux, retrans_out); 0
    /// unless losses are detected by time.
    pub(super) fn retransmissions_out(&self) -> u32 {
        let Some(rack) = &self.rack else {
            return 0;
        };
        let out = rack.resent.iter().filter(|&&(sent, index)| {
            let place = index.checked_sub(self.first);
            place
                .and_then(|place| self.records.get(place as usize))
                .is_some_and(|record| {
                    record.sent == sent
                        && !record.sacked
                        && record.state.has(SegmentState::RETRANSMITTED)
                })
        });
        out.count() as u32
    }

    /// Whether the first outstanding segment was ever retransmitted.
    pub(super) fn first_was_retransmitted(&self) -> bool {
        let first = self.records.front();
        first.is_some_and(|record| record.state.has(SegmentState::AMBIGUOUS))
    }

    /// Declares the segment at position `place` lost and due for retransmission.
    fn declare_lost(&mut self, place: usize) {
        let record = &mut self.records[place];
        let before = record.in_pipe();
        record.declare_lost();
        self.pipe -= before - record.in_pipe();
        self.lost_below = self.lost_below.max(record.end(self.una));
        self.next_retransmission = self.next_retransmission.min(self.first + place as u64);
        if let Some(rates) = &mut self.rates {
            rates.on_lost(place, record.seq(self.una), u32::from(record.len));
        }
    }

    /// Whether a segment declared lost is due for retransmission.
    pub fn awaits_retransmission(&self) -> bool {
        let from = self.next_retransmission.saturating_sub(self.first) as usize;
        let mut records = self.records.range(from.min(self.records.len())..);
        let (una, bound) = (self.una, self.lost_below);
        records
            .by_ref()
            .take_while(|record| record.seq(una) < bound)
            .any(|record| record.awaits_retransmission() && !record.sacked)
    }

    /// Declares the first outstanding segment lost and due for retransmission,
    /// even if it has been retransmitted before.
    pub fn declare_first_lost(&mut self) {
        if let Some(record) = self.records.front_mut() {
            let before = record.in_pipe();
            record.declare_lost();
            self.pipe -= before - record.in_pipe();
            self.lost_below = self.lost_below.max(record.end(self.una));
            self.next_retransmission = self.first;
            if before > 0
                && let Some(rates) = &mut self.rates
            {
                rates.on_lost(0, self.una, u32::from(record.len));
            }
        }
    }

    /// Whether the first outstanding segment is lost and due for retransmission.
    #[inline]
    pub fn first_is_lost(&self) -> bool {
        let first = self.records.front();
        first.is_some_and(|record| record.awaits_retransmission() && !record.sacked)
    }

    /// Declares every segment lost that has not been selectively acknowledged, retransmitted or
    /// not. For a retransmission timeout.
    pub fn declare_all_lost(&mut self) {
        for (place, record) in self.records.iter_mut().enumerate() {
            if record.in_pipe() > 0
                && let Some(rates) = &mut self.rates
            {
                rates.on_lost(place, record.seq(self.una), u32::from(record.len));
            }
            record.declare_lost();
        }
        self.pipe = 0;
        self.lost_below = self.next();
        self.next_retransmission = self.first;
    }

    /// The retransmission timer has expired: declares the first outstanding segment lost, and every
    /// segment sent a round trip and a reordering window or longer ago (RFC 8985, section 6.3).
    pub fn declare_lost_on_timeout(&mut self, now: Time, srtt: Option<Span>) {
        let Some(rack) = &self.rack else {
            return self.declare_all_lost();
        };
        let wait = rack.rtt() + rack.reordering_window(true, srtt);
        let (una, first) = (self.una, self.first);
        for (index, record) in (first..).zip(&mut self.records) {
            if record.sacked || (index > first && record.sent + wait > now) {
                continue;
            }
            let before = record.in_pipe();
            record.declare_lost();
            self.pipe -= before - record.in_pipe();
            self.lost_below = self.lost_below.max(record.end(una));
        }
        self.next_retransmission = first;
    }

    /// Undoes [`declare_all_lost`](Self::declare_all_lost) for the segments not retransmitted
    /// since: they are still in flight.
    pub fn undo_losses(&mut self) {
        for record in &mut self.records {
            if record.awaits_retransmission() {
                record.state.0 &= !SegmentState::LOST;
                self.pipe += record.in_pipe();
            }
        }
        self.lost_below = self.una;
        self.next_retransmission = self.first;
        if let Some(rack) = &mut self.rack {
            rack.forget_latest();
        }
    }

    /// Undoes every loss, also of retransmitted segments, which then count twice in the pipe
    /// (Linux, `tcp_undo_cwnd_reduction`).
    pub(super) fn undo_all_losses(&mut self) {
        for record in &mut self.records {
            let before = record.in_pipe();
            record.state.0 &= !SegmentState::LOST;
            self.pipe += record.in_pipe() - before;
        }
        self.lost_below = self.una;
        self.next_retransmission = self.first;
    }

    /// Forgets all selective acknowledgements.
    pub fn forget_sacked(&mut self) {
        if !self.has_sacked() {
            return;
        }
        self.sacked_from = u64::MAX;
        if let Some(sacks) = &mut self.sacks {
            sacks.clear();
        }
        for record in self.records.iter_mut().filter(|record| record.sacked) {
            record.sacked = false;
            self.pipe += record.in_pipe();
        }
    }

    /// Moves the retransmission pointer back to the first outstanding segment.
    pub fn rewind(&mut self) {
        self.next_retransmission = self.first;
    }

    /// The lowest segment that is lost and due for retransmission.
    #[inline]
    pub fn next_lost(&mut self) -> Option<Index> {
        self.next_where(self.lost_below, Record::awaits_retransmission)
    }

    /// The lowest segment at or above the retransmission pointer, below the highest selectively
    /// acknowledged byte, that is not acknowledged and not retransmitted.
    pub fn next_hole(&mut self) -> Option<Index> {
        let highest = self.sacked().highest()?;
        self.next_where(highest, |record| {
            !record.state.has(SegmentState::RETRANSMITTED)
        })
    }

    /// Moves the retransmission pointer up to the lowest segment below `bound`
    /// that is not selectively acknowledged and for which `wanted` holds.
    #[inline]
    fn next_where(&mut self, bound: u64, wanted: impl Fn(&Record) -> bool) -> Option<Index> {
        self.next_retransmission = self.next_retransmission.max(self.first);
        loop {
            let record = self
                .records
                .get((self.next_retransmission - self.first) as usize)?;
            if record.seq(self.una) >= bound {
                return None;
            }
            if !record.sacked && wanted(record) {
                return Some(self.next_retransmission);
            }
            self.next_retransmission += 1;
        }
    }

    /// The last segment, if it has not been selectively acknowledged.
    pub fn last(&self) -> Option<Index> {
        let record = self.records.back()?;
        (!record.sacked).then(|| self.first + self.records.len() as u64 - 1)
    }

    /// Records the retransmission of the segment at `index`. Returns its offset and its length.
    pub fn on_resent(&mut self, index: Index, now: Time) -> (u64, u32) {
        let record = &mut self.records[(index - self.first) as usize];
        let before = record.in_pipe();
        record.state.0 |= SegmentState::RETRANSMITTED | SegmentState::AMBIGUOUS;
        record.sent = now;
        self.pipe += record.in_pipe() - before;
        if let Some(rack) = &mut self.rack {
            while rack
                .resent
                .front()
                .is_some_and(|&(_, index)| index < self.first)
            {
                rack.resent.pop_front();
            }
            rack.resent.push_back((now, index));
        }
        if let Some(rates) = &mut self.rates {
            let place = (index - self.first) as usize;
            rates.on_resent(place, u32::from(record.len), self.pipe, now);
        }
        // A rescue retransmission lies beyond the pointer and does not move it (RFC 6675, section
        // 4, NextSeg, rule 4).
        if self.next_retransmission == index {
            self.next_retransmission = index + 1;
        }
        (record.seq(self.una), u32::from(record.len))
    }

    /// Calls `tell` with the offset and the length of each outstanding segment that was sent again at `now`.
    pub(super) fn resent_at(&self, now: Time, mut tell: impl FnMut(u64, u32)) {
        for record in &self.records {
            if record.sent == now && record.state.has(SegmentState::AMBIGUOUS) {
                tell(record.seq(self.una), u32::from(record.len));
            }
        }
    }

    /// Records a tail loss probe that retransmits the segment at `index`. The probe does not add to
    /// the pipe (Linux, `tcp_send_loss_probe`).
    pub(super) fn on_probed(&mut self, index: Index, now: Time) -> (u64, u32) {
        let place = (index - self.first) as usize;
        let record = &mut self.records[place];
        record.state.0 |= SegmentState::AMBIGUOUS;
        record.sent = now;
        if let Some(rates) = &mut self.rates {
            rates.on_resent(place, u32::from(record.len), self.pipe, now);
        }
        (record.seq(self.una), u32::from(record.len))
    }

    /// Checks that the stored pipe equals its definition, and that the records are contiguous.
    pub fn assert_consistent(&self) {
        let pipe: u64 = self.records.iter().map(Record::in_pipe).sum();
        assert_eq!(pipe, self.pipe, "the running pipe left its definition");
        let mut next = self.una;
        for record in &self.records {
            assert_eq!(record.seq(self.una), next, "records are not contiguous");
            next = record.end(self.una);
        }
        assert_eq!(next, self.next, "the end left the last record");
        if let Some(rates) = &self.rates {
            rates.assert_consistent(self.records.len());
        }
    }
}
