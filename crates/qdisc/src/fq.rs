//! Flow queueing: a queue for each flow, or for flows with the same hash, served in turn.
//!
//! FQ-CoDel, SFQ, CAKE and others that queue by flow share it. Source of the turns:
//! Deficit Round Robin (Shreedhar and Varghese, SIGCOMM 1995) with the lists of new and
//! old queues of RFC 8290, section 4.2.
//!
//! A queue that gets its first packet joins the list of new queues, with a deficit of one quantum. The first
//! new queue is served, or the first old queue if there is no new one. It is served while its deficit is
//! positive; the bytes that it sends are subtracted from the deficit. A queue without deficit gets another
//! quantum and goes to the end of the old list. An empty queue leaves its list. An empty new queue first goes
//! to the end of the old list, if this has queues: otherwise a queue that is often empty would always be
//! served as a new one.
//!
//! The cost of a call does not depend on the number of packets: lists are linked through arrays, and a winner
//! tree has the longest queue. The tree exists from the first time that the longest queue is asked for.

use redtail_core::{Bytes, Packet, Span, Stream, Time};

use crate::Backlog;
use crate::fifo::Fifo;

/// A hash of what tells flows apart ([`crate::FlowTable::key`]), different for each discipline.
#[derive(Clone, Copy, Debug)]
pub struct FlowHash {
    salt: u64,
}

impl FlowHash {
    /// A hash that `stream` selects.
    pub fn draw(stream: &mut Stream) -> Self {
        Self {
            salt: (stream.uniform() * (1u64 << 53) as f64) as u64,
        }
    }

    /// The hash of a number: SplitMix64's finalizer (Steele, Lea and Flood 2014).
    #[inline]
    pub fn of(self, number: u64) -> u64 {
        let mut z = number.wrapping_add(self.salt.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// The bucket of the flow with this key, one of `buckets`.
    #[inline]
    pub fn bucket(self, key: u64, buckets: usize) -> usize {
        ((u128::from(self.of(key)) * buckets as u128) >> 64) as usize
    }
}

/// Lists of numbers below a bound, linked through an array. A number is in at most one list.
#[derive(Clone, Debug)]
pub struct Lists {
    /// The predecessor and successor of each number; the last entries are the ends of the lists.
    links: Vec<(u32, u32)>,
    numbers: u32,
}

const UNLINKED: (u32, u32) = (u32::MAX, u32::MAX);

impl Lists {
    /// `lists` empty lists of numbers below `numbers`.
    pub fn new(numbers: usize, lists: usize) -> Self {
        let numbers = u32::try_from(numbers).expect("few queues");
        let ends = (0..lists as u32).map(|list| (numbers + list, numbers + list));
        let links = std::iter::repeat_n(UNLINKED, numbers as usize).chain(ends);
        Self {
            links: links.collect(),
            numbers,
        }
    }

    /// Whether a number is in any list.
    #[inline]
    pub fn contains(&self, number: usize) -> bool {
        self.links[number] != UNLINKED
    }

    /// The first of a list.
    #[inline]
    pub fn first(&self, list: usize) -> Option<usize> {
        let first = self.links[self.numbers as usize + list].1;
        (first < self.numbers).then_some(first as usize)
    }

    /// Moves a number to the end of a list.
    #[inline]
    pub fn append(&mut self, list: usize, number: usize) {
        self.remove(number);
        let end = self.numbers as usize + list;
        let last = self.links[end].0;
        self.links[last as usize].1 = number as u32;
        self.links[end].0 = number as u32;
        self.links[number] = (last, end as u32);
    }

    /// Removes a number from its list, if it is in one.
    #[inline]
    pub fn remove(&mut self, number: usize) {
        let (before, after) = std::mem::replace(&mut self.links[number], UNLINKED);
        if before != u32::MAX {
            self.links[before as usize].1 = after;
            self.links[after as usize].0 = before;
        }
    }
}

/// The place of the greatest value of an array; of equal ones the first.
#[derive(Clone, Debug)]
pub struct Greatest {
    /// The values, then zeros up to a power of two.
    values: Vec<u64>,
    /// The winner below each node; the root is 1, the children of n are 2n and 2n + 1.
    winners: Vec<u32>,
}

impl Greatest {
    /// The tree of these values.
    pub fn of(values: impl Iterator<Item = u64>) -> Self {
        let mut values: Vec<u64> = values.collect();
        let leaves = values.len().next_power_of_two().max(2);
        values.resize(leaves, 0);
        let mut tree = Self {
            values,
            winners: vec![0; leaves],
        };
        for node in (1..leaves).rev() {
            tree.winners[node] = tree.match_at(node);
        }
        tree
    }

    #[inline]
    fn match_at(&self, node: usize) -> u32 {
        let leaves = self.values.len();
        let winner = |child: usize| {
            if child < leaves {
                self.winners[child]
            } else {
                (child - leaves) as u32
            }
        };
        let (left, right) = (winner(2 * node), winner(2 * node + 1));
        if self.values[right as usize] > self.values[left as usize] {
            right
        } else {
            left
        }
    }

    /// Changes a value.
    #[inline]
    pub fn set(&mut self, index: usize, value: u64) {
        self.values[index] = value;
        let mut node = (self.values.len() + index) / 2;
        while node > 0 {
            self.winners[node] = self.match_at(node);
            node /= 2;
        }
    }

    /// The place of the greatest value.
    #[inline]
    pub fn index(&self) -> usize {
        self.winners[1] as usize
    }
}

/// The time average of a number, from the beginning of the measurement.
#[derive(Clone, Copy, Debug, Default)]
pub struct TimeAverage {
    value: u64,
    begun: Time,
    latest: Time,
    /// Integral of the value over time, in picoseconds.
    area: u128,
}

impl TimeAverage {
    /// Averages from `now` on.
    pub fn begin(&mut self, now: Time) {
        (self.begun, self.latest, self.area) = (now, now, 0);
    }

    /// The number changes.
    #[inline]
    pub fn add(&mut self, change: i64, now: Time) {
        self.area += u128::from(self.value) * u128::from((now - self.latest).as_ps());
        self.latest = now;
        self.value = self.value.wrapping_add_signed(change);
    }

    /// The average of the value up to `now`.
    pub fn until(&self, now: Time) -> f64 {
        let rest = u128::from(self.value) * u128::from((now - self.latest).as_ps());
        let time = (now - self.begun).max(Span::from_ps(1));
        (self.area + rest) as f64 / time.as_ps() as f64
    }
}

/// The measure by which a queue is the longest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// Packets; of queues with equal numbers, the one whose number changed last.
    Packets,
    /// Bytes; of queues with equal numbers, the one with the lowest index.
    Bytes,
}

/// The queues of all flows; those with packets are served in turn.
#[derive(Debug)]
pub struct FlowQueues<P> {
    queues: Vec<Queue<P>>,
    lists: Lists,
    quantum: i64,
    measure: Measure,
    backlog: Backlog,
    /// How often the number of packets of any queue has changed.
    changes: u64,
    /// The longest queue; exists from the first time that it is asked for.
    fattest: Option<Greatest>,
    active: TimeAverage,
}

#[derive(Debug)]
struct Queue<P> {
    fifo: Fifo<P>,
    /// In bytes.
    deficit: i64,
    /// The number of its latest change, counted over all queues.
    changed: u64,
}

const NEW: usize = 0;
const OLD: usize = 1;

impl<P: Packet> FlowQueues<P> {
    /// This many queues, with a quantum of `quantum`; `measure` determines the longest.
    pub fn new(queues: usize, quantum: Bytes, measure: Measure) -> Self {
        let queue = || Queue {
            fifo: Fifo::new(),
            deficit: 0,
            changed: 0,
        };
        Self {
            queues: (0..queues).map(|_| queue()).collect(),
            lists: Lists::new(queues, 2),
            quantum: quantum.as_u64() as i64,
            measure,
            backlog: Backlog::default(),
            changes: 0,
            fattest: None,
            active: TimeAverage::default(),
        }
    }

    /// The number of queues, empty or not.
    pub fn len(&self) -> usize {
        self.queues.len()
    }

    /// Whether no packet waits.
    pub fn is_empty(&self) -> bool {
        self.backlog.packets == 0
    }

    /// What waits in all.
    #[inline]
    pub fn backlog(&self) -> Backlog {
        self.backlog
    }

    /// What waits in one queue.
    #[inline]
    pub fn backlog_of(&self, queue: usize) -> Backlog {
        self.queues[queue].fifo.backlog()
    }

    /// The number of queues with packets is averaged from `now` on.
    pub fn start_measuring(&mut self, now: Time) {
        self.active.begin(now);
    }

    /// The time average of the number of queues with packets.
    pub fn active(&self, now: Time) -> f64 {
        self.active.until(now)
    }

    /// Appends `packet` to a queue. If the queue is in no list, it joins the new ones.
    #[inline]
    pub fn push(&mut self, queue: usize, packet: P, now: Time) {
        self.add(queue, packet, NEW, now, now);
    }

    /// As `push`, for a packet that has waited since `entered`. If the queue is in no list, it goes to the
    /// end of the old ones.
    #[inline]
    pub fn push_in_line(&mut self, queue: usize, packet: P, now: Time, entered: Time) {
        self.add(queue, packet, OLD, now, entered);
    }

    #[inline]
    fn add(&mut self, index: usize, packet: P, list: usize, now: Time, entered: Time) {
        let queue = &mut self.queues[index];
        if !self.lists.contains(index) {
            self.lists.append(list, index);
            queue.deficit = self.quantum;
        }
        if queue.fifo.backlog().packets == 0 {
            self.active.add(1, now);
        }
        self.backlog.packets += 1;
        self.backlog.bytes += packet.size().as_u64();
        queue.fifo.push(packet, entered);
        self.on_change(index);
    }

    /// The queue that is served now; it may have become empty.
    #[inline]
    pub fn turn(&mut self) -> Option<usize> {
        loop {
            let first = self.lists.first(NEW).or_else(|| self.lists.first(OLD))?;
            let queue = &mut self.queues[first];
            if queue.deficit > 0 {
                return Some(first);
            }
            queue.deficit += self.quantum;
            self.lists.append(OLD, first);
        }
    }

    /// The queue that is served now is empty.
    #[inline]
    pub fn pass_turn(&mut self, queue: usize) {
        if self.lists.first(NEW) == Some(queue) && self.lists.first(OLD).is_some() {
            self.lists.append(OLD, queue);
        } else {
            self.lists.remove(queue);
        }
    }

    /// A queue has become empty and leaves its list at once.
    #[inline]
    pub fn leave(&mut self, queue: usize) {
        self.lists.remove(queue);
    }

    /// Subtracts the bytes that a queue sends from its deficit.
    #[inline]
    pub fn charge(&mut self, queue: usize, size: Bytes) {
        self.queues[queue].deficit -= size.as_u64() as i64;
    }

    /// Removes and returns the oldest packet of a queue.
    #[inline]
    pub fn take(&mut self, queue: usize, now: Time) -> Option<P> {
        let packet = self.queues[queue].fifo.pop()?;
        self.on_taken(queue, &packet, now);
        Some(packet)
    }

    /// Removes and returns the latest packet of a queue.
    #[inline]
    pub fn take_last(&mut self, queue: usize, now: Time) -> Option<P> {
        let packet = self.queues[queue].fifo.pop_last()?;
        self.on_taken(queue, &packet, now);
        Some(packet)
    }

    #[inline]
    fn on_taken(&mut self, queue: usize, packet: &P, now: Time) {
        self.backlog.packets -= 1;
        self.backlog.bytes -= packet.size().as_u64();
        if self.queues[queue].fifo.backlog().packets == 0 {
            self.active.add(-1, now);
        }
        self.on_change(queue);
    }

    #[inline]
    fn on_change(&mut self, queue: usize) {
        self.changes += 1;
        self.queues[queue].changed = self.changes;
        if let Some(fattest) = &mut self.fattest {
            fattest.set(queue, size_of(&self.queues[queue], self.measure));
        }
    }

    /// The first queue to be served, whether or not its deficit is positive.
    pub fn first_in_line(&self) -> Option<usize> {
        self.lists.first(NEW).or_else(|| self.lists.first(OLD))
    }

    /// The longest queue.
    pub fn fattest(&mut self) -> usize {
        let (queues, measure) = (&self.queues, self.measure);
        let of_all = || Greatest::of(queues.iter().map(|queue| size_of(queue, measure)));
        self.fattest.get_or_insert_with(of_all).index()
    }
}

#[inline]
fn size_of<P: Packet>(queue: &Queue<P>, measure: Measure) -> u64 {
    let backlog = queue.fifo.backlog();
    match measure {
        // 2^40 changes are those of weeks at a hundred gigabits a second.
        Measure::Packets => backlog.packets << 40 | queue.changed & ((1 << 40) - 1),
        Measure::Bytes => backlog.bytes,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_greatest_is_found_after_any_change() {
        let mut stream = Stream::named(1, 0, "values");
        for n in [1usize, 2, 3, 7, 16, 100] {
            let mut values = vec![0u64; n];
            let mut greatest = Greatest::of(values.iter().copied());
            for _ in 0..2000 {
                let index = (stream.uniform() * n as f64) as usize;
                values[index] = (stream.uniform() * 9.0) as u64;
                greatest.set(index, values[index]);
                let most = values.iter().max().expect("not empty");
                let first = values.iter().position(|value| value == most);
                assert_eq!(Some(greatest.index()), first, "of {values:?}");
            }
        }
    }

    #[test]
    fn lists_keep_their_order() {
        let mut lists = Lists::new(5, 2);
        let all = |lists: &Lists, list| {
            let (mut rest, mut order) = (lists.clone(), Vec::new());
            while let Some(first) = rest.first(list) {
                order.push(first);
                rest.remove(first);
            }
            order
        };
        for number in [3, 1, 4, 0] {
            lists.append(0, number);
        }
        lists.append(1, 2);
        lists.append(1, 1); // out of the middle of the other
        lists.append(0, 3); // from the front to the end
        assert_eq!(all(&lists, 0), [4, 0, 3]);
        assert_eq!(all(&lists, 1), [2, 1]);
        lists.remove(2);
        lists.remove(2);
        assert!(!lists.contains(2) && lists.contains(1));
        assert_eq!(all(&lists, 1), [1]);
    }

    #[test]
    fn a_time_average_counts_from_where_it_began() {
        let at = |s| Time::ZERO + Span::from_s(s);
        let mut average = TimeAverage::default();
        average.add(4, at(1));
        average.begin(at(10));
        average.add(-2, at(12));
        assert!((average.until(at(14)) - 3.0).abs() < 1e-12);
    }

    #[test]
    fn flows_spread_evenly_over_buckets() {
        // 100,000 flows over 100 buckets: chi-square with 99 degrees of freedom exceeds
        // 184 with probability 4e-7.
        let hash = FlowHash::draw(&mut Stream::named(1, 0, "hash"));
        let mut counts = [0f64; 100];
        for flow in 0..100_000 {
            counts[hash.bucket(flow, 100)] += 1.0;
        }
        let chi_square: f64 = counts.iter().map(|n| (n - 1000.0).powi(2) / 1000.0).sum();
        assert!(chi_square < 184.0, "{chi_square}");
    }
}
