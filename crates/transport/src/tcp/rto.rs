//! Round-trip estimation and the retransmission timeout.
//!
//! Source: RFC 6298; Karn's rule and back-off, sections 3 and 5.
//!
//! | symbol | meaning |
//! |---|---|
//! | R' | a round-trip sample |
//! | G | granularity of the clock that took it |
//! | SRTT, RTTVAR | smoothed round trip and its mean deviation |
//!
//! ```text
//! RTTVAR <- 3/4 RTTVAR + 1/4 |SRTT - R'|
//! SRTT   <- 7/8 SRTT + 1/8 R'
//! RTO    <- SRTT + max(G, 4 RTTVAR), between the minimum and the maximum
//! ```

use std::num::NonZeroU64;

use redtail_core::{Span, Time};

use super::shared::{Shared, SharedParams};
use super::timer_wheel::TimerWheel;

pub use crate::choices::{RtoFloor, RttDeviation, RttSampling, SynLoss, TimerRestart};
use crate::params::TcpParams;

/// The estimator, with the back-off of the timer that uses it.
///
/// Kept in scaled integers of clock ticks, as in V. Jacobson and M. Karels,
/// "Congestion Avoidance and Control", 1988, appendix A: with a coarse clock the
/// rounding is part of the behaviour (the deviation never decays below three
/// quarters of a tick, which keeps the timeout above a steady round trip). An
/// exact clock ticks in picoseconds.
#[derive(Clone, Debug)]
pub struct RttEstimator {
    params: Shared<SharedParams>,
    estimate: Estimate,
    /// Set if the greatest deviation or other weights are used. Boxed, so that other senders stay small.
    other: Option<Box<Other>>,
    backoff: u32,
    /// The number of round-trip samples in `taken`.
    samples: u32,
    /// The timeout, back-off included. It is stored because each segment sent reads it, and fewer samples
    /// change it.
    rto: Span,
    taken: Taken,
}

/// The parameters of a retransmission timer and its estimator.
#[derive(Debug)]
pub(super) struct TimerParams {
    /// Picoseconds in a tick of the clock that measures round trips.
    tick: u64,
    /// That clock.
    clock: TimerWheel,
    min: Span,
    max: Span,
    /// The timeout before the first sample.
    initial: Span,
    floor: RtoFloor,
    pub(super) restart: TimerRestart,
    /// The clock of the timer.
    pub(super) wheel: TimerWheel,
}

impl TimerParams {
    pub(super) fn new(params: &TcpParams) -> Self {
        Self {
            tick: params.clock_granularity.as_ps().max(1),
            clock: TimerWheel::new(params.clock_granularity),
            min: params.min_rto,
            max: params.max_rto,
            initial: params.initial_rto,
            floor: params.rto_floor,
            restart: params.timer_restart,
            wheel: TimerWheel::new(params.timer_tick),
        }
    }
}

/// What an estimator has that is not that of RFC 6298.
#[derive(Clone, Copy, Debug)]
struct Other {
    peak: Option<Peak>,
    weights: Option<Weights>,
}

/// The constants of the estimator.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Weights {
    alpha: f64,
    beta: f64,
    k: f64,
}

impl Weights {
    /// Those of RFC 6298, which the estimator has as shifts of integers.
    const USUAL: Self = Self {
        alpha: 0.125,
        beta: 0.25,
        k: 4.0,
    };

    /// Those of the parameters if they are others.
    fn unusual(params: &TcpParams) -> Option<Self> {
        let weights = Self {
            alpha: params.rto_alpha,
            beta: params.rto_beta,
            k: params.rto_k,
        };
        (weights != Self::USUAL).then_some(weights)
    }

    /// `value`, which is `scale` times an average, after a sample of the weight `weight`.
    fn moved(value: u64, sample: u64, scale: f64, weight: f64) -> u64 {
        let value = value as f64;
        (value + weight * (scale * sample as f64 - value)).round() as u64
    }
}

/// What is known of the round trip.
#[derive(Clone, Copy, Debug)]
enum Estimate {
    /// There is no sample yet: the timeout is `initial`.
    None { initial: Span },
    Known {
        /// Eight times SRTT, in ticks.
        srtt8: NonZeroU64,
        /// Four times RTTVAR, in ticks; with another K so many times.
        rttvar4: u64,
    },
}

/// The round-trip samples that were taken since the measurement began.
#[derive(Clone, Copy, Debug)]
struct Taken {
    /// Of the first 2^32 - 1 of them, in units of 1024 ps, which do not overflow in any run.
    sum: u64,
    least: Span,
}

impl Taken {
    const NONE: Self = Self {
        sum: 0,
        least: Span::from_ps(u64::MAX),
    };
}

/// The greatest deviation of a round trip, in ticks. Four times the mean, like `rttvar4`.
#[derive(Clone, Copy, Debug, Default)]
struct Peak {
    /// The mean deviation itself (mdev_us of Linux).
    mean4: u64,
    /// The greatest since this round trip began (mdev_max_us).
    greatest4: u64,
    /// The initial value of `greatest4`.
    least4: u64,
    /// The round trip ends when data beyond this offset is acknowledged (rtt_seq).
    round: u64,
}

impl Peak {
    fn first(&mut self, r: u64, next: u64) -> u64 {
        self.mean4 = r << 1;
        self.greatest4 = self.mean4.max(self.least4);
        self.round = next;
        self.greatest4
    }

    /// Updates the deviation by a sample `r`; `srtt` is the smoothed round trip before it. `counts`
    /// is the deviation in use; returns its new value.
    fn next(&mut self, r: u64, srtt: u64, mut counts: u64, una: u64, next: u64) -> u64 {
        let (error, quarter) = (r.abs_diff(srtt), self.mean4 >> 2);
        self.mean4 = match error.checked_sub(quarter) {
            None => self.mean4 - (quarter - error),
            // A falling round trip raises the deviation by less.
            Some(more) if r < srtt => self.mean4 + (more >> 3),
            Some(more) => self.mean4 + more,
        };
        self.greatest4 = self.greatest4.max(self.mean4);
        counts = counts.max(self.greatest4);
        if una > self.round {
            counts -= (counts - self.greatest4) >> 2;
            self.round = next;
            self.greatest4 = self.least4;
        }
        counts
    }
}

/// Eight times SRTT after a sample `r` (RFC 6298, rule 2.3).
#[inline(always)]
fn smoothed(srtt8: u64, r: u64) -> u64 {
    srtt8 + r - (srtt8 >> 3)
}

impl RttEstimator {
    /// An estimator without samples.
    pub fn new(params: &TcpParams) -> Self {
        let tick = params.clock_granularity.as_ps().max(1);
        let peak = (params.rtt_deviation == RttDeviation::Peak).then(|| Peak {
            least4: match params.rto_floor {
                RtoFloor::Timeout => 0,
                RtoFloor::Deviation => params.min_rto.as_ps() / tick,
            },
            ..Peak::default()
        });
        let weights = Weights::unusual(params);
        let mut estimator = Self {
            params: Shared::new(SharedParams::new(params)),
            estimate: Estimate::None {
                initial: params.initial_rto,
            },
            other: (peak.is_some() || weights.is_some()).then(|| Box::new(Other { peak, weights })),
            backoff: 0,
            samples: 0,
            rto: Span::ZERO,
            taken: Taken::NONE,
        };
        estimator.update_rto();
        estimator
    }

    /// Becomes a copy of `fresh`.
    pub(super) fn renew(&mut self, fresh: &Self) {
        copy_fields!(self, fresh; params; other; estimate, backoff, samples, rto, taken);
    }

    /// What the senders of a group share.
    #[inline]
    pub(super) fn params(&self) -> &SharedParams {
        &self.params
    }

    /// Mean and least of the samples since the measurement began, without the rounding of the
    /// clock; `None` without any.
    pub fn round_trips(&self) -> Option<(Span, Span)> {
        let (count, Taken { sum, least }) = (u64::from(self.samples), self.taken);
        (count > 0).then(|| (Span::from_ps((sum / count) << 10), least))
    }

    /// The measurement begins.
    pub fn start_measuring(&mut self) {
        self.samples = 0;
        self.taken = Taken::NONE;
    }

    /// The smoothed round-trip time, once there is a sample.
    #[inline]
    pub fn srtt(&self) -> Option<Span> {
        match self.estimate {
            Estimate::None { .. } => None,
            Estimate::Known { srtt8, .. } => {
                Some(Span::from_ps((srtt8.get() >> 3) * self.params.timer.tick))
            }
        }
    }

    /// Takes the round trip of a segment that was sent once, at `sent`, and acknowledged at `now`.
    /// Ends any back-off (RFC 6298, section 5). Data is acknowledged up to `una` and was sent up to
    /// `next`.
    #[inline(never)] // in the most frequent path few acknowledgements give a sample
    pub fn sample(&mut self, sent: Time, now: Time, una: u64, next: u64) {
        if self.other.is_some() {
            return self.sample_otherwise(sent, now, una, next);
        }
        self.enter(sent, now, smoothed, |r, known| match known {
            None => r << 1,
            Some((srtt, rttvar4)) => (rttvar4 + r.abs_diff(srtt) - (rttvar4 >> 2)).max(1),
        });
    }

    #[inline(never)] // so that the function above is short
    fn sample_otherwise(&mut self, sent: Time, now: Time, una: u64, next: u64) {
        let Some(mut other) = self.other.take() else {
            return;
        };
        let weights = other.weights;
        let peak = other.peak.as_mut();
        let Weights { alpha, beta, k } = weights.unwrap_or(Weights::USUAL);
        // The peak is four times a deviation whatever K is.
        let (four, times_k) = (
            |value: u64| (4.0 / k * value as f64).round() as u64,
            |value: u64| (k / 4.0 * value as f64).round() as u64,
        );
        let srtt8 = |srtt8: u64, r: u64| match weights {
            None => smoothed(srtt8, r),
            Some(_) => Weights::moved(srtt8, r, 8.0, alpha),
        };
        self.enter(sent, now, srtt8, |r, known| match (known, peak, weights) {
            (None, Some(peak), None) => peak.first(r, next),
            (None, Some(peak), Some(_)) => times_k(peak.first(r, next)),
            (None, None, _) => times_k(r << 1),
            (Some((srtt, rttvar4)), Some(peak), None) => peak.next(r, srtt, rttvar4, una, next),
            (Some((srtt, rttvar4)), Some(peak), Some(_)) => {
                times_k(peak.next(r, srtt, four(rttvar4), una, next))
            }
            (Some((srtt, rttvar4)), None, _) => {
                Weights::moved(rttvar4, r.abs_diff(srtt), k, beta).max(1)
            }
        });
        self.other = Some(other);
    }

    /// Takes a round trip. `smooth` gives eight times SRTT, in ticks, from its value before and the sample; `deviation` gives four times the mean deviation from the sample and what is known: SRTT
    /// and four times RTTVAR, in ticks.
    #[inline(always)] // into the two functions above
    fn enter(
        &mut self,
        sent: Time,
        now: Time,
        smooth: impl FnOnce(u64, u64) -> u64,
        deviation: impl FnOnce(u64, Option<(u64, u64)>) -> u64,
    ) {
        // In whole ticks of the clock, at least one.
        let clock = self.params.timer.clock;
        let ticks = |time: Time| match self.params.timer.tick {
            1 => time.as_ps(), // an exact clock needs no division
            _ => clock.ticks(time.as_ps()),
        };
        let r = (ticks(now) - ticks(sent)).max(1);
        if self.samples < u32::MAX {
            self.samples += 1;
            self.taken.sum += (now - sent).as_ps() >> 10;
        }
        self.taken.least = self.taken.least.min(now - sent);
        let (srtt8, rttvar4) = match self.estimate {
            Estimate::None { .. } => (r << 3, deviation(r, None)),
            Estimate::Known { srtt8, rttvar4 } => {
                let srtt = srtt8.get() >> 3;
                let rttvar4 = deviation(r, Some((srtt, rttvar4)));
                (smooth(srtt8.get(), r), rttvar4)
            }
        };
        self.estimate = Estimate::Known {
            srtt8: NonZeroU64::new(srtt8).unwrap_or(NonZeroU64::MIN),
            rttvar4,
        };
        self.backoff = 0;
        self.rto = self.base();
    }

    /// The timeout to set now, back-off included.
    #[inline]
    pub fn rto(&self) -> Span {
        self.rto
    }

    #[inline]
    fn update_rto(&mut self) {
        self.rto = self.backed_off(self.backoff);
    }

    /// The timeout doubled `times` times, up to the maximum.
    #[inline]
    pub fn backed_off(&self, times: u32) -> Span {
        let max = self.params.timer.max;
        // 2^16 times any timeout is beyond any maximum.
        self.base()
            .checked_mul(1 << times.min(16))
            .map_or(max, |rto| rto.min(max))
    }

    /// The timeout without back-off, between the minimum and the maximum.
    #[inline]
    fn base(&self) -> Span {
        let &TimerParams {
            tick,
            min,
            max,
            floor,
            ..
        } = &self.params.timer;
        let base = match self.estimate {
            Estimate::None { initial } => initial,
            Estimate::Known { srtt8, rttvar4 } => {
                let deviation = Span::from_ps(rttvar4 * tick);
                Span::from_ps((srtt8.get() >> 3) * tick)
                    + match floor {
                        RtoFloor::Timeout => deviation,
                        RtoFloor::Deviation => deviation.max(min),
                    }
            }
        };
        base.max(min).min(max)
    }

    /// Doubles the timeout until the next sample (RFC 6298, rule 5.5).
    pub fn back_off(&mut self) {
        self.backoff += 1;
        self.update_rto();
    }

    /// Ends the back-off without a sample.
    pub fn end_back_off(&mut self) {
        self.backoff = 0;
        self.update_rto();
    }

    /// Sets the timeout to at least `floor` when data transmission begins after a lost SYN (RFC
    /// 6298, rule 5.7).
    pub fn restart_with(&mut self, floor: Span) {
        self.estimate = Estimate::None {
            initial: self.params.timer.initial.max(floor),
        };
        self.backoff = 0;
        self.update_rto();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn estimator() -> RttEstimator {
        RttEstimator::new(&TcpParams {
            min_rto: Span::from_ms(200),
            ..TcpParams::default()
        })
    }

    fn at(ms: u64) -> Time {
        Time::ZERO + Span::from_ms(ms)
    }

    #[test]
    fn the_first_sample_sets_the_timeout_to_three_round_trips() {
        // RFC 6298, rule 2.2: RTO = R + 4 (R / 2).
        let mut rtt = estimator();
        rtt.sample(at(0), at(100), 0, 0);
        assert_eq!(rtt.rto(), Span::from_ms(300));
    }

    #[test]
    fn other_weights_are_those_of_the_formulas() {
        let of = |alpha: f64, beta: f64, k: f64| {
            let mut rtt = RttEstimator::new(&TcpParams {
                min_rto: Span::from_ms(1),
                rto_alpha: alpha,
                rto_beta: beta,
                rto_k: k,
                ..TcpParams::default()
            });
            rtt.sample(at(0), at(100), 0, 0);
            rtt.sample(at(200), at(400), 0, 0);
            (rtt.srtt().expect("there are samples"), rtt.rto())
        };
        // RTTVAR = 3/4 50 + 1/4 100, SRTT = 7/8 100 + 1/8 200; RTO = SRTT + 4 RTTVAR.
        let ms = |ms: f64| Span::from_secs_f64(ms / 1000.0);
        assert_eq!(of(0.125, 0.25, 4.0), (ms(112.5), ms(362.5)));
        assert_eq!(of(0.125, 0.25, 2.0), (ms(112.5), ms(237.5)));
        // RTTVAR = 1/2 50 + 1/2 100, SRTT = 200.
        assert_eq!(of(1.0, 0.5, 4.0), (ms(200.0), ms(500.0)));
    }

    #[test]
    fn a_steady_round_trip_lets_the_timeout_fall_to_its_minimum() {
        let mut rtt = estimator();
        for i in 0..200 {
            rtt.sample(at(i), at(i + 100), 0, 0);
        }
        assert_eq!(rtt.rto(), Span::from_ms(200));
    }

    #[test]
    fn back_off_doubles_up_to_the_maximum_and_ends_with_a_sample() {
        let mut rtt = estimator();
        rtt.sample(at(0), at(100), 0, 0);
        rtt.back_off();
        rtt.back_off();
        assert_eq!(rtt.rto(), Span::from_ms(1200));
        for _ in 0..100 {
            rtt.back_off();
        }
        assert_eq!(rtt.rto(), Span::from_s(60));
        rtt.sample(at(0), at(100), 0, 0);
        assert!(rtt.rto() < Span::from_ms(400));
    }

    #[test]
    fn a_coarse_clock_measures_in_whole_ticks() {
        let mut rtt = RttEstimator::new(&TcpParams {
            clock_granularity: Span::from_ms(10),
            ..TcpParams::default()
        });
        rtt.sample(at(5), at(108), 0, 0); // ticks 0 and 10
        assert_eq!(rtt.srtt(), Some(Span::from_ms(100)));
    }
}
