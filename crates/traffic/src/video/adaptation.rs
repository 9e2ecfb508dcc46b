//! The choice of the bitrate of the next segment.
//!
//! *Throughput*: the highest bitrate that is at most `safety` times the harmonic mean of the
//! throughput of the last `window` segments, else the lowest. Source: J. Jiang, V. Sekar, H. Zhang,
//! "Improving Fairness, Efficiency, and Stability in HTTP-based Adaptive Video Streaming with
//! FESTIVE", CoNEXT 2012: its bandwidth estimate (20 segments) and threshold (p = 0.85), without its
//! gradual switching, delayed update and randomised scheduling.
//!
//! *Buffer*: BBA-0 of T.-Y. Huang et al., "A Buffer-Based Approach to Rate Adaptation", SIGCOMM 2014,
//! algorithm 1, with a linear rate map:
//!
//! | symbol | unit | meaning |
//! |---|---|---|
//! | B | s | video in the buffer |
//! | r | s | reservoir: up to it the lowest bitrate |
//! | cu | s | cushion: from r + cu on the highest |
//! | f(B) | bit/s | R_min + (R_max - R_min) (B - r) / cu |
//!
//! It keeps its bitrate while f(B) is between the next lower one and the next higher one; when f
//! reaches the next higher one it goes to the highest below f, and when it reaches the next lower one
//! to the lowest above f.

use std::collections::VecDeque;

use redtail_core::{Rate, Span};

/// The algorithm of a user, with its state.
#[derive(Clone, Debug)]
pub enum Adaptation {
    /// By the throughput of the last segments.
    Throughput {
        /// Share of the estimate that may be used.
        safety: f64,
        /// Segments in the estimate.
        window: usize,
        /// Seconds per bit of each of these.
        paces: VecDeque<f64>,
    },
    /// By the buffered video.
    Buffer {
        /// Up to this level, the lowest bitrate.
        reservoir: Span,
        /// Above the reservoir, the bitrate rises to the highest over this length.
        cushion: Span,
    },
}

impl Adaptation {
    /// Notes the time that a segment of `bytes` took.
    pub fn on_segment(&mut self, bytes: u64, took: Span) {
        let Self::Throughput { window, paces, .. } = self else {
            return;
        };
        if paces.len() == *window {
            paces.pop_front();
        }
        paces.push_back(took.as_secs_f64() / (bytes as f64 * 8.0));
    }

    /// The index in `bitrates`, which ascend, of the bitrate of the next segment. `last` is that of the
    /// previous segment and `level` the buffered video.
    pub fn choose(&self, bitrates: &[Rate], last: usize, level: Span) -> usize {
        let bps = |rung: usize| bitrates[rung].as_bps() as f64;
        let top = bitrates.len() - 1;
        match self {
            Self::Throughput { safety, paces, .. } => {
                // The harmonic mean of rates is one over the mean of their inverses.
                let estimate = paces.len() as f64 / paces.iter().sum::<f64>();
                let most = safety * estimate;
                (1..=top).rev().find(|&rung| bps(rung) <= most).unwrap_or(0)
            }
            &Self::Buffer { reservoir, cushion } => {
                if level <= reservoir {
                    return 0;
                }
                if level >= reservoir + cushion {
                    return top;
                }
                let share = (level - reservoir).as_secs_f64() / cushion.as_secs_f64();
                let map = bps(0) + (bps(top) - bps(0)) * share;
                if map >= bps((last + 1).min(top)) {
                    (0..=top).rev().find(|&rung| bps(rung) < map).unwrap_or(0)
                } else if map <= bps(last.saturating_sub(1)) {
                    (0..=top).find(|&rung| bps(rung) > map).unwrap_or(top)
                } else {
                    last
                }
            }
        }
    }
}
