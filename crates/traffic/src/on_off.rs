//! On/off sources: a constant rate for a while, then nothing for a while.
//!
//! Periods alternate, each drawn from its law. Data is generated at the constant rate while the
//! source is on, and a packet is sent when its last byte has been generated. If a period ends before a
//! packet is full, its bytes are kept for the next period. So the long-run rate is rate E\[on\] / (E\[on\] + E\[off\]).
//!
//! Many such sources together are self-similar when periods have heavy tails: with tails of
//! exponents a and b, both between 1 and 2, the Hurst parameter of the sum is (3 - min(a, b)) / 2.
//! With exponential periods it is 1/2.
//!
//! Source: W. Willinger, M. Taqqu, R. Sherman, D. Wilson, "Self-Similarity Through
//! High-Variability: Statistical Analysis of Ethernet LAN Traffic at the Source Level", IEEE/ACM
//! ToN 5(1), 1997, theorem 1.

use redtail_core::schemars::JsonSchema;
use redtail_core::serde::{Deserialize, Serialize};
use redtail_core::{Bytes, Dscp, ParamError, Rate, Span, Stream, Time, schemars, serde};

use crate::access::Direction;
use crate::bounds::{LONGEST_GAP, check_rate, in_range};
use crate::dealt::Dealt;
use crate::dist::Dist;
use crate::keys::groups;
use crate::kind::{PacketSource, TrafficKind, UdpKind};
use crate::packet::{check_packet, largest, mean_size, mean_time};
use crate::start::Start;

groups! {
    /// UDP sources that alternate between sending at a constant rate and pausing.
    pub struct OnOffParams {
        /// Rate of each source on the link while it is on, headers included.
        pub rate: Rate,
        /// Size of each packet on the link, headers included, or a law from which it is drawn for each; the times are those of the mean. Only the simulator draws sizes.
        pub packet: Dist<Bytes>,
        /// Length of a period in which a source is on, drawn for each period; its mean is at least 1/100000 of the transmission time of a packet at `rate`.
        pub on: Dist<Span>,
        /// Length of a period in which a source is off, drawn for each period.
        pub off: Dist<Span>,
        /// When sources start, with an on period; dealt out. Left out, each begins on or off at random.
        /// Source: the probability of on is the share of the time that a source is on in the long run.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub start: Option<Dealt<Start>>,
        /// When sources stop; dealt out. Left out, they continue to the end of the run.
        /// Source: none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub stop: Option<Dealt<Start>>,
    }
}

impl TrafficKind for OnOffParams {
    fn example() -> &'static str {
        r#"flows = 3
rate = "1 Mbit/s"
packet = "1000 B"
on = "exponential mean 200 ms"
off = "exponential mean 200 ms"
stop = "2 s""#
    }

    fn noun(&self) -> &'static str {
        "on/off flow"
    }

    fn starts(&self) -> Option<&Dealt<Start>> {
        self.start.as_ref()
    }

    fn stops(&self) -> Option<&Dealt<Start>> {
        self.stop.as_ref()
    }

    fn check(&self) -> Result<(), ParamError> {
        check_rate(self.rate)?;
        check_packet(&self.packet)?;
        for (key, periods) in [("on", &self.on), ("off", &self.off)] {
            if periods.mean().is_none() {
                return Err(ParamError::new(
                    key,
                    "has an infinite mean, so there is no long run",
                    "a law with a mean: a shape above 1, or a max",
                ));
            }
        }
        let packet = mean_time(self.rate, &self.packet);
        let on = Span::from_secs_f64(self.on.mean().unwrap_or(0.0));
        if on * MOST_PERIODS < packet || on == Span::ZERO {
            let least = Span::from_ps(packet.as_ps().div_ceil(MOST_PERIODS).max(1));
            let problem = match packet.as_ps().checked_div(on.as_ps()) {
                None => "is zero".to_owned(),
                Some(periods) => format!(
                    "is so short that a packet, which takes \"{packet}\" at the rate, takes {periods} periods"
                ),
            };
            return Err(ParamError::new(
                "on",
                problem,
                format!(
                    "a mean of at least \"{least}\" with this packet and rate, which makes {MOST_PERIODS} periods; a \
                     time such as \"exponential mean 1 s\""
                ),
            ));
        }
        Ok(())
    }
}

impl UdpKind for OnOffParams {
    type Source = Box<OnOffSource>;

    fn source(&self) -> Box<OnOffSource> {
        Box::new(OnOffSource::new(self))
    }

    fn mean_load(&self) -> (Rate, f64) {
        let rate = self.rate.as_bps() as f64 * self.share_on();
        (
            Rate::from_bps(rate.round() as u64),
            mean_size(&self.packet).as_u64() as f64,
        )
    }

    fn peak(&self) -> Rate {
        self.rate
    }

    fn largest_packet(&self) -> Bytes {
        largest(&self.packet)
    }

    fn packet(&self) -> Option<&Dist<Bytes>> {
        Some(&self.packet)
    }

    fn random_start(&self, stream: &mut Stream) -> Time {
        let is_on = stream.uniform() < self.share_on();
        let phase = stream.uniform_span(Span::ZERO, mean_time(self.rate, &self.packet));
        let pause = self.off.draw(stream);
        Time::ZERO + if is_on { phase } else { in_range(pause) }
    }
}

impl OnOffParams {
    /// Share of the time that a source is on.
    fn share_on(&self) -> f64 {
        // Checked to be finite, and the on periods to take some time.
        let [on, off] = [&self.on, &self.off].map(|periods| periods.mean().unwrap_or(1.0));
        on / (on + off)
    }
}

/// The most periods that a packet takes on average: each is drawn, all in one event.
const MOST_PERIODS: u64 = 100_000;

/// The most periods that are drawn for a packet. Only a law with nearly all of its mean in very few
/// periods reaches this number; the time for the rest of the packet is then computed from the means.
const MOST_DRAWN: u64 = 10 * MOST_PERIODS;

/// A running on/off source.
#[derive(Clone, Debug)]
pub struct OnOffSource {
    on: Dist<Span>,
    off: Dist<Span>,
    /// Time that a packet takes to fill.
    gap: Span,
    size: u32,
    /// Mean time off by mean time on.
    pause: f64,
    /// The rest of the on period; `None` before the first one.
    left: Option<Span>,
}

impl OnOffSource {
    fn new(group: &OnOffParams) -> Self {
        Self {
            on: group.on.clone(),
            off: group.off.clone(),
            gap: mean_time(group.rate, &group.packet),
            size: mean_size(&group.packet).as_u64() as u32,
            pause: 1.0 / group.share_on() - 1.0,
            left: None,
        }
    }
}

impl PacketSource for OnOffSource {
    fn send(&mut self, stream: &mut Stream) -> (u32, Span) {
        let mut left = self.left.unwrap_or_else(|| self.on.draw(stream));
        let (mut to_fill, mut wait) = (self.gap, Span::ZERO);
        let mut drawn = 0;
        while left < to_fill && wait < LONGEST_GAP {
            drawn += 1;
            if drawn > MOST_DRAWN {
                let pause = Span::from_secs_f64(to_fill.as_secs_f64() * self.pause);
                wait = in_range(wait) + in_range(pause);
                left = to_fill;
                break;
            }
            to_fill -= left;
            wait = in_range(wait) + in_range(in_range(left) + in_range(self.off.draw(stream)));
            left = self.on.draw(stream);
        }
        self.left = Some(left.saturating_sub(to_fill));
        (self.size, in_range(in_range(wait) + to_fill))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(on: &str, off: &str) -> OnOffParams {
        let text = format!(
            r#"{{"name": "o", "rate": "80 kbit/s", "packet": "1 kB", "on": "{on}", "off": "{off}"}}"#
        );
        crate::from_json(&text).expect("the group is as the file has it")
    }

    /// Packets in each of `bins` bins of `width` seconds from the sum of `flows` sources, after
    /// `skip` bins.
    fn counts(group: &OnOffParams, flows: usize, width: f64, skip: usize, bins: usize) -> Vec<f64> {
        let mut counts = vec![0.0; bins];
        for i in 0..flows {
            let mut stream = Stream::named(7, 0, &format!("on-off.{i}"));
            let mut now = group.random_start(&mut stream);
            let mut source = OnOffSource::new(group);
            loop {
                let bin = (now.as_secs_f64() / width) as usize;
                if bin >= skip + bins {
                    break;
                }
                if bin >= skip {
                    counts[bin - skip] += 1.0;
                }
                now += source.send(&mut stream).1;
            }
        }
        counts
    }

    #[test]
    fn packets_fill_at_the_rate_while_on_and_what_is_begun_is_kept() {
        // 100 ms a packet; on for 250 ms, off for 1 s: at 0, 100, 200 ms, then the fourth, half
        // filled, at 1250 + 50 ms.
        let mut source = OnOffSource::new(&group("250 ms", "1 s"));
        let mut stream = Stream::named(1, 0, "on-off");
        let gaps: Vec<u64> = (0..5)
            .map(|_| source.send(&mut stream).1.as_ps() / 1_000_000_000)
            .collect();
        assert_eq!(gaps, [100, 100, 1100, 100, 100]);
    }

    #[test]
    fn an_off_time_longer_than_a_run_is_no_overflow() {
        let mut source = OnOffSource::new(&group("1 ms", "5000 h"));
        let (_, gap) = source.send(&mut Stream::named(1, 0, "on-off"));
        assert_eq!(gap, LONGEST_GAP);
    }

    #[test]
    fn on_periods_far_below_a_packet_are_refused() {
        let refusal = |on: &str| group(on, "1 s").check().unwrap_err().to_string();
        assert_eq!(
            refusal("20 ps"),
            "on is so short that a packet, which takes \"100 ms\" at the rate, takes 5000000000 periods; accepted: a mean \
             of at least \"1 us\" with this packet and rate, which makes 100000 periods; a time such as \"exponential \
             mean 1 s\""
        );
        assert!(refusal("0 s").starts_with("on is zero; accepted: a mean of at least \"1 us\""));
        assert_eq!(group("1 us", "0 s").check(), Ok(()));
    }

    #[test]
    fn a_packet_that_takes_very_many_periods_takes_what_their_means_say() {
        // One period of 10^8 is 10,000 s long, the others are nothing: the mean is 50 us.
        let group = group("cdf 0.99999999 0 s, 1 10000 s", "1 us");
        assert_eq!(group.check(), Ok(()));
        let mut source = OnOffSource::new(&group);
        let (_, gap) = source.send(&mut Stream::named(1, 0, "on-off"));
        // A million times off; then 100 ms on with pauses of 1/50 of it.
        let expected = 1.0 + 0.1 * (1.0 + 1.0 / 50.0);
        assert!((gap.as_secs_f64() - expected).abs() < 1e-3, "{gap}");
    }

    #[test]
    fn the_long_run_rate_is_the_one_said() {
        let group = group("exponential mean 500 ms", "exponential mean 1 s");
        let (rate, packet) = group.mean_load();
        assert_eq!((rate.as_bps(), packet), (26_667, 1000.0));
        let (flows, seconds) = (50, 2000);
        let counts = counts(&group, flows, 10.0, 0, seconds / 10);
        let n = counts.len() as f64;
        let mean = counts.iter().sum::<f64>() / n;
        let variance = counts.iter().map(|c| (c - mean).powi(2)).sum::<f64>() / n;
        let said = rate.as_bps() as f64 * 10.0 / 8000.0 * flows as f64;
        // Bins of 10 s are all but independent beside periods of 1 s, and what dependence there is
        // doubles the variance at most: five standard errors, exceeded with probability 6e-7.
        assert!(
            (mean - said).abs() < 5.0 * (2.0 * variance / n).sqrt(),
            "{mean}, said {said}"
        );
    }

    /// The Hurst parameter of `counts` and its standard error, from the energies of Haar wavelets
    /// at octaves `from..=to`.
    ///
    /// Source: P. Abry, D. Veitch, "Wavelet Analysis of Long-Range-Dependent Traffic", IEEE Trans.
    /// Information Theory 44(1), 1998: the slope of log2 energy over octaves is 2H - 1, by
    /// regression weighted with the variances 2/(n_j ln^2 2) of the logarithms of n_j squares; the
    /// logarithms' bias is -1/(n_j ln 2).
    fn hurst(counts: &[f64], from: u32, to: u32) -> (f64, f64) {
        let mut approximation = counts.to_vec();
        let (mut w, mut wj, mut wjj, mut wy, mut wjy) = (0.0, 0.0, 0.0, 0.0, 0.0);
        for octave in 1..=to {
            let pairs = approximation.chunks_exact(2);
            let details: Vec<f64> = pairs.clone().map(|p| (p[0] - p[1]) / 2f64.sqrt()).collect();
            let next: Vec<f64> = pairs.map(|p| (p[0] + p[1]) / 2f64.sqrt()).collect();
            approximation = next;
            if octave < from {
                continue;
            }
            let n = details.len() as f64;
            let energy = details.iter().map(|d| d * d).sum::<f64>() / n;
            let ln2 = std::f64::consts::LN_2;
            let y = energy.log2() + 1.0 / (n * ln2);
            let (weight, j) = (n * ln2 * ln2 / 2.0, f64::from(octave));
            w += weight;
            wj += weight * j;
            wjj += weight * j * j;
            wy += weight * y;
            wjy += weight * j * y;
        }
        let determinant = w * wjj - wj * wj;
        let slope = (w * wjy - wj * wy) / determinant;
        let error = (w / determinant).sqrt();
        ((slope + 1.0) / 2.0, error / 2.0)
    }

    #[test]
    fn sources_with_pareto_periods_are_self_similar_together() {
        let exponential = "exponential mean 1 s".to_owned();
        let pareto = |shape: f64| format!("pareto mean 1 s shape {shape}");
        for (periods, expected) in [(pareto(1.2), 0.9), (pareto(1.6), 0.7), (exponential, 0.5)] {
            let mut group = group(&periods, &periods);
            group.rate = Rate::from_bps(16_000);
            let counts = counts(&group, 60, 4.0, 4096, 1 << 15);
            // The law holds far beyond the mean period: octave 6 is 256 of them. Nearer to it the
            // estimate comes down to its value from above.
            let (found, error) = hurst(&counts, 6, 11);
            // Four standard errors of 0.027: exceeded with probability 6e-5 for Gaussian traffic,
            // and the seed is fixed.
            assert!(
                (found - expected).abs() < 4.0 * error,
                "{periods}: {found} +- {error}, not {expected}"
            );
        }
    }
}
