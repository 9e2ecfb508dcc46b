//! The TCP header of a packet, for queues that read it.

use redtail_qdisc::TcpHeader;
use redtail_spec::Scenario;
use redtail_transport::tcp::ecn::EcnFeedback;
use redtail_transport::{Flags, Segment};

use redtail_network::SimPacket;

/// The options of all segments of a group except SYNs.
#[derive(Clone, Copy, Debug)]
pub struct TcpOptions {
    /// Timestamps (RFC 7323).
    timestamps: bool,
    /// Accurate ECN (RFC 9768).
    accecn: bool,
}

/// By group; `None` for one that is not TCP.
pub fn options(scenario: &Scenario) -> Vec<Option<TcpOptions>> {
    let of_group = scenario.traffic.iter().map(|group| {
        let params = &group.tcp()?.params;
        Some(TcpOptions {
            timestamps: params.timestamps,
            accecn: params.ecn && params.ecn_feedback == EcnFeedback::Accecn,
        })
    });
    of_group.collect()
}

/// The header of a packet that carries this segment.
pub fn of_segment(options: TcpOptions, packet: &SimPacket, segment: &Segment) -> TcpHeader {
    let mut header = TcpHeader {
        // An endpoint has one connection at a time, and a route is one direction of it.
        tuple: u64::from(packet.endpoint) << 32 | u64::from(packet.route),
        flags: segment.flags.bits(),
        ack: segment.ack,
        payload: segment.len,
        timestamps: options
            .timestamps
            .then_some((segment.ts_val, segment.ts_ecr)),
        other_options: options.accecn || segment.flags.contains(Flags::SYN),
        ..TcpHeader::default()
    };
    for (place, block) in header.sack.iter_mut().zip(segment.sack.iter(segment.ack)) {
        *place = (block.start, block.end);
    }
    header
}

#[cfg(test)]
mod tests {
    use redtail_core::Time;
    use redtail_transport::{SackBlock, SackBlocks};

    use super::*;
    use crate::packet::{Content, Contents};
    use redtail_network::TrafficClass;

    fn packet(endpoint: u32, route: u32) -> SimPacket {
        SimPacket {
            stamp: Time::ZERO,
            content: Contents::default().put(Content::Segment(Segment::default())),
            flow: 7,
            endpoint,
            size: 52,
            route,
            leg: 0,
            class: TrafficClass::default(),
            id: 0,
        }
    }

    #[test]
    fn a_header_has_what_the_segment_carries() {
        let mut sack = SackBlocks::default();
        for (start, end) in [(300, 400), (150, 200)] {
            sack.push(100, SackBlock { start, end });
        }
        let segment = Segment {
            ack: 100,
            len: 20,
            ts_val: 8,
            ts_ecr: 9,
            flags: Flags::ACK.with(Flags::ECE),
            sack,
            ..Segment::default()
        };
        let with = |timestamps, accecn| {
            let options = TcpOptions { timestamps, accecn };
            of_segment(options, &packet(1, 2), &segment)
        };
        let header = with(true, false);
        assert_eq!(header.flags, TcpHeader::ACK | TcpHeader::ECE);
        assert_eq!((header.ack, header.payload), (100, 20));
        assert_eq!(header.timestamps, Some((8, 9)));
        let blocks: Vec<_> = header.blocks().collect();
        assert_eq!(blocks, [(300, 400), (150, 200)]);
        assert!(!header.other_options && with(true, true).other_options);
        assert_eq!(with(false, false).timestamps, None);
    }

    #[test]
    fn packets_of_one_connection_and_direction_have_one_tuple() {
        let options = TcpOptions {
            timestamps: false,
            accecn: false,
        };
        let tuple = |endpoint, route| {
            of_segment(options, &packet(endpoint, route), &Segment::default()).tuple
        };
        assert_eq!(tuple(1, 2), tuple(1, 2));
        assert_ne!(tuple(1, 2), tuple(1, 3));
        assert_ne!(tuple(1, 2), tuple(2, 2));
        assert_ne!(tuple(1, 2), tuple(2, 1));
    }
}
