//! Explicit congestion notification, the sender's part: it reads the feedback of marks and decides
//! on the reduction. The receiver's part is in [`feedback`].
//!
//! Source: RFC 3168, section 6.1 (echo and one reduction a window); RFC 8511 (ABE);
//! RFC 8257, section 3.3 (DCTCP); RFC 9768 (AccECN); the reduction of Prague:
//! draft-briscoe-iccrg-prague-congestion-control-04, section 2.4, and its reference
//! implementation (L4STeam/linux, net/ipv4/tcp_prague.c, versions 0.6 and 0.7).
//!
//! | symbol | meaning |
//! |---|---|
//! | alpha | estimate of the share of bytes that are marked |
//! | g | gain of the estimate, `dctcp_g` |
//! | M | share of the bytes acknowledged in a round that were marked |
//!
//! ```text
//! alpha <- (1 - g) alpha + g M      once a round          (RFC 8257, section 3.3, step 6)
//! cwnd  <- cwnd (1 - alpha / 2)     at most once a round  (step 9)
//! ```
//!
//! Prague reduces first and updates alpha then: an acknowledgement that ends a round and requires a
//! reduction reduces by the old alpha (prague_enter_cwr comes before prague_update_alpha). From
//! `rtt_transition` rounds after slow start on, a round lasts at least 25 ms.
//!
//! Linux keeps alpha in fixed point, so that it is rounded to zero once it falls below 2^-6. Here
//! it decays without reaching zero.

pub mod feedback;

use redtail_core::{Ecn, Span, Time};

use super::maybe_offset::MaybeOffset;
pub use crate::choices::{AlphaStart, EcnCodepoint, EcnFeedback, EcnReduction};
use crate::params::TcpParams;
use crate::segment::{EcnBytes, Flags, Segment};

/// Initial value of AccECN's packet counter (RFC 9768, section 3.2.1).
const INITIAL_PACKETS: u8 = 5;

/// The ACE code by which AccECN's handshake reports the codepoint of a SYN or SYN-ACK (RFC 9768,
/// tables 2 and 3).
fn arrival_code(ecn: Ecn) -> u8 {
    match ecn {
        Ecn::NotEct => 0b010,
        Ecn::Ect1 => 0b011,
        Ecn::Ect0 => 0b100,
        Ecn::Ce => 0b110,
    }
}

/// What an acknowledgement says about marks.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Marks {
    /// Bytes it newly reports as marked.
    pub bytes: u64,
    /// Whether they require a reduction now.
    pub reduce: bool,
}

impl Marks {
    const NONE: Self = Self {
        bytes: 0,
        reduce: false,
    };
}

/// An acknowledgement, before it updates the scoreboard.
#[derive(Clone, Copy, Debug)]
pub struct Arrival<'a> {
    /// The segment that carries the acknowledgement.
    pub segment: &'a Segment,
    /// The cumulative acknowledgement before it.
    pub una: u64,
    /// The next new byte to send.
    pub next: u64,
    /// When it arrived.
    pub now: Time,
    /// Whether the window was in slow start before it.
    pub slow_start: bool,
}

impl Arrival<'_> {
    fn acked(&self) -> u64 {
        self.segment.ack.saturating_sub(self.una)
    }
}

/// How a sender responds to marks.
#[derive(Clone, Debug, Default)]
pub enum EcnResponse {
    /// Packets are not ECN-capable; echoes are ignored.
    #[default]
    None,
    /// Echoed marks, answered once per window.
    Echo {
        /// Highest data sent when the window was last reduced; none before.
        reduced_at: MaybeOffset,
        /// CWR has not been sent yet.
        cwr: bool,
        /// The factor of a reduction by less than for a loss (ABE).
        abe: Option<f64>,
        /// The SYN-ACK was marked, and nothing sent since was acknowledged.
        syn_ack_marked: bool,
    },
    /// DCTCP's or AccECN's feedback. Boxed, so that other senders stay small.
    Counted(Box<Counted>),
}

/// The state of a sender that knows how many bytes were marked.
#[derive(Clone, Debug)]
pub struct Counted {
    feedback: EcnFeedback,
    reduction: EcnReduction,
    abe_factor: f64,
    /// Gain of the estimate.
    gain: f64,
    codepoint: Ecn,
    reduced_at: MaybeOffset,
    cwr: bool,
    /// When the window was last reduced.
    reduced: Option<Time>,
    /// The codepoint with which the SYN-ACK arrived, while it is still echoed.
    syn_ack: Ecn,
    /// The peer's counters of packets and bytes at the last acknowledgement.
    packets: u8,
    bytes: EcnBytes,
    alpha: f64,
    start: AlphaStart,
    /// Whether a mark was ever reported.
    seen: bool,
    /// The share of the window by which a mark reduces it.
    reduction_share: f64,
    /// The round ends when this is acknowledged, and not before `least_round` has passed.
    round_end: u64,
    round_began: Time,
    /// Rounds that ended outside slow start, and the number of them after which the virtual round
    /// trip is used.
    rounds: u32,
    transition: u32,
    /// Whether the virtual round trip is used now.
    rtt_independent: bool,
    least_round: Span,
    acked: u64,
    marked: u64,
}

impl EcnResponse {
    /// A response in its initial state.
    pub fn new(params: &TcpParams) -> Self {
        let reduction = params.ecn_reduction;
        match params.ecn_feedback {
            _ if !params.ecn => Self::None,
            EcnFeedback::Echo => Self::Echo {
                reduced_at: MaybeOffset::NONE,
                cwr: false,
                abe: (reduction == EcnReduction::Abe).then(|| params.abe_factor()),
                syn_ack_marked: false,
            },
            feedback => Self::Counted(Box::new(Counted {
                feedback,
                reduction,
                abe_factor: params.abe_factor(),
                gain: params.dctcp_g,
                codepoint: match params.ecn_codepoint {
                    EcnCodepoint::Ect0 => Ecn::Ect0,
                    EcnCodepoint::Ect1 => Ecn::Ect1,
                },
                reduced_at: MaybeOffset::NONE,
                cwr: false,
                reduced: None,
                syn_ack: Ecn::NotEct,
                packets: INITIAL_PACKETS,
                bytes: EcnBytes::default(),
                // The initial estimate, by which a mark reduces as a loss does (RFC 8257, section
                // 3.3).
                alpha: match params.alpha_start {
                    AlphaStart::Decaying | AlphaStart::Held => 1.0,
                    AlphaStart::Zero => 0.0,
                },
                start: params.alpha_start,
                seen: false,
                reduction_share: 0.5,
                round_end: 0,
                round_began: Time::ZERO,
                rounds: 0,
                transition: params.rtt_transition,
                rtt_independent: false,
                least_round: match reduction {
                    EcnReduction::Prague => params.growth.least_round(),
                    _ => Span::ZERO,
                },
                acked: 0,
                marked: 0,
            })),
        }
    }

    /// Whether data packets are ECN-capable.
    #[inline]
    pub fn enabled(&self) -> bool {
        !matches!(self, Self::None)
    }

    /// The codepoint of data packets.
    #[inline]
    pub fn codepoint(&self) -> Ecn {
        match self {
            Self::None => Ecn::NotEct,
            Self::Echo { .. } => Ecn::Ect0,
            Self::Counted(counted) => counted.codepoint,
        }
    }

    /// The flags with which a SYN asks for ECN (RFC 3168, section 6.1.1; RFC 9768,
    /// section 3.1.1).
    pub fn syn_flags(&self) -> Flags {
        match self {
            Self::None => Flags::NONE,
            Self::Counted(counted) if counted.feedback == EcnFeedback::Accecn => {
                Flags::from_ace(0b111)
            }
            _ => Flags::ECE.with(Flags::CWR),
        }
    }

    /// Processes the SYN-ACK, which says what the peer agreed to. `arrived` is its codepoint on
    /// arrival.
    ///
    /// A mark on the SYN-ACK is echoed (RFC 5562, section 3.2) on every segment until data is
    /// acknowledged. The server's answer is left out, because our server sends no data: a second
    /// SYN-ACK that is not ECN-capable, and an initial window of one segment.
    pub fn on_syn_ack(&mut self, flags: Flags, arrived: Ecn) {
        let ace = flags.ace();
        *self = match std::mem::replace(self, Self::None) {
            Self::Counted(counted) if counted.feedback == EcnFeedback::Accecn => match ace {
                // No ECN, or bits that no server sends (RFC 9768, section 3.1.2, table 2).
                0b000 | 0b111 => Self::None,
                // A peer of RFC 3168, which only echoes marks (section 3.1.2).
                0b001 => Self::Echo {
                    reduced_at: MaybeOffset::NONE,
                    cwr: false,
                    abe: (counted.reduction == EcnReduction::Abe).then_some(counted.abe_factor),
                    syn_ack_marked: false,
                },
                // The reserved 0b101 agrees as well (section 3.1.3).
                _ => Self::Counted(counted),
            },
            agreed if ace == Flags::ECE.ace() => agreed,
            _ => Self::None, // refused (RFC 3168, section 6.1.1)
        };
        match self {
            Self::None => {}
            Self::Echo { syn_ack_marked, .. } => *syn_ack_marked = arrived == Ecn::Ce,
            Self::Counted(counted) => counted.syn_ack = arrived,
        }
    }

    /// The control bits of a segment without data. With AccECN the first one reports the codepoint
    /// of the SYN-ACK (RFC 9768, section 3.2.2.1, table 3).
    pub fn ack_flags(&self, first: bool) -> Flags {
        match self {
            Self::None => Flags::NONE,
            Self::Echo { syn_ack_marked, .. } => Flags::NONE.with_if(*syn_ack_marked, Flags::ECE),
            Self::Counted(counted) if counted.feedback == EcnFeedback::Accecn && first => {
                Flags::from_ace(arrival_code(counted.syn_ack))
            }
            Self::Counted(counted) => counted.echo(),
        }
    }

    /// The latest reduction was undone, so marks in that window may cause another.
    pub fn on_undo(&mut self) {
        let (reduced_at, cwr) = match self {
            Self::None => return,
            Self::Echo {
                reduced_at, cwr, ..
            } => (reduced_at, cwr),
            Self::Counted(counted) => {
                counted.reduced = None;
                (&mut counted.reduced_at, &mut counted.cwr)
            }
        };
        *reduced_at = MaybeOffset::NONE;
        *cwr = false;
    }

    /// Turns ECN off, because the peer may not support it.
    pub fn give_up(&mut self) {
        *self = Self::None;
    }

    /// What an acknowledgement says about marks.
    #[inline]
    pub fn on_ack(&mut self, arrival: &Arrival<'_>) -> Marks {
        match self {
            Self::None => Marks::NONE,
            Self::Echo {
                reduced_at,
                syn_ack_marked,
                ..
            } => {
                *syn_ack_marked &= arrival.segment.ack <= arrival.una;
                if !arrival.segment.flags.contains(Flags::ECE) {
                    return Marks::NONE;
                }
                // Reduce only if data sent after the last reduction is acknowledged.
                Marks {
                    bytes: arrival.acked().max(1),
                    reduce: reduced_at.get().is_none_or(|at| arrival.segment.ack > at),
                }
            }
            Self::Counted(counted) => counted.on_ack(arrival),
        }
    }

    /// The factor by which a mark multiplies the window, if it differs from that of a loss.
    pub fn beta(&self) -> Option<f64> {
        match self {
            Self::None => None,
            Self::Echo { abe, .. } => *abe,
            Self::Counted(counted) => match counted.reduction {
                EcnReduction::Loss | EcnReduction::Bbr => None,
                EcnReduction::Abe => Some(counted.abe_factor),
                EcnReduction::Dctcp | EcnReduction::Prague => Some(1.0 - counted.reduction_share),
            },
        }
    }

    /// Whether a reduction by marks may be spread over the next round trip, in which the window
    /// does not grow. Prague's may not, because its window grows with unmarked bytes during a
    /// reduction too (tcp_prague.c, prague_update_cwnd).
    pub fn spreads_reduction(&self) -> bool {
        !matches!(self, Self::Counted(counted) if counted.reduction == EcnReduction::Prague)
    }

    /// Whether a window with Prague's growth uses the virtual round trip.
    pub fn is_rtt_independent(&self) -> bool {
        matches!(self, Self::Counted(counted) if counted.rtt_independent)
    }

    /// The estimate of the share that is marked, if there is one.
    pub fn alpha(&self) -> Option<f64> {
        match self {
            Self::Counted(counted) => match counted.reduction {
                EcnReduction::Dctcp | EcnReduction::Prague => Some(counted.alpha),
                EcnReduction::Loss | EcnReduction::Abe | EcnReduction::Bbr => None,
            },
            _ => None,
        }
    }

    /// Whether the window that includes byte `una` was already reduced as much as for a loss.
    pub fn covers(&self, una: u64) -> bool {
        let reduced_at = match self {
            Self::None => MaybeOffset::NONE,
            Self::Echo { reduced_at, .. } => *reduced_at,
            // A reduction in proportion to marks does not replace the reduction for a loss (RFC
            // 8257, section 3.5).
            Self::Counted(counted) if counted.reduction.is_scalable() => MaybeOffset::NONE,
            Self::Counted(counted) => counted.reduced_at,
        };
        reduced_at.get().is_some_and(|at| una <= at)
    }

    /// The window was reduced, for any reason, with data sent up to `highest`.
    pub fn on_reduction(&mut self, highest: u64, now: Time) {
        let (reduced_at, cwr) = match self {
            Self::None => return,
            Self::Echo {
                reduced_at, cwr, ..
            } => (reduced_at, cwr),
            Self::Counted(counted) => {
                counted.reduced = Some(now);
                (&mut counted.reduced_at, &mut counted.cwr)
            }
        };
        *reduced_at = MaybeOffset::at(highest);
        *cwr = true;
    }

    /// The control bits of a data segment about to be sent. CWR is set once, and only on an
    /// ECN-capable segment (RFC 3168, section 6.1.2).
    #[inline]
    pub fn data_flags(&mut self, capable: bool) -> Flags {
        let (cwr, echo) = match self {
            Self::None => return Flags::NONE,
            Self::Echo {
                cwr,
                syn_ack_marked,
                ..
            } => (cwr, Flags::NONE.with_if(*syn_ack_marked, Flags::ECE)),
            Self::Counted(counted) => {
                let echo = counted.echo();
                if counted.feedback == EcnFeedback::Accecn {
                    return echo;
                }
                (&mut counted.cwr, echo)
            }
        };
        echo.with_if(capable && std::mem::take(cwr), Flags::CWR)
    }
}

impl Counted {
    /// The control bits that echo marks. Of the segments that this side receives, only the SYN-ACK
    /// is ECN-capable, so AccECN's packet counter does not change after it.
    fn echo(&self) -> Flags {
        let marked = self.syn_ack == Ecn::Ce;
        match self.feedback {
            EcnFeedback::Accecn => Flags::from_ace(INITIAL_PACKETS + u8::from(marked)),
            _ => Flags::NONE.with_if(marked, Flags::ECE),
        }
    }

    fn on_ack(&mut self, arrival: &Arrival<'_>) -> Marks {
        if arrival.acked() > 0 && self.feedback != EcnFeedback::Accecn {
            self.syn_ack = Ecn::NotEct; // the echo has arrived
        }
        let bytes = self.marked_bytes(arrival);
        self.acked += arrival.acked();
        self.marked += bytes;
        self.rtt_independent = !arrival.slow_start && self.rounds >= self.transition;
        let least_round = if self.rtt_independent {
            self.least_round
        } else {
            Span::ZERO
        };
        let first = bytes > 0 && !self.seen;
        let before = self.alpha;
        self.seen |= bytes > 0;
        if arrival.segment.ack > self.round_end && arrival.now >= self.round_began + least_round {
            self.end_round(arrival);
        }
        self.reduction_share = match (self.start, self.reduction) {
            (AlphaStart::Zero, _) if first => 0.5,
            (_, EcnReduction::Prague) => before / 2.0,
            _ => self.alpha / 2.0,
        };
        let covered = self
            .reduced_at
            .get()
            .is_some_and(|at| arrival.segment.ack <= at);
        // A virtual round trip may be longer than the real one.
        let early = self
            .reduced
            .is_some_and(|at| arrival.now < at + least_round);
        let answers = self.reduction != EcnReduction::Bbr;
        let reduce = answers && bytes > 0 && !covered && !early;
        Marks { bytes, reduce }
    }

    fn marked_bytes(&mut self, arrival: &Arrival<'_>) -> u64 {
        let segment = arrival.segment;
        match self.feedback {
            EcnFeedback::Echo | EcnFeedback::Dctcp => {
                if segment.flags.contains(Flags::ECE) {
                    arrival.acked()
                } else {
                    0
                }
            }
            EcnFeedback::Accecn => {
                // A reordered acknowledgement has smaller counters.
                if segment.ack < arrival.una {
                    return 0;
                }
                let packets = segment.flags.ace().wrapping_sub(self.packets) & 7;
                let bytes = segment.ecn_bytes.ce.since(self.bytes.ce);
                let overtaken = bytes > 1 << 23;
                if overtaken || packets == 0 && bytes == 0 {
                    return 0;
                }
                self.packets = segment.flags.ace();
                self.bytes = segment.ecn_bytes;
                u64::from(bytes)
            }
        }
    }

    fn end_round(&mut self, arrival: &Arrival<'_>) {
        let known = self.seen || self.start == AlphaStart::Decaying;
        if self.acked > 0 && known {
            // A receiver counts duplicates too, so the quotient may exceed 1.
            let share = (self.marked as f64 / self.acked as f64).min(1.0);
            self.alpha += self.gain * (share - self.alpha);
        }
        (self.acked, self.marked) = (0, 0);
        self.rounds = self.rounds.saturating_add(u32::from(!arrival.slow_start));
        self.round_end = arrival.next;
        self.round_began = arrival.now;
    }
}
