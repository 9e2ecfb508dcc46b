//! What a sender tells of itself for an event log.
//!
//! A log compares what a sender tells before and after each call: so the calls themselves do nothing for it.

use redtail_core::{Span, Time};

use super::connection::ConnectionState;
use super::{Sender, SenderCounters};
use crate::cc::CaState;
use crate::cc::model::Episode;
use crate::tcp::undo::Undone;

/// The state of a sender, for an event log.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SenderStory {
    /// What it has counted.
    pub counters: SenderCounters,
    /// Congestion window, bytes.
    pub cwnd: f64,
    /// Slow start threshold, bytes; infinite before the first reduction.
    pub ssthresh: f64,
    /// The first byte that is not acknowledged.
    pub una: u64,
    /// The episode of repair.
    pub episode: Episode,
    /// The name of the controller's state: of a model its own, otherwise that of Linux where recovery is `linux`.
    pub state: Option<&'static str>,
    /// Whether a model or a controller of a user decides the window, so that there is no slow start.
    pub has_model: bool,
    /// Estimated share of marked bytes, if the response is in proportion to it.
    pub alpha: Option<f64>,
    /// The retransmission timeout.
    pub rto: Span,
    /// The latest tail loss probe that is not answered: when it was sent, up to where, and whether it was sent before.
    pub probe: Option<(Time, u64, bool)>,
    /// The latest reduction that proved spurious.
    pub undone: Option<Undone>,
    /// Whether nothing was outstanding and nothing could be sent.
    pub idle: bool,
    /// Whether it has been opened.
    pub opened: bool,
    /// Whether its SYN has not been answered.
    pub handshake: bool,
    /// Whether the application has closed and all its data was acknowledged.
    pub complete: bool,
}

/// The name of a state of Linux in an event log.
fn name_of(state: CaState) -> &'static str {
    match state {
        CaState::Open => "open",
        CaState::Disorder => "disorder",
        CaState::Reduction => "reduction",
        CaState::Recovery => "recovery",
        CaState::Loss => "loss",
    }
}

impl Sender {
    /// Its state, for an event log.
    #[cold]
    pub fn story(&self) -> SenderStory {
        let window = self.controller.window();
        let linux = self.optional.linux();
        let of_linux = linux.map(|linux| name_of(linux.ca_state(self.phase)));
        let state = self.controller.state();
        let timers = self.optional.timers();
        let probe = timers.and_then(|timers| timers.probe.unanswered);
        let of_others = self.optional.undo().and_then(|undo| undo.undone);
        SenderStory {
            counters: self.counters(),
            cwnd: window.cwnd,
            ssthresh: window.ssthresh,
            una: self.board.una(),
            episode: self.phase,
            state: state.or(of_linux),
            has_model: self.controller.has_model(),
            alpha: self.optional.ecn().alpha(),
            rto: self.timer.rtt.rto(),
            probe: probe.map(|probe| (probe.sent, probe.end, probe.retransmitted)),
            undone: linux.and_then(|linux| linux.undone()).or(of_others),
            idle: self.idle,
            opened: self.connection.state != ConnectionState::Closed,
            handshake: !self.is_established(),
            complete: self.is_complete(),
        }
    }

    /// Calls `tell` with the offset and the length of each outstanding segment of data that was sent again at `now`.
    #[cold]
    pub fn resent_at(&self, now: Time, tell: &mut dyn FnMut(u64, u32)) {
        self.board.resent_at(now, |start, len| {
            if start < self.stream.size {
                tell(start, len);
            }
        });
    }
}
