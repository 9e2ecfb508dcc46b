//! Classification of packets.
//!
//! Rules are tried in the order of the classes, and the first that matches decides. A rule matches if all of
//! its conditions hold: on the packet's present DSCP (RFC 2474), and on the protocol, the port and the traffic
//! group of its flow. A packet that no rule matches goes to the default class. Linux tries filters of equal
//! priority in this order (`tc-flower`).

use std::borrow::Cow;
use std::sync::Arc;

use redtail_core::one_or_list::{self, OneOrList};
use redtail_core::schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use redtail_core::serde::{Deserialize, Deserializer, Serialize, Serializer};
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
        Ok(())
    }

    /// Refuses names of groups that do not exist.
    fn check_at(&self, link: &LinkFacts) -> Result<(), ParamError> {
        let names = self.group.iter().flat_map(OneOrMore::values);
        for name in names {
            if link.flows.group(name).is_none() {
                return Err(ParamError::new(
                    "match",
                    format!("names the group {name:?}, which is not there"),
                    link.flows.groups.join(", "),
                ));
            }
        }
        Ok(())
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
    class: u32,
}

impl Compiled {
    fn new(rule: &RuleParams, class: usize, flows: &FlowTable) -> Self {
        let bit = |bits, dscp: &Dscp| bits | 1 << dscp.get();
        let dscp = rule.dscp.as_ref();
        let groups = rule.group.as_ref().map(|names| {
            let names = names.values().iter();
            names.filter_map(|name| flows.group(name)).collect()
        });
        Self {
            dscp: dscp.map_or(u64::MAX, |list| list.values().iter().fold(0, bit)),
            protocol: rule.protocol,
            ports: rule.port.as_ref().map(|ports| ports.values().to_vec()),
            groups,
            class: class as u32,
        }
    }

    #[inline]
    fn fits(&self, dscp: Dscp, flow: &FlowFacts) -> bool {
        self.dscp >> dscp.get() & 1 == 1
            && self.protocol.is_none_or(|wanted| wanted == flow.protocol)
            && (self.ports.as_ref()).is_none_or(|ports| ports.contains(&flow.port))
            && (self.groups.as_ref()).is_none_or(|groups| groups.contains(&flow.group))
    }
}

/// Finds the class of a packet, by number.
#[derive(Clone, Debug)]
pub struct Classifier {
    rules: Vec<Compiled>,
    default: usize,
    flows: Arc<FlowTable>,
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
        let rules = numbered
            .flat_map(|(class, rules)| {
                let each = rules.values().iter();
                each.map(|rule| Compiled::new(rule, class, &flows))
                    .collect::<Vec<_>>()
            })
            .collect();
        Self {
            rules,
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
        let rule = self.rules.iter().find(|rule| rule.fits(dscp, flow));
        rule.map_or(self.default, |rule| rule.class as usize)
    }

    /// The class of each traffic group, by its number, for the DSCP that its senders set; `None` for a group
    /// without flows.
    pub fn of_groups(&self) -> Vec<Option<usize>> {
        let mut classes = Vec::new();
        for flow in self.flows.first_flows() {
            let group = flow.group as usize;
            if classes.len() <= group {
                classes.resize(group + 1, None);
            }
            // What rules ask is the same for all flows of a group.
            if classes[group].is_none() {
                classes[group] = Some(self.class(flow.dscp, flow));
            }
        }
        classes
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
