//! Checks that the engine neither creates nor loses packets.
//!
//! At the end of every run, for each flow and direction: sent + copied = delivered + dropped + in flight;
//! and for each link: arrived = departed + dropped + waiting + in transmission. A packet lost on a
//! wire has departed from its link, and counts as dropped for its flow: over all flows, dropped is
//! the number of packets that queues dropped and wires lost.

use redtail_core::Time;
use redtail_network::{Links, SimPacket};
use redtail_qdisc::{DropReason, QueueDiscipline, Sink};

use crate::connections::Side;
use crate::flows::{FlowEnds, Flows, Source};

/// Counts the drops of a queue while it is emptied.
struct Emptied<'a>(&'a mut dyn FnMut(&SimPacket));

impl Sink<SimPacket> for Emptied<'_> {
    fn dropped(&mut self, packet: SimPacket, _reason: DropReason, _now: Time) {
        (self.0)(&packet);
    }
    fn marked(&mut self, _packet: &SimPacket, _now: Time) {}
}

/// More consecutive wakeups than any queue needs for its next packet.
const MAX_USELESS_WAKEUPS: u32 = 100_000;

/// Checks the counters. It empties the queues, so their metrics must have been read before.
///
/// # Panics
/// When the counters do not balance: a bug of the engine or of a queue discipline.
pub fn check(
    links: &mut Links,
    flows: &Flows,
    dropped: &[[u64; 2]],
    copied: &[[u64; 2]],
    now: Time,
) {
    links.check_conservation();
    let network = &mut links.network;
    // Packets in flight, by flow and direction (0 data, 1 acknowledgements); those of users'
    // connections by their place and the side that sent them.
    let mut in_flight = vec![[0u64; 2]; flows.count()];
    let mut of_users = vec![[0u64; 2]; flows.connections.place_count()];
    let mut count = |packet: &SimPacket| match flows.ends(packet.flow) {
        FlowEnds::Udp(_) => in_flight[packet.flow as usize][0] += 1,
        FlowEnds::Call(i) => {
            let is_back = packet.route == flows.calls[i as usize].routes[1];
            in_flight[packet.flow as usize][usize::from(is_back)] += 1;
        }
        FlowEnds::Own(i) => {
            let is_back = packet.route == flows.own[i as usize].ends[1].route;
            in_flight[packet.flow as usize][usize::from(is_back)] += 1;
        }
        FlowEnds::Tcp(i) => {
            let is_ack = packet.route == flows.receivers[i as usize].route;
            in_flight[packet.flow as usize][usize::from(is_ack)] += 1;
        }
        FlowEnds::Connection => {
            let routes = flows.connections.routes(packet.endpoint);
            let side = usize::from(packet.route == routes[Side::Server as usize]);
            of_users[packet.endpoint as usize][side] += 1;
        }
    };
    network.in_flight().for_each(&mut count);
    for link in &mut network.links {
        link.leaving().for_each(&mut count);
        // A shaping queue releases its packets at its own times, the last possibly long after the
        // end.
        let (mut now, mut useless) = (now, 0);
        while link.queue.backlog().packets > 0 {
            if let Some(packet) = link.queue.dequeue(now, &mut Emptied(&mut count)) {
                count(&packet);
                useless = 0;
                continue;
            }
            if link.queue.backlog().packets == 0 {
                break; // the queue dropped the rest
            }
            let wakeup = link.queue.next_wakeup().time();
            let wakeup = wakeup.filter(|at| *at < Time::MAX);
            useless += 1;
            let Some(at) = wakeup.filter(|_| useless < MAX_USELESS_WAKEUPS) else {
                panic!("the queue at {} cannot be emptied", link.name);
            };
            now = now.max(at);
            link.queue.on_wakeup(now);
        }
    }

    let at_queues: u64 = network
        .links
        .iter()
        .map(|link| link.counters.passed.dropped)
        .sum();
    let wires = network.links.iter().filter_map(|link| link.wire.as_ref());
    let on_wires: u64 = wires.map(|wire| wire.passed.lost).sum();
    assert_eq!(
        dropped.iter().flatten().sum::<u64>() + flows.connections.dropped,
        at_queues + on_wires,
        "of the packets that flows miss, {at_queues} were dropped and {on_wires} lost on wires"
    );

    let mut of_own = 0;
    for flow in 0..flows.count() {
        let directions: [(u64, u64); 2] = match flows.source(flow as u32) {
            Source::Tcp(i) => {
                let sender = &flows.senders[i as usize];
                let (data, acks_in) = (sender.sent, sender.delivered.into());
                let receiver = &flows.receivers[i as usize];
                let (acks, data_in) = (receiver.sent.into(), receiver.delivered.into());
                [(data, data_in), (acks, acks_in)]
            }
            Source::Udp(i) => {
                let passed = flows.udp[i as usize].passed;
                [(passed.sent, passed.delivered), (0, 0)]
            }
            Source::Call(i) => {
                let [caller, callee] = flows.calls[i as usize].passed;
                [
                    (caller.sent, callee.delivered),
                    (callee.sent, caller.delivered),
                ]
            }
            Source::Own(i) => {
                let [sender, receiver] = [0, 1].map(|side| flows.own[i as usize].ends[side].passed);
                of_own += in_flight[flow].iter().sum::<u64>();
                [
                    (sender.sent, receiver.delivered),
                    (receiver.sent, sender.delivered),
                ]
            }
            // A connection is removed only when it has nothing in flight.
            Source::User(_) => continue,
        };
        for (direction, (sent, delivered)) in directions.into_iter().enumerate() {
            let sent = sent + copied.get(flow).map_or(0, |copied| copied[direction]);
            let gone = delivered + dropped[flow][direction] + in_flight[flow][direction];
            // TCP endpoints count modulo 2^32.
            assert_eq!(
                sent as u32, gone as u32,
                "packets of flow {flow}, direction {direction}, do not add up"
            );
        }
    }
    assert_eq!(
        flows.payloads.held() as u64,
        of_own,
        "payloads are kept for the packets in flight, and for no others"
    );
    for (place, connection) in flows.connections.iter() {
        for side in [Side::Client, Side::Server] {
            let passed = connection.passed(side);
            assert_eq!(
                passed.sent + connection.copied(side),
                connection.passed(side.peer()).delivered
                    + connection.dropped(side)
                    + of_users[place][side as usize],
                "packets of connection {:?}, from the {side:?}, do not add up",
                connection.at
            );
        }
    }
}
