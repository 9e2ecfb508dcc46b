//! Transactions: a request and its response, one after the other.
//!
//! Source: netperf's TCP_CRR (a connection for each: connect, request, response, close; the next
//! one begins at once) and TCP_RR (all on one connection), which RFC 2884, section 4.4, measures
//! with.

use std::sync::Arc;

use redtail_core::schemars::JsonSchema;
use redtail_core::serde::{Deserialize, Serialize};
use redtail_core::{Bytes, Dscp, ParamError, Rate, Span, Stream, Time, schemars, serde};

use crate::access::Direction;
use crate::application::{Answer, Application, ConnectionId, Exchange, Network, Server};
use crate::bounds::refuse_nothing;
use crate::dealt::Dealt;
use crate::dist::Dist;
use crate::keys::groups;
use crate::kind::{MakeUser, TrafficKind, UserKind};
use crate::start::Start;
use crate::table::Traces;

/// How transactions use connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(crate = "serde", rename_all = "kebab-case")]
#[schemars(crate = "schemars")]
pub enum Connections {
    /// One for each transaction: connect, request, response, close (netperf's TCP_CRR).
    #[default]
    Each,
    /// One for all of a user's transactions (netperf's TCP_RR).
    One,
}

groups! {
    /// Users that ask, wait for the response, and ask again.
    pub struct TransactionParams of users {
        /// Payload of a request.
        /// Source: about 1 kB, the example of RFC 2884, section 4.4.
        #[serde(default = "crate::keys::thousand_bytes")]
        pub request: Dist<Bytes>,
        /// Payload of a response.
        pub response: Dist<Bytes>,
        /// How transactions use connections.
        /// Source: RFC 2884, section 4.4.
        #[serde(default)]
        pub connections: Connections,
        /// Time between the arrival of a request at the server and its response.
        /// Source: no time, as in netperf.
        #[serde(default = "crate::keys::no_time")]
        pub service: Dist<Span>,
        /// Time that a user waits between a response and the next request.
        /// Source: no time, as in netperf.
        #[serde(default = "crate::keys::no_time")]
        pub think: Dist<Span>,
        /// When users begin; dealt out.
        /// Source: the start of the run.
        #[serde(default = "crate::keys::at_once")]
        pub start: Dealt<Start>,
        /// When users send no more requests; dealt out. Left out, they continue to the end of the run.
        /// Source: none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub stop: Option<Dealt<Start>>,
    }
}

impl TrafficKind for TransactionParams {
    fn example() -> &'static str {
        r#"users = 2
response = "5 kB"
stop = "2 s""#
    }

    fn is_person(&self) -> bool {
        true
    }

    fn noun(&self) -> &'static str {
        "user"
    }

    fn starts(&self) -> Option<&Dealt<Start>> {
        Some(&self.start)
    }

    fn stops(&self) -> Option<&Dealt<Start>> {
        self.stop.as_ref()
    }

    fn check(&self) -> Result<(), ParamError> {
        refuse_nothing("request", &self.request)?;
        refuse_nothing("response", &self.response)
    }
}

impl UserKind for TransactionParams {
    type User = TransactionUser;

    fn make_users(&self, _: &Traces) -> MakeUser<TransactionUser> {
        let group = Arc::new(self.clone());
        Box::new(move |_, start, stop, stream| group.user(start, stop, stream))
    }

    fn offered(&self) -> Option<f64> {
        let pause = self.think.mean()? + self.service.mean()?;
        let offered = self.response.mean()? / pause;
        offered.is_finite().then_some(offered)
    }
}

impl TransactionParams {
    /// The user of this group whose draws are those of `stream`.
    fn user(self: &Arc<Self>, start: Time, stop: Time, stream: Stream) -> TransactionUser {
        TransactionUser {
            group: Arc::clone(self),
            connection: None,
            next: Some(start),
            stop,
            stream,
        }
    }
}

/// A user of a group of [`TransactionParams`].
#[derive(Clone, Debug)]
pub struct TransactionUser {
    group: Arc<TransactionParams>,
    connection: Option<ConnectionId>,
    /// When the next transaction begins.
    next: Option<Time>,
    stop: Time,
    stream: Stream,
}

impl TransactionUser {
    /// Whether each transaction has a connection of its own.
    fn each(&self) -> bool {
        self.group.connections == Connections::Each
    }
}

impl Application for TransactionUser {
    fn next_wakeup(&self) -> Option<Time> {
        self.next
    }

    fn on_wakeup(&mut self, network: &mut impl Network) {
        self.next = None;
        if network.now() >= self.stop {
            if let Some(connection) = self.connection.take() {
                network.close(connection);
            }
            return;
        }
        let connection = match self.connection {
            Some(connection) => connection,
            None => network.connect(Server::Own),
        };
        self.connection = (!self.each()).then_some(connection);
        let exchange = Exchange {
            request: self.group.request.draw(&mut self.stream).as_u64().max(1),
            response: self.group.response.draw(&mut self.stream).as_u64().max(1),
            service: self.group.service.draw(&mut self.stream),
            tag: 0,
            last: self.each(),
        };
        network.request(connection, exchange);
    }

    fn on_answer(&mut self, _: Answer, network: &mut impl Network) {
        self.next = Some(network.now() + self.group.think.draw(&mut self.stream));
    }
}
