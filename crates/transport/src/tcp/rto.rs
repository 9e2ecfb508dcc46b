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

use redtail_core::schemars::JsonSchema;
use redtail_core::serde::{Deserialize, Serialize};
use redtail_core::{Span, Time, schemars, serde};

use crate::params::TcpParams;

/// Which segments give round-trip samples; never a retransmitted one (Karn).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(crate = "serde", rename_all = "kebab-case")]
#[schemars(crate = "schemars")]
pub enum RttSampling {
    /// The newest segment that each acknowledgement covers.
    EveryAck,
    /// One segment timed at a time (RFC 6298, section 3, the least allowed; ns-2 without timestamps).
    OnePerWindow,
}

/// The estimator, with the back-off of the timer that uses it.
#[derive(Clone, Debug)]
pub struct RttEstimator {
    granularity: Span,
    min: Span,
    max: Span,
    initial: Span,
    srtt: Option<Span>,
    rttvar: Span,
    backoff: u32,
}

impl RttEstimator {
    /// An estimator without samples.
    pub fn new(params: &TcpParams) -> Self {
        Self {
            granularity: params.clock_granularity,
            min: params.min_rto,
            max: params.max_rto,
            initial: params.initial_rto,
            srtt: None,
            rttvar: Span::ZERO,
            backoff: 0,
        }
    }

    /// The smoothed round-trip time, once there is a sample.
    pub fn srtt(&self) -> Option<Span> {
        self.srtt
    }

    /// Takes the round trip of a segment sent once, at `sent`, and acknowledged
    /// at `now`; ends any back-off (RFC 6298, section 5).
    #[inline]
    pub fn sample(&mut self, sent: Time, now: Time) {
        let r = self.measure(sent, now);
        match self.srtt {
            None => {
                self.srtt = Some(r);
                self.rttvar = r / 2;
            }
            Some(srtt) => {
                let error = if r > srtt { r - srtt } else { srtt - r };
                self.rttvar = self.rttvar - self.rttvar / 4 + error / 4;
                self.srtt = Some(srtt - srtt / 8 + r / 8);
            }
        }
        self.backoff = 0;
    }

    /// The sample as the sender's clock sees it: in whole ticks, at least one.
    #[inline]
    fn measure(&self, sent: Time, now: Time) -> Span {
        let tick = self.granularity.as_ps();
        if tick == 0 {
            return now - sent;
        }
        let ticks = now.as_ps() / tick - sent.as_ps() / tick;
        Span::from_ps(ticks.max(1) * tick)
    }

    /// The timeout to set now, back-off included.
    #[inline]
    pub fn rto(&self) -> Span {
        let base = match self.srtt {
            None => self.initial,
            Some(srtt) => srtt + (self.rttvar * 4).max(self.granularity),
        };
        let base = base.max(self.min).min(self.max);
        // 2^16 times any timeout is beyond any maximum.
        base.checked_mul(1 << self.backoff.min(16))
            .map_or(self.max, |rto| rto.min(self.max))
    }

    /// Doubles the timeout until the next sample (RFC 6298, rule 5.5).
    pub fn back_off(&mut self) {
        self.backoff += 1;
    }

    /// Ends the back-off without a sample.
    pub fn end_back_off(&mut self) {
        self.backoff = 0;
    }

    /// After a lost SYN: starts the data with at least `floor` (RFC 6298, rule 5.7).
    pub fn restart_with(&mut self, floor: Span) {
        self.srtt = None;
        self.backoff = 0;
        self.initial = self.initial.max(floor);
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
        rtt.sample(at(0), at(100));
        assert_eq!(rtt.rto(), Span::from_ms(300));
    }

    #[test]
    fn a_steady_round_trip_lets_the_timeout_fall_to_its_minimum() {
        let mut rtt = estimator();
        for i in 0..200 {
            rtt.sample(at(i), at(i + 100));
        }
        assert_eq!(rtt.rto(), Span::from_ms(200));
    }

    #[test]
    fn back_off_doubles_up_to_the_maximum_and_ends_with_a_sample() {
        let mut rtt = estimator();
        rtt.sample(at(0), at(100));
        rtt.back_off();
        rtt.back_off();
        assert_eq!(rtt.rto(), Span::from_ms(1200));
        for _ in 0..100 {
            rtt.back_off();
        }
        assert_eq!(rtt.rto(), Span::from_s(60));
        rtt.sample(at(0), at(100));
        assert!(rtt.rto() < Span::from_ms(400));
    }

    #[test]
    fn a_coarse_clock_measures_in_whole_ticks() {
        let mut rtt = RttEstimator::new(&TcpParams {
            clock_granularity: Span::from_ms(10),
            ..TcpParams::default()
        });
        rtt.sample(at(5), at(108)); // ticks 0 and 10
        assert_eq!(rtt.srtt(), Some(Span::from_ms(100)));
    }
}
