//! Additive increase in whole segments, as Linux counts it.
//!
//! Source: Linux 6.1, net/ipv4/tcp_cong.c (`tcp_cong_avoid_ai`), read for what it computes.
//!
//! | symbol | meaning | unit |
//! |---|---|---|
//! | w | congestion window (snd_cwnd) | segments |
//! | cnt | acknowledged since w last grew (snd_cwnd_cnt) | segments |
//! | each | segments to be acknowledged for w to grow by one; Reno's is w | segments |
//!
//! ```text
//! w += 1, cnt = 0                          if cnt >= each before the acknowledgement
//! cnt += acked;  w += floor(cnt / each);  cnt = cnt mod each
//! reduction: cnt = 0
//! ```
//!
//! The first line applies if `each` has become smaller: the count from before then adds only one
//! segment.

/// The count, and the acknowledged bytes that do not yet make a whole segment. It takes 8 bytes, so
/// that a law with no other state needs no box.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Additive {
    /// The number of acknowledged segments since the last growth of the window (snd_cwnd_cnt of Linux).
    pub cnt: u32,
    bytes: u32,
}

/// A window in bytes, converted to whole segments; at least one.
#[inline]
pub(super) fn whole(cwnd: f64, mss: f64) -> u64 {
    ((cwnd / mss) as u64).max(1)
}

/// A constant in the kernel's fixed point, where `one` is 1; rounded to the nearest.
pub(super) fn fixed(value: f64, one: u64) -> u64 {
    (value * one as f64).round() as u64
}

impl Additive {
    /// The whole segments that `acked` bytes complete. Linux counts a short segment in full; here
    /// bytes are counted.
    #[inline]
    pub fn segments(&mut self, acked: u64, mss: f64) -> u64 {
        let bytes = u64::from(self.bytes) + acked;
        let mss = mss as u64;
        self.bytes = (bytes % mss) as u32;
        bytes / mss
    }

    /// The window `w` after `acked` more segments were acknowledged; it grows by one for every
    /// `each` segments.
    #[inline]
    pub fn grown(&mut self, w: u64, each: u64, acked: u64) -> u64 {
        let mut grown = w;
        if u64::from(self.cnt) >= each {
            self.cnt = 0;
            grown += 1;
        }
        let cnt = u64::from(self.cnt) + acked;
        self.cnt = (cnt % each) as u32;
        grown + cnt / each
    }

    /// The window `cwnd`, in bytes, after `acked` more bytes were acknowledged, for a law whose
    /// window of w segments grows by one for every `each(w)` segments.
    #[inline]
    pub(super) fn grow(
        &mut self,
        cwnd: f64,
        acked: u64,
        mss: f64,
        each: impl FnOnce(u64) -> u64,
    ) -> f64 {
        let (w, acked) = (whole(cwnd, mss), self.segments(acked, mss));
        self.grown(w, each(w), acked) as f64 * mss
    }

    /// Resets the count, for a reduction.
    pub fn reset(&mut self) {
        self.cnt = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_grows_by_one_for_each_of_its_segments() {
        let (mut additive, mut w, mut seen) = (Additive::default(), 10, Vec::new());
        for _ in 0..32 {
            w = additive.grown(w, w, 1);
            seen.push(w);
        }
        // With the tenth, the eleventh after it, and so on.
        assert_eq!(&seen[8..11], [10, 11, 11]);
        assert_eq!((seen[19], seen[20], seen[31]), (11, 12, 12));
    }

    #[test]
    fn an_acknowledgement_of_many_brings_as_many_as_it_holds() {
        let mut additive = Additive::default();
        assert_eq!(additive.grown(100, 10, 37), 103);
        assert_eq!(additive.cnt, 7);
        assert_eq!(additive.grown(103, 10, 3), 104);
        assert_eq!(additive.cnt, 0);
    }

    #[test]
    fn what_was_counted_at_a_larger_distance_brings_one_segment() {
        let mut additive = Additive::default();
        assert_eq!(additive.grown(50, 50, 49), 50);
        // 49 of 5 would be nine.
        assert_eq!(additive.grown(50, 5, 1), 51);
        assert_eq!(additive.cnt, 1);
    }

    #[test]
    fn bytes_are_counted_in_whole_segments() {
        let mut additive = Additive::default();
        let counted: Vec<u64> = [999, 1, 2500, 600]
            .map(|bytes| additive.segments(bytes, 1000.0))
            .to_vec();
        assert_eq!(counted, [0, 1, 2, 1]);
    }
}
