//! Data that arrives twice: how it is reported (RFC 2883), and what a sender makes
//! of the reports.

use crate::common::{MSS, ReceiverScript, SenderScript, ack_of, data, params};
use redtail_transport::tcp::recovery::RecoveryKind;
use redtail_transport::{SackBlock, SackBlocks, Segment, TcpParams};

fn dsack(recovery: RecoveryKind) -> TcpParams {
    TcpParams {
        dsack: true,
        ..params(recovery)
    }
}

fn receiver() -> ReceiverScript {
    ReceiverScript::new(&dsack(RecoveryKind::Sack))
}

#[test]
fn a_duplicate_below_the_acknowledgement_is_reported_once_and_first() {
    // RFC 2883, section 4: "A D-SACK block is only used to report a duplicate
    // contiguous sequence of data received by the receiver in the most recent
    // packet"; "reported in at most one D-SACK block".
    let mut script = receiver();
    script.all([0, 1, 3]).sends("1, 2, 2 [3-4]");
    script.data(0).sends("2 [0-1 3-4]");
    script.data(4).sends("2 [3-5]");
}

#[test]
fn a_duplicate_above_the_acknowledgement_is_followed_by_the_block_that_holds_it() {
    // RFC 2883, section 4: "the second SACK block in that SACK option should specify
    // that (possibly larger) block of data".
    let mut script = receiver();
    script.all([0, 2, 3, 4]);
    script.sends("1, 1 [2-3], 1 [2-4], 1 [2-5]");
    script.data(3).sends("1 [3-4 2-5]");
    // The whole block is contained in itself.
    script.all([6, 6]).sends("1 [6-7 2-5], 1 [6-7 6-7 2-5]");
}

#[test]
fn of_a_segment_that_is_new_in_part_the_rest_is_reported() {
    // RFC 2883, section 4.2, "Reporting Partial Duplicate Segments".
    let long = |index, segments: u64| Segment {
        len: (segments * MSS) as u32,
        ..data(index)
    };
    let mut script = receiver();
    script.data(0).receives(long(0, 2)).sends("1, 2 [0-1]");
    script.data(4).sends("2 [4-5]");
    script.receives(long(3, 2)).sends("2 [4-5 3-5]");
    // Two duplicate parts: the first is reported.
    script.data(6).receives(long(4, 4));
    script.sends("2 [6-7 3-5], 2 [4-5 3-8]");
}

#[test]
fn there_is_room_for_two_blocks_beside_a_duplicate() {
    let mut script = receiver();
    script.all([0, 2, 4, 6]).data(0);
    script.sends("1, 1 [2-3], 1 [4-5 2-3], 1 [6-7 4-5 2-3], 1 [0-1 6-7 4-5]");
}

#[test]
fn duplicates_are_not_reported_unless_asked_for() {
    let mut script = ReceiverScript::new(&params(RecoveryKind::Sack));
    script.all([0, 0, 2, 2]).sends("1, 1, 1 [2-3], 1 [2-3]");
    let mut script = ReceiverScript::new(&dsack(RecoveryKind::Newreno));
    script.all([0, 0]).sends("1, 1");
}

#[test]
fn blocks_keep_their_place_below_the_acknowledgement() {
    let ack = (1 << 33) + 5;
    let block = |start, end| SackBlock { start, end };
    let mut blocks = SackBlocks::default();
    blocks.push(ack, block(ack - (1 << 32), ack - (1 << 31))); // too far off
    blocks.push(ack, block(ack - (1 << 31), ack - 5));
    blocks.push(ack, block(ack + 1, ack + (1 << 30)));
    let expected = [
        block(ack - (1 << 31), ack - 5),
        block(ack + 1, ack + (1 << 30)),
    ];
    assert!(blocks.iter(ack).eq(expected));
    assert_eq!(blocks.duplicate(ack), Some(expected[0]));
    assert_eq!(size_of::<Segment>(), 64); // two to a pair of cache lines
}

/// Ten segments are out; the first is late and taken for lost.
fn late(recovery: RecoveryKind) -> SenderScript {
    let mut script = SenderScript::bulk(&dsack(recovery));
    script.at(100).sack(0, &[(1, 2)]).sack(0, &[(1, 3)]);
    script.sack(0, &[(1, 4)]).ssthresh(5.0);
    script.sends("0 1 2 3 4 5 6 7 8 9 r0");
    script
}

const BOTH: [RecoveryKind; 2] = [RecoveryKind::Sack, RecoveryKind::RackTlp];

#[test]
fn a_fast_retransmit_reported_as_a_duplicate_is_undone() {
    // RFC 2883, section 5; RFC 9438, section 4.9.2: a spurious fast retransmit
    // restores cwnd and ssthresh.
    for recovery in BOTH {
        let mut script = late(recovery);
        script.at(110).ack(9).cwnd(5.0);
        script.at(200).sack(10, &[(0, 1)]);
        script.cwnd(10.0).ssthresh(f64::INFINITY);
        assert_eq!(script.counters().spurious_fast_retransmits, 1);
        assert_eq!(script.counters().spurious_timeouts, 0);
    }
}

#[test]
fn the_report_may_come_after_the_end_of_recovery() {
    for recovery in BOTH {
        let mut script = late(recovery);
        script.at(110).ack(10).cwnd(5.0).sends("10 11 12 13 14");
        script.at(200).sack(10, &[(0, 1)]).cwnd(10.0);
        script.ssthresh(f64::INFINITY).sends("15 16 17 18 19");
        // Once: the next report takes nothing back.
        script.sack(10, &[(0, 1)]);
        assert_eq!(script.counters().spurious_fast_retransmits, 1);
    }
}

#[test]
fn an_undo_in_recovery_lets_the_whole_window_be_used_at_once() {
    let mut script = late(RecoveryKind::Sack);
    script.sack(0, &[(1, 5)]).sends("").cwnd(5.0); // pipe 6
    script.at(110).ack(5).sends(""); // pipe 5
    script.at(200).sack(5, &[(0, 1)]).cwnd(10.0);
    script.sends("10 11 12 13 14");
}

#[test]
fn every_retransmission_must_have_been_unnecessary() {
    // RFC 3708, section 3: the set of retransmitted segments must be empty.
    let mut script = SenderScript::bulk(&dsack(RecoveryKind::Sack));
    script
        .at(100)
        .sack(0, &[(2, 9)])
        .sends("0 1 2 3 4 5 6 7 8 9 r0 r1 10 11");
    script.at(200).sack(9, &[(0, 1)]).ssthresh(5.0);
    assert_eq!(script.counters().spurious_fast_retransmits, 0);
    script.sack(9, &[(1, 2)]).ssthresh(f64::INFINITY);
    assert_eq!(script.counters().spurious_fast_retransmits, 1);
}

#[test]
fn duplicates_of_what_was_acknowledged_before_the_episode_say_nothing() {
    let mut script = SenderScript::bulk(&dsack(RecoveryKind::Sack));
    script.at(100).ack(1).sack(1, &[(2, 5)]).ssthresh(5.5);
    script.at(110).sack(1, &[(0, 1), (2, 5)]).ssthresh(5.5);
    assert_eq!(script.counters().spurious_fast_retransmits, 0);
}

#[test]
fn another_reason_to_reduce_makes_the_first_one_stay() {
    let params = TcpParams {
        ecn: true,
        ..dsack(RecoveryKind::Sack)
    };
    let mut script = SenderScript::bulk(&params);
    script.at(100).sack(0, &[(1, 4)]).at(110).ack(10).cwnd(5.0);
    script.at(200).ack_echo(12).cwnd(2.5);
    script.sack(12, &[(0, 1)]).cwnd(2.5);
    assert_eq!(script.counters().spurious_fast_retransmits, 0);
}

#[test]
fn a_timeout_whose_retransmissions_were_all_duplicates_is_undone() {
    let mut script = SenderScript::bulk(&dsack(RecoveryKind::Sack));
    script.at(1000).sends("0 1 2 3 4 5 6 7 8 9 r0").cwnd(1.0);
    script.at(1100).ack(1).sends("r1 r2");
    script.sack(3, &[(0, 1)]).sends("r3 r4 r5");
    script.sack(9, &[(1, 2)]).sends("r9 10 11 12");
    for i in 2..6 {
        script.sack(9, &[(i, i + 1)]);
    }
    script.ssthresh(5.0).sack(10, &[(9, 10)]);
    script.ssthresh(f64::INFINITY);
    assert_eq!(script.counters().spurious_timeouts, 1);
}

#[test]
fn what_a_spurious_timeout_had_not_sent_again_yet_is_not() {
    let mut script = SenderScript::bulk(&dsack(RecoveryKind::Sack));
    script.at(1000).sends("0 1 2 3 4 5 6 7 8 9 r0").cwnd(1.0);
    // Its answer first, then those to the rest of the window.
    script.at(1100).sack(0, &[(1, 2)]).sends("");
    script.sack(2, &[(0, 1)]);
    script.cwnd(11.0).ssthresh(f64::INFINITY).sends("10 11 12");
    assert_eq!(script.counters().spurious_timeouts, 1);
    assert_eq!(script.counters().retransmissions, 1);
}

fn rack() -> TcpParams {
    dsack(RecoveryKind::RackTlp)
}

#[test]
fn racks_room_for_reordering_widens_once_a_round_trip_with_duplicates() {
    // RFC 8985, section 6.2, step 4: "RACK.reo_wnd_mult += 1" once per "dsack_round".
    let mut script = SenderScript::bulk(&rack());
    script.at(100).sack(1, &[(0, 1)]).sack(2, &[(0, 1)]);
    // Two quarters of 100 ms after segment 2 was due.
    script.sack(2, &[(3, 4)]).timer(150);
    script.at(130).ack(10);
    script.at(230).sack(12, &[(0, 1)]); // the next round
    script.at(240).sack(12, &[(13, 14)]);
    let sent = script.sent_at(12 * MSS);
    script.timer(sent + (240 - script.sent_at(13 * MSS)) + 75);
}

#[test]
fn reordering_within_the_widened_room_is_no_loss() {
    let late = |reported: bool| {
        let mut script = SenderScript::bulk(&rack());
        script.at(100);
        if reported {
            script.sack(1, &[(0, 1)]);
        } else {
            script.ack(1);
        }
        script.sack(1, &[(2, 3)]).at(140).ack(3);
        script.counters().recoveries
    };
    assert_eq!(late(false), 1);
    assert_eq!(late(true), 0);
}

#[test]
fn racks_room_narrows_after_sixteen_recoveries_without_duplicates() {
    // RFC 8985, section 6.2, step 4: "RACK.reo_wnd_persist = 16"; "If
    // RACK.reo_wnd_persist <= 0: RACK.reo_wnd_mult = 1".
    let room_after = |recoveries: u64| {
        let mut script = SenderScript::bulk(&rack());
        let (mut sent, mut acked) = (0, 1);
        script.at(100).sack(1, &[(0, 1)]);
        for _ in 0..recoveries {
            // The first of those sent at that time is lost, and repaired.
            script.at(sent + 100).sack(acked, &[(acked + 1, acked + 2)]);
            sent += 300;
            acked = script.at(sent).highest() / MSS;
            script.ack(acked);
        }
        assert_eq!(script.counters().recoveries, recoveries);
        assert_eq!(script.counters().timeouts, 0);
        script.at(sent + 100).sack(acked, &[(acked + 1, acked + 2)]);
        script.next_wakeup_ms() - (sent + 100)
    };
    assert_eq!(room_after(0), 50);
    assert_eq!(room_after(15), 50);
    assert_eq!(room_after(16), 25);
}

#[test]
fn a_probe_that_was_not_needed_costs_nothing() {
    // RFC 8985, section 7.4.2, case 1: "ACK has a DSACK option matching
    // TLP.end_seq".
    for reported in [false, true] {
        let mut script = SenderScript::transfer(&rack(), 10 * MSS);
        script.at(100).ack(8).at(300);
        script.sends("0 1 2 3 4 5 6 7 8 9 r9");
        script.at(310).ack(9).cwnd(11.0);
        if reported {
            script.at(400).sack(9, &[(9, 10), (9, 10)]);
        }
        script.at(410).ack(10).cwnd(11.0).complete(true);
    }
}

#[test]
fn a_probe_that_repaired_a_loss_reduces_the_window() {
    // RFC 8985, section 7.4.2: "ACK's ack. number > TLP.end_seq", without a report.
    let ack = |segments| Segment {
        window: 10 * MSS as u32,
        ..ack_of(segments, &[])
    };
    let mut script = SenderScript::transfer(&rack(), 20 * MSS);
    script.at(100).receives(ack(1));
    script.sends("0 1 2 3 4 5 6 7 8 9 10");
    script.at(300).sends("r10");
    // A report that it was not needed may still come.
    script.at(400).receives(ack(11)).ssthresh(f64::INFINITY);
    script.sends("11 12 13 14 15 16 17 18 19");
    script.at(500).receives(ack(12)).ssthresh(4.5);
}
