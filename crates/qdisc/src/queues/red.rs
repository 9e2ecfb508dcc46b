//! RED: a first-in first-out queue under the law of [`crate::laws::red`].
//!
//! Thresholds given in packets make the average one of packets, thresholds in
//! bytes one of bytes; `byte_mode` is independent of that and makes a packet's
//! drop probability proportional to its size.

use redtail_core::schemars::JsonSchema;
use redtail_core::serde::{Deserialize, Serialize};
use redtail_core::{
    Bytes, Packet, ParamError, ParamWarning, QueueSize, Rate, Span, Stream, Time, as_f64, params,
    schemars, serde, shared_keys,
};

use crate::fifo::Fifo;
use crate::laws::red::adapt::{Adaptation, Fixed};
use crate::laws::red::ziegler::{NoTuning, Situation, Tuning, tune};
use crate::laws::red::{Arrival, Flavour, RedConfig, RedDecision, RedLaw, Spacing};
use crate::{
    Backlog, DropReason, Internals, Limit, LinkFacts, QueueContext, QueueDiscipline, QueueKind,
    Report, Sink,
};

shared_keys! { $
    /// The keys that RED shares with its relatives.
    red_keys {
        /// Drop probability when the average reaches `max_th`.
        max_p: f64 = crate::queues::red::MAX_P, "ns-2.35, ns-default.tcl (`linterm_` 10, that is 1/10).";
        /// Weight of one arrival's sample in the moving average.
        w_q: f64 = crate::queues::red::W_Q, "Floyd and Jacobson 1993, section VI.";
        /// Above `max_th`, let the probability rise from `max_p` to 1 instead of dropping every packet: `true` or `"twice-max-th"` ends the slope at 2 `max_th` (Floyd 2000), `"limit"` at the queue's limit (ISCC 2001).
        gentle: Gentle = Gentle::Off, "off as in Floyd and Jacobson 1993.";
        /// How early drops are spaced among the arrivals.
        spacing: Spacing = Spacing::Wait, "ns-2.35, ns-default.tcl (`wait_` true).";
        /// Multiply a packet's drop probability by its size divided by `mean_packet`.
        byte_mode: bool = false, "off as in Floyd and Jacobson 1993, section IV.";
        /// Typical packet size: measures idle periods in packets and scales `byte_mode`.
        mean_packet: Bytes = crate::queues::red::MEAN_PACKET, "ns-2.35, ns-default.tcl (`mean_pktsize_`).";
        /// Let the average decay while the link is idle. With `false`, only arrivals change it, and an average above `max_th` can keep the queue empty.
        idle_decay: bool = true, "Floyd and Jacobson 1993, section IV; `false` as Linux under a class of HTB.";
        /// Mark ECN-capable packets instead of dropping them early.
        ecn: bool = false, "RFC 3168, section 5; off as in ns-2.35 (`setbit_`).";
        /// With `ecn`, what happens to ECN-capable packets that are chosen while the average is at `max_th` or above, with or without `gentle`.
        above_max_th: AboveMaxTh = AboveMaxTh::Drop, "RFC 3168, section 7, and ns-2.35 (`mark_p_` equal to `max_p`).";
    }
}

/// The parameters of RED at the start, of a queue that has them under RED's names.
macro_rules! as_red {
    ($of:expr) => {
        $crate::queues::red::RedParams {
            max_p: Some($of.max_p),
            w_q: Some($of.w_q),
            gentle: $of.gentle,
            spacing: $of.spacing,
            byte_mode: $of.byte_mode,
            mean_packet: $of.mean_packet,
            ecn: $of.ecn,
            above_max_th: $of.above_max_th,
            ..$crate::queues::red::RedParams::new($of.limit, $of.min_th, $of.max_th)
        }
    };
}
pub(crate) use as_red;

params! {
    /// Random Early Detection (Floyd and Jacobson 1993).
    pub struct RedParams => RedParams::filled_in {
        /// Compute `limit`, `min_th`, `max_th`, `max_p` and `w_q` from the link and the flows that cross it; given values are kept.
        tune: Option<Tune>;
        /// Limit on the waiting packets: in packets, in bytes, in time at the link's rate, or a list of these. Required without `tune`.
        limit: Option<Limit>;
        /// Average below which no packet is dropped, in packets, bytes or time at the link's rate; with packets the average counts packets, otherwise bytes. Required without `tune`.
        min_th: Option<QueueSize>;
        /// Average at which the drop probability reaches `max_p`, in the unit of `min_th`. Required without `tune`.
        max_th: Option<QueueSize>;
        /// Drop probability when the average reaches `max_th`; with `tune`, computed unless given.
        #[schemars(extend("default" = MAX_P))]
        max_p: Option<f64>, "ns-2.35, ns-default.tcl (`linterm_` 10, that is 1/10).";
        /// Weight of one arrival's sample in the moving average; with `tune`, computed unless given.
        #[schemars(extend("default" = W_Q))]
        w_q: Option<f64>, "Floyd and Jacobson 1993, section VI.";
        red_keys!(gentle, spacing);
        /// Which implementation's details apply where the paper specifies none: those of the paper's text, of ns-2 or of Linux.
        flavour: Flavour = Flavour::Paper, "Floyd and Jacobson 1993; ns-2's and Linux's for comparisons with them.";
        red_keys!(byte_mode, mean_packet, idle_decay, ecn, above_max_th);
    }
}

/// `max_p` if it is neither given nor computed.
pub(crate) const MAX_P: f64 = 0.1;
/// `w_q` if it is neither given nor computed.
pub(crate) const W_Q: f64 = 0.002;
/// `mean_packet` if it is neither given nor known.
pub(crate) const MEAN_PACKET: Bytes = Bytes::new(500);

/// A model that computes parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(crate = "serde", rename_all = "kebab-case")]
#[schemars(crate = "schemars")]
pub enum Tune {
    /// For endless TCP flows (Ziegler, Brandauer, Fdida 2001).
    Ziegler,
}

/// What happens to ECN-capable packets when the average is at `max_th` or above.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(crate = "serde", rename_all = "kebab-case")]
#[schemars(crate = "schemars")]
pub enum AboveMaxTh {
    /// ECN-capable packets are dropped like all other packets (RFC 3168, section 7).
    #[default]
    Drop,
    /// ECN-capable packets are marked (Linux without `harddrop`; the variant of the Web study, SIGCOMM 2003).
    Mark,
}

/// Whether and where to the probability rises beyond `max_th`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Gentle {
    /// The drop probability jumps to 1 at `max_th`.
    #[default]
    Off,
    /// The drop probability reaches 1 at twice `max_th` (Floyd 2000).
    TwiceMaxTh,
    /// It reaches 1 at the queue's limit (ISCC 2001).
    Limit,
}

const GENTLE_ACCEPTED: &str = "true, false, \"twice-max-th\" or \"limit\"";

redtail_core::when_serde! {
    mod gentle_text {
        use std::fmt;

        use redtail_core::serde::de::{self, Visitor};
        use redtail_core::serde::{Deserialize, Deserializer, Serialize, Serializer};

        use super::{GENTLE_ACCEPTED, Gentle};

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
    }
}

redtail_core::when_schema! {
    mod gentle_schema {
        use std::borrow::Cow;

        use redtail_core::schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

        use super::Gentle;

        impl JsonSchema for Gentle {
            fn schema_name() -> Cow<'static, str> {
                "Gentle".into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({ "enum": [true, false, "twice-max-th", "limit"] })
            }
        }
    }
}

/// The settings of a RED queue, in the units of its link.
#[derive(Clone, Debug)]
pub(crate) struct RedSetup {
    /// Most that may wait.
    pub limit: Limit,
    /// Whether the average is one of bytes.
    pub measures_bytes: bool,
    /// Given if drop probabilities are proportional to sizes.
    pub byte_mode: Option<Bytes>,
    /// Measures idle periods.
    pub mean_packet: Bytes,
    /// Whether the average decays in idle periods.
    pub idle_decay: bool,
    /// Whether to mark.
    pub ecn: bool,
    /// What is done to ECN-capable packets from max_th on.
    pub above_max_th: AboveMaxTh,
    /// The law as it starts.
    pub law: RedConfig,
}

impl RedSetup {
    /// The part of the limit that is in the unit of the average.
    pub(crate) fn limit_like_thresholds(&self) -> Option<f64> {
        like_thresholds(self.limit, self.measures_bytes)
    }

    /// Refuses thresholds between which the probability cannot rise; `given` is max_th as in the file.
    pub(crate) fn check(&self, gentle: Gentle, given: Option<QueueSize>) -> Result<(), ParamError> {
        let RedConfig { min_th, max_th, .. } = self.law;
        let shown = given.map_or_else(|| self.shown(max_th), |size| size.to_string());
        if min_th >= max_th {
            let max_th = shown;
            return Err(ParamError::new(
                "min_th",
                format!("is not below max_th ({max_th})"),
                format!("less than \"{max_th}\""),
            ));
        }
        let limit = self.limit_like_thresholds();
        if gentle == Gentle::Limit && limit.is_none_or(|limit| limit <= max_th) {
            return Err(ParamError::new(
                "gentle",
                format!("needs a limit above max_th ({shown}) in the same unit"),
                GENTLE_ACCEPTED,
            ));
        }
        Ok(())
    }

    /// Warns of a limit that keeps the law below its upper end: the average cannot pass
    /// what the buffer holds.
    pub(crate) fn warnings(&self) -> Vec<ParamWarning> {
        let most = self.limit_like_thresholds();
        let beyond = most.is_some_and(|most| most <= self.law.max_th);
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

    /// The text of a threshold.
    fn shown(&self, threshold: f64) -> String {
        let whole = threshold.round() as u64;
        if self.measures_bytes {
            QueueSize::Bytes(whole).to_string()
        } else {
            QueueSize::Packets(whole).to_string()
        }
    }

    /// Builds the queue, with a scheme that adapts its law.
    pub(crate) fn build<P: Packet, A: Adaptation>(
        self,
        adaptation: A,
        context: QueueContext,
    ) -> Red<P, A> {
        Red {
            limit: self.limit,
            measures_bytes: self.measures_bytes,
            mean_packet: self.byte_mode.map(|mean| as_f64(mean.as_u64())),
            mean_packet_time: context.rate.tx_time(self.mean_packet).max(Span::from_ps(1)),
            idle_decay: self.idle_decay,
            ecn: self.ecn,
            above_max_th: self.above_max_th,
            law: RedLaw::new(self.law),
            adaptation,
            stream: context.stream,
            idle_since: Some(Time::ZERO),
            fifo: Fifo::new(),
        }
    }
}

/// The part of a limit that is in bytes or in packets.
fn like_thresholds(limit: Limit, bytes: bool) -> Option<f64> {
    let part = if bytes { limit.bytes } else { limit.packets };
    part.map(|limit| limit as f64)
}

/// A threshold in packets or bytes on a link of this rate.
pub(crate) fn threshold_at(size: QueueSize, rate: Rate) -> f64 {
    match size.at(rate) {
        QueueSize::Packets(n) | QueueSize::Bytes(n) => n as f64,
        QueueSize::Time(_) => unreachable!("a time has become bytes"),
    }
}

/// The average at which a slope that is `gentle` in this way reaches 1.
pub(crate) fn gentle_end(
    gentle: Gentle,
    max_th: f64,
    limit: Limit,
    measures_bytes: bool,
) -> Option<f64> {
    match gentle {
        Gentle::Off => None,
        Gentle::TwiceMaxTh => Some(2.0 * max_th),
        Gentle::Limit => like_thresholds(limit, measures_bytes),
    }
}

/// Refuses thresholds of different units, one in packets and the other not.
pub(crate) fn check_units(min_th: QueueSize, max_th: QueueSize) -> Result<(), ParamError> {
    if min_th.counts_packets() == max_th.counts_packets() {
        return Ok(());
    }
    Err(ParamError::new(
        "max_th",
        format!("is in another unit than min_th ({min_th})"),
        "both thresholds in packets, or both in bytes or time",
    ))
}

/// Refuses a number that is not above 0 and at most 1; `what` is its name in the message, with its article.
pub(crate) fn check_unit_interval(
    key: &'static str,
    value: f64,
    what: &str,
) -> Result<(), ParamError> {
    if value > 0.0 && value <= 1.0 {
        return Ok(());
    }
    Err(ParamError::new(
        key,
        format!("is not {what} above 0"),
        "a number above 0 and up to 1",
    ))
}

/// Refuses a packet size of zero.
pub(crate) fn check_mean_packet(size: Bytes) -> Result<(), ParamError> {
    if size == Bytes::ZERO {
        return Err(ParamError::new(
            "mean_packet",
            "is zero",
            "a size such as \"500 B\"",
        ));
    }
    Ok(())
}

impl RedParams {
    /// RED with these thresholds; the rest by default.
    pub fn new(limit: Limit, min_th: QueueSize, max_th: QueueSize) -> Self {
        Self {
            limit: Some(limit),
            min_th: Some(min_th),
            max_th: Some(max_th),
            ..Self::default()
        }
    }

    /// Without `tune`, keys that it would compute take their default, so that the scenario
    /// shows it.
    #[cfg_attr(not(feature = "serde"), allow(dead_code))]
    fn filled_in(mut self) -> Self {
        if self.tune.is_none() {
            self.max_p.get_or_insert(MAX_P);
            self.w_q.get_or_insert(W_Q);
        }
        self
    }

    fn measures_bytes(&self) -> bool {
        let given = self.min_th.or(self.max_th);
        given.is_some_and(|threshold| !threshold.counts_packets())
    }

    /// The parameters that `tune` computes; `None` without it.
    fn tuning(&self, link: &LinkFacts) -> Result<Option<Tuning>, ParamError> {
        let Some(Tune::Ziegler) = self.tune else {
            return Ok(None);
        };
        let situation = Situation::of_link(link);
        let tuning = situation.map_or(Err(NoTuning::NoTcp), |situation| tune(&situation));
        tuning.map(Some).map_err(|reason| {
            let problem = match reason {
                NoTuning::NoTcp => "needs TCP flows across the link to compute parameters for",
                NoTuning::NoCapacity => {
                    "finds no capacity for TCP: the UDP sources alone fill the link"
                }
            };
            ParamError::new("tune", problem, "no tune, with limit, min_th and max_th")
        })
    }

    /// The queue's parameters on this link.
    pub(crate) fn setup(&self, link: &LinkFacts) -> Result<RedSetup, ParamError> {
        let measures_bytes = self.measures_bytes();
        let tuning = self.tuning(link)?;
        // Computed sizes are whole packets, or as many bytes if what is given is in bytes.
        let computed = |of: fn(&Tuning) -> f64| {
            let packets = tuning.as_ref().map_or(0.0, of).round().max(1.0);
            if measures_bytes {
                packets * link.tcp_packet.as_u64() as f64
            } else {
                packets
            }
        };
        let limit = self.limit.unwrap_or_else(|| {
            let size = computed(|tuning| tuning.limit) as u64;
            if measures_bytes {
                Limit::bytes(size)
            } else {
                Limit::packets(size)
            }
        });
        let limit = limit.at(link.rate);
        let threshold = |given: Option<QueueSize>, of| {
            given.map_or_else(|| computed(of), |size| threshold_at(size, link.rate))
        };
        let max_th = threshold(self.max_th, |tuning| tuning.max_th);
        let max_p = tuning.map_or(MAX_P, |tuning| tuning.max_p);
        let w_q = tuning.map_or(W_Q, |tuning| tuning.w_q);
        Ok(RedSetup {
            limit,
            measures_bytes,
            byte_mode: self.byte_mode.then_some(self.mean_packet),
            mean_packet: self.mean_packet,
            idle_decay: self.idle_decay,
            ecn: self.ecn,
            above_max_th: self.above_max_th,
            law: RedConfig {
                min_th: threshold(self.min_th, |tuning| tuning.min_th),
                max_th,
                max_p: self.max_p.unwrap_or(max_p),
                w_q: self.w_q.unwrap_or(w_q),
                gentle_end: gentle_end(self.gentle, max_th, limit, measures_bytes),
                spacing: self.spacing,
                flavour: self.flavour,
            },
        })
    }
}

/// The error for a missing key of RED.
fn missing(key: &'static str, example: &str) -> ParamError {
    ParamError::new(
        key,
        "is missing",
        format!("a queue size such as \"{example}\", or tune = \"ziegler\" to have it computed"),
    )
}

impl QueueKind for RedParams {
    type Queue<P: Packet> = Red<P>;

    fn example() -> &'static str {
        r#"limit = "250 packets"
min_th = "40 packets"
max_th = "120 packets""#
    }

    fn check(&self) -> Result<(), ParamError> {
        if self.tune.is_none() {
            self.limit.ok_or_else(|| missing("limit", "300 packets"))?;
            self.min_th.ok_or_else(|| missing("min_th", "45 packets"))?;
            self.max_th
                .ok_or_else(|| missing("max_th", "195 packets"))?;
        }
        self.limit.map_or(Ok(()), |limit| limit.check())?;
        if let (Some(min_th), Some(max_th)) = (self.min_th, self.max_th) {
            check_units(min_th, max_th)?;
        }
        let max_p = self.max_p.unwrap_or(MAX_P);
        check_unit_interval("max_p", max_p, "a probability")?;
        check_unit_interval("w_q", self.w_q.unwrap_or(W_Q), "a weight")?;
        check_mean_packet(self.mean_packet)
    }

    fn check_at(&self, link: &LinkFacts) -> Result<(), ParamError> {
        self.setup(link)?.check(self.gentle, self.max_th)
    }

    fn limit(&self) -> Option<Limit> {
        self.limit
    }

    fn warnings(&self, link: &LinkFacts) -> Vec<ParamWarning> {
        self.setup(link)
            .map_or_else(|_| Vec::new(), |setup| setup.warnings())
    }

    fn build<P: Packet>(&self, context: QueueContext) -> Red<P> {
        let setup = self.setup(&context.link).expect("check_at has passed");
        setup.build(Fixed, context)
    }
}

/// Queues, marks or drops an arrival as the law has decided; `fits` is whether the limit admits it. Returns whether it
/// was queued.
#[inline]
pub(crate) fn carry_out<P: Packet>(
    mut packet: P,
    decision: RedDecision,
    may_mark: impl FnOnce() -> bool,
    fits: bool,
    fifo: &mut Fifo<P>,
    now: Time,
    sink: &mut impl Sink<P>,
) -> bool {
    let reason = match decision {
        RedDecision::Pass => None,
        RedDecision::Early => Some(DropReason::Early),
        RedDecision::Forced => Some(DropReason::Forced),
    };
    if reason.is_some() || !fits {
        let may_mark = reason.is_some() && may_mark();
        // Only a packet that is going to be queued is marked: a packet that
        // meets a full buffer is lost whatever the law thinks of it.
        let marks = fits && may_mark && packet.mark_ce();
        if !marks {
            let chosen = reason.filter(|_| fits || !may_mark);
            sink.dropped(packet, chosen.unwrap_or(DropReason::Limit), now);
            return false;
        }
        sink.marked(&packet, now);
    }
    fifo.push(packet, now);
    true
}

/// The running queue, with the scheme that changes its law.
#[derive(Debug)]
pub struct Red<P, A = Fixed> {
    limit: Limit,
    measures_bytes: bool,
    /// In bytes; given in byte mode only.
    mean_packet: Option<f64>,
    /// Not zero.
    mean_packet_time: Span,
    idle_decay: bool,
    ecn: bool,
    above_max_th: AboveMaxTh,
    law: RedLaw,
    adaptation: A,
    stream: Stream,
    /// The time since which the link has been idle.
    idle_since: Option<Time>,
    fifo: Fifo<P>,
}

impl<P, A> Red<P, A> {
    /// Changes the limit of a queue that shares its buffer with another one.
    #[inline]
    pub(crate) fn set_limit(&mut self, limit: Limit) {
        self.limit = limit;
    }
}

impl<P: Packet, A: Adaptation> QueueDiscipline<P> for Red<P, A> {
    #[inline(always)] // into the engine, see `disciplines!`
    fn enqueue(&mut self, packet: P, now: Time, sink: &mut impl Sink<P>) {
        let backlog = self.fifo.backlog();
        let arrival = Arrival {
            backlog: as_f64(if self.measures_bytes {
                backlog.bytes
            } else {
                backlog.packets
            }),
            idle: self
                .idle_since
                .take()
                .map(|since| (now - since).as_ps() / self.mean_packet_time.as_ps()),
            relative_size: self
                .mean_packet
                .map(|mean| as_f64(packet.size().as_u64()) / mean),
        };
        self.law.observe(arrival);
        self.adaptation.adapt(&mut self.law, now);
        let decision = self
            .law
            .decide(arrival.relative_size, || self.stream.uniform());
        self.adaptation.decided(decision);
        let fits = self.limit.admits(backlog, packet.size());
        if !fits {
            self.law.on_overflow();
        }
        let (ecn, above_max_th, law) = (self.ecn, self.above_max_th, &self.law);
        let may_mark = || ecn && (above_max_th == AboveMaxTh::Mark || law.is_below_max_th());
        carry_out(packet, decision, may_mark, fits, &mut self.fifo, now, sink);
    }

    #[inline]
    fn dequeue(&mut self, now: Time, _sink: &mut impl Sink<P>) -> Option<P> {
        let packet = self.fifo.pop();
        if packet.is_none() && self.idle_decay {
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
    fn report(&self, _now: Time, report: &mut Report<'_>) {
        self.adaptation.report(&self.law, report);
    }
}
