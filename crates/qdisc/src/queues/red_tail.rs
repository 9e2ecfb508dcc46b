//! RED+Tail: two virtual queues in one buffer, drop tail for short flows and UDP, Adaptive RED for
//! long flows.
//!
//! Source: J.-S. Jou and J. Baras, "A Parallel Virtual Queue Structure for Active Queue
//! Management", CSHCN TR 2003-4, with table II. Which flows are short, the rate of each queue and the order
//! of service are in [`crate::laws::red_tail`], the law of the long queue in [`crate::laws::red`] and
//! [`crate::laws::red::adapt`]. The paper gives no values for N, T and the bounds of C1; the values here are
//! derived from its description.
//!
//! ```text
//! short queue:  TCP flows of up to N packets, and UDP; loses what finds the buffer full
//! long queue:   TCP flows beyond N packets; Adaptive RED, whose q is the long queue's alone
//! buffer:       q1 + q2 <= limit
//! ```
//!
//! **Order.** A flow that becomes long can still have packets in the short queue. Then its packet at the head
//! of the long queue waits for them, and the short queue is served. One of the two heads can always leave:
//! the packet that arrived first.
//!
//! **Idle.** For RED the link is idle while the long queue is empty at the end of a transmission,
//! whether or not the short one has packets, and could have sent at its full rate.

use std::collections::VecDeque;
use std::sync::Arc;

use redtail_core::{
    Bytes, Metric, Packet, ParamError, ParamWarning, QueueSize, Span, Time, metrics, params,
};

use crate::fifo::Fifo;
use crate::gauge;
use crate::laws::red::Spacing;
use crate::laws::red::adapt::{Aimd, OF_MAX_P};
use crate::laws::red_tail::{FlowClass, FlowClasses, ServiceShare, Turns};
use crate::queues::adaptive_red::{AdaptiveRedParams, adaptive_red_keys};
use crate::queues::red::{AboveMaxTh, Gentle, Red, check_unit_interval, red_keys};
use crate::refuse;
use crate::{
    Backlog, DropReason, FlowTable, Internals, Limit, LinkFacts, Protocol, QueueContext,
    QueueDiscipline, QueueKind, Report, Sink,
};

params! {
    /// RED+Tail, the parallel virtual queue (Jou and Baras 2003).
    pub struct RedTailParams {
        /// Limit on the waiting packets of both queues together: in packets, in bytes, in time at the link's rate, or a list of these.
        limit: Limit = Limit::bytes(160_000), "Jou and Baras 2003, table II.";
        /// Number of packets after which a TCP flow counts as long (N).
        long_after: u64 = 64, "derived, the paper gives none: its initial ssthresh of 64 kB in packets of 1 kB, which 1.3 % of its Web files exceed (below its bound of 2 % false alarms).";
        /// Time without packets after which a flow is forgotten; when it sends again, it counts as short (T).
        idle_timeout: Span = Span::from_s(5), "derived, the paper gives none: above an initial retransmission timeout, far below its mean think time of 50 s.";
        /// Number of flows that are remembered at the same time; for a further flow, the one of eight flows that has been silent for longest is forgotten.
        #[schemars(range(min = 1, max = 16_777_216))]
        flows: u64 = 16_384, "ours, below 1 MB of memory.";
        /// Backlog of the short queue above which its share of the link grows in proportion to the backlog (minth1), in packets, bytes or time at the link's rate.
        short_min_th: QueueSize = QueueSize::Bytes(2_000), "Jou and Baras 2003, table II.";
        /// Backlog of the short queue at which its share would be the whole link (maxth1), in the unit of `short_min_th`; divided by the link's rate, it is the target delay of the short queue.
        short_max_th: QueueSize = QueueSize::Bytes(30_000), "Jou and Baras 2003, table II.";
        /// Share of the link for the short queue while its backlog is below `short_min_th` (C1min). Left out, `short_min_th` divided by `short_max_th`, and at most `short_share_max`: the share then has no step at `short_min_th`.
        short_share_min: Option<f64>, "derived, the paper gives none.";
        /// Largest share of the link for the short queue (C1max), so that long flows do not time out.
        short_share_max: f64 = 0.9, "derived, the paper gives none but \"most of the bandwidth\".";
        /// Average of the long queue below which no packet is dropped, in packets, bytes or time at the link's rate.
        min_th: QueueSize = QueueSize::Bytes(20_000), "Jou and Baras 2003, table II.";
        /// Average at which the drop probability reaches max_p, in the unit of `min_th`.
        max_th: QueueSize = QueueSize::Bytes(80_000), "Jou and Baras 2003, table II.";
        adaptive_red_keys!(max_p, w_q);
        adaptive_red_keys!(alpha = 0.01, "Jou and Baras 2003, table II.");
        adaptive_red_keys!(beta = 0.9, "Jou and Baras 2003, table II.");
        adaptive_red_keys!(bottom, top, interval);
        red_keys!(gentle = Gentle::TwiceMaxTh, "Jou and Baras 2003 (a gentle region up to 2 max_th).");
        red_keys!(spacing, byte_mode);
        adaptive_red_keys!(mean_packet);
        /// Mark ECN-capable packets of the long queue instead of dropping them early.
        ecn: bool = false, "RFC 3168, section 5; off as in ns-2.35 (`setbit_`).";
        red_keys!(above_max_th);
    }
}

/// The largest number of flows in memory; they take a gigabyte.
const MAX_FLOWS: u64 = 1 << 24;

impl RedTailParams {
    /// The parameters of the long queue as a queue of its own.
    fn red(&self) -> AdaptiveRedParams {
        AdaptiveRedParams {
            min_th: Some(self.min_th),
            max_th: Some(self.max_th),
            max_p: self.max_p,
            w_q: self.w_q,
            alpha: self.alpha,
            beta: self.beta,
            bottom: self.bottom,
            top: self.top,
            interval: self.interval,
            gentle: self.gentle,
            spacing: self.spacing,
            byte_mode: self.byte_mode,
            mean_packet: self.mean_packet,
            ecn: self.ecn,
            above_max_th: self.above_max_th,
            ..AdaptiveRedParams::new(self.limit)
        }
    }

    /// The short queue's share on this link.
    fn share(&self, link: &LinkFacts) -> ServiceShare {
        let threshold = |size: QueueSize| gauge::number(size.at(link.rate)) as f64;
        let (min_th, max_th) = (threshold(self.short_min_th), threshold(self.short_max_th));
        let continuous = (min_th / max_th).min(self.short_share_max);
        ServiceShare {
            min_th,
            max_th,
            least: self.short_share_min.unwrap_or(continuous),
            most: self.short_share_max,
        }
    }
}

metrics! {
    /// What `red-tail` reports of its short queue.
    pub const OF_SHORT of Queue;

    /// The short queue's share of the packets that arrived.
    SHORT_SHARE = "short_share", Ratio, "Share of arrivals, short queue", "short share";
    /// Packets that the short queue dropped, divided by its arrivals.
    SHORT_LOSS = "short_loss", Fraction, "Packets lost, short queue", "short loss";
    /// The short queue's share of the bytes that left.
    SHORT_SERVICE = "short_service", Ratio, "Share of bytes sent, short queue", "short service";
    /// Mean queueing delay in the short queue.
    SHORT_DELAY_MEAN = "short_delay_mean", Delay, "Mean queueing delay, short queue", "short delay";
    /// TCP flows that sent to the short queue. A flow that becomes long counts in both queues; a flow whose counter was removed counts again.
    SHORT_FLOWS = "short_flows", Count, "TCP flows, short queue", "short flows";
    /// Packets waiting in the short queue, weighted by time.
    SHORT_LENGTH_MEAN = "short_length_mean", Packets, "Mean length, short queue", "short queue";
    /// Standard deviation of the short queue's length in packets, weighted by time.
    SHORT_LENGTH_STD = "short_length_std", Packets, "Standard deviation of length, short queue", "short queue sd";
    /// Bytes waiting in the short queue, weighted by time.
    SHORT_BYTES_MEAN = "short_bytes_mean", Bytes, "Mean length in bytes, short queue", "short bytes";
    /// Standard deviation of the short queue's length in bytes, weighted by time.
    SHORT_BYTES_STD = "short_bytes_std", Bytes, "Standard deviation of length in bytes, short queue", "short bytes sd";
}

metrics! {
    /// What `red-tail` reports of its long queue.
    pub const OF_LONG of Queue;

    /// The long queue's share of the packets that arrived.
    LONG_SHARE = "long_share", Ratio, "Share of arrivals, long queue", "long share";
    /// Packets that the long queue dropped, divided by its arrivals.
    LONG_LOSS = "long_loss", Fraction, "Packets lost, long queue", "long loss";
    /// The long queue's share of the bytes that left.
    LONG_SERVICE = "long_service", Ratio, "Share of bytes sent, long queue", "long service";
    /// Mean queueing delay in the long queue.
    LONG_DELAY_MEAN = "long_delay_mean", Delay, "Mean queueing delay, long queue", "long delay";
    /// TCP flows that sent to the long queue. A flow that becomes long counts in both queues; a flow whose counter was removed counts again.
    LONG_FLOWS = "long_flows", Count, "TCP flows, long queue", "long flows";
    /// Packets waiting in the long queue, weighted by time.
    LONG_LENGTH_MEAN = "long_length_mean", Packets, "Mean length, long queue", "long queue";
    /// Standard deviation of the long queue's length in packets, weighted by time.
    LONG_LENGTH_STD = "long_length_std", Packets, "Standard deviation of length, long queue", "long queue sd";
    /// Bytes waiting in the long queue, weighted by time.
    LONG_BYTES_MEAN = "long_bytes_mean", Bytes, "Mean length in bytes, long queue", "long bytes";
    /// Standard deviation of the long queue's length in bytes, weighted by time.
    LONG_BYTES_STD = "long_bytes_std", Bytes, "Standard deviation of length in bytes, long queue", "long bytes sd";
    /// Packets that the long queue marked.
    LONG_MARKS = "long_marks", Count, "Packets marked, long queue", "long marks";
    /// Share of the time in which the long queue's length was from `min_th` to `max_th`.
    LONG_IN_RANGE = "long_in_range", Fraction, "Time that the long queue is in its range", "long in range";
}

metrics! {
    /// What `red-tail` reports of its classification.
    pub const OF_FLOWS of Queue;

    /// Share of the short queue's arrivals that belong to long flows: the first N packets of each long flow.
    LONG_IN_SHORT = "long_in_short", Ratio, "Packets of long flows in the short queue", "long in short";
    /// Share of the long queue's arrivals that belong to short flows, whose retransmissions increased the counter beyond N.
    SHORT_IN_LONG = "short_in_long", Ratio, "Packets of short flows in the long queue", "short in long";
    /// Share of the short flows that were classified as long.
    FALSE_ALARMS = "false_alarms", Fraction, "Short flows found long", "false alarms";
    /// Flows that lost their counter to another flow because `flows` is too small.
    DISPLACED = "displaced", Count, "Flows that lost their counter to another", "displaced";
}

impl QueueKind for RedTailParams {
    type Queue<P: Packet> = RedTail<P>;

    const METRICS: &'static [&'static [&'static Metric]] = &[OF_SHORT, OF_LONG, OF_FLOWS, OF_MAX_P];

    fn example() -> &'static str {
        r#"limit = "250 packets"
min_th = "20 packets"
max_th = "100 packets""#
    }

    fn check(&self) -> Result<(), ParamError> {
        self.red().check()?;
        refuse::unless_some_time("idle_timeout", self.idle_timeout)?;
        if !(1..=MAX_FLOWS).contains(&self.flows) {
            let problem = match self.flows {
                0 => "leaves no flow a counter",
                _ => "is more than can be kept",
            };
            let accepted = format!("1 to {MAX_FLOWS}");
            return Err(ParamError::new("flows", problem, accepted));
        }
        if self.short_min_th.counts_packets() != self.short_max_th.counts_packets() {
            return Err(ParamError::new(
                "short_max_th",
                format!(
                    "is in another unit than short_min_th ({})",
                    self.short_min_th
                ),
                "both thresholds in packets, or both in bytes or time",
            ));
        }
        let most = self.short_share_max;
        check_unit_interval("short_share_max", most, "a share")?;
        let least = self.short_share_min.unwrap_or(most);
        check_unit_interval("short_share_min", least, "a share")?;
        if least > most {
            return Err(ParamError::new(
                "short_share_min",
                format!("is above short_share_max ({most})"),
                format!("a number above 0 and up to {most}"),
            ));
        }
        Ok(())
    }

    fn check_at(&self, link: &LinkFacts) -> Result<(), ParamError> {
        self.red().check_at(link)?;
        let ServiceShare { min_th, max_th, .. } = self.share(link);
        if min_th >= max_th {
            let max_th = self.short_max_th;
            return Err(ParamError::new(
                "short_min_th",
                format!("is not below short_max_th ({max_th})"),
                format!("less than \"{max_th}\""),
            ));
        }
        Ok(())
    }

    fn limit(&self) -> Option<Limit> {
        Some(self.limit)
    }

    fn warnings(&self, link: &LinkFacts) -> Vec<ParamWarning> {
        let mut warnings = self.red().warnings(link);
        let mut warn = |key, clause: String| warnings.push(ParamWarning::new(key, clause));
        let share = self.share(link);
        // Where C1 has reached its maximum, more backlog brings no more service.
        let reached = share.max_th * self.short_share_max;
        let most = gauge::limit_like(self.limit, self.short_max_th, link.rate);
        if most.is_some_and(|most| (most as f64) < reached) {
            warn(
                "short_max_th",
                format!(
                    "is so far above the limit (\"{}\") that the short queue never gets its \
                     largest share, {}",
                    self.limit, self.short_share_max
                ),
            );
        }
        if self.short_share_max == 1.0 {
            let clause =
                "lets short flows and UDP keep long flows from sending, until they time out";
            warn("short_share_max", clause.to_owned());
        }
        let udp = link.udp_rate.as_bps() as f64;
        if udp > self.short_share_max * link.rate.as_bps() as f64 {
            warn(
                "short_share_max",
                format!(
                    "is less than UDP sends (\"{}\"): the short queue fills the buffer, and \
                     both queues lose packets for want of room",
                    link.udp_rate
                ),
            );
        }
        if self.long_after == 0 {
            let clause = "makes every TCP flow long, so that the short queue is for UDP alone";
            warn("long_after", clause.to_owned());
        }
        if let Some(round_trip) = link
            .max_round_trip
            .filter(|time| self.idle_timeout <= *time)
        {
            warn(
                "idle_timeout",
                format!(
                    "is no longer than the longest round trip (\"{round_trip}\"): a flow that \
                     waits for an acknowledgement is forgotten"
                ),
            );
        }
        warnings
    }

    fn build<P: Packet>(&self, context: QueueContext) -> RedTail<P> {
        let mut table = context.child("flows").stream;
        let flows = FlowClasses::new(self.long_after, self.idle_timeout, self.flows, &mut table);
        let red = self.red();
        let setup = red.setup(&context.link).law;
        RedTail {
            limit: self.limit.at(context.rate),
            facts: Arc::clone(&context.link.flows),
            long_after: self.long_after,
            flows,
            share: self.share(&context.link),
            short_unit: self.short_max_th.at(context.rate),
            turns: Turns::default(),
            short: Fifo::new(),
            held: VecDeque::new(),
            halves: Default::default(),
            range: (self.max_th, setup.min_th, setup.max_th),
            judged: Judged::default(),
            long: Box::new(red.build(context)),
        }
    }
}

/// Statistics of a number over time since the measurement began: mean, standard deviation, and the time within
/// a range.
#[derive(Clone, Copy, Debug, Default)]
struct OverTime {
    value: f64,
    inside: bool,
    begun: Time,
    latest: Time,
    /// Times picoseconds.
    area: f64,
    area_of_squares: f64,
    time_inside: f64,
}

impl OverTime {
    fn begin(&mut self, now: Time) {
        *self = Self {
            value: self.value,
            inside: self.inside,
            begun: now,
            latest: now,
            ..Self::default()
        };
    }

    #[inline]
    fn set(&mut self, value: f64, inside: bool, now: Time) {
        let held = (now - self.latest).as_ps() as f64;
        self.area += self.value * held;
        self.area_of_squares += self.value * self.value * held;
        self.time_inside += if self.inside { held } else { 0.0 };
        (self.value, self.inside, self.latest) = (value, inside, now);
    }

    /// Mean, standard deviation and share of the time within the range, up to `now`.
    fn until(mut self, now: Time) -> (f64, f64, f64) {
        self.set(self.value, self.inside, now);
        let time = ((now - self.begun).as_ps() as f64).max(1.0);
        let mean = self.area / time;
        let variance = self.area_of_squares / time - mean * mean;
        (mean, variance.max(0.0).sqrt(), self.time_inside / time)
    }
}

/// Counters of one of the virtual queues: over the whole run, and since the measurement began.
#[derive(Clone, Copy, Debug, Default)]
struct Half {
    /// Packets that have ever left it.
    left: u64,
    packets: OverTime,
    bytes: OverTime,
    tally: HalfTally,
}

#[derive(Clone, Copy, Debug, Default)]
struct HalfTally {
    arrivals: u64,
    drops: u64,
    marks: u64,
    flows: u64,
    departures: u64,
    sent: u64,
    waited: f64,
}

/// Counters of the classification, for flows of known size.
#[derive(Clone, Copy, Debug, Default)]
struct Judged {
    /// Packets of flows of more than N segments that came to the short queue.
    long_in_short: u64,
    /// Packets of flows of up to N segments that came to the long queue.
    short_in_long: u64,
    /// Flows of up to N segments that were met: in the short queue, in the long queue.
    small_flows: [u64; 2],
}

/// Counts the drops and marks of the long queue, and passes them on.
struct Counting<'a, S> {
    tally: &'a mut HalfTally,
    sink: &'a mut S,
    dropped: bool,
}

impl<P, S: Sink<P>> Sink<P> for Counting<'_, S> {
    #[inline]
    fn dropped(&mut self, packet: P, reason: DropReason, now: Time) {
        self.tally.drops += 1;
        self.dropped = true;
        self.sink.dropped(packet, reason, now);
    }
    #[inline]
    fn marked(&mut self, packet: &P, now: Time) {
        self.tally.marks += 1;
        self.sink.marked(packet, now);
    }
}

/// The running queues.
#[derive(Debug)]
pub struct RedTail<P> {
    limit: Limit,
    facts: Arc<FlowTable>,
    long_after: u64,
    flows: FlowClasses,
    share: ServiceShare,
    /// A threshold of the short queue; it gives the unit.
    short_unit: QueueSize,
    turns: Turns,
    short: Fifo<P>,
    /// Its limit is the part of the buffer that the short queue does not use. Boxed like `halves`.
    long: Box<Red<P, Aimd>>,
    /// For each packet in the long queue that must not leave yet: how many packets leave the long queue before
    /// it, and how many must have left the short queue before.
    held: VecDeque<(u64, u64)>,
    /// By [`FlowClass`]; apart, so that other disciplines take no more room for it.
    halves: Box<[Half; 2]>,
    /// RED's thresholds: their unit, min_th, max_th.
    range: (QueueSize, f64, f64),
    judged: Judged,
}

const SHORT: usize = FlowClass::Short as usize;
const LONG: usize = FlowClass::Long as usize;

impl<P: Packet> RedTail<P> {
    /// The backlog of this class.
    pub fn backlog_of(&self, class: FlowClass) -> Backlog {
        match class {
            FlowClass::Short => self.short.backlog(),
            FlowClass::Long => self.long.backlog(),
        }
    }

    /// C1/C, the present share of the short queue in the link.
    pub fn short_share(&self) -> f64 {
        self.share
            .at(gauge::amount(self.short.backlog(), self.short_unit) as f64)
    }

    /// The class of an arriving packet, the place of its flow, and figures about it.
    #[inline]
    fn classify(&mut self, packet: &P, now: Time) -> (FlowClass, Arrival) {
        let flow = packet.flow();
        let facts = self.facts.get(flow);
        if facts.protocol == Protocol::Udp {
            self.halves[SHORT].tally.arrivals += 1;
            return (FlowClass::Short, Arrival::Udp);
        }
        let left = [self.halves[SHORT].left, self.halves[LONG].left];
        let classified = self.flows.arrival(self.facts.key(flow), now, left);
        let class = classified.class;
        let tally = &mut self.halves[class as usize].tally;
        tally.arrivals += 1;
        tally.flows += u64::from(classified.first);
        if let Some(segments) = facts.segments {
            let small = segments <= self.long_after;
            let judged = &mut self.judged;
            judged.small_flows[class as usize] += u64::from(small && classified.first);
            judged.long_in_short += u64::from(class == FlowClass::Short && !small);
            judged.short_in_long += u64::from(class == FlowClass::Long && small);
        }
        (class, Arrival::Tcp(classified))
    }

    /// The backlog of a class has changed.
    #[inline]
    fn on_change(&mut self, class: FlowClass, now: Time) {
        let Backlog { packets, bytes } = self.backlog_of(class);
        let inside = class == FlowClass::Long && {
            let (unit, min_th, max_th) = self.range;
            let length = if unit.counts_packets() {
                packets
            } else {
                bytes
            } as f64;
            min_th <= length && length <= max_th
        };
        let half = &mut self.halves[class as usize];
        half.packets.set(packets as f64, inside, now);
        half.bytes.set(bytes as f64, inside, now);
    }

    /// The class whose packet leaves next; `None` if no packet waits.
    #[inline]
    fn next(&mut self) -> Option<FlowClass> {
        let held = self.held.front().is_some_and(|&(before, after)| {
            before == self.halves[LONG].left && self.halves[SHORT].left < after
        });
        let long = self.long.front().filter(|_| !held);
        match (self.short.front(), long) {
            (None, None) => None,
            (Some(_), None) => Some(FlowClass::Short),
            (None, Some(_)) => Some(FlowClass::Long),
            (Some(short), Some(long)) => {
                let (short, long) = (short.size(), long.size());
                let share = self.short_share();
                Some(self.turns.next(share, short, long))
            }
        }
    }
}

/// The identification of a packet for the flow table.
enum Arrival {
    Udp,
    Tcp(crate::laws::red_tail::Classified),
}

impl<P: Packet> QueueDiscipline<P> for RedTail<P> {
    #[inline]
    fn enqueue(&mut self, packet: P, now: Time, sink: &mut impl Sink<P>) {
        let (class, arrival) = self.classify(&packet, now);
        let half = &mut self.halves[class as usize];
        let others = match class {
            FlowClass::Short => self.long.backlog(),
            FlowClass::Long => self.short.backlog(),
        };
        let room = Limit {
            packets: self
                .limit
                .packets
                .map(|most| most.saturating_sub(others.packets)),
            bytes: self
                .limit
                .bytes
                .map(|most| most.saturating_sub(others.bytes)),
            time: None,
        };
        let joined = match class {
            FlowClass::Short => {
                let fits = room.admits(self.short.backlog(), packet.size());
                if fits {
                    self.short.push(packet, now);
                } else {
                    half.tally.drops += 1;
                    sink.dropped(packet, DropReason::Limit, now);
                }
                fits
            }
            FlowClass::Long => {
                self.long.set_limit(room);
                let mut counting = Counting {
                    tally: &mut half.tally,
                    sink,
                    dropped: false,
                };
                self.long.enqueue(packet, now, &mut counting);
                !counting.dropped
            }
        };
        if !joined {
            return;
        }
        let waiting = self.backlog_of(class).packets;
        let gone = self.halves[class as usize].left + waiting;
        if let Arrival::Tcp(classified) = arrival {
            let after = classified.after;
            if class == FlowClass::Long && self.halves[SHORT].left < after {
                self.held.push_back((gone - 1, after));
            }
            self.flows.joined(classified, gone);
        }
        self.on_change(class, now);
    }

    #[inline]
    fn dequeue(&mut self, now: Time, sink: &mut impl Sink<P>) -> Option<P> {
        let class = self.next();
        let packet = match class {
            Some(FlowClass::Long) => self.long.dequeue(now, sink),
            _ => {
                if self.long.backlog().packets == 0 {
                    // RED is told that the link finds nothing of its own to send.
                    let none = self.long.dequeue(now, sink);
                    debug_assert!(none.is_none());
                }
                self.short.pop()
            }
        }?;
        let class = class?;
        let half = &mut self.halves[class as usize];
        if class == FlowClass::Long {
            while self
                .held
                .front()
                .is_some_and(|&(before, _)| before <= half.left)
            {
                self.held.pop_front();
            }
        }
        half.left += 1;
        half.tally.departures += 1;
        half.tally.sent += packet.size().as_u64();
        half.tally.waited += now.saturating_since(packet.enqueued()).as_secs_f64();
        self.on_change(class, now);
        Some(packet)
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        let (short, long) = (self.short.backlog(), self.long.backlog());
        Backlog {
            packets: short.packets + long.packets,
            bytes: short.bytes + long.bytes,
        }
    }

    /// RED's average and probability, of the long queue.
    fn internals(&self) -> Internals {
        self.long.internals()
    }

    fn start_measuring(&mut self, now: Time) {
        self.flows.begin_period();
        self.judged = Judged::default();
        for half in self.halves.iter_mut() {
            half.packets.begin(now);
            half.bytes.begin(now);
            half.tally = HalfTally::default();
        }
    }

    fn report(&self, now: Time, report: &mut Report<'_>) {
        let arrivals: u64 = self.halves.iter().map(|half| half.tally.arrivals).sum();
        let sent: u64 = self.halves.iter().map(|half| half.tally.sent).sum();
        let ratio = |part: f64, whole: u64| (whole > 0).then(|| part / whole as f64);
        for (metrics, half) in [OF_SHORT, OF_LONG].into_iter().zip(self.halves.iter()) {
            let tally = &half.tally;
            let (length, length_std, in_range) = half.packets.until(now);
            let (bytes, bytes_std, _) = half.bytes.until(now);
            // In the order of the definitions; the last two are the long queue's alone.
            let values = [
                ratio(tally.arrivals as f64, arrivals),
                ratio(tally.drops as f64, tally.arrivals),
                ratio(tally.sent as f64, sent),
                ratio(tally.waited, tally.departures),
                Some(tally.flows as f64),
                Some(length),
                Some(length_std),
                Some(bytes),
                Some(bytes_std),
                Some(tally.marks as f64),
                Some(in_range),
            ];
            for (metric, value) in metrics.iter().zip(values) {
                report.tell_if(metric, value);
            }
        }
        let judged = &self.judged;
        let [small, found_long] = judged.small_flows;
        let [short, long] = &*self.halves;
        let part = ratio(judged.long_in_short as f64, short.tally.arrivals);
        report.tell_if(LONG_IN_SHORT, part);
        let part = ratio(judged.short_in_long as f64, long.tally.arrivals);
        report.tell_if(SHORT_IN_LONG, part);
        report.tell_if(FALSE_ALARMS, ratio(found_long as f64, small));
        report.tell(DISPLACED, self.flows.displaced() as f64);
        self.long.report(now, report);
    }
}
