//! The retransmission timer and the handshake.

use crate::common::{ReceiverScript, SenderScript, ack_of, params};
use redtail_core::Span;
use redtail_transport::tcp::recovery::RecoveryKind;
use redtail_transport::tcp::rto::RttSampling;
use redtail_transport::{Flags, Segment, TcpParams};

fn newreno(initial_window: u32) -> TcpParams {
    TcpParams {
        initial_window,
        ..params(RecoveryKind::Newreno)
    }
}

const SAMPLINGS: [RttSampling; 2] = [RttSampling::EveryAck, RttSampling::OnePerWindow];

#[test]
fn the_timer_doubles_until_a_segment_sent_once_is_acknowledged() {
    // RFC 6298, rule 5.5: "RTO <- RTO * 2 ('back off the timer')"; section 3, Karn:
    // "RTT samples MUST NOT be made using segments that were retransmitted".
    for rtt_sampling in SAMPLINGS {
        let mut script = SenderScript::bulk(&TcpParams {
            rtt_sampling,
            ..newreno(1)
        });
        script.sends("0").timer(1000);
        script.at(1000).sends("r0").timer(3000);
        script.at(3000).sends("r0").timer(7000);
        script.at(7000).sends("r0").timer(15_000);
        // Ambiguous: no sample, and the timer stays backed off.
        script.at(7100).ack(1).sends("1 2").timer(15_100);
        // Sent once: a sample of 100 ms, hence the least timeout of 1 s.
        script.at(7200).ack(2).timer(8200);
        assert_eq!(script.counters().timeouts, 3);
    }
}

#[test]
fn the_timer_goes_no_further_than_its_maximum() {
    // RFC 6298, rule 2.5: "A maximum value MAY be placed on RTO".
    let params = TcpParams {
        max_rto: Span::from_s(5),
        ..newreno(1)
    };
    let mut script = SenderScript::bulk(&params);
    script.at(7000).timer(12_000).at(12_000).timer(17_000);
}

#[test]
fn the_initial_timeout_holds_before_the_first_sample() {
    // RFC 6298, rule 2.1: "the sender SHOULD set RTO <- 1 second".
    let params = TcpParams {
        initial_rto: Span::from_s(3),
        ..newreno(1)
    };
    SenderScript::bulk(&params).timer(3000).at(2999).sends("0");
    SenderScript::bulk(&params).at(3000).sends("0 r0");
}

#[test]
fn the_minimum_bounds_the_timeout_after_samples() {
    // RFC 6298, rules 2.2 and 2.4: R + 4 R/2 from the first sample, rounded up to
    // the minimum.
    for (min, timer) in [(200, 400), (500, 600), (1000, 1100)] {
        let params = TcpParams {
            min_rto: Span::from_ms(min),
            ..newreno(1)
        };
        let mut script = SenderScript::bulk(&params);
        script.at(100).ack(1).timer(timer);
    }
}

#[test]
fn new_acks_restart_the_timer_and_the_last_stops_it() {
    // RFC 6298, rules 5.2 and 5.3.
    let mut script = SenderScript::transfer(&newreno(3), 3000);
    script.timer(1000);
    script.at(100).ack(1).timer(1100);
    script.at(150).ack(1).timer(1100); // a duplicate does not
    script.at(200).ack(2).timer(1200);
    script.at(300).ack(3).timer(None);
}

#[test]
fn a_segment_sent_again_gives_no_sample() {
    // RFC 6298, section 3 (Karn). Segment 10 is first sent in recovery, lost, and
    // sent again in the same recovery.
    for rtt_sampling in SAMPLINGS {
        let mut script = SenderScript::bulk(&TcpParams {
            rtt_sampling,
            ..params(RecoveryKind::Sack)
        });
        script.at(100);
        for i in 1..10 {
            script.sack(0, &[(1, i + 1)]);
        }
        for i in 11..14 {
            script.sack(0, &[(11, i + 1), (1, 10)]);
        }
        script.sends("0 1 2 3 4 5 6 7 8 9 r0 10 11 12 13 14 15 r10 16");
        script.at(300).ack(14);
        assert_eq!(script.srtt(), None);
    }
}

#[test]
fn a_timeout_sends_again_what_is_not_acknowledged_in_slow_start() {
    // RFC 5681, section 3.1: "cwnd MUST be set to no more than the loss window"; from there
    // slow start up to ssthresh.
    for recovery in [
        RecoveryKind::Reno,
        RecoveryKind::Newreno,
        RecoveryKind::Sack,
        RecoveryKind::Sack1996,
    ] {
        let mut script = SenderScript::bulk(&TcpParams {
            initial_window: 4,
            ..params(recovery)
        });
        script.sends("0 1 2 3");
        script.at(1000).sends("r0").cwnd(1.0).ssthresh(2.0);
        script.at(1100).ack(1).cwnd(2.0).sends("r1 r2");
        // Segment 3 had arrived: the acknowledgement covers it, it stays.
        script.at(1200).ack(4).cwnd(2.5).sends("4 5");
    }
}

#[test]
fn a_timeout_ends_fast_recovery() {
    let mut script = SenderScript::bulk(&newreno(10));
    script.at(100).acks(0, 3).cwnd(5.0).timer(1100);
    script.sends("0 1 2 3 4 5 6 7 8 9 r0");
    script.at(1100).sends("r0").cwnd(1.0);
    script.at(1200).ack(1).sends("r1 r2").cwnd(2.0);
}

fn with_handshake() -> TcpParams {
    TcpParams {
        handshake: true,
        ..newreno(10)
    }
}

fn syn_ack() -> Segment {
    Segment {
        flags: Flags::SYN.with(Flags::ACK),
        ..ack_of(0, &[])
    }
}

#[test]
fn data_waits_for_the_handshake_which_gives_the_first_sample() {
    let mut script = SenderScript::bulk(&with_handshake());
    script.sends("syn").timer(1000);
    script.at(400).receives(syn_ack());
    script.sends("0 1 2 3 4 5 6 7 8 9").cwnd(10.0);
    script.timer(400 + 3 * 400);
}

#[test]
fn a_lost_syn_is_sent_again_with_back_off() {
    let mut script = SenderScript::bulk(&with_handshake());
    script.sends("syn").timer(1000);
    script.at(1000).sends("syn").timer(3000);
    script.at(3000).sends("syn").timer(7000);
}

#[test]
fn after_a_lost_syn_the_window_is_one_segment_and_the_timeout_three_seconds() {
    // RFC 5681, section 3.1: "the initial window used by a sender after a correctly
    // transmitted SYN MUST be one segment"; RFC 6298, rule 5.7: "the RTO MUST be
    // re-initialized to 3 seconds when data transmission begins".
    let mut script = SenderScript::bulk(&with_handshake());
    script.at(3000).sends("syn syn syn");
    script.at(3100).receives(syn_ack()).sends("0").cwnd(1.0);
    script.timer(6100);
    // A longer one than that stays.
    let mut script = SenderScript::bulk(&TcpParams {
        initial_rto: Span::from_s(5),
        ..with_handshake()
    });
    script.at(5100).receives(syn_ack()).timer(10_100);
}

#[test]
fn a_repeated_syn_ack_changes_nothing() {
    let mut script = SenderScript::bulk(&with_handshake());
    script.at(100).receives(syn_ack());
    script.at(200).receives(syn_ack());
    script.sends("syn 0 1 2 3 4 5 6 7 8 9");
}

#[test]
fn one_segment_at_a_time_is_timed_when_asked_so() {
    // RFC 6298, section 3: at least one sample per round trip. Segment 0 is timed,
    // then the first sent after its acknowledgement.
    let timer_after = |rtt_sampling| {
        let mut script = SenderScript::bulk(&TcpParams {
            min_rto: Span::from_ms(1),
            rtt_sampling,
            ..newreno(2)
        });
        script.at(100).ack(1).timer(100 + 300);
        // R' = 200 ms: RTTVAR 3/4 50 + 1/4 100 = 62.5, SRTT 112.5; RTO 362.5 ms.
        script.at(200).ack(2);
        script
    };
    // 200 ms + 362.5 ms is no whole millisecond: compare by what is due.
    timer_after(RttSampling::EveryAck)
        .at(562)
        .sends("0 1 2 3 4 5");
    timer_after(RttSampling::EveryAck)
        .at(563)
        .sends("0 1 2 3 4 5 r2");
    timer_after(RttSampling::OnePerWindow).timer(200 + 300);
}

#[test]
fn the_initial_timeout_is_that_of_the_syn_and_doubles() {
    // RFC 6298, rules 2.1 and 5.5; the older value is that of RFC 2988, rule 2.1.
    for (initial, times) in [(1, [1, 3, 7, 15]), (3, [3, 9, 21, 45])] {
        let mut script = SenderScript::bulk(&TcpParams {
            initial_rto: Span::from_s(initial),
            ..with_handshake()
        });
        script.sends("syn");
        for at in times {
            script
                .at(1000 * at - 1)
                .sends("")
                .at(1000 * at)
                .sends("syn");
        }
        assert_eq!(script.counters().timeouts, 4);
    }
}

#[test]
fn a_lost_syn_ack_is_sent_again_when_the_syn_comes_again() {
    // RFC 9293, section 3.5, figure 6: the client cannot tell which of the two was lost.
    let mut server = ReceiverScript::new(&with_handshake());
    let syn = Segment {
        flags: Flags::SYN,
        ..Segment::default()
    };
    server.at(50).receives(syn).sends("syn 0").timer(None);
    server.at(1050).receives(syn).sends("syn 0").timer(None);
    // Nothing of it counts as data.
    server.at(1200).data(0).sends("1").delivered(1);
    let mut client = SenderScript::bulk(&with_handshake());
    client.at(1000).sends("syn syn");
    client.at(1100).receives(syn_ack()).sends("0").cwnd(1.0);
}
