//! Canonical texts of many runs: scenarios that differ in their replication alone are written and read once
//! for each batch.
//!
//! The canonical text begins with plain values, one of which is the replication:
//! `{"version":1,"duration":"1 s","warmup":"0 s","seed":1,"replication":0,"bottleneck":{...`.

use std::collections::BTreeMap;

use crate::{Plan, Scenario, SpecError};

const KEY: &str = "\"replication\":";

/// The numbers of users of groups that are asked for by their load, for each case that has some.
pub type CalibratedUsers = BTreeMap<usize, Vec<(String, u32)>>;

/// The text before the replication, the replication, and the text behind it; `None` when the text is not of the
/// form that [`Scenario::to_json`] gives it.
fn parts(text: &str) -> Option<(&str, u32, &str)> {
    let start = text.find(KEY)? + KEY.len();
    // A key of a table within the scenario, such as a parameter of a plug-in, stands behind a second bracket.
    if text[1..start].contains(['{', '[']) {
        return None;
    }
    let (before, rest) = text.split_at(start);
    let (number, after) = rest.split_at(rest.find(|digit: char| !digit.is_ascii_digit())?);
    let replication: u32 = number.parse().ok()?;
    // "007" is no number in JSON; it must not become one here.
    (replication.to_string() == number).then_some((before, replication, after))
}

impl Plan {
    /// The canonical texts of runs, each given by the indices of its case and its replication. `None` if there is
    /// no case with one of these indices.
    pub fn texts(&self, runs: &[(usize, u32)], users: &CalibratedUsers) -> Option<Vec<String>> {
        // The text of one run of each case, for those with series, with events, and without.
        let mut known: BTreeMap<(usize, (bool, bool)), String> = BTreeMap::new();
        runs.iter()
            .map(|&(case, replication)| {
                let kind = (case, self.cases.get(case)?.records(replication));
                if let Some(text) = known.get(&kind)
                    && let Some((before, _, after)) = parts(text)
                {
                    return Some(format!("{before}{replication}{after}"));
                }
                let scenario = self.scenario(case, replication)?;
                let users = users.get(&case).into_iter().flatten();
                let text = users
                    .fold(scenario, |scenario, (group, users)| {
                        scenario.with_users(group, *users)
                    })
                    .to_json();
                known.insert(kind, text.clone());
                Some(text)
            })
            .collect()
    }
}

/// Reads the canonical texts of many runs.
#[derive(Default)]
pub struct ScenarioReader<'a> {
    /// Scenarios by the text before and behind their replication.
    known: BTreeMap<(&'a str, &'a str), Scenario>,
}

impl<'a> ScenarioReader<'a> {
    /// Reads what [`Scenario::to_json`] has written.
    ///
    /// # Errors
    /// If the text is no scenario of this version.
    pub fn read(&mut self, text: &'a str) -> Result<Scenario, SpecError> {
        let Some((before, replication, after)) = parts(text) else {
            return Scenario::from_json(text);
        };
        if let Some(scenario) = self.known.get(&(before, after)) {
            return Ok(Scenario {
                replication,
                ..scenario.clone()
            });
        }
        let scenario = Scenario::from_json(text)?;
        self.known.insert((before, after), scenario.clone());
        Ok(scenario)
    }
}
