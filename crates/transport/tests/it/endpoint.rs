//! Two endpoints that both send, over a path that delays, loses and marks.

use std::collections::VecDeque;

use redtail_core::{Ecn, Span, Stream, Time};
use redtail_transport::{Endpoint, Flags, Preset, Segment, TcpParams};

/// What was sent: when, by the client or the server, and the segment.
type Sent = (Time, bool, Segment);

/// What becomes of a segment on its way.
enum Fate {
    Arrives,
    Marked,
    Lost,
}

/// An application that answers a request of `request` bytes with `response` bytes and closes;
/// the client closes when it has seen the end.
struct Exchange {
    client: Endpoint,
    server: Endpoint,
    request: u64,
    response: u64,
    now: Time,
    /// Arrival, by the client or the server, segment.
    wire: VecDeque<(Time, bool, Segment)>,
    sent: Vec<Sent>,
}

const DELAY: Span = Span::from_ms(50);

impl Exchange {
    fn new(params: TcpParams, request: u64, response: u64) -> Self {
        let mut client = Endpoint::client(&params);
        client.open(&params);
        client.write(request);
        Self {
            client,
            server: Endpoint::server(&params),
            request,
            response,
            now: Time::ZERO,
            wire: VecDeque::new(),
            sent: Vec::new(),
        }
    }

    fn transmit(&mut self, fate: &mut impl FnMut(&Sent) -> Fate) {
        for from_client in [true, false] {
            let side = if from_client {
                &mut self.client
            } else {
                &mut self.server
            };
            while let Some(segment) = side.poll_transmit(self.now) {
                let sent = (self.now, from_client, segment);
                self.sent.push(sent);
                let mut arriving = segment;
                match fate(&sent) {
                    Fate::Lost => continue,
                    Fate::Marked if segment.ecn != Ecn::NotEct => arriving.ecn = Ecn::Ce,
                    Fate::Marked | Fate::Arrives => {}
                }
                self.wire
                    .push_back((self.now + DELAY, from_client, arriving));
            }
        }
    }

    fn serve(&mut self) {
        if self.response > 0 && self.server.delivered() == self.request {
            self.server.write(std::mem::take(&mut self.response));
            self.server.close();
        }
    }

    /// Runs until both have closed; whether they did within `limit`.
    fn run(&mut self, limit: Span, mut fate: impl FnMut(&Sent) -> Fate) -> bool {
        let expected = self.response;
        let mut client_closed = false;
        self.transmit(&mut fate);
        while !(self.client.is_finished() && self.server.is_finished()) {
            let timers = [self.client.next_wakeup(), self.server.next_wakeup()];
            let timer = timers.into_iter().flatten().min();
            let arrival = self.wire.front().map(|front| front.0);
            let next = arrival.into_iter().chain(timer).min();
            self.now = next.expect("both wait for nothing").max(self.now);
            if self.now > Time::ZERO + limit {
                return false;
            }
            if arrival.is_some_and(|at| at <= self.now) {
                let (_, from_client, segment) = self.wire.pop_front().expect("seen above");
                if from_client {
                    self.server.on_segment(&segment, self.now);
                } else {
                    self.client.on_segment(&segment, self.now);
                }
            } else {
                for side in [&mut self.client, &mut self.server] {
                    if side.next_wakeup().is_some_and(|at| at <= self.now) {
                        side.on_wakeup(self.now);
                    }
                }
            }
            self.serve();
            if !client_closed && self.client.delivered() == expected {
                client_closed = true;
                self.client.close();
            }
            self.transmit(&mut fate);
        }
        assert_eq!(self.client.received(), expected);
        assert_eq!(self.server.received(), self.request);
        true
    }
}

fn preset(preset: Preset) -> TcpParams {
    let params = preset.params();
    params.check().expect("a preset is sound");
    params
}

/// In short: who, flags, seq, len, ack.
fn short(sent: &[Sent]) -> Vec<String> {
    let flags = |segment: &Segment| {
        let all = [(Flags::SYN, 'S'), (Flags::ACK, 'A'), (Flags::FIN, 'F')];
        let set = all.iter().filter(|(flag, _)| segment.flags.contains(*flag));
        set.map(|&(_, letter)| letter).collect::<String>()
    };
    let line = |(at, from_client, segment): &Sent| {
        let who = if *from_client { "client" } else { "server" };
        let ms = at.as_ps() / 1_000_000_000;
        let (seq, len, ack) = (segment.seq, segment.len, segment.ack);
        format!("{ms} {who} {} {seq}+{len} ack {ack}", flags(segment))
    };
    sent.iter().map(line).collect()
}

#[test]
fn an_exchange_takes_the_segments_of_rfc_9293_and_no_more() {
    // Delayed acknowledgements: the request's goes with the response, the client's of the
    // server's FIN with its own.
    let params = TcpParams {
        delayed_ack: true,
        quick_acks: 0,
        initial_window: 2,
        ..preset(Preset::Newreno)
    };
    let mss = params.mss.as_u64();
    let mut exchange = Exchange::new(params, 300, 2 * mss);
    assert!(exchange.run(Span::from_s(5), |_| Fate::Arrives));
    let end = 2 * mss;
    let expected = [
        "0 client S 0+0 ack 0".to_owned(),
        "50 server SA 0+0 ack 0".to_owned(),
        "100 client A 0+300 ack 0".to_owned(),
        format!("150 server A 0+{mss} ack 300"),
        format!("150 server AF {mss}+{mss} ack 300"),
        // The second segment and the FIN are acknowledged at once, with the client's FIN.
        format!("200 client AF 300+0 ack {}", end + 1),
        format!("250 server A {}+0 ack 301", end + 1),
    ];
    let got = short(&exchange.sent);
    assert_eq!(got, expected, "{got:#?}");
}

#[test]
fn without_a_handshake_both_sides_begin_and_end_without_control_segments() {
    let params = TcpParams {
        handshake: false,
        delayed_ack: false,
        ..preset(Preset::Newreno)
    };
    let mut exchange = Exchange::new(params, 300, 1000);
    assert!(exchange.run(Span::from_s(5), |_| Fate::Arrives));
    let control = Flags::SYN.with(Flags::FIN);
    let has_control = |sent: &&Sent| sent.2.flags.with(control) == sent.2.flags;
    assert_eq!(exchange.sent.iter().filter(has_control).count(), 0);
    assert_eq!(exchange.now, Time::ZERO + DELAY * 3);
}

#[test]
fn after_a_lost_syn_ack_the_server_too_begins_with_one_segment() {
    // RFC 5681, section 3.1, of SYN and SYN-ACK alike; RFC 6298, rule 5.7.
    let params = TcpParams {
        initial_window: 10,
        ..preset(Preset::Newreno)
    };
    let mss = params.mss.as_u64();
    let mut exchange = Exchange::new(params, 300, 4 * mss);
    let mut lost = false;
    let done = exchange.run(Span::from_s(20), |(_, from_client, segment)| {
        if !from_client && segment.flags.contains(Flags::SYN) && !lost {
            lost = true;
            return Fate::Lost;
        }
        Fate::Arrives
    });
    assert!(done && lost);
    let data = exchange
        .sent
        .iter()
        .filter(|(_, client, s)| !client && s.len > 0);
    let times: Vec<Time> = data.map(|sent| sent.0).collect();
    assert_eq!(times.iter().filter(|at| **at == times[0]).count(), 1);
}

#[test]
fn segments_with_data_are_no_duplicate_acknowledgements() {
    // RFC 5681, section 2. The client has one segment in flight, lost, while the server's
    // stream brings a hundred segments with the same acknowledgement: no fast retransmit.
    let params = TcpParams {
        delayed_ack: false,
        initial_window: 100,
        ..preset(Preset::Newreno)
    };
    let mss = params.mss.as_u64();
    let mut client = Endpoint::client(&params);
    let mut server = Endpoint::server(&params);
    client.open(&params);
    client.write(1000);
    let mut now = Time::ZERO;
    let syn = client.poll_transmit(now).expect("a SYN");
    server.on_segment(&syn, now);
    now += DELAY;
    let syn_ack = server.poll_transmit(now).expect("a SYN-ACK");
    client.on_segment(&syn_ack, now);
    let request = client.poll_transmit(now).expect("the request");
    assert_eq!(request.len, 1000);
    // The server writes of its own accord, having heard the handshake alone.
    let bare = Segment { len: 0, ..request };
    server.on_segment(&bare, now);
    server.write(50 * mss);
    let mut segments = 0;
    while let Some(segment) = server.poll_transmit(now) {
        segments += 1;
        client.on_segment(&segment, now);
        while let Some(answer) = client.poll_transmit(now) {
            assert_eq!(answer.len, 0, "a retransmission after {segments} segments");
        }
    }
    assert!(segments > 10, "{segments}");
    let counters = client.counters();
    assert_eq!((counters.duplicate_acks, counters.recoveries), (0, 0));
}

#[test]
fn every_preset_gets_its_exchange_through_losses_and_marks_in_both_directions() {
    for &preset_ in Preset::ALL {
        for seed in 0..20 {
            let params = preset(preset_);
            let mut stream = Stream::named(seed, 0, "endpoint");
            // Requests longer than a window, so that both directions have losses to repair.
            let mut exchange = Exchange::new(params, 40_000, 200_000);
            let done = exchange.run(Span::from_s(3600), |_| match stream.uniform() {
                draw if draw < 0.05 => Fate::Lost,
                draw if draw < 0.15 => Fate::Marked,
                _ => Fate::Arrives,
            });
            assert!(
                done,
                "{preset_:?}, seed {seed}: not finished within an hour"
            );
        }
    }
}

#[test]
fn marks_on_the_answer_reduce_the_servers_window() {
    for preset_ in [Preset::Dctcp, Preset::Prague, Preset::Sack] {
        let params = TcpParams {
            ecn: true,
            initial_window: 20,
            ..preset(preset_)
        };
        let mut exchange = Exchange::new(params, 300, 400_000);
        let mut count = 0;
        let done = exchange.run(Span::from_s(600), |(_, from_client, segment)| {
            count += u32::from(!from_client && segment.len > 0);
            if !from_client && segment.len > 0 && count % 50 == 0 {
                return Fate::Marked;
            }
            Fate::Arrives
        });
        assert!(done, "{preset_:?}");
        let counters = exchange.server.counters();
        assert!(counters.ecn_reductions > 0, "{preset_:?}: {counters:?}");
        assert_eq!(counters.retransmissions, 0, "{preset_:?}");
    }
}

/// Both sides with the handshake behind them and the client's request of 1000 bytes, which
/// has not arrived.
fn opened(params: &TcpParams) -> (Endpoint, Endpoint, Segment, Segment) {
    let mut client = Endpoint::client(params);
    let mut server = Endpoint::server(params);
    client.open(params);
    client.write(1000);
    let now = Time::ZERO;
    let syn = client.poll_transmit(now).expect("a SYN");
    server.on_segment(&syn, now + DELAY);
    let syn_ack = server.poll_transmit(now + DELAY).expect("a SYN-ACK");
    client.on_segment(&syn_ack, now + DELAY * 2);
    let request = client.poll_transmit(now + DELAY * 2).expect("the request");
    (client, server, syn, request)
}

#[test]
fn a_syn_that_arrives_after_the_handshake_is_acknowledged_and_changes_nothing() {
    // RFC 9293, section 3.10.7.4, step 4: in a synchronized state a SYN is answered with an
    // ACK. It is one that was sent again for no need, and that later data overtook.
    let params = preset(Preset::Newreno);
    let (_, mut server, syn, request) = opened(&params);
    let now = Time::ZERO + DELAY * 3;
    server.on_segment(&request, now);
    let before = server.sender().snapshot();
    assert_eq!(before.srtt, Some(DELAY * 2));
    while server.poll_transmit(now).is_some() {}
    server.on_segment(&syn, now);
    let answer = server.poll_transmit(now).expect("an acknowledgement");
    assert_eq!((answer.flags, answer.ack), (Flags::ACK, 1000));
    // What comes next is no answer to anything sent just now.
    let next = Segment {
        seq: 1000,
        ..request
    };
    server.on_segment(&next, now + Span::from_ms(1));
    assert_eq!(server.sender().snapshot(), before);
}

#[test]
fn a_fin_is_no_duplicate_acknowledgement() {
    // RFC 5681, section 2, condition (c).
    let params = preset(Preset::Newreno);
    let (mut client, mut server, _, request) = opened(&params);
    let now = Time::ZERO + DELAY * 3;
    // The handshake's acknowledgement without the data, which is lost.
    let bare = Segment { len: 0, ..request };
    server.on_segment(&bare, now);
    server.close();
    let fin = server.poll_transmit(now).expect("a FIN");
    assert!(fin.flags.contains(Flags::FIN) && fin.ack == 0);
    for _ in 0..3 {
        client.on_segment(&fin, now + DELAY);
    }
    assert_eq!(client.counters().duplicate_acks, 0);
    assert_eq!(client.counters().recoveries, 0);
}
