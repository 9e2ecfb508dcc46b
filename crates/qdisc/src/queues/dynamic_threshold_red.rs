//! RED with dynamic thresholds: a RED queue that moves its thresholds to keep the drop probability within
//! bounds.
//!
//! Source: J.-S. Jou and J. Baras, "A Parallel Virtual Queue Structure for Active Queue
//! Management", CSHCN TR 2003-4, section V. The formulas and symbols of the adaptation are in
//! [`crate::laws::red::adapt`], those of the law in [`crate::laws::red`].

use crate::laws::red::Spacing;
use crate::laws::red::adapt::{MovingThresholds, OF_THRESHOLDS, ThresholdConfig};
use crate::queues::red::{
    AboveMaxTh, Gentle, Red, RedParams, W_Q, as_red, check_unit_interval, red_keys,
};
use crate::{Limit, LinkFacts, QueueContext, QueueKind};
use redtail_core::{Bytes, Metric, Packet, ParamError, ParamWarning, QueueSize, Span, params};

params! {
    /// RED with dynamic thresholds (Jou and Baras 2003).
    pub struct DynamicThresholdRedParams {
        /// Limit on the waiting packets: in packets, in bytes, in time at the link's rate, or a list of these. In the unit of the thresholds it bounds `max_th`.
        limit: Limit;
        /// Initial and smallest value of the average below which no packet is dropped, in packets, bytes or time at the link's rate.
        min_th: QueueSize;
        /// Initial value of the average at which the drop probability reaches `max_p`, in the unit of `min_th`; its difference from `min_th` is constant.
        max_th: QueueSize;
        /// Average drop probability above which the thresholds rise.
        p_upper: f64 = 0.02, "Jou and Baras 2003, section V (P_U).";
        /// Average drop probability below which the thresholds fall.
        p_lower: f64 = 0.01, "Jou and Baras 2003, section V (P_L).";
        /// Step of `min_th`, as a share of `min_th`.
        gamma: f64 = 0.05, "ours, the paper gives none: slow against round trips, ten-fold in 24 s.";
        /// Time between two steps of the thresholds.
        interval: Span = Span::from_ms(500), "ours, the paper gives none: that of Adaptive RED.";
        /// Weight of one arrival in the average drop probability.
        w_p: f64 = W_Q, "ours, the paper gives none: the usual weight of the average queue.";
        red_keys!(max_p, w_q);
        red_keys!(gentle = Gentle::TwiceMaxTh, "Jou and Baras 2003 (a gentle region up to 2 max_th).");
        red_keys!(spacing, byte_mode, mean_packet, ecn, above_max_th);
    }
}

impl DynamicThresholdRedParams {
    /// Returns the parameters of RED at the start.
    fn red(&self) -> RedParams {
        as_red!(self)
    }
}

impl QueueKind for DynamicThresholdRedParams {
    type Queue<P: Packet> = Red<P, MovingThresholds>;

    const METRICS: &'static [&'static [&'static Metric]] = &[OF_THRESHOLDS];

    fn example() -> &'static str {
        r#"limit = "250 packets"
min_th = "40 packets"
max_th = "120 packets""#
    }

    fn check(&self) -> Result<(), ParamError> {
        self.red().check()?;
        check_unit_interval("p_upper", self.p_upper, "a probability")?;
        check_unit_interval("p_lower", self.p_lower, "a probability")?;
        check_unit_interval("w_p", self.w_p, "a weight")?;
        if self.p_lower >= self.p_upper {
            return Err(ParamError::new(
                "p_lower",
                format!("is not below p_upper ({})", self.p_upper),
                format!("less than {}", self.p_upper),
            ));
        }
        if !(self.gamma > 0.0 && self.gamma < 1.0) {
            return Err(ParamError::new(
                "gamma",
                "is not a share of min_th",
                "a number above 0 and below 1",
            ));
        }
        let nothing = [
            QueueSize::Packets(0),
            QueueSize::Bytes(0),
            QueueSize::Time(Span::ZERO),
        ];
        if nothing.contains(&self.min_th) {
            return Err(ParamError::new(
                "min_th",
                "is zero, which no factor moves",
                "a queue size such as \"20 kB\"",
            ));
        }
        if self.interval == Span::ZERO {
            return Err(ParamError::new(
                "interval",
                "is zero",
                "a time such as \"500 ms\"",
            ));
        }
        Ok(())
    }

    fn check_at(&self, link: &LinkFacts) -> Result<(), ParamError> {
        self.red().check_at(link)?;
        if self.red().setup(link)?.limit_like_thresholds().is_none() {
            return Err(ParamError::new(
                "limit",
                format!(
                    "is in another unit than min_th ({}), and does not say how far the \
                     thresholds may rise",
                    self.min_th
                ),
                "a limit in the unit of the thresholds, or a list that has one",
            ));
        }
        Ok(())
    }

    fn limit(&self) -> Option<Limit> {
        Some(self.limit)
    }

    fn warnings(&self, link: &LinkFacts) -> Vec<ParamWarning> {
        let mut warnings = self.red().warnings(link);
        if self.max_p <= self.p_upper && self.gentle == Gentle::Off {
            warnings.push(ParamWarning::new(
                "max_p",
                format!(
                    "is not above p_upper ({}): the thresholds rise only once everything is \
                     dropped",
                    self.p_upper
                ),
            ));
        }
        warnings
    }

    fn build<P: Packet>(&self, context: QueueContext) -> Red<P, MovingThresholds> {
        let setup = self.red().setup(&context.link);
        let setup = setup.expect("nothing is computed by a model");
        let lowest = setup.law.min_th;
        let distance = setup.law.max_th - lowest;
        let limit = setup.limit_like_thresholds().expect("check_at has passed");
        let thresholds = MovingThresholds::new(ThresholdConfig {
            gamma: self.gamma,
            p_lower: self.p_lower,
            p_upper: self.p_upper,
            w_p: self.w_p,
            interval: self.interval,
            lowest,
            highest: (limit - distance).max(lowest),
            distance,
            end_moves: self.gentle == Gentle::TwiceMaxTh,
        });
        setup.build(thresholds, context)
    }
}
