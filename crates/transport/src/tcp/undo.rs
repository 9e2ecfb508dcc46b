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

use super::frto::Frto;
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
