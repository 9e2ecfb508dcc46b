//! Adaptive RED: a RED queue that adapts max_p to keep the average between the thresholds, and whose other
//! parameters are computed from the link.
//!
//! Source: S. Floyd, R. Gummadi, S. Shenker, "Adaptive RED: An Algorithm for Increasing the
//! Robustness of RED's Active Queue Management", 2001. The formulas and symbols of the adaptation are in
//! [`crate::laws::red::adapt`], those of the law in [`crate::laws::red`].

use redtail_core::{
    Bytes, Metric, Packet, ParamError, ParamWarning, QueueSize, Span, params, shared_keys,
};

use crate::laws::red::adapt::{Aimd, OF_MAX_P, automatic_bottom, automatic_min_th, automatic_w_q};
use crate::laws::red::{Flavour, RedConfig, Spacing};
use crate::queues::red::{
    AboveMaxTh, Gentle, MEAN_PACKET, Red, RedSetup, check_mean_packet, check_unit_interval,
    check_units, gentle_end, red_keys, threshold_at,
};
use crate::{Limit, LinkFacts, QueueContext, QueueKind};

shared_keys! { $
    /// The keys that Adaptive RED shares with other queues.
    adaptive_red_keys {
        /// Initial drop probability at `max_th`.
        max_p: f64 = crate::queues::red::MAX_P, "ns-2.35, ns-default.tcl (`linterm_` 10, that is 1/10).";
        /// Weight of one arrival's sample in the moving average. Left out, 1 - exp(-1/C), with the link's rate C in packets per second.
        w_q: Option<f64>, "Floyd, Gummadi, Shenker 2001.";
        /// Largest amount added to max_p in one step; never more than a quarter of max_p.
        alpha: f64 = 0.01, "Floyd, Gummadi, Shenker 2001.";
        /// Factor by which max_p is reduced.
        beta: f64 = 0.9, "Floyd, Gummadi, Shenker 2001.";
        /// max_p is reduced only while it is at least this. Left out, the smaller of 0.01 and one drop in 100 ms of packets of 1000 B.
        bottom: Option<f64>, "Floyd, Gummadi, Shenker 2001; ns-2.35, red.cc (`bottom_` 0).";
        /// max_p is increased only while it is at most this.
        top: f64 = 0.5, "Floyd, Gummadi, Shenker 2001.";
        /// Time between two changes of max_p.
        interval: Span = Span::from_ms(500), "Floyd, Gummadi, Shenker 2001.";
        /// Typical packet size: used for values that are computed from the link's rate, for idle periods
        /// and for `byte_mode`. Left out, the largest packet that crosses the link, or 500 B if none is
        /// known.
        mean_packet: Option<Bytes>, "ns-2.35 leaves it to the user (`mean_pktsize_` 500).";
    }
}

params! {
    /// Adaptive RED (Floyd, Gummadi, Shenker 2001).
    pub struct AdaptiveRedParams {
        /// Limit on the waiting packets: in packets, in bytes, in time at the link's rate, or a list of these.
        limit: Limit;
        /// Average below which no packet is dropped, in packets, bytes or time at the link's rate. Left out, half of `target_delay` at the link's rate, and at least 5 packets.
        min_th: Option<QueueSize>, "ns-2.35, red.cc (`thresh_` 0).";
        /// Average at which the drop probability reaches max_p, in the unit of `min_th`. Left out, three times `min_th`.
        max_th: Option<QueueSize>, "Floyd, Gummadi, Shenker 2001; ns-2.35, red.cc (`maxthresh_` 0).";
        /// Queueing delay halfway between the thresholds, from which `min_th` is computed when it is left out.
        target_delay: Span = Span::from_ms(5), "ns-2.35, ns-default.tcl (`targetdelay_`).";
        adaptive_red_keys!(max_p, w_q, alpha, beta, bottom, top, interval);
        /// Whether max_p changes. With `false` it stays where it starts: RED with this queue's other parameters, and what `tc red adaptive` makes of a Linux kernel.
        adapt: bool = true, "Floyd, Gummadi, Shenker 2001.";
        red_keys!(gentle = Gentle::TwiceMaxTh, "Floyd, Gummadi, Shenker 2001, which build on gentle RED.");
        red_keys!(spacing);
        /// Which implementation's details apply where the paper specifies none: those of the paper's text, of ns-2 or of Linux. With `"ns-2"`, the gentle slope always starts from the initial `max_p`.
        flavour: Flavour = Flavour::Paper, "Floyd, Gummadi, Shenker 2001; ns-2's and Linux's for comparisons with them.";
        red_keys!(byte_mode);
        adaptive_red_keys!(mean_packet);
        red_keys!(idle_decay, ecn, above_max_th);
    }
}

impl AdaptiveRedParams {
    /// Returns the queue's parameters on this link.
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
            idle_decay: self.idle_decay,
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

impl QueueKind for AdaptiveRedParams {
    type Queue<P: Packet> = Red<P, Aimd>;

    const METRICS: &'static [&'static [&'static Metric]] = &[OF_MAX_P];

    fn example() -> &'static str {
        r#"limit = "250 packets"
target_delay = "50 ms""#
    }

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
        let aimd = if self.adapt { aimd } else { aimd.stopped() };
        self.setup(&context.link).build(aimd, context)
    }
}
