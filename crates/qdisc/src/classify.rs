//! Classification of packets.
//!
//! Rules are tried in the order of the classes, and the first that matches decides. A rule matches if all of
//! its conditions hold: on the packet's present DSCP (RFC 2474), and on the protocol, the port, the traffic
//! group and the host of its flow. A packet that no rule matches goes to the default class. Linux tries filters of equal
//! priority in this order (`tc-flower`).

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use redtail_core::{Dscp, Packet, ParamError, params};

use crate::{FlowFacts, FlowTable, LinkFacts, Protocol};

params! {
    /// Conditions that a packet must meet to belong to a class; all given conditions must hold.
    #[schemars(rename = "Rule")]
    pub struct RuleParams {
        /// DSCP of the packet, or a list of which it must be one.
        dscp: Option<OneOrMore<Dscp>>, "none, any class fits.";
        /// The protocol of the packet.
        protocol: Option<Protocol>, "none, any protocol fits.";
        /// The `port` of the packet's traffic group, or a list of which it must be one.
        port: Option<OneOrMore<u16>>, "none, any port fits.";
        /// Name of the packet's traffic group, or a list of which it must be one.
        group: Option<OneOrMore<String>>, "none, any group fits.";
        /// Number of the host of that group on which the packet's flow sits, counted from 0 as flows take hosts in turn, or a list of which it must be one: what the queue of a subscriber matches.
        host: Option<OneOrMore<u32>>, "none, any host fits.";
    }
}

impl RuleParams {
    /// Refuses a rule without conditions.
    fn check(&self) -> Result<(), ParamError> {
        if *self == Self::default() {
            return Err(ParamError::new(
                "match",
                "has a rule without a condition",
                "dscp, protocol, port or group in each rule, or no match for the default class",
            ));
        }
        if self.host.is_some() && self.group.is_none() {
            return Err(ParamError::new(
                "match",
                "has a host without a group",
                "the group whose host it is beside it, such as { group = \"web\", host = 0 }",
            ));
        }
        Ok(())
    }

    /// Refuses names of groups that do not exist.
    fn check_at(&self, link: &LinkFacts) -> Result<(), ParamError> {
        let names = || self.group.iter().flat_map(OneOrMore::values);
        for name in names() {
            if link.flows.group(name).is_none() {
                return Err(ParamError::new(
                    "match",
                    format!("names the group {name:?}, which is not there"),
                    link.flows.groups.join(", "),
                ));
            }
        }
        let numbers = names().filter_map(|name| link.flows.group(name));
        let most = numbers.map(|group| link.flows.hosts_of(group).len());
        let most = most.max().unwrap_or(0);
        let hosts = self.host.iter().flat_map(OneOrMore::values);
        match hosts.copied().find(|&host| host as usize >= most) {
            Some(host) if link.flows.count() > 0 => Err(ParamError::new(
                "match",
                format!("names the host {host}, which is not there"),
                format!(
                    "0 to {}, the hosts on which flows of these groups sit",
                    most.saturating_sub(1)
                ),
            )),
            _ => Ok(()),
        }
    }
}

/// Refuses rules that cannot work in any experiment.
///
/// # Errors
/// [`ParamError`] about the key `match`.
pub fn check_rules(rules: &OneOrMore<RuleParams>) -> Result<(), ParamError> {
    rules.values().iter().try_for_each(RuleParams::check)
}

/// Refuses rules that name groups that do not exist.
///
/// # Errors
/// [`ParamError`] about the key `match`; it lists the existing groups.
pub fn check_rules_at(rules: &OneOrMore<RuleParams>, link: &LinkFacts) -> Result<(), ParamError> {
    rules
        .values()
        .iter()
        .try_for_each(|rule| rule.check_at(link))
}

/// A rule with its names resolved.
#[derive(Clone, Debug)]
struct Compiled {
    /// Bit n stands for codepoint n.
    dscp: u64,
    protocol: Option<Protocol>,
    /// `None` is any.
    ports: Option<Vec<u16>>,
    /// `None` is any.
    groups: Option<Vec<u32>>,
    /// The receiving hosts of `groups` with the wanted numbers; `None` is any. Of the groups of a rule no two have the same
    /// receiving host for different wanted numbers.
    receivers: Option<Vec<u32>>,
    class: u32,
}

impl Compiled {
    fn new(rule: &RuleParams, class: usize, flows: &FlowTable) -> Self {
        let bit = |bits, dscp: &Dscp| bits | 1 << dscp.get();
        let dscp = rule.dscp.as_ref();
        let groups = rule.group.as_ref().map(|names| {
            let names = names.values().iter();
            names
                .filter_map(|name| flows.group(name))
                .collect::<Vec<_>>()
        });
        let receivers = rule.host.as_ref().map(|hosts| {
            let of = groups.iter().flatten().map(|&group| flows.hosts_of(group));
            let wanted = |all: Range<u32>| {
                let numbers = hosts.values().iter();
                numbers.filter_map(move |&host| {
                    let receiver = all.start.checked_add(host)?;
                    (receiver < all.end).then_some(receiver)
                })
            };
            of.flat_map(wanted).collect()
        });
        Self {
            dscp: dscp.map_or(u64::MAX, |list| list.values().iter().fold(0, bit)),
            protocol: rule.protocol,
            ports: rule.port.as_ref().map(|ports| ports.values().to_vec()),
            groups,
            receivers,
            class: class as u32,
        }
    }

    #[inline]
    fn fits(&self, dscp: Dscp, flow: &FlowFacts) -> bool {
        self.dscp >> dscp.get() & 1 == 1
            && self.protocol.is_none_or(|wanted| wanted == flow.protocol)
            && (self.ports.as_ref()).is_none_or(|ports| ports.contains(&flow.port))
            && (self.groups.as_ref()).is_none_or(|groups| groups.contains(&flow.group))
            && (self.receivers.as_ref()).is_none_or(|hosts| hosts.contains(&flow.receiver))
    }

    /// Whether it asks for hosts of groups and nothing else.
    fn is_of_hosts(&self) -> bool {
        self.receivers.is_some()
            && self.dscp == u64::MAX
            && self.protocol.is_none()
            && self.ports.is_none()
    }
}

/// Finds the class of a packet, by number.
#[derive(Clone, Debug)]
pub struct Classifier {
    rules: Vec<Compiled>,
    /// The first of the rules that ask for this group and this receiving host and nothing else, so that the class of a
    /// subscriber among thousands is found soon. These are not among `rules` that are tried one by one.
    by_host: BTreeMap<(u32, u32), Found>,
    default: usize,
    flows: Arc<FlowTable>,
}

/// A rule by its place in the order of all, and its class.
#[derive(Clone, Copy, Debug)]
struct Found {
    /// How many of the rules that are tried one by one come before it.
    after: usize,
    class: u32,
}

impl Classifier {
    /// The classifier of classes with these rules, in this order; `default` is the number of the class for
    /// all other packets.
    pub fn new<'a>(
        rules: impl Iterator<Item = Option<&'a OneOrMore<RuleParams>>>,
        default: usize,
        flows: Arc<FlowTable>,
    ) -> Self {
        let numbered = rules
            .enumerate()
            .filter_map(|(class, rules)| Some((class, rules?)));
        let compiled = numbered.flat_map(|(class, rules)| {
            let each = rules.values().iter();
            each.map(|rule| Compiled::new(rule, class, &flows))
                .collect::<Vec<_>>()
        });
        let (mut rules, mut by_host) = (Vec::new(), BTreeMap::new());
        for rule in compiled {
            if !rule.is_of_hosts() {
                rules.push(rule);
                continue;
            }
            let found = Found {
                after: rules.len(),
                class: rule.class,
            };
            for &group in rule.groups.iter().flatten() {
                for &receiver in rule.receivers.iter().flatten() {
                    by_host.entry((group, receiver)).or_insert(found);
                }
            }
        }
        Self {
            rules,
            by_host,
            default,
            flows,
        }
    }

    /// The class of `packet`.
    #[inline]
    pub fn class_of(&self, packet: &impl Packet) -> usize {
        self.class(packet.dscp(), &self.flows.get(packet.flow()))
    }

    /// The class of a packet of this flow with this DSCP.
    #[inline]
    pub fn class(&self, dscp: Dscp, flow: &FlowFacts) -> usize {
        if !self.by_host.is_empty() {
            return self.class_by_host(dscp, flow);
        }
        let rule = self.rules.iter().find(|rule| rule.fits(dscp, flow));
        rule.map_or(self.default, |rule| rule.class as usize)
    }

    /// The same where some rules are those of hosts.
    fn class_by_host(&self, dscp: Dscp, flow: &FlowFacts) -> usize {
        let of_host = self.by_host.get(&(flow.group, flow.receiver));
        let before = of_host.map_or(self.rules.len(), |found| found.after);
        let others = &self.rules[..before];
        let rule = others.iter().find(|rule| rule.fits(dscp, flow));
        let class = rule
            .map(|rule| rule.class)
            .or(of_host.map(|found| found.class));
        class.map_or(self.default, |class| class as usize)
    }

    /// For each traffic group, by its number, how many of its flows are in each class, for the DSCP that its senders set.
    pub fn of_groups(&self) -> Vec<BTreeMap<usize, u64>> {
        let mut found: Vec<BTreeMap<usize, u64>> = Vec::new();
        for (first, flows, hosts) in self.flows.runs() {
            let group = first.group as usize;
            if found.len() <= group {
                found.resize(group + 1, BTreeMap::new());
            }
            // Without rules of hosts, what rules ask is the same for all flows of a group.
            let apart = if self.asks_for_hosts() { hosts } else { 1 };
            for host in 0..apart.min(flows) {
                let flow = FlowFacts {
                    receiver: first.receiver + host,
                    ..*first
                };
                let count = u64::from((flows - host).div_ceil(apart));
                *found[group]
                    .entry(self.class(first.dscp, &flow))
                    .or_default() += count;
            }
        }
        found
    }

    fn asks_for_hosts(&self) -> bool {
        !self.by_host.is_empty() || self.rules.iter().any(|rule| rule.receivers.is_some())
    }
}

/// A value, or a list of them of which any will do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OneOrMore<T>(Vec<T>);

impl<T> OneOrMore<T> {
    /// This one alone.
    pub fn one(value: T) -> Self {
        Self(vec![value])
    }

    /// Any of these.
    ///
    /// # Panics
    /// If the list is empty.
    pub fn list(values: Vec<T>) -> Self {
        assert!(!values.is_empty(), "nothing would fit");
        Self(values)
    }

    /// All of them, at least one.
    pub fn values(&self) -> &[T] {
        &self.0
    }
}

redtail_core::when_serde! {
    mod text {
        use redtail_core::one_or_list::{self, OneOrList};
        use redtail_core::serde::{Deserialize, Deserializer, Serialize, Serializer};

        use super::OneOrMore;

        impl<T: Serialize> Serialize for OneOrMore<T> {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                one_or_list::serialize(&self.0, serializer)
            }
        }

        impl<'de, T: Deserialize<'de>> Deserialize<'de> for OneOrMore<T> {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let read = OneOrList {
                    expected: "a value, or a list of values of which any will do",
                    tables: true,
                };
                read.deserialize(deserializer).map(Self)
            }
        }
    }
}

redtail_core::when_schema! {
    mod schema {
        use std::borrow::Cow;

        use redtail_core::schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

        use super::OneOrMore;

        impl<T: JsonSchema> JsonSchema for OneOrMore<T> {
            fn schema_name() -> Cow<'static, str> {
                format!("OneOrMore_{}", T::schema_name()).into()
            }

            fn inline_schema() -> bool {
                true
            }

            fn json_schema(generator: &mut SchemaGenerator) -> Schema {
                let value = generator.subschema_for::<T>();
                json_schema!({
                    "anyOf": [value, { "type": "array", "items": value, "minItems": 1 }],
                })
            }
        }
    }
}
