//! What the kernel tells of a TCP connection (`TCP_INFO`, linux/tcp.h), and the option that keeps
//! unsent data short.

use std::io;
use std::os::fd::{AsFd, AsRawFd};

/// The state of a TCP connection at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TcpInfo {
    /// What the sender is doing (`tcp_ca_state`).
    pub ca_state: u8,
    /// Congestion window in segments.
    pub cwnd: u32,
    /// Slow start threshold in segments; `None` before the first reduction.
    pub ssthresh: Option<u32>,
    /// Size of a segment in bytes.
    pub mss: u32,
    /// Segments that are not acknowledged.
    pub outstanding: u32,
    /// Smoothed round-trip time in microseconds; zero before the first sample.
    pub srtt_us: u32,
    /// Segments sent again so far.
    pub retransmissions: u32,
    /// Retransmission timeouts so far; `None` with a kernel before 6.7, which does not tell.
    pub timeouts: Option<u32>,
}

/// Bytes of the struct that are read; a kernel may have less or more.
const ROOM: usize = 280;

/// The slow start threshold before the first reduction (`TCP_INFINITE_SSTHRESH`, net/tcp.h).
const INFINITE_SSTHRESH: u32 = 0x7fff_ffff;

/// Reads the state of a TCP connection.
///
/// # Errors
/// When `socket` is not a TCP socket.
#[allow(unsafe_code)]
pub fn tcp_info(socket: impl AsFd) -> io::Result<TcpInfo> {
    let mut bytes = [0u8; ROOM];
    let mut length = ROOM as libc::socklen_t;
    let fd = socket.as_fd().as_raw_fd();
    let place = bytes.as_mut_ptr().cast();
    // SAFETY: the kernel writes at most `length` bytes to `place`, which has as many.
    match unsafe { libc::getsockopt(fd, libc::IPPROTO_TCP, libc::TCP_INFO, place, &mut length) } {
        0 => Ok(of_bytes(&bytes[..length as usize])),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Reads the fields by their offsets in `struct tcp_info`.
fn of_bytes(bytes: &[u8]) -> TcpInfo {
    let chunk = |at: usize| bytes.get(at..).and_then(|rest| rest.first_chunk::<4>());
    let word = |at: usize| chunk(at).map_or(0, |four| u32::from_ne_bytes(*four));
    let ssthresh = word(76);
    TcpInfo {
        ca_state: bytes.get(1).copied().unwrap_or(0),
        mss: word(16),
        outstanding: word(24),
        srtt_us: word(68),
        ssthresh: (ssthresh < INFINITE_SSTHRESH).then_some(ssthresh),
        cwnd: word(80),
        retransmissions: word(100),
        timeouts: chunk(240).map(|_| word(240) & 0xffff),
    }
}

/// Lets `socket` be writable only while fewer than `bytes` bytes are unsent (`TCP_NOTSENT_LOWAT`,
/// tcp(7)).
///
/// # Errors
/// When `socket` is not a TCP socket.
#[allow(unsafe_code)]
pub fn set_not_sent_low_water(socket: impl AsFd, bytes: u32) -> io::Result<()> {
    let fd = socket.as_fd().as_raw_fd();
    let place = std::ptr::from_ref(&bytes).cast();
    let length = size_of_val(&bytes) as libc::socklen_t;
    let option = libc::TCP_NOTSENT_LOWAT;
    // SAFETY: the kernel reads `length` bytes from `place`, which has as many.
    match unsafe { libc::setsockopt(fd, libc::IPPROTO_TCP, option, place, length) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
