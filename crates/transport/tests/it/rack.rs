//! Losses judged by time, and tail loss probes (RFC 8985).

use crate::common::{MSS, SenderScript, ack_of, params};
use redtail_core::Span;
use redtail_transport::tcp::recovery::RecoveryKind;
use redtail_transport::{Flags, Segment, TcpParams};

fn rack() -> TcpParams {
    params(RecoveryKind::RackTlp)
}

/// The last ten segments of a transfer, outstanding since 100 ms ago.
fn last_ten_out() -> SenderScript {
    let mut script = SenderScript::transfer(&rack(), 10 * MSS);
    script.sends("0 1 2 3 4 5 6 7 8 9").at(100);
    script
}

#[test]
fn a_hole_is_lost_a_round_trip_and_a_quarter_after_it_was_sent() {
    // RFC 8985, section 6.2, step 5: lost when RACK.xmit_ts + RACK.rtt + RACK.reo_wnd
    // has passed; step 4: reo_wnd is min_RTT / 4 at first.
    let mut script = last_ten_out();
    script.sack(0, &[(1, 2)]).sends("").timer(125);
    script.at(124).sends("");
    script.at(125).sends("r0");
}

#[test]
fn reordering_within_that_time_is_no_loss() {
    let mut script = last_ten_out();
    script.sack(0, &[(1, 2)]).sends("");
    script.at(110).ack(2).sends("");
    script.at(200).sends("");
    assert_eq!(script.counters().recoveries, 0);
}

#[test]
fn with_three_segments_selectively_acknowledged_there_is_no_waiting() {
    // RFC 8985, section 6.2, step 4: reo_wnd is zero when reordering was never seen
    // and "the number of segments SACKed >= DupThresh".
    let mut script = last_ten_out();
    script.sack(0, &[(1, 4)]).sends("r0");
}

#[test]
fn a_lost_retransmission_is_sent_again_without_a_timeout() {
    let mut script = SenderScript::bulk(&rack());
    script.sends("0 1 2 3 4 5 6 7 8 9").at(100);
    script.sack(0, &[(1, 8)]).sends("r0 10 11"); // cwnd 5
    // What was sent after the retransmission has arrived, it has not.
    script
        .at(201)
        .sack(0, &[(1, 8), (10, 11)])
        .sends("r0 r8 r9 12");
    assert_eq!(script.counters().timeouts, 0);
}

#[test]
fn the_last_segment_probes_after_two_round_trips() {
    // RFC 8985, section 7.2: PTO = 2 SRTT; section 7.3: "retransmit the last segment".
    let mut script = last_ten_out();
    script.ack(8).sends("").timer(300);
    script.at(299).sends("");
    script.at(300).sends("r9");
    // The answer tells that the one before is missing.
    script.at(400).sack(8, &[(9, 10)]).sends("r8");
    script.at(500).ack(10).complete(true);
    assert_eq!(script.counters().timeouts, 0);
}

#[test]
fn a_lone_segment_is_given_the_time_of_a_delayed_acknowledgement() {
    let mut script = SenderScript::transfer(&rack(), 10 * MSS);
    script.sends("0 1 2 3 4 5 6 7 8 9").at(100).ack(9).sends("");
    // RFC 8985, section 7.2: "PTO += TLP.max_ack_delay" of 200 ms.
    script.timer(500);
}

#[test]
fn there_is_one_probe_and_then_the_timeout() {
    let mut script = last_ten_out();
    script.ack(8).at(300).sends("r9");
    // The timer is set anew with the probe: the least timeout is 1 s here.
    script.at(1299).sends("");
    script.at(1300).sends("r8");
    assert_eq!(script.counters().timeouts, 1);
}

#[test]
fn a_probe_is_new_data_if_there_is_any() {
    // RFC 8985, section 7.3: "If an unsent segment exists and the receive window
    // allows, transmit the lowest-sequence unsent segment", whatever cwnd says.
    let mut script = SenderScript::bulk(&rack());
    script.sends("0 1 2 3 4 5 6 7 8 9").at(100).ack(1);
    script.sends("10 11").at(300).sends("12");
}

#[test]
fn a_timeout_leaves_in_flight_what_was_sent_within_the_last_round_trip() {
    // RFC 8985, section 6.3: upon a timeout lost are the first segment and those with
    // Segment.xmit_ts + RACK.rtt + RACK.reo_wnd passed; not "recently sent" ones.
    let mut script = SenderScript::bulk(&TcpParams {
        initial_rto: Span::from_ms(300),
        min_rto: Span::from_ms(300),
        ..rack()
    });
    script.sends("0 1 2 3 4 5 6 7 8 9").at(100);
    script.sack(0, &[(1, 8)]).sends("r0 10 11").timer(400); // cwnd 5
    script
        .at(201)
        .sack(0, &[(1, 8), (10, 11)])
        .sends("r0 r8 r9 12");
    script
        .at(302)
        .sack(0, &[(1, 11), (12, 13)])
        .sends("r0 r11 13 14 15");
    // The retransmission was lost twice. What left at 302 has 101 ms to be acknowledged.
    script.at(400).sends("r0").cwnd(5.0);
    assert_eq!(script.counters().timeouts, 1);
    script.at(404).sack(0, &[(1, 14)]).sends("16 17");
    script.at(405).sack(0, &[(1, 16)]).sends("18 19");
}

#[test]
fn the_round_trip_of_the_handshake_counts_as_the_least() {
    // RFC 8985, section 6.2, step 1: RACK.min_RTT is the least of "the RTT measurements obtained via [RFC6298]", of which
    // the first is that of the handshake (Linux, tcp_ack_update_rtt): 40 ms here, and 43 ms for the data after it.
    let mut script = SenderScript::bulk(&TcpParams {
        handshake: true,
        ..rack()
    });
    script.at(40).receives(Segment {
        flags: Flags::SYN.with(Flags::ACK),
        ..ack_of(0, &[])
    });
    script.sends("syn 0 1 2 3 4 5 6 7 8 9");
    script.at(83).ack(1).sends("10 11");
    // Segments 1 to 6 are lost. Those above 7 may still arrive.
    script.sack(1, &[(7, 8)]).sends("");
    script.at(93).sends("r1");
    // Step 2: the answer to a retransmission counts, as it took at least the least round trip. It tells that all that was
    // sent before is lost too: 8 to 11 no longer count in the window of five.
    script.at(135).ack(2).sends("r2 r3 r4 r5 r6");
}
