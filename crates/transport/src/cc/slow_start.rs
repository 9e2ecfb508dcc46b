//! Slow start, and when to leave it.

use std::sync::Arc;

use redtail_core::schemars::JsonSchema;
use redtail_core::serde::{Deserialize, Serialize};
use redtail_core::{ParamError, Span, schemars, serde};
use strum::{IntoStaticStr, VariantArray};

use super::hybla::{HyblaSlowStart, HyblaStartParams};
use super::hystart::{HyStart, HystartParams};
use super::vegas::{VegasSlowStart, VegasStartParams};
use super::{AckSample, Window, as_f64};
use crate::constants::{NoParams, check_order, constants, law_tables};
use crate::tcp::renew_boxed;

/// How the window grows until the first congestion event.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    Serialize,
    Deserialize,
    JsonSchema,
    VariantArray,
    IntoStaticStr,
)]
#[serde(crate = "serde", rename_all = "kebab-case")]
#[schemars(crate = "schemars")]
#[strum(serialize_all = "kebab-case")]
pub enum SlowStartKind {
    /// One segment for each acknowledgement, until a loss (RFC 5681, section 3.1).
    Standard,
    /// As the standard one, but slower when round-trip times grow, and ended if they stay larger (RFC 9406).
    HystartPlusPlus,
    /// As the standard one, but ended when acknowledgements come in a train longer than half the minimum round-trip time, or round-trip times grow by an eighth (HyStart, Ha and Rhee 2011, as Linux's CUBIC has it).
    Hystart,
    /// Doubles every second round trip, until more than one segment waits in queues (Brakmo and Peterson 1995).
    Vegas,
    /// As fast as the standard one with a round-trip time of 25 ms; the initial window is the round-trip time divided by 25 ms, in segments (Hybla, Caini and Firrincieli 2004, as in Linux).
    Hybla,
    /// The model's own start (STARTUP and DRAIN of BBR, Copa's slow start); used with model-based growth and only with it.
    Startup,
}

law_tables! {
    /// How the window grows until the first congestion event, with the constants.
    pub enum SlowStartParams of SlowStartKind {
        /// One segment for each acknowledgement; ends with a loss.
        Standard(NoParams),
        /// As the standard one; slower when round-trip times grow, and ended if they stay larger (RFC 9406).
        HystartPlusPlus(HystartPlusPlusParams),
        /// As the standard one; ended by trains of acknowledgements or growing round-trip times (Ha and Rhee 2011, Linux).
        Hystart(HystartParams),
        /// Doubles every second round trip, until segments wait in queues (Brakmo and Peterson 1995).
        Vegas(VegasStartParams),
        /// As fast as the standard one with a round-trip time of `rtt0`; also the initial window (Caini and Firrincieli 2004).
        Hybla(HyblaStartParams),
        /// The model's own start.
        Startup(NoParams),
    }
}

constants! {
    /// The constants of HyStart++.
    pub struct HystartPlusPlusParams {
        /// MIN_RTT_THRESH: least growth of the round-trip time that begins conservative slow start.
        min_rtt_thresh: Span = Span::from_ms(4), in Span::ZERO => Span::from_s(10), "RFC 9406, section 4.3";
        /// MAX_RTT_THRESH: greatest growth of the round-trip time that is waited for.
        max_rtt_thresh: Span = Span::from_ms(16), in Span::ZERO => Span::from_s(10), "RFC 9406, section 4.3";
        /// MIN_RTT_DIVISOR: growth of the round-trip time that begins conservative slow start, as one part in so many.
        min_rtt_divisor: u64 = 8, in 1 => 1000, "RFC 9406, section 4.3";
        /// N_RTT_SAMPLE: number of samples of a round before it is judged.
        n_rtt_sample: u32 = 8, in 1 => 1000, "RFC 9406, section 4.3";
        /// CSS_GROWTH_DIVISOR: growth of conservative slow start is that of slow start divided by this.
        css_growth_divisor: f64 = 4.0, in 1.0 => 1e3, "RFC 9406, section 4.3: at least 2";
        /// CSS_ROUNDS: number of rounds of conservative slow start.
        css_rounds: u32 = 5, in 1 => 1000, "RFC 9406, section 4.3";
    }
    check HystartPlusPlusParams::in_order
}

impl HystartPlusPlusParams {
    fn in_order(&self) -> Result<(), ParamError> {
        check_order(
            "min_rtt_thresh",
            self.min_rtt_thresh,
            "max_rtt_thresh",
            self.max_rtt_thresh,
        )
    }
}

/// A slow start with its state. `None` is the standard one. Boxed, so that other senders stay small.
#[derive(Clone, Debug)]
pub(super) struct SlowStart(Option<Box<Special>>);

/// A slow start other than the standard one.
#[derive(Clone, Debug)]
enum Special {
    HyStartPlusPlus(HyStartPlusPlus),
    HyStart(HyStart),
    Vegas(VegasSlowStart),
    Hybla(HyblaSlowStart),
    Startup,
}

impl SlowStart {
    /// The slow start of this kind at the start of a connection. `mss` is the size of a full segment in bytes.
    pub(super) fn new(params: &SlowStartParams, mss: f64) -> Self {
        let special = match params {
            SlowStartParams::Standard(_) => return Self(None),
            SlowStartParams::HystartPlusPlus(params) => {
                Special::HyStartPlusPlus(HyStartPlusPlus::new(params))
            }
            SlowStartParams::Hystart(params) => Special::HyStart(HyStart::new(params, mss)),
            SlowStartParams::Vegas(params) => Special::Vegas(VegasSlowStart::new(params, mss)),
            SlowStartParams::Hybla(params) => Special::Hybla(HyblaSlowStart::new(params, mss)),
            SlowStartParams::Startup(_) => Special::Startup,
        };
        Self(Some(Box::new(special)))
    }

    /// Becomes a copy of `fresh`.
    #[inline]
    pub(super) fn renew(&mut self, fresh: &Self) {
        renew_boxed(&mut self.0, &fresh.0);
    }

    /// Hybla's slow start, which watches the path.
    pub(super) fn hybla(&mut self) -> Option<&mut HyblaSlowStart> {
        match self.0.as_deref_mut() {
            Some(Special::Hybla(hybla)) => Some(hybla),
            _ => None,
        }
    }

    /// Whether it needs every acknowledgement.
    pub(super) fn watches(&self) -> bool {
        matches!(self.0.as_deref(), Some(Special::Hybla(_)))
    }

    /// Grows `window` for an acknowledgement by at most `most` bytes (RFC 5681, equation 2: one
    /// segment).
    #[inline]
    pub(super) fn on_ack(&mut self, window: &mut Window, sample: &AckSample, most: f64) {
        let grows = most.min(as_f64(sample.acked));
        match self.0.as_deref_mut() {
            None => window.cwnd += grows,
            Some(Special::HyStartPlusPlus(hystart)) => hystart.on_ack(window, sample, grows),
            Some(Special::HyStart(hystart)) => hystart.on_ack(window, sample, grows),
            Some(Special::Vegas(vegas)) => vegas.on_ack(window, sample, grows),
            Some(Special::Hybla(hybla)) => hybla.on_ack(window, sample, grows),
            Some(Special::Startup) => {} // the model's
        }
    }

    /// A timeout: slow start begins again.
    pub(super) fn on_timeout(&mut self) {
        if let Some(Special::HyStart(hystart)) = self.0.as_deref_mut() {
            hystart.on_timeout();
        }
    }
}

/// HyStart++.
///
/// Source: RFC 9406, section 4.2, with its constants (section 4.3).
#[derive(Clone, Debug, Default)]
pub(super) struct HyStartPlusPlus {
    params: Arc<HystartPlusPlusParams>,
    /// The round ends when this offset is acknowledged (windowEnd).
    window_end: Option<u64>,
    /// The least round trip of the present round (currentRoundMinRTT); `None` is infinite.
    round_min: Option<Span>,
    /// The least round trip of the round before (lastRoundMinRTT).
    last_round_min: Option<Span>,
    /// The number of round-trip samples in the present round (rttSampleCount).
    samples: u32,
    /// Conservative slow start: cssBaselineMinRtt, and rounds still to go.
    conservative: Option<(Span, u32)>,
}

impl HyStartPlusPlus {
    fn new(params: &Arc<HystartPlusPlusParams>) -> Self {
        Self {
            params: Arc::clone(params),
            ..Self::default()
        }
    }

    fn on_ack(&mut self, window: &mut Window, sample: &AckSample, grows: f64) {
        if self.window_end.is_none_or(|end| sample.una >= end) {
            self.begin_round(window, sample.next);
            if window.cwnd >= window.ssthresh {
                return; // the last conservative round ended slow start
            }
        }
        if let Some(rtt) = sample.rtt {
            self.samples += 1;
            self.round_min = Some(self.round_min.map_or(rtt, |min| min.min(rtt)));
        }
        match self.conservative {
            None => window.cwnd += grows,
            Some(_) => window.cwnd += grows / self.params.css_growth_divisor,
        }
        if self.samples >= self.params.n_rtt_sample {
            self.judge();
        }
    }

    /// Enters conservative slow start if round trips have grown, and leaves it if they have shrunk
    /// again.
    fn judge(&mut self) {
        let Some(current) = self.round_min else {
            return;
        };
        match (self.conservative, self.last_round_min) {
            (Some((baseline, _)), _) if current < baseline => self.conservative = None,
            (None, Some(last)) => {
                let params = &*self.params;
                let threshold = (last / params.min_rtt_divisor)
                    .clamp(params.min_rtt_thresh, params.max_rtt_thresh);
                if current >= last + threshold {
                    self.conservative = Some((current, params.css_rounds));
                }
            }
            _ => {}
        }
    }

    fn begin_round(&mut self, window: &mut Window, next: u64) {
        self.window_end = Some(next);
        self.last_round_min = self.round_min.take();
        self.samples = 0;
        if let Some((_, rounds)) = &mut self.conservative {
            *rounds -= 1;
            if *rounds == 0 {
                window.ssthresh = window.cwnd;
                self.conservative = None;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use redtail_core::Time;

    const MSS: f64 = 1000.0;

    /// A round of `acks` acknowledged segments, each with round trip `rtt` in ms.
    fn round(slow: &mut SlowStart, window: &mut Window, una: &mut u64, acks: u64, rtt: u64) {
        for _ in 0..acks {
            *una += 1000;
            let sample = AckSample {
                now: Time::ZERO,
                acked: 1000,
                marked: 0,
                una: *una,
                next: *una + 1000 * acks, // a window ahead
                rtt: Some(Span::from_ms(rtt)),
                srtt: None,
                rtt_independent: false,
            };
            slow.on_ack(window, &sample, MSS);
        }
    }

    fn start() -> (SlowStart, Window, u64) {
        let window = Window {
            cwnd: 10.0 * MSS,
            ssthresh: f64::INFINITY,
        };
        let slow_start = SlowStart::new(&SlowStartKind::HystartPlusPlus.into(), MSS);
        (slow_start, window, 0)
    }

    #[test]
    fn steady_round_trips_grow_as_in_slow_start() {
        let (mut slow, mut window, mut una) = start();
        for _ in 0..4 {
            round(&mut slow, &mut window, &mut una, 10, 100);
        }
        assert_eq!(window.cwnd, 50.0 * MSS);
    }

    #[test]
    fn round_trips_that_grow_by_an_eighth_slow_it_down_and_five_rounds_end_it() {
        let (mut slow, mut window, mut una) = start();
        round(&mut slow, &mut window, &mut una, 10, 100);
        round(&mut slow, &mut window, &mut una, 10, 100);
        let before = window.cwnd;
        round(&mut slow, &mut window, &mut una, 10, 113); // 12.5 ms is the threshold
        round(&mut slow, &mut window, &mut una, 10, 113);
        assert!(window.cwnd < before + 13.0 * MSS, "{}", window.cwnd);
        assert!(window.ssthresh.is_infinite());
        for _ in 0..6 {
            round(&mut slow, &mut window, &mut una, 10, 113);
        }
        assert!(window.ssthresh.is_finite());
    }

    #[test]
    fn a_spurious_slowdown_is_taken_back() {
        let (mut slow, mut window, mut una) = start();
        round(&mut slow, &mut window, &mut una, 10, 100);
        round(&mut slow, &mut window, &mut una, 10, 100);
        round(&mut slow, &mut window, &mut una, 10, 120);
        round(&mut slow, &mut window, &mut una, 10, 100); // back below the baseline
        let before = window.cwnd;
        round(&mut slow, &mut window, &mut una, 10, 100);
        assert_eq!(window.cwnd, before + 10.0 * MSS);
    }
}
