//! How a group reaches the bottleneck.

use redtail_core::schemars::JsonSchema;
use redtail_core::serde::{Deserialize, Serialize};
use redtail_core::{Dscp, Rate, Span, schemars, serde};

use crate::dealt::Dealt;
use crate::hop::ChainHop;
use crate::hosts::TakenHosts;

/// Direction in which a group's data travels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(crate = "serde", rename_all = "kebab-case")]
#[schemars(crate = "schemars")]
pub enum Direction {
    /// In the order of the bottlenecks.
    #[default]
    Forward,
    /// Against the order of the bottlenecks, over the return links.
    Reverse,
}

impl Direction {
    /// The opposite direction.
    #[must_use]
    pub fn opposite(self) -> Self {
        match self {
            Self::Forward => Self::Reverse,
            Self::Reverse => Self::Forward,
        }
    }
}

/// What every group has: its name, its flows and how they reach the bottleneck.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)] // each field is documented as a key of the group
pub struct Access<'a> {
    pub name: &'a str,
    /// Of all activations together.
    pub flows: u32,
    /// Of one activation.
    pub flows_at_once: u32,
    pub access_rate: Option<&'a Dealt<Rate>>,
    pub access_delay: &'a Dealt<Span>,
    pub exit_rate: Option<&'a Dealt<Rate>>,
    pub exit_delay: &'a Dealt<Span>,
    pub return_delay: &'a Dealt<Span>,
    pub hosts: Option<u32>,
    pub hosts_of: Option<&'a str>,
    pub host_jitter: Option<Span>,
    pub trains: bool,
    pub direction: Direction,
    pub dscp: Dscp,
    pub port: u16,
    pub first_hop: Option<u32>,
    pub last_hop: Option<u32>,
    pub repeat: Option<Span>,
    pub activations: Option<u32>,
}

impl Access<'_> {
    /// Number of hosts on each side.
    pub fn host_count(&self) -> usize {
        let longest = [
            self.access_delay.values().len(),
            self.exit_delay.values().len(),
            self.return_delay.values().len(),
            self.access_rate.map_or(1, |rate| rate.values().len()),
            self.exit_rate.map_or(1, |rate| rate.values().len()),
        ];
        let longest = longest.into_iter().max().unwrap_or(1);
        self.hosts.map_or(longest, |hosts| hosts as usize)
    }
}

/// What a plan fills in of a group's way to the bottleneck.
#[derive(Clone, Debug)]
pub struct AccessFilling {
    /// Rate of the access links, where the file gives none.
    pub rate: Dealt<Rate>,
    /// Number of hosts, where the file gives none.
    pub hosts: u32,
    /// The jitter that applies to the group's hosts.
    pub host_jitter: Option<Span>,
    /// First and last hop of a chain that the data crosses.
    pub hops: Option<(u32, u32)>,
}

/// A group of flows with the keys that all groups have. The macro `groups!` implements it.
pub trait Group {
    /// What every group has.
    fn access(&self) -> Access<'_>;

    /// Sets the number of flows.
    fn set_flows(&mut self, flows: u32);

    /// Sets the random delays of its hosts.
    fn set_host_jitter(&mut self, host_jitter: Option<Span>);

    /// Takes over hosts of another group, if its flows sit on such.
    fn take_hosts(&mut self, taken: TakenHosts);

    /// Sets the number of the hosts of another group that its flows sit on, if they do.
    fn count_taken_hosts(&mut self, number: u32);

    /// The first and the last hop that the file gives.
    fn hops_mut(&mut self) -> [&mut Option<ChainHop>; 2];

    /// Sets the number of activations.
    fn set_activations(&mut self, count: u32);

    /// Names the group whose hosts it has taken over.
    fn sit_on(&mut self, group: &str);

    /// Gives it hosts of its own.
    fn own_hosts(&mut self, count: u32);

    /// Fills in the keys that all groups have.
    fn fill_in_access(&mut self, filling: &AccessFilling);
}
