//! Handshake, estimator and timers by the rules of Linux 6.1, each beside the RFC's.

use crate::common::{SenderScript, ack_of, params};
use redtail_core::Span;
use redtail_transport::cc::IdleDecay;
use redtail_transport::tcp::recovery::RecoveryKind;
use redtail_transport::tcp::rto::{RttDeviation, RttSampling, SynLoss, TimerRestart};
use redtail_transport::{Flags, Preset, Segment, TcpParams};

fn handshake(syn_loss: SynLoss, timestamps: bool) -> TcpParams {
    TcpParams {
        handshake: true,
        timestamps,
        syn_loss,
        ..params(RecoveryKind::Sack)
    }
}

/// A SYN-ACK that echoes the timestamp of a SYN sent at `ms`.
fn syn_ack(ms: u32) -> Segment {
    Segment {
        flags: Flags::SYN.with(Flags::ACK),
        ts_ecr: ms * 1000,
        ..ack_of(0, &[])
    }
}

#[test]
fn one_lost_syn_leaves_the_first_window_and_a_sample() {
    // tcp_init_transfer: one segment where total_retrans > 1.
    let mut script = SenderScript::bulk(&handshake(SynLoss::Second, true));
    script.at(1000).sends("syn syn");
    script.at(1100).receives(syn_ack(0)).cwnd(10.0);
    // The first SYN is answered: 1100 ms, and three times that for a timeout.
    assert_eq!(script.srtt(), Some(Span::from_ms(1100)));
    script.timer(1100 + 3300);
    // RFC 5681, section 3.1, and RFC 6298, rule 5.7.
    let mut script = SenderScript::bulk(&handshake(SynLoss::First, true));
    script.at(1100).receives(syn_ack(0)).cwnd(1.0);
    assert_eq!(script.srtt(), None);
    script.timer(1100 + 3000);
}

#[test]
fn two_lost_syns_leave_one_segment_and_still_a_sample() {
    let mut script = SenderScript::bulk(&handshake(SynLoss::Second, true));
    script.at(3000).sends("syn syn syn");
    script.at(3050).receives(syn_ack(3000)).cwnd(1.0);
    assert_eq!(script.srtt(), Some(Span::from_ms(50)));
    script.timer(3050 + 1000);
}

#[test]
fn without_timestamps_a_lost_syn_leaves_no_sample() {
    // tcp_init_metrics: TCP_TIMEOUT_FALLBACK, 3 s, where there is no round trip.
    let mut script = SenderScript::bulk(&handshake(SynLoss::Second, false));
    script.at(1100).receives(syn_ack(0)).cwnd(10.0);
    assert_eq!(script.srtt(), None);
    script.timer(1100 + 3000);
}

#[test]
fn the_preset_backs_off_to_120_s() {
    // TCP_RTO_MAX.
    assert_eq!(Preset::Linux.params().max_rto, Span::from_s(120));
    assert_eq!(Preset::Sack.params().max_rto, Span::from_s(60));
}

fn restarts(timer_restart: TimerRestart, rtt_sampling: RttSampling) -> TcpParams {
    TcpParams {
        timer_restart,
        rtt_sampling,
        ..params(RecoveryKind::Sack)
    }
}

/// Segments 0 and 5 of ten are lost; the second is sent again at 300 ms.
fn two_holes(timer_restart: TimerRestart) -> SenderScript {
    let mut script = SenderScript::bulk(&restarts(timer_restart, RttSampling::EveryAck));
    script.sends("0 1 2 3 4 5 6 7 8 9");
    script.at(100);
    script
        .sack(0, &[(1, 2)])
        .sack(0, &[(1, 3)])
        .sack(0, &[(1, 4)]);
    script.sends("r0");
    script.at(200).sack(5, &[(6, 7)]).sends("10");
    script.at(300).sack(5, &[(6, 9)]).sends("r5 11 12");
    script
}

#[test]
fn sending_the_first_segment_again_restarts_the_timer() {
    // tcp_xmit_retransmit_queue: rearm_timer.
    two_holes(TimerRestart::Acks).timer(1200);
    two_holes(TimerRestart::Head).timer(1300);
}

#[test]
fn a_selective_acknowledgement_of_what_was_sent_before_restarts_it() {
    // tcp_clean_rtx_queue: FLAG_SET_XMIT_TIMER.
    let sampling = RttSampling::EveryDelivery;
    for (restart, then) in [(TimerRestart::Acks, 1100), (TimerRestart::Head, 1150)] {
        let mut script = SenderScript::bulk(&restarts(restart, sampling));
        script.at(100);
        script
            .sack(0, &[(1, 2)])
            .sack(0, &[(1, 3)])
            .sack(0, &[(1, 4)]);
        script.sends("0 1 2 3 4 5 6 7 8 9 r0").timer(1100);
        script.at(150).sack(0, &[(1, 5)]).timer(then);
        // Two more let new data out, which is acknowledged: sent after r0, it restarts nothing.
        script.at(160).sack(0, &[(1, 7)]);
        let then = if restart == TimerRestart::Head {
            1160
        } else {
            1100
        };
        script.at(170).sends("10").timer(then);
        script.at(260).sack(0, &[(10, 11), (1, 7)]).timer(then);
    }
}

#[test]
fn selective_acknowledgements_are_sampled() {
    // tcp_ack_update_rtt: seq_rtt, else sack_rtt.
    let mut script = SenderScript::bulk(&restarts(TimerRestart::Acks, RttSampling::EveryDelivery));
    script.at(100).sack(0, &[(1, 2)]);
    assert_eq!(script.srtt(), Some(Span::from_ms(100)));
    let mut script = SenderScript::bulk(&restarts(TimerRestart::Acks, RttSampling::EveryAck));
    script.at(100).sack(0, &[(1, 2)]);
    assert_eq!(script.srtt(), None);
}

#[test]
fn an_acknowledgement_gives_the_oldest_round_trip_it_covers() {
    // first_ackt of tcp_clean_rtx_queue: the delay of the acknowledgement is part of it.
    for (sampling, round_trip) in [
        (RttSampling::EveryDelivery, 100),
        (RttSampling::EveryAck, 60),
    ] {
        let mut script = SenderScript::without_data(&restarts(TimerRestart::Acks, sampling));
        script.writes(1).at(40).writes(1).at(100).ack(2);
        assert_eq!(script.srtt(), Some(Span::from_ms(round_trip)));
    }
}

#[test]
fn data_sent_again_gives_a_sample_by_its_timestamp_alone() {
    // tcp_ack_update_rtt, the last resort.
    let params = TcpParams {
        timestamps: true,
        initial_window: 1,
        ..restarts(TimerRestart::Acks, RttSampling::EveryDelivery)
    };
    let echo = |ms: u32| Segment {
        ts_ecr: ms * 1000,
        ..ack_of(1, &[])
    };
    let mut script = SenderScript::bulk(&params);
    script.at(1000).sends("0 r0").at(1100).receives(echo(1000));
    assert_eq!(script.srtt(), Some(Span::from_ms(100)));
    let mut script = SenderScript::bulk(&TcpParams {
        timestamps: false,
        ..params
    });
    script.at(1100).receives(echo(1000));
    assert_eq!(script.srtt(), None);
}

#[test]
fn the_greatest_deviation_of_a_round_trip_counts() {
    let timer_after = |rtt_deviation, samples: &[u64]| {
        let mut script = SenderScript::bulk(&TcpParams {
            min_rto: Span::from_ms(1),
            rtt_deviation,
            ..restarts(TimerRestart::Acks, RttSampling::EveryAck)
        });
        let (mut now, mut acked) = (0, 0);
        for &sample in samples {
            // All that was sent at once is acknowledged at once.
            (now, acked) = (now + sample, script.next_byte());
            script.at(now).ack(acked);
        }
        assert!(acked > 0);
        script.next_wakeup_ms() - now
    };
    let (mean, peak) = (RttDeviation::Mean, RttDeviation::Peak);
    // The first gives R + 2 R.
    assert_eq!(
        [timer_after(mean, &[100]), timer_after(peak, &[100])],
        [300, 300]
    );
    // The deviation of steady round trips falls by a quarter each: 200, 150, 112.5, 84.375 ms.
    // The greatest of the first round, 200 ms, counts in the second too; then each round takes a
    // quarter of what its own is less: 178.1, 154.7 ms.
    let steady = [100; 4];
    assert_eq!(
        [
            timer_after(mean, &steady[..2]),
            timer_after(peak, &steady[..2])
        ],
        [250, 300]
    );
    assert_eq!(
        [timer_after(mean, &steady), timer_after(peak, &steady)],
        [184, 254]
    );
    // A shorter one moves the mean by an eighth of what it would: 90 + 230 ms or 90 + 203.75 ms.
    assert_eq!(
        [timer_after(mean, &[100, 20]), timer_after(peak, &[100, 20])],
        [320, 293]
    );
}

#[test]
fn timers_run_by_ticks() {
    // 1000 ms are 250 ticks, of the second level: the next multiple of 32 ms.
    let params = TcpParams {
        timer_tick: Span::from_ms(4),
        ..params(RecoveryKind::Sack)
    };
    let mut script = SenderScript::bulk(&params);
    script.timer(1024).at(1023).sends("0 1 2 3 4 5 6 7 8 9");
    // Sent again at 1024, 500 ticks of 4 ms more: 3024, then 3040.
    script.at(1024).sends("r0").timer(1024 + 2016);
}

#[test]
fn an_idle_time_halves_the_window_for_each_timeout() {
    // tcp_cwnd_restart.
    let after = |idle_decay, segments, idle: u64| {
        let mut script = SenderScript::without_data(&TcpParams {
            initial_window: 2,
            idle_decay,
            ..params(RecoveryKind::Sack)
        });
        script.writes(14).sends("0 1").at(100).ack(1).ack(2);
        script.at(200).ack(3).ack(4).ack(5).ack(6).at(300).ack(14);
        // The last was sent at 200 ms; the timeout is 1 s.
        script.cwnd(9.0).at(200 + idle).writes(segments);
        script.window()
    };
    for (idle, window) in [
        (1000, 9.0),
        (1001, 4.0),
        (2000, 4.0),
        (2001, 2.0),
        (9001, 2.0),
    ] {
        assert_eq!(
            after(IdleDecay::Halving, 1, idle),
            window,
            "after {idle} ms"
        );
    }
    assert_eq!(after(IdleDecay::Restart, 1, 1001), 2.0);
}

#[test]
fn the_last_segment_leaves_though_the_window_is_full() {
    // tcp_cwnd_test: not strict about the window for the final FIN.
    for (fin_beyond_window, sends) in [(false, "0 1 2"), (true, "0 1 2 3:500f")] {
        let params = TcpParams {
            fin_beyond_window,
            handshake: true,
            initial_window: 3,
            ..params(RecoveryKind::Sack)
        };
        let mut script = SenderScript::transfer(&params, 3500);
        script
            .at(100)
            .sends("syn")
            .receives(syn_ack(0))
            .sends(sends);
        // Alone it does, and only the last.
        let mut script = SenderScript::transfer(&params, 4001);
        script.at(100).receives(syn_ack(0)).sends("syn 0 1 2");
        let mut script = SenderScript::without_data(&params);
        script.writes(3).at(100).receives(syn_ack(0)).closes();
        let fin = if fin_beyond_window { " fin" } else { "" };
        script.sends(&format!("syn 0 1 2{fin}"));
    }
}

#[test]
fn the_syn_ack_is_acknowledged_before_the_first_data() {
    // tcp_rcv_synsent_state_process sends an acknowledgement at once; RFC 9293, section 3.10.7.3:
    // "Data or controls that were queued for transmission MAY be included."
    for (bare_handshake_ack, sends) in [(false, "syn 0 1 2"), (true, "syn ack 0 1 2")] {
        let params = TcpParams {
            bare_handshake_ack,
            handshake: true,
            initial_window: 3,
            ..params(RecoveryKind::Sack)
        };
        let mut script = SenderScript::bulk(&params);
        script.at(100).receives(syn_ack(0)).sends(sends);
        // A side without data acknowledges in any case.
        let mut script = SenderScript::without_data(&params);
        script.at(100).receives(syn_ack(0)).sends("syn ack");
    }
}
