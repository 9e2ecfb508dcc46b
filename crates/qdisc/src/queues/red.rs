//! RED: a first-in first-out queue under the law of [`crate::laws::red`].
//!
//! Thresholds given in packets make the average one of packets, thresholds in
//! bytes one of bytes; `byte_mode` is independent of that and makes a packet's
//! drop probability proportional to its size.

use std::borrow::Cow;
use std::fmt;

use redtail_core::schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use redtail_core::serde::de::{self, Visitor};
use redtail_core::serde::{Deserialize, Deserializer, Serialize, Serializer};
use redtail_core::{
    Bytes, Packet, ParamError, ParamWarning, QueueSize, Rate, Span, Stream, Time, schemars, serde,
};

use crate::fifo::Fifo;
use crate::laws::red::{Arrival, RedConfig, RedLaw, Spacing, Verdict};
use crate::{
    Backlog, DropReason, Internals, Limit, LinkFacts, QueueContext, QueueDiscipline, QueueParams,
    Sink,
};

/// Random Early Detection (Floyd and Jacobson 1993).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(crate = "serde", deny_unknown_fields)]
#[schemars(crate = "schemars")]
pub struct RedParams {
    /// Most that may wait: in packets, in bytes, in time at the link's rate, or a list of these.
    pub limit: Limit,
    /// Average below which nothing is dropped, in packets, bytes or time at the link's rate; the unit decides whether the average is one of packets or of bytes.
    pub min_th: QueueSize,
    /// Average at which the drop probability reaches `max_p`, in the unit of `min_th`.
    pub max_th: QueueSize,
    /// Drop probability when the average reaches `max_th`.
    /// Source: ns-2.35, ns-default.tcl (`linterm_` 10, that is 1/10).
    #[serde(default = "default_max_p")]
    pub max_p: f64,
    /// Weight of one arrival's sample in the moving average.
    /// Source: Floyd and Jacobson 1993, section VI.
    #[serde(default = "default_w_q")]
    pub w_q: f64,
    /// Beyond `max_th`, let the probability rise from `max_p` to 1 instead of dropping everything: `true` or `"twice-max-th"` ends the slope at 2 `max_th` (Floyd 2000), `"limit"` at the queue's limit (ISCC 2001).
    /// Source: off as in Floyd and Jacobson 1993.
    #[serde(default)]
    pub gentle: Gentle,
    /// How early drops are spread over arrivals.
    /// Source: ns-2.35, ns-default.tcl (`wait_` true).
    #[serde(default = "default_spacing")]
    pub spacing: Spacing,
    /// Make a packet's drop probability proportional to its size over `mean_packet`.
    /// Source: off as in Floyd and Jacobson 1993, section IV.
    #[serde(default)]
    pub byte_mode: bool,
    /// Typical packet size: measures idle periods in packets and scales `byte_mode`.
    /// Source: ns-2.35, ns-default.tcl (`mean_pktsize_`).
    #[serde(default = "default_mean_packet")]
    pub mean_packet: Bytes,
    /// Mark ECN-capable packets where an early drop would hit them.
    /// Source: RFC 3168, section 5; off as in ns-2.35 (`setbit_`).
    #[serde(default)]
    pub ecn: bool,
    /// With `ecn`, what happens to ECN-capable packets chosen while the average is at `max_th` or above, gentle or not.
    /// Source: RFC 3168, section 7, and ns-2.35 (`mark_p_` equal to `max_p`).
    #[serde(default)]
    pub above_max_th: AboveMaxTh,
}

fn default_max_p() -> f64 {
    0.1
}
fn default_w_q() -> f64 {
    0.002
}
fn default_spacing() -> Spacing {
    Spacing::Wait
}
fn default_mean_packet() -> Bytes {
    Bytes::new(500)
}

/// What ECN-capable packets meet when the average is at `max_th` or above.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(crate = "serde", rename_all = "kebab-case")]
#[schemars(crate = "schemars")]
pub enum AboveMaxTh {
    /// They are dropped like all others (RFC 3168, section 7).
    #[default]
    Drop,
    /// They are marked (Linux without `harddrop`; the variant of the Web study, SIGCOMM 2003).
    Mark,
}

/// Whether and where to the probability rises beyond `max_th`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Gentle {
    /// It jumps to 1 at `max_th`.
    #[default]
    Off,
    /// It reaches 1 at twice `max_th` (Floyd 2000).
    TwiceMaxTh,
    /// It reaches 1 at the queue's limit (ISCC 2001).
    Limit,
}

const GENTLE_ACCEPTED: &str = "true, false, \"twice-max-th\" or \"limit\"";

impl Serialize for Gentle {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Off => serializer.serialize_bool(false),
            Self::TwiceMaxTh => serializer.serialize_str("twice-max-th"),
            Self::Limit => serializer.serialize_str("limit"),
        }
    }
}

impl<'de> Deserialize<'de> for Gentle {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct GentleVisitor;

        impl Visitor<'_> for GentleVisitor {
            type Value = Gentle;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(GENTLE_ACCEPTED)
            }

            fn visit_bool<E: de::Error>(self, on: bool) -> Result<Gentle, E> {
                Ok(if on { Gentle::TwiceMaxTh } else { Gentle::Off })
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Gentle, E> {
                match text {
                    "twice-max-th" => Ok(Gentle::TwiceMaxTh),
                    "limit" => Ok(Gentle::Limit),
                    _ => Err(E::invalid_value(de::Unexpected::Str(text), &self)),
                }
            }
        }

        deserializer.deserialize_any(GentleVisitor)
    }
}

impl JsonSchema for Gentle {
    fn schema_name() -> Cow<'static, str> {
        "Gentle".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "enum": [true, false, "twice-max-th", "limit"] })
    }
}

impl RedParams {
    fn measures_bytes(&self) -> bool {
        !self.min_th.counts_packets()
    }

    /// The part of the limit that is in the unit of the average.
    fn limit_like_thresholds(&self, rate: Rate) -> Option<f64> {
        let limit = self.limit.at(rate);
        let part = if self.measures_bytes() {
            limit.bytes
        } else {
            limit.packets
        };
        part.map(|limit| limit as f64)
    }

    fn law(&self, rate: Rate) -> RedConfig {
        let threshold = |size: QueueSize| match size.at(rate) {
            QueueSize::Packets(n) | QueueSize::Bytes(n) => n as f64,
            QueueSize::Time(_) => unreachable!("a time has become bytes"),
        };
        let max_th = threshold(self.max_th);
        RedConfig {
            min_th: threshold(self.min_th),
            max_th,
            max_p: self.max_p,
            w_q: self.w_q,
            gentle_end: match self.gentle {
                Gentle::Off => None,
                Gentle::TwiceMaxTh => Some(2.0 * max_th),
                Gentle::Limit => self.limit_like_thresholds(rate),
            },
            spacing: self.spacing,
        }
    }
}

impl QueueParams for RedParams {
    type Queue<P: Packet> = Red<P>;

    fn check(&self) -> Result<(), ParamError> {
        self.limit.check()?;
        if self.min_th.counts_packets() != self.max_th.counts_packets() {
            return Err(ParamError::new(
                "max_th",
                format!("is in another unit than min_th ({})", self.min_th),
                "both thresholds in packets, or both in bytes or time",
            ));
        }
        if !(self.max_p > 0.0 && self.max_p <= 1.0) {
            return Err(ParamError::new(
                "max_p",
                "is not a probability above 0",
                "a number above 0 and up to 1",
            ));
        }
        if !(self.w_q > 0.0 && self.w_q <= 1.0) {
            return Err(ParamError::new(
                "w_q",
                "is not a weight above 0",
                "a number above 0 and up to 1",
            ));
        }
        if self.mean_packet.as_u64() == 0 {
            return Err(ParamError::new(
                "mean_packet",
                "is zero",
                "a size such as \"500 B\"",
            ));
        }
        Ok(())
    }

    fn check_at(&self, link: &LinkFacts) -> Result<(), ParamError> {
        let RedConfig { min_th, max_th, .. } = self.law(link.rate);
        if min_th >= max_th {
            return Err(ParamError::new(
                "min_th",
                format!("is not below max_th ({})", self.max_th),
                format!("less than \"{}\"", self.max_th),
            ));
        }
        let limit = self.limit_like_thresholds(link.rate);
        if self.gentle == Gentle::Limit && limit.is_none_or(|limit| limit <= max_th) {
            return Err(ParamError::new(
                "gentle",
                format!(
                    "needs a limit above max_th ({}) in the same unit",
                    self.max_th
                ),
                GENTLE_ACCEPTED,
            ));
        }
        Ok(())
    }

    fn limit(&self) -> Option<Limit> {
        Some(self.limit)
    }

    fn warnings(&self, link: &LinkFacts) -> Vec<ParamWarning> {
        // The average cannot pass what the buffer holds, so the law stays below its
        // upper end.
        let most = self.limit_like_thresholds(link.rate);
        let beyond = most.is_some_and(|most| most <= self.law(link.rate).max_th);
        let warning = ParamWarning::new(
            "max_th",
            format!(
                "is not below the limit (\"{}\"), so the buffer overflows before the average \
                 gets there",
                self.limit
            ),
        );
        beyond.then_some(warning).into_iter().collect()
    }

    fn build<P: Packet>(&self, context: QueueContext) -> Red<P> {
        Red {
            limit: self.limit.at(context.rate),
            measures_bytes: self.measures_bytes(),
            mean_packet: self.byte_mode.then_some(self.mean_packet),
            mean_packet_time: context.rate.tx_time(self.mean_packet),
            ecn: self.ecn,
            above_max_th: self.above_max_th,
            law: RedLaw::new(self.law(context.rate)),
            stream: context.stream,
            idle_since: Some(Time::ZERO),
            fifo: Fifo::new(),
        }
    }
}

/// The running queue.
#[derive(Debug)]
pub struct Red<P> {
    limit: Limit,
    measures_bytes: bool,
    /// Given in byte mode only.
    mean_packet: Option<Bytes>,
    mean_packet_time: Span,
    ecn: bool,
    above_max_th: AboveMaxTh,
    law: RedLaw,
    stream: Stream,
    /// Since when the link has found nothing to send.
    idle_since: Option<Time>,
    fifo: Fifo<P>,
}

impl<P: Packet> QueueDiscipline<P> for Red<P> {
    #[inline]
    fn enqueue(&mut self, mut packet: P, now: Time, sink: &mut impl Sink<P>) {
        let backlog = self.fifo.backlog();
        let mean_packet_time = self.mean_packet_time.as_ps().max(1);
        let arrival = Arrival {
            backlog: if self.measures_bytes {
                backlog.bytes
            } else {
                backlog.packets
            } as f64,
            idle: self
                .idle_since
                .take()
                .map(|since| (now - since).as_ps() / mean_packet_time),
            relative_size: self
                .mean_packet
                .map(|mean| packet.size().as_u64() as f64 / mean.as_u64() as f64),
        };
        let verdict = self.law.on_arrival(arrival, || self.stream.uniform());
        let reason = match verdict {
            Verdict::Pass => None,
            Verdict::Early => Some(DropReason::Early),
            Verdict::Forced => Some(DropReason::Forced),
        };
        let may_mark = reason.is_some()
            && self.ecn
            && (self.above_max_th == AboveMaxTh::Mark || self.law.is_below_max_th());
        // Only a packet that is going to be queued is marked: a packet that
        // meets a full buffer is lost whatever the law thinks of it.
        if !self.limit.admits(backlog, packet.size()) {
            let reason = reason.filter(|_| !may_mark).unwrap_or(DropReason::Limit);
            sink.dropped(packet, reason, now);
        } else if let Some(reason) = reason {
            if may_mark && packet.mark_ce() {
                sink.marked(&packet, now);
                self.fifo.push(packet, now);
            } else {
                sink.dropped(packet, reason, now);
            }
        } else {
            self.fifo.push(packet, now);
        }
    }

    #[inline]
    fn dequeue(&mut self, now: Time, _sink: &mut impl Sink<P>) -> Option<P> {
        let packet = self.fifo.pop();
        if packet.is_none() {
            self.idle_since.get_or_insert(now);
        }
        packet
    }

    fn front(&self) -> Option<&P> {
        self.fifo.front()
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        self.fifo.backlog()
    }

    fn internals(&self) -> Internals {
        Internals {
            average: Some(self.law.average()),
            probability: Some(self.law.probability()),
        }
    }
}
