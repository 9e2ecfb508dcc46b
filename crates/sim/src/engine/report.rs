//! Computes the metrics of a result from the counters of a run.

use redtail_core::{Bytes, Metric, Span, Time};
use redtail_network::answers::AnswerSummary;
use redtail_network::metrics::*;
use redtail_network::report::{self, full_name};
use redtail_network::result::{RunResult, Transfers};
use redtail_network::statistics::jain;

use super::Engine;
use redtail_traffic::e_model::mos;
use redtail_traffic::transfer::{
    COMPLETED, COMPLETION_TIME_MEAN, FIRST_BYTE_TIME_MEAN, HANDSHAKE_TIME_MEAN,
};
use redtail_traffic::voip::{JITTER, LATE, MOS, MOS_MIN, R_FACTOR};
use redtail_traffic::web::{PAGE_TIME_MEAN, PAGE_TIME_P50, PAGE_TIME_P95, PAGES};
use redtail_traffic::{Application, TrafficGroup, VoipGroup};

use crate::connections::Reached;
use crate::flows::UdpSink;

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
            self.scenario,
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
        self.phases.metrics = metrics;
    }

    /// The bytes that have reached the receivers and users of each group so far.
    pub(super) fn reached_by_group(&self) -> Vec<Reached> {
        let mut reached = vec![Reached::default(); self.scenario.traffic.len()];
        for slot in &self.flows.receivers {
            let group = self.flows.groups[slot.flow as usize] as usize;
            reached[group] += slot.reached();
        }
        for (group, reached) in (0..).zip(&mut reached) {
            *reached += self.flows.connections.reached(group);
        }
        reached
    }

    /// For a group: the longest wait for an acknowledgement that advances, and the number of
    /// present waits of more than 10 s.
    fn waits(&self, group: usize) -> (Span, u64) {
        let of_group = |flow: u32| self.flows.groups[flow as usize] as usize == group;
        let slots = self.flows.senders.iter();
        let flows = slots.filter(|slot| of_group(slot.flow));
        flows
            .map(|slot| slot.sender.longest_wait(self.now))
            .chain(self.flows.connections.waits(group as u32, self.now))
            .fold((Span::ZERO, 0), |(longest, stalled), (wait, is_stalled)| {
                (longest.max(wait), stalled + u64::from(is_stalled))
            })
    }

    /// Metrics of the flows, by group and together.
    pub(super) fn report_flows(&self, result: &mut RunResult) {
        let period = self.scenario.duration - self.scenario.warmup;
        let (done, reached) = (self.done_by_group(), self.reached_by_group());
        let (mut all_tcp, mut users_rate) = (Vec::new(), 0.0);
        for (index, name) in result.groups.iter().enumerate() {
            let mut add = |metric: &'static Metric, value: Option<f64>| {
                if let Some(value) = value {
                    let name = format!("{name}.{}", metric.name);
                    result.metrics.push((name, value));
                }
            };
            let host_wait = self.links.network.longest_host_wait(index as u32);
            add(HOST_WAIT_MAX, Some(host_wait.as_secs_f64()));
            let of_group = |flow: u32| self.flows.groups[flow as usize] as usize == index;
            let mut rates = Vec::new();
            for (sender, receiver) in self.flows.senders.iter().zip(&self.flows.receivers) {
                if of_group(sender.flow) {
                    let bytes = receiver.reached().goodput_since(receiver.reached_before);
                    rates.push(bits_per_second(bytes, period));
                }
            }
            let answers = self.flows.answers[index].as_deref();
            if answers.is_some() {
                let bytes = reached[index].goodput_since(self.reached_before[index]);
                rates.push(bits_per_second(bytes, period));
            }
            if !rates.is_empty() {
                add(GOODPUT, Some(rates.iter().sum()));
                let received = reached[index].received - self.reached_before[index].received;
                add(RECEIVED_RATE, Some(bits_per_second(received, period)));
                let done = done[index] - self.done_before[index];
                add(DATA_SEGMENTS, Some(done.data_segments as f64));
                add(RETRANSMISSIONS, Some(done.retransmissions as f64));
                add(FAST_RECOVERIES, Some(done.recoveries as f64));
                add(TIMEOUTS, Some(done.timeouts as f64));
                add(SPURIOUS_TIMEOUTS, Some(done.spurious_timeouts as f64));
                let spurious = done.spurious_fast_retransmits;
                add(SPURIOUS_FAST_RETRANSMITS, Some(spurious as f64));
                add(ECN_REDUCTIONS, Some(done.ecn_reductions as f64));
                if let TrafficGroup::Transfer(_) = &self.scenario.traffic[index] {
                    let [handshake, first_byte, completion] = self.transfer_times(index);
                    add(COMPLETED, completion.share());
                    add(COMPLETION_TIME_MEAN, completion.mean());
                    add(HANDSHAKE_TIME_MEAN, handshake.mean());
                    add(FIRST_BYTE_TIME_MEAN, first_byte.mean());
                }
                add(DUPLICATE_ACKS, Some(done.duplicate_acks as f64));
                let (longest, stalled) = self.waits(index);
                add(STALLS, Some((done.stalls + stalled) as f64));
                add(ACK_WAIT_MAX, Some(longest.as_secs_f64()));
            }
            if let Some(answers) = answers {
                let users = self.scenario.traffic[index].access().flows;
                add(USERS, Some(f64::from(users)));
                let unanswered = self.unanswered(index);
                add_answers(
                    answers.summary(self.now, period),
                    unanswered,
                    period,
                    &mut add,
                );
                for (metric, amount, per) in self.user_metrics(index) {
                    add(metric, (per > 0.0).then(|| amount / per));
                }
                users_rate += rates.iter().sum::<f64>();
                continue; // fairness between users depends on what they request
            }
            all_tcp.extend_from_slice(&rates);
            let (mut received, mut lost) = (0, 0);
            for slot in self.flows.udp.iter().filter(|slot| of_group(slot.flow)) {
                rates.push(bits_per_second(slot.received_bytes, period));
                received += slot.received;
                lost += slot.lost;
            }
            if received + lost > 0 {
                add(
                    END_TO_END_LOSS,
                    Some(lost as f64 / (received + lost) as f64),
                );
            }
            let delays = &self.flows.delays[index];
            add(ONE_WAY_DELAY_MEAN, delays.mean());
            add(ONE_WAY_DELAY_P50, delays.quantile(0.5));
            add(ONE_WAY_DELAY_P95, delays.quantile(0.95));
            add(ONE_WAY_DELAY_P99, delays.quantile(0.99));
            if let TrafficGroup::Voip(group) = &self.scenario.traffic[index] {
                for (metric, value) in self.call_quality(index, group) {
                    add(metric, value);
                }
            }
            add(FAIRNESS, jain(rates));
        }
        if self
            .scenario
            .traffic
            .iter()
            .any(|group| group.tcp().is_some())
        {
            let goodput = all_tcp.iter().sum::<f64>() + users_rate;
            result.metrics.push((full_name("", GOODPUT), goodput));
        }
        if let Some(fairness) = jain(all_tcp) {
            result.metrics.push((full_name("", FAIRNESS), fairness));
        }
    }

    /// The metrics that the programs of a group's users report, summed over the users: definition,
    /// amount and divisor.
    fn user_metrics(&self, group: usize) -> Vec<(&'static Metric, f64, f64)> {
        let mut metrics: Vec<(&'static Metric, f64, f64)> = Vec::new();
        let users = self.flows.users.iter();
        for user in users.filter(|user| user.group as usize == group) {
            let program = user.program.as_deref();
            let program = program.expect("nobody is at work");
            program.report(self.now, &mut |metric, amount, per| match metrics
                .iter_mut()
                .find(|known| known.0.name == metric.name)
            {
                Some(known) => {
                    known.1 += amount;
                    known.2 += per;
                }
                None => metrics.push((metric, amount, per)),
            });
        }
        metrics
    }

    /// Exchanges of a group that were requested in the measurement period and are not complete.
    fn unanswered(&self, group: usize) -> u64 {
        let connections = self.flows.connections.iter();
        let of_group = connections.filter(|(_, it)| it.at.group as usize == group);
        let asked = of_group.flat_map(|(_, it)| it.unfinished());
        asked.filter(|at| *at >= self.measure_from).count() as u64
    }

    /// The quality of a group's calls at the listeners, averaged over the calls.
    fn call_quality(&self, index: usize, group: &VoipGroup) -> [(&'static Metric, Option<f64>); 5] {
        let (mut late, mut jitter) = (Mean::default(), Mean::default());
        let (mut rating, mut opinion, mut worst) =
            (Mean::default(), Mean::default(), f64::INFINITY);
        for slot in &self.flows.udp {
            let of_group = self.flows.groups[slot.flow as usize] as usize == index;
            let UdpSink::Call(call) = &slot.sink else {
                continue;
            };
            if !of_group {
                continue;
            }
            let tally = call.tally();
            jitter.add(tally.jitter());
            late.add((tally.heard > 0).then(|| tally.late as f64 / tally.heard as f64));
            let r = tally.rating(group, slot.lost);
            rating.add(r);
            opinion.add(r.map(mos));
            worst = worst.min(r.map_or(f64::INFINITY, mos));
        }
        [
            (MOS, opinion.get()),
            (MOS_MIN, worst.is_finite().then_some(worst)),
            (R_FACTOR, rating.get()),
            (JITTER, jitter.get()),
            (LATE, late.get()),
        ]
    }

    /// The times of the transfers of a group that had not completed when the measurement began:
    /// from the start to the SYN-ACK, to the delivery of the first byte, and to the acknowledgement
    /// of the last byte.
    fn transfer_times(&self, group: usize) -> [Times; 3] {
        let mut times = [Times::default(); 3];
        for (sender, receiver) in self.flows.senders.iter().zip(&self.flows.receivers) {
            let early = sender.completed.is_some_and(|at| at < self.measure_from);
            if self.flows.groups[sender.flow as usize] as usize != group || early {
                continue;
            }
            let start = self.flows.starts[sender.flow as usize];
            let ends = [sender.established, receiver.first_byte, sender.completed];
            for (times, end) in times.iter_mut().zip(ends) {
                times.add(end.map(|end| end - start));
            }
        }
        times
    }

    /// A row for each sized transfer, in the order of the flows.
    pub(super) fn transfers(&self) -> Transfers {
        let mut rows = Transfers::default();
        for (sender, receiver) in self.flows.senders.iter().zip(&self.flows.receivers) {
            let group = self.flows.groups[sender.flow as usize];
            let TrafficGroup::Transfer(transfer) = &self.scenario.traffic[group as usize] else {
                continue;
            };
            let start = self.flows.starts[sender.flow as usize];
            let since = |end: Option<Time>| end.map_or(f64::NAN, |end| (end - start).as_secs_f64());
            let first = self.flows.groups.partition_point(|&other| other < group);
            let size = transfer.size.get(sender.flow as usize - first).as_u64();
            let done = sender.sender.counters();
            rows.group.push(group);
            rows.flow.push(sender.flow);
            rows.size_bytes.push(size);
            rows.start_s.push(start.as_secs_f64());
            rows.handshake_time_s.push(since(sender.established));
            rows.first_byte_time_s.push(since(receiver.first_byte));
            rows.completion_time_s.push(since(sender.completed));
            rows.retransmissions.push(done.retransmissions);
            rows.timeouts.push(done.timeouts);
        }
        rows
    }
}

/// The mean of the values that are defined.
#[derive(Default)]
struct Mean {
    sum: f64,
    count: u32,
}

impl Mean {
    fn add(&mut self, value: Option<f64>) {
        if let Some(value) = value {
            self.sum += value;
            self.count += 1;
        }
    }

    fn get(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum / f64::from(self.count))
    }
}

/// The number of events of one kind, and their total duration.
#[derive(Clone, Copy, Debug, Default)]
struct Times {
    all: u32,
    count: u32,
    seconds: f64,
}

impl Times {
    fn add(&mut self, took: Option<Span>) {
        self.all += 1;
        if let Some(took) = took {
            self.count += 1;
            self.seconds += took.as_secs_f64();
        }
    }

    fn share(&self) -> Option<f64> {
        (self.all > 0).then(|| f64::from(self.count) / f64::from(self.all))
    }

    /// The mean in seconds.
    fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.seconds / f64::from(self.count))
    }
}

/// Metrics of a group that has users, of which `unanswered` exchanges are not complete.
fn add_answers(
    summary: AnswerSummary,
    unanswered: u64,
    period: Span,
    mut add: impl FnMut(&'static Metric, Option<f64>),
) {
    let (times, pages) = (&summary.times, &summary.pages);
    let asked = times.count() + unanswered;
    add(RESPONSES, Some(times.count() as f64));
    add(
        UNANSWERED,
        (asked > 0).then(|| unanswered as f64 / asked as f64),
    );
    add(
        TRANSACTION_RATE,
        Some(times.count() as f64 / period.as_secs_f64()),
    );
    add(RESPONSE_TIME_MEAN, times.mean());
    add(RESPONSE_TIME_STD, times.std());
    add(RESPONSE_TIME_P50, times.quantile(0.5));
    add(RESPONSE_TIME_P95, times.quantile(0.95));
    add(RESPONSE_TIME_P99, times.quantile(0.99));
    add(SLOWDOWN_MEAN, summary.slowdown_mean);
    add(SLOWDOWN_P50, summary.slowdown_p50);
    add(SLOWDOWN_P99, summary.slowdown_p99);
    if pages.count() > 0 {
        add(PAGES, Some(pages.count() as f64));
        add(PAGE_TIME_MEAN, pages.mean());
        add(PAGE_TIME_P50, pages.quantile(0.5));
        add(PAGE_TIME_P95, pages.quantile(0.95));
    }
    add(CONNECTIONS, Some(summary.connections as f64));
    add(CONNECTIONS_MEAN, Some(summary.connections_mean));
}

fn bits_per_second(bytes: u64, period: Span) -> f64 {
    Bytes::new(bytes).bits() as f64 / period.as_secs_f64()
}
