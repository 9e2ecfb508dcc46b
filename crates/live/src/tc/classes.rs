//! Queues with classes: the classes, their queues, and the filters that choose among them.

use redtail_core::Bytes;
use redtail_qdisc::class::{LeafParams, default_class};
use redtail_qdisc::classify::{OneOrMore, RuleParams};
use redtail_qdisc::queues::htb::HtbClassParams;
use redtail_qdisc::{LinkFacts, Protocol, QueueParams};
use serde_json::{Map, Value as Json};

use super::convert::{Context, refused};
use super::shown::Expect;
use super::table::{Row, rows};
use super::{Class, Qdisc, Setting, Unmapped, build, class_id};
use crate::addresses::{self, Side};

/// Most bands of `prio` (`TCQ_PRIO_BANDS`), and places of its map.
const MOST_BANDS: usize = 16;
/// Ports that no client takes for itself (`net.ipv4.ip_local_port_range` is from 1024).
const SERVER_PORTS: std::ops::RangeInclusive<u16> = 1..=1023;

/// A class that holds packets.
struct Leaf<'a> {
    number: usize,
    name: &'a str,
    key: String,
    rules: Option<&'a OneOrMore<RuleParams>>,
}

/// Adds classes, inner queues and filters.
pub(super) fn complete(
    qdisc: &mut Qdisc,
    queue: &QueueParams,
    context: &Context<'_>,
    free: &mut u16,
) -> Result<(), Unmapped> {
    let (leaves, default) = match queue {
        QueueParams::Tbf(params) => {
            // `limit` makes a queue, which the inner one then replaces.
            qdisc
                .settings
                .push(own("limit", &[params.burst.as_u64().to_string()]));
            let leaf = Leaf {
                number: 1,
                name: "",
                key: String::new(),
                rules: None,
            };
            (vec![leaf], None)
        }
        QueueParams::Prio(params) => {
            let each = params
                .class
                .iter()
                .map(|class| (class.name.as_str(), class.rules.as_ref()));
            (plain(each), params.default.as_deref())
        }
        QueueParams::Drr(params) => {
            let each = params
                .class
                .iter()
                .map(|class| (class.name.as_str(), class.rules.as_ref()));
            let leaves = plain(each);
            for (class, leaf) in params.class.iter().zip(&leaves) {
                let keys = serde_json::to_value(class).expect("parameters have a form");
                let keys = keys.as_object().cloned().unwrap_or_default();
                let words = class_words("drr", &keys, &["quantum"], context, &leaf.key)?;
                add_class(qdisc, qdisc.name(), leaf.number, words);
            }
            (leaves, params.default.as_deref())
        }
        QueueParams::Htb(params) => {
            let mut leaves = Vec::new();
            add_htb(qdisc, &params.class, None, "class", context, &mut leaves)?;
            (leaves, params.default.as_deref())
        }
        _ => return Ok(()),
    };
    let default = default_leaf(&leaves, default);
    choose(qdisc, queue, &leaves, default, context.link)?;
    add_queues(qdisc, queue, &leaves, context, free)
}

/// A setting that redtail has no key for.
fn own(option: &str, values: &[String]) -> Setting {
    Setting {
        key: String::new(),
        words: [&[option.to_owned()], values].concat(),
        kept: None,
        expect: Vec::new(),
    }
}

fn plain<'a>(
    classes: impl Iterator<Item = (&'a str, Option<&'a OneOrMore<RuleParams>>)>,
) -> Vec<Leaf<'a>> {
    let leaf = |(i, (name, rules))| Leaf {
        number: i + 1,
        name,
        key: format!("class.{name}"),
        rules,
    };
    classes.enumerate().map(leaf).collect()
}

fn add_class(qdisc: &mut Qdisc, parent: String, number: usize, words: Vec<String>) {
    let id = class_id(qdisc.handle, number);
    qdisc.classes.push(Class { parent, id, words });
}

/// The words of a class with these keys, of which `wanted` become options.
fn class_words(
    kind: &str,
    keys: &Map<String, Json>,
    wanted: &[&str],
    context: &Context<'_>,
    table: &str,
) -> Result<Vec<String>, Unmapped> {
    let context = Context { keys, ..*context };
    let mut words = vec![kind.to_owned()];
    for row in rows(kind) {
        let key = row
            .key
            .strip_prefix("class.")
            .filter(|key| wanted.contains(key));
        if let Some(key) = key {
            let setting = context.setting(&Row { key, ..*row }, keys.get(key));
            words.extend(setting.map_err(|error| error.within(table))?.words);
        }
    }
    Ok(words)
}

/// Adds the classes of `htb` with all that are below them.
fn add_htb<'a>(
    qdisc: &mut Qdisc,
    classes: &'a [HtbClassParams],
    parent: Option<usize>,
    list: &str,
    context: &Context<'_>,
    leaves: &mut Vec<Leaf<'a>>,
) -> Result<(), Unmapped> {
    for class in classes {
        let key = format!("{list}.{}", class.name);
        let number = qdisc.classes.len() + 1;
        let mut keys = Map::new();
        let rate = class.rate;
        keys.insert("rate".to_owned(), rate.to_string().into());
        keys.insert(
            "ceil".to_owned(),
            class.ceil.unwrap_or(rate).to_string().into(),
        );
        keys.insert("burst".to_owned(), class.burst.to_string().into());
        keys.insert("cburst".to_owned(), class.cburst.to_string().into());
        let mut wanted = vec!["rate", "ceil", "burst", "cburst"];
        if class.queue.is_some() {
            // As `HtbParams` computes it, and sch_htb with `r2q 10`.
            let computed = Bytes::new((rate.as_bps() / 8 / 10).clamp(1_000, 200_000));
            let quantum = class.quantum.unwrap_or(computed);
            keys.insert("prio".to_owned(), class.prio.into());
            keys.insert("quantum".to_owned(), quantum.to_string().into());
            wanted.extend(["prio", "quantum"]);
        }
        let words = class_words("htb", &keys, &wanted, context, &key)?;
        let above = parent.map_or_else(|| qdisc.name(), |parent| class_id(qdisc.handle, parent));
        add_class(qdisc, above, number, words);
        if class.queue.is_some() {
            let rules = class.rules.as_ref();
            leaves.push(Leaf {
                number,
                name: &class.name,
                key: key.clone(),
                rules,
            });
        }
        let below = format!("{key}.class");
        add_htb(qdisc, &class.class, Some(number), &below, context, leaves)?;
    }
    Ok(())
}

/// The class for packets that no rule fits.
fn default_leaf<'a, 'b>(leaves: &'b [Leaf<'a>], default: Option<&str>) -> &'b Leaf<'a> {
    let specs: Vec<_> = leaves
        .iter()
        .map(|leaf| LeafParams {
            list: "class".to_owned(),
            name: leaf.name,
            rules: leaf.rules,
            queue: None,
            rate: None,
        })
        .collect();
    &leaves[default_class(&specs, default).expect("the parameters have been checked")]
}

/// Adds what chooses a class for each packet.
fn choose(
    qdisc: &mut Qdisc,
    queue: &QueueParams,
    leaves: &[Leaf<'_>],
    default: &Leaf<'_>,
    link: &LinkFacts,
) -> Result<(), Unmapped> {
    let mut pref = 0;
    for leaf in leaves {
        for rule in leaf.rules.into_iter().flat_map(OneOrMore::values) {
            pref += 1;
            let matches = keys_of(rule, link).map_err(|error| error.within(&leaf.key))?;
            for keys in matches {
                add_filter(qdisc, "ip", pref, "flower", &keys, leaf.number);
            }
        }
    }
    match queue {
        QueueParams::Htb(_) => {
            let class = format!("0x{:x}", default.number);
            let mut setting = own(
                "default",
                &[class.clone(), "r2q".to_owned(), "10".to_owned()],
            );
            setting.expect = vec![
                ("default", Expect::Text(class)),
                ("r2q", Expect::exactly(10.0)),
            ];
            qdisc.settings.push(setting);
        }
        QueueParams::Prio(_) => {
            if leaves.len() > MOST_BANDS {
                let count = Json::from(format!("{} classes", leaves.len()));
                return Err(refused(
                    "class",
                    Some(&count),
                    format!("up to {MOST_BANDS}"),
                ));
            }
            let bands = leaves.len().max(2);
            let band = default.number - 1;
            let mut values = vec![bands.to_string(), "priomap".to_owned()];
            values.extend(std::iter::repeat_n(band.to_string(), MOST_BANDS));
            let mut setting = own("bands", &values);
            setting.expect = vec![
                ("bands", Expect::exactly(bands as f64)),
                ("priomap", Expect::List(vec![band as u64; MOST_BANDS])),
            ];
            qdisc.settings.push(setting);
        }
        // The kernel drops what no filter fits.
        QueueParams::Drr(_) => add_filter(qdisc, "all", pref + 1, "matchall", &[], default.number),
        _ => {}
    }
    Ok(())
}

fn add_filter(
    qdisc: &mut Qdisc,
    protocol: &str,
    pref: usize,
    kind: &str,
    keys: &[String],
    class: usize,
) {
    let name = qdisc.name();
    let pref = pref.to_string();
    let place = ["parent", &name, "protocol", protocol, "pref", &pref, kind].map(str::to_owned);
    let class = ["classid".to_owned(), class_id(qdisc.handle, class)];
    qdisc.filters.push([&place[..], keys, &class[..]].concat());
}

/// The keys of `flower` for a rule: one list for each filter. A packet that one of them fits belongs to the
/// class.
fn keys_of(rule: &RuleParams, link: &LinkFacts) -> Result<Vec<Vec<String>>, Unmapped> {
    let mut all: Vec<Vec<String>> = vec![Vec::new()];
    let mut also = |choices: Vec<[String; 2]>| {
        let each = |keys: &Vec<String>| -> Vec<Vec<String>> {
            choices
                .iter()
                .map(|choice| [keys.as_slice(), choice].concat())
                .collect()
        };
        all = all.iter().flat_map(each).collect();
    };
    let pair = |key: &str, value: String| [key.to_owned(), value];
    if let Some(dscps) = &rule.dscp {
        let tos =
            |dscp: &redtail_core::Dscp| pair("ip_tos", format!("0x{:02x}/0xfc", dscp.get() << 2));
        also(dscps.values().iter().map(tos).collect());
    }
    let protocols: &[Protocol] = match rule.protocol {
        Some(Protocol::Tcp) => &[Protocol::Tcp],
        Some(Protocol::Udp) => &[Protocol::Udp],
        None if rule.port.is_some() => &[Protocol::Tcp, Protocol::Udp],
        None => &[],
    };
    if !protocols.is_empty() {
        let name = |protocol: &Protocol| match protocol {
            Protocol::Tcp => pair("ip_proto", "tcp".to_owned()),
            Protocol::Udp => pair("ip_proto", "udp".to_owned()),
        };
        also(protocols.iter().map(name).collect());
    }
    if let Some(ports) = &rule.port {
        if let Some(port) = ports
            .values()
            .iter()
            .find(|port| !SERVER_PORTS.contains(port))
        {
            let port = Json::from(*port);
            return Err(refused(
                "match.port",
                Some(&port),
                "1 to 1023, or a match by dscp or group: a client \
                 may have any other port itself",
            ));
        }
        let both = |port: &u16| ["src_port", "dst_port"].map(|key| pair(key, port.to_string()));
        also(ports.values().iter().flat_map(both).collect());
    }
    if let Some(names) = &rule.group {
        let mut networks = Vec::new();
        for name in names.values() {
            let group = link.flows.group(name).map(|group| group as usize);
            let Some(group) = group.filter(|&group| group < addresses::MAX_GROUPS) else {
                let accepted = link.flows.groups.join(", ");
                return Err(refused(
                    "match.group",
                    Some(&Json::from(name.as_str())),
                    accepted,
                ));
            };
            let both =
                |of: &dyn Fn(Side) -> String| Side::BOTH.map(|side| pair("src_ip", of(side)));
            match &rule.host {
                None => networks.extend(both(&|side| addresses::network_of(group, side))),
                Some(hosts) => networks.extend(hosts.values().iter().flat_map(|&host| {
                    both(&|side| addresses::host(group, side, host as usize).to_string())
                })),
            }
        }
        also(networks);
    }
    Ok(all)
}

/// Adds the queues of the classes.
fn add_queues(
    qdisc: &mut Qdisc,
    queue: &QueueParams,
    leaves: &[Leaf<'_>],
    context: &Context<'_>,
    free: &mut u16,
) -> Result<(), Unmapped> {
    let mut inner = Vec::new();
    queue.inner(context.link, &mut |key, spec, link| {
        inner.push((key.to_owned(), spec.clone(), link.clone()));
    });
    let alone = leaves.len() == 1;
    for (leaf, (key, spec, link)) in leaves.iter().zip(&inner) {
        let parent = class_id(qdisc.handle, leaf.number);
        let child = build(spec, link, context.place, Some(parent), free, alone);
        qdisc
            .children
            .push(child.map_err(|error| error.within(key))?);
    }
    Ok(())
}
