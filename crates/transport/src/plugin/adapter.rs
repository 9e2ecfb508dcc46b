//! The model around a plug-in: it makes the plug-in, and checks what it returns.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use redtail_core::{Span, Stream, Time};

use super::{
    CongestionEvent, CongestionKind, Identity, LARGEST_RATE, LARGEST_WINDOW, LEAST_RATE,
    LONGEST_NAME, LostSegment, MOST_FIGURES, MOST_STATES, PluginContext, PluginController,
    PluginError, PluginFailure, Plugins, RateSample, Role,
};
use crate::cc::model::Model;

/// What the copies of a sender share: who makes their controllers, and of what.
#[derive(Debug)]
struct Origin {
    identity: Identity,
    plugins: Plugins,
    mss: u32,
    initial_cwnd: f64,
}

/// A plug-in as a model of the path.
pub struct Plugin {
    origin: Arc<Origin>,
    /// `None` before the sender has got its random numbers.
    controller: Option<Box<dyn PluginController>>,
    /// The time of the latest call.
    now: Option<Time>,
    answers: Answers,
    /// The names of states that it has had.
    states: Vec<&'static str>,
}

/// What the controller returned after the latest call that can have changed it.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Answers {
    cwnd: f64,
    ssthresh: f64,
    pacing_rate: Option<f64>,
    send_quantum: u64,
    probes_rtt: bool,
    state: &'static str,
}

impl fmt::Debug for Plugin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Plugin")
            .field("class", &self.origin.identity.class)
            .field("answers", &self.answers)
            .finish_non_exhaustive()
    }
}

impl Clone for Plugin {
    /// Copies are made of senders that have sent nothing: the copy has a controller of its own, which is made when it gets
    /// its random numbers.
    fn clone(&self) -> Self {
        Self {
            origin: Arc::clone(&self.origin),
            controller: None,
            now: None,
            answers: self.answers,
            states: Vec::new(),
        }
    }
}

/// The one copy of a name. States are told as `&'static str`, so those of users are kept until the program ends; how many
/// there are is bounded for each controller.
fn interned(name: &str) -> &'static str {
    static NAMES: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    match names.get(name) {
        Some(known) => known,
        None => {
            let kept: &'static str = Box::leak(name.to_owned().into_boxed_str());
            names.insert(kept);
            kept
        }
    }
}

/// Whether a figure may have this name, which becomes a part of names of metrics and columns.
fn is_figure(name: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    (1..=LONGEST_NAME).contains(&name.len()) && name.bytes().all(fits)
}

fn checked(
    what: &str,
    value: f64,
    least: f64,
    most: f64,
    accepted: &str,
) -> Result<f64, PluginError> {
    match (least..=most).contains(&value) {
        true => Ok(value),
        false => Err(PluginError::new(format!(
            "{what} is {value}; accepted: {accepted}"
        ))),
    }
}

impl Plugin {
    /// The controller that `identity` names, for segments of `mss` bytes. It is made later, from what [`take_from`](Self::take_from) gives.
    pub(crate) fn new(identity: Identity, mss: u32, initial_window: u32) -> Self {
        let initial_cwnd = f64::from(initial_window) * f64::from(mss);
        Self {
            origin: Arc::new(Origin {
                identity,
                plugins: Plugins::new(),
                mss,
                initial_cwnd,
            }),
            controller: None,
            now: None,
            answers: Answers {
                cwnd: initial_cwnd,
                ssthresh: f64::INFINITY,
                pacing_rate: None,
                send_quantum: 0,
                probes_rtt: false,
                state: "",
            },
            states: Vec::new(),
        }
    }

    /// The controller is one of `plugins`.
    pub(crate) fn take_from(&mut self, plugins: &Plugins) {
        let old = &self.origin;
        self.origin = Arc::new(Origin {
            identity: old.identity.clone(),
            plugins: plugins.clone(),
            ..**old
        });
    }

    fn fail(&self, method: &'static str, error: PluginError) -> ! {
        PluginFailure {
            role: Role::Controller,
            class: self.origin.identity.class.clone(),
            method,
            at: self.now,
            error,
        }
        .raise()
    }

    fn make(&self, stream: Stream) -> Box<dyn PluginController> {
        let origin = &*self.origin;
        let context = PluginContext {
            mss: origin.mss,
            initial_cwnd: origin.initial_cwnd,
            stream,
        };
        (origin.plugins.make(&origin.identity, context))
            .unwrap_or_else(|error| self.fail("new", error))
    }

    /// Calls a method that can change the controller, and takes what it returns from then on.
    fn tell(
        &mut self,
        method: &'static str,
        now: Option<Time>,
        call: impl FnOnce(&mut dyn PluginController) -> Result<(), PluginError>,
    ) {
        self.now = now.or(self.now);
        let mut controller = self
            .controller
            .take()
            .unwrap_or_else(|| self.make(Stream::named(0, 0, "tcp")));
        if let Err(error) = call(&mut *controller) {
            self.fail(method, error);
        }
        self.answers = self.ask(&*controller);
        self.controller = Some(controller);
    }

    fn ask(&mut self, controller: &dyn PluginController) -> Answers {
        let cwnd = self.sound(
            "cwnd",
            controller.cwnd().and_then(|cwnd| {
                let accepted = "bytes from 0 to 1 TiB; less than a segment counts as one";
                checked("the window", cwnd, 0.0, LARGEST_WINDOW, accepted)
            }),
        );
        let ssthresh = self.sound(
            "ssthresh",
            controller.ssthresh().and_then(|ssthresh| {
                let Some(ssthresh) = ssthresh else {
                    return Ok(f64::INFINITY);
                };
                let accepted = "bytes, without a bound before the first loss";
                checked("ssthresh", ssthresh, 0.0, f64::INFINITY, accepted)
            }),
        );
        let pacing_rate = self.sound(
            "pacing_rate",
            controller.pacing_rate().and_then(|rate| {
                let accepted = "bytes/s from 1 to 1e15, or nothing for a window-based controller";
                rate.map(|rate| {
                    checked("the pacing rate", rate, LEAST_RATE, LARGEST_RATE, accepted)
                })
                .transpose()
            }),
        );
        let send_quantum = self.sound(
            "send_quantum",
            controller.send_quantum().and_then(|quantum| {
                let most = LARGEST_WINDOW;
                checked(
                    "the quantum",
                    quantum as f64,
                    0.0,
                    most,
                    "bytes up to 1 TiB",
                )
                .map(|_| quantum)
            }),
        );
        Answers {
            cwnd: cwnd.max(f64::from(self.origin.mss)),
            ssthresh,
            pacing_rate,
            send_quantum,
            probes_rtt: self.sound("probes_rtt", controller.probes_rtt()),
            state: self.state_of(controller),
        }
    }

    fn sound<T>(&self, method: &'static str, result: Result<T, PluginError>) -> T {
        result.unwrap_or_else(|error| self.fail(method, error))
    }

    fn state_of(&mut self, controller: &dyn PluginController) -> &'static str {
        let state = self.sound("state", controller.state());
        if state == self.answers.state {
            return self.answers.state;
        }
        if let Some(known) = self.states.iter().find(|known| **known == state) {
            return known;
        }
        if state.len() > LONGEST_NAME || self.states.len() == MOST_STATES {
            let accepted = format!(
                "it gives the state {state:?}; accepted: at most {MOST_STATES} different names of up to \
                 {LONGEST_NAME} bytes"
            );
            self.fail("state", PluginError::new(accepted));
        }
        let state = interned(state);
        self.states.push(state);
        state
    }

    /// Tells the controller's own figures; none before it is made.
    pub(crate) fn report(&self, now: Time, tell: &mut dyn FnMut(&str, f64)) {
        let Some(controller) = &self.controller else {
            return;
        };
        let mut wrong = None;
        let mut count = 0;
        let mut checked = |name: &str, value: f64| {
            count += 1;
            match is_figure(name) && value.is_finite() && count <= MOST_FIGURES {
                true => tell(name, value),
                false => {
                    wrong.get_or_insert_with(|| format!("{name:?} is {value}"));
                }
            }
        };
        let told = controller.report(now, &mut checked);
        self.sound("report", told);
        if let Some(figure) = wrong {
            let accepted = format!(
                "{figure}; accepted: at most {MOST_FIGURES} finite numbers, with names of letters, digits and _, of \
                 up to {LONGEST_NAME} bytes"
            );
            self.fail("report", PluginError::new(accepted));
        }
    }
}

impl Model for Plugin {
    fn on_ack(&mut self, sample: &RateSample) {
        self.tell("on_ack", Some(sample.now), |it| it.on_ack(sample));
    }

    fn on_lost(&mut self, lost: &LostSegment, now: Time) {
        self.tell("on_lost", Some(now), |it| it.on_lost(lost, now));
    }

    fn set_stream(&mut self, stream: Stream) {
        let controller = self.make(stream);
        self.answers = self.ask(&*controller);
        self.controller = Some(controller);
    }

    fn on_congestion(&mut self, event: &CongestionEvent) {
        let now = Some(event.now);
        match event.kind {
            CongestionKind::Loss | CongestionKind::Ecn => {
                self.tell("on_recovery", now, |it| it.on_recovery(event));
            }
            CongestionKind::Timeout { .. } => {
                self.tell("on_timeout", now, |it| it.on_timeout(event));
            }
        }
    }

    fn on_handshake(&mut self, rtt: Span, now: Time) {
        self.tell("on_handshake", Some(now), |it| it.on_handshake(rtt, now));
    }

    fn on_restart(&mut self, now: Time, delivered: u64) {
        self.tell("on_restart", Some(now), |it| it.on_restart(now, delivered));
    }

    fn on_undo(&mut self) {
        self.tell("on_undo", None, |it| it.on_undo());
    }

    fn set_cwnd(&mut self, cwnd: f64) {
        self.tell("set_cwnd", None, |it| it.set_cwnd(cwnd));
    }

    fn cwnd(&self) -> f64 {
        self.answers.cwnd
    }

    fn ssthresh(&self) -> f64 {
        self.answers.ssthresh
    }

    fn pacing_rate(&self) -> Option<f64> {
        self.answers.pacing_rate
    }

    fn send_quantum(&self) -> u64 {
        self.answers.send_quantum
    }

    fn probes_rtt(&self) -> bool {
        self.answers.probes_rtt
    }

    fn state(&self) -> &'static str {
        self.answers.state
    }
}
