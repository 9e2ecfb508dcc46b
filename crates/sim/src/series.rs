//! Time series: samples at a fixed interval, only when asked for.

use redtail_core::Time;
use redtail_network::Links;
use redtail_network::group_report::bits_per_second;
use redtail_network::result::number_of;
use redtail_network::result::{ControllerSeries, FlowSeries, GroupSeries, QueueSeries};
use redtail_spec::Series;

use crate::flows::Flows;

/// Takes the samples.
#[derive(Debug)]
pub struct Sampler {
    /// What to sample and how often.
    pub request: Series,
    /// Samples of the queues so far.
    pub queues: QueueSeries,
    /// Samples of the flows so far.
    pub flows: FlowSeries,
    /// Samples of the controllers of users so far.
    pub controllers: ControllerSeries,
    /// Names of the figures of these controllers.
    pub figures: Vec<String>,
    /// Samples of the groups so far.
    pub groups: GroupSeries,
    /// The states that flows were in, in the order in which samples met them.
    pub states: Vec<&'static str>,
    /// The bytes that had reached the receivers of each group at the latest sample; empty before the
    /// first.
    reached: Vec<u64>,
}

impl Sampler {
    /// A sampler without samples.
    pub fn new(request: Series) -> Self {
        Self {
            request,
            queues: QueueSeries::default(),
            flows: FlowSeries::default(),
            controllers: ControllerSeries::default(),
            figures: Vec::new(),
            groups: GroupSeries::default(),
            states: Vec::new(),
            reached: Vec::new(),
        }
    }

    /// Takes the requested samples.
    pub fn sample(&mut self, links: &mut Links, flows: &Flows, now: Time) {
        if self.request.queues {
            links.sample(now, &mut self.queues);
        }
        if self.request.windows {
            self.sample_flows(flows, now);
        }
        if self.request.goodput {
            self.sample_groups(flows, now);
        }
    }

    fn sample_flows(&mut self, flows: &Flows, now: Time) {
        let rows = &mut self.flows;
        for (slot, receiver) in flows.senders.iter().zip(&flows.receivers) {
            let snapshot = slot.sender.snapshot();
            rows.time_s.push(now.as_secs_f64());
            rows.flow.push(slot.flow);
            rows.group.push(flows.group(slot.flow));
            rows.cwnd_bytes.push(snapshot.cwnd);
            rows.ssthresh_bytes.push(snapshot.ssthresh);
            rows.in_flight_bytes.push(snapshot.outstanding as f64);
            rows.srtt_s
                .push(snapshot.srtt.map_or(f64::NAN, |srtt| srtt.as_secs_f64()));
            rows.pacing_rate_bps
                .push(snapshot.pacing_rate.map_or(f64::NAN, |rate| rate * 8.0));
            rows.delivered_bytes.push(receiver.receiver.delivered());
            // Slow start is where the window is below ssthresh (RFC 5681, section 3.1).
            let state = match (snapshot.state, snapshot.cwnd < snapshot.ssthresh) {
                (Some(of_model), _) => of_model,
                (None, true) => "slow_start",
                (None, false) => "congestion_avoidance",
            };
            rows.state.push(number_of(&mut self.states, state));
            let group = flows.group(slot.flow);
            let (controllers, figures) = (&mut self.controllers, &mut self.figures);
            slot.sender.report(now, &mut |name, value| {
                controllers.time_s.push(now.as_secs_f64());
                controllers.flow.push(slot.flow);
                controllers.group.push(group);
                controllers.figure.push(number_of(figures, name));
                controllers.value.push(value);
            });
        }
    }

    fn sample_groups(&mut self, flows: &Flows, now: Time) {
        let reached = flows.heard_by_group();
        for (group, &bytes) in (0..).zip(&reached) {
            self.groups.time_s.push(now.as_secs_f64());
            self.groups.group.push(group);
            let before = self.reached.get(group as usize);
            self.groups
                .goodput_bps
                .push(before.map_or(f64::NAN, |before| {
                    bits_per_second(bytes - before, self.request.interval)
                }));
        }
        self.reached = reached;
    }
}
