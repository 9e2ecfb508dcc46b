//! Responses to marks beyond RFC 3168: DCTCP (RFC 8257), AccECN (RFC 9768), Prague,
//! ABE (RFC 8511), and ECN on the SYN-ACK (RFC 5562).

use crate::common::{ReceiverScript, SenderScript, ack_of, data, params};
use redtail_core::{Ecn, Span};
use redtail_transport::cc::Growth;
use redtail_transport::segment::{ByteCounter, EcnBytes};
use redtail_transport::tcp::ecn::{AlphaStart, EcnCodepoint, EcnFeedback, EcnReduction};
use redtail_transport::tcp::recovery::RecoveryKind;
use redtail_transport::{Flags, Preset, Segment, TcpParams};

fn dctcp() -> TcpParams {
    TcpParams {
        ecn: true,
        ecn_feedback: EcnFeedback::Dctcp,
        ecn_reduction: EcnReduction::Dctcp,
        ..params(RecoveryKind::Sack)
    }
}

fn accecn() -> TcpParams {
    TcpParams {
        ecn_feedback: EcnFeedback::Accecn,
        ..dctcp()
    }
}

fn prague() -> TcpParams {
    TcpParams {
        growth: Growth::Prague.into(),
        ecn_reduction: EcnReduction::Prague,
        ecn_codepoint: EcnCodepoint::Ect1,
        ..accecn()
    }
}

/// An acknowledgement of AccECN that has counted this many packets and bytes as marked.
fn counted(segments: u64, packets: u8, ce: u32) -> Segment {
    let ack = ack_of(segments, &[]);
    Segment {
        flags: ack.flags.with(Flags::from_ace(5 + packets)),
        ecn_bytes: EcnBytes {
            ce: ByteCounter::from(ce),
            ..EcnBytes::default()
        },
        ..ack
    }
}

fn marked(index: u64) -> Segment {
    Segment {
        ecn: Ecn::Ce,
        ..data(index)
    }
}

fn unmarked(index: u64) -> Segment {
    Segment {
        ecn: Ecn::Ect0,
        ..data(index)
    }
}

// DCTCP, the sender.

#[test]
fn the_first_mark_halves_the_window_since_alpha_starts_at_one() {
    // RFC 8257, section 3.3: alpha starts at 1, so that the first reaction is a
    // conservative one. The mark is one byte in ten, and the round it is seen in
    // has not ended.
    let mut script = SenderScript::bulk(&dctcp());
    script.at(100).ack_echo(1).cwnd(5.0).ssthresh(5.0);
}

#[test]
fn alpha_forgets_a_sixteenth_in_every_round_without_marks() {
    // RFC 8257, section 3.3, steps 5 to 9: alpha = (1 - g) alpha + g M, once for
    // each window of data; cwnd = cwnd (1 - alpha / 2).
    let mut script = SenderScript::bulk(&dctcp());
    // The peer's window makes every round ten segments.
    let ack = |segments| Segment {
        window: 10_000,
        ..ack_of(segments, &[])
    };
    let mut alpha = 1.0;
    let mut acked = 0;
    for round in 0..20 {
        script.at(100 * (round + 1));
        for _ in 0..10 {
            acked += 1;
            script.receives(ack(acked));
        }
        // The first round ends with its first acknowledgement, any other with the
        // first of data sent after the one before had ended.
        alpha *= 15.0 / 16.0;
    }
    let before = script.window();
    script.at(2100).ack_echo(acked + 1);
    // That acknowledgement also ends a round of ten, none of which were marked
    // before it: M = 1 / 10.
    let alpha = alpha * 15.0 / 16.0 + 0.1 / 16.0;
    script.cwnd(before * (1.0 - alpha / 2.0));
}

#[test]
fn marks_reduce_once_per_window_however_many_there_are() {
    // RFC 8257, section 3.3: "at most once per window of data".
    let mut script = SenderScript::bulk(&dctcp());
    script.at(100).ack_echo(1).cwnd(5.0);
    for acked in 2..=10 {
        script.ack_echo(acked).cwnd(5.0);
    }
    assert_eq!(script.counters().ecn_reductions, 1);
    // Everything was marked, so alpha is still 1.
    script.at(200).ack_echo(11).cwnd(2.5);
}

#[test]
fn a_loss_halves_the_window_although_marks_have_just_reduced_it() {
    // RFC 8257, section 3.5: "A DCTCP sender MUST react to loss episodes in the
    // same way as conventional TCP".
    let mut script = SenderScript::bulk(&dctcp());
    script.at(100).ack_echo(1).cwnd(5.0);
    script.sack(1, &[(2, 5)]).cwnd(2.5);
}

// DCTCP, the receiver.

#[test]
fn a_change_of_marking_acknowledges_at_once_what_came_before_it() {
    // RFC 8257, section 3.2: "If the CE codepoint is set and DCTCP.CE is false,
    // set DCTCP.CE to true and send an immediate ACK" for what went before, with
    // the ECE of then.
    let params = TcpParams {
        delayed_ack: true,
        ..dctcp()
    };
    let mut script = ReceiverScript::new(&params);
    script.receives(unmarked(0)).sends("");
    script.receives(marked(1)).sends("1");
    script.receives(marked(2)).sends("3 ece");
    script.receives(marked(3)).sends("");
    script.receives(unmarked(4)).sends("4 ece");
    script.receives(unmarked(5)).sends("6");
}

#[test]
fn with_nothing_held_back_a_change_of_marking_needs_no_acknowledgement_of_its_own() {
    let mut script = ReceiverScript::new(&dctcp());
    script.receives(unmarked(0)).sends("1");
    script.receives(marked(1)).sends("2 ece");
    script.receives(unmarked(2)).sends("3");
}

// AccECN.

fn open(params: &TcpParams, flags: Flags) -> SenderScript {
    let params = TcpParams {
        handshake: true,
        ..params.clone()
    };
    let mut script = SenderScript::bulk(&params);
    script.sends("syn").at(100).receives(Segment {
        flags: Flags::SYN.with(Flags::ACK).with(flags),
        ..ack_of(0, &[])
    });
    script
}

#[test]
fn accecn_is_asked_for_with_all_three_flags() {
    // RFC 9768, section 3.1.1: "(AE,CWR,ECE) = (1,1,1)".
    let script = open(&accecn(), Flags::NONE);
    assert_eq!(script.wire[0].1.flags.ace(), 0b111);
    assert_eq!(script.wire[0].1.ecn, Ecn::NotEct);
}

#[test]
fn the_syn_ack_says_how_the_syn_arrived() {
    // RFC 9768, section 3.1.1, table 2.
    for (arrived, ace) in [
        (Ecn::NotEct, 0b010),
        (Ecn::Ect1, 0b011),
        (Ecn::Ect0, 0b100),
        (Ecn::Ce, 0b110),
    ] {
        let mut script = ReceiverScript::new(&accecn());
        script.receives(Segment {
            flags: Flags::SYN.with(Flags::from_ace(0b111)),
            ecn: arrived,
            ..Segment::default()
        });
        assert_eq!(script.wire[0].1.flags.ace(), ace, "{arrived:?}");
    }
}

#[test]
fn a_peer_of_rfc_3168_is_answered_by_its_rules() {
    // RFC 9768, section 3.1.2: a SYN-ACK with ECE alone comes from such a server.
    let mut script = open(&accecn(), Flags::ECE);
    script.sends("0e 1e 2e 3e 4e 5e 6e 7e 8e 9e");
    script.at(200).ack_echo(1).cwnd(5.0).sends("");
    script.ack_echo(6).cwnd(5.0).sends("10ec");
}

#[test]
fn a_client_of_rfc_3168_gets_an_echo_from_an_accecn_server() {
    let mut script = ReceiverScript::new(&accecn());
    let offer = Flags::SYN.with(Flags::ECE).with(Flags::CWR);
    script.receives(Segment {
        flags: offer,
        ..Segment::default()
    });
    script.sends("syn 0 ece");
    script
        .receives(marked(0))
        .receives(unmarked(1))
        .sends("1 ece, 2 ece");
}

#[test]
fn reserved_combinations_of_the_handshake_agree_to_accecn() {
    // RFC 9768, section 3.1.3: a server negotiates AccECN for any SYN but (0,0,0), (0,1,1)
    // and (1,1,1) as for the last; a client takes a SYN-ACK with (1,0,1) as one that agrees.
    for ace in [0b001, 0b010, 0b100, 0b101, 0b110, 0b111] {
        let mut script = ReceiverScript::new(&accecn());
        script.receives(Segment {
            flags: Flags::SYN.with(Flags::from_ace(ace)),
            ecn: Ecn::Ect0,
            ..Segment::default()
        });
        assert_eq!(script.wire[0].1.flags.ace(), 0b100, "{ace:03b}");
    }
    let script = open(&accecn(), Flags::from_ace(0b101));
    for (_, segment) in &script.wire[1..] {
        assert_eq!((segment.ecn, segment.flags.ace()), (Ecn::Ect0, 5));
    }
}

#[test]
fn a_server_without_ecn_gets_no_ecn_capable_data() {
    open(&accecn(), Flags::NONE).sends("0 1 2 3 4 5 6 7 8 9");
}

#[test]
fn the_receiver_counts_marked_packets_modulo_eight_and_bytes() {
    // RFC 9768, section 3.2.1: the packet counter starts at 5; section 3.2.2: the
    // ACE field is its three low bits.
    let mut script = ReceiverScript::new(&accecn());
    for index in 0..10 {
        script.receives(marked(index));
        let (_, ack) = script.wire.last().expect("every segment is acknowledged");
        assert_eq!(ack.flags.ace(), ((5 + index + 1) & 7) as u8);
        assert_eq!(ack.ecn_bytes.ce.get(), 1000 * (index as u32 + 1));
        assert_eq!(ack.ecn_bytes.ect.get(), 0);
    }
    script.receives(unmarked(10));
    let (_, ack) = script.wire.last().expect("every segment is acknowledged");
    assert_eq!(ack.ecn_bytes.ect.get(), 1000);
}

#[test]
fn the_first_mark_of_a_run_and_every_second_are_acknowledged_at_once() {
    // RFC 9768, section 3.2.2.5.1: "whenever a data packet marked CE arrives after
    // the previous packet was not CE", and with n = 2 marks.
    let params = TcpParams {
        delayed_ack: true,
        ..accecn()
    };
    let mut script = ReceiverScript::new(&params);
    let mut sent = |segment| {
        let before = script.wire.len();
        script.receives(segment);
        script.wire.len() - before
    };
    assert_eq!(sent(unmarked(0)), 0);
    assert_eq!(sent(marked(1)), 1);
    assert_eq!(sent(marked(2)), 0);
    assert_eq!(sent(marked(3)), 1);
    assert_eq!(sent(unmarked(4)), 0);
    assert_eq!(sent(marked(5)), 1);
}

#[test]
fn what_the_counters_grew_by_is_the_share_that_is_marked() {
    // Two of ten in every round: alpha falls from 1 towards 0.2.
    let mut script = SenderScript::bulk(&accecn());
    let (mut acked, mut packets) = (0u64, 0u64);
    for round in 0..200 {
        script.at(100 * (round + 1));
        for i in 0..10 {
            acked += 1;
            packets += u64::from(i == 3 || i == 4);
            script.receives(counted(acked, (packets % 8) as u8, 1000 * packets as u32));
        }
    }
    let alpha = script.alpha().expect("it keeps an estimate");
    // What is left of the start: (15/16)^n, n the rounds that there were; windows
    // of at least two segments make them at most 1000 and at least 200.
    assert!((alpha - 0.2).abs() < 0.05, "{alpha}");
}

#[test]
fn counters_of_an_overtaken_acknowledgement_are_not_taken_for_marks() {
    // RFC 9768, section 3.2.2.5: an older acknowledgement has older counters.
    let mut script = SenderScript::bulk(&accecn());
    script.at(100).receives(counted(5, 1, 1000));
    // The first acknowledgement ends a round: alpha = 15/16 + (1/5) / 16.
    script.cwnd(10.0 * (1.0 - 0.95 / 2.0));
    script.receives(counted(4, 0, 0));
    script.at(200).receives(counted(9, 1, 1000));
    script.at(300).receives(counted(11, 1, 1000));
    assert_eq!(script.next_byte(), 11 + script.window() as u64);
    assert_eq!(script.counters().ecn_reductions, 1);
}

#[test]
fn a_reduction_as_for_a_loss_can_go_with_accecn() {
    let params = TcpParams {
        ecn_reduction: EcnReduction::Loss,
        ..accecn()
    };
    let mut script = SenderScript::bulk(&params);
    script.at(100).receives(counted(1, 1, 1000)).cwnd(5.0);
    script.receives(counted(2, 2, 2000)).cwnd(5.0);
    script.at(200).receives(counted(9, 2, 2000));
    script.at(300).receives(counted(11, 3, 3000)).cwnd(2.5);
}

// Prague.

#[test]
fn prague_sends_ect1() {
    SenderScript::bulk(&prague()).sends("0l 1l 2l 3l 4l 5l 6l 7l 8l 9l");
}

/// The same from the first round on as if the round trip were 25 ms.
fn independent() -> TcpParams {
    TcpParams {
        rtt_transition: 0,
        ..prague()
    }
}

#[test]
fn prague_grows_with_what_is_unmarked_also_while_it_is_marked() {
    // Section 2.4.3 of the draft: acknowledged less marked.
    let mut script = SenderScript::bulk(&prague());
    script.at(100).receives(counted(1, 1, 1000)).cwnd(5.0);
    // Five acknowledged, one of them marked, with a round trip of 100 ms.
    script.receives(counted(6, 2, 2000)).cwnd(5.0 + 4.0 / 5.0);
}

#[test]
fn below_25_ms_prague_grows_as_if_the_round_trip_were_25_ms() {
    // Section 2.4.4: by (RTT / 25 ms)^2 of a segment each round trip.
    let mut script = SenderScript::bulk(&independent());
    script.at(5).receives(counted(1, 1, 1000)).cwnd(5.0);
    let scale = (5.0f64 / 25.0).powi(2);
    script
        .receives(counted(6, 1, 1000))
        .cwnd(5.0 + scale * 5.0 / 5.0);
}

#[test]
fn below_25_ms_prague_reduces_at_most_once_in_25_ms() {
    let gaps = gaps_between_reductions(&independent(), 40);
    assert!(gaps.len() >= 5, "{gaps:?}");
    assert!(gaps.iter().all(|&gap| gap >= 25), "{gaps:?}");
}

/// Milliseconds between reductions when everything is marked and `rounds` windows of two
/// segments are acknowledged 5 ms after another.
fn gaps_between_reductions(params: &TcpParams, rounds: u64) -> Vec<u64> {
    let mut script = SenderScript::bulk(params);
    let (mut acked, mut packets) = (0u64, 0u64);
    let mut at = Vec::new();
    for i in 1..=rounds {
        let before = script.counters().ecn_reductions;
        acked += 2;
        packets += 2;
        script.at(5 * i);
        script.receives(counted(acked, (packets % 8) as u8, 1000 * packets as u32));
        if script.counters().ecn_reductions > before {
            at.push(5 * i);
        }
    }
    at.windows(2).map(|pair| pair[1] - pair[0]).collect()
}

#[test]
fn prague_is_independent_of_the_round_trip_only_after_a_number_of_rounds() {
    // tcp_prague.c, prague_is_rtt_indep: not before prague_rtt_transition rounds outside
    // slow start. Until then every round of 5 ms reduces.
    let params = TcpParams {
        rtt_transition: 20,
        ..prague()
    };
    let gaps = gaps_between_reductions(&params, 60);
    // The first windows are larger than two segments, so that a round takes longer.
    let early: Vec<_> = gaps.iter().skip_while(|&&gap| gap > 5).collect();
    let late = early.iter().position(|&&gap| gap > 5).expect("a change");
    assert!((15..=20).contains(&late), "{gaps:?}");
    assert!(early[late..].iter().all(|&&gap| gap >= 25), "{gaps:?}");
    assert!(early.len() >= late + 3, "{gaps:?}");
    // Nor is growth: a whole segment a round trip.
    let mut script = SenderScript::bulk(&params);
    script.at(5).receives(counted(1, 1, 1000)).cwnd(5.0);
    script.receives(counted(6, 1, 1000)).cwnd(6.0);
}

#[test]
fn prague_grows_also_where_others_spread_a_reduction_over_a_round_trip() {
    // tcp_prague.c, point 4 of its head: the window is updated with every acknowledgement,
    // "regardless of the congestion status". Version 0.6 takes the reduction in steps of a
    // segment, the draft (section 2.4.2) at once.
    let params = TcpParams {
        prr: true,
        ..prague()
    };
    let mut script = SenderScript::bulk(&params);
    script.at(100).receives(counted(1, 1, 1000)).cwnd(5.0);
    script.receives(counted(6, 1, 1000)).cwnd(6.0);
    // DCTCP does not (Linux, tcp_cong_control: in CWR the window is reduced and no more).
    let params = TcpParams {
        prr: true,
        ..dctcp()
    };
    let mut script = SenderScript::bulk(&params);
    script.at(100).ack_echo(1).cwnd(5.0).ack(6).cwnd(5.0);
}

/// What the first mark and another leave of the window, with ten round trips of ten
/// segments without marks before each, and alpha before the second.
fn first_marks(params: &TcpParams) -> (f64, f64, f64) {
    let mut script = SenderScript::bulk(params);
    let (mut at, mut acked) = (0, 0);
    let mut left = |packets: u8| {
        for _ in 0..10 {
            at += 100;
            script.at(at);
            for _ in 0..10 {
                acked += 1;
                script.receives(Segment {
                    window: 10_000,
                    ..counted(acked, packets, 1000 * u32::from(packets))
                });
            }
        }
        at += 100;
        acked += 1;
        let (window, alpha) = (script.window(), script.alpha().expect("an estimate"));
        let bytes = 1000 * (u32::from(packets) + 1);
        script.at(at).receives(counted(acked, packets + 1, bytes));
        (script.window() / window, alpha)
    };
    let (first, _) = left(0);
    let (second, alpha) = left(1);
    (first, second, alpha)
}

#[test]
fn the_first_mark_halves_pragues_window_however_long_it_took_to_come() {
    // tcp_prague.c 0.6, prague_update_alpha: "Do not update alpha before we have proof that
    // there's an AQM on the path"; 0.7, prague_update_cwnd: half the window, alpha is 0.
    let marks = |alpha_start| {
        first_marks(&TcpParams {
            alpha_start,
            ..prague()
        })
    };
    let (first, second, alpha) = marks(AlphaStart::Held);
    assert_eq!(first, 0.5);
    // It decays from then on, in windows of five segments for some 10 to 20 rounds.
    assert!((0.25..0.55).contains(&alpha), "{alpha}");
    assert!((second - (1.0 - alpha / 2.0)).abs() < 1e-9, "{second}");
    let (first, second, alpha) = marks(AlphaStart::Zero);
    assert_eq!(first, 0.5);
    assert!(alpha < 0.05 && second > 0.97, "{alpha} {second}");
    // RFC 8257: ten rounds have passed.
    let (first, ..) = marks(AlphaStart::Decaying);
    let expected = 1.0 - (15.0f64 / 16.0).powi(10) / 2.0;
    assert!((first - expected).abs() < 1e-9, "{first}");
    let start = |preset: Preset| preset.params().alpha_start;
    assert_eq!(start(Preset::Prague), AlphaStart::Held);
    assert_eq!(start(Preset::Dctcp), AlphaStart::Decaying);
}

// ABE.

#[test]
fn abe_reduces_less_for_a_mark_than_for_a_loss() {
    // RFC 8511, section 3.1: beta_ecn = 0.8; for CUBIC 0.85.
    for (growth, expected) in [(Growth::Reno, 8.0), (Growth::Cubic, 8.5)] {
        let params = TcpParams {
            ecn: true,
            ecn_reduction: EcnReduction::Abe,
            growth: growth.into(),
            ..params(RecoveryKind::Sack)
        };
        SenderScript::bulk(&params)
            .at(100)
            .ack_echo(1)
            .cwnd(expected);
    }
    let params = TcpParams {
        ecn: true,
        ecn_reduction: EcnReduction::Abe,
        ..params(RecoveryKind::Sack)
    };
    SenderScript::bulk(&params)
        .at(100)
        .sack(0, &[(1, 4)])
        .cwnd(5.0);
}

// Linux's gradual reduction.

#[test]
fn with_prr_a_mark_reduces_what_is_in_flight_by_one_segment_for_every_second_acknowledged() {
    let params = TcpParams {
        ecn: true,
        prr: true,
        initial_window: 20,
        ..params(RecoveryKind::Sack)
    };
    let mut script = SenderScript::bulk(&params);
    script.at(100).ack_echo(1).cwnd(10.0);
    let first = script.wire.len();
    for acked in 2..=19 {
        script.ack(acked);
    }
    // RFC 9937, section 6.2: half as much leaves as is delivered.
    let sent = script.wire.len() - first;
    assert!((8..=9).contains(&sent), "{sent}");
    script.cwnd(10.0); // no growth meanwhile
    script.at(200).ack(20).ack(21);
    assert!(script.window() > 10.0);
}

// The handshake.

#[test]
fn the_syn_ack_can_be_ecn_capable() {
    // RFC 5562, section 3: the SYN is not, the SYN-ACK may be.
    let offer = Segment {
        flags: Flags::SYN.with(Flags::ECE).with(Flags::CWR),
        ..Segment::default()
    };
    for (ecn_syn_ack, expected) in [(true, Ecn::Ect0), (false, Ecn::NotEct)] {
        let params = TcpParams {
            ecn: true,
            ecn_syn_ack,
            handshake: true,
            ..params(RecoveryKind::Sack)
        };
        let mut script = ReceiverScript::new(&params);
        script.receives(offer);
        assert_eq!(script.wire[0].1.ecn, expected);
    }
    // Nobody asked for ECN.
    let params = TcpParams {
        ecn: true,
        ecn_syn_ack: true,
        handshake: true,
        ..params(RecoveryKind::Sack)
    };
    let mut script = ReceiverScript::new(&params);
    script.receives(Segment {
        flags: Flags::SYN,
        ..Segment::default()
    });
    assert_eq!(script.wire[0].1.ecn, Ecn::NotEct);
}

#[test]
fn a_repeated_syn_asks_for_ecn_no_more_if_told_to_fall_back() {
    // RFC 3168, section 6.1.1.1.
    for (ecn_fallback, again) in [
        (true, Flags::SYN),
        (false, Flags::SYN.with(Flags::ECE).with(Flags::CWR)),
    ] {
        let params = TcpParams {
            ecn: true,
            ecn_fallback,
            handshake: true,
            initial_rto: Span::from_s(1),
            ..params(RecoveryKind::Sack)
        };
        let mut script = SenderScript::bulk(&params);
        script.at(1000).sends("syn syn");
        assert_eq!(script.wire[1].1.flags, again);
    }
}

/// A client to which an ECN-setup SYN-ACK with these flags came marked.
fn after_a_marked_syn_ack(params: &TcpParams, flags: Flags) -> SenderScript {
    let mut script = SenderScript::bulk(&TcpParams {
        handshake: true,
        initial_window: 2,
        ..params.clone()
    });
    script.at(100).receives(Segment {
        flags: Flags::SYN.with(Flags::ACK).with(flags),
        ecn: Ecn::Ce,
        ..ack_of(0, &[])
    });
    script
}

#[test]
fn a_mark_on_the_syn_ack_is_echoed_until_something_is_acknowledged() {
    // RFC 5562, section 3.2: the echo of a marked SYN-ACK is ECE on what the client sends.
    let echo = TcpParams {
        ecn: true,
        ..params(RecoveryKind::Sack)
    };
    for params in [echo, dctcp()] {
        let mut script = after_a_marked_syn_ack(&params, Flags::ECE);
        script.at(200).ack(1);
        let flags = script.wire.iter().map(|(_, segment)| segment.flags);
        let echoes: Vec<_> = flags.map(|flags| flags.contains(Flags::ECE)).collect();
        // The SYN asks for ECN with the same bit.
        assert_eq!(echoes, [true, true, true, false, false]);
    }
}

#[test]
fn with_accecn_a_mark_on_the_syn_ack_is_counted() {
    // RFC 9768, section 3.2.2.1, table 3: r.cep starts at 6 if the SYN-ACK arrived with CE.
    let mut script = after_a_marked_syn_ack(&accecn(), Flags::from_ace(0b010));
    script.at(200).ack(1);
    for (_, segment) in &script.wire[1..] {
        assert_eq!(segment.flags.ace(), 6);
    }
}

#[test]
fn with_accecn_an_acknowledgement_alone_says_how_the_syn_ack_arrived() {
    // RFC 9768, section 3.2.2.1, table 3.
    for (ecn, ace) in [
        (Ecn::NotEct, 0b010),
        (Ecn::Ect1, 0b011),
        (Ecn::Ect0, 0b100),
        (Ecn::Ce, 0b110),
    ] {
        let mut script = SenderScript::without_data(&TcpParams {
            handshake: true,
            ..accecn()
        });
        script.at(100).receives(Segment {
            flags: Flags::SYN.with(Flags::ACK).with(Flags::from_ace(0b010)),
            ecn,
            ..ack_of(0, &[])
        });
        script.sends("syn ack");
        assert_eq!(script.wire[1].1.flags.ace(), ace);
    }
}

#[test]
fn a_repeated_syn_ack_is_not_ecn_capable() {
    // RFC 5562, section 3.1: a SYN-ACK that has to be sent again is not ECN-capable.
    let mut script = ReceiverScript::new(&TcpParams {
        ecn: true,
        ecn_syn_ack: true,
        handshake: true,
        ..params(RecoveryKind::Sack)
    });
    let offer = Segment {
        flags: Flags::SYN.with(Flags::ECE).with(Flags::CWR),
        ..Segment::default()
    };
    script.receives(offer).receives(offer);
    let codepoints = script.wire.iter().map(|(_, segment)| segment.ecn);
    assert!(codepoints.eq([Ecn::Ect0, Ecn::NotEct]));
}

#[test]
fn a_tail_loss_probe_counts_as_sent_while_a_window_is_being_reduced() {
    // RFC 9937, section 6: prr_out is what was sent, for whatever reason.
    let mut script = SenderScript::bulk(&TcpParams {
        ecn: true,
        prr: true,
        ..params(RecoveryKind::RackTlp)
    });
    script.sends("0e 1e 2e 3e 4e 5e 6e 7e 8e 9e");
    script.at(100).ack_echo(1).sends("");
    script.at(300).sends("10ec"); // the probe
    // Half as much as was delivered, which the probe has used up until the fourth.
    script.ack(2).ack(3).sends("").ack(4).sends("11e");
}
