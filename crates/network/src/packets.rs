//! What is measured of each packet where the scenario asks for it (`record`): one-way delays and their variation, round
//! trips of TCP segments, and losses by class of packet.
//!
//! The engine tells of packets that endpoints send, that reach a queue, that are lost and that reach the other end, and of
//! acknowledgements. Nothing that moves packets reads what is noted here, and a run that does not ask for it has none.

use std::collections::BTreeMap;

use redtail_core::{Span, Time};
use redtail_spec::{EventKind, Record, Scenario};

use crate::events::PacketEvent;
use crate::group_report::Value;
use crate::histogram::ThreeDigits;
use crate::histograms::{ONE_WAY_DELAY, PDV, ROUND_TRIP};
use crate::metrics::*;
use crate::network::Network;
use crate::packet::SimPacket;
use crate::report::full_name;
use crate::result::Histograms;
use crate::statistics::Delays;

/// What a packet is for TCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketClass {
    /// A SYN or SYN-ACK.
    Syn,
    /// Without payload, and no SYN: acknowledgements above all.
    Ack,
    /// With payload that was never sent before.
    Data,
    /// With payload of which a part was sent before.
    Retransmission,
}

/// How many classes there are.
const CLASSES: usize = 4;

/// What a packet carries, as far as it is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carried {
    /// A TCP segment: its number on its flow, the first byte of its payload, and the length of this.
    Segment {
        /// Whether it is a SYN or SYN-ACK.
        syn: bool,
        /// The offset of the first byte of payload, without wrap-around.
        seq: u64,
        /// Bytes of payload.
        len: u32,
    },
    /// A datagram of media or data.
    Datagram,
    /// Something else, such as feedback over UDP. Its delays do not count.
    Other,
}

/// Data in one direction of a flow: the number of the flow, that of the connection if it is one of a user, and whether it
/// goes against the direction of its group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Way {
    /// Number of the flow.
    pub flow: u32,
    /// Number of the connection of a user.
    pub connection: Option<u64>,
    /// Whether it goes against the direction of its group.
    pub back: bool,
}

/// What is known of a packet in the network.
#[derive(Clone, Copy, Debug)]
struct Note {
    sent: Time,
    way: Way,
    group: u32,
    route: u32,
    carried: Carried,
    class: Option<PacketClass>,
}

/// A segment that is not acknowledged.
#[derive(Clone, Copy, Debug)]
struct Outstanding {
    end: u64,
    sent: Time,
    /// Whether it was sent once only: of another the acknowledgement may be that of any copy (Karn's algorithm).
    once: bool,
}

/// What is known of the data that goes one way.
#[derive(Clone, Debug, Default)]
struct Sent {
    group: u32,
    /// The end of what was sent.
    next: u64,
    /// By the first byte.
    outstanding: BTreeMap<u64, Outstanding>,
    /// The one-way delay of the packet that arrived last.
    latest: Option<Span>,
}

/// Times with their least and greatest.
#[derive(Clone, Debug, Default)]
struct Times {
    all: Delays,
    range: Option<(Span, Span)>,
}

impl Times {
    fn record(&mut self, took: Span) {
        self.all.record(took);
        let (least, most) = self.range.unwrap_or((took, took));
        self.range = Some((least.min(took), most.max(took)));
    }

    fn least(&self) -> Option<f64> {
        Some(self.range?.0.as_secs_f64())
    }

    fn most(&self) -> Option<f64> {
        Some(self.range?.1.as_secs_f64())
    }

    /// The time in seconds that the share `q` does not exceed: not beyond the greatest, though a step of the histogram may
    /// be.
    fn quantile(&self, q: f64) -> Option<f64> {
        Some(self.all.quantile(q)?.clamp(self.least()?, self.most()?))
    }
}

/// Packets of a class: of those whose end is known, how many were lost.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    all: u64,
    lost: u64,
}

impl Tally {
    fn share(self) -> Option<f64> {
        (self.all > 0).then(|| self.lost as f64 / self.all as f64)
    }
}

/// What is measured of a group.
#[derive(Clone, Debug, Default)]
struct OfGroup {
    one_way: Times,
    /// One-way delays without the propagation delay of the route, so that the steps of the histogram are narrow.
    beyond_propagation: Times,
    /// Absolute differences of the one-way delays of two packets in a row.
    variation: Times,
    round_trip: Times,
    /// From end to end, by class.
    classes: [Tally; CLASSES],
}

/// What is measured in a period.
#[derive(Clone, Debug)]
struct Period {
    begin: Time,
    groups: Vec<OfGroup>,
    /// By link, group and class.
    links: Vec<Vec<[Tally; CLASSES]>>,
}

impl Period {
    fn new(begin: Time, groups: usize, links: usize) -> Self {
        Self {
            begin,
            groups: vec![OfGroup::default(); groups],
            links: vec![vec![[Tally::default(); CLASSES]; groups]; links],
        }
    }
}

/// Measures each packet of a run.
#[derive(Debug)]
pub struct PacketMeter {
    record: Vec<Record>,
    /// Names of the groups, and whether they are UDP.
    groups: Vec<(String, bool)>,
    /// What stands in front of the metrics of each link.
    links: Vec<String>,
    /// The group of each route.
    group_of: Vec<u32>,
    /// The propagation delay of each route.
    propagation: Vec<Span>,
    /// By the place of the content.
    notes: Vec<Option<Note>>,
    ways: BTreeMap<Way, Sent>,
    /// From the beginning of the measurement period; `None` before.
    whole: Option<Period>,
    /// From the beginning of the phase, if there are phases.
    phase: Option<Period>,
}

impl PacketMeter {
    /// What `scenario` asks for on `network`; `None` if that is nothing.
    pub fn new(scenario: &Scenario, network: &Network) -> Option<Self> {
        if scenario.record.is_empty() {
            return None;
        }
        let groups = scenario.traffic.iter();
        let routes = network.paths.routes.iter();
        Some(Self {
            record: scenario.record.clone(),
            groups: groups
                .map(|group| (group.access().name.to_owned(), is_udp(group)))
                .collect(),
            links: network.links.iter().map(|it| it.prefix.clone()).collect(),
            group_of: routes.map(|route| route.group).collect(),
            propagation: network.paths.propagation(),
            notes: Vec::new(),
            ways: BTreeMap::new(),
            whole: None,
            phase: None,
        })
    }

    /// The measurement period begins, with the first of several phases if there are `phases`.
    pub fn begin(&mut self, phases: bool, now: Time) {
        let fresh = Period::new(now, self.groups.len(), self.links.len());
        self.phase = phases.then(|| fresh.clone());
        self.whole = Some(fresh);
    }

    /// A phase ends: its metrics, whose names begin with `prefix`. The next begins.
    pub fn end_phase(&mut self, prefix: &str, now: Time, metrics: &mut Vec<(String, f64)>) {
        let fresh = Period::new(now, self.groups.len(), self.links.len());
        if let Some(ended) = self.phase.replace(fresh) {
            self.tell(&ended, prefix, true, metrics);
        }
    }

    /// The run ends: its metrics and distributions.
    pub fn finish(self, metrics: &mut Vec<(String, f64)>, histograms: &mut Histograms) {
        let Some(whole) = &self.whole else {
            return;
        };
        self.tell(whole, "", false, metrics);
        for ((name, is_udp), group) in self.groups.iter().zip(&whole.groups) {
            let mut add = |what, histogram: Option<&ThreeDigits>| {
                histograms.add(format!("{name}.{what}"), histogram);
            };
            if !is_udp {
                add(ONE_WAY_DELAY, group.one_way.all.histogram());
                add(ROUND_TRIP, group.round_trip.all.histogram());
            }
            add(PDV, variation(&group.beyond_propagation).as_ref());
        }
    }

    fn wants(&self, what: Record) -> bool {
        self.record.contains(&what)
    }

    /// An endpoint has sent a packet, whose stamp is when; `connection` is that of a user.
    pub fn sent(&mut self, packet: &SimPacket, way: Way, carried: Carried) {
        let place = packet.content.0 as usize;
        if self.notes.len() <= place {
            self.notes.resize(place + 1, None);
        }
        let group = self.group_of[packet.route as usize];
        let class = match carried {
            Carried::Segment { syn: true, .. } => Some(PacketClass::Syn),
            Carried::Segment { len: 0, .. } => Some(PacketClass::Ack),
            Carried::Segment { seq, len, .. } => {
                let known = self.ways.entry(way).or_default();
                known.group = group;
                Some(known.send(seq, seq + u64::from(len), packet.stamp))
            }
            Carried::Datagram | Carried::Other => None,
        };
        self.notes[place] = Some(Note {
            sent: packet.stamp,
            way,
            group,
            route: packet.route,
            carried,
            class,
        });
    }

    /// A packet reaches the queue of a link.
    pub fn reaches_queue(&mut self, link: u32, packet: &SimPacket) {
        let Some(Some(note)) = self.notes.get(packet.content.0 as usize) else {
            return;
        };
        if let Some(class) = note.class {
            for period in self.whole.iter_mut().chain(&mut self.phase) {
                let tally = &mut period.links[link as usize][note.group as usize];
                tally[class as usize].all += 1;
            }
        }
    }

    /// Something has happened to a packet at a link.
    pub fn happened(&mut self, event: &PacketEvent<'_>) {
        if !matches!(event.kind, EventKind::Drop | EventKind::WireLoss) {
            return;
        }
        let note = self.take(event.packet);
        let Some((note, class)) = note.and_then(|note| Some((note, note.class?))) else {
            return;
        };
        let from = self.measured_from();
        for period in self.whole.iter_mut().chain(&mut self.phase) {
            // As the losses of a queue: a packet that arrived before the beginning counts neither as an arrival nor here.
            if event.kind == EventKind::Drop && event.since.is_none_or(|it| it >= period.begin) {
                let tally = &mut period.links[event.link as usize][note.group as usize];
                tally[class as usize].lost += 1;
            }
            if note.sent >= from {
                let tally = &mut period.groups[note.group as usize].classes[class as usize];
                tally.all += 1;
                tally.lost += 1;
            }
        }
    }

    /// A packet reaches the other end.
    pub fn arrives(&mut self, packet: &SimPacket, now: Time) {
        let Some(note) = self.take(packet) else {
            return;
        };
        let counts = note.sent >= self.measured_from();
        let took = now - note.sent;
        let beyond = took - self.propagation[note.route as usize];
        let before = match note.carried {
            Carried::Segment { len, .. } if len > 0 && !note.way.back => {
                let known = self.ways.get_mut(&note.way);
                known.map(|known| known.latest.replace(took))
            }
            Carried::Datagram if !note.way.back => {
                Some(self.ways.entry(note.way).or_default().latest.replace(took))
            }
            _ => None,
        };
        if !counts {
            return;
        }
        for period in self.whole.iter_mut().chain(&mut self.phase) {
            let group = &mut period.groups[note.group as usize];
            if let Some(class) = note.class {
                group.classes[class as usize].all += 1;
            }
            let Some(before) = before else {
                continue;
            };
            group.one_way.record(took);
            group.beyond_propagation.record(beyond);
            if let Some(before) = before {
                group.variation.record(took.max(before) - took.min(before));
            }
        }
    }

    /// An acknowledgement of the data that goes `way` reaches its sender: of all before `upto`, and of `blocks`.
    pub fn acknowledges(
        &mut self,
        way: Way,
        upto: u64,
        blocks: impl Iterator<Item = (u64, u64)>,
        now: Time,
    ) {
        let Some(known) = self.ways.get_mut(&way) else {
            return;
        };
        let group = known.group as usize;
        let from = self.whole.as_ref().map_or(Time::MAX, |whole| whole.begin);
        let mut acknowledged = Vec::new();
        known.acknowledge(0, upto, &mut acknowledged);
        for (start, end) in blocks {
            known.acknowledge(start, end, &mut acknowledged);
        }
        // Nothing of a user's connection is outstanding: it may never be heard of again.
        if way.connection.is_some() && upto >= known.next {
            self.ways.remove(&way);
        }
        if way.back {
            return;
        }
        for segment in acknowledged {
            if segment.once && segment.sent >= from {
                for period in self.whole.iter_mut().chain(&mut self.phase) {
                    period.groups[group].round_trip.record(now - segment.sent);
                }
            }
        }
    }

    /// The note of a packet that leaves the network.
    fn take(&mut self, packet: &SimPacket) -> Option<Note> {
        self.notes.get_mut(packet.content.0 as usize)?.take()
    }

    /// From when on packets that are sent count.
    fn measured_from(&self) -> Time {
        self.whole.as_ref().map_or(Time::MAX, |whole| whole.begin)
    }

    /// The metrics of a period, whose names begin with `prefix`.
    fn tell(
        &self,
        period: &Period,
        prefix: &str,
        is_phase: bool,
        metrics: &mut Vec<(String, f64)>,
    ) {
        let mut add = |prefix: &str, values: &[Value]| {
            for &(metric, value) in values {
                metrics.extend(value.map(|value| (full_name(prefix, metric), value)));
            }
        };
        for ((name, is_udp), group) in self.groups.iter().zip(&period.groups) {
            let prefix = format!("{prefix}{name}.");
            if self.wants(Record::OneWayDelay) {
                // Those of a UDP group in the whole period are always measured.
                if is_phase || !is_udp {
                    add(&prefix, &one_way(&group.one_way));
                }
                add(&prefix, &variations(group));
            }
            if *is_udp {
                continue;
            }
            if self.wants(Record::RoundTrip) {
                add(&prefix, &round_trips(&group.round_trip));
            }
            if self.wants(Record::LossByClass) {
                add(&prefix, &end_to_end(&group.classes));
            }
        }
        if self.wants(Record::LossByClass) {
            for (link, groups) in self.links.iter().zip(&period.links) {
                let mut all = [Tally::default(); CLASSES];
                for ((name, is_udp), classes) in self.groups.iter().zip(groups) {
                    for (all, one) in all.iter_mut().zip(classes) {
                        all.all += one.all;
                        all.lost += one.lost;
                    }
                    if !is_udp {
                        add(&format!("{prefix}{link}{name}."), &at_link(classes));
                    }
                }
                add(&format!("{prefix}{link}"), &at_link(&all));
            }
        }
    }
}

impl Sent {
    /// Payload from `start` to `end` is sent. Returns its class.
    fn send(&mut self, start: u64, end: u64, now: Time) -> PacketClass {
        let class = match start < self.next {
            true => PacketClass::Retransmission,
            false => PacketClass::Data,
        };
        if class == PacketClass::Retransmission {
            // Of segments of one size that overlap with it, the first may begin before it.
            let first = self.outstanding.range(..=start).next_back();
            let first = first.map_or(start, |(&first, _)| first);
            for segment in self.outstanding.range_mut(first..end) {
                segment.1.once &= segment.1.end <= start;
            }
        }
        let fresh = start.max(self.next);
        if end > fresh {
            let once = class == PacketClass::Data;
            self.outstanding.insert(
                fresh,
                Outstanding {
                    end,
                    sent: now,
                    once,
                },
            );
            self.next = end;
        }
        class
    }

    /// Moves the segments between `start` and `end` to those that are acknowledged.
    fn acknowledge(&mut self, start: u64, end: u64, acknowledged: &mut Vec<Outstanding>) {
        if start >= end {
            return;
        }
        while let Some((&first, &segment)) = self.outstanding.range(start..end).next() {
            if segment.end > end {
                break;
            }
            self.outstanding.remove(&first);
            acknowledged.push(segment);
        }
    }
}

/// The times above the least, in nanoseconds; `None` if there are none.
fn variation(times: &Times) -> Option<ThreeDigits> {
    let (least, most) = times.range?;
    let [least, most] = [least, most].map(|it| it.as_ps() / 1000);
    let mut found = ThreeDigits::default();
    for step in times.all.histogram()?.steps() {
        found.record_many(step.highest.clamp(least, most) - least, step.count);
    }
    Some(found)
}

fn one_way(times: &Times) -> [Value; 4] {
    [
        (ONE_WAY_DELAY_MEAN, times.all.mean()),
        (ONE_WAY_DELAY_P50, times.quantile(0.5)),
        (ONE_WAY_DELAY_P95, times.quantile(0.95)),
        (ONE_WAY_DELAY_P99, times.quantile(0.99)),
    ]
}

fn variations(group: &OfGroup) -> [Value; 8] {
    let times = &group.beyond_propagation;
    let steps = variation(times);
    let quantile = |q| {
        steps
            .as_ref()
            .map(|it| it.value_at_quantile(q) as f64 * 1e-9)
    };
    let mean = times
        .range
        .and_then(|(least, _)| times.all.mean_above(least));
    [
        (ONE_WAY_DELAY_MIN, group.one_way.least()),
        (ONE_WAY_DELAY_MAX, group.one_way.most()),
        (PDV_MEAN, mean),
        (PDV_P50, quantile(0.5)),
        (PDV_P95, quantile(0.95)),
        (PDV_P99, quantile(0.99)),
        (IPDV_MEAN, group.variation.all.mean()),
        (IPDV_P95, group.variation.quantile(0.95)),
    ]
}

fn round_trips(times: &Times) -> [Value; 6] {
    [
        (ROUND_TRIP_MEAN, times.all.mean()),
        (ROUND_TRIP_MIN, times.least()),
        (ROUND_TRIP_P50, times.quantile(0.5)),
        (ROUND_TRIP_P95, times.quantile(0.95)),
        (ROUND_TRIP_P99, times.quantile(0.99)),
        (ROUND_TRIP_MAX, times.most()),
    ]
}

fn end_to_end([syn, ack, data, retransmission]: &[Tally; CLASSES]) -> [Value; 4] {
    [
        (END_TO_END_SYN_LOSS, syn.share()),
        (END_TO_END_ACK_LOSS, ack.share()),
        (END_TO_END_DATA_LOSS, data.share()),
        (END_TO_END_RETRANSMISSION_LOSS, retransmission.share()),
    ]
}

fn at_link([syn, ack, data, retransmission]: &[Tally; CLASSES]) -> [Value; 8] {
    let drops = |tally: &Tally| (tally.all > 0).then_some(tally.lost as f64);
    [
        (SYN_LOSS, syn.share()),
        (ACK_LOSS, ack.share()),
        (DATA_LOSS, data.share()),
        (RETRANSMISSION_LOSS, retransmission.share()),
        (SYNS_DROPPED, drops(syn)),
        (ACKS_DROPPED, drops(ack)),
        (DATA_DROPPED, drops(data)),
        (RETRANSMISSIONS_DROPPED, drops(retransmission)),
    ]
}
