//! The results of many runs in columns, as campaigns store them.

use std::fmt::Write as _;

use crate::result::{FlowRows, HistogramRows, RunResult};

/// What runs of a list have measured, a row for each run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunColumns {
    /// The lists of metrics that runs have, each once.
    pub shapes: Vec<Shape>,
    /// Index into `shapes`.
    pub shape: Vec<u32>,
    /// The metrics of every run that are defined, in the order of its shape.
    pub numbers: Vec<f64>,
    /// Loss events by link and size, as JSON.
    pub losses: Vec<String>,
    /// Packets transmitted by the links of the forward direction, warm-up included.
    pub bottleneck_packets: Vec<u64>,
    /// Events processed.
    pub events: Vec<u64>,
}

/// What runs with the same metrics have in common.
#[derive(Clone, Debug, PartialEq)]
pub struct Shape {
    /// The names of the metrics.
    pub metrics: Vec<String>,
    /// The names of the links with queues.
    pub links: Vec<String>,
}

impl RunColumns {
    /// Adds a run.
    pub fn push(&mut self, result: &RunResult) {
        // NaN stands for what is undefined in this run.
        let defined = || result.metrics.iter().filter(|(_, value)| !value.is_nan());
        let fits = |shape: &Shape| {
            let names = shape.metrics.iter();
            names.eq(defined().map(|(name, _)| name))
        };
        // Neighbours are mostly alike.
        let known = self.shapes.iter().rposition(fits);
        let place = known.unwrap_or_else(|| {
            self.shapes.push(Shape {
                metrics: defined().map(|(name, _)| name.clone()).collect(),
                links: result.links.clone(),
            });
            self.shapes.len() - 1
        });
        self.shape
            .push(u32::try_from(place).expect("a list of runs is short"));
        self.numbers.extend(defined().map(|(_, value)| value));
        self.losses.push(losses(result));
        self.bottleneck_packets.push(result.bottleneck_packets);
        self.events.push(result.events);
    }
}

/// Loss events as JSON: for each link the counts up to the last that is not zero.
fn losses(result: &RunResult) -> String {
    let mut json = String::from("{");
    for (link, counts) in result.links.iter().zip(&result.consecutive_losses) {
        if json.len() > 1 {
            json.push_str(", ");
        }
        push_quoted(&mut json, link);
        json.push_str(": [");
        let used = counts.iter().rposition(|&count| count != 0);
        for (place, count) in counts[..used.map_or(0, |last| last + 1)].iter().enumerate() {
            if place > 0 {
                json.push_str(", ");
            }
            match u8::try_from(*count) {
                // Nearly all, and several times as fast as formatting.
                Ok(digit @ 0..10) => json.push((b'0' + digit) as char),
                _ => write!(json, "{count}").expect("a text takes every text"),
            }
        }
        json.push(']');
    }
    json.push('}');
    json
}

/// Adds a text as a string of JSON in ASCII, as Python's `json` writes it.
fn push_quoted(json: &mut String, text: &str) {
    json.push('"');
    for letter in text.chars() {
        match letter {
            '"' => json.push_str("\\\""),
            '\\' => json.push_str("\\\\"),
            '\n' => json.push_str("\\n"),
            '\r' => json.push_str("\\r"),
            '\t' => json.push_str("\\t"),
            '\u{8}' => json.push_str("\\b"),
            '\u{c}' => json.push_str("\\f"),
            ' '..='~' => json.push(letter),
            _ => {
                for unit in letter.encode_utf16(&mut [0; 2]) {
                    write!(json, "\\u{unit:04x}").expect("a text takes every text");
                }
            }
        }
    }
    json.push('"');
}

/// A table of several runs: the rows of all, one run after the other.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Joined<T> {
    /// The rows.
    pub rows: T,
    /// How many of them each run has.
    pub lengths: Vec<u32>,
    /// What the codes in the rows stand for.
    pub names: Vec<String>,
}

/// A table with a column whose values stand for names.
pub trait Coded: Default {
    /// The column, whose length is that of the table.
    fn codes(&mut self) -> &mut Vec<u32>;

    /// Adds the rows of another table.
    fn append(&mut self, other: &Self);
}

impl Coded for FlowRows {
    fn codes(&mut self) -> &mut Vec<u32> {
        &mut self.group
    }

    fn append(&mut self, other: &Self) {
        FlowRows::append(self, other);
    }
}

impl Coded for HistogramRows {
    fn codes(&mut self) -> &mut Vec<u32> {
        &mut self.distribution
    }

    fn append(&mut self, other: &Self) {
        HistogramRows::append(self, other);
    }
}

impl<T: Coded> Joined<T> {
    /// Adds the table of a run with its names, or that it has none.
    pub fn push(&mut self, table: Option<(&T, &[String])>) {
        let before = self.rows.codes().len();
        if let Some((rows, names)) = table {
            self.rows.append(rows);
            if self.names != names {
                let places = self.places(names);
                for code in &mut self.rows.codes()[before..] {
                    *code = places[*code as usize];
                }
            }
        }
        let length = self.rows.codes().len() - before;
        self.lengths
            .push(u32::try_from(length).expect("a table of a run is short"));
    }

    /// The place of each of a run's names among those of all; new ones are added.
    fn places(&mut self, names: &[String]) -> Vec<u32> {
        let place = |name: &String| {
            let found = self.names.iter().position(|known| known == name);
            let place = found.unwrap_or_else(|| {
                self.names.push(name.clone());
                self.names.len() - 1
            });
            u32::try_from(place).expect("there are few names")
        };
        names.iter().map(place).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(metrics: &[(&str, f64)]) -> RunResult {
        RunResult {
            metrics: metrics
                .iter()
                .map(|&(name, value)| (name.to_owned(), value))
                .collect(),
            links: vec!["a".to_owned(), "\"ü\u{1d11e}\u{7f}".to_owned()],
            consecutive_losses: vec![vec![13, 0, 9, 0], vec![]],
            bottleneck_packets: 7,
            events: 9,
            ..RunResult::default()
        }
    }

    #[test]
    fn runs_with_the_same_metrics_share_their_names() {
        let results = [
            result(&[("loss", 0.1), ("mark", f64::NAN)]),
            result(&[("loss", 0.2), ("mark", 0.3)]),
            result(&[("loss", 0.4)]),
        ];
        let mut columns = RunColumns::default();
        for result in &results {
            columns.push(result);
        }
        assert_eq!(columns.shape, [0, 1, 0]);
        assert_eq!(columns.shapes[0].metrics, ["loss"]);
        assert_eq!(columns.shapes[1].metrics, ["loss", "mark"]);
        assert_eq!(columns.numbers, [0.1, 0.2, 0.3, 0.4]);
        assert_eq!(
            columns.losses[0],
            r#"{"a": [13, 0, 9], "\"\u00fc\ud834\udd1e\u007f": []}"#
        );
    }

    #[test]
    fn codes_of_joined_tables_stand_for_the_names_of_all() {
        let rows = |codes: &[u32]| HistogramRows {
            distribution: codes.to_vec(),
            up_to_s: vec![1.0; codes.len()],
            count: vec![2; codes.len()],
        };
        let names = |list: &[&str]| list.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
        let (first, second) = (rows(&[0, 1]), rows(&[1, 0, 2]));
        let (ab, bca) = (names(&["a", "b"]), names(&["b", "c", "a"]));
        let mut joined = Joined::default();
        for table in [
            Some((&first, &ab[..])),
            None,
            Some((&second, &bca[..])),
            Some((&first, &ab[..])),
        ] {
            joined.push(table);
        }
        assert_eq!(joined.names, ["a", "b", "c"]);
        assert_eq!(joined.rows.distribution, [0, 1, 2, 1, 0, 0, 1]);
        assert_eq!(joined.lengths, [2, 0, 3, 2]);
        assert_eq!(joined.rows.count.len(), 7);
    }
}
