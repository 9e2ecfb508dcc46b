//! What the kernel reports, against what was asked for.

use std::fmt;

use serde_json::Value as Json;

use super::{Qdisc, Setting};

/// What the kernel must report of an option.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Expect {
    /// A number, this or one near it. One that is not reported is 0.
    Number {
        /// The number.
        value: f64,
        /// The largest difference.
        within: f64,
    },
    /// A size at the beginning of a text, such as `15000b/1`.
    Size {
        /// The size in bytes.
        value: f64,
        /// The largest difference.
        within: f64,
    },
    /// A text.
    Text(String),
    /// Whether it is on. One that is not reported is off.
    Flag(bool),
    /// A list of numbers.
    List(Vec<u64>),
    /// Nothing.
    Absent,
}

impl Expect {
    /// This number.
    pub fn exactly(value: f64) -> Self {
        Self::Number { value, within: 0.0 }
    }

    /// This number, of which `tc` prints six digits.
    pub fn about(value: f64) -> Self {
        Self::Number {
            value,
            within: 1e-5 * value,
        }
    }

    fn fits(&self, shown: Option<&Json>) -> bool {
        let near = |found: f64, value: f64, within: f64| (found - value).abs() <= within;
        match self {
            Self::Number { value, within } => match shown {
                None => *value == 0.0,
                Some(shown) => shown
                    .as_f64()
                    .is_some_and(|found| near(found, *value, *within)),
            },
            Self::Size { value, within } => {
                let text = shown.and_then(Json::as_str);
                let number = text.and_then(|text| text.split('b').next()?.parse().ok());
                number.is_some_and(|found| near(found, *value, *within))
            }
            Self::Text(text) => shown.and_then(Json::as_str) == Some(text),
            Self::Flag(on) => match shown {
                None => !on,
                Some(shown) => shown == &Json::Bool(*on),
            },
            Self::List(numbers) => shown == Some(&Json::from(numbers.clone())),
            Self::Absent => shown.is_none(),
        }
    }
}

impl fmt::Display for Expect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number { value, .. } => write!(f, "{value}"),
            Self::Size { value, .. } => write!(f, "{value} B"),
            Self::Text(text) => f.write_str(text),
            Self::Flag(on) => f.write_str(if *on { "on" } else { "off" }),
            Self::List(numbers) => write!(f, "{numbers:?}"),
            Self::Absent => f.write_str("nothing"),
        }
    }
}

/// The differences between what was asked for and what the kernel has, each in words; none if it has what was
/// asked for. `shown` is the output of `tc -j -d qdisc show dev DEVICE`.
///
/// Classes and filters are not compared: iproute2 6.1 prints classes as text only.
pub fn differs(asked: &Qdisc, shown: &Json) -> Vec<String> {
    let mut found = Vec::new();
    compare(asked, shown, &mut found);
    found
}

fn compare(asked: &Qdisc, shown: &Json, found: &mut Vec<String>) {
    let (kind, name) = (asked.kind, asked.name());
    let all = shown.as_array().map_or(&[][..], Vec::as_slice);
    match all.iter().find(|each| each["handle"] == name.as_str()) {
        None => found.push(format!(
            "{kind} {name} was asked for, and the kernel has no queue {name}"
        )),
        Some(queue) if queue["kind"] != kind => found.push(format!(
            "queue {name} was asked for as {kind}, and the kernel has {}",
            queue["kind"].as_str().unwrap_or("no kind")
        )),
        Some(queue) => compare_one(asked, queue, found),
    }
    for child in &asked.children {
        compare(child, shown, found);
    }
}

fn compare_one(asked: &Qdisc, queue: &Json, found: &mut Vec<String>) {
    let title = format!("{} {}", asked.kind, asked.name());
    let parent = queue["parent"].as_str();
    if parent != asked.parent.as_deref() {
        let place = |parent: Option<&str>| match parent {
            Some(parent) => format!("in class {parent}"),
            None => "at the root".to_owned(),
        };
        found.push(format!(
            "{title} was asked for {}, and the kernel has it {}",
            place(asked.parent.as_deref()),
            place(parent)
        ));
    }
    compare_settings(&title, &asked.settings, &queue["options"], found);
    let parts = queue["options"]["vqs"]
        .as_array()
        .map_or(&[][..], Vec::as_slice);
    for change in &asked.changes {
        let title = format!("{title} DP {}", change.number);
        match parts.iter().find(|part| part["vq"] == change.number) {
            Some(part) => compare_settings(&title, &change.settings, part, found),
            None => found.push(format!(
                "{title} was asked for, and the kernel does not have it"
            )),
        }
    }
}

fn compare_settings(title: &str, settings: &[Setting], options: &Json, found: &mut Vec<String>) {
    for (name, expect) in settings.iter().flat_map(|setting| &setting.expect) {
        let value = options.get(name);
        if !expect.fits(value) {
            let shown = value.map_or_else(|| "nothing".to_owned(), Json::to_string);
            found.push(format!(
                "{title} {name} was asked for as {expect}, and the kernel has {shown}"
            ));
        }
    }
}
