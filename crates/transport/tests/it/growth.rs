//! How the window opens, and what else bounds what is sent.

use crate::common::{MSS, SenderScript, ack_of, params};
use redtail_core::Bytes;
use redtail_transport::cc::slow_start::SlowStartKind;
use redtail_transport::tcp::recovery::RecoveryKind;
use redtail_transport::{Flags, Segment, TcpParams};

fn newreno(initial_window: u32) -> TcpParams {
    TcpParams {
        initial_window,
        ..params(RecoveryKind::Newreno)
    }
}

#[test]
fn the_initial_window_bounds_the_first_flight() {
    // RFC 6928, section 2: "an upper bound for the initial window".
    SenderScript::bulk(&newreno(1)).sends("0");
    SenderScript::bulk(&newreno(4)).sends("0 1 2 3");
    SenderScript::bulk(&newreno(10)).sends("0 1 2 3 4 5 6 7 8 9");
}

#[test]
fn slow_start_adds_a_segment_for_each_ack() {
    // RFC 5681, section 3.1: "a TCP increments cwnd by at most SMSS bytes for each
    // ACK received that cumulatively acknowledges new data".
    SenderScript::bulk(&newreno(2))
        .sends("0 1")
        .at(100)
        .ack(1)
        .cwnd(3.0)
        .sends("2 3")
        .ack(2)
        .cwnd(4.0)
        .sends("4 5");
}

#[test]
fn slow_start_adds_no_more_for_an_ack_of_two_segments() {
    // RFC 5681, section 3.1, equation 2: cwnd += min (N, SMSS).
    SenderScript::bulk(&newreno(2))
        .sends("0 1")
        .at(100)
        .ack(2)
        .cwnd(3.0)
        .sends("2 3 4");
}

#[test]
fn congestion_avoidance_adds_a_segment_per_round_trip() {
    // RFC 5681, section 3.1, equation 3: cwnd += SMSS*SMSS/cwnd for each ACK.
    let mut script = SenderScript::bulk(&newreno(10));
    script.at(100).acks(0, 9).ack(10); // a fast retransmit, repaired
    script.cwnd(5.0).ssthresh(5.0);
    script.ack(11).cwnd(5.2);
    script.ack(12).cwnd(5.2 + 1.0 / 5.2);
    // Not once per segment: an ACK of two counts once.
    script
        .ack(14)
        .cwnd(5.2 + 1.0 / 5.2 + 1.0 / (5.2 + 1.0 / 5.2));
}

#[test]
fn an_initial_threshold_ends_slow_start_before_any_loss() {
    // RFC 5681, section 3.1: slow start while cwnd < ssthresh.
    let params = TcpParams {
        initial_ssthresh: Some(4),
        ..newreno(2)
    };
    let mut script = SenderScript::bulk(&params);
    script.cwnd(2.0).ssthresh(4.0);
    script.at(100).ack(1).cwnd(3.0).ack(2).cwnd(4.0);
    script.ack(3).cwnd(4.25).ack(4).cwnd(4.25 + 1.0 / 4.25);
    // At most the initial window: no slow start at all.
    let params = TcpParams {
        initial_ssthresh: Some(2),
        ..newreno(2)
    };
    SenderScript::bulk(&params).at(100).ack(1).cwnd(2.5);
}

#[test]
fn the_receive_window_limits_what_is_outstanding() {
    // RFC 5681, section 2: "At any given time, a TCP MUST NOT send data with a
    // sequence number higher than the sum of the highest acknowledged sequence
    // number and the minimum of cwnd and rwnd."
    let params = TcpParams {
        receive_window: Bytes::new(3 * MSS + 999),
        ..newreno(10)
    };
    SenderScript::bulk(&params).sends("0 1 2");
    // What the peer advertises later holds from then on.
    let mut script = SenderScript::bulk(&newreno(4));
    script.sends("0 1 2 3").at(100);
    let mut ack = crate::common::ack_of(1, &[]);
    ack.window = 4 * MSS as u32;
    script.receives(ack).sends("4");
    ack.window = 3 * MSS as u32;
    ack.ack = 2 * MSS;
    script.receives(ack).sends("");
}

#[test]
fn a_window_that_is_not_used_does_not_grow() {
    // RFC 7661, section 4.3: the window grows only while it limits the sender.
    let params = TcpParams {
        receive_window: Bytes::new(3 * MSS),
        ..newreno(10)
    };
    let mut script = SenderScript::bulk(&params);
    script.at(100);
    let mut ack = crate::common::ack_of(1, &[]);
    ack.window = 3 * MSS as u32;
    script.receives(ack).cwnd(10.0);
}

#[test]
fn a_transfer_ends_with_a_short_segment_and_says_so_when_all_is_acknowledged() {
    let mut script = SenderScript::transfer(&newreno(2), 2 * MSS + 500);
    script.sends("0 1").at(100);
    script.ack(1).sends("2:500").complete(false);
    script.ack(2).sends("").complete(false);
    let mut last = crate::common::ack_of(2, &[]);
    last.ack += 500;
    script.receives(last).sends("").complete(true).timer(None);
    // Nothing comes of what arrives after the end.
    script.acks(2, 5).at(100_000).sends("");
    let counters = script.counters();
    assert_eq!((counters.data_segments, counters.timeouts), (3, 0));
}

#[test]
fn a_transfer_of_less_than_a_segment_is_one_short_segment() {
    SenderScript::transfer(&newreno(10), 1).sends("0:1");
}

#[test]
fn an_ack_of_data_never_sent_is_ignored() {
    // RFC 9293, section 3.10.7.4: SEG.ACK > SND.NXT is no acceptable ACK.
    SenderScript::bulk(&newreno(2))
        .sends("0 1")
        .ack(3)
        .sends("")
        .cwnd(2.0);
}

#[test]
fn hystart_leaves_slow_start_when_a_train_lasts_half_a_round_trip() {
    // Ha and Rhee 2011, section 3.2; Linux, tcp_cubic.c: acknowledgements within
    // 2 ms of each other, the last more than delay_min / 2 after the first.
    let run = |initial_window| {
        let params = TcpParams {
            slow_start: SlowStartKind::Hystart.into(),
            initial_window,
            ..params(RecoveryKind::Sack)
        };
        let mut script = SenderScript::bulk(&params);
        for i in 1..=u64::from(initial_window) {
            script.at(99 + i).ack(i);
        }
        script
    };
    // The first acknowledgement came after 100 ms, the 52nd after 151 ms.
    run(51).cwnd(102.0).ssthresh(f64::INFINITY);
    run(52).cwnd(103.0).ssthresh(103.0);
}

#[test]
fn an_acknowledgement_of_data_never_sent_changes_nothing() {
    // RFC 9293, section 3.10.7.4: "If the ACK acks something not yet sent (SEG.ACK >
    // SND.NXT), then send an ACK, drop the segment, and return." And the window is
    // not that of an old one: "SND.WL2 =< SEG.ACK".
    let params = TcpParams {
        ecn: true,
        ..params(RecoveryKind::RackTlp)
    };
    for strange in [50, 0] {
        let mut script = SenderScript::bulk(&params);
        script.at(100).ack(2).cwnd(11.0);
        script.sends("0e 1e 2e 3e 4e 5e 6e 7e 8e 9e 10e 11e 12e");
        let flags = Flags::ACK.with_if(strange == 50, Flags::ECE);
        script.receives(Segment {
            window: 0,
            flags,
            ..ack_of(strange, &[])
        });
        // The window is open for a probe with new data (RFC 8985, section 7.3).
        script.cwnd(11.0).at(300).sends("13e");
    }
}

#[test]
fn counting_bytes_data_reported_selectively_before_does_not_count_again() {
    // Linux 6.1, tcp_ack: the window grows by what an acknowledgement newly delivers, here
    // two segments of ten. RFC 5681, equation 2, adds one segment for either.
    for (byte_counting, grown) in [(true, 3.0), (false, 2.0)] {
        let mut script = SenderScript::bulk(&TcpParams {
            byte_counting,
            dup_thresh: 20, // no fast retransmit
            limited_transmit: false,
            ..params(RecoveryKind::Sack)
        });
        script.sends("0 1 2 3 4 5 6 7 8 9");
        script.at(100).sack(0, &[(2, 10)]).at(3000).cwnd(1.0);
        script.ack(10).cwnd(grown);
    }
}
