//! Whether a retransmission timeout was spurious: forward RTO-recovery.
//!
//! Source: RFC 5682, section 2.1 (the basic algorithm) and section 3.1 (the SACK-enhanced one).
//! After a timeout only the first segment is sent again. If its acknowledgement does not cover all
//! outstanding data, new data follows instead of further retransmissions. The next acknowledgement
//! then shows whether segments sent before the timeout are still arriving.
//!
//! | symbol | meaning | unit |
//! |---|---|---|
//! | recover, RecoveryPoint | end of what was sent before the new data | bytes |
//! | SND.UNA | the cumulative acknowledgement | bytes |
//!
//! If no new data can be sent, the timeout is treated as genuine (step 2b). Linux goes further: any
//! acknowledgement of data not retransmitted since the timeout, the first one included, proves the
//! timeout spurious (`tcp_process_loss`).

/// The current step of the algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// No timeout is being checked.
    Done,
    /// Step 2: the acknowledgement of the retransmission has not arrived.
    Retransmitted,
    /// Step 3: new data is sent; `left` more segments of it may be sent.
    SendsNew { left: u8, sent: bool },
}

/// Detects spurious retransmission timeouts by F-RTO.
#[derive(Clone, Debug)]
pub(super) struct Frto {
    sack: bool,
    step: Step,
    /// The end of the segment retransmitted after the timeout; `None` before the retransmission.
    resent: Option<u64>,
    recover: u64,
}

/// An acknowledgement after a timeout. Offsets in bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Answer {
    /// The cumulative acknowledgement.
    pub ack: u64,
    /// Whether it is higher than the one before.
    pub advances: bool,
    /// Whether it newly acknowledges data, cumulatively or selectively.
    pub delivers: bool,
    /// The highest byte acknowledged so far, cumulatively or selectively.
    pub highest: u64,
    /// The next new byte to send.
    pub next: u64,
}

/// What an acknowledgement shows about the latest timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TimeoutKind {
    /// It is not yet known whether the timeout was spurious.
    Undecided,
    /// Segments sent before the timeout arrive: the timeout was spurious.
    Spurious,
    /// The timeout was genuine, and two round trips have passed since: the window is three segments
    /// (step 3a).
    Genuine,
}

impl Frto {
    /// The basic algorithm, or the one for selective acknowledgements.
    pub(super) fn new(sack: bool) -> Self {
        Self {
            sack,
            step: Step::Done,
            resent: None,
            recover: 0,
        }
    }

    /// Step 1: the retransmission timer has expired. The timeout is checked if `doubted`, which is
    /// false while data below the recovery point of an earlier episode is outstanding.
    pub(super) fn on_timeout(&mut self, doubted: bool) {
        self.resent = None;
        self.step = if doubted {
            Step::Retransmitted
        } else {
            Step::Done
        };
    }

    /// The first segment, which ends at `end`, was retransmitted.
    pub(super) fn on_resent(&mut self, end: u64) {
        if self.step == Step::Retransmitted {
            self.resent.get_or_insert(end);
        }
    }

    /// Stops checking the timeout.
    pub(super) fn give_up(&mut self) {
        self.step = Step::Done;
    }

    /// Applies step 2 or step 3 of the algorithm to an acknowledgement after a timeout.
    pub(super) fn on_ack(&mut self, answer: Answer) -> TimeoutKind {
        match self.step {
            Step::Done => TimeoutKind::Undecided,
            Step::Retransmitted => {
                self.on_first_ack(answer);
                TimeoutKind::Undecided
            }
            Step::SendsNew { .. } => {
                let kind = self.on_second_ack(answer);
                if kind != TimeoutKind::Undecided {
                    self.step = Step::Done;
                }
                kind
            }
        }
    }

    fn on_first_ack(&mut self, answer: Answer) {
        if !answer.advances {
            // With selective acknowledgements a duplicate decides nothing.
            if !self.sack {
                self.step = Step::Done;
            }
            return;
        }
        self.recover = answer.next;
        let covers_resent = self.resent.is_some_and(|end| answer.ack >= end);
        self.step = if covers_resent && answer.ack < self.recover {
            Step::SendsNew {
                left: 2,
                sent: false,
            }
        } else {
            Step::Done
        };
    }

    fn on_second_ack(&self, answer: Answer) -> TimeoutKind {
        if self.sack {
            if answer.highest > self.recover || !answer.advances && !answer.delivers {
                TimeoutKind::Genuine
            } else if answer.delivers {
                TimeoutKind::Spurious
            } else {
                TimeoutKind::Undecided
            }
        } else if answer.advances {
            TimeoutKind::Spurious
        } else {
            TimeoutKind::Genuine
        }
    }

    /// Whether new data may be sent now, and no retransmissions. `None` if retransmissions continue
    /// as after any timeout.
    pub(super) fn sends_new(&self) -> Option<bool> {
        match self.step {
            Step::SendsNew { left, .. } => Some(left > 0),
            _ => None,
        }
    }

    /// New data was sent if `done`; otherwise there was none. Returns whether the algorithm
    /// continues.
    pub(super) fn on_sent_new(&mut self, done: bool) -> bool {
        match &mut self.step {
            Step::SendsNew { left, sent } if done => {
                *left -= 1;
                *sent = true;
            }
            Step::SendsNew { left, sent: true } => *left = 0,
            step => *step = Step::Done,
        }
        self.step != Step::Done
    }
}
