//! What happens next.
//!
//! Few things need a place here: each link in transmission, the head of each
//! delay line, each armed timer. Events at the same picosecond happen in the
//! order of [`Class`], then of the index within the class: a total order that
//! does not depend on when an event was scheduled.

use redtail_core::Time;

/// The classes of events, in the order in which simultaneous ones happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Class {
    /// The measurement period begins: it includes everything at that instant.
    Measure = 0,
    /// A sample for time series: shows the state before that instant's events.
    Sample = 1,
    /// A link finished a transmission: room appears before arrivals claim it.
    LinkFree = 2,
    /// A queue discipline asked to be woken.
    QueueWakeup = 3,
    /// The head of a delay line arrives.
    Arrival = 4,
    /// A receiver's delayed acknowledgement.
    ReceiverTimer = 5,
    /// A sender's retransmission timer: after arrivals that may cancel it.
    SenderTimer = 6,
    /// A flow starts, or a constant-rate source sends.
    Source = 7,
}

const CLASSES: [Class; 8] = [
    Class::Measure,
    Class::Sample,
    Class::LinkFree,
    Class::QueueWakeup,
    Class::Arrival,
    Class::ReceiverTimer,
    Class::SenderTimer,
    Class::Source,
];

/// An event: when, of what class, and which of its class. Packed so that
/// comparing two events is comparing two numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Event(u128);

impl Event {
    /// An event of `class` for component `index` at `at`.
    #[inline]
    pub fn new(at: Time, class: Class, index: u32) -> Self {
        Self(u128::from(at.as_ps()) << 64 | u128::from(class as u8) << 32 | u128::from(index))
    }

    /// When it happens.
    #[inline]
    pub fn at(self) -> Time {
        Time::from_ps((self.0 >> 64) as u64)
    }

    /// What it is.
    #[inline]
    pub fn class(self) -> Class {
        CLASSES[(self.0 >> 32) as usize & 7]
    }

    /// Which component it concerns.
    #[inline]
    pub fn index(self) -> u32 {
        self.0 as u32
    }
}

/// A priority queue of events: a 4-ary heap.
///
/// Chosen by measurement (docs/performance.md): with a place only for the head
/// of each line there are few entries, and they fit in the first-level cache.
#[derive(Debug, Default)]
pub struct Scheduler {
    heap: Vec<Event>,
}

const ARITY: usize = 4;

impl Scheduler {
    /// Adds an event.
    #[inline]
    pub fn push(&mut self, event: Event) {
        let mut hole = self.heap.len();
        self.heap.push(event);
        while hole > 0 {
            let parent = (hole - 1) / ARITY;
            if self.heap[parent] <= event {
                break;
            }
            self.heap[hole] = self.heap[parent];
            hole = parent;
        }
        self.heap[hole] = event;
    }

    /// Takes the next event.
    #[inline]
    pub fn pop(&mut self) -> Option<Event> {
        let last = self.heap.pop()?;
        let Some(&first) = self.heap.first() else {
            return Some(last);
        };
        self.sift_down(last);
        Some(first)
    }

    /// Puts `event` in the place of the root and moves it down.
    #[inline]
    fn sift_down(&mut self, event: Event) {
        let len = self.heap.len();
        let mut hole = 0;
        loop {
            let first = hole * ARITY + 1;
            if first >= len {
                break;
            }
            let children = &self.heap[first..len.min(first + ARITY)];
            let mut least = 0;
            for (i, child) in children.iter().enumerate().skip(1) {
                if *child < children[least] {
                    least = i;
                }
            }
            if event <= children[least] {
                break;
            }
            self.heap[hole] = children[least];
            hole = first + least;
        }
        self.heap[hole] = event;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn events_come_in_order_of_time_class_and_index(
            steps in proptest::collection::vec((0u64..50, 0usize..8, 0u32..5, any::<bool>()), 1..300)
        ) {
            let mut scheduler = Scheduler::default();
            let mut model = BTreeSet::new();
            for (ps, class, index, pop) in steps {
                let event = Event::new(Time::from_ps(ps), CLASSES[class], index);
                if model.insert((ps, CLASSES[class], index)) {
                    scheduler.push(event);
                }
                if pop {
                    let popped = scheduler.pop().map(|e| (e.at().as_ps(), e.class(), e.index()));
                    prop_assert_eq!(popped, model.pop_first());
                }
            }
            while let Some(event) = scheduler.pop() {
                let popped = (event.at().as_ps(), event.class(), event.index());
                prop_assert_eq!(Some(popped), model.pop_first());
            }
            prop_assert!(model.is_empty());
        }
    }
}
