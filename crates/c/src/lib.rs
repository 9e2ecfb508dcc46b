//! A bottleneck of redtail for programs in C. `include/redtail.h` is the documentation; the functions here are those
//! of the header, with the same names.
//!
//! C gives pointers, which takes `unsafe`: in this file alone. Each function turns what it was given into references and
//! numbers first, and does the rest without. A packet is a number here, its handle: what it stands for stays with
//! the program.
#![allow(unsafe_code)]

use std::ffi::{CStr, c_char};
use std::sync::mpsc::{Receiver, channel};

use redtail_core::{Bytes, Dscp, Ecn, Packet, Rate, Span, Time};
use redtail_qdisc::Datagram;
use redtail_qdisc::bottleneck::Link;

/// A bottleneck, and the packets that its queue has dropped and nobody has asked for.
#[derive(Debug)]
pub struct Bottleneck {
    link: Link<Datagram<u64>>,
    dropped: Receiver<Datagram<u64>>,
}

/// `redtail_packet`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CPacket {
    /// The program's own number.
    pub handle: u64,
    /// Bytes on the link, headers included.
    pub size: u32,
    /// The flow.
    pub flow: u32,
    /// The two ECN bits.
    pub ecn: u8,
    /// The six bits of the class.
    pub dscp: u8,
}

impl CPacket {
    /// The packet for the queue; `None` if a field has bits that it cannot have.
    fn datagram(self) -> Option<Datagram<u64>> {
        let ecn = [Ecn::NotEct, Ecn::Ect1, Ecn::Ect0, Ecn::Ce];
        let ecn = *ecn.get(usize::from(self.ecn))?;
        let packet = Datagram::new(self.handle, Bytes::new(u64::from(self.size)));
        let packet = packet.with_flow(self.flow).with_ecn(ecn);
        Some(packet.with_dscp(Dscp::new(self.dscp)?))
    }
}

impl From<Datagram<u64>> for CPacket {
    fn from(packet: Datagram<u64>) -> Self {
        Self {
            handle: *packet.payload(),
            // It came from this type.
            size: packet.size().as_u64() as u32,
            flow: packet.flow().0,
            ecn: packet.ecn() as u8,
            dscp: packet.dscp().get(),
        }
    }
}

/// The moment so many nanoseconds after the start.
fn time(ns: u64) -> Time {
    Time::from_ps(ns.saturating_mul(1_000))
}

fn make(queue: &CStr, rate: u64, delay: u64, seed: u64) -> Result<Bottleneck, String> {
    let queue = queue.to_str().map_err(|_| "queue is not UTF-8")?;
    let queue = redtail_spec::queue_from_text(queue).map_err(|error| error.to_string())?;
    let delay = Span::from_ps(delay.saturating_mul(1_000));
    let mut link =
        Link::new(&queue, Rate::from_bps(rate), delay, seed).map_err(|error| error.to_string())?;
    let (send, dropped) = channel();
    link.on_drop(move |packet, _, _| {
        // The receiver lives as long as the link, which calls this.
        let _ = send.send(packet);
    });
    Ok(Bottleneck { link, dropped })
}

/// As much of `text` as there is room for in `size` bytes with a 0 at the end, in whole characters.
fn fitting(text: &str, size: usize) -> Option<&str> {
    let most = size.checked_sub(1)?;
    let end = (0..=most.min(text.len())).rev();
    end.map(|end| text.get(..end)).find(Option::is_some)?
}

/// See `redtail.h`.
///
/// # Safety
/// `queue` is null or a text that ends with 0; `error` is null or has room for `size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn redtail_new(
    queue: *const c_char,
    rate: u64,
    delay: u64,
    seed: u64,
    error: *mut c_char,
    size: usize,
) -> *mut Bottleneck {
    let made = if queue.is_null() {
        Err("queue is null".to_owned())
    } else {
        // SAFETY: it is not null, so the caller promises that it ends with 0.
        make(unsafe { CStr::from_ptr(queue) }, rate, delay, seed)
    };
    let reason = match made {
        Ok(bottleneck) => return Box::into_raw(Box::new(bottleneck)),
        Err(reason) => reason.replace('\0', " "),
    };
    if let Some(text) = fitting(&reason, size).filter(|_| !error.is_null()) {
        // SAFETY: the caller promises room for `size` bytes, and the text with its 0 is not longer.
        unsafe {
            std::ptr::copy_nonoverlapping(text.as_ptr(), error.cast(), text.len());
            error.add(text.len()).write(0);
        }
    }
    std::ptr::null_mut()
}

/// See `redtail.h`.
///
/// # Safety
/// `bottleneck` is null or from `redtail_new`, and is not used afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn redtail_free(bottleneck: *mut Bottleneck) {
    if !bottleneck.is_null() {
        // SAFETY: it is from `redtail_new`, which made it by `Box::into_raw`, and nobody uses it afterwards.
        drop(unsafe { Box::from_raw(bottleneck) });
    }
}

/// See `redtail.h`.
///
/// # Safety
/// `bottleneck` is null or from `redtail_new`, and used by no other thread; `packet` is null or points to a packet.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn redtail_send(
    bottleneck: *mut Bottleneck,
    packet: *const CPacket,
    now: u64,
) -> bool {
    // SAFETY: each is null or as the caller promises.
    let (bottleneck, packet) = unsafe { (bottleneck.as_mut(), packet.as_ref()) };
    let packet = packet.and_then(|packet| packet.datagram());
    let (Some(bottleneck), Some(packet)) = (bottleneck, packet) else {
        return false;
    };
    bottleneck.link.send(packet, time(now));
    true
}

/// See `redtail.h`.
///
/// # Safety
/// `bottleneck` is null or from `redtail_new`, and used by no other thread; `packet` is null or has room for a packet.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn redtail_receive(
    bottleneck: *mut Bottleneck,
    packet: *mut CPacket,
    now: u64,
) -> bool {
    if packet.is_null() {
        return false;
    }
    // SAFETY: it is null or as the caller promises.
    let bottleneck = unsafe { bottleneck.as_mut() };
    let received = bottleneck.and_then(|bottleneck| bottleneck.link.receive(time(now)));
    // SAFETY: it is not null, so the caller promises room.
    unsafe { give(received.map(CPacket::from), packet) }
}

/// See `redtail.h`.
///
/// # Safety
/// `bottleneck` is null or from `redtail_new`, and used by no other thread; `packet` is null or has room for a packet.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn redtail_dropped(
    bottleneck: *mut Bottleneck,
    packet: *mut CPacket,
) -> bool {
    if packet.is_null() {
        return false;
    }
    // SAFETY: it is null or as the caller promises.
    let bottleneck = unsafe { bottleneck.as_ref() };
    let dropped = bottleneck.and_then(|bottleneck| bottleneck.dropped.try_recv().ok());
    // SAFETY: it is not null, so the caller promises room.
    unsafe { give(dropped.map(CPacket::from), packet) }
}

/// See `redtail.h`.
///
/// # Safety
/// `bottleneck` is null or from `redtail_new`, and used by no other thread; `at` is null or has room for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn redtail_next_event(bottleneck: *const Bottleneck, at: *mut u64) -> bool {
    if at.is_null() {
        return false;
    }
    // SAFETY: it is null or as the caller promises.
    let bottleneck = unsafe { bottleneck.as_ref() };
    let next = bottleneck.and_then(|bottleneck| bottleneck.link.next_event());
    // Rounded up, so that what is due then has happened.
    let next = next.map(|next| next.as_ps().div_ceil(1_000));
    // SAFETY: it is not null, so the caller promises room.
    unsafe { give(next, at) }
}

/// Writes a value to `to`, if there is one.
///
/// # Safety
/// `to` has room for it.
unsafe fn give<T>(value: Option<T>, to: *mut T) -> bool {
    let Some(value) = value else {
        return false;
    };
    // SAFETY: the caller promises room.
    unsafe { to.write(value) };
    true
}

/// The code of the page is tested.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/how-to/use-the-crates.md")]
struct Page;
