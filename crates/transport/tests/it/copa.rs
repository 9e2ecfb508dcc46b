//! Copa by scripts of rate samples: Arun and Balakrishnan, NSDI 2018, sections 2.1 and 2.2.

use crate::common::MSS;
use redtail_core::{Span, Stream, Time};
use redtail_transport::cc::copa::{Copa, Program};
use redtail_transport::cc::model::{Episode, LostSegment, Model, ModelConfig, RateSample};

const SEGMENT: f64 = MSS as f64;
/// Round trip without queues.
const BASE: u64 = 100;

/// Feeds a model a window of acknowledgements, of a segment each, in every round.
struct Feed {
    model: Copa,
    now: Time,
    delivered: u64,
}

impl Feed {
    /// With a window of so many segments.
    fn new(window: f64, program: Program) -> Self {
        let config = ModelConfig {
            mss: SEGMENT,
            initial_cwnd: window * SEGMENT,
            stream: Stream::named(1, 0, "tcp"),
            lt_bw: false,
            ecn_max_rtt: None,
        };
        Self {
            model: Copa::new(config, program),
            now: Time::ZERO + Span::from_s(1),
            delivered: 0,
        }
    }

    /// The window in segments after a round of this many ms.
    fn round(&mut self, rtt: u64) -> f64 {
        let acks = (self.w() as u64).max(1);
        let (begun, prior) = (self.now, self.delivered);
        for i in 1..=acks {
            self.now = begun + Span::from_ms(rtt) * i / acks;
            self.delivered += MSS;
            self.model.on_ack(&RateSample {
                now: self.now,
                total_delivered: self.delivered,
                newly_acked: MSS,
                // The first was sent when the round began.
                prior_delivered: Some(if i == 1 {
                    prior
                } else {
                    prior.saturating_sub(1)
                }),
                rtt: Some(Span::from_ms(rtt)),
                srtt: Some(Span::from_ms(rtt)),
                window_limited: true,
                episode: Episode::Open,
                ..RateSample::default()
            });
        }
        self.w()
    }

    fn w(&self) -> f64 {
        self.model.cwnd() / SEGMENT
    }

    fn loses(&mut self) {
        let lost = LostSegment {
            start: 0,
            len: MSS as u32,
            sent_in_flight: 0,
            lost: MSS,
            app_limited: false,
            total_delivered: self.delivered,
        };
        self.model.on_lost(&lost, self.now);
    }

    /// A model that has left slow start at a window of so many segments, with no queue.
    fn steady(window: f64, program: Program) -> Self {
        let mut feed = Self::new(window, program);
        feed.model.set_cwnd(window * SEGMENT);
        feed.round(BASE);
        feed.round(2 * BASE);
        assert_ne!(feed.model.state(), "slow_start");
        feed.round(BASE);
        feed.model.set_cwnd(window * SEGMENT);
        feed
    }
}

#[test]
fn slow_start_doubles_until_the_rate_is_above_the_target() {
    let mut feed = Feed::new(10.0, Program::Authors);
    assert_eq!(feed.round(100), 20.0);
    assert_eq!(feed.round(100), 40.0);
    assert_eq!(feed.model.state(), "slow_start");
    // w 4/104 segments wait, and 1/delta = 2 may: up to 52.
    let left = feed.round(104);
    assert_eq!(feed.model.state(), "default");
    // RTTstanding shows a delay half a round trip late.
    assert!((52.0..=62.0).contains(&left), "{left}");
}

#[test]
fn segments_are_paced_at_twice_the_window_in_a_round_trip() {
    let mut feed = Feed::steady(50.0, Program::Authors);
    feed.round(100);
    let expected = 2.0 * feed.model.cwnd() / 0.1;
    assert!((feed.model.pacing_rate().expect("it paces") / expected - 1.0).abs() < 1e-9);
}

#[test]
fn by_the_papers_rule_the_velocity_doubles_after_three_round_trips_in_one_direction() {
    // Without queueing delay always up: 1/delta = 2 segments a round trip.
    let mut feed = Feed::steady(100.0, Program::Mvfst);
    feed.round(130); // down
    feed.round(100);
    let mut steps = Vec::new();
    for _ in 0..8 {
        let before = feed.w();
        steps.push((feed.round(100) - before).round());
    }
    let doubled = steps
        .iter()
        .position(|&step| step > 3.0)
        .expect("it doubles");
    assert!((2..=4).contains(&doubled), "{steps:?}");
    assert!(
        steps[..doubled].iter().all(|&step| step == 2.0),
        "{steps:?}"
    );
    for (i, &step) in steps[doubled..].iter().enumerate() {
        let expected = 4.0 * f64::powi(2.0, i as i32);
        assert!((step / expected - 1.0).abs() < 0.3, "{steps:?}");
    }
    // The other way it begins anew, once RTTstanding shows it.
    feed.round(130);
    let before = feed.w();
    let after = feed.round(130);
    assert!((before - after - 2.0).abs() < 1.0, "{before} {after}");
}

#[test]
fn by_the_authors_rule_the_velocity_doubles_every_round_trip_in_one_direction() {
    let mut feed = Feed::steady(100.0, Program::Authors);
    for _ in 0..2 {
        feed.round(130); // down, so that the next round trip up is the first
    }
    feed.model.set_cwnd(100.0 * SEGMENT);
    feed.round(100);
    let steps: Vec<f64> = (0..4)
        .map(|_| {
            let before = feed.w();
            feed.round(100) - before
        })
        .collect();
    for pair in steps.windows(2) {
        assert!((pair[1] / pair[0] / 2.0 - 1.0).abs() < 0.15, "{steps:?}");
    }
    // v is at most delta w, so the window at most doubles.
    for _ in 0..6 {
        let before = feed.w();
        let after = feed.round(100);
        assert!(after <= 2.0 * before, "{before} {after}");
    }
}

#[test]
fn a_queue_that_is_never_nearly_empty_is_someone_elses() {
    let mut feed = Feed::steady(100.0, Program::Authors);
    feed.round(100);
    assert_eq!(feed.model.state(), "default");
    for _ in 0..4 {
        feed.round(150);
        assert_eq!(feed.model.state(), "default");
    }
    feed.round(140);
    feed.round(150);
    feed.round(140);
    assert_eq!(feed.model.state(), "competitive");
    // A tenth of the greatest delay, 50 ms, is nearly empty.
    feed.round(104);
    feed.round(104);
    assert_eq!(feed.model.state(), "default");

    let mut never = Feed::steady(100.0, Program::Mvfst);
    for _ in 0..20 {
        never.round(150);
    }
    assert_eq!(never.model.state(), "default");
}

#[test]
fn losses_change_the_weight_of_delay_in_competitive_mode_alone() {
    let window_after = |lossy: bool, program: Program| {
        let mut feed = Feed::steady(100.0, program);
        for round in 0..40 {
            if lossy && round % 4 == 0 {
                feed.loses();
            }
            // 50 ms for 100 segments: 33 of them wait.
            feed.model.set_cwnd(100.0 * SEGMENT);
            feed.round(150);
        }
        feed.round(150)
    };
    // 1/delta grows by 1 each round trip, and from 33 on the window grows as well.
    assert!(window_after(false, Program::Authors) > 100.0);
    assert!(window_after(true, Program::Authors) < 100.0);
    let default = window_after(false, Program::Mvfst);
    assert!(default < 100.0);
    assert_eq!(window_after(true, Program::Mvfst), default);
}

#[test]
fn the_window_keeps_its_two_segments_in_a_deep_queue_and_a_timeout_starts_over() {
    let mut feed = Feed::steady(10.0, Program::Mvfst);
    for _ in 0..15 {
        feed.round(400);
    }
    // At 300 of 400 ms in queues w 300/400 = 1/delta.
    assert!((2.0..=8.0 / 3.0).contains(&feed.w()), "{}", feed.w());
    feed.model.on_timeout(feed.now);
    assert_eq!((feed.w(), feed.model.state()), (1.0, "slow_start"));
}
