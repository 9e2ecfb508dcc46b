//! The typed forms: the experiment as in its file, and the scenario of one run.
//!
//! Names of types, here and in other crates: a type that mirrors a table of the experiment file ends in
//! `Params`, and what is made from it for a run has the name without the ending: `RedParams` and `Red`,
//! `QueueParams` (any kind of queue) and `AnyQueue`. Most of these types are defined by `params!`, `groups!`,
//! `kinded!` and `tcp_params!`. `Experiment` is the whole file. A value that the file can write as a text, a
//! number or a list (`Rate`, `Limit`, `Dist`) has a name without the ending. `GivenTcpParams` are the keys that
//! a `tcp` table gives, `TcpParams` are all parameters of a connection, and `ResolvedTcpParams` holds both.
//!
//! The JSON schema is used outside of this repository, so its definitions keep the names that they had
//! first (`#[schemars(rename = "LinkSpec")]`).

use std::collections::BTreeMap;

use redtail_core::{Rate, Span, Stream, Time, params, shared_keys};
use redtail_qdisc::{PolicerParams, QueueParams};
use redtail_traffic::{ChainHop, Dealt, Direction, TrafficParams};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::airtime::{AirtimeParams, Medium};
use crate::de;
use crate::derived::DerivedMetrics;
use crate::error::SpecError;
use crate::events::{Events, EventsParams};
use crate::expect::Expectations;
use crate::format::FORMAT;
use crate::node::Node;
use crate::overhead::Overhead;
use crate::rate_changes::RateChanges;
use crate::rates::{Phases, RateTrace};
use crate::replications::Replications;
use crate::shared_hosts;
use crate::wire::WireParams;

params! {
    /// One case of an experiment file: factors are substituted, `--set` arguments applied.
    ///
    /// The schema of the file is made from this type.
    pub struct Experiment {
        /// Number of the format of this file. A redtail that does not read the format refuses the file and says what reads it.
        #[schemars(extend("enum" = [FORMAT]))]
        format: u64 = 1, "1, the format of redtail 0.1; so it stays in later versions, whatever they write.";
        /// Name of the experiment; results are stored in a folder of this name.
        name: String;
        /// A description of the experiment in one sentence or more.
        description: Option<String>;
        /// How long each run lasts, in simulated time.
        duration: Span;
        /// Time at the start of each run that no statistics include; less than `duration`.
        warmup: Span = Span::ZERO, "none: everything counts.";
        /// Number of runs of each case, with independent random numbers; means and intervals are computed
        /// over them. Either a number, or a table with a stop rule:
        /// `{ until = "queue_delay_p99 within 5 %", at_most = 50 }`.
        replications: Replications = Replications::Fixed(10), "ten, which makes the Student-t factor of a 95 % interval 2.3.";
        /// What makes the runs: "sim" simulates them, "live" sends real packets through redtail's queues, "live-tc" through the kernel's; "linux" runs a Linux kernel in a virtual machine, with its TCP and its queues, "linux-tcp" with its TCP and redtail's queues. The option `--backend` takes its place.
        backend: Option<String>, "sim.";
        /// Seed of all random numbers: the same seed gives the same results, byte for byte.
        seed: u64 = 1, "ours; any number will do.";
        /// One bottleneck link that all traffic crosses. Give either this or `chain`.
        bottleneck: Option<HopParams>;
        /// Several bottleneck links in a row. Give either this or `bottleneck`.
        chain: Option<ChainParams>;
        /// The `host_jitter` of the groups that give none: the maximum of a random time that each packet takes in its sending host; up to 1 s. "0 s" switches it off. Backends with real senders apply only a value that the file gives.
        host_jitter: Option<Span>, "200 us, or the transmission time of a packet of 1500 B at the slowest link that the group crosses, if that is less. Network adapters interrupt a sender at most once in 50 to 250 us (Linux, e1000, InterruptThrottleRate), and shares of flows with different round-trip times are then nearer to a kernel's (docs/explanation/phase-effects.md). A packet's time is enough to prevent phase effects (Floyd and Jacobson 1992). None with the `ns2-` presets: `overhead_` of ns-2's TCP is 0.";
        /// Hosts on which several groups sit, by a name of yours: `[hosts.NAME]`, and `hosts = "NAME"` in the groups.
        hosts: Option<BTreeMap<String, HostsParams>>;
        /// The groups of flows.
        traffic: Vec<TrafficParams>;
        /// Times at which results are split: metrics are also reported for each phase from one of these times to the next. With "auto", the times are every change of a rate and every fixed start and stop of a group.
        phases: Option<Phases>;
        /// Time series to record; without it there are none.
        series: Option<SeriesParams>;
        /// The event log to record; without it there is none. The option `--events` asks for one too.
        events: Option<EventsParams>;
        /// What a run measures of each packet beside what it always measures: it takes time, so it is measured only where this key asks for it. "one_way_delay": of TCP data the one-way delay, and of all groups its variation. "round_trip": from each TCP segment to its acknowledgement. "loss_by_class": losses of SYNs, acknowledgements, data and retransmissions. It changes nothing else in a result.
        record: Vec<Record> = [], "none: it takes time for every packet.";
        /// The most flows that a run may have for its table of flows to be kept; 0 keeps none. Connections of users count as flows. In an experiment of 1000 runs or more, tables are kept only if this key is given.
        keep_flows: Option<u64>, "1000, which takes 130 kB for each run.";
        /// What the programs of groups of kind `program` find in the virtual machine of the backends "linux" and "linux-tcp". Other backends run this computer's programs.
        programs: Option<RootParams>;
        /// What tables and figures show; without it, what suits the traffic. It changes no run.
        report: Option<ReportParams>;
        /// Metrics that follow from others, each a name with a formula: `share = "bbr.goodput / goodput"`, or a table with the keys of a [derived metric](#derived-metric). They are computed for each replication and are used like all other metrics. They change no run.
        metrics: Option<DerivedMetrics>;
        /// What has to hold of the results, each by a name of yours: `"uses the line" = "cubic.goodput >= 9 Mbit/s"`, or a table with the keys of an [expectation](#expectation). `redtail expect` judges them. They change no run.
        expect: Option<Expectations>;
    }
}

shared_keys! { $
    /// The keys of a link, which a hop has too: [`LinkParams`] and [`HopParams`] name them in their order.
    link_keys {
        /// Transmission rate, up to "8000 Gbit/s". Left out with `rate_trace`, it is the trace's mean.
        rate: Rate;
        /// Propagation delay, one way.
        delay: Span;
        /// The queue in front of the transmitter.
        queue: QueueParams;
        /// A policer in front of the queue: packets above a rate are dropped or get another DSCP, which the queue then sees. Without it no packet is policed.
        policer: Option<PolicerParams>;
        /// Packets of a station share a transmission with a fixed overhead, as in 802.11. Without it each packet is a transmission of its own, and takes its size divided by the rate.
        airtime: Option<AirtimeParams>;
        /// What happens to packets after their transmission: losses, duplicates, reordering, jitter, a delay that changes. Without it each packet arrives once, in order, after `delay`.
        wire: Option<WireParams>;
        /// Times at which the rate changes, or a table with a period and a law, the keys of a [rate law](#rate-law); the packet in transmission continues at the new rate. "0 bit/s" is an outage: nothing is sent, and packets wait. Queues keep the parameters that they computed from `rate`; a shaper with `follow_after` follows.
        #[serde(skip_serializing_if = "RateChanges::is_empty")]
        rate_changes: RateChanges = RateChanges::default(), "none: the rate is constant.";
        /// A trace of delivery opportunities in place of a rate, in the format of mahimahi's mm-link: each line is the millisecond of an opportunity to send 1500 bytes, and the trace repeats at its end. A path is relative to the experiment's file.
        rate_trace: Option<RateTrace>;
        /// What the link adds to each packet, which makes its transmission longer: words of tc-cake ("atm", "pppoe-vcmux", "pppoe-ptm", "ethernet ether-vlan", "docsis"), or a table with the keys of an [link overhead](#link-overhead). Queues do not count it.
        overhead: Option<Overhead>, "none: a packet takes its own size, that of the IP packet.";
    }
}

params! {
    /// A link in one direction: a queue, a transmitter and a propagation delay.
    #[schemars(rename = "LinkSpec")]
    pub struct LinkParams {
        link_keys!(rate, delay, queue, policer, airtime, wire, rate_changes, rate_trace, overhead);
    }
}

params! {
    /// A bottleneck: a link, and if `return` is given another one for the opposite direction.
    #[schemars(rename = "Hop")]
    pub struct HopParams {
        /// Name of a hop of a chain, in keys and in results; letters, digits, `_` and `-`. It changes no random number.
        name: Option<String>, "`hop` and the number of the hop, counted from 1.";
        link_keys!(rate, delay, queue, policer, airtime, wire);
        /// With `"shared"`, this link and its `return` share one transmitter: one of them sends at a time.
        medium: Option<Medium>, "none: each direction has its own transmitter.";
        /// The link of the opposite direction, which can be congested too. Without it that direction
        /// takes no time and never drops; the groups' `return_delay` can give it a delay.
        return_link as "return": Option<LinkParams>;
        link_keys!(rate_changes, rate_trace, overhead);
    }
}

params! {
    /// Several bottlenecks in a row.
    #[schemars(rename = "Chain")]
    pub struct ChainParams {
        /// The bottlenecks, in the order in which forward traffic meets them.
        #[schemars(length(min = 1))]
        hop: Vec<HopParams>;
    }
}

params! {
    /// Hosts that several groups share, named as the table. The keys are those of a group in forward direction; in a
    /// group of the opposite direction the hosts that receive send.
    #[schemars(rename = "Hosts")]
    pub struct HostsParams {
        /// Number of hosts at each end. Flow `i` of each group sits on host `i` modulo this.
        #[schemars(range(min = 1, max = 1_000_000))]
        number: Option<u32>, "the length of the longest list dealt out, else 1.";
        /// Rate of the sending hosts' access links; dealt out to the hosts, as all that follows.
        access_rate: Option<Dealt<Rate>>, "the `access_rate` of the groups.";
        /// One-way propagation delay of the sending hosts' access links.
        access_delay: Option<Dealt<Span>>, "no delay, the minimum.";
        /// Rate of the receiving hosts' access links.
        exit_rate: Option<Dealt<Rate>>, "the `exit_rate` of the groups.";
        /// One-way propagation delay of the receiving hosts' access links.
        exit_delay: Option<Dealt<Span>>, "no delay, the minimum.";
        /// One-way propagation delay of the way back, in addition to that of the return links.
        return_delay: Option<Dealt<Span>>, "no delay, the minimum.";
        /// First hop of a chain that the data crosses: its name, or its number, counted from 1.
        first_hop: Option<ChainHop>, "the whole chain.";
        /// Last hop of a chain that the data crosses: its name, or its number, counted from 1.
        last_hop: Option<ChainHop>, "the whole chain.";
    }
}

params! {
    /// Time series to record. Recording never changes a run.
    #[schemars(rename = "SeriesRequest")]
    pub struct SeriesParams {
        /// Time between two samples. A run has at most 50 million rows, one for each queue and flow at each time.
        interval: Span;
        /// Record, for every queue, its length, the average and probability of its control law, and since the sample before: arrivals, drops, marks and mean queueing delay.
        queues: bool = true, "on: queues are what is compared.";
        /// Of every flow: congestion window, slow start threshold, data in flight, smoothed round-trip
        /// time, pacing rate, bytes delivered.
        windows: bool = false, "off: a series for each flow takes much space.";
        /// Record the goodput of every group.
        goodput: bool = true, "on: a row for each group takes little space.";
        /// Number of replications of each case that are recorded, counted from the first.
        #[schemars(range(min = 1))]
        replications: u32 = 1, "ours: one run shows the course.";
    }
}

params! {
    /// The root filesystem of programs in a virtual machine. What is in it is a part of what a run is known by.
    #[schemars(rename = "Root")]
    pub struct RootParams {
        /// A folder, or an archive of tar, that is `/` for the programs; relative to the experiment file. It has all that they need, `sh` included.
        root: Option<String>, "none: the programs that the command lines name, `sh`, and their libraries are taken from this computer.";
        /// Without `root`, what is taken from this computer as well: programs by their names, and files and folders by their absolute paths. A program of Python has the library of Python with it, one of a virtual environment the packages, too.
        add: Vec<String> = [], "none.";
    }
}

params! {
    /// What tables and figures show. It changes no run, and is no part of what a run is known by.
    #[schemars(rename = "Report")]
    pub struct ReportParams {
        /// Names of metrics, in the order in which they are shown. A name with `*` stands for all that fit: `"web.*"`, `"*.one_way_delay_p99"`. `redtail list metrics FILE` has the names. The option `--metrics` takes its place.
        #[schemars(length(min = 1))]
        metrics: Vec<String>;
    }
}

/// Where the bottlenecks are.
#[derive(Debug, Clone, PartialEq)]
pub enum Topology {
    /// One, with any number of access links around it (a dumbbell).
    Bottleneck(Box<HopParams>),
    /// Several in a row, at least one.
    Chain(Vec<HopParams>),
}

impl Topology {
    /// The bottlenecks, in the order in which forward traffic meets them.
    pub fn hops(&self) -> &[HopParams] {
        match self {
            Topology::Bottleneck(hop) => std::slice::from_ref(hop.as_ref()),
            Topology::Chain(hops) => hops,
        }
    }

    /// The same, to be changed.
    pub fn hops_mut(&mut self) -> &mut [HopParams] {
        match self {
            Topology::Bottleneck(hop) => std::slice::from_mut(hop.as_mut()),
            Topology::Chain(hops) => hops,
        }
    }

    /// What results and keys call the hop with this index: `bottleneck`; in a chain the name that the file gives, or
    /// `hop1`, `hop2`, ...
    pub fn hop_name(&self, index: usize) -> String {
        let given = self.hops().get(index).and_then(|hop| hop.name.clone());
        given.unwrap_or_else(|| self.hop_place(index))
    }

    /// The hop with this index by its place alone: `bottleneck`, or `hop1`, `hop2`, ...
    fn hop_place(&self, index: usize) -> String {
        match self {
            Topology::Bottleneck(_) => "bottleneck".to_owned(),
            Topology::Chain(_) => format!("hop{}", index + 1),
        }
    }

    /// The dotted key of the hop with this index in the experiment file.
    pub(crate) fn hop_key(&self, index: usize) -> String {
        match self {
            Topology::Bottleneck(_) => self.hop_name(index),
            Topology::Chain(_) => format!("chain.{}", self.hop_name(index)),
        }
    }

    /// Every link with its dotted key in the experiment file, the index of its hop and its direction.
    pub fn links(&self) -> Vec<(String, LinkParams, usize, Direction)> {
        let mut links = Vec::new();
        for (index, hop) in self.hops().iter().enumerate() {
            let key = self.hop_key(index);
            let back = hop.return_link.clone();
            let back = back.map(|link| (format!("{key}.return"), link, index, Direction::Reverse));
            links.push((key, hop.forward(), index, Direction::Forward));
            links.extend(back);
        }
        links
    }

    /// The name in results of the link of the hop with this index in this direction: `bottleneck` or
    /// `hop1`, `return` or, in a chain of several, `hop1.return`.
    pub fn link_name(&self, index: usize, direction: Direction) -> String {
        self.link_of(self.hop_name(index), direction)
    }

    /// The same with the place of the hop for its name: random numbers follow from it, so that names change no run.
    pub fn link_place(&self, index: usize, direction: Direction) -> String {
        self.link_of(self.hop_place(index), direction)
    }

    fn link_of(&self, hop: String, direction: Direction) -> String {
        match direction {
            Direction::Forward => hop,
            Direction::Reverse if self.hops().len() == 1 => "return".to_owned(),
            Direction::Reverse => format!("{hop}.return"),
        }
    }

    /// What stands in front of the metrics of this link in results: nothing for the forward link of a
    /// single hop, otherwise the name of the link and a dot.
    pub fn link_prefix(&self, index: usize, direction: Direction) -> String {
        match direction {
            Direction::Forward if self.hops().len() == 1 => String::new(),
            _ => format!("{}.", self.link_name(index, direction)),
        }
    }
}

impl LinkParams {
    /// The shortest propagation delay that it has at any time.
    pub fn least_delay(&self) -> Span {
        let wire = self.wire.as_ref();
        wire.map_or(self.delay, |wire| wire.least_delay(self.delay))
    }

    /// The largest rate that it has at any time; of a trace the largest over 100 ms.
    pub fn largest_rate(&self) -> Rate {
        let stations = self.airtime.iter().flat_map(|air| air.rates.values());
        let stations = stations.copied().max().unwrap_or(self.rate);
        stations.max(self.largest_of_rates())
    }

    fn largest_of_rates(&self) -> Rate {
        match &self.rate_trace {
            Some(trace) => trace.largest_rate(),
            None => self.rate.max(self.rate_changes.largest_rate()),
        }
    }
}

impl HopParams {
    /// The link of the forward direction.
    pub fn forward(&self) -> LinkParams {
        LinkParams {
            rate: self.rate,
            delay: self.delay,
            queue: self.queue.clone(),
            policer: self.policer.clone(),
            airtime: self.airtime.clone(),
            rate_changes: self.rate_changes.clone(),
            rate_trace: self.rate_trace.clone(),
            overhead: self.overhead.clone(),
            wire: self.wire.clone(),
        }
    }
}

/// What a run can measure of each packet, where the file asks for it.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Record {
    /// Of TCP data the one-way delay, and of all groups its variation (RFC 3393, RFC 5481).
    OneWayDelay,
    /// From each segment to its acknowledgement.
    RoundTrip,
    /// Losses of SYNs, acknowledgements, data and retransmissions.
    LossByClass,
}

/// Time series of one run.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Series {
    /// Time from one sample to the next.
    pub interval: Span,
    /// Whether to sample queues.
    pub queues: bool,
    /// Whether to sample flows.
    pub windows: bool,
    /// Whether to sample groups.
    #[serde(default)]
    pub goodput: bool,
}

/// One run. In simulation it determines every byte of the result.
///
/// Its JSON has every default filled in and its keys in one order, so that equal scenarios have
/// equal texts; the text is what is hashed and stored. Names and labels are no part of it.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(try_from = "ScenarioText", into = "ScenarioText")]
pub struct Scenario {
    /// How long the run lasts.
    pub duration: Span,
    /// How much of the beginning is left out of all statistics.
    pub warmup: Span,
    /// Where the random numbers start from.
    pub seed: u64,
    /// Which replication it is, counted from 0.
    pub replication: u32,
    /// The links.
    pub topology: Topology,
    /// The groups of flows, in the order of the file.
    pub traffic: Vec<TrafficParams>,
    /// The names of the groups whose `host_jitter` is the default. It models what real hosts do, so real
    /// hosts go without it ([`Scenario::for_real_hosts`]).
    pub host_jitter_by_default: Vec<String>,
    /// When one phase ends and the next begins, increasing, within the measurement period.
    pub phases: Vec<Span>,
    /// Time series to record, if any.
    pub series: Option<Series>,
    /// The event log to record, if any.
    pub events: Option<Events>,
    /// What is measured of each packet beside what is always measured, each once, in the order of [`Record`].
    pub record: Vec<Record>,
    /// The most flows of which a table is kept; `None` is the default of the engine.
    pub keep_flows: Option<u64>,
}

/// The form of scenarios that this code writes and reads.
const SCENARIO_VERSION: u32 = 1;

impl Scenario {
    /// The canonical text.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("a scenario has a text form")
    }

    /// Whether something is recorded of each packet or flow when it happens.
    pub fn watches(&self) -> bool {
        self.events.is_some() || !self.record.is_empty()
    }

    /// The congestion controls of a kernel that its groups ask for: the key of each, and the name. Only a kernel can
    /// run such a scenario.
    pub fn kernel_controls(&self) -> Vec<(String, &str)> {
        let asked = self.traffic.iter().filter_map(|group| {
            let name = group.tcp()?.params.kernel_control.as_deref()?;
            Some((
                format!("traffic.{}.tcp.kernel_control", group.access().name),
                name,
            ))
        });
        asked.collect()
    }

    /// The rates of a link of the hop of this number, each with the time from which it applies; the first from the start
    /// of the run. What its law draws depends on the seed, the replication and the place of the link.
    pub fn rate_steps(
        &self,
        hop: usize,
        direction: Direction,
        link: &LinkParams,
    ) -> Vec<(Time, Rate)> {
        let name = format!("rate.{}", self.topology.link_place(hop, direction));
        let stream = Stream::named(self.seed, self.replication, &name);
        link.rate_changes.steps(link.rate, self.duration, stream)
    }

    /// The same run on real hosts: without the random delays that are a model of them, but with those that
    /// the file gives.
    #[must_use]
    pub fn for_real_hosts(mut self) -> Scenario {
        let modelled = std::mem::take(&mut self.host_jitter_by_default);
        for group in &mut self.traffic {
            if modelled.iter().any(|name| name == group.access().name) {
                group.set_host_jitter(None);
            }
        }
        self
    }

    /// Reads what [`Scenario::to_json`] has written.
    ///
    /// # Errors
    /// If the text is no scenario of this version.
    pub fn from_json(text: &str) -> Result<Scenario, SpecError> {
        let node = Node::from_json(text, None)?;
        de::decode(&node).map_err(|fault| SpecError::new(None, vec![fault.into_problem()]))
    }
}

#[derive(Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct ScenarioText {
    version: u32,
    duration: Span,
    warmup: Span,
    seed: u64,
    replication: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    bottleneck: Option<HopParams>,
    #[serde(skip_serializing_if = "Option::is_none")]
    chain: Option<ChainParams>,
    traffic: Vec<TrafficParams>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    host_jitter_by_default: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    phases: Vec<Span>,
    #[serde(skip_serializing_if = "Option::is_none")]
    series: Option<Series>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    events: Option<Events>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    record: Vec<Record>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    keep_flows: Option<u64>,
}

impl From<Scenario> for ScenarioText {
    fn from(scenario: Scenario) -> Self {
        let (bottleneck, chain) = match scenario.topology {
            Topology::Bottleneck(hop) => (Some(*hop), None),
            Topology::Chain(hop) => (None, Some(ChainParams { hop })),
        };
        ScenarioText {
            version: SCENARIO_VERSION,
            duration: scenario.duration,
            warmup: scenario.warmup,
            seed: scenario.seed,
            replication: scenario.replication,
            bottleneck,
            chain,
            traffic: scenario.traffic,
            host_jitter_by_default: scenario.host_jitter_by_default,
            phases: scenario.phases,
            series: scenario.series,
            events: scenario.events,
            record: scenario.record,
            keep_flows: scenario.keep_flows,
        }
    }
}

impl TryFrom<ScenarioText> for Scenario {
    type Error = String;

    fn try_from(text: ScenarioText) -> Result<Self, String> {
        if text.version != SCENARIO_VERSION {
            return Err(format!(
                "scenario version {} is not {SCENARIO_VERSION}, the one this redtail runs",
                text.version
            ));
        }
        if let Some(group) = text.traffic.iter().find(|group| group.load().is_some()) {
            return Err(format!(
                "the group {:?} has a load and no number of users: it has to be calibrated first",
                group.access().name
            ));
        }
        let mut traffic = text.traffic;
        shared_hosts::count(&mut traffic);
        Ok(Scenario {
            duration: text.duration,
            warmup: text.warmup,
            seed: text.seed,
            replication: text.replication,
            topology: topology(text.bottleneck, text.chain)
                .ok_or("a scenario has either a bottleneck or a chain")?,
            traffic,
            host_jitter_by_default: text.host_jitter_by_default,
            phases: text.phases,
            series: text.series,
            events: text.events,
            record: text.record,
            keep_flows: text.keep_flows,
        })
    }
}

/// The one of the two that is given; `None` if it is not exactly one.
pub(crate) fn topology(
    bottleneck: Option<HopParams>,
    chain: Option<ChainParams>,
) -> Option<Topology> {
    match (bottleneck, chain) {
        (Some(hop), None) => Some(Topology::Bottleneck(Box::new(hop))),
        (None, Some(chain)) if !chain.hop.is_empty() => Some(Topology::Chain(chain.hop)),
        _ => None,
    }
}
