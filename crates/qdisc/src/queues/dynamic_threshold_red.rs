//! RED with dynamic thresholds: a RED queue whose thresholds move together to keep the drop
//! probability within bounds.
//!
//! Source: J.-S. Jou and J. Baras, "A Parallel Virtual Queue Structure for Active Queue
//! Management", CSHCN TR 2003-4, section V. Formulas and symbols are in
//! [`crate::laws::red::adapt`], the law's in [`crate::laws::red`].

use redtail_core::schemars::JsonSchema;
use redtail_core::serde::{Deserialize, Serialize};
use redtail_core::{
    Bytes, Metric, Packet, ParamError, ParamWarning, QueueSize, Span, schemars, serde,
};

use crate::laws::red::Spacing;
use crate::laws::red::adapt::{MovingThresholds, OF_THRESHOLDS, ThresholdConfig};
use crate::queues::red::{
    AboveMaxTh, Gentle, Red, RedParams, check_unit_interval, default_max_p, default_mean_packet,
    default_spacing, default_w_q,
};
use crate::{Limit, LinkFacts, QueueContext, QueueParams};

/// RED with dynamic thresholds (Jou and Baras 2003).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(crate = "serde", deny_unknown_fields)]
#[schemars(crate = "schemars")]
pub struct DynamicThresholdRedParams {
    /// Most that may wait: in packets, in bytes, in time at the link's rate, or a list of these. In the unit of the thresholds it bounds `max_th`.
    pub limit: Limit,
    /// Average below which nothing is dropped, at the start; it never falls below this. In packets, bytes or time at the link's rate.
    pub min_th: QueueSize,
    /// Average at which the drop probability reaches `max_p`, at the start, in the unit of `min_th`; its distance from `min_th` stays.
    pub max_th: QueueSize,
    /// Average drop probability above which the thresholds rise.
    /// Source: Jou and Baras 2003, section V (P_U).
    #[serde(default = "default_p_upper")]
    pub p_upper: f64,
    /// Average drop probability below which the thresholds fall.
    /// Source: Jou and Baras 2003, section V (P_L).
    #[serde(default = "default_p_lower")]
    pub p_lower: f64,
    /// Share of `min_th` by which it moves at once.
    /// Source: ours, the paper gives none: slow against round trips, ten-fold in 24 s.
    #[serde(default = "default_gamma")]
    pub gamma: f64,
    /// Time between two moves.
    /// Source: ours, the paper gives none: that of Adaptive RED.
    #[serde(default = "default_interval")]
    pub interval: Span,
    /// Weight of one arrival in the average drop probability.
    /// Source: ours, the paper gives none: the usual weight of the average queue.
    #[serde(default = "default_w_q")]
    pub w_p: f64,
    /// Drop probability when the average reaches `max_th`.
    /// Source: ns-2.35, ns-default.tcl (`linterm_` 10, that is 1/10).
    #[serde(default = "default_max_p")]
    pub max_p: f64,
    /// Weight of one arrival's sample in the moving average.
    /// Source: Floyd and Jacobson 1993, section VI.
    #[serde(default = "default_w_q")]
    pub w_q: f64,
    /// Beyond `max_th`, let the probability rise from `max_p` to 1 instead of dropping everything: `true` or `"twice-max-th"` ends the slope at 2 `max_th` (Floyd 2000), `"limit"` at the queue's limit (ISCC 2001).
    /// Source: Jou and Baras 2003 (a gentle region up to 2 max_th).
    #[serde(default = "default_gentle")]
    pub gentle: Gentle,
    /// How early drops are spread over arrivals.
    /// Source: ns-2.35, ns-default.tcl (`wait_` true).
    #[serde(default = "default_spacing")]
    pub spacing: Spacing,
    /// Make a packet's drop probability proportional to its size over `mean_packet`.
    /// Source: off as in Floyd and Jacobson 1993, section IV.
    #[serde(default)]
    pub byte_mode: bool,
    /// Typical packet size: measures idle periods in packets and scales `byte_mode`.
    /// Source: ns-2.35, ns-default.tcl (`mean_pktsize_`).
    #[serde(default = "default_mean_packet")]
    pub mean_packet: Bytes,
    /// Mark ECN-capable packets where an early drop would hit them.
    /// Source: RFC 3168, section 5; off as in ns-2.35 (`setbit_`).
    #[serde(default)]
    pub ecn: bool,
    /// With `ecn`, what happens to ECN-capable packets chosen while the average is at `max_th` or above, gentle or not.
    /// Source: RFC 3168, section 7, and ns-2.35 (`mark_p_` equal to `max_p`).
    #[serde(default)]
    pub above_max_th: AboveMaxTh,
}

fn default_p_upper() -> f64 {
    0.02
}
fn default_p_lower() -> f64 {
    0.01
}
fn default_gamma() -> f64 {
    0.05
}
fn default_interval() -> Span {
    Span::from_ms(500)
}
fn default_gentle() -> Gentle {
    Gentle::TwiceMaxTh
}

impl DynamicThresholdRedParams {
    /// RED with thresholds that start here; the rest by default.
    pub fn new(limit: Limit, min_th: QueueSize, max_th: QueueSize) -> Self {
        Self {
            limit,
            min_th,
            max_th,
            p_upper: default_p_upper(),
            p_lower: default_p_lower(),
            gamma: default_gamma(),
            interval: default_interval(),
            w_p: default_w_q(),
            max_p: default_max_p(),
            w_q: default_w_q(),
            gentle: default_gentle(),
            spacing: default_spacing(),
            byte_mode: false,
            mean_packet: default_mean_packet(),
            ecn: false,
            above_max_th: AboveMaxTh::default(),
        }
    }

    /// The RED that it starts as.
    fn red(&self) -> RedParams {
        RedParams {
            max_p: Some(self.max_p),
            w_q: Some(self.w_q),
            gentle: self.gentle,
            spacing: self.spacing,
            byte_mode: self.byte_mode,
            mean_packet: self.mean_packet,
            ecn: self.ecn,
            above_max_th: self.above_max_th,
            ..RedParams::new(self.limit, self.min_th, self.max_th)
        }
    }
}

impl QueueParams for DynamicThresholdRedParams {
    type Queue<P: Packet> = Red<P, MovingThresholds>;

    const METRICS: &'static [&'static [&'static Metric]] = &[OF_THRESHOLDS];

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
