//! Computes the metrics of a result from the counters of a run.

use std::collections::BTreeMap;

use redtail_core::{Span, Time};
use redtail_network::answers::Answers;
use redtail_network::group_report::{self, Moments, Value, bits_per_second};
use redtail_network::histograms::ONE_WAY_DELAY;
use redtail_network::metrics::*;
use redtail_network::report::{self, full_name};
use redtail_network::result::{Histograms, RunResult, Transfers};
use redtail_network::statistics::Shares;

use redtail_traffic::endpoint::DELIVERED_RATE;
use redtail_traffic::{Application, CallEnd, TrafficParams};
use redtail_transport::SenderCounters;

use super::Engine;
use crate::connections::Reached;
use crate::flows::UdpSink;
use crate::own::OwnSlot;

/// Of each figure that `all` tells by its name, the mean over those who tell it, as a metric `PREFIX.NAME`.
fn means_told(prefix: &str, all: impl FnOnce(&mut dyn FnMut(&str, f64))) -> Vec<(String, f64)> {
    let mut told = BTreeMap::<String, (f64, f64)>::new();
    all(&mut |name, value| {
        let (sum, count) = told.entry(name.to_owned()).or_default();
        *sum += value;
        *count += 1.0;
    });
    let mean = |(name, (sum, count))| (format!("{prefix}.{name}"), sum / count);
    told.into_iter().map(mean).collect()
}

impl Engine<'_> {
    /// A phase begins now. The links' statistics of it already exist.
    pub(super) fn begin_phase(&mut self) {
        self.phases.number += 1;
        self.phases.since = self.now;
        self.phases.reached_before = self.reached_by_group();
    }

    /// Metrics of the phase that ends now.
    pub(super) fn end_phase(&mut self) {
        let phase = format!("phase{}.", self.phases.number);
        let mut metrics = std::mem::take(&mut self.phases.metrics);
        report::phase_links(
            &mut self.links,
            &self.scenario,
            &phase,
            self.now,
            &mut metrics,
        );
        let period = self.now - self.phases.since;
        let mut all = None;
        let reached = self.reached_by_group();
        let before = &self.phases.reached_before;
        for (index, group) in self.scenario.traffic.iter().enumerate() {
            if group.tcp().is_some() {
                let bytes = reached[index].goodput_since(before[index]);
                let goodput = bits_per_second(bytes, period);
                let prefix = format!("{phase}{}.", group.access().name);
                metrics.push((full_name(&prefix, GOODPUT), goodput));
                *all.get_or_insert(0.0) += goodput;
            }
        }
        metrics.extend(all.map(|goodput| (full_name(&phase, GOODPUT), goodput)));
        if let Some(packets) = &mut self.ends.packets {
            packets.end_phase(&phase, self.now, &mut metrics);
        }
        self.phases.metrics = metrics;
    }

    /// The bytes that have reached the receivers and users of each group so far.
    pub(super) fn reached_by_group(&self) -> Vec<Reached> {
        self.ends.flows.reached_by_group()
    }

    /// For a group: the longest wait for an acknowledgement that advances, and the number of
    /// present waits of more than 10 s.
    fn waits(&self, group: usize) -> (Span, u64) {
        let flows = &self.ends.flows.senders[self.ends.flows.tcp_of(group)];
        flows
            .iter()
            .map(|slot| slot.sender.longest_wait(self.now))
            .chain(self.ends.flows.connections.waits(group as u32, self.now))
            .fold((Span::ZERO, 0), |(longest, stalled), (wait, is_stalled)| {
                (longest.max(wait), stalled + u64::from(is_stalled))
            })
    }

    /// Metrics of the flows, by group and together.
    pub(super) fn report_flows(&self, result: &mut RunResult) {
        let (done, reached) = (self.done_by_group(), self.reached_by_group());
        let (mut all_tcp, mut users_rate) = (Shares::default(), 0.0);
        for (index, name) in result.groups.iter().enumerate() {
            let metrics = &mut result.metrics;
            metrics.extend(self.controller_figures(index, name));
            let mut add = |(metric, value): Value| {
                if let Some(value) = value {
                    metrics.push((format!("{name}.{}", metric.name), value));
                }
            };
            let host_wait = self.links.network.paths.longest_host_wait(index as u32);
            add((HOST_WAIT_MAX, Some(host_wait.as_secs_f64())));
            let mut rates = self.tcp_rates(index, reached[index], &mut all_tcp);
            if !rates.is_empty() {
                add((GOODPUT, Some(rates.sum())));
                self.report_tcp(index, done[index], reached[index], &mut add);
            }
            if let Some(answers) = self.ends.flows.answers[index].as_deref() {
                self.report_users(index, answers, &mut add);
                users_rate += rates.sum();
                continue; // fairness between users depends on what they request
            }
            let others = match self.scenario.traffic[index] {
                TrafficParams::Call(_) => {
                    self.report_calls(index, &mut result.histograms, &mut add)
                }
                TrafficParams::Endpoint(_) => {
                    self.report_own(index, &mut result.histograms, &mut add)
                }
                ref group if group.tcp().is_some() => Vec::new(),
                _ => self.report_udp(index, &mut result.histograms, &mut add),
            };
            others.into_iter().for_each(|rate| rates.add(rate));
            add((FAIRNESS, rates.fairness()));
            metrics.extend(self.endpoint_figures(index, name));
        }
        let mut groups = self.scenario.traffic.iter();
        if groups.any(|group| group.tcp().is_some()) {
            let goodput = all_tcp.sum() + users_rate;
            result.metrics.push((full_name("", GOODPUT), goodput));
        }
        if let Some(fairness) = all_tcp.fairness() {
            result.metrics.push((full_name("", FAIRNESS), fairness));
        }
    }

    /// Goodput of each TCP flow of a group, which is added to that of `all`, or, if the group has users, of all of
    /// them together; empty for a group without TCP.
    fn tcp_rates(&self, group: usize, reached: Reached, all: &mut Shares) -> Shares {
        let period = self.period();
        let mut rates = Shares::default();
        for receiver in self.ends.flows.tcp_of(group) {
            let rate = bits_per_second(self.ends.flows.goodput(receiver), period);
            rates.add(rate);
            all.add(rate);
        }
        if self.ends.flows.answers[group].is_some() {
            let bytes = reached.goodput_since(self.reached_before[group]);
            rates.add(bits_per_second(bytes, period));
        }
        rates
    }

    /// Metrics of the connections of a group; `done` and `reached` since the start of the run.
    fn report_tcp(
        &self,
        group: usize,
        done: SenderCounters,
        reached: Reached,
        add: &mut impl FnMut(Value),
    ) {
        let received = reached.received - self.reached_before[group].received;
        add((
            RECEIVED_RATE,
            Some(bits_per_second(received, self.period())),
        ));
        let done = done - self.done_before[group];
        let mut count = |metric, number: u64| add((metric, Some(number as f64)));
        count(DATA_SEGMENTS, done.data_segments);
        count(RETRANSMISSIONS, done.retransmissions);
        count(FAST_RECOVERIES, done.recoveries);
        count(TIMEOUTS, done.timeouts);
        count(SPURIOUS_TIMEOUTS, done.spurious_timeouts);
        count(SPURIOUS_FAST_RETRANSMITS, done.spurious_fast_retransmits);
        count(ECN_REDUCTIONS, done.ecn_reductions);
        match &self.scenario.traffic[group] {
            TrafficParams::Transfer(_) => {
                self.transfer_times(group).into_iter().for_each(&mut *add);
            }
            TrafficParams::Bulk(_) => {
                let values =
                    group_report::of_bulk(self.moments(group), self.handshake(group), self.now);
                values.into_iter().for_each(&mut *add);
            }
            _ => {}
        }
        let (longest, stalled) = self.waits(group);
        add((DUPLICATE_ACKS, Some(done.duplicate_acks as f64)));
        add((STALLS, Some((done.stalls + stalled) as f64)));
        add((ACK_WAIT_MAX, Some(longest.as_secs_f64())));
    }

    /// The figures that the controllers of a group's flows tell of themselves.
    fn controller_figures(&self, group: usize, name: &str) -> Vec<(String, f64)> {
        means_told(&format!("{name}.controller"), |tell| {
            for slot in &self.ends.flows.senders[self.ends.flows.tcp_of(group)] {
                slot.sender.report(self.now, tell);
            }
        })
    }

    /// Metrics of the users of a group.
    fn report_users(&self, group: usize, answers: &Answers, add: &mut impl FnMut(Value)) {
        let users = self.scenario.traffic[group].access().flows;
        add((USERS, Some(f64::from(users))));
        let slots = self.ends.flows.users.iter();
        let slots = slots.filter(|user| user.group as usize == group);
        let programs = slots.map(|user| user.program.as_deref().expect("nobody is at work"));
        let mut pages = Vec::new();
        for program in programs.clone() {
            program.unfinished_pages(&mut |began| pages.push(began));
        }
        let connections = self.ends.flows.connections.iter();
        let of_group = connections.filter(|(_, it)| it.at.group as usize == group);
        let unfinished =
            of_group.flat_map(|(_, it)| it.unfinished().map(|each| (each, it.at.host)));
        let summary = answers.summary(self.now, self.period(), unfinished, pages.into_iter());
        let values = group_report::of_answers(&summary, self.period());
        values.into_iter().for_each(&mut *add);
        group_report::of_users(programs, self.now)
            .into_iter()
            .for_each(add);
    }

    /// Metrics of the UDP flows of a group; returns what each has received, in bit/s.
    fn report_udp(
        &self,
        group: usize,
        histograms: &mut Histograms,
        add: &mut impl FnMut(Value),
    ) -> Vec<f64> {
        let slots = self.ends.flows.udp.iter();
        let slots = slots.filter(|slot| slot.group as usize == group);
        let (mut received, mut lost) = (0, 0);
        let mut rates = Vec::new();
        for slot in slots.clone() {
            rates.push(bits_per_second(slot.received_bytes, self.period()));
            received += slot.received;
            lost += slot.lost;
        }
        let rate = rates.iter().sum();
        self.report_datagrams(group, (received, lost), rate, histograms, add);
        if let TrafficParams::Voip(params) = &self.scenario.traffic[group] {
            let calls = slots.filter_map(|slot| match &slot.sink {
                UdpSink::Call(call) => Some((&**call, slot.lost)),
                UdpSink::Counter => None,
            });
            let values = group_report::of_calls(calls, params);
            values.into_iter().for_each(add);
        }
        rates
    }

    /// Metrics of the datagrams of a group, of which so many were received, at `rate` in bit/s, and lost.
    fn report_datagrams(
        &self,
        group: usize,
        (received, lost): (u64, u64),
        rate: f64,
        histograms: &mut Histograms,
        add: &mut impl FnMut(Value),
    ) {
        let delays = &self.ends.flows.delays[group];
        let name = self.scenario.traffic[group].access().name;
        histograms.add(format!("{name}.{ONE_WAY_DELAY}"), delays.histogram());
        let values = group_report::of_udp(received, lost, rate, delays);
        values.into_iter().for_each(add);
    }

    /// Metrics of the calls of a group; returns what each callee has received, in bit/s.
    fn report_calls(
        &self,
        group: usize,
        histograms: &mut Histograms,
        add: &mut impl FnMut(Value),
    ) -> Vec<f64> {
        let slots = self.ends.flows.calls.iter();
        let slots: Vec<_> = slots.filter(|slot| slot.group as usize == group).collect();
        let ends = |side: usize| slots.iter().map(move |slot| &slot.ends[side]);
        let delays = &self.ends.flows.delays[group];
        let name = self.scenario.traffic[group].access().name;
        histograms.add(format!("{name}.{ONE_WAY_DELAY}"), delays.histogram());
        let back = &self.ends.flows.back_delays[group];
        let rate = |end: &CallEnd| bits_per_second(end.received_bytes(), self.period());
        let rates: Vec<f64> = ends(1).map(rate).collect();
        let all = rates.iter().sum();
        group_report::of_video_calls(ends(1), ends(0), all, [delays, back], self.now)
            .into_iter()
            .for_each(add);
        rates
    }

    /// Metrics of the flows of a group between endpoints of users; returns what the receiver of each has received, in
    /// bit/s.
    fn report_own(
        &self,
        group: usize,
        histograms: &mut Histograms,
        add: &mut impl FnMut(Value),
    ) -> Vec<f64> {
        let slots: Vec<_> = self.own_of(group).collect();
        let (mut received, mut lost) = (0, 0);
        for slot in &slots {
            received += slot.received;
            lost += slot.lost;
        }
        let rate = |bytes| bits_per_second(bytes, self.period());
        let rates: Vec<f64> = slots.iter().map(|it| rate(it.received_bytes)).collect();
        let all = rates.iter().sum();
        self.report_datagrams(group, (received, lost), all, histograms, add);
        let delivered: Option<u64> = slots.iter().map(|slot| slot.delivered()).sum();
        add((DELIVERED_RATE, delivered.map(rate)));
        rates
    }

    /// The flows of a group between endpoints of users.
    fn own_of(&self, group: usize) -> impl Iterator<Item = &OwnSlot> {
        let slots = self.ends.flows.own.iter();
        slots.filter(move |slot| slot.group as usize == group)
    }

    /// The figures that the endpoints of users of a group tell of themselves.
    fn endpoint_figures(&self, group: usize, name: &str) -> Vec<(String, f64)> {
        means_told(&format!("{name}.endpoint"), |tell| {
            for slot in self.own_of(group) {
                slot.report(self.now, tell);
            }
        })
    }

    /// The length of the measurement period.
    fn period(&self) -> Span {
        self.scenario.duration - self.scenario.warmup
    }

    /// Whether the connections of a group have a handshake.
    fn handshake(&self, group: usize) -> bool {
        let tcp = self.scenario.traffic[group].tcp();
        tcp.is_some_and(|tcp| tcp.params.handshake)
    }

    /// What each TCP flow of a group has reached.
    fn moments(&self, group: usize) -> impl Iterator<Item = Moments> + '_ {
        let senders = &self.ends.flows.senders[self.ends.flows.tcp_of(group)];
        senders.iter().map(move |sender| {
            let moments = self.ends.flows.moments.of(sender.flow);
            Moments {
                start: self.ends.flows.start(sender.flow, &self.scenario),
                established: moments.established,
                first_byte: moments.first_byte,
                completed: moments.completed,
            }
        })
    }

    /// The metrics of the transfers of a group.
    fn transfer_times(&self, group: usize) -> [Value; 9] {
        let (from, handshake) = (self.ends.measure_from, self.handshake(group));
        group_report::of_transfers(self.moments(group), handshake, from, self.now)
    }

    /// A row for each sized transfer, in the order of the flows.
    pub(super) fn transfers(&self) -> Transfers {
        let mut rows = Transfers::default();
        for sender in &self.ends.flows.senders {
            let group = self.ends.flows.group(sender.flow);
            let TrafficParams::Transfer(transfer) = &self.scenario.traffic[group as usize] else {
                continue;
            };
            let start = self.ends.flows.start(sender.flow, &self.scenario);
            let since = |end: Option<Time>| end.map_or(f64::NAN, |end| (end - start).as_secs_f64());
            let first = self.ends.flows.first_of(group);
            let i = (sender.flow - first) as usize;
            let size = transfer.size.get(i % transfer.flows as usize).as_u64();
            let done = sender.sender.counters();
            let moments = self.ends.flows.moments.of(sender.flow);
            rows.group.push(group);
            rows.flow.push(sender.flow);
            rows.size_bytes.push(size);
            rows.start_s.push(start.as_secs_f64());
            rows.handshake_time_s.push(since(moments.established));
            rows.first_byte_time_s.push(since(moments.first_byte));
            rows.completion_time_s.push(since(moments.completed));
            rows.retransmissions.push(done.retransmissions);
            rows.timeouts.push(done.timeouts as f64);
        }
        rows
    }
}
