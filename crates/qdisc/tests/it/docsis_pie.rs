//! DOCSIS-PIE against RFC 8034's appendix A, computed here a second time, and its shaper against
//! the equations of section 3.

use std::collections::VecDeque;

use crate::common::{Heard, Probe, build_on};
use redtail_core::{Bytes, Ecn, Rate, Span, Stream, Time};
use redtail_qdisc::laws::docsis_pie::{AqmState, DocsisPieConfig, DocsisPieLaw};
use redtail_qdisc::laws::pie::PieDecision;
use redtail_qdisc::queues::docsis_pie::DocsisPieParams;
use redtail_qdisc::{AnyQueue, DropReason, Limit, LinkFacts, QueueDiscipline, QueueParams};

const LINK: Rate = Rate::from_bps(10_000_000);
/// A third is 100 kB.
const BUFFER: u64 = 300_000;

fn params() -> DocsisPieParams {
    DocsisPieParams::new(Limit::bytes(BUFFER))
}

fn build(params: DocsisPieParams) -> AnyQueue<Probe> {
    let link = LinkFacts {
        largest_packet: Bytes::new(1500),
        ..LinkFacts::of_rate(LINK)
    };
    build_on(&QueueParams::DocsisPie(params), link)
}

fn law() -> DocsisPieLaw {
    DocsisPieLaw::new(config())
}

/// Bytes that take this long at the link's rate.
fn bytes(ms: f64) -> u64 {
    (ms * 1250.0) as u64
}

/// Appendix A, line by line, in its names.
struct Appendix {
    msr: f64,
    peak_rate: f64,
    drop_prob: f64,
    accu_prob: f64,
    qdelay_old: f64,
    /// In milliseconds, as `burst_reset`.
    burst_allowance: i64,
    burst_reset: i64,
    aqm_state: AqmState,
    random: Stream,
}

impl Appendix {
    fn calculate_drop_prob(&mut self, byte_length: f64, msrtokens: f64) {
        let qdelay = if byte_length <= msrtokens {
            byte_length / self.peak_rate
        } else {
            (byte_length - msrtokens) / self.msr + msrtokens / self.peak_rate
        };
        if self.burst_allowance > 0 {
            self.drop_prob = 0.0;
            self.burst_allowance = (self.burst_allowance - 16).max(0);
        } else {
            let mut p = 0.25 * (qdelay - 0.010) + 2.5 * (qdelay - self.qdelay_old);
            p /= match self.drop_prob {
                x if x < 0.000_001 => 2048.0,
                x if x < 0.000_01 => 512.0,
                x if x < 0.000_1 => 128.0,
                x if x < 0.001 => 32.0,
                x if x < 0.01 => 8.0,
                x if x < 0.1 => 2.0,
                x if x < 1.0 => 0.5,
                x if x < 10.0 => 0.125,
                _ => 0.031_25,
            };
            if self.drop_prob >= 0.1 && p > 0.02 {
                p = 0.02;
            }
            self.drop_prob += p;
            if qdelay < 0.005 && self.qdelay_old < 0.005 {
                self.drop_prob *= 0.98;
            } else if qdelay > 0.2 {
                self.drop_prob += 0.02;
            }
            self.drop_prob = self.drop_prob.clamp(0.0, 0.85 * 1024.0 / 64.0);
        }
        let quiet = qdelay < 0.005
            && self.qdelay_old < 0.005
            && self.drop_prob == 0.0
            && self.burst_allowance == 0;
        if self.aqm_state == AqmState::Active && quiet {
            self.aqm_state = AqmState::Quiescent;
            self.burst_reset = 0;
        } else if self.aqm_state == AqmState::Quiescent {
            if quiet {
                self.burst_reset += 16;
                if self.burst_reset > 1000 {
                    self.burst_reset = 0;
                    self.aqm_state = AqmState::Inactive;
                }
            } else {
                self.burst_reset = 0;
            }
        }
        self.qdelay_old = qdelay;
    }

    fn drop_early(&mut self, size: f64, byte_length: f64) -> bool {
        if self.burst_allowance > 0 {
            return false;
        }
        if self.drop_prob == 0.0 {
            self.accu_prob = 0.0;
        }
        if self.aqm_state == AqmState::Inactive {
            if byte_length < BUFFER as f64 / 3.0 {
                return false;
            }
            self.aqm_state = AqmState::Quiescent;
        }
        let p1 = (self.drop_prob * size / 1024.0).min(0.85);
        self.accu_prob += p1;
        if (self.qdelay_old < 0.005 && self.drop_prob < 0.2) || byte_length <= 2048.0 {
            return false;
        }
        if self.accu_prob < 0.85 {
            return false;
        }
        if self.accu_prob < 8.5 && self.random.uniform() >= p1 {
            return false;
        }
        self.accu_prob = 0.0;
        if self.aqm_state == AqmState::Quiescent {
            self.aqm_state = AqmState::Active;
            self.burst_allowance = 142;
        }
        true
    }
}

#[test]
fn every_decision_is_that_of_appendix_a() {
    // The link alone, and a modem with a burst of 60 kB at twice its rate.
    let modem = |rate, peak_rate, burst| DocsisPieParams {
        rate,
        peak_rate,
        burst: Bytes::new(burst),
        ..params()
    };
    let mbps = |mbps: u64| Some(Rate::from_bps(mbps * 1_000_000));
    for (case, params) in [
        params(),
        modem(mbps(4), mbps(8), 60_000),
        modem(mbps(4), None, 60_000),
    ]
    .into_iter()
    .enumerate()
    {
        let rate = |rate: Option<Rate>| rate.unwrap_or(LINK).as_bps() as f64 / 8.0;
        let (msr, peak_rate) = (rate(params.rate), rate(params.peak_rate));
        let shaped = params.rate.is_some();
        let mut appendix = Appendix {
            msr,
            peak_rate,
            drop_prob: 0.0,
            accu_prob: 0.0,
            qdelay_old: 0.0,
            burst_allowance: 0,
            burst_reset: 0,
            aqm_state: AqmState::Inactive,
            random: Stream::named(1, 0, "queue"),
        };
        let mut queue = build(params);
        let mut heard = Heard::default();
        let mut traffic = Stream::named(3, case as u32, "traffic");
        let mut waiting: VecDeque<(u64, Time)> = VecDeque::new();
        let mut byte_length = 0u64;
        // The bucket of the maximum sustained traffic rate, by real numbers.
        let (mut tokens, mut counted) = (60_000.0, 0.0);
        let mut update = Time::ZERO + Span::from_ms(16);
        let mut now = Time::ZERO;
        let mut free = Time::ZERO;
        let (mut early, mut full, mut states) = (0, 0, [0u32; 3]);
        for id in 0..60_000u64 {
            // 12 s a cycle: twice the link's rate, then less and less, then 3 s of nothing.
            let phase = id % 6000;
            let load = [2.2, 1.3, 0.8, 1.6, 0.4, 0.1][(phase / 1000) as usize];
            let size = [64u64, 576, 1500, 1500][(traffic.uniform() * 4.0) as usize];
            now += Span::from_secs_f64(2.0 * traffic.uniform() * 910.0 / (msr * load));
            if phase == 0 {
                now += Span::from_s(3);
            }
            // What leaves before this arrival, and the updates in between, in order.
            loop {
                let entered = waiting.front().map_or(Time::MAX, |&(_, entered)| entered);
                let asked = free
                    .max(entered)
                    .max(queue.next_wakeup().time().unwrap_or(free));
                let leaves = asked <= now;
                if update <= now && (!leaves || update <= asked) {
                    let at = (update - Time::ZERO).as_secs_f64();
                    let msrtokens = (tokens + msr * (at - counted)).min(60_000.0);
                    let msrtokens = if shaped { msrtokens } else { 0.0 };
                    appendix.calculate_drop_prob(byte_length as f64, msrtokens);
                    states[appendix.aqm_state as usize] += 1;
                    update += Span::from_ms(16);
                } else if leaves {
                    if queue.next_wakeup().is_due(asked) {
                        queue.on_wakeup(asked);
                    }
                    free = asked;
                    if let Some(left) = queue.dequeue(asked, &mut heard) {
                        assert_eq!(waiting.pop_front().map(|(id, _)| id), Some(left.id));
                        byte_length -= left.size;
                        let at = (asked - Time::ZERO).as_secs_f64();
                        tokens = (tokens + msr * (at - counted)).min(60_000.0) - left.size as f64;
                        counted = at;
                        free = asked + LINK.tx_time(Bytes::new(left.size));
                    }
                } else {
                    break;
                }
            }
            let before = heard.dropped.len();
            queue.enqueue(Probe::new(id, size, Ecn::Ect0), now, &mut heard);
            let reason = heard.dropped.get(before).map(|drop| drop.1);
            let expected = if byte_length + size > BUFFER {
                appendix.accu_prob = 0.0;
                full += 1;
                Some(DropReason::Limit)
            } else if appendix.drop_early(size as f64, byte_length as f64) {
                early += 1;
                Some(DropReason::Early)
            } else {
                waiting.push_back((id, now));
                byte_length += size;
                None
            };
            assert_eq!(reason, expected, "case {case}, packet {id} at {now:?}");
            let p = queue.internals().probability.expect("it has one");
            assert!(
                (p - appendix.drop_prob.min(0.85)).abs() < 1e-9,
                "case {case}, packet {id}: {p}, {}",
                appendix.drop_prob
            );
        }
        assert!(
            heard.marked.is_empty(),
            "nothing is ever marked (section 4.7)"
        );
        assert!(
            early > 2000,
            "case {case}: {early} early, {full} for want of room"
        );
        assert!(
            states.iter().all(|&seen| seen > 20),
            "case {case}: {states:?}"
        );
    }
}

#[test]
fn the_modem_keeps_to_both_equations_of_section_3() {
    let (rate, peak, burst) = (4_000_000u64, 6_000_000u64, 40_000u64);
    let mut queue = build(DocsisPieParams {
        rate: Some(Rate::from_bps(rate)),
        peak_rate: Some(Rate::from_bps(peak)),
        burst: Bytes::new(burst),
        ..DocsisPieParams::new(Limit::packets(2000))
    });
    let mut heard = Heard::default();
    let mut sizes = Stream::named(2, 0, "sizes");
    for id in 0..400 {
        let size = [64, 576, 1500][(sizes.uniform() * 3.0) as usize];
        queue.enqueue(Probe::new(id, size, Ecn::NotEct), Time::ZERO, &mut heard);
    }
    let (mut now, mut left) = (Time::ZERO, Vec::new());
    while queue.backlog().packets > 0 {
        match queue.dequeue(now, &mut heard) {
            Some(packet) => left.push((now, packet.size)),
            None => {
                now = queue.next_wakeup().time().expect("packets wait");
                queue.on_wakeup(now);
            }
        }
    }
    // TxBytes(t1, t2) <= (t2 - t1) R / 8 + B, and <= (t2 - t1) P / 8 + 1522, in 1/8 ps.
    let mut tight = [false; 2];
    for (first, &(from, _)) in left.iter().enumerate() {
        let mut sent = 0u128;
        for &(to, size) in &left[first..] {
            sent += u128::from(size);
            let span = u128::from((to - from).as_ps());
            for (which, (rate, burst)) in [(rate, burst), (peak, 1522)].into_iter().enumerate() {
                let allowed = span * u128::from(rate) / 8 + u128::from(burst) * 1_000_000_000_000;
                // A wait is rounded up to the picosecond.
                assert!(sent * 1_000_000_000_000 <= allowed, "{sent} B in {span} ps");
                tight[which] |= allowed - sent * 1_000_000_000_000 < u128::from(rate);
            }
        }
    }
    assert_eq!(
        tight, [true; 2],
        "each of them is all that holds packets back at times"
    );
}

#[test]
fn the_delay_is_predicted_from_the_tokens() {
    let law = DocsisPieLaw::new(DocsisPieConfig {
        rate: Rate::from_bps(8_000_000),       // 1 B/us
        peak_rate: Rate::from_bps(16_000_000), // 2 B/us
        ..config()
    });
    for (backlog, tokens, expected) in [
        (0, 5000.0, 0.0),
        (4000, 5000.0, 0.002),
        (5000, 5000.0, 0.0025),
        (8000, 5000.0, 0.0055),
        (8000, 0.0, 0.008),
    ] {
        let delay = law.predict(backlog, tokens);
        assert!(
            (delay - expected).abs() < 1e-12,
            "{backlog}, {tokens}: {delay}"
        );
    }
}

fn config() -> DocsisPieConfig {
    DocsisPieConfig {
        target: Span::from_ms(10),
        interval: Span::from_ms(16),
        alpha: 0.25,
        beta: 2.5,
        max_burst: Span::from_ms(142),
        burst_reset: Span::from_s(1),
        mean_packet: Bytes::new(1024),
        rate: LINK,
        peak_rate: LINK,
    }
}

#[test]
fn it_wakes_at_a_third_drops_one_packet_and_then_protects_the_burst() {
    let mut law = law();
    let arrive = |law: &mut DocsisPieLaw, backlog, third| {
        law.on_arrival(Bytes::new(1500), backlog, third, || 0.0)
    };
    // However long it waits below a third, nothing is dropped.
    for _ in 0..100 {
        law.update(bytes(60.0), 0.0);
        assert_eq!(arrive(&mut law, bytes(60.0), false), PieDecision::Pass);
    }
    assert!(law.probability() > 0.1);
    assert_eq!(law.state(), AqmState::Inactive);
    // Beyond it, the first drop comes once the sum of probabilities allows it.
    let mut passed = 0;
    while arrive(&mut law, bytes(90.0), true) == PieDecision::Pass {
        assert_eq!(law.state(), AqmState::Quiescent);
        passed += 1;
    }
    assert!(passed < 10, "{passed}");
    assert_eq!(
        (law.state(), law.burst()),
        (AqmState::Active, Span::from_ms(142))
    );
    // 142 ms are nine updates of 16 ms; p is 0 meanwhile.
    for update in 1..=9 {
        assert_eq!(arrive(&mut law, bytes(90.0), true), PieDecision::Pass);
        law.update(bytes(90.0), 0.0);
        assert_eq!(law.probability(), 0.0);
        assert_eq!(
            law.burst(),
            Span::from_ms(142).saturating_sub(Span::from_ms(16) * update)
        );
    }
    law.update(bytes(90.0), 0.0);
    assert!(law.probability() > 0.0);
}

#[test]
fn it_sleeps_after_a_second_of_quiet() {
    let mut law = law();
    for _ in 0..200 {
        law.update(bytes(60.0), 0.0);
    }
    while law.on_arrival(Bytes::new(1500), bytes(90.0), true, || 0.0) == PieDecision::Pass {}
    // The burst protection, then p at 0 with nothing waiting.
    let mut updates = 0;
    while law.state() == AqmState::Active {
        law.update(0, 0.0);
        updates += 1;
    }
    assert_eq!(updates, 9);
    // 63 updates are more than 1 s.
    for update in 1..=63 {
        assert_eq!(law.state(), AqmState::Quiescent);
        law.update(0, 0.0);
        assert_eq!(law.state() == AqmState::Inactive, update == 63);
    }
    assert!(law.rests());
}

#[test]
fn probability_exceeds_one_for_a_flood_of_small_packets() {
    // Section 4.4: dropping half of the 64 B packets of a flood takes p = 8.
    let mut law = law();
    for _ in 0..2000 {
        law.update(bytes(15.0), 0.0);
    }
    assert!(
        law.scaled_probability() > 8.0,
        "{}",
        law.scaled_probability()
    );
    assert_eq!(law.probability(), 0.85);
    for _ in 0..5000 {
        law.update(bytes(300.0), 0.0);
    }
    assert_eq!(law.scaled_probability(), 0.85 * 16.0);
}

#[test]
fn impossible_values_are_refused_and_odd_ones_warned_about() {
    let refusal = |params| {
        QueueParams::DocsisPie(params)
            .check()
            .unwrap_err()
            .to_string()
    };
    let mbps = |mbps: u64| Some(Rate::from_bps(mbps * 1_000_000));
    assert_eq!(
        refusal(DocsisPieParams {
            peak_rate: mbps(5),
            ..params()
        }),
        "rate is missing, and without it peak_rate has no effect; accepted: a rate such as \"10 Mbit/s\""
    );
    assert_eq!(
        refusal(DocsisPieParams {
            rate: mbps(5),
            peak_rate: mbps(4),
            ..params()
        }),
        "peak_rate is below rate (5 Mbit/s); accepted: at least \"5 Mbit/s\""
    );
    assert_eq!(
        refusal(DocsisPieParams {
            burst: Bytes::ZERO,
            ..params()
        }),
        "burst would let no packet pass; accepted: at least the largest packet, such as \"3044 B\""
    );
    let idle = DocsisPieParams {
        rate: mbps(10),
        ..params()
    };
    let warnings = QueueParams::DocsisPie(idle).warnings(&LinkFacts::of_rate(LINK));
    assert_eq!(
        warnings[0].clause,
        "is not below the link's (10 Mbit/s): it shapes nothing"
    );
}
