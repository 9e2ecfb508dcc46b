//! Packet captures: the packets that pass chosen points of the network, as pcapng files.
//!
//! The engine offers every packet that reaches or leaves a link to the recorder, if there is one.
//! Recording does not change a run. The simulator's packets have no header bytes; `headers` creates
//! those that real endpoints would send, and `pcapng` writes them.

mod headers;
mod pcapng;

use std::fmt;
use std::io::{self, Write};
use std::str::FromStr;
use std::sync::Arc;

use redtail_core::{Rate, Time};
use redtail_qdisc::FlowTable;
use redtail_spec::Scenario;
use redtail_transport::tcp::ecn::{EcnCodepoint, EcnFeedback};
use redtail_transport::{Flags, Segment};

pub use self::headers::IpVersion;
use self::headers::{
    Conversation, Frame, Options, Side, TcpFields, scaled_window, write_tcp, write_udp,
};
use crate::flows::{Flows, Source};
use crate::packet::Content;
pub use redtail_network::End;
use redtail_network::SimPacket;
use redtail_network::network::Network;

/// Picoseconds in a nanosecond.
const PS_PER_NS: u64 = 1000;

/// Largest IP packet.
const MAX_IP_PACKET: u64 = 65_535;

/// Most bytes that IP and TCP headers take.
const MAX_IP_AND_TCP_HEADERS: u64 = 40 + 60;

/// Bytes of the IPv4 and UDP headers, which a UDP packet's size on the link includes.
const IP_AND_UDP_HEADERS: u32 = 28;

/// Where packets are captured; as text `LINK`, `LINK:in` or `LINK:out`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Point {
    /// Name of the link, as in results.
    pub link: String,
    /// The end of it; in text the default is `out`.
    pub end: End,
}

impl FromStr for Point {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (link, end) = text.split_once(':').unwrap_or((text, "out"));
        let end = match end {
            "in" => End::In,
            "out" => End::Out,
            _ => {
                return Err(format!(
                    "{text:?}: a link has no end {end:?}; accepted: {link}:in (what arrives at \
                     its queue), {link}:out or {link} (what it has sent off)"
                ));
            }
        };
        Ok(Self {
            link: link.to_owned(),
            end,
        })
    }
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let end = match self.end {
            End::In => "in",
            End::Out => "out",
        };
        write!(f, "{}:{end}", self.link)
    }
}

/// What to capture, and where to write it.
#[derive(Default)]
pub struct Capture<'a> {
    /// The version of IP that the headers show.
    pub ip: IpVersion,
    /// The points of each file. A file with several has an interface for each.
    pub files: Vec<(Vec<Point>, Box<dyn Write + Send + 'a>)>,
}

/// Why there is no capture, or no complete one.
#[derive(Debug)]
pub enum CaptureError {
    /// A point does not exist or cannot be expressed; the text says why.
    Impossible(String),
    /// A file could not be written.
    Io {
        /// Its index in [`Capture::files`].
        file: usize,
        /// The error.
        error: io::Error,
    },
}

impl fmt::Display for CaptureError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Impossible(text) => f.write_str(text),
            Self::Io { file, error } => write!(f, "capture file {file}: {error}"),
        }
    }
}

impl std::error::Error for CaptureError {}

/// The facts about a flow that the headers of its packets need.
#[derive(Clone, Copy, Debug)]
struct FlowFacts {
    conversation: Conversation,
    protocol: Protocol,
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

/// A point in the recorder: the file, and the interface in that file.
#[derive(Clone, Copy, Debug)]
struct Place {
    file: usize,
    interface: u32,
}

/// Writes the packets that pass the chosen points.
pub(crate) struct Recorder<'a> {
    ip: IpVersion,
    files: Vec<pcapng::Writer<Box<dyn Write + Send + 'a>>>,
    /// By link, for each of its ends.
    places: Vec<[Vec<Place>; 2]>,
    flows: Vec<FlowFacts>,
    /// The table of the flows whose numbers are beyond `flows`.
    table: Arc<FlowTable>,
    /// Whether a route leads to the side that sends data or serves, by route.
    back: Vec<bool>,
    frame: Frame,
    /// The first file that could not be written; nothing is written after that.
    failed: Option<(usize, io::Error)>,
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
        let mut recorder = Self {
            ip: capture.ip,
            files: Vec::new(),
            places: network.links.iter().map(|_| Default::default()).collect(),
            flows: flow_facts(scenario, flows),
            table: Arc::clone(&network.flows),
            back: network.back_routes(),
            frame: Frame::default(),
            failed: None,
        };
        for (file, (points, out)) in capture.files.into_iter().enumerate() {
            let found = points
                .iter()
                .map(|point| find(&point.link, network))
                .collect::<Result<Vec<usize>, _>>()?;
            let begun = pcapng::Writer::new(out).and_then(|mut writer| {
                for (point, &link) in points.iter().zip(&found) {
                    let rate = network.links[link].transmitter.rate();
                    begin_interface(&mut writer, point, rate)?;
                }
                Ok(writer)
            });
            recorder
                .files
                .push(begun.map_err(|error| CaptureError::Io { file, error })?);
            for (interface, (point, link)) in (0..).zip(points.iter().zip(found)) {
                recorder.places[link][point.end as usize].push(Place { file, interface });
            }
        }
        Ok(recorder)
    }

    /// A packet passes the given end of a link. `connection` numbers those of users in the order of
    /// their opening.
    pub(crate) fn record(
        &mut self,
        link: u32,
        end: End,
        packet: &SimPacket,
        content: &Content,
        connection: Option<u64>,
        now: Time,
    ) {
        let places = &self.places[link as usize][end as usize];
        if places.is_empty() || self.failed.is_some() {
            return;
        }
        let mut flow = self.flows[self.table.own_flow(packet.flow) as usize];
        flow.conversation.connection = connection;
        let back = self.back[packet.route as usize];
        write_frame(&mut self.frame, self.ip, &flow, back, packet, content);
        let ns = now.as_ps() / PS_PER_NS;
        for place in places {
            let written = self.files[place.file].packet(
                place.interface,
                ns,
                self.frame.bytes(),
                self.frame.original_len(),
            );
            if let Err(error) = written {
                self.failed = Some((place.file, error));
                return;
            }
        }
    }

    /// Whether a file could not be written; the run then ends.
    pub(crate) fn has_failed(&self) -> bool {
        self.failed.is_some()
    }

    /// Ends every file.
    pub(crate) fn finish(self) -> Result<(), CaptureError> {
        if let Some((file, error)) = self.failed {
            return Err(CaptureError::Io { file, error });
        }
        for (file, writer) in self.files.into_iter().enumerate() {
            writer
                .finish()
                .map_err(|error| CaptureError::Io { file, error })?;
        }
        Ok(())
    }
}

fn begin_interface<W: Write>(
    writer: &mut pcapng::Writer<W>,
    point: &Point,
    rate: Rate,
) -> io::Result<()> {
    let what = match point.end {
        End::In => "packets arriving at the queue",
        End::Out => "packets sent off, at the end of their transmission",
    };
    writer.interface(&point.to_string(), what, rate.as_bps())
}

fn find(link: &str, network: &Network) -> Result<usize, CaptureError> {
    let found = network.links.iter().position(|known| known.name == link);
    found.ok_or_else(|| {
        let names: Vec<&str> = network.links.iter().map(|known| &*known.name).collect();
        CaptureError::Impossible(format!(
            "no link is called {link:?}; this experiment has: {} (a return direction is a link \
             if the file describes one)",
            names.join(", ")
        ))
    })
}

fn refuse_what_ip_cannot_carry(scenario: &Scenario) -> Result<(), CaptureError> {
    for group in &scenario.traffic {
        let name = group.access().name;
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
    let mut of_group = vec![0; scenario.traffic.len()];
    let facts = flows.sources.iter().zip(&flows.groups);
    let facts = facts.map(|(source, &group)| {
        let number = &mut of_group[group as usize];
        let conversation = Conversation {
            group,
            flow: *number,
            connection: None,
        };
        *number += 1;
        let protocol = match *source {
            Source::Udp(_) => Protocol::Udp,
            Source::Tcp(_) | Source::User(_) => {
                let spec = scenario.traffic[group as usize].tcp();
                let params = &spec.expect("a TCP flow has TCP parameters").params;
                let receive_window = params.receive_window.as_u64() as u32;
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
    content: &Content,
) {
    let side = if back { Side::Receiver } else { Side::Sender };
    frame.begin(ip, flow.conversation.host(side), packet.class, packet.id);
    match (&flow.protocol, content) {
        (Protocol::Tcp(tcp), Content::Segment(segment)) => {
            let fields = tcp_fields(tcp, flow.conversation, side, segment);
            write_tcp(frame, &fields, segment.len);
        }
        (Protocol::Udp, Content::Datagram(_)) => {
            write_udp(frame, packet.size.saturating_sub(IP_AND_UDP_HEADERS));
        }
        (Protocol::Tcp(_), Content::Datagram(_)) | (Protocol::Udp, Content::Segment(_)) => {
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
        if tcp.sack {
            options.push_sack_permitted();
        }
        options.push_window_scale(tcp.shift);
    }
    if tcp.timestamps {
        options.push_timestamps(segment.ts_val, segment.ts_ecr);
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
