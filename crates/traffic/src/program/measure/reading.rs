//! From the outputs of programs to numbers.
//!
//! Outputs are data of others: whatever they have, reading them ends soon and takes memory in proportion to their
//! size. JSON is at most 128 levels deep, which serde_json sees to.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::{Deserializer, Value};

use super::path::{JsonPath, Step};
use super::qlog;
use super::{MeasureParams, Place, Source, Statistic};

/// What one program of a pair has left behind.
#[derive(Clone, Debug)]
pub struct Output<'a> {
    /// The number of the pair, from 0.
    pub flow: u32,
    /// Whether it is the server.
    pub server: bool,
    /// What it printed.
    pub printed: &'a [u8],
    /// Whether it printed more.
    pub cut: bool,
    /// Its files in `{out}`, each by its name.
    pub files: Vec<(&'a str, &'a [u8])>,
    /// The names of files that are not kept.
    pub left_out: Vec<&'a str>,
}

/// The numbers that the programs of a group tell, by the names of the metrics; one that is optional and not there is
/// left out.
///
/// # Errors
/// A number is not there; the text says which, of which pair, and what there is in its place.
pub fn read(
    group: &str,
    pairs: u32,
    measures: &BTreeMap<String, MeasureParams>,
    outputs: &[Output<'_>],
) -> Result<Vec<(String, f64)>, String> {
    let mut by_name = vec![Vec::new(); measures.len()];
    for flow in 0..pairs {
        let of_pair = || outputs.iter().filter(move |output| output.flow == flow);
        let found = of_one_pair(measures, of_pair);
        for ((values, found), (name, measure)) in by_name.iter_mut().zip(found).zip(measures) {
            match found.number(measure) {
                Ok(value) => values.push(value),
                Err(_) if measure.optional => {}
                Err(why) => {
                    let name = metric(group, name);
                    let place = measure.place().map(|place| place.to_string());
                    let place = place.unwrap_or_default();
                    let whose = whose(&measure.from);
                    let of = match pairs {
                        1 => String::new(),
                        _ => format!(" of pair {flow}"),
                    };
                    return Err(format!("{name}: {place} is not in {whose}{of}: {why}"));
                }
            }
        }
    }
    let mut told = Vec::new();
    for (values, (name, measure)) in by_name.iter().zip(measures) {
        let whole = values.len() == pairs as usize;
        let Some(value) = whole.then(|| measure.pairs.of(values)).flatten() else {
            continue;
        };
        let stored = value / measure.unit.units().scale;
        let name = metric(group, name);
        if !stored.is_finite() {
            return Err(format!(
                "{name}: {value} {} is beyond all numbers",
                measure.unit
            ));
        }
        told.push((name, stored));
    }
    Ok(told)
}

/// The name of the metric that a measure of a group is.
pub fn metric(group: &str, measure: &str) -> String {
    format!("{group}.measured.{measure}")
}

/// Whose output a source is, for messages.
fn whose(source: &Source) -> String {
    let program = if source.is_server() {
        "server"
    } else {
        "client"
    };
    match source.files() {
        None => format!("the {program}'s output"),
        Some(pattern) => format!("the files {pattern} in the {program}'s {{out}}"),
    }
}

/// What was found of a measure in the outputs of one pair.
#[derive(Clone, Debug, Default)]
pub(super) struct Found {
    /// The numbers.
    values: Vec<f64>,
    /// How many outputs could be read.
    read: usize,
    /// Why the first one that has none has none.
    why: Option<Missed>,
    /// Why the first one that cannot be read cannot.
    unreadable: Option<Missed>,
}

impl Found {
    fn number(&self, measure: &MeasureParams) -> Result<f64, Missed> {
        // A part of the numbers would be another number.
        if let Some(why) = &self.unreadable {
            return Err(why.clone());
        }
        if self.read == 0 {
            return Err(Missed::new("there is none", "a program that ran"));
        }
        match (measure.statistic, &self.values[..]) {
            // A path that leads nowhere tells of no number of things.
            (Some(Statistic::Count), []) if measure.json.is_some() && self.why.is_some() => None,
            (Some(statistic), values) => statistic.of(values),
            (None, [value]) => Some(*value),
            (None, []) => None,
            (None, values) => {
                let problem = format!("there are {} numbers", values.len());
                let accepted = "one, or a key statistic, such as \"last\" or \"mean\"";
                return Err(Missed::new(problem, accepted));
            }
        }
        .ok_or_else(|| {
            let nothing = || Missed::new("nothing fits", "what the output has");
            self.why.clone().unwrap_or_else(nothing)
        })
    }

    pub(super) fn miss(&mut self, why: impl FnOnce() -> Missed) {
        if self.why.is_none() {
            self.why = Some(why());
        }
    }

    fn cannot(&mut self, why: Missed) {
        self.unreadable.get_or_insert(why);
    }

    /// Enters what stands at the end of a path.
    pub(super) fn enter(
        &mut self,
        measure: &MeasureParams,
        value: &Value,
        at: impl Fn() -> String,
    ) {
        if measure.counts() && !value.is_null() {
            self.values.push(1.0);
            return;
        }
        let number = match value {
            Value::Number(number) => number.as_f64(),
            Value::String(text) => number(text, measure),
            _ => None,
        };
        match number {
            Some(number) => self.values.push(number),
            None => self.miss(|| {
                let value = cut(&value.to_string(), 40);
                Missed::new(format!("{} is {value}", at()), "a number")
            }),
        }
    }
}

/// Why a number is not there, and what is.
#[derive(Clone, Debug)]
pub(super) struct Missed {
    problem: String,
    accepted: String,
}

impl Missed {
    pub(super) fn new(problem: impl Into<String>, accepted: impl Into<String>) -> Self {
        Self {
            problem: problem.into(),
            accepted: accepted.into(),
        }
    }
}

impl Missed {
    /// Adds what a document itself says of an error, as iperf3 does, whose code may be 0 all the same.
    fn told_by(mut self, document: &Value) -> Self {
        if let Some(error) = document.get("error").and_then(Value::as_str) {
            self.problem += &format!(", and error is \"{}\"", cut(error, 200));
        }
        self
    }
}

impl fmt::Display for Missed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; accepted: {}", self.problem, self.accepted)
    }
}

/// The first letters of a text of others, without what does not print.
pub(super) fn cut(text: &str, letters: usize) -> String {
    let mut all = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    let mut found: String = all.by_ref().take(letters).collect();
    if all.next().is_some() {
        found.push('…');
    }
    found
}

/// Some of many words of others, for a message.
pub(super) fn some<'a>(words: impl Iterator<Item = &'a str>) -> String {
    let mut words = words.map(|word| cut(word, 40));
    let mut found: Vec<String> = words.by_ref().take(20).collect();
    if words.next().is_some() {
        found.push("…".to_owned());
    }
    if found.is_empty() {
        "nothing, it is empty".to_owned()
    } else {
        found.join(", ")
    }
}

/// One output after the other is read once for all measures that it is a source of.
fn of_one_pair<'a, 'b: 'a, I: Iterator<Item = &'a Output<'b>>>(
    measures: &BTreeMap<String, MeasureParams>,
    outputs: impl Fn() -> I,
) -> Vec<Found> {
    let mut found = vec![Found::default(); measures.len()];
    for output in outputs() {
        let server = output.server;
        let printed = |from: &Source| from.files().is_none() && from.is_server() == server;
        let whole = (output.printed, output.cut);
        of_one_output(measures, &mut found, printed, whole, "it");
        let mut files: Vec<_> = output.files.iter().collect();
        files.sort_unstable();
        for (name, bytes) in files {
            let is_source = |from: &Source| from.has(server, name);
            of_one_output(
                measures,
                &mut found,
                is_source,
                (bytes, false),
                &cut(name, 80),
            );
        }
    }
    for (found, measure) in found.iter_mut().zip(measures.values()) {
        let from = &measure.from;
        let of_program = || outputs().filter(|output| output.server == from.is_server());
        let left_out = of_program().flat_map(|output| &output.left_out);
        if let Some(name) = left_out
            .copied()
            .find(|name| from.has(from.is_server(), name))
        {
            let problem = format!("{} is not kept", cut(name, 80));
            found.cannot(Missed::new(
                problem,
                "fewer, smaller and plain files in {out}",
            ));
        } else if found.read == 0 && from.files().is_some() {
            let names = of_program().flat_map(|output| output.files.iter().map(|(name, _)| *name));
            found.cannot(Missed::new("no file has such a name", some(names)));
        }
    }
    found
}

fn of_one_output(
    measures: &BTreeMap<String, MeasureParams>,
    found: &mut [Found],
    is_source: impl Fn(&Source) -> bool,
    (bytes, is_cut): (&[u8], bool),
    name: &str,
) {
    let mut json = None;
    let each = found.iter_mut().zip(measures.values());
    let mut events = Vec::new();
    for (found, measure) in each.filter(|(_, measure)| is_source(&measure.from)) {
        found.read += 1;
        if is_cut {
            let problem = format!("{name} was cut, as the program printed more than is kept");
            found.cannot(Missed::new(problem, "a shorter output, or a file in {out}"));
            continue;
        }
        match measure.place() {
            Some(Place::Json(path)) => match json.get_or_insert_with(|| documents(bytes)) {
                Ok(documents) => {
                    for document in documents {
                        found.walk(measure, document, &path.steps);
                    }
                }
                Err(why) => found.cannot(unreadable(name, bytes, why, "JSON and nothing else")),
            },
            Some(Place::Line(pattern)) => found.lines(measure, bytes, &pattern.regex),
            Some(Place::Qlog(field)) => events.push((found, measure, field)),
            None => {}
        }
    }
    if !events.is_empty()
        && let Err(why) = qlog::read(bytes, &mut events)
    {
        for (found, ..) in events {
            found.cannot(unreadable(name, bytes, &why, QLOG));
        }
    }
}

const QLOG: &str = "a qlog of version 0.3 or later";

fn unreadable(name: &str, bytes: &[u8], why: &str, accepted: &str) -> Missed {
    let problem = match bytes.is_empty() {
        true => format!("{name} is empty"),
        false => format!(
            "{name} begins \"{}\" and cannot be read: {why}",
            beginning(bytes)
        ),
    };
    Missed::new(problem, accepted)
}

/// The first letters of an output.
fn beginning(bytes: &[u8]) -> String {
    cut(&String::from_utf8_lossy(&bytes[..bytes.len().min(200)]), 60)
}

/// The JSON in an output: one value, or one after the other.
fn documents(bytes: &[u8]) -> Result<Vec<Value>, String> {
    let each = Deserializer::from_slice(bytes).into_iter::<Value>();
    let found: Vec<Value> = each
        .collect::<Result<_, _>>()
        .map_err(|error| error.to_string())?;
    if found.is_empty() {
        Err("it has no JSON".to_owned())
    } else {
        Ok(found)
    }
}

/// A number from its text. A time may have a unit of its own, as h2load prints `1.23ms`.
fn number(text: &str, measure: &MeasureParams) -> Option<f64> {
    let text = text.trim();
    let plain = |text: &str| {
        let is_number = text.bytes().all(|sign| b"0123456789.eE+-".contains(&sign));
        let value = is_number.then(|| text.parse::<f64>().ok()).flatten();
        value.filter(|value| value.is_finite())
    };
    let units = measure.unit.units();
    if units.unit != "s" {
        return plain(text);
    }
    // The longest word first: "5ms" ends with "s" too.
    let words = [
        ("ns", 1e9),
        ("us", 1e6),
        ("µs", 1e6),
        ("ms", 1e3),
        ("s", 1.0),
    ];
    let own = words.into_iter().find(|(word, _)| text.ends_with(word));
    match own {
        Some((word, scale)) => plain(text[..text.len() - word.len()].trim_end())
            .map(|value| value / scale * units.scale),
        None => plain(text),
    }
}

impl Found {
    /// Goes along a path, and enters what it leads to.
    pub(super) fn walk(&mut self, measure: &MeasureParams, document: &Value, steps: &[Step]) {
        // What is to be looked at, and how many steps lead to it; the last is the next.
        let mut waiting = vec![(document, 0)];
        while let Some((value, taken)) = waiting.pop() {
            let at = || match taken {
                0 => "it".to_owned(),
                _ => JsonPath::shown(&steps[..taken]),
            };
            let Some(step) = steps.get(taken) else {
                self.enter(measure, value, at);
                continue;
            };
            match (step, value) {
                (Step::All, Value::Array(list)) => {
                    waiting.extend(list.iter().rev().map(|each| (each, taken + 1)));
                }
                (Step::All, Value::Object(keys)) => {
                    waiting.extend(keys.values().rev().map(|each| (each, taken + 1)));
                }
                _ => match (one(step, value), value) {
                    (Some(next), _) => waiting.push((next, taken + 1)),
                    (None, _) => self.miss(|| absent(step, value, &at()).told_by(document)),
                },
            }
        }
    }

    /// Enters what stands in the group of each line that a pattern fits.
    fn lines(&mut self, measure: &MeasureParams, bytes: &[u8], regex: &regex_lite::Regex) {
        for line in bytes.split(|&byte| byte == b'\n' || byte == b'\r') {
            let line = String::from_utf8_lossy(line);
            if measure.counts() {
                if regex.is_match(&line) {
                    self.values.push(1.0);
                }
                continue;
            }
            let Some(group) = regex.captures(&line).and_then(|groups| groups.get(1)) else {
                continue;
            };
            match number(group.as_str(), measure) {
                Some(number) => self.values.push(number),
                None => self.miss(|| {
                    let text = cut(group.as_str(), 40);
                    Missed::new(format!("\"{text}\" is no number"), "a group that is one")
                }),
            }
        }
        self.miss(|| {
            let problem = match bytes.is_empty() {
                true => "no line fits, it is empty".to_owned(),
                false => format!("no line fits, it begins \"{}\"", beginning(bytes)),
            };
            Missed::new(problem, "a pattern that a line fits")
        });
    }
}

/// What a step to one value leads to.
fn one<'v>(step: &Step, value: &'v Value) -> Option<&'v Value> {
    match (step, value) {
        (Step::Key(key), Value::Object(keys)) => keys.get(key),
        (Step::At(place), Value::Array(list)) => {
            let place = i64::from(*place);
            let length = i64::try_from(list.len()).ok()?;
            let place = if place < 0 { length + place } else { place };
            list.get(usize::try_from(place).ok()?)
        }
        _ => None,
    }
}

/// Why a step leads nowhere.
fn absent(step: &Step, value: &Value, at: &str) -> Missed {
    let own = match value {
        Value::Object(keys) => {
            let kind = format!("{at} has no {}", words(step));
            return Missed::new(kind, some(keys.keys().map(String::as_str)));
        }
        Value::Array(list) if matches!(step, Step::At(_)) => {
            let problem = format!("{at} has {} elements", list.len());
            return Missed::new(problem, "one of their places");
        }
        Value::Array(_) => "a list",
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
    };
    Missed::new(
        format!("{at} is {own} and has no {}", words(step)),
        "a path to a number",
    )
}

fn words(step: &Step) -> String {
    match step {
        Step::Key(_) => format!("key {step}"),
        Step::At(_) | Step::All => "elements".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::from_json;

    macro_rules! output {
        ($name:literal) => {
            include_bytes!(concat!(
                env!("CARGO_MANIFEST_DIR"),
                "/tests/outputs/",
                $name
            ))
        };
    }

    fn printed(flow: u32, printed: &[u8]) -> Output<'_> {
        Output {
            flow,
            server: false,
            printed,
            cut: false,
            files: Vec::new(),
            left_out: Vec::new(),
        }
    }

    /// What is told of one measure, of one output for each pair.
    fn told(keys: &str, outputs: &[Output<'_>]) -> Result<Option<f64>, String> {
        let measure = from_json(&format!("{{{keys}}}")).expect(keys);
        crate::program::measure::check("x", &measure, true).expect(keys);
        let measures = BTreeMap::from([("x".to_owned(), measure)]);
        let pairs = outputs.iter().map(|output| output.flow + 1).max();
        read("g", pairs.unwrap_or_default(), &measures, outputs)
            .map(|found| found.first().map(|(_, value)| *value))
    }

    fn value(keys: &str, bytes: &[u8]) -> f64 {
        let found = told(keys, &[printed(0, bytes)]);
        found.expect(keys).expect(keys)
    }

    fn refused(keys: &str, bytes: &[u8]) -> String {
        told(keys, &[printed(0, bytes)]).expect_err(keys)
    }

    fn file<'a>(name: &'a str, bytes: &'a [u8]) -> Output<'a> {
        Output {
            files: vec![(name, bytes)],
            ..printed(0, b"")
        }
    }

    #[track_caller]
    fn close(found: f64, wanted: f64) {
        assert!(
            (found - wanted).abs() <= 1e-12 * wanted.abs(),
            "{found} is not {wanted}"
        );
    }

    #[test]
    fn json_of_iperf3_and_curl_is_read_by_paths() {
        let tcp = output!("iperf3-tcp.json");
        let goodput = r#""unit": "bit/s", "json": "end.sum_received.bits_per_second""#;
        close(value(goodput, tcp), 41_022_414.963_391_565);
        let rtt = r#""unit": "us", "json": "end.streams[*].sender.mean_rtt", "statistic": "#;
        close(value(&format!("{rtt}\"max\""), tcp), 113e-6);
        close(value(&format!("{rtt}\"last\""), tcp), 79e-6);
        close(value(&format!("{rtt}\"mean\""), tcp), 96e-6);
        close(
            value(
                r#""unit": "us", "json": "end.streams[-1].sender.mean_rtt""#,
                tcp,
            ),
            79e-6,
        );
        let intervals =
            r#""unit": "1", "json": "intervals[*].sum.bits_per_second", "statistic": "count""#;
        close(value(intervals, tcp), 2.0);
        let udp = output!("iperf3-udp.json");
        close(
            value(r#""unit": "ms", "json": "end.sum.jitter_ms""#, udp),
            3.543_114_852_160_215e-6,
        );
        close(
            value(r#""unit": "%", "json": "end.sum.lost_percent""#, udp),
            0.0,
        );
        let curl = output!("curl.json");
        close(
            value(r#""unit": "s", "json": "time_total""#, curl),
            0.007_879,
        );
        close(
            value(r#""unit": "bytes/s", "json": "speed_download""#, curl),
            8.0 * 58_129.0,
        );
        // As documented for fio's --output-format=json.
        let fio = br#"{"jobs": [{"read": {"clat_ns": {"percentile": {"99.000000": 1250}}}}]}"#;
        let p99 = r#""unit": "ns", "json": "jobs[0].read.clat_ns.percentile.'99.000000'""#;
        close(value(p99, fio), 1.25e-6);
    }

    #[test]
    fn lines_of_h2load_and_iperf3_are_read_by_patterns() {
        let h2load = output!("h2load.txt");
        close(
            value(
                r#""unit": "ms", "line": "^time for request: +\\S+ +\\S+ +(\\S+)""#,
                h2load,
            ),
            0.069_78,
        );
        close(
            value(
                r#""unit": "1/s", "line": "finished in .*, ([0-9.]+) req/s""#,
                h2load,
            ),
            141_164.8,
        );
        close(
            value(
                r#""unit": "1", "line": "^requests: .* ([0-9]+) failed""#,
                h2load,
            ),
            0.0,
        );
        let text = output!("iperf3-text.txt");
        close(
            value(
                r#""unit": "Mbit/s", "line": "([0-9.]+) Mbits/sec .*receiver""#,
                text,
            ),
            20.7e6,
        );
        let each = r#""unit": "Mbit/s", "line": "([0-9.]+) Mbits/sec", "statistic": "max""#;
        close(value(each, text), 21e6);
        close(
            value(
                r#""unit": "1", "line": "Mbits/sec", "statistic": "count""#,
                text,
            ),
            4.0,
        );
        close(
            value(
                r#""unit": "1", "line": "timeout", "statistic": "count""#,
                text,
            ),
            0.0,
        );
    }

    #[test]
    fn times_may_have_a_unit_of_their_own() {
        for (text, seconds) in [
            ("1.5s", 1.5),
            ("20 ms", 0.02),
            ("3us", 3e-6),
            ("4µs", 4e-6),
            ("5ns", 5e-9),
            ("6", 6e-3),
        ] {
            let line = format!("x={text}\n");
            close(
                value(r#""unit": "ms", "line": "x=(.*)""#, line.as_bytes()),
                seconds,
            );
        }
        for text in ["1.5m", "inf", "nan", "0x10", "1e999", "", "12 Mbit/s"] {
            let line = format!("x={text}\n");
            let why = refused(r#""unit": "ms", "line": "x=(.*)""#, line.as_bytes());
            assert!(
                why.contains(&format!("\"{text}\" is no number; accepted: ")),
                "{why}"
            );
        }
    }

    #[test]
    fn events_of_qlogs_are_read_by_their_names_and_fields() {
        let aioquic = [file("b9c1.qlog", output!("aioquic.qlog"))];
        let of = |keys: &str| {
            let keys = format!(r#""from": "*qlog", {keys}"#);
            told(&keys, &aioquic).expect(&keys).expect(&keys)
        };
        let rtt = r#""unit": "ms", "qlog": "recovery:metrics_updated.smoothed_rtt", "statistic": "#;
        close(of(&format!("{rtt}\"first\"")), 0.023_200_093_994_091_73);
        close(of(&format!("{rtt}\"last\"")), 0.020_314_578_714_052_914);
        close(
            of(r#""unit": "ms", "qlog": "metrics_updated.min_rtt", "statistic": "min""#),
            1e-3,
        );
        close(
            of(r#""unit": "bytes", "qlog": "metrics_updated.cwnd", "statistic": "max""#),
            12_755.0,
        );
        close(
            of(r#""unit": "1", "qlog": "metrics_updated.smoothed_rtt", "statistic": "count""#),
            3.0,
        );
        close(
            of(r#""unit": "packets", "qlog": "packet_lost", "statistic": "count""#),
            0.0,
        );
    }

    #[test]
    fn a_sequence_of_the_newest_draft_is_read() {
        let keys = r#""from": "*.sqlog", "unit": "ms", "qlog": "metrics_updated.smoothed_rtt", "statistic": "p50""#;
        let quic_go = [file("x_client.sqlog", output!("quic-go.sqlog"))];
        assert_eq!(told(keys, &quic_go), Ok(Some(0.0015680000000000002)));
    }

    const SEQUENCE: &[u8] =
        b"\x1e{\"qlog_version\":\"0.3\",\"qlog_format\":\"JSON-SEQ\",\"trace\":{}}\n\
        \x1e{\"time\":1,\"name\":\"recovery:metrics_updated\",\"data\":{\"smoothed_rtt\":20}}\n\
        \x1e{\"time\":2,\"name\":\"recovery:metrics_updated\",\"data\":{\"smoothed_rtt\":30}}\n\
        \x1e{\"time\":3,\"name\":\"recovery:metr";

    const RTT: &str =
        r#""from": "*", "unit": "ms", "qlog": "metrics_updated.smoothed_rtt", "statistic": "sum""#;

    #[test]
    fn a_sequence_is_read_up_to_its_last_whole_text() {
        assert_eq!(told(RTT, &[file("a.sqlog", SEQUENCE)]), Ok(Some(0.05)));
        let lines: Vec<u8> = SEQUENCE
            .iter()
            .copied()
            .filter(|&byte| byte != 0x1e)
            .collect();
        assert_eq!(told(RTT, &[file("a.sqlog", &lines)]), Ok(Some(0.05)));
        let broken = [&SEQUENCE[..SEQUENCE.len() - 5], b"\n\x1e{}"].concat();
        let why = told(RTT, &[file("a.sqlog", &broken)]).expect_err("it is broken");
        assert!(
            why.contains("a.sqlog begins") && why.contains("its text 4: "),
            "{why}"
        );
    }

    #[test]
    fn what_is_no_qlog_is_refused() {
        for (text, part) in [
            (
                "{}",
                "it has no qlog_version; accepted: a qlog of version 0.3 or later",
            ),
            (r#"{"qlog_version": "0.3"}"#, "it has no list traces"),
            (
                r#"{"qlog_version": "draft-02", "traces": []}"#,
                "it is of qlog version draft-02",
            ),
            (
                r#"{"qlog_version": "0.3", "traces": [{"events": [[1, "a"]]}]}"#,
                "no event is called metrics_updated; accepted: nothing",
            ),
            (
                r#"{"qlog_version": "0.3", "traces": [{"events": [{"name": "a:b", "data": 1}]}]}"#,
                "no event is called metrics_updated; accepted: a:b",
            ),
            (
                r#"{"qlog_version": "0.3", "traces": [{"events": [{"name": "metrics_updated", "data": {"cwnd": 1}}]}]}"#,
                "it has no key smoothed_rtt; accepted: cwnd",
            ),
            ("", "a.qlog is empty; accepted: a qlog"),
        ] {
            let why = told(RTT, &[file("a.qlog", text.as_bytes())]).expect_err(text);
            assert!(
                why.starts_with(
                    "g.measured.x: metrics_updated.smoothed_rtt is not in the files * in the client's {out}: "
                ),
                "{why}"
            );
            assert!(why.contains(part), "{text}: {why}");
        }
    }

    #[test]
    fn a_number_that_is_not_there_is_told_with_what_is() {
        let goodput = r#""unit": "bit/s", "json": "end.sum_received.bits_per_second""#;
        let begin =
            "g.measured.x: end.sum_received.bits_per_second is not in the client's output: ";
        for (text, rest) in [
            (
                r#"{"end": {"sum_sent": 1, "streams": 2}}"#,
                "end has no key sum_received; accepted: sum_sent, streams",
            ),
            (
                r#"{"end": {"sum_received": []}}"#,
                "end.sum_received is a list and has no key bits_per_second; accepted: a path",
            ),
            (
                r#"{"end": 3}"#,
                "end is a number and has no key sum_received; accepted: a path to a number",
            ),
            (
                r#"{"end": {"sum_received": {"bits_per_second": null}}}"#,
                "end.sum_received.bits_per_second is null; accepted: a number",
            ),
            (
                r#"{"end": {"sum_received": {"bits_per_second": "many"}}}"#,
                "end.sum_received.bits_per_second is \"many\"; accepted: a number",
            ),
            ("", "it is empty; accepted: JSON and nothing else"),
            (" \n", "cannot be read: it has no JSON; accepted: JSON"),
            (
                "bind failed\n{}",
                "it begins \"bind failed {}\" and cannot be read: expected value at line 1 column 1; accepted: JSON and nothing else",
            ),
            (
                r#"{"end": NaN}"#,
                "cannot be read: expected value at line 1 column 9",
            ),
            (
                r#"{"end": 1e999}"#,
                "cannot be read: number out of range at line 1 column",
            ),
            (
                r#"{"end": {}"#,
                "cannot be read: EOF while parsing an object at line 1 column 10",
            ),
        ] {
            let why = refused(goodput, text.as_bytes());
            assert!(why.starts_with(begin), "{why}");
            assert!(why[begin.len()..].contains(rest), "{text}: {why}");
        }
        let why = refused(goodput, output!("iperf3-refused.json"));
        let end = "end has no key sum_received, and error is \"unable to connect to server: Connection refused\"; \
                   accepted: nothing, it is empty";
        assert_eq!(why, format!("{begin}{end}"));
        let why = refused(r#""unit": "1", "json": "a[3]""#, br#"{"a": [1]}"#);
        assert!(
            why.ends_with("a has 1 elements; accepted: one of their places"),
            "{why}"
        );
        let why = refused(r#""unit": "1", "json": "a[*]""#, br#"{"a": [1, 2]}"#);
        assert!(why.ends_with("there are 2 numbers; accepted: one, or a key statistic, such as \"last\" or \"mean\""), "{why}");
        let why = refused(
            r#""unit": "1", "json": "errors[*]", "statistic": "count""#,
            b"{}",
        );
        assert!(why.contains("it has no key errors"), "{why}");
        let why = refused(r#""unit": "1", "line": "x=([0-9]+)""#, b"y=1\n");
        assert!(
            why.ends_with("no line fits, it begins \"y=1 \"; accepted: a pattern that a line fits"),
            "{why}"
        );
        let why = told(
            r#""unit": "1", "json": "a", "from": "*.json""#,
            &[file("a.txt", b"1")],
        );
        let why = why.expect_err("there is no such file");
        assert!(
            why.ends_with("in the files *.json in the client's {out}: no file has such a name; accepted: a.txt"),
            "{why}"
        );
        let large = Output {
            left_out: vec!["a.json"],
            ..file("b.json", b"{\"a\": 1}")
        };
        let why = told(r#""unit": "1", "json": "a", "from": "*.json""#, &[large]);
        let why = why.expect_err("it is not kept");
        assert!(why.contains("a.json is not kept; accepted: fewer"), "{why}");
        let cut = Output {
            cut: true,
            ..printed(0, b"1")
        };
        let why = told(r#""unit": "1", "line": "(.*)""#, &[cut]).expect_err("it was cut");
        assert!(
            why.contains("was cut, as the program printed more than is kept"),
            "{why}"
        );
    }

    #[test]
    fn an_optional_number_that_is_not_there_is_undefined() {
        let keys = r#""unit": "1", "json": "a", "optional": true"#;
        assert_eq!(told(keys, &[printed(0, b"{}")]), Ok(None));
        assert_eq!(told(keys, &[printed(0, b"no JSON")]), Ok(None));
        // The mean of some of the pairs would not be that of the group.
        assert_eq!(
            told(keys, &[printed(0, br#"{"a": 1}"#), printed(1, b"{}")]),
            Ok(None)
        );
    }

    #[test]
    fn the_numbers_of_pairs_are_put_together() {
        let outputs = [printed(0, b"1"), printed(1, b"2"), printed(2, b"6")];
        for (pairs, wanted) in [
            ("mean", 3.0),
            ("sum", 9.0),
            ("min", 1.0),
            ("max", 6.0),
            ("p50", 2.0),
        ] {
            let keys = format!(r#""unit": "1", "line": "(.*)", "pairs": "{pairs}""#);
            assert_eq!(
                told(&keys, &outputs),
                Err("".to_owned()).or(Ok(Some(wanted))),
                "{pairs}"
            );
        }
        let why = told(r#""unit": "1", "json": "a""#, &outputs).expect_err("it is not there");
        assert!(
            why.starts_with("g.measured.x: a is not in the client's output of pair 0: "),
            "{why}"
        );
        let why = told(r#""unit": "1", "line": "(.*)""#, &[printed(1, b"2")])
            .expect_err("one is missing");
        assert!(why.contains("of pair 0: there is none"), "{why}");
    }

    #[test]
    fn one_text_of_json_after_the_other_is_read() {
        let lines = b"{\"t\": 1}\n{\"t\": 2}\n{\"other\": 5}\n";
        close(
            value(r#""unit": "1", "json": "t", "statistic": "sum""#, lines),
            3.0,
        );
        close(
            value(
                r#""unit": "1", "json": "[*]", "statistic": "sum""#,
                b"[1, \"2\", 3]",
            ),
            6.0,
        );
    }

    #[test]
    fn a_source_is_that_of_its_name() {
        let outputs = [
            Output {
                printed: b"1",
                ..file("r.json", b"3")
            },
            Output {
                server: true,
                printed: b"2",
                ..file("r.json", b"4")
            },
        ];
        for (from, wanted) in [
            ("client", 1.0),
            ("server", 2.0),
            ("r.json", 3.0),
            ("client/r.*", 3.0),
            ("server/r.*", 4.0),
        ] {
            let keys = format!(r#""unit": "1", "line": "(.*)", "from": "{from}""#);
            assert_eq!(told(&keys, &outputs), Ok(Some(wanted)), "{from}");
        }
    }

    #[test]
    fn hostile_outputs_end_in_a_refusal() {
        let path = r#""unit": "1", "json": "a""#;
        assert!(refused(path, &b"[".repeat(1 << 20)).contains("recursion limit exceeded"));
        assert!(refused(path, b"\xff\xfe{").contains("cannot be read: "));
        let wide = [
            &b"{\"b\":1"[..],
            &br#","\u001b[31mred":2"#.repeat(50_000),
            b"}",
        ]
        .concat();
        let why = refused(path, &wide);
        assert!(why.len() < 2000 && !why.contains('\x1b'), "{why}");
        // The time of a pattern is in proportion to the line, also where others take exponentially long.
        let line = b"a".repeat(20_000);
        assert!(
            refused(
                r#""unit": "1", "line": "^(a+)+b(1)?$""#.replace("(a+)+", "(?:a+)+").as_str(),
                &line
            )
            .contains("no line fits")
        );
        close(
            value(r#""unit": "1", "line": "x([0-9])""#, b"\xff\xfe x7 \xff\n"),
            7.0,
        );
        let numbers = b"1\n".repeat(1 << 20);
        close(
            value(
                r#""unit": "1", "line": "(.*)", "statistic": "sum""#,
                &numbers,
            ),
            1_048_576.0,
        );
    }
}
