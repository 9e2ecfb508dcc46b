//! Time series: samples at a fixed interval, only when asked for.

use redtail_core::Time;
use redtail_network::Network;
use redtail_network::result::{FlowSeries, QueueSeries};
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
}

impl Sampler {
    /// A sampler without samples.
    pub fn new(request: Series) -> Self {
        Self {
            request,
            queues: QueueSeries::default(),
            flows: FlowSeries::default(),
        }
    }

    /// Takes the requested samples.
    pub fn sample(&mut self, network: &Network, flows: &Flows, now: Time) {
        let time_s = now.as_secs_f64();
        if self.request.queues {
            network.sample(now, &mut self.queues);
        }
        if self.request.windows {
            for slot in &flows.senders {
                let snapshot = slot.sender.snapshot();
                let rows = &mut self.flows;
                rows.time_s.push(time_s);
                rows.flow.push(slot.flow);
                rows.group.push(flows.groups[slot.flow as usize]);
                rows.cwnd_bytes.push(snapshot.cwnd);
                rows.ssthresh_bytes.push(snapshot.ssthresh);
                rows.in_flight_bytes.push(snapshot.outstanding as f64);
                rows.srtt_s
                    .push(snapshot.srtt.map_or(f64::NAN, |srtt| srtt.as_secs_f64()));
            }
        }
    }
}
