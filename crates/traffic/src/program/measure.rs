//! What programs measure of themselves: which number of what they print or write is which metric.
//!
//! Here is what a file says of it, checked.
//!
//! - `path`: where a number stands in JSON; `pattern`: in which lines; `statistic`: what is made of many
//! - `reading`: from outputs to numbers; `qlog`: from events to numbers

mod path;
mod pattern;
mod qlog;
pub mod reading;
mod statistic;

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::str::FromStr;

use redtail_core::metric::{UNITS, Units};
use redtail_core::schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use redtail_core::serde::de::{self, Deserializer, Visitor};
use redtail_core::serde::{Deserialize, Serialize, Serializer};
use redtail_core::{ParamError, schemars, serde};

pub use path::{JsonPath, Step};
pub use pattern::Pattern;
pub use statistic::Statistic;

/// A number that programs tell, as a metric of the group.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(crate = "serde", deny_unknown_fields)]
#[schemars(crate = "schemars", rename = "Measure")]
pub struct MeasureParams {
    /// The unit in which the programs give the number. Results have it in the SI unit, tables and figures in this one, or in Mbit/s and MB/s if it is bit/s or bytes/s.
    pub unit: Unit,
    /// What tables and figures call it. Another title makes no new run.
    /// Source: none, the name of the metric.
    #[serde(default, skip_serializing)]
    pub title: Option<String>,
    /// Where the number stands: in what the `"client"` or the `"server"` prints, or in the files of the client's `{out}` whose names fit a pattern such as `"result.json"` or `"*.qlog"`; `"server/*.qlog"` are files of the server's.
    /// Source: the client, at which most programs measure.
    #[serde(default)]
    pub from: Source,
    /// The path of the number in JSON: keys, joined by dots and in quotes if they have signs, and places in lists, `[*]` for all of them.
    /// Source: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub json: Option<JsonPath>,
    /// A regular expression with one group, the number, which is looked for in each line.
    /// Source: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<Pattern>,
    /// The event of a qlog and the path of the number in its data, or the event alone to count it.
    /// Source: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub qlog: Option<EventField>,
    /// What is made of many numbers. Left out, there has to be one.
    /// Source: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub statistic: Option<Statistic>,
    /// What is made of the numbers of several pairs of programs.
    /// Source: the mean, which says the same of any number of pairs.
    #[serde(default = "mean")]
    pub pairs: Statistic,
    /// Whether a run without the number is a run all the same, in which the metric is undefined.
    /// Source: no, a number that was asked for and is missing is a failure.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub optional: bool,
}

fn mean() -> Statistic {
    Statistic::Mean
}

/// Where a number stands.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Place<'a> {
    /// In JSON.
    Json(&'a JsonPath),
    /// In lines.
    Line(&'a Pattern),
    /// In events of a qlog.
    Qlog(&'a EventField),
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Json(path) => path.fmt(f),
            Self::Line(pattern) => pattern.fmt(f),
            Self::Qlog(field) => field.fmt(f),
        }
    }
}

impl MeasureParams {
    /// Where the number stands; of a measure that was checked.
    pub fn place(&self) -> Option<Place<'_>> {
        let json = self.json.as_ref().map(Place::Json);
        let line = self.line.as_ref().map(Place::Line);
        let qlog = self.qlog.as_ref().map(Place::Qlog);
        json.or(line).or(qlog)
    }

    /// What it is, in Markdown.
    pub fn definition(&self) -> String {
        let of = match &self.from {
            Source::Client | Source::Server => format!("what the {} prints", self.from),
            Source::FilesOfClient(name) => format!("`{name}` in `{{out}}` of the client"),
            Source::FilesOfServer(name) => format!("`{name}` in `{{out}}` of the server"),
        };
        let what = match &self.statistic {
            Some(statistic) => format!("The {statistic} of "),
            None => String::new(),
        };
        let place = self.place().map(|place| place.to_string());
        let place = place.unwrap_or_default();
        let pairs = self.pairs;
        format!("{what}`{place}` in {of}; of several pairs the {pairs}. Programs measure it.")
    }

    /// Whether it is a number of things, which are found or not.
    pub fn counts(&self) -> bool {
        self.statistic == Some(Statistic::Count)
    }

    fn check(&self) -> Result<(), ParamError> {
        let refuse = |key: &'static str, problem: &str, accepted: &str| {
            Err(ParamError::new(key, problem, accepted))
        };
        let given = [
            self.json.is_some(),
            self.line.is_some(),
            self.qlog.is_some(),
        ];
        if given.into_iter().filter(|given| *given).count() != 1 {
            let problem = match given.contains(&true) {
                true => "says more than once where the number stands",
                false => "does not say where the number stands",
            };
            return refuse("json", problem, "one of json, line and qlog");
        }
        let groups = self.line.as_ref().map(Pattern::groups);
        if groups.is_some_and(|groups| groups != 1 && !(groups == 0 && self.counts())) {
            return refuse(
                "line",
                &format!("has {} groups", groups.unwrap_or_default()),
                "one group, in which the number stands, such as 'rtt ([0-9.]+) ms'; (?:…) groups nothing",
            );
        }
        if let Some(field) = &self.qlog {
            if self.from.files().is_none() {
                let problem = format!("is \"{}\", whose output is no qlog", self.from);
                return refuse("from", &problem, "files in {out}, such as \"*.qlog\"");
            }
            if field.path.is_none() && !self.counts() {
                return refuse(
                    "qlog",
                    "names an event and no field",
                    "an event and a field, such as \"recovery:metrics_updated.smoothed_rtt\"; an event \
                     alone with statistic = \"count\"",
                );
            }
        }
        if self.counts() && !["1", "packets"].contains(&self.unit.units().unit) {
            let problem = format!("is \"{}\", and a number of things is counted", self.unit);
            return refuse("unit", &problem, "\"1\" or \"packets\"");
        }
        if self.pairs == Statistic::Count {
            let accepted = "mean, sum, min, max, first, last or a percentile such as p50";
            return refuse("pairs", "is \"count\", which is the key `flows`", accepted);
        }
        Ok(())
    }
}

/// Refuses what cannot be measured of a group, which may be without a server.
///
/// # Errors
/// [`ParamError`] names the key, the problem and what is accepted.
pub fn check(name: &str, measure: &MeasureParams, has_server: bool) -> Result<(), ParamError> {
    let table = format!("measure.{name}");
    let mut letters = name.chars();
    let is_name = letters.next().is_some_and(|it| it.is_ascii_alphabetic())
        && letters.all(|it| it.is_ascii_alphanumeric() || it == '_');
    if !is_name {
        let accepted = "letters, digits and _, a letter first";
        return Err(ParamError::new(table, "is no name of a metric", accepted));
    }
    if measure.from.is_server() && !has_server {
        let accepted = "\"client\", files in its {out}, or a command line as `server` of the group";
        let problem = format!("is \"{}\", and the group has no server", measure.from);
        return Err(ParamError::new("from", problem, accepted).within(&table));
    }
    measure.check().map_err(|error| error.within(&table))
}

/// A unit, by its word in [`UNITS`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Unit(usize);

impl Unit {
    /// The units of stored and of shown numbers. A program's number divided by their scale is the stored number.
    pub fn units(self) -> Units {
        UNITS[self.0].1
    }
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(UNITS[self.0].0)
    }
}

impl FromStr for Unit {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let place = UNITS.iter().position(|(word, _)| *word == text);
        let refused = || format!("\"{text}\" is no unit");
        place.map(Self).ok_or_else(refused)
    }
}

/// What the number is read from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Source {
    /// What the client prints.
    #[default]
    Client,
    /// What the server prints.
    Server,
    /// The files in `{out}` of the client whose names fit a pattern.
    FilesOfClient(String),
    /// The files in `{out}` of the server whose names fit a pattern.
    FilesOfServer(String),
}

impl Source {
    /// Whether it is what the server prints or writes.
    pub fn is_server(&self) -> bool {
        matches!(self, Self::Server | Self::FilesOfServer(_))
    }

    /// The pattern of the names of files; `None` for what is printed.
    pub fn files(&self) -> Option<&str> {
        match self {
            Self::Client | Self::Server => None,
            Self::FilesOfClient(pattern) | Self::FilesOfServer(pattern) => Some(pattern),
        }
    }

    /// Whether a file of the client or the server is one of them.
    pub fn has(&self, server: bool, name: &str) -> bool {
        let fits = |pattern: &str| fits(pattern.as_bytes(), name.as_bytes());
        server == self.is_server() && self.files().is_some_and(fits)
    }
}

/// Whether a name fits a pattern, in which `*` stands for any letters and `?` for one.
fn fits(pattern: &[u8], name: &[u8]) -> bool {
    let (mut p, mut n) = (0, 0);
    // Behind the last star, and where in the name what it stands for ends.
    let mut star: Option<(usize, usize)> = None;
    while n < name.len() {
        match pattern.get(p) {
            Some(b'*') => {
                star = Some((p + 1, n));
                p += 1;
            }
            Some(&sign) if sign == b'?' || sign == name[n] => (p, n) = (p + 1, n + 1),
            _ => {
                let Some((after, end)) = star else {
                    return false;
                };
                star = Some((after, end + 1));
                (p, n) = (after, end + 1);
            }
        }
    }
    pattern[p..].iter().all(|&sign| sign == b'*')
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Client => f.write_str("client"),
            Self::Server => f.write_str("server"),
            Self::FilesOfClient(pattern) => write!(f, "client/{pattern}"),
            Self::FilesOfServer(pattern) => write!(f, "server/{pattern}"),
        }
    }
}

impl FromStr for Source {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if !super::is_inside(text) || text.len() > 1000 {
            return Err(format!("\"{text}\" is no path inside {{out}}"));
        }
        Ok(match text.split_once('/') {
            None if text == "client" => Self::Client,
            None if text == "server" => Self::Server,
            Some(("server", pattern)) => Self::FilesOfServer(pattern.to_owned()),
            Some(("client", pattern)) => Self::FilesOfClient(pattern.to_owned()),
            _ => Self::FilesOfClient(text.to_owned()),
        })
    }
}

/// An event of a qlog, and where in its data a number stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventField {
    /// The name of the event, with its category (`recovery:metrics_updated`) or without.
    pub event: String,
    /// Where in `data` the number stands; nothing for the event as such.
    pub path: Option<JsonPath>,
}

impl EventField {
    /// Whether an event has this name.
    pub fn is(&self, name: &str) -> bool {
        let bare = name.rsplit(':').next().unwrap_or(name);
        name == self.event || bare == self.event
    }
}

impl fmt::Display for EventField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.event)?;
        match &self.path {
            Some(path) => write!(f, ".{path}"),
            None => Ok(()),
        }
    }
}

impl FromStr for EventField {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (event, path) = match text.split_once('.') {
            Some((event, path)) => (event, Some(path.parse()?)),
            None => (text, None),
        };
        let letters = |c: char| c.is_ascii_alphanumeric() || "_-:".contains(c);
        if event.is_empty() || !event.chars().all(letters) {
            return Err(format!(
                "\"{text}\" does not begin with the name of an event"
            ));
        }
        Ok(Self {
            event: event.to_owned(),
            path,
        })
    }
}

/// Implements serde and the schema for a type with a text form. `$forms` is what is accepted.
macro_rules! textual {
    ($type:ident, $forms:expr, $schema:expr) => {
        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_any(Read($forms, PhantomData))
            }
        }

        impl JsonSchema for $type {
            fn schema_name() -> Cow<'static, str> {
                stringify!($type).into()
            }

            fn inline_schema() -> bool {
                true
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                $schema
            }
        }
    };
}

struct Read<T>(String, PhantomData<T>);

impl<T: FromStr<Err = String>> Visitor<'_> for Read<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
        let accepted = self.0;
        text.parse()
            .map_err(|why| E::custom(format!("{why}; accepted: {accepted}")))
    }
}

fn unit_words() -> [&'static str; UNITS.len()] {
    UNITS.map(|(word, _)| word)
}

textual!(
    Unit,
    unit_words().join(", "),
    json_schema!({ "type": "string", "enum": unit_words() })
);
textual!(
    Source,
    "client, server, or the names of files in {out} such as \"*.qlog\" or \"server/*.qlog\""
        .to_owned(),
    json_schema!({ "type": "string", "minLength": 1 })
);
textual!(
    JsonPath,
    path::FORMS.to_owned(),
    json_schema!({ "type": "string", "minLength": 1 })
);
textual!(
    Pattern,
    pattern::FORMS.to_owned(),
    json_schema!({ "type": "string", "minLength": 1 })
);
textual!(
    EventField,
    "an event and a field of its data, such as \"recovery:metrics_updated.smoothed_rtt\""
        .to_owned(),
    json_schema!({ "type": "string", "minLength": 1 })
);
textual!(
    Statistic,
    statistic::FORMS.to_owned(),
    json_schema!({
        "type": "string",
        "description": statistic::FORMS,
        "pattern": "^(first|last|mean|min|max|sum|count|p[0-9]+([.][0-9]+)?)$",
    })
);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::from_json;

    fn read(keys: &str) -> Result<MeasureParams, String> {
        let measure: MeasureParams =
            from_json(&format!("{{{keys}}}")).map_err(|error| error.to_string())?;
        check("rtt", &measure, true).map_err(|error| error.to_string())?;
        Ok(measure)
    }

    #[test]
    fn a_measure_has_a_unit_and_one_place() {
        let measure = read(r#""unit": "ms", "json": "end.rtt""#).unwrap();
        assert_eq!(measure.place().unwrap().to_string(), "end.rtt");
        assert_eq!(
            (measure.from, measure.pairs),
            (Source::Client, Statistic::Mean)
        );
        let measure = read(r#""unit": "ms", "line": "rtt (\\d+) ms", "from": "server""#).unwrap();
        assert_eq!(measure.from, Source::Server);
        let qlog = r#""unit": "ms", "qlog": "metrics_updated.smoothed_rtt", "from": "*.qlog""#;
        let measure = read(qlog).unwrap();
        assert!(measure.from.has(false, "0a1b.qlog") && !measure.from.has(false, "0a1b.sqlog.gz"));
        assert!(!measure.from.has(true, "0a1b.qlog"));
        for (text, server) in [
            ("client/a", false),
            ("server/a", true),
            ("server/*", true),
            ("a", false),
        ] {
            let source: Source = text.parse().unwrap();
            assert!(
                source.has(server, "a") && !source.has(!server, "a"),
                "{text}"
            );
            assert_eq!(source.to_string().parse(), Ok(source));
        }
        read(r#""unit": "1", "line": "timeout", "statistic": "count""#).unwrap();
        read(r#""unit": "1", "qlog": "packet_lost", "from": "*.qlog", "statistic": "count""#)
            .unwrap();
    }

    #[test]
    fn what_cannot_be_measured_is_refused() {
        for (keys, why) in [
            (r#""json": "a""#, "missing field `unit`"),
            (
                r#""unit": "m", "json": "a""#,
                "\"m\" is no unit; accepted: 1, %, s, ms, us, ns, bit/s",
            ),
            (
                r#""unit": "ms""#,
                "measure.rtt.json does not say where the number stands; accepted: one of",
            ),
            (
                r#""unit": "ms", "json": "a", "line": "(a)""#,
                "measure.rtt.json says more than once",
            ),
            (
                r#""unit": "ms", "json": "a[x]""#,
                "\"a[x]\": a whole number, * or a key in quotes is missing at character 3; accepted: keys,",
            ),
            (r#""unit": "ms", "line": "a (b""#, "\"a (b\": "),
            (r#""unit": "ms", "line": "a(?=b)""#, "look-around"),
            (
                r#""unit": "ms", "line": "a{1000}{1000}""#,
                "\"a{1000}{1000}\": ",
            ),
            (
                r#""unit": "ms", "line": "a""#,
                "measure.rtt.line has 0 groups; accepted: one group",
            ),
            (
                r#""unit": "ms", "line": "(a)(b)""#,
                "measure.rtt.line has 2 groups; accepted: one group",
            ),
            (
                r#""unit": "ms", "qlog": "a.b""#,
                "measure.rtt.from is \"client\", whose output is no qlog; accepted: files",
            ),
            (
                r#""unit": "ms", "qlog": "a", "from": "*.qlog""#,
                "measure.rtt.qlog names an event and no field; accepted: ",
            ),
            (
                r#""unit": "ms", "qlog": ".b", "from": "*.qlog""#,
                "does not begin with the name of an event; accepted: ",
            ),
            (
                r#""unit": "ms", "json": "a", "from": "../x""#,
                "is no path inside {out}; accepted: client, server",
            ),
            (
                r#""unit": "ms", "json": "a", "from": "/x""#,
                "is no path inside {out}; accepted: client, server",
            ),
            (
                r#""unit": "ms", "json": "a", "statistic": "median""#,
                "\"median\" is no statistic; accepted: first,",
            ),
            (
                r#""unit": "ms", "json": "a", "statistic": "count""#,
                "measure.rtt.unit is \"ms\", and a number of things is counted; accepted: \"1\"",
            ),
            (
                r#""unit": "ms", "json": "a", "pairs": "count""#,
                "measure.rtt.pairs is \"count\", which is the key `flows`; accepted: mean",
            ),
            (
                r#""unit": "ms", "json": 3"#,
                "invalid type: integer `3`, expected keys,",
            ),
        ] {
            let refused = read(keys).expect_err(keys);
            assert!(refused.contains(why), "{keys}: {refused}");
        }
        let measure = read(r#""unit": "ms", "json": "a""#).unwrap();
        for name in ["", "1a", "a b", "a.b", "ä"] {
            let refused = check(name, &measure, true).expect_err(name).to_string();
            assert!(
                refused.contains("is no name of a metric; accepted: letters"),
                "{refused}"
            );
        }
    }

    #[test]
    fn a_group_without_a_server_has_no_output_of_one() {
        let measure = read(r#""unit": "ms", "json": "a", "from": "server""#).unwrap();
        let refused = check("rtt", &measure, false).unwrap_err().to_string();
        assert!(
            refused.starts_with(
                "measure.rtt.from is \"server\", and the group has no server; accepted:"
            )
        );
    }

    #[test]
    fn a_title_is_no_part_of_a_run() {
        let keys = r#""unit":"ms","from":"client","json":"end.rtt","pairs":"mean""#;
        let measure = read(&format!(r#"{keys}, "title": "Round trip""#)).unwrap();
        assert_eq!(measure.title.as_deref(), Some("Round trip"));
        assert_eq!(
            serde_json::to_string(&measure).unwrap(),
            format!("{{{keys}}}")
        );
    }

    #[test]
    fn names_fit_patterns_with_stars() {
        for (pattern, name, does) in [
            ("*.qlog", "a.qlog", true),
            ("*.qlog", "a.sqlog", false),
            ("*qlog", "x/a.sqlog", true),
            ("a?c*", "abc", true),
            ("a?c", "ac", false),
            ("*a*b*c", "xxaxxbxxcxc", true),
            ("*a*b*c", "xxaxxbxxcxd", false),
            ("", "", true),
        ] {
            assert_eq!(
                fits(pattern.as_bytes(), name.as_bytes()),
                does,
                "{pattern} {name}"
            );
        }
        // A pattern of many stars takes no longer than the lengths multiplied.
        let name = "a".repeat(4000);
        assert!(!fits(
            "*a".repeat(400).as_bytes(),
            format!("{name}b").as_bytes()
        ));
    }
}
