//! Fast retransmit and fast recovery without selective acknowledgements.

use crate::common::{SenderScript, ack_of, params};
use redtail_transport::tcp::recovery::RecoveryKind;
use redtail_transport::{Flags, Segment, TcpParams};

const FIRST_TEN: &str = "0 1 2 3 4 5 6 7 8 9";

/// A sender with ten segments outstanding since 100 ms ago.
fn ten_out(recovery: RecoveryKind) -> SenderScript {
    let mut script = SenderScript::bulk(&params(recovery));
    script.sends(FIRST_TEN).at(100);
    script
}

#[test]
fn the_third_duplicate_retransmits_and_the_second_does_not() {
    // RFC 5681, section 3.2: "uses the arrival of 3 duplicate ACKs as an
    // indication that a segment has been lost"; ssthresh by equation 4.
    for recovery in [RecoveryKind::Reno, RecoveryKind::Newreno] {
        let mut script = ten_out(recovery);
        script.acks(0, 2).sends("").cwnd(10.0);
        script.ack(0).sends("r0").cwnd(5.0).ssthresh(5.0);
        assert_eq!(script.counters().recoveries, 1);
    }
}

#[test]
fn further_duplicates_send_new_data_once_half_the_flight_has_left() {
    // RFC 5681, section 3.2, steps 3 to 5: cwnd = ssthresh + 3 SMSS, one more for
    // each further duplicate; 10 are outstanding, so 5 + k must exceed 10.
    for recovery in [RecoveryKind::Reno, RecoveryKind::Newreno] {
        let mut script = ten_out(recovery);
        script.acks(0, 5).sends("r0");
        script.ack(0).sends("10");
        script.ack(0).sends("11");
    }
}

#[test]
fn limited_transmit_sends_new_data_on_the_first_two_duplicates() {
    // RFC 3042, section 2: "the TCP sender SHOULD transmit a segment of previously
    // unsent data upon the arrival of the first two consecutive duplicate ACKs";
    // "The congestion window MUST NOT be changed".
    for recovery in [RecoveryKind::Reno, RecoveryKind::Newreno] {
        let params = TcpParams {
            limited_transmit: true,
            ..params(recovery)
        };
        let mut script = SenderScript::bulk(&params);
        script.sends(FIRST_TEN).at(100);
        script.ack(0).sends("10").cwnd(10.0);
        script.ack(0).sends("11").cwnd(10.0);
        script.ack(0).sends("r0");
    }
}

#[test]
fn limited_transmit_sends_no_more_than_two_segments_beyond_the_window() {
    // RFC 3042, section 2: "The amount of outstanding data would remain less than or
    // equal to the congestion window plus 2 segments."
    let params = TcpParams {
        limited_transmit: true,
        dup_thresh: 5,
        ..params(RecoveryKind::Newreno)
    };
    let mut script = SenderScript::bulk(&params);
    script.sends(FIRST_TEN).at(100);
    script.acks(0, 2).sends("10 11");
    script.acks(0, 2).sends("").ack(0).sends("r0");
}

#[test]
fn what_limited_transmit_sent_does_not_count_when_the_flight_is_halved() {
    // RFC 5681, section 3.2, step 2: "When [RFC3042] is in use, additional data
    // sent in limited transmit MUST NOT be included in this calculation."
    for recovery in [RecoveryKind::Reno, RecoveryKind::Newreno] {
        let params = TcpParams {
            limited_transmit: true,
            ..params(recovery)
        };
        let mut script = SenderScript::bulk(&params);
        script.at(100).acks(0, 3).ssthresh(5.0).cwnd(5.0);
    }
}

#[test]
fn limited_transmit_stops_at_the_receive_window() {
    // RFC 3042, section 2: "The receiver's advertised window allows the
    // transmission of the segment."
    let params = TcpParams {
        limited_transmit: true,
        receive_window: redtail_core::Bytes::new(11 * crate::common::MSS),
        ..params(RecoveryKind::Newreno)
    };
    let mut script = SenderScript::bulk(&params);
    script.sends(FIRST_TEN).at(100);
    let mut duplicate = crate::common::ack_of(0, &[]);
    duplicate.window = 11 * crate::common::MSS as u32;
    script.receives(duplicate).sends("10");
    script.receives(duplicate).sends("");
}

#[test]
fn newreno_retransmits_the_next_hole_on_a_partial_ack() {
    // RFC 6582, section 3.2, step 3: "retransmit the first unacknowledged segment.
    // Deflate the congestion window by the amount of new data acknowledged [...]
    // add back SMSS bytes [...] send a new segment if permitted".
    let mut script = ten_out(RecoveryKind::Newreno);
    script.acks(0, 8).sends("r0 10 11 12"); // segments 0 and 2 were lost
    // cwnd 5 + 8 - 2 + 1 = 12 against 13 - 2 = 11 outstanding: room for one.
    script.at(200).ack(2).sends("r2 13").cwnd(5.0);
    // Up to the recovery point: over, and no burst.
    script.at(300).ack(10).cwnd(5.0).sends("14");
    assert_eq!(script.counters().recoveries, 1);
    assert_eq!(script.counters().retransmissions, 2);
}

#[test]
fn newreno_leaves_recovery_without_a_burst() {
    // RFC 6582, section 3.2, step 3, full acknowledgement, option 1:
    // "min (ssthresh, max(FlightSize, SMSS) + SMSS)".
    let mut script = ten_out(RecoveryKind::Newreno);
    script.acks(0, 3).sends("r0");
    script.at(200).ack(10).cwnd(2.0).sends("10 11");
}

#[test]
fn newreno_restarts_the_timer_on_the_first_partial_ack_only() {
    // RFC 6582, section 3.2, step 3: "For the first partial ACK that arrives
    // during fast recovery, also reset the retransmit timer."
    let mut script = ten_out(RecoveryKind::Newreno);
    script.acks(0, 3).timer(1100);
    script.at(200).ack(2).sends("r0 r2").timer(1200);
    script.at(300).ack(4).sends("r4").timer(1200);
}

#[test]
fn reno_ends_recovery_at_the_first_new_ack() {
    // RFC 5681, section 3.2, step 6: "When the next ACK arrives that acknowledges
    // previously unacknowledged data, a TCP MUST set cwnd to ssthresh".
    let mut script = ten_out(RecoveryKind::Reno);
    script.acks(0, 8).sends("r0 10 11 12");
    script.at(200).ack(2).sends("").cwnd(5.0);
    assert_eq!(script.counters().retransmissions, 1);
}

#[test]
fn recovery_does_not_start_again_before_the_recovery_point_is_passed() {
    // RFC 6582, section 3.2, step 2: fast retransmit only if "the Cumulative
    // Acknowledgment field covers more than recover"; a timeout sets recover too
    // (step 4).
    let mut script = SenderScript::bulk(&params(RecoveryKind::Newreno));
    script.sends(FIRST_TEN).at(1000).sends("r0");
    script.at(1100).ack(1).sends("r1 r2");
    script.acks(1, 3).sends("");
    script.at(1200).ack(10).sends("10 11 12");
    script.acks(10, 3).sends(""); // covers recover, but not more
    script.at(1300).ack(11).sends("13 14");
    script.acks(11, 3).sends("r11 15");
}

#[test]
fn a_loss_in_the_next_window_starts_recovery_anew() {
    let mut script = ten_out(RecoveryKind::Newreno);
    script.acks(0, 9).sends("r0 10 11 12 13");
    script.at(200).ack(10).sends("14");
    script.ack(11).sends("15"); // 5.2 segments
    script.acks(11, 3).sends("r11").ssthresh(2.5).cwnd(2.5);
    assert_eq!(script.counters().recoveries, 2);
}

#[test]
fn dup_thresh_sets_how_many_duplicates_mean_a_loss() {
    let params = TcpParams {
        dup_thresh: 5,
        ..params(RecoveryKind::Newreno)
    };
    let mut script = SenderScript::bulk(&params);
    script.sends(FIRST_TEN).at(100);
    script.acks(0, 4).sends("").ack(0).sends("r0");
}

#[test]
fn a_syn_ack_that_comes_again_is_no_duplicate() {
    // RFC 5681, section 2: of a duplicate, "the SYN and FIN bits are both off".
    for recovery in [RecoveryKind::Newreno, RecoveryKind::Sack] {
        let mut script = SenderScript::bulk(&TcpParams {
            handshake: true,
            ..params(recovery)
        });
        let syn_ack = Segment {
            flags: Flags::SYN.with(Flags::ACK),
            ..ack_of(0, &[])
        };
        script.at(100).receives(syn_ack);
        script.at(200).sends("syn 0 1 2 3 4 5 6 7 8 9");
        for _ in 0..3 {
            script.receives(syn_ack);
        }
        script.sends("").cwnd(10.0);
        assert_eq!(script.counters().duplicate_acks, 0);
    }
}
