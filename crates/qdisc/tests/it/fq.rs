//! Linux's fq: turns and credits, the limit of a flow, pacing, and every departure of random
//! traffic against the kernel's functions.

use std::collections::VecDeque;

use crate::common::{Heard, Probe, build};
use redtail_core::{Bytes, Ecn, Rate, Span, Stream, Time};
use redtail_qdisc::queues::fq::FqParams;
use redtail_qdisc::{
    AnyQueue, DropReason, Limit, LinkFacts, QueueDiscipline, QueueParams, Report, Wakeup,
};

fn ms(ms: u64) -> Time {
    Time::ZERO + Span::from_ms(ms)
}

/// So many queues that the few flows of a test share none.
fn params() -> FqParams {
    FqParams {
        flows: 65_536,
        ..FqParams::default()
    }
}

struct Bench {
    queue: AnyQueue<Probe>,
    next_id: u64,
    heard: Heard,
}

impl Bench {
    fn new(params: FqParams) -> Self {
        Self {
            queue: build(&QueueParams::Fq(params)),
            next_id: 0,
            heard: Heard::default(),
        }
    }

    fn add(&mut self, flow: u32, size: u64, count: u64, now: Time) {
        for _ in 0..count {
            let packet = Probe {
                flow,
                ..Probe::new(self.next_id, size, Ecn::Ect0)
            };
            self.next_id += 1;
            self.queue.enqueue(packet, now, &mut self.heard);
        }
    }

    /// Flows of the next packets that leave at once.
    fn take(&mut self, count: usize, now: Time) -> Vec<u32> {
        let one = |_| self.queue.dequeue(now, &mut self.heard).expect("waiting");
        (0..count).map(one).map(|packet| packet.flow).collect()
    }

    /// Times at which all that waits leaves, asked whenever the queue says so.
    fn drain(&mut self, mut now: Time) -> Vec<Time> {
        let mut times = Vec::new();
        while self.queue.backlog().packets > 0 {
            match self.queue.dequeue(now, &mut self.heard) {
                Some(_) => times.push(now),
                None => {
                    now = self.queue.next_wakeup().time().expect("packets wait");
                    self.queue.on_wakeup(now);
                }
            }
        }
        times
    }
}

#[test]
fn a_flow_begins_with_ten_packets_and_goes_on_with_two() {
    let mut bench = Bench::new(params());
    for flow in 0..2 {
        bench.add(flow, 1500, 40, Time::ZERO);
    }
    let order = bench.take(28, Time::ZERO);
    let expected = [(0, 10), (1, 10), (0, 2), (1, 2), (0, 2), (1, 2)];
    let expected: Vec<u32> = expected
        .iter()
        .flat_map(|&(flow, count)| vec![flow; count])
        .collect();
    assert_eq!(order, expected);
}

#[test]
fn a_flow_that_returns_goes_first_with_what_credit_it_has() {
    // Flow 0 sends its ten packets, and is found empty when flow 1 has its turn.
    let mut bench = Bench::new(params());
    bench.add(0, 1500, 10, Time::ZERO);
    bench.add(1, 1500, 60, Time::ZERO);
    assert_eq!(
        bench.take(20, Time::ZERO),
        [vec![0; 10], vec![1; 10]].concat()
    );
    // Flow 0 is visited, gets a quantum, and is visited again: it leaves the line with 3000 B.
    assert_eq!(bench.take(2, Time::ZERO), [1, 1]);
    // New again, before the old flow; with 1500 B used, 1500 B are left.
    bench.add(0, 1500, 1, ms(1));
    assert_eq!(bench.take(3, ms(1)), [0, 1, 1]);
    // Back within the refill delay: one packet. Then the credit of both is used up, and each gets
    // a quantum and goes to the end, flow 1 first.
    bench.add(0, 1500, 4, ms(30));
    assert_eq!(bench.take(4, ms(30)), [0, 0, 0, 1]);
}

#[test]
fn credit_is_refilled_only_after_the_delay() {
    let after = |gap: u64| {
        let mut bench = Bench::new(FqParams {
            initial_quantum: Bytes::new(3000),
            ..params()
        });
        bench.add(1, 1500, 60, Time::ZERO);
        bench.take(2, Time::ZERO);
        // One packet of flow 0, then its turn passes: it leaves with 1500 B.
        bench.add(0, 1500, 1, Time::ZERO);
        assert_eq!(bench.take(3, Time::ZERO), [0, 1, 1]);
        assert_eq!(bench.take(2, Time::ZERO), [1, 1]);
        bench.add(0, 1500, 4, ms(gap));
        // What credit there is, and a quantum.
        bench.take(4, ms(gap))
    };
    assert_eq!(after(40), [0, 0, 0, 1]);
    assert_eq!(after(41), [0; 4]);
}

#[test]
fn a_flow_may_hold_a_hundred_packets_and_all_ten_thousand() {
    let mut bench = Bench::new(params());
    bench.add(0, 100, 103, Time::ZERO);
    assert_eq!(bench.queue.backlog().packets, 100);
    let reasons: Vec<_> = bench.heard.dropped.iter().map(|drop| drop.1).collect();
    assert_eq!(reasons, [DropReason::Early; 3]);
    let mut told = Vec::new();
    bench.queue.report(
        Time::ZERO,
        &mut Report::new(&mut |name, value| told.push((name.to_owned(), value))),
    );
    let expected = ("flow_limit_drops".to_owned(), 3.0);
    assert!(told.contains(&expected), "{told:?}");
    // More than enough of them, since some may share a queue.
    for flow in 1..120 {
        bench.add(flow, 100, 100, Time::ZERO);
    }
    assert_eq!(bench.queue.backlog().packets, 10_000);
    let last = bench.heard.dropped.last().expect("no room");
    assert_eq!((last.0.flow, last.1), (119, DropReason::Limit));
}

#[test]
fn above_the_low_rate_a_quantum_is_paced_and_below_it_each_packet() {
    // 3000 B in 24 ms. The first turn takes ten packets; then the credit is used up.
    let paced = |kbps: u64| {
        let mut bench = Bench::new(FqParams {
            flow_max_rate: Some(Rate::from_bps(kbps * 1000)),
            ..params()
        });
        bench.add(0, 1500, 16, Time::ZERO);
        bench.drain(Time::ZERO)
    };
    let times = paced(1000);
    assert_eq!(times[..10], [Time::ZERO; 10]);
    // The tenth sets the time of the eleventh; each turn of two packets then takes 24 ms.
    assert_eq!(times[10..], [24, 24, 48, 48, 72, 72].map(ms));
    // 1500 B at 500 kbit/s: 24 ms for each packet, the first included.
    let times = paced(500);
    let expected: Vec<Time> = (0..16).map(|nth| ms(24 * nth)).collect();
    assert_eq!(times, expected);
}

#[test]
fn a_late_departure_is_made_up_for_by_half_a_gap_at_most() {
    let mut bench = Bench::new(FqParams {
        flow_max_rate: Some(Rate::from_bps(500_000)),
        ..params()
    });
    bench.add(0, 1500, 5, Time::ZERO);
    assert_eq!(bench.take(1, Time::ZERO), [0]); // next at 24 ms
    assert_eq!(bench.take(1, ms(30)), [0]); // 6 ms late: next at 30 + 18
    assert!(bench.queue.dequeue(ms(47), &mut bench.heard).is_none());
    assert_eq!(bench.queue.next_wakeup(), Wakeup::At(ms(48)));
    assert_eq!(bench.take(1, ms(88)), [0]); // 40 ms late: next at 88 + 12
    assert!(bench.queue.dequeue(ms(99), &mut bench.heard).is_none());
    assert_eq!(bench.queue.next_wakeup(), Wakeup::At(ms(100)));
}

#[test]
fn a_gap_is_a_second_at_most() {
    let mut bench = Bench::new(FqParams {
        flow_max_rate: Some(Rate::from_bps(1000)), // 12 s for 1500 B
        ..params()
    });
    bench.add(0, 1500, 3, Time::ZERO);
    assert_eq!(bench.drain(Time::ZERO), [0, 1000, 2000].map(ms));
}

#[test]
fn other_flows_go_on_while_one_is_held_back() {
    let mut bench = Bench::new(FqParams {
        flow_max_rate: Some(Rate::from_bps(500_000)),
        ..params()
    });
    bench.add(0, 1500, 2, Time::ZERO);
    bench.add(1, 1500, 2, Time::ZERO);
    assert_eq!(bench.take(2, Time::ZERO), [0, 1]);
    assert!(bench.queue.dequeue(Time::ZERO, &mut bench.heard).is_none());
    bench.add(2, 1500, 1, ms(5));
    assert_eq!(bench.take(1, ms(5)), [2]);
    // Both are due at the same time, and go in the order in which they were held back.
    assert_eq!(bench.take(2, ms(24)), [0, 1]);
}

#[test]
fn what_waits_too_long_is_marked_but_not_what_pacing_holds_back() {
    let params = FqParams {
        ce_threshold: Some(Span::from_ms(3)),
        flow_max_rate: Some(Rate::from_bps(500_000)),
        ..params()
    };
    let mut bench = Bench::new(params);
    bench.add(0, 1500, 3, Time::ZERO);
    bench.take(1, ms(3));
    assert!(bench.heard.marked.is_empty());
    // Entered at 0 and due at 3 + 24 ms: 3 ms after that is not too long, 4 ms is.
    bench.take(1, ms(30));
    assert!(bench.heard.marked.is_empty());
    // 3 ms late: due at 30 + 24 - 3 ms.
    bench.take(1, ms(55));
    assert_eq!(bench.heard.marked.len(), 1);
}

/// The kernel's `fq_enqueue`, `fq_dequeue` and `fq_check_throttled` on plain lists.
struct Kernel {
    params: FqParams,
    flows: Vec<KernelFlow>,
    new: VecDeque<usize>,
    old: VecDeque<usize>,
    /// Sorted by time, equal ones in order of arrival.
    delayed: Vec<(Time, usize)>,
    qlen: u64,
}

struct KernelFlow {
    packets: VecDeque<(u64, u64, Time)>,
    credit: i64,
    time_next_packet: Time,
    detached: Option<Time>,
}

impl Kernel {
    fn new(params: FqParams, flows: usize) -> Self {
        let flow = || KernelFlow {
            packets: VecDeque::new(),
            credit: params.initial_quantum.as_u64() as i64,
            time_next_packet: Time::ZERO,
            detached: Some(Time::ZERO),
        };
        Self {
            flows: (0..flows).map(|_| flow()).collect(),
            params,
            new: VecDeque::new(),
            old: VecDeque::new(),
            delayed: Vec::new(),
            qlen: 0,
        }
    }

    /// Whether the packet is let in.
    fn enqueue(&mut self, id: u64, flow: usize, size: u64, now: Time) -> bool {
        let f = &mut self.flows[flow];
        if self.qlen >= self.params.limit.packets.expect("given")
            || f.packets.len() as u64 >= u64::from(self.params.flow_limit)
        {
            return false;
        }
        if let Some(age) = f.detached.take() {
            self.new.push_back(flow);
            if now > age + self.params.flow_refill_delay {
                f.credit = f.credit.max(self.params.quantum.as_u64() as i64);
            }
        }
        f.packets.push_back((id, size, now));
        self.qlen += 1;
        true
    }

    fn dequeue(&mut self, now: Time) -> Result<u64, Option<Time>> {
        if self.qlen == 0 {
            return Err(None);
        }
        while let Some(&(at, flow)) = self.delayed.first().filter(|(at, _)| *at <= now) {
            let _ = at;
            self.delayed.remove(0);
            self.old.push_back(flow);
        }
        loop {
            let of_new = !self.new.is_empty();
            let head = if of_new { &mut self.new } else { &mut self.old };
            let Some(&flow) = head.front() else {
                return Err(self.delayed.first().map(|(at, _)| *at));
            };
            let f = &mut self.flows[flow];
            if f.credit <= 0 {
                f.credit += self.params.quantum.as_u64() as i64;
                head.pop_front();
                self.old.push_back(flow);
                continue;
            }
            let Some(&(id, size, time_to_send)) = f.packets.front() else {
                head.pop_front();
                if of_new && !self.old.is_empty() {
                    self.old.push_back(flow);
                } else {
                    f.detached = Some(now);
                }
                continue;
            };
            let time_next_packet = time_to_send.max(f.time_next_packet);
            if now < time_next_packet {
                head.pop_front();
                f.time_next_packet = time_next_packet;
                let place = self
                    .delayed
                    .partition_point(|(at, _)| *at <= time_next_packet);
                self.delayed.insert(place, (time_next_packet, flow));
                continue;
            }
            f.packets.pop_front();
            self.qlen -= 1;
            f.credit -= size as i64;
            let Some(rate) = self.params.flow_max_rate else {
                return Ok(id);
            };
            let mut plen = size;
            if rate <= self.params.low_rate_threshold {
                f.credit = 0;
            } else {
                plen = plen.max(self.params.quantum.as_u64());
                if f.credit > 0 {
                    return Ok(id);
                }
            }
            let mut len = rate.tx_time(Bytes::new(plen)).min(Span::from_s(1));
            if f.time_next_packet > Time::ZERO {
                let late = now - f.time_next_packet;
                len = len.saturating_sub((len / 2).min(late));
            }
            f.time_next_packet = now + len;
            return Ok(id);
        }
    }
}

#[test]
fn every_departure_of_random_traffic_is_the_kernel_s() {
    let limit = Limit::packets(60);
    let base = FqParams {
        limit,
        flow_limit: 12,
        ..params()
    };
    let rate = |kbps: u64| Some(Rate::from_bps(kbps * 1000));
    let cases = [
        base.clone(),
        FqParams {
            flow_max_rate: rate(400),
            ..base.clone()
        },
        FqParams {
            flow_max_rate: rate(700),
            ..base.clone()
        },
        FqParams {
            quantum: Bytes::new(700),
            initial_quantum: Bytes::new(2000),
            flow_max_rate: rate(600),
            ..base
        },
    ];
    for (case, params) in cases.into_iter().enumerate() {
        let mut stream = Stream::named(7, case as u32, "fq traffic");
        let mut queue = build(&QueueParams::Fq(params.clone()));
        let mut kernel = Kernel::new(params, 8);
        let mut heard = Heard::default();
        let mut now = Time::from_ps(1);
        let (mut departures, mut waits, mut refusals) = (0, 0, 0);
        for id in 0..20_000u64 {
            now += Span::from_us((stream.uniform() * 1200.0) as u64);
            // Bursts of one flow, so that flows come and go.
            let flow = (((id / 7) * 2_654_435_761) >> 8) % 8;
            let size = [40, 576, 1500][(stream.uniform() * 3.0) as usize];
            let packet = Probe {
                flow: flow as u32,
                ..Probe::new(id, size, Ecn::NotEct)
            };
            let before = heard.dropped.len();
            queue.enqueue(packet, now, &mut heard);
            let let_in = heard.dropped.len() == before;
            assert_eq!(
                let_in,
                kernel.enqueue(id, flow as usize, size, now),
                "case {case}, packet {id}"
            );
            refusals += u32::from(!let_in);
            if stream.uniform() < 0.9 {
                let ours = queue.dequeue(now, &mut heard).map(|packet| packet.id);
                match kernel.dequeue(now) {
                    Ok(theirs) => {
                        assert_eq!(ours, Some(theirs), "case {case} at {now:?}");
                        departures += 1;
                    }
                    Err(wakeup) => {
                        assert_eq!(
                            (ours, queue.next_wakeup().time()),
                            (None, wakeup),
                            "case {case} at {now:?}"
                        );
                        waits += u32::from(wakeup.is_some());
                    }
                }
            }
        }
        assert!(
            departures > 5_000 && refusals > 100,
            "{departures}, {refusals}"
        );
        assert_eq!(waits > 100, case > 0, "case {case}: {waits} waits");
    }
}

#[test]
fn impossible_values_are_refused_and_odd_ones_warned_about() {
    let refusal = |params: FqParams| QueueParams::Fq(params).check().unwrap_err().to_string();
    assert_eq!(
        refusal(FqParams {
            flow_limit: 0,
            ..params()
        }),
        "flow_limit would drop every packet; accepted: at least 1"
    );
    assert_eq!(
        refusal(FqParams {
            initial_quantum: Bytes::new(u64::MAX),
            ..params()
        }),
        "initial_quantum is more than Linux takes; accepted: up to \"2147483647 B\", for example \"15000 B\""
    );
    assert_eq!(
        refusal(FqParams {
            flow_max_rate: Some(Rate::from_bps(0)),
            ..params()
        }),
        "flow_max_rate is zero; accepted: a rate such as \"1 Mbit/s\", or no such key for no pacing"
    );
    assert!(
        refusal(FqParams {
            quantum: Bytes::new(100),
            ..params()
        })
        .starts_with("quantum is less")
    );
    let fast = FqParams {
        flow_max_rate: Some(Rate::from_bps(1_000_000)),
        ..params()
    };
    let warnings = QueueParams::Fq(fast).warnings(&LinkFacts::of_rate(Rate::from_bps(1_000_000)));
    assert_eq!(
        warnings[0].clause,
        "is not below the link's (1 Mbit/s): it paces nothing"
    );
}
