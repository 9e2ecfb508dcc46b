//! COBALT's control law: CoDel that keeps its count of signals, and BLUE for flows that do not respond to
//! signals.
//!
//! Source: T. Høiland-Jørgensen, D. Täht and J. Morton, "Piece of CAKE", IEEE LANMAN
//! 2018, section II-C; the rules as in Linux 6.1, `sch_cake` (`cobalt_should_drop`,
//! `cobalt_queue_full`, `cobalt_queue_empty`).
//!
//! | symbol | unit | meaning |
//! |---|---|---|
//! | target | time | acceptable delay |
//! | interval | time | time for which target must be exceeded; base of the gaps between signals |
//! | t_mtu | time | transmission time of a large packet; a delay of less than 4 t_mtu is no queue |
//! | count | 1 | signals, minus the later ones that were due and not needed |
//! | p | 1 | BLUE's drop probability |
//! | d1, d2 | 1 | increment of p when the queue overflows, decrement when the queue is empty |
//!
//! ```text
//! over      sojourn > target and sojourn > 4 t_mtu (and > 2 t_mtu for each bulk flow that
//!           shares an ingress)
//! entering  when over: drop_next = now + interval / sqrt(count)
//! due       count > 0 and now >= drop_next
//!           while over: a signal; count += 1; drop_next += interval / sqrt(count)
//!           otherwise:  count -= 1; drop_next += interval / sqrt(count), until not due
//! overflow  p += d1, once per target; over at once
//! empty     p -= d2, once per target
//! ```
//!
//! A signal marks a packet that can be marked. BLUE drops such packets too: it is for flows that do not
//! respond to signals. While several signals are due, the next packet gets a signal at the same time only
//! if the packet before it was dropped.
//!
//! **The first gap** of a queue, until its count has changed for the first time, is zero in the kernel
//! (`cobalt_vars_init` leaves the reciprocal of the square root at 0, and `cobalt_should_drop` adds the
//! interval times this reciprocal): the packet after the first one that is over gets a signal. The kernel's
//! own comment says that the first gap is the interval, and ns-3 uses the interval
//! (`CobaltQueueDisc::InitializeParams`). [`FirstGap`] has both.
//!
//! One deviation: the square root is exact; the kernel's differs from it by less than 0.1 %.

use redtail_core::schemars::JsonSchema;
use redtail_core::serde::{Deserialize, Serialize};
use redtail_core::{Span, Time, schemars, serde};

/// Time from the first moment at which the delay exceeds the target to the first signal of a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(crate = "serde", rename_all = "kebab-case")]
#[schemars(crate = "schemars")]
pub enum FirstGap {
    /// One interval, as for all later first signals (the kernel's comment; ns-3).
    #[default]
    Interval,
    /// No time: the signal comes with the next packet (what the kernel does).
    None,
}

/// The law's parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CobaltConfig {
    /// Acceptable delay; also the smallest time between changes of BLUE's probability.
    pub target: Span,
    /// Base of the gaps between signals.
    pub interval: Span,
    /// Transmission time of a large packet; zero if there is no rate.
    pub mtu_time: Span,
    /// Added to BLUE's probability at an overflow.
    pub increment: f64,
    /// Subtracted from BLUE's probability when the queue is empty.
    pub decrement: f64,
    /// The gap before the first signal of a queue.
    pub first_gap: FirstGap,
}

/// The decisions of the law about a packet; both can apply to one packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CobaltDecision {
    /// The packet is to be marked.
    pub mark: bool,
    /// The packet is to be dropped, and the next one judged at the same time.
    pub drop: bool,
}

/// The law's state.
#[derive(Clone, Debug, Default)]
pub struct CobaltLaw {
    count: u32,
    drop_next: Time,
    /// The time of the last change of BLUE's probability.
    changed: Time,
    probability: f64,
    dropping: bool,
    /// Whether the count has changed, by a signal or without need of one: the kernel then computes the
    /// reciprocal of its square root.
    counted: bool,
}

impl CobaltLaw {
    /// BLUE's drop probability.
    pub fn probability(&self) -> f64 {
        self.probability
    }

    /// Returns the present count of signals.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// Whether the law is in its initial state.
    pub fn is_at_rest(&self, now: Time) -> bool {
        self.probability == 0.0 && self.count == 0 && now >= self.drop_next
    }

    /// The queue dropped a packet because it was full.
    pub fn on_overflow(&mut self, config: &CobaltConfig, now: Time) {
        self.raise(config, now);
        self.dropping = true;
        self.drop_next = now;
        self.count = self.count.max(1);
    }

    /// A packet has waited longer than BLUE's threshold: BLUE's probability rises, at most once per target,
    /// and nothing else changes (ns-3, `CobaltQueueDisc::CobaltShouldDrop`).
    pub fn on_long_wait(&mut self, config: &CobaltConfig, now: Time) {
        self.raise(config, now);
    }

    fn raise(&mut self, config: &CobaltConfig, now: Time) {
        if now.saturating_since(self.changed) > config.target {
            self.probability = (self.probability + config.increment).min(1.0);
            self.changed = now;
        }
    }

    /// The link asked for a packet and the queue was empty.
    pub fn on_empty(&mut self, config: &CobaltConfig, now: Time) {
        if self.probability > 0.0 && now.saturating_since(self.changed) > config.target {
            self.probability = (self.probability - config.decrement).max(0.0);
            self.changed = now;
        }
        self.dropping = false;
        if self.count > 0 && now >= self.drop_next {
            self.count -= 1;
            self.counted = true;
            self.drop_next += self.gap(config);
        }
    }

    /// Judges the packet that is about to leave. `bulk_flows` is the number of bulk flows that share an
    /// ingress with it, and 0 elsewhere; `draw` returns a number uniform on [0, 1).
    #[inline]
    pub fn judge(
        &mut self,
        config: &CobaltConfig,
        sojourn: Span,
        bulk_flows: u64,
        can_be_marked: bool,
        now: Time,
        draw: impl FnOnce() -> f64,
    ) -> CobaltDecision {
        let mut decision = CobaltDecision::default();
        let over = sojourn > config.target
            && sojourn > config.mtu_time * (2 * bulk_flows)
            && sojourn > config.mtu_time * 4;
        let due = self.count > 0 && now >= self.drop_next;
        let mut behind = now > self.drop_next;

        if over {
            if !self.dropping {
                self.dropping = true;
                self.drop_next = now + self.gap(config);
            }
            self.count = self.count.max(1);
        } else {
            self.dropping = false;
        }

        if due && self.dropping {
            decision = CobaltDecision {
                mark: can_be_marked,
                drop: !can_be_marked,
            };
            self.count = self.count.saturating_add(1);
            self.counted = true;
            self.drop_next += self.gap(config);
            behind = now > self.drop_next;
        } else if due {
            while self.count > 0 && now >= self.drop_next {
                self.count -= 1;
                self.counted = true;
                self.drop_next += self.gap(config);
            }
            behind = now > self.drop_next;
        }

        if self.probability > 0.0 && draw() < self.probability {
            decision.drop = true;
        }

        if self.count == 0 {
            // While packets arrive, drop_next stays in the future: the time until the first signal is
            // counted from the first packet that is over.
            self.drop_next = now + config.interval;
        } else if behind && !decision.drop {
            self.drop_next = now;
        }
        decision
    }

    /// Returns interval / sqrt(count); the interval if the count is 0.
    fn gap(&self, config: &CobaltConfig) -> Span {
        if !self.counted && config.first_gap == FirstGap::None {
            return Span::ZERO;
        }
        match self.count {
            0 | 1 => config.interval,
            count => Span::from_secs_f64(config.interval.as_secs_f64() / f64::from(count).sqrt()),
        }
    }
}
