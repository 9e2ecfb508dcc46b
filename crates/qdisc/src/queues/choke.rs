//! CHOKe: RED that compares an arrival with a random waiting packet and drops both if they are of the same
//! flow.
//!
//! Source: R. Pan, B. Prabhakar and K. Psounis, "CHOKe: A Stateless Active Queue Management
//! Scheme for Approximating Fair Bandwidth Allocation", IEEE INFOCOM 2000, section II and
//! figure 1. The average, the slope and the spacing are those of [`crate::laws::red`].
//!
//! ```text
//! avg < min_th:  admit
//! else:          draw a waiting packet; if it is of the arrival's flow, drop both
//!                (for each of m candidates), else RED decides
//! ```
//!
//! A flow with a share s of the queue loses an arrival with probability s, and with it another packet. So
//! flows that do not reduce their rate get less than they offer, without a table of flows.

use redtail_core::{
    Bytes, Packet, ParamError, ParamWarning, QueueSize, Rate, Span, Stream, Time, params,
};

use crate::fifo::Sparse;
use crate::gauge;
use crate::laws::red::{Arrival, Flavour, RedConfig, RedDecision, RedLaw, Spacing};
use crate::queues::red::red_keys;
use crate::refuse;
use crate::signal::mark_or_drop;
use crate::{
    Backlog, DropReason, Internals, Limit, LinkFacts, QueueContext, QueueDiscipline, QueueKind,
    Sink,
};

params! {
    /// CHOose and Keep, CHOose and Kill (Pan, Prabhakar and Psounis 2000).
    pub struct ChokeParams {
        /// Limit on the waiting packets: in packets, in bytes, in time at the link's rate, or a list of these.
        limit: Limit;
        /// Average below which no packet is dropped or compared, in packets, bytes or time at the link's rate; with packets the average counts packets, otherwise bytes.
        min_th: QueueSize;
        /// Average at which the drop probability reaches `max_p` and jumps to 1, in the unit of `min_th`.
        max_th: QueueSize;
        red_keys!(max_p = 0.1, "ns-2.35, ns-default.tcl (RED's `linterm_` 10).");
        red_keys!(w_q = 0.002, "Pan et al. 2000, section III (0.002).");
        red_keys!(spacing = Spacing::Uniform, "Floyd and Jacobson 1993, method 2; Linux (`sch_choke`) has `\"linux\"`, the same while the average stays.");
        /// Number of waiting packets with which an arrival is compared.
        candidates: u32 = 1, "Pan et al. 2000, section II (1).";
        /// Typical packet size, to express idle periods in packets.
        mean_packet: Bytes = Bytes::new(500), "ns-2.35, ns-default.tcl (RED's `mean_pktsize_`).";
        red_keys!(idle_decay);
        /// Details that the paper leaves open, and the arithmetic of the average: the paper's or Linux's.
        flavour: Flavour = Flavour::Paper, "Pan et al. 2000; Linux's (`sch_choke`) for comparisons with it.";
        /// Mark ECN-capable packets that RED chooses while the average is below `max_th`; packets that match a waiting packet of their own flow are dropped.
        ecn: bool = false, "Linux (`sch_choke`); RFC 3168, section 7.";
    }
}

impl ChokeParams {
    fn thresholds(&self, rate: Rate) -> (f64, f64) {
        let number = |size: QueueSize| gauge::number(size.at(rate)) as f64;
        (number(self.min_th), number(self.max_th))
    }
}

impl QueueKind for ChokeParams {
    type Queue<P: Packet> = Choke<P>;

    fn example() -> &'static str {
        r#"limit = "250 packets"
min_th = "40 packets"
max_th = "120 packets""#
    }

    fn check(&self) -> Result<(), ParamError> {
        self.limit.check()?;
        if self.min_th.counts_packets() != self.max_th.counts_packets() {
            return Err(ParamError::new(
                "max_th",
                format!("is in another unit than min_th ({})", self.min_th),
                "both thresholds in packets, or both in bytes or time",
            ));
        }
        refuse::unless_probability("max_p", self.max_p)?;
        refuse::unless_probability("w_q", self.w_q)?;
        if self.flavour == Flavour::Ns2 {
            let problem = "is \"ns-2\", whose RED has no CHOKe";
            return Err(ParamError::new("flavour", problem, "\"paper\", \"linux\""));
        }
        if self.candidates == 0 {
            let problem = "is zero, which is RED";
            return Err(ParamError::new("candidates", problem, "1 or more"));
        }
        refuse::unless_some_packet("mean_packet", Some(self.mean_packet))
    }

    fn check_at(&self, link: &LinkFacts) -> Result<(), ParamError> {
        let (min_th, max_th) = self.thresholds(link.rate);
        if min_th >= max_th {
            return Err(ParamError::new(
                "min_th",
                format!("is not below max_th ({})", self.max_th),
                format!("less than \"{}\"", self.max_th),
            ));
        }
        Ok(())
    }

    fn limit(&self) -> Option<Limit> {
        Some(self.limit)
    }

    fn warnings(&self, link: &LinkFacts) -> Vec<ParamWarning> {
        gauge::out_of_reach("max_th", self.max_th, self.limit, link.rate)
            .into_iter()
            .collect()
    }

    fn build<P: Packet>(&self, context: QueueContext) -> Choke<P> {
        let (min_th, max_th) = self.thresholds(context.rate);
        Choke {
            limit: self.limit.at(context.rate),
            measures_bytes: !self.min_th.counts_packets(),
            candidates: self.candidates,
            mean_packet_time: context.rate.tx_time(self.mean_packet),
            idle_decay: self.idle_decay,
            ecn: self.ecn,
            law: RedLaw::new(RedConfig {
                min_th,
                max_th,
                max_p: self.max_p,
                w_q: self.w_q,
                gentle_end: None,
                spacing: self.spacing,
                flavour: self.flavour,
            }),
            stream: context.stream,
            idle_since: Some(Time::ZERO),
            fifo: Sparse::new(),
        }
    }
}

/// The running queue.
#[derive(Debug)]
pub struct Choke<P> {
    limit: Limit,
    measures_bytes: bool,
    candidates: u32,
    mean_packet_time: Span,
    idle_decay: bool,
    ecn: bool,
    law: RedLaw,
    stream: Stream,
    /// The time since which the link has been idle.
    idle_since: Option<Time>,
    fifo: Sparse<P>,
}

impl<P: Packet> Choke<P> {
    /// Draws packets. Returns the index of a drawn packet of the arrival's flow.
    fn match_of(&mut self, packet: &P) -> Option<usize> {
        (0..self.candidates).find_map(|_| {
            let place = self.fifo.draw(&mut self.stream)?;
            let drawn = self.fifo.get(place)?;
            (drawn.flow() == packet.flow()).then_some(place)
        })
    }
}

impl<P: Packet> QueueDiscipline<P> for Choke<P> {
    #[inline]
    fn enqueue(&mut self, packet: P, now: Time, sink: &mut impl Sink<P>) {
        let backlog = self.fifo.backlog();
        let mean_packet_time = self.mean_packet_time.as_ps().max(1);
        let idle = self.idle_since.take();
        let arrival = Arrival {
            backlog: if self.measures_bytes {
                backlog.bytes
            } else {
                backlog.packets
            } as f64,
            idle: idle.map(|since| (now - since).as_ps() / mean_packet_time),
            relative_size: None,
        };
        let decision = self.law.on_arrival(arrival, || self.stream.uniform());
        if !self.law.is_low()
            && let Some(place) = self.match_of(&packet)
        {
            if let Some(other) = self.fifo.take(place) {
                sink.dropped(other, DropReason::Early, now);
            }
            sink.dropped(packet, DropReason::Early, now);
            return;
        }
        if !self.limit.admits(backlog, packet.size()) {
            sink.dropped(packet, DropReason::Limit, now);
            return;
        }
        let packet = match decision {
            RedDecision::Pass => Some(packet),
            RedDecision::Early => mark_or_drop(packet, self.ecn, DropReason::Early, now, sink),
            RedDecision::Forced => mark_or_drop(packet, false, DropReason::Forced, now, sink),
        };
        if let Some(packet) = packet {
            self.fifo.push(packet, now);
        }
    }

    #[inline]
    fn dequeue(&mut self, now: Time, _sink: &mut impl Sink<P>) -> Option<P> {
        let packet = self.fifo.pop();
        if packet.is_none() && self.idle_decay {
            self.idle_since.get_or_insert(now);
        }
        packet
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        self.fifo.backlog()
    }

    /// RED's internals: the average in packets or bytes, and the probability before spacing.
    fn internals(&self) -> Internals {
        Internals {
            average: Some(self.law.average()),
            probability: Some(self.law.probability()),
        }
    }
}
