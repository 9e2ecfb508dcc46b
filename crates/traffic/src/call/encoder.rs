//! An encoder of video that follows a target rate.
//!
//! Source: RFC 8593, "Video Traffic Models for RTP Congestion Control Evaluations", section 5, the
//! statistical model in its steady state. The intervals between frames and the sizes of frames differ
//! from their means by numbers of a Laplace distribution, and the encoder takes up a new target only when
//! `tau_v` has passed since it took up the one before. The burst of larger frames after a change of the
//! rate and key frames are left out.
//!
//! | symbol | value | what |
//! |---|---|---|
//! | FPS | key `frame_rate` | frames per second; t0 is its inverse |
//! | B0 | R / (8 FPS) | mean size of a frame at the rate R |
//! | SCALE_t | 0.15 | scale of the Laplace distribution of intervals, as a share of t0 |
//! | SCALE_B | 0.15 | that of sizes, as a share of B0 |
//! | tau_v | 0.2 s | least time between two changes of the rate |

use libm::log;
use redtail_core::{Span, Stream, Time};

/// SCALE_t (RFC 8593, Table 1).
const SCALE_T: f64 = 0.15;
/// SCALE_B (RFC 8593, Table 1).
const SCALE_B: f64 = 0.15;
/// The reaction latency of the encoder, tau_v (RFC 8593, Table 1).
const TAU_V: Span = Span::from_ms(200);
/// The largest deviation that is used, as a share of the mean: an interval or a size stays above zero,
/// and the mean stays what it is. One draw in 400 is cut.
const LARGEST_DEVIATION: f64 = 0.9;

/// A running encoder.
#[derive(Clone, Debug)]
pub struct Encoder {
    interval: Span,
    /// The rate that it has taken up, in bit/s.
    rate: f64,
    /// When it took it up.
    since: Option<Time>,
}

impl Encoder {
    /// An encoder that has made no frame.
    pub fn new(frame_rate: f64, rate: f64) -> Self {
        Self {
            interval: Span::from_secs_f64(1.0 / frame_rate),
            rate,
            since: None,
        }
    }

    /// Captures and encodes a frame: its size in bytes at the target rate (bit/s), and the time to the
    /// next frame. Each frame takes two numbers from `stream`, whatever the rate.
    pub fn frame(&mut self, target: f64, now: Time, stream: &mut Stream) -> (f64, Span) {
        let may_change = |since: Time| now.saturating_since(since) >= TAU_V;
        if target != self.rate && self.since.is_none_or(may_change) {
            (self.rate, self.since) = (target, Some(now));
        }
        let [interval, size] = [SCALE_T, SCALE_B].map(|scale| {
            let deviation = scale * laplace(stream.uniform());
            1.0 + deviation.clamp(-LARGEST_DEVIATION, LARGEST_DEVIATION)
        });
        let mean = self.rate / 8.0 * self.interval.as_secs_f64();
        let gap = Span::from_secs_f64(self.interval.as_secs_f64() * interval);
        (mean * size, gap)
    }
}

/// A number of the Laplace distribution with mean 0 and scale 1, from one uniform on [0, 1).
fn laplace(uniform: f64) -> f64 {
    let half = uniform - 0.5;
    // At -0.5, the end of the interval, the logarithm has no value.
    let tail = (1.0 - 2.0 * half.abs()).max(f64::MIN_POSITIVE);
    (-log(tail)).copysign(half)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_have_the_mean_and_the_deviation_of_the_model() {
        let (mut encoder, mut stream) = (Encoder::new(30.0, 1e6), Stream::named(1, 0, "frames"));
        let n = 20_000;
        let (mut bytes, mut squares, mut seconds) = (0.0, 0.0, 0.0);
        for _ in 0..n {
            let (size, gap) = encoder.frame(1e6, Time::ZERO, &mut stream);
            bytes += size;
            squares += size * size;
            seconds += gap.as_secs_f64();
        }
        let n = f64::from(n);
        let (mean, expected) = (bytes / n, 1e6 / 8.0 / 30.0);
        // A Laplace distribution of scale b has the standard deviation b sqrt(2), of which the cut takes
        // 3 % away. Five standard errors are exceeded with probability 6e-7.
        let deviation = 0.15 * 2.0_f64.sqrt();
        let error = 5.0 * deviation / n.sqrt();
        assert!((mean / expected - 1.0).abs() < error, "{mean}");
        assert!((seconds * 30.0 / n - 1.0).abs() < error, "{seconds}");
        let found = (squares / n - mean * mean).sqrt() / mean;
        assert!((found / deviation - 1.0).abs() < 0.06, "{found}");
    }

    #[test]
    fn a_new_target_is_taken_up_once_the_last_change_is_old_enough() {
        let mut encoder = Encoder::new(30.0, 1e6);
        let mut size = |target, ms| {
            // The same numbers each time.
            let mut stream = Stream::named(1, 0, "frames");
            let at = Time::ZERO + Span::from_ms(ms);
            encoder.frame(target, at, &mut stream).0
        };
        let full = size(1e6, 0);
        assert!((size(0.5e6, 100) / full - 0.5).abs() < 1e-9);
        assert!((size(2e6, 299) / full - 0.5).abs() < 1e-9, "199 ms later");
        assert!((size(2e6, 300) / full - 2.0).abs() < 1e-9);
    }

    #[test]
    fn the_law_is_symmetric_and_finite() {
        assert_eq!(laplace(0.5), 0.0);
        assert!(laplace(0.0).is_finite() && laplace(0.0) < -700.0);
        assert!((laplace(0.75) - 2.0_f64.ln()).abs() < 1e-12);
        assert!((laplace(0.25) + 2.0_f64.ln()).abs() < 1e-12);
    }
}
