//! The parameters of a TCP connection, and the presets that set all of them.

use std::fmt;

use redtail_core::schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use redtail_core::serde::de::value::MapAccessDeserializer;
use redtail_core::serde::de::{self, MapAccess, Visitor};
use redtail_core::serde::{Deserialize, Deserializer, Serialize};
use redtail_core::{Bytes, ParamError, Rate, Span, schemars, serde};
use strum::VariantArray;

use crate::cc::slow_start::SlowStartKind;
use crate::cc::{Growth, Halving, IdleDecay};
use crate::choices::{
    AlphaStart, EcnCodepoint, EcnFeedback, EcnReduction, RtoFloor, RttDeviation, RttSampling,
    SynLoss, TimerRestart,
};
use crate::segment::MAX_SACK_BLOCKS;
use crate::tcp::recovery::RecoveryKind;

/// Defines every parameter once: as a field of [`TcpParams`], and as an
/// optional key beside `preset` in the experiment file.
macro_rules! tcp_params {
    ($($(#[$doc:meta])* $name:ident: $type:ty,)+) => {
        /// Every parameter of a connection. Both endpoints share them.
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        #[serde(crate = "serde", deny_unknown_fields)]
        pub struct TcpParams {
            $($(#[$doc])* pub $name: $type,)+
        }

        /// A preset with the parameters that depart from it.
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(crate = "serde", deny_unknown_fields)]
        #[schemars(crate = "schemars")]
        pub struct TcpTable {
            /// The set of parameters to start from.
            #[serde(default)]
            pub preset: Preset,
            $($(#[$doc])* #[serde(default, skip_serializing_if = "Option::is_none")] pub $name: Option<$type>,)+
        }

        impl TcpTable {
            /// The preset's parameters with this table's departures.
            pub fn params(&self) -> TcpParams {
                let mut params = self.preset.params();
                $(if let Some(value) = &self.$name { params.$name = value.clone(); })+
                params
            }
        }
    };
}

tcp_params! {
    /// Payload bytes of a full-sized segment.
    mss: Bytes,
    /// Bytes that network and transport headers add to each segment.
    header: Bytes,
    /// How the window grows until the first congestion event.
    slow_start: SlowStartKind,
    /// How the window grows in congestion avoidance, and by how much it is reduced.
    growth: Growth,
    /// Grow the window with the bytes acknowledged instead of with each acknowledgement (RFC 3465; Linux, there without a limit in slow start).
    byte_counting: bool,
    /// Space segments in time: at the rate of a model, or at twice the window each round trip in slow start and `pacing_ca_ratio` times after it (Linux's tcp_pacing_ss_ratio and tcp_pacing_ca_ratio).
    pacing: bool,
    /// With `pacing`, windows in a round trip at which a window-based sender is paced after slow start.
    /// Source: 1.2 is Linux's tcp_pacing_ca_ratio, 1 Prague's (tcp_prague.c, prague_update_pacing_rate).
    pacing_ca_ratio: f64,
    /// With `pacing`, data segments at the start of a connection that it does not hold back.
    /// Source: Linux has 10 (net/ipv4/tcp_output.c, tcp_update_skb_after_send); the drafts of BBR and Prague have none.
    unpaced_segments: u32,
    /// With growth `bbr`, take two intervals of alike rates with a fifth lost for a policer, and its rate for the path's for 48 rounds.
    /// Source: Linux 6.1, tcp_bbr.c (bbr_lt_bw_sampling); the draft of version 1 has no such estimate.
    lt_bw: bool,
    /// With growth `bbr3-google` and `ecn`, the greatest least round trip at which marks are answered; 0 for any.
    /// Source: google/bbr, branch v3, tcp_bbr.c (bbr_ecn_max_rtt_us).
    bbr_ecn_max_rtt: Span,
    /// How losses are detected and repaired.
    recovery: RecoveryKind,
    /// Reduce the flight in proportion to what is delivered during recovery (RFC 9937); with selective acknowledgements. With recovery `linux` in whole segments, from the window before the reduction (Linux 6.1, `tcp_cwnd_reduction`).
    prr: bool,
    /// What a reduction takes its share of; laws that say themselves what they leave of the window (`westwood` to `yeah`) take it of the window.
    halving: Halving,
    /// Segments that may be sent before the first acknowledgement.
    initial_window: u32,
    /// Duplicate acknowledgements that mean a loss (DupThresh).
    dup_thresh: u32,
    /// Send new data on the first two duplicate acknowledgements (RFC 3042).
    limited_transmit: bool,
    /// Acknowledge every second full-sized segment, or after `delayed_ack_timeout`; off acknowledges each.
    delayed_ack: bool,
    /// How long an acknowledgement may be delayed; with `adaptive_acks`, at least.
    delayed_ack_timeout: Span,
    /// With `delayed_ack`, acknowledge as Linux's receiver does: a delay that follows the time between segments, doubles when it runs out and is at most 200 ms and the round trip; pushed and short segments at once unless this side sends too; and at once again for a while after a duplicate, a gap longer than the retransmission timeout or a first mark (net/ipv4/tcp_input.c, tcp_event_data_recv, __tcp_ack_snd_check, __tcp_ecn_check_ce; tcp_output.c, tcp_send_delayed_ack; tcp_timer.c, tcp_delack_timer_handler).
    adaptive_acks: bool,
    /// Segments at the start of a connection that are acknowledged at once in spite of `delayed_ack`; with `adaptive_acks`, acknowledgements that go at once there, and after a duplicate or a long gap.
    quick_acks: u32,
    /// Measure a round trip with every acknowledgement by timestamps (RFC 7323); their 12 bytes are part of `header`.
    timestamps: bool,
    /// Most bytes the receiver lets be outstanding: its buffer. What it announces is a multiple of its window scale (RFC 7323, section 2.3), the least power of two with which it fits 16 bits.
    receive_window: Bytes,
    /// How fast the receiving application reads; what it has not read takes up the receive window. Without it the application reads at once.
    read_rate: Option<Rate>,
    /// What a lost SYN or SYN-ACK leaves behind, with `handshake`.
    syn_loss: SynLoss,
    /// Open with a three-way handshake, whose segments can be lost, and close with FINs; off starts with data and just ends, as ns-2's one-way agents do.
    handshake: bool,
    /// After nothing was sent for longer than the retransmission timeout, go on with no more than the initial window (RFC 5681, section 4.1), or as `idle_decay` says.
    idle_restart: bool,
    /// By how much `idle_restart` reduces.
    idle_decay: IdleDecay,
    /// Let the segment that carries the FIN go where the congestion window is full, one segment beyond it (Linux, tcp_cwnd_test).
    fin_beyond_window: bool,
    /// Retransmission timeout before the first round-trip sample; at least "1 us".
    initial_rto: Span,
    /// Least retransmission timeout; at least "1 us".
    min_rto: Span,
    /// What `min_rto` is a bound of.
    rto_floor: RtoFloor,
    /// Most retransmission timeout, back-off included.
    max_rto: Span,
    /// Tick of the clock that times round trips; zero is an exact clock.
    clock_granularity: Span,
    /// Which segments give round-trip samples.
    rtt_sampling: RttSampling,
    /// What the retransmission timeout takes for the deviation of round trips.
    rtt_deviation: RttDeviation,
    /// What restarts the retransmission timer.
    timer_restart: TimerRestart,
    /// Tick of the clock that timers run by: a timeout ends at the first tick after it, and, if it is 63 ticks long or longer, at a multiple of 8 ticks (64 from 504 ticks on, and so on), as in Linux's timer wheel; zero is an exact clock. Linux counts 250 ticks a second (Debian) and widens tail loss probe and reordering timers by 2 ms for them.
    timer_tick: Span,
    /// After a timeout send new data before more old data, and take the timeout back if segments sent before it still arrive (F-RTO, RFC 5682: section 3.1 with selective acknowledgements, otherwise section 2.1; with recovery `linux` as in `tcp_process_loss`).
    frto: bool,
    /// Report data that arrives twice (RFC 2883), take a reduction back when all its retransmissions were reported so, and let RACK's room for reordering grow with the reports (RFC 8985, section 6.2); with selective acknowledgements.
    dsack: bool,
    /// Use ECN (RFC 3168): negotiate it, send ECN-capable data, respond to marks.
    ecn: bool,
    /// How the receiver tells of marks.
    ecn_feedback: EcnFeedback,
    /// By how much marks reduce the window.
    ecn_reduction: EcnReduction,
    /// How the estimate of the share that is marked begins, for a reduction in proportion to it.
    /// Source: RFC 8257, section 3.3, for DCTCP; tcp_prague.c of version 0.6 for Prague.
    alpha_start: AlphaStart,
    /// Round trips after slow start from which on growth and reduction as Prague's depend no more on a round trip below 25 ms.
    /// Source: draft-briscoe-iccrg-prague-congestion-control-04, section 2.4.4, and tcp_prague.c of version 0.6 (prague_rtt_transition): 500; version 0.7 has 4.
    rtt_transition: u32,
    /// The codepoint of ECN-capable data.
    ecn_codepoint: EcnCodepoint,
    /// Make the SYN-ACK ECN-capable too (RFC 5562).
    ecn_syn_ack: bool,
    /// Give ECN up when the SYN that asks for it has to be repeated (RFC 3168, section 6.1.1.1; Linux).
    ecn_fallback: bool,
    /// With `ecn`, make retransmissions ECN-capable and let them carry CWR, as ns-2 does; RFC 3168, section 6.1.5, says not to.
    ecn_retransmissions: bool,
}

/// A named set of parameters.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, VariantArray,
)]
#[serde(crate = "serde", rename_all = "kebab-case")]
#[schemars(crate = "schemars")]
pub enum Preset {
    /// Selective acknowledgements as the RFCs have them today: RFC 6675 recovery, initial window 10 (RFC 6928), delayed acknowledgements (RFC 5681, section 4.2), limited transmit (RFC 3042), minimum timeout 1 s (RFC 6298).
    #[default]
    Sack,
    /// As `sack`, without selective acknowledgements: RFC 6582 recovery.
    Newreno,
    /// As `newreno`, with the recovery of RFC 5681 that ends with the first new acknowledgement.
    Reno,
    /// As `newreno`, without fast recovery: a loss is answered by slow start, as in 4.3BSD Tahoe.
    Tahoe,
    /// As `sack`, with CUBIC (RFC 9438) and HyStart++ (RFC 9406).
    Cubic,
    /// DCTCP (RFC 8257): as `linux` with Reno's growth, marks told of segment by segment and answered in proportion. For networks whose queues mark at a low threshold.
    Dctcp,
    /// TCP Prague (draft-briscoe-iccrg-prague-congestion-control): as `linux` with Prague's growth, AccECN (RFC 9768) and ECT(1), marks answered in proportion.
    Prague,
    /// As `sack`, with Vegas' congestion avoidance and slow start (Brakmo and Peterson, IEEE JSAC 13(8), 1995); thresholds of 2 and 4 segments, as in Linux.
    Vegas,
    /// As `sack`, with LEDBAT (RFC 6817): 100 ms of queueing delay aimed at, initial window 2; round trips stand for one-way delays. The RFC has no slow start: HyStart++ (RFC 9406) leaves it before the delay reaches the target.
    Ledbat,
    /// As a current Linux kernel: CUBIC, initial window 10, RACK-TLP in the kernel's states with PRR in segments, delayed acknowledgements of 40 ms after 16 quick ones, timestamps, F-RTO and D-SACK, HyStart, minimum timeout of 200 ms above the smoothed round trip, at most 120 s.
    Linux,
    /// As `linux`, with BBR version 1 (Cardwell et al., ACM Queue 14(5), 2016; net/ipv4/tcp_bbr.c) in place of CUBIC, PRR and HyStart, paced.
    Bbr,
    /// As `bbr`, with BBR version 3 (draft-ietf-ccwg-bbr-06).
    Bbr3,
    /// As `linux`, with Westwood+ (Grieco and Mascolo, ACM CCR 34(2), 2004; net/ipv4/tcp_westwood.c) in place of CUBIC and HyStart.
    Westwood,
    /// As `linux`, with BIC (Xu, Harfoush and Rhee, INFOCOM 2004; net/ipv4/tcp_bic.c) in place of CUBIC and HyStart.
    Bic,
    /// As `linux`, with H-TCP (Leith and Shorten, PFLDnet 2004; net/ipv4/tcp_htcp.c) in place of CUBIC and HyStart.
    Htcp,
    /// As `linux`, with Hybla and its slow start and initial window (Caini and Firrincieli, 2004; net/ipv4/tcp_hybla.c) in place of CUBIC and HyStart.
    Hybla,
    /// As `linux`, with Illinois (Liu, Başar and Srikant, 2008; net/ipv4/tcp_illinois.c) in place of CUBIC and HyStart.
    Illinois,
    /// As `linux`, with HighSpeed TCP (RFC 3649; net/ipv4/tcp_highspeed.c) in place of CUBIC and HyStart.
    Highspeed,
    /// As `linux`, with Scalable TCP (Kelly, ACM CCR 33(2), 2003; net/ipv4/tcp_scalable.c) in place of CUBIC and HyStart.
    Scalable,
    /// As `linux`, with Veno (Fu and Liew, IEEE JSAC 21(2), 2003; net/ipv4/tcp_veno.c) in place of CUBIC and HyStart.
    Veno,
    /// As `linux`, with YeAH (Baiocchi, Castellani and Vacirca, PFLDnet 2007; net/ipv4/tcp_yeah.c) in place of CUBIC and HyStart.
    Yeah,
    /// As `bbr`, with Copa (Arun and Balakrishnan, NSDI 2018) for a model.
    Copa,
    /// As `bbr3`, as Google's code has it, on which published measurements rest (github.com/google/bbr, branch v3, net/ipv4/tcp_bbr.c). With `ecn = true` it answers marks where the least round trip is no longer than `bbr_ecn_max_rtt`.
    Bbr3Google,
    /// As the kernels that the papers of around 2000 measured: SACK, initial window 2, delayed acknowledgements, a clock of 10 ms, minimum timeout 200 ms, first timeout 3 s, no timestamps.
    #[serde(rename = "linux-2000")]
    #[schemars(rename = "linux-2000")]
    Linux2000,
    /// As ns-2.35's Agent/TCP/Sack1 with TCPSink/Sack1: recovery of Fall and Floyd 1996, initial window 2, no handshake, every segment acknowledged, 10 ms clock, one round trip timed at a time, minimum timeout 200 ms.
    Ns2Sack,
    /// As ns-2.35's Agent/TCP/Newreno with TCPSink; otherwise like `ns2-sack`.
    Ns2Newreno,
    /// As ns-2.35's Agent/TCP/Reno with TCPSink; otherwise like `ns2-sack`.
    Ns2Reno,
    /// As ns-2.35's Agent/TCP with TCPSink; otherwise like `ns2-sack`.
    Ns2Tahoe,
}

impl Preset {
    /// Every preset, in the order of the definition.
    pub const ALL: &'static [Self] = Self::VARIANTS;

    /// What the preset sets.
    pub fn params(self) -> TcpParams {
        let rfc = TcpParams::default();
        let ns2 = TcpParams {
            halving: Halving::Window,
            initial_window: 2,
            delayed_ack: false,
            delayed_ack_timeout: Span::from_ms(100),
            handshake: false,
            idle_restart: false,
            initial_rto: Span::from_s(3),
            min_rto: Span::from_ms(200),
            clock_granularity: Span::from_ms(10),
            rtt_sampling: RttSampling::OnePerWindow,
            ecn_retransmissions: true,
            ..TcpParams::default()
        };
        // Linux's common slow start with another law than CUBIC's.
        let linux = |growth| TcpParams {
            slow_start: SlowStartKind::Standard,
            growth,
            ..Self::Linux.params()
        };
        match self {
            Self::Sack => rfc,
            Self::Newreno => TcpParams {
                recovery: RecoveryKind::Newreno,
                ..rfc
            },
            Self::Reno => TcpParams {
                recovery: RecoveryKind::Reno,
                ..rfc
            },
            Self::Tahoe => TcpParams {
                recovery: RecoveryKind::Tahoe,
                ..rfc
            },
            Self::Cubic => TcpParams {
                slow_start: SlowStartKind::HystartPlusPlus,
                growth: Growth::Cubic,
                ..rfc
            },
            Self::Dctcp => TcpParams {
                slow_start: SlowStartKind::Standard,
                growth: Growth::Reno,
                ecn: true,
                ecn_feedback: EcnFeedback::Dctcp,
                ecn_reduction: EcnReduction::Dctcp,
                // Linux sends such a SYN ECN-capable, so that queues mark it and it is not repeated.
                ecn_fallback: false,
                ..Self::Linux.params()
            },
            Self::Prague => TcpParams {
                slow_start: SlowStartKind::Standard,
                growth: Growth::Prague,
                ecn: true,
                ecn_feedback: EcnFeedback::Accecn,
                ecn_reduction: EcnReduction::Prague,
                alpha_start: AlphaStart::Held,
                ecn_fallback: false, // as for DCTCP
                ecn_codepoint: EcnCodepoint::Ect1,
                pacing: true,
                pacing_ca_ratio: 1.0,
                ..Self::Linux.params()
            },
            Self::Vegas => TcpParams {
                slow_start: SlowStartKind::Vegas,
                growth: Growth::Vegas,
                ..rfc
            },
            Self::Ledbat => TcpParams {
                slow_start: SlowStartKind::HystartPlusPlus,
                growth: Growth::Ledbat,
                initial_window: 2,
                ..rfc
            },
            Self::Linux => TcpParams {
                mss: Bytes::new(1448),
                header: Bytes::new(52),
                slow_start: SlowStartKind::Hystart,
                growth: Growth::LinuxCubic,
                byte_counting: true,
                recovery: RecoveryKind::Linux,
                prr: true,
                halving: Halving::LinuxWindow,
                delayed_ack_timeout: Span::from_ms(40),
                quick_acks: 16,
                adaptive_acks: true,
                idle_decay: IdleDecay::Halving,
                fin_beyond_window: true,
                timestamps: true,
                min_rto: Span::from_ms(200),
                rto_floor: RtoFloor::Deviation,
                frto: true,
                dsack: true,
                ecn_fallback: true,
                syn_loss: SynLoss::Second,
                max_rto: Span::from_s(120),
                rtt_sampling: RttSampling::EveryDelivery,
                rtt_deviation: RttDeviation::Peak,
                timer_restart: TimerRestart::Head,
                timer_tick: Span::from_ms(4),
                ..rfc
            },
            Self::Bbr => TcpParams {
                slow_start: SlowStartKind::Startup,
                growth: Growth::Bbr,
                lt_bw: true,
                pacing: true,
                unpaced_segments: 10,
                prr: false,
                ..Self::Linux.params()
            },
            Self::Bbr3 => TcpParams {
                growth: Growth::Bbr3,
                unpaced_segments: 0,
                lt_bw: false,
                ..Self::Bbr.params()
            },
            Self::Westwood => linux(Growth::Westwood),
            Self::Bic => linux(Growth::Bic),
            Self::Htcp => linux(Growth::Htcp),
            Self::Hybla => TcpParams {
                slow_start: SlowStartKind::Hybla,
                ..linux(Growth::Hybla)
            },
            Self::Illinois => linux(Growth::Illinois),
            Self::Highspeed => linux(Growth::Highspeed),
            Self::Scalable => linux(Growth::Scalable),
            Self::Veno => linux(Growth::Veno),
            Self::Yeah => linux(Growth::Yeah),
            Self::Copa => TcpParams {
                growth: Growth::Copa,
                unpaced_segments: 0,
                lt_bw: false,
                ..Self::Bbr.params()
            },
            Self::Bbr3Google => TcpParams {
                growth: Growth::Bbr3Google,
                unpaced_segments: 10,
                ecn_feedback: EcnFeedback::Dctcp,
                ecn_reduction: EcnReduction::Bbr,
                ..Self::Bbr3.params()
            },
            Self::Linux2000 => TcpParams {
                initial_window: 2,
                delayed_ack_timeout: Span::from_ms(200),
                initial_rto: Span::from_s(3),
                min_rto: Span::from_ms(200),
                clock_granularity: Span::from_ms(10),
                rtt_sampling: RttSampling::OnePerWindow,
                ..rfc
            },
            Self::Ns2Sack => TcpParams {
                recovery: RecoveryKind::Sack1996,
                ..ns2
            },
            Self::Ns2Newreno => TcpParams {
                recovery: RecoveryKind::Ns2Newreno,
                ..ns2
            },
            Self::Ns2Tahoe => TcpParams {
                recovery: RecoveryKind::Ns2Tahoe,
                ..ns2
            },
            Self::Ns2Reno => TcpParams {
                recovery: RecoveryKind::Ns2Reno,
                ..ns2
            },
        }
    }
}

impl Default for TcpParams {
    /// The `sack` preset.
    fn default() -> Self {
        Self {
            mss: Bytes::new(1460),
            header: Bytes::new(40),
            slow_start: SlowStartKind::Standard,
            growth: Growth::Reno,
            recovery: RecoveryKind::Sack,
            byte_counting: false,
            pacing: false,
            pacing_ca_ratio: 1.2,
            unpaced_segments: 0,
            lt_bw: false,
            bbr_ecn_max_rtt: Span::from_ms(5),
            prr: false,
            halving: Halving::FlightSize,
            initial_window: 10,
            dup_thresh: 3,
            limited_transmit: true,
            delayed_ack: true,
            delayed_ack_timeout: Span::from_ms(200),
            quick_acks: 0,
            adaptive_acks: false,
            timestamps: false,
            receive_window: Bytes::new(1 << 30),
            read_rate: None,
            syn_loss: SynLoss::First,
            handshake: true,
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
            timer_restart: TimerRestart::Acks,
            timer_tick: Span::ZERO,
            frto: false,
            dsack: false,
            ecn: false,
            ecn_feedback: EcnFeedback::Echo,
            ecn_reduction: EcnReduction::Loss,
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

/// The shortest retransmission timeout.
const LEAST_RTO: Span = Span::from_us(1);

impl TcpParams {
    /// Size on the link of a segment with `len` payload bytes.
    #[inline]
    pub fn wire_size(&self, len: u32) -> Bytes {
        Bytes::new(u64::from(len) + self.header.as_u64())
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

    /// The window scale, the number of bits by which announced windows are shifted: the least with
    /// which `receive_window` fits the field of 16 bits, at most 14 (RFC 7323, section 2.3).
    pub fn window_scale(&self) -> u8 {
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
        self.check_ecn()?;
        self.check_model()
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

    /// Refuses parameters that conflict with a model of the path, which has its own slow start,
    /// pacing rate and response to losses.
    fn check_model(&self) -> Result<(), ParamError> {
        let startup = self.slow_start == SlowStartKind::Startup;
        let by_model = self.ecn_reduction == EcnReduction::Bbr;
        if by_model && self.growth != Growth::Bbr3Google {
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
        if !self.recovery.traits().pipe_is_exact {
            return Err(ParamError::new(
                "recovery",
                "does not tell a model what was delivered, and when",
                "\"sack\", \"rack-tlp\" or \"linux\" with this growth",
            ));
        }
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

/// A connection's TCP as written in the experiment file: a preset's name, or a table with `preset`
/// and the parameters that differ from it. It is resolved when it is read.
#[derive(Clone, Debug)]
pub struct TcpSpec {
    /// The form in the file.
    pub table: TcpTable,
    /// All parameters.
    pub params: TcpParams,
}

impl PartialEq for TcpSpec {
    /// Two specifications of the same preset and parameters are equal, however they are written.
    fn eq(&self, other: &Self) -> bool {
        self.table.preset == other.table.preset && self.params == other.params
    }
}

impl From<TcpTable> for TcpSpec {
    fn from(table: TcpTable) -> Self {
        Self {
            params: table.params(),
            table,
        }
    }
}

impl Default for TcpSpec {
    fn default() -> Self {
        TcpTable::default().into()
    }
}

impl Serialize for TcpSpec {
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
            preset: self.table.preset,
            params: &self.params,
        }
        .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for TcpSpec {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TcpVisitor;

        impl<'de> Visitor<'de> for TcpVisitor {
            type Value = TcpSpec;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a preset's name such as \"sack\", or a table such as { preset = \"sack\", ecn = true }")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<TcpSpec, E> {
                let preset = Preset::deserialize(de::value::StrDeserializer::new(text))?;
                Ok(TcpTable {
                    preset,
                    ..TcpTable::default()
                }
                .into())
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<TcpSpec, A::Error> {
                TcpTable::deserialize(MapAccessDeserializer::new(map)).map(Into::into)
            }
        }

        deserializer.deserialize_any(TcpVisitor)
    }
}

impl JsonSchema for TcpSpec {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Tcp".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let preset = generator.subschema_for::<Preset>();
        let table = generator.subschema_for::<TcpTable>();
        json_schema!({
            "description": "A preset's name, or a table with a preset and what departs from it.",
            "anyOf": [preset, table],
        })
    }
}
