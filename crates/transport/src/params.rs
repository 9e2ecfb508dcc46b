//! The parameters of a TCP connection.

use std::collections::BTreeMap;

use redtail_core::schemars::JsonSchema;
use redtail_core::serde::{Deserialize, Serialize};
use redtail_core::{Bytes, ParamError, Rate, Span, schemars, serde};

use crate::cc::slow_start::{SlowStartKind, SlowStartParams};
use crate::cc::{Growth, GrowthParams, Halving, IdleDecay};
use crate::choices::{
    AlphaStart, EcnCodepoint, EcnFeedback, EcnReduction, RtoFloor, RttDeviation, RttSampling,
    SynLoss, TimerRestart,
};
use crate::constants::{GivenLaw, LawTable};
use crate::plugin::{Identity, PluginVisitor, Role, Value};
use crate::presets::Preset;
use crate::segment::{Flags, MAX_SACK_BLOCKS, Segment};
use crate::tcp::receive_buffer::ReceiveBuffer;
use crate::tcp::recovery::RecoveryKind;

/// Defines every parameter once: as a field of [`TcpParams`], and as an
/// optional key beside `preset` in the experiment file.
macro_rules! tcp_params {
    ($($(#[$doc:meta])* $name:ident: $type:ty $(as $given:ty)? $([without if $empty:literal])?,)+) => {
        /// Every parameter of a connection. Both endpoints share them.
        #[derive(Clone, Debug, PartialEq, Serialize)]
        #[serde(crate = "serde")]
        pub struct TcpParams {
            $($(#[$doc])* $(#[serde(default, skip_serializing_if = $empty)])? pub $name: $type,)+
        }

        /// A preset with the parameters that differ from it.
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(crate = "serde", deny_unknown_fields)]
        #[schemars(crate = "schemars", rename = "TcpTable")]
        pub struct GivenTcpParams {
            /// The set of parameters to start from.
            #[serde(default)]
            pub preset: Preset,
            $($(#[$doc])* #[serde(default, skip_serializing_if = "Option::is_none")] pub $name: Option<tcp_params!(@given $type $(as $given)?)>,)+
        }

        impl GivenTcpParams {
            /// The preset's parameters with this table's departures.
            pub fn params(&self) -> TcpParams {
                let mut params = self.preset.params();
                $(if let Some(value) = &self.$name { value.depart(&mut params.$name); })+
                // Who gives a window alone means this one.
                params.receive_autotuning &=
                    self.receive_window.is_none() || self.receive_autotuning.is_some();
                if params.class.is_some() {
                    params.leave_to_controller();
                }
                params
            }
        }
    };
    (@given $type:ty) => { $type };
    (@given $type:ty as $given:ty) => { $given };
}

/// What a file gives in place of a preset's parameter.
trait Departure<T> {
    fn depart(&self, value: &mut T);
}

impl<T: Clone> Departure<T> for T {
    fn depart(&self, value: &mut T) {
        value.clone_from(self);
    }
}

impl<T: LawTable + Clone> Departure<T> for GivenLaw<T> {
    /// Constants that the law does not have are refused by [`ResolvedTcpParams::check`].
    fn depart(&self, value: &mut T) {
        if let Ok(law) = self.law(value) {
            *value = law;
        }
    }
}

tcp_params! {
    /// Payload bytes of a full-sized segment.
    mss: Bytes,
    /// Bytes that network and transport headers add to each segment.
    header: Bytes,
    /// How the window grows until the first congestion event.
    slow_start: SlowStartParams as GivenLaw<SlowStartParams>,
    /// How the window grows in congestion avoidance, and by how much it is reduced.
    growth: GrowthParams as GivenLaw<GrowthParams>,
    /// Grow the window with the number of acknowledged bytes instead of the number of acknowledgements (RFC 3465; Linux, there without a limit in slow start).
    byte_counting: bool,
    /// Space segments in time: at the rate of a model, or at twice the window each round trip in slow start and `pacing_ca_ratio` times after it (Linux's tcp_pacing_ss_ratio and tcp_pacing_ca_ratio).
    pacing: bool,
    /// With `pacing`, rate at which a window-based sender is paced after slow start, in windows per round-trip time.
    /// Source: 1.2 is Linux's tcp_pacing_ca_ratio, 1 Prague's (tcp_prague.c, prague_update_pacing_rate).
    pacing_ca_ratio: f64,
    /// With `pacing`, number of data segments at the start of a connection that are not paced.
    /// Source: Linux has 10 (net/ipv4/tcp_output.c, tcp_update_skb_after_send); the drafts of BBR and Prague have none.
    unpaced_segments: u32,
    /// With growth `bbr`, assume a policer after two intervals of similar rates in which a fifth is lost, and use its rate as the rate of the path for 48 rounds.
    /// Source: Linux 6.1, tcp_bbr.c (bbr_lt_bw_sampling); the draft of version 1 has no such estimate.
    lt_bw: bool,
    /// With growth `bbr3-google` and `ecn`, largest minimum round-trip time at which the sender responds to marks; 0 for any.
    /// Source: google/bbr, branch v3, tcp_bbr.c (bbr_ecn_max_rtt_us).
    bbr_ecn_max_rtt: Span,
    /// The congestion control of a Linux kernel, in place of `growth`, `slow_start` and what marks do to the window: its name there (tcp_available_congestion_control), such as "cdg". Only the backends with a kernel's TCP have it.
    kernel_control: Option<String> [without if "Option::is_none"],
    /// How losses are detected and repaired.
    recovery: RecoveryKind,
    /// Reduce the data in flight in proportion to the data delivered during recovery (RFC 9937); with selective acknowledgements. With recovery `linux` in whole segments, from the window before the reduction (Linux 6.1, `tcp_cwnd_reduction`).
    prr: bool,
    /// Quantity that a reduction is a share of; the laws with a reduction of their own (`westwood` to `yeah`) take it of the window.
    halving: Halving,
    /// Segments that may be sent before the first acknowledgement.
    initial_window: u32,
    /// Window at which slow start ends if no loss has ended it before; with at most `initial_window` there is no slow start. Without it there is no such window. A model of the path (growth `bbr`, `copa` and the like) and a `class` have none.
    /// Source: arbitrarily high (RFC 5681, section 3.1); ns-2's `ssthresh_`, and `ssthresh` of a route of Linux (ip-route(8)).
    initial_ssthresh: Option<u32> [without if "Option::is_none"],
    /// Number of duplicate acknowledgements that indicate a loss (DupThresh).
    dup_thresh: u32,
    /// Send new data on the first two duplicate acknowledgements (RFC 3042).
    limited_transmit: bool,
    /// Acknowledge every second full-sized segment, or after `delayed_ack_timeout`; when off, each segment is acknowledged.
    delayed_ack: bool,
    /// Longest delay of an acknowledgement; with `adaptive_acks`, the shortest.
    delayed_ack_timeout: Span,
    /// With `delayed_ack`, acknowledge as Linux's receiver does: a delay that follows the time between segments, doubles when it runs out and is at most 200 ms and the round trip; pushed and short segments at once unless this side sends too; segments that let the receive window grow at once; and at once again for a while after a duplicate, a gap longer than the retransmission timeout or a first mark. The sender pushes the end of what is written, and with recovery `linux` the last of the segments that leave together (net/ipv4/tcp_input.c, tcp_event_data_recv, tcp_grow_window, __tcp_ack_snd_check, __tcp_ecn_check_ce; tcp_output.c, tcp_send_delayed_ack, __tcp_transmit_skb; tcp_timer.c, tcp_delack_timer_handler).
    adaptive_acks: bool,
    /// Number of segments at the start of a connection that are acknowledged at once in spite of `delayed_ack`; with `adaptive_acks`, number of acknowledgements that are sent at once there, and after a duplicate or a long gap.
    quick_acks: u32,
    /// Measure a round trip with every acknowledgement by timestamps (RFC 7323); their 12 bytes are part of `header`.
    timestamps: bool,
    /// Size of the receiver's buffer: the largest number of outstanding bytes. The announced window is a multiple of the window scale (RFC 7323, section 2.3), the least power of two with which it fits 16 bits. With `receive_autotuning` the largest window; a value without that key turns it off.
    /// Source: with autotuning half of Linux's largest tcp_rmem, 6 MiB (net/ipv4/tcp.c, tcp_init; 6.1: tcp_adv_win_scale = 1).
    receive_window: Bytes,
    /// With `adaptive_acks` and `timestamps`, begin with a window of 64 kB and let it grow with what arrives up to `receive_window`, as Linux 6.1 tunes its buffer (tcp_rmem; net/ipv4/tcp_input.c, tcp_grow_window, tcp_rcv_space_adjust); otherwise the window is `receive_window` from the start.
    receive_autotuning: bool,
    /// Size of the sender's buffer: data that the application has written stays in it until it is acknowledged, so the sender has no more than this outstanding. Without it nothing limits the sender.
    /// Source: Linux's largest tcp_wmem, 4 MiB (net/ipv4/tcp.c, tcp_init), up to which a buffer has room for twice the congestion window (net/ipv4/tcp_input.c, tcp_sndbuf_expand).
    send_buffer: Option<Bytes>,
    /// Rate at which the receiving application reads; unread data reduces the receive window. Without it the application reads at once.
    read_rate: Option<Rate>,
    /// With `handshake`, effects of a lost SYN or SYN-ACK on the start of data transmission.
    syn_loss: SynLoss,
    /// Open with a three-way handshake, whose segments can be lost, and close with FINs; when off, a connection starts with data and ends without FINs, as with ns-2's one-way agents.
    handshake: bool,
    /// Acknowledge the SYN-ACK with a segment without data, before the first data, as Linux does (net/ipv4/tcp_input.c, tcp_rcv_synsent_state_process); RFC 9293, section 3.10.7.3, lets the first data acknowledge it.
    bare_handshake_ack: bool,
    /// After an idle time longer than the retransmission timeout, continue with at most the initial window (RFC 5681, section 4.1), or as `idle_decay` says.
    idle_restart: bool,
    /// How `idle_restart` reduces the window.
    idle_decay: IdleDecay,
    /// Send the FIN as Linux does: its segment leaves even if the congestion window is full, one segment beyond it (tcp_cwnd_test), and data that can be sent when the application closes leaves before it, so that it goes alone (tcp_send_fin).
    fin_beyond_window: bool,
    /// Retransmission timeout before the first round-trip sample; at least "1 us".
    initial_rto: Span,
    /// Smallest retransmission timeout; at least "1 us".
    min_rto: Span,
    /// Quantity that `min_rto` bounds.
    rto_floor: RtoFloor,
    /// Largest retransmission timeout, back-off included.
    max_rto: Span,
    /// Tick of the clock that measures round-trip times; zero is an exact clock.
    clock_granularity: Span,
    /// Which segments give round-trip samples.
    rtt_sampling: RttSampling,
    /// Which deviation of round-trip times the retransmission timeout uses.
    rtt_deviation: RttDeviation,
    /// alpha: weight of a round-trip sample in the smoothed round-trip time.
    /// Source: RFC 6298, rule 2.3; Linux, tcp_rtt_estimator.
    rto_alpha: f64,
    /// beta: weight of a round-trip sample in the mean deviation, with `rtt_deviation = "mean"`.
    /// Source: RFC 6298, rule 2.3.
    rto_beta: f64,
    /// K: number of mean deviations in the timeout.
    /// Source: RFC 6298, rule 2.3.
    rto_k: f64,
    /// With recovery `rack-tlp` and `linux`, step of RACK's reordering window, as one part in so many of the least round-trip time.
    /// Source: RFC 8985, section 6.2, step 4; Linux 6.1, tcp_recovery.c, tcp_rack_reo_wnd.
    rack_window_divisor: u32,
    /// With recovery `rack-tlp` and `linux`, number of recoveries for which RACK's widened reordering window is kept.
    /// Source: RFC 8985, section 6.2, step 4 (RACK.reo_wnd_persist); Linux 6.1, TCP_RACK_RECOVERY_THRESH.
    rack_persist: u32,
    /// With recovery `rack-tlp` and `linux`, number of smoothed round-trip times after which a tail loss probe is sent.
    /// Source: RFC 8985, section 7.2; Linux 6.1, tcp_output.c, tcp_schedule_loss_probe.
    tlp_round_trips: u32,
    /// With recovery `rack-tlp` and `linux`, time by which a tail loss probe is sent later if one segment is outstanding.
    /// Source: RFC 8985, section 7.2 (TLP.max_ack_delay); Linux 6.1, tcp_rto_min.
    tlp_max_ack_delay: Span,
    /// What restarts the retransmission timer.
    timer_restart: TimerRestart,
    /// Tick of the clock that drives timers: a timeout ends at the first tick after it, and, if it is 63 ticks long or longer, at a multiple of 8 ticks (64 from 504 ticks on, and so on), as in Linux's timer wheel; zero is an exact clock. Linux counts 250 ticks a second (Debian) and widens tail loss probe and reordering timers by 2 ms for them.
    timer_tick: Span,
    /// After a timeout, send new data before more old data, and undo the timeout if segments sent before it still arrive (F-RTO, RFC 5682: section 3.1 with selective acknowledgements, otherwise section 2.1; with recovery `linux` as in `tcp_process_loss`).
    frto: bool,
    /// Report data that arrives twice (RFC 2883), undo a reduction when all its retransmissions were reported in this way, and widen RACK's reordering window with the reports (RFC 8985, section 6.2); with selective acknowledgements.
    dsack: bool,
    /// Use ECN (RFC 3168): negotiate it, send ECN-capable data, respond to marks.
    ecn: bool,
    /// How the receiver reports marks.
    ecn_feedback: EcnFeedback,
    /// By how much marks reduce the window.
    ecn_reduction: EcnReduction,
    /// With `ecn_reduction = "abe"`, factor by which a mark multiplies the window. Without it 0.8, and 0.85 with growth `cubic` and `linux-cubic`.
    /// Source: RFC 8511, section 3.1.
    abe_beta: Option<f64>,
    /// g: gain of the estimated share of marked data, for a reduction in proportion to it.
    /// Source: RFC 8257, section 4.2.
    dctcp_g: f64,
    /// Initial value of the estimated share of marked data, for a reduction in proportion to it.
    /// Source: RFC 8257, section 3.3, for DCTCP; tcp_prague.c of version 0.6 for Prague.
    alpha_start: AlphaStart,
    /// Number of round trips after slow start after which Prague's growth and reduction no longer depend on a round-trip time below 25 ms.
    /// Source: draft-briscoe-iccrg-prague-congestion-control-04, section 2.4.4, and tcp_prague.c of version 0.6 (prague_rtt_transition): 500; version 0.7 has 4.
    rtt_transition: u32,
    /// The codepoint of ECN-capable data.
    ecn_codepoint: EcnCodepoint,
    /// Make the SYN-ACK ECN-capable too (RFC 5562).
    ecn_syn_ack: bool,
    /// Disable ECN when the SYN that requests it has to be repeated (RFC 3168, section 6.1.1.1; Linux).
    ecn_fallback: bool,
    /// With `ecn`, make retransmissions ECN-capable and let them carry CWR, as ns-2 does; RFC 3168, section 6.1.5, forbids this.
    ecn_retransmissions: bool,
    /// A congestion controller of your own in place of `slow_start` and `growth`: in Python `"my_controller.py:MyController"`, a file in the experiment's folder and a class in it, or `"package.module:MyController"`; compiled `"my_controller.wasm"`, a WebAssembly module; in Rust the name under which it was registered. It is paced at the rate that it gives; if it gives none, as `pacing` says. Reductions are its own too: `prr` is off. `redtail run` executes this code; Python outside the experiment's folder needs `--allow-code`.
    class: Option<String> [without if "Option::is_none"],
    /// With `class`, parameters of the controller; a class in Python gets each key as an argument of that name.
    params: BTreeMap<String, Value> [without if "BTreeMap::is_empty"],
    /// With `class`, hash of the source of a class in Python, which is part of the key of results; filled in when the file is read. If it is given, the source of the class must have this hash.
    source: Option<String> [without if "Option::is_none"],
}

impl Default for TcpParams {
    /// The `sack` preset.
    fn default() -> Self {
        Self {
            class: None,
            params: BTreeMap::new(),
            source: None,
            mss: Bytes::new(1460),
            header: Bytes::new(40),
            slow_start: SlowStartKind::Standard.into(),
            growth: Growth::Reno.into(),
            recovery: RecoveryKind::Sack,
            byte_counting: false,
            pacing: false,
            pacing_ca_ratio: 1.2,
            unpaced_segments: 0,
            lt_bw: false,
            bbr_ecn_max_rtt: Span::from_ms(5),
            kernel_control: None,
            prr: false,
            halving: Halving::FlightSize,
            initial_window: 10,
            initial_ssthresh: None,
            dup_thresh: 3,
            limited_transmit: true,
            delayed_ack: true,
            delayed_ack_timeout: Span::from_ms(200),
            quick_acks: 0,
            adaptive_acks: false,
            timestamps: false,
            receive_window: Bytes::new(1 << 30),
            receive_autotuning: false,
            send_buffer: None,
            read_rate: None,
            syn_loss: SynLoss::First,
            handshake: true,
            bare_handshake_ack: false,
            idle_restart: true,
            idle_decay: IdleDecay::Restart,
            fin_beyond_window: false,
            initial_rto: Span::from_s(1),
            min_rto: Span::from_s(1),
            rto_floor: RtoFloor::Timeout,
            max_rto: Span::from_s(60),
            clock_granularity: Span::ZERO,
            rtt_sampling: RttSampling::EveryAck,
            rtt_deviation: RttDeviation::Mean,
            rto_alpha: 0.125,
            rto_beta: 0.25,
            rto_k: 4.0,
            rack_window_divisor: 4,
            rack_persist: 16,
            tlp_round_trips: 2,
            tlp_max_ack_delay: Span::from_ms(200),
            timer_restart: TimerRestart::Acks,
            timer_tick: Span::ZERO,
            frto: false,
            dsack: false,
            ecn: false,
            ecn_feedback: EcnFeedback::Echo,
            ecn_reduction: EcnReduction::Loss,
            abe_beta: None,
            dctcp_g: 1.0 / 16.0,
            alpha_start: AlphaStart::Decaying,
            rtt_transition: 500,
            ecn_codepoint: EcnCodepoint::Ect0,
            ecn_syn_ack: false,
            ecn_fallback: false,
            ecn_retransmissions: false,
        }
    }
}

/// The largest window scale (RFC 7323, section 2.3).
const MAX_WINDOW_SCALE: u8 = 14;

/// The largest initial window, which is sent in one event. It is more segments of 1460 B than the
/// largest window holds (1 GiB, RFC 7323).
const LARGEST_INITIAL_WINDOW: u32 = 1 << 20;

/// The longest name of a congestion control: Linux has 16 bytes for it and the zero at its end
/// (`TCP_CA_NAME_MAX`, include/net/tcp.h).
const LONGEST_CONTROL: usize = 15;

/// The shortest retransmission timeout.
const LEAST_RTO: Span = Span::from_us(1);

/// Bytes that a SYN has besides timestamps: MSS and window scale, four each. SACK-permitted takes the place of the two
/// bytes that pad timestamps (Linux, `tcp_options_write`).
const SYN_OPTIONS: u16 = 8;

/// How many bytes headers add to the segments of an endpoint: in the lower `BITS` to each, which are at
/// most 1000 (`TcpParams::check`); above them to a SYN besides these. It takes two bytes, because each of thousands of
/// flows has it.
#[derive(Clone, Copy, Debug)]
pub struct HeaderSizes(u16);

impl HeaderSizes {
    const BITS: u32 = 10;

    /// The size of a segment on the link.
    #[inline]
    pub fn size(self, segment: &Segment) -> u32 {
        let size = segment.len + u32::from(self.0) % (1 << Self::BITS);
        match segment.flags.contains(Flags::SYN) {
            true => self.with_syn(size),
            false => size,
        }
    }

    /// The size of a SYN, which would have `size` without the options of its own.
    #[cold]
    fn with_syn(self, size: u32) -> u32 {
        size + (u32::from(self.0) >> Self::BITS)
    }
}

impl TcpParams {
    /// A time within which no timer expires that an endpoint sets. `None` where a timer may expire at once: with
    /// pacing, loss detection by time, an application that reads slowly, the adaptive policy of acknowledgements, or
    /// a retransmission timer that runs from when a segment was sent.
    pub fn shortest_timer(&self) -> Option<Span> {
        let may_be_at_once = self.pacing
            || self.has_model()
            || self.recovery.detects_by_time()
            || self.read_rate.is_some()
            || self.delayed_ack && self.adaptive_acks
            || self.timer_restart == TimerRestart::Head;
        let timeout = self.min_rto.min(self.initial_rto).min(self.max_rto);
        let delayed_ack = self.delayed_ack.then_some(self.delayed_ack_timeout);
        (!may_be_at_once).then(|| delayed_ack.map_or(timeout, |delay| delay.min(timeout)))
    }

    /// Whether a model of the path or a controller of a user sets the window.
    pub fn has_model(&self) -> bool {
        self.class.is_some() || self.growth.is_model()
    }

    /// What names the controller of a user.
    pub fn identity(&self) -> Option<Identity> {
        self.class.as_ref().map(|class| Identity {
            class: class.clone(),
            params: self.params.clone(),
            source: self.source.clone(),
        })
    }

    /// What a built-in law would do is left to the controller of a user: its start, reductions, and the answer to marks,
    /// unless they count as losses.
    fn leave_to_controller(&mut self) {
        self.slow_start = SlowStartKind::Startup.into();
        self.prr = false;
        self.ecn_reduction = match self.ecn_reduction.is_scalable() {
            true => EcnReduction::Bbr,
            false => EcnReduction::Loss,
        };
    }

    /// Size on the link of a segment with `len` payload bytes.
    #[inline]
    pub fn wire_size(&self, len: u32) -> Bytes {
        Bytes::new(u64::from(len) + self.header.as_u64())
    }

    /// The headers of its segments.
    pub fn headers(&self) -> HeaderSizes {
        let syn = if self.timestamps { SYN_OPTIONS } else { 0 };
        HeaderSizes(self.header.as_u64() as u16 | syn << HeaderSizes::BITS)
    }

    /// Most SACK blocks that fit in a segment with the other options.
    pub(crate) fn sack_blocks(&self) -> u8 {
        let accecn = self.ecn && self.ecn_feedback == EcnFeedback::Accecn;
        match self.recovery.uses_sack() {
            false => 0,
            // 40 bytes, of which timestamps take 12, AccECN 8 and the option's start 4.
            true if accecn && self.timestamps => 2,
            true => MAX_SACK_BLOCKS as u8,
        }
    }

    /// The factor of a mark under ABE.
    pub(crate) fn abe_factor(&self) -> f64 {
        (self.abe_beta).unwrap_or_else(|| self.growth.kind().abe_factor())
    }

    /// Whether the receive window grows with what arrives.
    pub(crate) fn tunes_window(&self) -> bool {
        self.receive_autotuning && self.delayed_ack && self.adaptive_acks && self.timestamps
    }

    /// The window that a receiver announces first.
    pub fn first_window(&self) -> u64 {
        let window = self.receive_window.as_u64();
        match self.tunes_window() {
            true => ReceiveBuffer::first_window(self.mss.as_u64(), window),
            false => self.announced(window),
        }
    }

    /// The most that can be outstanding: what the receiver and the sender have room for.
    pub fn largest_flight(&self) -> Bytes {
        let buffer = self.send_buffer.unwrap_or(self.receive_window);
        self.receive_window.min(buffer)
    }

    /// The window scale, the number of bits by which announced windows are shifted: the least with
    /// which `receive_window` fits the field of 16 bits, at most 14 (RFC 7323, section 2.3). With autotuning it is that
    /// of a buffer of twice the size (Linux, tcp_select_initial_window).
    pub fn window_scale(&self) -> u8 {
        if self.tunes_window() {
            let bits = (2 * self.receive_window.as_u64()).max(1).ilog2();
            return (bits.saturating_sub(15) as u8).min(MAX_WINDOW_SCALE);
        }
        let fits = |shift: &u8| self.receive_window.as_u64() >> shift <= u64::from(u16::MAX);
        (0..MAX_WINDOW_SCALE).find(fits).unwrap_or(MAX_WINDOW_SCALE)
    }

    /// The window that a receiver announces when it has room for `bytes`: rounded down to the unit
    /// of the window scale, and at most what the field holds.
    pub fn announced(&self, bytes: u64) -> u64 {
        let scale = self.window_scale();
        (bytes >> scale).min(u64::from(u16::MAX)) << scale
    }

    /// Refuses values that cannot be run.
    ///
    /// # Errors
    /// [`ParamError`] names the key, the problem and what is accepted.
    pub fn check(&self) -> Result<(), ParamError> {
        let mss = self.mss.as_u64();
        if mss == 0 || mss > 65_535 {
            return Err(ParamError::new(
                "mss",
                "does not fit an IP packet",
                "\"1 B\" to \"65535 B\"",
            ));
        }
        if self.header.as_u64() == 0 || self.header.as_u64() > 1000 {
            return Err(ParamError::new(
                "header",
                "is not a header's size",
                "\"1 B\" to \"1000 B\", for example \"40 B\"",
            ));
        }
        if self.initial_window == 0 {
            return Err(ParamError::new(
                "initial_window",
                "could never start",
                "1 or more segments",
            ));
        }
        if self.initial_window > LARGEST_INITIAL_WINDOW {
            return Err(ParamError::new(
                "initial_window",
                "is more than a receiver's largest window of 1 GiB (RFC 7323)",
                format!("1 to {LARGEST_INITIAL_WINDOW} segments, for example 10 (RFC 6928)"),
            ));
        }
        if self
            .initial_ssthresh
            .is_some_and(|most| !(2..=LARGEST_INITIAL_WINDOW).contains(&most))
        {
            return Err(ParamError::new(
                "initial_ssthresh",
                "is no window of a sender",
                format!("2 to {LARGEST_INITIAL_WINDOW} segments, for example 10"),
            ));
        }
        if self.dup_thresh == 0 {
            return Err(ParamError::new(
                "dup_thresh",
                "would retransmit without cause",
                "1 or more",
            ));
        }
        let window = self.receive_window.as_u64();
        if window < mss || window > 1 << 30 {
            return Err(ParamError::new(
                "receive_window",
                "is outside what a receiver can offer",
                "from one mss up to 1 GiB (1073741824 B, RFC 7323)",
            ));
        }
        let buffer = self.send_buffer.map_or(window, Bytes::as_u64);
        if buffer < mss || buffer > 1 << 30 {
            return Err(ParamError::new(
                "send_buffer",
                "is outside what a sender can use",
                "from one mss up to 1 GiB (1073741824 B), for example \"4 MiB\" (Linux)",
            ));
        }
        if self.read_rate == Some(Rate::from_bps(0)) {
            return Err(ParamError::new(
                "read_rate",
                "would never read anything",
                "a rate such as \"1 Mbit/s\"; leave it out for an application that reads at once",
            ));
        }
        if self.max_rto > Span::from_s(3600) {
            return Err(ParamError::new(
                "max_rto",
                "is beyond any use",
                "up to \"1 h\" (RFC 6298 asks for at least 60 s)",
            ));
        }
        if self.min_rto > self.max_rto {
            return Err(ParamError::new(
                "min_rto",
                format!("is above max_rto ({})", self.max_rto),
                format!("at most \"{}\"", self.max_rto),
            ));
        }
        if self.min_rto < LEAST_RTO {
            return Err(ParamError::new(
                "min_rto",
                "could retransmit in a standstill",
                format!(
                    "at least \"{LEAST_RTO}\" (Linux's tcp_rto_min_us counts microseconds), such as \"200 ms\" (RFC 6298 \
                     says 1 s)"
                ),
            ));
        }
        if self.initial_rto < LEAST_RTO || self.initial_rto > self.max_rto {
            return Err(ParamError::new(
                "initial_rto",
                format!("is below {LEAST_RTO} or above max_rto"),
                format!("from \"{LEAST_RTO}\" to \"{}\"", self.max_rto),
            ));
        }
        if self.timer_tick > Span::from_s(1) {
            return Err(ParamError::new(
                "timer_tick",
                "is coarser than any kernel's",
                "0 to \"1 s\", for example \"4 ms\"",
            ));
        }
        if self.delayed_ack && self.delayed_ack_timeout == Span::ZERO {
            return Err(ParamError::new(
                "delayed_ack_timeout",
                "is zero while delayed_ack is on",
                "a time up to \"500 ms\" (RFC 1122), or delayed_ack = false",
            ));
        }
        if !(0.1..=100.0).contains(&self.pacing_ca_ratio) {
            return Err(ParamError::new(
                "pacing_ca_ratio",
                "is no share of the window to pace at",
                "from 0.1 to 100, for example 1.2 (Linux) or 1 (Prague)",
            ));
        }
        self.check_constants()?;
        self.check_control()?;
        self.check_ecn()?;
        let within = |table| move |error: ParamError| error.within(table);
        self.slow_start.check().map_err(within("slow_start"))?;
        self.growth.check().map_err(within("growth"))?;
        match self.identity() {
            Some(identity) => self.check_controller(&identity),
            None => self.check_model(),
        }
    }

    /// Refuses what a controller of a user cannot work with.
    fn check_controller(&self, identity: &Identity) -> Result<(), ParamError> {
        identity.check("my_controller.py:MyController")?;
        self.check_deliveries("class")
    }

    /// Refuses a recovery that does not tell what was delivered, for `key`.
    fn check_deliveries(&self, key: &str) -> Result<(), ParamError> {
        match self.recovery.traits().pipe_is_exact {
            true => Ok(()),
            false => Err(ParamError::new(
                "recovery",
                "does not tell a model what was delivered, and when",
                format!("\"sack\", \"rack-tlp\" or \"linux\" with this {key}"),
            )),
        }
    }

    /// Refuses constants outside their ranges.
    fn check_constants(&self) -> Result<(), ParamError> {
        let abe_beta = self.abe_beta.unwrap_or(0.8);
        for (key, value, least, most, accepted) in [
            (
                "abe_beta",
                abe_beta,
                0.05,
                1.0,
                "without it 0.8, with CUBIC 0.85 (RFC 8511)",
            ),
            (
                "dctcp_g",
                self.dctcp_g,
                1e-4,
                1.0,
                "for example 0.0625 (RFC 8257)",
            ),
            (
                "rto_alpha",
                self.rto_alpha,
                1e-3,
                1.0,
                "for example 0.125 (RFC 6298)",
            ),
            (
                "rto_beta",
                self.rto_beta,
                1e-3,
                1.0,
                "for example 0.25 (RFC 6298)",
            ),
            ("rto_k", self.rto_k, 0.1, 1000.0, "for example 4 (RFC 6298)"),
            (
                "rack_window_divisor",
                self.rack_window_divisor.into(),
                1.0,
                1000.0,
                "for example 4 (RFC 8985)",
            ),
            (
                "rack_persist",
                self.rack_persist.into(),
                1.0,
                1e6,
                "for example 16 (RFC 8985)",
            ),
            (
                "tlp_round_trips",
                self.tlp_round_trips.into(),
                1.0,
                1000.0,
                "for example 2 (RFC 8985)",
            ),
        ] {
            if !(least..=most).contains(&value) {
                let accepted = format!("from {least} to {most}; {accepted}");
                return Err(ParamError::new(key, "is outside its range", accepted));
            }
        }
        if self.tlp_max_ack_delay > Span::from_s(60) {
            return Err(ParamError::new(
                "tlp_max_ack_delay",
                "is longer than any receiver waits",
                "0 to \"60 s\", for example \"200 ms\" (RFC 8985)",
            ));
        }
        Ok(())
    }

    /// Refuses what can be the name of no congestion control of Linux, which lists them in a line.
    fn check_control(&self) -> Result<(), ParamError> {
        let fits = |name: &String| {
            let ok = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.+".contains(&byte);
            (1..=LONGEST_CONTROL).contains(&name.len()) && name.bytes().all(ok)
        };
        match &self.kernel_control {
            Some(name) if !fits(name) => Err(ParamError::new(
                "kernel_control",
                "cannot be the name of a congestion control",
                format!(
                    "1 to {LONGEST_CONTROL} letters, digits, \"_\", \"-\", \".\" and \"+\" (TCP_CA_NAME_MAX of Linux), for example \"cdg\""
                ),
            )),
            _ => Ok(()),
        }
    }

    fn check_ecn(&self) -> Result<(), ParamError> {
        let scalable = self.ecn_reduction.is_scalable();
        if scalable && self.ecn_feedback == EcnFeedback::Echo {
            return Err(ParamError::new(
                "ecn_feedback",
                "does not say how much is marked, which this ecn_reduction goes by",
                "\"dctcp\" or \"accecn\", or ecn_reduction = \"loss\" or \"abe\"",
            ));
        }
        if !scalable && self.ecn_codepoint == EcnCodepoint::Ect1 {
            return Err(ParamError::new(
                "ecn_codepoint",
                "promises a response in proportion to the marks (RFC 9331)",
                "\"ect0\", or ecn_reduction = \"dctcp\" or \"prague\"",
            ));
        }
        if self.ecn_syn_ack && !self.handshake {
            return Err(ParamError::new(
                "ecn_syn_ack",
                "is on while handshake is off: there is no SYN-ACK",
                "false, or handshake = true",
            ));
        }
        Ok(())
    }

    /// Refuses parameters of a controller without a controller, and parameters that conflict with a model of the path, which has its own slow start,
    /// pacing rate and response to losses.
    fn check_model(&self) -> Result<(), ParamError> {
        if !self.params.is_empty() || self.source.is_some() {
            let key = if self.params.is_empty() {
                "source"
            } else {
                "params"
            };
            let accepted = "a class beside it, such as class = \"my_controller.py:MyController\"";
            return Err(ParamError::new(
                key,
                "is for a class, and there is none",
                accepted,
            ));
        }
        let startup = self.slow_start.kind() == SlowStartKind::Startup;
        let by_model = self.ecn_reduction == EcnReduction::Bbr;
        if by_model && self.growth.kind() != Growth::Bbr3Google {
            return Err(ParamError::new(
                "ecn_reduction",
                "leaves the answer to marks to a model, and this growth has none that answers",
                "\"bbr\" with growth = \"bbr3-google\"; otherwise \"loss\", \"abe\", \"dctcp\" or \"prague\"",
            ));
        }
        if !self.growth.is_model() {
            return if startup {
                Err(ParamError::new(
                    "slow_start",
                    "is part of a model, and this growth has none",
                    "\"startup\" with growth = \"bbr\", \"bbr3\", \"bbr3-google\", \"copa\" or \"copa-default\"; otherwise \"standard\", \"hystart\", \"hystart-plus-plus\", \"vegas\" or \"hybla\"",
                ))
            } else {
                Ok(())
            };
        }
        if !startup {
            return Err(ParamError::new(
                "slow_start",
                "is not used by a model, which has a start of its own",
                "\"startup\" with this growth",
            ));
        }
        if !self.pacing {
            return Err(ParamError::new(
                "pacing",
                "is off, but a model steers by the rate at which it sends",
                "pacing = true with this growth",
            ));
        }
        if self.prr {
            return Err(ParamError::new(
                "prr",
                "reduces a flight that a model sets itself",
                "prr = false with this growth",
            ));
        }
        self.check_deliveries("growth")?;
        if self.ecn && !by_model {
            return Err(ParamError::new(
                "ecn",
                "would have packets marked that a model does not answer",
                "ecn = false with this growth, or preset = \"bbr3-google\", whose ecn_reduction = \"bbr\" answers marks",
            ));
        }
        Ok(())
    }
}

/// A connection's TCP as written in the experiment file, with the parameters that follow from it. The
/// file has a preset's name, or a table with `preset` and the parameters that differ from it.
#[derive(Clone, Debug)]
pub struct ResolvedTcpParams {
    /// What the file gives.
    pub given: GivenTcpParams,
    /// All parameters.
    pub params: TcpParams,
}

impl ResolvedTcpParams {
    /// Refuses values that cannot be run, and keys of built-in laws beside a controller of a user.
    ///
    /// # Errors
    /// [`ParamError`] names the key, the problem and what is accepted.
    pub fn check(&self) -> Result<(), ParamError> {
        if self.params.class.is_some()
            && let Some(key) = self.given.key_of_a_law()
        {
            return Err(ParamError::new(
                key,
                "is of built-in laws, and the class has its own",
                "no such key beside class",
            ));
        }
        let usual = self.given.preset.params();
        check_constants(
            "slow_start",
            self.given.slow_start.as_ref(),
            &usual.slow_start,
        )?;
        check_constants("growth", self.given.growth.as_ref(), &usual.growth)?;
        self.params.check()
    }

    /// Calls `visit` with the controller of a user, if there is one, which it may complete or refuse.
    ///
    /// # Errors
    /// The error that `visit` returned.
    pub fn plugins(&mut self, key: &str, visit: &mut PluginVisitor<'_>) -> Result<(), ParamError> {
        let Some(mut identity) = self.params.identity() else {
            return Ok(());
        };
        visit(key, Role::Controller, &mut identity)?;
        self.params.source.clone_from(&identity.source);
        self.given.source = Some(identity.source);
        Ok(())
    }
}

impl GivenTcpParams {
    /// The first key that only built-in laws have, if one is given.
    fn key_of_a_law(&self) -> Option<&'static str> {
        let given = [
            ("growth", self.growth.is_some()),
            ("slow_start", self.slow_start.is_some()),
            ("byte_counting", self.byte_counting.is_some()),
            ("halving", self.halving.is_some()),
            ("prr", self.prr.is_some()),
            ("lt_bw", self.lt_bw.is_some()),
            ("bbr_ecn_max_rtt", self.bbr_ecn_max_rtt.is_some()),
            ("alpha_start", self.alpha_start.is_some()),
            ("abe_beta", self.abe_beta.is_some()),
            ("dctcp_g", self.dctcp_g.is_some()),
            ("rtt_transition", self.rtt_transition.is_some()),
        ];
        let of_a_law = given.iter().find(|(_, is_given)| *is_given);
        of_a_law.map(|(key, _)| *key)
    }
}

/// Refuses constants that the law, which is `usual` without a kind of its own, does not have.
fn check_constants<T: LawTable + Clone>(
    table: &str,
    given: Option<&GivenLaw<T>>,
    usual: &T,
) -> Result<(), ParamError> {
    let law = given.map(|given| given.law(usual));
    law.transpose()
        .map(drop)
        .map_err(|error| error.within(table))
}

impl PartialEq for ResolvedTcpParams {
    /// Two of the same preset and parameters are equal, however they are written.
    fn eq(&self, other: &Self) -> bool {
        self.given.preset == other.given.preset && self.params == other.params
    }
}

impl From<GivenTcpParams> for ResolvedTcpParams {
    fn from(given: GivenTcpParams) -> Self {
        Self {
            params: given.params(),
            given,
        }
    }
}

impl Default for ResolvedTcpParams {
    fn default() -> Self {
        GivenTcpParams::default().into()
    }
}

redtail_core::when_serde! {
    mod text {
        use std::fmt;

        use redtail_core::serde::de::value::MapAccessDeserializer;
        use redtail_core::serde::de::{self, MapAccess, Visitor};
        use redtail_core::serde::{self, Deserialize, Deserializer, Serialize};

        use super::{GivenTcpParams, Preset, ResolvedTcpParams, TcpParams};

        impl Serialize for ResolvedTcpParams {
            /// Writes the preset's name and every parameter, so that a stored scenario still says what was
            /// run after a preset has changed.
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                #[derive(Serialize)]
                #[serde(crate = "serde")]
                struct Full<'a> {
                    preset: Preset,
                    #[serde(flatten)]
                    params: &'a TcpParams,
                }
                Full {
                    preset: self.given.preset,
                    params: &self.params,
                }
                .serialize(serializer)
            }
        }

        impl<'de> Deserialize<'de> for ResolvedTcpParams {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct TcpVisitor;

                impl<'de> Visitor<'de> for TcpVisitor {
                    type Value = ResolvedTcpParams;

                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        f.write_str("a preset's name such as \"sack\", or a table such as { preset = \"sack\", ecn = true }")
                    }

                    fn visit_str<E: de::Error>(self, text: &str) -> Result<ResolvedTcpParams, E> {
                        let preset = Preset::deserialize(de::value::StrDeserializer::new(text))?;
                        Ok(GivenTcpParams {
                            preset,
                            ..GivenTcpParams::default()
                        }
                        .into())
                    }

                    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<ResolvedTcpParams, A::Error> {
                        GivenTcpParams::deserialize(MapAccessDeserializer::new(map)).map(Into::into)
                    }
                }

                deserializer.deserialize_any(TcpVisitor)
            }
        }
    }
}

redtail_core::when_schema! {
    mod schema {
        use redtail_core::schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

        use super::{GivenTcpParams, Preset, ResolvedTcpParams};

        impl JsonSchema for ResolvedTcpParams {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                "Tcp".into()
            }

            fn json_schema(generator: &mut SchemaGenerator) -> Schema {
                let preset = generator.subschema_for::<Preset>();
                let table = generator.subschema_for::<GivenTcpParams>();
                json_schema!({
                    "description": "A preset's name, or a table with a preset and what departs from it.",
                    "anyOf": [preset, table],
                })
            }
        }
    }
}
