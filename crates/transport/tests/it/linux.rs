//! Loss recovery in the states of Linux 6.1 (net/ipv4/tcp_input.c; the function is named
//! with each rule).

use crate::common::{MSS, SenderScript, ack_of, ms, params};
use redtail_core::Span;
use redtail_transport::cc::{Growth, Halving};
use redtail_transport::tcp::recovery::RecoveryKind;
use redtail_transport::{Flags, Preset, SackBlock, Segment, Sender, TcpParams, Way};

/// Linux's recovery and Reno, without timestamps.
fn linux() -> TcpParams {
    TcpParams {
        halving: Halving::LinuxWindow,
        growth: Growth::LinuxReno.into(),
        byte_counting: true,
        prr: true,
        limited_transmit: true,
        frto: true,
        dsack: true,
        min_rto: Span::from_ms(200),
        ..params(RecoveryKind::Linux)
    }
}

fn with_timestamps() -> TcpParams {
    TcpParams {
        timestamps: true,
        ..linux()
    }
}

/// An acknowledgement with SACK blocks, all in segments, that echoes the timestamp of what
/// was sent at `sent`, in milliseconds.
fn answer(segments: u64, sacked: &[(u64, u64)], sent: u32) -> Segment {
    Segment {
        ts_ecr: sent * 1000,
        ..ack_of(segments, sacked)
    }
}

/// Ten segments, of which the first is lost, and its retransmission.
fn in_recovery(params: &TcpParams) -> SenderScript {
    let mut script = SenderScript::bulk(params);
    script.at(100).sack(0, &[(1, 4)]);
    script.sends("0 1 2 3 4 5 6 7 8 9 r0 10").ssthresh(5.0);
    script
}

#[test]
fn a_retransmission_lost_after_a_timeout_begins_recovery() {
    // tcp_fastretrans_alert, state Loss: FLAG_LOST_RETRANS leads to tcp_enter_recovery.
    let mut script = SenderScript::bulk(&linux());
    script.at(1000).sends("0 1 2 3 4 5 6 7 8 9 r0").cwnd(1.0);
    script.at(1100).ack(1).sends("10 11").cwnd(2.0);
    script.at(1200).sack(1, &[(10, 11)]).sends("r1");
    script
        .at(1300)
        .sack(1, &[(10, 12)])
        .sends("r2")
        .ssthresh(5.0);
    assert_eq!(script.counters().recoveries, 0);
    // What was sent after the retransmission of 1 has arrived.
    script.at(1400).sack(1, &[(2, 3), (10, 12)]);
    script.sends("r1").ssthresh(2.0);
    assert_eq!(script.counters().recoveries, 1);
    assert_eq!(script.counters().timeouts, 1);
}

#[test]
fn a_reduction_takes_its_share_of_the_window_and_not_of_the_flight() {
    // tcp_reno_ssthresh: half of snd_cwnd, in whole segments, and two at least.
    let mut script = SenderScript::transfer(&linux(), 21 * MSS);
    script.at(100).ack(5).ack(10).cwnd(20.0).ack(11).cwnd(21.0);
    script.at(200).sack(14, &[(15, 18)]).ssthresh(10.0);
    assert_eq!(script.counters().recoveries, 1);
}

#[test]
fn a_timeout_within_recovery_does_not_reduce_again() {
    // tcp_enter_loss: not while state Recovery and high_seq is not acknowledged.
    let mut script = in_recovery(&linux());
    script.at(5000).ssthresh(5.0);
    assert!(script.counters().timeouts > 0);
    // Nor do further ones for the same data.
    script.at(20_000).ssthresh(5.0);
}

#[test]
fn a_timeout_after_progress_since_the_last_reduces_again() {
    // tcp_enter_loss: "state Loss and not retransmitted by timeout since it advanced".
    let mut script = SenderScript::bulk(&linux());
    script.at(1000).ssthresh(5.0).at(1100).ack(1).cwnd(2.0);
    script.at(5000).ssthresh(2.0);
}

#[test]
fn a_timeout_while_marks_reduce_the_window_does_not_reduce_again() {
    // tcp_enter_loss: CWR is neither Open nor Disorder.
    let mut script = SenderScript::bulk(&TcpParams {
        ecn: true,
        ..linux()
    });
    script
        .at(100)
        .ack_echo(1)
        .ssthresh(5.0)
        .at(2000)
        .ssthresh(5.0);
    assert!(script.counters().timeouts > 0);
}

#[test]
fn a_timeout_is_taken_back_at_once_when_the_answer_is_to_what_was_sent_before() {
    // tcp_process_loss, tcp_try_undo_loss, tcp_packet_delayed: an echo before retrans_stamp.
    let mut script = SenderScript::bulk(&with_timestamps());
    script.at(1000).sends("0 1 2 3 4 5 6 7 8 9 r0").cwnd(1.0);
    script.at(1100).receives(answer(1, &[], 0));
    // Nothing is lost any more, and the window grows with what was acknowledged.
    script.ssthresh(f64::INFINITY).cwnd(11.0).sends("10 11");
    assert_eq!(script.counters().spurious_timeouts, 1);
    assert_eq!(script.counters().retransmissions, 1);
}

#[test]
fn a_timeout_stands_when_the_answer_is_to_the_retransmission() {
    let mut script = SenderScript::bulk(&with_timestamps());
    script.at(1000).sends("0 1 2 3 4 5 6 7 8 9 r0").cwnd(1.0);
    script.at(1100).receives(answer(1, &[], 1000));
    script.ssthresh(5.0).cwnd(2.0).sends("10 11");
    assert_eq!(script.counters().spurious_timeouts, 0);
}

#[test]
fn data_sent_once_that_arrives_after_repeated_timeouts_takes_them_back() {
    // tcp_enter_loss: F-RTO with icsk_retransmits too; tcp_process_loss: FLAG_ORIG_SACK_ACKED,
    // of a selective acknowledgement that does not advance as well.
    let mut script = SenderScript::bulk(&linux());
    script.at(3000).sends("0 1 2 3 4 5 6 7 8 9 r0 r0").cwnd(1.0);
    script.at(3100).sack(0, &[(1, 2)]);
    script.ssthresh(f64::INFINITY).cwnd(10.0);
    assert_eq!(script.counters().timeouts, 2);
    assert_eq!(script.counters().spurious_timeouts, 1);
    script.sends(""); // the first segment is in flight twice
}

#[test]
fn recovery_that_ends_with_the_late_segment_is_taken_back() {
    // tcp_try_undo_recovery.
    let mut script = in_recovery(&with_timestamps());
    script.at(110).receives(answer(11, &[], 0));
    script.ssthresh(f64::INFINITY);
    assert!(script.window() >= 10.0);
    assert_eq!(script.counters().spurious_fast_retransmits, 1);
}

#[test]
fn while_a_retransmission_is_out_the_late_segment_stops_further_ones() {
    // tcp_try_undo_partial: with retrans_out nothing more is marked lost or sent again.
    let mut script = SenderScript::bulk(&with_timestamps());
    script.at(100).receives(answer(0, &[(2, 9)], 0));
    script.sends("0 1 2 3 4 5 6 7 8 9 r0 r1 10 11");
    script.at(110).receives(answer(1, &[(2, 10)], 0));
    assert_eq!(script.counters().spurious_fast_retransmits, 0);
    assert_eq!(script.counters().retransmissions, 2);
    // The other was late too.
    script.at(111).receives(answer(10, &[], 0));
    script.ssthresh(f64::INFINITY);
    assert_eq!(script.counters().spurious_fast_retransmits, 1);
}

#[test]
fn reports_of_all_retransmissions_take_a_recovery_back_while_it_lasts() {
    // tcp_try_undo_dsack in tcp_fastretrans_alert; the state is Open, or Disorder.
    let mut script = in_recovery(&linux());
    script.at(110).sack(1, &[(0, 1), (1, 4)]);
    script.ssthresh(f64::INFINITY);
    assert!(script.window() >= 10.0);
    assert_eq!(script.counters().spurious_fast_retransmits, 1);
}

#[test]
fn a_mark_keeps_the_window_reduced_when_its_loss_was_none() {
    // tcp_fastretrans_alert: FLAG_ECE sets prior_ssthresh to 0.
    let mut script = SenderScript::bulk(&TcpParams {
        ecn: true,
        ..with_timestamps()
    });
    script
        .at(100)
        .receives(answer(0, &[(1, 4)], 0))
        .ssthresh(5.0);
    let ack = answer(0, &[(1, 5)], 0);
    script.at(105).receives(Segment {
        flags: ack.flags.with(Flags::ECE),
        ..ack
    });
    script.at(110).receives(answer(11, &[], 0));
    assert_eq!(script.counters().spurious_fast_retransmits, 1);
    script.ssthresh(5.0);
    assert!(script.window() < 10.0);
}

#[test]
fn a_reduction_by_segments_begins_with_one_and_rounds_up() {
    // tcp_cwnd_reduction: sndcnt = ceil(ssthresh prr_delivered / prior_cwnd) - prr_out, one at
    // least while nothing was sent. From 10 to 5, for marks (tcp_enter_cwr).
    let mut script = SenderScript::bulk(&TcpParams {
        ecn: true,
        ..linux()
    });
    script.sends("0e 1e 2e 3e 4e 5e 6e 7e 8e 9e").at(100);
    script.ack_echo(1).ssthresh(5.0).cwnd(10.0).sends("10ec");
    script
        .ack(2)
        .cwnd(9.0)
        .sends("")
        .ack(3)
        .cwnd(9.0)
        .sends("11e");
    script.ack(4).sends("").ack(5).sends("12e").ack(6).sends("");
    script.ack(7).sends("13e").ack(8).sends("").ack(9).sends("");
    // At high_seq it goes on; beyond, CWR has arrived (tcp_fastretrans_alert).
    script.ack(10).sends("14e").cwnd(5.0);
    script.at(200).ack(11).cwnd(5.0).sends("15e");
}

#[test]
fn a_reduction_by_losses_counts_from_the_window_before() {
    // prior_cwnd is the window of 30, of which 22 are outstanding: ceil(3 * 15 / 30) = 2.
    let mut script = SenderScript::transfer(&linux(), 42 * MSS);
    script.at(100).ack(10).at(200).ack(20).cwnd(30.0);
    script.sack(20, &[(21, 24)]).ssthresh(15.0).cwnd(18.0 + 2.0);
}

#[test]
fn the_acknowledgement_that_ends_recovery_grows_the_window() {
    // tcp_ack: tcp_cong_control comes after tcp_fastretrans_alert.
    let mut script = in_recovery(&linux());
    // It delivers 0 and 4 to 10, eight segments: with a window of five, one is added.
    script.at(200).ack(11).ssthresh(5.0).cwnd(6.0);
    script.sends("11 12 13 14 15 16");
}

#[test]
fn slow_start_grows_a_window_of_which_more_than_half_was_used() {
    // tcp_is_cwnd_limited: in slow start while cwnd < 2 max_packets_out.
    let mut script = SenderScript::without_data(&linux());
    script.writes(6).sends("0 1 2 3 4 5").at(100);
    script.ack(2).cwnd(12.0).ack(4).cwnd(12.0);
    // Later it is limited by the window (is_cwnd_limited).
    script.writes(100).ack(5).cwnd(13.0);
}

#[test]
fn slow_start_stops_at_ssthresh_and_what_is_left_counts_in_avoidance() {
    // tcp_slow_start.
    let mut script = SenderScript::bulk(&TcpParams {
        frto: false,
        ..linux()
    });
    // From one to five for four; six are left, one is added for five.
    script.at(1000).ssthresh(5.0).at(1100).ack(10).cwnd(6.0);
}

#[test]
fn a_selectively_acknowledged_retransmission_is_not_judged_by_its_timestamp() {
    // tcp_sacktag_one calls tcp_rack_advance whatever the echo says; tcp_clean_rtx_queue asks
    // tcp_skb_spurious_retrans first.
    let mut script = SenderScript::bulk(&with_timestamps());
    script.at(100).receives(answer(0, &[(2, 9)], 0));
    script.sends("0 1 2 3 4 5 6 7 8 9 r0 r1 10 11");
    // The retransmission of 1 arrives; the receiver, still waiting for 0, echoes what it
    // heard in order last.
    script.at(200).receives(answer(0, &[(1, 9)], 0));
    // Sent with it, so not yet overtaken: 10 follows.
    script.receives(answer(0, &[(1, 9), (10, 11)], 0));
    script.sends("r0 r9 12 13");
}

#[test]
fn losses_that_are_known_when_recovery_ends_begin_another() {
    // tcp_time_to_recover: lost_out, of what was sent in recovery, sent again or not.
    let mut script = in_recovery(&linux());
    script.at(101).sack(0, &[(1, 7)]).sends("");
    script.at(102).sack(0, &[(1, 10)]).sends("11 12 13");
    // What was sent later has arrived; 10 has not, nor has the retransmission.
    script.at(200).sack(0, &[(1, 10), (11, 14)]);
    script.sends("r0 r10 14 15 16");
    assert_eq!(script.counters().recoveries, 1);
    // The first recovery ends, of what was sent until 9.
    script.at(201).sack(10, &[(11, 14)]).ssthresh(2.0);
    assert_eq!(script.counters().recoveries, 2);
}

#[test]
fn a_report_of_duplicates_widens_the_room_for_reordering_only_if_some_was_seen() {
    // tcp_dsack_seen: rack.dsack_seen with reord_seen.
    for reordered in [false, true] {
        let mut script = SenderScript::bulk(&linux());
        script.at(100);
        if reordered {
            script
                .sack(0, &[(1, 2)])
                .at(101)
                .ack(2)
                .at(102)
                .sack(2, &[(3, 6)]);
            script.at(130); // a quarter of a round trip
        } else {
            script.ack(2).at(102).sack(2, &[(3, 6)]);
        }
        assert_eq!(script.counters().recoveries, 1);
        let una = script.next_byte();
        script.at(200).receives(ack_of(una, &[])).at(210);
        script.receives(ack_of(una, &[(2, 3)]));
        assert_eq!(script.counters().spurious_fast_retransmits, 1);
        // Three of a new window are reported, the first is not.
        script.at(310).receives(ack_of(una, &[(una + 1, una + 2)]));
        let waits = script.next_wakeup_ms() - 310;
        let wide = waits > 30;
        assert_eq!(wide, reordered, "{waits} ms");
    }
}

#[test]
fn a_probe_is_in_flight_in_the_place_of_the_segment_that_it_repeats() {
    // tcp_send_loss_probe calls __tcp_retransmit_skb, which does not count in retrans_out.
    let mut script = SenderScript::without_data(&linux());
    script
        .writes(10)
        .at(100)
        .ack(8)
        .sends("0 1 2 3 4 5 6 7 8 9");
    script.at(300).sends("r9").cwnd(18.0);
    let all: Vec<String> = (10..26).map(|i| i.to_string()).collect();
    script.writes(30).sends(&all.join(" "));
}

#[test]
fn a_probe_that_repaired_a_loss_reduces_the_window_once_more_is_acknowledged() {
    // tcp_process_tlp_ack: not by the answer itself, which may be to the original.
    let mut script = SenderScript::without_data(&linux());
    script
        .writes(10)
        .at(100)
        .ack(9)
        .sends("0 1 2 3 4 5 6 7 8 9");
    script.at(500).sends("r9").at(600).ack(10);
    script.ssthresh(f64::INFINITY).cwnd(20.0);
    script.writes(2).at(700).ack(12).ssthresh(10.0).cwnd(10.0);
    assert_eq!(script.counters().recoveries, 0);
}

/// Linux's sender that pushes the last segment of a burst, with this initial window.
fn with_bursts(initial_window: u32) -> TcpParams {
    TcpParams {
        adaptive_acks: true,
        initial_window,
        ..linux()
    }
}

#[test]
fn the_last_segment_of_a_burst_is_pushed() {
    // __tcp_transmit_skb: "Force a PSH flag on all (GSO) packets"; tcp_min_tso_segs is 2.
    let mut script = SenderScript::bulk(&with_bursts(10));
    script.sends("0 1p 2 3p 4 5p 6 7p 8 9p");
    // One more segment than the burst leaves alone.
    script.at(100).ack(1).sends("10 11p");
    script.at(110).ack(3).sends("12 13p 14 15p");
    script.at(120).sack(3, &[(4, 5)]).sends("16");
}

#[test]
fn a_burst_is_at_most_half_the_window() {
    // tcp_cwnd_test: "ensure we have at least 2 GSO packets in flight".
    SenderScript::bulk(&with_bursts(3)).sends("0 1 2");
    SenderScript::bulk(&with_bursts(4)).sends("0 1p 2 3p");
    SenderScript::bulk(&with_bursts(5)).sends("0 1p 2 3p 4");
}

#[test]
fn a_burst_has_a_1024th_of_what_leaves_in_a_second() {
    // tcp_tso_autosize, with tcp_pacing_ss_ratio: 2 * 24 segments in 10 ms are 4.7 in that time, and
    // a path of 10 ms adds 65,536 B / 2^19.
    let first = "0 1p 2 3p 4 5p 6 7p 8 9p 10 11p 12 13p 14 15p 16 17p 18 19p";
    let mut script = SenderScript::bulk(&with_bursts(20));
    script.sends(first).at(10).ack(4);
    script.sends("20 21 22 23p 24 25 26 27p");
    // 2 * 40 segments in 1 ms are more than half the window.
    let mut script = SenderScript::bulk(&with_bursts(20));
    script.sends(first).at(1).ack(20).sends(
        "20 21 22 23 24 25 26 27 28 29 30 31 32 33 34 35 36 37 38 39p \
         40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 56 57 58 59p",
    );
}

#[test]
fn a_single_segment_waits_for_the_next_acknowledgement() {
    // tcp_tso_should_defer: something left within a millisecond, there is room for less than a
    // burst and for less than a third of the window, and the next acknowledgement is expected
    // within a millisecond: what is outstanding left a round trip ago.
    let begun = || {
        let mut script = SenderScript::bulk(&with_bursts(10));
        script.sends("0 1p 2 3p 4 5p 6 7p 8 9p");
        script.at(100).ack_window(1, 10.0).sends("10");
        script
    };
    let mut script = begun();
    script.at(101).ack_window(2, 10.0).sends("");
    script.ack_window(3, 10.0).sends("11 12p");
    // Two milliseconds later a single segment leaves.
    begun().at(102).ack_window(2, 10.0).sends("11");
}

#[test]
fn what_one_acknowledgement_delivers_is_not_reordered() {
    // tcp_clean_rtx_queue: "Non-retransmitted hole got filled? That's reordering", by the highest
    // selective acknowledgement before this acknowledgement (prior_fack). Here segment 4, whose
    // acknowledgement was delayed, and 6, which is above the lost 5, are acknowledged at once.
    let mut script = SenderScript::bulk(&linux());
    script.sends("0 1 2 3 4 5 6 7 8 9").at(100).ack(4);
    script.sends("10 11 12 13 14 15 16 17");
    script.at(101).sack(5, &[(6, 7)]).at(102).sack(5, &[(6, 8)]);
    // The third one begins recovery, without a wait for reordered segments.
    script
        .at(103)
        .sends("18 19 20 21 22")
        .sack(5, &[(6, 9)])
        .sends("r5");
    assert_eq!(script.counters().recoveries, 1);
}

/// A transfer of three segments and a FIN after a handshake of 40 ms. All but the first segment is lost. The FIN is the last
/// segment, so it is the probe, whose answer arrives `later` milliseconds after it.
fn fin_as_probe(later: u64) -> SenderScript {
    let mut script = SenderScript::transfer(
        &TcpParams {
            handshake: true,
            fin_beyond_window: true,
            ..linux()
        },
        3 * MSS,
    );
    script.at(40).receives(Segment {
        flags: Flags::SYN.with(Flags::ACK),
        ..ack_of(0, &[])
    });
    script.sends("syn 0 1 2 fin").at(83).ack(1).sends("");
    script.at(200).sends("rfin");
    let probed = script.wire.last().expect("it was sent").0;
    let mut answer = ack_of(1, &[]);
    let fin = SackBlock {
        start: 3 * MSS,
        end: 3 * MSS + 1,
    };
    answer.sack.push(answer.ack, fin);
    let probed = (probed - ms(0)).as_ps() / Span::from_ms(1).as_ps();
    script.at(probed + later).receives(answer);
    script
}

#[test]
fn the_answer_to_a_fin_that_is_quicker_than_the_handshake_marks_nothing_lost() {
    // tcp_rack_advance: "If the sacked packet was retransmitted, it's ambiguous" when the round trip is below the least.
    let mut script = fin_as_probe(40);
    script.sends("").at(400).sends("r1");
    assert_eq!(script.counters().timeouts, 1);
    let mut script = fin_as_probe(42);
    script.sends("r1"); // one segment, as recovery begins
    assert_eq!(script.counters().timeouts, 0);
}

/// The sender of preset `linux` after it has sent at 0 ms and heard of the first `acked` segments at 50 ms. As a simulation
/// does, it sends new data without setting its timers at once, if `late`.
fn sends_more(acked: u64, late: bool) -> Sender {
    let mut sender = Sender::new(&Preset::Linux.params(), None);
    sender.open(false);
    while sender.poll_transmit(ms(0)).is_some() {}
    sender.on_segment(
        &Segment {
            window: 1 << 20,
            ..answer(acked, &[], 0)
        },
        ms(50),
    );
    match late {
        true => {
            assert_eq!(sender.way(), Way::InBursts);
            while sender.next_in_burst(ms(50)).is_some() {}
        }
        false => while sender.poll_transmit(ms(50)).is_some() {},
    }
    sender
}

#[test]
fn timers_that_are_set_late_expire_as_if_they_were_set_at_once() {
    for acked in 1..=10 {
        let at_once = sends_more(acked, false);
        let expected = at_once.next_timer().expect("data is outstanding");
        // An alarm long before any timer leaves them as they are; what needs them sets them.
        let mut late = sends_more(acked, true);
        assert_eq!(late.next_timer_before(Some(ms(60))), None);
        late.on_wakeup(ms(60));
        assert_eq!(late.next_timer(), Some(expected));
        let mut late = sends_more(acked, true);
        assert_eq!(late.next_timer_before(None), Some(expected));
        // An alarm just after their time does not hide it.
        let mut late = sends_more(acked, true);
        let alarm = Some(expected + Span::from_us(1));
        assert_eq!(late.next_timer_before(alarm), Some(expected));
    }
}
