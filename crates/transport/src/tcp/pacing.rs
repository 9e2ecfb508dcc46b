//! Pacing: segments leave no faster than a rate, instead of in bursts with each
//! acknowledgement.
//!
//! Source: draft-ietf-ccwg-bbr-06, sections 5.6.2 (departure times) and 5.6.3 (quantum);
//! the rate of window-based senders is Linux's (net/ipv4/tcp_input.c,
//! tcp_update_pacing_rate, with the ratios of tcp_pacing_ss_ratio and
//! tcp_pacing_ca_ratio).
//!
//! | symbol | meaning | unit |
//! |---|---|---|
//! | pacing_rate | most that leaves, payload without headers | bytes/s |
//! | send_quantum | most that leaves at once | bytes |
//! | next_send_time | earliest departure of the next quantum | s |
//!
//! ```text
//! next_send_time = max(now, next_send_time) + size / pacing_rate
//! window-based:  pacing_rate = 2 cwnd / srtt                while cwnd < ssthresh / 2
//!                              pacing_ca_ratio cwnd / srtt  otherwise, 1.2 by default
//! ```
//!
//! A window-based sender's quantum is a segment; Linux puts two or more together for the sake of
//! segmentation offload. Without a round-trip sample nothing is paced: the initial window of a
//! connection without a handshake leaves as a burst. The first `unpaced_segments` are not paced
//! either; in Linux there are ten (net/ipv4/tcp_output.c, tcp_update_skb_after_send).

use redtail_core::{Span, Time};

use crate::cc::Window;

/// Share of cwnd / srtt while the window doubles each round (tcp_pacing_ss_ratio, 200 %).
const SLOW_START_RATIO: f64 = 2.0;

const PS_PER_S: f64 = 1e12;

/// The share of cwnd / srtt at which a window-based sender is paced: `ca_ratio` outside slow start
/// (tcp_update_pacing_rate).
#[inline]
pub(super) fn window_ratio(window: Window, ca_ratio: f64) -> f64 {
    if window.cwnd < window.ssthresh / 2.0 {
        SLOW_START_RATIO
    } else {
        ca_ratio
    }
}

/// Says when the next segment may leave.
#[derive(Clone, Debug)]
pub struct Pacer {
    /// Share of cwnd / srtt outside slow start; `None` if only a model's rate is paced at.
    ca_ratio: Option<f64>,
    /// The size of a full segment in bytes.
    mss: u32,
    /// Segments that may still leave unpaced.
    unpaced: u32,
    /// The pacing rate in bytes/s; zero before there is one.
    rate: f64,
    /// The inverse of `rate`, zero before there is one. It is stored because the rate is read more
    /// often than it changes.
    ps_per_byte: f64,
    /// The earliest time at which the next segment may leave (next_send_time).
    next: Time,
    /// When the latest quantum began to leave.
    quantum_at: Time,
    /// Whether another segment of the size of the latest belongs to the same quantum.
    quantum_open: bool,
    quantum: u64,
    /// The full segments in `quantum`.
    quantum_segments: u64,
    /// Bytes of the latest quantum that have not left.
    left: u64,
    /// When the segment that is held back may leave; `None` if there is none.
    release_at: Option<Time>,
    /// The next offset to send when the window, not the rate, last prevented sending.
    window_full_at: u64,
}

impl Pacer {
    /// A pacer without a rate for segments of `mss` bytes. Outside slow start the rate of a window is `ca_ratio` times
    /// cwnd / srtt; without `ca_ratio` a window is not paced. The first `unpaced` segments are not paced.
    pub fn new(ca_ratio: Option<f64>, unpaced: u32, mss: u32) -> Self {
        Self {
            ca_ratio,
            mss,
            quantum_segments: 0,
            unpaced,
            rate: 0.0,
            ps_per_byte: 0.0,
            next: Time::ZERO,
            quantum_at: Time::ZERO,
            quantum_open: false,
            quantum: 0,
            left: 0,
            release_at: None,
            window_full_at: 0,
        }
    }

    /// The window prevents sending; `next` is the next offset to send.
    #[inline]
    pub fn on_full_window(&mut self, next: u64) {
        self.window_full_at = next;
    }

    /// Whether the window was full in the round trip that ends with an acknowledgement beyond
    /// `una`. A paced sender often has room in the window for a segment that it may not send yet.
    /// As in Linux (tcp_cwnd_validate), a sender counts as limited by the window until the data
    /// sent by then is acknowledged.
    #[inline]
    pub fn had_full_window(&self, una: u64) -> bool {
        una < self.window_full_at
    }

    /// Sets pacing_rate, in bytes/s, and send_quantum, in bytes. The departure times of segments
    /// already sent do not change.
    #[inline]
    pub fn set(&mut self, rate: f64, quantum: u64) {
        if rate != self.rate {
            self.rate = rate;
            self.ps_per_byte = PS_PER_S / rate;
        }
        if quantum != self.quantum {
            self.quantum = quantum;
            self.quantum_segments = quantum / u64::from(self.mss);
        }
    }

    /// Sets the rate of a window-based sender; the quantum is one segment.
    pub fn follow(&mut self, window: Window, srtt: Span) {
        let rate = match self.ca_ratio {
            Some(ca_ratio) => window_ratio(window, ca_ratio) * window.cwnd / srtt.as_secs_f64(),
            None => f64::INFINITY, // no segment waits
        };
        self.set(rate, 0);
    }

    /// Returns send_quantum, in full segments.
    #[inline]
    pub fn quantum_segments(&self) -> u64 {
        self.quantum_segments
    }

    /// Returns the pacing rate in bytes/s, once there is one.
    pub fn rate(&self) -> Option<f64> {
        (self.ps_per_byte > 0.0).then_some(self.rate)
    }

    /// Whether a segment may leave.
    #[inline]
    fn allows(&self, now: Time) -> bool {
        now >= self.next || (self.quantum_open && self.quantum_at == now)
    }

    /// A segment of `len` bytes leaves.
    #[inline]
    pub fn on_sent(&mut self, len: u32, now: Time) {
        if self.unpaced > 0 {
            self.unpaced -= 1;
            return;
        }
        let bytes = u64::from(len);
        if now >= self.next || self.quantum_at != now {
            self.left = self.quantum;
        }
        self.next = self.next.max(now);
        self.quantum_at = now;
        // A conversion to a signed number takes half the instructions.
        let gap = (f64::from(len) * self.ps_per_byte) as i64;
        self.next += Span::from_ps(gap.cast_unsigned());
        self.left = self.left.saturating_sub(bytes);
        self.quantum_open = self.left >= bytes;
    }

    /// Whether a segment may leave; if so, no segment is held back any more.
    #[inline]
    pub fn lets_pass(&mut self, now: Time) -> bool {
        let allowed = self.allows(now);
        if allowed {
            self.release_at = None;
        }
        allowed
    }

    /// No segment may leave. With `more`, the release of the next one is scheduled.
    #[inline]
    pub fn hold_back(&mut self, more: bool) {
        self.release_at = more.then_some(self.next);
    }

    /// Pacing holds back no segment any more.
    #[inline]
    pub fn release(&mut self) {
        self.release_at = None;
    }

    /// The time for which the next segment would be held back.
    #[inline]
    pub fn held_for(&self, now: Time) -> Span {
        self.next.saturating_since(now)
    }

    /// When a segment that is held back may leave.
    #[inline]
    pub fn release_at(&self) -> Option<Time> {
        self.release_at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(us: u64) -> Time {
        Time::ZERO + Span::from_us(us)
    }

    /// The departure times of `count` segments of 1000 bytes, the first at `from`; in µs.
    fn departures(pacer: &mut Pacer, from: u64, count: usize) -> Vec<u64> {
        let mut now = at(from);
        let mut times = Vec::new();
        for _ in 0..count {
            if !pacer.lets_pass(now) {
                pacer.hold_back(true);
                now = pacer.release_at().expect("it is held back");
                pacer.release();
                assert!(pacer.allows(now));
            }
            pacer.on_sent(1000, now);
            times.push(now.as_ps() / 1_000_000);
        }
        times
    }

    #[test]
    fn without_a_rate_nothing_is_held_back() {
        assert_eq!(
            departures(&mut Pacer::new(Some(1.2), 0, 1000), 7, 4),
            [7; 4]
        );
    }

    #[test]
    fn the_first_segments_leave_unpaced() {
        let mut pacer = Pacer::new(Some(1.2), 3, 1000);
        pacer.set(1e6, 0);
        assert_eq!(departures(&mut pacer, 5, 6), [5, 5, 5, 5, 1005, 2005]);
    }

    #[test]
    fn segments_leave_one_by_one_at_the_rate() {
        let mut pacer = Pacer::new(Some(1.2), 0, 1000);
        pacer.set(1e6, 0);
        assert_eq!(departures(&mut pacer, 5, 3), [5, 1005, 2005]);
        // After a pause the pacer does not catch up.
        assert_eq!(departures(&mut pacer, 9000, 2), [9000, 10_000]);
    }

    #[test]
    fn a_quantum_leaves_at_once_in_whole_segments() {
        // draft-ietf-ccwg-bbr-06, section 5.6.3: "the maximum size of these transmission
        // aggregates".
        let mut pacer = Pacer::new(Some(1.2), 0, 1000);
        pacer.set(1e6, 2999);
        let times = departures(&mut pacer, 0, 6);
        assert_eq!(times, [0, 0, 2000, 2000, 4000, 4000]);
    }

    #[test]
    fn a_new_rate_applies_to_what_leaves_after_it() {
        let mut pacer = Pacer::new(Some(1.2), 0, 1000);
        pacer.set(1e6, 0);
        departures(&mut pacer, 0, 1);
        pacer.set(2e6, 0);
        assert_eq!(departures(&mut pacer, 0, 3), [1000, 1500, 2000]);
    }

    #[test]
    fn a_window_is_paced_at_twice_or_1_2_times_its_own_rate() {
        let mut pacer = Pacer::new(Some(1.2), 0, 1000);
        let rate = |pacer: &mut Pacer, ssthresh: f64| {
            let cwnd = 10_000.0;
            pacer.follow(Window { cwnd, ssthresh }, Span::from_ms(100));
            pacer.rate().expect("there is a rate")
        };
        for (ssthresh, expected) in [
            (f64::INFINITY, 200_000.0),
            (20_001.0, 200_000.0),
            (20_000.0, 120_000.0),
            (5000.0, 120_000.0),
        ] {
            let rate = rate(&mut pacer, ssthresh);
            assert!((rate / expected - 1.0).abs() < 1e-12, "{rate}");
        }
    }
}
