//! SCReAM: self-clocked rate adaptation, at the sender.
//!
//! Source: I. Johansson, Z. Sarker, "Self-Clocked Rate Adaptation for Multimedia", RFC 8298, 2017. Sections
//! below are its; the constants are those of 4.1.1.1.
//!
//! ```text
//! window:  + bytes acknowledged in fast increase; then, as LEDBAT,
//!          GAIN (target - qdelay) / target * bytes acknowledged * MSS / cwnd        (4.1.2.1)
//!          times BETA_LOSS on a loss, BETA_ECN on a mark, once in a round trip
//! target:  100 ms, up to 400 ms beside flows that fill the queue                    (4.1.2.2)
//! sending: while bytes in flight fit the window, one packet every size / pace rate  (4.1.2.4, 4.1.2.5)
//! rate:    every 200 ms, by the queue of packets at the sender and the trend of the delay (4.1.3)
//! ```
//!
//! | symbol | unit | what |
//! |---|---|---|
//! | qdelay | s | one-way delay above its minimum, as in RFC 6817 |
//! | cwnd | bytes | congestion window |
//! | rates | bit/s | headers included |
//!
//! Details that the RFC leaves open: the queue delay's history for the trend is sampled every 50 ms; the
//! loss event rate is an exponential average with weight 0.01, updated once in a round trip; rates are measured
//! over 200 ms and the median of the media rate over 10 s; `target_bitrate_last_max` is the target when fast
//! increase ends and at each loss or mark.

#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use libm::sqrt;
use redtail_core::{Span, Time};

use super::gcc::Bounds;
use super::packet::Report;

/// The least and the greatest target of the queue delay, in seconds.
const QDELAY_TARGET_LO: f64 = 0.1;
const QDELAY_TARGET_HI: f64 = 0.4;
/// Weight of the average of the queue delay's share of its target.
const QDELAY_WEIGHT: f64 = 0.1;
/// Trend at which fast increase ends.
const QDELAY_TREND_TH: f64 = 0.2;
/// Least window.
const MIN_CWND: f64 = 3000.0;
/// The window's limit, as a multiple of the most bytes in flight.
const MAX_BYTES_IN_FLIGHT_HEAD_ROOM: f64 = 1.1;
/// Gain of the window.
const GAIN: f64 = 1.0;
/// Factors of the window after a loss and after a mark, and of the target rate after a loss.
const BETA_LOSS: f64 = 0.8;
const BETA_ECN: f64 = 0.9;
const BETA_R: f64 = 0.9;
/// Time between two changes of the target rate.
const RATE_ADJUST_INTERVAL: Span = Span::from_ms(200);
/// The fastest increase of the target rate, in bit/s in a second.
const RAMP_UP_SPEED: f64 = 200_000.0;
/// How much the trend of the delay and the queue of packets reduce the rate.
const PRE_CONGESTION_GUARD: f64 = 0.1;
const TX_QUEUE_SIZE_FACTOR: f64 = 1.0;
/// Wait in the queue of packets above which the target rate is reduced, in seconds, and by what factor.
const RTP_QDELAY_TH: f64 = 0.02;
const TARGET_RATE_SCALE_RTP_QDELAY: f64 = 0.95;
/// Fast increase resumes when the trend has been below this for so long.
const QDELAY_TREND_LO: f64 = 0.2;
const T_RESUME_FAST_INCREASE: Span = Span::from_s(5);
/// The least pacing rate, in bit/s.
const RATE_PACE_MIN: f64 = 50_000.0;
/// The time of which the most bytes in flight are known (4.1.2.1).
const IN_FLIGHT_WINDOW: Span = Span::from_s(5);
/// Loss event rate from which on another flow fills the queue, and the variance (of delays in units of
/// the least target) below which the delay is stable (4.1.2.2).
const LOSS_EVENT_RATE_TH: f64 = 0.002;
const VARIANCE_TH: f64 = 0.2;
/// Samples of the queue delay of which the variance and the average are taken (4.1.2.2).
const VARIANCE_SAMPLES: usize = 200;
const AVERAGE_SAMPLES: usize = 50;
/// Samples of the trend, and the time between two.
const TREND_SAMPLES: usize = 20;
const TREND_INTERVAL: Span = Span::from_ms(50);
/// Weight of the loss event rate.
const LOSS_WEIGHT: f64 = 0.01;
/// Measurements of the media rate of which the median is taken: 10 s.
const MEDIA_RATES: usize = 50;
/// The minima of the one-way delay that are kept, and for how long each is collected (RFC 6817, section 4.2).
const BASE_HISTORY: usize = 10;
const BASE_INTERVAL: Span = Span::from_s(60);

/// A packet that was sent and not reported yet.
#[derive(Clone, Copy, Debug)]
struct Sent {
    sequence: u32,
    size: u32,
    at: Time,
}

/// Counters of bytes over an interval, and the rates that they make.
#[derive(Clone, Debug, Default)]
struct Rates {
    since: Option<Time>,
    bytes: [f64; 3],
    /// Transmitted, acknowledged, media; in bit/s.
    rates: [f64; 3],
    media: VecDeque<f64>,
}

impl Rates {
    const SENT: usize = 0;
    const ACKED: usize = 1;
    const MEDIA: usize = 2;

    fn update(&mut self, now: Time) {
        let since = *self.since.get_or_insert(now);
        let passed = now.saturating_since(since);
        if passed < RATE_ADJUST_INTERVAL {
            return;
        }
        self.rates = self.bytes.map(|bytes| 8.0 * bytes / passed.as_secs_f64());
        (self.bytes, self.since) = ([0.0; 3], Some(now));
        if self.media.len() == MEDIA_RATES {
            self.media.pop_front();
        }
        self.media.push_back(self.rates[Self::MEDIA]);
    }

    fn current(&self) -> f64 {
        self.rates[Self::SENT].max(self.rates[Self::ACKED])
    }

    fn media_median(&self) -> f64 {
        let mut sorted: Vec<f64> = self.media.iter().copied().collect();
        sorted.sort_by(f64::total_cmp);
        sorted.get(sorted.len() / 2).copied().unwrap_or(0.0)
    }
}

/// The controller of a sender.
#[derive(Clone, Debug)]
pub struct Scream {
    bounds: Bounds,
    cwnd: f64,
    qdelay: f64,
    qdelay_target: f64,
    qdelay_fraction_avg: f64,
    qdelay_fraction_hist: VecDeque<f64>,
    qdelay_norm_hist: VecDeque<f64>,
    qdelay_trend: f64,
    qdelay_trend_mem: f64,
    /// When the trend was last at or above the bound for resuming.
    trend_high_at: Time,
    sampled: Option<Time>,
    in_fast_increase: bool,
    target_bitrate: f64,
    target_bitrate_last_max: f64,
    adjusted: Option<Time>,
    loss_event_rate: f64,
    /// Whether there was a loss or a mark since the loss event rate was updated.
    loss_in_round: bool,
    loss_rate_updated: Option<Time>,
    /// When the window was last reduced.
    reduced: Option<Time>,
    s_rtt: Option<f64>,
    /// Packets above the highest number reported.
    in_flight: VecDeque<Sent>,
    bytes_in_flight: u64,
    /// The most bytes in flight, by second, with when each second began.
    most_in_flight: VecDeque<(Time, u64)>,
    /// Packets below the highest number that have not arrived, with when that was noticed.
    missing: Vec<(u32, Time)>,
    reordering: Span,
    marked: u32,
    base: VecDeque<(Time, f64)>,
    rates: Rates,
}

impl Scream {
    /// A controller whose target begins with this rate, in bit/s.
    pub fn new(rate: f64, bounds: Bounds) -> Self {
        Self {
            bounds,
            cwnd: MIN_CWND,
            qdelay: 0.0,
            qdelay_target: QDELAY_TARGET_LO,
            qdelay_fraction_avg: 0.0,
            qdelay_fraction_hist: VecDeque::new(),
            qdelay_norm_hist: VecDeque::new(),
            qdelay_trend: 0.0,
            qdelay_trend_mem: 0.0,
            trend_high_at: Time::ZERO,
            sampled: None,
            in_fast_increase: true,
            target_bitrate: rate,
            target_bitrate_last_max: 1.0,
            adjusted: None,
            loss_event_rate: 0.0,
            loss_in_round: false,
            loss_rate_updated: None,
            reduced: None,
            s_rtt: None,
            in_flight: VecDeque::new(),
            bytes_in_flight: 0,
            most_in_flight: VecDeque::new(),
            missing: Vec::new(),
            reordering: Span::ZERO,
            marked: 0,
            base: VecDeque::new(),
            rates: Rates::default(),
        }
    }

    /// The target of the media's rate in bit/s.
    pub fn target(&self) -> f64 {
        self.target_bitrate
    }

    /// The smoothed round-trip time; `None` before the first report.
    pub fn round_trip(&self) -> Option<Span> {
        self.s_rtt.map(Span::from_secs_f64)
    }

    /// Whether a packet of `size` bytes may be sent: the send window (4.1.2.4).
    pub fn may_send(&self, size: u32) -> bool {
        let slack = if self.qdelay <= self.qdelay_target {
            MSS
        } else {
            0.0
        };
        (self.bytes_in_flight + u64::from(size)) as f64 <= self.cwnd + slack
    }

    /// The time from a packet of `size` bytes to the next (4.1.2.5).
    pub fn pace(&self, size: u32) -> Span {
        let rate = self
            .s_rtt
            .map_or(self.target_bitrate, |rtt| self.cwnd * 8.0 / rtt);
        Span::from_secs_f64(8.0 * f64::from(size) / rate.max(RATE_PACE_MIN))
    }

    /// The encoder has made so many bytes.
    pub fn made(&mut self, bytes: f64) {
        self.rates.bytes[Rates::MEDIA] += bytes;
    }

    /// Packet `sequence` of `size` bytes is sent.
    pub fn sent(&mut self, sequence: u32, size: u32, now: Time) {
        self.rates.bytes[Rates::SENT] += f64::from(size);
        self.bytes_in_flight += u64::from(size);
        self.in_flight.push_back(Sent {
            sequence,
            size,
            at: now,
        });
        self.note_in_flight(now);
    }

    /// A report arrives; `queued` bytes wait at the sender.
    pub fn report(&mut self, report: &Report, queued: f64, now: Time) {
        let Some((acked, latest)) = self.acknowledge(report, now) else {
            return; // an older report
        };
        self.rates.bytes[Rates::ACKED] += acked;
        self.rates.update(now);
        self.measure(report, latest, now);
        let lost = self.find_losses(report, now);
        let marked = report.marked > self.marked;
        self.marked = report.marked.max(self.marked);
        self.update_loss_rate(lost || marked, now);
        let round = self.s_rtt.map_or(Span::ZERO, Span::from_secs_f64);
        let recently = |at: Time| now.saturating_since(at) < round;
        if (lost || marked) && !self.reduced.is_some_and(recently) {
            self.reduce(lost, now);
        } else {
            self.update_cwnd(acked);
        }
        self.adjust_qdelay_target();
        self.check_to_resume_fast_increase(now);
        let due = |at: Time| now.saturating_since(at) >= RATE_ADJUST_INTERVAL;
        if due(*self.adjusted.get_or_insert(now)) {
            self.adjusted = Some(now);
            self.adjust_bitrate(queued);
        }
    }

    /// Bytes newly acknowledged, lost ones among them, and when the latest of them was sent.
    fn acknowledge(&mut self, report: &Report, now: Time) -> Option<(f64, Time)> {
        let (mut acked, mut latest) = (0_u64, None);
        while let Some(&sent) = self
            .in_flight
            .front()
            .filter(|it| it.sequence <= report.highest)
        {
            self.in_flight.pop_front();
            acked += u64::from(sent.size);
            latest = Some(sent.at);
            if sent.sequence < report.highest {
                self.missing.push((sent.sequence, now));
            }
        }
        self.bytes_in_flight -= acked;
        Some((acked as f64, latest?))
    }

    /// The round-trip time, and the delay of the queue from the latest packet (RFC 6817).
    fn measure(&mut self, report: &Report, latest: Time, now: Time) {
        // The report left when the packet arrived or later.
        let rtt = now.saturating_since(latest).as_secs_f64();
        // RFC 6298, section 2.
        self.s_rtt = Some(self.s_rtt.map_or(rtt, |known| known + (rtt - known) / 8.0));
        let delay = report.arrived.saturating_since(latest).as_secs_f64();
        match self.base.back_mut() {
            Some((since, least)) if now.saturating_since(*since) < BASE_INTERVAL => {
                *least = least.min(delay);
            }
            _ => {
                self.base.push_back((now, delay));
                if self.base.len() > BASE_HISTORY {
                    self.base.pop_front();
                }
            }
        }
        let base = self.base.iter().map(|(_, least)| *least);
        self.qdelay = delay - base.fold(f64::INFINITY, f64::min);
        let due = |at: Time| now.saturating_since(at) >= TREND_INTERVAL;
        if self.sampled.is_none_or(due) {
            self.sampled = Some(now);
            self.update_trend(now);
        }
    }

    /// `update_variables` (4.1.2.1): the trend of the queue delay.
    fn update_trend(&mut self, now: Time) {
        let fraction = self.qdelay / self.qdelay_target;
        self.qdelay_fraction_avg += QDELAY_WEIGHT * (fraction - self.qdelay_fraction_avg);
        push(&mut self.qdelay_fraction_hist, fraction, TREND_SAMPLES);
        let correlation = autocorrelation(&self.qdelay_fraction_hist);
        self.qdelay_trend = (correlation * self.qdelay_fraction_avg).clamp(0.0, 1.0);
        self.qdelay_trend_mem = (0.99 * self.qdelay_trend_mem).max(self.qdelay_trend);
        if self.qdelay_trend >= QDELAY_TREND_LO {
            self.trend_high_at = now;
        }
    }

    /// Whether packets are now known to be lost (4.1.2.3): they have not arrived within the reordering
    /// window after a later one.
    fn find_losses(&mut self, report: &Report, now: Time) -> bool {
        let mut lost = false;
        let reordering = &mut self.reordering;
        self.missing.retain(|&(sequence, since)| {
            let waited = now.saturating_since(since);
            let bit = report.highest.wrapping_sub(sequence).wrapping_sub(1);
            let has_arrived = bit < 64 && report.acknowledged >> bit & 1 == 1;
            if has_arrived {
                *reordering = (*reordering).max(waited);
                return false;
            }
            let is_lost = waited >= *reordering;
            lost |= is_lost;
            !is_lost
        });
        lost
    }

    fn update_loss_rate(&mut self, event: bool, now: Time) {
        self.loss_in_round |= event;
        let round = self.s_rtt.map_or(Span::ZERO, Span::from_secs_f64);
        if now.saturating_since(*self.loss_rate_updated.get_or_insert(now)) < round {
            return;
        }
        self.loss_rate_updated = Some(now);
        let event = f64::from(u8::from(std::mem::take(&mut self.loss_in_round)));
        self.loss_event_rate += LOSS_WEIGHT * (event - self.loss_event_rate);
    }

    /// The window and the target rate after a loss, or a mark.
    fn reduce(&mut self, lost: bool, now: Time) {
        self.in_fast_increase = false;
        self.reduced = Some(now);
        self.trend_high_at = now;
        self.target_bitrate_last_max = self.target_bitrate;
        let (window, rate) = match lost {
            true => (BETA_LOSS, BETA_R),
            false => (BETA_ECN, BETA_ECN),
        };
        self.cwnd = (window * self.cwnd).max(MIN_CWND);
        self.target_bitrate = self.bounds.of(rate * self.target_bitrate);
        // The rate change procedure ends here (4.1.3).
        self.adjusted = Some(now);
    }

    /// `update_cwnd` (4.1.2.1).
    fn update_cwnd(&mut self, acked: f64) {
        let in_flight = self.bytes_in_flight as f64;
        if self.in_fast_increase {
            if self.qdelay_trend < QDELAY_TREND_TH {
                if in_flight * 1.5 + acked > self.cwnd {
                    self.cwnd += acked;
                }
                return;
            }
            self.in_fast_increase = false;
            self.target_bitrate_last_max = self.target_bitrate;
        }
        let off_target = (self.qdelay_target - self.qdelay) / self.qdelay_target;
        let is_unused = in_flight * 1.25 + acked <= self.cwnd;
        if off_target <= 0.0 || !is_unused {
            self.cwnd += GAIN * off_target * acked * MSS / self.cwnd;
        }
        let most = self.most_in_flight.iter().map(|(_, bytes)| *bytes).max();
        let most = most.unwrap_or(0) as f64 * MAX_BYTES_IN_FLIGHT_HEAD_ROOM;
        self.cwnd = self.cwnd.min(most).max(MIN_CWND);
    }

    /// Compensation for competing flows (4.1.2.2).
    fn adjust_qdelay_target(&mut self) {
        push(
            &mut self.qdelay_norm_hist,
            self.qdelay / QDELAY_TARGET_LO,
            VARIANCE_SAMPLES,
        );
        let (_, variance) = moments(self.qdelay_norm_hist.iter());
        let (average, _) = moments(self.qdelay_norm_hist.iter().rev().take(AVERAGE_SAMPLES));
        let new = (average + sqrt(variance)) * QDELAY_TARGET_LO;
        let target = if self.loss_event_rate > LOSS_EVENT_RATE_TH {
            1.5 * new
        } else if variance < VARIANCE_TH {
            new
        } else if new < QDELAY_TARGET_LO {
            (0.5 * self.qdelay_target).max(new)
        } else {
            0.9 * self.qdelay_target
        };
        self.qdelay_target = target.clamp(QDELAY_TARGET_LO, QDELAY_TARGET_HI);
    }

    /// 4.1.2.6.
    fn check_to_resume_fast_increase(&mut self, now: Time) {
        if now.saturating_since(self.trend_high_at) >= T_RESUME_FAST_INCREASE {
            self.in_fast_increase = true;
        }
    }

    /// Media rate control (4.1.3).
    fn adjust_bitrate(&mut self, queued: f64) {
        let ramp =
            RAMP_UP_SPEED.min(self.target_bitrate / 2.0) * RATE_ADJUST_INTERVAL.as_secs_f64();
        let last_max = self.target_bitrate_last_max;
        let scale = 4.0 * (self.target_bitrate - last_max) / last_max;
        let scale = (scale * scale).clamp(0.2, 1.0);
        let current = self.rates.current();
        if self.in_fast_increase {
            self.target_bitrate += ramp * scale;
        } else {
            let guard = 1.0 - PRE_CONGESTION_GUARD * self.qdelay_trend;
            let change = current * guard - TX_QUEUE_SIZE_FACTOR * 8.0 * queued;
            self.target_bitrate += match change > 0.0 {
                true => (change * scale).min(ramp),
                false => change,
            };
            if current > 0.0 && 8.0 * queued / current > RTP_QDELAY_TH {
                self.target_bitrate *= TARGET_RATE_SCALE_RTP_QDELAY;
            }
        }
        let media = self.rates.rates[Rates::MEDIA].max(self.rates.media_median());
        let most = current.max(media) * (2.0 - self.qdelay_trend_mem);
        self.target_bitrate = self.bounds.of(self.target_bitrate.min(most));
    }

    fn note_in_flight(&mut self, now: Time) {
        let bytes = self.bytes_in_flight;
        match self.most_in_flight.back_mut() {
            Some((since, most)) if now.saturating_since(*since) < Span::from_s(1) => {
                *most = (*most).max(bytes);
            }
            _ => self.most_in_flight.push_back((now, bytes)),
        }
        let old = |since: Time| now.saturating_since(since) >= IN_FLIGHT_WINDOW;
        if self
            .most_in_flight
            .front()
            .is_some_and(|(since, _)| old(*since))
        {
            self.most_in_flight.pop_front();
        }
    }
}

/// Maximum segment size in the window's steps, in bytes.
const MSS: f64 = 1000.0;

fn push(history: &mut VecDeque<f64>, value: f64, most: usize) {
    if history.len() == most {
        history.pop_front();
    }
    history.push_back(value);
}

/// The average and the variance; zeros of nothing.
fn moments<'a>(values: impl Iterator<Item = &'a f64>) -> (f64, f64) {
    let (mut count, mut sum, mut squares) = (0.0, 0.0, 0.0);
    for value in values {
        count += 1.0;
        sum += value;
        squares += value * value;
    }
    if count == 0.0 {
        return (0.0, 0.0);
    }
    let average = sum / count;
    (average, (squares / count - average * average).max(0.0))
}

/// R(1) / R(0) of a history around its average; zero if it does not vary.
fn autocorrelation(history: &VecDeque<f64>) -> f64 {
    let (average, _) = moments(history.iter());
    let around = |value: &f64| value - average;
    let squares: f64 = history
        .iter()
        .map(|value| around(value) * around(value))
        .sum();
    let pairs = history.iter().zip(history.iter().skip(1));
    let products: f64 = pairs.map(|(one, next)| around(one) * around(next)).sum();
    if squares > 0.0 {
        products / squares
    } else {
        0.0
    }
}
