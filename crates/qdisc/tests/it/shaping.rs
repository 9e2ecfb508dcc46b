//! The shapers without their queues, against the queues themselves: nothing leaves an idle link exactly when
//! no leaf that has a packet may send.

use std::collections::VecDeque;

use crate::common::{Heard, Probe, build_on, link_of_four};
use redtail_core::{Bytes, Dscp, Ecn, Rate, Span, Stream, Time};
use redtail_qdisc::shaping::Shaping;
use redtail_qdisc::{LinkFacts, QueueDiscipline, QueueParams};
use serde_json::{Value, json};

const LINK: Rate = Rate::from_bps(10_000_000);

fn fifo() -> Value {
    json!({"tail-drop": {"limit": "9000 packets"}})
}

fn tbf(rate: &str, burst: &str, queue: Value) -> Value {
    json!({"tbf": {"rate": rate, "burst": burst, "queue": queue}})
}

/// Two classes in a class, one of which may borrow, and one beside it; each has a queue of these.
fn htb(queues: [Value; 3]) -> Value {
    let [first, second, third] = queues;
    json!({"htb": {"default": "third", "class": [
        {"name": "root", "rate": "6 Mbit/s", "class": [
            {"name": "first", "match": {"group": "a"}, "rate": "1 Mbit/s", "ceil": "5 Mbit/s", "queue": first},
            {"name": "second", "match": {"group": "b"}, "rate": "3 Mbit/s", "burst": "9 kB",
             "queue": second},
        ]},
        {"name": "third", "rate": "500 kbit/s", "ceil": "2 Mbit/s", "cburst": "6 kB", "queue": third},
    ]}})
}

fn prio(queues: [Value; 2]) -> Value {
    let [first, second] = queues;
    json!({"prio": {"default": "second", "class": [
        {"name": "first", "match": {"group": "a"}, "queue": first},
        {"name": "second", "queue": second},
    ]}})
}

fn queue(spec: &Value) -> QueueParams {
    serde_json::from_value(spec.clone()).expect("it is a queue")
}

/// Packets of four flows in bursts, so that queues fill and become empty.
fn arrivals(seed: u64) -> Vec<(Time, Probe)> {
    let mut stream = Stream::named(seed, 0, "arrivals");
    let mut now = Time::ZERO;
    let mut packets = Vec::new();
    for id in 0..3000 {
        if stream.uniform() < 0.02 {
            now += Span::from_us((stream.uniform() * 60_000.0) as u64);
        }
        now += Span::from_us((stream.uniform() * 1_500.0) as u64);
        let size = if stream.uniform() < 0.3 { 100 } else { 1500 };
        let packet = Probe {
            flow: (stream.uniform() * 4.0) as u32,
            ..Probe::new(id, size, Ecn::NotEct)
        };
        packets.push((now, packet));
    }
    packets
}

fn forget(waiting: &mut VecDeque<Probe>, id: u64) {
    let place = waiting.iter().position(|each| each.id == id);
    waiting.remove(place.expect("it waits there"));
}

/// Serves the queue on a link of its own; at each moment the shapers must say what the queue does.
fn agree(spec: &Value) {
    let (params, link) = (queue(spec), link_of_four(LINK));
    let flows = link.flows.clone();
    let mut shaping = Shaping::of(&params, &link, |rate| rate).expect("it has shapers");
    let mut queue = build_on(&params, link);
    let mut waiting: Vec<VecDeque<Probe>> = vec![VecDeque::new(); shaping.leaves()];
    let mut heard = Heard::default();
    let arrivals = arrivals(7);
    let mut coming = arrivals.iter().peekable();
    let (mut free, mut idle, mut sent, mut dropped) = (Time::ZERO, 0, 0, 0);
    let leaf_of = |shaping: &Shaping, packet: &Probe| {
        let facts = flows.get(redtail_core::FlowId(packet.flow));
        shaping.leaf(Dscp::BEST_EFFORT, &facts)
    };
    loop {
        let wakeup = queue.next_wakeup().time();
        let busy = (queue.backlog().packets > 0 && wakeup.is_none()).then_some(free);
        let times = [wakeup, busy, coming.peek().map(|(at, _)| *at)];
        let Some(now) = times.into_iter().flatten().min() else {
            break;
        };
        if coming.peek().is_some_and(|(at, _)| *at == now) {
            let (_, packet) = coming.next().expect("it was there");
            let leaf = leaf_of(&shaping, packet);
            if waiting[leaf].is_empty() {
                shaping.begins(leaf, now);
            }
            waiting[leaf].push_back(*packet);
            queue.enqueue(*packet, now, &mut heard);
        } else if wakeup == Some(now) {
            queue.on_wakeup(now);
        }
        if now < free {
            continue;
        }
        let ready = |leaf: usize| {
            let head = waiting[leaf].front()?;
            Some(shaping.permit(leaf, Bytes::new(head.size)).ready)
        };
        let first = (0..waiting.len()).filter_map(ready).min();
        let next = queue.dequeue(now, &mut heard);
        for (packet, ..) in heard.dropped.drain(..) {
            forget(&mut waiting[leaf_of(&shaping, &packet)], packet.id);
            dropped += 1;
        }
        let Some(packet) = next else {
            if let Some(first) = first {
                assert!(
                    first > now,
                    "at {now:?} the shapers let a packet go since {first:?}"
                );
                idle += 1;
            }
            continue;
        };
        let leaf = leaf_of(&shaping, &packet);
        let permit = shaping.permit(leaf, Bytes::new(packet.size));
        assert!(
            permit.ready <= now,
            "at {now:?} a packet left that may do so at {permit:?}"
        );
        assert!(permit.full >= permit.ready);
        forget(&mut waiting[leaf], packet.id);
        shaping.leaves_from(leaf, Bytes::new(packet.size), now);
        free = now + LINK.tx_time(Bytes::new(packet.size));
        sent += 1;
    }
    assert_eq!(sent + dropped, arrivals.len(), "{spec}");
    assert!(idle > 100, "the shapers have hardly acted: {idle} times");
}

#[test]
fn a_token_bucket_lets_a_packet_go_when_it_holds_it() {
    agree(&tbf("4 Mbit/s", "1500 B", fifo()));
    agree(&tbf("5 Mbit/s", "9 kB", fifo()));
    agree(
        &json!({"tbf": {"rate": "4 Mbit/s", "burst": "20 kB", "peak_rate": "8 Mbit/s",
        "mtu": "1500 B", "queue": fifo()}}),
    );
}

#[test]
fn the_shaper_of_cake_lets_a_packet_go_at_its_time() {
    let cake = |more: Value| {
        let mut keys = json!({"rate": "5 Mbit/s", "rtt": "10 s", "limit": "9000 packets"});
        let all = keys.as_object_mut().expect("it is a table");
        all.extend(more.as_object().expect("so is this").clone());
        json!({"cake": keys})
    };
    agree(&cake(json!({})));
    agree(&cake(
        json!({"diffserv": "diffserv4", "overhead": "18 B", "mpu": "64 B", "framing": "atm"}),
    ));
}

#[test]
fn a_class_lets_a_packet_go_when_it_or_a_lender_has_tokens() {
    agree(&htb([fifo(), fifo(), fifo()]));
}

#[test]
fn a_packet_passes_all_shapers_above_it() {
    let cake = json!({"cake": {"rate": "1 Mbit/s", "rtt": "10 s", "limit": "9000 packets"}});
    agree(&prio([cake, tbf("2 Mbit/s", "3 kB", fifo())]));
    agree(&prio([
        tbf("2 Mbit/s", "3 kB", fifo()),
        tbf("3 Mbit/s", "4 kB", fifo()),
    ]));
}

#[test]
fn a_bucket_makes_up_for_lateness_until_it_is_full() {
    let link = LinkFacts::of_rate(LINK);
    let of = |spec: &Value| Shaping::of(&queue(spec), &link, |rate| rate);
    let mut shaping = of(&tbf("8 Mbit/s", "3000 B", fifo())).expect("it has a bucket");
    let at = |us| Time::ZERO + Span::from_us(us);
    let size = Bytes::new(1500);
    for _ in 0..2 {
        shaping.leaves_from(0, size, at(0));
    }
    let permit = shaping.permit(0, size);
    assert_eq!((permit.ready, permit.full), (at(1500), at(3000)));
    assert!(of(&fifo()).is_none());
    assert!(of(&json!({"cake": {}})).is_none());
}
