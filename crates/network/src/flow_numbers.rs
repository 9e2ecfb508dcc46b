//! The numbers of flows that come and go.
//!
//! Queues know a connection by its flow number: the user's own, or, while that is in use or for a server on another
//! host, a number from a free list. So there are as many numbers as flows are open at a time (`FlowTable::open` in
//! `crates/qdisc`).

use std::collections::VecDeque;

/// Numbers of the flows that users open and close; they follow those of all other flows.
#[derive(Debug, Default)]
pub struct FlowNumbers {
    first: u32,
    /// The least number that was never taken.
    next: u32,
    /// Numbers that were given back. The one given back first is taken first, because a queue may
    /// remember the flow that had it.
    free: VecDeque<u32>,
}

impl FlowNumbers {
    /// The numbers from `first` on.
    pub fn starting_at(first: u32) -> Self {
        Self {
            first,
            next: first,
            free: VecDeque::new(),
        }
    }

    /// A number that no open flow has.
    ///
    /// # Panics
    /// With 2^32 flows at a time.
    pub fn take(&mut self) -> u32 {
        self.free.pop_front().unwrap_or_else(|| {
            let number = self.next;
            self.next = number.checked_add(1).expect("fewer than 2^32 flows");
            number
        })
    }

    /// Gives back the number of a flow that is over. Does nothing for flows that users did not
    /// open.
    pub fn give_back(&mut self, number: u32) {
        if number >= self.first {
            self.free.push_back(number);
        }
    }
}
