//! The laws of growth that comparisons list, each against the rules of its paper as Linux 6.1
//! has them: net/ipv4/tcp_{westwood,bic,htcp,hybla,illinois,highspeed,scalable,veno,yeah}.c.
//! Every segment is acknowledged alone, unless a test says otherwise.

use redtail_core::{Span, Time};
use redtail_transport::cc::bic::Bic;
use redtail_transport::cc::highspeed::HighSpeed;
use redtail_transport::cc::htcp::Htcp;
use redtail_transport::cc::hybla::Hybla;
use redtail_transport::cc::illinois::Illinois;
use redtail_transport::cc::scalable::Scalable;
use redtail_transport::cc::veno::Veno;
use redtail_transport::cc::westwood::Westwood;
use redtail_transport::cc::yeah::Yeah;
use redtail_transport::cc::{AckSample, CaState, CongestionKind, GrowthLaw, PathSample};

use crate::common::MSS;

const SEGMENT: f64 = MSS as f64;
const TIMEOUT: CongestionKind = CongestionKind::Timeout { repeated: false };

/// A law in congestion avoidance, with its window in segments.
struct Flow<L> {
    law: L,
    w: u64,
    una: u64,
    now: Time,
    srtt: Span,
    state: CaState,
}

impl<L: GrowthLaw> Flow<L> {
    fn new(law: L, w: u64) -> Self {
        let mut flow = Self {
            law,
            w,
            una: 0,
            now: Time::ZERO + Span::from_s(1),
            srtt: Span::from_ms(100),
            state: CaState::Open,
        };
        flow.law.on_handshake(flow.now);
        flow
    }

    /// An acknowledgement of so many segments with this round trip.
    fn ack(&mut self, segments: u64, rtt: Option<Span>) {
        let acked = segments * MSS;
        self.una += acked;
        let next = self.una + self.w * MSS - acked;
        let cwnd = self.w as f64 * SEGMENT;
        let path = PathSample {
            now: self.now,
            acked,
            una: self.una,
            next,
            rtt,
            srtt: Some(self.srtt),
            state: self.state,
        };
        if self.law.watches() {
            self.law.watch(cwnd, &path, SEGMENT);
        }
        if segments == 0 || !self.state.grows() {
            return;
        }
        let sample = AckSample {
            now: self.now,
            acked,
            marked: 0,
            una: self.una,
            next,
            rtt,
            srtt: Some(self.srtt),
            rtt_independent: false,
        };
        self.w = (self.law.grown(cwnd, &sample, SEGMENT) / SEGMENT) as u64;
    }

    /// A window's acknowledgements, evenly over this round trip; returns the window.
    fn round(&mut self, rtt: Span) -> u64 {
        self.round_trip(rtt, rtt)
    }

    /// The same in rounds of `pace`, of which the round trips may differ.
    fn round_trip(&mut self, pace: Span, rtt: Span) -> u64 {
        let (begun, acks) = (self.now, self.w);
        for i in 1..=acks {
            self.now = begun + pace * i / acks;
            self.ack(1, Some(rtt));
        }
        self.w
    }

    /// So many of a segment each, at once.
    fn acks(&mut self, segments: u64) {
        for _ in 0..segments {
            self.ack(1, None);
        }
    }

    fn event(&mut self, kind: CongestionKind) -> u64 {
        let w = self.w as f64;
        let left = self.law.ssthresh(w, kind).expect("the law says");
        self.law.on_congestion(w, kind);
        let timeout = matches!(kind, CongestionKind::Timeout { .. });
        let after = self.law.on_episode_end(timeout, SEGMENT, self.now);
        self.w = after.unwrap_or(left) as u64;
        self.w
    }

    fn loss(&mut self) -> u64 {
        self.event(CongestionKind::Loss)
    }
}

fn ms(ms: u64) -> Span {
    Span::from_ms(ms)
}

#[test]
fn scalable_adds_a_segment_for_a_hundred_and_takes_an_eighth_away() {
    // Kelly 2003, section 3: a = 0.01, b = 0.125; Linux: for min(w, 100).
    let mut flow = Flow::new(Scalable::default(), 1000);
    flow.ack(99, None);
    assert_eq!(flow.w, 1000);
    flow.ack(1, None);
    assert_eq!(flow.w, 1001);
    flow.ack(350, None);
    assert_eq!(flow.w, 1004);
    assert_eq!(flow.loss(), 879); // 1004 - 125
    let mut small = Flow::new(Scalable::default(), 20);
    small.ack(20, None);
    assert_eq!(small.w, 21);
    assert_eq!(small.loss(), 19); // 21 - floor(21 / 8)
}

/// RFC 3649, section 5: b(w), and a(w) from it.
fn highspeed(w: f64) -> (f64, f64) {
    let (low, high): (f64, f64) = (38.0, 83_000.0);
    let b = 0.5 - 0.4 * (w / low).ln() / (high / low).ln();
    let p = 0.078 / w.powf(1.2);
    (w * w * p * 2.0 * b / (2.0 - b), b)
}

#[test]
fn highspeed_grows_and_reduces_as_the_rfc_says() {
    // At the largest window of each of the table's rows; b(w) is rounded to 1/256 there. Below
    // it both are the row's still, a(w) up to one more and b(w) less.
    for w in [118, 347, 1058, 5036, 10_661, 23_230, 48_961, 64_851] {
        let (a, b) = highspeed(w as f64);
        let mut flow = Flow::new(HighSpeed::default(), w);
        let grown = {
            // A window of acknowledgements adds a(w), give or take the remainder.
            for _ in 0..w {
                flow.ack(1, None);
            }
            flow.w - w
        };
        assert!((grown as f64 - a).abs() < 1.0, "{w}: {grown} {a}");
        let mut flow = Flow::new(HighSpeed::default(), w);
        flow.ack(1, None);
        let (taken, asked) = ((w - flow.loss()) as f64, b * w as f64);
        assert!(
            (taken - asked).abs() < 1.0 + 0.004 * w as f64,
            "{w}: {taken} {asked}"
        );
    }
    let mut flow = Flow::new(HighSpeed::default(), 50);
    flow.ack(1, None);
    assert_eq!(flow.loss(), 50 - 21); // the row up to 118: 112/256
}

#[test]
fn highspeed_is_reno_up_to_38_segments_and_counts_acknowledgements() {
    let mut flow = Flow::new(HighSpeed::default(), 20);
    for _ in 0..10 {
        flow.ack(2, None);
    }
    assert_eq!(flow.w, 20); // ten acknowledgements of twenty segments
    for _ in 0..10 {
        flow.ack(2, None);
    }
    assert_eq!(flow.w, 21);
    assert_eq!(flow.loss(), 11); // 21 - floor(21 / 2)
}

/// A BIC flow that lost at a window of `max`. Its ratio of segments to acknowledgements starts
/// at two and goes to 31/16, where Linux's rounding keeps it: each increase is that much larger.
fn bic_after_loss_at(max: u64) -> Flow<Bic> {
    let mut flow = Flow::new(Bic::default(), max);
    for _ in 0..20 {
        flow.ack(1, None);
    }
    flow.w = max;
    flow.loss();
    flow
}

const BIC_RATIO: f64 = 31.0 / 16.0;

#[test]
fn bic_searches_for_the_last_window_by_quarters_of_the_distance() {
    // INFOCOM 2004, section III, with Linux's values: increments of (last_max - w) / 4, at
    // most 16, then B / smooth_part, 4 segments in 20 round trips.
    let mut flow = bic_after_loss_at(1000);
    assert_eq!(flow.w, 799); // floor(1000 819 / 1024)
    let mut phases = [0; 3];
    while flow.w < 1000 {
        let before = flow.w;
        let begun = flow.now;
        let mut rounds = 0.0;
        while flow.w < before + 4 && flow.w < 1000 {
            let acks = flow.w;
            flow.now = begun + ms(100) * (rounds * 1000.0) as u64 / 1000;
            flow.ack(1, None);
            rounds += 1.0 / acks as f64;
        }
        let increase = (flow.w - before) as f64 / rounds;
        // What the rule asks for at both ends; divisions are rounded down, which brings up to a
        // tenth more at these windows.
        let asked = |w: u64| match (1000_u64.saturating_sub(w)) / 4 {
            0 | 1 => 4.0 / 20.0,
            step => step.min(16) as f64,
        };
        let (least, most) = (asked(flow.w) * BIC_RATIO, asked(before) * BIC_RATIO);
        assert!(
            (0.9 * least..=1.15 * most).contains(&increase),
            "{before}: {increase}, {least} to {most}"
        );
        phases[match asked(before) {
            16.0 => 0,
            0.2 => 2,
            _ => 1,
        }] += 1;
    }
    assert!(phases.iter().all(|&seen| seen > 0), "{phases:?}");
}

#[test]
fn bic_beyond_the_last_window_speeds_up_again() {
    // (w - last_max) / (B - 1) a round trip, at most S_max; more as the window grows.
    for w in [520, 530, 600] {
        let mut flow = bic_after_loss_at(500);
        flow.w = w;
        flow.acks(w);
        let asked = |w: u64| f64::min((w - 500) as f64 / 3.0, 16.0) * BIC_RATIO;
        let (grown, least, most) = ((flow.w - w) as f64, asked(w), asked(flow.w));
        assert!((least - 1.0..=1.1 * most).contains(&grown), "{w}: {grown}");
    }
}

#[test]
fn bic_is_reno_below_its_low_window_and_forgets_with_a_timeout() {
    let mut flow = Flow::new(Bic::default(), 14);
    flow.round(ms(100));
    assert_eq!(flow.w, 15);
    flow.w = 14;
    assert_eq!(flow.loss(), 7);
    flow.w = 100;
    assert_eq!(flow.event(TIMEOUT), 79); // floor(100 819 / 1024)
    // No window is known: 5 %, and as acknowledgements are first taken for two segments each,
    // twice that.
    flow.w = 400;
    let grown = flow.round(ms(100)) - 400;
    assert!((20..=45).contains(&grown), "{grown}");
}

#[test]
fn bic_that_loses_early_aims_between() {
    let mut flow = bic_after_loss_at(1000);
    flow.w = 900;
    // Fast convergence: 900 (1024 + 819) / 2048 = 809 is the window searched for, so that at
    // 801 the step is still 2 and from 802 on it is slow.
    assert_eq!(flow.loss(), 719);
    flow.w = 800;
    flow.acks(800);
    assert_eq!(flow.w, 802);
    flow.w = 806;
    flow.acks(806);
    assert_eq!(flow.w, 806);
}

#[test]
fn htcp_grows_faster_the_longer_the_last_loss_is_ago() {
    // PFLDnet 2004: alpha = 2 (1 - beta) f, f = 1 + 10 (Delta - 1) + ((Delta - 1) / 2)^2 from
    // Delta = 1 s on; at a round trip of 100 ms it is not scaled.
    let mut flow = Flow::new(Htcp::default(), 1000);
    flow.round(ms(100));
    flow.loss(); // by a half: the first
    flow.w = 1000;
    let begun = flow.now;
    for _ in 0..80 {
        let before = flow.w;
        let delta = (flow.now - begun).as_secs_f64();
        let grown = (flow.round(ms(100)) - before) as f64;
        let f = |delta: f64| {
            let d = (delta - 1.0).max(0.0);
            1.0 + 10.0 * d + d * d / 4.0
        };
        // beta is 1/2. f is in whole numbers, alpha computed anew when the window grows, and
        // what was counted beyond a segment is left: 10 % of it.
        let (least, most) = (0.85 * (f(delta) - 1.0) - 2.0, f(delta + 0.1) + 1.0);
        assert!(
            (least..=most).contains(&grown),
            "{delta}: {grown} {least} {most}"
        );
    }
}

#[test]
fn htcp_backs_off_by_the_ratio_of_round_trips_once_the_rate_is_steady() {
    // beta = RTT_min / RTT_max within 0.5 and 0.8; half when the rate changed by a fifth.
    for (rtt, left) in [(110, 0.8), (150, 2.0 / 3.0), (250, 0.5)] {
        let mut flow = Flow::new(Htcp::default(), 200);
        for _ in 0..4 {
            for _ in 0..12 {
                flow.w = 200;
                flow.round(ms(100));
            }
            // RTT_max follows in steps of 20 ms at most.
            for step in (100..=rtt).step_by(10) {
                flow.w = 200;
                flow.round_trip(ms(100), ms(step));
            }
            flow.w = 200;
            flow.loss();
        }
        let share = flow.w as f64 / 200.0;
        assert!((share - left).abs() < 0.03, "{rtt}: {share}");
    }
}

#[test]
fn htcp_halves_after_its_rate_has_changed() {
    let mut flow = Flow::new(Htcp::default(), 200);
    let mut left = Vec::new();
    for w in [200, 200, 200, 200, 400, 400, 400, 400] {
        for _ in 0..12 {
            flow.w = w;
            flow.round(ms(100));
        }
        flow.w = w;
        left.push(flow.loss() * 10 / w);
    }
    // 0.8 where nothing changed for two reductions, which the first of them begins.
    assert_eq!(left, [5, 5, 7, 7, 5, 5, 7, 7]);
}

#[test]
fn hybla_grows_by_rho_squared_a_round_trip() {
    // Caini and Firrincieli 2004: rho = RTT / 25 ms; W += rho^2 / W for each acknowledgement.
    for (rtt, rho) in [(10, 1.0), (25, 1.0), (100, 4.0), (200, 8.0), (550, 22.0)] {
        let mut flow = Flow::new(Hybla::default(), 1000);
        flow.srtt = ms(rtt);
        let mut grown = 0;
        for _ in 0..20 {
            flow.w = 1000;
            grown += flow.round(ms(rtt)) - 1000;
        }
        // W^2 grows by 2 rho^2 with each of 1000 acknowledgements.
        let expected = f64::sqrt(1e6 + 2000.0 * rho * rho) - 1000.0;
        let grown = grown as f64 / 20.0;
        // The increment is rounded down to 1/128 of a segment; less than that is Reno's.
        let bounds = if expected < 1000.0 / 128.0 {
            0.9..=1.1
        } else {
            expected - 1500.0 / 128.0..=expected + 0.1
        };
        assert!(bounds.contains(&grown), "{rtt}: {grown}");
    }
    // With a window that the fraction suits it is exact: 8^2 / 64.
    let mut flow = Flow::new(Hybla::default(), 64);
    flow.srtt = ms(200);
    flow.ack(1, None);
    assert_eq!(flow.w, 65);
    assert_eq!(flow.loss(), 32);
}

#[test]
fn hybla_is_reno_while_data_is_missing() {
    let mut flow = Flow::new(Hybla::default(), 64);
    flow.srtt = ms(200);
    flow.state = CaState::Disorder;
    for _ in 0..64 {
        flow.ack(1, None);
    }
    assert_eq!(flow.w, 65);
}

/// Illinois' increase of a round and its reduction where the greatest queueing delay ever
/// is 100 ms and the mean of the latest round `da` ms.
fn illinois(da: u64) -> (f64, f64) {
    let mut flow = Flow::new(Illinois::default(), 1000);
    flow.ack(1, Some(ms(100)));
    flow.ack(1, Some(ms(200)));
    flow.round(ms(100));
    // From one whole round of the delay on, alpha and beta are those of the delay.
    for _ in 0..8 {
        flow.w = 1000;
        flow.round(ms(100 + da));
    }
    flow.w = 1000;
    let mut grown = 0;
    for _ in 0..10 {
        flow.w = 1000;
        grown += flow.round(ms(100 + da)) - 1000;
    }
    flow.w = 1000;
    (grown as f64 / 10.0, 1.0 - flow.loss() as f64 / 1000.0)
}

#[test]
fn illinois_follows_its_curves() {
    // Liu, Başar and Srikant 2008, equations 5 to 7 with d_m = 100 ms: alpha = k1 / (k2 + d),
    // beta = k3 + k4 d between 10 and 80 ms.
    let (max, min, d1, dm) = (10.0, 0.3, 1.0, 100.0);
    let k1 = (dm - d1) * min * max / (max - min);
    let k2 = (dm - d1) * min / (max - min) - d1;
    for da in [0, 1, 2, 5, 10, 11, 20, 45, 60, 79, 80, 100] {
        let d = da as f64;
        let alpha = if d <= d1 { max } else { k1 / (k2 + d) };
        let beta = (0.125 + 0.375 * (d - 10.0) / 70.0).clamp(0.125, 0.5);
        let (grown, taken) = illinois(da);
        // What was counted beyond a segment is lost, as in Linux: a share of it.
        assert!(
            (0.85 * alpha - 0.3..=alpha + 0.1).contains(&grown),
            "{da}: {grown} {alpha}"
        );
        assert!(
            (taken - beta).abs() <= 1.0 / 64.0 + 0.001,
            "{da}: {taken} {beta}"
        );
    }
}

#[test]
fn illinois_waits_for_five_good_rounds_before_it_grows_by_ten_again() {
    let mut flow = Flow::new(Illinois::default(), 1000);
    flow.round(ms(100));
    flow.w = 1000;
    flow.round(ms(200));
    flow.w = 1000;
    flow.round(ms(200));
    let grown: Vec<u64> = (0..10)
        .map(|_| {
            flow.w = 1000;
            flow.round(ms(100)) - 1000
        })
        .collect();
    let first = grown.iter().position(|&by| by > 5).expect("it does");
    assert!((4..=6).contains(&first), "{grown:?}");
}

#[test]
fn illinois_is_reno_below_fifteen_segments_and_after_a_timeout() {
    let mut flow = Flow::new(Illinois::default(), 14);
    flow.round(ms(100));
    flow.w = 14;
    assert_eq!(flow.round(ms(100)), 15);
    flow.w = 14;
    assert_eq!(flow.loss(), 7);
    let mut flow = Flow::new(Illinois::default(), 100);
    flow.round(ms(100));
    flow.w = 100;
    assert_eq!(flow.event(TIMEOUT), 88); // by an eighth, there being no delay
    assert_eq!(flow.loss(), 44);
}

#[test]
fn veno_tells_losses_of_congestion_from_others_by_what_waits() {
    // Fu and Liew 2003: N = w (RTT - BaseRTT) / RTT against beta = 3.
    for (rtt, congested) in [(100, false), (102, false), (103, true), (150, true)] {
        let mut flow = Flow::new(Veno::default(), 120);
        for _ in 0..4 {
            flow.ack(1, Some(ms(100)));
        }
        flow.w = 120;
        let mut grown = 0;
        for _ in 0..10 {
            flow.w = 120;
            grown += flow.round(ms(rtt)) - 120;
        }
        let n = 120.0 * (1.0 - 100.0 / rtt as f64);
        assert_eq!(n >= 3.0, congested, "the test's own arithmetic");
        // A segment every round trip, or every other one.
        let bounds = if congested { 4..=5 } else { 9..=10 };
        assert!(bounds.contains(&grown), "{rtt}: {grown}");
        flow.w = 120;
        assert_eq!(flow.loss(), if congested { 60 } else { 96 });
    }
}

#[test]
fn veno_is_reno_until_it_has_three_round_trips_and_while_data_is_missing() {
    let mut flow = Flow::new(Veno::default(), 120);
    flow.ack(1, Some(ms(100)));
    flow.ack(119, Some(ms(300)));
    assert_eq!(flow.w, 121);
    flow.state = CaState::Disorder;
    flow.ack(121, Some(ms(300)));
    assert_eq!(flow.w, 122);
}

#[test]
fn yeah_is_scalable_while_little_waits_and_reno_otherwise() {
    // PFLDnet 2007: slow mode from RTT - BaseRTT > BaseRTT / 8 on, or Q > 80.
    let grows = |rtt| {
        let mut flow = Flow::new(Yeah::default(), 500);
        flow.round(ms(100));
        let mut grown = 0;
        for round in 0..12 {
            flow.w = 500;
            let by = flow.round(ms(rtt)) - 500;
            grown += if round < 2 { 0 } else { by };
        }
        grown as f64 / 10.0
    };
    assert!((4.9..=5.1).contains(&grows(110)), "{}", grows(110));
    assert!((0.9..=1.1).contains(&grows(114)), "{}", grows(114)); // Q = 61
}

#[test]
fn yeah_takes_what_waits_out_of_the_queue_before_there_is_a_loss() {
    let mut flow = Flow::new(Yeah::default(), 500);
    flow.round(ms(100));
    flow.w = 500;
    flow.round(ms(125)); // Q = 100
    flow.ack(1, Some(ms(125)));
    assert!((399..=406).contains(&flow.w), "{}", flow.w);
}

#[test]
fn yeah_takes_what_waited_away_with_a_loss_but_half_when_it_competes() {
    let after = |rounds, rtt| {
        let mut flow = Flow::new(Yeah::default(), 400);
        flow.round(ms(100));
        for _ in 0..rounds {
            flow.w = 400;
            flow.round(ms(rtt));
        }
        flow.w = 400;
        flow.loss()
    };
    assert_eq!(after(5, 100), 350); // nothing waits: an eighth
    assert!((320..=340).contains(&after(5, 120)), "{}", after(5, 120)); // Q = 66
    assert_eq!(after(20, 120), 200); // 16 rounds of slow mode: Reno is there
}

#[test]
fn westwood_goes_on_with_the_bandwidth_times_the_least_round_trip() {
    // A window of 50 segments each 200 ms is 250 segments/s; the least round trip is 100 ms.
    let mut flow = Flow::new(Westwood::default(), 50);
    flow.ack(1, Some(ms(100)));
    for _ in 0..60 {
        flow.w = 50;
        flow.round(ms(200));
    }
    flow.w = 50;
    assert_eq!(flow.law.ssthresh(50.0, CongestionKind::Loss), Some(25.0));
    let left = flow.loss();
    assert!((24..=25).contains(&left), "{left}");
    // Without a queue nothing is given up.
    let mut flow = Flow::new(Westwood::default(), 50);
    for _ in 0..60 {
        flow.w = 50;
        flow.round(ms(100));
    }
    flow.w = 50;
    let left = flow.loss();
    assert!((47..=50).contains(&left), "{left}");
}

#[test]
fn westwood_filters_its_samples_twice_by_an_eighth() {
    // s_k = 7/8 s_(k-1) + 1/8 b_k, and the estimate follows s in the same way: after a step
    // from one rate to twice that, in n samples, 1 - (1 + n/8) (7/8)^n of the step.
    let mut flow = Flow::new(Westwood::default(), 100);
    for _ in 0..80 {
        flow.w = 100;
        flow.round(ms(100));
    }
    let estimate = |flow: &mut Flow<Westwood>| {
        let left = flow.law.ssthresh(100.0, TIMEOUT);
        left.expect("the law says")
    };
    let before = estimate(&mut flow);
    let mut seen = Vec::new();
    for _ in 0..40 {
        flow.w = 200;
        flow.round(ms(100));
        seen.push(estimate(&mut flow) / before - 1.0);
    }
    // An interval is longer than the round trip by the acknowledgement that ends it.
    for (i, share) in seen.iter().enumerate() {
        let n = i as f64;
        let model = |n: f64| 1.0 - (1.0 + n / 8.0) * (7.0_f64 / 8.0).powf(n);
        let (least, most) = (model((n - 2.0).max(0.0)), model(n + 1.0));
        assert!(
            (least - 0.03..=most + 0.03).contains(share),
            "{n}: {share} {least} {most}"
        );
    }
}

#[test]
fn westwood_counts_a_duplicate_as_a_segment_and_no_more_when_the_hole_closes() {
    let run = |duplicates: bool| {
        let mut flow = Flow::new(Westwood::default(), 50);
        for round in 0..60 {
            flow.w = 50;
            if round % 2 == 0 || !duplicates {
                flow.round(ms(100));
                continue;
            }
            // The same data, 49 segments of it shown by duplicates first.
            flow.state = CaState::Recovery;
            let begun = flow.now;
            for i in 1..=49 {
                flow.now = begun + ms(100) * i / 50;
                flow.ack(0, None);
            }
            flow.now = begun + ms(100);
            flow.ack(50, Some(ms(100)));
            flow.state = CaState::Open;
        }
        flow.w = 50;
        flow.loss()
    };
    assert!(
        run(true).abs_diff(run(false)) <= 2,
        "{} {}",
        run(true),
        run(false)
    );
}
