//! The receive window that grows with what arrives, as Linux tunes it.
//!
//! Source: Linux 6.1, net/ipv4/tcp_input.c (tcp_init_buffer_space, tcp_grow_window,
//! tcp_rcv_rtt_measure_ts, tcp_rcv_space_adjust), tcp_output.c (tcp_select_initial_window) and
//! include/net/tcp.h (tcp_win_from_space), read for what they compute. A sample of the round trip that
//! is less than the smoothed one takes its place, as since Linux 6.1.142 (tcp_rcv_rtt_update).
//!
//! | symbol | meaning | unit |
//! |---|---|---|
//! | threshold | the window that may be announced (rcv_ssthresh) | bytes |
//! | clamp | what the buffer has room for (window_clamp) | bytes |
//! | copied | what the application has read in a round trip | bytes |
//! | space | the largest copied so far (rcvq_space.space) | bytes |
//! | edge | the end of what was announced (rcv_wup + rcv_wnd) | offset |
//!
//! ```text
//! start:     buffer = 128 KiB, half of which is window; clamp = buffer / 2 - mss
//! a segment: threshold = min(threshold + 2 max(mss, len), clamp)    of 128 bytes and more
//! a round:   w = 2 copied + 16 mss                                  for copied > space
//!            clamp >= w + 2 w (copied - space) / space
//!            space = copied
//! announced: max(threshold, edge - next), rounded up to the unit of the window scale
//! ```
//!
//! The kernel acknowledges at once each segment that raises the threshold (`icsk_ack.quick |= 1`), so
//! that the sender learns of the window. While a sender is in slow start that is nearly every segment
//! after the first two round trips. This decides when the sender's HyStart ends slow start, since it
//! measures how close acknowledgements are to each other.
//!
//! Without autotuning only the acknowledgements follow it: the window that is announced is the largest from the start.
//! Left out are the memory of data that waits, out of order or to be read, and round trips without timestamps; without
//! these the buffer stays as it is, and the window is the largest.

use std::hint::select_unpredictable;

use redtail_core::{Span, Time};

use super::timestamps::us_since;
use crate::params::TcpParams;
use crate::segment::Segment;

/// The initial buffer (`tcp_rmem`), half of which is window (`tcp_adv_win_scale`), bytes.
const INITIAL_WINDOW: u64 = 131_072 / 2;
/// The largest window that a SYN announces, bytes.
const SYN_WINDOW: u64 = 65_535;
/// Bytes that the buffer of a segment needs besides its payload (`SKB_TRUESIZE`, `MAX_TCP_HEADER`; on
/// x86-64 in a kernel for virtual machines, which has no wireless devices), and the steps in which it is
/// raised until half of it is a segment.
const OVERHEAD: u64 = 832;
const OVERHEAD_STEP: u64 = 128;
/// The shortest segment that raises the threshold, bytes.
const SHORTEST: u32 = 128;
/// Segments of the initial congestion window (`TCP_INIT_CWND`), the first value of space.
const FIRST_FLIGHT: u64 = 10;
/// Segments added to the window that a round needs.
const CUSHION: u64 = 16;
/// The gain of the smoothed round trip is one over this.
const SMOOTHING: u64 = 8;

/// Microseconds in a tick of the kernel's timestamps (`TCP_TS_HZ`): they are milliseconds.
const TICK_US: u64 = 1000;

/// The ticks of the kernel's timestamp clock from when this model's clock showed `echo` to `now`.
#[inline]
fn waited(echo: u32, now: Time) -> u64 {
    let (now_us, ago) = us_since(echo, now);
    now_us / TICK_US - now_us.saturating_sub(ago) / TICK_US
}

/// The receive buffer of a connection.
#[derive(Clone, Debug)]
pub(crate) struct ReceiveBuffer {
    mss: u64,
    threshold: u64,
    clamp: u64,
    /// The largest clamp.
    most: u64,
    space: u64,
    /// The offset and the time at which the round began.
    round: (u64, Time),
    /// The round trip as the receiver sees it, smoothed; zero without a sample.
    round_trip: Span,
    /// The latest echo.
    echo: Option<u32>,
    timestamps: bool,
    /// What is announced, if it follows this buffer.
    announced: Option<Announced>,
}

/// The window that a receiver announces.
#[derive(Clone, Copy, Debug)]
struct Announced {
    /// The offset up to which the peer may send.
    edge: u64,
    /// The window scale: bits by which the window is shifted.
    scale: u8,
}

impl ReceiveBuffer {
    /// The window that a SYN-ACK announces, if it can grow to `most` bytes: whole segments.
    pub(crate) fn first_window(mss: u64, most: u64) -> u64 {
        let room = most.min(INITIAL_WINDOW).min(SYN_WINDOW);
        (room - room % mss).max(mss)
    }

    /// The buffer of a connection.
    pub(super) fn new(params: &TcpParams) -> Self {
        let (mss, tuned) = (params.mss.as_u64(), params.tunes_window());
        let most = match tuned {
            true => params.receive_window.as_u64(),
            false => params.announced(params.receive_window.as_u64()),
        };
        let clamp = most.min(INITIAL_WINDOW).saturating_sub(mss);
        let clamp = clamp.max(2 * mss).min(most.max(mss));
        let first = Self::first_window(mss, most);
        let threshold = first.min(clamp);
        Self {
            mss,
            threshold,
            clamp,
            most,
            space: threshold.min(FIRST_FLIGHT * mss),
            round: (0, Time::ZERO),
            round_trip: Span::ZERO,
            echo: None,
            timestamps: params.timestamps,
            announced: tuned.then(|| Announced {
                edge: first,
                scale: params.window_scale(),
            }),
        }
    }

    /// The window that an acknowledgement of `next` announces, if it follows this buffer. It never takes back what was
    /// announced (tcp_select_window).
    #[inline]
    pub(super) fn announce(&mut self, next: u64) -> Option<u32> {
        let announced = self.announced.as_mut()?;
        let left = announced.edge.saturating_sub(next);
        let window = self.threshold.max(left);
        let (unit, most) = (1 << announced.scale, u64::from(u16::MAX) << announced.scale);
        let window = window.next_multiple_of(unit).min(most);
        announced.edge = next + window;
        Some(window as u32)
    }

    /// What there is room for, if the window follows this buffer.
    pub(super) fn room(&self) -> Option<u64> {
        self.announced.map(|_| self.threshold)
    }

    /// The connection is established.
    pub(super) fn on_established(&mut self, now: Time) {
        self.round.1 = now;
    }

    /// A segment arrived; `full` is the size from which on it measures the round trip.
    #[inline]
    pub(super) fn on_segment(&mut self, segment: &Segment, full: u32, now: Time) {
        if !self.timestamps {
            return;
        }
        // What an acknowledgement without data has echoed is no sample with the data that follows.
        let echo = Some(segment.ts_ecr);
        let counts = (self.echo != echo) & (segment.len >= full);
        self.echo = echo;
        let (sample, before) = (
            Span::from_ms(waited(segment.ts_ecr, now).max(1)),
            self.round_trip,
        );
        // It is less than the greater of the two, so that it needs no saturation.
        let smooth = before.as_ps() - before.as_ps() / SMOOTHING + sample.as_ps() / SMOOTHING;
        let smooth = Span::from_ps(smooth);
        let grows = (before > Span::ZERO) & (sample > before);
        // Without branches: often one segment of two has the echo of the other, so they are hard to predict.
        let after = select_unpredictable(grows, smooth, sample);
        self.round_trip = select_unpredictable(counts, after, before);
    }

    /// New data of `len` bytes is put into the buffer. Returns whether that raises the threshold.
    #[inline]
    pub(super) fn grows(&mut self, len: u32) -> bool {
        if self.threshold >= self.clamp || len < SHORTEST {
            return false;
        }
        let more = 2 * self.mss.max(u64::from(len));
        self.threshold = (self.threshold + more).min(self.clamp);
        true
    }

    /// The application has read everything up to the offset `next`.
    #[inline]
    pub(super) fn on_read(&mut self, next: u64, now: Time) {
        let (begin, since) = self.round;
        if self.round_trip > Span::ZERO && now - since >= self.round_trip {
            self.end_round(next - begin);
            self.round = (next, now);
        }
    }

    fn end_round(&mut self, copied: u64) {
        if copied <= self.space {
            return;
        }
        let needed = 2 * copied + CUSHION * self.mss;
        let growth = needed.saturating_mul(2 * (copied - self.space)) / self.space;
        let segments = needed.saturating_add(growth) / self.mss;
        self.clamp = segments
            .saturating_mul(self.window_of_segment())
            .min(self.most)
            .max(self.clamp);
        self.space = copied;
    }

    /// The window for which a segment's buffer counts.
    fn window_of_segment(&self) -> u64 {
        let memory = self.mss + OVERHEAD;
        let missing = (2 * self.mss).saturating_sub(memory);
        (memory + missing.next_multiple_of(OVERHEAD_STEP)) / 2
    }
}

#[cfg(test)]
mod tests {
    use redtail_core::Bytes;

    use super::*;
    use crate::presets::Preset;

    const MSS: u64 = 1448;

    fn at(ms: u64) -> Time {
        Time::ZERO + Span::from_ms(ms)
    }

    /// A buffer whose window is fixed.
    fn buffer(window: u64) -> ReceiveBuffer {
        ReceiveBuffer::new(&TcpParams {
            receive_window: Bytes::new(window),
            receive_autotuning: false,
            ..Preset::Linux.params()
        })
    }

    /// A full segment that answers what was sent at `sent` ms.
    fn answering(sent: u64) -> Segment {
        Segment {
            len: MSS as u32,
            ts_ecr: super::super::timestamps::timestamp(at(sent)),
            ..Segment::default()
        }
    }

    /// The segments, of these and no more, that raise the threshold.
    fn raised(buffer: &mut ReceiveBuffer, segments: u64) -> u64 {
        (0..segments).filter(|_| buffer.grows(MSS as u32)).count() as u64
    }

    #[test]
    fn at_the_start_the_window_is_all_that_half_of_128_kib_has_room_for() {
        let buffer = buffer(1 << 30);
        assert_eq!((buffer.threshold, buffer.clamp), (64_088, 64_088));
        assert_eq!(buffer.space, 10 * MSS);
    }

    /// The window announced for an acknowledgement of `next`.
    fn announced(buffer: &mut ReceiveBuffer, next: u64) -> u64 {
        u64::from(buffer.announce(next).expect("a tuned window"))
    }

    #[test]
    fn the_announced_window_follows_the_threshold_and_takes_nothing_back() {
        let mut buffer = ReceiveBuffer::new(&Preset::Linux.params());
        // The SYN-ACK has 45 segments, 65 160 bytes, more than the threshold of 64 088 bytes: what is left of them is
        // announced, in units of 2^7 = 128 bytes (6 MiB >> 7 is less than 2^16).
        assert_eq!(Preset::Linux.params().first_window(), 65_160);
        assert_eq!(announced(&mut buffer, 0), 510 * 128);
        // 510 x 128 - 1448 is less than the threshold, which is rounded up.
        assert_eq!(announced(&mut buffer, MSS), 501 * 128);
        buffer.on_established(at(0));
        buffer.on_segment(&answering(0), 1000, at(50));
        buffer.on_read(20 * MSS, at(50));
        // As below the clamp is 245 280 bytes, and a segment is worth 2896 of threshold.
        assert!(buffer.grows(MSS as u32));
        assert_eq!(announced(&mut buffer, 20 * MSS), 66_984 + 88);
        assert_eq!(raised(&mut buffer, 100), 62);
        assert_eq!(announced(&mut buffer, 30 * MSS), 245_280 + 96);
        // From then on it slides.
        assert_eq!(announced(&mut buffer, 31 * MSS), 245_376);
    }

    #[test]
    fn rounds_that_double_raise_the_window_to_half_of_six_mib() {
        let mut buffer = ReceiveBuffer::new(&Preset::Linux.params());
        buffer.on_established(at(0));
        buffer.on_segment(&answering(0), 1000, at(100));
        // Twice as much in each round trip: from a space of s segments to 2s, 3 (2 x 2s + 16) segments of 1460 bytes.
        let (mut read, mut clamps) = (0, Vec::new());
        for (round, segments) in (1..).zip([20, 40, 80, 160, 320]) {
            read += segments * MSS;
            buffer.on_read(read, at(100 * round));
            clamps.push(buffer.clamp);
        }
        let expected = [168, 288, 528, 1008, 1968].map(|segments| segments * 1460);
        assert_eq!(clamps, expected);
        // 640 segments would make room for 5.7 MB.
        buffer.on_read(read + 640 * MSS, at(600));
        assert_eq!(buffer.clamp, 3 << 20);
        let segments = raised(&mut buffer, 2000);
        assert_eq!(segments, (3_145_728_u64 - 64_088).div_ceil(2 * MSS));
        assert_eq!(announced(&mut buffer, read), 3 << 20);
    }

    #[test]
    fn a_small_window_bounds_it() {
        let mut buffer = buffer(30_000);
        assert_eq!((buffer.clamp, buffer.threshold), (28_552, 28_552));
        buffer.end_round(100_000);
        assert_eq!(buffer.clamp, 30_000);
    }

    #[test]
    fn a_round_that_reads_twice_as_much_makes_room_for_six_times_that_and_a_cushion() {
        let mut buffer = buffer(1 << 30);
        buffer.on_established(at(0));
        buffer.on_segment(&answering(0), 1000, at(50));
        // What is read in less than a round trip does not end the round, and what is not more than
        // the space, ten segments, changes nothing.
        buffer.on_read(10 * MSS, at(49));
        buffer.on_read(10 * MSS, at(50));
        assert_eq!((buffer.clamp, buffer.space), (64_088, 10 * MSS));
        // 3 (2 x 20 + 16) segments of (1448 + 832 + 5 x 128) / 2 = 1460 bytes.
        buffer.on_read(30 * MSS, at(100));
        assert_eq!((buffer.clamp, buffer.space), (168 * 1460, 20 * MSS));
        // Each segment is worth two of threshold: (245 280 - 64 088) / 2896 = 62.6.
        assert_eq!(raised(&mut buffer, 100), 63);
        // The same again is no reason.
        buffer.on_read(50 * MSS, at(150));
        assert_eq!(raised(&mut buffer, 100), 0);
    }

    #[test]
    fn short_segments_do_not_raise_it() {
        let mut buffer = buffer(1 << 30);
        buffer.end_round(20 * MSS);
        assert!(!buffer.grows(127) && buffer.grows(128));
    }

    #[test]
    fn the_round_trip_is_in_ticks_falls_at_once_and_rises_slowly() {
        let mut buffer = buffer(1 << 30);
        let mut sample = |sent, now: Time| {
            buffer.on_segment(&answering(sent), 1000, now);
            buffer.round_trip
        };
        let ms = Span::from_ms;
        assert_eq!(sample(10, at(60) + Span::from_us(900)), ms(50));
        assert_eq!(sample(20, at(62)), ms(42));
        // The same echo again is no sample.
        assert_eq!(sample(20, at(200)), ms(42));
        assert_eq!(sample(100, at(150)), ms(43));
        assert_eq!(sample(200, at(200)), ms(1));
    }

    #[test]
    fn an_echo_that_came_without_data_gives_no_sample() {
        let mut buffer = buffer(1 << 30);
        let bare = Segment {
            len: 0,
            ..answering(10)
        };
        buffer.on_segment(&bare, 1000, at(60));
        buffer.on_segment(&answering(10), 1000, at(61));
        assert_eq!(buffer.round_trip, Span::ZERO);
        buffer.on_segment(&answering(20), 1000, at(70));
        assert_eq!(buffer.round_trip, Span::from_ms(50));
    }

    #[test]
    fn without_timestamps_it_stays() {
        let params = TcpParams {
            timestamps: false,
            mss: Bytes::new(MSS),
            ..Preset::Linux.params()
        };
        let mut buffer = ReceiveBuffer::new(&params);
        buffer.on_segment(&answering(0), 1000, at(50));
        buffer.on_read(100 * MSS, at(1000));
        assert_eq!(raised(&mut buffer, 10), 0);
        assert_eq!(buffer.announce(0), None);
        assert_eq!(params.first_window(), 3 << 20);
    }
}
