//! PI and its relatives against their published equations, computed here a second time.
//!
//! Statistical tests have fixed seeds. Their bounds are five standard deviations: a
//! correct law would fail one with probability 6e-7 had the seed been drawn.

use crate::common::{Heard, Probe, build_on};
use redtail_core::{Ecn, QueueSize, Rate, Sampling, Span, Stream, Time};
use redtail_qdisc::laws::pi::{Path, crossover, design, hollot, hollot_at, phase_margin};
use redtail_qdisc::laws::pie::{Decay, Delay, Flavour, PieConfig, PieLaw};
use redtail_qdisc::queues::dualpi2::{DualPi2Params, DualScheduler};
use redtail_qdisc::queues::pi::{PiParams, Tune};
use redtail_qdisc::queues::pi2::Pi2Params;
use redtail_qdisc::queues::pie::PieParams;
use redtail_qdisc::{AnyQueue, DropReason, Limit, LinkFacts, QueueDiscipline, QueueParams, Report};

/// 10 Mbit/s with 64 flows of 1500 B packets and round trips up to 180 ms.
fn link() -> LinkFacts {
    LinkFacts {
        tcp_flows: 64,
        mean_round_trip: Some(Span::from_ms(150)),
        max_round_trip: Some(Span::from_ms(180)),
        largest_packet: 1500.into(),
        ..LinkFacts::of_rate(Rate::from_bps(10_000_000))
    }
}

fn pi(change: impl FnOnce(&mut PiParams)) -> QueueParams {
    let mut params = PiParams {
        limit: Limit::packets(300),
        q_ref: QueueSize::Packets(50),
        a: Some(1.822e-5),
        b: Some(1.816e-5),
        tune: None,
        flows: None,
        rtt: None,
        sampling: Sampling::hz(170),
        mean_packet: None,
        ecn: false,
    };
    change(&mut params);
    QueueParams::Pi(params)
}

fn built(spec: &QueueParams) -> AnyQueue<Probe> {
    build_on(spec, link())
}

fn probability(queue: &AnyQueue<Probe>) -> f64 {
    queue.internals().probability.expect("it has one")
}

/// What is said against these parameters on [`link`].
fn refusal(spec: &QueueParams) -> String {
    let refused = spec.check().and_then(|()| spec.check_at(&link()));
    refused.expect_err("they are to be refused").to_string()
}

fn warnings(spec: &QueueParams) -> Vec<String> {
    let warnings = spec.warnings(&link());
    let texts = warnings
        .into_iter()
        .map(|w| format!("{} {}", w.key, w.clause));
    texts.collect()
}

/// Calls at random times: what arrives or leaves in the next step, and after how long.
fn random_calls(seed: u64, count: usize, mean_gap: Span) -> Vec<(Span, bool)> {
    let mut stream = Stream::named(seed, 0, "calls");
    let mut calls = Vec::new();
    for i in 0..count {
        let gap = stream.uniform_span(Span::ZERO, mean_gap * 2);
        // It fills at first and is drained in the end.
        let filling = 0.7 - 0.5 * i as f64 / count as f64;
        calls.push((gap, stream.uniform() < filling));
    }
    calls
}

#[test]
fn the_hollot_design_gives_the_gains_of_the_paper() {
    // Hollot et al. 2001, section V: 15 Mbit/s of 500 B packets, at least 60 flows, at most
    // 246 ms, 160 Hz: a = 1.822e-5, b = 1.816e-5; printed with rounded intermediate values.
    let path = Path {
        capacity: 3750.0,
        flows: 60.0,
        round_trip: 0.246,
    };
    let (a, b) = hollot(path, 1.0 / 160.0);
    assert!((a / 1.822e-5 - 1.0).abs() < 0.02, "{a}");
    assert!((b / 1.816e-5 - 1.0).abs() < 0.02, "{b}");
    // Proposition 2 by hand: z = 120 / (0.246^2 3750), so z R = 0.13008.
    let z = 120.0 / (0.060516 * 3750.0);
    let k = z * (1.0f64 + 0.130081301f64.powi(2)).sqrt() * 14400.0 / 922.5f64.powi(3);
    assert!((a + b - 2.0 * k / z).abs() < 1e-12);
    assert!((a - b - k / 160.0).abs() < 1e-14);
}

#[test]
fn the_hollot_design_has_the_phase_margin_of_its_proof() {
    // The zero cancels the window's pole and the loop crosses over at z, so what is left
    // of 90 degrees is 90 - z R - atan(z R).
    for (flows, round_trip) in [(60.0, 0.246), (30.0, 0.1), (100.0, 0.4)] {
        let path = Path {
            capacity: 3750.0,
            flows,
            round_trip,
        };
        let (a, b) = hollot(path, 1.0 / 160.0);
        let zr: f64 = 2.0 * flows / (round_trip * 3750.0);
        // Half a sampling interval more of delay: the probability is held.
        let held = zr / round_trip / 320.0;
        let expected = std::f64::consts::FRAC_PI_2 - zr - zr.atan() - held;
        let margin = phase_margin(path, a, b, 1.0 / 160.0).expect("it is a PI controller");
        assert!((margin - expected).abs() < 1e-6, "{margin}, {expected}");
    }
}

#[test]
fn a_design_for_a_crossover_of_its_own_has_the_phase_margin_of_it() {
    let path = Path {
        capacity: 10e6 / 12_000.0,
        flows: 64.0,
        round_trip: 0.16,
    };
    let z = 2.0 * path.flows / (path.round_trip * path.round_trip * path.capacity);
    let (a, b) = hollot_at(path, z, 1.0 / 170.0);
    let paper = hollot(path, 1.0 / 170.0);
    assert!((a / paper.0 - 1.0).abs() < 1e-12);
    assert!((b / paper.1 - 1.0).abs() < 1e-12);
    // With two packets in a window, the loop that crosses over at z is unstable.
    let margin = phase_margin(path, a, b, 1.0 / 170.0).expect("it is a PI controller");
    assert!(margin < 0.0, "{margin}");
    for beta in [0.1f64, 0.5, 0.8] {
        let (a, b) = hollot_at(path, beta / path.round_trip, 1.0 / 170.0);
        let margin = phase_margin(path, a, b, 1.0 / 170.0).expect("it is a PI controller");
        let held = beta / path.round_trip / 340.0;
        let expected = std::f64::consts::FRAC_PI_2 - beta - beta.atan() - held;
        assert!((margin - expected).abs() < 1e-6, "{margin}, {expected}");
    }
}

/// The least phase margin, in degrees, of the sampled loop on a path, from its equations:
/// the controller (a - b e^-sT) / (1 - e^-sT), its output held for T, and the window and
/// the queue of Hollot et al. 2001, equation 3. The hold's (1 - e^-sT) / (s T) takes the
/// controller's denominator away.
fn sampled_margin(path: Path, (a, b): (f64, f64), interval: f64) -> f64 {
    let Path {
        capacity,
        flows,
        round_trip,
    } = path;
    let window_pole = 2.0 * flows / (round_trip * round_trip * capacity);
    let loop_at = |w: f64| {
        let (real, imaginary) = (a - b * (w * interval).cos(), b * (w * interval).sin());
        let gain = real.hypot(imaginary) / (w * interval) * capacity * capacity
            / (2.0 * flows)
            / (w.hypot(window_pole) * w.hypot(1.0 / round_trip));
        let phase = imaginary.atan2(real).to_degrees()
            - 90.0
            - (w * round_trip).to_degrees()
            - (w / window_pole).atan().to_degrees()
            - (w * round_trip).atan().to_degrees();
        (gain, phase)
    };
    let highest = std::f64::consts::PI / interval;
    let steps = 7000;
    let frequency = |i: u32| highest * (1e-7f64).powf(1.0 - f64::from(i) / f64::from(steps));
    let mut least = f64::INFINITY;
    for i in 0..steps {
        let ((before, _), (after, phase)) = (loop_at(frequency(i)), loop_at(frequency(i + 1)));
        if before >= 1.0 && after < 1.0 {
            least = least.min(180.0 + phase);
        }
    }
    least
}

#[test]
fn the_design_is_stable_whatever_the_rate_the_flows_and_the_round_trip() {
    // 90 degrees - 0.5 rad - atan 0.5 are 34.8; sampling is not quite a delay of half an
    // interval, and its step is 1/1000 of a decade here.
    const LEAST: f64 = 30.0;
    let interval = 1.0 / 170.0;
    let (mut unstable, mut unchanged, mut slower) = (0, 0, 0);
    for capacity in [50.0, 833.0, 3750.0, 83_333.0, 833_333.0] {
        for flows in [1.0, 4.0, 16.0, 64.0, 256.0, 1024.0] {
            for round_trip in [0.002, 0.01, 0.05, 0.16, 0.246, 0.8] {
                let path = Path {
                    capacity,
                    flows,
                    round_trip,
                };
                let gains = design(path, interval);
                if gains.1 <= 0.0 {
                    continue; // refused: sampling is too slow for the zero
                }
                let margin = sampled_margin(path, gains, interval);
                assert!(margin > LEAST, "{path:?}: {margin}");
                // Proposition 2: with more flows and shorter round trips as well.
                for (more, shorter) in [(1.5, 1.0), (10.0, 1.0), (1.0, 0.5), (3.0, 0.2)] {
                    let other = Path {
                        capacity,
                        flows: flows * more,
                        round_trip: round_trip * shorter,
                    };
                    let margin = sampled_margin(other, gains, interval);
                    assert!(margin > LEAST, "{path:?}, {other:?}: {margin}");
                }
                let paper = hollot(path, interval);
                let zero = 2.0 * flows / (round_trip * round_trip * capacity);
                if zero * (round_trip + interval / 2.0) <= 0.5 {
                    assert_eq!(gains, paper, "{path:?}");
                    assert_eq!(crossover(path, interval), zero);
                    unchanged += 1;
                } else {
                    assert!(gains.0 < paper.0, "{path:?}");
                    slower += 1;
                    unstable += u32::from(sampled_margin(path, paper, interval) <= 0.0);
                }
            }
        }
    }
    assert!(
        unchanged > 50 && slower > unstable && unstable > 10,
        "{unchanged}, {slower}, {unstable}"
    );
}

#[test]
fn the_queue_computes_the_papers_gains_for_the_papers_path_and_stable_ones_for_short_windows() {
    let tuned = |link: &LinkFacts, rate_of_update: u32| {
        let spec = pi(|pi| {
            (pi.a, pi.b, pi.tune) = (None, None, Some(Tune::Hollot));
            pi.q_ref = QueueSize::Packets(1);
            pi.sampling = Sampling::hz(rate_of_update.into());
        });
        assert_eq!(spec.check_at(link), Ok(()));
        let mut queue = build_on(&spec, link.clone());
        // Eleven packets at the first update: 10 a + b; with none left at the second:
        // 10 b - a less, so the two give a and b.
        for id in 0..11 {
            queue.enqueue(
                Probe::new(id, 500, Ecn::NotEct),
                Time::ZERO,
                &mut Heard::default(),
            );
        }
        let interval = Span::from_ps(1_000_000_000_000 / u64::from(rate_of_update));
        queue.dequeue(
            Time::ZERO + interval + Span::from_us(1),
            &mut Heard::default(),
        );
        let first = probability(&queue);
        queue.dequeue(
            Time::ZERO + interval * 2 + Span::from_us(1),
            &mut Heard::default(),
        );
        // Ten were waiting then: 9 a - 10 b more.
        let second = probability(&queue) - first;
        let b = (9.0 * first - 10.0 * second) / 109.0;
        ((first - b) / 10.0, b)
    };
    // Hollot et al. 2001, section V, with 500 B packets and the queueing of one.
    let papers = LinkFacts {
        tcp_flows: 60,
        mean_round_trip: Some(Span::from_ms(200)),
        max_round_trip: Some(Span::from_ps(246_000_000_000 - 266_666_667)),
        largest_packet: 500.into(),
        ..LinkFacts::of_rate(Rate::from_bps(15_000_000))
    };
    for (hertz, rounding) in [(160, 0.02), (170, 0.02)] {
        let (a, b) = tuned(&papers, hertz);
        assert!((a / 1.822e-5 - 1.0).abs() < rounding, "{a}");
        assert!((b / 1.816e-5 - 1.0).abs() < rounding, "{b}");
        let path = Path {
            capacity: 3750.0,
            flows: 60.0,
            round_trip: 0.246,
        };
        let exact = hollot(path, 1.0 / f64::from(hertz));
        assert!((a / exact.0 - 1.0).abs() < 1e-6, "{a}, {exact:?}");
        assert!((b / exact.1 - 1.0).abs() < 1e-6, "{b}, {exact:?}");
    }
    // 64 flows over 10 Mbit/s and 100 ms.
    let short = LinkFacts {
        max_round_trip: Some(Span::from_ms(100)),
        ..link()
    };
    let path = Path {
        capacity: 10e6 / 12_000.0,
        flows: 64.0,
        round_trip: 0.1012,
    };
    let gains = tuned(&short, 170);
    let margin = sampled_margin(path, gains, 1.0 / 170.0);
    assert!((30.0..40.0).contains(&margin), "{margin}");
    let paper = sampled_margin(path, hollot(path, 1.0 / 170.0), 1.0 / 170.0);
    assert!(paper < -20.0, "{paper}");
}

#[test]
fn pi_follows_its_difference_equation_at_every_sample() {
    let (a, b) = (2e-3, 1.9e-3);
    let spec = pi(|pi| {
        pi.q_ref = QueueSize::Packets(20);
        pi.a = Some(a);
        pi.b = Some(b);
    });
    let mut queue = built(&spec);
    // The same with a timer, as ns-2 has it.
    let interval = Span::from_ps(5_882_352_941);
    let (mut p, mut old, mut tick) = (0.0f64, 0.0, Time::ZERO + interval);
    let mut now = Time::ZERO;
    let mut highest = 0.0f64;
    for (id, (gap, arrives)) in random_calls(1, 4000, Span::from_ms(4))
        .into_iter()
        .enumerate()
    {
        now += gap;
        while tick <= now {
            let q = queue.backlog().packets as f64;
            p = (p + a * (q - 20.0) - b * (old - 20.0)).clamp(0.0, 1.0);
            old = q;
            tick += interval;
        }
        let mut heard = Heard::default();
        if arrives {
            queue.enqueue(Probe::new(id as u64, 1500, Ecn::NotEct), now, &mut heard);
        } else {
            queue.dequeue(now, &mut heard);
        }
        assert!((probability(&queue) - p).abs() < 1e-12);
        assert_eq!(queue.internals().average, Some(old));
        highest = highest.max(p);
    }
    assert!(highest > 0.05 && p < highest, "it was to rise and fall");
}

#[test]
fn pi_reads_bytes_in_typical_packets() {
    // 30 kB are 20 packets of 1500 B; the same law then holds.
    let by = |q_ref, mean_packet: Option<u64>| {
        let mut queue = built(&pi(|pi| {
            pi.q_ref = q_ref;
            pi.mean_packet = mean_packet.map(Into::into);
        }));
        for id in 0..100 {
            let packet = Probe::new(id, 1500, Ecn::NotEct);
            queue.enqueue(packet, Time::ZERO, &mut Heard::default());
        }
        queue.dequeue(Time::ZERO + Span::from_ms(100), &mut Heard::default());
        probability(&queue)
    };
    let packets = by(QueueSize::Packets(20), None);
    assert!(packets > 1e-3);
    assert_eq!(by(QueueSize::Bytes(30_000), None), packets);
    assert_eq!(by(QueueSize::Time(Span::from_ms(24)), None), packets);
    assert_ne!(by(QueueSize::Bytes(30_000), Some(500)), packets);
}

#[test]
fn pi_drops_with_its_probability() {
    // One update at 1 s, with 12 packets waiting: 0.02 (12 - 10) - 0.01 (0 - 10) = 0.14.
    let mut queue = built(&pi(|pi| {
        pi.q_ref = QueueSize::Packets(10);
        (pi.a, pi.b) = (Some(0.02), Some(0.01));
        pi.sampling = Sampling::Interval(Span::from_s(1));
    }));
    for id in 0..12 {
        let packet = Probe::new(id, 1500, Ecn::NotEct);
        queue.enqueue(packet, Time::ZERO, &mut Heard::default());
    }
    let now = Time::ZERO + Span::from_ms(1500);
    let mut heard = Heard::default();
    let n = 40_000;
    for id in 0..n {
        queue.enqueue(Probe::new(id, 1500, Ecn::NotEct), now, &mut heard);
        queue.dequeue(now, &mut heard);
    }
    assert!((probability(&queue) - 0.14).abs() < 1e-15);
    let expected = 0.14 * n as f64;
    let spread = (0.14 * 0.86 * n as f64).sqrt();
    let drops = heard.dropped.len() as f64;
    assert!((drops - expected).abs() < 5.0 * spread, "{drops}");
    assert!(heard.dropped.iter().all(|drop| drop.1 == DropReason::Early));
}

#[test]
fn pi_marks_whoever_can_be_marked_and_drops_the_rest() {
    let mut queue = built(&pi(|pi| {
        (pi.a, pi.b) = (Some(1.0), Some(0.01));
        pi.ecn = true;
    }));
    let mut heard = Heard::default();
    for id in 0..60 {
        queue.enqueue(Probe::new(id, 1500, Ecn::Ect0), Time::ZERO, &mut heard);
    }
    assert!(heard.dropped.is_empty() && heard.marked.is_empty());
    // Ten above the reference: the first update makes p 1.
    let now = Time::ZERO + Span::from_ms(10);
    queue.enqueue(Probe::new(60, 1500, Ecn::Ect0), now, &mut heard);
    queue.enqueue(Probe::new(61, 1500, Ecn::NotEct), now, &mut heard);
    assert_eq!(heard.marked.len(), 1);
    assert_eq!(heard.dropped.len(), 1);
}

#[test]
fn impossible_pi_parameters_are_refused() {
    let refused = |change: fn(&mut PiParams)| refusal(&pi(change));
    assert_eq!(
        refused(|pi| pi.b = None),
        "a needs b as well; accepted: both a and b, or tune = \"hollot\""
    );
    assert_eq!(
        refused(|pi| pi.a = None),
        "b needs a as well; accepted: both a and b, or tune = \"hollot\""
    );
    assert_eq!(
        refused(|pi| pi.tune = Some(Tune::Hollot)),
        "tune would compute a and b, which are given; accepted: both a and b, or tune = \"hollot\""
    );
    assert_eq!(
        refused(|pi| pi.a = Some(1.8e-5)),
        "a is not above b (0.00001816): the length would never settle; accepted: more than 0.00001816"
    );
    assert_eq!(
        refused(|pi| pi.b = Some(-1.0)),
        "b is not above 0; accepted: a number above 0"
    );
    assert_eq!(
        refused(|pi| pi.q_ref = QueueSize::Packets(0)),
        "q_ref is zero; accepted: a queue size such as \"20 packets\" or \"15 ms\""
    );
    assert_eq!(
        refused(|pi| pi.sampling = Sampling::hz(0)),
        "sampling would never update; accepted: a frequency such as \"170 Hz\" or a time such as \"10 ms\""
    );
    assert_eq!(
        refused(|pi| pi.flows = Some(0)),
        "flows is zero; accepted: 1 or more"
    );
    assert_eq!(
        refused(|pi| pi.rtt = Some(Span::ZERO)),
        "rtt is zero; accepted: a time such as \"100 ms\""
    );
    assert_eq!(
        refused(|pi| pi.mean_packet = Some(0.into())),
        "mean_packet is zero; accepted: a size such as \"1500 B\""
    );
    // Nothing to tune for.
    let tuned = pi(|pi| (pi.a, pi.b) = (None, None));
    let nobody = LinkFacts::of_rate(Rate::from_bps(10_000_000));
    assert_eq!(
        tuned.check_at(&nobody).unwrap_err().to_string(),
        "tune knows no TCP flow across this link to compute a and b for; accepted: a and b, or flows and rtt"
    );
    assert_eq!(tuned.check_at(&link()), Ok(()));
    assert_eq!(
        refused(|pi| {
            (pi.a, pi.b) = (None, None);
            pi.sampling = Sampling::Interval(Span::from_s(60));
        }),
        "sampling is too slow for the gains it is to be tuned with: b would not be above 0; accepted: a higher frequency"
    );
}

#[test]
fn pi_warns_of_an_unstable_loop_and_of_a_reference_out_of_reach() {
    assert_eq!(warnings(&pi(|_| {})), Vec::<String>::new());
    assert_eq!(
        warnings(&pi(|pi| (pi.a, pi.b) = (Some(0.02), Some(0.0199)))),
        [
            "a makes an unstable loop with 64 flows and a round trip of 240 ms: its phase margin \
          is -104 degrees, so the queue will swing"
        ]
    );
    // What is computed is stable, be it with two packets in a window, and with more flows
    // and shorter round trips than it was to be for.
    let tuned = |flows, rtt| {
        pi(|pi| {
            (pi.a, pi.b, pi.tune) = (None, None, Some(Tune::Hollot));
            (pi.flows, pi.rtt) = (flows, rtt);
        })
    };
    assert_eq!(warnings(&tuned(None, None)), Vec::<String>::new());
    assert_eq!(
        warnings(&tuned(Some(64), Some(Span::from_ms(180)))),
        Vec::<String>::new()
    );
    assert_eq!(
        warnings(&tuned(Some(10), Some(Span::from_ms(500)))),
        Vec::<String>::new()
    );
    // With fewer flows or longer round trips it may not be.
    assert_eq!(
        warnings(&tuned(Some(1000), None)),
        [
            "flows is more than cross the link, and the gains computed for it make an unstable \
          loop with 64 flows and a round trip of 240 ms: its phase margin is -306 degrees, so \
          the queue will swing"
        ]
    );
    assert_eq!(
        warnings(&tuned(None, Some(Span::from_ms(10)))),
        [
            "rtt is less than the longest of the link, and the gains computed for it make an \
          unstable loop with 64 flows and a round trip of 240 ms: its phase margin is -252 \
          degrees, so the queue will swing"
        ]
    );
    assert_eq!(
        warnings(&pi(|pi| pi.limit = Limit::packets(50))),
        [
            "q_ref is not below the limit (\"50 packets\"), so the buffer overflows before the \
          controller acts"
        ]
    );
}

fn pie(change: impl FnOnce(&mut PieParams)) -> QueueParams {
    let mut params = PieParams::new(Limit::packets(1000));
    change(&mut params);
    QueueParams::Pie(params)
}

/// PIE as the pseudo-code of RFC 8033 (appendices A and B) and sch_pie.c write it: one
/// struct of variables, a timer, times in seconds.
struct PseudoPie {
    linux: bool,
    by_rate: bool,
    /// Appendix A decays p below half the target, section 4.2 at no delay.
    early_decay: bool,
    p: f64,
    qdelay: f64,
    qdelay_old: f64,
    accu_prob: f64,
    burst: f64,
    sojourn: f64,
    dq_tstamp: Option<Time>,
    dq_start: Option<(Time, u64)>,
    seconds_per_byte: f64,
    bytes_per_second: f64,
    waiting: Vec<Time>,
}

impl PseudoPie {
    fn new(linux: bool, by_rate: bool, early_decay: bool) -> Self {
        Self {
            linux,
            by_rate,
            early_decay,
            p: 0.0,
            qdelay: 0.0,
            qdelay_old: 0.0,
            accu_prob: 0.0,
            burst: 0.15,
            sojourn: 0.0,
            dq_tstamp: None,
            dq_start: None,
            seconds_per_byte: 0.0,
            bytes_per_second: 0.0,
            waiting: Vec::new(),
        }
    }

    fn bytes(&self) -> u64 {
        1500 * self.waiting.len() as u64
    }

    /// Whether the arrival is to be dropped.
    fn enqueue(&mut self, now: Time, random: &mut Stream) -> bool {
        let drop = self.drop_early(random);
        if drop {
            self.accu_prob = 0.0;
        } else {
            self.waiting.push(now);
        }
        drop
    }

    fn drop_early(&mut self, random: &mut Stream) -> bool {
        // A sum of such times in floating point is never quite 0.
        if self.burst > 1e-9 {
            return false;
        }
        let seen = match (self.linux, self.by_rate) {
            (false, _) => self.qdelay_old,
            (true, false) => self.sojourn,
            (true, true) => self.qdelay,
        };
        if seen < 0.0075 && self.p < 0.2 {
            return false;
        }
        if self.bytes() < 3000 || (!self.linux && self.bytes() == 3000) {
            return false;
        }
        if self.p == 0.0 {
            self.accu_prob = 0.0;
        }
        self.accu_prob += self.p;
        if self.accu_prob < 0.85 {
            return false;
        }
        if self.accu_prob >= 8.5 {
            return true;
        }
        random.uniform() < self.p
    }

    fn dequeue(&mut self, now: Time) {
        if self.waiting.is_empty() {
            return;
        }
        let since = self.waiting.remove(0);
        let left = self.bytes();
        if !self.by_rate {
            self.sojourn = if left == 0 {
                0.0
            } else {
                (now - since).as_secs_f64()
            };
            if let Some(last) = self.dq_tstamp.filter(|_| self.linux) {
                self.burst = (self.burst - (now - last).as_secs_f64()).max(0.0);
            }
            self.dq_tstamp = Some(now);
            return;
        }
        let threshold = 16_384;
        let mut began = false;
        if self.dq_start.is_none() && left >= threshold {
            self.dq_start = Some((now, 0));
            began = true;
        }
        if let Some((start, count)) = self.dq_start {
            let count = if began && !self.linux {
                0
            } else {
                count + 1500
            };
            self.dq_start = Some((start, count));
            let took = (now - start).as_secs_f64();
            if count >= threshold && took > 0.0 {
                // The RFC averages dq_time with weight 2^14 / 2^16, Linux the rate with 1/8.
                let (seconds, rate) = (took / count as f64, count as f64 / took);
                if self.seconds_per_byte == 0.0 {
                    (self.seconds_per_byte, self.bytes_per_second) = (seconds, rate);
                } else {
                    self.seconds_per_byte = 0.75 * self.seconds_per_byte + 0.25 * seconds;
                    self.bytes_per_second += (rate - self.bytes_per_second) / 8.0;
                }
                self.dq_start = (left >= threshold).then_some((now, 0));
                if self.linux {
                    self.burst = (self.burst - took).max(0.0);
                }
            }
        }
    }

    fn status_update(&mut self) {
        let current = if self.by_rate {
            match self.linux {
                true if self.bytes_per_second == 0.0 => 0.0,
                true => self.bytes() as f64 / self.bytes_per_second,
                false => self.bytes() as f64 * self.seconds_per_byte,
            }
        } else {
            self.sojourn
        };
        let old = self.qdelay_old;
        let mut p = 0.125 * (current - 0.015) + 1.25 * (current - old);
        p /= match self.p {
            p if p < 0.000001 => 2048.0,
            p if p < 0.00001 => 512.0,
            p if p < 0.0001 => 128.0,
            p if p < 0.001 => 32.0,
            p if p < 0.01 => 8.0,
            p if p < 0.1 => 2.0,
            _ => 1.0,
        };
        if self.p >= 0.1 && p > 0.02 {
            p = 0.02;
        }
        if self.linux && current > 0.25 {
            p += 0.02;
        }
        self.p += p;
        if self.linux {
            // A 64-bit number of which 2^56 are 1: it wraps at 256, and is 1 then.
            self.p = if self.p >= 256.0 {
                1.0
            } else {
                self.p.max(0.0)
            };
        } else {
            self.p = self.p.clamp(0.0, 1.0);
        }
        let quiet = if self.early_decay {
            current < 0.0075 && old < 0.0075
        } else {
            current == 0.0 && old == 0.0
        };
        if quiet && (!self.linux || self.waiting.is_empty()) {
            self.p *= if self.linux { 63.0 / 64.0 } else { 0.98 };
        }
        // Section 4.2, the last step: "Store the current latency value".
        self.qdelay_old = current;
        self.qdelay = current;
        if !self.linux {
            self.burst = (self.burst - 0.015).max(0.0);
        }
        let measured = !self.by_rate || self.seconds_per_byte > 0.0;
        if self.p == 0.0 && current < 0.0075 && old < 0.0075 {
            self.burst = 0.15;
            if self.linux && measured {
                self.accu_prob = 0.0;
                (self.seconds_per_byte, self.bytes_per_second) = (0.0, 0.0);
                self.dq_start = None;
                self.dq_tstamp = None;
            }
        }
    }
}

#[test]
fn pie_takes_every_decision_of_the_pseudo_code() {
    let (by_time, by_rate) = (Delay::Timestamps, Delay::DepartureRate);
    for (flavour, delay, decay) in [
        (Flavour::Rfc, by_time, Decay::NoDelay),
        (Flavour::Rfc, by_rate, Decay::NoDelay),
        (Flavour::Rfc, by_time, Decay::HalfTarget),
        (Flavour::Rfc, by_rate, Decay::HalfTarget),
        (Flavour::Linux, by_time, Decay::NoDelay),
        (Flavour::Linux, by_rate, Decay::NoDelay),
    ] {
        let mut queue = built(&pie(|pie| {
            (pie.flavour, pie.delay, pie.decay) = (flavour, delay, decay);
        }));
        let early = decay == Decay::HalfTarget;
        let mut pseudo = PseudoPie::new(flavour == Flavour::Linux, delay == by_rate, early);
        let mut random = Stream::named(1, 0, "queue");
        let mut tick = Time::ZERO + Span::from_ms(15);
        let mut now = Time::ZERO;
        let mut drops = 0;
        let calls = random_calls(2, 30_000, Span::from_us(800));
        // Quiet at first and in the middle.
        let mut gaps = 0;
        for (id, (gap, arrives)) in calls.into_iter().enumerate() {
            now += gap;
            if id == 3_000 || id == 29_000 {
                now += Span::from_s(2);
                gaps += 1;
            }
            while tick <= now {
                pseudo.status_update();
                tick += Span::from_ms(15);
            }
            let mut heard = Heard::default();
            if arrives {
                queue.enqueue(Probe::new(id as u64, 1500, Ecn::Ect0), now, &mut heard);
                let dropped = pseudo.enqueue(now, &mut random);
                assert_eq!(
                    heard.dropped.len(),
                    usize::from(dropped),
                    "{flavour:?} {id}"
                );
                drops += heard.dropped.len();
            } else {
                queue.dequeue(now, &mut heard);
                pseudo.dequeue(now);
            }
            let internals = queue.internals();
            assert!((internals.probability.unwrap() - pseudo.p.min(1.0)).abs() < 1e-9);
            assert!((internals.average.unwrap() - pseudo.qdelay).abs() < 1e-9);
        }
        assert_eq!(gaps, 2);
        assert!(drops > 500, "{flavour:?} {delay:?}: {drops} drops");
    }
}

/// Overloads the queue: with every packet that leaves, each 2 ms, one comes, and one more
/// each `extra` packets; until the probability is at least `until`.
fn overload(
    queue: &mut AnyQueue<Probe>,
    from: Time,
    ecn: Ecn,
    extra: u64,
    until: f64,
) -> (Time, Heard) {
    let mut heard = Heard::default();
    let mut now = from;
    for id in 0..100_000 {
        now += Span::from_ms(2);
        queue.enqueue(Probe::new(2 * id, 1500, ecn), now, &mut heard);
        if id % extra == 0 {
            queue.enqueue(Probe::new(2 * id + 1, 1500, ecn), now, &mut heard);
        }
        queue.dequeue(now, &mut heard);
        if probability(queue) >= until {
            return (now, heard);
        }
    }
    panic!("the probability does not rise");
}

#[test]
fn linux_lets_the_probability_exceed_one_until_it_wraps() {
    // sch_pie.c, pie_calculate_probability: 64 bits of which 2^56 are 1, bound only where
    // they wrap, and 1 then. With a delay held at 300 ms, each update adds 0.04.
    let law = |flavour| {
        PieLaw::new(PieConfig {
            target: Span::from_ms(15),
            interval: Span::from_ms(15),
            alpha: 1.0,
            beta: 1.25,
            max_burst: Span::ZERO,
            mean_packet: 1500.into(),
            derandomize: true,
            delay: Delay::Timestamps,
            decay: Decay::NoDelay,
            flavour,
        })
    };
    let (mut rfc, mut linux) = (law(Flavour::Rfc), law(Flavour::Linux));
    let (mut expected, mut highest) = (None::<f64>, 0.0f64);
    for i in 1..10_000u64 {
        let now = Time::ZERO + Span::from_ms(15 * i);
        for law in [&mut rfc, &mut linux] {
            law.on_departure(1500.into(), Span::from_ms(300), 30_000, now);
            law.update(30_000);
        }
        let p = linux.probability();
        if let Some(expected) = expected {
            assert!((p - expected).abs() < 1e-9, "{i}: {p}, not {expected}");
        }
        // From 1 on the change is what was said.
        let next = if p + 0.04 < 256.0 { p + 0.04 } else { 1.0 };
        expected = (p > 1.0 || expected.is_some()).then_some(next);
        highest = highest.max(p);
        assert!(rfc.probability() <= 1.0);
    }
    assert!(highest > 255.0 && highest < 256.0, "{highest}");
    assert!(linux.probability() < 200.0, "it has wrapped");
}

#[test]
fn pie_marks_up_to_ten_percent_and_drops_above() {
    // RFC 8033, section 5.1.
    let mut queue = built(&pie(|pie| pie.ecn = true));
    let (now, heard) = overload(&mut queue, Time::ZERO, Ecn::Ect0, 50, 0.1);
    assert!(heard.dropped.is_empty());
    assert!(heard.marked.len() > 5, "{}", heard.marked.len());
    let (_, heard) = overload(&mut queue, now, Ecn::Ect0, 2, 0.3);
    assert!(heard.marked.is_empty());
    assert!(heard.dropped.len() > 5, "{}", heard.dropped.len());
    // Senders without ECN meet drops below, too.
    let mut queue = built(&pie(|pie| pie.ecn = true));
    let (_, heard) = overload(&mut queue, Time::ZERO, Ecn::NotEct, 5, 0.1);
    assert!(!heard.dropped.is_empty() && heard.marked.is_empty());
}

#[test]
fn pie_lets_a_burst_pass_for_150_ms() {
    // RFC 8033, section 4.4: no early drop while the allowance lasts.
    let first_drop = |max_burst| {
        let mut queue = built(&pie(|pie| {
            pie.max_burst = max_burst;
            (pie.alpha, pie.beta) = (1e5, 1e5);
        }));
        let mut heard = Heard::default();
        for ms in 0..1000 {
            let now = Time::ZERO + Span::from_ms(ms);
            for id in 0..3 {
                queue.enqueue(Probe::new(3 * ms + id, 1500, Ecn::NotEct), now, &mut heard);
            }
            queue.dequeue(now, &mut heard);
            if !heard.dropped.is_empty() {
                return ms;
            }
        }
        panic!("it never dropped");
    };
    let without = first_drop(Span::ZERO);
    assert!(without < 60, "{without}");
    // The tenth update ends it.
    let with = first_drop(Span::from_ms(150));
    assert!((150..=165).contains(&with), "{with}");
}

#[test]
fn pie_keeps_derandomised_drops_apart() {
    // RFC 8033, section 5.4: at p = 0.0501 (held) none before 17 packets (0.85 / p).
    let gaps = |derandomize| {
        let mut queue = built(&pie(|pie| {
            pie.derandomize = derandomize;
            pie.update = Span::from_s(10);
            pie.max_burst = Span::ZERO;
            // p / 2048 of it at 2 s, nothing at 15 ms.
            pie.alpha = 0.0501 * 2048.0 / 1.985;
            pie.beta = 1e-9;
        }));
        let mut heard = Heard::default();
        for ms in [7_900, 7_901, 7_902, 7_903] {
            let now = Time::ZERO + Span::from_ms(ms);
            queue.enqueue(Probe::new(ms, 1500, Ecn::NotEct), now, &mut heard);
        }
        // The update at 10 s sees 2 s, the one at 20 s the target, which changes nothing.
        queue.dequeue(Time::ZERO + Span::from_ms(9_900), &mut heard);
        let now = Time::ZERO + Span::from_ms(19_980);
        while queue.dequeue(now, &mut heard).is_some() {}
        for id in 0..4 {
            queue.enqueue(Probe::new(id, 1500, Ecn::NotEct), now, &mut heard);
        }
        queue.dequeue(Time::ZERO + Span::from_ms(19_995), &mut heard);
        let now = Time::ZERO + Span::from_ms(20_001);
        let (mut last, mut gaps) = (None, Vec::new());
        for id in 0..20_000u64 {
            heard.dropped.clear();
            queue.enqueue(Probe::new(id, 1500, Ecn::NotEct), now, &mut heard);
            if heard.dropped.is_empty() {
                queue.dequeue(now, &mut heard);
            } else {
                gaps.extend(last.map(|last| id - last));
                last = Some(id);
            }
        }
        assert!((probability(&queue) - 0.0501).abs() < 1e-8);
        gaps
    };
    let apart = gaps(true);
    assert!(apart.len() > 300, "{}", apart.len());
    assert_eq!(apart.iter().min(), Some(&17));
    assert!(apart.iter().max() <= Some(&170));
    assert_eq!(gaps(false).iter().min(), Some(&1));
}

#[test]
fn a_sleeping_pie_wakes_at_a_third_of_its_limit() {
    // RFC 8033, section 5.3.
    let mut queue = built(&pie(|pie| {
        pie.activation = true;
        pie.limit = Limit::packets(30);
        pie.max_burst = Span::ZERO;
    }));
    let mut heard = Heard::default();
    let mut now = Time::ZERO;
    let mut stay = |queue: &mut AnyQueue<Probe>, packets: u64| {
        for _ in 0..500 {
            now += Span::from_ms(2);
            while queue.backlog().packets < packets {
                let before = heard.dropped.len();
                queue.enqueue(Probe::new(0, 1500, Ecn::NotEct), now, &mut heard);
                if heard.dropped.len() > before {
                    break;
                }
            }
            queue.dequeue(now, &mut heard);
        }
        heard.dropped.len()
    };
    assert_eq!(stay(&mut queue, 9), 0);
    assert_eq!(probability(&queue), 0.0);
    assert!(stay(&mut queue, 14) > 0);
}

#[test]
fn impossible_pie_parameters_are_refused() {
    let refused = |change: fn(&mut PieParams)| refusal(&pie(change));
    assert_eq!(
        refused(|pie| pie.target = Span::ZERO),
        "target is zero; accepted: a time such as \"100 ms\""
    );
    assert_eq!(
        refused(|pie| pie.update = Span::ZERO),
        "update is zero; accepted: a time such as \"100 ms\""
    );
    assert_eq!(
        refused(|pie| pie.update = Span::from_ns(999)),
        "update is below 1 us, which takes too many updates; accepted: at least \"1 us\" (Linux counts these in microseconds), for example \"10 ms\""
    );
    assert_eq!(
        refused(|pie| pie.alpha = 0.0),
        "alpha is not above 0; accepted: a number above 0"
    );
    assert_eq!(
        refused(|pie| pie.beta = f64::NAN),
        "beta is not above 0; accepted: a number above 0"
    );
    assert_eq!(
        refused(|pie| pie.max_ecn = 1.5),
        "max_ecn is not a probability above 0; accepted: a number above 0 and up to 1"
    );
    assert_eq!(
        refused(|pie| pie.mean_packet = Some(0.into())),
        "mean_packet is zero; accepted: a size such as \"1500 B\""
    );
    assert_eq!(
        refused(|pie| (pie.flavour, pie.activation) = (Flavour::Linux, true)),
        "activation is not in Linux, whose details were asked for; accepted: false"
    );
    assert_eq!(
        refused(|pie| (pie.flavour, pie.derandomize) = (Flavour::Linux, false)),
        "derandomize cannot be off in Linux, whose details were asked for; accepted: true"
    );
    assert_eq!(
        refused(|pie| (pie.flavour, pie.decay) = (Flavour::Linux, Decay::HalfTarget)),
        "decay is not in Linux, whose details were asked for; accepted: \"no-delay\""
    );
}

#[test]
fn pie_warns_of_a_target_below_one_packet() {
    assert_eq!(warnings(&pie(|_| {})), Vec::<String>::new());
    assert_eq!(
        warnings(&pie(|pie| pie.target = Span::from_ms(1))),
        [
            "target is below the time that one packet of 1500 B takes here (1.200 ms): whatever \
          waits is too much"
        ]
    );
}

fn pi2(change: impl FnOnce(&mut Pi2Params)) -> QueueParams {
    let mut params = Pi2Params::new(Limit::packets(1000));
    change(&mut params);
    QueueParams::Pi2(params)
}

/// PI2 with p' = 0.3, which it keeps for 10 s: the head has waited 1 s at the only update.
fn pi2_held(change: impl FnOnce(&mut Pi2Params)) -> (AnyQueue<Probe>, Time) {
    let mut queue = built(&pi2(|pi2| {
        pi2.update = Some(Span::from_s(10));
        pi2.alpha = Some(0.2 / 0.985);
        pi2.beta = Some(0.1);
        change(pi2);
    }));
    let mut heard = Heard::default();
    for id in 0..3 {
        let packet = Probe::new(id, 1500, Ecn::NotEct);
        queue.enqueue(packet, Time::ZERO + Span::from_s(9), &mut heard);
    }
    (queue, Time::ZERO + Span::from_s(11))
}

#[test]
fn pi2_follows_the_pseudo_code_of_its_controller() {
    // RFC 9332, appendix A.1: Tupdate = min(15 ms, 100 ms / 3), alpha = 0.1 Tupdate / RTT_max^2,
    // beta = 0.3 / RTT_max; the sample is what the head has waited.
    let mut queue = built(&pi2(|_| {}));
    let mut random = Stream::named(1, 0, "queue");
    let (mut p, mut prevq, mut tick) = (0.0f64, 0.0, Time::ZERO + Span::from_ms(15));
    let mut waiting: Vec<Time> = Vec::new();
    let mut now = Time::ZERO;
    let mut highest = 0.0f64;
    let calls = random_calls(3, 20_000, Span::from_us(800));
    for (id, (gap, arrives)) in calls.into_iter().enumerate() {
        now += gap;
        while tick <= now {
            let curq = waiting
                .first()
                .map_or(0.0, |&since| (tick - since).as_secs_f64());
            p = (p + 0.15 * (curq - 0.015) + 3.0 * (curq - prevq)).clamp(0.0, 1.0);
            prevq = curq;
            tick += Span::from_ms(15);
        }
        let mut heard = Heard::default();
        if arrives {
            queue.enqueue(Probe::new(id as u64, 1500, Ecn::NotEct), now, &mut heard);
            // The greater of two random numbers is below p' with probability p'^2.
            let chosen =
                !waiting.is_empty() && p > 0.0 && random.uniform() < p && random.uniform() < p;
            assert_eq!(heard.dropped.len(), usize::from(chosen), "{id}");
            if !chosen {
                waiting.push(now);
            }
        } else if queue.dequeue(now, &mut heard).is_some() {
            waiting.remove(0);
        }
        assert!((probability(&queue) - p * p).abs() < 1e-9);
        highest = highest.max(p);
    }
    assert!(highest > 0.3, "{highest}");
}

#[test]
fn pi2_squares_for_classic_and_couples_for_scalable_senders() {
    // De Schepper et al. 2016, section 5: p'^2 for classic, k p' for scalable packets.
    for (ecn, coupling, expected) in [
        (Ecn::NotEct, None, 0.09),
        (Ecn::Ect0, Some(2.0), 0.09),
        (Ecn::Ect1, None, 0.09),
        (Ecn::Ect1, Some(2.0), 0.6),
        (Ecn::Ect1, Some(4.0), 1.0),
    ] {
        let (mut queue, now) = pi2_held(|pi2| {
            pi2.ecn = true;
            pi2.coupling = coupling;
        });
        let mut heard = Heard::default();
        let n = 40_000;
        for id in 0..n {
            queue.enqueue(Probe::new(id, 1500, ecn), now, &mut heard);
            if queue.backlog().packets > 3 {
                queue.dequeue(now, &mut heard);
            }
        }
        assert!((probability(&queue) - 0.09).abs() < 1e-12);
        let chosen = (heard.dropped.len() + heard.marked.len()) as f64;
        let spread = (expected * (1.0 - expected) * n as f64).sqrt();
        let off = (chosen - expected * n as f64).abs();
        assert!(off <= 5.0 * spread, "{ecn:?} {coupling:?}: {chosen}");
        assert_eq!(heard.marked.is_empty(), ecn == Ecn::NotEct);
    }
}

#[test]
fn impossible_pi2_parameters_are_refused() {
    let refused = |change: fn(&mut Pi2Params)| refusal(&pi2(change));
    assert_eq!(
        refused(|pi2| pi2.target = Span::ZERO),
        "target is zero; accepted: a time such as \"100 ms\""
    );
    assert_eq!(
        refused(|pi2| pi2.rtt_max = Span::ZERO),
        "rtt_max is zero; accepted: a time such as \"100 ms\""
    );
    assert_eq!(
        refused(|pi2| pi2.update = Some(Span::ZERO)),
        "update is zero; accepted: a time such as \"100 ms\""
    );
    assert_eq!(
        refused(|pi2| pi2.target = Span::from_ns(10)),
        "target is below 1 us, which takes too many updates; accepted: at least \"1 us\" (Linux counts these in microseconds), for example \"10 ms\""
    );
    assert_eq!(
        refused(|pi2| pi2.alpha = Some(0.0)),
        "alpha is not above 0; accepted: a number above 0"
    );
    assert_eq!(
        refused(|pi2| pi2.beta = Some(-1.0)),
        "beta is not above 0; accepted: a number above 0"
    );
    assert_eq!(
        refused(|pi2| (pi2.ecn, pi2.coupling) = (true, Some(0.0))),
        "coupling is not above 0; accepted: a number above 0"
    );
    assert_eq!(
        refused(|pi2| pi2.coupling = Some(2.0)),
        "coupling is for marks, and ecn is off; accepted: ecn = true with it"
    );
    let short = warnings(&pi2(|pi2| pi2.target = Span::from_ms(1)));
    assert_eq!(short.len(), 1, "{short:?}");
    assert!(short[0].starts_with("target is below the time that one packet"));
}

fn dualpi2(change: impl FnOnce(&mut DualPi2Params)) -> QueueParams {
    let mut params = DualPi2Params::default();
    change(&mut params);
    QueueParams::DualPi2(params)
}

/// A controller that hardly moves p', so that L marks on its own.
fn uncoupled(dual: &mut DualPi2Params) {
    (dual.alpha, dual.beta) = (Some(1e-12), Some(1e-12));
}

/// DualPI2 whose p' is 0.3 from 10 s on, or another: a classic packet has waited for 1 s at the only
/// update. Both queues are empty then.
fn dualpi2_held(base: f64, change: impl FnOnce(&mut DualPi2Params)) -> (AnyQueue<Probe>, Time) {
    let mut queue = built(&dualpi2(|dual| {
        dual.limit = Some(Limit::packets(1000));
        dual.update = Some(Span::from_s(10));
        dual.alpha = Some((base - 0.1) / 0.985);
        dual.beta = Some(0.1);
        change(dual);
    }));
    let mut heard = Heard::default();
    let packet = Probe::new(0, 1500, Ecn::NotEct);
    queue.enqueue(packet, Time::ZERO + Span::from_s(9), &mut heard);
    let now = Time::ZERO + Span::from_s(11);
    queue.dequeue(now, &mut heard);
    assert!((probability(&queue) - base * base).abs() < 1e-12);
    (queue, now)
}

/// Sends `n` packets through, one at a time: marked, dropped.
fn signals(queue: &mut AnyQueue<Probe>, now: Time, ecn: Ecn, n: u64) -> (usize, usize) {
    let mut heard = Heard::default();
    for id in 0..n {
        queue.enqueue(Probe::new(id, 1500, ecn), now, &mut heard);
        queue.dequeue(now, &mut heard);
    }
    (heard.marked.len(), heard.dropped.len())
}

#[test]
fn dualpi2_couples_the_probabilities_of_its_queues() {
    // RFC 9332, section 2.1 and appendix A.1: p_C = p'^2, p_CL = k p'; signals are not drawn
    // but recur, so that their number is exact.
    let n = 10_000;
    for (ecn, marks, drops) in [
        (Ecn::NotEct, 0, 900),
        (Ecn::Ect0, 900, 0),
        (Ecn::Ect1, 6000, 0),
        (Ecn::Ce, 6000, 0),
    ] {
        let (mut queue, now) = dualpi2_held(0.3, |_| {});
        let (marked, dropped) = signals(&mut queue, now, ecn, n);
        assert!(marked.abs_diff(marks) <= 1, "{ecn:?}: {marked} marks");
        assert!(dropped.abs_diff(drops) <= 1, "{ecn:?}: {dropped} drops");
    }
}

/// Sends `n` packets of one kind through Linux's DualPI2 at a held p', with many packets left
/// behind each: the shares that were marked and dropped, and the shortest gap between signals.
fn shares_in_linux(base: f64, ecn: Ecn, n: u64) -> (f64, f64, u64) {
    let (mut queue, now) = dualpi2_held(base, |dual| dual.flavour = Flavour::Linux);
    let mut heard = Heard::default();
    let (mut id, mut left, mut last, mut gap) = (0, 0, None, u64::MAX);
    while left + (heard.dropped.len() as u64) < n {
        while queue.backlog().packets < 50 {
            queue.enqueue(Probe::new(id, 1500, ecn), now, &mut heard);
            id += 1;
        }
        let signals = heard.marked.len() + heard.dropped.len();
        left += u64::from(queue.dequeue(now, &mut heard).is_some());
        if heard.marked.len() + heard.dropped.len() > signals {
            gap = gap.min(last.map_or(u64::MAX, |last| left - last));
            last = Some(left);
        }
    }
    let share = |count: usize| count as f64 / n as f64;
    (share(heard.marked.len()), share(heard.dropped.len()), gap)
}

#[test]
fn linux_dualpi2_draws_what_the_rfc_lets_recur() {
    // sch_dualpi2.c, dualpi2_classic_marking and dualpi2_scalable_marking. In overload L marks
    // what it does not drop; k p' = 1 is none yet.
    let n = 20_000;
    for (base, ecn, marks, drops) in [
        (0.3, Ecn::NotEct, 0.0, 0.09),
        (0.3, Ecn::Ect0, 0.09, 0.0),
        (0.3, Ecn::Ect1, 0.6, 0.0),
        (0.3, Ecn::Ce, 0.6, 0.0),
        (0.5, Ecn::Ect0, 0.25, 0.0),
        (0.5, Ecn::Ect1, 1.0, 0.0),
        (0.6, Ecn::NotEct, 0.0, 0.36),
        (0.6, Ecn::Ect0, 0.0, 0.36),
        (0.6, Ecn::Ect1, 0.64, 0.36),
    ] {
        let (marked, dropped, gap) = shares_in_linux(base, ecn, n);
        for (seen, p) in [(marked, marks), (dropped, drops)] {
            let bound = 5.0 * (p * (1.0 - p) / n as f64).sqrt() + 1e-4;
            assert!((seen - p).abs() < bound, "{base} {ecn:?}: {seen}, not {p}");
        }
        // The RFC's are at least 11 apart at p_C = 0.09.
        assert!(gap <= 1, "{base} {ecn:?}: {gap}");
    }
}

#[test]
fn linux_dualpi2_does_not_couple_with_less_than_two_packets_left() {
    // must_drop: a backlog below 2 psched_mtu, without the packet that leaves.
    for ecn in [Ecn::NotEct, Ecn::Ect0, Ecn::Ect1] {
        let (mut queue, now) = dualpi2_held(0.45, |dual| dual.flavour = Flavour::Linux);
        assert_eq!(signals(&mut queue, now, ecn, 1000), (0, 0), "{ecn:?}");
        let (mut queue, now) = dualpi2_held(0.45, |_| {});
        assert_ne!(signals(&mut queue, now, ecn, 1000), (0, 0), "{ecn:?}");
    }
}

#[test]
fn linux_dualpi2_marks_whoever_waited_more_than_a_millisecond_in_l() {
    // do_step_aqm with min_qlen_step 0: alone in the queue or not.
    for (us, marked) in [(900, 0), (1000, 0), (1001, 1), (1100, 1)] {
        let mut queue = built(&dualpi2(|dual| {
            dual.flavour = Flavour::Linux;
            (dual.alpha, dual.beta) = (Some(1e-12), Some(1e-12));
        }));
        let mut heard = Heard::default();
        queue.enqueue(Probe::new(0, 1500, Ecn::Ect1), Time::ZERO, &mut heard);
        queue.dequeue(Time::ZERO + Span::from_us(us), &mut heard);
        assert_eq!(heard.marked.len(), marked, "{us} us");
    }
}

#[test]
fn linux_dualpi2_has_the_defaults_of_its_source() {
    // dualpi2_reset_default: every 16 ms, alpha 41/256, beta 819/256, 10,000 packets.
    let spec = dualpi2(|dual| dual.flavour = Flavour::Linux);
    assert_eq!(spec.limit(), Some(Limit::packets(10_000)));
    let mut queue = built(&spec);
    let mut heard = Heard::default();
    for id in 0..10_010 {
        queue.enqueue(Probe::new(id, 1500, Ecn::NotEct), Time::ZERO, &mut heard);
    }
    assert_eq!(heard.dropped.len(), 10);
    queue.dequeue(Time::ZERO + Span::from_us(15_999), &mut heard);
    assert_eq!(probability(&queue), 0.0);
    queue.dequeue(Time::ZERO + Span::from_us(16_001), &mut heard);
    let base = 41.0 / 256.0 * 0.001 + 819.0 / 256.0 * 0.016;
    assert!((probability(&queue) - base * base).abs() < 1e-12);
}

#[test]
fn in_linux_what_is_dropped_costs_the_classic_queue_no_turn() {
    // dualpi2_qdisc_dequeue: the credit changes with what leaves. At p' = 0.99 the classic queue
    // loses nearly all, and k = 0.5 makes no overload.
    let (mut queue, now) = dualpi2_held(0.99, |dual| {
        dual.flavour = Flavour::Linux;
        dual.coupling = 0.5;
        dual.classic_share = Some(0.5);
    });
    let mut heard = Heard::default();
    for id in 0..40 {
        queue.enqueue(Probe::new(2 * id, 1500, Ecn::NotEct), now, &mut heard);
        queue.enqueue(Probe::new(2 * id + 1, 1500, Ecn::Ect1), now, &mut heard);
    }
    // L first, which makes the credit 750 B; then C, whose drops leave it there, until one of C's
    // passes; if they cost C its turn, L would be next after one.
    assert_eq!(
        queue.dequeue(now, &mut heard).map(|packet| packet.id),
        Some(1)
    );
    assert!(heard.dropped.is_empty());
    queue.dequeue(now, &mut heard);
    assert!(heard.dropped.len() > 1, "{}", heard.dropped.len());
}

#[test]
fn dualpi2_drops_in_overload() {
    // RFC 9332, appendix A.2: from p_C = 1 / k^2 on classic ECN is off, and L
    // drops with p_C and marks all that is left.
    let (mut queue, now) = dualpi2_held(0.6, |_| {});
    let (marked, dropped) = signals(&mut queue, now, Ecn::Ect0, 10_000);
    assert_eq!(marked, 0);
    assert!(dropped.abs_diff(3600) <= 1, "{dropped}");
    let (marked, dropped) = signals(&mut queue, now, Ecn::Ect1, 10_000);
    assert!(dropped.abs_diff(3600) <= 1, "{dropped}");
    assert!(marked.abs_diff(6400) <= 2, "{marked}");
}

#[test]
fn dualpi2_ramps_with_what_a_packet_of_the_low_latency_queue_has_waited() {
    // RFC 9332, appendix A.1: 0 up to 800 us, 1 from 1200 us on; and no mark on a packet that
    // leaves alone (Th_len).
    for (us, expected) in [
        (800, 0),
        (900, 250),
        (1100, 750),
        (1200, 1000),
        (5000, 1000),
    ] {
        for step in [false, true] {
            let mut queue = built(&dualpi2(|dual| {
                uncoupled(dual);
                if step {
                    dual.range = Some(Span::ZERO);
                }
            }));
            let mut heard = Heard::default();
            let mut now = Time::ZERO;
            let mut alone = 0;
            for id in 0..1000 {
                for part in 0..2 {
                    queue.enqueue(Probe::new(2 * id + part, 1500, Ecn::Ect1), now, &mut heard);
                }
                now += Span::from_us(us);
                queue.dequeue(now, &mut heard);
                let before = heard.marked.len();
                queue.dequeue(now, &mut heard);
                alone += heard.marked.len() - before;
            }
            assert_eq!(alone, 0);
            let expected = if step && us > 800 { 1000 } else { expected };
            assert!(
                heard.marked.len().abs_diff(expected) <= 1,
                "{us} us: {}",
                heard.marked.len()
            );
        }
    }
}

#[test]
fn dualpi2_gives_the_classic_queue_its_share_of_the_bytes() {
    for (share, size) in [(1.0 / 16.0, 1500), (0.25, 500)] {
        let mut queue = built(&dualpi2(|dual| {
            dual.limit = Some(Limit::packets(100_000));
            dual.classic_share = Some(share);
        }));
        let mut heard = Heard::default();
        for id in 0..20_000 {
            let (ecn, size) = if id % 2 == 0 {
                (Ecn::Ect1, 1500)
            } else {
                (Ecn::NotEct, size)
            };
            queue.enqueue(Probe::new(id, size, ecn), Time::ZERO, &mut heard);
        }
        let (mut low, mut classic) = (0, 0);
        for _ in 0..4000 {
            let packet = queue.dequeue(Time::ZERO, &mut heard).expect("many wait");
            if packet.ecn == Ecn::NotEct {
                classic += packet.size;
            } else {
                low += packet.size;
            }
        }
        let got = classic as f64 / (low + classic) as f64;
        assert!((got - share).abs() < 0.002, "{got}");
    }
}

#[test]
fn dualpi2_shifted_in_time_serves_whoever_has_waited_longer() {
    let ms = |ms| Time::ZERO + Span::from_ms(ms);
    let mut queue = built(&dualpi2(|dual| {
        dual.scheduler = DualScheduler::TimeShifted;
        dual.time_shift = Some(Span::from_ms(10));
    }));
    let mut heard = Heard::default();
    queue.enqueue(Probe::new(0, 1500, Ecn::NotEct), ms(0), &mut heard);
    queue.enqueue(Probe::new(1, 1500, Ecn::NotEct), ms(5), &mut heard);
    queue.enqueue(Probe::new(2, 1500, Ecn::Ect1), ms(12), &mut heard);
    queue.enqueue(Probe::new(3, 1500, Ecn::Ect1), ms(13), &mut heard);
    let left: Vec<u64> = (0..4)
        .filter_map(|_| Some(queue.dequeue(ms(13), &mut heard)?.id))
        .collect();
    assert_eq!(left, [0, 2, 3, 1]);
}

#[test]
fn dualpi2_reports_each_of_its_queues() {
    let mut queue = built(&dualpi2(uncoupled));
    let mut heard = Heard::default();
    let ms = |ms| Time::ZERO + Span::from_ms(ms);
    queue.enqueue(Probe::new(0, 1500, Ecn::Ect1), ms(0), &mut heard);
    queue.dequeue(ms(100), &mut heard);
    queue.start_measuring(ms(100));
    for id in 0..2 {
        queue.enqueue(Probe::new(id, 1500, Ecn::Ect1), ms(100), &mut heard);
    }
    queue.enqueue(Probe::new(2, 1500, Ecn::NotEct), ms(100), &mut heard);
    queue.dequeue(ms(101), &mut heard);
    queue.dequeue(ms(103), &mut heard);
    queue.dequeue(ms(104), &mut heard);
    let mut told = Vec::new();
    queue.report(
        ms(104),
        &mut Report::new(&mut |name, value| told.push((name.to_owned(), value))),
    );
    let expected = [
        ("l_delay_mean", 0.002),
        ("l_delay_max", 0.003),
        ("l_mark", 0.0),
        ("l_loss", 0.0),
        ("c_delay_mean", 0.004),
        ("c_delay_max", 0.004),
        ("c_mark", 0.0),
        ("c_loss", 0.0),
    ];
    assert_eq!(told.len(), expected.len(), "{told:?}");
    for ((name, value), expected) in told.iter().zip(expected) {
        assert_eq!(name, expected.0);
        assert!((value - expected.1).abs() < 1e-12, "{name}: {value}");
    }
}

#[test]
fn impossible_dualpi2_parameters_are_refused() {
    let refused = |change: fn(&mut DualPi2Params)| refusal(&dualpi2(change));
    assert_eq!(
        refused(|dual| dual.coupling = 0.0),
        "coupling is not above 0; accepted: a number above 0"
    );
    for share in [0.0, 1.0] {
        assert_eq!(
            refusal(&dualpi2(|dual| dual.classic_share = Some(share))),
            "classic_share would starve one of the queues; accepted: a number above 0 and below 1"
        );
    }
    assert_eq!(
        refused(|dual| (dual.flavour, dual.rtt_max) = (Flavour::Linux, Some(Span::from_ms(100)))),
        "rtt_max is not in Linux, whose details were asked for; accepted: update, alpha and beta"
    );
    assert_eq!(
        refused(|dual| (dual.flavour, dual.range) = (Flavour::Linux, Some(Span::from_ms(1)))),
        "range is not in Linux, whose details were asked for; accepted: \"0 s\""
    );
    assert_eq!(
        refused(|dual| (dual.flavour, dual.th_len) = (Flavour::Linux, Some(1))),
        "th_len is not in Linux, whose details were asked for; accepted: 0"
    );
    assert_eq!(
        refused(|dual| {
            (dual.flavour, dual.scheduler) = (Flavour::Linux, DualScheduler::TimeShifted);
        }),
        "scheduler is not in Linux, whose details were asked for; accepted: \"wrr\""
    );
    assert_eq!(
        refused(|dual| dual.time_shift = Some(Span::from_ms(30))),
        "time_shift is for scheduler = \"time-shifted\"; accepted: scheduler = \"time-shifted\""
    );
    assert_eq!(
        warnings(&dualpi2(|dual| dual.min_th = Some(Span::from_ms(20)))),
        ["min_th and range let the low-latency queue wait as long as the classic one"]
    );
}
