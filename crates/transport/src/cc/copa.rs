//! Copa: a target rate in inverse proportion to the queueing delay.
//!
//! Source: V. Arun and H. Balakrishnan, "Copa: Practical Delay-Based Congestion Control for the
//! Internet", NSDI 2018, sections 2.1 (the rate), 2.2 (competitive mode) and 3; where it does not
//! specify a detail, the authors' code (genericCC, markoviancc.cc and rtt-window.cc) and Facebook's
//! (mvfst, Copa.cpp).
//!
//! | symbol | meaning | unit |
//! |---|---|---|
//! | w | congestion window | segments |
//! | RTTstanding | least round trip of the latest srtt/2 | s |
//! | RTTmin | least round trip of 10 s | s |
//! | RTTmax | greatest round trip of four round trips | s |
//! | d_q | RTTstanding - RTTmin | s |
//! | delta | weight of delay against rate, 0.5 | 1/segments |
//! | v | velocity | 1 |
//!
//! ```text
//! for each segment acknowledged:
//!     w += v / (delta w)   if w / RTTstanding <= 1 / (delta d_q),  -= otherwise
//! pacing_rate = 2 w / RTTstanding
//! slow start: w doubles each round trip, until w / RTTstanding > 1 / (delta d_q)
//!
//! default mode:      delta = 0.5
//! competitive mode:  1/delta += 1 each round trip without a loss, halved by one, at least 2
//! d_q <= 0.1 (RTTmax - RTTmin) in the latest 5 round trips: default, else competitive
//! ```
//!
//! The velocity has two rules:
//!
//! ```text
//! the authors' code, once a round trip:
//!     v = 2 v   if most of its steps had the direction of the round trip before
//!     v = 1     otherwise
//!     v is halved while v > delta w
//! the paper and mvfst, once a round trip:
//!     v = 2 v   from the fourth round trip in one direction on
//!     v = 1     when the direction changes, in mvfst as soon as the target does
//! ```
//!
//! With competitive mode the authors' rule is used, and without it (`copa-default`) mvfst's, because
//! mvfst has no competitive mode. The paper's rule does not go together with its competitive mode:
//! the oscillations of several flows are so small that they leave the queue with more than a tenth
//! of its greatest delay, so that the flows take each other for flows that fill it. The authors' code
//! itself does so if only this rule is exchanged in it (`docs/explanation/congestion-controls.md`).
//!
//! By the paper's rule the queue of a single flow oscillates between zero and 2.5 / delta segments
//! every five round trips, with 1.25 / delta on average (section 2.3). Losses are repaired, but do
//! not change the window in default mode. From the code: the window is at least 2 segments. Our
//! rules, where the paper is silent: a step is no larger than the bytes acknowledged, so that the
//! window at most doubles in a round trip; a timeout begins slow start; the window does not grow
//! while the application limits the rate. The three round trips are windowed extremes as in Linux
//! (lib/win_minmax.c): each has three candidates, from successive parts of the window.

use std::collections::VecDeque;
use std::sync::Arc;

use redtail_core::{Span, Stream, Time};

use super::as_f64;
use super::model::{LostSegment, Model, ModelConfig, RateSample, Rounds};
use crate::constants::constants;

constants! {
    /// The constants of Copa.
    pub struct CopaParams {
        /// delta: weight of delay against rate in the default mode, in 1/segments; in the competitive mode the greatest.
        delta: f64 = 0.5, in 0.001 => 10.0, "Arun and Balakrishnan 2018, section 2.3";
        /// Time over which RTTmin is the least.
        rtt_min_window: Span = Span::from_s(10), in Span::from_ms(100) => Span::from_s(3600), "Arun and Balakrishnan 2018, section 2.1";
        /// Number of round trips over which RTTmax is the greatest.
        rtt_max_rounds: u64 = 4, in 1 => 1000, "Arun and Balakrishnan 2018, section 2.2";
        /// Number of round trips without a nearly empty queue after which competing flows are assumed to fill it.
        empty_rounds: u64 = 5, in 1 => 1000, "Arun and Balakrishnan 2018, section 2.2";
        /// Share of RTTmax - RTTmin below which the queue counts as nearly empty.
        nearly_empty: f64 = 0.1, in 0.0 => 1.0, "Arun and Balakrishnan 2018, section 2.2";
        /// Number of round trips in one direction after which the velocity doubles; with `copa-default`.
        steady_rounds: u32 = 3, in 0 => 1000, "Arun and Balakrishnan 2018, section 2.1; mvfst, Copa.cpp";
        /// Least window, in segments.
        min_cwnd: f64 = 2.0, in 1.0 => 1e4, "genericCC, markoviancc.cc";
        /// Rate at which segments are paced, in windows per standing round-trip time.
        pacing_gain: f64 = 2.0, in 0.1 => 100.0, "Arun and Balakrishnan 2018, section 2.1";
    }
}

/// The least sample in a window of time, or with `MAX` the greatest.
#[derive(Clone, Debug, Default)]
struct Extreme<const MAX: bool> {
    /// The samples that no later one replaces, in the order of time: the first is the extreme.
    samples: VecDeque<(Time, Span)>,
}

impl<const MAX: bool> Extreme<MAX> {
    /// Whether `a` replaces `b`.
    fn replaces(a: Span, b: Span) -> bool {
        if MAX { a >= b } else { a <= b }
    }

    /// Adds a sample. Returns the extreme of the latest `window`.
    fn update(&mut self, now: Time, sample: Span, window: Span) -> Span {
        while let Some(&(_, earlier)) = self.samples.back()
            && Self::replaces(sample, earlier)
        {
            self.samples.pop_back();
        }
        self.samples.push_back((now, sample));
        while let Some(&(at, extreme)) = self.samples.front() {
            if now.saturating_since(at) <= window {
                return extreme;
            }
            self.samples.pop_front();
        }
        sample
    }
}

/// The program whose rules are followed where programs differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    /// The authors' (genericCC): with competitive mode.
    Authors,
    /// Facebook's (mvfst): without competitive mode.
    Mvfst,
}

/// The controller of Copa with its state.
#[derive(Clone, Debug)]
pub struct Copa {
    params: Arc<CopaParams>,
    program: Program,
    config: ModelConfig,
    cwnd: f64,
    pacing_rate: f64,
    slow_start: bool,
    rtt_min: Extreme<false>,
    standing: Extreme<false>,
    rtt_max: Extreme<true>,
    rounds: Rounds,
    velocity: f64,
    /// Whether cwnd rose over the latest round trip, and for how many it has moved in that
    /// direction.
    up: bool,
    same: u32,
    /// The window at the beginning of the present round trip.
    cwnd_before: f64,
    /// Bytes acknowledged in the present round trip that raised the window, less those that lowered
    /// it.
    balance: f64,
    /// The inverse of the parameter delta.
    weight: f64,
    competitive: bool,
    /// When the queue was nearly empty last.
    emptied: Option<Time>,
    /// Whether segments were lost in the present round.
    lost: bool,
}

impl Copa {
    /// A model at the start of a connection.
    pub fn new(config: ModelConfig, params: &Arc<CopaParams>, program: Program) -> Self {
        let mut copa = Self {
            params: Arc::clone(params),
            program,
            cwnd: config.initial_cwnd,
            pacing_rate: 0.0,
            slow_start: true,
            rtt_min: Extreme::default(),
            standing: Extreme::default(),
            rtt_max: Extreme::default(),
            rounds: Rounds::default(),
            velocity: 1.0,
            up: true,
            same: 0,
            cwnd_before: config.initial_cwnd,
            balance: 0.0,
            weight: 1.0 / params.delta,
            competitive: false,
            emptied: None,
            lost: false,
            config,
        };
        copa.set_pacing_rate(Span::from_ms(1));
        copa
    }

    fn set_pacing_rate(&mut self, standing: Span) {
        let standing = standing.as_secs_f64().max(f64::MIN_POSITIVE);
        self.pacing_rate = self.params.pacing_gain * self.cwnd / standing;
    }

    /// Chooses the mode from the latest round trips.
    fn update_mode(&mut self, now: Time, queueing: f64, swing: f64, srtt: Span) {
        if queueing <= self.params.nearly_empty * swing {
            self.emptied = Some(now);
        }
        let emptied = *self.emptied.get_or_insert(now);
        self.competitive = self.program == Program::Authors
            && now.saturating_since(emptied) > srtt * self.params.empty_rounds;
        if !self.competitive {
            self.weight = 1.0 / self.params.delta;
        }
    }

    /// Updates delta and the velocity at the end of a round trip.
    fn end_round(&mut self) {
        if self.competitive && !self.lost {
            self.weight += 1.0;
        }
        self.lost = false;
        let (same, steady) = match self.program {
            Program::Authors => (
                if self.up {
                    self.balance > 0.0
                } else {
                    self.balance < 0.0
                },
                0,
            ),
            Program::Mvfst => (
                self.up == (self.cwnd > self.cwnd_before),
                self.params.steady_rounds,
            ),
        };
        if same {
            self.same += 1;
            if self.same > steady {
                self.velocity *= 2.0;
            }
        } else {
            self.turn(!self.up);
        }
        self.cwnd_before = self.cwnd;
        self.balance = 0.0;
    }

    fn turn(&mut self, up: bool) {
        self.up = up;
        self.same = 1;
        self.velocity = 1.0;
        self.cwnd_before = self.cwnd;
        self.balance = 0.0;
    }

    /// Limits the velocity before a step, which goes up or not.
    fn limit_velocity(&mut self, up: bool) {
        match self.program {
            Program::Authors => {
                let limit = self.cwnd / self.config.mss / self.weight;
                if self.velocity > limit {
                    self.velocity = (self.velocity / 2.0).max(1.0);
                }
            }
            Program::Mvfst => {
                if up != self.up && self.velocity > 1.0 {
                    self.turn(up);
                }
            }
        }
    }

    fn min_cwnd(&self) -> f64 {
        self.params.min_cwnd * self.config.mss
    }
}

impl Model for Copa {
    #[inline(never)] // so that the code of one model is in one place
    fn on_ack(&mut self, sample: &RateSample) {
        self.rounds.update(sample);
        let (Some(rtt), Some(srtt)) = (sample.rtt, sample.srtt) else {
            return;
        };
        let now = sample.now;
        let standing = self.standing.update(now, rtt, srtt / 2);
        let rtt_min = self.rtt_min.update(now, rtt, self.params.rtt_min_window);
        let rtt_max = self
            .rtt_max
            .update(now, rtt, srtt * self.params.rtt_max_rounds);
        let queueing = standing.saturating_sub(rtt_min).as_secs_f64();
        let swing = rtt_max.saturating_sub(rtt_min).as_secs_f64();
        self.update_mode(now, queueing, swing, srtt);

        let mss = self.config.mss;
        let acked = as_f64(sample.newly_acked);
        // w / RTTstanding <= 1 / (delta d_q), without a division by zero.
        let up = self.cwnd / mss * queueing <= self.weight * standing.as_secs_f64();
        if up && self.slow_start {
            if !sample.app_limited {
                self.cwnd += acked;
            }
            self.cwnd_before = self.cwnd;
        } else {
            self.slow_start = false;
            if self.rounds.started {
                self.end_round();
            }
            self.limit_velocity(up);
            let step = (self.velocity * self.weight * mss / self.cwnd).min(1.0) * acked;
            if !up {
                self.cwnd = (self.cwnd - step).max(self.min_cwnd());
                self.balance -= acked;
            } else if !sample.app_limited {
                self.cwnd += step;
                self.balance += acked;
            }
        }
        self.set_pacing_rate(standing);
    }

    fn on_lost(&mut self, _lost: &LostSegment, _now: Time) {
        if self.competitive && !self.lost {
            self.weight = (self.weight / 2.0).max(1.0 / self.params.delta);
        }
        self.lost = true;
    }

    fn set_stream(&mut self, _stream: Stream) {}

    fn on_recovery(&mut self) {}

    fn on_timeout(&mut self, _now: Time) {
        self.cwnd = self.config.mss;
        self.slow_start = true;
        self.turn(true);
    }

    fn on_handshake(&mut self, rtt: Span, _now: Time) {
        self.set_pacing_rate(rtt);
    }

    fn on_restart(&mut self, _now: Time, _delivered: u64) {}

    fn set_cwnd(&mut self, cwnd: f64) {
        self.cwnd = cwnd;
    }

    #[inline]
    fn cwnd(&self) -> f64 {
        self.cwnd
    }

    #[inline]
    fn pacing_rate(&self) -> f64 {
        self.pacing_rate
    }

    #[inline]
    fn send_quantum(&self) -> u64 {
        0
    }

    fn probes_rtt(&self) -> bool {
        false
    }

    fn state(&self) -> &'static str {
        match (self.slow_start, self.competitive) {
            (true, _) => "slow_start",
            (false, false) => "default",
            (false, true) => "competitive",
        }
    }
}
