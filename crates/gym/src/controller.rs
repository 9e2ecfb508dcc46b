//! The agent as a congestion controller.
//!
//! What the agent has set holds from the next acknowledgement or timeout on: only then does a sender ask its controller.
//! Losses and marks change nothing by themselves; the sender resends what is lost. After a timeout the sender sets the window
//! itself, and the agent goes on from there.

use redtail_core::plugin::Identity;
use redtail_core::{Rate, Span, Time};
use redtail_transport::plugin::{
    CongestionEvent, LARGEST_RATE, LARGEST_WINDOW, LEAST_RATE, PluginContext, PluginController,
    PluginError, RateSample,
};

use crate::told::{LARGEST_RATIO, Measure, Observed, Reward, Told, measure, observed, share};
use crate::{Cell, lock};

/// What is measured by a controller in a step, in the order in which it is told.
pub(crate) const MEASURES: &[Measure] = &[
    measure("time_s", "when the step ended, s"),
    measure("interval_s", "how long it took, s"),
    measure(
        "rate_bps",
        "the least rate of the links at the begin of the run, bit/s",
    ),
    measure("acknowledgements", "acknowledgements that arrived"),
    measure(
        "delivered_bytes",
        "bytes that they newly acknowledged, cumulatively or selectively",
    ),
    measure("lost_bytes", "bytes that were declared lost"),
    measure("marked_bytes", "bytes that were reported as marked (ECN)"),
    measure(
        "rtt_s",
        "mean of the round-trip times measured, s; without any, that of the step before",
    ),
    measure(
        "least_rtt_s",
        "the least round-trip time measured so far, s; 0 before the first",
    ),
    measure(
        "in_flight_bytes",
        "bytes in flight after the latest acknowledgement",
    ),
    measure(
        "largest_rate_bps",
        "the largest rate of delivery measured so far, bit/s",
    ),
    measure(
        "window_bytes",
        "the congestion window that the agent has set",
    ),
    measure(
        "pacing_bps",
        "the pacing rate that the agent has set, bit/s; 0 without one",
    ),
    measure("recoveries", "times that fast recovery began"),
    measure("timeouts", "timeouts of retransmission"),
    measure("mss_bytes", "size of a full segment"),
];

/// What an agent observes as a controller.
pub(crate) const OBSERVED: &[Observed] = &[
    observed("rtt_s over least_rtt_s", 0.0, LARGEST_RATIO),
    observed(
        "its change since the step before",
        -LARGEST_RATIO,
        LARGEST_RATIO,
    ),
    observed(
        "delivered_bytes over what largest_rate_bps gives in a step",
        0.0,
        LARGEST_RATIO,
    ),
    observed(
        "bytes lost, as a share of those lost or delivered",
        0.0,
        1.0,
    ),
    observed("bytes marked, as a share of those delivered", 0.0, 1.0),
    observed(
        "window over the product of largest rate and least round-trip time",
        0.0,
        LARGEST_RATIO,
    ),
    observed("bytes in flight over the window", 0.0, LARGEST_RATIO),
    observed(
        "pacing rate over the largest rate of delivery",
        0.0,
        LARGEST_RATIO,
    ),
];

/// The window is this many times the product of pacing rate and smoothed round-trip time: cwnd_gain of BBR
/// (draft-ietf-ccwg-bbr-06, section 5.6.1), which leaves room for delayed acknowledgements.
const WINDOW_GAIN: f64 = 2.0;

/// The controller's state, which its plug-in and the episode share.
pub(crate) type Shared = Cell<State>;

/// A state for a flow behind a bottleneck of this rate, whose agent sets the pacing rate or the window.
pub(crate) fn shared(bottleneck: Rate, paces: bool) -> Shared {
    let state = State {
        bottleneck: bottleneck.as_bps() as f64,
        paces,
        ..State::default()
    };
    Shared::new(state.into())
}

/// What the agent sets, and what has happened since it looked. Windows in bytes, rates in bytes/s, times in s.
#[derive(Default)]
pub(crate) struct State {
    /// The rate of the bottleneck, bit/s.
    bottleneck: f64,
    /// Whether the agent sets the pacing rate.
    paces: bool,
    mss: f64,
    window: f64,
    /// `None` before the first round trip.
    pacing_rate: Option<f64>,
    rtt: f64,
    least_rtt: Option<Span>,
    in_flight: u64,
    largest_rate: f64,
    counts: Counts,
    /// Round-trip time over the least, in the step before.
    ratio_before: f64,
}

#[derive(Default)]
struct Counts {
    acknowledgements: u64,
    delivered: u64,
    lost: u64,
    marked: u64,
    rtts: u64,
    rtt_sum: Span,
    recoveries: u64,
    timeouts: u64,
}

impl State {
    /// Multiplies what the agent sets by two to the power `action`.
    pub(crate) fn change(&mut self, action: f64) {
        let factor = libm::exp2(action);
        match &mut self.pacing_rate {
            Some(rate) => *rate = (*rate * factor).clamp(LEAST_RATE, LARGEST_RATE),
            None => self.set_window(self.window * factor),
        }
    }

    fn set_window(&mut self, window: f64) {
        self.window = window.clamp(self.mss, LARGEST_WINDOW);
    }

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
        if counts.rtts > 0 {
            self.rtt = counts.rtt_sum.as_secs_f64() / counts.rtts as f64;
        }
        let least_rtt = self.least_rtt.map_or(0.0, Span::as_secs_f64);
        let ratio = share(self.rtt, least_rtt);
        let change = ratio - self.ratio_before;
        self.ratio_before = ratio;
        let (delivered, lost) = (counts.delivered as f64, counts.lost as f64);
        let in_flight = self.in_flight as f64;
        let pacing_rate = self.pacing_rate.unwrap_or(0.0);
        told.measures.copy_from_slice(&[
            now.as_secs_f64(),
            interval,
            self.bottleneck,
            counts.acknowledgements as f64,
            delivered,
            lost,
            counts.marked as f64,
            self.rtt,
            least_rtt,
            in_flight,
            8.0 * self.largest_rate,
            self.window,
            8.0 * pacing_rate,
            counts.recoveries as f64,
            counts.timeouts as f64,
            self.mss,
        ]);
        let lost = share(lost, lost + delivered);
        let observation = [
            ratio,
            change,
            share(delivered, self.largest_rate * interval),
            lost,
            share(counts.marked as f64, delivered),
            share(self.window, self.largest_rate * least_rtt),
            share(in_flight, self.window),
            share(pacing_rate, self.largest_rate),
        ];
        told.observe(&observation, OBSERVED, duration.as_secs_f64());
        let used = share(8.0 * delivered, self.bottleneck * interval);
        *told.reward = reward.of(used, self.rtt - least_rtt, lost);
    }

    /// A round-trip time was measured.
    fn note(&mut self, rtt: Span) {
        self.counts.rtts += 1;
        self.counts.rtt_sum += rtt;
        self.least_rtt = Some(self.least_rtt.map_or(rtt, |least| least.min(rtt)));
    }
}

/// What makes the controller of an episode.
pub(crate) fn make(
    shared: Shared,
) -> impl Fn(&Identity, PluginContext) -> Result<Box<dyn PluginController>, PluginError> + Send + Sync
{
    move |_, context| {
        let mut state = lock(&shared);
        state.mss = f64::from(context.mss);
        state.window = context.initial_cwnd;
        drop(state);
        Ok(Box::new(Controller(shared.clone())))
    }
}

struct Controller(Shared);

impl PluginController for Controller {
    fn on_ack(&mut self, sample: &RateSample) -> Result<(), PluginError> {
        let state = &mut *lock(&self.0);
        state.counts.acknowledgements += 1;
        state.counts.delivered += sample.newly_acked;
        state.counts.lost += sample.newly_lost;
        state.counts.marked += sample.newly_marked;
        state.in_flight = sample.in_flight;
        if let Some(rtt) = sample.rtt {
            state.note(rtt);
        }
        if let Some(rate) = sample.delivery_rate {
            state.largest_rate = state.largest_rate.max(rate);
        }
        if let (Some(rate), Some(srtt)) = (state.pacing_rate, sample.srtt) {
            state.set_window(WINDOW_GAIN * rate * srtt.as_secs_f64());
        }
        Ok(())
    }

    fn on_recovery(&mut self, _event: &CongestionEvent) -> Result<(), PluginError> {
        lock(&self.0).counts.recoveries += 1;
        Ok(())
    }

    fn on_timeout(&mut self, _event: &CongestionEvent) -> Result<(), PluginError> {
        lock(&self.0).counts.timeouts += 1;
        Ok(())
    }

    fn on_handshake(&mut self, rtt: Span, _now: Time) -> Result<(), PluginError> {
        let state = &mut *lock(&self.0);
        state.note(rtt);
        if state.paces {
            state.pacing_rate = Some(state.window / rtt.as_secs_f64());
        }
        Ok(())
    }

    fn set_cwnd(&mut self, cwnd: f64) -> Result<(), PluginError> {
        lock(&self.0).set_window(cwnd);
        Ok(())
    }

    fn cwnd(&self) -> Result<f64, PluginError> {
        Ok(lock(&self.0).window)
    }

    fn pacing_rate(&self) -> Result<Option<f64>, PluginError> {
        Ok(lock(&self.0).pacing_rate)
    }
}
