//! BBR, version 3.
//!
//! Source: draft-ietf-ccwg-bbr-06, section 5. In addition to the rate and the round trip of version
//! 1, the model has bounds learnt from losses: a long-term bound on the bytes in flight, found by
//! probing, and short-term bounds that hold between probes.
//!
//! | symbol | meaning | unit |
//! |---|---|---|
//! | max_bw | greatest delivery rate of this cycle of probing and the one before | bytes/s |
//! | bw | max_bw, bounded by bw_shortterm | bytes/s |
//! | min_rtt | least round trip of 10 s | s |
//! | inflight_longterm | most in flight that does not lose more than 2 % | bytes |
//! | bw_shortterm, inflight_shortterm | what was delivered in the latest rounds with losses | bytes/s, bytes |
//!
//! ```text
//! pacing_rate = 0.99 pacing_gain bw,  cwnd -> cwnd_gain bw min_rtt + extra_acked
//!
//! state           pacing_gain  cwnd_gain  cwnd at most             until
//! Startup         2.77         2                                   3 rounds without 25 % growth, or losses
//! Drain           0.5          2          shortterm                bw min_rtt in flight, or 3 rounds
//! ProbeBW_DOWN    0.9          2          longterm, shortterm      bw min_rtt and 0.85 longterm in flight
//! ProbeBW_CRUISE  1            2          0.85 longterm, shortterm 2 to 3 s or up to 63 rounds since DOWN
//! ProbeBW_REFILL  1            2          longterm                 a round
//! ProbeBW_UP      1.25         2.25       longterm, which rises    as Startup, or more than 2 % lost
//! ProbeRTT        1            0.5        0.85 longterm, shortterm 200 ms and a round
//! ```
//!
//! [`Bbr3::google`] is version 3 as in Google's code (github.com/google/bbr, branch v3,
//! net/ipv4/tcp_bbr.c), with the rules and constants that differ and a response to marks:
//!
//! ```text
//! ecn_alpha <- 15/16 ecn_alpha + 1/16 (marked / delivered)      once a round, at first 1
//! inflight_shortterm <- (1 - ecn_alpha / 3) inflight_shortterm  after a round with marks
//! Startup ends after two rounds in which half was marked; a probe does when half of a
//! sample was marked. When marks cease in a cycle without losses, the next begins at once.
//! ```
//!
//! The response to marks applies if the least round trip is at most `bbr_ecn_max_rtt`. Left out
//! with the draft's rules: the undo of a spurious recovery (section 5.5.11). Left out with both:
//! losses shown by a tail loss probe, and load balancing (PLB).

use std::sync::Arc;

use redtail_core::{Bytes, Span, Stream, Time};

use super::model::{
    Aggregation, Episode, LostSegment, MOST_ROUNDS, Model, ModelConfig, RateSample, RoundMax,
    Rounds, TwoWindows, in_network_at_departure,
};
use super::{as_f64, greater, lesser};
use crate::constants::constants;

constants! {
    /// The constants of BBR version 3.
    pub struct Bbr3Params {
        /// Pacing gain in Startup, 4 ln 2: the least with which the rate doubles each round.
        startup_gain: f64 = 2.77, in 1.0 => 100.0, "draft-ietf-ccwg-bbr-06, section 5.6.1; Google: 710/256 (bbr_startup_pacing_gain)";
        /// Pacing gain in Drain.
        drain_gain: f64 = 0.5, in 0.01 => 1.0, "draft-ietf-ccwg-bbr-06, section 5.6.1; Google: 88/256 (bbr_drain_gain)";
        /// Pacing gain in ProbeBW_DOWN.
        down_gain: f64 = 0.9, in 0.01 => 1.0, "draft-ietf-ccwg-bbr-06, section 5.6.1; Google: 232/256 (bbr_pacing_gain)";
        /// Pacing gain in ProbeBW_UP.
        up_gain: f64 = 1.25, in 1.0 => 100.0, "draft-ietf-ccwg-bbr-06, section 5.6.1";
        /// Window gain in all states but ProbeBW_UP and ProbeRTT.
        cwnd_gain: f64 = 2.0, in 0.1 => 100.0, "draft-ietf-ccwg-bbr-06, section 5.6.1";
        /// Window gain in ProbeBW_UP.
        up_cwnd_gain: f64 = 2.25, in 0.1 => 100.0, "draft-ietf-ccwg-bbr-06, section 5.6.1";
        /// Window gain in ProbeRTT.
        probe_rtt_cwnd_gain: f64 = 0.5, in 0.01 => 100.0, "draft-ietf-ccwg-bbr-06, section 5.6.1";
        /// Share of the rate at which segments are paced.
        pacing_margin: f64 = 0.99, in 0.1 => 2.0, "draft-ietf-ccwg-bbr-06, section 2.4 (PacingMarginPercent)";
        /// Share of the rate at which the initial window is paced.
        initial_margin: f64 = 1.0, in 0.1 => 2.0, "draft-ietf-ccwg-bbr-06, section 5.6.2; Google: 0.99";
        /// Number of rounds after which Drain ends, regardless of the bytes in flight.
        drain_rounds: u64 = 3, in 1 => MANY_ROUNDS, "draft-ietf-ccwg-bbr-06, section 5.3.2; Google: none";
        /// Share of losses that is too much.
        loss_thresh: f64 = 0.02, in 0.0 => 0.9, "draft-ietf-ccwg-bbr-06, section 2.7 (LossThresh)";
        /// Factor of a reduction of the bounds by losses.
        beta: f64 = 0.7, in 0.05 => 1.0, "draft-ietf-ccwg-bbr-06, section 2.7 (Beta)";
        /// Share of inflight_longterm that is left to others.
        headroom: f64 = 0.15, in 0.0 => 0.95, "draft-ietf-ccwg-bbr-06, section 2.7 (Headroom)";
        /// Least window, in segments.
        min_pipe: f64 = 4.0, in 1.0 => 1e4, "draft-ietf-ccwg-bbr-06, section 2.7 (MinPipeCwnd)";
        /// Growth of the delivery rate by which the path is not full, as a factor.
        full_bw_growth: f64 = 1.25, in 1.0 => 100.0, "draft-ietf-ccwg-bbr-06, section 5.3.1.2";
        /// Number of rounds without this growth after which the path is full.
        full_bw_rounds: u32 = 3, in 1 => 1000, "draft-ietf-ccwg-bbr-06, section 5.3.1.2";
        /// Number of discontiguous ranges lost in a round that end Startup; Google's code counts acknowledgements.
        startup_loss_ranges: u32 = 6, in 1 => 100_000, "draft-ietf-ccwg-bbr-06, section 5.3.1.3 (StartupFullLossCnt)";
        /// Time over which min_rtt is the least round trip.
        min_rtt_filter: Span = Span::from_s(10), in Span::from_ms(100) => Span::from_s(3600), "draft-ietf-ccwg-bbr-06, section 2.14.1 (MinRTTFilterLen)";
        /// Time without a lower round trip after which ProbeRTT begins.
        probe_rtt_interval: Span = Span::from_s(5), in Span::from_ms(100) => Span::from_s(3600), "draft-ietf-ccwg-bbr-06, section 2.14.2 (ProbeRTTInterval)";
        /// Shortest time in ProbeRTT.
        probe_rtt_duration: Span = Span::from_ms(200), in Span::ZERO => Span::from_s(60), "draft-ietf-ccwg-bbr-06, section 2.14.2 (ProbeRTTDuration)";
        /// Least time between probes for bandwidth.
        probe_wait: Span = Span::from_s(2), in Span::ZERO => Span::from_s(3600), "draft-ietf-ccwg-bbr-06, section 5.3.3.5.3";
        /// Most time that is added to it at random.
        probe_wait_random: Span = Span::from_s(1), in Span::ZERO => Span::from_s(3600), "draft-ietf-ccwg-bbr-06, section 5.3.3.5.3";
        /// Most rounds between probes, for fairness to Reno and CUBIC.
        max_probe_rounds: f64 = 63.0, in 1.0 => 1e6, "draft-ietf-ccwg-bbr-06, section 5.3.3.5.3";
        /// Largest quantum.
        most_quantum: Bytes = Bytes::new(65_536), in Bytes::new(1) => Bytes::new(1 << 30), "draft-ietf-ccwg-bbr-06, section 5.6.3";
        /// Quantum as a time at the pacing rate; Google's code has 2^-10 s.
        quantum: Span = Span::from_ms(1), in Span::from_us(1) => Span::from_s(1), "draft-ietf-ccwg-bbr-06, section 5.6.3";
        /// Number of rounds over which extra_acked is the greatest; in Google's code the least number.
        extra_rounds: u64 = 10, in 1 => MOST_ROUNDS, "draft-ietf-ccwg-bbr-06, section 2.11 (ExtraAckedFilterLen); Google: 5 (bbr_extra_acked_win_rtts)";
        /// With `bbr3-google`, largest extra_acked that is added to the window, as a time at the estimated rate.
        max_extra_acked: Span = Span::from_ms(100), in Span::ZERO => Span::from_s(60), "google/bbr, branch v3, tcp_bbr.c (bbr_extra_acked_max_us)";
        /// With `bbr3-google`, added to the quantum of a flow with a short least round trip.
        short_path_quantum: Bytes = Bytes::new(65_536), in Bytes::new(0) => Bytes::new(1 << 30), "google/bbr, branch v3, tcp_bbr.c (bbr_tso_segs_generic)";
        /// With `bbr3-google`, least round trip by which `short_path_quantum` is halved.
        short_path_halving: Span = Span::from_us(512), in Span::from_us(1) => Span::from_s(10), "google/bbr, branch v3, tcp_bbr.c (bbr_tso_rtt_shift)";
        /// With `bbr3-google` and marks, gain of the estimated share of marked data.
        ecn_gain: f64 = 1.0 / 16.0, in 1e-4 => 1.0, "google/bbr, branch v3, tcp_bbr.c (bbr_ecn_alpha_gain)";
        /// With `bbr3-google` and marks, factor of the estimated share by which inflight_shortterm is lowered.
        ecn_factor: f64 = 85.0 / 256.0, in 0.0 => 1.0, "google/bbr, branch v3, tcp_bbr.c (bbr_ecn_factor)";
        /// With `bbr3-google` and marks, share of marked data that is too much.
        ecn_thresh: f64 = 0.5, in 0.0 => 1.0, "google/bbr, branch v3, tcp_bbr.c (bbr_ecn_thresh)";
        /// With `bbr3-google` and marks, number of rounds with too many that end Startup.
        ecn_startup_rounds: u32 = 2, in 1 => 1000, "google/bbr, branch v3, tcp_bbr.c (bbr_full_ecn_cnt)";
        /// With `bbr3-google` and marks, share of inflight_longterm by which a probe begins when marks cease.
        ecn_reprobe_gain: f64 = 0.5, in 0.0 => 1.0, "google/bbr, branch v3, tcp_bbr.c (bbr_ecn_reprobe_gain)";
    }
}

/// So many rounds that Drain never ends by them.
const MANY_ROUNDS: u64 = 1 << 32;

impl Bbr3Params {
    /// Those of Google's code, in its fixed point.
    pub fn google() -> Self {
        Self {
            startup_gain: 710.0 / 256.0,
            drain_gain: 88.0 / 256.0,
            down_gain: 232.0 / 256.0,
            initial_margin: 0.99,
            drain_rounds: MANY_ROUNDS,
            extra_rounds: 5,
            ..Self::default()
        }
    }

    /// Whether more than `loss_thresh` of the bytes in flight were lost (IsInflightTooHigh of the draft).
    fn too_high(&self, lost: u64, sent_in_flight: u64) -> bool {
        as_f64(lost) > as_f64(sent_in_flight) * self.loss_thresh
    }

    /// Returns the bytes in flight when the losses exceeded `loss_thresh`; this loss is the latest of them
    /// (InflightAtLoss of the draft).
    fn inflight_at_loss(&self, lost: &LostSegment) -> f64 {
        let len = f64::from(lost.len);
        let in_flight_before = as_f64(lost.sent_in_flight) - len;
        let lost_before = as_f64(lost.lost) - len;
        let thresh = self.loss_thresh;
        let prefix = (thresh * in_flight_before - lost_before) / (1.0 - thresh);
        in_flight_before + prefix
    }
}

/// The filter that keeps the maximum of extra_acked.
#[derive(Clone, Debug)]
enum ExtraAcked {
    /// The maximum over a number of rounds (draft, section 5.5.9).
    Rounds(RoundMax),
    /// The maximum over five to ten rounds (Google, bbr_extra_acked_win_rtts).
    Windows(TwoWindows),
}

/// The response to marks; all zero if there is none.
#[derive(Clone, Debug)]
struct Marks {
    /// The largest least round trip at which marks are answered (Google, bbr_ecn_max_rtt_us).
    max_rtt: Option<Span>,
    /// Whether the least round trip is short enough (ecn_eligible).
    eligible: bool,
    alpha: f64,
    // At the latest update.
    delivered: u64,
    marked: u64,
    in_round: bool,
    in_cycle: bool,
    startup_rounds: u32,
    /// Marks arrived in the latest round trip (the kernel's state CWR). It ends when more than this
    /// is delivered, counted as C.delivered.
    recent: Option<u64>,
}

/// The bounds before losses changed them, for an undo (undo_bw_lo and so on).
#[derive(Clone, Copy, Debug)]
struct Saved {
    bw_shortterm: f64,
    inflight_shortterm: f64,
    inflight_longterm: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bbr3State {
    Startup,
    Drain,
    Down,
    Cruise,
    Refill,
    Up,
    ProbeRtt,
}

/// The data that the acknowledgements of the present round cover (BBR.ack_phase).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AckPhase {
    Init,
    Refilling,
    ProbeStarting,
    ProbeFeedback,
    ProbeStopping,
}

/// The controller of BBRv3 with its state.
#[derive(Clone, Debug)]
pub struct Bbr3 {
    config: ModelConfig,
    params: Arc<Bbr3Params>,
    /// Whether the other rules of Google's code apply; each is named where it is used.
    google: bool,
    marks: Marks,
    saved: Saved,
    state: Bbr3State,
    /// The gains of the state.
    pacing_gain: f64,
    cwnd_gain: f64,
    cwnd: f64,
    pacing_rate: f64,
    quantum: u64,
    /// The quantum for which the window has an allowance.
    quantum_goal: f64,
    rounds: Rounds,
    /// The greatest delivery rates of the previous cycle and of this one.
    cycle_bw: [f64; 2],
    bw: f64,
    bw_latest: f64,
    bw_shortterm: f64,
    inflight_latest: f64,
    inflight_shortterm: f64,
    inflight_longterm: f64,
    // The full-pipe estimator.
    full_bw: f64,
    full_bw_count: u32,
    full_bw_now: bool,
    full_bw_reached: bool,
    // Losses, in round trips that begin at a loss.
    loss_in_round: bool,
    loss_round_delivered: u64,
    loss_round_start: bool,
    loss_in_cycle: bool,
    /// Discontiguous ranges lost in this round (Google: acknowledgements that reported losses), and
    /// the end of the latest.
    loss_ranges: u32,
    loss_range_end: u64,
    // Probing for bandwidth.
    ack_phase: AckPhase,
    rounds_since_probe: u64,
    probe_wait: Span,
    cycle_stamp: Time,
    probe_up_rounds: u32,
    probe_up_acked: f64,
    probe_up_acked_per_inc: f64,
    bw_probe_sample: bool,
    prev_probe_too_high: bool,
    prev_probe_precautionary: bool,
    drain_start_round: u64,
    // Round trips.
    has_seen_rtt: bool,
    min_rtt: Option<Span>,
    /// `min_rtt` in seconds, stored to avoid repeated conversion.
    min_rtt_s: f64,
    min_rtt_stamp: Time,
    probe_rtt_min_delay: Option<Span>,
    probe_rtt_min_stamp: Time,
    probe_rtt_done: Option<Time>,
    probe_rtt_round_done: bool,
    idle_restart: bool,
    episode: Episode,
    /// The window before recovery or ProbeRTT.
    prior_cwnd: f64,
    aggregation: Aggregation,
    extra_acked: ExtraAcked,
}

impl Bbr3 {
    /// A model at the start of a connection, with the draft's rules.
    pub fn new(config: ModelConfig, params: &Arc<Bbr3Params>) -> Self {
        Self::with(config, params, false)
    }

    /// A model at the start of a connection, with the rules of Google's code.
    pub fn google(config: ModelConfig, params: &Arc<Bbr3Params>) -> Self {
        Self::with(config, params, true)
    }

    fn with(config: ModelConfig, params: &Arc<Bbr3Params>, google: bool) -> Self {
        let unbounded = Saved {
            bw_shortterm: f64::INFINITY,
            inflight_shortterm: f64::INFINITY,
            inflight_longterm: f64::INFINITY,
        };
        let mut bbr = Self {
            params: Arc::clone(params),
            google,
            marks: Marks {
                max_rtt: config.ecn_max_rtt.filter(|_| google),
                eligible: false,
                alpha: 1.0,
                delivered: 0,
                marked: 0,
                in_round: false,
                in_cycle: false,
                startup_rounds: 0,
                recent: None,
            },
            saved: unbounded,
            quantum_goal: 0.0,
            loss_in_cycle: false,
            extra_acked: if google {
                ExtraAcked::Windows(TwoWindows::default())
            } else {
                ExtraAcked::Rounds(RoundMax::over(params.extra_rounds))
            },
            state: Bbr3State::Startup,
            pacing_gain: params.startup_gain,
            cwnd_gain: params.cwnd_gain,
            cwnd: config.initial_cwnd,
            pacing_rate: 0.0,
            quantum: 0,
            rounds: Rounds::default(),
            cycle_bw: [0.0; 2],
            bw: 0.0,
            bw_latest: 0.0,
            bw_shortterm: f64::INFINITY,
            inflight_latest: 0.0,
            inflight_shortterm: f64::INFINITY,
            inflight_longterm: f64::INFINITY,
            full_bw: 0.0,
            full_bw_count: 0,
            full_bw_now: false,
            full_bw_reached: false,
            loss_in_round: false,
            loss_round_delivered: 0,
            loss_round_start: false,
            loss_ranges: 0,
            loss_range_end: 0,
            ack_phase: AckPhase::Init,
            rounds_since_probe: 0,
            probe_wait: Span::ZERO,
            cycle_stamp: Time::ZERO,
            probe_up_rounds: 0,
            probe_up_acked: 0.0,
            probe_up_acked_per_inc: f64::INFINITY,
            bw_probe_sample: false,
            prev_probe_too_high: false,
            prev_probe_precautionary: false,
            drain_start_round: 0,
            has_seen_rtt: false,
            min_rtt: None,
            min_rtt_s: 0.0,
            min_rtt_stamp: Time::ZERO,
            probe_rtt_min_delay: None,
            probe_rtt_min_stamp: Time::ZERO,
            probe_rtt_done: None,
            probe_rtt_round_done: false,
            idle_restart: false,
            episode: Episode::Open,
            prior_cwnd: 0.0,
            aggregation: Aggregation::default(),
            config,
        };
        bbr.init_pacing_rate(Span::from_ms(1));
        bbr
    }

    #[cold]
    fn init_pacing_rate(&mut self, rtt: Span) {
        let rate = self.params.initial_margin * self.params.startup_gain;
        self.pacing_rate =
            rate * self.config.initial_cwnd / rtt.as_secs_f64().max(f64::MIN_POSITIVE);
        self.set_quantum();
    }

    /// Sets the quantum to a millisecond at the pacing rate, and at least two segments. Google's
    /// code takes 2^-10 s, adds to it on short paths (bbr_tso_segs_generic), and counts whole
    /// segments.
    #[inline(never)] // the rate changes once in many acknowledgements
    fn set_quantum(&mut self) {
        let mss = self.config.mss;
        let params = &*self.params;
        let most = as_f64(params.most_quantum.as_u64());
        let quantum = if self.google {
            let halvings = (self.min_rtt_s / params.short_path_halving.as_secs_f64()) as u32;
            let short = match self.min_rtt {
                Some(_) if halvings < 32 => {
                    as_f64(params.short_path_quantum.as_u64()) / f64::from(1u32 << halvings)
                }
                _ => 0.0,
            };
            ((self.pacing_rate / 1024.0 + short).min(most) / mss).floor() * mss
        } else {
            (self.pacing_rate * params.quantum.as_secs_f64()).min(most)
        };
        self.quantum = quantum.max(2.0 * mss) as u64;
        self.quantum_goal = as_f64(self.quantum);
    }

    #[inline(never)] // rare
    fn set_state(&mut self, state: Bbr3State) {
        self.state = state;
        self.pacing_gain = match state {
            Bbr3State::Startup => self.params.startup_gain,
            Bbr3State::Drain => self.params.drain_gain,
            Bbr3State::Down => self.params.down_gain,
            Bbr3State::Up => self.params.up_gain,
            Bbr3State::Cruise | Bbr3State::Refill | Bbr3State::ProbeRtt => 1.0,
        };
        self.cwnd_gain = match state {
            Bbr3State::Up => self.params.up_cwnd_gain,
            Bbr3State::ProbeRtt => self.params.probe_rtt_cwnd_gain,
            _ => self.params.cwnd_gain,
        };
    }

    fn max_bw(&self) -> f64 {
        greater(self.cycle_bw[0], self.cycle_bw[1])
    }

    fn min_pipe(&self) -> f64 {
        self.params.min_pipe * self.config.mss
    }

    /// Returns the bandwidth-delay product at the rate `bw`, times `gain` (BDPMultiple of the draft).
    fn bdp(&self, bw: f64, gain: f64) -> f64 {
        match self.min_rtt {
            None => self.config.initial_cwnd,
            Some(_) => gain * bw * self.min_rtt_s,
        }
    }

    /// Returns `bytes` with the allowance for quanta (QuantizationBudget of the draft).
    fn with_quanta(&self, bytes: f64) -> f64 {
        let offload = 3.0 * self.quantum_goal;
        let probing = if self.state == Bbr3State::Up {
            2.0
        } else {
            0.0
        };
        greater(greater(bytes, offload), self.min_pipe()) + probing * self.config.mss
    }

    /// Returns the bytes in flight at the rate `bw` with `gain`, with the allowance for quanta (Inflight of
    /// the draft).
    fn inflight(&self, bw: f64, gain: f64) -> f64 {
        self.with_quanta(self.bdp(bw, gain))
    }

    fn target_inflight(&self) -> f64 {
        let target = if self.google {
            self.inflight(self.bw, 1.0) // bbr_target_inflight
        } else {
            self.bdp(self.bw, 1.0)
        };
        lesser(target, self.cwnd)
    }

    /// Returns the bytes in flight (C.inflight of the draft). With Google's code, returns the bytes that
    /// will be in the network when the next quantum leaves (bbr_packets_in_net_at_edt).
    #[inline(always)]
    fn in_flight(&self, in_flight: u64, sample: &RateSample) -> f64 {
        if !self.google {
            return as_f64(sample.in_flight);
        }
        let raising = self.pacing_gain > 1.0;
        in_network_at_departure(in_flight, sample, self.bw, raising, self.quantum_goal)
    }

    fn inflight_with_headroom(&self) -> f64 {
        let headroom = greater(
            self.params.headroom * self.inflight_longterm,
            self.config.mss,
        );
        if self.inflight_longterm.is_infinite() {
            f64::INFINITY
        } else {
            greater(self.inflight_longterm - headroom, self.min_pipe())
        }
    }

    fn in_probe_bw(&self) -> bool {
        matches!(
            self.state,
            Bbr3State::Down | Bbr3State::Cruise | Bbr3State::Refill | Bbr3State::Up
        )
    }

    fn start_round(&mut self, sample_delivered: u64) {
        self.rounds.end = sample_delivered;
    }

    #[inline(always)]
    fn update_latest_delivery(&mut self, sample: &RateSample) {
        self.bw_latest = greater(self.bw_latest, sample.delivery_rate.unwrap_or(0.0));
        self.inflight_latest = greater(self.inflight_latest, as_f64(sample.delivered));
        let prior = sample.prior_delivered;
        self.loss_round_start = prior.is_some_and(|prior| prior >= self.loss_round_delivered);
        if self.loss_round_start {
            self.loss_round_delivered = sample.total_delivered;
        }
    }

    #[inline(always)]
    fn advance_latest_delivery(&mut self, sample: &RateSample) {
        if self.loss_round_start {
            self.bw_latest = sample.delivery_rate.unwrap_or(0.0);
            self.inflight_latest = as_f64(sample.delivered);
        }
    }

    /// Counts rounds, and updates the share of marks once a round (bbr_update_ecn_alpha).
    #[inline(always)]
    fn update_round(&mut self, sample: &RateSample) {
        if self.google && sample.delivery_rate.is_none() {
            self.rounds.started = false; // the sample is ignored (bbr_update_round_start)
        } else {
            self.rounds.update(sample);
        }
        self.rounds_since_probe += u64::from(self.rounds.started);
        let Some(max_rtt) = self.marks.max_rtt else {
            return;
        };
        if self.rounds.started {
            let short = self.min_rtt.is_some_and(|rtt| rtt <= max_rtt);
            self.marks.eligible |= short || max_rtt == Span::ZERO;
            if self.marks.eligible {
                self.update_alpha(sample.total_delivered, sample.total_marked);
            }
        }
        self.marks.in_round |= self.marks.eligible && sample.newly_marked > 0;
        let prior = sample.prior_delivered;
        self.marks
            .recent
            .take_if(|end| prior.is_some_and(|prior| prior >= *end));
        if sample.newly_marked > 0 {
            self.marks.recent.get_or_insert(sample.total_delivered);
        }
    }

    /// Updates the share of marks by the bytes that were delivered, and marked, since the start.
    #[inline(never)] // once in a round trip
    fn update_alpha(&mut self, total_delivered: u64, total_marked: u64) {
        let delivered = as_f64(total_delivered - self.marks.delivered);
        let marked = as_f64(total_marked - self.marks.marked);
        if delivered == 0.0 {
            return;
        }
        let share = (marked / delivered).min(1.0);
        self.marks.alpha += self.params.ecn_gain * (share - self.marks.alpha);
        self.marks.delivered = total_delivered;
        self.marks.marked = total_marked;
        // bbr_check_ecn_too_high_in_startup.
        if self.full_bw_reached {
            return;
        }
        if share < self.params.ecn_thresh {
            self.marks.startup_rounds = 0;
            return;
        }
        self.marks.startup_rounds += 1;
        if self.marks.startup_rounds >= self.params.ecn_startup_rounds {
            self.end_startup_full();
        }
    }

    /// The queue grew too long in Startup (bbr_handle_queue_too_high_in_startup).
    #[inline(never)] // rare
    fn end_startup_full(&mut self) {
        self.full_bw_reached = true;
        let bdp = if self.google {
            self.inflight(self.max_bw(), 1.0)
        } else {
            self.full_bw_now = true;
            self.bdp(self.max_bw(), 1.0)
        };
        self.inflight_longterm = bdp.max(self.inflight_latest);
    }

    #[inline(always)]
    fn update_congestion_signals(&mut self, sample: &RateSample) {
        if let Some(rate) = sample.delivery_rate
            && (!sample.app_limited || rate >= self.max_bw())
        {
            self.cycle_bw[1] = greater(self.cycle_bw[1], rate);
        }
        if !self.loss_round_start {
            return;
        }
        let probing = matches!(
            self.state,
            Bbr3State::Startup | Bbr3State::Refill | Bbr3State::Up
        );
        let mut ecn_inflight = f64::INFINITY;
        if self.marks.in_round && !probing {
            // bbr_ecn_lower_bounds: only the bound on the bytes in flight, not on the rate.
            if self.inflight_shortterm.is_infinite() {
                self.inflight_shortterm = self.cwnd;
            }
            ecn_inflight =
                self.inflight_shortterm * (1.0 - self.marks.alpha * self.params.ecn_factor);
        }
        if self.loss_in_round && !probing {
            if self.bw_shortterm.is_infinite() {
                self.bw_shortterm = self.max_bw();
            }
            if self.inflight_shortterm.is_infinite() {
                self.inflight_shortterm = self.cwnd;
            }
            self.bw_shortterm = self.bw_latest.max(self.params.beta * self.bw_shortterm);
            self.inflight_shortterm = self
                .inflight_latest
                .max(self.params.beta * self.inflight_shortterm);
        }
        self.inflight_shortterm = lesser(self.inflight_shortterm, ecn_inflight);
        self.loss_in_round = false;
        self.marks.in_round = false;
    }

    fn reset_short_term(&mut self) {
        self.bw_shortterm = f64::INFINITY;
        self.inflight_shortterm = f64::INFINITY;
    }

    fn reset_full_bw(&mut self, baseline: f64) {
        self.full_bw = baseline;
        self.full_bw_count = 0;
        self.full_bw_now = false;
    }

    #[inline(always)]
    fn check_full_bw(&mut self, sample: &RateSample) {
        // Google's code checks for growth at every acknowledgement (bbr_check_full_bw_reached), the
        // draft once a round.
        let looks = self.rounds.started || self.google;
        if self.full_bw_now || !looks || sample.app_limited {
            return;
        }
        let rate = sample.delivery_rate.unwrap_or(0.0);
        if rate >= self.full_bw * self.params.full_bw_growth {
            self.reset_full_bw(rate);
            return;
        }
        if !self.rounds.started {
            return;
        }
        self.full_bw_count += 1;
        self.full_bw_now = self.full_bw_count >= self.params.full_bw_rounds;
        self.full_bw_reached |= self.full_bw_now;
    }

    #[inline(always)]
    fn check_startup_done(&mut self, sample: &RateSample) {
        // CheckStartupHighLoss: a full round in recovery, with more than 2 % lost, in several
        // ranges.
        self.loss_ranges += u32::from(self.google && sample.newly_lost > 0);
        if self.loss_round_start {
            if !self.full_bw_reached
                && sample.episode == Episode::Recovery
                && self.loss_ranges >= self.params.startup_loss_ranges
                && self.params.too_high(sample.lost, sample.sent_in_flight)
            {
                self.end_startup_full();
            }
            self.loss_ranges = 0;
        }
        if self.state == Bbr3State::Startup && self.full_bw_reached {
            self.set_state(Bbr3State::Drain);
            self.drain_start_round = self.rounds.count;
            if self.google {
                self.reset_congestion_signals(); // bbr_check_drain
            }
        }
    }

    #[inline(always)]
    fn check_drain_done(&mut self, sample: &RateSample) {
        if self.state != Bbr3State::Drain {
            return;
        }
        let bw = if self.google { self.max_bw() } else { self.bw };
        let drained = self.in_flight(sample.in_flight, sample) <= self.inflight(bw, 1.0);
        let rounds = self.rounds.count - self.drain_start_round;
        if drained || rounds > self.params.drain_rounds {
            self.start_down(sample.total_delivered, sample.now);
        }
    }

    fn reset_congestion_signals(&mut self) {
        self.loss_in_round = false;
        self.loss_in_cycle = false;
        self.marks.in_round = false;
        self.marks.in_cycle = false;
        self.bw_latest = 0.0;
        self.inflight_latest = 0.0;
    }

    fn start_cruise(&mut self) {
        if self.google && self.inflight_shortterm.is_finite() {
            // bbr_start_bw_probe_cruise.
            self.inflight_shortterm = self.inflight_shortterm.min(self.inflight_longterm);
        }
        self.set_state(Bbr3State::Cruise);
    }

    #[inline(never)] // rare
    fn start_down(&mut self, delivered: u64, now: Time) {
        self.reset_congestion_signals();
        self.probe_up_acked_per_inc = f64::INFINITY;
        // PickProbeWait.
        let stream = &mut self.config.stream;
        self.rounds_since_probe = u64::from(stream.uniform() < 0.5);
        let random = stream.uniform_span(Span::ZERO, self.params.probe_wait_random);
        self.probe_wait = self.params.probe_wait + random;
        self.cycle_stamp = now;
        self.ack_phase = AckPhase::ProbeStopping;
        self.start_round(delivered);
        self.set_state(Bbr3State::Down);
    }

    /// Begins Refill. The probe after it begins with 2^`up_rounds` segments a round.
    #[inline(never)] // rare
    fn start_refill(&mut self, up_rounds: u32, delivered: u64) {
        self.reset_short_term();
        self.probe_up_rounds = up_rounds;
        self.probe_up_acked = 0.0;
        self.prev_probe_precautionary = false;
        self.ack_phase = AckPhase::Refilling;
        self.start_round(delivered);
        self.set_state(Bbr3State::Refill);
    }

    #[inline(never)] // rare
    fn start_up(&mut self, delivered: u64, rate: Option<f64>) {
        self.ack_phase = AckPhase::ProbeStarting;
        self.start_round(delivered);
        self.reset_full_bw(rate.unwrap_or(0.0));
        self.set_state(Bbr3State::Up);
        self.raise_slope();
    }

    #[inline(always)]
    fn update_probe_bw(&mut self, sample: &RateSample) {
        if !self.full_bw_reached || self.adapt_long_term(sample) {
            return;
        }
        match self.state {
            Bbr3State::Down => {
                if !self.probe_if_due(sample) && self.is_time_to_cruise(sample) {
                    self.start_cruise();
                }
            }
            Bbr3State::Cruise => {
                self.probe_if_due(sample);
            }
            Bbr3State::Refill => {
                if self.rounds.started {
                    self.bw_probe_sample = true;
                    self.start_up(sample.total_delivered, sample.delivery_rate);
                }
            }
            Bbr3State::Up => {
                if self.is_time_to_go_down(sample) {
                    self.prev_probe_too_high = false;
                    self.start_down(sample.total_delivered, sample.now);
                }
            }
            Bbr3State::Startup | Bbr3State::Drain | Bbr3State::ProbeRtt => {}
        }
    }

    /// Begins a probe if one is due (bbr_check_time_to_probe_bw).
    #[inline(always)]
    fn probe_if_due(&mut self, sample: &RateSample) -> bool {
        let marks = &self.marks;
        if marks.eligible
            && marks.in_cycle
            && marks.recent.is_none()
            && !self.loss_in_cycle
            && sample.episode == Episode::Open
        {
            // Marks have limited the bytes in flight; when they cease there may be room for more.
            let segments = self.inflight_longterm * self.params.ecn_reprobe_gain / self.config.mss;
            let rounds = segments.clamp(1.0, 2f64.powi(30)) as u32;
            self.start_refill(rounds.ilog2(), sample.total_delivered);
            return true;
        }
        let due = self.is_time_to_probe(sample.now);
        if due {
            self.start_refill(0, sample.total_delivered);
        }
        due
    }

    fn is_time_to_probe(&self, now: Time) -> bool {
        let segments = self.target_inflight() / self.config.mss;
        let rounds = segments.min(self.params.max_probe_rounds);
        now > self.cycle_stamp + self.probe_wait || self.rounds_since_probe as f64 >= rounds
    }

    #[inline(always)]
    fn is_time_to_cruise(&self, sample: &RateSample) -> bool {
        let in_flight = self.in_flight(sample.prior_in_flight, sample);
        in_flight <= self.inflight_with_headroom() && in_flight <= self.inflight(self.max_bw(), 1.0)
    }

    #[inline(always)]
    fn is_time_to_go_down(&mut self, sample: &RateSample) -> bool {
        let in_flight = self.in_flight(sample.prior_in_flight, sample);
        if self.prev_probe_too_high && in_flight >= self.inflight_longterm {
            self.prev_probe_precautionary = true;
            return true;
        }
        if sample.window_limited && self.cwnd >= self.inflight_longterm {
            // The bound limits the rate, not the path.
            self.reset_full_bw(sample.delivery_rate.unwrap_or(0.0));
            return false;
        }
        self.full_bw_now
    }

    /// Raises the growth of inflight_longterm to 1, 2, 4, … segments a round (RaiseInflightLongtermSlope of
    /// the draft).
    fn raise_slope(&mut self) {
        let growth = f64::from(1u32 << self.probe_up_rounds);
        self.probe_up_rounds = (self.probe_up_rounds + 1).min(30);
        self.probe_up_acked_per_inc = (self.cwnd / growth).max(self.config.mss);
    }

    #[inline(always)]
    fn probe_long_term_upward(&mut self, sample: &RateSample) {
        if !sample.window_limited || self.cwnd < self.inflight_longterm {
            return;
        }
        self.probe_up_acked += as_f64(sample.newly_acked);
        if self.probe_up_acked >= self.probe_up_acked_per_inc {
            let steps = (self.probe_up_acked / self.probe_up_acked_per_inc).floor();
            self.probe_up_acked -= steps * self.probe_up_acked_per_inc;
            self.inflight_longterm += steps * self.config.mss;
        }
        if self.rounds.started {
            self.raise_slope();
        }
    }

    /// Adapts the long-term bound to the sample (AdaptLongTermModel of the draft). Returns whether it
    /// changed the state.
    #[inline(always)]
    fn adapt_long_term(&mut self, sample: &RateSample) -> bool {
        if self.rounds.started {
            match self.ack_phase {
                AckPhase::ProbeStarting => self.ack_phase = AckPhase::ProbeFeedback,
                AckPhase::ProbeStopping => {
                    self.bw_probe_sample = false;
                    self.ack_phase = AckPhase::Init;
                    if self.in_probe_bw() && !sample.app_limited {
                        self.advance_max_bw();
                    }
                    if self.in_probe_bw()
                        && self.prev_probe_precautionary
                        && !self.prev_probe_too_high
                    {
                        self.start_refill(0, sample.total_delivered);
                        return true;
                    }
                }
                AckPhase::Init | AckPhase::Refilling | AckPhase::ProbeFeedback => {}
            }
        }
        if self.google && self.sample_is_too_high(sample) {
            // bbr_adapt_upper_bounds.
            if self.bw_probe_sample {
                let in_flight = as_f64(sample.sent_in_flight);
                let limited = sample.app_limited;
                self.end_probe(in_flight, limited, sample.total_delivered, sample.now);
            }
            return false;
        }
        if self.inflight_longterm.is_finite()
            && !self.params.too_high(sample.lost, sample.sent_in_flight)
        {
            self.inflight_longterm = greater(self.inflight_longterm, as_f64(sample.sent_in_flight));
            if self.state == Bbr3State::Up {
                self.probe_long_term_upward(sample);
            }
        }
        false
    }

    fn advance_max_bw(&mut self) {
        // A cycle without samples does not change the estimate.
        if self.cycle_bw[1] > 0.0 {
            self.cycle_bw = [self.cycle_bw[1], 0.0];
        }
    }

    /// Whether the losses or marks of the sample show that too much was in flight (Google,
    /// bbr_is_inflight_too_high).
    #[inline(always)]
    fn sample_is_too_high(&self, sample: &RateSample) -> bool {
        let lossy =
            sample.sent_in_flight > 0 && self.params.too_high(sample.lost, sample.sent_in_flight);
        let marked = as_f64(sample.marked) > as_f64(sample.delivered) * self.params.ecn_thresh;
        lossy || self.marks.eligible && marked
    }

    /// Lowers the long-term bound and ends a probe, because `in_flight` bytes in flight were too much
    /// (HandleInflightTooHigh of the draft).
    #[inline(never)] // rare
    fn end_probe(&mut self, in_flight: f64, app_limited: bool, delivered: u64, now: Time) {
        self.prev_probe_too_high = true;
        self.bw_probe_sample = false;
        if !app_limited {
            self.inflight_longterm = in_flight.max(self.target_inflight() * self.params.beta);
        }
        if self.state == Bbr3State::Up {
            self.start_down(delivered, now);
        }
    }

    #[inline(never)] // rare
    fn set_min_rtt(&mut self, rtt: Span) {
        self.min_rtt = Some(rtt);
        self.min_rtt_s = rtt.as_secs_f64();
        if self.google {
            self.set_quantum();
        }
    }

    #[inline(always)]
    fn update_min_rtt(&mut self, sample: &RateSample) {
        let now = sample.now;
        let known = self.probe_rtt_min_delay.is_some();
        let expired = known && now > self.probe_rtt_min_stamp + self.params.probe_rtt_interval;
        if let Some(rtt) = sample.rtt
            && (expired || self.probe_rtt_min_delay.is_none_or(|min| rtt < min))
        {
            self.probe_rtt_min_delay = Some(rtt);
            self.probe_rtt_min_stamp = now;
        }
        let stale = now > self.min_rtt_stamp + self.params.min_rtt_filter;
        if let Some(delay) = self.probe_rtt_min_delay
            && (stale
                || self
                    .min_rtt
                    .is_none_or(|min| delay < min || delay == min && self.google))
        {
            self.set_min_rtt(delay);
            self.min_rtt_stamp = self.probe_rtt_min_stamp;
        }
        // CheckProbeRTT.
        if self.state != Bbr3State::ProbeRtt && expired && !self.idle_restart {
            self.save_cwnd();
            self.set_state(Bbr3State::ProbeRtt);
            self.probe_rtt_done = None;
            self.ack_phase = AckPhase::ProbeStopping;
            self.start_round(sample.total_delivered);
        }
        if self.state == Bbr3State::ProbeRtt {
            self.in_probe_rtt(sample.in_flight, sample.total_delivered, now);
        }
        if sample.delivered > 0 {
            self.idle_restart = false;
        }
    }

    /// Ends ProbeRTT when its time and a round are over (HandleProbeRTT of the draft).
    #[inline(never)] // rare
    fn in_probe_rtt(&mut self, in_flight: u64, delivered: u64, now: Time) {
        match self.probe_rtt_done {
            None if as_f64(in_flight) <= self.probe_rtt_cwnd() => {
                self.probe_rtt_done = Some(now + self.params.probe_rtt_duration);
                self.probe_rtt_round_done = false;
                self.start_round(delivered);
            }
            Some(_) => {
                self.probe_rtt_round_done |= self.rounds.started;
                if self.probe_rtt_round_done {
                    self.check_probe_rtt_done(delivered, now);
                }
            }
            None => {}
        }
    }

    fn probe_rtt_cwnd(&self) -> f64 {
        self.bdp(self.bw, self.params.probe_rtt_cwnd_gain)
            .max(self.min_pipe())
    }

    fn check_probe_rtt_done(&mut self, delivered: u64, now: Time) {
        if self.probe_rtt_done.is_none_or(|done| now <= done) {
            return;
        }
        self.probe_rtt_min_stamp = now;
        self.cwnd = self.cwnd.max(self.prior_cwnd);
        self.reset_short_term();
        if self.full_bw_reached {
            self.start_down(delivered, now);
            self.start_cruise();
        } else {
            self.set_state(Bbr3State::Startup);
        }
    }

    fn set_pacing_rate(&mut self, gain: f64) {
        let rate = self.params.pacing_margin * gain * self.bw;
        if rate != self.pacing_rate && (self.full_bw_reached || rate > self.pacing_rate) {
            // The rate must not be zero, or the flow would stop for ever.
            self.pacing_rate = rate.max(1.0);
            self.set_quantum();
        }
    }

    /// Updates the window and applies the bounds of the model (SetCwnd and BoundCwndForModel of the draft).
    #[inline(always)]
    fn update_cwnd(&mut self, sample: &RateSample) {
        let acked = as_f64(sample.newly_acked);
        let extra = match &self.extra_acked {
            ExtraAcked::Rounds(rounds) if self.full_bw_reached => rounds.max(),
            ExtraAcked::Rounds(rounds) => rounds.latest(),
            ExtraAcked::Windows(windows) => lesser(
                windows.max(),
                self.params.max_extra_acked.as_secs_f64() * self.bw,
            ),
        };
        let most = self.with_quanta(self.bdp(self.bw, self.cwnd_gain) + extra);
        let small = if self.google {
            self.cwnd < 2.0 * self.config.initial_cwnd
        } else {
            as_f64(sample.total_delivered) < self.config.initial_cwnd
        };
        if acked == 0.0 && self.google {
            // Nothing was delivered, so only the bounds apply (bbr_set_cwnd).
        } else if self.full_bw_reached {
            self.cwnd = lesser(self.cwnd + acked, most);
        } else if self.cwnd < most || small {
            self.cwnd += acked;
        }
        self.cwnd = greater(self.cwnd, self.min_pipe());
        if self.state == Bbr3State::ProbeRtt {
            self.cwnd = lesser(self.cwnd, self.probe_rtt_cwnd());
        }
        let cap = match self.state {
            Bbr3State::Down | Bbr3State::Refill | Bbr3State::Up => self.inflight_longterm,
            Bbr3State::Cruise | Bbr3State::ProbeRtt => self.inflight_with_headroom(),
            Bbr3State::Startup | Bbr3State::Drain => f64::INFINITY,
        };
        let cap = greater(lesser(cap, self.inflight_shortterm), self.min_pipe());
        self.cwnd = lesser(self.cwnd, cap);
    }

    #[inline(always)]
    fn update_extra_acked(&mut self, sample: &RateSample) {
        if self.google && sample.delivery_rate.is_none() {
            return;
        }
        let extra = self.aggregation.extra(sample, self.bw, self.cwnd);
        match &mut self.extra_acked {
            ExtraAcked::Rounds(rounds) => rounds.update(self.rounds.count, extra),
            ExtraAcked::Windows(windows) => {
                if self.rounds.started {
                    windows.on_round(if self.full_bw_reached {
                        self.params.extra_rounds as u32
                    } else {
                        1
                    });
                }
                windows.update(extra);
            }
        }
    }

    fn save_bounds(&mut self) {
        self.saved = Saved {
            bw_shortterm: self.bw_shortterm,
            inflight_shortterm: self.inflight_shortterm,
            inflight_longterm: self.inflight_longterm,
        };
    }

    fn save_cwnd(&mut self) {
        let modulated = self.episode != Episode::Open || self.state == Bbr3State::ProbeRtt;
        self.prior_cwnd = if modulated {
            self.prior_cwnd.max(self.cwnd)
        } else {
            self.cwnd
        };
    }
}

impl Model for Bbr3 {
    #[inline(always)] // into the one that calls it, with the sample
    fn on_ack(&mut self, sample: &RateSample) {
        if let Some(srtt) = sample.srtt
            && !self.has_seen_rtt
        {
            self.has_seen_rtt = true;
            self.min_rtt_stamp = sample.now;
            self.init_pacing_rate(srtt);
        }
        // Google's code restores the window only after a timeout (bbr_exit_loss_recovery).
        let restores = match self.episode {
            Episode::Open => false,
            Episode::Recovery => !self.google && sample.episode == Episode::Open,
            Episode::Loss => {
                sample.episode == Episode::Open || self.google && sample.episode != Episode::Loss
            }
        };
        if restores {
            self.cwnd = self.cwnd.max(self.prior_cwnd);
        }
        self.episode = sample.episode;
        self.update_round(sample);
        self.update_latest_delivery(sample);
        self.update_congestion_signals(sample);
        if sample.newly_acked > 0 {
            self.update_extra_acked(sample);
        }
        self.check_full_bw(sample);
        self.check_startup_done(sample);
        self.check_drain_done(sample);
        self.update_probe_bw(sample);
        self.update_min_rtt(sample);
        self.advance_latest_delivery(sample);
        self.bw = lesser(self.max_bw(), self.bw_shortterm);
        self.set_pacing_rate(self.pacing_gain);
        self.update_cwnd(sample);
        self.loss_in_cycle |= sample.lost > 0;
        self.marks.in_cycle |= sample.marked > 0;
    }

    /// Handles a segment that was declared lost (HandleLostPacket of the draft).
    fn on_lost(&mut self, lost: &LostSegment, now: Time) {
        if !self.loss_in_round {
            self.loss_round_delivered = lost.total_delivered;
            if !self.google {
                self.save_cwnd();
            }
        }
        self.loss_in_round = true;
        self.loss_in_cycle = true;
        let another = lost.start != self.loss_range_end;
        self.loss_ranges += u32::from(another && !self.google);
        self.loss_range_end = lost.start + u64::from(lost.len);
        if self.bw_probe_sample && self.params.too_high(lost.lost, lost.sent_in_flight) {
            let in_flight = self.params.inflight_at_loss(lost);
            self.end_probe(in_flight, lost.app_limited, lost.total_delivered, now);
        }
    }

    fn set_stream(&mut self, stream: Stream) {
        self.config.stream = stream;
    }

    fn on_recovery(&mut self) {
        self.save_cwnd();
        self.save_bounds();
        self.episode = Episode::Recovery;
    }

    fn on_timeout(&mut self, _now: Time) {
        self.save_cwnd();
        self.save_bounds();
        self.episode = Episode::Loss;
        if self.google {
            // bbr_set_state.
            self.reset_full_bw(0.0);
            let probing = matches!(
                self.state,
                Bbr3State::Startup | Bbr3State::Refill | Bbr3State::Up
            );
            if !probing && self.inflight_shortterm.is_infinite() {
                self.inflight_shortterm = self.cwnd.max(self.prior_cwnd);
            }
        }
        self.cwnd = self.config.mss;
    }

    /// Restores the bounds after a reduction was undone (Google, bbr_undo_cwnd). The draft's undo of
    /// section 5.5.11 is left out.
    fn on_undo(&mut self) {
        if !self.google {
            return;
        }
        self.reset_full_bw(0.0);
        self.loss_in_round = false;
        let saved = self.saved;
        self.bw_shortterm = self.bw_shortterm.max(saved.bw_shortterm);
        self.inflight_shortterm = self.inflight_shortterm.max(saved.inflight_shortterm);
        self.inflight_longterm = self.inflight_longterm.max(saved.inflight_longterm);
        self.cwnd = self.prior_cwnd;
    }

    fn on_handshake(&mut self, rtt: Span, now: Time) {
        self.has_seen_rtt = true;
        self.set_min_rtt(rtt);
        self.min_rtt_stamp = now;
        self.probe_rtt_min_stamp = now;
        self.init_pacing_rate(rtt);
    }

    fn on_restart(&mut self, now: Time, delivered: u64) {
        self.idle_restart = true;
        self.aggregation.restart(now);
        if self.in_probe_bw() {
            self.set_pacing_rate(1.0);
        } else if self.state == Bbr3State::ProbeRtt {
            self.check_probe_rtt_done(delivered, now);
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
        self.state == Bbr3State::ProbeRtt
    }

    fn state(&self) -> &'static str {
        match self.state {
            Bbr3State::Startup => "startup",
            Bbr3State::Drain => "drain",
            Bbr3State::Down => "probe_bw_down",
            Bbr3State::Cruise => "probe_bw_cruise",
            Bbr3State::Refill => "probe_bw_refill",
            Bbr3State::Up => "probe_bw_up",
            Bbr3State::ProbeRtt => "probe_rtt",
        }
    }
}
