//! What a sender tells of itself: counters, and its state for time series.

use std::ops::{AddAssign, Sub};

use redtail_core::Span;

/// Counters of a sender, from its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SenderCounters {
    /// Segments with payload, retransmissions included.
    pub data_segments: u64,
    /// Retransmitted segments.
    pub retransmissions: u64,
    /// Times fast recovery was entered.
    pub recoveries: u64,
    /// Retransmission timeouts, of SYNs included.
    pub timeouts: u64,
    /// Reductions because of an echoed ECN mark.
    pub ecn_reductions: u64,
    /// Acknowledgements that repeat the one before while data is outstanding (RFC 5681, section 2).
    pub duplicate_acks: u64,
    /// Timeouts found to be spurious and undone (RFC 5682).
    pub spurious_timeouts: u64,
    /// Fast retransmits found to be spurious and undone (RFC 9438, section 4.9.2).
    pub spurious_fast_retransmits: u64,
    /// Waits of more than 10 s for cumulative progress with data outstanding, counted when they
    /// end.
    pub stalls: u64,
}

/// The counters as a sender keeps them: in 32 bits where they count what is rare.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(super) struct Counts {
    pub data_segments: u64,
    pub duplicate_acks: Rare,
    pub retransmissions: Rare,
    pub recoveries: Rare,
    pub timeouts: Rare,
    pub ecn_reductions: Rare,
    pub spurious_timeouts: Rare,
    pub spurious_fast_retransmits: Rare,
    pub stalls: Rare,
}

impl Counts {
    pub fn totals(&self) -> SenderCounters {
        SenderCounters {
            data_segments: self.data_segments,
            retransmissions: self.retransmissions.get(),
            recoveries: self.recoveries.get(),
            timeouts: self.timeouts.get(),
            ecn_reductions: self.ecn_reductions.get(),
            duplicate_acks: self.duplicate_acks.get(),
            spurious_timeouts: self.spurious_timeouts.get(),
            spurious_fast_retransmits: self.spurious_fast_retransmits.get(),
            stalls: self.stalls.get(),
        }
    }
}

/// A counter of less than 2^32 events.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rare(u32);

impl Rare {
    pub fn get(self) -> u64 {
        u64::from(self.0)
    }

    /// Counts one event.
    ///
    /// # Panics
    /// When there are 2^32 of them: no run is that long.
    pub fn count(&mut self) {
        self.0 = self.0.checked_add(1).expect("a flow has fewer of them");
    }

    /// Counts an event if it `happened`; otherwise the counter is not touched.
    #[inline]
    pub fn count_if(&mut self, happened: bool) {
        if happened {
            self.count();
        }
    }
}

impl AddAssign for SenderCounters {
    fn add_assign(&mut self, other: Self) {
        self.data_segments += other.data_segments;
        self.retransmissions += other.retransmissions;
        self.recoveries += other.recoveries;
        self.timeouts += other.timeouts;
        self.ecn_reductions += other.ecn_reductions;
        self.duplicate_acks += other.duplicate_acks;
        self.spurious_timeouts += other.spurious_timeouts;
        self.spurious_fast_retransmits += other.spurious_fast_retransmits;
        self.stalls += other.stalls;
    }
}

impl Sub for SenderCounters {
    type Output = Self;

    fn sub(self, earlier: Self) -> Self {
        Self {
            data_segments: self.data_segments - earlier.data_segments,
            retransmissions: self.retransmissions - earlier.retransmissions,
            recoveries: self.recoveries - earlier.recoveries,
            timeouts: self.timeouts - earlier.timeouts,
            ecn_reductions: self.ecn_reductions - earlier.ecn_reductions,
            duplicate_acks: self.duplicate_acks - earlier.duplicate_acks,
            spurious_timeouts: self.spurious_timeouts - earlier.spurious_timeouts,
            spurious_fast_retransmits: self.spurious_fast_retransmits
                - earlier.spurious_fast_retransmits,
            stalls: self.stalls - earlier.stalls,
        }
    }
}

/// A sender's state, for time series.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SenderSnapshot {
    /// Congestion window, bytes.
    pub cwnd: f64,
    /// Slow start threshold, bytes; infinite before the first reduction.
    pub ssthresh: f64,
    /// Bytes sent and not cumulatively acknowledged.
    pub outstanding: u64,
    /// Smoothed round-trip time, once measured.
    pub srtt: Option<Span>,
    /// Estimated share of marked bytes, if the response is in proportion to it (DCTCP.Alpha of RFC
    /// 8257).
    pub alpha: Option<f64>,
    /// Rate at which segments are paced, bytes/s, once there is one.
    pub pacing_rate: Option<f64>,
    /// The name of the state that a model-based controller is in.
    pub state: Option<&'static str>,
}
