//! What the network sees of traffic that redtail does not make: that of programs of the user.
//!
//! Nothing is known of such traffic but its packets, where they enter the network and where they leave it. So what they
//! do not tell is left out, and not zero. The estimators of `redtail.lines.recordings` read a capture of one point
//! between both ends; these see both ends, while the run lasts, and keep little of each connection.

mod quic;
mod tcp;

use std::collections::BTreeMap;
use std::ops::Range;

use redtail_core::{Span, Time};
use redtail_network::group_report::{Value, bits_per_second};
use redtail_network::metrics::*;
use redtail_network::statistics::Delays;
use redtail_qdisc::TcpHeader;

use crate::addresses::Side;
use crate::packet::{Headers, Socket, TCP, UDP};

/// Connections that are followed at a time. With more, what is counted by connection is left out.
const MOST_CONNECTIONS: usize = 65_536;

/// Two ends and the protocol between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    sending: Socket,
    receiving: Socket,
    protocol: u8,
}

/// What is remembered of a packet while it is in the network.
#[derive(Clone, Copy, Debug, Default)]
pub struct Note {
    /// Whether it was sent in the period.
    in_period: bool,
    /// Whether it has a datagram of UDP, or a part of one.
    datagram: bool,
    key: Option<Key>,
}

impl Note {
    /// What is remembered of a copy of the packet, which counts as no datagram.
    pub fn of_copy(self) -> Self {
        Self {
            datagram: false,
            ..self
        }
    }
}

/// A connection, by its protocol.
#[derive(Debug)]
enum Followed {
    Tcp(Box<tcp::Connection>),
    Udp(Box<quic::Connection>),
}

/// What is counted of a direction in the period.
#[derive(Clone, Debug, Default)]
struct Counts {
    /// Packets that were sent, and those that arrived, by the ECN field.
    sent: [u64; 4],
    arrived: [u64; 4],
    /// Payload that arrived, each byte of TCP once.
    payload: u64,
    /// Datagrams that were sent in the period and arrived, or were lost.
    datagrams: u64,
    lost_datagrams: u64,
    /// Fragments of datagrams that arrived: what they carry is not known.
    fragments: u64,
    /// Round trips of the sender, of TCP and of QUIC.
    tcp_trips: Trips,
    quic_trips: Trips,
    /// Whether a connection had this feedback.
    classic: bool,
    accurate: bool,
    /// Segments of the receiver with ECE, of the sender with CWR, and marks that the receiver told by ACE.
    ece: u64,
    cwr: u64,
    ace: u64,
}

/// Round trips.
#[derive(Clone, Debug, Default)]
struct Trips {
    all: Delays,
    least: Option<Span>,
}

impl Trips {
    fn record(&mut self, trip: Span) {
        self.all.record(trip);
        self.least = Some(self.least.map_or(trip, |least| least.min(trip)));
    }

    /// Least, mean, median and 95th percentile.
    fn values(&self) -> [Option<f64>; 4] {
        let all = &self.all;
        let least = self.least.map(Span::as_secs_f64);
        [least, all.mean(), all.quantile(0.5), all.quantile(0.95)]
    }
}

/// The traffic of a group of programs. Of two directions the first is that of the group, from the sending side.
#[derive(Debug)]
pub struct Observer {
    period: Range<Time>,
    connections: BTreeMap<Key, Followed>,
    /// Whether there were more than are followed.
    too_many: bool,
    counts: [Counts; 2],
}

impl Observer {
    /// Nothing has been seen yet; it counts in this period.
    pub fn new(period: Range<Time>) -> Self {
        Self {
            period,
            connections: BTreeMap::new(),
            too_many: false,
            counts: Default::default(),
        }
    }

    /// A host on this side sends a packet. What is returned has to be told when it leaves the network.
    pub fn enters(&mut self, side: Side, headers: &Headers<'_>, now: Time) -> Note {
        let way = side as usize;
        let in_period = self.period.contains(&now);
        let datagram = headers.protocol_of_whole() == UDP;
        self.counts[way].sent[ecn(headers)] += u64::from(in_period);
        let (from, to) = (headers.source(), headers.destination());
        let (sending, receiving) = match side {
            Side::Sending => (from, to),
            Side::Receiving => (to, from),
        };
        let protocol = headers.protocol();
        let key = Key {
            sending,
            receiving,
            protocol,
        };
        let key = self.follow(key);
        match key.and_then(|key| self.connections.get_mut(&key)) {
            Some(Followed::Tcp(connection)) => {
                if let Some(header) = headers.tcp(0) {
                    let ace = connection.sent(way, headers.sequence(), &header, now);
                    let feedback = connection.feedback;
                    if in_period {
                        self.note_feedback(way, feedback, header.flags, ace);
                    }
                }
            }
            Some(Followed::Udp(connection)) => {
                let trips = connection.sent(way, headers.body(), now);
                for (counts, trips) in self.counts.iter_mut().zip(trips) {
                    for trip in trips.into_iter().filter(|_| in_period) {
                        counts.quic_trips.record(trip);
                    }
                }
            }
            None => {}
        }
        Note {
            in_period,
            datagram,
            key,
        }
    }

    /// A packet that was sent in a direction reaches its receiver.
    pub fn leaves(&mut self, way: usize, note: Note, headers: &Headers<'_>, now: Time) {
        let in_period = self.period.contains(&now);
        let counts = &mut self.counts[way];
        counts.arrived[ecn(headers)] += u64::from(in_period);
        counts.datagrams += u64::from(note.datagram && note.in_period);
        let (mut payload, mut trip) = (0, None);
        match note.key.and_then(|key| self.connections.get_mut(&key)) {
            Some(Followed::Tcp(connection)) => {
                if let Some(header) = headers.tcp(0) {
                    let told = connection.arrived(way, headers.sequence(), &header, now);
                    (payload, trip) = (told.fresh, told.round_trip);
                }
            }
            Some(Followed::Udp(connection)) => {
                connection.arrived(way, headers.body());
                payload = u64::from(headers.payload());
            }
            None if headers.protocol() == UDP => payload = u64::from(headers.payload()),
            None => {}
        }
        if in_period {
            let is_part = note.datagram && headers.protocol() != UDP;
            self.counts[way].fragments += u64::from(is_part);
            self.counts[way].payload += payload;
            if let Some(trip) = trip {
                self.counts[1 - way].tcp_trips.record(trip);
            }
        }
    }

    /// A packet that was sent in a direction was dropped at a queue, or lost on a wire.
    pub fn lost(&mut self, way: usize, note: Note) {
        self.counts[way].lost_datagrams += u64::from(note.datagram && note.in_period);
    }

    /// Enters a connection if there is room, and it is one that is followed.
    fn follow(&mut self, key: Key) -> Option<Key> {
        let new = match key.protocol {
            TCP => || Followed::Tcp(Box::default()),
            UDP => || Followed::Udp(Box::default()),
            _ => return None,
        };
        if self.connections.len() >= MOST_CONNECTIONS && !self.connections.contains_key(&key) {
            let is_open = |it: &Followed| !matches!(it, Followed::Tcp(tcp) if tcp.is_over());
            self.connections.retain(|_, it| is_open(it));
            if self.connections.len() >= MOST_CONNECTIONS {
                self.too_many = true;
                return None;
            }
        }
        self.connections.entry(key).or_insert_with(new);
        Some(key)
    }

    /// Counts what a segment that was sent on a way tells of marks.
    fn note_feedback(&mut self, way: usize, feedback: tcp::Feedback, flags: u16, ace: u64) {
        let [own, other] = match &mut self.counts {
            [first, second] if way == 0 => [first, second],
            [first, second] => [second, first],
        };
        let is_syn = flags & TcpHeader::SYN != 0;
        match feedback {
            tcp::Feedback::Classic if !is_syn => {
                (own.classic, other.classic) = (true, true);
                own.cwr += u64::from(flags & TcpHeader::CWR != 0);
                other.ece += u64::from(flags & TcpHeader::ECE != 0);
            }
            tcp::Feedback::Accurate => {
                other.accurate = true;
                other.ace += ace;
            }
            _ => {}
        }
    }

    /// The metrics of the group, with those that are undefined, in a period that took this time.
    pub fn values(&self, period: Span) -> Vec<Value> {
        let mut values = Vec::new();
        for (counts, metrics) in self.counts.iter().zip([FORWARD, BACK]) {
            let each = counts.values(period, self.too_many);
            values.extend(metrics.iter().copied().zip(each));
        }
        values
    }
}

impl Counts {
    /// A value for each metric of a direction.
    fn values(&self, period: Span, too_many: bool) -> [Option<f64>; SEEN] {
        let (sent, arrived) = (sum(&self.sent), sum(&self.arrived));
        let share = |part: u64, of: u64| (of > 0).then(|| part as f64 / of as f64);
        // Of what was sent and has not arrived, nothing is known but that it has not.
        let known = sent + arrived > 0 && self.fragments == 0 && !too_many;
        let counted = |count: u64, known: bool| (known && !too_many).then_some(count as f64);
        let ended = self.datagrams + self.lost_datagrams;
        let [tcp_min, tcp_mean, tcp_p50, tcp_p95] = self.tcp_trips.values();
        let [quic_min, quic_mean, quic_p50, quic_p95] = self.quic_trips.values();
        let [_, ect1, ect0, ce] = self.sent.map(|count| share(count, sent));
        [
            known.then(|| bits_per_second(self.payload, period)),
            share(self.lost_datagrams, ended),
            tcp_min,
            tcp_mean,
            tcp_p50,
            tcp_p95,
            quic_min,
            quic_mean,
            quic_p50,
            quic_p95,
            ect0,
            ect1,
            ce,
            share(self.arrived[3], arrived),
            counted(self.ece, self.classic),
            counted(self.cwr, self.classic),
            counted(self.ace, self.accurate),
        ]
    }
}

fn sum(counts: &[u64; 4]) -> u64 {
    counts.iter().sum()
}

/// The ECN field of a packet.
fn ecn(headers: &Headers<'_>) -> usize {
    usize::from(headers.traffic_class() & 3)
}
