//! The result of a run as an answer.

use std::collections::BTreeMap;

use redtail_core::Span;
use redtail_network::group_report::bits_per_second;
use redtail_network::result::{Column, EventLog, RunResult};
use redtail_sim::Samples;
use redtail_spec::EventKind;
use serde_json::{Map, Value, json};

use crate::desk::Options;

/// The columns of an answer.
#[derive(Default)]
pub struct Columns {
    /// Their values, one column after the other.
    pub values: Vec<f64>,
}

impl Columns {
    /// Adds a column and returns what stands for it in the answer.
    fn add(&mut self, values: impl IntoIterator<Item = f64>) -> Value {
        let place = self.values.len();
        self.values.extend(values);
        json!({ "column": [place, self.values.len() - place] })
    }
}

/// A value of a column as a number: a code that is not set, and a count that no run reaches, are NaN.
fn number(column: Column<'_>, row: usize) -> f64 {
    match column {
        Column::F64(values) => values[row],
        Column::U32(values) => some(values[row], u32::MAX).map_or(f64::NAN, f64::from),
        Column::U64(values) => some(values[row], u64::MAX).map_or(f64::NAN, |value| value as f64),
    }
}

fn some<T: PartialEq>(value: T, unset: T) -> Option<T> {
    (value != unset).then_some(value)
}

/// The rows of a table.
type Rows = Vec<usize>;

/// The columns of a table in these rows; those called `keys` are left out.
fn table(
    columns: &[(&'static str, Column<'_>)],
    rows: &[usize],
    keys: &[&str],
    to: &mut Columns,
) -> Map<String, Value> {
    let shown = columns.iter().filter(|(name, _)| !keys.contains(name));
    let each = shown.map(|&(name, column)| {
        let values = rows.iter().map(|&row| number(column, row));
        (name.to_owned(), to.add(values))
    });
    each.collect()
}

/// All rows of a table by the value of a key.
fn by(key: &[u32]) -> BTreeMap<u32, Rows> {
    let mut found = BTreeMap::<u32, Rows>::new();
    for (row, &value) in key.iter().enumerate() {
        found.entry(value).or_default().push(row);
    }
    found
}

/// The answer that has the result of a run.
pub fn answer(result: &RunResult, options: &Options, to: &mut Columns) -> Value {
    let metrics = result.metrics.iter();
    let metrics: Map<_, _> = metrics
        .map(|(name, value)| (name.clone(), json!(value)))
        .collect();
    let mut found = json!({
        "ok": true,
        "metrics": metrics,
        "links": result.links,
        "groups": result.groups,
        "bottleneck_packets": result.bottleneck_packets,
        "events": result.events,
    });
    if let Some(flows) = &result.flows {
        let rows: Rows = (0..flows.flow.len()).collect();
        found["flows"] = table(&flows.columns(), &rows, &[], to).into();
    }
    if let (Some(interval), Some(queues), Some(flows), Some(groups)) = (
        options.interval(),
        &result.queue_series,
        &result.flow_series,
        &result.group_series,
    ) {
        let samples = Samples {
            queues,
            flows,
            groups,
        };
        let names = Names {
            links: result.links.iter().map(String::as_str).collect(),
            groups: result.groups.iter().map(String::as_str).collect(),
        };
        found["series"] = series(samples, &names, interval, to);
    }
    if options.histograms {
        found["histograms"] = histograms(result, to);
    }
    if let (Some(packets), Some(log)) = (&options.packets, &result.event_log) {
        let link = packets.link.as_deref();
        let link = link.map(|name| result.links.iter().position(|other| other == name));
        found["packets"] = packet_events(
            log,
            link.map(|place| place.map_or(u32::MAX, |it| it as u32)),
            to,
        );
    }
    found
}

/// The names by which an answer calls links and groups.
pub struct Names<'a> {
    /// By number.
    pub links: Vec<&'a str>,
    /// By number.
    pub groups: Vec<&'a str>,
}

/// Series of queues by link, of flows by group and number, and of groups.
pub fn series(samples: Samples<'_>, names: &Names<'_>, interval: Span, to: &mut Columns) -> Value {
    let mut queues = Map::new();
    for (link, rows) in by(&samples.queues.link) {
        let columns = table(&samples.queues.columns(), &rows, &["link"], to);
        queues.insert(names.links[link as usize].to_owned(), columns.into());
    }
    let mut flows = Map::new();
    let of_flows = samples.flows;
    for (flow, rows) in by(&of_flows.flow) {
        let hidden = ["flow", "group", "state"];
        let mut columns = table(&of_flows.columns(), &rows, &hidden, to);
        let delivered = |row: usize| of_flows.delivered_bytes[row];
        let goodput = rows
            .windows(2)
            .map(|pair| bits_per_second(delivered(pair[1]) - delivered(pair[0]), interval));
        let goodput: Vec<_> = std::iter::once(f64::NAN).chain(goodput).collect();
        columns.insert("goodput_bps".to_owned(), to.add(goodput));
        let group = names.groups[of_flows.group[rows[0]] as usize];
        let of_group = flows.entry(group).or_insert_with(|| json!({}));
        of_group[flow.to_string()] = columns.into();
    }
    let mut groups = Map::new();
    for (group, rows) in by(&samples.groups.group) {
        let columns = table(&samples.groups.columns(), &rows, &["group"], to);
        groups.insert(names.groups[group as usize].to_owned(), columns.into());
    }
    json!({ "queues": queues, "flows": flows, "groups": groups })
}

fn histograms(result: &RunResult, to: &mut Columns) -> Value {
    let mut found = Map::new();
    for (distribution, rows) in by(&result.histograms.rows.distribution) {
        let columns = table(
            &result.histograms.rows.columns(),
            &rows,
            &["distribution"],
            to,
        );
        found.insert(
            result.histograms.names[distribution as usize].clone(),
            columns.into(),
        );
    }
    found.into()
}

/// What can happen to a packet at a queue, in the order of the numbers of an answer.
const HAPPENS: [EventKind; 4] = [
    EventKind::Arrival,
    EventKind::Departure,
    EventKind::Drop,
    EventKind::Mark,
];

/// The events of packets, of one link or of all, in the order of time.
///
/// A packet has a number of its own from its arrival to its departure or drop.
fn packet_events(log: &EventLog, link: Option<u32>, to: &mut Columns) -> Value {
    let rows = &log.rows;
    let happens = |row: usize| {
        let kind = EventKind::ALL.get(rows.event[row] as usize)?;
        HAPPENS.iter().position(|other| other == kind)
    };
    let all = 0..rows.event.len();
    let shown: Vec<(usize, usize)> = all
        .clone()
        .filter(|&row| link.is_none_or(|link| rows.link[row] == link))
        .filter_map(|row| Some((row, happens(row)?)))
        .collect();
    let mut inside = BTreeMap::new();
    let mut count = 0;
    let mut numbers = Vec::with_capacity(shown.len());
    for &(row, kind) in &shown {
        let (flow, connection) = (rows.flow[row], rows.connection[row]);
        let packet = (
            rows.link[row],
            flow,
            connection,
            rows.back[row],
            rows.packet[row],
        );
        let number = *inside.entry(packet).or_insert_with(|| {
            count += 1;
            count - 1
        });
        if matches!(HAPPENS[kind], EventKind::Departure | EventKind::Drop) {
            inside.remove(&packet);
        }
        numbers.push(f64::from(number));
    }
    let columns = rows.columns();
    let mut add = |shown_as: &str, name: &str| {
        let column = columns.iter().find(|(other, _)| *other == name);
        let (_, column) = *column.expect("the log has this column");
        let values = shown.iter().map(|&(row, _)| number(column, row));
        (shown_as.to_owned(), to.add(values))
    };
    let mut found: Map<_, _> = [
        ("time_s", "time_s"),
        ("link", "link"),
        ("group", "group"),
        ("flow", "flow"),
        ("connection", "connection"),
        ("back", "back"),
        ("size", "bytes"),
        ("wait_s", "wait_s"),
    ]
    .into_iter()
    .map(|(shown_as, name)| add(shown_as, name))
    .collect();
    let kinds = shown.iter().map(|&(_, kind)| kind as f64);
    found.insert("kind".to_owned(), to.add(kinds));
    found.insert("id".to_owned(), to.add(numbers));
    let names = HAPPENS.iter().map(|kind| kind.meaning().name);
    found.insert("kinds".to_owned(), names.collect::<Vec<_>>().into());
    // Events of all links that came after the last one that was kept.
    let full = all.filter(|&row| EventKind::ALL[rows.event[row] as usize] == EventKind::Full);
    let left_out: f64 = full.map(|row| rows.value[row]).sum();
    found.insert("left_out".to_owned(), left_out.into());
    found.into()
}
