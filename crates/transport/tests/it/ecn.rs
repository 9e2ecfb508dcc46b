//! Explicit congestion notification between the endpoints (RFC 3168, section 6.1).

use crate::common::{ReceiverScript, SenderScript, ack_of, data, params};
use redtail_core::Ecn;
use redtail_transport::tcp::recovery::RecoveryKind;
use redtail_transport::{Flags, Segment, TcpParams};

fn with_ecn() -> TcpParams {
    TcpParams {
        ecn: true,
        ..params(RecoveryKind::Newreno)
    }
}

const FIRST_TEN: &str = "0e 1e 2e 3e 4e 5e 6e 7e 8e 9e";

fn ten_out() -> SenderScript {
    let mut script = SenderScript::bulk(&with_ecn());
    script.sends(FIRST_TEN).at(100);
    script
}

/// The SYN of a sender with these parameters, and what it sends after a SYN-ACK
/// with `flags` beside.
fn handshake(ecn: bool, flags: Flags) -> (Segment, SenderScript) {
    let params = TcpParams {
        ecn,
        handshake: true,
        ..with_ecn()
    };
    let mut script = SenderScript::bulk(&params);
    script.sends("syn").at(100).receives(Segment {
        flags: Flags::SYN.with(Flags::ACK).with(flags),
        ..ack_of(0, &[])
    });
    (script.wire[0].1, script)
}

#[test]
fn ecn_is_offered_in_the_syn_and_used_if_the_peer_agrees() {
    // RFC 3168, section 6.1.1: "an ECN-setup SYN packet" has ECE and CWR set, an
    // ECN-setup SYN-ACK ECE alone; SYNs are not ECN-capable themselves.
    let (syn, mut script) = handshake(true, Flags::ECE);
    assert!(syn.flags.contains(Flags::ECE.with(Flags::CWR)));
    assert_eq!(syn.ecn, Ecn::NotEct);
    script.sends(FIRST_TEN);
}

#[test]
fn a_peer_that_refuses_gets_no_ecn_capable_data() {
    let (_, mut script) = handshake(true, Flags::NONE);
    script.sends("0 1 2 3 4 5 6 7 8 9");
    script.ack_echo(1).cwnd(11.0);
}

#[test]
fn without_ecn_nothing_is_offered() {
    let (syn, mut script) = handshake(false, Flags::ECE);
    assert!(!syn.flags.contains(Flags::ECE));
    assert!(!syn.flags.contains(Flags::CWR));
    script.sends("0 1 2 3 4 5 6 7 8 9");
}

#[test]
fn the_receiver_agrees_only_if_offered_and_willing() {
    let offer = Flags::SYN.with(Flags::ECE).with(Flags::CWR);
    for (ecn, flags, reply) in [
        (true, offer, "syn 0 ece"),
        (true, Flags::SYN, "syn 0"),
        (false, offer, "syn 0"),
    ] {
        let params = TcpParams { ecn, ..with_ecn() };
        let syn = Segment {
            flags,
            ..Segment::default()
        };
        ReceiverScript::new(&params).receives(syn).sends(reply);
    }
}

#[test]
fn an_echo_halves_the_window_once_per_window_and_the_next_new_data_says_so() {
    // RFC 3168, section 6.1.2: "TCP should not react to congestion indications more
    // than once every window of data"; "the TCP sender sets the CWR flag in the
    // TCP header of the first new data packet sent after the window reduction".
    let mut script = ten_out();
    script.ack_echo(1).cwnd(5.0).ssthresh(5.0).sends("");
    for i in 2..6 {
        script.ack_echo(i).cwnd(5.0).sends("");
    }
    script.ack_echo(6).sends("10ec");
    script.ack_echo(7).sends("11e");
    for i in 8..=10 {
        script.ack_echo(i).cwnd(5.0);
    }
    // Data sent after the reduction is acknowledged: the next window.
    script.at(200).ack_echo(11).cwnd(2.5);
    assert_eq!(script.counters().ecn_reductions, 2);
    assert_eq!(script.counters().retransmissions, 0);
}

#[test]
fn an_acknowledgement_with_an_echo_does_not_grow_the_window() {
    // RFC 3168, section 6.1.2: "The sending TCP SHOULD NOT increase the congestion
    // window in response to the receipt of an ECN-Echo ACK packet".
    let mut script = ten_out();
    script.ack_echo(1).cwnd(5.0).ack_echo(2).cwnd(5.0);
}

#[test]
fn retransmissions_are_not_ecn_capable_and_carry_no_cwr() {
    // RFC 3168, section 6.1.5: no ECT codepoint "for retransmitted data packets"; section
    // 6.1.2: "the CWR bit in the TCP header SHOULD NOT be set on retransmitted packets".
    let mut script = ten_out();
    script.acks(0, 3).sends("r0");
    // The loss reduced the window too: the first new data carries CWR.
    script.acks(0, 3).sends("10ec").ack(0).sends("11e");
    let mut timed_out = ten_out();
    timed_out.at(1000).sends("r0");
    // As ns-2 has it, on request.
    let params = TcpParams {
        ecn_retransmissions: true,
        ..with_ecn()
    };
    let mut script = SenderScript::bulk(&params);
    script.sends(FIRST_TEN).acks(0, 3).sends("r0ec");
}

#[test]
fn an_echo_in_fast_recovery_does_not_reduce_again() {
    let mut script = ten_out();
    script.acks(0, 3).cwnd(5.0).ack_echo(0).cwnd(5.0);
    script.ack_echo(2).cwnd(5.0);
    assert_eq!(script.counters().ecn_reductions, 0);
}

#[test]
fn a_loss_in_a_window_already_reduced_does_not_reduce_again() {
    // RFC 3168, section 6.1.2: no reaction "more than once every window of data".
    let mut script = ten_out();
    script.ack_echo(1).cwnd(5.0);
    script.acks(1, 3).sends("r1").cwnd(5.0).ssthresh(5.0);
}

fn marked(index: u64) -> Segment {
    Segment {
        ecn: Ecn::Ce,
        ..data(index)
    }
}

fn with_cwr(index: u64) -> Segment {
    let segment = data(index);
    Segment {
        flags: segment.flags.with(Flags::CWR),
        ..segment
    }
}

#[test]
fn the_receiver_echoes_a_mark_until_the_sender_says_it_reduced() {
    // RFC 3168, section 6.1.3: the receiver "continues to set the ECN-Echo flag in all the
    // ACK packets it sends [...] until it receives a CWR packet".
    let mut script = ReceiverScript::new(&with_ecn());
    script.data(0).sends("1");
    script.receives(marked(1)).sends("2 ece");
    script.data(2).sends("3 ece").data(3).sends("4 ece");
    script.receives(with_cwr(4)).sends("5");
    // A segment that says CWR and is marked itself begins anew.
    let both = Segment {
        ecn: Ecn::Ce,
        ..with_cwr(5)
    };
    script.receives(both).sends("6 ece");
}

#[test]
fn a_receiver_without_ecn_echoes_nothing() {
    let params = TcpParams {
        ecn: false,
        ..with_ecn()
    };
    let mut script = ReceiverScript::new(&params);
    script.receives(marked(0)).sends("1");
}

#[test]
fn a_mark_on_either_of_two_segments_is_echoed_on_their_acknowledgement() {
    // RFC 3168, section 6.1.3: the ACK has ECN-Echo set if any of the data packets
    // it acknowledges had CE set.
    let params = TcpParams {
        delayed_ack: true,
        ..with_ecn()
    };
    let mut script = ReceiverScript::new(&params);
    script.receives(marked(0)).sends("").data(1).sends("2 ece");
    let mut script = ReceiverScript::new(&params);
    script.data(0).receives(marked(1)).sends("2 ece");
}
