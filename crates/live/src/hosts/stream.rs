//! TCP flows with data from one side, and byte streams on sockets.

use std::io;
use std::net::SocketAddrV4;
use std::os::fd::OwnedFd;

use redtail_core::Time;
use redtail_traffic::{ServerStream, TrafficParams};
use redtail_transport::TcpParams;
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, Shutdown, SocketFlags, SocketType, acceptfrom_with, bind,
    connect, ipproto, listen, recv, send, shutdown, socket_with, sockopt,
};

use super::{Hosts, Owner};
use crate::addresses::{self, Side};
use crate::kernel::{self, congestion_control};
use crate::packet::Socket;
use crate::sys::tcp_info::{TcpInfo, set_not_sent_low_water, tcp_info};

/// Bytes that one call writes at most. Their content does not matter.
static ZEROS: [u8; 65_536] = [0; 65_536];

/// Unsent bytes that a socket takes (`TCP_NOTSENT_LOWAT`): enough that the window limits sending and
/// not the application, few enough that what a server writes next can still go first.
const NOT_SENT: u32 = 16_384;

/// Connections that may wait to be accepted.
const BACKLOG: i32 = 65_535;

/// The sending half of a TCP socket with what is still to be written, and its receiving half.
#[derive(Debug)]
pub(super) struct Stream {
    pub socket: OwnedFd,
    /// Bytes that the application has written and the kernel has not taken.
    unwritten: u64,
    /// Whether the application has closed it.
    closing: bool,
    /// Whether the kernel knows that.
    shut: bool,
    /// Bytes read.
    pub read: u64,
    /// Whether the peer has closed.
    pub ended: bool,
    /// Whether the connection is established.
    pub established: bool,
    /// Whether the kernel has given it up.
    pub failed: bool,
}

impl Stream {
    pub fn new(socket: OwnedFd, established: bool) -> Self {
        Self {
            socket,
            unwritten: 0,
            closing: false,
            shut: false,
            read: 0,
            ended: false,
            established,
            failed: false,
        }
    }

    /// Whether both sides have closed, or the connection is given up.
    pub fn is_over(&self) -> bool {
        self.failed || (self.shut && self.ended)
    }

    /// Reads all that has arrived; `scratch` is room that the kernel may write to. Returns whether
    /// there was anything, the end included.
    pub fn receive(&mut self, scratch: &mut [u8]) -> bool {
        let before = (self.read, self.ended);
        while !self.ended && !self.failed {
            // TRUNC: the kernel discards the bytes in place of copying them (tcp(7)).
            match recv(&self.socket, &mut *scratch, RecvFlags::TRUNC) {
                Ok((_, 0)) => self.ended = true,
                Ok((_, count)) => self.read += count as u64,
                Err(Errno::AGAIN) => break,
                Err(Errno::INTR) => {}
                Err(_) => self.failed = true,
            }
        }
        before != (self.read, self.ended)
    }

    /// Gives the kernel as much of what is to be written as it takes.
    pub fn flush(&mut self) {
        if !self.established || self.failed {
            return;
        }
        while self.unwritten > 0 {
            let count = (self.unwritten as usize).min(ZEROS.len());
            match send(&self.socket, &ZEROS[..count], SendFlags::NOSIGNAL) {
                Ok(count) => self.unwritten -= count as u64,
                Err(Errno::AGAIN) => return,
                Err(Errno::INTR) => {}
                Err(_) => {
                    self.failed = true;
                    return;
                }
            }
        }
        if self.closing && !self.shut {
            self.shut = true;
            self.failed |= shutdown(&self.socket, Shutdown::Write).is_err();
        }
    }
}

impl ServerStream for Stream {
    fn write(&mut self, bytes: u64) {
        self.unwritten += bytes;
    }
    fn unsent(&self) -> u64 {
        self.unwritten
    }
    fn close(&mut self) {
        self.closing = true;
    }
}

/// A TCP flow with data from one side, which is open from its start.
#[derive(Debug)]
pub struct TcpFlow {
    /// The group of the flow.
    pub group: usize,
    /// The number of the flow within the group.
    pub index: usize,
    /// What it transfers; `None` if there is always more.
    pub size: Option<u64>,
    /// When it starts.
    pub start: Time,
    /// When it stops; [`Time::MAX`] is never.
    pub stop: Time,
    sender: Option<Stream>,
    receiver: Option<Stream>,
    /// Bytes delivered to the receiver's application.
    pub delivered: u64,
    /// Of these, before the measurement began.
    pub delivered_before: u64,
    /// When the SYN-ACK arrived.
    pub established: Option<Time>,
    /// When the first byte was delivered to the application.
    pub first_byte: Option<Time>,
    /// When the sender knew that the receiver had all.
    pub completed: Option<Time>,
    /// The state of its connection when the measurement began.
    pub info_before: TcpInfo,
    /// The state of its connection when it ended.
    last_info: TcpInfo,
    /// SYNs that were sent again. The kernel has them among its retransmissions.
    repeated_syns: u32,
}

impl TcpFlow {
    pub(super) fn new(group: usize, index: usize, size: Option<u64>, times: [Time; 2]) -> Self {
        let [start, stop] = times;
        Self {
            group,
            index,
            size,
            start,
            stop,
            sender: None,
            receiver: None,
            delivered: 0,
            delivered_before: 0,
            established: None,
            first_byte: None,
            completed: None,
            info_before: TcpInfo::default(),
            last_info: TcpInfo::default(),
            repeated_syns: 0,
        }
    }

    /// The latest known state of its connection. A SYN that was sent again is no retransmission here.
    pub fn latest_info(&self) -> TcpInfo {
        let open = self
            .sender_socket()
            .and_then(|socket| tcp_info(socket).ok());
        let info = open.unwrap_or(self.last_info);
        let repeated_syns = match self.established {
            Some(_) => self.repeated_syns,
            None => info.retransmissions,
        };
        TcpInfo {
            retransmissions: info.retransmissions - repeated_syns,
            ..info
        }
    }

    /// The sender's socket while it is open.
    pub fn sender_socket(&self) -> Option<&OwnedFd> {
        self.sender.as_ref().map(|sender| &sender.socket)
    }
}

/// A socket of the thread's namespace that never blocks.
pub(super) fn open_socket(kind: SocketType, class: u8) -> io::Result<OwnedFd> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let protocol = match kind {
        SocketType::STREAM => ipproto::TCP,
        _ => ipproto::UDP,
    };
    let socket = socket_with(AddressFamily::INET, kind, flags, Some(protocol))?;
    if class != 0 {
        sockopt::set_ip_tos(&socket, class)?;
    }
    Ok(socket)
}

/// Makes sure that a connection of a group, whose socket sends data, is controlled as the file says by
/// `kernel_control`. `repeated` says whether a SYN may have been sent again.
pub(super) fn require_control(
    group: &TrafficParams,
    socket: &OwnedFd,
    repeated: bool,
) -> io::Result<()> {
    let wanted = group
        .tcp()
        .and_then(|tcp| tcp.params.kernel_control.as_deref());
    wanted.map_or(Ok(()), |wanted| {
        kernel::require_control(wanted, &sockopt::tcp_congestion(socket)?, repeated)
    })
}

/// The error of a kernel that does not take a congestion control, with what it has.
fn lacks(control: &str, error: Errno) -> io::Error {
    let has = match kernel::available() {
        Ok(names) => names.into_iter().collect::<Vec<_>>().join(", "),
        Err(error) => format!("what it does not tell ({error})"),
    };
    io::Error::other(format!(
        "the congestion control {control}: {error}; the kernel has {has}"
    ))
}

/// The octet of DSCP and ECN for packets of a group; TCP sets the ECN bits itself.
pub(super) fn traffic_class(dscp: redtail_core::Dscp) -> u8 {
    dscp.get() << 2
}

pub(super) fn socket_address((address, port): Socket) -> SocketAddrV4 {
    SocketAddrV4::new(address, port)
}

/// Opens a connection from a bound socket.
pub(super) fn connect_to(socket: &OwnedFd, to: Socket) -> io::Result<()> {
    match connect(socket, &socket_address(to)) {
        Ok(()) | Err(Errno::INPROGRESS) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

impl Hosts<'_> {
    /// Sets what a group's TCP sockets have in common.
    pub(super) fn open_tcp(&self, group: usize) -> io::Result<OwnedFd> {
        let spec = &self.scenario.traffic[group];
        let params: &TcpParams = &spec.tcp().expect("the group has TCP").params;
        let socket = open_socket(SocketType::STREAM, traffic_class(spec.access().dscp))?;
        let control = congestion_control(params).expect("it was checked that the kernel has it");
        sockopt::set_tcp_congestion(&socket, control).map_err(|error| lacks(control, error))?;
        sockopt::set_tcp_nodelay(&socket, true)?;
        set_not_sent_low_water(&socket, NOT_SENT)?;
        Ok(socket)
    }

    /// Opens the socket at which the servers or receivers of a group listen.
    pub(super) fn listen(&mut self, group: usize) -> io::Result<OwnedFd> {
        let spec = &self.scenario.traffic[group];
        let side = match spec.has_users() {
            true => Side::Sending,
            false => Side::Receiving,
        };
        self.kernel.enter(group, side)?;
        let socket = self.open_tcp(group)?;
        let port = addresses::server_port(spec.access().port);
        bind(&socket, &SocketAddrV4::new([0; 4].into(), port))?;
        listen(&socket, BACKLOG)?;
        self.kernel.watch(&socket, Owner::Listener, group as u32)?;
        Ok(socket)
    }

    /// A TCP flow starts.
    pub(super) fn start_tcp(&mut self, number: u32) -> io::Result<()> {
        let (group, index) = {
            let flow = &self.tcp[number as usize];
            (flow.group, flow.index)
        };
        let access = self.scenario.traffic[group].access();
        let hosts = access.host_count();
        self.kernel.enter(group, Side::Sending)?;
        let socket = self.open_tcp(group)?;
        let to = addresses::receiver(group, index, hosts, access.port);
        bind(
            &socket,
            &socket_address(addresses::sender(group, index, hosts)),
        )?;
        connect_to(&socket, to)?;
        self.kernel.watch(&socket, Owner::Sender, number)?;
        let mut stream = Stream::new(socket, false);
        match self.tcp[number as usize].size {
            // More than any run sends.
            None => stream.write(u64::MAX / 2),
            Some(size) => {
                stream.write(size);
                stream.close();
            }
        }
        self.tcp[number as usize].sender = Some(stream);
        Ok(())
    }

    /// A TCP flow stops: it sends nothing that the kernel has not taken.
    pub(super) fn stop_tcp(&mut self, number: u32) -> io::Result<()> {
        if let Some(sender) = &mut self.tcp[number as usize].sender {
            sender.unwritten = 0;
            sender.close();
            sender.flush();
        }
        Ok(())
    }

    /// Something has happened at the sender of a TCP flow.
    pub(super) fn on_sender(&mut self, number: u32) -> io::Result<()> {
        let now = self.clock.now();
        let flow = &mut self.tcp[number as usize];
        let Some(sender) = &mut flow.sender else {
            return Ok(());
        };
        if !sender.established {
            match sockopt::socket_error(&sender.socket)? {
                Ok(()) => {
                    sender.established = true;
                    flow.established = Some(now);
                    // Nothing but SYNs was sent yet.
                    flow.repeated_syns =
                        tcp_info(&sender.socket).map_or(0, |info| info.retransmissions);
                    let group = &self.scenario.traffic[flow.group];
                    require_control(group, &sender.socket, flow.repeated_syns > 0)?;
                }
                Err(_) => sender.failed = true,
            }
        }
        sender.flush();
        sender.receive(&mut self.scratch);
        if sender.is_over() && !sender.failed {
            flow.completed.get_or_insert(now);
        }
        if sender.is_over() {
            flow.last_info = tcp_info(&sender.socket).unwrap_or_default();
            flow.sender = None;
        }
        Ok(())
    }

    /// Data has arrived at the receiver of a TCP flow.
    pub(super) fn on_receiver(&mut self, number: u32) -> io::Result<()> {
        let now = self.clock.now();
        let flow = &mut self.tcp[number as usize];
        let Some(receiver) = &mut flow.receiver else {
            return Ok(());
        };
        receiver.receive(&mut self.scratch);
        flow.delivered = receiver.read;
        if flow.delivered > 0 {
            flow.first_byte.get_or_insert(now);
        }
        if receiver.ended || receiver.failed {
            flow.receiver = None; // closes it
        }
        Ok(())
    }

    /// Connections have arrived at the listener of a group.
    pub(super) fn accept(&mut self, group: usize) -> io::Result<()> {
        loop {
            let listener = self.listeners[group].as_ref().expect("it has a listener");
            let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
            let (socket, peer) = match acceptfrom_with(listener, flags) {
                Ok((socket, Some(peer))) => (socket, SocketAddrV4::try_from(peer)?),
                Ok((_, None)) | Err(Errno::INTR | Errno::CONNABORTED) => continue,
                Err(Errno::AGAIN) => return Ok(()),
                Err(error) => return Err(error.into()),
            };
            let peer = (*peer.ip(), peer.port());
            if self.scenario.traffic[group].has_users() {
                self.accept_client(socket, peer)?;
                continue;
            }
            let hosts = self.scenario.traffic[group].access().host_count();
            let of_group = |flow: &TcpFlow| flow.group == group;
            let first = self.tcp.partition_point(|flow| flow.group < group);
            let Some(index) = addresses::flow_of(peer, hosts) else {
                continue;
            };
            let number = first + index;
            if self.tcp.get(number).is_some_and(of_group) {
                self.kernel.watch(&socket, Owner::Receiver, number as u32)?;
                self.tcp[number].receiver = Some(Stream::new(socket, true));
            }
        }
    }
}
