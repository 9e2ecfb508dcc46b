//! Closing a connection with FINs (RFC 9293, section 3.6).

use crate::common::{MSS, ReceiverScript, SenderScript, ack_of, data, params};
use redtail_core::{Bytes, Ecn, Rate};
use redtail_transport::tcp::recovery::RecoveryKind;
use redtail_transport::{Flags, Segment, TcpParams};

fn with_handshake() -> TcpParams {
    TcpParams {
        handshake: true,
        ..params(RecoveryKind::Sack)
    }
}

/// A transfer of `segments` whose handshake is done at 100 ms.
fn transfer(params: &TcpParams, segments: u64) -> SenderScript {
    let mut script = SenderScript::transfer(params, segments * MSS);
    script.sends("syn").at(100).receives(Segment {
        flags: Flags::SYN.with(Flags::ACK),
        ..ack_of(0, &[])
    });
    script
}

/// The last segment of `segments`, with FIN.
fn last(segments: u64) -> Segment {
    let segment = data(segments - 1);
    Segment {
        flags: segment.flags.with(Flags::FIN),
        ..segment
    }
}

/// The acknowledgement of the receiver's FIN.
fn ack_of_fin(segments: u64) -> Segment {
    Segment {
        seq: segments * MSS + 1,
        ack: 1,
        flags: Flags::ACK,
        ..Segment::default()
    }
}

fn receiver() -> ReceiverScript {
    ReceiverScript::new(&TcpParams {
        delayed_ack: true,
        ..params(RecoveryKind::Sack)
    })
}

#[test]
fn the_fin_goes_with_the_last_data() {
    // RFC 9293, section 3.10.4: CLOSE is queued "until all preceding SENDs have been
    // segmentized, then form a FIN segment and send it".
    let mut script = transfer(&with_handshake(), 3);
    script.sends("0 1 2f").complete(false);
    // The peer's acknowledgement of it brings the peer's FIN, which is acknowledged.
    script.at(200).fin(3).sends("ack").complete(true);
    let (_, ack) = script.wire.last().expect("it was sent");
    assert_eq!((ack.seq, ack.ack, ack.len), (3 * MSS + 1, 1, 0));
    assert_eq!(ack.ecn, Ecn::NotEct);
    script.closed(true).timer(None);
}

#[test]
fn as_in_linux_data_that_leaves_as_it_is_written_leaves_before_the_fin() {
    // tcp_sendmsg_locked pushes what the window has room for; then tcp_send_fin adds the FIN to the
    // last segment that has not left, or makes one for it.
    let params = |initial_window| TcpParams {
        fin_beyond_window: true,
        initial_window,
        ..with_handshake()
    };
    let mut script = transfer(&params(10), 3);
    script.sends("0 1 2 fin").complete(false);
    script.at(200).ack(3).complete(true).closed(false);
    // The third segment waits for the window.
    let mut script = transfer(&params(2), 4);
    script.sends("0 1").at(200).ack(2).sends("2 3f");
}

#[test]
fn a_transfer_is_complete_when_its_last_byte_is_acknowledged_the_fin_or_not() {
    // The FIN is the sequence number after the last byte.
    let mut script = transfer(&with_handshake(), 2);
    script.sends("0 1f");
    script.at(200).ack(1).complete(false);
    script.ack(2).complete(true).closed(false);
    // FIN-WAIT-2, until the peer closes as well.
    script.ack_of_fin(2).sends("").timer(None).closed(false);
    script.at(5000).fin(2).sends("ack").closed(true);
}

#[test]
fn a_fin_that_is_not_acknowledged_is_sent_again_when_the_timer_expires() {
    // RFC 9293, section 3.4: what takes sequence numbers is retransmitted, FINs too.
    let mut script = transfer(&with_handshake(), 2);
    script.sends("0 1f");
    script.at(200).ack(1).timer(1200);
    script.at(1200).sends("r1f").timer(3200);
    script.at(3200).sends("r1f");
    script.at(3300).fin(2).sends("ack").complete(true);
}

#[test]
fn a_fin_alone_is_neither_data_nor_ecn_capable_nor_a_retransmission_when_repeated() {
    let params = TcpParams {
        ecn: true,
        ..params(RecoveryKind::Sack)
    };
    let mut script = SenderScript::without_data(&TcpParams {
        handshake: true,
        ..params
    });
    script.at(100).receives(Segment {
        flags: Flags::SYN.with(Flags::ACK).with(Flags::ECE),
        ..ack_of(0, &[])
    });
    // The SYN-ACK is acknowledged though there is no data yet (RFC 9293, figure 6).
    script.sends("syn ack");
    script.writes(1).sends("0e").at(200).ack(1);
    script.closes().sends("fin").complete(true).closed(false);
    script.timer(1200).at(1200).sends("rfin");
    script.fin(1).sends("ack").closed(true);
    let counters = script.counters();
    assert_eq!((counters.data_segments, counters.retransmissions), (1, 0));
}

#[test]
fn a_repeated_fin_of_the_peer_is_acknowledged_again() {
    // RFC 9293, section 3.6.1: TIME-WAIT; section 3.10.7.4: "the only thing that can
    // arrive in this state is a retransmission of the remote FIN. Acknowledge it".
    let mut script = transfer(&with_handshake(), 1);
    script.sends("0f").at(200).fin(1).sends("ack");
    script.at(1200).fin(1).sends("ack");
    script.at(90_000).fin(1).sends("ack").timer(None);
}

#[test]
fn without_a_handshake_there_is_no_fin() {
    let mut script = SenderScript::transfer(&params(RecoveryKind::Sack), 2 * MSS);
    script.sends("0 1").ack(2).sends("");
    script.complete(true).closed(true);
}

#[test]
fn the_fin_is_no_byte_to_loss_detection() {
    // RFC 6675, section 4, IsLost: more than (DupThresh - 1) * SMSS *bytes* selectively
    // acknowledged mean a loss; two full segments and a FIN are not more.
    let mut script = transfer(&with_handshake(), 3);
    let mut sacked = ack_of(0, &[(1, 3)]);
    sacked.sack = redtail_transport::SackBlocks::default();
    sacked.sack.push(
        0,
        redtail_transport::SackBlock {
            start: MSS,
            end: 3 * MSS + 1,
        },
    );
    script.sends("0 1 2f");
    script.at(200).sack(0, &[(1, 2)]).receives(sacked).sends("");
}

#[test]
fn the_receiver_closes_with_the_acknowledgement_of_the_fin() {
    // RFC 9293, section 3.6, case 2; its application closes at end of file. The
    // acknowledgement is not delayed.
    let mut script = receiver();
    script.data(0).sends("").timer(200);
    script.receives(last(2)).sends("2:1 fin").delivered(2);
    script.timer(1000);
    script.receives(ack_of_fin(2)).sends("").timer(None);
    assert_eq!(script.wire[0].1.seq, 0);
}

#[test]
fn a_fin_counts_only_when_everything_before_it_has_come() {
    // RFC 9293, section 3.10.7.4: the FIN is processed in the order of sequence numbers.
    let mut script = receiver();
    script.receives(last(3)).sends("0 [2-3]").delivered(0);
    script.data(0).sends("1 [2-3]").delivered(1);
    script.data(1).sends("3:1 fin").delivered(3);
}

#[test]
fn the_receivers_fin_is_sent_again_with_back_off_and_given_up_in_the_end() {
    // RFC 9293, section 3.8.3, R2: give up after at least 100 s.
    let mut script = receiver();
    script.data(0).receives(last(2)).sends("2:1 fin");
    let mut at = 0;
    for wait in [1, 2, 4, 8, 16, 32, 64, 120] {
        at += 1000 * wait;
        script.timer(at).at(at - 1).sends("");
        script.at(at).sends("2:1 fin");
    }
    assert!(at > 100_000);
    script
        .timer(at + 120_000)
        .at(at + 120_000)
        .sends("")
        .timer(None);
    // What comes late is still acknowledged.
    script.receives(last(2)).sends("2:1");
}

#[test]
fn a_repeated_fin_of_the_sender_is_acknowledged_again() {
    // Its own FIN is repeated by its own timer.
    let mut script = receiver();
    script
        .data(0)
        .receives(last(2))
        .sends("2:1 fin")
        .timer(1000);
    script.at(500).receives(last(2)).sends("2:1").timer(1000);
    assert_eq!(script.wire[1].1.seq, 1);
    script.at(1000).sends("2:1 fin");
    assert_eq!(script.wire[2].1.seq, 0);
}

#[test]
fn a_receiver_that_reads_slowly_closes_when_it_has_read_everything() {
    // 2000 bytes at 16 kbit/s: one second from the arrival of the first.
    let mut script = ReceiverScript::new(&TcpParams {
        read_rate: Some(Rate::from_bps(16_000)),
        receive_window: Bytes::new(10 * MSS),
        ..params(RecoveryKind::Sack)
    });
    script.at(100).data(0).sends("1");
    script.receives(last(2)).sends("2:1").timer(1100);
    script.at(1099).sends("").at(1100).sends("2:1 fin");
}

#[test]
fn both_ends_show_their_own_clocks_and_echo_the_others() {
    // RFC 7323, section 3.2: TSval "contains the current value of the timestamp clock
    // of the TCP sending the option"; TSecr "echoes a timestamp value that was sent by
    // the remote TCP" and is valid if ACK is set.
    let timestamps = TcpParams {
        timestamps: true,
        ..with_handshake()
    };
    let mut script = SenderScript::transfer(&timestamps, 2 * MSS);
    script.at(100).receives(Segment {
        flags: Flags::SYN.with(Flags::ACK),
        ts_val: 7_000_000,
        ts_ecr: 0,
        ..ack_of(0, &[])
    });
    script.at(250).receives(Segment {
        ack: 2 * MSS + 1,
        flags: Flags::ACK.with(Flags::FIN),
        ts_val: 7_100_000,
        ts_ecr: 100_000,
        ..ack_of(2, &[])
    });
    script.sends("syn 0 1f ack");
    let seen: Vec<_> = script
        .wire
        .iter()
        .map(|(_, s)| (s.ts_val, s.ts_ecr))
        .collect();
    assert_eq!(
        seen,
        [
            (0, 0),
            (100_000, 7_000_000),
            (100_000, 7_000_000),
            (250_000, 7_100_000)
        ]
    );

    let mut script = ReceiverScript::new(&timestamps);
    let stamped = |ts_val, segment| Segment { ts_val, ..segment };
    script.at(30).receives(stamped(5, data(0)));
    script.at(40).receives(stamped(9, data(1)));
    let seen: Vec<_> = script
        .wire
        .iter()
        .map(|(_, s)| (s.ts_val, s.ts_ecr))
        .collect();
    assert_eq!(seen, [(30_000, 5), (40_000, 9)]);
}

#[test]
fn an_older_timestamp_does_not_replace_a_newer() {
    // RFC 7323, section 4.3, step 2: "If SEG.TSval >= TS.Recent and SEG.SEQ <=
    // Last.ACK.sent, then SEG.TSval is copied to TS.Recent".
    let mut script = ReceiverScript::new(&TcpParams {
        timestamps: true,
        ..params(RecoveryKind::Sack)
    });
    let stamped = |ts_val, index| Segment {
        ts_val,
        ..data(index)
    };
    script.receives(stamped(50, 0)).receives(stamped(40, 0));
    // Beyond a gap: what is echoed is of the segment before it.
    script.receives(stamped(60, 2));
    let echoed: Vec<u32> = script.wire.iter().map(|(_, s)| s.ts_ecr).collect();
    assert_eq!(echoed, [50, 50, 50]);
}

/// An endless sender whose handshake is done at 100 ms.
fn endless(params: &TcpParams) -> SenderScript {
    let mut script = SenderScript::bulk(params);
    script.sends("syn").at(100).receives(Segment {
        flags: Flags::SYN.with(Flags::ACK),
        ..ack_of(0, &[])
    });
    script
}

#[test]
fn an_endless_sender_that_closes_sends_its_fin_and_nothing_new() {
    let with_three = TcpParams {
        initial_window: 3,
        ..with_handshake()
    };
    let mut script = endless(&with_three);
    script.sends("0 1 2");
    // The window is full: the FIN waits for room, as data would.
    script.at(150).closes().sends("").complete(false);
    script.at(200).ack(1).sends("fin");
    script.at(201).ack(3).complete(true).closed(false).sends("");
    script.fin(3).sends("ack").closed(true).timer(None);
}

#[test]
fn what_a_closed_endless_sender_has_lost_is_sent_again() {
    let with_five = TcpParams {
        initial_window: 5,
        ..with_handshake()
    };
    let mut script = endless(&with_five);
    script.sends("0 1 2 3 4");
    script.at(150).closes();
    for sacked in 2..=4 {
        script.at(200).receives(ack_of(0, &[(1, sacked)]));
    }
    let (_, sent) = script.wire.last().expect("it was sent");
    let beyond = script
        .wire
        .iter()
        .any(|(_, s)| s.seq + u64::from(s.len) > 5 * MSS);
    assert!(!beyond, "{sent:?}");
    let again = |(_, s): &&(redtail_core::Time, Segment)| s.seq == 0 && s.len > 0;
    assert_eq!(script.wire.iter().filter(again).count(), 2);
    script.at(300).ack(5).complete(true);
}

#[test]
fn an_endless_sender_that_closes_before_the_handshake_is_done_sends_a_fin_alone() {
    let mut script = SenderScript::bulk(&with_handshake());
    script
        .sends("syn")
        .at(50)
        .closes()
        .at(100)
        .receives(Segment {
            flags: Flags::SYN.with(Flags::ACK),
            ..ack_of(0, &[])
        });
    script.sends("fin").at(200).fin(0).sends("ack").closed(true);
}

#[test]
fn without_a_handshake_a_closed_endless_sender_is_done_when_all_is_acknowledged() {
    let with_two = TcpParams {
        initial_window: 2,
        ..params(RecoveryKind::Sack)
    };
    let mut script = SenderScript::bulk(&with_two);
    script.sends("0 1").at(50).closes();
    script.at(100).ack(2).sends("").closed(true).timer(None);

    // Nothing is outstanding, since the peer takes nothing: it is done at once.
    let mut script = SenderScript::bulk(&with_two);
    let full = Segment {
        window: 0,
        ..ack_of(2, &[])
    };
    script.sends("0 1").at(100).receives(full).sends("");
    script
        .at(150)
        .closes()
        .sends("")
        .complete(true)
        .closed(true)
        .timer(None);
}

#[test]
fn a_byte_sent_as_a_window_probe_belongs_to_what_a_closed_endless_sender_sent() {
    // RFC 9293, section 3.8.6.1: a probe carries a byte of data, which the peer may take.
    let with_two = TcpParams {
        initial_window: 2,
        ..params(RecoveryKind::Sack)
    };
    let mut script = SenderScript::bulk(&with_two);
    let full = Segment {
        window: 0,
        ..ack_of(2, &[])
    };
    script.sends("0 1").at(100).receives(full).at(5000);
    let probes = script.wire.len() - 2;
    assert!(probes > 0);
    script.closes().complete(false);
    script.receives(Segment {
        ack: 2 * MSS + 1,
        ..ack_of(2, &[])
    });
    script.complete(true).closed(true);
}
