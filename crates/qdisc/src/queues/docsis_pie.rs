//! DOCSIS-PIE: the upstream queue of a cable modem with the law of [`crate::laws::docsis_pie`] and the
//! modem's shaper.
//!
//! Source: RFC 8034, section 3 (the shaper), section 4 and appendix A (the law).
//!
//! | symbol | here | unit |
//! |---|---|---|
//! | R, maximum sustained traffic rate | `rate` | bit/s |
//! | B, maximum traffic burst | `burst` | bytes |
//! | P, peak traffic rate | `peak_rate` | bit/s |
//!
//! In any interval t at most min(R t + B, P t + 1522 B) leaves. The law predicts the delay from the tokens
//! of the first of these two buckets. Without `rate`, only the link holds packets back: R and P are its
//! rate, and the delay is the backlog divided by this rate.
//!
//! A packet that is larger than a bucket leaves when the bucket is full. Requests and grants, by which a
//! modem shares its channel with others and which add 4 to 8 ms (section 4.2), are not modelled; and no
//! packet is marked (section 4.7).

use redtail_core::{Bytes, Packet, ParamError, ParamWarning, Rate, Span, Stream, Time, params};

use super::pie::short_target;
use crate::fifo::Fifo;
use crate::laws::docsis_pie::{DocsisPieConfig, DocsisPieLaw};
use crate::laws::pie::PieDecision;
use crate::laws::token_bucket::{TokenBucket, cost};
use crate::refuse;
use crate::signal::Ticks;
use crate::{
    Backlog, DropReason, Internals, Limit, LinkFacts, QueueContext, QueueDiscipline, QueueKind,
    Sink, Wakeup,
};

params! {
    /// PIE for DOCSIS cable modems (RFC 8034), with the modem's shaper.
    pub struct DocsisPieParams {
        /// Limit on the waiting packets: in packets, in bytes, in time at the link's rate, or a list of these.
        limit: Limit;
        /// Maximum sustained traffic rate that the modem shapes to.
        rate: Option<Rate>, "RFC 8034, section 3; none, the link's own.";
        /// With `rate`, maximum traffic burst: the bytes that may leave at the peak traffic rate before `rate` applies.
        burst: Bytes = Bytes::new(3044), "DOCSIS 3.1 MULPI, annex C.2.2.7.3 (3044 B).";
        /// With `rate`, peak traffic rate, which is not exceeded even in a burst.
        peak_rate: Option<Rate>, "RFC 8034, section 3; none, the link's own.";
        /// Queueing delay to hold.
        target: Span = Span::from_ms(10), "RFC 8034, section 4.1 (LATENCY_TARGET).";
        /// Time between updates of the probability; at least "1 us", the unit in which Linux counts it.
        update: Span = Span::from_ms(16), "RFC 8034, appendix A.1.2 (INTERVAL).";
        /// Gain of the deviation from the target, in 1/s.
        alpha: f64 = 0.25, "RFC 8034, appendix A.1.2 (A).";
        /// Gain of the delay's change, in 1/s.
        beta: f64 = 2.5, "RFC 8034, appendix A.1.2 (B).";
        /// Burst that passes without further drops after the first drop; "0 s" for none.
        max_burst: Span = Span::from_ms(142), "RFC 8034, appendix A.1.2 (MAX_BURST: 150 ms less half an update).";
        /// Time without congestion after which the law becomes inactive until the backlog is a third of the limit.
        burst_reset: Span = Span::from_s(1), "RFC 8034, appendix A.1.2 (BURST_RESET_TIMEOUT).";
        /// Size of a packet that is dropped with the law's probability; other packets have a probability in proportion to their size, at most 0.85. No packet is dropped while no more than two of this size wait.
        mean_packet: Bytes = Bytes::new(1024), "RFC 8034, appendix A.1.2 (MEAN_PKTSIZE).";
    }
}

/// The largest burst above the peak traffic rate (section 3).
const PEAK_BURST: Bytes = Bytes::new(1522);

impl QueueKind for DocsisPieParams {
    type Queue<P: Packet> = DocsisPie<P>;

    fn example() -> &'static str {
        r#"limit = "250 packets""#
    }

    fn check(&self) -> Result<(), ParamError> {
        self.limit.check()?;
        refuse::unless_some_time("target", self.target)?;
        refuse::unless_some_interval("update", self.update)?;
        refuse::unless_positive("alpha", self.alpha)?;
        refuse::unless_positive("beta", self.beta)?;
        refuse::unless_some_packet("mean_packet", Some(self.mean_packet))?;
        if self.burst == Bytes::ZERO {
            return Err(ParamError::new(
                "burst",
                "would let no packet pass",
                "at least the largest packet, such as \"3044 B\"",
            ));
        }
        let Some(rate) = self.rate else {
            return match self.peak_rate {
                None => Ok(()),
                Some(_) => Err(ParamError::new(
                    "rate",
                    "is missing, and without it peak_rate has no effect",
                    "a rate such as \"10 Mbit/s\"",
                )),
            };
        };
        if rate.as_bps() == 0 {
            return Err(ParamError::new(
                "rate",
                "is zero",
                "a rate such as \"10 Mbit/s\"",
            ));
        }
        if self.peak_rate.is_some_and(|peak| peak < rate) {
            return Err(ParamError::new(
                "peak_rate",
                format!("is below rate ({rate})"),
                format!("at least \"{rate}\""),
            ));
        }
        Ok(())
    }

    fn warnings(&self, link: &LinkFacts) -> Vec<ParamWarning> {
        let idle = self.rate.filter(|&rate| rate >= link.rate).map(|_| {
            let clause = format!("is not below the link's ({}): it shapes nothing", link.rate);
            ParamWarning::new("rate", clause)
        });
        short_target(self.target, link)
            .into_iter()
            .chain(idle)
            .collect()
    }

    fn limit(&self) -> Option<Limit> {
        Some(self.limit)
    }

    fn build<P: Packet>(&self, context: QueueContext) -> DocsisPie<P> {
        let rate = self.rate.unwrap_or(context.rate);
        let peak_rate = self.peak_rate.unwrap_or(context.rate);
        DocsisPie {
            limit: self.limit.at(context.rate),
            shaper: self.rate.map(|rate| Shaper {
                sustained: TokenBucket::full(rate, self.burst),
                burst: self.burst,
                peak: (self.peak_rate).map(|peak| TokenBucket::full(peak, PEAK_BURST)),
            }),
            law: DocsisPieLaw::new(DocsisPieConfig {
                target: self.target,
                interval: self.update,
                alpha: self.alpha,
                beta: self.beta,
                max_burst: self.max_burst,
                burst_reset: self.burst_reset,
                mean_packet: self.mean_packet,
                rate,
                peak_rate,
            }),
            ticks: Ticks::every(self.update),
            stream: context.stream,
            fifo: Fifo::new(),
            wake: None,
        }
    }
}

/// The shaper with the two equations of section 3.
#[derive(Debug)]
struct Shaper {
    sustained: TokenBucket,
    burst: Bytes,
    peak: Option<TokenBucket>,
}

impl Shaper {
    /// Returns the first moment, not before `now`, at which a packet of `size` may leave.
    fn when(&self, size: Bytes, now: Time) -> Time {
        let sustained = self.sustained.when(cost(size.min(self.burst)), now);
        let peak = self.peak.as_ref();
        peak.map_or(sustained, |peak| {
            sustained.max(peak.when(cost(size.min(PEAK_BURST)), now))
        })
    }

    fn charge(&mut self, size: Bytes, now: Time) {
        self.sustained.charge(size, now);
        if let Some(peak) = &mut self.peak {
            peak.charge(size, now);
        }
    }

    /// Returns the tokens of the maximum sustained traffic rate, in bytes.
    fn tokens(&self, now: Time) -> f64 {
        self.sustained.level(now).max(0) as f64 / cost(Bytes::new(1)) as f64
    }
}

/// The running queue.
#[derive(Debug)]
pub struct DocsisPie<P> {
    limit: Limit,
    shaper: Option<Shaper>,
    law: DocsisPieLaw,
    ticks: Ticks,
    stream: Stream,
    fifo: Fifo<P>,
    /// The time at which the next packet may leave, after the link asked for it too early.
    wake: Option<Time>,
}

impl<P: Packet> DocsisPie<P> {
    #[inline]
    fn catch_up(&mut self, now: Time) {
        let backlog = self.fifo.backlog().bytes;
        while let Some(tick) = self.ticks.due(now) {
            let tokens = self
                .shaper
                .as_ref()
                .map_or(0.0, |shaper| shaper.tokens(tick));
            self.law.update(backlog, tokens);
            if backlog == 0 && self.law.rests() {
                self.ticks.skip(now);
            }
        }
    }
}

impl<P: Packet> QueueDiscipline<P> for DocsisPie<P> {
    #[inline]
    fn enqueue(&mut self, packet: P, now: Time, sink: &mut impl Sink<P>) {
        self.catch_up(now);
        if !self.limit.admits(self.fifo.backlog(), packet.size()) {
            self.law.on_overflow();
            sink.dropped(packet, DropReason::Limit, now);
            return;
        }
        let (backlog, third) = (
            self.fifo.backlog().bytes,
            self.limit.is_a_third(self.fifo.backlog()),
        );
        let stream = &mut self.stream;
        let draw = || stream.uniform();
        match self.law.on_arrival(packet.size(), backlog, third, draw) {
            PieDecision::Pass => self.fifo.push(packet, now),
            PieDecision::Early => sink.dropped(packet, DropReason::Early, now),
        }
    }

    #[inline]
    fn dequeue(&mut self, now: Time, _sink: &mut impl Sink<P>) -> Option<P> {
        self.catch_up(now);
        self.wake = None;
        let size = self.fifo.front()?.size();
        if let Some(shaper) = &mut self.shaper {
            let at = shaper.when(size, now);
            if at > now {
                self.wake = Some(at);
                return None;
            }
            shaper.charge(size, now);
        }
        self.fifo.pop()
    }

    fn next_wakeup(&self) -> Wakeup {
        self.wake.into()
    }

    fn on_wakeup(&mut self, now: Time) {
        self.wake = self.wake.filter(|&wake| wake > now);
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        self.fifo.backlog()
    }

    /// `average` is the delay that the latest update predicted, in seconds.
    fn internals(&self) -> Internals {
        Internals {
            average: Some(self.law.delay()),
            probability: Some(self.law.probability()),
        }
    }
}
