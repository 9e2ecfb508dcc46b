//! HighSpeed TCP.
//!
//! Source: RFC 3649, section 5 (the response function) and appendix B (its table); as Linux
//! computes it (Linux 6.1, net/ipv4/tcp_highspeed.c).
//!
//! | symbol | meaning | unit |
//! |---|---|---|
//! | w | congestion window | segments |
//! | a(w) | increase of a round trip | segments |
//! | b(w) | share by which a loss reduces | 1 |
//! | p(w) | loss rate at which w is the mean window, 0.078 / w^1.2 | 1 |
//! | W, W_1 | Low_Window 38, High_Window 83000 | segments |
//!
//! ```text
//! b(w) = 0.5 + (0.1 - 0.5) (log w - log W) / (log W_1 - log W)      0.5 up to W
//! a(w) = w^2 p(w) 2 b(w) / (2 - b(w))                               1 up to W
//!
//! cnt += a(w) for each acknowledgement; w += 1, cnt -= w when cnt >= w
//! w   -= floor(b(w) w), at least 2 are left
//! ```
//!
//! As in Linux, and unlike the RFC: a(w) and b(w) are taken from the table. Each row applies up to
//! the window for which the RFC lists it, so that a(w) is rounded up. a(w) is added for each
//! acknowledgement, however much it covers, so that with delayed acknowledgements the window grows
//! half as fast as by the RFC's equation.

use crate::constants::NoParams;

use super::additive::{Additive, whole};
use super::{AckSample, CongestionKind, GrowthLaw};

/// One row for each a(w), from 1: the largest window it applies to, and b(w) in 1/256.
const TABLE: [(u64, u64); 72] = [
    (38, 128),
    (118, 112),
    (221, 104),
    (347, 98),
    (495, 93),
    (663, 89),
    (851, 86),
    (1058, 83),
    (1284, 81),
    (1529, 78),
    (1793, 76),
    (2076, 74),
    (2378, 72),
    (2699, 71),
    (3039, 69),
    (3399, 68),
    (3778, 66),
    (4177, 65),
    (4596, 64),
    (5036, 62),
    (5497, 61),
    (5979, 60),
    (6483, 59),
    (7009, 58),
    (7558, 57),
    (8130, 56),
    (8726, 55),
    (9346, 54),
    (9991, 53),
    (10661, 52),
    (11358, 52),
    (12082, 51),
    (12834, 50),
    (13614, 49),
    (14424, 48),
    (15265, 48),
    (16137, 47),
    (17042, 46),
    (17981, 45),
    (18955, 45),
    (19965, 44),
    (21013, 43),
    (22101, 43),
    (23230, 42),
    (24402, 41),
    (25618, 41),
    (26881, 40),
    (28193, 39),
    (29557, 39),
    (30975, 38),
    (32450, 38),
    (33986, 37),
    (35586, 36),
    (37253, 36),
    (38992, 35),
    (40808, 35),
    (42707, 34),
    (44694, 33),
    (46776, 33),
    (48961, 32),
    (51258, 32),
    (53677, 31),
    (56230, 30),
    (58932, 30),
    (61799, 29),
    (64851, 28),
    (68113, 28),
    (71617, 27),
    (75401, 26),
    (79517, 26),
    (84035, 25),
    (89053, 24),
];

/// The growth law of HighSpeed TCP with its state.
#[derive(Clone, Debug, Default)]
pub struct HighSpeed {
    additive: Additive,
    /// The row that was last used.
    row: u32,
}

/// The row for a window of `w` segments.
fn row(w: u64) -> usize {
    let row = TABLE.partition_point(|&(most, _)| most < w);
    row.min(TABLE.len() - 1)
}

impl GrowthLaw for HighSpeed {
    type Params = NoParams;

    fn grown(&mut self, cwnd: f64, _sample: &AckSample, mss: f64) -> f64 {
        let w = whole(cwnd, mss);
        self.row = row(w) as u32;
        self.additive.cnt += self.row + 1;
        let mut grown = w;
        if u64::from(self.additive.cnt) >= w {
            self.additive.cnt -= w as u32;
            grown += 1;
        }
        grown as f64 * mss
    }

    fn beta(&self) -> f64 {
        1.0 - TABLE[self.row as usize].1 as f64 / 256.0
    }

    fn counts_segments(&self) -> bool {
        true
    }

    fn on_congestion(&mut self, _window: f64, _kind: CongestionKind) {
        self.additive.reset();
    }

    /// By the row with which the window last grew in congestion avoidance. A loss in slow start
    /// therefore uses the row from before, at first one half (Linux).
    fn ssthresh(&mut self, window: f64, _kind: CongestionKind) -> Option<f64> {
        let w = window as u64;
        let (_, decrease) = TABLE[self.row as usize];
        Some((w - ((w * decrease) >> 8)).max(2) as f64)
    }
}
