//! AVQ: a virtual queue, slower than the link, decides about the packets of the real one.
//!
//! Source: S. Kunniyur and R. Srikant, "Analysis and Design of an Adaptive Virtual Queue
//! (AVQ) Algorithm for Active Queue Management", ACM SIGCOMM 2001, section 2 and figure 2. Two details are
//! those of ns-2.35, queue/vq.cc: dropped packets do not adapt the capacity, and it starts at 0.8 C.
//!
//! | symbol | meaning | unit |
//! |---|---|---|
//! | VQ, B | virtual backlog and its limit | packets (of typical size, if B is in bytes) |
//! | C, C~ | capacity of the link and of the virtual queue | packets/s |
//! | gamma | desired utilisation | 1 |
//! | alpha | gain of the adaptation of C~ | 1/s |
//! | b | size of the arriving packet | packets |
//! | s | time of the previous arrival | s |
//!
//! ```text
//! at an arrival at t:
//!   VQ <- max(VQ - C~ (t - s), 0)
//!   if VQ + b > B: mark or drop it, else VQ <- VQ + b
//!   C~ <- max(min(C~ + alpha gamma C (t - s), C) - alpha b, 0)      unless it was dropped
//! ```
//!
//! C~ is constant if packets arrive at the rate gamma C.

use redtail_core::{Bytes, Packet, ParamError, ParamWarning, QueueSize, Time, params};

use crate::fifo::Fifo;
use crate::gauge::{self, Gauge};
use crate::refuse;
use crate::signal::mark_or_drop;
use crate::{
    Backlog, DropReason, Internals, Limit, LinkFacts, QueueContext, QueueDiscipline, QueueKind,
    Sink,
};

params! {
    /// Adaptive virtual queue (Kunniyur and Srikant 2001).
    pub struct AvqParams {
        /// Limit on the waiting packets: in packets, in bytes, in time at the link's rate, or a list of these.
        limit: Limit;
        /// Limit of the virtual queue, which is counted in the unit of this limit. Without it the limit in packets, else in bytes (ns-2.35, `buflim_` 1).
        virtual_limit: Option<QueueSize>;
        /// Desired utilisation of the link.
        gamma: f64 = 0.98, "Kunniyur and Srikant 2001, section 4 (0.98).";
        /// Gain of the adaptation of the virtual capacity, in 1/s.
        alpha: f64 = 0.15, "Kunniyur and Srikant 2001, section 4 (0.15).";
        /// Typical packet size, to express the link's rate in packets. Without it, the largest packet that is known to cross the link, else 1500 B.
        mean_packet: Option<Bytes>;
        /// Mark ECN-capable packets instead of dropping them early.
        ecn: bool = false, "off as in ns-2.35 (`markpkts_`).";
    }
}

impl AvqParams {
    fn virtual_limit(&self) -> QueueSize {
        let Limit {
            packets,
            bytes,
            time,
        } = self.limit;
        let packets = packets.map(QueueSize::Packets);
        let bytes = bytes.map(QueueSize::Bytes);
        let of_limit = packets.or(bytes).or(time.map(QueueSize::Time));
        let given = self.virtual_limit.or(of_limit);
        given.expect("a limit has a part")
    }
}

impl QueueKind for AvqParams {
    type Queue<P: Packet> = Avq<P>;

    fn example() -> &'static str {
        r#"limit = "100 packets""#
    }

    fn check(&self) -> Result<(), ParamError> {
        self.limit.check()?;
        if let Some(virtual_limit) = self.virtual_limit {
            refuse::unless_some_size("virtual_limit", virtual_limit)?;
        }
        refuse::unless_probability("gamma", self.gamma)?;
        refuse::unless_positive("alpha", self.alpha)?;
        refuse::unless_some_packet("mean_packet", self.mean_packet)
    }

    fn limit(&self) -> Option<Limit> {
        Some(self.limit)
    }

    fn warnings(&self, link: &LinkFacts) -> Vec<ParamWarning> {
        let packet = gauge::packet_size(self.mean_packet, link);
        let most = Gauge::like(self.virtual_limit(), packet).of(self.virtual_limit(), link.rate);
        let key = if self.virtual_limit.is_some() {
            "virtual_limit"
        } else {
            "limit"
        };
        let clause = "holds no packet in the virtual queue: every packet is marked or dropped";
        (most < 1.0)
            .then(|| ParamWarning::new(key, clause))
            .into_iter()
            .collect()
    }

    fn build<P: Packet>(&self, context: QueueContext) -> Avq<P> {
        let packet = gauge::packet_size(self.mean_packet, &context.link);
        let gauge = Gauge::like(self.virtual_limit(), packet);
        let capacity = context.rate.as_bps() as f64 / packet.bits() as f64;
        Avq {
            limit: self.limit.at(context.rate),
            gauge,
            virtual_limit: gauge.of(self.virtual_limit(), context.rate),
            gamma: self.gamma,
            alpha: self.alpha,
            ecn: self.ecn,
            capacity,
            virtual_capacity: INITIAL_SHARE * capacity,
            virtual_backlog: 0.0,
            drained: Time::ZERO,
            adapted: Time::ZERO,
            fifo: Fifo::new(),
        }
    }
}

/// The initial value of C~ / C (`ecnlim_` of ns-2.35).
const INITIAL_SHARE: f64 = 0.8;

/// The running queue.
#[derive(Debug)]
pub struct Avq<P> {
    limit: Limit,
    gauge: Gauge,
    virtual_limit: f64,
    gamma: f64,
    alpha: f64,
    ecn: bool,
    capacity: f64,
    virtual_capacity: f64,
    virtual_backlog: f64,
    /// The time of the previous arrival.
    drained: Time,
    /// The time of the previous arrival that was not dropped.
    adapted: Time,
    fifo: Fifo<P>,
}

impl<P: Packet> QueueDiscipline<P> for Avq<P> {
    #[inline]
    fn enqueue(&mut self, packet: P, now: Time, sink: &mut impl Sink<P>) {
        if !self.limit.admits(self.fifo.backlog(), packet.size()) {
            sink.dropped(packet, DropReason::Limit, now);
            return;
        }
        let size = self.gauge.one(packet.size());
        let gap = (now - self.drained).as_secs_f64();
        self.drained = now;
        self.virtual_backlog = (self.virtual_backlog - self.virtual_capacity * gap).max(0.0);
        let packet = if self.virtual_backlog + size > self.virtual_limit {
            mark_or_drop(packet, self.ecn, DropReason::Early, now, sink)
        } else {
            self.virtual_backlog += size;
            Some(packet)
        };
        let Some(packet) = packet else {
            return;
        };
        let gap = (now - self.adapted).as_secs_f64();
        self.adapted = now;
        let grown = self.virtual_capacity + self.alpha * self.gamma * self.capacity * gap;
        self.virtual_capacity = (grown.min(self.capacity) - self.alpha * size).max(0.0);
        self.fifo.push(packet, now);
    }

    #[inline]
    fn dequeue(&mut self, _now: Time, _sink: &mut impl Sink<P>) -> Option<P> {
        self.fifo.pop()
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        self.fifo.backlog()
    }

    /// `average` is the virtual backlog, in packets; `probability` is C~/C, which is no probability.
    fn internals(&self) -> Internals {
        Internals {
            average: Some(self.virtual_backlog),
            probability: Some(self.virtual_capacity / self.capacity),
        }
    }
}
