//! Tail drop admits what fits and nothing else.

use crate::common::{Heard, Probe, build};
use redtail_core::{Ecn, Time};
use redtail_qdisc::queues::tail_drop::TailDropParams;
use redtail_qdisc::{DropReason, Limit, QueueDiscipline, QueueParams};

/// Offers packets of `sizes` to a queue with `limit`; says which were admitted.
fn admitted(limit: Limit, sizes: &[u64]) -> Vec<bool> {
    let mut queue = build(&QueueParams::TailDrop(TailDropParams { limit }));
    let offer = |(id, &size): (usize, &u64)| {
        let mut heard = Heard::default();
        let packet = Probe::new(id as u64, size, Ecn::Ect0);
        queue.enqueue(packet, Time::ZERO, &mut heard);
        assert!(heard.marked.is_empty());
        assert!(heard.dropped.iter().all(|d| d.1 == DropReason::Limit));
        heard.dropped.is_empty()
    };
    sizes.iter().enumerate().map(offer).collect()
}

#[test]
fn a_limit_in_packets_counts_packets_of_any_size() {
    let sizes = [1, 60_000, 1, 1];
    assert_eq!(
        admitted(Limit::packets(3), &sizes),
        [true, true, true, false]
    );
}

#[test]
fn a_limit_in_bytes_is_filled_to_the_last_byte_and_small_packets_slip_in() {
    let sizes = [1000, 600, 401, 400, 1];
    assert_eq!(
        admitted(Limit::bytes(2000), &sizes),
        [true, true, false, true, false]
    );
}

#[test]
fn of_two_limits_the_first_reached_holds() {
    let both = Limit {
        packets: Some(3),
        bytes: Some(2000),
        time: None,
    };
    assert_eq!(admitted(both, &[10, 10, 10, 10]), [true, true, true, false]);
    assert_eq!(
        admitted(both, &[1500, 501, 500, 1]),
        [true, false, true, false]
    );
}
