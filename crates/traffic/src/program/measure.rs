//! What programs measure of themselves: which number of what they print or write is which metric.

use redtail_core::schemars::JsonSchema;
use redtail_core::serde::{Deserialize, Serialize};
use redtail_core::{ParamError, schemars, serde};

/// A number that programs tell.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(crate = "serde", deny_unknown_fields)]
#[schemars(crate = "schemars")]
pub struct MeasureParams {
    /// The unit of the number, one of those of `[metrics]`.
    /// Source: none, a number without a unit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
    /// What tables and figures call it.
    /// Source: the name of the metric.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Where it stands: "client" or "server", what the program prints, or a file in `{out}`, by a pattern such as "*.qlog".
    /// Source: the client, which most programs measure at.
    #[serde(default = "client")]
    pub from: String,
    /// The path of the number in JSON, such as "end.sum_received.bits_per_second" or "intervals[*].sum.rtt".
    /// Source: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub json: Option<String>,
    /// A regular expression with one group, the number, for lines of text.
    /// Source: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<String>,
    /// The event of a qlog and the field in its data, such as "recovery:metrics_updated.smoothed_rtt".
    /// Source: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub qlog: Option<String>,
    /// What is made of many numbers: "last", "first", "mean", "min", "max", "sum", or a percentile such as "p95".
    /// Source: none, there is one number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub statistic: Option<String>,
}

fn client() -> String {
    "client".to_owned()
}

/// Refuses what cannot be measured.
///
/// # Errors
/// [`ParamError`] names the key, the problem and what is accepted.
pub fn check(name: &str, measure: &MeasureParams) -> Result<(), ParamError> {
    let key = format!("measure.{name}");
    let mut letters = name.chars();
    let is_name = letters.next().is_some_and(|it| it.is_ascii_lowercase())
        && letters.all(|it| it.is_ascii_lowercase() || it.is_ascii_digit() || it == '_');
    if !is_name {
        let accepted = "small letters, digits and \"_\", beginning with a letter";
        return Err(ParamError::new(key, "is no name of a metric", accepted));
    }
    let given = [&measure.json, &measure.line, &measure.qlog];
    if given.into_iter().flatten().count() != 1 {
        let accepted = "one of `json`, `line` and `qlog`";
        return Err(ParamError::new(
            key,
            "does not say where the number stands",
            accepted,
        ));
    }
    Ok(())
}
