//! Tables of connections. They are not part of a scenario, which names them by a hash.

use std::collections::BTreeMap;
use std::sync::Arc;

use redtail_core::{Span, Time};

/// A connection of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TracedConnection {
    /// When it opens.
    pub start: Time,
    /// Its round-trip time without queueing or transmission, if the table says.
    pub rtt: Option<Span>,
    /// Whether its responses go against the group's direction.
    pub reverse: bool,
    /// Its first exchange; the others follow up to the first of the next connection.
    pub first: u32,
}

/// An exchange of a connection of a table; its request and its response are not both empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TracedExchange {
    /// Payload of the request; zero if the answering side sends without a request.
    pub request: u64,
    /// Payload of the response; zero if there is none.
    pub response: u64,
    /// Time that the answering side waits.
    pub service: Span,
    /// Time that the asking side waits.
    pub think: Span,
}

/// A table of connections, in the order of their starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceTable {
    pub(crate) name: String,
    pub(crate) connections: Box<[TracedConnection]>,
    pub(crate) exchanges: Box<[TracedExchange]>,
}

impl TraceTable {
    /// A table. Scenarios name it by `name`, a hash of its content.
    ///
    /// # Panics
    /// If the table is empty, if connections are not in the order of their starts, if a connection has
    /// no exchange, or if an exchange has neither request nor response. The readers of tables check this.
    pub fn new(
        name: &str,
        connections: Vec<TracedConnection>,
        exchanges: Vec<TracedExchange>,
    ) -> Self {
        assert!(!connections.is_empty(), "a table has a connection");
        assert!(
            connections.is_sorted_by_key(|it| it.start),
            "connections stand in the order of their starts"
        );
        let firsts = connections.iter().map(|it| it.first as usize);
        assert!(
            connections[0].first == 0 && firsts.chain([exchanges.len()]).is_sorted_by(|a, b| a < b),
            "each connection has an exchange"
        );
        assert!(
            exchanges.iter().all(|it| it.request + it.response > 0),
            "an exchange has a request or a response"
        );
        Self {
            name: name.to_owned(),
            connections: connections.into(),
            exchanges: exchanges.into(),
        }
    }

    /// The name that scenarios have for the table.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The connections of the table.
    pub fn connections(&self) -> &[TracedConnection] {
        &self.connections
    }

    /// The exchanges of all connections, in their order.
    pub fn exchanges(&self) -> &[TracedExchange] {
        &self.exchanges
    }

    /// The range of the exchanges of connection `index`.
    pub(crate) fn exchanges_of(&self, index: usize) -> std::ops::Range<usize> {
        let next = self.connections.get(index + 1);
        let end = next.map_or(self.exchanges.len(), |it| it.first as usize);
        self.connections[index].first as usize..end
    }
}

/// The tables of a run, by the names that scenarios have for them.
#[derive(Clone, Debug, Default)]
pub struct Traces(BTreeMap<String, Arc<TraceTable>>);

impl Traces {
    /// No tables.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a table.
    #[must_use]
    pub fn with(mut self, table: Arc<TraceTable>) -> Self {
        self.0.insert(table.name.clone(), table);
        self
    }

    /// The table of this name.
    pub fn get(&self, name: &str) -> Option<&Arc<TraceTable>> {
        self.0.get(name)
    }
}
