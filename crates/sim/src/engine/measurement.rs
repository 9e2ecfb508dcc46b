//! The measurement period, its phases and samples, and the result of a run.

use redtail_core::Time;
use redtail_qdisc::QueueDiscipline;
use redtail_traffic::Application;
use redtail_transport::SenderCounters;

use super::Engine;
use super::links::in_transmission;
use crate::connections::Reached;
use crate::conservation::{self, LinkPassed};
use crate::result::RunResult;
use crate::scheduler::{Class, Event};
use crate::statistics::{LinkStatistics, Measured};

/// The measurements of the phases.
#[derive(Debug, Default)]
pub(super) struct Phases {
    /// Number of the present phase, from 1.
    pub(super) number: u32,
    /// When the present phase began.
    pub(super) since: Time,
    /// The bytes that had reached the receivers when the phase began, by group.
    pub(super) reached_before: Vec<Reached>,
    /// Metrics of the phases that have ended.
    pub(super) metrics: Vec<(String, f64)>,
}

impl Engine<'_> {
    pub(super) fn on_sample(&mut self) {
        let sampler = self
            .sampler
            .as_mut()
            .expect("samples are scheduled on request");
        sampler.sample(&self.network, &self.flows, self.now);
        let again = self.now + sampler.request.interval;
        self.scheduler.add(Event::new(again, Class::Sample, 0));
    }

    /// The measurement period begins.
    pub(super) fn on_measure(&mut self) {
        let phases = !self.scenario.phases.is_empty();
        for (link, books) in self.network.links.iter().zip(&mut self.books) {
            let begin = || LinkStatistics::new(self.now, &books.waiting, link.round_trip);
            books.statistics = Some(Measured {
                whole: begin(),
                phase: phases.then(|| Box::new(begin())),
            });
        }
        for link in &mut self.network.links {
            link.queue.start_measuring(self.now);
        }
        self.network.start_measuring();
        for slot in &mut self.flows.receivers {
            slot.reached_before = slot.reached();
        }
        for slot in &mut self.flows.senders {
            slot.sender.forget_waits();
        }
        self.flows.connections.forget_waits();
        for answers in self.flows.answers.iter_mut().flatten() {
            answers.begin(self.now);
        }
        for user in &mut self.flows.users {
            if let Some(program) = &mut user.program {
                program.start_measuring(self.now);
            }
        }
        self.done_before = self.done_by_group();
        self.reached_before = self.reached_by_group();
        self.begin_phase();
    }

    /// One phase ends and the next begins.
    pub(super) fn on_phase(&mut self) {
        self.end_phase();
        for (link, books) in self.network.links.iter().zip(&mut self.books) {
            let begin = LinkStatistics::new(self.now, &books.waiting, link.round_trip);
            let statistics = books.statistics.as_mut().expect("the warm-up is over");
            statistics.phase = Some(Box::new(begin));
        }
        self.begin_phase();
    }

    /// The counters of the senders of each group so far.
    pub(super) fn done_by_group(&self) -> Vec<SenderCounters> {
        let mut done = vec![SenderCounters::default(); self.scenario.traffic.len()];
        for slot in &self.flows.senders {
            done[self.flows.groups[slot.flow as usize] as usize] += slot.sender.counters();
        }
        for (group, done) in (0..).zip(&mut done) {
            *done += self.flows.connections.done(group);
        }
        done
    }

    pub(super) fn finish(mut self) -> RunResult {
        if !self.scenario.phases.is_empty() {
            self.end_phase();
        }
        // A transmission that the end of the run interrupts has used the link up to the end.
        for (link, books) in self.network.links.iter().zip(&mut self.books) {
            if let (Some((group, since)), Some(statistics)) = (
                in_transmission(link, &self.network.routes),
                &mut books.statistics,
            ) {
                let capacity = link.capacity.as_deref();
                statistics.on_transmitted(group, since, self.now, capacity);
            }
        }
        let passed: Vec<LinkPassed> = self.books.iter().map(|books| books.passed).collect();
        let forward = self
            .network
            .links
            .iter()
            .zip(&passed)
            .filter(|(link, _)| link.forward);
        let mut result = RunResult {
            links: self
                .network
                .links
                .iter()
                .map(|link| link.name.clone())
                .collect(),
            groups: self
                .scenario
                .traffic
                .iter()
                .map(|g| g.access().name.to_owned())
                .collect(),
            bottleneck_packets: forward.map(|(_, passed)| passed.departed).sum(),
            events: self.events,
            ..RunResult::default()
        };
        self.report_links(&mut result);
        self.report_flows(&mut result);
        result.metrics.append(&mut self.phases.metrics);
        result.transfers = self.transfers();
        for (group, answers) in (0..).zip(&self.flows.answers) {
            if let Some(answers) = answers {
                answers.export(group, &mut result.response_times);
            }
        }
        conservation::check(
            &mut self.network,
            &self.flows,
            &passed,
            &self.dropped,
            self.now,
        );
        if let Some(sampler) = self.sampler {
            result.queue_series = sampler.request.queues.then_some(sampler.queues);
            result.flow_series = sampler.request.windows.then_some(sampler.flows);
        }
        result
    }
}
