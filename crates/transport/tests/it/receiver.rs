//! When and what a receiver acknowledges.

use crate::common::{ReceiverScript, data, params};
use redtail_core::Span;
use redtail_transport::tcp::recovery::RecoveryKind;
use redtail_transport::{Segment, TcpParams};

fn prompt() -> ReceiverScript {
    ReceiverScript::new(&params(RecoveryKind::Sack))
}

fn delayed() -> ReceiverScript {
    ReceiverScript::new(&TcpParams {
        delayed_ack: true,
        delayed_ack_timeout: Span::from_ms(200),
        ..params(RecoveryKind::Sack)
    })
}

#[test]
fn without_delay_every_segment_is_acknowledged() {
    prompt().all([0, 1, 2]).sends("1, 2, 3").timer(None);
}

#[test]
fn delayed_acks_acknowledge_every_second_segment() {
    // RFC 5681, section 4.2: "an ACK SHOULD be generated for at least every second
    // full-sized segment".
    delayed().all(0..6).sends("2, 4, 6").timer(None);
}

#[test]
fn a_delayed_ack_goes_when_its_time_has_come() {
    // RFC 5681, section 4.2: "MUST be generated within 500 ms of the arrival of the
    // first unacknowledged packet".
    let mut script = delayed();
    script.at(50).data(0).sends("").timer(250);
    script.at(249).sends("").at(250).sends("1").timer(None);
    script
        .at(300)
        .data(1)
        .timer(500)
        .data(2)
        .sends("3")
        .timer(None);
}

#[test]
fn out_of_order_data_is_acknowledged_at_once() {
    // RFC 5681, section 4.2: "Out-of-order data segments SHOULD be acknowledged
    // immediately".
    let mut script = delayed();
    script.data(0).sends("");
    script.data(2).sends("1 [2-3]").timer(None);
    script.data(3).sends("1 [2-4]");
}

#[test]
fn data_that_fills_a_gap_is_acknowledged_at_once() {
    // RFC 5681, section 4.2: "send an immediate ACK when it receives a data segment
    // that fills in all or part of a gap in the sequence space".
    let mut script = delayed();
    script.all([2, 3, 5]).sends("0 [2-3], 0 [2-4], 0 [5-6 2-4]");
    script.data(0).sends("1 [5-6 2-4]");
    script.data(1).sends("4 [5-6]");
    script.data(4).sends("6");
    // In order again: delayed again.
    script.data(6).sends("").data(7).sends("8");
}

#[test]
fn old_data_is_acknowledged_at_once() {
    let mut script = delayed();
    script.all([0, 1]).sends("2");
    script.data(0).sends("2").delivered(2);
}

#[test]
fn sack_blocks_come_most_recent_first_and_are_three_at_most() {
    // RFC 2018, section 4: "The first SACK block [...] MUST specify the contiguous
    // block of data containing the segment which triggered this ACK"; then "the
    // most recently reported SACK blocks".
    let mut script = prompt();
    script.data(0).sends("1");
    script.data(2).sends("1 [2-3]");
    script.data(4).sends("1 [4-5 2-3]");
    script.data(6).sends("1 [6-7 4-5 2-3]");
    script.data(8).sends("1 [8-9 6-7 4-5]");
    // A block that grows, or is hit again, comes first.
    script.data(3).sends("1 [2-5 8-9 6-7]");
    script.data(8).sends("1 [8-9 2-5 6-7]");
    // What the cumulative acknowledgement covers is no longer reported.
    script.data(1).sends("5 [8-9 6-7]");
    script
        .data(5)
        .sends("7 [8-9]")
        .data(7)
        .sends("9")
        .delivered(9);
}

#[test]
fn without_sack_there_are_no_blocks() {
    let mut script = ReceiverScript::new(&params(RecoveryKind::Newreno));
    script.all([0, 2, 3, 1]).sends("1, 1, 1, 4");
}

#[test]
fn overlapping_data_counts_once() {
    let mut script = prompt();
    let overlapping = Segment {
        seq: 500,
        len: 2000,
        ..data(0)
    };
    script
        .data(0)
        .sends("1")
        .receives(overlapping)
        .sends("2:500");
    script
        .data(1)
        .sends("2:500")
        .data(2)
        .sends("3")
        .delivered(3);
}
