//! The parallel virtual queue: who belongs to which of two queues, and what rate each gets.
//!
//! Source: J.-S. Jou and J. Baras, "A Parallel Virtual Queue Structure for Active Queue
//! Management", CSHCN TR 2003-4: the classifier and the service rates.
//!
//! **Classes** ([`FlowClasses`]):
//!
//! ```text
//! a packet of a flow without a counter:    counter <- 0, the flow is short
//! a packet of a short flow:                counter <- counter + 1
//! counter > N:                             the flow is long
//! no packet for T:                         the counter is forgotten
//! ```
//!
//! The first N packets of a flow are those of a short one, packet N + 1 is the first of a long
//! one. Counters are looked at when a packet comes, never by a timer, and there are only so many:
//! the table has places in sets of [`WAYS`], a flow has its set by a hash, and one that finds its
//! set full takes the place of the flow there that has been silent longest.
//!
//! A long flow that still waits is not forgotten, however long it has been silent: its next packet
//! would overtake those that wait.
//!
//! **Rates** ([`ServiceShare`]):
//!
//! ```text
//! C1(q1) = 0                              q1 = 0
//!        = C1min                          0 < q1 < minth1
//!        = min(C q1 / maxth1, C1max)      q1 >= minth1
//! C2     = C - C1
//! ```
//!
//! **Packets** ([`Turns`]): while both queues have a packet to send, each choice adds up what the
//! short queue should have got of it, share times size, less what it got. That sum d decides, so that it
//! stays as near to 0 as it can: the short queue has its turn if 2 d >= (1 - share) L1 - share L2.
//! By induction |d| is at most half the largest packet, whatever the shares are meanwhile.
//!
//! | symbol | meaning | unit |
//! |---|---|---|
//! | N | packets after which a flow is long | packets |
//! | T | silence after which it is forgotten | s |
//! | C, C1, C2 | rate of the link, of the short queue, of the long one; share: C1/C | bit/s |
//! | q1 | backlog of the short queue | packets or bytes, as its thresholds |
//! | minth1, maxth1 | its thresholds | the same |
//! | L1, L2 | next packet of the short queue, of the long one | bytes |
//! | d | what the short queue is owed | bytes |

use redtail_core::{Bytes, FlowId, Span, Stream, Time};

use crate::fq::FlowHash;

/// Places in a set of the table.
pub const WAYS: usize = 8;

/// One of the two queues, or its flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowClass {
    /// Not yet more than N packets, or not TCP.
    Short,
    /// More than N packets.
    Long,
}

/// What is kept of a flow.
#[derive(Clone, Copy, Debug)]
struct Entry {
    flow: FlowId,
    class: FlowClass,
    /// Packets counted; of a long flow N + 1.
    counter: u64,
    /// When its latest packet came.
    seen: Time,
    /// How many packets must have left each queue so that none of its own waits there.
    behind: [u64; 2],
    /// The latest period in which it was seen in each class; 0 is none.
    periods: [u32; 2],
}

/// What became of an arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Classified {
    /// Where it belongs.
    pub class: FlowClass,
    /// Whether its flow is met in this class for the first time since the period began.
    pub first: bool,
    /// For a long flow: how many packets must have left the short queue before this one may
    /// leave, so that it overtakes none of its own.
    pub after: u64,
    /// Its place in the table, for [`FlowClasses::joined`]; `None` if there was no room, and the
    /// flow is short for now.
    place: Option<usize>,
}

/// The flow table.
#[derive(Clone, Debug)]
pub struct FlowClasses {
    long_after: u64,
    idle_timeout: Span,
    hash: FlowHash,
    /// Sets of [`WAYS`] places.
    places: Vec<Option<Entry>>,
    /// How many packets must have left the short queue so that none is there that came so far.
    entered: u64,
    period: u32,
    displaced: u64,
}

impl FlowClasses {
    /// A flow is long after `long_after` packets (N) and forgotten after `idle_timeout` (T);
    /// counters of at least `flows` are kept. The hash is drawn from `stream`.
    pub fn new(long_after: u64, idle_timeout: Span, flows: u64, stream: &mut Stream) -> Self {
        let sets = (flows as usize).div_ceil(WAYS).max(1);
        Self {
            long_after,
            idle_timeout,
            hash: FlowHash::draw(stream),
            places: vec![None; sets * WAYS],
            entered: 0,
            period: 1,
            displaced: 0,
        }
    }

    /// Flows are met for the first time again, and displaced ones counted from here.
    pub fn begin_period(&mut self) {
        self.period += 1;
        self.displaced = 0;
    }

    /// Flows that lost their counter to another flow since the period began.
    pub fn displaced(&self) -> u64 {
        self.displaced
    }

    /// Classifies a packet of `flow`. `left` is how many packets have left each queue so far.
    #[inline]
    pub fn arrival(&mut self, flow: FlowId, now: Time, left: [u64; 2]) -> Classified {
        let set = self.hash.bucket(flow, self.places.len() / WAYS) * WAYS;
        let places = &mut self.places[set..set + WAYS];
        let waits =
            |entry: &Entry| left[FlowClass::Long as usize] < entry.behind[FlowClass::Long as usize];
        let is_flow = |place: &Option<Entry>| place.is_some_and(|entry| entry.flow == flow);
        let known = places.iter().position(is_flow);
        let forgotten =
            |entry: &Entry| now.saturating_since(entry.seen) >= self.idle_timeout && !waits(entry);
        let known = known.filter(|&index| !places[index].as_ref().is_some_and(forgotten));
        let index = match known {
            Some(index) => index,
            None => {
                // Its own old place, a free one, or that of the flow silent for longest.
                let free = places
                    .iter()
                    .position(is_flow)
                    .or_else(|| places.iter().position(Option::is_none))
                    .or_else(|| {
                        let all = places.iter().enumerate();
                        let taken = all.filter_map(|(index, place)| Some((index, place.as_ref()?)));
                        let quiet = taken.filter(|(_, entry)| !waits(entry));
                        let oldest = quiet.min_by_key(|(index, entry)| (entry.seen, *index));
                        oldest.map(|(index, _)| index)
                    });
                let Some(index) = free else {
                    return Classified {
                        class: FlowClass::Short,
                        first: false,
                        after: 0,
                        place: None,
                    };
                };
                if let Some(entry) = places[index].filter(|entry| entry.flow != flow) {
                    self.displaced += u64::from(!forgotten(&entry));
                }
                places[index] = Some(Entry {
                    flow,
                    class: FlowClass::Short,
                    counter: 0,
                    seen: now,
                    // Packets from before it was forgotten may still be in the short queue.
                    behind: [self.entered, 0],
                    periods: [0; 2],
                });
                index
            }
        };
        let entry = places[index].as_mut().expect("just found or put there");
        entry.seen = now;
        if entry.class == FlowClass::Short {
            entry.counter += 1;
            if entry.counter > self.long_after {
                entry.class = FlowClass::Long;
            }
        }
        let class = entry.class;
        let period = &mut entry.periods[class as usize];
        let first = *period != self.period;
        *period = self.period;
        Classified {
            class,
            first,
            after: entry.behind[FlowClass::Short as usize],
            place: Some(set + index),
        }
    }

    /// The packet just classified joined the queue of its class, from which `left` packets must
    /// have left when it has.
    #[inline]
    pub fn joined(&mut self, classified: Classified, left: u64) {
        if classified.class == FlowClass::Short {
            self.entered = left;
        }
        if let Some(entry) = classified
            .place
            .and_then(|place| self.places[place].as_mut())
        {
            entry.behind[classified.class as usize] = left;
        }
    }
}

/// The short queue's share of the link.
#[derive(Clone, Copy, Debug)]
pub struct ServiceShare {
    /// minth1, in the unit of q1.
    pub min_th: f64,
    /// maxth1, in the unit of q1.
    pub max_th: f64,
    /// C1min/C.
    pub least: f64,
    /// C1max/C.
    pub most: f64,
}

impl ServiceShare {
    /// C1/C with a backlog of `q1`.
    #[inline]
    pub fn at(&self, q1: f64) -> f64 {
        if q1 <= 0.0 {
            0.0
        } else if q1 < self.min_th {
            self.least
        } else {
            (q1 / self.max_th).min(self.most)
        }
    }
}

/// Turns by share, for packets.
#[derive(Clone, Copy, Debug, Default)]
pub struct Turns {
    /// d, in bytes.
    owed: f64,
}

impl Turns {
    /// Whose packet is next, the one of `short` or the one of `long` bytes, if the short queue is
    /// to have `share` of the rate.
    #[inline]
    pub fn next(&mut self, share: f64, short: Bytes, long: Bytes) -> FlowClass {
        let to_short = (1.0 - share) * short.as_u64() as f64;
        let to_long = share * long.as_u64() as f64;
        if 2.0 * self.owed >= to_short - to_long {
            self.owed -= to_short;
            FlowClass::Short
        } else {
            self.owed += to_long;
            FlowClass::Long
        }
    }

    /// What the short queue is owed, in bytes.
    pub fn owed(&self) -> f64 {
        self.owed
    }
}
