//! One run: namespaces, the network in one thread, the hosts in another one, and the result.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::process::ExitStatus;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;

use redtail_core::{Span, Time};
use redtail_network::capture::{CaptureError, PointsAndFile};
use redtail_network::group_report::bits_per_second;
use redtail_network::metrics::*;
use redtail_network::report::{self, full_name};
use redtail_network::result::RunResult;
use redtail_qdisc::Plugins;
use redtail_qdisc::plugin::PluginFailure;
use redtail_spec::Scenario;
use redtail_traffic::Traces;

use crate::addresses::{self, Side};
use crate::emulator::{Emulator, Punctuality};
use crate::event_loop::{self, Watched};
use crate::handover;
use crate::hosts::{Hosts, UNKNOWN_STATE};
use crate::kernel::HostSettings;
use crate::kernel_queue;
use crate::meter::Meter;
use crate::outside::{Outside, in_thread};
use crate::programs::{self, Programs};
use crate::report::{COUNTED, HostReport};
use crate::spaces::{self, Space};
use crate::sys::clock::Clock;
use crate::sys::descriptors;
use crate::sys::scheduling::wake_up_soon;

/// The lateness that 99 in 100 packets must not exceed for a run to be valid: the tick of a kernel with
/// 250 ticks a second. TCP's own timers are not more exact, and results did not depend on less
/// (docs/decisions/0011-real-time.md).
pub const LATENESS_BOUND: Span = Span::from_ms(4);

/// The lateness that no packet may exceed: half of the smallest retransmission timeout of Linux
/// (`TCP_RTO_MIN`, net/tcp.h). A longer pause can cause a timeout that no queue caused.
pub const LONGEST_PAUSE: Span = Span::from_ms(100);

/// The network waits in the kernel until this long before an event, and then looks at the clock: waking
/// up takes about as long.
const AWAKE_BEFORE: Span = Span::from_us(60);

/// What a run needs besides the scenario.
#[derive(Default)]
pub struct RunOptions {
    /// The queues of kind `plugin`, to which the scenario refers by name.
    pub plugins: Plugins,
    /// The tables of groups of kind `trace`, to which the scenario refers by name.
    pub traces: Traces,
    /// The packets to capture.
    pub captures: Vec<PointsAndFile<'static>>,
    /// Whether links have the kernel's own queues, in place of redtail's.
    pub kernel_queues: bool,
    /// Whether the clock stands while the machine waits, as in a virtual machine whose clock counts
    /// instructions: then a wait ends when it should, and computing takes the time of others.
    pub virtual_time: bool,
    /// Programs of the user on the hosts of the last group, which has users.
    pub programs: Option<Programs>,
}

/// The result of a run in real time.
#[derive(Clone, Debug)]
pub struct LiveResult {
    /// What was measured.
    pub result: RunResult,
    /// Why it must not be used; `None` if it is valid.
    pub invalid: Option<String>,
    /// How the program of the user ended; `None` without one, or if the run ended first.
    pub status: Option<ExitStatus>,
}

/// Why a run has no result.
#[derive(Debug)]
pub enum RunError {
    /// The kernel refused a step, which the text names.
    Refused(io::Error),
    /// A plug-in failed.
    Plugin(Box<PluginFailure>),
    /// Packets cannot be captured.
    Capture(CaptureError),
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(error) => error.fmt(f),
            Self::Plugin(failure) => failure.fmt(f),
            Self::Capture(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for RunError {}

impl From<CaptureError> for RunError {
    fn from(error: CaptureError) -> Self {
        Self::Capture(error)
    }
}

impl From<io::Error> for RunError {
    fn from(error: io::Error) -> Self {
        Self::Refused(error)
    }
}

/// Runs `scenario`, which must have passed validation and [`crate::kernel::refuse`], in a process
/// that is in a user namespace of its own.
///
/// # Errors
/// [`RunError`] if the kernel refused a step or a plug-in failed.
///
/// # Panics
/// When packets are not conserved: a fault of redtail. And when `options` lacks a table of the
/// scenario.
pub fn run(scenario: &Scenario, options: RunOptions) -> Result<LiveResult, RunError> {
    redtail_qdisc::plugin::catching(|| run_to_end(scenario, options)).map_err(RunError::Plugin)?
}

fn run_to_end(scenario: &Scenario, options: RunOptions) -> Result<LiveResult, RunError> {
    let RunOptions {
        plugins,
        traces,
        captures,
        kernel_queues,
        virtual_time,
        programs,
    } = options;
    descriptors::reserve().map_err(|error| spaces::about(error, "room for open files"))?;
    let to_outside = programs.as_ref().and_then(|programs| programs.outside);
    let scenario = &scenario.clone().for_real_hosts();
    // In a thread of their own: this one stays in the computer's network for what connects it.
    let (made, spaces) = in_thread(|| {
        let made = match kernel_queues {
            true => kernel_queue::routers(scenario, plugins)?,
            false => (scenario.clone(), plugins, BTreeMap::new()),
        };
        Ok((made, make_spaces(scenario, to_outside.is_some())?))
    })?;
    let (scenario, plugins, routers) = &made;
    let mut emulator = Emulator::new(scenario, plugins, &spaces, routers);
    emulator.capture(captures)?;
    let mut outside = None;
    if let Some(program) = to_outside {
        let last = spaces.len() - 1;
        emulator.let_outside(last);
        let servers = &spaces[last][Side::Sending as usize];
        outside = Some(Outside::connect(program, servers)?);
    }
    let stop = AtomicBool::new(false);
    let mut status = None;
    let mut hosts = if virtual_time {
        in_thread(|| run_in_one(&mut emulator, scenario, &traces, &spaces, &stop))?
    } else {
        let run = |emulator: &mut Emulator<'_>, start: &mut dyn FnMut(Clock)| {
            if let Some(programs) = &programs {
                status = run_programs(programs, outside.take(), emulator, &spaces, &stop, start)?;
                return Ok(());
            }
            let clock = Clock::start();
            start(clock);
            run_network(emulator, clock, &stop)
        };
        run_in_two(&mut emulator, scenario, &traces, &spaces, &stop, run)?
    };
    if let Some(captured) = emulator.captured.take() {
        captured.finish()?;
    }
    if programs.is_some() {
        let group = scenario.traffic.last();
        leave_to_programs(&mut hosts, group.map_or("", |group| group.access().name));
    }
    let wrong = emulator.check_kernel_queues()?;
    let result = result(scenario, emulator, hosts);
    Ok(LiveResult {
        status,
        invalid: result.invalid.or(wrong),
        ..result
    })
}

/// Runs the network and the hosts in this thread. In virtual time another one would not act sooner.
fn run_in_one(
    emulator: &mut Emulator<'_>,
    scenario: &Scenario,
    traces: &Traces,
    spaces: &[[Space; 2]],
    stop: &AtomicBool,
) -> io::Result<HostReport> {
    let watched = Watched::new()?;
    let mut hosts = Hosts::new(scenario, traces, spaces, &watched)?;
    wake_up_soon();
    let clock = Clock::start();
    emulator.use_lookahead();
    emulator.start(clock, &watched)?;
    hosts.start(clock);
    let end = emulator.end;
    // The clock stands while the thread computes little: a wait ends when it should.
    event_loop::run(
        &mut [emulator, &mut hosts],
        &watched,
        (clock, end),
        Span::ZERO,
        stop,
    )?;
    let end = hosts.marks_now()?;
    Ok(hosts.report(&end))
}

/// Runs the hosts in another thread than the network. `run` does the latter, and says when it begins.
fn run_in_two<'a>(
    emulator: &mut Emulator<'a>,
    scenario: &Scenario,
    traces: &Traces,
    spaces: &[[Space; 2]],
    stop: &AtomicBool,
    run: impl FnOnce(&mut Emulator<'a>, &mut dyn FnMut(Clock)) -> io::Result<()>,
) -> io::Result<HostReport> {
    let (send_ready, ready) = mpsc::channel();
    let (send_clock, clock) = mpsc::channel();
    thread::scope(|scope| -> io::Result<HostReport> {
        let hosts = scope.spawn(|| -> io::Result<HostReport> {
            // Both ends go with the thread, so the other one does not wait for a thread that failed.
            let (send_ready, clock) = (send_ready, clock);
            let watched = Watched::new()?;
            let mut hosts = Hosts::new(scenario, traces, spaces, &watched)?;
            wake_up_soon();
            let _ = send_ready.send(());
            let Ok(clock) = clock.recv() else {
                return Ok(HostReport::default());
            };
            hosts.start(clock);
            let end = Time::ZERO + scenario.duration;
            let ran = event_loop::run(&mut [&mut hosts], &watched, (clock, end), Span::ZERO, stop);
            stop.fetch_or(ran.is_err(), Ordering::Relaxed);
            ran?;
            let end = hosts.marks_now()?;
            Ok(hosts.report(&end))
        });
        let mut ran = Ok(());
        if ready.recv().is_ok() {
            wake_up_soon();
            ran = run(emulator, &mut |clock| {
                let _ = send_clock.send(clock); // the hosts may have failed
            });
            stop.fetch_or(ran.is_err(), Ordering::Relaxed);
        }
        drop(send_clock);
        let hosts = match hosts.join() {
            Ok(hosts) => hosts,
            Err(panic) => std::panic::resume_unwind(panic),
        };
        ran?;
        hosts
    })
}

/// Runs the network until its end, or until `stop` is set. Another thread hands packets over while it is late.
fn run_network(emulator: &mut Emulator<'_>, clock: Clock, stop: &AtomicBool) -> io::Result<()> {
    let watched = Watched::new()?;
    emulator.start(clock, &watched)?;
    let end = emulator.end;
    let (spaces, mut elsewhere) = (emulator.spaces, emulator.punctuality.anew());
    thread::scope(|scope| {
        let (handover, deliveries) = handover::pair();
        let elsewhere = &mut elsewhere;
        let delivering = scope.spawn(move || {
            let served = deliveries.serve(spaces, clock, elsewhere);
            stop.fetch_or(served.is_err(), Ordering::Relaxed);
            served
        });
        emulator.hand_over_by(Some(handover));
        let ran = event_loop::run(
            &mut [&mut *emulator],
            &watched,
            (clock, end),
            AWAKE_BEFORE,
            stop,
        );
        emulator.hand_over_by(None);
        let served = delivering.join().expect("handing over does not panic");
        ran.and(served)
    })?;
    emulator.punctuality.add(&elsewhere);
    emulator.end_now();
    Ok(())
}

/// Runs the network between programs of the user, until the first one ends. `start` is told the clock.
fn run_programs(
    programs: &Programs,
    outside: Option<Outside>,
    emulator: &mut Emulator<'_>,
    spaces: &[[Space; 2]],
    stop: &AtomicBool,
    start: &mut dyn FnMut(Clock),
) -> io::Result<Option<ExitStatus>> {
    let last = spaces.len() - 1;
    let running = programs.start(last, &spaces[last], outside)?;
    thread::scope(|scope| {
        let (readings, shown) = mpsc::channel();
        emulator.meter = Some(Meter::new(emulator.link_count(), readings));
        scope.spawn(|| programs::show(programs.show, shown));
        let waiting = scope.spawn(|| {
            let ended = running.wait(|| stop.load(Ordering::Relaxed));
            stop.store(true, Ordering::Relaxed);
            ended
        });
        let clock = Clock::start();
        start(clock);
        let ran = run_network(emulator, clock, stop);
        stop.store(true, Ordering::Relaxed);
        emulator.meter = None; // ends what shows its readings
        let ended = waiting
            .join()
            .expect("waiting for a program does not panic");
        ran.and(ended)
    })
}

/// Leaves out what is known only of the traffic that redtail makes: the programs of the user make that
/// of the last group. What is counted of TCP says nothing of programs without a TCP connection, and what
/// redtail's hosts received is not the goodput of all.
fn leave_to_programs(hosts: &mut HostReport, group: &str) {
    let has_tcp = hosts.has_tcp.last().copied().unwrap_or_default();
    if let Some(metrics) = hosts.metrics.last_mut() {
        metrics.retain(|(metric, _)| has_tcp && COUNTED.contains(metric));
    }
    // Metrics of all groups, such as `goodput` and `phase1.goodput`, and of this one.
    hosts.others.retain(|(name, _)| {
        let of = name.rsplit('.').nth(1);
        let is_phase = |of: &str| {
            of.strip_prefix("phase")
                .is_some_and(|it| it.parse::<u32>().is_ok())
        };
        of.is_some_and(|of| of != group && !is_phase(of))
    });
    hosts.of_programs = true;
}

/// Makes the namespaces of both sides of each group. With `outside` the receiving hosts of the last
/// one can send to all addresses, and not to the other side alone.
fn make_spaces(scenario: &Scenario, outside: bool) -> io::Result<Vec<[Space; 2]>> {
    let groups = scenario.traffic.iter().enumerate();
    let last = scenario.traffic.len() - 1;
    let make = |(index, group): (usize, &redtail_traffic::TrafficParams)| {
        let settings = HostSettings::of(group);
        let [sending, receiving] = Side::BOTH.map(|side| {
            let everywhere = outside && index == last && side == Side::Receiving;
            let to = if everywhere {
                "default".to_owned()
            } else {
                addresses::network_of(index, side.peer())
            };
            spaces::make(index, side, &settings, &to)
        });
        Ok([sending?, receiving?])
    };
    groups.map(make).collect()
}

fn result(scenario: &Scenario, mut emulator: Emulator<'_>, hosts: HostReport) -> LiveResult {
    let now = emulator.end;
    let period = now.saturating_since(Time::ZERO + scenario.warmup);
    let event_log = emulator.log.take().map(|mut log| {
        for (kind, at, row) in &hosts.events {
            log.record(*kind, *at, row);
        }
        log.finish()
    });
    let links = emulator.finish();
    let names = links.network.links.iter().map(|link| link.name.clone());
    let forward = links.network.links.iter().filter(|link| link.forward);
    let traffic = || scenario.traffic.iter();
    let mut result = RunResult {
        bottleneck_packets: forward.map(|link| link.counters.passed.departed).sum(),
        links: names.collect(),
        groups: traffic()
            .map(|group| group.access().name.to_owned())
            .collect(),
        event_log,
        ..RunResult::default()
    };
    report::links(links, scenario, now, &mut result);
    let waits: Vec<Span> = (0..scenario.traffic.len() as u32)
        .map(|group| links.network.paths.longest_host_wait(group))
        .collect();
    for (index, group) in traffic().enumerate() {
        let name = group.access().name;
        let mut add = |metric: &'static redtail_core::Metric, value: f64| {
            result
                .metrics
                .push((format!("{name}.{}", metric.name), value));
        };
        add(HOST_WAIT_MAX, waits[index].as_secs_f64());
        let by_programs = hosts.of_programs && index + 1 == hosts.metrics.len();
        if group.tcp().is_some() && (!by_programs || hosts.has_tcp[index]) {
            let (now, before) = (&emulator.counts[index], &emulator.counts_before[index]);
            let received = now.arrived_bytes - before.arrived_bytes;
            add(RECEIVED_RATE, bits_per_second(received, period));
            add(
                DATA_SEGMENTS,
                (now.data_packets - before.data_packets) as f64,
            );
        }
        for &(metric, value) in &hosts.metrics[index] {
            if let Some(value) = value {
                add(metric, value);
            }
        }
    }
    let invalid = invalid(scenario, &emulator.punctuality, &hosts);
    result.metrics.extend(hosts.others);
    result.metrics.append(&mut emulator.phase_metrics);
    let punctuality = &emulator.punctuality;
    let late = |q: f64| punctuality.lateness.quantile(q);
    for (metric, value) in [
        (WAKEUP_ERROR_P50, late(0.5)),
        (WAKEUP_ERROR_P99, late(0.99)),
        (WAKEUP_ERROR_MAX, late(1.0)),
        (TIMER_ERROR_P99, hosts.lateness.quantile(0.99)),
        (
            ACHIEVED_RATE,
            Some(bits_per_second(punctuality.achieved, period)),
        ),
        (LARGEST_PACKET, Some(punctuality.largest_packet as f64)),
    ] {
        let named = value.map(|value| (full_name("", metric), value));
        result.metrics.extend(named);
    }
    result.flows = hosts.flows;
    result.histograms.append(hosts.histograms);
    result.transfers = hosts.transfers;
    result.response_times = hosts.response_times;
    if let Some(series) = &scenario.series {
        result.queue_series = series.queues.then(|| std::mem::take(&mut emulator.series));
        result.flow_series = series.windows.then_some(hosts.series);
        result.states = vec![UNKNOWN_STATE.to_owned()];
    }
    LiveResult {
        result,
        invalid,
        status: None,
    }
}

/// Why a run must not be used, if there is a reason.
fn invalid(scenario: &Scenario, punctuality: &Punctuality, hosts: &HostReport) -> Option<String> {
    let lateness = [
        (&punctuality.lateness, "packets reached their receivers"),
        (&hosts.lateness, "timers of the hosts acted"),
    ];
    for (lateness, what) in lateness {
        // Of fewer times no share of 1 in 100 is known; the bound of the longest holds for them.
        let enough = lateness.count() >= 100;
        let p99 = lateness.quantile(0.99).filter(|_| enough).unwrap_or(0.0);
        if p99 > LATENESS_BOUND.as_secs_f64() {
            return Some(format!(
                "the machine did not keep up: 1 in 100 {what} {:.1} ms late or later; accepted: \
                 up to {LATENESS_BOUND}",
                p99 * 1e3
            ));
        }
        let longest = lateness.quantile(1.0).unwrap_or(0.0);
        if longest > LONGEST_PAUSE.as_secs_f64() {
            return Some(format!(
                "the machine paused: {what} up to {:.0} ms late; accepted: up to {LONGEST_PAUSE}",
                longest * 1e3
            ));
        }
    }
    let mtu = kernel_queue::largest_packet(scenario);
    if punctuality.largest_packet as u64 > mtu {
        return Some(format!(
            "hosts sent a packet of {} B, larger than the {mtu} B of a full segment",
            punctuality.largest_packet
        ));
    }
    if hosts.device_drops > 0 {
        return Some(format!(
            "{} packets were lost between hosts and the network, which read too slowly",
            hosts.device_drops
        ));
    }
    None
}
