//! Adaptive RED: a RED queue whose max_p keeps the average between the thresholds, and whose
//! other parameters are computed from the link.
//!
//! Source: S. Floyd, R. Gummadi, S. Shenker, "Adaptive RED: An Algorithm for Increasing the
//! Robustness of RED's Active Queue Management", 2001. Formulas and symbols are in
//! [`crate::laws::red::adapt`], the law's in [`crate::laws::red`].

use redtail_core::schemars::JsonSchema;
use redtail_core::serde::{Deserialize, Serialize};
use redtail_core::{
    Bytes, Metric, Packet, ParamError, ParamWarning, QueueSize, Span, schemars, serde,
};

use crate::laws::red::adapt::{Aimd, OF_MAX_P, automatic_bottom, automatic_min_th, automatic_w_q};
use crate::laws::red::{Flavour, RedConfig, Spacing};
use crate::queues::red::{
    AboveMaxTh, Gentle, Red, RedSetup, check_mean_packet, check_unit_interval, check_units,
    default_max_p, default_mean_packet, default_spacing, gentle_end, threshold_at,
};
use crate::{Limit, LinkFacts, QueueContext, QueueParams};

/// Adaptive RED (Floyd, Gummadi, Shenker 2001).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(crate = "serde", deny_unknown_fields)]
#[schemars(crate = "schemars")]
pub struct AdaptiveRedParams {
    /// Most that may wait: in packets, in bytes, in time at the link's rate, or a list of these.
    pub limit: Limit,
    /// Average below which nothing is dropped, in packets, bytes or time at the link's rate. Left out, half of `target_delay` at the link's rate, and at least 5 packets.
    /// Source: ns-2.35, red.cc (`thresh_` 0).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_th: Option<QueueSize>,
    /// Average at which the drop probability reaches max_p, in the unit of `min_th`. Left out, three times `min_th`.
    /// Source: Floyd, Gummadi, Shenker 2001; ns-2.35, red.cc (`maxthresh_` 0).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_th: Option<QueueSize>,
    /// Delay at the middle between the thresholds that an automatic `min_th` is for.
    /// Source: ns-2.35, ns-default.tcl (`targetdelay_`).
    #[serde(default = "default_target_delay")]
    pub target_delay: Span,
    /// Drop probability at `max_th` to start from.
    /// Source: ns-2.35, ns-default.tcl (`linterm_` 10, that is 1/10).
    #[serde(default = "default_max_p")]
    pub max_p: f64,
    /// Weight of one arrival's sample in the moving average. Left out, 1 - exp(-1/C), with the link's rate C in packets per second.
    /// Source: Floyd, Gummadi, Shenker 2001.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub w_q: Option<f64>,
    /// Most that is added to max_p at once; never more than a quarter of it.
    /// Source: Floyd, Gummadi, Shenker 2001.
    #[serde(default = "default_alpha")]
    pub alpha: f64,
    /// Factor by which max_p is reduced.
    /// Source: Floyd, Gummadi, Shenker 2001.
    #[serde(default = "default_beta")]
    pub beta: f64,
    /// max_p is reduced only while it is at least this. Left out, the smaller of 0.01 and one drop in 100 ms of packets of 1000 B.
    /// Source: Floyd, Gummadi, Shenker 2001; ns-2.35, red.cc (`bottom_` 0).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bottom: Option<f64>,
    /// max_p is increased only while it is at most this.
    /// Source: Floyd, Gummadi, Shenker 2001.
    #[serde(default = "default_top")]
    pub top: f64,
    /// Time between two changes of max_p.
    /// Source: Floyd, Gummadi, Shenker 2001.
    #[serde(default = "default_interval")]
    pub interval: Span,
    /// Beyond `max_th`, let the probability rise from max_p to 1 instead of dropping everything: `true` or `"twice-max-th"` ends the slope at 2 `max_th` (Floyd 2000), `"limit"` at the queue's limit (ISCC 2001).
    /// Source: Floyd, Gummadi, Shenker 2001, which build on gentle RED.
    #[serde(default = "default_gentle")]
    pub gentle: Gentle,
    /// How early drops are spread over arrivals.
    /// Source: ns-2.35, ns-default.tcl (`wait_` true).
    #[serde(default = "default_spacing")]
    pub spacing: Spacing,
    /// Whose details are followed where the paper leaves them open; with `"ns-2"` the gentle slope keeps starting from the first `max_p`.
    /// Source: Floyd, Gummadi, Shenker 2001; ns-2's for comparisons with it.
    #[serde(default)]
    pub flavour: Flavour,
    /// Make a packet's drop probability proportional to its size over `mean_packet`.
    /// Source: off as in Floyd and Jacobson 1993, section IV.
    #[serde(default)]
    pub byte_mode: bool,
    /// Typical packet size: for what is computed from the link's rate, idle periods and `byte_mode`. Left out, the largest packet that crosses the link, or 500 B where none is known.
    /// Source: ns-2.35 leaves it to the user (`mean_pktsize_` 500).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean_packet: Option<Bytes>,
    /// Mark ECN-capable packets where an early drop would hit them.
    /// Source: RFC 3168, section 5; off as in ns-2.35 (`setbit_`).
    #[serde(default)]
    pub ecn: bool,
    /// With `ecn`, what happens to ECN-capable packets chosen while the average is at `max_th` or above, gentle or not.
    /// Source: RFC 3168, section 7, and ns-2.35 (`mark_p_` equal to `max_p`).
    #[serde(default)]
    pub above_max_th: AboveMaxTh,
}

fn default_target_delay() -> Span {
    Span::from_ms(5)
}
pub(crate) fn default_alpha() -> f64 {
    0.01
}
pub(crate) fn default_beta() -> f64 {
    0.9
}
pub(crate) fn default_top() -> f64 {
    0.5
}
pub(crate) fn default_interval() -> Span {
    Span::from_ms(500)
}
pub(crate) fn default_gentle() -> Gentle {
    Gentle::TwiceMaxTh
}

impl AdaptiveRedParams {
    /// Adaptive RED with this limit; the rest by default.
    pub fn new(limit: Limit) -> Self {
        Self {
            limit,
            min_th: None,
            max_th: None,
            target_delay: default_target_delay(),
            max_p: default_max_p(),
            w_q: None,
            alpha: default_alpha(),
            beta: default_beta(),
            bottom: None,
            top: default_top(),
            interval: default_interval(),
            gentle: default_gentle(),
            spacing: default_spacing(),
            flavour: Flavour::default(),
            byte_mode: false,
            mean_packet: None,
            ecn: false,
            above_max_th: AboveMaxTh::default(),
        }
    }

    /// The queue's parameters on this link.
    pub(crate) fn setup(&self, link: &LinkFacts) -> RedSetup {
        let known = Some(link.largest_packet).filter(|size| *size > Bytes::ZERO);
        let mean_packet = self
            .mean_packet
            .or(known)
            .unwrap_or_else(default_mean_packet);
        let given = self.min_th.or(self.max_th);
        let measures_bytes = given.is_some_and(|threshold| !threshold.counts_packets());
        let min_th = self.min_th.map_or_else(
            || {
                let packets = automatic_min_th(link.rate, mean_packet, self.target_delay);
                if measures_bytes {
                    packets * mean_packet.as_u64() as f64
                } else {
                    packets
                }
            },
            |size| threshold_at(size, link.rate),
        );
        let max_th = self
            .max_th
            .map_or(3.0 * min_th, |size| threshold_at(size, link.rate));
        let w_q = self.w_q;
        let limit = self.limit.at(link.rate);
        RedSetup {
            limit,
            measures_bytes,
            byte_mode: self.byte_mode.then_some(mean_packet),
            mean_packet,
            ecn: self.ecn,
            above_max_th: self.above_max_th,
            law: RedConfig {
                min_th,
                max_th,
                max_p: self.max_p,
                w_q: w_q.unwrap_or_else(|| automatic_w_q(link.rate, mean_packet)),
                gentle_end: gentle_end(self.gentle, max_th, limit, measures_bytes),
                spacing: self.spacing,
                flavour: self.flavour,
            },
        }
    }

    pub(crate) fn bottom(&self, link: &LinkFacts) -> f64 {
        self.bottom.unwrap_or_else(|| automatic_bottom(link.rate))
    }
}

impl QueueParams for AdaptiveRedParams {
    type Queue<P: Packet> = Red<P, Aimd>;

    const METRICS: &'static [&'static [&'static Metric]] = &[OF_MAX_P];

    fn check(&self) -> Result<(), ParamError> {
        self.limit.check()?;
        if let (Some(min_th), Some(max_th)) = (self.min_th, self.max_th) {
            check_units(min_th, max_th)?;
        }
        check_unit_interval("max_p", self.max_p, "a probability")?;
        check_unit_interval("w_q", self.w_q.unwrap_or(1.0), "a weight")?;
        check_unit_interval("alpha", self.alpha, "a step")?;
        check_unit_interval("bottom", self.bottom.unwrap_or(1.0), "a probability")?;
        check_unit_interval("top", self.top, "a probability")?;
        if !(self.beta > 0.0 && self.beta < 1.0) {
            return Err(ParamError::new(
                "beta",
                "is not a factor that reduces max_p",
                "a number above 0 and below 1",
            ));
        }
        if self.bottom.is_some_and(|bottom| bottom >= self.top) {
            return Err(ParamError::new(
                "bottom",
                format!("is not below top ({})", self.top),
                format!("less than {}", self.top),
            ));
        }
        if self.interval == Span::ZERO {
            return Err(ParamError::new(
                "interval",
                "is zero",
                "a time such as \"500 ms\"",
            ));
        }
        check_mean_packet(self.mean_packet.unwrap_or_else(default_mean_packet))
    }

    fn check_at(&self, link: &LinkFacts) -> Result<(), ParamError> {
        self.setup(link).check(self.gentle, self.max_th)
    }

    fn limit(&self) -> Option<Limit> {
        Some(self.limit)
    }

    fn warnings(&self, link: &LinkFacts) -> Vec<ParamWarning> {
        let mut warnings = self.setup(link).warnings();
        let bottom = self.bottom(link);
        if !(bottom..=self.top).contains(&self.max_p) {
            warnings.push(ParamWarning::new(
                "max_p",
                format!(
                    "starts outside its bounds, {bottom} to {}, into which it is only led by \
                     the load",
                    self.top
                ),
            ));
        }
        if let Some(round_trip) = link.max_round_trip.filter(|time| self.interval < *time) {
            warnings.push(ParamWarning::new(
                "interval",
                format!(
                    "is shorter than the longest round trip (\"{round_trip}\"): max_p changes \
                     again before the flows have heard of the last change"
                ),
            ));
        }
        warnings
    }

    fn build<P: Packet>(&self, context: QueueContext) -> Red<P, Aimd> {
        let bottom = self.bottom(&context.link);
        let aimd = Aimd::new(self.alpha, self.beta, bottom, self.top, self.interval);
        self.setup(&context.link).build(aimd, context)
    }
}
