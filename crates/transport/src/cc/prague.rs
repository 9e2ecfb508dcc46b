//! Growth of Prague.
//!
//! Source: draft-briscoe-iccrg-prague-congestion-control-04, section 2.4; its reference
//! implementation (L4STeam/linux, net/ipv4/tcp_prague.c, prague_update_cwnd and
//! prague_rate_scaled_ai_ack_increase). The reduction by marks is in the ECN response
//! ([`EcnReduction::Prague`](crate::tcp::ecn::EcnReduction)). A loss halves the window.
//!
//! | symbol | meaning | unit |
//! |---|---|---|
//! | cwnd | congestion window | bytes |
//! | RTT | smoothed round trip | s |
//! | RTT_v | virtual round trip, max(RTT, 25 ms) | s |
//!
//! ```text
//! cwnd += SMSS (acked - marked) / cwnd                     at first
//! cwnd += (RTT / RTT_v)^2 SMSS (acked - marked) / cwnd     rtt_transition rounds after slow start
//! ```
//!
//! By the second rule the rate of a flow with a short round trip grows as that of a flow with 25
//! ms. The first rule makes short transfers faster. Rounds are counted by the feedback of marks, so
//! without AccECN's or DCTCP's feedback the first rule always applies (the reference implementation
//! falls back to Reno then). Only unmarked bytes grow the window, also during a reduction.

use std::sync::Arc;

use redtail_core::Span;

use super::{AckSample, ControllerConfig, GrowthLaw, as_f64};
use crate::constants::constants;

constants! {
    /// The constants of Prague.
    pub struct PragueParams {
        /// Shortest virtual round trip.
        least_round: Span = Span::from_ms(25), in Span::ZERO => Span::from_s(1), "draft-briscoe-iccrg-prague-congestion-control-04, section 2.4.4";
        /// Factor of a reduction by a loss.
        beta: f64 = 0.5, in 0.05 => 0.95, "draft-briscoe-iccrg-prague-congestion-control-04, section 2.4.2: as Reno";
    }
}

/// The law; it has no state beyond the window.
#[derive(Clone, Debug, Default)]
pub struct Prague {
    params: Arc<PragueParams>,
}

impl GrowthLaw for Prague {
    type Params = PragueParams;

    fn start(_: &ControllerConfig, params: &Arc<PragueParams>) -> Self {
        Self {
            params: Arc::clone(params),
        }
    }

    fn grown(&mut self, cwnd: f64, sample: &AckSample, mss: f64) -> f64 {
        let unmarked = as_f64(sample.acked.saturating_sub(sample.marked));
        let srtt = sample.srtt.filter(|_| sample.rtt_independent);
        let scale = srtt.map_or(1.0, |srtt| {
            let virtual_rtt = srtt.max(self.params.least_round);
            srtt.as_secs_f64() / virtual_rtt.as_secs_f64()
        });
        cwnd + scale * scale * mss * unmarked / cwnd
    }

    fn grows_between_marks(&self) -> bool {
        true
    }

    #[inline]
    fn beta(&self) -> f64 {
        self.params.beta
    }
}
