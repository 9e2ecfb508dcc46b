//! An application that writes now and then, and what idle times do to the window.

use crate::common::{SenderScript, params};
use redtail_core::Span;
use redtail_transport::TcpParams;
use redtail_transport::cc::Growth;
use redtail_transport::tcp::recovery::RecoveryKind;

fn newreno(initial_window: u32) -> TcpParams {
    TcpParams {
        initial_window,
        ..params(RecoveryKind::Newreno)
    }
}

#[test]
fn what_the_application_writes_is_sent_as_the_window_allows() {
    let mut script = SenderScript::without_data(&newreno(2));
    script.sends("").timer(None);
    script.writes(1).sends("0").timer(1000);
    script.writes(3).sends("1");
    script.at(100).ack(2).sends("2 3").complete(false);
    script.at(200).ack(4).sends("").timer(None).complete(false);
    script.closes().complete(true).closed(true);
}

#[test]
fn data_written_later_goes_on_where_the_stream_was() {
    let mut script = SenderScript::without_data(&newreno(10));
    script.writes(2).sends("0 1").at(100).ack(2);
    script.at(300).writes(1).sends("2").timer(1300);
    script.closes().at(400).ack(3).complete(true).closed(true);
}

#[test]
fn an_application_that_sends_less_than_the_window_does_not_make_it_grow() {
    // RFC 7661, section 4.3 (cwnd is not validated by what does not use it); RFC 5681,
    // section 3.1 would otherwise add a segment with each of these.
    let mut script = SenderScript::without_data(&newreno(4));
    for i in 0..20 {
        script.at(100 * i).writes(1).at(100 * i + 50).ack(i + 1);
        script.cwnd(4.0);
    }
    // Three of four segments are within one of the window: it is what limits.
    script.at(2000).writes(4).at(2050).ack(24).cwnd(5.0);
}

#[test]
fn after_an_idle_time_beyond_the_timeout_the_window_is_the_initial_one() {
    // RFC 5681, section 4.1: "a TCP SHOULD set cwnd to no more than RW before beginning
    // transmission if the TCP has not sent data in an interval exceeding the
    // retransmission timeout"; "RW = min(IW,cwnd)".
    let grown = || {
        let mut script = SenderScript::without_data(&newreno(2));
        script.writes(14).sends("0 1").at(100).ack(1).ack(2);
        script.sends("2 3 4 5").at(200).ack(3).ack(4).ack(5).ack(6);
        script
            .sends("6 7 8 9 10 11 12 13")
            .cwnd(8.0)
            .at(300)
            .ack(14);
        script.cwnd(9.0).sends("");
        script
    };
    // Last sent at 200 ms, RTO 1 s: not at 1200 ms, but after it.
    grown().at(1200).writes(20).cwnd(9.0);
    let mut script = grown();
    script.at(1201).writes(20).cwnd(2.0).sends("14 15");
    // From there it is slow start again.
    script.at(1300).ack(15).cwnd(3.0).sends("16 17");
    // A window below the initial one stays.
    let mut script = SenderScript::without_data(&newreno(4));
    script.writes(1).sends("0").at(1000).sends("r0").cwnd(1.0);
    script.at(1100).ack(1).cwnd(2.0).sends("");
    script.at(9000).writes(5).cwnd(2.0).sends("1 2");
}

#[test]
fn without_idle_restart_the_window_stays() {
    let mut script = SenderScript::without_data(&TcpParams {
        idle_restart: false,
        ..newreno(2)
    });
    script.writes(4).at(100).ack(1).ack(2).at(200).ack(4);
    script.cwnd(4.0).at(60_000).writes(9).cwnd(4.0);
    script.sends("0 1 2 3 4 5 6 7");
}

#[test]
fn a_long_quiet_time_is_no_time_of_growth_for_cubic() {
    // RFC 9438, section 5.8: periods in which cwnd is not fully used do not count in t.
    let mut script = SenderScript::without_data(&TcpParams {
        growth: Growth::Cubic.into(),
        idle_restart: false,
        min_rto: Span::from_ms(200),
        ..params(RecoveryKind::Sack)
    });
    script.writes(1000).at(100);
    for i in 1..10 {
        script.sack(0, &[(1, i + 1)]);
    }
    script.at(200).ack(10).at(300).ack(14);
    for round in 0..200 {
        let next = script.next_byte();
        if next == 1000 {
            break;
        }
        script.at(400 + 100 * round).ack(next);
    }
    let end = script.next_byte();
    assert_eq!(end, 1000);
    let now = script.now_ms();
    script.at(now + 100).ack(1000);
    let before = script.window();
    script.at(now + 600_000).writes(100).at(now + 600_100);
    let next = script.next_byte();
    script.ack(next);
    // Ten minutes on the cubic curve would have meant growth to one and a half.
    let after = script.window();
    assert!(after < before + 2.0, "{before} {after}");
}
