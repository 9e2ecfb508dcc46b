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
//! cwnd += SMSS acked / cwnd       counting bytes             (RFC 3465)
//! ssthresh = max(flight / 2, 2 SMSS) on loss                 (equation 4)
//! ```

use std::sync::Arc;

use super::{AckSample, ControllerConfig, GrowthLaw, as_f64};
use crate::constants::constants;

constants! {
    /// The constants of Reno.
    pub struct RenoParams {
        /// Factor of a reduction.
        beta: f64 = 0.5, in 0.05 => 0.95, "RFC 5681, section 3.1, equation 4";
    }
}

/// The law; it has no state beyond the window.
#[derive(Clone, Debug)]
pub struct Reno {
    /// Factor of a reduction.
    pub beta: f64,
    /// Grow with the bytes acknowledged, not with the number of acknowledgements (RFC 3465, section
    /// 2.1), so that delayed acknowledgements do not slow the growth.
    pub byte_counting: bool,
}

impl Reno {
    /// The window after an acknowledgement of `acked` bytes.
    #[inline]
    pub(super) fn after(&self, cwnd: f64, acked: u64, mss: f64) -> f64 {
        let counted = if self.byte_counting {
            as_f64(acked)
        } else {
            mss
        };
        cwnd + mss * counted / cwnd
    }
}

impl Default for Reno {
    fn default() -> Self {
        Self {
            beta: RenoParams::default().beta,
            byte_counting: false,
        }
    }
}

impl GrowthLaw for Reno {
    type Params = RenoParams;

    fn start(config: &ControllerConfig, params: &Arc<RenoParams>) -> Self {
        Self {
            beta: params.beta,
            byte_counting: config.byte_counting,
        }
    }

    #[inline]
    fn grown(&mut self, cwnd: f64, sample: &AckSample, mss: f64) -> f64 {
        self.after(cwnd, sample.acked, mss)
    }

    #[inline]
    fn beta(&self) -> f64 {
        self.beta
    }
}
