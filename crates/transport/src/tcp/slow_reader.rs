//! A receiving application that reads at a limited rate, and the receive window that follows.
//!
//! Source: RFC 9293, sections 3.8.6 (the window) and 3.8.6.2.2 (when it may open:
//! avoidance of silly windows at the receiver), RFC 7323, sections 2.3 and 2.4
//! (its scale).
//!
//! | symbol | here | meaning, unit |
//! |---|---|---|
//! | RCV.BUFF | `buffer` | the receive buffer, bytes |
//! | RCV.USER | `next - read` | received in order and not read, bytes |
//! | RCV.NXT + RCV.WND | `offered` | the right edge of the window, a sequence number |
//! | Fr | 1/2 | share of the buffer that is worth a window, if less than a segment |
//!
//! ```text
//! the right edge moves when RCV.BUFF - RCV.USER - RCV.WND >= min(Fr RCV.BUFF, MSS)
//! ```
//!
//! The application reads at a constant rate while data is available. Time without data is not made
//! up for later.

use redtail_core::{Rate, Span, Time};

use crate::params::TcpParams;

const PS_PER_S: u128 = 1_000_000_000_000;

/// The application with its buffer.
#[derive(Clone, Debug)]
pub(super) struct SlowReader {
    rate: Rate,
    buffer: u64,
    mss: u64,
    /// The window scale: bits by which announced windows are shifted.
    scale: u8,
    /// Bytes read when the present period of reading began, and when it began.
    read: u64,
    since: Time,
    /// The highest right edge announced: data up to it is accepted.
    offered: u64,
    /// The right edge announced last; below `offered` by the rounding of the window.
    announced: u64,
}

impl SlowReader {
    pub(super) fn new(params: &TcpParams) -> Option<Self> {
        let buffer = match params.tunes_window() {
            true => params.first_window(),
            false => params.receive_window.as_u64(),
        };
        params.read_rate.map(|rate| Self {
            rate,
            buffer,
            mss: params.mss.as_u64(),
            scale: params.window_scale(),
            read: 0,
            since: Time::ZERO,
            offered: params.announced(buffer),
            announced: params.announced(buffer),
        })
    }

    /// Bytes read by `now`; `available` is the number of bytes received in order.
    pub(super) fn read_by(&self, now: Time, available: u64) -> u64 {
        let ps = u128::from((now - self.since).as_ps());
        let bytes = ps * u128::from(self.rate.as_bps()) / (8 * PS_PER_S);
        let read = u128::from(self.read) + bytes;
        read.min(u128::from(available)) as u64
    }

    /// When the first `bytes` bytes, which have arrived, have been read.
    fn time_of(&self, bytes: u64) -> Time {
        let bits = u128::from(bytes.saturating_sub(self.read)) * 8;
        let ps = (bits * PS_PER_S).div_ceil(u128::from(self.rate.as_bps()));
        self.since + Span::from_ps(u64::try_from(ps).unwrap_or(u64::MAX / 4))
    }

    /// The buffer has grown to `bytes`.
    pub(super) fn set_buffer(&mut self, bytes: u64) {
        self.buffer = bytes;
    }

    /// More data than `available` is about to arrive. A reader that has read everything begins a
    /// new period of reading.
    pub(super) fn on_arrival(&mut self, now: Time, available: u64) {
        if self.read_by(now, available) == available {
            (self.read, self.since) = (available, now);
        }
    }

    /// The right edge up to which data is accepted (RFC 9293, section 3.10.7.4: data outside the
    /// window is trimmed).
    pub(super) fn accepts_to(&self) -> u64 {
        self.offered
    }

    /// When all `available` bytes have been read.
    pub(super) fn end_of_file(&self, available: u64) -> Time {
        self.time_of(available)
    }

    /// The least step by which the right edge moves. It is at least one byte, because otherwise a
    /// buffer of one byte would be announced repeatedly.
    fn step(&self) -> u64 {
        (self.buffer / 2).clamp(1, self.mss)
    }

    /// The window to announce with an acknowledgement of `next`.
    pub(super) fn window(&mut self, now: Time, next: u64, available: u64) -> u64 {
        let edge = self.read_by(now, available) + self.buffer;
        if edge >= self.offered + self.step() {
            self.offered = edge;
        }
        // Rounding down may move the right edge back by less than one unit of the scale (RFC 7323,
        // section 2.4). Data up to the highest edge offered is still accepted.
        let most = u64::from(u16::MAX);
        let field = (self.offered.saturating_sub(next) >> self.scale).min(most);
        let window = field << self.scale;
        self.offered = self.offered.min(next + (most << self.scale));
        self.announced = next + window;
        window
    }

    /// When a window update is due. `None` unless the peer may be waiting for one, because less
    /// than a segment is left of the window it knows.
    pub(super) fn update_at(&self, next: u64, available: u64) -> Option<Time> {
        if self.announced >= next + self.mss {
            return None;
        }
        // At least a step beyond what is offered, in whole units of the scale.
        let unit = 1u64 << self.scale;
        let worth = self.step().next_multiple_of(unit);
        let edge = (self.offered + self.step()).max(next + worth);
        let read = edge.saturating_sub(self.buffer);
        (read <= available).then(|| self.time_of(read))
    }
}
