//! A run that is advanced in steps, and observed between them, has the result of a run in one go.

use std::borrow::Cow;

use crate::common::endpoints::{Diary, endpoints};
use crate::common::{metric, scenario, scenario_with, table};
use redtail_core::{Span, Stream, Time};
use redtail_network::result::{FlowSeries, QueueSeries};
use redtail_qdisc::{DropReason, QueueParams};
use redtail_sim::capture::Capture;
use redtail_sim::plugin::{Actions, PacketId, PacketView, PluginError, PluginQueue};
use redtail_sim::{Plugins, RunError, RunOptions, RunResult, Simulation, Traces};
use redtail_spec::Scenario;
use redtail_traffic::TrafficParams;

fn options(traces: &Traces, without_lookahead: bool) -> RunOptions<'static> {
    RunOptions {
        plugins: endpoints(&Diary::default()),
        traces: traces.clone(),
        without_lookahead,
        ..RunOptions::default()
    }
}

/// Reads all that there is to observe. Returns something that depends on it.
fn observe(simulation: &Simulation<'_>) -> f64 {
    let samples = simulation.samples();
    let sampled = samples.map_or(0, |samples| samples.queues.time_s.len()) as f64;
    let links = (0..simulation.link_names().count()).map(|number| {
        let link = simulation.link(number);
        let drain = link.drain_time().unwrap_or(Span::ZERO).as_secs_f64();
        drain + link.backlog.packets as f64
    });
    let flows = simulation.flows().map(|flow| flow.sender.cwnd);
    let heard = simulation.heard_by_group().into_iter().map(|it| it as f64);
    links.chain(flows).chain(heard).sum::<f64>() + sampled
}

/// The result of a run in steps whose lengths are drawn: of a picosecond up to `longest`, short ones as often as long
/// ones.
fn in_steps(
    scenario: &Scenario,
    options: RunOptions<'static>,
    longest: Span,
    draws: &mut Stream,
) -> RunResult {
    let simulation = Simulation::new(Cow::Owned(scenario.clone()), options);
    let mut simulation = simulation.expect("it can be run");
    let mut seen = 0.0;
    loop {
        let length = (longest.as_ps() as f64).powf(draws.uniform()) as u64;
        let until = simulation.now() + Span::from_ps(length);
        let goes_on = simulation.advance(until).expect("it can be run");
        assert_eq!(simulation.now(), until.min(simulation.end()));
        seen += observe(&simulation);
        if !goes_on {
            break;
        }
    }
    assert!(seen > 0.0, "nothing was observed");
    simulation.finish().expect("it can be run")
}

/// Undefined values are NaN, which equals nothing; as text all digits that matter are compared.
fn shown(result: RunResult, with_events: bool) -> String {
    let events = if with_events { result.events } else { 0 };
    format!("{:?}", RunResult { events, ..result })
}

/// Checks that a run in steps has the result of a run in one go, with lookahead and without; then the events are
/// the same too.
#[track_caller]
fn same_in_steps(scenario: &Scenario, traces: &Traces, which: &str) {
    let mut draws = Stream::named(1, 0, which);
    for without in [false, true] {
        let whole = redtail_sim::run(scenario, options(traces, without)).expect("it can be run");
        let whole = shown(whole, without);
        for longest in [Span::from_ms(40), Span::from_s(2)] {
            let stepped = in_steps(scenario, options(traces, without), longest, &mut draws);
            assert!(
                shown(stepped, without) == whole,
                "steps up to {longest} change the result of {which} (without lookahead: {without})"
            );
        }
    }
}

/// TCP that starts and stops, UDP, users and phases, with links in both directions. `more` has further tables.
fn mixed(queue: &str, link: &str, more: &str) -> String {
    format!(
        r#"
duration = "2.5 s"
warmup = "500 ms"
phases = ["1 s", "1.7 s"]
[bottleneck]
rate = "3 Mbit/s"
delay = "20 ms"
{link}
[bottleneck.queue]
{queue}
[bottleneck.return]
rate = "1 Mbit/s"
delay = "10 ms"
queue = {{ kind = "tail-drop", limit = "20 packets" }}
{more}
[[traffic]]
name = "always"
kind = "bulk"
flows = 4
tcp = {{ preset = "sack", ecn = true }}
access_delay = ["5 ms", "5 ms", "10 ms"]
start = "uniform 0..1 s"
stop = "2 s"
[[traffic]]
name = "step"
kind = "cbr"
flows = 2
rate = "400 kbit/s"
packet = "1000 B"
[[traffic]]
name = "web"
kind = "web"
model = "http1"
users = 3
access_delay = ["2 ms", "10 ms"]
"#
    )
}

const TAIL_DROP: &str = "kind = \"tail-drop\"\nlimit = \"30 packets\"";

#[test]
fn steps_change_no_run_whatever_the_queue() {
    for (kind, keys) in QueueParams::examples() {
        if kind != "plugin" {
            let text = mixed(&format!("kind = \"{kind}\"\n{keys}"), "", "");
            same_in_steps(&scenario(&text, 0), &Traces::new(), kind);
        }
    }
}

#[test]
fn steps_change_no_run_whatever_the_traffic() {
    let all = TrafficParams::examples();
    let of_simulator = all
        .into_iter()
        .filter(|(kind, _)| *kind != "trace" && !TrafficParams::OF_KERNELS.contains(kind));
    for (kind, keys) in of_simulator {
        let group = format!("[[traffic]]\nname = \"more\"\nkind = \"{kind}\"\n{keys}\n");
        let text = mixed(TAIL_DROP, "", "") + &group;
        same_in_steps(&scenario(&text, 0), &Traces::new(), kind);
    }
    for preset in ["linux", "bbr", "bbr3"] {
        let text = mixed(TAIL_DROP, "", "").replace(
            "{ preset = \"sack\", ecn = true }",
            &format!("\"{preset}\""),
        );
        same_in_steps(&scenario(&text, 0), &Traces::new(), preset);
    }
}

#[test]
fn steps_change_no_run_whatever_the_link() {
    for link in [
        "wire.loss = 0.02",
        "wire = { jitter = \"uniform 0..3 ms\", duplicate = 0.05 }",
        "rate_changes = [{ at = \"700 ms\", rate = \"1 Mbit/s\" }, { at = \"1.5 s\", rate = \"9 Mbit/s\" }]",
        "overhead = \"ethernet\"",
    ] {
        let text = mixed(TAIL_DROP, link, "");
        same_in_steps(&scenario(&text, 0), &Traces::new(), link);
    }
    let trace = "rate_trace = { differences_ms = \"3 0 5 1 0 0 7\" }";
    let text = mixed(TAIL_DROP, trace, "").replace("rate = \"3 Mbit/s\"\n", "");
    same_in_steps(&scenario(&text, 0), &Traces::new(), trace);
}

#[test]
fn steps_change_nothing_that_is_recorded() {
    for more in [
        "[series]\ninterval = \"7 ms\"\nwindows = true\ngoodput = true\n",
        "[events]\n",
        "[events]\nkinds = [\"arrival\", \"departure\", \"drop\"]\n",
    ] {
        let text = mixed(TAIL_DROP, "", more);
        same_in_steps(&scenario(&text, 0), &Traces::new(), more);
    }
    let text = format!(
        "record = [\"one_way_delay\", \"round_trip\", \"loss_by_class\"]\n{}",
        mixed(TAIL_DROP, "", "")
    );
    same_in_steps(&scenario(&text, 0), &Traces::new(), "record");
}

#[test]
fn steps_change_no_run_of_a_table_of_connections() {
    let table = table();
    let text = mixed(TAIL_DROP, "", "")
        + "[[traffic]]\nname = \"all\"\nkind = \"trace\"\nfile = \"t.csv\"\n";
    let scenario = scenario_with(&text, &table, |_, _| {});
    same_in_steps(&scenario, &Traces::new().with(table), "trace");
}

/// What a run in steps of `interval` shows of links and flows, in the form of series.
fn seen(scenario: &Scenario, interval: Span) -> (QueueSeries, FlowSeries) {
    let simulation = Simulation::new(Cow::Borrowed(scenario), options(&Traces::new(), false));
    let mut simulation = simulation.expect("it can be run");
    let (mut queues, mut flows) = (QueueSeries::default(), FlowSeries::default());
    let links = simulation.link_names().count();
    let mut before: Vec<_> = (0..links).map(|number| simulation.link(number)).collect();
    loop {
        let now = simulation.now().as_secs_f64();
        for (number, before) in (0..).zip(&mut before) {
            let link = simulation.link(number as usize);
            queues.time_s.push(now);
            queues.link.push(number);
            queues.packets.push(link.backlog.packets as f64);
            queues.bytes.push(link.backlog.bytes as f64);
            queues
                .average
                .push(link.internals.average.unwrap_or(f64::NAN));
            let probability = link.internals.probability.unwrap_or(f64::NAN);
            queues.probability.push(probability);
            queues
                .arrivals
                .push(link.passed.arrived - before.passed.arrived);
            queues
                .drops
                .push(link.passed.dropped - before.passed.dropped);
            queues.marks.push(link.passed.marked - before.passed.marked);
            let wait = link.mean_wait_since(before).unwrap_or(f64::NAN);
            queues.delay_s.push(wait);
            *before = link;
        }
        for flow in simulation.flows() {
            flows.flow.push(flow.flow);
            flows.group.push(flow.group);
            flows.cwnd_bytes.push(flow.sender.cwnd);
            flows.in_flight_bytes.push(flow.sender.outstanding as f64);
            let srtt = flow.sender.srtt.map_or(f64::NAN, Span::as_secs_f64);
            flows.srtt_s.push(srtt);
            flows.delivered_bytes.push(flow.delivered_bytes);
        }
        if !simulation
            .advance(simulation.now() + interval)
            .expect("it can be run")
        {
            return (queues, flows);
        }
    }
}

#[test]
fn what_is_seen_between_steps_is_what_samples_of_the_run_show() {
    let series = "[series]\ninterval = \"10 ms\"\nwindows = true\n";
    let red = "kind = \"red\"\nlimit = \"40 packets\"\nmin_th = \"5 packets\"\nmax_th = \"15 packets\"\necn = true";
    for queue in [
        red,
        TAIL_DROP,
        "kind = \"fq-codel\"\nlimit = \"100 packets\"",
    ] {
        let sampled = redtail_sim::run(
            &scenario(&mixed(queue, "", series), 0),
            RunOptions::default(),
        );
        let sampled = sampled.expect("it can be run");
        let (queues, flows) = seen(&scenario(&mixed(queue, "", ""), 0), Span::from_ms(10));
        assert_eq!(
            format!("{queues:?}"),
            format!("{:?}", sampled.queue_series.expect("it was asked for"))
        );
        let sampled = sampled.flow_series.expect("it was asked for");
        let columns = |rows: &FlowSeries| {
            let same = [
                "flow",
                "group",
                "cwnd_bytes",
                "in_flight_bytes",
                "srtt_s",
                "delivered_bytes",
            ];
            let columns = rows.columns().into_iter();
            format!(
                "{:?}",
                columns
                    .filter(|(name, _)| same.contains(name))
                    .collect::<Vec<_>>()
            )
        };
        assert_eq!(columns(&flows), columns(&sampled));
    }
}

#[test]
fn samples_so_far_are_the_first_ones_of_the_run() {
    let text = mixed(
        TAIL_DROP,
        "",
        "[series]\ninterval = \"10 ms\"\nwindows = true\n",
    );
    let scenario = scenario(&text, 0);
    let simulation = Simulation::new(Cow::Borrowed(&scenario), RunOptions::default());
    let mut simulation = simulation.expect("it can be run");
    simulation
        .advance(Time::ZERO + Span::from_ms(1005))
        .expect("it can be run");
    let names: Vec<_> = simulation.group_names().map(str::to_owned).collect();
    assert_eq!(names, ["always", "step", "web"]);
    let samples = simulation.samples().expect("they were asked for");
    let (queues, flows) = (samples.queues.clone(), samples.flows.clone());
    assert_eq!(samples.groups.time_s.len(), 101 * 3);
    assert_eq!(queues.time_s.len(), 101 * 2);
    let result = simulation.finish().expect("it can be run");
    let all = result.queue_series.expect("they were asked for");
    assert_eq!(queues.packets, all.packets[..202]);
    let all = result.flow_series.expect("they were asked for");
    assert_eq!(flows.cwnd_bytes, all.cwnd_bytes[..101 * 4]);
}

#[test]
fn counts_at_the_end_are_those_of_the_metrics() {
    let text = mixed(TAIL_DROP, "", "").replace("warmup = \"500 ms\"", "warmup = \"0 s\"");
    let scenario = scenario(&text, 0);
    let simulation = Simulation::new(Cow::Borrowed(&scenario), RunOptions::default());
    let mut simulation = simulation.expect("it can be run");
    assert!(!simulation.advance(Time::MAX).expect("it can be run"));
    let names: Vec<_> = simulation.link_names().map(str::to_owned).collect();
    assert_eq!(names, ["bottleneck", "return"]);
    let link = simulation.link(0);
    assert_eq!(link.rate.map(|rate| rate.as_bps()), Some(3_000_000));
    let lost: u64 = simulation.flows().map(|flow| flow.lost_packets).sum();
    let heard = simulation.heard_by_group();
    let delivered: u64 = simulation.flows().map(|flow| flow.delivered_bytes).sum();
    assert_eq!(heard[0], delivered);
    let last = simulation.flow(0, 3).expect("the group has four flows");
    assert_eq!((last.flow, last.group), (3, 0));
    assert!(simulation.flow(0, 4).is_none());
    assert!(simulation.flow(2, 0).is_none(), "users have connections");
    let result = simulation.finish().expect("it can be run");
    let share = link.passed.dropped as f64 / link.passed.arrived as f64;
    assert_eq!(metric(&result, "loss"), share);
    assert!(lost > 0 && lost <= link.passed.dropped);
    // The link is busy with the packets whose transmission began, but for a part of the last.
    let sent = metric(&result, "utilization") * 3e6 / 8.0 * 2.5;
    assert!((link.passed.bytes as f64 - sent).abs() < 1500.0, "{sent}");
}

/// A queue of a user that fails with its third packet.
#[derive(Default)]
struct Failing(u32);

impl PluginQueue for Failing {
    fn enqueue(
        &mut self,
        packet: PacketView,
        _now: Time,
        actions: &mut dyn Actions,
    ) -> Result<(), PluginError> {
        self.0 += 1;
        actions.drop(packet.id, DropReason::Limit)?;
        match self.0 {
            3 => Err(PluginError::new("it is tired")),
            _ => Ok(()),
        }
    }

    fn dequeue(
        &mut self,
        _now: Time,
        _actions: &mut dyn Actions,
    ) -> Result<Option<PacketId>, PluginError> {
        Ok(None)
    }
}

fn failed() -> Simulation<'static> {
    let scenario = scenario(&mixed("kind = \"plugin\"\nclass = \"failing\"", "", ""), 0);
    let plugins = Plugins::new().with("failing", |_, _| Ok(Box::new(Failing::default())));
    let options = RunOptions {
        plugins,
        ..RunOptions::default()
    };
    let mut simulation = Simulation::new(Cow::Owned(scenario), options).expect("it can be made");
    let failure = simulation.advance(Time::MAX).expect_err("its queue fails");
    assert!(matches!(failure, RunError::Plugin(_)), "{failure}");
    simulation
}

#[test]
#[should_panic(expected = "after an error a simulation is over")]
fn a_simulation_that_failed_is_over() {
    failed().now();
}

#[test]
fn a_time_that_has_come_changes_nothing() {
    let scenario = scenario(&mixed(TAIL_DROP, "", ""), 0);
    let simulation = Simulation::new(Cow::Borrowed(&scenario), RunOptions::default());
    let mut simulation = simulation.expect("it can be run");
    let second = Time::ZERO + Span::from_s(1);
    assert!(simulation.advance(second).expect("it can be run"));
    let arrived = simulation.link(0).passed.arrived;
    for until in [second, Time::ZERO] {
        assert!(simulation.advance(until).expect("it can be run"));
        assert_eq!(simulation.now(), second);
        assert_eq!(simulation.link(0).passed.arrived, arrived);
    }
}

#[test]
fn a_simulation_can_be_sent_to_another_thread() {
    fn sent<T: Send>() {}
    sent::<Simulation<'static>>();
    sent::<Capture<'static>>();
}
