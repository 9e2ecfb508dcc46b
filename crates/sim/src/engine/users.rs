//! The users' programs and their connections in the engine.
//!
//! The programs are those of `crates/traffic`, which know a `Network` and nothing else: they open connections,
//! ask, and receive answers. The users of a group share what their kind of traffic says (`make_users`).
//! `Answers` (`crates/network`) keeps what users waited as histograms.

use redtail_core::{Ecn, FlowId, Span, Time};
use redtail_qdisc::FlowTable;
use redtail_spec::EventKind;
use redtail_traffic::{Answer, Application, ConnectionId, Done, Exchange, Network, Server, User};
use redtail_transport::{Due, Taken};

use super::Engine;
use super::log::Log;
use crate::connections::{Connection, Opening, Side};
use crate::flows::Flows;
use redtail_network::Address;
use redtail_network::Class;
use redtail_network::{ContentId, SimPacket};

/// The network as one user's program sees it.
struct Port<'a> {
    flows: &'a mut Flows,
    log: &'a mut Option<Box<Log>>,
    table: &'a FlowTable,
    user: u32,
    now: Time,
    /// The connections on which the program has acted.
    touched: &'a mut Vec<u32>,
}

impl Port<'_> {
    fn place(&self, connection: ConnectionId) -> u32 {
        let slot = &self.flows.users[self.user as usize];
        slot.open[connection.0 as usize].expect("the user has it open")
    }

    /// Tells the log, if there is one, what the user sees.
    #[inline]
    fn tell(&mut self, kind: EventKind, reason: Option<&'static str>, took: Span) {
        if let Some(log) = self.log {
            let slot = &self.flows.users[self.user as usize];
            log.on_user(kind, reason, (slot.group, slot.flow), took, self.now);
        }
    }

    /// The program acts on the connection at a place. It acts mostly on one several times in a row.
    fn touch(&mut self, place: u32) {
        if self.touched.last() != Some(&place) {
            self.touched.push(place);
        }
    }
}

impl Network for Port<'_> {
    fn now(&self) -> Time {
        self.now
    }

    fn connect(&mut self, server: Server) -> ConnectionId {
        let slot = &mut self.flows.users[self.user as usize];
        let rest = &slot.open[slot.may_be_free..];
        let nth = match rest.iter().position(Option::is_none) {
            Some(nth) => slot.may_be_free + nth,
            None => {
                slot.open.push(None);
                slot.open.len() - 1
            }
        };
        slot.may_be_free = nth + 1;
        let host = match server {
            Server::Own => slot.host,
            Server::Host(host) => host,
        };
        let flow = match nth == 0 && host == slot.host {
            true => {
                self.table.renew(slot.flow);
                slot.flow
            }
            false => {
                let flow = self.flows.numbers.take();
                let first_host = self.table.get(FlowId(slot.flow)).sender - slot.host;
                self.table.open(flow, slot.flow, first_host + host);
                flow
            }
        };
        let place = self.flows.connections.open(
            Opening {
                user: self.user,
                nth: nth as u32,
                flow,
                group: slot.group,
                host,
            },
            self.now,
        );
        slot.open[nth] = Some(place);
        if let Some(answers) = &mut self.flows.answers[slot.group as usize] {
            answers.on_open(self.now);
        }
        self.touch(place);
        ConnectionId(nth as u32)
    }

    fn request(&mut self, connection: ConnectionId, exchange: Exchange) {
        let place = self.place(connection);
        self.flows.connections.get(place).ask(exchange, self.now);
        self.touch(place);
    }

    fn close(&mut self, connection: ConnectionId) {
        let place = self.place(connection);
        self.flows.connections.get(place).close();
        self.touch(place);
    }

    fn page(&mut self, took: Span) {
        let group = self.flows.users[self.user as usize].group;
        if let Some(answers) = &mut self.flows.answers[group as usize] {
            answers.on_page(took, self.now);
        }
        self.tell(EventKind::Page, None, took);
    }

    fn stalled(&mut self, took: Span) {
        self.tell(EventKind::Stall, Some("video"), took);
    }
}

/// A segment from a client whose path to the server takes no time.
#[derive(Clone, Copy, Debug)]
pub(super) struct AtOnce {
    to: Address,
    /// Bytes on the wire.
    size: u32,
    content: ContentId,
}

/// The next completed exchange on the connection at a place, if that still exists.
fn connection_done(flows: &mut Flows, place: u32) -> Option<Done> {
    flows.connections.find(place)?.take_done()
}

impl Engine<'_> {
    /// The timer of a user's program has expired.
    pub(super) fn on_user(&mut self, user: u32) {
        if self.ends.flows.users[user as usize].alarm.rings(self.now) {
            self.with_user(user, |program, port| {
                if program.next_wakeup().is_some_and(|at| at <= port.now) {
                    program.on_wakeup(port);
                }
            });
            self.deliver_at_once();
        }
    }

    /// Runs a user's program, and then the connections on which it acted.
    fn with_user(&mut self, user: u32, act: impl FnOnce(&mut User, &mut Port<'_>)) {
        let mut program = self.take_user(user);
        act(
            &mut program,
            &mut Port {
                flows: &mut self.ends.flows,
                log: &mut self.ends.log,
                table: &self.links.network.flows,
                user,
                now: self.now,
                touched: &mut self.touched,
            },
        );
        self.put_user(user, program);
    }

    /// Takes a user's program out, to run it.
    #[inline(never)] // one copy of it, as of the next
    fn take_user(&mut self, user: u32) -> Box<User> {
        if self.ends.flows.connections.any_lingers() {
            // What it opens may get the place and the number of a connection whose last packet has been lost.
            self.advance_links();
        }
        while let Some(place) = self.ends.flows.connections.next_possibly_gone() {
            self.maybe_gone(place);
        }
        let slot = &mut self.ends.flows.users[user as usize];
        slot.program.take().expect("one at a time is at work")
    }

    /// Puts a user's program back, and runs the connections on which it has acted.
    #[inline(never)]
    fn put_user(&mut self, user: u32, program: Box<User>) {
        let next = program.next_wakeup();
        let slot = &mut self.ends.flows.users[user as usize];
        slot.program = Some(program);
        slot.alarm
            .arm(next, Class::Source, slot.flow, &mut self.links.scheduler);
        for touched in 0..self.touched.len() {
            self.connection_acts(self.touched[touched]);
        }
        self.touched.clear();
    }

    /// A segment arrives at the server side of a connection.
    #[inline(never)] // keeps the registers of the loop free for other traffic
    pub(super) fn reaches_server(&mut self, place: u32, content: ContentId, ecn: Ecn) {
        let segment = self.ends.contents.segment_on_arrival(content, ecn);
        let connection = self.ends.flows.connections.get(place);
        connection.receive(Side::Server, segment, self.now);
        connection.serve(self.now);
        self.side_acts(place, Side::Server);
    }

    /// A segment arrives at the client side of a connection.
    #[inline(never)]
    pub(super) fn reaches_client(&mut self, place: u32, content: ContentId, ecn: Ecn) {
        let segment = self.ends.contents.segment_on_arrival(content, ecn);
        let connection = self.ends.flows.connections.get(place);
        let taken = connection.take_data(segment, self.now);
        if taken == Taken::Not {
            connection.receive(Side::Client, segment, self.now);
        } else if !connection.has_done() && !connection.at_once {
            return self.client_answers(place, taken);
        }
        if !connection.has_done() || self.on_answers(place) {
            self.side_acts(place, Side::Client);
        }
        self.deliver_at_once();
    }

    /// The client side of a connection has taken data that completes no response. What it does then is as in
    /// [`side_acts`](Self::side_acts): it sends at most an acknowledgement, and no timer but that of a delayed one has
    /// changed.
    #[inline]
    fn client_answers(&mut self, place: u32, taken: Taken) {
        let connection = self.ends.flows.connections.get(place);
        if taken == Taken::Answered {
            let segment = connection.take_acknowledgement();
            let size = connection.headers.size(&segment);
            let to = connection.address(place, Side::Client);
            let contents = &mut self.ends.contents;
            contents.send_segment(segment, size, to, self.now, &mut self.links);
        } else if connection.acknowledges_before_alarm() {
            self.settle(place, Some(Side::Client));
        }
    }

    /// Responses on a connection are complete. Returns whether the connection is still there.
    #[inline(never)] // most segments complete none
    fn on_answers(&mut self, place: u32) -> bool {
        let at = self.ends.flows.connections.get(place).at;
        while let Some(done) = connection_done(&mut self.ends.flows, place) {
            if let Some(answers) = &mut self.ends.flows.answers[at.group as usize] {
                answers.on_answer(&done, at.host, self.now);
            }
            if let Some(log) = &mut self.ends.log {
                let number = self.ends.flows.connections.get(place).number;
                let flow = self.ends.flows.users[at.user as usize].flow;
                log.on_answer((at.group, flow), number, &done, self.now);
            }
            let answer = Answer {
                connection: ConnectionId(at.nth),
                tag: done.exchange.tag,
                size: done.exchange.response,
                asked: done.asked,
            };
            self.with_user(at.user, |program, port| program.on_answer(answer, port));
        }
        let connection = self.ends.flows.connections.find(place);
        connection.map(Connection::maybe_close).is_some()
    }

    /// A timer of a connection has expired, or a response is ready.
    pub(super) fn on_connection_timer(&mut self, place: u32) {
        let now = self.now;
        if let Some(connection) = self.ends.flows.connections.find(place)
            && connection.alarm.rings(now)
        {
            connection.on_wakeup(now);
            self.connection_acts(place);
            self.deliver_at_once();
        }
    }

    /// A connection does all that is due now, and is removed if it is over.
    fn connection_acts(&mut self, place: u32) {
        let Some(connection) = self.ends.flows.connections.find(place) else {
            return;
        };
        connection.serve(self.now);
        connection.maybe_close();
        // Mostly only one side has something to send.
        let server_sends = connection.due(Side::Server) != Due::Nothing;
        let client_sends = connection.due(Side::Client) != Due::Nothing;
        if server_sends {
            self.transmit(place, Side::Server);
        }
        if client_sends {
            self.transmit(place, Side::Client);
        }
        self.settle(place, None);
    }

    /// Sends all segments that one side of a connection may send now. Returns whether
    /// [`settle`](Self::settle) is to follow.
    #[inline(never)] // one copy of it
    fn transmit(&mut self, place: u32, side: Side) -> bool {
        let connection = self.ends.flows.connections.get(place);
        let (now, headers) = (self.now, connection.headers);
        let at_once = connection.at_once && side == Side::Client;
        loop {
            let due = connection.due(side);
            if due == Due::Nothing {
                break;
            }
            let written = self.ends.contents.put_written(headers, |segment| {
                connection.write_next(side, due, now, segment)
            });
            let Some((content, size, ecn)) = written else {
                break;
            };
            let to = connection.address(place, side);
            if at_once {
                self.at_once.push(AtOnce { to, size, content });
            } else {
                let (contents, number) = (&self.ends.contents, &connection.number);
                let place = move |packet: &SimPacket| contents.place(*number, packet.content);
                self.links.emit((content, ecn), size, to, now, place);
            }
            connection.write_ahead(now);
        }
        connection.is_to_settle(side)
    }

    /// Delivers the segments whose path to the server takes no time.
    #[inline]
    fn deliver_at_once(&mut self) {
        if !self.at_once.is_empty() {
            self.deliver_sent();
        }
    }

    /// Delivers the segments whose path to the server takes no time, of which there are some. This is what their
    /// arrivals would do as the next events, and is left to these if another event is due now.
    #[inline(never)]
    fn deliver_sent(&mut self) {
        for sent in 0..self.at_once.len() {
            let AtOnce { to, size, content } = self.at_once[sent];
            let ecn = self.ends.contents.get(content).ecn();
            let next = self.links.scheduler.first();
            if next.is_some_and(|next| next.at() <= self.now) {
                let ends = &mut self.ends;
                let place = |packet: &SimPacket| {
                    let number = ends.flows.connections.get(packet.endpoint).number;
                    ends.contents.place(number, packet.content)
                };
                self.links.emit((content, ecn), size, to, self.now, place);
            } else {
                self.ends.contents.free(content);
                self.reaches_server(to.endpoint, content, ecn);
            }
        }
        self.at_once.clear();
    }

    /// One side of a connection has acted: it sends what it may send now, and its next timer is scheduled.
    #[inline]
    fn side_acts(&mut self, place: u32, side: Side) {
        if self.transmit(place, side) {
            self.settle(place, Some(side));
        }
    }

    /// Schedules the next timer of a connection, or removes the connection if it is over. If only one side
    /// has acted, its timers alone may be earlier than the alarm.
    #[inline(never)]
    fn settle(&mut self, place: u32, only: Option<Side>) {
        let connection = self.ends.flows.connections.get(place);
        let next = match only {
            Some(side) => connection.next_of(side, self.now),
            None => connection.next_wakeup(self.now),
        };
        connection
            .alarm
            .arm(next, Class::Connection, place, &mut self.links.scheduler);
        if connection.is_over() {
            self.maybe_gone(place);
        }
    }

    /// Removes a connection if it is over.
    #[inline]
    fn maybe_gone(&mut self, place: u32) {
        if self.ends.flows.connections.note_lingering(place) {
            // Its last packets may have been lost.
            self.advance_links();
        }
        if let Some(gone) = self.ends.flows.connections.take_if_gone(place, self.now) {
            self.ends.flows.numbers.give_back(gone.flow);
            let slot = &mut self.ends.flows.users[gone.user as usize];
            slot.open[gone.nth as usize] = None;
            slot.may_be_free = slot.may_be_free.min(gone.nth as usize);
            if let Some(answers) = &mut self.ends.flows.answers[gone.group as usize] {
                answers.on_gone(self.now);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;
    use std::sync::atomic::AtomicBool;

    use redtail_network::result::RunResult;
    use redtail_spec::{Plan, PlanOptions, Scenario};
    use redtail_traffic::Traces;

    use super::*;
    use crate::Plugins;

    /// Hosts send at once: random delays would end the ties that tests make.
    fn scenario(text: &str) -> Scenario {
        let text = format!("host_jitter = \"0 s\"{text}");
        let plan = Plan::from_text(&text, PlanOptions::default()).expect("it is sound");
        plan.scenario(0, 0).expect("there is one")
    }

    fn engine(scenario: &Scenario) -> Engine<'_> {
        Engine::new(Cow::Borrowed(scenario), &Plugins::new(), &Traces::new())
    }

    #[test]
    fn a_run_looks_often_whether_it_is_cancelled() {
        let text = r#"
name = "cancelled"
duration = "100 s"
[bottleneck]
rate = "10 Mbit/s"
delay = "1 ms"
queue = { kind = "tail-drop", limit = "100 packets" }
[[traffic]]
name = "ftp"
kind = "bulk"
"#;
        let scenario = scenario(text);
        let mut engine = engine(&scenario);
        engine
            .run(engine.end, &AtomicBool::new(true), None)
            .unwrap_err();
        assert!(engine.events <= 1024, "{} events", engine.events);
    }

    #[test]
    fn many_short_connections_leave_nothing_behind() {
        // Ten users with a connection after the other, a tenth of them hit by a loss. A
        // connection is gone when its last packet is; the few places are used again.
        let text = r#"
name = "short connections"
duration = "300 s"
[bottleneck]
rate = "100 Mbit/s"
delay = "1 ms"
queue = { kind = "tail-drop", limit = "100 packets" }
wire.loss = 0.02
[[traffic]]
name = "t"
kind = "transactions"
users = 10
response = "1000 B"
tcp = { preset = "linux", initial_rto = "20 ms", min_rto = "20 ms" }
"#;
        let scenario = scenario(text);
        let mut engine = engine(&scenario);
        let ran = engine.run(engine.end, &AtomicBool::new(false), None);
        ran.expect("nobody cancels");
        let opened = engine
            .ends
            .flows
            .connections
            .iter()
            .map(|(_, it)| it.number);
        assert!(opened.max() > Some(100_000), "too few for the test");
        let places = engine.ends.flows.connections.place_count();
        assert!(places < 100, "{places} places");
        for user in &engine.ends.flows.users {
            assert!(user.open.len() < 20, "{} at once", user.open.len());
        }
        engine.finish();
    }

    #[test]
    fn segments_without_an_event_change_no_result() {
        // Rates and delays are such that packets often reach different hosts at the same picosecond. Flow
        // numbers, by which the queue tells flows apart, then depend on the order of these arrivals.
        let text = r#"
name = "ties"
duration = "60 s"
warmup = "5 s"
[bottleneck]
rate = "20 Mbit/s"
delay = "20 ms"
queue = { kind = "fq-codel" }
[[traffic]]
name = "web"
kind = "web"
model = "http1"
users = 20
access_rate = "100 Mbit/s"
access_delay = ["2 ms", "10 ms"]
"#;
        let scenario = scenario(text);
        let [at_once, deferred] = [false, true].map(|defer| {
            let mut engine = engine(&scenario);
            if defer {
                engine.ends.flows.connections.defer_all();
            }
            let ran = engine.run(engine.end, &AtomicBool::new(false), None);
            ran.expect("nobody cancels");
            engine.finish()
        });
        assert!(
            at_once.events < deferred.events,
            "{} and {} events",
            at_once.events,
            deferred.events
        );
        let events = at_once.events;
        // As texts: some values are not numbers, which are not equal to themselves.
        let results = [at_once, RunResult { events, ..deferred }].map(|it| format!("{it:?}"));
        assert!(results[0] == results[1], "results differ");
    }

    #[test]
    fn flow_numbers_are_as_many_as_flows_are_open() {
        // Beside a thousand users who do nothing, connections arrive 100 a second and last two
        // seconds, at one of three hosts each.
        let text = r#"
name = "dense"
duration = "20 s"
[bottleneck]
rate = "100 Mbit/s"
delay = "1 ms"
queue = { kind = "tail-drop", limit = "100 packets" }
[[traffic]]
name = "idle"
kind = "transactions"
users = 1000
response = "1000 B"
start = "1 h"
[[traffic]]
name = "arrivals"
kind = "arrivals"
gap = "10 ms"
size = "1 kB"
service = "2 s"
hosts = 3
"#;
        let scenario = scenario(text);
        let mut engine = engine(&scenario);
        let ran = engine.run(engine.end, &AtomicBool::new(false), None);
        ran.expect("nobody cancels");
        let open = engine.ends.flows.connections.iter().count();
        assert!((195..210).contains(&open), "{open} open");
        let most = engine.ends.flows.numbers.take();
        assert!(most < 1001 + 210 + 1, "{most}");
        // A queue knows the group of each, and the host that serves it.
        let table = &engine.links.network.flows;
        for (_, connection) in engine.ends.flows.connections.iter() {
            let facts = table.get(FlowId(connection.at.flow));
            assert_eq!(facts.group, 1);
            assert_eq!(facts.sender, 2 + connection.at.host);
        }
        engine.finish();
    }
}
