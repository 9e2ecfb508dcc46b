//! CoDel's law against the pseudo-code of RFC 8289, section 5, written here once more in
//! its own form: a loop over the packets of a queue.

use std::collections::VecDeque;

use crate::common::{Heard, Probe, build, build_on};
use redtail_core::{Bytes, Ecn, Rate, Span, Stream, Time};
use redtail_qdisc::laws::codel::{CodelConfig, CodelDecision, CodelLaw, Head, InverseSqrt};
use redtail_qdisc::queues::codel::CodelParams;
use redtail_qdisc::{DropReason, Limit, LinkFacts, QueueDiscipline, QueueParams};

const TARGET: f64 = 0.005;
const INTERVAL: f64 = 0.1;
const MTU: u64 = 1500;

fn params() -> CodelParams {
    CodelParams {
        limit: Limit::packets(1000),
        target: Span::from_ms(5),
        interval: Span::from_ms(100),
        ecn: false,
        ce_threshold: None,
        mtu: Bytes::new(MTU),
        inverse_sqrt: InverseSqrt::Exact,
    }
}

/// The RFC's queue: `deque`, `dodequeue` and `control_law`, in seconds.
#[derive(Default)]
struct Rfc {
    queue: VecDeque<(f64, u64, u64)>, // entry, id, size
    first_above_time: f64,
    drop_next: f64,
    count: i64,
    lastcount: i64,
    dropping: bool,
    dropped: Vec<u64>,
}

impl Rfc {
    fn dodequeue(&mut self, now: f64) -> (Option<(f64, u64, u64)>, bool) {
        let packet = self.queue.pop_front();
        let Some((entered, ..)) = packet else {
            self.first_above_time = 0.0;
            return (None, false);
        };
        let bytes: u64 = self.queue.iter().map(|packet| packet.2).sum();
        if now - entered < TARGET || bytes <= MTU {
            self.first_above_time = 0.0;
            (packet, false)
        } else if self.first_above_time == 0.0 {
            self.first_above_time = now + INTERVAL;
            (packet, false)
        } else {
            (packet, now >= self.first_above_time)
        }
    }

    fn control_law(t: f64, count: i64) -> f64 {
        t + INTERVAL / (count as f64).sqrt()
    }

    fn deque(&mut self, now: f64) -> Option<u64> {
        let (mut packet, mut ok) = self.dodequeue(now);
        if packet.is_none() {
            self.dropping = false;
            return None;
        }
        if self.dropping {
            if !ok {
                self.dropping = false;
            }
            while now >= self.drop_next && self.dropping {
                self.dropped.push(packet.expect("ok").1);
                self.count += 1;
                (packet, ok) = self.dodequeue(now);
                if ok {
                    self.drop_next = Self::control_law(self.drop_next, self.count);
                } else {
                    self.dropping = false;
                }
            }
        } else if ok {
            self.dropped.push(packet.expect("ok").1);
            (packet, _) = self.dodequeue(now);
            self.dropping = true;
            let delta = self.count - self.lastcount;
            self.count = 1;
            if delta > 1 && now - self.drop_next < 16.0 * INTERVAL {
                self.count = delta;
            }
            self.drop_next = Self::control_law(now, self.count);
            self.lastcount = self.count;
        }
        packet.map(|packet| packet.1)
    }
}

#[test]
fn drops_are_those_of_the_rfcs_pseudo_code() {
    // Arrivals at random around the link's rate, in spells of overload and of rest; the
    // times are no multiples of one another, so that rounding decides nothing.
    let mut stream = Stream::named(1, 0, "arrivals");
    let mut queue = build(&QueueParams::Codel(params()));
    let (mut rfc, mut heard) = (Rfc::default(), Heard::default());
    let (mut arrival, mut departure, mut load) = (0.0, 0.0, 1.0);
    let mut restarts = 0;
    for id in 0..60_000u64 {
        if id % 400 == 0 {
            load = [0.6, 1.3, 1.05, 3.0][(stream.uniform() * 4.0) as usize];
        }
        arrival += stream.uniform() * 2.0 * 0.0012 / load;
        while departure < arrival {
            let now = Time::from_secs_f64(departure);
            let before = rfc.dropping;
            let expected = rfc.deque(departure);
            restarts += u32::from(rfc.dropping && !before && rfc.count > 1);
            let left = queue.dequeue(now, &mut heard).map(|packet| packet.id);
            assert_eq!(left, expected, "at {departure}");
            departure += 0.001_200_000_37;
        }
        let size = if id % 7 == 0 { 40 } else { 1500 };
        if rfc.queue.len() < 1000 {
            rfc.queue
                .push_back((Time::from_secs_f64(arrival).as_secs_f64(), id, size));
        } else {
            rfc.dropped.push(id);
        }
        let packet = Probe::new(id, size, Ecn::NotEct);
        queue.enqueue(packet, Time::from_secs_f64(arrival), &mut heard);
    }
    let dropped: Vec<u64> = heard.dropped.iter().map(|(packet, ..)| packet.id).collect();
    assert_eq!(dropped, rfc.dropped);
    let early = heard
        .dropped
        .iter()
        .filter(|drop| drop.1 == DropReason::Early);
    assert!(early.count() > 300, "hardly a test");
    assert!(
        restarts > 3,
        "count never restarted from before: {restarts}"
    );
}

fn config(inverse_sqrt: InverseSqrt) -> CodelConfig {
    CodelConfig {
        target: Span::from_ms(5),
        interval: Span::from_ms(100),
        mtu: MTU,
        inverse_sqrt,
    }
}

/// Times of the first signals, in seconds, while packets that have waited long leave every
/// 10 us.
fn signals(inverse_sqrt: InverseSqrt, can_be_marked: bool, number: usize) -> Vec<f64> {
    let config = config(inverse_sqrt);
    let (mut law, mut now, mut times) = (CodelLaw::default(), Time::ZERO, Vec::new());
    let head = Head {
        sojourn: Span::from_ms(50),
        behind: 100_000,
        can_be_marked,
    };
    while times.len() < number {
        while law.judge(&config, head, now) == CodelDecision::Drop {
            times.push(now.as_secs_f64());
        }
        if can_be_marked && law.count() as usize > times.len() {
            times.push(now.as_secs_f64());
        }
        now += Span::from_us(10);
    }
    times
}

#[test]
fn gaps_shrink_with_the_square_root_of_the_count() {
    // RFC 8289, section 5.6: after the drop of number n comes the next at
    // interval / sqrt(n); n packets thus take about 2 interval sqrt(n).
    for can_be_marked in [false, true] {
        let times = signals(InverseSqrt::Exact, can_be_marked, 60);
        assert!((times[0] - INTERVAL).abs() < 2e-5, "{}", times[0]);
        let mut due = times[0];
        for (n, &time) in (1..).zip(&times[1..]) {
            due += INTERVAL / f64::from(n).sqrt();
            assert!((time - due).abs() < 2e-5, "signal {n}: {time}, not {due}");
        }
    }
}

#[test]
fn newtons_gaps_are_those_of_the_kernel() {
    // x' = x (3 - count x^2) / 2 from x = 1: 1/2 for 2, 9/16 for 3, then close to
    // 1 / sqrt(count).
    let times = signals(InverseSqrt::Newton, false, 40);
    let mut x = 1.0;
    for (n, pair) in (1..).zip(times.windows(2)) {
        if n > 1 {
            x = x * (3.0 - f64::from(n) * x * x) / 2.0;
        }
        let gap = pair[1] - pair[0];
        assert!((gap - INTERVAL * x).abs() < 5e-5, "gap {n}: {gap}, not {x}");
    }
    let second = times[2] - times[1];
    assert!((second - 0.05).abs() < 2e-5, "{second}");
    assert!((x * 39f64.sqrt() - 1.0).abs() < 1e-3);
}

#[test]
fn after_an_overload_newtons_method_does_not_run_wild() {
    let config = config(InverseSqrt::Newton);
    let mut law = CodelLaw::default();
    law.on_overload(64);
    let head = Head {
        sojourn: Span::from_ms(50),
        behind: 100_000,
        can_be_marked: true,
    };
    law.judge(&config, head, Time::ZERO);
    let now = Time::ZERO + Span::from_ms(100);
    assert_eq!(law.judge(&config, head, now), CodelDecision::Mark);
    // Entered with count = 64: the next is due after 100 ms / 8.
    let due = (law.drop_next() - now).as_secs_f64();
    assert!((due - 0.0125).abs() < 1e-5, "{due}");
}

/// Keeps a queue of `backlog` packets of `size` for `time`; what was heard.
fn hold(params: CodelParams, ecn: Ecn, size: u64, backlog: u64, time: Span) -> Heard {
    let mut queue = build(&QueueParams::Codel(params));
    let (mut heard, mut now, mut id) = (Heard::default(), Time::ZERO, 0);
    while now < Time::ZERO + time {
        while queue.backlog().packets < backlog {
            queue.enqueue(Probe::new(id, size, ecn), now, &mut heard);
            id += 1;
        }
        now += Span::from_us(1200);
        queue.dequeue(now, &mut heard);
    }
    heard
}

#[test]
fn nothing_is_dropped_below_the_target_or_for_one_packet() {
    // Five packets of 1.2 ms wait 4.8 ms or 6 ms, as one counts.
    let heard = hold(params(), Ecn::NotEct, 1500, 4, Span::from_s(2));
    assert!(heard.dropped.is_empty());
    let heard = hold(params(), Ecn::NotEct, 1500, 6, Span::from_s(2));
    assert!(!heard.dropped.is_empty());
    // "bytes() <= maxpacket": 20 packets of 75 B leave no more than 1500 B behind.
    let heard = hold(params(), Ecn::NotEct, 75, 20, Span::from_s(2));
    assert!(heard.dropped.is_empty());
    let heard = hold(params(), Ecn::NotEct, 75, 22, Span::from_s(2));
    assert!(!heard.dropped.is_empty());
}

#[test]
fn with_ecn_packets_are_marked_in_place_of_drops() {
    let ecn = CodelParams {
        ecn: true,
        ..params()
    };
    let marked = hold(ecn.clone(), Ecn::Ect0, 1500, 20, Span::from_s(2));
    assert!(marked.dropped.is_empty());
    // Marks keep the times of drops.
    let dropped = hold(ecn, Ecn::NotEct, 1500, 20, Span::from_s(2));
    assert!(dropped.marked.is_empty());
    let off = marked.marked.len().abs_diff(dropped.dropped.len());
    assert!(
        off <= 1,
        "{} and {}",
        marked.marked.len(),
        dropped.dropped.len()
    );
}

#[test]
fn a_step_marks_all_that_waited_longer_and_drops_nothing_for_it() {
    let step = CodelParams {
        ce_threshold: Some(Span::from_ms(1)),
        target: Span::from_ms(500),
        interval: Span::from_s(1),
        ..params()
    };
    let heard = hold(step.clone(), Ecn::Ect1, 1500, 4, Span::from_ms(120));
    // 100 departures, the first of which has waited 1.2 ms already.
    assert_eq!(heard.marked.len(), 100);
    let heard = hold(step, Ecn::NotEct, 1500, 4, Span::from_ms(120));
    assert!(heard.marked.is_empty() && heard.dropped.is_empty());
}

#[test]
fn impossible_values_are_refused_with_the_reason() {
    let refusal = |params: CodelParams| QueueParams::Codel(params).check().unwrap_err().to_string();
    assert_eq!(
        refusal(CodelParams {
            target: Span::ZERO,
            ..params()
        }),
        "target is zero, so that every queue is too long; accepted: a time such as \"5 ms\""
    );
    assert_eq!(
        refusal(CodelParams {
            interval: Span::from_ms(5),
            ..params()
        }),
        "interval is not above target (5 ms); accepted: more than \"5 ms\""
    );
    assert_eq!(
        refusal(CodelParams {
            limit: Limit::packets(0),
            ..params()
        }),
        "limit would drop every packet; accepted: at least \"1 packet\", or at least one packet's size in bytes"
    );
}

#[test]
fn a_target_below_a_packets_time_is_warned_about() {
    let warnings = |mbps: u64, packet: u64| {
        let link = LinkFacts {
            largest_packet: Bytes::new(packet),
            ..LinkFacts::of_rate(Rate::from_bps(mbps * 1_000_000))
        };
        build_on(&QueueParams::Codel(params()), link.clone());
        QueueParams::Codel(params()).warnings(&link)
    };
    assert!(warnings(3, 0).is_empty());
    assert!(warnings(1, 500).is_empty());
    let found = warnings(1, 1500);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].key, "target");
    assert_eq!(
        found[0].clause,
        "is below the time of one packet at this rate (12 ms), so two packets are too many"
    );
}
