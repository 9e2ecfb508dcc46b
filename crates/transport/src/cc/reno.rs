//! Congestion avoidance of Reno.
//!
//! Source: RFC 5681, section 3.1.
//!
//! | symbol | meaning | unit |
//! |---|---|---|
//! | cwnd | congestion window | bytes |
//! | SMSS | sender's maximum segment size | bytes |
//!
//! ```text
//! cwnd += SMSS SMSS / cwnd        once per acknowledgement   (equation 3)
//! ssthresh = max(flight / 2, 2 SMSS) on loss                 (equation 4)
//! ```

use super::{AckSample, GrowthLaw};

/// The law; it has no state beyond the window.
#[derive(Clone, Debug)]
pub struct Reno;

impl GrowthLaw for Reno {
    #[inline]
    fn grown(&mut self, cwnd: f64, _sample: &AckSample, mss: f64) -> f64 {
        cwnd + mss * mss / cwnd
    }

    #[inline]
    fn beta(&self) -> f64 {
        0.5
    }
}
