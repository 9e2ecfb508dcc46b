//! A TUN device: the packets that hosts of a network namespace send are read from it, and those
//! written to it arrive there.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use libc::{IFF_NO_PI, IFF_TUN, TUNSETIFF, c_short, ifreq};
use rustix::fs::{Mode, OFlags, open};
use rustix::io::{read, write};
use rustix::ioctl::{Setter, ioctl};

/// A TUN device in the network namespace in which it was opened. It goes when it is closed.
///
/// No offload is enabled, so the kernel divides what it sends into packets before they come here.
#[derive(Debug)]
pub struct Tun(OwnedFd);

impl Tun {
    /// Makes the device `name` in the namespace of the calling thread.
    ///
    /// # Errors
    /// When `/dev/net/tun` cannot be opened, or the name is taken or too long.
    #[allow(unsafe_code)]
    pub fn open(name: &str) -> io::Result<Self> {
        let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let file = open("/dev/net/tun", flags, Mode::empty())?;
        // SAFETY: all zeros is a value of this struct of the kernel.
        let mut request: ifreq = unsafe { std::mem::zeroed() };
        if name.len() >= request.ifr_name.len() {
            return Err(io::Error::from(io::ErrorKind::InvalidInput));
        }
        for (place, byte) in request.ifr_name.iter_mut().zip(name.bytes()) {
            *place = byte as libc::c_char;
        }
        request.ifr_ifru.ifru_flags = (IFF_TUN | IFF_NO_PI) as c_short;
        // SAFETY: TUNSETIFF reads an `ifreq` (linux/if_tun.h).
        unsafe { ioctl(&file, Setter::<{ TUNSETIFF as u32 }, ifreq>::new(request)) }?;
        Ok(Self(file))
    }

    /// Reads a packet, if there is one.
    ///
    /// # Errors
    /// When the device cannot be read.
    #[inline]
    pub fn read(&self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        match read(&self.0, buffer) {
            Ok(length) => Ok(Some(length)),
            Err(rustix::io::Errno::AGAIN) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Writes a packet, which arrives at the hosts of the namespace.
    ///
    /// # Errors
    /// When the device cannot be written, or the packet is not one.
    #[inline]
    pub fn write(&self, packet: &[u8]) -> io::Result<()> {
        write(&self.0, packet)?;
        Ok(())
    }
}

impl AsFd for Tun {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
