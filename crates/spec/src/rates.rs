//! Traces of opportunities to deliver, and the times at which results are split.
//!
//! Source of the trace's form: the manual page mm-link(1) of mahimahi and the README of its traces.
//! A line is the millisecond, counted from the beginning, of one opportunity to deliver 1500 bytes.
//!
//! | symbol | is | unit |
//! |---|---|---|
//! | t_1 <= ... <= t_n | the trace's lines | ms |
//! | t_n | length of the trace, after which it repeats | ms |
//! | n * 12000 / t_n | its mean rate | bit/ms |

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use redtail_core::{Rate, Span};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::ser::{SerializeMap, Serializer};
use serde::{Deserialize, Serialize};

use crate::error::Problem;
use crate::node::{Node, Table, Value};
use crate::origin::Origin;
use crate::paths;
use crate::validate::LONGEST_RUN;
use crate::wire;

/// Bytes that one opportunity can deliver.
pub const OPPORTUNITY: u64 = 1500;

/// The largest number of lines of a trace; each takes 8 B of memory.
const MOST_LINES: usize = 10_000_000;

/// The interval over which the largest rate of a trace is computed.
const BURST_MS: u64 = 100;

/// The longest that a trace may last; no run is longer.
const LONGEST_MS: u64 = LONGEST_RUN.as_ps() / 1_000_000_000;

/// Opportunities to deliver, over and over.
///
/// In a file it is the name of a trace; what it holds is read before anything is decoded. Its text
/// is the differences between one line and the next, the first counted from 0: `1 0x2 3` are the
/// lines 1, 1, 1, 4.
#[derive(Debug, Clone, PartialEq)]
pub struct RateTrace(Arc<[u64]>);

impl RateTrace {
    /// The lines of one round, in milliseconds from its beginning: never decreasing, at least one,
    /// the last above zero.
    pub fn opportunities_ms(&self) -> &[u64] {
        &self.0
    }

    /// How long one round takes: the last line.
    pub fn length_ms(&self) -> u64 {
        self.0.last().copied().unwrap_or_default()
    }

    /// The mean rate of the trace, rounded to 1 bit/s.
    pub fn mean_rate(&self) -> Rate {
        let bits = self.0.len() as u128 * u128::from(OPPORTUNITY) * 8 * 1000;
        let ms = u128::from(self.length_ms());
        Rate::from_bps(u64::try_from((bits + ms / 2) / ms).unwrap_or(u64::MAX))
    }

    /// The largest number of bits that it delivers in 100 ms, as a rate.
    pub fn largest_rate(&self) -> Rate {
        let times = &self.0;
        let mut first = 0;
        let most = times.iter().enumerate().map(|(last, &at)| {
            while times[first] + BURST_MS <= at {
                first += 1;
            }
            last + 1 - first
        });
        let bits = most.max().unwrap_or(0) as u64 * OPPORTUNITY * 8;
        Rate::from_bps(bits.saturating_mul(1000) / BURST_MS).max(self.mean_rate())
    }

    /// Reads a trace; the error is the line, counted from 1, and what is wrong with it.
    fn from_lines(text: &str) -> Result<RateTrace, (usize, String)> {
        let mut found: Vec<u64> = Vec::new();
        for (index, line) in text.lines().enumerate() {
            let last = found.last().copied().unwrap_or_default();
            let milliseconds = "a whole number of milliseconds";
            let refused = |what: &str, accepted: String| {
                Err((index + 1, format!("{line:?} {what}; accepted: {accepted}")))
            };
            match line.trim().parse::<u64>() {
                Ok(ms) if ms < last => {
                    let accepted = format!("at least {last}, the line before");
                    return refused("is before the line above it", accepted);
                }
                Ok(ms) if ms > LONGEST_MS => {
                    return refused("is more than can be run", format!("up to {LONGEST_MS}"));
                }
                Ok(_) if found.len() == MOST_LINES => {
                    return refused("is one too many", format!("up to {MOST_LINES} lines"));
                }
                Ok(ms) => found.push(ms),
                Err(_) => return refused("is no time", milliseconds.to_owned()),
            }
        }
        let lines = found.len().max(1);
        RateTrace::new(found).map_err(|problem| (lines, problem.to_owned()))
    }

    fn new(ms: Vec<u64>) -> Result<RateTrace, &'static str> {
        match ms.last() {
            None => Err("the trace is empty; accepted: one line or more"),
            Some(0) => Err("the trace takes no time; accepted: a last line above 0"),
            Some(_) => Ok(RateTrace(ms.into())),
        }
    }

    fn from_differences(text: &str) -> Result<RateTrace, String> {
        let mut found = Vec::new();
        let mut now = 0_u64;
        for word in text.split_ascii_whitespace() {
            let (gap, count) = word.split_once('x').unwrap_or((word, "1"));
            let (Ok(gap), Ok(count)) = (gap.parse::<u64>(), count.parse::<usize>()) else {
                return Err(format!(
                    "{word:?} is no difference; accepted: such as 3, or 0x2 for 0 twice"
                ));
            };
            if count > MOST_LINES - found.len() {
                return Err(format!("has more than {MOST_LINES} opportunities"));
            }
            for _ in 0..count {
                now = now.saturating_add(gap);
                if now > LONGEST_MS {
                    return Err(format!("{now} ms is more than can be run"));
                }
                found.push(now);
            }
        }
        RateTrace::new(found).map_err(str::to_owned)
    }

    fn differences(&self) -> String {
        let mut text = String::new();
        let (mut last, mut run) = (0, None::<(u64, usize)>);
        let mut write = |run: Option<(u64, usize)>| {
            let Some((gap, count)) = run else { return };
            if !text.is_empty() {
                text.push(' ');
            }
            text += &gap.to_string();
            if count > 1 {
                text += &format!("x{count}");
            }
        };
        for &ms in self.0.iter() {
            let gap = ms - last;
            last = ms;
            run = match run {
                Some((same, count)) if same == gap => Some((same, count + 1)),
                other => {
                    write(other);
                    Some((gap, 1))
                }
            };
        }
        write(run);
        text
    }
}

/// The key of the table that contains a trace and replaces its name.
const DIFFERENCES: &str = "differences_ms";

impl Serialize for RateTrace {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(1))?;
        map.serialize_entry(DIFFERENCES, &self.differences())?;
        map.end()
    }
}

impl<'de> Deserialize<'de> for RateTrace {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Text {
            differences_ms: String,
        }
        struct Trace;
        impl<'de> Visitor<'de> for Trace {
            type Value = RateTrace;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the name of a trace")
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<RateTrace, A::Error> {
                let text = Text::deserialize(de::value::MapAccessDeserializer::new(map))?;
                RateTrace::from_differences(&text.differences_ms).map_err(de::Error::custom)
            }
        }
        deserializer.deserialize_any(Trace)
    }
}

impl JsonSchema for RateTrace {
    fn schema_name() -> Cow<'static, str> {
        "RateTrace".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string" })
    }
}

/// Gives the text of a file by the name that an experiment has for it, or says in a clause what is
/// wrong and what is accepted.
pub(crate) type ReadFile<'a> = dyn FnMut(&str) -> Result<String, String> + 'a;

/// Replaces the names of traces by their contents, and sets the rate of links without one to the mean rate
/// of their trace. Removes traces that cannot be read, and returns what is wrong with them.
pub(crate) fn embed(root: &mut Node, read: &mut ReadFile<'_>) -> Vec<Problem> {
    let mut problems = Vec::new();
    let Some(table) = root.as_table_mut() else {
        return problems; // decoding says it better, here and below
    };
    if let Some(link) = table.get_mut("bottleneck") {
        embed_link("bottleneck", link, read, &mut problems);
    }
    let hops = table.get_mut("chain").and_then(Node::as_table_mut);
    if let Some(Node {
        value: Value::Array(hops),
        ..
    }) = hops.and_then(|chain| chain.get_mut("hop"))
    {
        for (index, hop) in hops.iter_mut().enumerate() {
            let key = paths::hop_key(index + 1, paths::name_of(hop));
            embed_link(&key, hop, read, &mut problems);
        }
    }
    problems
}

fn embed_link(key: &str, link: &mut Node, read: &mut ReadFile<'_>, problems: &mut Vec<Problem>) {
    let Some(table) = link.as_table_mut() else {
        return;
    };
    let (mut mean, mut unread) = (None, false);
    if let Some(node) = table.get_mut("rate_trace") {
        let origin = node.origin.clone();
        match trace(&format!("{key}.rate_trace"), node, read) {
            Ok(Some(trace)) => {
                mean = Some(Node::text(&trace.mean_rate().to_string(), origin.clone()));
                node.value = content(DIFFERENCES, &trace.differences(), origin);
            }
            Ok(None) => {}
            Err(problem) => {
                problems.push(problem);
                unread = true;
            }
        }
    }
    if unread {
        table.remove("rate_trace");
    }
    if let Some(mean) = mean.filter(|_| table.get("rate").is_none()) {
        table.insert("rate", mean);
    }
    wire::embed(key, table, read, problems);
    if let Some(back) = table.get_mut("return") {
        embed_link(&format!("{key}.return"), back, read, problems);
    }
}

/// The trace that a node names or contains; `None` if there is none.
fn trace(key: &str, node: &Node, read: &mut ReadFile<'_>) -> Result<Option<RateTrace>, Problem> {
    if let Some(named) = read_named(key, node, read, RateTrace::from_lines) {
        return named.map(Some);
    }
    let text = node.as_table().and_then(|table| table.get(DIFFERENCES));
    let trace = text.and_then(Node::as_str).map(RateTrace::from_differences);
    trace
        .transpose()
        .map_err(|problem| problem_at(key, node, format!("{key}: {problem}")))
}

/// What a file holds that a node names; `None` if the node is no name. The error of `from_lines` is a line, counted from
/// 1, and what is wrong with it.
pub(crate) fn read_named<T>(
    key: &str,
    node: &Node,
    read: &mut ReadFile<'_>,
    from_lines: impl FnOnce(&str) -> Result<T, (usize, String)>,
) -> Option<Result<T, Problem>> {
    let name = node.as_str()?;
    let refuse = |clause: String| problem_at(key, node, format!("{key} = {name:?}{clause}"));
    let text = read(name).map_err(|clause| refuse(format!(" {clause}")));
    Some(text.and_then(|text| {
        from_lines(&text).map_err(|(line, problem)| refuse(format!(": {name}:{line}: {problem}")))
    }))
}

fn problem_at(key: &str, node: &Node, message: String) -> Problem {
    Problem {
        origin: node.origin.clone(),
        key: Some(key.to_owned()),
        message,
    }
}

/// A table with this text alone: what a file holds, in the place of its name.
pub(crate) fn content(key: &str, text: &str, origin: Origin) -> Value {
    let mut table = Table::default();
    table.insert(key, Node::text(text, origin));
    Value::Table(table)
}

/// Where the results of a run are split.
#[derive(Debug, Clone, PartialEq)]
pub enum Phases {
    /// Wherever a rate changes and a group of flows starts or stops at a fixed time.
    Auto,
    /// At these times, counted from the start of the run.
    At(Vec<Span>),
}

const PHASES: &str = "\"auto\", or a list of times such as [\"50 s\", \"150 s\"]";

impl Serialize for Phases {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Phases::Auto => serializer.serialize_str("auto"),
            Phases::At(times) => times.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Phases {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = Phases;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(PHASES)
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Phases, E> {
                match text {
                    "auto" => Ok(Phases::Auto),
                    _ => Err(E::invalid_value(de::Unexpected::Str(text), &self)),
                }
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Phases, A::Error> {
                let mut times = Vec::new();
                while let Some(time) = list.next_element()? {
                    times.push(time);
                }
                Ok(Phases::At(times))
            }
        }
        deserializer.deserialize_any(Either)
    }
}

impl JsonSchema for Phases {
    fn schema_name() -> Cow<'static, str> {
        "Phases".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let time = generator.subschema_for::<Span>();
        json_schema!({ "anyOf": [
            { "type": "string", "enum": ["auto"] },
            { "type": "array", "items": time, "minItems": 1 },
        ]})
    }
}

/// Where an entry of the list at `node` stands.
pub(crate) fn entry_origin(node: Option<&Node>, index: usize) -> Option<Origin> {
    Some(node?.as_array()?.get(index)?.origin.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_read_back_as_the_lines_they_were_written_from() {
        let trace = RateTrace::from_lines("1\n1\n1\n4\n7\n7\n").unwrap();
        assert_eq!(trace.opportunities_ms(), [1, 1, 1, 4, 7, 7]);
        assert_eq!(trace.differences(), "1 0x2 3x2 0");
        let again = RateTrace::from_differences(&trace.differences()).unwrap();
        assert_eq!(again, trace);
        // 6 x 12,000 bit in 7 ms: 10,285,714.29 bit/s.
        assert_eq!(trace.mean_rate(), Rate::from_bps(10_285_714));
    }

    #[test]
    fn a_line_that_is_no_opportunity_is_named() {
        let refusal = |text: &str| RateTrace::from_lines(text).unwrap_err();
        assert_eq!(
            refusal("1\nx\n"),
            (
                2,
                "\"x\" is no time; accepted: a whole number of milliseconds".to_owned()
            )
        );
        assert_eq!(
            refusal("5\n4\n"),
            (
                2,
                "\"4\" is before the line above it; accepted: at least 5, the line before"
                    .to_owned()
            )
        );
        assert_eq!(refusal("1\n\n3").0, 2);
        assert_eq!(refusal("-1").0, 1);
        assert_eq!(
            refusal("").1,
            "the trace is empty; accepted: one line or more"
        );
        assert_eq!(
            refusal("0\n0\n"),
            (
                2,
                "the trace takes no time; accepted: a last line above 0".to_owned()
            )
        );
        assert_eq!(refusal("8640000001").0, 1);
    }
}
