//! The result of a run, from what its network and its hosts have counted.
//!
//! The network knows queues, delays and packets; the hosts know what their sockets delivered, and
//! the kernel's counters what TCP did. Metrics that no one of them can measure are left out.

use redtail_core::{Metric, Span, Time};
use redtail_network::flow_rows::{FlowRow, FlowRowsMaker, kept_flows};
use redtail_network::group_report::{self, Moments, Value, bits_per_second};
use redtail_network::histograms::ONE_WAY_DELAY;
use redtail_network::metrics::*;
use redtail_network::report::full_name;
use redtail_network::result::{FlowRows, FlowSeries, Histograms, ResponseTimes, Transfers};
use redtail_network::statistics::{Delays, jain};
use redtail_traffic::{Application, TrafficParams};

use crate::counters::Counters;
use crate::hosts::log::HostEvent;
use crate::hosts::{CallFlow, Hosts, Marks, TcpFlow, UdpFlow};

/// What the hosts have measured.
#[derive(Clone, Debug, Default)]
pub struct HostReport {
    /// Metrics of each group, without the group's name.
    pub metrics: Vec<Vec<Value>>,
    /// Whether hosts of each group opened TCP connections in the period.
    pub has_tcp: Vec<bool>,
    /// Whether the traffic of the last group is that of the user's programs.
    pub of_programs: bool,
    /// Metrics of all groups together, and of the phases, with their full names.
    pub others: Vec<(String, f64)>,
    /// Every TCP and UDP flow that the file names, unless there are more than are kept.
    pub flows: Option<FlowRows>,
    /// The one-way delays of the UDP groups.
    pub histograms: Histograms,
    /// Every sized transfer.
    pub transfers: Transfers,
    /// The response times of groups with users.
    pub response_times: ResponseTimes,
    /// Samples of the TCP flows.
    pub series: FlowSeries,
    /// What the event log has of them.
    pub events: Vec<HostEvent>,
    /// How late timers were handled.
    pub lateness: Delays,
    /// Packets that the devices of the hosts could not hold.
    pub device_drops: u64,
}

impl Hosts<'_> {
    /// What has been measured, at the end of the run.
    pub fn report(&mut self, end: &Marks) -> HostReport {
        let ended = end.since.min(Time::ZERO + self.scenario.duration);
        let period = ended.saturating_since(Time::ZERO + self.scenario.warmup);
        let groups = self.scenario.traffic.len();
        self.look(ended);
        let mut report = HostReport {
            metrics: vec![Vec::new(); groups],
            has_tcp: Vec::new(),
            series: std::mem::take(&mut self.series),
            events: self.log.take().map_or(Vec::new(), |log| log.events),
            flows: self.flow_rows(ended),
            transfers: self.transfers(),
            lateness: std::mem::take(&mut self.lateness),
            device_drops: end.counters.iter().map(|group| group.device_drops).sum(),
            ..HostReport::default()
        };
        let (mut all_tcp, mut users_rate) = (Vec::new(), 0.0);
        // A run that ended before its measurement began has measured nothing.
        let before = self.marks.first().unwrap_or(end).clone();
        for index in 0..groups {
            let group = &self.scenario.traffic[index];
            let opened = end.counters[index].connections;
            let has_tcp = opened.is_none_or(|opened| opened > 0);
            report.has_tcp.push(has_tcp);
            let values = &mut report.metrics[index];
            if group.programs().is_some() {
                // The network measures the rest.
                let counted = of_counters(end.counters[index] - before.counters[index]);
                values.extend(counted.into_iter().filter(|_| has_tcp));
                continue;
            }
            let bytes = end.delivered[index] - before.delivered[index];
            let rates: Vec<f64> = match (&self.answers[index], group.tcp()) {
                (Some(_), _) => vec![bits_per_second(bytes, period)],
                (None, Some(_)) => self.flow_rates(index, period),
                (None, None) => Vec::new(),
            };
            if !rates.is_empty() {
                values.push((GOODPUT, Some(rates.iter().sum())));
                values.extend(of_counters(end.counters[index] - before.counters[index]));
                match group {
                    TrafficParams::Transfer(_) => {
                        values.extend(self.transfer_times(index, end.since));
                    }
                    TrafficParams::Bulk(_) => {
                        let moments = self.moments(index);
                        values.extend(group_report::of_bulk(moments, true, end.since));
                    }
                    _ => {}
                }
            }
            if let Some(answers) = &self.answers[index] {
                values.push((USERS, Some(f64::from(group.access().flows))));
                let users = self.users.iter().filter(|user| user.group == index);
                let programs = users.map(|user| user.program());
                let mut pages = Vec::new();
                for program in programs.clone() {
                    program.unfinished_pages(&mut |began| pages.push(began));
                }
                let connections = self.connections.iter().flatten();
                let of_group = connections.filter(|connection| connection.at.group == index);
                let unfinished = of_group.flat_map(|connection| connection.unfinished());
                let summary = answers.summary(end.since, period, unfinished, pages.into_iter());
                values.extend(group_report::of_answers(&summary, period));
                values.extend(group_report::of_users(programs, end.since));
                answers.export(index as u32, &mut report.response_times);
                users_rate += rates.iter().sum::<f64>();
                continue;
            }
            let mut rates = rates;
            all_tcp.extend_from_slice(&rates);
            if group.tcp().is_none() {
                let name = format!("{}.{ONE_WAY_DELAY}", group.access().name);
                report.histograms.add(name, self.delays[index].histogram());
                let is_call = matches!(group, TrafficParams::Call(_));
                let received: Vec<u64> = if is_call {
                    let calls = self.calls.iter().filter(|call| call.group == index);
                    calls.map(|call| call.ends[1].received_bytes()).collect()
                } else {
                    let flows = self.udp.iter().filter(|flow| flow.group == index);
                    flows.map(|flow| flow.received_bytes).collect()
                };
                let rate = |bytes| bits_per_second(bytes, period);
                rates = received.into_iter().map(rate).collect();
                let all = rates.iter().sum();
                values.extend(match is_call {
                    true => self.of_calls(index, all, end.since),
                    false => self.of_udp(index, all),
                });
            }
            values.push((FAIRNESS, jain(rates)));
        }
        if self
            .scenario
            .traffic
            .iter()
            .any(|group| group.tcp().is_some())
        {
            let goodput = all_tcp.iter().sum::<f64>() + users_rate;
            report.others.push((full_name("", GOODPUT), goodput));
        }
        let fairness = jain(all_tcp).map(|fairness| (full_name("", FAIRNESS), fairness));
        report.others.extend(fairness);
        report.others.extend(self.phase_goodputs(end));
        report
    }

    fn flow_rates(&self, group: usize, period: Span) -> Vec<f64> {
        let flows = self.tcp.iter().filter(|flow| flow.group == group);
        let bytes = flows.map(|flow| flow.delivered - flow.delivered_before);
        bytes.map(|bytes| bits_per_second(bytes, period)).collect()
    }

    fn of_udp(&self, group: usize, rate: f64) -> Vec<Value> {
        let flows = || self.udp.iter().filter(|flow| flow.group == group);
        let received = flows().map(|flow| flow.received).sum();
        let lost = flows().map(|flow| flow.lost).sum();
        let mut values = group_report::of_udp(received, lost, rate, &self.delays[group]).to_vec();
        if let TrafficParams::Voip(voip) = &self.scenario.traffic[group] {
            let calls = flows().filter_map(|flow| Some((flow.call.as_deref()?, flow.lost)));
            values.extend(group_report::of_calls(calls, voip));
        }
        values
    }

    fn of_calls(&self, group: usize, rate: f64, now: Time) -> Vec<Value> {
        let calls = self.calls.iter().filter(|call| call.group == group);
        let calls: Vec<&CallFlow> = calls.collect();
        let ends = |side: usize| calls.iter().map(move |call| &call.ends[side]);
        let delays = [&self.delays[group], &self.back_delays[group]];
        group_report::of_video_calls(ends(1), ends(0), rate, delays, now)
    }

    /// What each TCP flow of a group has reached.
    fn moments(&self, group: usize) -> impl Iterator<Item = Moments> + '_ {
        let flows = self.tcp.iter().filter(move |flow| flow.group == group);
        flows.map(|flow| Moments {
            start: flow.start,
            established: flow.established,
            first_byte: flow.first_byte,
            completed: flow.completed,
        })
    }

    fn transfer_times(&self, group: usize, now: Time) -> [Value; 9] {
        let from = Time::ZERO + self.scenario.warmup;
        group_report::of_transfers(self.moments(group), true, from, now)
    }

    fn transfers(&self) -> Transfers {
        let mut rows = Transfers::default();
        for flow in &self.tcp {
            let Some(size) = flow.size else {
                continue;
            };
            let since =
                |end: Option<Time>| end.map_or(f64::NAN, |end| (end - flow.start).as_secs_f64());
            rows.group.push(flow.group as u32);
            rows.flow
                .push(self.first_flow[flow.group] + flow.index as u32);
            rows.size_bytes.push(size);
            rows.start_s.push(flow.start.as_secs_f64());
            rows.handshake_time_s.push(since(flow.established));
            rows.first_byte_time_s.push(since(flow.first_byte));
            rows.completion_time_s.push(since(flow.completed));
            let info = flow.latest_info();
            rows.retransmissions.push(u64::from(info.retransmissions));
            rows.timeouts
                .push(info.timeouts.map_or(f64::NAN, f64::from));
        }
        rows
    }

    /// A row for each flow that the file names; `None` if there are more than are kept. The
    /// connections of users are not followed. The kernel does not say which packets of a TCP flow were
    /// lost or marked, and not the mean of its round-trip samples.
    fn flow_rows(&self, end: Time) -> Option<FlowRows> {
        let most = kept_flows(self.scenario);
        let count = self.tcp.len() + self.udp.len() + self.calls.len();
        if most == 0 || count > most {
            return None;
        }
        let mut rows = FlowRowsMaker::new(self.scenario, end);
        let of_tcp = |flow: &TcpFlow| {
            let (info, before) = (flow.latest_info(), flow.info_before);
            let timeouts = info.timeouts.zip(before.timeouts.or(Some(0)));
            FlowRow {
                group: flow.group,
                flow: self.first_flow[flow.group] + flow.index as u32,
                start: flow.start,
                stop: flow.stop,
                completed: flow.completed,
                delivered: flow.delivered - flow.delivered_before,
                retransmissions: Some(u64::from(info.retransmissions - before.retransmissions)),
                timeouts: timeouts.map(|(all, before)| u64::from(all - before)),
                ..FlowRow::default()
            }
        };
        let of_udp = |flow: &UdpFlow| FlowRow {
            group: flow.group,
            flow: self.first_flow[flow.group] + flow.index as u32,
            start: flow.start,
            stop: flow.stop,
            delivered: flow.received_bytes,
            lost: Some(flow.lost),
            ..FlowRow::default()
        };
        let mut flows: Vec<FlowRow> = self.tcp.iter().map(of_tcp).collect();
        flows.extend(self.udp.iter().map(of_udp));
        flows.extend(self.calls.iter().map(|call| FlowRow {
            group: call.group,
            flow: self.first_flow[call.group] + call.index as u32,
            start: call.start,
            stop: call.stop,
            delivered: call.ends[1].received_bytes(),
            lost: Some(call.ends[1].packets().1),
            ..FlowRow::default()
        }));
        flows.sort_by_key(|row| row.flow);
        for row in &mut flows {
            let i = row.flow - self.first_flow[row.group];
            row.host = rows.host(row.group, i as usize);
            rows.add(row);
        }
        Some(rows.finish())
    }

    /// The goodput in each phase, of each TCP group and of all.
    fn phase_goodputs(&self, end: &Marks) -> Vec<(String, f64)> {
        if self.scenario.phases.is_empty() {
            return Vec::new();
        }
        let mut metrics = Vec::new();
        let ends = self.marks.iter().skip(1).chain([end]);
        for (number, (from, to)) in (1..).zip(self.marks.iter().zip(ends)) {
            let mut all = None;
            for (index, group) in self.scenario.traffic.iter().enumerate() {
                if group.tcp().is_some() {
                    let bytes = to.delivered[index] - from.delivered[index];
                    let goodput = bits_per_second(bytes, to.since - from.since);
                    let prefix = format!("phase{number}.{}.", group.access().name);
                    metrics.push((full_name(&prefix, GOODPUT), goodput));
                    *all.get_or_insert(0.0) += goodput;
                }
            }
            let prefix = format!("phase{number}.");
            metrics.extend(all.map(|goodput| (full_name(&prefix, GOODPUT), goodput)));
        }
        metrics
    }
}

fn of_counters(counted: Counters) -> [(&'static Metric, Option<f64>); 4] {
    let [retransmissions, recoveries, timeouts, spurious] = COUNTED;
    [
        (retransmissions, counted.retransmissions.map(|it| it as f64)),
        (recoveries, counted.recoveries.map(|it| it as f64)),
        (timeouts, counted.timeouts.map(|it| it as f64)),
        (spurious, counted.spurious_timeouts.map(|it| it as f64)),
    ]
}
