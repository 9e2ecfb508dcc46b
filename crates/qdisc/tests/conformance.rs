//! What every discipline keeps to, whatever it does with packets.
//!
//! A new discipline adds a line to [`disciplines`]; the checks know none of them.

mod common;

use std::collections::BTreeMap;

use common::{Heard, Probe, build_on, link_of_four};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use redtail_core::{Bytes, Dscp, Ecn, QueueSize, Rate, Span, Time};
use redtail_qdisc::classify::{OneOrMore, Rule};
use redtail_qdisc::laws::red::Spacing;
use redtail_qdisc::queues::adaptive_red::AdaptiveRedParams;
use redtail_qdisc::queues::drr::{DrrClass, DrrParams};
use redtail_qdisc::queues::dynamic_threshold_red::DynamicThresholdRedParams;
use redtail_qdisc::queues::htb::{HtbClass, HtbParams};
use redtail_qdisc::queues::prio::{PrioClass, PrioParams};
use redtail_qdisc::queues::red::{AboveMaxTh, Gentle, RedParams};
use redtail_qdisc::queues::self_configuring_red::SelfConfiguringRedParams;
use redtail_qdisc::queues::tail_drop::TailDropParams;
use redtail_qdisc::queues::tbf::TbfParams;
use redtail_qdisc::queues::wfq::{WfqClass, WfqParams};
use redtail_qdisc::queues::wred::{Average, Profile, WredParams};
use redtail_qdisc::{AnyQueue, Backlog, DropReason, Internals, Limit, QueueDiscipline, QueueSpec};

const SEVEN_PACKETS: Limit = Limit::packets(7);
const SIX_KB: Limit = Limit::bytes(6000);
const BOTH: Limit = Limit {
    packets: Some(7),
    bytes: Some(6000),
    time: None,
};
/// 6000 B at the link's 1 Mbit/s.
const AS_TIME: Limit = Limit {
    packets: None,
    bytes: None,
    time: Some(Span::from_ms(48)),
};
const LINK: Rate = Rate::from_bps(1_000_000);

fn tail_drop(limit: Limit) -> QueueSpec {
    QueueSpec::TailDrop(TailDropParams { limit })
}

/// RED whose average follows quickly, so that short sequences reach every branch.
fn red(change: impl FnOnce(&mut RedParams)) -> QueueSpec {
    let mut params = RedParams {
        max_p: Some(0.3),
        w_q: Some(0.4),
        spacing: Spacing::Uniform,
        ..RedParams::new(SEVEN_PACKETS, QueueSize::Packets(1), QueueSize::Packets(4))
    };
    change(&mut params);
    QueueSpec::Red(params)
}

fn in_bytes(params: &mut RedParams) {
    params.limit = Some(SIX_KB);
    params.min_th = Some(QueueSize::Bytes(700));
    params.max_th = Some(QueueSize::Bytes(3000));
}

fn ecn(above_max_th: AboveMaxTh, gentle: Gentle) -> impl FnOnce(&mut RedParams) {
    move |params| {
        params.ecn = true;
        params.above_max_th = above_max_th;
        params.gentle = gentle;
    }
}

/// Rules for each but the last of some classes: the first takes flow 0, the second flow 1.
fn rules<const N: usize>(
    classes: [QueueSpec; N],
) -> [(String, Option<OneOrMore<Rule>>, QueueSpec); N] {
    let mut index = 0;
    classes.map(|queue| {
        index += 1;
        let rule = Rule {
            port: Some(OneOrMore::one(999 + index as u16)),
            ..Rule::default()
        };
        let rules = (index < N).then(|| OneOrMore::one(rule));
        (format!("class{index}"), rules, queue)
    })
}

fn prio<const N: usize>(classes: [QueueSpec; N]) -> QueueSpec {
    let class = rules(classes).map(|(name, rules, queue)| PrioClass { name, rules, queue });
    QueueSpec::Prio(PrioParams {
        class: class.into(),
        default: None,
    })
}

/// Quanta of 600 B, 1200 B, ...: below and above the packets' sizes.
fn drr<const N: usize>(classes: [QueueSpec; N]) -> QueueSpec {
    let mut quantum = 0;
    let class = rules(classes).map(|(name, rules, queue)| {
        quantum += 600;
        DrrClass {
            name,
            rules,
            quantum: Bytes::new(quantum),
            queue,
        }
    });
    QueueSpec::Drr(DrrParams {
        class: class.into(),
        default: None,
    })
}

/// Weights 1, 2, ...
fn wfq<const N: usize>(classes: [QueueSpec; N]) -> QueueSpec {
    let mut weight = 0;
    let class = rules(classes).map(|(name, rules, queue)| {
        weight += 1;
        WfqClass {
            name,
            rules,
            weight,
            queue,
        }
    });
    QueueSpec::Wfq(WfqParams {
        class: class.into(),
        default: None,
    })
}

/// A tenth of the link's rate, in bursts that take any packet.
fn tbf(peak_rate: Option<Rate>, queue: QueueSpec) -> QueueSpec {
    QueueSpec::Tbf(TbfParams {
        rate: Rate::from_bps(100_000),
        burst: Bytes::new(4000),
        peak_rate,
        mtu: peak_rate.map(|_| Bytes::new(2500)),
        queue: Box::new(queue),
    })
}

fn htb_class(name: &str, kbps: u64, ceil: u64) -> HtbClass {
    HtbClass {
        name: name.to_owned(),
        rules: None,
        rate: Rate::from_bps(kbps * 1000),
        ceil: Some(Rate::from_bps(ceil * 1000)),
        prio: 0,
        quantum: None,
        burst: Bytes::new(1600),
        cburst: Bytes::new(1600),
        queue: None,
        class: Vec::new(),
    }
}

/// All classes below one that has half the link; the first may not borrow, the second goes
/// before the others.
fn htb<const N: usize>(classes: [QueueSpec; N]) -> QueueSpec {
    let mut index = 0;
    let class = rules(classes).map(|(name, rules, queue)| {
        index += 1;
        HtbClass {
            rules,
            prio: u8::from(index != 2),
            queue: Some(Box::new(queue)),
            ..htb_class(&name, 100, if index == 1 { 100 } else { 600 })
        }
    });
    let all = HtbClass {
        class: class.into(),
        ..htb_class("all", 500, 700)
    };
    let root = HtbClass {
        class: vec![all],
        ..htb_class("root", 800, 800)
    };
    QueueSpec::Htb(HtbParams {
        class: vec![root],
        default: None,
    })
}

/// RED that marks.
fn marking() -> QueueSpec {
    red(ecn(AboveMaxTh::Drop, Gentle::Off))
}

/// Adaptive RED that adapts between one packet and the next.
fn adaptive_red(change: impl FnOnce(&mut AdaptiveRedParams)) -> QueueSpec {
    let mut params = AdaptiveRedParams {
        min_th: Some(QueueSize::Packets(1)),
        max_p: 0.3,
        w_q: Some(0.4),
        interval: Span::from_ms(3),
        spacing: Spacing::Uniform,
        ..AdaptiveRedParams::new(SEVEN_PACKETS)
    };
    change(&mut params);
    QueueSpec::AdaptiveRed(params)
}

/// Self-configuring RED whose average crosses its thresholds often.
fn self_configuring_red(change: impl FnOnce(&mut SelfConfiguringRedParams)) -> QueueSpec {
    let (min_th, max_th) = (QueueSize::Packets(1), QueueSize::Packets(3));
    let mut params = SelfConfiguringRedParams {
        max_p: 0.3,
        w_q: 0.4,
        spacing: Spacing::Uniform,
        ..SelfConfiguringRedParams::new(SEVEN_PACKETS, min_th, max_th)
    };
    change(&mut params);
    QueueSpec::SelfConfiguringRed(params)
}

/// Dynamic thresholds that move between one packet and the next.
fn dynamic_threshold_red(change: impl FnOnce(&mut DynamicThresholdRedParams)) -> QueueSpec {
    let (min_th, max_th) = (QueueSize::Packets(1), QueueSize::Packets(3));
    let mut params = DynamicThresholdRedParams {
        max_p: 0.3,
        w_q: 0.4,
        w_p: 0.2,
        gamma: 0.3,
        interval: Span::from_ms(3),
        spacing: Spacing::Uniform,
        ..DynamicThresholdRedParams::new(SEVEN_PACKETS, min_th, max_th)
    };
    change(&mut params);
    QueueSpec::DynamicThresholdRed(params)
}

/// WRED whose averages follow quickly.
fn wred_params(average: Average) -> WredParams {
    let profile = |dscp: Vec<Dscp>, min_th, max_th| Profile {
        dscp,
        min_th: QueueSize::Packets(min_th),
        max_th: QueueSize::Packets(max_th),
        max_p: 0.3,
    };
    WredParams {
        average,
        w_q: 0.4,
        spacing: Spacing::Uniform,
        ..WredParams::new(
            SEVEN_PACKETS,
            vec![profile(vec![Dscp::EF], 3, 6), profile(vec![], 1, 4)],
        )
    }
}

fn wred(average: Average) -> QueueSpec {
    QueueSpec::Wred(wred_params(average))
}

/// Every discipline, in each configuration that takes another way through its
/// code; and whether that configuration may mark.
#[rustfmt::skip]
fn disciplines() -> Vec<(&'static str, QueueSpec, bool)> {
    vec![
        ("tail drop by packets", tail_drop(SEVEN_PACKETS), false),
        ("tail drop by bytes", tail_drop(SIX_KB), false),
        ("tail drop by both", tail_drop(BOTH), false),
        ("tail drop by time", tail_drop(AS_TIME), false),
        ("RED", red(|_| {}), false),
        ("RED limited by both", red(|red| red.limit = Some(BOTH)), false),
        ("RED spaced by waiting", red(|red| red.spacing = Spacing::Wait), false),
        ("RED without spacing", red(|red| red.spacing = Spacing::None), false),
        ("gentle RED up to twice max_th", red(|red| red.gentle = Gentle::TwiceMaxTh), false),
        ("gentle RED up to the limit", red(|red| red.gentle = Gentle::Limit), false),
        ("RED in byte mode", red(|red| red.byte_mode = true), false),
        ("RED with thresholds in bytes", red(in_bytes), false),
        ("gentle RED in bytes up to the limit", red(|red| { in_bytes(red); red.gentle = Gentle::Limit; }), false),
        ("RED with ECN", red(ecn(AboveMaxTh::Drop, Gentle::Off)), true),
        ("RED with ECN, marking above max_th", red(ecn(AboveMaxTh::Mark, Gentle::Off)), true),
        ("gentle RED with ECN", red(ecn(AboveMaxTh::Drop, Gentle::TwiceMaxTh)), true),
        ("gentle RED with ECN, marking above max_th", red(ecn(AboveMaxTh::Mark, Gentle::TwiceMaxTh)), true),
        ("strict priority", prio([marking(), tail_drop(SIX_KB), tail_drop(SEVEN_PACKETS)]), true),
        ("strict priority, the first shaped", prio([tbf(None, tail_drop(SIX_KB)), tail_drop(SEVEN_PACKETS)]), false),
        ("deficit round robin", drr([tail_drop(SEVEN_PACKETS), marking(), tail_drop(SIX_KB)]), true),
        ("deficit round robin, two shaped", drr([tbf(None, tail_drop(SIX_KB)), tail_drop(SIX_KB), tbf(None, tail_drop(SIX_KB))]), false),
        ("weighted fair queueing", wfq([tail_drop(SEVEN_PACKETS), tail_drop(SIX_KB), marking()]), true),
        ("weighted fair queueing, two shaped", wfq([tbf(None, tail_drop(SIX_KB)), tail_drop(SIX_KB), tbf(None, tail_drop(SIX_KB))]), false),
        ("token bucket", tbf(None, tail_drop(SEVEN_PACKETS)), false),
        ("token bucket with a peak rate", tbf(Some(Rate::from_bps(500_000)), tail_drop(SIX_KB)), false),
        ("token bucket before RED", tbf(None, marking()), true),
        ("hierarchical token bucket", htb([tail_drop(SEVEN_PACKETS), tail_drop(SIX_KB), tail_drop(SEVEN_PACKETS)]), false),
        ("hierarchical token bucket of RED", htb([marking(), tail_drop(SIX_KB), marking()]), true),
        ("hierarchical token bucket of fair queues", htb([drr([tail_drop(SIX_KB), red(|_| {})]), wfq([red(|_| {}), tail_drop(SIX_KB)]), prio([tail_drop(SIX_KB), red(|_| {})])]), false),
        ("hierarchical token bucket of shaped queues", htb([tbf(None, tail_drop(SIX_KB)), tail_drop(SIX_KB), tbf(None, tail_drop(SIX_KB))]), false),
        ("trees within trees", wfq([htb([tail_drop(SIX_KB), tail_drop(SIX_KB)]), prio([tbf(None, drr([tail_drop(SIX_KB), tail_drop(SIX_KB)])), tail_drop(SIX_KB)])]), false),
        ("Adaptive RED", adaptive_red(|_| {}), false),
        ("Adaptive RED in bytes with ECN", adaptive_red(|red| { red.limit = SIX_KB; red.min_th = Some(QueueSize::Bytes(700)); red.ecn = true; red.above_max_th = AboveMaxTh::Mark; }), true),
        ("Adaptive RED left to itself", QueueSpec::AdaptiveRed(AdaptiveRedParams::new(SEVEN_PACKETS)), false),
        ("self-configuring RED", self_configuring_red(|_| {}), false),
        ("self-configuring RED with ECN", self_configuring_red(|red| red.ecn = true), true),
        ("RED with dynamic thresholds", dynamic_threshold_red(|_| {}), false),
        ("RED with dynamic thresholds and ECN up to the limit", dynamic_threshold_red(|red| { red.ecn = true; red.gentle = Gentle::Limit; red.above_max_th = AboveMaxTh::Mark; }), true),
        ("WRED", wred(Average::Total), false),
        ("RIO", wred(Average::Rio), false),
        ("WRED with an average for each profile", wred(Average::Own), false),
        ("WRED with ECN in byte mode", QueueSpec::Wred(WredParams { ecn: true, byte_mode: true, above_max_th: AboveMaxTh::Mark, ..wred_params(Average::Total) }), true),
    ]
}

/// One call, or the passing of time.
#[derive(Clone, Copy, Debug)]
enum Step {
    Enqueue { size: u64, flow: u32, ecn: Ecn },
    Dequeue,
    Advance(Span),
    Wakeup,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let size = prop_oneof![Just(40u64), Just(576), Just(1500), 1u64..2500];
    let ecn = prop_oneof![
        Just(Ecn::NotEct),
        Just(Ecn::Ect0),
        Just(Ecn::Ect1),
        Just(Ecn::Ce)
    ];
    let enqueue =
        (size, 0u32..4, ecn).prop_map(|(size, flow, ecn)| Step::Enqueue { size, flow, ecn });
    // Nothing, less than a packet's time at 1 Mbit/s, some packets' times.
    let advance = prop_oneof![Just(0u64), 1u64..4_000, 1u64..40_000]
        .prop_map(|us| Step::Advance(Span::from_us(us)));
    let step = prop_oneof![
        6 => enqueue,
        4 => Just(Step::Dequeue),
        2 => advance,
        1 => Just(Step::Wakeup),
    ];
    proptest::collection::vec(step, 1..250)
}

/// All that can be seen of a queue from outside without calling it to act.
#[derive(Clone, Copy, Debug, PartialEq)]
struct View {
    backlog: Backlog,
    next_wakeup: Option<Time>,
    internals: Internals,
}

/// A queue and what has gone into it, to be checked against after each step.
struct Examination {
    queue: AnyQueue<Probe>,
    limit: Option<Limit>,
    may_mark: bool,
    now: Time,
    next_id: u64,
    /// What must be waiting, by number.
    inside: BTreeMap<u64, Probe>,
    /// Number of the latest packet that left, by flow.
    left: BTreeMap<u32, u64>,
    /// All that came out of the queue, for comparison with another run.
    log: Vec<String>,
}

impl Examination {
    fn new(spec: &QueueSpec, may_mark: bool) -> Self {
        Self {
            queue: build_on(spec, link_of_four(LINK)),
            limit: spec.limit().map(|limit| limit.at(LINK)),
            may_mark,
            now: Time::ZERO,
            next_id: 0,
            inside: BTreeMap::new(),
            left: BTreeMap::new(),
            log: Vec::new(),
        }
    }

    fn view(&self) -> View {
        View {
            backlog: self.queue.backlog(),
            next_wakeup: self.queue.next_wakeup(),
            internals: self.queue.internals(),
        }
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Enqueue { size, flow, ecn } => self.enqueue(size, flow, ecn),
            Step::Dequeue => {
                self.dequeue();
            }
            Step::Advance(span) => {
                let before = self.view();
                self.now += span;
                assert_eq!(self.view(), before, "something changed without a call");
            }
            Step::Wakeup => self.wakeup(),
        }
        self.check();
    }

    fn enqueue(&mut self, size: u64, flow: u32, ecn: Ecn) {
        let packet = Probe {
            id: self.next_id,
            size,
            flow,
            ecn,
            // Of one class within a flow.
            dscp: [Dscp::BEST_EFFORT, Dscp::EF][flow as usize % 2],
            enqueued: Time::MAX,
        };
        self.next_id += 1;
        let fits = self
            .limit
            .is_none_or(|limit| limit.admits(self.queue.backlog(), Bytes::new(size)));
        self.inside.insert(
            packet.id,
            Probe {
                enqueued: self.now,
                ..packet
            },
        );
        let mut heard = Heard::default();
        self.queue.enqueue(packet, self.now, &mut heard);
        for (_, reason, _) in &heard.dropped {
            assert!(
                !fits || self.limit.is_none() || *reason != DropReason::Limit,
                "dropped for the limit while there was room"
            );
        }
        self.settle(heard);
    }

    fn dequeue(&mut self) -> bool {
        let mut heard = Heard::default();
        let front = self.queue.front().copied();
        let packet = self.queue.dequeue(self.now, &mut heard);
        assert!(
            front.is_none() || packet == front,
            "another packet than was certain"
        );
        self.settle(heard);
        let Some(packet) = packet else {
            assert!(
                self.inside.is_empty() || self.queue.next_wakeup().is_some(),
                "packets wait and nobody will ask for them"
            );
            return false;
        };
        let known = self.inside.remove(&packet.id);
        assert_eq!(Some(packet), known, "left changed, twice, or never came");
        let before = self.left.insert(packet.flow, packet.id);
        assert!(
            before.is_none_or(|before| before < packet.id),
            "overtaken within flow {}",
            packet.flow
        );
        self.log.push(format!("{packet:?} left at {:?}", self.now));
        true
    }

    /// Calls `on_wakeup`, when it is due and when it is not.
    fn wakeup(&mut self) {
        let before = self.view();
        let due = before.next_wakeup.is_some_and(|at| at <= self.now);
        self.queue.on_wakeup(self.now);
        if !due {
            assert_eq!(self.view(), before, "woken before its time, it acted");
        }
    }

    fn settle(&mut self, heard: Heard) {
        for (packet, now) in &heard.marked {
            assert_eq!(*now, self.now);
            assert!(self.may_mark, "marked without being asked to");
            assert_eq!(packet.ecn, Ecn::Ce, "marked and yet not");
            let known = self.inside.get_mut(&packet.id).expect("marked: unknown");
            assert_ne!(known.ecn, Ecn::NotEct, "marked a sender without ECN");
            known.ecn = Ecn::Ce;
        }
        for (packet, reason, now) in &heard.dropped {
            assert_eq!(*now, self.now);
            let known = self.inside.remove(&packet.id);
            let known = known.expect("dropped twice, or never came");
            assert_eq!(packet.size, known.size);
            assert!(
                heard
                    .marked
                    .iter()
                    .all(|(marked, _)| marked.id != packet.id),
                "marked and dropped"
            );
            self.log
                .push(format!("{} dropped ({reason:?}) at {now:?}", packet.id));
        }
    }

    /// What holds after every step.
    fn check(&self) {
        let backlog = self.queue.backlog();
        let expected = Backlog {
            packets: self.inside.len() as u64,
            bytes: self.inside.values().map(|packet| packet.size).sum(),
        };
        assert_eq!(backlog, expected, "in is not out + dropped + backlog");
        if let Some(limit) = self.limit {
            assert!(limit.packets.is_none_or(|most| backlog.packets <= most));
            assert!(limit.bytes.is_none_or(|most| backlog.bytes <= most));
        }
        if let Some(probability) = self.queue.internals().probability {
            assert!((0.0..=1.0).contains(&probability), "{probability}");
        }
    }

    /// Empties the queue, following its wakeups.
    fn drain(&mut self) {
        while !self.inside.is_empty() {
            if !self.dequeue() {
                self.now = self.now.max(self.queue.next_wakeup().expect("checked"));
                self.queue.on_wakeup(self.now);
            }
            self.check();
        }
    }
}

fn config() -> ProptestConfig {
    ProptestConfig {
        cases: 400,
        rng_seed: RngSeed::Fixed(1),
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn every_discipline_conserves_orders_and_limits(steps in steps()) {
        for (name, spec, may_mark) in disciplines() {
            // The name shows in the output when an assertion below fails.
            println!("{name}");
            let mut examined = Examination::new(&spec, may_mark);
            examined.check();
            for &step in &steps {
                examined.step(step);
            }
            examined.drain();
        }
    }

    #[test]
    fn same_calls_give_the_same_departures(steps in steps()) {
        for (name, spec, may_mark) in disciplines() {
            println!("{name}");
            let mut one = Examination::new(&spec, may_mark);
            let mut other = Examination::new(&spec, may_mark);
            for &step in &steps {
                one.step(step);
                // The other is also woken whenever nothing is due, and looked at.
                let due = other.queue.next_wakeup().is_some_and(|at| at <= other.now);
                if !due {
                    other.wakeup();
                }
                other.step(step);
                assert_eq!(one.view(), other.view());
            }
            one.drain();
            other.drain();
            prop_assert_eq!(one.log, other.log);
        }
    }
}

#[test]
fn the_configurations_reach_what_they_are_for() {
    // The suite would prove little if its sequences never dropped or marked.
    let saturate = |spec: &QueueSpec| {
        let mut queue = build_on(spec, link_of_four(LINK));
        let mut heard = Heard::default();
        for id in 0..500 {
            let ecn = if id % 2 == 0 { Ecn::Ect0 } else { Ecn::NotEct };
            let flow = id as u32 / 2 % 4;
            let packet = Probe {
                flow,
                ..Probe::new(id, 500, ecn)
            };
            queue.enqueue(packet, Time::ZERO, &mut heard);
            if id % 5 == 0 {
                queue.dequeue(Time::ZERO, &mut heard);
            }
        }
        heard
    };
    for (name, spec, may_mark) in disciplines() {
        let heard = saturate(&spec);
        assert!(!heard.dropped.is_empty(), "{name} never dropped");
        assert_eq!(!heard.marked.is_empty(), may_mark, "{name}");
    }
}
