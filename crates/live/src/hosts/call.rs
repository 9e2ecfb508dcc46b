//! Video calls over UDP sockets: the two ends of each.
//!
//! What a packet carries stays in this process. The packet itself has its number alone, because both ends are here.

use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;

use redtail_core::{Stream as Random, Time};
use redtail_traffic::call::Outgoing;
use redtail_traffic::{CallEnd, CallPacket};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, SocketType, bind, connect, recv, send, sockopt};

use super::stream::{open_socket, socket_address, traffic_class};
use super::udp::{HEADER, NUMBER};
use super::{Hosts, Owner, Timer};
use crate::addresses::{self, Side};

/// A video call.
#[derive(Debug)]
pub struct CallFlow {
    /// The group of the call.
    pub group: usize,
    /// The number of the call within the group.
    pub index: usize,
    /// The caller, whose side sends in the group's direction, and the callee.
    pub ends: [CallEnd; 2],
    sockets: [OwnedFd; 2],
    /// What each end has sent.
    sent: [Sent; 2],
    /// When it starts.
    pub start: Time,
    /// When it stops; [`Time::MAX`] is never.
    pub stop: Time,
    /// The earliest timer that is set.
    armed: Option<Time>,
}

/// The packets of one end of which it is not known whether they arrive.
#[derive(Debug, Default)]
struct Sent {
    /// Number of the first.
    first: u64,
    packets: VecDeque<Outgoing>,
}

impl Sent {
    /// The number of the next packet, modulo 2^32.
    fn next(&self) -> u32 {
        (self.first + self.packets.len() as u64) as u32
    }

    /// The packet of this number arrives: it, and before it those that are lost, because queues keep the order of
    /// a flow. `None` for a second copy.
    fn arrives(&mut self, number: u32) -> Option<(Vec<CallPacket>, Outgoing)> {
        let ahead = number.wrapping_sub(self.first as u32) as usize;
        if ahead >= self.packets.len() {
            return None;
        }
        let lost = self.packets.drain(..ahead).map(|sent| sent.packet);
        let lost = lost.collect();
        self.first += ahead as u64 + 1;
        Some((lost, self.packets.pop_front()?))
    }
}

impl Hosts<'_> {
    /// Adds call `i` of a group.
    pub(super) fn add_call(
        &mut self,
        group: usize,
        i: usize,
        random: &Random,
        start: Time,
        stop: Time,
    ) -> io::Result<()> {
        let spec = &self.scenario.traffic[group];
        let access = spec.access();
        let hosts = access.host_count();
        let caller = socket_address(addresses::sender(group, i, hosts));
        let callee = socket_address((
            addresses::host(group, Side::Receiving, i % hosts),
            addresses::server_port(access.port),
        ));
        let number = self.calls.len() as u32;
        let mut open = |side, own, peer, owner| {
            self.kernel.enter(group, side)?;
            let socket = open_socket(SocketType::DGRAM, traffic_class(access.dscp))?;
            // Calls of one host have one port for all callees; the kernel tells them apart by their peers.
            sockopt::set_socket_reuseaddr(&socket, true)?;
            bind(&socket, own)?;
            connect(&socket, peer)?;
            self.kernel.watch(&socket, owner, number)?;
            io::Result::Ok(socket)
        };
        let sockets = [
            open(Side::Sending, &caller, &callee, Owner::Caller)?,
            open(Side::Receiving, &callee, &caller, Owner::Callee)?,
        ];
        let ends = spec.make_call(start, stop, random);
        self.calls.push(CallFlow {
            group,
            index: i,
            ends: ends.expect("a group of calls has calls"),
            sockets,
            sent: [Sent::default(), Sent::default()],
            start,
            stop,
            armed: None,
        });
        self.arm_call(number);
        Ok(())
    }

    /// Sets a timer for what an end of a call does next, unless an earlier one is set.
    fn arm_call(&mut self, number: u32) {
        let call = &mut self.calls[number as usize];
        let next = call.ends.iter().filter_map(CallEnd::next_wakeup).min();
        if let Some(at) = next
            && call.armed.is_none_or(|armed| at < armed)
        {
            call.armed = Some(at);
            self.timers.add(at, Timer::Call(number));
        }
    }

    /// A timer of a call expires.
    pub(super) fn wake_call(&mut self, number: u32) -> io::Result<()> {
        let now = self.clock.now();
        self.calls[number as usize].armed = None;
        for side in [0, 1] {
            let end = &mut self.calls[number as usize].ends[side];
            if end.next_wakeup().is_some_and(|at| at <= now) {
                end.on_wakeup(now);
                self.call_transmits(number, side)?;
            }
        }
        self.arm_call(number);
        Ok(())
    }

    /// Sends all packets that an end of a call has to send.
    fn call_transmits(&mut self, number: u32, side: usize) -> io::Result<()> {
        let call = &mut self.calls[number as usize];
        while let Some(outgoing) = call.ends[side].poll_transmit() {
            let payload = outgoing.size.saturating_sub(HEADER).max(NUMBER) as usize;
            let packet = &mut self.scratch[..payload];
            packet[..NUMBER as usize].copy_from_slice(&call.sent[side].next().to_be_bytes());
            match send(&call.sockets[side], packet, SendFlags::NOSIGNAL) {
                Ok(_) => call.sent[side].packets.push_back(outgoing),
                // Its buffer is full: the packet never reaches the network.
                Err(Errno::AGAIN | Errno::NOBUFS) => {
                    if outgoing.packet.sent >= self.measure_from {
                        call.ends[1 - side].miss(&outgoing.packet);
                    }
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Packets have arrived at an end of a call.
    pub(super) fn on_call(&mut self, number: u32, side: usize) -> io::Result<()> {
        loop {
            let call = &mut self.calls[number as usize];
            let size = match recv(
                &call.sockets[side],
                &mut self.scratch[..],
                RecvFlags::empty(),
            ) {
                Ok((_, size)) => size,
                Err(Errno::INTR) => continue,
                Err(Errno::AGAIN) => break,
                Err(error) => return Err(error.into()),
            };
            let now = self.clock.now();
            let Some(arrived) = self.scratch[..size].first_chunk::<{ NUMBER as usize }>() else {
                continue;
            };
            let arrived = u32::from_be_bytes(*arrived);
            let Some((lost, Outgoing { packet, size })) = call.sent[1 - side].arrives(arrived)
            else {
                continue;
            };
            let counts = packet.sent >= self.measure_from;
            let end = &mut call.ends[side];
            for each in lost.iter().filter(|each| each.sent >= self.measure_from) {
                end.miss(each);
            }
            end.receive(&packet, size, false, counts, now);
            if counts && packet.is_media() {
                let delays = match side {
                    0 => &mut self.back_delays,
                    _ => &mut self.delays,
                };
                delays[call.group].record(now - packet.sent);
            }
            self.call_transmits(number, side)?;
        }
        self.arm_call(number);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use redtail_core::Span;
    use redtail_traffic::call::packet::{CallPayload, Report};

    use super::*;

    fn sent_at(ms: u64) -> Outgoing {
        Outgoing {
            packet: CallPacket {
                sent: Time::ZERO + Span::from_ms(ms),
                payload: CallPayload::Report(Report::default()),
            },
            size: 84,
        }
    }

    #[test]
    fn what_comes_after_a_packet_says_that_it_is_lost() {
        // Numbers are sent modulo 2^32.
        let first = u64::from(u32::MAX) - 1;
        let mut sent = Sent {
            first,
            packets: (0..4).map(sent_at).collect(),
        };
        assert_eq!(sent.next(), 2);
        let (lost, packet) = sent.arrives(0).expect("it is the third");
        assert_eq!(lost, [sent_at(0).packet, sent_at(1).packet]);
        assert_eq!(packet, sent_at(2));
        assert!(sent.arrives(0).is_none(), "a second copy");
        assert!(sent.arrives(5).is_none(), "a number that was not sent");
        let (lost, packet) = sent.arrives(1).expect("it is the last");
        assert!(lost.is_empty() && packet == sent_at(3) && sent.packets.is_empty());
    }
}
