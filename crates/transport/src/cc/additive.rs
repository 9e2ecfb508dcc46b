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
//! The first line is for an `each` that has become smaller: what was counted at the
//! larger one brings a single segment.

/// The count, and what was acknowledged of a segment that is not whole yet: 8 bytes, so
/// that a law made of it alone needs no box.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Additive {
    /// snd_cwnd_cnt.
    pub cnt: u32,
    bytes: u32,
}

/// A window of bytes in whole segments, at least one.
#[inline]
pub(super) fn whole(cwnd: f64, mss: f64) -> u64 {
    ((cwnd / mss) as u64).max(1)
}

impl Additive {
    /// The whole segments that `acked` bytes complete. Linux counts segments, so that a
    /// short one counts in full; bytes are known here.
    #[inline]
    pub fn segments(&mut self, acked: u64, mss: f64) -> u64 {
        let bytes = u64::from(self.bytes) + acked;
        let mss = mss as u64;
        self.bytes = (bytes % mss) as u32;
        bytes / mss
    }

    /// The window after `acked` more segments were acknowledged, from `w`, which grows by
    /// one for `each`.
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

    /// The window of bytes after `acked` more were acknowledged, from `cwnd`, of a law whose
    /// window of w segments grows by one for `each(w)`.
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

    /// A reduction forgets what was counted.
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
