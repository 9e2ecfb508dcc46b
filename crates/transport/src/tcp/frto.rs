//! Whether a retransmission timeout was spurious: forward RTO-recovery.
//!
//! Source: RFC 5682, section 2.1 (the basic algorithm) and section 3.1 (the
//! SACK-enhanced one). After a timeout only the first segment is sent again. If
//! its acknowledgement leaves other data open, new data follows instead of more
//! old data; what the next acknowledgement covers then tells whether the segments
//! sent before the timeout are still arriving.
//!
//! | symbol | meaning | unit |
//! |---|---|---|
//! | recover, RecoveryPoint | end of what was sent before the new data | bytes |
//! | SND.UNA | the cumulative acknowledgement | bytes |
//!
//! Where no new data can be sent, the timeout is answered as a genuine one
//! (step 2b). Linux goes further: it takes any acknowledgement of data not sent again
//! since the timeout, the first one included, as a proof (`tcp_process_loss`).

/// The step of the algorithm that is waited in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// The timeout is over, or none is in doubt.
    Done,
    /// Step 2: the answer to the retransmission is to come.
    Retransmitted,
    /// Step 3: new data follows it, of which this many segments may still be sent.
    SendsNew { left: u8, sent: bool },
}

/// The detector.
#[derive(Clone, Debug)]
pub(super) struct Frto {
    sack: bool,
    step: Step,
    /// The end of the segment that the timeout sent again; `None` before it was.
    resent: Option<u64>,
    recover: u64,
}

/// An acknowledgement after a timeout. Offsets in bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Answer {
    /// The cumulative acknowledgement.
    pub ack: u64,
    /// It is higher than the one before; otherwise it repeats it.
    pub advances: bool,
    /// It acknowledges data not acknowledged before, selectively or not.
    pub delivers: bool,
    /// The highest byte acknowledged so far, selectively or not.
    pub highest: u64,
    /// The next new byte.
    pub next: u64,
}

/// What an acknowledgement tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Nothing new.
    Open,
    /// Segments sent before the timeout arrive: nothing was lost.
    Spurious,
    /// The loss is real, and two round trips have passed since the timeout: a
    /// window of three segments has been earned (step 3a).
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

    /// Step 1: the timer ran out. `doubted` unless data from before the recovery
    /// point of an earlier episode is still outstanding.
    pub(super) fn on_timeout(&mut self, doubted: bool) {
        self.resent = None;
        self.step = if doubted {
            Step::Retransmitted
        } else {
            Step::Done
        };
    }

    /// The first segment was sent again, up to `end`.
    pub(super) fn on_resent(&mut self, end: u64) {
        if self.step == Step::Retransmitted {
            self.resent.get_or_insert(end);
        }
    }

    /// Forgets the timeout in doubt.
    pub(super) fn give_up(&mut self) {
        self.step = Step::Done;
    }

    /// Steps 2 and 3.
    pub(super) fn on_ack(&mut self, answer: Answer) -> Verdict {
        match self.step {
            Step::Done => Verdict::Open,
            Step::Retransmitted => {
                self.on_first_ack(answer);
                Verdict::Open
            }
            Step::SendsNew { .. } => {
                let verdict = self.on_second_ack(answer);
                if verdict != Verdict::Open {
                    self.step = Step::Done;
                }
                verdict
            }
        }
    }

    fn on_first_ack(&mut self, answer: Answer) {
        if !answer.advances {
            // With selective acknowledgements duplicates are waited out.
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

    fn on_second_ack(&self, answer: Answer) -> Verdict {
        if self.sack {
            if answer.highest > self.recover || !answer.advances && !answer.delivers {
                Verdict::Genuine
            } else if answer.delivers {
                Verdict::Spurious
            } else {
                Verdict::Open
            }
        } else if answer.advances {
            Verdict::Spurious
        } else {
            Verdict::Genuine
        }
    }

    /// Whether only new data is to be sent now, and whether any may: `None` when
    /// retransmissions go on as after any timeout.
    pub(super) fn sends_new(&self) -> Option<bool> {
        match self.step {
            Step::SendsNew { left, .. } => Some(left > 0),
            _ => None,
        }
    }

    /// New data was sent, or there was none to send; says whether the algorithm
    /// goes on.
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
