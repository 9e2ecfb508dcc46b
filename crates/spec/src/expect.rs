//! What the experiment file expects of its results. Nothing is judged here: expectations are for the
//! results, and no run depends on them.

use redtail_core::params;

use crate::named::{NamedTables, OfText};

params! {
    /// Something that has to hold of the results, which `redtail expect` judges.
    #[schemars(rename = "Expectation")]
    pub struct ExpectationParams {
        /// What has to hold: `"cubic.goodput >= 9 Mbit/s"`, `"share within 5 % of 0.5"`. Each side is a formula as of a [derived metric](#derived-metric), of metrics, quantities (`20 ms`, `2 BDP`) and terms of [time series](../how-to/regression-tests.md#over-time).
        holds: String;
        /// The cases that it is about, by the labels of their factors' values; labels of one factor are alternatives.
        cases: Vec<String> = [], "all.";
        /// What has to hold of the replications: their "mean", as all intervals are of, or "each" of them.
        of: Option<String>, "mean.";
        /// Where the expectation comes from, for reports.
        source: Option<String>;
    }
}

/// The expectations of the table `[expect]` by their names, in the order of the file.
pub type Expectations = NamedTables<ExpectationParams>;

impl OfText for ExpectationParams {
    const ONE: &'static str =
        "a text such as \"cubic.goodput >= 9 Mbit/s\", or a table with holds, cases, of, source";
    const ALL: &'static str =
        "a table of what has to hold, by name, such as used = \"goodput >= 9 Mbit/s\"";
    const SCHEMA: &'static str = "Expectations";
    const NAME: &'static str = "^[^.\\x00-\\x1f]{1,100}$";

    fn of_text(holds: String) -> Self {
        Self::new(holds)
    }
}
