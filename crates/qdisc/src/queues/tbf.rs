//! Token bucket filter: limits the rate and the bursts at which a queue of any kind sends.
//!
//! Source: Linux sch_tbf; the bucket is that of [`crate::laws::token_bucket`].
//!
//! | symbol | here | unit |
//! |---|---|---|
//! | r, the rate | `rate` | bit/s |
//! | B, the bucket | `burst` | bytes |
//! | p, the peak rate | `peak_rate` | bit/s |
//! | M, the bucket of the peak rate | `mtu` | bytes |
//!
//! A packet of L bytes leaves when both buckets hold L bytes, and L is subtracted from each. So in any
//! interval t at most min(B + r t, M + p t) leaves. A packet larger than a bucket could never leave; it is
//! dropped on arrival.

use redtail_core::{Bytes, Packet, ParamError, ParamWarning, Rate, Span, Time, params};

use crate::class::{Leaf, facts_at};
use crate::follow::{self, Follower};
use crate::laws::token_bucket::{TokenBucket, cost};
use crate::plugin::PluginVisitor;
use crate::{
    Backlog, DropReason, FigureNames, InnerVisitor, Limit, LinkFacts, QueueContext,
    QueueDiscipline, QueueKind, QueueParams, Report, Sink, Wakeup,
};

params! {
    /// A queue shaped by a token bucket.
    pub struct TbfParams {
        /// Rate at which tokens are added: the largest long-term rate of the departures.
        rate: Rate;
        /// Size of the bucket: the largest burst after a pause, at least one packet.
        burst: Bytes;
        /// Rate that is not exceeded even in a burst.
        peak_rate: Option<Rate>, "none, as in Linux (tc-tbf): bursts leave at the rate of the link.";
        /// With `peak_rate`, size of its bucket: the largest burst above this rate, at least one packet.
        mtu: Option<Bytes>, "none; needed with `peak_rate`, as in Linux (tc-tbf).";
        /// The queue in which packets wait, of any kind. Queue sizes that are given as times are converted to bytes with `rate`.
        queue: Box<QueueParams>;
        /// The shaper follows the link: its rates are multiplied by the link's present rate divided by the link's `rate`, this long after each change of that, by `rate_changes` or a `rate_trace` (of which the present rate is the mean of the last whole 100 ms). "0 s" follows at once.
        follow_after: Option<Span>, "none: the rates stay, as in Linux.";
        /// With `follow_after`, the number of the hop of a chain whose link it follows, in its own direction: such as the modem's, while the shaper stands in the router before it.
        #[schemars(range(min = 1))]
        follow_hop: Option<u32>, "none: the link that the queue stands before.";
    }
}

impl QueueKind for TbfParams {
    type Queue<P: Packet> = Tbf<P>;

    fn example() -> &'static str {
        r#"rate = "9 Mbit/s"
burst = "15 kB"
queue = { kind = "tail-drop", limit = "100 packets" }"#
    }

    fn figures(&self, names: &mut FigureNames) {
        self.queue.figures(names);
    }

    fn check(&self) -> Result<(), ParamError> {
        if self.rate.as_bps() == 0 {
            return Err(ParamError::new(
                "rate",
                "is zero",
                "a rate such as \"1 Mbit/s\"",
            ));
        }
        if self.burst == Bytes::ZERO {
            return Err(ParamError::new(
                "burst",
                "would let no packet pass",
                "at least the largest packet, such as \"1600 B\"",
            ));
        }
        if let Some(peak) = self.peak_rate
            && peak <= self.rate
        {
            return Err(ParamError::new(
                "peak_rate",
                format!("is not above rate ({})", self.rate),
                format!("more than \"{}\"", self.rate),
            ));
        }
        match (self.peak_rate, self.mtu) {
            (Some(_), None) => Err(ParamError::new(
                "mtu",
                "is missing, and peak_rate needs it",
                "at least the largest packet, such as \"1500 B\"",
            )),
            (None, Some(_)) => Err(ParamError::new(
                "mtu",
                "has no meaning without peak_rate",
                "both or neither",
            )),
            (Some(_), Some(Bytes::ZERO)) => Err(ParamError::new(
                "mtu",
                "would let no packet pass",
                "at least the largest packet, such as \"1500 B\"",
            )),
            _ => self.queue.check().map_err(|error| error.within("queue")),
        }
    }

    fn check_at(&self, link: &LinkFacts) -> Result<(), ParamError> {
        follow::check(self.follow_after, self.follow_hop, link)?;
        for (key, size) in [("burst", Some(self.burst)), ("mtu", self.mtu)] {
            if size.is_some_and(|size| size < link.largest_packet) {
                let largest = link.largest_packet;
                return Err(ParamError::new(
                    key,
                    format!("is below the largest packet ({largest}), which could never leave"),
                    format!("at least \"{largest}\""),
                ));
            }
        }
        let facts = facts_at(link, Some(self.rate));
        let queue = self.queue.check_at(&facts);
        queue.map_err(|error| error.within("queue"))
    }

    fn warnings(&self, link: &LinkFacts) -> Vec<ParamWarning> {
        let mut found = Vec::new();
        if self.rate >= link.rate {
            let clause = format!("is not below the link's ({}): it shapes nothing", link.rate);
            found.push(ParamWarning::new("rate", clause));
        } else if self.peak_rate.is_some_and(|peak| peak >= link.rate) {
            let clause = format!("is not below the link's ({}): it shapes nothing", link.rate);
            found.push(ParamWarning::new("peak_rate", clause));
        }
        let inner = self.queue.warnings(&facts_at(link, Some(self.rate)));
        found.extend(inner.into_iter().map(|warning| warning.within("queue")));
        found
    }

    /// The queue has no limit as a whole: the packet that is next can have left the inner queue, which has
    /// a limit.
    fn limit(&self) -> Option<Limit> {
        None
    }

    fn inner(&self, link: &LinkFacts, visit: &mut InnerVisitor<'_>) {
        visit("queue", &self.queue, &facts_at(link, Some(self.rate)));
    }

    fn plugins(&mut self, key: &str, visit: &mut PluginVisitor<'_>) -> Result<(), ParamError> {
        self.queue.plugins(&format!("{key}.queue"), visit)
    }

    fn build<P: Packet>(&self, context: QueueContext) -> Tbf<P> {
        Tbf {
            tokens: TokenBucket::full(self.rate, self.burst),
            peak: (self.peak_rate.zip(self.mtu)).map(|(rate, mtu)| TokenBucket::full(rate, mtu)),
            largest: self.mtu.map_or(self.burst, |mtu| mtu.min(self.burst)),
            queue: Leaf::new(
                "queue",
                &self.queue,
                facts_at(&context.link, Some(self.rate)),
                &context,
            ),
            wakeup: None,
            rate: self.rate,
            peak_rate: self.peak_rate,
            follower: Follower::new(self.follow_after, self.follow_hop, &context.link),
        }
    }
}

/// The running queue.
#[derive(Debug)]
pub struct Tbf<P: Packet> {
    tokens: TokenBucket,
    peak: Option<TokenBucket>,
    /// The largest packet that can ever leave.
    largest: Bytes,
    queue: Leaf<P>,
    /// The time at which the next packet may leave, after the link asked for it too early.
    wakeup: Option<Time>,
    /// The rates before they follow the link.
    rate: Rate,
    peak_rate: Option<Rate>,
    follower: Follower,
}

impl<P: Packet> Tbf<P> {
    /// The rates change that are due to.
    #[cold]
    fn follow(&mut self, now: Time) {
        while let Some((at, scale)) = self.follower.change(now) {
            self.tokens.set_rate(scale.of(self.rate), at);
            if let Some((peak, rate)) = self.peak.as_mut().zip(self.peak_rate) {
                peak.set_rate(scale.of(rate), at);
            }
        }
    }
}

impl<P: Packet> QueueDiscipline<P> for Tbf<P> {
    fn enqueue(&mut self, packet: P, now: Time, sink: &mut impl Sink<P>) {
        if packet.size() > self.largest {
            self.queue.refuse(packet, DropReason::Limit, now, sink);
        } else {
            self.queue.enqueue(packet, now, sink);
        }
    }

    fn dequeue(&mut self, now: Time, sink: &mut impl Sink<P>) -> Option<P> {
        self.wakeup = None;
        if self.follower.next() <= now {
            self.follow(now);
        }
        let size = self.queue.peek(now, sink)?;
        let mut at = self.tokens.when(cost(size), now);
        if let Some(peak) = &self.peak {
            at = at.max(peak.when(cost(size), now));
        }
        if at > now {
            self.wakeup = Some(at.min(self.follower.next())).filter(|at| *at < Time::MAX);
            return None;
        }
        self.tokens.charge(size, now);
        if let Some(peak) = &mut self.peak {
            peak.charge(size, now);
        }
        self.queue.dequeue(now, sink)
    }

    fn next_wakeup(&self) -> Wakeup {
        self.queue.next_wakeup().min(self.wakeup.into())
    }

    fn on_wakeup(&mut self, now: Time) {
        self.wakeup.take_if(|at| *at <= now);
        self.queue.on_wakeup(now);
    }

    fn backlog(&self) -> Backlog {
        self.queue.backlog()
    }

    fn start_measuring(&mut self, now: Time) {
        self.queue.start_measuring(now);
    }

    fn report(&self, now: Time, report: &mut Report<'_>) {
        self.queue.report_queue(now, report);
    }
}
