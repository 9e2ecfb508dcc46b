//! pfifo_fast: the band of every TOS octet, the order of bands, the limit of each.

use crate::common::{Heard, Probe, build};
use redtail_core::{Dscp, Ecn, Time};
use redtail_qdisc::queues::pfifo_fast::PfifoFastParams;
use redtail_qdisc::{DropReason, Limit, QueueDiscipline, QueueParams, Report};

/// Priorities of `include/uapi/linux/pkt_sched.h`.
const BESTEFFORT: usize = 0;
const BULK: usize = 2;
const INTERACTIVE_BULK: usize = 4;
const INTERACTIVE: usize = 6;

/// `ip_tos2prio` of Linux 6.1, `net/ipv4/route.c`, by bits 1 to 4 of the TOS octet.
const TOS_TO_PRIORITY: [usize; 16] = [
    BESTEFFORT,
    BESTEFFORT,
    BESTEFFORT,
    BESTEFFORT,
    BULK,
    BULK,
    BULK,
    BULK,
    INTERACTIVE,
    INTERACTIVE,
    INTERACTIVE,
    INTERACTIVE,
    INTERACTIVE_BULK,
    INTERACTIVE_BULK,
    INTERACTIVE_BULK,
    INTERACTIVE_BULK,
];

/// `prio2band` of Linux 6.1, `net/sched/sch_generic.c`.
const PRIORITY_TO_BAND: [usize; 16] = [1, 2, 2, 2, 1, 2, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1];

fn band_of(tos: u8) -> usize {
    PRIORITY_TO_BAND[TOS_TO_PRIORITY[usize::from((tos & 0x1e) >> 1)]]
}

fn packet(id: u64, tos: u8) -> Probe {
    let ecn = [Ecn::NotEct, Ecn::Ect1, Ecn::Ect0, Ecn::Ce][usize::from(tos & 3)];
    Probe {
        dscp: Dscp::of_octet(tos),
        ..Probe::new(id, 500, ecn)
    }
}

fn told(queue: &impl QueueDiscipline<Probe>, figure: &str) -> f64 {
    let mut found = None;
    queue.report(
        Time::ZERO,
        &mut Report::new(&mut |name, value| {
            if name == figure {
                found = Some(value);
            }
        }),
    );
    found.unwrap_or_else(|| panic!("no figure {figure}"))
}

#[test]
fn every_octet_has_the_band_of_the_kernel_s_tables() {
    let mut queue = build(&QueueParams::PfifoFast(PfifoFastParams::default()));
    let mut heard = Heard::default();
    for tos in 0..=255 {
        queue.enqueue(packet(u64::from(tos), tos), Time::ZERO, &mut heard);
    }
    // Strict priority, in order of arrival within a band.
    let mut expected: Vec<u8> = (0..=255).collect();
    expected.sort_by_key(|&tos| band_of(tos));
    for tos in expected {
        let left = queue.dequeue(Time::ZERO, &mut heard).expect("waiting");
        assert_eq!(left.id, u64::from(tos));
    }
    assert_eq!(queue.dequeue(Time::ZERO, &mut heard), None);
    // Half of the types of service are best effort or interactive bulk.
    for (figure, packets) in [
        ("band0.packets", 64.0),
        ("band1.packets", 128.0),
        ("band2.packets", 64.0),
    ] {
        assert_eq!(told(&queue, figure), packets, "{figure}");
    }
}

#[test]
fn well_known_codepoints_have_the_bands_of_the_page() {
    for (name, band) in [
        ("BE", 1),
        ("LE", 1),
        ("CS1", 1),
        ("CS6", 1),
        ("EF", 1),
        ("VA", 0),
        ("AF41", 2),
        ("AF42", 0),
        ("AF43", 1),
        ("AF11", 2),
    ] {
        let dscp: Dscp = name.parse().expect(name);
        assert_eq!(band_of(dscp.get() << 2), band, "{name}");
        let mut queue = build(&QueueParams::PfifoFast(PfifoFastParams::default()));
        let mut heard = Heard::default();
        queue.enqueue(packet(0, dscp.get() << 2), Time::ZERO, &mut heard);
        queue.dequeue(Time::ZERO, &mut heard).expect("waiting");
        assert_eq!(told(&queue, &format!("band{band}.packets")), 1.0, "{name}");
    }
}

#[test]
fn each_band_has_the_whole_limit() {
    let params = PfifoFastParams {
        limit: Limit::packets(10),
    };
    let mut queue = build(&QueueParams::PfifoFast(params));
    let mut heard = Heard::default();
    // Bulk fills its band; the others have theirs.
    for (tos, arrive, stay) in [(0x08, 15, 10), (0x00, 12, 10), (0x10, 4, 4)] {
        let before = queue.backlog().packets;
        for id in 0..arrive {
            queue.enqueue(packet(id, tos), Time::ZERO, &mut heard);
        }
        assert_eq!(queue.backlog().packets - before, stay, "TOS {tos:#x}");
    }
    assert_eq!(heard.dropped.len(), 5 + 2);
    assert!(heard.dropped.iter().all(|drop| drop.1 == DropReason::Limit));
    assert_eq!(told(&queue, "band2.drops"), 5.0);
    assert_eq!(told(&queue, "band1.drops"), 2.0);
    assert_eq!(
        QueueParams::PfifoFast(PfifoFastParams::default()).check(),
        Ok(())
    );
    let none = PfifoFastParams {
        limit: Limit::packets(0),
    };
    assert!(QueueParams::PfifoFast(none).check().is_err());
}
