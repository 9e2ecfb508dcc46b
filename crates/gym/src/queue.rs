//! The agent as a queue: tail drop, and in front of it drops or marks at random.

use std::collections::VecDeque;

use redtail_core::plugin::Identity;
use redtail_core::{Bytes, Span, Stream, Time};
use redtail_qdisc::plugin::{
    Actions, PacketId, PacketView, PluginContext, PluginError, PluginQueue,
};
use redtail_qdisc::{DropReason, Limit};

use crate::told::{LARGEST_RATIO, Measure, Observed, Reward, Told, measure, observed, share};
use crate::{Cell, lock};

/// What is measured at a queue in a step, in the order in which it is told.
pub(crate) const MEASURES: &[Measure] = &[
    measure("time_s", "when the step ended, s"),
    measure("interval_s", "how long it took, s"),
    measure(
        "rate_bps",
        "rate of the link at the begin of the run, bit/s",
    ),
    measure("arrivals", "packets that arrived"),
    measure("arrival_bytes", "their bytes"),
    measure("departures", "packets whose transmission began"),
    measure("departure_bytes", "their bytes"),
    measure("limit_drops", "packets dropped because they did not fit"),
    measure("agent_drops", "packets that the agent dropped"),
    measure("agent_marks", "packets that the agent marked (ECN)"),
    measure(
        "queue_delay_s",
        "mean time for which the departures had waited, s; without any, `head_age_s`",
    ),
    measure(
        "backlog_packets",
        "packets that wait at the end of the step",
    ),
    measure("backlog_bytes", "their bytes"),
    measure(
        "head_age_s",
        "how long the first of them has waited, s; 0 without any",
    ),
    measure(
        "probability",
        "with which arriving packets were dropped or marked",
    ),
];

/// What an agent observes of a queue.
pub(crate) const OBSERVED: &[Observed] = &[
    observed("queue_delay_s, s", 0.0, f64::INFINITY),
    observed(
        "its change since the step before, s",
        f64::NEG_INFINITY,
        f64::INFINITY,
    ),
    observed(
        "bytes that arrived, as a share of what the link sends in a step",
        0.0,
        LARGEST_RATIO,
    ),
    observed(
        "bytes whose transmission began, likewise",
        0.0,
        LARGEST_RATIO,
    ),
    observed(
        "packets dropped, as a share of those that arrived",
        0.0,
        1.0,
    ),
    observed("packets marked, likewise", 0.0, 1.0),
    observed(
        "time that the link needs for the backlog, s",
        0.0,
        f64::INFINITY,
    ),
    observed("probability", 0.0, 1.0),
];

/// The queue's state, which its plug-in and the episode share.
pub(crate) type Shared = Cell<State>;

/// The waiting packets, what the agent sets, and what has happened since it looked.
#[derive(Default)]
pub(crate) struct State {
    /// What the agent sets.
    pub(crate) probability: f64,
    /// Of the link, bit/s.
    rate: f64,
    waiting: VecDeque<Waiting>,
    waiting_bytes: Bytes,
    counts: Counts,
    /// The queueing delay of the step before, s.
    delay_before: f64,
}

struct Waiting {
    packet: PacketId,
    size: Bytes,
    arrival: Time,
}

#[derive(Default)]
struct Counts {
    arrivals: u64,
    arrival_bytes: Bytes,
    departures: u64,
    departure_bytes: Bytes,
    limit_drops: u64,
    agent_drops: u64,
    agent_marks: u64,
    waited: Span,
}

impl State {
    /// Tells what has happened from `begin` to `now`, in a run that takes `duration`, and forgets it.
    pub(crate) fn tell(
        &mut self,
        (begin, now): (Time, Time),
        duration: Span,
        reward: &Reward,
        mut told: Told<'_>,
    ) {
        let counts = std::mem::take(&mut self.counts);
        let interval = (now - begin).as_secs_f64();
        let head = self.waiting.front();
        let head_age = head.map_or(0.0, |head| (now - head.arrival).as_secs_f64());
        let delay = match counts.departures {
            0 => head_age,
            departures => counts.waited.as_secs_f64() / departures as f64,
        };
        let change = delay - self.delay_before;
        self.delay_before = delay;
        let arrivals = counts.arrivals as f64;
        let arrival_bytes = counts.arrival_bytes.as_u64() as f64;
        let departure_bytes = counts.departure_bytes.as_u64() as f64;
        let waiting_bytes = self.waiting_bytes.as_u64() as f64;
        told.measures.copy_from_slice(&[
            now.as_secs_f64(),
            interval,
            self.rate,
            arrivals,
            arrival_bytes,
            counts.departures as f64,
            departure_bytes,
            counts.limit_drops as f64,
            counts.agent_drops as f64,
            counts.agent_marks as f64,
            delay,
            self.waiting.len() as f64,
            waiting_bytes,
            head_age,
            self.probability,
        ]);
        let sent = self.rate / 8.0 * interval;
        let used = share(departure_bytes, sent);
        let dropped = share((counts.limit_drops + counts.agent_drops) as f64, arrivals);
        let observation = [
            delay,
            change,
            share(arrival_bytes, sent),
            used,
            dropped,
            share(counts.agent_marks as f64, arrivals),
            share(8.0 * waiting_bytes, self.rate),
            self.probability,
        ];
        told.observe(&observation, OBSERVED, duration.as_secs_f64());
        *told.reward = reward.of(used, delay, dropped);
    }
}

/// What makes the queue of an episode.
pub(crate) fn make(
    shared: Shared,
    mark: bool,
) -> impl Fn(&Identity, PluginContext) -> Result<Box<dyn PluginQueue>, PluginError> + Send + Sync {
    move |_, context| {
        lock(&shared).rate = context.queue.rate.as_bps() as f64;
        Ok(Box::new(Queue {
            limit: context.limit.expect("the agent has the limit of tail drop"),
            stream: context.queue.stream,
            mark,
            shared: shared.clone(),
        }))
    }
}

struct Queue {
    limit: Limit,
    stream: Stream,
    mark: bool,
    shared: Shared,
}

impl PluginQueue for Queue {
    fn enqueue(
        &mut self,
        packet: PacketView,
        now: Time,
        actions: &mut dyn Actions,
    ) -> Result<(), PluginError> {
        let state = &mut *lock(&self.shared);
        state.counts.arrivals += 1;
        state.counts.arrival_bytes += packet.size;
        if !self.limit.admits(actions.backlog(), packet.size) {
            state.counts.limit_drops += 1;
            return actions.drop(packet.id, DropReason::Limit);
        }
        if self.stream.uniform() < state.probability {
            if self.mark && actions.mark(packet.id)? {
                state.counts.agent_marks += 1;
            } else {
                state.counts.agent_drops += 1;
                return actions.drop(packet.id, DropReason::Early);
            }
        }
        state.waiting_bytes += packet.size;
        state.waiting.push_back(Waiting {
            packet: packet.id,
            size: packet.size,
            arrival: now,
        });
        Ok(())
    }

    fn dequeue(
        &mut self,
        now: Time,
        _actions: &mut dyn Actions,
    ) -> Result<Option<PacketId>, PluginError> {
        let state = &mut *lock(&self.shared);
        let Some(head) = state.waiting.pop_front() else {
            return Ok(None);
        };
        state.waiting_bytes -= head.size;
        state.counts.departures += 1;
        state.counts.departure_bytes += head.size;
        state.counts.waited += now - head.arrival;
        Ok(Some(head.packet))
    }

    fn wakes(&self) -> bool {
        false
    }
}
