//! Pacing of a window-based sender, by scripts.

use crate::common::{MSS, SenderScript, ms, params};
use redtail_core::{Span, Time};
use redtail_transport::TcpParams;
use redtail_transport::tcp::recovery::RecoveryKind;

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
