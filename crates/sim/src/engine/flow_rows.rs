//! The table of flows of a result.

use redtail_core::Time;
use redtail_network::flow_rows::{FlowRow, FlowRowsMaker, kept_flows};
use redtail_network::result::FlowRows;
use redtail_transport::SenderCounters;

use super::Engine;
use crate::connections::ConnectionRecord;
use crate::flows::Source;

/// What the flows of the file had done when the measurement began.
#[derive(Debug)]
pub(super) struct FlowsBefore {
    /// The counters of each TCP sender.
    done: Vec<SenderCounters>,
    /// Data packets sent, by flow.
    sent: Vec<u64>,
    /// Data packets lost, by flow.
    lost: Vec<u64>,
}

impl Engine<'_> {
    /// Number of the flows that the file names: all but the connections of users.
    fn named_flows(&self) -> usize {
        let flows = &self.ends.flows;
        flows.senders.len() + flows.udp.len() + flows.calls.len() + flows.own.len()
    }

    /// The measurement begins: takes note of what each flow has done until now, if a table of flows
    /// is kept.
    pub(super) fn begin_flow_rows(&mut self) {
        let most = kept_flows(&self.scenario);
        if most == 0 || self.named_flows() > most {
            return;
        }
        self.ends.flows.connections.keep_records(most);
        let senders = self.ends.flows.senders.iter();
        self.flows_before = Some(FlowsBefore {
            done: senders.map(|slot| slot.sender.counters()).collect(),
            sent: (0..self.ends.flows.count())
                .map(|flow| self.data_sent(flow))
                .collect(),
            lost: self.ends.dropped.iter().map(|&[data, _]| data).collect(),
        });
    }

    /// Data packets that a flow has sent.
    fn data_sent(&self, flow: usize) -> u64 {
        match self.ends.flows.source(flow as u32) {
            Source::Tcp(i) => self.ends.flows.senders[i as usize].sent,
            Source::Udp(i) => self.ends.flows.udp[i as usize].passed.sent,
            Source::Call(i) => self.ends.flows.calls[i as usize].passed[0].sent,
            Source::Own(i) => self.ends.flows.own[i as usize].ends[0].passed.sent,
            Source::User(_) => 0,
        }
    }

    /// A row for each flow; `None` if there are more than are kept.
    pub(super) fn flow_rows(&mut self) -> Option<FlowRows> {
        let before = self.flows_before.take()?;
        let connections = self.ends.flows.connections.records()?;
        if self.named_flows() + connections.len() > kept_flows(&self.scenario) {
            return None;
        }
        let mut rows = FlowRowsMaker::new(&self.scenario, self.end);
        for flow in 0..self.ends.flows.count() {
            if let Some(row) = self.named_row(flow, &before, &rows) {
                rows.add(&row);
            }
        }
        for record in &connections {
            rows.add(&connection_row(record));
        }
        Some(rows.finish())
    }

    /// The row of a flow that the file names; `None` for a user, whose flows are connections.
    fn named_row(
        &self,
        flow: usize,
        before: &FlowsBefore,
        rows: &FlowRowsMaker,
    ) -> Option<FlowRow> {
        let flows = &self.ends.flows;
        let group = flows.group(flow as u32);
        let first = flows.first_of(group) as usize;
        let row = FlowRow {
            group: group as usize,
            flow: flow as u32,
            host: rows.host(group as usize, flow - first),
            start: flows.start(flow as u32, &self.scenario),
            stop: flows.stop(flow as u32),
            sent: Some(self.data_sent(flow) - before.sent[flow]),
            marked: Some(self.ends.marked[flow]),
            ..FlowRow::default()
        };
        match flows.source(flow as u32) {
            Source::Tcp(i) => {
                let i = i as usize;
                let slot = &flows.senders[i];
                let done = slot.sender.counters() - before.done[i];
                Some(FlowRow {
                    completed: flows.moments.of(slot.flow).completed,
                    delivered: flows.goodput(i),
                    lost: Some(self.ends.dropped[flow][0] - before.lost[flow]),
                    retransmissions: Some(done.retransmissions),
                    timeouts: Some(done.timeouts),
                    round_trips: slot.sender.round_trips(),
                    ..row
                })
            }
            Source::Udp(i) => Some(FlowRow {
                delivered: flows.udp[i as usize].received_bytes,
                lost: Some(flows.udp[i as usize].lost),
                ..row
            }),
            Source::Call(i) => {
                let callee = &flows.calls[i as usize].ends[1];
                Some(FlowRow {
                    delivered: callee.received_bytes(),
                    lost: Some(callee.packets().1),
                    ..row
                })
            }
            Source::Own(i) => Some(FlowRow {
                delivered: flows.own[i as usize].received_bytes,
                lost: Some(flows.own[i as usize].lost),
                ..row
            }),
            Source::User(_) => None,
        }
    }
}

fn connection_row(record: &ConnectionRecord) -> FlowRow {
    FlowRow {
        group: record.at.group as usize,
        flow: record.at.flow,
        host: record.at.host as usize,
        start: record.opened_at,
        completed: record.gone_at,
        stop: Time::MAX,
        delivered: record.delivered,
        sent: Some(record.sent),
        lost: Some(record.lost),
        marked: Some(record.marked),
        retransmissions: Some(record.done.retransmissions),
        timeouts: Some(record.done.timeouts),
        round_trips: record.round_trips,
    }
}
