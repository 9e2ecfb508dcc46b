//! Pacing of a window-based sender, by scripts.

use crate::common::{MSS, SenderScript, ms, params};
use redtail_core::{Span, Time};
use redtail_transport::tcp::recovery::RecoveryKind;
use redtail_transport::{Preset, TcpParams};

fn paced(recovery: RecoveryKind) -> TcpParams {
    TcpParams {
        pacing: true,
        ..params(recovery)
    }
}

/// When the segments sent since the first `before` left.
fn departures(script: &SenderScript, before: usize) -> Vec<Time> {
    script.wire[before..].iter().map(|&(at, _)| at).collect()
}

#[test]
fn before_a_round_trip_is_known_the_initial_window_leaves_as_a_burst() {
    let mut script = SenderScript::bulk(&paced(RecoveryKind::Sack));
    assert_eq!(departures(&script, 0), [Time::ZERO; 10]);
    script.timer(1000);
}

#[test]
fn slow_start_leaves_at_twice_the_window_each_round_trip() {
    // Linux, tcp_update_pacing_rate: 2 cwnd / srtt. An acknowledgement of the whole
    // window adds a segment: 11 segments, at 220 a second.
    let mut script = SenderScript::bulk(&paced(RecoveryKind::Sack));
    script.at(100).ack(10);
    script.sends("0 1 2 3 4 5 6 7 8 9 10").at(199);
    script.sends("11 12 13 14 15 16 17 18 19 20");
    let spacing = Span::from_ps(1_000_000_000_000 / 220);
    let expected = (0..11).map(|i| ms(100) + spacing * i);
    assert_eq!(departures(&script, 10), expected.collect::<Vec<_>>());
}

#[test]
fn a_reduced_window_leaves_at_1_2_times_itself_each_round_trip() {
    let mut script = SenderScript::bulk(&paced(RecoveryKind::Sack));
    script.at(100).ack(10).at(199);
    script.sends("0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20");
    // Eleven outstanding: half are 5.5 segments. The lost one goes at once.
    script.at(200).sack(10, &[(11, 14)]).sends("r10").cwnd(5.5);
    script.sack(10, &[(11, 21)]).at(299).sends("21 22 23 24");
    let spacing = Span::from_ps(10_000_000_000_000 / 660);
    let expected = (0..5).map(|i| ms(200) + spacing * i);
    // The segment that went at once took its share of the rate.
    let times = departures(&script, 21);
    for (time, expected) in times.into_iter().zip(expected) {
        let error = time
            .saturating_since(expected)
            .max(expected.saturating_since(time));
        assert!(error <= Span::from_ps(10), "{time:?}, not {expected:?}");
    }
}

#[test]
fn prague_leaves_at_its_window_each_round_trip() {
    // tcp_prague.c, prague_update_pacing_rate: 100 % outside slow start.
    let ratio = |preset: Preset| preset.params().pacing_ca_ratio;
    assert_eq!((ratio(Preset::Prague), ratio(Preset::Linux)), (1.0, 1.2));
    let mut script = SenderScript::bulk(&TcpParams {
        pacing_ca_ratio: 1.0,
        ..paced(RecoveryKind::Sack)
    });
    script.at(100).ack(10).at(199);
    // Half of eleven outstanding segments are 5.5, which leave in 100 ms.
    script.at(200).sack(10, &[(11, 21)]).cwnd(5.5).at(299);
    let times = departures(&script, 21);
    assert!(times.len() > 2, "{times:?}");
    for pair in times.windows(2) {
        let gap = (pair[1] - pair[0]).as_secs_f64();
        assert!((gap - 0.1 / 5.5).abs() < 1e-9, "{gap}");
    }
}

#[test]
fn a_window_that_was_full_in_the_latest_round_trip_grows() {
    // Linux, tcp_cwnd_validate: what the window limited counts until what was sent by then
    // is acknowledged. Paced at the window's own rate, a segment is always about to leave.
    let mut script = SenderScript::bulk(&TcpParams {
        pacing_ca_ratio: 1.0,
        ..paced(RecoveryKind::Sack)
    });
    script.at(100).sack(0, &[(1, 4)]).cwnd(5.0).ack(10);
    let mut acked = 10;
    let before = script.window();
    for tick in 1..=40 {
        script.at(100 + 10 * tick);
        // Everything that has been under way for 100 ms is acknowledged.
        while script
            .wire
            .iter()
            .filter(|(at, _)| *at + Span::from_ms(100) <= ms(100 + 10 * tick))
            .count() as u64
            > acked + 1
        {
            acked += 1;
            script.ack(acked);
        }
    }
    // A segment each of about four round trips.
    let grown = script.window() - before;
    assert!(grown >= 2.5, "{grown}");
}

#[test]
fn the_retransmission_of_a_timeout_is_not_held_back() {
    let mut script = SenderScript::bulk(&paced(RecoveryKind::Sack));
    script.at(100).ack(10).at(1000);
    script.sends("0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20");
    script.at(1099).sends("").at(1100).sends("r10");
}

#[test]
fn what_is_not_there_to_send_is_not_waited_for() {
    let mut script = SenderScript::transfer(&paced(RecoveryKind::Sack), 12 * MSS);
    script.at(100).ack(10).sends("0 1 2 3 4 5 6 7 8 9 10");
    script.at(150).sends("11").timer(1100);
    script.at(200).ack(12).complete(true).timer(None);
}
