//! When a receiver acknowledges by the rules of Linux 6.1.

use crate::common::{ReceiverScript, data, params};
use redtail_core::{Ecn, Span, Time};
use redtail_transport::tcp::ecn::{EcnFeedback, EcnReduction};
use redtail_transport::tcp::recovery::RecoveryKind;
use redtail_transport::{Endpoint, Flags, Segment, TcpParams};

/// Delays of 40 ms and more; so many quick acknowledgements.
fn adaptive(quick_acks: u32) -> TcpParams {
    TcpParams {
        delayed_ack: true,
        adaptive_acks: true,
        delayed_ack_timeout: Span::from_ms(40),
        quick_acks,
        ..params(RecoveryKind::Sack)
    }
}

fn receiver(quick_acks: u32) -> ReceiverScript {
    ReceiverScript::new(&adaptive(quick_acks))
}

#[test]
fn the_first_acknowledgements_go_at_once_and_then_every_second() {
    let mut script = receiver(3);
    script.all(0..3).sends("1, 2, 3").timer(None);
    script.data(3).sends("").timer(40).data(4).sends("5");
    script.data(5).at(39).sends("").at(40).sends("6");
}

#[test]
fn the_delay_doubles_when_it_runs_out_and_follows_the_segments() {
    let mut script = receiver(1);
    script.data(0).sends("1");
    // 100 ms later: nothing to learn. It runs out: 80 ms.
    script.at(100).data(1).timer(140).at(140).sends("2");
    // 70 ms after the one before: 80 / 2 + 70.
    script.at(170).data(2).timer(280);
    // 10 ms: 110 / 2 + 20. Two are acknowledged at once.
    script.at(180).data(3).sends("4").timer(None);
    // 65 ms: 75 / 2 + 65 = 102.5; then 5 ms: 51.25 + 20.
    script.at(245).data(4).at(250).data(5).sends("6");
    script.at(252).data(6).at(307).sends("").at(308).sends("7");
}

#[test]
fn the_delay_is_at_most_200_ms() {
    let mut script = receiver(1);
    let mut now = 0;
    script.data(0).sends("1");
    for index in 1..6 {
        // 300 ms apart; 40, 80, 160, 320 ms, and no more than 200 ms of it.
        now += 300;
        let ato = (40 << (index - 1)).min(200);
        script.at(now).data(index).timer(now + ato).at(now + ato);
        script.sends(&(index + 1).to_string());
    }
}

#[test]
fn the_delay_is_at_most_the_round_trip_of_the_handshake() {
    let params = TcpParams {
        handshake: true,
        ..adaptive(1)
    };
    let syn = Segment {
        flags: Flags::SYN,
        ..Segment::default()
    };
    // Of 10 ms, but not below 40; of 90 ms.
    for (round_trip, delays) in [(10, [40, 40, 40]), (90, [40, 80, 90])] {
        let mut script = ReceiverScript::new(&params);
        script.receives(syn).sends("syn 0");
        script.at(round_trip).data(0).sends("1");
        let mut now = round_trip;
        for (index, delay) in (1..).zip(delays) {
            now += 250;
            script
                .at(now)
                .data(index)
                .timer(now + delay)
                .at(now + delay);
        }
    }
}

#[test]
fn after_a_duplicate_acknowledgements_go_at_once_again() {
    // tcp_data_queue, tcp_send_dupack: tcp_enter_quickack_mode.
    let mut script = receiver(3);
    script.all(0..5).sends("1, 2, 3, 5");
    script.data(0).sends("5");
    script.all(5..9).sends("6, 7, 9");
}

#[test]
fn a_gap_longer_than_the_timeout_brings_quick_acknowledgements() {
    // Without a handshake the timeout is the initial one, 1 s.
    for (gap, sends) in [(1000, ""), (1001, "4, 5")] {
        let mut script = receiver(2);
        script.all(0..2).sends("1, 2").data(2).at(40).sends("3");
        script
            .at(gap)
            .data(3)
            .sends(if sends.is_empty() { "" } else { "4" });
        script.data(4).sends("5");
        script.data(5).sends("");
    }
}

#[test]
fn out_of_order_and_in_a_gap_it_acknowledges_at_once() {
    let mut script = receiver(1);
    script.data(0).sends("1");
    script.data(2).sends("1 [2-3]").data(3).sends("1 [2-4]");
    script.data(1).sends("4").data(4).sends("").timer(40);
}

#[test]
fn short_and_pushed_segments_are_acknowledged_at_once() {
    // tcp_measure_rcv_mss, __tcp_cleanup_rbuf.
    let mut script = receiver(1);
    script.data(0).sends("1").data(1).sends("");
    let short = Segment {
        len: 400,
        ..data(2)
    };
    script.receives(short).sends("2:400");
    let at = |seq, len, flags| Segment {
        seq,
        len,
        flags,
        ..Segment::default()
    };
    script.receives(at(2400, 100, Flags::ACK)).sends("2:500");
    script.receives(at(2500, 500, Flags::ACK)).sends("3");
    // A full one alone waits, unless it is pushed.
    script.receives(data(3)).sends("").at(40).sends("4");
    script
        .receives(at(4000, 1000, Flags::ACK.with(Flags::PSH)))
        .sends("5");
}

#[test]
fn a_reader_that_has_not_read_the_push_does_not_acknowledge_it() {
    let params = TcpParams {
        read_rate: Some(redtail_core::Rate::from_bps(8000)),
        receive_window: redtail_core::Bytes::new(60_000),
        ..adaptive(1)
    };
    let mut script = ReceiverScript::new(&params);
    script.data(0).sends("1");
    let short = Segment {
        len: 400,
        ..data(1)
    };
    script.receives(short).sends("").timer(40);
}

fn with_ecn(quick_acks: u32, feedback: EcnFeedback) -> ReceiverScript {
    let reduction = match feedback {
        EcnFeedback::Echo => EcnReduction::Loss,
        _ => EcnReduction::Dctcp,
    };
    ReceiverScript::new(&TcpParams {
        ecn: true,
        ecn_feedback: feedback,
        ecn_reduction: reduction,
        ..adaptive(quick_acks)
    })
}

fn with(index: u64, ecn: Ecn) -> Segment {
    Segment { ecn, ..data(index) }
}

#[test]
fn the_first_mark_brings_two_acknowledgements_at_once() {
    // __tcp_ecn_check_ce.
    let mut script = with_ecn(1, EcnFeedback::Echo);
    let next = |script: &mut ReceiverScript, index, ecn, sends: &str| {
        script.receives(with(index, ecn)).sends(sends);
    };
    next(&mut script, 0, Ecn::Ect0, "1");
    next(&mut script, 1, Ecn::Ce, "2 ece");
    next(&mut script, 2, Ecn::Ce, "3 ece");
    // A mark while the echo goes on is not the first.
    next(&mut script, 3, Ecn::Ce, "");
    next(&mut script, 4, Ecn::Ect0, "5 ece");
    // The sender has reduced: at once (tcp_ecn_accept_cwr).
    script.receives(Segment {
        flags: Flags::ACK.with(Flags::CWR),
        ..with(5, Ecn::Ect0)
    });
    script.sends("6");
    next(&mut script, 6, Ecn::Ect0, "");
    // Not ECN-capable after ECN-capable data: sent again, as a rule.
    next(&mut script, 7, Ecn::Ect0, "8");
    next(&mut script, 8, Ecn::NotEct, "9");
    next(&mut script, 9, Ecn::Ect0, "10");
    next(&mut script, 10, Ecn::Ect0, "");
}

#[test]
fn dctcp_acknowledges_a_change_of_marking_at_once_and_what_came_before_it() {
    // dctcp_ece_ack_update.
    let mut script = with_ecn(1, EcnFeedback::Dctcp);
    script.receives(with(0, Ecn::Ect0)).sends("1");
    script.receives(with(1, Ecn::Ect0)).sends("");
    script.receives(with(2, Ecn::Ce)).sends("2, 3 ece");
    script.receives(with(3, Ecn::Ce)).sends("");
    script.receives(with(4, Ecn::Ce)).sends("5 ece");
    script.receives(with(5, Ecn::Ect0)).sends("6");
}

#[test]
fn the_delay_runs_by_ticks() {
    let mut script = ReceiverScript::new(&TcpParams {
        timer_tick: Span::from_ms(4),
        ..adaptive(1)
    });
    script.at(2).data(0).sends("1");
    script.at(3).data(1).timer(44);
}

#[test]
fn a_side_that_answers_lets_its_data_carry_the_acknowledgement() {
    // tcp_event_data_sent, inet_csk_enter_pingpong_mode.
    let params = TcpParams {
        handshake: true,
        ..adaptive(16)
    };
    let (mut client, mut server) = (Endpoint::client(&params), Endpoint::server(&params));
    client.open(&params);
    let now = Time::ZERO;
    let syn = client.poll_transmit(now).expect("a SYN");
    server.on_segment(&syn, now);
    let syn_ack = server.poll_transmit(now).expect("a SYN-ACK");
    client.on_segment(&syn_ack, now);
    let request = |index: u64| Segment {
        seq: 300 * index,
        len: 300,
        ack: 300 * index,
        window: 1 << 20,
        flags: Flags::ACK.with(Flags::PSH),
        ..Segment::default()
    };
    let at = |ms: u64| now + Span::from_ms(ms);
    // The first request is acknowledged at once, whatever its answer.
    server.on_segment(&request(0), at(10));
    let ack = server.poll_transmit(at(10)).expect("an acknowledgement");
    assert_eq!((ack.ack, ack.len), (300, 0));
    server.write(300);
    let answer = server.poll_transmit(at(20)).expect("the answer");
    assert!(answer.flags.contains(Flags::PSH), "{answer:?}");
    // From then on the answer is waited for.
    server.on_segment(&request(1), at(100));
    assert_eq!(server.poll_transmit(at(100)), None);
    server.write(300);
    let answer = server.poll_transmit(at(120)).expect("the answer");
    assert_eq!((answer.ack, answer.len), (600, 300));
    // Until one fails to come.
    server.on_segment(&request(2), at(200));
    assert_eq!(server.poll_transmit(at(200)), None);
    assert_eq!(server.next_wakeup(), Some(at(240)));
    server.on_wakeup(at(240));
    assert!(server.poll_transmit(at(240)).is_some());
    server.on_segment(&request(3), at(300));
    assert!(server.poll_transmit(at(300)).is_some());
}

#[test]
fn what_is_acknowledged_at_once_is_not_carried_by_an_answer_that_is_ready_at_once() {
    // tcp_rcv_established: tcp_ack_snd_check comes before the application is woken.
    let serve = |adaptive_acks: bool| {
        let params = TcpParams {
            adaptive_acks,
            handshake: true,
            ..adaptive(16)
        };
        let (mut client, mut server) = (Endpoint::client(&params), Endpoint::server(&params));
        let now = Time::ZERO;
        client.open(&params);
        client.write(300);
        let syn = client.poll_transmit(now).expect("a SYN");
        server.on_segment(&syn, now);
        let syn_ack = server.poll_transmit(now).expect("a SYN-ACK");
        assert_eq!(server.poll_transmit(now), None);
        client.on_segment(&syn_ack, now);
        while let Some(segment) = client.poll_transmit(now) {
            server.on_segment(&segment, now);
        }
        server.write(500);
        server.close();
        std::iter::from_fn(|| server.poll_transmit(now))
            .map(|segment| (segment.ack, segment.len))
            .collect::<Vec<_>>()
    };
    assert_eq!(serve(true), [(300, 0), (300, 500)]);
    assert_eq!(serve(false), [(300, 500)]);
}
