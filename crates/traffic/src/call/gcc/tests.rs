use super::*;
use crate::call::testing::{ms, near};

const BOUNDS: Bounds = Bounds {
    least: 50e3,
    most: 10e6,
};

#[test]
fn the_filter_takes_the_steps_of_the_equations() {
    let mut filter = ArrivalFilter::default();
    // By hand: alpha = 0.99^(0.03 * 33), z = 6.
    let alpha = 0.99_f64.powf(0.99);
    let var = alpha * 50.0 + (1.0 - alpha) * 36.0;
    let gain = 0.101 / (var + 0.101);
    near(filter.update(6.0, 33.0), gain * 6.0);
    near(filter.covariance, (1.0 - gain) * 0.101);
    // The second group came 10 ms after the first: f_max is now 1/10.
    let alpha = 0.99_f64.powf(0.3);
    let z = -2.0 - gain * 6.0;
    let second = alpha * var + (1.0 - alpha) * z * z;
    let predicted = (1.0 - gain) * 0.101 + 1e-3;
    let next = predicted / (second + predicted);
    near(filter.update(-2.0, 10.0), gain * 6.0 + next * z);
}

#[test]
fn an_outlier_changes_the_variance_by_three_deviations_at_most() {
    let mut filter = ArrivalFilter::default();
    filter.update(1000.0, 33.0);
    let alpha = 0.99_f64.powf(0.99);
    near(filter.variance, alpha * 50.0 + (1.0 - alpha) * 9.0 * 50.0);
}

#[test]
fn the_filter_finds_a_constant_slope() {
    let mut filter = ArrivalFilter::default();
    for _ in 0..3000 {
        filter.update(0.5, 33.0);
    }
    assert!((filter.estimate - 0.5).abs() < 1e-3, "{}", filter.estimate);
}

#[test]
fn the_threshold_rises_by_k_u_and_falls_by_k_d_within_its_range() {
    let mut detector = OveruseDetector::default();
    detector.detect(0.0, 5.0, 0.0);
    near(detector.threshold, 12.5);
    // 20 ms later, |m| = 2 * 10 = 20: above by 7.5.
    detector.detect(10.0, 5.0, 20.0);
    near(detector.threshold, 12.5 + 20.0 * 0.01 * 7.5);
    // 20 ms later, m = 0.
    detector.detect(0.0, 5.0, 40.0);
    near(detector.threshold, 14.0 * (1.0 - 20.0 * 0.000_18));
    // Beyond 15 ms above it, it stays.
    let before = detector.threshold;
    detector.detect(100.0, 5.0, 60.0);
    near(detector.threshold, before);
    for i in 0..10_000 {
        detector.detect(0.0, 5.0, 100.0 * f64::from(i));
    }
    near(detector.threshold, 6.0);
}

#[test]
fn over_use_must_last_and_must_not_abate() {
    let grown = || {
        let mut detector = OveruseDetector::default();
        for i in 0..100 {
            assert_eq!(
                detector.detect(0.0, 5.0, 5.0 * f64::from(i)),
                Signal::Normal
            );
        }
        detector
    };
    // 60 m = 18 and more: above the threshold of 12.5. Times: 2.5, 7.5 and 12.5 ms.
    let mut detector = grown();
    assert_eq!(detector.detect(0.30, 5.0, 500.0), Signal::Normal);
    assert_eq!(detector.detect(0.31, 5.0, 505.0), Signal::Normal);
    assert_eq!(detector.detect(0.32, 5.0, 510.0), Signal::Over);
    assert_eq!(detector.detect(-0.5, 5.0, 515.0), Signal::Under);
    assert_eq!(detector.detect(0.0, 5.0, 520.0), Signal::Normal);
    // The same times, but it falls.
    let mut detector = grown();
    for (m, at) in [(0.32, 500.0), (0.31, 505.0), (0.30, 510.0)] {
        assert_eq!(detector.detect(m, 5.0, at), Signal::Normal);
    }
}

#[test]
fn states_follow_the_table() {
    use State::{Decrease, Hold, Increase};
    for (state, over, normal, under) in [
        (Hold, Decrease, Increase, Hold),
        (Increase, Decrease, Increase, Hold),
        (Decrease, Decrease, Hold, Hold),
    ] {
        let found = [Signal::Over, Signal::Normal, Signal::Under].map(|it| state.after(it));
        assert_eq!(found, [over, normal, under], "{state:?}");
    }
}

#[test]
fn far_from_convergence_the_rate_grows_by_8_percent_in_a_second() {
    let mut control = DelayBased::new(1e6, BOUNDS);
    let round_trip = Span::from_ms(100);
    for i in 0..=5 {
        control.update(Signal::Normal, Some(1e6), round_trip, ms(200 * i));
    }
    assert!(
        (control.rate / 1.08e6 - 1.0).abs() < 1e-9,
        "{}",
        control.rate
    );
}

#[test]
fn the_rate_is_reduced_to_a_share_of_what_arrives_and_then_grows_by_half_a_packet() {
    let mut control = DelayBased::new(1.2e6, BOUNDS);
    let round_trip = Span::from_ms(100);
    control.update(Signal::Over, Some(1e6), round_trip, ms(0));
    near(control.rate, 0.85e6);
    assert_eq!(control.state, State::Decrease);
    // Over-use that lasts reduces again after a response time of 200 ms.
    control.update(Signal::Over, Some(1e6), round_trip, ms(199));
    near(control.rate, 0.85e6);
    control.update(Signal::Normal, Some(1e6), round_trip, ms(210));
    assert_eq!(control.state, State::Hold);
    control.update(Signal::Normal, Some(1e6), round_trip, ms(220));
    assert_eq!(control.state, State::Increase);
    near(control.rate, 0.85e6);
    control.update(Signal::Normal, Some(1e6), round_trip, ms(410));
    // Near the 1 Mbit/s at which it was reduced: 28333 bits in a frame, in 3 packets.
    near(control.rate, 0.85e6 + 0.5 * 850_000.0 / 30.0 / 3.0);
    // What arrives is far below: multiplicative.
    let rate = control.rate;
    control.update(Signal::Normal, Some(0.6e6), round_trip, ms(610));
    near(control.rate, (rate * 1.08_f64.powf(0.2)).min(0.9e6));
}

#[test]
fn the_rate_stays_below_one_and_a_half_times_what_arrives() {
    let mut control = DelayBased::new(1e6, BOUNDS);
    for i in 0..100 {
        control.update(Signal::Normal, Some(0.8e6), Span::from_ms(100), ms(200 * i));
    }
    near(control.rate, 1.2e6);
}

#[test]
fn more_than_three_deviations_above_the_average_forgets_it() {
    let mut control = DelayBased::new(1e6, BOUNDS);
    control.update(Signal::Over, Some(1e6), Span::from_ms(100), ms(0));
    control.update(Signal::Normal, Some(1e6), Span::from_ms(100), ms(10));
    // sqrt(0.4 * 1000) = 20 kbit/s, three times.
    control.update(Signal::Normal, Some(1.061e6), Span::from_ms(100), ms(300));
    assert_eq!(control.average, None);
}

#[test]
fn losses_follow_the_rules_of_2_and_10_percent() {
    let after = |loss, by_delay| {
        let mut control = LossBased::new(1e6, BOUNDS);
        control.update(loss, by_delay);
        control.rate
    };
    near(after(0.0, 5e6), 1.05e6);
    near(after(0.019, 5e6), 1.05e6);
    near(after(0.02, 5e6), 1e6);
    near(after(0.10, 5e6), 1e6);
    near(after(0.11, 5e6), 1e6 * (1.0 - 0.055));
    near(after(0.5, 5e6), 0.75e6);
    near(after(0.0, 0.9e6), 0.9e6);
    near(after(1.0, 1e3), 50e3);
}

#[test]
fn a_report_tells_the_round_trip_and_what_is_missing() {
    let mut sender = GccSender::new(1e6, BOUNDS);
    for sequence in 0..10 {
        sender.sent(sequence, ms(10 * u64::from(sequence)));
    }
    // Packet 9 left at 90 ms and arrived at 110, the report at 120, and both halves took 20 ms.
    let report = Report {
        highest: 9,
        received: 5,
        arrived: ms(110),
        rate: 2_000_000,
        ..Report::default()
    };
    sender.report(&report, ms(120), ms(140));
    assert_eq!(sender.round_trip(), Span::from_ms(40));
    near(sender.target(), 0.75e6);
    // The same again says nothing new.
    sender.report(&report, ms(120), ms(150));
    near(sender.target(), 0.75e6);
    let falls = Report {
        highest: 19,
        received: 15,
        rate: 400_000,
        ..report
    };
    sender.report(&falls, ms(120), ms(160));
    near(sender.target(), 0.4e6);
}

#[test]
fn packets_of_a_burst_are_a_group() {
    let mut receiver = GccReceiver::new(1e6, BOUNDS);
    let mut at = |sent, arrived| receiver.arrive(sent, arrived);
    assert_eq!(at(0.0, 20.0), None);
    assert_eq!(at(5.0, 28.0), None, "within 5 ms");
    assert_eq!(at(33.0, 53.0), None, "the first group has none before it");
    assert_eq!(at(31.0, 54.0), None, "out of order");
    // It arrives at less than 5 ms after the group, and is less delayed.
    assert_eq!(at(40.0, 57.0), None);
    // The second group left 35 ms after the first and arrived 29 ms after it.
    assert_eq!(at(66.0, 90.0), Some((29.0 - 35.0, 35.0, 57.0)));
}

#[test]
fn a_queue_that_grows_is_noticed_and_reported_at_once() {
    let mut receiver = GccReceiver::new(1e6, BOUNDS);
    let (mut sent, mut delay) = (0.0, 20.0);
    let mut noticed = None;
    for i in 0..2000 {
        sent += 10.0;
        // 10 % more than the path carries from 10 s on.
        delay += if i >= 1000 { 1.0 } else { 0.0 };
        let [sent, arrived] = [sent, sent + delay].map(|ms| Time::from_secs_f64(ms / 1e3));
        receiver.receive(sent, 1200, Span::from_ms(40), arrived);
        if receiver.must_report() && noticed.is_none() {
            noticed = Some((i, receiver.report()));
        }
    }
    let (i, rate) = noticed.expect("the queue grows by 10 ms in each 100 ms");
    assert!((1000..1100).contains(&i), "after {i} packets");
    assert!(
        (0.7e6..0.85e6).contains(&rate),
        "0.85 times 0.87 to 0.96 Mbit/s: {rate}"
    );
}
