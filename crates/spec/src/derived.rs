//! Metrics that the experiment file derives from others by a formula. Nothing is computed here: formulas
//! are for the results, and no run depends on them.

use redtail_core::params;

use crate::named::{NamedTables, OfText};

params! {
    /// A metric that follows from others by a formula.
    #[schemars(rename = "DerivedMetric")]
    pub struct DerivedMetricParams {
        /// How it is computed from the metrics of a run: numbers, names of metrics, `+ - * /`, parentheses, `min(…)` and `max(…)`. A name with `-` in it stands in single quotes: `'bbr-1.goodput'`.
        formula: String;
        /// Name in figures.
        title: Option<String>, "the formula.";
        /// Name at the head of a column.
        short: Option<String>, "the name of the metric.";
        /// Unit in which it is shown, which has to suit the formula: `"%"` or `"1"` of a ratio, `"ms"` of a time, `"Mbit/s"` of a rate.
        unit: Option<String>, "that of the formula; of a time ms, of a rate Mbit/s, of a ratio 1.";
    }
}

/// The metrics of the table `[metrics]` by their names, in the order of the file.
pub type DerivedMetrics = NamedTables<DerivedMetricParams>;

impl OfText for DerivedMetricParams {
    const ONE: &'static str =
        "a formula such as \"a.goodput / b.goodput\", or a table with formula, title, short, unit";
    const ALL: &'static str =
        "a table of formulas by name, such as share = \"a.goodput / goodput\"";
    const SCHEMA: &'static str = "DerivedMetrics";
    const NAME: &'static str = "^[A-Za-z][A-Za-z0-9_]*$";

    fn of_text(formula: String) -> Self {
        Self::new(formula)
    }
}
