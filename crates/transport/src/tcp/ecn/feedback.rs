//! The receiver's part of ECN: negotiation, and the feedback of marks.
//!
//! Source: RFC 3168, sections 6.1.1 and 6.1.3; RFC 8257, section 3.2; RFC 9768,
//! sections 3.1 and 3.2.

use redtail_core::Ecn;

use super::{EcnFeedback, INITIAL_PACKETS, arrival_code};
use crate::params::TcpParams;
use crate::segment::{EcnBytes, Flags, Segment};

/// Marked packets after which an acknowledgement is due at the latest (RFC 9768,
/// section 3.2.2.5.1, n, which it recommends to be 2).
const MARKS_PER_ACK: u8 = 2;

/// How soon arriving data is acknowledged because of its codepoint and flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum AckUrgency {
    /// No earlier than the acknowledgement policy says.
    None,
    /// At once, by the rules of the feedback itself.
    Agreed,
    /// At once, by Linux's rules: the sender has reduced (tcp_ecn_accept_cwr), or what is marked
    /// has changed (dctcp_ece_ack_update).
    Now,
    /// This acknowledgement and the next at once, by Linux's rules: the first mark, or a
    /// retransmission (__tcp_ecn_check_ce).
    Soon,
}

/// What a receiver does with marks.
#[derive(Clone, Debug)]
pub(in super::super) enum Feedback {
    /// ECN is off.
    Off,
    /// RFC 3168: `pending` from a mark until the sender sets CWR; `seen` once any segment was
    /// ECN-capable.
    Echo { pending: bool, seen: bool },
    /// DCTCP's and AccECN's feedback. Boxed, so that other receivers stay small.
    Counted(Box<Counted>),
}

/// The state of a receiver that reports how many packets or bytes were marked.
#[derive(Clone, Debug)]
pub(in super::super) struct Counted {
    kind: EcnFeedback,
    /// Whether any segment was ECN-capable.
    seen: bool,
    /// Whether the latest data was marked (DCTCP.CE of RFC 8257).
    marked: bool,
    /// The pending acknowledgement of the data before the latest change of marking: its
    /// acknowledgement number, and whether that data was marked.
    early: Option<(u64, bool)>,
    packets: u8,
    bytes: EcnBytes,
    since_ack: u8,
    /// The codepoint with which the SYN arrived, which the SYN-ACK reports.
    syn: Ecn,
}

impl Feedback {
    pub(in super::super) fn new(params: &TcpParams) -> Self {
        match params.ecn_feedback {
            _ if !params.ecn => Self::Off,
            EcnFeedback::Echo => Self::echo(),
            kind => Self::Counted(Box::new(Counted {
                kind,
                seen: false,
                marked: false,
                early: None,
                packets: INITIAL_PACKETS,
                bytes: EcnBytes::default(),
                since_ack: 0,
                syn: Ecn::NotEct,
            })),
        }
    }

    fn echo() -> Self {
        Self::Echo {
            pending: false,
            seen: false,
        }
    }

    /// A SYN arrived. This side agrees to what it offers, if possible.
    pub(in super::super) fn on_syn(&mut self, segment: &Segment) {
        let classic = segment.flags.ace() == Flags::ECE.with(Flags::CWR).ace();
        *self = match std::mem::replace(self, Self::Off) {
            Self::Counted(mut counted) if counted.kind == EcnFeedback::Accecn => {
                counted.syn = segment.ecn;
                match segment.flags.ace() {
                    0b000 => Self::Off,
                    // A client of RFC 3168 gets the feedback of RFC 3168 (RFC 9768, section 3.1.2).
                    _ if classic => Self::echo(),
                    // All other codes ask for AccECN, in any version (section 3.1.3).
                    _ => Self::Counted(counted),
                }
            }
            // AE was reserved before AccECN and is ignored here.
            able if classic || segment.flags.ace() == 0b111 => able,
            _ => Self::Off,
        };
    }

    /// A SYN-ACK arrived at a side that also receives data; sets the feedback it agrees to.
    pub(in super::super) fn on_syn_ack(&mut self, flags: Flags) {
        let ace = flags.ace();
        *self = match std::mem::replace(self, Self::Off) {
            Self::Counted(counted) if counted.kind == EcnFeedback::Accecn => match ace {
                // As for the sender of this endpoint (RFC 9768, sections 3.1.2 and 3.1.3).
                0b000 | 0b111 => Self::Off,
                0b001 => Self::echo(),
                _ => Self::Counted(counted),
            },
            able if ace == Flags::ECE.ace() => able,
            _ => Self::Off,
        };
    }

    /// Whether the three ECN flags are a counter of packets.
    #[inline]
    pub(in super::super) fn counts_packets(&self) -> bool {
        matches!(self, Self::Counted(counted) if counted.kind == EcnFeedback::Accecn)
    }

    /// The ECN flags of the SYN-ACK.
    pub(in super::super) fn syn_ack_flags(&self) -> Flags {
        match self {
            Self::Off => Flags::NONE,
            // The codepoint of the SYN (RFC 9768, section 3.1.1, table 2).
            Self::Counted(counted) if counted.kind == EcnFeedback::Accecn => {
                Flags::from_ace(arrival_code(counted.syn))
            }
            _ => Flags::ECE,
        }
    }

    /// Whether marks are reported at all.
    pub(in super::super) fn enabled(&self) -> bool {
        !matches!(self, Self::Off)
    }

    /// Data arrived after everything below `next`; `waiting` if an acknowledgement is being
    /// delayed. Returns how soon the data is to be acknowledged.
    #[inline]
    pub(in super::super) fn on_data(
        &mut self,
        segment: &Segment,
        next: u64,
        waiting: bool,
    ) -> AckUrgency {
        match self {
            Self::Off => AckUrgency::None,
            Self::Echo { pending, seen } => {
                let reduced = segment.flags.contains(Flags::CWR);
                *pending &= !reduced;
                let first_mark = segment.ecn == Ecn::Ce && !*pending;
                *pending |= first_mark;
                let retransmission = segment.ecn == Ecn::NotEct && *seen;
                *seen |= segment.ecn != Ecn::NotEct;
                if first_mark || retransmission {
                    AckUrgency::Soon
                } else if reduced {
                    AckUrgency::Now
                } else {
                    AckUrgency::None
                }
            }
            Self::Counted(counted) => counted.on_data(segment, next, waiting),
        }
    }

    /// The flags of an acknowledgement sent now.
    #[inline]
    pub(in super::super) fn ack_flags(&mut self) -> Flags {
        match self {
            Self::Off => Flags::NONE,
            Self::Echo { pending, .. } => Flags::NONE.with_if(*pending, Flags::ECE),
            Self::Counted(counted) => {
                counted.since_ack = 0;
                match counted.kind {
                    EcnFeedback::Accecn => Flags::from_ace(counted.packets),
                    _ => Flags::NONE.with_if(counted.marked, Flags::ECE),
                }
            }
        }
    }

    /// The AccECN option of an acknowledgement sent now.
    #[inline]
    pub(in super::super) fn bytes(&self) -> EcnBytes {
        match self {
            Self::Counted(counted) if counted.kind == EcnFeedback::Accecn => counted.bytes,
            _ => EcnBytes::default(),
        }
    }

    /// Whether an acknowledgement is due because the marking changed.
    #[inline]
    pub(in super::super) fn has_early(&self) -> bool {
        matches!(self, Self::Counted(counted) if counted.early.is_some())
    }

    /// The acknowledgement that is due because the marking changed: its acknowledgement number and
    /// flags. Given once.
    #[inline]
    pub(in super::super) fn take_early(&mut self) -> Option<(u64, Flags)> {
        match self {
            Self::Counted(counted) => {
                let (ack, marked) = counted.early.take()?;
                Some((ack, Flags::NONE.with_if(marked, Flags::ECE)))
            }
            _ => None,
        }
    }
}

impl Counted {
    fn on_data(&mut self, segment: &Segment, next: u64, waiting: bool) -> AckUrgency {
        let marked = segment.ecn == Ecn::Ce;
        let changed = marked != self.marked;
        let before = std::mem::replace(&mut self.marked, marked);
        if self.kind != EcnFeedback::Accecn {
            if changed && waiting {
                self.early = Some((next, before));
            }
            let retransmission = segment.ecn == Ecn::NotEct && self.seen;
            self.seen |= segment.ecn != Ecn::NotEct;
            return if retransmission {
                AckUrgency::Soon
            } else if changed || segment.flags.contains(Flags::CWR) {
                AckUrgency::Now
            } else {
                AckUrgency::None
            };
        }
        if marked {
            self.packets = self.packets.wrapping_add(1);
            self.since_ack += 1;
            self.bytes.ce.add(segment.len);
        } else if segment.ecn != Ecn::NotEct {
            self.bytes.ect.add(segment.len);
        }
        // At the first of consecutive marks, and at every `MARKS_PER_ACK`-th (section 3.2.2.5.1).
        if marked && (changed || self.since_ack >= MARKS_PER_ACK) {
            AckUrgency::Agreed
        } else {
            AckUrgency::None
        }
    }
}
