//! Which sender it is, by what its acknowledgements and its segments need.

use crate::params::TcpParams;
use crate::tcp::rack::Rules;
use crate::tcp::rto::RttSampling;

/// The kind of a sender. It is found once, from the parameters, and selects the short paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// It has none of what most senders do without: ECN, timestamps, losses detected by time, reductions undone or
    /// spread, pacing, a law that watches the path, a limited buffer. What these need is then not asked for.
    Basic,
    /// Any sender that is neither basic nor of [`Linux`](Self::Linux).
    Options,
    /// Losses are repaired in the states of Linux.
    Linux,
    /// It takes no short path, whatever it has. Only tests have it: they compare it with the others.
    General,
}

/// What is known of a sender where a function is compiled for it, which then leaves out the rest.
pub trait Path {
    /// It may have what a [basic](Kind::Basic) sender does without.
    const OPTIONS: bool = true;
    /// It has the states of Linux for certain.
    const LINUX: bool = false;
    /// An acknowledgement that is processed advances and acknowledges nothing selectively, and there is neither an episode
    /// nor an unanswered probe. Sending does not ask for it.
    const ORDINARY: bool = false;
    /// The segment that is sent is full, more data follows it, and others are outstanding: neither an idle time nor a
    /// wait ends or begins, and the timer runs.
    const FULL: bool = false;
}

/// The path of any sender.
pub struct Any;

/// The path of a basic sender that sends only new data.
pub struct Basic;

/// The same for a full segment.
pub struct Full;

/// The path of a sender with the states of Linux: of new data, and of an acknowledgement outside of an episode.
pub struct Linux;

impl Path for Any {}

impl Path for Basic {
    const OPTIONS: bool = false;
    const ORDINARY: bool = true;
}

impl Path for Full {
    const OPTIONS: bool = false;
    const ORDINARY: bool = true;
    const FULL: bool = true;
}

impl Path for Linux {
    const LINUX: bool = true;
    const ORDINARY: bool = true;
}

impl Kind {
    /// The kind of a sender with these parameters, whose growth law `watches` the path. Each parameter is named: for a
    /// new one it is decided here whether a basic sender may have it.
    pub fn of(params: &TcpParams, watches: bool) -> Self {
        let TcpParams {
            // A basic sender has none of these.
            ecn,
            timestamps,
            recovery,
            frto,
            dsack,
            prr,
            pacing,
            class: _,
            growth: _,
            fin_beyond_window,
            rtt_sampling,
            send_buffer,
            // The short paths of all kinds read these, or what was made of them.
            mss: _,
            byte_counting: _,
            slow_start: _,
            initial_window: _,
            initial_ssthresh: _,
            limited_transmit: _,
            timer_restart: _,
            timer_tick: _,
            // These take effect at a loss, at a timeout, after an idle time, or when the connection opens or closes.
            halving: _,
            dup_thresh: _,
            idle_restart: _,
            idle_decay: _,
            syn_loss: _,
            handshake: _,
            bare_handshake_ack: _,
            // The estimator of the round trip reads these.
            initial_rto: _,
            min_rto: _,
            rto_floor: _,
            max_rto: _,
            clock_granularity: _,
            rtt_deviation: _,
            rto_alpha: _,
            rto_beta: _,
            rto_k: _,
            // Without loss detection by time these have no effect.
            rack_window_divisor: _,
            rack_persist: _,
            tlp_round_trips: _,
            tlp_max_ack_delay: _,
            // Without pacing, a model or ECN these have no effect.
            pacing_ca_ratio: _,
            unpaced_segments: _,
            lt_bw: _,
            params: _,
            source: _,
            bbr_ecn_max_rtt: _,
            ecn_feedback: _,
            ecn_reduction: _,
            abe_beta: _,
            dctcp_g: _,
            alpha_start: _,
            rtt_transition: _,
            ecn_codepoint: _,
            ecn_syn_ack: _,
            ecn_fallback: _,
            ecn_retransmissions: _,
            // A sender does not use these, or only to push segments.
            kernel_control: _,
            header: _,
            delayed_ack: _,
            delayed_ack_timeout: _,
            adaptive_acks: _,
            quick_acks: _,
            receive_window: _,
            receive_autotuning: _,
            read_rate: _,
        } = params;
        let traits = recovery.traits();
        if traits.by_time == Some(Rules::Linux) {
            return Self::Linux;
        }
        let has_options = *ecn
            || *timestamps
            || traits.by_time.is_some()
            || *frto
            || *dsack
            || *prr
            || *pacing
            || params.has_model()
            || *fin_beyond_window
            || *rtt_sampling == RttSampling::EveryDelivery
            || send_buffer.is_some()
            || watches;
        match has_options {
            true => Self::Options,
            false => Self::Basic,
        }
    }
}
