//! Self-configuring RED: a RED queue that changes max_p when the average leaves the range between the
//! thresholds.
//!
//! Source: W. Feng, D. Kandlur, D. Saha, K. Shin, "A Self-Configuring RED Gateway", INFOCOM
//! 1999. The formulas and symbols of the adaptation are in [`crate::laws::red::adapt`], those of the law in
//! [`crate::laws::red`].

use crate::laws::red::Spacing;
use crate::laws::red::adapt::{Crossings, OF_MAX_P};
use crate::queues::adaptive_red::adaptive_red_keys;
use crate::queues::red::{AboveMaxTh, Gentle, Red, RedParams, as_red, red_keys};
use crate::{Limit, LinkFacts, QueueContext, QueueKind};
use redtail_core::{Bytes, Metric, Packet, ParamError, ParamWarning, QueueSize, params};

params! {
    /// Self-configuring RED (Feng, Kandlur, Saha, Shin 1999).
    pub struct SelfConfiguringRedParams {
        /// Limit on the waiting packets: in packets, in bytes, in time at the link's rate, or a list of these.
        limit: Limit;
        /// Average below which no packet is dropped, in packets, bytes or time at the link's rate; when the average falls below it, max_p is divided by `alpha`.
        min_th: QueueSize;
        /// Average at which the drop probability reaches max_p, in the unit of `min_th`; when the average rises above it, max_p is multiplied by `beta`.
        max_th: QueueSize;
        adaptive_red_keys!(max_p);
        red_keys!(w_q);
        /// Divisor of max_p when the average falls below `min_th`.
        alpha: f64 = 3.0, "Feng, Kandlur, Saha, Shin 1999.";
        /// Factor of max_p when the average rises above `max_th`; max_p stays at 1 at most.
        beta: f64 = 2.0, "Feng, Kandlur, Saha, Shin 1999.";
        red_keys!(gentle = Gentle::Off, "off; gentle RED is younger than the paper.");
        red_keys!(spacing, byte_mode, mean_packet, ecn, above_max_th);
    }
}

impl SelfConfiguringRedParams {
    /// Returns the parameters of RED at the start.
    fn red(&self) -> RedParams {
        as_red!(self)
    }
}

impl QueueKind for SelfConfiguringRedParams {
    type Queue<P: Packet> = Red<P, Crossings>;

    const METRICS: &'static [&'static [&'static Metric]] = &[OF_MAX_P];

    fn example() -> &'static str {
        r#"limit = "250 packets"
min_th = "40 packets"
max_th = "120 packets""#
    }

    fn check(&self) -> Result<(), ParamError> {
        self.red().check()?;
        for (key, value) in [("alpha", self.alpha), ("beta", self.beta)] {
            if !(value >= 1.0 && value.is_finite()) {
                return Err(ParamError::new(
                    key,
                    "would move max_p the wrong way",
                    "a number from 1",
                ));
            }
        }
        Ok(())
    }

    fn check_at(&self, link: &LinkFacts) -> Result<(), ParamError> {
        self.red().check_at(link)
    }

    fn limit(&self) -> Option<Limit> {
        Some(self.limit)
    }

    fn warnings(&self, link: &LinkFacts) -> Vec<ParamWarning> {
        let mut warnings = self.red().warnings(link);
        for (key, value, side) in [
            ("alpha", self.alpha, "below min_th"),
            ("beta", self.beta, "above max_th"),
        ] {
            if value == 1.0 {
                warnings.push(ParamWarning::new(
                    key,
                    format!("leaves max_p as it is when the average is {side}"),
                ));
            }
        }
        warnings
    }

    fn build<P: Packet>(&self, context: QueueContext) -> Red<P, Crossings> {
        let setup = self.red().setup(&context.link);
        let setup = setup.expect("nothing is computed by a model");
        setup.build(Crossings::new(self.alpha, self.beta), context)
    }
}
