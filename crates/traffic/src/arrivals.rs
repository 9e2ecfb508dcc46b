//! Arrivals: connections that are opened independently of what happens to earlier ones.
//!
//! This is an open loop, unlike users who wait: each arrival opens a connection, sends a request, and
//! closes after the response. With exponential gaps they are a Poisson process, the usual model of
//! the arrival of sessions (V. Paxson, S. Floyd, "Wide-Area Traffic: The Failure of Poisson Modeling",
//! IEEE/ACM Transactions on Networking 3(3), 1995: it holds for arrivals that people decide on). A
//! flash crowd is a second group with short gaps for some time.
//!
//! The time and the sizes of the n-th arrival do not depend on what the network does with earlier ones
//! (common random numbers).

use std::sync::Arc;

use redtail_core::schemars::JsonSchema;
use redtail_core::serde::{Deserialize, Serialize};
use redtail_core::{Bytes, Dscp, ParamError, Rate, Span, Stream, Time, schemars, serde};

use crate::access::{Direction, Group};
use crate::application::{Answer, Application, Exchange, Network};
use crate::bounds::refuse_nothing;
use crate::bounds::refuse_short_gap;
use crate::dealt::Dealt;
use crate::dist::Dist;
use crate::keys::groups;
use crate::kind::{MakeUser, TrafficKind, UserKind};
use crate::start::Start;
use crate::table::Traces;
use crate::web::draw_host;

groups! {
    /// Connections that arrive independently of each other, with one request and response each: `users` independent sources of them.
    pub struct ArrivalsParams of users {
        /// Time from one arrival to the next of a source; exponential makes them Poisson. At least "1 ns" on average.
        pub gap: Dist<Span>,
        /// Payload of a response.
        pub size: Dist<Bytes>,
        /// Payload of a request.
        /// Source: the default of `transactions`.
        #[serde(default = "crate::keys::thousand_bytes")]
        pub request: Dist<Bytes>,
        /// Time between the arrival of a request at the server and its response.
        /// Source: no time, the default of `transactions`.
        #[serde(default = "crate::keys::no_time")]
        pub service: Dist<Span>,
        /// When sources begin; the first arrival follows one gap later. Dealt out.
        /// Source: the start of the run.
        #[serde(default = "crate::keys::at_once")]
        pub start: Dealt<Start>,
        /// When arrivals end; dealt out. Left out, they continue to the end of the run.
        /// Source: none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub stop: Option<Dealt<Start>>,
    }
}

impl TrafficKind for ArrivalsParams {
    fn example() -> &'static str {
        r#"gap = "exponential mean 50 ms"
size = "20 kB"
stop = "2 s""#
    }

    fn noun(&self) -> &'static str {
        "source of connection"
    }

    fn starts(&self) -> Option<&Dealt<Start>> {
        Some(&self.start)
    }

    fn stops(&self) -> Option<&Dealt<Start>> {
        self.stop.as_ref()
    }

    fn check(&self) -> Result<(), ParamError> {
        let accepted = "a time such as \"50 ms\", or \"exponential mean 50 ms\"";
        refuse_short_gap("gap", &self.gap, accepted)?;
        refuse_nothing("size", &self.size)?;
        refuse_nothing("request", &self.request)
    }
}

impl UserKind for ArrivalsParams {
    type User = ArrivalSource;

    fn make_users(&self, _: &Traces) -> MakeUser<ArrivalSource> {
        let group = Arc::new(self.clone());
        Box::new(move |_, start, stop, stream| group.source(start, stop, stream))
    }

    fn offered(&self) -> Option<f64> {
        let offered = self.size.mean()? / self.gap.mean()?;
        offered.is_finite().then_some(offered)
    }
}

impl ArrivalsParams {
    /// The source of this group whose draws are those of `stream`.
    fn source(self: &Arc<Self>, start: Time, stop: Time, mut stream: Stream) -> ArrivalSource {
        ArrivalSource {
            next: Some(start + self.gap.draw(&mut stream)).filter(|at| *at < stop),
            group: Arc::clone(self),
            hosts: self.access().host_count() as u32,
            stop,
            stream,
        }
    }
}

/// A source of a group of [`ArrivalsParams`].
#[derive(Clone, Debug)]
pub struct ArrivalSource {
    group: Arc<ArrivalsParams>,
    /// Number of hosts; each arrival goes to one of them.
    hosts: u32,
    next: Option<Time>,
    stop: Time,
    stream: Stream,
}

impl Application for ArrivalSource {
    fn next_wakeup(&self) -> Option<Time> {
        self.next
    }

    fn on_wakeup(&mut self, network: &mut impl Network) {
        let Some(at) = self.next.take_if(|at| *at <= network.now()) else {
            return;
        };
        let (group, stream) = (&*self.group, &mut self.stream);
        let connection = network.connect(draw_host(self.hosts, stream));
        let exchange = Exchange {
            request: group.request.draw(stream).as_u64().max(1),
            response: group.size.draw(stream).as_u64().max(1),
            service: group.service.draw(stream),
            tag: 0,
            last: true,
        };
        network.request(connection, exchange);
        let next = at + group.gap.draw(stream);
        self.next = Some(next).filter(|at| *at < self.stop);
    }

    fn on_answer(&mut self, _: Answer, _: &mut impl Network) {}
}

#[cfg(test)]
mod tests {
    use redtail_core::Span;

    use super::*;
    use crate::application::{ConnectionId, Server};

    /// Writes down what is asked for; never answers.
    #[derive(Default)]
    struct Silent {
        now: Time,
        asked: Vec<(Time, Server, Exchange)>,
        server: Option<Server>,
    }

    impl Network for Silent {
        fn now(&self) -> Time {
            self.now
        }
        fn connect(&mut self, server: Server) -> ConnectionId {
            self.server = Some(server);
            ConnectionId(self.asked.len() as u32)
        }
        fn request(&mut self, connection: ConnectionId, exchange: Exchange) {
            assert_eq!(connection.0 as usize, self.asked.len(), "one request each");
            let server = self.server.expect("it has connected");
            self.asked.push((self.now, server, exchange));
        }
        fn close(&mut self, _: ConnectionId) {
            panic!("the server closes");
        }
        fn page(&mut self, _: Span) {
            panic!("there are no pages");
        }
    }

    fn arrivals(group: &str, seed: u64) -> Vec<(Time, Server, Exchange)> {
        let group: Arc<ArrivalsParams> =
            Arc::new(crate::from_json(group).expect("the group can be read"));
        let stop = group
            .stop
            .as_ref()
            .map_or(Time::MAX, |stop| Time::ZERO + stop.get(0).latest());
        let start = Time::ZERO + group.start.get(0).latest();
        let mut source = group.source(start, stop, Stream::named(seed, 0, "arrivals"));
        let mut network = Silent::default();
        while let Some(at) = source.next_wakeup() {
            network.now = at;
            source.on_wakeup(&mut network);
        }
        network.asked
    }

    #[test]
    fn a_constant_gap_is_kept_to_from_start_to_stop_whatever_becomes_of_the_connections() {
        let text =
            r#"{"name": "a", "gap": "250 ms", "size": "5 kB", "start": "1 s", "stop": "2 s"}"#;
        let at: Vec<u64> = arrivals(text, 1)
            .iter()
            .map(|(at, ..)| at.as_ps() / 1_000_000_000)
            .collect();
        assert_eq!(
            at,
            [1250, 1500, 1750],
            "an arrival at the stop comes no more"
        );
        for (_, server, exchange) in arrivals(text, 1) {
            assert_eq!(server, Server::Host(0));
            assert_eq!((exchange.request, exchange.response), (1000, 5000));
            assert!(exchange.last, "one exchange on each connection");
        }
    }

    /// Counts in 1,000 intervals of 10 s at 2 /s: mean 20, and for a Poisson process the variance is
    /// the mean. The total is within 5 standard deviations of its mean (false-alarm rate 6e-7) and the
    /// index of dispersion times 999, chi-squared with as many degrees of freedom, within 5 of
    /// its own (normal approximation: 6e-7).
    #[test]
    fn exponential_gaps_make_a_poisson_process() {
        let text = r#"{
            "name": "a", "gap": "exponential mean 500 ms", "size": "pareto mean 12 kB shape 2.5",
            "stop": "10000 s", "hosts": 4
        }"#;
        let all = arrivals(text, 7);
        let (intervals, mean) = (1000.0, 20.0);
        let mut counts = vec![0.0_f64; intervals as usize];
        for (at, ..) in &all {
            counts[(at.as_secs_f64() / 10.0) as usize] += 1.0;
        }
        let total = counts.iter().sum::<f64>();
        assert!((total - intervals * mean).abs() < 5.0 * (intervals * mean).sqrt());
        let average = total / intervals;
        let squares: f64 = counts.iter().map(|n| (n - average) * (n - average)).sum();
        let freedom: f64 = intervals - 1.0;
        assert!((squares / average - freedom).abs() < 5.0 * (2.0 * freedom).sqrt());

        // Mean sizes: the standard deviation of this law is 12 kB / sqrt(2.5 * 0.5).
        let sizes: f64 = all.iter().map(|(.., it)| it.response as f64).sum();
        let spread = 12e3 / 1.25_f64.sqrt() / total.sqrt();
        assert!((sizes / total - 12e3).abs() < 5.0 * spread);
        // Each of four hosts has a quarter: binomial.
        for host in 0..4 {
            let of_host = all.iter().filter(|it| it.1 == Server::Host(host)).count();
            let apart = of_host as f64 - total / 4.0;
            assert!(apart.abs() < 5.0 * (total * 3.0 / 16.0).sqrt());
        }
    }
}
