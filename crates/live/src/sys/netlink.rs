//! What a queue of the kernel has counted, asked over netlink (rtnetlink(7), linux/pkt_sched.h).

use std::io;
use std::os::fd::OwnedFd;

use rustix::net::netdevice::name_to_index;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socket_with,
};

const RTM_NEWQDISC: u16 = 36;
const RTM_GETQDISC: u16 = 38;
const NLMSG_ERROR: u16 = 2;
const NLM_F_REQUEST: u16 = 1;
/// The kernel answers a request for one queue only with it (`rtnetlink_send`).
const NLM_F_ECHO: u16 = 8;
const TCA_STATS2: u16 = 7;
const TCA_STATS_QUEUE: u16 = 3;
/// Bytes of `struct nlmsghdr`.
const MESSAGE_HEADER: usize = 16;
/// Bytes of `struct tcmsg`.
const QUEUE_HEADER: usize = 20;

/// Counters of a queue (`struct gnet_stats_queue`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueCounters {
    /// Packets waiting.
    pub waiting: u32,
    /// Packets dropped since the queue was made.
    pub drops: u32,
}

/// Asks for the counters of one queue.
#[derive(Debug)]
pub struct QueueWatch {
    socket: OwnedFd,
    request: [u8; MESSAGE_HEADER + QUEUE_HEADER],
}

impl QueueWatch {
    /// Watches the queue with this handle (`10:` is 0x0010_0000) at a device of the calling thread's
    /// network namespace.
    ///
    /// # Errors
    /// When there is no such device.
    pub fn new(device: &str, handle: u32) -> io::Result<Self> {
        let socket = socket_with(
            AddressFamily::NETLINK,
            SocketType::RAW,
            SocketFlags::CLOEXEC,
            None, // NETLINK_ROUTE is number 0
        )?;
        let index = name_to_index(&socket, device)?;
        let mut request = [0; MESSAGE_HEADER + QUEUE_HEADER];
        let length = request.len() as u32;
        request[0..4].copy_from_slice(&length.to_ne_bytes());
        request[4..6].copy_from_slice(&RTM_GETQDISC.to_ne_bytes());
        request[6..8].copy_from_slice(&(NLM_F_REQUEST | NLM_F_ECHO).to_ne_bytes());
        request[20..24].copy_from_slice(&index.to_ne_bytes());
        request[24..28].copy_from_slice(&handle.to_ne_bytes());
        Ok(Self { socket, request })
    }

    /// The counters now.
    ///
    /// # Errors
    /// When the kernel does not answer as it should.
    pub fn read(&self) -> io::Result<QueueCounters> {
        send(&self.socket, &self.request, SendFlags::empty())?;
        let mut answer = [0; 8192];
        let (length, _) = recv(&self.socket, &mut answer[..], RecvFlags::empty())?;
        counters(&answer[..length])
    }
}

/// The counters in an answer.
fn counters(answer: &[u8]) -> io::Result<QueueCounters> {
    let odd = || io::Error::new(io::ErrorKind::InvalidData, "an odd answer about a queue");
    let kind = answer.get(4..6).ok_or_else(odd)?;
    match u16::from_ne_bytes([kind[0], kind[1]]) {
        RTM_NEWQDISC => {}
        NLMSG_ERROR => {
            let code = answer.get(16..20).ok_or_else(odd)?;
            let code = i32::from_ne_bytes([code[0], code[1], code[2], code[3]]);
            return Err(io::Error::from_raw_os_error(-code));
        }
        _ => return Err(odd()),
    }
    let attributes = answer
        .get(MESSAGE_HEADER + QUEUE_HEADER..)
        .ok_or_else(odd)?;
    let of_queue = attribute(attributes, TCA_STATS2)
        .and_then(|statistics| attribute(statistics, TCA_STATS_QUEUE))
        .filter(|counters| counters.len() >= 12)
        .ok_or_else(odd)?;
    let number = |at: usize| {
        u32::from_ne_bytes([
            of_queue[at],
            of_queue[at + 1],
            of_queue[at + 2],
            of_queue[at + 3],
        ])
    };
    Ok(QueueCounters {
        waiting: number(0),
        drops: number(8),
    })
}

/// The content of the first attribute of this kind (`struct rtattr`).
fn attribute(mut bytes: &[u8], kind: u16) -> Option<&[u8]> {
    loop {
        let header = bytes.get(..4)?;
        let length = usize::from(u16::from_ne_bytes([header[0], header[1]]));
        if u16::from_ne_bytes([header[2], header[3]]) & 0x3fff == kind {
            return bytes.get(4..length);
        }
        bytes = bytes.get(length.max(4).next_multiple_of(4)..)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(kind: u16, content: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::from((content.len() as u16 + 4).to_ne_bytes());
        bytes.extend(kind.to_ne_bytes());
        bytes.extend(content);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    fn answer(kind: u16, rest: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0; 4];
        bytes.extend(kind.to_ne_bytes());
        bytes.resize(MESSAGE_HEADER, 0);
        bytes.extend(rest);
        bytes
    }

    #[test]
    fn the_counters_of_a_queue_are_found() {
        let of_queue: Vec<u8> = [7u32, 9000, 5, 1, 2]
            .iter()
            .flat_map(|number| number.to_ne_bytes())
            .collect();
        let statistics = [put(1, &[0; 12]), put(TCA_STATS_QUEUE, &of_queue)].concat();
        let mut rest = vec![0; QUEUE_HEADER];
        rest.extend(put(1, b"fq_codel\0"));
        rest.extend(put(TCA_STATS2 | 0x8000, &statistics)); // as the kernel marks nested attributes
        let found = counters(&answer(RTM_NEWQDISC, &rest)).expect("the answer is whole");
        assert_eq!((found.waiting, found.drops), (7, 5));
    }

    #[test]
    fn an_answer_without_counters_is_an_error() {
        let refused = answer(NLMSG_ERROR, &(-2i32).to_ne_bytes());
        let error = counters(&refused).expect_err("it is refused");
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        let whole = answer(RTM_NEWQDISC, &[0; QUEUE_HEADER]);
        for length in 0..=whole.len() {
            assert!(counters(&whole[..length]).is_err(), "{length} bytes");
        }
    }
}
