//! Flow control: the receiver's window, and a sender that it stops.

use crate::common::{MSS, ReceiverScript, SenderScript, ack_of, data, params};
use redtail_core::{Bytes, Rate, Span};
use redtail_transport::tcp::recovery::RecoveryKind;
use redtail_transport::{Flags, Segment, TcpParams};

fn sack() -> TcpParams {
    params(RecoveryKind::Sack)
}

/// A receiver with room for `segments` whose application reads a segment in `ms`.
fn slow(segments: u64, ms: u64) -> ReceiverScript {
    ReceiverScript::new(&TcpParams {
        receive_window: Bytes::new(segments * MSS),
        read_rate: Some(Rate::from_bps(8 * MSS * 1000 / ms)),
        ..sack()
    })
}

#[test]
fn a_send_buffer_bounds_what_is_outstanding() {
    // sk_stream_memory_free: what is not acknowledged stays in the buffer, whatever was selectively acknowledged.
    let mut script = SenderScript::bulk(&TcpParams {
        send_buffer: Some(Bytes::new(4 * MSS + 1)),
        ..sack()
    });
    script.sends("0 1 2 3").at(100).ack(1).sends("4");
    script.at(110).receives(ack_of(1, &[(2, 4)])).sends("");
    script.at(120).ack(4).sends("5 6 7");
    // A smaller window counts instead of it.
    script.at(220).ack_window(8, 2.0).sends("8 9");
    script.at(320).ack_window(10, 1000.0).sends("10 11 12 13");
}

#[test]
fn a_window_update_beyond_the_send_buffer_is_no_duplicate() {
    let mut script = SenderScript::bulk(&TcpParams {
        send_buffer: Some(Bytes::new(4 * MSS)),
        ..params(RecoveryKind::Newreno)
    });
    script
        .sends("0 1 2 3")
        .at(100)
        .ack_window(1, 50.0)
        .sends("4");
    for window in [60.0, 70.0, 80.0] {
        script.ack_window(1, window).sends("");
    }
    assert_eq!(script.counters().duplicate_acks, 0);
}

#[test]
fn a_zero_window_stops_the_sender() {
    // RFC 9293, section 3.8.6: the window is the range of sequence numbers that the
    // receiver is prepared to accept.
    let mut script = SenderScript::bulk(&sack());
    script.sends("0 1 2 3 4 5 6 7 8 9");
    script.at(100).ack_window(8, 2.0).sends("").cwnd(11.0);
    script.at(110).ack_window(10, 0.0).sends("");
    script.at(1000).sends("");
}

#[test]
fn probes_come_after_a_timeout_and_then_at_twice_the_time_and_never_end() {
    // RFC 9293, section 3.8.6.1: "The transmitting host SHOULD send the first zero-window
    // probe when a zero window has existed for the retransmission timeout period, and
    // SHOULD increase exponentially the interval between successive probes."
    let mut script = SenderScript::bulk(&sack());
    script.at(100).ack_window(10, 0.0);
    script.sends("0 1 2 3 4 5 6 7 8 9").timer(1100);
    let mut at = 1100;
    for wait in [
        2, 4, 8, 16, 32, 60, 60, 60, 60, 60, 60, 60, 60, 60, 60, 60, 60,
    ] {
        script.at(at).sends("probe");
        // As long as they are answered, the sender "MUST allow the connection to stay open".
        script.at(at + 50).ack_window(10, 0.0).sends("");
        at += wait * 1000;
        script.timer(at);
    }
    // The window is as it was: probes are no losses.
    let counters = script.counters();
    assert_eq!((counters.timeouts, counters.retransmissions), (0, 0));
    assert_eq!(counters.duplicate_acks, 0);
    script.cwnd(11.0);
}

#[test]
fn probes_go_on_when_none_is_answered() {
    let mut script = SenderScript::bulk(&sack());
    script.at(100).ack_window(10, 0.0);
    script.at(2_000_000);
    // At 1.1, 3.1, 7.1, 15.1, 31.1, 63.1 s, then each minute.
    assert_eq!(script.wire.len(), 10 + 6 + (2_000_000 - 63_100) / 60_000);
    script.cwnd(11.0);
}

#[test]
fn a_window_that_opens_lets_the_sender_go_on_at_once() {
    let mut script = SenderScript::bulk(&TcpParams {
        idle_restart: false,
        ..sack()
    });
    script.at(100).ack_window(10, 0.0);
    script.at(1100).sends("0 1 2 3 4 5 6 7 8 9 probe");
    script.at(1500).ack_window(10, 3.0).sends("10 11 12");
    // The retransmission timer takes over, as long as ever.
    script
        .timer(2500)
        .at(1600)
        .ack_window(13, 2.0)
        .sends("13 14");
    // The next time the first probe waits no longer than this time.
    script.at(1700).ack_window(15, 0.0).sends("").timer(2700);
}

#[test]
fn a_probe_whose_byte_was_taken_counts_as_sent() {
    let mut script = SenderScript::bulk(&TcpParams {
        idle_restart: false,
        ..sack()
    });
    script.at(100).ack_window(10, 0.0).at(1100);
    let taken = Segment {
        ack: 10 * MSS + 1,
        window: 0,
        ..ack_of(10, &[])
    };
    script.receives(taken).sends("0 1 2 3 4 5 6 7 8 9 probe");
    assert_eq!(script.counters().retransmissions, 0);
    // The persist timer runs on.
    script.timer(3100);
}

#[test]
fn an_old_acknowledgement_does_not_bring_back_its_window() {
    // RFC 9293, section 3.10.7.4: SND.WND is set by segments with SND.UNA =< SEG.ACK.
    let mut script = SenderScript::bulk(&sack());
    script
        .at(100)
        .ack_window(10, 0.0)
        .sends("0 1 2 3 4 5 6 7 8 9");
    script.ack_window(9, 5.0).sends("");
}

#[test]
fn less_than_a_segment_waits_for_the_persist_timer() {
    // RFC 9293, section 3.8.6.2.1: send if the maximum-sized segment can be sent, if it
    // is half of the largest window, or when "the override timeout occurs".
    let mut script = SenderScript::bulk(&sack());
    script.at(100).ack_window(10, 0.4).timer(1100);
    script.sends("0 1 2 3 4 5 6 7 8 9");
    script.at(1100).sends("10:400");
    // Half of the largest window is sent without waiting.
    let mut script = SenderScript::bulk(&TcpParams {
        receive_window: Bytes::new(MSS),
        ..sack()
    });
    script.sends("0").at(100).ack_window(1, 0.4).sends("");
    script.ack_window(1, 0.6).sends("1:600");
}

#[test]
fn a_fin_is_not_held_back_by_a_window() {
    let mut script = SenderScript::transfer(
        &TcpParams {
            handshake: true,
            ..sack()
        },
        2 * MSS,
    );
    script.at(100).receives(Segment {
        flags: Flags::SYN.with(Flags::ACK),
        window: 2 * MSS as u32,
        ..ack_of(0, &[])
    });
    script.sends("syn 0 1f");
}

#[test]
fn what_is_not_read_takes_up_the_window() {
    // RFC 9293, section 3.8.6.2.2: RCV.WND is at most RCV.BUFF - RCV.USER, what was
    // received and not read. A segment is read in 100 ms, and there is room for four.
    let mut script = slow(4, 100);
    script.data(0).window(3000);
    script.data(1).window(2000);
    // 150 ms later one and a half have been read: the edge moves by whole segments'
    // worth at least, here by 1500 bytes.
    script.at(150).data(2).window(2500);
    script.data(3).window(1500);
}

#[test]
fn the_right_edge_of_the_window_never_moves_left() {
    // RFC 9293, section 3.8.6: "A TCP receiver SHOULD NOT shrink the window, i.e., move
    // the right window edge to the left".
    let mut script = slow(6, 70);
    let mut edge = 0;
    let mut index = 0;
    for at in (0..5000).step_by(13) {
        script.at(at);
        let (_, segment) = *script.wire.last().unwrap_or(&(
            crate::common::ms(0),
            Segment {
                window: 6000,
                ..Segment::default()
            },
        ));
        if (index + 1) * MSS <= segment.ack + u64::from(segment.window) {
            script.data(index);
            index += 1;
        }
        for (_, segment) in script.wire.drain(..script.wire.len().saturating_sub(1)) {
            let right = segment.ack + u64::from(segment.window);
            assert!(right >= edge, "{right} {edge}");
            edge = right;
        }
    }
    // Seventy milliseconds each, and what the buffer holds.
    assert!((70..=78).contains(&index), "{index}");
}

#[test]
fn a_window_update_is_sent_when_a_segment_fits_and_not_before() {
    // RFC 9293, section 3.8.6.2.2: keep RCV.NXT + RCV.WND fixed until RCV.BUFF -
    // RCV.USER - RCV.WND >= min(Fr * RCV.BUFF, Eff.snd.MSS).
    let mut script = slow(4, 100);
    script.all([0, 1, 2, 3]).sends("1, 2, 3, 4").window(0);
    script.timer(100).at(99).sends("");
    script.at(100).sends("4").window(1000);
    // It holds a segment: the sender is not stopped, and needs no further update.
    script.at(150).sends("").timer(None);
    // The segment fills it; one more has been read half.
    script.data(4).sends("5").window(0).timer(200);
    script.at(200).sends("5").window(1000);
}

#[test]
fn half_the_buffer_is_worth_an_update_where_a_segment_is_more() {
    // Fr = 1/2 of a buffer of one segment.
    let mut script = slow(1, 100);
    script.data(0).sends("1").window(0).timer(50);
    script.at(50).sends("1").window(500);
}

#[test]
fn data_beyond_the_window_is_not_taken_but_answered() {
    // RFC 9293, section 3.10.7.4: data is not acceptable when RCV.WND is zero; "If an
    // incoming segment is not acceptable, an acknowledgment should be sent in reply".
    let mut script = slow(2, 1000);
    script.all([0, 1]).sends("1, 2").window(0);
    let probe = Segment { len: 1, ..data(2) };
    script.at(500).receives(probe).sends("2").window(0);
    script.delivered(2);
    // At 1 s there is room for one.
    script.at(1000).sends("2").window(1000);
    // The first thousand bytes of two thousand are taken.
    let long = Segment {
        len: 2 * MSS as u32,
        ..data(2)
    };
    script.receives(long).sends("3").delivered(3);
}

#[test]
fn a_reader_saves_up_nothing_while_there_is_nothing_to_read() {
    let mut script = slow(4, 100);
    script.data(0).at(10_000);
    script.all([1, 2, 3, 4]).window(0);
    script.timer(10_100);
}

#[test]
fn windows_are_announced_in_units_of_their_scale() {
    // RFC 7323, section 2.3: the window is shifted right into its field, at most by 14;
    // here by the least with which the buffer fits 16 bits.
    let scale = |bytes| {
        let params = TcpParams {
            receive_window: Bytes::new(bytes),
            ..sack()
        };
        (params.window_scale(), params.announced(bytes))
    };
    assert_eq!(scale(65_535), (0, 65_535));
    assert_eq!(scale(65_536), (1, 65_536));
    assert_eq!(scale(131_071), (1, 131_070));
    assert_eq!(scale(1 << 20), (5, 1 << 20));
    assert_eq!(scale(1 << 30), (14, 65_535 << 14));
    let mut script = ReceiverScript::new(&TcpParams {
        receive_window: Bytes::new(1_000_000),
        read_rate: Some(Rate::from_bps(1)),
        ..sack()
    });
    // Units of 16 bytes.
    script.data(0).window(999_000 / 16 * 16);
    script.data(1).window(998_000 / 16 * 16);
}

#[test]
fn the_window_of_a_syn_is_not_scaled() {
    // RFC 7323, section 2.2: "The window field in a segment where the SYN bit is set
    // (i.e., a <SYN> or <SYN,ACK>) MUST NOT be scaled."
    let mut script = ReceiverScript::new(&TcpParams {
        handshake: true,
        receive_window: Bytes::new(1 << 20),
        ..sack()
    });
    let syn = Segment {
        flags: Flags::SYN,
        ..Segment::default()
    };
    script.receives(syn).window(65_535).data(0).window(1 << 20);
}

#[test]
fn the_time_a_window_was_closed_is_an_idle_time() {
    // RFC 5681, section 4.1, speaks of an interval without data sent, whatever the cause.
    let mut script = SenderScript::bulk(&TcpParams {
        initial_window: 2,
        max_rto: Span::from_s(60),
        ..sack()
    });
    script.at(100).ack(1).ack(2).at(200).ack_window(6, 0.0);
    script.cwnd(5.0).at(5000).ack_window(6, 20.0).cwnd(2.0);
}

#[test]
fn a_window_update_is_no_duplicate() {
    // RFC 5681, section 2: an acknowledgement is a duplicate if, among others, "the
    // advertised window in the incoming acknowledgment equals the advertised window in
    // the last incoming acknowledgment".
    let mut script = SenderScript::bulk(&params(RecoveryKind::Newreno));
    script.sends("0 1 2 3 4 5 6 7 8 9").at(100);
    for window in [4.0, 5.0, 6.0, 7.0, 8.0] {
        script.ack_window(0, window).sends("");
    }
    assert_eq!(script.counters().duplicate_acks, 0);
    script.ack_window(0, 8.0).ack_window(0, 8.0).sends("");
    script.ack_window(0, 8.0).sends("r0");
}

#[test]
fn a_delayed_acknowledgement_goes_with_the_window_update() {
    let mut script = ReceiverScript::new(&TcpParams {
        delayed_ack: true,
        receive_window: Bytes::new(2 * MSS),
        read_rate: Some(Rate::from_bps(160_000)), // a segment in 50 ms
        ..sack()
    });
    // What is left of the window is a segment, then nothing.
    script.data(0).sends("").timer(200);
    script.at(10).data(1).sends("2").window(0).timer(50);
    script.at(50).sends("2").window(1000);
    script.at(60).data(2).sends("").timer(100);
    script.at(100).sends("3").window(1000).timer(None);
}

#[test]
fn a_buffer_of_one_byte_is_announced_once_for_each_byte_read() {
    // RFC 9293, section 3.8.6.2.2: the window moves in steps of at least min(Fr RCV.BUFF,
    // MSS), and half a byte is none.
    let mut script = ReceiverScript::new(&TcpParams {
        mss: Bytes::new(1),
        receive_window: Bytes::new(1),
        read_rate: Some(Rate::from_bps(8)),
        ..sack()
    });
    let byte = Segment {
        len: 1,
        flags: Flags::ACK,
        ..Segment::default()
    };
    script.receives(byte).sends("0:1").window(0).timer(1000);
    script.at(1000).sends("0:1").window(1).timer(None);
}
