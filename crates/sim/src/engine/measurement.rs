//! The measurement period, its phases and samples, and the result of a run.

use redtail_core::Time;
use redtail_network::result::RunResult;
use redtail_network::{Class, Event, report};
use redtail_traffic::Application;
use redtail_transport::SenderCounters;

use super::Engine;
use crate::connections::Reached;
use crate::conservation;

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
        sampler.sample(&mut self.links, &self.ends.flows, self.now);
        let again = self.now + sampler.request.interval;
        self.links
            .scheduler
            .add(Event::new(again, Class::Sample, 0));
    }

    /// The measurement period begins.
    pub(super) fn on_measure(&mut self) {
        let phases = !self.scenario.phases.is_empty();
        self.links.start_measuring(phases, self.now);
        self.ends.flows.note_reached();
        for slot in &mut self.ends.flows.senders {
            slot.sender.start_measuring();
        }
        self.ends.flows.connections.start_measuring();
        self.begin_flow_rows();
        for answers in self.ends.flows.answers.iter_mut().flatten() {
            answers.begin(self.now);
        }
        for end in self
            .ends
            .flows
            .calls
            .iter_mut()
            .flat_map(|slot| &mut slot.ends)
        {
            end.start_measuring(self.now);
        }
        for slot in &mut self.ends.flows.own {
            slot.start_measuring(self.now);
        }
        for user in &mut self.ends.flows.users {
            if let Some(program) = &mut user.program {
                program.start_measuring(self.now);
            }
        }
        if let Some(packets) = &mut self.ends.packets {
            packets.begin(phases, self.now);
        }
        self.done_before = self.done_by_group();
        self.reached_before = self.reached_by_group();
        self.begin_phase();
    }

    /// One phase ends and the next begins.
    pub(super) fn on_phase(&mut self) {
        self.end_phase();
        self.links.start_phase(self.now);
        self.begin_phase();
    }

    /// The counters of the senders of each group so far.
    pub(super) fn done_by_group(&self) -> Vec<SenderCounters> {
        let mut done = vec![SenderCounters::default(); self.scenario.traffic.len()];
        for slot in &self.ends.flows.senders {
            done[self.ends.flows.group(slot.flow) as usize] += slot.sender.counters();
        }
        for (group, done) in (0..).zip(&mut done) {
            *done += self.ends.flows.connections.done(group);
        }
        done
    }

    /// The result, once the loop has reached the end.
    pub(super) fn finish(mut self) -> RunResult {
        let event_log = self.finish_log();
        if !self.scenario.phases.is_empty() {
            self.end_phase();
        }
        self.links.end_transmissions(self.now);
        let links = &self.links.network.links;
        let forward = links.iter().filter(|link| link.forward);
        let mut result = RunResult {
            links: links.iter().map(|link| link.name.clone()).collect(),
            groups: self
                .scenario
                .traffic
                .iter()
                .map(|g| g.access().name.to_owned())
                .collect(),
            bottleneck_packets: forward.map(|link| link.counters.passed.departed).sum(),
            events: self.event_count(),
            event_log,
            ..RunResult::default()
        };
        report::links(&mut self.links, &self.scenario, self.now, &mut result);
        self.report_flows(&mut result);
        if let Some(packets) = self.ends.packets.take() {
            packets.finish(&mut result.metrics, &mut result.histograms);
        }
        result.metrics.append(&mut self.phases.metrics);
        result.transfers = self.transfers();
        result.flows = self.flow_rows();
        for (group, answers) in (0..).zip(&self.ends.flows.answers) {
            if let Some(answers) = answers {
                answers.export(group, &mut result.response_times);
            }
        }
        conservation::check(
            &mut self.links,
            &self.ends.flows,
            &self.ends.dropped,
            &self.ends.copied,
            self.now,
        );
        if let Some(sampler) = self.sampler {
            result.queue_series = sampler.request.queues.then_some(sampler.queues);
            result.flow_series = sampler.request.windows.then_some(sampler.flows);
            if !sampler.figures.is_empty() {
                result.controller_series = Some(sampler.controllers);
                result.figures = sampler.figures;
            }
            result.group_series = sampler.request.goodput.then_some(sampler.groups);
            result.states = sampler.states.into_iter().map(str::to_owned).collect();
        }
        result
    }
}
