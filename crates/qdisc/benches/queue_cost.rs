//! Measures what a packet costs in each queue discipline.
//!
//! `cargo bench -p redtail-qdisc --bench queue_cost -- [KIND...]` puts each discipline (all,
//! if none is named) before a link of 1 Gbit/s that is always busy, holds its backlog at 50
//! and at 5,000 packets of 1500 B from 10 and from 10,000 flows, and prints one line of JSON
//! for each: nanoseconds per packet that leaves. A packet costs what the engine asks of a
//! queue for it: enqueue, dequeue, the backlog and the next wakeup after each, and the
//! wakeups in between.
//!
//! Parameters scale with the backlog, so that each control law is between its thresholds or
//! near its target and takes the same decisions at either; where a discipline can mark, it
//! marks. What it drops is replaced at once, and counts as cost of the packets that leave. A
//! discipline without parameters of its own in this file is measured with its example, whose sizes
//! in packets are scaled so that the limit is four times the backlog.
//!
//! RED is measured twice: as a discipline among all, and by its own type (`red, alone`); so is
//! CAKE, whose turns depend on the flows of a host: with 64 hosts on either side, and with one.

// This program exists to read the clock.
#![allow(clippy::disallowed_methods)]

#[path = "../tests/it/common/examples.rs"]
mod examples;

use std::sync::Arc;
use std::time::Instant;

use redtail_core::{Bytes, Dscp, Ecn, FlowId, Packet, Rate, Span, Stream, Time};
use redtail_qdisc::queues::red::Red;
use redtail_qdisc::{
    AnyQueue, DropReason, FlowFacts, FlowTable, LinkFacts, Outlook, QueueContext, QueueDiscipline,
    QueueKind, QueueParams, Sink,
};

const RATE: Rate = Rate::from_bps(1_000_000_000);
const SIZE: u32 = 1500;
const BACKLOGS: [u64; 2] = [50, 5_000];
const FLOWS: [u32; 2] = [10, 10_000];
/// Hosts on either side of the link.
const HOSTS: u32 = 64;
/// Departures before measuring: the averages settle and the backlog is turned over.
const SETTLING: u64 = 10_000;
/// Departures of a trial without measurement.
const TRIAL: u64 = 500;
/// Departures measured.
const MEASURED: u64 = 20_000;

/// As large as the simulator's packet.
#[derive(Clone, Copy)]
struct Probe {
    stamp: Time,
    _content: [u64; 2],
    flow: u32,
    size: u16,
    dscp: Dscp,
    ecn: Ecn,
}

const _: () = assert!(size_of::<Probe>() == 32);

impl Packet for Probe {
    fn size(&self) -> Bytes {
        Bytes::new(u64::from(self.size))
    }
    fn flow(&self) -> FlowId {
        FlowId(self.flow)
    }
    fn dscp(&self) -> Dscp {
        self.dscp
    }
    fn set_dscp(&mut self, dscp: Dscp) {
        self.dscp = dscp;
    }
    fn ecn(&self) -> Ecn {
        self.ecn
    }
    fn mark_ce(&mut self) -> bool {
        if self.ecn == Ecn::NotEct {
            return false;
        }
        self.ecn = Ecn::Ce;
        true
    }
    fn enqueued(&self) -> Time {
        self.stamp
    }
    fn set_enqueued(&mut self, now: Time) {
        self.stamp = now;
    }
}

#[derive(Default)]
struct Counts {
    drops: u64,
    marks: u64,
}

impl Sink<Probe> for Counts {
    fn dropped(&mut self, _: Probe, _: DropReason, _: Time) {
        self.drops += 1;
    }
    fn marked(&mut self, _: &Probe, _: Time) {
        self.marks += 1;
    }
}

impl Sink<Probe> for &mut Counts {
    fn dropped(&mut self, packet: Probe, reason: DropReason, now: Time) {
        Counts::dropped(self, packet, reason, now);
    }
    fn marked(&mut self, packet: &Probe, now: Time) {
        Counts::marked(self, packet, now);
    }
}

/// The table of a discipline that lets this backlog stand, with the kind as a key: the form that the types
/// themselves read. `None` for a discipline whose scaled example lets the backlog stand.
fn configuration(kind: &str, backlog: u64) -> Option<String> {
    let (half, most) = (backlog / 2, backlog * 2);
    let limit = format!("limit = \"{} packets\"", backlog * 4);
    let thresholds = format!("min_th = \"{half} packets\"\nmax_th = \"{most} packets\"");
    // What the backlog delays a packet by, and half of that.
    let delay_us = backlog * 12;
    let target = format!("target = \"{} us\"", delay_us / 2);
    let tail_drop = format!("{{ tail-drop = {{ {limit} }} }}");
    let classes = |own: [&str; 2]| {
        let [odd, even] = own;
        format!(
            "class = [\n  {{ name = \"odd\", match = {{ port = 443 }}, {odd} queue = {tail_drop} }},\n  \
             {{ name = \"even\", {even} queue = {tail_drop} }},\n]"
        )
    };
    let parameters = match kind {
        "red" | "adaptive-red" | "self-configuring-red" | "dynamic-threshold-red" | "choke" => {
            format!("{limit}\n{thresholds}\necn = true")
        }
        // Thresholds of the long queue; what is short is bound by the limit alone.
        "red-tail" => format!(
            "{limit}\n{thresholds}\necn = true\nshort_min_th = \"{half} packets\"\nshort_max_th = \"{most} packets\""
        ),
        "wred" => format!(
            "{limit}\necn = true\nprofiles = [\n  {{ dscp = [\"AF11\"], min_th = \"{backlog} packets\", max_th = \"{most} packets\", max_p = 0.02 }},\n  \
             {{ min_th = \"{half} packets\", max_th = \"{most} packets\", max_p = 0.1 }},\n]"
        ),
        "pi" => {
            format!(
                "{limit}\nq_ref = \"{backlog} packets\"\na = 1.822e-5\nb = 1.816e-5\necn = true"
            )
        }
        "pie" => format!("{limit}\n{target}\necn = true\nmax_ecn = 1.0"),
        "pi2" => format!("{limit}\n{target}\necn = true"),
        "dualpi2" => format!("{limit}\n{target}"),
        "step" => format!("{limit}\nthreshold = \"{half} packets\""),
        "rem" => format!("{limit}\ntarget = \"{backlog} packets\"\necn = true"),
        "blue" => format!("{limit}\nthreshold = \"{most} packets\"\necn = true"),
        "sred" => format!("{limit}\nmax_p = 0.01"),
        "avq" => format!("{limit}\necn = true"),
        "gsp" => format!("{limit}\nthreshold = \"{most} packets\"\necn = true"),
        "docsis-pie" => format!("{limit}\n{target}\nmean_packet = \"1500 B\""),
        // One flow of the ten may hold all that waits.
        "fq" => format!("{limit}\nflow_limit = {}", backlog * 4),
        "codel" | "fq-codel" | "cobalt" => format!("{limit}\n{target}\necn = true"),
        "sfq" => format!("{limit}\ndepth = {}", backlog * 4),
        "cake" => format!("{limit}\nrate = \"1 Gbit/s\"\nrtt = \"1 s\""),
        "sfb" => format!(
            "{limit}\nbin_size = {}\nmax = {}\necn = true",
            backlog * 4,
            backlog * 8
        ),
        "fq-pie" => format!("{limit}\n{target}\necn = true\nmax_ecn = 1.0"),
        "prio" => classes(["", ""]),
        "drr" => classes(["quantum = \"3000 B\",", "quantum = \"1500 B\","]),
        "wfq" => classes(["weight = 2,", "weight = 1,"]),
        "tbf" => format!("rate = \"1 Gbit/s\"\nburst = \"15 kB\"\nqueue = {tail_drop}"),
        "htb" => {
            let leaves = classes([
                "rate = \"600 Mbit/s\", ceil = \"1 Gbit/s\",",
                "rate = \"300 Mbit/s\", ceil = \"1 Gbit/s\",",
            ]);
            format!("class = [{{ name = \"link\", rate = \"1 Gbit/s\", {leaves} }}]")
        }
        _ => return None,
    };
    Some(format!("[{kind}]\n{parameters}\n"))
}

/// The link that this many flows cross, each between two of this many hosts on either side.
fn link(flows: u32, hosts: u32) -> LinkFacts {
    let facts = (0..flows).map(|flow| FlowFacts {
        group: flow % 2,
        port: if flow % 2 == 0 { 80 } else { 443 },
        sender: flow % hosts,
        receiver: hosts + flow / hosts % hosts,
        ..FlowFacts::default()
    });
    let groups = ["always", "step"].map(str::to_owned).to_vec();
    LinkFacts {
        tcp_flows: u64::from(flows),
        mean_round_trip: Some(Span::from_ms(100)),
        max_round_trip: Some(Span::from_ms(100)),
        round_trips: vec![(Span::from_ms(100), f64::from(flows))],
        largest_packet: Bytes::new(u64::from(SIZE)),
        tcp_packet: Bytes::new(u64::from(SIZE)),
        flows: Arc::new(FlowTable::new(groups, facts.collect())),
        ..LinkFacts::of_rate(RATE)
    }
}

/// What a test says when it fails.
const STANDS: &str = "the discipline drops so much that the backlog does not stand: give it parameters in `configuration`";

/// A queue with its link and the senders that keep its backlog up.
struct Place<Q> {
    queue: Q,
    backlog: u64,
    flows: u32,
    /// Whether flows with odd numbers are L4S senders.
    low_latency: bool,
    /// State of the generator that draws flows.
    drawn: u64,
    now: Time,
    counts: Counts,
    /// Packets waiting.
    waiting: u64,
    /// When the queue is to be woken.
    armed: Option<Time>,
}

/// A queue as a link uses it.
trait Served: QueueDiscipline<Probe> {
    fn arrive(&mut self, packet: Probe, now: Time, counts: &mut Counts) -> Outlook;

    fn depart(&mut self, now: Time, counts: &mut Counts, next: &mut Option<Probe>) -> Outlook;
}

impl Served for AnyQueue<Probe> {
    #[inline(always)]
    fn arrive(&mut self, packet: Probe, now: Time, counts: &mut Counts) -> Outlook {
        AnyQueue::arrive(self, packet, now, counts)
    }

    #[inline(always)]
    fn depart(&mut self, now: Time, counts: &mut Counts, next: &mut Option<Probe>) -> Outlook {
        AnyQueue::depart(self, now, || counts, next)
    }
}

impl Served for Red<Probe> {
    #[inline(always)]
    fn arrive(&mut self, packet: Probe, now: Time, counts: &mut Counts) -> Outlook {
        self.enqueue(packet, now, counts);
        outlook(self)
    }

    #[inline(always)]
    fn depart(&mut self, now: Time, counts: &mut Counts, next: &mut Option<Probe>) -> Outlook {
        *next = self.dequeue(now, counts);
        outlook(self)
    }
}

fn outlook(queue: &impl QueueDiscipline<Probe>) -> Outlook {
    Outlook {
        packets: queue.backlog().packets,
        wakeup: queue.next_wakeup().time_or_max(),
    }
}

impl<Q: Served> Place<Q> {
    /// A packet of some flow arrives; says how many wait then.
    #[inline]
    fn arrive(&mut self) -> u64 {
        // Knuth's MMIX generator: cheap beside what is measured.
        self.drawn = self.drawn.wrapping_mul(6_364_136_223_846_793_005);
        self.drawn = self.drawn.wrapping_add(1_442_695_040_888_963_407);
        let flow = (((self.drawn >> 32) * u64::from(self.flows)) >> 32) as u32;
        let ecn = if self.low_latency && flow % 2 == 1 {
            Ecn::Ect1
        } else {
            Ecn::Ect0
        };
        let packet = Probe {
            stamp: self.now,
            _content: [self.drawn; 2],
            flow,
            size: SIZE as u16,
            dscp: Dscp::BEST_EFFORT,
            ecn,
        };
        // As from a line: nothing about it is known beforehand.
        let packet = std::hint::black_box(packet);
        let outlook = self.queue.arrive(packet, self.now, &mut self.counts);
        self.arm(outlook.wakeup);
        outlook.packets
    }

    /// Notes when the queue is to be woken, as the engine does.
    #[inline]
    fn arm(&mut self, wakeup: Time) {
        if wakeup < Time::MAX && self.armed.is_none_or(|armed| wakeup < armed) {
            self.armed = Some(wakeup);
        }
    }

    /// Wakes the queue if its time has come.
    #[inline]
    fn wake(&mut self) {
        if self.armed.is_some_and(|at| at <= self.now) {
            self.wake_now();
        }
    }

    #[cold]
    fn wake_now(&mut self) {
        self.armed = None;
        if self.queue.next_wakeup().is_due(self.now) {
            self.queue.on_wakeup(self.now);
        }
        let next = self.queue.next_wakeup().time();
        self.arm(next.filter(|&at| at > self.now).unwrap_or(Time::MAX));
    }

    /// Fills the queue at the link's rate while nothing leaves.
    fn fill(&mut self, each: Span) {
        let mut arrived = 0;
        while self.waiting < self.backlog {
            arrived += 1;
            assert!(arrived < 100 * self.backlog, "{STANDS}");
            self.now += each;
            self.wake();
            self.waiting = self.arrive();
        }
    }

    /// Lets packets leave, one in `each`, and keeps the backlog up.
    #[inline(always)]
    fn serve(&mut self, departures: u64, each: Span) {
        let mut waiting = self.waiting;
        for _ in 0..departures {
            self.now += each;
            self.wake();
            // The packet that leaves is replaced, and what was dropped meanwhile.
            let mut arrived = 0;
            while waiting <= self.backlog {
                waiting = self.arrive();
                arrived += 1;
                assert!(arrived < 10_000, "{STANDS}");
            }
            let mut asked = 0;
            let outlook = loop {
                let mut next = None;
                let outlook = self.queue.depart(self.now, &mut self.counts, &mut next);
                if std::hint::black_box(next).is_some() {
                    break outlook;
                }
                // A shaper's packet is not due yet.
                let due = outlook.wakeup;
                assert!(due < Time::MAX, "packets wait");
                self.arm(due);
                self.now = self.now.max(due);
                self.wake();
                asked += 1;
                assert!(asked < 100, "woken in time, the queue gives nothing");
            };
            waiting = outlook.packets;
            self.arm(outlook.wakeup);
        }
        self.waiting = waiting;
    }

    /// What is measured: a function of its own, whose instructions can be counted by name.
    #[inline(never)]
    fn measured(&mut self, each: Span) {
        self.serve(MEASURED, each);
    }
}

/// What a queue is measured with.
#[derive(Clone, Copy)]
struct Setting {
    backlog: u64,
    flows: u32,
    /// Whether to measure; otherwise only a short trial shows that the backlog stands.
    measures: bool,
}

/// Measures one queue and prints the line.
fn measure<Q: Served>(name: &str, queue: Q, kind: &str, setting: Setting) {
    let Setting { backlog, flows, .. } = setting;
    let mut place = Place {
        queue,
        backlog,
        flows,
        low_latency: kind == "dualpi2",
        drawn: 1,
        now: Time::ZERO,
        counts: Counts::default(),
        waiting: 0,
        armed: None,
    };
    let each = RATE.tx_time(Bytes::new(u64::from(SIZE)));
    place.fill(each);
    if !setting.measures {
        place.serve(TRIAL, each);
        return;
    }
    place.serve(SETTLING, each);
    place.counts = Counts::default();
    let start = Instant::now();
    place.measured(each);
    let seconds = start.elapsed().as_secs_f64();
    println!(
        "{{\"kind\": {name:?}, \"backlog\": {backlog}, \"flows\": {flows}, \"packets\": {MEASURED}, \
         \"ns_per_packet\": {:.2}, \"drops_per_packet\": {:.4}, \"marks_per_packet\": {:.4}}}",
        seconds * 1e9 / MEASURED as f64,
        place.counts.drops as f64 / MEASURED as f64,
        place.counts.marks as f64 / MEASURED as f64,
    );
}

/// The discipline of this kind, whose example has the keys `keys`, as it is measured at `link`.
fn specification(kind: &str, keys: &str, backlog: u64, link: &LinkFacts) -> QueueParams {
    let spec: QueueParams = match configuration(kind, backlog) {
        Some(text) => toml::from_str(&text).unwrap_or_else(|error| panic!("{kind}: {error}")),
        None => examples::example(kind, keys, backlog * 4),
    };
    let checked = spec.check().and_then(|()| spec.check_at(link));
    checked.unwrap_or_else(|error| panic!("{kind}: {error}"));
    spec
}

/// Measures a discipline, whose example has the keys `keys`; RED also by its own type and CAKE also with few
/// hosts.
fn measure_kind(kind: &str, keys: &str, setting: Setting) {
    let link = link(setting.flows, HOSTS);
    let spec = specification(kind, keys, setting.backlog, &link);
    let context = QueueContext {
        rate: RATE,
        stream: Stream::named(1, 0, "queue"),
        link: Arc::new(link),
        plugins: redtail_qdisc::plugin::Plugins::default(),
    };
    let queue: AnyQueue<Probe> = spec.build(context.clone());
    measure(kind, queue, kind, setting);
    match &spec {
        QueueParams::Red(params) => {
            let queue = params.build::<Probe>(context);
            measure("red, alone", queue, kind, setting);
        }
        QueueParams::Cake(_) => {
            let link = Arc::new(self::link(setting.flows, 1));
            let queue: AnyQueue<Probe> = spec.build(QueueContext { link, ..context });
            measure("cake, one host", queue, kind, setting);
        }
        _ => {}
    }
}

fn main() {
    let named: Vec<String> = std::env::args()
        .skip(1)
        .filter(|argument| !argument.starts_with("--"))
        .collect();
    // `cargo test` runs this program too, and says so by leaving the flag out.
    let measures = std::env::args().any(|argument| argument == "--bench");
    let wanted = |kind: &str| named.is_empty() || named.iter().any(|name| name == kind);
    // What a plug-in costs is its author's to measure.
    let ours = QueueParams::examples()
        .into_iter()
        .filter(|(kind, _)| *kind != "plugin");
    for (kind, keys) in ours.filter(|(kind, _)| wanted(kind)) {
        for backlog in BACKLOGS {
            for flows in FLOWS {
                let setting = Setting {
                    backlog,
                    flows,
                    measures,
                };
                measure_kind(kind, keys, setting);
            }
        }
    }
}
