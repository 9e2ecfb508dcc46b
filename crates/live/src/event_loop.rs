//! The loop that the network and the hosts of a run share: what is due is done, then what is ready.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};

use redtail_core::{Span, Time};
use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};

use crate::sys::clock::Clock;

/// The longest wait: the time within which a cancelled run ends.
const LONGEST_WAIT: Span = Span::from_ms(50);

/// Events that are taken from the kernel at once.
const EVENTS: usize = 256;

/// Something that acts at its times, and when files are ready.
pub trait Part {
    /// Does what is due at `now`.
    ///
    /// # Errors
    /// When the kernel refuses a system call that it accepts in working order.
    fn act(&mut self, now: Time) -> io::Result<()>;

    /// When it is to act next.
    fn next(&self) -> Time;

    /// Whether it watches the file with this datum.
    fn owns(&self, datum: u64) -> bool;

    /// The file with this datum is ready.
    ///
    /// # Errors
    /// As [`Part::act`].
    fn ready(&mut self, datum: u64) -> io::Result<()>;
}

/// The files that parts wait for.
#[derive(Debug)]
pub struct Watched(OwnedFd);

impl Watched {
    /// None yet.
    ///
    /// # Errors
    /// When the process has no room for a file.
    pub fn new() -> io::Result<Self> {
        Ok(Self(epoll::create(epoll::CreateFlags::CLOEXEC)?))
    }

    /// Watches a file; it is told with this datum.
    ///
    /// # Errors
    /// When the kernel cannot watch it.
    pub fn watch(&self, file: impl AsFd, datum: u64, flags: epoll::EventFlags) -> io::Result<()> {
        Ok(epoll::add(
            &self.0,
            file,
            epoll::EventData::new_u64(datum),
            flags,
        )?)
    }

    /// Watches a file no longer.
    ///
    /// # Errors
    /// When it was not watched.
    pub fn forget(&self, file: impl AsFd) -> io::Result<()> {
        Ok(epoll::delete(&self.0, file)?)
    }
}

/// Lets `parts` act until the clock shows `end`, or until `stop` is set. The thread waits in the kernel
/// until `awake_before` the next time at which one is to act, and looks at the clock from then on.
///
/// # Errors
/// As [`Part::act`].
pub fn run(
    parts: &mut [&mut dyn Part],
    watched: &Watched,
    (clock, end): (Clock, Time),
    awake_before: Span,
    stop: &AtomicBool,
) -> io::Result<()> {
    let mut ready = Vec::with_capacity(EVENTS);
    loop {
        let now = clock.now();
        for part in parts.iter_mut() {
            part.act(now.min(end))?;
        }
        if now >= end || stop.load(Ordering::Relaxed) {
            return Ok(());
        }
        let next = parts.iter().map(|part| part.next()).fold(end, Time::min);
        let left = next.saturating_since(clock.now());
        let timeout = timespec(left.saturating_sub(awake_before).min(LONGEST_WAIT));
        ready.clear();
        match epoll::wait(&watched.0, spare_capacity(&mut ready), Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        for event in &ready {
            let datum = event.data.u64();
            if let Some(part) = parts.iter_mut().find(|part| part.owns(datum)) {
                part.ready(datum)?;
            }
        }
    }
}

/// A span as the kernel reads it.
fn timespec(span: Span) -> Timespec {
    let ns = span.as_ps() / 1000;
    Timespec {
        tv_sec: (ns / 1_000_000_000) as i64,
        tv_nsec: (ns % 1_000_000_000) as i64,
    }
}
