//! Numbers in the events of a qlog, version 0.3 and later (draft-ietf-quic-qlog-main-schema-05 and later): a file of
//! JSON, or a sequence of JSON texts (RFC 7464), which implementations write as `.sqlog` or `.qlog`.

use std::collections::BTreeSet;

use serde_json::Value;

use super::reading::{Found, Missed, cut, some};
use super::{EventField, MeasureParams};

/// A measure of a qlog: where its numbers go, and what it is.
pub(super) type Wanted<'a> = (&'a mut Found, &'a MeasureParams, &'a EventField);

/// The separator of RFC 7464.
const SEPARATOR: u8 = 0x1e;

/// Enters the numbers of all events of a file.
///
/// # Errors
/// The file is no such qlog.
pub(super) fn read(bytes: &[u8], wanted: &mut [Wanted<'_>]) -> Result<(), String> {
    let mut names = Names::default();
    if is_sequence(bytes) {
        for event in sequence(bytes)? {
            take(&event?, wanted, &mut names);
        }
    } else {
        let file: Value = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
        for event in events(&file)? {
            take(event, wanted, &mut names);
        }
    }
    for (found, _, field) in wanted {
        found.miss(|| {
            let problem = format!("no event is called {}", field.event);
            Missed::new(problem, some(names.0.iter().map(String::as_str)))
        });
    }
    Ok(())
}

/// Names of events, as many as a message can have.
#[derive(Default)]
struct Names(BTreeSet<String>);

fn take(event: &Value, wanted: &mut [Wanted<'_>], names: &mut Names) {
    let Some(name) = event.get("name").and_then(Value::as_str) else {
        return;
    };
    if names.0.len() < 32 && !names.0.contains(name) {
        names.0.insert(cut(name, 60));
    }
    let data = event.get("data").unwrap_or(&Value::Null);
    for (found, measure, field) in wanted.iter_mut().filter(|(.., field)| field.is(name)) {
        match &field.path {
            Some(path) => found.walk(measure, data, &path.steps),
            None => found.enter(measure, event, String::new),
        }
    }
}

/// Whether a file is a sequence of texts, and not one.
fn is_sequence(bytes: &[u8]) -> bool {
    if bytes.contains(&SEPARATOR) {
        return true;
    }
    // Some write it by lines. JSON that is one text has no complete value in its first line, or nothing after it.
    let mut lines = bytes
        .split(|&byte| byte == b'\n')
        .filter(|line| !line.trim_ascii().is_empty());
    let first = lines.next().unwrap_or_default();
    lines.next().is_some() && serde_json::from_slice::<Value>(first).is_ok()
}

/// The events of a sequence, whose first text is its head. A last text that is not complete is left out: it is that of
/// a program that was ended (RFC 7464, section 2.3).
fn sequence(bytes: &[u8]) -> Result<impl Iterator<Item = Result<Value, String>>, String> {
    let separator = if bytes.contains(&SEPARATOR) {
        SEPARATOR
    } else {
        b'\n'
    };
    let texts = bytes
        .split(move |&byte| byte == separator)
        .map(<[u8]>::trim_ascii);
    let mut texts = texts.filter(|text| !text.is_empty()).peekable();
    let head: Value = serde_json::from_slice(texts.next().unwrap_or_default())
        .map_err(|error| format!("its first text: {error}"))?;
    require_version(&head)?;
    let mut number = 1;
    Ok(std::iter::from_fn(move || {
        let text = texts.next()?;
        number += 1;
        match serde_json::from_slice(text) {
            Ok(event) => Some(Ok(event)),
            Err(error) if error.is_eof() && texts.peek().is_none() => None,
            Err(error) => Some(Err(format!("its text {number}: {error}"))),
        }
    }))
}

/// The events of all traces of a file.
fn events(file: &Value) -> Result<Vec<&Value>, String> {
    require_version(file)?;
    let traces = file.get("traces").and_then(Value::as_array);
    let traces = traces.ok_or("it has no list traces")?;
    let lists = traces
        .iter()
        .filter_map(|trace| trace.get("events").and_then(Value::as_array));
    Ok(lists.flatten().collect())
}

/// Refuses files of drafts in which an event is a list.
fn require_version(head: &Value) -> Result<(), String> {
    let version = head.get("qlog_version").and_then(Value::as_str);
    let schema = head.get("file_schema").and_then(Value::as_str);
    match (version, schema) {
        (Some(old), _) if old.starts_with("draft-") || ["0.1", "0.2"].contains(&old) => {
            let old = cut(old, 40);
            Err(format!(
                "it is of qlog version {old}, and 0.3 and later can be read"
            ))
        }
        (None, None) => Err("it has no qlog_version".to_owned()),
        _ => Ok(()),
    }
}
