//! The presets: named sets of parameters of TCP.

use redtail_core::schemars::JsonSchema;
use redtail_core::serde::{Deserialize, Serialize};
use redtail_core::{Bytes, Span, schemars, serde};
use strum::VariantArray;

use crate::cc::slow_start::SlowStartKind;
use crate::cc::{Growth, Halving, IdleDecay};
use crate::choices::{
    AlphaStart, EcnCodepoint, EcnFeedback, EcnReduction, RtoFloor, RttDeviation, RttSampling,
    SynLoss, TimerRestart,
};
use crate::params::TcpParams;
use crate::tcp::recovery::RecoveryKind;

/// Defines the presets: `NAME of OTHER { ... }` sets what the preset OTHER sets, except for the
/// parameters in braces. One without `of` begins with the defaults of [`TcpParams`].
macro_rules! presets {
    ($($(#[$meta:meta])* $name:ident $(of $base:ident)? {
        $($key:ident: $value:expr),* $(,)?
    })+) => {
        /// A named set of parameters.
        #[derive(
            Clone,
            Copy,
            Debug,
            Default,
            PartialEq,
            Eq,
            Serialize,
            Deserialize,
            JsonSchema,
            VariantArray,
        )]
        #[serde(crate = "serde", rename_all = "kebab-case")]
        #[schemars(crate = "schemars")]
        #[non_exhaustive]
        pub enum Preset {
            $($(#[$meta])* $name,)+
        }

        impl Preset {
            /// Every preset, in the order of the definition.
            pub const ALL: &'static [Self] = Self::VARIANTS;

            /// Whether it reproduces the TCP of ns-2.
            pub fn is_of_ns2(self) -> bool {
                matches!(
                    self,
                    Self::Ns2Sack | Self::Ns2Newreno | Self::Ns2Reno | Self::Ns2Tahoe
                )
            }

            /// What the preset sets.
            pub fn params(self) -> TcpParams {
                match self {
                    $(Self::$name => TcpParams {
                        $($key: $value,)*
                        ..presets!(@base $($base)?)
                    },)+
                }
            }
        }
    };
    (@base) => { TcpParams::default() };
    (@base $base:ident) => { Preset::$base.params() };
}

presets! {
    /// Selective acknowledgements as the RFCs have them today: RFC 6675 recovery, initial window 10 (RFC 6928), delayed acknowledgements (RFC 5681, section 4.2), limited transmit (RFC 3042), minimum timeout 1 s (RFC 6298).
    #[default]
    Sack {}
    /// As `sack`, without selective acknowledgements: RFC 6582 recovery.
    Newreno of Sack { recovery: RecoveryKind::Newreno }
    /// As `newreno`, with the recovery of RFC 5681, which ends with the first new acknowledgement.
    Reno of Sack { recovery: RecoveryKind::Reno }
    /// As `newreno`, without fast recovery: slow start follows a loss, as in 4.3BSD Tahoe.
    Tahoe of Sack { recovery: RecoveryKind::Tahoe }
    /// As `sack`, with CUBIC (RFC 9438) and HyStart++ (RFC 9406).
    Cubic of Sack { slow_start: SlowStartKind::HystartPlusPlus.into(), growth: Growth::Cubic.into() }
    /// DCTCP (RFC 8257): as `linux` with Linux's Reno, in whole segments; the receiver reports marks for each segment, and the sender responds in proportion. For networks whose queues mark at a low threshold.
    Dctcp of Linux {
        slow_start: SlowStartKind::Standard.into(),
        growth: Growth::LinuxReno.into(),
        ecn: true,
        ecn_feedback: EcnFeedback::Dctcp,
        ecn_reduction: EcnReduction::Dctcp,
        // Linux sends such a SYN ECN-capable, so that queues mark it and it is not repeated.
        ecn_fallback: false,
    }
    /// TCP Prague (draft-briscoe-iccrg-prague-congestion-control): as `linux` with Prague's growth, AccECN (RFC 9768) and ECT(1); the sender responds to marks in proportion.
    Prague of Linux {
        slow_start: SlowStartKind::Standard.into(),
        growth: Growth::Prague.into(),
        ecn: true,
        ecn_feedback: EcnFeedback::Accecn,
        ecn_reduction: EcnReduction::Prague,
        alpha_start: AlphaStart::Held,
        ecn_fallback: false, // as for DCTCP
        ecn_codepoint: EcnCodepoint::Ect1,
        pacing: true,
        pacing_ca_ratio: 1.0,
    }
    /// As `sack`, with Vegas' congestion avoidance and slow start (Brakmo and Peterson, IEEE JSAC 13(8), 1995); thresholds of 2 and 4 segments, as in Linux.
    Vegas of Sack { slow_start: SlowStartKind::Vegas.into(), growth: Growth::Vegas.into() }
    /// As `sack`, with LEDBAT (RFC 6817): a target of 100 ms of queueing delay, initial window 2; round-trip times are used in place of one-way delays. The RFC's algorithm has no slow start: here HyStart++ (RFC 9406) ends it, or a queueing delay of 100 ms, which is seen a round trip late.
    Ledbat of Sack {
        slow_start: SlowStartKind::HystartPlusPlus.into(),
        growth: Growth::Ledbat.into(),
        initial_window: 2,
    }
    /// As Linux 6.1 with its defaults: CUBIC, initial window 10, RACK-TLP in the kernel's states with PRR in segments, delayed acknowledgements of 40 ms after 16 quick ones, timestamps, F-RTO and D-SACK, HyStart, minimum timeout of 200 ms above the smoothed round trip, at most 120 s, a receive window that grows from 64 kB to 3 MiB, a send buffer of 4 MiB.
    Linux of Sack {
        mss: Bytes::new(1448),
        header: Bytes::new(52),
        slow_start: SlowStartKind::Hystart.into(),
        growth: Growth::LinuxCubic.into(),
        byte_counting: true,
        recovery: RecoveryKind::Linux,
        prr: true,
        halving: Halving::LinuxWindow,
        delayed_ack_timeout: Span::from_ms(40),
        quick_acks: 16,
        adaptive_acks: true,
        idle_decay: IdleDecay::Halving,
        bare_handshake_ack: true,
        fin_beyond_window: true,
        timestamps: true,
        receive_window: Bytes::new(3 << 20),
        receive_autotuning: true,
        send_buffer: Some(Bytes::new(4 << 20)),
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
    }
    /// As `linux`, with BBR version 1 (Cardwell et al., ACM Queue 14(5), 2016; net/ipv4/tcp_bbr.c) in place of CUBIC, PRR and HyStart, paced.
    Bbr of Linux {
        slow_start: SlowStartKind::Startup.into(),
        growth: Growth::Bbr.into(),
        lt_bw: true,
        pacing: true,
        unpaced_segments: 10,
        prr: false,
    }
    /// As `bbr`, with BBR version 3 (draft-ietf-ccwg-bbr-06).
    Bbr3 of Bbr {
        growth: Growth::Bbr3.into(),
        unpaced_segments: 0,
        lt_bw: false,
    }
    /// As `linux`, with Westwood+ (Grieco and Mascolo, ACM CCR 34(2), 2004; net/ipv4/tcp_westwood.c) in place of CUBIC and HyStart.
    Westwood of Linux { slow_start: SlowStartKind::Standard.into(), growth: Growth::Westwood.into() }
    /// As `linux`, with BIC (Xu, Harfoush and Rhee, INFOCOM 2004; net/ipv4/tcp_bic.c) in place of CUBIC and HyStart.
    Bic of Linux { slow_start: SlowStartKind::Standard.into(), growth: Growth::Bic.into() }
    /// As `linux`, with H-TCP (Leith and Shorten, PFLDnet 2004; net/ipv4/tcp_htcp.c) in place of CUBIC and HyStart.
    Htcp of Linux { slow_start: SlowStartKind::Standard.into(), growth: Growth::Htcp.into() }
    /// As `linux`, with Hybla and its slow start and initial window (Caini and Firrincieli, 2004; net/ipv4/tcp_hybla.c) in place of CUBIC and HyStart.
    Hybla of Linux { slow_start: SlowStartKind::Hybla.into(), growth: Growth::Hybla.into() }
    /// As `linux`, with Illinois (Liu, Başar and Srikant, 2008; net/ipv4/tcp_illinois.c) in place of CUBIC and HyStart.
    Illinois of Linux { slow_start: SlowStartKind::Standard.into(), growth: Growth::Illinois.into() }
    /// As `linux`, with HighSpeed TCP (RFC 3649; net/ipv4/tcp_highspeed.c) in place of CUBIC and HyStart.
    Highspeed of Linux { slow_start: SlowStartKind::Standard.into(), growth: Growth::Highspeed.into() }
    /// As `linux`, with Scalable TCP (Kelly, ACM CCR 33(2), 2003; net/ipv4/tcp_scalable.c) in place of CUBIC and HyStart.
    Scalable of Linux { slow_start: SlowStartKind::Standard.into(), growth: Growth::Scalable.into() }
    /// As `linux`, with Veno (Fu and Liew, IEEE JSAC 21(2), 2003; net/ipv4/tcp_veno.c) in place of CUBIC and HyStart.
    Veno of Linux { slow_start: SlowStartKind::Standard.into(), growth: Growth::Veno.into() }
    /// As `linux`, with YeAH (Baiocchi, Castellani and Vacirca, PFLDnet 2007; net/ipv4/tcp_yeah.c) in place of CUBIC and HyStart.
    Yeah of Linux { slow_start: SlowStartKind::Standard.into(), growth: Growth::Yeah.into() }
    /// As `bbr`, with Copa (Arun and Balakrishnan, NSDI 2018, and the authors' code) as the model. Many Copa flows with small windows, for instance ten on 100 Mbit/s and 20 ms, can take each other for flows that fill the queue; `growth = "copa-default"` never does.
    Copa of Bbr {
        growth: Growth::Copa.into(),
        unpaced_segments: 0,
        lt_bw: false,
    }
    /// As `bbr3`, but as in Google's code, on which published measurements are based (github.com/google/bbr, branch v3, net/ipv4/tcp_bbr.c). With `ecn = true` it responds to marks if the minimum round-trip time is at most `bbr_ecn_max_rtt`.
    Bbr3Google of Bbr3 {
        growth: Growth::Bbr3Google.into(),
        unpaced_segments: 10,
        ecn_feedback: EcnFeedback::Dctcp,
        ecn_reduction: EcnReduction::Bbr,
    }
    /// As the kernels that papers of around 2000 measured: SACK, initial window 2, delayed acknowledgements, a clock of 10 ms, minimum timeout 200 ms, first timeout 3 s, no timestamps.
    #[serde(rename = "linux-2000")]
    #[schemars(rename = "linux-2000")]
    Linux2000 of Sack {
        initial_window: 2,
        delayed_ack_timeout: Span::from_ms(200),
        initial_rto: Span::from_s(3),
        min_rto: Span::from_ms(200),
        clock_granularity: Span::from_ms(10),
        rtt_sampling: RttSampling::OnePerWindow,
    }
    /// As ns-2.35's Agent/TCP/Sack1 with TCPSink/Sack1: recovery of Fall and Floyd 1996, initial window 2, no handshake, every segment acknowledged, 10 ms clock, one round trip timed at a time, minimum timeout 200 ms.
    Ns2Sack of Sack {
        recovery: RecoveryKind::Sack1996,
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
    }
    /// As ns-2.35's Agent/TCP/Newreno with TCPSink; otherwise like `ns2-sack`.
    Ns2Newreno of Ns2Sack { recovery: RecoveryKind::Ns2Newreno }
    /// As ns-2.35's Agent/TCP/Reno with TCPSink; otherwise like `ns2-sack`.
    Ns2Reno of Ns2Sack { recovery: RecoveryKind::Ns2Reno }
    /// As ns-2.35's Agent/TCP with TCPSink; otherwise like `ns2-sack`.
    Ns2Tahoe of Ns2Sack { recovery: RecoveryKind::Ns2Tahoe }
}
