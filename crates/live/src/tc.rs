//! The kernel's own queues: from a queue of the experiment file to the options of Linux `tc`.
//!
//! [`words`] is pure: it takes a [`QueueParams`] and the link, and returns the words of `tc` for the queue, its
//! classes, its inner queues and its filters, or the first key that the kernel cannot have ([`Unmapped`]).
//! The table [`ROWS`] says for each key which option it becomes and in which unit; the same table is printed
//! in `docs/reference/tc.md`. Every key is written, also one with its default, so that a default of redtail
//! that differs from the kernel's cannot change a result. [`differs`] compares what was asked for with what
//! the kernel reports.
//!
//! The kernel's queues stand on a TUN device, below a class of `htb` that has the rate of the link. A packet
//! there has no link header, so the kernel counts IP bytes as redtail does. On an Ethernet-like device
//! `tc ... stab overhead -14` is needed for the same.
//!
//! Sources: iproute2 6.1 and 6.17 (`tc/q_*.c`, `tc/tc_red.c`), Linux 6.1 (`net/sched/sch_*.c`).

mod classes;
mod convert;
mod gred;
mod kept;
mod shown;
mod table;

use std::collections::BTreeSet;
use std::fmt;

use redtail_core::{Bytes, Rate};
use redtail_qdisc::{LinkFacts, QueueParams};
use redtail_spec::queue_from_json;
use serde_json::{Map, Value as Json};

pub use shown::differs;
pub use table::{ROWS, Row, Unit, kinds, rows, table};

use convert::Context;
use shown::Expect;

/// The largest relative difference between the value of a key and what `tc` or the kernel makes of it.
/// Beyond it a value is refused.
pub const ROUNDING: f64 = 0.05;

/// Where a queue is put, and what of the kernel matters to it.
#[derive(Clone, Debug)]
pub struct Place {
    /// The class above it, such as `1:1`; `None` at the root of the device.
    pub parent: Option<String>,
    /// The first handle (the number before the colon) that is free. Inner queues take those after it.
    pub handle: u16,
    /// The largest packet of the device; the kernel takes it for the size of a full packet.
    pub mtu: Bytes,
    /// Ticks of the kernel's clock in a second (`CONFIG_HZ`); some times are counted in them.
    pub hz: u32,
}

impl Place {
    /// The root of a device with an MTU of 1500 bytes, on a kernel with 250 ticks in a second.
    pub fn root() -> Self {
        Self {
            parent: None,
            handle: 1,
            mtu: Bytes::new(1500),
            hz: 250,
        }
    }
}

/// A key whose value the kernel's queue cannot have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unmapped {
    /// The key, from the queue's table on: `limit`, `class.web.queue.target`; `kind` for the queue itself.
    pub key: String,
    /// What is wrong with the value, and what is accepted.
    pub reason: String,
}

impl Unmapped {
    fn new(key: impl Into<String>, reason: impl Into<String>) -> Self {
        Self {
            key: key.into(),
            reason: reason.into(),
        }
    }

    fn within(self, table: &str) -> Self {
        Self {
            key: format!("{table}.{}", self.key),
            ..self
        }
    }
}

impl fmt::Display for Unmapped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.key, self.reason)
    }
}

impl std::error::Error for Unmapped {}

/// What a key of redtail has become.
#[derive(Clone, Debug, PartialEq)]
pub struct Setting {
    /// The key; empty for an option that redtail has no key for.
    pub key: String,
    /// The words of `tc`; none for a key that is only checked.
    pub words: Vec<String>,
    /// What the kernel keeps, as the file would write it, if it cannot hold the value itself.
    pub kept: Option<String>,
    /// Under which names the kernel reports it, and as what.
    expect: Vec<(&'static str, Expect)>,
}

/// A queue of the kernel, with all that belongs to it.
#[derive(Clone, Debug, PartialEq)]
pub struct Qdisc {
    /// The number before the colon.
    pub handle: u16,
    /// The class above it; `None` at the root of the device.
    pub parent: Option<String>,
    /// The name of the queue in `tc`, such as `fq_codel`.
    pub kind: &'static str,
    /// The options of the queue, in the order of `tc`'s command line.
    pub settings: Vec<Setting>,
    /// Options that only `tc qdisc change` takes, one command each (`gred`).
    pub changes: Vec<Change>,
    /// The classes of the queue that must be made; parents come first.
    pub classes: Vec<Class>,
    /// Words after `tc filter add dev DEVICE`, in the order in which packets meet them.
    pub filters: Vec<Vec<String>>,
    /// Whether the filters stand at the exit of the device (`clsact`), not at the queue.
    pub at_exit: bool,
    /// Given if tc does not make it adapt: what [`crate::adaptive_red`] starts it with.
    pub adapts: Option<MeanPacket>,
    /// The queues in its classes.
    pub children: Vec<Qdisc>,
}

/// What the kernel's RED measures idle periods with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MeanPacket {
    /// The size of the packet.
    pub size: Bytes,
    /// The rate of the link.
    pub rate: Rate,
}

/// Options of a part of a queue that is set up by a command of its own.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// The number of the part.
    pub number: usize,
    /// The options that change.
    pub settings: Vec<Setting>,
}

/// A class that must be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Class {
    /// The class or queue above it, `10:` or `10:1`.
    pub parent: String,
    /// The name of the class itself, `10:2`.
    pub id: String,
    /// The kind of the class and its options.
    pub words: Vec<String>,
}

impl Qdisc {
    /// The words after `tc qdisc add dev DEVICE parent PARENT handle HANDLE`.
    pub fn words(&self) -> Vec<String> {
        self.words_of(&self.settings)
    }

    fn words_of(&self, settings: &[Setting]) -> Vec<String> {
        let options = settings.iter().flat_map(|setting| &setting.words);
        std::iter::once(self.kind.to_owned())
            .chain(options.cloned())
            .collect()
    }

    /// All commands, each as the words after `tc`, in the order in which they must be given.
    pub fn commands(&self, device: &str) -> Vec<Vec<String>> {
        let mut commands = Vec::new();
        self.add_commands(device, &mut commands);
        commands
    }

    fn add_commands(&self, device: &str, commands: &mut Vec<Vec<String>>) {
        let parent = match &self.parent {
            Some(parent) => vec!["parent".to_owned(), parent.clone()],
            None => vec!["root".to_owned()],
        };
        let place = |what: &[&str]| -> Vec<String> {
            let what = what.iter().copied().chain(["dev", device]);
            what.map(str::to_owned).collect()
        };
        let handle = ["handle".to_owned(), self.name()];
        let qdisc = |verb: &str, words: Vec<String>| {
            [
                place(&["qdisc", verb]),
                parent.clone(),
                handle.to_vec(),
                words,
            ]
            .concat()
        };
        commands.push(qdisc("add", self.words()));
        for change in &self.changes {
            commands.push(qdisc("change", self.words_of(&change.settings)));
        }
        for class in &self.classes {
            let ids = ["parent", &class.parent, "classid", &class.id].map(str::to_owned);
            commands.push([place(&["class", "add"]), ids.to_vec(), class.words.clone()].concat());
        }
        for child in &self.children {
            child.add_commands(device, commands);
        }
        if self.at_exit {
            commands.push([place(&["qdisc", "add"]), vec!["clsact".to_owned()]].concat());
        }
        for filter in &self.filters {
            commands.push([place(&["filter", "add"]), filter.clone()].concat());
        }
    }

    /// The kinds of this queue and of those in its classes.
    pub fn kinds(&self) -> Vec<&'static str> {
        self.all().iter().map(|queue| queue.kind).collect()
    }

    /// What the filters of this queue and of those in its classes need of the kernel: classifiers, and the place for
    /// filters at the exit of a device.
    pub fn filter_kinds(&self) -> BTreeSet<&str> {
        let mut found = BTreeSet::new();
        for queue in self.all() {
            found.extend(queue.filters.iter().map(|words| {
                let pref = words.iter().position(|word| word == "pref");
                words[pref.expect("each filter has one") + 2].as_str()
            }));
            found.extend(queue.at_exit.then_some("clsact"));
        }
        found
    }

    /// This queue and those in its classes.
    pub fn all(&self) -> Vec<&Self> {
        let inner = self.children.iter().flat_map(Self::all);
        std::iter::once(self).chain(inner).collect()
    }

    /// The handle of the queue as `tc` writes it.
    pub fn name(&self) -> String {
        handle(self.handle)
    }
}

fn handle(number: u16) -> String {
    format!("{number:x}:")
}

fn class_id(number: u16, class: usize) -> String {
    format!("{number:x}:{class:x}")
}

/// The kernel's queue for a queue of the experiment file, on this link. The parameters must have passed
/// [`QueueParams::check`] and [`QueueParams::check_at`].
///
/// # Errors
/// [`Unmapped`] names a key whose value the kernel's queue cannot have, and says what is accepted.
pub fn words(queue: &QueueParams, link: &LinkFacts, place: &Place) -> Result<Qdisc, Unmapped> {
    let mut free = place.handle;
    build(queue, link, place, place.parent.clone(), &mut free, true)
}

/// As [`words`]; `free` is the next free handle. A queue that is `alone` has the device for itself.
fn build(
    queue: &QueueParams,
    link: &LinkFacts,
    place: &Place,
    parent: Option<String>,
    free: &mut u16,
    alone: bool,
) -> Result<Qdisc, Unmapped> {
    let number = *free;
    *free = free.checked_add(1).ok_or_else(|| {
        Unmapped::new(
            "kind",
            "needs more handles than tc has; accepted: fewer classes",
        )
    })?;
    let Json::Object(keys) = serde_json::to_value(queue).expect("parameters have a form") else {
        unreachable!("parameters are a table");
    };
    let keys = filled_in(queue, keys);
    let context = Context {
        link,
        place,
        keys: &keys,
    };
    let kind = tc_kind(queue, &context)?;
    let mut settings = Vec::new();
    for row in rows(queue.kind()) {
        if row.key.contains('.') {
            continue;
        }
        let value = keys.get(row.key);
        settings.push(match context.setting(row, value) {
            Err(_) if row.unit.yields() && value == default_of(queue, &keys, row.key).as_ref() => {
                Setting {
                    key: row.key.to_owned(),
                    words: Vec::new(),
                    kept: None,
                    expect: Vec::new(),
                }
            }
            setting => setting?,
        });
    }
    let mut qdisc = Qdisc {
        handle: number,
        parent,
        kind,
        settings,
        changes: Vec::new(),
        classes: Vec::new(),
        filters: Vec::new(),
        at_exit: false,
        adapts: match queue {
            QueueParams::AdaptiveRed(red) if red.adapt => red.mean_packet.map(|size| MeanPacket {
                size,
                rate: link.rate,
            }),
            _ => None,
        },
        children: Vec::new(),
    };
    if let QueueParams::Wred(wred) = queue {
        gred::complete(&mut qdisc, wred, &context, alone)?;
    }
    classes::complete(&mut qdisc, queue, &context, free)?;
    Ok(qdisc)
}

/// The default of a key of a queue with these keys; `None` if there is none, or the key is required.
fn default_of(queue: &QueueParams, keys: &Map<String, Json>, key: &str) -> Option<Json> {
    let mut others = keys.clone();
    others.remove(key);
    others.remove("kind");
    let without = serde_json::json!({ queue.kind(): others });
    let queue = queue_from_json(without).ok()?;
    let keys = serde_json::to_value(queue).expect("parameters have a form");
    keys.get(key).cloned()
}

/// Adds to the keys those whose value redtail takes from elsewhere when they are left out.
fn filled_in(queue: &QueueParams, mut keys: Map<String, Json>) -> Map<String, Json> {
    if let QueueParams::DualPi2(_) = queue {
        // `dualpi2_reset_default` of Linux 6.17; `flavour = "linux"` has the same.
        let defaults = [
            ("limit", Json::from("10000 packets")),
            ("update", Json::from("16 ms")),
            ("alpha", Json::from(41.0 / 256.0)),
            ("beta", Json::from(819.0 / 256.0)),
            ("min_th", Json::from("1 ms")),
            ("range", Json::from("0 s")),
            ("th_len", Json::from(0)),
            ("classic_share", Json::from(0.1)),
        ];
        for (key, value) in defaults {
            keys.entry(key).or_insert(value);
        }
    }
    keys
}

/// The kernel's name of a queue.
fn tc_kind(queue: &QueueParams, context: &Context<'_>) -> Result<&'static str, Unmapped> {
    let refuse = |reason: &str| {
        let accepted = kinds().join(", ");
        let kind = queue.kind();
        let text = format!("= \"{kind}\": {reason}; accepted: {accepted}");
        Err(Unmapped::new("kind", text))
    };
    match queue {
        QueueParams::TailDrop(params) => Ok(if params.limit.packets.is_some() {
            "pfifo"
        } else {
            "bfifo"
        }),
        QueueParams::HeadDrop(_) => Ok("pfifo_head_drop"),
        QueueParams::Red(_) | QueueParams::AdaptiveRed(_) => Ok("red"),
        QueueParams::Wred(_) => Ok("gred"),
        QueueParams::Choke(_) => Ok("choke"),
        QueueParams::Codel(_) => Ok("codel"),
        QueueParams::FqCodel(_) => Ok("fq_codel"),
        QueueParams::Pie(_) => Ok("pie"),
        QueueParams::FqPie(_) => Ok("fq_pie"),
        QueueParams::Cake(_) => Ok("cake"),
        QueueParams::Sfq(_) => Ok("sfq"),
        QueueParams::Sfb(_) => Ok("sfb"),
        QueueParams::DualPi2(_) => {
            // Defaults depend on the flavour, so this key comes before all others.
            let row = table::row_of("dualpi2", "flavour").expect("it has a row");
            context.setting(row, context.keys.get("flavour"))?;
            Ok("dualpi2")
        }
        QueueParams::Htb(_) => Ok("htb"),
        QueueParams::Tbf(_) => Ok("tbf"),
        QueueParams::Prio(_) => Ok("prio"),
        QueueParams::Drr(_) => Ok("drr"),
        QueueParams::Fq(_) | QueueParams::PfifoFast(_) => {
            refuse("the kernel has this queue, but its keys are not mapped to tc's options")
        }
        _ => refuse("no queue of the kernel behaves so"),
    }
}

#[cfg(test)]
mod tests;
