//! Self-configuring RED: a RED queue whose max_p changes when the average leaves the
//! thresholds.
//!
//! Source: W. Feng, D. Kandlur, D. Saha, K. Shin, "A Self-Configuring RED Gateway", INFOCOM
//! 1999. Formulas and symbols are in [`crate::laws::red::adapt`], the law's in
//! [`crate::laws::red`].

use redtail_core::schemars::JsonSchema;
use redtail_core::serde::{Deserialize, Serialize};
use redtail_core::{Bytes, Metric, Packet, ParamError, ParamWarning, QueueSize, schemars, serde};

use crate::laws::red::Spacing;
use crate::laws::red::adapt::{Crossings, OF_MAX_P};
use crate::queues::red::{
    AboveMaxTh, Gentle, Red, RedParams, default_max_p, default_mean_packet, default_spacing,
    default_w_q,
};
use crate::{Limit, LinkFacts, QueueContext, QueueParams};

/// Self-configuring RED (Feng, Kandlur, Saha, Shin 1999).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(crate = "serde", deny_unknown_fields)]
#[schemars(crate = "schemars")]
pub struct SelfConfiguringRedParams {
    /// Most that may wait: in packets, in bytes, in time at the link's rate, or a list of these.
    pub limit: Limit,
    /// Average below which nothing is dropped, in packets, bytes or time at the link's rate; falling below it divides max_p by `alpha`.
    pub min_th: QueueSize,
    /// Average at which the drop probability reaches max_p, in the unit of `min_th`; rising above it multiplies max_p by `beta`.
    pub max_th: QueueSize,
    /// Drop probability at `max_th` to start from.
    /// Source: ns-2.35, ns-default.tcl (`linterm_` 10, that is 1/10).
    #[serde(default = "default_max_p")]
    pub max_p: f64,
    /// Weight of one arrival's sample in the moving average.
    /// Source: Floyd and Jacobson 1993, section VI.
    #[serde(default = "default_w_q")]
    pub w_q: f64,
    /// Divisor of max_p when the average falls below `min_th`.
    /// Source: Feng, Kandlur, Saha, Shin 1999.
    #[serde(default = "default_alpha")]
    pub alpha: f64,
    /// Factor of max_p when the average rises above `max_th`; max_p stays at 1 at most.
    /// Source: Feng, Kandlur, Saha, Shin 1999.
    #[serde(default = "default_beta")]
    pub beta: f64,
    /// Beyond `max_th`, let the probability rise from max_p to 1 instead of dropping everything: `true` or `"twice-max-th"` ends the slope at 2 `max_th` (Floyd 2000), `"limit"` at the queue's limit (ISCC 2001).
    /// Source: off; gentle RED is younger than the paper.
    #[serde(default)]
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

fn default_alpha() -> f64 {
    3.0
}
fn default_beta() -> f64 {
    2.0
}

impl SelfConfiguringRedParams {
    /// Self-configuring RED with these thresholds; the rest by default.
    pub fn new(limit: Limit, min_th: QueueSize, max_th: QueueSize) -> Self {
        Self {
            limit,
            min_th,
            max_th,
            max_p: default_max_p(),
            w_q: default_w_q(),
            alpha: default_alpha(),
            beta: default_beta(),
            gentle: Gentle::default(),
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

impl QueueParams for SelfConfiguringRedParams {
    type Queue<P: Packet> = Red<P, Crossings>;

    const METRICS: &'static [&'static [&'static Metric]] = &[OF_MAX_P];

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
