//! UDP flows: sources that pace themselves, and their sinks.

use std::io;
use std::net::SocketAddrV4;
use std::os::fd::OwnedFd;

use redtail_core::{Span, Stream as Random, Time};
use redtail_traffic::{Playout, TrafficParams, UdpSource};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SocketType, bind, connect, recvfrom};

use super::datagrams::{Datagrams, HEADER};
use super::stream::{open_socket, socket_address, traffic_class};
use super::{Hosts, Owner, Timer};
use crate::addresses::{self, Side};

/// Room for the largest packet.
const LARGEST: usize = 65_536;

/// A UDP flow.
#[derive(Debug)]
pub struct UdpFlow {
    /// The group of the flow.
    pub group: usize,
    /// The number of the flow within the group.
    pub index: usize,
    source: UdpSource,
    random: Random,
    socket: OwnedFd,
    /// When it starts.
    pub start: Time,
    /// When it stops; [`Time::MAX`] is never.
    pub stop: Time,
    /// When each packet was sent.
    sent: Datagrams<Time>,
    /// Bytes received that were sent in the measurement period.
    pub received_bytes: u64,
    /// Packets received that were sent in the measurement period.
    pub received: u64,
    /// Packets lost that were sent in the measurement period.
    pub lost: u64,
    /// The receiving end of a call.
    pub call: Option<Box<Playout>>,
}

impl Hosts<'_> {
    /// Opens the socket at which the receivers of a UDP group receive.
    pub(super) fn open_udp_sink(&mut self, group: usize) -> io::Result<OwnedFd> {
        self.kernel.enter(group, Side::Receiving)?;
        let socket = open_socket(SocketType::DGRAM, 0)?;
        let port = addresses::server_port(self.scenario.traffic[group].access().port);
        bind(&socket, &SocketAddrV4::new([0; 4].into(), port))?;
        self.kernel.watch(&socket, Owner::UdpSink, group as u32)?;
        Ok(socket)
    }

    /// Adds flow `i` of a UDP group.
    pub(super) fn add_udp(
        &mut self,
        group: usize,
        i: usize,
        random: Random,
        start: Time,
        stop: Time,
    ) -> io::Result<()> {
        let spec = &self.scenario.traffic[group];
        let access = spec.access();
        let hosts = access.host_count();
        self.kernel.enter(group, Side::Sending)?;
        let socket = open_socket(SocketType::DGRAM, traffic_class(access.dscp))?;
        bind(&socket, &socket_address(addresses::sender(group, i, hosts)))?;
        let to = addresses::receiver(group, i, hosts, access.port);
        connect(&socket, &socket_address(to))?;
        let call = match spec {
            TrafficParams::Voip(group) => Some(Box::new(Playout::new(group))),
            _ => None,
        };
        if start < stop {
            self.timers.add(start, Timer::Send(self.udp.len() as u32));
        }
        self.udp.push(UdpFlow {
            group,
            index: i,
            source: UdpSource::of(spec).expect("a UDP group has sources"),
            random,
            socket,
            start,
            stop,
            sent: Datagrams::default(),
            received_bytes: 0,
            received: 0,
            lost: 0,
            call,
        });
        Ok(())
    }

    /// A UDP flow sends the packet that was due at `at`.
    pub(super) fn send_udp(&mut self, number: u32, at: Time) -> io::Result<()> {
        let now = self.clock.now();
        let flow = &mut self.udp[number as usize];
        let (size, gap) = flow.source.send(&mut flow.random);
        let sent = &mut flow.sent;
        if let Some(now) = sent.send(&flow.socket, size, &mut self.scratch, now)? {
            flow.lost += u64::from(now >= self.measure_from);
        }
        let again = at + gap;
        if again < flow.stop && gap > Span::ZERO {
            self.timers.add(again, Timer::Send(number));
        }
        Ok(())
    }

    /// Packets have arrived at the sink of a group.
    pub(super) fn on_udp(&mut self, group: usize) -> io::Result<()> {
        let hosts = self.scenario.traffic[group].access().host_count();
        let first = self.udp.partition_point(|flow| flow.group < group);
        loop {
            let sink = self.udp_sinks[group].as_ref().expect("it has a sink");
            let room = &mut self.scratch[..LARGEST];
            let (size, from) = match recvfrom(sink, room, RecvFlags::empty()) {
                Ok((_, size, Some(from))) => (size, SocketAddrV4::try_from(from)?),
                Ok((_, _, None)) | Err(Errno::INTR) => continue,
                Err(Errno::AGAIN) => return Ok(()),
                Err(error) => return Err(error.into()),
            };
            let now = self.clock.now();
            let index = addresses::flow_of((*from.ip(), from.port()), hosts);
            let Some(flow) = index.and_then(|index| self.udp.get_mut(first + index)) else {
                continue;
            };
            let counts = |sent: Time| sent >= self.measure_from;
            let lost = |sent| flow.lost += u64::from(counts(sent));
            let Some((number, sent)) = flow.sent.arrives(&self.scratch[..size], lost) else {
                continue;
            };
            let counts = counts(sent);
            if let Some(call) = &mut flow.call {
                call.receive(number, sent, now, counts);
            }
            if counts {
                flow.received += 1;
                flow.received_bytes += size as u64 + u64::from(HEADER);
                self.delays[group].record(now - sent);
            }
        }
    }
}
