//! What can be read of a link between two events. Reading changes nothing.

use redtail_core::{Rate, Span, Time};
use redtail_qdisc::{Backlog, Internals, QueueDiscipline};

use crate::capacity::Capacity;
use crate::link::{Link, LinkPassed};

/// The state of a link and what has passed it since the run began.
#[derive(Clone, Copy, Debug, Default)]
pub struct LinkState {
    /// What waits in the queue. The packet in transmission has left it.
    pub backlog: Backlog,
    /// How long the packet that leaves next has waited; `None` if there is none, or if the queue does not know yet
    /// which packet that is.
    pub head_wait: Option<Span>,
    /// The rate at this time; `None` for a link whose rate is a trace, and for a medium that both directions share.
    pub rate: Option<Rate>,
    /// The average and the probability of the queue's control law.
    pub internals: Internals,
    /// Packets that passed.
    pub passed: LinkPassed,
    /// How many transmissions have begun.
    pub begun: u64,
}

impl LinkState {
    /// How long the link takes to send what waits at its present rate, without headers of its own; `None` where it has
    /// no rate, and during an outage.
    pub fn drain_time(&self) -> Option<Span> {
        let rate = self.rate.filter(|rate| rate.as_bps() > 0)?;
        let ps = u128::from(self.backlog.bytes) * 8 * 1_000_000_000_000 / u128::from(rate.as_bps());
        Some(Span::from_ps(u64::try_from(ps).unwrap_or(u64::MAX)))
    }

    /// Mean queueing delay of the packets whose transmission began since the link was in the state `before`, in seconds;
    /// `None` if there are none.
    pub fn mean_wait_since(&self, before: &Self) -> Option<f64> {
        let begun = self.begun - before.begun;
        let waited = Span::from_ps(self.passed.waited.wrapping_sub(before.passed.waited));
        (begun > 0).then(|| waited.as_secs_f64() / begun as f64)
    }
}

impl Link {
    /// Its state now.
    pub fn state(&self, now: Time) -> LinkState {
        let passed = self.counters.passed;
        LinkState {
            backlog: self.queue.backlog(),
            head_wait: self.queue.front().map(|packet| now.since(packet.stamp)),
            rate: match self.capacity.as_deref() {
                None => Some(self.transmitter.rate()),
                Some(Capacity::Steps(steps)) => Some(steps.rate(now)),
                Some(Capacity::Trace(_) | Capacity::Airtime(_)) => None,
            },
            internals: self.queue.internals(),
            passed,
            // The packets in transmission have not departed.
            begun: passed.departed + self.leaving().count() as u64,
        }
    }
}
