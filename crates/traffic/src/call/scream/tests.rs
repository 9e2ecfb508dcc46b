use super::*;
use crate::call::testing::{ms, near};

const BOUNDS: Bounds = Bounds {
    least: 150e3,
    most: 5e6,
};

/// Sends packet `sequence` of 1000 B at `sent` ms.
fn send(scream: &mut Scream, sequence: u32, sent: u64) {
    scream.sent(sequence, 1000, ms(sent));
}

/// All packets up to `highest` have arrived, the last at `arrived` ms.
fn report(highest: u32, arrived: u64) -> Report {
    Report {
        highest,
        received: highest + 1,
        arrived: ms(arrived),
        acknowledged: u64::MAX,
        ..Report::default()
    }
}

#[test]
fn in_fast_increase_the_window_grows_by_what_is_acknowledged() {
    let mut scream = Scream::new(500e3, BOUNDS);
    for sequence in 0..3 {
        send(&mut scream, sequence, 0);
    }
    // cwnd = 3000; the slack is one packet while the delay is below its target.
    assert!(scream.may_send(1000));
    send(&mut scream, 3, 0);
    assert!(!scream.may_send(1000));
    scream.report(&report(1, 20), 0.0, ms(40));
    near(scream.cwnd, 5000.0);
    near(scream.s_rtt.expect("a report has arrived"), 0.040);
    // An older report changes nothing.
    scream.report(&report(1, 21), 0.0, ms(41));
    near(scream.cwnd, 5000.0);
}

#[test]
fn a_window_that_is_not_used_does_not_grow() {
    let mut scream = Scream::new(500e3, BOUNDS);
    scream.cwnd = 10_000.0;
    send(&mut scream, 0, 0);
    scream.report(&report(0, 20), 0.0, ms(40));
    near(scream.cwnd, 10_000.0);
}

#[test]
fn beyond_fast_increase_the_window_moves_by_the_distance_from_the_target() {
    let step = |delay: u64| {
        let mut scream = Scream::new(500e3, BOUNDS);
        (scream.in_fast_increase, scream.cwnd) = (false, 8000.0);
        scream.trend_high_at = ms(60);
        for sequence in 0..8 {
            send(&mut scream, sequence, 0);
        }
        scream.base.push_back((ms(0), 0.020));
        // Afterwards 7000 B are in flight: 1.25 times, and 1000 B, are more than the window.
        scream.report(&report(0, 20 + delay), 0.0, ms(60));
        scream.cwnd
    };
    // off_target = (100 - delay) / 100, 1000 B acknowledged of 8000: 125 B for the whole target.
    near(step(0), 8000.0 + 125.0);
    near(step(50), 8000.0 + 62.5);
    // 200 ms off: less, but the most in flight, 8000 B, leaves the window alone.
    near(step(200), 8000.0 - 125.0);
}

#[test]
fn a_loss_takes_a_fifth_of_the_window_and_a_tenth_of_the_rate_once_in_a_round_trip() {
    let mut scream = Scream::new(500e3, BOUNDS);
    scream.cwnd = 20_000.0;
    for sequence in 0..20 {
        send(&mut scream, sequence, 0);
    }
    let mut first = report(4, 20);
    first.acknowledged = 0b1101; // packet 2 is missing
    scream.report(&first, 0.0, ms(40));
    near(scream.cwnd, 16_000.0);
    near(scream.target(), 450e3);
    assert!(!scream.in_fast_increase);
    let mut second = report(8, 25);
    second.acknowledged = 0b101_1111; // packet 5 too
    scream.report(&second, 0.0, ms(50));
    assert!(
        scream.cwnd > 15_900.0,
        "within a round trip: {}",
        scream.cwnd
    );
    let mut third = report(12, 80);
    third.acknowledged = 0b110;
    scream.report(&third, 0.0, ms(100));
    near(scream.target(), 405e3);
}

#[test]
fn a_mark_takes_a_tenth() {
    let mut scream = Scream::new(500e3, BOUNDS);
    scream.cwnd = 20_000.0;
    send(&mut scream, 0, 0);
    let marked = Report {
        marked: 1,
        ..report(0, 20)
    };
    scream.report(&marked, 0.0, ms(40));
    near(scream.cwnd, 18_000.0);
    near(scream.target(), 450e3);
}

#[test]
fn a_packet_that_was_overtaken_is_waited_for_from_then_on() {
    let mut scream = Scream::new(500e3, BOUNDS);
    for sequence in 0..9 {
        send(&mut scream, sequence, 0);
    }
    scream.reordering = Span::from_ms(30);
    let mut first = report(2, 20);
    first.acknowledged = 0b10; // packet 1 is missing
    scream.report(&first, 0.0, ms(40));
    near(scream.target(), 500e3);
    scream.report(&report(3, 45), 0.0, ms(60));
    assert!(scream.missing.is_empty());
    assert_eq!(scream.reordering, Span::from_ms(30));
}

#[test]
fn the_delay_target_rises_beside_flows_that_fill_the_queue_and_falls_again() {
    let mut scream = Scream::new(500e3, BOUNDS);
    // A steady 250 ms: an average of 2.5 and no variance.
    scream.qdelay = 0.250;
    for _ in 0..300 {
        scream.adjust_qdelay_target();
    }
    near(scream.qdelay_target, 0.250);
    scream.loss_event_rate = 0.01;
    scream.adjust_qdelay_target();
    near(scream.qdelay_target, 0.375);
    scream.qdelay = 2.0;
    for _ in 0..300 {
        scream.adjust_qdelay_target();
    }
    near(scream.qdelay_target, 0.4);
    (scream.qdelay, scream.loss_event_rate) = (0.0, 0.0);
    for _ in 0..300 {
        scream.adjust_qdelay_target();
    }
    near(scream.qdelay_target, 0.1);
}

#[test]
fn the_rate_ramps_up_by_200_kbit_in_a_second_and_yields_to_the_queue() {
    let mut scream = Scream::new(500e3, BOUNDS);
    scream.rates.rates = [500e3; 3];
    scream.adjust_bitrate(0.0);
    near(scream.target(), 540e3);
    // Beyond fast increase, with 2000 B in the queue: 16 kbit are 32 ms, more than 20.
    scream.in_fast_increase = false;
    scream.adjust_bitrate(2000.0);
    near(scream.target(), 0.95 * 580e3);
    // Close to the last maximum, a fifth of the increase.
    scream.target_bitrate = 600e3;
    scream.target_bitrate_last_max = 600e3;
    scream.rates.rates = [1e6; 3];
    scream.adjust_bitrate(0.0);
    near(scream.target(), 600e3 + 40e3);
    scream.target_bitrate_last_max = 640e3;
    scream.rates.rates = [100e3; 3];
    scream.adjust_bitrate(0.0);
    near(scream.target(), 200e3);
}

#[test]
fn packets_are_paced_by_window_and_round_trip() {
    let mut scream = Scream::new(400e3, BOUNDS);
    assert_eq!(scream.pace(1000), Span::from_ms(20));
    (scream.cwnd, scream.s_rtt) = (10_000.0, Some(0.1));
    assert_eq!(scream.pace(1000), Span::from_ms(10));
    scream.s_rtt = Some(100.0);
    assert_eq!(scream.pace(1000), Span::from_ms(160), "at 50 kbit/s");
}

#[test]
fn the_trend_is_the_autocorrelation_of_a_delay_that_grows() {
    let grows: VecDeque<f64> = (0..20).map(f64::from).collect();
    assert!(autocorrelation(&grows) > 0.8);
    let alternates: VecDeque<f64> = (0..20).map(|i| f64::from(i % 2)).collect();
    assert!(autocorrelation(&alternates) < -0.9);
    assert_eq!(autocorrelation(&VecDeque::from([1.0; 20])), 0.0);
}
