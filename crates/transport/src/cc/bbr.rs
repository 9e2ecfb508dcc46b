//! BBR, version 1.
//!
//! Source: N. Cardwell et al., "BBR: Congestion-Based Congestion Control", ACM Queue 14(5), 2016;
//! draft-cardwell-iccrg-bbr-congestion-control-00; where neither specifies a detail, Linux
//! (net/ipv4/tcp_bbr.c). It sends at the greatest recent delivery rate and keeps about the product
//! of that rate and the least round trip in flight.
//!
//! | symbol | meaning | unit |
//! |---|---|---|
//! | BtlBw | greatest delivery rate of 10 rounds | bytes/s |
//! | RTprop | least round trip of 10 s | s |
//! | BDP | BtlBw RTprop | bytes |
//! | pacing_gain, cwnd_gain | shares of BtlBw and of BDP | 1 |
//!
//! ```text
//! pacing_rate = 0.99 pacing_gain BtlBw,  cwnd -> cwnd_gain BDP + 3 quanta + extra_acked
//!
//! state      pacing_gain                      cwnd_gain  until
//! STARTUP    2/ln 2                           2/ln 2     3 rounds without 25 % more BtlBw
//! DRAIN      ln 2/2                           2/ln 2     a BDP in flight
//! PROBE_BW   5/4, 3/4, 1, 1, 1, 1, 1, 1       2          RTprop is 10 s old
//! PROBE_RTT  1                                4 segments 200 ms and a round
//! ```
//!
//! As in Linux: a round trip equal to RTprop does not renew it. The first round of fast recovery
//! conserves packets; the window is restored after it. The rate is reduced by 1 %. extra_acked is
//! the maximum of five to ten rounds. A phase of the cycle ends by the bytes that will be in flight
//! when the next quantum leaves. A sample whose interval is shorter than the least round trip ends
//! no round. With `lt_bw`, a policer is assumed after two intervals of 4 to 16 rounds, each ended
//! by a loss, in which a fifth is lost and whose rates are within an eighth of each other. The mean
//! of the two rates is then used for 48 rounds, without probing. Left out: the rule by which Linux
//! ignores round trips from an acknowledgement of less than a segment, and its approximation of the
//! maximum of 10 rounds by three samples.

use std::sync::Arc;

use redtail_core::{Bytes, Rate, Span, Stream, Time};

use super::model::{
    Aggregation, Episode, LostSegment, MOST_ROUNDS, Model, ModelConfig, RateSample, RoundMax,
    Rounds, TwoWindows, in_network_at_departure,
};
use super::{as_f64, greater, lesser};
use crate::constants::constants;

constants! {
    /// The constants of BBR version 1.
    pub struct BbrParams {
        /// Pacing gain in STARTUP and window gain in STARTUP and DRAIN: 2/ln 2, with which the rate doubles each round.
        high_gain: f64 = 739.0 / 256.0, in 1.0 => 100.0, "Linux 6.1, net/ipv4/tcp_bbr.c, bbr_high_gain";
        /// Pacing gain in DRAIN.
        drain_gain: f64 = 88.0 / 256.0, in 0.01 => 1.0, "Linux 6.1, tcp_bbr.c, bbr_drain_gain";
        /// Pacing gain of the phase of PROBE_BW that probes for bandwidth.
        up_gain: f64 = 1.25, in 1.0 => 100.0, "Linux 6.1, tcp_bbr.c, bbr_pacing_gain";
        /// Pacing gain of the phase of PROBE_BW that drains the queue.
        down_gain: f64 = 0.75, in 0.01 => 1.0, "Linux 6.1, tcp_bbr.c, bbr_pacing_gain";
        /// Window gain in PROBE_BW.
        cwnd_gain: f64 = 2.0, in 0.1 => 100.0, "Linux 6.1, tcp_bbr.c, bbr_cwnd_gain";
        /// Share of the rate at which segments are paced.
        pacing_margin: f64 = 0.99, in 0.1 => 2.0, "Linux 6.1, tcp_bbr.c, bbr_pacing_margin_percent";
        /// Number of rounds over which BtlBw is the greatest delivery rate.
        bw_rounds: u64 = 10, in 1 => MOST_ROUNDS, "Linux 6.1, tcp_bbr.c, bbr_bw_rtts";
        /// Time over which RTprop is the least round trip.
        min_rtt_window: Span = Span::from_s(10), in Span::from_ms(100) => Span::from_s(3600), "Linux 6.1, tcp_bbr.c, bbr_min_rtt_win_sec";
        /// Shortest time in PROBE_RTT.
        probe_rtt_duration: Span = Span::from_ms(200), in Span::ZERO => Span::from_s(60), "Linux 6.1, tcp_bbr.c, bbr_probe_rtt_mode_ms";
        /// Least window, which is that of PROBE_RTT, in segments.
        min_cwnd: f64 = 4.0, in 1.0 => 1e4, "Linux 6.1, tcp_bbr.c, bbr_cwnd_min_target";
        /// Growth of BtlBw by which the path is not full, as a factor.
        full_bw_growth: f64 = 1.25, in 1.0 => 100.0, "Linux 6.1, tcp_bbr.c, bbr_full_bw_thresh";
        /// Number of rounds without this growth after which the path is full.
        full_bw_rounds: u32 = 3, in 1 => 1000, "Linux 6.1, tcp_bbr.c, bbr_full_bw_cnt";
        /// Pacing rate below which the quantum is one segment.
        lone_segment_rate: Rate = Rate::from_bps(1_200_000), in Rate::from_bps(0) => Rate::from_bps(100_000_000_000), "Linux 6.1, tcp_bbr.c, bbr_min_tso_rate";
        /// Largest quantum.
        most_quantum: Bytes = Bytes::new(65_536), in Bytes::new(1) => Bytes::new(1 << 30), "Linux 6.1, net/ipv4/tcp_output.c, tcp_tso_autosize: sk_gso_max_size";
        /// Added to the quantum of a flow with a short least round trip.
        short_path_quantum: Bytes = Bytes::new(65_536), in Bytes::new(0) => Bytes::new(1 << 30), "Linux 6.1, tcp_output.c, tcp_tso_autosize: sk_gso_max_size";
        /// Least round trip by which `short_path_quantum` is halved.
        short_path_halving: Span = Span::from_us(512), in Span::from_us(1) => Span::from_s(10), "Linux 6.1, tcp_output.c, tcp_tso_autosize: tcp_tso_rtt_log = 9";
        /// Least number of rounds for which a maximum of extra_acked is kept.
        extra_rounds: u32 = 5, in 1 => 1000, "Linux 6.1, tcp_bbr.c, bbr_extra_acked_win_rtts";
        /// Largest extra_acked that is added to the window, as a time at BtlBw.
        max_extra_acked: Span = Span::from_ms(100), in Span::ZERO => Span::from_s(60), "Linux 6.1, tcp_bbr.c, bbr_extra_acked_max_us";
        /// With `lt_bw`, least number of rounds of an interval.
        lt_rounds: u32 = 4, in 1 => 1000, "Linux 6.1, tcp_bbr.c, bbr_lt_intvl_min_rtts";
        /// With `lt_bw`, share of losses that ends an interval.
        lt_loss: f64 = 50.0 / 256.0, in 0.0 => 1.0, "Linux 6.1, tcp_bbr.c, bbr_lt_loss_thresh";
        /// With `lt_bw`, allowed difference of two intervals as a share.
        lt_ratio: f64 = 0.125, in 0.0 => 1.0, "Linux 6.1, tcp_bbr.c, bbr_lt_bw_ratio";
        /// With `lt_bw`, allowed difference of two intervals as a rate.
        lt_difference: Rate = Rate::from_bps(4000), in Rate::from_bps(0) => Rate::from_bps(100_000_000_000), "Linux 6.1, tcp_bbr.c, bbr_lt_bw_diff";
        /// With `lt_bw`, number of rounds for which the rate of a policer is used.
        lt_use_rounds: u32 = 48, in 1 => 100_000, "Linux 6.1, tcp_bbr.c, bbr_lt_bw_max_rtts";
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BbrState {
    Startup,
    Drain,
    /// With the phase of the gain cycle.
    ProbeBw(u8),
    ProbeRtt,
}

/// The estimate of a policer's rate.
#[derive(Clone, Debug, Default)]
struct LongTerm {
    sampling: bool,
    /// The rate of the latest interval or the rate in use, bytes/s; zero before.
    bw: f64,
    in_use: bool,
    rounds: u32,
    // At the start of the interval.
    since: Time,
    delivered: u64,
    lost: u64,
}

/// The controller of BBR with its state.
#[derive(Clone, Debug)]
pub struct Bbr {
    params: Arc<BbrParams>,
    config: ModelConfig,
    state: BbrState,
    cwnd: f64,
    pacing_rate: f64,
    quantum: u64,
    /// The quantum in whole segments.
    quantum_segments: u64,
    /// A number of bytes, and how many segments these fill. They are stored because the window's goal rarely changes.
    filled: (f64, u64),
    bw: RoundMax,
    rounds: Rounds,
    min_rtt: Option<Span>,
    /// `min_rtt` in seconds, stored to avoid repeated conversion.
    min_rtt_s: f64,
    min_rtt_stamp: Time,
    cycle_stamp: Time,
    full_bw: f64,
    full_bw_rounds: u32,
    full_bw_reached: bool,
    /// The pacing rate was set from a round trip.
    has_seen_rtt: bool,
    probe_rtt_done: Option<Time>,
    probe_rtt_round_done: bool,
    idle_restart: bool,
    episode: Episode,
    packet_conservation: bool,
    /// The window before recovery or PROBE_RTT.
    prior_cwnd: f64,
    aggregation: Aggregation,
    extra_acked: TwoWindows,
    lt: LongTerm,
    /// Bytes declared lost, and delivered, since the start.
    lost: u64,
    delivered: u64,
}

fn bytes_per_s(rate: Rate) -> f64 {
    as_f64(rate.as_bps()) / 8.0
}

impl Bbr {
    /// A model at the start of a connection.
    pub fn new(config: ModelConfig, params: &Arc<BbrParams>) -> Self {
        let mut bbr = Self {
            params: Arc::clone(params),
            state: BbrState::Startup,
            cwnd: config.initial_cwnd,
            pacing_rate: 0.0,
            quantum: 0,
            quantum_segments: 0,
            filled: (0.0, 0),
            bw: RoundMax::over(params.bw_rounds),
            rounds: Rounds::default(),
            min_rtt: None,
            min_rtt_s: 0.0,
            min_rtt_stamp: Time::ZERO,
            cycle_stamp: Time::ZERO,
            full_bw: 0.0,
            full_bw_rounds: 0,
            full_bw_reached: false,
            has_seen_rtt: false,
            probe_rtt_done: None,
            probe_rtt_round_done: false,
            idle_restart: false,
            episode: Episode::Open,
            packet_conservation: false,
            prior_cwnd: 0.0,
            aggregation: Aggregation::default(),
            extra_acked: TwoWindows::default(),
            lt: LongTerm::default(),
            lost: 0,
            delivered: 0,
            config,
        };
        bbr.init_pacing_rate(Span::from_ms(1));
        bbr
    }

    #[cold]
    fn init_pacing_rate(&mut self, rtt: Span) {
        let gain = self.params.pacing_margin * self.params.high_gain;
        self.pacing_rate = gain * self.cwnd / rtt.as_secs_f64().max(f64::MIN_POSITIVE);
        self.set_quantum();
    }

    fn pacing_gain(&self) -> f64 {
        match self.state {
            BbrState::Startup => self.params.high_gain,
            BbrState::Drain => self.params.drain_gain,
            BbrState::ProbeBw(_) if self.lt.in_use => 1.0,
            BbrState::ProbeBw(0) => self.params.up_gain,
            BbrState::ProbeBw(1) => self.params.down_gain,
            BbrState::ProbeBw(_) => 1.0,
            BbrState::ProbeRtt => 1.0,
        }
    }

    /// The rate that the model uses: BtlBw, or that of a policer.
    fn bw(&self) -> f64 {
        if self.lt.in_use {
            self.lt.bw
        } else {
            self.bw.max()
        }
    }

    fn cwnd_gain(&self) -> f64 {
        match self.state {
            BbrState::Startup | BbrState::Drain => self.params.high_gain,
            BbrState::ProbeBw(_) => self.params.cwnd_gain,
            BbrState::ProbeRtt => 1.0,
        }
    }

    /// `gain` BDP plus an allowance for quanta that are being sent (Linux's bbr_inflight).
    #[inline(never)] // rarely needed
    fn inflight(&self, gain: f64) -> f64 {
        let bdp = match self.min_rtt {
            None => self.config.initial_cwnd,
            Some(_) => gain * self.bw.max() * self.min_rtt_s,
        };
        self.with_quanta(self.segments(bdp))
    }

    /// The number of segments that `bytes` fill, the last perhaps in part.
    fn segments(&self, bytes: f64) -> u64 {
        // In integers, because rounding up a floating-point number takes a function call.
        let whole = (bytes / self.config.mss) as u64;
        whole + u64::from(as_f64(whole) * self.config.mss < bytes)
    }

    /// So many segments plus an allowance for quanta, in bytes.
    #[inline]
    fn with_quanta(&self, segments: u64) -> f64 {
        let segments = segments + 3 * self.quantum_segments;
        // Even, because delayed acknowledgements cover two segments.
        let even = segments + segments % 2;
        let probing = 2 * u64::from(self.state == BbrState::ProbeBw(0));
        as_f64(even + probing) * self.config.mss
    }

    /// Sets the quantum to about a millisecond at the pacing rate (Linux shifts by 10). It is one
    /// segment at low rates and otherwise at least two (bbr_min_tso_segs). On a short path the
    /// quantum is larger (tcp_tso_autosize), but the window's allowance for it is not
    /// (bbr_tso_segs_goal).
    #[inline(never)] // the rate changes once in many acknowledgements
    fn set_quantum(&mut self) {
        let mss = self.config.mss;
        let params = &*self.params;
        let least = if self.pacing_rate < bytes_per_s(params.lone_segment_rate) {
            mss
        } else {
            2.0 * mss
        };
        let paced = self.pacing_rate / 1024.0;
        let halvings = (self.min_rtt_s / params.short_path_halving.as_secs_f64()) as u32;
        let short = match self.min_rtt {
            Some(_) if halvings < 32 => {
                as_f64(params.short_path_quantum.as_u64()) / f64::from(1u32 << halvings)
            }
            _ => 0.0,
        };
        let most = |bytes: f64| bytes.min(as_f64(params.most_quantum.as_u64())).max(least) as u64;
        self.quantum = most(paced + short);
        self.quantum_segments = (most(paced) / mss as u64).min(127);
    }

    #[inline(always)]
    fn update_bw(&mut self, sample: &RateSample) {
        self.rounds.started = false;
        // A sample without a rate is ignored.
        let Some(rate) = sample.delivery_rate else {
            return;
        };
        self.rounds.update(sample);
        if self.rounds.started {
            self.packet_conservation = false;
        }
        let lossy = sample.newly_lost > 0;
        if self.config.lt_bw && (self.lt.in_use || self.lt.sampling || lossy) {
            self.sample_long_term(lossy, sample.app_limited, sample.now);
        }
        if !sample.app_limited || rate >= self.bw.max() {
            self.bw.update(self.rounds.count, rate);
        }
        if sample.newly_acked > 0 {
            if self.rounds.started {
                self.extra_acked.on_round(self.params.extra_rounds);
            }
            let extra = self.aggregation.extra(sample, self.bw(), self.cwnd);
            self.extra_acked.update(extra);
        }
    }

    /// Samples the rate of a policer (bbr_lt_bw_sampling), after an acknowledgement that was `lossy` if it reported
    /// losses.
    #[inline(never)] // only after losses
    fn sample_long_term(&mut self, lossy: bool, app_limited: bool, now: Time) {
        let round = u32::from(self.rounds.started);
        if self.lt.in_use {
            if matches!(self.state, BbrState::ProbeBw(_)) {
                self.lt.rounds += round;
                if self.lt.rounds >= self.params.lt_use_rounds {
                    self.reset_long_term(now);
                    self.enter_probe_bw(now);
                }
            }
            return;
        }
        if !self.lt.sampling {
            if !lossy {
                return;
            }
            self.start_interval(now);
            self.lt.sampling = true;
        }
        if app_limited {
            self.reset_long_term(now);
            return;
        }
        self.lt.rounds += round;
        if self.lt.rounds > 4 * self.params.lt_rounds {
            self.reset_long_term(now);
            return;
        }
        let delivered = as_f64(self.delivered - self.lt.delivered);
        let lost = as_f64(self.lost - self.lt.lost);
        let (rounds, share) = (self.params.lt_rounds, self.params.lt_loss);
        if self.lt.rounds < rounds || !lossy || delivered == 0.0 || lost < share * delivered {
            return;
        }
        let elapsed = now.saturating_since(self.lt.since);
        if elapsed >= Span::from_ms(1) {
            self.end_interval(delivered / elapsed.as_secs_f64(), now);
        }
    }

    /// Ends a sampling interval with the rate `bw` (bbr_lt_bw_interval_done).
    fn end_interval(&mut self, bw: f64, now: Time) {
        let before = self.lt.bw;
        let difference = (bw - before).abs();
        let close = difference <= self.params.lt_ratio * before
            || difference <= bytes_per_s(self.params.lt_difference);
        if before > 0.0 && close {
            self.lt.bw = f64::midpoint(bw, before);
            self.lt.in_use = true;
            self.lt.rounds = 0;
            return;
        }
        self.lt.bw = bw;
        self.start_interval(now);
    }

    fn start_interval(&mut self, now: Time) {
        self.lt.since = now;
        self.lt.delivered = self.delivered;
        self.lt.lost = self.lost;
        self.lt.rounds = 0;
    }

    fn reset_long_term(&mut self, now: Time) {
        self.lt = LongTerm::default();
        self.start_interval(now);
    }

    #[inline(always)]
    fn update_cycle(&mut self, sample: &RateSample) {
        let BbrState::ProbeBw(phase) = self.state else {
            return;
        };
        let elapsed = sample.now.saturating_since(self.cycle_stamp);
        let full_length = self.min_rtt.is_some_and(|rtt| elapsed > rtt);
        let gain = self.pacing_gain();
        let in_flight = || self.in_network(sample.prior_in_flight, sample);
        let over = if gain > 1.0 {
            // Until `gain` BDP is in flight, unless losses show that the path does not hold as
            // much.
            full_length && (sample.newly_lost > 0 || in_flight() >= self.inflight(gain))
        } else if gain < 1.0 {
            full_length || in_flight() <= self.inflight(1.0)
        } else {
            full_length
        };
        if over {
            self.enter_phase((phase + 1) % 8, sample.now);
        }
    }

    /// The part of `in_flight` that will be in the network when the next quantum leaves.
    #[inline(always)]
    fn in_network(&self, in_flight: u64, sample: &RateSample) -> f64 {
        let quantum = as_f64(self.quantum_segments) * self.config.mss;
        let raising = self.pacing_gain() > 1.0;
        in_network_at_departure(in_flight, sample, self.bw(), raising, quantum)
    }

    #[inline(never)] // once in a round trip
    fn enter_phase(&mut self, phase: u8, now: Time) {
        self.state = BbrState::ProbeBw(phase);
        self.cycle_stamp = now;
    }

    /// Begins the gain cycle at a random phase other than 3/4, because the queue is drained.
    fn enter_probe_bw(&mut self, now: Time) {
        let draw = (self.config.stream.uniform() * 7.0) as u8;
        self.enter_phase((8 - draw) % 8, now);
    }

    #[inline(always)]
    fn check_full_bw(&mut self, sample: &RateSample) {
        if self.full_bw_reached || !self.rounds.started || sample.app_limited {
            return;
        }
        if self.bw.max() >= self.full_bw * self.params.full_bw_growth {
            self.full_bw = self.bw.max();
            self.full_bw_rounds = 0;
            return;
        }
        self.full_bw_rounds += 1;
        self.full_bw_reached = self.full_bw_rounds >= self.params.full_bw_rounds;
    }

    #[inline(always)]
    fn check_drain(&mut self, sample: &RateSample) {
        if self.state == BbrState::Startup && self.full_bw_reached {
            self.state = BbrState::Drain;
        }
        if self.state == BbrState::Drain
            && self.in_network(sample.in_flight, sample) <= self.inflight(1.0)
        {
            self.enter_probe_bw(sample.now);
        }
    }

    #[inline(never)] // rare
    fn set_min_rtt(&mut self, rtt: Span) {
        self.min_rtt = Some(rtt);
        self.min_rtt_s = rtt.as_secs_f64();
        self.set_quantum();
    }

    #[inline(always)]
    fn update_min_rtt(&mut self, sample: &RateSample) {
        let now = sample.now;
        let expired =
            self.min_rtt.is_some() && now > self.min_rtt_stamp + self.params.min_rtt_window;
        if let Some(rtt) = sample.rtt
            && (expired || self.min_rtt.is_none_or(|min| rtt < min))
        {
            self.set_min_rtt(rtt);
            self.min_rtt_stamp = now;
        }
        if expired && !self.idle_restart && self.state != BbrState::ProbeRtt {
            self.save_cwnd();
            self.state = BbrState::ProbeRtt;
            self.probe_rtt_done = None;
        }
        if self.state == BbrState::ProbeRtt {
            self.in_probe_rtt(sample.in_flight, sample.total_delivered, now);
        }
        if sample.delivered > 0 {
            self.idle_restart = false;
        }
    }

    /// Ends PROBE_RTT when its time and a round are over.
    #[inline(never)] // rare
    fn in_probe_rtt(&mut self, in_flight: u64, delivered: u64, now: Time) {
        let low = as_f64(in_flight) <= self.min_cwnd();
        match self.probe_rtt_done {
            None if low => {
                self.probe_rtt_done = Some(now + self.params.probe_rtt_duration);
                self.probe_rtt_round_done = false;
                self.rounds.end = delivered;
            }
            Some(_) => {
                self.probe_rtt_round_done |= self.rounds.started;
                if self.probe_rtt_round_done {
                    self.check_probe_rtt_done(now);
                }
            }
            None => {}
        }
    }

    fn check_probe_rtt_done(&mut self, now: Time) {
        if self.probe_rtt_done.is_none_or(|done| now <= done) {
            return;
        }
        self.min_rtt_stamp = now;
        self.cwnd = self.cwnd.max(self.prior_cwnd);
        if self.full_bw_reached {
            self.enter_probe_bw(now);
        } else {
            self.state = BbrState::Startup;
        }
    }

    #[inline(always)]
    fn set_pacing_rate(&mut self, gain: f64) {
        let rate = self.params.pacing_margin * gain * self.bw();
        if rate != self.pacing_rate && (self.full_bw_reached || rate > self.pacing_rate) {
            // The rate must not be zero, or the flow would stop for ever.
            self.pacing_rate = rate.max(1.0);
            self.set_quantum();
        }
    }

    #[inline(always)]
    fn update_cwnd(&mut self, sample: &RateSample) {
        let acked = as_f64(sample.newly_acked);
        if acked > 0.0 {
            let recovering = self.recover_or_restore(sample);
            if !recovering {
                let most = self.params.max_extra_acked.as_secs_f64() * self.bw();
                let extra = if self.full_bw_reached {
                    lesser(self.extra_acked.max(), most)
                } else {
                    0.0
                };
                let bdp = match self.min_rtt {
                    None => self.config.initial_cwnd,
                    Some(_) => self.cwnd_gain() * self.bw() * self.min_rtt_s,
                };
                let goal = bdp + extra;
                if goal != self.filled.0 {
                    self.filled = (goal, self.segments(goal));
                }
                let target = self.with_quanta(self.filled.1);
                if self.full_bw_reached {
                    self.cwnd = lesser(self.cwnd + acked, target);
                } else if self.cwnd < target
                    || as_f64(sample.total_delivered) < self.config.initial_cwnd
                {
                    self.cwnd += acked;
                }
                self.cwnd = greater(self.cwnd, self.min_cwnd());
            }
        }
        if self.state == BbrState::ProbeRtt {
            self.cwnd = self.cwnd.min(self.min_cwnd());
        }
    }

    /// Sets the window at the beginning and the end of recovery. Returns whether nothing else may
    /// change it.
    #[inline(always)]
    fn recover_or_restore(&mut self, sample: &RateSample) -> bool {
        let flight = greater(
            as_f64(sample.in_flight + sample.newly_acked),
            self.config.mss,
        );
        let lost = as_f64(sample.newly_lost);
        self.cwnd = greater(self.cwnd - lost, self.config.mss);
        let before = std::mem::replace(&mut self.episode, sample.episode);
        if sample.episode == Episode::Recovery && before != Episode::Recovery {
            self.packet_conservation = true;
            self.rounds.end = sample.total_delivered;
            self.cwnd = flight;
        } else if sample.episode == Episode::Open && before != Episode::Open {
            self.packet_conservation = false;
            self.cwnd = self.cwnd.max(self.prior_cwnd);
        }
        if self.packet_conservation {
            self.cwnd = greater(self.cwnd, flight);
        }
        self.packet_conservation
    }

    fn min_cwnd(&self) -> f64 {
        self.params.min_cwnd * self.config.mss
    }

    fn save_cwnd(&mut self) {
        let modulated = self.episode != Episode::Open || self.state == BbrState::ProbeRtt;
        self.prior_cwnd = if modulated {
            self.prior_cwnd.max(self.cwnd)
        } else {
            self.cwnd
        };
    }
}

impl Model for Bbr {
    #[inline(always)] // into the one that calls it, with the sample
    fn on_ack(&mut self, sample: &RateSample) {
        self.delivered = sample.total_delivered;
        if let Some(srtt) = sample.srtt
            && !self.has_seen_rtt
        {
            self.has_seen_rtt = true;
            self.min_rtt_stamp = sample.now;
            self.init_pacing_rate(srtt);
        }
        self.update_bw(sample);
        self.update_cycle(sample);
        self.check_full_bw(sample);
        self.check_drain(sample);
        self.update_min_rtt(sample);
        self.set_pacing_rate(self.pacing_gain());
        self.update_cwnd(sample);
    }

    fn on_lost(&mut self, lost: &LostSegment, _now: Time) {
        self.lost += u64::from(lost.len);
    }

    fn set_stream(&mut self, stream: Stream) {
        self.config.stream = stream;
    }

    fn on_recovery(&mut self) {
        self.save_cwnd();
    }

    fn on_undo(&mut self) {
        self.full_bw = 0.0;
        self.full_bw_rounds = 0;
        self.lt = LongTerm::default();
    }

    fn on_timeout(&mut self, now: Time) {
        self.save_cwnd();
        self.episode = Episode::Loss;
        self.full_bw = 0.0;
        if self.config.lt_bw {
            // Treated as the end of a round with a loss (bbr_set_state).
            self.rounds.started = true;
            self.sample_long_term(true, false, now);
        }
        self.packet_conservation = false;
        self.cwnd = self.config.mss;
    }

    fn on_handshake(&mut self, rtt: Span, now: Time) {
        self.has_seen_rtt = true;
        self.set_min_rtt(rtt);
        self.min_rtt_stamp = now;
        self.init_pacing_rate(rtt);
    }

    fn on_restart(&mut self, now: Time, _delivered: u64) {
        self.idle_restart = true;
        self.aggregation.restart(now);
        match self.state {
            BbrState::ProbeBw(_) => self.set_pacing_rate(1.0),
            BbrState::ProbeRtt => self.check_probe_rtt_done(now),
            BbrState::Startup | BbrState::Drain => {}
        }
    }

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
        self.quantum
    }

    fn probes_rtt(&self) -> bool {
        self.state == BbrState::ProbeRtt
    }

    fn state(&self) -> &'static str {
        match self.state {
            BbrState::Startup => "startup",
            BbrState::Drain => "drain",
            BbrState::ProbeBw(0) => "probe_bw_up",
            BbrState::ProbeBw(1) => "probe_bw_down",
            BbrState::ProbeBw(_) => "probe_bw_cruise",
            BbrState::ProbeRtt => "probe_rtt",
        }
    }
}
