//! GSP: one drop each time a threshold is crossed, so that not all flows reduce their rate at the same
//! time.
//!
//! Source: W. Lautenschlaeger and A. Francini, "Global Synchronization Protection for
//! Bandwidth Sharing TCP Flows in High-Speed Links", IEEE HPSR 2015 (2016 in print);
//! W. Lautenschlaeger, "Global Synchronization Protection for Packet Queues",
//! draft-lauten-aqm-gsp (2014 to 2016).
//!
//! | symbol | meaning | unit |
//! |---|---|---|
//! | preset | interval of the basic scheme, and the longest of the adaptive one | s |
//! | cumul | weighted time above the threshold minus time below it | s |
//! | alpha | weight of the time above | 1 |
//! | tau | time constant of the adaptation | s |
//!
//! ```text
//! an arrival that finds more than the threshold, when no interval is running: is dropped
//!     (or marked), and an interval begins
//! adaptive:  cumul <- min(most, max(0, cumul + alpha (time above) - (time below)))
//!            interval = preset / (1 + cumul / tau)
//! ```
//!
//! After the buffer has overflowed, the time below does not count until the queue has been empty and then
//! above the threshold again: this time would be an effect of the drops, not of the interval.

use redtail_core::{Packet, ParamError, ParamWarning, QueueSize, Span, Time, params};

use crate::fifo::Fifo;
use crate::gauge;
use crate::refuse;
use crate::signal::mark_or_drop;
use crate::{
    Backlog, DropReason, Internals, Limit, LinkFacts, QueueContext, QueueDiscipline, QueueKind,
    Sink,
};

params! {
    /// Global Synchronization Protection (Lautenschlaeger 2014).
    pub struct GspParams {
        /// Limit on the waiting packets: in packets, in bytes, in time at the link's rate, or a list of these.
        limit: Limit;
        /// Backlog above which an arrival may be dropped, in packets, bytes or time at the link's rate.
        threshold: QueueSize;
        /// Time without drops after a drop; with `adaptive`, the longest such time. About one round-trip time or more.
        interval: Span = Span::from_ms(200), "the implementation for ns-3 (NITK 2018; 200 ms).";
        /// Shorten the interval while the queue is above the threshold for longer than below.
        adaptive: bool = true, "Lautenschlaeger and Francini 2015, adaptive GSP.";
        /// Weight of the time above the threshold relative to that of the time below it.
        alpha: f64 = 2.0, "the implementation for ns-3 (NITK 2018; 2); \"not much larger than 1\" in the paper.";
        /// Time constant of the adaptation. Without it five times `interval` (Lautenschlaeger and Francini 2015).
        tau: Option<Span>;
        /// Shortest length of the interval. Without it a hundredth of `interval`, which is our choice: the paper has a bound and does not give its value.
        least_interval: Option<Span>;
        /// Mark ECN-capable packets instead of dropping them early.
        ecn: bool = false, "off, as GSP is defined for drops.";
    }
}

impl GspParams {
    fn least_interval(&self) -> Span {
        self.least_interval.unwrap_or(self.interval / 100)
    }
}

impl QueueKind for GspParams {
    type Queue<P: Packet> = Gsp<P>;

    fn example() -> &'static str {
        r#"limit = "250 packets"
threshold = "40 packets""#
    }

    fn check(&self) -> Result<(), ParamError> {
        self.limit.check()?;
        refuse::unless_some_size("threshold", self.threshold)?;
        refuse::unless_some_time("interval", self.interval)?;
        refuse::unless_positive("alpha", self.alpha)?;
        if let Some(tau) = self.tau {
            refuse::unless_some_time("tau", tau)?;
        }
        if let Some(least) = self.least_interval {
            refuse::unless_some_time("least_interval", least)?;
            if least > self.interval {
                let problem = format!("is above interval ({})", self.interval);
                let accepted = format!("at most \"{}\"", self.interval);
                return Err(ParamError::new("least_interval", problem, accepted));
            }
        }
        Ok(())
    }

    fn limit(&self) -> Option<Limit> {
        Some(self.limit)
    }

    fn warnings(&self, link: &LinkFacts) -> Vec<ParamWarning> {
        let mut warnings: Vec<_> =
            gauge::out_of_reach("threshold", self.threshold, self.limit, link.rate)
                .into_iter()
                .collect();
        if let Some(round_trip) = link.max_round_trip.filter(|&rtt| rtt > self.interval) {
            let clause = format!(
                "is below a round trip ({round_trip}): the next packet is dropped before the \
                 first drop has shown"
            );
            warnings.push(ParamWarning::new("interval", clause));
        }
        warnings
    }

    fn build<P: Packet>(&self, context: QueueContext) -> Gsp<P> {
        let interval = self.interval.as_secs_f64();
        let tau = self.tau.unwrap_or(self.interval * 5).as_secs_f64();
        Gsp {
            limit: self.limit.at(context.rate),
            threshold: self.threshold.at(context.rate),
            interval,
            alpha: self.alpha,
            tau,
            most: if self.adaptive {
                tau * (interval / self.least_interval().as_secs_f64() - 1.0)
            } else {
                0.0
            },
            ecn: self.ecn,
            cumulated: 0.0,
            state: OverflowState::Clear,
            seen: Time::ZERO,
            quiet_until: Time::ZERO,
            fifo: Fifo::new(),
        }
    }
}

/// The state of the queue between an overflow and its return to normal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OverflowState {
    /// Normal: the time below the threshold counts.
    Clear,
    /// The buffer has overflowed; the queue has to become empty,
    Overflown,
    /// then to rise above the threshold.
    Drained,
}

/// The running queue.
#[derive(Debug)]
pub struct Gsp<P> {
    limit: Limit,
    threshold: QueueSize,
    /// The interval preset, in seconds.
    interval: f64,
    alpha: f64,
    tau: f64,
    /// The largest cumul, in seconds; with 0 the interval does not adapt.
    most: f64,
    ecn: bool,
    /// The present cumul, in seconds.
    cumulated: f64,
    state: OverflowState,
    /// The time up to which cumul is counted.
    seen: Time,
    /// End of the running interval.
    quiet_until: Time,
    fifo: Fifo<P>,
}

impl<P: Packet> Gsp<P> {
    fn is_above(&self) -> bool {
        gauge::amount(self.fifo.backlog(), self.threshold) > gauge::number(self.threshold)
    }

    /// Counts the time since the last call, in which the backlog was constant.
    #[inline]
    fn catch_up(&mut self, now: Time) {
        let passed = (now - self.seen).as_secs_f64();
        self.seen = now;
        let above = self.is_above();
        if above {
            self.cumulated += self.alpha * passed;
        } else if self.state == OverflowState::Clear {
            self.cumulated -= passed;
        }
        self.cumulated = self.cumulated.clamp(0.0, self.most);
        if self.state == OverflowState::Overflown && self.fifo.backlog().packets == 0 {
            self.state = OverflowState::Drained;
        } else if self.state == OverflowState::Drained && above {
            self.state = OverflowState::Clear;
        }
    }

    /// Returns the present interval, in seconds.
    fn interval(&self) -> f64 {
        self.interval / (1.0 + self.cumulated / self.tau)
    }
}

impl<P: Packet> QueueDiscipline<P> for Gsp<P> {
    #[inline]
    fn enqueue(&mut self, packet: P, now: Time, sink: &mut impl Sink<P>) {
        self.catch_up(now);
        if !self.limit.admits(self.fifo.backlog(), packet.size()) {
            self.state = OverflowState::Overflown;
            sink.dropped(packet, DropReason::Limit, now);
            return;
        }
        let packet = if self.is_above() && now >= self.quiet_until {
            self.quiet_until = now + Span::from_secs_f64(self.interval());
            mark_or_drop(packet, self.ecn, DropReason::Early, now, sink)
        } else {
            Some(packet)
        };
        if let Some(packet) = packet {
            self.fifo.push(packet, now);
        }
    }

    #[inline]
    fn dequeue(&mut self, now: Time, _sink: &mut impl Sink<P>) -> Option<P> {
        self.catch_up(now);
        self.fifo.pop()
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        self.fifo.backlog()
    }

    /// `average` is the interval that a drop would begin now, in seconds.
    fn internals(&self) -> Internals {
        Internals {
            average: Some(self.interval()),
            probability: None,
        }
    }
}
