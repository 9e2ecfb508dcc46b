//! A queue for each flow, or for the few that a hash puts together, and turns among them.
//!
//! Shared by the disciplines that queue by flow: FQ-CoDel, SFQ, CAKE. Source of the turns:
//! Deficit Round Robin (Shreedhar and Varghese, SIGCOMM 1995) with the lists of new and
//! old queues of RFC 8290, section 4.2.
//!
//! A queue that gets its first packet joins the new ones with a deficit of one quantum. The
//! first of the new queues has its turn, if there is none the first of the old; a turn
//! lasts while its deficit is positive, and what it sends is taken from that. A queue whose
//! deficit is used up gets another quantum and goes to the end of the old ones. One found
//! empty leaves; but a new one goes to the end of the old first, if there are any, so that
//! it cannot jump the line by being empty now and then.
//!
//! Nothing here costs more with more packets: lists are linked through arrays, and the
//! fattest queue is known from a winner tree, kept from the first time it is asked for.

use redtail_core::{Bytes, FlowId, Packet, Span, Stream, Time};

use crate::Backlog;
use crate::fifo::Fifo;

/// A hash of numbers that differs from queue to queue.
#[derive(Clone, Copy, Debug)]
pub struct FlowHash {
    salt: u64,
}

impl FlowHash {
    /// One drawn from `stream`.
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

    /// One of `buckets` for this flow.
    #[inline]
    pub fn bucket(self, flow: FlowId, buckets: usize) -> usize {
        ((u128::from(self.of(u64::from(flow.0))) * buckets as u128) >> 64) as usize
    }
}

/// Lists of numbers below a bound, each in one list at most, linked through an array.
#[derive(Clone, Debug)]
pub struct Lists {
    /// Before and after each number; the last entries are the lists' ends.
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

    /// Puts a number at the end of a list, taking it out of the one that it is in.
    #[inline]
    pub fn append(&mut self, list: usize, number: usize) {
        self.remove(number);
        let end = self.numbers as usize + list;
        let last = self.links[end].0;
        self.links[last as usize].1 = number as u32;
        self.links[end].0 = number as u32;
        self.links[number] = (last, end as u32);
    }

    /// Takes a number out of its list, if it is in one.
    #[inline]
    pub fn remove(&mut self, number: usize) {
        let (before, after) = std::mem::replace(&mut self.links[number], UNLINKED);
        if before != u32::MAX {
            self.links[before as usize].1 = after;
            self.links[after as usize].0 = before;
        }
    }
}

/// The greatest of an array of values; of equal ones the first.
#[derive(Clone, Debug)]
pub struct Greatest {
    /// The values, then zeros up to a power of two.
    values: Vec<u64>,
    /// The winner below each node; the root is 1, the children of n are 2n and 2n + 1.
    winners: Vec<u32>,
}

impl Greatest {
    /// Of these values.
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

    /// Where the greatest is.
    #[inline]
    pub fn index(&self) -> usize {
        self.winners[1] as usize
    }
}

/// The time average of a number, from when measuring begins.
#[derive(Clone, Copy, Debug, Default)]
pub struct TimeAverage {
    value: u64,
    begun: Time,
    latest: Time,
    /// Value times picoseconds.
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

    /// Its average up to `now`.
    pub fn until(&self, now: Time) -> f64 {
        let rest = u128::from(self.value) * u128::from((now - self.latest).as_ps());
        let time = (now - self.begun).max(Span::from_ps(1));
        (self.area + rest) as f64 / time.as_ps() as f64
    }
}

/// What makes a queue fat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// Its packets; of queues with as many, the one whose number changed last.
    Packets,
    /// Its bytes; of queues with as many, the one with the lowest index.
    Bytes,
}

/// Queues by flow, with turns among those that have packets.
#[derive(Debug)]
pub struct FlowQueues<P> {
    queues: Vec<Queue<P>>,
    lists: Lists,
    quantum: i64,
    measure: Measure,
    backlog: Backlog,
    /// How often the number of packets of any queue has changed.
    changes: u64,
    /// Kept from when it is first asked for.
    fattest: Option<Greatest>,
    active: TimeAverage,
}

#[derive(Debug)]
struct Queue<P> {
    fifo: Fifo<P>,
    /// In bytes.
    deficit: i64,
    /// Which change of all was its latest.
    changed: u64,
}

const NEW: usize = 0;
const OLD: usize = 1;

impl<P: Packet> FlowQueues<P> {
    /// This many queues with turns of `quantum`, the fattest by `measure`.
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

    /// How many queues there are, empty or not.
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

    /// Appends `packet` to a queue, which gets its turn before the old ones if it had none
    /// coming.
    #[inline]
    pub fn push(&mut self, queue: usize, packet: P, now: Time) {
        self.add(queue, packet, NEW, now, now);
    }

    /// The same of a packet that has waited since `entered`, and the queue's turn comes
    /// after all others.
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

    /// Whose turn it is; it may have become empty.
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

    /// The queue whose turn it is was found empty.
    #[inline]
    pub fn pass_turn(&mut self, queue: usize) {
        if self.lists.first(NEW) == Some(queue) && self.lists.first(OLD).is_some() {
            self.lists.append(OLD, queue);
        } else {
            self.lists.remove(queue);
        }
    }

    /// A queue became empty and leaves the line at once.
    #[inline]
    pub fn leave(&mut self, queue: usize) {
        self.lists.remove(queue);
    }

    /// Takes what a queue sends from its deficit.
    #[inline]
    pub fn charge(&mut self, queue: usize, size: Bytes) {
        self.queues[queue].deficit -= size.as_u64() as i64;
    }

    /// Takes the oldest packet of a queue.
    #[inline]
    pub fn take(&mut self, queue: usize, now: Time) -> Option<P> {
        let packet = self.queues[queue].fifo.pop()?;
        self.on_taken(queue, &packet, now);
        Some(packet)
    }

    /// Takes the latest packet of a queue.
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

    /// The queue whose turn is next, whether or not what its deficit allows is used up.
    pub fn first_in_line(&self) -> Option<usize> {
        self.lists.first(NEW).or_else(|| self.lists.first(OLD))
    }

    /// The queue that holds most.
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
            counts[hash.bucket(FlowId(flow), 100)] += 1.0;
        }
        let chi_square: f64 = counts.iter().map(|n| (n - 1000.0).powi(2) / 1000.0).sum();
        assert!(chi_square < 184.0, "{chi_square}");
    }
}
