//! A run that is advanced in steps, and what can be observed between two of them.

use std::borrow::Cow;
use std::sync::atomic::{AtomicBool, AtomicU64};

use redtail_core::Time;
use redtail_core::plugin::catching;
use redtail_network::LinkState;
use redtail_network::result::{FlowSeries, GroupSeries, QueueSeries, RunResult};
use redtail_spec::Scenario;
use redtail_transport::{SenderCounters, SenderSnapshot};

use super::{Engine, RunError, RunOptions};
use crate::capture::Recorder;

/// A run that is advanced in steps.
///
/// Neither the steps nor what is observed between them change the run: its result is that of [`run`](super::run()),
/// but for the number of events.
///
/// ```no_run
/// # use std::borrow::Cow;
/// # use redtail_core::Span;
/// # use redtail_sim::{RunError, RunOptions, RunResult, Simulation};
/// # use redtail_spec::Scenario;
/// fn watch(scenario: Scenario) -> Result<RunResult, RunError> {
///     let mut simulation = Simulation::new(Cow::Owned(scenario), RunOptions::default())?;
///     while simulation.advance(simulation.now() + Span::from_ms(10))? {
///         let backlog = simulation.link(0).backlog;
///         println!("{:.2} s: {} packets", simulation.now().as_secs_f64(), backlog.packets);
///     }
///     simulation.finish()
/// }
/// ```
pub struct Simulation<'a> {
    /// `None` after an error.
    engine: Option<Box<Engine<'a>>>,
    cancel: Option<&'a AtomicBool>,
    progress: Option<&'a AtomicU64>,
}

/// A TCP flow between two steps. Connections that users open are not among these; what their group has got is in
/// [`Simulation::heard_by_group`].
#[derive(Clone, Copy, Debug)]
pub struct FlowState {
    /// Number of the flow, counted over all groups in the order of the file.
    pub flow: u32,
    /// Number of its group.
    pub group: u32,
    /// The sender: window and threshold in bytes, smoothed round-trip time, bytes in flight, pacing rate in bytes/s.
    pub sender: SenderSnapshot,
    /// What the sender has done since the run began.
    pub done: SenderCounters,
    /// Bytes delivered in order to the receiving application.
    pub delivered_bytes: u64,
    /// Data packets that queues dropped and wires lost.
    pub lost_packets: u64,
}

/// The time series of a run so far.
#[derive(Clone, Copy, Debug)]
pub struct Samples<'a> {
    /// Of queues.
    pub queues: &'a QueueSeries,
    /// Of TCP flows.
    pub flows: &'a FlowSeries,
    /// Of groups.
    pub groups: &'a GroupSeries,
}

const WHOLE: &str = "after an error a simulation is over";

impl<'a> Simulation<'a> {
    /// The run of `scenario`, which must have passed validation, at its start. With [`Cow::Owned`] and with `options`
    /// that borrow nothing the simulation owns all that it needs.
    ///
    /// # Errors
    /// [`RunError`] if a plug-in cannot be made, the files of a capture cannot be begun, or the scenario asks for a
    /// congestion control of a kernel.
    ///
    /// # Panics
    /// When `options` lacks a table of the scenario.
    pub fn new(scenario: Cow<'a, Scenario>, options: RunOptions<'a>) -> Result<Self, RunError> {
        if let [(key, name), ..] = scenario.kernel_controls().as_slice() {
            return Err(RunError::OfKernel(key.clone(), (*name).to_owned()));
        }
        let (cancel, progress) = (options.cancel, options.progress);
        let engine = catching(|| begin(scenario, options)).map_err(RunError::Plugin)??;
        Ok(Self {
            engine: Some(Box::new(engine)),
            cancel,
            progress,
        })
    }

    /// Advances the run to `until`, or to its end if that comes first: carries out all events before that time. Returns
    /// whether the run goes on. A time that is not after [`now`](Self::now) changes nothing.
    ///
    /// # Errors
    /// [`RunError`] if the run was cancelled, a plug-in failed, or packets could not be captured. The simulation is then
    /// over.
    ///
    /// # Panics
    /// When a queue of redtail breaks its contract, which is a fault of redtail. And after an error.
    pub fn advance(&mut self, until: Time) -> Result<bool, RunError> {
        // What unwinds leaves an incomplete state, which nobody must see.
        let mut engine = self.engine.take().expect(WHOLE);
        let until = until.min(engine.end);
        if until > engine.now {
            let never = AtomicBool::new(false);
            let cancel = self.cancel.unwrap_or(&never);
            let ran = catching(|| engine.run(until, cancel, self.progress));
            let ran = ran.map_err(RunError::Plugin)?;
            if ran.is_err() {
                // An error in writing a file ends the run too, and is then its cause.
                end_capture(&mut engine)?;
            }
            ran?;
        }
        let goes_on = engine.now < engine.end;
        self.engine = Some(engine);
        Ok(goes_on)
    }

    /// Advances the run to its end, and returns its result.
    ///
    /// # Errors
    /// As [`advance`](Self::advance).
    ///
    /// # Panics
    /// As [`advance`](Self::advance), and when packets are not conserved: a fault of redtail.
    pub fn finish(mut self) -> Result<RunResult, RunError> {
        self.advance(Time::MAX)?;
        let mut engine = self.engine.take().expect(WHOLE);
        end_capture(&mut engine)?;
        catching(|| engine.finish()).map_err(RunError::Plugin)
    }

    fn engine(&self) -> &Engine<'a> {
        self.engine.as_ref().expect(WHOLE)
    }

    /// Up to when the run has been advanced: events at this time have not happened yet.
    ///
    /// # Panics
    /// After an error, as all that follow.
    pub fn now(&self) -> Time {
        self.engine().now
    }

    /// When the run ends.
    pub fn end(&self) -> Time {
        self.engine().end
    }

    /// The names of the links with queues, in the order of their numbers.
    pub fn link_names(&self) -> impl Iterator<Item = &str> {
        let links = &self.engine().links.network.links;
        links.iter().map(|link| &*link.name)
    }

    /// The state of the link of this number, and what has passed it.
    ///
    /// # Panics
    /// When there is no such link.
    pub fn link(&self, number: usize) -> LinkState {
        let engine = self.engine();
        engine.links.network.links[number].state(engine.now)
    }

    /// The TCP flows of the groups without users, in the order of their numbers.
    pub fn flows(&self) -> impl Iterator<Item = FlowState> {
        (0..self.engine().ends.flows.senders.len()).map(|index| self.tcp(index))
    }

    /// The TCP flow of this number among those of a group; `None` if there is none, as in a group with users.
    pub fn flow(&self, group: usize, number: usize) -> Option<FlowState> {
        let mut all = self.engine().ends.flows.tcp_of(group);
        all.nth(number).map(|index| self.tcp(index))
    }

    /// The TCP flow with the endpoints of this number.
    fn tcp(&self, index: usize) -> FlowState {
        let ends = &self.engine().ends;
        let (slot, receiver) = (&ends.flows.senders[index], &ends.flows.receivers[index]);
        FlowState {
            flow: slot.flow,
            group: ends.flows.group(slot.flow),
            sender: slot.sender.snapshot(),
            done: slot.sender.counters(),
            delivered_bytes: receiver.receiver.delivered(),
            lost_packets: ends.dropped[slot.flow as usize][0],
        }
    }

    /// The names of the groups, in the order of their numbers.
    pub fn group_names(&self) -> impl Iterator<Item = &str> {
        let groups = &self.engine().scenario.traffic;
        groups.iter().map(|group| group.access().name)
    }

    /// The time series so far; `None` if the scenario has none. Those that it does not ask for are empty.
    pub fn samples(&self) -> Option<Samples<'_>> {
        let sampler = self.engine().sampler.as_ref()?;
        Some(Samples {
            queues: &sampler.queues,
            flows: &sampler.flows,
            groups: &sampler.groups,
        })
    }

    /// The bytes that each group has got: of TCP those delivered in order, of UDP those of packets with headers.
    pub fn heard_by_group(&self) -> Vec<u64> {
        self.engine().ends.flows.heard_by_group()
    }
}

fn begin<'a>(scenario: Cow<'a, Scenario>, options: RunOptions<'a>) -> Result<Engine<'a>, RunError> {
    let watches = scenario.watches();
    let mut engine = Engine::new(scenario, &options.plugins, &options.traces);
    if let Some(capture) = options.capture {
        let network = &engine.links.network;
        let recorder = Recorder::new(capture, &engine.scenario, network, &engine.ends.flows)?;
        engine.ends.recorder = Some(Box::new(recorder));
        engine.watch();
    } else if !options.without_lookahead && !watches {
        engine.use_lookahead();
    }
    engine.use_log();
    engine.use_packets();
    Ok(engine)
}

/// Ends the files of a capture.
fn end_capture(engine: &mut Engine<'_>) -> Result<(), RunError> {
    if let Some(mut recorder) = engine.ends.recorder.take() {
        recorder.note_laws(&engine.links.network);
        recorder.finish()?;
    }
    Ok(())
}
