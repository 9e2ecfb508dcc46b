//! Input and output ports of a virtual machine's devices (x86-64). Each instruction acts at once and
//! at a fixed moment of the machine's time, which no driver's interrupt does.

use std::arch::asm;
use std::io;

/// The right to use ports.
#[derive(Debug)]
pub struct Ports(());

impl Ports {
    /// Asks the kernel for the right to use all ports.
    ///
    /// # Errors
    /// When this process is not root, or the kernel lacks `iopl`.
    #[allow(unsafe_code)]
    pub fn open() -> io::Result<Self> {
        let all = 3;
        // SAFETY: iopl takes a number; what it permits are the instructions below.
        match unsafe { libc::iopl(all) } {
            0 => Ok(Self(())),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Writes a byte.
    #[allow(unsafe_code)]
    pub fn write_u8(&self, port: u16, value: u8) {
        // SAFETY: it changes no memory, and ports are permitted.
        unsafe {
            asm!("out dx, al", in("dx") port, in("al") value, options(nomem, nostack, preserves_flags));
        }
    }

    /// Writes a word.
    #[allow(unsafe_code)]
    pub fn write_u16(&self, port: u16, value: u16) {
        // SAFETY: as above.
        unsafe {
            asm!("out dx, ax", in("dx") port, in("ax") value, options(nomem, nostack, preserves_flags));
        }
    }

    /// Writes bytes, one after the other.
    #[allow(unsafe_code)]
    pub fn write_all(&self, port: u16, bytes: &[u8]) {
        // SAFETY: it reads as many bytes from `bytes` as it has.
        unsafe {
            asm!(
                "rep outsb",
                in("dx") port,
                inout("rsi") bytes.as_ptr() => _,
                inout("rcx") bytes.len() => _,
                options(readonly, nostack, preserves_flags),
            );
        }
    }

    /// Reads bytes, one after the other, until `bytes` is full.
    #[allow(unsafe_code)]
    pub fn read_all(&self, port: u16, bytes: &mut [u8]) {
        // SAFETY: it writes as many bytes to `bytes` as it has.
        unsafe {
            asm!(
                "rep insb",
                in("dx") port,
                inout("rdi") bytes.as_mut_ptr() => _,
                inout("rcx") bytes.len() => _,
                options(nostack, preserves_flags),
            );
        }
    }
}
