//! Recovery with selective acknowledgements (RFC 6675).

use crate::common::{MSS, SenderScript, ack_of, params};
use redtail_core::Time;
use redtail_transport::segment::{SackBlock, SackBlocks};
use redtail_transport::tcp::recovery::RecoveryKind;
use redtail_transport::tcp::scoreboard::Scoreboard;
use redtail_transport::{Segment, TcpParams};

const FIRST_TEN: &str = "0 1 2 3 4 5 6 7 8 9";

fn sack() -> TcpParams {
    params(RecoveryKind::Sack)
}

/// An endless sender with ten segments outstanding since 100 ms ago.
fn ten_out() -> SenderScript {
    let mut script = SenderScript::bulk(&sack());
    script.sends(FIRST_TEN).at(100);
    script
}

/// The same, with nothing more to send.
fn last_ten_out() -> SenderScript {
    let mut script = SenderScript::transfer(&sack(), 10 * MSS);
    script.sends(FIRST_TEN).at(100);
    script
}

/// The first of ten was lost; the next `up_to` arrive one after the other.
fn first_lost(script: &mut SenderScript, up_to: u64) {
    for i in 1..=up_to {
        script.sack(0, &[(1, i + 1)]);
    }
}

#[test]
fn the_third_duplicate_starts_recovery_and_the_pipe_limits_it() {
    // RFC 6675, section 5, step C: send while "cwnd - pipe >= 1 SMSS"; section 4,
    // SetPipe: a lost octet counts only as retransmitted.
    let mut script = ten_out();
    first_lost(&mut script, 2);
    script.sends("");
    script
        .sack(0, &[(1, 4)])
        .sends("r0")
        .cwnd(5.0)
        .ssthresh(5.0); // pipe 7
    script.sack(0, &[(1, 5)]).sends(""); // pipe 6
    script.sack(0, &[(1, 6)]).sends(""); // pipe 5
    script.sack(0, &[(1, 7)]).sends("10"); // pipe 4
    script.sack(0, &[(1, 8)]).sends("11");
    // The acknowledgement of the recovery point ends it with cwnd = ssthresh.
    script.at(200).sack(10, &[]).cwnd(5.0).sends("12 13 14");
}

#[test]
fn duplicates_without_new_sack_information_do_not_count() {
    // RFC 6675, section 2: a duplicate acknowledgement is one that "carries a SACK
    // block that identifies previously unacknowledged and un-SACKed octets".
    let mut script = ten_out();
    script.acks(0, 5).sends("");
    for _ in 0..5 {
        script.sack(0, &[(1, 2)]);
    }
    script.sends("");
}

#[test]
fn three_ranges_in_one_acknowledgement_start_recovery_at_once() {
    // RFC 6675, section 5, step 2: "If DupAcks < DupThresh but IsLost (HighACK + 1)
    // returns true [...] go to step (4)".
    let mut script = ten_out();
    script.sack(0, &[(1, 2), (3, 4)]).sends("");
    let mut script = ten_out();
    script.sack(0, &[(5, 6), (3, 4), (1, 2)]).sends("r0");
}

#[test]
fn more_than_two_segments_of_bytes_start_recovery_at_once() {
    // RFC 6675, section 4, IsLost: "or more than (DupThresh - 1) * SMSS bytes with
    // sequence numbers greater than SeqNum have been SACKed".
    let acked_up_to = |end: u64| {
        let mut script = SenderScript::transfer(&sack(), 3 * MSS + 400);
        script.sends("0 1 2 3:400").at(100);
        let mut blocks = SackBlocks::default();
        blocks.push(0, SackBlock { start: MSS, end });
        script.receives(Segment {
            sack: blocks,
            ..ack_of(0, &[])
        });
        script
    };
    acked_up_to(3 * MSS).sends("");
    acked_up_to(3 * MSS + 400).sends("r0");
}

#[test]
fn three_discontiguous_ranges_mean_a_loss_however_small_they_are() {
    // RFC 6675, section 4, IsLost: "returns true when either DupThresh
    // discontiguous SACKed sequences have arrived above 'SeqNum'".
    let lost_with = |ranges: u64| {
        let mut board = Scoreboard::default();
        for _ in 0..8 {
            board.on_new(100, Time::ZERO);
        }
        board.on_sack(
            (0..ranges).map(|i| SackBlock {
                start: 100 + 200 * i,
                end: 200 + 200 * i,
            }),
            Time::ZERO,
        );
        board.detect_losses(3, MSS as u32, u64::MAX);
        board.assert_consistent();
        board.first_is_lost()
    };
    assert!(!lost_with(2));
    assert!(lost_with(3));
}

#[test]
fn holes_that_are_lost_go_before_new_data() {
    // RFC 6675, section 4, NextSeg, rule 1 before rule 2.
    let mut script = ten_out(); // segments 0 and 2 were lost
    script.sack(0, &[(1, 2)]);
    script.sack(0, &[(3, 4), (1, 2)]);
    script.sack(0, &[(3, 5), (1, 2)]).sends("r0"); // pipe 7, 2 not lost yet
    script.sack(0, &[(3, 6), (1, 2)]).sends(""); // 2 is lost, pipe 5
    script.sack(0, &[(3, 7), (1, 2)]).sends("r2");
    script.sack(0, &[(3, 8), (1, 2)]).sends("10");
}

#[test]
fn without_new_data_holes_not_yet_known_to_be_lost_are_retransmitted() {
    // RFC 6675, section 4, NextSeg, rule 3.
    let mut script = last_ten_out();
    first_lost(&mut script, 5);
    script.sends("r0");
    script.sack(0, &[(8, 9), (1, 6)]).sends("r6");
    script.sack(0, &[(8, 10), (1, 6)]).sends("r7");
}

#[test]
fn without_new_data_or_holes_the_last_segment_is_sent_again_once() {
    // RFC 6675, section 4, NextSeg, rule 4: "a single 'rescue' retransmission per
    // entry into loss recovery".
    let mut script = last_ten_out();
    first_lost(&mut script, 5);
    script.sends("r0");
    script.sack(0, &[(1, 7)]).sends("r9");
    script.sack(0, &[(1, 8)]).sends("");
}

#[test]
fn a_rescue_does_not_hide_the_holes_it_uncovers() {
    // RFC 6675, section 4, NextSeg, rule 4: "Note that HighRxt MUST NOT be updated".
    let mut script = last_ten_out();
    first_lost(&mut script, 6);
    script.sends("r0 r9");
    // Of 7, 8 and 9 only the rescue arrived; 7 and 8 are holes of rule 3.
    script.sack(0, &[(9, 10), (1, 7)]).sends("r7 r8");
}

#[test]
fn limited_transmit_sends_what_the_pipe_allows_before_recovery() {
    // RFC 6675, section 5, step 3.
    let params = TcpParams {
        limited_transmit: true,
        ..sack()
    };
    let mut script = SenderScript::bulk(&params);
    script.sends(FIRST_TEN).at(100);
    script.sack(0, &[(1, 2)]).sends("10");
    script.sack(0, &[(1, 3)]).sends("11");
    script.sack(0, &[(1, 4)]).sends("r0");
}

#[test]
fn what_limited_transmit_sent_does_not_count_when_the_flight_is_halved() {
    // RFC 6675, section 5, step 4.2: "[RFC5681] requires that any segments sent as
    // part of the Limited Transmit mechanism not be counted in FlightSize".
    let params = TcpParams {
        limited_transmit: true,
        ..sack()
    };
    let mut script = SenderScript::bulk(&params);
    script.at(100);
    first_lost(&mut script, 3);
    script.ssthresh(5.0).cwnd(5.0);
}

#[test]
fn after_a_timeout_what_is_selectively_acknowledged_is_not_sent_again() {
    // RFC 6675, section 5.1: the SACK information may be kept after a timeout.
    let mut script = ten_out();
    script.sack(0, &[(2, 4)]).sends("");
    script.at(1000).sends("r0").cwnd(1.0);
    script.at(1100).sack(1, &[(2, 4)]).cwnd(2.0).sends("r1 r4");
    script.at(1200).sack(4, &[]).cwnd(3.0).sends("r5 r6");
}

#[test]
fn after_a_timeout_recovery_waits_for_the_recovery_point() {
    // RFC 6675, section 5.1: "a new recovery phase (as described in Section 5) MUST
    // NOT be initiated until HighACK is greater than or equal to the new value of
    // RecoveryPoint".
    let mut script = ten_out();
    script.at(1000).sends("r0").ssthresh(5.0);
    first_lost(&mut script, 5);
    assert_eq!(script.counters().recoveries, 0);
    script.ssthresh(5.0);
}

#[test]
fn a_segment_is_retransmitted_once_per_recovery() {
    let mut script = ten_out(); // segment 0 was lost, and its retransmission too
    first_lost(&mut script, 9);
    script.sends("r0 10 11 12 13");
    for i in 10..14 {
        script.sack(0, &[(1, i + 1)]);
    }
    script.sends("14 15 16 17");
    // Only the timer repairs that.
    script.at(1100).sends("r0").cwnd(1.0);
}

#[test]
fn what_was_retransmitted_in_recovery_is_not_sent_again_right_after_it() {
    // Segment 10, new data of the recovery, is lost and retransmitted within it.
    // RFC 6675, section 5: recovery starts upon a duplicate acknowledgement, which
    // the acknowledgement of the recovery point is not.
    let mut script = ten_out();
    first_lost(&mut script, 9);
    script.sends("r0 10 11 12 13");
    script.sack(0, &[(11, 12), (1, 10)]);
    script.sack(0, &[(11, 13), (1, 10)]);
    script.sends("14 15");
    script.sack(0, &[(11, 14), (1, 10)]).sends("r10 16");
    script.at(200).sack(10, &[(11, 14)]);
    assert_eq!(script.counters().recoveries, 1);
    assert_eq!(script.counters().retransmissions, 2);
}

#[test]
fn a_full_window_acknowledged_selectively_repairs_many_losses_in_one_round_trip() {
    // Segments 0, 2 and 4 of ten were lost: all three go out in one recovery.
    let mut script = ten_out();
    script.sack(0, &[(1, 2)]);
    script.sack(0, &[(3, 4), (1, 2)]);
    script.sack(0, &[(5, 6), (3, 4), (1, 2)]);
    for i in 6..10 {
        script.sack(0, &[(5, i + 1), (3, 4), (1, 2)]);
    }
    script.sends("r0 r2 r4 10 11"); // pipe 3 before the new data
    script.at(200).sack(10, &[]).cwnd(5.0);
    assert_eq!(script.counters().recoveries, 1);
}

#[test]
fn every_partial_ack_restarts_the_timer() {
    // RFC 6298, rule 5.3: "When an ACK is received that acknowledges new data,
    // restart the retransmission timer".
    let mut script = ten_out();
    script.sack(0, &[(5, 6), (3, 4), (1, 2)]).timer(1100);
    script.at(200).sack(2, &[(5, 6), (3, 4)]).timer(1200);
    script.at(300).sack(4, &[(5, 6)]).timer(1300);
}

#[test]
fn with_prr_what_was_delivered_before_recovery_is_not_part_of_what_is_reduced() {
    // RFC 9937, section 6.1: RecoverFS leaves out what was selectively acknowledged before the
    // acknowledgement that begins recovery: of twenty segments 1 and 2. With 18 delivered,
    // ten (ssthresh) are to be sent; from 13 on the flight is at ssthresh.
    let mut script = SenderScript::bulk(&TcpParams {
        prr: true,
        initial_window: 20,
        ..sack()
    });
    script.at(100);
    for end in 2..=3 {
        script.sack(0, &[(1, end)]);
    }
    let before = script.wire.len();
    assert_eq!(before, 20);
    for delivered in 1..=12 {
        script.sack(0, &[(1, 3 + delivered)]);
        let sent = (script.wire.len() - before) as u64;
        // Whole segments, and the fast retransmit at once.
        assert_eq!(sent, (delivered * 10 / 18).max(1), "after {delivered}");
    }
}

#[test]
fn with_prr_an_acknowledgement_that_reports_new_losses_lets_no_more_leave_than_was_delivered() {
    // RFC 9937, section 6.2: SafeACK is "snd.una advances and no further loss indicated".
    // Segment 0 of twenty was lost, and 4 to 13; the acknowledgements of the last were
    // lost but for one.
    let mut script = SenderScript::bulk(&TcpParams {
        prr: true,
        initial_window: 20,
        ..sack()
    });
    script.at(100);
    for end in 2..=4 {
        script.sack(0, &[(1, end)]);
    }
    script.at(200).sack(4, &[(14, 20)]);
    // Delivered since the beginning of recovery: 3, 0 and 14 to 19; sent: 0.
    let resent = script.counters().retransmissions - 1;
    assert_eq!(resent, 7);
    // Nothing new is lost: one more.
    script.sack(5, &[(14, 20)]);
    assert_eq!(script.counters().retransmissions - 1, 7 + 2);
}
