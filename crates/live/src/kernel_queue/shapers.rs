//! The shapers of a queue of the kernel itself (`htb`, `tbf`, `cake` with a rate), and how late the kernel is.
//!
//! A link whose queue holds packets back is idle for two reasons: the queue's own shapers want it, or the
//! kernel's timers are late. The first follows from the packets that the queue has let out ([`Shaping`]): at each moment, each leaf of
//! the queue in which a packet waits has a time from which on its shapers let it go. Idle time after the first of these
//! times is lateness. A bucket makes up for it, as long as it is not full: the next packets leave sooner. What it cannot
//! make up for is lost. Without shapers both begin when the link is free.
//!
//! Two things are not known, and are taken so that a punctual kernel is never found late. A packet
//! that the queue has dropped from within waits here until that is noticed: a leaf all of whose packets may be of these does not
//! count. And `cake` with `ingress` counts its drops as sent; its failsafe, which does not, is taken, so
//! that lateness shows there only when it sends less than two thirds of its rate.

use std::collections::{BTreeMap, BTreeSet};

use redtail_core::{Bytes, Dscp, Span, Time};
use redtail_network::statistics::Delays;
use redtail_qdisc::FlowFacts;
use redtail_qdisc::shaping::{Permit, Shaping};

use super::Out;
use crate::run::{LATENESS_BOUND, LONGEST_PAUSE};

/// The share of a run that a link may lose because the kernel lets packets go late: less than the
/// tolerance for utilization with which backends are compared.
const MOST_LOST: f64 = 0.01;

/// The queue's own shapers, and the packets that wait for them.
#[derive(Debug)]
pub(super) struct Shapers {
    shaping: Shaping,
    /// The largest packet.
    mtu: Bytes,
    /// By identification, the leaf in which a packet waits, and since when.
    inside: BTreeMap<u16, (usize, Time)>,
    /// The same by leaf.
    waiting: Vec<BTreeSet<(Time, u16)>>,
    /// How many of them have been dropped, and are not known.
    pub(super) missing: usize,
}

impl Shapers {
    pub(super) fn new(shaping: Shaping, mtu: Bytes) -> Self {
        Self {
            waiting: vec![BTreeSet::new(); shaping.leaves()],
            shaping,
            mtu,
            inside: BTreeMap::new(),
            missing: 0,
        }
    }

    /// Whether a packet waits in a leaf: the missing ones may be all in it.
    fn waits_in(&self, leaf: usize) -> bool {
        self.waiting[leaf].len() > self.missing
    }

    /// A packet of this flow with this DSCP begins to wait.
    pub(super) fn enters(&mut self, id: u16, (dscp, flow): (Dscp, &FlowFacts), now: Time) {
        let leaf = self.shaping.leaf(dscp, flow);
        if !self.waits_in(leaf) {
            self.shaping.begins(leaf, now);
        }
        self.inside.insert(id, (leaf, now));
        self.waiting[leaf].insert((now, id));
    }

    /// A packet waits no more.
    pub(super) fn gone(&mut self, id: u16) -> Option<(usize, Time)> {
        let (leaf, since) = self.inside.remove(&id)?;
        self.waiting[leaf].remove(&(since, id));
        Some((leaf, since))
    }

    /// A packet was read at `now`: says from when on a link may begin it, and when a packet of the queue could
    /// leave first.
    pub(super) fn lets_out(&mut self, out: &mut Out, now: Time, link_reads: bool) {
        let others = (0..self.waiting.len()).filter(|&leaf| self.waits_in(leaf));
        let permits = others.filter_map(|leaf| {
            let (since, _) = self.waiting[leaf].first()?;
            Some(since_of(self.shaping.permit(leaf, self.mtu), *since))
        });
        let first = permits.min_by_key(|permit| permit.ready);
        let Some((leaf, since)) = self.gone(out.id) else {
            return;
        };
        let own = since_of(self.shaping.permit(leaf, out.size), since);
        out.permit = match first {
            Some(first) if first.ready < own.ready => first,
            _ => own,
        };
        out.from = match link_reads {
            true => now,
            false => out.from.max(own.ready.min(now)),
        };
        self.shaping.leaves_from(leaf, out.size, out.from);
    }
}

/// The permit of a packet that waits since then.
fn since_of(permit: Permit, since: Time) -> Permit {
    Permit {
        ready: permit.ready.max(since),
        full: permit.full.max(since),
    }
}

/// How late the kernel lets packets go.
#[derive(Debug, Default)]
pub(super) struct Lateness {
    /// Time that the link was idle for it, in which nothing will be made up for.
    lost: Span,
    /// By packet, from the time at which one could leave.
    late: Delays,
}

impl Lateness {
    /// A link that waits since `since` begins a packet at `now`.
    pub(super) fn begins(&mut self, since: Option<Time>, permit: Permit, now: Time) {
        let after =
            |time: Time| since.map_or(Span::ZERO, |since| now.saturating_since(since.max(time)));
        self.lost += after(permit.full);
        self.late.record(after(permit.ready));
    }

    /// Says what is wrong if the kernel's timers were too late in a run of this length: then the link was
    /// slower, or packets were later, than the experiment says.
    pub(super) fn wrong(&self, run: Span) -> Option<String> {
        let share = self.lost.as_secs_f64() / run.as_secs_f64();
        if share > MOST_LOST {
            return Some(format!(
                "the kernel's shaper did not keep up: the link was idle for {:.1} % of the run while \
                 packets waited that could leave; accepted: up to {:.0} %",
                share * 100.0,
                MOST_LOST * 100.0
            ));
        }
        let late = |q: f64| self.late.quantile(q).unwrap_or(0.0);
        let (p99, longest) = (late(0.99), late(1.0));
        let bounds = [
            (p99, LATENESS_BOUND, "for 1 in 100 packets"),
            (longest, LONGEST_PAUSE, "once"),
        ];
        let mut beyond = bounds
            .iter()
            .filter(|(late, bound, _)| *late > bound.as_secs_f64());
        beyond.next().map(|(late, bound, when)| {
            format!(
                "the kernel's shaper did not keep up: {when} it let no packet go for {:.1} ms though one \
                 could leave; accepted: up to {bound}",
                late * 1e3
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::sync::Arc;

    use redtail_core::{Packet, Rate, Stream};
    use redtail_network::{ContentId, SimPacket, TrafficClass};
    use redtail_qdisc::{
        DropReason, LinkFacts, Plugins, QueueContext, QueueDiscipline, Sink, TcpHeader,
    };
    use serde_json::{Value as Json, json};

    use super::*;

    const LINK: Rate = Rate::from_bps(10_000_000);
    const RUN: Span = Span::from_ms(4000);

    struct NoDrops;

    impl Sink<SimPacket> for NoDrops {
        fn dropped(&mut self, _: SimPacket, reason: DropReason, now: Time) {
            panic!("dropped at {now:?}: {reason:?}");
        }
        fn marked(&mut self, _: &SimPacket, _: Time) {}
        fn tcp_header(&self, _: &SimPacket) -> Option<TcpHeader> {
            None
        }
    }

    /// A queue of redtail takes the place of the kernel's, whose timers are late by this. Twenty full packets always
    /// wait.
    fn kernel_late_by(late: Span, queue: &Json) -> Lateness {
        let queue = redtail_spec::queue_from_json(queue.clone()).expect("it is a queue");
        let link = LinkFacts::of_rate(LINK);
        let shaping = Shaping::of(&queue, &link, |rate| rate);
        let mut shapers = shaping.map(|shaping| Shapers::new(shaping, Bytes::new(1500)));
        let mut queue = queue.build::<SimPacket>(QueueContext {
            rate: LINK,
            stream: Stream::named(1, 0, "queue"),
            link: Arc::new(link),
            plugins: Plugins::new(),
        });
        let mut lateness = Lateness::default();
        let (mut now, mut since, mut id) = (Time::ZERO, None, 0u16);
        let mut waiting: VecDeque<u16> = VecDeque::new();
        while now < Time::ZERO + RUN {
            while waiting.len() < 20 {
                id += 1;
                let packet = SimPacket {
                    stamp: now,
                    content: ContentId(0),
                    flow: 0,
                    endpoint: 0,
                    size: 1500,
                    route: 0,
                    leg: 0,
                    class: TrafficClass::default(),
                    id,
                };
                queue.enqueue(packet, now, &mut NoDrops);
                waiting.push_back(id);
                if let Some(shapers) = &mut shapers {
                    let flow = FlowFacts::default();
                    shapers.enters(id, (packet.dscp(), &flow), now);
                }
            }
            let Some(packet) = queue.dequeue(now, &mut NoDrops) else {
                since.get_or_insert(now);
                now = queue.next_wakeup().time().expect("packets wait") + late;
                continue;
            };
            waiting.pop_front();
            let mut out = Out {
                id: packet.id,
                ce: false,
                size: packet.size(),
                from: now,
                permit: Permit::ALWAYS,
            };
            if let Some(shapers) = &mut shapers {
                shapers.lets_out(&mut out, now, true);
            }
            lateness.begins(since.take(), out.permit, now);
            now += LINK.tx_time(packet.size());
        }
        lateness
    }

    fn fifo() -> Json {
        json!({"tail-drop": {"limit": "1000 packets"}})
    }

    fn tbf(burst: &str) -> Json {
        json!({"tbf": {"rate": "9 Mbit/s", "burst": burst, "queue": fifo()}})
    }

    fn htb() -> Json {
        json!({"htb": {"class": [{"name": "root", "rate": "9 Mbit/s", "class": [
            {"name": "all", "rate": "1 Mbit/s", "ceil": "9 Mbit/s", "queue": fifo()},
        ]}]}})
    }

    fn cake() -> Json {
        json!({"cake": {"rate": "9500 kbit/s", "rtt": "10 s"}})
    }

    fn wrong(late_us: u64, queue: &Json) -> Option<String> {
        kernel_late_by(Span::from_us(late_us), queue).wrong(RUN)
    }

    #[test]
    fn a_punctual_kernel_is_not_late_however_slow_its_queue() {
        for queue in [fifo(), tbf("1500 B"), tbf("5 kB"), htb(), cake()] {
            let lateness = kernel_late_by(Span::ZERO, &queue);
            assert_eq!(lateness.lost, Span::ZERO, "{queue}");
            assert_eq!(lateness.late.quantile(1.0), Some(0.0), "{queue}");
        }
    }

    #[test]
    fn lateness_that_a_bucket_makes_up_for_is_not_lost() {
        for queue in [tbf("5 kB"), htb(), cake()] {
            assert_eq!(wrong(100, &queue), None, "{queue}");
        }
        // A bucket of one packet is full when the packet may leave: 50 us of 1.38 ms are lost.
        let lateness = kernel_late_by(Span::from_us(50), &tbf("1500 B"));
        let share = lateness.lost.as_secs_f64() / RUN.as_secs_f64();
        assert!((share - 50.0 / 1383.3).abs() < 1e-3, "{share}");
        let wrong = lateness.wrong(RUN).expect("it is too much");
        assert!(wrong.contains("idle for 3.6 % of the run"), "{wrong}");
    }

    #[test]
    fn a_late_kernel_is_found_below_a_queue_that_shapes() {
        let lost = |queue: &Json| wrong(6_000, queue).is_some_and(|text| text.contains("idle for"));
        assert!(lost(&tbf("5 kB")));
        assert!(lost(&htb()));
        // CAKE makes up for all of it, but its packets are late.
        let text = wrong(6_000, &cake()).expect("it is late");
        assert!(text.contains("for 1 in 100 packets"), "{text}");
    }
}
