//! What an event advances before it is carried out: the duty that [lookahead](redtail_network::lookahead) brings with it.
//!
//! | event | it reads or changes | advanced before it |
//! |---|---|---|
//! | a sample, the begin of the measurement or of a phase, the end of the run | everything | all links and endpoints, to before its time |
//! | a timer of a TCP endpoint, the start or stop of a TCP flow | the endpoint | the endpoints at the end of its line, to its time |
//! | within an event: a user acts, or a connection is over | which connections are gone | all links, to this event, if a connection is over and has packets in the network |
//! | a wire releases packets | a link that never lags behind | nothing |
//! | the others | nothing that lags behind | nothing |
//!
//! The loop of events calls [`Engine::advance_to`] before each event that is neither of a link nor of a line; these advance
//! only the process that they belong to. What is advanced within an event is known only there ([`Engine::advance_links`]).
//! Without it links that users' packets cross could not lag behind, which costs 12 % of the instructions of a Web user's
//! packet.

use redtail_core::{Span, Time};
use redtail_network::{Class, Event, INSTANT, Links, SimPacket, Target};

use super::Engine;
use crate::flows::{Flows, Source};

impl Engine<'_> {
    /// Lets links and endpoints lag behind the schedule, where that is allowed.
    pub(super) fn use_lookahead(&mut self) {
        let hosts = self.scenario.traffic.iter().zip(&self.hosts);
        let hosts = hosts.flat_map(|(group, hosts)| {
            let timer = group.tcp().and_then(|tcp| tcp.params.shortest_timer());
            let timer = timer.unwrap_or(Span::ZERO);
            hosts.iter().map(move |&host| (host, timer))
        });
        self.links.use_lookahead(hosts, self.end);
        self.endpoints_lag = !self.links.network.paths.lagging_lines().is_empty();
    }

    /// Advances to `event` what it reads or changes.
    pub(super) fn advance_to(&mut self, event: Event) {
        if matches!(event.class(), Class::Measure | Class::Sample) {
            self.links.advance_to(event, &mut self.ends);
            for line in self.links.network.paths.lagging_lines() {
                self.advance_endpoints(line, event.at());
            }
        } else if self.endpoints_lag
            && let Some(line) = self.line_of(event)
        {
            self.advance_endpoints(line, event.at() + INSTANT);
        }
    }

    /// Advances all links to the present event, so that what they have lost is known. [`advance_to`](Self::advance_to) does
    /// the rest.
    pub(super) fn advance_links(&mut self) {
        self.links.advance_to(self.event, &mut self.ends);
    }

    /// The line whose endpoints have to be advanced to `event`, if they may lag behind.
    fn line_of(&self, event: Event) -> Option<u32> {
        let Flows {
            senders, receivers, ..
        } = &self.ends.flows;
        let to_receiver = |i: u32| senders[i as usize].route;
        let to_sender = |i: u32| match senders[i as usize].acknowledged_at_once {
            // Its receiver acknowledges at once.
            true => to_receiver(i),
            false => receivers[i as usize].route,
        };
        let route = match event.class() {
            Class::SenderTimer => to_sender(event.index()),
            Class::ReceiverTimer => to_receiver(event.index()),
            Class::Source => match self.ends.flows.source(event.index()) {
                Source::Tcp(sender) => to_sender(sender),
                Source::Udp(_) | Source::User(_) | Source::Call(_) | Source::Own(_) => return None,
            },
            _ => return None,
        };
        self.links.network.paths.lagging_line(route)
    }

    /// Packets of `line` arrive at endpoints of TCP and UDP flows, each at its own time: those that do so before `limit`.
    #[inline(never)]
    pub(super) fn advance_endpoints(&mut self, line: u32, limit: Time) {
        let now = self.now;
        let target = self.links.network.paths.target(line);
        loop {
            if self.many_flows {
                self.links.network.paths.prefetch(line, 9);
                self.prefetch_after(line);
            }
            let paths = &mut self.links.network.paths;
            let Some(&SimPacket {
                stamp,
                content,
                endpoint,
                size,
                class,
                ..
            }) = paths.take_before(line, limit)
            else {
                break;
            };
            self.ends.contents.free(content);
            self.now = stamp;
            match target {
                Target::Receiver => self.reaches_receiver(endpoint, content, class.ecn()),
                Target::Sender => self.reaches_sender(endpoint, content, class.ecn()),
                Target::UdpSink => self.reaches_udp_sink(endpoint, size, content),
                _ => unreachable!("only endpoints of TCP and UDP flows lag behind"),
            }
        }
        self.now = now;
        let Links { network, scheduler } = &mut self.links;
        network.paths.schedule(line, scheduler);
    }
}
