//! Running a scenario.

use std::borrow::Cow;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64};

use redtail_core::plugin::PluginFailure;
use redtail_spec::Scenario;
use redtail_traffic::Traces;

use super::{Cancelled, Simulation};
use crate::capture::{Capture, CaptureError};
use crate::plugins::Plugins;
use redtail_network::result::RunResult;

/// What a run needs besides its scenario. The default is enough for a scenario without queues of
/// kind `plugin`, without controllers of users and without groups of kind `trace`.
#[derive(Default)]
pub struct RunOptions<'a> {
    /// The queues and controllers of users, to which the scenario refers by name.
    pub plugins: Plugins,
    /// The tables of groups of kind `trace`, to which the scenario refers by name.
    pub traces: Traces,
    /// The packets to capture. The result is the same as without a capture.
    pub capture: Option<Capture<'a>>,
    /// Stops the run once it is set.
    pub cancel: Option<&'a AtomicBool>,
    /// Is set to the simulated time in picoseconds now and then.
    pub progress: Option<&'a AtomicU64>,
    /// Every event happens at its own time, in the total order of events
    /// ([`lookahead`](redtail_network::lookahead)). The result is the same, but for the number of events: this is
    /// for tests and to find faults. A capture, an event log and measurements of packets do the same.
    pub without_lookahead: bool,
}

/// Why a run has no result.
#[derive(Debug)]
pub enum RunError {
    /// It was cancelled before its end.
    Cancelled,
    /// A plug-in failed.
    Plugin(Box<PluginFailure>),
    /// Packets could not be captured.
    Capture(CaptureError),
    /// The scenario asks for what only a kernel has: the key, and the name of a congestion control.
    OfKernel(String, String),
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cancelled => f.write_str("the run was cancelled"),
            Self::Plugin(failure) => failure.fmt(f),
            Self::Capture(error) => error.fmt(f),
            Self::OfKernel(key, name) => {
                write!(
                    f,
                    "{key} = {name:?}: only a kernel has this congestion control"
                )
            }
        }
    }
}

impl std::error::Error for RunError {}

impl From<Cancelled> for RunError {
    fn from(_: Cancelled) -> Self {
        Self::Cancelled
    }
}

impl From<CaptureError> for RunError {
    fn from(error: CaptureError) -> Self {
        Self::Capture(error)
    }
}

/// Runs `scenario`, which must have passed validation, to its end.
///
/// # Errors
/// [`RunError`] if the run was cancelled, a plug-in failed, packets could not be captured, or the scenario asks for
/// a congestion control of a kernel.
///
/// # Panics
/// When packets are not conserved, or a queue of redtail breaks its contract: faults of redtail. And
/// when `options` lacks a table of the scenario.
pub fn run(scenario: &Scenario, options: RunOptions<'_>) -> Result<RunResult, RunError> {
    Simulation::new(Cow::Borrowed(scenario), options)?.finish()
}
