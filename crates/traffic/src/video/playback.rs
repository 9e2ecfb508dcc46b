//! What is buffered of a video, and when it plays.
//!
//! The buffer is filled by whole segments and drained in real time (Yin et al., "A Control-Theoretic
//! Approach for Dynamic Adaptive Video Streaming over HTTP", SIGCOMM 2015, section 3, equations (1)
//! to (4)). Playback starts when `startup` of video is there. When nothing is left it stalls, and
//! resumes when there is as much again. The state at one time determines the state at any later time
//! until the next segment arrives, so playback needs no timer.

use redtail_core::{Span, Time};

/// What playback is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PlaybackState {
    /// Playback has not started.
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
    state: PlaybackState,
    /// Video in the buffer, not yet played, at time `at`.
    level: Span,
    at: Time,
    /// When the user asked for the video.
    asked: Time,
    /// Playback has started, now or before.
    started: bool,
    /// The buffer holds all that is left of the video.
    complete: bool,
    /// When the latest stall began, until it is [told](Self::take_stall).
    stall: Option<Time>,
    /// What was counted since the measurement began.
    figures: Figures,
}

/// What is counted of playback in the measurement period.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Video played.
    pub played: Span,
    /// Time in which playback stood still after it had started.
    pub stalled: Span,
    /// Number of stalls.
    pub stalls: u64,
    /// Time from the request for the video to the start of playback, if it started in the period.
    pub startup_delay: Option<Span>,
}

impl Playback {
    /// Playback of a video that is requested now.
    pub fn new(startup: Span, now: Time) -> Self {
        Self {
            startup,
            state: PlaybackState::Waiting,
            level: Span::ZERO,
            at: now,
            asked: now,
            started: false,
            complete: false,
            stall: None,
            figures: Figures::default(),
        }
    }

    /// Plays until `now`. Returns the video in the buffer at that time.
    pub fn advance(&mut self, now: Time) -> Span {
        let passed = now.saturating_since(self.at);
        self.at = self.at.max(now);
        match self.state {
            PlaybackState::Waiting | PlaybackState::Ended => {}
            PlaybackState::Stalled => self.figures.stalled += passed,
            PlaybackState::Playing if passed <= self.level => {
                self.level -= passed;
                self.figures.played += passed;
            }
            PlaybackState::Playing => {
                let left = std::mem::take(&mut self.level);
                self.figures.played += left;
                if self.complete {
                    self.state = PlaybackState::Ended;
                } else {
                    self.state = PlaybackState::Stalled;
                    self.stall = Some(now - (passed - left));
                    self.figures.stalls += 1;
                    self.figures.stalled += passed - left;
                }
            }
        }
        self.level
    }

    /// Adds a segment that arrives now. Returns the video in the buffer after that.
    pub fn add(&mut self, length: Span, is_last: bool, now: Time) -> Span {
        self.advance(now);
        self.level += length;
        self.complete = is_last;
        let enough = self.level >= self.startup || self.complete;
        match self.state {
            PlaybackState::Waiting if enough => {
                self.state = PlaybackState::Playing;
                self.started = true;
                self.figures.startup_delay = Some(now - self.asked);
            }
            PlaybackState::Stalled if enough => self.state = PlaybackState::Playing,
            _ => {}
        }
        self.level
    }

    /// How long the latest stall took, if it is over and was not told yet.
    pub fn take_stall(&mut self, now: Time) -> Option<Span> {
        let is_over = self.state != PlaybackState::Stalled;
        self.stall.take_if(|_| is_over).map(|began| now - began)
    }

    /// Whether it has ever started.
    pub fn has_started(&self) -> bool {
        self.started
    }

    /// Ends playback, because the user leaves.
    pub fn end(&mut self, now: Time) {
        self.advance(now);
        self.state = PlaybackState::Ended;
    }

    /// Begins the measurement: counts from `now` on.
    pub fn start_measuring(&mut self, now: Time) {
        self.advance(now);
        self.figures = Figures::default();
    }

    /// What was counted from the beginning of the measurement until `now`.
    pub fn figures(&self, now: Time) -> Figures {
        let mut then = self.clone();
        then.advance(now);
        then.figures
    }
}
