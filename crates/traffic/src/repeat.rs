//! Groups that come and go.
//!
//! A group with `repeat` has several activations. Each has flows (or users) of its own: those of activation k are numbered
//! from k times the number of flows on, and start and stop k times `repeat` later than the flows of the first one.

use redtail_core::{ParamError, Span};

use crate::bounds::MAX_FLOWS;
use crate::group::TrafficParams;

impl TrafficParams {
    /// Which flow of its activation flow `i` is.
    pub(crate) fn in_activation(&self, i: usize) -> usize {
        i % (self.access().flows_at_once as usize).max(1)
    }

    /// How much later flow `i` starts and stops than the flow of the same place in the first activation.
    pub(crate) fn shift(&self, i: usize) -> Span {
        let access = self.access();
        let period = access.repeat.unwrap_or_default();
        period * (i as u64 / u64::from(access.flows_at_once).max(1))
    }

    /// How much later the flows of the last activation start than those of the first.
    pub(crate) fn last_shift(&self) -> Span {
        let access = self.access();
        let last = access.activations.unwrap_or(1).saturating_sub(1);
        access.repeat.unwrap_or_default() * u64::from(last)
    }

    /// Times of the first activation in all activations.
    pub(crate) fn in_all_activations(&self, mut times: Vec<Span>) -> Vec<Span> {
        times.sort_unstable();
        times.dedup();
        let access = self.access();
        let (Some(period), true) = (access.repeat, access.flows <= MAX_FLOWS) else {
            return times;
        };
        let shifts = (0..access.activations.unwrap_or(1)).map(|k| period * u64::from(k));
        let all = shifts.flat_map(|shift| times.iter().map(move |&time| time + shift));
        all.collect()
    }

    /// How long one of its flows is there in a run of so many seconds.
    pub(crate) fn active(&self, seconds: f64) -> f64 {
        match self.activations() {
            1 => seconds,
            count => seconds / f64::from(count),
        }
    }

    /// How often the group is there.
    pub fn activations(&self) -> u32 {
        self.access().activations.unwrap_or(1)
    }

    /// Fills in how often a group with `repeat` is there in a run of this duration.
    pub fn fill_in_activations(&mut self, duration: Span) {
        let access = self.access();
        let (Some(period), None) = (access.repeat, access.activations) else {
            return;
        };
        let Some(starts) = self.as_kind().starts() else {
            return; // refused
        };
        let earliest = starts.values().iter().map(|start| start.earliest()).min();
        let left = duration.saturating_sub(earliest.unwrap_or_default());
        let count = left.as_ps().div_ceil(period.as_ps().max(1)).max(1);
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        self.as_kind_mut().set_activations(count);
    }

    /// Refuses activations that are not of this kind, that overlap, or that are too many.
    pub(crate) fn check_repeat(&self) -> Result<(), ParamError> {
        let access = self.access();
        let Some(period) = access.repeat else {
            return match access.activations {
                None => Ok(()),
                Some(_) => Err(ParamError::new(
                    "activations",
                    "is given without repeat",
                    "a group with repeat, such as repeat = \"60 s\"",
                )),
            };
        };
        let refuse =
            |problem: &str, accepted: &str| Err(ParamError::new("repeat", problem, accepted));
        if period == Span::ZERO {
            return refuse("is zero", "a time such as \"60 s\"");
        }
        if access.activations == Some(0) {
            return Err(ParamError::new(
                "activations",
                "is zero",
                format!("1 to {MAX_FLOWS}"),
            ));
        }
        if matches!(self, TrafficParams::Trace(_)) {
            return refuse(
                "cannot be: the table of this group has the times",
                "no such key",
            );
        }
        if self.load().is_some() {
            return refuse(
                "stands beside load, which is for users who stay",
                "a number of users",
            );
        }
        let kind = self.as_kind();
        let Some(starts) = kind.starts() else {
            return refuse(
                "has no start to begin from",
                "a group with start, such as start = \"0 s\"",
            );
        };
        if kind.stops().is_none() && kind.needs_a_stop() {
            return refuse(
                "comes before the flows have stopped",
                "a group with stop, such as stop = \"20 s\"",
            );
        }
        if access.flows > MAX_FLOWS {
            let problem = format!(
                "makes {} activations of {}, more flows than can be run",
                self.activations(),
                access.flows_at_once
            );
            let accepted = format!("a longer time, or activations: up to {MAX_FLOWS} flows in all");
            return Err(ParamError::new("repeat", problem, accepted));
        }
        for i in 0..access.flows_at_once as usize {
            let Some(stop) = kind.stops().map(|stops| stops.get(i).latest()) else {
                break;
            };
            let start = starts.get(i).earliest();
            if stop.saturating_sub(start) > period {
                let problem = format!(
                    "is shorter than an activation, in which flow {i} may be there from \"{start}\" to \"{stop}\""
                );
                let least = stop.saturating_sub(start);
                return Err(ParamError::new(
                    "repeat",
                    problem,
                    format!("\"{least}\" and more"),
                ));
            }
        }
        Ok(())
    }
}
