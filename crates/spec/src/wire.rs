//! What happens to packets after the transmitter of a link: the table `wire`.
//!
//! A packet that the transmitter has sent completely meets the parts of the wire in this order:
//!
//! 1. `loss`: it may be lost.
//! 2. `duplicate`: it may become two. The copy goes through all that follows by itself, behind the packet.
//! 3. `limit`: it is dropped if the delay line is full.
//! 4. `batches`: it waits for the next release.
//! 5. the delay: `delay` of the link, or what `delay_changes` or `delay_trace` say it is now.
//! 6. `jitter`: it takes a random time more.
//! 7. `reorder`: it may take a time more in which others overtake it.
//!
//! Sources: E. N. Gilbert, "Capacity of a burst-noise channel", Bell System Technical Journal 39(5), 1960; E. O. Elliott,
//! "Estimates of error rates for codes on burst-noise channels", Bell System Technical Journal 42(5), 1963, in the form of
//! G. Hasslinger and O. Hohlfeld, "The Gilbert-Elliott model for packet loss in real time services on the Internet", MMB 2008;
//! manual page tc-netem(8); RFC 4737 for reordering; RFC 5560 for duplication.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use redtail_core::{Span, params};
use redtail_traffic::Dist;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{self, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::ser::{SerializeMap, Serializer};
use serde::{Deserialize, Serialize};

use crate::error::Problem;
use crate::node::{Node, Table};
use crate::rates::{ReadFile, content, read_named};
use crate::validate::{LONGEST_DELAY, LONGEST_RUN};

params! {
    /// What happens to packets after the transmitter of a link. Without a key of it, each packet arrives once, in order, after `delay`.
    #[schemars(rename = "Wire")]
    pub struct WireParams {
        /// Losses: the probability with which each packet is lost, independently of all others (0 or more, below 1), or a table for the Gilbert-Elliott model, which loses packets in bursts. A lost packet has used its transmission time.
        loss: Option<Loss>, "none";
        /// Probability with which a packet arrives twice (RFC 5560); 0 to 1. The copy follows the packet, and takes its own `jitter` and `reorder`.
        #[schemars(range(min = 0.0, max = 1.0))]
        duplicate: Option<f64>, "none";
        /// Reordering: a share of the packets takes a time more, in which others overtake them.
        reorder: Option<ReorderParams>, "none";
        /// A random time that each packet takes in addition to the delay, drawn for each packet; draws above 1 h count as 1 h. With `order = "kept"` a packet then waits for those before it.
        jitter: Option<Dist<Span>>, "none";
        /// With `jitter`, `delay_changes` or `delay_trace`: whether a packet with a shorter delay overtakes those before it ("free"), or arrives with the last of them at the earliest ("kept").
        order: Option<Order>, "kept: routers and link layers keep the order of a flow, RFC 4737, section 1, calls the opposite the exception. netem's delay is \"free\".";
        /// Changes of the propagation delay. A list, each a time and the delay from then on; or a table for handovers, which come in a period and draw the delay. A packet has the delay of the time at which it enters the delay line.
        delay_changes: Option<DelayChanges>, "none";
        /// A trace of the propagation delay: a file of which each line is a time and the delay from then on, both in milliseconds, such as `1500 23.4`. Before the first line the delay is `delay`; after the last it stays. The name of the file is relative to the experiment file, and its content is part of the scenario.
        delay_trace: Option<DelayTrace>, "none";
        /// The most packets on the delay line, those that `jitter`, `reorder` or `batches` hold included; a packet that finds so many is dropped and counted as lost on the wire. It is the `limit` of netem.
        #[schemars(range(min = 1))]
        limit: Option<u64>, "none; netem has 1000";
        /// Packets are released together, as links do that wait for an opportunity to send: 802.11, DOCSIS, LTE. It is the `slot` of netem. On a return link it makes aggregated acknowledgements (draft-ietf-ccwg-bbr, "Estimating ACK aggregation").
        batches: Option<BatchesParams>, "none";
    }
}

params! {
    /// Losses of the Gilbert-Elliott model. It has a good and a bad state, which may change after each packet. The first state is drawn: bad with probability p / (p + r).
    #[schemars(rename = "GilbertElliott")]
    pub struct GilbertElliottParams {
        /// Probability with which the bad state follows the good one; 0 to 1. netem's `p`.
        #[schemars(range(min = 0.0, max = 1.0))]
        p: f64;
        /// Probability with which the good state follows the bad one; above 0, at most 1. The bad state lasts 1 / r packets in the mean. netem's `r`.
        #[schemars(range(max = 1.0), extend("exclusiveMinimum" = 0.0))]
        r: f64;
        /// Probability with which a packet arrives in the bad state; 0 to 1. netem has 1 - h.
        #[schemars(range(min = 0.0, max = 1.0))]
        h: f64 = 0.0, "each packet is lost in the bad state, as in netem; with `k` = 1 the simple Gilbert model, of which the losses are runs of 1 / r packets in the mean.";
        /// Probability with which a packet arrives in the good state; 0 to 1. netem has 1 - k.
        #[schemars(range(min = 0.0, max = 1.0))]
        k: f64 = 1.0, "no packet is lost in the good state: Gilbert 1960.";
    }

    /// Reordering. A packet that is chosen takes a time more, and no packet waits for it; the packets that others overtake are what RFC 4737 calls reordered.
    #[schemars(rename = "Reorder")]
    pub struct ReorderParams {
        /// Probability with which a packet is chosen, independently of all others; 0 to 1. `reorder` of netem is the opposite: it sends a share at once, and delays all others.
        #[schemars(range(min = 0.0, max = 1.0))]
        share: f64;
        /// The time that a chosen packet takes more, drawn for each; draws above 1 h count as 1 h.
        by: Dist<Span>;
    }

    /// A change of the propagation delay.
    #[schemars(rename = "DelayChange")]
    pub struct DelayChangeParams {
        /// Time of the change, from the start of the run.
        at: Span;
        /// Propagation delay from this time on.
        delay: Span;
        /// An interruption that begins with the change: packets that the transmitter sends within this time wait at its end of the wire until it is over.
        gap: Option<Span>, "none.";
    }

    /// Handovers: the propagation delay changes each time a period has passed.
    #[schemars(rename = "Handovers")]
    pub struct HandoverParams {
        /// The period; 1 ms or more. The first handover is one period after the start of the run.
        every: Span;
        /// Propagation delay from a handover to the next, drawn for each; up to 1 h.
        delay: Dist<Span>;
        /// An interruption that begins with each handover, shorter than the period: packets that the transmitter sends within this time wait at its end of the wire until it is over.
        gap: Option<Span>, "none.";
    }

    /// Packets are released together.
    #[schemars(rename = "Batches")]
    pub struct BatchesParams {
        /// Time between two releases, which are at its multiples from the start of the run; 1 us or more. A packet that is sent at such a time goes with this release.
        every: Span;
        /// The most packets of one release; what is left waits for the next.
        #[schemars(range(min = 1))]
        packets: Option<u64>, "any number.";
    }
}

/// How packets are lost.
#[derive(Debug, Clone, PartialEq)]
pub enum Loss {
    /// Each with this probability, independently of all others.
    Independent(f64),
    /// In bursts.
    GilbertElliott(GilbertElliottParams),
}

impl GilbertElliottParams {
    /// The probability of the bad state at any packet.
    pub fn bad(&self) -> f64 {
        match self.p + self.r {
            0.0 => 0.0,
            sum => self.p / sum,
        }
    }

    /// The probability with which a packet is lost.
    pub fn loss(&self) -> f64 {
        self.bad() * (1.0 - self.h) + (1.0 - self.bad()) * (1.0 - self.k)
    }
}

/// Whether packets overtake.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum Order {
    /// A packet waits for those before it.
    Kept,
    /// A packet with a shorter delay overtakes.
    Free,
}

/// How the propagation delay changes.
#[derive(Debug, Clone, PartialEq)]
pub enum DelayChanges {
    /// At given times.
    Steps(Vec<DelayChangeParams>),
    /// In a period.
    Handovers(HandoverParams),
}

/// The largest number of lines of a trace of the delay; each takes 16 B of memory.
const MOST_LINES: usize = 1_000_000;

/// The delay over time: in a file the name of a trace; what it holds is read before anything is decoded. Its text is pairs of
/// a time and a delay in picoseconds.
#[derive(Debug, Clone, PartialEq)]
pub struct DelayTrace(Arc<[(Span, Span)]>);

impl WireParams {
    /// Whether it may hold a packet, which then needs an event of its own.
    pub fn holds(&self) -> bool {
        self.reorder.is_some()
            || self.jitter.is_some()
            || self.delay_changes.is_some()
            || self.delay_trace.is_some()
            || self.batches.is_some()
    }

    /// Whether packets may overtake each other.
    pub fn reorders(&self) -> bool {
        self.reorder.is_some() || self.order == Some(Order::Free)
    }

    /// The shortest propagation delay of a link of which the first is `delay`.
    pub fn least_delay(&self, delay: Span) -> Span {
        let of_changes = match &self.delay_changes {
            None => None,
            Some(DelayChanges::Steps(steps)) => steps.iter().map(|step| step.delay).min(),
            Some(DelayChanges::Handovers(law)) => Some(law.delay.quantile(0.0)),
        };
        let trace = self.delay_trace.as_ref();
        let of_trace = trace.and_then(|trace| trace.steps().iter().map(|step| step.1).min());
        let others = [of_changes, of_trace].into_iter().flatten();
        others.fold(delay, Span::min)
    }
}

impl DelayTrace {
    /// Each time with the delay from then on; the times increase.
    pub fn steps(&self) -> &[(Span, Span)] {
        &self.0
    }

    /// Reads a trace; the error is the line, counted from 1, and what is wrong with it.
    fn from_lines(text: &str) -> Result<Self, (usize, String)> {
        let mut found: Vec<(Span, Span)> = Vec::new();
        for (index, line) in text.lines().enumerate() {
            let refused = |why: &str, accepted: &str| {
                Err((index + 1, format!("{line:?} {why}; accepted: {accepted}")))
            };
            let words: Vec<_> = line
                .split([' ', '\t', ','])
                .filter(|it| !it.is_empty())
                .collect();
            let read = |word: &str| format!("{word} ms").parse::<Span>().ok();
            let [Some(at), Some(delay)] = (match words[..] {
                [at, delay] => [read(at), read(delay)],
                _ => [None, None],
            }) else {
                let accepted = "a time and a delay in milliseconds, such as 1500 23.4";
                return refused("is no time with a delay", accepted);
            };
            let last = found.last().map(|last| last.0);
            if last.is_some_and(|last| at <= last) {
                return refused("is not after the line above it", "times that increase");
            }
            if at > LONGEST_RUN || delay > LONGEST_DELAY {
                return refused(
                    "is more than can be run",
                    "up to 100 days, and a delay of 1 h",
                );
            }
            if found.len() == MOST_LINES {
                let accepted = format!("up to {MOST_LINES} lines");
                return refused("is one too many", &accepted);
            }
            found.push((at, delay));
        }
        match found.is_empty() {
            true => Err((
                1,
                "the trace is empty; accepted: one line or more".to_owned(),
            )),
            false => Ok(Self(found.into())),
        }
    }

    fn from_pairs(text: &str) -> Result<Self, String> {
        let mut found: Vec<(Span, Span)> = Vec::new();
        let mut words = text.split_ascii_whitespace();
        while let Some(word) = words.next() {
            let read = |word: &str| word.parse().map(Span::from_ps).ok();
            let pair = read(word).zip(words.next().and_then(read));
            let follows = |pair: &(Span, Span)| found.last().is_none_or(|last| last.0 < pair.0);
            match pair.filter(follows) {
                Some(pair) if pair.0 <= LONGEST_RUN && pair.1 <= LONGEST_DELAY => found.push(pair),
                _ => {
                    return Err(format!(
                        "{word:?} does not begin a time and a delay in picoseconds that follow"
                    ));
                }
            }
            if found.len() > MOST_LINES {
                return Err(format!("has more than {MOST_LINES} changes"));
            }
        }
        match found.is_empty() {
            true => Err("the trace is empty; accepted: one line or more".to_owned()),
            false => Ok(Self(found.into())),
        }
    }

    fn pairs(&self) -> String {
        let pair = |(at, delay): &(Span, Span)| format!("{} {}", at.as_ps(), delay.as_ps());
        self.0.iter().map(pair).collect::<Vec<_>>().join(" ")
    }
}

/// The key of the table that contains a trace and replaces its name.
const STEPS: &str = "steps_ps";

/// Replaces the name of a trace of the delay in the table of a link by its content. `key` is the key of the link.
pub(crate) fn embed(
    key: &str,
    link: &mut Table,
    read: &mut ReadFile<'_>,
    problems: &mut Vec<Problem>,
) {
    let Some(wire) = link.get_mut("wire").and_then(Node::as_table_mut) else {
        return;
    };
    let Some(node) = wire.get_mut("delay_trace") else {
        return;
    };
    let key = format!("{key}.wire.delay_trace");
    match read_named(&key, node, read, DelayTrace::from_lines) {
        None => {} // it is the content, or decoding refuses it
        Some(Ok(trace)) => node.value = content(STEPS, &trace.pairs(), node.origin.clone()),
        Some(Err(problem)) => {
            problems.push(problem);
            wire.remove("delay_trace");
        }
    }
}

impl Serialize for DelayTrace {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(1))?;
        map.serialize_entry(STEPS, &self.pairs())?;
        map.end()
    }
}

impl<'de> Deserialize<'de> for DelayTrace {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Text {
            steps_ps: String,
        }
        struct Trace;
        impl<'de> Visitor<'de> for Trace {
            type Value = DelayTrace;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the name of a trace")
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<DelayTrace, A::Error> {
                let text = Text::deserialize(MapAccessDeserializer::new(map))?;
                DelayTrace::from_pairs(&text.steps_ps).map_err(de::Error::custom)
            }
        }
        deserializer.deserialize_any(Trace)
    }
}

impl JsonSchema for DelayTrace {
    fn schema_name() -> Cow<'static, str> {
        "DelayTrace".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string" })
    }
}

impl Serialize for Loss {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Independent(probability) => serializer.serialize_f64(*probability),
            Self::GilbertElliott(model) => model.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Loss {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = Loss;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a probability, or a table with p and r (Gilbert-Elliott)")
            }

            fn visit_f64<E: de::Error>(self, number: f64) -> Result<Loss, E> {
                Ok(Loss::Independent(number))
            }

            fn visit_u64<E: de::Error>(self, number: u64) -> Result<Loss, E> {
                Ok(Loss::Independent(number as f64))
            }

            fn visit_i64<E: de::Error>(self, number: i64) -> Result<Loss, E> {
                Ok(Loss::Independent(number as f64))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Loss, A::Error> {
                let model = GilbertElliottParams::deserialize(MapAccessDeserializer::new(map))?;
                Ok(Loss::GilbertElliott(model))
            }
        }
        deserializer.deserialize_any(Either)
    }
}

impl JsonSchema for Loss {
    fn schema_name() -> Cow<'static, str> {
        "Loss".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let model = generator.subschema_for::<GilbertElliottParams>();
        json_schema!({ "anyOf": [
            { "type": "number", "minimum": 0.0, "exclusiveMaximum": 1.0 },
            model,
        ]})
    }
}

impl Serialize for DelayChanges {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Steps(steps) => steps.serialize(serializer),
            Self::Handovers(law) => law.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for DelayChanges {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = DelayChanges;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of tables with at and delay, or a table with every and delay")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<DelayChanges, A::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(list)).map(DelayChanges::Steps)
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<DelayChanges, A::Error> {
                let law = HandoverParams::deserialize(MapAccessDeserializer::new(map))?;
                Ok(DelayChanges::Handovers(law))
            }
        }
        deserializer.deserialize_any(Either)
    }
}

impl JsonSchema for DelayChanges {
    fn schema_name() -> Cow<'static, str> {
        "DelayChanges".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let step = generator.subschema_for::<DelayChangeParams>();
        let law = generator.subschema_for::<HandoverParams>();
        json_schema!({ "anyOf": [
            { "type": "array", "items": step, "minItems": 1 },
            law,
        ]})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_of_the_delay_reads_back_as_it_was_written() {
        let trace = DelayTrace::from_lines("0 20\n1500.5\t23.456789\n2000, 5\n").unwrap();
        assert_eq!(
            trace.pairs(),
            "0 20000000000 1500500000000 23456789000 2000000000000 5000000000"
        );
        assert_eq!(DelayTrace::from_pairs(&trace.pairs()).unwrap(), trace);
    }

    #[test]
    fn a_line_that_is_no_delay_is_named() {
        let refusal = |text: &str| DelayTrace::from_lines(text).unwrap_err();
        let accepted = "is no time with a delay; accepted: a time and a delay in milliseconds, such as 1500 23.4";
        assert_eq!(refusal("1 2\n3\n"), (2, format!("\"3\" {accepted}")));
        assert_eq!(refusal("1 -2\n"), (1, format!("\"1 -2\" {accepted}")));
        assert_eq!(refusal("a b\n"), (1, format!("\"a b\" {accepted}")));
        assert_eq!(
            refusal("5 1\n5 2\n").1,
            "\"5 2\" is not after the line above it; accepted: times that increase"
        );
        assert_eq!(
            refusal("").1,
            "the trace is empty; accepted: one line or more"
        );
        assert_eq!(refusal("0 3600001\n").0, 1);
    }

    #[test]
    fn the_loss_of_the_model_is_the_mean_over_its_states() {
        let mut model = GilbertElliottParams::new(0.01, 0.19);
        assert!((model.loss() - 0.05).abs() < 1e-12);
        (model.h, model.k) = (0.5, 0.9);
        assert!((model.loss() - (0.05 * 0.5 + 0.95 * 0.1)).abs() < 1e-12);
    }
}
