//! PI: a first-in first-out queue; the controller of [`crate::laws::pi`] holds its length at a reference.
//!
//! Source: C. V. Hollot, V. Misra, D. Towsley and W. Gong, "On Designing Improved
//! Controllers for AQM Routers Supporting TCP Flows", IEEE INFOCOM 2001, section IV;
//! details after ns-2.35, queue/pi.cc: every arrival is dropped or marked with the probability of the
//! latest update, independently of the packets since the last drop.
//!
//! The length is sampled at fixed times. It changes only when the queue is called, so the updates that were
//! due are made at the next call, with the same result.

use redtail_core::schemars::JsonSchema;
use redtail_core::serde::{Deserialize, Serialize};
use redtail_core::{
    Bytes, Packet, ParamError, ParamWarning, QueueSize, Sampling, Span, Stream, Time, params,
    schemars, serde,
};

use crate::fifo::Fifo;
use crate::gauge::{self, Gauge};
use crate::laws::pi::{self, Path, PiConfig, PiLaw};
use crate::refuse;
use crate::signal::{Ticks, mark_or_drop};
use crate::{
    Backlog, DropReason, Internals, Limit, LinkFacts, QueueContext, QueueDiscipline, QueueKind,
    Sink,
};

params! {
    /// The PI controller (Hollot, Misra, Towsley and Gong 2001).
    pub struct PiParams {
        /// Limit on the waiting packets: in packets, in bytes, in time at the link's rate, or a list of these.
        limit: Limit;
        /// Backlog to hold, in packets, bytes or time at the link's rate.
        q_ref: QueueSize = QueueSize::Packets(50), "ns-2.35, ns-default.tcl (`qref_` 50).";
        /// Gain of the present deviation from `q_ref`, per packet. Without `a` and `b`, both are computed as `tune` says.
        a: Option<f64>;
        /// Gain of the deviation from `q_ref` at the update before, per packet; given together with `a`.
        b: Option<f64>;
        /// How `a` and `b` are computed when they are not given.
        tune: Option<Tune>, "Hollot et al. 2001, proposition 2; with few packets in a window, a slower loop that is stable.";
        /// For `tune`: smallest number of flows for which the loop must be stable; without it, the number of TCP flows that cross the link.
        flows: Option<u64>;
        /// For `tune`: longest round-trip time, without queueing, for which the loop must be stable; without it, the longest of the TCP flows that cross the link.
        rtt: Option<Span>;
        /// How often the probability is updated: a frequency or the time between updates.
        sampling: Sampling = Sampling::hz(170), "ns-2.35, ns-default.tcl (`w_` 170).";
        /// Typical packet size, to express the link's rate in packets for `tune`, and the backlog in
        /// packets if `q_ref` is in bytes or time. Without it, the largest packet that is known to cross
        /// the link, else 1500 B.
        mean_packet: Option<Bytes>;
        /// Mark ECN-capable packets instead of dropping them early.
        ecn: bool = false, "off as in ns-2.35 (`setbit_`).";
    }
}

/// How the gains are computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(crate = "serde", rename_all = "kebab-case")]
#[schemars(crate = "schemars")]
pub enum Tune {
    /// From the link's rate, the round trip and the number of flows (Hollot et al. 2001, proposition 2; a slower loop where that one would be unstable).
    Hollot,
}

impl PiParams {
    fn interval(&self) -> Span {
        self.sampling.interval().expect("checked: it has one")
    }

    fn gauge(&self, link: &LinkFacts) -> Gauge {
        Gauge::like(self.q_ref, gauge::packet_size(self.mean_packet, link))
    }

    /// Returns a path with this number of flows and this longest round trip; `None` if one of them is
    /// missing.
    fn path_of(&self, flows: u64, round_trip: Option<Span>, link: &LinkFacts) -> Option<Path> {
        let packet = gauge::packet_size(self.mean_packet, link);
        let capacity = link.rate.as_bps() as f64 / packet.bits() as f64;
        let round_trip = round_trip?;
        let queueing = self.gauge(link).of(self.q_ref, link.rate) / capacity;
        (flows > 0).then_some(Path {
            capacity,
            flows: flows as f64,
            round_trip: round_trip.as_secs_f64() + queueing,
        })
    }

    /// Returns the path of the parameters; values that they do not give are those of the link.
    fn stated(&self, link: &LinkFacts) -> Option<Path> {
        let flows = self.flows.unwrap_or(link.tcp_flows);
        self.path_of(flows, self.rtt.or(link.max_round_trip), link)
    }

    /// Returns a and b on this link; `None` if they must be computed and the path is unknown.
    fn gains(&self, link: &LinkFacts) -> Option<(f64, f64)> {
        match (self.a, self.b) {
            (Some(a), Some(b)) => Some((a, b)),
            _ => Some(pi::design(
                self.stated(link)?,
                self.interval().as_secs_f64(),
            )),
        }
    }

    /// Warns of gains that make an unstable loop. Given gains are tested on the given path, computed gains
    /// on the path of the link.
    fn warn_of_swings(&self, link: &LinkFacts) -> Option<ParamWarning> {
        let (a, b) = self.gains(link)?;
        let (path, key, makes) = if self.a.is_some() {
            (self.stated(link)?, "a", "makes")
        } else {
            // The designed loop is also stable with more flows and with shorter round trips.
            let path = self.path_of(link.tcp_flows, link.max_round_trip, link)?;
            let more = self.flows.is_some_and(|flows| flows > link.tcp_flows);
            let (key, makes) = if more {
                (
                    "flows",
                    "is more than cross the link, and the gains computed for it make",
                )
            } else {
                (
                    "rtt",
                    "is less than the longest of the link, and the gains computed for it make",
                )
            };
            (path, key, makes)
        };
        let margin = pi::phase_margin(path, a, b, self.interval().as_secs_f64())?;
        (margin <= 0.0).then(|| {
            let clause = format!(
                "{makes} an unstable loop with {} flows and a round trip of {:.0} ms: its phase \
                 margin is {:.0} degrees, so the queue will swing",
                path.flows,
                path.round_trip * 1e3,
                margin.to_degrees(),
            );
            ParamWarning::new(key, clause)
        })
    }
}

const GAINS_ACCEPTED: &str = "both a and b, or tune = \"hollot\"";

impl QueueKind for PiParams {
    type Queue<P: Packet> = Pi<P>;

    fn example() -> &'static str {
        r#"limit = "250 packets""#
    }

    fn check(&self) -> Result<(), ParamError> {
        self.limit.check()?;
        refuse::unless_some_size("q_ref", self.q_ref)?;
        match (self.a, self.b, self.tune) {
            (Some(_), None, _) => {
                return Err(ParamError::new("a", "needs b as well", GAINS_ACCEPTED));
            }
            (None, Some(_), _) => {
                return Err(ParamError::new("b", "needs a as well", GAINS_ACCEPTED));
            }
            (Some(_), Some(_), Some(_)) => {
                let problem = "would compute a and b, which are given";
                return Err(ParamError::new("tune", problem, GAINS_ACCEPTED));
            }
            (Some(a), Some(b), None) => {
                refuse::unless_positive("a", a)?;
                refuse::unless_positive("b", b)?;
                if a <= b {
                    let problem = format!("is not above b ({b}): the length would never settle");
                    return Err(ParamError::new("a", problem, format!("more than {b}")));
                }
            }
            (None, None, _) => {}
        }
        if self.flows == Some(0) {
            return Err(ParamError::new("flows", "is zero", "1 or more"));
        }
        if let Some(rtt) = self.rtt {
            refuse::unless_some_time("rtt", rtt)?;
        }
        refuse::unless_some_sampling("sampling", self.sampling)?;
        refuse::unless_some_packet("mean_packet", self.mean_packet)
    }

    fn check_at(&self, link: &LinkFacts) -> Result<(), ParamError> {
        let Some((a, b)) = self.gains(link) else {
            return Err(ParamError::new(
                "tune",
                "knows no TCP flow across this link to compute a and b for",
                "a and b, or flows and rtt",
            ));
        };
        if b <= 0.0 || a <= 0.0 {
            return Err(ParamError::new(
                "sampling",
                "is too slow for the gains it is to be tuned with: b would not be above 0",
                "a higher frequency",
            ));
        }
        Ok(())
    }

    fn limit(&self) -> Option<Limit> {
        Some(self.limit)
    }

    fn warnings(&self, link: &LinkFacts) -> Vec<ParamWarning> {
        let mut warnings = Vec::new();
        let most = gauge::limit_like(self.limit, self.q_ref, link.rate);
        if most.is_some_and(|most| most <= gauge::number(self.q_ref.at(link.rate))) {
            let clause = format!(
                "is not below the limit (\"{}\"), so the buffer overflows before the controller \
                 acts",
                self.limit
            );
            warnings.push(ParamWarning::new("q_ref", clause));
        }
        warnings.extend(self.warn_of_swings(link));
        warnings
    }

    fn build<P: Packet>(&self, context: QueueContext) -> Pi<P> {
        let gauge = self.gauge(&context.link);
        let (a, b) = self.gains(&context.link).expect("checked: they are known");
        Pi {
            limit: self.limit.at(context.rate),
            gauge,
            ecn: self.ecn,
            law: PiLaw::new(PiConfig {
                reference: gauge.of(self.q_ref, context.rate),
                integral: a - b,
                proportional: b,
            }),
            ticks: Ticks::every(self.interval()),
            stream: context.stream,
            fifo: Fifo::new(),
        }
    }
}

/// The running queue.
#[derive(Debug)]
pub struct Pi<P> {
    limit: Limit,
    gauge: Gauge,
    ecn: bool,
    law: PiLaw,
    ticks: Ticks,
    stream: Stream,
    fifo: Fifo<P>,
}

impl<P: Packet> Pi<P> {
    #[inline]
    fn catch_up(&mut self, now: Time) {
        let length = self.gauge.read(self.fifo.backlog());
        while self.ticks.due(now).is_some() {
            self.law.update(length);
            if self.law.rests_at(length) {
                self.ticks.skip(now);
            }
        }
    }
}

impl<P: Packet> QueueDiscipline<P> for Pi<P> {
    #[inline]
    fn enqueue(&mut self, packet: P, now: Time, sink: &mut impl Sink<P>) {
        self.catch_up(now);
        if !self.limit.admits(self.fifo.backlog(), packet.size()) {
            sink.dropped(packet, DropReason::Limit, now);
            return;
        }
        let p = self.law.probability();
        let packet = if p > 0.0 && self.stream.uniform() < p {
            mark_or_drop(packet, self.ecn, DropReason::Early, now, sink)
        } else {
            Some(packet)
        };
        if let Some(packet) = packet {
            self.fifo.push(packet, now);
        }
    }

    #[inline]
    fn dequeue(&mut self, now: Time, _sink: &mut impl Sink<P>) -> Option<P> {
        self.catch_up(now);
        self.fifo.pop()
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        self.fifo.backlog()
    }

    /// `average` is the length at the latest update, in packets.
    fn internals(&self) -> Internals {
        Internals {
            average: Some(self.law.old()),
            probability: Some(self.law.probability()),
        }
    }
}
