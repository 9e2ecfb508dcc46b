//! A queue at work in another program: packets that own what they carry, whatever the queue does with them.

use std::sync::Arc;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use crate::common::examples::example;
use crate::common::{Probe, build_on, link_of_groups, plugins, serve};
use redtail_core::{Bytes, Ecn, Packet, Rate, Span, Stream, Time};
use redtail_qdisc::bottleneck::Link;
use redtail_qdisc::queues::codel::CodelParams;
use redtail_qdisc::queues::tail_drop::TailDropParams;
use redtail_qdisc::{
    Bottleneck, Datagram, DropReason, Limit, LinkFacts, Path, QueueContext, QueueParams,
};

const RATE: Rate = Rate::from_bps(10_000_000);
const DELAY: Span = Span::from_ms(7);

/// A packet whose number is on the heap: it is moved, and never copied.
type Parcel = Datagram<Box<u64>>;

fn parcel(number: u64, size: u64) -> Parcel {
    Datagram::new(Box::new(number), Bytes::new(size))
}

/// What the examples need to know: the groups by which they tell packets, and flows to compute parameters for.
fn context() -> QueueContext {
    let link = LinkFacts {
        tcp_flows: 2,
        mean_round_trip: Some(Span::from_ms(50)),
        max_round_trip: Some(Span::from_ms(50)),
        tcp_packet: Bytes::new(1500),
        ..link_of_groups(["always", "step", "c", "d"], RATE)
    };
    QueueContext {
        link: Arc::new(link),
        plugins: plugins(),
        ..QueueContext::simple(RATE, 1)
    }
}

/// A link of the example of each kind, with room for 50 packets.
fn links() -> impl Iterator<Item = (&'static str, Link<Parcel>)> {
    QueueParams::examples().into_iter().map(|(kind, keys)| {
        let queue = example(kind, keys, 50);
        let link = Link::with_context(&queue, context(), DELAY);
        (kind, link.unwrap_or_else(|error| panic!("{kind}: {error}")))
    })
}

/// Arrivals in bursts: 60 % over the rate for a second, then half of it.
fn arrivals() -> Vec<(Time, Parcel)> {
    let mut stream = Stream::named(3, 0, "arrivals");
    let mut now = Time::ZERO;
    let arrival = |number: u64| {
        let gap = if number < 1200 { 800 } else { 2_600 };
        now += stream.uniform_span(Span::ZERO, Span::from_us(gap));
        let ecn = match number % 3 {
            0 => Ecn::NotEct,
            1 => Ecn::Ect0,
            _ => Ecn::Ect1,
        };
        let size = 100 + (stream.uniform() * 1401.0) as u64;
        let parcel = parcel(number, size).with_flow((number % 4) as u32);
        (now, parcel.with_ecn(ecn))
    };
    (0..1500).map(arrival).collect()
}

#[test]
fn every_packet_arrives_once_or_is_handed_back_once() {
    let mut drops = Vec::new();
    for (kind, mut link) in links() {
        let (dropped, drops_of) = mpsc::channel();
        link.on_drop(move |parcel, _, _| dropped.send(*parcel.into_payload()).expect("is heard"));
        let mut arrived = Vec::new();
        let mut sent = 0;
        for (now, parcel) in arrivals() {
            while let Some(due) = link.next_event().filter(|&due| due <= now) {
                arrived.extend(link.receive(due).map(|parcel| *parcel.into_payload()));
            }
            link.send(parcel, now);
            sent += 1;
            let counts = link.counts();
            assert_eq!(counts.sent, sent, "{kind}");
            assert_eq!(
                counts.sent,
                counts.delivered + counts.dropped + counts.inside()
            );
            assert!(link.backlog().packets <= counts.inside(), "{kind}");
        }
        while let Some(due) = link.next_event() {
            arrived.extend(link.receive(due).map(|parcel| *parcel.into_payload()));
        }
        let counts = link.counts();
        let mut all: Vec<u64> = drops_of.try_iter().collect();
        assert_eq!(counts.dropped, all.len() as u64, "{kind}");
        assert_eq!(counts.delivered, arrived.len() as u64, "{kind}");
        assert_eq!(counts.inside(), 0, "{kind}");
        drops.push(all.len());
        all.extend(arrived);
        all.sort_unstable();
        assert!(all.into_iter().eq(0..sent), "{kind}");
    }
    // The arrivals overload the link, so that queues do drop.
    assert!(drops.iter().all(|&dropped| dropped > 0), "{drops:?}");
}

#[test]
fn a_packet_arrives_after_its_wait_its_transmission_and_the_delay() {
    let queue = QueueParams::TailDrop(TailDropParams::new(Limit::packets(2)));
    let mut link = Link::new(&queue, RATE, DELAY, 1).expect("it can be run");
    // One is transmitted, two wait, and the fourth does not fit.
    for number in 0..4 {
        link.send(parcel(number, 1250), Time::ZERO);
    }
    assert_eq!((link.counts().dropped, link.backlog().packets), (1, 2));
    for number in 0..3 {
        let at = Time::ZERO + DELAY + Span::from_ms(number + 1);
        assert_eq!(link.next_event(), Some(at));
        assert!(link.receive(at - Span::from_ps(1)).is_none());
        assert_eq!(
            link.receive(at).map(|parcel| *parcel.into_payload()),
            Some(number)
        );
    }
    assert_eq!(link.next_event(), None);
    // The transmitter is idle, so the next one goes at once; a time before that of an earlier call counts as that.
    let latest = Time::ZERO + DELAY + Span::from_ms(3);
    link.send(parcel(4, 1250), Time::ZERO);
    assert_eq!(link.next_event(), Some(latest + DELAY + Span::from_ms(1)));
}

/// The tests of queues have a loop of events of their own, in the order of the simulator.
#[test]
fn transmissions_begin_when_they_do_in_the_simulator() {
    for kind in ["tbf", "fq", "docsis-pie", "cake", "dualpi2", "htb"] {
        let examples = QueueParams::examples();
        let (_, keys) = examples.iter().find(|(name, _)| *name == kind).expect(kind);
        let queue = example(kind, keys, 20_000);
        let arrivals: Vec<_> = arrivals().into_iter().skip(1200).collect();
        let probes: Vec<_> = (1200..)
            .zip(&arrivals)
            .map(|(id, (at, parcel))| {
                let (size, ecn) = (parcel.size().as_u64(), parcel.ecn());
                let flow = parcel.flow().0;
                (
                    *at,
                    Probe {
                        flow,
                        ..Probe::new(id, size, ecn)
                    },
                )
            })
            .collect();
        let facts = (*context().link).clone();
        let mut reference = build_on(&queue, facts);
        let expected = serve(&mut reference, &probes, RATE, Time::ZERO + Span::from_s(60));

        let mut link = Link::with_context(&queue, context(), DELAY).expect("it can be run");
        for (at, parcel) in arrivals {
            link.send(parcel, at);
        }
        let mut found = Vec::new();
        while let Some(at) = link.next_event() {
            if let Some(parcel) = link.receive(at) {
                let began = at - DELAY - RATE.tx_time(parcel.size());
                found.push((began, *parcel.into_payload()));
            }
        }
        let expected: Vec<_> = expected
            .into_iter()
            .map(|(at, probe)| (at, probe.id))
            .collect();
        assert_eq!(found.len(), 300, "{kind}");
        let differing = found
            .iter()
            .zip(&expected)
            .find(|(found, expected)| found != expected);
        assert_eq!(differing, None, "{kind}");
    }
}

#[test]
fn the_seed_decides_what_is_drawn() {
    let run = |seed| {
        let red =
            "min_th = \"5 packets\"\nmax_th = \"15 packets\"\nw_q = 0.02\nlimit = \"50 packets\"";
        let mut link =
            Link::new(&example("red", red, 50), RATE, DELAY, seed).expect("it can be run");
        let (dropped, drops) = mpsc::channel();
        link.on_drop(move |parcel: Parcel, reason, at| {
            dropped
                .send((*parcel.into_payload(), reason, at))
                .expect("is heard");
        });
        for (now, parcel) in arrivals() {
            link.send(parcel, now);
        }
        drops.try_iter().collect::<Vec<_>>()
    };
    let one = run(1);
    assert!(
        one.iter()
            .any(|(_, reason, _)| *reason == DropReason::Early)
    );
    assert_eq!(one, run(1));
    assert_ne!(one, run(2));
}

#[test]
#[allow(clippy::disallowed_methods)] // any instant is the start
fn instants_are_those_of_the_caller() {
    let queue = QueueParams::Codel(CodelParams::default());
    let delay = Duration::from_millis(7);
    let bottleneck =
        || Bottleneck::new(&queue, Rate::from_bps(3_000_000), delay, 1).expect("it can be run");
    let mut path = Path {
        up: bottleneck(),
        down: bottleneck(),
    };
    assert_eq!(path.next_event(), None);
    let start = Instant::now();
    path.up.send(parcel(0, 100), start);
    path.down
        .send(parcel(1, 1000), start + Duration::from_millis(1));
    // 800 bit at 3 Mbit/s take 266.67 us: what is due within a nanosecond is due at its end.
    let first = path.next_event().expect("two are on their way");
    assert_eq!(first - start, Duration::from_nanos(7_266_667));
    assert!(path.up.receive(first - Duration::from_nanos(1)).is_none());
    assert!(path.down.receive(first).is_none());
    assert_eq!(
        path.up.receive(first).map(|parcel| *parcel.into_payload()),
        Some(0)
    );
    let second = path.next_event().expect("one is on its way");
    assert_eq!(
        path.down
            .receive(second)
            .map(|parcel| *parcel.into_payload()),
        Some(1)
    );
    assert_eq!(path.next_event(), None);
    assert_eq!(path.up.link().counts().delivered, 1);
}

#[test]
fn what_cannot_be_run_is_refused() {
    let refusal = |queue: &QueueParams, rate| {
        let link = Link::<Parcel>::new(queue, Rate::from_bps(rate), DELAY, 1);
        link.expect_err("it cannot be run").to_string()
    };
    let tail_drop = |packets| QueueParams::TailDrop(TailDropParams::new(Limit::packets(packets)));
    assert_eq!(
        refusal(&tail_drop(10), 0),
        "rate is zero; accepted: a rate such as 10 Mbit/s"
    );
    assert!(refusal(&tail_drop(0), 1).starts_with("limit would drop every packet; accepted: "));
    assert_eq!(
        refusal(&example("plugin", "class = \"mine\"", 10), 1),
        "class is \"mine\", a queue of one's own that this link does not have; \
         accepted: another kind, or a context with this queue"
    );
}
