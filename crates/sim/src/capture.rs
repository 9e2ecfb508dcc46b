//! Packet captures: the packets that pass chosen points of the network, as pcapng files.
//!
//! The engine offers every packet that reaches or leaves a link to the recorder, if there is one.
//! Recording does not change a run. The simulator's packets have no header bytes; `headers` creates
//! those that real endpoints would send.

mod headers;

use std::sync::Arc;

use redtail_core::Time;
use redtail_qdisc::FlowTable;
use redtail_spec::Scenario;
use redtail_traffic::TrafficParams;
use redtail_transport::tcp::ecn::{EcnCodepoint, EcnFeedback};
use redtail_transport::{Flags, Segment};

pub use self::headers::IpVersion;
use self::headers::{
    Conversation, Frame, MAX_HEADERS, Options, Side, TcpFields, scaled_window, write_datagram,
    write_tcp, write_udp,
};
use crate::flows::{Flows, Source};
use crate::packet::Content;
pub use redtail_network::End;
pub use redtail_network::capture::{CaptureError, Point, PointsAndFile};
use redtail_network::capture::{Files, LinkType};
use redtail_network::network::Network;
use redtail_network::{PacketEvent, SimPacket};

/// Largest IP packet.
const MAX_IP_PACKET: u64 = 65_535;

/// Most bytes that IP and TCP headers take.
const MAX_IP_AND_TCP_HEADERS: u64 = 40 + 60;

/// Bytes of the IPv4 and UDP headers, which a UDP packet's size on the link includes.
const IP_AND_UDP_HEADERS: u32 = 28;

/// What to capture, and where to write it.
#[derive(Default)]
pub struct Capture<'a> {
    /// The version of IP that the headers show.
    pub ip: IpVersion,
    /// The points of each file. A file with several has an interface for each.
    pub files: Vec<PointsAndFile<'a>>,
}

/// The facts about a flow that the headers of its packets need.
#[derive(Clone, Copy, Debug)]
struct FlowFacts {
    conversation: Conversation,
    protocol: Protocol,
}

/// What a captured packet carries.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Carried<'a> {
    /// What an endpoint of redtail sends.
    Content(&'a Content),
    /// The payload of a UDP packet, which an endpoint of a user sends.
    Payload(&'a [u8]),
}

/// The protocol of a flow.
#[derive(Clone, Copy, Debug)]
enum Protocol {
    Udp,
    Tcp(TcpFacts),
}

#[derive(Clone, Copy, Debug)]
struct TcpFacts {
    /// Whether it carries data both ways; the side that receives more data opens it.
    duplex: bool,
    mss: u16,
    receive_window: u32,
    shift: u8,
    sack: bool,
    timestamps: bool,
    /// With AccECN: whether data carries ECT(1).
    accecn: Option<bool>,
}

/// Writes the packets that pass the chosen points.
pub(crate) struct Recorder<'a> {
    ip: IpVersion,
    files: Files<'a>,
    flows: Vec<FlowFacts>,
    /// The table of the flows whose numbers are beyond `flows`.
    table: Arc<FlowTable>,
    /// Whether a route leads to the side that sends data or serves, by route.
    back: Vec<bool>,
    frame: Frame,
}

impl<'a> Recorder<'a> {
    /// Begins every file.
    pub(crate) fn new(
        capture: Capture<'a>,
        scenario: &Scenario,
        network: &Network,
        flows: &Flows,
    ) -> Result<Self, CaptureError> {
        refuse_what_ip_cannot_carry(scenario)?;
        Ok(Self {
            ip: capture.ip,
            files: Files::new(
                capture.files,
                network,
                scenario,
                LinkType::Ethernet,
                MAX_HEADERS as u32 + largest_payload(scenario),
            )?,
            flows: flow_facts(scenario, flows),
            table: Arc::clone(&network.flows),
            back: network.paths.back_routes(),
            frame: Frame::default(),
        })
    }

    /// A packet passes the given end of a link. `connection` numbers those of users in the order of
    /// their opening.
    pub(crate) fn record(
        &mut self,
        link: u32,
        end: End,
        packet: &SimPacket,
        carried: Carried<'_>,
        connection: Option<u64>,
        now: Time,
    ) {
        if self.files.wants(link, end) {
            let mut flow = self.flows[self.table.own_flow(packet.flow) as usize];
            flow.conversation.connection = connection;
            let back = self.back[packet.route as usize];
            write_frame(&mut self.frame, self.ip, &flow, back, packet, carried);
            let bytes = (self.frame.bytes(), self.frame.original_len());
            self.files.write(link, end, now, packet.content, bytes);
        }
        if end == End::Out {
            self.files.sent(link, packet.content);
        }
    }

    /// A queue has dropped or marked a packet, or a wire has lost it.
    pub(crate) fn tell(&mut self, event: &PacketEvent<'_>) {
        self.files.tell(event);
    }

    /// Notes the states of control laws; called when the links are at rest.
    #[inline]
    pub(crate) fn note_laws(&mut self, network: &Network) {
        self.files.note_laws(&network.links);
    }

    /// Whether a file could not be written; the run then ends.
    pub(crate) fn has_failed(&self) -> bool {
        self.files.has_failed()
    }

    /// Ends every file.
    pub(crate) fn finish(self) -> Result<(), CaptureError> {
        self.files.finish()
    }
}

/// The most bytes of payload that are written for a packet: those of endpoints of users, which others can read.
fn largest_payload(scenario: &Scenario) -> u32 {
    let payloads = scenario.traffic.iter().map(|group| match group {
        TrafficParams::Endpoint(group) => (group.packet - group.header).as_u64() as u32,
        _ => 0,
    });
    payloads.max().unwrap_or(0)
}

fn refuse_what_ip_cannot_carry(scenario: &Scenario) -> Result<(), CaptureError> {
    for group in &scenario.traffic {
        let name = group.access().name;
        if group.tcp().is_some() && group.drawn_sizes().is_some() {
            return Err(CaptureError::Impossible(format!(
                "traffic.{name}.packet is a law: sequence numbers count `mss` for each segment, which headers cannot \
                 show, so it cannot be captured; accepted: a constant"
            )));
        }
        let (what, size, most) = match group.tcp() {
            Some(tcp) => (
                "tcp.mss",
                tcp.params.mss,
                MAX_IP_PACKET - MAX_IP_AND_TCP_HEADERS,
            ),
            None => ("packet", group.packet_size(), MAX_IP_PACKET),
        };
        if size.as_u64() > most {
            return Err(CaptureError::Impossible(format!(
                "traffic.{name}.{what} = \"{size}\": does not fit an IP packet with its headers, \
                 so it cannot be captured; accepted: up to \"{most} B\""
            )));
        }
    }
    Ok(())
}

fn flow_facts(scenario: &Scenario, flows: &Flows) -> Vec<FlowFacts> {
    let facts = (0..flows.count() as u32).map(|flow| {
        let (source, group) = (flows.source(flow), flows.group(flow));
        let conversation = Conversation {
            group,
            flow: flow - flows.first_of(group),
            connection: None,
        };
        let protocol = match source {
            Source::Udp(_) | Source::Call(_) | Source::Own(_) => Protocol::Udp,
            Source::Tcp(_) | Source::User(_) => {
                let tcp = scenario.traffic[group as usize].tcp();
                let params = &tcp.expect("a TCP flow has TCP parameters").params;
                let receive_window = params.first_window() as u32;
                Protocol::Tcp(TcpFacts {
                    duplex: matches!(source, Source::User(_)),
                    mss: params.mss.as_u64() as u16,
                    receive_window,
                    shift: params.window_scale(),
                    sack: params.recovery.uses_sack(),
                    timestamps: params.timestamps,
                    accecn: (params.ecn && params.ecn_feedback == EcnFeedback::Accecn)
                        .then_some(params.ecn_codepoint == EcnCodepoint::Ect1),
                })
            }
        };
        FlowFacts {
            conversation,
            protocol,
        }
    });
    facts.collect()
}

fn write_frame(
    frame: &mut Frame,
    ip: IpVersion,
    flow: &FlowFacts,
    back: bool,
    packet: &SimPacket,
    carried: Carried<'_>,
) {
    let side = if back { Side::Receiver } else { Side::Sender };
    frame.begin(ip, flow.conversation.host(side), packet.class, packet.id);
    let content = match carried {
        Carried::Content(content) => content,
        Carried::Payload(payload) => return write_datagram(frame, payload),
    };
    match (&flow.protocol, content) {
        (Protocol::Tcp(tcp), Content::Segment(segment)) => {
            let fields = tcp_fields(tcp, flow.conversation, side, segment);
            write_tcp(frame, &fields, segment.len);
        }
        (Protocol::Udp, Content::Datagram(_) | Content::Call(_) | Content::Copy) => {
            write_udp(frame, packet.size.saturating_sub(IP_AND_UDP_HEADERS));
        }
        (_, Content::Own(_))
        | (Protocol::Tcp(_), Content::Datagram(_) | Content::Call(_) | Content::Copy)
        | (Protocol::Udp, Content::Segment(_)) => {
            unreachable!("a packet carries what its flow sends")
        }
    }
}

/// Converts stream offsets to sequence numbers: the SYN has the initial one and the first byte of
/// data the next, with or without a SYN.
fn tcp_fields(
    tcp: &TcpFacts,
    conversation: Conversation,
    side: Side,
    segment: &Segment,
) -> TcpFields {
    let number = |side: Side, offset: u64| {
        let first = conversation.initial_sequence_number(side).wrapping_add(1);
        first.wrapping_add(offset as u32)
    };
    let syn = segment.flags.contains(Flags::SYN);
    // The segments of a data sender have no window, because no data is sent to it.
    let window = match side {
        Side::Sender if !tcp.duplex => tcp.receive_window,
        _ => segment.window,
    };
    let acknowledged = side.other();
    let mut options = Options::default();
    if syn {
        options.push_mss(tcp.mss);
    }
    let permits_sack = syn && tcp.sack;
    if tcp.timestamps {
        options.push_timestamps(segment.ts_val, segment.ts_ecr, permits_sack);
    } else if permits_sack {
        options.push_sack_permitted();
    }
    if syn {
        options.push_window_scale(tcp.shift);
    }
    if let Some(ect1) = tcp.accecn
        && (side == Side::Receiver || tcp.duplex)
        && !syn
    {
        let bytes = segment.ecn_bytes;
        options.push_accecn(ect1, bytes.ect.get(), bytes.ce.get());
    }
    if !segment.sack.is_empty() {
        let blocks = segment.sack.iter(segment.ack);
        let edges = blocks.map(|block| {
            (
                number(acknowledged, block.start),
                number(acknowledged, block.end),
            )
        });
        options.push_sack(edges);
    }
    let seq = number(side, segment.seq);
    TcpFields {
        seq: if syn { seq.wrapping_sub(1) } else { seq },
        ack: if segment.flags.contains(Flags::ACK) {
            number(acknowledged, segment.ack)
        } else {
            0
        },
        flags: segment.flags.bits(),
        // The window of a SYN is never scaled (RFC 7323, section 2.2).
        window: scaled_window(window, if syn { 0 } else { tcp.shift }),
        options,
    }
}
