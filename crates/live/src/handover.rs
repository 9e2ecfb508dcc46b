//! A thread that hands packets to the receivers of data while the network is late.
//!
//! The kernel's TCP processes a packet within the call that hands it over, and this takes several times as
//! long as all that the network does with the packet. While the network keeps up, it makes these calls itself:
//! waking another thread would only take time. When it is late, the calls are made here, and the network
//! goes on with the next packet.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};

use redtail_core::{Span, Time};

use crate::addresses::Side;
use crate::emulator::Punctuality;
use crate::spaces::Space;
use crate::sys::clock::Clock;
use crate::sys::scheduling::wake_up_soon;

/// The lateness from which on packets are handed over here: as long as a thread takes to wake up.
const LATE: Span = Span::from_us(50);

/// A packet on the way to its receiver.
#[derive(Debug)]
pub struct Parcel {
    /// The group of its receiver.
    pub group: usize,
    /// The packet.
    pub bytes: Vec<u8>,
    /// When it was due.
    pub at: Time,
}

/// The network's side.
#[derive(Debug)]
pub struct Handover {
    parcels: Sender<Parcel>,
    /// Packets that were sent to the thread, and have not reached their receivers.
    pending: Arc<AtomicUsize>,
}

impl Handover {
    /// Whether a packet that was due at `at` has to go through the thread: when the network is late at `now`,
    /// and while earlier packets are pending, which it must not overtake.
    pub fn takes(&self, at: Time, now: Time) -> bool {
        now.saturating_since(at) > LATE || self.pending.load(Ordering::Acquire) > 0
    }

    /// Sends a packet to the thread.
    pub fn send(&self, parcel: Parcel) {
        self.pending.fetch_add(1, Ordering::Relaxed);
        let _ = self.parcels.send(parcel); // the thread has ended with an error, which ends the run
    }
}

/// The thread's side.
#[derive(Debug)]
pub struct Deliveries {
    parcels: Receiver<Parcel>,
    pending: Arc<AtomicUsize>,
}

/// Both sides.
pub fn pair() -> (Handover, Deliveries) {
    let (sender, parcels) = mpsc::channel();
    let pending = Arc::new(AtomicUsize::new(0));
    let handover = Handover {
        parcels: sender,
        pending: Arc::clone(&pending),
    };
    (handover, Deliveries { parcels, pending })
}

impl Deliveries {
    /// Hands packets to their receivers until the other side is gone, and measures how late that was.
    ///
    /// # Errors
    /// When a device cannot be written.
    pub fn serve(
        self,
        spaces: &[[Space; 2]],
        clock: Clock,
        punctuality: &mut Punctuality,
    ) -> io::Result<()> {
        wake_up_soon();
        for parcel in &self.parcels {
            let receiving = &spaces[parcel.group][Side::Receiving as usize];
            receiving.tun.write(&parcel.bytes)?;
            self.pending.fetch_sub(1, Ordering::Release);
            punctuality.handed_over(parcel.bytes.len() as u64, parcel.at, clock.now());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parcel() -> Parcel {
        Parcel {
            group: 0,
            bytes: vec![0; 40],
            at: Time::ZERO,
        }
    }

    #[test]
    fn a_punctual_packet_waits_for_no_thread() {
        let (handover, _deliveries) = pair();
        let at = Time::ZERO + Span::from_ms(1);
        assert!(!handover.takes(at, at));
        assert!(!handover.takes(at, at + LATE));
        assert!(handover.takes(at, at + LATE + Span::from_ps(1)));
    }

    #[test]
    fn no_packet_overtakes_one_that_is_pending() {
        let (handover, deliveries) = pair();
        handover.send(parcel());
        assert!(handover.takes(Time::ZERO, Time::ZERO));
        let _ = deliveries.parcels.recv();
        deliveries.pending.fetch_sub(1, Ordering::Release);
        assert!(!handover.takes(Time::ZERO, Time::ZERO));
    }
}
