//! Video calls over UDP sockets: the two ends of each.

use std::io;
use std::os::fd::OwnedFd;

use redtail_core::{Stream as Random, Time};
use redtail_traffic::call::Outgoing;
use redtail_traffic::{CallEnd, CallPacket};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SocketType, bind, connect, recv, sockopt};

use super::datagrams::Datagrams;
use super::stream::{open_socket, socket_address, traffic_class};
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
    sent: [Datagrams<Outgoing>; 2],
    /// When it starts.
    pub start: Time,
    /// When it stops; [`Time::MAX`] is never.
    pub stop: Time,
    /// The earliest timer that is set.
    armed: Option<Time>,
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
        let callee = socket_address(addresses::receiver(group, i, hosts, access.port));
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
            sent: <[_; 2]>::default(),
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
            let (sent, socket) = (&mut call.sent[side], &call.sockets[side]);
            let lost = sent.send(socket, outgoing.size, &mut self.scratch, outgoing)?;
            if let Some(Outgoing { packet, .. }) = lost
                && packet.sent >= self.measure_from
            {
                call.ends[1 - side].miss(&packet);
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
            let CallFlow { ends, sent, .. } = call;
            let end = &mut ends[side];
            let counts = |packet: &CallPacket| packet.sent >= self.measure_from;
            let lost = |lost: Outgoing| {
                if counts(&lost.packet) {
                    end.miss(&lost.packet);
                }
            };
            let arrived = sent[1 - side].arrives(&self.scratch[..size], lost);
            let Some((_, Outgoing { packet, size })) = arrived else {
                continue;
            };
            let counts = counts(&packet);
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
