//! Taking back a reduction of the window whose cause proved false.
//!
//! Source: the undo of Linux (`tcp_input.c`: `tcp_may_undo`,
//! `tcp_undo_cwnd_reduction`), which detects by D-SACK as RFC 3708 does and by
//! F-RTO (RFC 5682), and restores both the window and ssthresh, where RFC 4015
//! would restore ssthresh and let the window grow from the flight size. Growth
//! laws restore what they keep (RFC 9438, section 4.9).
//!
//! One reduction at a time can be taken back: the latest that began an episode. It
//! is false when every retransmission since then was reported as a duplicate, or
//! when F-RTO finds the timeout spurious.
//!
//! With recovery `linux` the sender has [`LinuxUndo`] instead, which finds the cause false
//! by timestamps too: an acknowledgement that answers something sent before the first
//! retransmission was not its doing (Eifel detection, RFC 3522; `tcp_packet_delayed`).

use super::frto::Frto;
use super::timestamps::before;
use crate::cc::Window;
use crate::segment::SackBlock;

/// What a sender that detects false causes has besides.
#[derive(Clone, Debug)]
pub(super) struct Undo {
    /// Forward RTO-recovery, if it is on.
    pub frto: Option<Frto>,
    /// D-SACK reports are acted on.
    pub dsack: bool,
    reduction: Option<Reduction>,
}

/// A reduction that may be taken back.
#[derive(Clone, Copy, Debug)]
struct Reduction {
    /// The window before it.
    prior: Window,
    /// It answered a timeout, not a fast retransmit.
    timeout: bool,
    /// SND.UNA when it happened; duplicates of older data say nothing of it.
    una: u64,
    /// Segments sent again since, and not reported as duplicates; `None` before
    /// the first.
    unreported: Option<u32>,
}

impl Undo {
    /// For the algorithms that are on; `None` if none is.
    pub(super) fn new(frto: bool, dsack: bool, sack: bool) -> Option<Box<Self>> {
        (frto || dsack && sack).then(|| {
            Box::new(Self {
                frto: frto.then(|| Frto::new(sack)),
                dsack: dsack && sack,
                reduction: None,
            })
        })
    }

    /// An episode begins that reduces the window from `prior`.
    pub(super) fn on_episode(&mut self, prior: Window, una: u64, timeout: bool) {
        self.reduction = Some(Reduction {
            prior,
            timeout,
            una,
            unreported: None,
        });
    }

    /// The reduction is there to stay: another cause was added to it.
    pub(super) fn confirm(&mut self) {
        self.reduction = None;
        if let Some(frto) = &mut self.frto {
            frto.give_up();
        }
    }

    /// A segment that ends at `end` was sent again.
    pub(super) fn on_resent(&mut self, end: u64) {
        if let Some(frto) = &mut self.frto {
            frto.on_resent(end);
        }
        if let Some(Reduction { unreported, .. }) = &mut self.reduction {
            *unreported = Some(unreported.unwrap_or(0) + 1);
        }
    }

    /// A segment's worth of data, or more, was reported to have arrived twice;
    /// says whether all retransmissions now are.
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

    /// The window to return to, once; and whether a timeout had reduced it.
    pub(super) fn take(&mut self) -> Option<(Window, bool)> {
        if let Some(frto) = &mut self.frto {
            frto.give_up();
        }
        let reduction = self.reduction.take()?;
        Some((reduction.prior, reduction.timeout))
    }
}

/// What Linux keeps of an episode to take its reduction back (`tcp_init_undo`,
/// `tcp_may_undo`).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LinuxUndo {
    /// SND.UNA when the reduction happened, while it can be taken back (undo_marker).
    marker: Option<u64>,
    /// Segments sent again since and not reported as duplicates; `None` before the first
    /// (undo_retrans).
    unreported: Option<u32>,
    /// The timestamp of the first retransmission (retrans_stamp).
    stamp: Option<u32>,
    /// The window before it, unless a mark proves the congestion (prior_ssthresh, prior_cwnd).
    prior: Option<Window>,
    timeout: bool,
}

impl LinuxUndo {
    /// A reduction from `prior` at `una`, with `out` retransmissions still out.
    pub(super) fn begin(&mut self, una: u64, out: u32, prior: Option<Window>, timeout: bool) {
        self.marker = Some(una);
        self.unreported = (out > 0).then_some(out);
        self.prior = prior;
        self.timeout = timeout;
    }

    /// Whether a reduction can be taken back still.
    pub(super) fn is_open(&self) -> bool {
        self.marker.is_some()
    }

    /// The latest reduction is there to stay.
    pub(super) fn close(&mut self) {
        self.marker = None;
    }

    /// A mark was reported: the window will not be restored.
    pub(super) fn keep_reduced(&mut self) {
        self.prior = None;
    }

    /// No retransmission is out: the next is the first.
    pub(super) fn forget_retransmissions(&mut self) {
        self.stamp = None;
    }

    /// A segment is sent again, with this timestamp.
    pub(super) fn on_resent(&mut self, timestamp: u32) {
        self.stamp.get_or_insert(timestamp);
        self.unreported = Some(self.unreported.unwrap_or(0) + 1);
    }

    /// `segments` that end at `end` were reported to have arrived twice.
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

    /// Whether an acknowledgement that echoes `echo` answers what was sent before the first
    /// retransmission, or nothing was sent again.
    pub(super) fn answers_original(&self, echo: Option<u32>) -> bool {
        self.marker.is_some()
            && self
                .stamp
                .is_none_or(|stamp| echo.is_some_and(|echo| before(echo, stamp)))
    }

    /// Whether the reduction was false.
    pub(super) fn is_false(&self, echo: Option<u32>) -> bool {
        self.all_reported() || self.answers_original(echo)
    }

    /// The window to return to, if it is restored; and whether a timeout had reduced it.
    pub(super) fn take(&mut self) -> (Option<Window>, bool) {
        self.marker = None;
        (self.prior, self.timeout)
    }
}
