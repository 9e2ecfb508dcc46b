//! How a queue tells its own metrics: their values after a run, and before it their names.

use redtail_core::{Metric, metrics};

/// Takes the values of a queue's own metrics.
///
/// A metric is told by its definition, so none is without name, unit and meaning. Metrics of a
/// class have the class's name in front.
pub struct Report<'a> {
    path: String,
    tell: &'a mut dyn FnMut(&str, f64),
}

impl<'a> Report<'a> {
    /// A report that gives each name and value to `tell`.
    pub fn new(tell: &'a mut dyn FnMut(&str, f64)) -> Self {
        Self {
            path: String::new(),
            tell,
        }
    }

    /// Tells the value of `metric`.
    pub fn tell(&mut self, metric: &'static Metric, value: f64) {
        self.tell_by_name(metric.name, value);
    }

    /// Tells the value of `metric`, unless it is undefined.
    pub fn tell_if(&mut self, metric: &'static Metric, value: Option<f64>) {
        if let Some(value) = value {
            self.tell(metric, value);
        }
    }

    /// Tells a value that a queue of the user's own names as it likes.
    pub(crate) fn tell_by_name(&mut self, name: &str, value: f64) {
        if self.path.is_empty() {
            (self.tell)(name, value);
        } else {
            (self.tell)(&format!("{}{name}", self.path), value);
        }
    }

    /// The report of a class.
    pub fn of_class(&mut self, class: &str) -> Report<'_> {
        Report {
            path: format!("{}{class}.", self.path),
            tell: &mut *self.tell,
        }
    }
}

/// The names of the metrics that a queue of given parameters will tell.
#[derive(Clone, Debug, Default)]
pub struct FigureNames {
    path: String,
    /// Each with its definition. Not every one has a value in every run.
    pub known: Vec<(String, &'static Metric)>,
    /// What stands in front of names that a queue of the user's own chooses.
    pub open: Vec<String>,
}

impl FigureNames {
    /// Adds the metrics of a list.
    pub fn add(&mut self, list: &[&'static Metric]) {
        let named = |metric: &&'static Metric| (format!("{}{}", self.path, metric.name), *metric);
        let named: Vec<_> = list.iter().map(named).collect();
        self.known.extend(named);
    }

    /// Adds what `tell` adds, with the class's name in front.
    pub fn of_class(&mut self, class: &str, tell: impl FnOnce(&mut Self)) {
        let path = format!("{}{class}.", self.path);
        let outer = std::mem::replace(&mut self.path, path);
        tell(self);
        self.path = outer;
    }

    /// Any name is possible.
    pub(crate) fn add_any(&mut self) {
        self.open.push(self.path.clone());
    }
}

metrics! {
    /// What every queue by flow reports.
    pub const BY_FLOW of Queue;

    /// Queues of flows that hold packets, weighted by time.
    FLOWS_ACTIVE = "flows_active", Count, "Mean number of queues with packets", "active queues";
}

metrics! {
    /// What queues by flow with a common limit report.
    pub const BY_FLOW_WITH_LIMIT of Queue;

    /// Packets that were dropped for the limit of all flows together.
    OVERLOAD_DROPS = "overload_drops", Count, "Packets dropped for the limit", "overload drops";
}
