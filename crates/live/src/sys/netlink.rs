//! What a queue of the kernel has counted, and the options of RED, over netlink (rtnetlink(7),
//! linux/pkt_sched.h).

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
const NLM_F_ACK: u16 = 4;
/// The kernel answers a request for one queue only with it (`rtnetlink_send`).
const NLM_F_ECHO: u16 = 8;
const TCA_KIND: u16 = 1;
const TCA_OPTIONS: u16 = 2;
const TCA_RED_PARMS: u16 = 1;
const TCA_RED_STAB: u16 = 2;
const TCA_RED_MAX_P: u16 = 3;
/// Bytes of `struct tc_red_qopt`.
const RED_PARAMETERS: usize = 16;
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

/// The options of a queue `red` (`struct tc_red_qopt` and TCA_RED_MAX_P).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RedOptions {
    /// Limit and thresholds in bytes, and the exponent of the slope, as the kernel has them.
    parameters: [u8; RED_PARAMETERS],
    /// The k of W = 2^-k.
    pub weight_exponent: u8,
    /// The shift of the table of idle periods.
    pub idle_shift: u8,
    /// ECN, hard drop and adaptation.
    pub flags: u8,
    /// The probability at the upper threshold, in 2^-32.
    pub max_p: u32,
}

/// Asks for the counters and options of one queue.
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
        self.ask(&self.request, counters)
    }

    /// The options of a queue `red` now.
    ///
    /// # Errors
    /// When the kernel does not answer as it should, or the queue is another one.
    pub fn red(&self) -> io::Result<RedOptions> {
        self.ask(&self.request, red_options)
    }

    /// Changes the options of a queue `red`, whose table of idle periods the kernel does not tell.
    ///
    /// # Errors
    /// When the kernel refuses them.
    pub fn change_red(&self, options: &RedOptions, idle_table: &[u8; 256]) -> io::Result<()> {
        let mut parameters = options.parameters;
        parameters[15] = options.flags;
        let nested = [
            put(TCA_RED_PARMS, &parameters),
            put(TCA_RED_STAB, idle_table),
            put(TCA_RED_MAX_P, &options.max_p.to_ne_bytes()),
        ];
        let mut request = self.request.to_vec();
        request[4..6].copy_from_slice(&RTM_NEWQDISC.to_ne_bytes());
        request[6..8].copy_from_slice(&(NLM_F_REQUEST | NLM_F_ACK).to_ne_bytes());
        request.extend(put(TCA_KIND, b"red\0"));
        request.extend(put(TCA_OPTIONS, &nested.concat()));
        let length = request.len() as u32;
        request[0..4].copy_from_slice(&length.to_ne_bytes());
        self.ask(&request, |answer| match answer_of(answer)? {
            Answer::Done => Ok(()),
            Answer::Queue(_) => Err(odd()),
        })
    }

    fn ask<T>(&self, request: &[u8], read: impl FnOnce(&[u8]) -> io::Result<T>) -> io::Result<T> {
        send(&self.socket, request, SendFlags::empty())?;
        let mut answer = [0; 8192];
        let (length, _) = recv(&self.socket, &mut answer[..], RecvFlags::empty())?;
        read(&answer[..length])
    }
}

fn odd() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "an odd answer about a queue")
}

/// What the kernel says to a request.
enum Answer<'a> {
    /// The kernel has done what the request asked for.
    Done,
    /// The attributes of a queue.
    Queue(&'a [u8]),
}

fn answer_of(answer: &[u8]) -> io::Result<Answer<'_>> {
    let kind = answer.get(4..6).ok_or_else(odd)?;
    match u16::from_ne_bytes([kind[0], kind[1]]) {
        RTM_NEWQDISC => answer
            .get(MESSAGE_HEADER + QUEUE_HEADER..)
            .map(Answer::Queue)
            .ok_or_else(odd),
        NLMSG_ERROR => match number(answer, MESSAGE_HEADER).ok_or_else(odd)? as i32 {
            0 => Ok(Answer::Done),
            code => Err(io::Error::from_raw_os_error(-code)),
        },
        _ => Err(odd()),
    }
}

/// The attributes of the queue in an answer.
fn queue_of(answer: &[u8]) -> io::Result<&[u8]> {
    match answer_of(answer)? {
        Answer::Queue(attributes) => Ok(attributes),
        Answer::Done => Err(odd()),
    }
}

/// The number of 32 bits at a place.
fn number(bytes: &[u8], at: usize) -> Option<u32> {
    let four = bytes.get(at..at + 4)?;
    Some(u32::from_ne_bytes([four[0], four[1], four[2], four[3]]))
}

/// The options of RED in an answer.
fn red_options(answer: &[u8]) -> io::Result<RedOptions> {
    let attributes = queue_of(answer)?;
    let options = attribute(attributes, TCA_OPTIONS)
        .filter(|_| attribute(attributes, TCA_KIND) == Some(b"red\0"))
        .ok_or_else(odd)?;
    let parameters: [u8; RED_PARAMETERS] = attribute(options, TCA_RED_PARMS)
        .and_then(|bytes| bytes.try_into().ok())
        .ok_or_else(odd)?;
    Ok(RedOptions {
        parameters,
        weight_exponent: parameters[12],
        idle_shift: parameters[14],
        flags: parameters[15],
        max_p: attribute(options, TCA_RED_MAX_P)
            .and_then(|bytes| number(bytes, 0))
            .ok_or_else(odd)?,
    })
}

/// An attribute (`struct rtattr`).
fn put(kind: u16, content: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::from((content.len() as u16 + 4).to_ne_bytes());
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(content);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

/// The counters in an answer.
fn counters(answer: &[u8]) -> io::Result<QueueCounters> {
    let of_queue = attribute(queue_of(answer)?, TCA_STATS2)
        .and_then(|statistics| attribute(statistics, TCA_STATS_QUEUE))
        .filter(|counters| counters.len() >= 12)
        .ok_or_else(odd)?;
    Ok(QueueCounters {
        waiting: number(of_queue, 0).ok_or_else(odd)?,
        drops: number(of_queue, 8).ok_or_else(odd)?,
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
    fn the_options_of_red_are_found_and_those_of_another_queue_are_not() {
        let mut parameters = [0; RED_PARAMETERS];
        parameters[12..16].copy_from_slice(&[9, 13, 20, 5]);
        let options = [
            put(TCA_RED_PARMS, &parameters),
            put(TCA_RED_MAX_P, &429_496_729u32.to_ne_bytes()),
        ]
        .concat();
        let of = |kind: &[u8]| {
            let rest = [
                vec![0; QUEUE_HEADER],
                put(TCA_KIND, kind),
                put(TCA_OPTIONS, &options),
            ];
            red_options(&answer(RTM_NEWQDISC, &rest.concat()))
        };
        let found = of(b"red\0").expect("the answer is whole");
        assert_eq!(
            (found.weight_exponent, found.idle_shift, found.flags),
            (9, 20, 5)
        );
        assert_eq!(found.max_p, 429_496_729);
        assert!(of(b"gred\0").is_err());
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
