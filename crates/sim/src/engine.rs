//! The run loop.
//!
//! The order of events is total: see [`Class`]. The measurement period is [warm-up, duration): an
//! event at the end of the duration does not happen.

mod advance;
mod endpoints;
mod ends;
mod flow_rows;
mod log;
mod measurement;
mod own;
mod packets;
mod report;
mod run;
#[cfg(test)]
mod short_paths;
mod simulation;
mod users;

use std::borrow::Cow;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use redtail_core::{Time, prefetch};
use redtail_network::{Class, Event, HostRoutes, INSTANT, Links, SimPacket, Target, compile};
use redtail_spec::Scenario;
use redtail_traffic::Traces;
use redtail_transport::SenderCounters;

use self::ends::EngineEnds;
use self::flow_rows::FlowsBefore;
use self::measurement::Phases;
use self::users::AtOnce;
use crate::capture::Recorder;
use crate::connections::Reached;
use crate::flows::Flows;
use crate::packet::Contents;
use crate::plugins::Plugins;
use crate::series::Sampler;

pub use run::{RunError, RunOptions, run};
pub use simulation::{FlowState, Samples, Simulation};

/// Events between two checks of the cancel flag. The work of an event is bounded (by windows,
/// backlogs and `MOST_UPDATES` of a law) and rarely takes a millisecond.
const CANCEL_INTERVAL: u64 = 1 << 8;

/// From about this number on, endpoints are evicted from the second-level cache between two of
/// their packets.
const MANY_FLOWS: usize = 1000;

/// The same for users, few of whom have a connection open: prefetching makes a run with 1,200 of them
/// slower, and one with a million faster. The bound is between these, and was not measured.
const MANY_USERS: usize = 100_000;

/// Whether there are more endpoints with packets than the cache holds.
fn many_endpoints(flows: &Flows) -> bool {
    let users = flows.users.len();
    flows.count() - users > MANY_FLOWS || users > MANY_USERS
}

/// The run was cancelled before its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Cancelled;

/// The events of [`Class::Measure`]: a step of a [`Simulation`] ends, the measurement period begins; the phases follow.
const STOP: u32 = 0;
const BEGIN: u32 = 1;

/// The loop stops at this time, before all other events of the time.
fn stop(at: Time) -> Event {
    Event::new(at, Class::Measure, STOP)
}

struct Engine<'a> {
    scenario: Cow<'a, Scenario>,
    now: Time,
    /// The present event.
    event: Event,
    end: Time,
    /// Where the loop stops next: at the end, or before.
    until: Time,
    links: Links,
    ends: EngineEnds<'a>,
    sampler: Option<Sampler>,
    /// The routes of the hosts of each group.
    hosts: Vec<Vec<HostRoutes>>,
    /// Whether there are more endpoints than the cache holds.
    many_flows: bool,
    /// Whether endpoints may lag behind the schedule.
    endpoints_lag: bool,
    /// Connections on which a user's program has acted.
    touched: Vec<u32>,
    /// Segments from clients that the present event has sent and whose path takes no time.
    at_once: Vec<AtOnce>,
    /// The counters of the senders of each group when the measurement began.
    done_before: Vec<SenderCounters>,
    /// The bytes that had reached the receivers of each group when the measurement began.
    reached_before: Vec<Reached>,
    phases: Phases,
    /// What each flow had done when the measurement began; `None` if flows are not kept.
    flows_before: Option<FlowsBefore>,
    /// The events up to the next at which the loop pauses: looks whether it is to stop, and notes what the event before
    /// has changed if there is a log.
    events: u64,
    /// How many of them are still to come.
    until_pause: u64,
}

impl<'a> Engine<'a> {
    fn new(scenario: Cow<'a, Scenario>, plugins: &Plugins, traces: &Traces) -> Self {
        let (network, hosts) = compile(&scenario, &plugins.queues);
        let back_routes = network.paths.back_routes();
        let mut links = Links::new(network, Time::ZERO + scenario.duration);
        let scheduler = &mut links.scheduler;
        let mut flows = Flows::new(&scenario, &hosts, traces, plugins, scheduler);
        flows.back_routes = back_routes;
        let measure_from = Time::ZERO + scenario.warmup;
        scheduler.add(Event::new(measure_from, Class::Measure, BEGIN));
        for (phase, &at) in (BEGIN + 1..).zip(&scenario.phases) {
            scheduler.add(Event::new(Time::ZERO + at, Class::Measure, phase));
        }
        if flows.senders.iter().any(|slot| slot.sender.is_paced()) {
            scheduler.pace(flows.senders.len());
        }
        let sampler = scenario.series.clone().map(Sampler::new);
        if sampler.is_some() {
            scheduler.add(Event::new(Time::ZERO, Class::Sample, 0));
        }
        let end = Time::ZERO + scenario.duration;
        Self {
            scenario,
            now: Time::ZERO,
            event: stop(Time::ZERO),
            end,
            until: end,
            links,
            many_flows: many_endpoints(&flows),
            endpoints_lag: false,
            ends: EngineEnds {
                contents: Contents::default(),
                dropped: vec![[0; 2]; flows.count()],
                copied: Vec::new(),
                marked: vec![0; flows.count()],
                recorder: None,
                log: None,
                packets: None,
                watches: false,
                measure_from,
                flows,
            },
            sampler,
            hosts,
            touched: Vec::new(),
            at_once: Vec::new(),
            done_before: Vec::new(),
            reached_before: Vec::new(),
            phases: Phases::default(),
            flows_before: None,
            events: CANCEL_INTERVAL,
            until_pause: CANCEL_INTERVAL,
        }
    }

    /// Carries out all events before `until`, which is not after the end of the run, and advances what lags behind to it.
    fn run(
        &mut self,
        until: Time,
        cancel: &AtomicBool,
        progress: Option<&AtomicU64>,
    ) -> Result<(), Cancelled> {
        self.until = until;
        if until < self.end {
            // It is the first event at its time, so that no other is taken and not carried out.
            self.links.scheduler.add(stop(until));
        }
        self.run_events(cancel, progress)?;
        self.now = until;
        self.advance_to(stop(until));
        Ok(())
    }

    fn run_events(
        &mut self,
        cancel: &AtomicBool,
        progress: Option<&AtomicU64>,
    ) -> Result<(), Cancelled> {
        while let Some(event) = self.links.scheduler.take_next() {
            if event.at() >= self.until {
                break;
            }
            debug_assert!(event.at() >= self.now, "time went back");
            self.now = event.at();
            self.event = event;
            self.until_pause -= 1;
            if self.until_pause == 0 {
                self.pause(event, cancel, progress)?;
            }
            match event.class() {
                Class::LinkFree => {
                    self.links
                        .on_link_free(event.index(), self.now, &mut self.ends);
                }
                Class::Arrival => self.on_arrival(event.index()),
                _ => self.on_other(event),
            }
        }
        Ok(())
    }

    /// An event that is neither of a link nor of a line.
    fn on_other(&mut self, event: Event) {
        self.advance_to(event);
        let index = event.index();
        match event.class() {
            Class::Wire => self.links.on_wire(index, self.now),
            Class::SenderTimer => self.on_sender_timer(index),
            Class::ReceiverTimer => self.on_receiver_timer(index),
            Class::Connection => self.on_connection_timer(index),
            Class::Source => self.on_source(index),
            Class::QueueWakeup => self.links.on_queue_wakeup(index, self.now, &mut self.ends),
            Class::Sample => self.on_sample(),
            Class::Measure if index == BEGIN => self.on_measure(),
            Class::Measure => self.on_phase(),
            Class::LinkFree | Class::Arrival => unreachable!("of a link or of a line"),
        }
    }

    /// The loop does more than carry out `event`, which is due now.
    #[cold]
    fn pause(
        &mut self,
        event: Event,
        cancel: &AtomicBool,
        progress: Option<&AtomicU64>,
    ) -> Result<(), Cancelled> {
        if self.ends.packets.is_some() {
            self.measure_packets(event);
        }
        if self.ends.log.is_some() {
            self.log_between(event);
        }
        if let Some(recorder) = &mut self.ends.recorder {
            recorder.note_laws(&self.links.network);
        }
        self.pause_after(if self.ends.watches {
            1
        } else {
            CANCEL_INTERVAL
        });
        if self.is_stopped(cancel) {
            return Err(Cancelled);
        }
        if let Some(progress) = progress {
            progress.store((self.now - Time::ZERO).as_ps(), Ordering::Relaxed);
        }
        Ok(())
    }

    /// Something is recorded of packets or flows: the ends tell it, and the loop pauses at each event.
    fn watch(&mut self) {
        self.ends.watches = true;
        self.pause_after(1);
    }

    /// The loop pauses at the event that comes so many events later.
    fn pause_after(&mut self, events: u64) {
        self.events = self.event_count() + events;
        self.until_pause = events;
    }

    /// The events so far.
    fn event_count(&self) -> u64 {
        self.events - self.until_pause
    }

    fn is_stopped(&self, cancel: &AtomicBool) -> bool {
        let in_vain = |recorder: &Recorder<'_>| recorder.has_failed();
        cancel.load(Ordering::Relaxed) || self.ends.recorder.as_deref().is_some_and(in_vain)
    }

    /// The packet at the head of a delay line arrives.
    #[inline]
    fn on_arrival(&mut self, line: u32) {
        let paths = &self.links.network.paths;
        let target = paths.target(line);
        if self.many_flows {
            paths.prefetch(line, 9);
        }
        if let Target::Link(link) = target {
            return self.links.on_arrival(line, link, self.now, &mut self.ends);
        }
        if self.endpoints_lag && paths.lags(line) {
            return self.advance_endpoints(line, self.now + INSTANT);
        }
        if self.many_flows {
            self.prefetch_after(line);
        }
        // The packet leaves the network. Its memory may be reused for the answer.
        let paths = &mut self.links.network.paths;
        let &SimPacket {
            content,
            endpoint,
            size,
            class,
            ..
        } = paths.take(line, &mut self.links.scheduler);
        let contents = &mut self.ends.contents;
        contents.free(content);
        let ecn = class.ecn();
        match target {
            Target::Receiver => self.reaches_receiver(endpoint, content, ecn),
            Target::Sender => self.reaches_sender(endpoint, content, ecn),
            Target::UdpSink => self.reaches_udp_sink(endpoint, size, content),
            Target::Caller => self.reaches_call(0, endpoint, size, content, ecn),
            Target::Callee => self.reaches_call(1, endpoint, size, content, ecn),
            Target::Own(side) => self.reaches_own(side.into(), endpoint, size, content, ecn),
            Target::Client => self.reaches_client(endpoint, content, ecn),
            Target::Server => self.reaches_server(endpoint, content, ecn),
            Target::Link(_) => unreachable!("handled above"),
        }
    }

    /// Prefetches into the cache the data of the arrivals from `line` after its head: first their entries in
    /// the line, then their endpoints and contents, then what these point to.
    fn prefetch_after(&self, line: u32) {
        if let Some((packet, target)) = self.links.network.paths.upcoming(line, 2) {
            let endpoint = packet.endpoint as usize;
            match target {
                Target::Receiver => {
                    self.ends.flows.receivers[endpoint].receiver.prefetch();
                    self.ends.flows.senders[endpoint].sender.prefetch();
                }
                Target::Sender => self.ends.flows.senders[endpoint].sender.prefetch(),
                Target::Client | Target::Server => {
                    self.ends.flows.connections.prefetch(packet.endpoint);
                }
                Target::UdpSink
                | Target::Caller
                | Target::Callee
                | Target::Own(_)
                | Target::Link(_) => {}
            }
        }
        if let Some((packet, target)) = self.links.network.paths.upcoming(line, 5) {
            self.ends.contents.prefetch(packet.content);
            let endpoint = packet.endpoint as usize;
            match target {
                Target::Receiver => {
                    prefetch(&self.ends.flows.receivers[endpoint]);
                    // The answer often arrives soon.
                    self.ends.flows.senders[endpoint].prefetch();
                }
                Target::Sender => self.ends.flows.senders[endpoint].prefetch(),
                Target::Client | Target::Server => {
                    self.ends.flows.connections.prefetch_place(packet.endpoint);
                }
                Target::UdpSink
                | Target::Caller
                | Target::Callee
                | Target::Own(_)
                | Target::Link(_) => {}
            }
        }
    }
}
