//! The parallel virtual queue of RED+Tail: the assignment of flows to two queues, and the rate of each
//! queue.
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
//! The first N packets of a flow are those of a short flow, packet N + 1 is the first of a long flow.
//! Counters are examined when a packet arrives, not by a timer, and their number is limited: the table has
//! entries in sets of [`WAYS`], a hash gives each flow its set, and a flow whose set is full replaces the
//! flow in it that has been silent for longest.
//!
//! A long flow with waiting packets is not forgotten, however long it has been silent: its next packet
//! would overtake the waiting ones.
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
//! **Packets** ([`Turns`]): while both queues have a packet to send, each choice adds to a sum d the bytes
//! that the short queue should have sent, share times size, minus the bytes that it sent. The choice keeps
//! d as near to 0 as possible: the short queue is served if 2 d >= (1 - share) L1 - share L2. By induction
//! |d| is at most half the largest packet, even if the shares change.
//!
//! | symbol | meaning | unit |
//! |---|---|---|
//! | N | packets after which a flow is long | packets |
//! | T | time without packets after which a flow is forgotten | s |
//! | C, C1, C2 | rate of the link, of the short queue, of the long one; share: C1/C | bit/s |
//! | q1 | backlog of the short queue | packets or bytes, as minth1 |
//! | minth1, maxth1 | thresholds of the short queue | the same |
//! | L1, L2 | next packet of the short queue, of the long one | bytes |
//! | d | bytes that the short queue should have sent and has not | bytes |

use redtail_core::{Bytes, Span, Stream, Time};

use crate::fq::FlowHash;

/// Number of entries in a set of the table.
pub const WAYS: usize = 8;

/// One of the two queues, and the class of its flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowClass {
    /// Flows of up to N packets so far, and flows that are not TCP.
    Short,
    /// TCP flows of more than N packets.
    Long,
}

/// The entry of a flow.
#[derive(Clone, Copy, Debug)]
struct Entry {
    /// The key of the flow.
    flow: u64,
    class: FlowClass,
    /// The number of packets of the flow; N + 1 for a long flow.
    counter: u64,
    /// The arrival time of its latest packet.
    seen: Time,
    /// The number of packets that must have left each queue so that no packet of the flow waits there.
    behind: [u64; 2],
    /// The latest period in which the flow was seen in each class; 0 is none.
    periods: [u32; 2],
}

/// The classification of an arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Classified {
    /// The class of the packet.
    pub class: FlowClass,
    /// Whether this is the first packet of its flow in this class since the period began.
    pub first: bool,
    /// For a long flow: the number of packets that must have left the short queue before this packet can
    /// leave, so that it does not overtake packets of its own flow.
    pub after: u64,
    /// The index of the entry in the table, for [`FlowClasses::joined`]; `None` if there was no room, and
    /// the flow counts as short.
    place: Option<usize>,
}

/// The flow table.
#[derive(Clone, Debug)]
pub struct FlowClasses {
    long_after: u64,
    idle_timeout: Span,
    hash: FlowHash,
    /// Sets of [`WAYS`] entries.
    places: Vec<Option<Entry>>,
    /// The number of packets that must have left the short queue so that it has no packet that arrived
    /// until now.
    entered: u64,
    period: u32,
    displaced: u64,
}

impl FlowClasses {
    /// An empty table. A flow is long after `long_after` packets (N) and forgotten after `idle_timeout`
    /// (T). The table holds at least `flows` flows. The hash is drawn from `stream`.
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

    /// Begins a period: every flow counts as not yet seen, and the number of displaced flows is 0.
    pub fn begin_period(&mut self) {
        self.period += 1;
        self.displaced = 0;
    }

    /// Returns the number of flows whose counter another flow replaced since the period began.
    pub fn displaced(&self) -> u64 {
        self.displaced
    }

    /// Classifies a packet of the flow with this key. `left` is the number of packets that have left each queue so far.
    #[inline]
    pub fn arrival(&mut self, flow: u64, now: Time, left: [u64; 2]) -> Classified {
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
                // The flow's own old entry, a free one, or that of the flow that has been silent for
                // longest.
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
                    // Packets from before the flow was forgotten can still be in the short queue.
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

    /// The packet that was just classified has joined the queue of its class. When it leaves, `left`
    /// packets will have left that queue.
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

/// The parameters of the short queue's share of the link.
#[derive(Clone, Copy, Debug)]
pub struct ServiceShare {
    /// The threshold minth1, in the unit of q1.
    pub min_th: f64,
    /// The threshold maxth1, in the unit of q1.
    pub max_th: f64,
    /// The smallest share C1min/C while the short queue is not empty.
    pub least: f64,
    /// The largest share C1max/C.
    pub most: f64,
}

impl ServiceShare {
    /// Returns the share C1/C for a backlog of `q1`.
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

/// The choice between the queues, packet by packet, for a given share.
#[derive(Clone, Copy, Debug, Default)]
pub struct Turns {
    /// The sum d, in bytes.
    owed: f64,
}

impl Turns {
    /// Chooses the next packet, between one of `short` bytes and one of `long` bytes, if the short queue
    /// has `share` of the rate.
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

    /// Returns d, the bytes that the short queue should have sent and has not.
    pub fn owed(&self) -> f64 {
        self.owed
    }
}
