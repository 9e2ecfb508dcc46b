//! What is buffered of a video, and when it plays.
//!
//! The buffer is filled by whole segments and drained in real time (Yin et al., "A Control-Theoretic
//! Approach for Dynamic Adaptive Video Streaming over HTTP", SIGCOMM 2015, section 3, equations (1)
//! to (4)). Playback starts when `startup` of video is there. When nothing is left it stalls, and
//! resumes when there is as much again. Between two looks at it everything follows from the first,
//! so that it needs no clock.

use redtail_core::{Span, Time};

/// What playback is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// It has not started.
    Waiting,
    Playing,
    /// It waits for more video after it had started.
    Stalled,
    /// The video is over, or the user has gone.
    Ended,
}

/// The buffer of one user's video and its playback.
#[derive(Clone, Debug)]
pub struct Playback {
    startup: Span,
    state: State,
    /// Video in the buffer, not yet played, at time `at`.
    level: Span,
    at: Time,
    /// When the user asked for the video.
    asked: Time,
    /// The buffer holds all that is left of the video.
    complete: bool,
    /// Of the measurement period.
    figures: Figures,
}

/// What came of it in the measurement period.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Video played.
    pub played: Span,
    /// Time in which playback stood still after it had started.
    pub stalled: Span,
    /// How often it came to a stop.
    pub stalls: u64,
    /// From the user's asking to the start, if that was in the period.
    pub startup_delay: Option<Span>,
}

impl Playback {
    /// A video asked for now.
    pub fn new(startup: Span, now: Time) -> Self {
        Self {
            startup,
            state: State::Waiting,
            level: Span::ZERO,
            at: now,
            asked: now,
            complete: false,
            figures: Figures::default(),
        }
    }

    /// Lets it play until `now`; returns what is then in the buffer.
    pub fn advance(&mut self, now: Time) -> Span {
        let passed = now.saturating_since(self.at);
        self.at = self.at.max(now);
        match self.state {
            State::Waiting | State::Ended => {}
            State::Stalled => self.figures.stalled += passed,
            State::Playing if passed <= self.level => {
                self.level -= passed;
                self.figures.played += passed;
            }
            State::Playing => {
                let left = std::mem::take(&mut self.level);
                self.figures.played += left;
                if self.complete {
                    self.state = State::Ended;
                } else {
                    self.state = State::Stalled;
                    self.figures.stalls += 1;
                    self.figures.stalled += passed - left;
                }
            }
        }
        self.level
    }

    /// A segment has arrived, the last one or not; returns what is then in the buffer.
    pub fn add(&mut self, length: Span, is_last: bool, now: Time) -> Span {
        self.advance(now);
        self.level += length;
        self.complete = is_last;
        let enough = self.level >= self.startup || self.complete;
        match self.state {
            State::Waiting if enough => {
                self.state = State::Playing;
                self.figures.startup_delay = Some(now - self.asked);
            }
            State::Stalled if enough => self.state = State::Playing,
            _ => {}
        }
        self.level
    }

    /// The user goes.
    pub fn end(&mut self, now: Time) {
        self.advance(now);
        self.state = State::Ended;
    }

    /// Counts from `now` on.
    pub fn start_measuring(&mut self, now: Time) {
        self.advance(now);
        self.figures = Figures::default();
    }

    /// What was counted until `now`.
    pub fn figures(&self, now: Time) -> Figures {
        let mut then = self.clone();
        then.advance(now);
        then.figures
    }
}
