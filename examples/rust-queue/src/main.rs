//! A queue in a crate of its own: what has waited longer than a deadline is dropped in place of
//! being sent. The experiment in `experiment.toml` compares it with tail drop.
//!
//! `cargo run -p rust-queue` here; `cargo run` in a crate of your own.

use std::collections::VecDeque;
use std::error::Error;

use redtail_core::{Span, Time};
use redtail_sim::plugin::{
    Actions, DropReason, Identity, PacketId, PacketView, PluginContext, PluginError, PluginQueue,
};
use redtail_sim::{Plugins, RunOptions, RunResult, run};
use redtail_spec::{Plan, PlanOptions};

const EXPERIMENT: &str = include_str!("../experiment.toml");

struct Deadline {
    context: PluginContext,
    deadline: Span,
    waiting: VecDeque<PacketView>,
    /// Packets dropped for the deadline since the measurement began.
    late: u64,
}

impl Deadline {
    fn new(identity: &Identity, context: PluginContext) -> Result<Self, PluginError> {
        let seconds = identity
            .params
            .get("deadline")
            .and_then(|value| value.as_f64());
        let seconds = seconds.filter(|seconds| *seconds > 0.0);
        let seconds = seconds
            .ok_or_else(|| PluginError::new("params.deadline must be a number of seconds"))?;
        Ok(Self {
            context,
            deadline: Span::from_secs_f64(seconds),
            waiting: VecDeque::new(),
            late: 0,
        })
    }
}

impl PluginQueue for Deadline {
    fn enqueue(
        &mut self,
        packet: PacketView,
        _now: Time,
        actions: &mut dyn Actions,
    ) -> Result<(), PluginError> {
        let limit = self.context.limit;
        if limit.is_some_and(|limit| !limit.admits(actions.backlog(), packet.size)) {
            return actions.drop(packet.id, DropReason::Limit);
        }
        self.waiting.push_back(packet);
        Ok(())
    }

    fn dequeue(
        &mut self,
        now: Time,
        actions: &mut dyn Actions,
    ) -> Result<Option<PacketId>, PluginError> {
        while let Some(packet) = self.waiting.pop_front() {
            if now - packet.enqueued <= self.deadline {
                return Ok(Some(packet.id));
            }
            actions.drop(packet.id, DropReason::Early)?;
            self.late += 1;
        }
        Ok(None)
    }

    fn start_measuring(&mut self, _now: Time) -> Result<(), PluginError> {
        self.late = 0;
        Ok(())
    }

    fn report(&self, _now: Time, tell: &mut dyn FnMut(&str, f64)) -> Result<(), PluginError> {
        tell("late", self.late as f64);
        Ok(())
    }
}

/// What `class = "deadline"` in the experiment stands for.
fn plugins() -> Plugins {
    Plugins::new().with("deadline", |identity, context| {
        Ok(Box::new(Deadline::new(identity, context)?))
    })
}

/// Every run of an experiment, with the label of its queue.
fn runs(text: &str) -> Result<Vec<(String, RunResult)>, Box<dyn Error>> {
    let plan = Plan::from_text(
        text,
        PlanOptions {
            file: Some("experiment.toml"),
            ..PlanOptions::default()
        },
    )?;
    let mut results = Vec::new();
    for (index, case) in plan.cases.iter().enumerate() {
        let label = case.labels["bottleneck.queue"].as_str().unwrap_or_default();
        for replication in 0..plan.replications {
            let scenario = plan
                .scenario(index, replication)
                .expect("the case is there");
            let result = run(
                &scenario,
                RunOptions {
                    plugins: plugins(),
                    ..RunOptions::default()
                },
            )?;
            results.push((label.to_owned(), result));
        }
    }
    Ok(results)
}

fn main() -> Result<(), Box<dyn Error>> {
    for (label, result) in runs(EXPERIMENT)? {
        let metric = |name| result.metric(name).unwrap_or_default();
        println!(
            "{label}: {:.2} Mbit/s, waits {:.1} ms in the mean, {:.0} dropped late",
            metric("goodput") / 1e6,
            metric("queue_delay_mean") * 1e3,
            metric("queue.late"),
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_waits_longer_than_the_deadline() {
        let results = runs(EXPERIMENT).unwrap();
        assert_eq!(results.len(), 4);
        for (label, result) in results {
            // The histogram of delays has steps of 1 % at most.
            let delay = result.metric("queue_delay_p95").unwrap();
            assert_eq!(
                delay <= 0.02 * 1.01,
                label == "deadline",
                "{label}: {delay}"
            );
            assert_eq!(result.metric("queue.late").is_some(), label == "deadline");
        }
    }

    #[test]
    fn a_queue_that_cannot_be_made_says_why() {
        let text = EXPERIMENT.replace("deadline = 0.02", "deadline = \"soon\"");
        assert_eq!(
            runs(&text).unwrap_err().to_string(),
            "the queue \"deadline\" failed in new: params.deadline must be a number of seconds"
        );
    }
}
