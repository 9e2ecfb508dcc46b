//! Adaptive RED: a RED queue whose max_p keeps the average between the thresholds, and whose
//! other parameters are computed from the link.
//!
//! Source: S. Floyd, R. Gummadi, S. Shenker, "Adaptive RED: An Algorithm for Increasing the
//! Robustness of RED's Active Queue Management", 2001. Formulas and symbols are in
//! [`crate::laws::red::adapt`], the law's in [`crate::laws::red`].

use redtail_core::{
    Bytes, Metric, Packet, ParamError, ParamWarning, QueueSize, Span, params, shared_keys,
};

use crate::laws::red::adapt::{Aimd, OF_MAX_P, automatic_bottom, automatic_min_th, automatic_w_q};
use crate::laws::red::{Flavour, RedConfig, Spacing};
use crate::queues::red::{
    AboveMaxTh, Gentle, MEAN_PACKET, Red, RedSetup, check_mean_packet, check_unit_interval,
    check_units, gentle_end, red_keys, threshold_at,
};
use crate::{Limit, LinkFacts, QueueContext, QueueParams};

shared_keys! { $
    /// The keys of Adaptive RED that others share.
    adaptive_red_keys {
        /// Drop probability at `max_th` to start from.
        max_p: f64 = crate::queues::red::MAX_P, "ns-2.35, ns-default.tcl (`linterm_` 10, that is 1/10).";
        /// Weight of one arrival's sample in the moving average. Left out, 1 - exp(-1/C), with the link's rate C in packets per second.
        w_q: Option<f64>, "Floyd, Gummadi, Shenker 2001.";
        /// Most that is added to max_p at once; never more than a quarter of it.
        alpha: f64 = 0.01, "Floyd, Gummadi, Shenker 2001.";
        /// Factor by which max_p is reduced.
        beta: f64 = 0.9, "Floyd, Gummadi, Shenker 2001.";
        /// max_p is reduced only while it is at least this. Left out, the smaller of 0.01 and one drop in 100 ms of packets of 1000 B.
        bottom: Option<f64>, "Floyd, Gummadi, Shenker 2001; ns-2.35, red.cc (`bottom_` 0).";
        /// max_p is increased only while it is at most this.
        top: f64 = 0.5, "Floyd, Gummadi, Shenker 2001.";
        /// Time between two changes of max_p.
        interval: Span = Span::from_ms(500), "Floyd, Gummadi, Shenker 2001.";
        /// Typical packet size: for what is computed from the link's rate, idle periods and `byte_mode`. Left out, the largest packet that crosses the link, or 500 B where none is known.
        mean_packet: Option<Bytes>, "ns-2.35 leaves it to the user (`mean_pktsize_` 500).";
    }
}

params! {
    /// Adaptive RED (Floyd, Gummadi, Shenker 2001).
    pub struct AdaptiveRedParams {
        /// Most that may wait: in packets, in bytes, in time at the link's rate, or a list of these.
        limit: Limit;
        /// Average below which nothing is dropped, in packets, bytes or time at the link's rate. Left out, half of `target_delay` at the link's rate, and at least 5 packets.
        min_th: Option<QueueSize>, "ns-2.35, red.cc (`thresh_` 0).";
        /// Average at which the drop probability reaches max_p, in the unit of `min_th`. Left out, three times `min_th`.
        max_th: Option<QueueSize>, "Floyd, Gummadi, Shenker 2001; ns-2.35, red.cc (`maxthresh_` 0).";
        /// Delay at the middle between the thresholds that an automatic `min_th` is for.
        target_delay: Span = Span::from_ms(5), "ns-2.35, ns-default.tcl (`targetdelay_`).";
        adaptive_red_keys!(max_p, w_q, alpha, beta, bottom, top, interval);
        red_keys!(gentle = Gentle::TwiceMaxTh, "Floyd, Gummadi, Shenker 2001, which build on gentle RED.");
        red_keys!(spacing);
        /// Whose details are followed where the paper leaves them open; with `"ns-2"` the gentle slope keeps starting from the first `max_p`.
        flavour: Flavour = Flavour::Paper, "Floyd, Gummadi, Shenker 2001; ns-2's for comparisons with it.";
        red_keys!(byte_mode);
        adaptive_red_keys!(mean_packet);
        red_keys!(ecn, above_max_th);
    }
}

impl AdaptiveRedParams {
    /// The queue's parameters on this link.
    pub(crate) fn setup(&self, link: &LinkFacts) -> RedSetup {
        let known = Some(link.largest_packet).filter(|size| *size > Bytes::ZERO);
        let mean_packet = self.mean_packet.or(known).unwrap_or(MEAN_PACKET);
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
        check_mean_packet(self.mean_packet.unwrap_or(MEAN_PACKET))
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
