//! Spurious timeouts: F-RTO (RFC 5682), and what is restored after one.

use crate::common::{MSS, SenderScript, ack_of, params};
use redtail_core::Span;
use redtail_transport::cc::Growth;
use redtail_transport::tcp::recovery::RecoveryKind;
use redtail_transport::{Flags, Segment, TcpParams};

fn frto(recovery: RecoveryKind) -> TcpParams {
    TcpParams {
        frto: true,
        ..params(recovery)
    }
}

const BOTH: [RecoveryKind; 2] = [RecoveryKind::Newreno, RecoveryKind::Sack];

#[test]
fn a_delay_spike_costs_one_retransmission_and_no_window() {
    // RFC 5682, section 2.1, step 2b: "transmit up to two new (previously unsent)
    // segments"; step 3b: "declare the timeout spurious". Section 3.1 agrees.
    for recovery in BOTH {
        let mut script = SenderScript::bulk(&frto(recovery));
        script.sends("0 1 2 3 4 5 6 7 8 9");
        script.at(1000).sends("r0").cwnd(1.0).ssthresh(5.0);
        script.at(1100).ack(1).sends("10 11").cwnd(2.0);
        script.at(1110).ack(2).cwnd(10.0).ssthresh(f64::INFINITY);
        script.at(1120).ack(3).sends("12 13").cwnd(11.0);
        // The retransmission arrives too, and is answered by a duplicate.
        script.at(1130).ack(10).ack(10);
        assert_eq!(script.counters().retransmissions, 1);
        assert_eq!(script.counters().spurious_timeouts, 1);
        assert_eq!(script.counters().recoveries, 0);
    }
}

#[test]
fn a_genuine_timeout_goes_on_in_slow_start() {
    // RFC 5682, section 2.1, step 3a: "If the acknowledgment is a duplicate ACK, set
    // the congestion window to no more than 3 * MSS, and continue with the slow
    // start algorithm retransmitting unacknowledged segments".
    let mut script = SenderScript::bulk(&frto(RecoveryKind::Newreno));
    script.sends("0 1 2 3 4 5 6 7 8 9").at(1000).sends("r0");
    script.at(1100).ack(1).sends("10 11").cwnd(2.0);
    // Everything was lost: the new data makes duplicates.
    script.at(1200).ack(1).cwnd(3.0).ssthresh(5.0).sends("r1");
    script.ack(1).sends("");
    script.at(1300).ack(2).cwnd(4.0).sends("r2 r3");
    assert_eq!(script.counters().spurious_timeouts, 0);
    assert_eq!(script.counters().recoveries, 0);
}

#[test]
fn with_sack_new_data_reported_above_the_hole_makes_the_timeout_genuine() {
    // RFC 5682, section 3.1, step 3a: the SACK information "covers more than
    // RecoveryPoint".
    let mut script = SenderScript::bulk(&frto(RecoveryKind::Sack));
    script.sends("0 1 2 3 4 5 6 7 8 9").at(1000).sends("r0");
    script.at(1100).ack(1).sends("10 11").cwnd(2.0);
    script
        .at(1200)
        .sack(1, &[(10, 11)])
        .cwnd(3.0)
        .sends("r1 r2");
    script.sack(1, &[(10, 12)]).sends("r3");
    assert_eq!(script.counters().spurious_timeouts, 0);
}

#[test]
fn with_sack_old_data_reported_above_a_hole_makes_the_timeout_spurious() {
    // RFC 5682, section 3.1, step 3b: it "acknowledges data that was not
    // acknowledged earlier (either with cumulative acknowledgment or using SACK
    // information)". Segment 1 was lost, the others were late.
    let mut script = SenderScript::bulk(&frto(RecoveryKind::Sack));
    script.sends("0 1 2 3 4 5 6 7 8 9").at(1000).sends("r0");
    script.at(1100).ack(1).sends("10 11");
    script.at(1110).sack(1, &[(2, 3)]).cwnd(10.0);
    assert_eq!(script.counters().spurious_timeouts, 1);
    // The hole is repaired by fast recovery, as without a timeout.
    script.sack(1, &[(2, 4)]).sends("");
    script.sack(1, &[(2, 5)]).sends("r1");
    assert_eq!(script.counters().recoveries, 1);
}

#[test]
fn with_sack_duplicates_before_the_first_new_acknowledgement_are_waited_out() {
    // RFC 5682, section 3.1, step 2: "If duplicate ACKs arrive before the cumulative
    // acknowledgment for retransmitted data, [...] Stay in step 2". The delay spike
    // left a duplicate behind; the basic algorithm takes it for a loss.
    for recovery in BOTH {
        let mut script = SenderScript::bulk(&frto(recovery));
        script.at(1000).ack(0);
        script.at(1100).ack(1).at(1110).ack(2);
        let spurious = u64::from(recovery == RecoveryKind::Sack);
        assert_eq!(script.counters().spurious_timeouts, spurious);
    }
}

#[test]
fn a_second_acknowledgement_that_says_nothing_new_ends_the_doubt() {
    // RFC 5682, section 3.1, step 3a: "Take this branch also when the acknowledgment
    // is a duplicate ACK and it does not acknowledge any new, previously
    // unacknowledged data below 'RecoveryPoint' in the SACK information."
    let mut script = SenderScript::bulk(&frto(RecoveryKind::Sack));
    script.at(1000).at(1100).ack(1).ack(1).cwnd(3.0).ack(2);
    assert_eq!(script.counters().spurious_timeouts, 0);
}

#[test]
fn an_acknowledgement_of_everything_is_the_retransmissions() {
    // RFC 5682, section 2.1, step 2a: "the Acknowledgment field covers 'recover'".
    // The last segments had arrived, the first was lost.
    for recovery in BOTH {
        let mut script = SenderScript::bulk(&frto(recovery));
        script.sends("0 1 2 3 4 5 6 7 8 9").at(1000).sends("r0");
        script.at(1100).ack(10).cwnd(2.0).sends("10 11").ack(11);
        assert_eq!(script.counters().spurious_timeouts, 0);
        script.ssthresh(5.0);
    }
}

#[test]
fn data_that_timed_out_before_is_not_doubted_again() {
    // RFC 5682, section 2.1, step 1: "If the TCP sender is already in RTO recovery
    // AND 'recover' is larger than or equal to SND.UNA [...], do not enter step 2".
    for recovery in BOTH {
        let mut script = SenderScript::bulk(&frto(recovery));
        script.at(1000).at(3000).sends("0 1 2 3 4 5 6 7 8 9 r0 r0");
        script.at(3100).ack(1).sends("r1 r2").at(3110).ack(2);
        assert_eq!(script.counters().spurious_timeouts, 0);
        script.ssthresh(5.0);
    }
}

#[test]
fn a_timeout_in_fast_recovery_is_not_doubted() {
    // The same condition: the recovery point of the episode is not acknowledged.
    let mut script = SenderScript::bulk(&frto(RecoveryKind::Newreno));
    script.at(100).acks(0, 3).at(1100);
    script.sends("0 1 2 3 4 5 6 7 8 9 r0 r0");
    script.at(1200).ack(1).sends("r1 r2").ack(2);
    assert_eq!(script.counters().spurious_timeouts, 0);
}

#[test]
fn a_receiver_that_leaves_no_room_for_new_data_is_sent_the_old() {
    // RFC 5682, section 2.1, step 2b: "If [...] the advertised window prohibits new
    // transmissions, the recommended action is to skip step 3 of this algorithm and
    // continue with slow start retransmissions".
    for recovery in BOTH {
        let mut script = SenderScript::bulk(&frto(recovery));
        script.sends("0 1 2 3 4 5 6 7 8 9").at(1000).sends("r0");
        script.at(1100).receives(Segment {
            window: 9 * MSS as u32,
            ..ack_of(1, &[])
        });
        script.sends("r1 r2").at(1110).ack(2);
        assert_eq!(script.counters().spurious_timeouts, 0);
    }
}

#[test]
fn a_transfer_without_new_data_is_repaired_in_slow_start() {
    // The same: "does not have any new data to send".
    let mut script = SenderScript::transfer(&frto(RecoveryKind::Sack), 10 * MSS);
    script.sends("0 1 2 3 4 5 6 7 8 9").at(1000).sends("r0");
    script.at(1100).ack(1).sends("r1 r2");
}

#[test]
fn one_new_segment_is_enough() {
    // RFC 5682, section 2.1, step 2b: "If the TCP sender does not have enough unsent
    // data, it can send only one segment."
    let mut script = SenderScript::transfer(&frto(RecoveryKind::Newreno), 11 * MSS);
    script.sends("0 1 2 3 4 5 6 7 8 9").at(1000).sends("r0");
    script.at(1100).ack(1).sends("10");
    script.at(1110).ack(2).sends("").cwnd(10.0);
    assert_eq!(script.counters().spurious_timeouts, 1);
}

#[test]
fn a_mark_on_the_telling_acknowledgement_keeps_the_window_reduced() {
    // RFC 4015, section 3.1, step 9: with the ECN-Echo flag set, no reversion of the
    // congestion control state. Nothing is sent again all the same.
    let params = TcpParams {
        ecn: true,
        ..frto(RecoveryKind::Newreno)
    };
    let mut script = SenderScript::bulk(&params);
    script.at(1000).at(1100).ack(1);
    script.sends("0e 1e 2e 3e 4e 5e 6e 7e 8e 9e r0 10ec 11e");
    script.at(1110).receives(Segment {
        flags: Flags::ACK.with(Flags::ECE),
        ..ack_of(2, &[])
    });
    script.cwnd(2.0).ssthresh(5.0).sends("");
    assert_eq!(script.counters().spurious_timeouts, 1);
}

#[test]
fn cubic_goes_on_along_its_curve() {
    // RFC 9438, section 4.9.2, lists what is restored with the window (W_max, K, the epoch);
    // here for a timeout too, which section 4.9.1 leaves to RFC 4015.
    let run = |spike: bool| {
        let params = TcpParams {
            growth: Growth::Cubic.into(),
            initial_window: 20,
            min_rto: Span::from_s(if spike { 1 } else { 10 }),
            ..frto(RecoveryKind::Sack)
        };
        let mut script = SenderScript::bulk(&params);
        script.at(100);
        for i in 2..=20 {
            script.sack(0, &[(1, i)]); // a loss: W_max is 20
        }
        // Congestion avoidance from 14 segments, a window at a time.
        script.at(200).ack(20);
        let mut acked = 20;
        for at in [300, 400, 500] {
            script.at(at);
            for _ in 0..14 {
                acked += 1;
                script.ack(acked);
            }
        }
        script.at(1600).ack(acked + 1).ack(acked + 2).at(2000);
        assert_eq!(script.counters().spurious_timeouts, u64::from(spike));
        acked += 2;
        while acked < 80 {
            acked += 1;
            script.ack(acked);
        }
        script.window()
    };
    let (steady, spiked) = (run(false), run(true));

    assert!((steady - spiked).abs() < 0.5, "{steady} and {spiked}");
}

#[test]
fn frto_is_off_unless_asked_for() {
    let mut script = SenderScript::bulk(&params(RecoveryKind::Sack));
    script.sends("0 1 2 3 4 5 6 7 8 9").at(1000).sends("r0");
    script.at(1100).ack(1).sends("r1 r2").ack(2).cwnd(3.0);
}

#[test]
fn a_loss_after_a_spurious_timeout_reduces_with_ecn_too() {
    // RFC 3168, section 6.1.2, spares a window that was reduced already; one whose
    // reduction was taken back (RFC 5682, step 3b) was not.
    let mut script = SenderScript::bulk(&TcpParams {
        ecn: true,
        ..frto(RecoveryKind::Sack)
    });
    script.at(1000).at(1100).ack(1).at(1110).ack(2).cwnd(10.0);
    assert_eq!(script.counters().spurious_timeouts, 1);
    script
        .sack(2, &[(3, 4)])
        .sack(2, &[(3, 5)])
        .sack(2, &[(3, 6)]);
    assert_eq!(script.counters().recoveries, 1);
    script.cwnd(5.0);
}

#[test]
fn a_mark_after_a_spurious_timeout_reduces() {
    let mut script = SenderScript::bulk(&TcpParams {
        ecn: true,
        ..frto(RecoveryKind::Sack)
    });
    script.at(1000).at(1100).ack(1).at(1110).ack(2).cwnd(10.0);
    script.ack_echo(3).cwnd(5.0);
}
