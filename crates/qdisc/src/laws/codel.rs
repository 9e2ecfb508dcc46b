//! CoDel's control law: signals when the time that packets have waited stays at or above
//! a target for an interval.
//!
//! Source: RFC 8289, section 5 (the pseudo-code of `dodequeue`, `dequeue` and
//! `control_law`); the approximate square root: Linux 6.1, `include/net/codel_impl.h`.
//!
//! | symbol | unit | meaning |
//! |---|---|---|
//! | target | time | acceptable standing queueing delay (TARGET) |
//! | interval | time | round-trip time of most flows; time for which the delay must stay (INTERVAL) |
//! | mtu | bytes | with no more bytes than this behind it, a packet gets no signal (maxpacket) |
//! | sojourn | time | time for which the present packet has waited |
//! | first_above | time | time at which the delay will have stayed for an interval |
//! | count | 1 | signals since the dropping state was entered, plus the initial value |
//! | drop_next | time | time at which the next signal is due |
//!
//! ```text
//! ok        sojourn >= target and bytes behind the packet > mtu, for an interval
//! entering  when ok: one signal; count = count - lastcount if that exceeds 1 and the last
//!           signal was due less than 16 intervals ago, else 1; drop_next = now + interval / sqrt(count)
//! staying   while ok, at drop_next: a signal; count += 1; drop_next += interval / sqrt(count)
//! leaving   at the first packet that is not ok
//! ```
//!
//! The RFC has a loop over packets. Here the law judges one packet per call and stores whether the last one
//! was dropped.

use redtail_core::schemars::JsonSchema;
use redtail_core::serde::{Deserialize, Serialize};
use redtail_core::{Span, Time, schemars, serde};

/// How interval / sqrt(count) is computed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(crate = "serde", rename_all = "kebab-case")]
#[schemars(crate = "schemars")]
pub enum InverseSqrt {
    /// Exactly, with a square root and a division (RFC 8289, section 5.6).
    #[default]
    Exact,
    /// By one step of Newton's method for each signal, in 16 bits, from the previous value (Linux 6.1): the second gap is 0.5 intervals instead of 0.71, and after a restart the first gaps are too short.
    Newton,
}

/// The law's parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CodelConfig {
    /// Acceptable standing delay.
    pub target: Span,
    /// The time for which the delay must stay at or above the target.
    pub interval: Span,
    /// A packet passes if no more bytes than this wait behind it.
    pub mtu: u64,
    /// How the gaps between signals are computed.
    pub inverse_sqrt: InverseSqrt,
}

/// The state of the packet at the head, for the law.
#[derive(Clone, Copy, Debug)]
pub struct Head {
    /// The time for which it has waited.
    pub sojourn: Span,
    /// Bytes that wait behind it.
    pub behind: u64,
    /// Whether it can be marked, so that a signal need not drop it.
    pub can_be_marked: bool,
}

/// The law's decision about a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CodelDecision {
    /// The packet leaves unchanged.
    Pass,
    /// The packet is marked and leaves.
    Mark,
    /// The packet is dropped; the next packet is to be judged at the same time.
    Drop,
}

/// The state in which the last decision leaves the law until the next packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum After {
    Pass,
    /// The last packet was dropped on entering the dropping state: the next one leaves in any case.
    Entry,
    /// The last packet was dropped within the dropping state: the next signal can be due at once.
    Drop,
}

/// The law's state.
///
/// ```
/// use redtail_core::{Span, Time};
/// use redtail_qdisc::laws::codel::{CodelConfig, CodelDecision, CodelLaw, Head, InverseSqrt};
///
/// let config = CodelConfig {
///     target: Span::from_ms(5),
///     interval: Span::from_ms(100),
///     mtu: 1500,
///     inverse_sqrt: InverseSqrt::Exact,
/// };
/// // Packets leave every millisecond, each after a wait of 8 ms.
/// let head = Head { sojourn: Span::from_ms(8), behind: 10_000, can_be_marked: true };
/// let mut law = CodelLaw::default();
/// let marked = (0..400).filter(|&ms| {
///     let now = Time::ZERO + Span::from_ms(ms);
///     law.judge(&config, head, now) == CodelDecision::Mark
/// });
/// // After an interval, and then with gaps of interval / sqrt(1), interval / sqrt(2), ...
/// assert_eq!(marked.collect::<Vec<_>>(), [100, 200, 271, 329, 379]);
/// ```
#[derive(Clone, Debug)]
pub struct CodelLaw {
    first_above: Option<Time>,
    drop_next: Time,
    count: u32,
    last_count: u32,
    /// The value of 1 / sqrt(count) in units of 2^-16, if it is computed by Newton's method.
    inverse: u16,
    dropping: bool,
    after: After,
}

impl Default for CodelLaw {
    fn default() -> Self {
        Self {
            first_above: None,
            drop_next: Time::ZERO,
            count: 0,
            last_count: 0,
            inverse: u16::MAX,
            dropping: false,
            after: After::Pass,
        }
    }
}

impl CodelLaw {
    /// Whether the law is in the dropping state.
    pub fn is_dropping(&self) -> bool {
        self.dropping
    }

    /// Signals since the dropping state was entered, plus the initial value.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// The time at which the next signal is due, in the dropping state.
    pub fn drop_next(&self) -> Time {
        self.drop_next
    }

    /// The queue has no packet to offer.
    #[inline]
    pub fn on_empty(&mut self) {
        self.first_above = None;
        // The state is kept after the drop on entry, as in the RFC. A queue that is empty at the first call
        // leaves the state.
        if self.after == After::Pass {
            self.dropping = false;
        }
        self.after = After::Pass;
    }

    /// The queue dropped `dropped` packets at the same time because it was full; they count as signals
    /// (Linux 6.1, `fq_codel_drop`).
    pub fn on_overload(&mut self, dropped: u32) {
        self.count = self.count.saturating_add(dropped);
    }

    /// Judges the packet that is about to leave. After [`CodelDecision::Drop`] this or
    /// [`on_empty`](Self::on_empty) is called again at the same time.
    #[inline]
    pub fn judge(&mut self, config: &CodelConfig, head: Head, now: Time) -> CodelDecision {
        let ok = self.ok_to_drop(config, head, now);
        match std::mem::replace(&mut self.after, After::Pass) {
            After::Entry => return CodelDecision::Pass,
            After::Drop if ok => self.drop_next += self.gap(config),
            After::Drop | After::Pass => {}
        }
        if !ok {
            self.dropping = false;
            CodelDecision::Pass
        } else if !self.dropping {
            self.enter(config, head, now)
        } else if now >= self.drop_next {
            self.count = self.count.saturating_add(1);
            self.refine(config);
            if head.can_be_marked {
                self.drop_next += self.gap(config);
                CodelDecision::Mark
            } else {
                self.after = After::Drop;
                CodelDecision::Drop
            }
        } else {
            CodelDecision::Pass
        }
    }

    #[inline]
    fn ok_to_drop(&mut self, config: &CodelConfig, head: Head, now: Time) -> bool {
        if head.sojourn < config.target || head.behind <= config.mtu {
            self.first_above = None;
            return false;
        }
        match self.first_above {
            None => {
                self.first_above = Some(now + config.interval);
                false
            }
            Some(first_above) => now >= first_above,
        }
    }

    fn enter(&mut self, config: &CodelConfig, head: Head, now: Time) -> CodelDecision {
        self.dropping = true;
        let since = self.count.wrapping_sub(self.last_count);
        // drop_next can be in the future if the state was left before that time.
        let recently = now.saturating_since(self.drop_next) < config.interval * 16;
        if since > 1 && since <= self.count && recently {
            self.count = since;
            self.refine(config);
        } else {
            self.count = 1;
            self.inverse = u16::MAX;
        }
        self.last_count = self.count;
        self.drop_next = now + self.gap(config);
        if head.can_be_marked {
            CodelDecision::Mark
        } else {
            self.after = After::Entry;
            CodelDecision::Drop
        }
    }

    /// Returns interval / sqrt(count).
    fn gap(&self, config: &CodelConfig) -> Span {
        match config.inverse_sqrt {
            InverseSqrt::Exact => {
                let seconds = config.interval.as_secs_f64() / f64::from(self.count.max(1)).sqrt();
                Span::from_secs_f64(seconds)
            }
            InverseSqrt::Newton => {
                let scaled = u128::from(config.interval.as_ps()) * u128::from(self.inverse);
                Span::from_ps((scaled >> 16) as u64)
            }
        }
    }

    /// Returns x' = x (3 - count x^2) / 2, which converges to 1 / sqrt(count).
    fn refine(&mut self, config: &CodelConfig) {
        if config.inverse_sqrt == InverseSqrt::Exact {
            return;
        }
        // The kernel's scale: x in units of 2^-32, of which 16 bits are kept.
        let x = u64::from(self.inverse) << 16;
        let square = (x * x) >> 32;
        let three = 3u64 << 32;
        let taken = u64::from(self.count).saturating_mul(square);
        self.inverse = if taken < three {
            ((((three - taken) >> 2) * x) >> 31 >> 16) as u16
        } else {
            // The value is too far away for the method, which an overload can cause; the kernel's
            // subtraction wraps around here.
            (65536.0 / f64::from(self.count).sqrt()) as u16
        };
    }
}
