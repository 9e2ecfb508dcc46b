//! Undoing a reduction of the window whose cause proved spurious.
//!
//! Source: the undo of Linux (`tcp_input.c`: `tcp_may_undo`, `tcp_undo_cwnd_reduction`), which
//! detects spurious retransmissions by D-SACK, as RFC 3708 does, and spurious timeouts by F-RTO
//! (RFC 5682). It restores both the window and ssthresh. RFC 4015 would restore ssthresh and let
//! the window grow from the flight size. Growth laws restore their own state (RFC 9438, section
//! 4.9).
//!
//! Only one reduction can be undone: the latest that began an episode. It was spurious if every
//! retransmission since then was reported as a duplicate, or if F-RTO finds the timeout spurious.
//!
//! With recovery `linux` the sender has [`LinuxUndo`] instead. It also detects a spurious
//! retransmission by timestamps: the acknowledgement echoes a timestamp from before the first
//! retransmission (Eifel detection, RFC 3522; `tcp_packet_delayed`).

use super::frto::Frto;
use super::timestamps::before;
use crate::cc::Window;
use crate::segment::SackBlock;

/// What showed that a reduction was spurious, for an event log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UndoCause {
    /// What was sent before the timeout is acknowledged after it (RFC 5682).
    Frto,
    /// Each retransmission was reported as a duplicate (RFC 3708).
    Dsack,
    /// An acknowledgement echoes a timestamp from before the retransmission (RFC 3522).
    Eifel,
}

/// The latest reduction that proved spurious.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Undone {
    /// What showed it.
    pub cause: UndoCause,
    /// Whether the window was restored.
    pub restored: bool,
}

/// The state of a sender that detects spurious reductions.
#[derive(Clone, Debug)]
pub(super) struct Undo {
    /// Forward RTO-recovery, if it is on.
    pub frto: Option<Frto>,
    /// Whether D-SACK reports are used.
    pub dsack: bool,
    reduction: Option<Reduction>,
    /// The latest that was undone.
    pub undone: Option<Undone>,
}

/// A reduction that may be undone.
#[derive(Clone, Copy, Debug)]
struct Reduction {
    /// The window before the reduction.
    prior: Window,
    /// Whether a timeout caused it, rather than a fast retransmit.
    timeout: bool,
    /// SND.UNA when it happened; duplicates of data below it are ignored.
    una: u64,
    /// The number of segments retransmitted since and not reported as duplicates; `None` before the
    /// first retransmission.
    unreported: Option<u32>,
}

impl Undo {
    /// The state for the algorithms that are on; `None` if all are off.
    pub(super) fn new(frto: bool, dsack: bool, sack: bool) -> Option<Box<Self>> {
        (frto || dsack && sack).then(|| {
            Box::new(Self {
                frto: frto.then(|| Frto::new(sack)),
                dsack: dsack && sack,
                reduction: None,
                undone: None,
            })
        })
    }

    /// An episode begins; the window was `prior` before its reduction.
    pub(super) fn on_episode(&mut self, prior: Window, una: u64, timeout: bool) {
        self.reduction = Some(Reduction {
            prior,
            timeout,
            una,
            unreported: None,
        });
    }

    /// The reduction can no longer be undone: it has another cause as well.
    pub(super) fn confirm(&mut self) {
        self.reduction = None;
        if let Some(frto) = &mut self.frto {
            frto.give_up();
        }
    }

    /// A segment that ends at `end` was retransmitted.
    pub(super) fn on_resent(&mut self, end: u64) {
        if let Some(frto) = &mut self.frto {
            frto.on_resent(end);
        }
        if let Some(Reduction { unreported, .. }) = &mut self.reduction {
            *unreported = Some(unreported.unwrap_or(0) + 1);
        }
    }

    /// The range `block`, of one or more segments, was reported as a duplicate. Returns whether all
    /// retransmissions are now reported as duplicates.
    pub(super) fn on_duplicate(&mut self, block: SackBlock, mss: u32) -> bool {
        let Some(reduction) = &mut self.reduction else {
            return false;
        };
        if !self.dsack || block.end <= reduction.una {
            return false;
        }
        let segments = (block.end - block.start).div_ceil(u64::from(mss)) as u32;
        let Some(unreported) = &mut reduction.unreported else {
            return false;
        };
        *unreported = unreported.saturating_sub(segments);
        *unreported == 0
    }

    /// The window before the reduction, and whether a timeout reduced it. Given once.
    pub(super) fn take(&mut self) -> Option<(Window, bool)> {
        if let Some(frto) = &mut self.frto {
            frto.give_up();
        }
        let reduction = self.reduction.take()?;
        Some((reduction.prior, reduction.timeout))
    }
}

/// The state that Linux keeps of an episode to undo its reduction (`tcp_init_undo`,
/// `tcp_may_undo`).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LinuxUndo {
    /// SND.UNA when the reduction happened; `None` if it cannot be undone (undo_marker).
    marker: Option<u64>,
    /// The number of segments retransmitted since and not reported as duplicates; `None` before the
    /// first retransmission (undo_retrans).
    unreported: Option<u32>,
    /// The timestamp of the first retransmission (retrans_stamp).
    stamp: Option<u32>,
    /// The window before the reduction; `None` if a mark proves the congestion (prior_ssthresh,
    /// prior_cwnd).
    prior: Option<Window>,
    timeout: bool,
    /// The latest that was undone.
    pub undone: Option<Undone>,
}

impl LinuxUndo {
    /// A reduction from `prior` at `una`, with `out` retransmissions outstanding.
    pub(super) fn begin(&mut self, una: u64, out: u32, prior: Option<Window>, timeout: bool) {
        self.marker = Some(una);
        self.unreported = (out > 0).then_some(out);
        self.prior = prior;
        self.timeout = timeout;
    }

    /// Whether there is a reduction that can still be undone.
    pub(super) fn is_open(&self) -> bool {
        self.marker.is_some()
    }

    /// The latest reduction can no longer be undone.
    pub(super) fn close(&mut self) {
        self.marker = None;
    }

    /// A mark was reported: the window will not be restored.
    pub(super) fn keep_reduced(&mut self) {
        self.prior = None;
    }

    /// No retransmission is outstanding: the next one is the first.
    pub(super) fn forget_retransmissions(&mut self) {
        self.stamp = None;
    }

    /// A segment is retransmitted with this timestamp.
    pub(super) fn on_resent(&mut self, timestamp: u32) {
        self.stamp.get_or_insert(timestamp);
        self.unreported = Some(self.unreported.unwrap_or(0) + 1);
    }

    /// Data that ends at `end` was reported as duplicate; it is `segments` long.
    pub(super) fn on_duplicate(&mut self, end: u64, segments: u32) {
        if self.marker.is_some_and(|marker| end > marker)
            && let Some(unreported) = &mut self.unreported
        {
            *unreported = unreported.saturating_sub(segments);
        }
    }

    /// Whether all retransmissions were reported as duplicates.
    pub(super) fn all_reported(&self) -> bool {
        self.marker.is_some() && self.unreported == Some(0)
    }

    /// Whether an acknowledgement that echoes `echo` answers a segment sent before the first
    /// retransmission, or there was no retransmission.
    pub(super) fn answers_original(&self, echo: Option<u32>) -> bool {
        self.marker.is_some()
            && self
                .stamp
                .is_none_or(|stamp| echo.is_some_and(|echo| before(echo, stamp)))
    }

    /// Whether the reduction was spurious.
    pub(super) fn is_spurious(&self, echo: Option<u32>) -> bool {
        self.all_reported() || self.answers_original(echo)
    }

    /// The window before the reduction, if it is to be restored, and whether a timeout reduced it. `by_frto` if F-RTO
    /// found that it was spurious.
    pub(super) fn take(&mut self, by_frto: bool) -> (Option<Window>, bool) {
        let cause = match (self.all_reported(), by_frto) {
            (true, _) => UndoCause::Dsack,
            (false, true) => UndoCause::Frto,
            (false, false) => UndoCause::Eifel,
        };
        let restored = self.prior.is_some();
        self.undone = Some(Undone { cause, restored });
        self.marker = None;
        (self.prior, self.timeout)
    }
}
